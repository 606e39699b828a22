// A service by a policy file: its check, start and end; and requests to a partner's service.
import { byId, choices, fault, list, make, say, show } from "./dom.js";
import { form, model } from "./model.js";
import { cancel, follow, results, start } from "./server.js";
import { onLanguage, t } from "./words.js";

let tasks = [];
let offer = null;
let job = "";

// The policy: a file, or the text that was written here.
function policy() {
  const path = byId("policy").value.trim();
  return path ? { policy: path } : { text: byId("policy-text").value };
}

// A string as TOML has it, which is as JSON has it.
const quoted = (text) => JSON.stringify(text);

// A policy with which the chosen partner may ask which rows it has in common with the file of step 1.
function written() {
  const { folder, identity, file, key, partner, peer_file, address } = { ...form("run"), folder: model.folder };
  const peer = partner || "partner";
  const columns = key.map((one) => quoted(one.type && one.type !== "text" ? `${one.column}:${one.type}` : one.column));
  const rows = model.table ? model.table.rows : 0;
  return [
    "version = 1", `listen = ${quoted(address)}`, `identity = ${quoted(identity || `${folder}/keys/tacit.key`)}`,
    `state = ${quoted(`${folder}/service`)}`, "",
    `[peers.${peer}]`, `key = ${quoted(peer_file || `${folder}/partners/${peer}.pub`)}`, "",
    "[sources.table]", `input = ${quoted(file)}`, `key = [${columns.join(", ")}]`, `rows_in_total = ${Math.max(1, 2 * rows)}`, "",
    "[jobs.shared]", 'source = "table"', `allow = [${quoted(peer)}]`, 'reveal = ["rows"]', 'result = ["peer"]',
    `max_peer_keys = ${Math.max(1, 10 * rows)}`, "runs_a_day = 1", 'purpose = "rows in common"', "",
  ].join("\n");
}

async function checked() {
  const given = policy();
  const has = Boolean(given.policy || given.text.trim());
  fault("service-fault", has ? "" : t("service.none"));
  list(byId("service-told"), []);
  if (!has) return false;
  say(byId("service-status"), t("working"));
  const task = await follow(await start({ kind: "serve-check", ...given }));
  say(byId("service-status"), task.status === "done" ? t("service.sound") : "");
  const found = task.results[0] || { allows: [], tables: [], warnings: [], faults: [] };
  list(byId("service-told"), [...task.notes, ...found.faults, ...found.warnings, ...found.allows, ...found.tables]);
  if (task.status !== "done") fault("service-fault", task.error ? task.error.message : t("failed"));
  return task.status === "done";
}

async function guarded(work) {
  try {
    await work();
  } catch (error) {
    say(byId("service-status"), "");
    fault("service-fault", error.message || t("failed"));
  }
}

function draw() {
  const running = tasks.filter((task) => task.kind === "serve" && task.status === "running");
  const text = JSON.stringify(running.map((task) => task.id));
  const box = byId("services");
  if (box.dataset.text === text) return;
  box.dataset.text = text;
  box.replaceChildren(...running.map((task) => {
    const stop = make("button", { type: "button", textContent: t("service.stop") });
    stop.addEventListener("click", () => cancel(task.id));
    const watch = make("a", { className: "button", href: task.about.dashboard, target: "_blank", rel: "noopener noreferrer", textContent: t("service.watch") });
    return make("div", { className: "card" },
      make("p", {}, make("strong", { textContent: t("service.runs") }), " ", make("span", { className: "mono", textContent: task.about.policy })),
      make("p", { className: "actions" }, watch, stop));
  }));
}

export function told(state) {
  tasks = state.tasks;
  draw();
}

const common = () => {
  const { partner, peer_file, identity, file, key } = form("run");
  return { partner, peer_file, identity, file, key, way: model.way === "via" ? "via" : "connect", address: model.address };
};

async function jobs() {
  fault("jobs-fault", "");
  show(byId("offer"), false);
  say(byId("jobs-status"), t("working"));
  try {
    const [found] = results(await follow(await start({ kind: "jobs", ...common() })));
    say(byId("jobs-status"), t("request.found", { n: found.jobs.length }));
    choices("jobs-told", "job", found.jobs.map((one) => ({ value: one.job, text: one.job, small: about(one) })), "", ask);
  } catch (error) {
    say(byId("jobs-status"), "");
    fault("jobs-fault", error.message || t("failed"));
  }
}

const about = (one) => Object.entries(one).filter(([name, value]) => name !== "job" && ["string", "number"].includes(typeof value) && value !== "")
  .map(([name, value]) => `${name.replaceAll("_", " ")}: ${value}`).join(", ");

async function ask(name) {
  fault("jobs-fault", "");
  show(byId("offer"), false);
  say(byId("jobs-status"), t("terms.working"));
  try {
    [offer] = results(await follow(await start({ kind: "offer", job: name, ...common() })));
    job = name;
    list(byId("offer-told"), offer.words);
    show(byId("offer"));
    byId("accept-offer").disabled = Boolean(offer.refused);
    fault("jobs-fault", offer.refused || "");
  } catch (error) {
    fault("jobs-fault", error.message || t("failed"));
  } finally {
    say(byId("jobs-status"), "");
  }
}

export function begin(open) {
  byId("serve-check").addEventListener("click", () => guarded(checked));
  byId("serve").addEventListener("click", () => guarded(async () => {
    if (await checked()) {
      await start({ kind: "serve", ...policy() });
      say(byId("service-status"), t("service.started"));
    }
  }));
  byId("write-policy").addEventListener("click", () => {
    byId("policy").value = "";
    byId("policy-text").value = written();
    byId("policy-text").focus();
  });
  byId("jobs").addEventListener("click", jobs);
  byId("accept-offer").addEventListener("click", async () => {
    byId("accept-offer").disabled = true;
    try {
      const { reveal, result } = offer.offer;
      const gets = { client: "me", service: "peer", both: "both" }[result] || "me";
      open(await start({ kind: "request", job, terms: offer.terms_hash, result: gets, reveal: typeof reveal === "string" ? reveal : "", ...common() }));
    } catch (error) {
      fault("jobs-fault", error.message || t("failed"));
    }
  });
  onLanguage(() => {
    byId("services").dataset.text = "";
    draw();
  });
}

