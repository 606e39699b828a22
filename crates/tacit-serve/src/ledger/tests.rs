use super::*;

fn charge(run: &str, time: u64, rows: u64) -> Charge {
    Charge {
        run: run.into(),
        time,
        job: "match".into(),
        source: "customers".into(),
        input: "customers.csv".into(),
        peer: "bob".into(),
        fingerprint: "f".into(),
        rows,
        aggregate: rows == 0,
        epsilon: 0,
    }
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

#[test]
fn charges_outlive_the_process_and_names_do_not_reset_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let mut ledger = Ledger::open(&path).unwrap();
    ledger.charge(charge("a", 10, 100)).unwrap();
    ledger.charge(charge("b", 86_400, 7)).unwrap();
    ledger.charge(charge("c", 86_500, 0)).unwrap();
    assert!(ledger.charge(charge("a", 90_000, 1)).is_err(), "a run is charged once");
    let spent = ledger.spent(&charge("d", 90_000, 0));
    assert_eq!(spent, Spent { runs_today: 2, rows: 107, aggregates: 1, ..Spent::default() });
    // A new key under the old label, and an old key under a new one; a source renamed, and one whose file
    // moved.
    let mut other = charge("d", 90_000, 0);
    (other.fingerprint, other.source) = ("g".into(), "clients".into());
    assert_eq!(ledger.spent(&other), spent);
    other = charge("d", 90_000, 0);
    (other.peer, other.input) = ("carol".into(), "new.csv".into());
    assert_eq!(ledger.spent(&other), spent);
    other.fingerprint = "g".into();
    assert_eq!(ledger.spent(&other), Spent::default());
    ledger.refund("b").unwrap();
    drop(ledger);
    let mut ledger = Ledger::open(&path).unwrap();
    let wanted = Spent { runs_today: 1, returned_today: 1, rows: 100, aggregates: 1, ..Spent::default() };
    assert_eq!(ledger.spent(&charge("d", 90_000, 0)), wanted);
    assert_eq!(Ledger::look(&path).unwrap().spent(&charge("d", 90_000, 0)), wanted, "while it is open");
    assert!(ledger.refund("c").is_err(), "what a process that is gone has charged stays so");
    // A clock that was put back; the day goes on all the same.
    assert_eq!(ledger.now(Time(5)), Time(86_500));
    assert_eq!(ledger.now_after(Time(5), 90_000), Time(176_500));
    assert_eq!(ledger.now(Time(1 << 30)), Time(1 << 30));
}

/// Renaming in two steps: each of them keeps one name, and both together keep none.
#[test]
fn names_that_were_ever_in_force_together_are_one_account() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let names = |peer: [&str; 2], source: [&str; 2]| {
        vec![vec![peer_name(peer[0]), key_name(peer[1])], vec![source_name(source[0]), place_name(source[1])]]
    };
    let mut ledger = Ledger::open(&path).unwrap();
    ledger.know(&names(["bob", "f"], ["customers", "customers.csv"])).unwrap();
    ledger.charge(charge("a", 10, 100)).unwrap();
    let known = size(&path);
    ledger.know(&names(["bob", "f"], ["customers", "customers.csv"])).unwrap();
    assert_eq!(size(&path), known, "what is known is not written again");
    // No run in between: the policy alone was in force.
    ledger.know(&names(["robert", "f"], ["clients", "customers.csv"])).unwrap();
    drop(ledger);
    let mut ledger = Ledger::open(&path).unwrap();
    ledger.know(&names(["robert", "g"], ["clients", "new.csv"])).unwrap();
    let mut renamed = charge("b", 10, 1);
    (renamed.peer, renamed.fingerprint) = ("robert".into(), "g".into());
    (renamed.source, renamed.input) = ("clients".into(), "new.csv".into());
    assert_eq!((ledger.spent(&renamed).rows, ledger.spent(&renamed).runs_today), (100, 1));
    ledger.shorten();
    assert_eq!(ledger.fault(), None);
    drop(ledger);
    let ledger = Ledger::open(&path).unwrap();
    assert_eq!((ledger.spent(&renamed).rows, ledger.spent(&renamed).runs_today), (100, 1));
    assert!(ledger.are_one(&[key_name("f"), key_name("g")]));
    assert!(!ledger.are_one(&[key_name("f"), key_name("h")]));
}

#[test]
fn a_changed_ledger_is_no_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let mut ledger = Ledger::open(&path).unwrap();
    (0..3).for_each(|i| ledger.charge(charge(&i.to_string(), i, 1)).unwrap());
    drop(ledger);
    let honest = std::fs::read(&path).unwrap();
    for at in 0..honest.len() - 1 {
        let mut bytes = honest.clone();
        bytes[at] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(Ledger::open(&path).is_err(), "byte {at}");
    }
    let text = String::from_utf8(honest.clone()).unwrap();
    let without: Vec<&str> = text.lines().enumerate().filter(|(at, _)| *at != 1).map(|(_, l)| l).collect();
    std::fs::write(&path, without.join("\n") + "\n").unwrap();
    assert!(Ledger::open(&path).is_err(), "a line taken out");
    // What a crash leaves of a charge that never returned.
    for end in 0..honest.len() {
        std::fs::write(&path, &honest[..end]).unwrap();
        let whole = honest[..end].iter().filter(|byte| **byte == b'\n').count() as u64;
        assert_eq!(Ledger::open(&path).unwrap().spent(&charge("", 0, 0)).rows, whole, "{end}");
    }
}

/// Whoever asks and drops for ever does not make the file grow for ever; nothing of it is forgotten by that.
#[test]
fn the_file_is_bounded_by_accounts_and_not_by_attempts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let mut ledger = Ledger::open(&path).unwrap();
    ledger.charge(charge("kept", 86_400, 30)).unwrap();
    ledger.charge(charge("number", 86_400, 0)).unwrap();
    ledger.charge(charge("under way", 86_400, 500)).unwrap();
    let attempts = 1_000;
    for number in 0..attempts {
        let run = format!("{number:032x}");
        ledger.offer(charge(&run, 86_400, 0)).unwrap();
        ledger.charge(charge(&run, 86_400, 40)).unwrap();
        ledger.refund(&run).unwrap();
        assert!(size(&path) <= ROOM + 1024, "{number}: {} bytes", size(&path));
    }
    ledger.charge(charge("broken", 86_400, 7)).unwrap();
    ledger.broke("broken").unwrap();
    let wanted = Spent {
        runs_today: 4,
        offers_today: attempts,
        returned_today: attempts,
        rows: 537,
        aggregates: 1,
        broken: 1,
        epsilon: 0,
    };
    assert_eq!(ledger.spent(&charge("", 86_400, 0)), wanted);
    drop(ledger);
    let mut ledger = Ledger::open(&path).unwrap();
    assert_eq!(ledger.spent(&charge("", 86_400, 0)), wanted);
    ledger.shorten();
    assert!(ledger.fault().is_none() && size(&path) < 2_000, "{} bytes", size(&path));
    assert_eq!(
        (ledger.spent(&charge("", 86_400, 0)), ledger.latest_source("match")),
        (wanted, Some("customers"))
    );
    // A run that began before the file was written anew is refunded as any other.
    ledger.charge(charge("late", 86_400, 9)).unwrap();
    ledger.shorten();
    ledger.refund("late").unwrap();
    let wanted = Spent { returned_today: attempts + 1, ..wanted };
    drop(ledger);
    let ledger = Ledger::open(&path).unwrap();
    assert_eq!(ledger.spent(&charge("", 86_400, 0)), wanted);
    assert_eq!(ledger.now(Time(0)), Time(86_400), "the latest time is kept too");
}

/// Whatever a crash leaves of the shorter file, the ledger says the same.
#[test]
fn a_crash_while_the_file_is_written_anew_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let mut ledger = Ledger::open(&path).unwrap();
    (0..5).for_each(|i| ledger.charge(charge(&i.to_string(), 7, 10 + i)).unwrap());
    let wanted = ledger.spent(&charge("", 7, 0));
    let old = std::fs::read(&path).unwrap();
    ledger.shorten();
    drop(ledger);
    let new = std::fs::read(&path).unwrap();
    for end in (0..new.len()).step_by(7) {
        std::fs::write(&path, &old).unwrap();
        std::fs::write(path.with_extension("new"), &new[..end]).unwrap();
        let mut ledger = Ledger::open(&path).unwrap();
        assert_eq!(ledger.spent(&charge("", 7, 0)), wanted, "{end}");
        ledger.shorten();
        assert_eq!(ledger.fault(), None);
        drop(ledger);
        assert_eq!(Ledger::open(&path).unwrap().spent(&charge("", 7, 0)), wanted, "{end}");
    }
}

/// Lines as earlier builds wrote them: what is taken back names a run alone.
const OLD: &str = include_str!("old.ledger");

#[test]
fn a_ledger_of_earlier_builds_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    std::fs::write(&path, OLD).unwrap();
    let mut ledger = Ledger::open(&path).unwrap();
    let wanted = Spent { runs_today: 1, returned_today: 1, rows: 140, ..Spent::default() };
    assert_eq!(ledger.spent(&charge("", 1_795_600_100, 0)), wanted);
    ledger.shorten();
    drop(ledger);
    assert_eq!(Ledger::open(&path).unwrap().spent(&charge("", 1_795_600_100, 0)), wanted);
}
