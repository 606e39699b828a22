//! Why a side leaves before the protocol has ended, as its farewell says.

use std::fmt;

/// Why a side ends a session early, as far as it tells the peer.
///
/// One of a fixed list, and nothing of the side's data: neither which file or row, nor by how much. A side whose
/// check of the peer failed gives none, so that a cheater sees the same farewell whatever it tried. The peer's word
/// is not checked. It changes the words of an error; and where both sides keep how far a run is, the one that
/// hears of an interrupt waits for the other's command to be given again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// It could not read or write a file of its own, or the file's content does not serve.
    Files,
    /// It accepts less than the peer has: fewer keys, shorter cells, fewer queries.
    Limit,
    /// Its own settings do not go together with this run.
    Settings,
    /// Somebody ended it: a key, a signal or the program that it is part of.
    Interrupted,
    /// It waited too long for the peer's next message.
    Waited,
}

impl Cause {
    const ALL: [Cause; 5] = [Cause::Files, Cause::Limit, Cause::Settings, Cause::Interrupted, Cause::Waited];

    /// The byte of a farewell.
    pub(crate) fn code(self) -> u8 {
        match self {
            Cause::Files => 1,
            Cause::Limit => 2,
            Cause::Settings => 3,
            Cause::Interrupted => 4,
            Cause::Waited => 5,
        }
    }

    /// What the byte of a farewell stands for; `None` where this release knows no such cause.
    pub(crate) fn of(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.code() == code)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::Files => "it could not use one of its files",
            Cause::Limit => "your input is larger than it accepts",
            Cause::Settings => "its settings do not match this run",
            Cause::Interrupted => "it was interrupted",
            Cause::Waited => "it waited too long for your next message",
        })
    }
}
