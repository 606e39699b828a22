//! Verifies records: each by itself, the chain they make, and against what the other side has.
//!
//! A record proves what either side *claimed* and signed: that it had so many keys, that it committed to an
//! input, that a run was made under these terms. It does not prove that the input was true, nor that nothing
//! else was run.
//!
//! What is handed to a peer has the records of other peers as digests ([`export`]): a chain of both verifies
//! as the whole one does.

mod compare;
mod export;

pub use compare::{Compared, Party, compare};
pub use export::{Peer, export};

use crate::certified;
use crate::file::shown;
use crate::json::{from_hex, read_canonical};
use crate::records::{
    BEGUN, COMMON, NO_HEAD, PRIVATE_PART, RECORDS, SEAL, as_begun, commitment, digest_of, head_of, is_signed,
};
use crate::terms::{Side, VERSION};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tacit::job::tags::TagFile;
use tacit::net::{self, PublicKey, certificate};
use tacit::{Error, Result};

/// A record that verified.
#[derive(Clone, Debug)]
pub struct Record {
    /// All of it.
    pub value: Value,
    /// The side whose chain it is in.
    pub side: Side,
    /// The owner's key.
    pub owner: PublicKey,
    /// The other side's key.
    pub peer: PublicKey,
    /// Whether both sides signed it at the end of the run.
    pub both_signed: bool,
    /// Whether both sides signed it when the run began.
    pub both_began: bool,
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
        let common = &self.value["common"];
        &common[side.name_in(&common["version"])][name]
    }

    /// Whether its terms and sentences name the parties: those of version 1 do not.
    pub fn is_named(&self) -> bool {
        self.value["common"]["version"] != 1
    }

    /// What a side is called, if the terms name it: records of version 1 do not.
    pub fn name_of(&self, side: Side) -> Option<&str> {
        let terms = &self.value["common"]["terms"];
        terms[if side == Side::Service { "service_name" } else { "client_name" }].as_str()
    }

    /// The name in the certificate that a side proved, where the session had certificates.
    pub fn certificate_of(&self, side: Side) -> Option<&str> {
        self.of(side, "certificate")["name"].as_str()
    }

    /// Whether both sides' certificates, where there are some, lead to an authority in the PEM file
    /// `authorities`, as of the run's start; how many there are.
    ///
    /// Errors: one that does not, and a file without an authority.
    pub fn certified_by(&self, authorities: &Path) -> Result<usize> {
        let started = self.value["common"]["started"].as_u64().unwrap_or_default();
        let mut count = 0;
        for side in [Side::Service, Side::Client] {
            if let Some((chain, name, _)) = certified::read(self.of(side, "certificate")) {
                certificate::verify(&chain, authorities, started).map_err(|error| {
                    let (run, name) = (net::shown(self.run()), net::shown(name));
                    Error::Input(format!(
                        "run {run}: the certificate for {name}: {error}; name its authority"
                    ))
                })?;
                count += 1;
            }
        }
        Ok(count)
    }

    fn head_named(&self, side: Side) -> Option<[u8; 32]> {
        self.of(side, "head").as_str().and_then(from_hex)
    }
}

/// A line of a chain.
#[derive(Clone, Debug)]
pub enum Line {
    /// A whole record.
    Record(Box<Record>),
    /// The digest of a record that is withheld, which is the hash that the next one names.
    Digest([u8; 32]),
}

/// A chain that verified.
#[derive(Clone, Debug, Default)]
pub struct Chain(Vec<Line>);

impl Chain {
    /// Its lines, in their order.
    pub fn lines(&self) -> &[Line] {
        &self.0
    }

    /// The records that are whole.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.placed().map(|(_, record)| record)
    }

    /// How many records are there as digests only.
    pub fn withheld(&self) -> usize {
        self.0.iter().filter(|line| matches!(line, Line::Digest(_))).count()
    }

    /// The records that are whole, each with its number.
    fn placed(&self) -> impl Iterator<Item = (usize, &Record)> {
        self.0.iter().enumerate().filter_map(|(at, line)| match line {
            Line::Record(record) => Some((at, &**record)),
            Line::Digest(_) => None,
        })
    }
}

impl Line {
    fn head(&self) -> [u8; 32] {
        match self {
            Line::Record(record) => record.head,
            Line::Digest(head) => *head,
        }
    }
}

fn fault(what: &str) -> Error {
    Error::Input(format!("{what}; the record was changed, or belongs to another party"))
}

fn members(value: &Value, names: &[&str], what: &str) -> Result<()> {
    let found: Vec<&str> =
        value.as_object().map(|object| object.keys().map(String::as_str).collect()).unwrap_or_default();
    match found.len() == names.len() && names.iter().all(|name| found.contains(name)) {
        true => Ok(()),
        false => Err(fault(&format!("{what} does not have the members of a record"))),
    }
}

/// The sides, as the record calls them.
fn sides(version: &Value) -> [(Side, &'static str); 2] {
    [Side::Service, Side::Client].map(|side| (side, side.name_in(version)))
}

fn key_of(common: &Value, name: &str) -> Result<PublicKey> {
    let text = common[name]["key"].as_str().and_then(from_hex);
    text.map(PublicKey::from_bytes).ok_or_else(|| fault("a public key is missing"))
}

/// Whether every part of a record, and nothing else, is there.
fn form(value: &Value) -> Result<()> {
    let common = &value["common"];
    let version = &common["version"];
    if *version != 1 && *version != VERSION {
        return Err(Error::Input(
            "a record of another version; verify it with the release that wrote it".into(),
        ));
    }
    let old = *version == 1;
    let parts = ["common", "signatures", "side", "number", "previous", "seal", "begun"];
    members(value, &parts[..if old { 6 } else { 7 }], "the line")?;
    let [(_, service), (_, client)] = sides(version);
    let parts = ["version", "run", "started", "terms", service, client, "revealed", "outcome", "session"];
    members(common, &parts[..if old { 8 } else { 9 }], "the common part")?;
    let parts = ["key", "keys", "input", "head", "result", "certificate"];
    let parts = &parts[..if old { 5 } else { 6 }];
    [service, client].into_iter().try_for_each(|side| members(&common[side], parts, side))?;
    if old { Ok(()) } else { certified::verify(common) }
}

/// How many sides' signatures on `message` are under `signed`; each must hold.
fn signatures(signed: &Value, common: &Value, context: &str, message: &Value) -> Result<usize> {
    let signed = signed.as_object().ok_or_else(|| fault("it has no signatures"))?;
    for (name, signature) in signed {
        let known = sides(&common["version"]).iter().any(|(_, side)| side == name);
        if !known {
            return Err(fault("another party signed it"));
        }
        let text = signature.as_str().unwrap_or_default();
        if !is_signed(&key_of(common, name)?, context, message, text)? {
            return Err(fault(&format!("the signature of the {name} is invalid")));
        }
    }
    Ok(signed.len())
}

/// Verifies one record, the line of a file without its end.
///
/// Errors: any other form than the one that was written, another version, and signatures that do not hold. A
/// record that says `complete` needs both sides' signatures.
pub fn verify(line: &str) -> Result<Record> {
    record(line, read_canonical(line)?)
}

fn record(line: &str, value: Value) -> Result<Record> {
    form(&value)?;
    let common = &value["common"];
    let own = sides(&common["version"]).into_iter().find(|(_, name)| value["side"] == *name);
    let (side, name) = own.ok_or_else(|| fault("its side is missing"))?;
    let owner = key_of(common, name)?;
    let peer = key_of(common, side.other().name_in(&common["version"]))?;
    let mut sealed = value.clone();
    if let Some(object) = sealed.as_object_mut() {
        object.remove("seal");
    }
    if !is_signed(&owner, SEAL, &sealed, value["seal"].as_str().unwrap_or_default())? {
        return Err(fault("the owner's seal is invalid"));
    }
    let both_signed = signatures(&value["signatures"], common, COMMON, common)? == 2;
    if common["outcome"] == "complete" && !both_signed {
        return Err(fault("a complete run lacks a signature"));
    }
    let both_began =
        common["version"] != 1 && signatures(&value["begun"], common, BEGUN, &as_begun(common))? == 2;
    Ok(Record { side, owner, peer, both_signed, both_began, head: head_of(line), value })
}

/// The digest of a record that is withheld, if the line is one.
fn digest(value: &Value) -> Option<[u8; 32]> {
    let object = value.as_object()?;
    (object.len() == 2 && object.contains_key("number")).then_some(())?;
    from_hex(object.get("digest")?.as_str()?)
}

/// Verifies a chain: every record, their numbers, and that each names the one before.
///
/// Errors name the record, counted from 1.
pub fn verify_chain(text: &str) -> Result<Chain> {
    let at_record = |at: usize, what: String| Error::Input(format!("record {}: {what}", at + 1));
    if !text.is_empty() && !text.ends_with('\n') {
        return Err(Error::Input("the last record is cut off".into()));
    }
    let mut chain: Vec<Line> = Vec::new();
    let mut previous = NO_HEAD;
    for (at, line) in text.split_terminator('\n').enumerate() {
        let value = read_canonical(line).map_err(|error| at_record(at, error.to_string()))?;
        let follows = value["number"] == at;
        let (next, follows) = match digest(&value) {
            Some(head) => (Line::Digest(head), follows),
            None => {
                let names = value["previous"].as_str().and_then(from_hex);
                let record = record(line, value).map_err(|error| at_record(at, error.to_string()))?;
                (Line::Record(Box::new(record)), follows && names == Some(previous))
            }
        };
        if !follows {
            return Err(at_record(
                at,
                "it does not follow the one before: a record is missing, or out of order".into(),
            ));
        }
        previous = next.head();
        chain.push(next);
    }
    Ok(Chain(chain))
}

fn read_chain(path: &Path) -> Result<String> {
    let file = if path.is_dir() { path.join(RECORDS) } else { path.to_owned() };
    std::fs::read_to_string(&file).map_err(|e| Error::file(&file, "cannot be read", e))
}

/// Reads and verifies the chain in a file, or in the folder of a side's records.
pub fn load(path: &Path) -> Result<Chain> {
    let named = |error| Error::Input(format!("{}: {error}", shown(path)));
    verify_chain(&read_chain(path)?).map_err(named)
}

fn open_file(path: &Path) -> Result<std::fs::File> {
    std::fs::File::open(path).map_err(|e| Error::file(path, "cannot be read", e))
}

/// Whether `input` are the files that the owner of the chain in `folder` committed to for `record`, by the salt
/// in the private part; of a service's lookups that is its file of tags.
pub fn opens_input(folder: &Path, record: &Record, input: &[PathBuf]) -> Result<bool> {
    let path = folder.join(PRIVATE_PART);
    let text = std::fs::read_to_string(&path).map_err(|e| Error::file(&path, "cannot be read", e))?;
    let kept = text.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let salt = kept
        .filter(|kept| kept["run"] == record.run())
        .find_map(|kept| from_hex(kept["input_salt"].as_str()?));
    let salt: [u8; 32] = salt.ok_or_else(|| {
        Error::Input(format!("{}: has no salt for run {}", shown(&path), tacit::net::shown(record.run())))
    })?;
    let publication = &record.value["common"]["terms"]["publication"];
    let digest = match record.side {
        Side::Service if !publication.is_null() => match input {
            [file] => *TagFile::open(open_file(file)?)?.digest(),
            _ => return Ok(false),
        },
        _ => digest_of(input)?,
    };
    let opened = commitment("input", &salt, &digest);
    Ok(record.of(record.side, "input").as_str().and_then(from_hex) == Some(opened))
}
