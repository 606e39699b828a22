//! Oblivious linear evaluation on random inputs: shares of products, from random OT by Gilboa's method (CRYPTO
//! '99, section 4.1).
//!
//! The sender gets random x and s, the receiver random y and t with s + t = x·y, over any [`Ring`]. Two of them,
//! one in each direction, make a Beaver triple.
//!
//! - **Security**: semi-honest; a malicious sender could put another x into each bit. Over [`Bit`] nothing is
//!   sent beyond the OTs.
//! - **Messages**: one random OT a bit of y; then the sender's corrections, [`Ring::CORRECTION_BYTES`] bytes a
//!   product.
//!
//! With messages m_0 and m_1 of the OT of bit i, the sender's part is −m_0 and the receiver's m_u + u·d_i, where
//! d_i = m_0 − m_1 + x: together u·x, which counts 2^i times (over GF(2^128) X^i times). Deviations from the
//! paper, which has chosen inputs:
//!
//! - y is made of the OTs' own random choices, so the receiver sends nothing.
//! - x is m_1 − m_0 of bit 0, which takes no correction.
//! - Of a correction modulo 2^64 only the 64 − i bits that count 2^i times are sent.

use crate::{Error, Result, RotReceiver, RotSender};
use core::ops::{Add, Mul, Sub};
use tacit_crypto::field::{F61, F128, Field};
use tacit_crypto::{BitVec, Block, Buffer, gf128};
use tacit_net::Channel;
use zeroize::{DefaultIsZeroes, Zeroize, Zeroizing};

const NAME: &str = "oblivious linear evaluation";

/// A ring whose products are shared.
pub trait Ring:
    Copy
    + Default
    + PartialEq
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + DefaultIsZeroes
    + Send
    + Sync
    + 'static
{
    /// Random OTs a product: bits of the receiver's factor, at most 128.
    const BITS: usize;
    /// Bytes of an element where it is written out.
    const BYTES: usize;
    /// Bytes of a product's corrections.
    const CORRECTION_BYTES: usize;

    /// The element of an OT's message, uniform or nearly so.
    fn of_message(message: Block) -> Self;
    /// One where the mask is all ones, zero where it is zero.
    fn one(mask: Block) -> Self;
    /// `self` where the mask is all ones, zero where it is zero.
    fn where_set(self, mask: Block) -> Self;
    /// The element that bit i + 1 of a factor counts where bit i counts `self`.
    fn twice(self) -> Self;
    /// Writes the element out, as the lowest byte first.
    fn write(self, out: &mut [u8]);
    /// Writes the corrections of all bits but the first, [`CORRECTION_BYTES`](Self::CORRECTION_BYTES) bytes.
    fn pack(corrections: &[Self], out: &mut [u8]);
    /// The converse of [`pack`](Self::pack); `None` for bytes that are not corrections.
    fn unpack(bytes: &[u8], corrections: &mut [Self]) -> Option<()>;
}

/// An element of GF(2): 0 or 1.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Bit(pub u8);

/// An integer modulo 2^64.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Word(pub u64);

/// An element of GF(2^128).
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Gf128(pub Block);

macro_rules! operators {
    ($ring:ident, $add:expr, $sub:expr, $mul:expr) => {
        impl Add for $ring {
            type Output = Self;
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                $ring($add(self.0, other.0))
            }
        }

        impl Sub for $ring {
            type Output = Self;
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                $ring($sub(self.0, other.0))
            }
        }

        impl Mul for $ring {
            type Output = Self;
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                $ring($mul(self.0, other.0))
            }
        }

        impl DefaultIsZeroes for $ring {}

        impl core::fmt::Debug for $ring {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(concat!(stringify!($ring), "([secret])"))
            }
        }
    };
}

operators!(Bit, |a: u8, b: u8| a ^ b, |a: u8, b: u8| a ^ b, |a: u8, b: u8| a & b);
operators!(Word, u64::wrapping_add, u64::wrapping_sub, u64::wrapping_mul);
operators!(Gf128, |a: Block, b: Block| a ^ b, |a: Block, b: Block| a ^ b, gf128::mul);

impl Ring for Bit {
    const BITS: usize = 1;
    const BYTES: usize = 1;
    const CORRECTION_BYTES: usize = 0;

    #[inline(always)]
    fn of_message(message: Block) -> Self {
        Bit(message.low() as u8 & 1)
    }

    #[inline(always)]
    fn one(mask: Block) -> Self {
        Bit(mask.low() as u8 & 1)
    }

    #[inline(always)]
    fn where_set(self, mask: Block) -> Self {
        Bit(self.0 & mask.low() as u8)
    }

    #[inline(always)]
    fn twice(self) -> Self {
        Bit(0)
    }

    fn write(self, out: &mut [u8]) {
        out.copy_from_slice(&[self.0]);
    }

    fn pack(_: &[Self], _: &mut [u8]) {}

    fn unpack(_: &[u8], _: &mut [Self]) -> Option<()> {
        Some(())
    }
}

/// Words of corrections that hold those of two bits each.
const PAIRS: usize = Word::BITS / 2 - 1;

impl Ring for Word {
    const BITS: usize = 64;
    const BYTES: usize = 8;
    const CORRECTION_BYTES: usize = 8 * PAIRS + 4;

    #[inline(always)]
    fn of_message(message: Block) -> Self {
        Word(message.low())
    }

    #[inline(always)]
    fn one(mask: Block) -> Self {
        Word(mask.low() & 1)
    }

    #[inline(always)]
    fn where_set(self, mask: Block) -> Self {
        Word(self.0 & mask.low())
    }

    #[inline(always)]
    fn twice(self) -> Self {
        Word(self.0 << 1)
    }

    fn write(self, out: &mut [u8]) {
        out.copy_from_slice(&self.0.to_le_bytes());
    }

    // Of bit i count 64 − i bits and of bit 64 − i the other i, so both have room in a word; of bit 32 half a one.
    fn pack(corrections: &[Self], out: &mut [u8]) {
        let (pairs, half) = out.split_at_mut(8 * PAIRS);
        for (j, out) in pairs.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let (few, many) = (corrections[Self::BITS - 2 - j].0, corrections[j].0);
            *out = (many & (!0 >> (j + 1)) | few << (Self::BITS - 1 - j)).to_le_bytes();
        }
        half.copy_from_slice(&(corrections[PAIRS].0 as u32).to_le_bytes());
    }

    fn unpack(bytes: &[u8], corrections: &mut [Self]) -> Option<()> {
        let (pairs, half) = bytes.split_at_checked(8 * PAIRS)?;
        for (j, bytes) in pairs.as_chunks::<8>().0.iter().enumerate() {
            let word = u64::from_le_bytes(*bytes);
            corrections[j] = Word(word);
            corrections[Self::BITS - 2 - j] = Word(word >> (Self::BITS - 1 - j));
        }
        corrections[PAIRS] = Word(u32::from_le_bytes(half.try_into().ok()?).into());
        Some(())
    }
}

impl Ring for Gf128 {
    const BITS: usize = 128;
    const BYTES: usize = 16;
    const CORRECTION_BYTES: usize = 16 * (Self::BITS - 1);

    #[inline(always)]
    fn of_message(message: Block) -> Self {
        Gf128(message)
    }

    #[inline(always)]
    fn one(mask: Block) -> Self {
        Gf128(mask & Block::ONE)
    }

    #[inline(always)]
    fn where_set(self, mask: Block) -> Self {
        Gf128(self.0 & mask)
    }

    /// Times X modulo X^128 + X^7 + X^2 + X + 1.
    #[inline(always)]
    fn twice(self) -> Self {
        Gf128(Block::new(self.0.to_u128() << 1) ^ (Block::new(0x87) & Block::mask(self.0.bit(127))))
    }

    fn write(self, out: &mut [u8]) {
        out.copy_from_slice(&self.0.to_bytes());
    }

    fn pack(corrections: &[Self], out: &mut [u8]) {
        corrections.iter().zip(out.chunks_exact_mut(Self::BYTES)).for_each(|(c, out)| c.write(out));
    }

    fn unpack(bytes: &[u8], corrections: &mut [Self]) -> Option<()> {
        for (c, bytes) in corrections.iter_mut().zip(bytes.as_chunks().0) {
            *c = Gf128(Block::from_bytes(*bytes));
        }
        Some(())
    }
}

macro_rules! prime {
    ($field:ident, $bytes:literal) => {
        impl Ring for $field {
            const BITS: usize = <$field as Field>::BITS;
            const BYTES: usize = $bytes;
            const CORRECTION_BYTES: usize = $bytes * (<$field as Field>::BITS - 1);

            #[inline(always)]
            fn of_message(message: Block) -> Self {
                $field::from_block(message)
            }

            #[inline(always)]
            fn one(mask: Block) -> Self {
                Self::ONE.masked(mask)
            }

            #[inline(always)]
            fn where_set(self, mask: Block) -> Self {
                self.masked(mask)
            }

            #[inline(always)]
            fn twice(self) -> Self {
                self + self
            }

            fn write(self, out: &mut [u8]) {
                out.copy_from_slice(&self.to_block().to_bytes()[..$bytes]);
            }

            fn pack(corrections: &[Self], out: &mut [u8]) {
                corrections.iter().zip(out.chunks_exact_mut($bytes)).for_each(|(c, out)| c.write(out));
            }

            fn unpack(bytes: &[u8], corrections: &mut [Self]) -> Option<()> {
                for (c, bytes) in corrections.iter_mut().zip(bytes.chunks_exact($bytes)) {
                    let mut block = [0; 16];
                    block[..$bytes].copy_from_slice(bytes);
                    *c = $field::from_canonical(Block::from_bytes(block))?;
                }
                Some(())
            }
        }
    };
}

prime!(F61, 8);
prime!(F128, 16);

/// At least `blocks` of `room`, whatever they hold.
fn of_room(room: &mut Buffer, blocks: usize) -> &mut [Block] {
    if room.len() < blocks {
        *room = Buffer::zeros(0);
        *room = Buffer::zeros(blocks);
    }
    &mut room[..blocks]
}

/// How many products there are OTs for; they serve once.
fn taken<R: Ring>(ready: &mut usize, factors: &[R], shares: &[R]) -> Result<()> {
    let n = std::mem::take(ready);
    match factors.len() == n && shares.len() == n {
        true => Ok(()),
        false => {
            Err(Error::Usage { protocol: NAME, what: "as many factors and shares as there are OTs for" })
        }
    }
}

/// The party that sends in the OTs.
pub struct OleSender<S> {
    rot: S,
    room: Buffer,
    ready: usize,
}

impl<S: RotSender> OleSender<S> {
    /// Over random OTs that this party sends.
    pub fn new(rot: S) -> Self {
        OleSender { rot, room: Buffer::zeros(0), ready: 0 }
    }

    /// Fills random factors `x` and shares `s`, one of each a product. Nothing is left of either on an error.
    pub fn extend<R: Ring>(&mut self, channel: &mut Channel, x: &mut [R], s: &mut [R]) -> Result<()> {
        self.begin::<R>(channel, x.len())?;
        self.finish(channel, x, s)
    }

    /// The OTs of `n` products: the first half of [`extend`](Self::extend). Of two directions both begin, in turn;
    /// then both finish, and what they send passes at the same time.
    pub fn begin<R: Ring>(&mut self, channel: &mut Channel, n: usize) -> Result<()> {
        self.ready = 0;
        self.rot.extend(channel, of_room(&mut self.room, 2 * R::BITS * n).as_chunks_mut().0)?;
        self.ready = n;
        Ok(())
    }

    /// The second half: sends the corrections, and waits for nothing.
    ///
    /// `Error::Usage` unless there are as many factors and shares as the products that were begun.
    pub fn finish<R: Ring>(&mut self, channel: &mut Channel, x: &mut [R], s: &mut [R]) -> Result<()> {
        let sent = self.send(channel, x, s);
        sent.inspect_err(|_| [x, s].into_iter().for_each(Zeroize::zeroize))
    }

    fn send<R: Ring>(&mut self, channel: &mut Channel, x: &mut [R], s: &mut [R]) -> Result<()> {
        taken(&mut self.ready, x, s)?;
        let pairs = self.room.as_chunks::<2>().0;
        let mut corrections = Zeroizing::new([R::default(); 128]);
        let corrections = &mut corrections[..R::BITS];
        let mut packed = vec![0; R::CORRECTION_BYTES];
        for ((x, s), pairs) in x.iter_mut().zip(s).zip(pairs.chunks_exact(R::BITS)) {
            *x = R::of_message(pairs[0][1]) - R::of_message(pairs[0][0]);
            let mut sum = R::default();
            for (correction, pair) in corrections.iter_mut().zip(pairs).rev() {
                let [zero, one] = pair.map(R::of_message);
                *correction = zero - one + *x;
                sum = sum.twice() - zero;
            }
            *s = sum;
            R::pack(&corrections[1..], &mut packed);
            channel.send(&packed)?;
        }
        channel.flush()?;
        Ok(())
    }
}

/// The party that receives in the OTs.
pub struct OleReceiver<T> {
    rot: T,
    room: Buffer,
    choices: BitVec,
    ready: usize,
}

impl<T: RotReceiver> OleReceiver<T> {
    /// Over random OTs that this party receives.
    pub fn new(rot: T) -> Self {
        OleReceiver { rot, room: Buffer::zeros(0), choices: BitVec::default(), ready: 0 }
    }

    /// Fills random factors `y` and shares `t`, one of each a product. Nothing is left of either on an error.
    ///
    /// `Error::Malformed` when the peer sends what is not an element.
    pub fn extend<R: Ring>(&mut self, channel: &mut Channel, y: &mut [R], t: &mut [R]) -> Result<()> {
        self.begin::<R>(channel, y.len())?;
        self.finish(channel, y, t)
    }

    /// The OTs of `n` products; see [`OleSender::begin`].
    pub fn begin<R: Ring>(&mut self, channel: &mut Channel, n: usize) -> Result<()> {
        self.ready = 0;
        self.choices = self.rot.extend(channel, of_room(&mut self.room, R::BITS * n))?;
        self.ready = n;
        Ok(())
    }

    /// The second half: receives the corrections. Errors as of [`extend`](Self::extend) and
    /// [`OleSender::finish`].
    pub fn finish<R: Ring>(&mut self, channel: &mut Channel, y: &mut [R], t: &mut [R]) -> Result<()> {
        let received = self.receive(channel, y, t);
        received.inspect_err(|_| [y, t].into_iter().for_each(Zeroize::zeroize))
    }

    fn receive<R: Ring>(&mut self, channel: &mut Channel, y: &mut [R], t: &mut [R]) -> Result<()> {
        taken(&mut self.ready, y, t)?;
        let (messages, choices) = (&self.room, &self.choices);
        let mut corrections = [R::default(); 128];
        let corrections = &mut corrections[..R::BITS];
        let mut packed = vec![0; R::CORRECTION_BYTES];
        for (j, (y, t)) in y.iter_mut().zip(t).enumerate() {
            channel.recv(&mut packed)?;
            R::unpack(&packed, &mut corrections[1..])
                .ok_or(Error::Malformed { protocol: NAME, what: "a number beyond the field" })?;
            let (mut factor, mut sum) = (R::default(), R::default());
            for i in (0..R::BITS).rev() {
                let at = j * R::BITS + i;
                let chosen = Block::mask(choices.get(at));
                factor = factor.twice() + R::one(chosen);
                sum = sum.twice() + R::of_message(messages[at]) + corrections[i].where_set(chosen);
            }
            (*y, *t) = (factor, sum);
        }
        Ok(())
    }
}
