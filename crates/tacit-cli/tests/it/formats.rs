//! What `docs/formats.md` promises of files and results, checked against what the command writes.
#![cfg(unix)]

use crate::common::{Bench, Said, free_port};
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

const PAGE: &str = include_str!("../../../../docs/formats.md");

fn json(said: &Said) -> Value {
    serde_json::from_str(said.success().trim()).unwrap_or_else(|e| panic!("{e}: {said:?}"))
}

/// Both sides of `words` with --json, keys and an address; `own` is what each says besides.
fn both(bench: &Bench, words: &[&str], own: [&[&str]; 2]) -> [Value; 2] {
    let address = format!("127.0.0.1:{}", free_port());
    let peer = ["--listen", &address, "--identity", "alice.key", "--peer", "bob.pub"];
    let ours = [&["--json"], words, &peer, own[0]].concat();
    let peer = ["--connect", &address, "--identity", "bob.key", "--peer", "alice.pub"];
    let theirs = [&["--json"], words, &peer, own[1]].concat();
    let (a, b) = bench.run_both(&ours, &theirs);
    [json(&a), json(&b)]
}

/// The words in backticks of the paragraph about `command` in the section on results.
fn documented(command: &str) -> BTreeSet<String> {
    let section = PAGE.split("## JSON results").nth(1).unwrap();
    let start = section.find(&format!("`{command}`")).unwrap_or_else(|| panic!("{command} is not there"));
    let paragraph = section[start..].split("\n\n").next().unwrap();
    let word = |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit());
    paragraph.split('`').skip(1).step_by(2).filter(|text| word(text)).map(str::to_owned).collect()
}

/// Every field of the result stands in the paragraph about `command`, and `fields` of the paragraph in the
/// result.
fn fields(command: &str, result: &Value, fields: &[&str]) {
    let page = documented(command);
    for name in result.as_object().unwrap().keys().filter(|name| *name != "name") {
        assert!(page.contains(name), "{command}: `{name}` is not documented");
    }
    for name in fields {
        assert!(page.contains(*name), "{command}: the page does not name `{name}`");
        assert!(result.get(name).is_some(), "{command}: `{name}` is missing in {result}");
    }
}

fn mode(bench: &Bench, name: &str) -> u32 {
    std::fs::metadata(bench.path(name)).unwrap().permissions().mode() & 0o777
}

fn bytes(bench: &Bench, name: &str) -> Vec<u8> {
    std::fs::read(bench.path(name)).unwrap()
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}

#[test]
fn keys_are_two_short_text_files() {
    let bench = Bench::new();
    let said = json(&bench.run(&["--json", "keygen", "--out", "alice.key"]));
    fields("tacit keygen", &said, &["private", "public", "fingerprint"]);
    assert_eq!(mode(&bench, "alice.key"), 0o600);
    for name in ["alice.key", "alice.pub"] {
        let text = bench.read(name);
        assert!(text.len() < 400 && text.chars().all(|c| c == '\n' || !c.is_control()), "{name}: {text:?}");
    }
    let groups: Vec<&str> = said["fingerprint"].as_str().unwrap().split('-').collect();
    assert_eq!(groups.len(), 8);
    assert!(groups.iter().all(|g| g.len() == 4 && g.chars().all(|c| c.is_ascii_hexdigit())), "{said}");
}

#[test]
fn what_is_wrong_with_a_table_names_the_line_and_shows_no_cell() {
    let bench = Bench::with_keys();
    let read = |content: &[u8]| {
        bench.write("t.csv", content);
        let address = format!("127.0.0.1:{}", free_port());
        let peer = ["--listen", &address, "--identity", "alice.key", "--peer", "bob.pub"];
        let said = bench.run(&[&["psi", "--input", "t.csv", "--key", "email"], &peer[..]].concat());
        assert!(!format!("{said:?}").contains("SECRET"), "{said:?}");
        said
    };
    let end = b"email,note\nSECRET1,x\n";
    read(b"").fails_with(3, &["t.csv", "empty", "first line"]);
    read(b"SECRET,note\n1,2\n").fails_with(3, &["t.csv", "`email`", "first line"]);
    read(&[end, &b"SECRET2\n"[..]].concat()).fails_with(3, &["t.csv", "line 3", "1 field"]);
    read(&[end, &b"SECRET2,x,SECRET3\n"[..]].concat()).fails_with(3, &["t.csv", "line 3", "3 fields"]);
    read(&[end, &b"a,x\nSECRET\xff,x\n"[..]].concat()).fails_with(3, &["t.csv", "line 4", "UTF-8"]);
    read(b"e\0m\0a\0i\0l\0\n\0").fails_with(3, &["t.csv", "utf-16le", "--encoding utf-16le"]);
}

#[test]
fn keys_are_tuples_and_rows_of_equal_keys_count_once() {
    let bench = Bench::with_keys();
    // Separators, quotes as in RFC 4180, and rows that are equal but for case, white space and composition.
    bench.write(
        "a.csv",
        "x,y,n\nab,c,1\n\"p,\"\"q\",r,2\nANN, lee ,3\nann,Lee,4\n\"line\nbreak\",z,5\nRen\u{e9},k,6\n",
    );
    bench.write("b.csv", "y;x\nbc;a\nr;\"p,\"\"q\"\nlee;Ann\nz;\"line\nbreak\"\nK;rene\u{301}\n");
    let words = ["psi", "--key", "x,y", "--result", "both"];
    let own = |file, out| ["--input", file, "--output", out];
    let [a, b] = both(&bench, &words, [&own("a.csv", "oa.csv"), &own("b.csv", "ob.csv")]);
    assert_eq!((&a["matches"], &b["matches"]), (&4.into(), &4.into()), "{a} {b}");
    assert_eq!((&a["own_rows"], &a["own_keys"], &a["duplicates"]), (&6.into(), &5.into(), &1.into()), "{a}");
    assert_eq!(b["peer_keys"], 5);
    let all = ["matches", "own_rows", "own_keys", "duplicates", "peer_keys", "wall_ms", "bytes_sent"];
    let more =
        ["bytes_received", "rounds", "protocol", "security", "result", "reveal", "output", "output_rows"];
    let more =
        [&more[..], &["rows_without_key", "other_side_learned", "key", "refused", "suspicious"]].concat();
    fields("tacit psi", &a, &[&all[..], &more, &["max_peer_rows", "peer_keys_tested_at_most"]].concat());
    let said = bench.run(&["--json", "check", "--input", "a.csv", "--key", "x,y", "--against", "b.csv"]);
    let checked = serde_json::from_str(&said.success().replace('\n', "")).unwrap();
    let counts = ["file", "key", "rows", "keys", "duplicates", "rows_without_key", "empty", "refused"];
    let counts = [&counts[..], &["longest_quoted", "most_lines"]].concat();
    fields("tacit check", &checked, &[&counts[..], &["against", "matches", "suspicious"]].concat());
    // Header, then the rows in the order of the input with all their columns, every duplicate among them.
    let rows = "\"p,\"\"q\",r,2\nANN, lee ,3\nann,Lee,4\n\"line\nbreak\",z,5\nRen\u{e9},k,6\n";
    assert_eq!(bench.read("oa.csv"), format!("x,y,n\n{rows}"));
    assert_eq!(mode(&bench, "oa.csv"), 0o600);
    // Where only one side gets the result the other says nothing of matches.
    let words = ["psi", "--key", "x,y"];
    let own = |file, result| ["--input", file, "--result", result];
    let [a, b] = both(&bench, &words, [&own("a.csv", "peer"), &own("b.csv", "me")]);
    assert!(a.get("matches").is_none() && b["matches"] == 4, "{a} {b}");
}

#[test]
fn an_output_is_written_as_its_input_is() {
    let bench = Bench::with_keys();
    let table = |mark: &str, end: &str, delimiter: &str, rows: &[[&str; 2]]| {
        let rows = [&[["id", "note"]], rows].concat();
        format!("{mark}{}", rows.iter().map(|row| row.join(delimiter) + end).collect::<String>())
    };
    let rows = [["1", "a"], ["2", "b"], ["3", "c"]];
    bench.write("a.csv", table("\u{feff}", "\r\n", ";", &rows));
    bench.write("b.csv", table("", "\n", "\t", &rows[1..]));
    let words = ["psi", "--key", "id", "--result", "both"];
    let own = |file, out| ["--input", file, "--output", out];
    both(&bench, &words, [&own("a.csv", "oa.csv"), &own("b.csv", "ob.csv")]);
    assert_eq!(bench.read("oa.csv"), table("\u{feff}", "\r\n", ";", &rows[1..]));
    assert_eq!(bench.read("ob.csv"), table("", "\n", "\t", &rows[1..]));
    // Rows with outputs behind them likewise.
    bench.write("three.csv", table("\u{feff}", "\r\n", ",", &rows));
    let words = ["eval", "add8", "--batch", "--columns", "id", "--security", "semi-honest"];
    let own = |role, file, out| ["--role", role, "--input", file, "--output", out, "--format", "decimal"];
    both(&bench, &words, [&own("garbler", "a.csv", "ea.csv"), &own("evaluator", "three.csv", "eb.csv")]);
    let sums = |delimiter: &str| {
        let rows = ["id", "1", "2", "3"].iter().zip(["note", "a", "b", "c"]).zip(["result", "2", "4", "6"]);
        let rows = rows.map(|((a, b), c)| [*a, b, c].join(delimiter) + "\r\n");
        format!("\u{feff}{}", rows.collect::<String>())
    };
    assert_eq!((bench.read("ea.csv"), bench.read("eb.csv")), (sums(";"), sums(",")));
    // Published tags, and what a query of them writes.
    bench.write("large.csv", table("", "\n", ",", &rows));
    let publish = ["tags", "publish", "--input", "large.csv", "--key", "id", "--out", "l.tags", "--private"];
    let made =
        json(&bench.run(&[&["--json"], &publish[..], &["l.oprf", "--identity", "alice.key"]].concat()));
    let info = json(&bench.run(&["--json", "tags", "info", "l.oprf", "--identity", "alice.key"]));
    let checked = json(&bench.run(&["--json", "tags", "info", "l.tags", "--check"]));
    let shared = ["protocol", "id", "digest", "public_key", "keys", "tag_bits", "lifetime", "max_queries"];
    fields("tacit tags publish", &made, &[&shared[..], &["chance_log2", "key", "out", "wall_ms"]].concat());
    fields("tacit tags publish", &info, &[&shared[..], &["answered", "clients"]].concat());
    fields("tacit tags publish", &checked, &[&shared[..], &["checked"]].concat());
    let address = format!("127.0.0.1:{}", free_port());
    let serve = ["--json", "tags", "serve", "--listen", &address, "--private", "l.oprf"];
    let query = ["--json", "tags", "query", "--connect", &address, "--tags", "l.tags", "--input", "a.csv"];
    let (served, queried) = bench.run_both(
        &[&serve[..], &["--identity", "alice.key", "--peer", "bob.pub"]].concat(),
        &[&query[..], &["--key", "id", "--output", "q.csv", "--identity", "bob.key", "--peer", "alice.pub"]]
            .concat(),
    );
    let said = ["queries", "queries_left", "answered", "wall_ms", "bytes_sent", "bytes_received", "rounds"];
    fields("tacit tags publish", &json(&served), &said);
    assert_eq!(json(&queried)["matches"], 3);
    assert_eq!(bench.read("q.csv"), bench.read("a.csv"));
    for (name, magic, version) in [("l.tags", b"tacittag", 1), ("l.oprf", b"tacitprf", 1)] {
        let file = bytes(&bench, name);
        assert_eq!((&file[..8], number(&file[8..12])), (&magic[..], version), "{name}");
        // What goes to the clients has the rights of other files.
        assert_eq!(mode(&bench, name) == 0o600, name == "l.oprf", "{name}");
    }
}

#[test]
fn pools_have_the_layout_of_the_page() {
    let bench = Bench::with_keys();
    let own = |role, file| ["--role", role, "--file", file];
    let words = ["ot", "pool", "make", "--count", "5000"];
    let [made, _] = both(&bench, &words, [&own("sender", "s.pool"), &own("receiver", "r.pool")]);
    let shared = ["file", "id", "role", "security", "count"];
    let more = ["protocol", "base_ot", "wall_ms", "bytes_sent", "bytes_received", "rounds"];
    fields("tacit ot pool info", &made, &[&shared[..], &more].concat());
    for (name, role) in [("s.pool", "sender"), ("r.pool", "receiver")] {
        let key = if role == "sender" { "alice.key" } else { "bob.key" };
        let info = json(&bench.run(&["--json", "ot", "pool", "info", name, "--identity", key]));
        fields("tacit ot pool info", &info, &[&shared[..], &["protocol", "position", "left"]].concat());
        let file = bytes(&bench, name);
        assert_eq!((&file[..8], number(&file[8..12])), (&b"TACITPOL"[..], 2));
        assert_eq!((file[14], file[15], number(&file[16..24])), (0, 2, 5000), "not burnt, and made by kos");
        assert_eq!(file[152..184], *blake3::hash(&file[..152]).as_bytes());
        assert_eq!(file.len(), 12_288 + 2 * (65_536 + 16));
        assert_eq!(mode(&bench, name), 0o600);
    }
    assert_eq!(bytes(&bench, "s.pool")[24..56], bytes(&bench, "r.pool")[24..56], "one id");
    let skip = ["--json", "ot", "pool", "skip", "s.pool", "--identity", "alice.key", "--to", "7"];
    let skipped = json(&bench.run(&skip));
    fields("tacit ot pool info", &skipped, &["position", "left"]);
    assert_eq!((&skipped["position"], &skipped["left"]), (&7.into(), &4993.into()));
}

#[test]
fn seeds_have_the_layout_of_the_page() {
    let bench = Bench::new();
    let deal = ["--json", "ot", "deal", "--count", "9", "--sender", "s", "--receiver", "r"];
    let said = json(&bench.run(&deal));
    fields("tacit ot deal", &said, &["count", "code", "sender", "receiver"]);
    for (name, role) in [("s", 1), ("r", 2)] {
        let file = bytes(&bench, name);
        assert_eq!((&file[..9], &file[9..11], number(&file[12..20])), (&b"tacitdeal"[..], &[3, role][..], 9));
        let end = file.len() - 32;
        assert_eq!(file[end..], *blake3::hash(&file[..end]).as_bytes());
        assert_eq!(mode(&bench, name), 0o600);
    }
    assert_eq!(bytes(&bench, "s").len(), 116);
    assert_eq!(bytes(&bench, "s")[20..52], bytes(&bench, "r")[20..52], "one deal");
    let said = json(&bench.run(&["--json", "ot", "expand", "--seed", "s", "--out", "s.npz"]));
    fields("tacit ot deal", &said, &["count", "code", "out"]);
    let used = bytes(&bench, "s");
    assert_eq!(used[..9], *b"tacitused");
    assert!(used[52..].iter().all(|&byte| byte == 0), "what was the body is zeros");
}

#[test]
fn messages_of_nisc_have_the_layout_of_the_page() {
    let bench = Bench::with_keys();
    let said = json(&bench.run(&["--json", "nisc", "keygen", "--count", "9", "--out", "n.key"]));
    fields("tacit nisc", &said, &["step", "count", "out", "senders_learn", "answer_bytes"]);
    let answer = ["nisc", "answer", "--public", "n.pub", "--key", "s.key", "--out", "a"];
    bench.run(&[&answer[..], &["--identity", "alice.key"]].concat()).success();
    let signed = bytes(&bench, "a");
    assert_eq!((&signed[..9], signed[9]), (&b"tacitsign"[..], 1));
    for (file, kind) in
        [(bytes(&bench, "n.pub"), 1), (bytes(&bench, "n.key"), 2), (signed[106..].to_vec(), 3)]
    {
        assert_eq!((&file[..9], &file[9..11], number(&file[13..21])), (&b"tacitnisc"[..], &[6, kind][..], 9));
        assert!(file[11] <= 1 && file[12] <= 1, "code, malicious");
    }
    let own = bytes(&bench, "s.key");
    assert_eq!((&own[..9], &own[9..11]), (&b"tacitnisc"[..], &[6, 4][..]));
    assert_eq!(bytes(&bench, "n.key").len(), 9 + 4 + 8 + 32 + 33 + 16);
    assert_eq!((mode(&bench, "n.key"), mode(&bench, "s.key")), (0o600, 0o600));
}

#[test]
fn states_have_the_layout_of_the_page_and_results_of_eval_its_fields() {
    let bench = Bench::with_keys();
    let own = |role, file| ["--role", role, "--offline", file];
    let words = ["eval", "checked-add8"];
    let [made, _] = both(&bench, &words, [&own("garbler", "g"), &own("evaluator", "e")]);
    let shared = ["function", "protocol", "security", "role", "mode", "and", "wall_ms"];
    let passed = ["bytes_sent", "bytes_received", "rounds"];
    fields("tacit eval", &made, &[&shared[..], &passed, &["file", "id", "copies"]].concat());
    for (name, role) in [("g", 0), ("e", 1)] {
        let file = bytes(&bench, name);
        assert_eq!((&file[..8], number(&file[8..12])), (&b"TACITST1"[..], 3));
        assert_eq!(file[12..15], [role, 0, 2], "role, unused, for both");
        assert_eq!(number(&file[20..28]), file.len() as u64);
        assert_eq!(file[188..192], [0; 4]);
        assert_eq!(file[192..224], *blake3::hash(&file[..192]).as_bytes());
        assert_eq!(mode(&bench, name), 0o600);
    }
    assert_eq!(bytes(&bench, "g")[60..92], bytes(&bench, "e")[60..92], "one id");
    let own = |role, file, input| ["--role", role, "--online", file, "--input", input];
    let [g, e] = both(&bench, &words, [&own("garbler", "g", "200"), &own("evaluator", "e", "100")]);
    let more = ["rows", "outputs", "decimals", "output_names", "flags", "other_side_learned"];
    for said in [&g, &e] {
        fields("tacit eval", said, &[&shared[..], &passed, &more].concat());
        assert_eq!(said["outputs"], serde_json::json!(["0x2c", "0x1"]));
        assert_eq!(said["decimals"], serde_json::json!(["44", "1"]));
        assert_eq!(said["output_names"], serde_json::json!(["result", "overflow"]));
        assert_eq!(said["flags"], serde_json::json!({ "overflow": 1 }));
    }
    let file = bytes(&bench, "g");
    assert_eq!((file[13], file.len()), (1, 224), "used");
    assert!(file[92..156].iter().all(|&byte| byte == 0), "neither salt nor check");
    let own = |role, out| ["--role", role, "--out", out];
    let [said, _] =
        both(&bench, &["ot", "--count", "9"], [&own("sender", "s.npz"), &own("receiver", "r.npz")]);
    let all = ["protocol", "base_ot", "kind", "role", "security", "count", "wall_ms", "ns_per_item"];
    fields("tacit ot", &said, &[&all[..], &passed, &["other_side_learned", "out"]].concat());
}

#[test]
fn pools_of_prepared_gates_have_the_layout_of_the_page() {
    let bench = Bench::with_keys();
    let words = ["eval", "pool", "make", "--gates", "300", "--inputs", "40", "--rows", "7"];
    let own = |role, file| ["--role", role, "--file", file];
    let sides = [&own("garbler", "g.pool")[..], &own("evaluator", "e.pool")];
    let [made, _] = both(&bench, &words, sides);
    let shared = ["file", "id", "role", "gates", "garbler_inputs", "evaluator_inputs", "rows"];
    let more =
        ["protocol", "security", "wall_ms", "bytes_sent", "bytes_received", "rounds", "other_side_learned"];
    fields("tacit eval pool info", &made, &[&shared[..], &more].concat());
    let info = json(&bench.run(&["--json", "eval", "pool", "info", "e.pool", "--identity", "bob.key"]));
    fields("tacit eval pool info", &info, &shared);
    assert_eq!((&info["id"], mode(&bench, "g.pool")), (&made["id"], 0o600));
    for (name, role) in [("g.pool", 0), ("e.pool", 1)] {
        let file = bytes(&bench, name);
        assert_eq!((&file[..8], &file[8..16]), (&b"TACITAP1"[..], &[2, 0, 0, 0, role, 0, 0, 0][..]));
        let numbers = [16, 24, 32, 40, 48].map(|at| number(&file[at..at + 8]));
        assert_eq!(numbers, [7, 300, 40, 40, file.len() as u64]);
        // What hashes are bound to, Δ, six blocks a gate, a MAC or a key of each mask.
        let blocks = 1 + 7 * (6 * 300 + 2 * (300 + 40));
        let plain: usize = 32 + 16 * blocks;
        assert_eq!(file.len(), 224 + plain + plain.div_ceil(65_536) * 16);
    }
}

#[test]
fn files_of_functions_have_the_layout_of_the_page() {
    let bench = Bench::new();
    let run = |words: &[&str]| json(&bench.run(&[&["--json", "nisc", "eval"], words].concat()));
    let asked = run(&["ask", "add8", "--input", "1", "--key", "k", "--out", "q"]);
    fields("tacit nisc eval", &asked, &["step", "function", "rows", "out", "reply_bytes"]);
    let replied = run(&["reply", "add8", "--input", "2", "--question", "q", "--out", "r"]);
    fields("tacit nisc eval", &replied, &["step", "function", "rows", "out"]);
    let opened = run(&["open", "add8", "--key", "k", "--reply", "r"]);
    let outputs = ["outputs", "decimals", "output_names"];
    fields("tacit nisc eval", &opened, &[&["step", "function", "rows"][..], &outputs].concat());
    for (name, kind) in [("q", 8), ("r", 9), ("k", 10)] {
        let file = bytes(&bench, name);
        assert_eq!((&file[..9], &file[9..11], number(&file[43..51])), (&b"tacitnisc"[..], &[6, kind][..], 1));
        let (rest, digest) = file.split_last_chunk::<32>().unwrap();
        let mut hasher = blake3::Hasher::new_derive_key("tacit nisc function file v1");
        assert_eq!(hasher.update(rest).finalize().as_bytes(), digest);
    }
    assert_eq!(asked["reply_bytes"], Value::from(bytes(&bench, "r").len()));
    assert_eq!(mode(&bench, "k"), 0o600);
}

#[test]
fn steps_of_pair_say_what_the_page_says() {
    let bench = Bench::new();
    bench.write("m.csv", "cookie,mail\nc-1,ann@x.org\nc-2,bob@x.org\nc-3,\n");
    bench.write("c.csv", "client,mail\n7,bob@x.org\n8,dan@x.org\n");
    let run = |words: &str| {
        let words: Vec<&str> = ["--json", "pair"].into_iter().chain(words.split_whitespace()).collect();
        json(&bench.run(&words))
    };
    let made = run("keygen --role publisher --out p.key --salt-out s.salt");
    fields("tacit pair keygen", &made, &["key", "salt"]);
    run("keygen --role advertiser --out a.key");
    assert_eq!((mode(&bench, "p.key"), mode(&bench, "s.salt")), (0o600, 0o600));
    let room = "--salt s.salt --min-list 1";
    let people =
        run(&format!("encrypt --input m.csv --key mail:email --pair-key p.key --output p.csv {room}"));
    fields(
        "tacit pair keygen",
        &people,
        &["identifiers", "keys", "output", "rows", "rows_without_identifier"],
    );
    let list = run(&format!("encrypt --list p.csv --pair-key a.key --output pa.csv {room}"));
    fields("tacit pair keygen", &list, &["identifiers", "keys", "output", "duplicates"]);
    run(&format!(
        "encrypt --input c.csv --key mail:email --pair-key a.key --pair-key p.key --output ap.csv {room}"
    ));
    let matched = run("match --publisher pa.csv --advertiser ap.csv --min-list 1 --output common.csv");
    fields("tacit pair keygen", &matched, &["publisher", "advertiser", "common", "publisher_rate", "output"]);
    assert_eq!((&matched["common"], &matched["publisher_rate"]), (&1.into(), &"50 %".into()));
    let ids = run("ids --list common.csv --salt s.salt --pair-key a.key --output target.csv");
    fields("tacit pair keygen", &ids, &["identifiers", "expires", "output"]);
    // A list of the advertiser's own people holds none of the publisher's identifiers.
    let wrong =
        ["pair", "ids", "--list", "ap.csv", "--salt", "s.salt", "--pair-key", "a.key", "--output", "t.csv"];
    bench.run(&wrong).fails_with(3, &["ap.csv", "advertiser's people", "tacit pair match"]);
}

#[test]
fn every_paragraph_on_results_is_tried() {
    let section = PAGE.split("## JSON results").nth(1).unwrap();
    let commands: BTreeSet<&str> = section
        .split("\n\n")
        .filter_map(|paragraph| paragraph.strip_prefix("`tacit "))
        .filter_map(|rest| rest.split('`').next())
        .collect();
    let tried = [
        "psi",
        "check",
        "tags publish",
        "pair keygen",
        "link",
        "query",
        "ot",
        "ot deal",
        "ot pool info",
        "nisc",
        "nisc eval",
        "eval",
        "eval pool info",
        "fingerprint",
        "bench",
        "man DIR",
        "request",
        "audit verify",
        "gateway",
    ];
    let elsewhere = "request and audit are tried in serve.rs, link in link.rs, query in query.rs, bench in bench.rs, check with psi, man in manual.rs, \
                     fingerprint in errors.rs, gateway in gateway.rs";
    assert_eq!(commands, BTreeSet::from(tried), "{elsewhere}");
}
