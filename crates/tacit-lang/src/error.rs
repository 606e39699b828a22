//! What can be wrong with a program.

use garble_lang::CompileTimeError;
use garble_lang::token::MetaInfo;
use tacit_crypto::text::counted;

/// One thing that is wrong, and where.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Fault {
    /// The line of the source, counted from one; `None` for what stands on no line.
    pub line: Option<usize>,
    /// What is wrong, in one line.
    pub what: String,
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// A program that is none, or that is too large: every fault found, in the order of the lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// What is wrong; never empty.
    pub faults: Vec<Fault>,
}

/// So many faults are shown; the others are counted.
const FAULTS_SHOWN: usize = 5;

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let shown: Vec<String> = self.faults.iter().take(FAULTS_SHOWN).map(Fault::to_string).collect();
        f.write_str(&shown.join("; "))?;
        match self.faults.len().saturating_sub(FAULTS_SHOWN) {
            0 => Ok(()),
            more => write!(f, "; and {more}", more = counted(more, "more fault")),
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    /// One fault, at the line where `meta` begins.
    pub(crate) fn at(meta: MetaInfo, what: impl Into<String>) -> Self {
        Error { faults: vec![Fault { line: Some(meta.start.0 + 1), what: what.into() }] }
    }

    /// One fault of the whole.
    pub(crate) fn whole(what: impl Into<String>) -> Self {
        Error { faults: vec![Fault { line: None, what: what.into() }] }
    }

    /// What the language's compiler found.
    pub(crate) fn found(error: garble_lang::Error) -> Self {
        let garble_lang::Error::CompileTimeError(error) = error else {
            return Error::whole("the program is not valid in the Garble language");
        };
        let fault = |meta: Option<MetaInfo>, what: String| Fault {
            line: meta.map(|meta| meta.start.0 + 1),
            what: what.split_whitespace().collect::<Vec<_>>().join(" "),
        };
        let mut faults: Vec<Fault> = match error {
            CompileTimeError::ScanErrors(found) => {
                found.into_iter().map(|e| fault(Some(e.1), e.0.to_string())).collect()
            }
            CompileTimeError::ParseError(found) => {
                found.into_iter().map(|e| fault(Some(e.1), e.0.to_string())).collect()
            }
            CompileTimeError::TypeError(found) => {
                found.into_iter().map(|e| fault(Some(*e.1), e.0.to_string())).collect()
            }
            CompileTimeError::CompilerError(found) => {
                found.into_iter().map(|e| fault(None, e.to_string())).collect()
            }
        };
        faults.sort();
        faults.dedup();
        match faults.is_empty() {
            true => Error::whole("the program is not valid in the Garble language"),
            false => Error { faults },
        }
    }
}
