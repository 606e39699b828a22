//! Files that serve once: a header, and behind it what a later run goes on from, sealed.
//!
//! **Once and never again.** [`Once::use_up`] overwrites the salt of the file's keys and forces that to the
//! disk; only when it has returned may anything that depends on the content be sent. A crash at any moment
//! loses the content and never lets it serve twice. What no file can notice is being replaced by an older
//! copy of itself.
//!
//! **Header**, 224 bytes, little-endian: magic, version, role, used, what the kind of file says of itself,
//! and BLAKE3 of all that. Chunks behind it are sealed with AES-256-GCM under keys of this file alone, and
//! bound to the header.

use crate::{Result, StateError};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;
use subtle::ConstantTimeEq;
use tacit_store::sealed::{
    FileError, FileKey, Keys, Locked, Purpose, SealedReader, SealedWriter, array, io_fault,
};

/// Bytes of a header without its digest.
pub(crate) const BODY: usize = 192;
pub(crate) const HEADER: usize = BODY + 32;
/// Where it says whether the file was used.
const USED: usize = 13;

/// What a kind of file says about itself.
pub(crate) trait About: Copy {
    const MAGIC: [u8; 8];
    const FORMAT: u32;
    const PURPOSE: Purpose;

    /// The error for a file that is of another kind.
    fn other() -> FileError;

    /// The header of a file of `length` bytes that is not used; `check` tells its key.
    fn body(&self, length: u64, check: &[u8; 32]) -> [u8; BODY];

    /// Reads a header, whose magic, version and digest are right: with the file's length and its key's check.
    fn parse(body: &[u8; BODY]) -> Option<(Self, u64, [u8; 32])>;

    fn salt(&mut self) -> &mut [u8; 32];

    /// A hash of the key that the peer proved when the file was made.
    fn peer(&self) -> Option<[u8; 32]>;

    /// What every chunk is bound to.
    fn context(&self) -> [u8; 32] {
        *blake3::hash(&self.body(0, &[0; 32])).as_bytes()
    }
}

/// `body` of the header of a file of this kind, with what all have in common: magic, version, role.
pub(crate) fn body_of<H: About>(role: crate::Owner) -> [u8; BODY] {
    let mut out = [0; BODY];
    out[..8].copy_from_slice(&H::MAGIC);
    out[8..12].copy_from_slice(&H::FORMAT.to_le_bytes());
    out[12] = u8::from(role == crate::Owner::Evaluator);
    out
}

/// The role that a header names.
pub(crate) fn role_of(body: &[u8; BODY]) -> Option<crate::Owner> {
    [crate::Owner::Garbler, crate::Owner::Evaluator].get(usize::from(body[12])).copied()
}

fn with_digest(body: &[u8; BODY]) -> [u8; HEADER] {
    let mut out = [0; HEADER];
    out[..BODY].copy_from_slice(body);
    out[BODY..].copy_from_slice(blake3::hash(body).as_bytes());
    out
}

fn parse<H: About>(bytes: &[u8; HEADER]) -> Result<(H, u64, [u8; 32])> {
    let (body, digest) = bytes.split_at(BODY);
    let body: &[u8; BODY] = &array(body);
    if body[..8] != H::MAGIC {
        return Err(H::other().into());
    }
    let found = u32::from_le_bytes(array(&body[8..12]));
    if found != H::FORMAT {
        return Err(FileError::Version { found, known: H::FORMAT }.into());
    }
    if body[USED] != 0 {
        return Err(StateError::Used.into());
    }
    let sound = blake3::hash(body).as_bytes() == digest;
    let parsed = H::parse(body).filter(|_| sound);
    parsed.ok_or_else(|| FileError::Damaged { what: "header" }.into())
}

/// A header that is read and written again is byte-identical.
#[cfg(feature = "fuzzing")]
pub(crate) fn fuzzed<H: About>(body: &[u8; BODY]) {
    let Ok((header, length, check)) = parse::<H>(&with_digest(body)) else { return };
    let written = with_digest(&header.body(length, &check));
    let again = parse::<H>(&written).map(|(header, length, check)| header.body(length, &check));
    assert!(
        again.is_ok_and(|again| with_digest(&again) == written),
        "a header is read otherwise than written"
    );
    assert!(header.context() != [0; 32]);
}

/// A file that is being written.
pub(crate) struct Saving<'o, W, H> {
    pub(crate) stream: SealedWriter<&'o mut W>,
    header: H,
    check: [u8; 32],
}

impl<'o, W: Write + Seek, H: About> Saving<'o, W, H> {
    /// Begins the file at the start of `out`, which is empty.
    pub(crate) fn new(out: &'o mut W, key: &FileKey, mut header: H) -> Result<Self> {
        let keys = Keys::new(key, header.salt(), &H::PURPOSE)?;
        let check = keys.check;
        // Not a header before all is written.
        out.write_all(&[0; HEADER]).map_err(io_fault("written"))?;
        Ok(Saving { stream: SealedWriter::new(out, keys, header.context()), header, check })
    }

    pub(crate) fn finish(self) -> Result<H> {
        let out = self.stream.finish()?;
        let length = out.stream_position().map_err(io_fault("written"))?;
        let header = with_digest(&self.header.body(length, &self.check));
        let mut write = || {
            out.seek(SeekFrom::Start(0))?;
            out.write_all(&header)?;
            out.flush()
        };
        write().map_err(io_fault("written"))?;
        Ok(self.header)
    }
}

/// A file, open in this process alone.
pub(crate) struct Once<H> {
    pub(crate) header: H,
    pub(crate) stream: SealedReader,
    used: bool,
}

impl<H: About> Once<H> {
    /// Opens the file at `path` with the key that it was made with.
    ///
    /// Errors: [`StateError`], which names what is wrong with the file or the key, or that it is in use or
    /// was used.
    pub(crate) fn open(path: &Path, key: &FileKey) -> Result<Self> {
        let file = Locked::open(path)?;
        let mut start = [0; HEADER];
        file.read_at(0, &mut start).map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof => H::other(),
            _ => io_fault("read")(e),
        })?;
        let (mut header, expected, check) = parse::<H>(&start)?;
        let found = file.metadata().map_err(io_fault("read"))?.len();
        if found != expected {
            return Err(FileError::Length { found, expected }.into());
        }
        let keys = Keys::new(key, header.salt(), &H::PURPOSE)?;
        if !bool::from(keys.check.ct_eq(&check)) {
            return Err(FileError::WrongKey.into());
        }
        let stream = SealedReader::new(file, keys, header.context(), HEADER as u64, expected);
        Ok(Once { header, stream, used: false })
    }

    /// Refuses a session with another peer than the one that the file was made with.
    pub(crate) fn require_peer(&self, peer: Option<[u8; 32]>) -> Result<()> {
        if self.header.peer() == peer { Ok(()) } else { Err(StateError::OtherPeer.into()) }
    }

    /// Marks the file as used and forgets its keys' salt.
    pub(crate) fn use_up(&mut self) -> Result<()> {
        self.used = true;
        let mut header = self.header;
        *header.salt() = [0; 32];
        let mut body = header.body(HEADER as u64, &[0; 32]);
        body[USED] = 1;
        Ok(self.stream.file().write_at(0, &with_digest(&body)).map_err(io_fault("marked as used"))?)
    }
}

impl<H> Drop for Once<H> {
    /// Of a used file only the header stays, to say so.
    fn drop(&mut self) {
        if self.used {
            let _ = self.stream.file().set_len(HEADER as u64);
        }
    }
}
