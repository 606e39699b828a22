//! A receiver's key in its file: one process at a time, and nothing of it is left once a check has failed.

use tacit_crypto::{Block, Prg};
use tacit_ot::silent::bcgikrs19::Code;
use tacit_ot::silent::nisc::{Params, ReceiverKey, SenderKey};
use tacit_ot::{Error, Security};
use tacit_store::nisc::ReceiverFile;

fn prg(seed: u128) -> Prg {
    Prg::from_seed(Block::new(seed))
}

fn key(seed: u128) -> (ReceiverKey, Vec<u8>) {
    let params = Params { code: Code::Linear, security: Security::Malicious, count: 1 };
    ReceiverKey::generate(params, b"test", &mut prg(seed)).unwrap()
}

/// An answer whose last byte was changed fails its check: the file's key is gone, and its seed with it.
#[test]
fn a_failed_check_wipes_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let (receiver, public) = key(3);
    let (_, answer) = SenderKey::answer(&public, b"test", &mut prg(6)).unwrap();
    let path = dir.path().join("key");
    std::fs::write(&path, receiver.to_bytes()).unwrap();
    let file = ReceiverFile::open(&path, b"test").unwrap();
    let mut spoilt = answer.clone();
    *spoilt.last_mut().unwrap() ^= 1;
    assert!(matches!(file.expand_out(&spoilt), Err(Error::Cheated { .. })));
    assert!(matches!(file.expand_out(&answer), Err(Error::Spent(_))));
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
    let (_, answer) = SenderKey::answer(&public, b"test", &mut prg(6)).unwrap();
    let path = dir.path().join("key");
    std::fs::write(&path, receiver.to_bytes()).unwrap();
    let file = ReceiverFile::open(&path, b"test").unwrap();
    for bad in [&answer[..answer.len() - 1], &public[..], &answer[..20]] {
        assert!(matches!(file.expand_out(bad), Err(Error::Malformed { .. })));
    }
    assert!(matches!(ReceiverFile::open(&path, b"test"), Err(Error::Store(_))), "in use");
    file.expand_out(&answer).unwrap();
    drop(file);
    ReceiverFile::open(&path, b"test").unwrap().expand_out(&answer).unwrap();
}
