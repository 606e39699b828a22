//! How often cheats pass that the bounds allow: counted on the protocol, with sizes so small that they do.
//!
//! Seeds are fixed, so counts repeat. When they are drawn anew by a change, a test fails by chance with less
//! than 2^-20: see [`plausible`].

use super::*;
use crate::authenticated::bits::Gates;
use crate::authenticated::hash::MacHash;
use crate::authenticated::leaky::counted;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use tacit_net::SessionId;

const ROLES: [Owner; 2] = [Owner::Garbler, Owner::Evaluator];
const RUNS: u64 = if cfg!(feature = "long-tests") { 20_000 } else { 1000 };

/// Whether something of chance `p` may come `count` times in `runs`: not where it comes as rarely, or as often,
/// with less than 2^-26. By Chernoff's bound, which is on the safe side. A test looks at 16 counts at most, and
/// at both sides of each, so it fails by chance with 2^-21 at most.
fn plausible(count: u64, runs: u64, p: f64) -> bool {
    let share = count as f64 / runs as f64;
    let part = |of: f64, p: f64| if of == 0.0 { 0.0 } else { of * (of / p).log2() };
    runs as f64 * (part(share, p) + part(1.0 - share, 1.0 - p)) < 26.0
}

#[test]
fn a_chance_is_told_from_one_that_is_larger_or_smaller() {
    for (p, other) in [(1.0 / 4.0, 1.0 / 2.0), (1.0 / 8.0, 1.0 / 4.0), (1.0 / 4.0, 1.0 / 16.0)] {
        let of = |p: f64| (RUNS as f64 * p) as u64;
        assert!(plausible(of(p), RUNS, p) && !plausible(of(other), RUNS, p), "{p} {other}");
    }
    assert!(plausible(0, 10, 0.5) && !plausible(0, 27, 0.5) && !plausible(27, 27, 0.5));
}

/// Runs both parties with these sizes, one of them with a script.
pub(super) fn against<T: Send>(
    by: Owner,
    script: impl Script + Send + 'static,
    seed: u64,
    sizes: Reduced,
    party: impl Fn(&mut Channel, &mut Session<Dealt, Dealt>) -> T + Sync,
) -> T {
    let script: Scripts = Some(Box::new(script));
    let [one, two] = if by == Owner::Garbler { [script, None] } else { [None, script] };
    let side = |channel: &mut Channel, role: Owner, script: Scripts| {
        let script = script.map(|script| script as Box<dyn Script>);
        with_reduced(sizes, || scripted(script, || party(channel, &mut dealt(role, seed))))
    };
    let (a, b) = memory::pair_with(SessionId([7; 32]));
    let (one, two) = memory::join(
        a,
        b,
        |channel| side(channel, Owner::Garbler, one),
        |channel| side(channel, Owner::Evaluator, two),
    );
    // The honest party's.
    if by == Owner::Garbler { two } else { one }
}

/// Whether the honest party found out; any other fault is one of the test.
fn found_out<T>(result: &Result<T>) -> bool {
    match result {
        Ok(_) => false,
        Err(Error::Cheated { .. }) => true,
        Err(other) => panic!("{other}"),
    }
}

/// What a cheater adds to a row's sums, in these blocks, if what it guessed is so.
type Change = Vec<(usize, Block)>;

/// A cheater that commits itself to no guess before it must: it holds what must be alike for each of them.
///
/// It takes one of them where it uses its digest, which an evaluator does after it saw the garbler's padded one.
/// A garbler that then hears that it was wrong proves another, as if the peer's Δ were `delta`.
struct Late {
    guess: Prg,
    delta: Block,
    /// Of each row that was sent, what may be so.
    rows: VecDeque<Vec<Change>>,
    /// What may be so of each row of the check, and what then is alike.
    candidates: Vec<(Vec<usize>, MacHash)>,
    taken: usize,
}

impl Late {
    fn new(guess: Prg, delta: Block) -> Self {
        Late { guess, delta, rows: VecDeque::new(), candidates: Vec::new(), taken: 0 }
    }

    fn settled(&mut self, alike: &MacHash, sums: &[Block]) {
        if self.candidates.is_empty() {
            self.candidates.push((Vec::new(), alike.fork()));
        }
        let changes = self.rows.pop_front().unwrap();
        let before = std::mem::take(&mut self.candidates);
        for ((guesses, hash), (i, change)) in
            before.iter().flat_map(|before| changes.iter().enumerate().map(move |change| (before, change)))
        {
            let (mut hash, mut sums) = (hash.fork(), sums.to_vec());
            change.iter().for_each(|&(at, error)| sums[at] ^= error);
            hash.update(&sums);
            self.candidates.push(([&guesses[..], &[i]].concat(), hash));
        }
    }

    fn alike(&mut self, digest: &mut [u8; 32]) {
        self.taken = self.guess.below(self.candidates.len() as u64) as usize;
        *digest = self.candidates[self.taken].1.digest();
    }

    fn second(&mut self, right: bool, macs: &mut [Block], digest: &mut [u8; 32]) {
        let others = self.candidates.len() - 1;
        if right || others == 0 {
            return;
        }
        let padded = *digest;
        self.taken = (self.taken + 1 + self.guess.below(others as u64) as usize) % self.candidates.len();
        let shown = self.candidates[self.taken].1.digest();
        *digest = shown;
        for (i, mac) in macs.iter_mut().enumerate() {
            let differs = (padded[i / 8] ^ shown[i / 8]) >> (i % 8) & 1;
            *mac ^= self.delta & Block::mask(differs == 1);
        }
    }

    /// What it went by in each row of the check, which is over.
    fn taken(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.candidates).swap_remove(self.taken).0
    }
}

macro_rules! late {
    () => {
        fn settled(&mut self, alike: &MacHash, sums: &[Block]) {
            self.late.settled(alike, sums);
        }
        fn alike(&mut self, digest: &mut [u8; 32]) {
            self.late.alike(digest);
        }
        fn second(&mut self, right: bool, macs: &mut [Block], digest: &mut [u8; 32]) {
            self.late.second(right, macs, digest);
        }
    };
}

/// Shows a wrong d of the first triple, and makes up for it as if one of `guesses` were the peer's Δ.
struct WrongProduct {
    own: Block,
    guesses: Vec<Block>,
    late: Late,
}

impl Script for WrongProduct {
    fn triples_delta(&mut self, delta: &mut Block) {
        self.own = *delta;
    }
    fn leaky(&mut self, _: &mut [Block], sums: &mut [Block]) {
        if self.guesses.is_empty() {
            return self.late.rows.push_back(vec![Vec::new()]);
        }
        // The lowest bit of S is the own share of d.
        sums[0] ^= Block::ONE;
        let change = |peer: Block| (self.own ^ peer).low() & !1 & counted(44);
        let changes = self.guesses.drain(..).map(|peer| vec![(0, Block::from_halves(change(peer), 0))]);
        self.late.rows.push_back(changes.collect());
    }
    late!();
    fn shifts(&mut self, _: &[usize]) {
        self.late.taken();
    }
}

/// Whether a wrong d passes that is made up for by one of the peer's Δ with these errors added, of which `bits`
/// count. If it does, the first gate is wrong, and so is the output that the honest party takes for right.
fn wrong_product_passes(
    function: &Prepared,
    by: Owner,
    errors: &[u64],
    seed: u64,
    bits: Option<u32>,
) -> bool {
    let (inputs, outputs) = example(function, seed);
    // Who cheats does not know it; the test does.
    let [own, peer] = [by, by.other()].map(|keys| Dealt::new(by, keys, seed).delta);
    let guesses = errors.iter().map(|&error| peer ^ Block::from_halves(error, 0)).collect();
    let late = Late::new(Prg::from_seed(Block::from_halves(seed, 43)), own);
    let script = WrongProduct { own: Block::ZERO, guesses, late };
    let sizes = Reduced { counted: bits, least: Some(1), bucket: Some(2), ..Reduced::default() };
    let honest = against(by, script, seed, sizes, |channel, session| {
        let input = &inputs[(session.role() == Owner::Evaluator) as usize];
        session.run(channel, function, OutputTo::Both, input)
    });
    if found_out(&honest) {
        return false;
    }
    assert_ne!(honest.unwrap(), Some(outputs), "{by:?}, seed {seed}: nothing was wrong");
    true
}

/// proof: authenticated 5.2
#[test]
fn a_wrong_product_passes_by_a_guess_of_the_bits_that_count_but_one() {
    let function = prepared("add8");
    let widths: &[u32] = if cfg!(feature = "long-tests") { &[2, 3, 4, 5] } else { &[3, 4] };
    for by in ROLES {
        for &bits in widths {
            // One of these is Δ, whose lowest bit is 1.
            let errors: Vec<u64> = (0..1 << bits).step_by(2).collect();
            let passes = |seed: &u64| wrong_product_passes(&function, by, &errors, *seed, Some(bits));
            let passed = (0..RUNS).filter(passes).count() as u64;
            let p = 0.5f64.powi(bits as i32 - 1);
            assert!(plausible(passed, RUNS, p), "{by:?}, {bits} bits: {passed} of {RUNS} passed");
        }
    }
}

#[test]
fn of_a_wrong_product_44_bits_count() {
    let function = prepared("add8");
    for by in ROLES {
        let passes = |error, seed| wrong_product_passes(&function, by, &[error], seed, None);
        // Who knows them all passes, so what is caught below is caught for one bit.
        assert!(passes(0, 1) && passes(!0 << 44, 1), "{by:?} knows what counts of Δ");
        for bit in 1..44 {
            assert!(!passes(1 << bit, 1), "{by:?} lacks bit {bit}");
        }
        let mut guess = Prg::from_seed(Block::new(41));
        for seed in 0..RUNS {
            let errors = [0; 2].map(|_| guess.block().low() & !1);
            assert!(!wrong_product_passes(&function, by, &errors, seed, None), "{by:?} guessed Δ");
        }
    }
}

/// What a cheater knows of a window.
#[derive(Default)]
struct Known {
    /// Of each row, the triples whose x of the peer's it guessed, with the guesses.
    guesses: Vec<HashMap<usize, bool>>,
    /// Of each row that passed.
    shifts: Vec<usize>,
}

impl Known {
    /// The buckets of `of` all of whose triples leaked, of as many rows as are known.
    fn full(&self, of: usize) -> Vec<usize> {
        let leaked = |j: usize| {
            let mut rows = self.guesses.iter().zip(&self.shifts);
            rows.all(|(row, shift)| row.contains_key(&((j + shift) % of)))
        };
        (0..of).filter(|&j| leaked(j)).collect()
    }

    /// The sum of the guesses at a bucket.
    fn sum(&self, bucket: usize, of: usize) -> bool {
        let rows = self.guesses.iter().zip(&self.shifts);
        rows.fold(false, |sum, (row, shift)| sum ^ row[&((bucket + shift) % of)])
    }
}

/// Guesses x of some triples of each row.
struct Leaks {
    /// Whose x are guessed, row by row, as a mask; it sees how the rows before went.
    choose: fn(&Known, usize) -> u32,
    buckets: usize,
    known: Arc<Mutex<Known>>,
    late: Late,
}

impl Script for Leaks {
    fn leaky(&mut self, messages: &mut [Block], _: &mut [Block]) {
        let mut known = self.known.lock().unwrap();
        let chosen = (self.choose)(&known, self.buckets);
        let mut changes = vec![Change::new()];
        for place in (0..self.buckets).filter(|place| chosen >> place & 1 == 1) {
            // Two triples stand in a block.
            let error = if place % 2 == 0 { Block::from_halves(2, 0) } else { Block::from_halves(0, 2) };
            messages[place / 2] ^= error;
            let ones = changes.iter().map(|change| [&change[..], &[(place / 2, error)]].concat());
            changes = changes.iter().cloned().chain(ones).collect();
        }
        self.late.rows.push_back(changes);
        // Which they are shows with the check.
        let places = (0..self.buckets).filter(|place| chosen >> place & 1 == 1);
        known.guesses.push(places.map(|place| (place, false)).collect());
    }
    late!();
    fn shifts(&mut self, shifts: &[usize]) {
        let mut known = self.known.lock().unwrap();
        let taken = self.late.taken();
        let first = known.guesses.len() - taken.len();
        for (row, taken) in known.guesses[first..].iter_mut().zip(taken) {
            let mut places: Vec<usize> = row.keys().copied().collect();
            places.sort_unstable();
            places.iter().enumerate().for_each(|(i, place)| {
                row.insert(*place, taken >> i & 1 == 1);
            });
        }
        // The first row has none.
        if known.shifts.is_empty() {
            known.shifts.push(0);
        }
        known.shifts.extend(shifts);
    }
}

/// A way to cheat, and the sizes it is tried with.
struct Attempt {
    buckets: usize,
    bucket: usize,
    /// Rows in a check, but for the first one.
    rows: usize,
    choose: fn(&Known, usize) -> u32,
    /// The chance to pass.
    passes: f64,
}

impl Attempt {
    /// How often it passed, and how often it had won then, going by this Δ where it proves what it did not pad.
    /// Whatever it knows is true.
    fn counts(&self, by: Owner, delta_of: Owner, runs: u64) -> [u64; 2] {
        let &Attempt { buckets, bucket, rows, choose, .. } = self;
        let (bucket, rows) = (Some(bucket), Some(rows));
        let sizes = Reduced { least: Some(1), bucket, rows, ..Reduced::default() };
        let demand = Demand { ands: buckets, garbler_inputs: 1, evaluator_inputs: 1 };
        let mut counts = [0; 2];
        for seed in 0..runs {
            let known = Arc::new(Mutex::new(Known::default()));
            let guess = Prg::from_seed(Block::from_halves(seed, 42));
            let late = Late::new(guess, Dealt::new(by, delta_of, seed).delta);
            let script = Leaks { choose, buckets, known: known.clone(), late };
            let honest =
                against(by, script, seed, sizes, |channel, session| session.independent(channel, demand));
            if found_out(&honest) {
                continue;
            }
            counts[0] += 1;
            let (honest, known) = (honest.unwrap(), known.lock().unwrap());
            assert_eq!(Some(known.shifts.len()), sizes.bucket);
            let full = known.full(buckets);
            counts[1] += u64::from(!full.is_empty());
            let Gates { macs: [x, ..], .. } = honest.gates.gates();
            for bucket in full {
                assert_eq!(x[bucket].lsb(), known.sum(bucket, buckets), "{by:?}, seed {seed}");
            }
        }
        counts
    }
}

/// What the notes say a window is broken with at most.
fn bound(bucket: usize, buckets: usize) -> f64 {
    0.5f64.powi(bucket as i32) * (buckets as f64).powi(1 - bucket as i32)
}

/// Guesses at the second place of every row.
fn one_a_row(_: &Known, _: usize) -> u32 {
    0b10
}

/// Guesses at two in the first row, then at one.
fn two_then_one(known: &Known, _: usize) -> u32 {
    if known.guesses.is_empty() { 0b11 } else { 0b100 }
}

/// Guesses at one in each of the first two rows; then, if these met, at all but one.
fn adaptive(known: &Known, buckets: usize) -> u32 {
    match known.guesses.len() {
        0 | 1 => 1,
        _ if known.full(buckets).is_empty() => 0,
        _ => (1 << (buckets - 1)) - 1,
    }
}

/// proof: authenticated 2.3, 2.4, 5.1, 6.1
#[test]
fn buckets_leak_as_often_as_the_bound_says_and_not_more() {
    let attempts = [
        Attempt { buckets: 2, bucket: 2, rows: 1, choose: one_a_row, passes: 1.0 / 4.0 },
        Attempt { buckets: 3, bucket: 2, rows: 1, choose: two_then_one, passes: 1.0 / 8.0 },
        Attempt { buckets: 2, bucket: 3, rows: 2, choose: one_a_row, passes: 1.0 / 8.0 },
        // In three of four runs that come so far it has lost, and takes no further risk.
        Attempt {
            buckets: 3,
            bucket: 3,
            rows: 1,
            choose: adaptive,
            passes: 1.0 / 4.0 * (2.0 / 3.0 + 1.0 / 3.0 / 4.0),
        },
    ];
    // As many as tell a bucket's rows with shifts of their own from rows with one shift.
    let runs = 2 * RUNS;
    for by in ROLES {
        for attempt in &attempts {
            // None of them is worse than the best.
            let wins = bound(attempt.bucket, attempt.buckets);
            let [passed, won] = attempt.counts(by, by, runs);
            let of = format!("{by:?}, {} buckets of {}", attempt.buckets, attempt.bucket);
            assert!(plausible(passed, runs, attempt.passes), "{of}: {passed} of {runs} passed");
            assert!(plausible(won, runs, wins), "{of}: {won} of {runs} won, not {wins} of them");
        }
    }
}

/// What a garbler hears of its guess comes too late for it: to prove another takes the peer's Δ. By the own Δ it
/// did before the proof was of what it padded, and passed always with one guess in a check.
///
/// proof: authenticated 2.5, 2.6, 3.3
#[test]
fn a_garbler_that_hears_that_it_guessed_wrong_cannot_prove_another_digest() {
    // Of two rows of triples in the first check, then one; the last guesses two in one row.
    let sizes = [(2, 3, 1, one_a_row as fn(&Known, usize) -> u32, [1, 2]), (2, 3, 2, one_a_row, [0, 3])];
    for (buckets, bucket, rows, choose, leaks) in sizes {
        let passes = leaks.iter().map(|&leaks| 0.5f64.powi(leaks)).product();
        let attempt = Attempt { buckets, bucket, rows, choose, passes };
        let by = Owner::Garbler;
        let [passed, _] = attempt.counts(by, by, RUNS);
        assert!(plausible(passed, RUNS, passes), "{leaks:?}: {passed} of {RUNS} passed");
        // Who knows Δ has two tries at each check, so it is for want of Δ that others have one.
        let knows = leaks.iter().map(|&leaks| f64::min(1.0, 2.0 * 0.5f64.powi(leaks))).product();
        let [passed, _] = attempt.counts(by, by.other(), RUNS);
        assert!(plausible(passed, RUNS, knows), "{leaks:?}, by Δ: {passed} of {RUNS} passed");
    }
}

/// The chance to win of whoever chooses best in each row, knowing which buckets are full by now.
fn best(full: u32, rows: usize, buckets: usize) -> f64 {
    if rows == 0 || full == 0 {
        return f64::from(full != 0);
    }
    let after = |leaked: u32| -> f64 {
        let turned = |shift: usize| (leaked | leaked << buckets) >> shift;
        let of = |shift| best(full & turned(shift), rows - 1, buckets);
        (0..buckets).map(of).sum::<f64>() / buckets as f64
    };
    let chance = |leaked: u32| 0.5f64.powi(leaked.count_ones() as i32) * after(leaked);
    (1..1 << buckets).map(chance).fold(0.0, f64::max)
}

#[test]
fn no_choice_of_leaks_beats_the_bound() {
    for (buckets, bucket) in [(1, 2), (2, 2), (2, 3), (3, 2), (3, 3), (4, 2), (4, 3), (5, 2), (3, 4)] {
        // The first row has no shift: what leaks of it is full.
        let first = |leaked: u32| 0.5f64.powi(leaked.count_ones() as i32) * best(leaked, bucket - 1, buckets);
        let best = (1..1 << buckets).map(first).fold(0.0, f64::max);
        let most = bound(bucket, buckets);
        assert!(best <= most * (1.0 + 1e-9), "{buckets} buckets of {bucket}: {best}, {most} are allowed");
        // And one guess in each row reaches it.
        assert!(best >= most * (1.0 - 1e-9), "{buckets} buckets of {bucket}: {best} of {most}");
    }
}
