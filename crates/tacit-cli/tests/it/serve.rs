//! `tacit serve` and `tacit request` between real processes: grants, refusals by each rule, strangers,
//! crashes, signals and records.

use crate::common::town::{BUDGETS, MATCH, Service, Town, table};
use crate::common::wait;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// An HTTP proxy that opens one tunnel; its address.
fn connect_proxy() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let (mut near, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(near.try_clone().unwrap());
        let mut first = String::new();
        lines.read_line(&mut first).unwrap();
        let mut line = String::new();
        while lines.read_line(&mut line).unwrap() > 2 {
            line.clear();
        }
        let target = first.strip_prefix("CONNECT ").unwrap().split(' ').next().unwrap();
        let far = TcpStream::connect(target).unwrap();
        near.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        let (mut near_in, mut far_out) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        thread::spawn(move || {
            let _ = std::io::copy(&mut near_in, &mut far_out);
            let _ = far_out.shutdown(std::net::Shutdown::Write);
        });
        let (mut far_in, mut near_out) = (far, near);
        let _ = std::io::copy(&mut far_in, &mut near_out);
        let _ = near_out.shutdown(std::net::Shutdown::Write);
    });
    address
}

/// A ledger that is gone is no reason to give budgets again; and rows that nobody keeps are not charged.
#[test]
fn a_lost_ledger_is_accepted_by_its_option_alone() {
    let town = Town::new();
    town.policy("", BUDGETS, MATCH);
    let service = Service::start(&town.bench);
    let words = town.asking("bob", "match", &[]);
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "--json").collect();
    town.bench.run(&words).fails_with(2, &["--yes without --output", "--json"]);
    assert!(service.events("granted").is_empty());
    let rows = town.granted("bob", "match", &["--output", "both.csv"]);
    service.end();
    std::fs::remove_file(town.bench.path("state/ledger")).unwrap();
    let run = rows["run"].as_str().unwrap();
    let lacks = ["lacks 1 run", run, "of bob for match", "start once with --accept-ledger"];
    town.bench.run(&["serve", "--policy", "policy.toml"]).fails_with(3, &lacks);
    town.bench.run(&["serve", "--policy", "policy.toml", "--check"]).fails_with(3, &lacks);
    let service = Service::start_with(&town.bench, &["--accept-ledger"]);
    let said = &service.events("ledger")[0];
    assert!(
        said["message"].to_string().contains("charged again: 1")
            || said.to_string().contains("charged again: 1")
    );
    let terms = town.granted("bob", "match", &["--dry-run"]);
    assert!(terms["offer"]["left"]["rows"].as_u64().unwrap() < 1_000_000, "{terms}");
    service.end();
}

/// Every fault of a table has a line of its own, with that of the policy.
#[test]
fn a_check_lists_every_table_that_cannot_be_read() {
    let town = Town::new();
    let more = "[sources.second]\ninput = \"nowhere.csv\"\nkey = [\"email\"]\nrows_in_total = 1\n";
    town.policy("", BUDGETS, &format!("{MATCH}{more}"));
    std::fs::remove_file(town.bench.path("customers.csv")).unwrap();
    let said = town.bench.run(&["serve", "--policy", "policy.toml", "--check"]);
    said.fails_with(3, &["policy.toml: 2 problems, listed above"]);
    let policy = town.bench.read("policy.toml");
    for title in ["[sources.customers]", "[sources.second]"] {
        let line = policy.lines().position(|line| line == title).unwrap() + 1;
        let listed = format!("policy.toml, line {line}: {title}: ");
        assert!(said.err.contains(&listed), "{listed}: {said:?}");
    }
}

#[test]
fn granted_runs_give_their_results_and_both_sides_records() {
    let town = Town::new();
    let sums = "[jobs.sums]\nsource = \"customers\"\nallow = [\"bob\", \"carol\"]\n\
        reveal = [\"count\", \"sum:amount\"]\nresult = [\"peer\", \"both\"]\ngive = [\"amount\"]\n\
        security = \"semi-honest\"\nmin_matches = 5\nmax_peer_keys = 1000\nruns_a_day = 50\noutput = \"results\"\n";
    let theirs = "[jobs.theirs]\nsource = \"customers\"\nallow = [\"bob\"]\nreveal = [\"payload:amount\"]\n\
        result = [\"me\"]\nmax_peer_keys = 1000\nruns_a_day = 50\noutput = \"results\"\npurpose = \"a test\"\n\
        agreement = \"contract 17\"\nexpires = 2999-12-31\nhours = [\"daily 00:00-24:00\"]\npost_quantum = true\n";
    town.policy("", BUDGETS, &format!("{MATCH}{sums}{theirs}"));
    let check = town.bench.run(&["serve", "--policy", "policy.toml", "--check"]);
    for words in [
        "may ask for match, sums, theirs",
        "up to and including 2999-12-31",
        "the sum of amount",
        "50 runs a day",
        "theirs: purpose: a test",
        "customers.csv) has 40 distinct keys in 40 rows today",
        "room for 25000 runs",
    ] {
        assert!(check.success().contains(words), "{words}: {check:?}");
    }
    let service = Service::start(&town.bench);

    // Terms are shown, and not taken without a word.
    let said = town.ask("bob", "match", &["--dry-run"]);
    let terms: Value = serde_json::from_str(said.success()).unwrap();
    assert_eq!((&terms["offer"]["service_keys"], &terms["own_keys"]), (&40.into(), &30.into()));
    assert_eq!(terms["offer"]["left"]["rows"], 1_000_000);
    town.ask("bob", "match", &["--ask"]).fails_with(2, &["no terminal", "--yes"]);

    let files = ["--output", "both.csv", "--output-rest", "rest.csv", "--output-all", "all.csv"];
    let rows = town.granted("bob", "match", &files);
    assert_eq!(town.bench.read("rest.csv"), table("mail", 40..50));
    let all = town.bench.read("all.csv");
    assert_eq!(all.lines().filter(|line| line.ends_with(",true")).count(), 20, "{all}");
    assert_eq!((&rows["rest_rows"], &rows["all_rows"]), (&10.into(), &30.into()));
    assert_eq!(
        (&rows["matches"], &rows["name"], &rows["signed_by_both"]),
        (&20.into(), &"request".into(), &true.into())
    );
    assert_eq!(town.bench.read("both.csv"), table("mail", 20..40));
    let rows = town.granted("bob", "match", &["--reveal", "payload:amount", "--output", "more.csv"]);
    assert_eq!(rows["matches"], 20);
    assert!(
        town.bench.read("more.csv").contains("user20@example.com,20,20"),
        "{}",
        town.bench.read("more.csv")
    );
    // How wide the service's columns may be stands in the terms, and is held to before they are taken.
    let wide = ["--reveal", "payload:amount", "--max-cell", "100"];
    town.ask("bob", "match", &wide).fails_with(2, &["--max-cell", "65536 bytes"]);
    let said = town.ask("bob", "match", &["--reveal", "payload:amount", "--dry-run"]);
    assert!(said.success().contains("up to 65536 bytes for each key"), "{said:?}");
    let count = town.granted("carol", "sums", &["--security", "semi-honest", "--result", "both"]);
    assert_eq!(count["count"], 20);
    let sum = town.granted("bob", "sums", &["--security", "semi-honest", "--reveal", "sum:amount"]);
    assert_eq!(sum["sum"], (20..40).sum::<u32>());
    let gives = ["--give", "amount", "--post-quantum", "--result", "peer", "--report", "theirs.html"];
    let theirs = town.granted("bob", "theirs", &gives);
    // The page has what the terms say of who and why.
    let page = town.bench.read("theirs.html");
    for words in ["Name of the service", "Name of this side in the record", "contract 17", "a test"] {
        assert!(page.contains(words), "{words}: {page}");
    }

    // The same through an HTTP proxy, in words, which name the record as well.
    let proxy = connect_proxy();
    let words = town.asking("bob", "match", &["--proxy", &proxy, "--output", "proxied.csv"]);
    let rows = town.bench.run(&words[1..].iter().map(String::as_str).collect::<Vec<_>>());
    assert!(rows.success().contains("20 matches") && rows.out.contains("record of run "), "{rows:?}");
    // Windows has another sign between folders.
    let record = " written to bob.records/records.jsonl, signed by both sides";
    assert!(rows.out.replace('\\', "/").contains(record), "{rows:?}");

    // What the asker takes has a floor too.
    town.ask("bob", "sums", &[]).fails_with(2, &["--security", "semi-honest"]);
    town.ask("bob", "theirs", &[]).fails_with(2, &["--give", "amount"]);
    town.ask("bob", "match", &["--key", "mail,amount"]).fails_with(2, &["--key", "1 column"]);
    town.ask("bob", "match", &["--key", "mail:email"]).fails_with(2, &["--key", "type text, yours of email"]);
    let said = town.ask("bob", "match", &["--key", "mail:email", "--dry-run"]);
    let terms: Value = serde_json::from_str(said.success()).unwrap();
    assert!(terms["refused"].as_str().unwrap().contains("yours of email"), "{terms}");
    town.ask("bob", "match", &["--post-quantum"]).fails_with(2, &["post-quantum"]);
    // Terms below the floor are shown all the same, with the reason, and that is no failure.
    let said = town.ask("bob", "sums", &["--dry-run"]);
    let terms: Value = serde_json::from_str(said.success()).unwrap();
    assert!(terms["refused"].as_str().unwrap().contains("security"), "{terms}");
    assert_eq!(terms["fits"], true);
    town.bench.write("lines.csv", "mail,amount\nuser20@example.com,\"two\nlines\"\n");
    let said = town.ask(
        "bob",
        "theirs",
        &["--dry-run", "--input", "lines.csv", "--give", "amount", "--post-quantum"],
    );
    let terms: Value = serde_json::from_str(said.success()).unwrap();
    assert!(terms["refused"].as_str().unwrap().contains("lines.csv, line 2: column `amount`"), "{terms}");
    let said = town.ask("bob", "theirs", &["--dry-run"]);
    assert!(said.success().contains("amount"), "{said:?}");
    // What may be asked for.
    let address = format!("127.0.0.1:{}", town.port);
    let listing =
        ["request", "--list", "--connect", &address, "--identity", "bob.key", "--peer", "alice.pub"];
    let said = town.bench.run(&listing);
    for words in ["match: rows, payload to client", "theirs: payload:amount to service", "purpose: a test"] {
        assert!(said.success().contains(words), "{words}: {said:?}");
    }
    let jobs: Value =
        serde_json::from_str(town.bench.run(&[&["--json"], &listing[..]].concat()).success()).unwrap();
    assert_eq!(jobs["jobs"].as_array().unwrap().len(), 3);
    assert_eq!(jobs["jobs"][0]["left"]["runs_today"], 997);
    let log = service.end();
    assert!(!log.iter().any(|event| event["event"] == "failed"), "a no is no failure: {log:?}");

    // The service writes its results once nobody waits for it any more.
    let run = count["run"].as_str().unwrap();
    let result: Value = serde_json::from_str(&town.bench.read(&format!("results/{run}.json"))).unwrap();
    assert_eq!(result["result"]["count"], 20);
    let result = town.bench.read(&format!("results/{}.csv", theirs["run"].as_str().unwrap()));
    assert_eq!(result.lines().count(), 21, "{result}");

    // Nothing of a table in the log, and what was granted is there.
    let text = log.iter().map(Value::to_string).collect::<String>();
    assert!(!text.contains("example.com") && !text.contains("user2"), "{text}");
    assert_eq!(log.iter().filter(|event| event["event"] == "done").count(), 6);

    let alice = town.verify(
        "state/records",
        &["--key", "alice.pub", "--against", "bob.records", "--against-key", "bob.pub"],
    );
    assert_eq!((&alice["records"], &alice["signed_by_both"]), (&6.into(), &6.into()));
    let bob = town.verify("bob.records", &["--key", "bob.pub", "--against", "state/records"]);
    assert_eq!((&bob["records"], &bob["signed_by_both"]), (&5.into(), &5.into()));
    let names = |object: &Value| object.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(
        names(&alice),
        "certificates compared digests excused input interrupted name owners peers records signed_by_both"
    );
    assert_eq!((&alice["interrupted"], &alice["excused"]), (&0.into(), &0.into()));
    // Who signed as a peer, and who of them is known.
    let peers = town.verify("state/records", &["--peers", "--against-key", "bob.pub"]);
    let known = |peer: &Value| (peer["names"][0].to_string(), peer["runs"].as_u64(), peer["known"].as_bool());
    let mut listed: Vec<_> = peers["peers"].as_array().unwrap().iter().map(known).collect();
    listed.sort_unstable();
    assert_eq!(listed, [("\"bob\"".into(), Some(5), Some(true)), ("\"carol\"".into(), Some(1), Some(false))]);
    let said = town.bench.run(&["audit", "verify", "state/records", "--peers", "--against-key", "bob.pub"]);
    assert!(said.success().contains("(carol), signed 1 run; NOT known"), "{said:?}");
    let alone = ["audit", "verify", "state/records", "--against-key", "bob.pub"];
    town.bench.run(&alone).fails_with(2, &["--against or --peers"]);
    // Without certificates there is nothing that an authority could show.
    town.bench
        .run(&["audit", "verify", "bob.records", "--authority", "alice.pub"])
        .fails_with(3, &["no record has a certificate"]);
    let export = "--json audit export state/records --peer bob.pub --output for-bob.jsonl";
    let said = town.bench.run(&export.split(' ').collect::<Vec<_>>());
    let exported: Value = serde_json::from_str(said.success()).unwrap();
    assert_eq!(names(&exported), "digests name output records");
    assert_eq!(exported["records"].as_u64().unwrap() + exported["digests"].as_u64().unwrap(), 6);
    town.verify(
        "for-bob.jsonl",
        &["--key", "alice.pub", "--against", "bob.records", "--against-key", "bob.pub"],
    );
    let run = theirs["run"].as_str().unwrap();
    town.verify("bob.records", &["--run", run, "--input", "kunden.csv"]);
    town.verify("state/records", &["--run", run, "--input", "customers.csv"]);
    // As much of its start as tells it from others will do.
    town.verify("bob.records", &["--run", &run[..8], "--input", "kunden.csv"]);
    let none = ["audit", "verify", "bob.records", "--run", "zz", "--input", "kunden.csv"];
    town.bench.run(&none).fails_with(3, &["there is no record of run zz"]);
    let other = ["audit", "verify", "bob.records", "--run", run, "--input", "customers.csv"];
    town.bench.run(&other).fails_with(3, &["is not the file"]);
    let key = ["audit", "verify", "bob.records", "--key", "alice.pub"];
    town.bench.run(&key).fails_with(3, &["which no --key names"]);
    let shown = town.bench.run(&["audit", "show", "state/records", "--run", run]);
    for words in ["complete", "contract 17", "a test", "2999-12-31", "signed by both sides", "base OT roted"]
    {
        assert!(shown.success().contains(words), "{words}: {shown:?}");
    }
    // A record taken away at the end shows in what the other side has.
    let all = town.bench.read("state/records/records.jsonl");
    let cut = all.lines().take(4).collect::<Vec<_>>().join("\n") + "\n";
    town.bench.write("cut.jsonl", cut);
    town.verify("cut.jsonl", &[]);
    town.bench
        .run(&["audit", "verify", "cut.jsonl", "--against", "bob.records", "--against-key", "bob.pub"])
        .fails_with(3, &["is missing in"]);
}

/// The record of a run cannot be written: the client has its result all the same, and the next request records it.
#[test]
fn a_record_that_cannot_be_written_takes_no_result_away() {
    let town = Town::new();
    publish(&town, "publish", &[]);
    town.policy("", BUDGETS, &format!("{KNOWN}{MATCH}"));
    let service = Service::start(&town.bench);
    let blocks = ["bob.records", "other"].map(|folder| town.bench.path(folder).join("private.jsonl"));
    blocks.iter().for_each(|block| std::fs::create_dir_all(block).unwrap());
    let words = ["the run is complete", "could not be written", "private.jsonl"];
    town.ask("bob", "match", &["--output", "both.csv"]).fails_with(3, &words);
    assert_eq!(town.bench.read("both.csv"), table("mail", 20..40));
    let tags = ["--tags", "customers.tags", "--output", "known.csv", "--records", "other"];
    town.ask("bob", "known", &tags).fails_with(3, &words);
    assert_eq!(town.bench.read("known.csv"), table("mail", 20..40));
    blocks.iter().for_each(|block| std::fs::remove_dir(block).unwrap());
    town.granted("bob", "match", &[]);
    town.granted("bob", "match", &["--records", "other"]);
    service.end();
    for folder in ["bob.records", "other"] {
        let found = town.verify(folder, &["--key", "bob.pub"]);
        assert_eq!((&found["records"], &found["signed_by_both"]), (&2.into(), &2.into()), "{folder}");
    }
}

/// The command of a scheduler, and a policy that changes behind its back.
#[test]
fn an_unattended_request_takes_no_more_than_it_was_told_to() {
    let town = Town::new();
    town.policy("", BUDGETS, MATCH);
    let mut service = Service::start(&town.bench);
    let said = town.ask("bob", "match", &["--dry-run"]);
    let terms: Value = serde_json::from_str(said.success()).unwrap();
    let hash = terms["terms_hash"].as_str().unwrap();
    assert!(terms["words"].to_string().contains(hash), "{terms}");
    let done = town.granted("bob", "match", &["--terms", hash, "--max-peer-rows", "40"]);
    assert_eq!((&done["matches"], &done["terms_hash"]), (&20.into(), &hash.into()));
    // Budgets and sizes are others now.
    town.bench.write("customers.csv", table("email", 0..45));
    town.granted("bob", "match", &["--terms", hash]);
    town.ask("bob", "match", &["--max-peer-rows", "40"]).fails_with(4, &["45 distinct keys", "up to 40"]);
    // The result is turned to the service.
    let turned = MATCH.replace("result = [\"peer\"]", "result = [\"me\"]\noutput = \"results\"");
    let turned = turned.replace("\"rows\", \"payload\"", "\"rows\"");
    town.policy("", BUDGETS, &turned);
    service.signal("-HUP");
    service.wait_for("reloaded", 1);
    town.ask("bob", "match", &["--output", "both.csv"]).fails_with(2, &["--result", "and you nothing"]);
    town.ask("bob", "match", &["--terms", hash, "--result", "peer"]).fails_with(4, &["terms changed"]);
    assert!(!town.bench.exists("both.csv") && !town.bench.exists("results"));
    // Who wants that says so.
    town.granted("bob", "match", &["--result", "peer"]);
    assert_eq!(service.events("granted").len(), 3);
    service.end();
}

#[test]
fn every_rule_refuses_and_says_which_it_is() {
    let town = Town::new();
    let job = |name: &str, more: &str| {
        let mut lines = vec![
            format!("[jobs.{name}]"),
            "source = \"customers\"".into(),
            "allow = [\"bob\"]".into(),
            "reveal = [\"rows\"]".into(),
            "result = [\"peer\"]".into(),
            "max_peer_keys = 1000".into(),
            "runs_a_day = 1000".into(),
        ];
        for line in more.lines() {
            let key = line.split(' ').next().unwrap();
            lines.retain(|old| old.split(' ').next() != Some(key));
            lines.push(line.to_owned());
        }
        lines.join("\n") + "\n"
    };
    // An hour that is not now, whenever the test runs.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let hour = (now / 3600 + 12) % 24;
    let hours = format!("hours = [\"daily {hour:02}:00-{hour:02}:59\"]");
    let numbers = "reveal = [\"count\"]\nsecurity = \"semi-honest\"";
    let jobs = [
        job("late", "expires = 2020-01-01"),
        job("night", &hours),
        job("rows", ""),
        job("payload", "reveal = [\"payload\"]\ngive = [\"amount\"]"),
        job("many", "min_peer_keys = 31"),
        job("few", "max_peer_keys = 29"),
        job("once", "runs_a_day = 1"),
        job("numbers", numbers),
        job("more-numbers", numbers),
        job("carols", "allow = [\"carol\"]"),
        job(
            "fat",
            "memory_mib = 64\nreveal = [\"max:amount\"]\ngive = [\"amount\"]\nsecurity = \"semi-honest\"\nmin_peer_keys = 100000\nmax_peer_keys = 200000",
        ),
        job("gone", "").replace("source = \"customers\"", "source = \"gone\""),
    ]
    .concat();
    let gone = "[sources.gone]\ninput = \"nowhere-to-be-seen.csv\"\nkey = [\"email\"]\nrows_in_total = 100\n";
    // Two numbers, which semi-honest service charges with all 40 keys, and two runs over 40 rows fit into 170.
    town.policy("", "rows_in_total = 170\naggregate_runs = 2\n", &format!("{gone}{jobs}"));
    let mut service = Service::start(&town.bench);
    let none = town.refused("bob", "nothing", "allow", &[]);
    assert_eq!(none, town.refused("bob", "carols", "allow", &[]), "whether a job exists is not told");
    town.refused("bob", "late", "expires", &[]);
    town.refused("bob", "night", "hours", &[]);
    town.refused("bob", "rows", "reveal", &["--reveal", "count"]);
    town.refused("bob", "rows", "result", &["--result", "both"]);
    town.refused("bob", "payload", "give", &["--reveal", "payload:email"]);
    town.refused("bob", "many", "min_peer_keys", &[]);
    town.refused("bob", "few", "max_peer_keys", &[]);
    town.refused("bob", "fat", "memory", &["--security", "semi-honest"]);
    let source = town.refused("bob", "gone", "source", &[]);
    assert!(!source.contains("nowhere"), "{source}");

    // A budget of numbers is one of the source, whatever the job.
    town.granted("bob", "numbers", &["--security", "semi-honest"]);
    town.granted("bob", "more-numbers", &["--security", "semi-honest"]);
    town.refused("bob", "numbers", "aggregate_runs", &["--security", "semi-honest"]);
    town.granted("bob", "once", &[]);
    town.refused("bob", "once", "runs_a_day", &[]);
    town.granted("bob", "rows", &[]);
    town.refused("bob", "rows", "rows_in_total", &[]);
    // Each peer has its own.
    town.granted("carol", "carols", &[]);

    // A stranger's key ends in TLS, before anything was asked.
    town.ask("dave", "rows", &[]).fails_with(4, &["the peer rejected your key"]);

    // Neither a restart nor a reload gives a budget back.
    let rules: BTreeSet<String> =
        service.events("refused").iter().map(|event| event["rule"].as_str().unwrap().to_owned()).collect();
    // What does not fit into `rows_in_total` the client declines by itself.
    assert_eq!(rules.len(), 12, "{rules:?}");
    service.signal("-HUP");
    service.wait_for("reloaded", 1);
    town.refused("bob", "once", "runs_a_day", &[]);
    service.end();
    let service = Service::start(&town.bench);
    town.refused("bob", "once", "runs_a_day", &[]);
    town.refused("bob", "rows", "rows_in_total", &[]);
    service.end();
}

#[test]
fn a_reload_is_whole_or_not_at_all_and_the_end_waits_for_what_runs() {
    let town = Town::new();
    let second = MATCH.replace("[jobs.match]", "[jobs.second]").replace("\"bob\"", "\"carol\"");
    town.policy("", BUDGETS, MATCH);
    let mut service = Service::start(&town.bench);
    let good = town.bench.read("policy.toml");

    // Three faults, each with its line; the old rules stay.
    let bad = good.replace("runs_a_day = 1000", "runs_a_day = \"many\"\nspeed = 3\nhours = \"some day\"");
    town.bench.write("policy.toml", &bad);
    service.signal("-HUP");
    service.wait_for("not reloaded", 1);
    let line = bad.lines().position(|line| line.starts_with("runs_a_day")).unwrap() + 1;
    let faults = service.events("policy fault");
    let said: Vec<&str> = faults.iter().map(|event| event["message"].as_str().unwrap()).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    for (at, word) in ["runs_a_day", "speed", "hours"].into_iter().enumerate() {
        let found =
            said.iter().any(|text| text.contains(&format!("line {}:", line + at)) && text.contains(word));
        assert!(found, "{word}: {said:?}");
    }
    let check = town.bench.run(&["serve", "--policy", "policy.toml", "--check"]);
    check.fails_with(3, &["3 problems, listed above; the policy was not loaded"]);
    assert!(said.iter().all(|line| check.err.contains(line)), "{check:?}");
    town.granted("bob", "match", &[]);
    town.refused("carol", "second", "allow", &[]);

    // What needs a restart changes nothing either.
    town.bench.write("policy.toml", good.replace("state = \"state\"", "state = \"other\""));
    service.signal("-HUP");
    service.wait_for("not reloaded", 2);

    // A request that holds an offer keeps the rules it began with; others go by the new ones.
    let big = 200_000;
    town.bench.write("customers.csv", table("email", 0..big));
    town.bench.write("many.csv", table("mail", big / 2..big + big / 2));
    let words = town.asking("bob", "match", &["--input", "many.csv"]);
    let running = town.bench.spawn(&words.iter().map(String::as_str).collect::<Vec<_>>());
    service.wait_for("granted", 2);
    town.policy("", BUDGETS, &second);
    service.signal("-HUP");
    service.wait_for("reloaded", 1);
    town.refused("bob", "match", "allow", &[]);
    let said = wait(running);
    let result: Value = serde_json::from_str(said.success()).unwrap();
    assert_eq!(result["matches"], big / 2);

    // The end: what runs goes on, nothing new begins.
    let words = town.asking("carol", "second", &["--input", "many.csv"]);
    let running = town.bench.spawn(&words.iter().map(String::as_str).collect::<Vec<_>>());
    service.wait_for("granted", 3);
    service.signal("-TERM");
    service.wait_for("draining", 1);
    town.ask("carol", "second", &["--connect-timeout", "1"]).fails_with(4, &["cannot connect to "]);
    let said = wait(running);
    let result: Value = serde_json::from_str(said.success()).unwrap();
    assert_eq!(result["matches"], big / 2);
    service.wait_for("ended", 1);
    let status = service.child.take().unwrap().wait().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(service.events("done").len(), 3);
    assert_eq!(town.verify("state/records", &[])["signed_by_both"], 3);
}

/// The right subcommand is named on both sides where one runs another's.
#[test]
fn an_intersection_that_calls_a_service_is_told_to_ask_it() {
    let town = Town::new();
    town.policy("", BUDGETS, MATCH);
    let service = Service::start(&town.bench);
    let address = format!("127.0.0.1:{}", town.port);
    let keys = ["--identity", "bob.key", "--peer", "alice.pub", "--input", "kunden.csv", "--key", "mail"];
    let said = town.bench.run(&[&["psi", "--connect", &address][..], &keys].concat());
    said.fails_with(4, &["error: a service answers there; use `tacit request` instead of `tacit psi`"]);
    service.end();
    // And a request that calls no service.
    let keys = ["--identity", "alice.key", "--peer", "bob.pub", "--input", "customers.csv", "--key", "email"];
    let listens = town.bench.spawn(&[&["psi", "--listen", &address][..], &keys].concat());
    town.ask("bob", "match", &[]).fails_with(4, &["no service answers there, but `tacit psi`"]);
    wait(listens).fails_with(4, &["the peer runs `tacit request`, you run `tacit psi`"]);
}

/// A service that let its own key in would offer everything to whoever has its file.
#[test]
fn a_policy_that_lets_the_service_itself_in_is_refused() {
    let town = Town::new();
    town.policy("[peers.dave]\nkey = \"alice.pub\"", BUDGETS, MATCH);
    let words = "[peers.dave]: this is the service's own public key";
    for more in [&["--check"][..], &[]] {
        let said = town.bench.run(&[&["serve", "--policy", "policy.toml"], more].concat());
        said.fails_with(3, &[words]);
    }
}

/// A job that answers lookups in `customers.oprf`.
const KNOWN: &str = "[jobs.known]\nkind = \"lookup\"\nallow = [\"bob\", \"carol\"]\n\
    private = \"customers.oprf\"\nmax_queries = 30\nqueries_in_total = 40\nruns_a_day = 100\n\
    purpose = \"a test\"\n";

/// Makes the publication of `customers.csv`, or makes it anew.
fn publish(town: &Town, what: &str, more: &[&str]) {
    let words = ["tags", what, "--input", "customers.csv", "--key", "email", "--identity", "alice.key"];
    let files = ["--out", "customers.tags", "--private", "customers.oprf"];
    town.bench.run(&[&words[..], &files, more].concat()).success();
}

#[test]
fn lookups_are_answered_and_counted_over_the_lifetime_of_the_tags() {
    let town = Town::new();
    publish(&town, "publish", &[]);
    town.policy("concurrency_per_peer = 4", BUDGETS, &format!("{KNOWN}{MATCH}"));
    let check = town.bench.run(&["serve", "--policy", "policy.toml", "--check"]);
    assert!(check.success().contains("each client 40 over the lifetime"), "{check:?}");
    let service = Service::start(&town.bench);
    let (tags, value) = (["--tags", "customers.tags"], |value| ["--value", value]);
    let known = value("user3@example.com");
    let single = [&tags[..], &known].concat();

    let terms = town.ask("bob", "known", &[&single[..], &["--dry-run"]].concat());
    let terms: Value = serde_json::from_str(terms.success()).unwrap();
    assert_eq!((&terms["offer"]["service_keys"], &terms["offer"]["left"]["rows"]), (&40.into(), &40.into()));
    // Terms that were reviewed, those of another job, and what is no hash.
    let hash = terms["terms_hash"].as_str().unwrap();
    let other = town.ask("bob", "match", &["--dry-run"]);
    let other: Value = serde_json::from_str(other.success()).unwrap();
    let pinned = |hash: &str| town.ask("bob", "known", &[&single[..], &["--terms", hash]].concat());
    pinned(other["terms_hash"].as_str().unwrap()).fails_with(4, &["terms changed", hash]);
    pinned("5b1e").fails_with(2, &["64 hexadecimal digits"]);
    let files = ["--output", "both.csv", "--output-rest", "rest.csv", "--terms", hash];
    let found = town.granted("bob", "known", &[&tags[..], &files].concat());
    assert_eq!(town.bench.read("rest.csv"), table("mail", 40..50));
    assert_eq!(
        (&found["matches"], &found["queries_left"], &found["signed_by_both"]),
        (&20.into(), &10.into(), &true.into())
    );
    assert_eq!(town.bench.read("both.csv"), table("mail", 20..40));
    let more = [&single[..], &value("nobody@example.com"), &known].concat();
    let found = town.granted("bob", "known", &more);
    assert_eq!(found["found"], serde_json::json!([true, false, true]));
    assert_eq!(found["queries_left"], 8, "a key that is named twice is one query");
    let text = town.asking("bob", "known", &single);
    let text = town.bench.run(&text.iter().skip(1).map(String::as_str).collect::<Vec<_>>());
    assert!(text.success().contains("user3@example.com: published"), "{text:?}");

    // What may be asked for is listed in its own words.
    let connect = format!("127.0.0.1:{}", town.port);
    let list = ["request", "--list", "--connect", &connect, "--identity", "bob.key", "--peer", "alice.pub"];
    let words = town.bench.run(&list);
    assert!(words.success().contains("from 1 column: type as in the tag file"), "{words:?}");
    let listed = town.bench.run(&[&["--json"], &list[..]].concat());
    let listed: Value = serde_json::from_str(listed.success()).unwrap();
    let of = |name: &str| listed["jobs"].as_array().unwrap().iter().find(|job| job["job"] == name).unwrap();
    let lookups =
        (&of("known")["key_types"], &of("known")["left"]["queries"], of("known")["left"].get("rows"));
    assert_eq!(lookups, (&Value::Null, &7.into(), None));
    assert_eq!(of("match")["key_types"], "text");
    let other = ["--tags", "customers.tags", "--key", "mail:email", "--value", "a@b.org"];
    town.ask("bob", "known", &other)
        .fails_with(2, &["--key: keys differ: key types (yours email", "write mail"]);

    // What is more than is left is not asked for, and beyond it nothing is offered; others have their own.
    town.ask("bob", "known", &tags).fails_with(3, &["30 distinct keys", "1 to 7"]);
    let rest: Vec<String> = (0..7).map(|number| format!("user{number}@example.com")).collect();
    let rest: Vec<&str> = rest.iter().flat_map(|key| ["--value", key]).collect();
    town.granted("bob", "known", &[&tags[..], &rest].concat());
    let none = town.refused("bob", "known", "queries_in_total", &single);
    assert!(
        none.ends_with("no query to this publication is left until its tags are published again"),
        "{none}"
    );
    town.granted("carol", "known", &single);
    // Neither kind of job is taken for the other.
    town.ask("bob", "match", &single).fails_with(2, &["--tags"]);
    town.ask("carol", "known", &[]).fails_with(2, &["--tags"]);
    service.end();

    // A restart gives nothing back; another publication is another budget, bounded by what it says itself.
    let service = Service::start(&town.bench);
    town.refused("bob", "known", "queries_in_total", &single);
    std::fs::copy(town.bench.path("customers.tags"), town.bench.path("old.tags")).unwrap();
    publish(&town, "rotate", &["--overwrite", "--max-queries", "2"]);
    let old = [&["--tags", "old.tags"][..], &known].concat();
    town.ask("bob", "known", &old).fails_with(3, &["not the service's current publication"]);
    assert_eq!(town.granted("bob", "known", &single)["queries_left"], 1);
    let last = town.granted("bob", "known", &single);
    town.refused("bob", "known", "queries_in_total", &single);
    let log = service.end();
    let text = log.iter().map(Value::to_string).collect::<String>();
    assert!(!text.contains("example.com"), "{text}");

    let alice = town.verify(
        "state/records",
        &["--key", "alice.pub", "--against", "bob.records", "--against-key", "bob.pub"],
    );
    assert_eq!((&alice["records"], &alice["signed_by_both"]), (&7.into(), &7.into()));
    town.verify("bob.records", &["--key", "bob.pub", "--against", "state/records"]);
    let run = last["run"].as_str().unwrap();
    town.verify("state/records", &["--run", run, "--input", "customers.tags"]);
}

#[test]
fn a_key_that_follows_another_is_known_and_the_same_peer() {
    let town = Town::new();
    town.policy(
        "concurrency_per_peer = 4",
        "rows_in_total = 90\naggregate_runs = 0\n",
        &MATCH.replace("runs_a_day = 1000", "runs_a_day = 4"),
    );
    std::fs::copy(town.bench.path("bob.pub"), town.bench.path("first.pub")).unwrap();
    let service = Service::start(&town.bench);
    (0..2).for_each(|_| _ = town.granted("bob", "match", &[]));
    service.end();
    // The newest key is named to the service; the old one is accepted on, and both spend one budget.
    town.bench.run(&["keygen", "--out", "bob2.key", "--successor-of", "bob.key"]).success();
    let chain = town.bench.read("bob2.pub");
    assert!(chain.starts_with(&town.bench.read("first.pub")) && chain.lines().count() == 2, "{chain}");
    assert_eq!(chain, town.bench.read("bob.pub"), "the old key's file names the new key");
    let service = Service::start(&town.bench);
    town.refused("bob2", "match", "rows_in_total", &[]);
    town.refused("bob", "match", "rows_in_total", &[]);
    // Whoever has stolen the old key names another follower, and is too late.
    std::fs::copy(town.bench.path("first.pub"), town.bench.path("stolen.pub")).unwrap();
    std::fs::copy(town.bench.path("bob.key"), town.bench.path("stolen.key")).unwrap();
    town.bench.run(&["keygen", "--out", "thief.key", "--successor-of", "stolen.key"]).success();
    std::fs::copy(town.bench.path("thief.pub"), town.bench.path("bob.pub")).unwrap();
    let mut service = service;
    service.signal("-HUP");
    service.wait_for("not reloaded", 1);
    let fault = service.events("policy fault")[0]["message"].to_string();
    assert!(fault.contains("[peers.bob]") && fault.contains("had a different successor before"), "{fault}");
    town.ask("thief", "match", &[]).fails_with(4, &["the peer rejected your key"]);
    town.bench.write("bob.pub", &chain);
    let long = ["keygen", "--out", "late.key", "--successor-of", "carol.key", "--overlap", "91"];
    town.bench.run(&long).fails_with(2, &["--overlap"]);
    service.end();
    // The service's own key has a successor, which those who pinned the old one know by its file.
    town.policy("concurrency_per_peer = 4", "rows_in_total = 1000\n", MATCH);
    let successor = ["keygen", "--out", "alice2.key", "--successor-of", "alice.key", "--overlap", "0"];
    town.bench.run(&successor).success();
    let policy = town.bench.read("policy.toml").replace("alice.key", "alice2.key");
    town.bench.write("policy.toml", policy);
    let service = Service::start(&town.bench);
    let words = town.asking("bob2", "match", &[]);
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    let said = town.bench.run(&[&words, &["--output", "followed.csv"][..]].concat());
    said.success();
    assert!(said.err.contains("successor is"), "{said:?}");
    std::fs::copy(town.bench.path("first.pub"), town.bench.path("bob.pub")).unwrap();
    service.signal("-HUP");
    service.end();
    // Without the successor's line the new key is a stranger's.
    let service = Service::start(&town.bench);
    town.ask("bob2", "match", &[]).fails_with(4, &["the peer rejected your key"]);
    service.end();
    town.verify("state/records", &["--key", "alice2.pub"]);
    let again = ["keygen", "--out", "bob3.key", "--successor-of", "bob2.key"];
    let line = town.bench.read("bob2.pub").lines().nth(1).unwrap().replacen('a', "b", 1);
    town.bench.write("bob2.pub", format!("{}{line}\n", town.bench.read("first.pub")));
    town.bench.run(&again).fails_with(3, &["bob2.pub", "successor"]);
    assert!(!town.bench.exists("bob3.key"));
}

#[test]
fn peers_are_known_by_certificates_of_an_authority() {
    let town = Town::new();
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    town.bench.write("ca.pem", parameters.self_signed(&key).unwrap().pem());
    let issuer = rcgen::Issuer::new(parameters, key);
    for name in ["alice", "bob", "carol", "dave"] {
        let key = rcgen::KeyPair::generate().unwrap();
        let parameters = rcgen::CertificateParams::new(vec![format!("{name}.example")]).unwrap();
        town.bench.write(&format!("{name}.pem"), parameters.signed_by(&key, &issuer).unwrap().pem());
        town.bench.write(&format!("{name}.pkcs8"), key.serialize_pem());
    }
    publish(&town, "publish", &[]);
    let head = "authority = \"ca.pem\"\ncertificate = \"alice.pem\"\ncertificate_key = \"alice.pkcs8\"";
    town.policy(head, BUDGETS, &format!("{KNOWN}{MATCH}"));
    let policy = town.bench.read("policy.toml");
    let policy = ["bob", "carol"].iter().fold(policy, |policy, who| {
        policy.replace(&format!("key = \"{who}.pub\""), &format!("name = \"{who}.example\""))
    });
    town.bench.write("policy.toml", policy);
    let service = Service::start(&town.bench);
    let ask_by = |who: &str, key: &str, service: &str, job: &str, more: &[&str]| {
        let words = format!(
            "--json request {job} --connect 127.0.0.1:{} --identity {key}.key --authority ca.pem --certificate \
             {who}.pem --certificate-key {who}.pkcs8 --peer-name {service} --key mail --yes",
            town.port
        );
        town.bench.run(&words.split_whitespace().chain(more.iter().copied()).collect::<Vec<_>>())
    };
    let ask = |who: &str, service: &str, job: &str, more: &[&str]| ask_by(who, who, service, job, more);
    let table = ["--input", "kunden.csv"];
    let said = ask("bob", "alice.example", "match", &table);
    let result: Value = serde_json::from_str(said.success()).unwrap();
    assert_eq!((&result["matches"], &result["signed_by_both"]), (&20.into(), &true.into()));
    let value = ["--tags", "customers.tags", "--value", "user1@example.com"];
    let said = ask("carol", "alice.example", "known", &value);
    let result: Value = serde_json::from_str(said.success()).unwrap();
    assert_eq!(result["found"], serde_json::json!([true]));
    ask("carol", "alice.example", "match", &table).fails_with(4, &["`allow`"]);
    // Certified, but nobody whom the policy names; and a service of another name.
    ask("dave", "alice.example", "match", &table).fails_with(4, &["the peer rejected your key"]);
    ask("bob", "eve.example", "match", &table).fails_with(4, &["eve.example"]);
    // A certificate for two of the peers is neither's.
    let key = rcgen::KeyPair::generate().unwrap();
    let names = ["bob.example", "carol.example"].map(str::to_owned).to_vec();
    let both = rcgen::CertificateParams::new(names).unwrap();
    town.bench.write("eve.pem", both.signed_by(&key, &issuer).unwrap().pem());
    town.bench.write("eve.pkcs8", key.serialize_pem());
    town.bench.run(&["keygen", "--out", "eve.key"]).success();
    ask("eve", "alice.example", "match", &table).fails_with(4, &["the peer rejected your key"]);
    town.verify(
        "state/records",
        &["--key", "alice.pub", "--against", "bob.records", "--against-key", "bob.pub"],
    );
    // Bob's certificate, and another key for the records of this run, in a folder that he does not show.
    let hidden = [&table[..], &["--records", "hidden"]].concat();
    ask_by("bob", "dave", "alice.example", "match", &hidden).success();
    let granted = service.end().into_iter().filter(|event| event["event"] == "granted");
    let granted = granted.map(|event| event["peer"].to_string()).collect::<Vec<_>>();
    assert_eq!(granted, ["\"bob\"", "\"carol\"", "\"bob\""]);
    let whole = |who: &[&str]| {
        let export =
            ["--json", "audit", "export", "state/records", "--overwrite", "--output", "for-bob.jsonl"];
        let said = town.bench.run(&[&export[..], who].concat());
        serde_json::from_str::<Value>(said.success()).unwrap()["records"].as_u64()
    };
    assert_eq!((whole(&["--peer", "bob.pub"]), whole(&["--peer-name", "bob.example"])), (Some(2), Some(2)));
    // What an export may replace is no budget and no record.
    for kept in ["state/ledger", "state/records/records.jsonl", "state/records/private.jsonl"] {
        let words =
            ["audit", "export", "state/records", "--peer", "bob.pub", "--overwrite", "--output", kept];
        town.bench.run(&words).fails_with(3, &[kept, "never overwritten"]);
    }
    let found = town.verify("state/records", &["--peers", "--against-name", "bob.example"]);
    let known = found["peers"].as_array().unwrap().iter().filter(|peer| peer["known"] == true);
    assert_eq!(
        known.map(|peer| peer["certificates"][0].as_str().unwrap()).collect::<Vec<_>>(),
        ["bob.example"; 2]
    );
    let compare = |more: &[&str]| {
        let words = ["audit", "verify", "state/records", "--key", "alice.pub", "--against", "bob.records"];
        town.bench.run(&[&words[..], more].concat())
    };
    compare(&["--against-key", "bob.pub"]).fails_with(3, &["is missing in"]);
    compare(&["--against-name", "bob.example"]).fails_with(3, &["is missing in"]);
    // The records name the keys that signed them, and hold the certificates that signed those keys.
    let verified = town.verify("bob.records", &["--key", "bob.pub", "--authority", "ca.pem"]);
    assert_eq!(verified["certificates"], 2);
    let shown = town.bench.run(&["audit", "show", "bob.records"]);
    assert!(shown.success().contains("bob (client), certificate bob.example, key"), "{shown:?}");
    let other = ["audit", "verify", "bob.records", "--authority", "alice.pem"];
    town.bench.run(&other).fails_with(3, &["certificate for alice.example"]);
}

/// The log in both forms: what is told at which level, and a run by the name that both sides have for it.
#[test]
fn the_log_has_levels_and_names_a_run_as_the_other_side_does() {
    let town = Town::new();
    town.policy("", BUDGETS, MATCH);
    let mut service = Service::start_with(&town.bench, &["--verbose"]);
    let said = town.ask("bob", "match", &["--verbose"]);
    let result: Value = serde_json::from_str(said.success()).unwrap();
    let run = result["run"].as_str().unwrap();
    let about = format!(" run {run}");
    for what in ["debug offered", "debug accepted", "debug played"] {
        let found = said.err.lines().any(|line| line.contains(what) && line.contains(&about));
        assert!(found, "{what}: {said:?}");
    }
    assert!(said.err.lines().any(|line| line.starts_with("handshake: ")), "{said:?}");
    town.refused("carol", "match", "allow", &[]);
    service.wait_for("refused", 1);
    service.wait_for("done", 1);
    for (what, level) in [
        ("asked", "debug"),
        ("table read", "debug"),
        ("offered", "info"),
        ("accepted", "debug"),
        ("granted", "info"),
        ("phase", "debug"),
        ("done", "info"),
    ] {
        let found = service.events(what);
        let of_run = found.iter().find(|event| event["run"] == run).unwrap_or_else(|| panic!("{what}"));
        assert_eq!(
            (&of_run["level"], &of_run["name"], &of_run["peer"]),
            (&level.into(), &"serve".into(), &"bob".into())
        );
    }
    assert_eq!(service.events("refused")[0]["level"], "warn");
    assert!(service.events("done")[0]["bytes_sent"].as_u64().unwrap() > 100);
    service.end();

    // As text, and no more than was asked for.
    let mut child = town.bench.spawn(&["serve", "--policy", "policy.toml", "--log-level", "warn"]);
    town.granted("bob", "match", &[]);
    town.refused("carol", "match", "allow", &[]);
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{text}");
    let line = text.trim_end();
    assert!(
        !line.contains('\n')
            && line.contains(" warn refused run ")
            && line.contains(" peer carol job match rule allow: "),
        "{text}"
    );
}

/// Strangers of all kinds, refused and granted requests, eight at a time: each grant is the plain join of its
/// own table, a refusal tells nothing, and memory stays what it was.
#[test]
fn strangers_and_requests_mixed_leave_grants_right_and_memory_flat() {
    const ALL: usize = if cfg!(feature = "long-tests") { 1_300 } else { 100 };
    let town = Town::new();
    town.policy("concurrency = 8\nconcurrency_per_peer = 8", BUDGETS, MATCH);
    let mut service = Service::start(&town.bench);
    (0..4).for_each(|_| _ = town.granted("bob", "match", &[]));
    let (next, granted) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let held: Mutex<Vec<TcpStream>> = Mutex::default();
    let told: Mutex<BTreeSet<String>> = Mutex::default();
    let resident: Mutex<Vec<u64>> = Mutex::new(vec![service.resident()]);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= ALL {
                        return;
                    }
                    if number % (ALL / 10) == 0 {
                        resident.lock().unwrap().push(service.resident());
                    }
                    let connect = || TcpStream::connect(("127.0.0.1", town.port)).unwrap();
                    match number % 10 {
                        0..4 => {
                            // The service has 0..40.
                            let (from, to) = (number as u32 * 7 % 45, 46 + number as u32 % 30);
                            let (ours, common) = (format!("ours{number}.csv"), format!("common{number}.csv"));
                            town.bench.write(&ours, table("mail", from..to));
                            let result =
                                town.granted("bob", "match", &["--input", &ours, "--output", &common]);
                            assert_eq!(result["matches"], 40_u32.saturating_sub(from));
                            assert_eq!(town.bench.read(&common), table("mail", from..40));
                            granted.fetch_add(1, Ordering::Relaxed);
                        }
                        4 => {
                            let job = if number % 20 == 4 { "match" } else { "no-such-job" };
                            let words = town.refused("carol", job, "allow", &[]);
                            told.lock().unwrap().insert(words);
                        }
                        5 => {
                            let said = town.ask("dave", "match", &[]);
                            said.fails_with(4, &["the peer rejected your key"]);
                            assert!(
                                !said.err.contains("allow") && !said.err.contains("customers"),
                                "{said:?}"
                            );
                        }
                        // Half open: it says nothing, and stays.
                        6 => held.lock().unwrap().push(connect()),
                        // A greeting that drips.
                        7 => {
                            let mut stream = connect();
                            let _ = stream.write_all(&[0x16, 0x03, 0x01]);
                            held.lock().unwrap().push(stream);
                        }
                        // Something other than TLS, and more of it than any greeting.
                        8 => {
                            let mut stream = connect();
                            let _ = stream.write_all(&vec![0xff; 1 << 20]);
                        }
                        _ => {
                            let mut stream = connect();
                            let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: service\r\n\r\n");
                        }
                    }
                }
            });
        }
    });
    let grants = granted.load(Ordering::Relaxed) + 4;
    service.wait_for("done", grants);
    let mut resident = resident.into_inner().unwrap();
    resident.push(service.resident());
    eprintln!("{ALL} at the door, {grants} granted; resident, in kB: {resident:?}");
    // Eight at once take more than one after the other, and so do the strangers who are still there; behind
    // the first third of a long way what is flat grows no more.
    let (first, last) = (resident[0], resident[resident.len() - 1]);
    assert!(last < first + (64 << 10), "{resident:?}");
    let third = resident.len() / 3;
    let mean = |of: &[u64]| of.iter().sum::<u64>() / of.len() as u64;
    let (middle, end) = (mean(&resident[third..2 * third]), mean(&resident[2 * third..]));
    assert!(ALL < 1000 || end < middle + (8 << 10), "{resident:?}");
    let told = told.into_inner().unwrap();
    assert_eq!(told.len(), 1, "whether a job exists is told: {told:?}");
    assert!(told.iter().all(|words| !words.contains("customers") && !words.contains('@')), "{told:?}");
    for event in service.events("refused") {
        assert_eq!((&event["rule"], &event["peer"]), (&"allow".into(), &"carol".into()), "{event}");
    }
    let log = service.end();
    assert!(!log.iter().any(|event| event.to_string().contains("example.com")), "a row in the log");
    let verified = town.verify("state/records", &["--against", "bob.records", "--against-key", "bob.pub"]);
    assert_eq!(verified["signed_by_both"], grants);
    assert!(ALL < 100 || grants >= 40);
}

/// Whoever has not shown a key holds little, and not for long, however many they are.
#[test]
fn the_silent_the_slow_and_the_oversized_are_bounded_before_they_show_a_key() {
    const CROWD: usize = 300;
    let town = Town::new();
    town.policy("", BUDGETS, MATCH);
    let service = Service::start(&town.bench);
    town.granted("bob", "match", &[]);
    let before = service.resident();
    let files = || std::fs::read_dir(format!("/proc/{}/fd", service.pid())).unwrap().count();
    let start = Instant::now();
    let mut crowd = Vec::new();
    for number in 0..CROWD {
        let mut stream = TcpStream::connect(("127.0.0.1", town.port)).unwrap();
        stream.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
        let _ = match number % 3 {
            0 => Ok(()),
            1 => stream.write_all(&[0x16, 0x03, 0x01]),
            // A greeting that says it is long, and goes on.
            _ => (0..64)
                .try_for_each(|_| stream.write_all(&[&[0x16, 3, 3, 0x40, 0], &[1; 1 << 14][..]].concat())),
        };
        crowd.push(stream);
        // Two for each of the 64 who are listened to, those of the service itself, and some that are just let
        // go.
        assert!(files() < 3 * 64 + 32, "{} open files at {number}", files());
    }
    // Somebody whose key is known gets through nevertheless, and is not long about it.
    town.granted("bob", "match", &["--connect-timeout", "30"]);
    let after = service.resident();
    assert!(after < before + (48 << 10), "{before} kB before, {after} kB after");
    for mut stream in crowd {
        // All are let go: the silent ones too, and those that would drip for ever.
        let _ = stream.set_read_timeout(Some(Duration::from_secs(20)));
        let _ = stream.write_all(&[0]);
        let ended = loop {
            match stream.read(&mut [0; 256]) {
                Ok(0) => break true,
                Ok(_) => {}
                Err(error) => break error.kind() != std::io::ErrorKind::WouldBlock,
            }
        };
        assert!(ended, "one stays connected after {:?}", start.elapsed());
    }
    service.end();
}

/// A service that is killed at any moment grants no more than its rules allow, and has a record of every run
/// that the other side saw begin.
#[test]
fn kills_at_random_moments_lose_no_record_and_grant_no_run_twice() {
    const ROUNDS: u64 = if cfg!(feature = "long-tests") { 100 } else { 12 };
    let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
    eprintln!("seed {seed}");
    let mut state = seed;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let town = Town::new();
    let most = ROUNDS;
    let head = "unsigned_runs_a_day = 1000";
    town.policy(head, BUDGETS, &MATCH.replace("runs_a_day = 1000", &format!("runs_a_day = {most}")));
    for _ in 0..ROUNDS {
        let service = Service::start(&town.bench);
        let words = town.asking("bob", "match", &["--connect-timeout", "1", "--timeout", "5"]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let asking = [town.bench.spawn(&words), town.bench.spawn(&words)];
        thread::sleep(Duration::from_millis(random(160)));
        service.kill();
        for said in asking.map(wait) {
            assert!([0, 4].contains(&said.code), "{said:?}");
        }
    }
    let service = Service::start(&town.bench);
    // What is left of the day's runs is granted, and not one more.
    let mut last = 0;
    while town.ask("bob", "match", &[]).code == 0 {
        last += 1;
        assert!(last <= most, "a budget without end");
    }
    town.refused("bob", "match", "runs_a_day", &[]);
    service.end();
    let begun = |folder: &str| -> Vec<Value> {
        let text = town.bench.read(&format!("{folder}/records.jsonl"));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let runs = |records: &[Value]| -> Vec<String> {
        records.iter().map(|record| record["common"]["run"].as_str().unwrap().to_owned()).collect()
    };
    // The last command of Bob's records what his killed ones left; none was killed here, so all is there.
    let (alice, bob) = (begun("state/records"), begun("bob.records"));
    let (alices, bobs) = (runs(&alice), runs(&bob));
    let distinct: BTreeSet<&String> = bobs.iter().collect();
    assert_eq!(distinct.len(), bobs.len(), "a run twice");
    assert!(bobs.iter().all(|run| alices.contains(run)), "a record lost: {bobs:?} {alices:?}");
    let ran = bob.iter().filter(|record| record["common"]["outcome"] != "not begun").count() as u64;
    assert!(ran <= most, "{ran} runs of {most}");
    assert!(ran >= last, "{ran} runs, {last} of them after the last kill");
    town.verify(
        "state/records",
        &["--key", "alice.pub", "--against", "bob.records", "--against-key", "bob.pub"],
    );
    town.verify("bob.records", &["--key", "bob.pub", "--against", "state/records"]);
}
