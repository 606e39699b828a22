//! What the page can ask for, and where each answer comes from.

use crate::addresses;
use crate::folder::{Folder, MOST_DROPPED};
use crate::form::Plan;
use crate::guard::{Guard, same, secret};
use crate::http::{Content, Head, Request, Response};
use crate::preview;
use crate::task::Tasks;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// What the page may load: its own files, and nothing into a frame.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";
/// The same of a page about a run, which is shown without any rights.
const REPORT_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'; sandbox";
/// The page's files: path, type, content.
const ASSETS: [(&str, &str, &str); 23] = [
    ("/", "text/html; charset=utf-8", include_str!("page/page.html")),
    ("/page.css", "text/css; charset=utf-8", include_str!("page/page.css")),
    ("/icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
    ("/main.js", SCRIPT_KIND, include_str!("page/main.js")),
    ("/server.js", SCRIPT_KIND, include_str!("page/server.js")),
    ("/dom.js", SCRIPT_KIND, include_str!("page/dom.js")),
    ("/model.js", SCRIPT_KIND, include_str!("page/model.js")),
    ("/words.js", SCRIPT_KIND, include_str!("page/words.js")),
    ("/said.js", SCRIPT_KIND, include_str!("page/said.js")),
    ("/file.js", SCRIPT_KIND, include_str!("page/file.js")),
    ("/keys.js", SCRIPT_KIND, include_str!("page/keys.js")),
    ("/stored.js", SCRIPT_KIND, include_str!("page/stored.js")),
    ("/partner.js", SCRIPT_KIND, include_str!("page/partner.js")),
    ("/waits.js", SCRIPT_KIND, include_str!("page/waits.js")),
    ("/summary.js", SCRIPT_KIND, include_str!("page/summary.js")),
    ("/ask.js", SCRIPT_KIND, include_str!("page/ask.js")),
    ("/sql.js", SCRIPT_KIND, include_str!("page/sql.js")),
    ("/run.js", SCRIPT_KIND, include_str!("page/run.js")),
    ("/history.js", SCRIPT_KIND, include_str!("page/history.js")),
    ("/service.js", SCRIPT_KIND, include_str!("page/service.js")),
    ("/requests.js", SCRIPT_KIND, include_str!("page/requests.js")),
    ("/words/en.json", JSON_KIND, include_str!("page/words/en.json")),
    ("/words/de.json", JSON_KIND, include_str!("page/words/de.json")),
];
const SCRIPT_KIND: &str = "text/javascript; charset=utf-8";
const JSON_KIND: &str = "application/json";
/// Bytes of a form.
const LONGEST_FORM: u64 = 256 << 10;
/// How long a ticket for a file is good.
const TICKET: Duration = Duration::from_secs(60);
/// Tickets at the same time.
const MOST_TICKETS: usize = 32;

/// All that answers.
pub(crate) struct Routes {
    guard: Guard,
    folder: Arc<Folder>,
    tasks: Tasks,
    tickets: Mutex<VecDeque<Ticket>>,
}

/// What a link to a file holds, since the browser follows it without the token: it is used once, and soon.
struct Ticket {
    secret: Zeroizing<String>,
    file: PathBuf,
    until: Instant,
}

fn json_of(code: u16, value: &Value) -> Response {
    Response {
        code,
        kind: JSON_KIND,
        more: Vec::new(),
        content: Content::Bytes(value.to_string().into_bytes().into()),
    }
}

/// A refusal with the line that the page shows.
fn refused(code: u16, what: &str) -> Response {
    json_of(code, &json!({ "error": what }))
}

impl Routes {
    pub(crate) fn new(address: SocketAddr, folder: Folder, command: PathBuf) -> Self {
        let folder = Arc::new(folder);
        Routes {
            guard: Guard::new(address),
            tasks: Tasks::new(command, folder.clone()),
            folder,
            tickets: Mutex::default(),
        }
    }

    pub(crate) fn token(&self) -> &str {
        self.guard.token()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Ends everything that the page started.
    pub(crate) fn end(&self) {
        self.tasks.end();
    }

    /// The answer, with what every answer has.
    pub(crate) fn respond(&self, request: &mut Request<'_>) -> Response {
        let mut response = self.answer(request).unwrap_or_else(|refusal| refusal);
        if !response.more.iter().any(|(name, _)| *name == "Content-Security-Policy") {
            response = response.with("Content-Security-Policy", PAGE_POLICY);
        }
        response
            .with("Referrer-Policy", "no-referrer")
            .with("Cross-Origin-Resource-Policy", "same-origin")
            .with("Cross-Origin-Opener-Policy", "same-origin")
    }

    fn answer(&self, request: &mut Request<'_>) -> Result<Response, Response> {
        let head = &request.head;
        self.guard.host(head)?;
        let is_read = match head.method.as_str() {
            "GET" | "HEAD" => true,
            "POST" => false,
            _ => return Err(Response::text(405, "use GET or POST").with("Allow", "GET, HEAD, POST")),
        };
        if let Some((_, kind, text)) = ASSETS.iter().find(|(path, ..)| is_read && *path == head.path) {
            let content = Content::Bytes(text.as_bytes().into());
            return Ok(Response { code: 200, kind, more: Vec::new(), content });
        }
        self.guard.origin(head, !is_read)?;
        if let Some(secret) = head.path.strip_prefix("/file/") {
            return self.file(secret);
        }
        self.guard.token_of(head)?;
        match (is_read, head.path.as_str()) {
            (true, "/api/state") => Ok(self.state()),
            (true, "/api/task") => {
                let task = number(head, "id").and_then(|id| self.tasks.get(id));
                task.map(|task| json_of(200, &task.told()))
                    .ok_or_else(|| refused(404, "there is no such run"))
            }
            (true, "/api/preview") => self.preview(head),
            (false, "/api/upload") => self.upload(request),
            (false, "/api/start") => self.start(&form(request)?),
            (false, "/api/command") => self.command(&form(request)?),
            (false, "/api/cancel") => {
                let id = form(request)?["id"].as_u64();
                let is_ended = id.is_some_and(|id| self.tasks.cancel(id));
                Ok(json_of(200, &json!({ "cancelled": is_ended })))
            }
            (false, "/api/delete") => self.delete(&form(request)?),
            (false, "/api/ticket") => self.ticket(&form(request)?),
            _ => Err(refused(404, "there is no such page")),
        }
    }

    fn state(&self) -> Response {
        let mut state = self.folder.listed();
        state["release"] = json!(env!("CARGO_PKG_VERSION"));
        state["directory"] = json!(std::env::current_dir().ok());
        state["addresses"] = json!(addresses::of_this_machine());
        state["tasks"] = json!(self.tasks.listed());
        json_of(200, &state)
    }

    /// The file of a run that `id` and `name` give, if its command wrote it.
    fn output(&self, id: Option<u64>, name: Option<&str>) -> Result<PathBuf, Response> {
        let task = id.and_then(|id| self.tasks.get(id));
        let found = task.and_then(|task| task.output(name?));
        found.ok_or_else(|| refused(404, "the run has no such file"))
    }

    fn preview(&self, head: &Head) -> Result<Response, Response> {
        let file = self.output(number(head, "id"), head.asked("name").as_deref())?;
        let rows = preview::first_rows(&file).map_err(|error| refused(409, &error.to_string()))?;
        Ok(json_of(200, &rows))
    }

    /// Stores a dropped file as it comes.
    fn upload(&self, request: &mut Request<'_>) -> Result<Response, Response> {
        if request.head.header("content-type") != Some("application/octet-stream") {
            return Err(refused(415, "a file comes as application/octet-stream"));
        }
        if request.body.left > MOST_DROPPED {
            return Err(refused(413, "the file is too large to be dropped; give its path instead"));
        }
        let name = request.head.asked("name").unwrap_or_default();
        let stored = self.folder.store(&name, &mut request.body);
        let file = stored.map_err(|error| {
            refused(409, &format!("the file cannot be stored in {}: {error}", self.folder.path().display()))
        })?;
        let bytes = std::fs::metadata(&file).map(|metadata| metadata.len()).unwrap_or(0);
        Ok(json_of(200, &json!({ "file": file, "bytes": bytes })))
    }

    /// Deletes a dropped file.
    fn delete(&self, form: &Value) -> Result<Response, Response> {
        let file = form["name"].as_str().and_then(|name| self.folder.dropped_file(name));
        let file = file.ok_or_else(|| refused(404, "there is no such dropped file"))?;
        if self.tasks.uses(&file) {
            return Err(refused(
                409,
                "a command that is under way uses this file; wait for it, or cancel it",
            ));
        }
        let shown = file.display();
        std::fs::remove_file(&file)
            .map_err(|error| refused(409, &format!("{shown} cannot be deleted: {error}")))?;
        Ok(json_of(200, &json!({ "deleted": file })))
    }

    fn start(&self, form: &Value) -> Result<Response, Response> {
        let id = self.tasks.start(|run| Plan::of_form(form, &self.folder, run));
        id.map(|id| json_of(200, &json!({ "id": id }))).map_err(|what| refused(400, &what))
    }

    /// The command of a form, which is not started.
    fn command(&self, form: &Value) -> Result<Response, Response> {
        let run = self.folder.path().join("runs").join("RUN");
        let plan = Plan::of_form(form, &self.folder, &run).map_err(|what| refused(400, &what))?;
        Ok(json_of(200, &json!({ "command": plan.shown() })))
    }

    fn ticket(&self, form: &Value) -> Result<Response, Response> {
        let file = self.output(form["id"].as_u64(), form["name"].as_str())?;
        let secret = secret();
        let link = format!("/file/{}", *secret);
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        tickets.truncate(MOST_TICKETS - 1);
        tickets.push_front(Ticket { secret, file, until: Instant::now() + TICKET });
        Ok(json_of(200, &json!({ "link": link })))
    }

    /// The file that a ticket is for: a page about a run is shown, anything else is saved.
    fn file(&self, given: &str) -> Result<Response, Response> {
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        tickets.retain(|ticket| ticket.until > Instant::now());
        let at = tickets.iter().position(|ticket| same(given, &ticket.secret));
        let ticket = at.and_then(|at| tickets.remove(at));
        let ticket = ticket
            .ok_or_else(|| Response::text(404, "this link was used or has expired; go back to the page"))?;
        let gone = |_| Response::text(404, "the file is not there any more");
        let file = File::open(&ticket.file).map_err(gone)?;
        let bytes = file.metadata().map_err(gone)?.len();
        let is_page = ticket.file.extension().is_some_and(|ending| ending == "html");
        let content = Content::File(file, bytes);
        let (kind, policy) = match is_page {
            true => ("text/html; charset=utf-8", REPORT_POLICY),
            false => ("text/csv; charset=utf-8", "default-src 'none'; sandbox"),
        };
        let response = Response { code: 200, kind, more: Vec::new(), content };
        let response = response.with("Content-Security-Policy", policy);
        let name = ticket.file.file_name().and_then(|name| name.to_str()).unwrap_or("result.csv");
        Ok(match is_page {
            true => response,
            false => response.with("Content-Disposition", format!("attachment; filename=\"{name}\"")),
        })
    }
}

fn number(head: &Head, name: &str) -> Option<u64> {
    head.asked(name)?.parse().ok()
}

/// The JSON that came with a request.
fn form(request: &mut Request<'_>) -> Result<Value, Response> {
    if request.head.header("content-type") != Some(JSON_KIND) {
        return Err(refused(415, "a form comes as application/json"));
    }
    let body = request.body.whole(LONGEST_FORM).map_err(|_| refused(400, "the form did not arrive"))?;
    let body = body.ok_or_else(|| refused(413, "the form is too long"))?;
    serde_json::from_slice(&body).map_err(|_| refused(400, "the form is not valid JSON"))
}
