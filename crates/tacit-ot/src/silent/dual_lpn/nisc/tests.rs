use super::*;

fn prg(seed: u128) -> Prg {
    Prg::from_seed(Block::new(seed))
}

fn key(seed: u128) -> (ReceiverKey, Vec<u8>) {
    let params = Params { code: Code::Linear, security: Security::Malicious, count: 1 };
    ReceiverKey::generate(params, b"test", None, &mut prg(seed)).unwrap()
}

/// Runs a sender that changes its message before it draws the challenges, as one that knows the hash
/// would.
fn cheat(receiver: &ReceiverKey, public: &[u8], change: impl FnOnce(&mut [u8])) -> Result<ReceiverOutput> {
    let (_, answer) =
        SenderKey::answer_with(public, b"test", &Parties::default(), &mut prg(7), change).unwrap();
    // What rates are taken of: a receiver that can be asked again, which the key itself does not allow.
    ReceiverKey::from_bytes(&receiver.to_bytes(), b"test").unwrap().expand_out(&answer, None)
}

/// Spoils the first message of the pair of base OTs `i`: whoever takes the second does not see it.
fn spoilt_pair(public: &[u8], i: usize) -> Vec<u8> {
    let change = |answer: &mut [u8]| answer[HEADER + 2 * POINT + 32 * i] ^= 1;
    SenderKey::answer_with(public, b"test", &Parties::default(), &mut prg(7), change).unwrap().1
}

/// A cheater that asks one key for bit after bit learns each bit until its first wrong guess, and nothing
/// after it, though the receiver is started anew for each answer: bits are uniform, so k of them come
/// with 2^-k.
///
/// proof: nisc 3.3
#[test]
fn a_cheater_learns_nothing_more_after_its_first_wrong_guess() {
    let (trials, mut learnt, mut long) = (60, 0, 0);
    for trial in 0..trials {
        let (receiver, public) = key(1000 + trial);
        // What the key's file holds.
        let mut stored = receiver.to_bytes().to_vec();
        let mut right = 0;
        let burnt = (0..12).any(|i| {
            let opened = ReceiverKey::from_bytes(&stored, b"test").unwrap();
            let answer = spoilt_pair(&public, 2 * i);
            match opened.expand_out(&answer, None) {
                Ok(_) => right += 1,
                Err(Error::Cheated { .. }) => {
                    assert!(matches!(opened.expand_out(&answer, None), Err(Error::Spent(NAME))));
                    stored = opened.burnt();
                    return true;
                }
                Err(other) => panic!("{other}"),
            }
            false
        });
        if burnt {
            // Another process, an honest answer: the key is gone, and its seed with it.
            let error = ReceiverKey::from_bytes(&stored, b"test").unwrap_err().to_string();
            assert!(error.contains("failed its check") && error.contains("tacit nisc keygen"), "{error}");
            assert!(stored.len() == ReceiverKey::LEN && stored[HEADER..].iter().all(|byte| *byte == 0));
        }
        learnt += right;
        long += usize::from(right >= 6);
    }
    // Right guesses before the first wrong one: 1 on average with variance 2, six and more once in 64.
    let deviation = (learnt as f64 - trials as f64) / (2.0 * trials as f64).sqrt();
    assert!(deviation.abs() < 4.5, "{learnt} bits of {trials} keys");
    assert!(long <= 6, "{long} of {trials} keys told six bits");
}

/// proof: nisc 2.3
#[test]
fn a_wrong_level_sum_is_a_guess_of_one_bit() {
    let (receiver, public) = key(1);
    let alpha = receiver.state().unwrap().alpha;
    let shape = receiver.params.shape();
    let (mut passed, trials) = (0, 40);
    for trial in 0..trials {
        let i = (trial * 37) % shape.cots();
        let (tile, level, lane) = tpprf::place(i, shape);
        let result = cheat(&receiver, &public, |answer| {
            answer[HEADER + 2 * POINT + 32 * i + trial % 16] ^= 1 << (trial % 8)
        });
        // The first message of the pair was spoilt; who takes the second does not see it.
        let takes_second = alpha[tile * LANES + lane] >> level & 1 == 0;
        assert_eq!(result.is_ok(), takes_second, "trial {trial}");
        if let Err(error) = &result {
            assert!(matches!(error, Error::Cheated { .. }), "{error}");
        }
        passed += result.is_ok() as usize;
    }
    assert!((8..=32).contains(&passed), "{passed} of {trials} guesses were right");
}

/// proof: nisc 2.3
#[test]
fn another_delta_in_one_tree_is_caught() {
    let (receiver, public) = key(2);
    let shape = receiver.params.shape();
    let tails = HEADER + 2 * POINT + 32 * shape.cots();
    for trial in 0..12 {
        // The correction of w, then that of ω, of some tree.
        let (tile, lane, output) = (trial * 5 % shape.tiles, trial % LANES, 1 - trial % 2);
        let at = tails + 16 * (LANES * (4 * tile + output) + lane);
        let result = cheat(&receiver, &public, |answer| answer[at] ^= 2);
        assert!(matches!(result, Err(Error::Cheated { .. })), "trial {trial}");
    }
}

/// proof: nisc 2.3
#[test]
fn wrong_sums_and_hashes_of_gamma_are_caught() {
    let (receiver, public) = key(3);
    let shape = receiver.params.shape();
    let tails = HEADER + 2 * POINT + 32 * shape.cots();
    let hash = tails + 64 * LANES * shape.tiles;
    for at in [tails + 32 * LANES, tails + 48 * LANES + 17, hash, hash + 31] {
        let result = cheat(&receiver, &public, |answer| answer[at] ^= 0x40);
        assert!(matches!(result, Err(Error::Cheated { .. })), "byte {at}");
    }
}

/// The sender without messages of its own: it takes Alice's answer and reply over, puts her reply's
/// messages apart by a difference of its own, and passes them off as its own.
///
/// proof: nisc 5.1
#[test]
fn answers_and_replies_cannot_be_taken_over() {
    let [alice, mallory, bob] = [1, 2, 3].map(|byte| PublicKey::from_bytes([byte; 32]));
    let parties = |sender, receiver| Parties { sender: Some(sender), receiver: Some(receiver) };
    for security in [Security::Malicious, Security::SemiHonest] {
        let params = Params { code: Code::Linear, security, count: 9 };
        let (receiver, public) = ReceiverKey::generate(params, b"", Some(bob), &mut prg(1)).unwrap();
        let (sender, answer) = SenderKey::answer(&public, b"", &parties(alice, bob), &mut prg(2)).unwrap();
        let inputs = BitVec::random(9, &mut prg(3));
        let question = receiver.ask(&inputs).unwrap();
        let messages: Vec<_> = (0..9).map(|i| [Block::new(i), Block::new(100 + i)]).collect();
        let sent = sender.reply(&public, b"", &question, &messages).unwrap();

        // As they are: refused by name, and the key is as before.
        for sender in [Some(mallory), None] {
            assert!(matches!(receiver.receive(&answer, sender, &question), Err(Error::Malformed { .. })));
        }
        // Under a header in its own name, which anybody can compute: the proof does not fit.
        let mut own = answer.clone();
        let expected = Public::new(&public, b"").unwrap();
        own[..HEADER].copy_from_slice(&expected.answer_header(&parties(mallory, bob)).write());
        let copy = ReceiverKey::from_bytes(&receiver.to_bytes(), b"").unwrap();
        match (security, copy.receive(&own, Some(mallory), &question)) {
            (Security::Malicious, Err(Error::Cheated { .. })) => {}
            // No proof; but pads and the reply's key are others.
            (Security::SemiHonest, Ok(asked)) => {
                let mut changed = sent.clone();
                changed[HEADER + 3] ^= 0x55;
                changed[..HEADER]
                    .copy_from_slice(&Header { kind: Kind::Reply, params, id: asked.reply_id }.write());
                assert!(matches!(open(&asked, &inputs, &changed), Err(Error::Malformed { .. })));
            }
            _ => panic!("{security:?}"),
        }
        // What Alice answers to Mallory, who shows her Bob's key as its own, Bob does not take.
        let (_, relayed) = SenderKey::answer(&public, b"", &parties(alice, mallory), &mut prg(4)).unwrap();
        assert!(matches!(receiver.receive(&relayed, Some(alice), &question), Err(Error::Malformed { .. })));

        let asked = receiver.receive(&answer, Some(alice), &question).unwrap();
        let mut changed = sent.clone();
        changed[HEADER + 3] ^= 0x55;
        assert!(matches!(open(&asked, &inputs, &changed), Err(Error::Malformed { .. })));
        let opened = open(&asked, &inputs, &sent).unwrap();
        assert!((0..9).all(|i| opened[i] == messages[i][usize::from(inputs.get(i))]));
    }
}

/// Answers that are checked side by side are guesses of one after the other: after the first failure none
/// passes.
///
/// proof: nisc 3.3
#[test]
fn an_answer_that_passed_is_refused_once_another_has_failed() {
    let (receiver, public) = key(9);
    let answers: Vec<_> = (0..8).map(|i| spoilt_pair(&public, 2 * i)).collect();
    let results: Vec<_> = std::thread::scope(|scope| {
        let runs: Vec<_> =
            answers.iter().map(|answer| scope.spawn(|| receiver.expand_out(answer, None).is_ok())).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    // Eight bits of the noise are all the same once in 128; then this says nothing.
    let lone = |i: usize| {
        let copy = ReceiverKey::from_bytes(&receiver.to_bytes(), b"test").unwrap();
        copy.expand_out(&answers[i], None).is_ok()
    };
    assert!(results.iter().enumerate().all(|(i, passed)| !passed || lone(i)));
    if !(0..8).all(lone) {
        assert!(receiver.expand_out(&answers[0], None).is_err(), "the key goes on");
    }
}

/// Messages of a bit, of a byte, of a block and longer: those chosen, and what is attached, and nothing changed.
///
/// proof: nisc 2.5
#[test]
fn messages_of_any_length_are_opened_and_no_changed_bit_passes() {
    for (count, width) in [1, 7, 8, 9, 130]
        .into_iter()
        .flat_map(|count| [0, 1, 15, 16, 17, 300].map(|bytes| (count, bytes)))
        .map(|(count, bytes)| (count, if bytes == 0 { Width::Bit } else { Width::Bytes(bytes) }))
    {
        let params = Params { code: Code::Linear, security: Security::Malicious, count };
        let (receiver, public) = ReceiverKey::generate(params, b"", None, &mut prg(1)).unwrap();
        let nobody = Parties::default();
        let (sender, answer) = SenderKey::answer(&public, b"", &nobody, &mut prg(2)).unwrap();
        let inputs = BitVec::random(count, &mut prg(3));
        let question = receiver.ask(&inputs).unwrap();
        let len = width.plane(count).unwrap();
        let plane = |seed| {
            let mut bytes = vec![0; len];
            prg(seed).fill_bytes(&mut bytes);
            if width == Width::Bit {
                return BitVec::from_bytes(&bytes, count).as_bytes().to_vec();
            }
            bytes
        };
        let messages = [plane(4), plane(5)];
        let [zero, one] = &messages;
        let chosen = |zero, one, width| Chosen { width, messages: [zero, one], attached: b"attached" };
        let short = chosen(&zero[1..], one, width);
        let twin = SenderKey::from_bytes(&sender.to_bytes()).unwrap();
        assert!(matches!(twin.reply_long(&public, b"", &question, &short), Err(Error::Usage { .. })));
        let reply = sender.reply_long(&public, b"", &question, &chosen(zero, one, width)).unwrap();
        assert_eq!(Some(reply.len()), long_reply_len(params, width, 8));
        let asked = receiver.receive(&answer, None, &question).unwrap();
        let (opened, attached) = asked.open_long(width, &reply).unwrap();
        assert_eq!(attached, b"attached");
        for i in 0..count {
            let of = &messages[usize::from(inputs.get(i))];
            match width {
                Width::Bit => assert_eq!(opened[i / 8] >> (i % 8) & 1, of[i / 8] >> (i % 8) & 1),
                Width::Bytes(bytes) => {
                    let at = i * bytes as usize..(i + 1) * bytes as usize;
                    assert_eq!(opened[at.clone()], of[at]);
                }
            }
        }
        let other = if width == Width::Bytes(2) { Width::Bit } else { Width::Bytes(2) };
        assert!(asked.open_long(other, &reply).is_err() && open(&asked, &inputs, &reply).is_err());
        let step = 1 + reply.len() / 150;
        for at in (0..reply.len()).step_by(step).chain(HEADER..HEADER + 16) {
            let mut changed = reply.clone();
            changed[at] ^= 1 << (at % 8);
            assert!(matches!(asked.open_long(width, &changed), Err(Error::Malformed { .. })), "byte {at}");
            assert!(asked.open_long(width, &reply[..at]).is_err());
        }
    }
}
