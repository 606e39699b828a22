// Step 1: the files that were dropped into the page's folder, to use again or to delete.
import { byId, fault, make, say, show } from "./dom.js";
import { why } from "./said.js";
import { post } from "./server.js";
import { bytes, onLanguage, t } from "./words.js";

let files = [];
// The file whose deletion is asked about.
let asked = "";
let used = () => {};
let deleted = () => {};

function button(text, name, pressed) {
  const element = make("button", { type: "button", textContent: text });
  element.setAttribute("aria-label", `${text}: ${name}`);
  element.addEventListener("click", pressed);
  return element;
}

async function remove(file) {
  fault("stored-fault", "");
  asked = "";
  try {
    await post("/api/delete", { name: file.name });
    files = files.filter((other) => other.name !== file.name);
    say(byId("stored-status"), t("stored.deleted", { name: file.name }));
    deleted(file.file);
  } catch (error) {
    fault("stored-fault", why(error));
  }
  draw();
  byId("stored-title").focus();
}

function row(file) {
  const text = make("span", { textContent: `${file.name} (${bytes(file.bytes)})` });
  // The answer that keeps the file gets the focus; then the button that had asked.
  const ask = (name) => {
    asked = name;
    draw();
    byId("stored-files").children[files.indexOf(file)]?.querySelector("button:last-child").focus();
  };
  if (asked === file.name) {
    text.textContent = t("stored.sure", { name: file.name });
    return make("li", { className: "asked" }, text,
      button(t("stored.delete"), file.name, () => remove(file)), button(t("stored.keep"), file.name, () => ask("")));
  }
  return make("li", {}, text, button(t("stored.use"), file.name, () => used(file.file)),
    button(t("stored.delete"), file.name, () => ask(file.name)));
}

function draw() {
  show(byId("stored-none"), files.length === 0);
  byId("stored-files").replaceChildren(...files.map(row));
}

export function told(state) {
  const fresh = state.files || [];
  if (JSON.stringify(fresh) === JSON.stringify(files)) return;
  files = fresh;
  draw();
}

export function begin(use, gone) {
  used = use;
  deleted = gone;
  onLanguage(() => {
    say(byId("stored-status"), "");
    draw();
  });
}
