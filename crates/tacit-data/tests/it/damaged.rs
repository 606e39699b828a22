//! Files of columns with a few bytes changed, at which the libraries that read them panic, and files that ask
//! for more memory than there is: each is an error that names the file, and the process goes on.

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, StringArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use std::fs;
use std::io::Write;
use std::sync::Arc;
use tacit_data::csv::{Error, Options, Place};
use tacit_data::records::{KeySpec, Normalisation};
use tacit_data::table::Source;

const ARROW: &[u8] = include_bytes!("files/t.arrow");
const PARQUET: &[u8] = include_bytes!("files/t.parquet");

/// A whole file, and the bytes that are others in the damaged one.
type Damage = (&'static str, &'static [u8], &'static [(usize, u8)]);

/// Each panics inside a library, at another place.
const DAMAGED: [Damage; 4] = [
    ("convert-1.arrow", ARROW, &[(11944, 0), (11949, 1), (11950, 0)]),
    (
        "convert-2.arrow",
        ARROW,
        &[(10691, 255), (10692, 255), (10693, 255), (10694, 255), (11998, 0), (11999, 0), (12000, 0)],
    ),
    ("buffers.arrow", ARROW, &[(502, 32), (11128, 54)]),
    ("metadata.parquet", PARQUET, &[(2798, 127)]),
];

fn read(name: &str, bytes: &[u8]) -> Result<u64, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    let spec = KeySpec::text(vec!["email".into()], Normalisation::default());
    let source = Source::open(&path, spec, Options::default())?;
    let keys = source.read_keys(|_| ())?;
    source.read_whole()?;
    source.write_matches(&keys, &[], &folder.path().join("out.csv"), &mut Vec::new())?;
    Ok(keys.rows() as u64)
}

#[test]
fn what_panics_inside_a_library_is_an_error_of_the_file() {
    for (name, whole, changes) in DAMAGED {
        assert!(read(name, whole).unwrap() > 0, "{name}");
        let mut bytes = whole.to_vec();
        for (at, byte) in changes {
            assert_ne!(bytes[*at], *byte);
            bytes[*at] = *byte;
        }
        let error = read(name, &bytes).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Damaged { .. } | Error::Unread { .. }), "{text}");
        assert!(text.contains(name) && text.lines().count() == 1, "{text}");
    }
}

/// A table of one column `email` with these cells.
fn table(cells: &[&str]) -> RecordBatch {
    RecordBatch::try_from_iter([("email", Arc::new(StringArray::from(cells.to_vec())) as ArrayRef)]).unwrap()
}

fn arrow(batch: &RecordBatch, packing: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(packing).unwrap();
    let mut out = Vec::new();
    let mut writer = FileWriter::try_new_with_options(&mut out, &batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    out
}

/// However little a file holds packed, a row of it is no longer than rows may be.
#[test]
fn a_row_beyond_the_bound_is_refused_by_its_place_before_it_is_unpacked_whole() {
    let mut packed = zstd::Encoder::new(Vec::new(), 1).unwrap();
    packed.write_all(b"email,age\na@example.com,1\n").unwrap();
    let piece = vec![b'x'; 1 << 20];
    (0..1 << 10).for_each(|_| packed.write_all(&piece).unwrap());
    let packed = packed.finish().unwrap();
    assert!(packed.len() < 200_000, "a GiB in {} bytes", packed.len());
    let error = read("t.csv.zst", &packed).unwrap_err();
    assert!(matches!(error, Error::LongRow { place: Place::Line(3), .. }), "{error}");
    assert!(error.to_string().contains("line 3: the row has more than 16 MiB"), "{error}");
    // One that never ends its quotes, and one of exactly as much as there may be.
    let open = [b"email,age\n\"".as_slice(), &vec![b'x'; 17 << 20]].concat();
    assert!(matches!(read("t.csv", &open).unwrap_err(), Error::LongRow { place: Place::Line(2), .. }));
    let long = "y".repeat(17 << 20);
    let file = arrow(&table(&["a", "b", &long, "c"]), Some(CompressionType::ZSTD));
    assert!(file.len() < 10_000);
    let error = read("t.arrow", &file).unwrap_err();
    assert!(matches!(error, Error::LongRow { place: Place::Row(3), .. }), "{error}");
    let enough = "z".repeat(15 << 20);
    assert_eq!(read("t.arrow", &arrow(&table(&["a", &enough]), None)).unwrap(), 2);
    assert_eq!(read("t.csv", format!("email\na\n{enough}\n").as_bytes()).unwrap(), 2);
}

/// What a file says of its sizes is held against the file and the machine, and not allocated: the system would end
/// the process.
#[test]
fn sizes_that_nobody_can_have_are_errors_of_the_file() {
    for packing in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        let cells = ["a@example.com"; 100];
        let whole = arrow(&table(&cells), packing);
        assert_eq!(read("t.arrow", &whole).unwrap(), 100);
        // The footer's blocks, and in front of each packed buffer its length: whatever is eight bytes of a number.
        let huge = (1u64 << 50).to_le_bytes();
        for at in (0..whole.len() - 8).filter(|at| at % 8 == 0) {
            let mut bytes = whole.clone();
            bytes[at..at + 8].copy_from_slice(&huge);
            if let Err(error) = read("t.arrow", &bytes) {
                assert!(error.to_string().lines().count() == 1, "{error}");
            }
        }
    }
}

/// A value that 8,192 rows share, or have each, packed to next to nothing: written out at once they would be 2.4 GiB,
/// beyond an array's bounds. The file is whole, and is read, few rows at a time.
#[test]
fn long_values_of_many_rows_are_read_few_rows_at_a_time() {
    use parquet::file::properties::WriterProperties;
    let long = "x".repeat(300 << 10);
    let keys: ArrayRef = Arc::new((0..8192).map(|at| Some(format!("k{at}"))).collect::<StringArray>());
    let shared: DictionaryArray<Int32Type> = std::iter::repeat_n(long.as_str(), 8192).collect();
    let of = |column: ArrayRef| RecordBatch::try_from_iter([("k", keys.clone()), ("email", column)]).unwrap();
    let parquet = |by_dictionary: bool, is_plain: bool| {
        let packed = parquet::basic::Compression::ZSTD(parquet::basic::ZstdLevel::default());
        let properties = WriterProperties::builder()
            .set_dictionary_enabled(by_dictionary)
            .set_statistics_enabled(parquet::file::properties::EnabledStatistics::None)
            .set_compression(packed)
            .build();
        let options = parquet::arrow::arrow_writer::ArrowWriterOptions::new()
            .with_properties(properties)
            .with_skip_arrow_metadata(is_plain);
        let (mut bytes, batch) = (Vec::new(), of(Arc::new(shared.clone())));
        let writer = parquet::arrow::ArrowWriter::try_new_with_options(&mut bytes, batch.schema(), options);
        let mut writer = writer.unwrap();
        (0..batch.num_rows()).step_by(512).for_each(|at| writer.write(&batch.slice(at, 512)).unwrap());
        writer.close().unwrap();
        bytes
    };
    let folder = tempfile::tempdir().unwrap();
    // As a key, or on the way out.
    for (name, bytes, is_key) in [
        ("dictionary.parquet", parquet(true, true), false),
        ("category.parquet", parquet(true, false), true),
        ("plain.parquet", parquet(false, true), false),
    ] {
        assert!(bytes.len() < 4 << 20, "{name}: {}", bytes.len());
        let path = folder.path().join(name);
        fs::write(&path, &bytes).unwrap();
        let open = |key: &str| {
            let spec = KeySpec::text(vec![key.into()], Normalisation::default());
            Source::open(&path, spec, Options::default()).unwrap()
        };
        if is_key {
            let keys = open("email").read_keys(|_| ()).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!((keys.rows(), keys.elements().len()), (8192, 1), "{name}");
            continue;
        }
        let source = open("k");
        let keys = source.read_keys(|_| ()).unwrap();
        let mut out = Vec::new();
        let written = source.write_matches(&keys, &[7, 8191], &folder.path().join("o.csv"), &mut out);
        assert_eq!(written.unwrap_or_else(|error| panic!("{name}: {error}")), 2);
        assert_eq!(out, format!("k,email\nk7,{long}\nk8191,{long}\n").as_bytes(), "{name}");
    }
}
