//! Commands under way: this executable once more, started with a list of arguments and no shell, and followed by
//! what it prints.

use crate::folder::Folder;
use crate::form::Plan;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Options that change only how a command prints, which the page adds and does not show.
const FOR_THE_PAGE: [&str; 2] = ["--json", "--progress-objects"];
/// Commands under way at the same time.
const MOST_TASKS: usize = 16;
/// Ended commands without a folder that are remembered.
const TASKS_REMEMBERED: usize = 100;
/// Lines of results and of notes that are kept of each command, and bytes of a line.
const MOST_LINES_KEPT: usize = 300;
const LONGEST_PRINTED: u64 = 4 << 20;
/// How often a command is asked whether it has ended.
const ENDED: Duration = Duration::from_millis(20);
/// How long a command may take to end after an interrupt.
const INTERRUPT_TIME: Duration = Duration::from_secs(5);
/// How long the last lines of a command that has ended may take.
const READ_OUT: Duration = Duration::from_secs(2);
/// The file of a run that says what it was.
const ABOUT_FILE: &str = "run.json";

/// One command.
pub(crate) struct Task {
    id: u64,
    plan: Plan,
    /// The folder of a run.
    folder: Option<PathBuf>,
    state: Mutex<State>,
    /// Whether it has ended, and its folder says how.
    settled: AtomicBool,
}

struct State {
    started: u64,
    ended: Option<u64>,
    code: Option<i32>,
    child: Option<Child>,
    cancelled: Option<Instant>,
    progress: Option<Value>,
    /// For whom it waits, as it told last.
    waiting: Option<Value>,
    results: Vec<Value>,
    notes: Vec<String>,
    error: Option<Value>,
}

/// Milliseconds since 1970, as browsers count.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl Task {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.lock().ended.is_some()
    }

    /// The files that the page may show and save of it, by their names: those that its command writes.
    pub(crate) fn output(&self, name: &str) -> Option<PathBuf> {
        let known = self.plan.outputs.iter().any(|one| one == name);
        let path = self.folder.as_ref().filter(|_| known)?.join(name);
        path.is_file().then_some(path)
    }

    /// All that the page shows of it.
    pub(crate) fn told(&self) -> Value {
        let state = self.lock();
        let status = match (state.ended, state.code, state.cancelled) {
            (None, ..) => "running",
            (_, Some(0), _) => "done",
            (.., Some(_)) => "cancelled",
            _ => "failed",
        };
        let sizes = self.plan.outputs.iter().filter_map(|name| {
            let bytes = std::fs::metadata(self.folder.as_ref()?.join(name)).ok()?.len();
            Some(json!({ "name": name, "bytes": bytes }))
        });
        json!({
            "id": self.id, "kind": self.plan.kind, "command": self.plan.shown(), "about": self.plan.about,
            "started": state.started, "ended": state.ended, "status": status, "code": state.code,
            "progress": state.progress, "waiting": state.waiting, "results": state.results,
            "notes": state.notes, "error": state.error,
            "outputs": sizes.collect::<Vec<_>>(), "folder": self.folder,
        })
    }

    fn take_result(&self, line: String) {
        let result = serde_json::from_str(&line).unwrap_or(Value::String(line));
        keep(&mut self.lock().results, result);
    }

    fn take_note(&self, line: String) {
        let object: Option<Value> = serde_json::from_str(&line).ok();
        let mut state = self.lock();
        match object {
            Some(object) if object["progress"].is_object() => {
                state.progress = Some(object["progress"].clone())
            }
            Some(object) if object.get("waiting").is_some_and(|one| one.is_object() || one.is_null()) => {
                state.waiting = Some(object["waiting"].clone()).filter(Value::is_object);
            }
            Some(object) if object["error"].is_object() => state.error = Some(object["error"].clone()),
            _ => keep(&mut state.notes, line),
        }
    }

    /// Ends the command as Ctrl-C does.
    fn cancel(&self) {
        let mut state = self.lock();
        if state.cancelled.is_none() {
            state.cancelled = Some(Instant::now());
        }
        if let Some(child) = &mut state.child {
            interrupt(child);
        }
    }

    /// Waits for the exit code; a command that does not end after an interrupt is killed.
    fn code(&self) -> Option<i32> {
        loop {
            {
                let mut state = self.lock();
                let late = state.cancelled.is_some_and(|at| at.elapsed() > INTERRUPT_TIME);
                let child = state.child.as_mut()?;
                if late {
                    let _ = child.kill();
                }
                match child.try_wait() {
                    Ok(Some(status)) => return status.code(),
                    Ok(None) => {}
                    Err(_) => return None,
                }
            }
            std::thread::sleep(ENDED);
        }
    }

    fn finish(&self, code: Option<i32>) {
        // A key is replaced only by one that came.
        let replaced = if code == Some(0) { self.plan.replace() } else { Ok(()) };
        let mut state = self.lock();
        state.child = None;
        state.waiting = None;
        state.code = code;
        if let Err(error) = replaced {
            let message = format!("the new key arrived, but cannot replace the old one: {error}");
            state.error = Some(json!({ "code": 3, "blame": "input", "message": message }));
            state.code = Some(3);
        }
        state.ended = Some(now());
    }

    /// Whether it is under way with this file, by whatever path: as its input, its file of tags or its policy, or as a table
    /// that its policy names.
    fn uses(&self, file: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        let Some(wanted) = real(file).filter(|_| !self.is_over()) else { return false };
        let named = ["file", "tags", "policy"].iter().filter_map(|name| self.plan.about[*name].as_str());
        let is_named = named.map(Path::new).any(|path| real(path).as_ref() == Some(&wanted));
        let policy = self.plan.about["policy"].as_str().and_then(|path| std::fs::read_to_string(path).ok());
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        is_named || policy.is_some_and(|text| text.contains(name))
    }
}

/// Does `work` on a thread of its own; nothing where the system has none.
fn on_thread(work: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    std::thread::Builder::new().name("tacit-task".to_owned()).spawn(work).ok()
}

/// The last lines are kept.
fn keep<T>(lines: &mut Vec<T>, line: T) {
    if lines.len() >= MOST_LINES_KEPT {
        lines.remove(0);
    }
    lines.push(line);
}

#[cfg(unix)]
fn interrupt(child: &mut Child) {
    // It has not been waited for, so its number is its own still.
    if matches!(child.try_wait(), Ok(None))
        && let Some(pid) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw)
    {
        // The commands take it as they take Ctrl-C. An interrupt itself is ignored by what a script has started in the
        // background, and by all that this starts.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

#[cfg(not(unix))]
fn interrupt(child: &mut Child) {
    let _ = child.kill();
}

/// Each line of `from` to `take`; a line that is too long is left out.
fn each_line(from: impl Read, mut take: impl FnMut(String)) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut from).take(LONGEST_PRINTED).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if line.last() == Some(&b'\n') => {
                take(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            Ok(read) if (read as u64) < LONGEST_PRINTED => take(String::from_utf8_lossy(&line).into_owned()),
            Ok(_) => {}
        }
    }
}

/// All commands of a page.
pub(crate) struct Tasks {
    command: PathBuf,
    folder: Arc<Folder>,
    all: Mutex<(u64, BTreeMap<u64, Arc<Task>>)>,
}

impl Tasks {
    /// Commands that `command` runs. Earlier runs are read from the folder.
    pub(crate) fn new(command: PathBuf, folder: Arc<Folder>) -> Self {
        let mut earlier = BTreeMap::new();
        let numbers = folder.runs();
        for id in &numbers {
            if let Some(task) = remembered(*id, folder.run(*id)) {
                earlier.insert(*id, Arc::new(task));
            }
        }
        let last = numbers.first().copied().unwrap_or(0);
        Tasks { command, folder, all: Mutex::new((last, earlier)) }
    }

    fn lock(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, Arc<Task>>)> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, id: u64) -> Option<Arc<Task>> {
        self.lock().1.get(&id).cloned()
    }

    /// A line about each, the latest first.
    pub(crate) fn listed(&self) -> Vec<Value> {
        let all: Vec<Arc<Task>> = self.lock().1.values().rev().cloned().collect();
        let brief = |task: &Arc<Task>| {
            let mut told = task.told();
            if let Some(fields) = told.as_object_mut() {
                // Lines of other commands' results are long, and asked for one by one.
                let is_long = !matches!(task.plan.kind, "invite" | "join" | "run" | "request");
                ["notes", "progress", "waiting"].iter().for_each(|name| _ = fields.remove(*name));
                if is_long {
                    fields.remove("results");
                }
            }
            told
        };
        all.iter().map(brief).collect()
    }

    /// The number that the next command will have.
    fn next(&self) -> Result<u64, String> {
        let mut all = self.lock();
        if all.1.values().filter(|task| !task.is_over()).count() >= MOST_TASKS {
            return Err(format!(
                "{MOST_TASKS} commands are under way already; cancel one, or wait for one to end"
            ));
        }
        let old: Vec<u64> = all
            .1
            .iter()
            .filter(|(_, task)| task.folder.is_none() && task.is_over())
            .map(|(id, _)| *id)
            .collect();
        for id in old.iter().take(old.len().saturating_sub(TASKS_REMEMBERED)) {
            all.1.remove(id);
        }
        all.0 += 1;
        Ok(all.0)
    }

    /// Starts the command that `plan` makes of the folder of its run, if it is one.
    pub(crate) fn start(&self, plan: impl FnOnce(&Path) -> Result<Plan, String>) -> Result<u64, String> {
        let id = self.next()?;
        let mut plan = plan(&self.folder.run(id))?;
        let fault = |error: io::Error| format!("{}: {error}", self.folder.path().display());
        let folder = match plan.is_run() {
            true => Some(self.folder.make_run(id).map_err(fault)?),
            false => None,
        };
        plan.prepare();
        for (path, text) in std::mem::take(&mut plan.files) {
            self.folder.write(&path, text.as_bytes()).map_err(fault)?;
        }
        let child = Command::new(&self.command)
            .args(FOR_THE_PAGE.map(OsString::from).iter().chain(&plan.words))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child =
            child.map_err(|error| format!("{}: cannot be started: {error}", self.command.display()))?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let state = State {
            started: now(),
            ended: None,
            code: None,
            child: Some(child),
            cancelled: None,
            progress: None,
            waiting: None,
            results: Vec::new(),
            notes: Vec::new(),
            error: None,
        };
        let task =
            Arc::new(Task { id, plan, folder, state: Mutex::new(state), settled: AtomicBool::new(false) });
        write_about(&self.folder, &task);
        self.lock().1.insert(id, task.clone());
        let (folder, noted, printed) = (self.folder.clone(), task.clone(), task.clone());
        let readers = [
            on_thread(move || err.into_iter().for_each(|err| each_line(err, |line| noted.take_note(line)))),
            on_thread(move || {
                out.into_iter().for_each(|out| each_line(out, |line| printed.take_result(line)))
            }),
        ];
        let follower = task.clone();
        let started = on_thread(move || {
            let code = follower.code();
            // What it printed last is read; whoever it left behind may hold its pipes open for ever.
            let begin = Instant::now();
            while readers.iter().flatten().any(|one| !one.is_finished()) && begin.elapsed() < READ_OUT {
                std::thread::sleep(ENDED);
            }
            follower.finish(code);
            write_about(&folder, &follower);
            follower.settled.store(true, Ordering::SeqCst);
        });
        if started.is_none() {
            // Nobody could follow it.
            task.cancel();
            task.finish(None);
            task.settled.store(true, Ordering::SeqCst);
            return Err("no thread can be started; end other programs first".to_owned());
        }
        Ok(id)
    }

    /// Whether a command is under way with this file.
    pub(crate) fn uses(&self, file: &Path) -> bool {
        let all: Vec<Arc<Task>> = self.lock().1.values().cloned().collect();
        all.iter().any(|task| task.uses(file))
    }

    /// Ends the command with this number; whether there is one.
    pub(crate) fn cancel(&self, id: u64) -> bool {
        let found = self.get(id).filter(|task| !task.is_over());
        found.inspect(|task| task.cancel()).is_some()
    }

    /// Ends all that still run, and waits for that.
    pub(crate) fn end(&self) {
        let running = |tasks: &Tasks| -> Vec<Arc<Task>> {
            let is_settled = |task: &Arc<Task>| task.settled.load(Ordering::SeqCst);
            tasks.lock().1.values().filter(|task| !is_settled(task)).cloned().collect()
        };
        running(self).iter().for_each(|task| task.cancel());
        let begin = Instant::now();
        while !running(self).is_empty() && begin.elapsed() < INTERRUPT_TIME + INTERRUPT_TIME / 2 {
            std::thread::sleep(ENDED);
        }
    }
}

/// Writes down what a run was and how it ended.
fn write_about(folder: &Folder, task: &Task) {
    if let Some(path) = &task.folder {
        let told = task.told();
        // The run's result is there without it; only the history lacks a line then.
        let _ = folder.write(&path.join(ABOUT_FILE), told.to_string().as_bytes());
    }
}

/// A run of an earlier page.
fn remembered(id: u64, folder: PathBuf) -> Option<Task> {
    let file = std::fs::File::open(folder.join(ABOUT_FILE)).ok()?;
    let about: Value = serde_json::from_reader(BufReader::new(file.take(LONGEST_PRINTED))).ok()?;
    let plan = Plan::of_record(&about)?;
    let list = |name: &str| about[name].as_array().cloned().unwrap_or_default();
    let started = about["started"].as_u64()?;
    let was_cancelled = about["status"] == "cancelled";
    let unknown = json!({ "code": 1, "blame": "other", "message": "the page ended before this run did" });
    let is_known = about["ended"].is_u64();
    let state = State {
        started,
        ended: about["ended"].as_u64().or(Some(started)),
        code: about["code"].as_i64().and_then(|code| i32::try_from(code).ok()),
        child: None,
        cancelled: was_cancelled.then(Instant::now),
        progress: None,
        waiting: None,
        results: list("results"),
        notes: list("notes").iter().filter_map(|note| note.as_str().map(str::to_owned)).collect(),
        error: if is_known { Some(about["error"].clone()).filter(Value::is_object) } else { Some(unknown) },
    };
    Some(Task { id, plan, folder: Some(folder), state: Mutex::new(state), settled: AtomicBool::new(true) })
}
