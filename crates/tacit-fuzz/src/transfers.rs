//! Oblivious transfers by files: keys, messages and dealt seeds.

use crate::{Target, first};
use std::sync::OnceLock;
use tacit_2pc::Prepared;
use tacit_2pc::circuit::named;
use tacit_2pc::nisc::{Exchange, Function, evaluate_once};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Identity;
use tacit_ot::Security;
use tacit_ot::silent::bcgikrs19::Code;
use tacit_ot::silent::nisc::{Asked, Kind, Params, Parties, ReceiverKey, SenderKey, open};
use tacit_ot::silent::{dealer, signed};

pub(crate) const TRANSFERS_TARGETS: &[Target] = &[
    Target { name: "nisc-key", run: keys, longest: 512, words: &[] },
    Target { name: "nisc-message", run: messages, longest: 128, words: &[] },
    Target { name: "nisc-function", run: functions, longest: 128, words: &[] },
    Target { name: "nisc-signed", run: author, longest: 512, words: &[] },
    Target { name: "seed", run: seed, longest: 1 << 15, words: &[b"tacitdeal", b"tacitused"] },
];

const COUNT: usize = 20;
/// The most transfers that one run of the fuzzer should make.
const MOST: u64 = 4096;
const NOBODY: Parties = Parties { sender: None, receiver: None };

/// Keys and messages of two honest parties.
struct Honest {
    receiver: Vec<u8>,
    sender: Vec<u8>,
    public: Vec<u8>,
    answer: Vec<u8>,
    question: Vec<u8>,
    reply: Vec<u8>,
    inputs: BitVec,
    messages: Vec<[Block; 2]>,
    asked: Asked,
}

impl Honest {
    fn new() -> Self {
        let prg = &mut Prg::from_seed(Block::new(7));
        let params = Params { code: Code::Linear, security: Security::Malicious, count: COUNT };
        let (receiver, public) = ReceiverKey::generate(params, b"", None, prg).expect("a key");
        let (sender, answer) = SenderKey::answer(&public, b"", &NOBODY, prg).expect("an answer");
        let inputs = BitVec::random(COUNT, prg);
        let mut messages = vec![[Block::ZERO; 2]; COUNT];
        prg.fill_blocks(messages.as_flattened_mut());
        let question = receiver.ask(&inputs).expect("a question");
        let asked = receiver.receive(&answer, None, &question).expect("an honest answer");
        let (receiver, sent) = (receiver.to_bytes().to_vec(), sender.to_bytes().to_vec());
        let reply = sender.reply(&public, b"", &question, &messages).expect("a reply");
        Honest { receiver, sender: sent, public, answer, question, reply, inputs, messages, asked }
    }

    fn get() -> &'static Self {
        static HONEST: OnceLock<Honest> = OnceLock::new();
        HONEST.get_or_init(Self::new)
    }

    /// Whether a message or key is of no more transfers than a run should have.
    fn is_small(&self, message: &[u8]) -> bool {
        let count = (COUNT as u64).to_le_bytes();
        let at = self.public.windows(8).position(|part| part == count).unwrap_or_default();
        let found = message.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
        found.is_none_or(|count| count <= MOST)
    }
}

/// Keys out of their files: written as they were read.
fn keys(bytes: &[u8]) {
    if let Ok(key) = ReceiverKey::from_bytes(bytes, b"") {
        assert!(key.to_bytes().as_slice() == bytes, "a key is written otherwise than it was read");
        assert!(ReceiverKey::from_bytes(&key.burnt(), b"").is_err(), "a burnt key serves");
    }
    if let Ok(key) = SenderKey::from_bytes(bytes) {
        assert!(key.to_bytes().as_slice() == bytes, "a key is written otherwise than it was read");
    }
}

/// An honest message with the changes that the bytes say: two for its length, which is that much shorter, 64 over its
/// head, and four for each byte elsewhere. Honest messages are too long to be changed byte by byte.
fn changed(honest: &[u8], changes: &[u8]) -> Vec<u8> {
    let (length, changes) = changes.split_at(changes.len().min(2));
    let shorter = length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    let mut out = honest[..honest.len().saturating_sub(shorter)].to_vec();
    let (head, rest) = changes.split_at(changes.len().min(64));
    out.iter_mut().zip(head).for_each(|(byte, change)| *byte ^= change);
    for [one, two, three, change] in rest.as_chunks().0 {
        let at = u32::from_le_bytes([*one, *two, *three, 0]) as usize;
        if let Some(byte) = out.get_mut(at) {
            *byte ^= change;
        }
    }
    out
}

/// Messages to a party whose own part is right: the first byte says to whom, the others how an honest one is changed.
fn messages(bytes: &[u8]) {
    let ((to, changes), honest) = (first(bytes), Honest::get());
    let whole = [&honest.public, &honest.answer, &honest.question, &honest.reply][usize::from(to % 4)];
    let message = &changed(whole, changes);
    let _ = Kind::of(message);
    if !honest.is_small(message) {
        return;
    }
    match to % 4 {
        0 => {
            let prg = &mut Prg::from_seed(Block::new(8));
            if let Ok((key, _)) = SenderKey::answer(message, b"", &NOBODY, prg) {
                assert!(key.check_public(message, b"").is_ok());
            }
        }
        1 => {
            let receiver = ReceiverKey::from_bytes(&honest.receiver, b"").expect("an honest key");
            let done = receiver.expand_out(message, None);
            assert!(done.is_ok() || message != whole, "an honest answer is refused");
        }
        2 => {
            let sender = SenderKey::from_bytes(&honest.sender).expect("an honest key");
            let _ = sender.reply(&honest.public, b"", message, &honest.messages);
        }
        _ => match open(&honest.asked, &honest.inputs, message) {
            Ok(_) => assert!(message == whole, "a reply passes that was changed"),
            Err(_) => assert!(message != whole, "an honest reply is refused"),
        },
    }
}

/// A question on a function, a key's file and a reply of honest parties.
struct Functions {
    circuit: Prepared,
    secret: Vec<u8>,
    question: Vec<u8>,
    reply: Vec<u8>,
    outputs: Vec<Vec<BitVec>>,
}

impl Functions {
    fn new() -> Self {
        let prg = &mut Prg::from_seed(Block::new(9));
        let function = named::find("add4").expect("a function");
        let circuit = Prepared::from_function(&function).expect("a circuit");
        let input = vec![vec![BitVec::random(4, prg)]; 2];
        let exchange = Exchange::new(Function::Circuit(&circuit), input.len()).expect("rows");
        let (secret, question) = exchange.ask(&input, None, prg).expect("a question");
        let reply = exchange.reply(&question, &NOBODY, &input, prg).expect("a reply");
        let outputs = evaluate_once(Function::Circuit(&circuit), &secret, &reply).expect("a result");
        Functions { secret: secret.to_vec(), question, reply, outputs, circuit }
    }
}

/// Files of a function, one of them changed as the bytes say; the first byte says which, and whether the digest at
/// its end is that of a forger.
fn functions(bytes: &[u8]) {
    static HONEST: OnceLock<Functions> = OnceLock::new();
    let ((to, changes), honest) = (first(bytes), HONEST.get_or_init(Functions::new));
    let whole = [&honest.question, &honest.reply, &honest.secret][usize::from(to % 3)];
    let mut message = changed(whole, changes);
    if let (true, Some(body)) = (to & 0x80 != 0, message.len().checked_sub(32)) {
        let mut digest = blake3::Hasher::new_derive_key("tacit nisc function file v1");
        digest.update(&message[..body]);
        message.truncate(body);
        message.extend_from_slice(digest.finalize().as_bytes());
    }
    let function = Function::Circuit(&honest.circuit);
    let _ = Exchange::rows_asked(&message);
    let result = match to % 3 {
        0 => {
            let exchange = Exchange::new(function, 2).expect("rows");
            let input = vec![vec![BitVec::zeros(4)]; 2];
            let reply = exchange.reply(&message, &NOBODY, &input, &mut Prg::from_seed(Block::new(8)));
            let Ok(reply) = reply else { return };
            let opened = evaluate_once(function, &honest.secret, &reply);
            assert!(opened.is_err() || &message == whole, "a reply to a changed question opens");
            return;
        }
        1 => evaluate_once(function, &honest.secret, &message),
        _ => evaluate_once(function, &message, &honest.reply),
    };
    match result {
        Ok(outputs) => assert!(outputs == honest.outputs, "a changed file gives another result"),
        Err(_) => assert!(&message != whole, "an honest file is refused"),
    }
}

fn somebody() -> Identity {
    Identity::of_secret("tacit 1 fuzzing", &[7; 32]).expect("a seed is a key")
}

/// A message with the signature that it claims.
fn author(bytes: &[u8]) {
    let honest = signed::sign(b"a message", &somebody()).expect("a key signs");
    let _ = signed::open(bytes, signed::Whose::Anybody);
    if signed::open(bytes, signed::Whose::Peer(&[somebody().public()])).is_ok() {
        assert!(bytes == honest, "a message passes that nobody has signed");
    }
}

/// Seeds of a dealer, with the checksum that they should have: written as they were read.
fn seed(bytes: &[u8]) {
    let _ = (dealer::SenderSeed::from_bytes(bytes), dealer::ReceiverSeed::from_bytes(bytes));
    let Some(body) = bytes.len().checked_sub(32).map(|length| &bytes[..length]) else { return };
    let whole = [body, blake3::hash(body).as_bytes()].concat();
    if let Ok(seed) = dealer::SenderSeed::from_bytes(&whole) {
        assert!(seed.to_bytes().as_slice() == whole, "a seed is written otherwise than it was read");
        if seed.params().count as u64 <= MOST {
            assert_eq!(seed.expand().len(), seed.params().count);
        }
    }
    if let Ok(seed) = dealer::ReceiverSeed::from_bytes(&whole) {
        assert!(seed.to_bytes().as_slice() == whole, "a seed is written otherwise than it was read");
        if seed.params().count as u64 <= MOST {
            let _ = seed.expand();
        }
    }
}

pub(crate) fn whole() -> Vec<(&'static str, Vec<u8>)> {
    let honest = Honest::get();
    let mut out = vec![("nisc-key", honest.receiver.clone()), ("nisc-key", honest.sender.clone())];
    for to in 0..4 {
        out.push(("nisc-message", vec![to]));
        out.push(("nisc-message", [&[to, 0, 1][..], &[0; 64], &[100, 0, 0, 1]].concat()));
    }
    for to in [0, 1, 2, 0x80, 0x81, 0x82] {
        out.push(("nisc-function", vec![to]));
        out.push(("nisc-function", [&[to, 0, 0][..], &[0; 64], &[100, 0, 0, 1]].concat()));
    }
    out.push(("nisc-signed", signed::sign(b"a message", &somebody()).expect("a key signs")));
    let params = dealer::Params { code: Code::Linear, count: COUNT };
    let (sender, receiver) = dealer::deal(params, &mut Prg::from_seed(Block::new(7))).expect("seeds");
    out.push(("seed", sender.to_bytes().to_vec()));
    out.push(("seed", receiver.to_bytes().to_vec()));
    out
}
