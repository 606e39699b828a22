//! Peers that ask, look and drop, clocks that jump, and rules that change between an offer and a yes: against
//! a service that runs in this process.

use crate::check;
use crate::clock::{Time, Window};
use crate::json::hex;
use crate::ledger::{Charge, Ledger};
use crate::policy::{Policy, explain};
use crate::request;
use crate::rules;
use crate::server::Signal;
use crate::terms::{Accept, Offer};
use crate::tests::Here;
use crate::wire::{self, Message};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use tacit::net::{Identity, Session};

/// Says yes for 30 keys; what the service answers.
fn yes(session: &mut Session, keys: u64) -> Message {
    let accept = Accept { keys, commitment: hex(&[0; 32]), head: hex(&[0; 32]), proof: None };
    wire::send(session.channel(), &Message::Accept(accept)).unwrap();
    wire::receive(session.channel(), wire::PROMPT).unwrap().0
}

/// The offer, or the rule that says no.
fn asked(here: &Here, session: &mut Session) -> Result<Offer, String> {
    wire::send(session.channel(), &Message::Ask(Here::ask())).unwrap();
    match wire::receive(session.channel(), wire::PROMPT).unwrap().0 {
        Message::Offer(offer) => Ok(*offer),
        Message::Refusal(refusal) => Err(refusal.rule),
        other => panic!("{other:?} at {}", here.port),
    }
}

fn reload(here: &Here, change: impl FnOnce(String) -> String, times: usize) {
    let path = here.folder.path().join("policy.toml");
    let text = change(std::fs::read_to_string(&path).unwrap());
    std::fs::write(&path, text).unwrap();
    here.signals.send(Signal::Reload).unwrap();
    here.wait_for("reloaded", times);
}

/// Nine runs a day: 27 that come to nothing, and no more.
#[test]
fn whoever_takes_runs_and_drops_them_is_refused_in_the_end() {
    let here = Here::start("");
    let mut granted = 0;
    let refused = (0..100).find_map(|_| {
        let mut session = here.connect();
        match asked(&here, &mut session) {
            Err(rule) => return Some(rule),
            Ok(_) => assert!(matches!(yes(&mut session, 30), Message::Go(_))),
        }
        granted += 1;
        drop(session);
        here.wait_for("refunded", granted);
        here.wait_for("failed", granted);
        None
    });
    assert_eq!((granted, refused.as_deref()), (27, Some("runs_a_day")));
    let ledger = Ledger::look(&here.folder.path().join("state/ledger")).unwrap();
    let today = Charge {
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
    };
    let spent = ledger.spent(&today);
    assert_eq!((spent.returned_today, spent.runs_today, spent.rows), (27, 0, 0));
    here.end();
}

/// Ninety offers a day, whatever comes of them; and the number of keys in them is rounded.
#[test]
fn declined_offers_are_counted_and_tell_a_rounded_size() {
    let here = Here::start("");
    let mut offered = 0;
    let refused = (0..200).find_map(|_| {
        let mut session = here.connect();
        if let Err(rule) = asked(&here, &mut session) {
            return Some(rule);
        }
        offered += 1;
        wire::send(session.channel(), &Message::Decline).unwrap();
        drop(session);
        here.wait_for("declined", offered);
        None
    });
    assert_eq!((offered, refused.as_deref()), (90, Some("runs_a_day")));
    let events = here.end();
    assert!(!events.iter().any(|event| event.what == "failed"), "a no is no failure: {events:?}");

    let here = Here::start("");
    let rows = (0..1_234).fold("id\n".to_owned(), |text, id| text + &format!("{id}\n"));
    std::fs::write(here.folder.path().join("table.csv"), rows).unwrap();
    let mut session = here.connect();
    let offer = asked(&here, &mut session).unwrap();
    assert_eq!(offer.service_keys, 1_300);
    let Message::Go(go) = yes(&mut session, 1) else { panic!("no go") };
    assert_eq!(go.keys, 1_234);
    drop(session);
    here.wait_for("refunded", 1);
    // What would be charged, which is the number of keys, is told no more exactly by a refusal.
    reload(&here, |text| text.replace("rows_in_total = 1000", "rows_in_total = 1100"), 1);
    let mut session = here.connect();
    let offer = asked(&here, &mut session).unwrap();
    assert!(offer.fitting_keys < 1_000 && offer.max_peer_keys == 1_000, "{offer:?}");
    let Message::Refusal(no) = yes(&mut session, 1_000) else { panic!("granted") };
    assert!(no.rule == "rows_in_total" && no.what.contains("1300") && !no.what.contains("1234"), "{no:?}");
    here.end();
}

#[test]
fn numbers_are_rounded_up_to_two_digits() {
    let wanted = [
        (0, 0),
        (1, 1),
        (99, 99),
        (100, 100),
        (101, 110),
        (994, 1_000),
        (41_234, 42_000),
        (42_000, 42_000),
        (995_000, 1_000_000),
        (1_234_567, 1_300_000),
    ];
    for (keys, told) in wanted {
        assert_eq!(crate::terms::rounded(keys), told);
        assert_eq!(crate::terms::rounded(told), told);
    }
    assert!(crate::terms::rounded(u64::MAX) >= u64::MAX - 1);
}

/// An offer is worth what the rules say when it is taken.
#[test]
fn an_offer_does_not_outlive_the_rules_that_made_it() {
    let changes: [(&str, &str, &str); 8] = [
        ("rows_in_total = 1000", "rows_in_total = 10", "rows_in_total"),
        ("runs_a_day = 9", "runs_a_day = 0", "runs_a_day"),
        ("max_peer_keys = 1000", "max_peer_keys = 20", "max_peer_keys"),
        ("runs_a_day = 9", "runs_a_day = 9\nexpires = 2020-01-01", "expires"),
        ("runs_a_day = 9", "runs_a_day = 9\npurpose = \"another\"", "policy"),
        ("input = \"table.csv\"", "input = \"ours.csv\"", "policy"),
        ("[jobs.match]", "[jobs.other]", "allow"),
        ("allow = [\"bob\"]", "allow = [\"carol\"]", "allow"),
    ];
    for (from, to, rule) in changes {
        let here = Here::start("");
        let carol = Identity::generate().unwrap();
        carol.save(&here.folder.path().join("carol.key"), "").unwrap();
        let mut session = here.connect();
        asked(&here, &mut session).unwrap();
        let with_carol = "[peers.carol]\nkey = \"carol.pub\"\n[sources.table]";
        reload(&here, |text| text.replace("[sources.table]", with_carol).replace(from, to), 1);
        let answer = yes(&mut session, 30);
        let Message::Refusal(no) = answer else { panic!("{to}: {answer:?}") };
        assert_eq!(no.rule, rule, "{to}");
        here.end();
    }
    // The peer is gone, or its name is another's.
    for key in ["carol.pub", "bob.pub"] {
        let here = Here::start("");
        let carol = Identity::generate().unwrap();
        carol.save(&here.folder.path().join("carol.key"), "").unwrap();
        let mut session = here.connect();
        asked(&here, &mut session).unwrap();
        reload(
            &here,
            |text| match key {
                "carol.pub" => text.replace("key = \"bob.pub\"", "key = \"carol.pub\""),
                _ => text.replace("[peers.bob]", "[peers.robert]").replace("[\"bob\"]", "[\"robert\"]"),
            },
            1,
        );
        let Message::Refusal(no) = yes(&mut session, 30) else { panic!("granted") };
        assert_eq!(no.rule, "allow", "{key}");
        here.end();
    }
    // What does not concern the offer does not void it.
    let here = Here::start("");
    let mut session = here.connect();
    asked(&here, &mut session).unwrap();
    reload(&here, |text| text.replace("runs_a_day = 9", "runs_a_day = 8\nconcurrency = 3"), 1);
    assert!(matches!(yes(&mut session, 30), Message::Go(_)));
    drop(session);
    here.end();
}

/// The clock is a year ahead while one run is charged, and then right again: hours and last days go by the
/// clock, the day's count by the charge, and there is a line about it.
#[test]
fn a_clock_that_was_ahead_once_opens_no_hours_and_is_told() {
    const YEAR: i64 = 366 * 86_400;
    let day = |time: Time| (time.0 / 86_400 + 3) % 7;
    let names = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let now = Time::now();
    let ahead = Time(now.0.saturating_add_signed(YEAR));
    // A window of the day that the clock shows while it is ahead, which today is not.
    let other = names[day(ahead) as usize];
    assert_ne!(day(now), day(ahead));
    assert!(Window::parse(&format!("{other} 00:00-24:00")).unwrap().holds(ahead));
    let here = Here::start("");
    here.ahead.store(YEAR, Ordering::SeqCst);
    let mut session = here.connect();
    asked(&here, &mut session).unwrap();
    let Message::Go(go) = yes(&mut session, 30) else { panic!("no go") };
    assert!(Time(go.started).day() >= ahead.day());
    drop(session);
    here.wait_for("refunded", 1);
    // Ahead still by what was charged, and the clock is right.
    here.ahead.store(0, Ordering::SeqCst);
    let line = here.wait_for("clock", 1);
    assert!(line.words.contains("behind the latest charge"), "{line:?}");
    reload(
        &here,
        |text| text.replace("runs_a_day = 9", &format!("runs_a_day = 9\nhours = \"{other} 00:00-24:00\"")),
        1,
    );
    let mut session = here.connect();
    assert_eq!(asked(&here, &mut session).unwrap_err(), "hours", "not by the time of the charge");
    drop(session);
    // The job's last day has not come by the clock, so it is served, with the day's count of the charge.
    reload(
        &here,
        |text| text.replace(&format!("hours = \"{other} 00:00-24:00\""), "expires = 2099-12-31"),
        2,
    );
    let mut session = here.connect();
    assert!(asked(&here, &mut session).is_ok(), "blocked by a fault that is over");
    here.end();
}

/// A key whose last day is over by the latest charge is not accepted because the clock was put back.
#[test]
fn a_key_that_has_ended_stays_ended_when_the_clock_is_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (alice, bob) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    alice.save(&at("alice.key"), "").unwrap();
    bob.save(&at("bob.key"), "").unwrap();
    tacit::net::name_successor(&at("bob.key"), &at("next.key"), "", 30).unwrap();
    let text = crate::tests::policy(folder.path(), 1, "");
    let policy = Policy::parse(&text, folder.path()).unwrap();
    let now = Time::now();
    let later = Time(now.0 + 40 * 86_400);
    let key = bob.public();
    assert!(policy.who(Some(&key), None, now).is_some());
    assert!(policy.who(Some(&key), None, later).is_none(), "by the later of both times");
    let next = Identity::load(&at("next.key")).unwrap().public();
    assert!(policy.who(Some(&next), None, later).is_some());
    // As the service asks: the clock is ahead while the key's successor is charged, and then right again.
    let here = Here::start("");
    let at = |name: &str| here.folder.path().join(name);
    tacit::net::name_successor(&at("bob.key"), &at("next.key"), "", 30).unwrap();
    reload(&here, |text| text, 1);
    here.ahead.store(40 * 86_400, Ordering::SeqCst);
    let mut session = here.connect_by(&Identity::load(&at("next.key")).unwrap());
    asked(&here, &mut session).unwrap();
    let Message::Go(_) = yes(&mut session, 30) else { panic!("no go") };
    drop(session);
    here.wait_for("refunded", 1);
    here.ahead.store(0, Ordering::SeqCst);
    let mut session = here.connect();
    let Message::Refusal(no) = wire::receive(session.channel(), wire::PROMPT).unwrap().0 else {
        panic!("served")
    };
    assert_eq!(no.rule, "allow");
    here.end();
}

/// Two names in one policy, one file: by another spelling, by a link, by a second link to the file itself, and with
/// another file as one table.
#[test]
fn spellings_and_links_of_one_file_are_one_account() {
    for kind in ["spelling", "link", "hard link", "list", "pattern", "folder"] {
        let here = Here::start("");
        let at = |name: &str| here.folder.path().join(name);
        let input = match kind {
            "spelling" => "\"./state/../table.csv\"",
            "list" => {
                std::fs::write(at("more.csv"), "id\nanother\n").unwrap();
                "[\"more.csv\", \"table.csv\"]"
            }
            #[cfg(unix)]
            "link" => {
                std::os::unix::fs::symlink(at("table.csv"), at("other.csv")).unwrap();
                "\"other.csv\""
            }
            "pattern" => "\"tab*.csv\"",
            #[cfg(unix)]
            "folder" => {
                std::fs::create_dir(at("parts")).unwrap();
                std::fs::hard_link(at("table.csv"), at("parts/one.csv")).unwrap();
                std::fs::write(at("parts/two.csv"), "id\nanother\n").unwrap();
                "\"parts\""
            }
            #[cfg(unix)]
            "hard link" => {
                std::fs::hard_link(at("table.csv"), at("other.csv")).unwrap();
                "\"other.csv\""
            }
            _ => continue,
        };
        let more =
            format!("[sources.again]\ninput = {input}\nkey = [\"id\"]\nrows_in_total = 50\n[jobs.match]");
        let second = "\n[jobs.second]\nsource = \"again\"\nallow = [\"bob\"]\nreveal = [\"rows\"]\n\
                      result = [\"peer\"]\nmax_peer_keys = 1000\nruns_a_day = 9\n";
        reload(&here, |text| text.replace("[jobs.match]", &more) + second, 1);
        drop(here.begin_run("match"));
        // It broke off after it began: charged, counted and told.
        let broken = here.wait_for("broken off", 1);
        assert!(broken.words.contains("ended 1 of this peer's runs"), "{broken:?}");
        here.wait_for("failed", 1);
        let listed = request::list(here.connect()).unwrap();
        let left = |name: &str| listed.iter().find(|one| one.job == name).unwrap().left.rows;
        // Of fifty rows forty are spent, under whichever name.
        assert_eq!((left("match"), left("second")), (960, 10), "{kind}");
        here.wait_for("listed", 1);
        let mut session = here.connect();
        wire::send(session.channel(), &Message::Ask(request::Ask { job: "second".into(), ..Here::ask() }))
            .unwrap();
        match wire::receive(session.channel(), wire::PROMPT).unwrap().0 {
            Message::Offer(offer) => assert!(!offer.fits(30), "{kind}: {offer:?}"),
            Message::Refusal(no) => assert_eq!(no.rule, "rows_in_total", "{kind}"),
            other => panic!("{kind}: {other:?}"),
        }
        let policy = Policy::load(&at("policy.toml")).unwrap();
        let checked = check::examine(&policy, Time::now());
        assert!(
            checked.warnings.iter().any(|line| line.contains("[sources.again] and [sources.table] share")),
            "{kind}: {checked:?}"
        );
        here.end();
    }
}

/// Of an earlier charge only the place is still known.
#[test]
fn a_folder_and_then_a_file_of_it_or_another_pattern_have_one_budget() {
    // The last two by names alone: a folder within keeps the first from being read, and the file is no more.
    for (before, after, more) in [
        ("parts", "parts/one.csv", None),
        ("parts/*.csv", "parts/one.csv", None),
        ("parts", "parts/o*.csv", None),
        ("parts", "parts/o*.csv", Some("within")),
        ("parts/*.csv", "parts/one.csv", Some("gone")),
    ] {
        let here = Here::start("");
        let parts = here.folder.path().join("parts");
        std::fs::create_dir(&parts).unwrap();
        std::fs::copy(here.folder.path().join("table.csv"), parts.join("one.csv")).unwrap();
        reload(&here, |text| text.replace("\"table.csv\"", &format!("{before:?}")), 1);
        drop(here.begin_run("match"));
        here.wait_for("broken off", 1);
        match more {
            Some("within") => std::fs::create_dir(parts.join("sub")).unwrap(),
            Some(_) => {
                std::fs::rename(parts.join("one.csv"), parts.join("one")).unwrap();
                std::fs::write(parts.join("one.csv"), "").unwrap();
            }
            None => {}
        }
        let changed = |text: String| {
            text.replace(&format!("{before:?}"), &format!("{after:?}"))
                .replace("[sources.table]", "[sources.fresh]")
                .replace("source = \"table\"", "source = \"fresh\"")
        };
        reload(&here, changed, 2);
        // The place of the run that broke off may be free only a moment later.
        let listed = (0..500).find_map(|_| {
            let listed = request::list(here.connect());
            if listed.as_ref().is_err_and(|error| error.to_string().contains("concurrency")) {
                std::thread::sleep(std::time::Duration::from_millis(20));
                return None;
            }
            Some(listed)
        });
        let listed = listed.expect("a place is free in time").unwrap();
        assert!(listed.iter().all(|one| one.left.rows == 960), "{before}, {after}: {listed:?}");
        here.end();
    }
}

/// Renaming in two reloads, each of which keeps one name of the peer's and of the source's.
#[test]
fn renaming_in_two_steps_fills_no_budget_up_again() {
    let here = Here::start("");
    let at = |name: &str| here.folder.path().join(name);
    let next = Identity::generate().unwrap();
    next.save(&at("next.key"), "").unwrap();
    drop(here.begin_run("match"));
    here.wait_for("failed", 1);
    reload(
        &here,
        |text| {
            let text = text.replace("[peers.bob]", "[peers.robert]").replace("[\"bob\"]", "[\"robert\"]");
            text.replace("sources.table", "sources.clients")
                .replace("source = \"table\"", "source = \"clients\"")
        },
        1,
    );
    std::fs::copy(at("table.csv"), at("new.csv")).unwrap();
    reload(
        &here,
        |text| text.replace("key = \"bob.pub\"", "key = \"next.pub\"").replace("table.csv", "new.csv"),
        2,
    );
    let here = Here { bob: next, ..here };
    let listed = request::list(here.connect()).unwrap();
    assert_eq!((listed[0].left.rows, listed[0].left.runs_today), (960, 8), "{listed:?}");
    here.end();
}

/// What a peer may ask for, without an offer: nothing of the table, and nothing of other peers' jobs.
#[test]
fn jobs_are_listed_to_those_who_may_ask_for_them() {
    let here = Here::start(
        "purpose = \"a test\"\nagreement = \"contract 17\"\nhours = [\"daily 00:00-24:00\"]\n\
         [jobs.late]\nsource = \"table\"\nallow = [\"bob\"]\nreveal = [\"rows\"]\nresult = [\"peer\"]\n\
         max_peer_keys = 10\nruns_a_day = 1\nexpires = 2020-01-01\n\
         [peers.carol]\nfingerprint = \"0000-0000-0000-0000-0000-0000-0000-0000\"\n\
         [jobs.carols]\nsource = \"table\"\nallow = [\"carol\"]\nreveal = [\"rows\"]\nresult = [\"peer\"]\n\
         max_peer_keys = 10\nruns_a_day = 1\n",
    );
    std::fs::remove_file(here.folder.path().join("table.csv")).unwrap();
    let listed = request::list(here.connect()).unwrap();
    let names: Vec<&str> = listed.iter().map(|one| one.job.as_str()).collect();
    assert_eq!(names, ["late", "match"]);
    assert_eq!(listed[0].refused.as_ref().unwrap().0, "expires");
    assert_eq!((&listed[1].refused, listed[1].left.runs_today, listed[1].left.rows), (&None, 9, 1000));
    let words = listed[1].words().join("\n");
    for said in ["match: rows to client", "purpose: a test", "contract 17", "9 of 9 runs today", "daily"] {
        assert!(words.contains(said), "{said}: {words}");
    }
    let policy = Policy::load(&here.folder.path().join("policy.toml")).unwrap();
    let text = explain(&policy).join("\n");
    assert!(
        text.contains("match: purpose: a test") && text.contains("match: agreement: contract 17"),
        "{text}"
    );
    // No table: the check tells it, and so it does of a key column that is not there.
    let checked = check::examine(&policy, Time::now());
    assert!(checked.faults[0].contains("[sources.table]"), "{checked:?}");
    std::fs::write(here.folder.path().join("table.csv"), "name\n1\n").unwrap();
    let checked = check::examine(&policy, Time::now());
    assert!(checked.faults[0].contains("id"), "{checked:?}");
    let events = here.end();
    assert!(!events.iter().any(|event| matches!(event.what, "offered" | "failed" | "refused")), "{events:?}");
}

/// The policy of docs/serve.md runs for its year, by the charges of the tables that the page speaks of.
#[test]
fn the_documented_policy_lasts_its_year() {
    const OWN: u64 = 40_000;
    const PEER: u64 = 30_000;
    let page = include_str!("../../../docs/serve.md");
    let start = page.find("title=\"alice: policy.toml\"\n").unwrap();
    let text = &page[start..];
    let text = &text[text.find('\n').unwrap() + 1..text.find("\n```\n").unwrap() + 1];
    let folder = tempfile::tempdir().unwrap();
    for name in ["alice", "bob"] {
        Identity::generate().unwrap().save(&folder.path().join(format!("{name}.key")), "").unwrap();
    }
    let policy = Policy::parse(text, folder.path()).unwrap();
    let mut ledger = Ledger::empty();
    let mut runs: BTreeMap<&str, u64> = BTreeMap::new();
    let first = crate::clock::day_of("2027-01-01").unwrap();
    let last = policy.jobs["suppress"].gate.expires.as_ref().unwrap().1;
    assert!(last >= first + 364, "a year at least");
    for day in first..=last {
        let month_begins = crate::clock::date(day).ends_with("-01");
        for (name, job) in &policy.jobs {
            // Every night that it may; a number on the first of each month.
            let is_number = job.reveal[0].is_aggregate();
            if !job.gate.opens_on(day) || (is_number && !month_begins) {
                continue;
            }
            let source = &policy.sources[&job.source];
            let run = job.run(source, &job.reveal[0], job.result[0], &job.give);
            let rows = rules::rows_at_most(job, &run, OWN, OWN, PEER).unwrap();
            let charge = Charge {
                run: format!("{name} {day}"),
                time: day * 86_400 + 21 * 3600,
                job: name.clone(),
                source: job.source.clone(),
                input: "customers.csv".into(),
                peer: "bob".into(),
                fingerprint: "f".into(),
                rows,
                aggregate: is_number,
                epsilon: 0,
            };
            let judged = rules::budget(&ledger, job, source, &charge);
            assert!(judged.is_ok(), "{name} on {}: {judged:?}", crate::clock::date(day));
            ledger.add(charge);
            *runs.entry(name).or_default() += 1;
        }
    }
    assert!(runs["suppress"] > 250 && runs["overlap"] == 12, "{runs:?}");
}

#[test]
fn a_check_says_how_long_budgets_last_with_the_tables_of_today() {
    let here = Here::start("");
    let policy = Policy::load(&here.folder.path().join("policy.toml")).unwrap();
    let checked = check::examine(&policy, Time::now());
    let lines = checked.lines.join("\n");
    assert!(lines.contains("has 40 distinct keys in 40 rows today"), "{lines}");
    assert!(
        lines.contains("charged at most 40 rows")
            && lines.contains("room for 25 runs, enough for 2 days with 9 runs a day"),
        "{lines}"
    );
    assert!(checked.faults.is_empty(), "{checked:?}");
    let warned = checked.warnings.join("\n");
    assert!(warned.contains("its budget lasts for 25 runs of the largest size"), "{warned}");
    assert!(!Path::new(&here.folder.path().join("state/ledger.new")).exists());
    here.end();
}

/// An offer says before the yes whether the run fits.
#[test]
fn an_offer_says_whether_the_run_fits() {
    let here = Here::start("");
    let rows = (0..1_234).fold("id\n".to_owned(), |text, id| text + &format!("{id}\n"));
    std::fs::write(here.folder.path().join("table.csv"), rows).unwrap();
    let mut session = here.connect();
    let (offer, _) = Here::offered_of(&mut session, "match");
    assert!(offer.fitting_keys > 1 && !offer.fits(1000), "{offer:?}");
    let words = |keys| offer.words(keys).unwrap().join("\n");
    assert!(words(1000).contains("with 1000 keys this run does NOT fit"), "{}", words(1000));
    drop(session);
    here.wait_for("failed", 1);
    // The command's side says no before it announces anything, and the service hears a no.
    let offered = request::ask(here.connect(), &Here::ask(), &here.bob).unwrap();
    let error = offered.admit_keys(1000).unwrap_err().to_string();
    assert!(error.contains("`rows_in_total`"), "{error}");
    drop(offered);
    here.wait_for("declined", 1);
    here.end();
}
