//! Keys of NISC in their files: `tacit_ot::silent::nisc` on the disk.
//!
//! A receiver's key takes one question and a sender's key one reply. Behind the key's bytes its file gets the
//! hash of that message, on the disk, before the message may leave ([`Pending`]): the very same message can be
//! had again, and no other.

use crate::sealed::{Locked, io_fault};
use std::io::Read;
use std::path::Path;
use tacit_crypto::{BitVec, Block};
use tacit_net::PublicKey;
use tacit_ot::silent::nisc::{self, Params, ReceiverKey, ReceiverOutput, SenderKey};
use tacit_ot::{Error, Result};
use zeroize::Zeroizing;

/// What a key's file refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Served {
    /// The receiver's key asked something else.
    #[error(
        "this key asked before; another question under it would tell how the choices differ; make a new key"
    )]
    Asked,
    /// The sender's key replied something else.
    #[error(
        "this key replied before; another reply under it would open both messages; answer the public key anew"
    )]
    Replied,
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

/// The one message for which a key serves, before the key's file says so.
#[must_use]
pub struct Pending<'a> {
    file: &'a Locked,
    /// Bytes of the key.
    len: usize,
    message: Vec<u8>,
    otherwise: Served,
}

impl Pending<'_> {
    /// The message, to be put where nobody sees it yet.
    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// Marks the key on the disk, and gives the message, which may leave now.
    ///
    /// Errors: `Store` with [`Served`] when the key served for another message, and those of the file.
    pub fn release(self) -> Result<Vec<u8>> {
        let hash = blake3::hash(&self.message);
        let limit = blake3::OUT_LEN as u64 + 1;
        let mark = self.file.read_or_write(self.len as u64, limit, hash.as_bytes());
        let mark = mark.map_err(io_fault("marked as used"))?;
        if !mark.is_empty() && mark != hash.as_bytes() {
            return Err(self.otherwise.into());
        }
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
    pub fn ask(&self, choices: &BitVec) -> Result<Pending<'_>> {
        let message = self.key.ask(&self.key.expand_in()?, choices)?;
        Ok(Pending { file: &self.file, len: ReceiverKey::LEN, message, otherwise: Served::Asked })
    }

    /// [`ReceiverKey::expand_out`]. When an answer fails its check, the key is wiped on the disk before that
    /// is reported.
    ///
    /// Errors: as [`ReceiverKey::expand_out`], and that of the file if it cannot be wiped: then it must be
    /// deleted.
    pub fn expand_out(&self, answer: &[u8], sender: Option<PublicKey>) -> Result<ReceiverOutput> {
        let result = self.key.expand_out(answer, sender);
        if matches!(result, Err(Error::Cheated { .. })) {
            self.file.write_at(0, &self.key.burnt()).map_err(io_fault(
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

    /// The random messages, as of [`SenderKey::expand`].
    pub fn expand(&self, public_key: &[u8], context: &[u8]) -> Result<Zeroizing<Vec<[Block; 2]>>> {
        let output = SenderKey::from_bytes(&self.bytes)?.expand(public_key, context)?;
        Ok(Zeroizing::new(output.messages().to_vec()))
    }

    /// The reply to a `question`, as of [`nisc::reply`].
    pub fn reply(
        &self,
        public_key: &[u8],
        context: &[u8],
        question: &[u8],
        messages: &[[Block; 2]],
    ) -> Result<Pending<'_>> {
        let output = SenderKey::from_bytes(&self.bytes)?.expand(public_key, context)?;
        let message = nisc::reply(output, question, messages)?;
        Ok(Pending { file: &self.file, len: SenderKey::LEN, message, otherwise: Served::Replied })
    }
}
