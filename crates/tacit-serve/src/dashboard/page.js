"use strict";
// Asks for the state every two seconds and changes what is different; nothing is built from text as markup.

const PERIOD = 2000;
const PATIENCE = 5000;
const BUDGETS = {
  runs_a_day: "runs today",
  rows_in_total: "rows, in total",
  aggregate_runs: "numbers over all keys, in total",
  broken_runs: "runs broken off after they began, in total",
};
const RULES = {
  allow: "the job does not exist, or is not for this peer",
  aggregate_runs: "the peer has had all its numbers over matching keys",
  concurrency: "too many requests at the same time",
  draining: "the service is about to stop",
  expires: "the job has ended",
  give: "columns that the job does not give",
  hours: "outside the job's hours",
  identity: "the record would name another key",
  ledger: "the charge could not be written: see the log",
  lifetime: "the tags have too few queries left, all clients together",
  memory: "too little memory for the run at the moment",
  max_peer_keys: "the client has more keys than the job takes",
  max_queries: "more queries at once than the job takes",
  min_peer_keys: "the client has fewer keys than the job takes",
  policy: "the policy changed between offer and acceptance",
  queries_in_total: "the peer has used all its queries",
  records: "the record could not be written: see the log",
  result: "the job gives the result to another side",
  reveal: "the job does not reveal that",
  rows_in_total: "the run could reveal more rows than the peer has left",
  runs_a_day: "the peer has used its runs of this job for today",
  source: "the table cannot be read: see the log",
  unsigned_runs_a_day: "too many runs that the peer has not signed today",
  version: "another release of Tacit",
};
const STATES = { granted: "running", offered: "offered", refunded: "failed", declined: "declined by the client" };
const TONES = { running: "warn", done: "good", failed: "bad" };

const byId = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en");
let paused = false;
let last = null;
let timer = null;

function count(n) {
  return n === null || n === undefined ? "" : number.format(n);
}

function bytes(n) {
  if (n === null || n === undefined) return "";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (n >= 1000 && at < units.length - 1) {
    n /= 1000;
    at += 1;
  }
  return `${at === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[at]}`;
}

function duration(ms) {
  if (ms === null || ms === undefined) return "";
  return ms < 60000 ? `${(ms / 1000).toFixed(ms < 10000 ? 2 : 1)} s` : `${(ms / 60000).toFixed(1)} min`;
}

// The hour of today, the date of any other day.
function time(text, now) {
  if (!text) return "";
  return text.slice(0, 10) === now.slice(0, 10) ? text.slice(11, 19) : `${text.slice(0, 10)} ${text.slice(11, 16)}`;
}

function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function dress(element, name) {
  if (element.className !== name) element.className = name;
}

// A cell's content: a text, or {text, small, tone, share}.
function show(cell, content) {
  const { text, small = "", tone = "", share = null, kind = "", calm = false } = typeof content === "object" ? content : { text: content };
  let inner = cell.firstElementChild;
  if (!inner) {
    inner = cell.appendChild(document.createElement("span"));
    inner.append(document.createElement("span"));
  }
  dress(cell, text === "" ? `${kind} blank` : kind);
  say(inner.firstElementChild, text);
  dress(inner.firstElementChild, tone);
  let under = inner.querySelector("small");
  if (small && !under) under = inner.appendChild(document.createElement("small"));
  if (under && !small) under.remove();
  if (small) say(under, small);
  let bar = inner.querySelector(".bar");
  if (share !== null && !bar) {
    bar = inner.appendChild(document.createElement("span"));
    bar.setAttribute("aria-hidden", "true");
    bar.append(document.createElement("i"));
  }
  if (bar && share !== null) {
    dress(bar, `bar ${calm ? "" : share >= 1 ? "bad" : share >= 0.8 ? "warn" : ""}`);
    bar.firstElementChild.style.width = `${Math.min(100, 100 * share)}%`;
  }
}

// Rows by their keys: those that stay are kept as they are, so that nothing jumps under the reader.
function fill(id, rows) {
  const table = byId(id);
  const body = table.tBodies[0];
  const labels = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  const old = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  let place = body.firstElementChild;
  for (const [key, cells] of rows) {
    let row = old.get(key);
    old.delete(key);
    if (!row) {
      row = document.createElement("tr");
      row.dataset.key = key;
      row.setAttribute("role", "row");
      for (const label of labels) {
        const cell = row.appendChild(document.createElement("td"));
        cell.dataset.label = label;
        cell.setAttribute("role", "cell");
      }
    }
    cells.forEach((content, at) => show(row.cells[at], content));
    if (row === place) place = place.nextElementSibling;
    else body.insertBefore(row, place);
  }
  for (const row of old.values()) row.remove();
  table.classList.toggle("none", rows.length === 0);
}

// On a narrow screen tables are laid out as lists of cards; to a reader of the screen they stay tables.
function keepRoles() {
  for (const table of document.querySelectorAll("table")) {
    table.setAttribute("role", "table");
    for (const group of table.querySelectorAll("thead, tbody")) group.setAttribute("role", "rowgroup");
    for (const row of table.querySelectorAll("thead tr")) row.setAttribute("role", "row");
    for (const cell of table.querySelectorAll("th")) {
      cell.setAttribute("role", "columnheader");
      cell.setAttribute("scope", "col");
    }
  }
}

const at = (text, now) => ({ text: time(text, now), kind: "time" });
const mono = (text) => ({ text: text || "", kind: "mono" });
const narrow = (text) => ({ text, kind: "narrow" });

function service(data) {
  const { service: about, now } = data;
  say(byId("state"), about.state === "open" ? "open" : "draining: nothing new begins");
  dress(byId("state"), `chip ${about.state === "open" ? "good" : "warn"}`);
  say(byId("about"), `Release ${about.release}, listens at ${about.listen}, key ${about.fingerprint}. ` +
    `Started ${time(about.started, about.now)}, policy read ${time(about.policy_read, about.now)}.`);
  say(byId("updated"), about.now.slice(11, 19));
  say(byId("running"), `${count(now.running)} of ${count(now.concurrency)}`);
  say(byId("offered"), count(now.offered));
  say(byId("memory"), bytes(now.memory));
  const faults = byId("faults");
  const list = faults.querySelector("ul");
  if (list.textContent !== about.policy_faults.join("")) {
    list.replaceChildren(...about.policy_faults.map((fault) => {
      const item = document.createElement("li");
      item.textContent = fault;
      return item;
    }));
  }
  faults.hidden = about.policy_faults.length === 0;
  document.title = `${now.running ? `${now.running} running · ` : ""}Tacit service`;
}

function throughput({ throughput: { minutes, hour }, service: { now } }) {
  say(byId("hour-done"), count(hour.done));
  say(byId("hour-bytes"), bytes(hour.bytes));
  say(byId("hour-refused"), count(hour.refused));
  const chart = byId("chart");
  const most = Math.max(1, ...minutes.map((minute) => minute.done + minute.refused));
  const wide = 600 / minutes.length;
  minutes.forEach((minute, place) => {
    const bars = [["done", minute.done, minute.done], ["refused", minute.refused, minute.done + minute.refused]];
    bars.forEach(([name, high, top], which) => {
      let bar = chart.children[2 * place + which];
      if (!bar) {
        bar = chart.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "rect"));
        bar.setAttribute("class", name);
        bar.setAttribute("x", String(place * wide + 1));
        bar.setAttribute("width", String(wide - 2));
      }
      bar.setAttribute("y", String(96 - (90 * top) / most));
      bar.setAttribute("height", String((90 * high) / most));
    });
  });
  const busiest = `busiest minute: ${count(most === 1 && hour.done + hour.refused === 0 ? 0 : most)}`;
  chart.setAttribute("aria-label", `Last hour: ${hour.done} runs done, ${hour.refused} refused; ${busiest}`);
  say(byId("chart-from"), time(minutes[0].time, now).slice(-8, -3) || "");
  say(byId("chart-most"), busiest);
  say(byId("chart-to"), "now");
  const full = minutes.filter((minute) => minute.done + minute.refused + minute.bytes > 0).reverse();
  fill("minutes-table", full.map((minute) => [minute.time, [
    time(minute.time, now), count(minute.done), count(minute.refused), bytes(minute.bytes)]]));
}

function budgets(data) {
  fill("budgets-table", data.budgets.map((one) => [`${one.peer}\n${one.of}\n${one.budget}`, [
    one.peer, one.of, BUDGETS[one.budget] || one.budget,
    one.budget === "broken_runs" ? count(one.used) :
      // Runs of a day come back by themselves: all of them used is no alarm.
      { text: `${count(one.used)} of ${count(one.most)}`, share: one.most ? one.used / one.most : 1,
        calm: one.budget === "runs_a_day" },
  ]]));
  say(byId("more-budgets"), `and ${count(data.more_budgets)} more; the policy is longer than this page`);
  byId("more-budgets").hidden = !data.more_budgets;
}

function jobs({ jobs: all }) {
  fill("jobs-table", all.map((one) => [one.job, [
    one.job, one.purpose || "", one.agreement || "", one.peers.join(", "),
    { text: one.hours.join(", ") || "any time", small: one.expires ? `until ${one.expires}` : "" },
  ]]));
}

function runs({ runs: all, service: { now } }) {
  const wanted = byId("filter").value;
  const of = (one) => (one.state === "refunded" ? "failed" : one.state);
  const rows = all.filter((one) => !wanted || of(one) === wanted).map((one) => {
    const state = STATES[one.state] || one.state;
    const moved = one.sent === null ? null : one.sent + one.received;
    return [one.run, [
      at(one.began, now), one.peer, one.job,
      { text: state, tone: TONES[state] || "", small: state === "failed" ? one.words : "" },
      one.client_keys === null ? "" : `${count(one.client_keys)} / ${count(one.service_keys)}`,
      narrow(bytes(moved)), narrow(duration(one.milliseconds)), mono(one.run),
    ]];
  });
  fill("runs-table", rows);
}

function peers({ peers: all, service: { now } }) {
  fill("peers-table", all.map((one) => [one.peer, [
    { text: one.peer, small: one.fingerprint ? `key ${one.fingerprint}` : "not in the policy any more" },
    one.jobs.join(", "), count(one.granted), count(one.done), count(one.failed), count(one.refused),
    narrow(bytes(one.sent + one.received)), one.last ? at(one.last, now) : "never",
  ]]));
}

function refusals({ refusals: { rules, latest }, service: { now } }) {
  fill("rules-table", rules.map((one) => [one.rule, [one.rule, RULES[one.rule] || "", count(one.count), at(one.last, now)]]));
  fill("refusals-table", latest.map((one) => [one.run, [
    at(one.time, now), one.peer, one.job, one.rule, one.words, mono(one.run)]]));
}

function records({ records: about, service: { now, state_folder: folder } }) {
  const outcomes = Object.entries(about.outcomes).map(([outcome, times]) => `${count(times)} ${outcome}`);
  say(byId("ever"), count(about.outcomes.complete || 0));
  byId("download").hidden = about.count === 0;
  say(byId("records-about"), about.count === 0 ? "" :
    `${count(about.count)} records (${outcomes.join(", ")}) in ${folder}/records; ` +
    `the chain's head is ${about.head}. This page does not verify them; tacit audit verify does.`);
  fill("records-table", about.latest.map((one) => [String(one.number), [
    count(one.number), at(one.started, now), one.job, one.outcome, `${one.signatures} of 2`, mono(one.run)]]));
}

function draw() {
  if (!last) return;
  [service, throughput, jobs, budgets, runs, peers, refusals, records].forEach((part) => part(last));
}

async function ask() {
  clearTimeout(timer);
  if (!paused && !document.hidden) {
    try {
      const answer = await fetch("/data.json", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
      if (!answer.ok) throw new Error(`it says ${answer.status}`);
      last = await answer.json();
      say(byId("lost"), "");
      document.body.classList.remove("stale");
      draw();
      document.body.classList.remove("new");
    } catch {
      say(byId("lost"), `The service does not answer${last ? "; the figures below are old" : ""}.`);
      document.body.classList.add("stale");
    }
  }
  clearTimeout(timer);
  timer = setTimeout(ask, PERIOD);
}

byId("pause").addEventListener("click", () => {
  paused = !paused;
  byId("pause").setAttribute("aria-pressed", String(paused));
  say(byId("paused"), paused ? "paused" : "");
  if (!paused) ask();
});
byId("filter").addEventListener("change", draw);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) ask();
});
keepRoles();
ask();
