//! A batch of trees in parts, which workers expand side by side.

use super::half::{HalfTrees, TILES};
use super::shape::Shape;
use tacit_crypto::workers;

/// Tiles of a part, where there are several threads: so few that all threads have about as many.
const TILES_EACH: usize = 2;

/// Neighbouring tiles of one group.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub first: usize,
    pub tiles: usize,
}

impl Part {
    /// The group of its tiles.
    pub(crate) fn group(self) -> usize {
        self.first / TILES
    }
}

/// The parts of a batch: groups where there is one thread.
pub(crate) fn parts(shape: Shape) -> Vec<Part> {
    let size = if workers::count() > 1 { TILES_EACH } else { TILES };
    let part = |first| Part { first, tiles: size.min(shape.tiles - first) };
    (0..shape.tiles).step_by(size).map(part).collect()
}

/// The place of each part in what has so many items a tile.
pub(crate) fn places<'s, T>(parts: &[Part], mut all: &'s mut [T], tile: usize) -> Vec<&'s mut [T]> {
    let place = |part: &Part| all.split_off_mut(..part.tiles * tile).unwrap_or_default();
    parts.iter().map(place).collect()
}

/// Does `work` with each of `parts`, and what belongs to it, and an expander of the round of `expander`.
pub(crate) fn each_part<T: Send>(
    expander: &mut HalfTrees,
    parts: impl Iterator<Item = T>,
    work: impl Fn(&mut HalfTrees, T) + Sync,
) {
    if workers::count() == 1 {
        return parts.for_each(|part| work(expander, part));
    }
    let mut parts: Vec<T> = parts.collect();
    let share = workers::share(parts.len(), 1);
    let mut shares = Vec::new();
    while !parts.is_empty() {
        let rest = parts.split_off(share.min(parts.len()));
        shares.push(std::mem::replace(&mut parts, rest));
    }
    let expander = &*expander;
    workers::each(shares, |parts| {
        let mut expander = expander.beside();
        parts.into_iter().for_each(|part| work(&mut expander, part));
    });
}
