//! What an intersection would cost.

use super::places::Place;
use super::{Job, Protocol, Reveal, folded, shared};
use crate::catalogue::{Candidate, Entry, Link, Machine, PAXOS, VOLE, of_fold, sharing};
use crate::job::eval;
use crate::{Error, Result};
use tacit_2pc::batch::fold::Fold;
use tacit_2pc::circuit::Builder;
use tacit_2pc::{OutputTo, Owner};
use tacit_ot::Security;
use tacit_psi::cuckoo;

impl Job {
    /// What a run with `keys` on each side would cost, by every protocol that serves, the one that would run
    /// first.
    ///
    /// An error if the sets are larger than a protocol takes.
    pub fn estimate(&self, keys: u64, link: &Link, machine: &Machine) -> Result<Vec<Candidate>> {
        let cost = |entry: &Entry, security| entry.intersection_cost(keys, security, link, machine);
        if self.reveal.is_aggregate() {
            let shares = self.each.is_some() || matches!(self.reveal, Reveal::Of(..) | Reveal::Shares);
            let candidate = match shares {
                true => sharing(keys, link, machine)?,
                false => cost(self.aggregates_by(), self.security)?,
            };
            return Ok(vec![match self.after(keys, link, machine)? {
                Some(after) => Candidate {
                    variant: after.variant,
                    time: candidate.time + after.time,
                    bytes: candidate.bytes + after.bytes,
                    rounds: candidate.rounds + after.rounds,
                    base_batches: candidate.base_batches + after.base_batches,
                    ..candidate
                },
                None => candidate,
            }]);
        }
        let vole = || Ok(vec![cost(&VOLE, self.security)?]);
        let paxos = || match self.security {
            Security::Malicious => Ok(vec![cost(&PAXOS, Security::Malicious)?]),
            weaker => Ok(vec![cost(&PAXOS, weaker)?, cost(&PAXOS, Security::Malicious)?]),
        };
        match (self.protocol, self.fastest(keys, keys, link)) {
            _ if self.reveal != Reveal::Rows => vole(),
            (Protocol::Vole, _) => vole(),
            (Protocol::Paxos, _) => paxos(),
            (Protocol::Auto, Protocol::Vole) => Ok([vole()?, paxos()?].concat()),
            (Protocol::Auto, _) => Ok([paxos()?, vole()?].concat()),
        }
    }

    /// What computes a number on the shares of circuit PSI, if anything does, with `keys` on each side.
    fn after(&self, keys: u64, link: &Link, machine: &Machine) -> Result<Option<Candidate>> {
        let places = cuckoo::bins(usize::try_from(keys).unwrap_or(usize::MAX));
        if keys == 0 {
            // Nothing runs: the result is that of no keys.
            return Ok(None);
        }
        if !folded::garbled(keys, self.function()) {
            let fold = self.fold(places)?;
            let cost = |fold| of_fold(&fold, link, machine);
            let named = |cost| Candidate { variant: folded::ROWS_FOLDED.into(), ..cost };
            return Ok(fold.map(cost).transpose()?.map(named));
        }
        let then = |b: &mut Builder, places: &[Place]| match (&self.reveal, &self.each) {
            (Reveal::Of(statistic, _), _) => Ok(statistic.compute(b, places, 0, self.min_matches)),
            (_, Some(each)) => each.compute(b, places, self.min_matches, self.bounds),
            _ => Ok(Vec::new()),
        };
        if self.each.is_none() && !matches!(self.reveal, Reveal::Of(..)) {
            return Ok(None);
        }
        let function = shared::prepared(shared::build(places, [false; 2], &then)?)?;
        let job = eval::Job {
            function: &function,
            role: Owner::Garbler,
            output_to: OutputTo::Both,
            security: Security::SemiHonest,
            options: eval::Options::default(),
        };
        let way = job.estimate(1, 1, link, machine).into_iter().next();
        let way = way.ok_or_else(|| Error::Other("no protocol garbles the circuit".into()))?;
        Ok(Some(Candidate { variant: folded::ONE_CIRCUIT.into(), ..way.candidate }))
    }

    /// What folds so many places.
    fn fold(&self, places: usize) -> Result<Option<Fold>> {
        let (silent, least) = ([false; 2], self.min_matches);
        Ok(match (&self.reveal, &self.each) {
            (Reveal::Of(statistic, _), _) => Some(statistic.fold(places, 0, silent, least)?),
            (Reveal::Shares, Some(each)) => Some(each.fold(places, silent, least, self.bounds)?),
            _ => None,
        })
    }
}
