// The page: its steps, its language, and what the command behind it says every two seconds.
import * as ask from "./ask.js";
import { byId, fault, say, show } from "./dom.js";
import * as file from "./file.js";
import * as history from "./history.js";
import { belongsTo, model } from "./model.js";
import * as partner from "./partner.js";
import * as requests from "./requests.js";
import * as run from "./run.js";
import { get, takeToken } from "./server.js";
import * as service from "./service.js";
import * as stored from "./stored.js";
import { chosen, current, onLanguage, speak, t } from "./words.js";

const PERIOD = 2000;
const STEPS = ["file", "partner", "ask", "run", "history", "service"];
let known = false;

function step() {
  const name = location.hash.slice(1);
  return STEPS.includes(name) ? name : "file";
}

function turn(focus) {
  const now = step();
  for (const name of STEPS) show(byId(name), name === now);
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${now}`) link.setAttribute("aria-current", "step");
    else link.removeAttribute("aria-current");
  }
  document.title = `${t(`${now}.step`)} – Tacit`;
  if (focus) {
    byId(`${now}-title`).focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  if (now === "run") run.enter(focus);
  if (focus) refresh();
}

function open(id) {
  run.view(id);
  location.hash = "#run";
  run.watch(id);
}

// What the command behind the page has: keys, partners, runs.
async function refresh() {
  try {
    const state = await get("/api/state");
    fault("lost", "");
    if (!known && belongsTo(state.folder)) await speak(current());
    say(byId("where"), state.folder);
    stored.told(state);
    partner.told(state);
    history.told(state);
    service.told(state);
    if (!known) {
      known = true;
      found(state);
    }
    return true;
  } catch (error) {
    fault("lost", t(error.lost === "token" ? "lost.token" : "lost"));
    return false;
  }
}

// A run that goes on although its page was closed, or the one that this page showed.
function found(state) {
  const runs = state.tasks.filter((task) => task.kind === "run" || task.kind === "request");
  const goesOn = runs.find((task) => task.status === "running") || runs.find((task) => task.id === model.run);
  if (!goesOn) return;
  if (goesOn.status === "running") location.hash = "#run";
  run.watch(goesOn.id);
}

async function poll() {
  if (!document.hidden) await refresh();
  setTimeout(poll, PERIOD);
}

async function begin() {
  takeToken();
  file.begin();
  stored.begin((path) => file.look(path), file.forget);
  partner.begin(refresh);
  ask.begin();
  run.begin();
  history.begin(open);
  service.begin();
  requests.begin(open);
  await speak(chosen());
  byId("language").value = current();
  byId("language").addEventListener("change", () => speak(byId("language").value, true));
  onLanguage(() => turn(false));
  turn(false);
  document.body.classList.remove("new");
  addEventListener("hashchange", () => {
    takeToken();
    turn(true);
  });
  poll();
}

begin();
