//! Polynomials, and the rings in use, with their tables computed at compile time.

use zeroize::Zeroize;

/// N coefficients of 16 bits; what range they keep is said where a polynomial is taken or given.
///
/// `Debug` does not show them: most polynomials are secret.
#[derive(Clone, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Poly<const N: usize>(pub [i16; N]);

impl<const N: usize> Poly<N> {
    /// The polynomial zero.
    pub const ZERO: Self = Poly([0; N]);
}

impl<const N: usize> core::fmt::Debug for Poly<N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Poly([secret])")
    }
}

impl<const N: usize> Zeroize for Poly<N> {
    fn zeroize(&mut self) {
        // Eight-byte writes, because each is volatile: a quarter of the writes that the coefficients would
        // take.
        bytemuck::cast_slice_mut::<i16, u64>(&mut self.0).zeroize();
    }
}

/// Z_q\[X\]/(X^N + 1) with N = 256, 512 or 1024 and the prime q ≡ 1 mod 2N that goes with it: 7681, 13313 or
/// 12289.
///
/// `transform[k]` for k < N/16 is the twiddle of block k of the wide layers; beyond, the lanes of the narrow
/// layers, row by row. `…_q` holds each twiddle times q^-1 modulo 2^16.
pub struct Ring<const N: usize> {
    pub(crate) scale: (i16, i16),
    pub(crate) scale_product: (i16, i16),
    pub(crate) twiddle: [i16; N],
    pub(crate) twiddle_q: [i16; N],
    pub(crate) untwiddle: [i16; N],
    pub(crate) untwiddle_q: [i16; N],
}

/// Z_7681\[X\]/(X^256 + 1).
pub static RING_256_7681: Ring<256> = Ring::new();
/// Z_13313\[X\]/(X^512 + 1), the paper's.
pub static RING_512_13313: Ring<512> = Ring::new();
/// Z_12289\[X\]/(X^1024 + 1).
pub static RING_1024_12289: Ring<1024> = Ring::new();

/// The modulus that goes with each degree: a prime with q ≡ 1 mod 2n that lanes of 16 bits can hold.
const fn modulus(n: usize) -> u32 {
    match n {
        256 => 7681,
        512 => 13313,
        1024 => 12289,
        _ => panic!("a degree that the kernels know"),
    }
}

// Constants of the type and not fields, so that the compiler sees 16-bit factors where it makes vector
// products.
impl<const N: usize> Ring<N> {
    pub(crate) const Q: i16 = modulus(N) as i16;
    pub(crate) const Q_INVERSE: i16 = inverse_mod_2_16(Self::Q as u16) as i16;
    /// Bits of a coefficient on the wire.
    pub(crate) const BITS: u32 = 32 - modulus(N).leading_zeros();
    /// 2^16 mod q, by which a Montgomery product reduces.
    pub(crate) const REDUCE: (i16, i16) = pair((1 << 16) % modulus(N), modulus(N), Self::Q_INVERSE);

    const fn new() -> Self {
        let (q, q_inverse) = (modulus(N), Self::Q_INVERSE);
        assert!(q % (2 * N as u32) == 1 && q > 1 << 12 && q < 13653, "a modulus that the kernels can hold");
        let r = (1 << 16) % q;
        let n_inverse = power(N as u32, q - 2, q);
        let root = primitive_root_of_minus_one(N as u32, q);
        let (twiddle, twiddle_q) = table::<N>(root, q, q_inverse);
        let (untwiddle, untwiddle_q) = table::<N>(power(root, q - 2, q), q, q_inverse);
        Ring {
            scale: pair(n_inverse * r % q, q, q_inverse),
            scale_product: pair(n_inverse * r % q * r % q, q, q_inverse),
            twiddle,
            twiddle_q,
            untwiddle,
            untwiddle_q,
        }
    }
}

/// `x` centred, and times q^-1 modulo 2^16.
const fn pair(x: u32, q: u32, q_inverse: i16) -> (i16, i16) {
    let centred = if x > q / 2 { x as i32 - q as i32 } else { x as i32 } as i16;
    (centred, centred.wrapping_mul(q_inverse))
}

/// Twiddle k is root^bitreverse(k) in Montgomery form; see [`Ring`] for the order.
const fn table<const N: usize>(root: u32, q: u32, q_inverse: i16) -> ([i16; N], [i16; N]) {
    let mut natural = [(0i16, 0i16); N];
    let mut x = (1 << 16) % q;
    let mut exponent = 0;
    while exponent < N {
        natural[reverse_bits(exponent, N.trailing_zeros())] = pair(x, q, q_inverse);
        x = x * root % q;
        exponent += 1;
    }
    let width = N / 16;
    let (mut out, mut out_q) = ([0i16; N], [0i16; N]);
    let mut k = 0;
    while k < width {
        (out[k], out_q[k]) = natural[k];
        k += 1;
    }
    // Narrow layers of 1, 2, 4 and 8 groups: the row of group g of the layer with m groups is m + g.
    let mut row = 1;
    while row < 16 {
        let groups = 1 << (31 - (row as u32).leading_zeros());
        let group = row - groups;
        let mut lane = 0;
        while lane < width {
            (out[row * width + lane], out_q[row * width + lane]) =
                natural[width * groups + lane * groups + group];
            lane += 1;
        }
        row += 1;
    }
    (out, out_q)
}

const fn reverse_bits(x: usize, bits: u32) -> usize {
    x.reverse_bits() >> (usize::BITS - bits)
}

const fn power(base: u32, mut exponent: u32, q: u32) -> u32 {
    let (mut base, mut out) = (base % q, 1);
    while exponent > 0 {
        if exponent & 1 == 1 {
            out = out * base % q;
        }
        base = base * base % q;
        exponent >>= 1;
    }
    out
}

/// The ψ = g^((q-1)/2n) of the least g with ψ^n = −1.
const fn primitive_root_of_minus_one(n: u32, q: u32) -> u32 {
    let mut g = 2;
    loop {
        let root = power(g, (q - 1) / (2 * n), q);
        if power(root, n, q) == q - 1 {
            return root;
        }
        g += 1;
    }
}

const fn inverse_mod_2_16(q: u16) -> u16 {
    let mut x = 1u16;
    let mut i = 0;
    while i < 4 {
        x = x.wrapping_mul(2u16.wrapping_sub(q.wrapping_mul(x)));
        i += 1;
    }
    x
}
