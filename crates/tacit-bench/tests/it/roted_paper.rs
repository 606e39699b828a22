//! The attacks on ROTed's figure as printed.

use crate::base;
use tacit_bench::base::{ENTRIES, NAMES, by_name, roted_paper};
use tacit_crypto::ring::Vector;
use tacit_crypto::{Block, Prg};
use tacit_roted::set::PAPER;
use tacit_roted::{Instance, Role, exchange};

const RUNS: u64 = 10_000;

fn paper(role: Role) -> Instance<512, 1> {
    Instance::new(&PAPER, roted_paper::NAME, b"attacks", role)
}

#[test]
fn the_figure_is_correct_between_honest_parties() {
    let (ours, theirs, mut prg) = (paper(Role::Sender), paper(Role::Receiver), Prg::from_os());
    let mut ones = 0;
    for index in 0..1000 {
        let (receiver, first) = roted_paper::Receiver::offer(&theirs, index, &mut prg);
        let (sender, second) = roted_paper::Sender::answer(&ours, index, &first, &mut prg).unwrap();
        let ((b, message), t) = receiver.open(&theirs, &second, &mut prg).unwrap();
        let pair = sender.finish(&ours, t).unwrap();
        assert!(pair[b as usize] == message && pair[1 - b as usize] != message);
        ones += b as u64;
    }
    base::assert_fair(ones, 1000);
}

/// Runs the figure against a sender that turns an honest second message into its own; counts b = 1.
fn ones_of_the_figure(forge: impl Fn(&Instance<512, 1>, u64, &mut roted_paper::Second)) -> u64 {
    let (ours, theirs, mut prg) = (paper(Role::Sender), paper(Role::Receiver), Prg::from_os());
    (0..RUNS)
        .map(|index| {
            let (receiver, first) = roted_paper::Receiver::offer(&theirs, index, &mut prg);
            let (_, mut second) = roted_paper::Sender::answer(&ours, index, &first, &mut prg).unwrap();
            forge(&ours, index, &mut second);
            let ((b, _), _) = receiver.open(&theirs, &second, &mut prg).unwrap();
            b as u64
        })
        .sum()
}

#[test]
fn a_sender_of_zeros_fixes_the_figures_bit() {
    // p_S = 0 and zero signals make sk = 0 for either c, so the sender puts H_2(0) where it wants.
    for wish in [0, 1] {
        let ones = ones_of_the_figure(|instance, index, second| {
            second.public.fill(0);
            second.signals.iter_mut().for_each(|s| s.fill(0));
            second.confirmations = [Block::ONES; 2];
            let zero = vec![0; instance.set().key_words()];
            second.confirmations[wish] = roted_paper::confirm(instance, index, &zero);
        });
        assert_eq!(ones, RUNS * wish as u64, "the figure's bit is the sender's");
    }
}

#[test]
fn a_sender_of_one_good_slot_fixes_the_figures_bit() {
    // The honest message holds K_a, K_{1−a}; the attacker knows a, so it can leave the K of slot 1 first and
    // spoil the other: c = 1 gives b = 0 by the first rule, c = 0 gives b = c = 0 by the third. Or slot 0's
    // second: b = 1.
    let (ours, theirs, mut prg) = (paper(Role::Sender), paper(Role::Receiver), Prg::from_os());
    for wish in [0u8, 1] {
        for index in 0..RUNS / 2 {
            let (receiver, first) = roted_paper::Receiver::offer(&theirs, index, &mut prg);
            let (mut second, keys) = answer_with_keys(&ours, index, &first, &mut prg);
            second.confirmations = [Block::ONES; 2];
            let good = roted_paper::confirm(&ours, index, &keys[1 - wish as usize]);
            second.confirmations[wish as usize] = good;
            let ((b, _), _) = receiver.open(&theirs, &second, &mut prg).unwrap();
            assert_eq!(b, wish);
        }
    }
}

/// An honest second message of the figure, with both keys.
fn answer_with_keys(
    instance: &Instance<512, 1>,
    index: u64,
    first: &roted_paper::First,
    prg: &mut Prg,
) -> (roted_paper::Second, [Vec<u16>; 2]) {
    let mut scratch = exchange::Scratch::new(instance);
    let [mut peer, mut secret, mut public] = [const { Vector::ZERO }; 3];
    exchange::unpack(instance, &first.public, &mut peer).unwrap();
    exchange::generate(instance, prg, &mut scratch, &mut secret, &mut public);
    let words = instance.set().key_words();
    let (mut signals, mut keys) = ([vec![0; words], vec![0; words]], [vec![0; words], vec![0; words]]);
    let mut h = [tacit_crypto::ring::Poly::ZERO];
    instance.offset(index, &first.r, &mut h);
    for slot in 0..2 {
        if slot == 1 {
            exchange::second_slot(instance, &mut peer, &h);
        }
        let out = (&mut signals[slot][..], &mut keys[slot][..]);
        exchange::signal(instance, prg, &mut scratch, &secret, &peer, out);
    }
    let mut packed = vec![0; instance.set().public_len()];
    exchange::pack(instance, &public, &mut packed);
    let second =
        roted_paper::Second { public: packed, confirmations: [Block::ZERO; 2], signals, u: prg.block() };
    (second, keys)
}

#[test]
fn the_insecure_figure_cannot_be_selected() {
    assert!(by_name(roted_paper::NAME).is_none());
    assert!(!NAMES.contains(&roted_paper::NAME));
    assert!(ENTRIES.iter().all(|entry| entry.name != roted_paper::NAME));
}
