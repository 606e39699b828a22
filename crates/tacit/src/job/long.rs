//! Functions too large to hold: their gates are made, sent and used in one pass, in bounded memory.

use super::eval::{self, Evaluated, Settled, split};
use super::{Course, Observer, Phase};
use crate::catalogue::{AUTHENTICATED, BATCH, Entry, Start, WMK17, fields_in_words, find, protocol_name};
use crate::ot::{Choice, protocol};
use crate::plan::{self, EvalCandidate, EvalRequest, Link, Machine};
use crate::{Error, Result, Security};
use tacit_2pc::authenticated::buckets::Level;
use tacit_2pc::authenticated::{self, Demand};
use tacit_2pc::circuit::LongFunction;
use tacit_2pc::circuit::value::Field;
use tacit_2pc::semi_honest;
use tacit_2pc::wmk17::{self, Copies, Evaluator, Garbler, Streamed};
use tacit_2pc::{OutputTo, Owner};
use tacit_crypto::{BitVec, Prg};
use tacit_net::{Agreement, Channel, LinkModel};
use tacit_ot::BaseOt;

/// One evaluation of a long function.
pub struct Job<'a> {
    /// The function; both sides' must be equal.
    pub function: &'a LongFunction,
    /// Which side this is.
    pub role: Owner,
    /// Who learns the outputs; both sides must say the same.
    pub output_to: OutputTo,
    /// Against what to protect; both sides must say the same.
    pub security: Security,
    /// How; `None`: the protocol that is fastest on the link, as the evaluator measures it. Both sides must
    /// say the same.
    pub protocol: Option<&'static Entry>,
}

const PHASES: &[Phase] = &[("setting up", "", 0.01), ("evaluating", "AND gates", 0.99)];
const SETUP: usize = 0;
const EVALUATING: usize = 1;

/// What a party holds whatever the length, at most, and for each bit of inputs and outputs, all of which are
/// alive at once in a sort: from the peaks of runs.
const BYTES: u64 = 320 << 20;
const BYTES_BIT: u64 = 300;

impl Job<'_> {
    /// What both parties must agree on before they start.
    pub fn agreement(&self, base: &dyn BaseOt) -> Agreement {
        let (ours, theirs) = match self.role {
            Owner::Garbler => ("garbler", "evaluator"),
            Owner::Evaluator => ("evaluator", "garbler"),
        };
        Agreement::new("eval", ours, theirs)
            .with("protocol", self.settled().map_or("auto", |entry| entry.name))
            .with("function", &self.function.name)
            .with("wiring", &blake3::hash(self.function.program().identity().as_bytes()).to_hex()[..32])
            .with("output-to", eval::output_to_name(self.output_to))
            .with("rows", 1)
            .with("asked for", "streamed evaluation")
            .with("base-ot", base.name())
    }

    /// An error if the protocol gives another security.
    pub fn check(&self) -> Result<()> {
        match self.protocol {
            Some(entry) if entry.name == BATCH.name => {
                let what =
                    "batch keeps the circuit in memory, and this function is too large for that; use yao"
                        .into();
                Err(Error::Parameter { name: "protocol", what })
            }
            Some(entry) if entry.security != self.security => {
                let security = crate::security_name(entry.security);
                let what = format!(
                    "{} is only for {security} security; set that on both sides, or choose another protocol",
                    entry.name
                );
                Err(Error::Parameter { name: "protocol", what })
            }
            _ => Ok(()),
        }
    }

    /// The protocol, where it is settled before the link is measured.
    fn settled(&self) -> Option<&'static Entry> {
        self.protocol.or_else(|| match self.security {
            Security::SemiHonest => find(protocol_name(Security::SemiHonest)),
            Security::Malicious => None,
        })
    }

    /// What it would cost over `link`: every protocol of at least this security, the fastest first.
    pub fn estimate(&self, link: &Link, machine: &Machine) -> Vec<EvalCandidate> {
        let bits = |fields: &[Field]| fields.iter().map(|field| u64::from(field.bits())).sum();
        let request = EvalRequest {
            ands: self.function.ands,
            inputs: [bits(&self.function.garbler), bits(&self.function.evaluator)],
            outputs: bits(&self.function.outputs),
            output_to: self.output_to,
            rows: 1,
            threads: 1,
            security: self.security,
            copies: None,
            protocol: self.protocol.map(|entry| entry.name),
            levels: 0,
            width: 0,
            ot: None,
        };
        plan::eval(&request, link, machine)
    }

    /// Bytes that this side holds, at most, however many gates there are.
    pub fn memory(&self) -> u64 {
        let fields = [&self.function.garbler, &self.function.evaluator, &self.function.outputs];
        let bits: u64 = fields.into_iter().flatten().map(|field| u64::from(field.bits())).sum();
        BYTES + BYTES_BIT * bits
    }

    /// Whether `side` learns the outputs.
    pub fn tells(&self, side: Owner) -> bool {
        eval::tells(self.output_to, side)
    }

    /// What the other side learns of our inputs, in words.
    pub fn learns(&self) -> &'static str {
        let peer = match self.role {
            Owner::Garbler => Owner::Evaluator,
            Owner::Evaluator => Owner::Garbler,
        };
        eval::learns(self.tells(peer))
    }

    /// As [`learns`](Self::learns), for whom it is not settled which side that is.
    pub fn learns_by_role(&self) -> String {
        eval::learns_by_role(self.output_to)
    }

    /// Runs this side on the first of `channels` with our `row` of inputs, base OTs included, and tells the
    /// `observer` how far it is.
    pub fn run(
        &self,
        channels: &mut [Channel],
        base: &dyn BaseOt,
        row: &[BitVec],
        observer: &dyn Observer,
    ) -> Result<Evaluated> {
        self.check()?;
        let ands = self.function.ands;
        let asked = self.settled();
        let settled = match asked.filter(|protocol| !eval::measures(protocol, ands)) {
            Some(protocol) => {
                Settled { protocol, copies: None, link: LinkModel::LOOPBACK, why: String::new() }
            }
            None => {
                let ways = |link: &Link| self.estimate(link, &Machine::REFERENCE);
                let (piece, size) = (eval::probe(ands), eval::size(ands, 1));
                eval::by_link(super::first(channels)?, self.role, asked, piece, &size, ways)?
            }
        };
        let ways = self.estimate(&LinkModel::LOOPBACK.into(), &Machine::REFERENCE);
        let ours = ways.iter().filter(|way| way.candidate.protocol == settled.protocol.name);
        let bytes = ours.map(|way| way.garbler_bytes + way.evaluator_bytes).max().unwrap_or(0);
        let course = Course::begin(PHASES, channels, bytes, observer);
        course.at(SETUP, 0, 0);
        let tell = |done: u64| course.at(EVALUATING, done, ands);
        let channel = super::first(channels)?;
        let outputs = match settled.protocol.name {
            name if name == AUTHENTICATED.name => {
                self.authenticated(channel, base, row, &settled.link, tell)?
            }
            name if name == WMK17.name => self.cut_and_choose(channel, base, settled.copies, row, tell)?,
            _ if self.security == Security::SemiHonest => self.yao(channel, base, row, tell)?,
            name => return Err(Error::Other(format!("{name} streams no function"))),
        };
        channel.flush()?;
        let why = asked.is_none().then_some(settled.why);
        Ok(Evaluated { outputs: outputs.map(|row| vec![row]), protocol: settled.protocol.name, why })
    }

    fn authenticated(
        &self,
        channel: &mut Channel,
        base: &dyn BaseOt,
        row: &[BitVec],
        link: &LinkModel,
        tell: impl Fn(u64),
    ) -> Result<Option<Vec<BitVec>>> {
        let program = self.function.program();
        let widths = program.shape();
        let [garbler_inputs, evaluator_inputs] = [widths.inputs[0] as usize, widths.inputs[1] as usize];
        let demand = Demand { ands: self.function.ands as usize, garbler_inputs, evaluator_inputs };
        let config = demand.ferret(link, Level::ALONE);
        let mut prg = Prg::from_os();
        let session = authenticated::Session::setup(channel, self.role, base, config, &mut prg)?;
        let mut session = session.over(link);
        tell(0);
        let (owners, input) = (self.function.owners(), BitVec::concat(row));
        let bits = session.run_program(channel, program, &owners, self.output_to, &input, tell)?;
        Ok(bits.map(|bits| split(&bits, &widths.outputs)))
    }

    fn cut_and_choose(
        &self,
        channel: &mut Channel,
        base: &dyn BaseOt,
        copies: Option<Copies>,
        row: &[BitVec],
        tell: impl Fn(u64),
    ) -> Result<Option<Vec<BitVec>>> {
        let function = Streamed::new(|| self.function.program(), self.function.owners())?;
        let job = wmk17::Job::new(&function, self.output_to);
        let copies = copies.unwrap_or(job.copies);
        let job = wmk17::Job { copies, ..job };
        let (mut prg, input) = (Prg::from_os(), BitVec::concat(row));
        let bits = match self.role {
            Owner::Garbler => {
                let mut garbler = Garbler::setup(channel, base, &mut prg)?;
                tell(0);
                garbler.run(channel, &job, &input, &mut prg)?
            }
            Owner::Evaluator => {
                let mut evaluator = Evaluator::setup(channel, base, &mut prg)?;
                tell(0);
                evaluator.run(channel, &job, &input, &mut prg)?
            }
        };
        Ok(bits.map(|bits| split(&bits, &self.function.program().shape().outputs)))
    }

    fn yao(
        &self,
        channel: &mut Channel,
        base: &dyn BaseOt,
        row: &[BitVec],
        tell: impl Fn(u64),
    ) -> Result<Option<Vec<BitVec>>> {
        let (program, owners, mut prg) = (self.function.program(), self.function.owners(), Prg::from_os());
        let inputs = program.shape().input_bits() as u64 + 1024;
        let pick = protocol("auto", self.security)?.pick(inputs, self.security, &Choice::default())?;
        Ok(match self.role {
            Owner::Garbler => {
                let start = Start { channel: &mut *channel, base, prg: &mut prg };
                let mut sender = pick.extension().begin_sender(start)?(channel)?;
                tell(0);
                let to = self.output_to;
                semi_honest::garble_program(channel, &mut sender, program, &owners, row, to, &mut prg)?
            }
            Owner::Evaluator => {
                let start = Start { channel: &mut *channel, base, prg: &mut prg };
                let mut receiver = pick.extension().begin_receiver(start)?(channel)?;
                tell(0);
                semi_honest::evaluate_program(channel, &mut receiver, program, &owners, row, self.output_to)?
            }
        })
    }
}

/// The table of these functions in Markdown; the bytes are those of both directions, by `authenticated`.
pub fn table() -> String {
    let mut out = String::from(
        "| function | computes | garbler's | evaluator's | outputs | AND | bytes |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for name in LongFunction::names() {
        let Some(function) = LongFunction::find(&name) else { continue };
        let (output_to, security) = (OutputTo::Both, Security::Malicious);
        let protocol = Some(&AUTHENTICATED);
        let job = Job { function: &function, role: Owner::Garbler, output_to, security, protocol };
        let ways = job.estimate(&LinkModel::LOOPBACK.into(), &Machine::REFERENCE);
        let [garbler, evaluator, outputs] =
            [&function.garbler, &function.evaluator, &function.outputs].map(|fields| fields_in_words(fields));
        let (ands, bytes) = (function.ands, ways.first().map_or(0, |way| way.candidate.bytes));
        let about = function.about;
        out += &format!("| `{name}` | {about} | {garbler} | {evaluator} | {outputs} | {ands} | {bytes} |\n");
    }
    out
}
