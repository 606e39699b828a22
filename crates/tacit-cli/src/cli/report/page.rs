//! What a report has of each kind of run, in words, from the fields of its result.

use super::super::pdf::{Page, Section};
use super::{NOT_AUTHENTICATED, Sides, moment};
use crate::cli::mean;
use serde_json::Value;
use std::time::SystemTime;
use tacit::crypto::text::counted;
use tacit::data::records::OR;
use tacit::data::values::decimal;

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
        Some("query") => question(sides, run),
        Some("link") => identified(sides, run),
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
    let mut learned = vec![("This side learned", own), ("The other side learned", of_this_side(run))];
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

/// A whole number, which is text in JSON where it has more than 64 bits.
fn whole(value: &Value) -> Option<i128> {
    value.as_i64().map(i128::from).or_else(|| value.as_str()?.parse().ok())
}

fn count(run: &Value, field: &str, one: &str) -> String {
    counted(number(run, field).unwrap_or_default(), one)
}

/// What the other side learned, which the result says to `you`, or a record in a sentence about the service.
fn of_this_side(run: &Value) -> String {
    let other = text(run, "other_side_learned").unwrap_or_default();
    let service =
        text(run, "service_name").map(|name| format!("{} (service) learns ", tacit::net::shown(&name)));
    service
        .and_then(|service| other.strip_prefix(&service))
        .unwrap_or(&other)
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
    let parts: Vec<String> = [text(run, "protocol"), text(run, "variant"), Some(by)]
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty())
        .collect();
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
        ("Revealed", revealed(&reveal, run)),
        ("Result to", result_to(&learns).to_owned()),
    ];
    what.extend(of_number(run));
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
    let sizes = sizes_of(sides, run);
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
    let wrong = || {
        let flags = listed(&run["flags"]).filter(|_| run["is_wrong"] == true)?;
        Some(format!("{flags} for a matching key: the result is wrong"))
    };
    let odd = text(run, "suspicious").or_else(wrong);
    Told { title, what, sizes, limits, own: own_learned(run), odd }
}

/// What both sides' keys were made identifiers of. The identifiers are not on the page.
fn identified(sides: &Sides, run: &Value) -> Told {
    let mut what = vec![
        (
            "Operation",
            "random identifiers for the rows of both sides' tables, the same where keys match".to_owned(),
        ),
        ("Keys", keys_of(run)),
        ("Text is compared", compared(&run["normalisation"])),
        ("Number of the run", text(run, "link_run").unwrap_or_default()),
        ("Column of identifiers", text(run, "id_column").unwrap_or_default()),
    ];
    what.extend(protected(run));
    let mut limits = Vec::new();
    if let Some(most) = number(run, "peer_keys_tested_at_most") {
        let most = counted(most, "key");
        limits.push((
            "If the other side cheated",
            format!("it can have the identifiers of {most} of its choice"),
        ));
    }
    limits.push((
        "Identifiers shown later",
        "anyone who sees those of both sides can tell which rows match; a side that sees those of the other can tell which of its own rows match them"
            .to_owned(),
    ));
    let own =
        format!("that the other side has {}; not which rows match", count(run, "peer_keys", "distinct key"));
    Told {
        title: "Report of a link of two tables",
        what,
        sizes: sizes_of(sides, run),
        limits,
        own,
        odd: None,
    }
}

/// Both sides' tables, by their numbers.
fn sizes_of(sides: &Sides, run: &Value) -> Vec<Row> {
    vec![
        ("Table of this side", sides.input.clone()),
        (
            "This side",
            format!(
                "{}, {}, {}, {} without a key",
                count(run, "own_rows", "row"),
                count(run, "own_keys", noun(run)),
                count(run, "duplicates", "duplicate"),
                count(run, "rows_without_key", "row")
            ),
        ),
        ("The other side", count(run, "peer_keys", noun(run))),
    ]
}

/// A question of both sides' joined tables: its text, and how many groups its result has. The result itself is not on
/// the page.
fn question(sides: &Sides, run: &Value) -> Told {
    let learns = text(run, "result").unwrap_or_default();
    let mut what = vec![
        ("Operation", "a question in SQL about both sides' joined tables".to_owned()),
        ("Question", text(run, "question").unwrap_or_default()),
        ("Table of this side in it", text(run, "table").unwrap_or_default()),
        ("Text of keys is compared", compared(&run["normalisation"])),
        ("Result to", result_to(&learns).to_owned()),
    ];
    what.extend(protected(run));
    let sizes = vec![
        ("Table of this side", sides.input.clone()),
        (
            "This side",
            format!(
                "{}, {}, {} without a key",
                count(run, "own_rows", "row"),
                count(run, "own_keys", "distinct key"),
                count(run, "rows_without_key", "row")
            ),
        ),
        ("The other side", count(run, "peer_keys", "distinct key")),
    ];
    let mut limits = Vec::new();
    if let Some(least) = number(run, "min_group").filter(|least| *least > 0) {
        let of = counted(least, "joined row");
        limits.push(("Smallest group", format!("one of fewer than {of} is not in the result")));
    }
    let others = count(run, "peer_keys", "distinct key");
    let own = match run["rows"].as_array() {
        Some(rows) => {
            let hidden = count(run, "groups_not_shown", "group");
            format!(
                "the result of the question ({rows}, {hidden} not shown), and that the other side has {others}",
                rows = counted(rows.len() as u64, "row")
            )
        }
        None => format!("that the other side has {others}"),
    };
    Told { title: "Report of a question of two tables", what, sizes, limits, own, odd: None }
}

/// What both sides agreed on about a number over all matching keys.
fn of_number(run: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    if let (Some(function), Some(digest)) = (text(run, "function"), text(run, "circuit_digest")) {
        rows.push(("Function", function));
        rows.push(("Digest of its circuit", format!("{digest}, the same on both sides")));
    }
    if let Some(aggregate) = text(run, "aggregate") {
        let shown = match aggregate.as_str() {
            "count" => "how many have a result other than zero".to_owned(),
            aggregate => format!("the {aggregate} of their results only"),
        };
        rows.push(("Shown of all matching keys", shown));
    }
    if !run["threshold"].is_null() {
        rows.push(("Threshold", in_unit(run, &run["threshold"])));
    }
    if let Some([least, most]) = run["bounds"].as_array().map(Vec::as_slice) {
        let (least, most) = (in_unit(run, least), in_unit(run, most));
        let what = format!("{least}..{most}: a number outside counts as the nearer bound");
        rows.push(("Bounds of a key's number", what));
    }
    rows
}

/// A number in the unit of the column.
fn in_unit(run: &Value, number_in_json: &Value) -> String {
    let digits = digits_of(run);
    whole(number_in_json).map_or_else(|| number_in_json.to_string(), |number| decimal(number, digits))
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
    let all = run["key"].as_str().unwrap_or_default();
    let types: Vec<&str> = all.split(OR).flat_map(|one| one.split(", ")).collect();
    let columns: Vec<&str> =
        run["key_columns"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match columns.len() == types.len() {
        true => {
            let mut each = columns.iter().zip(&types).map(|(column, kind)| format!("{column} ({kind})"));
            let any = all
                .split(OR)
                .map(|one| each.by_ref().take(one.split(", ").count()).collect::<Vec<_>>().join(", "));
            any.collect::<Vec<_>>().join(", or ")
        }
        false => all.to_owned(),
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

fn revealed(kind: &str, run: &Value) -> String {
    let over;
    let what = match kind {
        "rows" => "which rows have a key that the other side has too",
        "payload" => "which rows match, with columns of the other side's rows",
        "count" => "how many keys match, and not which",
        "sum" => "a sum over the rows of matching keys",
        "mean" => "the sum and the mean over the rows of matching keys, and how many rows there are",
        "max" => "the largest number of a matching key",
        "min" => "the smallest number of a matching key",
        "over" => {
            over = format!("how many matching keys have a number above {}", in_unit(run, &run["threshold"]));
            &over
        }
        "shares" => {
            "an aggregate of a function's results over all matching keys, and nothing of a single key"
        }
        other => other,
    };
    column_of(run).map_or_else(|| what.to_owned(), |column| format!("{what}, of the column {column}"))
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

/// What the keys of a run are called where they are counted.
fn noun(run: &Value) -> &'static str {
    match (run["identifiers"].is_array(), run["variants"].as_bool()) {
        (true, Some(true)) => "distinct variant",
        (true, _) => "distinct identifier",
        _ => "distinct key",
    }
}

/// What this side learned, by what its result has.
fn own_learned(run: &Value) -> String {
    let sizes = format!(
        "that the other side has {}",
        counted(run["peer_keys"].as_u64().unwrap_or_default(), noun(run))
    );
    if let Some(matches) = run["matches"].as_u64() {
        let columns = listed(&run["received_columns"]).map_or_else(String::new, |columns| {
            format!(", of these rows the other side's columns {columns}")
        });
        if let Some(rows) = run["matching_rows"].as_u64() {
            let one = noun(run).trim_start_matches("distinct ");
            return format!(
                "for each of its {one}s whether the other side has it too ({} in common, {} with a match){columns}, \
                 and {sizes}",
                counted(matches, one),
                counted(rows, "row")
            );
        }
        return format!(
            "which of its keys the other side has too ({}){columns}, and {sizes}",
            counted(matches, "match")
        );
    }
    if run["withheld"].as_bool() == Some(true) {
        return format!("that too few keys match for a number, and {sizes}");
    }
    match number_learned(run) {
        Some(number) => format!("{number}, and {sizes}"),
        None => sizes,
    }
}

/// What the number of a run says, as a clause; nothing where this side got none.
fn number_learned(run: &Value) -> Option<String> {
    let column = column_of(run);
    let of_column = column.as_ref().map_or(String::new(), |column| format!(" of {column}"));
    let in_column = column.as_ref().map_or(String::new(), |column| format!(" in {column}"));
    let keys = |count: u64, one: &str, several: &str| {
        format!("{} {}", counted(count, "matching key"), if count == 1 { one } else { several })
    };
    let shown = |field: &str| Some(in_unit(run, &run[field])).filter(|_| whole(&run[field]).is_some());
    let at_bound = match run["at_bound"].as_bool() {
        Some(true) => " (the bound: the number itself may be beyond it)",
        _ => "",
    };
    match (run["reveal"].as_str()?, run["aggregate"].as_str()) {
        ("count", _) => {
            let count = run["count"].as_u64()?;
            Some(format!("that {} {}", counted(count, "key"), if count == 1 { "matches" } else { "match" }))
        }
        ("sum", _) => {
            Some(format!("that the sum{of_column} over the rows of matching keys is {}", shown("sum")?))
        }
        ("mean", _) => Some(match run["rows"].as_u64()? {
            0 => format!("that no row of a matching key has a number{in_column}"),
            rows => format!(
                "that the mean{of_column} over {} of matching keys is {}, and the sum {}",
                counted(rows, "row"),
                mean(whole(&run["sum"])?, rows, digits_of(run)),
                shown("sum")?
            ),
        }),
        (kind @ ("max" | "min"), _) => {
            let extreme = if kind == "max" { "largest" } else { "smallest" };
            let number = column.map_or("number".to_owned(), |column| format!("number in {column}"));
            match run.get(kind)? {
                Value::Null => Some(format!("that no matching key has a number{in_column}")),
                _ => Some(format!(
                    "that the {extreme} {number} of a matching key is {}{at_bound}",
                    shown(kind)?
                )),
            }
        }
        ("over", _) => Some(format!(
            "that {} a number{in_column} above {}",
            keys(run["over"].as_u64()?, "has", "have"),
            in_unit(run, &run["threshold"])
        )),
        ("shares", Some("count")) => {
            let count = run["count"].as_u64()?;
            Some(format!("that {} a result other than zero", keys(count, "has", "have")))
        }
        ("shares", _) => Some(format!("that the results of all matching keys add up to {}", shown("sum")?)),
        _ => None,
    }
}

/// The column of a run's numbers, without what says how they are written.
fn column_of(run: &Value) -> Option<String> {
    let column = text(run, "column")?;
    Some(if digits_of(run) > 0 { tacit::data::values::Column::parse(&column).name } else { column })
}

fn digits_of(run: &Value) -> u32 {
    number(run, "decimal_digits").unwrap_or_default() as u32
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
        // A record's sentence about the service, in the tense of the page.
        let run = json!({
            "service_name": "Clinic North",
            "other_side_learned": "Clinic North (service) learns that Lab 7 (client) has 3 distinct keys; nothing else",
        });
        assert_eq!(of_this_side(&run), "that Lab 7 (client) has 3 distinct keys; nothing else");
    }

    #[test]
    fn each_number_is_said_as_a_sentence_says_it() {
        let cents = |more: Value| {
            let mut run =
                json!({ "peer_keys": 1, "column": "eur:decimal2", "decimal_digits": 2, "matches": null });
            more.as_object().unwrap().iter().for_each(|(name, value)| run[name] = value.clone());
            own_learned(&run)
        };
        for (run, words) in [
            (json!({"reveal": "count", "count": 1}), "that 1 key matches"),
            (json!({"reveal": "count", "count": 14}), "that 14 keys match"),
            (
                json!({"reveal": "sum", "sum": "-1275"}),
                "that the sum of eur over the rows of matching keys is -12.75",
            ),
            (
                json!({"reveal": "mean", "sum": -1275, "rows": 2, "mean": -637.5}),
                "that the mean of eur over 2 rows of matching keys is -6.375, and the sum -12.75",
            ),
            (
                json!({"reveal": "mean", "sum": 0, "rows": 0, "mean": null}),
                "that no row of a matching key has a number in eur",
            ),
            (
                json!({"reveal": "max", "max": 700, "at_bound": true}),
                "that the largest number in eur of a matching key is 7.00 (the bound: the number itself may be beyond it)",
            ),
            (json!({"reveal": "min", "min": null}), "that no matching key has a number in eur"),
            (
                json!({"reveal": "over", "over": 14, "threshold": 50_000}),
                "that 14 matching keys have a number in eur above 500.00",
            ),
            (
                json!({"reveal": "over", "over": 1, "threshold": 5}),
                "that 1 matching key has a number in eur above 0.05",
            ),
        ] {
            assert_eq!(cents(run), format!("{words}, and that the other side has 1 distinct key"));
        }
        for (run, words) in [
            (
                json!({"reveal": "shares", "aggregate": "sum", "sum": 7}),
                "that the results of all matching keys add up to 7",
            ),
            (
                json!({"reveal": "shares", "aggregate": "count", "count": 2}),
                "that 2 matching keys have a result other than zero",
            ),
            (json!({"reveal": "sum", "withheld": true}), "that too few keys match for a number"),
        ] {
            assert!(
                own_learned(&run).starts_with(&format!("{words}, and that ")),
                "{words}: {}",
                own_learned(&run)
            );
        }
        // The side without a result.
        assert_eq!(
            own_learned(&json!({"reveal": "max", "peer_keys": 2})),
            "that the other side has 2 distinct keys"
        );
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
            (
                json!({ "name": "link", "link_run": "12ab", "key": "email", "peer_keys": 3 }),
                "that the other side has 3 distinct keys; not which rows match",
            ),
            (json!({ "purpose": "joint mailing", "agreement": "DPA 7" }), "joint mailing"),
            (json!({ "service_name": "Clinic North", "client_name": "Lab 7" }), "Clinic North"),
            (json!({ "service_name": "Clinic North", "client_name": "Lab 7" }), "Lab 7"),
        ] {
            let page = page(run);
            assert!(page.contains(words), "{words}: {page}");
        }
    }
}
