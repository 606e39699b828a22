//! Keys of NISC in their files: `tacit_ot::silent::nisc` on the disk.
//!
//! A key serves for random transfers or for chosen ones, of which a receiver's takes one question and a sender's
//! one reply. Behind the key's bytes its file says for which, on the disk, before anything may leave: a byte, and
//! for chosen ones the message's hash ([`Pending`]). The very same message can be had again, and no other.

use crate::sealed::{Locked, io_fault};
use std::io::Read;
use std::path::Path;
use tacit_crypto::{BitVec, Block};
use tacit_net::PublicKey;
use tacit_ot::silent::nisc::{Asked, Chosen, Params, ReceiverKey, ReceiverOutput, SenderKey};
use tacit_ot::{Error, Result};
use zeroize::Zeroizing;

/// What a key's file refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Served {
    /// The receiver's key asked something else.
    #[error(
        "this key asked before; another question under it would reveal how the choices differ; make a new key"
    )]
    Asked,
    /// The sender's key replied something else.
    #[error(
        "this key replied before; another reply under it would reveal both messages; answer the public key again"
    )]
    Replied,
    /// The key is for chosen messages, and its random transfers are wanted.
    #[error(
        "this key has served for chosen messages, whose choices its random transfers would reveal; make a new key for random ones"
    )]
    Chosen,
    /// The key's random transfers were taken, and chosen messages are wanted.
    #[error(
        "this key's random transfers were taken, and a question or a reply under it would reveal them; make a new key for chosen messages"
    )]
    Random,
}

impl From<Served> for Error {
    fn from(fault: Served) -> Self {
        Error::Store(Box::new(fault))
    }
}

/// A key's file, open in this process alone, and what stood in it.
fn open(path: &Path, len: usize) -> Result<(Locked, Zeroizing<Vec<u8>>)> {
    let file = Locked::open(path)?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(len));
    (&*file).take(len as u64).read_to_end(&mut bytes).map_err(io_fault("read"))?;
    Ok((file, bytes))
}

/// What stands behind the key's bytes once it has served: for random transfers nothing more, for chosen ones the
/// hash of the message.
const RANDOM: u8 = 1;
const CHOSEN: u8 = 2;

/// Bytes of a mark at most, and one more, so that none that is longer fits.
const MARK: u64 = blake3::OUT_LEN as u64 + 2;

/// Holds the key's file to `wanted`, for good.
fn mark(file: &Locked, key: usize, wanted: &[u8], otherwise: Served) -> Result<()> {
    let found = file.read_or_write(key as u64, MARK, wanted).map_err(io_fault("marked as used"))?;
    fits(&found, wanted, otherwise)
}

/// Whether a key may serve for `wanted` by what its file has `found`. A mark of which a crash left a part is none
/// that fits.
fn fits(found: &[u8], wanted: &[u8], otherwise: Served) -> Result<()> {
    if found.is_empty() || found == wanted {
        return Ok(());
    }
    Err(match (found[0], wanted[0]) {
        (RANDOM, CHOSEN) => Served::Random.into(),
        (CHOSEN, RANDOM) => Served::Chosen.into(),
        _ => otherwise.into(),
    })
}

/// The mark of a key that has served for this message.
fn chosen(message: &[u8]) -> Vec<u8> {
    [&[CHOSEN][..], blake3::hash(message).as_bytes()].concat()
}

/// The one message for which a key serves, before the key's file says so.
#[must_use]
pub struct Pending<'a> {
    file: &'a Locked,
    /// Bytes of the key.
    len: usize,
    message: Vec<u8>,
    otherwise: Served,
}

impl<'a> Pending<'a> {
    /// Errors: as [`release`](Self::release) by what the file says now, so that a message that can never leave is
    /// nowhere written.
    fn new(file: &'a Locked, len: usize, message: Vec<u8>, otherwise: Served) -> Result<Self> {
        let found = file.read_up_to(len as u64, MARK).map_err(io_fault("read"))?;
        fits(&found, &chosen(&message), otherwise)?;
        Ok(Pending { file, len, message, otherwise })
    }

    /// The message, to be put where nobody sees it yet.
    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// Marks the key on the disk, and gives the message, which may leave now.
    ///
    /// Errors: `Store` with [`Served`] when the key served for another message, and those of the file.
    pub fn release(self) -> Result<Vec<u8>> {
        mark(self.file, self.len, &chosen(&self.message), self.otherwise)?;
        Ok(self.message)
    }
}

/// The receiver's key in its file, open in this process alone.
///
/// A copy of the file, or an older one put back, knows nothing of what happened to this one: there must be
/// none.
pub struct ReceiverFile {
    key: ReceiverKey,
    file: Locked,
}

impl core::fmt::Debug for ReceiverFile {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "ReceiverFile({:?})", self.key)
    }
}

impl ReceiverFile {
    /// Opens the file whose first bytes are a key's [`to_bytes`](ReceiverKey::to_bytes).
    ///
    /// Errors: as [`ReceiverKey::from_bytes`], and those of the file, which must be writable and in no other
    /// process's use.
    pub fn open(path: &Path, context: &[u8]) -> Result<Self> {
        let (file, bytes) = open(path, ReceiverKey::LEN)?;
        Ok(ReceiverFile { key: ReceiverKey::from_bytes(&bytes, context)?, file })
    }

    /// The key.
    pub fn key(&self) -> &ReceiverKey {
        &self.key
    }

    /// [`ReceiverKey::ask`] for `choices`.
    ///
    /// Errors: also `Store` with [`Served`] when the key served for something else.
    pub fn ask(&self, choices: &BitVec) -> Result<Pending<'_>> {
        let message = self.key.ask(choices)?;
        Pending::new(&self.file, ReceiverKey::LEN, message, Served::Asked)
    }

    /// [`ReceiverKey::expand_out`]. When an answer fails its check, the key is wiped on the disk before that
    /// is reported; else its file says that it serves for random transfers.
    ///
    /// Errors: as [`ReceiverKey::expand_out`], `Store` with [`Served`] for a key that asked a question, and that of
    /// the file if it cannot be wiped: then it must be deleted.
    pub fn expand_out(&self, answer: &[u8], sender: Option<PublicKey>) -> Result<ReceiverOutput> {
        let output = self.settled(self.key.expand_out(answer, sender))?;
        mark(&self.file, ReceiverKey::LEN, &[RANDOM], Served::Chosen)?;
        Ok(output)
    }

    /// [`ReceiverKey::receive`], as [`expand_out`](Self::expand_out) for a key that serves for `question`.
    pub fn receive(&self, answer: &[u8], sender: Option<PublicKey>, question: &[u8]) -> Result<Asked> {
        let asked = self.settled(self.key.receive(answer, sender, question))?;
        mark(&self.file, ReceiverKey::LEN, &chosen(question), Served::Asked)?;
        Ok(asked)
    }

    /// Wipes the key where an answer has failed its check.
    fn settled<T>(&self, result: Result<T>) -> Result<T> {
        if matches!(result, Err(Error::Cheated { .. })) {
            self.file.burn(0, &self.key.burnt()).map_err(io_fault(
                "marked as spent: an answer failed its check, delete the file and make a new key",
            ))?;
        }
        result
    }
}

/// A sender's key in its file, open in this process alone.
///
/// As of a [`ReceiverFile`], there must be no copy of it.
pub struct SenderFile {
    bytes: Zeroizing<Vec<u8>>,
    params: Params,
    file: Locked,
}

impl core::fmt::Debug for SenderFile {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SenderFile({:?}, [secret])", self.params)
    }
}

impl SenderFile {
    /// Opens the file whose first bytes are a key's [`to_bytes`](SenderKey::to_bytes).
    ///
    /// Errors: as [`SenderKey::from_bytes`], and those of the file, which must be writable and in no other
    /// process's use.
    pub fn open(path: &Path) -> Result<Self> {
        let (file, bytes) = open(path, SenderKey::LEN)?;
        let params = SenderKey::from_bytes(&bytes)?.params();
        Ok(SenderFile { bytes, params, file })
    }

    /// The number of OTs and the other parameters.
    pub fn params(&self) -> Params {
        self.params
    }

    /// The random messages, as of [`SenderKey::expand`]. The file says from then on that the key serves for them.
    ///
    /// Errors: as those, and `Store` with [`Served`] for a key that has replied.
    pub fn expand(&self, public_key: &[u8], context: &[u8]) -> Result<Zeroizing<Vec<[Block; 2]>>> {
        let output = SenderKey::from_bytes(&self.bytes)?.expand(public_key, context)?;
        mark(&self.file, SenderKey::LEN, &[RANDOM], Served::Chosen)?;
        Ok(Zeroizing::new(output.messages().to_vec()))
    }

    /// An error where this key answered another public key.
    pub fn check_public(&self, public_key: &[u8], context: &[u8]) -> Result<()> {
        SenderKey::from_bytes(&self.bytes)?.check_public(public_key, context)
    }

    /// The reply to a `question`, as of [`SenderKey::reply`].
    pub fn reply(
        &self,
        public_key: &[u8],
        context: &[u8],
        question: &[u8],
        messages: &[[Block; 2]],
    ) -> Result<Pending<'_>> {
        let key = SenderKey::from_bytes(&self.bytes)?;
        let message = key.reply(public_key, context, question, messages)?;
        Pending::new(&self.file, SenderKey::LEN, message, Served::Replied)
    }

    /// The reply to a `question` with messages of any length, as of [`SenderKey::reply_long`].
    pub fn reply_long(
        &self,
        public_key: &[u8],
        context: &[u8],
        question: &[u8],
        chosen: &Chosen<'_>,
    ) -> Result<Pending<'_>> {
        let key = SenderKey::from_bytes(&self.bytes)?;
        let message = key.reply_long(public_key, context, question, chosen)?;
        Pending::new(&self.file, SenderKey::LEN, message, Served::Replied)
    }
}
