//! Vector oblivious linear evaluation, w = v + u·Δ over a field, and random 1-out-of-p oblivious transfers, which
//! are made of it.

mod cost;

use super::{Course, Observer, Phase};
use crate::{Error, Result};
use tacit_crypto::field::{F61, F128, Field as Prime};
use tacit_crypto::{Block, Buffer, Prg};
use tacit_net::{Agreement, Channel};
use tacit_ot::one_of_many::{OneOfManyReceiver, OneOfManySender};
use tacit_ot::vole::subfield::{Subfield, SubfieldReceiver, SubfieldSender};
use tacit_ot::vole::{Gf128Receiver, Gf128Sender, SilentVoleReceiver, SilentVoleSender};
use tacit_ot::{BaseOt, Security, VoleReceiver, VoleSender};
pub use tacit_store::pool::Role;
use zeroize::{Zeroize, Zeroizing};

/// The field that u, and so everything, is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// GF(2^128): u, v, w and Δ.
    Gf128,
    /// u in GF(4), GF(16) or GF(256), of so many bits; v, w and Δ in GF(2^128).
    Sub(u8),
    /// The integers modulo 2^61 − 1.
    P61,
    /// The integers modulo 2^128 − 159.
    P128,
}

const ALL_FIELDS: [(&str, &str, Field); 6] = [
    ("gf128", "GF(2^128)", Field::Gf128),
    ("gf4", "GF(4)", Field::Sub(2)),
    ("gf16", "GF(16)", Field::Sub(4)),
    ("gf256", "GF(256)", Field::Sub(8)),
    ("p61", F61::NAME, Field::P61),
    ("p128", F128::NAME, Field::P128),
];

impl Field {
    /// The field that is called `gf128`, `gf4`, `gf16`, `gf256`, `p61` or `p128`.
    pub fn named(name: &str) -> Option<Self> {
        ALL_FIELDS.iter().find(|(known, ..)| *known == name).map(|(.., field)| *field)
    }

    /// The names that [`named`](Self::named) takes.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ALL_FIELDS.iter().map(|(name, ..)| *name)
    }

    /// The name that [`named`](Self::named) takes.
    pub fn name(self) -> &'static str {
        ALL_FIELDS.iter().find(|(.., field)| *field == self).map_or("", |(name, ..)| *name)
    }

    /// Its name in mathematics.
    pub fn title(self) -> &'static str {
        ALL_FIELDS.iter().find(|(.., field)| *field == self).map_or("", |(_, title, _)| *title)
    }

    /// Whether a page proves it against a peer that may do anything.
    fn is_proved(self) -> bool {
        !matches!(self, Field::P61 | Field::P128)
    }
}

/// u of some correlations. Elements of a subfield are bytes of their coordinates, numbers modulo a prime blocks.
pub enum Inputs<'a> {
    /// Of [`Field::Sub`], and choices of 1-out-of-p OT.
    Bytes(&'a [u8]),
    /// Of the other fields.
    Blocks(&'a [Block]),
}

/// Takes what a run makes, piece by piece and in order. All of it is secret.
pub trait Sink {
    /// Δ, once, and v of the next correlations; of 1-out-of-p OT the p messages of each.
    fn sent(&mut self, delta: Option<Block>, v: &[Block]) -> Result<()>;
    /// u and w of the next correlations; of 1-out-of-p OT the choices and their messages.
    fn received(&mut self, u: Inputs<'_>, w: &[Block]) -> Result<()>;
}

/// A sink that may be missing.
impl<S: Sink> Sink for Option<S> {
    fn sent(&mut self, delta: Option<Block>, v: &[Block]) -> Result<()> {
        self.as_mut().map_or(Ok(()), |sink| sink.sent(delta, v))
    }

    fn received(&mut self, u: Inputs<'_>, w: &[Block]) -> Result<()> {
        self.as_mut().map_or(Ok(()), |sink| sink.received(u, w))
    }
}

/// Correlations that both parties agreed on, and this side's part in them.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Which side this is: the sender has Δ and v, the receiver u and w.
    pub role: Role,
    /// What of.
    pub kind: Kind,
    /// How many.
    pub count: u64,
    /// Against which peer.
    pub security: Security,
}

/// What a run makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// VOLE over a field.
    Vole(Field),
    /// Random OTs of so many messages each: 2, 4, 16 or 256.
    OneOf(usize),
}

const PHASES: [Phase; 2] = [("setting up", "", 0.05), ("VOLE", "correlation", 0.95)];
/// Correlations of one piece.
const PIECE: usize = 7 << 17;

impl Job {
    /// An error if this is not made.
    pub fn check(&self) -> Result<()> {
        match self.kind {
            Kind::Vole(field) if self.security == Security::Malicious && !field.is_proved() => {
                let what = format!(
                    "over {} it is secure only against a peer that follows the protocol; set semi-honest security on both sides",
                    field.title()
                );
                Err(Error::Parameter { name: "security", what })
            }
            Kind::OneOf(p) if ![2, 4, 16, 256].contains(&p) => {
                Err(Error::Parameter { name: "of", what: "2, 4, 16 or 256 messages".into() })
            }
            _ => Ok(()),
        }
    }

    /// What both parties must agree on before they start.
    pub fn agreement(&self, base: &dyn BaseOt) -> Agreement {
        let (ours, theirs) = match self.role {
            Role::Sender => ("sender", "receiver"),
            Role::Receiver => ("receiver", "sender"),
        };
        let agreement = match self.kind {
            Kind::Vole(field) => Agreement::new("vole", ours, theirs).with("field", field.name()),
            Kind::OneOf(p) => Agreement::new("ot", ours, theirs).with("of", p),
        };
        agreement.with("base-ot", base.name()).with("count", self.count)
    }

    /// Bytes that a party holds at most, beside what its sink keeps; by the peaks of runs over every field.
    pub fn memory(&self) -> u64 {
        (40 << 20) + 176 * self.room() as u64
    }

    /// What the other side learned of us.
    pub fn has_learned(&self) -> String {
        self.learns("were")
    }

    /// What the other side will learn of us.
    pub fn will_learn(&self) -> String {
        self.learns("are")
    }

    fn learns(&self, verb: &str) -> String {
        let (items, what) = match (self.kind, self.role) {
            (Kind::Vole(_), Role::Sender) => ("correlations", "Δ and v but w = v + u·Δ"),
            (Kind::Vole(_), Role::Receiver) => ("correlations", "u and w"),
            (Kind::OneOf(_), Role::Sender) => ("OTs", "your messages but one of each"),
            (Kind::OneOf(_), Role::Receiver) => ("OTs", "your choices"),
        };
        super::learned(self.security, &format!("how many {items} {verb} made, and nothing of {what}"))
    }

    /// Runs this side over the first of `channels`, base OTs included, and hands what it makes to `sink`.
    pub fn run(
        &self,
        channels: &mut [Channel],
        base: &(dyn BaseOt + Send + Sync),
        sink: &mut dyn Sink,
        observer: &dyn Observer,
    ) -> Result<()> {
        self.check()?;
        let course = Course::begin(&PHASES, channels, self.bytes(base), observer);
        course.at(0, 0, 0);
        let making = Making { job: self, course: &course, base, sink, prg: Prg::from_os() };
        let channel = super::first(channels)?;
        match (self.kind, self.role) {
            (Kind::OneOf(p), Role::Sender) => making.send_of(p, channel),
            (Kind::OneOf(p), Role::Receiver) => making.receive_of(p, channel),
            (Kind::Vole(field), Role::Sender) => making.send(field, channel),
            (Kind::Vole(field), Role::Receiver) => making.receive(field, channel),
        }
    }
}

/// An element u as a run holds it.
trait Input: Copy + Zeroize {
    const NONE: Self;
    fn inputs(all: &[Self]) -> Inputs<'_>;
}

impl Input for u8 {
    const NONE: u8 = 0;

    fn inputs(all: &[u8]) -> Inputs<'_> {
        Inputs::Bytes(all)
    }
}

impl Input for Block {
    const NONE: Block = Block::ZERO;

    fn inputs(all: &[Block]) -> Inputs<'_> {
        Inputs::Blocks(all)
    }
}

/// A run, and where what it makes goes.
struct Making<'a> {
    job: &'a Job,
    course: &'a Course<'a>,
    base: &'a (dyn BaseOt + Send + Sync),
    sink: &'a mut dyn Sink,
    prg: Prg,
}

impl Making<'_> {
    fn send(mut self, field: Field, channel: &mut Channel) -> Result<()> {
        let (base, security) = (self.base, self.job.security);
        match field {
            Field::Gf128 => {
                let mut vole = Gf128Sender::setup(channel, base, &mut self.prg, security)?;
                self.send_each(vole.delta(), |v| vole.extend(channel, v))
            }
            Field::Sub(degree) => {
                let field = subfield(degree)?;
                let mut vole = SubfieldSender::setup(channel, base, &mut self.prg, field, security)?;
                self.send_each(vole.delta(), |v| vole.extend(channel, v))
            }
            Field::P61 => self.send_prime::<F61>(channel),
            Field::P128 => self.send_prime::<F128>(channel),
        }
    }

    fn send_prime<F: Prime>(mut self, channel: &mut Channel) -> Result<()> {
        let delta = F::from_block(self.prg.block());
        let (base, security) = (self.base, self.job.security);
        let mut vole = SilentVoleSender::<F>::setup(channel, base, &mut self.prg, delta, security)?;
        let mut elements = Zeroizing::new(vec![F::ZERO; self.job.room()]);
        self.send_each(delta.to_block(), |v| {
            let elements = &mut elements[..v.len()];
            vole.extend(channel, elements)?;
            to_blocks(elements, v);
            Ok(())
        })
    }

    fn send_of(mut self, p: usize, channel: &mut Channel) -> Result<()> {
        let mut ot = OneOfManySender::setup(channel, self.base, &mut self.prg, p, self.job.security)?;
        self.job.pieces(self.course, |size| {
            ot.send_each(channel, size, |messages| self.sink.sent(None, messages))
        })
    }

    fn receive(mut self, field: Field, channel: &mut Channel) -> Result<()> {
        let (base, security) = (self.base, self.job.security);
        match field {
            Field::Gf128 => {
                let mut vole = Gf128Receiver::setup(channel, base, &mut self.prg, security)?;
                self.receive_each(|u, w| vole.extend(channel, u, w))
            }
            Field::Sub(degree) => {
                let field = subfield(degree)?;
                let mut vole = SubfieldReceiver::setup(channel, base, &mut self.prg, field, security)?;
                self.receive_each(|u, w| vole.extend(channel, u, w))
            }
            Field::P61 => self.receive_prime::<F61>(channel),
            Field::P128 => self.receive_prime::<F128>(channel),
        }
    }

    fn receive_prime<F: Prime>(mut self, channel: &mut Channel) -> Result<()> {
        let (base, security) = (self.base, self.job.security);
        let mut vole = SilentVoleReceiver::<F>::setup(channel, base, &mut self.prg, security)?;
        let mut elements = [(); 2].map(|()| Zeroizing::new(vec![F::ZERO; self.job.room()]));
        self.receive_each(|u, w| {
            let [ours, theirs] = elements.each_mut().map(|elements| &mut elements[..w.len()]);
            vole.extend(channel, ours, theirs)?;
            to_blocks(ours, u);
            to_blocks(theirs, w);
            Ok(())
        })
    }

    fn receive_of(mut self, p: usize, channel: &mut Channel) -> Result<()> {
        let mut ot = OneOfManyReceiver::setup(channel, self.base, &mut self.prg, p, self.job.security)?;
        self.receive_each(|choices, messages| {
            choices.copy_from_slice(&ot.receive(channel, messages)?);
            Ok(())
        })
    }

    /// Hands on Δ, and v as `make` fills it piece by piece.
    fn send_each(
        self,
        delta: Block,
        mut make: impl FnMut(&mut [Block]) -> tacit_ot::Result<()>,
    ) -> Result<()> {
        // Even a run of none has a Δ.
        self.sink.sent(Some(delta), &[])?;
        let mut made = Buffer::zeros(self.job.room());
        self.job.pieces(self.course, |size| {
            make(&mut made[..size])?;
            self.sink.sent(None, &made[..size])
        })
    }

    /// Hands on what `make` fills piece by piece: u and w.
    fn receive_each<U: Input>(
        self,
        mut make: impl FnMut(&mut [U], &mut [Block]) -> tacit_ot::Result<()>,
    ) -> Result<()> {
        let room = self.job.room();
        let (mut u, mut w) = (Zeroizing::new(vec![U::NONE; room]), Buffer::zeros(room));
        self.job.pieces(self.course, |size| {
            let (u, w) = (&mut u[..size], &mut w[..size]);
            make(u, w)?;
            self.sink.received(U::inputs(u), w)
        })
    }
}

impl Job {
    /// Calls `make` with the size of each piece.
    fn pieces(&self, course: &Course<'_>, mut make: impl FnMut(usize) -> Result<()>) -> Result<()> {
        let mut done = 0;
        while done < self.count {
            let size = (self.count - done).min(PIECE as u64);
            make(size as usize)?;
            done += size;
            course.at(1, done, self.count);
        }
        Ok(())
    }

    /// Elements of the largest piece.
    fn room(&self) -> usize {
        self.count.min(PIECE as u64) as usize
    }
}

fn subfield(degree: u8) -> Result<Subfield> {
    Subfield::new(degree.into()).ok_or_else(|| Error::Usage("u has 2, 4 or 8 bits".into()))
}

fn to_blocks<F: Prime>(elements: &[F], out: &mut [Block]) {
    out.iter_mut().zip(elements).for_each(|(block, element)| *block = element.to_block());
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_crypto::gf128;
    use tacit_net::memory;
    use tacit_ot::base;

    #[derive(Default)]
    struct Kept {
        delta: Option<Block>,
        v: Vec<Block>,
        bytes: Vec<u8>,
        u: Vec<Block>,
        w: Vec<Block>,
    }

    impl Sink for Kept {
        fn sent(&mut self, delta: Option<Block>, v: &[Block]) -> Result<()> {
            self.delta = self.delta.or(delta);
            self.v.extend_from_slice(v);
            Ok(())
        }

        fn received(&mut self, u: Inputs<'_>, w: &[Block]) -> Result<()> {
            match u {
                Inputs::Bytes(bytes) => self.bytes.extend_from_slice(bytes),
                Inputs::Blocks(blocks) => self.u.extend_from_slice(blocks),
            }
            self.w.extend_from_slice(w);
            Ok(())
        }
    }

    fn ran(kind: Kind, count: u64, security: Security) -> (Kept, Kept) {
        let side = |role| {
            move |channel: &mut Channel| {
                let mut kept = Kept::default();
                let job = Job { role, kind, count, security };
                job.run(std::slice::from_mut(channel), &*base::default(), &mut kept, &()).unwrap();
                kept
            }
        };
        memory::run(side(Role::Sender), side(Role::Receiver))
    }

    fn holds<F: Prime>(a: &Kept, b: &Kept) -> bool {
        let delta = F::from_block(a.delta.unwrap());
        a.v.iter()
            .zip(&b.u)
            .zip(&b.w)
            .all(|((v, u), w)| F::from_block(*w) == F::from_block(*v) + F::from_block(*u) * delta)
    }

    #[test]
    fn correlations_over_every_field() {
        for name in Field::names() {
            let field = Field::named(name).unwrap();
            let levels: &[Security] = if field.is_proved() {
                &[Security::Malicious, Security::SemiHonest]
            } else {
                &[Security::SemiHonest]
            };
            for security in levels {
                let (a, b) = ran(Kind::Vole(field), 3001, *security);
                assert_eq!((a.v.len(), b.w.len()), (3001, 3001), "{name}");
                let delta = a.delta.unwrap();
                let fits = match field {
                    Field::Gf128 => {
                        let each = a.v.iter().zip(&b.u).zip(&b.w);
                        each.fold(true, |all, ((v, u), w)| all & (*w == *v ^ gf128::mul(*u, delta)))
                    }
                    Field::Sub(degree) => {
                        let sub = Subfield::new(degree.into()).unwrap();
                        assert!(b.bytes.iter().all(|u| u32::from(*u) < 1 << degree));
                        let each = a.v.iter().zip(&b.bytes).zip(&b.w);
                        each.fold(true, |all, ((v, u), w)| {
                            all & (*w == *v ^ gf128::mul(sub.embed(*u), delta))
                        })
                    }
                    Field::P61 => holds::<F61>(&a, &b),
                    Field::P128 => holds::<F128>(&a, &b),
                };
                assert!(fits, "{name}");
            }
        }
    }

    #[test]
    fn one_of_several_messages_is_received() {
        for p in [2, 4, 16, 256] {
            let (a, b) = ran(Kind::OneOf(p), 1000, Security::Malicious);
            assert_eq!((a.v.len(), b.w.len(), a.delta), (1000 * p, 1000, None));
            for ((messages, choice), message) in a.v.chunks(p).zip(&b.bytes).zip(&b.w) {
                assert_eq!(messages[usize::from(*choice)], *message);
                assert_eq!(messages.iter().filter(|other| *other == message).count(), 1, "{p}");
            }
        }
    }

    #[test]
    fn what_is_not_proved_is_refused() {
        let job = |kind, security| Job { role: Role::Sender, kind, count: 1, security };
        for field in [Field::P61, Field::P128] {
            assert!(job(Kind::Vole(field), Security::Malicious).check().is_err());
            assert!(job(Kind::Vole(field), Security::SemiHonest).check().is_ok());
        }
        for p in [0, 1, 3, 8, 512] {
            assert!(job(Kind::OneOf(p), Security::Malicious).check().is_err());
        }
        assert!(Field::named("gf2").is_none());
    }
}
