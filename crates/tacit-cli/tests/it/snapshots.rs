//! The help of every command and a list of errors as files, in `snapshots` of the tests, so that a change of words is read
//! in a review. `TACIT_SNAPSHOTS=update cargo test -p tacit-cli snapshots` writes them anew.

use crate::common::Bench;
use std::fmt::Write;
use std::path::Path;

/// Compares `text` with the file `name`, or writes it there where that is asked for.
fn is_as_kept(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
    if std::env::var_os("TACIT_SNAPSHOTS").is_some_and(|value| value == "update") {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    let (mut now, mut before) = (text.lines(), kept.lines());
    for line in 1.. {
        let both = (now.next(), before.next());
        if both == (None, None) {
            return;
        }
        assert_eq!(
            both.0,
            both.1,
            "{}, line {line}: if the new words are meant, run TACIT_SNAPSHOTS=update cargo test -p tacit-cli snapshots",
            path.display()
        );
    }
}

/// The help of a command and of all below it, each after its line.
fn helps(bench: &Bench, words: &[&str], out: &mut String) {
    let line = [words, &["-h"]].concat();
    let said = bench.run(&line);
    let text = said.success();
    writeln!(out, "$ tacit {}\n{}\n", line.join(" "), text.trim_end()).unwrap();
    let Some((_, listed)) = text.split_once("\nCommands:\n") else { return };
    for name in listed.lines().take_while(|line| !line.is_empty()) {
        let name = name.split_whitespace().next().unwrap();
        if name != "help" {
            helps(bench, &[words, &[name]].concat(), out);
        }
    }
}

#[test]
fn help_is_as_kept() {
    let bench = Bench::new();
    let mut text = String::new();
    helps(&bench, &[], &mut text);
    assert!(text.matches("\n$ tacit ").count() > 40, "{text}");
    is_as_kept("help.txt", &text);
}

/// What goes wrong before anybody is called: the command line, and what is there on the disk.
const FAILING: &[&str] = &[
    "nonsense",
    "nisc eval",
    "nisc eval ask",
    "ot pool make",
    "psi --inptu t.csv",
    "psi --input t.csv",
    "psi --input t.csv --key email",
    "psi --input t.csv --key email --listen 127.0.0.1:1",
    "psi --input t.csv --key email --listen 127.0.0.1:1 --identity a.key --peer b.pub",
    "psi --input t.csv --key email --listen 127.0.0.1:1 --connect 127.0.0.1:1",
    "psi --input t.csv --key email --insecure-plaintext --listen 203.0.113.1:1",
    "psi --input t.csv --key emial --insecure-plaintext --listen 127.0.0.1:1",
    "psi --input t.csv --key email:mail --insecure-plaintext --listen 127.0.0.1:1",
    "psi --input t.csv --key email:phone:nl --insecure-plaintext --listen 127.0.0.1:1",
    "psi --input no.csv --key email --insecure-plaintext --listen 127.0.0.1:1",
    "psi --input t.csv --key email --result you --insecure-plaintext --listen 127.0.0.1:1",
    "psi --input t.csv --key email --reveal names --insecure-plaintext --listen 127.0.0.1:1",
    "psi --input t.csv --key email --max-peer-rows many --insecure-plaintext --listen 127.0.0.1:1",
    "psi --input t.csv --key email --min-matches -1 --insecure-plaintext --listen 127.0.0.1:1",
    "psi --input t.csv --key email --threads 0 --insecure-plaintext --listen 127.0.0.1:1",
    "psi --input t.csv --key email --memory 2G --insecure-plaintext --listen 127.0.0.1:1",
    "psi --input t.csv --key email --link slow --insecure-plaintext --listen 127.0.0.1:1",
    "psi --input t.csv --key email --output t.csv --insecure-plaintext --listen 127.0.0.1:1",
    "psi --input t.csv --key email --report t.doc --insecure-plaintext --listen 127.0.0.1:1",
    "psi --input t.csv --key email --output o.csv --result peer --insecure-plaintext --listen 127.0.0.1:1",
    "eval nothing --role garbler --input 1 --insecure-plaintext --listen 127.0.0.1:1",
    "eval add32 --role garbler --input 1x --insecure-plaintext --listen 127.0.0.1:1",
    "eval add32 --role garbler --insecure-plaintext --listen 127.0.0.1:1",
    "ot --role sender --count 0",
    "ot --role sender --count 1e6",
    "ot --role sender --count 99999999999999999999",
    "vole --role sender --count 5 --field gf3 --insecure-plaintext --listen 127.0.0.1:1",
    "triples --kind words --count 5 --insecure-plaintext --listen 127.0.0.1:1",
    "check no.csv",
    "check t.csv --encoding klingon",
    "keygen --out t.csv",
    "fingerprint t.csv",
    "serve --policy no.toml",
    "request match --connect 127.0.0.1:1 --identity no.key --peer b.pub --input t.csv --key email",
    "join nonsense --connect 127.0.0.1:1",
    "audit verify --records no",
];

#[test]
fn errors_are_as_kept() {
    let bench = Bench::new();
    bench.write("t.csv", "email,town\nann@example.com,Ulm\n");
    let mut text = String::new();
    for line in FAILING {
        let said = bench.run(&line.split(' ').collect::<Vec<_>>());
        assert_ne!(said.code, 0, "{line}: {said:?}");
        writeln!(text, "$ tacit {line}\n{}\n[{}]\n", said.error_line(), said.code).unwrap();
    }
    is_as_kept("errors.txt", &text);
}
