//! `tacit nisc`: a whole exchange by files, and what is refused.

mod common;

use common::{Bench, Said};

fn nisc(bench: &Bench, args: &[&str]) -> Said {
    // Messages may be made again over the old ones; keys stay whatever is asked for.
    bench.run(&[&["nisc", "--overwrite"], args].concat())
}

fn exchange(code: &str) -> Bench {
    let bench = Bench::new();
    nisc(&bench, &["keygen", "--count", "5", "--code", code, "--out", "bob.key"]).success();
    nisc(&bench, &["answer", "--public", "bob.pub", "--key", "alice.key", "--out", "answer"]).success();
    bench.write("choices.txt", "01101\n");
    let pairs: Vec<String> = (0..5).map(|i| format!("{:032x} {:032x}\n", 2 * i, 2 * i + 1)).collect();
    bench.write("pairs.txt", pairs.concat());
    nisc(&bench, &["ask", "--key", "bob.key", "--choices", "choices.txt", "--out", "question"]).success();
    bench
}

const REPLY: &[&str] = &[
    "reply",
    "--key",
    "alice.key",
    "--public",
    "bob.pub",
    "--question",
    "question",
    "--messages",
    "pairs.txt",
    "--out",
    "reply",
];
const OPEN: &[&str] = &[
    "open",
    "--key",
    "bob.key",
    "--choices",
    "choices.txt",
    "--answer",
    "answer",
    "--question",
    "question",
    "--reply",
    "reply",
    "--out",
    "got.txt",
];

#[test]
fn chosen_messages_by_files() {
    for code in ["linear", "quasi-cyclic"] {
        let bench = exchange(code);
        nisc(&bench, REPLY).success();
        nisc(&bench, OPEN).success();
        let expected: String = [0, 3, 5, 6, 9].map(|m| format!("{m:032x}\n")).concat();
        assert_eq!(bench.read("got.txt"), expected);
        nisc(&bench, &["expand", "--key", "bob.key", "--answer", "answer", "--out", "r.npz"]).success();
        nisc(&bench, &["expand", "--key", "alice.key", "--public", "bob.pub", "--out", "s.npz"]).success();
        assert!(bench.exists("r.npz") && bench.exists("s.npz"));
    }
}

#[test]
fn keys_serve_once() {
    let bench = exchange("linear");
    let file = |name: &str| std::fs::read(bench.path(name)).unwrap();
    let ask = |key, choices, out| nisc(&bench, &["ask", "--key", key, "--choices", choices, "--out", out]);
    nisc(&bench, REPLY).success();
    // The very same question and reply can be had again, and no other, whatever the key's file is called.
    ask("bob.key", "choices.txt", "again").success();
    assert_eq!(file("again"), file("question"));
    let reply = file("reply");
    nisc(&bench, REPLY).success();
    assert_eq!(file("reply"), reply);
    bench.write("others.txt", "01100\n");
    let pairs = bench.read("pairs.txt").replacen("00 ", "07 ", 1);
    bench.write("pairs.txt", &pairs);
    for (receiver, sender) in [("bob.key", "alice.key"), ("moved", "moved too")] {
        ask(receiver, "others.txt", "other").fails_with(3, &[receiver, "asked before", "new key"]);
        let words: Vec<&str> = REPLY.iter().map(|w| if *w == "alice.key" { sender } else { *w }).collect();
        nisc(&bench, &words).fails_with(3, &[sender, "replied before"]);
        if receiver == "bob.key" {
            std::fs::rename(bench.path(receiver), bench.path("moved")).unwrap();
            std::fs::rename(bench.path(sender), bench.path("moved too")).unwrap();
        }
    }
    assert!(!bench.exists("other") && file("reply") == reply);
    // A mark of which a crash left a part is one all the same; the key still opens and expands.
    let mut cut = file("moved");
    cut.pop();
    bench.write("moved", &cut);
    ask("moved", "choices.txt", "other").fails_with(3, &["asked before"]);
    nisc(&bench, &["expand", "--key", "moved", "--answer", "answer", "--out", "r.npz"]).success();
    // A new key under the old name is as good as any.
    nisc(&bench, &["keygen", "--count", "5", "--out", "bob.key"]).success();
    ask("bob.key", "others.txt", "other").success();
}

#[test]
fn keys_are_not_overwritten_and_a_message_without_a_place_uses_none_up() {
    let bench = exchange("linear");
    nisc(&bench, &["keygen", "--count", "5", "--out", "bob.key"])
        .fails_with(3, &["bob.key", "exists already"]);
    let answer = |key, out| nisc(&bench, &["answer", "--public", "bob.pub", "--key", key, "--out", out]);
    answer("alice.key", "answer").fails_with(3, &["alice.key", "exists already"]);
    answer("new.key", "no/such/folder").fails_with(3, &["no/such/folder"]);
    assert!(!bench.exists("new.key"));
    nisc(&bench, &["keygen", "--count", "5", "--out", "eve.key"]).success();
    let ask = |choices, out| nisc(&bench, &["ask", "--key", "eve.key", "--choices", choices, "--out", out]);
    ask("choices.txt", "no/such/folder").fails_with(3, &["no/such/folder"]);
    bench.write("others.txt", "01100\n");
    ask("others.txt", "q").success();
    assert!(bench.leftovers().is_empty());
}

#[test]
fn bad_files_are_one_line_and_the_right_code() {
    let bench = exchange("linear");
    let answer = std::fs::read(bench.path("answer")).unwrap();
    nisc(&bench, REPLY).success();
    bench.write("answer", &answer[..answer.len() / 2]);
    nisc(&bench, OPEN).fails_with(4, &["length"]);
    let mut changed = answer.clone();
    changed[1000] ^= 1;
    bench.write("answer", &changed);
    nisc(&bench, OPEN).fails_with(4, &["cheated"]);
    bench.write("answer", &answer);
    bench.write("choices.txt", "0110");
    nisc(&bench, OPEN).fails_with(3, &["choices.txt", "4 choices", "5 OTs"]);
    bench.write("choices.txt", "0110x");
    nisc(&bench, OPEN).fails_with(3, &["choices.txt", "digits"]);
    bench.write("pairs.txt", "00 01\n");
    nisc(&bench, REPLY).fails_with(3, &["pairs.txt", "line 1"]);
    nisc(&bench, &["answer", "--public", "answer", "--key", "k", "--out", "a"])
        .fails_with(4, &["another kind"]);
    nisc(&bench, &["answer", "--public", "none.pub", "--key", "k", "--out", "a"])
        .fails_with(3, &["none.pub"]);
    nisc(&bench, &["keygen", "--count", "0", "--out", "x.key"]).fails_with(2, &["number of OTs"]);
    assert!(!bench.exists("got.txt") && !bench.exists("a") && !bench.exists("x.key"));
}
