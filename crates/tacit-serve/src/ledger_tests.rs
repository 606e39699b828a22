//! Ledgers that are gone, cut, or older than the records beside them, and files that are moved away from under a
//! service that runs.

use crate::check;
use crate::clock::Time;
use crate::http::Port;
use crate::json::hex;
use crate::ledger::{self, Charge, Ledger, Spent};
use crate::log::Event;
use crate::policy::Policy;
use crate::server::{self, Setup, Signal};
use crate::terms::Accept;
use crate::tests::Here;
use crate::wire::{self, Message};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};

/// Starts the service of a folder and ends it; what it logged.
fn start(folder: &Path, accept_ledger: bool) -> tacit::Result<Vec<Event>> {
    let path = folder.join("policy.toml");
    let policy = Policy::load(&path).unwrap();
    let (signal, signals) = mpsc::channel();
    signal.send(Signal::Drain).unwrap();
    let events: Arc<Mutex<Vec<Event>>> = Arc::default();
    let told = events.clone();
    let setup = Setup {
        path,
        log: Box::new(move |event: &Event| told.lock().unwrap().push(event.clone())),
        available: || None,
        clock: Box::new(Time::now),
        signals,
        metrics: None,
        dashboard: None,
        accept_ledger,
    };
    server::serve(policy, setup)?;
    let events = events.lock().unwrap();
    Ok(events.clone())
}

fn words(events: &[Event]) -> String {
    let of_ledger = events.iter().filter(|event| event.what == "ledger");
    of_ledger.map(|event| event.words.clone() + "\n").collect()
}

fn spent(folder: &Path) -> Spent {
    let ledger = Ledger::look(&folder.join("state/ledger")).unwrap();
    ledger.spent(&Charge {
        run: String::new(),
        time: Time::now().0,
        job: "match".into(),
        source: "table".into(),
        input: String::new(),
        peer: "bob".into(),
        fingerprint: String::new(),
        rows: 0,
        aggregate: false,
        epsilon: 0,
    })
}

/// A service that charged and recorded so many runs, each of 40 rows.
fn ran(runs: usize) -> Here {
    let here = Here::start("");
    for run in 1..=runs {
        drop(here.begin_run("match"));
        here.wait_for("failed", run);
    }
    here
}

/// The ledger gone, empty, cut at its end, half a line short, and an older copy: the service does not start, and
/// says what is missing. Accepted, it charges what the records hold.
#[test]
fn a_ledger_that_lacks_runs_of_the_records_starts_no_service() {
    let here = ran(2);
    let (folder, older) = (here.folder.path().to_owned(), here.folder.path().join("state/ledger"));
    let older = std::fs::read(older).unwrap();
    drop(here.begin_run("match"));
    here.wait_for("failed", 3);
    let here = Ended::of(here);
    let path = folder.join("state/ledger");
    let whole = std::fs::read(&path).unwrap();
    assert_eq!(spent(&folder).rows, 120);
    assert_eq!(words(&start(&folder, false).unwrap()), "", "a sound ledger");
    // The charge of the last run, and what follows it.
    let text = String::from_utf8(whole.clone()).unwrap();
    let last = text[..text.rfind("{\"charge\"").unwrap()].rfind('\n').unwrap() + 1;
    for (kind, bytes, lacks) in [
        ("gone", None, "3 runs"),
        ("empty", Some(&[][..]), "3 runs"),
        ("older", Some(&older[..]), "1 run "),
        ("cut", Some(&whole[..last]), "1 run "),
        ("half a line", Some(&whole[..last + 99]), "1 run "),
    ] {
        match bytes {
            None => std::fs::remove_file(&path).unwrap(),
            Some(bytes) => std::fs::write(&path, bytes).unwrap(),
        }
        let error = start(&folder, false).unwrap_err();
        let said = error.to_string();
        assert!(matches!(error, tacit::Error::Input(_)), "{kind}: {said}");
        for words in [lacks, "state/records", "of bob for match", "restore the newest", ledger::ACCEPT] {
            assert!(said.contains(words), "{kind}: {words}: {said}");
        }
        let policy = Policy::load(&folder.join("policy.toml")).unwrap();
        let faults = check::examine(&policy, Time::now()).faults;
        assert!(faults.len() == 1 && faults[0].contains(ledger::ACCEPT), "{kind}: {faults:?}");

        let said = words(&start(&folder, true).unwrap());
        assert!(said.contains(&format!("charged again: {}\n", &lacks[..1])), "{kind}: {said}");
        assert_eq!((spent(&folder).rows, spent(&folder).runs_today), (120, 3), "{kind}");
        assert_eq!(words(&start(&folder, false).unwrap()), "", "{kind}: accepted once");
    }
    // A digit that has changed: the service does not start, and what would start is not said either.
    let at = text.find("\"rows\":40").unwrap() + 8;
    let mut changed = whole;
    changed[at] ^= 1;
    std::fs::write(&path, changed).unwrap();
    let said = start(&folder, false).unwrap_err().to_string();
    let policy = Policy::load(&folder.join("policy.toml")).unwrap();
    let faults = check::examine(&policy, Time::now()).faults;
    assert!(faults.iter().any(|fault| fault.contains(&said)), "{said}: {faults:?}");
    drop(here);
}

/// Records of earlier releases do not hold what was charged: the log names their runs.
#[test]
fn what_no_record_holds_is_named_and_not_charged() {
    let here = Ended::of(ran(1));
    let folder = here.folder.path();
    let private = folder.join("state/records/private.jsonl");
    let mut kept: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&private).unwrap()).unwrap();
    let run = kept["run"].as_str().unwrap().to_owned();
    assert!(kept.as_object_mut().unwrap().remove("charge").is_some());
    std::fs::write(&private, format!("{kept}\n")).unwrap();
    std::fs::remove_file(folder.join("state/ledger")).unwrap();
    assert!(start(folder, false).unwrap_err().to_string().contains("charges 0 of them"));
    let said = words(&start(folder, true).unwrap());
    assert!(said.contains("NOT charged") && said.contains(&run), "{said}");
    assert_eq!(spent(folder).rows, 0);
    assert_eq!(words(&start(folder, false).unwrap()), "");
}

/// The records gone, or cut: the charges stay, the log says it, once.
#[test]
fn records_that_are_gone_are_told() {
    let here = Ended::of(ran(2));
    let folder = here.folder.path();
    let records = folder.join("state/records");
    std::fs::rename(&records, folder.join("away")).unwrap();
    let said = words(&start(folder, false).unwrap());
    assert!(said.contains("a new chain starts") && said.contains("2 runs"), "{said}");
    assert_eq!(words(&start(folder, false).unwrap()), "", "once");
    assert_eq!(spent(folder).rows, 80);
    // And back.
    std::fs::remove_dir_all(&records).unwrap();
    std::fs::rename(folder.join("away"), &records).unwrap();
    assert_eq!(words(&start(folder, false).unwrap()), "");
}

/// A ledger that was made shorter names no runs any more, and knows them by their place in the chain.
#[test]
fn a_shorter_ledger_knows_its_runs() {
    let here = ran(2);
    let folder = here.folder.path().to_owned();
    let path = folder.join("state/ledger");
    let here = Ended::of(here);
    let mut ledger = Ledger::open(&path).unwrap();
    let found = ledger.compare(&folder.join("state/records")).unwrap();
    assert_eq!(ledger.go_on(found, false).unwrap(), Vec::<String>::new());
    ledger.shorten();
    assert_eq!(ledger.fault(), None);
    drop(ledger);
    let short = std::fs::read_to_string(&path).unwrap();
    assert!(!short.contains("\"charge\""), "{short}");
    assert_eq!(words(&start(&folder, false).unwrap()), "");
    // The records away at one start, and back at the next, as the log says: nothing is charged again.
    let (records, aside) = (folder.join("state/records"), folder.join("state/aside"));
    std::fs::rename(&records, &aside).unwrap();
    assert!(words(&start(&folder, false).unwrap()).contains("restore them"));
    let (new, before) = (folder.join("state/new"), spent(&folder).rows);
    std::fs::rename(&records, &new).unwrap();
    std::fs::rename(&aside, &records).unwrap();
    assert_eq!(words(&start(&folder, false).unwrap()), "");
    assert_eq!((spent(&folder).rows, before), (80, 80));
    // A ledger of before beside another chain knows none of its runs that began later.
    std::fs::write(&path, &short).unwrap();
    std::fs::rename(&records, &aside).unwrap();
    std::fs::rename(&new, &records).unwrap();
    let later = std::fs::read_to_string(aside.join("records.jsonl")).unwrap();
    let later = later.lines().last().unwrap().replace("\"started\":1", "\"started\":9");
    std::fs::write(records.join("records.jsonl"), later + "\n").unwrap();
    assert!(start(&folder, false).unwrap_err().to_string().contains("lacks 1 run "));
    std::fs::remove_dir_all(&records).unwrap();
    std::fs::rename(&aside, &records).unwrap();
    // One without the mark is that of an earlier release: known by its latest charge.
    let without = short.lines().filter(|line| !line.contains("\"mark\"")).map(|line| format!("{line}\n"));
    std::fs::write(&path, without.collect::<String>()).unwrap();
    assert_eq!(words(&start(&folder, false).unwrap()), "");
    // Behind it a run that the ledger does not know.
    let (mark, records) = (short.clone(), folder.join("state/records/records.jsonl"));
    let kept = std::fs::read_to_string(&records).unwrap();
    std::fs::write(&path, &mark).unwrap();
    let more = kept.lines().last().unwrap().replace("\"run\":\"", "\"run\":\"f");
    std::fs::write(&records, format!("{kept}{more}\n")).unwrap();
    assert!(start(&folder, false).unwrap_err().to_string().contains("lacks 1 run "));
    // Of a chain that was cut nothing is new.
    std::fs::write(&records, format!("{}\n", kept.lines().next().unwrap())).unwrap();
    let said = words(&start(&folder, false).unwrap());
    assert!(said.contains("has no record of 1 run "), "{said}");
    drop(here);
}

fn charge(run: &str) -> Charge {
    let (job, source, peer) = ("match".into(), "table".into(), "bob".into());
    let (input, fingerprint) = (String::new(), String::new());
    Charge {
        run: run.into(),
        time: 5,
        job,
        source,
        input,
        peer,
        fingerprint,
        rows: 1,
        aggregate: false,
        epsilon: 0,
    }
}

/// Of a ledger that is made shorter while a run goes on the mark names that run: nothing else of it is left.
#[test]
fn a_shorter_ledger_names_the_runs_without_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let (path, records) = (folder.path().join("ledger"), folder.path().join("records"));
    std::fs::create_dir_all(records.join("pending")).unwrap();
    let open = || {
        let mut ledger = Ledger::open(&path).unwrap();
        let found = ledger.compare(&records).unwrap();
        let told = ledger.go_on(found, false).unwrap();
        (ledger, told)
    };
    let (mut ledger, _) = open();
    for run in ["a1", "b2", "c3"] {
        ledger.charge(charge(run)).unwrap();
    }
    ledger.recorded("b2");
    ledger.refund("c3").unwrap();
    drop(ledger);
    // One that still runs, by another process.
    std::fs::write(records.join("pending/a1.json"), "").unwrap();
    let mut ledger = Ledger::open(&path).unwrap();
    let found = ledger.compare(&records).unwrap();
    // Of a refund no record is to be expected.
    let told = ledger.go_on(found, false).unwrap();
    assert!(told.len() == 1 && told[0].contains("has 1 run:"), "b2 alone: {told:?}");
    for run in ["d4", "e5"] {
        ledger.charge(charge(run)).unwrap();
    }
    ledger.recorded("e5");
    ledger.shorten();
    drop(ledger);
    let text = std::fs::read_to_string(&path).unwrap();
    let mark = text.lines().rfind(|line| line.contains("\"mark\"")).unwrap();
    assert!(mark.contains("[\"a1\",\"d4\"]") && !text.contains("\"charge\""), "{text}");
    // Its record has come to nothing.
    std::fs::remove_file(records.join("pending/a1.json")).unwrap();
    let (_, told) = open();
    assert!(told.len() == 1 && told[0].contains("has 2 runs"), "{told:?}");
    assert!(open().1.is_empty(), "told once");
}

/// A run that did not begin was not charged in the end: no ledger has to know it.
#[test]
fn a_run_that_did_not_begin_is_not_missed() {
    let here = Here::start("");
    let mut session = here.connect();
    here.offered(&mut session);
    let accept = Accept { keys: 30, commitment: hex(&[0; 32]), head: hex(&[0; 32]), proof: None };
    wire::send(session.channel(), &Message::Accept(accept)).unwrap();
    wire::receive(session.channel(), wire::PROMPT).unwrap();
    drop(session);
    here.wait_for("refunded", 1);
    let here = Ended::of(here);
    let folder = here.folder.path();
    let kept = std::fs::read_to_string(folder.join("state/records/records.jsonl")).unwrap();
    assert!(kept.contains("not begun"), "{kept}");
    std::fs::remove_file(folder.join("state/ledger")).unwrap();
    assert_eq!(words(&start(folder, false).unwrap()), "");
}

/// Between two looks a service may have charged and recorded a run.
#[test]
fn what_only_one_look_finds_is_not_lacking() {
    let here = Ended::of(ran(1));
    let state = here.folder.path().join("state");
    let look = |name: &str| Ledger::look(&state.join(name)).unwrap().compare(&state.join("records")).unwrap();
    std::fs::write(state.join("none"), "").unwrap();
    assert!(look("none").is_lacking() && !look("ledger").is_lacking());
    assert!(!look("none").and(&look("ledger")).is_lacking());
    assert!(look("none").and(&look("none")).is_lacking());
}

/// A run that cannot be charged after its offer, or is charged and cannot begin, is refused by name, and not charged.
#[cfg(unix)]
#[test]
fn a_run_that_cannot_be_written_down_after_its_offer_is_not_charged() {
    let here = ran(2);
    let at = |name: &str| here.folder.path().join(name);
    for (name, rule) in [("state/ledger", "ledger"), ("state/records/pending", "records")] {
        let mut session = here.connect();
        here.offered(&mut session);
        std::fs::rename(at(name), at("away")).unwrap();
        let accept = Accept { keys: 30, commitment: hex(&[0; 32]), head: hex(&[0; 32]), proof: None };
        wire::send(session.channel(), &Message::Accept(accept)).unwrap();
        let answer = wire::receive(session.channel(), wire::PROMPT).unwrap().0;
        let Message::Refusal(no) = answer else { panic!("{name}: {answer:?}") };
        assert!(no.rule == rule && no.what.contains("ask its operator"), "{name}: {no:?}");
        std::fs::rename(at("away"), at(name)).unwrap();
    }
    here.wait_for("refunded", 1);
    let here = Ended::of(here);
    assert_eq!(spent(here.folder.path()).rows, 80);
}

/// The ledger, the records or their file moved away from under the service: a refusal by name, an error in the log, and
/// runs again once it is back.
#[cfg(unix)]
#[test]
fn what_cannot_be_written_down_is_refused_by_name() {
    let here = ran(1);
    let at = |name: &str| here.folder.path().join(name);
    for (times, (name, rule)) in
        [("state/ledger", "ledger"), ("state/records", "records"), ("state/records/records.jsonl", "records")]
            .into_iter()
            .enumerate()
    {
        std::fs::rename(at(name), at("away")).unwrap();
        let told = here.wait_for("not charging", times + 1);
        assert!(told.level() == tracing::Level::ERROR && told.words.contains("restore it"), "{told:?}");
        assert!(!told.words.contains("not found"), "{told:?}");
        let mut session = here.connect();
        wire::send(session.channel(), &Message::Ask(Here::ask())).unwrap();
        let mut answer = wire::receive(session.channel(), wire::PROMPT).unwrap().0;
        if let Message::Offer(_) = answer {
            let accept = Accept { keys: 30, commitment: hex(&[0; 32]), head: hex(&[0; 32]), proof: None };
            wire::send(session.channel(), &Message::Accept(accept)).unwrap();
            answer = wire::receive(session.channel(), wire::PROMPT).unwrap().0;
        }
        let Message::Refusal(no) = answer else { panic!("{name}: {answer:?}") };
        assert!(no.rule == rule && no.what.contains("ask its operator"), "{name}: {no:?}");
        assert!(!no.what.contains("state"), "nothing of our files: {no:?}");
        let refused = here.wait_for("refused", times + 1);
        assert!(refused.level() == tracing::Level::ERROR && refused.words.contains("moved"), "{refused:?}");
        std::fs::rename(at("away"), at(name)).unwrap();
        here.wait_for("charging", times + 1);
        drop(here.begin_run("match"));
        here.wait_for("failed", times + 2);
    }
    let here = Ended::of(here);
    assert_eq!(spent(here.folder.path()).rows, 160);
    assert_eq!(words(&start(here.folder.path(), false).unwrap()), "");
}

/// Whoever watches the service is told, and told when it is over.
#[cfg(unix)]
#[test]
fn a_service_that_cannot_charge_is_not_healthy() {
    let here = Ended::of(ran(0));
    let folder = here.folder.path();
    let at = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let path = folder.join("policy.toml");
    let policy = Policy::load(&path).unwrap();
    let (signal, signals) = mpsc::channel();
    let setup = Setup {
        path,
        log: Box::new(|_: &Event| ()),
        available: || None,
        clock: Box::new(Time::now),
        signals,
        metrics: Some(Port::bind("metrics", &at.to_string()).unwrap()),
        dashboard: None,
        accept_ledger: false,
    };
    let service = std::thread::spawn(move || server::serve(policy, setup).unwrap());
    let wait_for = |code: &str| {
        for _ in 0..400 {
            let mut stream = TcpStream::connect(at).unwrap();
            stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            if answer.contains(code) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("no {code}");
    };
    wait_for(" 200 ");
    for name in ["state/ledger", "state/records"] {
        std::fs::rename(folder.join(name), folder.join("away")).unwrap();
        wait_for(" 503 ");
        std::fs::rename(folder.join("away"), folder.join(name)).unwrap();
        wait_for(" 200 ");
    }
    signal.send(Signal::Drain).unwrap();
    service.join().unwrap();
}

/// What is left of a service that has ended.
struct Ended {
    folder: tempfile::TempDir,
}

impl Ended {
    fn of(here: Here) -> Self {
        here.signals.send(Signal::Drain).unwrap();
        here.thread.join().unwrap();
        Ended { folder: here.folder }
    }
}
