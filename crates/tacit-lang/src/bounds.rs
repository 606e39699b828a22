//! What a program's text must keep to before the language's own scanner and parser see it.
//!
//! They call themselves for every bracket and every operator, read behind the end of a text whose brackets do
//! not close, and wait for ever for the end of a comment that has none. So brackets are matched, nesting and
//! chains are counted, and comments are blanked here.

use crate::error::{Error, Fault};

/// How deep brackets may be nested.
const MAX_NESTING: usize = 48;
/// How many operators, accesses and branches may hang together, in all brackets that are open at a place: the
/// tree of an expression is at most so deep.
const MAX_CHAIN: usize = 1 << 12;

/// The program with its comments blanked, every line where it was. Errors name the line.
pub(crate) fn checked(source: &str) -> Result<String, Error> {
    let plain = without_comments(source)?;
    let mut open = vec![Open { bracket: ' ', line: 0, chain: 0 }];
    let mut after_block = false;
    for (number, line) in (1..).zip(plain.lines()) {
        let mut rest = line;
        while let Some(c) = rest.chars().next() {
            let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let (token, behind) = rest.split_at(if word > 0 { word } else { c.len_utf8() });
            rest = behind;
            if c.is_whitespace() {
                continue;
            }
            let goes_on = word == 0 || matches!(token, "else" | "as");
            if let Some(last) = open.last_mut() {
                // Behind a block a word begins another statement, unless it goes on with the block's value.
                if after_block && !goes_on || matches!(c, ';' | ',') {
                    last.chain = 0;
                }
                last.chain += usize::from(goes_on && !matches!(c, ')' | ']' | '}' | ';' | ','));
            }
            after_block = c == '}';
            match c {
                '(' | '[' | '{' => open.push(Open { bracket: c, line: number, chain: 0 }),
                ')' | ']' | '}' => close(&mut open, c, number)?,
                _ => {}
            }
            if open.len() > MAX_NESTING + 1 {
                return Err(at(number, format!("brackets are nested deeper than {MAX_NESTING}")));
            }
            if open.iter().map(|each| each.chain).sum::<usize>() > MAX_CHAIN {
                let what =
                    format!("more than {MAX_CHAIN} operators in one expression; give parts of it names");
                return Err(at(number, what));
            }
        }
    }
    match open.last() {
        Some(Open { bracket, line, .. }) if *line > 0 => {
            Err(at(*line, format!("the bracket {bracket} is not closed")))
        }
        _ => Ok(plain),
    }
}

/// A bracket that is open, and what hangs together in it.
struct Open {
    bracket: char,
    line: usize,
    chain: usize,
}

fn close(open: &mut Vec<Open>, bracket: char, number: usize) -> Result<(), Error> {
    let wanted = match bracket {
        ')' => '(',
        ']' => '[',
        _ => '{',
    };
    match open.pop() {
        Some(Open { bracket: opened, .. }) if opened == wanted => Ok(()),
        Some(Open { bracket: opened, line, .. }) if line > 0 => {
            let what = format!("the bracket {opened} of line {line} is closed by {bracket}");
            Err(at(number, what))
        }
        _ => Err(at(number, format!("the bracket {bracket} closes nothing"))),
    }
}

fn at(line: usize, what: String) -> Error {
    Error { faults: vec![Fault { line: Some(line), what }] }
}

/// The text with a space for each character of a comment; those between `/*` and `*/` nest.
fn without_comments(source: &str) -> Result<String, Error> {
    let mut plain = String::with_capacity(source.len());
    let mut chars = source.chars().peekable();
    let (mut level, mut line, mut began) = (0usize, 1, 1);
    while let Some(c) = chars.next() {
        line += usize::from(c == '\n');
        match (c, chars.peek()) {
            ('/', Some('*')) => {
                if level == 0 {
                    began = line;
                }
                level += 1;
                chars.next();
                plain.push_str("  ");
            }
            ('*', Some('/')) if level > 0 => {
                level -= 1;
                chars.next();
                plain.push_str("  ");
            }
            ('/', Some('/')) if level == 0 => while chars.next_if(|c| *c != '\n').is_some() {},
            _ => plain.push(if level == 0 || c == '\n' { c } else { ' ' }),
        }
    }
    if level > 0 { Err(at(began, "the comment has no end".to_owned())) } else { Ok(plain) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(source: &str) -> String {
        checked(source).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn comments_are_blanked_and_lines_stay() {
        assert_eq!(said("a // b {\nc"), "a \nc");
        assert_eq!(said("a/* ( /* \n [ */ { */b"), "a        \n          b");
        assert_eq!(said("a\n/* b\n\n"), "line 2: the comment has no end");
        assert_eq!(said("/*/"), "line 1: the comment has no end");
        assert_eq!(said("x / y * z"), "x / y * z");
    }

    #[test]
    fn brackets_close_in_their_order() {
        assert_eq!(said("fn f() {\n if true {\n"), "line 2: the bracket { is not closed");
        assert_eq!(said("f(\n]"), "line 2: the bracket ( of line 1 is closed by ]");
        assert_eq!(said("\n}"), "line 2: the bracket } closes nothing");
        let deep = |n: usize| format!("{}{}", "(".repeat(n), ")".repeat(n));
        assert_eq!(said(&deep(MAX_NESTING)), deep(MAX_NESTING));
        assert!(said(&deep(MAX_NESTING + 1)).contains("nested deeper"));
    }

    #[test]
    fn what_hangs_together_is_counted_however_it_is_written() {
        let many = MAX_CHAIN + 1;
        for piece in ["+ x ", "! ", "- ", "as u8 ", ".0 ", "[0]", "else if c { 1 } ", "(", "&& x\n", "/**/!"]
        {
            let error = checked(&piece.repeat(many)).unwrap_err().to_string();
            assert!(
                error.contains("operators in one expression") || error.contains("nested deeper"),
                "{piece}: {error}"
            );
        }
        for piece in ["x + 1; ", "x, ", "if c { 1 } else { 2 } ", "for i in a { } ", "let x = 2u8 + y;\n"] {
            assert!(checked(&piece.repeat(many)).is_ok(), "{piece}");
        }
    }
}
