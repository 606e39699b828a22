//! A receiver's key in its file: one process at a time, and nothing of it is left once a check has failed.

use tacit_crypto::{BitVec, Block, Prg};
use tacit_ot::silent::bcgikrs19::Code;
use tacit_ot::silent::nisc::{self, Params, Parties, ReceiverKey, SenderKey};
use tacit_ot::{Error, Security};
use tacit_store::nisc::{ReceiverFile, SenderFile};

fn prg(seed: u128) -> Prg {
    Prg::from_seed(Block::new(seed))
}

fn key(seed: u128) -> (ReceiverKey, Vec<u8>) {
    let params = Params { code: Code::Linear, security: Security::Malicious, count: 1 };
    ReceiverKey::generate(params, b"test", None, &mut prg(seed)).unwrap()
}

/// An answer whose last byte was changed fails its check: the file's key is gone, and its seed with it.
///
/// proof: nisc 2.3
#[test]
fn a_failed_check_wipes_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let (receiver, public) = key(3);
    let (_, answer) = SenderKey::answer(&public, b"test", &Parties::default(), &mut prg(6)).unwrap();
    let path = dir.path().join("key");
    std::fs::write(&path, receiver.to_bytes()).unwrap();
    let file = ReceiverFile::open(&path, b"test").unwrap();
    let mut spoilt = answer.clone();
    *spoilt.last_mut().unwrap() ^= 1;
    assert!(matches!(file.expand_out(&spoilt, None), Err(Error::Cheated { .. })));
    assert!(matches!(file.expand_out(&answer, None), Err(Error::Spent(_))));
    drop(file);
    let error = ReceiverFile::open(&path, b"test").unwrap_err().to_string();
    assert!(error.contains("failed its check") && error.contains("tacit nisc keygen"), "{error}");
    let (left, seed) = (std::fs::read(&path).unwrap(), ReceiverKey::LEN - size_of::<Block>());
    assert!(left.len() == ReceiverKey::LEN && left[seed..].iter().all(|byte| *byte == 0));
}

/// Damage that no check sees leaves the key as it was: nothing was told.
#[test]
fn malformed_answers_spend_no_key() {
    let dir = tempfile::tempdir().unwrap();
    let (receiver, public) = key(5);
    let (_, answer) = SenderKey::answer(&public, b"test", &Parties::default(), &mut prg(6)).unwrap();
    let path = dir.path().join("key");
    std::fs::write(&path, receiver.to_bytes()).unwrap();
    let file = ReceiverFile::open(&path, b"test").unwrap();
    for bad in [&answer[..answer.len() - 1], &public[..], &answer[..20]] {
        assert!(matches!(file.expand_out(bad, None), Err(Error::Malformed { .. })));
    }
    assert!(matches!(ReceiverFile::open(&path, b"test"), Err(Error::Store(_))), "in use");
    file.expand_out(&answer, None).unwrap();
    drop(file);
    ReceiverFile::open(&path, b"test").unwrap().expand_out(&answer, None).unwrap();
}

/// A file's key asks one question and replies once, whatever process opens it: the same message again, and no
/// other.
#[test]
fn a_key_in_a_file_serves_once() {
    let dir = tempfile::tempdir().unwrap();
    let (receiver, public) = key(7);
    let (sender, answer) = SenderKey::answer(&public, b"test", &Parties::default(), &mut prg(8)).unwrap();
    let [bob, alice] = ["bob", "alice"].map(|name| dir.path().join(name));
    std::fs::write(&bob, receiver.to_bytes()).unwrap();
    std::fs::write(&alice, sender.to_bytes()).unwrap();
    let ask = |choice| {
        let file = ReceiverFile::open(&bob, b"test").unwrap();
        let pending = file.ask(&BitVec::from_bools(&[choice]))?;
        assert!(!pending.message().is_empty());
        pending.release()
    };
    // What was not released has used nothing up.
    let idle = ReceiverFile::open(&bob, b"test").unwrap();
    assert!(!idle.ask(&BitVec::from_bools(&[false])).unwrap().message().is_empty());
    drop(idle);
    let question = ask(true).unwrap();
    assert_eq!(ask(true).unwrap(), question);
    let refused = ask(false).unwrap_err();
    assert!(matches!(&refused, Error::Store(_)) && refused.to_string().contains("asked before"), "{refused}");
    // That is said before there is a message that could be written anywhere.
    let asked = ReceiverFile::open(&bob, b"test").unwrap();
    assert!(asked.ask(&BitVec::from_bools(&[false])).is_err());
    drop(asked);

    let pair = [Block::new(11), Block::new(12)];
    let reply =
        |pair| SenderFile::open(&alice).unwrap().reply(&public, b"test", &question, &[pair])?.release();
    let sent = reply(pair).unwrap();
    assert_eq!(reply(pair).unwrap(), sent);
    let refused = reply([Block::new(11), Block::new(13)]).unwrap_err();
    assert!(refused.to_string().contains("replied before"), "{refused}");

    let file = ReceiverFile::open(&bob, b"test").unwrap();
    let asked = file.receive(&answer, None, &question).unwrap();
    assert_eq!(nisc::open(&asked, &BitVec::from_bools(&[true]), &sent).unwrap(), [Block::new(12)]);
}

/// Random transfers and chosen ones under one key tell of each other: whichever comes first, a file refuses the
/// other in every later process, on both sides.
#[test]
fn a_key_in_a_file_serves_for_random_transfers_or_for_chosen_ones() {
    let dir = tempfile::tempdir().unwrap();
    let (receiver, public) = key(7);
    let (sender, answer) = SenderKey::answer(&public, b"test", &Parties::default(), &mut prg(8)).unwrap();
    let [bob, alice] = ["bob", "alice"].map(|name| dir.path().join(name));
    let (choice, pair) = (BitVec::from_bools(&[true]), [Block::new(11), Block::new(12)]);
    let question = ReceiverKey::from_bytes(&receiver.to_bytes(), b"test").unwrap().ask(&choice).unwrap();
    let fresh = || {
        std::fs::write(&bob, receiver.to_bytes()).unwrap();
        std::fs::write(&alice, sender.to_bytes()).unwrap();
    };
    let ask = || ReceiverFile::open(&bob, b"test").unwrap().ask(&choice)?.release();
    let receive = || ReceiverFile::open(&bob, b"test").unwrap().receive(&answer, None, &question).map(drop);
    let expand_out = || ReceiverFile::open(&bob, b"test").unwrap().expand_out(&answer, None);
    let reply = || SenderFile::open(&alice).unwrap().reply(&public, b"test", &question, &[pair])?.release();
    let expand = || SenderFile::open(&alice).unwrap().expand(&public, b"test");
    let refused = |result: Result<(), Error>, words: &str| {
        let error = result.unwrap_err();
        assert!(matches!(&error, Error::Store(_)) && error.to_string().contains(words), "{error}");
    };

    fresh();
    let (output, messages) = (expand_out().unwrap(), expand().unwrap());
    assert_eq!(messages[0][usize::from(output.choices().get(0))], output.messages()[0]);
    refused(ask().map(drop), "random transfers were taken");
    refused(receive(), "random transfers were taken");
    refused(reply().map(drop), "random transfers were taken");
    // Every sender's answer can be expanded, and what was can be again.
    assert_eq!(expand_out().unwrap().messages(), output.messages());
    expand().unwrap();

    fresh();
    assert_eq!(ask().unwrap(), question);
    let sent = reply().unwrap();
    refused(expand_out().map(drop), "chosen messages");
    refused(expand().map(drop), "chosen messages");
    receive().unwrap();
    assert_eq!(reply().unwrap(), sent);
    // A reply's pads are not the random messages, whichever of them the question takes.
    let body = &sent[sent.len() - 64..sent.len() - 32];
    for (messages, place) in messages[0].iter().flat_map(|message| [(message, 0), (message, 16)]) {
        for plain in pair {
            assert!((plain ^ *messages).to_bytes() != body[place..place + 16]);
        }
    }
}

/// Two threads hold one file and release one message each: one leaves.
#[test]
fn of_two_replies_that_are_released_at_once_one_leaves() {
    let dir = tempfile::tempdir().unwrap();
    let (receiver, public) = key(7);
    let (sender, _) = SenderKey::answer(&public, b"test", &Parties::default(), &mut prg(8)).unwrap();
    let question = receiver.ask(&BitVec::from_bools(&[true])).unwrap();
    let path = dir.path().join("alice");
    for trial in 0..40 {
        std::fs::write(&path, sender.to_bytes()).unwrap();
        let file = SenderFile::open(&path).unwrap();
        let start = std::sync::Barrier::new(2);
        let left = std::thread::scope(|scope| {
            let release = |last| {
                let pair = [Block::new(11), Block::new(last)];
                let pending = file.reply(&public, b"test", &question, &[pair]).unwrap();
                start.wait();
                pending.release()
            };
            [12, 13].map(|last| scope.spawn(move || release(last))).map(|thread| thread.join().unwrap())
        });
        assert_eq!(left.iter().filter(|reply| reply.is_ok()).count(), 1, "trial {trial}");
        let fault = left.into_iter().find_map(Result::err).unwrap().to_string();
        assert!(fault.contains("replied before"), "{fault}");
    }
}
