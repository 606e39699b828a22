//! What a user brings to transfers, messages or choices, out of files; and what the receiver takes home.

use crate::cli::messages::read_from;
use crate::cli::output::{self, Output, name};
use crate::cli::share::{Arrays, Share};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use tacit::crypto::text::counted;
use tacit::crypto::{BitVec, Block};
use tacit::data::csv::Place;
use tacit::data::npz::{self, Array, Element, Elements, Loaded};
use tacit::data::values::{self, Column, Kind, Table, Value};
use tacit::job::ot::{Job, Sink};
use tacit::ot::{Form, Layout, Messages, Sent};
use tacit::{Error, Result};
use zeroize::Zeroizing;

/// How a file holds what a user brings.
enum Source {
    /// Arrays of NumPy's, `.npz`.
    Arrays,
    /// Bytes without any form, `.bin`.
    Raw,
    /// Digits, as `tacit nisc` reads them, `.txt`.
    Digits,
    /// A table, which everything else is.
    Table,
}

impl Source {
    fn of(path: &Path) -> Self {
        let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
        match end.to_ascii_lowercase().as_str() {
            "npz" => Source::Arrays,
            "bin" => Source::Raw,
            "txt" => Source::Digits,
            _ => Source::Table,
        }
    }
}

fn named(path: &Path, fault: &dyn Display) -> Error {
    Error::Input(format!("{}: {fault}", name(path)))
}

/// All of a file.
fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>> {
    read_from(path, output::open(path)?)
}

/// A choice for each transfer, of which the user said that they are `count`.
pub(crate) fn choices(path: &Path, count: Option<u64>) -> Result<BitVec> {
    let bools = match Source::of(path) {
        Source::Arrays => choices_of_arrays(path)?,
        Source::Raw => {
            let bytes = read(path)?;
            let Some(count) = count else {
                return Err(named(path, &"eight choices per byte: give their number with --count"));
            };
            let rest = count % 8;
            if bytes.last().is_some_and(|last| rest > 0 && last >> rest != 0) {
                let counted = counted(count, "choice");
                return Err(named(path, &format!("bits are set after its {counted}; is --count right?")));
            }
            if bytes.len() as u64 != count.div_ceil(8) {
                let found = counted(bytes.len(), "byte");
                let needed = format!("{} take {}", counted(count, "choice"), count.div_ceil(8));
                return Err(named(path, &format!("{found}, and {needed}")));
            }
            return Ok(BitVec::from_bytes(&bytes, count as usize));
        }
        Source::Digits => digits(path, &read(path)?)?,
        Source::Table => choices_of_table(path)?,
    };
    Ok(BitVec::from_bools(&bools))
}

/// The digits 0 and 1 of a text, whatever white space is between them.
pub(crate) fn digits(path: &Path, bytes: &[u8]) -> Result<Zeroizing<Vec<bool>>> {
    let mut bools = Zeroizing::new(Vec::with_capacity(bytes.len()));
    for byte in bytes.iter().filter(|byte| !byte.is_ascii_whitespace()) {
        match byte {
            b'0' => bools.push(false),
            b'1' => bools.push(true),
            _ => return Err(named(path, &"choices are the digits 0 and 1")),
        }
    }
    Ok(bools)
}

fn choices_of_arrays(path: &Path) -> Result<Zeroizing<Vec<bool>>> {
    let unfit = || named(path, &"needs an array `u` of zeros and ones, uint8 or bool, with one axis");
    match npz::read(path, &["u"])?.pop().flatten() {
        Some(Loaded { shape, elements: Elements::U8(bytes) }) if shape.len() == 1 => {
            if bytes.iter().any(|byte| *byte > 1) {
                return Err(unfit());
            }
            Ok(Zeroizing::new(bytes.iter().map(|byte| *byte == 1).collect()))
        }
        _ => Err(unfit()),
    }
}

fn choices_of_table(path: &Path) -> Result<Zeroizing<Vec<bool>>> {
    let table = open(path)?;
    if !table.names().contains(&"choice") {
        return Err(named(path, &"needs a column `choice`, of zeros and ones; its first line must name it"));
    }
    let wanted = table.find(&[Column::parse("choice")])?;
    let mut bools = Zeroizing::new(Vec::new());
    let mut line = None;
    table.read(&wanted, |place, cells| {
        // An empty line is no row to readers of CSV; here all choices behind it would move up.
        if let Place::Line(now) = place
            && let Some(before) = line.replace(now).filter(|before| now > before + 1)
        {
            return Err(named(path, &format!("line {} is empty: a choice is missing", before + 1)));
        }
        bools.push(match cells[0].trim() {
            "0" | "false" => false,
            "1" | "true" => true,
            _ => return Err(named(path, &format!("{place}, column `choice`: 0 or 1 is expected"))),
        });
        Ok(())
    })?;
    Ok(bools)
}

fn open(path: &Path) -> Result<Table> {
    Ok(Table::open(path, tacit::data::csv::Options::default())?)
}

/// A pair of messages for each transfer, of which the user said that they are `count`.
pub(crate) fn messages(path: &Path, count: Option<u64>) -> Result<Messages> {
    match Source::of(path) {
        Source::Arrays => messages_of_arrays(path),
        Source::Raw => {
            let bytes = read(path)?;
            let Some(count) = count.filter(|count| *count > 0) else {
                return Err(named(path, &"only bytes: give the number of pairs with --count"));
            };
            let length = bytes.len() as u64;
            if length == 0 || !length.is_multiple_of(2 * count) {
                let found = counted(length, "byte");
                let pairs = counted(count, "pair");
                return Err(named(
                    path,
                    &format!("{found} do not divide into {pairs} with one length for all"),
                ));
            }
            Messages::bytes((length / (2 * count)) as usize, bytes)
        }
        Source::Digits => Ok(Messages::blocks(&hex_pairs(path, &read(path)?)?)),
        Source::Table => messages_of_table(path),
    }
}

fn messages_of_arrays(path: &Path) -> Result<Messages> {
    let unfit = || {
        named(
            path,
            &"needs arrays `m0` and `m1` of one shape: uint64 [n, 2] (16 bytes a message), uint8 [n, bytes] or \
              byte strings [n]",
        )
    };
    let mut arrays = npz::read(path, &["m0", "m1"])?.into_iter().flatten();
    let (Some(zero), Some(one)) = (arrays.next(), arrays.next()) else { return Err(unfit()) };
    if zero.shape != one.shape {
        return Err(unfit());
    }
    match (zero.elements, one.elements, &zero.shape[..]) {
        (Elements::U64(zero), Elements::U64(one), [_, 2]) => {
            let block = |words: &[u64]| Block::from_halves(words[0], words[1]);
            let pairs = zero.chunks(2).zip(one.chunks(2)).map(|(a, b)| [block(a), block(b)]);
            Ok(Messages::blocks(&Zeroizing::new(pairs.collect::<Vec<_>>())))
        }
        (Elements::U8(zero), Elements::U8(one), [_, width]) if *width > 0 => {
            let width = *width as usize;
            let mut rows = Zeroizing::new(Vec::with_capacity(2 * zero.len()));
            for (a, b) in zero.chunks(width).zip(one.chunks(width)) {
                rows.extend_from_slice(a);
                rows.extend_from_slice(b);
            }
            Messages::bytes(width, rows)
        }
        (Elements::Strings(zero), Elements::Strings(one), [_]) => {
            let pairs: Vec<_> = zero.into_iter().zip(one).map(|(a, b)| [a, b]).collect();
            fits_memory(pairs.as_flattened().iter().map(|message| message.len()))?;
            Ok(Messages::strings(&pairs))
        }
        _ => Err(unfit()),
    }
}

fn messages_of_table(path: &Path) -> Result<Messages> {
    const COLUMNS: [&str; 2] = ["m0", "m1"];
    let table = open(path)?;
    if !COLUMNS.iter().all(|column| table.names().contains(column)) {
        return Err(named(path, &"needs the columns `m0` and `m1`; its first line must name them"));
    }
    let wanted = table.find(&COLUMNS.map(Column::parse))?;
    let mut pairs: Vec<[Zeroizing<String>; 2]> = Vec::new();
    table.read(&wanted, |_, cells| {
        pairs.push([0, 1].map(|i| Zeroizing::new(cells[i].to_owned())));
        Ok::<_, Error>(())
    })?;
    fits_memory(pairs.as_flattened().iter().map(|message| message.len()))?;
    Ok(Messages::texts(&pairs))
}

/// Every message takes as much as the longest: one long cell of a table of many rows may be too much.
fn fits_memory(lengths: impl ExactSizeIterator<Item = usize>) -> Result<()> {
    let count = lengths.len();
    let longest = lengths.max().unwrap_or(0);
    let needed = (count as u64).saturating_mul(longest as u64 + 1);
    let (messages, bytes) = (counted(count, "message"), counted(longest, "byte"));
    let what = format!("filling {messages} up to the longest, of {bytes},");
    tacit_console::machine::check_memory(&what, needed, "put the long ones into a separate run")
}

/// Lines of two messages of 32 hex digits each.
pub(crate) fn hex_pairs(path: &Path, bytes: &[u8]) -> Result<Zeroizing<Vec<[Block; 2]>>> {
    let refuse =
        |line: usize| named(path, &format!("line {line}: must be two messages of 32 hex digits each"));
    let text = std::str::from_utf8(bytes).map_err(|_| refuse(1))?;
    // Room for all from the start: a list that grows leaves copies behind.
    let mut messages = Zeroizing::new(Vec::with_capacity(text.lines().count()));
    for (i, line) in text.lines().enumerate() {
        let mut words = line.split_ascii_whitespace();
        let pair = [words.next(), words.next()].map(|word| word.and_then(parse_block));
        match (pair, words.next()) {
            ([Some(zero), Some(one)], None) => messages.push([zero, one]),
            _ => return Err(refuse(i + 1)),
        }
    }
    Ok(messages)
}

/// Lines of two messages of one digit each, 0 or 1; `None` where the first line has others.
pub(crate) fn bit_pairs(path: &Path, bytes: &[u8]) -> Result<Option<Zeroizing<Vec<[bool; 2]>>>> {
    let bit = |word: &str| match word {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    };
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let mut messages = Zeroizing::new(Vec::with_capacity(text.lines().count()));
    for (i, line) in text.lines().enumerate() {
        let mut words = line.split_ascii_whitespace();
        match ([words.next(), words.next()].map(|word| word.and_then(bit)), words.next()) {
            ([Some(zero), Some(one)], None) => messages.push([zero, one]),
            _ if i == 0 => return Ok(None),
            _ => {
                return Err(named(path, &format!("line {}: must be two digits 0 or 1, as line 1 is", i + 1)));
            }
        }
    }
    Ok((!messages.is_empty()).then_some(messages))
}

/// A block of 32 hex digits, its bytes in memory order.
fn parse_block(word: &str) -> Option<Block> {
    if word.len() != 32 || !word.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(word, 16).ok().map(|number| Block::from_bytes(number.to_be_bytes()))
}

/// The receiver's choices and messages of chosen OT, in a file once the run is over.
pub(crate) struct Taken {
    /// The run that fills it, and its threads.
    run: Option<(Job, usize)>,
    target: PathBuf,
    /// Until it is known how the messages lie, and for those that are kept in memory.
    out: Option<Output>,
    /// Of blocks that go to arrays: they are written as they come.
    share: Option<Share>,
    layout: Layout,
    choices: Zeroizing<Vec<u8>>,
    rows: Zeroizing<Vec<u8>>,
}

impl Taken {
    /// Opens `target`, which must not be of a format that cannot be written.
    pub(crate) fn create(target: &Path) -> Result<Self> {
        values::admits_alone(target)?;
        let out = Some(Output::create_archive(target)?);
        let (choices, rows) = (Zeroizing::default(), Zeroizing::default());
        let (target, layout) = (target.to_owned(), Layout::BLOCKS);
        Ok(Taken { run: None, target, out, share: None, layout, choices, rows })
    }

    /// What fills it.
    pub(crate) fn is_of(&mut self, job: &Job, threads: usize) {
        self.run = Some((job.clone(), threads));
    }

    fn count(&self) -> u64 {
        self.run.as_ref().map_or(0, |(job, _)| job.transfers.count)
    }

    /// All of it at once, which is not of a run: so many choices, and rows that lie so.
    pub(crate) fn whole(
        target: &Path,
        choices: &BitVec,
        layout: Layout,
        rows: Zeroizing<Vec<u8>>,
    ) -> Result<Self> {
        let choices = Zeroizing::new(choices.iter().map(u8::from).collect());
        Ok(Taken { layout, choices, rows, ..Self::create(target)? })
    }

    /// Puts all of it in its place.
    pub(crate) fn finish(self) -> Result<()> {
        if let Some(share) = self.share {
            return share.finish();
        }
        let Some(out) = self.out else { return Ok(()) };
        let rows: Vec<&[u8]> =
            self.rows.chunks(self.layout.width).map(|row| self.layout.message(row)).collect();
        if values::is_table(&self.target) {
            return write_table(out, self.layout.form, &self.choices, &rows);
        }
        write_arrays(out, self.layout, &self.choices, &rows)
    }
}

/// Columns `choice` and `message`: text as it is, or hex digits.
fn write_table(mut out: Output, form: Form, choices: &[u8], rows: &[&[u8]]) -> Result<()> {
    let columns =
        [("choice".to_owned(), Kind::Integer { bits: 8, signed: false }), ("message".to_owned(), Kind::Text)];
    let cells = |row: u64| {
        let (choice, message) = (choices[row as usize], rows[row as usize]);
        let text = match form {
            Form::Text => String::from_utf8_lossy(message).into_owned(),
            _ => tacit::crypto::hex(message),
        };
        vec![Value::Integer(choice.into()), Value::Text(text)]
    };
    let target = out.target().to_owned();
    values::write_alone(&columns, rows.len() as u64, cells, &target, &mut out)?;
    out.commit()
}

/// The choices `u` and messages `m`; of messages that differ in length, `length` too.
fn write_arrays(out: Output, layout: Layout, choices: &[u8], rows: &[&[u8]]) -> Result<()> {
    let n = rows.len() as u64;
    let mut arrays = vec![Array::new("u", Element::U8, &[n])];
    let mut filled = Zeroizing::new(Vec::new());
    let mut lengths = Zeroizing::new(Vec::new());
    if layout.form == Form::Bytes {
        arrays.push(Array::new("m", Element::U8, &[n, layout.width as u64]));
        filled.extend(rows.iter().flat_map(|row| row.iter()));
    } else {
        // NumPy has no strings of no byte.
        let longest = layout.longest().max(1);
        let width = u32::try_from(longest)
            .map_err(|_| Error::Usage("messages of more than 4 GiB: let them go to a table".into()))?;
        arrays.push(Array::new("m", Element::Bytes(width), &[n]));
        arrays.push(Array::new("length", Element::U64, &[n]));
        filled.reserve_exact(longest * rows.len());
        for row in rows {
            filled.extend_from_slice(row);
            filled.extend(std::iter::repeat_n(0, longest - row.len()));
            lengths.extend((row.len() as u64).to_le_bytes());
        }
    }
    let mut file = Arrays::new(out, &arrays)?;
    for (array, bytes) in [choices, &filled[..], &lengths[..]].into_iter().enumerate().take(arrays.len()) {
        file.append(array, bytes)?;
    }
    file.finish()
}

impl Sink for Taken {
    fn sent(&mut self, _: Sent<'_>) -> Result<()> {
        Ok(())
    }

    fn opens(&mut self, layout: Layout) -> Result<()> {
        self.layout = layout;
        let Some((job, threads)) = &self.run else { return Ok(()) };
        let (kind, n) = (job.transfers.kind, job.transfers.count);
        if layout == Layout::BLOCKS && !values::is_table(&self.target) {
            let share = self.out.take().map(|out| Share::new(out, kind, n, job.role));
            self.share = share.transpose()?;
            return Ok(());
        }
        let messages = job.memory_of_own(layout, *threads);
        // As they travel, and once more as they are written.
        let needed = job.memory(*threads).saturating_add(messages.saturating_mul(2));
        let longest = counted(layout.longest(), "byte");
        let what = format!("keeping {} of at most {longest}", counted(n, "message"));
        tacit_console::machine::check_memory(&what, needed, "make the transfers in several runs")?;
        // Here, before a choice is sent: what came of it afterwards would depend on the choices.
        let longest = layout.longest() as u64;
        let cell = if layout.form == Form::Text { longest } else { 2 * longest };
        if values::is_table(&self.target) && !values::admits_cell(&self.target, cell) {
            let (cell, target) = (counted(cell, "character"), name(&self.target));
            return Err(Error::Input(format!(
                "{target}: a cell of a workbook has no room for {cell}; name the output .csv or .parquet"
            )));
        }
        match &mut self.out {
            // Bytes that are no text take three each, and quotes are doubled.
            Some(out) => out.reserve(n.saturating_mul(cell.saturating_mul(3).saturating_add(32))),
            None => Ok(()),
        }
    }

    fn received(&mut self, choices: &BitVec, messages: &[Block]) -> Result<()> {
        match &mut self.share {
            Some(share) => share.received(choices, messages),
            None => self.received_own(choices, Block::as_bytes(messages)),
        }
    }

    fn received_own(&mut self, choices: &BitVec, rows: &[u8]) -> Result<()> {
        if self.rows.capacity() == 0 {
            // Room for all from the start: a vector that grows leaves copies behind.
            let n = self.count() as usize;
            self.choices.reserve_exact(n);
            self.rows.reserve_exact(n * self.layout.width);
        }
        self.choices.extend(choices.iter().map(u8::from));
        self.rows.extend_from_slice(rows);
        Ok(())
    }
}
