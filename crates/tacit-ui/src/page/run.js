// Step 4: what each side learns, the run, and its result.
import { byId, command, fault, list, make, rows, say, show } from "./dom.js";
import { change, form, isNumber, model, onChange } from "./model.js";
import { cancel, follow, get, link, post, results, start } from "./server.js";
import { bytes, duration, number, onLanguage, t } from "./words.js";

const RESULT = "result.csv";
const REPORT = "report.html";
// The form whose terms are shown.
let agreed = "";
// The form whose terms were asked for last.
let asked = "";
let shown = null;

function missing() {
  const lines = [];
  if (!model.file || !model.table) lines.push(t("missing.file"));
  if (model.keys.length === 0) lines.push(t("missing.key"));
  if (!model.partner && !model.peerFile) lines.push(t("missing.partner"));
  if (!model.address) lines.push(t("missing.address"));
  if (model.ask === "give" && model.columns.length === 0) lines.push(t("missing.columns"));
  if (model.ask === "take" && !model.theirColumns.trim()) lines.push(t("missing.columns"));
  if (isNumber() && !(model.ask === "own" ? model.column : model.theirColumn.trim())) lines.push(t("missing.column"));
  if (model.ask === "question" && !model.sql.trim()) lines.push(t("missing.sql"));
  return lines;
}

// Asks the command what a run would tell each side, where that is not on the page already.
export async function terms(again = false) {
  const lines = missing();
  list(byId("missing"), lines);
  show(byId("missing"), lines.length > 0);
  const wanted = JSON.stringify(form("terms"));
  if (!again && wanted === agreed) return;
  agreed = "";
  // The result of another form does not stand below these terms.
  if (asked && asked !== wanted && !(shown && shown.status === "running")) {
    show(byId("running"), false);
    show(byId("outcome"), false);
  }
  asked = wanted;
  byId("start").disabled = true;
  show(byId("terms"), false);
  say(byId("terms-more"), "");
  fault("terms-fault", "");
  show(byId("terms-command"), false);
  if (lines.length > 0) return;
  say(byId("terms-status"), t("terms.working"));
  try {
    const found = results(await follow(await start(form("terms"))));
    if (wanted !== JSON.stringify(form("terms"))) return;
    const plan = found.find((one) => one.picked) || found[0];
    const sentence = (text) => `… ${text}.`;
    say(byId("terms-other"), sentence(plan.other_side_learns));
    say(byId("terms-own"), sentence(plan.this_side_learns));
    say(byId("terms-more"), t("terms.cost", { keys: plan.count, bytes: bytes(plan.bytes), protocol: plan.protocol }));
    command(byId("terms-command"), (await post("/api/command", form("run"))).command);
    show(byId("terms"));
    agreed = wanted;
    byId("start").disabled = shown !== null && shown.status === "running";
  } catch (error) {
    fault("terms-fault", error.message || t("failed"));
  } finally {
    say(byId("terms-status"), "");
  }
}

async function begun() {
  byId("start").disabled = true;
  fault("run-fault", "");
  try {
    await watch(await start(form("run")));
  } catch (error) {
    fault("terms-fault", error.message || t("failed"));
    byId("start").disabled = false;
  }
}

// Shows a run while it runs, and then its result.
export async function watch(id) {
  change({ run: id });
  show(byId("running"));
  show(byId("outcome"), false);
  byId("running").scrollIntoView({ block: "nearest" });
  const task = await follow(id, (task) => model.run === id && draw(task));
  if (model.run === id) await outcome(task);
}

function waitsFor(task) {
  return task.notes.some((note) => note.startsWith("waiting for ")) && !(task.progress && task.progress.bytes > 0);
}

function draw(task) {
  shown = task;
  const { progress } = task;
  const isRunning = task.status === "running";
  say(byId("running-title"), t(`status.${task.status}`));
  command(byId("run-command"), task.command);
  show(byId("cancel"), isRunning);
  for (const id of ["bar", "phase", "left"]) show(byId(id), isRunning);
  const bar = byId("bar");
  if (!isRunning) {
    say(byId("phase"), "");
    say(byId("left"), "");
  } else if (waitsFor(task)) {
    bar.removeAttribute("value");
    say(byId("phase"), t("run.waiting", { address: task.about.address || "" }));
    say(byId("left"), t("run.waiting.more"));
  } else if (progress) {
    bar.value = progress.share;
    say(byId("phase"), phase(progress.phase));
    const share = t("run.share", { share: Math.floor(100 * progress.share) });
    const left = progress.seconds_left === null ? "" : ` · ${t("run.left", { time: duration(progress.seconds_left) })}`;
    say(byId("left"), share + left + (progress.bytes ? ` · ${bytes(progress.bytes)}` : ""));
  } else {
    bar.removeAttribute("value");
    say(byId("phase"), t("working"));
    say(byId("left"), "");
  }
  list(byId("run-notes"), task.notes.filter((note) => !/^waiting for |has a page about this run$/.test(note)).slice(-8));
  fault("run-fault", task.status === "failed" ? (task.error && task.error.message) || t("failed") : "");
  byId("start").disabled = isRunning || agreed === "";
}

function phase(name) {
  const key = `phase.${name.replaceAll(" ", "_")}`;
  const text = t(key);
  return text === key ? name : text;
}

function headline(found) {
  if (found.result === "peer") return t("headline.peer");
  if (found.withheld) return t("headline.withheld");
  if (found.name === "query") return t("headline.query", { rows: (found.rows || []).length });
  if (found.reveal === "rows" || found.reveal === "payload") return t("headline.matches", { n: found.matches });
  const value = found[found.reveal] ?? found.count;
  if (found.reveal === "count") return t("headline.count", { n: value });
  return t("headline.number", { statistic: t(`statistic.${found.reveal}`), column: found.column || "", value: typeof value === "number" ? number(value) : String(value ?? "–") });
}

async function outcome(task) {
  draw(task);
  const found = task.results.find((one) => one.name === "psi" || one.name === "query" || one.name === "request");
  const isDone = task.status === "done" && Boolean(found);
  show(byId("outcome"), isDone);
  if (!isDone) return;
  say(byId("headline"), headline(found));
  const figures = [["figures.own_rows", found.own_rows], ["figures.own_keys", found.own_keys], ["figures.peer_keys", found.peer_keys],
    ["figures.union", found.union_keys], ["figures.seconds", found.wall_ms / 1000], ["figures.bytes", found.bytes_sent + found.bytes_received]];
  byId("figures").replaceChildren(...figures.filter(([, value]) => value !== undefined && value !== null).map(([name, value]) =>
    make("div", {}, make("dt", { textContent: t(name) }), make("dd", { textContent:
      name.endsWith("bytes") ? bytes(value) : name.endsWith("seconds") ? t("seconds", { n: Math.max(0.1, Math.round(10 * value) / 10) }) : number(value) }))));
  fault("suspicious", found.suspicious || found.warning || "");
  say(byId("learned"), `${found.other_side_learned}.`);
  const has = (name) => task.outputs.some((one) => one.name === name);
  show(byId("save"), has(RESULT));
  show(byId("report"), has(REPORT));
  say(byId("outcome-file"), has(RESULT) ? t("outcome.file", { file: `${task.folder}/${RESULT}` }) : "");
  show(byId("rows"), has(RESULT));
  if (has(RESULT)) await preview(task);
}

async function preview(task) {
  try {
    const found = await get(`/api/preview?id=${task.id}&name=${RESULT}`);
    const table = byId("rows-table");
    table.tHead.replaceChildren(make("tr", {}, ...found.columns.map((name) => make("th", { scope: "col", textContent: name }))));
    rows(table, found.columns, found.rows);
    say(byId("rows-more"), found.more ? t("outcome.more", { n: found.rows.length }) : "");
  } catch (error) {
    say(byId("rows-more"), error.message);
  }
}

async function open(name, inNew) {
  try {
    const address = await link(model.run, name);
    const anchor = make("a", { href: address, target: inNew ? "_blank" : "", rel: "noopener noreferrer" });
    anchor.click();
  } catch (error) {
    fault("run-fault", error.message || t("failed"));
  }
}

export function begin() {
  byId("start").addEventListener("click", begun);
  byId("again").addEventListener("click", () => terms(true));
  byId("cancel").addEventListener("click", () => model.run !== null && cancel(model.run));
  byId("save").addEventListener("click", () => open(RESULT, false));
  byId("report").addEventListener("click", () => open(REPORT, true));
  onChange((values) => {
    // Terms that were shown are those of another run now.
    if (!("run" in values) && agreed !== JSON.stringify(form("terms"))) {
      agreed = "";
      byId("start").disabled = true;
      show(byId("terms"), false);
    }
  });
  onLanguage(() => {
    agreed = "";
    if (shown) outcome(shown);
    if (location.hash === "#run") terms();
  });
}
