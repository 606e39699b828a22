//! What a run of VOLE, or of 1-out-of-p transfers, should cost: bytes by the messages of each field's protocol, time
//! by rates of the reference machine.

use super::{Field, Job, Kind, PIECE, subfield};
use crate::Result;
use crate::catalogue::{Assumption, SETUP_BYTES, SETUP_POINTS};
use crate::plan::{Candidate, Link, Machine};
use std::time::Duration;
use tacit_crypto::field::{F61, F128};
use tacit_ot::extension::softspoken::Groups;
use tacit_ot::extension::{iknp, kos};
use tacit_ot::silent::bcgikrs19::{Code, Config};
use tacit_ot::vole::{gf128, prime, subfield as small};
use tacit_ot::{BaseOt, Security};

/// The name of what makes all of it, as a table of costs has it.
const PROTOCOL: &str = "silent-vole";
/// Of two messages there are transfers without subfields.
const OF_TWO: &str = "silent";

/// A run, each of its correlations by field, each correlation that it starts from, and each message of a transfer, in
/// nanoseconds.
const RUN_NS: f64 = 1.0e6;
const GF128_NS: f64 = 90.0;
const SUBFIELD_NS: f64 = 110.0;
const P61_NS: f64 = 350.0;
const P128_NS: f64 = 550.0;
const SOURCE_NS: f64 = 10.0;
const MESSAGE_NS: f64 = 5.0;
/// Correlations that a run computes at least.
const FEWEST: u64 = 1 << 14;
/// Of the time the part that waits for memory; the rest is AES.
const GATHERS: f64 = 0.6;
/// What both sides exchange along with the base OTs: parameters, and seeds that they commit to.
const AGREED_BYTES: u64 = 160;

/// What the runs of a job take, one after the other.
#[derive(Default)]
struct Sum {
    bytes: u64,
    /// Correlations, or OTs, that they start from.
    sources: u64,
    runs: u64,
}

impl Sum {
    /// A run on correlations of IKNP or KOS.
    fn add(&mut self, sources: usize, bytes: usize, security: Security) {
        let extension = match security {
            Security::SemiHonest => iknp::bytes(sources),
            Security::Malicious => kos::bytes_by_hash(sources),
        };
        self.bytes += extension + bytes as u64;
        self.sources += sources as u64;
        self.runs += 1;
    }
}

impl Job {
    /// What the job should cost on `link`: by one protocol, so one candidate. An error as of [`check`](Job::check).
    pub fn estimate(&self, link: &Link, machine: &Machine) -> Result<Vec<Candidate>> {
        self.check()?;
        let whole = self.count / PIECE as u64;
        let (first, last) = (self.piece(PIECE)?, self.piece((self.count % PIECE as u64) as usize)?);
        let both = |of: fn(&Sum) -> u64| of(&first).saturating_mul(whole).saturating_add(of(&last));
        let (bytes, sources, runs) = (both(|sum| sum.bytes), both(|sum| sum.sources), both(|sum| sum.runs));
        let bytes = bytes.saturating_add(self.setup_bytes() + SETUP_BYTES as u64);
        let each = match self.kind {
            Kind::Vole(Field::Gf128) => GF128_NS,
            Kind::Vole(Field::Sub(_)) => SUBFIELD_NS,
            Kind::Vole(Field::P61) => P61_NS,
            Kind::Vole(Field::P128) => P128_NS,
            Kind::OneOf(p) => SUBFIELD_NS + MESSAGE_NS * p as f64,
        };
        let items = self.count.max(FEWEST.saturating_mul(runs)) as f64;
        let computing = runs as f64 * RUN_NS + items * each + sources as f64 * SOURCE_NS;
        let reference = Machine::REFERENCE;
        let slower =
            (1.0 - GATHERS) * machine.aes / reference.aes + GATHERS * machine.gather / reference.gather;
        let trips = self.trips(runs as f64);
        let nanoseconds = SETUP_POINTS * machine.point
            + computing * slower
            + bytes as f64 * 8e3 / link.megabits
            + trips * link.round_trip.as_secs_f64() * 1e9;
        let rests_on = [Assumption::DualLpn, Assumption::IdealCipher, Assumption::RandomOracle];
        Ok(vec![Candidate {
            protocol: if self.kind == Kind::OneOf(2) { OF_TWO } else { PROTOCOL },
            variant: self.variant(),
            security: self.security,
            time: Duration::from_secs_f64((nanoseconds / 1e9).min(1e15)),
            bytes,
            base_batches: 1,
            rounds: trips.ceil() as u64,
            assumptions: rests_on.map(Assumption::name).to_vec(),
        }])
    }

    /// Bytes that should pass from these base OTs, or 0 where nothing foresees it.
    pub(super) fn bytes(&self, base: &dyn BaseOt) -> u64 {
        let (link, machine) = (tacit_net::LinkModel::LOOPBACK.into(), Machine::REFERENCE);
        let best = self.estimate(&link, &machine).ok().and_then(|all| all.into_iter().next());
        best.map_or(0, |best| best.with_base(base, &link, &machine).bytes)
    }

    fn variant(&self) -> String {
        match self.kind {
            Kind::Vole(field) => field.title().to_owned(),
            Kind::OneOf(p) => format!("1 of {p}"),
        }
    }

    /// Beside the base OTs.
    fn setup_bytes(&self) -> u64 {
        AGREED_BYTES
            + match self.kind {
                Kind::Vole(Field::Gf128) => Groups::default().trees_bytes(),
                // What its hash is drawn from.
                Kind::OneOf(_) => 16,
                Kind::Vole(_) => 0,
            }
    }

    /// Round trips that are waited for, by counting rounds.
    fn trips(&self, runs: f64) -> f64 {
        match (self.kind, self.security) {
            (Kind::Vole(Field::P61 | Field::P128), _) => 2.0 + runs,
            (Kind::Vole(Field::Gf128), _) | (_, Security::Malicious) => 1.5 + runs,
            (_, Security::SemiHonest) => 1.5 + runs / 2.0,
        }
    }

    /// What a piece of `count` takes.
    fn piece(&self, count: usize) -> Result<Sum> {
        let mut sum = Sum::default();
        let security = self.security;
        match self.kind {
            _ if count == 0 => {}
            Kind::Vole(Field::Gf128) => {
                for run in gf128::base_cots(count, security) {
                    sum.bytes += Groups::default().bytes_by_hash(run, security);
                    sum.sources += run as u64;
                    sum.runs += 1;
                }
                sum.bytes += gf128::bytes(count, security) as u64;
            }
            Kind::Vole(Field::Sub(degree)) => sum.subfield(count, degree, security)?,
            Kind::Vole(Field::P61) => sum.prime(prime::ots::<F61>(count), prime::bytes::<F61>(count)),
            Kind::Vole(Field::P128) => sum.prime(prime::ots::<F128>(count), prime::bytes::<F128>(count)),
            Kind::OneOf(2) => {
                let config = Config { code: Code::Linear, security };
                sum.add(config.base_cots(count), config.bytes(count), security);
            }
            Kind::OneOf(p) => sum.subfield(count, p.ilog2() as u8, security)?,
        }
        Ok(sum)
    }
}

impl Sum {
    fn subfield(&mut self, count: usize, degree: u8, security: Security) -> Result<()> {
        let field = subfield(degree)?;
        for run in small::base_cots(count, field, security) {
            self.add(run, 0, security);
        }
        self.bytes += small::bytes(count, field, security) as u64;
        Ok(())
    }

    fn prime(&mut self, ots: impl Iterator<Item = [usize; 2]>, bytes: usize) {
        for parts in ots {
            parts.into_iter().for_each(|part| self.add(part, 0, Security::SemiHonest));
            // Both parts are of one run.
            self.runs -= 1;
        }
        self.bytes += bytes as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Inputs, Role, Sink};
    use super::*;
    use tacit_crypto::Block;
    use tacit_net::{Channel, memory};
    use tacit_ot::base;

    struct Nowhere;

    impl Sink for Nowhere {
        fn sent(&mut self, _: Option<Block>, _: &[Block]) -> Result<()> {
            Ok(())
        }

        fn received(&mut self, _: Inputs<'_>, _: &[Block]) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn foreseen_bytes_are_those_that_pass() {
        let link = Link { megabits: 100.0, round_trip: Duration::from_millis(10) };
        let both = [Security::SemiHonest, Security::Malicious];
        let mut kinds: Vec<(Kind, Security)> = Vec::new();
        for security in both {
            kinds.push((Kind::Vole(Field::Gf128), security));
            kinds.extend([2, 4, 8].map(|degree| (Kind::Vole(Field::Sub(degree)), security)));
            kinds.extend([2, 16, 256].map(|p| (Kind::OneOf(p), security)));
        }
        kinds.extend([Field::P61, Field::P128].map(|field| (Kind::Vole(field), Security::SemiHonest)));
        for (kind, security) in kinds {
            for count in [1000, 100_000] {
                let job = |role| Job { role, kind, count, security };
                let told = job(Role::Sender).estimate(&link, &Machine::REFERENCE).unwrap();
                let side = |role| {
                    move |channel: &mut Channel| {
                        let channels = std::slice::from_mut(channel);
                        job(role).run(channels, &*base::default(), &mut Nowhere, &()).unwrap();
                        channels[0].flush().unwrap();
                        channels[0].stats().bytes_sent
                    }
                };
                let (one, two) = memory::run(side(Role::Sender), side(Role::Receiver));
                let (told, sent) = (told[0].bytes, one + two);
                let off = told as f64 / sent as f64 - 1.0;
                assert!(off.abs() < 0.02, "{kind:?}, {count} {security:?}: told {told}, sent {sent}");
            }
        }
    }

    #[test]
    fn cost_grows_with_the_count_and_what_is_refused_has_none() {
        let link = Link { megabits: 100.0, round_trip: Duration::from_millis(10) };
        let job = |count, security| {
            let job = Job { role: Role::Sender, kind: Kind::Vole(Field::P61), count, security };
            job.estimate(&link, &Machine::REFERENCE)
        };
        let of = |count| job(count, Security::SemiHonest).unwrap().remove(0);
        let (none, few, many) = (of(0), of(1000), of(1 << 40));
        assert!(none.bytes < few.bytes && few.bytes < many.bytes && few.time < many.time);
        assert!(many.time.as_secs() > 1000);
        assert!(job(5, Security::Malicious).is_err());
    }
}
