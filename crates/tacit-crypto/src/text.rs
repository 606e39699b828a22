//! Names that others chose, made fit for a line of text: of files, columns, and whatever else a message has
//! to quote.

use std::fmt::Display;

/// Longest name that is shown whole, in characters.
const LONGEST: usize = 160;
/// Characters shown of a longer name: its beginning, and its end, where a path says most.
const ENDS: [usize; 2] = [60, 90];

/// The name with every control character, line break and invisible or direction-changing character escaped,
/// and the middle of a long one left out: it cannot fake a line, steer a terminal, or reorder what stands
/// around it.
///
/// ```
/// assert_eq!(tacit_crypto::text::shown("kunden.csv"), "kunden.csv");
/// assert_eq!(tacit_crypto::text::shown("a\nerror: b\u{202e}"), "a\\nerror: b\\u{202e}");
/// ```
pub fn shown(name: &str) -> String {
    let count = name.chars().count();
    if count <= LONGEST {
        return escaped(name);
    }
    let start: String = name.chars().take(ENDS[0]).collect();
    let end: String = name.chars().skip(count - ENDS[1]).collect();
    format!("{}…{}", escaped(&start), escaped(&end))
}

/// So many of what one is called `one`: every number and its noun in a line go through this.
///
/// ```
/// use tacit_crypto::text::counted;
/// assert_eq!([counted(1, "row"), counted(2, "row")], ["1 row", "2 rows"]);
/// assert_eq!([counted(0, "distinct query"), counted(3, "match")], ["0 distinct queries", "3 matches"]);
/// ```
pub fn counted(count: impl Display, one: &str) -> String {
    let count = count.to_string();
    let noun = if count == "1" { one.to_owned() } else { plural(one) };
    format!("{count} {noun}")
}

/// Several of what one is called `one`.
pub fn plural(one: &str) -> String {
    match one.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ if ["ch", "sh", "s", "x"].iter().any(|end| one.ends_with(end)) => format!("{one}es"),
        _ => format!("{one}s"),
    }
}

/// The text with every character that [`shown`] escapes escaped, at its full length.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_plain(c) { out.push(c) } else { out.extend(c.escape_default()) }
    }
    out
}

/// Whether a character shows as itself and moves nothing else.
fn is_plain(c: char) -> bool {
    let hidden = matches!(
        u32::from(c),
        0xad                     // soft hyphen
        | 0x61c                  // Arabic letter mark
        | 0x180e                 // Mongolian vowel separator
        | 0x200b..=0x200f        // zero width, and marks of direction
        | 0x2028..=0x202e        // line and paragraph separators, embeddings and overrides of direction
        | 0x2060..=0x206f        // invisible operators, isolates, deprecated format characters
        | 0xfeff                 // byte order mark
        | 0xfff9..=0xfffb        // interlinear annotation
        | 0xe0000..=0xe0fff // tags
    );
    !c.is_control() && !hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_steer_what_shows_them() {
        for hostile in
            ["\x1b[2J", "\r", "\n", "\u{9b}31m", "\u{202e}", "\u{2066}", "\u{200b}", "\u{2028}", "\0"]
        {
            let text = shown(&format!("a{hostile}b"));
            assert!(text.starts_with("a\\") && text.ends_with('b'), "{text:?}");
            assert!(text.chars().all(is_plain), "{text:?}");
        }
        assert_eq!(shown("Straße 木 é.csv"), "Straße 木 é.csv");
    }

    #[test]
    fn long_names_keep_both_ends() {
        let name = format!("/start/{}/end.csv", "x".repeat(100_000));
        let text = shown(&name);
        assert!(
            text.starts_with("/start/xx") && text.ends_with("xx/end.csv") && text.contains('…'),
            "{text}"
        );
        assert!(text.chars().count() <= LONGEST, "{text}");
        let hostile = shown(&"\u{10ffff}\u{202e}".repeat(5000));
        assert!(hostile.len() < 2000, "{}", hostile.len());
    }
}
