//! The words of a canonical text, as far as they tell values from everything else.

use super::Literal;
use crate::value::{self, Decimal};
use std::ops::Range;

/// A word of a canonical text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token {
    /// With its sign: in a canonical text a subtraction has a blank behind its sign, and a negative number none.
    Number(String),
    /// What a string holds.
    Text(String),
    /// What is between the quotes of `DATE '...'`.
    Date(String),
    /// A name, a keyword or a sign.
    Other(String),
}

impl Token {
    /// The value that it is, if it is one.
    pub(super) fn literal(&self) -> Option<Literal> {
        match self {
            Token::Number(text) => Decimal::parse(text).map(Literal::Number),
            Token::Text(text) => Some(Literal::Text(text.clone())),
            Token::Date(text) => value::days(text).map(Literal::Date),
            Token::Other(_) => None,
        }
    }
}

/// The tokens of a canonical text.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    placed(text).into_iter().map(|(token, _)| token).collect()
}

/// The same, each with its place in the text.
pub(super) fn placed(text: &str) -> Vec<(Token, Range<usize>)> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(c) = rest.chars().next() {
        let is_digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let (token, behind) = match c {
            c if c.is_whitespace() => {
                rest = &rest[c.len_utf8()..];
                continue;
            }
            '\'' => {
                let (inside, behind) = quoted(rest, '\'');
                (Token::Text(inside), behind)
            }
            '"' => {
                let (inside, behind) = quoted(rest, '"');
                (Token::Other(format!("\"{inside}\"")), behind)
            }
            c if c.is_ascii_digit() || c == '-' && is_digit(&rest[1..]) => {
                let is_of_number = |c: char| c.is_ascii_digit() || c == '.';
                let end = rest[1..].find(|c| !is_of_number(c)).map_or(rest.len(), |end| end + 1);
                (Token::Number(rest[..end].to_owned()), &rest[end..])
            }
            c if c.is_ascii_alphabetic() || c == '_' => {
                let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let end = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
                let (word, behind) = rest.split_at(end);
                match behind.trim_start() {
                    // A name that is a keyword is in quotes.
                    string if word == "DATE" && string.starts_with('\'') => {
                        let (inside, behind) = quoted(string, '\'');
                        (Token::Date(inside), behind)
                    }
                    _ => (Token::Other(word.to_owned()), behind),
                }
            }
            c => (Token::Other(c.to_string()), &rest[c.len_utf8()..]),
        };
        found.push((token, text.len() - rest.len()..text.len() - behind.len()));
        rest = behind;
    }
    found
}

/// What is between the quotes at the beginning, of which two stand for one, and what is behind them.
fn quoted(text: &str, quote: char) -> (String, &str) {
    let (mut inside, mut rest) = (String::new(), &text[1..]);
    loop {
        let Some(end) = rest.find(quote) else { return (inside + rest, "") };
        inside.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix(quote) {
            Some(behind) => {
                inside.push(quote);
                rest = behind;
            }
            None => return (inside, rest),
        }
    }
}
