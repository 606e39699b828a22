//! Values as text: hex with the most significant digit first, or decimal integers, in and out.

use tacit_crypto::BitVec;
use tacit_crypto::text::counted;
use zeroize::Zeroizing;

/// What the bits of a value mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A number from zero on.
    Unsigned,
    /// A number in two's complement.
    Signed,
    /// A bit that says whether what the field is named after happened: an overflow, a division by zero.
    Flag,
}

/// How the bits of an input or output are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// What it is.
    pub name: &'static str,
    /// Bits of one value.
    pub width: u32,
    /// Number of values; the first is in the lowest bits.
    pub count: u32,
    /// What the bits of a value mean.
    pub kind: Kind,
}

impl Field {
    /// One unsigned number of `width` bits.
    pub const fn number(name: &'static str, width: u32) -> Field {
        Field { name, width, count: 1, kind: Kind::Unsigned }
    }

    /// One number of `width` bits in two's complement.
    pub const fn signed(name: &'static str, width: u32) -> Field {
        Field { name, width, count: 1, kind: Kind::Signed }
    }

    /// One bit that says whether what `name` says happened.
    pub const fn flag(name: &'static str) -> Field {
        Field { name, width: 1, count: 1, kind: Kind::Flag }
    }

    /// `count` unsigned numbers of `width` bits.
    pub const fn list(name: &'static str, width: u32, count: u32) -> Field {
        Field { name, width, count, kind: Kind::Unsigned }
    }

    /// The same bits with numbers read in two's complement; a flag stays a flag.
    pub fn in_twos_complement(self) -> Field {
        match self.kind {
            Kind::Flag => self,
            _ => Field { kind: Kind::Signed, ..self },
        }
    }

    /// Bits of all values.
    pub const fn bits(&self) -> u32 {
        self.width * self.count
    }

    /// What the value of this number, from one, is called.
    fn at(&self, index: usize) -> String {
        match self.count {
            1 => "the value".to_owned(),
            count => format!("the value at place {index} of {count}"),
        }
    }

    /// What a value may be, for people: `an unsigned number of 8 bits, 0 to 255`.
    pub fn range(&self) -> String {
        let width = self.width;
        let bits = counted(width, "bit");
        match self.kind {
            Kind::Flag => "a flag, 0 or 1".to_owned(),
            Kind::Unsigned if width <= 64 => {
                format!("an unsigned number of {bits}, 0 to {}", (1u128 << width) - 1)
            }
            Kind::Unsigned => format!("an unsigned number of {bits}, 0 to 2^{width} - 1"),
            Kind::Signed if (1..=64).contains(&width) => {
                let half = 1i128 << (width - 1);
                format!("a signed number of {bits}, {} to {}", -half, half - 1)
            }
            Kind::Signed => {
                let half = width.saturating_sub(1);
                format!("a signed number of {bits}, -2^{half} to 2^{half} - 1")
            }
        }
    }
}

/// How values are written.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Format {
    /// `0x…`, all digits, the most significant first: the bits as they are.
    #[default]
    Hex,
    /// Decimal integers, negative where the field is signed.
    Decimal,
}

/// Why a text is no value of a field. Contains nothing of the text, which may be secret.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// The number of values is wrong.
    #[error("{name}: {} expected, {given} given", counted(*expected, "value"))]
    Count {
        /// The field.
        name: &'static str,
        /// Values expected.
        expected: usize,
        /// Values given.
        given: usize,
    },
    /// Not a number.
    #[error(
        "{}: {} is neither 0x… hex nor a decimal integer; {} is expected",
        .field.name, .field.at(*index), .field.range()
    )]
    Syntax {
        /// The field.
        field: Field,
        /// Which value, from one.
        index: usize,
    },
    /// Too large or too small.
    #[error(
        "{}: {} does not fit {}; {} is expected",
        .field.name, .field.at(*index), counted(.field.width, "bit"), .field.range()
    )]
    Range {
        /// The field.
        field: Field,
        /// Which value, from one.
        index: usize,
    },
}

/// Reads one party's fields from `text`: values separated by commas or white space, one field after the
/// other.
///
/// A value is `0x…`, most significant digit first, or a decimal integer, negative where the field is signed.
/// Leading zeros may be left out.
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
    let syntax = ValueError::Syntax { field: *field, index };
    let range = ValueError::Range { field: *field, index };
    let signed = field.kind == Kind::Signed;
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
    let mut limbs = Zeroizing::new(vec![0u32; field.width as usize / 32 + 2]);
    let mut beyond = 0;
    for digits in digits.as_bytes().chunks(DIGITS) {
        // Digits are ASCII.
        let value = digits.iter().filter_map(|&c| char::from(c).to_digit(radix));
        let mut carry = value.fold(0, |sum, digit| sum * u64::from(radix) + u64::from(digit));
        let scale = u64::from(radix.pow(digits.len() as u32));
        for limb in limbs.iter_mut() {
            let t = u64::from(*limb) * scale + carry;
            *limb = t as u32;
            carry = t >> 32;
        }
        beyond |= carry;
    }
    if beyond != 0 {
        return Err(range);
    }
    let bit = |i: usize| limbs.get(i / 32).is_some_and(|l| l >> (i % 32) & 1 == 1);
    let width = field.width as usize;
    let length = (0..limbs.len() * 32).rev().find(|&i| bit(i)).map_or(0, |i| i + 1);
    let fits = if signed && (negative || radix == 10) {
        // Magnitudes up to 2^(w−1) − 1, or 2^(w−1) with the minus.
        let lowest = length == width && width > 0 && (0..width - 1).all(|i| !bit(i));
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
        let plain = bit(i);
        let value = if negative { !plain ^ borrow } else { plain };
        borrow = borrow && !plain;
        set(i, value);
    }
    Ok(())
}

/// Digits that are read or written at a time: as many as fit 32 bits in either radix.
const DIGITS: usize = 7;

/// Writes a field; values of a list are separated by commas.
///
/// Panics if `bits` is not of the field's width.
pub fn format(field: &Field, bits: &BitVec, format: Format) -> String {
    assert_eq!(bits.len(), field.bits() as usize, "bits of another width than the field's");
    let one = |index: usize| {
        let bit = |i: usize| i < field.width as usize && bits.get(index * field.width as usize + i);
        match format {
            Format::Hex => hex(field.width as usize, bit),
            Format::Decimal => decimal(field, bit),
        }
    };
    (0..field.count as usize).map(one).collect::<Vec<_>>().join(",")
}

fn hex(width: usize, bit: impl Fn(usize) -> bool) -> String {
    let digits = (0..width.div_ceil(4)).rev().map(|d| {
        let digit = (0..4).map(|k| u32::from(bit(4 * d + k)) << k).sum();
        char::from_digit(digit, 16).unwrap_or('0')
    });
    format!("0x{}", digits.collect::<String>())
}

fn decimal(field: &Field, bit: impl Fn(usize) -> bool) -> String {
    let width = field.width as usize;
    let negative = field.kind == Kind::Signed && width > 0 && bit(width - 1);
    let mut limbs = Zeroizing::new(vec![0u32; width.div_ceil(32)]);
    let mut carry = negative;
    for i in 0..width {
        // The magnitude: invert and add one where negative.
        let plain = bit(i) ^ negative;
        limbs[i / 32] |= u32::from(plain ^ carry) << (i % 32);
        carry = carry && plain;
    }
    let mut digits = Vec::new();
    let mut length = limbs.len();
    while length > 0 {
        let mut rest = 0;
        for limb in limbs[..length].iter_mut().rev() {
            let t = rest << 32 | u64::from(*limb);
            *limb = (t / 10u64.pow(DIGITS as u32)) as u32;
            rest = t % 10u64.pow(DIGITS as u32);
        }
        for _ in 0..DIGITS {
            digits.push(char::from(b'0' + (rest % 10) as u8));
            rest /= 10;
        }
        length = limbs[..length].iter().rposition(|&limb| limb != 0).map_or(0, |last| last + 1);
    }
    while digits.last() == Some(&'0') {
        digits.pop();
    }
    if digits.is_empty() {
        digits.push('0');
    }
    let sign = if negative { "-" } else { "" };
    format!("{sign}{}", digits.iter().rev().collect::<String>())
}
