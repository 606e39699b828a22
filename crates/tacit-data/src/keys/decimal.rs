//! Decimals of any scale, exactly: no number of a machine is made of them.

use super::Reason;
use super::prelude::{digit, is_dash, prelude};

/// Digits of a normal form, at most: of every double-precision number those of its shortest text fit.
const MOST: u64 = 1024;

/// What a text says before its digits are put in place: `0.DIGITS` times ten to the power of `point`.
struct Parts {
    negative: bool,
    digits: String,
    point: i64,
}

/// Appends the normal form of a decimal: its digits without an exponent and without zeros that say nothing. A
/// comma parts the fraction where that is said, else a point.
pub(super) fn decimal(text: &str, comma: bool, out: &mut String) -> Result<(), Reason> {
    let Parts { negative, digits, point } = parts(&prelude(text), comma)?;
    let significant = digits.trim_start_matches('0');
    let point = point.saturating_sub((digits.len() - significant.len()) as i64);
    let significant = significant.trim_end_matches('0');
    if significant.is_empty() {
        out.push('0');
        return Ok(());
    }
    let (count, before) = (significant.len() as u64, u64::try_from(point).unwrap_or(0));
    let behind = point.unsigned_abs();
    let length = if point > 0 { count.max(before) } else { (1 + count).saturating_add(behind) };
    if length > MOST {
        return Err(Reason::Length);
    }
    if negative {
        out.push('-');
    }
    match usize::try_from(point) {
        Ok(before) if before > 0 => {
            let (whole, fraction) = significant.split_at(before.min(significant.len()));
            out.push_str(whole);
            out.extend(std::iter::repeat_n('0', before - whole.len()));
            if !fraction.is_empty() {
                out.push('.');
                out.push_str(fraction);
            }
        }
        _ => {
            out.push_str("0.");
            out.extend((0..behind).map(|_| '0'));
            out.push_str(significant);
        }
    }
    Ok(())
}

fn parts(seen: &str, comma: bool) -> Result<Parts, Reason> {
    let mark = if comma { ',' } else { '.' };
    let (negative, rest) = signed(seen);
    if rest.is_empty() {
        return Err(if seen.is_empty() { Reason::Empty } else { Reason::Form });
    }
    let (mut digits, mut point, mut exponent) = (String::new(), None, 0);
    for (at, c) in rest.char_indices() {
        match digit(c) {
            Some(value) => digits.push((b'0' + value).into()),
            None if c == mark && point.is_none() => point = Some(digits.len()),
            None if c == 'e' || c == 'E' => {
                exponent = power(&rest[at + 1..])?;
                break;
            }
            // Thousands in one country are a fraction in another.
            None if c.is_whitespace() || ",.'_\u{2019}".contains(c) => return Err(Reason::Ambiguous),
            None => return Err(Reason::Character),
        }
    }
    if digits.is_empty() {
        return Err(Reason::Form);
    }
    let point = point.unwrap_or(digits.len()) as i64;
    Ok(Parts { negative, digits, point: point.saturating_add(exponent) })
}

fn signed(text: &str) -> (bool, &str) {
    match text.chars().next() {
        Some('+') => (false, &text[1..]),
        Some(c) if is_dash(c) => (true, &text[c.len_utf8()..]),
        _ => (false, text),
    }
}

/// The exponent, or a larger one than any that can be written out.
fn power(text: &str) -> Result<i64, Reason> {
    const HUGE: i64 = 1 << 40;
    let (negative, digits) = signed(text);
    let mut value = 0i64;
    for c in digits.chars() {
        let digit = digit(c).ok_or(Reason::Character)?;
        value = (value * 10 + i64::from(digit)).min(HUGE);
    }
    match digits.is_empty() {
        true => Err(Reason::Form),
        false => Ok(if negative { -value } else { value }),
    }
}
