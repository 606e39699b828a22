//! Wang, Malozemoff and Katz 2017: tables 4, 5, 7 and 8.

use super::{Figure, Row, Table};
use tacit::catalogue::{KOS, WMK17};

/// Loopback, 2.32 Gbit/s within 1 ms, and 200 Mbit/s with a round trip of 75 ms.
const LINKS: [(&str, &str); 3] = [("localhost", "loopback"), ("LAN", "2320/0.5"), ("WAN", "200/37.5")];

/// A function, the AND gates of the paper's circuit, and milliseconds by link: everything, what needs no input, and
/// the rest.
struct Common {
    function: &'static str,
    gates: u64,
    whole: [f64; 3],
    offline: [f64; 3],
    online: [f64; 3],
}

#[rustfmt::skip]
const TABLE_4: &[Common] = &[
    Common { function: "add32", gates: 127, whole: [29.0, 39.0, 1060.0], offline: [60.0, 27.0, 474.0], online: [6.0, 12.0, 697.0] },
    Common { function: "aes128", gates: 6_800, whole: [50.0, 65.0, 1513.0], offline: [82.0, 62.0, 867.0], online: [14.0, 21.0, 736.0] },
    Common { function: "sha1", gates: 37_300, whole: [136.0, 200.0, 3439.0], offline: [156.0, 206.0, 2705.0], online: [48.0, 52.0, 820.0] },
    Common { function: "sha256", gates: 90_825, whole: [277.0, 438.0, 6716.0], offline: [356.0, 497.0, 5990.0], online: [85.0, 92.0, 856.0] },
];

/// 10^4 times AES-128, of 6,400 AND gates in our circuit.
const GARBLED: u64 = 64_000_000;
/// Milliseconds of sending them.
const TABLE_5_SENT: [f64; 3] = [4_830.0, 7_530.0, 87_400.0];
const TABLE_5_BASE_OT: [f64; 3] = [113.0, 133.0, 249.0];
const TABLE_5_EXTENSION: [f64; 3] = [4_990.0, 5_640.0, 25_600.0];

/// Input bits of P1, of P2, output bits and AND gates to begin with, each of which grows alone.
const START: [u32; 4] = [128, 128, 128, 16_384];
/// What is varied, to which sizes beside the first, and the paper's microseconds by link.
const TABLE_7: [(&str, [u32; 3], [f64; 3]); 4] = [
    ("P1's input bit", [2_048, 4_096, 8_192], [9.8, 16.0, 191.4]),
    ("P2's input bit", [2_048, 4_096, 8_192], [16.4, 22.5, 146.9]),
    ("output bit", [2_048, 4_096, 8_192], [13.3, 20.3, 131.1]),
    ("AND gate", [32_768, 65_536, 131_072], [1.7, 4.4, 63.1]),
];

/// Name, function, milliseconds over LAN, bytes.
const TABLE_8: &[(&str, &str, f64, u64)] = &[
    ("16384-bit comparison", "lt16384", 670.0, 128_000_000),
    ("128-bit sum", "add128", 40.0, 1_800_000),
    ("256-bit sum", "add256", 50.0, 3_400_000),
    ("1024-bit sum", "add1024", 80.0, 11_200_000),
    ("128-bit product", "mul128", 130.0, 22_400_000),
    ("256-bit product", "mul256", 400.0, 86_600_000),
    ("sort of 1024 32-bit integers", "sort-shared1024", 9_430.0, 2_600_000_000),
    ("sort of 4096 32-bit integers", "sort-shared4096", 53_700.0, 14_200_000_000),
];
/// 5.3 hours.
const MODULAR_EXPONENTIATION_MS: f64 = 5.3 * 3.6e6;

fn by_link(name: &str, words: &str, count: u64, figure: impl Fn() -> Figure, times: [f64; 3]) -> Vec<Row> {
    let row = |((at, link), paper): ((&str, &str), f64)| Row {
        label: format!("{name}, {at}"),
        words: format!("{words} --link {link}"),
        count,
        figure: figure(),
        paper,
    };
    LINKS.into_iter().zip(times).map(row).collect()
}

fn table_4() -> Vec<Row> {
    let rows = |Common { function, gates, whole, offline, online }: &Common| {
        let words = |copies| format!("eval {function} --protocol wmk17 --copies {copies}");
        let mut rows = by_link(function, &words("44"), 0, || Figure::Total, *whole);
        // On localhost the choice is 44.
        let chosen = format!("{function}, copies by the link");
        rows.extend(by_link(&chosen, &words("auto"), 0, || Figure::Total, *whole).split_off(1));
        // Of the smallest nearly all is what a run takes without a gate.
        if *gates > 1_000 {
            let label = format!("{function}, a gate, of {gates} in the paper's circuit");
            rows.extend(by_link(&label, &words("44"), 0, || Figure::PerGate(*gates), *whole));
        }
        let halves = format!("{} --halves", words("44"));
        rows.extend(by_link(&format!("{function}, offline"), &halves, 0, || Figure::Offline, *offline));
        rows.extend(by_link(&format!("{function}, online"), &halves, 0, || Figure::Online, *online));
        rows
    };
    TABLE_4.iter().flat_map(rows).collect()
}

fn table_5() -> Vec<Row> {
    let alone = |label: &str, words: &str, count, figure, paper| Row {
        label: label.into(),
        words: words.into(),
        count,
        figure,
        paper,
    };
    let mut rows = vec![
        alone("ρ-probe matrix of 2^15 bits", "probe", 1 << 15, Figure::Total, 5.8),
        alone("10^4 AES circuits garbled", "garble aes128 --only garble", GARBLED, Figure::Run, 3_420.0),
    ];
    let sent = || Figure::Scaled(GARBLED);
    let names = ["10^4 AES circuits garbled and sent", "2^10 malicious base OTs", "8·10^6 malicious OTs"];
    rows.extend(by_link(names[0], "eval aes128 --protocol yao --rows 500", 0, sent, TABLE_5_SENT));
    rows.extend(by_link(names[1], "base-ot --protocol mrr21", 1024, || Figure::Total, TABLE_5_BASE_OT));
    rows.extend(by_link(
        names[2],
        "ot --protocol kos --kind ot",
        8_000_000,
        || Figure::Run,
        TABLE_5_EXTENSION,
    ));
    rows
}

fn table_7() -> Vec<Row> {
    let words = |sizes: [u32; 4], link: &str| {
        format!("eval {} --protocol wmk17 --copies 44 --link {link}", sizes.map(|n| n.to_string()).join("/"))
    };
    let mut rows = Vec::new();
    for (at, (name, link)) in LINKS.into_iter().enumerate() {
        for (varied, (what, sizes, times)) in TABLE_7.into_iter().enumerate() {
            let points = sizes.map(|size| {
                let mut grown = START;
                grown[varied] = size;
                (words(grown, link), f64::from(size))
            });
            rows.push(Row {
                label: format!("{what}, {name}"),
                words: words(START, link),
                count: 0,
                figure: Figure::Slope { first: f64::from(START[varied]), points: points.into() },
                paper: times[at],
            });
        }
    }
    rows
}

fn table_8() -> Vec<Row> {
    let lan = LINKS[1].1;
    let mut rows: Vec<Row> = TABLE_8
        .iter()
        .map(|(name, function, paper, bytes)| Row {
            label: format!("{name}, LAN"),
            words: format!("eval {function} --protocol wmk17 --copies 44 --link {lan}"),
            count: 0,
            figure: Figure::TotalAndBytes(*bytes),
            paper: *paper,
        })
        .collect();
    if let Ok(whole) = super::super::stream::whole_exponentiation() {
        rows.push(Row {
            label: format!("1024-bit modular exponentiation, LAN, {whole} AND gates from a slice"),
            words: format!("stream modexp1024 --protocol wmk17 --count 1 --link {lan}"),
            count: 0,
            figure: Figure::Scaled(whole),
            paper: MODULAR_EXPONENTIATION_MS,
        });
    }
    rows
}

pub(super) const TABLES: &[Table] = &[
    Table {
        name: "wmk17-table4",
        title: "Wang, Malozemoff, Katz 2017, table 4: single execution, everything included",
        needs: ("eval", &WMK17),
        rows: table_4,
        note: "the paper's 75 ms are taken as the round trip; circuits are built and planned before; ours have \
               fewer AND gates than the paper's, so a row tells the time of a gate too; the paper's offline part \
               has a disk in it, and of its online part the disk is left out",
    },
    Table {
        name: "wmk17-table5",
        title: "Wang, Malozemoff, Katz 2017, table 5: building blocks",
        needs: ("ot", &KOS),
        rows: table_5,
        note: "sending: Yao's protocol with the evaluator's work in it, of 500 circuits; OTs are chosen ones",
    },
    Table {
        name: "wmk17-table7",
        title: "Wang, Malozemoff, Katz 2017, table 7: one more bit or gate, by a line through four sizes",
        needs: ("eval", &WMK17),
        rows: table_7,
        note: "inputs and output of 128 bits and 16,384 AND gates to begin with; a row shows the first \
               size's result",
    },
    Table {
        name: "wmk17-table8",
        title: "Wang, Malozemoff, Katz 2017, table 8: further examples over LAN, everything included",
        needs: ("eval", &WMK17),
        rows: table_8,
        note: "circuits are built and planned before; the modular exponentiation is one step of 1,024, \
               times the AND gates of all",
    },
];
