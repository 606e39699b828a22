// Step 3: what to ask, who gets the answer, and the same as a text for the partner's page.
import { byId, choices, copies, fault, make, say, show } from "./dom.js";
import { ASKS, STATISTICS, change, isNumber, model, names, needsTrust, onChange, sendsRows } from "./model.js";
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
      && STATISTICS.includes(said.statistic) && isText(said.column) && ["", "decimal1", "decimal2", "decimal3"].includes(said.digits)
      && isText(said.sql, 64000) && ["ours", "theirs"].includes(said.side) && /^\d{0,12}$/.test(said.least)
      && ["malicious", "semi-honest"].includes(said.security) && ["listen", "connect", "via"].includes(said.way)
      && isText(said.address, 300) && /^\d{0,5}$/.test(said.port);
    return fits ? said : null;
  } catch {
    return null;
  }
}

function accept() {
  const said = read(byId("proposal").value);
  fault("accept-fault", said ? "" : t("accept.wrong"));
  say(byId("accept-status"), "");
  if (!said) return;
  const own = said.ask === "give" || said.ask === "own";
  const keys = model.keys.map((key, at) => ({ ...key, type: said.types[at] || key.type }));
  const values = {
    ask: said.ask, result: said.result, statistic: said.statistic, digits: said.digits, sql: said.sql, side: said.side,
    least: said.least, security: said.security, keys,
    columns: own ? said.columns : model.columns, theirColumns: own ? model.theirColumns : said.columns.join(", "),
    column: own ? said.column : model.column, theirColumn: own ? model.theirColumn : said.column,
  };
  if (said.way === "via") Object.assign(values, { way: "via", address: said.address });
  else if (model.way !== said.way) Object.assign(values, { way: said.way, address: said.way === "listen" ? `0.0.0.0:${said.port || 7700}` : model.address });
  change(values);
  draw();
  say(byId("accept-status"), t("accept.done", { types: said.types.join(", ") }));
  if (said.types.length !== model.keys.length) fault("accept-fault", t("accept.keys", { n: said.types.length, types: said.types.join(", ") }));
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
  copies(byId("copy-proposed"), () => byId("proposed").value);
  sql.begin((text) => {
    change({ sql: text });
    byId("sql").value = text;
  });
  onChange((values) => {
    if ("ask" in values || "statistic" in values || "table" in values) drawDetails();
    else if (!("run" in values)) drawProposal();
    if ("table" in values || "side" in values) sql.draw();
  });
  onLanguage(draw);
}
