//! IKNP: OT extension against a peer that follows the protocol, with the optimisation of Asharov, Lindell,
//! Schneider and Zohner (CCS 2013: the receiver sends one string a column, and random OTs cost the sender
//! nothing).
//!
//! - Source: Ishai, Kilian, Nissim, Petrank (CRYPTO 2003), as figure 3 (COTe) of Keller, Orsini, Scholl
//!   (2015/546).
//! - Realises: correlated OT, semi-honest, from a PRG (AES-128 in counter mode).
//! - Rounds: one message of the receiver. Bytes: 15.875 an OT.
//! - Deviation: Δ_0 = 1 always, so that the receiver's choice bit rides in the lowest bit of its block. The
//!   receiver takes t_0 = r, which makes q_0 = t_0 ⊕ Δ_0·r = 0: column 0 needs no seeds and does not travel.
//!   The other 127 bits of Δ are uniform. A receiver that knows Δ_0 = 1 would know q_0 in any case, so
//!   nothing is given away by fixing it.

use super::Setup;
use super::columns::{
    COLUMNS, CoteReceiver, CoteSender, Direct, Each, ReceivingColumns, Rows, STRIDE, Scratch, SendingColumns,
    TILE, scratch,
};
use crate::spent::Spent;
use crate::{
    BaseOt, ChosenCotReceiver, ChosenCotSender, CotReceiver, CotSender, Error, Rest, Result, RotReceiver,
    RotSender,
};
use tacit_crypto::{BitVec, Block, KAPPA, Prg, transpose::columns_to_rows};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

/// Pairs of seeds that are wiped when dropped.
pub(super) type Pairs = Zeroizing<Vec<[Block; 2]>>;

/// Bytes of both directions for `n` correlations, the setup left out.
pub fn bytes(n: usize) -> u64 {
    (n.div_ceil(128) * COLUMNS * size_of::<Block>()) as u64
}

/// Begins to draw seeds from any base OT, the sender's side: Δ, whose bits 1 to 127 are the choices, and what
/// is left of the OTs.
pub(super) fn sender_seeds(
    channel: &mut Channel,
    base: &dyn BaseOt,
    prg: &mut Prg,
) -> Result<(Block, Rest<Block>)> {
    // proof: kos 2.1
    let choices = BitVec::random(COLUMNS, prg);
    Ok((delta_from(&choices), base.begin_receive(channel, prg, &choices)?))
}

/// Begins to draw seeds from any base OT, the receiver's side.
pub(super) fn receiver_seeds(
    channel: &mut Channel,
    base: &dyn BaseOt,
    prg: &mut Prg,
) -> Result<Rest<[Block; 2]>> {
    base.begin_send(channel, prg, COLUMNS)
}

/// Seeds from random OT with random choices, the sender's side.
pub(super) fn sender_seeds_from_rot(
    channel: &mut Channel,
    rot: &mut dyn RotReceiver,
) -> Result<(Block, Scratch)> {
    let mut seeds = scratch(COLUMNS);
    let choices = rot.extend(channel, &mut seeds)?;
    if choices.len() != COLUMNS {
        return Err(Error::Usage {
            protocol: "iknp",
            what: "the random OT returned another number of choices",
        });
    }
    Ok((delta_from(&choices), seeds))
}

/// Seeds from random OT, the receiver's side.
pub(super) fn receiver_seeds_from_rot(channel: &mut Channel, rot: &mut dyn RotSender) -> Result<Pairs> {
    let mut seeds = Zeroizing::new(vec![[Block::ZERO; 2]; COLUMNS]);
    rot.extend(channel, &mut seeds)?;
    Ok(seeds)
}

pub(super) fn delta_from(choices: &BitVec) -> Block {
    Block::new(choices.blocks()[0].to_u128() << 1 | 1)
}

/// The receiver's choice bits: given, or drawn as they are needed.
pub(super) enum Choices<'a> {
    /// The caller's.
    Chosen(&'a BitVec),
    /// Fresh ones.
    Random,
}

impl Choices<'_> {
    /// The choices of blocks `start..start + out.len()`.
    pub(super) fn fill(&self, start: usize, prg: &mut Prg, out: &mut [Block]) {
        match self {
            Choices::Chosen(bits) => out.copy_from_slice(&bits.blocks()[start..start + out.len()]),
            Choices::Random => prg.fill_blocks(out),
        }
    }
}

/// The sender of IKNP, or of what makes its columns in another way.
pub struct IknpSender<C = CoteSender> {
    cote: C,
    spent: Spent,
}

impl IknpSender {
    /// Sets up from a base OT, in which this side receives.
    pub fn setup(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg) -> Result<Self> {
        Self::begin(channel, base, prg)?(channel)
    }

    /// Begins [`setup`](Self::setup), which the receiver begins likewise; see [`BaseOt::begin_receive`].
    pub fn begin(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg) -> Result<Setup<Self>> {
        let (delta, rest) = sender_seeds(channel, base, prg)?;
        let delta = Zeroizing::new(delta);
        Ok(Box::new(move |channel| Ok(Self::with(CoteSender::new(*delta, &rest(channel)?)))))
    }

    /// Sets up from random OT; its random choices become Δ.
    pub fn from_rot(channel: &mut Channel, rot: &mut dyn RotReceiver) -> Result<Self> {
        let (delta, seeds) = sender_seeds_from_rot(channel, rot)?;
        Ok(Self::with(CoteSender::new(delta, &seeds)))
    }
}

impl<C: SendingColumns> IknpSender<C> {
    pub(super) fn with(cote: C) -> Self {
        IknpSender { cote, spent: Spent::default() }
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

    /// An independent stream with the same Δ, for another channel; the receiver forks in step.
    pub fn fork(&mut self) -> Self {
        IknpSender { cote: self.cote.fork(), spent: self.spent.clone() }
    }

    fn run(&mut self, channel: &mut Channel, n: usize, rows: &mut dyn Rows) -> Result<()> {
        self.spent.check(C::PLAIN)?;
        let result = self.run_tiles(channel, n, rows);
        self.spent.record(C::PLAIN, result)
    }

    fn run_tiles(&mut self, channel: &mut Channel, n: usize, rows: &mut dyn Rows) -> Result<()> {
        self.cote.begin(channel)?;
        for start in (0..n).step_by(TILE * 128) {
            let here = (n - start).min(TILE * 128);
            self.cote.tile(channel, here.div_ceil(128))?;
            columns_to_rows(self.cote.columns(), STRIDE, rows.place(start, here));
            rows.done(start, here);
        }
        Ok(())
    }
}

impl<C: SendingColumns> CotSender for IknpSender<C> {
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

impl<C: SendingColumns> ChosenCotSender for IknpSender<C> {
    fn delta(&self) -> Block {
        self.cote.delta()
    }

    fn extend_chosen(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.extend(channel, out)
    }
}

/// The receiver of IKNP, or of what makes its columns in another way.
pub struct IknpReceiver<C = CoteReceiver> {
    cote: C,
    t: Scratch,
    prg: Prg,
    spent: Spent,
}

impl IknpReceiver {
    /// Sets up from a base OT, in which this side sends.
    pub fn setup(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg) -> Result<Self> {
        Self::begin(channel, base, prg)?(channel)
    }

    /// Begins [`setup`](Self::setup); see [`BaseOt::begin_send`].
    pub fn begin(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg) -> Result<Setup<Self>> {
        let (rest, prg) = (receiver_seeds(channel, base, prg)?, prg.fork());
        Ok(Box::new(move |channel| Ok(Self::with(CoteReceiver::new(&rest(channel)?), prg))))
    }

    /// Sets up from random OT, in which this side sends.
    pub fn from_rot(channel: &mut Channel, rot: &mut dyn RotSender, prg: &mut Prg) -> Result<Self> {
        let seeds = receiver_seeds_from_rot(channel, rot)?;
        Ok(Self::with(CoteReceiver::new(&seeds), prg.fork()))
    }
}

impl<C: ReceivingColumns> IknpReceiver<C> {
    pub(super) fn with(cote: C, prg: Prg) -> Self {
        IknpReceiver { cote, t: scratch((KAPPA + 1) * STRIDE), prg, spent: Spent::default() }
    }

    /// Sends what the columns need beside their seeds before the first request; see [`IknpSender::open`].
    pub(super) fn open(&mut self, channel: &mut Channel) -> Result<()> {
        self.cote.begin(channel)?;
        Ok(channel.flush()?)
    }

    /// An independent stream, for another channel; the sender forks in step.
    pub fn fork(&mut self) -> Self {
        let mut fork = Self::with(self.cote.fork(), self.prg.fork());
        fork.spent = self.spent.clone();
        fork
    }

    fn run(
        &mut self,
        channel: &mut Channel,
        choices: &Choices<'_>,
        n: usize,
        rows: &mut dyn Rows,
    ) -> Result<()> {
        self.spent.check(C::PLAIN)?;
        let result = self.run_tiles(channel, choices, n, rows);
        self.spent.record(C::PLAIN, result)
    }

    fn run_tiles(
        &mut self,
        channel: &mut Channel,
        choices: &Choices<'_>,
        n: usize,
        rows: &mut dyn Rows,
    ) -> Result<()> {
        self.cote.begin(channel)?;
        for start in (0..n).step_by(TILE * 128) {
            let here = (n - start).min(TILE * 128);
            let len = here.div_ceil(128);
            choices.fill(start / 128, &mut self.prg, &mut self.t[..len]);
            self.cote.tile(channel, &mut self.t, STRIDE, 0, len)?;
            columns_to_rows(&self.t, STRIDE, rows.place(start, here));
            rows.done(start, here);
        }
        channel.flush()?;
        Ok(())
    }
}

impl<C: ReceivingColumns> CotReceiver for IknpReceiver<C> {
    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.run(channel, &Choices::Random, out.len(), &mut Direct(out)).inspect_err(|_| out.zeroize())
    }

    fn extend_each(&mut self, channel: &mut Channel, n: usize, each: &mut dyn FnMut(&[Block])) -> Result<()> {
        self.run(channel, &Choices::Random, n, &mut Each::new(each))
    }
}

impl<C: ReceivingColumns> ChosenCotReceiver for IknpReceiver<C> {
    fn extend_chosen(&mut self, channel: &mut Channel, choices: &BitVec, out: &mut [Block]) -> Result<()> {
        if choices.len() != out.len() {
            return Err(Error::Usage { protocol: C::PLAIN, what: "one choice bit an OT" });
        }
        self.run(channel, &Choices::Chosen(choices), out.len(), &mut Direct(out))
            .inspect_err(|_| out.zeroize())
    }
}
