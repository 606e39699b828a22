//! Signed records of runs, in a chain on the disk.
//!
//! A record is one line of JSON in the form of RFC 8785 (see [`json`](crate::json)):
//!
//! - `common`: what both sides may know: the run, its terms, both public keys, how many keys each side said
//!   it has, salted commitments to inputs and results, what was revealed to whom, and the outcome. It holds
//!   the head of each side's chain at the run's start, so that a record that one side takes away or cuts off
//!   is missed by the other.
//! - `begun`: the signatures of `service` and `client` on `common` as it was when the run began, without
//!   results and with the outcome `begun`: made before anything of a table is sent, so a side that leaves
//!   later has asked for the run all the same.
//! - `signatures`: of both on `common`, as far as the run got; a run that broke off has none.
//! - `side`, `number`, `previous`: whose chain it is, the record's place, and the hash of the line before.
//! - `seal`: the owner's signature on all of this.
//!
//! What opens the commitments, salts of 256 bits and the result, stands in a file of its own that nobody else
//! gets. Before a run begins its record lies in the folder `pending`; one that is found there without its
//! process is recorded as interrupted, so no crash loses one; as complete where both had signed its end and the
//! chain could not be written.

use crate::file::{Lines, is_gone, private_file, private_folder, sync_folder};
use crate::json::{canonical, hex, read_canonical};
use crate::terms::Side;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tacit::net::{Identity, PublicKey, SIGNATURE};
use tacit::{Error, Result};
use zeroize::Zeroizing;

/// What the signatures on a record's common part are for.
pub const COMMON: &str = "tacit 1 record common to both sides";
/// What the signatures on the common part of a run that begins are for.
pub const BEGUN: &str = "tacit 2 record of a run that begins";
/// What the seal of one side's record is for.
pub const SEAL: &str = "tacit 1 record of one side";
const CHAIN_HEAD: &str = "tacit 1 head of a chain of records";
const COMMITTED: &str = "tacit 1 commitment of a record";

/// The head of a chain without records.
pub const NO_HEAD: [u8; 32] = [0; 32];

/// How a run ended that a rule refused after it was charged, because of what is in the table.
pub(crate) const REFUSED_RUN: &str = "refused";

/// Both files of a chain: that of the records, in its directory.
pub const RECORDS: &str = "records.jsonl";
pub(crate) const PRIVATE_PART: &str = "private.jsonl";
/// The folder of runs without a record yet.
pub(crate) const PENDING: &str = "pending";

/// The head of a chain whose last line is `line`.
pub fn head_of(line: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(CHAIN_HEAD);
    hasher.update(line.as_bytes());
    *hasher.finalize().as_bytes()
}

/// A salted commitment to `content`, which is the `kind` (`input` or `result`) of a run.
pub fn commitment(kind: &str, salt: &[u8; 32], content: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(COMMITTED);
    hasher.update(salt);
    hasher.update(&(kind.len() as u64).to_le_bytes());
    hasher.update(kind.as_bytes());
    hasher.update(content);
    *hasher.finalize().as_bytes()
}

/// A fresh salt.
pub fn salt() -> Zeroizing<[u8; 32]> {
    let mut salt = Zeroizing::new([0; 32]);
    tacit::crypto::Prg::from_os().fill_bytes(salt.as_mut());
    salt
}

/// The digest of a table, which records commit to: of a file the BLAKE3 hash of its bytes, of several one of theirs.
pub fn digest_of(paths: &[PathBuf]) -> Result<[u8; 32]> {
    Ok(tacit::data::table::digest_of(paths)?)
}

/// The chain of one identity, in a folder.
#[derive(Clone)]
pub struct Records {
    folder: PathBuf,
    identity: Identity,
    side: Side,
    /// Whether the chain had a record: its file does not go away.
    begun: Arc<AtomicBool>,
}

/// A run whose record is not finished.
pub struct Begun {
    records: Records,
    pending: PathBuf,
    /// Locked while the run goes on.
    file: File,
    /// The part common to both sides.
    pub common: Value,
    /// The signatures on it as the run begins, by side.
    begun: Value,
    input_salt: Zeroizing<[u8; 32]>,
    result_salt: Zeroizing<[u8; 32]>,
    /// Of a service: what the run is charged.
    charge: Value,
}

impl Records {
    /// The chain in `folder`, made if there is none. What runs of processes that are gone left unfinished is
    /// recorded as interrupted; returns how many.
    pub fn open(folder: &Path, identity: &Identity, side: Side) -> Result<(Self, u64)> {
        private_folder(folder)?;
        private_folder(&folder.join(PENDING))?;
        let records =
            Records { folder: folder.to_owned(), identity: identity.clone(), side, begun: Arc::default() };
        let interrupted = records.recover()?;
        Ok((records, interrupted))
    }

    /// The chain, and its last record.
    fn chain(&self) -> Result<(Lines, Option<String>)> {
        self.check()?;
        let path = self.folder.join(RECORDS);
        let (chain, last) = Lines::open_last(&path)?;
        match last {
            None if self.begun.load(Ordering::SeqCst) => return Err(is_gone(&path)),
            None => {}
            Some(_) => self.begun.store(true, Ordering::SeqCst),
        }
        Ok((chain, last))
    }

    /// An error where the files are gone: a new chain would begin in the middle of one.
    pub(crate) fn check(&self) -> Result<()> {
        let path = self.folder.join(if self.begun.load(Ordering::SeqCst) { RECORDS } else { PENDING });
        match path.exists() {
            true => Ok(()),
            false => Err(is_gone(&path)),
        }
    }

    /// The head of the chain.
    pub fn head(&self) -> Result<[u8; 32]> {
        let (_, last) = self.chain()?;
        Ok(last.map_or(NO_HEAD, |line| head_of(&line)))
    }

    /// Held while files in `pending` are made or looked at: else one that is not locked yet would be taken
    /// for one without its process.
    fn guard(&self) -> Result<File> {
        let path = self.folder.join("lock");
        let fault = |e| Error::file(&path, "cannot be locked", e);
        let file = private_file(OpenOptions::new().read(true).append(true).create(true))
            .open(&path)
            .map_err(fault)?;
        file.lock().map_err(fault)?;
        Ok(file)
    }

    fn recover(&self) -> Result<u64> {
        let _guard = self.guard()?;
        let folder = self.folder.join(PENDING);
        let listed = std::fs::read_dir(&folder).map_err(|e| Error::file(&folder, "cannot be listed", e))?;
        let mut left = Vec::new();
        for entry in listed.flatten() {
            let path = entry.path();
            let Ok(mut file) = File::open(&path) else { continue };
            if file.try_lock().is_err() {
                continue;
            }
            let mut text = Zeroizing::new(String::new());
            // A file that a crash left half written is of a run that had not begun.
            let kept = file.read_to_string(&mut text).ok().and_then(|_| {
                let mut lines = text.lines();
                let mut kept = serde_json::from_str::<Value>(lines.next()?).ok()?;
                for line in lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
                    let name = if line["common"].is_object() { "ended" } else { "begun" };
                    kept[name] = line;
                }
                kept["common"].is_object().then_some(kept)
            });
            left.push((path, file, kept));
        }
        // Locked since before the chain is looked at, so whatever their processes recorded is there.
        let mut known = BTreeSet::new();
        if left.iter().any(|(_, _, kept)| kept.is_some()) {
            Lines::each(&self.folder.join(RECORDS), |line| {
                let record = serde_json::from_str::<Value>(line).unwrap_or_default();
                let run = &record["common"]["run"];
                if left.iter().flat_map(|(_, _, kept)| kept).any(|kept| kept["common"]["run"] == *run) {
                    known.insert(run.to_string());
                }
            })?;
        }
        let mut interrupted = 0;
        for (path, _lock, kept) in left {
            if let Some(kept) = kept
                && !known.contains(&kept["common"]["run"].to_string())
            {
                let ended = &kept["ended"];
                if ended.is_object() {
                    let signed = ["service", "client"].map(|side| ended[side].as_str().map(str::to_owned));
                    self.write(ended["common"].clone(), &ended["private"], &kept["begun"], signed)?;
                } else {
                    let mut common = kept["common"].clone();
                    common["outcome"] = json!("interrupted");
                    self.write(common, &kept["private"], &kept["begun"], [None, None])?;
                    interrupted += 1;
                }
            }
            match std::fs::remove_file(&path) {
                // Its own process finished it, and let the lock go, after we had opened it.
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                removed => removed.map_err(|e| Error::file(&path, "cannot be removed", e))?,
            }
        }
        Ok(interrupted)
    }

    /// Writes down that a run begins, with this side's signature on it and the other's where it is there
    /// already: on the disk when this returns.
    pub fn begin(
        &self,
        common: Value,
        theirs: Option<&str>,
        input_salt: Zeroizing<[u8; 32]>,
        result_salt: Zeroizing<[u8; 32]>,
    ) -> Result<Begun> {
        self.begin_charged(common, theirs, [input_salt, result_salt], Value::Null)
    }

    /// As [`begin`](Self::begin), of a run that is charged: the private part keeps what, for a ledger that is lost.
    pub fn begin_charged(
        &self,
        common: Value,
        theirs: Option<&str>,
        [input_salt, result_salt]: [Zeroizing<[u8; 32]>; 2],
        charge: Value,
    ) -> Result<Begun> {
        let run = common["run"].as_str().unwrap_or_default();
        // The name comes from ids of the session alone, but part of it is the peer's.
        if run.is_empty() || run.len() > 64 || !run.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Error::Peer("the run's name is not valid".into()));
        }
        let pending = self.folder.join(PENDING).join(format!("{run}.json"));
        let fault = |e| Error::file(&pending, "cannot be written; is the disk full?", e);
        let _guard = self.guard()?;
        let mut file =
            private_file(OpenOptions::new().write(true).create_new(true)).open(&pending).map_err(fault)?;
        file.lock().map_err(fault)?;
        let mut begun = json!({});
        begun[self.side.name()] = json!(hex(&self.identity.sign(BEGUN, canonical(&common)?.as_bytes())?));
        if let Some(theirs) = theirs {
            begun[self.side.other().name()] = json!(theirs);
        }
        let private = private(run, [&input_salt, &result_salt], &Value::Null, &charge);
        let kept = json!({ "common": common, "private": private, "begun": begun });
        let text = Zeroizing::new(format!("{kept}\n"));
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(fault)?;
        sync_folder(&pending)?;
        Ok(Begun { records: self.clone(), pending, file, common, begun, input_salt, result_salt, charge })
    }

    /// Adds a record; the private part first, so that no record lacks it.
    fn write(
        &self,
        common: Value,
        private: &Value,
        begun: &Value,
        signatures: [Option<String>; 2],
    ) -> Result<String> {
        let (mut chain, last) = self.chain()?;
        let number = match &last {
            Some(line) => number_after(line).ok_or_else(|| Error::Input(DAMAGED.into()))?,
            None => 0,
        };
        let private_path = self.folder.join(PRIVATE_PART);
        Lines::open_last(&private_path)?.0.append(&canonical(private)?)?;
        let mut signed = serde_json::Map::new();
        for (side, signature) in [Side::Service, Side::Client].into_iter().zip(signatures) {
            if let Some(signature) = signature {
                signed.insert(side.name().into(), json!(signature));
            }
        }
        let version = common["version"].clone();
        let mut record = json!({
            "common": common,
            "signatures": signed,
            "side": self.side.name_in(&version),
            "number": number,
            "previous": hex(&last.map_or(NO_HEAD, |line| head_of(&line))),
        });
        // What a crash of the release before left has none.
        if version != 1 {
            record["begun"] = begun.clone();
        }
        let seal = self.identity.sign(SEAL, canonical(&record)?.as_bytes())?;
        record["seal"] = json!(hex(&seal));
        let line = canonical(&record)?;
        read_canonical(&line)?;
        chain.append(&line)?;
        Ok(line)
    }
}

const DAMAGED: &str = "the last record of the chain is damaged; `tacit audit verify` shows where";

/// The number of the record after this one.
pub(crate) fn number_after(line: &str) -> Option<u64> {
    let record: Value = serde_json::from_str(line).ok()?;
    record["number"].as_u64()?.checked_add(1)
}

fn private(run: &str, salts: [&[u8; 32]; 2], result: &Value, charge: &Value) -> Value {
    let [input_salt, result_salt] = salts.map(|salt| hex(salt));
    let mut private =
        json!({ "run": run, "input_salt": input_salt, "result_salt": result_salt, "result": result });
    if !charge.is_null() {
        private["charge"] = charge.clone();
    }
    private
}

/// Whether `text` is the signature of `key` on the common part of a record, for this use.
pub fn is_signed(key: &PublicKey, context: &str, common: &Value, text: &str) -> Result<bool> {
    let Some(bytes) = signature(text) else { return Ok(false) };
    Ok(key.verify(context, canonical(common)?.as_bytes(), &bytes))
}

/// The common part as it was when its run began.
pub fn as_begun(common: &Value) -> Value {
    let mut begun = common.clone();
    for side in [Side::Service, Side::Client] {
        begun[side.name()]["result"] = Value::Null;
    }
    begun["outcome"] = json!("begun");
    begun
}

impl Begun {
    /// This side's signature on the run as it begins.
    pub fn begun(&self) -> String {
        self.begun[self.records.side.name()].as_str().unwrap_or_default().to_owned()
    }

    /// Keeps the other side's signature on the run as it begins: on the disk when this returns.
    ///
    /// Errors: a signature that does not hold.
    pub fn peer_began(&mut self, key: &PublicKey, theirs: &str) -> Result<()> {
        if !is_signed(key, BEGUN, &self.common, theirs)? {
            let what = "the peer's signature on the start of the run is not valid; run the same release on \
                        both sides";
            return Err(Error::Peer(what.into()));
        }
        self.begun[self.records.side.other().name()] = json!(theirs);
        let line = format!("{}\n", self.begun);
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_all());
        written.map_err(|e| Error::file(&self.pending, "cannot be written; is the disk full?", e))
    }

    /// This side's commitment to `result`, a value in canonical form.
    pub fn commit(&self, result: &Value) -> Result<String> {
        Ok(hex(&commitment("result", &self.result_salt, canonical(result)?.as_bytes())))
    }

    /// This side's signature on the common part.
    pub fn sign(&self) -> Result<String> {
        Ok(hex(&self.records.identity.sign(COMMON, canonical(&self.common)?.as_bytes())?))
    }

    /// Finishes the record: `result` is this side's, `theirs` the other side's signature, as far as the
    /// run got.
    ///
    /// Returns the record's line. Errors: those of the files; what both have signed is then recorded by the next
    /// [`Records::open`].
    pub fn finish(self, outcome: &str, result: &Value, theirs: Option<String>) -> Result<String> {
        let Begun { records, pending, mut file, mut common, begun, input_salt, result_salt, charge } = self;
        common["outcome"] = json!(outcome);
        let run = common["run"].as_str().unwrap_or_default().to_owned();
        let ours = hex(&records.identity.sign(COMMON, canonical(&common)?.as_bytes())?);
        let signatures = match (records.side, theirs) {
            (_, None) => [None, None],
            (Side::Service, theirs) => [Some(ours), theirs],
            (Side::Client, theirs) => [theirs, Some(ours)],
        };
        let private = private(&run, [&input_salt, &result_salt], result, &charge);
        if let [Some(service), Some(client)] = &signatures {
            let ended = json!({ "common": common, "private": private, "service": service, "client": client });
            // Where this fails too, the run is recorded as interrupted.
            let _ = file.write_all(Zeroizing::new(format!("{ended}\n")).as_bytes());
        }
        let line = records.write(common, &private, &begun, signatures)?;
        std::fs::remove_file(&pending).map_err(|e| Error::file(&pending, "cannot be removed", e))?;
        Ok(line)
    }
}

/// Bytes of a signature out of its text.
pub fn signature(text: &str) -> Option<[u8; SIGNATURE]> {
    crate::json::from_hex(text)
}
