//! Circuit PSI: counts, sums and shares of what two sets have in common, and nothing of which elements
//! those are.
//!
//! - Source: Rindal and Schoppmann, "VOLE-PSI" (2021/266), section 5 (the oblivious function becomes a
//!   programmable one by a second store); cuckoo hashing against simple hashing as in Pinkas, Schneider,
//!   Tkachenko and Yanai (2019/241); equality by Couteau's protocol (`equality`); products of bits and
//!   words by correlated OT; Yao's protocol for what is opened.
//! - Realises, against parties that keep to the protocol, one of the functions of [`Reveal`], or [`shares`].
//!   Both parties learn the sizes of the sets, which function runs, and the least number of matches.
//! - Assumptions: those of [VOLE-PSI](super), of [Ferret](tacit_ot::silent::ferret) or IKNP by the number of
//!   bins, and of half-gates.
//! - Rounds: those of VOLE-PSI but the tags, the hints, the set-up of OT, one there and back a level of
//!   equality, one for the sum, and Yao's. Bytes for 2^16 against 2^16 elements: 16 MB.
//!
//! # Steps
//!
//! One side holds the *table*: the owner of the column, or of the smaller set.
//!
//! 1. The table's holder places each of its elements y in one of β [cuckoo bins](crate::cuckoo), by one of
//!    three hash functions. The other side has each of its elements x in all of its three bins.
//! 2. VOLE-PSI's oblivious function Ho: the table's holder gets Ho(y, j) for the function j that placed y,
//!    the other side knows the key and computes Ho(x, j) for all three j.
//! 3. The other side draws a random target for each bin and sends a store, the *hint*, that gives (x, j)
//!    the value Ho(x, j) ⊕ target of the bin. By it the table's holder gets for each bin the target if y is
//!    common, else a random string; an empty bin gets a random string at once.
//! 4. Private equality of the first ℓ bits gives a bit e_S ⊕ e_R a bin: whether its element is
//!    common.
//! 5. For a sum, the table's holder knows each bin's number p. By one correlated OT a bin, on the other
//!    side's share of the bit, both get additive shares of e·p modulo 2^128, which they add up at home.
//! 6. A garbled circuit adds the two shares, compares the number of matches with the least number, and opens
//!    what was asked for, or zeros with the word that they are withheld.
//!
//! [`shares`] ends after step 4, and can share the other side's numbers too: by a second store with the same
//! keys, (x, j) gets the second half of Ho(x, j) ⊕ the number ⊕ a random block of the bin.
//!
//! # Statistical security
//!
//! [`failure_log2`] adds up: no places in the table, either store without solution, and strings that are
//! equal by chance, of which there are β. At most 2^-40; what errs is one run's result, or the run ends
//! with an error.
//!
//! # What the result tells
//!
//! A sum or a count is exact, so it tells what any exact number tells. Who pads its set with elements that
//! it knows the other side to have gets over the least number with one unknown element; who runs twice,
//! with one element more, gets this element's number by the difference. The least number of matches counts
//! elements that add something; it protects against neither. Limit whom you run with and how often.

mod cost;

use super::runs::Masking;
use super::{Hello, Purpose, Run, SHORT, STEP, Seeds, TagHash, Whole, halves};
use crate::cuckoo::{self, FUNCTIONS, Table, places};
use crate::equality;
use crate::okvs::clustered::Shape;
use crate::okvs::{Store, has_duplicates};
use crate::paxos::{Learns, Options, Phase, Progress};
use crate::terms::{Kind, Terms, Wire, bound_terms, peer_of};
use crate::{Bounds, Error, Limits, Result, work};
use cost::ferret;
pub use cost::{Traffic, traffic};
use tacit_2pc::circuit::{Bit, Builder, Uint};
use tacit_2pc::semi_honest;
use tacit_2pc::{OutputTo, Owner, Prepared};
use tacit_crypto::{BitVec, Block, Buffer, Prg, RHO, gf128, hash};
use tacit_net::{Channel, Party};
use tacit_ot::VoleSender;
use tacit_ot::convert::CotToRot;
use tacit_ot::extension::{IknpReceiver, IknpSender};
use tacit_ot::silent::ferret::setup;
use tacit_ot::{BaseOt, CotReceiver, CotSender, RotReceiver, RotSender, Security};
use zeroize::Zeroizing;

/// The protocol's short name.
pub const NAME: &str = "circuit";
const MAGIC: [u8; 16] = *b"tacit-psi circ-9";
pub(super) const DOMAIN: &str = "tacit-psi circuit v5";
/// The most elements a set may have.
pub const MAX_ELEMENTS: usize = 1 << 22;
/// The most rows that a column may add up: with numbers of 64 bits their sum is below 2^95.
pub const MAX_ROWS: u64 = 1 << 31;
/// Bits of a sum, its sign included; above them a word counts elements.
const SUM_BITS: u32 = 96;
/// Bins whose products are made at a time.
const PIECE: usize = 1 << 15;
const WIRE: Wire = Wire { name: NAME, magic: MAGIC, most: MAX_ELEMENTS };

/// A column of numbers to add up: what each element of the set adds.
///
/// Every row of an element adds its number. A null adds nothing and is not counted.
pub struct Column {
    sums: Zeroizing<Vec<i128>>,
    rows: Zeroizing<Vec<u64>>,
    total: u64,
}

impl Column {
    /// A column of no rows for a set of `elements`.
    pub fn new(elements: usize) -> Self {
        Column { sums: Zeroizing::new(vec![0; elements]), rows: Zeroizing::new(vec![0; elements]), total: 0 }
    }

    /// Adds a row of element `element`, an index into the set. [`Error::Usage`] when there is no such
    /// element, [`Error::TooManyElements`] past [`MAX_ROWS`].
    pub fn add(&mut self, element: u32, number: Option<i64>) -> Result<()> {
        let at = element as usize;
        let (Some(sum), Some(rows)) = (self.sums.get_mut(at), self.rows.get_mut(at)) else {
            return Err(Error::Usage("a number is of an element that the set does not have"));
        };
        let Some(number) = number else { return Ok(()) };
        if self.total == MAX_ROWS {
            return Err(Error::TooManyElements { count: MAX_ROWS + 1, allowed: MAX_ROWS });
        }
        self.total += 1;
        *sum += i128::from(number);
        *rows += 1;
        Ok(())
    }

    /// The column with each element's sum within `bounds`, its rows counted as one.
    pub(crate) fn clipped(&self, bounds: Bounds) -> Column {
        let mut clipped = Column::new(self.sums.len());
        for ((sum, rows), (&all, &of)) in
            clipped.sums.iter_mut().zip(clipped.rows.iter_mut()).zip(self.sums.iter().zip(self.rows.iter()))
        {
            if of > 0 {
                (*sum, *rows) = (bounds.clip(all).into(), 1);
                clipped.total += 1;
            }
        }
        clipped
    }

    /// Whether each element's sum is within `bounds`.
    pub(crate) fn fits(&self, bounds: Bounds) -> bool {
        self.sums.iter().all(|&sum| i128::from(bounds.clip(sum)) == sum)
    }

    /// Rows with a number.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The sum and the number of the rows of element `at`.
    pub(crate) fn of(&self, at: usize) -> (i128, u64) {
        (self.sums[at], self.rows[at])
    }

    /// What element `at` adds to the words of a query: its sum and whether it adds anything, its rows.
    fn words(&self, at: usize) -> [u128; 2] {
        let counted = (self.rows[at] > 0) as u128;
        [(self.sums[at] as u128).wrapping_add(counted << SUM_BITS), u128::from(self.rows[at])]
    }
}

/// Whose column is added up.
#[derive(Clone, Copy)]
pub enum Of<'c> {
    /// This side's.
    Mine(&'c Column),
    /// The peer's.
    Peers,
}

/// What is revealed of the intersection.
#[derive(Clone, Copy)]
pub enum Reveal<'c> {
    /// The number of common elements.
    Count,
    /// The sum of a column over its owner's rows whose element is common.
    Sum(Of<'c>),
    /// The sum of a column, and the number of rows that added to it.
    Mean(Of<'c>),
}

impl<'c> Reveal<'c> {
    /// The same of another column of this side's.
    pub(crate) fn with(self, column: &'c Column) -> Self {
        let of = Of::Mine(column);
        match self {
            Reveal::Count => self,
            Reveal::Sum(_) => Reveal::Sum(of),
            Reveal::Mean(_) => Reveal::Mean(of),
        }
    }
}

impl Reveal<'_> {
    fn of(&self) -> Option<&Of<'_>> {
        match self {
            Reveal::Count => None,
            Reveal::Sum(of) | Reveal::Mean(of) => Some(of),
        }
    }

    fn words(&self) -> usize {
        1 + matches!(self, Reveal::Mean(_)) as usize
    }

    /// The column, if it is this side's.
    pub(crate) fn own(&self) -> Option<&Column> {
        match self.of() {
            Some(Of::Mine(column)) => Some(column),
            _ => None,
        }
    }

    pub(crate) fn terms(&self, me: Party, limits: Limits) -> Terms {
        let kind = match self {
            Reveal::Count => Kind::Count,
            Reveal::Sum(_) => Kind::Sum,
            Reveal::Mean(_) => Kind::Mean,
        };
        let owner = self.of().map(|of| if matches!(of, Of::Mine(_)) { me } else { peer_of(me) });
        Terms { kind, owner, gives: false, limits }
    }
}

/// A result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Aggregate {
    /// Fewer matches than the least number; nothing else is known.
    Withheld,
    /// Common elements.
    Count(u64),
    /// The sum.
    Sum(i128),
    /// The sum and the rows that it adds up: both are known, not only their quotient.
    Mean {
        /// The sum.
        sum: i128,
        /// The rows.
        rows: u64,
    },
}

impl core::fmt::Debug for Aggregate {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Aggregate::Withheld => "Withheld",
            Aggregate::Count(_) => "Count([secret])",
            Aggregate::Sum(_) => "Sum([secret])",
            Aggregate::Mean { .. } => "Mean([secret])",
        })
    }
}

/// What a run of [`aggregate`] gave.
pub struct Outcome {
    /// The result; `None` if only the peer learns it.
    pub result: Option<Aggregate>,
    /// Elements of the peer's set, as announced.
    pub peer_elements: u64,
    /// The short name of the protocol that ran.
    pub protocol: &'static str,
}

/// Shares of the intersection by bins, for a circuit that goes on from here.
///
/// Everything is shared by XOR: the circuit adds both sides' shares bit by bit, which is free.
pub struct Shares {
    /// Of each bin: whether the element in it is common.
    pub members: BitVec,
    /// Of each bin: the number that the table's holder gave for its element; 0 for an empty bin.
    pub table_values: Zeroizing<Vec<Block>>,
    /// Of each bin: the number that the other side gave for the element, if it is common; else noise, so a
    /// circuit must take it together with `members`. Empty if the other side gave none.
    pub other_values: Zeroizing<Vec<Block>>,
    /// This side's element in each bin, an index into its set, if it holds the table. The peer does not
    /// know it.
    pub elements: Option<Zeroizing<Vec<Option<u32>>>>,
    /// Elements of the peer's set, as announced.
    pub peer_elements: u64,
}

impl Shares {
    /// Bins.
    pub fn bins(&self) -> usize {
        self.members.len()
    }

    /// This side's inputs for one bin of a circuit: the share of membership, and the lowest `bits` bits of
    /// the shares of the table's and of the other side's numbers (zeros where there are none).
    pub fn inputs(&self, bin: usize, bits: usize) -> [BitVec; 3] {
        let part = |values: &[Block]| {
            let value = values.get(bin).copied().unwrap_or(Block::ZERO);
            BitVec::from_bytes(&value.to_bytes(), bits)
        };
        let members = BitVec::from_bools(&[self.members.get(bin)]);
        [members, part(&self.table_values), part(&self.other_values)]
    }
}

/// Bits of the strings that are compared for `bins` bins: 43 for those that are equal by chance, and whole
/// nibbles.
pub(crate) fn compared_bits(bins: usize) -> u32 {
    (RHO as u32 + 3 + bins.max(1).next_power_of_two().ilog2()).next_multiple_of(4)
}

/// log2 of a bound on the probability that a run with `table` elements in the table against `other` errs or
/// fails by chance.
pub fn failure_log2(table: usize, other: usize) -> Result<f64> {
    let bins = cuckoo::bins(table);
    let events = [
        cuckoo::failure_log2(table, bins),
        Shape::for_keys(table)?.failure_log2(),
        Shape::for_keys(FUNCTIONS * other)?.failure_log2(),
        (bins as f64).log2() - f64::from(compared_bits(bins)),
    ];
    Ok(events.iter().map(|event| event.exp2()).sum::<f64>().log2())
}

/// Reveals `reveal` of the intersection of `elements` with the peer's set to whom `options.learns` names,
/// if at least `limits.min_matches` common elements count, else that it is withheld.
///
/// Elements as in [`run`](super::run), at most [`MAX_ELEMENTS`]. For a sum an element counts if it adds a
/// number. The peer says the same, and the converse of whose column it is and who learns. Errors: the
/// caller's ([`Error::Usage`] unless `options.security` is semi-honest or where the column is of another
/// set; as of [`run`](super::run)), disagreement, and the link's.
pub fn aggregate<E: AsRef<[u8]> + Sync>(
    channel: &mut Channel,
    prg: &mut Prg,
    elements: &[E],
    reveal: Reveal<'_>,
    limits: Limits,
    options: &Options<'_>,
    progress: &mut Progress<'_>,
) -> Result<Outcome> {
    check(elements.len(), options)?;
    check_column(&reveal, elements.len())?;
    let me = channel.party();
    let clipped = reveal.own().zip(limits.bounds).map(|(column, bounds)| column.clipped(bounds));
    let reveal = clipped.as_ref().map_or(reveal, |column| reveal.with(column));
    let terms = reveal.terms(me, limits);
    let min_matches = limits.min_matches;
    let owner = terms.owner;
    let (hellos, peer_terms) = terms.announce(channel, &WIRE, elements.len(), options)?;
    let peer_elements = hellos[1].elements;
    if elements.is_empty() || peer_elements == 0 {
        let opened = min_matches == 0;
        let result = (options.learns != Learns::Peer).then(|| reveal.read(opened, 0, 0));
        return Ok(Outcome { result, peer_elements, protocol: super::NAME });
    }
    let holds_table = owner.map_or_else(|| has_smaller(me, &hellos), |owner| owner == me);
    let bound = bound_terms(me, &terms, &peer_terms);
    let purpose = Purpose { domain: DOMAIN, terms: &bound, second_half: false, runs_log2: 0 };
    let run = Run::start_for(channel, prg, elements, options, progress, hellos, holds_table, purpose)?;
    let words = reveal.words();
    let learned = if holds_table {
        let mut held = hold_table(run, false)?;
        let mut numbers = Zeroizing::new(Vec::with_capacity(held.members.len() * words));
        for element in held.elements.iter() {
            let of = match (element, reveal.of()) {
                (Some(element), Some(Of::Mine(column))) => column.words(*element as usize),
                (Some(_), _) => [1 << SUM_BITS, 0],
                (None, _) => [0; 2],
            };
            numbers.extend_from_slice(&of[..words]);
        }
        let rot = &mut CotToRot::new(&mut *held.cot);
        let totals = multiply_known(held.channel, rot, &numbers, words, &held.members)?;
        let inputs = [totals.iter().map(|total| bits_of(*total)).collect()];
        let to = match options.learns {
            Learns::Me => OutputTo::Garbler,
            Learns::Peer => OutputTo::Evaluator,
            Learns::Both => OutputTo::Both,
        };
        let function = opening(&reveal, min_matches)?;
        let opened = semi_honest::garble(held.channel, &mut *held.cot, &function, &inputs, to, held.prg)?;
        (held.progress)(Phase::Compare, 1, 1);
        opened
    } else {
        let mut fetched = offer(run, None)?;
        let rot = &mut CotToRot::new(&mut *fetched.cot);
        let totals = multiply_chosen(fetched.channel, rot, words, &fetched.members)?;
        let inputs = [totals.iter().map(|total| bits_of(*total)).collect()];
        let to = match options.learns {
            Learns::Me => OutputTo::Evaluator,
            Learns::Peer => OutputTo::Garbler,
            Learns::Both => OutputTo::Both,
        };
        let function = opening(&reveal, min_matches)?;
        let opened = semi_honest::evaluate(fetched.channel, &mut *fetched.cot, &function, &inputs, to)?;
        (fetched.progress)(Phase::Compare, 1, 1);
        opened
    };
    let result = learned.and_then(|rows| rows.into_iter().next()).map(|outputs| {
        let number = |i: usize| outputs.get(i).map_or(0, number_of);
        reveal.read(number(0) == 1, number(1), number(2))
    });
    Ok(Outcome { result, peer_elements, protocol: super::NAME })
}

/// An error unless the column, if this side has it, is of so many elements.
pub(crate) fn check_column(reveal: &Reveal<'_>, elements: usize) -> Result<()> {
    match reveal.own() {
        Some(column) if column.sums.len() != elements => {
            Err(Error::Usage("the column to add up has other elements than the set"))
        }
        _ => Ok(()),
    }
}

/// Shares the intersection of `elements` with the peer's set, bin by bin, with `values`, one an element, or
/// none: for the circuit to use where an element is common.
///
/// The owner of the smaller set holds the table, the first party if they are equal. `options.learns` is
/// [`Learns::Both`]: each side has its shares, and neither knows anything from them. There are no bins where one
/// of the sets is empty. Errors as of [`aggregate`].
pub fn shares<E: AsRef<[u8]> + Sync>(
    channel: &mut Channel,
    prg: &mut Prg,
    elements: &[E],
    values: Option<&[Block]>,
    options: &Options<'_>,
    progress: &mut Progress<'_>,
) -> Result<Shares> {
    check(elements.len(), options)?;
    if options.learns != Learns::Both {
        return Err(Error::Usage("shares go to both sides"));
    }
    if values.is_some_and(|values| values.len() != elements.len()) {
        return Err(Error::Usage("one number an element is shared"));
    }
    let me = channel.party();
    let terms = Terms { kind: Kind::Shares, owner: None, gives: values.is_some(), limits: Limits::default() };
    let (hellos, peer_terms) = terms.announce(channel, &WIRE, elements.len(), options)?;
    let peer_elements = hellos[1].elements;
    if elements.is_empty() || peer_elements == 0 {
        return Ok(Shares {
            members: BitVec::zeros(0),
            table_values: Zeroizing::default(),
            other_values: Zeroizing::default(),
            elements: None,
            peer_elements,
        });
    }
    let holds_table = has_smaller(me, &hellos);
    let bound = bound_terms(me, &terms, &peer_terms);
    let purpose = Purpose { domain: DOMAIN, terms: &bound, second_half: false, runs_log2: 0 };
    let run = Run::start_for(channel, prg, elements, options, progress, hellos, holds_table, purpose)?;
    Ok(if holds_table {
        let held = hold_table(run, peer_terms.gives)?;
        let value = |element: &Option<u32>| match (element, values) {
            (Some(element), Some(values)) => values[*element as usize],
            _ => Block::ZERO,
        };
        let table_values = Zeroizing::new(held.elements.iter().map(value).collect());
        (held.progress)(Phase::Compare, 1, 1);
        Shares {
            members: held.members,
            table_values,
            other_values: held.other_values,
            elements: Some(held.elements),
            peer_elements,
        }
    } else {
        let offered = offer(run, values)?;
        (offered.progress)(Phase::Compare, 1, 1);
        let table_values = Zeroizing::new(vec![Block::ZERO; offered.members.len()]);
        Shares {
            members: offered.members,
            table_values,
            other_values: offered.other_values,
            elements: None,
            peer_elements,
        }
    })
}

fn check(elements: usize, options: &Options<'_>) -> Result<()> {
    if options.security != Security::SemiHonest {
        return Err(Error::Usage(
            "these counts, sums, means and shares are secure only against a peer that follows the protocol; choose semi-honest security, or another protocol, on both sides",
        ));
    }
    if elements > MAX_ELEMENTS {
        return Err(Error::TooManyElements { count: elements as u64, allowed: MAX_ELEMENTS as u64 });
    }
    Ok(())
}

/// Whether this side has the smaller set, by the announcements (mine, theirs).
fn has_smaller(me: Party, [mine, theirs]: &[Hello; 2]) -> bool {
    (mine.elements, me != Party::First) < (theirs.elements, me == Party::First)
}

/// What stands for elements, in their order, and its values.
struct Digests {
    keys: Zeroizing<Vec<Block>>,
    values: Zeroizing<Vec<Block>>,
}

impl Seeds {
    /// H of all elements.
    fn plain<E: AsRef<[u8]> + Sync>(&self, elements: &[E], progress: &mut Progress<'_>) -> Result<Digests> {
        let [keys, values] = [(); 2].map(|()| Zeroizing::new(Vec::with_capacity(elements.len())));
        let mut digests = Digests { keys, values };
        self.hash_each(elements, progress, &mut |_, keys, values| {
            digests.keys.extend_from_slice(keys);
            digests.values.extend_from_slice(values);
            Ok(())
        })?;
        Ok(digests)
    }

    /// What stands for an element under one of the table's hash functions: `picks` names both.
    fn in_bins(&self, digests: &Digests, picks: impl ExactSizeIterator<Item = (u32, u8)>) -> Digests {
        let key = &self.bins;
        let count = picks.len();
        let mut out = Digests {
            keys: Zeroizing::new(Vec::with_capacity(count)),
            values: Zeroizing::new(Vec::with_capacity(count)),
        };
        let mut messages = Zeroizing::new(vec![[0; SHORT]; STEP.min(count)]);
        let mut hashes = Zeroizing::new(vec![[0; 32]; STEP.min(count)]);
        let mut picks = picks.peekable();
        while picks.peek().is_some() {
            let mut here = 0;
            for (message, (element, function)) in messages.iter_mut().zip(picks.by_ref().take(STEP)) {
                message[..16].copy_from_slice(&digests.keys[element as usize].to_bytes());
                message[16..32].copy_from_slice(&digests.values[element as usize].to_bytes());
                message[32] = function;
                here += 1;
            }
            hash::blake3_keyed(key, 33, &messages[..here], &mut hashes[..here]);
            for hash in &hashes[..here] {
                let (key, value) = halves(hash);
                out.keys.push(key);
                out.values.push(value);
            }
        }
        out
    }
}

impl Digests {
    /// The bins of every element.
    fn places(&self, bins: usize) -> Zeroizing<Vec<[u32; FUNCTIONS]>> {
        let pairs = self.keys.iter().zip(self.values.iter());
        Zeroizing::new(pairs.map(|(key, value)| places([*key, *value], bins)).collect())
    }
}

/// Ho of all elements, by halves, from w of the store's slots, or k and the sender's Δ.
fn both_halves(
    hash: &TagHash,
    shape: Shape,
    digests: &Digests,
    (slots, delta): (&[Block], Option<Block>),
    progress: &mut Progress<'_>,
) -> Result<[Zeroizing<Vec<Block>>; 2]> {
    let count = digests.keys.len();
    let mut out = [(); 2].map(|()| Zeroizing::new(Vec::with_capacity(count)));
    let mut decoded = Zeroizing::new(vec![Block::ZERO; STEP]);
    let mut messages = Zeroizing::new(vec![[0; SHORT]; STEP]);
    let mut hashes = Zeroizing::new(vec![[0; 32]; STEP]);
    for (step, (keys, values)) in digests.keys.chunks(STEP).zip(digests.values.chunks(STEP)).enumerate() {
        if step.is_multiple_of(64) {
            progress(Phase::Tags, (step * STEP) as u64, count as u64);
        }
        let decoded = &mut decoded[..keys.len()];
        shape.decode(slots, keys, decoded)?;
        if let Some(delta) = delta {
            gf128::multiply_add(decoded, values, delta);
        }
        for hash in hash.outputs([keys, decoded], &mut messages, &mut hashes) {
            let (first, second) = halves(hash);
            out[0].push(first);
            out[1].push(second);
        }
    }
    work::done(work::Kind::Tagged, count);
    progress(Phase::Tags, count as u64, count as u64);
    Ok(out)
}

/// The table's holder after step 4.
struct Held<'r, 'a> {
    channel: &'r mut Channel,
    prg: &'r mut Prg,
    progress: &'r mut Progress<'a>,
    cot: Box<dyn CotSender>,
    members: BitVec,
    elements: Zeroizing<Vec<Option<u32>>>,
    other_values: Zeroizing<Vec<Block>>,
}

/// Steps 1 to 4 of the table's holder.
fn hold_table<'r, 'a, E: AsRef<[u8]> + Sync>(mut run: Run<'r, 'a, E>, gives: bool) -> Result<Held<'r, 'a>> {
    let mut vole = run.receiver_setup()?;
    let plain = run.seeds.plain(run.elements, run.progress)?;
    let bins = cuckoo::bins(run.elements.len());
    let places = plain.places(bins);
    let table = Table::place(&places, bins);
    // Two equal elements have the same three bins, so they either find each other there or no places.
    let twice = match &table {
        Ok(table) => table.holds_pair(&places, |a, b| plain.keys[a as usize] == plain.keys[b as usize]),
        Err(_) => has_duplicates(&plain.keys),
    };
    if twice {
        return Err(Error::DuplicateElement);
    }
    let table = table?;
    let elements: Zeroizing<Vec<Option<u32>>> = Zeroizing::new(table.iter().collect());
    // Of each element, the function that placed it and its bin.
    let mut placed = Zeroizing::new(vec![(0u8, 0u32); run.elements.len()]);
    for (bin, element) in (0u32..).zip(elements.iter()) {
        if let Some(element) = *element {
            let function = places[element as usize].iter().position(|place| *place == bin).unwrap_or(0);
            placed[element as usize] = (function as u8, bin);
        }
    }
    let picks = (0u32..run.elements.len() as u32).map(|element| (element, placed[element as usize].0));
    let digests = run.seeds.in_bins(&plain, picks);
    let (keys, values) = (&digests.keys, |i: usize| digests.values[i]);
    let mut store = Buffer::zeros(run.parameters.shape.slots());
    run.parameters.shape.encode_into(keys, &values, run.prg, &mut store)?;
    let mut store = Whole::new(store);
    let last = run.transfer(&mut vole, &mut store)?;
    let slots = store.ends_with(last);
    let other = run.parameters.sender;
    let Run { channel, prg, options, parameters, seeds, progress, .. } = run;
    let hash = TagHash::of(&seeds.exchange_coins(channel, prg)?);
    let outputs = both_halves(&hash, parameters.shape, &digests, (&slots, None), progress)?;
    drop(slots);

    // Step 3.
    let hints = Shape::for_keys(FUNCTIONS * other)?;
    let mut by_hint = |outputs: &[Block]| -> Result<Zeroizing<Vec<Block>>> {
        let mut hint = Buffer::zeros(hints.slots());
        for part in hint.chunks_mut(super::CHUNK) {
            channel.recv_blocks(part)?;
        }
        let mut values = Zeroizing::new(vec![Block::ZERO; outputs.len()]);
        hints.decode(&hint, &digests.keys, &mut values)?;
        let mut by_bin = Zeroizing::new(vec![Block::ZERO; bins]);
        prg.fill_blocks(&mut by_bin);
        for ((value, output), (_, bin)) in values.iter().zip(outputs).zip(placed.iter()) {
            by_bin[*bin as usize] = *value ^ *output;
        }
        Ok(by_bin)
    };
    let strings = by_hint(&outputs[0])?;
    let other_values = if gives { by_hint(&outputs[1])? } else { Zeroizing::new(Vec::new()) };

    // Step 4.
    progress(Phase::Compare, 0, 1);
    let bits = compared_bits(bins);
    let mut cot = cot_sender(channel, options.base, prg, bins, bits)?;
    let members = equality::send(channel, &mut CotToRot::new(&mut *cot), &strings, bits, prg)?;
    Ok(Held { channel, prg, progress, cot, members, elements, other_values })
}

/// The other side after step 4.
struct Offered<'r, 'a> {
    channel: &'r mut Channel,
    progress: &'r mut Progress<'a>,
    cot: Box<dyn CotReceiver>,
    members: BitVec,
    other_values: Zeroizing<Vec<Block>>,
}

/// Steps 2 to 4 of the side without the table.
fn offer<'r, 'a, E: AsRef<[u8]> + Sync>(
    mut run: Run<'r, 'a, E>,
    values: Option<&[Block]>,
) -> Result<Offered<'r, 'a>> {
    let vole = run.sender_setup()?;
    let plain = run.seeds.plain(run.elements, run.progress)?;
    let bins = cuckoo::bins(run.parameters.receiver);
    let places = plain.places(bins);
    let count = FUNCTIONS * run.elements.len();
    let pick = |i: usize| ((i / FUNCTIONS) as u32, (i % FUNCTIONS) as u8);
    let digests = run.seeds.in_bins(&plain, (0..count).map(pick));
    let delta = vole.delta();
    let mut slots = Whole::new(Buffer::zeros(run.parameters.shape.slots()));
    run.fetch(vole, &mut |k| slots.take(k))?;
    let slots = slots.into_slots();
    let Run { channel, prg, options, parameters, seeds, progress, .. } = run;
    let hash = TagHash::of(&seeds.exchange_coins(channel, prg)?);
    let outputs = both_halves(&hash, parameters.shape, &digests, (&slots, Some(delta)), progress)?;
    drop(slots);

    // Step 3.
    let mut draw = || {
        let mut blocks = Zeroizing::new(vec![Block::ZERO; bins]);
        prg.fill_blocks(&mut blocks);
        blocks
    };
    let (targets, masks) = (draw(), draw());
    let shape = Shape::for_keys(count)?;
    let mut hint = Buffer::zeros(shape.slots());
    let mut send_hint = |value: &(dyn Fn(usize) -> Block + Sync)| -> Result<()> {
        shape.encode_into(&digests.keys, value, prg, &mut hint)?;
        channel.send_blocks(&hint)?;
        Ok(channel.flush()?)
    };
    let bin = |i: usize| places[i / FUNCTIONS][i % FUNCTIONS] as usize;
    send_hint(&|i| outputs[0][i] ^ targets[bin(i)])?;
    let other_values = match values {
        Some(values) => {
            send_hint(&|i| outputs[1][i] ^ masks[bin(i)] ^ values[i / FUNCTIONS])?;
            masks
        }
        None => Zeroizing::new(Vec::new()),
    };

    // Step 4.
    progress(Phase::Compare, 0, 1);
    let bits = compared_bits(bins);
    let mut cot = cot_receiver(channel, options.base, prg, bins, bits)?;
    let members = equality::receive(channel, &mut CotToRot::new(&mut *cot), &targets, bits)?;
    Ok(Offered { channel, progress, cot, members, other_values })
}

fn cot_sender(
    channel: &mut Channel,
    base: &dyn BaseOt,
    prg: &mut Prg,
    bins: usize,
    bits: u32,
) -> Result<Box<dyn CotSender>> {
    let Some(config) = ferret(bins, bits) else {
        return Ok(Box::new(IknpSender::setup(channel, base, prg)?));
    };
    let streams = setup::senders(channel, base, prg, config, 1)?;
    let stream = streams.into_iter().next().ok_or(Error::Usage("no stream of OTs was set up"))?;
    Ok(Box::new(stream))
}

fn cot_receiver(
    channel: &mut Channel,
    base: &dyn BaseOt,
    prg: &mut Prg,
    bins: usize,
    bits: u32,
) -> Result<Box<dyn CotReceiver>> {
    let Some(config) = ferret(bins, bits) else {
        return Ok(Box::new(IknpReceiver::setup(channel, base, prg)?));
    };
    let streams = setup::receivers(channel, base, prg, config, 1)?;
    let stream = streams.into_iter().next().ok_or(Error::Usage("no stream of OTs was set up"))?;
    Ok(Box::new(stream))
}

/// Step 5 of the table's holder: a share of Σ (e_i ⊕ e'_i)·p_i for each of `words` interleaved lists of
/// numbers, with its shares e_i in `members`.
///
/// With messages k_0 and k_1 for the peer's bits 0 and 1, it keeps e·p − k_0 and sends (1 − 2e)·p + k_0 −
/// k_1.
fn multiply_known(
    channel: &mut Channel,
    rot: &mut dyn RotSender,
    numbers: &[u128],
    words: usize,
    members: &BitVec,
) -> Result<Zeroizing<Vec<u128>>> {
    let mut totals = Zeroizing::new(vec![0u128; words]);
    let mut pairs = Zeroizing::new(vec![[Block::ZERO; 2]; numbers.len().min(PIECE * words)]);
    let mut turns = vec![0; pairs.len().div_ceil(8)];
    let mut answers = vec![Block::ZERO; pairs.len()];
    for (piece, numbers) in numbers.chunks(PIECE * words).enumerate() {
        let (pairs, answers) = (&mut pairs[..numbers.len()], &mut answers[..numbers.len()]);
        let turns = &mut turns[..numbers.len().div_ceil(8)];
        rot.extend(channel, pairs)?;
        channel.recv(turns)?;
        for (i, ((number, pair), answer)) in numbers.iter().zip(pairs).zip(answers.iter_mut()).enumerate() {
            let member = u128::from(members.get(piece * PIECE + i / words));
            let turn = Block::mask(turns[i / 8] >> (i % 8) & 1 == 1);
            let swap = (pair[0] ^ pair[1]) & turn;
            let [zero, one] = [pair[0] ^ swap, pair[1] ^ swap].map(Block::to_u128);
            let kept = member.wrapping_mul(*number).wrapping_sub(zero);
            totals[i % words] = totals[i % words].wrapping_add(kept);
            let other = (1 - member).wrapping_mul(*number).wrapping_sub(kept);
            *answer = Block::new(other.wrapping_sub(one));
        }
        work::done(work::Kind::Multiplied, numbers.len());
        channel.send_blocks(answers)?;
        channel.flush()?;
    }
    Ok(totals)
}

/// Step 5 of the other side.
fn multiply_chosen(
    channel: &mut Channel,
    rot: &mut dyn RotReceiver,
    words: usize,
    members: &BitVec,
) -> Result<Zeroizing<Vec<u128>>> {
    let count = members.len() * words;
    let mut totals = Zeroizing::new(vec![0u128; words]);
    let mut messages = Zeroizing::new(vec![Block::ZERO; count.min(PIECE * words)]);
    let mut answers = vec![Block::ZERO; messages.len()];
    for first in (0..count).step_by(PIECE * words) {
        let here = (count - first).min(PIECE * words);
        let (messages, answers) = (&mut messages[..here], &mut answers[..here]);
        let mut choices = BitVec::zeros(here);
        (0..here).for_each(|i| choices.set(i, members.get((first + i) / words)));
        let mut turns = rot.extend(channel, messages)?;
        turns.xor_assign(&choices);
        channel.send(turns.as_bytes())?;
        channel.flush()?;
        channel.recv_blocks(answers)?;
        for (i, (message, answer)) in messages.iter().zip(answers.iter()).enumerate() {
            let answer = *answer & Block::mask(choices.get(i));
            let product = message.to_u128().wrapping_add(answer.to_u128());
            totals[i % words] = totals[i % words].wrapping_add(product);
        }
        work::done(work::Kind::Multiplied, here);
    }
    Ok(totals)
}

fn bits_of(number: u128) -> BitVec {
    BitVec::from_bytes(&number.to_le_bytes(), 128)
}

fn number_of(bits: &BitVec) -> u128 {
    bits.blocks().first().map_or(0, |block| block.to_u128())
}

/// Step 6: the circuit on both sides' totals, which opens the result if enough elements count.
fn opening(reveal: &Reveal<'_>, min_matches: u64) -> Result<Prepared> {
    let words = reveal.words();
    let mut builder = Builder::new();
    let inputs: Vec<Uint> = (0..2 * words).map(|_| builder.input(128)).collect();
    let totals: Vec<Uint> = (0..words).map(|i| builder.add(&inputs[i], &inputs[words + i])).collect();
    let sum = totals[0].slice(0..SUM_BITS as usize);
    // A negative sum has borrowed one.
    let sign = Uint::from_bits(vec![sum.bits()[SUM_BITS as usize - 1]]);
    let above = totals[0].slice(SUM_BITS as usize..128);
    let counted = builder.add(&above, &resized(&sign, above.bits().len()));
    // Sets are too small to reach what no longer fits.
    let least = min_matches.min(u64::from(u32::MAX));
    let opens = match least {
        0 => Bit::ONE,
        _ => {
            let bits = (0..32).map(|i| Bit::constant(least >> i & 1 == 1)).collect();
            !builder.lt(&counted, &Uint::from_bits(bits))
        }
    };
    let shown = match reveal {
        Reveal::Count => vec![counted],
        Reveal::Sum(_) => vec![sum],
        Reveal::Mean(_) => vec![sum, totals[1].slice(0..64)],
    };
    let mut outputs = vec![Uint::from_bits(vec![opens])];
    for number in shown {
        let masked = number.bits().iter().map(|bit| builder.and(*bit, opens)).collect();
        outputs.push(Uint::from_bits(masked));
    }
    let circuit = builder.finish(&outputs);
    let circuit = circuit.map_err(|_| Error::Usage("the opening has no circuit"))?;
    let owners = [vec![Owner::Garbler; words], vec![Owner::Evaluator; words]].concat();
    Ok(Prepared::new(circuit, owners)?)
}

fn resized(number: &Uint, width: usize) -> Uint {
    let bits = number.bits();
    Uint::from_bits((0..width).map(|i| bits.get(i).copied().unwrap_or(Bit::ZERO)).collect())
}

impl Reveal<'_> {
    /// The result from the circuit's outputs.
    pub(crate) fn read(&self, opens: bool, first: u128, second: u128) -> Aggregate {
        // In two's complement of 96 bits.
        let sum = (first << (128 - SUM_BITS)) as i128 >> (128 - SUM_BITS);
        match self {
            _ if !opens => Aggregate::Withheld,
            Reveal::Count => Aggregate::Count(first as u64),
            Reveal::Sum(_) => Aggregate::Sum(sum),
            Reveal::Mean(_) => Aggregate::Mean { sum, rows: second as u64 },
        }
    }
}
