//! A command as a person can paste it into a shell.

use std::ffi::{OsStr, OsString};

/// The command `name` with its `words`, each quoted where a shell would take it apart.
pub(crate) fn command(name: &str, words: &[OsString]) -> String {
    let words = words.iter().map(|word| quoted(word));
    std::iter::once(name.to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// One word, in single quotes where it has more than plain characters.
fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@%+".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_shell_reads_the_words_that_were_quoted() {
        let words =
            ["a b", "it's", "$(x)", "`x`", "", "--key=\"a, b\":email", "x;y", "*", "~", "ä", "a\nb", "\\"];
        let words = words.map(OsString::from);
        let text = command("printf", &[&[OsString::from("%s|")], &words[..]].concat());
        let run = std::process::Command::new("sh").args(["-c", &text]).output().unwrap();
        let said = String::from_utf8(run.stdout).unwrap();
        assert_eq!(said, words.map(|word| word.into_string().unwrap() + "|").concat());
    }
}
