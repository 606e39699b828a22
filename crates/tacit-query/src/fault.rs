//! Why a text is not a question, or a row not an answer to one.

/// One line that says what is wrong, quoting the part of the text, and what to write instead.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{words}")]
pub struct Fault {
    words: String,
    of_value: bool,
}

/// A result whose error is a [`Fault`].
pub(crate) type Result<T> = std::result::Result<T, Fault>;

/// Characters of a part of the text that a fault quotes, at most.
const QUOTED: usize = 120;

impl Fault {
    /// A fault of these words, on one line whatever a name or a string of the text holds.
    pub(crate) fn new(words: impl Into<String>) -> Self {
        let words = words.into();
        let words = words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        Fault { words, of_value: false }
    }

    /// The same, about what an expression has come to in some row.
    pub(crate) fn of_value(words: impl Into<String>) -> Self {
        Fault { of_value: true, ..Fault::new(words) }
    }

    /// Whether it is about what an expression of the text has come to in some row, which whoever wrote the text could have
    /// chosen, and not about a cell alone or the text.
    pub const fn is_of_value(&self) -> bool {
        self.of_value
    }
}

/// A failed [`Result`] of these words.
pub(crate) fn fail<T>(words: impl Into<String>) -> Result<T> {
    Err(Fault::new(words))
}

/// A part of the text as faults quote it, its middle left out if it is long.
pub(crate) fn quoted(part: impl std::fmt::Display) -> String {
    format!("`{}`", shortened(&part.to_string()))
}

/// Words with their middle left out if they are long.
pub(crate) fn shortened(words: &str) -> String {
    let words: Vec<char> = words.chars().collect();
    if words.len() <= QUOTED {
        return words.into_iter().collect();
    }
    let (first, last) = (&words[..QUOTED / 2], &words[words.len() - QUOTED / 4..]);
    first.iter().chain(&['…']).chain(last).collect()
}

/// So many of what one is called `one`.
pub(crate) fn counted(count: usize, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// The refusal of a row whose numbers cannot be computed with.
pub(crate) fn too_large(columns: &str, text: &str) -> Fault {
    Fault::of_value(format!(
        "a row has a number in {columns} that is too large to compute {} of; correct it, or leave it empty",
        quoted(text)
    ))
}
