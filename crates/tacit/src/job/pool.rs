//! Correlations made ahead with the peer, and kept in a sealed file until a run of [`ot`](super::ot) takes them out.

pub use super::ot::Role;
use super::{Course, Observer, Phase};
use crate::ot::{Kind, Protocol, Tuning};
use crate::plan::{self, Candidate, Choice, Link, Machine, Request};
use crate::{Error, Result};
use std::io::{Seek, Write};
use tacit_crypto::Prg;
use tacit_net::{Agreement, Channel};
use tacit_ot::BaseOt;
use tacit_store::pool::{self, Header, PoolKey};

/// A pool to make: one stream of correlated OTs.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Which half this is.
    pub role: Role,
    /// What makes the correlations; both sides must say the same.
    pub protocol: &'static Protocol,
    /// Parameters of the silent protocols; both sides must say the same.
    pub tuning: Tuning,
    /// The LPN set that was named, if one was; both sides must say the same.
    pub set: Option<&'a str>,
    /// How many; both sides must say the same.
    pub count: u64,
}

const PHASES: [Phase; 2] = [("setting up", "", 0.02), ("pool", "OT", 0.98)];

impl Job<'_> {
    /// What both parties must agree on before they start.
    pub fn agreement(&self, base: &dyn BaseOt) -> Agreement {
        let (ours, theirs) = match self.role {
            Role::Sender => (Role::Sender, Role::Receiver),
            Role::Receiver => (Role::Receiver, Role::Sender),
        };
        Agreement::new("ot pool", ours.name(), theirs.name())
            .with("protocol", self.protocol.name)
            .with("base-ot", base.name())
            .with("kind", Kind::Cot.name())
            .with("count", self.count)
            .with("set", self.set.unwrap_or("any"))
            .with("code", self.tuning.silent.code.name())
    }

    /// Bytes of the file.
    pub fn file_length(&self) -> u64 {
        pool::file_length(self.count)
    }

    /// Bytes that a party holds at most: the correlations of a piece, and what the protocol works with.
    pub fn memory(&self) -> u64 {
        let request = super::ot::Job {
            transfers: crate::ot::Job {
                protocol: self.protocol,
                kind: Kind::Cot,
                count: self.count,
                tuning: self.tuning,
            },
            role: self.role,
            security: self.protocol.security,
        };
        request.memory(1)
    }

    /// What making it should cost on `link`, by this protocol with its best parameters.
    pub fn estimate(&self, link: &Link, machine: &Machine) -> Result<Vec<Candidate>> {
        let choice = Choice { protocol: Some(self.protocol.name), set: self.set, ..Choice::default() };
        let (count, security) = (self.count, self.protocol.security);
        plan::ot(&Request { count, kind: Kind::Cot, security, threads: 1, choice }, link, machine)
    }

    /// What the other side learns by making the pool.
    pub fn learns(&self) -> String {
        let what = "how many correlations we made, and nothing of our half";
        super::learned(self.protocol.security, what)
    }

    /// Makes this side's half, and writes it to `out`, sealed with `key`: an empty file that the caller gives its
    /// name only after success.
    pub fn run(
        &self,
        channels: &mut [Channel],
        base: &dyn BaseOt,
        key: &PoolKey,
        out: &mut (impl Write + Seek),
        observer: &dyn Observer,
    ) -> Result<Header> {
        let link = Link::from(tacit_net::LinkModel::LOOPBACK);
        let foreseen = self.estimate(&link, &Machine::REFERENCE).ok().and_then(|all| all.into_iter().next());
        let course = Course::begin(&PHASES, channels, foreseen.map_or(0, |cost| cost.bytes), observer);
        course.at(0, 0, 0);
        let channel = super::first(channels)?;
        let mut prg = Prg::from_os();
        let (security, count, tuning) = (self.protocol.security, self.count, self.tuning);
        let told = &mut |done| course.at(1, done, count);
        let none = || Error::Other("the protocol gave no source of OTs; please report it".into());
        Ok(match self.role {
            Role::Sender => {
                let mut cots = self.protocol.senders_with(channel, base, &mut prg, 1, tuning)?;
                let source = cots.first_mut().ok_or_else(none)?;
                pool::make_sender(channel, &mut prg, source, security, count, key, out, told)?
            }
            Role::Receiver => {
                let mut cots = self.protocol.receivers_with(channel, base, &mut prg, 1, tuning)?;
                let source = cots.first_mut().ok_or_else(none)?;
                pool::make_receiver(channel, &mut prg, source, security, count, key, out, told)?
            }
        })
    }
}
