//! `tacit bench`: results as data, both kinds of parties, limits, comparison.

use crate::common::Bench;
use serde_json::Value;

const FIELDS: [&str; 26] = [
    "name",
    "protocol",
    "security",
    "kind",
    "count",
    "threads",
    "link",
    "repeat",
    "setup_ms",
    "offline_ms",
    "online_ms",
    "wall_ms",
    "wall_ms_min",
    "wall_ms_max",
    "ns_per_item",
    "cpu_ms_local",
    "cpu_ms_peer",
    "bytes_sent",
    "bytes_received",
    "messages_sent",
    "messages_received",
    "rounds",
    "peak_rss_bytes",
    "kernels",
    "commit",
    "machine",
];

fn results(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ot(bench: &Bench, more: &[&str]) -> Value {
    let mut words = vec!["--json", "--quiet", "bench", "ot", "--repeat", "2"];
    if !more.contains(&"--protocol") {
        words.extend(["--protocol", "iknp"]);
    }
    if !more.contains(&"--count") {
        words.extend(["--count", "4096"]);
    }
    words.extend(more);
    results(bench.run(&words).success()).remove(0)
}

#[test]
fn processes_and_threads_give_the_same_bytes_and_every_field() {
    let bench = Bench::new();
    let (apart, together) = (ot(&bench, &[]), ot(&bench, &["--in-process"]));
    for result in [&apart, &together] {
        for field in FIELDS {
            assert!(!result[field].is_null(), "{field} is missing in {result}");
        }
        assert!(result["wall_ms_min"].as_f64() <= result["wall_ms"].as_f64());
        assert!(result["wall_ms"].as_f64() <= result["wall_ms_max"].as_f64());
        assert!(result["times_limit"].as_f64().unwrap() > 0.0 && result["limit"].is_string());
    }
    assert_eq!((&apart["parties"], &together["parties"]), (&"processes".into(), &"threads".into()));
    for field in ["bytes_sent", "bytes_received", "messages_sent", "messages_received", "rounds"] {
        assert_eq!(apart[field], together[field], "{field}");
    }
    // The receiver sends a column of a bit an OT for every free bit of Δ.
    assert!(apart["bytes_received"].as_u64().unwrap() >= 4096 / 8 * 127);
}

#[test]
fn functions_are_measured_by_either_protocol_and_programs_while_they_run() {
    let bench = Bench::new();
    let run = |words: &str| {
        let all = format!("--json bench {words} --repeat 1");
        let words: Vec<&str> = all.split(' ').collect();
        results(bench.run(&words).success()).remove(0)
    };
    for (words, protocol, kind) in [
        ("eval add32 --protocol wmk17 --security malicious", "wmk17", "add32"),
        ("eval add32 --output-to both --protocol wmk17", "wmk17", "add32 to both"),
        ("eval add32 --protocol authenticated", "authenticated", "add32"),
        ("stream --count 2000 --protocol authenticated", "authenticated", "mul32"),
        ("eval add32 --rows 3 --protocol yao", "yao", "add32"),
        ("eval 4/5/6/700 --security semi-honest", "yao", "4/5/6/700"),
        ("eval lt64 --rows 2000 --protocol batch", "batch", "lt64"),
        ("stream --count 2000 --protocol wmk17", "wmk17", "mul32"),
        ("stream --count 2000 --protocol yao", "yao", "mul32"),
    ] {
        let result = run(words);
        for field in FIELDS {
            assert!(!result[field].is_null(), "{field} is missing in {result}");
        }
        assert_eq!((result["protocol"].as_str(), result["kind"].as_str()), (Some(protocol), Some(kind)));
        let security = if ["yao", "batch"].contains(&protocol) { "semi-honest" } else { "malicious" };
        assert_eq!(result["security"], security);
        // A run against a malicious peer begins with the base OTs; each of 44 copies has two blocks an AND
        // gate.
        let (count, bytes) = (result["count"].as_u64().unwrap(), result["bytes_sent"].as_u64().unwrap());
        let least = match protocol {
            "wmk17" => 32 * 44 * count,
            "batch" => count / 4,
            _ => 32 * count,
        };
        assert!(bytes >= least, "{words}: {bytes}");
    }
    let probe = run("probe --count 1000");
    assert!(probe["wall_ms"].as_f64() > Some(0.0) && probe["count"] == 1000);
    let part = |result: &Value, field: &str| result[field].as_f64().unwrap();
    for (words, kind, variant) in [
        ("eval add32 --halves", "add32 in halves", None),
        ("eval add32 --copies 44/22", "add32", Some("44/22 copies")),
        ("eval sha256 --link 100/1 --protocol wmk17", "sha256", Some("47/16 copies")),
    ] {
        let result = run(words);
        let (off, on) = (part(&result, "offline_ms"), part(&result, "online_ms"));
        assert!(off > 0.0 && on > 0.0 && (off + on - part(&result, "wall_ms")).abs() < 1e-9, "{result}");
        assert_eq!((result["kind"].as_str(), result["variant"].as_str()), (Some(kind), variant));
        assert!(part(&result, "times_limit") > 0.0, "{result}");
    }
    for words in ["eval add32 --protocol yao --halves", "eval add32 --halves --rows 2"] {
        bench
            .run(&["bench"].into_iter().chain(words.split(' ')).collect::<Vec<_>>())
            .fails_with(2, &["--halves"]);
    }
    let words = ["bench", "eval", "add32", "--protocol", "yao", "--security", "malicious"];
    bench.run(&words).fails_with(2, &["yao", "semi-honest", "--protocol wmk17"]);
    let words = ["bench", "stream", "--count", "2000", "--protocol", "batch"];
    bench.run(&words).fails_with(2, &["batch holds its circuit"]);
    bench.run(&["bench", "eval", "1/1/1/1"]).fails_with(2, &["made-up", "3 bits"]);
}

#[test]
fn limits_are_results_and_a_slower_figure_fails_the_comparison() {
    let bench = Bench::new();
    let said = bench.run(&["--json", "bench", "limits", "--repeat", "1", "--sample", "1"]);
    said.success();
    let limits = results(&said.out);
    for name in
        ["aes-fixed", "aes-rekeyed", "gf128-multiply-add", "gather-64MiB", "loopback-tcp", "loopback-tls"]
    {
        let found = limits.iter().find(|limit| limit["protocol"] == name);
        assert!(found.is_some_and(|limit| limit["ns_per_item"].as_f64() > Some(0.0)), "{name}");
    }
    bench.write("old.jsonl", &said.out);
    bench.run(&["bench", "compare", "old.jsonl", "old.jsonl"]).success();

    let mut slower = limits[0].clone();
    for field in ["wall_ms", "wall_ms_min", "wall_ms_max", "ns_per_item"] {
        slower[field] = (slower[field].as_f64().unwrap() * 2.0).into();
    }
    bench.write("new.jsonl", slower.to_string());
    bench.run(&["bench", "compare", "old.jsonl", "new.jsonl"]).fails_with(1, &["1 of 1", "slower"]);
    bench.run(&["bench", "compare", "old.jsonl", "new.jsonl", "--threshold", "150"]).success();
    slower["machine"] = "another".into();
    bench.write("new.jsonl", slower.to_string());
    bench
        .run(&["bench", "compare", "old.jsonl", "new.jsonl"])
        .fails_with(3, &["different machines", "another"]);
}

#[test]
fn unusable_requests_are_refused() {
    let bench = Bench::new();
    bench.write("junk.jsonl", "{\"name\": \"ot\"}\nnot json\n");
    bench.write("empty.jsonl", "\n");
    bench.run(&["bench", "compare", "gone", "gone"]).fails_with(3, &["gone", "no such file"]);
    bench.run(&["bench", "compare", "junk.jsonl", "junk.jsonl"]).fails_with(3, &["junk.jsonl", "line 2"]);
    bench.run(&["bench", "compare", "empty.jsonl", "empty.jsonl"]).fails_with(3, &["no result in common"]);
    bench
        .run(&["bench", "ot", "--count", "4294967296", "--kind", "rot"])
        .fails_with(3, &["1966", "MiB", "--count"]);
    for words in [
        "probe --count 16777216 --copies 256",
        "eval 16777216/16777216/1/1",
        "base-ot --count 1048576 --threads 64",
    ] {
        let words: Vec<&str> = ["bench"].into_iter().chain(words.split(' ')).collect();
        bench
            .run(&words)
            .fails_with(3, &["this benchmark with both its parties needs about", " MiB available"]);
    }
}

#[test]
fn offline_is_what_needs_no_input_and_a_fresh_run_begins_from_nothing() {
    let bench = Bench::new();
    let part = |result: &Value, field: &str| result[field].as_f64().unwrap();
    for (kind, online) in [("cot", false), ("rot", false), ("ot", true)] {
        let result = ot(&bench, &["--kind", kind]);
        let (off, on) = (part(&result, "offline_ms"), part(&result, "online_ms"));
        assert!((off + on - part(&result, "wall_ms")).abs() < 1e-9, "{result}");
        assert!(off > 0.0 && (on > 0.0) == online, "{result}");
    }
    let (shared, fresh) = (ot(&bench, &[]), ot(&bench, &["--fresh"]));
    assert_eq!((part(&fresh, "setup_ms"), &fresh["fresh"]), (0.0, &true.into()));
    assert!(part(&shared, "setup_ms") > 0.0 && shared["fresh"].is_null());
    // 128 base OTs are at least two group elements of 32 bytes each.
    assert!(
        part(&fresh, "bytes_sent") + part(&fresh, "bytes_received")
            >= 128.0 * 64.0 + part(&shared, "bytes_received")
    );
}

#[test]
fn all_threads_of_a_fresh_run_have_one_setup() {
    let bench = Bench::new();
    let bytes = |words: &[&str]| {
        let result = ot(&bench, &[words, &["--fresh", "--count", "4000"]].concat());
        ["bytes_sent", "bytes_received"].map(|field| result[field].as_u64().unwrap())
    };
    // Base OTs take some 10 kB in a direction where there is nothing else.
    let (one, four) = (bytes(&["--protocol", "kos"]), bytes(&["--protocol", "kos", "--threads", "4"]));
    assert!(four[0].min(four[1]) < one[0].min(one[1]) + 2000, "{one:?}, {four:?}");
    // Silent OT of few has one stream too.
    let silent = ["--protocol", "silent"];
    assert_eq!(bytes(&silent), bytes(&[&silent[..], &["--threads", "4"]].concat()));
}

#[test]
fn both_ways_each_party_is_sender_and_receiver() {
    let bench = Bench::new();
    let both = ot(&bench, &["--both-ways", "--count", "8192"]);
    assert_eq!(
        (&both["kind"], &both["threads"], &both["count"]),
        (&"cot both ways".into(), &2.into(), &8192.into())
    );
    assert_eq!(both["bytes_sent"], both["bytes_received"]);
    assert!(both["bytes_sent"].as_u64().unwrap() >= 4096 / 8 * 127);
}

#[test]
fn the_code_of_ferret_is_measured_alone_and_auto_by_both_parties_alike() {
    let bench = Bench::new();
    let said = bench.run(&["--json", "bench", "lpn", "--set", "e", "--count", "10000", "--repeat", "1"]);
    let lpn = results(said.success()).remove(0);
    assert!(lpn["ns_per_item"].as_f64() > Some(0.0) && lpn["count"].as_u64() >= Some(10_000));
    assert_eq!(lpn["security"], "malicious");
    // What protects nobody is never reported as if it did.
    let papers = ["--json", "bench", "lpn", "--count", "10000", "--repeat", "1"];
    assert_eq!(results(bench.run(&papers).success()).remove(0)["security"], "none");
    for (protocol, set, security) in [
        ("ferret", "paper-setup", "none"),
        ("ferret-uni", "paper-setup", "none"),
        ("ferret", "e", "malicious"),
        ("ferret-uni", "setup", "malicious"),
    ] {
        let args = ["bench", "ot", "--count", "1000", "--repeat", "1", "--protocol", protocol, "--set", set];
        let said = results(bench.run(&[&["--json"][..], &args].concat()).success()).remove(0);
        assert_eq!(said["security"], security, "{protocol} {set}");
        let bits = said["security_bits"].as_f64().unwrap();
        assert_eq!(bits >= 128.0, security == "malicious", "{protocol} {set} {bits}");
    }
    bench.run(&["bench", "lpn", "--set", "z"]).fails_with(2, &["`z`", "paper-setup"]);
    let auto = ["--json", "bench", "ot", "--count", "1000", "--repeat", "1", "--security", "semi-honest"];
    let auto = results(bench.run(&auto).success()).remove(0);
    assert_eq!(auto["protocol"], "iknp");
    let silent = ["--json", "bench", "ot", "--count", "1000", "--repeat", "1", "--protocol", "silent"];
    let silent = results(bench.run(&silent).success()).remove(0);
    assert_eq!((&silent["protocol"], &silent["variant"]), (&"silent".into(), &"code linear".into()));
}

/// A few OTs of a protocol that makes many at a time: a run that lives on what was left over is not taken for one.
#[test]
fn few_silent_ots_are_measured_from_nothing_unless_that_is_declined() {
    let bench = Bench::new();
    let words = |format: &'static str, fresh: &'static str| {
        let words =
            [format, "bench", "ot", "--protocol", "ferret", "--set", "e", "--count", "1000", "--repeat", "1"];
        words.into_iter().chain([fresh]).filter(|word| !word.is_empty()).collect::<Vec<_>>()
    };
    let result = |fresh| results(bench.run(&words("--json", fresh)).success()).remove(0);
    let note = |fresh| bench.run(&words("", fresh)).err;
    let sent = |result: &Value| ["bytes_sent", "bytes_received"].map(|field| result[field].as_u64().unwrap());
    let whole = result("");
    assert!(whole["fresh"] == true && sent(&whole).iter().all(|bytes| *bytes > 1000), "{whole}");
    assert!(note("").contains("--fresh=false"), "{}", note(""));
    let rest = result("--fresh=false");
    assert!(rest["fresh"].is_null() && rest["setup_bytes"].as_u64() > Some(1000), "{rest}");
    assert!(sent(&rest) == [0, 0] && note("--fresh=false").contains("left over"), "{rest}");
    // One whose cost follows the count is measured as ever.
    assert!(ot(&bench, &[])["fresh"].is_null());
}

/// The page as a browser sees it; `None` where there is no browser.
fn in_a_browser(page: &std::path::Path) -> Option<String> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let out = names.iter().find_map(|name| {
        std::process::Command::new(name)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--window-size=390,844", "--dump-dom"])
            .arg(format!("file://{}", page.display()))
            .output()
            .ok()
    });
    let Some(out) = out else {
        println!("no browser here: the page was not looked at");
        return None;
    };
    Some(String::from_utf8_lossy(&out.stdout).into_owned())
}

#[test]
fn a_report_shows_what_was_measured() {
    let bench = Bench::new();
    let lines: Vec<String> = ["100/1", "1000/1"].map(|link| ot(&bench, &["--link", link]).to_string()).into();
    bench.write("results.jsonl", lines.join("\n"));
    bench.run(&["bench", "report", "results.jsonl", "--output", "page.html", "--svg", "."]).success();
    let page = bench.read("page.html");
    assert!(page.contains("2 results.") && page.contains("id=\"time-by-bandwidth\""));
    let plot = bench.read("time-by-bandwidth.svg");
    assert!(plot.starts_with("<svg") && plot.contains("Time of a transfer") && plot.contains("<circle"));
    for line in results(&lines.join("\n")) {
        let link = line["link"].as_str().unwrap().split('/').next().unwrap().to_owned();
        // The number under the plot, to three digits; a slow machine's has a `k` or an `M` behind it.
        let cell = page.split(&format!("<td>{link}</td><td>")).nth(1).unwrap().split('<').next().unwrap();
        let number = cell.trim_end_matches(['k', 'M']);
        let scale = if cell.ends_with('k') {
            1e3
        } else if cell.ends_with('M') {
            1e6
        } else {
            1.0
        };
        let shown = number.parse::<f64>().unwrap() * scale;
        let measured = line["ns_per_item"].as_f64().unwrap();
        assert!((shown / measured - 1.0).abs() < 5e-3, "{shown} for {measured}");
    }
    if let Some(seen) = in_a_browser(&bench.path("page.html")) {
        assert_eq!(seen.matches("<circle").count(), page.matches("<circle").count());
    }
    bench.write("none.jsonl", "");
    bench.run(&["bench", "report", "none.jsonl", "--output", "none.html"]).success();
    assert!(bench.read("none.html").contains("0 results."));
    bench.run(&["bench", "report", "gone.jsonl"]).fails_with(3, &["gone.jsonl", "no such file"]);
}

#[test]
fn the_tables_of_papers_are_listed_and_measured() {
    let bench = Bench::new();
    let listed = bench.run(&["bench", "paper"]);
    let listed = listed.success();
    for table in [
        "kos15-table2",
        "ferret-table5",
        "roted-table5",
        "wmk17-table4",
        "wmk17-table5",
        "wmk17-table7",
        "wmk17-table8",
    ] {
        assert!(listed.contains(table), "{table} is missing in {listed}");
    }
    bench.run(&["bench", "paper", "table-9"]).fails_with(2, &["table-9", "kos15-table2"]);
    let said = bench.run(&["--json", "bench", "paper", "roted-table3", "--quick"]);
    let rows = results(said.success());
    let row = |paper: f64| rows.iter().find(|row| row["paper"] == paper).unwrap();
    // Those that the paper made into random OT first.
    let made = [row(0.4369), row(0.0505)].map(|row| (&row["protocol"], &row["kind"], &row["security"]));
    let uniform = Value::from("rot, uniform");
    assert_eq!(made[0], (&"pvw08".into(), &uniform, &"malicious".into()));
    assert_eq!(made[1], (&"bdgm19".into(), &uniform, &"semi-honest".into()));
    let row = row(0.049);
    assert_eq!((row["table"].as_str(), row["kind"].as_str()), (Some("roted-table3"), Some("rot")));
    let both = (row["cpu_ms_local"].as_f64().unwrap() + row["cpu_ms_peer"].as_f64().unwrap()) / 1024.0;
    assert!((row["ours"].as_f64().unwrap() - both).abs() < 1e-9);
}

/// Every kind of result of an intersection, checked by the benchmark itself, and queries against a file of
/// tags.
#[test]
fn intersections_of_every_kind_are_measured() {
    let bench = Bench::new();
    let psi = |more: &[&str]| {
        let words = ["--json", "--quiet", "bench", "psi", "--in-process", "--repeat", "1", "--count", "301"];
        bench.run(&[&words[..], more].concat())
    };
    for (reveal, kind) in [
        ("rows", "set"),
        ("payload", "payload"),
        ("count", "count"),
        ("sum", "sum"),
        ("mean", "mean"),
        ("shares", "shares"),
        ("link", "link"),
    ] {
        let said = psi(&["--protocol", "vole", "--reveal", reveal, "--security", "semi-honest"]);
        let result = results(said.success()).remove(0);
        assert_eq!((result["kind"].as_str(), result["count"].as_u64()), (Some(kind), Some(301)), "{result}");
    }
    for kind in ["count", "sum", "mean"] {
        let result = results(psi(&["--reveal", kind]).success()).remove(0);
        assert_eq!((result["kind"].as_str(), result["protocol"].as_str()), (Some(kind), Some("sorted")));
    }
    let result = results(psi(&["--protocol", "oprf", "--tags", "5000"]).success()).remove(0);
    assert_eq!(result["kind"], "set in 5000 tags");
    // 64 bytes a query, and little else.
    let bytes = result["bytes_sent"].as_u64().unwrap() + result["bytes_received"].as_u64().unwrap();
    assert!((301 * 64..301 * 64 + 1000).contains(&bytes), "{bytes}");
    for (more, said) in [
        (&["--reveal", "shares"][..], "--security semi-honest"),
        (&["--protocol", "paxos", "--reveal", "payload"], "vole"),
        (&["--protocol", "oprf", "--reveal", "count"], "vole"),
        (&["--protocol", "oprf", "--security", "semi-honest"], "malicious"),
        (&["--protocol", "oprf", "--tags", "100"], "--tags"),
    ] {
        psi(more).fails_with(2, &[said]);
    }
}

#[test]
fn correlations_and_triples_are_measured_whole() {
    let bench = Bench::new();
    let one = |words: &[&str]| {
        let all =
            [&["--json", "--quiet", "bench"][..], words, &["--count", "1000", "--repeat", "2"]].concat();
        results(bench.run(&all).success()).remove(0)
    };
    for (words, kind, security) in [
        ("vole", "gf128", "malicious"),
        ("vole --field p61 --in-process", "p61", "semi-honest"),
        ("ot --of 16", "rot 1 of 16", "malicious"),
        // As the jobs themselves, against a malicious peer unless told otherwise.
        ("triples", "bits", "malicious"),
        ("triples --security semi-honest", "bits", "semi-honest"),
        ("triples --kind words --threads 2 --security semi-honest", "words", "semi-honest"),
        (
            "triples --kind field --field p61 --protocol kos --security semi-honest",
            "field p61",
            "semi-honest",
        ),
    ] {
        let result = one(&words.split(' ').collect::<Vec<_>>());
        for field in FIELDS.iter().chain(&["security_bits", "cores", "times_limit"]) {
            assert!(!result[field].is_null(), "{words:?}: {field} is missing in {result}");
        }
        assert_eq!((result["kind"].as_str(), result["security"].as_str()), (Some(kind), Some(security)));
        assert_eq!((result["count"].as_u64(), result["fresh"].as_bool()), (Some(1000), Some(true)));
        assert!(result["bytes_sent"].as_u64() > Some(1000) && result["online_ms"].as_f64() == Some(0.0));
        assert_eq!(
            result["statistical_bits"].is_null(),
            !kind.starts_with("bits") || security == "semi-honest"
        );
    }
    bench.run(&["bench", "vole", "--threads", "2"]).fails_with(2, &["--threads"]);
    bench.run(&["bench", "vole", "--field", "p61", "--security", "malicious"]).fails_with(2, &["--security"]);
    bench.run(&["bench", "triples", "--kind", "words"]).fails_with(2, &["--security"]);
    bench.run(&["bench", "ot", "--of", "3"]).fails_with(2, &["--of"]);
    bench.run(&["bench", "ot", "--of", "4", "--kind", "rot"]).fails_with(2, &["--of"]);
}
