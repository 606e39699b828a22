//! `tacit tags` between real processes, against a plain join written here.

use crate::common::{Bench, Said, free_port};
use std::io::BufRead;

const PRIVATE: &[&str] = &["--private", "large.oprf"];

fn table(numbers: impl IntoIterator<Item = u32>) -> String {
    let mut out = "id,email\n".to_owned();
    for (row, number) in numbers.into_iter().enumerate() {
        let name = if row % 2 == 0 { "User" } else { "user" };
        out += &format!("{row}, {name}{number}@example.com\n");
    }
    out
}

fn publish(bench: &Bench, more: &[&str]) -> Said {
    let base = ["--json", "tags", "publish", "--input", "large.csv", "--key", "email"];
    let files = ["--out", "large.tags", "--private", "large.oprf", "--identity", "alice.key"];
    bench.run(&[&base[..], &files, more].concat())
}

/// Alice serves and Bob queries with `small.csv`; `more` is for Bob.
fn meet(bench: &Bench, tags: &str, more: &[&str]) -> (Said, Said) {
    let address = format!("127.0.0.1:{}", free_port());
    let serve =
        ["--json", "tags", "serve", "--listen", &address, "--identity", "alice.key", "--peer", "bob.pub"];
    let query =
        ["--json", "tags", "query", "--connect", &address, "--identity", "bob.key", "--peer", "alice.pub"];
    let mine = ["--tags", tags, "--input", "small.csv", "--key", "email", "--connect-timeout", "20"];
    let serve = [&serve[..], PRIVATE, &["--connect-timeout", "20"]].concat();
    bench.run_both(&serve, &[&query[..], &mine, more].concat())
}

/// What stands behind `"name":`.
fn field(json: &str, name: &str) -> String {
    let rest =
        json.split(&format!("\"{name}\":")).nth(1).unwrap_or_else(|| panic!("{name} is missing in {json}"));
    rest.split([',', '}']).next().unwrap().trim_matches('"').to_owned()
}

fn ready(large: impl IntoIterator<Item = u32>, small: impl IntoIterator<Item = u32>) -> Bench {
    let bench = Bench::with_keys();
    bench.write("large.csv", table(large));
    bench.write("small.csv", table(small));
    bench
}

#[test]
fn a_published_file_gives_the_plain_join() {
    // Duplicates on both sides, in two spellings, and keys that only one side has.
    let bench = ready((0..3000).chain(0..5), (2900..3300).chain(2990..3010));
    let published = publish(&bench, &[]).success().to_owned();
    assert_eq!(field(&published, "keys"), "3000");
    let info = bench.run(&["--json", "tags", "info", "large.tags", "--check"]).success().to_owned();
    for name in ["digest", "id", "public_key", "tag_bits"] {
        assert_eq!(field(&info, name), field(&published, name));
    }
    let files = ["--output", "both.csv", "--output-rest", "rest.csv", "--output-all", "all.csv"];
    let (served, queried) = meet(&bench, "large.tags", &files);
    let (served, queried) = (served.success(), queried.success());
    assert_eq!(field(queried, "matches"), "100");
    let lines = |name: &str| bench.read(name).lines().map(str::to_owned).collect::<Vec<_>>();
    let (both, rest, all) = (lines("both.csv"), lines("rest.csv"), lines("all.csv"));
    assert_eq!((both.len(), rest.len(), all.len()), (111, 311, 421));
    assert_eq!(all[0], "id,email,matched");
    for line in &all[1..] {
        let (row, matched) = line.rsplit_once(',').unwrap();
        let of = if matched == "true" { &both } else { &rest };
        assert!(of.iter().any(|line| line == row), "{line}");
    }
    assert_eq!(field(queried, "own_keys"), "400");
    assert_eq!(field(queried, "peer_keys"), "3000");
    assert_eq!((field(served, "queries"), field(served, "queries_left")), ("400".into(), "3696".into()));
    assert!(served.contains("3000 distinct keys") && queried.contains("400 queries"));
    let small = bench.read("small.csv");
    let expected = small.lines().filter(|line| {
        let number = line.split("ser").nth(1).and_then(|rest| rest.split('@').next()?.parse::<u32>().ok());
        number.is_none_or(|number| number < 3000)
    });
    assert_eq!(bench.read("both.csv").lines().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    assert!(bench.leftovers().is_empty());
    let info = bench.run(&["tags", "info", "large.oprf", "--identity", "alice.key"]).success().to_owned();
    assert!(info.contains("400 queries answered, of 1 client"), "{info}");
}

#[test]
fn queries_run_out_for_each_client_and_the_refusal_says_so() {
    let bench = ready(0..10, 5..10);
    publish(&bench, &["--lifetime", "20", "--max-queries", "7"]).success();
    let (served, queried) = meet(&bench, "large.tags", &[]);
    assert_eq!(
        (field(served.success(), "queries_left"), field(queried.success(), "matches")),
        ("2".into(), "5".into())
    );
    let (served, queried) = meet(&bench, "large.tags", &[]);
    for said in [served, queried] {
        said.fails_with(4, &["5 queries", "leave 2", "new publication"]);
    }
    // Known without asking.
    bench.write("small.csv", table(0..8));
    let peer = ["--connect", "127.0.0.1:9", "--identity", "bob.key", "--peer", "alice.pub"];
    let query = ["tags", "query", "--tags", "large.tags", "--input", "small.csv", "--key", "email"];
    let queried = bench.run(&[&query[..], &peer].concat());
    queried.fails_with(3, &["8 distinct keys", "7 queries"]);
}

#[test]
fn rotation_takes_a_new_key_and_voids_the_old_file() {
    let bench = ready(0..50, 40..60);
    let first = publish(&bench, &["--lifetime", "40", "--max-queries", "20"]).success().to_owned();
    let (served, _) = meet(&bench, "large.tags", &[]);
    assert_eq!(field(served.success(), "queries_left"), "0");
    std::fs::rename(bench.path("large.tags"), bench.path("old.tags")).unwrap();
    bench.write("large.csv", table(0..55));
    let rotate =
        ["--json", "tags", "rotate", "--input", "large.csv", "--key", "email", "--out", "large.tags"];
    let rotate = [&rotate[..], PRIVATE, &["--identity", "alice.key"]].concat();
    let second = bench.run(&rotate).success().to_owned();
    for name in ["id", "digest", "public_key"] {
        assert_ne!(field(&first, name), field(&second, name));
    }
    assert_eq!((field(&second, "lifetime"), field(&second, "max_queries")), ("40".into(), "20".into()));
    let (served, queried) = meet(&bench, "old.tags", &[]);
    served.fails_with(4, &["the client's file of tags is not of this publication"]);
    queried.fails_with(3, &["old.tags: not the publisher's current publication; fetch it again"]);
    let (served, queried) = meet(&bench, "large.tags", &[]);
    assert_eq!(
        (field(served.success(), "queries_left"), field(queried.success(), "matches")),
        ("0".into(), "15".into())
    );
    assert!(bench.leftovers().is_empty());
}

#[test]
fn what_does_not_fit_is_refused_with_cause_and_remedy() {
    let bench = ready(0..600, 0..5);
    publish(&bench, &[]).success();
    let before = std::fs::read(bench.path("large.oprf")).unwrap();
    publish(&bench, &[]).fails_with(3, &["large.tags", "exists already", "--overwrite"]);
    publish(&bench, &["--overwrite"]).fails_with(3, &["large.oprf", "exists already", "another name"]);
    assert!(std::fs::read(bench.path("large.oprf")).unwrap() == before);
    let to = |more: &[&str]| {
        let peer = ["--connect", "127.0.0.1:9", "--identity", "bob.key", "--peer", "alice.pub"];
        let base = ["tags", "query", "--tags", "large.tags", "--input", "small.csv", "--key", "email"];
        bench.run(&[&base[..], &peer, more].concat())
    };
    let other = "large.tags: keys differ: --no-trim (yours given, the file's not given); use the same as the tag \
         file";
    to(&["--no-trim"]).fails_with(2, &[other]);
    let with = |key: &str| {
        let peer = ["--connect", "127.0.0.1:9", "--identity", "bob.key", "--peer", "alice.pub"];
        let base = ["tags", "query", "--tags", "large.tags", "--input", "small.csv", "--key", key];
        bench.run(&[&base[..], &peer].concat())
    };
    let other = "large.tags: keys differ: --key types (yours email, the file's text); use --key email";
    with("email:email").fails_with(2, &[other]);
    with("email,id").fails_with(2, &["--key columns (yours 2, the file's 1); use the same as the tag file"]);
    // The private file in the place of the other, and one that was cut.
    let private = bench.run(&["tags", "info", "large.oprf"]);
    private.fails_with(2, &["large.oprf is a private file", "--identity or --seal-key"]);
    let base = ["tags", "query", "--input", "small.csv", "--key", "email", "--tags", "large.oprf"];
    let peer = ["--connect", "127.0.0.1:9", "--identity", "bob.key", "--peer", "alice.pub"];
    let stolen = bench.run(&[&base[..], &peer].concat());
    stolen.fails_with(3, &["large.oprf: this is the publisher's private file; delete this copy"]);
    let whole = std::fs::read(bench.path("large.tags")).unwrap();
    bench.write("cut.tags", &whole[..50]);
    bench.run(&["tags", "info", "cut.tags"]).fails_with(3, &["cut.tags", "damaged", "cut after 50 bytes"]);
    let info = bench.run(&["tags", "info", "large.tags"]);
    assert!(info.success().contains("600 keys (1 column, text), tags of "), "{info:?}");
    to(&["--post-quantum"]).fails_with(2, &["oprf", "Diffie–Hellman", "take paxos"]);
    to(&["--threads", "2"]).fails_with(2, &["--threads"]);
    let serve = ["tags", "serve", "--listen", "127.0.0.1:0", "--identity", "bob.key", "--peer", "alice.pub"];
    bench.run(&[&serve[..], PRIVATE].concat()).fails_with(3, &["large.oprf", "another key"]);
    bench.run(&["tags", "info", "small.csv"]).fails_with(3, &["small.csv", "not a file of tags"]);
    bench.run(&["tags", "info", "none.tags"]).fails_with(3, &["none.tags", "no such file"]);
    let terms = ["--lifetime", "3", "--max-queries", "4"];
    let other = ["tags", "publish", "--input", "large.csv", "--key", "email", "--out", "b.tags"];
    let files = ["--private", "b.oprf", "--identity", "alice.key"];
    bench.run(&[&other[..], &files, &terms].concat()).fails_with(2, &["queries"]);
    bench.run(&[&other[..], &files[..2]].concat()).fails_with(2, &["--identity", "--seal-key"]);
    assert!(!bench.exists("b.tags") && !bench.exists("b.oprf") && bench.leftovers().is_empty());
    let mut bytes = std::fs::read(bench.path("large.tags")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    bench.write("large.tags", &bytes);
    bench
        .run(&["tags", "info", "large.tags", "--check"])
        .fails_with(3, &["large.tags", "damaged", "fetch it again"]);
    bytes[60] ^= 1;
    bench.write("large.tags", &bytes);
    to(&[]).fails_with(3, &["large.tags", "damaged", "fetch it again"]);
}

#[test]
fn a_server_in_use_is_said_to_be() {
    let bench = ready(0..5, 0..5);
    publish(&bench, &[]).success();
    let address = format!("127.0.0.1:{}", free_port());
    let serve = ["tags", "serve", "--listen", &address, "--identity", "alice.key", "--peer", "bob.pub"];
    let mut first = bench.spawn(&[&serve[..], PRIVATE].concat());
    // It has the file once it waits; before that whoever looks into the file first has it.
    let mut said = std::io::BufReader::new(first.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("waiting for") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "the server ended");
    }
    let info = bench.run(&["tags", "info", "large.oprf", "--identity", "alice.key"]);
    info.fails_with(3, &["large.oprf", "in use"]);
    let _ = first.kill();
    let _ = first.wait();
}

#[test]
fn an_intersection_asks_a_published_file_where_there_is_one() {
    let bench = ready(0..500, 480..520);
    publish(&bench, &[]).success();
    let address = format!("127.0.0.1:{}", free_port());
    let serve =
        ["--json", "tags", "serve", "--listen", &address, "--identity", "alice.key", "--peer", "bob.pub"];
    let serve = [&serve[..], PRIVATE, &["--connect-timeout", "20"]].concat();
    let ask = ["--json", "psi", "--connect", &address, "--identity", "bob.key", "--peer", "alice.pub"];
    let mine = ["--tags", "large.tags", "--input", "small.csv", "--key", "email", "--output", "both.csv"];
    let (_, asked) = bench.run_both(&serve, &[&ask[..], &mine].concat());
    let asked = asked.success();
    assert_eq!((field(asked, "matches"), field(asked, "protocol")), ("20".into(), "oprf".into()));
    assert!(asked.contains("with a tag file only your keys"), "{asked}");
    assert_eq!(bench.read("both.csv").lines().count(), 21);
    // What it would cost, without a peer; the published file's size plays no part.
    let said = bench.run(&[&ask[..], &mine[..6], &["--dry-run"]].concat());
    let lines: Vec<&str> = said.success().lines().collect();
    let told = |line: &str| ["protocol", "count", "picked"].map(|name| field(line, name));
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(told(lines[0]), ["oprf", "40", "true"].map(String::from));
    assert_eq!(told(lines[1]), ["vole", "40", "false"].map(String::from));
    let wrong: [(&[&str], &[&str]); 9] = [
        (&["--protocol", "oprf"], &["--protocol", "--tags"]),
        (&["--tags", "large.tags", "--protocol", "vole"], &["--protocol", "leave one"]),
        (&["--tags", "large.tags", "--result", "both"], &["--tags", "only the client"]),
        (&["--tags", "large.tags", "--post-quantum"], &["post-quantum"]),
        (&["--tags", "large.tags", "--base-ot", "mrr21"], &["--base-ot", "no oblivious transfer"]),
        (&["--tags", "large.tags", "--security", "semi-honest"], &["--security", "cheating server"]),
        (&["--tags", "large.tags", "--max-peer-rows", "9"], &["--max-peer-rows", "leave it out"]),
        (&["--tags", "large.tags", "--duplicates", "all"], &["--duplicates", "--reveal payload"]),
        (
            &["--tags", "large.tags", "--no-nfc", "--dry-run"],
            &["large.tags", "keys differ: --no-nfc (yours given"],
        ),
    ];
    let fixed = [&ask[1..], &["--input", "small.csv", "--key", "email"]].concat();
    for (options, words) in wrong {
        bench.run(&[&fixed[..], options].concat()).fails_with(2, words);
    }
}
