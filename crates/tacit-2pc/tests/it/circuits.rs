//! Every built-in circuit against a trusted implementation, on random and edge inputs.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use sha1::Digest;
use tacit_2pc::circuit::library::{
    aes as aes_circuit, checked, keccak, search, sha1 as sha1_circuit, sha2 as sha2_circuit, sort,
};
use tacit_2pc::circuit::{
    Bit, Builder, Circuit, Int, Integer, Modulus, Uint, evaluate, evaluate_words, named, value,
};
use tacit_crypto::{BitVec, Block, Prg};

fn prg(seed: u128) -> Prg {
    Prg::from_seed(Block::new(seed))
}

fn build(widths: &[u32], body: impl FnOnce(&mut Builder, &[Uint]) -> Vec<Uint>) -> Circuit {
    let mut b = Builder::new();
    let inputs: Vec<Uint> = widths.iter().map(|&w| b.input(w)).collect();
    let outputs = body(&mut b, &inputs);
    b.finish(&outputs).unwrap()
}

fn from_u128(value: u128, width: usize) -> BitVec {
    BitVec::from_bytes(&value.to_le_bytes(), width)
}

fn to_u128(bits: &BitVec) -> u128 {
    bits.iter().enumerate().fold(0, |acc, (i, bit)| acc | (bit as u128) << i)
}

/// A byte string as the number whose most significant byte is the first.
fn from_be(bytes: &[u8]) -> BitVec {
    let reversed: Vec<u8> = bytes.iter().rev().copied().collect();
    BitVec::from_bytes(&reversed, 8 * bytes.len())
}

fn to_be(bits: &BitVec) -> Vec<u8> {
    bits.as_bytes().iter().rev().copied().collect()
}

fn hex(field: &value::Field, bits: &BitVec) -> String {
    value::format(field, bits, value::Format::Hex)
}

fn run(circuit: &Circuit, inputs: &[u128]) -> Vec<u128> {
    let widths = circuit.shape().inputs.clone();
    let inputs: Vec<BitVec> = inputs.iter().zip(widths).map(|(&x, w)| from_u128(x, w as usize)).collect();
    evaluate(circuit, &inputs).iter().map(to_u128).collect()
}

fn mask(width: usize) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

/// Edge values and random ones of `width` bits.
fn samples(width: usize, random: usize, prg: &mut Prg) -> Vec<u128> {
    let m = mask(width);
    let mut out = vec![0, 1 & m, m, m >> 1, ((m >> 1) + 1) & m, 2 & m];
    out.extend((0..random).map(|_| prg.block().to_u128() & m));
    out
}

fn signed(x: u128, width: usize) -> i128 {
    let shift = 128 - width as u32;
    ((x << shift) as i128) >> shift
}

#[test]
fn unsigned_arithmetic_matches_machine_arithmetic() {
    let mut prg = prg(1);
    for w in [1usize, 2, 3, 7, 8, 13, 32, 47, 64] {
        let circuit = build(&[w as u32, w as u32], |b, x| {
            let (x, y) = (&x[0], &x[1]);
            let (q, r) = b.div_rem(x, y);
            let bit = |bit: Bit| Uint::from_bits(vec![bit]);
            let (small, large) = b.compare_exchange(x, y);
            vec![
                b.add(x, y),
                b.sub(x, y),
                b.mul(x, y),
                b.mul_wide(x, y),
                q,
                r,
                bit(b.lt(x, y)),
                bit(b.le(x, y)),
                bit(b.eq(x, y)),
                b.min(x, y),
                b.max(x, y),
                small,
                large,
                b.add_wide(x, y),
                b.neg(x),
                b.square_wide(x),
                b.hamming_distance(x, y),
                b.shl_by(x, y),
                b.shr_by(x, y),
                b.or_bits(x, y),
            ]
        });
        let m = mask(w);
        for &x in &samples(w, 12, &mut prg) {
            for &y in &samples(w, 4, &mut prg) {
                let shift = |s: u128| s.min(127) as u32;
                let expected = [
                    x.wrapping_add(y) & m,
                    x.wrapping_sub(y) & m,
                    x.wrapping_mul(y) & m,
                    x * y,
                    x.checked_div(y).unwrap_or(m),
                    x.checked_rem(y).unwrap_or(x),
                    (x < y) as u128,
                    (x <= y) as u128,
                    (x == y) as u128,
                    x.min(y),
                    x.max(y),
                    x.min(y),
                    x.max(y),
                    x + y,
                    x.wrapping_neg() & m,
                    x * x,
                    (x ^ y).count_ones().into(),
                    if y >= w as u128 { 0 } else { x << shift(y) & m },
                    if y >= w as u128 { 0 } else { x >> shift(y) },
                    x | y,
                ];
                assert_eq!(run(&circuit, &[x, y]), expected, "{w} bits: {x} and {y}");
            }
        }
    }
}

#[test]
fn signed_arithmetic_matches_machine_arithmetic() {
    let mut prg = prg(2);
    for w in [2usize, 5, 8, 16, 33, 64] {
        let circuit = build(&[w as u32, w as u32], |b, x| {
            let (x, y) = (x[0].as_int(), x[1].as_int());
            let (q, r) = b.div_rem(&x, &y);
            let less = b.lt(&x, &y);
            let product: Int = b.mul_wide(&x, &y);
            let shifted = b.shr_by(&x, &y.as_uint());
            vec![
                q.as_uint(),
                r.as_uint(),
                Uint::from_bits(vec![less]),
                product.as_uint(),
                b.min(&x, &y).as_uint(),
                b.abs(&x),
                b.add_wide(&x, &y).as_uint(),
                shifted.as_uint(),
            ]
        });
        for &ux in &samples(w, 12, &mut prg) {
            for &uy in &samples(w, 4, &mut prg) {
                let (x, y) = (signed(ux, w), signed(uy, w));
                let (q, r) = match y {
                    0 => (if x < 0 { 1 } else { -1 }, x),
                    _ => (x / y, x % y),
                };
                let shift = uy.min(127) as u32;
                let expected = [
                    q as u128 & mask(w),
                    r as u128 & mask(w),
                    (x < y) as u128,
                    (x * y) as u128 & mask(2 * w),
                    x.min(y) as u128 & mask(w),
                    x.unsigned_abs() & mask(w),
                    (x + y) as u128 & mask(w + 1),
                    (x >> shift) as u128 & mask(w),
                ];
                assert_eq!(run(&circuit, &[ux, uy]), expected, "{w} bits: {x} and {y}");
            }
        }
    }
}

/// What a product and a division of `x` and `y`, `w` bits each, give, as [`arithmetic_of`] does.
fn expected_arithmetic(x: i128, y: i128, w: usize, is_signed: bool) -> [u128; 8] {
    let (low, high) = if is_signed { (-(1 << (w - 1)), (1 << (w - 1)) - 1) } else { (0, (1 << w) - 1) };
    let (quotient, remainder) = match y {
        0 if x < 0 => (1, x),
        0 => (-1, x),
        _ => (x / y, x % y),
    };
    let cut = |value: i128, width| value as u128 & mask(width);
    let beyond = |value: i128| u128::from(value < low || value > high);
    [
        cut(x * y, w),
        cut(x * y, w),
        beyond(x * y),
        cut(x * y, 2 * w),
        cut(x * x, 2 * w),
        cut(x * x, w),
        beyond(x * x),
        cut(quotient, w) | cut(remainder, w) << w,
    ]
}

fn arithmetic_of<I: Integer>(b: &mut Builder, x: &I, y: &I) -> Vec<Uint> {
    let plain = |v: &I| Uint::from_bits(v.bits().to_vec());
    let (product, over) = checked::mul(b, x, y);
    let (square, square_over) = checked::mul(b, x, x);
    let (q, r) = b.div_rem(x, y);
    let bit = |bit: Bit| Uint::from_bits(vec![bit]);
    vec![
        plain(&b.mul(x, y)),
        plain(&product),
        bit(over),
        plain(&b.mul_wide(x, y)),
        plain(&b.mul_wide(x, x)),
        plain(&square),
        bit(square_over),
        Uint::concat(&plain(&q), &plain(&r)),
    ]
}

/// A value of `width` bits, read with its sign if it has one.
fn read(value: u128, width: usize, is_signed: bool) -> i128 {
    if is_signed { signed(value, width) } else { value as i128 }
}

/// Arithmetic on `w` bits of factors that have `of[0]` and `of[1]` of them, extended.
fn arithmetic_circuit(w: usize, of: [usize; 2], is_signed: bool) -> Circuit {
    build(&of.map(|width| width as u32), |b, x| {
        if is_signed {
            let [x, y] = [0, 1].map(|i| x[i].as_int().resize(w));
            arithmetic_of(b, &x, &y)
        } else {
            let [x, y] = [0, 1].map(|i| x[i].resize(w));
            arithmetic_of(b, &x, &y)
        }
    })
}

/// All pairs that `pairs` gives for factors of these widths, on `w` bits.
fn check_arithmetic(w: usize, of: [usize; 2], mut pairs: impl FnMut() -> Vec<(u128, u128)>) {
    for is_signed in [false, true] {
        let circuit = arithmetic_circuit(w, of, is_signed);
        for (x, y) in pairs() {
            let [sx, sy] = [(x, of[0]), (y, of[1])].map(|(v, n)| read(v, n, is_signed));
            let expected = expected_arithmetic(sx, sy, w, is_signed);
            assert_eq!(run(&circuit, &[x, y]), expected, "{w} bits, {of:?}: {sx} and {sy}");
        }
    }
}

#[test]
fn products_and_quotients_are_right_on_all_short_numbers() {
    for w in 1..=6_usize {
        for of in [[w, w], [w, w.div_ceil(2)], [w.div_ceil(3), w], [w.div_ceil(2), w.div_ceil(2)]] {
            let all = |bits: usize| 0..1_u128 << bits;
            check_arithmetic(w, of, || all(of[0]).flat_map(|x| all(of[1]).map(move |y| (x, y))).collect());
        }
    }
}

#[test]
fn products_and_quotients_are_right_where_overflow_begins() {
    let mut prg = prg(17);
    for w in [7, 8, 16, 19, 20, 31, 32, 33, 39, 40, 41, 47, 63] {
        for of in [[w, w], [w, w / 2 + 1], [w / 3 + 1, w]] {
            check_arithmetic(w, of, || {
                let mut pairs = Vec::new();
                for &x in &samples(of[0], 6, &mut prg) {
                    pairs.extend(samples(of[1], 2, &mut prg).into_iter().map(|y| (x, y)));
                }
                // Numbers of every length, and beside each what brings the product next to the bounds.
                for bits in 1..of[0] {
                    let x = prg.block().to_u128() & mask(bits) | 1 << (bits - 1);
                    for bound in [1u128 << (w - 1), 1 << w, 1 << (w + 1)] {
                        for y in [(bound / x).saturating_sub(1), bound / x, bound / x + 1] {
                            let (minus_x, minus_y) = (x.wrapping_neg(), y.wrapping_neg());
                            for (x, y) in [(x, y), (minus_x, y), (minus_x, minus_y)] {
                                pairs.push((x & mask(of[0]), y & mask(of[1])));
                            }
                        }
                    }
                }
                pairs
            });
        }
    }
}

#[test]
fn known_factors_and_divisors_give_what_secret_ones_do() {
    let mut prg = prg(18);
    let check = |w: usize, constants: &[u128], numbers: &[u128], is_signed: bool| {
        for &c in constants {
            let c = read(c, w, is_signed);
            let circuit = build(&[w as u32], |b, x| {
                if is_signed {
                    let (x, c) = (x[0].as_int(), Int::constant(c, w));
                    [arithmetic_of(b, &x, &c), arithmetic_of(b, &c, &x)].concat()
                } else {
                    let c = Uint::constant(c, w);
                    [arithmetic_of(b, &x[0], &c), arithmetic_of(b, &c, &x[0])].concat()
                }
            });
            for &x in numbers {
                let read = read(x, w, is_signed);
                let expected =
                    [expected_arithmetic(read, c, w, is_signed), expected_arithmetic(c, read, w, is_signed)];
                assert_eq!(run(&circuit, &[x]), expected.concat(), "{w} bits: {read} and the constant {c}");
            }
        }
    };
    for is_signed in [false, true] {
        for w in 1..=6 {
            let all: Vec<u128> = (0..1 << w).collect();
            check(w, &all, &all, is_signed);
        }
        for w in [13, 32, 47, 63] {
            let mut constants = samples(w, 6, &mut prg);
            constants.extend(
                [3, 7, 10, 12, 15, 60, 100, 255, 1000, 1 << (w / 2), 85 << 3].map(|c: u128| c & mask(w)),
            );
            let mut numbers = samples(w, 8, &mut prg);
            numbers.extend(
                constants.iter().filter(|&&c| c != 0).flat_map(|c| [mask(w) / c, mask(w) / c / 2 + 1]),
            );
            check(w, &constants, &numbers, is_signed);
        }
    }
}

/// What is known of the operands is not paid for.
#[test]
fn known_bits_cost_nothing() {
    let ands = |f: &dyn Fn(&mut Builder, &Uint) -> Vec<Uint>| build(&[32], |b, x| f(b, &x[0])).stats().and;
    let times = |c: i128| ands(&|b, x| vec![b.mul(x, &Uint::constant(c, 32))]);
    assert_eq!((times(0), times(1), times(64)), (0, 0, 0));
    assert!(
        times(12) <= 31 && times(15) <= 31 && times(100) <= 62,
        "{} {} {}",
        times(12),
        times(15),
        times(100)
    );
    let by = |c: i128| ands(&|b, x| vec![b.div(x, &Uint::constant(c, 32))]);
    assert_eq!((by(1), by(64)), (0, 0));
    assert!(by(10) <= 4 * 32 && by(100) <= 7 * 32, "{} {}", by(10), by(100));
    let narrow = build(&[32, 8], |b, x| vec![b.mul_wide(&x[0], &x[1].resize(32))]).stats().and;
    assert!(narrow <= 2 * 8 * 32, "{narrow}");
    let narrow = build(&[32, 8], |b, x| vec![b.div(&x[0], &x[1].resize(32))]).stats().and;
    assert!(narrow <= 9 * 32 + 48, "{narrow}");
}

#[test]
fn and_counts_are_at_or_under_the_best_public_circuits() {
    let ands = |name: &str| named::find(name).unwrap().circuit.stats().and;
    for (name, most) in [
        ("aes128", 6_400),
        ("aes192", 7_168),
        ("aes256", 8_832),
        ("sha1", 37_300),
        ("sha256", 22_573),
        ("sha512", 57_947),
        ("keccak-f", 38_400),
        ("add32", 31),
        ("add64", 63),
        ("sub64", 63),
        ("millionaires32", 32),
        ("eq64", 63),
        ("mulwide32", 2_016),
        ("mul64", 4_033),
        ("div64", 4_664),
        ("hamming1600", 1_597),
    ] {
        assert!(ands(name) <= most, "{name}: {} AND gates, at most {most}", ands(name));
        println!("{name} {}", ands(name));
    }
    let full = |f: fn(&mut Builder, &Uint, &Uint) -> Uint| {
        build(&[512, 256], |b, x| vec![f(b, &x[1], &x[0])]).stats().and
    };
    let sha256 = full(sha2_circuit::compress_256);
    println!("sha256 compression with a free state: {sha256}");
    assert!(sha256 <= 22_573, "SHA-256 with a free state: {sha256} AND gates");
    let sha512 = build(&[1024, 512], |b, x| vec![sha2_circuit::compress_512(b, &x[1], &x[0])]).stats().and;
    println!("sha512 compression with a free state: {sha512}");
    assert!(sha512 <= 57_947, "SHA-512 with a free state: {sha512} AND gates");
}

/// Every row of the page of circuits is what the circuit has, and every built-in name has a row.
#[test]
fn the_table_of_circuits_is_true() {
    let page = include_str!("../../../../docs/circuits.md");
    let mut rows = Vec::new();
    let table = page.lines().skip_while(|line| !line.starts_with("| name ")).skip(2);
    for line in table.take_while(|line| !line.is_empty()) {
        let cells: Vec<&str> = line.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let function = named::find(cells[1]).unwrap_or_else(|| panic!("{} is no function", cells[1]));
        let stats = function.circuit.stats();
        let widths = |widths: &[u32]| widths.iter().map(u32::to_string).collect::<Vec<_>>().join(" + ");
        let shape = function.circuit.shape();
        let expected = format!(
            "{} | {} | {} | {}",
            widths(&shape.inputs),
            widths(&shape.outputs),
            stats.and,
            stats.and_depth
        );
        assert_eq!(cells[2..6].join(" | "), expected, "{}", cells[1]);
        if let Ok(best) = cells[6].parse::<u64>() {
            assert!(stats.and <= best, "{}: {} AND gates, {best} are known", cells[1], stats.and);
        }
        rows.push(cells[1]);
    }
    for (stem, ..) in named::list() {
        let named = |row: &&str| row.strip_prefix(stem).is_some_and(|size| size.parse::<u32>().is_ok());
        assert!(rows.iter().any(|row| *row == stem || named(row)), "{stem} has no row");
    }
}

#[test]
fn sbox_has_32_and_gates_and_is_right_everywhere() {
    let circuit = build(&[8], |b, x| vec![Uint::from_bits(aes_circuit::sbox(b, x[0].bits()))]);
    assert_eq!(circuit.stats().and, 32);
    // Through AES itself: with key zero, the first round key is zero, and RustCrypto has no bare S-box; so
    // compare with the definition, inversion and an affine map.
    let mul = |mut a: u8, mut b: u8| {
        let mut p = 0;
        while b != 0 {
            if b & 1 == 1 {
                p ^= a;
            }
            a = (a << 1) ^ ((a >> 7) * 0x1b);
            b >>= 1;
        }
        p
    };
    for x in 0..=255u8 {
        let inverse = (0..=255u8).find(|&y| mul(x, y) == 1).unwrap_or(0);
        let expected = (0..5).fold(0x63, |acc, i| acc ^ inverse.rotate_left(i));
        assert_eq!(run(&circuit, &[x.into()]), [u128::from(expected)], "S-box of {x}");
    }
}

#[test]
fn aes_matches_rustcrypto_and_fips_197() {
    fn check<C: KeyInit + BlockCipherEncrypt>(name: &str, key_bytes: usize, fips: &str) {
        let circuit = named::find(name).unwrap().circuit;
        let mut prg = prg(3);
        let mut cases: Vec<(Vec<u8>, Vec<u8>)> = vec![
            ((0..key_bytes as u8).collect(), (0..16).map(|i| i * 0x11).collect()),
            (vec![0; key_bytes], vec![0; 16]),
            (vec![0xff; key_bytes], vec![0xff; 16]),
        ];
        for _ in 0..20 {
            let mut case = (vec![0; key_bytes], vec![0; 16]);
            prg.fill_bytes(&mut case.0);
            prg.fill_bytes(&mut case.1);
            cases.push(case);
        }
        for (i, (key, plain)) in cases.iter().enumerate() {
            let out = to_be(&evaluate(&circuit, &[from_be(key), from_be(plain)])[0]);
            let cipher = C::new_from_slice(key).unwrap();
            let mut expected = aes::cipher::Block::<C>::try_from(plain.as_slice()).unwrap();
            cipher.encrypt_block(&mut expected);
            assert_eq!(out, expected.as_slice(), "{name}, case {i}");
            if i == 0 {
                let hex: String = out.iter().map(|b| format!("{b:02x}")).collect();
                assert_eq!(hex, fips);
            }
        }
    }
    check::<aes::Aes128>("aes128", 16, "69c4e0d86a7b0430d8cdb78070b4c55a");
    check::<aes::Aes192>("aes192", 24, "dda97ca4864cdfe06eaf70a0ec0d7191");
    check::<aes::Aes256>("aes256", 32, "8ea2b7ca516745bfeafc49904b496089");
}

/// Pads as SHA-1 and SHA-2 do.
fn padded(message: &[u8], block: usize) -> Vec<u8> {
    let mut out = message.to_vec();
    out.push(0x80);
    let length_bytes = block / 8;
    while out.len() % block != block - length_bytes {
        out.push(0);
    }
    out.resize(out.len() + length_bytes - 8, 0);
    out.extend((8 * message.len() as u64).to_be_bytes());
    out
}

fn hash_by_circuit(
    message: &[u8],
    block: usize,
    initial: Uint,
    compress: fn(&mut Builder, &Uint, &Uint) -> Uint,
) -> Vec<u8> {
    let width = initial.bits().len() as u32;
    let circuit = build(&[width, 8 * block as u32], |b, x| vec![compress(b, &x[0], &x[1])]);
    let mut state =
        BitVec::from_bools(&initial.bits().iter().map(|b| b.known().unwrap()).collect::<Vec<_>>());
    for chunk in padded(message, block).chunks(block) {
        state = evaluate(&circuit, &[state, from_be(chunk)]).swap_remove(0);
    }
    to_be(&state)
}

#[test]
fn hashes_match_rustcrypto() {
    let mut prg = prg(4);
    for length in [0, 3, 55, 56, 64, 111, 112, 200] {
        let mut message = vec![0; length];
        prg.fill_bytes(&mut message);
        if length == 3 {
            message = b"abc".to_vec();
        }
        let sha1 = hash_by_circuit(&message, 64, sha1_circuit::initial_state(), sha1_circuit::compress);
        assert_eq!(sha1, sha1::Sha1::digest(&message).as_slice(), "SHA-1 of {length} bytes");
        let sha256 =
            hash_by_circuit(&message, 64, sha2_circuit::initial_state_256(), sha2_circuit::compress_256);
        assert_eq!(sha256, sha2::Sha256::digest(&message).as_slice(), "SHA-256 of {length} bytes");
        let sha512 =
            hash_by_circuit(&message, 128, sha2_circuit::initial_state_512(), sha2_circuit::compress_512);
        assert_eq!(sha512, sha2::Sha512::digest(&message).as_slice(), "SHA-512 of {length} bytes");
    }
}

#[test]
fn keccak_gives_sha3() {
    let circuit = build(&[1600], |b, x| vec![keccak::permute(b, &x[0])]);
    assert_eq!(circuit.stats().and, 38_400);
    let mut prg = prg(5);
    for length in [0, 1, 135, 136, 300] {
        let mut message = vec![0; length];
        prg.fill_bytes(&mut message);
        let mut padded = message.clone();
        padded.push(0x06);
        padded.resize(padded.len().next_multiple_of(136), 0);
        *padded.last_mut().unwrap() |= 0x80;
        let mut state = vec![0u8; 200];
        for chunk in padded.chunks(136) {
            state.iter_mut().zip(chunk).for_each(|(s, c)| *s ^= c);
            state = evaluate(&circuit, &[BitVec::from_bytes(&state, 1600)])[0].as_bytes().to_vec();
        }
        assert_eq!(&state[..32], sha3::Sha3_256::digest(&message).as_slice(), "{length} bytes");
    }
}

#[test]
fn named_hashes_take_their_halves_in_order() {
    let mut prg = prg(6);
    let mut bytes = [0u8; 64];
    prg.fill_bytes(&mut bytes);
    let (garbler, evaluator) = bytes.split_at(32);
    let circuit = named::find("sha256").unwrap().circuit;
    let out = evaluate(&circuit, &[from_be(garbler), from_be(evaluator)]);
    let state = sha2_circuit::initial_state_256();
    let expected = build(&[512], |b, x| vec![sha2_circuit::compress_256(b, &state, &x[0])]);
    assert!(out == evaluate(&expected, &[from_be(&bytes)]));
    let shared = named::find("sha256-shared").unwrap().circuit;
    let message: Vec<u8> = garbler.iter().zip(evaluator).map(|(g, e)| g ^ e).collect();
    let out = evaluate(&shared, &[from_be(garbler), from_be(evaluator)]);
    assert_eq!(to_be(&out[0]), sha2::Sha256::digest(&message).as_slice());
}

#[test]
fn networks_sort_every_pattern_of_zeros_and_ones() {
    // The 0–1 principle: a network sorts everything if it sorts all 0–1 sequences.
    for lines in 1..=12usize {
        for network in [sort::odd_even_merge(lines), sort::bitonic(lines)] {
            for pattern in 0..1u32 << lines {
                let mut values: Vec<u32> = (0..lines).map(|i| pattern >> i & 1).collect();
                for &(low, high) in &network {
                    if values[low] > values[high] {
                        values.swap(low, high);
                    }
                }
                assert!(values.is_sorted(), "{lines} lines, pattern {pattern:b}");
            }
        }
    }
}

#[test]
fn sort_argmin_and_lookup_match_the_standard_library() {
    let mut prg = prg(7);
    let sort_circuit = named::find("sort20").unwrap();
    let shared_circuit = named::find("sort-shared20").unwrap();
    let argmin_circuit = named::find("argmin20").unwrap();
    let lookup_circuit = named::find("lookup100").unwrap();
    for round in 0..10 {
        let bound = if round < 5 { 8 } else { 1 << 32 };
        let mut values: Vec<u64> = (0..20).map(|_| prg.below(bound)).collect();
        let text: Vec<String> = values.iter().map(|v| v.to_string()).collect();
        let mut inputs = value::parse(&sort_circuit.garbler, &text[..10].join(",")).unwrap();
        inputs.extend(value::parse(&sort_circuit.evaluator, &text[10..].join(" ")).unwrap());
        let smallest = (0..20).min_by_key(|&i| values[i]).unwrap();
        assert_eq!(to_u128(&evaluate(&argmin_circuit.circuit, &inputs)[0]), smallest as u128);
        let sorted = evaluate(&sort_circuit.circuit, &inputs);
        let masks: Vec<u64> = (0..20).map(|_| prg.below(1 << 32)).collect();
        let shares = |xor: &dyn Fn(usize) -> u64| {
            let text: Vec<String> = (0..20).map(|i| xor(i).to_string()).collect();
            value::parse(&shared_circuit.garbler, &text.join(",")).unwrap()
        };
        let inputs = [shares(&|i| masks[i]), shares(&|i| masks[i] ^ values[i])].concat();
        let shared_sorted = evaluate(&shared_circuit.circuit, &inputs);
        values.sort();
        let expected: Vec<String> = values.iter().map(|v| format!("0x{v:08x}")).collect();
        assert_eq!(hex(&sort_circuit.outputs[0], &sorted[0]), expected.join(","));
        assert_eq!(hex(&shared_circuit.outputs[0], &shared_sorted[0]), expected.join(","));

        let table: Vec<u64> = (0..100).map(|_| prg.below(1 << 32)).collect();
        let text: Vec<String> = table.iter().map(|v| format!("{v:#x}")).collect();
        let mut inputs = value::parse(&lookup_circuit.garbler, &text.join("\n")).unwrap();
        let index = prg.below(128);
        inputs.push(from_u128(index.into(), 7));
        let expected = table.get(index as usize).copied().unwrap_or(0);
        assert_eq!(to_u128(&evaluate(&lookup_circuit.circuit, &inputs)[0]), expected.into());
    }
}

#[test]
fn public_tables_are_looked_up_with_few_gates() {
    let mut prg = prg(8);
    for (bits, width, most) in [(1u32, 8, 0), (4, 4, 11), (8, 1, 37), (8, 64, 247)] {
        let table: Vec<u128> = (0..1 << bits).map(|_| prg.block().to_u128() & mask(width)).collect();
        let circuit = build(&[bits], |b, x| vec![search::lookup_public(b, &table, width, &x[0])]);
        assert!(circuit.stats().and <= most, "{bits} to {width}: {}", circuit.stats().and);
        for (i, &entry) in table.iter().enumerate() {
            assert_eq!(run(&circuit, &[i as u128]), [entry]);
        }
    }
}

#[test]
fn modular_arithmetic_matches_machine_arithmetic() {
    let mut prg = prg(9);
    let power = |base: u128, exponent: u128, modulus: u128| {
        let mut out = 1 % modulus;
        for i in (0..64).rev() {
            out = out * out % modulus;
            if exponent >> i & 1 == 1 {
                out = out * base % modulus;
            }
        }
        out
    };
    for modulus in [3u128, 251, 65_521, 4_294_967_291, 0xffff_ffff_ffff_ffc5, 0x8000_0000_0000_0001] {
        let width = 128 - modulus.leading_zeros();
        let bits = (0..width).map(|i| modulus >> i & 1 == 1).collect();
        let m = Modulus::new(bits).unwrap();
        let circuit = build(&[width, 10], |b, x| vec![b.mod_pow(&x[0], &x[1], &m)]);
        for &base in &samples(width as usize, 4, &mut prg) {
            for exponent in [0, 1, 2, 1023, prg.below(1024)] {
                let expected = power(base % modulus, exponent.into(), modulus);
                assert_eq!(
                    run(&circuit, &[base, exponent.into()]),
                    [expected],
                    "{base}^{exponent} mod {modulus}"
                );
            }
        }
    }
    assert!(Modulus::new(vec![false, true]).is_none(), "an even modulus");
    let circuit = build(&[12, 6, 12], |b, x| vec![b.mod_pow_secret(&x[0], &x[1], &x[2])]);
    for _ in 0..40 {
        let (base, exponent, modulus) = (prg.below(4096), prg.below(64), prg.below(4095) + 1);
        let expected = power((base % modulus).into(), exponent.into(), modulus.into());
        assert_eq!(run(&circuit, &[base.into(), exponent.into(), modulus.into()]), [expected]);
    }
    let modexp = named::find("modexp32").unwrap();
    let expected = power(1_234_567, 89_101_112, 4_294_967_291);
    assert_eq!(run(&modexp.circuit, &[1_234_567, 89_101_112]), [expected]);
}

#[test]
fn wide_products_match_products_of_halves() {
    // Karatsuba at 256 bits against the same product from 64-bit limbs in machine arithmetic.
    let circuit =
        build(&[256, 256], |b, x| vec![b.mul_wide(&x[0], &x[1]), b.square_wide(&x[0]), b.mul(&x[0], &x[1])]);
    assert!(circuit.stats().and < 2 * (2 * 256 * 256 - 256), "Karatsuba saves gates");
    let mut prg = prg(10);
    let multiply = |x: &[u64; 4], y: &[u64; 4]| {
        let mut out = [0u64; 8];
        for (i, &a) in x.iter().enumerate() {
            let mut carry = 0u128;
            for (j, &c) in y.iter().enumerate() {
                let t = u128::from(a) * u128::from(c) + u128::from(out[i + j]) + carry;
                out[i + j] = t as u64;
                carry = t >> 64;
            }
            out[i + 4] = carry as u64;
        }
        out
    };
    let bits = |limbs: &[u64]| {
        let bytes: Vec<u8> = limbs.iter().flat_map(|l| l.to_le_bytes()).collect();
        BitVec::from_bytes(&bytes, 64 * limbs.len())
    };
    for round in 0..8 {
        let mut draw = || [0; 4].map(|_: u64| if round == 0 { u64::MAX } else { prg.u64() });
        let (x, y) = (draw(), draw());
        let out = evaluate(&circuit, &[bits(&x), bits(&y)]);
        let product = multiply(&x, &y);
        assert!(out[0] == bits(&product), "product");
        assert!(out[1] == bits(&multiply(&x, &x)), "square");
        assert!(out[2] == bits(&product[..4]), "low half");
    }
}

#[test]
fn sixty_four_instances_at_once_equal_one_by_one() {
    let circuit = named::find("mul32").unwrap().circuit;
    let mut prg = prg(11);
    let words: Vec<[u64; 2]> = (0..64).map(|_| [prg.u64(), prg.u64()]).collect();
    let together = evaluate_words(&circuit, &words);
    for instance in 0..128 {
        let bit = |word: &[u64; 2]| word[instance / 64] >> (instance % 64) & 1 == 1;
        let read = |range: core::ops::Range<usize>| {
            words[range].iter().enumerate().fold(0u128, |acc, (i, w)| acc | (bit(w) as u128) << i)
        };
        let expected = (read(0..32) * read(32..64)) & mask(32);
        let got = together.iter().enumerate().fold(0u128, |acc, (i, w)| acc | (bit(w) as u128) << i);
        assert_eq!(got, expected);
    }
}

#[test]
fn constants_fold_and_equal_gates_are_shared() {
    let circuit = build(&[8, 8], |b, x| {
        let five = Uint::constant(5, 8);
        let six = Uint::constant(6, 8);
        let thirty = b.mul(&five, &six);
        let left = b.and(x[0].bits()[0], x[1].bits()[0]);
        let right = b.and(!x[1].bits()[0], x[0].bits()[0]);
        vec![thirty, Uint::from_bits(vec![left, right])]
    });
    assert_eq!(circuit.stats().and, 1, "one AND serves both signs of an operand");
    assert_eq!(run(&circuit, &[1, 0]), [30, 2]);
    assert_eq!(run(&circuit, &[1, 1]), [30, 1]);
}

#[test]
#[should_panic(expected = "after its region ended")]
fn a_bit_that_left_its_region_is_refused() {
    let mut b = Builder::new();
    let x = b.input(2);
    let mut leaked = Bit::ZERO;
    b.region(|b| leaked = b.and(x.bits()[0], x.bits()[1]));
    b.xor(leaked, x.bits()[0]);
}

#[test]
fn names_and_sizes_are_checked() {
    assert!(named::find("nonsense").is_none());
    assert!(named::find("add0").is_none());
    assert!(named::find("sort99999").is_none());
    assert!(named::find("aes1288").is_none());
    for (stem, size, limit, about) in named::list() {
        let function = named::find(stem).unwrap();
        assert!(!about.is_empty());
        let widths: Vec<u32> = function.garbler.iter().chain(&function.evaluator).map(|f| f.bits()).collect();
        assert_eq!(function.circuit.shape().inputs, widths, "{stem}");
        let widths: Vec<u32> = function.outputs.iter().map(|f| f.bits()).collect();
        assert_eq!(function.circuit.shape().outputs, widths, "{stem}");
        assert!(size.is_none_or(|s| s <= limit));
        assert_eq!(function.owners().len(), function.circuit.shape().inputs.len());
    }
}

#[test]
fn values_are_parsed_and_written() {
    let byte = value::Field::number("x", 8);
    let signed = byte.in_twos_complement();
    let read = |field, text: &str| value::parse(&[field], text).map(|bits| to_u128(&bits[0]));
    assert_eq!(read(byte, "0xfe"), Ok(0xfe));
    assert_eq!(read(byte, "255"), Ok(255));
    assert_eq!(read(byte, "0x00000000000000000001"), Ok(1));
    assert_eq!(read(byte, "000000000000000000000000007"), Ok(7));
    assert_eq!(read(signed, "-1"), Ok(0xff));
    assert_eq!(read(signed, "-128"), Ok(0x80));
    assert_eq!(read(signed, "127"), Ok(127));
    assert_eq!(read(signed, "0xff"), Ok(0xff));
    for (field, wrong) in [(byte, "256"), (byte, "0x100"), (byte, "-1"), (signed, "128"), (signed, "-129")] {
        assert!(matches!(read(field, wrong), Err(value::ValueError::Range { .. })), "{wrong}");
    }
    for wrong in ["", "0x", "12a", "1,2", "--1", "+1", "0xg"] {
        assert!(read(byte, wrong).is_err(), "{wrong:?}");
    }
    let wide = value::Field::number("x", 200);
    let decimal = "1606938044258990275541962092341162602522202993782792835301375"; // 2^200 − 1
    let bits = &value::parse(&[wide], decimal).unwrap()[0];
    assert_eq!(hex(&wide, bits), format!("0x{}", "f".repeat(50)));
    assert!(value::parse(&[wide], "1606938044258990275541962092341162602522202993782792835301376").is_err());
    // However far beyond the width the digits that do not fit stand.
    for width in [1, 5, 20, 31, 32, 33, 61, 64, 128, 200] {
        let field = value::Field::number("x", width);
        for digits in 1..=width as usize {
            let hex = format!("0x1{}1", "0".repeat(digits));
            let fits = 4 * (digits + 1) < width as usize;
            assert_eq!(value::parse(&[field], &hex).is_ok(), fits, "{width}: {hex}");
            // 2^96 + 1 and the like are 1 in few limbs.
            let roomy = value::Field::number("x", 4 * (digits as u32 + 2));
            let bits = &value::parse(&[roomy], &hex).unwrap()[0];
            let decimal = value::format(&roomy, bits, value::Format::Decimal);
            assert_eq!(value::parse(&[field], &decimal).is_ok(), fits, "{width}: {decimal}");
        }
    }
    let odd = value::Field::list("x", 5, 2);
    let bits = &value::parse(&[odd], "0x1f, 3").unwrap()[0];
    assert_eq!(hex(&odd, bits), "0x1f,0x03");
}

#[test]
fn a_value_that_does_not_fit_is_refused_by_width_and_kind_and_not_shown() {
    let cases = [
        (
            value::Field::number("age", 8),
            "256",
            "age: the value does not fit 8 bits; an unsigned number of 8 bits, 0 to 255",
        ),
        (value::Field::number("age", 8), "-7", "an unsigned number of 8 bits, 0 to 255"),
        (value::Field::signed("gain", 8), "128", "a signed number of 8 bits, -128 to 127"),
        (value::Field::signed("gain", 8), "-129", "a signed number of 8 bits, -128 to 127"),
        (value::Field::signed("gain", 8), "0x1ff", "a signed number of 8 bits"),
        (
            value::Field::signed("gain", 100),
            &"9".repeat(40),
            "a signed number of 100 bits, -2^99 to 2^99 - 1",
        ),
        (value::Field::number("key", 128), &format!("0x1{}", "7".repeat(32)), "of 128 bits, 0 to 2^128 - 1"),
        (value::Field::number("bit", 1), "2", "does not fit 1 bit; an unsigned number of 1 bit, 0 to 1"),
        (value::Field::flag("flag"), "2", "a flag, 0 or 1"),
        (
            value::Field::number("age", 8),
            "1x",
            "neither 0x… hex nor a decimal integer; an unsigned number of 8 bits",
        ),
    ];
    for (field, text, said) in cases {
        let error = value::parse(&[field], text).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
        let digits = text.trim_start_matches(['-', '0', 'x']);
        // Of what was given nothing shows, as far as it is longer than a digit.
        assert!(digits.len() < 2 || !error.replace(&field.range(), "").contains(digits), "{error}");
    }
}

/// Decimals and hex, written and read again, at every width up to two words, and against the machine's own.
#[test]
fn values_come_back_from_either_form() {
    let mut prg = prg(31);
    for width in 1..=130u32 {
        let mut values: Vec<BitVec> = (0..6).map(|_| BitVec::random(width as usize, &mut prg)).collect();
        values.push(BitVec::zeros(width as usize));
        values.push(BitVec::from_bools(&vec![true; width as usize]));
        let mut lowest = BitVec::zeros(width as usize);
        lowest.set(width as usize - 1, true);
        values.push(lowest);
        for field in [value::Field::number("x", width), value::Field::signed("x", width)] {
            for bits in &values {
                for format in [value::Format::Hex, value::Format::Decimal] {
                    let text = value::format(&field, bits, format);
                    assert!(value::parse(&[field], &text).unwrap()[0] == *bits, "{width} bits: {text}");
                }
                let text = value::format(&field, bits, value::Format::Decimal);
                if width <= 127 {
                    let x = to_u128(bits);
                    let signed = field.kind == value::Kind::Signed;
                    let value = if signed { signed_value(x, width) } else { x as i128 };
                    assert_eq!(text, value.to_string(), "{width} bits");
                }
            }
        }
    }
    let list = value::Field { kind: value::Kind::Signed, ..value::Field::list("x", 5, 3) };
    let bits = &value::parse(&[list], "-16, 15 0x1f").unwrap()[0];
    assert_eq!(value::format(&list, bits, value::Format::Decimal), "-16,15,-1");
    assert_eq!(hex(&list, bits), "0x10,0x0f,0x1f");
}

fn signed_value(x: u128, width: u32) -> i128 {
    signed(x, width as usize)
}

/// Every function that says when its result is not the true one, against plain Rust: all pairs of bytes, and
/// edge and random values of the machine's other widths.
#[test]
fn overflow_and_division_by_zero_are_those_of_plain_rust() {
    macro_rules! against {
        ($unsigned:ty, $signed:ty, $pairs:expr) => {
            let pairs: Vec<($unsigned, $unsigned)> = $pairs;
            let bits = <$unsigned>::BITS;
            let flag = |flag: bool| u128::from(flag);
            let by_zero = |x: $signed, y: $signed, overflowing: fn($signed, $signed) -> ($signed, bool)| {
                let (result, overflow) = overflowing(x, y);
                vec![result as $unsigned as u128, flag(overflow), 0]
            };
            let check = |stem: &str, expected: &dyn Fn($unsigned, $unsigned) -> Vec<u128>| {
                let function = named::find(&format!("{stem}{bits}")).unwrap();
                for pairs in pairs.chunks(64) {
                    // Instance k's bits stand in bit k of the words.
                    let mut words = vec![[0u64]; 2 * bits as usize];
                    for (k, &(x, y)) in pairs.iter().enumerate() {
                        for i in 0..bits as usize {
                            words[i][0] |= ((x >> i & 1) as u64) << k;
                            words[bits as usize + i][0] |= ((y >> i & 1) as u64) << k;
                        }
                    }
                    let outputs = evaluate_words(&function.circuit, &words);
                    for (k, &(x, y)) in pairs.iter().enumerate() {
                        let mut wires = outputs.iter().map(|word| u128::from(word[0] >> k & 1));
                        let got: Vec<u128> = function
                            .outputs
                            .iter()
                            .map(|field| (0..field.width).map(|i| wires.next().unwrap() << i).sum())
                            .collect();
                        assert_eq!(got, expected(x, y), "{stem}{bits} of {x} and {y}");
                    }
                }
            };
            let pair = |(result, overflow): ($unsigned, bool)| vec![result as u128, flag(overflow)];
            let signed_pair =
                |(result, overflow): ($signed, bool)| vec![result as $unsigned as u128, flag(overflow)];
            check("checked-add", &|x, y| pair(x.overflowing_add(y)));
            check("checked-sub", &|x, y| pair(x.overflowing_sub(y)));
            check("checked-mul", &|x, y| pair(x.overflowing_mul(y)));
            check("checked-div", &|x, y| {
                x.checked_div(y).map_or(vec![<$unsigned>::MAX as u128, 1], |q| vec![q as u128, 0])
            });
            check("checked-mod", &|x, y| x.checked_rem(y).map_or(vec![x as u128, 1], |r| vec![r as u128, 0]));
            check("signed-add", &|x, y| signed_pair((x as $signed).overflowing_add(y as $signed)));
            check("signed-sub", &|x, y| signed_pair((x as $signed).overflowing_sub(y as $signed)));
            check("signed-mul", &|x, y| signed_pair((x as $signed).overflowing_mul(y as $signed)));
            check("signed-div", &|x, y| match (x as $signed, y as $signed) {
                (x, 0) => vec![if x < 0 { 1 } else { <$unsigned>::MAX as u128 }, 0, 1],
                (x, y) => by_zero(x, y, <$signed>::overflowing_div),
            });
            check("signed-mod", &|x, y| match (x as $signed, y as $signed) {
                (x, 0) => vec![x as $unsigned as u128, 0, 1],
                (x, y) => by_zero(x, y, <$signed>::overflowing_rem),
            });
            check("signed-min", &|x, y| vec![(x as $signed).min(y as $signed) as $unsigned as u128]);
            check("signed-max", &|x, y| vec![(x as $signed).max(y as $signed) as $unsigned as u128]);
            check("signed-lt", &|x, y| vec![flag((x as $signed) < (y as $signed))]);
        };
    }
    against!(u8, i8, (0..=u8::MAX).flat_map(|x| (0..=u8::MAX).map(move |y| (x, y))).collect());
    let mut prg = prg(32);
    let mut pairs = |width: usize| {
        let (xs, ys) = (samples(width, 10, &mut prg), samples(width, 10, &mut prg));
        xs.iter().flat_map(|&x| ys.iter().map(move |&y| (x, y))).collect::<Vec<_>>()
    };
    against!(u16, i16, pairs(16).into_iter().map(|(x, y)| (x as u16, y as u16)).collect());
    against!(u32, i32, pairs(32).into_iter().map(|(x, y)| (x as u32, y as u32)).collect());
    against!(u64, i64, pairs(64).into_iter().map(|(x, y)| (x as u64, y as u64)).collect());
}

/// At one bit a signed number is 0 or −1.
#[test]
fn the_narrowest_signed_numbers_overflow_too() {
    for (name, x, y, expected) in [
        ("signed-add1", 1, 1, vec![0, 1]),
        ("signed-sub1", 0, 1, vec![1, 1]),
        ("signed-mul1", 1, 1, vec![1, 1]),
        ("signed-div1", 1, 1, vec![1, 1, 0]),
        ("checked-add1", 1, 1, vec![0, 1]),
        ("checked-div1", 1, 0, vec![1, 1]),
    ] {
        assert_eq!(run(&named::find(name).unwrap().circuit, &[x, y]), expected, "{name}");
    }
}
