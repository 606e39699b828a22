//! What happens in a house, drawn by its seed.

use crate::disk::{Fault, Kind};

/// Numbers out of a seed, by splitmix64.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x7461_6369_7421)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// Whose machine has the fault of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Whose {
    Service,
    Asker,
}

/// What goes wrong in a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Harm {
    Nothing,
    /// The line breaks after so many bytes, by which side they were sent.
    Line {
        from_asker: bool,
        bytes: u64,
    },
    /// The asker leaves when it has its offer.
    Left,
    /// A disk fails; where it is dead, the power is cut then.
    Disk(Whose, Fault),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Ask {
        service: usize,
        asker: usize,
        job: &'static str,
        harm: Harm,
    },
    /// Two clients ask at the same time.
    Together {
        service: usize,
        job: &'static str,
    },
    Restart {
        service: usize,
    },
    /// The power of a service is cut while nobody asks.
    Cut {
        service: usize,
    },
    Clock {
        service: usize,
        days: i64,
    },
    Policy {
        service: usize,
        rows: u64,
        runs: u64,
    },
    /// Some correlations are taken out of the pool; one side's disk may fail.
    Pool {
        side: usize,
        fault: Option<Fault>,
    },
    /// A job of the gateways; one side's disk may fail.
    Gateways {
        side: usize,
        fault: Option<Fault>,
    },
}

pub(crate) const SERVICES: usize = 2;
pub(crate) const ASKERS: usize = 2;
pub(crate) const JOBS: [&str; 3] = ["match", "count", "takes"];
/// Rows of a source and runs of a job that a policy may allow.
pub(crate) const ROWS: [u64; 3] = [40, 100, 1000];
pub(crate) const RUNS: [u64; 3] = [2, 4, 50];

const RECORDED: [&str; 6] = ["", "ledger", "records.jsonl", "private.jsonl", "pending", "results"];
const GATEWAYS: [&str; 5] = ["", "plan", "progress", "tosses", "bucket"];

fn fault(dice: &mut Dice, parts: &[&'static str]) -> Fault {
    let kind =
        dice.one(&[Kind::Eio, Kind::Sync, Kind::Full, Kind::Short, Kind::Dead, Kind::Dead, Kind::Dead]);
    let part = dice.one(parts);
    // Where any file counts there are many calls; where only writes or syncs do, few.
    let most = if part.is_empty() { 30 } else { 8 };
    let most = if matches!(kind, Kind::Eio | Kind::Dead) { most } else { most / 3 + 1 };
    Fault { kind, part, n: 1 + dice.below(most) }
}

fn harm(dice: &mut Dice) -> Harm {
    match dice.below(10) {
        0..3 => Harm::Nothing,
        3 => {
            let most = 1 << (8 + dice.below(10));
            Harm::Line { from_asker: dice.below(2) == 0, bytes: dice.below(most) }
        }
        4 => Harm::Left,
        5..8 => Harm::Disk(Whose::Service, fault(dice, &RECORDED)),
        _ => Harm::Disk(Whose::Asker, fault(dice, &RECORDED[..5])),
    }
}

/// The events of a seed: 5 to 10.
pub(crate) fn schedule(seed: u64) -> Vec<Event> {
    let mut dice = Dice::new(seed);
    let count = 5 + dice.below(6);
    (0..count)
        .map(|_| {
            let service = dice.below(SERVICES as u64) as usize;
            match dice.below(20) {
                0 => Event::Together { service, job: dice.one(&JOBS) },
                1 => Event::Restart { service },
                2 => Event::Cut { service },
                3 => Event::Clock { service, days: dice.one(&[-1, 1, 1, 0]) },
                4..6 => Event::Policy { service, rows: dice.one(&ROWS), runs: dice.one(&RUNS) },
                6..9 => {
                    let fault = (dice.below(4) > 0).then(|| fault(&mut dice, &["a.pool"]));
                    Event::Pool { side: dice.below(2) as usize, fault }
                }
                9 if dice.below(2) == 0 => {
                    let fault = (dice.below(4) > 0).then(|| fault(&mut dice, &GATEWAYS));
                    Event::Gateways { side: dice.below(2) as usize, fault }
                }
                _ => Event::Ask {
                    service,
                    asker: dice.below(ASKERS as u64) as usize,
                    job: dice.one(&JOBS),
                    harm: harm(&mut dice),
                },
            }
        })
        .collect()
}
