//! The receiver's secret file.

use super::messages::{KEY_AT, LARGEST_SECRET, is_whole, read_reply, read_secret};
use super::{Exchange, Function, PROTOCOL};
use crate::{Error, Result};
use std::io::Read;
use std::path::Path;
use tacit_crypto::BitVec;
use tacit_net::PublicKey;
use tacit_ot::silent::nisc::{Kind, ReceiverKey, after_beginning};
use tacit_store::sealed::{Locked, io_fault};
use zeroize::Zeroizing;

/// Why a file under which a check failed opens nothing.
const WIPED: &str = "a reply failed its check under this question, which can tell its sender of your input; put a new question only to the other senders";

/// What the receiver keeps of its question, in its file, open in this process alone.
///
/// It opens the replies of any number of senders, until one fails a check: then the file is wiped. A copy of the
/// file, or an older one put back, knows nothing of that: there must be none.
pub struct QuestionFile {
    file: Locked,
    bytes: Zeroizing<Vec<u8>>,
    spent: bool,
}

impl core::fmt::Debug for QuestionFile {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("QuestionFile([secret])")
    }
}

impl QuestionFile {
    /// Opens what [`Exchange::ask`] made.
    ///
    /// Errors: `Malformed` for what is no such file, `Usage` for one that is wiped, and those of the file, which
    /// must be writable and in no other process's use.
    pub fn open(path: &Path) -> Result<Self> {
        let file = Locked::open(path)?;
        let mut bytes = Zeroizing::new(Vec::new());
        (&*file).take(LARGEST_SECRET as u64 + 1).read_to_end(&mut bytes).map_err(io_fault("read"))?;
        after_beginning(&bytes, Kind::FunctionKey)?;
        let key = bytes.get(KEY_AT..KEY_AT + ReceiverKey::LEN);
        if let Some(Err(tacit_ot::Error::Usage { .. })) = key.map(|key| ReceiverKey::from_bytes(key, b"")) {
            return super::usage(WIPED);
        }
        Ok(QuestionFile { file, bytes, spent: false })
    }

    /// How many rows were asked for.
    pub fn rows(&self) -> Result<usize> {
        let rows = super::messages::rows_of_secret(&self.bytes)?;
        usize::try_from(rows).map_err(|_| super::malformed("the file is damaged"))
    }

    /// An error unless the question is on this function, and the file as it was written.
    pub fn fits(&self, function: Function<'_>) -> Result<()> {
        let exchange = Exchange::new(function, self.rows()?)?;
        read_secret(&exchange, &self.bytes).map(|_| ())
    }

    /// The outputs of each row, by the reply of `sender`.
    ///
    /// Errors: `Malformed` for a reply to another question, of another sender, on another function, or damaged;
    /// `Cheated` when a check fails, after the file is wiped, and `Usage` from then on.
    pub fn evaluate(
        &mut self,
        function: Function<'_>,
        reply: &[u8],
        sender: Option<PublicKey>,
    ) -> Result<Vec<Vec<BitVec>>> {
        if self.spent {
            return super::usage(WIPED);
        }
        let exchange = Exchange::new(function, self.rows()?)?;
        let (key, question) = read_secret(&exchange, &self.bytes)?;
        let key = ReceiverKey::from_bytes(key, &exchange.context())?;
        let outputs = self::outputs(&exchange, &key, question, reply, sender);
        let cheated =
            matches!(outputs, Err(Error::Cheated { .. } | Error::Ot(tacit_ot::Error::Cheated { .. })));
        if cheated {
            // proof: nisc 8.3
            self.spent = true;
            self.file
                .burn(KEY_AT as u64, &key.burnt())
                .map_err(io_fault("marked as spent: a reply failed its check, delete the file"))?;
        }
        outputs
    }
}

fn outputs(
    exchange: &Exchange<'_>,
    key: &ReceiverKey,
    question: &[u8],
    reply: &[u8],
    sender: Option<PublicKey>,
) -> Result<Vec<Vec<BitVec>>> {
    let (answer, reply) = read_reply(exchange, reply)?;
    let asked = key.receive(answer, sender, question)?;
    let (messages, attached) = asked.open_long(exchange.width(), reply)?;
    if Some(attached.len()) != exchange.attached() {
        return Err(Error::Cheated { protocol: PROTOCOL, what: "a garbled circuit of another size" });
    }
    exchange.outputs(&messages, attached)
}

/// Whether these bytes are the secret file of a question, whole: nobody else should get them.
pub fn is_secret(bytes: &[u8]) -> bool {
    after_beginning(bytes, Kind::FunctionKey).is_ok() && is_whole(bytes)
}

/// What the secret file with these bytes makes of a reply, for the fuzzer, which has no disk.
#[cfg(feature = "fuzzing")]
pub fn evaluate_once(function: Function<'_>, secret: &[u8], reply: &[u8]) -> Result<Vec<Vec<BitVec>>> {
    let rows = usize::try_from(super::messages::rows_of_secret(secret)?).unwrap_or(usize::MAX);
    let exchange = Exchange::new(function, rows)?;
    let (key, question) = read_secret(&exchange, secret)?;
    outputs(&exchange, &ReceiverKey::from_bytes(key, &exchange.context())?, question, reply, None)
}
