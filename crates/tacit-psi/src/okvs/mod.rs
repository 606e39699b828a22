//! Oblivious key-value stores: tables from which every encoded key gets its value, and every other key noise.
//!
//! A store is linear: what a key gets is a sum of slots that the key picks, some of them with factors that
//! the key picks, too. The table is uniform among those that hold the values, so where the values are random
//! it tells nothing of the keys.
//!
//! - [`paxos`]: two sparse slots a key and 60 binary dense ones; 2.04 slots a key; values of any width.
//! - [`clustered`]: three sparse slots a key within cache-sized bins, and a few dense slots a bin with
//!   coefficients in GF(2^128); 1.29 slots a key for large sets. For small ones its shape may have one slot a
//!   key instead, a polynomial, which never fails.
//!
//! Keys must be outputs of a hash bound to the session, never raw elements: addresses depend on them, and a
//! failure is a property of the keys alone.

pub mod clustered;
mod dense;
pub mod paxos;

use crate::{Error, Result};
use tacit_crypto::{Block, Prg};
use zeroize::{Zeroize, Zeroizing};

/// The most keys a store takes.
pub(crate) const MAX_KEYS: usize = 1 << 28;
/// Keys hashed, or looked up, together.
const BATCH: usize = 1024;

/// A shape of store: how many slots there are for so many keys, and which of them a key picks.
pub trait Store<V: Zeroize> {
    /// Keys that an encoding holds.
    fn keys(&self) -> usize;

    /// Slots of a table.
    fn slots(&self) -> usize;

    /// Slots for each key.
    fn expansion(&self) -> f64 {
        self.slots() as f64 / self.keys().max(1) as f64
    }

    /// log2 of a bound on the probability that random keys have no table; the implementation's docs derive
    /// it.
    fn failure_log2(&self) -> f64;

    /// Makes `table`, of [`slots`](Self::slots) slots, one that gives `value(i)` to `keys[i]`, uniform among
    /// all of them; `prg` fills the free slots.
    ///
    /// `keys` are distinct 128-bit hashes, exactly [`keys`](Self::keys) of them. Errors:
    /// [`Error::DuplicateElement`] when two are equal, [`Error::Unsolvable`] as seldom as
    /// [`failure_log2`](Self::failure_log2) says, [`Error::Usage`] where a length does not fit. `table` has
    /// no meaning after an error.
    fn encode_into(
        &self,
        keys: &[Block],
        value: &(dyn Fn(usize) -> V + Sync),
        prg: &mut Prg,
        table: &mut [V],
    ) -> Result<()>;

    /// [`encode_into`](Self::encode_into) a new table.
    fn encode(
        &self,
        keys: &[Block],
        value: &(dyn Fn(usize) -> V + Sync),
        prg: &mut Prg,
    ) -> Result<Zeroizing<Vec<V>>>
    where
        V: Copy + Default,
    {
        let mut table = Zeroizing::new(vec![V::default(); self.slots()]);
        self.encode_into(keys, value, prg, &mut table)?;
        Ok(table)
    }

    /// What `table`, of [`slots`](Self::slots) slots, gives to each of `keys`, into `out` of the same
    /// length; quickest by the thousand. [`Error::Usage`] where a length does not fit.
    fn decode(&self, table: &[V], keys: &[Block], out: &mut [V]) -> Result<()>;
}

pub(crate) fn has_duplicates(keys: &[Block]) -> bool {
    let mut sorted: Vec<u128> = keys.iter().map(|key| key.to_u128()).collect();
    sorted.sort_unstable();
    let found = sorted.windows(2).any(|pair| pair[0] == pair[1]);
    sorted.zeroize();
    found
}

/// Why `keys` have no table.
fn unsolvable(keys: &[Block]) -> Error {
    if has_duplicates(keys) { Error::DuplicateElement } else { Error::Unsolvable }
}
