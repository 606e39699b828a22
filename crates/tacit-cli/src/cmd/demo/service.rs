//! The demo's second part: what the two did by hand, asked of a service with a policy, and proved afterwards.

use super::{KEY, PARTIES, Party, Process, check_same, this_command};
use crate::cli::Context;
use crate::cli::fault;
use crate::cli::output::name;
use indicatif::MultiProgress;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tacit::crypto::text::counted;
use tacit::{Error, Result};
use tacit_console::machine::terminate;

const SHOP: &Party = &PARTIES[0];
const INSURER: &Party = &PARTIES[1];
const POLICY: &str = "policy.toml";
const STATE: &str = "insurer.state";
const SHOP_RECORDS: &str = "shop.records";
const INSURER_RECORDS: &str = "insurer.state/records";
const OUTPUT: &str = "shop-suppress.csv";
const JOB: &str = "suppress";

/// The longest that a service which has nothing to do may take to come up, or to go.
const UP_OR_DOWN: Duration = Duration::from_secs(60);

/// What the second part found out.
pub(super) struct Outcome {
    /// For programs.
    pub object: Value,
    /// For people.
    pub text: String,
}

/// What an earlier demo's service may have left in `dir`.
pub(super) fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = [POLICY, OUTPUT].map(|file| dir.join(file)).into();
    files.push(dir.join(STATE).join("ledger"));
    for records in [SHOP_RECORDS, INSURER_RECORDS].map(|records| dir.join(records)) {
        files.extend(["records.jsonl", "private.jsonl", "lock"].map(|file| records.join(file)));
        let pending = std::fs::read_dir(records.join("pending")).into_iter().flatten().flatten();
        files.extend(pending.map(|entry| entry.path()));
    }
    files
}

/// Serves the insurer's file by a policy that lets the shop have each row once, asks for it twice, and checks
/// the result, the refusal and the records.
pub(super) fn run(
    context: &Context,
    dir: &Path,
    insurer_keys: &Value,
    bars: &MultiProgress,
) -> Result<Outcome> {
    let start = Instant::now();
    let address = crate::cmd::free_address()?;
    let policy = dir.join(POLICY);
    std::fs::write(&policy, rules(&address, insurer_keys))
        .map_err(|e| Error::file(&policy, "cannot be written; is the disk full?", e))?;
    let serve = ["serve", "--policy", POLICY];
    context.note(&format!("{}: tacit {}", INSURER.name, serve.join(" ")));
    let service = Service::start(dir, &serve)?;

    let asks = |more: &[&'static str]| -> Result<Process> {
        let own = ["request", JOB, "--connect", &address, "--identity", SHOP.key, "--peer", INSURER.public];
        let table = ["--input", SHOP.input, "--key", KEY];
        let words = [&own[..], &table[..], more].concat();
        context.note(&format!("{}: tacit {}", SHOP.name, words.join(" ")));
        Process::start(dir, SHOP.name, &words, bars)
    };
    let offer = asks(&["--dry-run"])?.finish()?;
    let result = asks(&["--yes", "--output", OUTPUT])?.finish()?;
    check_same(dir, OUTPUT, SHOP.output)?;
    let refused_by = refusal(&mut asks(&["--yes"])?)?;
    service.end()?;

    let verify = |whose: &Party, words: &[&str]| -> Result<Value> {
        let words = [&["audit", "verify"], words].concat();
        context.note(&format!("{}: tacit {}", whose.name, words.join(" ")));
        Process::start(dir, whose.name, &words, bars)?.finish()
    };
    let run = result["run"].as_str().unwrap_or_default();
    let theirs = ["--key", INSURER.public, "--against", SHOP_RECORDS, "--run", run, "--input", INSURER.input];
    let records = verify(INSURER, &[&[INSURER_RECORDS], &theirs[..]].concat())?;
    let ours = ["--key", SHOP.public, "--against", INSURER_RECORDS, "--run", run, "--input", SHOP.input];
    verify(SHOP, &[&[SHOP_RECORDS], &ours[..]].concat())?;

    let wall = start.elapsed();
    Ok(report(dir, &offer, &result, &refused_by, &records, wall))
}

/// The insurer's rules.
fn rules(address: &str, insurer_keys: &Value) -> String {
    let key: Vec<String> = KEY.split(',').map(|column| format!("\"{column}\"")).collect();
    format!(
        "# What the insurer lets the shop have; `tacit serve --policy {POLICY} --check` says it in words.
version = 1
listen = \"{address}\"
identity = \"{}\"
state = \"{STATE}\"

[peers.shop]
key = \"{}\"

[sources.customers]
input = \"{}\"
key = [{}]
rows_in_total = {insurer_keys}  # every row once: enough for one run

[jobs.{JOB}]
source = \"customers\"
allow = [\"shop\"]
reveal = [\"rows\"]
result = [\"peer\"]
max_peer_keys = 4_000_000
runs_a_day = 24
purpose = \"suppression of common customers\"
agreement = \"contract 2026-17, annex 2\"
",
        INSURER.key,
        SHOP.public,
        INSURER.input,
        key.join(", ")
    )
}

/// The rule by which the service refused a request that must be refused.
fn refusal(asked: &mut Process) -> Result<String> {
    let (status, _, error) = asked.end()?;
    if status.success() {
        return Err(Error::Other("the service granted a run that its budget does not allow".into()));
    }
    let rule = error.split("by its rule `").nth(1).and_then(|rest| rest.split('`').next());
    rule.map(str::to_owned).ok_or_else(|| asked.fault(&error))
}

fn report(
    dir: &Path,
    offer: &Value,
    result: &Value,
    refused_by: &str,
    records: &Value,
    wall: Duration,
) -> Outcome {
    let words = offer["words"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let terms: Vec<&str> = words.collect();
    let mut text = format!("By a service: the rules are in {}, and its offer was\n", name(&dir.join(POLICY)));
    terms.iter().for_each(|line| text += &format!("  {line}\n"));
    text += &format!(
        "{} for the shop, the same; asked again, the service refuses by its rule {refused_by}\n\
         {} record at either side, signed by both, of these two inputs; {:.2} s from start to end",
        counted(&result["matches"], "match"),
        records["signed_by_both"],
        wall.as_secs_f64()
    );
    let object = json!({
        "run": result["run"],
        "terms": terms,
        "matches": result["matches"],
        "checked": true,
        "refused_by": refused_by,
        "records": records["records"],
        "signed_by_both": records["signed_by_both"],
        "wall_ms": wall.as_secs_f64() * 1e3,
    });
    Outcome { object, text }
}

/// A `tacit serve` under way.
struct Service {
    child: Child,
    /// Its log; closed when it ended.
    events: Receiver<Value>,
    /// What it said on standard error.
    said: Option<JoinHandle<String>>,
}

impl Service {
    /// Starts it and waits until it listens.
    fn start(dir: &Path, words: &[&str]) -> Result<Self> {
        let mut child = Command::new(this_command()?)
            .current_dir(dir)
            .arg("--json")
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| Error::Other(format!("cannot start tacit serve: {e}")))?;
        let (send, events) = mpsc::channel();
        if let Some(out) = child.stdout.take() {
            std::thread::spawn(move || {
                let lines = BufReader::new(out).lines().map_while(std::result::Result::ok);
                // To the end of the stream, even when nobody listens: a full pipe would stop the service.
                lines.filter_map(|line| serde_json::from_str(&line).ok()).for_each(|event| {
                    let _ = send.send(event);
                });
            });
        }
        let said = child.stderr.take().map(|mut err| {
            std::thread::spawn(move || {
                let mut said = Vec::new();
                let _ = err.read_to_end(&mut said);
                String::from_utf8_lossy(&said).into_owned()
            })
        });
        let mut service = Service { child, events, said };
        let start = Instant::now();
        loop {
            match service.events.recv_timeout(UP_OR_DOWN.saturating_sub(start.elapsed())) {
                Ok(event) if event["event"] == "started" => return Ok(service),
                Ok(_) => {}
                Err(_) => return Err(service.fault("does not start")),
            }
        }
    }

    /// Ends it as an operator does, and waits for that.
    fn end(mut self) -> Result<()> {
        terminate(&self.child)?;
        let start = Instant::now();
        loop {
            match self.events.recv_timeout(UP_OR_DOWN.saturating_sub(start.elapsed())) {
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return Err(self.fault("does not end")),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let status = self.child.wait().map_err(|e| Error::Other(format!("{}: {e}", INSURER.name)))?;
        if status.success() { Ok(()) } else { Err(self.fault("failed")) }
    }

    /// What went wrong, with what the service said of it.
    fn fault(&mut self, what: &str) -> Error {
        let _ = self.child.kill();
        let said = self.said.take().and_then(|said| said.join().ok()).unwrap_or_default();
        Error::Other(format!("{}: the service {what}: {}", INSURER.name, fault::said(&said)))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // After a regular end there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
