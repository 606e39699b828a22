// Elements and their texts. Nothing is built from text as markup: whatever comes out of a file is text.
import { t } from "./words.js";

export const byId = (id) => document.getElementById(id);

export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// What the command says, and in which language that is; or a text of the page's own.
export function quote(element, said) {
  say(element, typeof said === "string" ? said : said.text);
  if (typeof said === "string") element.removeAttribute("lang");
  else element.lang = said.lang;
}

export function show(element, is = true) {
  if (element.hidden === is) element.hidden = !is;
}

// An element with properties, and what is in it.
export function make(tag, properties = {}, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...inside);
  return element;
}

export function list(element, lines) {
  const texts = lines.map((line) => (typeof line === "string" ? line : line.text));
  if ([...element.children].map((item) => item.textContent).join("\n") === texts.join("\n")) return;
  element.replaceChildren(...lines.map((line) => {
    const item = make("li");
    quote(item, line);
    return item;
  }));
}

// A line about what went wrong, or nothing.
export function fault(id, said) {
  const element = byId(id);
  quote(element, said || "");
  show(element, Boolean(said));
}

// Rows of cells; on a narrow screen each cell is under its column's name.
export function rows(table, names, cells) {
  const body = table.tBodies[0];
  body.replaceChildren(...cells.map((row) => make("tr", { role: "row" }, ...row.map((content, at) => {
    const inside = make("span");
    inside.append(content);
    const cell = make("td", { role: "cell" }, inside);
    cell.dataset.label = names[at] || "";
    return cell;
  }))));
  table.setAttribute("role", "table");
  for (const group of table.querySelectorAll("thead, tbody")) group.setAttribute("role", "rowgroup");
  for (const row of table.querySelectorAll("thead tr")) row.setAttribute("role", "row");
  for (const cell of table.querySelectorAll("th")) cell.setAttribute("role", "columnheader");
}

export const heads = (table) => [...table.tHead.rows[0].cells].map((cell) => cell.textContent);

// Buttons of which one is pressed: radio buttons with a sentence under each.
export function choices(id, name, all, chosen, changed) {
  const box = byId(id);
  box.replaceChildren(...all.map(({ value, text, small }) => {
    const input = make("input", { type: "radio", name, value, checked: value === chosen });
    input.addEventListener("change", () => changed(value));
    const label = make("label", { className: "choice" }, input, make("span", {}, make("strong", { textContent: text })));
    if (small) label.lastChild.append(make("small", { textContent: small }));
    return label;
  }));
}

// The command that does the same, to copy.
export function command(details, text) {
  const box = details.querySelector(".shown");
  show(details, Boolean(text));
  if (!text || box.dataset.text === text) return;
  box.dataset.text = text;
  const copy = make("button", { type: "button", textContent: t("copy") });
  copy.dataset.t = "copy";
  copies(copy, () => text);
  box.replaceChildren(make("code", { textContent: text }), copy);
}

// Has a button copy a text, and say so for a moment.
export function copies(button, text) {
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text());
    say(button, t("copied"));
    setTimeout(() => say(button, t("copy")), 1500);
  });
}
