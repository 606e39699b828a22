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

/// Thresholds and bounds are said in the column's own unit, whichever column a job takes.
#[test]
fn a_policy_says_bounds_and_thresholds_as_the_column_is_written() {
    let here = Here::start("");
    let path = here.folder.path().join("policy.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let job = "[jobs.number]\nsource = \"table\"\nallow = [\"bob\"]\nresult = [\"service\"]\n\
               reveal = [\"over:500.5:eur:decimal2\", \"max:eur:decimal2\", \"sum:visits\", \"min:eur:decimal2\"]\n\
               bounds = \"0..600\"\nsecurity = \"semi-honest\"\nmax_peer_keys = 1000\nruns_a_day = 9\n\
               output = \"results\"\n";
    let job = job.replace("\"service\"", "\"me\"");
    let policy = Policy::parse(&format!("{text}{job}"), here.folder.path()).unwrap();
    let words = explain(&policy).join("\n");
    for said in [
        "how many common keys have eur:decimal2 above 500.50, each key's number taken as within 0.00..600.00:",
        "the largest eur:decimal2 of a common key, each key's number taken as within 0.00..600.00:",
        "the sum of visits over common keys, each key's number taken as within 0..600:",
        "the smallest eur:decimal2 of a common key",
    ] {
        assert!(words.contains(said), "{said}: {words}");
    }
    let number = &policy.jobs["number"];
    let bounds = |column: &str| number.bounds.get(column).map(|bounds| (bounds.least(), bounds.most()));
    assert_eq!((bounds("eur:decimal2"), bounds("visits")), (Some((0, 60_000)), Some((0, 600))));
    // A count takes no bounds, so what they mean is the columns' own matter.
    let fine = job.replace("0..600", "0..600.5");
    let both = fine.replace("\"sum:visits\", ", "").replace("reveal = [", "reveal = [\"count\", ");
    let policy = Policy::parse(&format!("{text}{both}"), here.folder.path()).unwrap();
    assert_eq!(policy.jobs["number"].bounds["eur:decimal2"].most(), 60_050);
    let faults = Policy::parse(&format!("{text}{fine}"), here.folder.path()).unwrap_err();
    let fault = format!("{faults:?}");
    assert!(fault.contains("`bounds`, of visits: `600.5`"), "{fault}");
    here.end();
}

/// A column that `give` has otherwise than `reveal` counts as the client's, from which other faults follow.
#[test]
fn a_policy_says_how_give_must_write_the_column_of_a_number() {
    let here = Here::start("");
    let text = std::fs::read_to_string(here.folder.path().join("policy.toml")).unwrap();
    let faults = |reveal: &str, give: &str| {
        let job = format!(
            "[jobs.number]\nsource = \"table\"\nallow = [\"bob\"]\nresult = [\"peer\"]\nreveal = [{reveal}]\n\
             give = [{give}]\nsecurity = \"semi-honest\"\nmax_peer_keys = 1000\nruns_a_day = 9\n"
        );
        match Policy::parse(&format!("{text}{job}"), here.folder.path()) {
            Ok(_) => Vec::new(),
            Err(faults) => faults.into_iter().map(|fault| fault.what).collect(),
        }
    };
    let (max, both) = ("\"max:amount:decimal2\"", "\"payload\", \"sum:amount\"");
    assert_eq!(faults(max, "\"amount:decimal2\""), [""; 0]);
    assert_eq!(faults(both, "\"amount\""), [""; 0]);
    for (reveal, give, words) in [
        (
            max,
            "\"amount\"",
            "max is of `amount:decimal2`, and `give` has `amount`: write `amount:decimal2` in both",
        ),
        ("\"sum:amount\"", "\"amount:decimal2\"", "sum is of `amount`, and `give` has `amount:decimal2`"),
        ("\"sum:amount\"", "\"betrag\"", "sum is of `amount`, and `give` has `betrag`"),
        ("\"payload\", \"sum:amount:decimal1\"", "\"city\", \"amount\"", "write `amount:decimal1` in both"),
    ] {
        let found = faults(reveal, give);
        assert!(found.len() == 1 && found[0].contains(words), "{words}: {found:?}");
    }
    here.end();
}

/// A cell that cannot be added up is found before a client has asked.
#[test]
fn a_check_reads_the_cells_that_jobs_give() {
    let here = Here::start("");
    let folder = here.folder.path();
    std::fs::write(folder.join("priced.csv"), "id,amount\n1,100\n2,\"12,50\"\n").unwrap();
    let text = std::fs::read_to_string(folder.join("policy.toml")).unwrap();
    let job = "[sources.priced]\ninput = \"priced.csv\"\nkey = [\"id\"]\nrows_in_total = 1000\naggregate_runs = 3\n\
               [jobs.number]\nsource = \"priced\"\nallow = [\"bob\"]\nresult = [\"peer\"]\nreveal = [\"sum:amount\"]\n\
               give = [\"amount\"]\nmax_peer_keys = 1000\nruns_a_day = 9\n";
    let faults = |job: &str| {
        check::examine(&Policy::parse(&format!("{text}{job}"), folder).unwrap(), Time::now()).faults
    };
    let found = faults(job).join("\n");
    assert!(
        found.contains("[jobs.number]: ") && found.contains("priced.csv, line 3: column `amount`"),
        "{found}"
    );
    // As text it can be sent.
    assert_eq!(faults(&job.replace("sum:amount", "payload")), [""; 0]);
    let found = faults(&job.replace("sum:amount", "payload").replace("\"amount\"", "\"gone\"")).join("\n");
    assert!(found.contains("gone"), "{found}");
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
    // What follows from that is not said as well.
    assert_eq!(checked.warnings.len(), 1, "{warned}");
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
