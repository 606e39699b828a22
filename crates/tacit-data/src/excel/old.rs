//! What a workbook of before 2007 (.xls) may ask of this machine, looked at before its reader opens it.
//!
//! The reader takes all sheets into memory at once, each as the whole rectangle that its cells span, and follows the
//! chains of sectors that the file names wherever they lead. So the chains are followed here first, and the records
//! of every sheet are read for where its cells lie, in the same order and no further.

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

/// Refuses a workbook of `length` bytes that is damaged, or takes more memory than there is.
pub(super) fn check(stored: &mut (impl Read + Seek), length: u64) -> Result<()> {
    if length > MOST / 8 {
        return Err(Fault::Large(8 * length));
    }
    let mut file = Vec::new();
    stored.seek(SeekFrom::Start(0)).map_err(|_| Fault::Damaged)?;
    stored.take(length).read_to_end(&mut file).map_err(|_| Fault::Damaged)?;
    // The file, its streams, and the tables of their sectors.
    let needed = 4 * length + records(&workbook(&file)?)?;
    match available_memory() {
        Some(available) if needed > available => Err(Fault::Large(needed)),
        _ if needed > MOST => Err(Fault::Large(needed)),
        _ => Ok(()),
    }
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
    match length < 4096 {
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
        let mut all = Vec::new();
        while self.0.starts_with(&[0x3c, 0]) {
            all.extend(self.next()?.map(|(_, data)| data));
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
    for sheet in sheets {
        let (own, range) = of_sheet(stream.get(sheet..).ok_or(Fault::Damaged)?, &texts)?;
        needed = needed.saturating_add(own);
        largest = largest.max(range);
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

/// Bytes of memory that a sheet takes, and those of its cells' rectangle among them.
fn of_sheet(stream: &[u8], texts: &[u64]) -> Result<(u64, u64)> {
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
                return Ok((needed + range + formulas.cells() * FORMULA, range));
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
            }
            0x0207 => {
                values.add(last[0], [last[1]; 2])?;
                needed += CELL + 3 * data.len() as u64;
            }
            _ => {}
        }
        if needed > MOST {
            return Ok((needed, 0));
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

    fn checked(bytes: &[u8]) -> Result<()> {
        check(&mut std::io::Cursor::new(bytes), bytes.len() as u64)
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

    #[test]
    fn shared_texts_are_measured_across_records() {
        let first = [&[0; 8][..], &[3, 0, 0], b"abc", &[4, 0, 1], &[b'x', 0]].concat();
        let second = [&[0][..], b"yzw", &[2, 0, 8, 1, 0], b"ab", &[0; 2]].concat();
        assert_eq!(lengths(&first, vec![&second, &[0; 2]]), Ok(vec![9, 12, 6]));
        assert_eq!(lengths(&first, vec![]), Err(Fault::Damaged));
    }
}
