// The page's texts, in the browser's language if there is a file for it, or the chosen one.
const LANGUAGES = ["en", "de"];
const KEY = "tacit-language";
const ENGLISH = "en";
let words = {};
let english = {};
let language = "en";
const listeners = [];

export const current = () => language;

export function chosen() {
  const kept = localStorage.getItem(KEY);
  const wanted = kept ? [kept] : navigator.languages || [navigator.language];
  return wanted.map((one) => one.slice(0, 2)).find((one) => LANGUAGES.includes(one)) || "en";
}

export async function speak(to, keep = false) {
  words = await loaded(to);
  // The command's sentences are found by their English words.
  english = to === ENGLISH ? words : await loaded(ENGLISH);
  language = to;
  if (keep) localStorage.setItem(KEY, to);
  document.documentElement.lang = to;
  translate(document);
  listeners.forEach((listener) => listener());
}

async function loaded(name) {
  return (await fetch(`/words/${name}.json`, { cache: "no-store" })).json();
}

// Texts whose keys begin so, in English and in the page's language.
export const pairs = (start) =>
  Object.keys(english).filter((key) => key.startsWith(start)).map((key) => [english[key], words[key] ?? english[key]]);

export const onLanguage = (listener) => listeners.push(listener);

// A text, with {names} replaced by values. A text for one thing ends in `.one`.
export function t(key, values = {}) {
  const one = Object.values(values)[0] === 1 ? words[`${key}.one`] : undefined;
  const text = one ?? words[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (_, name) => {
    const value = values[name];
    return typeof value === "number" ? number(value) : String(value ?? "");
  });
}

export function translate(root) {
  for (const element of root.querySelectorAll("[data-t]")) element.textContent = t(element.dataset.t);
  for (const element of root.querySelectorAll("[data-t-label]")) element.setAttribute("aria-label", t(element.dataset.tLabel));
}

export const number = (n) => new Intl.NumberFormat(language, { maximumFractionDigits: 6 }).format(n);

// An exact number that came without its decimal point; a mean may have more places.
export function decimal(value, digits) {
  if (typeof value !== "number" && !/^-?\d+$/.test(value)) return String(value);
  if (digits === 0) return typeof value === "number" ? number(value) : value;
  if (!Number.isInteger(Number(value))) return number(value / 10 ** digits);
  const [, sign, text] = /^(-?)(\d+)$/.exec(String(BigInt(value)));
  const whole = text.padStart(digits + 1, "0");
  const places = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return new Intl.NumberFormat(language, places).format(`${sign}${whole.slice(0, -digits)}.${whole.slice(-digits)}`);
}

export function bytes(n) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (n >= 1000 && at < units.length - 1) {
    n /= 1000;
    at += 1;
  }
  return `${new Intl.NumberFormat(language, { maximumFractionDigits: at && n < 100 ? 1 : 0 }).format(n)} ${units[at]}`;
}

export function duration(seconds) {
  if (seconds < 90) return t("seconds", { n: Math.max(1, Math.round(seconds)) });
  if (seconds < 5400) return t("minutes", { n: Math.round(seconds / 60) });
  return t("hours", { n: Math.round(seconds / 3600) });
}

export const time = (at) => new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" }).format(new Date(at));
