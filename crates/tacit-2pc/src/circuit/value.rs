//! Values as text: hex with the most significant digit first, decimal integers; hex out.

use tacit_crypto::BitVec;

/// How the bits of an input or output are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// What it is.
    pub name: &'static str,
    /// Bits of one value.
    pub width: u32,
    /// Number of values; the first is in the lowest bits.
    pub count: u32,
    /// Whether a value is in two's complement.
    pub signed: bool,
}

impl Field {
    /// One unsigned number of `width` bits.
    pub const fn number(name: &'static str, width: u32) -> Field {
        Field { name, width, count: 1, signed: false }
    }

    /// `count` unsigned numbers of `width` bits.
    pub const fn list(name: &'static str, width: u32, count: u32) -> Field {
        Field { name, width, count, signed: false }
    }

    /// Bits of all values.
    pub const fn bits(&self) -> u32 {
        self.width * self.count
    }
}

/// Why a text is no value of a field. Contains nothing of the text, which may be secret.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// The number of values is wrong.
    #[error("{name}: {expected} values expected, {given} given")]
    Count {
        /// The field.
        name: &'static str,
        /// Values expected.
        expected: usize,
        /// Values given.
        given: usize,
    },
    /// Not a number.
    #[error("{name}: value {index} is neither 0x… hex nor a decimal integer")]
    Syntax {
        /// The field.
        name: &'static str,
        /// Which value, from one.
        index: usize,
    },
    /// Too large or too small.
    #[error("{name}: value {index} does not fit {width} bits")]
    Range {
        /// The field.
        name: &'static str,
        /// Which value, from one.
        index: usize,
        /// The bits there are.
        width: u32,
    },
}

/// Reads one party's fields from `text`: values separated by commas or white space, one field after the other.
///
/// A value is `0x…`, most significant digit first, or a decimal integer, negative where the field is signed. Leading
/// zeros may be left out.
pub fn parse(fields: &[Field], text: &str) -> Result<Vec<BitVec>, ValueError> {
    let tokens: Vec<&str> =
        text.split(|c: char| c == ',' || c.is_whitespace()).filter(|t| !t.is_empty()).collect();
    let expected = fields.iter().map(|f| f.count as usize).sum::<usize>();
    if tokens.len() != expected {
        let name = fields.first().map_or("input", |f| f.name);
        return Err(ValueError::Count { name, expected, given: tokens.len() });
    }
    let mut tokens = tokens.into_iter();
    let mut out = Vec::with_capacity(fields.len());
    for field in fields {
        let mut bits = BitVec::zeros(field.bits() as usize);
        for (index, token) in tokens.by_ref().take(field.count as usize).enumerate() {
            let offset = index * field.width as usize;
            parse_one(field, index + 1, token, &mut |bit, value| bits.set(offset + bit, value))?;
        }
        out.push(bits);
    }
    Ok(out)
}

fn parse_one(
    field: &Field,
    index: usize,
    token: &str,
    set: &mut dyn FnMut(usize, bool),
) -> Result<(), ValueError> {
    let syntax = ValueError::Syntax { name: field.name, index };
    let range = ValueError::Range { name: field.name, index, width: field.width };
    let (negative, digits) = match token.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, token),
    };
    let (radix, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => (16, hex),
        None => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(syntax);
    }
    let digits = digits.trim_start_matches('0');
    // No number of w bits has more than w digits, so long texts are refused before they cost anything.
    if digits.len() > field.width as usize {
        return Err(range);
    }
    let mut limbs = vec![0u32; field.width as usize / 32 + 2];
    for c in digits.chars() {
        let mut carry = u64::from(c.to_digit(radix).ok_or(syntax.clone())?);
        for limb in &mut limbs {
            let t = u64::from(*limb) * u64::from(radix) + carry;
            *limb = t as u32;
            carry = t >> 32;
        }
    }
    let bit = |limbs: &[u32], i: usize| limbs.get(i / 32).is_some_and(|l| l >> (i % 32) & 1 == 1);
    let width = field.width as usize;
    let length = (0..limbs.len() * 32).rev().find(|&i| bit(&limbs, i)).map_or(0, |i| i + 1);
    let signed_decimal = field.signed && (negative || radix == 10);
    let fits = if signed_decimal {
        // Magnitudes up to 2^(w−1) − 1, or 2^(w−1) with the minus.
        let lowest = length == width && width > 0 && (0..width - 1).all(|i| !bit(&limbs, i));
        length < width || (negative && lowest)
    } else {
        length <= width && (!negative || length == 0)
    };
    if !fits {
        return Err(range);
    }
    let mut borrow = negative;
    for i in 0..width {
        // Two's complement: invert and add one.
        let plain = bit(&limbs, i);
        let value = if negative { !plain ^ borrow } else { plain };
        borrow = borrow && !plain;
        set(i, value);
    }
    limbs.iter_mut().for_each(|l| *l = 0);
    Ok(())
}

/// Writes a field: `0x…`, all digits, most significant first; values of a list are separated by commas.
///
/// Panics if `bits` is not of the field's width.
pub fn format(field: &Field, bits: &BitVec) -> String {
    assert_eq!(bits.len(), field.bits() as usize, "bits of another width than the field's");
    let width = field.width as usize;
    let one = |index: usize| {
        let digits = (0..width.div_ceil(4)).rev().map(|d| {
            let bit = |i: usize| i < width && bits.get(index * width + i);
            let digit = (0..4).map(|k| u32::from(bit(4 * d + k)) << k).sum();
            char::from_digit(digit, 16).unwrap_or('0')
        });
        format!("0x{}", digits.collect::<String>())
    };
    (0..field.count as usize).map(one).collect::<Vec<_>>().join(",")
}
