//! AES-128 kernels: one key over many blocks, a key a block, and the hashes in one pass.

#[cfg(target_arch = "x86_64")]
use super::aes_x86 as x86;
use super::{Backend, aes_portable as portable, dispatch};
use crate::Block;

pub use super::aes_portable::sigma;

macro_rules! kernels {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        $(#[$doc])*
        pub fn $name(backend: Backend, $($arg: $type),*) $(-> $result)? {
            dispatch!(backend, $name($($arg),*))
        }
    )*};
}
kernels! {
    /// The round keys of `key`.
    expand(key: Block) -> [Block; 11];
    /// AES of each block, in place.
    encrypt_blocks(round_keys: &[Block; 11], blocks: &mut [Block]);
    /// AES of `first`, `first + 1`, … as 64-bit numbers.
    counter(round_keys: &[Block; 11], first: u64, out: &mut [Block]);
    /// XORs what [`counter`] gives into `out`.
    counter_xor(round_keys: &[Block; 11], first: u64, out: &mut [Block]);
    /// CCR of each block, in place.
    ccr_in_place(round_keys: &[Block; 11], blocks: &mut [Block]);
}

/// CCR of each block of `input`; panics when the lengths differ.
pub fn ccr(backend: Backend, round_keys: &[Block; 11], input: &[Block], out: &mut [Block]) {
    assert_eq!(input.len(), out.len(), "one output an input");
    dispatch!(backend, ccr(round_keys, input, out))
}

/// TCCR of each block, in place, tweaks counting up from `first` as 128-bit numbers.
pub fn tccr(backend: Backend, round_keys: &[Block; 11], blocks: &mut [Block], first: u128) {
    // The kernels count in the low 64 bits, so a carry ends a run.
    let until_carry = (u64::MAX - first as u64) as u128 + 1;
    let split = until_carry.min(blocks.len() as u128) as usize;
    let (before, after) = blocks.split_at_mut(split);
    let carried = Block::new(first.wrapping_add(until_carry));
    for (run, first) in [(before, Block::new(first)), (after, carried)] {
        dispatch!(backend, tccr(round_keys, run, first))
    }
}

/// AES of `blocks[i]` under `keys[i]`, in place; panics when the lengths differ.
pub fn rekeyed(backend: Backend, keys: &[Block], blocks: &mut [Block]) {
    assert_eq!(keys.len(), blocks.len(), "one key a block");
    dispatch!(backend, rekeyed(keys, blocks))
}

/// MITCCRH in place, `per_gid` blocks under each gid, gids counting up from `first_gid`; the last group may be short.
pub fn mitccrh(backend: Backend, start: Block, first_gid: u64, per_gid: usize, blocks: &mut [Block]) {
    assert!(per_gid > 0, "at least one block a gid");
    let whole = blocks.len() / per_gid;
    let (groups, rest) = blocks.split_at_mut(whole * per_gid);
    dispatch!(backend, mitccrh_in_place(start, first_gid, per_gid, groups));
    if !rest.is_empty() {
        let (gid, count) = (first_gid.wrapping_add(whole as u64), rest.len());
        dispatch!(backend, mitccrh_in_place(start, gid, count, rest));
    }
}

/// MITCCRH of `v[i]` and `v[i] ⊕ delta` under gid `first_gid + i` into `out[i]`; panics when the lengths differ.
pub fn cot_sender(
    backend: Backend,
    start: Block,
    first_gid: u64,
    delta: Block,
    v: &[Block],
    out: &mut [[Block; 2]],
) {
    assert_eq!(v.len(), out.len(), "one pair a block");
    dispatch!(backend, cot_sender(start, first_gid, delta, v, out))
}

/// MITCCRH of `w[i]` under gid `first_gid + i` into `out[i]`; panics when the lengths differ.
pub fn cot_receiver(backend: Backend, start: Block, first_gid: u64, w: &[Block], out: &mut [Block]) {
    assert_eq!(w.len(), out.len(), "one output an input");
    dispatch!(backend, cot_receiver(start, first_gid, w, out))
}
