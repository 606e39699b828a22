//! Columns as a user lists them: names that hold a comma, a colon or a quote stand in double quotes, a quote
//! among them doubled.

/// The parts of a list, between its commas but those within quotes; a quote that begins neither a part nor
/// what is behind a label is part of a name.
pub fn listed(text: &str) -> Vec<&str> {
    let (mut parts, mut rest) = (Vec::new(), text);
    loop {
        let quoted = quoted_from(rest).and_then(|from| Some(from + closed(&rest[from..])?));
        let from = quoted.unwrap_or(0);
        match rest[from..].find(',') {
            Some(at) => {
                parts.push(trimmed(&rest[..from + at]));
                rest = &rest[from + at + 1..];
                rest = if rest.trim().is_empty() { rest } else { rest.trim_start() };
            }
            None => {
                parts.push(trimmed(rest));
                return parts;
            }
        }
    }
}

/// A part without the blanks around it; one of nothing else stays, as it may be a word for an empty cell.
fn trimmed(part: &str) -> &str {
    if part.trim().is_empty() { part } else { part.trim() }
}

/// Where the quote stands that a part begins with, behind a label if it has one.
fn quoted_from(part: &str) -> Option<usize> {
    let is_label = |c: char| c.is_alphanumeric() || "-_".contains(c);
    let label = part.find(|c| !is_label(c)).unwrap_or(0);
    match part.as_bytes() {
        [b'"', ..] => Some(0),
        bytes => (bytes.get(label..label + 2) == Some(b"=\"")).then_some(label + 1),
    }
}

/// Bytes of the quoted name that a text begins with, its quotes among them; nothing if no quote closes it.
pub(super) fn closed(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match (byte, bytes.get(at + 1)) {
            (b'"', Some(b'"')) => at += 2,
            (b'"', _) => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

/// The name that stands there in quotes or without.
pub fn plain(text: &str) -> String {
    let is_quoted = text.starts_with('"') && closed(text) == Some(text.len());
    if is_quoted { text[1..text.len() - 1].replace("\"\"", "\"") } else { text.to_owned() }
}

/// The name as a list takes it.
pub fn quoted(name: &str) -> String {
    match name.contains([',', ':', '"', '=']) || name.trim() != name {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_what_lists_are_made_of() {
        let of = |text: &str| listed(text).into_iter().map(plain).collect::<Vec<String>>();
        assert_eq!(of("a,b"), ["a", "b"]);
        assert_eq!(of("\"last, first\",b"), ["last, first", "b"]);
        assert_eq!(of("a,\"say \"\"hi\"\", you\""), ["a", "say \"hi\", you"]);
        assert_eq!(of("5\" pipe,x"), ["5\" pipe", "x"]);
        assert_eq!(of("\"open,x"), ["\"open", "x"]);
        assert_eq!(of(""), [""]);
        // Blanks around a name are no part of it, unless it is quoted.
        assert_eq!(of("a, b ,\tc"), ["a", "b", "c"]);
        assert_eq!(of("a, \"last, first\", \" b\""), ["a", "last, first", " b"]);
        assert_eq!(of("a, ,"), ["a", "", ""]);
        assert_eq!(listed("x, n=\"a,b\":name"), ["x", "n=\"a,b\":name"]);
        assert_eq!(listed("n=\"a,b\":name,c"), ["n=\"a,b\":name", "c"]);
        for name in ["a", "a,b", "a:b", "a\"b", "\"", "x=y", ",", " b", "c ", "é,\"\""] {
            assert_eq!(of(&format!("{},z", quoted(name))), [name, "z"]);
        }
    }
}
