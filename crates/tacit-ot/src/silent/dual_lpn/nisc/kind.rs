//! What a message of NISC is, by its first bytes.

use super::{BURNT, MAGIC};
use core::fmt;

/// What a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The receiver's public key.
    PublicKey = 1,
    /// The receiver's secret key.
    ReceiverKey = 2,
    /// A sender's answer to a public key.
    Answer = 3,
    /// A sender's secret key.
    SenderKey = 4,
    /// The receiver's question.
    Question = 5,
    /// A sender's reply to a question.
    Reply = 6,
    /// A sender's reply to a question, of messages of another length than a block.
    LongReply = 7,
    /// The receiver's public key and question in one, for its input of a function.
    FunctionQuestion = 8,
    /// A sender's answer, reply and garbled function in one.
    FunctionReply = 9,
    /// What the receiver keeps of a question on a function.
    FunctionKey = 10,
}

impl Kind {
    const ALL: [Kind; 10] = [
        Kind::PublicKey,
        Kind::ReceiverKey,
        Kind::Answer,
        Kind::SenderKey,
        Kind::Question,
        Kind::Reply,
        Kind::LongReply,
        Kind::FunctionQuestion,
        Kind::FunctionReply,
        Kind::FunctionKey,
    ];

    /// What `message`, without a signature in front, begins as, if it is one at all.
    pub fn of(message: &[u8]) -> Option<Kind> {
        if message.starts_with(&BURNT) {
            return Some(Kind::ReceiverKey);
        }
        // The byte between is the version.
        let kind = message.strip_prefix(&MAGIC)?.get(1)?;
        Kind::ALL.into_iter().find(|one| *one as u8 == *kind)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::PublicKey => "a receiver's public key",
            Kind::ReceiverKey => "a receiver's secret key",
            Kind::Answer => "a sender's answer",
            Kind::SenderKey => "a sender's secret key",
            Kind::Question => "a receiver's question",
            Kind::Reply => "a sender's reply",
            Kind::LongReply => "a sender's reply of long messages",
            Kind::FunctionQuestion => "a receiver's question of tacit nisc eval",
            Kind::FunctionReply => "a sender's reply of tacit nisc eval",
            Kind::FunctionKey => "a receiver's secret key of tacit nisc eval",
        })
    }
}
