//! Errors as JSON under `--json`, one object for each who may be to blame; and fingerprints.

use crate::common::{Bench, Said, free_port, wait};
use serde_json::Value;
use std::net::TcpListener;

/// The object on the last line of standard error; standard output has nothing.
fn object(said: &Said, code: i32, blame: &str) -> Value {
    assert_eq!((said.code, said.out.as_str()), (code, ""), "{said:?}");
    let line = said.err.lines().last().unwrap_or_else(|| panic!("{said:?}"));
    let object: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {said:?}"));
    assert_eq!(object.as_object().unwrap().len(), 1, "{line}");
    let error = object["error"].clone();
    assert_eq!((error["code"].as_i64(), error["blame"].as_str()), (Some(code.into()), Some(blame)), "{line}");
    let message = error["message"].as_str().unwrap();
    assert!(!message.is_empty() && !message.contains('\n') && !message.starts_with("error"), "{line}");
    error
}

const PSI: &str = "--json psi --insecure-plaintext --input t.csv --key k --connect-timeout 1";

#[test]
fn an_error_is_one_object_for_each_who_may_be_to_blame() {
    let bench = Bench::new();
    bench.write("t.csv", "k\nann\n");
    let run = |words: &str| bench.run(&words.split_whitespace().collect::<Vec<_>>());
    let message = |error: Value| error["message"].as_str().unwrap().to_owned();
    // Before anything of the command line is understood, and after.
    assert!(message(object(&run("psi --nonsense --json"), 2, "usage")).contains("--nonsense"));
    let said = run("--json ot --listen 127.0.0.1:1 --role sender --count 1 --protocol none");
    assert!(message(object(&said, 2, "usage")).contains("none"));
    let said = run("--json psi --insecure-plaintext --listen 203.0.113.1:1 --input t.csv --key k");
    let text = message(object(&said, 2, "usage"));
    assert!(text.starts_with("--insecure-plaintext: ") && text.contains("--i-understand"), "{text}");
    let address = format!("127.0.0.1:{}", free_port());
    let said = run(&format!("{PSI} --connect {address} --input missing.csv"));
    assert_eq!(said.code, 3, "{said:?}");
    let said = run(&PSI.replace("t.csv", "missing.csv").replace("psi", &format!("psi --connect {address}")));
    assert!(message(object(&said, 3, "input")).contains("missing.csv"));
    let text = message(object(&run(&format!("{PSI} --connect {address}")), 4, "peer"));
    assert!(text.contains(&address) && text.contains("--listen"), "{text}");
    // A port that another process has is nobody's fault but this machine's.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    assert!(message(object(&run(&format!("{PSI} --listen {address}")), 1, "other")).contains("in use"));
    // Without --json it is a line of words, as ever.
    let said = run(&format!("{PSI} --listen {address}").replace("--json", "--quiet"));
    said.fails_with(1, &["error: ", "in use"]);
}

/// Every setting that differs is in the object, called as its option, with what either side said.
#[test]
fn differences_are_fields_of_the_object() {
    let bench = Bench::new();
    let address = format!("127.0.0.1:{}", free_port());
    let side = |way: &str, words: &str| {
        let line = format!("--json ot {way} {address} --insecure-plaintext --protocol kos {words}");
        line.split(' ').map(str::to_owned).collect::<Vec<_>>()
    };
    let [first, second] = [
        side("--listen", "--role sender --count 5 --kind rot"),
        side("--connect", "--role receiver --count 6 --kind cot"),
    ];
    let words = |side: &[String]| side.iter().map(String::as_str).map(str::to_owned).collect::<Vec<_>>();
    let (first, second) = (words(&first), words(&second));
    let (a, b) = bench.run_both(
        &first.iter().map(String::as_str).collect::<Vec<_>>(),
        &second.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    for (said, [count, kind]) in [(a, [["5", "6"], ["rot", "cot"]]), (b, [["6", "5"], ["cot", "rot"]])] {
        let error = object(&said, 4, "peer");
        let told = |i: usize| {
            ["setting", "here", "there"]
                .map(|name| error["differences"][i][name].as_str().unwrap().to_owned())
        };
        assert_eq!(told(0), ["--count", count[0], count[1]]);
        assert_eq!(told(1), ["--kind", kind[0], kind[1]]);
        assert!(error["differences"].get(2).is_none(), "{error}");
        let text = error["message"].as_str().unwrap();
        assert!(text.contains(&format!("--count (yours {}, peer's {})", count[0], count[1])), "{text}");
    }
}

/// What is wrong with a command line is one thought, and what to do about it another.
#[test]
fn wrong_command_lines_are_told_in_one_sentence() {
    let bench = Bench::new();
    let ends = "; see `tacit help";
    let cases: &[(&[&str], &str)] = &[
        (
            &["psi", "--connect-timeout", "0"],
            "'--connect-timeout <SECONDS>': must be from 1 to 86400; see `tacit help psi`",
        ),
        (
            &["psi", "--result", "count"],
            "invalid value 'count' for '--result <RESULT>': use one of me, peer, both",
        ),
        (&["join"], "error: <CODE> is missing; see `tacit help join`"),
        (
            &["request", "--list", "--identity", "a", "--peer", "b"],
            "error: give --connect ADDR or --via RELAY",
        ),
        (
            &["psi", "--key", "a", "--input", "dir/1.csv", "dir/2.csv"],
            "unexpected argument 'dir/2.csv' found; quote a pattern of files, or repeat --input",
        ),
        (&["psi", "--memory", "1x"], ends),
        (&["psi", "--key", "mail:mails"], ends),
        (&["request", "--terms", "1234"], ends),
        (&["relay", "--pairs", "0"], ends),
        (&["invite", "--minutes", "0"], "must be from 1 to "),
    ];
    for (words, said) in cases {
        let refused = bench.run(words);
        refused.fails_with(2, &[said]);
        let line = refused.error_line();
        assert!(!line.contains(";;") && !line.contains(":;") && line.matches("; ").count() <= 2, "{line}");
    }
}

#[test]
fn fingerprints_of_both_halves_are_what_keygen_said() {
    let bench = Bench::new();
    let made = bench.run(&["--json", "keygen", "--out", "alice.key"]);
    let made: Value = serde_json::from_str(made.success()).unwrap();
    let fingerprint = made["fingerprint"].as_str().unwrap();
    for file in ["alice.key", "alice.pub"] {
        assert_eq!(bench.run(&["fingerprint", file]).success().trim(), fingerprint);
        let object: Value =
            serde_json::from_str(bench.run(&["fingerprint", "--json", file]).success()).unwrap();
        assert_eq!(
            (object["fingerprint"].as_str(), object["file"].as_str()),
            (Some(fingerprint), Some(file))
        );
    }
    bench.write("other", "hello\n");
    bench.run(&["fingerprint", "other"]).fails_with(3, &["other", "not a Tacit public key"]);
    bench.run(&["fingerprint", "missing"]).fails_with(3, &["missing"]);
    let damaged = bench.read("alice.pub").replace("tacit-ed25519 ", "tacit-ed25519 !");
    bench.write("damaged.pub", damaged);
    bench.run(&["fingerprint", "damaged.pub"]).fails_with(3, &["damaged"]);
}

/// A chain of keys is listed with the last day of each, and an old private key with its successor.
#[test]
fn a_fingerprint_tells_which_key_followed_which() {
    let bench = Bench::with_keys();
    let of = |file: &str| bench.run(&["fingerprint", file]).success().trim_end().to_owned();
    let old = of("alice.key");
    assert_eq!(old, of("alice.pub"));
    let keygen = |new: &str, old: &str| {
        bench.run(&["keygen", "--out", new, "--successor-of", old]).success().to_owned()
    };
    let said = keygen("alice2.key", "alice.key");
    assert!(said.contains("alice2.pub and alice.pub (the same) name the new key"), "{said}");
    assert!(!said.contains("any more"), "{said}");
    let new = of("alice2.key");
    for file in ["alice.pub", "alice2.pub"] {
        let said = of(file);
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!((lines[0], lines.len()), (&*new, 4), "{said}");
        assert!(lines[2].starts_with(&format!("  {old} accepted up to and including 20")), "{said}");
        assert_eq!(lines[3], format!("  {new} the newest"));
    }
    assert_eq!(of("alice.key"), format!("{old}\nthis key was followed by {new}, as alice.pub says"));
    assert!(keygen("alice3.key", "alice2.key").contains("do not pass them on any more"));
    // As an editor may leave it.
    let text = bench.read("bob.pub");
    bench.write("marked.pub", format!("\u{feff}\r\n{text}"));
    assert_eq!(of("marked.pub"), of("bob.key"));
}

#[test]
fn what_is_wrong_with_a_keys_file_or_its_place_has_its_own_remedy() {
    let bench = Bench::with_keys();
    std::fs::create_dir(bench.path("folder")).unwrap();
    bench.run(&["fingerprint", "folder"]).fails_with(3, &["folder: is a directory; name a file in it"]);
    bench.run(&["fingerprint", "none.key"]).fails_with(3, &["make one with tacit keygen"]);
    let long = "x".repeat(101);
    for comment in [long.as_str(), "two\nlines"] {
        let said = bench.run(&["keygen", "--out", "c.key", "--comment", comment]);
        said.fails_with(2, &["--comment", "a comment"]);
    }
    assert!(!bench.exists("c.key"));
    bench.run(&["keygen", "--out", "c.key", "--comment", &long[1..]]).success();
}

/// A side that stops after the connection gives the other one its cause, of a fixed list, and nothing of its data.
#[test]
fn a_side_that_stops_tells_the_other_why() {
    let bench = Bench::with_keys();
    bench.write("one.csv", "k\nann\n");
    bench.write("two.csv", "k\nann\nbob\n");
    let address = format!("127.0.0.1:{}", free_port());
    let alice = ["--listen", &address, "--identity", "alice.key", "--peer", "bob.pub"];
    let bob = ["--connect", &address, "--identity", "bob.key", "--peer", "alice.pub"];
    let psi = |side: &[&'static str]| [&["psi", "--key", "k"], side].concat();
    let (few, many) = (
        psi(&["--input", "one.csv", "--result", "peer", "--max-peer-rows", "1"]),
        psi(&["--input", "two.csv", "--result", "me"]),
    );
    let (a, b) = bench.run_both(&[&few[..], &alice].concat(), &[&many[..], &bob].concat());
    a.fails_with(4, &["a set of 2 elements", "--max-peer-rows"]);
    b.fails_with(4, &["the peer stopped: your input is larger than it accepts"]);
    assert!(!b.err.contains("one.csv") && !b.err.contains('1'), "no limit and no file: {b:?}");
}

/// An interrupt reaches the peer as one, and not as a network that failed.
#[cfg(unix)]
#[test]
fn an_interrupt_is_told_to_the_peer() {
    let bench = Bench::with_keys();
    let address = format!("127.0.0.1:{}", free_port());
    let ot = ["ot", "--count", "1000000000", "--protocol", "kos"];
    let alice = ["--role", "sender", "--listen", &address, "--identity", "alice.key", "--peer", "bob.pub"];
    let bob = ["--role", "receiver", "--connect", &address, "--identity", "bob.key", "--peer", "alice.pub"];
    let first = bench.spawn(&[&ot[..], &alice].concat());
    let second = bench.spawn(&[&ot[..], &bob].concat());
    std::thread::sleep(std::time::Duration::from_secs(3));
    let signal = std::process::Command::new("kill").args(["-INT", &second.id().to_string()]).status();
    assert!(signal.unwrap().success());
    wait(second).fails_with(130, &["interrupted"]);
    wait(first).fails_with(4, &["the peer stopped: it was interrupted"]);
}

/// A slip in a name that the program knows is answered with that name.
#[test]
fn a_misspelled_name_is_answered_with_the_near_one() {
    let bench = Bench::new();
    bench.write("a.csv", "email\na@x.org\n");
    bench.write("typo.toml", "[psi]\nkee = [\"email\"]\n");
    let psi = |more: &str| format!("psi --dry-run --insecure-plaintext --input a.csv --key email {more}");
    for (words, near) in [
        (psi("--reveal conut"), "there is no kind `conut`; did you mean `count`?"),
        (psi("--reveal suum:amount"), "did you mean `sum`?"),
        (psi("--base-ot rotd"), "--base-ot: there is no base OT `rotd`; did you mean `roted`?"),
        (psi("--link lann"), "did you mean `lan`?"),
        (psi("--protocol pasox"), "'paxos'"),
        (psi("--reveal nonsense"), "choose one of rows, payload"),
        ("eval mllionaires --dry-run".into(), "did you mean `millionaires`?"),
        ("eval singed-lt32 --dry-run".into(), "did you mean `signed-lt32`?"),
        ("eval add8 --ot koss --dry-run".into(), "--ot: there is no OT protocol `koss`; did you mean `kos`?"),
        ("ot --role sender --count 9 --dry-run --protocol sofspoken".into(), "did you mean `softspoken`?"),
        (
            "ot --role sender --count 9 --dry-run --security semi-honest --protocol softspoken --code group-4".into(),
            "there is no code `group-4`; did you mean `groups-4`?",
        ),
        ("vole --role sender --count 9 --field gf218 --dry-run".into(), "did you mean `gf128`?"),
        ("psi --config typo.toml".into(), "unknown setting `kee` for [psi]; did you mean `key`?"),
        ("check a.csv --key email:phnoe".into(), "did you mean `phone`?"),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let said = bench.run(&words);
        assert!(matches!(said.code, 2 | 3) && said.err.contains(near), "{words:?}: {said:?}");
    }
}

/// Columns by number, and blanks beside commas: taken, or said what to write.
#[test]
fn lists_of_columns_are_read_as_people_write_them() {
    let bench = Bench::new();
    bench.write("a.csv", "first,last,mail\nAnn,Lee,a@x.org\n");
    let check = |more: &[&str]| bench.run(&[&["check", "a.csv"], more].concat());
    for keys in ["first, last", "first , mail:email", "first,\tlast"] {
        check(&["--key", keys]).success();
    }
    let gap = "a name is missing beside a comma: write a,b without a blank";
    check(&["--key", "first,", "last"]).fails_with(2, &[gap]);
    let psi = ["psi", "--dry-run", "--insecure-plaintext", "--input", "a.csv", "--key", "mail"];
    bench
        .run(&[&psi[..], &["--reveal", "payload", "--result", "peer", "--give", "first,", "last"]].concat())
        .fails_with(2, &[gap]);
    bench
        .run(&[&psi[..], &["--reveal", "payload:first,", "last"]].concat())
        .fails_with(2, &["write a,b without a blank", "here payload:first,last"]);
    for (number, numbered) in [("1", true), ("3", true), ("4", false), ("0", false)] {
        let said = check(&["--key", number]);
        said.fails_with(3, &["no column is named"]);
        assert_eq!(said.err.contains("--no-header reads the first line as data"), numbered, "{said:?}");
    }
    check(&["--key", "3", "--no-header"]).success();
}
