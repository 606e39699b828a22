//! Counts and sums of what two sets have in common against malicious parties: two sorted lists of hashed
//! keys, merged and compared inside one circuit under authenticated garbling.
//!
//! - **Source**: Huang, Evans and Katz, "Private Set Intersection: Are Garbled Circuits Better than Custom
//!   Protocols?" (NDSS 2012), sort–compare–shuffle, without the shuffle, as nothing of single keys is shown;
//!   Batcher's odd-even merge; [`tacit_2pc::authenticated`].
//! - **Realises** the functions of [`Reveal`] against malicious parties, with abort: each side's input is a
//!   set of as many hashed keys as it announced. A set that is none (not ascending, or a key twice) is
//!   refused, which the side that gets the result learns, and nothing else.
//! - **Assumptions**: those of authenticated garbling, and BLAKE3 a random oracle.
//! - **Rounds and bytes**: those of authenticated garbling. 2^12 keys a side take 11 million AND gates for a
//!   count, 1 GB; [`ands`] tells for other sizes.
//!
//! # Steps
//!
//! 1. Sizes and what is revealed are announced; only then both draw the hash's key, so no key's hash is known
//!    before a side is bound to its size.
//! 2. Each side hashes its keys to 128 bits, and sorts them.
//! 3. The circuit checks that each list strictly ascends by the first p bits, merges the lists by these bits,
//!    compares neighbours in all 128, and counts. For a sum, it sends the flags of equal neighbours back the
//!    way that the keys came: 1 AND gate a comparator, where moving the numbers would take one for each of
//!    their bits.
//! 4. The result is opened if both lists ascend and enough keys count; else zeros are, and two bits that say
//!    which it was.
//!
//! # Bits of a key
//!
//! Two different keys of one side with the same first p bits end an honest run before anything depends on
//! them; p is such that it happens in one of 2^41 runs, and different keys of the two sides are equal in 128
//! bits in one of 2^100. One value may stand for two keys only if their hashes are equal in all 128 bits: a
//! cheater finds the first such pair after some 2^64 hash calls ([`tested_at_most`]).

mod program;

pub use program::{KEY_BITS, ROWS_LOG2};

use crate::circuit::{Outcome, Reveal, check_column};
use crate::paxos::{Hello, Learns, Options, Phase, Progress};
use crate::terms::{Terms, Wire, bound_terms};
use crate::{Bounds, Error, Limits, Result, work};
use program::{Aggregation, Layout};
use tacit_2pc::authenticated::buckets::{self, Level};
use tacit_2pc::authenticated::{Demand, Session};
use tacit_2pc::{OutputTo, Owner};
use tacit_crypto::commit::{Commitment, Opening, commit, verify};
use tacit_crypto::{BitVec, Prg, RHO, transcript::Transcript};
use tacit_net::{Channel, LinkModel, Party};
use tacit_ot::Security;
use zeroize::Zeroizing;

/// The protocol's short name.
pub const NAME: &str = "sorted";
const DOMAIN: &str = "tacit-psi sorted v2";
const ANNOUNCED: Wire = Wire { name: NAME, magic: *b"tacit-psi sort-2", most: MAX_ELEMENTS };
/// The most elements a set may have: some 54 million AND gates, forty seconds and 5 GB.
pub const MAX_ELEMENTS: usize = 1 << 14;
/// The most rows with a number that a column may have.
pub const MOST_ROWS: u64 = 1 << ROWS_LOG2;

/// Bits by which lists of these sizes are ordered: two keys of one list have the same in one of 2^41 runs.
fn prefix(sizes: [usize; 2]) -> usize {
    // proof: sorted 5.1
    let pairs: usize = sizes.iter().map(|&size| size * size.saturating_sub(1) / 2).sum();
    RHO + 1 + pairs.max(1).next_power_of_two().ilog2() as usize
}

/// AND gates of a run with so many keys on the two sides, each at most [`MAX_ELEMENTS`]; of a sum or a mean,
/// the first side's column.
pub fn ands(sizes: [usize; 2], reveal: &Reveal<'_>) -> u64 {
    Layout::of(sizes, &reveal.terms(Party::First, Limits::default())).ands()
}

/// Input bits of the two sides.
pub fn input_bits(sizes: [usize; 2], reveal: &Reveal<'_>) -> [u64; 2] {
    let layout = Layout::of(sizes, &reveal.terms(Party::First, Limits::default()));
    [0, 1].map(|side| layout.input_bits(side) as u64)
}

/// The most keys that a peer which announced `announced` can have tested with 2^`log2_calls` calls of the
/// hash: one entry tests two keys if their hashes are equal, and three or more with far more calls.
pub fn tested_at_most(announced: u64, log2_calls: u32) -> u64 {
    // Pairs with equal hashes among so many keys, 2^(2T−1)/2^128; of each further key as many times fewer.
    // proof: sorted 3.5
    let (calls, bits) = (f64::from(log2_calls), KEY_BITS as f64);
    let alike = |keys: f64| (keys * calls - (keys - 1.0) * bits - log2_factorial(keys)).exp2();
    let mut tested = announced as f64;
    for keys in 2..64 {
        let more = alike(f64::from(keys));
        if more < 2f64.powi(-(RHO as i32)) {
            break;
        }
        // The number of such sets is nearly a Poisson variable of this mean.
        tested += (more + 7.5 * more.sqrt() + 28.0).min(announced as f64);
    }
    tested.ceil() as u64
}

fn log2_factorial(n: f64) -> f64 {
    (2..=n as u32).map(|i| f64::from(i).log2()).sum()
}

/// Reveals `reveal` of the intersection of `elements` with the peer's set to whom `options.learns` names, if
/// at least `limits.min_matches` common elements count, else that it is withheld.
///
/// As [`circuit::aggregate`](crate::circuit::aggregate), against malicious peers, with at most
/// [`MAX_ELEMENTS`] elements a side and [`MOST_ROWS`] rows. Errors: the caller's, disagreement, those of the
/// link and of [`Session`]; [`Error::Cheated`] where the peer's input is no set, to the side that learns.
pub fn aggregate<E: AsRef<[u8]>>(
    channel: &mut Channel,
    prg: &mut Prg,
    elements: &[E],
    reveal: Reveal<'_>,
    limits: Limits,
    options: &Options<'_>,
    progress: &mut Progress<'_>,
) -> Result<Outcome> {
    if options.security != Security::Malicious {
        return Err(Error::Usage("a circuit of sorted lists is for malicious peers; name another protocol"));
    }
    if elements.len() > MAX_ELEMENTS {
        return Err(Error::TooManyElements { count: elements.len() as u64, allowed: MAX_ELEMENTS as u64 });
    }
    check_column(&reveal, elements.len())?;
    if let Some(column) = reveal.own()
        && column.total() > MOST_ROWS
    {
        return Err(Error::Usage(
            "a sum against a malicious peer takes 2^20 rows with a number at most; add up rows of one key first",
        ));
    }
    let me = channel.party();
    let clipped = reveal.own().zip(limits.bounds).map(|(column, bounds)| column.clipped(bounds));
    let reveal = clipped.as_ref().map_or(reveal, |column| reveal.with(column));
    if reveal.own().is_some_and(|column| !column.fits(Bounds::WIDEST)) {
        return Err(Error::Usage(
            "the numbers of one key add up to more than 64 bits; give smaller ones, or bounds",
        ));
    }
    let terms = reveal.terms(me, limits);
    // proof: sorted 2.1
    let (hellos, peer_terms) = terms.announce(channel, &ANNOUNCED, elements.len(), options)?;
    let peer_elements = hellos[1].elements;
    if elements.is_empty() || peer_elements == 0 {
        let result = (options.learns != Learns::Peer).then(|| reveal.read(limits.min_matches == 0, 0, 0));
        return Ok(Outcome { result, peer_elements, protocol: NAME });
    }
    let run = Run::new(me, &hellos, &terms);
    let salt = toss(channel, prg, me, &hellos, &bound_terms(me, &terms, &peer_terms))?;
    let keys = run.sorted(elements, &salt, progress)?;
    let input = run.input(&keys, &reveal);
    let opened = run.evaluate(channel, prg, &input, options, progress)?;
    let result = match opened {
        None => None,
        Some(outputs) => match run.layout.read(outputs.iter()) {
            // proof: sorted 2.5
            None => {
                let what = "its keys do not ascend strictly, so they are no set";
                return Err(Error::Cheated { protocol: NAME, what });
            }
            Some((opens, first, second)) => Some(reveal.read(opens, first as u128, u128::from(second))),
        },
    };
    Ok(Outcome { result, peer_elements, protocol: NAME })
}

/// The key of the hash, which neither side chose, once both sizes are announced.
fn toss(
    channel: &mut Channel,
    prg: &mut Prg,
    me: Party,
    [mine, theirs]: &[Hello; 2],
    terms: &[u8],
) -> Result<[u8; 32]> {
    let mut transcript = Transcript::new(DOMAIN);
    transcript.append("session", &channel.session_id().0);
    transcript.append_u64("instance", channel.next_instance());
    let (first, second) = if me == Party::First { (mine, theirs) } else { (theirs, mine) };
    transcript.append("first", &first.bytes);
    transcript.append("second", &second.bytes);
    transcript.append("terms", terms);
    let mut context = [0; 32];
    transcript.clone().challenge_bytes("commitment", &mut context);
    let (mut coin, mut other) = ([0; 32], [0; 32]);
    prg.fill_bytes(&mut coin);
    if me == Party::First {
        let (commitment, opening) = commit(&context, &coin, prg);
        channel.send(&commitment.0)?;
        channel.recv(&mut other)?;
        channel.send(&coin)?;
        channel.send(&opening.0)?;
        transcript.append("coins", &[coin, other].concat());
    } else {
        let (mut commitment, mut opening) = (Commitment([0; 32]), Opening([0; 32]));
        channel.recv(&mut commitment.0)?;
        channel.send(&coin)?;
        channel.recv(&mut other)?;
        channel.recv(&mut opening.0)?;
        // proof: sorted 2.2
        if !verify(&context, &other, &commitment, &opening) {
            let what = "a coin that is not the one committed to";
            return Err(Error::Cheated { protocol: NAME, what });
        }
        transcript.append("coins", &[other, coin].concat());
    }
    let mut salt = [0; 32];
    transcript.challenge_bytes("hash", &mut salt);
    Ok(salt)
}

/// One party's run.
struct Run {
    layout: Layout,
    role: Owner,
    side: usize,
}

impl Run {
    /// The first party garbles.
    fn new(me: Party, [mine, theirs]: &[Hello; 2], terms: &Terms) -> Self {
        let (role, side) = match me {
            Party::First => (Owner::Garbler, 0),
            Party::Second => (Owner::Evaluator, 1),
        };
        let mut sizes = [mine.elements as usize, theirs.elements as usize];
        if side == 1 {
            sizes.swap(0, 1);
        }
        Run { layout: Layout::of(sizes, terms), role, side }
    }

    /// The hashed elements, ascending, each with its place among them.
    fn sorted<E: AsRef<[u8]>>(
        &self,
        elements: &[E],
        salt: &[u8; 32],
        progress: &mut Progress<'_>,
    ) -> Result<Zeroizing<Vec<(u128, u32)>>> {
        let hashed = |element: &E| {
            let mut bytes = Zeroizing::new([0; KEY_BITS / 8]);
            blake3::Hasher::new_keyed(salt).update(element.as_ref()).finalize_xof().fill(&mut bytes[..]);
            u128::from_le_bytes(*bytes)
        };
        let mut keys: Zeroizing<Vec<(u128, u32)>> =
            Zeroizing::new(elements.iter().map(hashed).zip(0..).collect());
        keys.sort_unstable();
        if keys.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(Error::DuplicateElement);
        }
        // proof: sorted 2.3
        let order = |key: u128| key >> (KEY_BITS - self.layout.prefix);
        if keys.windows(2).any(|pair| order(pair[0].0) == order(pair[1].0)) {
            return Err(Error::Indistinct);
        }
        work::done(work::Kind::Hashed, elements.len());
        progress(Phase::Encode, elements.len() as u64, elements.len() as u64);
        Ok(keys)
    }

    /// This side's input bits: all keys, then the numbers of each.
    fn input(&self, keys: &[(u128, u32)], reveal: &Reveal<'_>) -> BitVec {
        let mut bits = BitVec::zeros(self.layout.input_bits(self.side));
        let mut at = 0;
        let mut put = |bit: bool| {
            bits.set(at, bit);
            at += 1;
        };
        for (key, _) in keys {
            (0..KEY_BITS).for_each(|i| put(key >> i & 1 == 1));
        }
        if let Some(column) = reveal.own() {
            for (_, element) in keys {
                let (sum, rows) = column.of(*element as usize);
                self.layout.encode(sum, rows).for_each(&mut put);
            }
        }
        bits
    }

    /// Runs the circuit; the outputs, if this side learns them.
    fn evaluate(
        &self,
        channel: &mut Channel,
        prg: &mut Prg,
        input: &BitVec,
        options: &Options<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<Option<BitVec>> {
        progress(Phase::Setup, 0, 1);
        let ands = self.layout.ands();
        let [garbler_inputs, evaluator_inputs] = [0, 1].map(|side| self.layout.input_bits(side));
        // A long run makes its correlations window by window.
        let window = (ands as usize).min(4 * buckets::WINDOW);
        let demand = Demand { ands: window, garbler_inputs, evaluator_inputs };
        let config = demand.ferret(&LinkModel::LOOPBACK, Level::ALONE);
        let mut session = Session::setup(channel, self.role, options.base, config, prg)?;
        let output_to = match (options.learns, self.role) {
            (Learns::Both, _) => OutputTo::Both,
            (Learns::Me, Owner::Garbler) | (Learns::Peer, Owner::Evaluator) => OutputTo::Garbler,
            (Learns::Me, Owner::Evaluator) | (Learns::Peer, Owner::Garbler) => OutputTo::Evaluator,
        };
        let owners = [Owner::Garbler, Owner::Evaluator];
        let program = Aggregation::new(self.layout);
        let done = |done: u64| progress(Phase::Compare, done.min(ands), ands);
        let outputs = session.run_program(channel, program, &owners, output_to, input, done)?;
        channel.flush()?;
        Ok(outputs)
    }
}

#[cfg(test)]
#[path = "sorted_tests.rs"]
mod tests;
