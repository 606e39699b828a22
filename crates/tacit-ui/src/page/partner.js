// Step 2: the partner: invited, joined, or known by a file with its public key; and where both sides meet.
import { byId, choices, command, fault, make, say, show } from "./dom.js";
import { change, model, onChange } from "./model.js";
import { cancel, follow, results, start } from "./server.js";
import { onLanguage, t } from "./words.js";

let state = { partners: [], identity: null };
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

export function told(fresh) {
  const before = JSON.stringify([state.partners, state.identity]);
  state = fresh;
  for (const task of fresh.tasks) {
    if (task.status === "running" && task.kind in exchanges) exchanges[task.kind](task);
  }
  if (before !== JSON.stringify([state.partners, state.identity])) drawKnown();
}

// One exchange of keys: its form while it waits, and the partner afterwards.
function exchange(kind, fields, done) {
  const form = byId(`${kind}-form`);
  const stop = form.querySelector(".cancel");
  const submit = form.querySelector("[type=submit]");
  const line = form.querySelector(".code-line");
  const status = byId(`${kind}-status`);
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
          show(line);
          say(byId("code"), code);
          show(byId("code-where"), task.about.way === "listen");
        }
        if (task.status === "running") say(status, code ? t("invite.waiting") : t("working"));
      });
      const found = results(task).find((one) => one.name === "introduced");
      say(status, t("partner.met", { name, fingerprint: found.fingerprint }));
      done(name, about);
    } catch (error) {
      say(status, error.message ? "" : t("cancelled"));
      fault(`${kind}-fault`, error.message);
    } finally {
      running = null;
      if (line) show(line, false);
      show(stop, false);
      submit.disabled = false;
    }
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (running !== null) return;
    fault(`${kind}-fault`, "");
    const asked = { kind, ...fields() };
    try {
      await watch(await start(asked), asked.name);
    } catch (error) {
      fault(`${kind}-fault`, error.message || t("failed"));
    }
  });
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
  onLanguage(drawKnown);
  drawMeeting();
}
