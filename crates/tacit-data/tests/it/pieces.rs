//! Large files, which workers read in pieces: keys, counts and faults are those of one reader.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use tacit_crypto::workers;
use tacit_data::csv::{EmptyKeys, MaxRow, Options, Quote};
use tacit_data::keys::{Longest, Refusal};
use tacit_data::records::{Element, KeySpec, Normalisation};
use tacit_data::table::Source;

/// Everything that a reading told: elements, each row's, refusals, words for nothing and the longest cells; or the
/// fault.
type Told = Result<(Vec<Element>, Vec<Option<usize>>, Vec<(Refusal, u64)>, String, Longest), String>;

fn read(path: &Path, options: Options, threads: usize) -> Told {
    workers::limited(threads, || {
        let spec = KeySpec::text(vec!["k".to_owned()], Normalisation::default());
        let source = Source::open(path, spec, options).map_err(|error| error.to_string())?;
        let keys = source.read_keys(|_| ()).map_err(|error| error.to_string())?;
        let rows = (0..keys.rows()).map(|row| keys.element_of(row)).collect();
        let tally = keys.tally();
        assert_eq!(tally.rows, keys.rows());
        let refused = tally.refused.iter().map(|(refusal, rows)| (*refusal, *rows)).collect();
        Ok((keys.elements().to_vec(), rows, refused, format!("{:?}", tally.signs), tally.longest))
    })
}

/// The row of this number: some with quotes, lines within cells, other ends, words for nothing or no key; some keys
/// come twice.
fn row(number: usize) -> String {
    match number % 97 {
        3 => format!("\"key {number}\",\"a \"\"cell\"\"\nof {} lines\n\"\r\n", number % 5),
        5 => format!("\" \",{number}\n"),
        7 => "null,x\n".to_owned(),
        11 => format!("key {},again\n", number - 11),
        13 => "\n".to_owned() + "ä,\"\"\n",
        _ => format!("key {number},some more text of row {number}\n"),
    }
}

fn table(rows: usize, mut odd: impl FnMut(usize) -> Option<&'static str>) -> String {
    let mut text = "k,other\n".to_owned();
    for number in 0..rows {
        match odd(number) {
            Some(odd) => text += odd,
            None => write!(text, "{}", row(number)).unwrap(),
        }
    }
    text
}

const ROWS: usize = 90_000;

fn check(name: &str, text: &[u8], options: Options) -> Told {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    let told = read(&path, options, 1);
    for threads in [2, 3, 8] {
        assert!(read(&path, options, threads) == told, "{name}, {threads} threads");
    }
    told
}

#[test]
fn many_workers_read_what_one_reads() {
    let whole = table(ROWS, |_| None);
    assert!(whole.len() > 3 << 20, "no pieces");
    let (elements, rows, refused, signs, longest) =
        check("t.csv", whole.as_bytes(), Options::default()).unwrap();
    let of_kind = |kind| (0..ROWS).filter(|number| number % 97 == kind).count() as u64;
    assert_eq!(rows.len(), ROWS);
    assert_eq!(refused.iter().map(|(_, rows)| *rows).sum::<u64>(), of_kind(5));
    assert_eq!(elements.len() as u64, ROWS as u64 - of_kind(5) - of_kind(7) - of_kind(11) - of_kind(13) + 2);
    assert!(signs.contains(&of_kind(7).to_string()), "{signs}");
    assert_eq!((longest.bytes, longest.lines, longest.line, longest.lines_at), (20, 3, 5, 5));

    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    packed.write_all(whole.as_bytes()).unwrap();
    let again = check("t.csv.gz", &packed.finish().unwrap(), Options::default()).unwrap();
    assert!(again.0 == elements && again.1 == rows);
    // Without quotes every line is a row, so some are too short.
    let bare = Options { quote: Quote::None, ..Options::default() };
    assert!(check("bare.csv", whole.as_bytes(), bare).unwrap_err().contains("line"));
    let carriage_returns = whole.replace("\r\n", "\n").replace('\n', "\r");
    assert!(check("mac.csv", carriage_returns.as_bytes(), Options::default()).unwrap().0 == elements);
}

#[test]
fn a_fault_is_told_with_the_line_that_one_reader_tells() {
    let refuse = Options { empty_keys: EmptyKeys::Refuse, ..Options::default() };
    let short = Options { max_row: MaxRow::new(200), ..Options::default() };
    let long = "\"a\n".to_owned() + &"x".repeat(300) + "\",y\n";
    let long: &'static str = Box::leak(long.into_boxed_str());
    let faults: [(&str, Options, &str); 7] = [
        ("a,b,c\n", Options::default(), "fields"),
        ("a\"b,c\n", Options::default(), "quote"),
        ("\"a\"b,c\n", Options::default(), "quote"),
        ("\"a,c\n", Options::default(), "quote"),
        ("a,\"\n", Options::default(), "quote"),
        (",\n", refuse, "empty"),
        (long, short, "longer rows"),
    ];
    for at in [10, 40_000, ROWS - 1] {
        for (odd, options, words) in faults {
            // The table's own empty keys would be the first ones that are refused.
            let text = table(ROWS, |number| match number {
                number if number == at => Some(odd),
                number if number % 97 == 5 => Some("a,b\n"),
                _ => None,
            });
            let fault = check("t.csv", text.as_bytes(), options).unwrap_err();
            assert!(fault.contains("line") && fault.contains(words), "{odd:?}: {fault}");
        }
        let mut bytes = table(ROWS, |number| (number == at).then_some("a?,b\n")).into_bytes();
        let odd = bytes.windows(2).position(|pair| pair == b"a?").unwrap();
        bytes[odd + 1] = 0xff;
        assert!(check("t.csv", &bytes, Options::default()).unwrap_err().contains("UTF-8"));
    }
}
