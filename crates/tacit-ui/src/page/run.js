// Step 4: what each side learns, the run, and its result.
import { byId, command, fault, list, make, quote, rows, say, show } from "./dom.js";
import { lacksRegion } from "./keys.js";
import { change, form, isNumber, lacking, model, onChange, takesIdentifiers } from "./model.js";
import { known } from "./partner.js";
import { said, sentence, why } from "./said.js";
import { cancel, follow, get, link, post, results, start } from "./server.js";
import * as summary from "./summary.js";
import { waits } from "./waits.js";
import { bytes, duration, number, onLanguage, t, time } from "./words.js";

const RESULT = "result.csv";
const REPORT = "report.html";
// Traffic that is worth a word where it is much for the list.
const MUCH_BYTES = 10e6;
const MUCH_PER_KEY_BYTES = 2000;
// The form whose terms are shown, and those terms.
let agreed = "";
let plan = null;
let shown = null;
// An earlier run that is looked at, without the question of now; and one that is about to be.
let viewed = null;
let coming = null;

function missing() {
  const lines = [];
  if (!model.file || !model.table) lines.push(t("missing.file"));
  if (model.keys.length === 0) lines.push(t("missing.key"));
  const open = [model.keys, ...model.orKeys].flat().find(lacksRegion);
  if (open) lines.push(t("missing.type", { column: open.column }));
  if (model.orKeys.length > 0 && !takesIdentifiers()) lines.push(t("missing.one_identifier"));
  if (!model.partner && !model.peerFile) lines.push(t("missing.partner"));
  if (!model.address) lines.push(t("missing.address"));
  if (model.ask === "give" && model.columns.length === 0) lines.push(t("missing.columns"));
  if (model.ask === "take" && !model.theirColumns.trim()) lines.push(t("missing.columns"));
  if (isNumber() && !(model.ask === "own" ? model.column : model.theirColumn.trim())) lines.push(t("missing.column"));
  const lacks = lacking(model.ask === "give" ? model.columns : model.ask === "own" && model.column ? [model.column] : []);
  if (lacks.length > 0) lines.push(t("missing.lacks", { names: lacks.join(", ") }));
  if (model.ask === "question" && !model.sql.trim()) lines.push(t("missing.sql"));
  return lines;
}

// The step is opened: by its link, or to look at an earlier run.
export function enter(isOpened) {
  if (isOpened) {
    viewed = coming;
    coming = null;
  }
  const isEarlier = viewed !== null;
  show(byId("plan"), !isEarlier);
  show(byId("earlier"), isEarlier);
  if (!isEarlier) terms();
}

// The run that is looked at when the step is opened next.
export function view(id) {
  coming = id;
}

// Whether a run was of the form as it is now.
function isOfNow(task) {
  const now = form("run");
  const names = Object.keys(now).filter((name) => name !== "kind");
  return task.kind === "run" && names.every((name) => JSON.stringify(task.about[name] ?? null) === JSON.stringify(now[name] ?? null));
}

function drawSummary() {
  const fingerprint = (model.peerFile ? null : known(model.partner))?.fingerprint;
  summary.draw(byId("summary"), form("run"), { rows: model.table ? model.table.rows : undefined, fingerprint });
  return fingerprint;
}

// Asks the command what a run would tell each side, where that is not on the page already.
export async function terms(again = false) {
  const lines = missing();
  list(byId("missing"), lines);
  show(byId("missing"), lines.length > 0);
  const fingerprint = drawSummary();
  // The result of another form does not stand below these terms.
  if (shown && shown.status !== "running" && !isOfNow(shown)) {
    show(byId("running"), false);
    show(byId("outcome"), false);
  }
  const wanted = JSON.stringify(form("terms"));
  if (!again && wanted === agreed) return;
  agreed = "";
  byId("start").disabled = true;
  show(byId("terms"), false);
  say(byId("terms-more"), "");
  for (const id of ["terms-fault", "terms-traffic"]) fault(id, "");
  show(byId("terms-command"), false);
  if (lines.length > 0) return;
  say(byId("terms-status"), t("terms.working"));
  try {
    const found = results(await follow(await start(form("terms"))));
    if (wanted !== JSON.stringify(form("terms"))) return;
    const picked = found.find((one) => one.picked) || found[0];
    plan = {
      other: picked.other_side_learns, own: picked.this_side_learns, keys: picked.count, bytes: picked.bytes,
      protocol: picked.protocol, rows: model.table.rows, ...(fingerprint ? { fingerprint } : {}),
    };
    drawTerms("terms", plan, form("run"));
    command(byId("terms-command"), (await post("/api/command", form("run"))).command);
    show(byId("terms"));
    if (plan.keys === 0) {
      fault("terms-fault", t("terms.no_keys"));
      return;
    }
    if (plan.bytes >= MUCH_BYTES && plan.bytes >= MUCH_PER_KEY_BYTES * plan.keys) {
      fault("terms-traffic", t("terms.traffic", { keys: plan.keys, bytes: bytes(plan.bytes) }));
    }
    agreed = wanted;
    byId("start").disabled = shown !== null && shown.status === "running";
  } catch (error) {
    fault("terms-fault", why(error));
  } finally {
    say(byId("terms-status"), "");
  }
}

// What each side learns, and which columns are sent; `id` is what the elements' names begin with.
function drawTerms(id, plan, form) {
  const { given, got } = summary.columns(form);
  quote(byId(`${id}-other`), sentence(plan.other, "… ", "."));
  quote(byId(`${id}-own`), sentence(plan.own, "… ", "."));
  for (const [side, text] of [["other", given], ["own", got]]) {
    say(byId(`${id}-${side}-columns`), text || "");
    show(byId(`${id}-${side}-columns`), Boolean(text));
  }
  say(byId(`${id}-more`), t("terms.cost", { keys: plan.keys, bytes: bytes(plan.bytes), protocol: plan.protocol }));
}

// The terms of a run, as its own form and the command had them when it was started.
function drawAgreed(task) {
  const { about } = task;
  const terms = about.agreed || {};
  summary.draw(byId("run-summary"), about, { rows: terms.rows, fingerprint: terms.fingerprint });
  const has = typeof terms.other === "string" && typeof terms.own === "string" && typeof terms.bytes === "number";
  show(byId("run-terms-each"), has);
  if (has) drawTerms("run-terms", terms, about);
  else say(byId("run-terms-more"), "");
  list(byId("run-terms-words"), Array.isArray(terms.words) ? terms.words.map((line) => said(String(line))) : []);
}

async function begun() {
  byId("start").disabled = true;
  fault("run-fault", "");
  try {
    const id = await start({ ...form("run"), agreed: plan });
    const ended = watch(id);
    // The button that had the focus cannot be pressed any more.
    say(byId("running-title"), t("status.running"));
    byId("running-title").focus({ preventScroll: true });
    await ended;
  } catch (error) {
    fault("terms-fault", why(error));
    byId("start").disabled = false;
  }
}

// Shows a run while it runs, and then its result.
export async function watch(id) {
  change({ run: id });
  show(byId("running"));
  show(byId("outcome"), false);
  byId("run-agreed").open = viewed !== null || coming !== null;
  byId("running").scrollIntoView({ block: "nearest" });
  const task = await follow(id, (task) => model.run === id && draw(task));
  if (model.run === id) await outcome(task);
}

function draw(task) {
  if (!shown || shown.id !== task.id) drawAgreed(task);
  shown = task;
  const { progress } = task;
  const isRunning = task.status === "running";
  const waiting = isRunning && task.waiting && !(progress && progress.bytes > 0) ? waits(task.kind, task.waiting) : null;
  say(byId("running-title"), t(`status.${task.status}`));
  say(byId("earlier-when"), t("run.earlier", { when: time(task.started) }));
  command(byId("run-command"), task.command);
  show(byId("cancel"), isRunning);
  for (const id of ["bar", "phase", "left", "wait-hint"]) show(byId(id), isRunning);
  const bar = byId("bar");
  say(byId("wait-hint"), waiting ? waiting.hint : "");
  if (!isRunning) {
    quote(byId("phase"), "");
    say(byId("left"), "");
  } else if (waiting) {
    bar.removeAttribute("value");
    quote(byId("phase"), waiting.line);
    say(byId("left"), `${waiting.time} ${t("run.waiting.more")}`);
  } else if (progress) {
    bar.value = progress.share;
    quote(byId("phase"), phase(progress.phase));
    const share = t("run.share", { share: Math.floor(100 * progress.share) });
    const left = progress.seconds_left === null ? "" : ` · ${t("run.left", { time: duration(progress.seconds_left) })}`;
    say(byId("left"), share + left + (progress.bytes ? ` · ${bytes(progress.bytes)}` : ""));
  } else {
    bar.removeAttribute("value");
    quote(byId("phase"), t("working"));
    say(byId("left"), "");
  }
  list(byId("run-notes"), task.notes.filter((note) => !/^waiting for |has a page about this run$/.test(note)).slice(-8).map(said));
  fault("run-fault", task.status === "failed" ? why(task.error) : "");
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
  if (found.name === "query" || found.reveal === "question") return t("headline.query", { rows: (found.rows || []).length });
  if (found.reveal === "lookup") return t("headline.lookup", { n: found.matches });
  if (found.reveal === "rows" || found.reveal === "payload") {
    const isAny = (found.identifiers || []).length > 1;
    return isAny ? t("headline.identifiers", { n: found.matches }) : t("headline.matches", { n: found.matches });
  }
  if (found.reveal === "count") return t("headline.count", { n: found.count });
  const statistic = t(`statistic.${found.reveal}`);
  return t("headline.number", { statistic, column: summary.plain(found.column || ""), value: summary.figure(found) ?? "–" });
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
  const each = (found.identifiers || []).filter((one) => typeof one.rows_matched_by === "number");
  const values = Array.isArray(found.found) ? task.about.values || [] : [];
  list(byId("matched-by"), [
    ...each.map((one) => t("outcome.matched_by", { rows: one.rows_matched_by, name: one.identifier })),
    ...values.map((value, at) => t(found.found[at] ? "outcome.published" : "outcome.not_published", { value })),
  ]);
  fault("suspicious", said(found.suspicious || found.warning));
  quote(byId("learned"), sentence(found.other_side_learned, "", "."));
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
    quote(byId("rows-more"), why(error));
  }
}

async function open(name, inNew) {
  try {
    const address = await link(model.run, name);
    const anchor = make("a", { href: address, target: inNew ? "_blank" : "", rel: "noopener noreferrer" });
    anchor.click();
  } catch (error) {
    fault("run-fault", why(error));
  }
}

export function begin() {
  byId("start").addEventListener("click", begun);
  byId("again").addEventListener("click", () => terms(true));
  byId("back").addEventListener("click", () => {
    enter(true);
    byId("run-title").focus();
  });
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
    if (shown) {
      drawAgreed(shown);
      outcome(shown);
    }
  });
}
