//! A chain for one peer: its records whole, and everybody else's as digests.

use super::{Line, read_chain, verify_chain};
use crate::json::{canonical, hex};
use serde_json::json;
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
}

impl Peer {
    fn has(&self, key: &PublicKey) -> bool {
        match self {
            Peer::Keys(keys) => keys.contains(key),
            Peer::Fingerprint(fingerprint) => key.fingerprint() == *fingerprint,
        }
    }
}

/// The chain at `path` for `peer`: of a run with any other party a line holds the number and digest of the
/// record alone, which does not show the job, its sizes, its purpose or who it was with. Returns the text, and
/// how many records are whole.
///
/// Errors: a chain that does not verify.
pub fn export(path: &Path, peer: &Peer) -> Result<(String, usize)> {
    let text = read_chain(path)?;
    let chain = verify_chain(&text)?;
    let (mut out, mut whole) = (String::new(), 0);
    for (number, (line, found)) in text.split_terminator('\n').zip(chain.lines()).enumerate() {
        match found {
            Line::Record(record) if peer.has(&record.peer) => {
                whole += 1;
                out += line;
            }
            line => out += &canonical(&json!({ "digest": hex(&line.head()), "number": number }))?,
        }
        out.push('\n');
    }
    Ok((out, whole))
}
