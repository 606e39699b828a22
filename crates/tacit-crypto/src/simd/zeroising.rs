//! Reads memory after a drop, to see that secrets are gone from it.

use crate::aes::Aes128;
use crate::commit::Opening;
use crate::gf128::Accumulator;
use crate::{BitVec, Block};
use core::mem::{ManuallyDrop, MaybeUninit};
use zeroize::Zeroize;

/// The bytes at a value's place, before and after it is dropped; for types without padding.
fn bytes_around_drop<T>(value: T) -> (Vec<u8>, Vec<u8>) {
    let mut place = Box::new(MaybeUninit::new(value));
    let pointer = place.as_mut_ptr();
    let read = || {
        let bytes = pointer.cast::<u8>();
        // SAFETY: the place is owned by the box throughout, was written in full, and the types have no
        // padding.
        (0..size_of::<T>()).map(|i| unsafe { bytes.add(i).read_volatile() }).collect::<Vec<u8>>()
    };
    let before = read();
    // SAFETY: the value is initialised and dropped once: a `MaybeUninit` drops nothing by itself.
    unsafe { pointer.drop_in_place() };
    (before, read())
}

#[track_caller]
fn assert_wiped<T>(value: T) {
    let (before, after) = bytes_around_drop(value);
    assert!(before.iter().any(|&b| b != 0), "there was something to wipe");
    assert!(after.iter().all(|&b| b == 0), "bytes survived the drop");
}

#[test]
fn dropped_secrets_leave_zeros() {
    assert_wiped(Aes128::new(Block::ONES));
    assert_wiped(Opening([7; 32]));
    let mut sum = Accumulator::new();
    sum.add(&[Block::ONES], &[Block::ONES]);
    assert_wiped(sum);
}

#[test]
fn a_bit_vector_is_wiped_in_its_heap() {
    let mut bits = ManuallyDrop::new(BitVec::from_bools(&[true; 300]));
    let (pointer, count) = (bits.blocks().as_ptr(), bits.blocks().len());
    bits.zeroize();
    for i in 0..count {
        // SAFETY: wiping empties the vector but keeps its allocation, which was written in full.
        assert!(unsafe { pointer.add(i).read_volatile() } == Block::ZERO);
    }
    drop(ManuallyDrop::into_inner(bits));
}
