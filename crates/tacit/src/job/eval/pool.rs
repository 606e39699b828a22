//! Gates made ahead with the peer by authenticated garbling, whatever their function, and kept in a sealed
//! file until one run takes them.

use super::super::{Course, Observer, Phase, first, learned};
use super::{Evaluated, Job, Rows, settle, split};
use crate::catalogue::AUTHENTICATED;
use crate::plan::{self, EvalCandidate, EvalRequest, Link, Machine};
use crate::{Error, Result, Security};
use std::io::{Seek, Write};
use tacit_2pc::authenticated::buckets::Level;
use tacit_2pc::authenticated::{Demand, Header, Session, Stored};
use tacit_2pc::{OutputTo, Owner};
use tacit_crypto::text::counted;
use tacit_crypto::{BitVec, Prg};
use tacit_net::{Agreement, Channel, LinkModel};
use tacit_ot::BaseOt;
use tacit_store::sealed::FileKey;

/// A pool to make: what so many rows of one size take.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    /// Which half this is.
    pub role: Owner,
    /// AND gates and input bits of a row, at most; both sides must say the same.
    pub one: Demand,
    /// Rows; both sides must say the same.
    pub rows: usize,
}

const PHASES: [Phase; 1] = [("preparing", "gates", 1.0)];
const SERVING: [Phase; 1] = [("evaluating", "rows", 1.0)];

/// Bytes that a gate takes in memory, and those of a window that is being made.
const BYTES_PREPARED: u64 = 128;
const BYTES_WINDOW: u64 = 256 << 20;
/// Bytes of a mask of an input bit.
const BYTES_MASK: u64 = 32;

impl Pool {
    /// What both parties must agree on before they start.
    pub fn agreement(&self, base: &dyn BaseOt) -> Agreement {
        let (ours, theirs) = match self.role {
            Owner::Garbler => ("garbler", "evaluator"),
            Owner::Evaluator => ("evaluator", "garbler"),
        };
        Agreement::new("eval pool", ours, theirs)
            .with("protocol", AUTHENTICATED.name)
            .with("base-ot", base.name())
            .with("gates", self.one.ands)
            .with("inputs of the garbler", self.one.garbler_inputs)
            .with("inputs of the evaluator", self.one.evaluator_inputs)
            .with("rows", self.rows)
    }

    /// An error where there is nothing to make, or more than a pool holds.
    pub fn check(&self) -> Result<()> {
        let none = self.one.ands == 0 || self.rows == 0;
        if none || self.length().is_none() {
            let what = "a pool has from 1 to 2^28 AND gates in all its rows".to_owned();
            return Err(Error::Parameter { name: "gates", what });
        }
        Ok(())
    }

    /// Bytes of the file; `None` for more than a pool holds.
    pub fn length(&self) -> Option<u64> {
        Header::of(self.role, self.one, self.rows).file_length()
    }

    /// Bytes that a party holds at most, to make it or to use it.
    pub fn memory(&self) -> u64 {
        memory(self.one, self.rows)
    }

    /// Bytes that pass, both directions together: those of a run of that size, beside its tables.
    pub fn bytes(&self) -> u64 {
        let ways = self.estimate(&LinkModel::LOOPBACK.into());
        let all = ways.first().map_or(0, |way| way.garbler_bytes + way.evaluator_bytes);
        all.saturating_sub(32 * self.gates())
    }

    /// AND gates of all rows.
    fn gates(&self) -> u64 {
        (self.one.ands as u64).saturating_mul(self.rows as u64)
    }

    /// What a run of that size costs over `link`.
    fn estimate(&self, link: &Link) -> Vec<EvalCandidate> {
        let Demand { ands, garbler_inputs, evaluator_inputs } = self.one;
        let request = EvalRequest {
            ands: ands as u64,
            inputs: [garbler_inputs as u64, evaluator_inputs as u64],
            outputs: 0,
            output_to: OutputTo::Both,
            rows: self.rows as u64,
            threads: 1,
            security: Security::Malicious,
            copies: None,
            protocol: Some(AUTHENTICATED.name),
            levels: 0,
            width: 0,
            ot: None,
        };
        plan::eval(&request, link, &Machine::REFERENCE)
    }

    /// The link, as both sides take it: the evaluator measures it where the gates then take far longer.
    fn link(&self, channel: &mut Channel) -> Result<LinkModel> {
        if !settle::measures(&AUTHENTICATED, self.gates()) {
            return Ok(LinkModel::LOOPBACK);
        }
        let (piece, size) = (settle::probe(self.gates()), settle::size(self.gates(), 1));
        Ok(settle::by_link(channel, self.role, Some(&AUTHENTICATED), piece, &size, |link| {
            self.estimate(link)
        })?
        .link)
    }

    /// What the other side learns by making it.
    pub fn learns(&self) -> String {
        learned(Security::Malicious, "how many gates and inputs you prepared, and nothing of your half")
    }

    /// Makes this side's half with the `peer` of the session alone, and writes it to `out`, sealed with
    /// `key`: an empty file that the caller gives its name only after success.
    pub fn run(
        &self,
        channels: &mut [Channel],
        base: &dyn BaseOt,
        peer: Option<[u8; 32]>,
        key: &FileKey,
        out: &mut (impl Write + Seek),
        observer: &dyn Observer,
    ) -> Result<Header> {
        self.check()?;
        let course = Course::begin(&PHASES, channels, self.bytes(), observer);
        let total = self.gates();
        course.at(0, 0, total);
        let channel = first(channels)?;
        let mut prg = Prg::from_os();
        let link = self.link(channel)?;
        let config = self.one.times(self.rows).ferret(&link, Level::ALONE);
        let session = Session::setup(channel, self.role, base, config, &mut prg)?.over(&link);
        let header = session.store(channel, self.one, self.rows, peer, key, out, &mut prg)?;
        course.at(0, total, total);
        Ok(header)
    }
}

/// Bytes that a party holds at most to work with a pool of this size.
fn memory(one: Demand, rows: usize) -> u64 {
    let all = |n: usize| (n as u64).saturating_mul(rows as u64);
    let masks = all(one.garbler_inputs).saturating_add(all(one.evaluator_inputs));
    BYTES_WINDOW
        .saturating_add(BYTES_PREPARED.saturating_mul(all(one.ands)))
        .saturating_add(BYTES_MASK.saturating_mul(masks))
}

impl Job<'_> {
    /// Bytes that this side holds, at most, to evaluate with this pool.
    pub fn memory_with(&self, pool: &Stored) -> u64 {
        memory(pool.header().one, pool.header().rows).saturating_add(self.memory(1, 1))
    }

    /// An error, before anything is sent, where `pool` is not for this side, or for less than our `rows`.
    pub fn fits(&self, pool: &Stored, rows: usize) -> Result<()> {
        let header = pool.header();
        let (have, need) = (header.one, Demand::of(self.function));
        if header.role != self.role {
            let [ours, wanted] = [header.role, self.role].map(|role| match role {
                Owner::Garbler => "garbler",
                Owner::Evaluator => "evaluator",
            });
            return Err(Error::Input(format!("the pool is the {ours}'s half; give the {wanted}'s")));
        }
        if !have.covers(need) {
            return Err(Error::Input(format!(
                "the pool is for functions of at most {}, {} of the garbler and {} of the \
                 evaluator, and this one has {}, {} and {}; make one for it on both sides",
                counted(have.ands, "AND gate"),
                counted(have.garbler_inputs, "input bit"),
                have.evaluator_inputs,
                need.ands,
                need.garbler_inputs,
                need.evaluator_inputs
            )));
        }
        if rows > header.rows {
            return Err(Error::Input(format!(
                "the pool is for at most {}, and there are {rows}; make one for them on both sides",
                counted(header.rows, "row")
            )));
        }
        Ok(())
    }

    /// Uses `pool` up for our `rows` of inputs, on the first of `channels`.
    pub fn run_with(
        &self,
        channels: &mut [Channel],
        pool: Stored,
        rows: &[Vec<BitVec>],
        observer: &dyn Observer,
    ) -> Result<Evaluated> {
        self.fits(&pool, rows.len())?;
        let course = Course::begin(&SERVING, channels, 0, observer);
        let (mut done, total) = (0, rows.len() as u64);
        course.at(0, 0, total);
        let channel = first(channels)?;
        let inputs: Vec<BitVec> = rows.iter().map(|row| BitVec::concat(row)).collect();
        let each = || {
            done += 1;
            course.at(0, done, total);
        };
        let (to, mut prg) = (self.output_to, Prg::from_os());
        let outputs = pool.run_rows(channel, self.function, to, &inputs, &mut prg, each)?;
        channel.flush()?;
        let widths = &self.function.circuit().shape().outputs;
        let split = |rows: Vec<BitVec>| -> Rows { rows.iter().map(|bits| split(bits, widths)).collect() };
        let why = Some("by a pool of prepared gates".to_owned());
        Ok(Evaluated { outputs: outputs.map(split), protocol: AUTHENTICATED.name, why })
    }
}
