//! The one form in which a JSON value is signed and hashed: RFC 8785, without its fractions, which no record
//! has.

use serde_json::Value;
pub use tacit::crypto::hex;
use tacit::{Error, Result};

/// Largest whole number that every reader of JSON reads exactly.
const LARGEST_WHOLE: u64 = (1 << 53) - 1;

/// The canonical form of `value`: no white space, members sorted by their names' UTF-16 code units, shortest
/// escapes.
///
/// Errors: numbers that are not whole, or of 2^53 and more in size.
pub fn canonical(value: &Value) -> Result<String> {
    let mut out = String::new();
    write(value, &mut out)?;
    Ok(out)
}

/// Reads a value that stands in canonical form, and in no other.
///
/// Errors: what is no JSON, and any other form of it, names given twice among them.
pub fn read_canonical(text: &str) -> Result<Value> {
    let fault = |what: &str| Error::Input(format!("a record is {what}; it was changed or truncated"));
    let value: Value = serde_json::from_str(text).map_err(|_| fault("no JSON"))?;
    match canonical(&value)? == text {
        true => Ok(value),
        false => Err(fault("not in canonical form")),
    }
}

fn write(value: &Value, out: &mut String) -> Result<()> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => {
            let whole = number.as_u64().filter(|n| *n <= LARGEST_WHOLE).map(|n| n.to_string());
            let below = number.as_i64().filter(|n| n.unsigned_abs() <= LARGEST_WHOLE).map(|n| n.to_string());
            let text = whole.or(below);
            let unfit = || Error::Input("a record has a number that is not whole, or too large".into());
            out.push_str(&text.ok_or_else(unfit)?);
        }
        Value::String(text) => quote(text, out),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(item, out)?;
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (at, name) in names.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                quote(name, out);
                out.push(':');
                write(&members[name], out)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

/// A string as ECMAScript writes it: five short escapes, `\u00xx` for other control characters, all else as
/// it is.
fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// The bytes of exactly 2·`N` lower-case hexadecimal digits; `None` for any other text.
pub fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(digits.chunks(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The order of RFC 8785, section 3.2.3, where a name beyond the basic plane sorts by its surrogates.
    #[test]
    fn members_are_sorted_by_utf_16_and_strings_escaped_shortly() {
        let value = json!({
            "\u{20ac}": "Euro Sign", "\r": "Carriage Return", "\u{fb33}": "Hebrew Letter Dalet With Dagesh",
            "1": "One", "\u{1f600}": "Emoji", "\u{80}": "Control", "\u{f6}": "Latin",
        });
        let expected = "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\"\u{f6}\":\"Latin\",\
            \"\u{20ac}\":\"Euro Sign\",\"\u{1f600}\":\"Emoji\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}";
        assert_eq!(canonical(&value).unwrap(), expected);
        let value =
            json!({"s": "\u{20ac}$\u{f}\nA'B\"\\\"/", "n": [0, -1, 9_007_199_254_740_991_u64, null, true]});
        let expected =
            "{\"n\":[0,-1,9007199254740991,null,true],\"s\":\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\"/\"}";
        assert_eq!(canonical(&value).unwrap(), expected);
        for unfit in [json!(0.5), json!(1u64 << 53), json!(f64::MAX)] {
            assert!(canonical(&unfit).is_err(), "{unfit}");
        }
    }

    #[test]
    fn only_the_canonical_form_is_read() {
        assert_eq!(read_canonical("{\"a\":1,\"b\":[]}").unwrap(), json!({"a": 1, "b": []}));
        for other in [
            "{\"b\":[],\"a\":1}",
            "{\"a\": 1}",
            "{\"a\":1,\"a\":1}",
            "{\"a\":1.0}",
            "{\"a\":1}\n",
            "{\"\\u0061\":1}",
            "{",
        ] {
            assert!(read_canonical(other).is_err(), "{other}");
        }
    }

    #[test]
    fn hexadecimal_has_one_form() {
        assert_eq!(from_hex::<2>(&hex(&[0, 255])), Some([0, 255]));
        for other in ["00FF", "00f", "00fff", "0g00", "zz"] {
            assert_eq!(from_hex::<2>(other), None, "{other}");
        }
    }
}
