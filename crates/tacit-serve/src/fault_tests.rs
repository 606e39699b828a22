//! What goes wrong on one side: tables that change, results and records that cannot be written, clocks that differ,
//! runs without an end, and sizes beyond the policy. Each side is a real one; nothing but the fault is made up.

use crate::audit;
use crate::policy::Policy;
use crate::records::Records;
use crate::request::{self, Ask};
use crate::terms::Side;
use crate::tests::{Here, id, listed};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tacit::data::csv::Options as Dialect;
use tacit::data::table::Source;
use tacit::job::psi::{Duplicates, Learns, Own, Reveal};
use tacit::net::Identity;

/// A request of Bob's for a job, which gives what is asked for; `between` happens once the offer is there. Whether
/// both have signed.
fn requested(here: &Here, job: &str, between: impl FnOnce()) -> tacit::Result<bool> {
    let ask = Ask { job: job.into(), ..Here::ask() };
    let offered = loop {
        match request::ask(here.connect(), &ask, &here.bob) {
            // The place of the run before is free a moment after the log has told of it.
            Err(error) if error.to_string().contains("`concurrency`") => {
                std::thread::sleep(Duration::from_millis(5))
            }
            offered => break offered?,
        }
    };
    between();
    let job = offered.job(&id())?;
    let path = here.folder.path().join("ours.csv");
    let source = Source::open_pinned(&path, id(), Dialect::default())?;
    let own = Own::read(source, &path, &job, |_| ())?;
    let gift = own.gift(&job, Duplicates::First)?;
    let (records, _) = Records::open(&here.folder.path().join("bob"), &here.bob, Side::Client)?;
    let ours = (own.keys(), gift.borrowed());
    let mut done = offered.run(&job, &own.digest()?, ours, (&here.bob, &records), &())?;
    done.record()
}

fn table(rows: std::ops::Range<u32>, head: &str, cell: impl Fn(u32) -> String) -> String {
    rows.fold(format!("id,{head}\n"), |text, id| text + &format!("{id},{}\n", cell(id)))
}

const GIVES: &str = "[jobs.gives]\nsource = \"table\"\nallow = [\"bob\"]\nreveal = [\"payload\"]\nresult = [\"peer\"]\n\
    give = [\"amount\"]\nmax_peer_keys = 1000\nruns_a_day = 9\n";
const TAKES: &str = "[jobs.takes]\nsource = \"table\"\nallow = [\"bob\"]\nreveal = [\"payload:note\"]\nresult = [\"me\"]\n\
    max_peer_keys = 1000\nruns_a_day = 9\noutput = \"results\"\n";

/// The table is another one by the time that the offer is accepted: the run is of the one whose keys were read, and
/// so is the record.
#[test]
fn a_record_commits_to_the_table_whose_keys_were_read() {
    let here = Here::start(GIVES);
    let path = here.folder.path().join("table.csv");
    let read = std::fs::read(&path).unwrap();
    assert!(requested(&here, "match", || std::fs::write(&path, "id\n1\n").unwrap()).unwrap());
    here.wait_for("done", 1);
    let state = here.folder.path().join("state/records");
    let record = listed(audit::load(&state).unwrap())[0].clone();
    assert!(!audit::opens_input(&state, &record, std::slice::from_ref(&path)).unwrap());
    std::fs::write(&path, &read).unwrap();
    assert!(audit::opens_input(&state, &record, std::slice::from_ref(&path)).unwrap());

    // Other cells beside the same keys, before they are given.
    let amounts = |more: u32| table(0..40, "amount", move |id| (id + more).to_string());
    std::fs::write(&path, amounts(0)).unwrap();
    let error =
        requested(&here, "gives", || std::fs::write(&path, amounts(1)).unwrap()).unwrap_err().to_string();
    assert!(error.contains("`source`"), "{error}");
    let refused = here.wait_for("refused", 1);
    assert!(refused.words.contains("the file changed"), "{refused:?}");
    assert!(requested(&here, "gives", || ()).unwrap());
    here.end();
}

/// The folder for the service's results is none any more once both sides have signed: the run is complete, with the
/// client's signature, and the client is charged with nothing.
#[test]
fn a_result_that_cannot_be_stored_is_no_fault_of_the_client() {
    let first =
        |text: String| text.replace("concurrency_per_peer", "unsigned_runs_a_day = 1\nconcurrency_per_peer");
    let here = Here::start_changed(TAKES, first);
    std::fs::write(here.folder.path().join("ours.csv"), table(20..50, "note", |id| format!("n{id}")))
        .unwrap();
    std::fs::write(here.folder.path().join("results"), "a file where the folder was").unwrap();
    assert!(requested(&here, "takes", || ()).unwrap());
    let told = here.wait_for("not stored", 1);
    assert!(told.level() == tracing::Level::ERROR && told.words.contains("results"), "{told:?}");
    here.wait_for("done", 1);
    std::fs::remove_file(here.folder.path().join("results")).unwrap();
    assert!(requested(&here, "takes", || ()).unwrap());
    here.wait_for("done", 2);
    assert_eq!(std::fs::read_dir(here.folder.path().join("results")).unwrap().count(), 1);
    let found = listed(audit::load(&here.folder.path().join("state/records")).unwrap());
    let ends: Vec<_> = found.iter().map(|record| (record.outcome(), record.both_signed)).collect();
    assert_eq!(ends, [("complete", true); 2]);
    let events = here.end();
    assert!(
        !events.iter().any(|event| matches!(event.what, "broken off" | "unsigned" | "failed")),
        "{events:?}"
    );
}

/// The chain of records cannot be written when a run ends, on either side: the next start records it, with both
/// signatures.
#[test]
fn what_both_have_signed_is_recorded_once_that_works_again() {
    let here = Here::start("");
    let at = |name: &str| here.folder.path().join(name);
    let blocks = ["state/records/private.jsonl", "bob/private.jsonl"].map(at);
    std::fs::create_dir_all(&blocks[1]).unwrap();
    let error = requested(&here, "match", || std::fs::create_dir(&blocks[0]).unwrap()).unwrap_err();
    assert!(error.to_string().contains("private.jsonl"), "{error}");
    let failed = here.wait_for("failed", 1);
    assert!(failed.words.contains("private.jsonl"), "{failed:?}");
    let (folder, bob, alice) = (here.folder.path().to_owned(), here.bob.clone(), here.alice);
    assert!(!here.events.lock().unwrap().iter().any(|event| matches!(event.what, "broken off" | "unsigned")));
    let _keep = (here.signals.send(crate::server::Signal::Drain), here.thread.join());
    blocks.iter().for_each(|block| std::fs::remove_dir(block).unwrap());
    let own = Identity::load(&folder.join("alice.key")).unwrap();
    assert_eq!(own.public(), alice);
    for (whose, identity, side) in [("state/records", &own, Side::Service), ("bob", &bob, Side::Client)] {
        assert_eq!(Records::open(&folder.join(whose), identity, side).unwrap().1, 0, "interrupted");
        let found = listed(audit::load(&folder.join(whose)).unwrap());
        assert_eq!((found.len(), found[0].outcome(), found[0].both_signed), (1, "complete", true), "{whose}");
    }
    let [one, other] = ["state/records", "bob"].map(|whose| audit::load(&folder.join(whose)).unwrap());
    assert_eq!(crate::tests::compare(&one, &other).unwrap(), 1);
}

/// A record has the service's time alone, so the client looks at it before it signs.
#[test]
fn a_client_signs_no_run_that_began_at_another_hour() {
    let here = Here::start("");
    for (times, ahead) in [7200, -7200].into_iter().enumerate() {
        here.ahead.store(ahead, Ordering::SeqCst);
        let error = requested(&here, "match", || ()).unwrap_err().to_string();
        assert!(error.contains("more than an hour apart"), "{error}");
        here.wait_for("refunded", times + 1);
    }
    here.ahead.store(1800, Ordering::SeqCst);
    assert!(requested(&here, "match", || ()).unwrap());
    here.end();
}

/// A client that keeps every message's deadline, and never comes to an end.
#[test]
fn a_run_as_a_whole_has_an_end() {
    let short =
        |text: String| text.replace("concurrency_per_peer", "whole_run_seconds = 2\nconcurrency_per_peer");
    let here = Here::start_changed("", short);
    let session = here.begin_run("match");
    let failed = here.wait_for("failed", 1);
    assert!(failed.words.contains("the time that it was given"), "{failed:?}");
    drop(session);
    here.wait_for("broken off", 1);
    assert!(requested(&here, "match", || ()).unwrap());
    here.end();
}

/// What a client sends for each of its keys is bounded by the policy, and not by what is usual.
#[test]
fn the_policy_bounds_what_a_client_sends_for_a_key() {
    let here = Here::start(&format!("{TAKES}max_cell = 64\n"));
    let ours = |wide: usize| {
        let text = table(20..50, "note", |_| "x".repeat(wide));
        std::fs::write(here.folder.path().join("ours.csv"), text).unwrap();
    };
    ours(40);
    assert!(requested(&here, "takes", || ()).unwrap());
    ours(200);
    assert!(requested(&here, "takes", || ()).is_err());
    let failed = here.wait_for("failed", 1);
    assert!(failed.words.contains("64"), "{failed:?}");
    here.end();
}

/// Bytes that a service has for its runs.
static ROOM: AtomicU64 = AtomicU64::new(u64::MAX);

/// Rows that match are held in what a run's keys leave of the memory.
#[test]
fn rows_of_a_client_are_held_in_the_memory_that_is_left() {
    let here = Here::start_with(TAKES, || Some(ROOM.load(Ordering::SeqCst)));
    let text = table(20..50, "note", |id| "x".repeat(50_000 + id as usize));
    std::fs::write(here.folder.path().join("ours.csv"), text).unwrap();
    let policy = Policy::load(&here.folder.path().join("policy.toml")).unwrap();
    let (job, source) = (&policy.jobs["takes"], &policy.sources["table"]);
    let run = job.run(source, &Reveal::Payload(vec!["note".into()]), Learns::Me, &[]);
    let needed = run.memory(40, 30);
    ROOM.store(needed + 200_000, Ordering::SeqCst);
    assert!(requested(&here, "takes", || ()).is_err());
    let failed = here.wait_for("failed", 1);
    assert!(failed.words.contains("memory") || failed.words.contains("bytes"), "{failed:?}");
    ROOM.store(needed + (64 << 20), Ordering::SeqCst);
    assert!(requested(&here, "takes", || ()).unwrap());
    here.end();
}

/// Nothing limits the memory of runs: the log says so once, and says nothing where the system or the policy has a limit.
#[test]
fn memory_without_a_limit_is_told() {
    let limit = "state = \"state\"\nmemory_mib = 64\n";
    let told =
        |here: Here| here.end().into_iter().filter(|event| event.what == "unbounded").collect::<Vec<_>>();
    let [event] = &told(Here::start(""))[..] else { panic!("no event, or several") };
    assert!(event.words.contains("`memory_mib`") && event.level() == tracing::Level::WARN, "{event:?}");
    assert!(told(Here::start_with("", || Some(u64::MAX))).is_empty());
    assert!(told(Here::start_changed("", |text| text.replace("state = \"state\"\n", limit))).is_empty());
}

/// A row of two mebibytes, in a source that takes one.
#[test]
fn a_source_bounds_its_rows() {
    let long = |text: String| text.replace("key = [\"id\"]\n", "key = [\"id\"]\nmax_row_mib = 1\n");
    let here = Here::start_changed("", long);
    let path = here.folder.path().join("table.csv");
    let write = |path: &Path, bytes: usize| {
        std::fs::write(path, table(0..40, "note", |id| "x".repeat(if id == 7 { bytes } else { 1 }))).unwrap();
    };
    write(&path, 2 << 20);
    let error = requested(&here, "match", || ()).unwrap_err().to_string();
    assert!(error.contains("`source`"), "{error}");
    let refused = here.wait_for("refused", 1);
    assert!(refused.words.contains("line 9"), "{refused:?}");
    let policy = Policy::load(&here.folder.path().join("policy.toml")).unwrap();
    let checked = crate::check::examine(&policy, crate::clock::Time::now());
    assert!(checked.faults[0].contains("line 9"), "{checked:?}");
    write(&path, 1 << 19);
    assert!(requested(&here, "match", || ()).unwrap());
    here.end();
}
