//! IKNP, KOS and OOS: what both sides get is correlated as it must be, for all sizes and ways of use.

use crate::common::{Dealer, assert_correlated, prg, run};
use std::sync::Arc;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::memory;
use tacit_ot::convert::{CotToRot, Derandomised, RotToOt};
use tacit_ot::extension::code::{LinearCode, MatrixCode, encode_rows};
use tacit_ot::extension::{IknpReceiver, IknpSender, KosReceiver, KosSender, OosReceiver, OosSender};
use tacit_ot::{
    BaseOt, ChosenCotReceiver, ChosenCotSender, CotReceiver, CotSender, Error, OtReceiver, OtSender,
    RotReceiver, RotSender, Security, base,
};

/// Around a block, a tile (8,192), a KOS batch (65,408), more batches than the window, and a million.
const SIZES: [usize; 13] =
    [0, 1, 127, 128, 129, 8191, 8193, 65_407, 65_408, 65_409, 130_816, 400_000, 1_000_000];

/// Many extensions of one setup, all sizes, random choices.
fn random_cots(mut sender: impl CotSender + Send, mut receiver: impl CotReceiver + Send) {
    let (v, w) = run(
        |channel| {
            SIZES
                .map(|n| {
                    let mut out = vec![Block::ONES; n];
                    sender.extend(channel, &mut out).map(|()| out)
                })
                .into_iter()
                .collect::<Result<Vec<_>, _>>()
        },
        |channel| {
            SIZES
                .map(|n| {
                    let mut out = vec![Block::ONES; n];
                    receiver.extend(channel, &mut out).map(|()| out)
                })
                .into_iter()
                .collect::<Result<Vec<_>, _>>()
        },
    );
    for (v, w) in v.iter().zip(&w) {
        assert_correlated(sender.delta(), v, w);
    }
    // The choices are random: of a million, half are one (six sigma).
    let ones = w[SIZES.len() - 1].iter().filter(|w| w.lsb()).count();
    assert!((497_000..503_000).contains(&ones), "{ones} ones");
    // And no two rows of two extensions are equal.
    assert!(v[12][..1000].iter().all(|x| !v[11][..1000].contains(x)));
}

fn chosen_cots(mut sender: impl ChosenCotSender + Send, mut receiver: impl ChosenCotReceiver + Send) {
    for n in [0, 1, 127, 128, 129, 70_000] {
        let choices = BitVec::random(n, &mut prg(n as u128));
        let (v, w) = run(
            |channel| {
                let mut out = vec![Block::ONES; n];
                sender.extend_chosen(channel, &mut out).map(|()| out)
            },
            |channel| {
                let mut out = vec![Block::ONES; n];
                receiver.extend_chosen(channel, &choices, &mut out).map(|()| out)
            },
        );
        assert_correlated(sender.delta(), &v, &w);
        assert!(BitVec::from_lsbs(&w) == choices);
    }
}

fn iknp() -> (IknpSender, IknpReceiver) {
    run(
        |channel| IknpSender::setup(channel, &Dealer(1), &mut prg(2)),
        |channel| IknpReceiver::setup(channel, &Dealer(1), &mut prg(3)),
    )
}

fn kos() -> (KosSender, KosReceiver) {
    run(
        |channel| KosSender::setup(channel, &Dealer(1), &mut prg(2)),
        |channel| KosReceiver::setup(channel, &Dealer(1), &mut prg(3)),
    )
}

#[test]
fn iknp_correlates() {
    let (sender, receiver) = iknp();
    random_cots(sender, receiver);
    let (sender, receiver) = iknp();
    chosen_cots(sender, receiver);
}

#[test]
fn kos_correlates() {
    let (sender, receiver) = kos();
    random_cots(sender, receiver);
    let (sender, receiver) = kos();
    chosen_cots(sender, receiver);
}

/// The same with χ from a hash, and an extension is one message.
#[test]
fn kos_by_hash_correlates() {
    let by_hash = || {
        let (sender, receiver) = kos();
        run(|channel| Ok(sender.by_hash(channel)), |channel| Ok(receiver.by_hash(channel)))
    };
    let (sender, receiver) = by_hash();
    assert!(!receiver.is_answered() && kos().1.is_answered());
    random_cots(sender, receiver);
    let (sender, receiver) = by_hash();
    chosen_cots(sender, receiver);
    let (mut sender, mut receiver) = by_hash();
    let (mut sender, mut receiver) = (sender.fork(), receiver.fork());
    let ((v, sent), w) = run(
        |channel| {
            let mut out = vec![Block::ZERO; 9000];
            sender.extend(channel, &mut out).map(|()| (out, channel.stats().bytes_sent))
        },
        |channel| {
            let mut out = vec![Block::ZERO; 9000];
            receiver.extend(channel, &mut out).map(|()| out)
        },
    );
    assert_correlated(sender.delta(), &v, &w);
    assert_eq!(sent, 0);
}

#[test]
fn derandomised_correlates() {
    let (sender, receiver) = kos();
    chosen_cots(Derandomised::new(sender), Derandomised::new(receiver));
}

/// The seeds come from a real base OT, then from the random OT of the extension that it seeds.
#[test]
fn setups() {
    let (mut sender, mut receiver) = run(
        |channel| {
            let first = KosReceiver::setup(channel, &*base::default(), &mut prg(2))?;
            KosSender::from_rot(channel, &mut CotToRot::new(first), &[0; 32], &mut prg(4))
        },
        |channel| {
            let first = KosSender::setup(channel, &*base::default(), &mut prg(5))?;
            KosReceiver::from_rot(channel, &mut CotToRot::new(first), &[0; 32], &mut prg(7))
        },
    );
    let (v, w) = run(
        |channel| {
            let mut out = vec![Block::ZERO; 1000];
            sender.extend(channel, &mut out).map(|()| out)
        },
        |channel| {
            let mut out = vec![Block::ZERO; 1000];
            receiver.extend(channel, &mut out).map(|()| out)
        },
    );
    assert_correlated(sender.delta(), &v, &w);
}

/// A malicious extension takes no base OT that is only semi-honest.
#[test]
fn kos_refuses_a_semi_honest_base() {
    struct Weak;
    impl BaseOt for Weak {
        fn name(&self) -> &'static str {
            "weak"
        }
        fn security(&self) -> Security {
            Security::SemiHonest
        }
        fn send(
            &self,
            c: &mut tacit_net::Channel,
            p: &mut Prg,
            out: &mut [[Block; 2]],
        ) -> tacit_ot::Result<()> {
            Dealer(0).send(c, p, out)
        }
        fn receive(
            &self,
            c: &mut tacit_net::Channel,
            p: &mut Prg,
            choices: &BitVec,
            out: &mut [Block],
        ) -> tacit_ot::Result<()> {
            Dealer(0).receive(c, p, choices, out)
        }
    }
    let (mut a, _b) = memory::pair();
    assert!(matches!(KosSender::setup(&mut a, &Weak, &mut prg(1)), Err(Error::Usage { .. })));
    assert!(matches!(KosReceiver::setup(&mut a, &Weak, &mut prg(1)), Err(Error::Usage { .. })));
}

fn check_rots(pairs: &[[Block; 2]], choices: &BitVec, got: &[Block]) {
    assert_eq!((pairs.len(), choices.len()), (got.len(), got.len()));
    for (j, got) in got.iter().enumerate() {
        assert!(*got == pairs[j][choices.get(j) as usize], "wrong message at {j}");
        assert!(pairs[j][0] != pairs[j][1], "equal messages at {j}");
    }
}

#[test]
fn random_ot() {
    let (sender, receiver) = kos();
    let (mut sender, mut receiver) = (CotToRot::new(sender), CotToRot::new(receiver));
    let mut seen = Vec::new();
    for n in SIZES {
        let (pairs, (choices, got)) = run(
            |channel| {
                let mut out = vec![[Block::ZERO; 2]; n];
                sender.extend(channel, &mut out).map(|()| out)
            },
            |channel| {
                let mut out = vec![Block::ZERO; n];
                receiver.extend(channel, &mut out).map(|choices| (choices, out))
            },
        );
        check_rots(&pairs, &choices, &got);
        seen.extend(pairs.iter().take(1000).flatten().map(|b| b.to_bytes()));
    }
    let count = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), count, "a message came twice");
}

/// The hash of a random OT is MITCCRH with one gid an OT: equal rows in two places give different messages.
#[test]
fn random_ot_separates_equal_rows() {
    struct Constant(Block);
    impl CotSender for Constant {
        fn delta(&self) -> Block {
            self.0
        }
        fn extend(&mut self, _: &mut tacit_net::Channel, out: &mut [Block]) -> tacit_ot::Result<()> {
            out.fill(Block::new(6));
            Ok(())
        }
    }
    let mut rot = CotToRot::new(Constant(Block::new(9)));
    let (mut a, _b) = memory::pair();
    let mut seen = Vec::new();
    for n in [20, 300] {
        let mut out = vec![[Block::ZERO; 2]; n];
        rot.extend(&mut a, &mut out).unwrap();
        seen.extend(out.iter().flatten().map(|b| b.to_bytes()));
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 640);
}

#[test]
fn chosen_blocks() {
    let (sender, receiver) = kos();
    let mut sender = RotToOt::new(CotToRot::new(sender));
    let mut receiver = RotToOt::new(CotToRot::new(receiver));
    // Past one chunk of 2^18.
    for n in [0, 1, 128, 129, 300_000] {
        let mut messages = vec![[Block::ZERO; 2]; n];
        prg(10).fill_blocks(messages.as_flattened_mut());
        let choices = BitVec::random(n, &mut prg(11));
        let ((), got) = run(
            |channel| sender.send(channel, &messages),
            |channel| {
                let mut out = vec![Block::ZERO; n];
                receiver.receive(channel, &choices, &mut out).map(|()| out)
            },
        );
        for (j, got) in got.iter().enumerate() {
            assert!(*got == messages[j][choices.get(j) as usize]);
        }
    }
}

#[test]
fn chosen_strings() {
    let (sender, receiver) = iknp();
    let mut sender = RotToOt::new(CotToRot::new(sender));
    let mut receiver = RotToOt::new(CotToRot::new(receiver));
    for lengths in [vec![], vec![0; 3], vec![1; 9], [0, 1, 15, 16, 17, 1000, 100_000].repeat(4)] {
        let mut random = prg(lengths.len() as u128);
        let messages: Vec<[Vec<u8>; 2]> = lengths
            .iter()
            .map(|n| {
                [0, 1].map(|_| {
                    let mut bytes = vec![0; *n];
                    random.fill_bytes(&mut bytes);
                    bytes
                })
            })
            .collect();
        let choices = BitVec::random(lengths.len(), &mut random);
        let ((), got) = run(
            |channel| sender.send_strings(channel, &messages),
            |channel| receiver.receive_strings(channel, &choices, &lengths),
        );
        for (j, got) in got.iter().enumerate() {
            assert_eq!(*got, messages[j][choices.get(j) as usize], "string {j}");
        }
        assert_eq!(got.len(), lengths.len());
    }
    let (mut a, _b) = memory::pair();
    assert!(matches!(sender.send_strings(&mut a, &[[&b"ab"[..], b"a"]]), Err(Error::Usage { .. })));
}

#[test]
fn chosen_rows() {
    let (sender, receiver) = iknp();
    let mut sender = RotToOt::new(CotToRot::new(sender));
    let mut receiver = RotToOt::new(CotToRot::new(receiver));
    for (width, count) in [(1, 9), (16, 0), (17, 300), (1000, 5)] {
        let mut random = prg(width as u128);
        let mut rows = vec![0; 2 * width * count];
        random.fill_bytes(&mut rows);
        let choices = BitVec::random(count, &mut random);
        let ((), got) = run(
            |channel| sender.send_rows(channel, width, &rows),
            |channel| {
                let mut got = vec![7; width * count];
                receiver.receive_rows(channel, width, &choices, &mut got).map(|()| got)
            },
        );
        for (j, got) in got.chunks(width).enumerate() {
            let at = 2 * j + usize::from(choices.get(j));
            assert_eq!(got, &rows[at * width..][..width], "row {j} of {width}");
        }
    }
    let (mut a, b) = memory::pair();
    for (width, bytes) in [(0, 0), (0, 4), (2, 6), (3, 4)] {
        let wrong = sender.send_rows(&mut a, width, &vec![0; bytes]);
        assert!(matches!(wrong, Err(Error::Usage { .. })), "{width} {bytes}");
    }
    for (width, count, bytes) in [(0, 0, 0), (0, 3, 0), (2, 3, 5), (2, 3, 8)] {
        let wrong = receiver.receive_rows(&mut a, width, &BitVec::zeros(count), &mut vec![0; bytes]);
        assert!(matches!(wrong, Err(Error::Usage { .. })), "{width} {count} {bytes}");
    }
    // The sender is gone: nothing of what was there may be taken for messages.
    drop(b);
    let mut got = [7; 6];
    assert!(receiver.receive_rows(&mut a, 2, &BitVec::zeros(3), &mut got).is_err());
    assert_eq!(got, [0; 6]);
}

type PaxosSender = OosSender<2, 6>;
type PaxosReceiver = OosReceiver<2, 6>;

fn words(n: usize, bits: usize, prg: &mut Prg) -> Vec<[Block; 2]> {
    let high = Block::new((1u128 << (bits - 128)) - 1);
    (0..n).map(|_| [prg.block(), prg.block() & high]).collect()
}

/// t = q ⊕ C(d) ∧ Δ with C(d) computed word by word, and sums of rows go with sums of words.
#[test]
fn oos_correlates() {
    let code: Arc<dyn LinearCode> = Arc::new(MatrixCode::concatenated(64));
    let (mut sender, mut receiver) = run(
        |channel| PaxosSender::setup(channel, &Dealer(1), code.clone(), &mut prg(2)),
        |channel| PaxosReceiver::setup(channel, &Dealer(1), code.clone(), &mut prg(3)),
    );
    for n in [0, 1, 127, 128, 129, 2048, 2049, 32_640, 32_641, 200_000] {
        let inputs = words(n, 231, &mut prg(n as u128));
        let (q, t) = run(
            |channel| {
                let mut rows = vec![[Block::ONES; 6]; n];
                sender.extend(channel, &mut rows).map(|()| rows)
            },
            |channel| {
                let mut rows = vec![[Block::ONES; 6]; n];
                receiver.extend(channel, &inputs, &mut rows).map(|()| rows)
            },
        );
        let mut codes = vec![[Block::ZERO; 6]; n];
        encode_rows(&*code, &inputs, &mut codes);
        for j in 0..n {
            for w in 0..6 {
                assert!(t[j][w] == q[j][w] ^ (codes[j][w] & sender.delta()[w]), "row {j} of {n}");
            }
        }
        // The use of PaXoS: sums of three rows.
        let sum = |rows: &[[Block; 6]], i: usize| -> [Block; 6] {
            core::array::from_fn(|w| rows[i][w] ^ rows[(i * 7 + 1) % n][w] ^ rows[(i * 31 + 5) % n][w])
        };
        let at: Vec<usize> = (0..n.min(1500)).collect();
        let mut values: Vec<[Block; 6]> = at.iter().map(|i| sum(&q, *i)).collect();
        let points: Vec<[Block; 2]> = at
            .iter()
            .map(|&i| {
                core::array::from_fn(|w| {
                    inputs[i][w] ^ inputs[(i * 7 + 1) % n][w] ^ inputs[(i * 31 + 5) % n][w]
                })
            })
            .collect();
        sender.correct(&points, &mut values);
        for i in at {
            assert!(values[i] == sum(&t, i));
        }
    }
}

/// Forks are streams of their own with the same Δ.
#[test]
fn oos_forks() {
    let code: Arc<dyn LinearCode> = Arc::new(MatrixCode::concatenated(64));
    let (mut sender, mut receiver) = run(
        |channel| PaxosSender::setup(channel, &*base::default(), code.clone(), &mut prg(2)),
        |channel| PaxosReceiver::setup(channel, &*base::default(), code.clone(), &mut prg(3)),
    );
    let inputs = words(200, 231, &mut prg(4));
    let mut seen = Vec::new();
    for _ in 0..2 {
        let (mut s, mut r) = (sender.fork(), receiver.fork());
        let (mut q, mut t) = (vec![[Block::ZERO; 6]; 200], vec![[Block::ZERO; 6]; 200]);
        run(|channel| s.extend(channel, &mut q), |channel| r.extend(channel, &inputs, &mut t));
        seen.push(t.clone());
        sender.correct(&inputs, &mut q);
        assert!(q == t);
    }
    assert!(seen[0] != seen[1]);
}

/// The repetition code makes KOS of OOS.
#[test]
fn oos_with_the_repetition_code() {
    let code: Arc<dyn LinearCode> = Arc::new(MatrixCode::repetition(128));
    let (mut sender, mut receiver) = run(
        |channel| OosSender::<1, 1>::setup(channel, &Dealer(1), code.clone(), &mut prg(2)),
        |channel| OosReceiver::<1, 1>::setup(channel, &Dealer(1), code.clone(), &mut prg(3)),
    );
    let inputs: Vec<[Block; 1]> = (0..1000).map(|i| [Block::new(i % 3 % 2)]).collect();
    let (q, t) = run(
        |channel| {
            let mut rows = vec![[Block::ZERO; 1]; 1000];
            sender.extend(channel, &mut rows).map(|()| rows)
        },
        |channel| {
            let mut rows = vec![[Block::ZERO; 1]; 1000];
            receiver.extend(channel, &inputs, &mut rows).map(|()| rows)
        },
    );
    for j in 0..1000 {
        assert!(t[j][0] == q[j][0] ^ (sender.delta()[0] & Block::mask(inputs[j][0].lsb())));
    }
}

#[test]
fn oos_refuses_wrong_shapes() {
    let code: Arc<dyn LinearCode> = Arc::new(MatrixCode::concatenated(64));
    let (mut a, _b) = memory::pair();
    let wide = OosSender::<1, 6>::setup(&mut a, &Dealer(1), code.clone(), &mut prg(2));
    assert!(matches!(wide, Err(Error::Usage { .. })));
    let (_sender, mut receiver) = run(
        |channel| PaxosSender::setup(channel, &Dealer(1), code.clone(), &mut prg(2)),
        |channel| PaxosReceiver::setup(channel, &Dealer(1), code.clone(), &mut prg(3)),
    );
    let excess = [[Block::ZERO, Block::new(1 << 103)]];
    let refused = receiver.extend(&mut a, &excess, &mut [[Block::ZERO; 6]]);
    assert!(matches!(refused, Err(Error::Usage { .. })));
}

/// Streams of one setup: correlated, and no two of them make one message.
#[test]
fn streams_of_one_setup_differ() {
    const N: usize = 10_000;
    let (mut sender, mut receiver) = kos();
    let mut messages = Vec::new();
    for _ in 0..3 {
        let (mut of_sender, mut of_receiver) = (CotToRot::new(sender.fork()), CotToRot::new(receiver.fork()));
        let (mut pairs, mut got) = (vec![[Block::ZERO; 2]; N], vec![Block::ZERO; N]);
        let ((), choices) = run(|ch| of_sender.extend(ch, &mut pairs), |ch| of_receiver.extend(ch, &mut got));
        check_rots(&pairs, &choices, &got);
        messages.extend(pairs.iter().flatten().map(|block| block.to_bytes()));
    }
    messages.sort_unstable();
    messages.dedup();
    assert_eq!(messages.len(), 3 * 2 * N, "two streams made one message");
}
