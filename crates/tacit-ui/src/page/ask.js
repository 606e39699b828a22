// Step 3: what to ask, who gets the answer, and the same as a text for the partner's page.
import { byId, choices, copies, list, make, say, show } from "./dom.js";
import {
  ASKS, MOST_IDENTIFIERS, STATISTICS, agreedType, change, isNumber, lacking, model, names, needsTrust, onChange, sendsRows,
  takesIdentifiers,
} from "./model.js";
import * as keys from "./keys.js";
import * as sql from "./sql.js";
import { onLanguage, t } from "./words.js";

// What a text for a partner's page begins with; its number changes with what is behind it.
const MARK = "tacit-proposal-1:";
const MIRROR = { rows: "rows", give: "take", take: "give", count: "count", own: "their", their: "own", question: "question" };
const FLIP = { me: "peer", peer: "me", both: "both" };

function drawAsks() {
  choices("asks", "ask", Object.keys(ASKS).map((value) => ({ value, text: t(`ask.${value}`), small: t(`ask.${value}.more`) })),
    model.ask, (ask) => change({ ask, result: ASKS[ask].results.includes(model.result) ? model.result : ASKS[ask].results[0] }));
}

function drawDetails() {
  const { results } = ASKS[model.ask];
  const chosen = results.includes(model.result) ? model.result : results[0];
  choices("results", "result", results.map((value) => ({ value, text: t(`result.${value}`) })), chosen, (result) => change({ result }));
  show(byId("ask-columns"), model.ask === "give" || model.ask === "take");
  show(byId("own-columns"), model.ask === "give");
  show(byId("their-columns-field"), model.ask === "take");
  show(byId("ask-number"), isNumber());
  show(byId("own-column-field"), model.ask === "own");
  show(byId("their-column-field"), model.ask === "their");
  show(byId("ask-question"), model.ask === "question");
  show(byId("least-field"), model.ask === "count" || isNumber());
  show(byId("smallest-field"), model.ask === "question");
  show(byId("duplicates-field"), sendsRows());
  byId("security").disabled = needsTrust();
  byId("security").value = needsTrust() ? "semi-honest" : model.security;
  say(byId("ask-note"), needsTrust() ? t("ask.trust") : "");
  show(byId("ask-note"), needsTrust());
  drawColumns();
  drawProposal();
}

function drawColumns() {
  const columns = model.table ? model.table.columns.map((one) => one.column) : [];
  byId("own-columns").replaceChildren(...columns.map((name) => {
    const input = make("input", { type: "checkbox", value: name, checked: model.columns.includes(name) });
    input.addEventListener("change", () => {
      const others = model.columns.filter((other) => other !== name);
      change({ columns: input.checked ? [...others, name] : others });
    });
    return make("label", { className: "choice" }, input, make("span", { textContent: name }));
  }));
  if (columns.length === 0) byId("own-columns").replaceChildren(make("p", { className: "muted", textContent: t("ask.no_file") }));
  const select = byId("own-column");
  select.replaceChildren(make("option", { value: "", textContent: "–" }), ...columns.map((name) =>
    make("option", { value: name, textContent: name, selected: name === model.column })));
}

function drawStatistic() {
  const box = byId("ask-number");
  let field = byId("statistic");
  if (!field) {
    field = make("select", { id: "statistic" });
    field.addEventListener("change", () => change({ statistic: field.value }));
    box.querySelector("legend").after(make("p", { className: "field" }, make("label", { htmlFor: "statistic", id: "statistic-label" }), field));
  }
  say(byId("statistic-label"), t("ask.statistic"));
  field.replaceChildren(...STATISTICS.map((value) =>
    make("option", { value, textContent: t(`statistic.${value}`), selected: value === model.statistic })));
}

// The text for the partner's page: this side's choices as the partner has to make them.
function proposal() {
  const port = /:(\d+)$/.exec(model.address)?.[1] || "";
  // Nothing of another question that was tried before.
  const is = { columns: ["give", "take"].includes(model.ask), number: isNumber(), question: model.ask === "question" };
  const column = model.ask === "own" ? model.column : model.theirColumn;
  const said = {
    ask: MIRROR[model.ask], result: FLIP[model.result], types: model.keys.map((key) => key.type || "text"),
    more: takesIdentifiers() ? model.orKeys.map((columns) => columns.map((key) => key.type || "text")) : [],
    columns: !is.columns ? [] : model.ask === "give" ? model.columns : names(model.theirColumns),
    statistic: model.statistic, column: is.number ? column : "", digits: is.number ? model.digits : "",
    sql: is.question ? model.sql : "", side: model.side === "ours" ? "theirs" : "ours", least: model.least,
    security: model.security, way: { listen: "connect", connect: "listen", via: "via" }[model.way],
    address: model.way === "via" ? model.address : "", port,
  };
  const bytes = new TextEncoder().encode(JSON.stringify(said));
  return MARK + btoa(String.fromCharCode(...bytes));
}

function drawProposal() {
  const text = model.keys.length ? proposal() : "";
  if (byId("proposed").value !== text) byId("proposed").value = text;
}

const isText = (value, most = 4000) => typeof value === "string" && value.length <= most;
const isTexts = (value) => Array.isArray(value) && value.length <= 500 && value.every((one) => isText(one, 500));

// What a partner's text says, or nothing where it is not one. Whoever wrote it chose it: it fills in the form and no more.
function read(text) {
  try {
    const trimmed = text.replace(/\s+/g, "");
    if (!trimmed.startsWith(MARK)) return null;
    const bytes = Uint8Array.from(atob(trimmed.slice(MARK.length)), (c) => c.charCodeAt(0));
    const said = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    const fits = said.ask in ASKS && ASKS[said.ask].results.includes(said.result) && isTexts(said.types) && isTexts(said.columns)
      && (said.more === undefined || (Array.isArray(said.more) && said.more.length < MOST_IDENTIFIERS && said.more.every(isTexts)))
      && STATISTICS.includes(said.statistic) && isText(said.column) && ["", "decimal1", "decimal2", "decimal3"].includes(said.digits)
      && isText(said.sql, 64000) && ["ours", "theirs"].includes(said.side) && /^\d{0,12}$/.test(said.least)
      && ["malicious", "semi-honest"].includes(said.security) && ["listen", "connect", "via"].includes(said.way)
      && isText(said.address, 300) && /^\d{0,5}$/.test(said.port);
    return fits ? said : null;
  } catch {
    return null;
  }
}

// The proposal that was taken up last, so that it is checked again when another table is read.
let taken = null;

// The types of the partner's identifiers, and this side's, in the same order.
const theirTypes = (said) => [said.types, ...(said.more || [])];
const ourKeys = () => [model.keys, ...(takesIdentifiers() ? model.orKeys : [])];
const written = (types) => types.map((one) => one.join(", ")).join(` ${t("summary.or")} `);
const haveSameShape = (said) => {
  const [theirs, ours] = [theirTypes(said), ourKeys()];
  return theirs.length === ours.length && theirs.every((types, at) => types.length === ours[at].length);
};

// The columns of this side that a proposal asks for; of a question in SQL those behind our table's letter.
function wanted(said) {
  if (said.ask === "give") return said.columns;
  if (said.ask === "own") return [said.column];
  if (said.ask !== "question") return [];
  const letter = said.side === "ours" ? "a" : "b";
  const found = [...said.sql.matchAll(new RegExp(`\\b${letter}\\.(?:"((?:[^"]|"")+)"|(\\w+))`, "gi"))];
  const written = found.map(([, quoted, word]) => (quoted === undefined ? word : quoted.replaceAll('""', '"')));
  const has = (name) => lacking([name]).length === 0;
  return written.map((name) => (has(name) ? name : untyped(name)));
}

// A column's name without the type that stands behind it.
function untyped(name) {
  let start = name.length;
  while (start > 0 && /[\w:~-]/.test(name[start - 1])) start -= 1;
  const at = name.indexOf(":", start);
  return at < 0 || at === name.length - 1 ? name : name.slice(0, at);
}

// What of a proposal does not fit this side's table and key.
function problems(said) {
  const columns = [...new Set(wanted(said))];
  const lines = [];
  if (!model.table) lines.push(columns.length > 0 ? t("accept.no_table_for", { names: columns.join(", ") }) : t("accept.no_table"));
  const missing = lacking(columns);
  if (missing.length > 0) lines.push(t("accept.lacks", { names: missing.join(", ") }));
  const [theirs, ours] = [theirTypes(said), ourKeys()];
  if (theirs.length !== ours.length) lines.push(t("accept.identifiers", { n: theirs.length, types: written(theirs) }));
  else if (theirs[0].length !== ours[0].length) lines.push(t("accept.keys", { n: theirs[0].length, types: theirs[0].join(", ") }));
  else if (!haveSameShape(said)) lines.push(t("accept.identifiers", { n: theirs.length, types: written(theirs) }));
  return lines;
}

function told(lines) {
  list(byId("accept-problems"), lines);
  show(byId("accept-fault"), lines.length > 0);
}

// The columns whose types differ from the partner's, in a way that matters to both.
function differing(said) {
  if (!haveSameShape(said)) return [];
  const theirs = theirTypes(said);
  return ourKeys().flatMap((columns, identifier) => columns.map((key, at) => ({ key, type: theirs[identifier][at] })))
    .filter(({ key, type }) => agreedType(key.type) !== agreedType(type));
}

// What protects this side less than what it chose, by the names of the model.
function lower(said) {
  const values = {};
  if (said.security === "semi-honest" && model.security === "malicious" && !needsTrust()) values.security = said.security;
  if (Number(said.least) < Number(model.least)) values.least = said.least;
  return values;
}

// A person chose the types and what protects, so a proposal changes none of that by itself.
function askAboutTypes(said) {
  const { security, least } = lower(said);
  const changes = differing(said).map(({ key, type }) => t("types.change", { column: key.column, own: key.type || "text", theirs: type }));
  if (security) changes.push(t("types.change", { column: t("summary.security"), own: t("more.malicious"), theirs: t("more.semi") }));
  if (least !== undefined) changes.push(t("types.change", { column: t("summary.least"), own: model.least, theirs: least || "0" }));
  list(byId("types-changes"), changes);
  show(byId("types-ask"), changes.length > 0);
  if (changes.length > 0) byId("types-about").focus();
}

function answerAboutTypes(takes) {
  show(byId("types-ask"), false);
  if (takes && taken) {
    const theirs = theirTypes(taken);
    const one = (columns, identifier) => columns.map((key, at) => {
      const type = theirs[identifier][at];
      return type === undefined || agreedType(key.type) === agreedType(type) ? key : { ...key, type };
    });
    change({ ...lower(taken), keys: one(model.keys, 0), orKeys: model.orKeys.map((columns, at) => (takesIdentifiers() ? one(columns, at + 1) : columns)) });
  }
  keys.draw();
  say(byId("accept-status"), t(takes ? "types.taken" : "types.kept"));
  byId("take").focus();
}

function accept() {
  taken = read(byId("proposal").value);
  told(taken ? [] : [t("accept.wrong")]);
  say(byId("accept-status"), "");
  show(byId("types-ask"), false);
  if (!taken) return;
  const said = taken;
  const own = said.ask === "give" || said.ask === "own";
  const values = {
    ask: said.ask, result: said.result, statistic: said.statistic, digits: said.digits, sql: said.sql, side: said.side,
    columns: own ? said.columns : model.columns, theirColumns: own ? model.theirColumns : said.columns.join(", "),
    column: own ? said.column : model.column, theirColumn: own ? model.theirColumn : said.column,
  };
  if (said.way === "via") Object.assign(values, { way: "via", address: said.address });
  else if (model.way !== said.way) Object.assign(values, { way: said.way, address: said.way === "listen" ? `0.0.0.0:${said.port || 7700}` : "" });
  change(values);
  // What protects more is taken; what protects less is asked about.
  const { security = said.security, least = said.least } = Object.fromEntries(Object.keys(lower(said)).map((name) => [name, model[name]]));
  change({ security, least });
  draw();
  say(byId("accept-status"), t("accept.done", { types: written(theirTypes(said)) }));
  told(problems(said));
  askAboutTypes(said);
}

function draw() {
  drawAsks();
  drawStatistic();
  for (const [id, name] of FIELDS) byId(id).value = model[name];
  sql.draw();
  drawDetails();
}

const FIELDS = [["their-columns", "theirColumns"], ["their-column", "theirColumn"], ["digits", "digits"], ["sql", "sql"],
  ["side", "side"], ["least", "least"], ["smallest", "smallest"], ["duplicates", "duplicates"]];

export function begin() {
  for (const [id, name] of [...FIELDS, ["own-column", "column"]]) {
    byId(id).addEventListener("input", () => change({ [name]: byId(id).value }));
  }
  byId("security").addEventListener("change", () => change({ security: byId("security").value }));
  byId("take").addEventListener("click", accept);
  byId("types-take").addEventListener("click", () => answerAboutTypes(true));
  byId("types-keep").addEventListener("click", () => answerAboutTypes(false));
  copies(byId("copy-proposed"), () => byId("proposed").value);
  sql.begin((text) => {
    change({ sql: text });
    byId("sql").value = text;
  });
  onChange((values) => {
    if ("ask" in values || "statistic" in values || "table" in values) drawDetails();
    else if (!("run" in values)) drawProposal();
    if ("table" in values || "side" in values) sql.draw();
    if (taken && ("table" in values || "keys" in values || "orKeys" in values)) told(problems(taken));
  });
  onLanguage(() => {
    draw();
    say(byId("accept-status"), "");
    show(byId("types-ask"), false);
    if (taken) told(problems(taken));
  });
}
