//! OOS: 1-out-of-2^k OT extension over a linear code against malicious parties, as PaXoS needs it.
//!
//! - Source: Orrù, Orsini, Scholl (CT-RSA 2017, 2016/933), with the consistency check in the form of the
//!   revised KOS check (2015/546, figure 10; Roy, 2022/192): it is the same linear map over GF(2) on every
//!   column.
//! - Realises: for each row the receiver chooses d ∈ {0,1}^k and gets t; the sender gets q, with t = q ⊕ C(d)
//!   ∧ Δ, where C is a code of length n and Δ ∈ {0,1}^n is the sender's. Malicious, with abort; a receiver
//!   that passes although a column is wrong learns c bits of Δ with probability at most 2^-c, and the code's
//!   distance less c remains.
//! - Assumptions: a malicious base OT, a PRG (AES-128 in counter mode), and for use as an OPRF a hash that is
//!   correlation robust for the code, applied by the caller.
//! - Check: columns as blocks of 128 bits are hashed with weights χ_j ∈ GF(2^128) that the sender draws once
//!   all of a batch's U is there; the last block of a batch holds 128 rows with random d, has the weight 1
//!   and is thrown away. The receiver sends the hashes x_1…x_k of its message columns and t_1…t_n of its T
//!   columns. As C is linear, the sender checks t_i = q_i ⊕ Δ_i·C(x)_i for every i. Different columns hash
//!   alike with probability 2^-128; by the rank of the rows' syndromes a receiver can do no more than guess
//!   bits of Δ but with probability 2^-63 a batch (docs/security-notes.md).
//! - Seeds: n base OTs are made of 128 by KOS and MITCCRH.
//! - Streaming: batches of 32,640 rows, each with its check; the receiver runs up to four batches ahead and
//!   keeps their columns (at n = 768, 16 MiB). Memory does not grow with the number of rows, and no batch
//!   costs a round trip.
//! - Bytes: n/8 a row; for each batch 16·n for the sacrificed rows, 16 for χ and 16·(n + k) for the answer.
//! - With the repetition code this is KOS; [`super::kos`] is the leaner form of that.
//!
//! # For key-value stores over rows
//!
//! The relation is linear in the rows: for any public set J of rows, (⊕_J t) = (⊕_J q) ⊕ C(⊕_J d) ∧ Δ. In
//! PaXoS the receiver encodes its set as D = (d_1 … d_m) with ⊕_{J(y)} d_j = H1(y), extends with D as inputs
//! and hashes ⊕_{J(y)} t_j for each y. The sender XORs its rows over J(x), calls [`OosSender::correct`] with
//! the words H1(x), and hashes: equal elements give equal values.

use super::code::{LinearCode, encode_rows, slice_words};
use super::columns::{ReceiverColumns, Scratch, SenderColumns, scratch, stride_for};
use super::kos::{KosReceiver, KosSender, weights};
use crate::convert::CotToRot;
use crate::spent::Spent;
use crate::{BaseOt, Error, Result, RotReceiver, RotSender};
use std::sync::Arc;
use tacit_crypto::{Block, Prg, gf128::ColumnSums, transpose::columns_to_wide_rows};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

/// Blocks of 128 rows in a batch, the sacrificed one included.
const BATCH: usize = 256;
/// Batches that the receiver runs ahead of their challenges. Both sides' order of messages depends on it.
const WINDOW: usize = 4;
/// Blocks of 128 rows in a tile.
const TILE: usize = 16;
const STRIDE: usize = stride_for(BATCH);
const TILE_STRIDE: usize = stride_for(TILE);

/// Data blocks of batch `batch` of a request for `n` rows.
fn batch_blocks(n: usize, batch: usize) -> usize {
    (n.div_ceil(128) - batch * (BATCH - 1)).min(BATCH - 1)
}

fn batch_count(n: usize) -> usize {
    n.div_ceil(128).div_ceil(BATCH - 1)
}

/// Bytes of both directions for `n` rows over a code of `length` and `dimension`, the setup left out.
pub fn bytes(n: usize, length: usize, dimension: usize) -> u64 {
    let batches = batch_count(n);
    // χ, and the hashes of message columns and of T's.
    let check = batches * (1 + dimension + length);
    (((n.div_ceil(128) + batches) * length + check) * size_of::<Block>()) as u64
}

fn fits<const K: usize, const W: usize>(code: &dyn LinearCode) -> Result<()> {
    if code.length() == 128 * W && code.dimension() <= 128 * K {
        Ok(())
    } else {
        Err(Error::Usage {
            protocol: "oos",
            what: "rows are as long as the code, and words hold its messages",
        })
    }
}

/// The sender of OOS: rows of W blocks, words of K blocks.
pub struct OosSender<const K: usize, const W: usize> {
    code: Arc<dyn LinearCode>,
    delta: Zeroizing<[Block; W]>,
    columns: SenderColumns,
    prg: Prg,
    spent: Spent,
    u: Scratch,
    q: Scratch,
    weights: Vec<Block>,
    hashes: Vec<Zeroizing<Vec<Block>>>,
}

impl<const K: usize, const W: usize> OosSender<K, W> {
    /// Sets up from a malicious base OT, in which this side sends (it receives the seeds through KOS).
    ///
    /// `Error::Usage` unless the code has length 128·W and a dimension of at most 128·K.
    pub fn setup(
        channel: &mut Channel,
        base: &dyn BaseOt,
        code: Arc<dyn LinearCode>,
        prg: &mut Prg,
    ) -> Result<Self> {
        fits::<K, W>(&*code)?;
        // proof: paxos 2.3
        let mut rot = CotToRot::new(KosReceiver::setup(channel, base, prg)?);
        let mut seeds = scratch(code.length());
        let choices = rot.extend(channel, &mut seeds)?;
        channel.flush()?;
        let mut delta = Zeroizing::new([Block::ZERO; W]);
        delta.copy_from_slice(choices.blocks());
        let columns = SenderColumns::new(&seeds, choices.iter());
        Ok(Self::with(code, delta, columns, prg.fork(), Spent::default()))
    }

    fn with(
        code: Arc<dyn LinearCode>,
        delta: Zeroizing<[Block; W]>,
        columns: SenderColumns,
        prg: Prg,
        spent: Spent,
    ) -> Self {
        let n = code.length();
        OosSender {
            delta,
            columns,
            prg,
            spent,
            u: scratch(n * TILE),
            q: scratch((n + 1) * TILE_STRIDE),
            weights: Vec::new(),
            hashes: (0..WINDOW).map(|_| scratch(0)).collect(),
            code,
        }
    }

    /// Δ, one bit a code bit.
    pub fn delta(&self) -> &[Block; W] {
        &self.delta
    }

    /// An independent stream with the same Δ, for another channel; the receiver forks in step.
    pub fn fork(&mut self) -> Self {
        let columns = self.columns.fork();
        Self::with(self.code.clone(), self.delta.clone(), columns, self.prg.fork(), self.spent.clone())
    }

    /// Makes `rows.len()` rows: `rows[j]` = q_j with t_j = q_j ⊕ C(d_j) ∧ Δ at the receiver.
    ///
    /// Nothing is left in `rows` unless every check passed.
    pub fn extend(&mut self, channel: &mut Channel, rows: &mut [[Block; W]]) -> Result<()> {
        self.spent.check("oos")?;
        let result = self.run(channel, rows);
        let result = self.spent.record("oos", result);
        result.inspect_err(|_| rows.as_flattened_mut().zeroize())
    }

    /// `rows[j]` ⊕= C(words\[j\]) ∧ Δ: turns the sender's value at a point into the receiver's, if its word
    /// is `words[j]`.
    pub fn correct(&self, words: &[[Block; K]], rows: &mut [[Block; W]]) {
        assert_eq!(words.len(), rows.len(), "one word a row");
        let mut code = Zeroizing::new(vec![Block::ZERO; 1024 * W]);
        for (words, rows) in words.chunks(1024).zip(rows.chunks_mut(1024)) {
            let code = &mut code.as_chunks_mut::<W>().0[..rows.len()];
            encode_rows(&*self.code, words, code);
            for (row, word) in rows.iter_mut().zip(code.iter()) {
                for w in 0..W {
                    row[w] ^= word[w] & self.delta[w];
                }
            }
        }
    }

    fn run(&mut self, channel: &mut Channel, rows: &mut [[Block; W]]) -> Result<()> {
        let n = rows.len();
        let count = batch_count(n);
        let mut rest = rows;
        for batch in 0..count {
            if batch >= WINDOW {
                self.verify(channel, batch - WINDOW)?;
            }
            let data = batch_blocks(n, batch);
            let (here, after) = rest.split_at_mut(rest.len().min(data * 128));
            self.run_batch(channel, batch, data, here)?;
            rest = after;
        }
        for batch in count - WINDOW.min(count)..count {
            self.verify(channel, batch)?;
        }
        Ok(())
    }

    /// Receives one batch's U, hashes its columns with weights that the receiver does not know yet, then
    /// sends χ.
    fn run_batch(
        &mut self,
        channel: &mut Channel,
        batch: usize,
        data: usize,
        mut rows: &mut [[Block; W]],
    ) -> Result<()> {
        let n = self.code.length();
        // proof: paxos 2.5
        let challenge = self.prg.block();
        weights(challenge, data, &mut self.weights);
        let mut sums = ColumnSums::new(n);
        for at in (0..data + 1).step_by(TILE) {
            let len = (data + 1 - at).min(TILE);
            let u = &mut self.u[..n * len];
            channel.recv_blocks(u)?;
            self.columns.fill(len, u, &mut self.q, TILE_STRIDE);
            sums.add(&self.q, TILE_STRIDE, &self.weights[at..at + len]);
            let (here, after) = rows.split_at_mut(rows.len().min(len * 128));
            columns_to_wide_rows(&self.q, TILE_STRIDE, W, here.as_flattened_mut());
            rows = after;
        }
        *self.hashes[batch % WINDOW] = sums.finish();
        channel.send_block(challenge)?;
        Ok(())
    }

    /// Checks t_i = q_i ⊕ Δ_i·C(x)_i for every column.
    fn verify(&mut self, channel: &mut Channel, batch: usize) -> Result<()> {
        let (n, k) = (self.code.length(), self.code.dimension());
        let mut answer = vec![Block::ZERO; k + n];
        channel.recv_blocks(&mut answer)?;
        let (x, t) = answer.split_at(k);
        let mut code = scratch(n);
        self.code.encode_columns(x, 1, 1, &mut code);
        let OosSender { delta, hashes, spent, .. } = self;
        let hashes = &mut hashes[batch % WINDOW];
        // proof: paxos 2.6
        let result = spent.settle("oos", || {
            let mut wrong = Block::ZERO;
            for i in 0..n {
                let bit = delta[i / 128].bit(i % 128);
                wrong = wrong | (t[i] ^ hashes[i] ^ (code[i] & Block::mask(bit)));
            }
            if wrong == Block::ZERO {
                Ok(())
            } else {
                Err(Error::Cheated { protocol: "oos", what: "the receiver's columns are not code words" })
            }
        });
        hashes.zeroize();
        result
    }
}

/// The columns of one batch that waits for its challenge.
struct Kept {
    message: Scratch,
    t: Scratch,
}

/// The receiver of OOS: rows of W blocks, words of K blocks.
pub struct OosReceiver<const K: usize, const W: usize> {
    code: Arc<dyn LinearCode>,
    columns: ReceiverColumns,
    prg: Prg,
    spent: Spent,
    u: Scratch,
    weights: Vec<Block>,
    kept: Vec<Kept>,
}

impl<const K: usize, const W: usize> OosReceiver<K, W> {
    /// Sets up from a malicious base OT, in which this side receives (it sends the seeds through KOS).
    ///
    /// `Error::Usage` unless the code has length 128·W and a dimension of at most 128·K.
    pub fn setup(
        channel: &mut Channel,
        base: &dyn BaseOt,
        code: Arc<dyn LinearCode>,
        prg: &mut Prg,
    ) -> Result<Self> {
        fits::<K, W>(&*code)?;
        let mut rot = CotToRot::new(KosSender::setup(channel, base, prg)?);
        let mut seeds = Zeroizing::new(vec![[Block::ZERO; 2]; code.length()]);
        rot.extend(channel, &mut seeds)?;
        Ok(Self::with(code, ReceiverColumns::new(&seeds), prg.fork(), Spent::default()))
    }

    fn with(code: Arc<dyn LinearCode>, columns: ReceiverColumns, prg: Prg, spent: Spent) -> Self {
        let n = code.length();
        OosReceiver { code, columns, prg, spent, u: scratch(n * TILE), weights: Vec::new(), kept: Vec::new() }
    }

    /// An independent stream, for another channel; the sender forks in step.
    pub fn fork(&mut self) -> Self {
        Self::with(self.code.clone(), self.columns.fork(), self.prg.fork(), self.spent.clone())
    }

    /// Makes `rows.len()` rows with the words `inputs`: `rows[j]` = t_j = q_j ⊕ C(inputs\[j\]) ∧ Δ.
    ///
    /// A word's bits stand from bit 0 of its first block on; bits past the code's dimension must be zero, or
    /// `Error::Usage`. Nothing is left in `rows` on an error.
    pub fn extend(
        &mut self,
        channel: &mut Channel,
        inputs: &[[Block; K]],
        rows: &mut [[Block; W]],
    ) -> Result<()> {
        self.spent.check("oos")?;
        if inputs.len() != rows.len() {
            return Err(Error::Usage { protocol: "oos", what: "one word a row" });
        }
        let excess =
            inputs.iter().fold([Block::ZERO; K], |all, word| core::array::from_fn(|i| all[i] | word[i]));
        if (self.code.dimension()..128 * K).any(|i| excess[i / 128].bit(i % 128)) {
            return Err(Error::Usage { protocol: "oos", what: "a word has more bits than the code takes" });
        }
        let result = self.run(channel, inputs, rows);
        let result = self.spent.record("oos", result);
        result.inspect_err(|_| rows.as_flattened_mut().zeroize())
    }

    fn run(&mut self, channel: &mut Channel, inputs: &[[Block; K]], rows: &mut [[Block; W]]) -> Result<()> {
        let n = rows.len();
        let count = batch_count(n);
        let size = (BATCH - 1) * 128;
        for (batch, (inputs, rows)) in inputs.chunks(size).zip(rows.chunks_mut(size)).enumerate() {
            if batch >= WINDOW {
                self.answer(channel, batch - WINDOW, batch_blocks(n, batch - WINDOW))?;
            }
            self.run_batch(channel, batch, inputs, rows)?;
        }
        for batch in count - WINDOW.min(count)..count {
            self.answer(channel, batch, batch_blocks(n, batch))?;
        }
        channel.flush()?;
        Ok(())
    }

    /// Sends one batch's U = T ⊕ PRG(k^1) ⊕ C(D), column by column, and keeps its columns.
    fn run_batch(
        &mut self,
        channel: &mut Channel,
        batch: usize,
        inputs: &[[Block; K]],
        mut rows: &mut [[Block; W]],
    ) -> Result<()> {
        let (n, data) = (self.code.length(), inputs.len().div_ceil(128));
        if self.kept.len() <= batch % WINDOW {
            self.kept.push(Kept { message: scratch(128 * K * STRIDE), t: scratch((n + 1) * STRIDE) });
        }
        let Kept { message, t } = &mut self.kept[batch % WINDOW];
        slice_words(inputs, message, STRIDE);
        // The sacrificed rows' words.
        for column in message.chunks_exact_mut(STRIDE).take(self.code.dimension()) {
            column[data] = self.prg.block();
        }
        for at in (0..data + 1).step_by(TILE) {
            let len = (data + 1 - at).min(TILE);
            let u = &mut self.u[..n * len];
            self.code.encode_columns(&message[at..], STRIDE, len, u);
            self.columns.fill(len, &mut t[at..], STRIDE, u);
            channel.send_blocks(u)?;
            let (here, after) = rows.split_at_mut(rows.len().min(len * 128));
            columns_to_wide_rows(&t[at..], STRIDE, W, here.as_flattened_mut());
            rows = after;
        }
        Ok(())
    }

    /// On χ, sends the hashes of the message columns and of T's columns.
    fn answer(&mut self, channel: &mut Channel, batch: usize, data: usize) -> Result<()> {
        weights(channel.recv_block()?, data, &mut self.weights);
        let Kept { message, t } = &self.kept[batch % WINDOW];
        let (n, k) = (self.code.length(), self.code.dimension());
        for (columns, count) in [(message, k), (t, n)] {
            let mut sums = ColumnSums::new(count);
            sums.add(columns, STRIDE, &self.weights);
            channel.send_blocks(&sums.finish())?;
        }
        Ok(())
    }
}
