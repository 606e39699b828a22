//! Messages, keys and seeds that are files of their own: read whole, and written all or none.

use crate::cli::output::{Output, write_fault};
use std::io::{Read, Write};
use std::path::Path;
use tacit::{Error, Result};
use tacit_ot::silent::bcgikrs19::Code;
use zeroize::Zeroizing;

/// No file is larger: 2^24 lines with two messages of 16 bytes in hexadecimal each.
pub(crate) const LARGEST_MESSAGES: u64 = 3 << 29;

/// `--code`, as the command line has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum CodeArg {
    /// Linear time: the fastest
    Linear,
    /// The paper's
    QuasiCyclic,
}

impl From<CodeArg> for Code {
    fn from(code: CodeArg) -> Self {
        match code {
            CodeArg::Linear => Code::Linear,
            CodeArg::QuasiCyclic => Code::QuasiCyclic,
        }
    }
}

/// All of `file`, whose name is `path`: `most` bytes, and never more than [`LARGEST_MESSAGES`].
pub(crate) fn read_from(path: &Path, file: impl Read, most: u64) -> Result<Zeroizing<Vec<u8>>> {
    let most = most.min(LARGEST_MESSAGES);
    let mut bytes = Zeroizing::new(Vec::new());
    let mut file = file.take(most + 1);
    file.read_to_end(&mut bytes).map_err(|e| Error::file(path, "cannot be read", e))?;
    if bytes.len() as u64 > most {
        return Err(Error::Input(format!("{}: larger than such a file can be here", path.display())));
    }
    Ok(bytes)
}

fn made_public(path: &Path) -> Result<Output> {
    Output::create(path)?.for_everyone()
}

/// Writes files of which either all are there in the end or, if one finds no place, none; no secret replaces
/// another file, and `public` ones can be read by all.
pub(crate) fn write_all(secrets: &[(&Path, &[u8])], public: &[(&Path, &[u8])]) -> Result<()> {
    let mut outs = Vec::new();
    let secrets = secrets.iter().map(|file| (Output::create_secret(file.0), file));
    for (out, (path, bytes)) in secrets.chain(public.iter().map(|file| (made_public(file.0), file))) {
        let mut out = out?;
        out.reserve(bytes.len() as u64)?;
        out.write_all(bytes).map_err(|e| write_fault(path, e))?;
        out.settle()?;
        outs.push(out);
    }
    outs.into_iter().try_for_each(Output::commit)
}
