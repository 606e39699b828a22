//! `tacit bench report`: results as one HTML page with plots in it, which needs no network and no scripts.

use super::plot::{self, Bar, Series, escape, short};
use super::record::{self, Record};
use crate::Context;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use tacit::Result;
use tacit::net::LinkModel;
use tacit_console::files::{Kind, Named, check_outputs};
use tacit_console::output::{Output, name};

/// Turns files of results into one page with plots.
#[derive(clap::Args)]
pub struct Args {
    /// Files of results, one JSON object a line
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The page
    #[arg(long, value_name = "FILE.html", default_value = "report.html")]
    output: PathBuf,
    /// Writes each plot as an SVG file into this folder as well
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,
}

/// Runs the subcommand.
pub fn run(args: Args, context: &Context) -> Result<()> {
    let mut records = Vec::new();
    for file in &args.files {
        records.extend(record::read(file)?);
    }
    let plots = plots(&records);
    if let Some(folder) = &args.svg {
        let paths: Vec<PathBuf> =
            plots.iter().map(|plot| folder.join(format!("{}.svg", plot.name))).collect();
        let svg = paths.iter().map(|path| (Named::new("--svg", path), Kind::Result));
        let page = (Named::new("--output", &args.output), Kind::Result);
        let inputs: Vec<Named> = args.files.iter().map(|file| Named::new("FILES", file)).collect();
        check_outputs(&svg.chain([page]).collect::<Vec<_>>(), &inputs)?;
        for (plot, path) in plots.iter().zip(&paths) {
            write(path, &plot.svg)?;
        }
    }
    write(&args.output, &page(&records, &plots))?;
    let object = json!({"results": records.len(), "plots": plots.len(), "output": args.output});
    let text = format!("{} results, {} plots: {}", records.len(), plots.len(), name(&args.output));
    context.result(&object, &text)
}

fn write(path: &std::path::Path, text: &str) -> Result<()> {
    let mut out = Output::create(path)?;
    out.write_all(text.as_bytes()).map_err(|e| tacit_console::output::write_fault(path, e))?;
    out.commit()
}

struct Plot {
    /// The file's name.
    name: String,
    svg: String,
}

/// The plots that the results give something for.
fn plots(records: &[Record]) -> Vec<Plot> {
    let candidates = [
        ("time-by-bandwidth", by_bandwidth(records)),
        ("cost-by-size", by_size(records)),
        ("phases", phases(records)),
    ];
    let named = candidates.into_iter().filter_map(|(name, svg)| Some(Plot { name: name.into(), svg: svg? }));
    named.chain(papers(records)).collect()
}

/// Groups points by name and sorts them by x; of several with one x the last counts. Groups of one point are left out.
fn series(points: impl Iterator<Item = (String, f64, f64)>) -> Vec<Series> {
    let mut groups: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for (name, x, y) in points {
        groups.entry(name).or_default().push((x, y));
    }
    let all = groups.into_iter().map(|(name, mut points)| {
        points.reverse();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.dedup_by_key(|point| point.0);
        Series { name, points }
    });
    all.filter(|s| s.points.len() > 1).collect()
}

/// What a line of a plot is about: Ferret's set follows the link and the size, so it is not named there.
fn line(r: &Record) -> String {
    let mut plain = r.clone();
    if r.fresh && r.protocol.starts_with("ferret") {
        plain.variant.clear();
    }
    format!("{} {}{}", who(&plain), r.kind, if r.fresh { ", whole job" } else { "" })
}

/// The protocol, with its parameters, and the security and threads where they are not the usual ones.
fn who(r: &Record) -> String {
    let mut name = r.protocol.clone();
    if !r.variant.is_empty() {
        name += &format!(" ({})", r.variant);
    }
    name += match r.security.as_str() {
        "semi-honest" => " semi-honest",
        "none" => ", which protects nobody",
        _ => "",
    };
    if r.threads > 1 {
        name += &format!(" {} threads", r.threads);
    }
    name
}

/// Time of one item against the link's rate, at the counts and delays that were measured.
fn by_bandwidth(records: &[Record]) -> Option<String> {
    let points = records.iter().filter(|r| r.name == "ot").filter_map(|r| {
        let link: LinkModel = r.link.parse().ok()?;
        let delay = link.delay().as_secs_f64() * 1e3;
        link.megabits().is_finite().then(|| {
            (format!("{}, {}, {delay} ms", line(r), short(r.count as f64)), link.megabits(), r.ns_per_item)
        })
    });
    let series = series(points);
    (!series.is_empty()).then(|| plot::lines("Time of an OT by bandwidth", "Mbit/s", "ns an OT", &series))
}

/// Time of one item against how many there are, over loopback.
fn by_size(records: &[Record]) -> Option<String> {
    let points = records
        .iter()
        .filter(|r| r.link == "loopback" && !["net", "limits", "planner"].contains(&r.name.as_str()))
        .map(|r| (format!("{} {}", r.name, line(r)), r.count as f64, r.wall_ms));
    let series = series(points);
    (!series.is_empty()).then(|| plot::lines("Time of a run by size, loopback", "items", "ms", &series))
}

/// The latest result of each kind, cut into setup, offline and online.
fn phases(records: &[Record]) -> Option<String> {
    let shown = records
        .iter()
        .filter(|r| !["net", "limits", "planner"].contains(&r.name.as_str()) && r.link == "loopback");
    let mut latest: BTreeMap<String, &Record> = BTreeMap::new();
    for record in shown {
        latest.insert(format!("{} {} {}", record.name, who(record), record.kind), record);
    }
    let bars: Vec<Bar> = latest
        .into_iter()
        .map(|(name, r)| Bar {
            name: format!("{name}, {}: {} ms", short(r.count as f64), short(r.setup_ms + r.wall_ms)),
            parts: vec![r.setup_ms, r.offline_ms, r.online_ms],
        })
        .collect();
    (!bars.is_empty())
        .then(|| plot::bars("Share of time by phase", &["setup", "offline", "online"], &bars, true, "ms"))
}

/// How many times faster, or smaller, than a paper's figure ours is: a plot for each table.
fn papers(records: &[Record]) -> Vec<Plot> {
    let number = |r: &Record, field: &str| r.more.get(field).and_then(|v| v.as_f64()).filter(|v| *v > 0.0);
    let mut tables: BTreeMap<&str, Vec<Bar>> = BTreeMap::new();
    for r in records {
        let (Some(paper), Some(ours)) = (number(r, "paper"), number(r, "ours")) else { continue };
        let text = |field: &str| r.more.get(field).and_then(|v| v.as_str()).unwrap_or_default();
        let (row, unit, times) = (text("row"), text("unit"), paper / ours);
        let name = format!("{row}: paper {} {unit}, ours {} {unit}, {times:.2} ×", short(paper), short(ours));
        let bars = tables.entry(text("table")).or_default();
        bars.push(Bar { name, parts: vec![ours / (ours + paper), paper / (ours + paper)] });
    }
    let plot = |(table, bars): (&str, Vec<Bar>)| {
        let title = format!("{table}: ours against the paper's, as shares of both together");
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        Plot {
            name: format!("paper-{}", table.chars().map(plain).collect::<String>()),
            svg: plot::bars(&title, &["ours", "paper"], &bars, true, ""),
        }
    };
    tables.into_iter().map(plot).collect()
}

const PAGE_STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;background:var(--bg);color:var(--fg);max-width:60rem;margin:0 auto;padding:1rem}\
figure{margin:1.5rem 0}figure,.wide{overflow-x:auto}\
table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums}\
th,td{padding:.25rem .6rem;border-bottom:1px solid var(--grid);text-align:right;white-space:nowrap}\
th:first-child,td:first-child{text-align:left}";

fn page(records: &[Record], plots: &[Plot]) -> String {
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>\
         <title>Tacit: measured</title><style>{}{PAGE_STYLE}</style></head><body><h1>Tacit: measured</h1>",
        plot::STYLE
    );
    let list = |field: fn(&Record) -> &str| {
        let mut values: Vec<&str> = records.iter().map(field).filter(|v| !v.is_empty()).collect();
        values.sort_unstable();
        values.dedup();
        if values.is_empty() { "not named".to_owned() } else { escape(&values.join(", ")) }
    };
    let _ = write!(
        html,
        "<p>{} results. Machine: {}. Kernels: {}. Commit: {}.</p>",
        records.len(),
        list(|r| &r.machine),
        list(|r| &r.kernels),
        list(|r| &r.commit)
    );
    for plot in plots {
        let _ = write!(html, "<figure id=\"{}\">{}</figure>", plot.name, plot.svg);
    }
    if records.is_empty() {
        html += "<p>No results: give files of <code>tacit bench --json</code>.</p>";
    } else {
        html += "<h2>All results</h2><div class=\"wide\"><table><thead><tr>";
        for head in [
            "what", "count", "threads", "link", "ms", "least", "most", "ns each", "setup ms", "CPU ms",
            "bytes", "rounds", "MiB", "× limit",
        ] {
            let _ = write!(html, "<th>{head}</th>");
        }
        html += "</tr></thead><tbody>";
        records.iter().for_each(|record| row(&mut html, record));
        html += "</tbody></table></div>";
    }
    html + "</body></html>\n"
}

fn row(html: &mut String, r: &Record) {
    let limit = r.times_limit.map_or_else(String::new, |times| {
        format!("{times:.2} {}", escape(r.limit.as_deref().unwrap_or_default()))
    });
    let what = escape(&format!("{} {} {} {}", r.name, who(r), r.kind, if r.fresh { "fresh" } else { "" }));
    let _ = write!(
        html,
        "<tr><td>{what}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.3}</td><td>{:.3}</td><td>{:.3}</td><td>{:.3}</td>\
         <td>{:.2}</td><td>{:.1}+{:.1}</td><td>{}</td><td>{}</td><td>{}</td><td>{limit}</td></tr>",
        r.count,
        r.threads,
        escape(&r.link),
        r.wall_ms,
        r.wall_ms_min,
        r.wall_ms_max,
        r.ns_per_item,
        r.setup_ms,
        r.cpu_ms_local,
        r.cpu_ms_peer,
        r.bytes_sent + r.bytes_received,
        r.rounds,
        r.peak_rss_bytes >> 20
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(i: u64) -> Record {
        let mut record = Record {
            name: "ot".into(),
            protocol: if i.is_multiple_of(2) { "kos" } else { "iknp" }.into(),
            kind: "cot".into(),
            security: "malicious".into(),
            count: 1 << (10 + i % 10),
            threads: 1,
            link: ["loopback", "10/40", "100/40", "1000/40"][(i / 2 % 4) as usize].into(),
            wall_ms: 1.0 + i as f64,
            setup_ms: 2.0,
            online_ms: 1.0 + i as f64,
            ns_per_item: 10.0 + i as f64,
            ..Record::default()
        };
        record.more.insert("table".into(), json!("t-1"));
        record.more.insert("paper".into(), json!(100.0));
        record.more.insert("ours".into(), json!(25.0));
        record.more.insert("row".into(), json!("<script>"));
        record
    }

    /// Every tag closed in order, attributes quoted: what an XML reader would insist on.
    fn assert_well_formed(xml: &str) {
        let mut open: Vec<&str> = Vec::new();
        let mut rest = xml.strip_prefix("<!DOCTYPE html>\n").unwrap_or(xml);
        while let Some(start) = rest.find('<') {
            assert!(!rest[..start].contains('>'), "a stray `>` before: {}", &rest[..start]);
            let end = start + rest[start..].find('>').expect("an unclosed tag");
            let tag = &rest[start + 1..end];
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name));
            } else if !tag.ends_with('/') {
                open.push(tag.split_whitespace().next().unwrap());
            }
            rest = &rest[end + 1..];
        }
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn no_results_one_and_a_thousand_give_a_sound_page() {
        for count in [0, 1, 1000] {
            let records: Vec<Record> = (0..count).map(result).collect();
            let plots = plots(&records);
            let html = page(&records, &plots);
            assert_well_formed(&html);
            plots.iter().for_each(|plot| assert_well_formed(&plot.svg));
            assert_eq!(html.matches("<tr><td>").count() as u64, count);
            assert!(html.contains(&format!("<p>{count} results.")));
            assert!(
                !html.contains("http://www.w3.org/1999")
                    && !html.contains("src=")
                    && !html.contains("<script")
            );
            assert_eq!(plots.len(), [0, 2, 4][[0, 1, 1000].iter().position(|c| *c == count).unwrap()]);
        }
    }

    #[test]
    fn plots_carry_the_numbers_of_the_results() {
        let records: Vec<Record> = (0..16).map(result).collect();
        let plots = plots(&records);
        let find = |name: &str| &plots.iter().find(|plot| plot.name == name).unwrap().svg;
        let bandwidth = find("time-by-bandwidth");
        for record in records.iter().filter(|r| r.link != "loopback") {
            let megabits = record.link.split('/').next().unwrap();
            // A group of one link alone gives no line.
            let group = records.iter().filter(|r| {
                r.link != "loopback" && (r.count, &r.protocol) == (record.count, &record.protocol)
            });
            let links: std::collections::BTreeSet<&str> = group.map(|r| r.link.as_str()).collect();
            let there =
                bandwidth.contains(&format!("data-x=\"{megabits}\" data-y=\"{}\"", record.ns_per_item));
            assert_eq!(there, links.len() > 1, "{record:?}");
        }
        assert!(find("phases").contains("data-value=\"2\""));
        assert!(find("paper-t-1").contains("data-value=\"0.2\"") && find("paper-t-1").contains("4.00 ×"));
    }
}
