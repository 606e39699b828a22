//! Numbers over many common keys: which sizes are folded, and the run of a fold on shares of circuit PSI.

use super::places::THERE;
use crate::catalogue::transfers;
use crate::{Error, Result};
use tacit_2pc::batch::fold::Fold;
use tacit_2pc::{OutputTo, Owner};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::{Channel, Party};
use tacit_ot::BaseOt;
use tacit_psi::vole_psi::circuit::Shares;

/// Keys of the smaller set up to which all places go into one garbled circuit, which needs a few rounds where a fold needs
/// a hundred. At the limit, for `max`: 3.1 s and 6.6 s by the forecast for 100 Mbit/s with 40 ms each way; 0.5 s and 0.1 s
/// as measured over loopback in a build for development.
pub(super) const MOST_GARBLED: u64 = 1 << 10;
/// Gates of a function, all places together, up to which it is garbled.
const MOST_GARBLED_GATES: u64 = 1 << 21;
/// Of when rows are folded, how, and what is shared of a number: a change that a peer must know of.
pub(super) const VERSION: u64 = 1;

/// Whether sets of which the smaller one has `keys` go into one garbled circuit, with a function of so many gates for
/// each of them: what both sides know decides.
pub(super) fn garbled(keys: u64, gates: u64) -> bool {
    keys <= MOST_GARBLED && keys.saturating_mul(gates) <= MOST_GARBLED_GATES
}

/// Bytes of a key in a garbled circuit without its function, and of a gate of the function: a key has a place and a
/// half, a gate some 160 bytes.
const GARBLED_KEY: u64 = 100_000;
const GARBLED_GATE: u64 = 240;
/// Bytes of the stock of triples with their correlated OT both ways, about, and of a key of the smaller set in a fold.
const STOCK: u64 = 32 << 20;
const FOLDED_KEY: u64 = 130;

/// Bytes held in addition to those of circuit PSI where the smaller set has `keys`, with a function of so many gates.
pub(super) fn memory(keys: u64, gates: u64) -> u64 {
    let most = MOST_GARBLED.min(MOST_GARBLED_GATES.checked_div(gates).unwrap_or(u64::MAX)).min(keys);
    let whole = most.saturating_mul(GARBLED_KEY.saturating_add(gates.saturating_mul(GARBLED_GATE)));
    if garbled(keys, gates) {
        return whole;
    }
    // The circuit of a row, of the smaller and of the shallow form.
    let circuits = gates.saturating_mul(2 * 160);
    whole.max(STOCK.saturating_add(circuits).saturating_add(keys.saturating_mul(FOLDED_KEY)))
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
