//! What a service reads: its policy, requests, the ledger, records.

use crate::{Target, place, text};
use std::collections::HashSet;
use std::sync::OnceLock;
use tacit_net::Identity;
use tacit_serve::policy::Policy;
use tacit_serve::{audit, fuzzing, json};

pub(crate) const SERVE_TARGETS: &[Target] = &[
    Target {
        name: "policy",
        run: policy,
        longest: 4096,
        words: &[
            b"version",
            b"listen",
            b"identity",
            b"state",
            b"[peers.bob]",
            b"key",
            b"[sources.t]",
            b"input",
            b"rows_in_total",
            b"[jobs.rows]",
            b"source",
            b"allow",
            b"reveal",
            b"result",
            b"max_peer_keys",
            b"runs_a_day",
            b"hours",
            b"expires",
            b"daily 00:00-24:00",
            b"purpose",
            b"give",
            b"numbers",
            b"min_matches",
            b"[lookups.l]",
            b"publication",
            b"kind = \"question\"",
            b"columns",
            b"[jobs.j.questions.q]",
            b"sql",
            b"parameters.p",
            b"values",
        ],
    },
    Target {
        name: "message",
        run: fuzzing::message,
        longest: 4096,
        words: &[
            b"\"ask\":",
            b"\"offer\":",
            b"\"listed\":",
            b"\"reveal\":",
            b"payload:",
            b"sum:",
            b"over:3:",
            b"null",
        ],
    },
    Target {
        name: "http",
        run: fuzzing::head,
        longest: 512,
        words: &[b"GET ", b"HEAD ", b" HTTP/1.1", b"\x0d\x0aHost:"],
    },
    Target {
        name: "page-head",
        run: tacit_ui::fuzzing::head,
        longest: 1024,
        words: &[
            b"POST ",
            b" HTTP/1.1",
            b"\x0d\x0aHost:",
            b"\x0d\x0aContent-Length:",
            b"\x0d\x0aOrigin:",
            b"?id=",
            b"%2F",
        ],
    },
    Target {
        name: "ledger",
        run: ledger,
        longest: 4096,
        words: &[
            b"\"charge\":",
            b"\"since\":",
            b"\"account\":",
            b"\"day\":",
            b"\"same\":",
            b"18446744073709551615",
        ],
    },
    Target {
        name: "records",
        run: records,
        longest: 1 << 14,
        words: &[b"\"common\":", b"\"seal\":", b"\"digest\":", b"\"number\":"],
    },
    Target {
        name: "json",
        run: canonical,
        longest: 1024,
        words: &[b"\\u0000", b"9007199254740991", b"null", b"true"],
    },
    Target {
        name: "certificate",
        run: certificate,
        longest: 4096,
        words: &[b"\"chain\":", b"\"name\":", b"\"scheme\":", b"\"signature\":"],
    },
];

const SIGNED_RECORDS: [&str; 2] = [
    include_str!("../../tacit-serve/tests/records-1/service.jsonl"),
    include_str!("../../tacit-serve/tests/records-1/asker.jsonl"),
];

/// A policy whose service answers questions.
const POLICY_OF_QUESTIONS: &str = r#"version = 1
listen = "127.0.0.1:1"
identity = "a.key"
state = "state"
[peers.bob]
key = "bob.pub"
[sources.t]
input = "t.csv"
key = ["k"]
rows_in_total = 9
aggregate_runs = 9
min_difference = 3
[jobs.j]
kind = "question"
source = "t"
allow = ["bob"]
columns = ["k:join", "x:filter"]
result = ["peer"]
security = "semi-honest"
min_group = 2
max_peer_keys = 9
runs_a_day = 9
[jobs.j.questions.q]
sql = "SELECT COUNT(*) AS n FROM ours a JOIN theirs b ON a.k = b.k WHERE a.x > :p HAVING COUNT(*) >= 2"
parameters.p = { type = "decimal2", least = -1.5, most = 9 }
"#;

/// A policy beside the files that it names.
fn policy(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let somebody = Identity::of_secret("tacit 1 fuzzing", &[7; 32]).expect("a seed is a key");
    let path = place::file("bob.pub", somebody.public().line("bob").as_bytes());
    let folder = path.parent().unwrap_or(&path);
    match Policy::parse(text, folder) {
        Ok(policy) => assert!(Policy::parse(text, folder).is_ok_and(|again| again == policy)),
        Err(faults) => assert!(!faults.is_empty(), "a policy is refused for nothing"),
    }
}

fn ledger(bytes: &[u8]) {
    if let Some(text) = text(bytes) {
        fuzzing::ledger(text);
    }
}

/// A chain of records: of those that nobody signed here none passes.
fn records(bytes: &[u8]) {
    static SIGNED: OnceLock<HashSet<&str>> = OnceLock::new();
    let Some(text) = text(bytes) else { return };
    let signed = SIGNED.get_or_init(|| SIGNED_RECORDS.iter().flat_map(|chain| chain.lines()).collect());
    let is_digest = |line: &str| line.starts_with("{\"digest\":");
    if audit::verify_chain(text).is_ok() {
        let forged = text.lines().find(|line| !signed.contains(line) && !is_digest(line));
        assert!(forged.is_none(), "a record passes that nobody signed");
    }
    for line in text.lines().filter(|line| !signed.contains(line)) {
        assert!(audit::verify(line).is_err(), "a record passes that nobody signed");
    }
}

/// JSON that is read in its one form alone.
fn canonical(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    if let Ok(value) = json::read_canonical(text) {
        assert!(json::canonical(&value).is_ok_and(|again| again == text));
    }
}

fn certificate(bytes: &[u8]) {
    if let Some(text) = text(bytes) {
        fuzzing::certificate(text);
    }
}

pub(crate) fn whole() -> Vec<(&'static str, Vec<u8>)> {
    let named = |name| match name {
        "head" => "http",
        name => name,
    };
    let mut out: Vec<_> = fuzzing::seeds().into_iter().map(|(name, bytes)| (named(name), bytes)).collect();
    out.extend(SIGNED_RECORDS.iter().map(|chain| ("records", chain.as_bytes().to_vec())));
    out.push(("policy", POLICY_OF_QUESTIONS.as_bytes().to_vec()));
    let head = b"POST /api/upload?name=a%20b HTTP/1.1\r\nHost: localhost:7790\r\nContent-Length: 7\r\n\r\n";
    out.push(("page-head", head.to_vec()));
    out.push(("json", br#"{"a":[1,-2,null,true],"b":"\u00e9\n"}"#.to_vec()));
    out.push((
        "certificate",
        br#"{"chain":["30820122"],"name":"alice","scheme":2055,"signature":"00"}"#.to_vec(),
    ));
    out
}
