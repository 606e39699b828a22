//! Functions of two parties: rows of inputs, spread over a session's channels.

use crate::ot::{in_parallel, protocol};
use crate::{Error, Result, Security, Session};
use tacit_2pc::circuit::named::Function;
use tacit_2pc::cut_and_choose::{self, Evaluator, Garbler};
use tacit_2pc::semi_honest::{self, OutputTo, Owner, Prepared};
use tacit_crypto::{BitVec, Prg};
use tacit_net::{Agreement, Channel, Stats};
use tacit_ot::BaseOt;

/// The protocol that runs for a security: Yao's with half-gates, or cut-and-choose with input recovery.
pub const fn protocol_name(security: Security) -> &'static str {
    match security {
        Security::SemiHonest => "yao",
        Security::Malicious => "wmk17",
    }
}

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
}

impl Job<'_> {
    /// What both parties must agree on before they start.
    pub fn agreement(&self, rows: usize, base: &dyn BaseOt) -> Agreement {
        let circuit = self.function.circuit();
        let digest: String = circuit.digest().iter().map(|byte| format!("{byte:02x}")).collect();
        let (ours, theirs) = match self.role {
            Owner::Garbler => ("garbler", "evaluator"),
            Owner::Evaluator => ("evaluator", "garbler"),
        };
        let to = match self.output_to {
            OutputTo::Garbler => "garbler",
            OutputTo::Evaluator => "evaluator",
            OutputTo::Both => "both",
        };
        let widths = |widths: &[u32]| widths.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        Agreement::new("eval", ours, theirs)
            .with("protocol", protocol_name(self.security))
            .with("input widths", widths(&circuit.shape().inputs))
            .with("output widths", widths(&circuit.shape().outputs))
            .with("function", digest)
            .with("output-to", to)
            .with("rows", rows)
            .with("base-ot", base.name())
    }

    /// Runs this side on `channels`, each with its share of the rows, base OTs included. Returns the outputs of every row
    /// if this side learns them.
    ///
    /// An error if there are channels without a row.
    pub fn run(
        &self,
        channels: &mut [Channel],
        base: &(dyn BaseOt + Send + Sync),
        rows: &[Vec<BitVec>],
    ) -> Result<Option<Rows>> {
        let lanes = channels.len();
        refuse_idle(lanes, rows.len())?;
        let share = |lane: usize| &rows[rows.len() * lane / lanes..rows.len() * (lane + 1) / lanes];
        let parts =
            in_parallel(channels, |lane, channel| self.run_marked(channel, base, share(lane), &mut |_| ()))?;
        let parts: Option<Vec<Rows>> = parts.into_iter().collect();
        Ok(parts.map(|parts| parts.into_iter().flatten().collect()))
    }

    /// As [`run`](Self::run) on one channel; `ready` is told when the setup is done and the rows begin.
    pub fn run_marked(
        &self,
        channel: &mut Channel,
        base: &dyn BaseOt,
        rows: &[Vec<BitVec>],
        ready: &mut dyn FnMut(&mut Channel),
    ) -> Result<Option<Rows>> {
        let mut prg = Prg::from_os();
        if self.security == Security::Malicious {
            return self.cut_and_choose(channel, base, rows, &mut prg, ready);
        }
        let cot = protocol("auto", Security::SemiHonest)?;
        Ok(match self.role {
            Owner::Garbler => {
                let mut sender = cot.senders(channel, base, &mut prg, 1)?.remove(0);
                ready(channel);
                semi_honest::garble(channel, &mut sender, self.function, rows, self.output_to, &mut prg)?
            }
            Owner::Evaluator => {
                let mut receiver = cot.receivers(channel, base, &mut prg, 1)?.remove(0);
                ready(channel);
                semi_honest::evaluate(channel, &mut receiver, self.function, rows, self.output_to)?
            }
        })
    }
}

impl Job<'_> {
    /// Row after row by cut-and-choose over one set of base OTs.
    fn cut_and_choose(
        &self,
        channel: &mut Channel,
        base: &dyn BaseOt,
        rows: &[Vec<BitVec>],
        prg: &mut Prg,
        ready: &mut dyn FnMut(&mut Channel),
    ) -> Result<Option<Rows>> {
        let job = cut_and_choose::Job::new(self.function, self.output_to);
        let outputs: Option<Vec<BitVec>> = match self.role {
            Owner::Garbler => {
                let mut garbler = Garbler::setup(channel, base, prg)?;
                ready(channel);
                let run = |row: &Vec<BitVec>| garbler.run(channel, &job, &join(row), prg);
                rows.iter().map(run).collect::<std::result::Result<_, _>>()?
            }
            Owner::Evaluator => {
                let mut evaluator = Evaluator::setup(channel, base, prg)?;
                ready(channel);
                let run = |row: &Vec<BitVec>| evaluator.run(channel, &job, &join(row), prg);
                rows.iter().map(run).collect::<std::result::Result<_, _>>()?
            }
        };
        let widths = &self.function.circuit().shape().outputs;
        Ok(outputs.map(|rows| rows.iter().map(|bits| split(bits, widths)).collect()))
    }
}

/// The bits of all values, one after the other.
fn join(values: &[BitVec]) -> BitVec {
    let mut bits = BitVec::zeros(values.iter().map(BitVec::len).sum());
    values.iter().flat_map(BitVec::iter).enumerate().for_each(|(i, bit)| bits.set(i, bit));
    bits
}

/// The converse of [`join`].
fn split(bits: &BitVec, widths: &[u32]) -> Vec<BitVec> {
    let mut start = 0;
    let value = |&width: &u32| {
        let mut value = BitVec::zeros(width as usize);
        (0..width as usize).for_each(|i| value.set(i, bits.get(start + i)));
        start += width as usize;
        value
    };
    widths.iter().map(value).collect()
}

/// Refuses more threads than rows: a row is not divided.
fn refuse_idle(threads: usize, rows: usize) -> Result<()> {
    if threads > rows.max(1) {
        return Err(Error::Usage(format!(
            "--threads {threads}: each thread takes rows of its own, and there are {rows}; give fewer threads"
        )));
    }
    Ok(())
}

impl Session {
    /// Evaluates `job` on our `rows` of inputs; returns the outputs if we learn them, and what passed.
    ///
    /// A malicious session takes malicious jobs only. Errors before anything is sent if there are more threads than rows.
    pub fn evaluate(&self, job: &Job<'_>, rows: &[Vec<BitVec>]) -> Result<(Option<Rows>, Stats)> {
        if self.asked_security() == Security::Malicious && job.security != Security::Malicious {
            return Err(Error::Usage(
                "yao protects against a semi-honest peer only; add --security semi-honest".into(),
            ));
        }
        self.allow(protocol_name(job.security))?;
        refuse_idle(self.asked_threads(), rows.len())?;
        let base = self.base()?;
        self.run(job.agreement(rows.len(), &*base), |opened| job.run(opened.channels(), &*base, rows))
    }

    /// Evaluates the function `name` once: our side's fields as text (`0x…` or decimal, separated by commas), the
    /// outputs to both sides as hex.
    ///
    /// Errors if there is no such function or the text does not fit it, and as [`evaluate`](Self::evaluate).
    pub fn evaluate_named(&self, name: &str, role: Owner, input: &str) -> Result<Vec<String>> {
        use tacit_2pc::circuit::{named, value};
        let unknown = || Error::Usage(format!("there is no function {name}"));
        let function: Function = named::find(name).ok_or_else(unknown)?;
        let prepared = Prepared::from_function(&function)?;
        let fields = semi_honest::fields(&function, role);
        let row = value::parse(fields, input).map_err(|e| Error::Input(e.to_string()))?;
        let security = self.asked_security();
        let job = Job { function: &prepared, role, output_to: OutputTo::Both, security };
        let (outputs, _) = self.evaluate(&job, &[row])?;
        let first = outputs.unwrap_or_default().into_iter().next().unwrap_or_default();
        Ok(function.outputs.iter().zip(&first).map(|(field, bits)| value::format(field, bits)).collect())
    }
}
