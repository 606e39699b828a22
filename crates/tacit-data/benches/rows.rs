//! What a row costs one core until it is an element: read, parted into fields, normalised and hashed, without
//! telling keys apart: `cargo bench -p tacit-data --bench rows -- [--rows N] [--repeat R] [--type TYPE]`.
//!
//! Prints nanoseconds a row, the median of all repetitions and the least, for each type and each kind of
//! file: CSV with the key alone, with five columns behind it, the latter with every field in quotes and
//! packed by gzip, and Parquet. `hash` is the key alone out of memory: normalised and hashed, nothing read.

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use tacit_data::csv::{Error, Options};
use tacit_data::keys::Named;
use tacit_data::records::{KeyHasher, KeySpec, Normalisation};
use tacit_data::table::Source;

const TYPES: [&str; 8] = ["text", "email", "phone:NL", "date:DMY", "int", "uuid", "name", "postcode:NL"];

/// The value of a row, as people write it: in upper and lower case, with signs between digits.
fn value(kind: &str, row: usize) -> String {
    match kind {
        "text" | "email" => format!("User{row}@Example.com"),
        "phone:NL" => format!("06-{:08}", row % 100_000_000),
        "date:DMY" => format!("{:02}.{:02}.{}", row % 28 + 1, row / 28 % 12 + 1, 1900 + row / 336 % 120),
        "int" => format!("{:09}", row),
        "uuid" => format!("550E8400-E29B-41D4-A716-{row:012X}"),
        "name" => format!("Anna-Lena O'Neil {row}"),
        "postcode:NL" => format!("{} AB", 1000 + row % 9000),
        other => panic!("no values of the type {other}"),
    }
}

/// The other columns of a row, some 50 bytes.
fn rest(row: usize) -> [String; 5] {
    let name = ["Ann", "Bob", "Carol", "Dave"][row % 4];
    [name.into(), "Lindqvist".into(), format!("{} Elm Street", row % 977), "Utrecht".into(), row.to_string()]
}

struct Files {
    folder: tempfile::TempDir,
    rows: usize,
}

impl Files {
    fn csv(&self, kind: &str, name: &str, mut line: impl FnMut(String, usize) -> String) -> PathBuf {
        let path = self.folder.path().join(name);
        let mut out = std::io::BufWriter::new(File::create(&path).unwrap());
        writeln!(out, "{}", line("k".into(), 0)).unwrap();
        (0..self.rows).for_each(|row| writeln!(out, "{}", line(value(kind, row), row)).unwrap());
        out.flush().unwrap();
        path
    }

    fn gzip(&self, path: &Path) -> PathBuf {
        let packed = path.with_extension("csv.gz");
        let out = File::create(&packed).unwrap();
        let mut out = flate2::write::GzEncoder::new(out, flate2::Compression::default());
        std::io::copy(&mut File::open(path).unwrap(), &mut out).unwrap();
        out.finish().unwrap();
        packed
    }

    fn parquet(&self, kind: &str) -> PathBuf {
        let path = self.folder.path().join("columns.parquet");
        let keys: StringArray = (0..self.rows).map(|row| Some(value(kind, row))).collect();
        let batch = RecordBatch::try_from_iter([("k", Arc::new(keys) as ArrayRef)]).unwrap();
        let out = File::create(&path).unwrap();
        let mut writer =
            parquet::arrow::arrow_writer::ArrowWriter::try_new(out, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        path
    }
}

/// Nanoseconds a row: the median and the least of the repetitions.
fn measure(rows: usize, repeat: usize, mut run: impl FnMut()) -> (f64, f64) {
    let mut times: Vec<f64> = (0..=repeat)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64() * 1e9 / rows as f64
        })
        .skip(1)
        .collect();
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[0])
}

fn main() {
    let (mut rows, mut repeat, mut only) = (500_000, 5, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().expect("a value");
        match argument.as_str() {
            "--rows" => rows = value().parse().expect("a number"),
            "--repeat" => repeat = value().parse().expect("a number"),
            "--type" => only = Some(value()),
            _ => {}
        }
    }
    let files = Files { folder: tempfile::tempdir().unwrap(), rows };
    for kind in TYPES.into_iter().filter(|kind| only.as_ref().is_none_or(|only| only == kind)) {
        let spec = KeySpec::named([Named::parse(&format!("k:{kind}")).unwrap()], Normalisation::default());
        let told = |what: &str, (median, least): (f64, f64)| {
            println!("{kind:<12} {what:<22} {median:7.1} ns a row, at least {least:7.1}");
        };
        let values: Vec<String> = (0..rows).map(|row| value(kind, row)).collect();
        let hash = || {
            let mut hasher = KeyHasher::of(&spec);
            values.iter().for_each(|value| _ = black_box(hasher.hash([value.as_str()])));
        };
        told("hash", measure(rows, repeat, hash));
        let narrow = files.csv(kind, "narrow.csv", |key, _| key);
        let wide = files.csv(kind, "wide.csv", |key, row| format!("{key},{}", rest(row).join(",")));
        let quoted =
            files.csv(kind, "quoted.csv", |key, row| format!("\"{key}\",\"{}\"", rest(row).join("\",\"")));
        for (what, path) in [
            ("CSV, 1 column", narrow.clone()),
            ("CSV, 1 column, gzip", files.gzip(&narrow)),
            ("CSV, 6 columns", wide.clone()),
            ("CSV, 6 columns, gzip", files.gzip(&wide)),
            ("CSV, 6 columns, quoted", quoted),
            ("Parquet", files.parquet(kind)),
        ] {
            let read = || {
                let source = Source::open(&path, spec.clone(), Options::default()).unwrap();
                let mut keys = 0;
                let each = |element: Option<&_>| {
                    keys += usize::from(black_box(element).is_some());
                    Ok::<_, Error>(())
                };
                source.each_key(|_| (), each).unwrap();
                assert_eq!(keys, rows, "a value is no key");
            };
            told(what, measure(rows, repeat, read));
        }
    }
}
