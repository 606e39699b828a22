//! Base OTs: OT from nothing.

use super::Assumption::{DiffieHellman, ModuleLwe, RandomOracle};
use super::cost::{Machine, SETUP_POINTS};
use super::{Entry, Runs, floor};
use tacit_ot::BaseOt;
use tacit_ot::Security::{Malicious, SemiHonest};
use tacit_ot::base::{co15, csw20, mr19, mrr21, roted};

/// Base OT of Chou and Orlandi, which is safe against a malicious peer only where nothing follows.
pub static CO15: Entry = Entry {
    name: co15::NAME,
    security: SemiHonest,
    note: "semi-honest or run alone",
    runs: Runs::BaseOt(|| Box::new(co15::Co15)),
    ..MRR21
};

/// Base OT of Canetti, Sarkar and Wang.
pub(super) static CSW20: Entry = Entry {
    name: csw20::NAME,
    note: "a malicious sender may guess choice bits and is found out by the first wrong guess",
    runs: Runs::BaseOt(|| Box::new(csw20::Csw20)),
    ..MRR21
};

/// Base OT of Masny and Rindal.
pub static MR19: Entry = Entry { name: mr19::NAME, runs: Runs::BaseOt(|| Box::new(mr19::Mr19)), ..MRR21 };

/// Base OT of McQuoid, Rosulek and Roy: the default.
pub(super) static MRR21: Entry = Entry {
    name: mrr21::NAME,
    security: Malicious,
    assumptions: &[DiffieHellman, RandomOracle],
    needs_base_ot: false,
    instead: roted::NAME,
    note: "",
    floor: floor::two_points,
    runs: Runs::BaseOt(|| Box::new(mrr21::Mrr21)),
};

/// ROTed: base OT from lattices.
pub static ROTED: Entry = Entry {
    name: roted::NAME,
    assumptions: &[ModuleLwe, RandomOracle],
    instead: "",
    note: "a malicious receiver's choices are extracted late",
    floor: floor::unknown,
    runs: Runs::BaseOt(|| Box::new(roted::Roted::default())),
    ..MRR21
};

/// What a batch that starts an extension computes, both sides' shares in turn.
pub(super) struct Effort {
    /// Points times scalars.
    points: f64,
    /// What is no point, in nanoseconds on the reference machine.
    ns: f64,
    /// Round trips.
    pub(super) trips: f64,
}

impl Effort {
    /// Of the default base OT.
    pub(super) const DEFAULT: Effort = Effort { points: SETUP_POINTS, ns: 0.0, trips: 0.5 };

    /// By the times of 128 base OTs on the reference machine over loopback (docs/protocols.md).
    pub(super) fn of(base: &dyn BaseOt) -> Effort {
        match base.name() {
            co15::NAME => Effort { points: 270.0, trips: 1.0, ..Self::DEFAULT },
            csw20::NAME => Effort { points: 285.0, trips: 1.5, ..Self::DEFAULT },
            mr19::NAME => Effort { points: 450.0, ..Self::DEFAULT },
            roted::NAME => Effort { points: 0.0, ns: 1.4e6, trips: 1.5 },
            _ => Self::DEFAULT,
        }
    }

    pub(super) fn nanoseconds(&self, machine: &Machine) -> f64 {
        self.points * machine.point + self.ns * machine.aes / Machine::REFERENCE.aes
    }
}

#[cfg(test)]
mod tests {
    use tacit_crypto::{BitVec, Block, Prg};
    use tacit_net::memory;
    use tacit_ot::base;

    #[test]
    fn base_ots_send_what_they_say() {
        for name in base::NAMES {
            for n in [1, 127, 128, 1030] {
                let of = || base::by_name(name).unwrap();
                let ((), (received, sent)) = memory::run(
                    |channel| {
                        of().send(channel, &mut Prg::from_os(), &mut vec![[Block::ZERO; 2]; n]).unwrap();
                        channel.flush().unwrap();
                    },
                    |channel| {
                        let mut out = vec![Block::ZERO; n];
                        of().receive(channel, &mut Prg::from_os(), &BitVec::zeros(n), &mut out).unwrap();
                        channel.flush().unwrap();
                        let stats = channel.stats();
                        (stats.bytes_received, stats.bytes_sent)
                    },
                );
                let [of_sender, of_receiver] = of().bytes(n).unwrap();
                for (told, passed) in [(of_sender, received), (of_receiver, sent)] {
                    // The heads of frames.
                    let heads = passed - told as u64;
                    assert!((1..=4 * (3 + passed / 16_384)).contains(&heads), "{name} {n}: {told}, {passed}");
                }
            }
        }
    }
}
