//! PAIR: a publisher and an advertiser match their people in clean rooms by commutative encryption.
//!
//! - Source: IAB Tech Lab, Publisher Advertiser Identity Reconciliation 1.1 (July 2025), with one clean room or two;
//!   the cipher is Diffie–Hellman exponentiation (Meadows 1986; Huberman–Franklin–Hogg 1999). Group and hash to it:
//!   RFC 9496.
//! - Realises: the clean rooms learn which encrypted identifiers are common; see below who learns what.
//! - Assumptions: decisional Diffie–Hellman in Ristretto, SHA-256 and SHA-512 as random oracles; parties and clean
//!   rooms that follow the protocol and do not share keys. It falls to a quantum computer.
//! - Rounds: two exchanges of files, in both directions at once.
//! - Bytes: 32 an identifier and exchange, 44 as text.
//!
//! # Steps
//!
//! s is the [`Salt`] K_s of the text, p and a are the [`Key`]s K_p and K_a.
//!
//! 1. The publisher's room draws s and p and gives s to the advertiser's room, which draws a.
//! 2. Each room [hashes](hash) its identifiers x: h = SHA-256(s ‖ x), P = MAP(SHA-512(h)), where MAP is RFC 9496's
//!    one-way map of 64 bytes (section 4.3.4), [encrypts](Exponent::encrypt) them (p·P, or a·P) and sends them,
//!    shuffled.
//! 3. Each room [encrypts again](Exponent::multiply) what it got (a·p·P, p·a·P), shuffles it and sends it back.
//! 4. Each room compares the two lists. The advertiser's room takes a away from the common ones, which gives p·P: the
//!    publisher's identifiers, which in Base64 are what bid requests carry.
//!
//! # What the text leaves open
//!
//! It names Curve25519 and Ristretto as one of two choices, and says neither what the salted hash is nor how an
//! element of the group is made of it. Here x is the SHA-256 of the normal form in 64 lower-case hexadecimal digits,
//! the text's example, and s has 32 bytes in front of it. Hash, map and Base64 (RFC 4648, section 4, padded) are those
//! of the one implementation that is public (Optable's), so that lists of both match.
//! `docs/pair-vectors.json` has vectors.
//!
//! # Who learns what
//!
//! - Who has s and p, or s and a, can test any value against that side's list. One room with all keys can test
//!   everything.
//! - A room gets the size of the other's list, and which of the other's encrypted identifiers are common. It knows its
//!   own list before the shuffle, and not which of its own are common, as long as the other room shuffles.
//! - p·P stays the same for a person as long as s and p do: bid requests are linkable within that period.
//! - Nothing is checked: a room that adds identifiers of its choice, multiplies by another scalar for some of them, or
//!   does not shuffle learns more and is not found out.

pub mod keys;
mod layers;
#[cfg(test)]
mod tests;

pub use keys::{Id, Key, KeyFault, Lifetime, Role, Salt};
pub use layers::Layers;

use sha2::{Digest, Sha256, Sha512};
use std::num::NonZeroUsize;
use tacit_crypto::Prg;
use tacit_crypto::group::{Encoding, Points, Scalars, UNIFORM_BYTES, is_identity_encoding};
use zeroize::Zeroizing;

/// The protocol's short name.
pub const PAIR_NAME: &str = "pair";
/// The fewest identifiers of a list, before matching, that the text allows.
pub const LEAST_LISTED: u64 = 1000;
/// The highest match rate, in percent, that is told.
pub const MOST_TOLD: u64 = 85;
/// Elements that a thread takes at a time.
const PIECE: usize = 512;

/// The salted hash of an identifier.
pub type Hashed = [u8; 32];

type Result<T, E> = std::result::Result<T, E>;

/// SHA-256 of the salt and a match key: of an e-mail address or a telephone number its SHA-256 in hexadecimal.
pub fn hash(salt: &Salt, match_key: &[u8]) -> Hashed {
    Sha256::new().chain_update(salt.bytes()).chain_update(match_key).finalize().into()
}

/// An element that is none: its place in the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidElement(pub usize);

/// Errors: an encoding that is not canonical, of no element, or the identity's.
pub fn check(elements: &[Encoding]) -> Result<(), InvalidElement> {
    decode(elements).map(drop)
}

fn decode(elements: &[Encoding]) -> Result<Points, InvalidElement> {
    if let Some(at) = elements.iter().position(is_identity_encoding) {
        return Err(InvalidElement(at));
    }
    Points::decode(elements.as_flattened()).map_err(|error| match error {
        tacit_crypto::group::DecodeError::Invalid(at) => InvalidElement(at),
        _ => InvalidElement(0),
    })
}

/// What elements are multiplied by: a key, two keys at once, or a key's inverse. Erased when dropped.
pub struct Exponent(Scalars);

impl std::fmt::Debug for Exponent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Exponent([secret])")
    }
}

impl Exponent {
    /// Encrypts with a key.
    pub fn of(key: &Key) -> Self {
        Exponent(key.secret().clone())
    }

    /// Encrypts with both keys, in the time of one: for one clean room that has both.
    pub fn of_both(one: &Key, other: &Key) -> Self {
        Exponent(one.secret().mul(other.secret()))
    }

    /// Takes a key away.
    pub fn without(key: &Key) -> Self {
        Exponent(key.secret().invert())
    }

    /// Encrypts [hashed](hash) identifiers, in their order. `progress` is told how many are done.
    pub fn encrypt(
        &self,
        hashed: &[Hashed],
        threads: NonZeroUsize,
        progress: &mut dyn FnMut(u64),
    ) -> Vec<Encoding> {
        let made = each_piece(hashed, threads, progress, &|hashed| {
            let mut uniform = Zeroizing::new(vec![[0; UNIFORM_BYTES]; hashed.len()]);
            for (uniform, hashed) in uniform.iter_mut().zip(hashed) {
                uniform.copy_from_slice(&Sha512::digest(hashed));
            }
            Ok(Points::from_uniform(&uniform).mul_same(&self.0).encode())
        });
        made.unwrap_or_default()
    }

    /// Multiplies elements, in their order. Errors: an element that is none.
    pub fn multiply(
        &self,
        elements: &[Encoding],
        threads: NonZeroUsize,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Vec<Encoding>, InvalidElement> {
        each_piece(elements, threads, progress, &|elements| Ok(decode(elements)?.mul_same(&self.0).encode()))
    }
}

type Work<'a, T> = &'a (dyn Fn(&[T]) -> Result<Vec<Encoding>, InvalidElement> + Sync);

/// What `work` makes of all, piece by piece, by so many threads.
fn each_piece<T: Sync>(
    all: &[T],
    threads: NonZeroUsize,
    progress: &mut dyn FnMut(u64),
    work: Work<'_, T>,
) -> Result<Vec<Encoding>, InvalidElement> {
    let mut out = Vec::with_capacity(all.len());
    for round in all.chunks(PIECE * threads.get()) {
        let before = out.len();
        let made: Vec<Result<Vec<Encoding>, InvalidElement>> = match threads.get() {
            1 => vec![work(round)],
            _ => std::thread::scope(|scope| {
                let pieces: Vec<_> =
                    round.chunks(PIECE).map(|piece| scope.spawn(move || work(piece))).collect();
                let join = |handle: std::thread::ScopedJoinHandle<'_, _>| match handle.join() {
                    Ok(made) => made,
                    Err(panic) => std::panic::resume_unwind(panic),
                };
                pieces.into_iter().map(join).collect()
            }),
        };
        for (at, made) in made.into_iter().enumerate() {
            out.extend(
                made.map_err(|InvalidElement(in_piece)| InvalidElement(before + at * PIECE + in_piece))?,
            );
        }
        progress(out.len() as u64);
    }
    Ok(out)
}

/// Puts elements into a random order, every order as likely.
pub fn shuffle(elements: &mut [Encoding], prg: &mut Prg) {
    for last in (1..elements.len()).rev() {
        elements.swap(last, prg.below(last as u64 + 1) as usize);
    }
}

/// Sorts elements and removes those that are there twice; returns how many it removed.
pub fn remove_duplicates(elements: &mut Vec<Encoding>) -> u64 {
    let before = elements.len();
    elements.sort_unstable();
    elements.dedup();
    (before - elements.len()) as u64
}

/// The elements that are in both lists, each of them sorted and without duplicates.
pub fn common(one: &[Encoding], other: &[Encoding]) -> Vec<Encoding> {
    let mut rest = other.iter().peekable();
    let is_common = |element: &&Encoding| {
        while rest.next_if(|next| next < element).is_some() {}
        rest.peek() == Some(element)
    };
    one.iter().filter(is_common).copied().collect()
}

/// So many of `all` as a rate that may be told: whole percents, rounded down, and nothing above [`MOST_TOLD`].
///
/// ```
/// use tacit_psi::pair::rate;
/// assert_eq!([rate(1, 3), rate(850, 1000), rate(851, 1000), rate(0, 0)], ["33 %", "85 %", "> 85 %", "0 %"]);
/// ```
pub fn rate(matches: u64, all: u64) -> String {
    let (hundredfold, all) = (u128::from(matches) * 100, u128::from(all.max(1)));
    match hundredfold > u128::from(MOST_TOLD) * all {
        true => format!("> {MOST_TOLD} %"),
        false => format!("{} %", hundredfold / all),
    }
}
