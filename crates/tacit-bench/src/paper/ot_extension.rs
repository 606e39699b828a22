//! OT extension: Keller, Orsini and Scholl 2015, Boyle and others 2019, Yang and others 2020 (Ferret).

use super::{Figure, Row, Table};
use tacit::catalogue::{FERRET, FERRET_UNI, IKNP, KOS, SILENT};

/// Protocol, threads, link; milliseconds in one direction and in both.
const KOS_TABLE_2: &[(&str, u16, &str, [f64; 2])] = &[
    (IKNP.name, 1, "lan", [9_103.7, 12_514.8]),
    (IKNP.name, 1, "50/50", [36_231.9, 66_269.2]),
    (IKNP.name, 8, "lan", [3_325.8, 4_082.7]),
    (IKNP.name, 8, "50/50", [28_441.0, 53_397.7]),
    (KOS.name, 1, "lan", [9_558.9, 12_946.1]),
    (KOS.name, 1, "50/50", [36_265.3, 66_655.8]),
    (KOS.name, 8, "lan", [3_351.6, 4_202.0]),
    (KOS.name, 8, "50/50", [28_456.9, 54_115.7]),
];

fn kos_table_2() -> Vec<Row> {
    let row = |(protocol, threads, link, times): &(&str, u16, &str, [f64; 2])| {
        let words = format!("ot --protocol {protocol} --kind rot --threads {threads} --link {link}");
        let label = format!("{protocol}, {threads} threads, {link}");
        [
            Row {
                label: format!("{label}, one direction"),
                words: words.clone(),
                count: 10_000_000,
                figure: Figure::Run,
                paper: times[0],
            },
            Row {
                label: format!("{label}, both directions"),
                words: format!("{words} --both-ways"),
                count: 20_000_000,
                figure: Figure::Run,
                paper: times[1],
            },
        ]
    };
    KOS_TABLE_2.iter().flat_map(row).collect()
}

/// What the paper's protocol sends for each OT, and once.
fn kos_table_1() -> Vec<Row> {
    let row = |label: &str, figure, paper| Row {
        label: label.into(),
        words: "ot --protocol kos --kind rot".into(),
        count: 10_000_000,
        figure,
        paper,
    };
    vec![
        row("bits of a random OT", Figure::BitsPerItem, 128.0),
        row("bytes beside them", Figure::SetupBytes, 10_000.0),
    ]
}

const BCGIKRS_LINKS: [(&str, &str); 3] =
    [("10 Gbit/s", "10000/0"), ("100 Mbit/s, 40 ms", "100/40"), ("10 Mbit/s, 40 ms", "10/40")];
const QUASI_CYCLIC: &str = "silent --code quasi-cyclic";
/// Protocol, security, threads; for each link the milliseconds of 10^7, 10^6, 10^5 and 10^4.
#[rustfmt::skip]
const BCGIKRS_TABLE_2: &[(&str, &str, u16, [[f64; 4]; 3])] = &[
    (QUASI_CYCLIC, "semi-honest", 4, [[2441.0, 208.0, 76.0, 67.0], [2726.0, 513.0, 422.0, 425.0], [2756.0, 518.0, 454.0, 422.0]]),
    (IKNP.name, "semi-honest", 4, [[268.0, 125.0, 94.0, 91.0], [13_728.0, 1850.0, 493.0, 459.0], [128_954.0, 13_332.0, 1756.0, 445.0]]),
    (QUASI_CYCLIC, "semi-honest", 1, [[7990.0, 533.0, 130.0, 100.0], [8252.0, 808.0, 451.0, 422.0], [8291.0, 815.0, 467.0, 422.0]]),
    (IKNP.name, "semi-honest", 1, [[573.0, 157.0, 108.0, 98.0], [15_622.0, 2030.0, 613.0, 341.0], [129_011.0, 13_285.0, 1672.0, 429.0]]),
    (QUASI_CYCLIC, "malicious", 4, [[2659.0, 280.0, 84.0, 78.0], [2872.0, 479.0, 457.0, 424.0], [2846.0, 515.0, 438.0, 422.0]]),
    (KOS.name, "malicious", 4, [[333.0, 121.0, 110.0, 111.0], [13_722.0, 1933.0, 589.0, 426.0], [129_052.0, 13_391.0, 1804.0, 536.0]]),
    (QUASI_CYCLIC, "malicious", 1, [[8765.0, 584.0, 141.0, 104.0], [9055.0, 828.0, 460.0, 423.0], [8929.0, 831.0, 467.0, 433.0]]),
    (KOS.name, "malicious", 1, [[674.0, 170.0, 113.0, 106.0], [15_741.0, 2088.0, 702.0, 433.0], [129_771.0, 13_389.0, 1772.0, 518.0]]),
];

fn bcgikrs_table_2() -> Vec<Row> {
    let mut rows = Vec::new();
    for (protocol, security, threads, by_link) in BCGIKRS_TABLE_2 {
        for ((named, link), times) in BCGIKRS_LINKS.iter().zip(by_link) {
            for (exponent, ms) in [7u32, 6, 5, 4].into_iter().zip(times) {
                rows.push(Row {
                    label: format!(
                        "{}, {security}, {threads} threads, 10^{exponent}, {named}",
                        protocol.split(' ').next().unwrap_or(protocol)
                    ),
                    words: format!(
                        "ot --fresh --protocol {protocol} --security {security} --kind rot --threads \
                         {threads} --link {link}"
                    ),
                    count: 10u64.pow(exponent),
                    figure: Figure::Total,
                    paper: *ms,
                });
            }
        }
    }
    rows
}

/// Bytes of 10^7, 10^6, 10^5 and 10^4.
const BCGIKRS_TABLE_3: &[(&str, &str, [f64; 4])] = &[
    (QUASI_CYCLIC, "semi-honest", [126_658.0, 98_754.0, 83_394.0, 57_806.0]),
    (QUASI_CYCLIC, "malicious", [126_658.0, 98_754.0, 83_394.0, 57_806.0]),
    (IKNP.name, "semi-honest", [160_056_360.0, 16_011_518.0, 1_655_784.0, 168_186.0]),
    (KOS.name, "malicious", [160_056_360.0, 16_011_518.0, 1_655_784.0, 168_186.0]),
];

fn bcgikrs_table_3() -> Vec<Row> {
    let row = |protocol: &str, security: &str, exponent: u32, bytes: f64| Row {
        label: format!("{}, {security}, 10^{exponent}", protocol.split(' ').next().unwrap_or(protocol)),
        words: format!("ot --fresh --protocol {protocol} --security {security} --kind rot"),
        count: 10u64.pow(exponent),
        figure: Figure::Bytes,
        paper: bytes,
    };
    let rows = BCGIKRS_TABLE_3.iter().flat_map(|(protocol, security, bytes)| {
        [7u32, 6, 5, 4].into_iter().zip(bytes).map(move |(n, bytes)| row(protocol, security, n, *bytes))
    });
    rows.collect()
}

const FERRET_MBPS: [u32; 6] = [10, 50, 100, 500, 1000, 5000];
const FERRET_TABLE_3: &[(&str, &str, [f64; 6])] = &[
    (IKNP.name, "semi-honest", [128_308.0, 25_704.0, 12_885.0, 2_627.0, 1_345.0, 324.0]),
    (QUASI_CYCLIC, "semi-honest", [1_942.0, 1_961.0, 1_953.0, 1_966.0, 1_971.0, 1_966.0]),
    (FERRET_UNI.name, "semi-honest", [821.0, 306.0, 262.0, 264.0, 262.0, 261.0]),
    (FERRET.name, "semi-honest", [536.0, 215.0, 176.0, 159.0, 158.0, 160.0]),
    (KOS.name, "malicious", [128_314.0, 25_736.0, 12_924.0, 2_647.0, 1_387.0, 344.0]),
    (QUASI_CYCLIC, "malicious", [2_113.0, 2_099.0, 2_091.0, 2_106.0, 2_083.0, 2_095.0]),
    (FERRET_UNI.name, "malicious", [864.0, 325.0, 326.0, 318.0, 317.0, 317.0]),
    (FERRET.name, "malicious", [540.0, 220.0, 184.0, 182.0, 185.0, 185.0]),
];
const FERRET_TABLE_4: &[(&str, &str, [f64; 6])] = &[
    (FERRET_UNI.name, "semi-honest", [1_162.0, 482.0, 482.0, 481.0, 479.0, 478.0]),
    (FERRET.name, "semi-honest", [811.0, 183.0, 106.0, 41.0, 35.0, 30.0]),
    (FERRET_UNI.name, "malicious", [1_166.0, 486.0, 485.0, 484.0, 485.0, 484.0]),
    (FERRET.name, "malicious", [818.0, 184.0, 107.0, 42.0, 37.0, 32.0]),
];

/// Bits of a correlation in table 3, and bytes of the setup in table 4, over any link.
const FERRET_TABLE_3_BITS: &[(&str, &str, f64)] = &[
    (IKNP.name, "semi-honest", 128.0),
    (QUASI_CYCLIC, "semi-honest", 0.1),
    (FERRET_UNI.name, "semi-honest", 0.73),
    (FERRET.name, "semi-honest", 0.44),
    (KOS.name, "malicious", 128.0),
    (QUASI_CYCLIC, "malicious", 0.1),
    (FERRET_UNI.name, "malicious", 0.73),
    (FERRET.name, "malicious", 0.44),
];
const FERRET_TABLE_4_BYTES: &[(&str, &str, f64)] = &[
    (FERRET_UNI.name, "semi-honest", 1.51e6),
    (FERRET.name, "semi-honest", 1.13e6),
    (FERRET_UNI.name, "malicious", 1.51e6),
    (FERRET.name, "malicious", 1.13e6),
];
/// The link of the rows that count bytes.
const COUNTED: u32 = 100;

fn communication(table: &[(&str, &str, f64)], count: u64, figure: fn() -> Figure) -> Vec<Row> {
    let one = |(protocol, security, paper): &(&str, &str, f64)| {
        let mut row = by_rate(&[(protocol, security, [*paper; 6])], count, figure)
            .swap_remove(FERRET_MBPS.iter().position(|mbps| *mbps == COUNTED).unwrap_or(0));
        row.label = row.label.replace(&format!("{COUNTED} Mbit/s"), "communication");
        row
    };
    table.iter().map(one).collect()
}

fn by_rate(table: &[(&str, &str, [f64; 6])], count: u64, figure: fn() -> Figure) -> Vec<Row> {
    let row = |protocol: &str, security: &str, mbps: u32, paper: f64| Row {
        label: format!("{}, {security}, {mbps} Mbit/s", protocol.split(' ').next().unwrap_or(protocol)),
        words: format!("ot --protocol {protocol} --security {security} --kind cot --link {mbps}/0.1"),
        count,
        figure: figure(),
        paper,
    };
    let rows = table.iter().flat_map(|(protocol, security, figures)| {
        FERRET_MBPS.iter().zip(figures).map(move |(mbps, paper)| row(protocol, security, *mbps, *paper))
    });
    rows.collect()
}

/// Of a rate in Mbit/s: ns of the SPCOTs, of LPN encoding, of both, and what Ferret-Uni takes beyond them.
const FERRET_TABLE_5: &[(u32, [f64; 4])] =
    &[(10, [40.0, 12.0, 53.0, 32.0]), (50, [9.0, 12.0, 22.0, 10.0]), (100, [6.0, 11.0, 18.0, 14.0])];

fn ferret_table_5() -> Vec<Row> {
    const ENCODING: &str = "lpn --set paper";
    let mut rows = Vec::new();
    for (mbps, [spcot, encoding, total, uni]) in FERRET_TABLE_5 {
        let run = |protocol: &str| format!("ot --protocol {protocol} --kind cot --link {mbps}/0.1");
        let regular = run("ferret --set paper");
        let mut add = |what: &str, words: &str, figure, paper: &f64| {
            rows.push(Row {
                label: format!("{what}, {mbps} Mbit/s"),
                words: words.into(),
                count: 10_000_000,
                figure,
                paper: *paper,
            });
        };
        add("SPCOT, all executions", &regular, Figure::Beyond(ENCODING.into()), spcot);
        add("LPN encoding", ENCODING, Figure::PerItem, encoding);
        add("Ferret-Reg, in all", &regular, Figure::PerItem, total);
        let uniform = run("ferret-uni --set paper");
        add("Ferret-Uni, beyond that", &uniform, Figure::Beyond(regular.clone()), uni);
    }
    rows
}

pub(super) const TABLES: &[Table] = &[
    Table {
        name: "kos15-table1",
        title: "Keller, Orsini, Scholl 2015, table 1: communication, this work's row",
        needs: ("ot", &KOS),
        rows: kos_table_1,
        note: "the paper's bytes have the check in them, which ours sends with the OTs; its base OTs are others",
    },
    Table {
        name: "kos15-table2",
        title: "Keller, Orsini, Scholl 2015, table 2: 10^7 random OTs in each direction, base OTs not \
                counted",
        needs: ("ot", &KOS),
        rows: kos_table_2,
        note: "the paper's LAN is not specified (ours: 10 Gbit/s, 0.1 ms); its statistical parameter is \
               64, ours 40; in both directions each has the threads named",
    },
    Table {
        name: "bcgikrs19-table2",
        title: "Boyle, Couteau, Gilboa, Ishai, Kohl, Rindal, Scholl 2019, table 2: n random OTs, base OTs \
                counted",
        needs: ("ot", &SILENT),
        rows: bcgikrs_table_2,
        note: "quasi-cyclic code; the paper's base OTs are Naor–Pinkas in three messages; our threads \
               share theirs, and a further one begins with every 2^18 transfers",
    },
    Table {
        name: "bcgikrs19-table3",
        title: "Boyle, Couteau, Gilboa, Ishai, Kohl, Rindal, Scholl 2019, table 3: bytes of n random OTs, \
                base OTs counted",
        needs: ("ot", &SILENT),
        rows: bcgikrs_table_3,
        note: "quasi-cyclic code at N/n = 2",
    },
    Table {
        name: "ferret-table3",
        title: "Yang, Weng, Lan, Zhang, Wang 2020, table 3: 10^7 correlated OTs, setup not counted",
        needs: ("ot", &FERRET),
        rows: || {
            let mut rows = by_rate(FERRET_TABLE_3, 10_000_000, || Figure::Run);
            rows.extend(communication(FERRET_TABLE_3_BITS, 10_000_000, || Figure::BitsPerItem));
            rows
        },
        note: "communication without the setup; the paper has five threads, ours one; its one-way delay is not given, ours is 0.1 ms",
    },
    Table {
        name: "ferret-table4",
        title: "Yang, Weng, Lan, Zhang, Wang 2020, table 4: one-time setup",
        needs: ("ot", &FERRET),
        rows: || {
            let mut rows = by_rate(FERRET_TABLE_4, 1000, || Figure::Setup);
            rows.extend(communication(FERRET_TABLE_4_BYTES, 1000, || Figure::SetupBytes));
            rows.iter_mut().for_each(|row| {
                row.words = row.words.replace(" --kind", " --fresh=false --tune-for 10000000 --kind");
            });
            rows
        },
        note: "of the parameters that suit 10^7 and the link; ours has the base OTs in it; the paper has \
               five threads, ours one",
    },
    Table {
        name: "ferret-table5",
        title: "Yang, Weng, Lan, Zhang, Wang 2020, table 5: where the time of a malicious correlated OT goes",
        needs: ("ot", &FERRET),
        rows: ferret_table_5,
        note: "the paper's parameters; LPN encoding is measured alone, SPCOT is the rest \
               of the whole; the paper has five threads, ours one",
    },
];
