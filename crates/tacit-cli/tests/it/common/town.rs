//! A service and those who ask it, as real processes.

use super::{Bench, Said, free_port, is_other_build};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// A service that runs, and what its log said.
pub(crate) struct Service {
    pub child: Option<Child>,
    log: Arc<Mutex<Vec<Value>>>,
}

impl Service {
    pub(crate) fn start(bench: &Bench) -> Self {
        Self::start_with(bench, &[])
    }

    pub(crate) fn start_with(bench: &Bench, more: &[&str]) -> Self {
        let words = [&["--json", "serve", "--policy", "policy.toml"], more].concat();
        let mut child = bench.spawn(&words);
        let log: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (out, theirs) = (child.stdout.take().unwrap(), log.clone());
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                theirs.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        let mut service = Service { child: Some(child), log };
        service.wait_for("started", 1);
        service
    }

    pub(crate) fn events(&self, what: &str) -> Vec<Value> {
        self.log.lock().unwrap().iter().filter(|event| event["event"] == what).cloned().collect()
    }

    /// Waits until the log has told of `what` so many times.
    pub(crate) fn wait_for(&mut self, what: &str, times: usize) {
        let start = Instant::now();
        while self.events(what).len() < times {
            let ended = self.child.as_mut().is_some_and(|child| child.try_wait().unwrap().is_some());
            if ended && self.events(what).len() < times {
                // What it wrote last may not have been read yet.
                thread::sleep(Duration::from_secs(1));
            }
            if start.elapsed() > PATIENCE || ended && self.events(what).len() < times {
                let mut said = String::new();
                if let Some(mut child) = self.child.take() {
                    let _ = child.kill();
                    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
                }
                panic!("no {what}: {:?} {said}", self.log.lock().unwrap());
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub(crate) fn signal(&self, name: &str) {
        // Wine ends a process at once at other signals; this one it passes on, as Ctrl-C.
        let name = if is_other_build() && name == "-TERM" { "-INT" } else { name };
        let sent = Command::new("kill").args([name, &self.pid().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Ends it as an operator does; it must end well.
    pub(crate) fn end(mut self) -> Vec<Value> {
        self.signal("-TERM");
        let mut child = self.child.take().unwrap();
        let start = Instant::now();
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None if start.elapsed() > PATIENCE => {
                    let _ = child.kill();
                    panic!("it does not end: {:?}", self.log.lock().unwrap());
                }
                None => thread::sleep(Duration::from_millis(5)),
            }
        };
        assert_eq!(status.code(), Some(0), "{:?}", self.log.lock().unwrap());
        let log = self.log.lock().unwrap();
        log.clone()
    }

    pub(crate) fn kill(mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub(crate) fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A table of keys `user0`, `user1` … and a column of numbers.
pub(crate) fn table(head: &str, numbers: impl Iterator<Item = u32>) -> String {
    let mut text = format!("{head},amount\n");
    numbers.for_each(|number| writeln!(text, "user{number}@example.com,{number}").unwrap());
    text
}

/// Alice serves, Bob and Carol are known to her, Dave is not.
pub(crate) struct Town {
    pub bench: Bench,
    pub port: u16,
}

impl Town {
    pub(crate) fn new() -> Self {
        let bench = Bench::new();
        for name in ["alice.key", "bob.key", "carol.key", "dave.key"] {
            bench.run(&["keygen", "--out", name]).success();
        }
        // 40 keys here, 30 there, 20 of them common.
        bench.write("customers.csv", table("email", 0..40));
        bench.write("kunden.csv", table("mail", 20..50));
        Town { bench, port: free_port() }
    }

    /// The head of a policy, a source `customers` with `source` in it, and `jobs`.
    pub(crate) fn policy(&self, head: &str, source: &str, jobs: &str) {
        let text = format!(
            "version = 1\nlisten = \"127.0.0.1:{}\"\nidentity = \"alice.key\"\nstate = \"state\"\n{head}\n\
             [peers.bob]\nkey = \"bob.pub\"\n[peers.carol]\nkey = \"carol.pub\"\n\
             [sources.customers]\ninput = \"customers.csv\"\nkey = [\"email\"]\n{source}\n{jobs}",
            self.port
        );
        self.bench.write("policy.toml", text);
    }

    pub(crate) fn asking(&self, who: &str, job: &str, more: &[&str]) -> Vec<String> {
        let (address, key) = (format!("127.0.0.1:{}", self.port), format!("{who}.key"));
        let own =
            ["--json", "request", job, "--connect", &address, "--identity", &key, "--peer", "alice.pub"];
        let mut all: Vec<String> = own.map(str::to_owned).to_vec();
        let given = |option: &str| more.contains(&option) || option == "--input" && more.contains(&"--value");
        for (option, value) in [("--input", "kunden.csv"), ("--key", "mail"), ("--connect-timeout", "20")] {
            // A question names its key.
            let is_question = ["--sql", "--sql-file", "--question"].iter().any(|word| more.contains(word));
            let is_named = option == "--key" && is_question;
            if !given(option) && !is_named {
                all.extend([option.to_owned(), value.to_owned()]);
            }
        }
        if !given("--dry-run") && !given("--ask") {
            all.push("--yes".to_owned());
        }
        all.extend(more.iter().filter(|word| **word != "--ask").map(|word| word.to_string()));
        all
    }

    pub(crate) fn ask(&self, who: &str, job: &str, more: &[&str]) -> Said {
        let words = self.asking(who, job, more);
        self.bench.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// A run that must be granted; its result.
    pub(crate) fn granted(&self, who: &str, job: &str, more: &[&str]) -> Value {
        let said = self.ask(who, job, more);
        serde_json::from_str(said.success()).unwrap_or_else(|e| panic!("{e}: {said:?}"))
    }

    /// A request that must be refused by `rule`; the whole message.
    pub(crate) fn refused(&self, who: &str, job: &str, rule: &str, more: &[&str]) -> String {
        let said = self.ask(who, job, more);
        said.fails_with(4, &["the service refuses, by its rule", &format!("`{rule}`")]);
        let error: Value = serde_json::from_str(said.error_line()).unwrap();
        let message = error["error"]["message"].as_str().unwrap();
        // The run's name, which is another each time, is what both sides can talk about.
        let (message, run) = message.split_once(" (its log calls this run ").unwrap();
        assert_eq!(run.len(), 33, "{run}");
        message.to_owned()
    }

    pub(crate) fn verify(&self, whose: &str, more: &[&str]) -> Value {
        let said = self.bench.run(&[&["--json", "audit", "verify", whose], more].concat());
        serde_json::from_str(said.success()).unwrap()
    }
}

/// What the sources of these tests may reveal: more than any test takes.
pub(crate) const BUDGETS: &str = "rows_in_total = 1_000_000\naggregate_runs = 1000\n";
pub(crate) const MATCH: &str = "[jobs.match]\nsource = \"customers\"\nallow = [\"bob\"]\nreveal = [\"rows\", \"payload\"]\n\
    result = [\"peer\"]\ngive = [\"amount\"]\nmax_peer_keys = 1_000_000\nruns_a_day = 1000\n";
