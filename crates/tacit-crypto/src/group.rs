//! The Ristretto group (RFC 9496), in batches.
//!
//! A prime-order group in which no encoding is of small order and every point has exactly one encoding.
//! Protocols work on batches ([`Points`], [`Scalars`]), so that a vector kernel can take eight points at a
//! time. Everything but [`Points::decode`]'s verdict is constant-time, and batches are zeroised on drop.
//!
//! ```
//! use tacit_crypto::{Prg, group::{Points, Scalars, Table}};
//! let mut prg = Prg::from_os();
//! let (a, b) = (Scalars::random(1, &mut prg), Scalars::random(3, &mut prg));
//! let big_a = Points::mul_base(&a);
//! let shared = Points::mul_base(&b).mul_same(&a);
//! assert_eq!(shared.encode(), Table::new(&big_a, b.len()).mul(&b).encode());
//! ```

#[cfg(target_arch = "x86_64")]
use crate::simd::ristretto_ifma;
use crate::{BitVec, Prg, simd::Backend};
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoBasepointTable, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{Identity, VartimeMultiscalarMul};
use std::borrow::Cow;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Bytes of an encoded point.
pub const POINT_BYTES: usize = 32;
/// Uniform bytes that one hashed point takes.
pub const UNIFORM_BYTES: usize = 64;

/// An encoded point, canonical if it came from [`Points::encode`].
pub type Encoding = [u8; POINT_BYTES];

/// Why bytes are not a batch of points.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The length is not a multiple of [`POINT_BYTES`].
    #[error("{0} bytes are not a whole number of group elements")]
    Length(usize),
    /// An encoding is not canonical or names no group element.
    #[error("element {0} of a batch is not a canonical Ristretto encoding")]
    Invalid(usize),
}

/// A batch of secret scalars modulo the group's order.
#[derive(Clone, Default, Zeroize, ZeroizeOnDrop)]
pub struct Scalars(Vec<Scalar>);

impl core::fmt::Debug for Scalars {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Scalars({}, [secret])", self.0.len())
    }
}

impl Scalars {
    /// `n` uniform scalars, each reduced from 512 bits of `prg`.
    pub fn random(n: usize, prg: &mut Prg) -> Self {
        let mut wide = Zeroizing::new([0u8; 64]);
        let mut scalars = Vec::with_capacity(n);
        for _ in 0..n {
            prg.fill_bytes(&mut wide[..]);
            scalars.push(Scalar::from_bytes_mod_order_wide(&wide));
        }
        Scalars(scalars)
    }

    /// From little-endian numbers, reduced modulo the group's order.
    pub fn from_bytes(bytes: &[[u8; 32]]) -> Self {
        Scalars(bytes.iter().map(|b| Scalar::from_bytes_mod_order(*b)).collect())
    }

    /// From 512-bit little-endian numbers, such as a hash's output, reduced modulo the group's order.
    pub fn from_wide(bytes: &[[u8; UNIFORM_BYTES]]) -> Self {
        Scalars(bytes.iter().map(Scalar::from_bytes_mod_order_wide).collect())
    }

    /// From canonical encodings: little-endian numbers below the group's order; `None` if one is not.
    pub fn from_canonical(bytes: &[[u8; 32]]) -> Option<Self> {
        let scalars = bytes.iter().map(|b| Option::from(Scalar::from_canonical_bytes(*b)));
        scalars.collect::<Option<Vec<Scalar>>>().map(Scalars)
    }

    /// Inverses modulo the group's order, in constant time. Panics when a scalar is zero.
    pub fn invert(&self) -> Self {
        assert!(!self.any_zero(), "zero has no inverse");
        // One inversion for all: products up to each scalar, and then back. dalek's own leaves the products
        // in memory.
        let mut product = Zeroizing::new(Scalar::ONE);
        let mut inverses = Scalars(Vec::with_capacity(self.len()));
        for scalar in &self.0 {
            inverses.0.push(*product);
            *product *= scalar;
        }
        *product = product.invert();
        for (inverse, scalar) in inverses.0.iter_mut().zip(&self.0).rev() {
            *inverse *= *product;
            *product *= scalar;
        }
        inverses
    }

    /// Whether a scalar is zero; which one it is takes no part in the time.
    pub fn any_zero(&self) -> bool {
        self.0.iter().fold(Choice::from(0), |zero, s| zero | s.ct_eq(&Scalar::ZERO)).into()
    }

    /// Scalar by scalar sums. Panics when the lengths differ.
    pub fn add(&self, other: &Self) -> Self {
        assert_eq!(self.len(), other.len(), "batches of different lengths");
        Scalars(self.0.iter().zip(&other.0).map(|(a, b)| a + b).collect())
    }

    /// Scalar by scalar differences. Panics when the lengths differ.
    pub fn sub(&self, other: &Self) -> Self {
        assert_eq!(self.len(), other.len(), "batches of different lengths");
        Scalars(self.0.iter().zip(&other.0).map(|(a, b)| a - b).collect())
    }

    /// Scalar by scalar products. Panics when the lengths differ.
    pub fn mul(&self, other: &Self) -> Self {
        assert_eq!(self.len(), other.len(), "batches of different lengths");
        Scalars(self.0.iter().zip(&other.0).map(|(a, b)| a * b).collect())
    }

    /// Number of scalars.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The scalars' canonical bytes, little-endian.
    pub fn to_bytes(&self) -> Zeroizing<Vec<[u8; 32]>> {
        Zeroizing::new(self.0.iter().map(Scalar::to_bytes).collect())
    }
}

/// A batch of group elements in the form of the kernel that made it.
#[derive(Clone)]
pub struct Points(Repr);

#[derive(Clone)]
enum Repr {
    Portable(PortableBatch),
    #[cfg(target_arch = "x86_64")]
    Ifma(ristretto_ifma::Batch),
}

#[derive(Clone)]
struct PortableBatch(Vec<RistrettoPoint>);

impl Drop for PortableBatch {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl core::fmt::Debug for Points {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Points({}, [secret])", self.len())
    }
}

/// `$ifma` with `$token` bound where the backend has the vector kernel, else `$portable`.
macro_rules! on {
    ($backend:expr, $token:ident => $ifma:expr, $portable:expr) => {{
        #[cfg(target_arch = "x86_64")]
        if let Some($token) = ristretto_ifma::Ifma::detect($backend) {
            return $ifma;
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = $backend;
        $portable
    }};
}

fn portable(points: impl IntoIterator<Item = RistrettoPoint>) -> Points {
    Points(Repr::Portable(PortableBatch(points.into_iter().collect())))
}

impl Points {
    /// Decodes `bytes.len() / 32` points; refuses every encoding that is not canonical.
    ///
    /// The identity (32 zero bytes) is a valid encoding: a protocol that must not see it asks
    /// [`is_identity_encoding`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::decode_on(Backend::active(), bytes)
    }

    /// [`decode`](Self::decode) by the kernel of `backend`, which all that is computed from the points then
    /// takes.
    pub fn decode_on(backend: Backend, bytes: &[u8]) -> Result<Self, DecodeError> {
        let (encodings, rest) = bytes.as_chunks::<POINT_BYTES>();
        if !rest.is_empty() {
            return Err(DecodeError::Length(bytes.len()));
        }
        on!(backend, ifma => ifma.decode(encodings).map(ifma_points).map_err(DecodeError::Invalid), {
            let mut points = Vec::with_capacity(encodings.len());
            for (i, encoding) in encodings.iter().enumerate() {
                points.push(CompressedRistretto(*encoding).decompress().ok_or(DecodeError::Invalid(i))?);
            }
            Ok(portable(points))
        })
    }

    /// The points' encodings.
    pub fn encode(&self) -> Vec<Encoding> {
        match &self.0 {
            Repr::Portable(points) => points.0.iter().map(|p| p.compress().to_bytes()).collect(),
            #[cfg(target_arch = "x86_64")]
            Repr::Ifma(batch) => batch.encode(),
        }
    }

    /// Maps each 64 uniform bytes to a uniform point (RFC 9496, section 4.3.4), with no known discrete
    /// logarithm.
    pub fn from_uniform(bytes: &[[u8; UNIFORM_BYTES]]) -> Self {
        Self::from_uniform_on(Backend::active(), bytes)
    }

    /// [`from_uniform`](Self::from_uniform) by the kernel of `backend`.
    pub fn from_uniform_on(backend: Backend, bytes: &[[u8; UNIFORM_BYTES]]) -> Self {
        on!(backend, ifma => ifma_points(ifma.map_uniform(bytes)), {
            portable(bytes.iter().map(RistrettoPoint::from_uniform_bytes))
        })
    }

    /// `n` copies of the identity.
    pub fn identity(n: usize) -> Self {
        Self::identity_on(Backend::active(), n)
    }

    /// [`identity`](Self::identity) by the kernel of `backend`.
    pub fn identity_on(backend: Backend, n: usize) -> Self {
        on!(backend, ifma => ifma_points(ifma.identity(n)), portable(vec![RistrettoPoint::identity(); n]))
    }

    /// Each scalar times the group's generator.
    pub fn mul_base(scalars: &Scalars) -> Self {
        Self::mul_base_on(Backend::active(), scalars)
    }

    /// [`mul_base`](Self::mul_base) by the kernel of `backend`.
    pub fn mul_base_on(backend: Backend, scalars: &Scalars) -> Self {
        on!(backend, ifma => ifma_points(ifma.mul_base(&scalars.to_bytes())), {
            portable(scalars.0.iter().map(RistrettoPoint::mul_base))
        })
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Portable(points) => points.0.len(),
            #[cfg(target_arch = "x86_64")]
            Repr::Ifma(batch) => batch.len(),
        }
    }

    /// Whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Point `i` times scalar `i`. Panics when the lengths differ.
    pub fn mul(&self, scalars: &Scalars) -> Self {
        assert_eq!(self.len(), scalars.len(), "a batch of points times a batch of scalars of another length");
        match &self.0 {
            Repr::Portable(points) => portable(points.0.iter().zip(&scalars.0).map(|(p, s)| p * s)),
            #[cfg(target_arch = "x86_64")]
            Repr::Ifma(batch) => ifma_points(batch.mul(&scalars.to_bytes())),
        }
    }

    /// Every point times the one scalar. Panics unless `scalar` holds exactly one.
    pub fn mul_same(&self, scalar: &Scalars) -> Self {
        assert_eq!(scalar.len(), 1, "exactly one scalar is expected here");
        match &self.0 {
            Repr::Portable(points) => portable(points.0.iter().map(|p| p * scalar.0[0])),
            #[cfg(target_arch = "x86_64")]
            Repr::Ifma(batch) => ifma_points(batch.mul_same(&scalar.to_bytes()[0])),
        }
    }

    /// The sum of point `i` times scalar `i`, all of them public: not in constant time, and not erased.
    /// Panics when the lengths differ.
    pub fn combine_vartime(&self, scalars: &Scalars) -> Self {
        assert_eq!(self.len(), scalars.len(), "a batch of points times a batch of scalars of another length");
        match &self.0 {
            Repr::Portable(points) => {
                portable([RistrettoPoint::vartime_multiscalar_mul(&scalars.0, &points.0)])
            }
            #[cfg(target_arch = "x86_64")]
            Repr::Ifma(batch) => ifma_points(batch.combine(&scalars.to_bytes())),
        }
    }

    /// Point by point sums. Panics when the lengths differ.
    pub fn add(&self, other: &Self) -> Self {
        let other = self.same_kernel(other);
        match (&self.0, &other.0) {
            #[cfg(target_arch = "x86_64")]
            (Repr::Ifma(a), Repr::Ifma(b)) => ifma_points(a.add(b)),
            (a, b) => portable(a.portable().iter().zip(b.portable()).map(|(a, b)| a + b)),
        }
    }

    /// Point by point differences. Panics when the lengths differ.
    pub fn sub(&self, other: &Self) -> Self {
        let other = self.same_kernel(other);
        match (&self.0, &other.0) {
            #[cfg(target_arch = "x86_64")]
            (Repr::Ifma(a), Repr::Ifma(b)) => ifma_points(a.sub(b)),
            (a, b) => portable(a.portable().iter().zip(b.portable()).map(|(a, b)| a - b)),
        }
    }

    /// The inverse of every point.
    pub fn neg(&self) -> Self {
        match &self.0 {
            Repr::Portable(points) => portable(points.0.iter().map(|p| -p)),
            #[cfg(target_arch = "x86_64")]
            Repr::Ifma(batch) => ifma_points(batch.neg()),
        }
    }

    /// `n` copies of the one point. Panics unless the batch holds exactly one.
    pub fn repeat(&self, n: usize) -> Self {
        assert_eq!(self.len(), 1, "only one point can be repeated");
        match &self.0 {
            Repr::Portable(points) => portable(vec![points.0[0]; n]),
            #[cfg(target_arch = "x86_64")]
            Repr::Ifma(batch) => ifma_points(batch.repeat(n)),
        }
    }

    /// Point `i` of `a` where bit `i` is 0, of `b` where it is 1, in constant time. Panics when the lengths
    /// differ.
    pub fn select(a: &Self, b: &Self, bits: &BitVec) -> Self {
        assert_eq!(a.len(), bits.len(), "selection by another number of bits");
        let b = a.same_kernel(b);
        match (&a.0, &b.0) {
            #[cfg(target_arch = "x86_64")]
            (Repr::Ifma(a), Repr::Ifma(b)) => ifma_points(a.select(b, bits.as_bytes())),
            (a, b) => {
                let pairs = a.portable().iter().zip(b.portable()).zip(bits.iter());
                portable(
                    pairs.map(|((a, b), bit)| {
                        RistrettoPoint::conditional_select(a, b, Choice::from(bit as u8))
                    }),
                )
            }
        }
    }

    /// `other` by the kernel of `self`. Panics when the lengths differ.
    fn same_kernel<'a>(&self, other: &'a Self) -> Cow<'a, Self> {
        assert_eq!(self.len(), other.len(), "batches of different lengths");
        #[cfg(target_arch = "x86_64")]
        {
            let moved = match (&self.0, &other.0) {
                (Repr::Ifma(_), Repr::Portable(_)) => Backend::best(),
                (Repr::Portable(_), Repr::Ifma(_)) => Backend::PORTABLE,
                _ => return Cow::Borrowed(other),
            };
            let bytes = Zeroizing::new(other.encode());
            Cow::Owned(Self::decode_on(moved, bytes.as_flattened()).expect("a point's own encoding is valid"))
        }
        #[cfg(not(target_arch = "x86_64"))]
        Cow::Borrowed(other)
    }
}

impl Repr {
    /// The portable points of a batch already known to be portable.
    fn portable(&self) -> &[RistrettoPoint] {
        match self {
            Repr::Portable(points) => &points.0,
            #[cfg(target_arch = "x86_64")]
            Repr::Ifma(_) => unreachable!("both batches were brought to one kernel"),
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn ifma_points(batch: ristretto_ifma::Batch) -> Points {
    Points(Repr::Ifma(batch))
}

/// Multiplications from which a table pays: making it takes 1.0 ms and saves 15 µs each (EPYC Zen 4, see
/// benches/group.rs).
const PORTABLE_TABLE_USES: usize = 72;
/// The same for the vector kernel, where a table takes 63 µs and a chunk of eight saves 44.
#[cfg(target_arch = "x86_64")]
const IFMA_TABLE_USES: usize = 12;

/// Multiples of one point, made ahead, for many multiplications of it.
pub struct Table(TableRepr);

enum TableRepr {
    /// Too few multiplications to pay for a table.
    Plain(Points),
    Portable(Box<RistrettoBasepointTable>),
    #[cfg(target_arch = "x86_64")]
    Ifma(ristretto_ifma::Table),
}

impl core::fmt::Debug for Table {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Table([secret])")
    }
}

impl Table {
    /// The table of the one *public* point (it is not zeroised) for about `uses` multiplications, which
    /// decide whether multiples are made ahead at all. Panics unless `point` holds exactly one.
    pub fn new(point: &Points, uses: usize) -> Self {
        assert_eq!(point.len(), 1, "a table is of exactly one point");
        Table(match &point.0 {
            Repr::Portable(points) if uses >= PORTABLE_TABLE_USES => {
                TableRepr::Portable(Box::new(RistrettoBasepointTable::create(&points.0[0])))
            }
            #[cfg(target_arch = "x86_64")]
            Repr::Ifma(batch) if uses >= IFMA_TABLE_USES => TableRepr::Ifma(batch.table()),
            _ => TableRepr::Plain(point.clone()),
        })
    }

    /// Each scalar times the table's point, in constant time.
    pub fn mul(&self, scalars: &Scalars) -> Points {
        match &self.0 {
            TableRepr::Plain(point) => point.repeat(scalars.len()).mul(scalars),
            TableRepr::Portable(table) => portable(scalars.0.iter().map(|s| s * &**table)),
            #[cfg(target_arch = "x86_64")]
            TableRepr::Ifma(table) => ifma_points(table.mul(&scalars.to_bytes())),
        }
    }
}

/// Whether an encoding is the identity's.
pub fn is_identity_encoding(encoding: &Encoding) -> bool {
    encoding.iter().fold(0, |acc, b| acc | b) == 0
}
