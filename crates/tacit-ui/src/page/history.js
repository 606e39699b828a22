// Earlier runs, and the signed records of requests.
import { byId, fault, heads, list, make, quote, rows, say, show } from "./dom.js";
import { said, why } from "./said.js";
import { follow, results, start } from "./server.js";
import { figure } from "./summary.js";
import { number, onLanguage, t, time } from "./words.js";

const KINDS = ["run", "request"];
let tasks = [];

function outcome(task) {
  const status = t(`status.${task.status}`);
  if (task.status === "failed") {
    const line = make("span");
    quote(line, said(task.error ? task.error.message : ""));
    return make("span", {}, `${status}: `, line);
  }
  const found = (task.results || []).find((one) => one.own_keys !== undefined);
  if (!found || task.status !== "done") return status;
  if (found.reveal === "question") return `${status}: ${t("headline.query", { rows: (found.rows || []).length })}`;
  const value = typeof found.matches === "number" ? number(found.matches) : figure(found);
  return value === undefined ? status : `${status}: ${value}`;
}

function what(task) {
  const { about } = task;
  if (task.kind === "request") return t("history.request", { job: about.job || "" });
  const key = `kind.${about.ask}`;
  return `${t(key)} – ${(about.file || "").split(/[/\\]/).at(-1)}`;
}

function draw(open) {
  const table = byId("history-table");
  show(table, tasks.length > 0);
  show(byId("history-none"), tasks.length === 0);
  rows(table, heads(table), tasks.map((task) => {
    const button = make("button", { type: "button", textContent: t("history.open") });
    button.setAttribute("aria-label", t("history.open_this", { when: time(task.started) }));
    button.addEventListener("click", () => open(task.id));
    return [time(task.started), what(task), task.about.partner || task.about.peer_file || "", outcome(task), button];
  }));
}

let last = "";
let opened = () => {};

export function told(state) {
  tasks = state.tasks.filter((task) => KINDS.includes(task.kind));
  const fresh = JSON.stringify(tasks.map((task) => [task.id, task.status]));
  if (fresh === last) return;
  last = fresh;
  draw(opened);
}

export function begin(open) {
  opened = open;
  onLanguage(() => draw(open));
  byId("verify").addEventListener("click", async () => {
    fault("verify-fault", "");
    list(byId("verify-told"), []);
    say(byId("verify-status"), t("working"));
    try {
      const [found] = results(await follow(await start({ kind: "verify" })));
      say(byId("verify-status"), t("records.told", { records: found.records, both: found.signed_by_both }));
      list(byId("verify-told"), found.owners.map((owner) => `owner's key: ${typeof owner === "string" ? owner : JSON.stringify(owner)}`));
    } catch (error) {
      say(byId("verify-status"), "");
      fault("verify-fault", why(error));
    }
  });
}
