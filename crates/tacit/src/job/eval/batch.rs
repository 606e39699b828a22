//! Rows side by side on shares.

use super::{BYTES_GATE, Job, Rows, Step, Tell};
use crate::catalogue::{AnyReceiver, AnySender, BATCH, Pick, transfers};
use crate::{Error, Result};
use tacit_2pc::batch;
use tacit_crypto::{BitVec, Prg};
use tacit_net::{Channel, Party};
use tacit_ot::BaseOt;

/// The triples that a run of rows side by side makes at a time, and those of the level that they are for.
const BYTES_STOCK: u64 = 8 << 20;

impl Job<'_> {
    /// The same job on the form of its function that its protocol takes for so many rows in all: every protocol but
    /// `batch` takes the one that was given.
    pub fn fitted(&self, rows: usize) -> Self {
        let function = if self.is_batch() { batch::fitting(self.function, rows) } else { self.function };
        Job { function, ..*self }
    }

    /// Whether rows go side by side on shares.
    pub(super) fn is_batch(&self) -> bool {
        self.options.protocol.is_some_and(|entry| entry.name == BATCH.name)
    }

    /// The circuit and its plans, and of each thread its streams of correlated OT, the triples that are made at a time
    /// and the wires of the rows under way.
    pub(super) fn memory_of_batches(&self, rows: usize, threads: usize) -> u64 {
        let function = self.fitted(rows).function;
        let layout = batch::Layout::new(function.plan(1), rows.div_ceil(threads.max(1)));
        let held = transfers(layout.triples(), self.options.ot.map(|ot| ot.name)).map_or(0, |pick| {
            let piece = pick.piece(layout.triples(), 1) as u64;
            2 * pick.held() + piece * (16 + pick.working())
        });
        let gates = function.circuit().stats().gates;
        let each = held.saturating_add(layout.bytes()).saturating_add(BYTES_STOCK);
        (24u64 << 20)
            .saturating_add(BYTES_GATE.saturating_mul(gates))
            .saturating_add(each.saturating_mul(threads as u64))
    }

    /// All rows side by side on shares, with triples out of OT both ways.
    pub(super) fn side_by_side(
        &self,
        channel: &mut Channel,
        base: &dyn BaseOt,
        rows: &[Vec<BitVec>],
        prg: &mut Prg,
        tell: &mut Tell<'_>,
    ) -> Result<Option<Rows>> {
        let triples = self.function.circuit().stats().and.saturating_mul(rows.len() as u64);
        let pick = transfers(triples, self.options.ot.map(|ot| ot.name))?;
        let (mut sender, mut receiver) = both_ways(channel, base, prg, &pick)?;
        channel.flush()?;
        tell(Step::Ready);
        let (function, role, to) = (self.function, self.role, self.output_to);
        let streams: batch::Streams<'_> = (&mut sender, &mut receiver);
        Ok(batch::run(channel, streams, function, role, rows, to, |more| tell(Step::Rows(more)))?)
    }
}

/// A stream of correlated OT that we send, and one that we receive.
pub(in crate::job) fn both_ways(
    channel: &mut Channel,
    base: &dyn BaseOt,
    prg: &mut Prg,
    pick: &Pick,
) -> Result<(AnySender, AnyReceiver)> {
    let (senders, receivers) = match channel.party() {
        Party::First => {
            let senders = pick.senders(channel, base, prg, 1)?;
            (senders, pick.receivers(channel, base, prg, 1)?)
        }
        Party::Second => {
            let receivers = pick.receivers(channel, base, prg, 1)?;
            (pick.senders(channel, base, prg, 1)?, receivers)
        }
    };
    let streams = senders.into_iter().next().zip(receivers.into_iter().next());
    streams.ok_or_else(|| Error::Other("no stream was made".into()))
}
