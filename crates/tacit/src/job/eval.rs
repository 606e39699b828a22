//! Functions of two parties: rows of inputs, spread over a session's channels.

mod batch;
pub mod layout;
pub mod pool;
mod settle;
mod source;

pub use source::{FileOptions, PROGRAM, load, load_program, load_with};

pub(super) use settle::{Settled, by_link, measures, probe, receive_rate, size};

use super::{Course, Observer, Phase};
pub use crate::catalogue::protocol_name;
use crate::catalogue::{AUTHENTICATED, Entry, Start, WMK17, find};
use crate::ot::{AnyReceiver, AnySender, Choice, Pick, in_parallel, protocol};
use crate::plan::{self, EvalCandidate, EvalRequest, Link, Machine};
use crate::{Error, Result, Security};
use std::io::{Seek, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tacit_2pc::authenticated::buckets::{self, Level};
use tacit_2pc::authenticated::{self, Demand};
use tacit_2pc::semi_honest;
use tacit_2pc::wmk17::{self, Copies, Evaluator, Garbler, State, StateHeader};
use tacit_2pc::{OutputTo, Owner, Prepared};
use tacit_crypto::text::counted;
use tacit_crypto::{BitVec, Prg, hex};
use tacit_net::{Agreement, Channel, LinkModel};
use tacit_ot::BaseOt;
use tacit_ot::extension::kos::Setup;
use tacit_store::sealed::FileKey;

/// Bytes that a party holds, at most, to evaluate a circuit of so many gates with so many bits of inputs and
/// outputs, from the peaks of made-up circuits: the circuit and its plan, the labels of the rows worked on at
/// a time, of `wmk17` every copy's labels of inputs and outputs, and of `authenticated` the triples of a
/// window and what makes them.
pub fn memory(security: Security, gates: u64, bits: u64, rows: u64) -> u64 {
    let (each, window) = match security {
        Security::Malicious => {
            let level = Level::among(usize::try_from(rows).unwrap_or(usize::MAX));
            let copies =
                Copies::ALL.map(|copies| copies.at(level).total()).into_iter().max().unwrap_or(0) as u64;
            let together = gates.saturating_mul(rows).min(buckets::WINDOW as u64);
            (BYTES_COPY * copies, BYTES_SESSION + BYTES_TRIPLES * together)
        }
        Security::SemiHonest => (BYTES_ROW.saturating_mul(rows), 0),
    };
    (24u64 << 20)
        .saturating_add(window)
        .saturating_add(BYTES_GATE.saturating_mul(gates))
        .saturating_add(each.saturating_mul(bits))
}

/// A gate; a bit of a row of yao's, and of a copy of wmk17's.
const BYTES_GATE: u64 = 160;
const BYTES_ROW: u64 = 280;
const BYTES_COPY: u64 = 200;
/// A session of authenticated garbling, and a gate of a window, with the largest set of correlated OT.
const BYTES_SESSION: u64 = 24 << 20;
const BYTES_TRIPLES: u64 = 500;

/// The values of one party's fields, or of the outputs, row by row.
pub type Rows = Vec<Vec<BitVec>>;

/// A function, which side of it this is, and who learns what.
pub struct Job<'a> {
    /// The function; both sides' must be equal.
    pub function: &'a Prepared,
    /// Which side this is.
    pub role: Owner,
    /// Who learns the outputs; both sides must say the same.
    pub output_to: OutputTo,
    /// Against what to protect; both sides must say the same.
    pub security: Security,
    /// How; both sides must say the same.
    pub options: Options,
}

/// How a function is evaluated: nothing of it touches the result.
#[derive(Clone, Copy, Default, Debug)]
pub struct Options {
    /// The protocol; `None`: the one that is fastest on the link, as the evaluator measures it.
    pub protocol: Option<&'static Entry>,
    /// The copies of cut-and-choose; `None`: the fastest on the link, as the evaluator measures it.
    pub copies: Option<Copies>,
    /// The OT extension; `None`: the one that is best for few OTs.
    pub ot: Option<&'static Entry>,
}

/// The name of who learns the outputs.
pub const fn output_to_name(to: OutputTo) -> &'static str {
    match to {
        OutputTo::Garbler => "garbler",
        OutputTo::Evaluator => "evaluator",
        OutputTo::Both => "both",
    }
}

/// The phases of a run: what needs no input of it, and the rows.
const PHASES: &[Phase] = &[("setting up", "", 0.1), ("evaluating", "rows", 0.9)];
const SETUP: usize = 0;
const ROWS: usize = 1;

/// How far a run on one channel is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Everything that needs no input is done: the rows begin.
    Ready,
    /// So many more rows are done.
    Rows(usize),
}

/// What an evaluation gave.
pub struct Evaluated {
    /// The outputs of every row, if this side learns them.
    pub outputs: Option<Rows>,
    /// The short name of the protocol that gave them.
    pub protocol: &'static str,
    /// Why it was picked, where it was not named.
    pub why: Option<String>,
}

/// Who is told of the [`Step`]s of a channel's run.
pub type Tell<'a> = dyn FnMut(Step) + 'a;

/// Whether an evaluation goes from nothing to the output, or is one half of it.
#[derive(Clone, Copy)]
pub(crate) enum Mode {
    Whole,
    Offline,
    Online,
    /// With a pool of prepared gates.
    Pool,
}

/// Widths one after the other; of many, as an aggregate over rows has, their number and a hash.
fn named_widths(widths: &[u32]) -> String {
    const WRITTEN_OUT: usize = 256;
    let all = widths.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    match widths.len() {
        ..=WRITTEN_OUT => all,
        many => format!("{many} of them ({})", hex(&blake3::hash(all.as_bytes()).as_bytes()[..8])),
    }
}

impl Job<'_> {
    /// What both parties must agree on before they start.
    ///
    /// A built-in function stands there by its full name, a circuit of another source by its gates alone,
    /// which are compared in any case: what each side calls its file is its own affair.
    pub fn agreement(&self, rows: usize, base: &dyn BaseOt) -> Agreement {
        self.agreement_on(Mode::Whole, rows).with("base-ot", base.name())
    }

    pub(crate) fn agreement_on(&self, mode: Mode, rows: usize) -> Agreement {
        let circuit = self.fitted(rows).function.circuit();
        let digest = hex(&circuit.digest()[..16]);
        let (ours, theirs) = match self.role {
            Owner::Garbler => ("garbler", "evaluator"),
            Owner::Evaluator => ("evaluator", "garbler"),
        };
        let source = self.function.source().map(|digest| hex(&digest[..16]));
        let agreement = Agreement::new("eval", ours, theirs);
        let (agreement, rows) = match self.function.aggregate() {
            Some((aggregate, rows)) => (agreement.with("aggregate", aggregate.name()), rows),
            None => (agreement, rows),
        };
        let garblers = self.function.owners().iter().filter(|owner| **owner == Owner::Garbler).count();
        let (agreement, kind) = match source {
            Some(digest) => (agreement.with("program", digest), "a program"),
            // A built-in function and a program say whose their inputs are.
            None if self.function.name().is_none() => {
                (agreement.with("garbler-inputs", garblers), "a circuit file")
            }
            None => (agreement, ""),
        };
        agreement
            .with("protocol", self.protocol(mode).map_or("auto", |entry| entry.name))
            .with("function", self.function.name().unwrap_or(kind))
            .with("input widths", named_widths(&circuit.shape().inputs))
            .with("output widths", named_widths(&circuit.shape().outputs))
            // Behind the widths in the order of names, so that a difference of these is said first.
            .with("wiring", digest)
            .with("output-to", output_to_name(self.output_to))
            .with("rows", rows)
            .with("ot", self.options.ot.map_or("auto", |ot| ot.name))
            .with("copies", self.options.copies.map_or("auto".to_owned(), Copies::name))
            .with(
                "asked for",
                match mode {
                    Mode::Whole => "whole evaluation",
                    Mode::Offline => "offline half",
                    Mode::Online => "online half",
                    Mode::Pool => "evaluation with a pool",
                },
            )
    }

    /// The protocol, where it is settled before anything is measured: where it is asked for, where one alone
    /// serves, and by what else is asked for of cut-and-choose.
    fn protocol(&self, mode: Mode) -> Option<&'static Entry> {
        let Options { protocol, copies, ot } = self.options;
        if matches!(mode, Mode::Pool) {
            return Some(&AUTHENTICATED);
        }
        let wmk17 = copies.is_some() || ot.is_some() || !matches!(mode, Mode::Whole);
        protocol.or_else(|| match self.security {
            Security::SemiHonest => find(protocol_name(Security::SemiHonest)),
            Security::Malicious => wmk17.then_some(&WMK17),
        })
    }

    /// An error where the options do not go together.
    pub fn check(&self) -> Result<()> {
        let refuse = |what: String| Err(Error::Parameter { name: "protocol", what });
        let Some(entry) = self.options.protocol else { return Ok(()) };
        let Options { copies, ot, .. } = self.options;
        if entry.security != self.security {
            let security = crate::security_name(entry.security);
            return refuse(format!(
                "{} is only for {security} security; set that on both sides, or choose another protocol",
                entry.name
            ));
        }
        if entry.name != WMK17.name && copies.is_some() {
            return refuse(format!(
                "{} does not use copies; leave them out, or choose {}",
                entry.name, WMK17.name
            ));
        }
        if entry.name == AUTHENTICATED.name && ot.is_some() {
            return refuse(format!("{} uses ferret; leave the other OT extension out", entry.name));
        }
        Ok(())
    }

    /// Bytes that this side holds, at most, to evaluate `rows` rows on `threads` threads: see [`memory`].
    pub fn memory(&self, rows: usize, threads: usize) -> u64 {
        if self.is_batch() {
            return self.memory_of_batches(rows, threads);
        }
        let (gates, shape) = (self.function.circuit().stats().gates, self.function.circuit().shape());
        let bits = (shape.input_bits() + shape.output_bits()) as u64;
        let at_once = threads as u64 * rows.min(semi_honest::ROWS_AT_ONCE) as u64;
        memory(self.security, gates, bits, at_once)
    }

    /// What it would cost over `link`: every protocol of at least this security, the fastest first.
    pub fn estimate(&self, rows: u64, threads: usize, link: &Link, machine: &Machine) -> Vec<EvalCandidate> {
        let function = self.fitted(usize::try_from(rows).unwrap_or(usize::MAX)).function;
        let request = EvalRequest::new(function, self.output_to, self.security);
        let Options { copies, .. } = self.options;
        let protocol = self.options.protocol.map(|entry| entry.name);
        let ot = self.options.ot.map(|entry| entry.name);
        let request = EvalRequest { rows, threads, copies, protocol, ot, ..request };
        let request = if self.is_batch() { batch::in_levels(function, request) } else { request };
        plan::eval(&request, link, machine)
    }

    /// Bytes that pass, both directions together and at most: of the ways that the link may decide on, the
    /// most.
    fn bytes(&self, rows: u64, threads: usize) -> u64 {
        let ways = self.estimate(rows, threads, &LinkModel::LOOPBACK.into(), &Machine::REFERENCE);
        let ours = ways.iter().filter(|way| way.candidate.security == self.security);
        ours.map(|way| way.garbler_bytes + way.evaluator_bytes).max().unwrap_or(0)
    }

    /// Whether `side` learns the outputs.
    pub fn tells(&self, side: Owner) -> bool {
        tells(self.output_to, side)
    }

    /// What `side` learns of the other's inputs, in words: of a semi-honest job, if it keeps to the protocol.
    pub fn learns(&self, side: Owner) -> &'static str {
        learns(self.tells(side))
    }

    /// What the other side learns of our inputs, in words, for whom it is not settled which side that is.
    pub fn learns_by_role(&self) -> String {
        learns_by_role(self.output_to)
    }

    /// The other side than ours.
    pub fn peer(&self) -> Owner {
        match self.role {
            Owner::Garbler => Owner::Evaluator,
            Owner::Evaluator => Owner::Garbler,
        }
    }

    /// Runs this side on `channels`, each with its share of the rows, base OTs included, and tells the
    /// `observer` how far it is.
    ///
    /// An error if there are channels without a row, or options that do not go together.
    pub fn run(
        &self,
        channels: &mut [Channel],
        base: &(dyn BaseOt + Send + Sync),
        rows: &[Vec<BitVec>],
        observer: &dyn Observer,
    ) -> Result<Evaluated> {
        let lanes = channels.len();
        refuse_idle(lanes, rows.len())?;
        self.check()?;
        let (options, link, why) = self.settle(super::first(channels)?, rows.len() as u64, lanes)?;
        let job = Job { options, ..*self }.fitted(rows.len());
        let outputs = job.run_settled(channels, base, rows, &link, observer)?;
        let protocol = job.protocol(Mode::Whole).map_or("", |entry| entry.name);
        Ok(Evaluated { outputs, protocol, why })
    }

    fn run_settled(
        &self,
        channels: &mut [Channel],
        base: &(dyn BaseOt + Send + Sync),
        rows: &[Vec<BitVec>],
        link: &LinkModel,
        observer: &dyn Observer,
    ) -> Result<Option<Rows>> {
        let lanes = channels.len();
        let course = Course::begin(PHASES, channels, self.bytes(rows.len() as u64, lanes), observer);
        let (done, total) = (AtomicU64::new(0), rows.len() as u64);
        let share = |lane: usize| &rows[rows.len() * lane / lanes..rows.len() * (lane + 1) / lanes];
        let parts = in_parallel(channels, |lane, channel| {
            if lane == 0 {
                course.at(SETUP, 0, 0);
            }
            self.run_on(channel, base, share(lane), link, Level::among(lanes), &mut |step| match step {
                Step::Ready if lane == 0 => course.at(ROWS, 0, total),
                Step::Ready => {}
                Step::Rows(more) => {
                    let more = more as u64;
                    course.at(ROWS, done.fetch_add(more, Ordering::Relaxed) + more, total);
                }
            })
        })?;
        let parts: Option<Vec<Rows>> = parts.into_iter().collect();
        Ok(parts.map(|parts| parts.into_iter().flatten().collect()))
    }

    /// As [`run`](Self::run) on one of a job's so many channels; `tell` hears how far it is.
    pub fn run_marked(
        &self,
        channel: &mut Channel,
        channels: usize,
        base: &dyn BaseOt,
        rows: &[Vec<BitVec>],
        tell: &mut Tell<'_>,
    ) -> Result<Option<Rows>> {
        let (options, link, _) = self.settle(channel, rows.len() as u64, 1)?;
        let job = Job { options, ..*self }.fitted(rows.len());
        job.run_on(channel, base, rows, &link, Level::among(channels), tell)
    }

    /// With the protocol settled, over what both sides take to be the link.
    fn run_on(
        &self,
        channel: &mut Channel,
        base: &dyn BaseOt,
        rows: &[Vec<BitVec>],
        link: &LinkModel,
        level: Level,
        tell: &mut Tell<'_>,
    ) -> Result<Option<Rows>> {
        let mut prg = Prg::from_os();
        if self.security == Security::Malicious {
            return match self.protocol(Mode::Whole) {
                Some(entry) if entry.name == AUTHENTICATED.name => {
                    self.authenticated(channel, base, rows, (link, level), &mut prg, tell)
                }
                _ => self.cut_and_choose(channel, base, rows, level, &mut prg, tell),
            };
        }
        if self.is_batch() {
            return self.side_by_side(channel, base, rows, &mut prg, tell);
        }
        let outputs = match self.role {
            Owner::Garbler => {
                let mut sender = self.sender(channel, base, &mut prg)?(channel)?;
                tell(Step::Ready);
                semi_honest::garble(channel, &mut sender, self.function, rows, self.output_to, &mut prg)?
            }
            Owner::Evaluator => {
                let mut receiver = self.receiver(channel, base, &mut prg)?(channel)?;
                tell(Step::Ready);
                semi_honest::evaluate(channel, &mut receiver, self.function, rows, self.output_to)?
            }
        };
        tell(Step::Rows(rows.len()));
        Ok(outputs)
    }
}

impl Job<'_> {
    /// The options with the protocol and its copies settled, and the link and why they are, where the link
    /// decides.
    fn settle(
        &self,
        channel: &mut Channel,
        rows: u64,
        threads: usize,
    ) -> Result<(Options, LinkModel, Option<String>)> {
        let asked = self.protocol(Mode::Whole);
        let gates = self.function.circuit().stats().and.saturating_mul(rows);
        if let Some(protocol) = asked.filter(|protocol| !settle::measures(protocol, gates)) {
            let options = Options { protocol: Some(protocol), ..self.options };
            return Ok((options, LinkModel::LOOPBACK, None));
        }
        let Settled { protocol, copies, link, why } =
            by_link(channel, self.role, asked, self.probe(), &self.size(rows), |link| {
                self.estimate(rows, threads, link, &Machine::REFERENCE)
            })?;
        let why = asked.is_none().then_some(why);
        Ok((Options { protocol: Some(protocol), copies, ..self.options }, link, why))
    }

    /// What is evaluated, in words.
    fn size(&self, rows: u64) -> String {
        size(self.function.circuit().stats().and, rows)
    }

    /// All rows by authenticated garbling, over one set of base OTs.
    fn authenticated(
        &self,
        channel: &mut Channel,
        base: &dyn BaseOt,
        rows: &[Vec<BitVec>],
        (link, level): (&LinkModel, Level),
        prg: &mut Prg,
        tell: &mut Tell<'_>,
    ) -> Result<Option<Rows>> {
        let config = Demand::of(self.function).times(rows.len()).ferret(link, level);
        let session = authenticated::Session::setup(channel, self.role, base, config, prg)?;
        let mut session = session.over(link).at(level);
        tell(Step::Ready);
        let inputs: Vec<BitVec> = rows.iter().map(|row| BitVec::concat(row)).collect();
        let outputs =
            session.run_rows(channel, self.function, self.output_to, &inputs, || tell(Step::Rows(1)))?;
        channel.flush()?;
        let widths = &self.function.circuit().shape().outputs;
        Ok(outputs.map(|rows| rows.iter().map(|bits| split(bits, widths)).collect()))
    }

    /// Row after row by cut-and-choose over one set of base OTs.
    fn cut_and_choose(
        &self,
        channel: &mut Channel,
        base: &dyn BaseOt,
        rows: &[Vec<BitVec>],
        level: Level,
        prg: &mut Prg,
        tell: &mut Tell<'_>,
    ) -> Result<Option<Rows>> {
        let mut outputs = Vec::with_capacity(rows.len());
        match self.role {
            Owner::Garbler => {
                let (mut garbler, job) = self.garbler(channel, base, level, prg)?;
                tell(Step::Ready);
                for row in rows {
                    outputs.extend(garbler.run(channel, &job, &BitVec::concat(row), prg)?);
                    tell(Step::Rows(1));
                }
            }
            Owner::Evaluator => {
                let (mut evaluator, job) = self.evaluator(channel, base, level, prg)?;
                tell(Step::Ready);
                for row in rows {
                    outputs.extend(evaluator.run(channel, &job, &BitVec::concat(row), prg)?);
                    tell(Step::Rows(1));
                }
            }
        }
        // Whoever learns nothing has nothing of any row.
        let outputs = self.output_to.learned_by(self.role).then_some(outputs);
        let widths = &self.function.circuit().shape().outputs;
        Ok(outputs.map(|rows| rows.iter().map(|bits| split(bits, widths)).collect()))
    }

    /// The OT extension with parameters for as many OTs as a row takes.
    fn cot(&self) -> Result<Pick> {
        let cot = protocol(self.options.ot.map_or("auto", |ot| ot.name), self.security)?;
        let count = 4 * self.function.circuit().shape().input_bits() as u64 + 1024;
        cot.pick(count, self.security, &Choice::default())
    }

    /// A sender of correlated OT, as far as its setup goes without waiting.
    fn sender(&self, channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg) -> Result<Setup<AnySender>> {
        Ok(self.cot()?.extension().begin_sender(Start { channel, base, prg })?)
    }

    /// The counterpart of [`sender`](Self::sender).
    fn receiver(
        &self,
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
    ) -> Result<Setup<AnyReceiver>> {
        Ok(self.cot()?.extension().begin_receiver(Start { channel, base, prg })?)
    }

    fn with_copies(&self, copies: Copies, level: Level) -> wmk17::Job<'_> {
        wmk17::Job::new(self.function, self.output_to).with(copies, level)
    }

    /// P1 set up, and the job with the copies that the evaluator chose.
    fn garbler(
        &self,
        channel: &mut Channel,
        base: &dyn BaseOt,
        level: Level,
        prg: &mut Prg,
    ) -> Result<(Garbler<AnySender>, wmk17::Job<'_>)> {
        if self.options.copies.is_none() {
            let piece = vec![0; self.probe()];
            (0..settle::PIECES).try_for_each(|_| channel.send(&piece))?;
        }
        let setup = self.sender(channel, base, prg)?;
        let (garbler, copies) = match self.options.copies {
            Some(copies) => (Garbler::begun(setup), copies),
            None => {
                // The evaluator's choice stands behind its base OTs.
                let garbler = Garbler::new(setup(channel)?);
                let mut number = [0];
                channel.recv(&mut number)?;
                let copies = Copies::ALL.get(usize::from(number[0])).ok_or_else(|| {
                    Error::Peer(
                        "the evaluator chose an unknown number of copies; use the same release on both sides"
                            .into(),
                    )
                })?;
                (garbler, *copies)
            }
        };
        Ok((garbler, self.with_copies(copies, level)))
    }

    /// P2 set up, and the job with the copies that are fastest on the link.
    fn evaluator(
        &self,
        channel: &mut Channel,
        base: &dyn BaseOt,
        level: Level,
        prg: &mut Prg,
    ) -> Result<(Evaluator<AnyReceiver>, wmk17::Job<'_>)> {
        let rate = match self.options.copies {
            Some(_) => 0.0,
            None => receive_rate(channel, self.probe())?,
        };
        let evaluator = Evaluator::begun(self.receiver(channel, base, prg)?);
        let copies = self.options.copies.unwrap_or_else(|| {
            let link = Link { megabits: rate * 8e-6, round_trip: Duration::ZERO };
            EvalRequest::new(self.function, self.output_to, self.security).copies(&link)
        });
        if self.options.copies.is_none() {
            let number = Copies::ALL.iter().position(|known| *known == copies).unwrap_or_default();
            channel.send(&[number as u8])?;
        }
        Ok((evaluator, self.with_copies(copies, level)))
    }

    /// Bytes of a piece of the garbler's to measure the link with.
    fn probe(&self) -> usize {
        probe(self.function.circuit().stats().and)
    }

    /// Does on `channel` what does not depend on inputs, and writes our state, sealed with `key`, to `out`:
    /// an empty file that the caller gives its name only after success. One evaluation by cut-and-choose,
    /// with the `peer` of that session alone.
    pub fn prepare(
        &self,
        channel: &mut Channel,
        base: &dyn BaseOt,
        peer: Option<[u8; 32]>,
        key: &FileKey,
        out: &mut (impl Write + Seek),
    ) -> Result<StateHeader> {
        let mut prg = Prg::from_os();
        Ok(match self.role {
            Owner::Garbler => {
                let (mut garbler, job) = self.garbler(channel, base, Level::ALONE, &mut prg)?;
                garbler.prepare_state(channel, &job, peer, key, out, &mut prg)?
            }
            Owner::Evaluator => {
                let (mut evaluator, job) = self.evaluator(channel, base, Level::ALONE, &mut prg)?;
                evaluator.prepare_state(channel, &job, peer, key, out, &mut prg)?
            }
        })
    }

    /// Uses `state` up for our `row` of inputs; returns the outputs if we learn them.
    pub fn finish(&self, channel: &mut Channel, state: State, row: &[BitVec]) -> Result<Option<Vec<BitVec>>> {
        let job = self.with_copies(state.header().copies, Level::ALONE);
        let outputs = state.run(channel, &job, &BitVec::concat(row), &mut Prg::from_os())?;
        Ok(outputs.map(|bits| split(&bits, &self.function.circuit().shape().outputs)))
    }
}

/// Whether `side` learns the outputs.
pub(super) fn tells(output_to: OutputTo, side: Owner) -> bool {
    match side {
        Owner::Garbler => output_to.garbler(),
        Owner::Evaluator => output_to.evaluator(),
    }
}

/// What a side learns that is told the outputs, or is not.
pub(super) const fn learns(told: bool) -> &'static str {
    if told { "the outputs, and of your inputs what follows from them" } else { "nothing of your inputs" }
}

/// What the other side learns of our inputs, in words, for whom it is not settled which side that is.
pub(super) fn learns_by_role(output_to: OutputTo) -> String {
    match [Owner::Garbler, Owner::Evaluator].map(|side| learns(tells(output_to, side))) {
        [garbler, evaluator] if garbler == evaluator => garbler.to_owned(),
        [garbler, evaluator] => format!("as garbler {garbler}; as evaluator {evaluator}"),
    }
}

/// The values in bits of these widths.
pub(super) fn split(bits: &BitVec, widths: &[u32]) -> Vec<BitVec> {
    bits.split(widths.iter().map(|&width| width as usize))
}

/// Refuses more threads than rows: a row is not divided.
pub(crate) fn refuse_idle(threads: usize, rows: usize) -> Result<()> {
    if threads > rows.max(1) {
        return Err(Error::Parameter {
            name: "threads",
            what: format!(
                "{threads} for {rows}, and each thread needs a row of its own; use fewer threads",
                rows = counted(rows, "row")
            ),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Step as Told;
    use super::*;
    use std::sync::Mutex;
    use tacit_2pc::circuit::named::{self, Function};
    use tacit_2pc::circuit::{Aggregate, value};
    use tacit_net::{Traffic, memory};

    fn prepared(name: &str) -> Prepared {
        Prepared::from_function(&named::find(name).unwrap()).unwrap()
    }

    fn job(function: &Prepared, role: Owner, output_to: OutputTo, security: Security) -> Job<'_> {
        Job { function, role, output_to, security, options: Options::default() }
    }

    /// A field of the handshake has less than 64 KiB, also for an aggregate, which has inputs for every row.
    #[test]
    fn what_is_agreed_on_stays_short_for_many_rows() {
        let base = tacit_ot::base::default();
        let terms = |name: &str, rows: usize| {
            let whole = named::find(name).unwrap().over_rows(rows, Aggregate::Sum, false).unwrap();
            let function = Prepared::from_function(&whole).unwrap();
            let job = job(&function, Owner::Garbler, OutputTo::Both, Security::SemiHonest);
            job.agreement(1, &*base).parameters().clone()
        };
        let all = terms("lt8", 20_000);
        assert!(all.values().all(|value| value.len() < 1_000), "{all:?}");
        assert_ne!(all["input widths"], terms("lt16", 20_000)["input widths"]);
        assert_eq!(terms("lt8", 2)["input widths"], "8,8,8,8");
    }

    #[test]
    fn what_is_agreed_on_names_the_function_in_full_and_no_file() {
        let base = tacit_ot::base::default();
        let terms = |function: &Prepared| {
            let job = job(function, Owner::Garbler, OutputTo::Both, Security::Malicious);
            job.agreement(3, &*base).parameters().clone()
        };
        let (short, full, other) =
            (terms(&prepared("add")), terms(&prepared("add32")), terms(&prepared("sub32")));
        assert_eq!(short, full);
        assert_eq!((&*full["function"], &*other["function"], &*full["rows"]), ("add32", "sub32", "3"));
        let differing: Vec<&String> = full.keys().filter(|name| full[*name] != other[*name]).collect();
        assert_eq!(differing, ["function", "wiring"]);
        let circuit = named::find("add32").unwrap().circuit;
        let file =
            |name: &str| Prepared::from_function(&Function::from_circuit(name, circuit.clone())).unwrap();
        assert_eq!(terms(&file("ours.txt")), terms(&file("/home/b/theirs.txt")));
        assert_eq!(terms(&file("ours.txt"))["function"], "a circuit file");
        assert_eq!(terms(&file("ours.txt"))["wiring"], full["wiring"]);
        assert_eq!(full["wiring"].len(), 32);
    }

    #[test]
    fn who_learns_what_follows_from_the_output_rule() {
        let function = prepared("add8");
        for (to, garbler, evaluator) in [
            (OutputTo::Garbler, true, false),
            (OutputTo::Evaluator, false, true),
            (OutputTo::Both, true, true),
        ] {
            let job = job(&function, Owner::Evaluator, to, Security::Malicious);
            assert_eq!((job.tells(Owner::Garbler), job.tells(Owner::Evaluator)), (garbler, evaluator));
            assert_eq!(job.learns(job.peer()).contains("the outputs"), garbler, "{to:?}");
            let words = job.learns_by_role();
            assert_eq!(words.contains("as garbler nothing"), !garbler, "{words}");
            assert_eq!(words.contains("as evaluator nothing"), !evaluator, "{words}");
        }
    }

    /// Whoever learns outputs learns those of every row, by whichever protocol and on however many channels.
    #[test]
    fn all_rows_of_a_batch_run_whoever_learns_their_outputs() {
        let function = prepared("add8");
        let byte = |value: usize| vec![BitVec::from_bytes(&[value as u8], 8)];
        let ours: Vec<Vec<BitVec>> = (0..5).map(|row| byte(50 * row)).collect();
        let theirs: Vec<Vec<BitVec>> = (0..5).map(|row| byte(7 + row)).collect();
        let sums: Vec<Vec<BitVec>> = (0..5).map(|row| byte(51 * row + 7)).collect();
        let base = crate::ot::base_ot(None, Security::Malicious).unwrap();
        for entry in crate::catalogue::computations() {
            for to in [OutputTo::Garbler, OutputTo::Evaluator, OutputTo::Both] {
                for lanes in [1, 2] {
                    let options = Options { protocol: Some(entry), ..Options::default() };
                    let side = |role, rows: &[Vec<BitVec>], channels: &mut [Channel]| {
                        let job = Job { options, ..job(&function, role, to, entry.security) };
                        job.run(channels, &*base, rows, &()).unwrap().outputs
                    };
                    let pair = |_| memory::pair_with(tacit_net::SessionId([lanes as u8; 32]));
                    let (mut first, mut second): (Vec<_>, Vec<_>) = (0..lanes).map(pair).unzip();
                    let (garbler, evaluator) = std::thread::scope(|scope| {
                        let garbler = scope.spawn(|| side(Owner::Garbler, &ours, &mut first));
                        let evaluator = side(Owner::Evaluator, &theirs, &mut second);
                        (garbler.join().unwrap(), evaluator)
                    });
                    let what = format!("{} {to:?} {lanes}", entry.name);
                    assert_eq!(garbler, to.garbler().then(|| sums.clone()), "{what}");
                    assert_eq!(evaluator, to.evaluator().then(|| sums.clone()), "{what}");
                }
            }
        }
    }

    /// With two sessions a guess of either set would do, so each has one copy more: a side that takes its session
    /// for the only one is refused.
    #[test]
    fn each_of_several_sessions_of_cut_and_choose_is_surer() {
        let function = prepared("add8");
        let base = crate::ot::base_ot(None, Security::Malicious).unwrap();
        let row = [vec![BitVec::zeros(8)]];
        let run = |role, channels: usize, channel: &mut Channel| {
            let options = Options { copies: Some(Copies::STANDARD), ..Options::default() };
            let job = Job { options, ..job(&function, role, OutputTo::Both, Security::Malicious) };
            let done = job.run_marked(channel, channels, &*base, &row, &mut |_| ());
            done.map(|_| channel.stats().bytes_sent).map_err(|error| error.to_string())
        };
        let sent = |garbler: usize, evaluator: usize| {
            memory::run(
                |channel| run(Owner::Garbler, garbler, channel),
                |channel| run(Owner::Evaluator, evaluator, channel),
            )
        };
        let (alone, _) = sent(1, 1);
        let (among, _) = sent(2, 2);
        let ratio = among.unwrap() as f64 / alone.unwrap() as f64;
        assert!((1.02..1.06).contains(&ratio), "{ratio}");
        let (one, other) = sent(2, 1);
        let said = [one, other].map(|done| done.unwrap_err());
        assert!(said.iter().any(|said| said.contains("copies")), "{said:?}");
    }

    /// What a garbler says to an evaluator that measures the link and then picks that, or asks on if there is
    /// none.
    fn picked(function: &Prepared, asked: Option<&'static Entry>, rows: usize, name: Option<&str>) -> String {
        let bits = function.circuit().shape().inputs[0] as usize;
        let (garbler, _) = memory::run(
            |channel| {
                let base = crate::ot::base_ot(None, Security::Malicious).unwrap();
                let job = job(function, Owner::Garbler, OutputTo::Both, Security::Malicious);
                let job = Job { options: Options { protocol: asked, ..Options::default() }, ..job };
                let rows = vec![vec![BitVec::zeros(bits)]; rows];
                job.run(std::slice::from_mut(channel), &*base, &rows, &()).map(|_| ())
            },
            |channel| {
                let Some(name) = name else {
                    (0..100).try_for_each(|_| channel.send_u64(settle::ASKED))?;
                    channel.flush()?;
                    while channel.recv(&mut [0]).is_ok() {}
                    return Ok(());
                };
                let mut in_time = [0];
                while in_time == [0] {
                    channel.send_u64(settle::ASKED)?;
                    channel.recv(&mut in_time)?;
                }
                let job = job(function, Owner::Evaluator, OutputTo::Both, Security::Malicious);
                channel.recv(&mut vec![0; settle::PIECES * job.probe()])?;
                channel.send_u64(settle::PICKED)?;
                channel.send_sized(name.as_bytes())?;
                channel.send(&[0])?;
                channel.flush()
            },
        );
        garbler.unwrap_err().to_string()
    }

    /// An evaluator cannot have a garbler run less than it was asked for, nor hold it up.
    #[test]
    fn a_pick_of_what_was_not_asked_for_is_refused() {
        let function = prepared("add8");
        for name in ["yao", "kos", "nothing"] {
            let error = picked(&function, None, 1, Some(name));
            assert!(error.contains("chose a protocol that is unknown"), "{error}");
        }
        let error = picked(&function, None, 1, None);
        assert!(error.contains("never picks"), "{error}");
        // The link is measured for the correlated OT of many gates, although the protocol is settled.
        let function = prepared("aes128");
        for name in ["wmk17", "yao"] {
            let error = picked(&function, Some(&AUTHENTICATED), 41, Some(name));
            assert!(error.contains("was not asked for"), "{error}");
        }
    }

    /// Keeps what it is told: the bytes that pass and those expected, and the steps.
    #[derive(Default)]
    struct Witness {
        opened: Mutex<Option<(Traffic, u64)>>,
        steps: Mutex<Vec<Told>>,
    }

    impl Observer for Witness {
        fn opened(&self, traffic: &Traffic, expected: u64) {
            *self.opened.lock().unwrap() = Some((traffic.clone(), expected));
        }

        fn step(&self, step: &Told) {
            self.steps.lock().unwrap().push(*step);
        }
    }

    #[test]
    fn an_observer_hears_of_setup_and_of_every_row_and_what_will_pass_is_foreseen() {
        let function = prepared("checked-add16");
        let fields = |role| named::find("checked-add16").unwrap().fields(role).to_vec();
        let (garbler, evaluator) = (fields(Owner::Garbler), fields(Owner::Evaluator));
        let row = |fields: &[value::Field], text: &str| value::parse(fields, text).unwrap();
        let ours = ["1", "65535", "30000"].map(|text| row(&garbler, text));
        let theirs = ["2", "1", "30000"].map(|text| row(&evaluator, text));
        for security in [Security::SemiHonest, Security::Malicious] {
            let witnesses = [Witness::default(), Witness::default()];
            let run = |role, rows: &[Vec<BitVec>], channel: &mut Channel, witness: &Witness| {
                let base = crate::ot::base_ot(None, security).unwrap();
                let job = job(&function, role, OutputTo::Both, security);
                job.run(std::slice::from_mut(channel), &*base, rows, witness).unwrap().outputs.unwrap()
            };
            let (at_garbler, at_evaluator) = memory::run(
                |channel| run(Owner::Garbler, &ours, channel, &witnesses[0]),
                |channel| run(Owner::Evaluator, &theirs, channel, &witnesses[1]),
            );
            assert!(at_garbler == at_evaluator);
            let number =
                |bits: &BitVec| bits.iter().enumerate().map(|(i, bit)| u32::from(bit) << i).sum::<u32>();
            let outputs: Vec<Vec<u32>> =
                at_garbler.iter().map(|row| row.iter().map(number).collect()).collect();
            assert_eq!(outputs, [[3, 0], [0, 1], [60000, 0]]);
            for witness in witnesses {
                let (opened, steps) =
                    (witness.opened.into_inner().unwrap(), witness.steps.into_inner().unwrap());
                assert_eq!(steps[0].phase, "setting up");
                let rows: Vec<&Told> = steps.iter().filter(|step| step.phase == "evaluating").collect();
                assert_eq!((rows[0].done, rows[0].total, rows[0].unit), (0, 3, "rows"));
                assert_eq!(rows.last().unwrap().done, 3);
                assert!(steps.windows(2).all(|pair| pair[0].fraction <= pair[1].fraction));
                let (traffic, expected) = opened.unwrap();
                let ratio = traffic.bytes() as f64 / expected as f64;
                assert!((0.5..1.05).contains(&ratio), "{security:?}: {} of {expected}", traffic.bytes());
            }
        }
    }
}
