//! What has arrived on a channel and was not asked for yet.

use std::collections::VecDeque;

/// Bytes of a chunk.
pub(crate) const CHUNK: usize = 1 << 17;

/// Bytes that arrived and were not asked for yet, in chunks that are used again.
#[derive(Default)]
pub(crate) struct Inbox {
    chunks: VecDeque<Chunk>,
    spare: Vec<Box<[u8]>>,
    /// Bytes held.
    pub(crate) held: usize,
}

struct Chunk {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Inbox {
    /// Room for a chunk.
    pub(crate) fn buffer(&mut self) -> Box<[u8]> {
        self.spare.pop().unwrap_or_else(|| vec![0; CHUNK].into_boxed_slice())
    }

    /// Takes a chunk's room back.
    pub(crate) fn keep(&mut self, buffer: Box<[u8]>) {
        if self.spare.len() < 4 {
            self.spare.push(buffer);
        }
    }

    /// Adds a chunk of which the first `end` bytes arrived.
    pub(crate) fn append(&mut self, bytes: Box<[u8]>, end: usize) {
        self.held += end;
        // A slow peer fills chunks by a few bytes each: join those, so that held memory stays near held
        // bytes.
        if let Some(last) = self.chunks.back_mut()
            && last.bytes.len() - last.end >= end
        {
            last.bytes[last.end..last.end + end].copy_from_slice(&bytes[..end]);
            last.end += end;
            return self.keep(bytes);
        }
        self.chunks.push_back(Chunk { bytes, start: 0, end });
    }

    /// The last bytes that are held, up to `most`.
    pub(crate) fn last(&self, most: usize) -> Vec<u8> {
        let mut last = Vec::new();
        for chunk in self.chunks.iter().rev().take(most) {
            let held = &chunk.bytes[chunk.start..chunk.end];
            let part = &held[held.len().saturating_sub(most - last.len())..];
            last.splice(..0, part.iter().copied());
        }
        last
    }

    /// Moves bytes to `out`, from one chunk; 0 where none are held.
    pub(crate) fn take(&mut self, out: &mut [u8]) -> usize {
        let Some(chunk) = self.chunks.front_mut() else { return 0 };
        let n = out.len().min(chunk.end - chunk.start);
        out[..n].copy_from_slice(&chunk.bytes[chunk.start..chunk.start + n]);
        chunk.start += n;
        self.held -= n;
        if chunk.start == chunk.end
            && let Some(chunk) = self.chunks.pop_front()
        {
            self.keep(chunk.bytes);
        }
        n
    }
}
