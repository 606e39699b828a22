//! Rows with any of several identifiers: whatever format they come in and go to, and however many threads read them.

use proptest::prelude::*;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use tacit_crypto::workers;
use tacit_data::By;
use tacit_data::csv::{EmptyKeys, Options};
use tacit_data::give::Purpose;
use tacit_data::keys::Named;
use tacit_data::records::{Counts, Found, KeyHasher, KeySet, KeySpec, Normalisation};
use tacit_data::table::{Pass, Source};

/// An address, or a number, or a name with a day.
fn spec() -> KeySpec {
    let named = |names: &[&str]| names.iter().map(|name| Named::parse(name).unwrap()).collect::<Vec<_>>();
    KeySpec::named(named(&["m:email"]), Normalisation::default())
        .or(named(&["n:int"]))
        .or(named(&["who:name", "d:date"]))
}

/// A row by its number: identifiers that are missing, refused or of an earlier row among them.
fn row(number: usize) -> [String; 4] {
    let mail = match number % 7 {
        0 => String::new(),
        1 => "no address".to_owned(),
        2 => format!("A{}@x.org", number - 1),
        _ => format!("a{number}@x.org"),
    };
    let count = if number.is_multiple_of(5) { String::new() } else { format!("{}", number / 3) };
    let who = if number.is_multiple_of(11) { " ".to_owned() } else { format!("Name {}", number % 1000) };
    let day = format!("2020-{:02}-{:02}", number % 13, number % 28 + 1);
    [mail, count, who, day]
}

fn table(rows: usize) -> String {
    let mut text = "m,n,who,d,t\n".to_owned();
    for number in 0..rows {
        writeln!(text, "{},t{number}", row(number).join(",")).unwrap();
    }
    text
}

/// All rows' elements, by a hasher that is asked for one row after another.
fn one_by_one(rows: usize) -> KeySet {
    let (mut hasher, mut set) = (KeyHasher::of(&spec()), KeySet::of(3));
    for number in 0..rows {
        for element in hasher.hash_row(row(number).iter().map(String::as_str)) {
            set.push(element).unwrap();
        }
    }
    set
}

fn read(path: &Path, threads: usize) -> (Source, KeySet) {
    workers::limited(threads, || {
        let source = Source::open(path, spec(), Options::default()).unwrap();
        let keys = source.read_keys(|_| ()).unwrap();
        (source, keys)
    })
}

fn entries(keys: &KeySet) -> Vec<Vec<Option<usize>>> {
    (0..keys.rows()).map(|row| keys.elements_of(row).collect()).collect()
}

/// CSV in one piece and in several, and columns on one thread and on more, give the elements of one row at a time.
#[test]
fn elements_are_those_of_one_row_at_a_time() {
    const ROWS: usize = 60_000;
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("t.csv");
    fs::write(&csv, table(ROWS)).unwrap();
    let expected = one_by_one(ROWS);
    let parquet = folder.path().join("t.parquet");
    let (source, keys) = read(&csv, 1);
    let all: Vec<u32> = (0..keys.elements().len() as u32).collect();
    let mut out = Vec::new();
    source.write_rest(&keys, &[], &parquet, &mut out).unwrap();
    fs::write(&parquet, out).unwrap();
    for path in [&csv, &parquet] {
        for threads in [1, 4] {
            let (source, keys) = read(path, threads);
            assert_eq!(keys.elements(), expected.elements());
            assert_eq!(entries(&keys), entries(&expected));
            assert_eq!(keys.counts(), expected.counts());
            assert_eq!((keys.rows(), keys.tally().rows), (ROWS as u64, ROWS as u64));
            let missing =
                (0..ROWS as u64).filter(|row| keys.elements_of(*row).flatten().count() == 0).count() as u64;
            assert!(missing > 0 && keys.rows_without_key() == missing);
            let with = keys.counts().iter().map(|of| of.rows).sum::<u64>();
            assert_eq!(keys.duplicate_rows(), with - all.len() as u64);
            let (mut told, mut count) = (KeySet::of(3), 0);
            let pass = source.each_key(
                |_| (),
                |element| {
                    count += 1;
                    told.push(element.copied()).unwrap();
                    Ok::<_, tacit_data::csv::Error>(())
                },
            );
            let pass: Pass = pass.unwrap();
            assert_eq!((count, pass.rows, pass.without_key), (3 * ROWS, ROWS as u64, missing));
            assert_eq!(pass.keys, with);
            assert_eq!(pass.with_each, keys.counts().iter().map(|of| of.rows).collect::<Vec<_>>());
            assert_eq!(entries(&told), entries(&expected));
        }
    }
}

/// Rows go out with the first identifier by which they match, into every format, with what the peer gave for it.
#[test]
fn rows_go_out_with_what_they_match_by() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("t.csv");
    let rows = "m,n,who,d,t\na@x.org,1,,,r0\n,1,Ann,2020-01-01,r1\nb@x.org,,Ann,2020-01-01,r2\n,,,,r3\nc@x.org,3,,,r4\n";
    fs::write(&csv, rows).unwrap();
    let (source, keys) = read(&csv, 1);
    // Of the elements a, 1, Ann, b, c, 3 the peer has 1, Ann and b.
    assert_eq!(keys.elements().len(), 6);
    let matches = [1, 2, 3];
    let of = |distinct, rows| Counts { distinct, rows };
    assert_eq!(keys.matched(&matches), [of(1, 1), of(1, 2), of(1, 0)]);
    assert_eq!(keys.first_of(2, |at| at != 3), Some(Found { identifier: 2, element: 2 }));
    let names = spec().identifier_names();
    assert_eq!(names, ["m", "n", "who+d"]);
    let by = By { column: "by", names: &names };
    let put = |is_left: bool, target: &str| {
        let mut out = Vec::new();
        let target = folder.path().join(target);
        let written =
            source.write_matches_by(&keys, &matches, (is_left, Some(by)), &target, &mut out).unwrap();
        fs::write(&target, &out).unwrap();
        (written, target)
    };
    let lines = |path: &Path| fs::read_to_string(path).unwrap();
    let (count, path) = put(false, "o.csv");
    assert_eq!(count, 3);
    assert_eq!(
        lines(&path),
        "m,n,who,d,t,by\na@x.org,1,,,r0,n\n,1,Ann,2020-01-01,r1,n\nb@x.org,,Ann,2020-01-01,r2,m\n"
    );
    let (count, path) = put(true, "all.csv");
    let all = lines(&path);
    assert_eq!(count, 5);
    assert!(all.ends_with(",r2,true,m\n,,,,r3,false,\nc@x.org,3,,,r4,false,\n"), "{all}");
    let mut rest = Vec::new();
    assert_eq!(source.write_rest(&keys, &matches, Path::new("r.csv"), &mut rest).unwrap(), 2);
    // Through columns and back it is the same table; JSON, Arrow and a workbook too.
    for target in ["o.parquet", "o.arrow", "o.xlsx"] {
        let (count, path) = put(true, target);
        assert_eq!(count, 5);
        let (again, keys) = read(&path, 1);
        let mut out = Vec::new();
        again.write_rest(&keys, &[], Path::new("x.csv"), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap().to_lowercase();
        assert_eq!(text, all.to_lowercase(), "{target}");
        // From columns a row is found by all of its elements again.
        let by = By { column: "by2", names: &names };
        let mut out = Vec::new();
        again.write_matches_by(&keys, &matches, (false, Some(by)), Path::new("x.csv"), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().filter(|line| line.ends_with(",n")).count(), 2, "{text}");
    }
    // What the peer gave for the identifier by which a row matches, once for each of its rows.
    let cell = |text: &str| vec![Some(text.to_owned())];
    let given = [vec![], vec![cell("one"), cell("two")], vec![cell("ann")], vec![cell("b")], vec![], vec![]];
    let (own, mut out) = (["x".to_owned()], Vec::new());
    let rows = |at: usize| given[at].as_slice();
    source
        .write_joined_by(&keys, (&own, "peer_"), rows, (false, Some(by)), Path::new("j.csv"), &mut out)
        .unwrap();
    let joined = String::from_utf8(out).unwrap();
    let ends: Vec<&str> = joined.lines().map(|line| line.split(",r").last().unwrap()).collect();
    assert_eq!(ends[1..], ["0,n,one", "0,n,two", "1,n,one", "1,n,two", "2,m,b"], "{joined}");
    // `read_given` passes on a row's cells once for each of its identifiers.
    let mut told = Vec::new();
    source
        .read_given::<tacit_data::csv::Error>(&keys, &["t".to_owned()], Purpose::Shown, |at, _, cells| {
            told.push((at, cells[0].unwrap().to_owned()));
            Ok(())
        })
        .unwrap();
    let expected = [(0, "r0"), (1, "r0"), (1, "r1"), (2, "r1"), (3, "r2"), (2, "r2"), (4, "r4"), (5, "r4")];
    assert_eq!(told, expected.map(|(at, text)| (at, text.to_owned())));
}

/// A file that changes in one identifier alone is another file.
#[test]
fn a_change_in_any_identifier_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let csv = folder.path().join("t.csv");
    let put = |text: &str| {
        fs::write(&csv, text).unwrap();
        let (source, keys) = read(&csv, 1);
        let mut out = Vec::new();
        source.write_rest(&keys, &[], &path, &mut out).unwrap();
        out
    };
    let one = put("m,n,who,d\na@x.org,1,Ann,2020-01-01\n");
    let other = put("m,n,who,d\na@x.org,1,Ann,2020-01-02\n");
    fs::write(&path, &one).unwrap();
    let (source, keys) = read(&path, 1);
    assert_eq!(source.write_matches(&keys, &[0], Path::new("o.csv"), &mut Vec::new()).unwrap(), 1);
    fs::write(&path, &other).unwrap();
    let changed = source.write_matches(&keys, &[0], Path::new("o.csv"), &mut Vec::new());
    assert!(changed.is_err_and(|error| error.to_string().contains("changed")));
}

/// A row is without a key only where it has none of its identifiers.
#[test]
fn a_row_needs_one_identifier() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let options = Options { empty_keys: EmptyKeys::Refuse, ..Options::default() };
    let keys = |text: &str| {
        fs::write(&path, text).unwrap();
        Source::open(&path, spec(), options).unwrap().read_keys(|_| ())
    };
    assert_eq!(keys("m,n,who,d\n,,Ann,2020-01-01\n,7,,\n").unwrap().rows_without_key(), 0);
    let fault = keys("m,n,who,d\n,7,,\n,,Ann,\n").err().unwrap().to_string();
    assert!(fault.contains("line 3"), "{fault}");
}

proptest! {
    /// The elements of different identifiers never are the same, and neither are those of one key.
    ///
    /// proof: vole-psi 1.5
    #[test]
    fn an_element_binds_its_identifier(text in "[a-z0-9]{1,70}", count in 2usize..5) {
        let named = || [Named::parse("c").unwrap()];
        let one = KeySpec::named(named(), Normalisation::default());
        let any = (1..count).fold(one.clone(), |spec, _| spec.or(named()));
        let mut elements = KeyHasher::of(&any).hash_row(vec![text.as_str(); count]);
        elements.push(KeyHasher::of(&one).hash([text.as_str()]));
        for (at, element) in elements.iter().enumerate() {
            prop_assert!(element.is_some() && !elements[..at].contains(element));
        }
        let names = any.identifier_names();
        prop_assert_eq!(names[1].as_str(), "c (2)");
    }
}
