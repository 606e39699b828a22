//! Whether a key's file is as it was written.

use super::{BEGIN, HEADER, Header, ID, Kind, malformed};
use crate::Result;

/// Bytes of the digest at the end of a sender's key.
pub(super) const DIGEST: usize = 32;
/// What is said of a key whose digest does not fit.
pub(super) const SENDER_DAMAGED: &str =
    "the key is damaged; make a new one with tacit nisc answer, and send the receiver its answer";
pub(super) const RECEIVER_DAMAGED: &str = "the key is damaged or of an earlier build; make a new one with tacit nisc keygen, and give the senders its public \
     key";

/// Shows damage to the file of a sender's key, whose bytes before the digest these are.
pub(super) fn sender_digest(bytes: &[u8]) -> [u8; DIGEST] {
    *blake3::Hasher::new_derive_key("tacit silent nisc sender key").update(bytes).finalize().as_bytes()
}

/// Shows damage to the file of a receiver's key, whose bytes these are; where the digest goes is left out.
pub(super) fn receiver_digest(bytes: &[u8]) -> [u8; ID] {
    let mut hasher = blake3::Hasher::new_derive_key("tacit silent nisc receiver key");
    hasher.update(&bytes[..HEADER - ID]).update(&bytes[HEADER..]);
    *hasher.finalize().as_bytes()
}

impl Header {
    /// Reads the header of a key of `kind` and of `len` bytes, whose digest `fits`; returns what follows it. What is
    /// of another version or kind is called that, any other change a damage.
    pub(super) fn read_key<'a>(
        bytes: &'a [u8],
        (kind, len): (Kind, usize),
        fits: impl FnOnce() -> bool,
        damaged: &'static str,
    ) -> Result<(Header, &'a [u8])> {
        match bytes.get(..BEGIN) {
            Some(begin) => Header::begins(begin, kind)?,
            None => return Err(malformed(damaged)),
        }
        if bytes.len() != len || !fits() {
            return Err(malformed(damaged));
        }
        Header::read(bytes, kind)
    }
}
