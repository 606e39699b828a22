//! Base64 (RFC 4648, section 4) by arithmetic alone: private keys go through it, so that no table is indexed by them
//! and nothing branches on them.

use alloc::string::String;
use zeroize::Zeroizing;

/// Bytes in Base64, with its padding.
pub fn encode(bytes: &[u8]) -> Zeroizing<String> {
    let mut out = Zeroizing::new(String::with_capacity(bytes.len().div_ceil(3) * 4));
    for group in bytes.chunks(3) {
        let word =
            group.iter().fold(0u32, |word, &byte| word << 8 | u32::from(byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let digit = (word >> (18 - 6 * place)) & 63;
            out.push(if place > group.len() { '=' } else { character(digit as i32) });
        }
    }
    out
}

fn character(digit: i32) -> char {
    let mut code = digit + i32::from(b'A');
    code += ((25 - digit) >> 8) & 6;
    code -= ((51 - digit) >> 8) & 75;
    code -= ((61 - digit) >> 8) & 15;
    code += ((62 - digit) >> 8) & 3;
    char::from(code as u8)
}

/// The inverse of [`encode`], for exactly 32 bytes in canonical form.
pub fn decode(text: &str) -> Option<Zeroizing<[u8; 32]>> {
    let digits = text.as_bytes().strip_suffix(b"=")?;
    if digits.len() != 43 {
        return None;
    }
    let mut out = Zeroizing::new([0u8; 32]);
    let mut invalid = 0;
    for (group, bytes) in digits.chunks(4).zip(out.chunks_mut(3)) {
        let mut word = 0i32;
        for &byte in group {
            let digit = value(i32::from(byte));
            invalid |= digit >> 8;
            word = word << 6 | (digit & 63);
        }
        word <<= 6 * (4 - group.len());
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = (word >> (16 - 8 * place)) as u8;
        }
        if bytes.len() < 3 {
            invalid |= -(word & 0xff);
        }
    }
    (invalid == 0).then_some(out)
}

/// The value of a digit, or −1.
fn value(c: i32) -> i32 {
    let within = |low: u8, high: u8| ((i32::from(low) - 1 - c) & (c - i32::from(high) - 1)) >> 8;
    let mut value = -1;
    value += within(b'A', b'Z') & (c - 64);
    value += within(b'a', b'z') & (c - 70);
    value += within(b'0', b'9') & (c + 5);
    value += within(b'+', b'+') & 63;
    value += within(b'/', b'/') & 64;
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_matches_its_alphabet() {
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        for byte in 0..=255u8 {
            let expected = alphabet.iter().position(|&c| c == byte).map_or(-1, |at| at as i32);
            assert_eq!(value(i32::from(byte)), expected, "{byte}");
        }
        for (digit, &expected) in alphabet.iter().enumerate() {
            assert_eq!(character(digit as i32), char::from(expected));
        }
        let bytes: [u8; 32] = std::array::from_fn(|i| i as u8);
        assert_eq!(encode(&bytes).as_str(), "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
        assert_eq!(*decode(&encode(&bytes)).unwrap(), bytes);
        assert!(decode("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9=").is_none(), "not canonical");
        assert!(decode("AAEC").is_none());
        assert!(decode("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdH*8=").is_none());
    }
}
