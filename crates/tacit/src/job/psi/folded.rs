//! Numbers over many common keys: rows of shares side by side, folded into one.

use super::Each;
use super::shared::{BITS, Statistic, enough};
use crate::catalogue::transfers;
use crate::{Error, Result};
use tacit_2pc::batch::fold::{Fold, Part};
use tacit_2pc::circuit::{Bit, Builder, Int, Integer, Uint};
use tacit_2pc::{OutputTo, Owner};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::{Channel, Party};
use tacit_ot::BaseOt;
use tacit_psi::vole_psi::circuit::Shares;

/// Keys of the smaller set up to which one garbled circuit over all places takes less time.
pub(super) const MOST_GARBLED: u64 = 1 << 10;
/// Gates of a function, all places together, up to which it is garbled.
const MOST_GARBLED_GATES: u64 = 1 << 21;
/// Where a number of a key says that there is one, beside its bits.
const THERE: usize = BITS;
/// Bits of a place: two numbers, whether it holds a common key, and whether each side's number is there.
const PLACE: usize = 2 * BITS + 3;

/// Of when rows are folded, how, and what is shared of a number: a change that a peer must know of.
pub(super) const VERSION: u64 = 1;

/// Whether sets of which the smaller one has `keys` go into one garbled circuit, with a function of so many gates for
/// each of them: what both sides know decides.
pub(super) fn garbled(keys: u64, gates: u64) -> bool {
    keys <= MOST_GARBLED && keys.saturating_mul(gates) <= MOST_GARBLED_GATES
}

/// Bytes of a garbled place, whatever the function; about, of the stock of triples and their correlated OT both ways;
/// and of a place of the smaller set's table in a fold.
const GARBLED_KEY: u64 = 100_000;
const STOCK: u64 = 32 << 20;
const FOLDED_KEY: u64 = 130;

/// Bytes held beside those of circuit PSI where the smaller set has `keys`.
pub(super) fn memory(keys: u64, each: Option<&Each>) -> u64 {
    let gates = each.map_or(0, Each::gates);
    let most = MOST_GARBLED.min(MOST_GARBLED_GATES.checked_div(gates).unwrap_or(u64::MAX)).min(keys);
    let whole = most.saturating_mul(GARBLED_KEY).saturating_add(each.map_or(0, |each| each.memory(most)));
    if garbled(keys, gates) {
        return whole;
    }
    // The circuit of a row, of the smaller and of the shallow form.
    let circuits = gates.saturating_mul(2 * 160);
    whole.max(STOCK.saturating_add(circuits).saturating_add(keys.saturating_mul(FOLDED_KEY)))
}

/// A number of a key as it is shared: whether it is there above its bits.
pub(super) fn block(number: i64, absent: Option<i64>) -> Block {
    let there = u128::from(absent != Some(number));
    Block::new(u128::from(number as u64) | there << THERE)
}

/// Fields of a place, in a row's circuit. Without a common key the numbers are anything.
pub(super) struct Shared {
    pub(super) common: Bit,
    pub(super) numbers: [Uint; 2],
    there: [Bit; 2],
}

impl Shared {
    /// Of a row's bits. Of the sides that `silent` names the numbers are zero, whatever they put in.
    pub(super) fn of(input: &Uint, silent: [bool; 2]) -> Self {
        let number = |side: usize| match silent[side] {
            true => Uint::constant(0, BITS),
            false => input.slice(side * BITS..(side + 1) * BITS),
        };
        let there = |side: usize| if silent[side] { Bit::ONE } else { input.bits()[2 * BITS + 1 + side] };
        Shared {
            common: input.bits()[2 * BITS],
            numbers: [number(0), number(1)],
            there: [there(0), there(1)],
        }
    }
}

/// Bits of a row.
pub(super) fn gated(b: &mut Builder, number: &Uint, by: Bit) -> Uint {
    Uint::from_bits(number.bits().iter().map(|&bit| b.and(bit, by)).collect())
}

fn bit(bit: Bit) -> Uint {
    Uint::from_bits(vec![bit])
}

/// The fold of so many places.
pub(super) fn fold(
    places: usize,
    row: &dyn Fn(&mut Builder, &Uint) -> Vec<Part>,
    last: &dyn Fn(&mut Builder, &[Uint]) -> Vec<Uint>,
) -> Result<Fold> {
    Ok(Fold::new(places, PLACE, row, last)?)
}

impl Statistic {
    /// The number in an order without signs in which what counts is largest and zero stands for none; and back.
    fn ordered(self, number: &Uint) -> Uint {
        let last = number.bits().len().saturating_sub(1);
        let turned =
            |(at, &bit): (usize, &Bit)| if (at == last) != (self == Statistic::Min) { !bit } else { bit };
        Uint::from_bits(number.bits().iter().enumerate().map(turned).collect())
    }

    /// The same as its circuit over all places, but over rows side by side.
    pub(super) fn fold(
        self,
        places: usize,
        owner: usize,
        silent: [bool; 2],
        min_matches: u64,
    ) -> Result<Fold> {
        let row = |b: &mut Builder, input: &Uint| {
            let place = Shared::of(input, silent);
            let number = &place.numbers[owner];
            let counts = b.and(place.common, place.there[owner]);
            let kept = match self {
                Statistic::Over(limit) => {
                    let over = b.lt(&Int::constant(limit.into(), BITS), &number.as_int());
                    Part::Sum(bit(b.and(over, counts)))
                }
                Statistic::Max | Statistic::Min => Part::Largest(gated(b, &self.ordered(number), counts)),
            };
            vec![Part::Sum(bit(counts)), kept]
        };
        let last = |b: &mut Builder, totals: &[Uint]| {
            let [matches, value] = totals else { return Vec::new() };
            let enough = enough(b, matches, min_matches);
            let any = b.any(matches.bits());
            let any = b.and(any, enough);
            let value = match self {
                Statistic::Over(_) => value.resize(BITS),
                Statistic::Max | Statistic::Min => self.ordered(value),
            };
            vec![bit(enough), bit(any), gated(b, &value, any)]
        };
        fold(places, &row, &last)
    }
}

/// Runs `fold` on our shares, and opens its outputs to whom `output_to` names. `told` is called with triples used and
/// those of all.
pub(super) fn run(
    channel: &mut Channel,
    base: &dyn BaseOt,
    shares: &Shares,
    fold: &Fold,
    (role, output_to): (Owner, OutputTo),
    told: &mut dyn FnMut(u64, u64),
) -> Result<Option<Vec<BitVec>>> {
    let me = channel.party();
    let pick = transfers(fold.triples(), None)?;
    let (mut sender, mut receiver) = pick.each_way(channel, base, &mut Prg::from_os())?;
    let table_is_first = shares.elements.is_some() == (me == Party::First);
    let (first, second) = match table_is_first {
        true => (&shares.table_values, &shares.other_values),
        false => (&shares.other_values, &shares.table_values),
    };
    let of = |values: &[Block], place: usize| values.get(place).map_or(0, |value| value.to_u128());
    let share = |place: usize, word: usize| match word {
        0 => of(first, place) as u64,
        1 => of(second, place) as u64,
        _ => {
            let there = [first, second].map(|values| (of(values, place) >> THERE) as u64 & 1);
            u64::from(shares.members.get(place)) | there[0] << 1 | there[1] << 2
        }
    };
    let streams =
        (&mut sender as &mut dyn tacit_ot::CotSender, &mut receiver as &mut dyn tacit_ot::CotReceiver);
    fold.run(channel, streams, role, &share, output_to, told).map_err(Error::from)
}
