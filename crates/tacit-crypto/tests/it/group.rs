//! The group against curve25519-dalek's own arithmetic and RFC 9496's vectors.

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT as G;
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use proptest::prelude::*;
use tacit_crypto::group::{DecodeError, Encoding, Points, Scalars, Table};
use tacit_crypto::simd::Backend;
use tacit_crypto::{BitVec, Block, Prg};

fn prg(seed: u128) -> Prg {
    Prg::from_seed(Block::new(seed))
}

fn hex(s: &str) -> Vec<u8> {
    (0..s.len()).step_by(2).map(|i| u8::from_str_radix(&s[i..i + 2], 16).unwrap()).collect()
}

fn dalek_scalars(scalars: &Scalars) -> Vec<Scalar> {
    scalars.to_bytes().iter().map(|b| Scalar::from_canonical_bytes(*b).unwrap()).collect()
}

/// Scalars that exercise every carry of a signed recoding.
fn edge_scalars() -> Scalars {
    let minus_one = (-Scalar::ONE).to_bytes();
    let mut edges = vec![[0u8; 32], minus_one, [0x88; 32], [0x77; 32], [0xff; 32], [0x0f; 32], [0xf0; 32]];
    for i in 0..32u8 {
        let mut one_byte = [0u8; 32];
        one_byte[i as usize] = if i % 2 == 0 { 0x80 } else { 0x08 };
        edges.push(one_byte);
    }
    for small in 1..17u8 {
        let mut bytes = [0u8; 32];
        bytes[0] = small;
        edges.push(bytes);
    }
    Scalars::from_bytes(&edges)
}

fn random_points(backend: Backend, n: usize, seed: u128) -> (Points, Vec<RistrettoPoint>) {
    let mut uniform = vec![[0u8; 64]; n];
    let mut prg = prg(seed);
    uniform.iter_mut().for_each(|u| prg.fill_bytes(u));
    (
        Points::from_uniform_on(backend, &uniform),
        uniform.iter().map(RistrettoPoint::from_uniform_bytes).collect(),
    )
}

fn encodings(points: &[RistrettoPoint]) -> Vec<Encoding> {
    points.iter().map(|p| p.compress().to_bytes()).collect()
}

const SIZES: [usize; 9] = [0, 1, 2, 7, 8, 9, 16, 33, 129];

#[test]
fn small_multiples_of_the_generator_are_rfc_9496s() {
    for backend in Backend::available() {
        // RFC 9496, appendix A.1.
        let expected = [
            "0000000000000000000000000000000000000000000000000000000000000000",
            "e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76",
            "6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919",
            "94741f5d5d52755ece4f23f044ee27d5d1ea1e2bd196b462166b16152a9d0259",
            "da80862773358b466ffadfe0b3293ab3d9fd53c5ea6c955358f568322daf6a57",
            "e882b131016b52c1d3337080187cf768423efccbb517bb495ab812c4160ff44e",
        ];
        let scalars: Vec<[u8; 32]> = (0..expected.len() as u64).map(|i| Scalar::from(i).to_bytes()).collect();
        let points = Points::mul_base_on(backend, &Scalars::from_bytes(&scalars));
        for (encoding, expected) in points.encode().iter().zip(expected) {
            assert_eq!(encoding[..], hex(expected)[..]);
            assert_eq!(Points::decode_on(backend, encoding).unwrap().encode()[0][..], hex(expected)[..]);
        }
    }
}

#[test]
fn invalid_encodings_of_rfc_9496_are_refused() {
    for backend in Backend::available() {
        // RFC 9496, appendix A.2: non-canonical, negative, non-square x², negative xy, s = -1.
        let bad = [
            "00ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
            "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "f3ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "0100000000000000000000000000000000000000000000000000000000000000",
            "01ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "ed57ffd8c914fb201471d1c3d245ce3c746fcbe63a3679d51b6a516ebebe0e20",
            "c34c4e1826e5d403b78e246e88aa051c36ccf0aafebffe137d148a2bf9104562",
            "c940e5a4404157cfb1628b108db051a8d439e1a421394ec4ebccb9ec92a8ac78",
            "47cfc5497c53dc8e61c91d17fd626ffb1c49e2bca94eed052281b510b1117a24",
            "f1c6165d33367351b0da8f6e4511010c68174a03b6581212c71c0e1d026c3c72",
            "87260f7a2f12495118360f02c26a470f450dadf34a413d21042b43b9d93e1309",
            "26948d35ca62e643e26a83177332e6b6afeb9d08e4268b650f1f5bbd8d81d371",
            "4eac077a713c57b4f4397629a4145982c661f48044dd3f96427d40b147d9742f",
            "de6a7b00deadc788eb6b6c8d20c0ae96c2f2019078fa604fee5b87d6e989ad7b",
            "bcab477be20861e01e4a0e295284146a510150d9817763caf1a6f4b422d67042",
            "2a292df7e32cababbd9de088d1d1abec9fc0440f637ed2fba145094dc14bea08",
            "f4a9e534fc0d216c44b218fa0c42d99635a0127ee2e53c712f70609649fdff22",
            "8268436f8c4126196cf64b3c7ddbda90746a378625f9813dd9b8457077256731",
            "2810e5cbc2cc4d4eece54f61c6f69758e289aa7ab440b3cbeaa21995c2f4232b",
            "3eb858e78f5a7254d8c9731174a94f76755fd3941c0ac93735c07ba14579630e",
            "a45fdc55c76448c049a1ab33f17023edfb2be3581e9c7aade8a6125215e04220",
            "d483fe813c6ba647ebbfd3ec41adca1c6130c2beeee9d9bf065c8d151c5f396e",
            "8a2e1d30050198c65a54483123960ccc38aef6848e1ec8f5f780e8523769ba32",
            "32888462f8b486c68ad7dd9610be5192bbeaf3b443951ac1a8118419d9fa097b",
            "227142501b9d4355ccba290404bde41575b037693cef1f438c47f8fbf35d1165",
            "5c37cc491da847cfeb9281d407efc41e15144c876e0170b499a96a22ed31e01e",
            "445425117cb8c90edcbc7c1cc0e74f747f2c1efa5630a967c64f287792a48a4b",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        ];
        let good = Points::mul_base_on(backend, &Scalars::random(20, &mut prg(1))).encode().concat();
        for bad in bad {
            assert_eq!(Points::decode_on(backend, &hex(bad)).unwrap_err(), DecodeError::Invalid(0), "{bad}");
            for place in [0, 7, 8, 13, 20] {
                let mut bytes = good.clone();
                bytes.splice(place * 32..place * 32, hex(bad));
                assert_eq!(Points::decode_on(backend, &bytes).unwrap_err(), DecodeError::Invalid(place));
            }
        }
        for cut in [1, 31, 33, 639] {
            assert_eq!(Points::decode_on(backend, &good[..cut]).unwrap_err(), DecodeError::Length(cut));
        }
    }
}

#[test]
fn the_map_from_uniform_bytes_is_rfc_9496s() {
    for backend in Backend::available() {
        // RFC 9496, appendix A.3 (both encode one point).
        let inputs = [
            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff1200000000000000000000000000000000000000000000000000000000000000",
            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
            "0000000000000000000000000000000000000000000000000000000000000080ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "00000000000000000000000000000000000000000000000000000000000000001200000000000000000000000000000000000000000000000000000000000080",
        ];
        let uniform: Vec<[u8; 64]> = inputs.iter().map(|i| hex(i).try_into().unwrap()).collect();
        let expected = "304282791023b73128d277bdcb5c7746ef2eac08dde9f2983379cb8e5ef0517f";
        for encoding in Points::from_uniform_on(backend, &uniform).encode() {
            assert_eq!(encoding[..], hex(expected)[..]);
        }
    }
}

#[test]
fn decoding_and_encoding_are_dalek_s() {
    for backend in Backend::available() {
        for n in SIZES {
            let (points, reference) = random_points(backend, n, n as u128);
            let bytes = points.encode();
            assert_eq!(bytes, encodings(&reference));
            assert_eq!(Points::decode_on(backend, bytes.as_flattened()).unwrap().encode(), bytes);
        }
        let identity = Points::identity_on(backend, 9);
        assert_eq!(identity.encode(), vec![[0u8; 32]; 9]);
        assert_eq!(Points::decode_on(backend, &[0; 32 * 9]).unwrap().encode(), vec![[0u8; 32]; 9]);
    }
}

#[test]
fn uniform_maps_of_edge_bytes_are_dalek_s() {
    for backend in Backend::available() {
        let mut uniform = vec![[0u8; 64], [0xff; 64], [0x7f; 64], [0x80; 64]];
        for i in 0..64 {
            let mut one_bit = [0u8; 64];
            one_bit[i] = 1 << (i % 8);
            uniform.push(one_bit);
        }
        let reference: Vec<_> = uniform.iter().map(RistrettoPoint::from_uniform_bytes).collect();
        assert_eq!(Points::from_uniform_on(backend, &uniform).encode(), encodings(&reference));
    }
}

#[test]
fn multiplications_are_dalek_s() {
    for backend in Backend::available() {
        for n in SIZES {
            let scalars = Scalars::random(n, &mut prg(100 + n as u128));
            check_multiplications(backend, &scalars);
        }
        check_multiplications(backend, &edge_scalars());
    }
}

fn check_multiplications(backend: Backend, scalars: &Scalars) {
    let reference = dalek_scalars(scalars);
    let n = scalars.len();
    let expect = |f: &dyn Fn(usize) -> RistrettoPoint| encodings(&(0..n).map(f).collect::<Vec<_>>());
    assert_eq!(Points::mul_base_on(backend, scalars).encode(), expect(&|i| G * reference[i]));
    let (points, dalek) = random_points(backend, n, 7 + n as u128);
    assert_eq!(points.mul(scalars).encode(), expect(&|i| dalek[i] * reference[i]));
    let (one, one_dalek) = random_points(backend, 1, 9);
    // With and without multiples made ahead.
    for uses in [0, 1 << 20] {
        let table = Table::new(&one, uses);
        assert_eq!(table.mul(scalars).encode(), expect(&|i| one_dalek[0] * reference[i]));
    }
    for (k, same_scalar) in reference.iter().enumerate().take(40) {
        let k_bytes = [scalars.to_bytes()[k]];
        let same = points.mul_same(&Scalars::from_bytes(&k_bytes));
        assert_eq!(same.encode(), expect(&|i| dalek[i] * same_scalar));
    }
    let zero = Points::identity_on(backend, n);
    assert_eq!(zero.mul(scalars).encode(), vec![[0u8; 32]; n]);
    assert_eq!(
        Table::new(&Points::identity_on(backend, 1), 1 << 20).mul(scalars).encode(),
        vec![[0u8; 32]; n]
    );
}

#[test]
fn sums_and_selections_are_dalek_s() {
    for backend in Backend::available() {
        for n in SIZES {
            let (a, da) = random_points(backend, n, 11);
            let (b, db) = random_points(backend, n, 12);
            let zip = |f: &dyn Fn(&RistrettoPoint, &RistrettoPoint) -> RistrettoPoint| {
                encodings(&da.iter().zip(&db).map(|(x, y)| f(x, y)).collect::<Vec<_>>())
            };
            assert_eq!(a.add(&b).encode(), zip(&|x, y| x + y));
            assert_eq!(a.sub(&b).encode(), zip(&|x, y| x - y));
            assert_eq!(a.add(&a).encode(), zip(&|x, _| x + x));
            assert_eq!(a.sub(&a).encode(), vec![[0u8; 32]; n]);
            assert_eq!(a.add(&Points::identity_on(backend, n)).encode(), encodings(&da));
            assert_eq!(a.neg().encode(), zip(&|x, _| -x));
            let bits = BitVec::random(n, &mut prg(13));
            let expected: Vec<_> = (0..n).map(|i| if bits.get(i) { db[i] } else { da[i] }).collect();
            assert_eq!(Points::select(&a, &b, &bits).encode(), encodings(&expected));
        }
        let (one, dalek) = random_points(backend, 1, 14);
        assert_eq!(one.repeat(11).encode(), encodings(&[dalek[0]; 11]));
    }
}

#[test]
fn batches_of_different_kernels_mix() {
    let backends = Backend::available();
    for (a, b) in backends.iter().flat_map(|a| backends.iter().map(move |b| (*a, *b))) {
        for n in [0, 1, 11] {
            let (p, dp) = random_points(a, n, 21);
            let (q, dq) = random_points(b, n, 22);
            let sums: Vec<_> = dp.iter().zip(&dq).map(|(x, y)| x + y).collect();
            assert_eq!(p.add(&q).encode(), encodings(&sums));
            let differences: Vec<_> = dp.iter().zip(&dq).map(|(x, y)| x - y).collect();
            assert_eq!(p.sub(&q).encode(), encodings(&differences));
            let bits = BitVec::random(n, &mut prg(23));
            let chosen: Vec<_> = (0..n).map(|i| if bits.get(i) { dq[i] } else { dp[i] }).collect();
            assert_eq!(Points::select(&p, &q, &bits).encode(), encodings(&chosen));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn decoding_any_bytes_gives_dalek_s_verdict(bytes: [[u8; 32]; 9], clear_top: bool, even: bool) {
        // Random bytes are valid one time in sixteen at best, so the obvious reasons for refusal are taken
        // away.
        let mut bytes = bytes;
        for b in &mut bytes {
            b[31] &= if clear_top { 0x7f } else { 0xff };
            b[0] &= if even { 0xfe } else { 0xff };
        }
        let verdicts = bytes.map(|b| CompressedRistretto(b).decompress());
        for backend in Backend::available() {
            for (b, verdict) in bytes.iter().zip(&verdicts) {
                match (Points::decode_on(backend, b), verdict) {
                    (Ok(points), Some(p)) => prop_assert_eq!(points.encode()[0], p.compress().to_bytes()),
                    (Err(error), None) => prop_assert_eq!(error, DecodeError::Invalid(0)),
                    _ => prop_assert!(false, "another verdict on {:?}", backend),
                }
            }
            let first_bad = verdicts.iter().position(Option::is_none);
            let batch = Points::decode_on(backend, bytes.as_flattened()).err();
            prop_assert_eq!(batch, first_bad.map(DecodeError::Invalid));
        }
    }

    #[test]
    fn any_scalars_and_points_multiply_as_dalek_s(scalars: [[u8; 32]; 9], uniform: [[u8; 32]; 18]) {
        let scalars = Scalars::from_bytes(&scalars);
        let reference = dalek_scalars(&scalars);
        let uniform: Vec<[u8; 64]> = uniform.as_flattened().as_chunks().0.to_vec();
        let dalek: Vec<_> = uniform.iter().map(RistrettoPoint::from_uniform_bytes).collect();
        let products: Vec<_> = dalek.iter().zip(&reference).map(|(p, s)| p * s).collect();
        let base: Vec<_> = reference.iter().map(|s| G * s).collect();
        for backend in Backend::available() {
            let points = Points::from_uniform_on(backend, &uniform);
            prop_assert_eq!(points.encode(), encodings(&dalek));
            prop_assert_eq!(points.mul(&scalars).encode(), encodings(&products));
            prop_assert_eq!(Points::mul_base_on(backend, &scalars).encode(), encodings(&base));
        }
    }
}

#[test]
fn combinations_are_sums_of_products() {
    for backend in Backend::available() {
        // Past one group of chunks of the vector kernel, and one past it.
        for n in SIZES.into_iter().chain([256, 257, 600]) {
            let scalars = Scalars::random(n, &mut prg(300 + n as u128));
            let (points, dalek) = random_points(backend, n, 11 + n as u128);
            let sum: RistrettoPoint = dalek.iter().zip(dalek_scalars(&scalars)).map(|(p, s)| p * s).sum();
            assert_eq!(points.combine_vartime(&scalars).encode(), encodings(&[sum]), "{n}");
        }
        let scalars = edge_scalars();
        let (points, dalek) = random_points(backend, scalars.len(), 5);
        let sum: RistrettoPoint = dalek.iter().zip(dalek_scalars(&scalars)).map(|(p, s)| p * s).sum();
        assert_eq!(points.combine_vartime(&scalars).encode(), encodings(&[sum]));
    }
}

#[test]
fn scalar_arithmetic_is_dalek_s() {
    let (a, b) = (Scalars::random(33, &mut prg(1)), Scalars::random(33, &mut prg(2)));
    let (da, db) = (dalek_scalars(&a), dalek_scalars(&b));
    let both = |f: fn(&Scalar, &Scalar) -> Scalar| -> Vec<Scalar> {
        da.iter().zip(&db).map(|(a, b)| f(a, b)).collect()
    };
    assert_eq!(dalek_scalars(&a.add(&b)), both(|a, b| a + b));
    assert_eq!(dalek_scalars(&a.sub(&b)), both(|a, b| a - b));
    assert_eq!(dalek_scalars(&a.mul(&b)), both(|a, b| a * b));
    assert_eq!(dalek_scalars(&a.invert()), da.iter().map(Scalar::invert).collect::<Vec<_>>());
    assert_eq!(Scalars::default().invert().len(), 0);
    assert!(!a.any_zero() && Scalars::from_bytes(&[[1; 32], [0; 32]]).any_zero());
    let canonical = a.to_bytes();
    assert_eq!(*Scalars::from_canonical(&canonical).unwrap().to_bytes(), *canonical);
    // The group's order itself, and what lies above it.
    let mut order = (-Scalar::ONE).to_bytes();
    order[0] += 1;
    for bad in [order, [0xff; 32]] {
        assert!(Scalars::from_canonical(&[canonical[0], bad]).is_none());
    }
    let wide = [[0xa5; 64]];
    assert_eq!(dalek_scalars(&Scalars::from_wide(&wide)), [Scalar::from_bytes_mod_order_wide(&wide[0])]);
}
