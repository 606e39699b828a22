//! The best adversary we know against the receiver of BDGM19: it forges slots and challenges, tries every
//! choice against the view, and opens what it can. It meets the protocol, and a model of the original's
//! order, in which the response comes first, with no slot in any hash: that gives a whole batch away
//! unnoticed, so these tests can fail.

use super::*;
use tacit_roted::set::MODULE;

type Keys = [Option<Vec<u16>>; 2];
type At = Instance<256, 3>;

const OTS: usize = 4;

/// How the adversary makes its half of an OT.
#[derive(Clone, Copy)]
enum Half {
    Honest,
    /// Garbage for this slot's signals.
    Spoilt(usize),
    /// p_S and both signals zero, so that both keys are.
    Zeros,
    /// The signals of slot 0 in both slots.
    CopiedSlot,
    /// What was sent for OT 0.
    CopiedOt,
}

/// The challenge that goes with it.
#[derive(Clone, Copy)]
enum Challenge {
    Right,
    Zero,
    /// Right but for a bit.
    Flipped,
    /// Fits the slot that can be finished and an image made up for the other.
    Invented,
    /// That of OT 0.
    Copied,
}

struct Plan {
    name: &'static str,
    halves: [(Half, Challenge); OTS],
    /// The bits that the proof is made for, where it matters.
    guess: [u8; OTS],
    /// The OTs in which the receiver's bit has to be as guessed.
    guessed: &'static [usize],
    /// Refused whatever the bits are.
    hopeless: bool,
}

const PLANS: [Plan; 14] = {
    use Challenge::*;
    use Half::*;
    const OK: (Half, Challenge) = (Honest, Right);
    const fn plan(name: &'static str, halves: [(Half, Challenge); OTS], guessed: &'static [usize]) -> Plan {
        Plan { name, halves, guess: [0; OTS], guessed, hopeless: false }
    }
    const fn hopeless(name: &'static str, halves: [(Half, Challenge); OTS]) -> Plan {
        Plan { hopeless: true, ..plan(name, halves, &[]) }
    }
    let (flipped, zero) = ((Honest, Flipped), (Honest, Zero));
    [
        plan("none: an honest sender", [OK; OTS], &[]),
        hopeless("all challenges zero", [zero; OTS]),
        hopeless("one challenge zero", [OK, zero, OK, OK]),
        plan("equal keys in the slots", [(Zeros, Right); OTS], &[]),
        hopeless("equal keys, challenges zero", [(Zeros, Zero); OTS]),
        plan("slot 1 spoilt", [(Spoilt(1), Invented), OK, OK, OK], &[0]),
        Plan {
            guess: [1, 0, 0, 0],
            ..plan(
                "slot 0 spoilt, and slot 1",
                [(Spoilt(0), Invented), OK, (Spoilt(1), Invented), OK],
                &[0, 2],
            )
        },
        plan("one slot of each spoilt", [(Spoilt(1), Invented); OTS], &[0, 1, 2, 3]),
        plan("a challenge flipped", [OK, flipped, OK, OK], &[1]),
        Plan {
            guess: [1, 0, 1, 0],
            ..plan("challenges flipped", [flipped, OK, flipped, flipped], &[0, 2, 3])
        },
        plan("slot 0's signals in slot 1", [OK, OK, (CopiedSlot, Invented), OK], &[2]),
        hopeless("OT 0 again as OT 1", [OK, (CopiedOt, Copied), OK, OK]),
        hopeless("OT 0 again as OT 1, another challenge", [OK, (CopiedOt, Invented), OK, OK]),
        hopeless("OT 0's challenge for OT 3", [OK, OK, OK, (Honest, Copied)]),
    ]
};

/// One OT as forged: p_S, σ_0, σ_1, and the keys that the adversary knows.
struct Forged {
    answer: Vec<u8>,
    keys: Keys,
}

fn forge(at: &At, first: &[u8], halves: &[(Half, Challenge); OTS], random: &mut XofBlocks) -> Vec<Forged> {
    let (r, offers) = first.split_at(32);
    let r: Digest = r.try_into().unwrap();
    let words = at.set().key_words();
    let mut scratch = Scratch::new(at);
    let [mut peer, mut secret, mut public] = [const { Vector::ZERO }; 3];
    let mut h = [const { Poly::ZERO }; 3];
    let mut all: Vec<Forged> = Vec::new();
    for (i, offer) in offers.chunks_exact(at.set().public_len()).enumerate() {
        exchange::unpack(at, offer, &mut peer).unwrap();
        exchange::generate(at, random, &mut scratch, &mut secret, &mut public);
        let mut answer = vec![0; answer_len(at)];
        let (packed, signals) = answer.split_at_mut(at.set().public_len());
        exchange::pack(at, &public, packed);
        at.offset(i as u64, &r, &mut h);
        let mut keys: Keys = [None, None];
        for (slot, out) in signals.chunks_exact_mut(2 * words).enumerate() {
            if slot == 1 {
                exchange::second_slot(at, &mut peer, &h);
            }
            let (mut signal, mut key) = (vec![0; words], vec![0; words]);
            exchange::signal(at, random, &mut scratch, &secret, &peer, (&mut signal, &mut key));
            out.copy_from_slice(bytemuck::cast_slice(&signal));
            keys[slot] = Some(key);
        }
        match halves[i].0 {
            Half::Honest => {}
            Half::Spoilt(slot) => {
                signals[2 * words * slot..][..2 * words].fill(0x5a);
                keys[slot] = None;
            }
            Half::Zeros => {
                answer.fill(0);
                keys = [const { None }; 2].map(|_: Option<()>| Some(vec![0; words]));
            }
            Half::CopiedSlot => {
                signals.copy_within(..2 * words, 2 * words);
                keys[1] = None;
            }
            Half::CopiedOt => {
                answer.clone_from(&all[0].answer);
                keys = [None, None];
            }
        }
        all.push(Forged { answer, keys });
    }
    all
}

/// An image that the adversary makes up, from an opening of its own.
fn spare(equation: &dyn Equation) -> Digest {
    equation.of_opening(&[0x33; 32])
}

fn challenges(
    plan: &Plan,
    images: &[[Option<Digest>; 2]],
    equation: &dyn Equation,
    random: &mut XofBlocks,
) -> Vec<Digest> {
    let mut all: Vec<Digest> = Vec::new();
    for ((_, challenge), [zero, one]) in plan.halves.iter().zip(images) {
        let mut unknown = [Block::ZERO; 2];
        random.fill_blocks(&mut unknown);
        let unknown: Digest = Block::as_bytes(&unknown).try_into().unwrap();
        let right = match (zero, one) {
            (Some(zero), Some(one)) => xor(zero, one),
            (Some(known), None) | (None, Some(known)) => xor(known, &spare(equation)),
            (None, None) => unknown,
        };
        all.push(match challenge {
            Challenge::Right | Challenge::Invented => right,
            Challenge::Zero => [0; 32],
            Challenge::Flipped => {
                let mut flipped = right;
                flipped[9] ^= 4;
                flipped
            }
            Challenge::Copied => all[0],
        });
    }
    all
}

/// y_0 as a receiver with these bits computes it, of each OT; `None` where the adversary cannot know.
fn zeros(bits: &[u8], images: &[[Option<Digest>; 2]], challenges: &[Digest]) -> Option<Vec<Digest>> {
    let of = |((bit, images), challenge): ((&u8, &[Option<Digest>; 2]), &Digest)| {
        let image = images[*bit as usize]?;
        Some(if *bit == 1 { xor(&image, challenge) } else { image })
    };
    bits.iter().zip(images).zip(challenges).map(of).collect()
}

/// What the adversary gets to see, and may compute beforehand for any bits of the receiver's.
trait Equation {
    /// y of a slot.
    fn image(&self, at: (usize, u8), first: &Digest, answer: &[u8], key: &[u16]) -> Digest;
    /// y of what is opened.
    fn of_opening(&self, opening: &Digest) -> Digest;
    /// The view of a receiver that computes `zeros`, against a proof for `claimed`.
    fn view(&self, zeros: &[Digest], claimed: &[Digest], challenges: &[Digest]) -> Option<Digest>;
}

/// All bits that agree with the view.
fn posterior(
    view: &Option<Digest>,
    equation: &dyn Equation,
    images: &[[Option<Digest>; 2]],
    challenges: &[Digest],
    claimed: &[Digest],
) -> Vec<[u8; OTS]> {
    let all = (0..1 << OTS).map(|bits| std::array::from_fn(|i| (bits >> i & 1) as u8));
    let predicted: Vec<([u8; OTS], Option<Option<Digest>>)> = all
        .map(|bits: [u8; OTS]| {
            // Where an image is unknown, what the receiver computes equals nothing that is known.
            let zeros = zeros(&bits, images, challenges);
            let unknown = || equation.view(&[[0xee; 32]; OTS], claimed, challenges);
            (
                bits,
                zeros.map(|z| equation.view(&z, claimed, challenges)).or(unknown().is_none().then_some(None)),
            )
        })
        .collect();
    let known = predicted.iter().any(|(_, p)| p.as_ref() == Some(view));
    let fits = |p: &Option<Option<Digest>>| if known { p.as_ref() == Some(view) } else { p.is_none() };
    predicted.iter().filter(|(_, p)| fits(p)).map(|(bits, _)| *bits).collect()
}

/// The protocol's own functions.
struct New<'a> {
    at: &'a At,
    first: Digest,
    answers: Vec<u8>,
}

impl Equation for New<'_> {
    fn image(&self, (index, slot): (usize, u8), first: &Digest, answer: &[u8], key: &[u16]) -> Digest {
        derive(self.at, (index as u64, slot), first, answer, key).image
    }

    fn of_opening(&self, opening: &Digest) -> Digest {
        *blake3::hash(opening).as_bytes()
    }

    fn view(&self, zeros: &[Digest], claimed: &[Digest], challenges: &[Digest]) -> Option<Digest> {
        let again = (0..OTS).any(|i| challenges[..i].contains(&challenges[i]));
        let of = |zeros| response_and_proof(self.at, &self.first, &self.answers, zeros);
        let good = !again && !challenges.contains(&[0; 32]) && of(zeros).1 == of(claimed).1;
        good.then(|| of(zeros).0)
    }
}

/// The original's order: the response is sent unasked, and no slot is in any hash.
struct Old<'a>(&'a At);

impl Old<'_> {
    fn opening(&self, index: usize, first: &Digest, answer: &[u8], key: &[u16]) -> Digest {
        let answer = blake3::hash(answer);
        let data: [&[u8]; 3] = [first, answer.as_bytes(), bytemuck::cast_slice(key)];
        let root = self.0.hash(ROOT, index as u64, &data).finalize();
        *self.0.hash(IMAGE, index as u64, &[root.as_bytes()]).finalize().as_bytes()
    }
}

impl Equation for Old<'_> {
    fn image(&self, (index, _): (usize, u8), first: &Digest, answer: &[u8], key: &[u16]) -> Digest {
        self.of_opening(&self.opening(index, first, answer, key))
    }

    fn of_opening(&self, opening: &Digest) -> Digest {
        *self.0.hash(PROOF, 0, &[opening]).finalize().as_bytes()
    }

    fn view(&self, zeros: &[Digest], _: &[Digest], _: &[Digest]) -> Option<Digest> {
        Some(*self.0.hash(RESPONSE, OTS as u64, &[zeros.as_flattened()]).finalize().as_bytes())
    }
}

fn images(equation: &dyn Equation, first: &Digest, forged: &[Forged]) -> Vec<[Option<Digest>; 2]> {
    let of = |(i, f): (usize, &Forged)| {
        let image = |slot: usize| {
            f.keys[slot].as_ref().map(|key| equation.image((i, slot as u8), first, &f.answer, key))
        };
        [image(0), image(1)]
    };
    forged.iter().enumerate().map(of).collect()
}

fn random() -> XofBlocks {
    XofBlocks::from_prg(&mut Prg::from_os())
}

/// Runs `plan` once; gives the receiver's random bits, whether it went on, and what the adversary then holds
/// possible of them.
fn attack(plan: &Plan, [ours, theirs]: [&At; 2], choices: &[u8; OTS]) -> ([u8; OTS], bool, Vec<[u8; OTS]>) {
    let (mut a, mut b) = (random(), random());
    let (receiver, offer) = Receiver::offer(theirs, choices, &mut b);
    let bits: [u8; OTS] = receiver.masks[..].try_into().unwrap();
    let first = *blake3::hash(&offer).as_bytes();
    let forged = forge(ours, &offer, &plan.halves, &mut a);
    let mut equation = New { at: ours, first, answers: Vec::new() };
    let images = images(&equation, &first, &forged);
    let challenges = challenges(plan, &images, &equation, &mut a);
    for (f, challenge) in forged.iter().zip(&challenges) {
        equation.answers.extend(f.answer.iter().chain(challenge));
    }
    // Where the guess cannot be computed, the proof is for nothing.
    let claimed = zeros(&plan.guess, &images, &challenges).unwrap_or(vec![[0x77; 32]; OTS]);
    let (expected, proof) = response_and_proof(ours, &first, &equation.answers, &claimed);
    let second = [&equation.answers[..], &proof].concat();
    let mut out = [Block::ZERO; OTS];
    let view = match receiver.respond(theirs, &second, &mut b, &mut out) {
        Ok(sent) => {
            assert_eq!(sent[..32], expected, "{}: a response that the sender did not have before", plan.name);
            for i in 0..OTS {
                assert_eq!(sent[32] >> i & 1, choices[i] ^ bits[i], "{}: the bit that turns {i}", plan.name);
            }
            Some(expected)
        }
        Err(tacit_roted::Error::Cheated(_)) => {
            assert!(out == [Block::ZERO; OTS], "{}: something was left in out", plan.name);
            None
        }
        Err(other) => panic!("{}: {other}", plan.name),
    };
    (bits, view.is_some(), posterior(&view, &equation, &images, &challenges, &claimed))
}

#[test]
fn the_best_adversary_learns_only_what_it_guesses() {
    const RUNS: usize = 400;
    let [ours, theirs] = [Role::Sender, Role::Receiver].map(|role| Instance::new(&MODULE, "test", b"", role));
    for plan in &PLANS {
        // Undetected runs, by the choice in the first OT that is guessed.
        let mut passed = [0usize; 2];
        for run in 0..RUNS {
            let choices: [u8; OTS] = std::array::from_fn(|i| (run >> i & 1) as u8);
            let (bits, went_on, possible) = attack(plan, [&ours, &theirs], &choices);
            let right = |bits: &[u8; OTS]| plan.guessed.iter().all(|i| bits[*i] == plan.guess[*i]);
            assert_eq!(went_on, right(&bits) && !plan.hopeless, "{}: bits {bits:?}", plan.name);
            // Of all else it has learnt nothing: every other value is as possible as before.
            let all = (0..1 << OTS).map(|bits: u32| std::array::from_fn(|i| (bits >> i & 1) as u8));
            let expected: Vec<[u8; OTS]> =
                all.filter(|bits| plan.hopeless || right(bits) == went_on).collect();
            assert_eq!(possible, expected, "{}: bits {bits:?}", plan.name);
            passed[choices[*plan.guessed.first().unwrap_or(&0)] as usize] += went_on as usize;
        }
        let rate = if plan.hopeless { 0.0 } else { 0.5f64.powi(plan.guessed.len() as i32) };
        for (choice, passed) in passed.iter().enumerate() {
            // Six standard deviations. Being caught depends on random bits, so it is as likely for either
            // choice.
            let (mean, spread) = (200.0 * rate, (200.0 * rate * (1.0 - rate)).sqrt());
            let name = plan.name;
            assert!(
                (*passed as f64 - mean).abs() <= 6.0 * spread,
                "{name}, choice {choice}: {passed} of 200"
            );
        }
    }
}

/// Whether the receiver of [`Old`] accepts the best openings that the adversary has, once it holds `bits` for
/// true.
fn opens(
    old: &Old<'_>,
    (first, forged, challenges): (&Digest, &[Forged], &[Digest]),
    images: &[[Option<Digest>; 2]],
    bits: &[u8; OTS],
) -> bool {
    (0..OTS).all(|i| {
        let own = forged[i].keys.iter().flatten().map(|key| old.opening(i, first, &forged[i].answer, key));
        let openings: Vec<Digest> = own.chain([[0x33; 32]]).collect();
        openings.iter().any(|zero| {
            openings.iter().any(|one| {
                let pair = [zero, one].map(|o| old.of_opening(o));
                xor(&pair[0], &pair[1]) == challenges[i]
                    && Some(pair[bits[i] as usize]) == images[i][bits[i] as usize]
            })
        })
    })
}

#[test]
fn the_older_equation_gave_a_batch_away_to_the_same_adversary() {
    let [ours, theirs] = [Role::Sender, Role::Receiver].map(|role| Instance::new(&MODULE, "test", b"", role));
    let old = Old(&ours);
    let mut unnoticed = 0;
    for run in 0..64 {
        for plan in &PLANS {
            let bits: [u8; OTS] = std::array::from_fn(|i| (run >> i & 1) as u8);
            let mut a = random();
            let (_, offer) = Receiver::offer(&theirs, &bits, &mut random());
            let first = *blake3::hash(&offer).as_bytes();
            let forged = forge(&ours, &offer, &plan.halves, &mut a);
            let images = images(&old, &first, &forged);
            let challenges = challenges(plan, &images, &old, &mut a);
            let answered = zeros(&bits, &images, &challenges).unwrap_or(vec![[0x99; 32]; OTS]);
            let view = old.view(&answered, &[], &challenges);
            let possible = posterior(&view, &old, &images, &challenges, &[]);
            let accepted = opens(&old, (&first, &forged, &challenges), &images, &bits);
            match plan.name {
                "none: an honest sender" | "equal keys in the slots" => {
                    assert!(accepted && possible.len() == 1 << OTS, "{}", plan.name);
                }
                "all challenges zero" => {
                    assert_eq!(possible, [bits], "all of the batch in one run");
                    assert!(accepted, "and nobody notices");
                    unnoticed += 1;
                }
                // Noticed or not, all the bits it asked for are there: two values of each in a batch of four.
                "a challenge flipped" | "challenges flipped" | "one challenge zero" => {
                    let asked = plan.halves.iter().filter(|h| !matches!(h.1, Challenge::Right)).count();
                    assert_eq!(possible.len(), 1 << (OTS - asked), "{}", plan.name);
                    assert!(possible.contains(&bits), "{}", plan.name);
                }
                _ => {}
            }
        }
    }
    assert_eq!(unnoticed, 64);
}
