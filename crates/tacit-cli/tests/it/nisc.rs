//! `tacit nisc`: a whole exchange by files, and what is refused.

use crate::common::{self, Bench, LIMIT, Said};
use std::io::Write;
use std::time::{Duration, Instant};
use tacit::net::Identity;
use tacit_ot::silent::signed;

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
    }
}

const EXPAND_BOB: &[&str] = &["expand", "--key", "bob.key", "--answer", "answer", "--out", "r.npz"];
const EXPAND_ALICE: &[&str] = &["expand", "--key", "alice.key", "--public", "bob.pub", "--out", "s.npz"];

/// A key serves for random transfers or for chosen messages, whichever comes first, on both sides.
#[test]
fn expand_and_chosen_messages_exclude_each_other_under_one_key() {
    let bench = exchange("linear");
    nisc(&bench, REPLY).success();
    // Nothing of another one leaves by a stream either.
    bench.write("pairs.txt", (0..5).map(|i| format!("{i:032x} {:032x}\n", i + 16)).collect::<String>());
    for stream in ["-", "/dev/stdout"] {
        let again = nisc(&bench, &[&REPLY[..REPLY.len() - 1], &[stream]].concat());
        assert!(again.out.is_empty(), "{again:?}");
        again.fails_with(3, &["alice.key"]);
    }
    let chosen = ["chosen messages", "make a new key"];
    nisc(&bench, EXPAND_BOB).fails_with(3, &[&["bob.key"][..], &chosen].concat());
    nisc(&bench, EXPAND_ALICE).fails_with(3, &[&["alice.key"][..], &chosen].concat());
    assert!(!bench.exists("r.npz") && !bench.exists("s.npz"));
    nisc(&bench, OPEN).success();

    let bench = Bench::new();
    nisc(&bench, &["keygen", "--count", "5", "--out", "bob.key"]).success();
    std::fs::copy(bench.path("bob.key"), bench.path("copy.key")).unwrap();
    nisc(&bench, &["answer", "--public", "bob.pub", "--key", "alice.key", "--out", "answer"]).success();
    bench.write("choices.txt", "01101\n");
    bench.write("pairs.txt", (0..5).map(|i| format!("{i:032x} {:032x}\n", i + 8)).collect::<String>());
    let ask = |key| nisc(&bench, &["ask", "--key", key, "--choices", "choices.txt", "--out", "question"]);
    for _ in 0..2 {
        nisc(&bench, EXPAND_BOB).success();
        nisc(&bench, EXPAND_ALICE).success();
    }
    let random = ["random transfers were taken", "make a new key"];
    ask("bob.key").fails_with(3, &[&["bob.key"][..], &random].concat());
    let streamed = nisc(&bench, &["ask", "--key", "bob.key", "--choices", "choices.txt", "--out", "-"]);
    assert!(streamed.out.is_empty(), "{streamed:?}");
    streamed.fails_with(3, &["bob.key"]);
    // What an older copy of the key asked is opened and answered by none that was expanded.
    ask("copy.key").success();
    nisc(&bench, REPLY).fails_with(3, &[&["alice.key"][..], &random].concat());
    // The start of a reply: the key is looked at first.
    bench.write("reply", b"tacitnisc\x06\x06");
    nisc(&bench, OPEN).fails_with(3, &[&["bob.key"][..], &random].concat());
    assert!(!bench.exists("got.txt"));
}

/// Mallory's question, or one that nobody has signed, is refused before it costs Alice her key.
#[test]
fn a_strangers_question_spends_no_key() {
    let bench = Bench::new();
    for name in ["alice-id.key", "bob-id.key", "mallory-id.key"] {
        bench.run(&["keygen", "--out", name]).success();
    }
    let by = |words: &[&str], more: &[&str]| nisc(&bench, &[words, more].concat());
    let bob = ["--identity", "bob-id.key"];
    by(&["keygen", "--count", "5", "--out", "bob.key"], &bob).success();
    by(&["answer", "--public", "bob.pub", "--key", "alice.key", "--out", "answer"], &[]).success();
    bench.write("choices.txt", "01101\n");
    bench.write("pairs.txt", (0..5).map(|i| format!("{i:032x} {:032x}\n", i + 8)).collect::<String>());
    by(&["ask", "--key", "bob.key", "--choices", "choices.txt", "--out", "question"], &bob).success();
    let file = |name: &str| std::fs::read(bench.path(name)).unwrap();
    let (question, key) = (file("question"), file("alice.key"));
    let mut other = question[106..].to_vec();
    *other.last_mut().unwrap() ^= 1;
    let mallory = Identity::load(&bench.path("mallory-id.key")).unwrap();
    for strange in [other.clone(), signed::sign(&other, &mallory).unwrap()] {
        bench.write("question", strange);
        by(REPLY, &[]).fails_with(4, &["question", "signature is missing or by a different key"]);
        by(REPLY, &["--peer", "bob-id.pub"]).fails_with(4, &["question", "--peer"]);
        assert!(file("alice.key") == key && !bench.exists("reply"));
    }
    bench.write("question", question);
    by(REPLY, &[]).success();
    by(OPEN, &[]).success();
}

/// `--peer` names a party, whose key may have a successor; a second successor is a thief's.
#[test]
fn a_peers_messages_are_taken_under_the_successor_of_its_key() {
    let bench = Bench::new();
    bench.run(&["keygen", "--out", "bob-id.key"]).success();
    for end in ["key", "pub"] {
        std::fs::copy(bench.path(&format!("bob-id.{end}")), bench.path(&format!("stolen.{end}"))).unwrap();
    }
    let by = |words: &[&str], more: &[&str]| nisc(&bench, &[words, more].concat());
    by(&["keygen", "--count", "5", "--out", "bob.key"], &["--identity", "bob-id.key"]).success();
    for (old, new) in [("bob-id.key", "bob-2.key"), ("stolen.key", "thief.key")] {
        bench.run(&["keygen", "--out", new, "--successor-of", old]).success();
    }
    bench.write("choices.txt", "01101\n");
    bench.write("pairs.txt", (0..5).map(|i| format!("{i:032x} {:032x}\n", i + 8)).collect::<String>());
    let ask = ["ask", "--key", "bob.key", "--choices", "choices.txt", "--out", "question"];
    by(&ask, &["--identity", "bob-2.key"]).success();
    let peer = ["--peer", "bob-2.pub"];
    by(&["answer", "--public", "bob.pub", "--key", "alice.key", "--out", "answer"], &peer).success();
    by(REPLY, &["--peer", "thief.pub"]).fails_with(3, &["had a different successor before"]);
    by(REPLY, &peer).success();
    by(OPEN, &[]).success();
    // The newest key alone names it too: the file of the old one says who follows.
    bench.write("old.pub", bench.read("stolen.pub").lines().next().unwrap());
    by(REPLY, &["--peer", "old.pub"]).fails_with(4, &["question", "another key than the peer's"]);
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
    // A mark of which a crash left a part is one all the same.
    let mut cut = file("moved");
    cut.pop();
    bench.write("moved", &cut);
    ask("moved", "choices.txt", "other").fails_with(3, &["asked before"]);
    nisc(&bench, &["expand", "--key", "moved", "--answer", "answer", "--out", "r.npz"])
        .fails_with(3, &["moved", "chosen messages"]);
    // A new key under the old name is as good as any; the old public one stays until it is moved.
    let keygen = ["keygen", "--count", "5", "--out", "bob.key"];
    nisc(&bench, &keygen).fails_with(3, &["bob.pub", "never overwritten"]);
    std::fs::rename(bench.path("bob.pub"), bench.path("moved.pub")).unwrap();
    nisc(&bench, &keygen).success();
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
    bench.write("answer", &answer);
    bench.write("choices.txt", "0110");
    nisc(&bench, OPEN).fails_with(3, &["choices.txt", "4 choices", "5 OTs"]);
    bench.write("choices.txt", "01100");
    nisc(&bench, OPEN).fails_with(3, &["choices.txt", "the question has other choices"]);
    bench.write("choices.txt", "0110x");
    nisc(&bench, OPEN).fails_with(3, &["choices.txt", "digits"]);
    bench.write("pairs.txt", "00 01\n");
    nisc(&bench, REPLY).fails_with(3, &["pairs.txt", "line 1"]);
    nisc(&bench, &["answer", "--public", "answer", "--key", "k", "--out", "a"])
        .fails_with(4, &["answer: this is a sender's answer; give a receiver's public key"]);
    nisc(&bench, &["answer", "--public", "none.pub", "--key", "k", "--out", "a"])
        .fails_with(3, &["none.pub"]);
    nisc(&bench, &["keygen", "--count", "0", "--out", "x.key"]).fails_with(2, &["number of OTs"]);
    assert!(!bench.exists("got.txt") && !bench.exists("a") && !bench.exists("x.key"));
}

/// Files that take each other's place are named, with what is in them and what to give.
#[test]
fn a_file_that_is_another_is_named_with_what_it_is() {
    let bench = exchange("linear");
    nisc(&bench, REPLY).success();
    std::fs::copy(bench.path("reply"), bench.path("old")).unwrap();
    let with = |words: &[&str], option: &str, file: &str| {
        let at = words.iter().position(|word| *word == option).unwrap();
        let mut words = words.to_vec();
        words[at + 1] = file;
        nisc(&bench, &words)
    };
    const ASK: &[&str] = &["ask", "--key", "bob.key", "--choices", "choices.txt", "--out", "q"];
    for (words, option, file, code, said) in [
        (
            ASK,
            "--key",
            "bob.pub",
            3,
            "bob.pub: this is a receiver's public key; give a receiver's secret key",
        ),
        (
            ASK,
            "--key",
            "alice.key",
            3,
            "alice.key: this is a sender's secret key; give a receiver's secret key",
        ),
        (
            ASK,
            "--key",
            "pairs.txt",
            3,
            "pairs.txt: this is not a file of tacit nisc; give a receiver's secret key",
        ),
        (
            REPLY,
            "--key",
            "bob.key",
            3,
            "bob.key: this is a receiver's secret key; give a sender's secret key",
        ),
        (
            REPLY,
            "--public",
            "bob.key",
            3,
            "bob.key: this is a receiver's secret key; give a receiver's public key, and never pass on the \
             secret key",
        ),
        (REPLY, "--question", "old", 4, "old: this is a sender's reply; give a receiver's question"),
        (OPEN, "--reply", "answer", 4, "answer: this is a sender's answer; give a sender's reply"),
        (OPEN, "--answer", "bob.pub", 4, "bob.pub: this is a receiver's public key; give a sender's answer"),
    ] {
        with(words, option, file).fails_with(code, &[&format!("error: {said}")]);
    }
    bench.write("few.txt", format!("{:032x} {:032x}\n", 1, 2));
    with(REPLY, "--messages", "few.txt").fails_with(3, &["few.txt: has 1 message pair; the key is for 5"]);
    // Files of another exchange.
    nisc(&bench, &["keygen", "--count", "5", "--out", "eve.key"]).success();
    with(REPLY, "--public", "eve.pub").fails_with(4, &["eve.pub: is of another session"]);
    nisc(&bench, &["ask", "--key", "eve.key", "--choices", "choices.txt", "--out", "eve"]).success();
    with(REPLY, "--question", "eve").fails_with(4, &["eve: belongs to another session"]);
}

#[test]
fn files_may_come_from_standard_input_and_public_ones_are_for_everybody() {
    use std::os::unix::fs::PermissionsExt;
    let bench = exchange("linear");
    let open = |name: &str| std::fs::File::open(bench.path(name)).unwrap();
    let streamed = |words: &[&str], file: &str| {
        let mut command = bench.command(&[&["nisc", "--overwrite"], words].concat());
        common::wait(command.stdin(open(file)).spawn().unwrap())
    };
    let mut reply = REPLY.to_vec();
    reply[8] = "-";
    assert!(streamed(&reply, "pairs.txt").success().contains("send the reply in reply to the receiver"));
    let mut opened = OPEN.to_vec();
    (opened[10], opened[12]) = ("-", "-");
    let said = streamed(&opened, "reply");
    assert_eq!(said.success(), [0, 3, 5, 6, 9].map(|m| format!("{m:032x}\n")).concat());
    assert!(said.err.contains("5 messages in standard output"), "{said:?}");
    opened[8] = "-";
    streamed(&opened, "reply").fails_with(2, &["standard input can be only one of the files"]);
    // Alone in a folder of their own rights, as the user's other files.
    let rights = |name: &str| std::fs::metadata(bench.path(name)).unwrap().permissions().mode() & 0o777;
    let usual = {
        bench.write("usual", "");
        rights("usual")
    };
    for name in ["bob.pub", "answer", "question", "reply"] {
        assert_eq!(rights(name), usual, "{name}");
    }
    for name in ["bob.key", "alice.key"] {
        assert_eq!(rights(name), 0o600, "{name}");
    }
}

/// A damaged key file is called damaged, whichever byte it is, and no message is blamed.
#[test]
fn a_damaged_key_is_called_damaged() {
    let bench = exchange("linear");
    nisc(&bench, REPLY).success();
    for (key, step) in [("bob.key", OPEN), ("alice.key", REPLY)] {
        let whole = std::fs::read(bench.path(key)).unwrap();
        // The seed, the digest, the parameters, the owner, and each fifth byte beside them.
        for at in [11, 13, 21, 53, 60, 90, whole.len() - 1].into_iter().chain((0..whole.len()).step_by(5)) {
            let mut changed = whole.clone();
            changed[at] ^= 4;
            bench.write(key, changed);
            let said = nisc(&bench, step);
            said.fails_with(3, &[&format!("error: {key}: "), ";"]);
            let (_, said) = said.err.split_once(": ").unwrap();
            assert!(!said.contains("session") && !said.contains("silent nisc"), "byte {at}: {said}");
            if (11..102).contains(&at) {
                assert!(said.contains("the key is damaged"), "byte {at}: {said}");
            }
        }
        bench.write(key, &whole[..20]);
        nisc(&bench, step).fails_with(3, &[key, "the key is damaged"]);
        bench.write(key, whole);
        nisc(&bench, step).success();
    }
}

/// An unsigned answer that fails its check may have been damaged on the way.
#[test]
fn what_an_answer_fails_for_is_said_by_whether_it_was_signed() {
    let bench = exchange("linear");
    nisc(&bench, REPLY).success();
    bench.write("answer", cheating_answer(&bench));
    let said = nisc(&bench, OPEN);
    said.fails_with(4, &["answer: fails its check (it was changed in transit, or its sender cheated"]);
    assert!(!said.err.contains("silent nisc"));
    let said = nisc(&bench, &["keygen", "--count", "0", "--out", "x.key"]);
    assert_eq!(said.error_line(), "error: the number of OTs must be from 1 to 2^24");
    bench.run(&["keygen", "--out", "alice-id.key"]).success();
    let own = ["--identity", "alice-id.key", "--peer", "alice-id.pub"];
    nisc(&bench, &[REPLY, &own].concat()).fails_with(3, &["alice-id.pub: this is your own public key"]);
}

/// A reply that was changed on its way opens to nothing, wherever the change is.
#[test]
fn a_changed_reply_is_refused() {
    let bench = exchange("linear");
    nisc(&bench, REPLY).success();
    let reply = std::fs::read(bench.path("reply")).unwrap();
    for (i, at) in (0..reply.len()).step_by(5).chain([reply.len() - 1]).enumerate() {
        let mut changed = reply.clone();
        changed[at] ^= 1 << (i % 8);
        bench.write("reply", changed);
        nisc(&bench, OPEN).fails_with(4, &["error: reply: "]);
        assert!(!bench.exists("got.txt"), "byte {at}");
    }
    // The question is the receiver's own: damaged, it asks for something else, or is another key's.
    bench.write("reply", &reply);
    let question = std::fs::read(bench.path("question")).unwrap();
    let mut changed = question.clone();
    *changed.last_mut().unwrap() ^= 1;
    bench.write("question", changed);
    nisc(&bench, OPEN).fails_with(3, &["choices.txt", "other choices"]);
    bench.write("question", &question);
    nisc(&bench, OPEN).success();
}

/// Whoever holds Alice's two files takes her signatures off, adds a difference to the reply, and signs both
/// itself.
#[test]
fn nobody_can_pass_alices_messages_off_as_its_own() {
    let bench = Bench::new();
    for name in ["alice-id.key", "bob-id.key", "mallory-id.key"] {
        bench.run(&["keygen", "--out", name]).success();
    }
    let by = |words: &[&str], more: &[&str]| nisc(&bench, &[words, more].concat());
    let bob = ["--identity", "bob-id.key"];
    let alice = ["--identity", "alice-id.key", "--peer", "bob-id.pub"];
    by(&["keygen", "--count", "5", "--out", "bob.key"], &bob).success();
    by(&["answer", "--public", "bob.pub", "--key", "alice.key", "--out", "answer"], &alice).success();
    bench.write("choices.txt", "01101\n");
    bench.write("pairs.txt", (0..5).map(|i| format!("{i:032x} {:032x}\n", i + 8)).collect::<String>());
    by(&["ask", "--key", "bob.key", "--choices", "choices.txt", "--out", "question"], &bob).success();
    by(REPLY, &alice).success();

    let file = |name: &str| std::fs::read(bench.path(name)).unwrap();
    let (answer, reply) = (file("answer"), file("reply"));
    let mallory = Identity::load(&bench.path("mallory-id.key")).unwrap();
    let own = |message: &[u8]| signed::sign(message, &mallory).unwrap();
    for difference in [0, 1] {
        let mut changed = reply[106..].to_vec();
        changed[53 + 15] ^= difference;
        bench.write("reply", own(&changed));
        bench.write("answer", own(&answer[106..]));
        by(OPEN, &["--peer", "mallory-id.pub"]).fails_with(4, &["other parties"]);
        // Her own answer in front of Alice's reply.
        bench.write("answer", &answer);
        by(OPEN, &[]).fails_with(4, &["reply", "signature is missing or by a different key"]);
    }
    // And Alice's answer without a name.
    bench.write("answer", &answer[106..]);
    bench.write("reply", &reply[106..]);
    by(OPEN, &[]).fails_with(4, &["other parties"]);
    assert!(!bench.exists("got.txt"));
    // None of that has cost Bob his key.
    bench.write("answer", answer);
    bench.write("reply", reply);
    by(OPEN, &["--peer", "alice-id.pub"]).success();
    let expected: String = [0u32, 9, 10, 3, 12].map(|m| format!("{m:032x}\n")).concat();
    assert_eq!(bench.read("got.txt"), expected);
}

/// An answer whose sender guessed wrong.
fn cheating_answer(bench: &Bench) -> Vec<u8> {
    let mut answer = std::fs::read(bench.path("answer")).unwrap();
    answer[1000] ^= 1;
    answer
}

/// Nothing that the receiver can do goes on with a key under which a check failed, whatever its file is
/// called.
fn is_spent(bench: &Bench, key: &str) {
    let why = [key, "an answer failed its check", "make a new one with tacit nisc keygen"];
    nisc(bench, &["expand", "--key", key, "--answer", "answer", "--out", "r.npz"]).fails_with(3, &why);
    nisc(bench, &["ask", "--key", key, "--choices", "choices.txt", "--out", "q"]).fails_with(3, &why);
    let open: Vec<&str> = OPEN.iter().map(|word| if *word == "bob.key" { key } else { *word }).collect();
    nisc(bench, &open).fails_with(3, &why);
    assert!(!bench.exists("got.txt") && !bench.exists("r.npz") && !bench.exists("q"));
}

#[test]
fn a_failed_check_spends_the_key_for_every_later_process() {
    for step in [OPEN, &["expand", "--key", "bob.key", "--answer", "answer", "--out", "r.npz"]] {
        let bench = exchange("linear");
        nisc(&bench, REPLY).success();
        let honest = std::fs::read(bench.path("answer")).unwrap();
        bench.write("answer", cheating_answer(&bench));
        nisc(&bench, step).fails_with(4, &["cheated", "bob.key is invalidated", "tacit nisc keygen"]);
        bench.write("answer", honest);
        is_spent(&bench, "bob.key");
        std::fs::rename(bench.path("bob.key"), bench.path("moved")).unwrap();
        is_spent(&bench, "moved");
        // Nothing of the secret is left: behind the header stand the question's mark and hash alone.
        let left = std::fs::read(bench.path("moved")).unwrap();
        assert!(left.starts_with(b"tacitburn") && left[21..69].iter().all(|byte| *byte == 0));
    }
}

/// The receiver dies after the mark and before it has said a word: its standard error takes no byte.
#[test]
fn a_crash_between_the_mark_and_the_report_leaves_the_key_spent() {
    let bench = exchange("linear");
    nisc(&bench, REPLY).success();
    let honest = std::fs::read(bench.path("answer")).unwrap();
    bench.write("answer", cheating_answer(&bench));
    let (_reader, mut full) = std::io::pipe().unwrap();
    let stderr = full.try_clone().unwrap();
    std::thread::spawn(move || full.write_all(&[0; 1 << 22]));
    std::thread::sleep(Duration::from_millis(200));
    let words: Vec<&str> = ["nisc"].iter().chain(OPEN).copied().collect();
    let mut child = bench.command(&words).stderr(stderr).spawn().unwrap();
    let start = Instant::now();
    while !std::fs::read(bench.path("bob.key")).unwrap().starts_with(b"tacitburn") {
        assert!(start.elapsed() < LIMIT, "no mark");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(50));
    assert!(child.try_wait().unwrap().is_none(), "it has reported");
    child.kill().unwrap();
    child.wait().unwrap();
    bench.write("answer", honest);
    is_spent(&bench, "bob.key");
}

#[test]
fn keys_and_messages_of_an_older_version_are_refused_with_the_remedy() {
    let bench = exchange("linear");
    nisc(&bench, REPLY).success();
    let why = ["older version", "tacit nisc keygen"];
    let file = |name: &str| std::fs::read(bench.path(name)).unwrap();
    for (name, code) in [("bob.key", 3), ("answer", 4), ("reply", 4)] {
        let whole = file(name);
        let mut old = whole.clone();
        old[9] -= 1;
        bench.write(name, old);
        nisc(&bench, OPEN).fails_with(code, &why);
        bench.write(name, whole);
    }
    let mut old = file("alice.key");
    old[9] -= 1;
    bench.write("alice.key", old);
    nisc(&bench, REPLY).fails_with(3, &["alice.key", "older version"]);
    nisc(&bench, OPEN).success();
}

#[test]
fn with_a_peer_named_only_its_messages_are_taken() {
    let bench = Bench::new();
    for name in ["alice-id.key", "bob-id.key", "eve-id.key"] {
        bench.run(&["keygen", "--out", name]).success();
    }
    let by = |who: &'static str, peer: &'static str, words: &[&str]| {
        let named: &[&str] = if peer.is_empty() { &[] } else { &["--peer", peer] };
        let signed: &[&str] = if who.is_empty() { &[] } else { &["--identity", who] };
        nisc(&bench, &[words, signed, named].concat())
    };
    let [alice, bob] = ["alice-id.key", "bob-id.key"];
    let [from_alice, from_bob] = ["alice-id.pub", "bob-id.pub"];
    by(bob, "", &["keygen", "--count", "5", "--out", "bob.key"]).success();
    // A public key in Bob's name.
    by("eve-id.key", "", &["keygen", "--count", "5", "--out", "eve.key"]).success();
    let answer = |who, public: &str, key, out| {
        by(who, from_bob, &["answer", "--public", public, "--key", key, "--out", out])
    };
    answer(alice, "eve.pub", "k", "a").fails_with(4, &["eve.pub", "another key than the peer's", "--peer"]);
    by("", "", &["keygen", "--count", "5", "--out", "nobody.key"]).success();
    answer(alice, "nobody.pub", "k", "a").fails_with(4, &["nobody.pub", "not signed", "--identity"]);
    assert!(!bench.exists("k") && !bench.exists("a"));
    answer(alice, "bob.pub", "alice.key", "answer").success();
    answer("eve-id.key", "bob.pub", "eves.key", "eves").success();
    bench.write("choices.txt", "01101\n");
    bench.write("pairs.txt", (0..5).map(|i| format!("{i:032x} {:032x}\n", i + 8)).collect::<String>());
    by(bob, "", &["ask", "--key", "bob.key", "--choices", "choices.txt", "--out", "question"]).success();
    by(alice, from_bob, REPLY).success();

    // Answers that are not Alice's, or were damaged on their way, cost Bob nothing.
    let good = std::fs::read(bench.path("answer")).unwrap();
    let expand = |answer: &str| {
        by("", from_alice, &["expand", "--key", "bob.key", "--answer", answer, "--out", "r.npz"])
    };
    expand("eves").fails_with(4, &["eves", "another key than the peer's", "--peer"]);
    let mut damaged = good.clone();
    damaged[106 + 1000] ^= 1;
    bench.write("damaged", &damaged);
    expand("damaged").fails_with(4, &["damaged", "does not match"]);
    bench.write("stripped", &damaged[106..]);
    expand("stripped").fails_with(4, &["stripped", "not signed"]);
    by("", from_alice, OPEN).success();
    let expected: String = [0u32, 9, 10, 3, 12].map(|m| format!("{m:032x}\n")).concat();
    assert_eq!(bench.read("got.txt"), expected);
    // Without --peer a signature that is there must fit all the same, and Alice's cheating answer spends the
    // key.
    let unnamed =
        |answer: &str| by("", "", &["expand", "--key", "bob.key", "--answer", answer, "--out", "r.npz"]);
    unnamed("damaged").fails_with(4, &["does not match"]);
    unnamed("answer").fails_with(3, &["bob.key", "chosen messages"]);
    unnamed("stripped").fails_with(4, &["other parties"]);
    let identity = Identity::load(&bench.path("alice-id.key")).unwrap();
    bench.write("cheating", signed::sign(&damaged[106..], &identity).unwrap());
    unnamed("cheating").fails_with(4, &["cheated", "bob.key is invalidated"]);
    unnamed("answer").fails_with(3, &["bob.key", "failed its check"]);
    by("", "none.pub", OPEN).fails_with(3, &["none.pub"]);
}

/// Memory is refused by what the job says it needs: that is enough for every step, and not many times too
/// much for the largest.
#[cfg(target_os = "linux")]
#[test]
fn every_step_holds_what_its_job_says() {
    use tacit::Security;
    use tacit::job::nisc::{Code, Job, Params};
    for (code, name) in [(Code::Linear, "linear"), (Code::QuasiCyclic, "quasi-cyclic")] {
        let bench = Bench::new();
        let count = 1 << 19;
        let peak = |args: &[&str]| {
            let child = bench.spawn(&[&["nisc"], args].concat());
            let id = child.id();
            let peak = std::thread::spawn(move || common::peak_kibibytes(id) << 10);
            common::wait(child).success();
            peak.join().unwrap()
        };
        let keygen = ["keygen", "--code", name, "--out", "bob.key", "--count", &count.to_string()];
        let answer = ["answer", "--public", "bob.pub", "--key", "alice.key", "--out", "answer"];
        let sender = ["expand", "--key", "alice.key", "--public", "bob.pub", "--out", "s.npz"];
        let receiver = ["expand", "--key", "bob.key", "--answer", "answer", "--out", "r.npz"];
        let peaks = [&keygen[..], &answer, &sender, &receiver].map(peak);
        let said = Job { params: Params { code, security: Security::Malicious, count } }.memory();
        let largest = peaks.into_iter().max().unwrap();
        println!("{name}: {:?} MiB of {} MiB", peaks.map(|peak| peak >> 20), said >> 20);
        assert!(said >= largest && 2 * said <= 3 * largest, "{name}: {peaks:?} of {said}");
    }
}

/// Bits, texts, strings of bytes and files of bytes: what was chosen comes out, in the form that the output's name
/// says, and a changed reply opens to nothing.
#[test]
fn messages_of_any_length_and_form() {
    let numbered = |more: &[&str], out: &str, messages: &str, content: &[u8]| {
        let bench = exchange("linear");
        bench.write(messages, content);
        let words = |words: &[&str]| -> Vec<String> {
            let of = |word: &&str| match *word {
                "pairs.txt" => messages.to_owned(),
                "got.txt" => out.to_owned(),
                word => word.to_owned(),
            };
            words.iter().map(of).collect()
        };
        let run = |list: &[&str]| nisc(&bench, &words(list).iter().map(String::as_str).collect::<Vec<_>>());
        run(REPLY).success();
        let reply = std::fs::read(bench.path("reply")).unwrap();
        let mut changed = reply.clone();
        *changed.last_mut().unwrap() ^= 1;
        bench.write("reply", &changed);
        run(OPEN).fails_with(4, &["reply", "changed after it was written"]);
        bench.write("reply", &reply);
        for word in more {
            assert!(run(OPEN).error_line().contains(word), "{word}");
        }
        if more.is_empty() {
            run(OPEN).success();
            return (bench.read(out), reply.len());
        }
        (String::new(), reply.len())
    };
    // Choices 0, 1, 1, 0, 1. Two bits a transfer, beside what is the same for any number.
    let (got, bits) = numbered(&[], "got.txt", "bits.txt", b"0 1\n0 1\n1 0\n1 0\n0 0\n");
    assert_eq!(got, "0\n1\n0\n1\n0\n");
    let (got, bytes) = numbered(&[], "got.txt", "m.bin", &(0..10).collect::<Vec<u8>>());
    assert_eq!(got, "00\n03\n05\n06\n09\n");
    assert_eq!((bits + 8, bits), (bytes, 53 + 16 + 2 + 1 + 32));
    let table = "m0,m1\none,two\n,\"a longer one, of more than a block\"\nx,y\nZürich,z\np,q\n".as_bytes();
    let (got, _) = numbered(&[], "got.csv", "m.csv", table);
    assert_eq!(got, "choice,message\n0,one\n1,\"a longer one, of more than a block\"\n1,y\n0,Zürich\n1,q\n");
    numbered(&["texts of any length"], "got.txt", "m.csv", table);
    let (got, _) = numbered(&[], "got.csv", "m.bin", &(0..40).collect::<Vec<u8>>());
    assert!(got.contains("\n0,00010203\n1,0c0d0e0f\n"), "{got}");
    let bench = exchange("linear");
    bench.write("pairs.txt", "0 1\n0 2\n0 1\n0 1\n0 1\n");
    nisc(&bench, REPLY).fails_with(3, &["pairs.txt", "line 2"]);
    bench.write("pairs.txt", "0 1\n");
    nisc(&bench, REPLY).fails_with(3, &["pairs.txt", "has 1 message pair", "5"]);
}
