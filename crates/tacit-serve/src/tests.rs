//! Records that were tampered with, policies with faults, and peers that cheat a service which runs here.

use crate::audit;
use crate::clock::{Clock, Time};
use crate::json::hex;
use crate::log::Event;
use crate::policy::{Policy, explain};
use crate::records::{self, Records};
use crate::request::{self, Ask};
use crate::server::{self, Setup, Signal};
use crate::terms::{Accept, Left, Offer, Said, Side, common_part};
use crate::terms::{Go, VERSION};
use crate::wire::{self, Close, Message};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tacit::Security;
use tacit::data::csv::Options as Dialect;
use tacit::data::records::{KeySpec, Normalisation};
use tacit::data::table::Source;
use tacit::job::psi::{self, Own};
use tacit::job::tags;
use tacit::net::{self, Identity, Limits, Options, Protection, Session, Tls};
use tacit::sealed::FileKey;
use tempfile::TempDir;

pub(crate) fn offer(run: &str) -> Offer {
    Offer {
        version: VERSION,
        run: run.into(),
        service_key: None,
        job: "match".into(),
        reveal: "rows".into(),
        service_name: "Alice".into(),
        client_name: "Bob".into(),
        result: "client".into(),
        service_gives: Vec::new(),
        client_gives: Vec::new(),
        service_bytes_a_key: None,
        client_bytes_a_key: None,
        protocol: "auto".into(),
        security: "malicious".into(),
        base_ot: "mrr21".into(),
        key_columns: 1,
        key_types: "text".into(),
        nfc: true,
        trim: true,
        case_fold: true,
        min_matches: 0,
        bounds: None,
        result_to_owner: false,
        service_keys: 40,
        min_peer_keys: 0,
        max_peer_keys: 1000,
        fitting_keys: 1000,
        publication: None,
        question: None,
        left: Left { runs_today: 1, rows: 100, aggregates: 0, epsilon: None },
        purpose: Some("Zweck: \u{e4}\u{1f600}".into()),
        agreement: None,
        expires: None,
        seconds: 1,
    }
}

pub(crate) fn go(head: [u8; 32], started: u64) -> Go {
    let (commitment, head) = (hex(&[2; 32]), hex(&head));
    Go { keys: 40, commitment, head, started, proof: None, signature: String::new() }
}

pub(crate) fn listed(chain: audit::Chain) -> Vec<audit::Record> {
    chain.records().cloned().collect()
}

pub(crate) fn compare(one: &audit::Chain, other: &audit::Chain) -> tacit::Result<usize> {
    let party = |chain, name| audit::Party { chain, keys: &[], certificates: &[], name };
    let found = audit::compare(party(one, "these records"), party(other, "the other side's records"));
    found.map(|found| found.runs)
}

pub(crate) fn id() -> KeySpec {
    KeySpec::text(vec!["id".to_owned()], Normalisation::default())
}

/// Two chains of `count` runs that both sides signed.
pub(crate) fn chains(folder: &Path, count: u8) -> (Identity, Identity) {
    let (alice, bob) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let (service, _) = Records::open(&folder.join("alice"), &alice, Side::Service).unwrap();
    let (client, _) = Records::open(&folder.join("bob"), &bob, Side::Client).unwrap();
    for number in 0..count {
        let accept =
            Accept { keys: 30, commitment: hex(&[1; 32]), head: hex(&client.head().unwrap()), proof: None };
        let go = go(service.head().unwrap(), 1_700_000_000);
        let common =
            common_part(&offer(&hex(&[number; 16])), &accept, &go, [&alice.public(), &bob.public()]).unwrap();
        let mut one = service.begin(common.clone(), None, records::salt(), records::salt()).unwrap();
        let mut two = client.begin(common, Some(&one.begun()), records::salt(), records::salt()).unwrap();
        one.peer_began(&bob.public(), &two.begun()).unwrap();
        [&mut one, &mut two].into_iter().for_each(|begun| begun.common["outcome"] = json!("complete"));
        let signed = [one.sign().unwrap(), two.sign().unwrap()];
        one.finish("complete", &Value::Null, Some(signed[1].clone())).unwrap();
        two.finish("complete", &json!({ "matches": 20 }), Some(signed[0].clone())).unwrap();
    }
    (alice, bob)
}

/// A run that begins again, with the common part of its end.
pub(crate) fn begun_as(records: &Records, common: &Value) -> records::Begun {
    let start = records::as_begun(common);
    let mut begun = records.begin(start, None, records::salt(), records::salt()).unwrap();
    begun.common = common.clone();
    begun
}

pub(crate) fn text(folder: &Path, whose: &str) -> String {
    std::fs::read_to_string(folder.join(whose).join("records.jsonl")).unwrap()
}

#[test]
fn a_record_with_any_byte_changed_is_never_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let (alice, _) = chains(folder.path(), 1);
    let honest = text(folder.path(), "alice");
    let found = listed(audit::verify_chain(&honest).unwrap());
    assert_eq!((found.len(), found[0].both_signed, found[0].owner), (1, true, alice.public()));
    for at in 0..honest.len() {
        // One bit, each in its turn, and the byte as a whole.
        for change in [1u8 << (at % 8), 0x20, 0xff] {
            let mut bytes = honest.clone().into_bytes();
            bytes[at] ^= change;
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            assert!(audit::verify_chain(&changed).is_err(), "byte {at} by {change:#x}: {changed}");
        }
        let mut without = honest.clone().into_bytes();
        without.remove(at);
        if let Ok(changed) = String::from_utf8(without) {
            assert!(audit::verify_chain(&changed).is_err(), "without byte {at}");
        }
    }
}

/// What the owner of a chain can do to it afterwards shows in what the other side has.
#[test]
fn missing_records_cut_tails_and_forged_ones_show() {
    let folder = tempfile::tempdir().unwrap();
    let (alice, bob) = chains(folder.path(), 4);
    let (ours, theirs) = (text(folder.path(), "alice"), text(folder.path(), "bob"));
    let bobs = audit::verify_chain(&theirs).unwrap();
    compare(&audit::verify_chain(&ours).unwrap(), &bobs).unwrap();
    let lines: Vec<&str> = ours.lines().collect();
    let joined = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    // Out of the middle, out of order, twice: the chain itself shows it.
    for order in [&[0, 2, 3][..], &[1, 2, 3], &[0, 2, 1, 3], &[0, 1, 1, 2, 3]] {
        let some: Vec<&str> = order.iter().map(|at| lines[*at]).collect();
        assert!(audit::verify_chain(&joined(&some)).is_err(), "{order:?}");
    }
    // A tail that was cut shows against the other side's.
    for kept in 1..4 {
        let cut = audit::verify_chain(&joined(&lines[..kept])).unwrap();
        assert!(compare(&cut, &bobs).is_err(), "{kept} kept");
    }
    assert!(audit::verify_chain(ours.trim_end()).is_err(), "half a line");
    // A chain written anew by its owner, with one run less and sound seals.
    let forged = tempfile::tempdir().unwrap();
    let (service, _) = Records::open(forged.path(), &alice, Side::Service).unwrap();
    for line in [lines[0], lines[1], lines[3]] {
        let record: Value = serde_json::from_str(line).unwrap();
        let begun = begun_as(&service, &record["common"]);
        let signed = record["signatures"]["client"].as_str().unwrap().to_owned();
        begun.finish("complete", &Value::Null, Some(signed)).unwrap();
    }
    let anew = audit::load(forged.path()).unwrap();
    assert!(compare(&anew, &bobs).unwrap_err().to_string().contains("is missing in"));
    // One side cannot sign for the other, nor can a signature serve for another use.
    let record: Value = serde_json::from_str(lines[0]).unwrap();
    let mut common = record["common"].clone();
    common["client"]["keys"] = json!(31);
    let begun = begun_as(&service, &common);
    let old = record["signatures"]["client"].as_str().unwrap().to_owned();
    let line = begun.finish("complete", &Value::Null, Some(old)).unwrap();
    assert!(audit::verify(&line).unwrap_err().to_string().contains("signature of the client"));
    let message = crate::json::canonical(&common).unwrap();
    let other_use = bob.sign(records::SEAL, message.as_bytes()).unwrap();
    assert!(!bob.public().verify(records::COMMON, message.as_bytes(), &other_use));
}

#[test]
fn a_run_whose_process_is_gone_is_recorded_as_interrupted_once() {
    let folder = tempfile::tempdir().unwrap();
    let (alice, bob) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let (service, _) = Records::open(folder.path(), &alice, Side::Service).unwrap();
    let accept = Accept { keys: 30, commitment: hex(&[1; 32]), head: hex(&[0; 32]), proof: None };
    let go = go([0; 32], 5);
    let common = common_part(&offer(&hex(&[7; 16])), &accept, &go, [&alice.public(), &bob.public()]).unwrap();
    let begun = service.begin(common.clone(), None, records::salt(), records::salt()).unwrap();
    assert!(service.begin(common, None, records::salt(), records::salt()).is_err(), "one run begins once");
    // Alive: not yet interrupted.
    assert_eq!(Records::open(folder.path(), &alice, Side::Service).unwrap().1, 0);
    drop(begun);
    assert_eq!(Records::open(folder.path(), &alice, Side::Service).unwrap().1, 1);
    assert_eq!(Records::open(folder.path(), &alice, Side::Service).unwrap().1, 0);
    let found = listed(audit::load(folder.path()).unwrap());
    assert_eq!((found.len(), found[0].outcome(), found[0].both_signed), (1, "interrupted", false));
}

#[test]
fn of_what_a_crash_left_only_runs_without_a_record_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let (alice, bob) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let (client, _) = Records::open(folder.path(), &bob, Side::Client).unwrap();
    let begin = |number: u8| {
        let accept = Accept { keys: 30, commitment: hex(&[1; 32]), head: hex(&[0; 32]), proof: None };
        let go = go([0; 32], 5);
        let keys = [&alice.public(), &bob.public()];
        let common = common_part(&offer(&hex(&[number; 16])), &accept, &go, keys).unwrap();
        client.begin(common, None, records::salt(), records::salt()).unwrap()
    };
    let pending = folder.path().join("pending");
    let recorded = begin(0);
    let (name, kept) = {
        let entry = std::fs::read_dir(&pending).unwrap().next().unwrap().unwrap();
        (entry.path(), std::fs::read(entry.path()).unwrap())
    };
    recorded.finish("failed", &Value::Null, None).unwrap();
    // As a crash between the record and the removal of the file would leave it.
    std::fs::write(&name, kept).unwrap();
    drop((begin(1), begin(2)));
    std::fs::write(pending.join("torn.json"), "{\"common\": {\"ru").unwrap();
    assert_eq!(Records::open(folder.path(), &bob, Side::Client).unwrap().1, 2);
    assert_eq!(std::fs::read_dir(&pending).unwrap().count(), 0);
    let found = listed(audit::load(folder.path()).unwrap());
    let mut outcomes: Vec<_> = found.iter().map(|record| record.outcome()).collect();
    outcomes.sort_unstable();
    assert_eq!(outcomes, ["failed", "interrupted", "interrupted"]);
}

#[test]
fn processes_that_share_a_chain_do_not_trip_over_each_other() {
    const RUNS: u8 = 24;
    let folder = tempfile::tempdir().unwrap();
    let (alice, bob) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    std::thread::scope(|scope| {
        for process in 0..4u8 {
            let (alice, bob, folder) = (&alice, &bob, folder.path());
            scope.spawn(move || {
                for number in 0..RUNS {
                    let (client, interrupted) = Records::open(folder, bob, Side::Client).unwrap();
                    assert_eq!(interrupted, 0);
                    let accept =
                        Accept { keys: 30, commitment: hex(&[1; 32]), head: hex(&[0; 32]), proof: None };
                    let go = go([0; 32], 5);
                    let offer = offer(&hex(&[process, number]));
                    let common = common_part(&offer, &accept, &go, [&alice.public(), &bob.public()]).unwrap();
                    let begun = client.begin(common, None, records::salt(), records::salt()).unwrap();
                    begun.finish("failed", &Value::Null, None).unwrap();
                }
            });
        }
    });
    let found = listed(audit::load(folder.path()).unwrap());
    assert_eq!(found.len(), 4 * usize::from(RUNS));
    assert!(found.iter().all(|record| record.outcome() == "failed"));
}

/// The policy of a service here; `more` stands at the end of its job.
pub(crate) fn policy(folder: &Path, port: u16, more: &str) -> String {
    let text = format!(
        "version = 1\nlisten = \"127.0.0.1:{port}\"\nidentity = \"alice.key\"\nstate = \"state\"\n\
         concurrency_per_peer = 1\noffer_seconds = 2\n\
         [peers.bob]\nkey = \"bob.pub\"\n\
         [sources.table]\ninput = \"table.csv\"\nkey = [\"id\"]\nrows_in_total = 1000\naggregate_runs = 3\n\
         [jobs.match]\nsource = \"table\"\nallow = [\"bob\"]\nreveal = [\"rows\"]\nresult = [\"peer\"]\n\
         max_peer_keys = 1000\nruns_a_day = 9\n{more}"
    );
    std::fs::write(folder.join("policy.toml"), &text).unwrap();
    text
}

/// The faults of lookups and of certificates, each in a policy that is whole without it.
#[test]
fn every_fault_of_lookups_and_certificates_is_told() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["alice", "bob"] {
        Identity::generate().unwrap().save(&folder.path().join(format!("{name}.key")), "").unwrap();
    }
    let lookup = "[jobs.known]\nkind = \"lookup\"\nallow = [\"bob\"]\nprivate = \"t.oprf\"\nmax_queries = 3\n\
                  queries_in_total = 40\nruns_a_day = 9\n";
    let keys = policy(folder.path(), 1, lookup);
    let files = "authority = \"ca.pem\"\ncertificate = \"a.pem\"\ncertificate_key = \"a.pkcs8\"\n";
    let named = keys.replace("key = \"bob.pub\"", "name = \"bob.example\"");
    let named = named.replace("concurrency_per_peer", &format!("{files}concurrency_per_peer"));
    for good in [&keys, &named] {
        Policy::parse(good, folder.path()).unwrap();
    }
    let cases = [
        (&keys, "kind = \"lookup\"", "kind = \"lookups\"", "no `lookups`"),
        (&keys, "private = \"t.oprf\"\n", "", "needs `private`"),
        (&keys, "max_queries = 3\n", "", "needs `max_queries`"),
        (&keys, "max_queries = 3", "max_queries = 0", "from 1 to"),
        (&keys, "queries_in_total = 40\n", "", "needs `queries_in_total`"),
        (
            &keys,
            "queries_in_total = 40",
            "queries_in_total = 40\nreveal = [\"rows\"]",
            "unknown setting `reveal`",
        ),
        (&keys, "allow = [\"bob\"]\nprivate", "allow = [\"eve\"]\nprivate", "no [peers.eve]"),
        (&keys, "key = \"bob.pub\"", "name = \"bob.example\"", "for a service with `authority`"),
        (&named, "name = \"bob.example\"", "key = \"bob.pub\"", "by certificate: give `name`"),
        (&named, "certificate = \"a.pem\"\n", "", "`certificate`"),
        (&named, "name = \"bob.example\"", "name = \"bob.example\"\nkey = \"bob.pub\"", "not both"),
    ];
    for (good, from, to, word) in cases {
        let bad = good.replace(from, to);
        assert_ne!(&bad, good, "{from}");
        let faults = Policy::parse(&bad, folder.path()).unwrap_err();
        assert!(faults.iter().any(|fault| fault.what.contains(word)), "{to}: {faults:?}");
    }
}

#[test]
fn every_fault_of_a_policy_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["alice", "bob"] {
        Identity::generate().unwrap().save(&folder.path().join(format!("{name}.key")), "").unwrap();
    }
    let good = policy(folder.path(), 1, "");
    let fine = Policy::load(&folder.path().join("policy.toml")).unwrap();
    assert!(
        explain(&fine).iter().any(|line| line.contains("bob may start 9 runs a day")),
        "{:?}",
        explain(&fine)
    );
    // It is read by both companies: each is called by its name and role.
    let every = "[jobs.every]\nsource = \"table\"\nallow = [\"bob\"]\nreveal = [\"rows\", \"payload:note\", \"count\"]\n\
                 result = [\"me\", \"peer\", \"both\"]\ngive = [\"amount\"]\nmax_peer_keys = 1000\nruns_a_day = 9\n\
                 output = \"results\"\n[jobs.known]\nkind = \"lookup\"\nallow = [\"bob\"]\nprivate = \"t.oprf\"\n\
                 max_queries = 3\nqueries_in_total = 40\nruns_a_day = 9\n";
    let named = Policy::parse(&(good.clone() + every), folder.path()).unwrap();
    let words = explain(&named).join("\n");
    let of_local = |word: &str| ["we", "us", "our", "ours", "you", "your", "yours"].contains(&word);
    assert!(!words.split(|c: char| !c.is_alphanumeric()).any(of_local), "{words}");
    for said in [
        "match: bob (client) may get which of its own keys alice (service) has too, alice (service) nothing",
        "every: alice (service) may get which of its own keys bob (client) has too",
        "alice (service) how many it asks for",
    ] {
        assert!(words.contains(said), "{said}: {words}");
    }
    let cases = [
        ("version = 1", "version = 2", "from 1 to 1"),
        ("listen = \"127.0.0.1:1\"", "", "needs `listen`, an address, or `via`"),
        ("offer_seconds = 2", "offer_seconds = 0", "from 1 to 86400"),
        ("offer_seconds = 2", "offer_seconds = 2.5", "whole number"),
        ("key = \"bob.pub\"", "key = \"alice.key\"", "private key"),
        ("key = \"bob.pub\"", "fingerprint = \"12\"", "eight groups"),
        ("key = \"bob.pub\"", "label = \"b\"", "unknown setting `label`"),
        ("key = \"bob.pub\"", "kee = \"bob.pub\"", "did you mean `key`?"),
        ("key = [\"id\"]", "key = []", "is empty"),
        ("key = [\"id\"]", "key = 3", "text in quotes"),
        ("input = \"table.csv\"", "input = []", "is empty"),
        ("input = \"table.csv\"", "input = [7]", "text in quotes"),
        (
            "rows_in_total = 1000",
            "error_cells = \"skip\"\nrows_in_total = 1000",
            "choose one of refuse, null",
        ),
        ("rows_in_total = 1000", "encoding = \"klingon\"\nrows_in_total = 1000", "there is no `klingon`"),
        ("source = \"table\"", "source = \"tables\"", "no [sources.tables]; did you mean `table`?"),
        ("allow = [\"bob\"]", "allow = [\"eve\"]", "no [peers.eve]"),
        ("reveal = [\"rows\"]", "reveal = [\"all\"]", "choose one of rows"),
        ("reveal = [\"rows\"]", "reveal = [\"conut\"]", "did you mean `count`?"),
        ("reveal = [\"rows\"]", "reveal = [\"max:id\"]", "semi-honest"),
        ("runs_a_day = 9", "runs_a_day = 9\nbounds = \"7..3\"", "7 is above 3"),
        ("runs_a_day = 9", "runs_a_day = 9\nbounds = \"0..5.5\"", "whole number"),
        ("runs_a_day = 9", "runs_a_day = 9\nresult_to_owner = 1", "true or false"),
        ("reveal = [\"rows\"]", "reveal = [\"sum\"]", "name the column"),
        ("reveal = [\"rows\"]", "reveal = [\"payload\"]", "give"),
        ("result = [\"peer\"]", "result = [\"us\"]", "no `us`"),
        ("result = [\"peer\"]", "result = [\"me\"]", "`output`"),
        ("max_peer_keys = 1000", "max_peer_keys = 10\nmin_peer_keys = 11", "excludes every peer"),
        ("max_peer_keys = 1000", "", "needs `max_peer_keys`"),
        ("runs_a_day = 9", "runs_a_day = -1", "whole number"),
        ("runs_a_day = 9", "runs_a_day = 9\nhours = [\"always\"]", "write Mon-Fri"),
        ("runs_a_day = 9", "runs_a_day = 9\nexpires = \"soon\"", "must be a date"),
        ("runs_a_day = 9", "runs_a_day = 9\nsecurity = \"some\"", "no `some`"),
        ("runs_a_day = 9", "runs_a_day = 9\nprotocol = \"oprf\"", "no `oprf`"),
        ("runs_a_day = 9", "runs_a_day = 9\npost_quantum = \"yes\"", "true or false"),
        ("rows_in_total = 1000", "", "`rows_in_total`"),
        ("[jobs.match]", "[jobs.\"a b\"]", "letters, digits"),
        ("[jobs.match]", "[jobs.match", "fix the TOML"),
    ];
    for (from, to, word) in cases {
        let bad = good.replace(from, to);
        assert_ne!(bad, good, "{from}");
        let faults = Policy::parse(&bad, folder.path()).unwrap_err();
        assert!(faults.iter().any(|fault| fault.what.contains(word)), "{to}: {faults:?}");
        let lines = bad.lines().count();
        assert!(faults.iter().all(|fault| (1..=lines).contains(&fault.line)), "{to}: {faults:?}");
        let first = to.lines().next().unwrap_or_default();
        let place = bad.lines().position(|line| line == first).map(|at| at + 1);
        let told_elsewhere =
            ["", "max_peer_keys = 10", "runs_a_day = 9"].contains(&first) || first.contains("[jobs");
        let is_there = faults.iter().any(|fault| Some(fault.line) == place);
        assert!(
            told_elsewhere || is_there || word.contains("nobody") || word.starts_with('`'),
            "{to}: {faults:?}"
        );
    }
    // Numbers go against a malicious client too, up to what the circuit takes, and not to their column's owner.
    let number = |kind: &str, keys: &str| {
        let number = good.replace("reveal = [\"rows\"]", kind).replace("max_peer_keys = 1000", keys);
        Policy::parse(&number, folder.path()).map_err(|faults| faults[0].what.clone())
    };
    let count = number("reveal = [\"count\"]", "max_peer_keys = 16384").unwrap();
    let (job, source) = (&count.jobs["match"], &count.sources["table"]);
    let run = job.run(source, &job.reveal[0], psi::Learns::Peer, &[]);
    assert_eq!((run.security, run.reveals_at_most(100_000, 5000).unwrap()), (Security::Malicious, 64));
    // Three entries can stand for nine keys.
    assert_eq!(run.reveals_at_most(100_000, 3).unwrap(), 9);
    let weaker = psi::Job { security: Security::SemiHonest, ..run };
    assert_eq!(weaker.reveals_at_most(100_000, 3).unwrap(), 100_000);
    assert!(number("reveal = [\"count\"]", "max_peer_keys = 16385").unwrap_err().contains("16384"));
    let theirs = number("reveal = [\"sum:amount\"]", "max_peer_keys = 9").unwrap_err();
    assert!(theirs.contains("result-to-owner"), "{theirs}");
}

/// A service that runs in this process.
pub(crate) struct Here {
    pub(crate) folder: TempDir,
    pub(crate) port: u16,
    pub(crate) signals: mpsc::Sender<Signal>,
    pub(crate) events: Arc<Mutex<Vec<Event>>>,
    pub(crate) thread: JoinHandle<()>,
    pub(crate) bob: Identity,
    pub(crate) alice: net::PublicKey,
    /// Seconds that its clock is ahead.
    pub(crate) ahead: Arc<AtomicI64>,
}

impl Here {
    pub(crate) fn start(more: &str) -> Self {
        Self::start_with(more, || None)
    }

    /// With another policy than [`policy`]'s, which `change` makes of it.
    pub(crate) fn start_changed(more: &str, change: impl FnOnce(String) -> String) -> Self {
        Self::start_by(more, || None, change)
    }

    pub(crate) fn start_with(more: &str, available: fn() -> Option<u64>) -> Self {
        Self::start_by(more, available, |text| text)
    }

    fn start_by(more: &str, available: fn() -> Option<u64>, change: impl FnOnce(String) -> String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (alice, bob) = (Identity::generate().unwrap(), Identity::generate().unwrap());
        alice.save(&folder.path().join("alice.key"), "").unwrap();
        bob.save(&folder.path().join("bob.key"), "").unwrap();
        let rows =
            |from: u32, to: u32| (from..to).fold("id\n".to_owned(), |text, id| text + &format!("{id}\n"));
        std::fs::write(folder.path().join("table.csv"), rows(0, 40)).unwrap();
        std::fs::write(folder.path().join("ours.csv"), rows(20, 50)).unwrap();
        policy(folder.path(), port, more);
        let path = folder.path().join("policy.toml");
        let text = change(std::fs::read_to_string(&path).unwrap());
        std::fs::write(&path, text).unwrap();
        let policy = Policy::load(&path).unwrap();
        let (signals, received) = mpsc::channel();
        let events: Arc<Mutex<Vec<Event>>> = Arc::default();
        let told = events.clone();
        let log = Box::new(move |event: &Event| told.lock().unwrap().push(event.clone()));
        let ahead = Arc::new(AtomicI64::new(0));
        let theirs = ahead.clone();
        let clock: Box<Clock> =
            Box::new(move || Time(Time::now().0.saturating_add_signed(theirs.load(Ordering::SeqCst))));
        let thread = std::thread::spawn(move || {
            let setup = Setup {
                path,
                log,
                available,
                clock,
                signals: received,
                metrics: None,
                dashboard: None,
                accept_ledger: false,
            };
            server::serve(policy, setup).unwrap();
        });
        let here = Here { folder, port, signals, events, thread, bob, alice: alice.public(), ahead };
        here.wait_for("started", 1);
        here
    }

    pub(crate) fn wait_for(&self, what: &str, times: usize) -> Event {
        let start = Instant::now();
        loop {
            let found: Vec<Event> =
                self.events.lock().unwrap().iter().filter(|event| event.what == what).cloned().collect();
            if found.len() >= times {
                return found[times - 1].clone();
            }
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "no {what}: {:?}",
                self.events.lock().unwrap()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn connect(&self) -> Session {
        self.connect_by(&self.bob)
    }

    /// As whoever has that key.
    pub(crate) fn connect_by(&self, identity: &Identity) -> Session {
        let protection = Protection::Tls(Tls::pinned(identity, self.alice).unwrap());
        let options = Options {
            limits: Limits { connect: Duration::from_secs(20), ..Limits::default() },
            ..Options::new(request::agreement(), protection)
        };
        net::connect(&format!("127.0.0.1:{}", self.port), &options).unwrap()
    }

    pub(crate) fn ask() -> Ask {
        Ask { job: "match".into(), reveal: None, result: None, key: None, question: None }
    }

    /// Asks, and gets the offer.
    pub(crate) fn offered(&self, session: &mut Session) -> Offer {
        Self::offered_of(session, "match").0
    }

    /// Asks for a job, and gets the offer; what was said so far.
    pub(crate) fn offered_of(session: &mut Session, job: &str) -> (Offer, Said) {
        let mut said = Said::default();
        let ask = Ask { job: job.into(), ..Here::ask() };
        said.add(&wire::send(session.channel(), &Message::Ask(ask)).unwrap());
        let (message, bytes) = wire::receive(session.channel(), wire::PROMPT).unwrap();
        said.add(&bytes);
        match message {
            Message::Offer(offer) => (*offer, said),
            other => panic!("{other:?}"),
        }
    }

    /// A run of Bob's for a job that has begun and in which nothing has passed yet.
    pub(crate) fn begin_run(&self, job: &str) -> Session {
        let mut session = self.connect();
        let (offer, mut said) = Here::offered_of(&mut session, job);
        self.accept(&mut session, &offer, 30, &mut said);
        let job = offer.job(Side::Client, &id()).unwrap();
        crate::play::agree(&mut session, &offer.agreement(&job, &said).unwrap()).unwrap();
        session
    }

    /// Takes the offer with so many keys announced, and signs the run.
    pub(crate) fn accept(&self, session: &mut Session, offer: &Offer, keys: u64, said: &mut Said) -> Value {
        let accept = Accept { keys, commitment: hex(&[0; 32]), head: hex(&[0; 32]), proof: None };
        said.add(&wire::send(session.channel(), &Message::Accept(accept.clone())).unwrap());
        let (message, bytes) = wire::receive(session.channel(), wire::PROMPT).unwrap();
        said.add(&bytes);
        let Message::Go(go) = message else { panic!("{message:?}") };
        let common = common_part(offer, &accept, &go, [&self.alice, &self.bob.public()]).unwrap();
        assert!(records::is_signed(&self.alice, records::BEGUN, &common, &go.signature).unwrap());
        let message = crate::json::canonical(&common).unwrap();
        let signed = self.bob.sign(records::BEGUN, message.as_bytes()).unwrap();
        wire::send(session.channel(), &Message::Signature(hex(&signed))).unwrap();
        common
    }

    pub(crate) fn end(self) -> Vec<Event> {
        self.signals.send(Signal::Drain).unwrap();
        self.thread.join().unwrap();
        let events = self.events.lock().unwrap();
        events.clone()
    }
}

/// Peers with a key that is allowed, and who do not keep to the order of things: the service goes on, and
/// nothing is revealed that was not charged.
#[test]
fn peers_that_cheat_get_nothing_and_end_nothing() {
    let here = Here::start("");
    // What is out of turn, or no message at all.
    for (at, message) in
        [Message::Decline, Message::Signature("00".into()), Message::Close(Close { result: None })]
            .iter()
            .enumerate()
    {
        let mut session = here.connect();
        wire::send(session.channel(), message).unwrap();
        assert!(wire::receive(session.channel(), wire::PROMPT).is_err());
        here.wait_for("failed", at + 1);
    }
    let mut session = here.connect();
    session.channel().send_sized(b"{\"ask\":{\"job\":\"match\",\"more\":1}}").unwrap();
    session.channel().flush().unwrap();
    here.wait_for("failed", 4);
    // An announcement beyond any message.
    let mut session = here.connect();
    session.channel().send_u64(u64::MAX).unwrap();
    session.channel().flush().unwrap();
    assert!(here.wait_for("failed", 5).words.contains("bytes, more than the"));

    // Announces one key and runs with thirty: the run ends before any result, and stays charged.
    let mut session = here.connect();
    let (offer, mut said) = Here::offered_of(&mut session, "match");
    here.accept(&mut session, &offer, 1, &mut said);
    let job = offer.job(Side::Client, &id()).unwrap();
    crate::play::agree(&mut session, &offer.agreement(&job, &said).unwrap()).unwrap();
    let path = here.folder.path().join("ours.csv");
    let source = Source::open(&path, job.key.clone().unwrap(), Dialect::default()).unwrap();
    let own = Own::read(source, &path, &job, |_| ()).unwrap();
    let part = crate::play::Part {
        offer: &offer,
        job: &job,
        keys: own.keys(),
        gift: tacit::job::psi::Gift::None,
        peer_keys: offer.service_keys,
    };
    assert!(crate::play::run(&mut session, &part, &()).is_err());
    drop(session);
    let failed = here.wait_for("failed", 6);
    assert!(failed.words.contains("30") && failed.words.contains('1'), "{failed:?}");

    // Other terms than those that were offered: both sides notice, and the charge comes back.
    let mut session = here.connect();
    let offer = here.offered(&mut session);
    here.accept(&mut session, &offer, 30, &mut Said::default());
    let error =
        crate::play::agree(&mut session, &offer.agreement(&job, &Said::default()).unwrap()).unwrap_err();
    assert!(error.to_string().contains("terms"), "{error}");
    drop(session);
    here.wait_for("refunded", 1);

    let events = here.folder.path().join("state/records");
    let found = listed(audit::load(&events).unwrap());
    let outcomes: Vec<&str> = found.iter().map(audit::Record::outcome).collect();
    assert_eq!(outcomes, ["broken off", "not begun"]);
    // The service is as it was.
    let mut session = here.connect();
    let left = here.offered(&mut session).left;
    // One announced key is charged as what its owner can have tested at most: three, where a store with spare
    // slots made it the whole table.
    assert_eq!((left.runs_today, left.rows), (8, 997));
    drop(session);
    here.end();
}

/// A fault of ours in one visit ends that visit: it is logged by its run and its peer, the place is free again
/// and the next one is served.
#[test]
fn a_visit_that_panics_ends_alone() {
    static VISITS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let here = Here::start_with("", || {
        let earlier = VISITS.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        // The first look is the service's own, when it starts.
        if (1..=3).contains(&earlier) { panic!("cell of user17@example.com") } else { None }
    });
    for times in 1..=3 {
        let mut session = here.connect();
        wire::send(session.channel(), &Message::Ask(Here::ask())).unwrap();
        assert!(wire::receive(session.channel(), wire::PROMPT).is_err());
        let told = here.wait_for("panicked", times);
        assert_eq!((told.peer.as_deref(), told.job.as_deref()), (Some("bob"), Some("match")));
        assert!(told.run.is_some() && told.words.contains("tests.rs:"), "{told:?}");
        assert!(!told.words.contains("user17"), "{told:?}");
        assert_eq!(told.level(), tracing::Level::ERROR);
    }
    let mut session = here.connect();
    here.offered(&mut session);
    drop(session);
    here.end();
}

/// Who is no peer leaves a trace: a count by reason, and a line when the number has doubled. A peer that wants
/// another session than the service has gets a line with its name.
#[test]
fn strangers_are_counted_and_a_peer_that_disagrees_is_named() {
    use std::io::{Read, Write};
    let here = Here::start("");
    let address = format!("127.0.0.1:{}", here.port);
    for _ in 0..5 {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        // It is closed without a word, or with TLS's.
        let _ = stream.read(&mut [0; 64]);
    }
    let session_of = |identity: &Identity, agreement: net::Agreement| {
        let protection = Protection::Tls(Tls::pinned(identity, here.alice).unwrap());
        let limits = Limits { connect: Duration::from_secs(2), ..Limits::default() };
        net::connect(&address, &Options { limits, ..Options::new(agreement, protection) })
    };
    let eve = Identity::generate().unwrap();
    for _ in 0..3 {
        assert!(session_of(&eve, request::agreement()).is_err());
    }
    let fourth = here.wait_for("strangers", 4);
    assert!(fourth.words.starts_with("8 so far: ") && fourth.words.contains("unknown key"), "{fourth:?}");
    assert!(session_of(&here.bob, net::Agreement::new("psi", "client", "service")).is_err());
    let told = here.wait_for("mismatch", 1);
    assert_eq!(told.peer.as_deref(), Some("bob"), "{told:?}");
    assert!(told.words.contains("peer's psi") && told.words.contains("127.0.0.1"), "{told:?}");
    let events = here.end();
    assert_eq!(events.iter().filter(|event| event.what == "strangers").count(), 4);
}

/// A job for lookups in the published keys of the service's table.
const KNOWN: &str = "[jobs.known]\nkind = \"lookup\"\nallow = [\"bob\"]\nprivate = \"table.oprf\"\n\
    max_queries = 30\nqueries_in_total = 40\nruns_a_day = 9\n";

fn keys_of(here: &Here, name: &str) -> tacit::data::records::KeySet {
    let source = Source::open(&here.folder.path().join(name), id(), Dialect::default()).unwrap();
    source.read_keys(|_| ()).unwrap()
}

/// Publishes the service's table, with so many queries of the key's lifetime.
fn publish(here: &Here, lifetime: u64) {
    let path = |name: &str| here.folder.path().join(name);
    let seal = FileKey::from_identity(&Identity::load(&path("alice.key")).unwrap());
    let terms = tags::Terms { lifetime, per_client: lifetime, key: id().agreement() };
    let publishing = tags::Publishing { terms, threads: std::num::NonZeroUsize::MIN };
    let [mut out, mut private] = ["table.tags", "table.oprf"].map(|name| {
        std::fs::File::options().read(true).write(true).create_new(true).open(path(name)).unwrap()
    });
    publishing.run(keys_of(here, "table.csv").elements(), &mut out, &mut private, &seal, &()).unwrap();
}

/// A file of tags that is read, once it is armed, only when the service has done its part of the run.
struct Late<'a> {
    file: std::fs::File,
    here: &'a Here,
    armed: &'a std::cell::Cell<bool>,
}

impl std::io::Read for Late<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        if self.armed.replace(false) {
            self.here.wait_for("done", 1);
        }
        self.file.read(bytes)
    }
}

impl std::io::Seek for Late<'_> {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        self.file.seek(to)
    }
}

/// What a client was answered is looked up when the service waits for nothing more: the file is the service's
/// choice, and how long the look-up takes, or that it fails, would tell which keys were asked for.
#[test]
fn tags_are_looked_up_when_the_service_is_done() {
    let here = Here::start(KNOWN);
    publish(&here, 1000);
    let path = |name: &str| here.folder.path().join(name);
    let armed = std::cell::Cell::new(false);
    let file = std::fs::File::open(path("table.tags")).unwrap();
    let mut file = tags::TagFile::open(Late { file, here: &here, armed: &armed }).unwrap();
    file.checked().unwrap();
    let keys = keys_of(&here, "ours.csv");
    let (records, _) = Records::open(&path("bob"), &here.bob, Side::Client).unwrap();
    let ask = Ask { job: "known".into(), ..Here::ask() };
    let offered = request::ask(here.connect(), &ask, &here.bob).unwrap();
    armed.set(true);
    let mut done = offered.look_up(&mut file, &[7; 32], (&keys, &id()), (&here.bob, &records), &()).unwrap();
    assert!(!armed.get(), "the file was looked into");
    let matches = done.ran.result.len();
    assert!(matches > 0);
    assert!(done.record().unwrap());
    // The record commits to what was answered, whatever matches.
    let private = std::fs::read_to_string(path("bob").join("private.jsonl")).unwrap();
    let kept: serde_json::Value = serde_json::from_str(private.lines().last().unwrap()).unwrap();
    assert_eq!(kept["result"]["keys"], keys.elements().len());
    assert!(kept["result"]["tags"].is_string() && kept["result"]["matches"].is_null());
    here.end();
}

/// The key's lifetime bounds all clients together, and an offer says nothing of what others have asked.
#[test]
fn an_offer_tells_nothing_of_the_queries_of_others() {
    let here = Here::start(KNOWN);
    publish(&here, 1000);
    let path = |name: &str| here.folder.path().join(name);
    let seal = FileKey::from_identity(&Identity::load(&path("alice.key")).unwrap());
    tags::Private::open(&path("table.oprf"), &seal)
        .unwrap()
        .charge(&tags::client(Some("somebody else")), 995)
        .unwrap();
    let mut session = here.connect();
    let (offer, mut said) = Here::offered_of(&mut session, "known");
    assert_eq!((offer.left.rows, offer.max_peer_keys), (40, 30));
    let accept = Accept { keys: 6, commitment: hex(&[0; 32]), head: hex(&[0; 32]), proof: None };
    said.add(&wire::send(session.channel(), &Message::Accept(accept)).unwrap());
    let (message, _) = wire::receive(session.channel(), wire::PROMPT).unwrap();
    let Message::Refusal(refusal) = message else { panic!("{message:?}") };
    assert_eq!(refusal.rule, "lifetime");
    drop(session);
    here.end();
}

/// Queries beyond those that were announced are not answered, and those that were are charged.
#[test]
fn whoever_makes_more_queries_than_announced_gets_no_answer() {
    let here = Here::start(KNOWN);
    publish(&here, 1000);
    let path = |name: &str| here.folder.path().join(name);
    let mut tags = tags::TagFile::open(std::fs::File::open(path("table.tags")).unwrap()).unwrap();
    let (publication, digest) = (tags.publication().clone(), *tags.digest());
    let querying = tags::Querying { publication: &publication, digest: &digest };
    let theirs = keys_of(&here, "ours.csv");
    let look_up = |announced: u64, made: usize, tags: &mut tags::TagFile<std::fs::File>| {
        let mut session = here.connect();
        let (offer, mut said) = Here::offered_of(&mut session, "known");
        here.accept(&mut session, &offer, announced, &mut said);
        let agreement = offer.agreement_on_lookups(querying.agreement(), &said);
        crate::play::agree(&mut session, &agreement).unwrap();
        let answers = querying.run(session.channels(), tags, &theirs.elements()[..made], &());
        session.end();
        (offer.left.rows, answers.and_then(|answers| answers.opened(tags)))
    };
    let (left, found) = look_up(1, 20, &mut tags);
    assert!(left == 40 && found.is_err(), "{left} left, and {found:?}");
    here.wait_for("failed", 1);
    // Fewer than announced are answered, and charged as announced.
    let (left, found) = look_up(25, 20, &mut tags);
    assert_eq!((left, found.unwrap().len()), (39, 20));
    here.wait_for("done", 1);
    let mut session = here.connect();
    let (offer, mut said) = Here::offered_of(&mut session, "known");
    assert_eq!((offer.left.rows, offer.max_peer_keys), (14, 14));
    // More than is left is refused when it is announced.
    let accept = Accept { keys: 15, commitment: hex(&[0; 32]), head: hex(&[0; 32]), proof: None };
    said.add(&wire::send(session.channel(), &Message::Accept(accept)).unwrap());
    let (message, _) = wire::receive(session.channel(), wire::PROMPT).unwrap();
    let Message::Refusal(refusal) = message else { panic!("{message:?}") };
    assert_eq!(refusal.rule, "queries_in_total");
    drop(session);
    let found = listed(audit::load(&path("state/records")).unwrap());
    let outcomes: Vec<&str> = found.iter().map(audit::Record::outcome).collect();
    assert_eq!(outcomes, ["broken off", "not signed by the client"]);
    here.end();
}

/// An offer stands for its time alone, holds one place, and is worth nothing when the service ends.
#[test]
fn offers_are_held_for_a_time_and_not_beyond_the_end() {
    let here = Here::start("");
    let mut held = here.connect();
    here.offered(&mut held);
    let error = request::ask(here.connect(), &Here::ask(), &here.bob).err().unwrap().to_string();
    assert!(error.contains("`concurrency`"), "{error}");
    let failed = here.wait_for("failed", 1);
    assert!(failed.words.contains("gave up after"), "{failed:?}");
    drop(held);

    let offered = request::ask(here.connect(), &Here::ask(), &here.bob).unwrap();
    here.signals.send(Signal::Drain).unwrap();
    here.wait_for("draining", 1);
    let job = offered.job(&id()).unwrap();
    let path = here.folder.path().join("ours.csv");
    let source = Source::open(&path, job.key.clone().unwrap(), Dialect::default()).unwrap();
    let own = Own::read(source, &path, &job, |_| ()).unwrap();
    let digest = crate::records::digest_of(std::slice::from_ref(&path)).unwrap();
    let (records, _) = Records::open(&here.folder.path().join("bob"), &here.bob, Side::Client).unwrap();
    let error = offered
        .run(&job, &digest, (own.keys(), tacit::job::psi::Gift::None), (&here.bob, &records), &())
        .err()
        .unwrap();
    assert!(error.to_string().contains("`draining`"), "{error}");
    here.wait_for("ended", 1);
    here.thread.join().unwrap();
}
