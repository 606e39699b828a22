//! A cheater against an honest party, once or many times.

use super::network::Network;
use crate::{Channel, Limits};
use std::time::{Duration, Instant};

/// Real time that an honest party may take, whatever the cheater does.
const DEADLINE: Duration = Duration::from_secs(120);

/// Runs a cheater and an honest party over a network without faults, whose session follows from `seed`.
///
/// # Panics
/// When a party panics, or when the honest one has not returned before the deadline: two minutes, and as much
/// of silence in the network's time, which the cheater can only make pass by waiting itself or by leaving.
#[track_caller]
pub fn duel<A: Send, B: Send>(
    seed: u64,
    cheater: impl FnOnce(&mut Channel) -> A + Send,
    honest: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B) {
    let limits = Limits { idle: DEADLINE, ..Limits::default() };
    let (mine, (theirs, took)) = Network::new(seed).with_limits(limits).run(cheater, |channel| {
        let start = Instant::now();
        (honest(channel), start.elapsed())
    });
    assert!(took < DEADLINE, "the honest party took {took:?}");
    (mine, theirs)
}

/// What a cheater came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The honest party noticed.
    Caught,
    /// Nobody noticed, and it gained nothing.
    Idle,
    /// Nobody noticed, and it has what it wanted.
    Won,
}

/// How many duels ended how.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// [`Outcome::Caught`].
    pub caught: u64,
    /// [`Outcome::Idle`].
    pub idle: u64,
    /// [`Outcome::Won`].
    pub won: u64,
}

impl Tally {
    /// The outcomes of so many duels, which get the seeds 0, 1, ….
    pub fn of(duels: u64, mut play: impl FnMut(u64) -> Outcome) -> Self {
        let mut tally = Tally::default();
        for seed in 0..duels {
            match play(seed) {
                Outcome::Caught => tally.caught += 1,
                Outcome::Idle => tally.idle += 1,
                Outcome::Won => tally.won += 1,
            }
        }
        tally
    }

    /// All duels.
    pub fn duels(&self) -> u64 {
        self.caught + self.idle + self.won
    }

    /// Holds the cheater's wins against the analysis: panics if a cheater that wins with probability `bound`
    /// would win as often as this, or more often, with a probability below 1 − `confidence`.
    #[track_caller]
    pub fn assert_won_at_most(&self, bound: f64, confidence: f64) {
        let chance = at_least(self.duels(), self.won, bound);
        let Tally { won, .. } = self;
        let duels = self.duels();
        assert!(
            chance >= 1.0 - confidence,
            "{won} of {duels} won: with {bound} each, a chance of {chance:e}"
        );
    }

    /// As [`assert_won_at_most`](Self::assert_won_at_most) from below, for attacks that the analysis says
    /// work: panics if a cheater that wins with probability `bound` would win so seldom with a probability
    /// below 1 − `confidence`.
    #[track_caller]
    pub fn assert_won_at_least(&self, bound: f64, confidence: f64) {
        let duels = self.duels();
        let chance = at_least(duels, duels - self.won, 1.0 - bound);
        let Tally { won, .. } = self;
        assert!(
            chance >= 1.0 - confidence,
            "{won} of {duels} won: with {bound} each, a chance of {chance:e}"
        );
    }
}

/// The probability of at least `k` successes in `n` tries of probability `p` each.
fn at_least(n: u64, k: u64, p: f64) -> f64 {
    if k == 0 || p >= 1.0 {
        return 1.0;
    }
    if p <= 0.0 {
        return 0.0;
    }
    // ln of the chance of exactly i, from i = 0 on.
    let mut term = n as f64 * (-p).ln_1p();
    let odds = p.ln() - (-p).ln_1p();
    let mut sum = 0.0;
    for i in 0..=n {
        if i >= k {
            sum += term.exp();
        }
        term += ((n - i) as f64 / (i + 1) as f64).ln() + odds;
    }
    sum.min(1.0)
}
