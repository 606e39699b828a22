//! Attempts against rounding and noise: generated questions at the edges of what numbers inside may be, each circuit
//! against the answer in the clear with the same coins.

use super::*;

fn pick<T: Copy>(prg: &mut Prg, of: &[T]) -> T {
    of[prg.below(of.len() as u64) as usize]
}

fn generated(prg: &mut Prg) -> String {
    let bounds = [
        "0, 9",
        "-7, -2",
        "-9, 5",
        "0, 1",
        "3, 3",
        "0, 0",
        "-1, 0",
        "-4, -4",
        "0, 140000000000000000000000",
        "-70000000000000000000000, 3",
    ];
    let xs: Vec<String> = (0..3)
        .map(|_| {
            let bound = pick(prg, &bounds);
            let narrow = pick(prg, &bounds[..8]);
            match prg.below(9) {
                0 => format!("CLIP(a.x, {bound})"),
                1 => format!("CLIP(a.\"z:decimal2\", {narrow})"),
                2 => format!("CLIP(b.\"w:decimal3\", {narrow}) * CLIP(a.x, {narrow})"),
                3 => format!("CASE WHEN b.y > 0 AND a.x > 5 THEN CLIP(a.x, {bound}) END"),
                4 => format!("COALESCE(CLIP(a.x, {narrow}), CLIP(b.y, {bound}))"),
                5 => format!("CLIP(CLIP(a.x, {narrow}) - CLIP(b.y, {narrow}), -3, 2)"),
                6 => format!("-CLIP(a.x, {narrow}) + CASE WHEN CLIP(a.x, {narrow}) < CLIP(b.y, {narrow}) THEN 1.5 ELSE 0 END"),
                7 => format!("CASE WHEN a.x IS NULL THEN CLIP(b.y, {narrow}) WHEN CLIP(a.x, {narrow}) * CLIP(b.y, {narrow}) > 3 THEN -2 ELSE NULL END"),
                _ => "NULL".to_owned(),
            }
        })
        .collect();
    let noise =
        pick(prg, &[None, Some("0.000001"), Some("0.01"), Some("0.7"), Some("3"), Some("7.5"), Some("10")]);
    let round = pick(prg, &[None, Some(2u64), Some(3), Some(10), Some(999_999_999), Some(1_000_000_000)]);
    let mut outputs = vec![];
    for (at, x) in xs.iter().enumerate() {
        let mut kinds = vec!["SUM", "AVG", "COUNT"];
        if noise.is_none() {
            kinds.extend(["MIN", "MAX"]);
        }
        outputs.push(format!("{}({x}) AS o{at}", pick(prg, &kinds)));
    }
    if prg.below(2) == 0 {
        outputs.push("COUNT(*)".into());
    }
    let group = prg.below(2) == 0;
    let sign = pick(prg, &["<", "<=", "=", "<>", ">"]);
    let having = match prg.below(6) {
        0 => format!(" HAVING COUNT(*) >= {}", pick(prg, &["1", "2", "3", "9"])),
        1 => format!(" HAVING SUM({}) {sign} 3 AND COUNT(*) > 2", xs[0]),
        2 => format!(" HAVING COUNT(*) * COUNT(a.x) {sign} SUM({}) OR SUM({}) IS NULL", xs[1], xs[0]),
        3 => format!(" HAVING NOT (-SUM({}) + 7 {sign} COUNT(b.y)) AND COUNT(*) >= 2", xs[2]),
        _ => String::new(),
    };
    format!(
        "SELECT {}{} FROM ours a JOIN theirs b ON a.k = b.k{}{}{having}{}{}",
        if group { "b.g, " } else { "" },
        outputs.join(", "),
        if group { " WHERE b.g IN ('u', 'v', 'w')" } else { "" },
        if group { " GROUP BY b.g" } else { "" },
        round.map_or(String::new(), |unit| format!(" ROUND TO {unit}")),
        noise.map_or(String::new(), |epsilon| format!(" WITH NOISE EPSILON {epsilon}")),
    )
}

/// Numbers at their ends as often as others.
fn wide_block(question: &Question, side: Side, prg: &mut Prg) -> u128 {
    let columns = &question.tables[side as usize].columns;
    let cells: Vec<Option<String>> = columns
        .iter()
        .map(|column| {
            if prg.below(6) == 0 {
                return None;
            }
            Some(match column.as_str() {
                "g" => pick(prg, &["u", "v", "w", "z"]).to_owned(),
                "z" | "w" => pick(prg, &["0.01", "-3.5", "8.99", "-7", "100"]).to_owned(),
                _ => pick(
                    prg,
                    &[
                        "139999999999999999999999",
                        "-69999999999999999999999",
                        "0",
                        "1",
                        "-1",
                        "6",
                        "-5",
                        "999999999999999999999999999",
                    ],
                )
                .to_owned(),
            })
        })
        .collect();
    let cells: Vec<Option<&str>> = cells.iter().map(Option::as_deref).collect();
    question.row(side, &cells).unwrap().unwrap_or(0)
}

#[test]
fn generated_questions_are_the_same_in_circuits_and_in_the_clear() {
    const ROUNDS: u64 = 150;
    let mut prg = Prg::from_seed(Block::new(77));
    let (mut asked, mut refused) = (0, std::collections::BTreeMap::new());
    for _ in 0..ROUNDS {
        let text = generated(&mut prg);
        let question = match parse(&text) {
            Ok(question) => question,
            Err(fault) => {
                *refused.entry(fault.to_string().chars().take(60).collect::<String>()).or_insert(0) += 1;
                continue;
            }
        };
        asked += 1;
        let circuits = Circuits::new(&question);
        let widths = Side::BOTH.map(|side| question.bits(side));
        let size = pick(&mut prg, &[1, 2, 5, 13]);
        let mut rows: Vec<Row> = Vec::new();
        for _ in 0..size {
            let common = prg.below(4) > 0;
            let blocks = match common {
                true => Side::BOTH.map(|side| wide_block(&question, side, &mut prg)),
                false => [prg.block().to_u128(), prg.block().to_u128()],
            };
            rows.push((blocks, common));
        }
        let joined: Vec<[u128; 2]> = rows.iter().filter(|row| row.1).map(|row| row.0).collect();
        let edges: Vec<u64> =
            question.noise.iter().flatten().flat_map(|words| [words - 1, *words, 0, u64::MAX]).collect();
        let (seed, mode) = (prg.block(), prg.below(4));
        let words = || {
            let mut words = Prg::from_seed(seed);
            let edges = edges.clone();
            move || {
                match mode {
                    0 => 0,
                    // Only what is added, then only what is subtracted.
                    1 => {
                        if words.below(2) == 0 {
                            u64::MAX
                        } else {
                            0
                        }
                    }
                    2 => edges[words.below(edges.len() as u64) as usize],
                    _ => words.block().low(),
                }
            }
        };
        let expected: Vec<Shown> = question
            .answer(&joined, &mut words())
            .into_iter()
            .map(|(group, values)| Shown { group, values })
            .collect();
        let found = folded_in_the_clear(&circuits, &rows, widths, &mut words());
        assert_eq!(found, expected, "{text}, {size} rows, mode {mode}");
        // Everything opened is rendered without a panic.
        for shown in &found {
            question.render(shown.group, &shown.values);
        }
    }
    assert!(asked * 3 > ROUNDS, "{refused:#?}");
}

/// Steps at the ends of every width, with halves, and every unit that a question may have.
#[test]
fn steps_at_the_ends_of_every_width() {
    let mut prg = Prg::from_seed(Block::new(11));
    for width in [1u32, 2, 3, 20, 33, 63, 64, 65, 90, 99, 100, 101, 103] {
        for scale in [0u32, 2, 18, 28] {
            for step in [2i128, 3, 7, 10, 1000, 999_999_937, 1_000_000_000] {
                let unit = step * 10i128.pow(scale);
                let mut b = Builder::new();
                let input = b.input(width).as_int();
                let count = crate::job::query::circuit::steps(&mut b, &input, unit).as_uint();
                let circuit = b.finish(&[count]).unwrap();
                let (least, most) = (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1);
                let mut values = vec![least, least + 1, most, most - 1, 0, -1];
                for k in [0, 1, 2, 3, most / unit, most / unit - 1] {
                    for d in [-1, 0, 1] {
                        values.extend([k * unit + unit / 2 + d, -(k * unit + unit / 2) + d, k * unit + d]);
                    }
                }
                for _ in 0..8 {
                    values.push((prg.block().to_u128() as i128) >> (128 - width));
                }
                for value in values.into_iter().filter(|v| least <= *v && *v <= most) {
                    let found = &evaluate(&circuit, &[bits(value as u128, width as usize)])[0];
                    let found = crate::job::query::circuit::signed(found);
                    let rest = value.abs() % unit;
                    let expected = value.signum() * (value.abs() / unit + i128::from(rest >= unit - rest));
                    assert_eq!(found, expected, "{value} of {width} bits in steps of {unit}");
                }
            }
        }
    }
}

/// The product of measures whose noise has many digits.
#[test]
fn having_products_with_wide_noise() {
    let n: Vec<String> =
        (0..60).map(|i| format!("COUNT(CASE WHEN a.x > {i} AND b.y > {i} THEN 1 END)")).collect();
    let text = format!(
        "SELECT {} FROM ours a JOIN theirs b ON a.k = b.k HAVING COUNT(*) * {} * {} * {} > 3 WITH NOISE EPSILON 0.000001",
        n.join(", "),
        n[0],
        n[1],
        n[2]
    );
    let question = parse(&text).unwrap();
    let circuits = Circuits::new(&question);
    let widths = Side::BOTH.map(|side| question.bits(side));
    for seed in 0..6 {
        let words = || {
            let mut words = Prg::from_seed(Block::new(seed));
            move || words.block().low()
        };
        let expected: Vec<Shown> = question
            .answer(&[], &mut words())
            .into_iter()
            .map(|(group, values)| Shown { group, values })
            .collect();
        let found = folded_in_the_clear(&circuits, &[([0, 0], false)], widths, &mut words());
        assert_eq!(found, expected);
    }
}

/// What the peer is said to learn of a question with noise: every group is shown where HAVING says no number.
#[test]
fn what_the_peer_learns_is_said_as_it_is() {
    let text = "SELECT b.g, COUNT(*) AS n FROM ours a JOIN theirs b ON a.k = b.k WHERE b.g IN ('u', 'v') GROUP BY b.g WITH NOISE EPSILON 1";
    let question = parse(text).unwrap();
    assert_eq!(question.answer(&[], &mut || u64::MAX).len(), 2);
    let job = Job::new(question, Side::Ours, Learns::Peer, Normalisation::default()).unwrap();
    let words = job.will_learn(7);
    assert!(!words.contains("which groups do not have"), "{words}");
}

/// Several rows of one key end a side's run; with noise that must not depend on one key that the text names.
#[test]
fn rows_of_a_chosen_key_do_not_end_a_run_with_noise() {
    let text = "SELECT COUNT(*) AS n FROM ours a JOIN theirs b ON a.mail = b.mail WHERE a.mail = 'ann@example.org' \
                HAVING COUNT(*) >= 10 WITH NOISE EPSILON 0.1";
    let job = Job::new(parse(text).unwrap(), Side::Ours, Learns::Peer, Normalisation::default()).unwrap();
    assert!(job.check().is_ok());
    let ends = |rows: &[(usize, &str)]| {
        let mut gathered = job.gather(2, false);
        rows.iter().any(|(key, mail)| gathered.add(*key, &[Some(mail)]).is_err())
    };
    let (ann, bob) = ((0, "ann@example.org"), (1, "bob@example.org"));
    assert!(!ends(&[bob, bob, ann]));
    assert!(!ends(&[bob, bob, ann, ann]), "the run ends if and only if ann has two rows");
}

/// Whole runs, the noise of which is of the distribution that the text says: by chi-square, with half of the runs' results
/// to either side.
#[test]
fn noise_of_whole_runs_is_of_its_distribution() {
    const RUNS: u64 = 60;
    let text = "SELECT COUNT(*) FROM ours a JOIN theirs b ON a.k = b.k WITH NOISE EPSILON 0.7";
    let question = parse(text).unwrap();
    let elements: Vec<Vec<u8>> = (0..3_u64).map(|at| at.to_le_bytes().to_vec()).collect();
    let mut times = std::collections::BTreeMap::new();
    for at in 0..RUNS {
        let (mut first, mut second) = tacit_net::memory::pair();
        let run = |side: Side, channel: &mut Channel| {
            let rows = Rows::of(vec![Block::new(1); 3]);
            let learns = if (side == Side::Ours) == (at % 2 == 0) { Learns::Me } else { Learns::Peer };
            let job = Job {
                least: 0,
                ..Job::new(question.clone(), side, learns, Normalisation::default()).unwrap()
            };
            let base = tacit_ot::base::default();
            job.run(std::slice::from_mut(channel), &*base, &elements, &rows, 1 << 20, &()).unwrap().shown
        };
        let (a, b) = std::thread::scope(|scope| {
            let ours = scope.spawn(|| run(Side::Ours, &mut first));
            let theirs = run(Side::Theirs, &mut second);
            (ours.join().unwrap(), theirs)
        });
        let z = a.or(b).unwrap()[0].values[0].unwrap() - 3;
        *times.entry(z.clamp(-5, 5)).or_insert(0u64) += 1;
    }
    let chance = |z: i128| {
        let tail = if z.abs() == 5 { 1.0 / (1.0 + (-0.7f64).exp()) } else { (0.35f64).tanh() };
        tail * (-0.7 * z.abs() as f64).exp()
    };
    let chi: f64 = (-5..=5)
        .map(|z| {
            let expected = RUNS as f64 * chance(z);
            (*times.get(&z).unwrap_or(&0) as f64 - expected).powi(2) / expected
        })
        .sum();
    assert!(chi < 10.0 + 7.0 * 20f64.sqrt(), "{chi}: {times:?}");
}
