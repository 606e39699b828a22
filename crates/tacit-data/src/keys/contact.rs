//! E-mail addresses.

use super::Reason;
use super::prelude::prelude;
use unicode_normalization::UnicodeNormalization;

/// Characters of a local part only within quotes, which nobody's customers have.
const SPECIAL: &str = "\"(),:;<>[\\]";

/// Appends the normal form of an address: in lower case, the domain in ASCII. With `gmail` the dots of
/// Google's addresses and what stands behind a plus go, too.
pub(super) fn email(text: &str, gmail: bool, out: &mut String) -> Result<(), Reason> {
    let seen = prelude(text);
    if seen.is_empty() {
        return Err(Reason::Empty);
    }
    let Some((local, domain)) = seen.split_once('@').filter(|(_, domain)| !domain.contains('@')) else {
        return Err(Reason::Form);
    };
    match seen.is_ascii() {
        true => plain(&seen, local.len(), gmail, out),
        false => general(&seen, [local, domain], gmail, out),
    }
}

/// An address with any characters.
fn general(seen: &str, [local, domain]: [&str; 2], gmail: bool, out: &mut String) -> Result<(), Reason> {
    if seen.chars().any(|c| c.is_whitespace() || c.is_control() || SPECIAL.contains(c)) {
        return Err(Reason::Character);
    }
    let local = lower(local);
    let domain = ascii_domain(domain)?;
    joined(&local, &domain, gmail, out)
}

/// An address in ASCII alone, whose local part has so many bytes: the same without a copy of its parts.
fn plain(seen: &str, local: usize, gmail: bool, out: &mut String) -> Result<(), Reason> {
    if seen.bytes().any(|byte| FORBIDDEN[usize::from(byte)]) {
        return Err(Reason::Character);
    }
    let start = out.len();
    out.push_str(seen);
    out[start..].make_ascii_lowercase();
    if out.ends_with('.') {
        out.pop();
    }
    let (mut labels, mut numeric) = (0, false);
    for label in out[start + local + 1..].split('.') {
        check(label)?;
        labels += 1;
        numeric = label.bytes().all(|byte| byte.is_ascii_digit());
    }
    if labels < 2 || numeric {
        return Err(Reason::Form);
    }
    let domain = &out[start + local + 1..];
    if gmail && GOOGLE.contains(&domain) {
        let address = out.split_off(start);
        return joined(&address[..local], &address[local + 1..], gmail, out);
    }
    fits(local, domain.len())
}

/// Of ASCII, what an address does not have.
static FORBIDDEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = byte <= b' ' as usize || byte == 127;
        byte += 1;
    }
    let mut at = 0;
    while at < SPECIAL.len() {
        table[SPECIAL.as_bytes()[at] as usize] = true;
        at += 1;
    }
    table
};

/// The domains of the one mailbox that Google's addresses are.
const GOOGLE: [&str; 2] = ["gmail.com", "googlemail.com"];

fn joined(local: &str, domain: &str, gmail: bool, out: &mut String) -> Result<(), Reason> {
    if gmail && GOOGLE.contains(&domain) {
        let before = local.split('+').next().unwrap_or_default();
        let plain: String = before.chars().filter(|c| *c != '.').collect();
        return joined(&plain, GOOGLE[0], false, out);
    }
    fits(local.len(), domain.len())?;
    out.push_str(local);
    out.push('@');
    out.push_str(domain);
    Ok(())
}

/// Whether parts of so many bytes make an address.
fn fits(local: usize, domain: usize) -> Result<(), Reason> {
    match (local, domain) {
        (0, _) => Err(Reason::Form),
        (1..=64, ..=253) => Ok(()),
        _ => Err(Reason::Length),
    }
}

/// In lower case, a character at a time: no language's special rules, and no final sigma.
fn lower(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.chars().flat_map(char::to_lowercase).nfc().collect()
}

/// The domain with labels of other scripts in their ASCII form.
fn ascii_domain(domain: &str) -> Result<String, Reason> {
    let lower = lower(domain);
    let lower = lower.strip_suffix('.').unwrap_or(&lower);
    let mut labels = Vec::new();
    for label in lower.split('.') {
        let label = if label.is_ascii() { label.to_owned() } else { format!("xn--{}", punycode(label)?) };
        check(&label)?;
        labels.push(label);
    }
    let numeric = labels.last().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    if labels.len() < 2 || numeric { Err(Reason::Form) } else { Ok(labels.join(".")) }
}

/// Refuses what is no label of a domain in ASCII.
fn check(label: &str) -> Result<(), Reason> {
    if label.is_empty() || label.starts_with('-') || label.ends_with('-') {
        return Err(Reason::Form);
    }
    if !label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Err(Reason::Character);
    }
    if label.len() > 63 { Err(Reason::Length) } else { Ok(()) }
}

/// A label by RFC 3492, with its parameters for host names.
fn punycode(label: &str) -> Result<String, Reason> {
    const BASE: u32 = 36;
    let points: Vec<u32> = label.chars().map(u32::from).collect();
    if points.len() > 63 {
        return Err(Reason::Length);
    }
    let letter = |value: u32| {
        char::from_digit(value, 36)
            .map_or('a', |_| char::from(b"abcdefghijklmnopqrstuvwxyz0123456789"[value as usize % 36]))
    };
    let mut out: String = label.chars().filter(char::is_ascii).collect();
    let basic = out.len() as u32;
    let mut done = basic;
    if basic > 0 {
        out.push('-');
    }
    let (mut next, mut delta, mut bias) = (128u32, 0u32, 72u32);
    while let Some(lowest) = points.iter().copied().filter(|point| *point >= next).min() {
        // At most 63 points below 2^21: nothing overflows.
        delta += (lowest - next) * (done + 1);
        next = lowest;
        for point in &points {
            if *point < next {
                delta += 1;
            }
            if *point != next {
                continue;
            }
            let (mut rest, mut at) = (delta, BASE);
            loop {
                let threshold = at.saturating_sub(bias).clamp(1, 26);
                if rest < threshold {
                    break;
                }
                out.push(letter(threshold + (rest - threshold) % (BASE - threshold)));
                rest = (rest - threshold) / (BASE - threshold);
                at += BASE;
            }
            out.push(letter(rest));
            delta = if done == basic { delta / 700 } else { delta / 2 };
            done += 1;
            delta += delta / done;
            let mut steps = 0;
            while delta > 455 {
                delta /= 35;
                steps += BASE;
            }
            bias = steps + 36 * delta / (delta + 38);
            delta = 0;
        }
        delta += 1;
        next += 1;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        /// What is quicker for ASCII is what holds for all characters.
        #[test]
        fn addresses_in_ascii_are_as_all_others(
            local in "[a-zA-Z0-9.+_'-]{0,3}|[ -~]{0,6}|[a-z]{60,66}",
            domain in "([a-zA-Z0-9-]{0,4}[.]){0,3}[a-z0-9]{0,3}[.]?|[ -~]{0,8}|([a-z]{60,64}[.]){1,4}de|(g|G|google)mail[.]com",
            control in proptest::option::of("[\\x00-\\x1f\\x7f]"),
            gmail: bool,
        ) {
            let text = format!("{local}{}@{domain}", control.unwrap_or_default());
            let text = text.trim();
            let Some((local, domain)) = text.split_once('@').filter(|(_, domain)| !domain.contains('@')) else {
                return Ok(());
            };
            let (mut one, mut other) = ("k".to_owned(), "k".to_owned());
            let quick = plain(text, local.len(), gmail, &mut one);
            let usual = general(text, [local, domain], gmail, &mut other);
            prop_assert_eq!(&quick, &usual, "{:?}", text);
            if quick.is_ok() {
                prop_assert_eq!(one, other);
            }
        }
    }
}
