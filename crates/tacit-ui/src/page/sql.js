// A form that writes a question in the SQL of `tacit query`: how many rows, the sum of a column, by group, of some rows.
import { byId, make } from "./dom.js";
import { model, names } from "./model.js";
import { t } from "./words.js";

const fields = { theirKey: "", sum: "", sumOf: "peer", least: "0", most: "1000", group: "", groupOf: "peer", values: "", where: "", whereOf: "me", operator: "=", value: "", smallest: "10" };

const quoted = (name) => `"${name.replaceAll('"', '""')}"`;
const literal = (text) => (/^-?\d+(\.\d+)?$/.test(text) ? text : `'${text.replaceAll("'", "''")}'`);

// The table of a side as the question calls it: a is ours, b is theirs.
function alias(owner) {
  return (owner === "me") === (model.side === "ours") ? "a" : "b";
}

const column = (owner, name) => `${alias(owner)}.${quoted(name)}`;

export function text() {
  const keys = model.keys.length > 0 ? model.keys : [{ column: "", type: "text" }];
  // The partner's columns in the order of ours; those that are not named are called as ours are.
  const theirs = keys.length > 1 ? names(fields.theirKey) : [fields.theirKey];
  const equal = keys.map((key, at) => {
    const typed = (name) => (key.type && key.type !== "text" ? `${name}:${key.type}` : name);
    const pair = [column("me", typed(key.column)), column("peer", typed(theirs[at] || key.column))];
    return (alias("me") === "a" ? pair : pair.reverse()).join(" = ");
  });
  const select = ["COUNT(*) AS n"];
  const group = fields.group ? column(fields.groupOf, fields.group) : "";
  if (group) select.unshift(group);
  if (fields.sum) select.push(`SUM(CLIP(${column(fields.sumOf, fields.sum)}, ${fields.least}, ${fields.most})) AS total`);
  const where = [];
  if (fields.where) where.push(`${column(fields.whereOf, fields.where)} ${fields.operator} ${literal(fields.value)}`);
  if (group) where.push(`${group} IN (${fields.values.split(",").map((one) => literal(one.trim())).join(", ")})`);
  return [
    `SELECT ${select.join(", ")}`, `FROM ours a JOIN theirs b ON ${equal.join(" AND ")}`,
    ...(where.length ? [`WHERE ${where.join(" AND ")}`] : []), ...(group ? [`GROUP BY ${group}`] : []),
    `HAVING COUNT(*) >= ${/^\d+$/.test(fields.smallest) ? fields.smallest : 10}`,
  ].join("\n");
}

function input(name) {
  const field = make("input", { id: `sql-${name}`, value: fields[name], autocomplete: "off", spellcheck: false });
  field.addEventListener("input", () => { fields[name] = field.value.trim(); });
  return make("p", { className: "field" }, make("label", { htmlFor: `sql-${name}`, textContent: t(`sql.${name}`) }), field);
}

function select(name, values, words) {
  const field = make("select", { id: `sql-${name}` }, ...values.map((value) =>
    make("option", { value, textContent: words(value), selected: fields[name] === value })));
  field.addEventListener("change", () => { fields[name] = field.value; });
  return make("p", { className: "field" }, make("label", { htmlFor: `sql-${name}`, textContent: t(`sql.${name}`) }), field);
}

const owner = (name) => select(name, ["me", "peer"], (value) => t(`sql.of.${value}`));
const group = (title, ...inside) => make("fieldset", { className: "inner" }, make("legend", { textContent: t(title) }), ...inside);

export function draw() {
  byId("sql-form").replaceChildren(
    input("theirKey"),
    group("sql.add", input("sum"), owner("sumOf"), input("least"), input("most")),
    group("sql.by", input("group"), owner("groupOf"), input("values")),
    group("sql.only", input("where"), owner("whereOf"), select("operator", ["=", "<>", ">", ">=", "<", "<="], (value) => value), input("value")),
    input("smallest"),
  );
}

export function begin(made) {
  byId("sql-make").addEventListener("click", () => made(text()));
}
