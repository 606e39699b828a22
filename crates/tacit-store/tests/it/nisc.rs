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
        let pending = file.ask(&BitVec::from_bools(&[choice])).unwrap();
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

    let pair = [Block::new(11), Block::new(12)];
    let reply =
        |pair| SenderFile::open(&alice).unwrap().reply(&public, b"test", &question, &[pair])?.release();
    let sent = reply(pair).unwrap();
    assert_eq!(reply(pair).unwrap(), sent);
    let refused = reply([Block::new(11), Block::new(13)]).unwrap_err();
    assert!(refused.to_string().contains("replied before"), "{refused}");

    let file = ReceiverFile::open(&bob, b"test").unwrap();
    let output = file.expand_out(&answer, None).unwrap();
    let opened = nisc::open(&output, &BitVec::from_bools(&[true]), &question, &sent).unwrap();
    assert_eq!(opened, [Block::new(12)]);
    let messages = SenderFile::open(&alice).unwrap().expand(&public, b"test").unwrap();
    assert_eq!(messages[0][usize::from(output.choices().get(0))], output.messages()[0]);
}
