//! `tacit pair` as two clean rooms and as one, against a plain intersection of the same tables.

use crate::common::{Bench, Said};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use tacit_crypto::{Block, Prg};

/// The numbers of people, in a random order; some come twice, in another spelling, and some rows have no address.
struct Town {
    text: String,
    people: BTreeSet<u64>,
}

fn address(person: u64) -> String {
    format!("person.{person}@example.org")
}

fn town(prg: &mut Prg, from: u64, to: u64) -> Town {
    let (mut text, mut people) = ("id,mail,note\n".to_owned(), BTreeSet::new());
    for row in 0..(to - from) * 2 {
        let person = from + prg.below(to - from);
        let mail = match prg.below(10) {
            0 => String::new(),
            1 => "not an address".to_owned(),
            2 => address(person).to_uppercase(),
            3 => format!("\"  {} \"", address(person)),
            _ => address(person),
        };
        if mail.contains('@') {
            people.insert(person);
        }
        text += &format!("{row},{mail},\"a, b\"\n");
    }
    Town { text, people }
}

fn json(said: &Said) -> Value {
    serde_json::from_str(said.success().lines().last().unwrap()).unwrap()
}

/// A bench with the secrets of both sides.
fn rooms() -> Bench {
    let bench = Bench::new();
    bench.run(&["pair", "keygen", "--role", "publisher", "--out", "p.key", "--salt-out", "s.salt"]).success();
    bench.run(&["pair", "keygen", "--role", "advertiser", "--out", "a.key"]).success();
    bench
}

fn own<'a>(input: &'a str, key: &'a str, output: &'a str) -> Vec<&'a str> {
    let base = ["--json", "pair", "encrypt", "--input", input, "--key", "mail:email", "--salt", "s.salt"];
    [&base[..], &["--pair-key", key, "--output", output]].concat()
}

fn again<'a>(list: &'a str, key: &'a str, output: &'a str) -> Vec<&'a str> {
    let base = ["--json", "pair", "encrypt", "--list", list, "--salt", "s.salt"];
    [&base[..], &["--pair-key", key, "--output", output]].concat()
}

fn with<'a>(args: Vec<&'a str>, more: &[&'a str]) -> Vec<&'a str> {
    [&args[..], more].concat()
}

/// The column of a CSV file, in order.
fn column(text: &str, name: &str) -> Vec<String> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at = names.len() - names.iter().position(|one| *one == name).unwrap();
    // Searched from the end, because the text in front may be in quotes.
    lines.map(|line| line.rsplit(',').nth(at - 1).unwrap().trim_matches('"').to_owned()).collect()
}

/// The publisher's identifiers by person, out of what `ids` wrote.
fn identifiers(text: &str) -> BTreeMap<u64, String> {
    let mut found = BTreeMap::new();
    for (line, id) in text.lines().skip(1).zip(column(text, "publisher_identifier")) {
        let mail = line.to_lowercase();
        let person =
            mail.split("person.").nth(1).and_then(|rest| rest.split('@').next()?.parse().ok()).unwrap();
        let before = found.insert(person, id.clone());
        assert!(before.is_none_or(|before| before == id), "a person with two identifiers");
    }
    found
}

/// Both rooms' steps, files ending in `end`; the result of `match`.
fn two_rooms(bench: &Bench, end: &str) -> Value {
    let file = |name: &str| format!("{name}.{end}");
    let [p, a, pa, ap, common] = ["p1", "a1", "p2", "a2", "common"].map(file);
    bench.run(&own("members.csv", "p.key", &p)).success();
    bench.run(&with(own("clients.csv", "a.key", &a), &["--threads", "2", "--adv-pub-id", "shop"])).success();
    bench.run(&again(&p, "a.key", &pa)).success();
    bench.run(&again(&a, "p.key", &ap)).success();
    let compare = ["--json", "pair", "match", "--publisher", &pa, "--advertiser", &ap, "--output", &common];
    json(&bench.run(&compare))
}

fn target(bench: &Bench, common: &str, output: &str) -> BTreeSet<String> {
    let ids =
        ["pair", "ids", "--list", common, "--salt", "s.salt", "--pair-key", "a.key", "--output", output];
    bench.run(&ids).success();
    let ids = column(&bench.read(output), "publisher_identifier");
    let distinct: BTreeSet<String> = ids.iter().cloned().collect();
    assert_eq!(distinct.len(), ids.len());
    distinct
}

#[test]
fn two_rooms_and_one_find_the_plain_intersection() {
    let prg = &mut Prg::from_seed(Block::new(11));
    let (members, clients) = (town(prg, 0, 3000), town(prg, 1500, 4000));
    let bench = rooms();
    bench.write("members.csv", &members.text);
    bench.write("clients.csv", &clients.text);
    let both: BTreeSet<u64> = members.people.intersection(&clients.people).copied().collect();
    assert!(both.len() > 900);

    let ids = ["--json", "pair", "ids", "--input", "members.csv", "--key", "mail:email", "--salt", "s.salt"];
    let said = json(&bench.run(&[&ids[..], &["--pair-key", "p.key", "--output", "ids.csv"]].concat()));
    let written = bench.read("ids.csv");
    assert!(written.starts_with("id,mail,note,publisher_identifier\n"));
    let by_person = identifiers(&written);
    assert_eq!(by_person.keys().copied().collect::<BTreeSet<_>>(), members.people);
    assert_eq!((&said["identifiers"], &said["rows"]), (&members.people.len().into(), &6000.into()));
    assert_eq!(said["output_rows"].as_u64().unwrap() as usize, written.lines().count() - 1);
    let expected: BTreeSet<String> = both.iter().map(|person| by_person[person].clone()).collect();

    for end in ["parquet", "csv"] {
        let said = two_rooms(&bench, end);
        let count = |field: &str| said[field].as_u64().unwrap() as usize;
        assert_eq!((count("common"), count("publisher")), (both.len(), members.people.len()));
        assert_eq!(count("advertiser"), clients.people.len());
        let percent = |all: usize| format!("{} %", both.len() * 100 / all);
        assert_eq!(said["publisher_rate"], percent(members.people.len()));
        assert_eq!(said["advertiser_rate"], percent(clients.people.len()));
        assert_eq!(target(&bench, &format!("common.{end}"), &format!("target.{end}.csv")), expected);
    }

    // One room with all secrets, which encrypts once.
    bench.run(&with(own("members.csv", "p.key", "p.csv"), &["--pair-key", "a.key"])).success();
    bench.run(&with(own("clients.csv", "a.key", "a.csv"), &["--pair-key", "p.key"])).success();
    let compare = ["pair", "match", "--publisher", "p.csv", "--advertiser", "a.csv", "--output", "one.csv"];
    let said = bench.run(&compare);
    let line = format!("for this room alone: {} of the publisher's", both.len());
    assert!(said.success().contains(&line) && said.out.contains("to pass on: match rate"), "{}", said.out);
    assert_eq!(target(&bench, "one.csv", "one-target.csv"), expected);
    let set = |name: &str| column(&bench.read(name), "identifier").into_iter().collect::<BTreeSet<_>>();
    assert_eq!(set("p.csv"), set("p2.csv"));
    assert!(bench.leftovers().is_empty());
}

/// Neither list nor result has the table's order, and a second run has another.
#[test]
fn the_order_of_a_list_tells_nothing() {
    let bench = rooms();
    let rows: String = (0..2000).map(|person| format!("{},{}\n", person, address(person))).collect();
    bench.write("members.csv", format!("id,mail\n{rows}"));
    let ids = ["pair", "ids", "--input", "members.csv", "--key", "mail:email", "--salt", "s.salt"];
    bench.run(&[&ids[..], &["--pair-key", "p.key", "--output", "ids.csv"]].concat()).success();
    let in_order = column(&bench.read("ids.csv"), "publisher_identifier");
    let places: BTreeMap<&str, usize> = in_order.iter().map(String::as_str).zip(0..).collect();
    let list = |output: &str| {
        bench.run(&own("members.csv", "p.key", output)).success();
        column(&bench.read(output), "identifier")
    };
    let (one, two) = (list("one.csv"), list("two.csv"));
    assert_ne!(one, two);
    for list in [&one, &two] {
        // Neighbours stay neighbours 2 times on average, with a deviation of 1.4.
        let places: Vec<usize> = list.iter().map(|id| places[id.as_str()]).collect();
        let neighbours = places.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) == 1).count();
        let (fixed, sorted) = (places.iter().zip(0..).filter(|(a, b)| *a == b).count(), places.is_sorted());
        assert!(neighbours < 20 && fixed < 15 && !sorted, "{neighbours} neighbours, {fixed} in their places");
    }
    // The same for what the other room sends back: the lists are in step with neither.
    let back = |list: &str, output: &str| {
        bench.run(&again(list, "a.key", output)).success();
        column(&bench.read(output), "identifier")
    };
    let (first, second) = (back("one.csv", "back-1.csv"), back("one.csv", "back-2.csv"));
    assert_ne!(first, second);
    let alike = first.iter().zip(&second).filter(|(a, b)| a == b).count();
    assert!(alike < 15, "{alike} in the same places");
    assert_eq!(first.iter().collect::<BTreeSet<_>>(), second.iter().collect());
}

/// What is not of one period, one salt, one pair of keys or one kind is refused with its name.
#[test]
fn files_that_do_not_belong_together_are_refused() {
    let bench = rooms();
    let rows: String = (0..1200).map(|person| format!("{},{}\n", address(person), person)).collect();
    bench.write("members.csv", format!("mail,tel\n{rows}"));
    bench.run(&own("members.csv", "p.key", "p1.csv")).success();
    bench.run(&own("members.csv", "a.key", "a1.csv")).success();
    bench.run(&again("p1.csv", "a.key", "p2.csv")).success();
    bench.run(&again("a1.csv", "p.key", "a2.csv")).success();
    bench.run(&["pair", "keygen", "--salt-out", "t.salt"]).success();
    bench.run(&["pair", "keygen", "--role", "advertiser", "--out", "b.key"]).success();

    bench
        .run(&again("p1.csv", "p.key", "x.csv"))
        .fails_with(3, &["p1.csv: a list of the publisher's", "the other side's list"]);
    bench.run(&again("p2.csv", "a.key", "x.csv")).fails_with(3, &["p2.csv: encrypted by both sides already"]);
    let other_salt = [
        "pair",
        "encrypt",
        "--list",
        "p1.csv",
        "--salt",
        "t.salt",
        "--pair-key",
        "a.key",
        "--output",
        "x.csv",
    ];
    bench.run(&other_salt).fails_with(3, &["p1.csv: hashed with salt", "both sides use one salt"]);
    let swapped = [
        "pair",
        "encrypt",
        "--list",
        "p1.csv",
        "--salt",
        "a.key",
        "--pair-key",
        "s.salt",
        "--output",
        "x.csv",
    ];
    bench.run(&swapped).fails_with(3, &["a.key: this is a key, and a salt is expected"]);

    let compare = |p: &str, a: &str| bench.run(&["pair", "match", "--publisher", p, "--advertiser", a]);
    compare("p2.csv", "a2.csv").success();
    compare("a2.csv", "p2.csv")
        .fails_with(3, &["a2.csv: a list of the advertiser's, and the publisher's is expected"]);
    compare("p2.csv", "p2.csv").fails_with(3, &["p2.csv: a list of the publisher's, and the advertiser's"]);
    compare("p1.csv", "a2.csv").fails_with(3, &["p1.csv: encrypted by one side"]);
    bench.run(&again("p1.csv", "b.key", "b2.csv")).success();
    compare("b2.csv", "a2.csv").fails_with(3, &["advertiser's keys differ: b2.csv has", "a2.csv has"]);
    let gmail =
        ["pair", "encrypt", "--input", "members.csv", "--key", "mail:email:gmail", "--salt", "s.salt"];
    let gmail = [&gmail[..], &["--pair-key", "a.key", "--pair-key", "p.key", "--output", "g2.csv"]].concat();
    bench.run(&gmail).success();
    compare("p2.csv", "g2.csv").fails_with(3, &["types differ: p2.csv has email, g2.csv has email:gmail"]);

    let ids = |list: &str, key: &str| {
        bench.run(&[
            "pair",
            "ids",
            "--list",
            list,
            "--salt",
            "s.salt",
            "--pair-key",
            key,
            "--output",
            "x.csv",
        ])
    };
    ids("p1.csv", "a.key").fails_with(3, &["p1.csv: not encrypted by both sides"]);
    ids("p2.csv", "p.key").fails_with(3, &["the advertiser's key is taken away"]);
    ids("p2.csv", "b.key").fails_with(3, &["p2.csv: encrypted with key", "and yours is"]);
    let own_ids = ["pair", "ids", "--input", "members.csv", "--key", "mail:email", "--salt", "s.salt"];
    bench
        .run(&[&own_ids[..], &["--pair-key", "a.key", "--output", "x.csv"]].concat())
        .fails_with(2, &["--pair-key: bid requests have the publisher's identifiers"]);
    bench
        .run(&with(own("members.csv", "p.key", "x.csv"), &["--pair-key", "p.key"]))
        .fails_with(2, &["of different roles"]);
    bench
        .run(&with(again("p1.csv", "a.key", "x.csv"), &["--pair-key", "b.key"]))
        .fails_with(2, &["encrypted by one key"]);
    bench
        .run(&with(own("members.csv", "p.key", "x.csv"), &["--key", "tel"]))
        .fails_with(2, &["--key: PAIR compares one column"]);
    let keyless = [
        "pair",
        "encrypt",
        "--input",
        "members.csv",
        "--salt",
        "s.salt",
        "--pair-key",
        "p.key",
        "--output",
        "x.csv",
    ];
    bench.run(&keyless).fails_with(2, &["--key: the column of identifiers is missing"]);
    assert!(!bench.exists("x.csv") && bench.leftovers().is_empty());
}

#[test]
fn damaged_identifiers_and_short_lists_are_refused() {
    let bench = rooms();
    let rows: String = (0..1000).map(|person| address(person) + "\n").collect();
    bench.write("members.csv", format!("mail\n{rows}"));
    bench.write("few.csv", format!("mail\n{}\n{}\n", address(1), address(2)));
    bench.run(&own("members.csv", "p.key", "p1.csv")).success();
    bench
        .run(&own("few.csv", "p.key", "few1.csv"))
        .fails_with(2, &["--min-list: few.csv has 2 distinct identifiers", "1000"]);
    bench.run(&with(own("few.csv", "p.key", "few1.csv"), &["--min-list", "2"])).success();
    bench.run(&again("few1.csv", "a.key", "x.csv")).fails_with(2, &["--min-list: few1.csv has 2"]);
    let text = bench.read("p1.csv");
    let lines: Vec<&str> = text.lines().collect();
    let zero = "A".repeat(43) + "=";
    let keys = lines[1].split_once(',').unwrap().1;
    let ones = format!("{}=", "/".repeat(43));
    for wrong in [&zero, &ones, "", "x"] {
        let row = format!("{wrong},{keys}");
        let damaged = [&lines[..700], &[row.as_str()], &lines[701..]].concat().join("\n") + "\n";
        bench.write("damaged.csv", damaged);
        bench
            .run(&again("damaged.csv", "a.key", "x.csv"))
            .fails_with(3, &["damaged.csv, line 701: not an encrypted identifier"]);
    }
    // A list with rows of another, and one with rows twice.
    let few = bench.read("few1.csv");
    let (a, b) = (lines[..1000].join("\n"), few.lines().nth(1).unwrap().replace("email", "phone"));
    bench.write("mixed.csv", format!("{a}\n{b}\n"));
    bench
        .run(&again("mixed.csv", "a.key", "x.csv"))
        .fails_with(3, &["mixed.csv, line 1001: made with other keys"]);
    bench.write("twice.csv", format!("{}\n{}\n", lines.join("\n"), lines[5]));
    let said = json(&bench.run(&again("twice.csv", "a.key", "twice2.csv")));
    assert_eq!((&said["duplicates"], &said["identifiers"]), (&1.into(), &1000.into()));
    assert!(!bench.exists("x.csv") && bench.leftovers().is_empty());
}

#[test]
fn secrets_expire_are_kept_and_never_shown() {
    let bench = rooms();
    bench.write("members.csv", format!("mail\n{}\n", address(1)));
    let made = json(&bench.run(&[
        "--json",
        "pair",
        "keygen",
        "--role",
        "publisher",
        "--out",
        "q.key",
        "--days",
        "7",
    ]));
    assert_eq!(made["key"]["role"], "publisher");
    bench
        .run(&["pair", "keygen", "--role", "publisher", "--out", "p.key", "--overwrite"])
        .fails_with(3, &["p.key", "exists already"]);
    bench
        .run(&["pair", "keygen", "--salt-out", "s.salt", "--overwrite"])
        .fails_with(3, &["s.salt", "exists already"]);
    bench.run(&["pair", "keygen"]).fails_with(2, &["--out"]);
    bench
        .run(&["pair", "keygen", "--salt-out", "n.salt", "--salt-days", "31"])
        .fails_with(2, &["31", "from 1 to 30"]);
    bench
        .run(&["pair", "keygen", "--role", "publisher", "--out", "n.key", "--days", "181"])
        .fails_with(2, &["181"]);
    bench
        .run(&with(own("members.csv", "p.key", "s.salt"), &["--overwrite"]))
        .fails_with(3, &["--output and --salt name the same file"]);
    bench
        .run(&with(own("members.csv", "p.key", "q.key"), &["--overwrite", "--min-list", "1"]))
        .fails_with(3, &["q.key", "is a key of tacit pair"]);
    // Two roles of one secret are no two keys.
    let other = bench.read("q.key").replace("role publisher", "role advertiser");
    bench.write("r.key", &other);
    std::fs::set_permissions(bench.path("r.key"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let both = ["pair", "encrypt", "--input", "members.csv", "--key", "mail:email", "--salt", "s.salt"];
    let more = ["--pair-key", "q.key", "--pair-key", "r.key", "--min-list", "1", "--output", "twice.csv"];
    bench.run(&[&both[..], &more].concat()).fails_with(2, &["must be different"]);

    // The same secrets with dates that are over, or to come.
    let dated = |name: &str, made: &str, expires: &str, to: &str| {
        let line = |line: &str| match line.split(' ').next() {
            Some("made") => format!("made {made}\n"),
            Some("expires") => format!("expires {expires}\n"),
            _ => format!("{line}\n"),
        };
        let path = bench.write(to, bench.read(name).lines().map(line).collect::<String>());
        #[cfg(unix)]
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        #[cfg(not(unix))]
        drop(path);
    };
    dated("p.key", "2020-01-01", "2020-06-29", "old.key");
    dated("s.salt", "2020-01-01", "2020-01-31", "old.salt");
    dated("p.key", "9990-01-01", "9990-01-02", "new.key");
    dated("s.salt", "2020-01-01", "2020-02-01", "long.salt");
    let few = |key: &str, salt: &str, more: &[&str]| {
        let args = [
            "pair",
            "encrypt",
            "--input",
            "members.csv",
            "--key",
            "mail:email",
            "--salt",
            salt,
            "--pair-key",
            key,
        ];
        bench.run(&[&args[..], &["--min-list", "1", "--output", "list.csv", "--overwrite"], more].concat())
    };
    few("old.key", "s.salt", &[]).fails_with(3, &["old.key: this key expired on 2020-06-29"]);
    few("p.key", "old.salt", &[]).fails_with(3, &["old.salt: this salt expired on 2020-01-31"]);
    few("new.key", "s.salt", &[])
        .fails_with(3, &["new.key: this key was made on 9990-01-01, which is yet to come"]);
    few("p.key", "long.salt", &["--allow-expired"])
        .fails_with(3, &["long.salt: a salt of PAIR serves from 1 day to 30 days"]);
    let said = few("old.key", "old.salt", &["--allow-expired"]);
    said.success();
    assert!(said.err.contains("note: old.key: this key expired on"), "{}", said.err);

    #[cfg(unix)]
    for (file, what) in [("p.key", "key"), ("s.salt", "salt")] {
        use std::os::unix::fs::PermissionsExt;
        let mode =
            |mode: u32| std::fs::set_permissions(bench.path(file), PermissionsExt::from_mode(mode)).unwrap();
        assert_eq!(std::fs::metadata(bench.path(file)).unwrap().permissions().mode() & 0o777, 0o600);
        mode(0o644);
        few("p.key", "s.salt", &[]).fails_with(3, &[file, &format!("others may read this {what}")]);
        mode(0o600);
    }
    let said = few("p.key", "s.salt", &["--verbose"]);
    for file in ["p.key", "s.salt"] {
        let secret = bench.read(file).lines().last().unwrap().split(' ').nth(1).unwrap().to_owned();
        assert!(!format!("{}{}", said.success(), said.err).contains(&secret));
        assert!(!bench.read("list.csv").contains(&secret));
    }
}

/// The command makes the identifiers of the published vectors, whose secrets it reads.
#[test]
fn the_command_makes_the_published_identifiers() {
    let bench = Bench::new();
    let file: Value = serde_json::from_str(include_str!("../../../../docs/pair-vectors.json")).unwrap();
    for (name, field) in [("s.salt", "salt"), ("p.key", "publisher")] {
        let path = bench.write(name, file[field].as_str().unwrap());
        #[cfg(unix)]
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        #[cfg(not(unix))]
        drop(path);
    }
    let vectors = file["identifiers"].as_array().unwrap();
    let field = |vector: &Value, name: &str| vector[name].as_str().unwrap().to_owned();
    let kinds: BTreeSet<String> = vectors.iter().map(|vector| field(vector, "type")).collect();
    assert!(kinds.len() >= 7);
    for kind in kinds {
        let of_kind: Vec<&Value> = vectors.iter().filter(|vector| field(vector, "type") == kind).collect();
        let rows: String = of_kind.iter().map(|vector| format!("\"{}\"\n", field(vector, "value"))).collect();
        bench.write("people.csv", format!("value\n{rows}"));
        let key = format!("value:{kind}");
        let ids = [
            "pair",
            "ids",
            "--input",
            "people.csv",
            "--key",
            &key,
            "--salt",
            "s.salt",
            "--pair-key",
            "p.key",
        ];
        bench.run(&[&ids[..], &["--allow-expired", "--output", "ids.csv", "--overwrite"]].concat()).success();
        let made = column(&bench.read("ids.csv"), "publisher_identifier");
        assert_eq!(
            made,
            of_kind.iter().map(|vector| field(vector, "publisher")).collect::<Vec<_>>(),
            "{kind}"
        );
    }
}
