//! Circuits against the question's own answer in the clear, and whole runs of two sides.

mod attacks;

use super::circuit::Circuits;
use super::*;
use tacit_2pc::batch::fold::Part;
use tacit_2pc::circuit::{Builder, Integer, Uint, evaluate};
use tacit_crypto::BitVec;
use tacit_query::{Kind, parse};

/// Questions with every construct that is computed inside.
const QUESTIONS: &[&str] = &[
    "SELECT COUNT(*) FROM ours a JOIN theirs b ON a.k = b.k",
    "SELECT COUNT(*) AS n, SUM(CLIP(a.x, 0, 100)) AS s FROM ours a JOIN theirs b ON a.k = b.k WHERE a.x > 10 AND b.y < 5",
    "SELECT b.g, COUNT(*), SUM(CLIP(a.x, -7, 12)), AVG(CLIP(a.x, -7, 12)), MIN(CLIP(a.x, -7, 12)), MAX(CLIP(b.y, -3, 3)) \
     FROM ours a JOIN theirs b ON a.k = b.k WHERE b.g IN ('u', 'v', 'w') GROUP BY b.g",
    "SELECT a.h, b.g, COUNT(*) FROM ours a JOIN theirs b ON a.k = b.k WHERE b.g IN ('u', 'v', 'w') AND a.h BETWEEN 0 AND 4 \
     GROUP BY a.h, b.g HAVING COUNT(*) >= 2",
    "SELECT SUM(CLIP(a.x, 0, 9) * CLIP(b.y, -4, 4) - CLIP(b.y, -4, 4)) AS s, COUNT(CLIP(a.x, 0, 9)) AS c \
     FROM ours a JOIN theirs b ON a.k = b.k WHERE CLIP(a.x, 0, 9) >= CLIP(b.y, -4, 4) OR a.h = 1",
    "SELECT CASE WHEN a.h < 2 THEN 'low' WHEN a.h < 4 THEN 'high' END AS level, \
     SUM(CASE WHEN CLIP(a.x, 0, 50) + CLIP(b.y, 0, 50) > 40 THEN 1 ELSE 0 END) AS many, \
     MAX(CASE WHEN b.y > 0 THEN CLIP(a.x, -9, 9) END) AS best \
     FROM ours a JOIN theirs b ON a.k = b.k GROUP BY CASE WHEN a.h < 2 THEN 'low' WHEN a.h < 4 THEN 'high' END \
     HAVING SUM(CLIP(b.y, -10, 10)) > 0 AND COUNT(*) > 1",
    "SELECT SUM(COALESCE(CLIP(a.x, 5, 5), CLIP(b.y, 1, 2), 7)) AS s FROM ours a JOIN theirs b ON a.k = b.k \
     WHERE NOT (CLIP(a.x, 0, 9) IS NULL AND CLIP(b.y, 0, 9) IS NULL)",
    "SELECT COUNT(*) FROM ours a JOIN theirs b ON a.k = b.k HAVING AVG(CLIP(a.x, -50, 50)) > 3 OR MIN(CLIP(b.y, -9, 9)) < -3",
    "SELECT b.g, COUNT(*), SUM(CLIP(a.x, -70, 12)) AS s, AVG(CLIP(a.\"x:decimal1\", -7, 12)), MAX(CLIP(b.y, -30, 3)) \
     FROM ours a JOIN theirs b ON a.k = b.k WHERE b.g IN ('u', 'v', 'w') GROUP BY b.g ROUND TO 7",
    "SELECT COUNT(*), SUM(CLIP(a.x, 0, 130) * CLIP(b.y, -4, 4)) AS s FROM ours a JOIN theirs b ON a.k = b.k ROUND TO 10",
];

/// Questions whose numbers have noise.
const NOISED: &[&str] = &[
    "SELECT COUNT(*) FROM ours a JOIN theirs b ON a.k = b.k WITH NOISE EPSILON 0.25",
    "SELECT b.g, COUNT(*), SUM(CLIP(a.x, -7, 12)) AS s, AVG(CLIP(b.y, 0, 12)) FROM ours a JOIN theirs b ON a.k = b.k \
     WHERE b.g IN ('u', 'v', 'w') GROUP BY b.g HAVING COUNT(*) >= 3 WITH NOISE EPSILON 1",
    "SELECT b.g, SUM(CLIP(a.x, -7, -2)) AS s FROM ours a JOIN theirs b ON a.k = b.k WHERE b.g IN ('u', 'v', 'w') \
     GROUP BY b.g HAVING COUNT(*) >= 5 AND SUM(CLIP(a.x, -7, -2)) < -20 ROUND TO 4 WITH NOISE EPSILON 0.5",
    "SELECT b.g, COUNT(a.x) AS c, SUM(CLIP(a.x, 0, 0)) AS none FROM ours a JOIN theirs b ON a.k = b.k \
     WHERE b.g IN ('u', 'v') GROUP BY b.g WITH NOISE EPSILON 0.001",
];

/// A side's cells for key `key`, out of a seed: numbers, texts, and nothing.
fn cells(question: &Question, side: Side, prg: &mut Prg) -> Vec<Option<String>> {
    let mut draw = |below: u64| prg.below(below);
    let columns = question.tables[side as usize].columns.iter();
    columns
        .map(|column| {
            if draw(6) == 0 {
                return None;
            }
            Some(match column.as_str() {
                "g" => ["u", "v", "w", "z"][draw(4) as usize].to_owned(),
                "h" => draw(6).to_string(),
                _ => (draw(130) as i64 - 40).to_string(),
            })
        })
        .collect()
}

fn block(question: &Question, side: Side, prg: &mut Prg) -> u128 {
    let cells = cells(question, side, prg);
    let cells: Vec<Option<&str>> = cells.iter().map(Option::as_deref).collect();
    question.row(side, &cells).unwrap().unwrap_or(0)
}

fn bits(number: u128, width: usize) -> BitVec {
    let mut bits = BitVec::zeros(width);
    (0..width.min(128)).for_each(|at| bits.set(at, number >> at & 1 == 1));
    bits
}

fn number(bits: &BitVec) -> u128 {
    bits.iter().enumerate().fold(0, |sum, (at, bit)| sum | u128::from(bit) << at)
}

/// A place of the intersection: both blocks, and whether there is a common key.
type Row = ([u128; 2], bool);

/// What a fold opens of these rows, each circuit computed in the clear, with words of `coins`.
fn folded_in_the_clear(
    circuits: &Circuits<'_>,
    rows: &[Row],
    widths: [u32; 2],
    coins: &mut dyn FnMut() -> u64,
) -> Vec<Shown> {
    let mut b = Builder::new();
    let input = b.input(circuits.row_bits() as u32);
    let parts = circuits.row(&mut b, &input);
    let numbers: Vec<Uint> = parts
        .iter()
        .map(|part| match part {
            Part::Sum(number) | Part::SignedSum(number) | Part::Largest(number) => number.clone(),
        })
        .collect();
    let row = b.finish(&numbers).unwrap();
    let count_bits = (usize::BITS - rows.len().leading_zeros()) as usize;
    let mut totals = vec![0_u128; parts.len()];
    for (blocks, common) in rows {
        let mut all = BitVec::zeros(circuits.row_bits());
        for (bit, at) in (0..widths[0]).map(|bit| (0, bit)).chain((0..widths[1]).map(|bit| (1, bit))).zip(0..)
        {
            all.set(at, blocks[bit.0] >> bit.1 & 1 == 1);
        }
        all.set(circuits.row_bits() - 1, *common);
        for ((total, made), part) in totals.iter_mut().zip(evaluate(&row, &[all])).zip(&parts) {
            let made = number(&made);
            match part {
                Part::Sum(_) => *total += made,
                Part::SignedSum(of) => {
                    let unused = 128 - of.width() as u32;
                    *total = total.wrapping_add(((made as i128) << unused >> unused) as u128);
                }
                Part::Largest(_) => *total = made.max(*total),
            }
        }
    }
    let widths: Vec<usize> = parts
        .iter()
        .map(|part| match part {
            Part::Sum(of) | Part::SignedSum(of) => of.width() + count_bits,
            Part::Largest(of) => of.width(),
        })
        .collect();
    let mut b = Builder::new();
    let inputs: Vec<Uint> = widths.iter().map(|width| b.input(*width as u32)).collect();
    let drawn = b.input(circuits.coins() as u32);
    let opened = circuits.last(&mut b, &inputs, &drawn);
    let last = b.finish(&opened).unwrap();
    let totals = totals.iter().zip(&widths).map(|(total, width)| bits(*total, *width));
    let words: Vec<u64> = (0..circuits.coins() / 64).map(|_| coins()).collect();
    let mut drawn = BitVec::zeros(circuits.coins());
    (0..drawn.len()).for_each(|at| drawn.set(at, words[at / 64] >> (at % 64) & 1 == 1));
    circuits.read(&evaluate(&last, &totals.chain([drawn]).collect::<Vec<_>>()))
}

/// Rows of which about half are of no common key: those hold noise, of which nothing may count.
#[test]
fn circuits_give_what_the_question_gives_in_the_clear() {
    let mut prg = Prg::from_seed(Block::new(7));
    for text in QUESTIONS.iter().chain(NOISED) {
        let question = parse(text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        let circuits = Circuits::new(&question);
        let widths = Side::BOTH.map(|side| question.bits(side));
        for size in [1, 2, 3, 17, 60] {
            let mut rows: Vec<Row> = Vec::new();
            for _ in 0..size {
                let common = prg.block().to_u128() & 1 == 1;
                let blocks = match common {
                    true => Side::BOTH.map(|side| block(&question, side, &mut prg)),
                    false => [prg.block().to_u128(), prg.block().to_u128()],
                };
                rows.push((blocks, common));
            }
            let joined: Vec<[u128; 2]> = rows.iter().filter(|row| row.1).map(|row| row.0).collect();
            // The same words for both, a few of which are on the edge of a threshold.
            let edges: Vec<u64> =
                question.noise.iter().flatten().flat_map(|words| [words - 1, *words]).collect();
            let seed = prg.block();
            let words = || {
                let mut words = Prg::from_seed(seed);
                let edges = edges.clone();
                move || match words.below(3) {
                    0 => edges[words.below(edges.len() as u64) as usize],
                    _ => words.block().low(),
                }
            };
            let expected: Vec<Shown> = question
                .answer(&joined, &mut words())
                .into_iter()
                .map(|(group, values)| Shown { group, values })
                .collect();
            let found = folded_in_the_clear(&circuits, &rows, widths, &mut words());
            assert_eq!(found, expected, "{text}, {size} rows");
        }
    }
}

/// What a side puts in outside the bounds that the question names counts as the nearer one, a code that stands for
/// nothing is in no group, and what is true but not known is neither.
#[test]
fn what_no_row_has_counts_within_bounds() {
    let text = "SELECT b.g, COUNT(*) AS n, SUM(CLIP(a.x, 0, 100)) AS s FROM ours a JOIN theirs b ON a.k = b.k \
                WHERE b.g IN ('u', 'v', 'w') GROUP BY b.g";
    let question = parse(text).unwrap();
    let circuits = Circuits::new(&question);
    let widths = Side::BOTH.map(|side| question.bits(side));
    let all = u128::MAX;
    let code = question.fields.iter().position(|field| matches!(field.kind, Kind::Code(_))).unwrap();
    let place = question.place(code);
    let of_group = |group: u128| 1 | group << place.start;
    let shown = folded_in_the_clear(
        &circuits,
        &[([all, of_group(1)], true), ([all, of_group(3)], true)],
        widths,
        &mut || 0,
    );
    assert_eq!(shown, [Shown { group: 1, values: vec![Some(1), Some(100)] }]);
}

/// Two sides over a link in memory, for every question, and with a set that is empty.
#[test]
fn whole_runs_give_what_the_question_gives_in_the_clear() {
    let mut prg = Prg::from_seed(Block::new(8));
    let sizes = [(40, 60, 25), (30, 20, 20), (1, 9, 1), (3, 0, 0)];
    for (text, (own, other, common)) in QUESTIONS.iter().zip(sizes.iter().cycle()) {
        let question = parse(text).unwrap();
        let of = |side: Side, count: usize, shift: usize, prg: &mut Prg| {
            let elements: Vec<Vec<u8>> = (0..count).map(|at| (at + shift).to_le_bytes().to_vec()).collect();
            let blocks: Vec<Block> = (0..count).map(|_| Block::new(block(&question, side, prg))).collect();
            (elements, blocks)
        };
        let (ours, theirs) =
            (of(Side::Ours, *own, 0, &mut prg), of(Side::Theirs, *other, own - common, &mut prg));
        let joined: Vec<[u128; 2]> = ours.0[own - common..]
            .iter()
            .enumerate()
            .map(|(at, _)| [ours.1[own - common + at].to_u128(), theirs.1[at].to_u128()])
            .collect();
        let expected: Vec<Shown> = question
            .answer(&joined, &mut || unreachable!())
            .into_iter()
            .map(|(group, values)| Shown { group, values })
            .collect();
        let (mut first, mut second) = tacit_net::memory::pair();
        // Whichever side listens.
        let ours_first = own % 2 == 0;
        let job = |side, learns| Job {
            least: 0,
            result_to_owner: true,
            ..Job::new(question.clone(), side, learns, Normalisation::default()).unwrap()
        };
        let run = |side: Side, learns, channel: &mut Channel| {
            let base = tacit_ot::base::default();
            let (elements, blocks) = if side == Side::Ours { &ours } else { &theirs };
            let rows = Rows::of(blocks.clone());
            let mut job = job(side, learns);
            job.result_to_owner = job.owner_gets().is_some();
            job.run(std::slice::from_mut(channel), &*base, elements, &rows, 1 << 20, &()).unwrap()
        };
        let (a, b) = std::thread::scope(|scope| {
            let (ours, theirs) =
                if ours_first { (&mut first, &mut second) } else { (&mut second, &mut first) };
            let ours = scope.spawn(|| run(Side::Ours, Learns::Me, ours));
            let theirs = run(Side::Theirs, Learns::Peer, theirs);
            (ours.join().unwrap(), theirs)
        });
        assert_eq!(a, Answer { shown: Some(expected), peer_keys: *other as u64 }, "{text}");
        assert_eq!(b, Answer { shown: None, peer_keys: *own as u64 }, "{text}");
    }
}

/// Rounding by a product is rounding by a division, for every number of some bits and every step up to more than that.
#[test]
fn steps_are_the_nearest_ones() {
    for bits in [1, 2, 5, 7] {
        for unit in (2..2 << bits).chain([1_000_003]) {
            let mut b = Builder::new();
            let input = b.input(bits).as_int();
            let count = super::circuit::steps(&mut b, &input, unit).as_uint();
            let circuit = b.finish(&[count]).unwrap();
            for value in -(1_i128 << (bits - 1))..1 << (bits - 1) {
                let found = &evaluate(&circuit, &[self::bits(value as u128, bits as usize)])[0];
                let found = super::circuit::signed(found);
                let expected = value.signum() * ((value.abs() * 2 + unit) / (2 * unit));
                assert_eq!(found, expected, "{value} in steps of {unit}");
            }
        }
    }
    // As wide as numbers inside are.
    let mut prg = Prg::from_seed(Block::new(3));
    for _ in 0..200 {
        let unit = (prg.block().to_u128() >> (40 + prg.below(86)) | 2) as i128;
        let value = (prg.block().to_u128() as i128) >> (28 + prg.below(90));
        let mut b = Builder::new();
        let input = b.input(100).as_int();
        let count = super::circuit::steps(&mut b, &input, unit).as_uint();
        let circuit = b.finish(&[count]).unwrap();
        let found = super::circuit::signed(&evaluate(&circuit, &[self::bits(value as u128, 100)])[0]);
        assert_eq!(found, value.signum() * ((value.abs() + unit / 2) / unit), "{value} in steps of {unit}");
    }
}

/// Two sides over a link in memory, both of which get the result: they get the same noise, within its bounds, and little
/// of a large epsilon.
#[test]
fn both_sides_see_the_same_noise() {
    let of = |epsilon: &str| {
        let text = format!(
            "SELECT COUNT(*), SUM(CLIP(b.y, 1, 1)) AS s FROM ours a JOIN theirs b ON a.k = b.k WITH NOISE EPSILON {epsilon}"
        );
        let question = parse(&text).unwrap();
        let elements: Vec<Vec<u8>> = (0..30_u64).map(|at| at.to_le_bytes().to_vec()).collect();
        let (mut first, mut second) = tacit_net::memory::pair();
        let run = |side: Side, channel: &mut Channel| {
            let row = question.row(side, &[Some("5")][..question.tables[side as usize].columns.len()]);
            let blocks = vec![Block::new(row.unwrap().unwrap()); elements.len()];
            let rows = Rows::of(blocks);
            let job = Job::new(question.clone(), side, Learns::Both, Normalisation::default()).unwrap();
            let job = Job { least: 0, result_to_owner: true, ..job };
            let base = tacit_ot::base::default();
            job.run(std::slice::from_mut(channel), &*base, &elements, &rows, 1 << 20, &()).unwrap()
        };
        let (a, b) = std::thread::scope(|scope| {
            let ours = scope.spawn(|| run(Side::Ours, &mut first));
            let theirs = run(Side::Theirs, &mut second);
            (ours.join().unwrap(), theirs)
        });
        assert_eq!(a, b);
        a.shown.unwrap()[0].values.iter().map(|value| value.unwrap()).collect::<Vec<_>>()
    };
    assert!(of("10").iter().all(|value| (value - 30).abs() <= 5));
    let drawn: Vec<Vec<i128>> = (0..6).map(|_| of("0.01")).collect();
    // Of scale 200 each: equal ones are rare, and beyond the bound there is none.
    assert!(drawn.iter().flatten().any(|value| *value != 30), "{drawn:?}");
    assert!(drawn.iter().flatten().all(|value| (value - 30).abs() < 1 << 14), "{drawn:?}");
    assert!(drawn.windows(2).any(|two| two[0] != two[1]), "{drawn:?}");
}

/// What both sides hold for a row is limited before a circuit is built, and keys have one type.
#[test]
fn questions_that_take_too_much_or_join_unlike_keys_are_refused() {
    let sums: Vec<String> =
        (0..60).map(|at| format!("SUM(CLIP(a.x, 0, 7) * CLIP(b.y, 0, 7) + {at})")).collect();
    let group = "CASE WHEN a.h = 0 THEN 0 ELSE 1 END";
    let many = |groups: &str, sums: &[String]| {
        parse(&format!(
            "SELECT {} FROM ours a JOIN theirs b ON a.k = b.k WHERE a.g BETWEEN 0 AND {groups} GROUP BY a.g, {group}",
            sums.join(", ")
        ))
        .unwrap()
    };
    let job = |question| Job::new(question, Side::Ours, Learns::Me, Normalisation::default());
    assert!(job(many("9", &sums)).is_ok());
    let refused = job(many("511", &sums)).unwrap_err().to_string();
    assert!(refused.contains("1024 groups") && refused.contains("60 numbers"), "{refused}");
    assert!(job(many("511", &sums[..4])).is_ok());
    let unlike = parse("SELECT COUNT(*) FROM ours a JOIN theirs b ON a.\"k:int\" = b.k").unwrap();
    let refused = job(unlike).unwrap_err().to_string();
    assert!(refused.contains("compares int with text"), "{refused}");
}

/// All of a text is compared, however long it is.
#[test]
fn the_parts_of_a_text_are_all_of_it() {
    for text in [
        "",
        "one",
        "a text of some words, the last of them longer than others: ünbelievable",
        &"word ".repeat(999),
    ] {
        let all = parts(text);
        assert_eq!((all.concat(), all.len() <= 40), (text.to_owned(), true));
    }
}

/// Peaks of `tacit query` in MB with as many keys on both sides, one thread, of the larger process.
#[test]
fn what_questions_hold_is_what_was_measured() {
    let groups = "SELECT a.h, COUNT(*) AS n, SUM(CLIP(b.age, 0, 100)) AS s FROM ours a JOIN theirs b ON a.k = b.k \
                  WHERE a.h BETWEEN 0 AND 15 AND b.age > 30 GROUP BY a.h";
    let sum = "SELECT COUNT(*) AS n, SUM(CLIP(a.cents, 0, 65535)) AS s FROM ours a JOIN theirs b ON a.k = b.k \
               WHERE a.h > 3 AND b.age > 30";
    let peaks = [
        (sum, 14, 74.8),
        (groups, 14, 111.9),
        (sum, 17, 128.9),
        (groups, 17, 153.5),
        (sum, 20, 542.6),
        (groups, 20, 542.8),
    ];
    for (text, log2_keys, peak) in peaks {
        let job = Job::new(parse(text).unwrap(), Side::Ours, Learns::Me, Normalisation::default()).unwrap();
        let told = job.room(1 << log2_keys).unwrap().memory(1 << log2_keys) as f64 / 1e6;
        assert!(told >= peak && told <= 1.5 * peak + 60.0, "2^{log2_keys}: {told}");
    }
}
