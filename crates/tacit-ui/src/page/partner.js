// Step 2: the partner: invited, joined, or known by a file with its public key; and where both sides meet.
import { byId, choices, command, fault, list, make, quote, say, show } from "./dom.js";
import { change, model, onChange } from "./model.js";
import { why } from "./said.js";
import { cancel, follow, results, start } from "./server.js";
import { waits } from "./waits.js";
import { onLanguage, t } from "./words.js";

// Addresses that only this machine can reach, and those that are all of its addresses.
const LOOPBACK = /^(127\.|localhost$|\[::1\]$)/;
const EVERY = ["0.0.0.0", "[::]"];

let state = { partners: [], identity: null, addresses: [] };
const exchanges = {};

function drawKnown() {
  const chosen = model.peerFile ? "" : model.partner;
  choices("partners", "partner", state.partners.map((one) => ({
    value: one.name, text: one.name,
    small: t("partner.fingerprint", { fingerprint: one.fingerprint }) + (one.comment ? ` – ${t("partner.calls", { comment: one.comment })}` : ""),
  })), chosen, (name) => change({ partner: name, peerFile: "" }));
  if (state.partners.length === 0) byId("partners").replaceChildren(make("p", { className: "muted", textContent: t("partner.none") }));
  say(byId("own-key"), state.identity ? t("partner.own_key", { fingerprint: state.identity.fingerprint, file: state.identity.public }) : "");
}

// What is known of the partner of a form.
export const known = (name) => state.partners.find((one) => one.name === name);

// Where a partner reaches a side that listens at an address.
function reach(address) {
  const [, host, port] = /^(.+):(\d+)$/.exec(address) || [];
  if (!host) return { places: [], note: "" };
  if (LOOPBACK.test(host)) return { places: [], note: t("reach.loopback") };
  if (!EVERY.includes(host)) return { places: [address], note: t("reach.network") };
  const fits = state.addresses.filter((one) => host === "[::]" || !one.includes(":"));
  const places = fits.map((one) => (one.includes(":") ? `[${one}]:${port}` : `${one}:${port}`));
  return { places, note: t(places.length > 0 ? "reach.network" : "reach.none") };
}

function drawReach(id, way, address) {
  const { places, note } = way === "listen" ? reach(address) : { places: [], note: "" };
  list(byId(`${id}-places`), places);
  say(byId(`${id}-note`), note);
}

export function told(fresh) {
  const before = JSON.stringify([state.partners, state.identity, state.addresses]);
  state = fresh;
  for (const task of fresh.tasks) {
    if (task.status === "running" && task.kind in exchanges) exchanges[task.kind](task);
  }
  if (before !== JSON.stringify([state.partners, state.identity, state.addresses])) {
    drawKnown();
    drawMeeting();
  }
}

// One exchange of keys: its form while it waits, and the partner afterwards.
function exchange(kind, fields, done) {
  const form = byId(`${kind}-form`);
  const stop = form.querySelector(".cancel");
  const submit = form.querySelector("[type=submit]");
  const line = form.querySelector(".code-line");
  const status = byId(`${kind}-status`);
  const [since, hint] = [byId(`${kind}-since`), byId(`${kind}-hint`)];
  const replace = byId(`${kind}-replace`);
  const asksReplace = (is) => {
    replace.checked = false;
    show(form.querySelector(".replace"), is);
  };
  let running = null;
  const watch = async (id, name) => {
    running = id;
    show(stop);
    submit.disabled = true;
    let about = {};
    try {
      const task = await follow(id, (task) => {
        about = task.about;
        command(form.querySelector(".command"), task.command);
        const code = task.results.find((one) => one.name === "invitation")?.code;
        if (line && code && task.status === "running") {
          const isNew = line.hidden;
          show(line);
          say(byId("code"), code);
          drawReach("code", task.about.way, task.about.address);
          // Own keys and partners above may have moved it out of sight.
          if (isNew) line.scrollIntoView({ block: "center" });
        }
        const awaited = task.status === "running" && task.waiting ? waits(kind, task.waiting) : null;
        if (awaited) quote(status, awaited.line);
        else if (task.status === "running") quote(status, t("working"));
        say(since, awaited ? awaited.time : "");
        say(hint, awaited ? awaited.hint : "");
      });
      const found = results(task).find((one) => one.name === "introduced");
      quote(status, t("partner.met", { name, fingerprint: found.fingerprint }));
      asksReplace(false);
      done(name, about);
    } catch (error) {
      quote(status, error.message ? "" : t("cancelled"));
      fault(`${kind}-fault`, error.message ? why(error) : "");
    } finally {
      running = null;
      say(since, "");
      say(hint, "");
      if (line) show(line, false);
      show(stop, false);
      submit.disabled = false;
      status.scrollIntoView({ block: "nearest" });
    }
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (running !== null) return;
    fault(`${kind}-fault`, "");
    const asked = { kind, ...fields(), replace: replace.checked };
    const old = known(asked.name);
    if (old && !asked.replace) {
      say(byId(`${kind}-replace-about`), t("replace.about", { name: old.name, fingerprint: old.fingerprint }));
      asksReplace(true);
      replace.focus();
      return;
    }
    try {
      await watch(await start(asked), asked.name);
    } catch (error) {
      fault(`${kind}-fault`, why(error));
    }
  });
  byId(`${kind}-name`).addEventListener("input", () => asksReplace(false));
  stop.addEventListener("click", () => running !== null && cancel(running));
  // One that was under way when the page was closed.
  exchanges[kind] = (task) => running === null && watch(task.id, task.about.name);
}

const value = (id) => byId(id).value.trim();

function drawMeeting() {
  byId("way").value = model.way;
  byId("address").value = model.address;
  byId("peer-file").value = model.peerFile;
  byId("identity").value = model.identity;
  drawReach("meet", model.way, model.address);
}

export function begin(refresh) {
  exchange("invite",
    () => ({ name: value("invite-name"), own_name: value("invite-own"), way: value("invite-way"), address: value("invite-address"), identity: model.identity }),
    async (name, about) => {
      change({ partner: name, peerFile: "", way: about.way, address: about.address });
      await refresh();
      drawKnown();
    });
  exchange("join",
    () => ({ code: value("join-code"), name: value("join-name"), own_name: value("join-own"), way: value("join-way"), address: value("join-address"), identity: model.identity }),
    async (name, about) => {
      change({ partner: name, peerFile: "", way: about.way, address: about.address });
      await refresh();
      drawKnown();
    });
  for (const [id, name] of [["way", "way"], ["address", "address"], ["peer-file", "peerFile"], ["identity", "identity"]]) {
    byId(id).addEventListener("change", () => {
      change({ [name]: value(id) });
      if (name === "peerFile") drawKnown();
    });
  }
  // Addresses that fit what was chosen.
  byId("invite-way").addEventListener("change", () => {
    byId("invite-address").value = value("invite-way") === "listen" ? "0.0.0.0:7700" : "";
  });
  onChange((values) => {
    if ("way" in values || "address" in values || "peerFile" in values) drawMeeting();
  });
  onLanguage(() => {
    drawKnown();
    drawMeeting();
  });
  drawMeeting();
}
