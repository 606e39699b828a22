//! What records prove: old ones, those of runs that one side left, and chains that were changed, started again
//! or handed to the wrong peer.

use crate::audit::{self, Chain, Line, Party, Peer};
use crate::clock::Time;
use crate::json::canonical;
use crate::records::{self, Records};
use crate::request::{self, Ask};
use crate::terms::{Accept, Offer, Said, Side, common_part};
use crate::tests::{Here, begun_as, chains, compare, go, id, listed, offer, text};
use crate::unsigned::Unsigned;
use crate::wire::{self, Message};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tacit::data::csv::Options as Dialect;
use tacit::data::table::Source;
use tacit::job::psi::{Gift, Own};
use tacit::net::{Identity, PublicKey, PublicKeys, Session, name_successor};

/// Records that the release of version 1 wrote: of a service, and of one of its two clients.
const OLD: [&str; 2] =
    [include_str!("../tests/records-1/service.jsonl"), include_str!("../tests/records-1/asker.jsonl")];

fn keys(key: &PublicKey) -> PublicKeys {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.pub");
    std::fs::write(&path, key.line("")).unwrap();
    PublicKeys::load(&path).unwrap()
}

fn party<'a>(chain: &'a Chain, keys: &'a [PublicKeys]) -> Party<'a> {
    Party { chain, keys, certificates: &[], name: "the records" }
}

#[test]
fn records_of_version_1_verify_and_compare() {
    let [service, asker] = OLD.map(|text| audit::verify_chain(text).unwrap());
    let found = listed(service.clone());
    assert_eq!((found.len(), found[0].side, found[0].both_signed), (4, Side::Service, true));
    assert_eq!(found[0].name_of(Side::Service), None);
    let bob = listed(asker.clone())[0].owner;
    // The service's chain has a run of another client, which only its key tells apart.
    let error = compare(&asker, &service).unwrap_err().to_string();
    assert!(error.contains(&listed(service.clone())[1].peer.fingerprint()), "{error}");
    let found = audit::compare(party(&asker, &[keys(&bob)]), party(&service, &[])).unwrap();
    assert_eq!(found.runs, 3);
    let changed = OLD[0].replacen("\"keys\":30", "\"keys\":31", 1);
    assert!(audit::verify_chain(&changed).is_err());
}

#[test]
fn what_is_signed_names_the_parties_and_never_says_we() {
    let mut offer = offer(&"0".repeat(32));
    let accept = Accept { keys: 30, commitment: "1".repeat(64), head: "0".repeat(64), proof: None };
    let (alice, bob) = (Identity::generate().unwrap().public(), Identity::generate().unwrap().public());
    for (reveal, security) in [("rows", "malicious"), ("payload", "malicious"), ("count", "semi-honest")] {
        (offer.reveal, offer.security) = (reveal.into(), security.into());
        offer.service_gives = if reveal == "payload" { vec!["amount".into()] } else { Vec::new() };
        let common = common_part(&offer, &accept, &go([0; 32], 5), [&alice, &bob]).unwrap();
        let [to_service, to_client] =
            ["to_service", "to_client"].map(|name| common["revealed"][name].as_str().unwrap());
        assert!(to_service.starts_with("Alice (service) learns that Bob (client) has 30"), "{to_service}");
        assert!(to_client.starts_with("Bob (client) learns that Alice (service) has 40"), "{to_client}");
        let words = offer.words(30).unwrap().join("\n");
        for text in [to_service, to_client, &words] {
            let of_local = |word: &str| ["we", "us", "our", "ours", "you", "your", "yours"].contains(&word);
            assert!(!text.split(|c: char| !c.is_alphanumeric()).any(of_local), "{text}");
        }
    }
}

/// A session with its offer; the place of the run before is free a moment after the log has told of it.
fn offered_in_turn(here: &Here, job: &str) -> (Session, Offer, Said) {
    loop {
        let (mut session, mut said) = (here.connect(), Said::default());
        let ask = Ask { job: job.into(), ..Here::ask() };
        said.add(&wire::send(session.channel(), &Message::Ask(ask)).unwrap());
        let (message, bytes) = wire::receive(session.channel(), wire::PROMPT).unwrap();
        said.add(&bytes);
        match message {
            Message::Offer(offer) => return (session, *offer, said),
            Message::Refusal(no) if no.rule == "concurrency" => {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => panic!("{other:?}"),
        }
    }
}

/// The client makes its run, has its rows, and is gone without its last message.
fn leave_with_rows(here: &Here, job: &str) {
    let (mut session, offer, mut said) = offered_in_turn(here, job);
    here.accept(&mut session, &offer, 30, &mut said);
    let job = offer.job(Side::Client, &id()).unwrap();
    crate::play::agree(&mut session, &offer.agreement(&job, &said).unwrap()).unwrap();
    let path = here.folder.path().join("ours.csv");
    let source = Source::open(&path, job.key.clone().unwrap(), Dialect::default()).unwrap();
    let own = Own::read(source, &path, &job, |_| ()).unwrap();
    let part = crate::play::Part {
        offer: &offer,
        job: &job,
        keys: own.keys(),
        gift: Gift::None,
        peer_keys: offer.service_keys,
    };
    crate::play::run(&mut session, &part, &()).unwrap();
}

/// A client that goes once the comparison may have begun: it has signed, its charge stays, and the log says how
/// often it did so.
#[test]
fn runs_that_break_off_once_they_began_are_counted_and_shown() {
    let here = Here::start("");
    for times in 1..=2 {
        let (mut session, offer, mut said) = offered_in_turn(&here, "match");
        here.accept(&mut session, &offer, 30, &mut said);
        let job = offer.job(Side::Client, &id()).unwrap();
        crate::play::agree(&mut session, &offer.agreement(&job, &said).unwrap()).unwrap();
        drop(session);
        let event = here.wait_for("broken off", times);
        assert!(event.words.contains(&format!("so ended {times} of this peer's runs")), "{}", event.words);
    }
    here.end();
}

/// Runs without the last signature are counted, over restarts too, and have an end.
#[test]
fn a_client_that_never_signs_the_end_is_refused_for_the_day() {
    let here = Here::start(
        "[jobs.often]\nsource = \"table\"\nallow = [\"bob\"]\nreveal = [\"rows\"]\nresult = [\"peer\"]\n\
         max_peer_keys = 1000\nruns_a_day = 100\n",
    );
    for times in 1..=10 {
        leave_with_rows(&here, "often");
        let event = here.wait_for("unsigned", times);
        assert_eq!(event.level(), tracing::Level::WARN);
    }
    let ask = Ask { job: "often".into(), ..Here::ask() };
    let error = loop {
        let error = request::ask(here.connect(), &ask, &here.bob).err().unwrap().to_string();
        if !error.contains("`concurrency`") {
            break error;
        }
    };
    assert!(error.contains("`unsigned_runs_a_day`"), "{error}");
    let state = here.folder.path().join("state/records");
    let started = listed(audit::load(&state).unwrap())[9].value["common"]["started"].as_u64().unwrap();
    let (day, bob) = (Time(started).day(), crate::json::hex(&here.bob.public().to_bytes()));
    let counted = |from| Unsigned::of(&state, from, from).unwrap().count(day, &bob);
    assert_eq!((counted(day), counted(day + 1)), (10, 0));
    here.end();
}

/// A clock that is put back makes no new day: what is charged to the later one is counted for it.
#[test]
fn runs_without_a_signature_count_for_the_day_of_their_charge() {
    let here = Here::start_changed("", |text| {
        text.replace("concurrency_per_peer", "unsigned_runs_a_day = 1\nconcurrency_per_peer")
    });
    leave_with_rows(&here, "match");
    here.wait_for("unsigned", 1);
    here.ahead.store(-86_400, std::sync::atomic::Ordering::SeqCst);
    let error = loop {
        let error =
            request::ask(here.connect(), &Here::ask(), &here.bob).err().map(|error| error.to_string());
        match error {
            Some(error) if error.contains("`concurrency`") => {}
            other => break other.unwrap_or_default(),
        }
    };
    assert!(error.contains("`unsigned_runs_a_day`"), "{error}");
    // A service that starts anew with the clock put back.
    let state = here.folder.path().join("state/records");
    let bob = crate::json::hex(&here.bob.public().to_bytes());
    let day = Time::now().day();
    assert_eq!(Unsigned::of(&state, day - 1, day).unwrap().count(day, &bob), 1);
    here.end();
}

#[test]
fn a_client_that_leaves_with_its_rows_has_signed_that_it_asked() {
    let here = Here::start("");
    leave_with_rows(&here, "match");
    here.wait_for("done", 1);
    let state = here.folder.path().join("state/records");
    let found = listed(audit::load(&state).unwrap());
    assert_eq!(found[0].outcome(), "not signed by the client");
    assert!(found[0].both_began && !found[0].both_signed);
    // Who does not sign at the start gets no run.
    let (mut session, offer, _) = offered_in_turn(&here, "match");
    let accept = Accept { keys: 30, commitment: "0".repeat(64), head: "0".repeat(64), proof: None };
    let channel = session.channel();
    wire::send(channel, &Message::Accept(accept)).unwrap();
    assert_eq!(offer.client_name, "bob");
    wire::receive(channel, wire::PROMPT).unwrap();
    wire::send(channel, &Message::Signature("00".repeat(64))).unwrap();
    here.wait_for("refunded", 1);
    assert_eq!(listed(audit::load(&state).unwrap())[1].outcome(), "not begun");
    here.end();
}

/// What a process that was killed in the middle of a run left says that both had signed it.
#[test]
fn an_interrupted_record_keeps_the_signatures_of_its_start() {
    let folder = tempfile::tempdir().unwrap();
    let (alice, bob) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let (service, _) = Records::open(folder.path(), &alice, Side::Service).unwrap();
    let accept = Accept { keys: 30, commitment: "1".repeat(64), head: "0".repeat(64), proof: None };
    let keys = [&alice.public(), &bob.public()];
    let common = common_part(&offer(&"7".repeat(32)), &accept, &go([0; 32], 5), keys).unwrap();
    let mut begun = service.begin(common.clone(), None, records::salt(), records::salt()).unwrap();
    let message = canonical(&common).unwrap();
    let signed = bob.sign(records::BEGUN, message.as_bytes()).unwrap();
    let other_use = bob.sign(records::COMMON, message.as_bytes()).unwrap();
    assert!(begun.peer_began(&bob.public(), &crate::json::hex(&other_use)).is_err());
    begun.peer_began(&bob.public(), &crate::json::hex(&signed)).unwrap();
    drop(begun);
    assert_eq!(Records::open(folder.path(), &alice, Side::Service).unwrap().1, 1);
    let found = listed(audit::load(folder.path()).unwrap());
    assert_eq!((found[0].outcome(), found[0].both_began, found[0].both_signed), ("interrupted", true, false));
}

fn joined(lines: &[&str]) -> Chain {
    audit::verify_chain(&lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap()
}

/// A chain of `alice` that holds these records, sealed anew; `change` makes of each common part what it says.
fn sealed_anew(folder: &Path, alice: &Identity, lines: &[&str], change: impl Fn(usize, &mut Value)) -> Chain {
    let (service, _) = Records::open(folder, alice, Side::Service).unwrap();
    for (at, line) in lines.iter().enumerate() {
        let record: Value = serde_json::from_str(line).unwrap();
        let mut common = record["common"].clone();
        change(at, &mut common);
        let signed = record["signatures"]["client"].as_str().filter(|_| common == record["common"]);
        let outcome = if signed.is_some() { "complete" } else { "broken off" };
        begun_as(&service, &common).finish(outcome, &Value::Null, signed.map(str::to_owned)).unwrap();
    }
    audit::load(folder).unwrap()
}

/// A chain whose last record its owner sealed again, with this outcome and without the other's last signature.
fn sealed_again(from: &Path, owner: &Identity, side: Side, outcome: &str) -> Chain {
    let text = std::fs::read_to_string(from.join("records.jsonl")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let folder = tempfile::tempdir().unwrap();
    let (last, kept) = lines.split_last().unwrap();
    let kept: String = kept.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(folder.path().join("records.jsonl"), kept).unwrap();
    let (records, _) = Records::open(folder.path(), owner, side).unwrap();
    let record: Value = serde_json::from_str(last).unwrap();
    begun_as(&records, &record["common"]).finish(outcome, &Value::Null, None).unwrap();
    audit::load(folder.path()).unwrap()
}

/// The service signs the end last: only the client can lack that signature by accident. A process that ended can lack
/// both, and is counted.
#[test]
fn only_a_client_may_lack_the_last_signature_and_what_is_excused_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (alice, bob) = chains(folder.path(), 4);
    let at = |whose: &str| folder.path().join(whose);
    let [service, client] = ["alice", "bob"].map(|whose| audit::load(&at(whose)).unwrap());
    let compared = |one: &Chain, other: &Chain| {
        let both = [
            audit::compare(party(one, &[]), party(other, &[])),
            audit::compare(party(other, &[]), party(one, &[])),
        ];
        let [one, other] = both.map(|found| found.map_err(|error| error.to_string()));
        assert_eq!(one.is_ok(), other.is_ok(), "{one:?} {other:?}");
        one.map(|found| (found.runs, found.interrupted, found.excused))
    };
    assert_eq!(compared(&service, &client), Ok((4, 0, 0)));
    let lost = sealed_again(&at("bob"), &bob, Side::Client, "not signed by the service");
    assert_eq!(compared(&service, &lost), Ok((4, 0, 1)));
    let ended = sealed_again(&at("alice"), &alice, Side::Service, "interrupted");
    assert_eq!(compared(&ended, &client), Ok((4, 1, 1)));
    for outcome in ["not signed by the client", "not signed by the other side", "broken off"] {
        let denied = sealed_again(&at("alice"), &alice, Side::Service, outcome);
        let error = compared(&denied, &client).unwrap_err();
        assert!(error.contains("was not completed"), "{outcome}: {error}");
    }
    let denied = sealed_again(&at("bob"), &bob, Side::Client, "broken off");
    assert!(compared(&service, &denied).is_err());
}

/// Chains that show nothing of what the client has: each is refused, and says what is missing.
#[test]
fn a_chain_that_lacks_everything_is_not_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (alice, _) = chains(folder.path(), 4);
    let [service, client] = ["alice", "bob"].map(|whose| text(folder.path(), whose));
    let bobs = audit::verify_chain(&client).unwrap();
    let whole = audit::verify_chain(&service).unwrap();
    assert_eq!(compare(&bobs, &whole).unwrap(), 4);
    // An empty file, whoever looks.
    for (one, other) in [(&bobs, &Chain::default()), (&Chain::default(), &bobs)] {
        assert!(compare(one, other).unwrap_err().to_string().contains("empty"));
    }
    // The chain of another service, with another client.
    let foreign = audit::verify_chain(OLD[0]).unwrap();
    assert!(compare(&bobs, &foreign).unwrap_err().to_string().contains("is missing in"));
    // Nor is it excused by keys that name nobody there.
    let others = listed(foreign.clone())[0].owner;
    let error = audit::compare(party(&bobs, &[]), party(&foreign, &[keys(&others)])).unwrap_err();
    assert!(error.to_string().contains("is missing in"), "{error}");
    // Keys that name nobody in either chain compare nothing, and nothing is no success.
    let nobody = [keys(&Identity::generate().unwrap().public())];
    let error = audit::compare(party(&bobs, &nobody), party(&whole, &nobody)).unwrap_err().to_string();
    assert!(error.contains("nothing was compared"), "{error}");
    // A new state under a key that follows the old one.
    let fresh = tempfile::tempdir().unwrap();
    let at = |name: &str| fresh.path().join(name);
    alice.save(&at("alice.key"), "").unwrap();
    name_successor(&at("alice.key"), &at("next.key"), "", 30).unwrap();
    let next = Identity::load(&at("next.key")).unwrap();
    let successors = [PublicKeys::load(&at("next.pub")).unwrap()];
    let lines: Vec<&str> = service.lines().collect();
    let (state, _) = Records::open(&at("state"), &next, Side::Service).unwrap();
    let accept = Accept { keys: 30, commitment: "1".repeat(64), head: "0".repeat(64), proof: None };
    let both = [&next.public(), &listed(bobs.clone())[0].owner];
    let common = common_part(&offer(&"9".repeat(32)), &accept, &go([0; 32], 5), both).unwrap();
    let begun = state.begin(common, None, records::salt(), records::salt()).unwrap();
    begun.finish("broken off", &Value::Null, None).unwrap();
    let anew = audit::load(&at("state")).unwrap();
    let error = audit::compare(party(&bobs, &[]), party(&anew, &successors)).unwrap_err().to_string();
    assert!(error.contains("is missing in"), "{error}");
    // A run that was sealed anew as a count that nobody signed.
    let forged = tempfile::tempdir().unwrap();
    let as_count = sealed_anew(forged.path(), &alice, &lines, |at, common| {
        if at == 3 {
            common["terms"]["reveal"] = json!("count");
        }
    });
    let error = compare(&as_count, &bobs).unwrap_err().to_string();
    assert!(error.contains("differ"), "{error}");
    // And one that is merely said to have come to no end.
    let forged = tempfile::tempdir().unwrap();
    let lost = sealed_anew(forged.path(), &alice, &lines, |at, common| {
        if at == 3 {
            common["outcome"] = json!("broken off");
        }
    });
    let error = compare(&lost, &bobs).unwrap_err().to_string();
    assert!(error.contains("was not completed"), "{error}");
}

/// A service that names no head, or an old one, in every run could cut its chain at any time.
#[test]
fn heads_of_zeros_are_for_the_start() {
    for stale in [0, 1] {
        let folder = tempfile::tempdir().unwrap();
        let (alice, bob) = (Identity::generate().unwrap(), Identity::generate().unwrap());
        let at = |whose: &str| folder.path().join(whose);
        let (service, _) = Records::open(&at("alice"), &alice, Side::Service).unwrap();
        let (client, _) = Records::open(&at("bob"), &bob, Side::Client).unwrap();
        let mut first = [0; 32];
        for number in 0..30u8 {
            let head = if number > 5 && stale == 1 { first } else { service.head().unwrap() };
            let head = if stale == 0 { [0; 32] } else { head };
            let head = if number < 3 { service.head().unwrap() } else { head };
            let accept = Accept {
                keys: 30,
                commitment: "1".repeat(64),
                head: crate::json::hex(&client.head().unwrap()),
                proof: None,
            };
            let keys = [&alice.public(), &bob.public()];
            let run = crate::json::hex(&[number; 16]);
            let common = common_part(&offer(&run), &accept, &go(head, 5), keys).unwrap();
            let mut one = service.begin(common.clone(), None, records::salt(), records::salt()).unwrap();
            let mut two = client.begin(common, None, records::salt(), records::salt()).unwrap();
            [&mut one, &mut two].into_iter().for_each(|begun| begun.common["outcome"] = json!("complete"));
            let signed = [one.sign().unwrap(), two.sign().unwrap()];
            one.finish("complete", &Value::Null, Some(signed[1].clone())).unwrap();
            two.finish("complete", &Value::Null, Some(signed[0].clone())).unwrap();
            if number == 0 {
                first = service.head().unwrap();
            }
        }
        let [alices, bobs] = ["alice", "bob"].map(|whose| audit::load(&at(whose)).unwrap());
        let error = compare(&alices, &bobs).unwrap_err().to_string();
        assert!(error.contains("older or newer"), "{stale}: {error}");
        let start =
            |whose: &str, n: usize| joined(&text(folder.path(), whose).lines().take(n).collect::<Vec<_>>());
        assert_eq!(compare(&start("alice", 4), &start("bob", 4)).unwrap(), 4);
    }
}

/// What Alice sends Bob to compare shows nothing of Carol, and verifies as the whole chain does.
#[test]
fn an_export_for_one_peer_shows_nothing_of_others_and_verifies() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.jsonl");
    std::fs::write(&path, OLD[0]).unwrap();
    let [service, asker] = OLD.map(|text| audit::verify_chain(text).unwrap());
    let bob = listed(asker.clone())[0].owner;
    let carol = listed(service.clone())[1].clone();
    for peer in [Peer::Keys(keys(&bob)), Peer::Fingerprint(bob.fingerprint())] {
        let (text, whole) = audit::export(&path, &peer).unwrap();
        assert_eq!(whole, 3);
        for secret in [carol.run(), &crate::json::hex(&carol.peer.to_bytes())] {
            assert!(OLD[0].contains(secret) && !text.contains(secret), "{secret}");
        }
        let exported = audit::verify_chain(&text).unwrap();
        assert_eq!((exported.records().count(), exported.withheld()), (3, 1));
        assert!(matches!(exported.lines()[1], Line::Digest(head) if head == carol.head));
        // Bob needs no key to tell what is his.
        assert_eq!(compare(&asker, &exported).unwrap(), 3);
        // A digest that was changed, moved or taken out, and a run of his that is withheld.
        let lines: Vec<&str> = text.lines().collect();
        for (from, to) in [("\"digest\":\"", "\"digest\":\"00"), ("\"number\":1", "\"number\":2")] {
            let changed = text.replacen(lines[1], &lines[1].replacen(from, to, 1), 1);
            assert!(audit::verify_chain(&changed).is_err(), "{from}");
        }
        let other = format!("{{\"digest\":\"{}\",\"number\":1}}", "0".repeat(64));
        assert!(audit::verify_chain(&text.replacen(lines[1], &other, 1)).is_err());
        assert!(audit::verify_chain(&text.replacen(&format!("{}\n", lines[1]), "", 1)).is_err());
        let last =
            format!("{{\"digest\":\"{}\",\"number\":3}}", crate::json::hex(&listed(service.clone())[3].head));
        let withheld = audit::verify_chain(&text.replacen(lines[3], &last, 1)).unwrap();
        assert!(compare(&asker, &withheld).unwrap_err().to_string().contains("is missing in"));
    }
}

/// A chain that had a record has one as long as the service runs: an empty file is none of its own.
#[test]
fn a_chain_that_was_emptied_does_not_begin_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (alice, _) = chains(folder.path(), 2);
    let (service, _) = Records::open(&folder.path().join("alice"), &alice, Side::Service).unwrap();
    let (path, kept) = (folder.path().join("alice/records.jsonl"), text(folder.path(), "alice"));
    let head = service.head().unwrap();
    std::fs::write(&path, "").unwrap();
    assert!(service.head().unwrap_err().to_string().contains("restore it"));
    std::fs::write(&path, &kept).unwrap();
    assert_eq!(service.head().unwrap(), head);
}
