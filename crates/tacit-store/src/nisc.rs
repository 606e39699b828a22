//! A NISC receiver's key in its file: `tacit_ot::silent::nisc` on the disk.

use crate::sealed::{Locked, io_fault};
use std::io::Read;
use std::path::Path;
use tacit_ot::silent::nisc::{ReceiverKey, ReceiverOutput};
use tacit_ot::{Error, Result};
use zeroize::Zeroizing;

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
        let file = Locked::open(path)?;
        let mut bytes = Zeroizing::new(Vec::with_capacity(ReceiverKey::LEN));
        (&*file).take(ReceiverKey::LEN as u64).read_to_end(&mut bytes).map_err(io_fault("read"))?;
        Ok(ReceiverFile { key: ReceiverKey::from_bytes(&bytes, context)?, file })
    }

    /// The key.
    pub fn key(&self) -> &ReceiverKey {
        &self.key
    }

    /// [`ReceiverKey::expand_out`]. When an answer fails its check, the key is wiped on the disk before that
    /// is reported.
    ///
    /// Errors: as [`ReceiverKey::expand_out`], and that of the file if it cannot be wiped: then it must be
    /// deleted.
    pub fn expand_out(&self, answer: &[u8]) -> Result<ReceiverOutput> {
        let result = self.key.expand_out(answer);
        if matches!(result, Err(Error::Cheated { .. })) {
            self.file.write_at(0, &self.key.burnt()).map_err(io_fault(
                "marked as spent: an answer failed its check, delete the file and make a new key",
            ))?;
        }
        result
    }
}
