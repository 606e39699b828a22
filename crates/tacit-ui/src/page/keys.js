// Step 1: what identifies a row: one or more columns with their types, and further identifiers of which any may match.
import { byId, make, say, show } from "./dom.js";
import { MOST_IDENTIFIERS, change, model, takesIdentifiers } from "./model.js";
import { onLanguage, t } from "./words.js";

// Kinds that can be chosen. One that ends in a colon wants a region; the last one is any that the command knows.
const KINDS = [
  "text", "email", "email:gmail", "phone", "phone:", "date", "date:DMY", "date:MDY", "int", "decimal", "decimal:comma",
  "uuid", "name", "postcode", "postcode:", "text:nfkc", "name~1", "date~1",
];
const OTHER = "other";
const REGION = /^[A-Za-z]{2}$/;
// How the command calls a telephone number whose region nobody has named yet.
const NAMELESS = "phone:REGION";

let changed = () => {};

// A type as `tacit check` calls it, as one that can be chosen.
export const chosen = (type) => (type === NAMELESS ? "phone:" : type || "text");

// What a kind is called.
const title = (kind) => t(`type.${kind.replaceAll(/[:~]/g, "_")}`);

// What a type of `tacit check` is called.
export const called = (type) => (KINDS.includes(chosen(type)) && type ? title(chosen(type)) : type || "");

// The kind and the region or text of a type.
function parts(type) {
  const [, kind, region] = /^(phone:|postcode:)(.*)$/.exec(type) || [];
  if (kind) return { kind, more: region };
  return KINDS.includes(type) ? { kind: type, more: "" } : { kind: OTHER, more: type };
}

export const lacksRegion = (key) => /^(phone|postcode):$/.test(key.type || "") || key.type === "";

// All identifiers, the first one too.
const all = () => [model.keys, ...model.orKeys];

function put(identifier, columns) {
  const others = model.orKeys.slice();
  if (identifier > 0) others[identifier - 1] = columns;
  change(identifier === 0 ? { keys: columns } : { orKeys: others });
  changed();
}

// The field for a region, or for a type of another name.
function moreField(id, key, give) {
  const { kind, more } = parts(key.type || "text");
  const isRegion = kind.endsWith(":");
  const input = make("input", { id: `${id}-more`, value: more, autocomplete: "off", spellcheck: false, maxLength: isRegion ? 2 : 60 });
  const help = make("small", { id: `${id}-help`, className: "bad" });
  input.setAttribute("aria-describedby", help.id);
  const judge = (isSaid) => {
    const is = isRegion ? REGION.test(input.value.trim()) : input.value.trim() !== "";
    input.setAttribute("aria-invalid", String(!is));
    say(help, is || !isSaid ? "" : t(isRegion ? "key.region_missing" : "key.type_missing"));
    return is;
  };
  judge(true);
  input.addEventListener("change", () => {
    const text = input.value.trim();
    const isGood = judge(true);
    if (isRegion) input.value = text.toUpperCase();
    give(isRegion ? `${kind}${isGood ? text.toUpperCase() : ""}` : text);
  });
  const label = make("label", { htmlFor: input.id, textContent: t(isRegion ? (kind === "phone:" ? "key.region" : "key.country") : "key.type_name") });
  const field = make("span", { className: "more" }, label, input, help);
  show(field, isRegion || kind === OTHER);
  return field;
}

function row(identifier, columns, at) {
  const key = columns[at];
  const id = identifier === 0 ? `${at}` : `${identifier}-${at}`;
  const column = make("select", { id: `key-${id}` }, ...model.table.columns.map((one) =>
    make("option", { value: one.column, textContent: one.column, selected: one.column === key.column })));
  const { kind } = parts(key.type || "text");
  const type = make("select", { id: `type-${id}` }, ...[...KINDS, OTHER].map((one) =>
    make("option", { value: one, textContent: title(one), selected: one === kind })));
  const set = (values) => put(identifier, columns.map((one, other) => (other === at ? { ...one, ...values } : one)));
  const more = moreField(`type-${id}`, key, (type) => set({ type }));
  const again = (values, focus) => {
    set(values);
    draw();
    byId(focus).focus();
  };
  column.addEventListener("change", () =>
    again({ column: column.value, type: chosen(model.table.columns.find((one) => one.column === column.value)?.type) }, column.id));
  type.addEventListener("change", () => again({ type: type.value === OTHER ? "" : type.value }, type.id));
  const element = make("p", { className: "field key" },
    make("label", { htmlFor: column.id, textContent: t("key.column", { n: at + 1 }) }), column,
    make("label", { htmlFor: type.id, textContent: t("key.type") }), type);
  if (columns.length > 1) {
    const remove = make("button", { type: "button", textContent: t("key.remove") });
    remove.setAttribute("aria-label", t("key.remove_this", { column: key.column }));
    remove.addEventListener("click", () => {
      put(identifier, columns.filter((_, other) => other !== at));
      draw();
      byId(identifier === 0 ? "add-key" : `add-key-${identifier}`).focus();
    });
    element.append(remove);
  }
  return [element, more];
}

// The next column that is no part of a key yet.
function fresh() {
  const taken = new Set(all().flat().map((key) => key.column));
  const columns = model.table.columns.filter((one) => !one.no_key);
  const next = columns.find((one) => !taken.has(one.column)) || columns[0] || model.table.columns[0];
  return { column: next.column, type: chosen(next.type) };
}

function further(identifier, columns) {
  const add = make("button", { type: "button", id: `add-key-${identifier}`, textContent: t("key.add") });
  add.addEventListener("click", () => {
    put(identifier, [...columns, fresh()]);
    draw();
    byId(`key-${identifier}-${columns.length}`).focus();
  });
  const remove = make("button", { type: "button", textContent: t("or.remove", { n: identifier + 1 }) });
  remove.addEventListener("click", () => {
    change({ orKeys: model.orKeys.filter((_, other) => other !== identifier - 1) });
    changed();
    draw();
    byId("add-identifier").focus();
  });
  return make("fieldset", { className: "inner" }, make("legend", { textContent: t("or.title", { n: identifier + 1 }) }),
    ...columns.flatMap((_, at) => row(identifier, columns, at)), make("p", { className: "actions" }, add, remove));
}

export function draw() {
  if (!model.table) return;
  byId("keys").replaceChildren(...model.keys.flatMap((_, at) => row(0, model.keys, at)));
  byId("or-keys").replaceChildren(...model.orKeys.map((columns, at) => further(at + 1, columns)));
  byId("add-identifier").disabled = model.orKeys.length >= MOST_IDENTIFIERS - 1;
  say(byId("or-note"), model.orKeys.length > 0 ? t(takesIdentifiers() ? "or.costs" : "or.not_here") : "");
}

export function begin(told) {
  changed = told;
  byId("add-key").addEventListener("click", () => {
    const taken = new Set(model.keys.map((key) => key.column));
    if (!model.table.columns.some((one) => !taken.has(one.column) && !one.no_key)) return;
    put(0, [...model.keys, fresh()]);
    draw();
    byId(`key-${model.keys.length - 1}`).focus();
  });
  byId("add-identifier").addEventListener("click", () => {
    change({ orKeys: [...model.orKeys, [fresh()]] });
    changed();
    draw();
    byId(`key-${model.orKeys.length}-0`).focus();
  });
  onLanguage(draw);
}
