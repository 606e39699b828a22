//! `tacit nisc eval`: functions by files, against plain arithmetic, and what is refused.

use crate::common::{Bench, Said};

fn eval(bench: &Bench, args: &[&str]) -> Said {
    bench.run(&[&["nisc", "--overwrite", "eval"], args].concat())
}

fn ask(bench: &Bench, function: &str, input: &str, more: &[&str]) -> Said {
    let words = ["ask", function, "--input", input, "--key", "asked.key", "--out", "question"];
    eval(bench, &[&words, more].concat())
}

fn reply(bench: &Bench, function: &str, input: &str, more: &[&str]) -> Said {
    let words = ["reply", function, "--input", input, "--question", "question", "--out", "reply"];
    eval(bench, &[&words, more].concat())
}

fn open(bench: &Bench, function: &str, more: &[&str]) -> Said {
    eval(bench, &[&["open", function, "--key", "asked.key", "--reply", "reply"], more].concat())
}

/// The receiver's result of a whole exchange.
fn exchange(function: &str, inputs: [&str; 2], more: &[&str], files: &[(&str, &str)]) -> String {
    let bench = Bench::new();
    for (name, text) in files {
        bench.write(name, text);
    }
    let options: Vec<&str> = more.iter().copied().filter(|word| *word != "decimal").collect();
    let options: Vec<&str> = options.into_iter().filter(|word| *word != "--format").collect();
    ask(&bench, function, inputs[1], &options).success();
    reply(&bench, function, inputs[0], &options).success();
    let shown: Vec<&str> =
        more.iter().copied().filter(|word| !["--batch", "--columns", "x"].contains(word)).collect();
    open(&bench, function, &shown).success().trim().to_owned()
}

const PROGRAM: &str = "\
pub fn main(price: i32, limit: i32) -> i32 {
    limit - price
}
pub fn fits(price: i32, limit: i32) -> bool {
    price <= limit
}
";

/// out = garbler's bit and not evaluator's: whose an input is makes a difference.
const BRISTOL: &str = "2 4\n2 1 1\n1 1\n\n1 1 1 2 INV\n2 1 0 2 3 AND\n";

#[test]
fn functions_programs_circuits_and_strings_give_the_plain_result() {
    let decimal = &["--format", "decimal"][..];
    assert_eq!(exchange("add32", ["4000000000", "300000000"], decimal, &[]), "5032704");
    assert_eq!(exchange("millionaires", ["5", "4"], decimal, &[]), "1");
    assert_eq!(exchange("millionaires", ["4", "5"], decimal, &[]), "0");
    assert_eq!(exchange("sub8", ["3", "5"], decimal, &[]), "254");
    assert_eq!(
        exchange(
            "aes128",
            ["0x2b7e151628aed2a6abf7158809cf4f3c", "0x6bc1bee22e409f96e93d7e117393172a"],
            &[],
            &[]
        ),
        "0x3ad77bb40d7a3660a89ecaf32466ef97"
    );
    let files = &[("f.garble.rs", PROGRAM), ("c.txt", BRISTOL)][..];
    assert_eq!(exchange("f.garble.rs", ["70", "-5"], &[], files), "-75");
    assert_eq!(exchange("f.garble.rs", ["70", "100"], &["--function", "fits"], files), "true");
    for (x, y, out) in [("1", "0", "1"), ("0", "1", "0"), ("1", "1", "0")] {
        assert_eq!(exchange("c.txt", [x, y], decimal, files), out);
    }
    assert_eq!(exchange("and16", ["0xff0f", "0x1234"], &[], &[]), "0x1204");
    // Three common ones, and four.
    assert_eq!(exchange("inner-product8", ["7", "0xff"], decimal, &[]), "1");
    assert_eq!(exchange("inner-product8", ["15", "0xff"], decimal, &[]), "0");
}

#[test]
fn rows_of_a_table_are_evaluated_row_by_row() {
    let tables = [("a.csv", "x\n1\n20\n300\n"), ("b.csv", "x\n5\n6\n7\n")];
    let got =
        exchange("add32", ["a.csv", "b.csv"], &["--batch", "--columns", "x", "--format", "decimal"], &tables);
    assert_eq!(got, "6\n26\n307");
    let bench = Bench::new();
    bench.write("b.csv", tables[1].1);
    ask(&bench, "add32", "b.csv", &["--batch"]).success();
    reply(&bench, "add32", "1", &[]).fails_with(3, &["question", "asks for 3 rows, and your input has 1"]);
    assert!(!bench.exists("reply"));
}

/// A row is an element: w = v + u·delta over the field.
#[test]
fn reverse_vole_multiplies_a_vector_by_the_senders_number() {
    let p61 = (1u64 << 61) - 1;
    let bench = Bench::new();
    bench.write("u.csv", format!("u\n5\n70000000000\n{p61}\n"));
    bench.write("v.csv", format!("delta,v\n3,100\n3,200\n3,{}\n", p61 - 1));
    ask(&bench, "reverse-vole-p61", "u.csv", &["--batch"]).success();
    reply(&bench, "reverse-vole-p61", "v.csv", &["--batch"]).success();
    let got = open(&bench, "reverse-vole-p61", &["--format", "decimal"]);
    assert_eq!(got.success().trim(), format!("115\n210000000200\n{}", p61 - 1));
    reply(&bench, "reverse-vole-p128", "v.csv", &["--batch"])
        .fails_with(4, &["question", "another function"]);
    // X·X^127, of X^128 = X^7 + X^2 + X + 1, and 1 + the same.
    // Files in the wrong order are named for what they are, and numbers that do not fit are not cut.
    let swapped = ["nisc", "eval", "open", "reverse-vole-p61", "--key", "asked.key", "--reply", "question"];
    bench.run(&swapped).fails_with(4, &["question", "this is a receiver's question"]);
    let wide =
        ["nisc", "eval", "ask", "add61", "--input", "0x10000000000000000000000000000001", "--key", "w.key"];
    bench.run(&[&wide[..], &["--out", "w"]].concat()).fails_with(3, &["61 bits"]);
    let bench = Bench::new();
    ask(&bench, "reverse-vole-gf128", "2", &[]).success();
    reply(&bench, "reverse-vole-gf128", "0x80000000000000000000000000000000,1", &[]).success();
    assert_eq!(open(&bench, "reverse-vole-gf128", &[]).success().trim(), format!("0x{:032x}", 0x86));
    let bench = Bench::new();
    ask(&bench, "reverse-vole-gf2", "1", &[]).success();
    reply(&bench, "reverse-vole-gf2", "6,3", &[]).success();
    assert_eq!(open(&bench, "reverse-vole-gf2", &["--format", "decimal"]).success().trim(), "5");
    let bench = Bench::new();
    ask(&bench, "reverse-vole-gf8", "1", &[]).fails_with(2, &["reverse-vole-FIELD"]);
}

/// One question, several senders, signed on both sides: a reply is its signer's alone, and for the asker alone.
#[test]
fn each_sender_answers_in_its_own_name() {
    let bench = Bench::new();
    for name in ["alice.key", "bob.key", "carol.key"] {
        bench.run(&["keygen", "--out", name]).success();
    }
    ask(&bench, "max32", "10", &["--identity", "bob.key"]).success();
    for (name, input, out) in [("alice", "7", "10"), ("carol", "12", "12")] {
        let identity = format!("{name}.key");
        let peer = format!("{name}.pub");
        reply(&bench, "max32", input, &["--identity", &identity, "--peer", "carol.pub"]).error_line();
        reply(&bench, "max32", input, &["--identity", &identity, "--peer", "bob.pub"]).success();
        let result = open(&bench, "max32", &["--peer", &peer, "--format", "decimal"]);
        assert_eq!(result.success().trim(), out);
    }
    open(&bench, "max32", &["--peer", "alice.pub"]).fails_with(4, &["reply", "--peer"]);
    // Mallory passes Carol's reply off as its own, or takes her name away.
    let carols = std::fs::read(bench.path("reply")).unwrap();
    bench.write("reply", &carols[106..]);
    open(&bench, "max32", &[]).fails_with(4, &["reply", "other parties"]);
    // Refused, and nothing lost by it.
    bench.write("reply", &carols);
    assert_eq!(open(&bench, "max32", &["--format", "decimal"]).success().trim(), "12");
}

/// The gates are the same, and what an input means is not.
#[test]
fn programs_of_the_same_gates_are_two_functions() {
    let bench = Bench::new();
    for (name, parties) in [("ab.garble.rs", "A, B"), ("ba.garble.rs", "B, A")] {
        let program = format!(
            "enum P {{ {parties} }}\npub fn main(x: P, y: P) -> bool {{\n    match (x, y) {{\n        (P::A, P::A) => true,\n        \
             (P::B, P::B) => true,\n        _ => false,\n    }}\n}}\n"
        );
        bench.write(name, program);
    }
    ask(&bench, "ab.garble.rs", "P::A", &[]).success();
    reply(&bench, "ba.garble.rs", "P::A", &[]).fails_with(4, &["question", "another function"]);
    reply(&bench, "ab.garble.rs", "P::A", &[]).success();
    assert_eq!(open(&bench, "ab.garble.rs", &[]).success().trim(), "true");
}

#[test]
fn other_functions_files_and_damage_are_named_on_one_line() {
    let bench = Bench::new();
    bench.write("f.garble.rs", PROGRAM);
    bench.write("many.csv", format!("x\n{}", "1\n".repeat(8000)));
    ask(&bench, "aes128", "many.csv", &["--batch"]).fails_with(2, &["fewer rows"]);
    ask(&bench, "add8", "1", &[]).success();
    reply(&bench, "sub8", "2", &[]).fails_with(4, &["question", "another function"]);
    reply(&bench, "and8", "2", &[]).fails_with(4, &["question", "another function"]);
    reply(&bench, "f.garble.rs", "2", &[]).fails_with(4, &["question", "another function"]);
    reply(&bench, "add8", "300", &[]).fails_with(3, &["--input"]);
    let words = ["reply", "add8", "--question", "question", "--out", "reply"];
    eval(&bench, &words).fails_with(2, &["--input is missing"]);
    // Its key stays, whatever else is allowed to be replaced; a file that goes on and on is not read to its end.
    let words = ["--overwrite", "circuit", "export", "add8", "--output", "asked.key"];
    bench.run(&words).fails_with(3, &["asked.key", "a key of tacit nisc"]);
    bench.run(&["circuit", "export", "add8", "--output", "add8.txt"]).success();
    reply(&bench, "add8.txt", "2", &[]).fails_with(4, &["question", "another function"]);
    reply(&bench, "add8", "2", &[]).success();
    std::fs::copy(bench.path("reply"), bench.path("long")).unwrap();
    std::fs::File::options().write(true).open(bench.path("long")).unwrap().set_len(1 << 30).unwrap();
    let words = ["open", "add8", "--key", "asked.key", "--reply", "long"];
    eval(&bench, &words).fails_with(4, &["long", "larger"]);
    open(&bench, "sub8", &[]).fails_with(3, &["asked.key", "another function"]);
    let words = ["open", "add8", "--key", "asked.key", "--reply", "question"];
    eval(&bench, &words).fails_with(4, &["question", "give a sender's reply of tacit nisc eval"]);
    let words = ["open", "add8", "--key", "reply", "--reply", "reply"];
    eval(&bench, &words).fails_with(3, &["give a receiver's secret key of tacit nisc eval"]);
    let words = ["reply", "add8", "--input", "2", "--question", "asked.key", "--out", "other"];
    eval(&bench, &words).fails_with(3, &["secret key of tacit nisc eval", "never pass on"]);
    // The key is no key of transfers, and no key of transfers is one of a question.
    bench.write("choices.txt", "01");
    let words = ["nisc", "ask", "--key", "asked.key", "--choices", "choices.txt", "--out", "other"];
    bench.run(&words).fails_with(3, &["asked.key", "give a receiver's secret key"]);
    assert!(!bench.exists("other"));
    // A function to which the receiver has no input, and sizes that there are not.
    bench.write("g.txt", "1 3\n1 1\n1 1\n\n1 1 0 2 INV\n");
    ask(&bench, "g.txt", "", &[]).error_line();
    ask(&bench, "and0", "1", &[]).error_line();
    ask(&bench, "add8", "1", &[]).fails_with(3, &["asked.key"]);
    for (name, at) in [("reply", 300), ("reply", 70_000), ("asked.key", 60), ("asked.key", 130)] {
        let whole = std::fs::read(bench.path(name)).unwrap();
        let mut damaged = whole.clone();
        let at = at.min(whole.len() - 1);
        damaged[at] ^= 4;
        bench.write(name, &damaged);
        let code = if name == "reply" { 4 } else { 3 };
        let said = open(&bench, "add8", &[]);
        said.fails_with(code, &[name, "damaged"]);
        assert!(said.out.is_empty());
        bench.write(name, &whole);
    }
    assert_eq!(open(&bench, "add8", &["--format", "decimal"]).success().trim(), "3");
}

/// A forger's answer costs the receiver its key, and then says so for good; an honest reply opens nothing then.
#[test]
fn a_false_answer_wipes_the_key_before_it_is_reported() {
    let bench = Bench::new();
    ask(&bench, "add8", "1", &[]).success();
    reply(&bench, "add8", "2", &[]).success();
    let honest = std::fs::read(bench.path("reply")).unwrap();
    let mut forged = honest[..honest.len() - 32].to_vec();
    // The hash at the end of the answer, and the digest that shows damage.
    let answer = 51 + tacit_answer_bytes();
    forged[answer - 20] ^= 1;
    let mut digest = blake3::Hasher::new_derive_key("tacit nisc function file v1");
    digest.update(&forged);
    forged.extend_from_slice(digest.finalize().as_bytes());
    bench.write("reply", &forged);
    open(&bench, "add8", &[]).fails_with(
        4,
        &["reply", "fails its check", "asked.key is invalidated", "only to the other senders"],
    );
    bench.write("reply", &honest);
    open(&bench, "add8", &[]).fails_with(3, &["asked.key", "failed its check", "only to the other senders"]);
}

/// Bytes of an answer for eight transfers.
fn tacit_answer_bytes() -> usize {
    use tacit_ot::silent::{bcgikrs19::Code, nisc::Params};
    let params = Params { code: Code::Linear, security: tacit::Security::Malicious, count: 8 };
    params.message_bytes()[1] as usize
}
