//! What a workbook of before 2007 (.xls) may ask of this machine, looked at before its reader opens it.
//!
//! The reader takes all sheets into memory at once, each as the whole rectangle that its cells span, and follows the
//! chains of sectors that the file names wherever they lead. So the chains are followed here, the records of every
//! sheet are read for where its cells lie, and the reader gets a container of that stream alone: what it reads is what
//! was looked at.

use crate::machine::available_memory;
use std::io::{Read, Seek, SeekFrom};

/// Bytes of memory for a workbook, at most.
const MOST: u64 = 2 << 30;
/// Rows and columns of a sheet.
const ROWS: u64 = 1 << 16;
const COLUMNS: u64 = 1 << 8;
/// Bytes that a cell takes by itself and within its rectangle, and those of a formula's text there.
const CELL: u64 = 48;
const IN_RANGE: u64 = 32;
const FORMULA: u64 = 24;
/// Bytes of a sector of what the reader gets, and of a stream that lies in small ones if it is shorter.
const SECTOR: usize = 4096;
const LEAST_STREAM: usize = 4096;
/// Bytes of formulas' texts that may be moved for the spaces that stand in them.
const MOST_MOVED: u64 = 1 << 33;
/// The end of a chain of sectors.
const CHAIN_END: u32 = 0xffff_fffe;

/// What is wrong with a file.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// It is damaged, or none that this reads; its reader has the words.
    Damaged,
    /// It takes so many bytes of memory.
    Large(u64),
}

type Result<T> = std::result::Result<T, Fault>;

/// The workbook of `length` bytes for its reader. Errors: one that is damaged, or takes more memory than there is, or
/// far more time than its size.
pub(super) fn checked(stored: &mut (impl Read + Seek), length: u64) -> Result<Vec<u8>> {
    if length > MOST / 8 {
        return Err(Fault::Large(8 * length));
    }
    let mut file = Vec::new();
    stored.seek(SeekFrom::Start(0)).map_err(|_| Fault::Damaged)?;
    stored.take(length).read_to_end(&mut file).map_err(|_| Fault::Damaged)?;
    let mut stream = workbook(&file)?;
    stream.resize(stream.len().max(LEAST_STREAM).next_multiple_of(SECTOR), 0);
    // The file, its streams, and the tables of their sectors.
    let needed = 4 * length + records(&stream)?;
    match available_memory() {
        Some(available) if needed > available => Err(Fault::Large(needed)),
        _ if needed > MOST => Err(Fault::Large(needed)),
        _ => Ok(container(&stream)),
    }
}

/// A container of one stream of whole sectors: a header, the tables of what follows each sector, the folder, the stream.
fn container(stream: &[u8]) -> Vec<u8> {
    const OF_TABLE: usize = SECTOR / 4;
    let count = stream.len() / SECTOR;
    let tables = (count + 1 + (count + 1).div_ceil(OF_TABLE - 1)).div_ceil(OF_TABLE);
    let number = |at: usize| (at as u32).to_le_bytes();
    let mut head = vec![0; SECTOR];
    head[..8].copy_from_slice(&[0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1]);
    for (at, two) in [(24, 0x3e), (26, 4), (28, 0xfffe), (30, 12), (32, 6)] {
        head[at..at + 2].copy_from_slice(&u16::to_le_bytes(two));
    }
    for (at, four) in [(40, 1), (44, tables), (48, tables), (56, LEAST_STREAM)] {
        head[at..at + 4].copy_from_slice(&number(four));
    }
    for at in [60, 68] {
        head[at..at + 4].copy_from_slice(&CHAIN_END.to_le_bytes());
    }
    head[76..512].fill(0xff);
    for (at, table) in head[76..512].as_chunks_mut().0.iter_mut().zip(0..tables) {
        *at = number(table);
    }
    let mut next = vec![CHAIN_END - 1; tables];
    next.push(CHAIN_END);
    next.extend((1..count).map(|at| (tables + 1 + at) as u32));
    next.push(CHAIN_END);
    next.resize(tables * OF_TABLE, u32::MAX);
    let mut folder = vec![0; SECTOR];
    for (at, name, kind, start, length) in
        [(0, "Root Entry", 5, 0, 0), (128, "Workbook", 2, tables + 1, stream.len())]
    {
        for (unit, two) in name.encode_utf16().zip(folder[at..at + 64].as_chunks_mut().0) {
            *two = unit.to_le_bytes();
        }
        folder[at + 64] = 2 * (name.len() as u8 + 1);
        folder[at + 66] = kind;
        folder[at + 116..at + 120].copy_from_slice(&number(start));
        folder[at + 120..at + 128].copy_from_slice(&(length as u64).to_le_bytes());
    }
    let mut file = Vec::with_capacity((1 + tables + 1 + count) * SECTOR);
    file.extend(head);
    file.extend(next.into_iter().flat_map(u32::to_le_bytes));
    file.extend(folder);
    file.extend_from_slice(stream);
    file
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16> {
    let two = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    two.copied().map(u16::from_le_bytes).ok_or(Fault::Damaged)
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32> {
    let four = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    four.copied().map(u32::from_le_bytes).ok_or(Fault::Damaged)
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks().0.iter().copied().map(u32::from_le_bytes)
}

/// Sectors of one size behind each other.
struct Sectors<'a> {
    bytes: &'a [u8],
    size: usize,
}

impl<'a> Sectors<'a> {
    fn get(&self, number: u32) -> Result<&'a [u8]> {
        let start = (number as usize).checked_mul(self.size).filter(|start| *start < self.bytes.len());
        let start = start.ok_or(Fault::Damaged)?;
        Ok(&self.bytes[start..self.bytes.len().min(start + self.size)])
    }

    /// The first `length` bytes of the chain that begins at a sector, or all. A chain that comes back to itself has
    /// more sectors than there are.
    fn chain(&self, first: u32, next: &[u32], length: u64) -> Result<Vec<u8>> {
        let (mut chain, mut number) = (Vec::new(), first);
        for _ in 0..=self.bytes.len() / self.size {
            if number == CHAIN_END || chain.len() as u64 >= length {
                chain.truncate(usize::try_from(length).unwrap_or(usize::MAX));
                return Ok(chain);
            }
            chain.extend_from_slice(self.get(number)?);
            number = *next.get(number as usize).ok_or(Fault::Damaged)?;
        }
        if chain.len() as u64 >= length { Ok(chain) } else { Err(Fault::Damaged) }
    }
}

/// The stream of the workbook within its container (MS-CFB).
fn workbook(file: &[u8]) -> Result<Vec<u8>> {
    let size = match u16_at(file, 30)? {
        9 => 512,
        12 => 4096,
        _ => return Err(Fault::Damaged),
    };
    let sectors = Sectors { bytes: file.get(size..).ok_or(Fault::Damaged)?, size };
    let most = sectors.bytes.len() / size + 1;
    // Which sectors hold the table of what follows each sector.
    let mut tables: Vec<u32> = numbers(&file[76..512]).collect();
    let mut more = u32_at(file, 68)?;
    for _ in 0..=most {
        if more >= 0xffff_fffa {
            break;
        }
        tables.extend(numbers(sectors.get(more)?));
        more = tables.pop().ok_or(Fault::Damaged)?;
    }
    tables.retain(|number| *number < 0xffff_fffc);
    if tables.len() > most {
        return Err(Fault::Damaged);
    }
    let mut next = Vec::new();
    for table in tables {
        next.extend(numbers(sectors.get(table)?));
    }
    let folder = sectors.chain(u32_at(file, 48)?, &next, u64::MAX)?;
    let entries = folder.as_chunks::<128>().0;
    let length_of = |entry: &[u8; 128]| -> Result<u64> {
        let high = if size == 512 { 0 } else { u64::from(u32_at(entry, 124)?) << 32 };
        Ok(high + u64::from(u32_at(entry, 120)?))
    };
    let root = entries.first().ok_or(Fault::Damaged)?;
    let (mut small, mut small_next) = (Vec::new(), Vec::new());
    if u32_at(file, 64)? > 0 {
        small = sectors.chain(u32_at(root, 116)?, &next, length_of(root)?)?;
        let table = sectors.chain(u32_at(file, 60)?, &next, u64::from(u32_at(file, 64)?) * size as u64)?;
        small_next = numbers(&table).collect();
    }
    let called = |wanted: &str| {
        entries.iter().find(|entry| {
            let (name, _) = encoding_rs::UTF_16LE.decode_without_bom_handling(&entry[..64]);
            name.split('\0').next().is_some_and(|name| name.eq_ignore_ascii_case(wanted))
        })
    };
    let entry = called("Workbook").or_else(|| called("Book")).ok_or(Fault::Damaged)?;
    let (start, length) = (u32_at(entry, 116)?, length_of(entry)?);
    match length < LEAST_STREAM as u64 {
        true => Sectors { bytes: &small, size: 64 }.chain(start, &small_next, length),
        false => sectors.chain(start, &next, length),
    }
}

/// Records of a stream: their types and what they hold.
struct Records<'a>(&'a [u8]);

impl<'a> Records<'a> {
    fn next(&mut self) -> Result<Option<(u16, &'a [u8])>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let (kind, length) = (u16_at(self.0, 0)?, usize::from(u16_at(self.0, 2)?));
        let data = self.0.get(4..4 + length).ok_or(Fault::Damaged)?;
        self.0 = &self.0[4 + length..];
        Ok(Some((kind, data)))
    }

    /// What the records behind hold that continue the last one.
    fn continued(&mut self) -> Result<Vec<&'a [u8]>> {
        let (mut all, mut bytes) = (Vec::new(), 0);
        while self.0.starts_with(&[0x3c, 0]) {
            all.extend(self.next()?.map(|(_, data)| data));
            bytes += all.last().map_or(0, |data| data.len());
            // The reader takes a time that grows by the square of their number; writers fill them.
            if all.len() > 1024 + bytes / 512 {
                return Err(Fault::Damaged);
            }
        }
        Ok(all)
    }
}

/// Bytes of memory that the sheets take.
fn records(stream: &[u8]) -> Result<u64> {
    let (mut sheets, mut texts) = (Vec::new(), Vec::new());
    let mut records = Records(stream);
    while let Some((kind, data)) = records.next()? {
        match kind {
            // A password: nothing is read.
            0x2f if u16_at(data, 0)? != 0 => return Ok(0),
            0x85 => sheets.push(u32_at(data, 0)? as usize),
            0xfc => texts = lengths(data, records.continued()?)?,
            0x0a => break,
            _ => {}
        }
    }
    let (mut needed, mut largest) = (texts.iter().map(|length| length + FORMULA).sum::<u64>(), 0);
    let (mut walked, mut moved) = (0, 0);
    for sheet in sheets {
        let of = of_sheet(stream.get(sheet..).ok_or(Fault::Damaged)?, &texts, &mut moved)?;
        needed = needed.saturating_add(of.needed);
        largest = largest.max(of.range);
        walked += of.walked;
        // Sheets that lie in one another.
        if walked > 2 * stream.len() {
            return Err(Fault::Damaged);
        }
        if needed > MOST {
            break;
        }
    }
    // A sheet that is read is copied once.
    Ok(needed.saturating_add(largest))
}

/// The rectangle that cells span.
#[derive(Default)]
struct Span(Option<[u64; 4]>);

impl Span {
    fn add(&mut self, row: u64, columns: [u64; 2]) -> Result<()> {
        if columns[0] > columns[1] || columns[1] >= COLUMNS {
            return Err(Fault::Damaged);
        }
        let [top, bottom, left, right] = self.0.unwrap_or([row, row, columns[0], columns[1]]);
        self.0 = Some([top.min(row), bottom.max(row), left.min(columns[0]), right.max(columns[1])]);
        Ok(())
    }

    fn cells(&self) -> u64 {
        self.0.map_or(0, |[top, bottom, left, right]| (bottom - top + 1) * (right - left + 1))
    }
}

/// What a sheet takes.
struct Sheet {
    /// Bytes of memory, and those of its cells' rectangle among them.
    needed: u64,
    range: u64,
    /// Bytes of its records.
    walked: usize,
}

/// Spaces in a formula's text, at most: its tokens for them are two bytes, of which kind, and how many. The reader puts
/// each in by moving what stands behind it.
fn spaces(tokens: &[u8]) -> u64 {
    let of = |token: &[u8]| matches!(token, [0x19, 0x40 | 0x41, ..]).then(|| u64::from(token[3]));
    tokens.windows(4).filter_map(of).sum()
}

/// What a sheet takes; `moved` counts the bytes that formulas make the reader move.
fn of_sheet(stream: &[u8], texts: &[u64], moved: &mut u64) -> Result<Sheet> {
    let (mut values, mut formulas) = (Span::default(), Span::default());
    let (mut needed, mut depth, mut last) = (0u64, 0u64, [0, 0]);
    let mut records = Records(stream);
    while let Some((kind, data)) = records.next()? {
        let place = || Ok([u64::from(u16_at(data, 0)?), u64::from(u16_at(data, 2)?)]);
        match kind {
            // Within a chart or another sheet nothing counts.
            0x0809 => depth += 1,
            0x0a if depth <= 1 => {
                let range = values.cells() * IN_RANGE;
                let needed = needed + range + formulas.cells() * FORMULA;
                return Ok(Sheet { needed, range, walked: stream.len() - records.0.len() });
            }
            0x0a => depth -= 1,
            _ if depth > 1 => {}
            0x0200 => {
                let of = |at: usize, wide: bool| match wide {
                    true => u32_at(data, at).map(u64::from),
                    false => u16_at(data, at).map(u64::from),
                };
                let wide = data.len() > 10;
                let at = if wide { [0, 4, 8, 10] } else { [0, 2, 4, 6] };
                let [top, bottom] = [of(at[0], wide)?, of(at[1], wide)?];
                let [left, right] = [of(at[2], false)?, of(at[3], false)?];
                let left = if left >= COLUMNS || right < left { 0 } else { left };
                if bottom > 0 && right > 0 {
                    if bottom > ROWS || right > COLUMNS || top >= bottom || left >= right {
                        return Err(Fault::Damaged);
                    }
                    needed += (bottom - top) * (right - left) * CELL;
                }
            }
            0x0203 | 0x0204 | 0xd6 | 0x0205 | 0x027e => {
                let [row, column] = place()?;
                values.add(row, [column; 2])?;
                needed += CELL + 3 * data.len() as u64;
            }
            0xfd => {
                let [row, column] = place()?;
                values.add(row, [column; 2])?;
                let text = texts.get(u32_at(data, 6)? as usize).ok_or(Fault::Damaged)?;
                needed = needed.saturating_add(CELL + text);
            }
            0xbd => {
                let [row, column] = place()?;
                let to = u64::from(u16_at(data, data.len().saturating_sub(2))?);
                values.add(row, [column, to])?;
                needed += CELL * (data.len() as u64 / 6 + 1);
            }
            0x06 => {
                last = place()?;
                values.add(last[0], [last[1]; 2])?;
                formulas.add(last[0], [last[1]; 2])?;
                // A reference of seven bytes takes a sheet's name in the formula's text.
                needed += 2 * CELL + 128 * data.len() as u64;
                let spaces = spaces(data);
                *moved = moved.saturating_add(spaces * (spaces + 128 * data.len() as u64));
                if *moved > MOST_MOVED {
                    return Err(Fault::Damaged);
                }
            }
            0x0207 => {
                values.add(last[0], [last[1]; 2])?;
                needed += CELL + 3 * data.len() as u64;
            }
            _ => {}
        }
        if needed > MOST {
            return Ok(Sheet { needed, range: 0, walked: 0 });
        }
    }
    // A sheet that ends without its end was cut short, or the reader took one within for it.
    Err(Fault::Damaged)
}

/// Bytes of the shared texts as memory has them, at most. Each may go on in the next record, where another byte says
/// how its characters are written.
fn lengths(data: &[u8], continued: Vec<&[u8]>) -> Result<Vec<u64>> {
    let mut texts = Texts { data: data.get(8..).ok_or(Fault::Damaged)?, continued: continued.into_iter() };
    let mut lengths = Vec::new();
    while !texts.data.is_empty() || texts.go_on() {
        lengths.push(texts.next()?);
    }
    Ok(lengths)
}

struct Texts<'a> {
    data: &'a [u8],
    continued: std::vec::IntoIter<&'a [u8]>,
}

impl Texts<'_> {
    fn go_on(&mut self) -> bool {
        let next = self.continued.next();
        self.data = next.unwrap_or_default();
        next.is_some()
    }

    fn pass(&mut self, bytes: usize) -> Result<()> {
        self.data = self.data.get(bytes..).ok_or(Fault::Damaged)?;
        Ok(())
    }

    fn next(&mut self) -> Result<u64> {
        if self.data.is_empty() {
            return Ok(0);
        }
        let (mut left, mut flags) =
            (usize::from(u16_at(self.data, 0)?), *self.data.get(2).ok_or(Fault::Damaged)?);
        self.pass(3)?;
        let length = 3 * left as u64;
        let mut behind = 0usize;
        if flags & 8 != 0 {
            behind += 4 * usize::from(u16_at(self.data, 0)?);
            self.pass(2)?;
        }
        if flags & 4 != 0 {
            behind += u32_at(self.data, 0)? as usize;
            self.pass(4)?;
        }
        loop {
            let wide = if flags & 1 == 0 { 1 } else { 2 };
            let here = left.min(self.data.len() / wide);
            self.pass(here * wide)?;
            left -= here;
            if left == 0 {
                break;
            }
            if !self.go_on() {
                return Err(Fault::Damaged);
            }
            flags = *self.data.first().ok_or(Fault::Damaged)?;
            self.pass(1)?;
        }
        while behind > 0 {
            if self.data.is_empty() && !self.go_on() {
                return Err(Fault::Damaged);
            }
            let here = behind.min(self.data.len());
            self.pass(here)?;
            behind -= here;
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use calamine::{Reader as _, Xls};

    fn record(kind: u16, data: &[u8]) -> Vec<u8> {
        [&kind.to_le_bytes()[..], &(data.len() as u16).to_le_bytes(), data].concat()
    }

    /// A number in a cell.
    fn number(row: u16, column: u16) -> Vec<u8> {
        let place = [row.to_le_bytes(), column.to_le_bytes(), [0; 2]].concat();
        record(0x0203, &[place, 1.5f64.to_le_bytes().to_vec()].concat())
    }

    /// The stream of a workbook with these sheets' records.
    fn stream(sheets: &[Vec<u8>]) -> Vec<u8> {
        let bound = |at: u32| record(0x85, &[&at.to_le_bytes()[..], &[0, 0, 1, 0, b'a']].concat());
        let bof = record(0x0809, &[0, 6, 5, 0]);
        let mut at = (bof.len() + sheets.len() * bound(0).len() + 4) as u32;
        let mut head = bof.clone();
        let mut all = Vec::new();
        for sheet in sheets {
            head.extend(bound(at));
            at += sheet.len() as u32;
            all.extend_from_slice(sheet);
        }
        [head, record(0x0a, &[]), all].concat()
    }

    fn sheet(cells: &[Vec<u8>]) -> Vec<u8> {
        [record(0x0809, &[0, 6, 16, 0]), cells.concat(), record(0x0a, &[])].concat()
    }

    /// A container with this stream, in sectors of 512 bytes one after another.
    fn container(stream: &[u8]) -> Vec<u8> {
        let mut stream = stream.to_vec();
        stream.resize(stream.len().max(4096).next_multiple_of(512), 0);
        let count = (stream.len() / 512) as u32;
        assert!(count + 2 <= 128);
        let mut head = vec![0u8; 512];
        head[..8].copy_from_slice(&[0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1]);
        head[26] = 3;
        (head[30], head[32]) = (9, 6);
        head[44..48].copy_from_slice(&1u32.to_le_bytes());
        head[48..52].copy_from_slice(&1u32.to_le_bytes());
        head[68..72].copy_from_slice(&CHAIN_END.to_le_bytes());
        head[76..].fill(0xff);
        head[76..80].copy_from_slice(&0u32.to_le_bytes());
        let mut table = vec![0xffff_fffdu32, CHAIN_END];
        table.extend((2..count + 2).map(|at| if at == count + 1 { CHAIN_END } else { at + 1 }));
        table.resize(128, u32::MAX);
        let entry = |name: &str, start: u32, length: u32| {
            let mut entry = [0u8; 128];
            name.encode_utf16().enumerate().for_each(|(at, unit)| entry[2 * at] = unit as u8);
            entry[116..120].copy_from_slice(&start.to_le_bytes());
            entry[120..124].copy_from_slice(&length.to_le_bytes());
            entry
        };
        let folder = [
            entry("Root Entry", CHAIN_END, 0),
            entry("Workbook", 2, stream.len() as u32),
            [0; 128],
            [0; 128],
        ];
        [head, table.into_iter().flat_map(u32::to_le_bytes).collect(), folder.concat(), stream].concat()
    }

    fn check(bytes: &[u8]) -> Result<Vec<u8>> {
        super::checked(&mut std::io::Cursor::new(bytes), bytes.len() as u64)
    }

    fn checked(bytes: &[u8]) -> Result<()> {
        check(bytes).map(drop)
    }

    #[test]
    fn a_workbook_is_measured_by_where_its_cells_lie() {
        let small = sheet(&[number(0, 0), number(9, 3)]);
        assert_eq!(records(&stream(std::slice::from_ref(&small))), Ok(2 * (CELL + 42) + 2 * 40 * IN_RANGE));
        assert_eq!(checked(&container(&stream(std::slice::from_ref(&small)))), Ok(()));
        let corner = sheet(&[number(0, 0), number(65_535, 255)]);
        assert!(records(&stream(std::slice::from_ref(&corner))).unwrap() > 1 << 30);
        let many = checked(&container(&stream(&vec![corner; 9])));
        assert!(matches!(many, Err(Fault::Large(_))), "{many:?}");
        // A column that no sheet has, more rows than one has, and a sheet without its end.
        let cut = [record(0x0809, &[0, 6, 16, 0]), number(0, 0)].concat();
        let rows = [&[0; 4][..], &(1u32 << 24).to_le_bytes(), &[0, 0, 0, 1, 0, 0]].concat();
        let nested = sheet(&[record(0x0809, &[0, 6, 32, 0]), number(0, 0)]);
        for wrong in [sheet(&[number(0, 256)]), sheet(&[record(0x0200, &rows)]), cut, nested] {
            assert_eq!(records(&stream(&[wrong])), Err(Fault::Damaged));
        }
        // A text that is not there.
        let text = record(0xfd, &[0; 10]);
        assert_eq!(records(&stream(&[sheet(&[text])])), Err(Fault::Damaged));
    }

    #[test]
    fn a_chain_that_comes_back_to_itself_has_an_end() {
        let whole = container(&stream(&[sheet(&[number(0, 0)])]));
        // The folder, and the workbook's first sector with a length beyond the file.
        for (at, next) in [(1usize, 1u32), (2, 2)] {
            let mut bytes = whole.clone();
            bytes[512 + 4 * at..][..4].copy_from_slice(&next.to_le_bytes());
            bytes[1024 + 128 + 120..][..4].fill(0xff);
            assert_eq!(checked(&bytes), Err(Fault::Damaged), "{at}");
        }
        for cut in (0..whole.len()).step_by(97) {
            let _ = checked(&whole[..cut]);
        }
    }

    /// The reader gets the stream that was looked at and nothing else of the file.
    #[test]
    fn the_reader_has_what_was_looked_at() {
        let good = stream(&[sheet(&[number(0, 0), number(1, 0)])]);
        let mut bytes = container(&good);
        // An entry in front that the reader would take for the workbook, by the mark in front of its name.
        bytes.copy_within(1024 + 128..1024 + 256, 1024 + 256);
        bytes[1024 + 128..][..64].fill(0);
        bytes[1024 + 128..][..11].copy_from_slice(b"\xef\xbb\xbfWorkbook");
        bytes[1024 + 128 + 120..][..4].fill(0xff);
        let given = check(&bytes).unwrap();
        assert_eq!(workbook(&given).unwrap()[..good.len()], good);
        let book: Xls<_> = Xls::new(std::io::Cursor::new(given)).unwrap();
        assert_eq!(book.sheets_metadata().len(), 1);
        // As many sectors as need a second table, and a third.
        for sectors in [1, 1022, 1023, 1024, 2045, 2046, 2047, 5000] {
            let stream: Vec<u8> = (0..sectors * SECTOR).map(|at| (at % 251) as u8).collect();
            assert!(workbook(&super::container(&stream)).unwrap() == stream, "{sectors}");
        }
    }

    #[test]
    fn what_would_take_a_reader_hours_is_refused() {
        let spaces = [[0; 22].to_vec(), [0x19, 0x40, 0, 0xff].repeat(2_000)].concat();
        let formula = record(0x06, &spaces);
        assert_eq!(records(&stream(&[sheet(std::slice::from_ref(&formula))])), Err(Fault::Damaged));
        assert!(records(&stream(&[sheet(&[record(0x06, &spaces[..62])])])).is_ok());
        let one = sheet(&vec![record(0x1234, &[0; 100]); 50]);
        assert!(records(&stream(&[one.clone(), one])).is_ok());
        // Many sheets at one place.
        let mut many = stream(&vec![sheet(&[]); 40]);
        let at = many.len() as u32;
        many.extend(sheet(&vec![record(0x1234, &[0; 100]); 50]));
        let bof = record(0x0809, &[0, 6, 5, 0]).len();
        for sheet in 0..40 {
            many[bof + sheet * 13 + 4..][..4].copy_from_slice(&at.to_le_bytes());
        }
        assert_eq!(records(&many), Err(Fault::Damaged));
        let texts = record(0xfc, &[0; 8]);
        let continued = [texts, record(0x3c, &[]).repeat(2_000)].concat();
        let workbook = [record(0x0809, &[0, 6, 5, 0]), continued, record(0x0a, &[])].concat();
        assert_eq!(records(&workbook), Err(Fault::Damaged));
    }

    #[test]
    fn shared_texts_are_measured_across_records() {
        let first = [&[0; 8][..], &[3, 0, 0], b"abc", &[4, 0, 1], &[b'x', 0]].concat();
        let second = [&[0][..], b"yzw", &[2, 0, 8, 1, 0], b"ab", &[0; 2]].concat();
        assert_eq!(lengths(&first, vec![&second, &[0; 2]]), Ok(vec![9, 12, 6]));
        assert_eq!(lengths(&first, vec![]), Err(Fault::Damaged));
    }
}
