//! ROTed: tables 2 to 5, with the kernels that stand beside the paper's.

use super::{Figure, Row, Table};
use crate::base::{bdgm19, pvw08};
use tacit::catalogue::{CO15, MR19, ROTED};
use tacit::crypto::simd::Backend;

/// Protocol, our kernels and the paper's, microseconds of one OT of both parties together (Intel i9-10980XE).
const TABLE_2: &[(&str, &str, &str, f64)] = &[
    (pvw08::NAME, "", "", 426.2),
    (MR19.name, "", "", 1738.0),
    (CO15.name, "", "", 76.6),
    (bdgm19::NAME, "portable", "serial", 50.2),
    (bdgm19::NAME, "avx2", "AVX2", 31.8),
    (bdgm19::NAME, "avx512", "AVX-512", 33.9),
];
/// PVW08 and BDGM19 are made into random OT by figure 2.
const TABLE_3: &[(&str, &str, &str, f64)] = &[
    (pvw08::NAME, "", "", 436.9),
    (bdgm19::NAME, "portable", "serial", 50.5),
    (bdgm19::NAME, "avx2", "AVX2", 32.1),
    (bdgm19::NAME, "avx512", "AVX-512", 33.2),
    (ROTED.name, "portable", "serial", 49.0),
    (ROTED.name, "avx2", "AVX2", 27.2),
    (ROTED.name, "avx512", "AVX-512", 30.1),
];
/// Milliseconds of an intersection of two sets of 2,048.
const TABLE_4: &[(&str, &str, &str, f64)] = &[
    (pvw08::NAME, "", "", 932.0),
    (bdgm19::NAME, "portable", "serial", 328.0),
    (bdgm19::NAME, "avx2", "AVX2", 304.0),
    (bdgm19::NAME, "avx512", "AVX-512", 318.0),
    (ROTED.name, "portable", "serial", 166.0),
    (ROTED.name, "avx2", "AVX2", 142.0),
    (ROTED.name, "avx512", "AVX-512", 151.0),
];

/// Rows of the kernels that this machine has.
fn rows(
    table: &[(&str, &str, &str, f64)],
    words: impl Fn(&str) -> String,
    count: u64,
    figure: fn() -> Figure,
    unit: f64,
) -> Vec<Row> {
    let there =
        |kernels: &str| kernels.is_empty() || Backend::available().iter().any(|b| b.name() == kernels);
    let row = |(protocol, kernels, paper_kernels, paper): &(&str, &str, &str, f64)| {
        let (label, environment) = match *kernels {
            "" => (protocol.to_string(), String::new()),
            kernels => (
                format!("{protocol}, {kernels} (the paper: {paper_kernels})"),
                format!("TACIT_SIMD={kernels} "),
            ),
        };
        Row { label, words: environment + &words(protocol), count, figure: figure(), paper: paper * unit }
    };
    table.iter().filter(|(_, kernels, _, _)| there(kernels)).map(row).collect()
}

fn base_ots(table: &[(&str, &str, &str, f64)], words: impl Fn(&str) -> String) -> Vec<Row> {
    rows(table, words, 1024, || Figure::BothPerItem, 1e-3)
}

fn base_ot(protocol: &str) -> String {
    format!("base-ot --protocol {protocol}")
}

/// ROTed is uniform random OT as it is.
fn uniform(protocol: &str) -> String {
    let more = if protocol == ROTED.name { "" } else { " --uniform" };
    base_ot(protocol) + more
}

fn intersection(base: &str) -> String {
    format!("psi --protocol paxos --base-ot {base}")
}

fn table_5() -> Vec<Row> {
    let row = |label: &str, other, paper| Row {
        label: label.into(),
        words: intersection(ROTED.name),
        count: 2048,
        figure: Figure::Memory { other },
        paper,
    };
    // The party that begins a benchmark sends; the other learns the result.
    vec![row("sender", false, 15.5), row("receiver", true, 11.8)]
}

pub(super) const TABLES: &[Table] = &[
    Table {
        name: "roted-table2",
        title: "ROTed, table 2: one OT, both parties' computing time (Intel i9-10980XE)",
        needs: ("base-ot", &ROTED),
        rows: || base_ots(TABLE_2, base_ot),
        note: "batches of 1,024 between two processes; ours of bdgm19 has parameters of 148 quantum bits, \
               the paper's 101; the elliptic-curve rows take this machine's best kernels",
    },
    Table {
        name: "roted-table3",
        title: "ROTed, table 3: one random OT, both parties' computing time (Intel i9-10980XE)",
        needs: ("base-ot", &ROTED),
        rows: || base_ots(TABLE_3, uniform),
        note: "ours is the mended protocol with parameters of 148 quantum bits, the paper's are of 101; \
               of ours bdgm19's random OT counts as semi-honest, since its sender may guess choice bits",
    },
    Table {
        name: "roted-table4",
        title: "ROTed, table 4: intersection of two sets of 2,048 by PaXoS on each base OT",
        needs: ("base-ot", &ROTED),
        rows: || rows(TABLE_4, intersection, 2048, || Figure::Total, 1.0),
        note: "the paper's time leaves out the consistency check of the OT extension, ours has it; the \
               paper's pvw08 and bdgm19 are turned into random OT first",
    },
    Table {
        name: "roted-table5",
        title: "ROTed, table 5: peak memory of that intersection",
        needs: ("base-ot", &ROTED),
        rows: table_5,
        note: "ours is of whole processes",
    },
];
