//! Oblivious transfers whose messages are files: no connection, any number of senders to one public key.
//!
//! A step is a function from messages and keys to messages. What is kept on the disk, and marked there before
//! a message leaves, is the caller's: see [`tacit_store::nisc`]. Functions of both sides' inputs by such messages
//! are [`tacit_2pc::nisc`], with [`Strings`] for those that need no circuit.

mod author;

pub use author::{Known, Signer};

use crate::ot::{Form, Layout, Messages};
use crate::{Error, Result};
use tacit_2pc::circuit::value::Field;
use tacit_2pc::nisc::{Exchange, Function, VoleField};
use tacit_2pc::semi_honest::ROWS_AT_ONCE;
use tacit_crypto::text::counted;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::PublicKey;
use tacit_ot::silent::nisc::{self, Chosen, ReceiverKey, SenderKey, SenderOutput, Width};
use zeroize::Zeroizing;

pub use tacit_ot::silent::bcgikrs19::Code;
pub use tacit_ot::silent::nisc::{Asked, Params, Parties, ReceiverOutput};

/// Transfers under one public key. The receiver chooses the parameters; a sender takes them from the key.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// How many transfers, by which code, and against which senders.
    pub params: Params,
}

/// What the messages of a run with one sender take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cost {
    /// Bytes of the public key, which serves all senders.
    pub public_key: u64,
    /// Bytes of a sender's answer.
    pub answer: u64,
    /// Bytes of a question, for chosen transfers.
    pub question: u64,
    /// Bytes of its reply.
    pub reply: u64,
}

impl Job {
    /// Bytes that a party holds at most, from the peaks of every step at 2^10 to 2^21 transfers: with the
    /// linear code 64 a transfer, else 75, the results, and as much again while they are written.
    pub fn memory(&self) -> u64 {
        let working = match self.params.code {
            Code::Linear => 64,
            Code::QuasiCyclic => 75,
        };
        (24 << 20) + self.params.count as u64 * (working + 2 * 32)
    }

    /// Bytes of every message.
    pub fn estimate(&self) -> Cost {
        let [public_key, answer, question, reply] = self.params.message_bytes();
        Cost { public_key, answer, question, reply }
    }

    /// What a sender learns of the receiver.
    pub fn sender_learns(&self) -> String {
        let count = self.params.count;
        super::learned(
            self.params.security,
            &format!(
                "that the receiver takes {count}, and nothing of its choices",
                count = counted(count, "OT")
            ),
        )
    }

    /// The receiver's key pair, of an owner that signs its messages.
    pub fn keys(&self, owner: Option<PublicKey>, prg: &mut Prg) -> Result<(ReceiverKey, Vec<u8>)> {
        Ok(ReceiverKey::generate(self.params, b"", owner, prg)?)
    }
}

/// A sender's answer to `public`, and its secret key for that receiver. The answer is that of the sender in
/// `parties`, for the receiver there: nobody else can show it, nor be shown it.
pub fn answer(public: &[u8], parties: &Parties, prg: &mut Prg) -> Result<(SenderKey, Vec<u8>)> {
    Ok(SenderKey::answer(public, b"", parties, prg)?)
}

/// The sender's random transfers.
pub fn expand(key: SenderKey, public: &[u8]) -> Result<SenderOutput> {
    Ok(key.expand(public, b"")?)
}

/// The receiver's question for `choices`. A key takes one question, and is none for random transfers then.
pub fn ask(key: &ReceiverKey, choices: &BitVec) -> Result<Vec<u8>> {
    Ok(key.ask(choices)?)
}

/// The sender's reply to a `question`. A key makes one reply or random transfers.
pub fn reply(key: SenderKey, public: &[u8], question: &[u8], messages: &[[Block; 2]]) -> Result<Vec<u8>> {
    Ok(key.reply(public, b"", question, messages)?)
}

/// The messages that the receiver chose. Errors: `Usage` where the question asks for other choices.
pub fn open(asked: &Asked, choices: &BitVec, reply: &[u8]) -> Result<Zeroizing<Vec<Block>>> {
    Ok(Zeroizing::new(nisc::open(asked, choices, reply)?))
}

/// A sender's messages of any form, as a reply takes them.
pub struct Letters {
    width: Width,
    planes: [Zeroizing<Vec<u8>>; 2],
    count: usize,
    form: u8,
}

/// The form of messages of one bit, behind those of [`Form`].
const BITS: u8 = 255;

impl Letters {
    /// Pairs of bits: three bits travel for each transfer.
    pub fn bits(pairs: &[[bool; 2]]) -> Self {
        let plane = |i: usize| {
            let bits =
                Zeroizing::new(BitVec::from_bools(&pairs.iter().map(|pair| pair[i]).collect::<Vec<_>>()));
            Zeroizing::new(bits.as_bytes().to_vec())
        };
        Letters { width: Width::Bit, planes: [plane(0), plane(1)], count: pairs.len(), form: BITS }
    }

    /// Pairs of blocks, bytes, strings or texts. The receiver learns the length of the longest, and of no other that
    /// it does not choose.
    ///
    /// An error where one message has 4 GiB and more.
    pub fn of(messages: &Messages) -> Result<Self> {
        let layout = messages.layout();
        let width = u32::try_from(layout.width)
            .map_err(|_| Error::Usage("a message has at most 4 GiB; send parts of it".into()))?;
        let (planes, form) = (messages.planes(), layout.form.code());
        Ok(Letters { width: Width::Bytes(width), planes, count: messages.len(), form })
    }

    /// How many pairs.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Hands them to a reply.
    pub fn with<T>(&self, reply: impl FnOnce(&Chosen<'_>) -> T) -> T {
        let [zero, one] = &self.planes;
        reply(&Chosen { width: self.width, messages: [zero, one], attached: &[self.form] })
    }
}

/// The messages that a receiver chose, in the form that the sender gave them.
pub enum Opened {
    /// A bit each.
    Bits(Zeroizing<Vec<bool>>),
    /// Rows that lie so; what a row holds: [`Layout::message`].
    Rows(Layout, Zeroizing<Vec<u8>>),
}

/// The messages of a reply of any form. Errors: as [`open`].
pub fn open_letters(asked: &Asked, reply: &[u8]) -> Result<Opened> {
    let broken = || tacit_ot::Error::Malformed { protocol: nisc::NAME, what: "messages of an unknown form" };
    let width = nisc::long_reply_width(reply).ok_or_else(broken)?;
    let (rows, attached) = asked.open_long(width, reply)?;
    match (width, attached) {
        (Width::Bit, [BITS]) => {
            let bits = BitVec::from_bytes(&rows, asked.choices().len());
            Ok(Opened::Bits(Zeroizing::new(bits.iter().collect())))
        }
        (Width::Bytes(bytes), [form]) => {
            let form = Form::of_code(*form).ok_or_else(broken)?;
            let layout = Layout { form, width: bytes as usize };
            match form {
                Form::Blocks if layout != Layout::BLOCKS => Err(broken().into()),
                _ => Ok(Opened::Rows(layout, rows)),
            }
        }
        _ => Err(broken().into()),
    }
}

/// A function that is transferred bit by bit, without a circuit.
pub struct Strings {
    /// What is computed.
    pub function: Function<'static>,
    /// The sender's input.
    pub sender: Vec<Field>,
    /// The receiver's input.
    pub receiver: [Field; 1],
    /// The result.
    pub output: [Field; 1],
}

impl Strings {
    /// The longest strings.
    pub const LARGEST: u32 = 1 << 20;

    /// The function called `and` or `inner-product`, with the number of bits behind the name (`and128`), 32 unless
    /// it is given; or `reverse-vole-` and a [`VoleField`]. `None` for another name or size.
    pub fn find(name: &str) -> Option<Strings> {
        if let Some(field) = name.strip_prefix("reverse-vole-") {
            let field = VoleField::named(field)?;
            let element = |name| Field::number(name, field.element_bits());
            return Some(Strings {
                function: Function::ReverseVole(field),
                sender: vec![element("delta"), element("v")],
                receiver: [Field::number("u", field.input_bits())],
                output: [element("w")],
            });
        }
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let bits = match &name[stem.len()..] {
            "" => 32,
            size => size.parse().ok().filter(|bits| (1..=Self::LARGEST).contains(bits))?,
        };
        let field = Field::number;
        let (function, output) = match stem {
            "and" => (Function::And(bits), field("common bits", bits)),
            "inner-product" => (Function::InnerProduct(bits), field("inner product", 1)),
            _ => return None,
        };
        let input = || field("bits", bits);
        Some(Strings { function, sender: vec![input()], receiver: [input()], output: [output] })
    }
}

/// Bytes that a side of a function's exchange holds, at most.
pub fn function_memory(function: Function<'_>, exchange: &Exchange<'_>) -> u64 {
    let circuit = match function {
        Function::Circuit(circuit) => {
            let (shape, gates) = (circuit.circuit().shape(), circuit.circuit().stats().gates);
            let bits = (shape.input_bits() + shape.output_bits()) as u64;
            let rows = exchange.rows().min(ROWS_AT_ONCE) as u64;
            super::eval::memory(crate::Security::SemiHonest, gates, bits, rows)
        }
        Function::And(_) | Function::InnerProduct(_) | Function::ReverseVole(_) => 0,
    };
    let transfers = Job { params: exchange.params() }.memory();
    let [question, reply] = exchange.message_bytes();
    // A reply is put together of parts that are as long.
    [circuit, question, reply.saturating_mul(3)].into_iter().fold(transfers, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_ot::Security;

    #[test]
    fn every_message_is_as_long_as_foreseen_and_opens_what_was_chosen() {
        for code in [Code::Linear, Code::QuasiCyclic] {
            for security in [Security::Malicious, Security::SemiHonest] {
                let job = Job { params: Params { code, security, count: 300 } };
                let mut prg = Prg::from_os();
                let (key, public) = job.keys(None, &mut prg).unwrap();
                let (sender, answered) = answer(&public, &Parties::default(), &mut prg).unwrap();
                let choices = BitVec::random(300, &mut prg);
                let question = ask(&key, &choices).unwrap();
                let messages: Vec<[Block; 2]> =
                    (0..300).map(|i| [Block::new(2 * i), Block::new(2 * i + 1)]).collect();
                let replied = reply(sender, &public, &question, &messages).unwrap();
                let asked = key.receive(&answered, None, &question).unwrap();
                let opened = open(&asked, &choices, &replied).unwrap();
                for ((pair, choice), opened) in messages.iter().zip(choices.iter()).zip(opened.iter()) {
                    assert_eq!(pair[usize::from(choice)], *opened);
                }
                let sizes = [&public, &answered, &question, &replied].map(|message| message.len() as u64);
                let Cost { public_key, answer, question, reply } = job.estimate();
                assert_eq!(sizes, [public_key, answer, question, reply], "{code:?}, {security:?}");
            }
        }
        let semi = Params { code: Code::Linear, security: Security::SemiHonest, count: 7 };
        assert!(Job { params: semi }.sender_learns().contains("nothing is promised"));
    }
}
