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

/// All of `file`, whose name is `path`.
pub(crate) fn read_from(path: &Path, file: impl Read) -> Result<Zeroizing<Vec<u8>>> {
    let (bytes, is_whole) = beginning(path, file, LARGEST_MESSAGES)?;
    if !is_whole {
        return Err(Error::Input(format!("{}: larger than any message of this command", path.display())));
    }
    Ok(bytes)
}

/// What `file` begins with, up to `most` bytes and never more than [`LARGEST_MESSAGES`], and whether that is all of it.
pub(crate) fn beginning(path: &Path, file: impl Read, most: u64) -> Result<(Zeroizing<Vec<u8>>, bool)> {
    let most = most.min(LARGEST_MESSAGES);
    let mut bytes = Zeroizing::new(Vec::new());
    let mut file = file.take(most + 1);
    file.read_to_end(&mut bytes).map_err(|e| Error::file(path, "cannot be read", e))?;
    let is_whole = bytes.len() as u64 <= most;
    Ok((bytes, is_whole))
}

fn made_public(path: &Path) -> Result<Output> {
    Output::create(path)?.for_everyone()
}

/// Writes files of which either all are there in the end or, if one finds no place, none; no secret replaces
/// another file, and `public` ones can be read by all.
pub(crate) fn write_all(secrets: &[(&Path, &[u8])], public: &[(&Path, &[u8])]) -> Result<()> {
    let mut outs = Vec::new();
    let secrets = secrets.iter().map(|file| (Output::create_key(file.0), file));
    for (out, (path, bytes)) in secrets.chain(public.iter().map(|file| (made_public(file.0), file))) {
        let mut out = out?;
        out.reserve(bytes.len() as u64)?;
        out.write_all(bytes).map_err(|e| write_fault(path, e))?;
        out.settle()?;
        outs.push(out);
    }
    outs.into_iter().try_for_each(Output::commit)
}
