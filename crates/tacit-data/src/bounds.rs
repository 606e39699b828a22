//! What a file of columns may ask of this machine's memory, looked at before a library gives it any.
//!
//! The libraries that read Arrow and Parquet allocate what a file says, and a process that the system refuses
//! memory ends. So the places and sizes that an Arrow file's footer names are held against the file, and what
//! its packed buffers and a Parquet file's pages say of their sizes against the memory that there is. Where cells
//! are long, or rows share a long one, few rows are read together. Rows are bounded when they have been read.

use crate::input::Stored;
use crate::machine::available_memory;
use crate::within::parts;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RecordBatch, RunArray};
use arrow_ipc::{Block, root_as_footer, root_as_message};
use arrow_schema::DataType;
use parquet::basic::{Encoding, Type as Physical};
use parquet::column::page::Page as ColumnPage;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::collections::BTreeSet;
use std::io::{self, Read, Seek, SeekFrom};

/// Rows of a batch, at most.
const MOST_OF_BATCH: u64 = u32::MAX as u64;
/// Bytes of a Parquet page unpacked, at most: writers make pages of a MiB.
const MOST_OF_PAGE: u64 = 1 << 30;
/// Bytes of long cells that are read together.
const MOST_TOGETHER: u64 = 1 << 27;
/// Bytes that may be shared by all rows of a batch.
const FEW_BYTES: usize = 1 << 16;
/// Bytes of a Parquet page's header that are looked at.
const PAGE_HEADER: u64 = 1 << 16;

fn too_large(needed: u64, available: u64) -> String {
    format!(
        "a part of it needs {} MiB uncompressed, and this machine has {} MiB available; write it in smaller \
         batches, row groups or pages",
        needed >> 20,
        available >> 20
    )
}

fn check_memory(needed: u64) -> Result<(), String> {
    match available_memory() {
        Some(available) if needed > available => Err(too_large(needed, available)),
        _ => Ok(()),
    }
}

fn unread(error: io::Error) -> String {
    error.to_string()
}

/// The bytes at a place, which the caller knows to be few.
fn bytes_at(stored: &mut Stored, at: u64, length: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    stored.seek(SeekFrom::Start(at)).map_err(unread)?;
    stored.take(length).read_to_end(&mut bytes).map_err(unread)?;
    Ok(bytes)
}

/// Holds what an Arrow file says of itself against its length and the machine's memory. What is no Arrow file at
/// all is left to its reader.
pub(crate) fn check_arrow(stored: &mut Stored, length: u64) -> Result<(), String> {
    let beyond = || "it refers to positions beyond its end; it is truncated or damaged".to_owned();
    let Some(end) = length.checked_sub(10) else { return Ok(()) };
    let tail = bytes_at(stored, end, 4)?;
    let Ok(footer) = <[u8; 4]>::try_from(tail) else { return Ok(()) };
    let footer = u64::try_from(i32::from_le_bytes(footer)).map_err(|_| beyond())?;
    let start = end.checked_sub(footer).ok_or_else(beyond)?;
    let footer = bytes_at(stored, start, footer)?;
    let Ok(footer) = root_as_footer(&footer) else { return Ok(()) };
    let blocks =
        footer.dictionaries().into_iter().flatten().chain(footer.recordBatches().into_iter().flatten());
    for block in blocks {
        let place = Place::of(block).filter(|place| place.end().is_some_and(|end| end <= length));
        let place = place.ok_or_else(beyond)?;
        let message = bytes_at(stored, place.offset, place.metadata)?;
        check_message(stored, &place, &message)?;
    }
    Ok(())
}

/// Whether this is the start of a stream in Arrow's format: a message with the schema.
pub(crate) fn is_arrow_stream(start: &[u8]) -> bool {
    let Some((head, rest)) = start.split_first_chunk::<8>() else { return false };
    let [mark @ .., a, b, c, d] = *head;
    let Ok(length) = usize::try_from(i32::from_le_bytes([a, b, c, d])) else { return false };
    // Of a wide table the message is longer than what is looked at.
    let has_schema = |message: &[u8]| root_as_message(message).is_ok_and(|m| m.header_as_schema().is_some());
    mark == [0xff; 4] && length > 0 && rest.get(..length).is_none_or(has_schema)
}

/// Holds what an Arrow stream's messages say of themselves against its length and the machine's memory. Returns
/// whether a column has several dictionaries.
pub(crate) fn check_arrow_stream(stored: &mut Stored, length: u64) -> Result<bool, String> {
    let cut = || "it is truncated or damaged".to_owned();
    let (mut at, mut dictionaries, mut has_several) = (0u64, BTreeSet::new(), false);
    while at < length {
        let head = <[u8; 8]>::try_from(bytes_at(stored, at, 8)?).map_err(|_| cut())?;
        let [mark @ .., a, b, c, d] = head;
        let metadata = u64::try_from(i32::from_le_bytes([a, b, c, d])).map_err(|_| cut())?;
        if mark != [0xff; 4] {
            return Err(cut());
        }
        if metadata == 0 {
            break;
        }
        let end = at.checked_add(8 + metadata).filter(|end| *end <= length).ok_or_else(cut)?;
        let message = bytes_at(stored, at, 8 + metadata)?;
        let body = {
            let message = root_as_message(&message[8..]).map_err(|_| cut())?;
            let dictionary = message.header_as_dictionary_batch();
            has_several |= dictionary.is_some_and(|dictionary| !dictionaries.insert(dictionary.id()));
            u64::try_from(message.bodyLength()).map_err(|_| cut())?
        };
        let place = Place { offset: at, metadata: 8 + metadata, body };
        let next = end.checked_add(body).filter(|next| *next <= length).ok_or_else(cut)?;
        if at > 0 {
            check_message(stored, &place, &message)?;
        }
        at = next;
    }
    Ok(has_several)
}

/// Where a block lies.
struct Place {
    offset: u64,
    metadata: u64,
    body: u64,
}

impl Place {
    fn of(block: &Block) -> Option<Self> {
        let of = |number: i64| u64::try_from(number).ok();
        let metadata = of(block.metaDataLength().into())?;
        Some(Place { offset: of(block.offset())?, metadata, body: of(block.bodyLength())? })
    }

    fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.metadata)?.checked_add(self.body)
    }
}

/// What a batch takes when its buffers are unpacked.
fn check_message(stored: &mut Stored, place: &Place, message: &[u8]) -> Result<(), String> {
    // Newer files have a mark before the length, older ones the length alone.
    let skip = if message.starts_with(&[0xff; 4]) { 8 } else { 4 };
    let none = || "a batch of it has no description of its content; it is truncated or damaged".to_owned();
    // The library reads on behind the length that the footer names: nothing may be left to it here.
    let message = message.get(skip..).and_then(|message| root_as_message(message).ok()).ok_or_else(none)?;
    let dictionary = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
    let batch = message.header_as_record_batch().or(dictionary).ok_or_else(none)?;
    let mut lengths = batch.nodes().into_iter().flatten().map(|node| node.length()).chain([batch.length()]);
    if lengths.any(|length| u64::try_from(length).is_ok_and(|length| length > MOST_OF_BATCH)) {
        return Err(format!("a batch of it claims more than {MOST_OF_BATCH} rows"));
    }
    if batch.compression().is_none() {
        return Ok(());
    }
    let mut needed = place.body;
    for buffer in batch.buffers().into_iter().flatten().filter(|buffer| buffer.length() >= 8) {
        let at = u64::try_from(buffer.offset()).ok().filter(|at| at.checked_add(8) <= Some(place.body));
        let at = at.ok_or_else(none)?;
        let unpacked = bytes_at(stored, place.offset + place.metadata + at, 8)?;
        // A negative one says that the buffer is not packed.
        let unpacked = <[u8; 8]>::try_from(unpacked).map_or(0, i64::from_le_bytes);
        needed = needed.saturating_add(u64::try_from(unpacked).unwrap_or(0));
    }
    check_memory(needed)
}

/// How many of at most these rows are taken together where each takes so many bytes: a value that rows share is
/// written out for each.
pub(crate) fn rows_together(longest: u64, most: usize) -> usize {
    usize::try_from(MOST_TOGETHER / longest.max(1)).unwrap_or(usize::MAX).clamp(1, most)
}

/// The same of a batch whose rows share values.
pub(crate) fn rows_of(batch: &RecordBatch, most: usize) -> usize {
    let longest = batch.columns().iter().map(|column| longest_shared(&**column));
    rows_together(longest.fold(0, u64::saturating_add), most)
}

/// Whether cells of this type, or parts of one, may be one value that is stored once.
fn may_share(data: &DataType) -> bool {
    match data {
        DataType::Dictionary(..) | DataType::RunEndEncoded(..) | DataType::Union(..) => true,
        DataType::Utf8View | DataType::BinaryView => true,
        DataType::ListView(_) | DataType::LargeListView(_) => true,
        other => parts(other).into_iter().any(may_share),
    }
}

/// Whether one cell of this type may have such a value many times.
fn may_repeat(data: &DataType) -> bool {
    match data {
        DataType::List(of)
        | DataType::LargeList(of)
        | DataType::ListView(of)
        | DataType::LargeListView(of)
        | DataType::FixedSizeList(of, _)
        | DataType::Map(of, _) => may_share(of.data_type()),
        other => parts(other).into_iter().any(may_repeat),
    }
}

/// Bytes of the longest cell, what no other cell can share aside.
fn longest_shared(array: &dyn Array) -> u64 {
    let each = || (0..array.len()).map(|at| bytes_of(array, at, at + 1)).max().unwrap_or(0);
    // As many as the most elements, each the longest: where that is much it is looked at which cells have which.
    let of_lists = |elements: u64, longest: u64| match elements.saturating_mul(longest) {
        few if few <= FEW_BYTES as u64 / 8 => few,
        _ => each(),
    };
    match array.data_type() {
        data if !may_share(data) => 0,
        DataType::Dictionary(..) => longest_value(&**array.as_any_dictionary().values()),
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => longest_value(&**array.as_run::<Int16Type>().values()),
            DataType::Int32 => longest_value(&**array.as_run::<Int32Type>().values()),
            _ => longest_value(&**array.as_run::<Int64Type>().values()),
        },
        DataType::Utf8View | DataType::BinaryView => longest_value(array),
        DataType::Struct(_) => {
            let fields = array.as_struct().columns().iter().map(|field| longest_shared(&**field));
            fields.fold(0, u64::saturating_add)
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            of_lists(longest_between(list.value_offsets()), longest_shared(&**list.values()))
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            of_lists(longest_between(list.value_offsets()), longest_shared(&**list.values()))
        }
        DataType::Map(..) => {
            let map = array.as_map();
            of_lists(longest_between(map.value_offsets()), longest_shared(map.entries()))
        }
        DataType::FixedSizeList(_, size) => {
            let longest = longest_shared(&**array.as_fixed_size_list().values());
            of_lists(u64::try_from(*size).unwrap_or(0), longest)
        }
        // Of these the cells may share the elements themselves.
        DataType::ListView(_) => {
            let list = array.as_list_view::<i32>();
            of_lists(longest_size(list.value_sizes()), longest_value(&**list.values()))
        }
        DataType::LargeListView(_) => {
            let list = array.as_list_view::<i64>();
            of_lists(longest_size(list.value_sizes()), longest_value(&**list.values()))
        }
        _ => each(),
    }
}

/// Bytes of the longest of these values. Batch after batch may have the same million of them.
fn longest_value(values: &dyn Array) -> u64 {
    match values.data_type() {
        _ if values.is_empty() => 0,
        DataType::Utf8 => longest_between(values.as_string::<i32>().value_offsets()),
        DataType::LargeUtf8 => longest_between(values.as_string::<i64>().value_offsets()),
        DataType::Binary => longest_between(values.as_binary::<i32>().value_offsets()),
        DataType::LargeBinary => longest_between(values.as_binary::<i64>().value_offsets()),
        DataType::Utf8View => values.as_string_view().lengths().max().unwrap_or(0).into(),
        DataType::BinaryView => values.as_binary_view().lengths().max().unwrap_or(0).into(),
        data if data.is_primitive() || matches!(data, DataType::Boolean | DataType::Null) => {
            bytes_of(values, 0, 1)
        }
        _ => (0..values.len()).map(|at| bytes_of(values, at, at + 1)).max().unwrap_or(0),
    }
}

/// The longest span between two offsets that follow each other.
fn longest_between<O: OffsetSizeTrait>(offsets: &[O]) -> u64 {
    let spans = offsets.windows(2).map(|ends| ends[1].as_usize().saturating_sub(ends[0].as_usize()));
    spans.max().unwrap_or(0) as u64
}

fn longest_size<O: OffsetSizeTrait>(sizes: &[O]) -> u64 {
    sizes.iter().map(|size| size.as_usize()).max().unwrap_or(0) as u64
}

/// Bytes of the longest value in the dictionary of a column of text or bytes.
fn longest_of(reader: &SerializedFileReader<Stored>, group: usize, leaf: usize) -> Option<u64> {
    let mut pages = reader.get_row_group(group).ok()?.get_column_page_reader(leaf).ok()?;
    let Some(ColumnPage::DictionaryPage { buf, .. }) = pages.get_next_page().ok()? else { return None };
    let (mut rest, mut longest) = (&buf[..], 0);
    while let Some((length, values)) = rest.split_first_chunk() {
        let length = u32::from_le_bytes(*length);
        longest = longest.max(length.into());
        rest = values.get(length as usize..)?;
    }
    Some(longest)
}

/// What the pages of a column in a Parquet file say.
#[derive(Clone, Default)]
pub(crate) struct Column {
    /// How many bytes a row takes among many, at most.
    pub width: u64,
    pub is_encrypted: bool,
    /// By row group and leaf, how many values its dictionary has; the most where not all of its cells are of it.
    pub words: Vec<u64>,
}

/// Whether the bytes from here on are pieces that each begin with their length, as encrypted pages and their headers
/// are.
fn is_encrypted(stored: &mut Stored, start: u64, end: u64) -> Result<bool, String> {
    let (mut at, mut pieces) = (start, 0);
    while at < end {
        let Ok(length) = <[u8; 4]>::try_from(bytes_at(stored, at, 4)?) else { return Ok(false) };
        let length = u64::from(u32::from_le_bytes(length));
        // A nonce and a tag, if nothing else.
        if length < 28 {
            return Ok(false);
        }
        at = at.saturating_add(4 + length);
        pieces += 1;
    }
    Ok(at == end && pieces >= 2 && pieces % 2 == 0)
}

/// Checks the sizes that a Parquet file's pages claim against the limits, and returns what is known of each column.
pub(crate) fn check_parquet(
    stored: &mut Stored,
    metadata: &ParquetMetaData,
    again: impl Fn() -> Option<Stored>,
) -> Result<Vec<Column>, String> {
    let schema = metadata.file_metadata().schema_descr();
    let mut found = vec![Column::default(); schema.root_schema().get_fields().len()];
    let mut reader = None;
    for (group_at, group) in metadata.row_groups().iter().enumerate() {
        let mut needed = 0u64;
        let mut widths = vec![0u64; found.len()];
        for (leaf, column) in group.columns().iter().enumerate() {
            let (start, length) = column.byte_range();
            let is_text = column.column_type() == Physical::BYTE_ARRAY;
            let (mut at, mut largest, mut width, mut has_long, mut words) = (start, 0, 0u64, false, 0);
            while let Some(end) = start.checked_add(length).filter(|end| at < *end) {
                let header = bytes_at(stored, at, PAGE_HEADER.min(end - at))?;
                let Some(page) = Page::read(&header) else { break };
                if page.is_dictionary {
                    has_long |= is_text && page.unpacked > FEW_BYTES as u64;
                } else if is_text && page.values > 0 {
                    // Rows that cross some pages take no more than their share of the fullest, and two pages.
                    width = width.max(page.unpacked.div_ceil(page.values));
                }
                words = page.words(words);
                largest = largest.max(page.unpacked);
                let Some(next) = at.checked_add(page.header + page.packed).filter(|next| *next > at) else {
                    break;
                };
                at = next;
            }
            if largest > MOST_OF_PAGE {
                let [is, may] = [largest, MOST_OF_PAGE].map(|bytes| bytes >> 20);
                return Err(format!("a page of it needs {is} MiB uncompressed, more than the {may} allowed"));
            }
            needed = needed.saturating_add(2 * largest);
            if has_long {
                if reader.is_none() {
                    reader = again().and_then(|stored| SerializedFileReader::new(stored).ok());
                }
                let longest = reader.as_ref().and_then(|reader| longest_of(reader, group_at, leaf));
                width = width.max(longest.unwrap_or(largest));
            }
            // A value may repeat most of the one before it, and so be as long as a page.
            if is_text && column.encodings().any(|encoding| encoding == Encoding::DELTA_BYTE_ARRAY) {
                width = largest;
            }
            if column.column_type() == Physical::FIXED_LEN_BYTE_ARRAY {
                width = u64::try_from(column.column_descr().type_length()).unwrap_or(0);
            }
            // A row of a list has many.
            let rows = u64::try_from(group.num_rows()).unwrap_or(0).max(1);
            let of_row = u64::try_from(column.num_values()).unwrap_or(0).div_ceil(rows).max(1);
            // Nothing tells whether few rows have most of its long values.
            if column.column_descr().max_rep_level() > 0 && width > FEW_BYTES as u64 {
                width = MOST_TOGETHER;
            }
            let root = schema.get_column_root_idx(leaf);
            widths[root] = widths[root].saturating_add(width.saturating_mul(of_row));
            let known = &mut found[root];
            known.words.push(words);
            let end = start.saturating_add(length);
            known.is_encrypted |= largest == 0 && length > 0 && is_encrypted(stored, start, end)?;
        }
        found.iter_mut().zip(widths).for_each(|(known, width)| known.width = known.width.max(width));
        check_memory(needed)?;
    }
    Ok(found)
}

/// What a page says of itself: bytes of its header, and of what follows as it is stored and unpacked; whether that
/// is a dictionary, how many values it has, and whether these are numbers of values in the dictionary.
#[derive(PartialEq, Eq, Debug)]
struct Page {
    header: u64,
    packed: u64,
    unpacked: u64,
    is_dictionary: bool,
    values: u64,
    is_numbered: bool,
}

impl Page {
    /// Reads a header in Thrift's compact form; `None` if it is none that fits in these bytes.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (mut compact, mut field) = (Compact(bytes), 0i64);
        let (mut sizes, mut is_dictionary, mut values, mut is_numbered) = ([None; 2], false, 0, false);
        while let Some(kind) = compact.field(&mut field)? {
            match (field, kind) {
                (1, 5) => is_dictionary = compact.zigzag()? == 2,
                (2 | 3, 5) => sizes[field as usize - 2] = u64::try_from(compact.zigzag()?).ok(),
                // The headers of each kind, which begin with the number of values.
                (5 | 7 | 8, 12) => {
                    let (of, mut inner) = (field, 0);
                    while let Some(kind) = compact.field(&mut inner)? {
                        match (inner, kind) {
                            (1, 5) => values = u64::try_from(compact.zigzag()?).unwrap_or(0),
                            // Both encodings by a dictionary, of the first kind of page and of the second.
                            (2, 5) if of == 5 => is_numbered = matches!(compact.zigzag()?, 2 | 8),
                            (4, 5) if of == 8 => is_numbered = matches!(compact.zigzag()?, 2 | 8),
                            _ => compact.skip(kind, 8)?,
                        }
                    }
                }
                _ => compact.skip(kind, 8)?,
            }
        }
        let header = (bytes.len() - compact.0.len()) as u64;
        Some(Page { header, unpacked: sizes[0]?, packed: sizes[1]?, is_dictionary, values, is_numbered })
    }

    /// How many values a dictionary has that had so many by the pages before.
    fn words(&self, before: u64) -> u64 {
        match self.is_dictionary {
            true => self.values,
            false if self.is_numbered => before,
            false => u64::MAX,
        }
    }
}

/// Thrift's compact form, as much of it as it takes to pass over what is not wanted.
struct Compact<'a>(&'a [u8]);

impl Compact<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn zigzag(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// The next field's type, `Some(None)` behind the last one.
    #[allow(clippy::option_option)]
    fn field(&mut self, number: &mut i64) -> Option<Option<u8>> {
        let head = self.byte()?;
        if head == 0 {
            return Some(None);
        }
        *number = match head >> 4 {
            0 => self.zigzag()?,
            step => number.checked_add(step.into())?,
        };
        Some(Some(head & 0xf))
    }

    fn skip(&mut self, kind: u8, depth: u8) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            1 | 2 => {}
            3 => _ = self.byte()?,
            4..=6 => _ = self.varint()?,
            7 => self.0 = self.0.get(8..)?,
            8 => {
                let length = usize::try_from(self.varint()?).ok()?;
                self.0 = self.0.get(length..)?;
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
                // Each takes a byte at least, truth values too.
                (0..count).try_for_each(|_| match head & 0xf {
                    1 | 2 => self.byte().map(|_| ()),
                    kind => self.skip(kind, depth),
                })?;
            }
            12 => {
                let mut number = 0;
                while let Some(kind) = self.field(&mut number)? {
                    self.skip(kind, depth)?;
                }
            }
            _ => return None,
        }
        Some(())
    }
}

/// The number, from 0, of a row of the batch that has more than `most` bytes, if there is one.
pub(crate) fn long_row(batch: &RecordBatch, most: u64) -> Option<usize> {
    let all = batch.columns().iter().map(|column| column.get_array_memory_size() as u64).sum::<u64>();
    let repeated = batch.columns().iter().filter(|column| may_repeat(column.data_type()));
    let repeated = repeated.map(|column| longest_shared(&**column));
    if repeated.fold(all, u64::saturating_add) <= most {
        return None;
    }
    let row = |row: usize| {
        let cells = batch.columns().iter().map(|column| bytes_of(&**column, row, row + 1));
        cells.fold(0, u64::saturating_add)
    };
    (0..batch.num_rows()).find(|at| row(*at) > most)
}

/// Bytes of these values, whose lengths are the lowest 32 bits of their views.
fn view_bytes(views: &[u128], from: usize, to: usize) -> u64 {
    views.get(from..to).map_or(0, |views| views.iter().map(|view| u64::from(*view as u32)).sum())
}

/// Bytes of the cells of these rows, without what says where they lie.
fn bytes_of(array: &dyn Array, from: usize, to: usize) -> u64 {
    let span = |from: usize, to: usize| to.saturating_sub(from) as u64;
    match array.data_type() {
        DataType::Utf8 => {
            ends(array.as_string::<i32>().value_offsets(), from, to).map_or(0, |(a, b)| span(a, b))
        }
        DataType::LargeUtf8 => {
            ends(array.as_string::<i64>().value_offsets(), from, to).map_or(0, |(a, b)| span(a, b))
        }
        DataType::Binary => {
            ends(array.as_binary::<i32>().value_offsets(), from, to).map_or(0, |(a, b)| span(a, b))
        }
        DataType::LargeBinary => {
            ends(array.as_binary::<i64>().value_offsets(), from, to).map_or(0, |(a, b)| span(a, b))
        }
        DataType::Utf8View => view_bytes(array.as_string_view().views(), from, to),
        DataType::BinaryView => view_bytes(array.as_binary_view().views(), from, to),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            ends(list.value_offsets(), from, to).map_or(0, |(a, b)| bytes_of(list.values(), a, b))
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            ends(list.value_offsets(), from, to).map_or(0, |(a, b)| bytes_of(list.values(), a, b))
        }
        DataType::Map(..) => {
            let map = array.as_map();
            ends(map.value_offsets(), from, to).map_or(0, |(a, b)| bytes_of(map.entries(), a, b))
        }
        DataType::Struct(_) => {
            let fields = array.as_struct().columns().iter().map(|column| bytes_of(&**column, from, to));
            fields.fold(0, u64::saturating_add)
        }
        DataType::FixedSizeList(_, size) => {
            let size = usize::try_from(*size).unwrap_or(0);
            bytes_of(array.as_fixed_size_list().values(), from * size, to * size)
        }
        DataType::ListView(_) => {
            let list = array.as_list_view::<i32>();
            bytes_of_views(list.values(), list.value_offsets(), list.value_sizes(), from, to)
        }
        DataType::LargeListView(_) => {
            let list = array.as_list_view::<i64>();
            bytes_of_views(list.values(), list.value_offsets(), list.value_sizes(), from, to)
        }
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => bytes_of_runs(array.as_run::<Int16Type>(), from, to),
            DataType::Int32 => bytes_of_runs(array.as_run::<Int32Type>(), from, to),
            _ => bytes_of_runs(array.as_run::<Int64Type>(), from, to),
        },
        DataType::Union(..) => {
            let union = array.as_union();
            let each = (from..to).map(|at| bytes_of(&*union.value(at), 0, 1));
            each.fold(0, u64::saturating_add)
        }
        DataType::FixedSizeBinary(size) => span(from, to) * u64::try_from(*size).unwrap_or(0),
        DataType::Dictionary(..) => {
            let rows = array.slice(from, to - from);
            let dictionary = rows.as_any_dictionary();
            let values = dictionary.values();
            if values.is_empty() {
                return 0;
            }
            let keys = dictionary.normalized_keys();
            let of = |key: usize| bytes_of(&**values, key, key + 1);
            let known: Option<Vec<u64>> =
                (keys.len() > values.len()).then(|| (0..values.len()).map(of).collect());
            let there = keys.into_iter().enumerate().filter(|(at, _)| rows.is_valid(*at));
            let each = there.map(|(_, key)| known.as_ref().map_or_else(|| of(key), |known| known[key]));
            each.fold(0, u64::saturating_add)
        }
        // Numbers, dates and the like.
        _ => span(from, to) * 16,
    }
}

fn bytes_of_views<O: OffsetSizeTrait>(
    values: &ArrayRef,
    offsets: &[O],
    sizes: &[O],
    from: usize,
    to: usize,
) -> u64 {
    let views = offsets.iter().zip(sizes).skip(from).take(to - from);
    let each = views.map(|(at, size)| bytes_of(&**values, at.as_usize(), at.as_usize() + size.as_usize()));
    each.fold(0, u64::saturating_add)
}

fn bytes_of_runs<R: RunEndIndexType<Native: Into<i64>>>(array: &RunArray<R>, from: usize, to: usize) -> u64 {
    if from >= to {
        return 0;
    }
    let rows = array.slice(from, to - from);
    let (values, mut before) = (rows.values_slice(), 0);
    let of_run = |(at, end): (usize, R::Native)| {
        let end = u64::try_from(end.into()).unwrap_or(0);
        let rows = end.saturating_sub(before);
        before = end;
        rows.saturating_mul(bytes_of(&*values, at, at + 1))
    };
    rows.run_ends().sliced_values().enumerate().map(of_run).fold(0, u64::saturating_add)
}

/// The ends of the values of these rows.
fn ends<O: OffsetSizeTrait>(offsets: &[O], from: usize, to: usize) -> Option<(usize, usize)> {
    Some((offsets.get(from)?.as_usize(), offsets.get(to)?.as_usize()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{
        DictionaryArray, FixedSizeListArray, Int32Array, LargeListArray, LargeStringArray, ListArray,
        ListViewArray, MapArray, StringArray, StringViewArray, StructArray,
    };
    use arrow_schema::Field;
    use std::sync::Arc;

    #[test]
    fn a_pages_header_is_read_and_what_else_it_holds_passed_over() {
        // Type 0, 2^31 - 1 bytes unpacked, 300 stored; a header of its own kind with a list, a text and a double.
        let own =
            [0x5c, 0x15, 0x04, 0x19, 0x25, 2, 4, 0x18, 3, b'a', b'b', b'c', 0x17, 1, 2, 3, 4, 5, 6, 7, 8, 0];
        let mut bytes = vec![0x15, 0, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 0xd8, 0x04];
        bytes.extend(own);
        bytes.push(0);
        let header = bytes.len() as u64;
        bytes.extend([1, 2, 3]);
        let wanted = Page {
            header,
            packed: 300,
            unpacked: (1 << 31) - 1,
            is_dictionary: false,
            values: 2,
            is_numbered: false,
        };
        assert_eq!(Page::read(&bytes), Some(wanted));
        for cut in 0..header as usize {
            assert_eq!(Page::read(&bytes[..cut]), None, "{cut}");
        }
        // Structures within structures without end.
        assert_eq!(Page::read(&[0x1c; 99]), None);
        assert_eq!(Page::read(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f]), None);
    }

    /// However many rows share a value, what is written out for them together is bounded.
    #[test]
    fn rows_that_share_a_long_value_are_few() {
        let long = "x".repeat(1 << 20);
        let few = |column: ArrayRef| {
            rows_of(&RecordBatch::try_from_iter([("a", column.clone()), ("b", column)]).unwrap(), 8192)
        };
        let shared: DictionaryArray<Int32Type> = std::iter::repeat_n(long.as_str(), 9).collect();
        let runs = RunArray::try_new(&Int32Array::from(vec![9000]), shared.values()).unwrap();
        let columns: [ArrayRef; 3] =
            [Arc::new(shared), Arc::new(runs), Arc::new(StringViewArray::from(vec!["a", &long]))];
        for column in columns {
            let kind = column.data_type().clone();
            assert_eq!(few(column), 64, "{kind}");
        }
        // Within others as well.
        for column in nested(&long) {
            let kind = column.data_type().clone();
            // Beside the keys of a map one row less.
            assert!(matches!(few(column.clone()), 63 | 64), "{kind}");
            assert!(matches!(few(column.slice(1, 2)), 63 | 64), "{kind}");
            let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
            assert_eq!(long_row(&batch, (1 << 20) - 1), Some(0), "{kind}");
            assert_eq!(long_row(&batch, (1 << 20) + 99), None, "{kind}");
        }
        for column in nested("short") {
            let kind = column.data_type().clone();
            assert_eq!(few(column), 8192, "{kind}");
        }
        assert_eq!(few(Arc::new(["a", "b", "a"].into_iter().collect::<DictionaryArray<Int32Type>>())), 8192);
        assert_eq!(few(Arc::new(StringArray::from(vec!["a", &long]))), 8192);
        assert_eq!(
            [0, 1 << 14, 1 << 15, 1 << 26, 1 << 40].map(|each| rows_together(each, 8192)),
            [8192, 8192, 4096, 2, 1]
        );
    }

    /// Columns of three cells each of which has this text, which is stored once, within something else.
    fn nested(text: &str) -> Vec<ArrayRef> {
        let field = |of: &ArrayRef| Arc::new(Field::new("f", of.data_type().clone(), true));
        let words: ArrayRef = Arc::new(std::iter::repeat_n(text, 3).collect::<DictionaryArray<Int32Type>>());
        let texts = words.as_dictionary::<Int32Type>().values().clone();
        let runs: ArrayRef = Arc::new(RunArray::try_new(&Int32Array::from(vec![3]), &texts).unwrap());
        let view = StringViewArray::from(vec![text]);
        let views: ArrayRef = Arc::new(
            StringViewArray::try_new(vec![view.views()[0]; 3].into(), view.data_buffers().to_vec(), None)
                .unwrap(),
        );
        let one: ArrayRef = Arc::new(ListViewArray::new(
            field(&texts),
            vec![0; 3].into(),
            vec![1; 3].into(),
            texts.clone(),
            None,
        ));
        let mut columns = vec![one];
        for shared in [words, runs, views] {
            // Offsets of as many elements as the texts have bytes.
            let of_one = StringArray::from(vec!["x"; 3]).offsets().clone();
            let of_one_long = LargeStringArray::from(vec!["x"; 3]).offsets().clone();
            let record: ArrayRef = Arc::new(StructArray::from(vec![(field(&shared), shared.clone())]));
            let keys: ArrayRef = Arc::new(Int32Array::from(vec![0; 3]));
            let entries = StructArray::from(vec![
                (Arc::new(Field::new("k", DataType::Int32, false)), keys.clone()),
                (field(&shared), shared.clone()),
            ]);
            let entry = Arc::new(Field::new("entries", entries.data_type().clone(), false));
            let three: DictionaryArray<Int32Type> =
                DictionaryArray::new(keys.as_primitive().clone(), record.slice(0, 1));
            columns.extend([
                Arc::new(ListArray::new(field(&shared), of_one.clone(), shared.clone(), None)) as ArrayRef,
                Arc::new(LargeListArray::new(field(&record), of_one_long, record.clone(), None)),
                Arc::new(FixedSizeListArray::new(field(&shared), 1, shared.clone(), None)),
                Arc::new(MapArray::new(entry, of_one, entries, None, false)),
                Arc::new(three),
                Arc::new(RunArray::try_new(&Int32Array::from(vec![3]), &record.slice(0, 1)).unwrap()),
                record,
            ]);
        }
        columns
    }

    /// A list may have one value of a dictionary as often as it has elements.
    #[test]
    fn a_row_that_repeats_a_value_is_long() {
        let text = "x".repeat(1 << 10);
        let words: ArrayRef =
            Arc::new(std::iter::repeat_n(&*text, 5000).collect::<DictionaryArray<Int32Type>>());
        let field = Arc::new(Field::new("f", words.data_type().clone(), true));
        let lengths = StringArray::from(vec!["x", &"x".repeat(4998), "x"]);
        let lists: ArrayRef = Arc::new(ListArray::new(field, lengths.offsets().clone(), words, None));
        let batch = RecordBatch::try_from_iter([("a", lists)]).unwrap();
        assert!(batch.get_array_memory_size() < 1 << 16);
        assert_eq!(rows_of(&batch, 8192), 26);
        assert_eq!(long_row(&batch, 4 << 20), Some(1));
        assert_eq!(long_row(&batch, 5 << 20), None);
    }

    #[test]
    fn the_long_row_is_found_in_every_kind_of_column() {
        let long = "x".repeat(1000);
        let texts = ["a", &long, "b"];
        let mut lists = arrow_array::builder::ListBuilder::new(arrow_array::builder::StringBuilder::new());
        for text in texts {
            lists.append_value([Some("y"), Some(text)]);
        }
        let lists: ListArray = lists.finish();
        let columns: [ArrayRef; 4] = [
            Arc::new(StringArray::from(texts.to_vec())),
            Arc::new(StringViewArray::from(texts.to_vec())),
            Arc::new(texts.into_iter().collect::<DictionaryArray<Int32Type>>()),
            Arc::new(lists),
        ];
        for column in columns {
            let kind = column.data_type().clone();
            let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
            assert_eq!(long_row(&batch, 900), Some(1), "{kind}");
            assert_eq!(long_row(&batch, 1010), None, "{kind}");
            assert_eq!(long_row(&batch.slice(2, 1), 900), None, "{kind}");
        }
    }
}
