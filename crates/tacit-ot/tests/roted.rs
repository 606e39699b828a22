//! ROTed and BDGM19 over channels, the attacks on ROTed's figure, and cheaters against BDGM19.

#[path = "common/wire.rs"]
mod wire;

use tacit_crypto::ring::{Vector, XofBlocks};
use tacit_crypto::simd::Backend;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::memory;
use tacit_ot::assumptions;
use tacit_ot::base::bdgm19::{self, Bdgm19};
use tacit_ot::base::roted::{self, ParameterSet, Roted};
use tacit_ot::base::{self, roted_paper};
use tacit_ot::{BaseOt, Error, RotReceiver, RotSender};
use tacit_roted::exchange;
use tacit_roted::set::{self, MODULE, PAPER};
use tacit_roted::{Instance, Role};

const SETS: [ParameterSet; 3] = [ParameterSet::Module, ParameterSet::Large, ParameterSet::Paper];

fn transfers(ot: &(dyn BaseOt + Sync), n: usize) {
    let choices = BitVec::random(n, &mut Prg::from_seed(Block::new(n as u128)));
    let (mut pairs, mut chosen) = (vec![[Block::ZERO; 2]; n], vec![Block::ZERO; n]);
    let (sent, received) = memory::run(
        |channel| ot.send(channel, &mut Prg::from_os(), &mut pairs),
        |channel| ot.receive(channel, &mut Prg::from_os(), &choices, &mut chosen),
    );
    sent.unwrap();
    received.unwrap();
    for i in 0..n {
        assert!(chosen[i] == pairs[i][choices.get(i) as usize], "OT {i} of {n}");
        assert!(chosen[i] != pairs[i][!choices.get(i) as usize], "OT {i} of {n}");
    }
}

fn wire_line(ot: &(dyn BaseOt + Sync), set: ParameterSet, n: usize) -> String {
    let prg = |seed| Prg::from_seed(Block::new(seed));
    let choices = BitVec::random(n, &mut prg(1));
    wire::line(
        &format!("{} {set:?} {n}", ot.name()),
        |channel| {
            let mut pairs = vec![[Block::ZERO; 2]; n];
            ot.send(channel, &mut prg(2), &mut pairs)?;
            Ok(Block::as_bytes(pairs.as_flattened()).to_vec())
        },
        |channel| {
            let mut chosen = vec![Block::ZERO; n];
            ot.receive(channel, &mut prg(3), &choices, &mut chosen)?;
            Ok(Block::as_bytes(&chosen).to_vec())
        },
    )
}

#[test]
fn wire_and_outputs_are_as_recorded() {
    let mut lines = String::new();
    for set in SETS {
        for n in [1, 128] {
            lines += &wire_line(&Roted { set }, set, n);
            lines += &wire_line(&Bdgm19 { set }, set, n);
        }
    }
    let recorded = include_str!("roted.digests");
    assert_eq!(lines, recorded, "the wire format changed; if on purpose, raise the version");
}

#[test]
fn every_backend_writes_the_recorded_bytes() {
    // The backend is chosen once a process.
    for backend in Backend::available() {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "wire_and_outputs_are_as_recorded"]).env("TACIT_SIMD", backend.name());
        let said = again.output().unwrap();
        let text = String::from_utf8_lossy(&said.stdout);
        assert!(said.status.success() && text.contains("1 passed"), "{}: {text}", backend.name());
    }
}

#[test]
fn every_set_transfers_over_channels() {
    for set in SETS {
        transfers(&Roted { set }, 129);
        transfers(&Bdgm19 { set }, 129);
    }
    // More than one batch of messages.
    transfers(&Roted::default(), 1030);
    transfers(&Bdgm19::default(), 1030);
}

#[test]
fn random_ot_has_uniform_bits() {
    let mut ones = 0;
    for set in SETS {
        let mut sender = roted::Sender { set, prg: Prg::from_os() };
        let mut receiver = roted::Receiver { set, prg: Prg::from_os() };
        let n = 1030;
        let (mut pairs, mut chosen) = (vec![[Block::ZERO; 2]; n], vec![Block::ZERO; n]);
        let (sent, bits) = memory::run(
            |channel| sender.extend(channel, &mut pairs),
            |channel| receiver.extend(channel, &mut chosen),
        );
        sent.unwrap();
        let bits = bits.unwrap();
        for i in 0..n {
            assert!(chosen[i] == pairs[i][bits.get(i) as usize]);
            ones += bits.get(i) as u64;
        }
    }
    assert_fair(ones, 3 * 1030);
}

#[test]
fn ends_that_disagree_on_the_set_or_the_mode_get_an_error() {
    let (mut pairs, mut chosen) = ([[Block::ZERO; 2]; 4], [Block::ZERO; 4]);
    let (sent, received) = memory::run(
        |channel| Roted { set: ParameterSet::Paper }.send(channel, &mut Prg::from_os(), &mut pairs),
        |channel| {
            let choices = BitVec::zeros(4);
            Roted::default().receive(channel, &mut Prg::from_os(), &choices, &mut chosen)
        },
    );
    assert!(sent.is_err() || received.is_err());
    assert!(pairs == [[Block::ZERO; 2]; 4]);
}

/// χ² of one degree of freedom; 30 is 10^-7.
fn assert_fair(ones: u64, runs: u64) {
    let half = runs as f64 / 2.0;
    let chi = 2.0 * (ones as f64 - half).powi(2) / half;
    assert!(chi < 30.0, "{ones} ones of {runs}");
}

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
    assert_fair(ones, 1000);
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
    // The honest message holds K_a, K_{1−a}; the attacker knows a, so it can leave the K of slot 1 first and spoil the
    // other: c = 1 gives b = 0 by the first rule, c = 0 gives b = c = 0 by the third. Or slot 0's second: b = 1.
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
    assert!(base::by_name(roted_paper::NAME).is_none());
    assert!(!base::NAMES.contains(&roted_paper::NAME));
    assert!(assumptions::find(assumptions::PROTOCOLS, roted_paper::NAME).is_none());
}

fn bdgm(role: Role) -> Instance<256, 3> {
    Instance::new(&MODULE, bdgm19::NAME, b"cheaters", role)
}

fn stream() -> XofBlocks {
    XofBlocks::from_prg(&mut Prg::from_os())
}

#[test]
fn bdgm19_catches_a_receiver_without_an_answer() {
    // A receiver that cannot finish either exchange has to guess the response; the bits behind it do not
    // matter.
    let (ours, mut a) = (bdgm(Role::Sender), stream());
    for attempt in 0..100u8 {
        let (_, first) = bdgm19::Receiver::offer(&bdgm(Role::Receiver), &[0, 1], &mut stream());
        let (sender, _) = bdgm19::Sender::challenge(&ours, 2, &first, &mut a).unwrap();
        let mut out = [[Block::ZERO; 2]; 2];
        let result = sender.finish(&[attempt; 33], &mut out);
        assert!(matches!(result, Err(tacit_roted::Error::Cheated(_))));
        assert!(out == [[Block::ZERO; 2]; 2]);
    }
}

#[test]
fn bdgm19_catches_every_changed_byte_of_what_the_proof_covers() {
    let (ours, theirs, mut a, mut b) = (bdgm(Role::Sender), bdgm(Role::Receiver), stream(), stream());
    for attempt in 0..200usize {
        let choices = [(attempt & 1) as u8, (attempt >> 1 & 1) as u8];
        let (receiver, first) = bdgm19::Receiver::offer(&theirs, &choices, &mut b);
        let (_, mut second) = bdgm19::Sender::challenge(&ours, 2, &first, &mut a).unwrap();
        let at = attempt * 7919 % second.len();
        second[at] ^= 1 << (attempt % 8);
        let mut out = [Block::ZERO; 2];
        let result = receiver.respond(&theirs, &second, &mut b, &mut out);
        assert!(result.is_err(), "byte {at}");
        assert!(out == [Block::ZERO; 2], "nothing comes out of a failed check");
    }
}

#[test]
fn malformed_polynomials_are_refused_over_channels() {
    for name in [roted::NAME, bdgm19::NAME] {
        let ot = base::by_name(name).unwrap();
        let mut out = [[Block::ZERO; 2]; 2];
        let (result, ()) = memory::run(
            |channel| ot.send(channel, &mut Prg::from_os(), &mut out),
            // All ones: every coefficient is 8191, which is not below q = 7681.
            |channel| {
                channel.send(&vec![0xff; 64 + 2 * set::MODULE.public_len()]).unwrap();
                channel.flush().unwrap();
            },
        );
        assert!(matches!(result, Err(Error::Malformed { protocol, .. }) if protocol == name), "{name}");
        assert!(out == [[Block::ZERO; 2]; 2]);
    }
}

#[test]
fn every_base_ot_is_declared_and_the_declarations_agree() {
    for name in base::NAMES {
        let declared = assumptions::find(assumptions::PROTOCOLS, name).expect(name);
        assert_eq!(declared.job, assumptions::Job::BaseOt, "{name}");
        assert_eq!(declared.security, base::by_name(name).unwrap().security(), "{name}");
        let refused = assumptions::refusal(declared, assumptions::PROTOCOLS);
        assert_eq!(refused.is_none(), [roted::NAME, bdgm19::NAME].contains(&name), "{name}: {refused:?}");
    }
}

#[test]
fn the_docs_table_is_the_codes() {
    let docs = include_str!("../../../docs/post-quantum.md");
    let table = assumptions::table(assumptions::PROTOCOLS);
    assert!(docs.contains(&table), "docs/post-quantum.md should hold this table:\n{table}");
}
