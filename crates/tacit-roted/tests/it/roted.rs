//! ROTed from message to message: correct, refusing malformed messages, and against cheaters.

use tacit_crypto::ring::{Noise, RandomBlocks, Vector, XofBlocks};
use tacit_crypto::{Block, Prg};
use tacit_roted::exchange::{self, Scratch};
use tacit_roted::roted::{Choices, Mode, Receiver, Sender, first_len, second_len, third_len};
use tacit_roted::set::{self, Set};
use tacit_roted::{Error, Instance, Role};

fn instances<const N: usize, const K: usize>(set: &Set<N, K>, session: u64) -> [Instance<N, K>; 2] {
    [Role::Sender, Role::Receiver].map(|role| Instance::new(set, "test", &session.to_le_bytes(), role))
}

fn random(seed: u128) -> XofBlocks {
    XofBlocks::from_prg(&mut Prg::from_seed(Block::new(seed)))
}

/// One honest batch: the sender's pairs, the receiver's bits and messages.
fn honest<const N: usize, const K: usize>(
    set: &Set<N, K>,
    choices: Choices<'_>,
    count: usize,
    seed: u64,
) -> (Vec<[Block; 2]>, Vec<u8>, Vec<Block>) {
    let [ours, theirs] = instances(set, seed);
    let (mut a, mut b) = (random(seed as u128), random(seed as u128 + (1 << 80)));
    let (mut m1, mut m2, mut m3) = (vec![], vec![], vec![]);
    let (mut sent, mut received) = (vec![[Block::ZERO; 2]; count], vec![Block::ZERO; count]);
    let receiver = Receiver::offer(&theirs, choices, count, &mut b, &mut m1);
    let sender = Sender::answer(&ours, choices.mode(), count, &m1, &mut a, &mut m2).unwrap();
    let bits = receiver.open(&theirs, &m2, &mut b, &mut received, &mut m3).unwrap();
    sender.finish(&ours, &m3, &mut sent).unwrap();
    let lengths = [first_len(&ours, count), second_len(&ours, choices.mode(), count), third_len(count)];
    assert_eq!([m1.len(), m2.len(), m3.len()], lengths);
    (sent, bits, received)
}

fn transfers<const N: usize, const K: usize>(set: &Set<N, K>) {
    for count in [0, 1, 7, 8, 130] {
        let given: Vec<u8> = (0..count).map(|i| (i * i / 3 % 2) as u8).collect();
        for choices in [Choices::Random, Choices::Given(&given)] {
            let (sent, bits, received) = honest(set, choices, count, count as u64);
            if let Choices::Given(given) = choices {
                assert_eq!(bits, given);
            }
            let mut all: Vec<u128> = sent.as_flattened().iter().map(|m| m.to_u128()).collect();
            for (i, pair) in sent.iter().enumerate() {
                assert!(received[i] == pair[bits[i] as usize], "{}: OT {i} of {count}", set.name);
            }
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 2 * count, "messages repeat");
        }
    }
}

#[test]
fn every_set_transfers() {
    transfers(&set::MODULE);
    transfers(&set::LARGE);
    transfers(&set::PAPER);
}

fn many<const N: usize, const K: usize>(set: &Set<N, K>, batches: u64) {
    let mut ones = 0;
    for seed in 0..batches {
        let (sent, bits, received) = honest(set, Choices::Random, 1000, 1 << 32 | seed);
        for i in 0..1000 {
            assert!(received[i] == sent[i][bits[i] as usize], "{}: batch {seed}, OT {i}", set.name);
        }
        ones += bits.iter().map(|b| *b as u64).sum::<u64>();
    }
    assert_fair(ones, batches * 1000);
}

/// χ² of one degree of freedom; 30 is 10^-7.
fn assert_fair(ones: u64, runs: u64) {
    let half = runs as f64 / 2.0;
    let chi = 2.0 * (ones as f64 - half).powi(2) / half;
    assert!(chi < 30.0, "{ones} ones of {runs}");
}

#[test]
fn no_transfer_of_many_mismatches() {
    let batches = if cfg!(feature = "long-tests") { 1000 } else { 20 };
    many(&set::MODULE, batches);
    many(&set::PAPER, batches);
}

/// proof: roted 5.2
#[test]
fn different_sessions_give_different_messages() {
    let [ours, _] = instances(&set::MODULE, 1);
    let [_, theirs] = instances(&set::MODULE, 2);
    let (mut a, mut b) = (random(1), random(2));
    let (mut m1, mut m2, mut m3) = (vec![], vec![], vec![]);
    let mut received = [Block::ZERO];
    let receiver = Receiver::offer(&theirs, Choices::Random, 1, &mut b, &mut m1);
    let sender = Sender::answer(&ours, Mode::Random, 1, &m1, &mut a, &mut m2).unwrap();
    receiver.open(&theirs, &m2, &mut b, &mut received, &mut m3).unwrap();
    let mut sent = [[Block::ZERO; 2]];
    let result = sender.finish(&ours, &m3, &mut sent);
    assert!(matches!(result, Err(Error::Cheated(_))), "the commitment binds the session");
    assert!(sent == [[Block::ZERO; 2]]);
}

/// Sets coefficient 0 of the packed public value at `at` to q, the least value that is refused.
fn spoil<const N: usize, const K: usize>(instance: &Instance<N, K>, message: &mut [u8], at: usize) {
    let mut public = Vector::<N, K>::ZERO;
    let bytes = &mut message[at..][..instance.set().public_len()];
    exchange::unpack(instance, bytes, &mut public).unwrap();
    public.0[K - 1].0[N - 1] = instance.set().ring.modulus() as i16;
    exchange::pack(instance, &public, bytes);
}

/// proof: roted 2.3, 2.5
#[test]
fn malformed_messages_are_refused_and_nothing_comes_out() {
    let [ours, theirs] = instances(&set::MODULE, 9);
    let count = 3;
    let (mut a, mut b) = (random(1), random(2));
    let mut m1 = vec![];
    let offer = |b: &mut XofBlocks, m1: &mut Vec<u8>| {
        m1.clear();
        Receiver::offer(&theirs, Choices::Random, count, b, m1)
    };
    for fault in 0..3 {
        offer(&mut b, &mut m1);
        match fault {
            0 => drop(m1.pop()),
            1 => m1.push(0),
            _ => spoil(&ours, &mut m1, 64 + 2 * ours.set().public_len()),
        }
        let mut m2 = vec![1, 2, 3];
        let result = Sender::answer(&ours, Mode::Random, count, &m1, &mut a, &mut m2);
        assert!(matches!(result, Err(Error::Malformed(_))), "fault {fault}");
        assert_eq!(m2, [1, 2, 3], "nothing of an answer is left");
    }
    for fault in 0..4 {
        let receiver = offer(&mut b, &mut m1);
        let (mut m2, mut m3) = (vec![], vec![]);
        Sender::answer(&ours, Mode::Random, count, &m1, &mut a, &mut m2).unwrap();
        match fault {
            0 => drop(m2.pop()),
            1 => m2.push(0),
            2 => spoil(&ours, &mut m2, 33),
            _ => m2.clear(),
        }
        let mut received = [Block::ZERO; 3];
        let result = receiver.open(&theirs, &m2, &mut b, &mut received, &mut m3);
        assert!(matches!(result, Err(Error::Malformed(_))), "fault {fault}");
        assert!(received == [Block::ZERO; 3] && m3.is_empty());
    }
}

/// proof: roted 2.7
#[test]
fn a_receiver_that_opens_other_strings_is_caught() {
    for attempt in 0..200 {
        let [ours, theirs] = instances(&set::MODULE, attempt);
        let (mut a, mut b) = (random(attempt as u128), random(1 << 90 | attempt as u128));
        let (mut m1, mut m2, mut m3) = (vec![], vec![], vec![]);
        let count = 2;
        let receiver = Receiver::offer(&theirs, Choices::Random, count, &mut b, &mut m1);
        let sender = Sender::answer(&ours, Mode::Random, count, &m1, &mut a, &mut m2).unwrap();
        let mut received = [Block::ZERO; 2];
        receiver.open(&theirs, &m2, &mut b, &mut received, &mut m3).unwrap();
        // Knowing u, it opens t_0 or t_1 of either transfer differently in one bit.
        m3[(attempt as usize * 5) % third_len(count)] ^= 1 << (attempt % 8);
        let mut sent = [[Block::ZERO; 2]; 2];
        assert!(matches!(sender.finish(&ours, &m3, &mut sent), Err(Error::Cheated(_))));
        assert!(sent == [[Block::ZERO; 2]; 2], "nothing comes out of a failed check");
    }
}

/// A receiver's randomness, but for t: its first request, of which it makes the two blocks of transfer
/// `equal` one.
struct EqualStrings {
    rest: XofBlocks,
    equal: Option<usize>,
}

impl RandomBlocks for EqualStrings {
    fn fill_blocks(&mut self, out: &mut [Block]) {
        self.rest.fill_blocks(out);
        if let Some(transfer) = self.equal.take() {
            out[2 * transfer + 1] = out[2 * transfer];
        }
    }
}

/// proof: roted 2.7
#[test]
fn a_receiver_that_commits_to_equal_strings_is_refused() {
    // With t_0 = t_1 the two pads differ by their keys alone, and p⁰ = u − h/2 makes keys equal too often.
    let [ours, theirs] = instances(&set::MODULE, 11);
    let count = 3;
    for transfer in 0..count {
        let mut b = EqualStrings { rest: random(2), equal: Some(transfer) };
        let (mut m1, mut m2, mut m3) = (vec![], vec![], vec![]);
        let receiver = Receiver::offer(&theirs, Choices::Given(&[0, 1, 1]), count, &mut b, &mut m1);
        let sender = Sender::answer(&ours, Mode::Chosen, count, &m1, &mut random(1), &mut m2).unwrap();
        receiver.open(&theirs, &m2, &mut b, &mut [Block::ZERO; 3], &mut m3).unwrap();
        assert_eq!(m3[32 * transfer..][..16], m3[32 * transfer + 16..][..16]);
        let mut sent = [[Block::ZERO; 2]; 3];
        assert!(matches!(sender.finish(&ours, &m3, &mut sent), Err(Error::Cheated(_))));
        assert!(sent == [[Block::ZERO; 2]; 3], "nothing comes out of a failed check");
    }
}

const RUNS: usize = 10_000;

/// Receivers of `RUNS` transfers against a sender that `forge`s its second message from an honest one: counts
/// b = 1.
fn ones_against(forge: impl Fn(&Instance<256, 3>, &mut [u8], &mut XofBlocks)) -> u64 {
    let batch = 500;
    (0..RUNS / batch)
        .map(|round| {
            let [ours, theirs] = instances(&set::MODULE, 7000 + round as u64);
            let (mut a, mut b) = (random(round as u128), random(1 << 91 | round as u128));
            let (mut m1, mut m2, mut m3) = (vec![], vec![], vec![]);
            let receiver = Receiver::offer(&theirs, Choices::Random, batch, &mut b, &mut m1);
            Sender::answer(&ours, Mode::Random, batch, &m1, &mut a, &mut m2).unwrap();
            // The sender says a = 0 for every transfer: it wants to know b.
            m2[32..][..batch.div_ceil(8)].fill(0);
            let answers = 32 + batch.div_ceil(8);
            for answer in m2[answers..].chunks_exact_mut(ours.set().public_len() + 64) {
                forge(&ours, answer, &mut a);
            }
            let mut received = vec![Block::ZERO; batch];
            let bits = receiver.open(&theirs, &m2, &mut b, &mut received, &mut m3).unwrap();
            bits.iter().map(|b| *b as u64).sum::<u64>()
        })
        .sum()
}

/// proof: roted 3.3
#[test]
fn a_sender_of_zeros_does_not_fix_b() {
    // p_S = 0, σ_0 = σ_1 = 0: both keys are zero, whatever c is.
    assert_fair(ones_against(|_, answer, _| answer.fill(0)), RUNS as u64);
}

/// proof: roted 3.3
#[test]
fn a_sender_of_one_good_slot_does_not_fix_b() {
    for slot in [0, 1] {
        let ones = ones_against(|instance, answer, random| {
            let mut garbage = [Block::ZERO; 2];
            random.fill_blocks(&mut garbage);
            let at = instance.set().public_len() + 32 * slot;
            answer[at..][..32].copy_from_slice(Block::as_bytes(&garbage));
        });
        assert_fair(ones, RUNS as u64);
    }
}

/// proof: roted 3.4
#[test]
fn a_sender_that_spoils_a_slot_learns_nothing_from_the_third_message() {
    // The third message is t_0, t_1, drawn before the sender spoke: it is the same whatever the second
    // message was.
    let [ours, theirs] = instances(&set::MODULE, 5);
    let third = |spoil: bool| {
        let (mut a, mut b) = (random(1), random(2));
        let (mut m1, mut m2, mut m3) = (vec![], vec![], vec![]);
        let receiver = Receiver::offer(&theirs, Choices::Random, 8, &mut b, &mut m1);
        Sender::answer(&ours, Mode::Random, 8, &m1, &mut a, &mut m2).unwrap();
        if spoil {
            m2[33..].fill(0);
        }
        let mut out = [Block::ZERO; 8];
        receiver.open(&theirs, &m2, &mut b, &mut out, &mut m3).unwrap();
        m3
    };
    assert_eq!(third(false), third(true));
}

/// proof: roted 5.1
#[test]
fn fresh_secrets_for_every_transfer() {
    // The same p_S twice would give s_S away after some tens of transfers.
    let [ours, theirs] = instances(&set::PAPER, 3);
    let (mut a, mut b) = (random(5), random(6));
    let (mut m1, mut m2) = (vec![], vec![]);
    Receiver::offer(&theirs, Choices::Random, 64, &mut b, &mut m1);
    Sender::answer(&ours, Mode::Chosen, 64, &m1, &mut a, &mut m2).unwrap();
    let publics = |m: &[u8], skip: usize, stride: usize| {
        let mut all: Vec<Vec<u8>> =
            m[skip..].chunks_exact(stride).map(|c| c[..ours.set().public_len()].to_vec()).collect();
        all.sort();
        all.dedup();
        all.len()
    };
    assert_eq!(publics(&m1, 64, ours.set().public_len()), 64);
    assert_eq!(publics(&m2, 32, ours.set().public_len() + 128), 64);
}

#[test]
fn scratch_holds_what_the_noise_needs() {
    for noise in [Noise::Binomial2, Noise::Gaussian2] {
        let set = Set { noise, ..set::MODULE };
        let [ours, _] = instances(&set, 1);
        let mut scratch = Scratch::new(&ours);
        let (mut secret, mut public) = (Vector::ZERO, Vector::ZERO);
        exchange::generate(&ours, &mut random(1), &mut scratch, &mut secret, &mut public);
        assert!(public != Vector::ZERO && secret != Vector::ZERO);
    }
}
