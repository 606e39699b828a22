//! What a run costs with another base OT than the default.

use super::cost::{Candidate, Link, Machine, SETUP_OTS, SETUP_POINTS};
use super::{Entry, find};
use std::time::Duration;
use tacit_ot::BaseOt;
use tacit_ot::base::{co15, csw20, mr19, roted};

impl Candidate {
    /// The same by another base OT than the default one. Where nothing foresees what that takes, nothing changes.
    pub fn with_base(self, base: &dyn BaseOt, link: &Link, machine: &Machine) -> Candidate {
        let this = self.resting_on(base);
        let Some([sender, receiver]) = changed_bytes(base) else { return this };
        this.changed([sender, receiver], base, link, machine)
    }

    /// The same, with what the base OT rests on.
    fn resting_on(mut self, base: &dyn BaseOt) -> Candidate {
        let of_base = find(base.name()).map_or_else(Vec::new, Entry::assumption_names);
        if self.base_batches > 0 {
            let more: Vec<_> = of_base.into_iter().filter(|name| !self.assumptions.contains(name)).collect();
            self.assumptions.extend(more);
        }
        self
    }

    fn changed(
        self,
        [sender, receiver]: [f64; 2],
        base: &dyn BaseOt,
        link: &Link,
        machine: &Machine,
    ) -> Candidate {
        let batches = self.base_batches as f64;
        let (bytes, effort) = (batches * (sender + receiver), Effort::of(base));
        // Batches of several connections are made side by side, and pass one link.
        let computing = effort.nanoseconds(machine) - Effort::DEFAULT.nanoseconds(machine);
        let waiting = link.wait(effort.trips - Effort::DEFAULT.trips);
        let alone = if self.base_batches == 0 { 0.0 } else { computing + waiting };
        let seconds = (self.time.as_secs_f64() + (alone + link.pass(bytes)) / 1e9).clamp(0.0, 1e15);
        let rounds = batches.min(1.0) * (effort.trips - Effort::DEFAULT.trips);
        Candidate {
            time: Duration::from_secs_f64(seconds),
            bytes: (self.bytes as f64 + bytes).max(0.0) as u64,
            rounds: (self.rounds as f64 + rounds).ceil() as u64,
            ..self
        }
    }
}

/// What a batch of [`SETUP_OTS`] by `base` takes beside one of the default base OT: what its sender sends, and what
/// its receiver.
pub(super) fn changed_bytes(base: &dyn BaseOt) -> Option<[f64; 2]> {
    let [of, usual] = [base.bytes(SETUP_OTS)?, tacit_ot::base::default().bytes(SETUP_OTS)?];
    Some([0, 1].map(|side| of[side] as f64 - usual[side] as f64))
}

/// What a batch that starts an extension computes, both sides' shares in turn.
struct Effort {
    /// Points times scalars.
    points: f64,
    /// What is no point, in nanoseconds on the reference machine.
    ns: f64,
    /// Round trips.
    trips: f64,
}

impl Effort {
    /// Of the default base OT.
    const DEFAULT: Effort = Effort { points: SETUP_POINTS, ns: 0.0, trips: 0.5 };

    /// By the times of 128 base OTs on the reference machine over loopback (docs/protocols.md).
    fn of(base: &dyn BaseOt) -> Effort {
        match base.name() {
            co15::NAME => Effort { points: 270.0, trips: 1.0, ..Self::DEFAULT },
            csw20::NAME => Effort { points: 285.0, trips: 1.5, ..Self::DEFAULT },
            mr19::NAME => Effort { points: 450.0, ..Self::DEFAULT },
            roted::NAME => Effort { points: 0.0, ns: 1.4e6, trips: 1.5 },
            _ => Self::DEFAULT,
        }
    }

    fn nanoseconds(&self, machine: &Machine) -> f64 {
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
