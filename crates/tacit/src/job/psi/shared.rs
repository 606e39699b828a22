//! A function of the intersection that nobody sees: shares of it go into a circuit in the same session.

use super::folded;
use super::places::{self, BITS, Place};
use crate::job::{Course, Observer, Phase, eval};
use crate::{Error, Result};
use tacit_2pc::batch::fold::Fold;
use tacit_2pc::circuit::{Builder, Circuit, Int, Integer, Uint, evaluate};
use tacit_2pc::{OutputTo, Owner, Prepared};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::{Channel, Party};
use tacit_ot::{BaseOt, Security};
use tacit_psi::paxos::{self, Learns};
use tacit_psi::vole_psi::circuit::{self, Shares};
use zeroize::Zeroizing;

/// The most keys that a side may have for a function of the caller's own: the circuit of all bins is held in memory,
/// some 90 kB a key.
pub const MAX_SHARED: u64 = 1 << 12;

/// What is computed of the places; both parties must compute the same. Builds a circuit's outputs.
pub type Then<'f> = dyn Fn(&mut Builder, &[Place]) -> Vec<Uint> + 'f;

pub(in crate::job) const PHASES: &[Phase] = &[
    ("setting up", "", 0.05),
    ("encoding", "keys", 0.1),
    ("transferring", "slots", 0.05),
    ("tagging", "keys", 0.05),
    ("comparing", "bins", 0.25),
    ("evaluating", "rows", 0.5),
];

/// As [`Then`], of what may be refused.
pub(super) type TryThen<'f> = dyn Fn(&mut Builder, &[Place]) -> Result<Vec<Uint>> + 'f;

/// How the same is computed for many keys: by a fold of rows side by side.
pub(super) struct Folding<'f> {
    /// For so many places, where the numbers of the sides that are named are zero.
    pub(super) fold: &'f dyn Fn(usize, [bool; 2]) -> Result<Fold>,
    /// The size of the function of a key.
    pub(super) size: folded::Size,
    /// What stands for a key without a number.
    pub(super) absent: Option<i64>,
}

/// The circuit of `then` over so many places, of which each party has a share: its inputs. Of the sides that
/// `silent` names the numbers are zero, whatever they put in.
pub(super) fn build(places: usize, silent: [bool; 2], then: &TryThen<'_>) -> Result<Circuit> {
    let mut b = Builder::new();
    let width = (places * (1 + 2 * BITS)) as u32;
    let sides = if places == 0 { Vec::new() } else { vec![b.input(width), b.input(width)] };
    let mut all = Vec::with_capacity(places);
    for at in 0..places {
        let from = at * (1 + 2 * BITS);
        let part = |range: std::ops::Range<usize>| sides.iter().map(move |side| side.slice(range.clone()));
        let mut opened = |range: std::ops::Range<usize>| {
            let parts: Vec<Uint> = part(range).collect();
            b.xor_bits(&parts[0], &parts[1])
        };
        let (common, first, second) = (
            opened(from..from + 1),
            opened(from + 1..from + 1 + BITS),
            opened(from + 1 + BITS..from + 1 + 2 * BITS),
        );
        let common = common.bits()[0];
        let mut known =
            |number: Uint| Int::from_bits(number.bits().iter().map(|&bit| b.and(bit, common)).collect());
        let mut numbers = [known(first), known(second)];
        for (number, _) in numbers.iter_mut().zip(silent).filter(|(_, silent)| *silent) {
            *number = Int::constant(0, BITS);
        }
        all.push(Place { common, numbers });
    }
    let outputs = then(&mut b, &all)?;
    b.finish(&outputs).map_err(|error| Error::Usage(error.to_string()))
}

/// Our shares as the circuit's input.
fn input(shares: &Shares, me: Party) -> BitVec {
    let mut bits = BitVec::zeros(shares.bins() * (1 + 2 * BITS));
    // Who holds the table is settled by the sizes; the circuit's order of numbers is the parties'.
    let holds = shares.elements.is_some();
    let table_is_first = holds == (me == Party::First);
    for bin in 0..shares.bins() {
        let [member, table, other] = shares.inputs(bin, BITS);
        let [first, second] = if table_is_first { [table, other] } else { [other, table] };
        let from = bin * (1 + 2 * BITS);
        let all = member.iter().chain(first.iter()).chain(second.iter());
        all.enumerate().for_each(|(i, bit)| bits.set(from + i, bit));
    }
    bits
}

/// Shares the intersection of `elements`, each with its one of `numbers` if we give some, and opens what
/// `then` makes of it to whom `options.learns` names. Returns the outputs if that is us, and the peer's
/// distinct keys. The numbers of a side that gets the outputs count `to_owner` alone.
///
/// One garbled circuit computes it, or `folding` where there is one and that costs less: the sizes of both sets and
/// the function decide.
///
/// Against parties that keep to the protocol. Errors as [`circuit::shares`] and [`eval::Job::run`], and where
/// the two sides' functions differ.
pub(super) fn run<E: AsRef<[u8]> + Sync>(
    channels: &mut [Channel],
    base: &(dyn BaseOt + Send + Sync),
    elements: &[E],
    numbers: Option<&[i64]>,
    (then, folding, to_owner): (&TryThen<'_>, Option<Folding<'_>>, bool),
    options: &paxos::Options<'_>,
    observer: &dyn Observer,
) -> Result<(Option<Vec<BitVec>>, u64)> {
    let course = Course::begin(PHASES, channels, 0, observer);
    let channel = crate::job::first(channels)?;
    let me = channel.party();
    let absent = folding.as_ref().and_then(|folding| folding.absent);
    let block = |&number: &i64| places::block(number, absent);
    let blocks: Option<Zeroizing<Vec<Block>>> =
        numbers.map(|numbers| Zeroizing::new(numbers.iter().map(block).collect()));
    let mut told = |phase: paxos::Phase, done, total| course.at(phase as usize, done, total);
    let both = paxos::Options { learns: Learns::Both, ..*options };
    let shares = circuit::shares(
        channel,
        &mut Prg::from_os(),
        elements,
        blocks.as_deref().map(Vec::as_slice),
        &both,
        &mut told,
    )?;
    let learns_here = options.learns != Learns::Peer;
    let gets = [Party::First, Party::Second]
        .map(|side| options.learns != if side == me { Learns::Peer } else { Learns::Me });
    let silent = gets.map(|gets| gets && !to_owner);
    if shares.bins() == 0 {
        // One of the sets is empty, which both sides know: so is the intersection.
        let outputs = evaluate(&build(0, silent, then)?, &[]);
        return Ok((learns_here.then_some(outputs), shares.peer_elements));
    }
    drop(blocks);
    let (role, output_to) = roles(me, options.learns);
    let smaller = shares.peer_elements.min(elements.len() as u64);
    if let Some(folding) = folding.filter(|folding| !folded::garbled(smaller, folding.size)) {
        let fold = (folding.fold)(shares.bins(), silent)?;
        compare(channel, fold.digest())?;
        let mut told = |done, total| course.at(PHASES.len() - 1, done, total);
        let [first, second] = folded::of_parties(&shares, me);
        let share = |place: usize, word: usize| match word {
            0 => folded::value(first, place) as u64,
            1 => folded::value(second, place) as u64,
            _ => {
                let there =
                    [first, second].map(|values| (folded::value(values, place) >> places::THERE) as u64 & 1);
                u64::from(shares.members.get(place)) | there[0] << 1 | there[1] << 2
            }
        };
        let outputs = folded::run(channel, base, &fold, &share, (role, output_to), &mut told)?;
        return Ok((outputs, shares.peer_elements));
    }
    let circuit = build(shares.bins(), silent, then)?;
    compare(channel, circuit.digest())?;
    let prepared = prepared(circuit)?;
    let job = eval::Job {
        function: &prepared,
        role,
        output_to,
        security: Security::SemiHonest,
        options: eval::Options::default(),
    };
    course.at(PHASES.len() - 1, 0, 1);
    let rows = job.run_marked(channel, 1, base, &[vec![input(&shares, me)]], &mut |_| ())?;
    Ok((rows.and_then(|rows| rows.into_iter().next()), shares.peer_elements))
}

/// Our role in what is computed on shares, and who gets what is opened.
pub(in crate::job) fn roles(me: Party, learns: Learns) -> (Owner, OutputTo) {
    let role = if me == Party::First { Owner::Garbler } else { Owner::Evaluator };
    let output_to = match (learns, role) {
        (Learns::Both, _) => OutputTo::Both,
        (Learns::Me, Owner::Garbler) | (Learns::Peer, Owner::Evaluator) => OutputTo::Garbler,
        _ => OutputTo::Evaluator,
    };
    (role, output_to)
}

/// The circuit of [`build`] with at least one place, made ready: the first half of its inputs is the garbler's.
pub(super) fn prepared(circuit: Circuit) -> Result<Prepared> {
    Ok(Prepared::new(circuit, vec![Owner::Garbler, Owner::Evaluator])?)
}

/// An error unless the peer computes what we do.
pub(in crate::job) fn compare(channel: &mut Channel, ours: [u8; 32]) -> Result<()> {
    channel.send(&ours)?;
    channel.flush()?;
    let mut theirs = [0; 32];
    channel.recv(&mut theirs)?;
    match ours == theirs {
        true => Ok(()),
        false => Err(Error::Peer(
            "the two sides compute different functions of the intersection; start both with the same".into(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A side that gets the outputs puts numbers in all the same: they add nothing. (One that deviates could change its
    /// shares of the other's instead; the job is for peers that do not.)
    #[test]
    fn numbers_of_a_silent_side_are_zero_in_the_circuit() {
        let sum = |b: &mut Builder, places: &[Place]| {
            let numbers: Vec<Int> = places.iter().flat_map(|at| at.numbers.clone()).collect();
            Ok(vec![b.sum(&numbers, BITS).as_uint()])
        };
        let number =
            |bits: &BitVec| bits.iter().enumerate().map(|(at, bit)| u64::from(bit) << at).sum::<u64>();
        for (silent, expected) in
            [([false, false], 7 + 16), ([true, false], 16), ([false, true], 7), ([true, true], 0)]
        {
            let circuit = build(1, silent, &sum).unwrap();
            let mut input = BitVec::zeros(1 + 2 * BITS);
            [0, 1, 2, 3, 1 + BITS + 4].into_iter().for_each(|at| input.set(at, true));
            let outputs = evaluate(&circuit, &[input, BitVec::zeros(1 + 2 * BITS)]);
            assert_eq!(number(&outputs[0]), expected, "{silent:?}");
        }
    }
}
