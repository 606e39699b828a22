//! What a report has of each kind of run, in words, from the fields of its result.

use super::super::pdf::{Page, Section};
use super::{NOT_AUTHENTICATED, Sides, moment};
use crate::cli::amount;
use serde_json::Value;
use std::time::SystemTime;
use tacit::crypto::text::counted;

/// A line of a section: what it is about, and what it says.
type Row = (&'static str, String);

/// The part of a page that depends on the kind of run.
struct Told {
    title: &'static str,
    what: Vec<Row>,
    sizes: Vec<Row>,
    limits: Vec<Row>,
    own: String,
    /// What deserves a second look.
    odd: Option<String>,
}

/// The page of a `run` between these `sides`.
pub(super) fn of(sides: &Sides, run: &Value, begun: SystemTime, ended: SystemTime) -> Page {
    let told = match run["name"].as_str() {
        Some("eval") => evaluation(sides, run),
        Some("ot" | "vole" | "triples") => correlations(run),
        _ => intersection(sides, run),
    };
    let Told { title, mut what, mut sizes, mut limits, own, odd } = told;
    for (name, field) in [("Purpose", "purpose"), ("Agreement", "agreement")] {
        if let Some(text) = text(run, field) {
            what.push((name, text));
        }
    }
    if sides.peer == NOT_AUTHENTICATED {
        let what = "none: anyone on the network path could read and change the data, and anyone could be the other \
             side";
        limits.push(("Protection of the connection", what.to_owned()));
    }
    if let Some(warning) = text(run, "warning") {
        limits.push(("Note", warning));
    }
    let mut learned = vec![
        ("This side learned", own),
        ("The other side learned", of_this_side(&text(run, "other_side_learned").unwrap_or_default())),
    ];
    if let Some(odd) = odd {
        learned.push(("Look at this", odd));
    }
    let passed = [count(run, "bytes_sent", "byte"), count(run, "bytes_received", "byte")];
    sizes.push(("Traffic", format!("{} sent, {} received", passed[0], passed[1])));
    let mut who = vec![("This side", sides.own.clone()), ("The other side", sides.peer.clone())];
    let names = [("Name of this side in the record", "client_name"), ("Name of the service", "service_name")];
    who.extend(names.into_iter().filter_map(|(row, field)| Some((row, text(run, field)?))));
    let when = vec![("Started", moment(begun)), ("Finished", moment(ended))];
    let mut sections = vec![
        Section { heading: "Who", rows: who },
        Section { heading: "When", rows: when },
        Section { heading: "What was computed", rows: what },
        Section { heading: "Sizes", rows: sizes },
        Section { heading: "What each side learned", rows: learned },
        Section { heading: "Limits", rows: limits },
    ];
    let mut foot = format!("Written by tacit {} on this side's machine. ", env!("CARGO_PKG_VERSION"));
    if let Some(id) = text(run, "run") {
        sections.push(Section { heading: "Signed record", rows: record(id, run) });
        foot += "The signed record counts; `tacit audit` verifies it. This page repeats it in words.";
    } else {
        foot += "It is not signed and proves nothing to others: runs with a service leave a record that both sides sign.";
    }
    sections.retain(|section| !section.rows.is_empty());
    Page { title: title.to_owned(), sections, foot }
}

fn record(id: String, run: &Value) -> Vec<Row> {
    let signed = match run["signed_by_both"].as_bool() {
        Some(true) => "both sides",
        _ => "this side only",
    };
    vec![
        ("Run", id),
        ("Hash of the terms", text(run, "terms_hash").unwrap_or_default()),
        ("Signed by", signed.to_owned()),
        ("Stored in", text(run, "records").unwrap_or_default()),
    ]
}

fn text(run: &Value, field: &str) -> Option<String> {
    run[field].as_str().map(str::to_owned)
}

fn number(run: &Value, field: &str) -> Option<u64> {
    run[field].as_u64()
}

fn count(run: &Value, field: &str, one: &str) -> String {
    counted(number(run, field).unwrap_or_default(), one)
}

/// What the other side learned, which the result says to `you`.
fn of_this_side(other: &str) -> String {
    other
        .trim_start_matches("the other side learned ")
        .replace("that you have ", "that this side has ")
        .replace("your ", "this side's ")
}

fn protected(run: &Value) -> [Row; 2] {
    let by = match &run["base_ot"] {
        Value::String(base) if tacit::catalogue::require_post_quantum(base).is_ok() => {
            format!("base OT {base}, which resists quantum computers as far as is known")
        }
        Value::String(base) => format!("base OT {base}"),
        _ => String::new(),
    };
    let parts: Vec<String> =
        [text(run, "protocol"), Some(by)].into_iter().flatten().filter(|part| !part.is_empty()).collect();
    [
        ("Protection", protection(&text(run, "security").unwrap_or_default()).to_owned()),
        ("Protocol", parts.join(", ")),
    ]
}

fn intersection(sides: &Sides, run: &Value) -> Told {
    let (reveal, learns) = (text(run, "reveal").unwrap_or_default(), text(run, "result").unwrap_or_default());
    let mut what = vec![
        ("Operation", "private set intersection of the keys in both sides' tables".to_owned()),
        ("Keys", keys_of(run)),
        ("Text is compared", compared(&run["normalisation"])),
        ("Revealed", revealed(&reveal, text(run, "column"))),
        ("Result to", result_to(&learns).to_owned()),
    ];
    what.extend(protected(run));
    for (name, field) in
        [("Columns received", "received_columns"), ("Columns that this side gave", "given_columns")]
    {
        if let Some(columns) = listed(&run[field]) {
            what.push((name, columns));
        }
    }
    if let Some(job) = text(run, "job") {
        what.insert(1, ("Job of the service", job));
    }
    let sizes = vec![
        ("Table of this side", sides.input.clone()),
        (
            "This side",
            format!(
                "{}, {}, {}, {} without a key",
                count(run, "own_rows", "row"),
                count(run, "own_keys", "distinct key"),
                count(run, "duplicates", "duplicate"),
                count(run, "rows_without_key", "row")
            ),
        ),
        ("The other side", count(run, "peer_keys", "distinct key")),
    ];
    let mut limits = Vec::new();
    if let Some(most) = number(run, "peer_keys_tested_at_most") {
        let most = counted(most, "key");
        limits.push(("If the other side cheated", format!("it can have tested {most} of its choice")));
    }
    if let Some(most) = number(run, "max_peer_rows") {
        limits.push((
            "Limit of this side",
            format!("the other side may have at most {}", counted(most, "distinct key")),
        ));
    }
    if let Some(least) = number(run, "min_matches").filter(|least| *least > 0) {
        let of = counted(least, "match");
        limits.push(("Smallest number", format!("one over fewer than {of} would have been withheld")));
    }
    let title = "Report of a private set intersection";
    Told { title, what, sizes, limits, own: own_learned(run), odd: text(run, "suspicious") }
}

fn evaluation(sides: &Sides, run: &Value) -> Told {
    let mut what = vec![
        ("Operation", "a function of both sides' inputs".to_owned()),
        ("Function", text(run, "function").unwrap_or_default()),
        ("Role of this side", text(run, "role").unwrap_or_default()),
    ];
    if let Some(digest) = text(run, "circuit_digest") {
        what.insert(2, ("Digest of its circuit", format!("{digest}, the same on both sides")));
    }
    if let Some(aggregate) = text(run, "aggregate") {
        what.push(("Shown of all rows", format!("their {aggregate} only")));
    }
    what.extend(protected(run));
    let mut sizes = Vec::new();
    if !sides.input.is_empty() {
        sizes.push(("Table of this side", sides.input.clone()));
    }
    sizes.push(("Evaluations", count(run, "rows", "row")));
    sizes.push(("Size of the function", count(run, "and", "AND gate")));
    let names = listed(&run["output_names"]).map_or_else(String::new, |names| format!(" ({names})"));
    if text(run, "aggregate").is_some() {
        sizes.retain(|(name, _)| *name != "Evaluations");
    }
    let own = match run["learned"].as_bool() {
        Some(true) => format!("the outputs{names}, and of the other side's inputs what follows from them"),
        _ => "nothing of the other side's inputs".to_owned(),
    };
    Told { title: "Report of an evaluation by two parties", what, sizes, limits: Vec::new(), own, odd: None }
}

fn correlations(run: &Value) -> Told {
    let name = run["name"].as_str().unwrap_or_default();
    let kind = text(run, "kind");
    let (title, operation, item) = match (name, number(run, "of")) {
        ("vole", _) => {
            let field = text(run, "field").unwrap_or_default();
            ("Report of correlations", format!("correlations w = v + u·Δ over {field}"), "correlation")
        }
        ("triples", _) => {
            let of = text(run, "field").or(kind).unwrap_or_default();
            ("Report of triples", format!("Beaver triples of {of}"), "triple")
        }
        (_, Some(p)) => ("Report of oblivious transfers", format!("random 1-out-of-{p} transfers"), "OT"),
        _ => {
            let kind = match kind.as_deref() {
                Some("cot") => "correlated",
                Some("ot") => "chosen",
                _ => "random",
            };
            ("Report of oblivious transfers", format!("{kind} oblivious transfers"), "OT")
        }
    };
    let mut what = vec![("Operation", operation)];
    if let Some(role) = text(run, "role") {
        what.push(("Role of this side", role));
    }
    what.extend(protected(run));
    if let Some(out) = text(run, "out") {
        what.push(("Stored in", out));
    }
    let sizes = vec![("Number", count(run, "count", item))];
    let own = match (name, run["role"].as_str()) {
        ("triples", _) => "its own random shares, and nothing of the other side's",
        ("vole", Some("sender")) => "its own Δ and v, and nothing of the other side's u and w",
        ("vole", _) => "its own u and w, and nothing of the other side's Δ and v",
        (_, Some("sender")) => "its own messages, and nothing of the other side's choices",
        (_, _) if run["kind"] == "ot" => {
            "the message of each transfer that it chose, none of the others, and how long the longest message is"
        }
        _ => "the message of each transfer that it chose, and none of the others",
    };
    Told { title, what, sizes, limits: Vec::new(), own: own.to_owned(), odd: None }
}

/// The columns of a key, with what each was read as.
fn keys_of(run: &Value) -> String {
    let types: Vec<&str> = run["key"].as_str().unwrap_or_default().split(", ").collect();
    let columns: Vec<&str> =
        run["key_columns"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match columns.len() == types.len() {
        true => {
            let each = columns.iter().zip(&types).map(|(column, kind)| format!("{column} ({kind})"));
            each.collect::<Vec<_>>().join(", ")
        }
        false => types.join(", "),
    }
}

/// What makes no difference between two keys of text, and what does.
fn compared(normalisation: &Value) -> String {
    let sorted = |on: bool| {
        let all = [
            ("case_fold", "upper and lower case"),
            ("trim", "white space at the ends"),
            ("nfc", "Unicode form"),
        ];
        let found = all.into_iter().filter(|(field, _)| (normalisation[field] != false) == on);
        found.map(|(_, words)| words).collect::<Vec<_>>().join(", ")
    };
    let (ignored, told) = (sorted(true), sorted(false));
    match (ignored.is_empty(), told.is_empty()) {
        (_, true) => format!("without regard to {ignored}"),
        (true, false) => "exactly as it is written".to_owned(),
        (false, false) => format!("without regard to {ignored}; with {told}"),
    }
}

/// Names of columns, if there are any.
fn listed(columns: &Value) -> Option<String> {
    let columns: Vec<&str> = columns.as_array()?.iter().filter_map(Value::as_str).collect();
    (!columns.is_empty()).then(|| columns.join(", "))
}

fn revealed(kind: &str, column: Option<String>) -> String {
    let what = match kind {
        "rows" => "which rows have a key that the other side has too",
        "payload" => "which rows match, with columns of the other side's rows",
        "count" => "how many keys match, and not which",
        "sum" => "a sum over the rows of matching keys",
        "mean" => "the sum and the mean over the rows of matching keys, and how many rows there are",
        other => other,
    };
    column.map_or_else(|| what.to_owned(), |column| format!("{what}, of the column {column}"))
}

fn result_to(learns: &str) -> &str {
    match learns {
        "me" => "this side only",
        "peer" => "the other side only",
        "both" => "both sides",
        other => other,
    }
}

fn protection(security: &str) -> &str {
    match security {
        "malicious" => "against another side that cheats: a check that fails ends the run",
        "semi-honest" => "against another side that follows the protocol; none if it cheats",
        other => other,
    }
}

/// What this side learned, by what its result has.
fn own_learned(run: &Value) -> String {
    let sizes = format!(
        "that the other side has {}",
        counted(run["peer_keys"].as_u64().unwrap_or_default(), "distinct key")
    );
    if let Some(matches) = run["matches"].as_u64() {
        let columns = listed(&run["received_columns"]).map_or_else(String::new, |columns| {
            format!(", of these rows the other side's columns {columns}")
        });
        return format!(
            "which of its keys the other side has too ({}){columns}, and {sizes}",
            counted(matches, "match")
        );
    }
    if run["withheld"].as_bool() == Some(true) {
        return format!("that too few keys match for a number, and {sizes}");
    }
    let names = ["count", "sum", "rows", "mean", "max", "min", "over", "value"];
    let digits = number(run, "decimal_digits").unwrap_or_default() as u32;
    let found = names.iter().filter_map(|name| {
        let value = match &run[*name] {
            Value::Null => return None,
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        let is_amount = !matches!(*name, "count" | "rows" | "over");
        Some(format!("{name} {}", if is_amount { amount(&value, digits) } else { value }))
    });
    match found.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => sizes,
        numbers => format!("{numbers}, and {sizes}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{html, pdf};
    use super::*;
    use serde_json::json;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn a_page_says_who_what_when_and_what_was_learned() {
        let run = json!({
            "own_rows": 4, "own_keys": 3, "duplicates": 1, "rows_without_key": 0, "peer_keys": 5, "matches": 2,
            "peer_keys_tested_at_most": 9, "security": "malicious", "result": "me", "reveal": "payload", "key": "email",
            "key_columns": ["mail"], "received_columns": ["town"], "given_columns": ["age"],
            "other_side_learned": "that you have 3 distinct keys", "protocol": "vole", "bytes_sent": 1,
        });
        let sides = Sides { own: "<b>".into(), peer: "key ab".into(), input: "a.csv".into() };
        let begun = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let page = of(&sides, &run, begun, begun + Duration::from_secs(61));
        let html = html(&page);
        for words in [
            "&lt;b&gt;",
            "2023-11-14 22:13:20 UTC",
            "2023-11-14 22:14:21 UTC",
            "4 rows, 3 distinct keys, 1 duplicate, 0 rows without a key",
            "tested 9 keys",
            "mail (email)",
            "(2 matches), of these rows the other side's columns town, and that the other side has 5 distinct keys",
            "that this side has 3 distinct keys",
        ] {
            assert!(html.contains(words), "{words}: {html}");
        }
        let file = pdf::of(&page);
        assert!(file.starts_with(b"%PDF-1.4") && file.ends_with(b"%%EOF\n"));
        let number = json!({"peer_keys": 1, "sum": "7", "matches": null});
        assert_eq!(own_learned(&number), "sum 7, and that the other side has 1 distinct key");
        let number = json!({"peer_keys": 1, "sum": -1275, "rows": 2, "mean": -637.5, "decimal_digits": 2});
        let words = "sum -12.75, rows 2, mean -6.375, and that the other side has 1 distinct key";
        assert_eq!(own_learned(&number), words);
    }

    #[test]
    fn each_kind_of_run_has_its_own_words() {
        let sides = Sides { own: "key a".into(), peer: NOT_AUTHENTICATED.into(), input: String::new() };
        let page = |run: Value| html(&of(&sides, &run, UNIX_EPOCH, UNIX_EPOCH));
        let eval = json!({
            "name": "eval", "function": "add32", "circuit_digest": "ab12", "role": "garbler", "rows": 1, "and": 31, "learned": true,
            "output_names": ["sum"], "security": "semi-honest", "protocol": "yao",
            "other_side_learned": "nothing of your inputs, if it keeps to the protocol",
        });
        let of_eval = page(eval.clone());
        for words in [
            "<h1>Report of an evaluation by two parties</h1>",
            "add32",
            "31 AND gates",
            "ab12",
            "the outputs (sum), and of the other side's inputs what follows from them",
            "nothing of this side's inputs, if it keeps",
            "anyone on the network path could read",
        ] {
            assert!(of_eval.contains(words), "{words}: {of_eval}");
        }
        for left_out in ["Purpose", "Agreement", "Name of the service"] {
            assert!(!of_eval.contains(left_out), "{left_out}: {of_eval}");
        }
        let unseen = page(json!({ "learned": false, "name": "eval" }));
        assert!(unseen.contains("nothing of the other side's inputs"), "{unseen}");
        for (run, words) in [
            (json!({ "name": "vole", "field": "gf128", "role": "sender", "count": 1 }), "its own Δ and v"),
            (json!({ "name": "triples", "kind": "bits", "count": 2 }), "Beaver triples of bits"),
            (json!({ "name": "ot", "kind": "cot", "role": "receiver", "count": 1 }), "that it chose"),
            (json!({ "name": "ot", "of": 4, "role": "sender", "count": 1 }), "random 1-out-of-4 transfers"),
            (json!({ "purpose": "joint mailing", "agreement": "DPA 7" }), "joint mailing"),
            (json!({ "service_name": "Clinic North", "client_name": "Lab 7" }), "Clinic North"),
            (json!({ "service_name": "Clinic North", "client_name": "Lab 7" }), "Lab 7"),
        ] {
            let page = page(run);
            assert!(page.contains(words), "{words}: {page}");
        }
    }
}
