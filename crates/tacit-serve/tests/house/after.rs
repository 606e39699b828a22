//! What holds of a house in the end, whatever happened: read from its files, by independent arithmetic.

use crate::town::{Asker, COMMON, NAMES, PEERS, Service, Town};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use tacit::net::PublicKeys;
use tacit_serve::audit::{self, Party};
use tacit_serve::records::Records;
use tacit_serve::terms::Side;

type Runs = BTreeMap<String, Value>;

/// A service and an asker go on with what is there, and then all of it must hold.
pub(crate) fn check(town: &Town<'_>) {
    let asked: Vec<Runs> = town.askers.iter().map(asker_goes_on).collect();
    for (number, service) in town.services.iter().enumerate() {
        let ledger = lines(&service.state().join("ledger"));
        let records = goes_on(service);
        for ((asker, peer), theirs) in town.askers.iter().zip(PEERS).zip(&asked) {
            charged(&ledger, asker, number);
            within_budgets(&ledger, service, peer);
            agree(&records, theirs, [NAMES[number], peer], town);
        }
        for result in service.results() {
            let run = result.file_stem().unwrap().to_str().unwrap();
            assert!(records.contains_key(run), "a result without its record: {run}");
            let rows = std::fs::read_to_string(&result).unwrap().lines().count() as u64;
            assert_eq!(rows, COMMON + 1, "half a result of run {run}");
        }
    }
}

/// Records what a power cut interrupted, as a start does; the runs of the chain, which verifies.
fn goes_on(service: &Service) -> Runs {
    tacit_serve::ledger::Ledger::open(&service.state().join("ledger")).unwrap();
    let folder = service.state().join("records");
    Records::open(&folder, &service.identity, Side::Service).unwrap();
    runs(&folder)
}

fn asker_goes_on(asker: &Asker) -> Runs {
    Records::open(&asker.records(), &asker.identity, Side::Client).unwrap();
    let found = runs(&asker.records());
    for seen in asker.seen.lock().unwrap().iter().filter(|seen| seen.rows.is_some()) {
        assert!(found.contains_key(&seen.run), "the asker has a result of run {} and no record", seen.run);
    }
    found
}

fn runs(folder: &Path) -> Runs {
    assert_eq!(std::fs::read_dir(folder.join("pending")).unwrap().count(), 0, "runs that are not recorded");
    let chain = folder.join("records.jsonl");
    if !chain.exists() {
        return Runs::new();
    }
    audit::load(folder).unwrap();
    let lines = std::fs::read_to_string(chain).unwrap();
    let records: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = records.len();
    let runs: Runs = records
        .into_iter()
        .map(|record| (record["common"]["run"].as_str().unwrap().to_owned(), record))
        .collect();
    assert_eq!(runs.len(), count, "a run is recorded twice");
    runs
}

/// The entries of a ledger.
fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    // What stands behind the last line's end is of no entry that was promised.
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    whole.lines().map(|line| serde_json::from_str(line.split_once(' ').unwrap().1).unwrap()).collect()
}

fn of_run<'a>(ledger: &'a [Value], kind: &str, run: &str) -> Option<&'a Value> {
    ledger.iter().map(|entry| &entry[kind]).find(|entry| entry["run"] == run)
}

/// Whatever an asker has seen is charged: each offer, and each result with as many rows as it has.
fn charged(ledger: &[Value], asker: &Asker, service: usize) {
    for seen in asker.seen.lock().unwrap().iter().filter(|seen| seen.service == service) {
        assert!(of_run(ledger, "offer", &seen.run).is_some(), "the offer of run {} is not counted", seen.run);
        let Some(rows) = seen.rows else { continue };
        let charge = of_run(ledger, "charge", &seen.run);
        let charged =
            charge.unwrap_or_else(|| panic!("run {} is not charged", seen.run))["rows"].as_u64().unwrap();
        assert!(rows <= charged, "run {} gave {rows} rows and is charged with {charged}", seen.run);
        assert!(
            of_run(ledger, "returned", &seen.run).is_none(),
            "the charge of run {} was taken back",
            seen.run
        );
    }
}

/// Charges that stay are within the most that any policy allowed.
fn within_budgets(ledger: &[Value], service: &Service, peer: &str) {
    let stays = |charge: &&Value| of_run(ledger, "returned", charge["run"].as_str().unwrap()).is_none();
    let charges: Vec<&Value> = ledger
        .iter()
        .map(|entry| &entry["charge"])
        .filter(|charge| charge["peer"] == peer)
        .filter(stays)
        .collect();
    let rows: u64 = charges.iter().map(|charge| charge["rows"].as_u64().unwrap()).sum();
    assert!(rows <= service.most.0, "{rows} rows are charged, of {:?}", service.most);
    let mut days: BTreeMap<(u64, &str), u64> = BTreeMap::new();
    for charge in charges {
        let day = charge["time"].as_u64().unwrap() / 86_400;
        *days.entry((day, charge["job"].as_str().unwrap())).or_default() += 1;
    }
    assert!(days.values().all(|runs| *runs <= service.most.1), "{days:?}, of {:?}", service.most);
}

/// What both sides recorded of one another is the same.
fn agree(service: &Runs, asker: &Runs, names: [&str; 2], town: &Town<'_>) {
    let keys = names.map(|name| {
        let keys = PublicKeys::of_file(&town.folder.join(format!("config/{name}.pub"))).unwrap();
        (tacit::crypto::hex(&keys.newest().to_bytes()), keys)
    });
    let is_of = |record: &&Value, side: &str, key: &String| record["common"][side]["key"] == key.as_str();
    let mut common = 0;
    for (run, record) in asker.iter().filter(|(_, record)| is_of(record, "service", &keys[0].0)) {
        let theirs = service.get(run).unwrap_or_else(|| panic!("{} lacks run {run}", names[0]));
        let (mut one, mut two) = (record["common"].clone(), theirs["common"].clone());
        let signed = [record, theirs].map(|record| record["signatures"].as_object().unwrap().len());
        for common in [&mut one, &mut two].into_iter().filter(|_| signed != [2, 2]) {
            common["outcome"] = Value::Null;
            ["service", "client"].iter().for_each(|side| common[side]["result"] = Value::Null);
        }
        assert_eq!(one, two, "{names:?} differ in run {run}");
        common += 1;
    }
    for (run, record) in service.iter().filter(|(_, record)| is_of(record, "client", &keys[1].0)) {
        let has_signed = record["begun"]["client"].is_string();
        assert!(!has_signed || asker.contains_key(run), "{} lacks run {run}, which it signed", names[1]);
    }
    if common > 0 {
        let chains = ["state/records", "records"];
        let chains = [0, 1].map(|at| audit::load(&town.folder.join(names[at]).join(chains[at])).unwrap());
        let party = |at: usize| Party {
            chain: &chains[at],
            keys: std::slice::from_ref(&keys[at].1),
            certificates: &[],
            name: names[at],
        };
        audit::compare(party(0), party(1)).unwrap();
    }
}
