//! The two sides of a question.

/// A side of a question.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// The side whose table the text calls `ours`: the one that listens, whoever reads the text.
    Ours,
    /// The other side, whose table the text calls `theirs`.
    Theirs,
}

impl Side {
    /// Both sides, in their order.
    pub const BOTH: [Side; 2] = [Side::Ours, Side::Theirs];

    /// The one that this is not.
    pub const fn other(self) -> Self {
        match self {
            Side::Ours => Side::Theirs,
            Side::Theirs => Side::Ours,
        }
    }

    /// The name of its table in a question.
    pub const fn name(self) -> &'static str {
        match self {
            Side::Ours => "ours",
            Side::Theirs => "theirs",
        }
    }
}
