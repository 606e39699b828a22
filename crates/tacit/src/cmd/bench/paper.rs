//! `tacit bench paper NAME`: a table of a paper measured again, at its sizes and over its links, our figure beside its own.

mod wmk17;

use super::measured;
use super::record::Record;
use crate::cli::Context;
use clap::CommandFactory;
use serde_json::json;
use std::collections::HashMap;
use tacit::{Error, Result};

/// A table of a paper, measured again.
#[derive(clap::Args)]
pub struct Args {
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
    /// Computing time of both parties together, for one item.
    BothPerItem,
    /// Bytes of both directions together, the setup left out.
    Bytes,
    /// Setup and one run, and the paper's bytes of both directions.
    TotalAndBytes(u64),
    /// The runs without the setup, brought to this count.
    Scaled(u64),
    /// Microseconds that one more of something takes: the slope of the line through the row's own size and these
    /// command lines with theirs.
    Slope { first: f64, points: Vec<(String, f64)> },
}

struct Row {
    label: String,
    /// The words after `tacit bench`, without the count.
    words: String,
    count: u64,
    figure: Figure,
    /// Milliseconds, or bytes.
    paper: f64,
}

struct Table {
    name: &'static str,
    title: &'static str,
    /// What it is a table of; it is offered once the command has this benchmark with this protocol.
    needs: (&'static str, &'static str),
    rows: fn() -> Vec<Row>,
    /// How our setting differs.
    note: &'static str,
}

/// Milliseconds above which `--quick` leaves a row of fixed size out.
const QUICK_MS: f64 = 2_500.0;
/// Milliseconds of the paper's from which one measured run must do.
const LONG_MS: f64 = 20_000.0;
/// By how much `--quick` divides the count of a row whose cost is linear.
const QUICK_DIVISOR: u64 = 32;

const KOS_TABLE_2: &[(&str, &str, &str, f64)] = &[
    ("iknp", "1", "lan", 9103.7),
    ("iknp", "1", "50/50", 36231.9),
    ("iknp", "8", "lan", 3325.8),
    ("iknp", "8", "50/50", 28441.0),
    ("kos", "1", "lan", 9558.9),
    ("kos", "1", "50/50", 36265.3),
    ("kos", "8", "lan", 3351.6),
    ("kos", "8", "50/50", 28456.9),
];

const FERRET_MBPS: [u32; 6] = [10, 50, 100, 500, 1000, 5000];
const FERRET_TABLE_3: &[(&str, &str, [f64; 6])] = &[
    ("iknp", "semi-honest", [128_308.0, 25_704.0, 12_885.0, 2_627.0, 1_345.0, 324.0]),
    ("kos", "malicious", [128_314.0, 25_736.0, 12_924.0, 2_647.0, 1_387.0, 344.0]),
    ("silent", "malicious", [2_113.0, 2_099.0, 2_091.0, 2_106.0, 2_083.0, 2_095.0]),
    ("ferret-uni", "malicious", [864.0, 325.0, 326.0, 318.0, 317.0, 317.0]),
    ("ferret", "malicious", [540.0, 220.0, 184.0, 182.0, 185.0, 185.0]),
];
const FERRET_TABLE_4: &[(&str, [f64; 6])] = &[
    ("ferret-uni", [1_166.0, 486.0, 485.0, 484.0, 485.0, 484.0]),
    ("ferret", [818.0, 184.0, 107.0, 42.0, 37.0, 32.0]),
];

const BCGIKRS_LINKS: [(&str, &str); 3] =
    [("10 Gbit/s", "10000/0"), ("100 Mbit/s, 40 ms", "100/40"), ("10 Mbit/s, 40 ms", "10/40")];
/// By protocol and threads; for each link the times at 10^7, 10^6, 10^5 and 10^4.
const BCGIKRS_TABLE_2: &[(&str, u16, [[f64; 4]; 3])] = &[
    (
        "silent",
        1,
        [[8765.0, 584.0, 141.0, 104.0], [9055.0, 828.0, 460.0, 423.0], [8929.0, 831.0, 467.0, 433.0]],
    ),
    (
        "iknp",
        1,
        [[573.0, 157.0, 108.0, 98.0], [15622.0, 2030.0, 613.0, 341.0], [129_011.0, 13285.0, 1672.0, 429.0]],
    ),
    (
        "kos",
        1,
        [[674.0, 170.0, 113.0, 106.0], [15741.0, 2088.0, 702.0, 433.0], [129_771.0, 13389.0, 1772.0, 518.0]],
    ),
];
const BCGIKRS_TABLE_3: &[(&str, [f64; 4])] = &[
    ("silent", [126_658.0, 98_754.0, 83_394.0, 57_806.0]),
    ("iknp", [160_056_360.0, 16_011_518.0, 1_655_784.0, 168_186.0]),
];

const TABLES: &[Table] = &[
    Table {
        name: "kos15-table2",
        title: "Keller, Orsini, Scholl 2015, table 2: 10^7 random OTs, base OTs not counted, one direction",
        needs: ("ot", "kos"),
        rows: || {
            KOS_TABLE_2
                .iter()
                .map(|(protocol, threads, link, ms)| Row {
                    label: format!("{protocol}, {threads} threads, {link}"),
                    words: format!("ot --protocol {protocol} --kind rot --threads {threads} --link {link}"),
                    count: 10_000_000,
                    figure: Figure::Run,
                    paper: *ms,
                })
                .collect()
        },
        note: "the paper's LAN is not specified (ours: 10 Gbit/s, 0.1 ms); its statistical parameter is 64, ours 40; bi-directional runs are not measured",
    },
    Table {
        name: "ferret-table3",
        title: "Yang, Weng, Lan, Zhang, Wang 2020, table 3: 10^7 correlated OTs, setup not counted",
        needs: ("ot", "ferret"),
        rows: || {
            let row = |protocol: &str, security: &str, mbps: u32, ms: f64| Row {
                label: format!("{protocol}, {security}, {mbps} Mbit/s"),
                words: format!("ot --protocol {protocol} --security {security} --kind cot --link {mbps}/0.1"),
                count: 10_000_000,
                figure: Figure::Run,
                paper: ms,
            };
            let rows = FERRET_TABLE_3.iter().flat_map(|(protocol, security, times)| {
                FERRET_MBPS.iter().zip(times).map(move |(mbps, ms)| row(protocol, security, *mbps, *ms))
            });
            rows.collect()
        },
        note: "the paper's one-way delay is not given; ours is 0.1 ms",
    },
    Table {
        name: "ferret-table4",
        title: "Yang, Weng, Lan, Zhang, Wang 2020, table 4: one-time setup, malicious",
        needs: ("ot", "ferret"),
        rows: || {
            let row = |protocol: &str, mbps: u32, ms: f64| Row {
                label: format!("{protocol}, {mbps} Mbit/s"),
                words: format!("ot --protocol {protocol} --security malicious --kind cot --link {mbps}/0.1"),
                count: 1000,
                figure: Figure::Setup,
                paper: ms,
            };
            let rows = FERRET_TABLE_4.iter().flat_map(|(protocol, times)| {
                FERRET_MBPS.iter().zip(times).map(move |(mbps, ms)| row(protocol, *mbps, *ms))
            });
            rows.collect()
        },
        note: "ours has the base OTs in it",
    },
    Table {
        name: "bcgikrs19-table2",
        title: "Boyle, Couteau, Gilboa, Ishai, Kohl, Rindal, Scholl 2019, table 2: n random OTs, base OTs counted, one thread",
        needs: ("ot", "silent"),
        rows: || {
            let mut rows = Vec::new();
            for (protocol, threads, times) in BCGIKRS_TABLE_2 {
                for ((named, link), times) in BCGIKRS_LINKS.iter().zip(times) {
                    for (exponent, ms) in [7u32, 6, 5, 4].into_iter().zip(times) {
                        rows.push(Row {
                            label: format!("{protocol}, 10^{exponent}, {named}"),
                            words: format!(
                                "ot --protocol {protocol} --kind rot --threads {threads} --link {link}"
                            ),
                            count: 10u64.pow(exponent),
                            figure: Figure::Total,
                            paper: *ms,
                        });
                    }
                }
            }
            rows
        },
        note: "the paper's base OTs are Naor–Pinkas in three messages",
    },
    Table {
        name: "bcgikrs19-table3",
        title: "Boyle, Couteau, Gilboa, Ishai, Kohl, Rindal, Scholl 2019, table 3: bytes of n random OTs",
        needs: ("ot", "silent"),
        rows: || {
            let row = |protocol: &str, exponent: u32, bytes: f64| Row {
                label: format!("{protocol}, 10^{exponent}"),
                words: format!("ot --protocol {protocol} --kind rot"),
                count: 10u64.pow(exponent),
                figure: Figure::Bytes,
                paper: bytes,
            };
            let rows = BCGIKRS_TABLE_3.iter().flat_map(|(protocol, bytes)| {
                [7u32, 6, 5, 4].into_iter().zip(bytes).map(move |(n, bytes)| row(protocol, n, *bytes))
            });
            rows.collect()
        },
        note: "the paper counts the base OTs, ours leaves out what all runs share",
    },
    Table {
        name: "roted-table3",
        title: "ROTed, table 3: one random OT, both parties' computing time (AVX2, Intel i9-10980XE)",
        needs: ("base-ot", "roted"),
        rows: || {
            vec![Row {
                label: "roted".into(),
                words: "base-ot --protocol roted".into(),
                count: 1024,
                figure: Figure::BothPerItem,
                paper: 0.0272,
            }]
        },
        note: "ours is the mended protocol with parameters of 148 quantum bits, the paper's are of 101",
    },
    Table {
        name: "roted-table4",
        title: "ROTed, table 4: intersection of two sets of 2,048 by PaXoS on ROTed",
        needs: ("base-ot", "roted"),
        rows: || {
            vec![Row {
                label: "paxos on roted, 2048".into(),
                words: "psi --protocol paxos --base-ot roted".into(),
                count: 2048,
                figure: Figure::Total,
                paper: 142.0,
            }]
        },
        note: "the paper's time leaves out the consistency check of the OT extension, ours has it",
    },
];

/// Whether this command has a benchmark `what` of `protocol`.
fn is_there(what: &str, protocol: &str) -> bool {
    match what {
        "ot" => tacit::ot::names().contains(&protocol),
        "base-ot" => tacit::ot::base_ot(Some(protocol), tacit::Security::SemiHonest).is_ok(),
        _ => {
            let command = crate::Cli::command();
            let bench = command.find_subcommand("bench").and_then(|bench| bench.find_subcommand(what));
            let option = bench.and_then(|c| c.get_arguments().find(|a| a.get_long() == Some("protocol")));
            option.is_some_and(|o| o.get_possible_values().iter().any(|value| value.matches(protocol, false)))
        }
    }
}

fn tables() -> impl Iterator<Item = &'static Table> {
    TABLES.iter().chain(wmk17::TABLES).filter(|table| is_there(table.needs.0, table.needs.1))
}

/// Runs the subcommand.
pub fn run(args: Args, context: &Context) -> Result<()> {
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
        return Err(Error::Usage(format!(
            "there is no table `{name}`; choose all or one of {}",
            known.join(", ")
        )));
    }
    let mut results = Results::default();
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
                    let record = results.take(words)?;
                    let more = |words: &str| results.take(full(words, &row, &args));
                    let ours = ours(&row, &record, args.quick, more)?;
                    line(table, &row, &record, ours, context)?;
                }
                None => left_out += 1,
            }
        }
        if left_out > 0 {
            context.note(&format!("{}: {left_out} rows left out by --quick", table.name));
        }
    }
    Ok(())
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
    let words: Vec<&str> = row.words.split(' ').collect();
    let protocol = words.iter().position(|w| *w == "--protocol").and_then(|at| words.get(at + 1));
    if !protocol.is_none_or(|p| is_there(words[0], p) || words[0] == "psi") {
        return None;
    }
    let fixed = !matches!(row.figure, Figure::Run | Figure::Bytes | Figure::Slope { .. });
    // Of circuits by the row, a few rows stand for all.
    let leave = args.quick && fixed && row.paper > QUICK_MS && !row.words.contains("--rows");
    (!leave).then(|| full(&row.words, row, args))
}

/// A command line with count and repeats.
fn full(words: &str, row: &Row, args: &Args) -> Vec<String> {
    let mut words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    if row.count > 0 {
        let linear = args.quick && row.figure == Figure::Run;
        let count = if linear { row.count / QUICK_DIVISOR } else { row.count };
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
        Figure::BothPerItem => (record.cpu_ms_local + record.cpu_ms_peer) / count,
        Figure::Bytes => (record.bytes_sent + record.bytes_received) as f64,
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
        Figure::Bytes => "bytes",
        Figure::Slope { .. } => "µs",
        _ => "ms",
    };
    show(table, &row.label, record, (row.paper, ours, unit), context)?;
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
    let text = format!("  {paper:>12.3} {ours:>12.3} {:>7.2}x {unit:<6} {label}", paper / ours);
    context.result(&object, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tables_of_protocols_that_exist_are_offered_and_every_row_has_a_figure() {
        for table in tables() {
            let runnable = |row: &Row| {
                let words: Vec<&str> = row.words.split(' ').collect();
                words.iter().position(|w| *w == "--protocol").is_some_and(|at| words[at + 1] == table.needs.1)
            };
            let rows = (table.rows)();
            assert!(rows.iter().all(|row| row.paper > 0.0), "{}", table.name);
            assert!(rows.iter().any(runnable) || table.name == "roted-table4", "{}", table.name);
        }
        assert!(is_there("ot", "kos") && is_there("base-ot", "roted") && is_there("eval", "yao"));
        assert!(!is_there("ot", "none such") && !is_there("eval", "none such"));
        assert!(!is_there("none such", "yao"));
    }

    #[test]
    fn figures_come_out_at_the_size_and_in_the_unit_of_the_paper() {
        let record = Record {
            count: 1000,
            wall_ms: 2.0,
            setup_ms: 5.0,
            cpu_ms_local: 1.0,
            cpu_ms_peer: 3.0,
            bytes_sent: 7,
            bytes_received: 8,
            ..Record::default()
        };
        let row =
            |figure| Row { label: String::new(), words: String::new(), count: 10_000, figure, paper: 1.0 };
        let twice = |words: &str| {
            assert_eq!(words, "larger");
            Ok(Record { wall_ms: 5.0, ..record.clone() })
        };
        let of = |figure| ours(&row(figure), &record, false, twice).unwrap();
        assert_eq!(of(Figure::Run), 20.0);
        assert_eq!(of(Figure::Total), 7.0);
        assert_eq!(of(Figure::Setup), 5.0);
        assert_eq!(of(Figure::BothPerItem), 0.004);
        assert_eq!(of(Figure::Bytes), 15.0);
        assert_eq!(of(Figure::TotalAndBytes(7)), 7.0);
        assert_eq!(of(Figure::Scaled(3000)), 6.0);
        assert_eq!(of(Figure::Slope { first: 100.0, points: vec![("larger".into(), 400.0)] }), 10.0);
        assert_eq!(slope(&[(0.0, 1.0), (1.0, 2.0), (2.0, 6.0)]), 2.5);
    }
}
