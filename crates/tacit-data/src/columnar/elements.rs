//! The elements of a batch's rows: hashed side by side, on workers where there are some.

use super::Texts;
use crate::batch::Batch;
use crate::keys::{LOOKED_AT, Tally};
use crate::records::{Element, KeyHasher, KeySpec, Shown};
use std::ops::Range;
use tacit_crypto::workers;
use zeroize::Zeroizing;

/// Rows that one thread hashes, at least.
const ROWS_EACH: usize = 1 << 10;

/// The elements of so many rows whose key's parts are `texts`, behind `before` others; `hasher` counts.
pub(super) fn of_rows(
    spec: &KeySpec,
    hasher: &mut KeyHasher,
    texts: &[Texts],
    rows: usize,
    before: u64,
) -> Zeroizing<Vec<Option<Element>>> {
    let share = workers::share(rows, ROWS_EACH);
    // Others than the first hasher know nothing of what is kept of the first rows.
    if share >= rows || before < LOOKED_AT || spec.shown != Shown::default() {
        let mut elements = Zeroizing::new(Vec::with_capacity(rows));
        let own = std::mem::replace(hasher, KeyHasher::of(spec));
        *hasher = add(Batch::of(own), texts, 0..rows, &mut elements);
        return elements;
    }
    let parts = (0..rows).step_by(share).map(|start| start..rows.min(start + share));
    let read = |part: Range<usize>| -> (Zeroizing<Vec<Option<Element>>>, Tally) {
        let mut elements = Zeroizing::new(Vec::with_capacity(share));
        let hasher = KeyHasher::of(spec).behind_first();
        let mut hasher = add(Batch::of(hasher), texts, part, &mut elements);
        (elements, hasher.take_tally())
    };
    let mut elements = Zeroizing::new(Vec::with_capacity(rows));
    for (of_part, tally) in workers::map(parts, read) {
        elements.extend_from_slice(&of_part);
        hasher.absorb(tally);
    }
    elements
}

fn add(mut batch: Batch, texts: &[Texts], rows: Range<usize>, to: &mut Vec<Option<Element>>) -> KeyHasher {
    for row in rows {
        batch.add(texts.iter().map(|texts| texts.get(row)));
        if batch.is_full() {
            batch.hash(|hashed| to.extend_from_slice(hashed));
        }
    }
    batch.hash(|hashed| to.extend_from_slice(hashed));
    batch.into_hasher()
}
