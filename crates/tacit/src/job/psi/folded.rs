//! Numbers over many common keys: which sizes are folded, and the run of a fold on shares of circuit PSI.

use crate::catalogue::transfers;
use crate::{Error, Result};
use tacit_2pc::batch::fold::{Fold, Words};
use tacit_2pc::{OutputTo, Owner};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::{Channel, Party};
use tacit_ot::BaseOt;
use tacit_psi::vole_psi::circuit::Shares;

/// Keys of the smaller set up to which all places may go into one garbled circuit, which needs a few rounds where a fold
/// needs a hundred. At the limit, for `max`: 3.1 s and 6.6 s by the forecast for 100 Mbit/s with 40 ms each way; 0.5 s and
/// 0.1 s as measured over loopback in a build for development.
const MOST_GARBLED: u64 = 1 << 10;
/// Gates of a function, all places together, up to which it may be garbled: a gigabyte.
const MOST_GARBLED_GATES: u64 = 1 << 22;
/// Bytes of an AND gate in a garbled circuit and in a fold, and those that pass while a level's openings do, both at 100
/// Mbit/s with 40 ms each way: both sides know no other link to be the same.
const GARBLED_BYTES: u64 = 32;
const FOLDED_BYTES: u64 = 1;
const LEVEL_BYTES: u64 = 1 << 19;
/// AND gates of a key, and levels, beside those of its function, about.
const KEY_ANDS: u64 = 300;
const FOLD_LEVELS: u64 = 40;
/// Of when rows are folded, how, and what is shared of a number: a change that a peer must know of.
pub(in crate::job) const VERSION: u64 = 2;

/// The two ways, in words.
pub(super) const ONE_CIRCUIT: &str = "one garbled circuit";
pub(in crate::job) const ROWS_FOLDED: &str = "rows folded";

/// The size of the function of a key; nothing where the caller has none.
#[derive(Clone, Copy, Default)]
pub(super) struct Size {
    pub(super) gates: u64,
    pub(super) ands: u64,
    pub(super) levels: u64,
}

/// Whether sets of which the smaller one has `keys` go into one garbled circuit, with a function of this size for each
/// of them: where the circuit's bytes pass sooner than a fold's levels, by what both sides know.
pub(super) fn garbled(keys: u64, function: Size) -> bool {
    keys <= most_garbled(function)
}

/// The most keys for which it is so.
fn most_garbled(function: Size) -> u64 {
    let most = MOST_GARBLED.min(MOST_GARBLED_GATES.checked_div(function.gates).unwrap_or(u64::MAX));
    let levels = function.levels.saturating_add(FOLD_LEVELS).saturating_mul(LEVEL_BYTES);
    let key = function.ands.saturating_add(KEY_ANDS).saturating_mul(GARBLED_BYTES - FOLDED_BYTES);
    most.min(levels / key)
}

/// Bytes of a key in a garbled circuit without its function, and of a gate of the function: a key has a place and a
/// half, a gate some 160 bytes.
const GARBLED_KEY: u64 = 100_000;
const GARBLED_GATE: u64 = 240;
/// Bytes of the stock of triples with their correlated OT both ways, about, and of a key of the smaller set in a fold.
pub(in crate::job) const STOCK: u64 = 32 << 20;
const FOLDED_KEY: u64 = 130;

/// Bytes held in addition to those of circuit PSI where the smaller set has `keys`, with a function of this size.
pub(super) fn memory(keys: u64, function: Size) -> u64 {
    let gates = function.gates;
    let most = most_garbled(function).min(keys);
    let whole = most.saturating_mul(GARBLED_KEY.saturating_add(gates.saturating_mul(GARBLED_GATE)));
    if garbled(keys, function) {
        return whole;
    }
    // The circuit of a row, of the smaller and of the shallow form.
    let circuits = gates.saturating_mul(2 * 160);
    whole.max(STOCK.saturating_add(circuits).saturating_add(keys.saturating_mul(FOLDED_KEY)))
}

/// Runs `fold` on what we have a `share` of, and opens its outputs to whom `output_to` names. `told` is called with triples used and
/// those of all.
pub(in crate::job) fn run(
    channel: &mut Channel,
    base: &dyn BaseOt,
    fold: &Fold,
    share: &Words<'_>,
    (role, output_to): (Owner, OutputTo),
    told: &mut dyn FnMut(u64, u64),
) -> Result<Option<Vec<BitVec>>> {
    let pick = transfers(fold.triples(), None)?;
    let (mut sender, mut receiver) = pick.each_way(channel, base, &mut Prg::from_os())?;
    let streams =
        (&mut sender as &mut dyn tacit_ot::CotSender, &mut receiver as &mut dyn tacit_ot::CotReceiver);
    fold.run(channel, streams, role, share, output_to, told).map_err(Error::from)
}

/// The values of each place that we have a share of: those of the party that listens first, and the other's.
pub(in crate::job) fn of_parties(shares: &Shares, me: Party) -> [&[Block]; 2] {
    let table_is_first = shares.elements.is_some() == (me == Party::First);
    match table_is_first {
        true => [&shares.table_values, &shares.other_values],
        false => [&shares.other_values, &shares.table_values],
    }
}

/// A value of a place; zero of a party that gives none.
pub(in crate::job) fn value(values: &[Block], place: usize) -> u128 {
    values.get(place).map_or(0, |value| value.to_u128())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the cost at the reference link: few levels of many gates are folded, and many levels of few keys garbled.
    #[test]
    fn levels_and_gates_decide_together() {
        let size = |gates, ands, levels| Size { gates, ands, levels };
        for (keys, function, is_garbled) in [
            (1 << 10, Size::default(), true),
            ((1 << 10) + 1, Size::default(), false),
            // A chain of divisions: 726 s folded and some 8 s garbled.
            (20, size(150_000, 40_000, 18_000), true),
            // As many gates side by side.
            (20, size(150_000, 40_000, 20), true),
            (40, size(150_000, 40_000, 20), false),
            (40, size(50_000, 40_000, 20), false),
            (40, size(50_000, 40_000, 200), true),
            // More than memory should hold, whatever the levels.
            (41, size(104_858, 40_000, 18_000), false),
            (1, size(1 << 22, 1 << 20, 1 << 16), true),
            (1, size((1 << 22) + 1, 1 << 20, 1 << 16), false),
        ] {
            assert_eq!(garbled(keys, function), is_garbled, "{keys} {} {}", function.gates, function.levels);
        }
    }
}
