//! What may follow all of SQL's clauses: `ROUND TO 10` and `WITH NOISE EPSILON 0.5`, which SQL does not have.

use super::Decimal;
use crate::fault::{Result, fail};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::fmt;

/// Digits after the point of an epsilon.
const EPSILON_DIGITS: u8 = 6;
/// The largest epsilon, in units of its last digit: what noise is off by is then below 2^-41 for each number, and more
/// would hide nothing.
const MOST_EPSILON: u64 = 10_000_000;
/// The largest number that numbers are rounded to multiples of.
const MOST_STEP: u64 = 1_000_000_000;

/// What follows all clauses.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct End {
    /// What numbers of the result are multiples of.
    pub(crate) step: Option<u64>,
    /// The noise's epsilon, in millionths.
    pub(crate) epsilon: Option<u64>,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(step) = self.step {
            write!(f, " ROUND TO {step}")?;
        }
        match self.epsilon {
            Some(epsilon) => write!(f, " WITH NOISE EPSILON {}", epsilon_text(epsilon)),
            None => Ok(()),
        }
    }
}

/// An epsilon, which is in millionths, as a text has it.
pub fn epsilon_text(epsilon: u64) -> String {
    Decimal { units: epsilon.into(), scale: EPSILON_DIGITS }.shortest().to_string()
}

/// Takes it off the end of a text.
pub(super) fn taken(tokens: &mut Vec<TokenWithSpan>) -> Result<End> {
    let mut end = End::default();
    let is_end = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_) | Token::SemiColon);
    let length = tokens.iter().rposition(|token| !is_end(token)).map_or(0, |at| at + 1);
    tokens.truncate(length);
    loop {
        let kept = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
        let last: Vec<usize> =
            tokens.iter().enumerate().rev().filter(|(_, t)| kept(t)).map(|(at, _)| at).take(4).collect();
        let word = |behind: usize, wanted: &str| {
            let token = last.get(behind).map(|at| &tokens[*at].token);
            matches!(token, Some(Token::Word(word)) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
        };
        let number = match last.first().map(|at| &tokens[*at].token) {
            Some(Token::Number(number, false)) => number.clone(),
            _ => return elsewhere(tokens).map(|()| end),
        };
        let begin = if word(1, "EPSILON") && word(2, "NOISE") && word(3, "WITH") {
            if end.epsilon.replace(epsilon(&number)?).is_some() {
                return fail("the question has WITH NOISE twice; write it once");
            }
            last[3]
        } else if word(1, "TO") && word(2, "ROUND") {
            if end.step.replace(step(&number)?).is_some() {
                return fail("the question has ROUND TO twice; write it once");
            }
            last[2]
        } else {
            return elsewhere(tokens).map(|()| end);
        };
        tokens.truncate(begin);
    }
}

/// An error where the words of these clauses stand in another place, or with something else behind them.
fn elsewhere(tokens: &[TokenWithSpan]) -> Result<()> {
    let words = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_)));
    let words: Vec<String> = words
        .map(|token| match &token.token {
            Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
            _ => String::new(),
        })
        .collect();
    for two in words.windows(2) {
        match [two[0].as_str(), two[1].as_str()] {
            ["WITH", "NOISE"] => {
                return fail(
                    "WITH NOISE is written at the end as WITH NOISE EPSILON 0.5; write a number there",
                );
            }
            ["ROUND", "TO"] => {
                return fail("ROUND TO is written at the end as ROUND TO 10; write a whole number there");
            }
            _ => {}
        }
    }
    Ok(())
}

/// An epsilon such as `0.5` in millionths; `None` if it is none, or has more digits.
pub fn read_epsilon(text: &str) -> Option<u64> {
    let units = Decimal::parse(text)?.shortest().at(EPSILON_DIGITS)?;
    u64::try_from(units).ok()
}

fn epsilon(number: &str) -> Result<u64> {
    match read_epsilon(number).filter(|units| (1..=MOST_EPSILON).contains(units)) {
        Some(units) => Ok(units),
        None => fail(format!(
            "EPSILON is from 0.000001 to 10, with {EPSILON_DIGITS} digits after the point at most; write one such as 0.5"
        )),
    }
}

fn step(number: &str) -> Result<u64> {
    match number.parse::<u64>().ok().filter(|step| (2..=MOST_STEP).contains(step)) {
        Some(step) => Ok(step),
        None => fail(format!("ROUND TO takes a whole number from 2 to {MOST_STEP}; write one such as 10")),
    }
}
