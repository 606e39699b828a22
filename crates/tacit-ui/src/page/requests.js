// Requests to a partner's service: what it offers, what is asked of it, its terms, and the run by them.
import { byId, choices, fault, list, make, say, show } from "./dom.js";
import { form, model, reading } from "./model.js";
import { said, why } from "./said.js";
import { follow, results, start } from "./server.js";
import { onLanguage, t } from "./words.js";

const LOOKUP = "lookup";
// The jobs of the service, the one that was chosen, and the terms that are shown with the form that they are for.
let offered = [];
let job = null;
let shown = null;

const value = (id) => byId(id).value.trim();
const isLookup = () => job.reveal.includes(LOOKUP);
const isQuestion = () => typeof job.question_rules === "string" || (job.questions || []).length > 0;
const template = () => (job.questions || []).find((one) => one.name === byId("template").value);

const common = () => {
  const { partner, peer_file, identity, file, key, or_key } = form("run");
  return { partner, peer_file, identity, file, key, or_key, way: model.way === "via" ? "via" : "connect", address: model.address, ...reading() };
};

// What is asked of the chosen job.
function asked() {
  const all = { ...common(), job: job.job };
  if (isLookup()) {
    const values = byId("values").value.split("\n").map((line) => line.trim()).filter(Boolean);
    return { ...all, or_key: [], tags: value("tags"), values };
  }
  if (!isQuestion()) return all;
  const one = template();
  const set = one ? (one.parameters || []).map(({ name }) => ({ name, value: value(`parameter-${name}`) })) : [];
  return { ...all, asks: true, min_group: value("least-group"), ...(one ? { question: one.name, set } : { sql: byId("service-sql").value }) };
}

// Terms that were shown are those of another request now.
function forget() {
  shown = null;
  show(byId("offer"), false);
  fault("jobs-fault", "");
}

async function jobs() {
  forget();
  show(byId("request-form"), false);
  say(byId("jobs-status"), t("working"));
  try {
    const [found] = results(await follow(await start({ kind: "jobs", ...common() })));
    offered = found.jobs;
    say(byId("jobs-status"), t("request.found", { n: offered.length }));
    choices("jobs-told", "job", offered.map((one) => ({ value: one.job, text: one.job, small: about(one) })), "", choose);
  } catch (error) {
    say(byId("jobs-status"), "");
    fault("jobs-fault", why(error));
  }
}

const about = (one) => Object.entries(one).filter(([name, value]) => name !== "job" && ["string", "number"].includes(typeof value) && value !== "")
  .map(([name, value]) => `${name.replaceAll("_", " ")}: ${value}`).join(", ");

// A job for rows or a number needs nothing more than the file of step 1; another one is asked for something.
function choose(name) {
  forget();
  job = offered.find((one) => one.job === name);
  const needsMore = isLookup() || isQuestion();
  show(byId("request-form"), needsMore);
  if (!needsMore) {
    terms();
    return;
  }
  show(byId("lookup"), isLookup());
  show(byId("answer"), !isLookup());
  byId("tags").required = isLookup();
  drawQuestions();
}

function drawQuestions() {
  const templates = job.questions || [];
  say(byId("answer-rules"), job.question_rules || "");
  byId("template").replaceChildren(...templates.map((one) => make("option", { value: one.name, textContent: one.name })));
  show(byId("template-field"), templates.length > 0);
  byId("service-sql").value = "";
  drawTemplate();
}

function drawTemplate() {
  const one = template();
  byId("service-sql").readOnly = Boolean(one);
  if (one) byId("service-sql").value = one.sql;
  byId("parameters").replaceChildren(...(one ? one.parameters || [] : []).map(({ name, type, words }) => {
    const input = make("input", { id: `parameter-${name}`, autocomplete: "off", spellcheck: false, required: true });
    return make("p", { className: "field" }, make("label", { htmlFor: input.id, textContent: `${name} (${words || type})` }), input);
  }));
}

async function terms() {
  forget();
  const request = asked();
  const chosen = job;
  say(byId("jobs-status"), t("terms.working"));
  try {
    const [found] = results(await follow(await start({ kind: "offer", ...request })));
    if (chosen !== job || JSON.stringify(asked()) !== JSON.stringify(request)) return;
    shown = { request, offer: found };
    list(byId("offer-told"), found.words.map(said));
    show(byId("offer"));
    byId("accept-offer").disabled = Boolean(found.refused);
    fault("jobs-fault", said(found.refused));
  } catch (error) {
    fault("jobs-fault", why(error));
  } finally {
    say(byId("jobs-status"), "");
  }
}

async function accept(open) {
  const { request, offer } = shown;
  byId("accept-offer").disabled = true;
  try {
    const { reveal, result } = offer.offer;
    const gets = { client: "me", service: "peer", both: "both" }[result] || "me";
    const kind = typeof reveal === "string" && !request.asks && !request.tags ? { reveal } : {};
    open(await start({ ...request, kind: "request", terms: offer.terms_hash, result: gets, ...kind, agreed: { words: offer.words } }));
  } catch (error) {
    fault("jobs-fault", why(error));
  }
}

export function begin(open) {
  byId("jobs").addEventListener("click", jobs);
  byId("request-form").addEventListener("submit", (event) => {
    event.preventDefault();
    terms();
  });
  byId("request-form").addEventListener("input", forget);
  byId("template").addEventListener("change", drawTemplate);
  byId("accept-offer").addEventListener("click", () => accept(open));
  onLanguage(() => {
    if (shown) list(byId("offer-told"), shown.offer.words.map(said));
  });
}
