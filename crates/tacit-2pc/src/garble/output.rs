//! From labels to values: what an evaluator decodes with, and how a garbler reads labels that come back.

use subtle::ConstantTimeEq;
use tacit_crypto::hash::Mitccrh;
use tacit_crypto::{BitVec, Block};

/// Hash numbers of outputs start here, past every AND gate's.
const FIRST_OUTPUT_GID: u64 = 1 << 63;

/// The bits that turn the lowest bits of output labels into values: the lowest bit of each zero-label.
///
/// It tells nothing of a label that the evaluator did not compute, and does not show whether a label is
/// valid.
pub fn colours(zero_labels: impl IntoIterator<Item = Block>) -> BitVec {
    BitVec::from_lsbs(&zero_labels.into_iter().collect::<Vec<_>>())
}

/// The values of the evaluator's output labels under the garbler's [`colours`]. Panics when the lengths
/// differ.
pub fn decode_colours(labels: &[Block], colours: &BitVec) -> BitVec {
    let mut values = BitVec::from_lsbs(labels);
    values.xor_assign(colours);
    values
}

/// The hashes of both labels of output bit `index`, that of value 0 first. With them an evaluator decodes a
/// label and sees whether it is one of the two; they show nothing of a label it does not hold.
pub fn label_hashes(start: Block, index: u64, zero_label: Block, delta: Block) -> [Block; 2] {
    let mut hashes = [zero_label, zero_label ^ delta];
    Mitccrh::new(start).hash_blocks(FIRST_OUTPUT_GID + index, 2, &mut hashes);
    hashes
}

/// The value of output bit `index` by its [`label_hashes`]; `None` if the label is neither.
pub fn decode_hashed(start: Block, index: u64, label: Block, hashes: &[Block; 2]) -> Option<bool> {
    let hash = Mitccrh::new(start).hash(FIRST_OUTPUT_GID + index, label);
    let (zero, one) = (hash.ct_eq(&hashes[0]), hash.ct_eq(&hashes[1]));
    bool::from(zero ^ one).then(|| one.into())
}

/// The garbler's reading of an output label that the evaluator sent: its value, or `None` if it is neither of
/// the wire's labels. Who never held the other label cannot change the value.
pub fn decode_label(label: Block, zero_label: Block, delta: Block) -> Option<bool> {
    let (zero, one) = (label.ct_eq(&zero_label), label.ct_eq(&(zero_label ^ delta)));
    bool::from(zero ^ one).then(|| one.into())
}
