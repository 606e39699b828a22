// What the command says is English. Where it is a sentence that this page knows, it is said in the page's language; anything
// else is shown as it is, and marked as English, so that a screen reader reads it right.
import { current, onLanguage, pairs, t } from "./words.js";

// How deep sentences are parts of sentences.
const DEEPEST = 6;
// A longer text is no sentence that this page knows.
const LONGEST = 2000;
let known = null;

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");

// A sentence with {names} as a pattern; what is called {_name} is a sentence too, and {n} or {n_name} is a number.
function pattern([english, own]) {
  const names = [];
  const parts = english.split(/\{(\w+)\}/).map((part, at) => {
    if (at % 2 === 0) return escaped(part);
    names.push(part);
    return /^n(_|$)/.test(part) ? "(\\d+)" : "(.+?)";
  });
  return { is: new RegExp(`^${parts.join("")}$`, "s"), names, own };
}

function patterns() {
  known ??= pairs("said.").map(pattern);
  return known;
}

onLanguage(() => { known = null; });

function translated(text, depth) {
  if (depth > DEEPEST) return null;
  for (const { is, names, own } of patterns()) {
    const found = is.exec(text);
    if (!found) continue;
    const values = {};
    const isWhole = names.every((name, at) => {
      const value = found[at + 1];
      values[name] = name.startsWith("_") ? translated(value, depth + 1) : value;
      return values[name] !== null;
    });
    if (isWhole) return own.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  }
  return null;
}

// A sentence of the command, with the language that it is in; nothing of nothing.
export function said(text) {
  if (!text) return "";
  const own = current() === "en" || text.length > LONGEST ? null : translated(text, 0);
  return own === null ? { text, lang: "en" } : { text: own, lang: current() };
}

// What went wrong: the command's sentence, or that something did.
export const why = (error) => said(error && error.message) || t("failed");

// A sentence between other words.
export function sentence(text, before, after) {
  const { text: own, lang } = said(text);
  return { text: `${before}${own}${after}`, lang };
}
