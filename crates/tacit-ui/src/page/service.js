// A service by a policy file: its check, start and end.
import { byId, fault, list, make, say } from "./dom.js";
import { form, model, reading } from "./model.js";
import { said, why } from "./said.js";
import { cancel, follow, start } from "./server.js";
import { onLanguage, t } from "./words.js";

let tasks = [];

// The policy: a file, or the text that was written here.
function policy() {
  const path = byId("policy").value.trim();
  return path ? { policy: path } : { text: byId("policy-text").value };
}

// A string as TOML has it, which is as JSON has it.
const quoted = (text) => JSON.stringify(text);

// A column's name as lists of columns have it: in quotes where it has what lists are made of.
const listed = (name) => (/[,:"=]/.test(name) || name.trim() !== name ? `"${name.replaceAll('"', '""')}"` : name);

// A policy with which the chosen partner may ask which rows it has in common with the file of step 1.
function written() {
  const { folder, identity, file, key, or_key, partner, peer_file, address } = { ...form("run"), folder: model.folder };
  // A name in a policy has no blanks.
  const peer = (partner || "partner").replaceAll(" ", "-");
  const typed = (one) => (one.type && one.type !== "text" ? `${listed(one.column)}:${one.type}` : listed(one.column));
  const columns = key.map((one) => quoted(typed(one)));
  const others = or_key.map((all) => quoted(all.map(typed).join(",")));
  const rows = model.table ? model.table.rows : 0;
  const { no_header, decimal_comma, encoding, skip_lines } = reading();
  const read = [
    no_header ? "header = false" : "", decimal_comma ? "decimal_comma = true" : "",
    encoding ? `encoding = ${quoted(encoding)}` : "", skip_lines ? `skip_lines = ${skip_lines}` : "",
  ].filter(Boolean);
  return [
    "version = 1", `listen = ${quoted(address)}`, `identity = ${quoted(identity || `${folder}/keys/tacit.key`)}`,
    `state = ${quoted(`${folder}/service`)}`, "",
    `[peers.${peer}]`, `key = ${quoted(peer_file || `${folder}/partners/${partner}.pub`)}`, "",
    "[sources.table]", `input = ${quoted(file)}`, ...read, `key = [${columns.join(", ")}]`,
    ...(others.length > 0 ? [`or_keys = [${others.join(", ")}]`] : []), `rows_in_total = ${Math.max(1, 2 * rows)}`, "",
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
  list(byId("service-told"), [...task.notes, ...found.faults, ...found.warnings, ...found.allows, ...found.tables].map(said));
  if (task.status !== "done") fault("service-fault", why(task.error));
  return task.status === "done";
}

async function guarded(work) {
  try {
    await work();
  } catch (error) {
    say(byId("service-status"), "");
    fault("service-fault", why(error));
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

export function begin() {
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
  onLanguage(() => {
    byId("services").dataset.text = "";
    draw();
  });
}

