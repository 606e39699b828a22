//! Verifies records: each by itself, the chain they make, and against what the other side has.
//!
//! A record proves what either side *claimed* and signed: that it had so many keys, that it committed to an
//! input, that a run was made under these terms. It does not prove that the input was true, nor that nothing
//! else was run.

use crate::file::shown;
use crate::json::{canonical, from_hex, read_canonical};
use crate::records::{
    COMMON, NO_HEAD, PRIVATE_PART, RECORDS, SEAL, commitment, digest_of, head_of, signature,
};
use crate::terms::Side;
use serde_json::Value;
use std::path::Path;
use tacit::job::tags::TagFile;
use tacit::net::PublicKey;
use tacit::{Error, Result};

/// A record that verified.
#[derive(Clone, Debug)]
pub struct Record {
    /// All of it.
    pub value: Value,
    /// Whose chain it stands in.
    pub side: Side,
    /// The owner's key.
    pub owner: PublicKey,
    /// Whether both sides signed it.
    pub both_signed: bool,
    /// The hash that the next record names.
    pub head: [u8; 32],
}

impl Record {
    /// The run's name.
    pub fn run(&self) -> &str {
        self.value["common"]["run"].as_str().unwrap_or_default()
    }

    /// What became of the run.
    pub fn outcome(&self) -> &str {
        self.value["common"]["outcome"].as_str().unwrap_or_default()
    }

    /// What one side put into the common part under this name.
    pub fn of(&self, side: Side, name: &str) -> &Value {
        &self.value["common"][side.name()][name]
    }

    fn head_named(&self, side: Side) -> Option<[u8; 32]> {
        self.of(side, "head").as_str().and_then(from_hex)
    }
}

fn fault(what: &str) -> Error {
    Error::Input(format!("{what}; the record was changed, or is of somebody else"))
}

fn members(value: &Value, names: &[&str], what: &str) -> Result<()> {
    let found: Vec<&str> =
        value.as_object().map(|object| object.keys().map(String::as_str).collect()).unwrap_or_default();
    match found.len() == names.len() && names.iter().all(|name| found.contains(name)) {
        true => Ok(()),
        false => Err(fault(&format!("{what} does not have the members of a record"))),
    }
}

fn key_of(common: &Value, side: Side) -> Result<PublicKey> {
    let text = common[side.name()]["key"].as_str().and_then(from_hex);
    text.map(PublicKey::from_bytes).ok_or_else(|| fault("a public key is missing"))
}

fn is_signed(key: &PublicKey, context: &str, message: &Value, signed: &Value) -> Result<bool> {
    let Some(signed) = signed.as_str().and_then(signature) else { return Ok(false) };
    Ok(key.verify(context, canonical(message)?.as_bytes(), &signed))
}

/// Verifies one record, the line of a file without its end.
///
/// Errors: any other form than the one that was written, another version, and signatures that do not hold. A
/// record that says `complete` needs both sides' signatures.
pub fn verify(line: &str) -> Result<Record> {
    let value = read_canonical(line)?;
    members(&value, &["common", "signatures", "side", "number", "previous", "seal"], "the line")?;
    let common = &value["common"];
    let parts = ["version", "run", "started", "terms", "service", "asker", "revealed", "outcome"];
    members(common, &parts, "the common part")?;
    for side in [Side::Service, Side::Asker] {
        members(&common[side.name()], &["key", "keys", "input", "head", "result"], side.name())?;
    }
    if common["version"] != crate::terms::VERSION {
        return Err(Error::Input(
            "a record of another version; verify it with the release that wrote it".into(),
        ));
    }
    let side = match value["side"].as_str() {
        Some("service") => Side::Service,
        Some("asker") => Side::Asker,
        _ => return Err(fault("it does not say whose it is")),
    };
    let owner = key_of(common, side)?;
    let mut sealed = value.clone();
    if let Some(object) = sealed.as_object_mut() {
        object.remove("seal");
    }
    if !is_signed(&owner, SEAL, &sealed, &value["seal"])? {
        return Err(fault("the owner's seal does not hold"));
    }
    let signatures = value["signatures"].as_object().ok_or_else(|| fault("it has no signatures"))?;
    for (name, signed) in signatures {
        let side = [Side::Service, Side::Asker].into_iter().find(|side| side.name() == name);
        let side = side.ok_or_else(|| fault("somebody else signed it"))?;
        if !is_signed(&key_of(common, side)?, COMMON, common, signed)? {
            return Err(fault(&format!("the signature of the {name} does not hold")));
        }
    }
    let both_signed = signatures.len() == 2;
    if common["outcome"] == "complete" && !both_signed {
        return Err(fault("a complete run lacks a signature"));
    }
    Ok(Record { side, owner, both_signed, head: head_of(line), value })
}

/// Verifies a chain: every record, their numbers, and that each names the one before.
///
/// Errors name the record, counted from 1.
pub fn verify_chain(text: &str) -> Result<Vec<Record>> {
    let at_record = |at: usize, what: String| Error::Input(format!("record {}: {what}", at + 1));
    if !text.is_empty() && !text.ends_with('\n') {
        return Err(Error::Input("the last record is cut off".into()));
    }
    let mut records: Vec<Record> = Vec::new();
    let mut previous = NO_HEAD;
    for (at, line) in text.split_terminator('\n').enumerate() {
        let record = verify(line).map_err(|error| at_record(at, error.to_string()))?;
        let names = record.value["previous"].as_str().and_then(from_hex);
        if names != Some(previous) || record.value["number"] != at {
            return Err(at_record(
                at,
                "it does not follow the one before: a record is missing, or out of order".into(),
            ));
        }
        previous = record.head;
        records.push(record);
    }
    Ok(records)
}

/// Reads and verifies the chain in a file, or in the folder of a side's records.
pub fn load(path: &Path) -> Result<Vec<Record>> {
    let file = if path.is_dir() { path.join(RECORDS) } else { path.to_owned() };
    let text = std::fs::read_to_string(&file).map_err(|e| Error::file(&file, "cannot be read", e))?;
    verify_chain(&text).map_err(|error| Error::Input(format!("{}: {error}", shown(&file))))
}

/// Compares our chain with the records that the other side has: what it can show of ours must be there, up to
/// the latest head that it saw.
///
/// Errors: a record that one has with both signatures and the other lacks, and a head that the chain does not
/// have: records are missing, or cut off at the end.
pub fn compare(ours: &[Record], theirs: &[Record]) -> Result<()> {
    for (chain, other, whose) in [(ours, theirs, "these records"), (theirs, ours, "the other side's records")]
    {
        if chain.is_empty() {
            continue;
        }
        for record in other {
            let side = record.side.other();
            let key = key_of(&record.value["common"], side)?;
            if chain.iter().all(|one| one.owner != key) {
                continue;
            }
            // What one side alone signed shows nothing of the other's chain.
            if !record.both_signed {
                continue;
            }
            let named = record.head_named(side);
            let has_head = named == Some(NO_HEAD) || chain.iter().any(|one| Some(one.head) == named);
            let same = |one: &Record| !one.both_signed || one.value["common"] == record.value["common"];
            let has_run = chain.iter().any(|one| one.run() == record.run() && same(one));
            if !has_head || !has_run {
                return Err(Error::Input(format!(
                    "{whose} lack what the others show of run {}: records were taken away, or cut off at the end",
                    tacit::net::shown(record.run())
                )));
            }
        }
    }
    Ok(())
}

fn open_file(path: &Path) -> Result<std::fs::File> {
    std::fs::File::open(path).map_err(|e| Error::file(path, "cannot be read", e))
}

/// Whether `input` is the file that the owner of the chain in `folder` committed to for `record`, by the salt
/// in the private part; of a service's lookups that is its file of tags.
pub fn opens_input(folder: &Path, record: &Record, input: &Path) -> Result<bool> {
    let path = folder.join(PRIVATE_PART);
    let text = std::fs::read_to_string(&path).map_err(|e| Error::file(&path, "cannot be read", e))?;
    let kept = text.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let salt = kept
        .filter(|kept| kept["run"] == record.run())
        .find_map(|kept| from_hex(kept["input_salt"].as_str()?));
    let salt: [u8; 32] = salt.ok_or_else(|| {
        Error::Input(format!("{}: holds no salt of run {}", shown(&path), tacit::net::shown(record.run())))
    })?;
    let publication = &record.value["common"]["terms"]["publication"];
    let digest = match record.side {
        Side::Service if !publication.is_null() => *TagFile::open(open_file(input)?)?.digest(),
        _ => digest_of(input)?,
    };
    let opened = commitment("input", &salt, &digest);
    Ok(record.of(record.side, "input").as_str().and_then(from_hex) == Some(opened))
}
