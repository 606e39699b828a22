// Step 1: the file, its columns, and what identifies a row.
import { byId, command, fault, heads, list, make, rows, say, show } from "./dom.js";
import * as keys from "./keys.js";
import { change, model, onChange, reading } from "./model.js";
import { said, why } from "./said.js";
import { Refused, follow, results, start, upload } from "./server.js";
import { bytes, number, onLanguage, t } from "./words.js";

async function work(form, status, details) {
  say(byId(status), t("working"));
  try {
    const task = await follow(await start(form), (task) => {
      command(details, task.command);
      const share = task.progress && task.status === "running" ? task.progress.share : null;
      say(byId(status), share === null ? t("working") : t("working.share", { share: Math.round(100 * share) }));
    });
    return results(task)[0];
  } finally {
    say(byId(status), "");
  }
}

export async function look(path) {
  fault("file-fault", "");
  show(byId("columns"), false);
  show(byId("key-told"), false);
  // A file that cannot be read is not the one before it.
  change({ file: path, table: null, keys: [], orKeys: [], seen: {} });
  try {
    const found = await work({ kind: "check", file: path, ...reading() }, "file-status", byId("file").querySelector(".command"));
    const suggested = keyOf(found);
    const seen = { encoding: found.guessed_encoding || "", skip_lines: found.skip_lines ? String(found.skip_lines) : "" };
    change({ file: path, table: found, keys: suggested, columns: [], column: "", seen });
    draw();
    say(byId("file-status"), t("file.read", { rows: found.rows, columns: found.columns.length }));
  } catch (error) {
    fault("file-fault", why(error));
    if (error.lost) throw error;
  }
}

// The suggested key, as columns with types.
function keyOf(table) {
  const found = table.columns.find((column) => `${column.column}:${column.type}` === table.suggested_key);
  const first = found || table.columns.find((column) => column.type && !column.no_key);
  return first ? [{ column: first.column, type: keys.chosen(first.type) }] : [];
}

function draw() {
  const table = model.table;
  show(byId("columns"), Boolean(table));
  if (!table) return;
  byId("path").value = model.file;
  say(byId("columns-about"), t("file.about", { rows: table.rows, columns: table.columns.length }));
  list(byId("columns-hints"), table.hints.map(said));
  const cells = table.columns.map((column) => [
    column.column, column.no_key ? t("file.no_key", { what: column.no_key }) : keys.called(column.type),
    make("code", { textContent: column.example }),
    column.empty ? `${number(column.empty)} (${number(Math.max(0.1, Math.round((1000 * column.empty) / Math.max(1, table.rows)) / 10))} %)` : "–",
  ]);
  const element = byId("columns-table");
  rows(element, heads(element), cells);
  keys.draw();
}
async function checkKey() {
  const isOpen = [model.keys, ...model.orKeys].flat().some(keys.lacksRegion);
  fault("key-fault", isOpen ? t("key.region_missing") : "");
  if (isOpen) return;
  try {
    const found = await work({ kind: "check", file: model.file, key: model.keys, or_key: model.orKeys, ...reading() }, "key-status", byId("file").querySelector(".command"));
    show(byId("key-told"));
    say(byId("key-about"), t("key.about", {
      keys: found.keys, rows: found.rows, duplicates: found.duplicates, without: found.rows_without_key,
    }));
    const each = model.orKeys.length > 0 ? found.identifiers || [] : [];
    list(byId("key-identifiers"), each.map((one) => t("key.identifier", { name: one.identifier, rows: one.rows, distinct: one.distinct })));
    list(byId("key-refused"), (found.refused || []).map((one) => said(refusedLine(one))));
    list(byId("key-hints"), (found.hints || []).map(said));
  } catch (error) {
    show(byId("key-told"), false);
    fault("key-fault", why(error));
  }
}

// A kind of cells that are not keys, in whatever form the command tells it.
function refusedLine(one) {
  if (typeof one === "string") return one;
  const words = Object.entries(one).filter(([, value]) => value !== null && typeof value !== "object");
  return words.map(([name, value]) => `${name.replaceAll("_", " ")}: ${value}`).join(", ");
}

async function drop(file) {
  if (!file) return;
  fault("file-fault", "");
  const bar = byId("copied");
  show(bar);
  say(byId("file-status"), t("file.copying", { name: file.name, size: bytes(file.size) }));
  try {
    const stored = await upload(file, (share) => { bar.value = share; }).done;
    byId("path").value = stored.file;
    await look(stored.file);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    say(byId("file-status"), "");
    fault("file-fault", error.message ? why(error) : t("lost"));
  } finally {
    show(bar, false);
  }
}

// What is said of how the file is read holds for the next look at it.
const READING = [["no-header", "noHeader", "checked"], ["decimal-comma", "decimalComma", "checked"], ["encoding", "encoding", "value"]];

// The file is gone: nothing of it can be used.
export function forget(path) {
  if (path !== model.file) return;
  change({ file: "", table: null, keys: [], orKeys: [], columns: [], column: "" });
  byId("path").value = "";
  draw();
  show(byId("key-told"), false);
}

export function begin() {
  for (const [id, name, property] of READING) {
    byId(id)[property] = model[name];
    byId(id).addEventListener("change", () => {
      change({ [name]: property === "value" ? byId(id).value.trim() : byId(id).checked });
      if (model.file) look(model.file);
    });
  }
  byId("file-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const path = byId("path").value.trim();
    if (path) look(path);
    else fault("file-fault", t("file.none"));
  });
  const box = byId("drop");
  byId("pick").addEventListener("change", (event) => {
    const [file] = event.target.files;
    // The same file may be chosen again, once it was mended.
    event.target.value = "";
    drop(file);
  });
  for (const kind of ["dragover", "dragleave", "drop"]) {
    box.addEventListener(kind, (event) => {
      event.preventDefault();
      box.classList.toggle("over", kind === "dragover");
      if (kind === "drop") drop(event.dataTransfer.files[0]);
    });
  }
  keys.begin(() => show(byId("key-told"), false));
  onChange((values) => {
    if ("ask" in values) keys.draw();
  });
  byId("check-key").addEventListener("click", checkKey);
  onLanguage(draw);
}
