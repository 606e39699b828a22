//! Values that are compared by their SHA-256 hashes. Hashing hides nothing: whoever can guess values can hash
//! them.

use super::Reason;
use super::prelude::prelude;
use sha2::{Digest, Sha256};

/// Whether this is a SHA-256 hash in hex.
pub(super) fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Appends a hash of the list, in lower case.
pub(super) fn listed(text: &str, out: &mut String) -> Result<(), Reason> {
    let text = prelude(text);
    if text.is_empty() {
        return Err(Reason::Empty);
    }
    if !is_hash(&text) {
        return Err(Reason::Clear);
    }
    out.push_str(&text.to_ascii_lowercase());
    Ok(())
}

/// Appends the hash of a normal form.
pub(super) fn of(normal: &str, out: &mut String) {
    const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in Sha256::digest(normal.as_bytes()) {
        out.push(HEX_DIGITS[usize::from(byte >> 4)].into());
        out.push(HEX_DIGITS[usize::from(byte & 15)].into());
    }
}
