//! Signed messages of [silent NISC](super::nisc): whoever reads one knows from whom it comes.
//!
//! A message of NISC is a file, and nothing in it says who wrote it: anybody's answer can spend a receiver's
//! key, and anybody's public key can stand where Bob's should. [`sign`] puts the author's identity key and an
//! Ed25519 signature in front of a message, [`open`] checks and takes them off. Messages name what they
//! answer (the header's id binds the public key, the context and, of a reply, the question), so a signature
//! says it of that exchange alone. Answers also bind their signer and whom they answer inside
//! ([`Parties`](super::nisc::Parties)), as a signature can be taken off and replaced by another.
//!
//! ```
//! use tacit_net::Identity;
//! use tacit_ot::silent::signed::{Whose, open, sign};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (alice, bob) = (Identity::generate()?, Identity::generate()?);
//! let signed = sign(b"tacitnisc, an answer", &alice)?;
//! let (message, author) = open(&signed, Whose::Peer(&[alice.public()]))?;
//! assert_eq!((message, author), (&b"tacitnisc, an answer"[..], Some(alice.public())));
//! assert!(open(&signed, Whose::Peer(&[bob.public()])).is_err());
//! # Ok(())
//! # }
//! ```

use super::nisc::NAME;
use crate::{Error, Result};
use tacit_net::{Identity, PublicKey, SIGNATURE};

const MAGIC: [u8; 9] = *b"tacitsign";
const VERSION: u8 = 1;
const KEY: usize = 32;
const HEADER: usize = MAGIC.len() + 1 + KEY + SIGNATURE;
/// What signatures of this kind begin with; those of other kinds, TLS's included, do not.
const CONTEXT: &str = "tacit silent nisc: signed message v1";

/// Whose messages are taken.
#[derive(Clone, Copy, Debug)]
pub enum Whose<'a> {
    /// Anybody's, signed or not. A signature that is there must fit all the same.
    Anybody,
    /// Those that one of the peer's keys has signed: its key, and the successors that are accepted today.
    Peer(&'a [PublicKey]),
}

/// The message with its author's key and signature in front, 106 bytes.
pub fn sign(message: &[u8], author: &Identity) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(HEADER + message.len());
    out.extend_from_slice(&MAGIC);
    out.push(VERSION);
    out.extend_from_slice(&author.public().to_bytes());
    out.extend_from_slice(&author.sign(CONTEXT, message)?);
    out.extend_from_slice(message);
    Ok(out)
}

/// The message in `bytes`, once its signature was checked, and who signed it.
///
/// Errors: `Malformed` for a signature that does not match, one of another key than is asked for, or none where
/// one is.
pub fn open<'a>(bytes: &'a [u8], whose: Whose<'_>) -> Result<(&'a [u8], Option<PublicKey>)> {
    let Some(rest) = bytes.strip_prefix(&MAGIC) else {
        return match whose {
            Whose::Anybody => Ok((bytes, None)),
            Whose::Peer(_) => {
                Err(malformed("the message is not signed, and a signature by its author's key is required"))
            }
        };
    };
    let cut = rest.split_first().and_then(|(version, rest)| {
        let (key, rest) = rest.split_first_chunk::<KEY>()?;
        let (signature, message) = rest.split_first_chunk::<SIGNATURE>()?;
        Some((*version, PublicKey::from_bytes(*key), signature, message))
    });
    let Some((version, author, signature, message)) = cut else {
        return Err(malformed("the message is cut short"));
    };
    if version != VERSION {
        return Err(malformed("the signature is of another version; update the older side"));
    }
    if !author.verify(CONTEXT, message, signature) {
        return Err(malformed("the signature does not match the message; ask for it again"));
    }
    match whose {
        Whose::Peer(keys) if !keys.contains(&author) => {
            Err(malformed("the message is signed with another key than the peer's; ask the peer for its own"))
        }
        _ => Ok((message, Some(author))),
    }
}

fn malformed(what: &'static str) -> Error {
    Error::Malformed { protocol: NAME, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_its_authors_and_of_its_message_alone() {
        let (alice, eve) = (Identity::generate().unwrap(), Identity::generate().unwrap());
        let signed = sign(b"message", &alice).unwrap();
        let peer = &[alice.public()];
        assert_eq!((signed.len(), open(&signed, Whose::Peer(peer)).unwrap().0), (106 + 7, &b"message"[..]));
        assert_eq!(open(&signed, Whose::Anybody).unwrap(), (&b"message"[..], Some(peer[0])));
        assert_eq!(open(b"message", Whose::Anybody).unwrap(), (&b"message"[..], None));
        assert!(open(&signed, Whose::Peer(&[eve.public(), peer[0]])).is_ok());
        let refused = |bytes: &[u8], from, words: &str| match open(bytes, from) {
            Err(Error::Malformed { what, .. }) => assert!(what.contains(words), "{what}"),
            other => panic!("{other:?}"),
        };
        refused(b"message", Whose::Peer(peer), "not signed");
        refused(&sign(b"message", &eve).unwrap(), Whose::Peer(peer), "another key");
        for at in 9..signed.len() {
            let mut changed = signed.clone();
            changed[at] ^= 4;
            let words = if at == 9 { "another version" } else { "does not match" };
            refused(&changed, Whose::Peer(peer), words);
            refused(&changed, Whose::Anybody, words);
        }
        for cut in 9..HEADER {
            refused(&signed[..cut], Whose::Anybody, "cut short");
        }
        // Alice's key in front of Eve's signature.
        let mut claimed = sign(b"message", &eve).unwrap();
        claimed[10..42].copy_from_slice(&peer[0].to_bytes());
        refused(&claimed, Whose::Peer(peer), "does not match");
    }
}
