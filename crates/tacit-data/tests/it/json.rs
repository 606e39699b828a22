//! Tables in JSON lines.

use std::path::{Path, PathBuf};
use tacit_data::columnar::Format;
use tacit_data::csv::{Error, MaxRow, Options, Place};
use tacit_data::give::Purpose;
use tacit_data::keys::Named;
use tacit_data::records::{KeySet, KeySpec, Normalisation};
use tacit_data::table::Source;
use tacit_data::values;

const LINES: &str = "{\"mail\": \"Ann@example.com\", \"id\": 12345678901234567, \"net\": 1.50, \"tags\": [\"a\", 2], \"ok\": true}\n\
    \n\
    {\"id\": 2, \"mail\": \"bob\\u00e9 \\\"x\\\"@example.com\", \"net\": 12345678901234567890.25, \"home\": {\"city\": \"Oslo\"}}\r\n\
    {\"mail\": null, \"id\": 3, \"net\": 7, \"note\": \"\", \"ok\": false, \"big\": 1e3}\n\
    {\"mail\": \"cleo, y\", \"id\": 4, \"note\": 5, \"big\": 17}";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join("t.log");
        std::fs::write(&path, content).unwrap();
        path
    }
}

fn read(path: &Path, key: &str, options: Options) -> Result<(Source, KeySet), Error> {
    let spec = KeySpec::named([Named::parse(key).unwrap()], Normalisation::default());
    let source = Source::open(path, spec, options)?;
    let keys = source.read_keys(|_| ())?;
    Ok((source, keys))
}

#[test]
fn an_object_a_line_is_a_row_and_goes_out_as_csv() {
    let folder = Folder::new();
    let (source, keys) = read(&folder.file(LINES), "mail", Options::default()).unwrap();
    assert_eq!((keys.rows(), keys.rows_without_key()), (4, 1));
    let mut out = Vec::new();
    source.admits(Path::new("out.csv")).unwrap();
    source.prove(Path::new("out.csv")).unwrap();
    source.write_matches(&keys, &[0, 1, 2], Path::new("out.csv"), &mut out).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "mail,id,net,tags,ok,home,note,big\n\
         Ann@example.com,12345678901234567,1.50,\"[\"\"a\"\", 2]\",true,,,\n\
         \"bobé \"\"x\"\"@example.com\",2,12345678901234567890.25,,,\"{\"\"city\"\": \"\"Oslo\"\"}\",,\n\
         \"cleo, y\",4,,,,,5,17\n"
    );
    let mut rest = Vec::new();
    source.write_rest(&keys, &[0, 1, 2], Path::new("rest"), &mut rest).unwrap();
    assert!(String::from_utf8(rest).unwrap().ends_with("\n,3,7,,false,,\"\",1e3\n"));
    let mut parquet = Vec::new();
    source.write_matches(&keys, &[0], Path::new("out.parquet"), &mut parquet).unwrap();
    assert!(
        parquet.starts_with(b"PAR1") && Format::by_name(Path::new("out.parquet")) == Some(Format::Parquet)
    );
}

#[test]
fn cells_are_keys_and_values_without_loss() {
    let folder = Folder::new();
    let path = folder.file(LINES);
    let keys = |key: &str| read(&path, key, Options::default()).unwrap().1;
    // Whole numbers and decimals are the same keys as those of a CSV file.
    let csv = folder.0.path().join("t.csv");
    std::fs::write(&csv, "id,net\n12345678901234567,1.5\n2,12345678901234567890.25\n3,7\n4,\n").unwrap();
    for key in ["id", "id:int", "net", "net:decimal"] {
        let other = read(&csv, key, Options::default()).unwrap().1;
        assert_eq!(keys(key).elements(), other.elements(), "{key}");
    }
    assert_eq!(keys("big:decimal").elements().len(), 2);
    for nested in ["tags", "home"] {
        let error = read(&path, nested, Options::default()).err().unwrap();
        assert!(matches!(&error, Error::KeyType { found, .. } if found.contains("JSON")), "{error}");
    }
    let (source, keys) = read(&path, "id", Options::default()).unwrap();
    let mut given = Vec::new();
    let columns = ["home".to_owned(), "net".to_owned(), "note".to_owned()];
    source
        .read_given(&keys, &columns, Purpose::Shown, |at, place, cells| {
            let cells: Vec<_> = cells.iter().map(|cell| cell.map(str::to_owned)).collect();
            given.push((at, place, cells));
            Ok::<_, Error>(())
        })
        .unwrap();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        given[1],
        (1, Place::Row(2), vec![some("{\"city\": \"Oslo\"}"), some("12345678901234567890.25"), None])
    );
    let table = values::Table::open(&path, Options::default()).unwrap();
    let columns = table.find(&[values::Column::parse("id"), values::Column::parse("net:decimal2")]);
    let error = table.read(&columns.unwrap(), |_, _| Ok::<_, Error>(())).err().unwrap();
    assert!(matches!(error, Error::NoValue { place: Place::Row(4), .. }), "{error}");
}

#[test]
fn what_is_no_object_is_refused_with_its_line() {
    let folder = Folder::new();
    let options = Options { max_row: MaxRow::new(1 << 16), ..Options::default() };
    for (line, what) in [
        ("{\"k\": 1", "line 3: a JSON object is expected"),
        ("[1, 2]", "line 3: a JSON object is expected"),
        ("{\"k\": 01}", "line 3: a JSON object is expected"),
        ("{\"k\": 1, \"k\": 2}", "line 3: a member's name occurs twice"),
        ("{\"k\": \"\\ud800\"}", "line 3: a text has half a character"),
        ("{\"k\": 1} {\"k\": 2}", "line 3: a JSON object is expected"),
    ] {
        let path = folder.file(format!("{{\"k\": \"secret\"}}\n\n{line}\n"));
        let error = read(&path, "k", options).err().unwrap_or_else(|| panic!("{line}")).to_string();
        assert!(error.contains(what) && error.contains("JSON lines") && !error.contains("secret"), "{error}");
    }
    let path = folder.file(format!("{{\"k\": 1}}\n{{\"k\": \"{}\"}}\n", "x".repeat(1 << 17)));
    let error = read(&path, "k", options).err().unwrap();
    assert!(matches!(error, Error::LongRow { place: Place::Line(2), .. }), "{error}");
    let error = read(&folder.file(b"{\"k\": 1}\n{\"k\": \"Zo\xeb\"}\n"), "k", options).err().unwrap();
    assert!(matches!(error, Error::InvalidUtf8 { line: 2, .. }), "{error}");
    // An object in a CSV file's header is that.
    let (_, keys) = read(&folder.file("{k},n\na,1\n"), "{k}", options).unwrap();
    assert_eq!(keys.rows(), 1);
}

/// More rows than are written together, a first line longer than what a file is known by, packed.
#[test]
fn long_and_packed_lines_are_read() {
    let folder = Folder::new();
    let mut content = format!("{{\"k\": \"first\", \"x\": \"{}\"}}\n", "y".repeat(10_000));
    (0..20_000).for_each(|i| content += &format!("{{\"k\": {i}}}\n"));
    let (_, keys) =
        read(&folder.file(zstd::encode_all(content.as_bytes(), 3).unwrap()), "k", Options::default())
            .unwrap();
    assert_eq!((keys.rows(), keys.elements().len()), (20_001, 20_001));
}

/// Decimals become numbers of a workbook as far as it holds their digits, like those of Parquet.
#[test]
fn decimals_are_numbers_of_a_workbook() {
    let folder = Folder::new();
    let lines = "{\"k\":\"a\",\"short\":1.50,\"long\":12345678901234567890.25}\n\
                 {\"k\":\"b\",\"short\":-0.001,\"long\":0.5}\n{\"k\":\"c\",\"short\":7,\"long\":null}\n";
    let (source, keys) = read(&folder.file(lines), "k", Options::default()).unwrap();
    let mut book = Vec::new();
    source.write_matches(&keys, &[0, 1, 2], Path::new("o.xlsx"), &mut book).unwrap();
    let path = folder.0.path().join("o.xlsx");
    std::fs::write(&path, book).unwrap();
    let (source, keys) = read(&path, "k", Options::default()).unwrap();
    let (schema, _) = source.read_whole().unwrap();
    let kinds: Vec<String> = schema.fields().iter().map(|field| field.data_type().to_string()).collect();
    assert_eq!(kinds, ["LargeUtf8", "Float64", "LargeUtf8"]);
    let mut out = Vec::new();
    source.write_matches(&keys, &[0, 1, 2], Path::new("o.csv"), &mut out).unwrap();
    let wanted = "k,short,long\na,1.5,12345678901234567890.25\nb,-0.001,0.5\nc,7.0,\n";
    assert_eq!(String::from_utf8(out).unwrap(), wanted);
}
