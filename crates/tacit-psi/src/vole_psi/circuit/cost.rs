//! What steps 3 and 4 send, and by which OT extension.

use super::{FUNCTIONS, compared_bits};
use crate::Result;
use crate::cuckoo;
use crate::okvs::Store;
use crate::okvs::clustered::Shape;
use tacit_net::LinkModel;
use tacit_ot::Security;
use tacit_ot::silent::ferret::{self, cost::CACHE};

/// Below so many correlations IKNP is quickest; from there on Ferret.
const FEW: u64 = 1 << 18;
/// Bytes of a correlation by IKNP.
const IKNP_BYTES: f64 = 16.0;

/// Nibbles that are compared at all levels for a bin, and levels.
fn nibbles(bits: u32) -> (u64, u64) {
    let mut level = u64::from(bits.div_ceil(4));
    let (mut all, mut levels) = (level, 1);
    while level > 1 {
        level = level.div_ceil(4);
        all += level;
        levels += 1;
    }
    (all, levels)
}

/// Correlations for the equality of `bins` strings, and a sum.
fn correlations(bins: usize, bits: u32) -> u64 {
    bins as u64 * (4 * nibbles(bits).0 + 2)
}

/// Ferret's parameters for the equality of `bins` strings, and a sum; `None` where IKNP is quicker.
pub(super) fn ferret(bins: usize, bits: u32) -> Option<ferret::Config> {
    let count = correlations(bins, bits);
    let choose = || ferret::Config::choose(count, Security::SemiHonest, &LinkModel::LAN, CACHE);
    (count > FEW).then(choose)
}

/// What passes, in both directions together, beside the oblivious function and base OTs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Traffic {
    /// Bytes.
    pub bytes: f64,
    /// Round trips that a party waits for.
    pub trips: f64,
}

/// What the hints and the equality send for a table of `table` elements against `other`, with so many `hints`: one, and
/// one more where the other side shares numbers.
///
/// Errors: sets larger than stores take.
pub fn traffic(table: usize, other: usize, hints: usize) -> Result<Traffic> {
    let bins = cuckoo::bins(table);
    let bits = compared_bits(bins);
    let (nibbles, levels) = nibbles(bits);
    let stores = 16 * hints * Shape::for_keys(FUNCTIONS * other)?.slots();
    // Half a byte there and two back.
    let compared = 2.5 * bins as f64 * nibbles as f64;
    let count = correlations(bins, bits);
    let (ots, trips) = match ferret(bins, bits) {
        Some(config) => {
            let cost = config.cost(count, 1, CACHE);
            (cost.streamed + cost.awaited, cost.trips)
        }
        None => (count as f64 * IKNP_BYTES, 0.0),
    };
    Ok(Traffic { bytes: stores as f64 + compared + ots, trips: trips + levels as f64 })
}
