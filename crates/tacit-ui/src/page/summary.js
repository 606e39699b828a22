// What a form asks for, in a few lines: so that a person sees what is agreed to without going back, and what was agreed to
// in an earlier run.
import { make } from "./dom.js";
import { decimal, number, t } from "./words.js";

const typed = (key) => (key.type && key.type !== "text" ? `${key.column} (${key.type})` : key.column);
const together = (keys) => (keys || []).map(typed).join(" + ");

export function key(form) {
  const all = [together(form.key), ...(form.or_key || []).map(together)].filter(Boolean);
  return all.join(` ${t("summary.or")} `);
}

// A column without how its numbers are read, which is that many decimal places.
const DECIMAL = /:decimal(\d)$/;
export const plain = (column) => column.replace(DECIMAL, "");

// The number that a run gave, as people write it; nothing where it gave none.
export function figure(found) {
  const value = found[found.reveal] ?? found.count;
  if (value === undefined || value === null) return undefined;
  const digits = found.reveal === "count" ? 0 : (found.decimal_digits ?? Number(DECIMAL.exec(found.column || "")?.[1] ?? 0));
  return decimal(value, digits);
}

// The columns that a run sends, and those that it brings: whole ones, or one of which a number is made.
export function columns(form) {
  const isOwn = form.owner === "me";
  const names = (form.columns || []).join(", ");
  if (form.ask === "columns") return isOwn ? { given: t("summary.given", { names }) } : { got: t("summary.got", { names }) };
  if (!form.column) return {};
  const of = { column: plain(form.column), statistic: t(`statistic.${form.ask}`) };
  return isOwn ? { given: t("summary.given_number", of) } : { got: t("summary.got_number", of) };
}

// What the form says, as terms with their descriptions. `partner` is what is known of the partner, if it is one that is.
export function lines(form, { rows, fingerprint }) {
  const values = form.values || [];
  const file = values.length > 0 ? "" : form.file || "";
  const { given, got } = columns(form);
  const who = form.partner || form.peer_file || "";
  const found = [
    ["summary.file", file && typeof rows === "number" ? t("summary.rows", { rows, file }) : file],
    ["summary.key", form.ask === "question" || form.asks ? "" : key(form)],
    ["summary.partner", fingerprint ? t("summary.known", { name: who, fingerprint }) : who],
    ["summary.meet", form.address ? `${t(`way.${form.way}`)}: ${form.address}` : ""],
    ["summary.ask", form.job ? t("history.request", { job: form.job }) : form.ask ? t(`kind.${form.ask}`) : ""],
    ["lookup.tags", form.tags || ""],
    ["lookup.values", values.join(", ")],
    ["answer.template", [form.question || "", ...(form.set || []).map((one) => `${one.name} = ${one.value}`)].filter(Boolean).join(", ")],
    ["summary.columns", [given, got].filter(Boolean).join(" ")],
    ["summary.sql", form.sql || ""],
    ["summary.result", form.result ? t(`result.${form.result}`) : ""],
    ["summary.least", form.min_matches ? number(Number(form.min_matches)) : ""],
    ["summary.security", form.security ? t(form.security === "malicious" ? "more.malicious" : "more.semi") : ""],
  ];
  return found.filter(([, text]) => text);
}

export function draw(element, form, more = {}) {
  element.replaceChildren(...lines(form, more).map(([name, text]) =>
    make("div", {}, make("dt", { textContent: t(name) }), make("dd", { textContent: text }))));
}
