//! Messages of `tacit nisc reply` and `open`, in whatever form they are.

use super::{name, named, read};
use crate::cli::output::{Output, write_fault};
use crate::cli::own::{self, Taken};
use std::io::Write;
use std::path::Path;
use tacit::Result;
use tacit::crypto::{BitVec, Block, hex};
use tacit::data::values;
use tacit::job::nisc::{Letters, Opened};
use tacit::ot::{Form, Layout};
use zeroize::Zeroizing;

/// The sender's messages: blocks, which have a message of their own, or others.
pub(super) enum Given {
    Blocks(Zeroizing<Vec<[Block; 2]>>),
    Letters(Letters),
}

impl Given {
    /// Reads messages for `count` transfers: arrays, bytes or a table by the file's name, else lines of digits.
    pub(super) fn load(path: &Path, count: usize) -> Result<Self> {
        if is_named(path, "npz") || is_named(path, "bin") || values::is_table(path) {
            let messages = own::messages(path, Some(count as u64))?;
            let needed = 6 * (messages.layout().width as u64).saturating_mul(count as u64);
            crate::cmd::check_memory(
                "masking these messages",
                needed,
                "send the long ones under another key",
            )?;
            return Ok(Given::Letters(Letters::of(&messages)?));
        }
        let bytes = read(path)?;
        if let Some(bits) = own::bit_pairs(path, &bytes)? {
            return Ok(Given::Letters(Letters::bits(&bits)));
        }
        Ok(Given::Blocks(own::hex_pairs(path, &bytes)?))
    }

    pub(super) fn count(&self) -> usize {
        match self {
            Given::Blocks(pairs) => pairs.len(),
            Given::Letters(letters) => letters.count(),
        }
    }
}

fn is_named(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case(wanted))
}

/// Writes the messages that the receiver chose: to arrays or a table by the file's name, else a line each.
pub(super) fn write(out: &Path, choices: &BitVec, opened: Opened) -> Result<()> {
    let arrays = is_named(out, "npz") || (out != Path::new("-") && values::is_table(out));
    let (layout, rows) = match opened {
        Opened::Bits(bits) if !arrays => {
            let line = |bit: &bool| if *bit { "1\n" } else { "0\n" };
            return write_text(out, Zeroizing::new(bits.iter().map(line).collect()));
        }
        Opened::Bits(bits) => (
            Layout { form: Form::Bytes, width: 1 },
            Zeroizing::new(bits.iter().map(|bit| u8::from(*bit)).collect()),
        ),
        Opened::Rows(layout, rows) => (layout, rows),
    };
    if arrays {
        let longest = layout.longest() as u64;
        let cell = if layout.form == Form::Text { longest } else { 2 * longest };
        if values::is_table(out) && !values::admits_cell(out, cell) {
            return Err(named(
                out,
                &"a cell of a workbook has no room for these; name the output .csv or .parquet",
            ));
        }
        // Blocks go to arrays as bytes.
        let form = if layout.form == Form::Blocks { Form::Bytes } else { layout.form };
        return Taken::whole(out, choices, Layout { form, ..layout }, rows)?.finish();
    }
    if layout.form == Form::Text {
        return Err(named(
            out,
            &"the messages are texts of any length: name the output .csv, .parquet or .npz",
        ));
    }
    let mut text = Zeroizing::new(String::with_capacity(rows.len() * 2 + rows.len() / layout.width));
    for row in rows.chunks(layout.width) {
        // A block is written as a number, its highest byte first.
        let line = match <[u8; 16]>::try_from(row) {
            Ok(block) if layout.form == Form::Blocks => Zeroizing::new(Block::from_bytes(block).to_hex()),
            _ => Zeroizing::new(hex(layout.message(row))),
        };
        text.push_str(&line);
        text.push('\n');
    }
    write_text(out, text)
}

fn write_text(out: &Path, text: Zeroizing<String>) -> Result<()> {
    let mut file = Output::create(out)?;
    file.reserve(text.len() as u64)?;
    file.write_all(text.as_bytes()).map_err(|e| write_fault(out, e))?;
    file.commit()
}

/// What a file of another number of pairs is refused with.
pub(super) fn other_count(path: &Path, found: &str, count: usize) -> tacit::Error {
    tacit::Error::Input(format!("{}: has {found}; the key is for {count}", name(path)))
}
