//! A page for the operator: what runs, who asks, what is left of the budgets, what was refused, the records.
//!
//! It is read-only and for this machine alone: it listens at loopback, answers `GET` and `HEAD`, and refuses
//! requests that name another host (DNS rebinding). The page and its icon are files in the binary and load
//! nothing from elsewhere; what it shows comes as JSON from `/data.json`. It holds what the log, the ledger
//! and the records hold, and never a row or a key of a table.

use crate::board::{Board, MINUTES, Seen, Work};
use crate::clock::Time;
use crate::file::shown;
use crate::follow::Follower;
use crate::http::{self, Answer, Port, Question};
use crate::ledger::Charge;
use crate::policy::Policy;
use crate::records::RECORDS;
use crate::visit::House;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What the page may load: its own files, and nothing into a frame.
const GUARD: &str = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'\r\nCross-Origin-Resource-Policy: same-origin\r\n\
    Cross-Origin-Opener-Policy: same-origin\r\nReferrer-Policy: no-referrer\r\n";
/// The same of a file that the browser stores and does not show.
const SAVED: &str = "Content-Security-Policy: default-src 'none'\r\n\
    Content-Disposition: attachment; filename=\"records.jsonl\"\r\nCross-Origin-Resource-Policy: same-origin\r\n";
/// The longest chain that is handed out.
const MOST_RECORDS: u64 = 64 << 20;
/// Jobs that are shown.
const SHOWN_JOBS: usize = 300;
const HTML: &str = "text/html; charset=utf-8";
/// How long an answer is given again: asking more often costs the service nothing.
const FRESH: Duration = Duration::from_millis(500);
/// Budgets that are shown; a policy may have thousands.
const MOST_BUDGETS: usize = 300;

/// What the page shows, and where that comes from.
pub(crate) struct Dashboard {
    house: Arc<House>,
    board: Arc<Board>,
    latest: Mutex<Latest>,
}

struct Latest {
    records: Follower,
    told: Option<(Instant, String)>,
}

impl Dashboard {
    pub(crate) fn new(house: Arc<House>, board: Arc<Board>) -> Self {
        let records = Follower::new(house.policy().state.join("records").join(RECORDS));
        Dashboard { house, board, latest: Mutex::new(Latest { records, told: None }) }
    }

    /// Answers at `port`, on the calling thread, until `over`.
    pub(crate) fn answer(&self, port: &Port, over: &AtomicBool) {
        http::answer(port, over, &|asked| self.respond(asked));
    }

    fn respond(&self, asked: &Question) -> Answer {
        if !asked.is_for_this_machine() {
            let no = "this page is only for this machine: open it as localhost or 127.0.0.1\n";
            return Answer::text("421 Misdirected Request", no);
        }
        let answer = |kind, body| Answer { kind, more: GUARD, ..Answer::text("200 OK", body) };
        match asked.target.as_str() {
            "/" => answer(HTML, include_str!("dashboard/page.html")),
            "/page.css" => answer("text/css; charset=utf-8", include_str!("dashboard/page.css")),
            "/page.js" => answer("text/javascript; charset=utf-8", include_str!("dashboard/page.js")),
            "/icon.svg" => answer("image/svg+xml", include_str!("dashboard/icon.svg")),
            "/records.jsonl" => self.records(),
            "/data.json" => {
                Answer { kind: "application/json", more: GUARD, ..Answer::text("200 OK", self.data()) }
            }
            _ => Answer {
                more: GUARD,
                ..Answer::text("404 Not Found", "there are /, /data.json and /records.jsonl\n")
            },
        }
    }

    /// The chain of records as a file to save: it holds no row, and nothing that opens a commitment.
    fn records(&self) -> Answer {
        let path = self.house.policy().state.join("records").join(RECORDS);
        let mut text = String::new();
        let read = File::open(&path).and_then(|file| file.take(MOST_RECORDS + 1).read_to_string(&mut text));
        match read {
            Ok(n) if n as u64 <= MOST_RECORDS => {
                Answer { kind: "application/jsonl", more: SAVED, ..Answer::text("200 OK", text) }
            }
            Ok(_) => {
                let why = format!("the records are longer than this page hands out; copy {}\n", shown(&path));
                Answer { more: GUARD, ..Answer::text("413 Content Too Large", why) }
            }
            Err(_) => {
                Answer { more: GUARD, ..Answer::text("404 Not Found", "no run has been recorded yet\n") }
            }
        }
    }

    /// All that is shown, as JSON.
    fn data(&self) -> String {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, told)) = &latest.told
            && at.elapsed() < FRESH
        {
            return told.clone();
        }
        latest.records.look();
        let told = self.state(&latest.records).to_string();
        latest.told = Some((Instant::now(), told.clone()));
        told
    }

    fn state(&self, records: &Follower) -> Value {
        let policy = self.house.policy();
        let budgets = self.budgets(&policy);
        let now = Time::now();
        let seen = self.board.seen();
        let more = budgets.len().saturating_sub(MOST_BUDGETS);
        json!({
            "service": self.service(&policy, &seen, now),
            "now": {
                "connections": self.house.slots.visits(),
                "running": seen.runs.iter().filter(|run| run.state == "granted").count(),
                "offered": seen.runs.iter().filter(|run| run.state == "offered").count(),
                "concurrency": policy.concurrency,
                "memory": self.house.slots.memory_held(),
            },
            "throughput": throughput(&seen, now),
            "jobs": policy.gates().take(SHOWN_JOBS).map(|(name, gate)| json!({
                "job": name, "purpose": gate.purpose, "agreement": gate.agreement, "hours": gate.hours_text,
                "expires": gate.expires.as_ref().map(|(day, _)| day),
                "peers": policy.peers.keys().filter(|peer| gate.allows(peer)).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "budgets": budgets.into_iter().take(MOST_BUDGETS).collect::<Vec<_>>(),
            "more_budgets": more,
            "runs": seen.runs.iter().rev().map(run).collect::<Vec<_>>(),
            "peers": peers(&policy, &seen),
            "refusals": {
                "rules": seen.rules.iter().map(|(rule, (count, last))| {
                    json!({ "rule": rule, "count": count, "last": last.map(Time::text) })
                }).collect::<Vec<_>>(),
                "latest": seen.refusals.iter().rev().map(|one| json!({
                    "time": one.time.text(), "run": one.run, "peer": one.peer, "job": one.job,
                    "rule": one.rule, "words": one.words,
                })).collect::<Vec<_>>(),
            },
            "records": {
                "count": records.count,
                "head": records.head(),
                "outcomes": records.outcomes,
                "latest": records.latest.iter().rev().map(|record| json!({
                    "number": record.number, "run": record.run, "job": record.job,
                    "started": record.started.map(Time::text), "outcome": record.outcome,
                    "signatures": record.signatures,
                })).collect::<Vec<_>>(),
            },
        })
    }

    fn service(&self, policy: &Policy, seen: &Seen, now: Time) -> Value {
        json!({
            "release": env!("CARGO_PKG_VERSION"),
            "state": if self.house.draining.load(Ordering::SeqCst) { "draining" } else { "open" },
            "listen": policy.listen,
            "fingerprint": self.house.identity.public().fingerprint(),
            "state_folder": shown(&policy.state),
            "now": now.text(),
            "started": seen.started.map(Time::text),
            "policy_read": seen.policy_read.map(Time::text),
            "policy_faults": seen.faults,
        })
    }

    /// What each peer has spent of each budget, by peer and job.
    fn budgets(&self, policy: &Policy) -> Vec<Value> {
        let mut found = Vec::new();
        let mut sources = BTreeSet::new();
        let ledger = self.house.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let time = ledger.now((self.house.clock)()).0;
        for (peer, known) in &policy.peers {
            for (name, lookup) in policy.lookups.iter().filter(|(_, lookup)| lookup.gate.allows(peer)) {
                if found.len() >= MOST_BUDGETS * 2 {
                    return found;
                }
                // The job's latest charge says which publication it is.
                let publication = ledger.latest_source(name).unwrap_or_default().to_owned();
                let place = (publication.as_str(), publication.clone());
                let account = (peer.as_str(), known.account());
                let spent = ledger.spent(&Charge::nothing(time, name, place, account));
                let budgets = [
                    ("runs_a_day", spent.runs_today, lookup.gate.runs_a_day),
                    ("queries_in_total", spent.rows, lookup.queries_in_total),
                ];
                let of = format!("job {name}");
                found.extend(budgets.map(|(budget, used, most)| {
                    json!({ "peer": peer, "of": of, "budget": budget, "used": used, "most": most })
                }));
            }
            for (name, gate, of_source) in policy.sourced().filter(|(_, gate, _)| gate.allows(peer)) {
                let Some(source) = policy.sources.get(of_source) else { continue };
                if found.len() >= MOST_BUDGETS * 2 {
                    return found;
                }
                let (place, account) = ((of_source, source.place()), (peer.as_str(), known.account()));
                let spent = ledger.spent(&Charge::nothing(time, name, place, account));
                let mut tell = |of: String, budget: &str, used: u64, most: u64| {
                    found.push(
                        json!({ "peer": peer, "of": of, "budget": budget, "used": used, "most": most }),
                    );
                };
                tell(format!("job {name}"), "runs_a_day", spent.runs_today, gate.runs_a_day);
                if sources.insert((peer.clone(), of_source.to_owned())) {
                    let of = format!("source {of_source}");
                    let totals = [
                        ("rows_in_total", spent.rows, source.rows_in_total),
                        ("aggregate_runs", spent.aggregates, source.aggregate_runs),
                        // In millionths, as all numbers here are whole.
                        ("epsilon_millionths", spent.epsilon, source.epsilon_in_total.unwrap_or(0)),
                        // No budget: how many were broken off after they began.
                        ("broken_runs", spent.broken, 0),
                    ];
                    for (budget, used, most) in totals {
                        if most > 0 || used > 0 {
                            tell(of.clone(), budget, used, most);
                        }
                    }
                }
            }
        }
        found
    }
}

fn run(run: &crate::board::Run) -> Value {
    let figures = run.figures;
    json!({
        "run": run.run,
        "peer": run.peer,
        "job": run.job,
        "began": run.began.text(),
        "ended": run.ended.map(Time::text),
        "state": run.state,
        "words": run.words,
        "client_keys": figures.client_keys,
        "service_keys": figures.service_keys,
        "most_rows": figures.most_rows,
        "milliseconds": figures.milliseconds,
        "sent": figures.sent,
        "received": figures.received,
    })
}

fn peers(policy: &Policy, seen: &Seen) -> Vec<Value> {
    let named = policy.peers.iter().map(|(label, peer)| {
        let jobs: Vec<&str> =
            policy.gates().filter(|(_, gate)| gate.allows(label)).map(|(name, _)| name).collect();
        (label, Some(peer.shown()), jobs)
    });
    // Those that the policy does not name any more.
    let gone = seen.peers.keys().filter(|label| !policy.peers.contains_key(*label));
    let gone = gone.map(|label| (label, None, Vec::new()));
    let all = named.chain(gone).map(|(label, fingerprint, jobs)| {
        let tally = seen.peers.get(label).cloned().unwrap_or_default();
        json!({
            "peer": label,
            "fingerprint": fingerprint,
            "jobs": jobs,
            "granted": tally.granted,
            "done": tally.done,
            "failed": tally.failed,
            "refused": tally.refused,
            "sent": tally.sent,
            "received": tally.received,
            "last": tally.last.map(Time::text),
        })
    });
    all.collect()
}

fn throughput(seen: &Seen, now: Time) -> Value {
    let last = now.0 / 60;
    let of = |work: &Work| json!({ "done": work.done, "refused": work.refused, "bytes": work.bytes });
    let mut hour = Work::default();
    let mut minutes = Vec::new();
    for minute in (last + 1).saturating_sub(MINUTES)..=last {
        let work = seen.minutes.get(&minute).copied().unwrap_or_default();
        hour.done += work.done;
        hour.refused += work.refused;
        hour.bytes += work.bytes;
        let mut one = of(&work);
        one["time"] = json!(Time(60 * minute).text());
        minutes.push(one);
    }
    json!({ "minutes": minutes, "hour": of(&hour), "total": of(&seen.total) })
}
