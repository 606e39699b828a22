//! A chain for one peer: its records whole, and everybody else's as digests.

use super::{Chain, Line, Record, read_chain, verify_chain};
use crate::json::{canonical, hex};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use tacit::Result;
use tacit::net::{PublicKey, PublicKeys};

/// The peer that a chain is exported for.
#[derive(Clone, Debug)]
pub enum Peer {
    /// A public key, and those that followed it.
    Keys(PublicKeys),
    /// The fingerprint of one.
    Fingerprint(String),
    /// The name in its certificate.
    Certificate(String),
}

impl Peer {
    fn has(&self, key: &PublicKey) -> bool {
        match self {
            Peer::Keys(keys) => keys.contains(key),
            Peer::Fingerprint(fingerprint) => key.fingerprint() == *fingerprint,
            Peer::Certificate(_) => false,
        }
    }

    /// The names in certificates that are this peer's: with those it may sign its records by another key in each run.
    fn names<'c>(&'c self, chain: &'c Chain) -> BTreeSet<&'c str> {
        let shown = chain.records().filter(|record| self.has(&record.peer)).filter_map(certificate);
        let given = match self {
            Peer::Certificate(name) => Some(name.as_str()),
            _ => None,
        };
        shown.chain(given).collect()
    }
}

fn certificate(record: &Record) -> Option<&str> {
    record.certificate_of(record.side.other())
}

/// The chain at `path` for `peer`: of a run with any other party a line holds the number and digest of the
/// record alone, which does not show the job, its sizes, its purpose or who it was with. Returns the text, and
/// how many records are whole.
///
/// Errors: a chain that does not verify.
pub fn export(path: &Path, peer: &Peer) -> Result<(String, usize)> {
    let text = read_chain(path)?;
    let chain = verify_chain(&text)?;
    let names = peer.names(&chain);
    let is_named = |record: &Record| certificate(record).is_some_and(|name| names.contains(name));
    let (mut out, mut whole) = (String::new(), 0);
    for (number, (line, found)) in text.split_terminator('\n').zip(chain.lines()).enumerate() {
        match found {
            Line::Record(record) if peer.has(&record.peer) || is_named(record) => {
                whole += 1;
                out += line;
            }
            line => out += &canonical(&json!({ "digest": hex(&line.head()), "number": number }))?,
        }
        out.push('\n');
    }
    Ok((out, whole))
}
