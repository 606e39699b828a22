// Requests to the command behind the page. The token comes in the address, behind a #, so that it is sent to nobody by
// itself; it is kept for this origin alone, and given to the server in a header.
const KEY = "tacit-token";
const POLL = 400;

export function takeToken() {
  const found = /^#([0-9a-f]{32})$/.exec(location.hash);
  if (found) {
    localStorage.setItem(KEY, found[1]);
    history.replaceState(null, "", location.pathname);
  }
}

const headers = (more) => ({ "X-Tacit-Token": localStorage.getItem(KEY) || "", ...more });

// What the server refuses, with its line; `lost` is true where it does not answer or knows no such token.
export class Refused extends Error {
  constructor(message, lost = "") {
    super(message);
    this.lost = lost;
  }
}

async function answered(request) {
  let answer;
  try {
    answer = await request;
  } catch {
    throw new Refused("", "gone");
  }
  if (answer.status === 403 || answer.status === 421) throw new Refused(await answer.text(), "token");
  const value = await answer.json().catch(() => ({ error: `${answer.status}` }));
  if (!answer.ok) throw new Refused(value.error);
  return value;
}

export const get = (path) => answered(fetch(path, { cache: "no-store", headers: headers() }));

export const post = (path, value) =>
  answered(fetch(path, {
    method: "POST", cache: "no-store", body: JSON.stringify(value),
    headers: headers({ "Content-Type": "application/json" }),
  }));

// Sends a dropped file; `progress` is told the share that is sent. Returns the request too, so that it can be ended.
export function upload(file, progress) {
  const request = new XMLHttpRequest();
  const done = new Promise((settle, fail) => {
    request.open("POST", `/api/upload?name=${encodeURIComponent(file.name)}`);
    for (const [name, value] of Object.entries(headers({ "Content-Type": "application/octet-stream" }))) {
      request.setRequestHeader(name, value);
    }
    request.upload.addEventListener("progress", (event) => progress(event.loaded / Math.max(1, event.total)));
    request.addEventListener("error", () => fail(new Refused("", "gone")));
    request.addEventListener("abort", () => fail(new Refused("")));
    request.addEventListener("load", () => {
      let value = {};
      try {
        value = JSON.parse(request.responseText);
      } catch {
        value = { error: request.responseText };
      }
      if (request.status === 200) settle(value);
      else fail(new Refused(value.error, request.status === 403 ? "token" : ""));
    });
    request.send(file);
  });
  return { done, request };
}

// Starts a command, or takes one that is under way, and calls `changed` with it until it has ended.
export async function follow(id, changed = () => {}) {
  for (;;) {
    let task;
    try {
      task = await get(`/api/task?id=${id}`);
    } catch (error) {
      // A server that is busy for a moment is asked again; one that is gone says so on the page.
      if (error.lost !== "gone") throw error;
      await new Promise((settle) => setTimeout(settle, 5 * POLL));
      continue;
    }
    changed(task);
    if (task.status !== "running") return task;
    await new Promise((settle) => setTimeout(settle, POLL));
  }
}

export async function start(form) {
  return (await post("/api/start", form)).id;
}

export const cancel = (id) => post("/api/cancel", { id });

// A link to a file of a run, which is good once.
export async function link(id, name) {
  return (await post("/api/ticket", { id, name })).link;
}

// What a command said at its end: its results, or a refusal with its line.
export function results(task) {
  if (task.status === "done") return task.results;
  if (task.status === "cancelled") throw new Refused("");
  throw new Refused(task.error ? task.error.message : task.notes.at(-1) || `exit code ${task.code}`);
}
