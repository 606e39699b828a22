//! Random identifiers for the elements of two sets, the same on both sides for an element of both, where neither
//! side learns which of its elements those are.
//!
//! - Source: the oblivious function of [VOLE-PSI](super) (2021/266) twice, once in each direction. What is to be had
//!   of it is the private identity of Buddhavarapu, Knox, Mohassel, Sengupta, Taubeneck and Vlaskin (2020/599),
//!   without the union.
//! - Realises, with the protocol's own security: a random function to 128 bits, of which each side learns the values
//!   on its own set. Both learn the sizes of the sets, and nothing of what is common.
//! - Assumptions: those of [VOLE-PSI](super).
//! - Rounds: the announcements; set-up, the runs of VOLE and the coins of one direction, then of the other; the
//!   confirmations. Bytes: 16 a slot of either store, and two set-ups: for 2^20 against 2^20 elements 45 MB.
//!
//! # Steps
//!
//! 1. Both announce their numbers of elements.
//! 2. VOLE-PSI up to its coins, with the first party as receiver. It gets F2 on its set; the second party has the key
//!    and computes F2 anywhere. No tags are sent.
//! 3. The same with the parties exchanged, bound to the transcript of step 2: the second party gets F1 on its set.
//! 4. Both send a digest of everything that was agreed on, which is the word that all of their checks passed, and end
//!    the run where the other's differs.
//! 5. The identifier of x is a hash of F2(x) and F1(x) under a key from the transcript of step 3.
//!
//! # What a cheater can do at most
//!
//! To have an identifier a party needs the other's function, which it gets at the elements of its own store: at most
//! [`encodable`](super::Parameters::encodable) of them, fixed before it learns anything. So it cannot find out by trying what
//! identifier some element has, not even when it is shown all of the other side's. `docs/proofs/link.md` has the proof.

use super::tag_hash::TagHash;
use super::{Hello, Parameters, Purpose, Run, SHORT, STEP, halves, tags};
use crate::paxos::{Learns, MAX_ELEMENTS, Options, Phase};
use crate::{Error, Result, work};
use subtle::ConstantTimeEq;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, Buffer, Prg, hash, workers};
use tacit_net::{Channel, Party};
use tacit_ot::Security;
use zeroize::Zeroizing;

/// The protocol's short name.
pub const NAME: &str = "link";
const MAGIC: [u8; 16] = *b"tacit-psi link-1";
pub(super) const DOMAIN: &str = "tacit-psi link v1";
/// log2 of the directions, which share the error bound of one run.
const DIRECTIONS_LOG2: u32 = 1;
/// Bytes of an identifier's hash: both functions' values.
const VALUES: usize = 32;
/// Identifiers that are worth a thread.
const NAMED_EACH: usize = 1 << 12;

/// Is told the direction, 0 and then 1, and of it the phase, how much of that is done, and how much there is.
pub type Progress<'a> = dyn FnMut(usize, Phase, u64, u64) + 'a;

/// What a run gave.
pub struct Linked {
    /// Of each element, in their order, its identifier.
    pub identifiers: Buffer,
    /// Elements of the peer's set, as announced.
    pub peer_elements: u64,
    /// What the run is known by, the same on both sides: it tells whose identifiers belong together.
    pub run: [u8; 8],
}

impl core::fmt::Debug for Linked {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Linked {{ identifiers: [secret], peer_elements: {} }}", self.peer_elements)
    }
}

/// What a direction in which `receiver` elements are encoded follows from. The two directions of a run err together
/// as rarely as one run of VOLE-PSI.
pub fn parameters(receiver: usize, sender: usize, security: Security) -> Result<Parameters> {
    Parameters::one_of(receiver, sender, security, DIRECTIONS_LOG2)
}

/// log2 of an upper bound on the probability that an honest run errs or fails by chance: at most -40.
pub fn statistical_error_log2(own: usize, peer: usize, security: Security) -> Result<f64> {
    // proof: link 6.1
    let directions = [parameters(own, peer, security)?, parameters(peer, own, security)?];
    // Values of either function that are equal by chance, and identifiers.
    let all = own as f64 + peer as f64;
    let equal = 3.0 * all * all / 2.0 * 2f64.powi(-128);
    Ok((directions.map(|one| one.statistical_error_log2().exp2()).iter().sum::<f64>() + equal).log2())
}

/// Of how many elements a peer that announced `announced` can have the identifiers if it cheats, with
/// 2^`log2_queries` hash calls, beside `own` of ours.
pub fn named_at_most(announced: u64, own: usize, log2_queries: f64) -> Result<u64> {
    // proof: link 3.3
    if own == 0 || announced == 0 {
        return Ok(announced);
    }
    Ok(parameters(announced as usize, own, Security::Malicious)?.encodable(log2_queries))
}

/// Bytes that a party holds at most beside its elements and what the process takes anyway.
pub fn memory(own: usize, peer: usize, security: Security) -> Result<u64> {
    let directions = [parameters(own, peer, security)?, parameters(peer, own, security)?];
    let summing = directions.iter().map(|direction| direction.summing_memory(own)).max();
    Ok((summing.unwrap_or(0) + 2 * Buffer::bytes(own)) as u64)
}

/// Gives each of `elements` its identifier: the one that it has on the other side too, if it is there.
///
/// Elements as in [`run`](super::run). `options.learns` is [`Learns::Both`]: each side learns identifiers, and
/// neither whose. Errors: the caller's, as of [`run`](super::run); disagreement, the peer's cheating, or the link's.
/// Nothing is returned unless every check passed, on the peer's side too.
pub fn run<E: AsRef<[u8]> + Sync>(
    channel: &mut Channel,
    prg: &mut Prg,
    elements: &[E],
    options: &Options<'_>,
    progress: &mut Progress<'_>,
) -> Result<Linked> {
    if options.security == Security::Malicious && options.base.security() != Security::Malicious {
        return Err(Error::Usage("malicious security needs a malicious base OT"));
    }
    if options.learns != Learns::Both {
        return Err(Error::Usage("identifiers go to both sides"));
    }
    if elements.len() > MAX_ELEMENTS {
        return Err(Error::TooManyElements { count: elements.len() as u64, allowed: MAX_ELEMENTS as u64 });
    }
    // proof: link 2.1
    let mine = Hello::new(MAGIC, elements.len(), options);
    let theirs = mine.exchange(channel, NAME, options)?;
    let peer_elements = theirs.elements;
    if mine.elements == 0 || peer_elements == 0 {
        return alone(channel, prg, elements.len(), [mine, theirs]);
    }
    let mut ways = Ways { channel, prg, elements, options, hellos: [mine, theirs] };
    // proof: link 2.2, 2.3
    let first = ways.direction(Party::First, &[], &mut |phase, done, of| progress(0, phase, done, of))?;
    let before = digest(&first.transcript, "first direction");
    let second =
        ways.direction(Party::Second, &before, &mut |phase, done, of| progress(1, phase, done, of))?;
    confirm(ways.channel, &second.transcript)?;
    let identifiers = identifiers(&second.transcript, [&first.values, &second.values]);
    Ok(Linked { identifiers, peer_elements, run: name_of(&second.transcript) })
}

/// What a side gets where one of them has no elements: nothing is common.
fn alone(channel: &mut Channel, prg: &mut Prg, count: usize, hellos: [Hello; 2]) -> Result<Linked> {
    let first = usize::from(channel.party() != Party::First);
    let mut transcript = Transcript::new(DOMAIN);
    transcript.append("session", &channel.session_id().0);
    transcript.append_u64("instance", channel.next_instance());
    transcript.append("first", &hellos[first].bytes);
    transcript.append("second", &hellos[1 - first].bytes);
    confirm(channel, &transcript)?;
    let mut identifiers = Buffer::zeros(count);
    prg.fill_blocks(&mut identifiers);
    Ok(Linked { identifiers, peer_elements: hellos[1].elements, run: name_of(&transcript) })
}

/// What both directions need.
struct Ways<'w, E> {
    channel: &'w mut Channel,
    prg: &'w mut Prg,
    elements: &'w [E],
    options: &'w Options<'w>,
    /// The announcements, this side's and the peer's.
    hellos: [Hello; 2],
}

/// What a direction gave.
struct Direction {
    /// The sender's function at this side's elements, in their order.
    values: Buffer,
    /// All that both sides sent but stores and what VOLE takes, the coins at its end.
    transcript: Transcript,
}

impl<E: AsRef<[u8]> + Sync> Ways<'_, E> {
    /// The direction in which `receiver` encodes its elements, after what `before` is a digest of.
    fn direction<'r>(
        &'r mut self,
        receiver: Party,
        before: &'r [u8],
        progress: &'r mut super::Progress<'r>,
    ) -> Result<Direction> {
        self.begin(receiver, before, progress)?.values()
    }

    /// The same before its set-up.
    fn begin<'r>(
        &'r mut self,
        receiver: Party,
        before: &'r [u8],
        progress: &'r mut super::Progress<'r>,
    ) -> Result<Run<'r, 'r, E>> {
        let purpose =
            Purpose { domain: DOMAIN, terms: before, second_half: false, runs_log2: DIRECTIONS_LOG2 };
        let Ways { channel, prg, elements, options, hellos } = self;
        let receives = channel.party() == receiver;
        Run::start_for(channel, prg, elements, options, progress, hellos.clone(), receives, purpose)
    }
}

impl<E: AsRef<[u8]> + Sync> Run<'_, '_, E> {
    /// A direction up to its coins: the function's values on either side, and no tags.
    fn values(mut self) -> Result<Direction> {
        let sums = if self.receives { self.receive()? } else { self.send()? };
        let Run { channel, prg, elements, parameters, seeds, progress, .. } = self;
        // proof: link 2.4
        let transcript = seeds.exchange_coins(channel, prg)?;
        let (hash, count) = (TagHash::of(&transcript), elements.len());
        let mut digests = sums.finish();
        progress(Phase::Tags, 0, count as u64);
        let mut bins: Vec<_> = digests.bins_mut().collect();
        let groups = bins.chunks_mut(tags::group(parameters.shape.bins()));
        workers::each(groups, |bins| hash.values(bins));
        work::done(work::Kind::Tagged, count);
        drop(bins);
        digests.drop_values();
        let mut values = Buffer::zeros(count);
        for (of_bin, elements) in digests.bins() {
            for (value, element) in of_bin.iter().zip(elements) {
                values[*element as usize] = *value;
            }
        }
        progress(Phase::Tags, count as u64, count as u64);
        Ok(Direction { values, transcript })
    }
}

/// What follows from a transcript under a label.
fn digest(transcript: &Transcript, label: &str) -> [u8; 32] {
    let mut digest = [0; 32];
    transcript.clone().challenge_bytes(label, &mut digest);
    digest
}

fn name_of(transcript: &Transcript) -> [u8; 8] {
    let mut name = [0; 8];
    name.copy_from_slice(&digest(transcript, "run")[..8]);
    name
}

/// Tells the peer that all checks of this side passed, and learns the same of it.
fn confirm(channel: &mut Channel, transcript: &Transcript) -> Result<()> {
    let [mut mine, mut theirs] = ["first confirms", "second confirms"].map(|label| digest(transcript, label));
    if channel.party() == Party::Second {
        std::mem::swap(&mut mine, &mut theirs);
    }
    channel.send(&mine)?;
    channel.flush()?;
    let mut received = [0; 32];
    channel.recv(&mut received)?;
    // proof: link 2.5
    match bool::from(received.ct_eq(&theirs)) {
        true => Ok(()),
        false => {
            Err(Error::Cheated { protocol: NAME, what: "it does not confirm what both sides agreed on" })
        }
    }
}

/// The identifiers of all elements from both functions' values.
fn identifiers(transcript: &Transcript, [first, second]: [&[Block]; 2]) -> Buffer {
    // proof: link 2.6
    let key = Zeroizing::new(digest(transcript, "identifiers"));
    let mut identifiers = Buffer::zeros(first.len());
    let share = workers::share(first.len(), NAMED_EACH);
    let parts = identifiers.chunks_mut(share).zip(first.chunks(share).zip(second.chunks(share)));
    workers::each(parts, |(identifiers, (first, second))| {
        let mut messages = Zeroizing::new(vec![[0; SHORT]; STEP]);
        let mut hashes = Zeroizing::new(vec![[0; 32]; STEP]);
        let values = first.chunks(STEP).zip(second.chunks(STEP));
        for (identifiers, (first, second)) in identifiers.chunks_mut(STEP).zip(values) {
            let messages = &mut messages[..identifiers.len()];
            let hashes = &mut hashes[..identifiers.len()];
            for (message, (first, second)) in messages.iter_mut().zip(first.iter().zip(second)) {
                message[..16].copy_from_slice(&first.to_bytes());
                message[16..VALUES].copy_from_slice(&second.to_bytes());
            }
            hash::blake3_keyed(&key, VALUES, messages, hashes);
            identifiers.iter_mut().zip(hashes.iter()).for_each(|(to, hash)| *to = halves(hash).0);
        }
    });
    identifiers
}

#[cfg(test)]
#[path = "link_cheats.rs"]
mod cheats;

#[cfg(test)]
#[path = "link_breaks.rs"]
mod breaks;
