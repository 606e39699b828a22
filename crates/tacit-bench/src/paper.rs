//! `tacit bench paper NAME`: a table of a paper measured again, at its sizes and over its links, our figure
//! beside its own.

mod ot_extension;
mod roted;
mod wmk17;

use super::measured;
use super::record::Record;
use crate::Context;
use clap::Args as _;
use serde_json::json;
use std::collections::HashMap;
use tacit::catalogue::{Entry, find};
use tacit::crypto::near::one_of;
use tacit::crypto::text::counted;
use tacit::{Error, Result};

/// A table of a paper, measured again.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The table, or all; without it, the tables that there are
    name: Option<String>,
    /// Fewer runs, smaller sizes where cost is linear, and no row that the paper itself took long for
    #[arg(long)]
    quick: bool,
    /// Measured runs of each row
    #[arg(long, value_name = "R", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
}

/// What of a result stands beside the paper's figure.
#[derive(Clone, PartialEq, Debug)]
enum Figure {
    /// The runs without the setup: cost is linear in the count.
    Run,
    /// Setup and one run.
    Total,
    /// The setup alone.
    Setup,
    /// Setup, and what of a run passes before an input is needed.
    Offline,
    /// The rest of a run.
    Online,
    /// Computing time of both parties together, for one item.
    BothPerItem,
    /// Nanoseconds of one item.
    PerItem,
    /// Nanoseconds of one item beyond those of this command line.
    Beyond(String),
    /// The most memory of the party that began the benchmark, in MiB, or of the other.
    Memory { other: bool },
    /// Bytes of both directions together, the setup left out.
    Bytes,
    /// The same in bits, of one item.
    BitsPerItem,
    /// Bytes of the setup, both directions together.
    SetupBytes,
    /// Setup and one run in nanoseconds of an AND gate, of which the paper's circuit has so many.
    PerGate(u64),
    /// Setup and one run, and the paper's bytes of both directions.
    TotalAndBytes(u64),
    /// The runs without the setup, brought to this count.
    Scaled(u64),
    /// Microseconds that one more of something takes: the slope of the line through the row's own size and
    /// these command lines with theirs.
    Slope { first: f64, points: Vec<(String, f64)> },
}

struct Row {
    label: String,
    /// The words after `tacit bench`, without the count; before them `NAME=VALUE` for the environment.
    words: String,
    count: u64,
    figure: Figure,
    /// The paper's, in milliseconds unless the figure has a unit of its own.
    paper: f64,
}

struct Table {
    name: &'static str,
    title: &'static str,
    /// What it is a table of; it is offered once the command has this benchmark with this protocol.
    needs: (&'static str, &'static Entry),
    rows: fn() -> Vec<Row>,
    /// How our setting differs.
    note: &'static str,
}

/// Milliseconds above which `--quick` leaves a row of fixed size out.
const QUICK_MS: f64 = 2_500.0;
/// Milliseconds of the paper's from which one measured run must do.
const LONG_MS: f64 = 20_000.0;
/// Links between others of the same table, which `--quick` leaves out.
const QUICK_LEAVES_OUT: [&str; 3] = ["--link 50/0.1", "--link 500/0.1", "--link 5000/0.1"];
/// By how much `--quick` divides the count of a row whose cost is linear in it: not at all where correlations are
/// made many at a time and parameters follow the count.
fn quick_divisor(words: &str) -> u64 {
    let said = words.split(' ').skip_while(|word| *word != "--protocol").nth(1);
    if said.and_then(find).is_some_and(super::ot::makes_many_at_once) || words.starts_with("lpn") {
        1
    } else {
        32
    }
}

/// Whether this command has a benchmark `what` of `protocol`.
fn is_there(what: &str, protocol: &str) -> bool {
    match what {
        "ot" => tacit::ot::names().contains(&protocol),
        "base-ot" => crate::base::base_ot(Some(protocol), tacit::Security::SemiHonest).is_ok(),
        _ => {
            let command = crate::Args::augment_args(clap::Command::new("bench"));
            let option = command
                .find_subcommand(what)
                .and_then(|c| c.get_arguments().find(|a| a.get_long() == Some("protocol")));
            option.is_some_and(|o| o.get_possible_values().iter().any(|value| value.matches(protocol, false)))
        }
    }
}

fn tables() -> impl Iterator<Item = &'static Table> {
    [ot_extension::TABLES, roted::TABLES, wmk17::TABLES]
        .into_iter()
        .flatten()
        .filter(|table| is_there(table.needs.0, table.needs.1.name))
}

/// Title and note of the table of this name.
pub(crate) fn about(name: &str) -> Option<(&'static str, &'static str)> {
    let all = [ot_extension::TABLES, roted::TABLES, wmk17::TABLES].into_iter().flatten();
    all.into_iter().find(|table| table.name == name).map(|table| (table.title, table.note))
}

pub(crate) fn run(args: Args, context: &Context) -> Result<()> {
    let Some(name) = &args.name else {
        return tables().try_for_each(|table| {
            context.result(
                &json!({"table": table.name, "title": table.title}),
                &format!("{:<18} {}", table.name, table.title),
            )
        });
    };
    let chosen: Vec<&Table> = tables().filter(|table| name == "all" || name == table.name).collect();
    if chosen.is_empty() {
        let known: Vec<&str> = tables().map(|table| table.name).collect();
        return Err(Error::Usage(format!("there is no table `{name}`; {}, or all", one_of(name, known))));
    }
    let mut results = Results::default();
    let mut failed = Vec::new();
    for table in chosen {
        if !context.json {
            let head = format!(
                "{}\n  ({})\n  {:>12} {:>12} {:>8}",
                table.title, table.note, "paper", "ours", "ratio"
            );
            context.result(&json!(null), &head)?;
        }
        let mut left_out = 0;
        for row in (table.rows)() {
            match words(&row, &args) {
                Some(words) => {
                    let measured = results.take(words).and_then(|record| {
                        let more = |words: &str| results.take(full(words, &row, &args));
                        Ok((ours(&row, &record, args.quick, more)?, record))
                    });
                    match measured {
                        Ok((ours, record)) => line(table, &row, &record, ours, context)?,
                        // The other rows are worth having.
                        Err(error) => failed.push(format!("{}, {}: {error}", table.name, row.label)),
                    }
                }
                None => left_out += 1,
            }
        }
        if left_out > 0 {
            context.note(&format!(
                "{}: {left_out} left out by --quick",
                table.name,
                left_out = counted(left_out, "row")
            ));
        }
    }
    match failed.first() {
        None => Ok(()),
        Some(first) => Err(Error::Other(format!(
            "{} could not be measured, the first being {first}",
            counted(failed.len(), "row")
        ))),
    }
}

/// What was measured already: rows may share a command line.
#[derive(Default)]
struct Results(HashMap<Vec<String>, Record>);

impl Results {
    fn take(&mut self, words: Vec<String>) -> Result<Record> {
        if let Some(known) = self.0.get(&words) {
            return Ok(known.clone());
        }
        let record = measured(&words)?;
        self.0.insert(words, record.clone());
        Ok(record)
    }
}

/// The command line of a row; `None` for one that is left out.
fn words(row: &Row, args: &Args) -> Option<Vec<String>> {
    let words: Vec<&str> = row.words.split(' ').skip_while(|word| word.contains('=')).collect();
    let protocol = words.iter().position(|w| *w == "--protocol").and_then(|at| words.get(at + 1));
    if !protocol.is_none_or(|p| is_there(words[0], p) || words[0] == "psi") {
        return None;
    }
    let fixed = matches!(
        row.figure,
        Figure::Total
            | Figure::Setup
            | Figure::Offline
            | Figure::Online
            | Figure::PerGate(_)
            | Figure::BothPerItem
            | Figure::TotalAndBytes(_)
            | Figure::Scaled(_)
    );
    // Of circuits by the row, a few rows stand for all.
    let long = fixed && row.paper > QUICK_MS && !row.words.contains("--rows");
    let large = row.figure == Figure::Bytes && row.count > 1_000_000;
    let between = QUICK_LEAVES_OUT.iter().any(|link| row.words.ends_with(link))
        || row.count == 100_000 && row.figure == Figure::Total;
    let leave = args.quick && (long || large || between);
    (!leave).then(|| full(&row.words, row, args))
}

/// A command line with count and repeats.
fn full(words: &str, row: &Row, args: &Args) -> Vec<String> {
    let mut words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    if row.count > 0 {
        let linear = args.quick && matches!(row.figure, Figure::Run | Figure::PerItem | Figure::Beyond(_));
        let count = if linear { row.count / quick_divisor(&row.words) } else { row.count };
        words.extend(["--count".into(), count.to_string()]);
    }
    let fixed = matches!(row.figure, Figure::TotalAndBytes(_) | Figure::Scaled(_));
    let repeat = if args.quick || fixed && row.paper > LONG_MS { 1 } else { args.repeat };
    words.extend(["--repeat".into(), repeat.to_string()]);
    words
}

/// Our figure in the paper's unit, at the paper's size; `measure` takes further command lines.
fn ours(
    row: &Row,
    record: &Record,
    quick: bool,
    mut measure: impl FnMut(&str) -> Result<Record>,
) -> Result<f64> {
    let count = record.count.max(1) as f64;
    Ok(match &row.figure {
        Figure::Run => record.wall_ms * row.count as f64 / count,
        Figure::Scaled(whole) => record.wall_ms * *whole as f64 / count,
        Figure::Total | Figure::TotalAndBytes(_) if record.name == "psi" => record.wall_ms,
        Figure::Total | Figure::TotalAndBytes(_) => record.setup_ms + record.wall_ms,
        Figure::Setup => record.setup_ms,
        Figure::Offline => record.setup_ms + record.offline_ms,
        Figure::Online => record.online_ms,
        Figure::BothPerItem => (record.cpu_ms_local + record.cpu_ms_peer) / count,
        Figure::Bytes => (record.bytes_sent + record.bytes_received) as f64,
        Figure::BitsPerItem => (record.bytes_sent + record.bytes_received) as f64 * 8.0 / count,
        Figure::SetupBytes => record.setup_bytes as f64,
        Figure::PerGate(_) => (record.setup_ms + record.wall_ms) * 1e6 / count,
        Figure::PerItem => record.ns_per_item,
        Figure::Beyond(words) => (record.ns_per_item - measure(words)?.ns_per_item).max(0.0),
        Figure::Memory { other } => {
            let peak = if *other { record.peak_rss_bytes_peer } else { record.peak_rss_bytes_local };
            peak as f64 / (1 << 20) as f64
        }
        Figure::Slope { first, points } => {
            let mut line = vec![(*first, record.wall_ms)];
            for (words, size) in points.iter().take(if quick { 1 } else { points.len() }) {
                line.push((*size, measure(words)?.wall_ms));
            }
            slope(&line) * 1e3
        }
    })
}

/// The slope of the line of least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let both: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    both / points.iter().map(|p| (p.0 - x) * (p.0 - x)).sum::<f64>()
}

fn line(table: &Table, row: &Row, record: &Record, ours: f64, context: &Context) -> Result<()> {
    let unit = match row.figure {
        Figure::Bytes | Figure::SetupBytes => "bytes",
        Figure::BitsPerItem => "bits",
        Figure::PerItem | Figure::Beyond(_) | Figure::PerGate(_) => "ns",
        Figure::Memory { .. } => "MiB",
        Figure::Slope { .. } => "µs",
        _ => "ms",
    };
    let paper = match row.figure {
        Figure::PerGate(gates) => row.paper * 1e6 / gates as f64,
        _ => row.paper,
    };
    show(table, &row.label, record, (paper, ours, unit), context)?;
    if let Figure::TotalAndBytes(paper) = row.figure {
        let bytes = (record.bytes_sent + record.bytes_received) as f64;
        show(table, &row.label, record, (paper as f64, bytes, "bytes"), context)?;
    }
    Ok(())
}

fn show(
    table: &Table,
    label: &str,
    record: &Record,
    (paper, ours, unit): (f64, f64, &str),
    context: &Context,
) -> Result<()> {
    let mut record = record.clone();
    record.more.insert("table".into(), json!(table.name));
    record.more.insert("row".into(), json!(label));
    record.more.insert("paper".into(), json!(paper));
    record.more.insert("ours".into(), json!(ours));
    record.more.insert("unit".into(), json!(unit));
    let object = serde_json::to_value(&record).map_err(|e| Error::Other(e.to_string()))?;
    let ratio = match ours > 0.0 {
        true => format!("{:>7.2}x", paper / ours),
        // A difference of two times that is within their noise.
        false => format!("{:>8}", "none"),
    };
    let text = format!("  {paper:>12.3} {ours:>12.3} {ratio} {unit:<6} {label}{}", conditions(&record));
    context.result(&object, &text)
}

/// What a figure must not be read without: bits of security where they are not 128, and of circuits the AND gates.
fn conditions(record: &Record) -> String {
    let mut said = Vec::new();
    if record.name == "eval" {
        said.push(format!("{} in ours", counted(record.count, "AND gate")));
    }
    if let Some(bits) = record.more.get("security_bits").and_then(|bits| bits.as_f64()) {
        said.push(counted(bits as u64, "bit"));
    }
    if said.is_empty() { String::new() } else { format!(" [{}]", said.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit::catalogue::ROTED;

    #[test]
    fn only_tables_of_protocols_that_exist_are_offered_and_every_row_has_a_figure() {
        for table in tables() {
            let runnable = |row: &Row| {
                let words: Vec<&str> = row.words.split(' ').collect();
                words
                    .iter()
                    .position(|w| *w == "--protocol")
                    .is_some_and(|at| words[at + 1] == table.needs.1.name)
            };
            let rows = (table.rows)();
            assert!(rows.iter().all(|row| row.paper > 0.0), "{}", table.name);
            assert!(rows.iter().any(runnable) || std::ptr::eq(table.needs.1, &ROTED), "{}", table.name);
        }
        assert!(is_there("ot", "kos") && is_there("base-ot", "roted") && is_there("eval", "yao"));
        assert!(!is_there("ot", "none such") && !is_there("eval", "none such"));
        assert!(!is_there("none such", "yao"));
    }

    #[test]
    fn every_table_of_the_papers_is_there_and_quick_leaves_none_empty() {
        let named: Vec<&str> = tables().map(|table| table.name).collect();
        for name in [
            "kos15-table1",
            "kos15-table2",
            "bcgikrs19-table2",
            "bcgikrs19-table3",
            "ferret-table3",
            "ferret-table4",
            "ferret-table5",
            "wmk17-table4",
            "wmk17-table5",
            "wmk17-table7",
            "wmk17-table8",
            "roted-table2",
            "roted-table3",
            "roted-table4",
            "roted-table5",
        ] {
            assert!(named.contains(&name), "{name}");
        }
        let quick = Args { name: None, quick: true, repeat: 3 };
        for table in tables() {
            let rows = (table.rows)();
            assert!(rows.iter().any(|row| words(row, &quick).is_some()), "{}", table.name);
            let labels: std::collections::HashSet<_> = rows.iter().map(|row| &row.label).collect();
            assert_eq!(labels.len(), rows.len(), "{}: two rows of one name", table.name);
        }
    }

    #[test]
    fn quick_divides_only_what_is_linear_in_the_count() {
        for (words, divisor) in [
            ("ot --protocol kos --kind rot --link lan", 32),
            ("ot --protocol iknp --kind rot --link lan", 32),
            ("garble aes128 --only garble", 32),
            ("ot --protocol silent --code quasi-cyclic --kind cot --link lan", 1),
            ("ot --protocol ferret --kind cot --link lan", 1),
            ("ot --protocol ferret-uni --kind cot --link lan", 1),
            ("lpn --set paper", 1),
        ] {
            assert_eq!(quick_divisor(words), divisor, "{words}");
        }
    }

    #[test]
    fn rows_say_gates_and_bits() {
        let eval = Record { name: "eval".into(), count: 6400, ..Record::default() };
        assert_eq!(conditions(&eval), " [6400 AND gates in ours]");
        let mut ot = Record { name: "ot".into(), ..Record::default() };
        assert_eq!(conditions(&ot), "");
        ot.more.insert("security_bits".into(), json!(136.0));
        assert_eq!(conditions(&ot), " [136 bits]");
    }

    #[test]
    fn figures_come_out_at_the_size_and_in_the_unit_of_the_paper() {
        let record = Record {
            count: 1000,
            wall_ms: 2.0,
            setup_ms: 5.0,
            offline_ms: 1.5,
            online_ms: 0.5,
            cpu_ms_local: 1.0,
            cpu_ms_peer: 3.0,
            bytes_sent: 7,
            bytes_received: 8,
            setup_bytes: 77,
            ns_per_item: 9.0,
            peak_rss_bytes_local: 2 << 20,
            peak_rss_bytes_peer: 3 << 20,
            ..Record::default()
        };
        let row =
            |figure| Row { label: String::new(), words: String::new(), count: 10_000, figure, paper: 1.0 };
        let twice = |words: &str| {
            assert_eq!(words, "larger");
            Ok(Record { wall_ms: 5.0, ns_per_item: 4.0, ..record.clone() })
        };
        let of = |figure| ours(&row(figure), &record, false, twice).unwrap();
        assert_eq!(of(Figure::Run), 20.0);
        assert_eq!(of(Figure::Total), 7.0);
        assert_eq!(of(Figure::Setup), 5.0);
        assert_eq!((of(Figure::Offline), of(Figure::Online)), (6.5, 0.5));
        assert_eq!(of(Figure::BothPerItem), 0.004);
        assert_eq!(of(Figure::Bytes), 15.0);
        assert_eq!((of(Figure::BitsPerItem), of(Figure::SetupBytes)), (0.12, 77.0));
        assert_eq!(of(Figure::PerGate(1)), 7000.0);
        assert_eq!((of(Figure::PerItem), of(Figure::Beyond("larger".into()))), (9.0, 9.0 - 4.0));
        assert_eq!((of(Figure::Memory { other: false }), of(Figure::Memory { other: true })), (2.0, 3.0));
        assert_eq!(of(Figure::TotalAndBytes(7)), 7.0);
        assert_eq!(of(Figure::Scaled(3000)), 6.0);
        assert_eq!(of(Figure::Slope { first: 100.0, points: vec![("larger".into(), 400.0)] }), 10.0);
        assert_eq!(slope(&[(0.0, 1.0), (1.0, 2.0), (2.0, 6.0)]), 2.5);
    }
}
