//! Keys, tables and files: normal forms, counts, every bad input, and errors that give nothing away.

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_ipc::writer::FileWriter;
use proptest::prelude::*;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use tacit_data::csv::{Delimiter, EmptyKeys, Error, Options, Source};
use tacit_data::generate::{Settings, Side, write_table};
use tacit_data::give::Purpose;
use tacit_data::records::{Element, KeyHasher, KeySet, KeySpec, Normalisation, plain_join};
use tacit_data::table::Source as Table;

fn spec(columns: &[&str]) -> KeySpec {
    KeySpec::text(columns.iter().map(|c| c.to_string()).collect(), Normalisation::default())
}

fn normal(text: &str, normalisation: Normalisation) -> String {
    let mut out = String::new();
    normalisation.apply(text, &mut out);
    out
}

fn element(parts: &[&str]) -> Option<Element> {
    KeyHasher::new(Normalisation::default()).hash(parts.iter().copied())
}

#[test]
fn normal_forms() {
    let all = Normalisation::default();
    for (text, expected) in [
        ("  Ann@Example.com\t", "ann@example.com"),
        ("\u{a0}ZOË ", "zoë"),
        ("Zoe\u{308}", "zoë"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
        ("a  b", "a  b"),
        (" \u{2003}\n", ""),
    ] {
        assert_eq!(normal(text, all), expected, "{text:?}");
    }
    assert_eq!(normal(" Zoe\u{308} ", Normalisation::NONE), " Zoe\u{308} ");
    assert_eq!(normal(" Zoe\u{308} ", Normalisation { nfc: false, ..all }), "zoe\u{308}");
    assert_eq!(normal(" ZOË ", Normalisation { case_fold: false, ..all }), "ZOË");
    assert_eq!(normal(" ZOE ", Normalisation { trim: false, ..all }), " zoe ");
    assert_ne!(normal("é", all), normal("e", all));
}

proptest! {
    #[test]
    fn normalising_twice_changes_nothing(text: String, nfc: bool, trim: bool, case_fold: bool) {
        let normalisation = Normalisation { nfc, trim, case_fold };
        let once = normal(&text, normalisation);
        prop_assert_eq!(normal(&once, normalisation), once);
    }

    #[test]
    fn composite_keys_are_injective(a in prop::collection::vec("[ab]{1,3}", 1..4), b in prop::collection::vec("[ab]{1,3}", 1..4)) {
        let hash = |parts: &[String]| element(&parts.iter().map(String::as_str).collect::<Vec<_>>());
        prop_assert_eq!(hash(&a) == hash(&b), a == b);
    }

    #[test]
    fn key_sets_count_like_a_map(rows in prop::collection::vec(prop::option::weighted(0.9, 0u8..40), 0..300)) {
        let hash = |key: u8| element(&[&key.to_string()]).unwrap();
        let set = KeySet::from_elements(rows.iter().map(|row| row.map(hash))).unwrap();
        let mut first: HashMap<u8, usize> = HashMap::new();
        for (at, row) in rows.iter().enumerate() {
            let expected = row.map(|key| {
                let next = first.len();
                *first.entry(key).or_insert(next)
            });
            prop_assert_eq!(set.element_of(at as u64), expected);
            if let Some(key) = row {
                prop_assert_eq!(set.elements()[expected.unwrap()], hash(*key));
            }
        }
        let empty = rows.iter().filter(|row| row.is_none()).count();
        prop_assert_eq!(set.elements().len(), first.len());
        prop_assert_eq!(set.rows_without_key(), empty as u64);
        prop_assert_eq!(set.duplicate_rows(), (rows.len() - empty - first.len()) as u64);
        prop_assert_eq!(set.element_of(rows.len() as u64), None);
    }
}

#[test]
fn the_agreement_names_what_must_be_alike_and_no_column() {
    let one = spec(&["email"]);
    assert_eq!(one.agreement(), spec(&["e-mail address"]).agreement());
    assert_ne!(one.agreement(), spec(&["email", "birthdate"]).agreement());
    let other = KeySpec { normalisation: Normalisation::NONE, ..one.clone() };
    assert_ne!(one.agreement(), other.agreement());
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }
}

fn read(path: &Path, columns: &[&str]) -> Result<KeySet, Error> {
    Source::open(path, spec(columns), Options::default())?.read_keys(|_| ())
}

#[test]
fn bad_tables_are_refused_with_a_reason() {
    let folder = Folder::new();
    let explain = |content: &[u8], column: &str| {
        let path = folder.file("table.csv", content);
        let error = read(&path, &[column]).err().expect("an error");
        let text = error.to_string();
        assert!(text.contains("table.csv") && !text.contains('\n'), "{text}");
        (error, text)
    };
    let missing = read(&folder.0.path().join("nowhere.csv"), &["a"]).err().unwrap();
    assert!(matches!(&missing, Error::NotFound(_)) && missing.to_string().contains("nowhere.csv"));
    assert!(matches!(read(folder.0.path(), &["a"]).err().unwrap(), Error::NotAFile(_)));
    for empty in [&b""[..], b"\n\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"] {
        assert!(matches!(explain(empty, "a").0, Error::Empty(_)));
    }
    let (error, text) = explain(b"name,e-mail\nx,y\n", "email");
    assert!(matches!(error, Error::UnknownColumn { .. }), "{text}");
    assert!(text.ends_with("did you mean `e-mail`?") && !text.contains("name,"), "{text}");
    // The first line may be data: nothing of it is told that is not nearly what was asked for.
    let (error, text) = explain(b"Ann,ann@x.org\nx,y\n", "email");
    assert!(matches!(error, Error::UnknownColumn { near: None, .. }), "{text}");
    assert!(text.contains("`email`") && text.contains("2 columns") && !text.contains("Ann"), "{text}");
    assert!(matches!(explain(b"a,a\n1,2\n", "a").0, Error::AmbiguousColumn { .. }));
    let (error, text) = explain(b"a,b\n1,2\n3\n", "a");
    assert!(matches!(error, Error::UnequalRow { line: 3, expected: 2, found: 1, .. }), "{text}");
    let (error, text) = explain(b"a,b\n1,2\n\"3\n\",4\n5,6,7\n", "a");
    assert!(matches!(error, Error::UnequalRow { line: 5, expected: 2, found: 3, .. }), "{text}");
    let (error, text) = explain(b"a,b\n1,2\n3,\xff\n", "a");
    assert!(matches!(error, Error::InvalidUtf8 { line: 3, .. }) && text.contains("line 3"), "{text}");
    assert!(matches!(explain(b"a\xff,b\n", "a").0, Error::InvalidUtf8 { line: 1, .. }));
    assert!(matches!(explain(b"a\0,\0b\0\n\0", "a").0, Error::Encoded { encoding: "utf-16le", .. }));
    let path = folder.file("table.csv", "a,b\n1,2\n");
    assert!(matches!(read(&path, &[]).err().unwrap(), Error::NoKey(_)));
}

#[cfg(unix)]
#[test]
fn an_unreadable_table_is_refused() {
    // A file that nobody can read, root included: a loop of symbolic links.
    let folder = Folder::new();
    let (a, b) = (folder.0.path().join("a"), folder.0.path().join("b"));
    std::os::unix::fs::symlink(&a, &b).unwrap();
    std::os::unix::fs::symlink(&b, &a).unwrap();
    assert!(matches!(read(&a, &["x"]).err().unwrap(), Error::Unreadable { .. }));
}

#[test]
fn tables_of_all_kinds_are_read() {
    let folder = Folder::new();
    let expected = [element(&["x", "1"]).unwrap(), element(&["y, z", "2"]).unwrap()];
    for content in [
        "\u{feff}k,n,l\nX,other,1\n\"y, z\",,2\n",
        "k;n;l\r\nx;a,b;1\r\n\r\ny, z;;2",
        "k\tn\tl\n x \t;\t1\ny, z\t\t2\n",
        "k|\"n,,,,,\"|l\nx||1\ny, z||2\n",
    ] {
        let path = folder.file("t.csv", content);
        let keys = read(&path, &["k", "l"]).unwrap();
        assert_eq!(keys.elements(), expected, "{content:?}");
    }
    let path = folder.file("t.csv", "k,l\nx,1\n");
    assert_eq!(read(&path, &["l", "k"]).unwrap().elements(), [element(&["1", "x"]).unwrap()]);
    let options = Options { delimiter: Delimiter::Byte(b';'), ..Options::default() };
    let one_column = Source::open(&path, spec(&["k,l"]), options).unwrap();
    assert_eq!(one_column.read_keys(|_| ()).unwrap().rows(), 1);
    let header_only = folder.file("h.csv", "k,l\n");
    assert!(read(&header_only, &["k"]).unwrap().elements().is_empty());
}

#[test]
fn rows_without_key_are_counted_or_refused() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "k,l\nx,1\n,2\ny, \nx,1\n");
    let keys = read(&path, &["k", "l"]).unwrap();
    assert_eq!((keys.rows(), keys.rows_without_key(), keys.duplicate_rows()), (4, 2, 1));
    let options = Options { empty_keys: EmptyKeys::Refuse, ..Options::default() };
    let error = Source::open(&path, spec(&["k"]), options).unwrap().read_keys(|_| ()).err().unwrap();
    assert!(matches!(error, Error::EmptyKey { line: 3, .. }));
}

/// With a byte order mark or without, with CRLF or LF, in whatever way: the output is written as the input
/// was.
#[test]
fn the_byte_order_mark_and_the_ends_of_rows_stay() {
    let folder = Folder::new();
    for mark in ["\u{feff}", ""] {
        for end in ["\r\n", "\n"] {
            // A line break in quotes before the first row's end is no end of a row.
            let header = "k;\"a\nb\"";
            let rows = ["x;1", "y;\"p\r\nq\"", "z;3"];
            let table = |rows: &[&str]| {
                let rows: String = rows.iter().map(|row| format!("{row}{end}")).collect();
                format!("{mark}{header}{end}{rows}")
            };
            let path = folder.file("t.csv", table(&rows));
            let source = Table::open(&path, spec(&["k"]), Options::default()).unwrap();
            let keys = source.read_keys(|_| ()).unwrap();
            let mut out = Vec::new();
            source.write_matches(&keys, &[1, 2], Path::new("out.csv"), &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), table(&rows[1..]), "{mark:?} {end:?}");

            let source = Source::open_table(&path, Options::default()).unwrap();
            let contents = source.read_columns(&[0], |_, _| Ok::<_, Error>(())).unwrap();
            let mut out = Vec::new();
            let extend = |row: u64| vec![row.to_string()];
            source.write_extended(&contents, &["n"], extend, Path::new("out.csv"), &mut out).unwrap();
            let longer: Vec<String> = rows.iter().zip(0..).map(|(row, i)| format!("{row};{i}")).collect();
            let longer: Vec<&str> = longer.iter().map(String::as_str).collect();
            let expected = table(&longer).replacen(header, &format!("{header};n"), 1);
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{mark:?} {end:?}");
        }
    }
}

#[test]
fn matching_rows_keep_every_column_and_duplicate() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "k;extra\n a ;\"1;\"\"q\"\"\"\nb;2\nA;3\n;4\nc;5\n");
    let source = Table::open(&path, spec(&["k"]), Options::default()).unwrap();
    let keys = source.read_keys(|_| ()).unwrap();
    let mut out = Vec::new();
    let written = source.write_matches(&keys, &[0, 2], Path::new("out.csv"), &mut out).unwrap();
    assert_eq!(written, 3);
    assert_eq!(String::from_utf8(out).unwrap(), "k;extra\n a ;\"1;\"\"q\"\"\"\nA;3\nc;5\n");
}

#[test]
fn a_table_that_changed_is_refused() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "k\na\nb\n");
    let source = Table::open(&path, spec(&["k"]), Options::default()).unwrap();
    let keys = source.read_keys(|_| ()).unwrap();
    for changed in ["k\na\nc\n", "k\na\n", "k\na\nb\nd\n", "k\na\nb\n\"\"\n"] {
        fs::write(&path, changed).unwrap();
        let error = source.write_matches(&keys, &[0], Path::new("out.csv"), &mut Vec::new()).err().unwrap();
        assert!(matches!(error, Error::Changed(_)), "{changed:?}: {error}");
    }
}

/// Rows are copied by their numbers, so every byte counts: what stands behind the key goes to the output too.
#[test]
fn a_table_whose_other_columns_changed_is_refused() {
    let folder = Folder::new();
    let before = "k,city\na,Oslo\nb,Bern\n";
    let path = folder.file("t.csv", before);
    let source = Table::open(&path, spec(&["k"]), Options::default()).unwrap();
    let keys = source.read_keys(|_| ()).unwrap();
    let pass = source.each_key::<Error>(|_| (), |_| Ok(())).unwrap();
    let write = || {
        let target = Path::new("out.csv");
        let by_keys = source.write_matches(&keys, &[0], target, &mut Vec::new());
        let by_rows = source.write_rows(&pass, |row| row == 0, target, &mut Vec::new());
        [by_keys, by_rows]
    };
    for changed in ["k,city\na,Rome\nb,Bern\n", "k,city\na,Oslo\nb,Bern", "k,city\r\na,Oslo\r\nb,Bern\r\n"] {
        fs::write(&path, changed).unwrap();
        for written in write() {
            assert!(matches!(written, Err(Error::Changed(_))), "{changed:?}: {written:?}");
        }
    }
    fs::write(&path, before).unwrap();
    assert!(write().into_iter().all(|written| written.unwrap() == 1));
}

/// A writer that takes so many bytes, as a disk does.
struct Disk(usize);

impl std::io::Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = bytes.len().min(self.0);
        self.0 -= n;
        if n == 0 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(n) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error_that_names_the_output() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "k\na\nb\n");
    let source = Table::open(&path, spec(&["k"]), Options::default()).unwrap();
    let keys = source.read_keys(|_| ()).unwrap();
    for room in 0..6 {
        let error =
            source.write_matches(&keys, &[0, 1], Path::new("out.csv"), &mut Disk(room)).err().unwrap();
        assert!(
            matches!(error, Error::Unwritable { .. }) && error.to_string().starts_with("out.csv"),
            "{error}"
        );
    }
    assert_eq!(source.write_matches(&keys, &[0, 1], Path::new("out.csv"), &mut Disk(6)).unwrap(), 2);
}

/// Whatever is wrong, neither a row nor a first line that is none shows, and what was asked for cannot steer
/// a terminal.
#[test]
fn errors_show_no_cell_and_no_hostile_name() {
    let folder = Folder::new();
    let secret = "SECRET-4711";
    let faults: [(&str, String, &str); 6] = [
        ("no header", format!("{secret},x{secret}\n{secret},2\n"), "email"),
        ("another case", format!("{secret},EMAIL\n{secret},2\n"), "email"),
        ("twice", format!("email,{secret},email\n{secret},2,3\n"), "email"),
        ("unequal rows", format!("email\n{secret},{secret}\n"), "email"),
        ("open quote", format!("email,b\n\"{secret}\n{secret}\n"), "email"),
        ("a hostile column", format!("{secret},b\n{secret},c\n"), "a\u{1b}[2J\u{202e}\nerror: b"),
    ];
    for (what, content, column) in faults {
        let path = folder.file("t.csv", content);
        let error = match Source::open(&path, spec(&[column]), Options::default()) {
            Ok(source) => {
                assert!(!format!("{source:?}").contains(secret), "{what}: {source:?}");
                source.read_keys(|_| ()).err().unwrap()
            }
            Err(error) => error,
        };
        let text = error.to_string();
        assert!(!text.contains(secret), "{what}: {text}");
        assert!(text.chars().all(|c| !c.is_control() && c != '\u{202e}'), "{what}: {text:?}");
        assert!(text.len() < 400, "{what}: {text}");
    }
    let path = folder.file("t.csv", "EMAIL,b\n1,2\n");
    let text = read(&path, &["email"]).err().unwrap().to_string();
    assert!(text.contains("has 2 columns") && text.contains("differs only in case"), "{text}");
    let long = "c".repeat(100_000);
    let text = read(&path, &[&long]).err().unwrap().to_string();
    assert!(text.len() < 600 && text.contains("columns"), "{text}");
}

#[test]
fn generated_tables_join_as_set() {
    let folder = Folder::new();
    let settings = Settings { people: [3000, 2000], common: 700, variants: 0.5, duplicates: 0.05, seed: 7 };
    let table = |side, name: &str| {
        let mut bytes = Vec::new();
        let rows = write_table(&settings, side, &mut bytes).unwrap();
        let mut again = Vec::new();
        write_table(&settings, side, &mut again).unwrap();
        assert_eq!(bytes, again);
        (folder.file(name, bytes), rows)
    };
    let ((shop, shop_rows), (insurer, _)) =
        (table(Side::Shop, "shop.csv"), table(Side::Insurer, "insurer.csv"));
    for columns in [&["email"][..], &["email", "birthdate"], &["email", "name", "birthdate"]] {
        let (mine, theirs) = (read(&shop, columns).unwrap(), read(&insurer, columns).unwrap());
        assert_eq!((mine.elements().len(), theirs.elements().len()), (3000, 2000));
        assert_eq!(mine.rows(), shop_rows);
        assert!(mine.duplicate_rows() > 90 && mine.duplicate_rows() < 220);
        assert_eq!(plain_join(mine.elements(), theirs.elements()).len(), 700);
        assert_eq!(plain_join(theirs.elements(), mine.elements()).len(), 700);
    }
    // Without normalisation the other spellings are other keys.
    let raw = |path: &Path| {
        let spec = KeySpec::text(vec!["email".into()], Normalisation::NONE);
        Source::open(path, spec, Options::default()).unwrap().read_keys(|_| ()).unwrap()
    };
    assert!(plain_join(raw(&shop).elements(), raw(&insurer).elements()).len() < 450);
    assert!(write_table(&Settings { common: 2001, ..settings }, Side::Shop, std::io::sink()).is_err());
}

#[test]
fn every_row_is_written_with_more_fields_behind_it() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "a,result\n1,\"x,y\"\n2,\n");
    let source = Source::open_table(&path, Options::default()).unwrap();
    let columns = source.positions(&["result".into(), "a".into()]).unwrap();
    let mut seen = Vec::new();
    let contents = source
        .read_columns(&columns, |line, fields| {
            seen.push((line, fields.join("|")));
            Ok::<_, Error>(())
        })
        .unwrap();
    assert_eq!(seen, [(2, "x,y|1".to_owned()), (3, "|2".to_owned())]);
    assert_eq!(contents.rows(), 2);
    let extend = |row: u64| vec![format!("{row}"), "b,c".into()];
    let write = || {
        let mut out = Vec::new();
        let names = ["result", "more"];
        source.write_extended(&contents, &names, extend, Path::new("out.csv"), &mut out).map(|()| out)
    };
    let expected = "a,result,result_2,more\n1,\"x,y\",0,\"b,c\"\n2,,1,\"b,c\"\n";
    assert_eq!(String::from_utf8(write().unwrap()).unwrap(), expected);
    for changed in ["a,result\n1,\"x,z\"\n2,\n", "a,result\n1,\"x,y\"\n", "a,result\n1,\"x,y\"\n2,\n3,\n"] {
        fs::write(&path, changed).unwrap();
        assert!(matches!(write().err().unwrap(), Error::Changed(_)), "{changed:?}");
    }
    assert!(matches!(source.positions(&["b".into()]).err().unwrap(), Error::UnknownColumn { .. }));
}

/// A file that takes the place of another between two readings gives no cells: neither of rows that moved, nor of
/// columns that did.
#[test]
fn cells_of_a_table_that_was_replaced_are_not_given() {
    let folder = tempfile::tempdir().unwrap();
    let rows = [["a", "Oslo", "1"], ["b", "Bern", "2"], ["c", "Rome", "3"]];
    let write = |path: &Path, names: [&str; 3], rows: &[[&str; 3]]| {
        let columns = (0..3).map(|at| {
            let cells: Vec<&str> = rows.iter().map(|row| row[at]).collect();
            (names[at], std::sync::Arc::new(StringArray::from(cells)) as ArrayRef)
        });
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut writer = FileWriter::try_new(fs::File::create(path).unwrap(), &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
    };
    let text = |names: [&str; 3], rows: &[[&str; 3]]| {
        [names].iter().chain(rows).map(|row| row.join(",") + "\n").collect::<String>()
    };
    let (names, moved) = (["id", "city", "iban"], [rows[1], rows[0], rows[2]]);
    let swapped = rows.map(|[id, city, iban]| [id, iban, city]);
    for name in ["t.csv", "t.arrow"] {
        let path = folder.path().join(name);
        let put = |names: [&str; 3], rows: &[[&str; 3]]| match name {
            "t.csv" => fs::write(&path, text(names, rows)).unwrap(),
            _ => write(&path, names, rows),
        };
        put(names, &rows);
        let table = Table::open(&path, spec(&["id"]), Options::default()).unwrap();
        let keys = table.read_keys(|_| ()).unwrap();
        let given = || {
            let mut found = Vec::new();
            let asked = ["city".to_owned()];
            let done = table.read_given(&keys, &asked, Purpose::Shown, |_, _, cells| {
                found.push(cells[0].unwrap_or_default().to_owned());
                Ok::<_, Error>(())
            });
            done.map(|()| found)
        };
        assert_eq!(given().unwrap(), ["Oslo", "Bern", "Rome"], "{name}");
        for (names, rows) in [(names, &moved), (["id", "iban", "city"], &swapped), (names, &swapped)] {
            put(names, rows);
            match given() {
                Err(Error::Changed(_)) => {}
                // Keys and names are the same, so it is the same table with other cells.
                Ok(found) => assert!(names[1] == "city" && rows[0][0] == "a", "{name}: {found:?}"),
                Err(other) => panic!("{name}: {other}"),
            }
        }
    }
}

/// A file of columns that has other cells beside the same keys when it is read again, its time of change put back: of
/// a first reading that was of keys alone too.
#[test]
fn columns_that_changed_beside_their_keys_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let made = |more: u32, rows: u32, form: &str| {
        let text =
            (0..rows).fold("id,amount\n".to_owned(), |text, id| text + &format!("{id},{}\n", id + more));
        fs::write(at("plain.csv"), text).unwrap();
        let plain = Table::open(&at("plain.csv"), spec(&["id"]), Options::default()).unwrap();
        let keys = plain.read_keys(|_| ()).unwrap();
        let mut out = Vec::new();
        plain.write_rest(&keys, &[], &at(&format!("made.{form}")), &mut out).unwrap();
        out
    };
    // Of many rows the cells lie behind the blocks that the keys are in.
    for (form, rows) in [("parquet", 3), ("arrow", 3), ("parquet", 60_000), ("arrow", 60_000)] {
        let (before, after) = (made(1, rows, form), made(2, rows, form));
        let path = at(&format!("t.{form}"));
        let start = || {
            fs::write(&path, &before).unwrap();
            let table = Table::open(&path, spec(&["id"]), Options::default()).unwrap();
            let keys = table.read_keys(|_| ()).unwrap();
            (table, keys)
        };
        let sum = |table: &Table, keys: &KeySet| {
            let (columns, mut sum) = (["amount".to_owned()], 0);
            table.read_given(keys, &columns, Purpose::Shown, |_, _, cells| {
                sum += cells[0].map_or(0, |cell| cell.parse::<u64>().unwrap());
                Ok::<_, Error>(())
            })?;
            Ok::<_, Error>(sum)
        };
        let (table, keys) = start();
        let expected = sum(&table, &keys).unwrap();
        let (table, keys) = start();
        let pass = table.each_key::<Error>(|_| (), |_| Ok(())).unwrap();
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(&path, &after).unwrap();
        fs::File::options().append(true).open(&path).unwrap().set_modified(modified).unwrap();
        let target = Path::new("out.csv");
        let outcomes = [
            table.write_matches(&keys, &[0, 1], target, &mut Vec::new()).map(|_| ()),
            table.write_marked(&keys, &[0, 1], target, &mut Vec::new()).map(|_| ()),
            table.write_rows(&pass, |_| true, target, &mut Vec::new()).map(|_| ()),
            sum(&table, &keys).map(|_| ()),
        ];
        for outcome in outcomes {
            assert!(matches!(outcome, Err(Error::Changed(_))), "{form} of {rows}: {outcome:?}");
        }
        // Another file took its name: what is read is the one that was opened.
        let (table, keys) = start();
        fs::write(at("next"), &after).unwrap();
        fs::rename(at("next"), &path).unwrap();
        assert_eq!(sum(&table, &keys).unwrap(), expected, "{form} of {rows}");
    }
}

/// A table whose digest is recorded, in each format: what is read of it later is what the digest is of, or nothing.
#[test]
fn a_recorded_table_is_read_as_it_was_hashed_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let spec = || KeySpec::text(vec!["id".to_owned()], Normalisation::default());
    let open = |path: &Path| Table::open(path, spec(), Options::default()).unwrap();
    let text = |more: u32| {
        (0..40_000u32).fold("id,amount\n".to_owned(), |text, id| text + &format!("{id},{}\n", id % 97 + more))
    };
    for form in ["csv", "csv.gz", "csv.zst", "parquet", "arrow"] {
        // The same keys beside other cells, in a file of this format.
        let made = [0, 1].map(|more| {
            std::fs::write(at("plain.csv"), text(more)).unwrap();
            let (plain, target) = (open(&at("plain.csv")), at(&format!("{more}.{form}")));
            let keys = plain.read_keys(|_| ()).unwrap();
            let all: Vec<u32> = (0..keys.elements().len() as u32).collect();
            let mut out = Vec::new();
            plain.write_matches(&keys, &all, &target, &mut out).unwrap();
            out
        });
        let path = at(&format!("table.{form}"));
        let read = |source: &Table, keys: &KeySet| {
            let columns = ["amount".to_owned()];
            let mut sum = 0;
            source.read_given(keys, &columns, Purpose::Shown, |_, _, cells| {
                sum += cells[0].map_or(0, |cell| cell.parse::<u32>().unwrap());
                Ok::<_, Error>(())
            })?;
            let all: Vec<u32> = (0..keys.elements().len() as u32).collect();
            source.write_matches(keys, &all, &at("out.csv"), &mut Vec::new())?;
            Ok::<_, Error>(sum)
        };
        let start = || {
            std::fs::write(&path, &made[0]).unwrap();
            let source = Table::open_pinned(&path, spec(), Options::default()).unwrap();
            let keys = source.read_keys(|_| ()).unwrap();
            (source, keys)
        };
        let (source, keys) = start();
        let sum = read(&source, &keys).unwrap();
        // Overwritten in its place.
        std::fs::write(&path, &made[1]).unwrap();
        assert_eq!(source.digest().unwrap(), *blake3::hash(&made[0]).as_bytes(), "{form}");
        let error = read(&source, &keys).unwrap_err();
        assert!(matches!(&error, Error::Changed(_)), "{form}: {error}");
        let (source, keys) = start();
        std::fs::write(&path, &made[1]).unwrap();
        let error = source.write_matches(&keys, &[0], &at("out.csv"), &mut Vec::new()).unwrap_err();
        assert!(matches!(&error, Error::Changed(_)), "{form}: {error}");
        // Another file took its name.
        let (source, keys) = start();
        std::fs::write(at("next"), &made[1]).unwrap();
        std::fs::rename(at("next"), &path).unwrap();
        assert_eq!(read(&source, &keys).unwrap(), sum, "{form}");
        match read(&open(&path), &keys) {
            // The next file is opened anew: a CSV file is known by its bytes, another by its keys.
            Ok(other) => assert_ne!(other, sum, "{form}"),
            Err(error) => assert!(matches!(&error, Error::Changed(_)), "{form}: {error}"),
        }
    }
}
