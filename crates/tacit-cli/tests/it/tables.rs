//! `tacit eval --batch` on typed tables, as a user runs it: by both malicious protocols, from and to every
//! format, and what is said of a wrong cell.

use crate::common::{Bench, Said, free_port};
use std::path::Path;
use tacit::data::csv::{Error, Options};
use tacit::data::values::{Column, Kind, Table, Value};

const OFFER: &str = "\
enum Plan { Basic, Paid(u8) }
struct Offer { price: i32, plan: Plan, active: bool }
struct Answer { left: i32, fits: bool, plan: Plan }
pub fn main(offer: Offer, limit: i32) -> Answer {
    let months = match offer.plan { Plan::Basic => 1i32, Plan::Paid(n) => n as i32 };
    let left = limit - offer.price * months;
    Answer { left, fits: (left >= 0i32) & offer.active, plan: offer.plan }
}
pub fn pair(x: i32, y: i32) -> (u8, (bool, [u8; 2])) { (7u8, (x < y, [1u8, 2u8])) }
";

/// A typed file of these columns, called `name`: made of a CSV file of row numbers.
fn typed(bench: &Bench, name: &str, columns: &[(&str, Kind, Vec<Value>)]) {
    let rows = columns[0].2.len();
    let numbers: String = (0..rows).map(|row| format!("{row}\n")).collect();
    let seed = bench.write("rows.csv", format!("id\n{numbers}"));
    let table = Table::open(&seed, Options::default()).unwrap();
    let read = table.read(&table.at([0]).unwrap(), |_, _| Ok::<_, Error>(())).unwrap();
    let more: Vec<(String, Kind)> = columns.iter().map(|(name, kind, _)| (name.to_string(), *kind)).collect();
    let cells = |row: u64| columns.iter().map(|(_, _, cells)| cells[row as usize].clone()).collect();
    let mut out = Vec::new();
    table.write_extended(&read, &more, cells, Path::new(name), &mut out).unwrap();
    bench.write(name, out);
}

/// These columns of a file as text, row after row; a row with a null as the error's words.
fn read(bench: &Bench, name: &str, columns: &[&str]) -> Vec<Vec<String>> {
    let table = Table::open(&bench.path(name), Options::default()).unwrap();
    let columns: Vec<Column> = columns.iter().map(|name| Column::parse(name)).collect();
    let mut rows = Vec::new();
    let wanted = table.find(&columns).unwrap_or_else(|error| panic!("{error}: {:?}", table.names()));
    let result = table.read(&wanted, |_, cells| {
        rows.push(cells.iter().map(|cell| cell.to_string()).collect());
        Ok::<_, Error>(())
    });
    if let Err(error) = result {
        rows.push(vec![error.to_string()]);
    }
    rows
}

fn integers(values: &[i128]) -> Vec<Value> {
    values.iter().map(|value| Value::Integer(*value)).collect()
}

const I32: Kind = Kind::Integer { bits: 32, signed: true };

fn offers(bench: &Bench, name: &str) {
    let plans = ["Basic", "Plan::Paid(12)", "Paid(1)"].map(|plan| Value::Text(plan.to_owned()));
    let active = [true, true, false].map(Value::Bool);
    typed(
        bench,
        name,
        &[
            ("price", I32, integers(&[30, 10, -7])),
            ("plan", Kind::Text, plans.to_vec()),
            ("active", Kind::Bool, active.to_vec()),
        ],
    );
}

/// Runs `function` on both sides' tables.
fn both(bench: &Bench, function: &str, more: &[&str], garbler: &[&str], evaluator: &[&str]) -> (Said, Said) {
    let address = format!("127.0.0.1:{}", free_port());
    let side = |mode, role, key, peer| {
        ["eval", function, "--batch", mode, &address, "--role", role, "--identity", key, "--peer", peer]
    };
    let ours = side("--listen", "garbler", "alice.key", "bob.pub");
    let theirs = side("--connect", "evaluator", "bob.key", "alice.pub");
    bench.run_both(&[&ours[..], more, garbler].concat(), &[&theirs[..], more, evaluator].concat())
}

#[test]
fn a_programs_parts_are_typed_columns_in_and_out_by_both_malicious_protocols() {
    let bench = Bench::with_keys();
    bench.write("a.garble.rs", OFFER);
    offers(&bench, "offers.parquet");
    bench.write("limits.csv", "limit\n25\n121\n7\n");
    for protocol in ["wmk17", "authenticated"] {
        let more = ["--protocol", protocol, "--overwrite"];
        // Columns are found by the names of parameters and of their fields: `id` is none of them.
        let ours = ["--input", "offers.parquet", "--output", "out.parquet"];
        let theirs = ["--input", "limits.csv", "--output", "out.arrow"];
        let (g, e) = both(&bench, "a.garble.rs", &more, &ours, &theirs);
        g.success();
        e.success();
        let expected = [
            ["-5", "false", "Plan::Basic"],
            ["1", "true", "Plan::Paid(12)"],
            ["14", "false", "Plan::Paid(1)"],
        ];
        assert_eq!(read(&bench, "out.parquet", &["left", "fits", "plan_2"]), expected, "{protocol}");
        assert_eq!(read(&bench, "out.arrow", &["left", "fits", "plan"]), expected, "{protocol}");
        // The caller's own stand untouched in front.
        assert_eq!(
            read(&bench, "out.parquet", &["id", "price", "plan", "active"])[1],
            ["1", "10", "Plan::Paid(12)", "true"]
        );
        assert_eq!(read(&bench, "out.arrow", &["limit"])[2], ["7"]);
        // No fault happened, and the column that would tell is there.
        assert!(read(&bench, "out.parquet", &["fault"])[0][0].contains("row 1: column `fault` has no value"));
    }
}

#[test]
fn a_csv_file_gets_the_parts_as_text_and_a_fault_stands_in_its_row_alone() {
    let bench = Bench::with_keys();
    bench.write("a.garble.rs", OFFER);
    bench.write("offers.csv", "plan;price;id;active\nBasic;30;a;True\nPaid(2);2000000000;b;FALSE\n");
    bench.write("limits.csv", "limit\n25\n0\n");
    let more = ["--security", "semi-honest", "--overwrite"];
    let ours = ["--input", "offers.csv", "--output", "out.csv"];
    let theirs = ["--input", "limits.csv", "--output", "out.parquet"];
    let (g, e) = both(&bench, "a.garble.rs", &more, &ours, &theirs);
    assert!(g.err.contains("note: overflow in 1 of 2 rows"), "{g:?}");
    g.success();
    e.success();
    let expected = "plan;price;id;active;fits;left;plan_2\n\
        Basic;30;a;True;false;-5;Plan::Basic\n\
        Paid(2);2000000000;b;FALSE;fault: overflow;fault: overflow;fault: overflow\n";
    assert_eq!(bench.read("out.csv"), expected);
    assert!(read(&bench, "out.parquet", &["left"])[1][0].contains("row 2: column `left` has no value"));
    let pairs = ["--security", "semi-honest", "--function", "pair", "--overwrite"];
    let ours = ["--input", "limits.csv", "--columns", "limit", "--output", "out.csv"];
    let theirs = ["--input", "limits.csv", "--columns", "limit", "--output", "out.parquet"];
    let (g, e) = both(&bench, "a.garble.rs", &pairs, &ours, &theirs);
    g.success();
    e.success();
    assert_eq!(
        bench.read("out.csv"),
        "limit,result.0,result.1.0,result.1.1\n25,7,false,\"[1, 2]\"\n0,7,false,\"[1, 2]\"\n"
    );
    assert_eq!(
        read(&bench, "out.parquet", &["result.0", "result.1.0", "result.1.1"])[0],
        ["7", "false", "[1, 2]"]
    );
}

#[test]
fn a_functions_outputs_are_integers_and_truth_values() {
    let bench = Bench::with_keys();
    typed(
        &bench,
        "ours.parquet",
        &[("n", Kind::Integer { bits: 8, signed: true }, integers(&[100, -128, 5]))],
    );
    typed(&bench, "theirs.arrow", &[("m", Kind::Integer { bits: 16, signed: true }, integers(&[27, -1, 2]))]);
    bench.write("days.csv", "day;cents\n1970-01-11;0.5\n2024-02-29;12.00\n1970-01-01;0\n");
    let more = ["--security", "semi-honest", "--overwrite"];
    let ours = ["--input", "ours.parquet", "--columns", "n", "--output", "out.parquet"];
    let theirs = ["--input", "theirs.arrow", "--columns", "m", "--output", "out.csv", "--format", "decimal"];
    let (g, e) = both(&bench, "signed-add8", &more, &ours, &theirs);
    g.success();
    e.success();
    let expected = [["127", "false"], ["127", "true"], ["7", "false"]];
    assert_eq!(read(&bench, "out.parquet", &["result", "overflow"]), expected);
    assert_eq!(bench.read("out.csv"), "id,m,result,overflow\n0,27,127,0\n1,-1,127,1\n2,2,7,0\n");
    // Days and hundredths of text, and truth values as bits.
    let ours = ["--input", "days.csv", "--columns", "day:date", "--output", "out.parquet"];
    let theirs = ["--input", "days.csv", "--columns", "cents:decimal2", "--output", "out.arrow"];
    let (g, e) = both(&bench, "add32", &more, &ours, &theirs);
    g.success();
    e.success();
    for name in ["out.parquet", "out.arrow"] {
        assert_eq!(read(&bench, name, &["result"]), [["60"], ["20982"], ["0"]], "{name}");
    }
    typed(&bench, "bits.parquet", &[("b", Kind::Bool, [true, false, true].map(Value::Bool).to_vec())]);
    let bits = ["--input", "bits.parquet", "--columns", "b"];
    let (g, e) = both(&bench, "eq1", &more, &[&bits[..], &["--output", "out.csv"]].concat(), &bits);
    g.success();
    assert_eq!(e.success(), "0x1\n0x1\n0x1\n");
    assert_eq!(bench.read("out.csv"), "id,b,result\n0,true,0x1\n1,false,0x1\n2,true,0x1\n");
}

#[test]
fn a_wrong_cell_ends_with_its_row_and_never_shows() {
    let bench = Bench::with_keys();
    bench.write("a.garble.rs", OFFER);
    let peer =
        ["--listen", "127.0.0.1:1", "--identity", "alice.key", "--peer", "bob.pub", "--role", "garbler"];
    let refused = |function: &str, more: &[&str], words: &[&str]| {
        let said = bench.run(&[&["eval", function, "--batch"], &peer[..], more].concat());
        said.fails_with(3, words);
        for cell in ["4294967296", "Premium", "2023-02-30", "1.234"] {
            assert!(!said.err.contains(cell), "a cell shows: {said:?}");
        }
    };
    let null = vec![Value::Integer(1), Value::Null];
    let large = integers(&[0, 4_294_967_296]);
    let wide = Kind::Integer { bits: 64, signed: true };
    let words = ["Basic", "Premium"].map(|word| Value::Text(word.to_owned())).to_vec();
    let yes = [true, false].map(Value::Bool).to_vec();
    typed(
        &bench,
        "t.parquet",
        &[("null", I32, null), ("large", wide, large), ("plan", Kind::Text, words), ("yes", Kind::Bool, yes)],
    );
    let input = |columns| ["--input", "t.parquet", "--columns", columns];
    refused("add32", &input("null"), &["t.parquet, row 2", "`null`", "no value"]);
    refused("add32", &input("large"), &["t.parquet, row 2", "`large`", "32 bits"]);
    refused("add32", &input("yes"), &["t.parquet, row 1", "`yes`", "32 bits"]);
    refused("add32", &input("plan"), &["t.parquet, row 1", "`plan`", "32 bits"]);
    refused("add32", &input("nothing"), &["t.parquet", "`nothing`", "5 columns"]);
    let offer = ["--input", "t.parquet", "--columns", "yes,plan,id"];
    refused("a.garble.rs", &offer, &["t.parquet, row 2", "offer.plan", "Plan::Basic, Plan::Paid"]);
    bench.write("t.csv", "day,price\n2024-01-01,1\n2023-02-30,1.234\n");
    let input = |columns| ["--input", "t.csv", "--columns", columns];
    refused("add32", &input("day:date"), &["t.csv, line 3", "`day`", "day that exists"]);
    refused("add32", &input("price:decimal2"), &["t.csv, line 3", "`price`", "at most 2 digits"]);
    assert!(bench.leftovers().is_empty());
}
