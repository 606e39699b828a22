//! Rows whose keys have variants: the elements of all ways to read a table, what goes out, and how alike rows are.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use tacit_crypto::workers;
use tacit_data::csv::Options;
use tacit_data::give::Purpose;
use tacit_data::keys::{MAX_VARIANTS, Named, Reason};
use tacit_data::records::{
    Counts, Found, KeyHasher, KeySet, KeySpec, Likeness, Listing, Normalisation, plain_join,
};
use tacit_data::table::Source;

/// A key of these identifiers, as `--key` and `--or-key` have them.
fn spec(identifiers: &[&str]) -> KeySpec {
    let named = |text: &&str| text.split(',').map(|column| Named::parse(column).unwrap()).collect::<Vec<_>>();
    let mut all = identifiers.iter().map(named);
    let first = KeySpec::named(all.next().unwrap(), Normalisation::default());
    all.fold(first, KeySpec::or)
}

fn read(path: &Path, identifiers: &[&str], threads: usize) -> (Source, KeySet) {
    workers::limited(threads, || {
        let source = Source::open(path, spec(identifiers), Options::default()).unwrap();
        let keys = source.read_keys(|_| ()).unwrap();
        (source, keys)
    })
}

const BOTH: [&str; 2] = ["last:name~1,born:date~1", "m:email"];

fn table(rows: usize) -> String {
    let mut text = "last,born,m,t\n".to_owned();
    for number in 0..rows {
        let last = ["Meyer", "", "Li", "Schmidt-Rottluff", "Ito"][number % 5];
        let day = format!("19{:02}-{:02}-{:02}", number % 70 + 30, number % 13, number % 28 + 1);
        let mail = if number % 3 == 0 { String::new() } else { format!("u{}@x.org", number % 997) };
        writeln!(text, "{last}{},{day},{mail},t{number}", number % 11).unwrap();
    }
    text
}

fn entries(keys: &KeySet) -> Vec<Vec<Option<usize>>> {
    (0..keys.rows()).map(|row| keys.elements_of(row).collect()).collect()
}

/// CSV in one piece and in several, and columns on one thread and on more, list the elements of one row at a time.
#[test]
fn rows_of_variants_are_those_of_one_row_at_a_time() {
    const ROWS: usize = 20_000;
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("t.csv");
    fs::write(&csv, table(ROWS)).unwrap();
    let key = spec(&BOTH);
    let (mut hasher, mut expected) = (KeyHasher::of(&key), KeySet::listed(Listing::of(&key)));
    let mut in_all = 0;
    for line in table(ROWS).lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let elements = hasher.hash_row(cells[..3].iter().copied());
        in_all += elements.iter().flatten().count() as u64;
        // One entry at a time, and all at once.
        match in_all % 2 {
            0 => elements.iter().for_each(|one| expected.push(*one).unwrap()),
            _ => expected.push_all(&elements).unwrap(),
        }
    }
    assert_eq!(expected.rows(), ROWS as u64);
    let (source, keys) = read(&csv, &BOTH, 1);
    let parquet = folder.path().join("t.parquet");
    let mut out = Vec::new();
    source.write_rest(&keys, &[], &parquet, &mut out).unwrap();
    fs::write(&parquet, out).unwrap();
    for path in [&csv, &parquet] {
        for threads in [1, 4] {
            let (source, keys) = read(path, &BOTH, threads);
            assert_eq!(keys.elements(), expected.elements());
            assert_eq!(entries(&keys), entries(&expected));
            assert_eq!(keys.counts(), expected.counts());
            assert_eq!(keys.rows_without_key(), expected.rows_without_key());
            assert_eq!(keys.duplicate_rows(), in_all - keys.elements().len() as u64);
            assert_eq!(keys.rows_at_most(), in_all);
            assert!(keys.rows_without_key() > 0 && keys.counts()[1].rows < keys.counts()[0].rows * 2);
            let mut told = KeySet::listed(Listing::of(&key));
            let pass = source.each_key(
                |_| (),
                |element| {
                    told.push(element.copied()).unwrap();
                    Ok::<_, tacit_data::csv::Error>(())
                },
            );
            let pass = pass.unwrap();
            assert_eq!(
                (pass.rows, pass.keys, pass.without_key),
                (ROWS as u64, in_all, keys.rows_without_key())
            );
            assert_eq!(pass.with_each, keys.counts().iter().map(|of| of.rows).collect::<Vec<_>>());
            assert_eq!(entries(&told), entries(&expected));
            // A second reading finds the same rows.
            let all: Vec<u32> = (0..keys.elements().len() as u32).collect();
            let written = source.write_matches(&keys, &all, Path::new("o.csv"), &mut Vec::new()).unwrap();
            assert_eq!(written, ROWS as u64 - keys.rows_without_key());
        }
    }
}

#[test]
fn a_row_goes_out_once_and_its_cells_are_given_for_each_variant() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("t.csv");
    fs::write(&csv, "last,born,m,t\nLi,2000-12-12,a@x.org,r0\n,,,r1\nLi,,,r2\n,,a@x.org,r3\n").unwrap();
    let (source, keys) = read(&csv, &BOTH, 1);
    // Eight variants of the first row's name and date, and its address.
    assert_eq!(keys.elements().len(), 9);
    assert_eq!(keys.counts(), [Counts { rows: 1, distinct: 8 }, Counts { rows: 2, distinct: 1 }]);
    assert_eq!((keys.rows(), keys.rows_without_key(), keys.duplicate_rows()), (4, 2, 1));
    assert_eq!(keys.first_of(0, |at| at == 5 || at == 7), Some(Found { identifier: 0, element: 5 }));
    assert_eq!(keys.first_of(0, |at| at == 8), Some(Found { identifier: 1, element: 8 }));
    assert_eq!(keys.first_of(3, |at| at == 8), Some(Found { identifier: 1, element: 8 }));
    assert_eq!(keys.first_of(4, |_| true), None);
    assert_eq!(keys.matched(&[2, 3, 8]), [Counts { rows: 1, distinct: 2 }, Counts { rows: 1, distinct: 1 }]);
    let mut out = Vec::new();
    assert_eq!(source.write_matches(&keys, &[2, 3], Path::new("o.csv"), &mut out).unwrap(), 1);
    assert_eq!(String::from_utf8(out).unwrap(), "last,born,m,t\nLi,2000-12-12,a@x.org,r0\n");
    let mut told = Vec::new();
    source
        .read_given::<tacit_data::csv::Error>(&keys, &["t".to_owned()], Purpose::Shown, |at, _, cells| {
            told.push((at, cells[0].unwrap().to_owned()));
            Ok(())
        })
        .unwrap();
    let expected: Vec<_> = (0..9).map(|at| (at, "r0".to_owned())).chain([(8, "r3".to_owned())]).collect();
    assert_eq!(told, expected);
}

/// Rows that look like another, of all rows with different values.
#[test]
fn alike_rows_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("t.csv");
    fs::write(&csv, "last\nMeyer\nMeier\nMEYER\nSchmidt\nMaier\nLi\n\nLe\n").unwrap();
    let (_, keys) = read(&csv, &["last:name~1"], 1);
    let likeness = keys.likeness(0);
    let variants = 6 + 6 + 6 + 8 + 6 + 1 + 1;
    assert_eq!(likeness, Likeness { variants, most_variants: 8, distinct: 6, shared: 3 });
    let (_, keys) = read(&csv, &["last:name"], 1);
    assert_eq!(keys.likeness(0), Likeness { variants: 7, most_variants: 1, distinct: 6, shared: 0 });
}

/// A key of more combinations than a row may have is refused and counted, and no other.
#[test]
fn a_key_of_too_many_variants_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("t.csv");
    // 64 different letters have 65 variants, 63 have 64, and 62 have 63.
    let long: String = (0..64).map(|at| char::from_u32(0x4e00 + at).unwrap()).collect();
    let [longer, shorter] = [63, 62].map(|count| long.chars().take(count).collect::<String>());
    fs::write(&csv, format!("a,b\n{long},{longer}\n{long},{shorter}\nx,y\n")).unwrap();
    let (_, keys) = read(&csv, &["a:name~1,b:name~1"], 1);
    assert_eq!((keys.rows(), keys.rows_without_key()), (3, 1));
    assert_eq!(keys.tally().refused.iter().collect::<Vec<_>>(), [(&(1, Reason::Variants), &1)]);
    assert_eq!(keys.elements_of(1).flatten().count(), 65 * 63);
    assert_eq!(keys.elements().len(), 65 * 63 + 1);
    const { assert!(65 * 64 > MAX_VARIANTS && 65 * 63 <= MAX_VARIANTS) }
}

/// Tables of different types have nothing in common by chance, and equal ones match by every variant.
#[test]
fn equal_tables_match_by_all_of_their_variants() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("t.csv");
    fs::write(&csv, table(500)).unwrap();
    let (_, keys) = read(&csv, &BOTH, 1);
    let (_, again) = read(&csv, &BOTH, 4);
    assert_eq!(plain_join(keys.elements(), again.elements()).len(), keys.elements().len());
    let (_, other) = read(&csv, &["m:email", "last:name~1,born:date~1"], 1);
    assert!(plain_join(keys.elements(), other.elements()).is_empty());
}
