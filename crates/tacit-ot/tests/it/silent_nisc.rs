//! Silent NISC: files there and back, two-message OT over a channel, and what goes wrong with messages.

use crate::common::{self, prg};
use tacit_crypto::{BitVec, Block};
use tacit_net::Identity;
use tacit_ot::silent::bcgikrs19::Code;
use tacit_ot::silent::nisc::{Params, Parties, ReceiverKey, SenderKey, TwoRound, open};
use tacit_ot::{Error, OtReceiver, OtSender, Result, RotReceiver, RotSender, Security};

const CONTEXT: &[u8] = b"salaries 2026";
const NOBODY: Parties = Parties { sender: None, receiver: None };

fn params(code: Code, security: Security, count: usize) -> Params {
    Params { code, security, count }
}

fn small() -> Params {
    params(Code::Linear, Security::Malicious, 300)
}

fn messages(count: usize, seed: u128) -> Vec<[Block; 2]> {
    let mut pairs = vec![[Block::ZERO; 2]; count];
    prg(seed).fill_blocks(pairs.as_flattened_mut());
    pairs
}

#[test]
fn two_senders_answer_one_key_by_files() {
    for (code, security, count) in [
        (Code::Linear, Security::Malicious, 1),
        (Code::QuasiCyclic, Security::Malicious, 1000),
        (Code::Linear, Security::SemiHonest, 20_000),
        (Code::QuasiCyclic, Security::SemiHonest, 77),
        (Code::QuasiCyclic, Security::SemiHonest, 1_000_001),
        (Code::Linear, Security::Malicious, 1_000_001),
    ] {
        let (receiver, public) =
            ReceiverKey::generate(params(code, security, count), CONTEXT, None, &mut prg(1)).unwrap();
        let receiver = ReceiverKey::from_bytes(&receiver.to_bytes(), CONTEXT).unwrap();
        assert_eq!(receiver.public_key().unwrap(), public);
        let random = receiver.expand_in().unwrap();
        let inputs = BitVec::random(count, &mut prg(2));
        // Under a key of its own: one serves for random transfers or for a question.
        let (asking, asking_public) =
            ReceiverKey::generate(params(code, security, count), CONTEXT, None, &mut prg(5)).unwrap();
        let question = asking.ask(&inputs).unwrap();
        for seed in [3, 4] {
            let (sender, answer) = SenderKey::answer(&public, CONTEXT, &NOBODY, &mut prg(seed)).unwrap();
            let sender = SenderKey::from_bytes(&sender.to_bytes()).unwrap();
            let mine = sender.expand(&public, CONTEXT).unwrap();
            let theirs = receiver.expand_out(&answer, None).unwrap();
            assert!(*theirs.choices() == random);
            for (i, (pair, got)) in mine.messages().iter().zip(theirs.messages()).enumerate() {
                assert!(*got == pair[random.get(i) as usize] && *got != pair[!random.get(i) as usize], "{i}");
            }
            let sent = messages(count, 10 + seed);
            let (sender, answer) =
                SenderKey::answer(&asking_public, CONTEXT, &NOBODY, &mut prg(seed)).unwrap();
            let reply = sender.reply(&asking_public, CONTEXT, &question, &sent).unwrap();
            let opened = open(&asking.receive(&answer, None, &question).unwrap(), &inputs, &reply).unwrap();
            assert!((0..count).all(|i| opened[i] == sent[i][inputs.get(i) as usize]));
        }
        let ones = random.iter().filter(|&b| b).count();
        assert!(count < 1000 || ones.abs_diff(count / 2) < 3 * count.isqrt(), "{ones} of {count}");
    }
}

#[test]
fn a_key_is_read_as_it_was_written_or_refused() {
    let (receiver, public) = ReceiverKey::generate(small(), CONTEXT, None, &mut prg(1)).unwrap();
    let (sender, _) = SenderKey::answer(&public, CONTEXT, &NOBODY, &mut prg(2)).unwrap();
    let owner = Some(Identity::generate().unwrap().public());
    let (owned, _) = ReceiverKey::generate(small(), CONTEXT, owner, &mut prg(3)).unwrap();
    for receiver in [receiver, owned] {
        for (at, bit) in (0..ReceiverKey::LEN).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut bytes = receiver.to_bytes().to_vec();
            bytes[at] ^= 1 << bit;
            // A changed seed would be another key's, and the sender's files would be found wrong.
            assert!(ReceiverKey::from_bytes(&bytes, CONTEXT).is_err(), "byte {at}");
        }
        let whole = receiver.to_bytes();
        assert_eq!(*ReceiverKey::from_bytes(&whole, CONTEXT).unwrap().to_bytes(), *whole);
        assert!((0..whole.len()).all(|end| ReceiverKey::from_bytes(&whole[..end], CONTEXT).is_err()));
    }
    for (at, change) in (0..SenderKey::LEN).flat_map(|at| [(at, 1), (at, 0x80)]) {
        let mut bytes = sender.to_bytes().to_vec();
        bytes[at] ^= change;
        // A changed seed would answer with other messages, and nobody would notice.
        assert!(SenderKey::from_bytes(&bytes).is_err(), "byte {at}");
    }
}

#[test]
fn two_messages_over_a_channel() {
    let codes = [Code::Linear, Code::QuasiCyclic];
    for (code, security) in
        codes.into_iter().flat_map(|code| [Security::SemiHonest, Security::Malicious].map(|s| (code, s)))
    {
        let (count, runs) = (5000, 10);
        let sent = messages(count, 5);
        let choices = BitVec::random(count, &mut prg(6));
        let (pairs, (bits, rots, got)) = common::run(
            |ch| {
                let mut s = TwoRound::new(code, security, &mut prg(7));
                let mut pairs = vec![[Block::ZERO; 2]; 100 * runs];
                for pairs in pairs.chunks_mut(100) {
                    RotSender::extend(&mut s, ch, pairs)?;
                }
                s.send(ch, &sent)?;
                s.send(ch, &[])?;
                Ok(pairs)
            },
            |ch| {
                let mut r = TwoRound::new(code, security, &mut prg(8));
                let (mut rots, mut got) = (vec![Block::ZERO; 100 * runs], vec![Block::ZERO; count]);
                let mut bits = Vec::new();
                for rots in rots.chunks_mut(100) {
                    bits.extend(RotReceiver::extend(&mut r, ch, rots)?.iter());
                }
                r.receive(ch, &choices, &mut got)?;
                r.receive(ch, &BitVec::default(), &mut [])?;
                Ok((bits, rots, got))
            },
        );
        assert!((0..100 * runs).all(|i| rots[i] == pairs[i][bits[i] as usize]));
        let distinct: std::collections::HashSet<_> = rots.iter().map(|b| b.to_u128()).collect();
        assert_eq!(distinct.len(), 100 * runs, "runs repeat");
        assert!((0..count).all(|i| got[i] == sent[i][choices.get(i) as usize]));
    }
}

#[track_caller]
fn malformed<T>(result: Result<T>, what: &str) {
    match result {
        Err(Error::Malformed { what: said, .. }) => assert!(said.contains(what), "{said}"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("accepted"),
    }
}

#[test]
fn messages_of_another_session_version_kind_or_length_are_clear_errors() {
    let (receiver, public) = ReceiverKey::generate(small(), CONTEXT, None, &mut prg(1)).unwrap();
    let (other, other_public) = ReceiverKey::generate(small(), CONTEXT, None, &mut prg(2)).unwrap();
    let (sender, answer) = SenderKey::answer(&public, CONTEXT, &NOBODY, &mut prg(3)).unwrap();
    malformed(other.expand_out(&answer, None), "another session");
    let kept = sender.to_bytes();
    let again = || SenderKey::from_bytes(&kept).unwrap();
    malformed(sender.expand(&other_public, CONTEXT), "another session");
    malformed(again().expand(&public, b"another year"), "another session");
    let (_, elsewhere) = SenderKey::answer(&public, b"another year", &NOBODY, &mut prg(3)).unwrap();
    malformed(receiver.expand_out(&elsewhere, None), "another session");
    malformed(receiver.expand_out(&public, None), "another kind");
    malformed(SenderKey::answer(&answer, CONTEXT, &NOBODY, &mut prg(3)).map(|_| ()), "another kind");
    for cut in [0, 10, 52, 53, 60, public.len() / 2, public.len() - 1] {
        malformed(SenderKey::answer(&public[..cut], CONTEXT, &NOBODY, &mut prg(3)).map(|_| ()), "");
    }
    for cut in [0, 10, 52, 53, 60, answer.len() / 2, answer.len() - 1] {
        malformed(receiver.expand_out(&answer[..cut], None), "");
    }
    for (version, words) in [
        (0, "older version, whose parameters are refused now; make new keys with tacit nisc keygen"),
        (answer[9] - 1, "older version"),
        (answer[9] + 1, "newer version; update"),
    ] {
        let of = |message: &[u8]| [&message[..9], &[version], &message[10..]].concat();
        malformed(receiver.expand_out(&of(&answer), None), words);
        malformed(SenderKey::answer(&of(&public), CONTEXT, &NOBODY, &mut prg(3)).map(|_| ()), words);
        malformed(ReceiverKey::from_bytes(&of(&receiver.to_bytes()), CONTEXT), words);
        malformed(SenderKey::from_bytes(&of(&kept)), words);
    }
    let mut huge = public.clone();
    huge[13..21].fill(0xff);
    malformed(SenderKey::answer(&huge, CONTEXT, &NOBODY, &mut prg(3)).map(|_| ()), "out of range");
    malformed(ReceiverKey::from_bytes(&receiver.to_bytes()[..60], CONTEXT), "damaged");
    malformed(SenderKey::from_bytes(&kept[..70]), "damaged");
}

#[test]
fn replayed_questions_and_replies_are_refused() {
    let (receiver, public) = ReceiverKey::generate(small(), CONTEXT, None, &mut prg(1)).unwrap();
    let (other, _) = ReceiverKey::generate(small(), CONTEXT, None, &mut prg(2)).unwrap();
    let inputs = BitVec::random(300, &mut prg(4));
    let question = receiver.ask(&inputs).unwrap();
    let foreign = other.ask(&inputs).unwrap();
    let sent = messages(300, 5);
    let (first, answer) = SenderKey::answer(&public, CONTEXT, &NOBODY, &mut prg(6)).unwrap();
    let (second, another) = SenderKey::answer(&public, CONTEXT, &NOBODY, &mut prg(7)).unwrap();
    let copy = SenderKey::from_bytes(&first.to_bytes()).unwrap();
    malformed(copy.reply(&public, CONTEXT, &foreign, &sent), "another session");
    let good = first.reply(&public, CONTEXT, &question, &sent).unwrap();
    // The reply belongs to the first sender's answer.
    let asked = receiver.receive(&another, None, &question).unwrap();
    malformed(open(&asked, &inputs, &good), "another session");
    let asked = receiver.receive(&answer, None, &question).unwrap();
    assert!(*asked.choices() == inputs);
    // Another question: the key asked none like it, and the reply is none to it.
    let mut changed = question.clone();
    changed[53] ^= 1;
    let mut others = inputs.clone();
    others.set(0, !inputs.get(0));
    assert!(receiver.asked(&changed).unwrap() == others);
    let refused = receiver.receive(&answer, None, &changed).map(drop).unwrap_err();
    assert!(refused.to_string().contains("asked before"), "{refused}");
    let copy = ReceiverKey::from_bytes(&receiver.to_bytes(), CONTEXT).unwrap();
    malformed(open(&copy.receive(&answer, None, &changed).unwrap(), &others, &good), "another session");
    malformed(receiver.receive(&answer, None, &foreign), "another session");
    let refused = open(&asked, &others, &good).unwrap_err();
    assert!(refused.to_string().contains("the question asks for other choices"), "{refused}");
    malformed(open(&asked, &inputs, &good[..good.len() - 16]), "length");
    assert!(open(&asked, &inputs, &good).is_ok());
    drop(second);
}

/// No bit of a reply can be changed on its way: not of the header, not of the message that was not taken.
///
/// proof: nisc 2.5, 5.2
#[test]
fn every_flipped_bit_of_a_reply_is_noticed() {
    for security in [Security::Malicious, Security::SemiHonest] {
        let params = params(Code::Linear, security, 5);
        let (receiver, public) = ReceiverKey::generate(params, CONTEXT, None, &mut prg(1)).unwrap();
        let (sender, answer) = SenderKey::answer(&public, CONTEXT, &NOBODY, &mut prg(2)).unwrap();
        let inputs = BitVec::random(5, &mut prg(3));
        let question = receiver.ask(&inputs).unwrap();
        let sent = sender.reply(&public, CONTEXT, &question, &messages(5, 4)).unwrap();
        let asked = receiver.receive(&answer, None, &question).unwrap();
        for bit in 0..8 * sent.len() {
            let mut changed = sent.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            malformed(open(&asked, &inputs, &changed), "");
        }
        for cut in 0..sent.len() {
            malformed(open(&asked, &inputs, &sent[..cut]), "");
        }
        malformed(open(&asked, &inputs, &[&sent[..], &[0; 16]].concat()), "length");
        open(&asked, &inputs, &sent).unwrap();
    }
}

/// A key asks once, whoever holds a clone of it; the same question can be had again.
#[test]
fn another_question_is_refused() {
    let (receiver, _) = ReceiverKey::generate(small(), CONTEXT, None, &mut prg(1)).unwrap();
    let clone = receiver.clone();
    let question = receiver.ask(&BitVec::zeros(300)).unwrap();
    assert_eq!(clone.ask(&BitVec::zeros(300)).unwrap(), question);
    let refused = clone.ask(&BitVec::random(300, &mut prg(2))).unwrap_err().to_string();
    assert!(refused.contains("asked before"), "{refused}");
}

/// The random choices and a question of one key give its inputs away: whichever was first, the other is refused,
/// to clones too.
#[test]
fn a_key_serves_for_random_transfers_or_for_a_question() {
    let new = |seed| ReceiverKey::generate(small(), CONTEXT, None, &mut prg(seed)).unwrap();
    let refused = |error: Error| assert!(error.to_string().contains("or for one question"), "{error}");
    let (receiver, public) = new(1);
    let (_, answer) = SenderKey::answer(&public, CONTEXT, &NOBODY, &mut prg(3)).unwrap();
    let question = receiver.clone().ask(&BitVec::zeros(300)).unwrap();
    refused(receiver.expand_in().unwrap_err());
    refused(receiver.expand_out(&answer, None).map(drop).unwrap_err());
    receiver.receive(&answer, None, &question).unwrap();

    for by_answer in [false, true] {
        let (receiver, public) = new(1);
        let (_, answer) = SenderKey::answer(&public, CONTEXT, &NOBODY, &mut prg(3)).unwrap();
        if by_answer {
            receiver.expand_out(&answer, None).unwrap();
        } else {
            receiver.clone().expand_in().unwrap();
        }
        refused(receiver.ask(&BitVec::zeros(300)).unwrap_err());
        refused(receiver.receive(&answer, None, &question).map(drop).unwrap_err());
        receiver.expand_out(&answer, None).unwrap();
    }
}

#[test]
fn every_flipped_byte_of_an_answer_is_noticed_or_harmless() {
    let (receiver, public) = ReceiverKey::generate(small(), CONTEXT, None, &mut prg(1)).unwrap();
    let (_, answer) = SenderKey::answer(&public, CONTEXT, &NOBODY, &mut prg(3)).unwrap();
    for at in (53..answer.len()).step_by(answer.len() / 23).chain([answer.len() - 1, answer.len() - 17]) {
        let mut changed = answer.clone();
        changed[at] ^= 1;
        // The challenges bind every byte before them, so even a change that no key meets fails.
        let copy = ReceiverKey::from_bytes(&receiver.to_bytes(), CONTEXT).unwrap();
        let result = copy.expand_out(&changed, None);
        assert!(matches!(result, Err(Error::Cheated { .. } | Error::Malformed { .. })), "byte {at}");
        // A failed check spends the key, for honest answers too.
        let spent = matches!(result, Err(Error::Cheated { .. }));
        assert_eq!(matches!(copy.expand_out(&answer, None), Err(Error::Spent(_))), spent, "byte {at}");
    }
}

/// A sender that gives its answer to an earlier key again.
#[test]
fn a_replayed_answer_is_refused() {
    let (code, security) = (Code::Linear, Security::Malicious);
    let (_, result) = tacit_net::memory::run(
        |ch| {
            // The context is what the first run binds; its bytes pass on the channel and are sent twice.
            let key = ch.recv_sized(1 << 20)?;
            let mut context = ch.session_id().0.to_vec();
            context.push(0);
            context.extend_from_slice(&ch.next_instance().to_le_bytes());
            let (_, answer) = SenderKey::answer(&key, &context, &NOBODY, &mut prg(1))?;
            ch.send_sized(&answer)?;
            ch.flush()?;
            ch.recv_sized(1 << 20)?;
            ch.send_sized(&answer)?;
            ch.flush().map_err(Error::from)
        },
        |ch| {
            let mut r = TwoRound::new(code, security, &mut prg(2));
            let mut out = [Block::ZERO; 40];
            RotReceiver::extend(&mut r, ch, &mut out)?;
            assert!(out[0] != Block::ZERO);
            let mut again = [Block::ZERO; 40];
            let result = RotReceiver::extend(&mut r, ch, &mut again).map(|_| ());
            assert!(again == [Block::ZERO; 40], "something came out");
            result
        },
    );
    malformed(result, "another session");
}

/// Digests of all messages for fixed seeds: a change of the wire shows here.
#[test]
fn messages_are_as_recorded() {
    let mut lines = String::new();
    for (name, code) in [("linear", Code::Linear), ("quasi-cyclic", Code::QuasiCyclic)] {
        for security in [Security::SemiHonest, Security::Malicious] {
            let (receiver, public) =
                ReceiverKey::generate(params(code, security, 200), CONTEXT, None, &mut prg(1)).unwrap();
            let (sender, answer) = SenderKey::answer(&public, CONTEXT, &NOBODY, &mut prg(2)).unwrap();
            let question = receiver.ask(&BitVec::zeros(200)).unwrap();
            let reply = sender.reply(&public, CONTEXT, &question, &messages(200, 3)).unwrap();
            let mut hasher = blake3::Hasher::new();
            for part in [&public, &answer, &question, &reply] {
                hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
            }
            lines += &format!(
                "{name} {security:?} {}+{} {}\n",
                public.len(),
                answer.len(),
                hasher.finalize().to_hex()
            );
        }
    }
    let recorded = include_str!("../silent_nisc.digests");
    assert_eq!(lines, recorded, "if the change is meant, record this:\n{lines}");
}
