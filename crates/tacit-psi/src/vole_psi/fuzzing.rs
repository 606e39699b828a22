//! Parsers of this module that are not public, as functions of bytes that panic if an invariant of
//! what was read is violated: for `tacit-fuzz`.

use super::layout::Layout;
use super::payload::{decode_request, encode_request, received_from};
use super::tags::Format;

/// The columns that the peer asks for: written as they were read.
pub fn request(bytes: &[u8]) {
    let Ok(names) = decode_request(bytes) else { return };
    assert!(encode_request(&names).is_ok_and(|written| written == bytes), "a request is written otherwise");
}

/// The rows of a key, behind a layout of `widths` and so many rows: whether they are rows is found out in two
/// ways.
pub fn rows(widths: &[u8], rows: u8, plain: &[u8]) {
    let layout = Layout { widths: widths.iter().map(|width| (*width).into()).collect(), rows: rows.into() };
    let read = layout.read(plain);
    // What is left behind the last row belongs to none.
    let whole = plain.len() / layout.row() * layout.row();
    assert_eq!(layout.is_rows(&plain[..whole]), u8::from(read.is_some()), "two ways to read rows differ");
    let Some(read) = read else { return };
    let columns: Vec<usize> = (0..widths.len()).collect();
    let numbers: Vec<u32> = (0..read.len() as u32).collect();
    let mut written = vec![0; whole];
    layout.fill(|row, column| read[row as usize][column].as_deref(), &columns, &numbers, &mut written);
    let row = layout.row();
    for (written, plain) in written.chunks(row).zip(plain.chunks(row)) {
        // A null's bytes are zeros, and so are those behind a cell.
        assert_eq!(written, plain, "a row is written otherwise");
    }
}

/// A result that a task has kept.
pub fn received(bytes: &[u8]) {
    let Some(received) = received_from(bytes) else { return };
    assert!(received.matches.is_sorted_by_key(|found| found.element));
    let cells: usize =
        received.matches.iter().flat_map(|found| &found.rows).flatten().flatten().map(Vec::len).sum();
    assert!(cells <= bytes.len(), "cells out of nothing");
}

/// The tags of a message, so many: their prefixes as a bitmap, and their rests.
pub fn tags(count: usize, prefix_bits: u32, rest: usize, bytes: &[u8]) {
    let format = Format { count, prefix_bits, rest };
    let mut bitmap = vec![0; format.bitmap_bits().div_ceil(8)];
    let (from, rests) = bytes.split_at(bitmap.len().min(bytes.len()));
    bitmap[..from.len()].copy_from_slice(from);
    let Some(mut reader) = format.reader(&bitmap) else { return };
    let mut message = vec![0; format.room(count)];
    let rests = &rests[..rests.len().min(count * format.rest)];
    message[..rests.len()].copy_from_slice(rests);
    let mut tags = vec![0; count];
    let ascend = reader.read(&message, &mut tags);
    assert_eq!(ascend, tags.windows(2).all(|two| two[0] < two[1]), "tags that ascend, or do not");
}

/// Whole messages, by the names of the functions above.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let row = |cells: [Option<&[u8]>; 2]| {
        let layout = Layout { widths: vec![5, 3], rows: 1 };
        let mut out = vec![0; layout.row()];
        layout.fill(|_, column| cells[column], &[0, 1], &[0], &mut out);
        out
    };
    let two = [row([Some(b"hello"), None]), row([Some(b""), Some(b"abc")])].concat();
    let mut kept: Vec<u8> = [2u64, 2, 5, 3].iter().flat_map(|number| number.to_le_bytes()).collect();
    for kind in [1, 0, 2] {
        kept.extend([kind, 4, 0, 0, 0]);
        kept.extend(&two);
    }
    vec![
        ("request", encode_request(&["name", "amount", "\u{e9}"]).unwrap_or_default()),
        ("rows", [&[2, 5, 3][..], &two, &[0; 17]].concat()),
        ("received", kept),
    ]
}
