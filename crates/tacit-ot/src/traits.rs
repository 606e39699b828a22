//! The interfaces that everything meets at.

use crate::Result;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use zeroize::Zeroizing;

/// Against what a protocol protects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Security {
    /// A peer that follows the protocol and studies what it saw.
    SemiHonest,
    /// A peer that may do anything.
    Malicious,
}

/// What a base OT's random messages may be trusted to be when one party is malicious.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Functionality {
    /// Nothing is proved beyond a peer that follows the protocol, or a protocol run alone.
    Standalone,
    /// A malicious sender may also guess choice bits, and is found out by the first wrong guess.
    SelectiveFailure,
    /// A malicious sender chooses both its messages, a malicious receiver those it receives. Enough for OT
    /// extension.
    Endemic,
    /// A malicious sender chooses both its messages; a receiver has no influence.
    SenderChosen,
    /// Messages are uniform whoever cheats.
    Uniform,
}

/// Until when a malicious receiver's choice stays unknown to the simulator of a base OT's proof. What is
/// built on a base OT may need it early; `docs/post-quantum.md` has each protocol here with the reason why it
/// does not, or is refused.
///
/// In neither case can a receiver change its choice after its first message, or learn both messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Extraction {
    /// Known before the sender outputs anything.
    Early,
    /// Known only when the receiver asks the random oracle for its message, which may be after everything
    /// else.
    Late,
}

/// What is left of a batch of base OTs when this side has sent all that it has to send: it receives, and
/// gives the messages.
pub(crate) type Rest<T> = Box<dyn FnOnce(&mut Channel) -> Result<Zeroizing<Vec<T>>> + Send>;

/// A base OT: a batch of random or chosen-choice OTs from public-key cryptography, with nothing set up
/// before.
///
/// One value serves one batch of one session; both roles of a protocol stand in one type.
pub trait BaseOt {
    /// The protocol's short name, as the command line knows it.
    fn name(&self) -> &'static str;
    /// The security that the protocol is proved for.
    fn security(&self) -> Security;
    /// What a malicious party can make of the messages.
    fn functionality(&self) -> Functionality {
        Functionality::Endemic
    }
    /// When a malicious receiver's choice is extracted; late, unless the protocol's proof says otherwise.
    fn extraction(&self) -> Extraction {
        Extraction::Late
    }
    /// Bytes that the sender and the receiver of a batch of `n` send, without the frames that carry them; `None` where
    /// that is not known.
    fn bytes(&self, _n: usize) -> Option<[usize; 2]> {
        None
    }
    /// Sends: fills `out` with pairs of random messages.
    fn send(&self, channel: &mut Channel, prg: &mut Prg, out: &mut [[Block; 2]]) -> Result<()>;
    /// Receives: `out[i]` becomes the sender's `out[i][choices[i]]`. `choices.len() == out.len()`.
    fn receive(
        &self,
        channel: &mut Channel,
        prg: &mut Prg,
        choices: &BitVec,
        out: &mut [Block],
    ) -> Result<()>;
    /// Begins to send a batch of `n`: sends all that this side has to send. What is left only receives, so
    /// other messages and other work can come between. Both sides call the halves, or both call
    /// [`send`](Self::send) and [`receive`](Self::receive).
    ///
    /// A protocol whose messages do not cross runs as a whole here.
    fn begin_send(&self, channel: &mut Channel, prg: &mut Prg, n: usize) -> Result<Rest<[Block; 2]>> {
        let mut out = Zeroizing::new(vec![[Block::ZERO; 2]; n]);
        self.send(channel, prg, &mut out)?;
        Ok(Box::new(move |_| Ok(out)))
    }
    /// Begins to receive a batch, as [`begin_send`](Self::begin_send).
    fn begin_receive(&self, channel: &mut Channel, prg: &mut Prg, choices: &BitVec) -> Result<Rest<Block>> {
        let mut out = Zeroizing::new(vec![Block::ZERO; choices.len()]);
        self.receive(channel, prg, choices, &mut out)?;
        Ok(Box::new(move |_| Ok(out)))
    }
}

/// The sender of random correlated OT: v with w = v ⊕ u·Δ at the receiver.
pub trait CotSender {
    /// The correlation Δ, fixed for the life of the sender; its lowest bit is 1.
    fn delta(&self) -> Block;
    /// Makes `out.len()` correlations. The lowest bit of every `out[i]` is 0.
    ///
    /// Nothing is left in `out` unless every check passed.
    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()>;
    /// Makes `n` correlations and hands them to `each` in order, in pieces, while they are hot in cache.
    ///
    /// What `each` sees is provisional: when an error is returned, the caller wipes what it made of it. Both
    /// sides call this, or both call [`extend`](Self::extend).
    fn extend_each(&mut self, channel: &mut Channel, n: usize, each: &mut dyn FnMut(&[Block])) -> Result<()> {
        in_pieces(n, |piece| {
            self.extend(channel, piece)?;
            each(piece);
            Ok(())
        })
    }
}

/// The receiver of random correlated OT.
pub trait CotReceiver {
    /// Makes `out.len()` correlations with random choices: `out[i] = v[i] ⊕ u[i]·Δ`, and the lowest bit of
    /// `out[i]` is the choice bit u\[i\].
    ///
    /// Nothing is left in `out` when an error is returned.
    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()>;
    /// Whether making correlations waits for messages of the sender's.
    fn is_answered(&self) -> bool {
        true
    }
    /// Makes `n` correlations and hands them to `each` in order, in pieces; see [`CotSender::extend_each`].
    fn extend_each(&mut self, channel: &mut Channel, n: usize, each: &mut dyn FnMut(&[Block])) -> Result<()> {
        in_pieces(n, |piece| {
            self.extend(channel, piece)?;
            each(piece);
            Ok(())
        })
    }
}

impl<C: CotSender + ?Sized> CotSender for &mut C {
    fn delta(&self) -> Block {
        (**self).delta()
    }
    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        (**self).extend(channel, out)
    }
    fn extend_each(&mut self, channel: &mut Channel, n: usize, each: &mut dyn FnMut(&[Block])) -> Result<()> {
        (**self).extend_each(channel, n, each)
    }
}

impl<C: CotReceiver + ?Sized> CotReceiver for &mut C {
    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        (**self).extend(channel, out)
    }
    fn is_answered(&self) -> bool {
        (**self).is_answered()
    }
    fn extend_each(&mut self, channel: &mut Channel, n: usize, each: &mut dyn FnMut(&[Block])) -> Result<()> {
        (**self).extend_each(channel, n, each)
    }
}

fn in_pieces(n: usize, mut extend: impl FnMut(&mut [Block]) -> Result<()>) -> Result<()> {
    const PIECE: usize = 1 << 20;
    let mut rows = Zeroizing::new(vec![Block::ZERO; n.min(PIECE)]);
    for start in (0..n).step_by(PIECE) {
        extend(&mut rows[..PIECE.min(n - start)])?;
    }
    Ok(())
}

/// The sender of correlated OT whose receiver chooses its bits.
pub trait ChosenCotSender {
    /// The correlation Δ, fixed for the life of the sender; its lowest bit is 1.
    fn delta(&self) -> Block;
    /// Makes `out.len()` correlations. The lowest bit of every `out[i]` is 0. Nothing is left in `out` on an
    /// error.
    fn extend_chosen(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()>;
}

/// The receiver of correlated OT that chooses its bits.
pub trait ChosenCotReceiver {
    /// Makes `out.len()` correlations with the choice bits `choices`, which stand in the lowest bits of `out`
    /// again. `choices.len() == out.len()`. Nothing is left in `out` on an error.
    fn extend_chosen(&mut self, channel: &mut Channel, choices: &BitVec, out: &mut [Block]) -> Result<()>;
}

/// The sender of random OT.
pub trait RotSender {
    /// Makes `out.len()` random OTs. Nothing is left in `out` on an error.
    fn extend(&mut self, channel: &mut Channel, out: &mut [[Block; 2]]) -> Result<()>;
}

/// The receiver of random OT.
pub trait RotReceiver {
    /// Makes `out.len()` random OTs with random choices, which are returned; `out[i]` is the sender's message
    /// of choice `i`.
    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<BitVec>;
}

/// The sender of OT on chosen blocks.
pub trait OtSender {
    /// Transfers one of each pair.
    fn send(&mut self, channel: &mut Channel, messages: &[[Block; 2]]) -> Result<()>;
}

/// The receiver of OT on chosen blocks.
pub trait OtReceiver {
    /// Receives the message of each choice. `choices.len() == out.len()`.
    fn receive(&mut self, channel: &mut Channel, choices: &BitVec, out: &mut [Block]) -> Result<()>;
}

/// The sender of subfield VOLE over a field `F` with subfield `P`: Δ and v with w = v + u·Δ at the receiver.
pub trait VoleSender<F> {
    /// The correlation Δ.
    fn delta(&self) -> F;
    /// Makes `out.len()` correlations.
    fn extend(&mut self, channel: &mut Channel, out: &mut [F]) -> Result<()>;
}

/// The receiver of subfield VOLE.
pub trait VoleReceiver<P, F> {
    /// Makes `w.len()` correlations with random `u`. `u.len() == w.len()`.
    fn extend(&mut self, channel: &mut Channel, u: &mut [P], w: &mut [F]) -> Result<()>;
}
