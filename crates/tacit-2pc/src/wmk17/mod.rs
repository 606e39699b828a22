//! Malicious two-party computation in a single execution: Wang, Malozemoff and Katz, "Faster Secure Two-Party
//! Computation in the Single-Execution Setting" (Eurocrypt 2017), figures 3 and 4, by cut-and-choose with
//! input recovery.
//!
//! Realises secure evaluation of a function against malicious parties, with abort: P1 garbles 44 copies, P2
//! evaluates a random set of 24 and checks the others; a P1 that makes two evaluated copies disagree gives
//! its input away, and P2 computes the function itself. Chance of a wrong output: 2^-ρ, however many rows one
//! session computes, as a wrong guess ends it; with several sessions side by side each is as much
//! [surer](Job::level). Assumptions: DDH in
//! Ristretto, BLAKE3 as a random oracle, half-gates with MITCCRH, and OT secure against malicious parties.
//! Whatever P2 finds, it goes on to the end in the same messages, and then fails without saying why; P1
//! learns at most *that* it failed, and only if it waits for an output.
//!
//! | step | messages |
//! | --- | --- |
//! | before | base OTs; terms both ways; P2: h, g_1 (they depend on nothing else) and a salt; the OT extensions |
//! | 1 | one OT a copy: key_j or seed_j |
//! | 2 | one OT a bit of P2's input in its ρ-probe encoding ([`probe`]), of a label a copy |
//! | 3 | P1's input through the committing OT; Enc(R); P2 opens |
//! | 4 | commitments to (R, A), two an input bit and copy, and their encrypted openings |
//! | 5, 6 | H(Δ_{i,b}); commitments to the tables and to T of every copy; the tables of all copies gate by gate, evaluated as they come; T output by output |
//! | 7 – 9 | P2: h_1; P1: Δ, {Δ_{i,0}}, C_j, Enc(seed_j); P2 recovers, checks and ends |
//!
//! One batch of 128 base OTs serves both directions: the committing OT, in which P2 sends, is a KOS extension
//! of its own seeded by the first one's random OTs. Both take their challenges from a hash, so each is one
//! message, and what waits for nothing goes together: from nothing to P2's output seven messages in a row,
//! whose parts are, the first two crossing, (P1) base OTs, terms, (P2) base OTs, terms, h, g_1; (P2)
//! extension, choices of steps 1 and 2; (P1) extension, step 1, R, labels, H(Δ_{i,b}), commitments, tables;
//! (P2) opening; (P1) steps 4 and 5; (P2) h_1; (P1) step 7. While base OTs pass P1 draws its seeds and begins
//! to garble, P2 its set and its encoding; while P1 garbles on, to commit, P2 garbles its check copies.
//! Tables go from when P2's choices are known until its opening comes, 8 MiB at most, and P2 keeps them.
//! Bytes, for n copies: 32·n an AND gate, 96·n an input bit of P1's, 32·n a bit of P2's encoded input (about
//! two an input bit), 32·n + 80 an output bit.
//!
//! **Time.** P1 can time P2's receives and answers, and until its last message it can use what it learns of
//! the set or of y. So the size of the set is fixed; P1 commits to all tables, garbled ones and T, before any
//! of them travels; tables are worked on by rows, all copies' alike, and T is neither decrypted nor hashed
//! copy by copy; what follows from outputs (step 6, the answer of step 7, recovery, what is returned) takes
//! the same steps whatever they are. Offline as well, where all of P1's choices after the circuits are still
//! to come. A test notes P2's work between its receives and compares it for different sets and inputs. See
//! the [security notes](../../../../docs/security-notes.md).
//!
//! [`Copies::SPARSE`] is for slow links: of 47 copies 16 are evaluated, and P1 sends 16 combinations of the
//! tables instead of all of them; P2 regarbles its check copies and solves for the others. [`Copies::CODED`]
//! is the same with 22 of 44.
//!
//! `offline` does ahead what does not depend on inputs, and keeps it in a file.
//!
//! Deviations from the figures, and why:
//! - Labels follow free-XOR: A_{j,i,1} = A_{j,i,0} ⊕ δ_j with δ_j from seed_j; likewise B.
//! - The committing OT: M_{i,b} = H(i, v_i ⊕ b·Γ) over correlated OT. P2 opens all of them by Γ, and proves
//!   it by the rows of 128 sacrificed correlations with random choices: another Γ′ passes only if it guesses
//!   those choices. Γ serves one run.
//! - The commitments of step 4 stand in the order of the labels' colours, which are pseudorandom, in place of
//!   a random order; so do the two entries of T. Commitments are hashes without added randomness: hidden
//!   labels have 127 bits of entropy.
//! - Δ_{i,1} is not sent in step 7: P2 computes it, which is the check Δ = Δ_{i,0} ⊕ Δ_{i,1}.
//! - Δ enters the group by hashing to it; Ω = 1 is the identity.
//! - P1 commits in step 5 to each copy's garbled tables, by a hash, and to T, before it sends any. P2
//!   compares the check copies' hashes with those of what it garbles itself, and the evaluation copies' with
//!   what came: a difference is a failed check. P1 garbles twice for it, unless there is little to hold.
//! - Every abort of P2 waits for the end, those of steps 4 and 6 too. (The OT extensions' own checks fail at
//!   once; they depend on P1's messages alone.)
//! - The OTs of steps 1 and 2 are asked for together, and step 3 comes before the labels of step 2. Neither
//!   party's message depends on what it would have learnt between: choices travel under random ones that the
//!   extension fixed, and R under keys and masks.
//! - Step 5 begins before step 4, while P2 opens. P2's set and input are fixed by then, so circuits can be
//!   simulated as in the paper; all that is left to it is to open or to fail. P1 has said no less about its
//!   circuits than in the figures when it learns Γ.
//! - P1's outputs ([`OutputTo`]): every output has two more tokens W_{i,b}, encrypted under the output labels
//!   as Δ_{i,b} are. After step 8 P2 commits to the tokens of its result, P1 reveals all, P2 checks them
//!   against the check copies and opens, or refuses. So P1 takes no value whose label P2 did not hold, and a
//!   P2 that recovered x answers as one that did not. Outputs for P1 alone are masked by further random input
//!   bits of P1's.

mod circuits;
mod commitments;
mod decoding;
mod deviation;
mod evaluator_input;
mod function;
mod garbler_input;
mod garbling;
mod offline;
mod outputs;
pub mod probe;
mod protocol;
mod recovery;
mod returned;
mod schedule;
mod secrets;
mod setup;
mod state;
mod terms;
#[cfg(test)]
mod tests;
mod transfer;
mod trapdoor;

pub use function::{Function, Streamed, Walk};
pub use offline::{Header as StateHeader, State};
pub use protocol::{Evaluator, Garbler};

use crate::authenticated::buckets::Level;
use crate::{OutputTo, Owner};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Prg};

pub(crate) const PROTOCOL: &str = "wmk17";

/// How many copies are garbled, and how many of them are evaluated.
///
/// That number is fixed and public. With a coin for each copy it would show in P2's work, and a P1 that knows
/// it guesses the set with a chance of (n + 1)/2^n: 2^-34.6 for n = 40.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copies {
    total: usize,
    evaluated: usize,
    /// Whether tables travel as combinations.
    coded: bool,
}

impl Copies {
    // proof: wmk17 6.1
    /// 44 copies, of which 24 are evaluated (C(44, 24) > 2^40), with whole tables: the fewest copies that
    /// there can be, and of their sets the one with the most evaluation copies that fills vectors.
    pub const STANDARD: Copies = Copies { total: 44, evaluated: 24, coded: false };

    /// 44 copies, of which 22 are evaluated (C(44, 22) > 2^40), with the coded transfer of tables.
    pub const CODED: Copies = Copies { total: 44, evaluated: 22, coded: true };

    /// 47 copies, of which 16 are evaluated (C(47, 16) > 2^40), with the coded transfer: the fewest bytes.
    pub const SPARSE: Copies = Copies { total: 47, evaluated: 16, coded: true };

    /// Every choice there is. With each, P1 gets a wrong output past P2 only if it spoils exactly the
    /// evaluated copies: a chance of at most 2^-40.
    pub const ALL: [Copies; 3] = [Copies::STANDARD, Copies::CODED, Copies::SPARSE];

    /// The choice of that name: `44`, `44/22` or `47/16`.
    pub fn by_name(name: &str) -> Option<Copies> {
        Copies::ALL.into_iter().find(|copies| copies.name() == name)
    }

    /// The copies, and with the coded transfer those that are evaluated, as many as combinations travel.
    pub fn name(self) -> String {
        if self.coded { format!("{}/{}", self.total, self.evaluated) } else { self.total.to_string() }
    }

    /// The fewest copies of this kind, as many of them evaluated, whose evaluation set is guessed with the chance
    /// that `level` leaves at most.
    pub fn at(self, level: Level) -> Copies {
        let mut copies = self;
        while copies.sets() < 1 << level.bits() {
            copies.total += 1;
        }
        copies
    }

    /// How many evaluation sets there are, up to 2^64.
    fn sets(self) -> u128 {
        (0..self.evaluated)
            .fold(1, |sets: u128, i| (sets * (self.total - i) as u128 / (i as u128 + 1)).min(1 << 64))
    }

    /// Copies garbled.
    pub fn total(self) -> usize {
        self.total
    }

    /// Copies evaluated.
    pub fn evaluated(self) -> usize {
        self.evaluated
    }

    /// Of each gate, the tables that travel, or combinations of them: of all copies, or as many as are
    /// evaluated.
    pub fn tables(self) -> usize {
        if self.coded { self.evaluated } else { self.total }
    }

    /// Whether tables travel as combinations.
    pub fn coded(self) -> bool {
        self.coded
    }

    /// P2's evaluation set, drawn in constant time.
    fn draw(self, prg: &mut Prg) -> BitVec {
        // proof: wmk17 3.2
        // The copies with the smallest of random tags, ties broken by number.
        let tags: Vec<u128> =
            (0..self.total).map(|j| (prg.block().to_u128() & !0xffff) | j as u128).collect();
        let rank = |tag: &u128| tags.iter().map(|other| (other < tag) as usize).sum::<usize>();
        BitVec::from_bools(&tags.iter().map(|tag| rank(tag) < self.evaluated).collect::<Vec<_>>())
    }
}

/// One computation, as both parties name it.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// The function.
    pub function: &'a dyn Function,
    /// Who learns the outputs.
    pub output_to: OutputTo,
    /// The copies, as many as the level takes.
    pub copies: Copies,
    /// How sure it is: more than alone where it is one of several sessions. The encoding of P2's input follows it
    /// too.
    pub level: Level,
}

impl<'a> Job<'a> {
    /// What the parties compare of it.
    fn digest(&self) -> [u8; 32] {
        let mut transcript = Transcript::new("tacit wmk17 job v2");
        transcript.append("function", &self.function.identity());
        for owner in self.function.owners() {
            transcript.append_u64("owner", (*owner == Owner::Garbler) as u64);
        }
        transcript.append_u64("output to garbler", self.output_to.garbler() as u64);
        transcript.append_u64("output to evaluator", self.output_to.evaluator() as u64);
        transcript.append_u64("copies", self.copies.total as u64);
        transcript.append_u64("evaluated", self.copies.evaluated as u64);
        transcript.append_u64("coded", self.copies.coded as u64);
        if self.level != Level::ALONE {
            transcript.append_u64("level", u64::from(self.level.bits()));
        }
        let mut digest = [0u8; 32];
        transcript.challenge_bytes("job", &mut digest);
        digest
    }

    /// `function` over [`Copies::STANDARD`], in a job's only session.
    pub fn new(function: &'a dyn Function, output_to: OutputTo) -> Self {
        Job { function, output_to, copies: Copies::STANDARD, level: Level::ALONE }
    }

    /// With these copies, or as many more as `level` takes.
    pub fn with(self, copies: Copies, level: Level) -> Self {
        Job { copies: copies.at(level), level, ..self }
    }
}
