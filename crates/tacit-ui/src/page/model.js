// What the steps have gathered: paths, names of columns, choices. The browser keeps it for this address, so that a page
// that is closed and opened again goes on; one of another folder begins anew.
const KEY = "tacit-form";
const START = {
  file: "", table: null, keys: [], orKeys: [], partner: "", peerFile: "", identity: "", way: "listen", address: "0.0.0.0:7700",
  ask: "rows", result: "both", columns: [], theirColumns: "", statistic: "sum", column: "", theirColumn: "", digits: "",
  noHeader: false, decimalComma: false, encoding: "", seen: {}, duplicates: "refuse", smallest: "",
  sql: "", side: "ours", least: "", security: "malicious", run: null, folder: "",
};

function kept() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) || {};
  } catch {
    return {};
  }
}

export const model = { ...START, ...kept() };
const listeners = [];

export function change(values) {
  Object.assign(model, values);
  localStorage.setItem(KEY, JSON.stringify(model));
  listeners.forEach((listener) => listener(values));
}

// Forgets what was gathered for another folder; whether it did.
export function belongsTo(folder) {
  const isOther = model.folder !== "" && model.folder !== folder;
  change(isOther ? { ...START, folder } : { folder });
  return isOther;
}

export const onChange = (listener) => listeners.push(listener);

// What is asked for, who owns its columns, and who can get it.
export const ASKS = {
  rows: { ask: "rows", results: ["me", "peer", "both"] },
  give: { ask: "columns", owner: "me", results: ["peer"] },
  take: { ask: "columns", owner: "peer", results: ["me"] },
  count: { ask: "count", results: ["me", "peer", "both"] },
  own: { owner: "me", results: ["peer"] },
  their: { owner: "peer", results: ["me"] },
  question: { ask: "question", results: ["me", "peer", "both"] },
};
export const STATISTICS = ["sum", "mean", "max", "min"];

// The most identifiers of a row.
export const MOST_IDENTIFIERS = 16;

// Whether a row may match by any of several identifiers: where rows are revealed, or columns of theirs.
export const takesIdentifiers = () => ["rows", "give", "take"].includes(model.ask);

// A type as the two sides agree on it: how a side writes its numbers and dates is its own affair.
export const agreedType = (type) => (type || "text").replace(/\bphone:([A-Za-z]{2})?/, "phone")
  .replace(/\bdate:(DMY|MDY|YMD)/, "date").replace("decimal:comma", "decimal");

// The columns that the file lacks, of those that this side gives.
export function lacking(names) {
  const has = new Set((model.table ? model.table.columns : []).map((one) => one.column));
  return model.table ? names.filter((name) => !has.has(name)) : [];
}

export const isNumber = () => model.ask === "own" || model.ask === "their";

// What works only against a partner that follows the protocol.
export const needsTrust = () =>
  model.ask === "question" || (isNumber() && ["max", "min"].includes(model.statistic));

export const names = (text) => text.split(",").map((name) => name.trim()).filter(Boolean);

// How the file is read: as was said, and else as was seen when it was looked at, which holds for this file alone.
export const reading = () => ({
  no_header: model.noHeader, decimal_comma: model.decimalComma,
  encoding: model.encoding || model.seen.encoding || "", skip_lines: model.seen.skip_lines || "",
});

// Whether rows with the same key matter to what this side sends.
export const sendsRows = () => model.ask === "give" || model.ask === "question";

// The form of a run, or of its terms.
export function form(kind) {
  const { ask, owner } = ASKS[model.ask];
  const own = owner === "me";
  const result = ASKS[model.ask].results.includes(model.result) ? model.result : ASKS[model.ask].results[0];
  return {
    kind, way: model.way, address: model.address, file: model.file, key: model.keys, or_key: model.orKeys, result, owner,
    ...(model.peerFile ? { peer_file: model.peerFile } : { partner: model.partner }),
    identity: model.identity,
    ask: ask || model.statistic,
    columns: ask === "columns" ? (own ? model.columns : names(model.theirColumns)) : [],
    column: isNumber() ? (own ? model.column : model.theirColumn) : "",
    digits: isNumber() ? model.digits : "",
    min_matches: model.ask === "count" || isNumber() ? model.least : "",
    security: needsTrust() ? "semi-honest" : model.security,
    sql: model.ask === "question" ? model.sql : "",
    side: model.ask === "question" ? model.side : "",
    min_group: model.ask === "question" ? model.smallest : "",
    duplicates: sendsRows() && model.duplicates !== "refuse" ? model.duplicates : "",
    ...reading(),
  };
}
