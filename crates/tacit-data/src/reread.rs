//! A file that is read more than once: whether it held the same.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

/// The digest of all bytes of the last reading that came to the file's end.
#[derive(Clone, Default)]
pub(crate) struct LastRead(Arc<Mutex<Option<[u8; 32]>>>);

impl LastRead {
    /// The digest, if the last reading has come to the end.
    pub(crate) fn digest(&self) -> Option<[u8; 32]> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, digest: Option<[u8; 32]>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = digest;
    }

    /// A reading of `inner`, from its first byte.
    pub(crate) fn of<R>(&self, inner: R) -> Hashing<R> {
        self.set(None);
        Hashing { inner, hasher: blake3::Hasher::new(), last: self.clone() }
    }
}

/// A reader that hashes what it reads: a file's blocks go through the hash many at a time, so that this costs a
/// fraction of what reading them does.
pub(crate) struct Hashing<R> {
    inner: R,
    hasher: blake3::Hasher,
    last: LastRead,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        if read > 0 {
            self.hasher.update(&buffer[..read]);
        } else if !buffer.is_empty() {
            self.last.set(Some(*self.hasher.finalize().as_bytes()));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_known_by_its_end() {
        let last = LastRead::default();
        let bytes = [7; 1000];
        let mut reader = last.of(&bytes[..]);
        let mut buffer = [0; 600];
        assert!(reader.read(&mut buffer).unwrap() == 600 && last.digest().is_none());
        io::copy(&mut reader, &mut io::sink()).unwrap();
        assert_eq!(last.digest(), Some(*blake3::hash(&bytes).as_bytes()));
        // The next one has not come to its end yet.
        let _next = last.of(&bytes[..]);
        assert_eq!(last.digest(), None);
    }
}
