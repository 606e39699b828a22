//! Rows side by side on shares.

use super::{BYTES_GATE, Job, Rows, Step, Tell};
use crate::Result;
use crate::catalogue::{BATCH, transfers};
use crate::plan::EvalRequest;
use tacit_2pc::{Prepared, batch};
use tacit_crypto::{BitVec, Prg};
use tacit_net::Channel;
use tacit_ot::BaseOt;

/// The triples that a run of rows side by side makes at a time, and those of the level that they are for.
const BYTES_STOCK: u64 = 8 << 20;

/// The same request with the levels that `function` is run in.
pub(super) fn in_levels(function: &Prepared, request: EvalRequest) -> EvalRequest {
    let [levels, width] = batch::Layout::new(function.plan(1), 1).levels();
    EvalRequest { levels, width, ..request }
}

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
        let (mut sender, mut receiver) = pick.each_way(channel, base, prg)?;
        channel.flush()?;
        tell(Step::Ready);
        let (function, role, to) = (self.function, self.role, self.output_to);
        let streams: batch::Streams<'_> = (&mut sender, &mut receiver);
        Ok(batch::run(channel, streams, function, role, rows, to, |more| tell(Step::Rows(more)))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::eval::Options;
    use crate::plan::Machine;
    use crate::{Security, ot};
    use tacit_2pc::circuit::named;
    use tacit_2pc::{OutputTo, Owner};
    use tacit_net::{LinkModel, memory};

    fn job<'a>(function: &'a Prepared, role: Owner, output_to: OutputTo, ot: Option<&str>) -> Job<'a> {
        let ot = ot.map(|name| ot::protocol(name, Security::SemiHonest).unwrap());
        let options = Options { protocol: Some(&BATCH), copies: None, ot };
        Job { function, role, output_to, security: Security::SemiHonest, options }
    }

    #[test]
    fn foreseen_bytes_are_those_that_pass() {
        let cases = [
            ("add32", 1, OutputTo::Both, None),
            ("lt64", 700, OutputTo::Garbler, Some("kos")),
            ("aes128", 130, OutputTo::Evaluator, None),
            ("lt64", 70_000, OutputTo::Both, None),
        ];
        for (name, rows, to, ot) in cases {
            let function = Prepared::from_function(&named::find(name).unwrap()).unwrap();
            let base = crate::ot::base_ot(None, Security::SemiHonest).unwrap();
            let side = |role, channel: &mut Channel| {
                let job = job(&function, role, to, ot);
                let own = named::find(name).unwrap().fields(role).to_vec();
                let row: Vec<BitVec> = own.iter().map(|field| BitVec::zeros(field.bits() as usize)).collect();
                job.run_marked(channel, 1, &*base, &vec![row; rows], &mut |_| ()).unwrap();
                channel.flush().unwrap();
                channel.stats().bytes_sent
            };
            let (garbler, evaluator) = memory::run(
                |channel| side(Owner::Garbler, channel),
                |channel| side(Owner::Evaluator, channel),
            );
            let link = LinkModel::LOOPBACK.into();
            let ways =
                job(&function, Owner::Garbler, to, ot).estimate(rows as u64, 1, &link, &Machine::REFERENCE);
            let [way] = &ways[..] else { panic!("{} ways", ways.len()) };
            assert_eq!(way.candidate.protocol, "batch");
            for (sent, told) in [(garbler, way.garbler_bytes), (evaluator, way.evaluator_bytes)] {
                let off = told as f64 / sent as f64 - 1.0;
                assert!(off.abs() < 0.03, "{name} {rows}: told {told}, sent {sent}");
            }
        }
    }

    /// A plan of several windows has the levels of each of them.
    #[test]
    fn rounds_of_a_large_circuit_are_foreseen() {
        let function = Prepared::from_function(&named::find("mul512").unwrap()).unwrap();
        let job = job(&function, Owner::Garbler, OutputTo::Both, None);
        let way = &job.estimate(2, 1, &LinkModel::LOOPBACK.into(), &Machine::REFERENCE)[0];
        let fitted = job.fitted(2).function;
        let levels = batch::Layout::new(fitted.plan(1), 2).rounds();
        assert!(levels > u64::from(fitted.circuit().stats().and_depth), "{levels}");
        let trips = levels / 2;
        assert!((trips..trips + 20).contains(&way.candidate.rounds), "{levels} {}", way.candidate.rounds);
    }

    /// Many gates take about a byte each, all included; rows of any number take bounded memory.
    #[test]
    fn many_rows_take_a_byte_a_gate_and_bounded_memory() {
        let function = Prepared::from_function(&named::find("lt64").unwrap()).unwrap();
        let job = job(&function, Owner::Garbler, OutputTo::Both, None);
        let link = LinkModel::LOOPBACK.into();
        let way = &job.estimate(1 << 20, 1, &link, &Machine::REFERENCE)[0];
        let each = way.candidate.bytes as f64 / (64.0 * f64::from(1 << 20));
        assert!(each < 1.2, "{each}");
        let (some, more) = (job.memory(1 << 20, 1), job.memory(1 << 30, 1));
        assert!(more < some * 2 && more < 512 << 20, "{some} {more}");
        // A form for few rows, and one for many.
        let depth = |rows| job.fitted(rows).function.circuit().stats().and_depth;
        assert_eq!((depth(10), depth(1 << 20)), (7, 64));
        assert!(std::ptr::eq(job.fitted(10).fitted(10).function, job.fitted(10).function));
    }

    #[test]
    fn nothing_settles_on_it_unasked() {
        let function = Prepared::from_function(&named::find("add8").unwrap()).unwrap();
        let job = Job { options: Options::default(), ..job(&function, Owner::Garbler, OutputTo::Both, None) };
        let link = LinkModel::LOOPBACK.into();
        let ways = job.estimate(1 << 20, 1, &link, &Machine::REFERENCE);
        assert!(!ways.is_empty() && ways.iter().all(|way| way.candidate.protocol != BATCH.name));
        assert!(transfers(1000, Some("nothing")).is_err());
    }
}
