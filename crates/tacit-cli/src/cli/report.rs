//! `--report`: what a run was, on one page for the file, in words for those who were not there.

use super::Context;
use super::output::{Output, name};
use super::pdf::{self, Page, Section};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tacit::crypto::text::counted;
use tacit::net::{Identity, PublicKey, calendar};
use tacit::{Error, Result};

/// Where the page goes.
#[derive(clap::Args)]
pub(crate) struct ReportArgs {
    /// Writes one page about the run to this file, .html or .pdf: who, when, what, its limits, and what each side
    /// learned. It has the number of matches, and no row
    #[arg(long, value_name = "FILE.html|.pdf", conflicts_with = "dry_run")]
    report: Option<PathBuf>,
}

/// The two sides of a run, as the page has them.
pub(crate) struct Sides {
    own: String,
    peer: String,
    /// The tables that were put in.
    input: String,
}

impl Sides {
    /// Named by their keys, or by `certificates`: the file of the own chain, and the name in the peer's.
    pub(crate) fn new(
        keys: (Option<&Path>, Option<&Path>),
        certificates: (Option<&Path>, Option<&str>),
        input: &[PathBuf],
    ) -> Result<Self> {
        let unknown = || NOT_AUTHENTICATED.to_owned();
        let own = match (certificates.0, keys.0) {
            (Some(chain), _) => format!("certificate in {}", name(chain)),
            (None, Some(file)) => {
                format!("key {} ({})", Identity::load(file)?.public().fingerprint(), name(file))
            }
            (None, None) => unknown(),
        };
        let peer = match (certificates.1, keys.1) {
            (Some(called), _) => format!("certificate of {called}"),
            (None, Some(file)) => format!("key {} ({})", PublicKey::load(file)?.fingerprint(), name(file)),
            (None, None) => unknown(),
        };
        Ok(Sides { own, peer, input: super::keys::files(input) })
    }
}

/// Who takes part where nobody shows a key.
const NOT_AUTHENTICATED: &str = "not authenticated: the run was without TLS";

/// A page that is written when the run is over.
pub(crate) struct Report {
    output: Output,
    is_pdf: bool,
    begun: SystemTime,
}

impl ReportArgs {
    /// Refuses a page where none is written.
    pub(crate) fn refuse(&self, of: &str) -> Result<()> {
        match &self.report {
            Some(_) => Err(Error::Parameter {
                name: "report",
                what: format!("is not written of {of}; leave it out"),
            }),
            None => Ok(()),
        }
    }

    /// Opens the file, so that what keeps it from being written shows before the run.
    pub(crate) fn open(&self) -> Result<Option<Report>> {
        let Some(path) = &self.report else { return Ok(None) };
        let is_pdf = match ending(path).as_deref() {
            Some("pdf") => true,
            Some("html" | "htm") => false,
            _ => {
                let what = format!("{}: name it .html or .pdf", name(path));
                return Err(Error::Parameter { name: "report", what });
            }
        };
        Ok(Some(Report { output: Output::create(path)?, is_pdf, begun: SystemTime::now() }))
    }
}

fn ending(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}

impl Report {
    /// Writes what the result, as `--json` has it, says of the run.
    pub(crate) fn write(mut self, sides: &Sides, run: &Value, context: &Context) -> Result<()> {
        let page = page(sides, run, self.begun, SystemTime::now());
        let bytes = if self.is_pdf { pdf::of(&page) } else { html(&page).into_bytes() };
        let target = self.output.target().to_owned();
        self.output.write_all(&bytes).map_err(|e| Error::file(&target, "writing the report", e))?;
        self.output.commit()?;
        context.note(&format!("note: {} has a page about this run", name(&target)));
        Ok(())
    }
}

/// A moment in UTC.
fn moment(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (day, of_day) = (seconds / 86_400, seconds % 86_400);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{} {hour:02}:{minute:02}:{second:02} UTC", calendar::date(day))
}

fn page(sides: &Sides, run: &Value, begun: SystemTime, ended: SystemTime) -> Page {
    let text = |field: &str| run[field].as_str().map(str::to_owned);
    let number = |field: &str| run[field].as_u64();
    let count = |field: &str, one: &str| counted(number(field).unwrap_or_default(), one);
    let who = vec![("This side", sides.own.clone()), ("The other side", sides.peer.clone())];
    let when = vec![("Started", moment(begun)), ("Finished", moment(ended))];
    let (reveal, learns) = (text("reveal").unwrap_or_default(), text("result").unwrap_or_default());
    let mut what = vec![
        ("Operation", "private set intersection of the keys in both sides' tables".to_owned()),
        ("Keys", keys_of(run)),
        ("Revealed", revealed(&reveal, text("column"))),
        ("Result to", result_to(&learns).to_owned()),
        ("Protection", protection(&text("security").unwrap_or_default()).to_owned()),
        ("Protocol", text("protocol").unwrap_or_default()),
    ];
    for (name, field) in
        [("Columns received", "received_columns"), ("Columns that this side gave", "given_columns")]
    {
        if let Some(columns) = listed(&run[field]) {
            what.push((name, columns));
        }
    }
    if let Some(job) = text("job") {
        what.insert(1, ("Job of the service", job));
    }
    let mut sizes = vec![
        ("Table of this side", sides.input.clone()),
        (
            "This side",
            format!(
                "{}, {}, {}, {} without a key",
                count("own_rows", "row"),
                count("own_keys", "distinct key"),
                count("duplicates", "duplicate"),
                count("rows_without_key", "row")
            ),
        ),
        ("The other side", count("peer_keys", "distinct key")),
    ];
    let mut limits = Vec::new();
    if let Some(most) = number("peer_keys_tested_at_most") {
        let most = counted(most, "key");
        limits.push(("If the other side cheated", format!("it can have tested {most} of its choice")));
    }
    if let Some(most) = number("max_peer_rows") {
        limits.push((
            "Limit of this side",
            format!("the other side may have {}", counted(most, "distinct key")),
        ));
    }
    if let Some(least) = number("min_matches").filter(|least| *least > 0) {
        let of = counted(least, "match");
        limits.push(("Smallest number", format!("one over fewer than {of} would have been withheld")));
    }
    if sides.peer == NOT_AUTHENTICATED {
        let what =
            "none: anybody on the way could read and change what passed, and the other side could be anybody";
        limits.push(("Protection of the connection", what.to_owned()));
    }
    if let Some(warning) = text("warning") {
        limits.push(("Note", warning));
    }
    let mut learned = vec![("This side learned", own_learned(run))];
    let other = text("other_side_learned").unwrap_or_default();
    let other =
        other.trim_start_matches("the other side learned ").replace("that you have ", "that this side has ");
    learned.push(("The other side learned", other));
    if let Some(odd) = text("suspicious") {
        learned.push(("Look at this", odd));
    }
    sizes.push((
        "Traffic",
        format!("{} sent, {} received", count("bytes_sent", "byte"), count("bytes_received", "byte")),
    ));
    let mut sections = vec![
        Section { heading: "Who", rows: who },
        Section { heading: "When", rows: when },
        Section { heading: "What was computed", rows: what },
        Section { heading: "Sizes", rows: sizes },
        Section { heading: "What each side learned", rows: learned },
        Section { heading: "Limits", rows: limits },
    ];
    let mut foot = format!("Written by tacit {} on this side's machine. ", env!("CARGO_PKG_VERSION"));
    if let Some(id) = text("run") {
        let signed = match run["signed_by_both"].as_bool() {
            Some(true) => "both sides",
            _ => "this side only",
        };
        let rows = vec![
            ("Run", id),
            ("Hash of the terms", text("terms_hash").unwrap_or_default()),
            ("Signed by", signed.to_owned()),
            ("Stored in", text("records").unwrap_or_default()),
        ];
        sections.push(Section { heading: "Signed record", rows });
        foot += "The signed record counts; `tacit audit` verifies it. This page repeats it in words.";
    } else {
        foot += "It is not signed and proves nothing to others: runs with a service leave a record that both sides sign.";
    }
    sections.retain(|section| !section.rows.is_empty());
    Page { title: "Report of a private set intersection".to_owned(), sections, foot }
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
        "malicious" => "against an other side that cheats: deviations that the checks catch abort the run",
        "semi-honest" => "against an other side that follows the protocol; none if it cheats",
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
    let found = names.iter().filter_map(|name| match &run[*name] {
        Value::Null => None,
        Value::String(text) => Some(format!("{name} {text}")),
        value => Some(format!("{name} {value}")),
    });
    match found.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => sizes,
        numbers => format!("{numbers}, and {sizes}"),
    }
}

fn html(page: &Page) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><style>\n\
         body{{font:15px/1.45 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#1b1f23}}\n\
         h1{{font-size:1.5rem}}h2{{font-size:1.05rem;margin:1.4rem 0 .3rem}}table{{border-collapse:collapse;width:100%}}\n\
         th{{text-align:left;font-weight:normal;color:#555;width:12rem;vertical-align:top}}\n\
         td,th{{padding:.2rem .6rem .2rem 0;border-top:1px solid #ddd;overflow-wrap:anywhere}}\n\
         footer{{margin-top:2rem;color:#555;font-size:.85rem}}@media print{{body{{margin:0;font-size:11px}}}}\n\
         </style></head><body>\n<h1>{title}</h1>\n",
        title = escaped(&page.title)
    );
    for section in &page.sections {
        let _ = writeln!(out, "<h2>{}</h2><table>", section.heading);
        for (name, text) in &section.rows {
            let _ = writeln!(out, "<tr><th>{name}</th><td>{}</td></tr>", escaped(text));
        }
        out += "</table>\n";
    }
    let _ = writeln!(out, "<footer>{}</footer></body></html>", escaped(&page.foot));
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

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
        let page = page(&sides, &run, begun, begun + Duration::from_secs(61));
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
    }
}
