//! What a policy, its check, a list of jobs and terms say to people.

use crate::check;
use crate::clock::Time;
use crate::policy::{Policy, explain};
use crate::request;
use crate::tests::{Here, offer, policy};
use tacit::net::Identity;

/// One mistake is one fault, and a file that is not there has no lines.
#[test]
fn a_mistake_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["alice", "bob"] {
        Identity::generate().unwrap().save(&folder.path().join(format!("{name}.key")), "").unwrap();
    }
    let good = policy(folder.path(), 1, "");
    for (from, to, word) in [
        ("rows_in_total = 1000", "rows_in_total = -5", "whole number"),
        ("key = \"bob.pub\"", "key = \"bob.key\"", "private key"),
        ("key = \"bob.pub\"", "fingerprint = \"12\"", "eight groups"),
        ("runs_a_day = 9", "runs_a_day = 9\nexpires = \"31.12.2027\"", "year first: expires = 2027-12-31"),
    ] {
        let bad = good.replace(from, to);
        assert_ne!(bad, good, "{from}");
        let faults = Policy::parse(&bad, folder.path()).unwrap_err();
        assert!(faults.len() == 1 && faults[0].what.contains(word), "{to}: {faults:?}");
    }
    let lines = Policy::load(&folder.path().join("nope.toml")).unwrap_err().lines();
    assert!(
        lines.len() == 1 && !lines[0].contains("line 1") && lines[0].contains("nope.toml: "),
        "{lines:?}"
    );
}

/// A lawyer reads it: nobody is called malicious.
#[test]
fn a_policy_says_against_whom_its_promises_hold() {
    let here = Here::start("");
    let path = here.folder.path().join("policy.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let count = "[jobs.count]\nsource = \"table\"\nallow = [\"bob\"]\nreveal = [\"count\"]\nresult = [\"peer\"]\n\
                 security = \"semi-honest\"\nmax_peer_keys = 1000\nruns_a_day = 9\n";
    let words = explain(&Policy::parse(&(text + count), here.folder.path()).unwrap()).join("\n");
    for said in [
        "this is guaranteed even if the other side cheats",
        "this is guaranteed only if both sides follow the protocol",
    ] {
        assert!(words.contains(said), "{said}: {words}");
    }
    assert!(!words.contains("malicious") && !words.contains("honest"), "{words}");
    here.end();
}

/// A job that never runs at its full size, with the sizes at which it does.
#[test]
fn a_check_says_which_clients_a_budget_is_too_small_for() {
    let here = Here::start("");
    let path = here.folder.path().join("policy.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("rows_in_total = 1000", "rows_in_total = 30")).unwrap();
    let checked = check::examine(&Policy::load(&path).unwrap(), Time::now());
    let warned = checked.warnings.join("\n");
    assert!(
        warned.contains(
            "match: a run of bob with 1000 keys costs up to 40 rows, more than the 30 left: only with up to "
        ),
        "{warned}"
    );
    let said = checked.lines.join("\n");
    assert!(said.contains("room for 0 runs, enough for less than a day with 9 runs a day"), "{said}");
    here.end();
}

/// A job whose budget is used up for good says so, whatever is left of today's runs.
#[test]
fn a_list_says_that_a_budget_is_used_up() {
    let count = "[jobs.count]\nsource = \"table\"\nallow = [\"bob\"]\nreveal = [\"count\"]\nresult = [\"peer\"]\n\
                 max_peer_keys = 1000\nruns_a_day = 9\n";
    let budgets = |text: String| {
        text.replace("rows_in_total = 1000", "rows_in_total = 80")
            .replace("aggregate_runs = 3", "aggregate_runs = 1")
    };
    let here = Here::start_changed(count, budgets);
    let refused = |job: &str| {
        let listed = request::list(here.connect()).unwrap();
        listed.into_iter().find(|one| one.job == job).unwrap().refused.map(|(rule, _)| rule)
    };
    assert_eq!((refused("count"), refused("match")), (None, None));
    here.wait_for("listed", 2);
    drop(here.begin_run("count"));
    here.wait_for("failed", 1);
    assert_eq!((refused("count").as_deref(), refused("match")), (Some("aggregate_runs"), None));
    here.wait_for("listed", 4);
    drop(here.begin_run("match"));
    here.wait_for("failed", 2);
    assert_eq!(refused("match").as_deref(), Some("rows_in_total"));
    here.end();
}

#[test]
fn terms_of_lookups_have_no_words_of_machines() {
    let mut terms = offer("00");
    terms.reveal = crate::terms::LOOKUP.to_owned();
    terms.publication = Some(crate::json::hex(&[7; 32]));
    (terms.protocol, terms.base_ot) = ("oprf".into(), "none".into());
    terms.key_types = "key v2: 1 columns, nfc true, trim true, case fold true".into();
    let words = terms.words(3).unwrap().join("\n");
    assert!(words.contains("with keys as that file says"), "{words}");
    for none in ["key v2", "base OT", "nfc"] {
        assert!(!words.contains(none), "{none}: {words}");
    }
}
