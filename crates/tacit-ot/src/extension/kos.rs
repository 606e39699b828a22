//! KOS: OT extension against a malicious peer, with the revised check.
//!
//! - Source: Keller, Orsini, Scholl, 2015/546 as revised: COTe of figure 3 and the check of section 4, figure
//!   10. The check of the conference version (one row hash) has no proof at κ = 128: see Roy, 2022/192,
//!   appendix D.
//! - Realises: correlated OT against malicious parties, with abort; a cheating receiver that passes learns c
//!   bits of Δ with probability at most 2^-c. From a malicious base OT, a PRG (AES-128 in counter mode) and a
//!   universal hash.
//! - Check: each column, as blocks of 128 bits, is hashed with common weights χ_j ∈ GF(2^128) that S draws,
//!   and that R learns after all of the batch's U has arrived. The last block of a batch holds 128 OTs with
//!   random choices, has the weight 1 and is thrown away: it makes x uniform. R sends x and the columns'
//!   hashes t_i; S checks t_i = q_i ⊕ Δ_i·x for every i. Two columns that encode different choices hash alike
//!   with probability 2^-128.
//! - Streaming: a long request is cut into batches of 65,408 OTs, each a complete extension with a check of
//!   its own. R runs up to four batches ahead of the χ it waits for and keeps their columns (4 MiB), so no
//!   batch costs a round trip and memory does not grow with n. Until the last check has passed, outputs are
//!   provisional; S wipes them on failure. S hashes with χ while a tile is hot: it drew χ itself, and sends
//!   it only when U is complete.
//! - By Fiat–Shamir ([`KosSender::by_hash`], [`KosReceiver::by_hash`]) χ is a hash of the session, both roles
//!   and all that was sent so far, and R sends U and its answer in one message. R can then try many U before
//!   it sends one: q trials find two columns that hash alike with probability q·2^-128 a pair, while guesses
//!   of Δ stay one a run. A batch is one tile, because S cannot hash columns before it has all of U: 4,080
//!   bytes for 8,064 OTs. For few OTs over a slow link.
//! - What χ binds begins with the seeds. If it did not, R could fix U, learn χ, and only then choose seeds: a
//!   column that encodes PRG(k_0) ⊕ PRG(k_1) ⊕ u hashes as R likes after 2^64 trials of each seed, since the
//!   hash is linear. So the history takes in both directions of the base OTs ([`Recording`]), whose messages
//!   determine the seeds, or of the random OTs ([`KosSender::from_rot`]). Seeds made elsewhere come with a
//!   binding, 32 bytes that both sides know and that hash whatever determined them ([`KosSender::from_seeds`]
//!   says what that is). It is public; it must not be the seeds' own hash, which would tell a side whether a
//!   guess of the other's seeds is right.
//! - Rounds: three messages for any n. Bytes: 15.875 an OT, and for each batch 2,032 for the sacrificed OTs,
//!   16 for χ and 2,048 for the answer.
//! - Deviation: Δ_0 = 1 always and t_0 = r, so that column 0 does not travel (see `iknp.rs`). In the check,
//!   column 0 reads q_0 = 0 and t_0 = x, so x stands for its hash and S checks the other 127 columns. R's
//!   choices are then what most of those 127 columns encode. Δ has 127 uniform bits; each wrong column still
//!   costs R a guess of its Δ_i.

use super::columns::{
    COLUMNS, CoteReceiver, CoteSender, Direct, Each, ReceivingColumns, Rows, STRIDE, Scratch, SendingColumns,
    TILE, scratch, stride_for,
};
use super::iknp::{
    Choices, delta_from, receiver_seeds, receiver_seeds_from_rot, sender_seeds, sender_seeds_from_rot,
};
use crate::spent::Spent;
use crate::{
    BaseOt, ChosenCotReceiver, ChosenCotSender, CotReceiver, CotSender, Error, Result, RotReceiver,
    RotSender, Security,
};
use tacit_crypto::{
    BitVec, Block, KAPPA, Prg, gf128::ColumnSums, transcript::Transcript, transpose::columns_to_rows,
};
use tacit_net::{Channel, Party, Recording};
use zeroize::{Zeroize, Zeroizing};

/// Blocks of 128 OTs in a batch, the sacrificed one included.
// proof: kos 7.1
const BATCH: usize = 512;
/// Batches that the receiver runs ahead of their challenges. Both sides' order of messages depends on it.
const WINDOW: usize = 4;

/// Data blocks of batch `batch` of a request for `n` OTs.
fn batch_blocks(n: usize, batch: usize) -> usize {
    (n.div_ceil(128) - batch * (BATCH - 1)).min(BATCH - 1)
}

fn batch_count(n: usize) -> usize {
    n.div_ceil(128).div_ceil(BATCH - 1)
}

/// Bytes of both directions for `n` correlations asked for at once, the setup left out.
pub fn bytes(n: usize) -> u64 {
    bytes_of(n, COLUMNS)
}

/// The same where `travel` columns travel.
pub(super) fn bytes_of(n: usize, travel: usize) -> u64 {
    let batches = batch_count(n);
    let columns = (n.div_ceil(128) + batches) * travel;
    // χ, and x with the hashes of the columns.
    ((columns + batches * (1 + KAPPA)) * size_of::<Block>()) as u64
}

/// Bytes of a stream's state at most: the receiver's columns that wait for their challenges.
pub const fn held() -> u64 {
    (WINDOW * (KAPPA + 1) * stride_for(BATCH) * size_of::<Block>()) as u64
}

/// As [`bytes`], with χ from a hash: all of them the receiver's.
pub fn bytes_by_hash(n: usize) -> u64 {
    bytes_by_hash_of(n, COLUMNS)
}

/// The same where `travel` columns travel.
pub(super) fn bytes_by_hash_of(n: usize, travel: usize) -> u64 {
    let of = |(_, data)| (data + 1) * travel + KAPPA;
    (History::batches(n).map(of).sum::<usize>() * size_of::<Block>()) as u64
}

/// 32 bytes that both sides know and that hash what determined the seeds of an extension; see
/// [`KosSender::from_seeds`].
pub(crate) type Binding = [u8; 32];

/// The binding of seeds that come of `parts` in the way named by `label`.
pub(super) fn binding(label: &str, parts: &[&[u8]]) -> Binding {
    let mut transcript = Transcript::new("tacit kos seeds v1");
    parts.iter().for_each(|part| transcript.append(label, part));
    let mut out = [0; 32];
    transcript.challenge_bytes("binding", &mut out);
    out
}

/// All that passed so far, from which χ is drawn without a message.
#[derive(Clone)]
pub(super) struct History(Transcript);

impl History {
    /// A stream's, whose sender this side is or not.
    fn new(channel: &mut Channel, sender: bool) -> Self {
        Self::of("tacit kos v2", channel, sender)
    }

    /// The same of the protocol called `domain`.
    pub(super) fn of(domain: &'static str, channel: &mut Channel, sender: bool) -> Self {
        let mut transcript = Transcript::new(domain);
        transcript.append("session", &channel.session_id().0);
        transcript.append_u64("instance", channel.next_instance());
        let first_sends = (channel.party() == Party::First) == sender;
        transcript.append_u64("first party sends", first_sends.into());
        History(transcript)
    }

    /// Takes in what determined the seeds.
    pub(super) fn bind(mut self, seeds: &Binding) -> Self {
        // proof: kos 5.2
        self.0.append("seeds", seeds);
        self
    }

    /// Takes in the answer to the last challenge.
    pub(super) fn answered(&mut self, answer: &[Block]) {
        self.0.append_blocks("answer", answer);
    }

    /// That of a stream forked from this one.
    fn fork(&mut self) -> Self {
        let mut fork = self.clone();
        self.0.append_u64("stream", 0);
        fork.0.append_u64("stream", 1);
        fork
    }

    /// Takes in what corrects the trees of seeds, where there are any and it has not been.
    pub(super) fn corrected(&mut self, corrections: &[Block]) {
        if !corrections.is_empty() {
            self.0.append_blocks("corrections", corrections);
        }
    }

    /// χ once U is fixed.
    pub(super) fn challenge(&mut self, u: &[Block]) -> Block {
        // proof: kos 5.1
        self.0.append_blocks("U", u);
        self.0.challenge_block("weights")
    }

    /// The first OT of each batch of `n`, and its data blocks: a batch is one tile.
    pub(super) fn batches(n: usize) -> impl Iterator<Item = (usize, usize)> {
        let blocks = n.div_ceil(128);
        (0..blocks).step_by(TILE - 1).map(move |start| (start * 128, (blocks - start).min(TILE - 1)))
    }
}

pub(super) fn require_malicious(base: &dyn BaseOt, protocol: &'static str) -> Result<()> {
    match base.security() {
        Security::Malicious => Ok(()),
        Security::SemiHonest => {
            Err(Error::Usage { protocol, what: "the base OT must be secure against malicious parties" })
        }
    }
}

/// OTs that seed an extension.
pub const SEEDS: usize = COLUMNS;

fn require_seeds(n: usize) -> Result<()> {
    if n == SEEDS { Ok(()) } else { Err(Error::Usage { protocol: "kos", what: "another number of seeds" }) }
}

pub use super::Setup;

/// The weights of a batch with `data` blocks: the stream of χ, and 1 for the sacrificed block.
pub(super) fn weights(challenge: Block, data: usize, out: &mut Vec<Block>) {
    out.resize(data + 1, Block::ZERO);
    Prg::from_seed(challenge).fill_blocks(&mut out[..data]);
    out[data] = Block::ONE;
}

/// The sender of KOS, or of its check over columns that are made in another way.
pub struct KosSender<C = CoteSender> {
    cote: C,
    /// Coins for χ; not needed where χ is a hash.
    coins: Option<Prg>,
    spent: Spent,
    weights: Vec<Block>,
    /// The columns' hashes of the batches that wait for an answer.
    hashes: Vec<Vec<Block>>,
    binding: Binding,
    history: Option<History>,
}

impl<C> Drop for KosSender<C> {
    fn drop(&mut self) {
        self.hashes.zeroize();
    }
}

impl KosSender {
    /// Sets up from a malicious base OT, in which this side receives.
    pub fn setup(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg) -> Result<Self> {
        Self::begin(channel, base, prg)?(channel)
    }

    /// Begins [`setup`](Self::setup), which the receiver begins likewise; see [`BaseOt::begin_receive`].
    pub fn begin(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg) -> Result<Setup<Self>> {
        Self::begin_with(channel, base, prg, None, CoteSender::new)
    }

    /// Sets up from malicious random OT; its random choices become Δ. `before` hashes what passed when `rot`
    /// was set up, as far as it bears on its messages; what passes now is added to it.
    pub fn from_rot(
        channel: &mut Channel,
        rot: &mut dyn RotReceiver,
        before: &Binding,
        prg: &mut Prg,
    ) -> Result<Self> {
        let mut passed = Recording::new(channel);
        let (delta, seeds) = channel.record(&mut passed, |channel| sender_seeds_from_rot(channel, rot))?;
        let binding = binding("random", &[before, &passed.digest()]);
        Ok(Self::with(CoteSender::new(delta, &seeds), Some(prg.fork()), binding))
    }

    /// Sets up from malicious random OTs made before, [`SEEDS`] of them, with random choices.
    ///
    /// `made` must hash the public messages, of both sides, that determine the seeds: those of the OTs, and
    /// whatever went into a hash that was put over them, as salts. If the receiver of the extension could
    /// still change its seeds once `made` is fixed, the check of [`by_hash`](Self::by_hash) would not hold
    /// it. Both sides give the same.
    pub fn from_seeds(choices: &BitVec, seeds: &[Block], made: &Binding, prg: &mut Prg) -> Result<Self> {
        require_seeds(seeds.len().min(choices.len()))?;
        let cote = CoteSender::new(delta_from(choices), seeds);
        Ok(Self::with(cote, Some(prg.fork()), binding("given", &[made])))
    }

    /// From now on χ is a hash of what was sent, from the base OTs on, and an extension is one message; the
    /// receiver does likewise.
    pub fn by_hash(self, channel: &mut Channel) -> Self {
        self.with_history(History::new(channel, true))
    }

    /// [`begin`](Self::begin) for [`by_hash`](Self::by_hash).
    pub fn begin_by_hash(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg) -> Result<Setup<Self>> {
        let (setup, history) = (Self::begin(channel, base, prg)?, History::new(channel, true));
        Ok(Box::new(move |channel| Ok(setup(channel)?.with_history(history))))
    }
}

impl<C: SendingColumns + 'static> KosSender<C> {
    /// Begins to set up with what `columns` makes of Δ and the seeds; χ by a history, or drawn without one.
    pub(super) fn begin_with(
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        history: Option<History>,
        columns: impl FnOnce(Block, &[Block]) -> C + Send + 'static,
    ) -> Result<Setup<Self>> {
        require_malicious(base, C::CHECKED)?;
        let mut passed = Recording::new(channel);
        let (delta, rest) = channel.record(&mut passed, |channel| sender_seeds(channel, base, prg))?;
        let (delta, name) = (Zeroizing::new(delta), base.name());
        let coins = history.is_none().then(|| prg.fork());
        Ok(Box::new(move |channel| {
            let cote = columns(*delta, &channel.record(&mut passed, rest)?);
            let sender = Self::with(cote, coins, binding("base", &[name.as_bytes(), &passed.digest()]));
            Ok(match history {
                None => sender,
                Some(history) => sender.with_history(history),
            })
        }))
    }

    pub(super) fn with(cote: C, coins: Option<Prg>, binding: Binding) -> Self {
        let (hashes, spent) = (vec![Vec::new(); WINDOW], Spent::default());
        KosSender { cote, coins, spent, weights: Vec::new(), hashes, binding, history: None }
    }

    pub(super) fn with_history(mut self, history: History) -> Self {
        self.history = Some(history.bind(&self.binding));
        self
    }

    /// Takes what the columns need beside their seeds before the first request, so that [`fork`](Self::fork) may
    /// follow.
    pub(super) fn open(&mut self, channel: &mut Channel) -> Result<()> {
        self.cote.begin(channel).map(drop)
    }

    /// The correlation Δ; its lowest bit is 1.
    pub fn delta(&self) -> Block {
        self.cote.delta()
    }

    /// An independent stream with the same Δ, for another channel; the receiver forks in step. When one
    /// stream fails, all are spent, those with a check on its way included.
    pub fn fork(&mut self) -> Self {
        let mut fork = Self::with(self.cote.fork(), self.coins.as_mut().map(Prg::fork), self.binding);
        fork.spent = self.spent.clone();
        fork.history = self.history.as_mut().map(History::fork);
        fork
    }

    fn run(&mut self, channel: &mut Channel, n: usize, rows: &mut dyn Rows) -> Result<()> {
        self.spent.check(C::CHECKED)?;
        let result = match self.history.take() {
            None => self.run_batches(channel, n, rows),
            Some(mut history) => {
                let result = self.run_hashed(channel, n, rows, &mut history);
                self.history = Some(history);
                result
            }
        };
        self.spent.record(C::CHECKED, result)
    }

    /// As [`run_batches`](Self::run_batches) with χ from the history.
    fn run_hashed(
        &mut self,
        channel: &mut Channel,
        n: usize,
        rows: &mut dyn Rows,
        history: &mut History,
    ) -> Result<()> {
        history.corrected(&self.cote.begin(channel)?);
        for (start, data) in History::batches(n) {
            self.cote.tile(channel, data + 1)?;
            weights(history.challenge(self.cote.received(data + 1)), data, &mut self.weights);
            let mut sums = ColumnSums::new(KAPPA);
            sums.add(self.cote.columns(), STRIDE, &self.weights);
            self.hashes[0] = sums.finish();
            history.answered(&self.verify(channel, 0)?);
            let here = (n - start).min(data * 128);
            columns_to_rows(self.cote.columns(), STRIDE, rows.place(start, here));
            rows.done(start, here);
        }
        Ok(())
    }

    fn run_batches(&mut self, channel: &mut Channel, n: usize, rows: &mut dyn Rows) -> Result<()> {
        self.cote.begin(channel)?;
        let count = batch_count(n);
        for batch in 0..count {
            if batch >= WINDOW {
                self.verify(channel, batch - WINDOW)?;
            }
            self.run_batch(channel, batch, n, rows)?;
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
        n: usize,
        rows: &mut dyn Rows,
    ) -> Result<()> {
        let (data, start) = (batch_blocks(n, batch), batch * (BATCH - 1) * 128);
        // proof: kos 2.3
        let coins = self.coins.as_mut().expect("a sender without a history has coins");
        let challenge = coins.block();
        weights(challenge, data, &mut self.weights);
        let mut sums = ColumnSums::new(KAPPA);
        for at in (0..data + 1).step_by(TILE) {
            let len = (data + 1 - at).min(TILE);
            self.cote.tile(channel, len)?;
            // Fig. 10: q_i = Σ_j χ_j·q_{i,j}; column 0 is zero.
            sums.add(self.cote.columns(), STRIDE, &self.weights[at..at + len]);
            let here = n.saturating_sub(start + at * 128).min(len.min(data - at) * 128);
            if here > 0 {
                columns_to_rows(self.cote.columns(), STRIDE, rows.place(start + at * 128, here));
                rows.done(start + at * 128, here);
            }
        }
        self.hashes[batch % WINDOW] = sums.finish();
        channel.send_block(challenge)?;
        Ok(())
    }

    /// Fig. 10: checks t_i = q_i ⊕ Δ_i·x for every column; gives R's answer.
    fn verify(&mut self, channel: &mut Channel, batch: usize) -> Result<[Block; KAPPA]> {
        let mut answer = [Block::ZERO; KAPPA];
        channel.recv_blocks(&mut answer)?;
        let KosSender { cote, hashes, spent, .. } = self;
        let hashes = &mut hashes[batch % WINDOW];
        let (x, delta) = (answer[0], cote.delta());
        // proof: kos 2.5, 2.6
        // proof: softspoken 2.4
        let result = spent.settle(C::CHECKED, || {
            let wrong = (1..KAPPA).fold(Block::ZERO, |wrong, i| {
                wrong | (answer[i] ^ hashes[i] ^ (x & Block::mask(delta.bit(i))))
            });
            if wrong == Block::ZERO {
                Ok(answer)
            } else {
                Err(Error::Cheated { protocol: C::CHECKED, what: "the receiver's columns do not agree" })
            }
        });
        hashes.zeroize();
        result
    }
}

impl<C: SendingColumns + 'static> CotSender for KosSender<C> {
    fn delta(&self) -> Block {
        self.cote.delta()
    }

    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.run(channel, out.len(), &mut Direct(out)).inspect_err(|_| out.zeroize())
    }

    fn extend_each(&mut self, channel: &mut Channel, n: usize, each: &mut dyn FnMut(&[Block])) -> Result<()> {
        self.run(channel, n, &mut Each::new(each))
    }
}

impl<C: SendingColumns + 'static> ChosenCotSender for KosSender<C> {
    fn delta(&self) -> Block {
        self.cote.delta()
    }

    fn extend_chosen(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.extend(channel, out)
    }
}

/// The receiver of KOS, or of its check over columns that are made in another way.
pub struct KosReceiver<C = CoteReceiver> {
    cote: C,
    prg: Prg,
    spent: Spent,
    weights: Vec<Block>,
    /// The columns of the batches that wait for their challenge, column 0 being the choices.
    kept: Vec<Scratch>,
    /// From one kept column to the next.
    stride: usize,
    binding: Binding,
    history: Option<History>,
}

impl KosReceiver {
    /// Sets up from a malicious base OT, in which this side sends.
    pub fn setup(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg) -> Result<Self> {
        Self::begin(channel, base, prg)?(channel)
    }

    /// Begins [`setup`](Self::setup), which the sender begins likewise; see [`BaseOt::begin_send`].
    pub fn begin(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg) -> Result<Setup<Self>> {
        Self::begin_with(channel, base, prg, None, CoteReceiver::new)
    }

    /// Sets up from malicious random OT, in which this side sends; `before` as for [`KosSender::from_rot`].
    pub fn from_rot(
        channel: &mut Channel,
        rot: &mut dyn RotSender,
        before: &Binding,
        prg: &mut Prg,
    ) -> Result<Self> {
        let mut passed = Recording::new(channel);
        let seeds = channel.record(&mut passed, |channel| receiver_seeds_from_rot(channel, rot))?;
        let binding = binding("random", &[before, &passed.digest()]);
        Ok(Self::with(CoteReceiver::new(&seeds), prg.fork(), binding))
    }

    /// Sets up from malicious random OTs made before, [`SEEDS`] of them; `made` as for
    /// [`KosSender::from_seeds`].
    pub fn from_seeds(seeds: &[[Block; 2]], made: &Binding, prg: &mut Prg) -> Result<Self> {
        require_seeds(seeds.len())?;
        Ok(Self::with(CoteReceiver::new(seeds), prg.fork(), binding("given", &[made])))
    }

    /// From now on χ is a hash of what was sent, from the base OTs on, and an extension is one message; the
    /// sender does likewise.
    pub fn by_hash(self, channel: &mut Channel) -> Self {
        self.with_history(History::new(channel, false))
    }

    /// [`begin`](Self::begin) for [`by_hash`](Self::by_hash).
    pub fn begin_by_hash(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg) -> Result<Setup<Self>> {
        let (setup, history) = (Self::begin(channel, base, prg)?, History::new(channel, false));
        Ok(Box::new(move |channel| Ok(setup(channel)?.with_history(history))))
    }
}

impl<C: ReceivingColumns + 'static> KosReceiver<C> {
    /// Begins to set up with what `columns` makes of the seeds; χ by a history, or asked for without one.
    pub(super) fn begin_with(
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        history: Option<History>,
        columns: impl FnOnce(&[[Block; 2]]) -> C + Send + 'static,
    ) -> Result<Setup<Self>> {
        require_malicious(base, C::CHECKED)?;
        let mut passed = Recording::new(channel);
        let rest = channel.record(&mut passed, |channel| receiver_seeds(channel, base, prg))?;
        let (prg, name) = (prg.fork(), base.name());
        Ok(Box::new(move |channel| {
            let cote = columns(&channel.record(&mut passed, rest)?);
            let receiver = Self::with(cote, prg, binding("base", &[name.as_bytes(), &passed.digest()]));
            Ok(match history {
                None => receiver,
                Some(history) => receiver.with_history(history),
            })
        }))
    }

    pub(super) fn with(cote: C, prg: Prg, binding: Binding) -> Self {
        KosReceiver {
            cote,
            prg,
            spent: Spent::default(),
            weights: Vec::new(),
            kept: Vec::new(),
            stride: stride_for(BATCH),
            binding,
            history: None,
        }
    }

    pub(super) fn with_history(mut self, history: History) -> Self {
        self.history = Some(history.bind(&self.binding));
        self.stride = STRIDE;
        self
    }

    /// Sends what the columns need beside their seeds before the first request; see [`KosSender::open`].
    pub(super) fn open(&mut self, channel: &mut Channel) -> Result<()> {
        self.cote.begin(channel)?;
        Ok(channel.flush()?)
    }

    /// An independent stream, for another channel; the sender forks in step.
    pub fn fork(&mut self) -> Self {
        let mut fork = Self::with(self.cote.fork(), self.prg.fork(), self.binding);
        fork.spent = self.spent.clone();
        fork.history = self.history.as_mut().map(History::fork);
        fork.stride = self.stride;
        fork
    }

    fn run(
        &mut self,
        channel: &mut Channel,
        choices: &Choices<'_>,
        n: usize,
        rows: &mut dyn Rows,
    ) -> Result<()> {
        self.spent.check(C::CHECKED)?;
        let result = match self.history.take() {
            None => self.run_batches(channel, choices, n, rows),
            Some(mut history) => {
                let result = self.run_hashed(channel, choices, n, rows, &mut history);
                self.history = Some(history);
                result
            }
        };
        self.spent.record(C::CHECKED, result)
    }

    /// As [`run_batches`](Self::run_batches) with χ from the history.
    fn run_hashed(
        &mut self,
        channel: &mut Channel,
        choices: &Choices<'_>,
        n: usize,
        rows: &mut dyn Rows,
        history: &mut History,
    ) -> Result<()> {
        history.corrected(&self.cote.begin(channel)?);
        for (start, data) in History::batches(n) {
            self.tile_batch(channel, choices, 0, data, start, n, rows)?;
            weights(history.challenge(self.cote.sent(data + 1)), data, &mut self.weights);
            history.answered(&self.send_hashes(channel, 0)?);
        }
        channel.flush()?;
        Ok(())
    }

    fn run_batches(
        &mut self,
        channel: &mut Channel,
        choices: &Choices<'_>,
        n: usize,
        rows: &mut dyn Rows,
    ) -> Result<()> {
        self.cote.begin(channel)?;
        let count = batch_count(n);
        for batch in 0..count {
            if batch >= WINDOW {
                self.answer(channel, batch - WINDOW, batch_blocks(n, batch - WINDOW))?;
            }
            self.run_batch(channel, choices, batch, n, rows)?;
        }
        for batch in count - WINDOW.min(count)..count {
            self.answer(channel, batch, batch_blocks(n, batch))?;
        }
        channel.flush()?;
        Ok(())
    }

    /// Sends one batch's U and keeps its columns.
    fn run_batch(
        &mut self,
        channel: &mut Channel,
        choices: &Choices<'_>,
        batch: usize,
        n: usize,
        rows: &mut dyn Rows,
    ) -> Result<()> {
        let (data, start) = (batch_blocks(n, batch), batch * (BATCH - 1) * 128);
        self.tile_batch(channel, choices, batch % WINDOW, data, start, n, rows)
    }

    /// Sends the U of `data` blocks of data, the OTs from `start` on, and of the sacrificed one, and keeps
    /// the columns in `slot`.
    fn tile_batch(
        &mut self,
        channel: &mut Channel,
        choices: &Choices<'_>,
        slot: usize,
        data: usize,
        start: usize,
        n: usize,
        rows: &mut dyn Rows,
    ) -> Result<()> {
        if self.kept.len() <= slot {
            self.kept.push(scratch((KAPPA + 1) * self.stride));
        }
        let t = &mut self.kept[slot];
        choices.fill(start / 128, &mut self.prg, &mut t[..data]);
        // The sacrificed OTs' choices.
        // proof: kos 2.2, 4.2
        t[data] = self.prg.block();
        for at in (0..data + 1).step_by(TILE) {
            let len = (data + 1 - at).min(TILE);
            self.cote.tile(channel, t, self.stride, at, len)?;
            let here = n.saturating_sub(start + at * 128).min(len.min(data - at) * 128);
            if here > 0 {
                columns_to_rows(&t[at..], self.stride, rows.place(start + at * 128, here));
                rows.done(start + at * 128, here);
            }
        }
        Ok(())
    }

    /// Fig. 10: on χ, sends x and the hash t_i of every column.
    fn answer(&mut self, channel: &mut Channel, batch: usize, data: usize) -> Result<()> {
        weights(channel.recv_block()?, data, &mut self.weights);
        self.send_hashes(channel, batch % WINDOW).map(|_| ())
    }

    fn send_hashes(&self, channel: &mut Channel, slot: usize) -> Result<Vec<Block>> {
        let t = &self.kept[slot];
        let mut sums = ColumnSums::new(KAPPA);
        sums.add(t, self.stride, &self.weights);
        // proof: kos 2.4
        let answer = sums.finish();
        channel.send_blocks(&answer)?;
        Ok(answer)
    }
}

impl<C: ReceivingColumns + 'static> CotReceiver for KosReceiver<C> {
    fn is_answered(&self) -> bool {
        self.history.is_none()
    }

    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.run(channel, &Choices::Random, out.len(), &mut Direct(out)).inspect_err(|_| out.zeroize())
    }

    fn extend_each(&mut self, channel: &mut Channel, n: usize, each: &mut dyn FnMut(&[Block])) -> Result<()> {
        self.run(channel, &Choices::Random, n, &mut Each::new(each))
    }
}

impl<C: ReceivingColumns + 'static> ChosenCotReceiver for KosReceiver<C> {
    fn extend_chosen(&mut self, channel: &mut Channel, choices: &BitVec, out: &mut [Block]) -> Result<()> {
        if choices.len() != out.len() {
            return Err(Error::Usage { protocol: C::CHECKED, what: "one choice bit an OT" });
        }
        self.run(channel, &Choices::Chosen(choices), out.len(), &mut Direct(out))
            .inspect_err(|_| out.zeroize())
    }
}

// One column less than κ travels; the answer carries x in its place.
const _: () = assert!(COLUMNS + 1 == KAPPA);
