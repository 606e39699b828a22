//! NumPy's `.npz`: a zip archive of `.npy` arrays, written as a stream, and [read](read()).
//!
//! [`Writer`] lays every array out before the first element arrives (entries are stored, not compressed, so
//! all sizes are known), so that several arrays grow side by side in constant memory. Archives past 4 GiB use
//! zip64. Formats: NEP 1 (`.npy` version 1.0) and PKWARE's APPNOTE 6.3.

mod read;

pub use self::read::{Elements, Loaded, read};
use std::io::{self, Seek, SeekFrom, Write};

/// The type of an array's elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    /// Unsigned bytes, `|u1`.
    U8,
    /// Unsigned 64-bit little-endian numbers, `<u8`.
    U64,
    /// Strings of so many bytes at most, `|S`; zeros fill shorter ones up.
    Bytes(u32),
}

impl Element {
    fn descr(self) -> String {
        match self {
            Element::U8 => "|u1".to_owned(),
            Element::U64 => "<u8".to_owned(),
            Element::Bytes(length) => format!("|S{length}"),
        }
    }

    fn size(self) -> u64 {
        match self {
            Element::U8 => 1,
            Element::U64 => 8,
            Element::Bytes(length) => length.into(),
        }
    }
}

/// One array of an archive: its name without `.npy`, its element type and its shape.
#[derive(Clone, Debug)]
pub struct Array {
    /// The name, as `numpy.load(…)[name]` takes it.
    pub name: &'static str,
    /// The type of the elements.
    pub element: Element,
    /// The lengths of the axes, slowest first.
    pub shape: Vec<u64>,
}

impl Array {
    /// An array of `shape`.
    pub fn new(name: &'static str, element: Element, shape: &[u64]) -> Self {
        Array { name, element, shape: shape.to_vec() }
    }

    fn header(&self) -> Vec<u8> {
        let axes: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        let comma = if axes.len() == 1 { "," } else { "" };
        let dict = format!(
            "{{'descr': '{}', 'fortran_order': False, 'shape': ({}{comma}), }}",
            self.element.descr(),
            axes.join(", ")
        );
        // Magic, version, length and dictionary together fill a multiple of 64 bytes; a new line ends them.
        let total = (10 + dict.len() + 1).next_multiple_of(64);
        let mut out = b"\x93NUMPY\x01\x00".to_vec();
        out.extend(((total - 10) as u16).to_le_bytes());
        out.extend(dict.as_bytes());
        out.resize(total - 1, b' ');
        out.push(b'\n');
        out
    }

    fn bytes(&self) -> u64 {
        self.shape.iter().fold(self.element.size(), |bytes, axis| bytes.saturating_mul(*axis))
    }
}

/// Bytes of an archive of these arrays.
pub fn length(arrays: &[Array]) -> u64 {
    let (mut entries, mut directory) = (0u64, 0u64);
    for array in arrays {
        let name = array.name.len() as u64 + ".npy".len() as u64;
        let size = (array.header().len() as u64).saturating_add(array.bytes());
        let wide = [(size, 16), (entries, 8)].map(|(value, bytes)| if value < MAX32 { 0 } else { bytes });
        let zip64: u64 = wide.iter().sum();
        directory += CENTRAL_HEADER + name + zip64 + if zip64 > 0 { 4 } else { 0 };
        entries = entries.saturating_add(LOCAL_HEADER + name).saturating_add(size);
    }
    let trailer = if entries >= MAX32 { TRAILER + TRAILER64 } else { TRAILER };
    entries.saturating_add(directory + trailer)
}

struct Entry {
    file_name: String,
    /// Offset of the local header.
    start: u64,
    /// Offset of the next byte to write, and of the end.
    next: u64,
    end: u64,
    crc: crc32fast::Hasher,
    size: u64,
}

/// Writes an archive whose arrays are filled in any interleaving.
pub struct Writer<W: Write + Seek> {
    out: W,
    entries: Vec<Entry>,
}

/// Local header with a zip64 field, which both sizes stand in.
const LOCAL_HEADER: u64 = 30 + 20;
/// The directory's entry without name and zip64 field, its end, and the end's zip64 forms.
const CENTRAL_HEADER: u64 = 46;
const TRAILER: u64 = 22;
const TRAILER64: u64 = 56 + 20;
const MAX32: u64 = u32::MAX as u64;
/// 1980-01-01, as `.npz` files that do not depend on the clock have.
const DOS_DATE: u16 = 0x21;

impl<W: Write + Seek> Writer<W> {
    /// Lays out `arrays` from the start of `out`.
    pub fn new(mut out: W, arrays: &[Array]) -> io::Result<Self> {
        let mut entries = Vec::new();
        let mut position = 0;
        for array in arrays {
            let file_name = format!("{}.npy", array.name);
            let header = array.header();
            let first = position + LOCAL_HEADER + file_name.len() as u64;
            let size = header.len() as u64 + array.bytes();
            out.seek(SeekFrom::Start(first))?;
            out.write_all(&header)?;
            let mut crc = crc32fast::Hasher::new();
            crc.update(&header);
            let next = first + header.len() as u64;
            entries.push(Entry { file_name, start: position, next, end: first + size, crc, size });
            position = first + size;
        }
        Ok(Writer { out, entries })
    }

    /// Appends `bytes` to the array of that index; an error if the array would outgrow its shape.
    pub fn append(&mut self, array: usize, bytes: &[u8]) -> io::Result<()> {
        let entry = self.entries.get_mut(array).ok_or(io::ErrorKind::InvalidInput)?;
        if bytes.len() as u64 > entry.end - entry.next {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "more elements than the array's shape holds",
            ));
        }
        self.out.seek(SeekFrom::Start(entry.next))?;
        self.out.write_all(bytes)?;
        entry.crc.update(bytes);
        entry.next += bytes.len() as u64;
        Ok(())
    }

    /// Writes the headers and the directory; an error if an array is not full.
    pub fn finish(mut self) -> io::Result<W> {
        if self.entries.iter().any(|entry| entry.next != entry.end) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "an array is shorter than its shape"));
        }
        let mut directory = Vec::new();
        for entry in &self.entries {
            let crc = entry.crc.clone().finalize();
            self.out.seek(SeekFrom::Start(entry.start))?;
            self.out.write_all(&local_header(entry, crc))?;
            directory.extend(central_header(entry, crc));
        }
        let start = self.entries.last().map_or(0, |entry| entry.end);
        self.out.seek(SeekFrom::Start(start))?;
        self.out.write_all(&directory)?;
        self.out.write_all(&trailer(self.entries.len() as u64, start, directory.len() as u64))?;
        self.out.flush()?;
        Ok(self.out)
    }
}

fn local_header(entry: &Entry, crc: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(LOCAL_HEADER as usize + entry.file_name.len());
    out.extend(b"PK\x03\x04");
    for value in [45u16, 0, 0, 0, DOS_DATE] {
        out.extend(value.to_le_bytes()); // version needed, flags, stored, time, date
    }
    for value in [crc, u32::MAX, u32::MAX] {
        out.extend(value.to_le_bytes());
    }
    out.extend((entry.file_name.len() as u16).to_le_bytes());
    out.extend(20u16.to_le_bytes());
    out.extend(entry.file_name.as_bytes());
    out.extend(1u16.to_le_bytes());
    out.extend(16u16.to_le_bytes());
    out.extend(entry.size.to_le_bytes());
    out.extend(entry.size.to_le_bytes());
    out
}

fn central_header(entry: &Entry, crc: u32) -> Vec<u8> {
    let mut zip64 = Vec::new();
    let mut field = |value: u64, times: usize| {
        if value < MAX32 {
            return value as u32;
        }
        (0..times).for_each(|_| zip64.extend(value.to_le_bytes()));
        u32::MAX
    };
    let size = field(entry.size, 2);
    let start = field(entry.start, 1);
    let mut out = b"PK\x01\x02".to_vec();
    for value in [45u16 | 3 << 8, 45, 0, 0, 0, DOS_DATE] {
        out.extend(value.to_le_bytes()); // made by (Unix), needed, flags, stored, time, date
    }
    for value in [crc, size, size] {
        out.extend(value.to_le_bytes());
    }
    out.extend((entry.file_name.len() as u16).to_le_bytes());
    out.extend((if zip64.is_empty() { 0 } else { zip64.len() as u16 + 4 }).to_le_bytes());
    for value in [0u16, 0, 0] {
        out.extend(value.to_le_bytes()); // comment, disk, internal attributes
    }
    out.extend((0o100600u32 << 16).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend(entry.file_name.as_bytes());
    if !zip64.is_empty() {
        out.extend(1u16.to_le_bytes());
        out.extend((zip64.len() as u16).to_le_bytes());
        out.extend(zip64);
    }
    out
}

fn trailer(entries: u64, start: u64, length: u64) -> Vec<u8> {
    let mut out = Vec::new();
    if start >= MAX32 {
        let here = start + length;
        out.extend(b"PK\x06\x06");
        out.extend(44u64.to_le_bytes());
        out.extend(45u16.to_le_bytes());
        out.extend(45u16.to_le_bytes());
        out.extend([0; 8]);
        for value in [entries, entries, length, start] {
            out.extend(value.to_le_bytes());
        }
        out.extend(b"PK\x06\x07");
        out.extend(0u32.to_le_bytes());
        out.extend(here.to_le_bytes());
        out.extend(1u32.to_le_bytes());
    }
    out.extend(b"PK\x05\x06");
    out.extend([0; 4]);
    out.extend((entries as u16).to_le_bytes());
    out.extend((entries as u16).to_le_bytes());
    out.extend((length.min(MAX32) as u32).to_le_bytes());
    out.extend((start.min(MAX32) as u32).to_le_bytes());
    out.extend(0u16.to_le_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn refuses_arrays_that_do_not_fit() {
        let mut writer = Writer::new(Cursor::new(Vec::new()), &[Array::new("u", Element::U8, &[3])]).unwrap();
        assert!(writer.append(0, &[1, 2, 3, 4]).is_err());
        assert!(writer.append(1, &[1]).is_err());
        writer.append(0, &[1, 2]).unwrap();
        assert!(writer.finish().is_err());
    }

    /// A sink that counts, for archives past 4 GiB.
    struct Counter(u64);

    impl Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for Counter {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            let SeekFrom::Start(at) = to else { return Err(io::ErrorKind::Unsupported.into()) };
            self.0 = at;
            Ok(at)
        }
    }

    #[test]
    fn the_length_is_known_before_the_elements() {
        for n in [0, 1, 1 << 27, 1 << 28, 1 << 29, (1 << 29) - 23] {
            for shape in [&[n][..], &[n, 2]] {
                let arrays = ["v", "m0"].map(|name| Array::new(name, Element::U64, shape));
                let mut writer = Writer::new(Counter(0), &arrays).unwrap();
                // As if all had been written.
                writer.entries.iter_mut().for_each(|entry| entry.next = entry.end);
                assert_eq!(writer.finish().unwrap().0, length(&arrays), "{shape:?}");
            }
        }
        assert!(length(&[Array::new("v", Element::U64, &[1 << 40, 1 << 40])]) > 1 << 60);
    }

    #[test]
    fn interleaved_arrays_stand_where_the_directory_says() {
        let arrays = [Array::new("u", Element::U8, &[2]), Array::new("w", Element::U64, &[2, 2])];
        let mut writer = Writer::new(Cursor::new(Vec::new()), &arrays).unwrap();
        writer.append(1, &[7; 16]).unwrap();
        writer.append(0, &[1]).unwrap();
        writer.append(1, &[8; 16]).unwrap();
        writer.append(0, &[0]).unwrap();
        let bytes = writer.finish().unwrap().into_inner();
        let end = bytes.len() - 22;
        assert_eq!(&bytes[end..end + 4], b"PK\x05\x06");
        let directory = u32::from_le_bytes(bytes[end + 16..end + 20].try_into().unwrap()) as usize;
        assert_eq!(&bytes[directory..directory + 4], b"PK\x01\x02");
        assert_eq!(&bytes[directory - 32..directory - 16], &[7; 16]);
        assert_eq!(&bytes[directory - 16..directory], &[8; 16]);
        assert_eq!(bytes.len() as u64, length(&arrays));
        let u = LOCAL_HEADER as usize + "u.npy".len();
        assert_eq!(&bytes[u..u + 6], b"\x93NUMPY");
        assert_eq!(&bytes[u + 128..u + 130], &[1, 0]);
    }
}
