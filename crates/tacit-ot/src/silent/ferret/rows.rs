//! Figure 9, step 5: leaves and the LPN secret become correlations.

use super::params::{Config, Lanes, REGULAR as NAME};
use crate::Result;
use crate::silent::engine::carry::Carry;
use crate::silent::engine::sink::{Cots, Sink, Taker};
use crate::silent::engine::stock::Stock;
use crate::silent::tree::half::TILES;
use tacit_crypto::ggm::LANES;
use tacit_crypto::lpn::LocalCode;
use tacit_crypto::{Block, Buffer};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

/// Rows that are encoded at a time, while they are in cache.
const ROWS: usize = 512;
/// Correlations encoded before their leaves are there, at most, when the caller takes them piece by piece.
const AHEAD: usize = 1 << 20;

/// Turns leaves and the LPN secret into correlations, tile by tile.
pub(super) struct Rows {
    config: Config,
    pub(super) code: LocalCode,
    /// An iteration puts its first `keep` correlations aside: the LPN secret of the next one, lanes
    /// interleaved, then correlations for trees and check.
    pub(super) carry: Carry,
    pub(super) keep: usize,
    /// The first tile of the iteration at work, and its next group of tiles.
    pub(super) first_tile: usize,
    pub(super) next_group: usize,
    /// Correlations of the iteration at work that hold A·u already and lack their leaves, in whole tiles.
    encoded: usize,
    /// A·u of the last of them, for a caller who takes correlations piece by piece and has no memory for it.
    ahead: Zeroizing<Vec<Block>>,
    /// Correlations of a group of which nobody has asked for all.
    pub(super) ready: Stock,
    /// Where the group at work goes.
    place: Place,
}

/// Where the correlations of a group go, but those that are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// To the caller, all of them.
    Caller,
    /// To the buffer, for the caller takes a part.
    Buffer,
    /// Nowhere yet.
    Later,
}

impl Rows {
    /// Before the first iteration, for which a setup made `reserve`. [`advance`](Self::advance) draws a
    /// matrix.
    pub(super) fn new(config: Config, reserve: Buffer) -> Self {
        Rows {
            config,
            code: LocalCode::new(Block::ZERO, config.params.k),
            keep: reserve.len(),
            carry: Carry::new(reserve),
            first_tile: 0,
            next_group: 0,
            encoded: 0,
            ahead: Zeroizing::default(),
            ready: Stock::empty(NAME),
            place: Place::Later,
        }
    }

    /// After a failure.
    pub(super) fn wipe(&mut self) {
        self.carry.wipe();
        self.ready.zeroize();
        self.ahead.zeroize();
    }

    /// Goes on to the next iteration, with what the last one kept and the matrix of `seed`.
    pub(super) fn advance(&mut self, seed: Block) {
        self.code = LocalCode::new(seed, self.config.params.k);
        self.carry.advance();
        self.next_group = 0;
        self.encoded = 0;
    }

    /// Correlations of an iteration, those it keeps included.
    fn total(&self) -> usize {
        self.config.params.samples() * self.config.lanes.count()
    }

    /// Correlations of a tile.
    fn tile(&self) -> usize {
        LANES << self.config.params.depth
    }

    /// Correlations of the groups that were made.
    fn made(&self) -> usize {
        self.total().min(self.next_group * TILES * self.tile())
    }

    /// Where the next group goes when the caller's memory takes `room` correlations of it and the following
    /// ones.
    fn place(&self, room: usize) -> Place {
        let to = self.total().min(self.made() + TILES * self.tile());
        let (served, ready) = (self.made().max(self.keep), to.max(self.keep));
        match ready - served {
            n if n <= room => Place::Caller,
            _ if room > 0 => Place::Buffer,
            _ => Place::Later,
        }
    }

    /// Before the first tile of a group: whether any of its correlations are wanted by now. Makes room in the
    /// buffer if they go there.
    pub(super) fn begin_group(&mut self, sink: &Cots<'_>) -> bool {
        self.place = self.place(sink.left());
        if self.place == Place::Buffer {
            self.ready = Stock::with_room(NAME, TILES * self.tile());
        }
        self.place != Place::Later
    }

    /// After the last tile of a group.
    pub(super) fn end_group(&mut self, sink: &mut Cots<'_>) {
        if self.place == Place::Later {
            return;
        }
        let before = self.made().max(self.keep);
        self.next_group += 1;
        match self.place {
            Place::Caller => sink.filled += self.made().max(self.keep) - before,
            _ => self.ready.serve(sink),
        }
    }

    fn secret(&self) -> &[Block] {
        &self.carry.current[..self.config.secret()]
    }

    /// Adds A·u to `rows`, a stretch of the iteration's correlations from `first` on.
    fn encode(&self, first: usize, rows: &mut [Block]) {
        let lanes = self.config.lanes.count();
        self.code.add_rows((first / lanes) as u64, self.secret(), lanes, rows);
    }

    /// Fig. 9, step 5, for one tile of the next group. `sink` takes what follows the groups made so far.
    pub(super) fn add(&mut self, tile: usize, leaves: &mut [Block], sink: &mut Cots<'_>) {
        if self.place == Place::Later {
            return;
        }
        let lanes = self.config.lanes.count();
        let first = (tile - self.first_tile) * self.tile();
        let leaves = trim(leaves, self.tile().min(self.total() - first), self.config.lanes);
        let encoded = first < self.encoded;
        let secret = &self.carry.current[..self.config.secret()];
        let put = |first: usize, leaves: &[Block], slots: &mut [Block]| match encoded {
            true => xor_into(slots, leaves),
            false => self.code.rows_added_to((first / lanes) as u64, secret, lanes, leaves, slots),
        };
        let (aside, rest) = leaves.split_at_mut(self.keep.saturating_sub(first).min(leaves.len()));
        let from = first.max(self.keep);
        put(first, aside, &mut self.carry.kept[first.min(self.keep)..][..aside.len()]);
        let at = from - self.made().max(self.keep);
        match (self.place, &mut sink.to) {
            (Place::Caller, Taker::Memory(parts)) => {
                parts.change(sink.filled + at, rest.len(), |slots| put(from, rest, slots));
            }
            (Place::Caller, Taker::Each(each)) if encoded => {
                let left = self.ahead.len() - (self.encoded.max(self.keep) - from);
                xor_into(rest, &self.ahead[left..][..rest.len()]);
                if left + rest.len() == self.ahead.len() {
                    self.ahead.clear();
                }
                each(rest);
            }
            (Place::Caller, Taker::Each(each)) => {
                for (i, rows) in rest.chunks_mut(ROWS * lanes).enumerate() {
                    self.encode(from + i * ROWS * lanes, rows);
                    each(rows);
                }
            }
            _ => {
                self.encode(from, rest);
                self.ready.add(rest);
            }
        }
    }

    /// Computes until `bytes` bytes of the peer's are there: A·u needs no tree, so it can be made first, for
    /// what is kept and for `sink`, which takes what follows the groups made so far.
    pub(super) fn encode_while_waiting(
        &mut self,
        channel: &mut Channel,
        bytes: usize,
        sink: &mut Cots<'_>,
    ) -> Result<()> {
        let (lanes, keep, made) = (self.config.lanes.count(), self.keep, self.made());
        // A group that does not fit goes to the buffer later on.
        let room = made.max(keep) + sink.left();
        let end = if room < self.total() { room - room % (TILES * self.tile()) } else { self.total() };
        self.encoded = self.encoded.max(made);
        while self.encoded < end && !channel.has_come(bytes)? {
            let from = self.encoded;
            let to = end.min(from + self.tile());
            let ahead = from.max(keep)..to.max(keep);
            let secret = &self.carry.current[..self.config.secret()];
            let encode = |first: usize, place: &mut [Block]| {
                for (i, rows) in place.chunks_mut(ROWS * lanes).enumerate() {
                    rows.fill(Block::ZERO);
                    self.code.add_rows((first / lanes + i * ROWS) as u64, secret, lanes, rows);
                }
            };
            match &mut sink.to {
                Taker::Memory(parts) => {
                    let at = sink.filled + ahead.start - made.max(keep);
                    parts.change(at, ahead.len(), |out| encode(ahead.start, out));
                }
                Taker::Each(_) => {
                    let (at, wanted) = (self.ahead.len(), end.max(keep) - ahead.start);
                    let wanted = wanted.min(AHEAD.max(self.tile()));
                    if at == 0 && self.ahead.capacity() < wanted {
                        self.ahead = Zeroizing::new(Vec::with_capacity(wanted));
                    }
                    // Growing would leave copies behind.
                    if self.ahead.capacity() - at < ahead.len() {
                        break;
                    }
                    self.ahead.resize(at + ahead.len(), Block::ZERO);
                    encode(ahead.start, &mut self.ahead[at..]);
                }
            }
            encode(from, &mut self.carry.kept[from.min(keep)..to.min(keep)]);
            self.encoded = to;
        }
        Ok(())
    }
}

fn xor_into(slots: &mut [Block], leaves: &[Block]) {
    slots.iter_mut().zip(leaves).for_each(|(slot, leaf)| *slot ^= *leaf);
}

/// Drops the leaves of trees that only fill up the last tile of a single lane.
fn trim(leaves: &mut [Block], wanted: usize, lanes: Lanes) -> &mut [Block] {
    if wanted < leaves.len() && lanes == Lanes::One {
        let trees = wanted * LANES / leaves.len();
        for leaf in 0..leaves.len() / LANES {
            leaves.copy_within(leaf * LANES..leaf * LANES + trees, leaf * trees);
        }
    }
    &mut leaves[..wanted]
}
