//! Circuits, programs and the values that go into them.

use crate::{Target, first, text};
use tacit::query::{MOST_BITS, Side};
use tacit_2pc::Owner;
use tacit_2pc::circuit::bristol::{self, Format};
use tacit_2pc::circuit::value::{self, Field};
use tacit_2pc::circuit::{Circuit, Order, Plan, evaluate_words};

pub(crate) const CIRCUITS_TARGETS: &[Target] = &[
    Target {
        name: "bristol",
        run: bristol_file,
        longest: 4096,
        words: &[
            b" XOR\x0a",
            b" AND\x0a",
            b" INV\x0a",
            b" XNOR\x0a",
            b" EQ\x0a",
            b" EQW\x0a",
            b" MAND\x0a",
            b"2 1 ",
            b"1 1 ",
        ],
    },
    Target {
        name: "garble",
        run: program,
        longest: 1024,
        words: &[
            b"pub fn main(",
            b"fn ",
            b"let mut ",
            b"for ",
            b" in ",
            b"match ",
            b"struct ",
            b"enum ",
            b"const ",
            b"usize",
            b"u8",
            b"i64",
            b"bool",
            b"if ",
            b"else",
            b"as ",
            b"..",
            b"::",
            b"=>",
            b"/*",
            b"*/",
            b"//",
            b"true",
            b"join ",
        ],
    },
    Target {
        name: "question",
        run: question,
        longest: 1024,
        words: &[
            b"SELECT ",
            b"COUNT(*)",
            b"SUM(CLIP(a.x, 0, 9))",
            b" FROM ours a JOIN theirs b ON a.k = b.k",
            b" WHERE ",
            b" GROUP BY ",
            b" HAVING ",
            b"CASE WHEN ",
            b" THEN ",
            b" ELSE ",
            b" END",
            b" BETWEEN ",
            b" IN (",
            b" IS NULL",
            b"COALESCE(",
            b"DATE '2026-01-01'",
            b"CAST(",
            b"a.\"d:decimal2\"",
        ],
    },
    Target {
        name: "values",
        run: values,
        longest: 256,
        words: &[b"0x", b"-", b"-0x", b"18446744073709551616"],
    },
];

/// Deterministic pseudo-random words.
fn words(count: usize) -> Vec<[u64; 1]> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        [state]
    };
    (0..count).map(|_| next()).collect()
}

/// What a circuit gives; nothing where its file declares more inputs than a run should have.
fn gives(circuit: &Circuit) -> Option<Vec<[u64; 1]>> {
    let bits = circuit.shape().input_bits();
    (bits <= 1 << 12).then(|| evaluate_words(circuit, &words(bits)))
}

/// A circuit in either format: written and read again it gives the same, and so does its plan.
fn bristol_file(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let Ok(circuit) = bristol::read(text) else { return };
    let Some(given) = gives(&circuit) else { return };
    for format in [Format::Old, Format::Fashion] {
        let Some(written) = bristol::write(&circuit, format) else { continue };
        let again = bristol::read(&written).expect("what was written is read");
        assert!(gives(&again).is_some_and(|again| again == given), "a circuit is written otherwise");
    }
    for order in [Order::Layered, Order::Sequential] {
        let plan = Plan::new(&circuit, order);
        assert_eq!(plan.input_bits(), circuit.shape().input_bits());
        assert_eq!(plan.outputs().len(), circuit.shape().output_bits());
        assert!(
            plan.outputs().iter().all(|slot| (*slot as usize) < plan.slots()),
            "an output without a slot"
        );
        assert!(plan.ands() <= circuit.gates().len() as u64, "more gates than the circuit has");
    }
}

/// A program: compiled twice it is the same, and its results are literals that it takes.
fn program(bytes: &[u8]) {
    let Some(source) = text(bytes) else { return };
    // What a person may ask for takes longer than a run of a fuzzer should.
    let digits = source.as_bytes().split(|byte| !byte.is_ascii_digit() && *byte != b'_');
    if digits.map(<[u8]>::len).max() > Some(2) {
        return;
    }
    let options = tacit_lang::Options::default();
    let Ok(program) = tacit_lang::compile(source, &options) else { return };
    let circuit = program.function();
    assert_eq!(circuit.fields(Owner::Garbler).len(), program.parameters(Owner::Garbler).len());
    let again = tacit_lang::compile(source, &options).expect("what was compiled is compiled");
    assert_eq!(again.digest(), program.digest());
    for owner in [Owner::Garbler, Owner::Evaluator] {
        let _ = program.parse(owner, source);
    }
}

/// Numbers as people write them, for a few fields: what was read is written, and read again.
fn values(bytes: &[u8]) {
    let (kind, rest) = first(bytes);
    let Some(text) = text(rest) else { return };
    let fields = match kind % 5 {
        0 => vec![Field::number("a", 8)],
        1 => vec![Field::signed("a", 64), Field::number("b", 1)],
        2 => vec![Field::list("a", 16, 3)],
        3 => vec![Field::signed("a", 7), Field::flag("b")],
        _ => vec![Field::number("a", 200)],
    };
    let Ok(read) = value::parse(&fields, text) else { return };
    for format in [value::Format::Decimal, value::Format::Hex] {
        let written: Vec<String> =
            fields.iter().zip(&read).map(|(field, bits)| value::format(field, bits, format)).collect();
        let again = value::parse(&fields, &written.join(","));
        assert!(again.is_ok_and(|again| again == read), "a value is written otherwise than it was read");
    }
}

/// A question's canonical text is the same question, and what its sides put in is read where it was written.
fn question(bytes: &[u8]) {
    let Some(Ok(question)) = text(bytes).map(tacit::query::parse) else { return };
    let again = tacit::query::parse(&question.text);
    assert!(again.is_ok_and(|again| again.text == question.text), "a text is another question than it was");
    for side in Side::BOTH {
        assert!(question.bits(side) <= MOST_BITS);
        for cell in [None, Some("1"), Some("x"), Some("2026-01-31")] {
            let cells = vec![cell; question.tables[side as usize].columns.len()];
            if let Ok(Some(block)) = question.row(side, &cells) {
                assert!(block & 1 == 1 && block.checked_shr(question.bits(side)).unwrap_or(0) == 0);
            }
        }
    }
    for (group, values) in question.answer(&[[1, 1], [0, 0], [u128::MAX, u128::MAX]], &mut || 7) {
        assert_eq!(question.render(group, &values).len(), question.outputs.len());
    }
}

pub(crate) fn whole() -> Vec<(&'static str, Vec<u8>)> {
    let files = [
        "3 7\n2 2 2\n1 1\n\n2 1 0 1 4 XOR\n2 1 2 3 5 AND\n1 1 5 6 INV\n",
        "3 7\n2 2 1\n\n2 1 0 1 4 XOR\n2 1 2 3 5 AND\n2 1 4 5 6 XNOR\n",
        "4 9\n1 4\n1 3\n\n4 2 0 1 2 3 4 5 MAND\n1 1 1 6 EQ\n1 1 4 7 EQW\n2 1 5 6 8 AND\n",
    ];
    let mut out: Vec<_> = files.into_iter().map(|file| ("bristol", file.as_bytes().to_vec())).collect();
    for source in [
        "pub fn main(a: u8, b: u8) -> u8 { a + b }",
        "const N: usize = 4usize;\npub fn main(a: [u8; N], b: [u8; N]) -> u8 {\n let mut s = 0u8;\n \
         for x in a { s = s ^ x; }\n for i in 0..4 { s = if b[i] > s { b[i] } else { s }; }\n s }",
        "struct B { a: u8, v: bool }\nenum W { N, By(u8) }\npub fn main(a: B, b: B) -> W { match (a.v, b.a) { \
         (true, 0u8) => W::N, (_, x) => W::By(x) } } // more",
    ] {
        out.push(("garble", source.as_bytes().to_vec()));
    }
    for text in [
        r#"SELECT COUNT(*) FROM ours a JOIN theirs b ON a.k = b.k"#,
        r#"select b.g, sum(clip(a.x, -3, 9)) as s, avg(clip(b.y, 0, 1)) from theirs as b join ours a on b.k = a.k -- one
where b.g in ('u', 'it''s') and (a.x > 1 or b.y is null) group by b.g having count(*) >= 2 and max(clip(a.x, 0, 3)) < 3;"#,
        r#"SELECT CASE WHEN a.h < 2 THEN 1 ELSE 2 END AS c, MIN(CLIP(b."d:date", DATE '2026-01-01', DATE '2026-12-31')) FROM ours a JOIN theirs b ON a."t:phone:NL" = b."p:phone" GROUP BY CASE WHEN a.h < 2 THEN 1 ELSE 2 END"#,
        r#"SELECT SUM(COALESCE(CLIP(a."m:decimal2", 0, 9.99), 1) * CLIP(b.y, -4, 4)) AS v FROM ours a JOIN theirs b ON a.k = b.k WHERE CLIP(a.x, 0, 9) BETWEEN 1 AND CLIP(b.y, 0, 9) AND a.n LIKE 'x%'"#,
    ] {
        out.push(("question", text.as_bytes().to_vec()));
    }
    for (kind, typed) in (0..).zip(["255", "-5, 1", "1,2 0xff", "-64,0", "0x1f00000000000000000000"]) {
        out.push(("values", [&[kind], typed.as_bytes()].concat()));
    }
    out
}
