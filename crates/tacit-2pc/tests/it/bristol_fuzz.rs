//! The Bristol reader on mutated and made-up files, guided by its answers: a file with an answer not seen
//! before joins the corpus that later files are made from. 20,000 files, and 1,500,000 in the long tests.

use std::collections::{BTreeMap, BTreeSet};
use tacit_2pc::circuit::bristol::{self, Format};
use tacit_2pc::circuit::{Circuit, evaluate_words, named};
use tacit_crypto::{Block, Prg};

const CASES: usize = if cfg!(feature = "long-tests") { 1_500_000 } else { 20_000 };

/// Numbers at the edges of what the reader takes.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "7",
    "16",
    "255",
    "16777216",
    "16777217",
    "2147483648",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "-1",
    "+1",
    "01",
    "0x1",
    "",
    "1e3",
];
const KINDS: &[&str] = &["XOR", "AND", "INV", "NOT", "XNOR", "EQ", "EQW", "MAND", "OR", "and", "É"];

fn pick<'a, T: ?Sized>(prg: &mut Prg, from: &[&'a T]) -> &'a T {
    from[prg.below(from.len() as u64) as usize]
}

/// A file that is right but for chance: its wires may be used before they are made, or twice.
fn made_up(prg: &mut Prg) -> String {
    let (inputs, gates) = (1 + prg.below(6), prg.below(12));
    let (mut body, mut wire) = (String::new(), inputs);
    for _ in 0..gates {
        let mut any = || prg.below(wire + u64::from(wire > 8));
        let (a, b, c, d) = (any(), any(), any(), any());
        body += &match prg.below(7) {
            0 => format!("2 1 {a} {b} {wire} XOR\n"),
            1 => format!("2 1 {a} {b} {wire} AND\n"),
            2 => format!("1 1 {a} {wire} INV\n"),
            3 => format!("2 1 {a} {b} {wire} XNOR\n"),
            4 => format!("1 1 {} {wire} EQ\n", a % 2),
            5 => format!("1 1 {a} {wire} EQW\n"),
            _ => {
                wire += 1;
                format!("4 2 {a} {b} {c} {d} {} {wire} MAND\n", wire - 1)
            }
        };
        wire += 1;
    }
    let outputs = 1 + prg.below(wire);
    let head = if prg.bit() {
        format!("1 {inputs}\n1 {outputs}\n")
    } else if prg.bit() {
        format!("{inputs} 0 {outputs}\n")
    } else {
        format!("2 {} 1\n2 {outputs} 0\n", inputs - 1)
    };
    format!("{gates} {wire}\n{head}\n{body}")
}

/// One change: of a byte, of a token, of a line, or the joining of two files.
fn mutate(text: &mut String, other: &str, prg: &mut Prg) {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let line = prg.below(lines.len().max(1) as u64) as usize;
    if lines.is_empty() {
        *text = other.to_owned();
        return;
    }
    match prg.below(8) {
        0..=2 => {
            let mut tokens: Vec<&str> = lines[line].split(' ').collect();
            let at = prg.below(tokens.len() as u64) as usize;
            let near;
            tokens[at] = match prg.below(4) {
                0 => pick(prg, KINDS),
                1 => pick(prg, NUMBERS),
                _ => {
                    let number: i64 = tokens[at].parse().unwrap_or(0);
                    near = (number + prg.below(5) as i64 - 2).to_string();
                    &near
                }
            };
            lines[line] = tokens.join(" ");
        }
        3 => lines.insert(line, lines[prg.below(lines.len() as u64) as usize].clone()),
        4 => drop(lines.remove(line)),
        5 => {
            let with = prg.below(lines.len() as u64) as usize;
            lines.swap(line, with);
        }
        6 => {
            let rest = other.lines().skip(prg.below(8) as usize).map(str::to_owned);
            lines.truncate(line);
            lines.extend(rest);
        }
        _ => {
            let mut bytes = std::mem::take(text).into_bytes();
            let at = prg.below(bytes.len().max(1) as u64) as usize;
            match (prg.below(4), bytes.is_empty()) {
                (0, false) => bytes[at] = prg.below(256) as u8,
                (1, false) => drop(bytes.remove(at)),
                (2, false) => bytes.truncate(at),
                _ => bytes.insert(at.min(bytes.len()), b"0123456789 \n\t\r-"[prg.below(15) as usize]),
            }
            *text = String::from_utf8_lossy(&bytes).into_owned();
            return;
        }
    }
    *text = lines.join("\n");
}

/// What the reader said, without the numbers and what it quotes.
fn answer(result: &Result<Circuit, bristol::BristolError>) -> String {
    match result {
        Ok(circuit) => {
            let stats = circuit.stats();
            let shape = circuit.shape();
            let has = [stats.and > 0, stats.xor > 0, stats.inv > 0];
            format!("circuit {has:?} {} {}", shape.inputs.len().min(3), shape.outputs.len().min(3))
        }
        Err(error) => {
            let unquoted: String = error.what.split('"').step_by(2).collect();
            unquoted.chars().filter(|c| !c.is_ascii_digit()).collect()
        }
    }
}

/// What must hold of every circuit that was read: it computes, and its own file reads as the same function.
fn check(circuit: &Circuit, prg: &mut Prg) {
    if circuit.shape().input_bits() > 1 << 12 {
        return;
    }
    let inputs: Vec<[u64; 2]> = (0..circuit.shape().input_bits()).map(|_| [prg.u64(), prg.u64()]).collect();
    let outputs = evaluate_words(circuit, &inputs);
    assert_eq!(outputs.len(), circuit.shape().output_bits());
    let text = bristol::write(circuit, Format::Fashion).unwrap();
    let again = bristol::read(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(again.shape(), circuit.shape());
    assert!(evaluate_words(&again, &inputs) == outputs, "{text}");
}

#[test]
fn the_bristol_reader_withstands_mutated_and_made_up_files() {
    let mut prg = Prg::from_seed(Block::new(0xb7157));
    let add = named::find("add8").unwrap().circuit;
    let mut corpus: Vec<String> =
        [Format::Old, Format::Fashion].map(|format| bristol::write(&add, format).unwrap()).into();
    let mut answers: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..CASES {
        let any = |prg: &mut Prg| prg.below(corpus.len() as u64) as usize;
        let other = any(&mut prg);
        let mut text = if prg.below(4) == 0 { made_up(&mut prg) } else { corpus[any(&mut prg)].clone() };
        for _ in 0..prg.below(5) {
            mutate(&mut text, &corpus[other], &mut prg);
        }
        let result = bristol::read(&text);
        match &result {
            Ok(circuit) => check(circuit, &mut prg),
            Err(error) => {
                assert!((1..=text.lines().count().max(1)).contains(&error.line), "{error}\n{text}");
            }
        }
        let seen = answers.entry(answer(&result)).or_default();
        *seen += 1;
        if *seen == 1 && text.len() < 1 << 12 {
            corpus.push(text);
        }
    }
    // Every error that the reader knows came up, or the search is too narrow.
    let errors: BTreeSet<&str> =
        answers.keys().map(String::as_str).filter(|a| !a.starts_with("circuit")).collect();
    let good: usize = answers.iter().filter(|(a, _)| a.starts_with("circuit")).map(|(_, n)| n).sum();
    for part in [
        "ends before the line of",
        "not a circuit in a Bristol format",
        "three numbers expected",
        "do not fit the file",
        "more than the  gates",
        "ends after",
        "a number below",
        "widths announced",
        "more than  bits",
        "a gate is two counts",
        "wires announced",
        "unknown gate",
        "does not take",
        "the constant",
        "there is no wire",
        "read before it is written",
        "written twice",
        "never written",
    ] {
        assert!(errors.iter().any(|error| error.contains(part)), "never seen: {part}; seen: {errors:#?}");
    }
    assert!(good > CASES / 20, "{good} of {CASES} files were circuits");
}
