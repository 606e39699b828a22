//! Evaluations of a [`Session`].

use super::Session;
use crate::catalogue::AUTHENTICATED;
use crate::job::eval::pool::Pool;
use crate::job::eval::{Evaluated, Job, Mode, Options, Rows, protocol_name, refuse_idle};
use crate::job::{Observer, long};
use crate::{Error, Result, Security};
use std::io::{Seek, Write};
use tacit_2pc::authenticated::{Header, Stored};
use tacit_2pc::circuit::named::{self, Function};
use tacit_2pc::circuit::value;
use tacit_2pc::wmk17::{State, StateHeader};
use tacit_2pc::{OutputTo, Owner, Prepared};
use tacit_crypto::BitVec;
use tacit_net::Stats;
use tacit_store::sealed::FileKey;

impl Session {
    /// Evaluates `job` on our `rows` of inputs, and tells `observer` how far it is; returns what it gave, and
    /// what passed.
    ///
    /// A malicious session takes malicious jobs only. Errors before anything is sent if there are more
    /// threads than rows.
    pub fn evaluate(
        &self,
        job: &Job<'_>,
        rows: &[Vec<BitVec>],
        observer: &dyn Observer,
    ) -> Result<(Evaluated, Stats)> {
        self.allow_level(job.security)?;
        let mut job = Job { options: job.options, ..*job };
        // Of the malicious ones that may be picked, one alone stands against a quantum computer.
        let picked = [job.options.protocol.is_some(), job.options.copies.is_some(), job.options.ot.is_some()];
        if self.post_quantum && job.security == Security::Malicious && picked == [false; 3] {
            job.options.protocol = Some(&AUTHENTICATED);
        }
        self.allow(job.options.protocol.map_or(protocol_name(job.security), |entry| entry.name))?;
        job.check()?;
        refuse_idle(self.asked_threads(), rows.len())?;
        let base = self.base()?;
        self.run(job.agreement(rows.len(), &*base), |opened| {
            job.run(opened.channels(), &*base, rows, observer)
        })
    }

    /// Evaluates a function too large to hold, `job`, on our `row` of inputs, on one thread; returns what it
    /// gave, and what passed. A malicious session takes malicious jobs only.
    pub fn evaluate_long(
        &self,
        job: &long::Job<'_>,
        row: &[BitVec],
        observer: &dyn Observer,
    ) -> Result<(Evaluated, Stats)> {
        self.allow_level(job.security)?;
        let mut job = long::Job { ..*job };
        if self.post_quantum && job.security == Security::Malicious && job.protocol.is_none() {
            job.protocol = Some(&AUTHENTICATED);
        }
        self.allow(job.protocol.map_or(protocol_name(job.security), |entry| entry.name))?;
        job.check()?;
        refuse_idle(self.asked_threads(), 1)?;
        let base = self.base()?;
        self.run(job.agreement(&*base), |opened| job.run(opened.channels(), &*base, row, observer))
    }

    /// Does what does not depend on inputs of one evaluation of `job` by cut-and-choose, and writes our
    /// state, sealed with `key`, to `out`: an empty file that the caller gives its name only after success.
    /// Returns what passed, too.
    pub fn prepare_evaluation(
        &self,
        job: &Job<'_>,
        key: &FileKey,
        out: &mut (impl Write + Seek),
    ) -> Result<(StateHeader, Stats)> {
        self.allow_halves(job)?;
        let base = self.base()?;
        let agreement = job.agreement_on(Mode::Offline, 1).with("base-ot", base.name());
        self.run(agreement, |opened| {
            let peer = opened.peer();
            job.prepare(opened.channel(), &*base, peer, key, out)
        })
    }

    /// Uses up a state of [`prepare_evaluation`](Self::prepare_evaluation) for our `row` of inputs; returns
    /// the outputs if we learn them, and what passed. Errors, and leaves the state as it was, if the peer's
    /// key is not the one that the state was made with.
    pub fn finish_evaluation(
        &self,
        job: &Job<'_>,
        state: State,
        row: &[BitVec],
    ) -> Result<(Option<Rows>, Stats)> {
        self.allow_halves(job)?;
        let (outputs, stats) = self.run(job.agreement_on(Mode::Online, 1), |opened| {
            state.require_peer(opened.peer())?;
            job.finish(opened.channel(), state, row)
        })?;
        Ok((outputs.map(|row| vec![row]), stats))
    }

    /// Makes our half of a pool of prepared gates with the peer, sealed with `key`, in `out`: an empty file
    /// that the caller gives its name only after success. Returns what passed, too.
    pub fn prepare_gates(
        &self,
        pool: &Pool,
        key: &FileKey,
        out: &mut (impl Write + Seek),
        observer: &dyn Observer,
    ) -> Result<(Header, Stats)> {
        pool.check()?;
        self.allow(AUTHENTICATED.name)?;
        refuse_idle(self.asked_threads(), 1)?;
        let base = self.base()?;
        self.run(pool.agreement(&*base), |opened| {
            let peer = opened.peer();
            pool.run(opened.channels(), &*base, peer, key, out, observer)
        })
    }

    /// Evaluates `job` on our `rows` of inputs with a pool of [`prepare_gates`](Self::prepare_gates), which
    /// is used up. Errors, and leaves the pool as it was, if it does not fit, or the peer's key is not the
    /// one that it was made with, or the peer has another.
    pub fn evaluate_with(
        &self,
        job: &Job<'_>,
        pool: Stored,
        rows: &[Vec<BitVec>],
        observer: &dyn Observer,
    ) -> Result<(Evaluated, Stats)> {
        self.allow_level(job.security)?;
        self.allow(AUTHENTICATED.name)?;
        refuse_idle(self.asked_threads(), 1)?;
        job.fits(&pool, rows.len())?;
        self.run(job.agreement_on(Mode::Pool, rows.len()), |opened| {
            pool.require_peer(opened.peer())?;
            job.run_with(opened.channels(), pool, rows, observer)
        })
    }

    fn allow_halves(&self, job: &Job<'_>) -> Result<()> {
        if job.security != Security::Malicious {
            return Err(Error::Parameter {
                name: "security",
                what: "an evaluation in two halves is a mode of wmk17, against a malicious peer".into(),
            });
        }
        refuse_idle(self.asked_threads(), 1)?;
        self.allow(protocol_name(job.security))
    }

    /// Evaluates the function `name` once: our side's fields as text (`0x…` or decimal, separated by commas),
    /// the outputs to both sides as hex.
    ///
    /// Errors if there is no such function or the text does not fit it, and as [`evaluate`](Self::evaluate).
    pub fn evaluate_named(&self, name: &str, role: Owner, input: &str) -> Result<Vec<String>> {
        let unknown = || Error::Usage(format!("there is no function {name}"));
        self.evaluate_function(&named::find(name).ok_or_else(unknown)?, role, input)
    }

    /// As [`evaluate_named`](Self::evaluate_named), for a function of the caller's own, such as
    /// [`Function::from_circuit`] makes of a circuit. Both sides must give the same circuit.
    pub fn evaluate_function(&self, function: &Function, role: Owner, input: &str) -> Result<Vec<String>> {
        let prepared = Prepared::from_function(function)?;
        let fields = function.fields(role);
        let row = value::parse(fields, input).map_err(|e| Error::Input(e.to_string()))?;
        let security = self.asked_security();
        let (output_to, options) = (OutputTo::Both, Options::default());
        let job = Job { function: &prepared, role, output_to, security, options };
        let (evaluated, _) = self.evaluate(&job, &[row], &())?;
        let first = evaluated.outputs.unwrap_or_default().into_iter().next().unwrap_or_default();
        Ok(function
            .outputs
            .iter()
            .zip(&first)
            .map(|(field, bits)| value::format(field, bits, value::Format::Hex))
            .collect())
    }
}
