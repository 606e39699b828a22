//! Correlations made ahead with the peer, and kept in a sealed file until a run of [`ot`](super::ot) takes
//! them out.

pub use super::ot::Role;
use super::{Course, Observer, Phase};
use crate::ot::Kind;
use crate::plan::{self, Candidate, Choice, Link, Machine, Pick, Request};
use crate::{Error, Result};
use std::io::{Seek, Write};
use tacit_crypto::Prg;
use tacit_net::{Agreement, Channel};
use tacit_ot::BaseOt;
use tacit_ot::silent::bcgikrs19::Code;
use tacit_store::pool::{self, Header, PoolKey};

/// A pool to make: one stream of correlated OTs.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// Which half this is.
    pub role: Role,
    /// What makes the correlations; both sides must say the same.
    pub pick: Pick,
    /// What of it was named; both sides must say the same.
    pub choice: Choice<'a>,
    /// How many; both sides must say the same.
    pub count: u64,
}

/// What makes pools, with the code where a protocol has several: a pool's header has the number, from 1, of one of them,
/// and none is ever taken out or moved.
const MAKERS: [(&str, &str); 8] = [
    ("iknp", ""),
    ("kos", ""),
    ("softspoken", "code groups-2"),
    ("softspoken", "code groups-4"),
    ("softspoken", "code groups-8"),
    ("ferret", ""),
    ("ferret-uni", ""),
    ("silent", ""),
];

/// What made a pool: its protocol, and the code where there are several; nothing where that is not recorded.
pub fn maker(header: &Header) -> Option<(&'static str, &'static str)> {
    MAKERS.get(usize::from(header.maker).checked_sub(1)?).copied()
}

/// The number of what makes a pool; 0 where it has none.
fn number_of(pick: &Pick) -> u8 {
    let (protocol, variant) = (pick.protocol.name, pick.extension().variant());
    let is = |(name, code): &(&str, &str)| *name == protocol && (code.is_empty() || *code == variant);
    MAKERS.iter().position(is).map_or(0, |at| at as u8 + 1)
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
            .with("protocol", self.pick.protocol.name)
            .with("base-ot", base.name())
            .with("kind", Kind::Cot.name())
            .with("count", self.count)
            .with("set", self.choice.set.unwrap_or("any"))
            .with("code", self.choice.code.unwrap_or(Code::Linear.name()))
    }

    /// Bytes of the file.
    pub fn file_length(&self) -> u64 {
        pool::file_length(self.count)
    }

    /// Bytes that a party holds at most: the correlations of a piece, and what the protocol works with.
    pub fn memory(&self) -> u64 {
        let request = super::ot::Job {
            transfers: crate::ot::Job { pick: self.pick.clone(), kind: Kind::Cot, count: self.count },
            role: self.role,
            security: self.pick.protocol.security,
        };
        request.memory(1)
    }

    /// What making it should cost on `link`, by this protocol with its best parameters.
    pub fn estimate(&self, link: &Link, machine: &Machine) -> Result<Vec<Candidate>> {
        let protocol = self.pick.protocol;
        let choice = Choice { protocol: Some(protocol.name), ..self.choice };
        let (count, security) = (self.count, protocol.security);
        plan::ot(&Request { count, kind: Kind::Cot, security, threads: 1, choice }, link, machine)
    }

    /// What the other side learns by making the pool.
    pub fn learns(&self) -> String {
        let what = "how many correlations you made, and nothing of your half";
        super::learned(self.pick.protocol.security, what)
    }

    /// Makes this side's half, and writes it to `out`, sealed with `key`: an empty file that the caller gives
    /// its name only after success.
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
        let made = pool::Made { security: self.pick.protocol.security, maker: number_of(&self.pick) };
        let count = self.count;
        let told = &mut |done| course.at(1, done, count);
        let none = || Error::Other("the protocol gave no source of OTs; please report it".into());
        Ok(match self.role {
            Role::Sender => {
                let mut cots = self.pick.senders(channel, base, &mut prg, 1)?;
                let source = cots.first_mut().ok_or_else(none)?;
                pool::make_sender(channel, &mut prg, source, made, count, key, out, told)?
            }
            Role::Receiver => {
                let mut cots = self.pick.receivers(channel, base, &mut prg, 1)?;
                let source = cots.first_mut().ok_or_else(none)?;
                pool::make_receiver(channel, &mut prg, source, made, count, key, out, told)?
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Security;

    #[test]
    fn every_protocol_that_makes_pools_has_a_number_of_its_own() {
        let mut seen = std::collections::BTreeSet::new();
        for name in crate::catalogue::names().into_iter().filter(|name| *name != "auto") {
            let protocol = crate::ot::protocol(name, Security::SemiHonest).unwrap();
            let codes = if name == "softspoken" { &["groups-2", "groups-4", "groups-8"][..] } else { &[""] };
            for code in codes {
                let choice =
                    Choice { code: Some(*code).filter(|code| !code.is_empty()), ..Choice::default() };
                let pick = protocol.pick(1 << 10, Security::SemiHonest, &choice).unwrap();
                let number = number_of(&pick);
                assert!(number > 0 && seen.insert(number), "{name} {code}");
                let (told, variant) = MAKERS[usize::from(number) - 1];
                assert_eq!((told, variant.trim_start_matches("code ")), (name, *code));
            }
        }
        assert_eq!(seen.len(), MAKERS.len());
    }
}
