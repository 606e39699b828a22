//! A small set against a large one that publishes a file of tags once: private set intersection by an
//! oblivious function.
//!
//! - Source: the folklore protocol from an oblivious pseudorandom function (Hazay–Lindell, TCC 2008; for sets
//!   of unequal sizes Kiss et al., PoPETs 2017, and Kales et al., USENIX Security 2019), on RFC 9497's
//!   verifiable function ([`rfc9497`]).
//! - Realises: private set intersection with abort, the result to the client, who holds the small set. The
//!   server learns how many queries the client makes, the client the size of the server's set and which of
//!   its own elements are in it.
//! - Assumptions: one-more gap Diffie–Hellman in Ristretto, SHA-512 and BLAKE3 as random oracles; it falls to
//!   a quantum computer.
//! - Rounds: one, after both have said which publication they mean, and one for every two chunks of [`CHUNK`]
//!   queries.
//! - Bytes: 64 a query, 64 a chunk, about 100 a run; once for each publication the [file of tags](tags).
//!
//! # Steps
//!
//! Before: the server draws a key k and publishes the tags of F(k, x) for all x of its set, sorted, with its
//! public key.
//!
//! 1. Both name the publication by its digest; the client says how many queries it makes.
//! 2. The server [counts](private) them, on the disk, or refuses.
//! 3. The client sends its blinded elements chunk by chunk, the server evaluates them, with one proof a
//!    chunk.
//! 4. The client, once all proofs have passed and the session is over, looks up its tags in the file, all of
//!    which it has read before step 1.
//!
//! # What a cheater can do at most
//!
//! - A client may query what it likes, but no more than the terms of the publication allow it: it learns of
//!   one element a query whether it is in the server's set, and no hash that it computes itself takes the
//!   place of a query.
//! - A server may publish what it likes, and so choose another set; if it knows no preimages of its tags, a
//!   smaller one. It cannot use another key for a client, or for a query, than the one that the file names:
//!   the proofs fail. It could give each client a file of its own, made with a key for that client: clients
//!   that compare digests notice.
//! - A server that is asked twice for one element does not notice.
//!
//! What either side checks is public (encodings, counts, a proof on elements that both have), so that whether
//! a check passes says nothing of the server's key; the client's blinds are fresh in every run. Blinding,
//! evaluation and hashing take constant time. The look-up reads the file at places that depend on the
//! client's tags, and what stands there is the server's choice: so it comes when the server waits for nothing
//! more ([`tags`]).
//!
//! # Statistical security
//!
//! [`tags`]: over the key's whole lifetime a wrong match has probability 2^-40 at most. Two elements of the
//! set with one tag do no harm.
//!
//! # Every publication takes a new key
//!
//! Under one key, the difference between two files shows how many elements came and went, and a client that
//! once queried an element sees in every later file whether it is still there. So there is no way to publish
//! twice with one key.

pub mod private;
pub mod rfc9497;
pub mod tags;

use crate::{Error, Result, work};
use private::{Client, Private};
use rfc9497::{Evaluated, Mode, PROOF_BYTES, Suite};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tacit_crypto::Prg;
use tacit_crypto::group::{Encoding, POINT_BYTES};
use tacit_net::Channel;
use tags::Publication;
use zeroize::Zeroizing;

/// The protocol's short name.
pub const NAME: &str = "oprf";
/// Queries that one message, and one proof, carries.
pub const CHUNK: usize = 256;
/// Chunks on their way at a time, so that both parties compute.
const WINDOW: usize = 2;
/// What a publisher's private file begins with.
const PRIVATE_MAGIC: [u8; 8] = *b"tacitprf";
const MAGIC: [u8; 16] = *b"tacit-psi oprf 2";
const HELLO: usize = 16 + 32 + 8;
/// The server's verdicts on a number of queries: yes, more than the client has left, and no.
const ANSWERED: u8 = 0;
const TOO_MANY: u8 = 1;
const UNANSWERED: u8 = 2;

/// Is told how many queries are done.
pub type Progress<'a> = dyn FnMut(u64) + 'a;

/// What a party says first: the protocol, the publication, and how many queries the client makes (the server
/// says 0).
fn greet(channel: &mut Channel, digest: &[u8; 32], queries: u64) -> Result<u64> {
    let mut hello = [0; HELLO];
    hello[..16].copy_from_slice(&MAGIC);
    hello[16..48].copy_from_slice(digest);
    hello[48..].copy_from_slice(&queries.to_le_bytes());
    channel.send(&hello)?;
    let mut theirs = [0; HELLO];
    channel.recv(&mut theirs)?;
    let disagreement = |what| Err(Error::Disagreement { protocol: NAME, what });
    if theirs[..16] != MAGIC {
        return disagreement("the other side runs another protocol or version");
    }
    // proof: tags 2.2
    if theirs[16..48] != *digest {
        return disagreement("the file of tags is not the server's current publication; fetch it again");
    }
    let (number, _) = theirs[48..].as_chunks::<8>();
    Ok(u64::from_le_bytes(number[0]))
}

/// The large side: answers the queries of one client over `channel`; returns how many there were.
///
/// `client` names the peer, whom the channel has authenticated; it may make `most` queries here, whatever the
/// terms leave it. Several clients can be served at once, each on a thread: `private` is locked while queries
/// are counted, and not while they are answered. The client is told how many it has left of its own and, where
/// these are not answered, that they are not: nothing else of what others have asked. Errors:
/// [`Error::TooManyQueries`] when `most` or what the terms leave the client do not allow them,
/// [`Error::Outlived`] when the key's lifetime does not; disagreement on the publication; the peer's or the
/// link's.
pub fn serve(
    channel: &mut Channel,
    prg: &mut Prg,
    private: &Mutex<Private>,
    client: &Client,
    most: u64,
    progress: &mut Progress<'_>,
) -> Result<u64> {
    // Counts on the disk and in memory are changed together or not at all.
    let locked = || private.lock().unwrap_or_else(PoisonError::into_inner);
    let (digest, key) = {
        let private = locked();
        (*private.digest(), private.key().clone())
    };
    let queries = greet(channel, &digest, 0)?;
    // Step 2, before anything is answered.
    // proof: tags 2.3
    let (left, charged) = {
        let mut private = locked();
        let left = private.left(client).min(most);
        let refused = Error::TooManyQueries { asked: queries, left };
        (left, if queries > left { Err(refused) } else { private.charge(client, queries) })
    };
    let verdict = match charged {
        Ok(()) => ANSWERED,
        Err(Error::TooManyQueries { .. }) => TOO_MANY,
        Err(_) => UNANSWERED,
    };
    channel.send(&[verdict])?;
    channel.send_u64(left)?;
    channel.flush()?;
    charged?;
    let suite = Suite::new(Mode::Verifiable);
    let mut done = 0;
    while done < queries {
        let now = (queries - done).min(CHUNK as u64);
        let mut blinded = vec![[0; POINT_BYTES]; now as usize];
        channel.recv(blinded.as_flattened_mut())?;
        let evaluated = suite.evaluate(&key, &blinded, b"", prg)?;
        work::done(work::Kind::Answered, blinded.len());
        channel.send(evaluated.elements.as_flattened())?;
        channel.send(&evaluated.proof)?;
        channel.flush()?;
        done += now;
        progress(done);
    }
    Ok(queries)
}

/// The small side: the tags of `elements`, in their order, for a look-up in the file of tags.
///
/// `publication` and `digest` are the file's, all of which has been read
/// ([`TagFile::checked`](tags::TagFile::checked)); the tags are looked up only when the session is over. Nothing
/// is returned before every proof has passed. Errors: [`Error::TooManyQueries`] and [`Error::Outlived`] when the
/// server refuses; disagreement on the publication; the peer's cheating, or the link's.
pub fn query<E: AsRef<[u8]>>(
    channel: &mut Channel,
    prg: &mut Prg,
    publication: &Publication,
    digest: &[u8; 32],
    elements: &[E],
    progress: &mut Progress<'_>,
) -> Result<Zeroizing<Vec<u128>>> {
    let asked = elements.len() as u64;
    if greet(channel, digest, asked)? != 0 {
        return Err(Error::Disagreement { protocol: NAME, what: "both sides query, and none serves" });
    }
    let mut verdict = [0];
    channel.recv(&mut verdict)?;
    let left = channel.recv_u64()?;
    match verdict[0] {
        ANSWERED => {}
        TOO_MANY => return Err(Error::TooManyQueries { asked, left }),
        UNANSWERED => return Err(Error::Outlived { asked }),
        _ => return Err(Error::Cheated { protocol: NAME, what: "its verdict is neither yes nor no" }),
    }
    let suite = Suite::new(Mode::Verifiable);
    let mut tags = Zeroizing::new(Vec::with_capacity(elements.len()));
    let mut waiting = VecDeque::with_capacity(WINDOW);
    let mut chunks = elements.chunks(CHUNK);
    loop {
        while waiting.len() < WINDOW
            && let Some(chunk) = chunks.next()
        {
            let inputs: Vec<_> = chunk.iter().map(|element| publication.input(element.as_ref())).collect();
            // proof: tags 2.4
            let blinded = suite.blind(&inputs, prg)?;
            work::done(work::Kind::Asked, inputs.len());
            channel.send(blinded.elements().as_flattened())?;
            channel.flush()?;
            waiting.push_back((inputs, blinded));
        }
        // proof: tags 2.7
        let Some((inputs, blinded)) = waiting.pop_front() else { return Ok(tags) };
        let mut elements: Vec<Encoding> = vec![[0; POINT_BYTES]; inputs.len()];
        let mut proof = [0; PROOF_BYTES];
        channel.recv(elements.as_flattened_mut())?;
        channel.recv(&mut proof)?;
        let evaluated = Evaluated { elements, proof };
        let outputs = suite.finalize(&inputs, &blinded, &evaluated, &publication.public, b"")?;
        tags.extend_from_slice(&publication.tags(&Zeroizing::new(outputs)));
        work::done(work::Kind::Tagged, inputs.len());
        progress(tags.len() as u64);
    }
}

/// Indices of the flags that are set: what [`TagFile::contains`](tags::TagFile::contains) says, as matches.
pub fn matches(found: &[bool]) -> Vec<u32> {
    let marks: Zeroizing<Vec<u8>> = Zeroizing::new(found.iter().map(|found| u8::from(*found)).collect());
    crate::matching::indices(&marks)
}

#[cfg(test)]
mod cheats;
