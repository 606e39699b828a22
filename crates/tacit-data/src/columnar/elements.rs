//! The elements of a batch's rows: hashed side by side, on workers where there are some.

use super::Texts;
use crate::batch::{Batch, NO_ELEMENT};
use crate::keys::{LOOKED_AT, Tally};
use crate::records::{Element, KeyHasher, KeySpec, Shown};
use std::ops::Range;
use tacit_crypto::{Wiped, workers};

/// Rows that one thread hashes, at least.
const ROWS_EACH: usize = 1 << 10;

/// The elements of so many rows whose key parts are `texts`, as [`Listing`](crate::records::Listing) has them. `before` is
/// the number of rows in earlier batches. `hasher` counts rows without a key and refused values.
pub fn of_rows(
    spec: &KeySpec,
    hasher: &mut KeyHasher,
    texts: &[Texts],
    rows: usize,
    before: u64,
) -> Wiped<Option<Element>> {
    let share = workers::share(rows, ROWS_EACH);
    // Others than the first hasher know nothing of what is kept of the first rows.
    if share >= rows || before < LOOKED_AT || spec.shown != Shown::default() {
        let mut elements = Wiped::with_capacity(rows * spec.identifiers(), Some(NO_ELEMENT));
        let own = std::mem::replace(hasher, KeyHasher::of(spec));
        *hasher = add(Batch::of(own), texts, 0..rows, &mut elements);
        return elements;
    }
    let parts = (0..rows).step_by(share).map(|start| start..rows.min(start + share));
    let read = |part: Range<usize>| -> (Wiped<Option<Element>>, Tally) {
        let mut elements = Wiped::with_capacity(share * spec.identifiers(), Some(NO_ELEMENT));
        let hasher = KeyHasher::of(spec).behind_first();
        let mut hasher = add(Batch::of(hasher), texts, part, &mut elements);
        (elements, hasher.take_tally())
    };
    let mut elements = Wiped::with_capacity(rows * spec.identifiers(), Some(NO_ELEMENT));
    for (of_part, tally) in workers::map(parts, read) {
        append(&mut elements, &of_part);
        hasher.absorb(tally);
    }
    elements
}

fn add(mut batch: Batch, texts: &[Texts], rows: Range<usize>, to: &mut Wiped<Option<Element>>) -> KeyHasher {
    for row in rows {
        batch.add(texts.iter().map(|texts| texts.get(row)));
        if batch.is_full() {
            batch.hash(|hashed| append(to, hashed));
        }
    }
    batch.hash(|hashed| append(to, hashed));
    batch.into_hasher()
}

/// Appends elements. A list that grows by itself, as one of variants must, would leave a copy behind that nobody wipes.
fn append(to: &mut Wiped<Option<Element>>, more: &[Option<Element>]) {
    if to.capacity() - to.len() < more.len() {
        let mut larger = Wiped::with_capacity(2 * to.len() + more.len(), Some(NO_ELEMENT));
        larger.extend_from_slice(to);
        *to = larger;
    }
    to.extend_from_slice(more);
}
