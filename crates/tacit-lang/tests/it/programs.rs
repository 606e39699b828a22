//! Programs, by our circuits in the clear, against the language's own compiler and evaluator.

use garble_lang::circuit::Circuit as TheirCircuit;
use garble_lang::circuit_type::CircuitType;
use tacit_2pc::Owner;
use tacit_2pc::circuit::evaluate;
use tacit_lang::{Options, compile};

/// What ours makes of the literals, with its faults; and what the compiler's circuit does, or `None` where it
/// stops.
fn both(source: &str, ours: &str, theirs: &str) -> (String, Vec<&'static str>, Option<String>) {
    let program = compile(source, &Options::default()).unwrap();
    let mut inputs = program.parse(Owner::Garbler, ours).unwrap();
    inputs.extend(program.parse(Owner::Evaluator, theirs).unwrap());
    let outputs = evaluate(&program.function().circuit, &inputs);
    let reference = garble_lang::compile(source).unwrap();
    let mut evaluator = reference.evaluator();
    let literals = split(ours).into_iter().chain(split(theirs));
    literals.for_each(|literal| evaluator.parse_literal(&literal).unwrap());
    let result = evaluator.run().unwrap().into_literal().ok();
    let shown = result.map(|literal| {
        // The compiler writes types behind numbers; our reader takes them and our writer leaves them out.
        let text = format!("pub fn main(x: u8) -> {} {{ {literal} }}", program.output());
        let definitions = source.replace("pub fn main", "pub fn unused");
        let again = compile(&format!("{definitions}\n{text}"), &Options::default()).unwrap();
        let nothing = again.parse(Owner::Garbler, "0").unwrap();
        again.format(&evaluate(&again.function().circuit, &nothing))
    });
    let text = program.format(&outputs);
    assert!(text.len() <= program.longest(), "{text} is longer than {}", program.longest());
    (text, program.faults(&outputs), shown)
}

/// The literals of a list, split at the commas outside of brackets.
fn split(list: &str) -> Vec<String> {
    let (mut depth, mut out) = (0, vec![String::new()]);
    for c in list.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        match (c, depth) {
            (',', 0) => out.push(String::new()),
            _ => out.last_mut().unwrap().push(c),
        }
    }
    out.retain(|literal| !literal.trim().is_empty());
    out
}

fn agree(source: &str, ours: &str, theirs: &str, expected: &str) {
    let (found, faults, reference) = both(source, ours, theirs);
    assert_eq!((found.as_str(), &faults[..]), (expected, &[][..]), "{source}\n{ours} | {theirs}");
    assert_eq!(reference.as_deref(), Some(expected), "{source}\n{ours} | {theirs}");
}

fn faulty(source: &str, ours: &str, theirs: &str, expected: &[&str]) {
    let (_, faults, reference) = both(source, ours, theirs);
    assert_eq!(faults, expected, "{source}\n{ours} | {theirs}");
    assert_eq!(reference, None, "{source}\n{ours} | {theirs}");
}

#[test]
fn arithmetic_of_every_width_agrees_with_the_languages_own() {
    for ty in ["u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64"] {
        let signed = ty.starts_with('i');
        let pairs: &[(i64, i64)] = if signed {
            &[(-7, 3), (-100, -27), (5, -5), (0, 1), (127, -1)]
        } else {
            &[(7, 3), (200, 55), (5, 5)]
        };
        for &(x, y) in pairs {
            for (op, value) in [
                ("x / y", Some(x / y)),
                ("x % y", Some(x % y)),
                ("x & y", Some(x & y)),
                ("x ^ y", Some(x ^ y)),
                ("x + y", x.checked_add(y)),
                ("x * y", x.checked_mul(y)),
                ("x - y", x.checked_sub(y)),
            ] {
                let source = format!("pub fn main(x: {ty}, y: {ty}) -> {ty} {{ {op} }}");
                let bits: u32 = ty[1..].parse().unwrap();
                let fits = value.filter(|&v| match (signed, bits) {
                    (_, 64) => signed || v >= 0,
                    (true, _) => (-(1i64 << (bits - 1))..1 << (bits - 1)).contains(&v),
                    (false, _) => (0..1i64 << bits).contains(&v),
                });
                match fits {
                    Some(value) => agree(&source, &x.to_string(), &y.to_string(), &value.to_string()),
                    None => faulty(&source, &x.to_string(), &y.to_string(), &["overflow"]),
                }
            }
            for (op, value) in [("x < y", x < y), ("x > y", x > y), ("x == y", x == y), ("x != y", x != y)] {
                let source = format!("pub fn main(x: {ty}, y: {ty}) -> bool {{ {op} }}");
                agree(&source, &x.to_string(), &y.to_string(), &value.to_string());
            }
        }
    }
}

#[test]
fn what_the_language_lets_pass_is_a_fault_where_it_is_one_in_rust() {
    // The language's own circuit gives -128 here without a word.
    for (op, x, y) in [("x / y", "-128", "-1"), ("-x + y - y", "-128", "0"), ("x * y", "16", "8")] {
        let source = format!("pub fn main(x: i8, y: i8) -> i8 {{ {op} }}");
        assert_eq!(both(&source, x, y).1, ["overflow"], "{op}");
    }
}

#[test]
fn faults_count_only_on_the_path_that_is_taken() {
    let divide = "pub fn main(x: u32, y: u32) -> u32 { if y == 0u32 { 9u32 } else { x / y } }";
    agree(divide, "8", "0", "9");
    agree(divide, "8", "2", "4");
    let short = "pub fn main(x: u32, y: u32) -> bool { (y != 0u32) && (x / y > 1u32) }";
    agree(short, "8", "0", "false");
    agree(short, "8", "3", "true");
    let either = "pub fn main(x: u32, y: u32) -> bool { (y == 0u32) || (x / y > 1u32) }";
    agree(either, "8", "0", "true");
    agree(either, "8", "8", "false");
    faulty("pub fn main(x: u32, y: u32) -> u32 { x / y }", "8", "0", &["division by zero"]);
    let index = "pub fn main(x: [u8; 5], i: usize) -> u8 { x[i] }";
    for i in 0..5 {
        agree(index, "[10, 11, 12, 13, 14]", &i.to_string(), &(10 + i).to_string());
    }
    faulty(index, "[10, 11, 12, 13, 14]", "5", &["index out of bounds"]);
    faulty(index, "[10, 11, 12, 13, 14]", "4294967295", &["index out of bounds"]);
    let clause =
        "enum E { A(u8), B } pub fn main(e: E, y: u8) -> u8 { match e { E::A(x) => x / y, E::B => y } }";
    agree(clause, "E::B", "0", "0");
    agree(clause, "E::A(9)", "2", "4");
    faulty(clause, "E::A(9)", "0", &["division by zero"]);
}

#[test]
fn assignments_inside_branches_reach_what_is_behind_them() {
    let source = "struct P { x: u8, y: [u16; 3] }
        pub fn main(i: usize, c: bool) -> ([P; 2], u8) {
            let mut p = [P { x: 1u8, y: [0u16; 3] }; 2];
            let mut n = 0u8;
            for k in 0usize..3usize {
                if c { p[1].y[i] = p[1].y[i] + 5u16; n = n + 1u8; } else { p[0].x = p[0].x + 2u8; }
                match i { 0usize => { n = 7u8; } 1usize..=2usize => { p[i - 1usize].y[k] = 3u16; } _ => {} }
            }
            (p, n)
        }";
    let shown = |p0: &str, p1: &str, n: u8| format!("([P {{ {p0} }}, P {{ {p1} }}], {n})");
    agree(source, "0", "true", &shown("x: 1, y: [0, 0, 0]", "x: 1, y: [15, 0, 0]", 7));
    agree(source, "1", "true", &shown("x: 1, y: [3, 3, 3]", "x: 1, y: [0, 15, 0]", 3));
    agree(source, "2", "false", &shown("x: 7, y: [0, 0, 0]", "x: 1, y: [3, 3, 3]", 0));
    // The language's own circuit loses this one behind the match.
    assert_eq!(both(source, "3", "true").1, ["index out of bounds"]);
    agree(source, "3", "false", &shown("x: 7, y: [0, 0, 0]", "x: 1, y: [0, 0, 0]", 0));
}

#[test]
fn what_was_widened_before_is_computed_narrowly_and_exactly() {
    for (from, to) in [("i8", "i16"), ("i8", "i64"), ("u8", "u16"), ("u8", "i32"), ("i8", "i8"), ("u8", "u8")]
    {
        let ops = "(x as T + y as T, x as T - y as T, x as T * y as T, x as T / y as T, x as T % y as T)";
        let source = format!(
            "pub fn main(x: {from}, y: {from}) -> ({to}, {to}, {to}, {to}, {to}) {{ {} }}",
            ops.replace('T', to)
        );
        let program = compile(&source, &Options::default()).unwrap();
        let (low, high): (i64, i64) = if from == "i8" { (-128, 127) } else { (0, 255) };
        let bits: u32 = to[1..].parse().unwrap();
        let fits = |v: i64| match to.starts_with('i') {
            true => bits == 64 || (-(1i64 << (bits - 1))..1 << (bits - 1)).contains(&v),
            false => (0..1i64 << bits).contains(&v),
        };
        for x in [low, low + 1, -3, -1, 0, 1, 2, 90, high - 1, high].into_iter().filter(|x| *x >= low) {
            for y in [low, low + 1, -2, -1, 1, 3, 100, high].into_iter().filter(|y| *y >= low && *y != 0) {
                let expected = [x + y, x - y, x * y, x / y, x % y];
                let mut inputs = program.parse(Owner::Garbler, &x.to_string()).unwrap();
                inputs.extend(program.parse(Owner::Evaluator, &y.to_string()).unwrap());
                let outputs = evaluate(&program.function().circuit, &inputs);
                let overflows = !expected.iter().all(|&v| fits(v));
                assert_eq!(!program.faults(&outputs).is_empty(), overflows, "{from} {to} {x} {y}");
                if !overflows {
                    let shown: Vec<String> = expected.iter().map(i64::to_string).collect();
                    let expected = format!("({})", shown.join(", "));
                    assert_eq!(program.format(&outputs), expected, "{from} {to} {x} {y}");
                }
            }
        }
    }
}

#[test]
fn casts_shifts_ranges_and_calls_agree() {
    let casts = "pub fn main(x: i8, y: u8) -> (i32, u8, u64) { (x as i32, x as u8, y as u64) }";
    // The language's own circuit extends a sign at the wrong end.
    assert_eq!(both(casts, "-3", "200").0, "(-3, 253, 200)");
    agree(casts, "3", "200", "(3, 3, 200)");
    let shifts = "pub fn main(x: i16, y: u8) -> (i16, i16, u16) { (x << y, x >> y, (x as u16) >> y) }";
    for (x, y) in [(-5i16, 0u32), (-5, 1), (300, 7), (-30000, 15), (1, 8)] {
        let expected = format!("({}, {}, {})", x << y, x >> y, (x as u16) >> y);
        agree(shifts, &x.to_string(), &y.to_string(), &expected);
    }
    faulty(shifts, "1", "16", &["overflow"]);
    let ranges = "pub fn main(x: i32, y: u8) -> (u8, u8) {
        (match x { -5i32..=5i32 => 1u8, 6i32..=100i32 => 2u8, _ => 3u8 }, match y { 0u8..=9u8 => 1u8, 10u8 => 2u8, _ => 3u8 }) }";
    for (x, y, a, b) in
        [(-6, 9, 3, 1), (-5, 10, 1, 2), (5, 11, 1, 3), (6, 255, 2, 3), (100, 0, 2, 1), (101, 0, 3, 1)]
    {
        agree(ranges, &x.to_string(), &y.to_string(), &format!("({a}, {b})"));
    }
    let calls = "fn f(x: u8, n: u8) -> u8 { let x = x + n; g(x) } fn g(x: u8) -> u8 { x * 2u8 }
        pub fn main(x: u8, y: u8) -> u8 { let n = 3u8; f(x, n) + f(y, 1u8) }";
    agree(calls, "5", "7", "32");
}

#[test]
fn errors_are_one_line_each_and_name_the_line() {
    for (source, parts) in [
        ("pub fn main(x: u8, y: u8) -> u8 {\n  x + z\n}", &["line 2: ", "z"][..]),
        ("pub fn main(x: u8, y: u8) -> u8 {\n  x +\n}", &["line 3: ", "expression"]),
        ("pub fn main(x: u8, y: u8) -> u8 {\n  x ~ y\n}", &["line 2: "]),
        ("pub fn main(x: u8, y: u8) -> u8 {\n  f(x)\n}\nfn f(x: u8) -> u16 {\nx\n}", &["line 5: ", "u16"]),
        ("pub fn other(x: u8) -> u8 { x }", &["no function main", "other"]),
        ("const N: usize = A::N;\npub fn main(x: [u8; N], y: u8) -> u8 { y }", &["line 1: ", "A::N=VALUE"]),
        ("pub fn main(x: [u8; 4000000000], y: u8) -> u8 { y }", &["line 1: ", "bits"]),
        (
            "struct A { a: B, b: B } struct B { a: C, b: C } struct C { a: [[u64; 60000]; 60000] }\npub fn main(x: A) -> u8 { 1u8 }",
            &["line 2: ", "bits"],
        ),
        (
            "pub fn main(x: u8, y: u8) -> u8 {\n  let mut n = x;\n  for i in 0u64..1000000000u64 { n = n ^ y; }\n  n\n}",
            &["line 3: ", "bits"],
        ),
        (
            "pub fn main(x: u64, y: u64) -> u64 {\n let mut n = x;\n for i in 0u32..60000u32 { for j in 0u32..60000u32 {\n n = (n ^ y) / 3u64; } }\n n\n}",
            &["line 4: ", "gates"],
        ),
    ] {
        let error = compile(source, &Options::default()).unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error}");
        parts.iter().for_each(|part| assert!(error.contains(part), "{error:?} does not say {part:?}"));
    }
    let deep = format!("pub fn main(x: u8) -> u8 {{ {}x{} }}", "(".repeat(100_000), ")".repeat(100_000));
    let error = compile(&deep, &Options::default()).unwrap_err().to_string();
    assert!(error.starts_with("line 1: ") && error.contains("nested"), "{error}");
}

#[test]
fn programs_that_overrun_the_languages_own_compiler_are_errors_of_the_program() {
    let main = |body: &str| format!("pub fn main(x: u8, y: u8) -> u8 {{\n{body}\n}}");
    let many = 50_000;
    // Whoever matches all pairs of numbers one by one makes the check of patterns grow without bound.
    let each =
        |n: usize| (0..n).map(|i| format!("({i}u8, {i}u8, {i}u8, {i}u8) => {i}u8,")).collect::<String>();
    let arms = format!("match (x, y, x, y) {{ {} _ => 1u8 }}", each(200));
    for (source, parts) in [
        // It read behind the end.
        ("pub fn main(x: u8) -> u8 { if true {".to_owned(), &["line 1: ", "{ is not closed"][..]),
        // It waited for ever.
        ("pub fn main(x: u8, y: u8) -> u8 {\n x } /* there".to_owned(), &["line 2: ", "comment"]),
        // It ran out of its stack, or compiled for hours.
        (main(&format!("x{}", " + y".repeat(many))), &["line 2: ", "operators in one expression"]),
        (main(&format!("{}x", "! ".repeat(many))), &["line 2: ", "operators in one expression"]),
        (main(&format!("x{}", " as u8".repeat(many))), &["line 2: ", "operators in one expression"]),
        (
            main(&format!("{} {{ x }}", "if true { y } else ".repeat(many))),
            &["line 2: ", "operators in one expression"],
        ),
        // It went on for a minute.
        (
            main("let mut n = x; for i in 0u32..60000u32 { for j in 0u32..60000u32 { n = n; } } n"),
            &["line 2: ", "too many steps"],
        ),
        (main(&arms), &[]),
    ] {
        let start = std::time::Instant::now();
        let compiled = compile(&source, &Options::default());
        // Some went on for hours, or for ever; the machine may have other work meanwhile.
        assert!(
            start.elapsed().as_secs() < 100,
            "{:?}: {}",
            start.elapsed(),
            &source[..60.min(source.len())]
        );
        let said = compiled.map_or_else(|error| error.to_string(), |_| String::new());
        assert!(!said.contains('\n'), "{said}");
        parts.iter().for_each(|part| assert!(said.contains(part), "{said:?} does not say {part:?}"));
    }
    // As much as may hang together does compile.
    let source = main(&format!("x{}", " ^ y".repeat(4_000)));
    assert!(compile(&source, &Options::default()).is_ok());
}

#[test]
fn literals_are_refused_by_place_and_never_shown() {
    let source = "struct P { x: u8, y: [i8; 2] } enum E { A, B(u8, bool) }
        pub fn main(p: P, e: E, t: (bool, u64)) -> u8 { p.x }";
    let options = Options { garbler: Some(3), ..Options::default() };
    let program = compile(source, &options).unwrap();
    let accepted = "P { y: [-128, 127], x: 0xff }, E::B(200, false), (true, 18446744073709551615u64)";
    let values = program.parse(Owner::Garbler, accepted).unwrap();
    assert_eq!(values.iter().map(|v| v.len()).collect::<Vec<_>>(), [24, 10, 65]);
    assert!(program.parse(Owner::Garbler, "P{x:1u8,y:[0;2]},A,(false,0)").is_ok());
    for (text, place) in [
        ("P { x: 256, y: [1, 2] }, E::A, (true, 1)", "p.x: a number of type u8 is expected, 0 to 255"),
        ("P { x: 99, y: [1, 128] }, E::A, (true, 1)", "p.y[1]: a number of type i8"),
        ("P { x: 99, y: [1] }, E::A, (true, 1)", "p.y: 2 values are expected, and 1 given"),
        ("P { x: 99, y: [1, 2, 3] }, E::A, (true, 1)", "p.y: 2 values are expected, and more given"),
        ("P { x: 99 }, E::A, (true, 1)", "p: y is missing"),
        ("P { x: 99, x: 99, y: [0; 2] }, E::A, (true, 1)", "p: x is given twice"),
        ("P { x: 99, y: [0; 99] }, E::A, (true, 1)", "p.y: a value of type [i8; 2] has 2 values"),
        ("P { x: 1, y: [0; 2] }, E::C99, (true, 1)", "e: one of E::A, E::B is expected"),
        ("P { x: 1, y: [0; 2] }, E::B(99), (true, 1)", "e: `,` is expected here"),
        ("P { x: 1, y: [0; 2] }, E::A", "t: missing: 3 values are expected"),
        ("P { x: 1, y: [0; 2] }, E::A, (99, 1)", "t.0: true or false is expected"),
        ("P { x: 1, y: [0; 2] }, E::A, (true, 18446744073709551616)", "t.1: a number of type u64"),
        ("P { x: 1, y: [0; 2] }, E::A, (true, 1) 99", "t: the input goes on after 3 values; remove the rest"),
        ("", "p: P { … } is expected"),
    ] {
        let error = program.parse(Owner::Garbler, text).unwrap_err().to_string();
        assert!(error.starts_with(place), "{text}: {error}");
        assert!(!error.contains("99"), "{error} shows the value");
    }
    assert!(program.parse(Owner::Evaluator, "").unwrap().is_empty());
    assert!(program.parse(Owner::Evaluator, "1").is_err());
}

#[test]
fn constants_come_from_outside_and_are_part_of_the_digest() {
    let source = "const N: usize = max(A::N, 2usize) + 1usize; const RATE: u32 = B::RATE;
        pub fn main(x: [u32; N], y: u32) -> u32 { let mut sum = y; for n in x { sum = sum + n * RATE; } sum }";
    let with = |n: &str, rate: &str| Options {
        constants: [("A::N".to_owned(), n.to_owned()), ("B::RATE".to_owned(), rate.to_owned())].into(),
        ..Options::default()
    };
    let program = compile(source, &with("3", "10")).unwrap();
    let mut inputs = program.parse(Owner::Garbler, "[1, 2, 3, 4]").unwrap();
    inputs.extend(program.parse(Owner::Evaluator, "5").unwrap());
    assert_eq!(program.format(&evaluate(&program.function().circuit, &inputs)), "105");
    let digests = [
        program.digest(),
        compile(source, &with("3", "11")).unwrap().digest(),
        compile(&source.replace("+ n", "+  n"), &with("3", "10")).unwrap().digest(),
        compile(source, &Options { garbler: Some(2), ..with("3", "10") }).unwrap().digest(),
    ];
    (0..4).for_each(|i| (0..i).for_each(|j| assert_ne!(digests[i], digests[j], "{i} {j}")));
    assert_eq!(compile(&source.replace('\n', "\r\n"), &with("3", "10")).unwrap().digest(), digests[0]);
    assert!(compile(source, &with("x", "10")).unwrap_err().to_string().starts_with("line 1: A::N: a number"));
}

fn theirs(source: &str) -> TheirCircuit {
    match garble_lang::compile(source).unwrap().circuit {
        CircuitType::Ssa(circuit) => circuit,
        CircuitType::Register(_) => unreachable!("SSA is the compiler's default"),
    }
}

/// AND gates, ours and the compiler's, of the table in `docs/use/functions.md`.
const COUNTS: &[(&str, u64, usize)] = &[
    ("u32 +", 32, 94),
    ("i32 +", 32, 94),
    ("u32 -", 32, 125),
    ("u32 *", 1116, 3967),
    ("i32 *", 1115, 4182),
    ("u64 *", 3994, 16127),
    ("u32 /", 747, 2170),
    ("i32 /", 844, 2353),
    ("u32 * 12u32", 35, 909),
    ("u32 / 100u32", 113, 828),
    ("u32 <", 32, 185),
    ("auction", 1808, 5327),
    ("salary_gap", 2984, 6222),
    ("credit_rule", 2189, 8271),
    ("calendars", 170, 170),
    ("nearest", 4157, 77219),
    ("votes", 2501, 9233),
];

fn program_called(name: &str) -> String {
    match name.split_once(' ') {
        Some((ty, op)) => {
            let out = if op == "<" { "bool" } else { ty };
            match op.split_once(' ') {
                // Both sides give a number, as programs do.
                Some((op, known)) => {
                    format!("pub fn main(x: {ty}, y: {ty}) -> {ty} {{ (x ^ y) {op} {known} }}")
                }
                None => format!("pub fn main(x: {ty}, y: {ty}) -> {out} {{ x {op} y }}"),
            }
        }
        None => {
            let path = format!("{}/../../examples/functions/{name}.garble.rs", env!("CARGO_MANIFEST_DIR"));
            std::fs::read_to_string(path).unwrap()
        }
    }
}

#[test]
fn and_gates_do_not_get_worse_and_stay_below_the_compilers() {
    let names = [
        "u32 +",
        "i32 +",
        "u32 -",
        "u32 *",
        "i32 *",
        "u64 *",
        "u32 /",
        "i32 /",
        "u32 * 12u32",
        "u32 / 100u32",
        "u32 <",
        "auction",
        "salary_gap",
        "credit_rule",
        "calendars",
        "nearest",
        "votes",
    ];
    let counts: Vec<(&str, u64, usize)> = names
        .iter()
        .map(|name| {
            let source = program_called(name);
            let ours = compile(&source, &Options::default()).unwrap().function().circuit.stats().and;
            (*name, ours, theirs(&source).and_gates())
        })
        .collect();
    assert!(counts.iter().all(|&(_, ours, theirs)| ours <= theirs as u64));
    for (found, known) in counts.iter().zip(COUNTS) {
        assert!(found.0 == known.0 && found.1 <= known.1, "{found:?}, and {known:?} is in the record");
    }
    assert_eq!(counts.len(), COUNTS.len());
}
