//! The ring against schoolbook arithmetic, each backend against the others, samplers against their laws.

use super::*;
use crate::simd::Backend;
use crate::simd::ntt::{Active, of};
use crate::simd::ntt_portable::Kernels;
use crate::{Block, Prg};

/// Runs `$body` for every backend's kernels as `$k`.
macro_rules! each_backend {
    ($k:ident => $body:expr) => {
        for backend in Backend::available() {
            match of(backend) {
                Active::Portable($k) => $body,
                Active::Avx2($k) => $body,
                Active::Avx512($k) => $body,
            }
        }
    };
}

fn uniform<const N: usize>(ring: &Ring<N>, prg: &mut Prg) -> Poly<N> {
    Poly(core::array::from_fn(|_| prg.below(ring.modulus() as u64) as i16))
}

fn schoolbook<const N: usize>(ring: &Ring<N>, a: &Poly<N>, b: &Poly<N>) -> Vec<i64> {
    let mut out = vec![0i64; N];
    for i in 0..N {
        for j in 0..N {
            let product = a.0[i] as i64 * b.0[j] as i64;
            if i + j < N { out[i + j] += product } else { out[i + j - N] -= product }
        }
    }
    out.iter().map(|c| c.rem_euclid(ring.modulus() as i64)).collect()
}

fn canonical<const N: usize>(ring: &Ring<N>, a: &Poly<N>) -> Vec<i64> {
    a.0.iter().map(|c| (*c as i64).rem_euclid(ring.modulus() as i64)).collect()
}

fn products_match<const N: usize>(ring: &Ring<N>) {
    let mut prg = Prg::from_seed(Block::new(N as u128));
    for round in 0..4 {
        let (a, b) = match round {
            // The ends of the range, where lanes would overflow first.
            0 => (Poly([Ring::<N>::Q - 1; N]), Poly([Ring::<N>::Q - 1; N])),
            1 => (Poly([1 - Ring::<N>::Q; N]), Poly([Ring::<N>::Q - 1; N])),
            _ => (uniform(ring, &mut prg), uniform(ring, &mut prg)),
        };
        let expected = schoolbook(ring, &a, &b);
        each_backend!(k => {
            let (mut x, mut y, mut z) = (a.clone(), b.clone(), Poly::ZERO);
            k.forward(ring, &mut x.0);
            k.forward(ring, &mut y.0);
            assert!(x.0.iter().all(|v| (0..Ring::<N>::Q).contains(v)), "the transform is canonical");
            k.dot(ring, &[x.clone()], &[y], &mut z.0);
            k.inverse(ring, &mut z.0, ring.scale_product);
            assert!(z.0.iter().all(|v| v.abs() < Ring::<N>::Q));
            assert_eq!(canonical(ring, &z), expected);
            k.inverse(ring, &mut x.0, ring.scale);
            assert_eq!(canonical(ring, &x), canonical(ring, &a), "the inverse undoes the transform");
        });
    }
}

#[test]
fn transform_multiplies_as_schoolbook_does() {
    products_match(&RING_256_7681);
    products_match(&RING_512_13313);
    products_match(&RING_1024_12289);
}

#[test]
fn dot_adds_products() {
    let ring = &RING_256_7681;
    let mut prg = Prg::from_seed(Block::new(3));
    let a: [Poly<256>; 3] = core::array::from_fn(|_| uniform(ring, &mut prg));
    let b: [Poly<256>; 3] = core::array::from_fn(|_| uniform(ring, &mut prg));
    let mut expected = vec![0i64; 256];
    for (a, b) in a.iter().zip(&b) {
        for (sum, x) in expected.iter_mut().zip(schoolbook(ring, a, b)) {
            *sum = (*sum + x) % ring.modulus() as i64;
        }
    }
    let (mut a, mut b, mut z) = (a, b, Poly::ZERO);
    a.iter_mut().chain(&mut b).for_each(|x| ring.forward(x));
    ring.dot(&a, &b, &mut z);
    ring.inverse_product(&mut z);
    assert_eq!(canonical(ring, &z), expected);
}

fn wide_lanes_agree<const N: usize>(ring: &Ring<N>) {
    let mut prg = Prg::from_seed(Block::new(99 + N as u128));
    let (a, b) = (uniform(ring, &mut prg), uniform(ring, &mut prg));
    let mut random = vec![Block::ZERO; N / 4];
    prg.fill_blocks(&mut random);
    let bytes = Block::as_bytes(&random);
    let run = |k: &dyn Fn(&mut Vec<Vec<u8>>)| {
        let mut out = Vec::new();
        k(&mut out);
        out
    };
    let mut all = Vec::new();
    each_backend!(k => all.push(run(&|out| {
        let as_bytes = |x: &Poly<N>| bytemuck::cast_slice::<i16, u8>(&x.0).to_vec();
        let (mut x, mut y) = (a.clone(), a.clone());
        k.forward(ring, &mut x.0);
        k.inverse(ring, &mut y.0, ring.scale);
        out.extend([as_bytes(&x), as_bytes(&y)]);
        k.add_reduced(ring, &mut x.0, &b.0);
        k.subtract_masked(ring, &mut y.0, &b.0, -1);
        out.extend([as_bytes(&x), as_bytes(&y)]);
        let mut packed = vec![0; ring.packed_len()];
        k.pack(ring, &x.0, &mut packed);
        out.push(packed);
        let mut filled = Poly::ZERO;
        let (taken, got) = k.reject(ring, bytes, &mut filled.0, 5);
        assert_eq!(got, N - 5);
        out.extend([as_bytes(&filled), taken.to_le_bytes().to_vec()]);
        let (mut signal, mut key, mut other) = (vec![0; N / 16], vec![0; N / 16], vec![0; N / 16]);
        k.signal(ring, &x.0, &bytemuck::cast_slice(bytes)[..N / 16], &mut signal, &mut key);
        k.extract(ring, &a.0, &signal, &mut other);
        out.extend([signal, key, other].map(|w| bytemuck::cast_slice(&w).to_vec()));
        k.binomial2(bytemuck::cast_slice(&bytes[..N / 2]), &mut x.0);
        k.cumulative(&std::array::from_fn(|i| (i as i32 + 3) << 27), bytemuck::cast_slice(bytes), &mut y.0);
        out.extend([as_bytes(&x), as_bytes(&y)]);
    })));
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "backends differ");
}

#[test]
fn every_backend_gives_the_same_bytes() {
    wide_lanes_agree(&RING_256_7681);
    wide_lanes_agree(&RING_512_13313);
    wide_lanes_agree(&RING_1024_12289);
}

fn samplers_agree<const N: usize>(ring: &Ring<N>) {
    let mut all = Vec::new();
    each_backend!(k => {
        let mut random = XofBlocks::from_prg(&mut Prg::from_seed(Block::new(5 + N as u128)));
        let mut scratch = vec![Block::ZERO; N / 4];
        let mut polys = vec![Poly::<N>::ZERO; 9];
        // Several of each from one stream, so that a backend that takes more of it than another is found out.
        for (i, poly) in polys.iter_mut().enumerate() {
            let noise = [Noise::Gaussian2, Noise::Binomial2][i % 2];
            noise.sample_by(k, &mut random, &mut scratch, poly);
            assert!(poly.0.iter().all(|v| v.abs() <= noise.bound()) && *poly != Poly::ZERO);
        }
        let mut uniform = vec![Poly::<N>::ZERO; 5];
        let mut reader = blake3::Hasher::new_keyed(&[3; 32]).finalize_xof();
        ring.uniform_by(k, &mut reader, &mut uniform);
        polys.append(&mut uniform);
        let (mut next, mut after) = ([Block::ZERO], [0; 16]);
        random.fill_blocks(&mut next);
        reader.fill(&mut after);
        all.push((polys.iter().map(|p| p.0.to_vec()).collect::<Vec<_>>(), next[0].to_bytes(), after));
    });
    assert_eq!(all.len(), Backend::available().len());
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "backends differ");
}

#[test]
fn every_backend_draws_the_same_polynomials_from_a_seed() {
    samplers_agree(&RING_256_7681);
    samplers_agree(&RING_512_13313);
    samplers_agree(&RING_1024_12289);
}

fn packing_round_trips<const N: usize>(ring: &Ring<N>) {
    let mut prg = Prg::from_seed(Block::new(17));
    let poly = uniform(ring, &mut prg);
    let mut bytes = vec![0u8; ring.packed_len()];
    ring.pack(&poly, &mut bytes);
    let mut back = Poly::ZERO;
    each_backend!(k => {
        assert!(k.unpack(ring, &bytes, &mut back.0));
        assert!(back == poly);
    });
    for at in [0, 1, N / 2 + 3, N - 1] {
        for bad in [ring.modulus(), (1 << Ring::<N>::BITS) - 1] {
            let mut wrong = poly.clone();
            wrong.0[at] = bad as i16;
            ring.pack(&wrong, &mut bytes);
            each_backend!(k => assert!(!k.unpack(ring, &bytes, &mut back.0), "a value of {bad} passed at {at}"));
        }
    }
    assert_eq!(ring.unpack(&bytes[1..], &mut back), Err(MalformedPoly));
    bytes.push(0);
    assert_eq!(ring.unpack(&bytes, &mut back), Err(MalformedPoly));
}

#[test]
fn packing_round_trips_and_refuses_values_of_q_and_above() {
    packing_round_trips(&RING_256_7681);
    packing_round_trips(&RING_512_13313);
    packing_round_trips(&RING_1024_12289);
}

/// Sig and Mod2 as the paper's section 2.2 writes them, on integers.
fn by_definition(x: i64, coin: i64, q: i64) -> (u16, u16) {
    let centred = |v: i64| (v + (q - 1) / 2).rem_euclid(q) - (q - 1) / 2;
    let v = centred(x);
    let signal = !(-(q / 4) + coin..=q / 4 + coin).contains(&v) as i64;
    (signal as u16, centred(v + signal * (q - 1) / 2).rem_euclid(2) as u16)
}

fn reconciliation_matches<const N: usize>(ring: &Ring<N>) {
    let q = ring.modulus() as i64;
    for first in (1 - q..q).step_by(N) {
        let values: Vec<i64> = (0..N as i64).map(|i| (first + i).min(q - 1)).collect();
        let poly = Poly(core::array::from_fn(|i| values[i] as i16));
        for coin in [0, 1] {
            let coins = vec![(coin as u16).wrapping_neg(); N / 16];
            let (mut signal, mut key, mut other) = (vec![0; N / 16], vec![0; N / 16], vec![0; N / 16]);
            ring.signal(&poly, &coins, &mut signal, &mut key);
            ring.extract(&poly, &signal, &mut other);
            assert_eq!(key, other, "both sides agree on equal values");
            for (i, v) in values.iter().enumerate() {
                let bit = |w: &[u16]| w[i % (N / 16)] >> (i / (N / 16)) & 1;
                assert_eq!((bit(&signal), bit(&key)), by_definition(*v, coin, q), "value {v}, coin {coin}");
            }
        }
    }
}

#[test]
fn reconciliation_is_the_papers_for_every_value() {
    reconciliation_matches(&RING_256_7681);
    reconciliation_matches(&RING_512_13313);
    reconciliation_matches(&RING_1024_12289);
}

#[test]
fn values_closer_than_an_eighth_of_q_reconcile() {
    let ring = &RING_512_13313;
    let q = ring.modulus() as i64;
    // The sides differ by an even number under q/4 − 2 in size.
    for difference in [0i64, 2, -2, q / 4 - 2 - (q / 4) % 2, -(q / 4 - 2 - (q / 4) % 2)] {
        for x in 0..q {
            for coin in [0, 1] {
                let (signal, key) = by_definition(x, coin, q);
                let centred = |v: i64| (v + (q - 1) / 2).rem_euclid(q) - (q - 1) / 2;
                let other =
                    centred(centred(x + difference) + signal as i64 * (q - 1) / 2).rem_euclid(2) as u16;
                assert_eq!(key, other, "x {x}, difference {difference}, coin {coin}");
            }
        }
    }
}

/// Pearson's χ² of `counts` against `expected` probabilities; bins under 20 expected join the last one.
fn chi_square(counts: &[u64], expected: &[f64], samples: u64) -> (f64, usize) {
    let (mut sum, mut bins) = (0.0, 0);
    let (mut rest_count, mut rest_expected) = (0.0, 0.0);
    for (c, p) in counts.iter().zip(expected) {
        let e = p * samples as f64;
        if e < 20.0 {
            rest_count += *c as f64;
            rest_expected += e;
        } else {
            sum += (*c as f64 - e).powi(2) / e;
            bins += 1;
        }
    }
    if rest_expected > 1.0 {
        sum += (rest_count - rest_expected).powi(2) / rest_expected;
        bins += 1;
    } else {
        assert!(rest_count < 20.0, "{rest_count} samples where {rest_expected} were expected");
    }
    (sum, bins - 1)
}

/// Five standard deviations above the mean of χ²: some 10^-6 for a true sampler.
fn assert_fits(counts: &[u64], expected: &[f64], samples: u64) {
    let (chi, freedom) = chi_square(counts, expected, samples);
    let limit = freedom as f64 + 5.0 * (2.0 * freedom as f64).sqrt() + 10.0;
    assert!(chi < limit, "χ² = {chi} of {freedom} degrees of freedom, limit {limit}");
}

fn noise_counts(noise: Noise, samples: usize) -> Vec<u64> {
    let mut prg = Prg::from_seed(Block::new(4711));
    let mut scratch = [Block::ZERO; 128];
    let mut counts = vec![0; 2 * noise.bound() as usize + 1];
    let mut poly = Poly::<512>::ZERO;
    for _ in 0..samples / 512 {
        noise.sample(&mut prg, &mut scratch, &mut poly);
        for v in poly.0 {
            counts[(v + noise.bound()) as usize] += 1;
        }
    }
    counts
}

#[test]
fn gaussian_noise_fits_the_gaussian() {
    let weight = |x: i64| (-((x * x) as f64) / 8.0).exp();
    let total: f64 = (-60..=60).map(weight).sum();
    let bound = Noise::Gaussian2.bound() as i64;
    let expected: Vec<f64> = (-bound..=bound).map(|x| weight(x) / total).collect();
    let samples = 1 << 20;
    assert_fits(&noise_counts(Noise::Gaussian2, samples), &expected, samples as u64);
    for (x, p) in Noise::Gaussian2.law().into_iter().enumerate() {
        let exact = weight(x as i64) / total * (1u64 << 32) as f64;
        assert!((p as f64 - exact).abs() < 4.0, "size {x}: {p} in place of {exact}");
    }
}

#[test]
fn binomial_noise_fits_the_binomial() {
    let expected = [1.0, 4.0, 6.0, 4.0, 1.0].map(|p| p / 16.0);
    let samples = 1 << 20;
    assert_fits(&noise_counts(Noise::Binomial2, samples), &expected, samples as u64);
}

#[test]
fn uniform_polynomials_are_uniform() {
    let ring = &RING_512_13313;
    let mut counts = vec![0u64; ring.modulus() as usize];
    let mut polys = vec![Poly::<512>::ZERO; 4];
    let samples = 1 << 20;
    for i in 0..samples / 2048u64 {
        let mut reader = blake3::Hasher::new_keyed(&[7; 32]).update(&i.to_le_bytes()).finalize_xof();
        ring.uniform(&mut reader, &mut polys);
        polys.iter().flat_map(|p| p.0).for_each(|v| counts[v as usize] += 1);
    }
    let expected = vec![1.0 / ring.modulus() as f64; ring.modulus() as usize];
    assert_fits(&counts, &expected, samples);
}

#[test]
fn uniform_takes_the_streams_candidates_in_order() {
    let ring = &RING_256_7681;
    let reader = || blake3::Hasher::new_keyed(&[9; 32]).finalize_xof();
    let mut polys = vec![Poly::<256>::ZERO; 9];
    ring.uniform(&mut reader(), &mut polys);
    let mut bytes = vec![0u8; 1 << 13];
    reader().fill(&mut bytes);
    let candidates = bytes.as_chunks::<2>().0.iter().map(|b| (u16::from_le_bytes(*b) & 0x1fff) as i16);
    let wanted: Vec<i16> = candidates.filter(|c| *c < 7681).take(9 * 256).collect();
    assert_eq!(polys.iter().flat_map(|p| p.0).collect::<Vec<_>>(), wanted);
}

#[test]
fn montgomery_stays_in_its_bound() {
    for ring in [
        (Ring::<256>::Q, Ring::<256>::Q_INVERSE),
        (Ring::<512>::Q, Ring::<512>::Q_INVERSE),
        (Ring::<1024>::Q, Ring::<1024>::Q_INVERSE),
    ] {
        let (q, inverse) = ring;
        for a in i16::MIN..=i16::MAX {
            for b in [-(q / 2), -1, 1, 1234, q / 2] {
                let x = crate::simd::ntt_portable::montgomery(a, b, b.wrapping_mul(inverse), q) as i64;
                assert_eq!((x * 65536 - a as i64 * b as i64) % q as i64, 0);
                assert!(x.abs() <= q as i64 / 2 + (a as i64 * b as i64).abs() / 65536 + 1);
            }
        }
    }
}

#[test]
fn wiping_a_vector_leaves_zeros() {
    use zeroize::Zeroize;
    let mut vector = Vector([Poly([-3i16; 256]), Poly([5i16; 256])]);
    vector.zeroize();
    assert!(vector == Vector::ZERO);
}
