//! `tacit bench report`: results as one HTML page, which needs no network and no scripts.
//!
//! Its first screen answers whether we are ahead of the papers, and where not; below stands one plot a
//! question.

mod draw;
mod page;
mod papers;

use super::record::{self, Record};
use crate::Context;
use draw::{Bar, Series, short};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::PathBuf;
use tacit::Result;
use tacit::catalogue::{Entry, find};
use tacit::crypto::text::counted;
use tacit::net::LinkModel;
use tacit_console::files::{Kind, Named, check_outputs};
use tacit_console::output::{Output, name};

/// Turns files of results into one page with plots.
#[derive(clap::Args)]
pub(crate) struct Args {
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

pub(crate) fn run(args: Args, context: &Context) -> Result<()> {
    let mut records = Vec::new();
    for file in &args.files {
        records.extend(record::read(file)?);
    }
    let machines = papers(&records)?;
    let plots = questions(&records)?;
    let all = || machines.iter().map(|(_, plot)| plot).chain(&plots);
    if let Some(folder) = &args.svg {
        let paths: Vec<PathBuf> = all().map(|plot| folder.join(format!("{}.svg", plot.name))).collect();
        let svg = paths.iter().map(|path| (Named::new("--svg", path), Kind::Result));
        let page = (Named::new("--output", &args.output), Kind::Result);
        let inputs: Vec<Named> = args.files.iter().map(|file| Named::new("FILES", file)).collect();
        check_outputs(&svg.chain([page]).collect::<Vec<_>>(), &inputs)?;
        for (plot, path) in all().zip(&paths) {
            write(path, &draw::alone(&plot.svg))?;
        }
    }
    write(&args.output, &page::page(&records, &machines, &plots))?;
    let object = json!({"results": records.len(), "plots": all().count(), "output": args.output});
    let text = format!("{} results, {} plots: {}", records.len(), all().count(), name(&args.output));
    context.result(&object, &text)
}

fn write(path: &std::path::Path, text: &str) -> Result<()> {
    let mut out = Output::create(path)?;
    out.write_all(text.as_bytes()).map_err(|e| tacit_console::output::write_fault(path, e))?;
    out.commit()
}

/// A picture, and its numbers for those who cannot or need not see it.
struct Plot {
    /// The file's name.
    name: String,
    svg: String,
    /// Names of the columns of the numbers; `None` where these stand in tables of their own.
    head: Option<Vec<String>>,
    numbers: Vec<Vec<String>>,
}

/// Each machine's figures of the papers' tables, with the plot of all its ratios.
fn papers(records: &[Record]) -> Result<Vec<(papers::Machine<'_>, Plot)>> {
    let mut out = Vec::new();
    for (index, machine) in papers::machines(records).into_iter().enumerate() {
        let plot = machine.plot(numbered("ratios", index))?;
        out.push((machine, plot));
    }
    Ok(out)
}

/// File names of several plots of one kind.
fn numbered(name: &str, index: usize) -> String {
    if index == 0 { name.to_owned() } else { format!("{name}-{}", index + 1) }
}

/// A result as a point of a line.
struct Point {
    /// What is the same for all lines of a plot, for its title.
    group: String,
    line: String,
    x: f64,
    y: f64,
}

/// A question: its plots' file name and title, and the axes.
struct Question {
    name: String,
    title: &'static str,
    x: &'static str,
    y: &'static str,
}

impl Question {
    /// The plots of these points: one a group, more where a group has more lines than one plot shows; the
    /// largest group first. Of several points with one x the last counts; lines of one point are left out.
    fn plots(&self, points: impl Iterator<Item = Point>) -> Result<Vec<Plot>> {
        let mut groups: BTreeMap<String, BTreeMap<String, Vec<(f64, f64)>>> = BTreeMap::new();
        for point in points {
            let line = groups.entry(point.group).or_default().entry(point.line).or_default();
            line.retain(|known| known.0 != point.x);
            line.push((point.x, point.y));
        }
        let mut groups: Vec<(String, Vec<Series>)> = groups
            .into_iter()
            .map(|(group, lines)| {
                let lines = lines.into_iter().filter(|(_, points)| points.len() > 1);
                let series = lines.map(|(name, mut points)| {
                    points.sort_by(|a, b| a.0.total_cmp(&b.0));
                    Series { name, points }
                });
                (group, series.collect())
            })
            .collect();
        groups.sort_by_key(|(_, series)| {
            std::cmp::Reverse(series.iter().map(|s| s.points.len()).sum::<usize>())
        });
        let mut plots = Vec::new();
        for (group, series) in &groups {
            let parts = series.len().div_ceil(draw::LINES);
            for (part, series) in series.chunks(draw::LINES).enumerate() {
                let mut title = self.title.to_owned();
                if !group.is_empty() {
                    title += &format!(": {group}");
                }
                if parts > 1 {
                    title += &format!(" ({} of {parts})", part + 1);
                }
                plots.push(self.plot(numbered(&self.name, plots.len()), &title, series)?);
            }
        }
        Ok(plots)
    }

    fn plot(&self, name: String, title: &str, series: &[Series]) -> Result<Plot> {
        let numbers =
            series.iter().flat_map(|s| s.points.iter().map(|p| vec![s.name.clone(), short(p.0), short(p.1)]));
        Ok(Plot {
            name,
            svg: draw::lines(title, self.x, self.y, series)?,
            head: Some(["line", self.x, self.y].map(str::to_owned).to_vec()),
            numbers: numbers.collect(),
        })
    }
}

/// The plots of all questions that the results answer. Figures of papers have their own tables: their sizes,
/// links and parameters are the papers', and no line goes through them.
fn questions(records: &[Record]) -> Result<Vec<Plot>> {
    let records: Vec<&Record> = records.iter().filter(|r| !r.more.contains_key("table")).collect();
    let records = records.as_slice();
    let mut plots = by_bandwidth(records)?;
    plots.extend(overview(records)?);
    plots.extend(and_gate(records)?);
    let jobs: BTreeSet<&str> = records.iter().filter(|r| is_job(r)).map(|r| r.name.as_str()).collect();
    for job in jobs {
        for (measure, title, y, of) in MEASURES {
            let name = format!("{measure}-by-size-{}", plain(job));
            let question = Question { name, title, x: items(job), y };
            let of_job = records.iter().filter(|r| r.name == job && is_job(r) && r.link == "loopback");
            plots.extend(question.plots(of_job.map(|r| {
                Point {
                    group: format!("{job}, {}, loopback", if r.name == "eval" { "" } else { &r.kind })
                        .replace(", ,", ","),
                    line: line(r),
                    x: r.count as f64,
                    y: of(r),
                }
            }))?);
        }
        plots.extend(phases(records, job)?);
    }
    Ok(plots)
}

/// What is asked of every job by its size.
type Measure = (&'static str, &'static str, &'static str, fn(&Record) -> f64);
const MEASURES: [Measure; 3] = [
    ("time", "Time by size", "ms", |r| r.wall_ms),
    ("traffic", "Traffic by size, both directions", "bytes", |r| (r.bytes_sent + r.bytes_received) as f64),
    ("memory", "Most memory of a party by size", "MiB", |r| r.peak_rss_bytes as f64 / f64::from(1 << 20)),
];

/// Text as part of a file's name.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// Whether a result is of a whole job between two parties, not of a part of the machinery.
fn is_job(r: &Record) -> bool {
    ["ot", "base-ot", "psi", "eval"].contains(&r.name.as_str())
}

/// What is counted.
fn items(job: &str) -> &'static str {
    match job {
        "ot" | "base-ot" => "transfers",
        "psi" => "keys a side",
        "eval" => "AND gates",
        _ => "items",
    }
}

/// What a line of a plot is about: Ferret's set follows the link and the size, and the function of an
/// evaluation is its size, so neither is named.
fn line(r: &Record) -> String {
    let mut plain = r.clone();
    if find(&r.protocol).is_some_and(Entry::has_sets) && r.security != "none" {
        plain.variant.clear();
    }
    let kind = match r.name.as_str() {
        "eval" => r.kind.split_once(' ').map_or("", |(_, how)| how),
        _ => &r.kind,
    };
    let space = if kind.is_empty() { "" } else { " " };
    format!("{}{space}{kind}{}", who(&plain), if r.fresh { ", whole job" } else { "" })
}

/// The protocol, with its parameters, and the security, threads and TLS where they are not the usual ones.
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
        name += &format!(" {}", counted(r.threads, "thread"));
    }
    if r.tls {
        name += " TLS";
    }
    name
}

/// Time of one transfer against the link's rate, a plot for each count and delay that was measured.
fn by_bandwidth(records: &[&Record]) -> Result<Vec<Plot>> {
    let points = records.iter().filter(|r| r.name == "ot").filter_map(|r| {
        let link: LinkModel = r.link.parse().ok()?;
        let delay = link.delay().as_secs_f64() * 1e3;
        link.megabits().is_finite().then(|| Point {
            group: format!("{} of {}, {delay} ms one way", short(r.count as f64), r.kind),
            line: line(r),
            x: link.megabits(),
            y: r.ns_per_item,
        })
    });
    let name = "time-by-bandwidth".to_owned();
    Question { name, title: "Time of a transfer by the link", x: "Mbit/s", y: "ns a transfer" }.plots(points)
}

/// Time of each job by its size over loopback: of each security the protocol that is fastest at its largest
/// size.
fn overview(records: &[&Record]) -> Result<Vec<Plot>> {
    let mut lines: BTreeMap<(&str, &str, String), Vec<&Record>> = BTreeMap::new();
    for &r in records.iter().filter(|r| is_job(r) && r.name != "base-ot" && r.link == "loopback") {
        lines.entry((&r.name, &r.security, line(r))).or_default().push(r);
    }
    let mut best: BTreeMap<(&str, &str), (f64, String, Vec<&Record>)> = BTreeMap::new();
    for ((job, security, line), records) in lines {
        let counts: BTreeSet<u64> = records.iter().map(|r| r.count).collect();
        let Some(largest) = records.iter().max_by_key(|r| r.count).filter(|_| counts.len() > 1) else {
            continue;
        };
        let cost = largest.wall_ms / largest.count.max(1) as f64;
        if best.get(&(job, security)).is_none_or(|known| cost < known.0) {
            best.insert((job, security), (cost, format!("{job}: {line}"), records));
        }
    }
    let points = best.into_values().flat_map(|(_, line, records)| {
        records.into_iter().map(move |r| Point {
            group: String::new(),
            line: line.clone(),
            x: r.count as f64,
            y: r.wall_ms,
        })
    });
    let title = "Time of a run by size, loopback, the fastest of each kind";
    Question { name: "cost-by-size".into(), title, x: "items", y: "ms" }.plots(points)
}

/// What an AND gate costs, by how many there are.
fn and_gate(records: &[&Record]) -> Result<Vec<Plot>> {
    let points = records.iter().filter(|r| r.name == "eval").map(|r| Point {
        group: r.link.clone(),
        line: line(r),
        x: r.count as f64,
        y: r.ns_per_item,
    });
    let name = "and-gate-by-size".to_owned();
    Question { name, title: "Cost of an AND gate by the circuit's size", x: "AND gates", y: "ns a gate" }
        .plots(points)
}

/// Of each kind of this job the latest result over loopback, cut into setup, offline and online; those with
/// one part alone have nothing to show.
fn phases(records: &[&Record], job: &str) -> Result<Option<Plot>> {
    const PARTS: [&str; 3] = ["setup, once for all runs", "offline, before an input is needed", "online"];
    let parts = |r: &Record| vec![r.setup_ms, r.offline_ms, r.online_ms];
    let several = |r: &Record| {
        let whole: f64 = parts(r).iter().sum();
        parts(r).iter().filter(|part| **part > whole / 100.0).count() > 1
    };
    let shown = records.iter().filter(|r| r.name == job && r.link == "loopback" && several(r));
    let mut latest: BTreeMap<String, &Record> = BTreeMap::new();
    for record in shown {
        latest.insert(format!("{} {}", who(record), record.kind), record);
    }
    if latest.is_empty() {
        return Ok(None);
    }
    let name = |(name, r): (&String, &&Record)| {
        format!("{name}, {}: {} ms", short(r.count as f64), short(r.setup_ms + r.wall_ms))
    };
    let bars: Vec<Bar> = latest.iter().map(|(n, r)| Bar { name: name((n, r)), parts: parts(r) }).collect();
    let numbers = bars
        .iter()
        .map(|bar| [bar.name.clone()].into_iter().chain(bar.parts.iter().map(|p| short(*p))).collect());
    Ok(Some(Plot {
        name: format!("phases-{}", plain(job)),
        svg: draw::shares(&format!("Shares of time by phase: {job}, loopback"), &PARTS, &bars)?,
        head: Some(["run", "setup ms", "offline ms", "online ms"].map(str::to_owned).to_vec()),
        numbers: numbers.collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper;

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
        if i % 17 == 16 {
            record.more.insert("table".into(), json!("t-1"));
        }
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

    fn made(records: &[Record]) -> (Vec<Plot>, String) {
        let machines = papers(records).unwrap();
        let plots = questions(records).unwrap();
        let html = page::page(records, &machines, &plots);
        (machines.into_iter().map(|(_, plot)| plot).chain(plots).collect(), html)
    }

    /// What would make a reader's browser load, or run, something.
    fn assert_alone(text: &str) {
        for reference in
            ["src=", "href", "url(", "@import", "<script", "<link", "<iframe", "<object", "javascript:"]
        {
            assert!(!text.contains(reference), "{reference}");
        }
        let names = text.matches("xmlns=\"http://www.w3.org/2000/svg\"").count();
        assert_eq!(text.matches("://").count(), names);
    }

    fn lines_in(svg: &str) -> usize {
        // Axes and their ticks are thinner.
        svg.split('<').filter(|tag| tag.starts_with("polyline") && tag.contains("stroke-width=\"2\"")).count()
    }

    #[test]
    fn no_results_one_and_a_thousand_give_a_sound_page() {
        for (count, rows) in [(0, 0), (1, 1), (1000, 1000)] {
            let records: Vec<Record> = (0..count).map(result).collect();
            let (plots, html) = made(&records);
            assert_well_formed(&html);
            assert_alone(&html);
            for plot in &plots {
                assert_well_formed(&draw::alone(&plot.svg));
                assert_alone(&draw::alone(&plot.svg));
            }
            let all = html.split("<details id=\"all\">").nth(1).unwrap_or_default();
            assert_eq!(all.matches("<tr><td>").count(), rows);
            assert!(html.contains(&format!(">{count} results.")));
            let names: BTreeSet<&str> = plots.iter().map(|plot| plot.name.as_str()).collect();
            assert_eq!(names.len(), plots.len(), "two plots of one name");
            let has = |name: &str| names.contains(name);
            assert_eq!(has("ratios"), count == 1000);
            assert_eq!(has("phases-ot"), count > 0);
            assert_eq!(
                has("time-by-bandwidth") && has("cost-by-size") && has("memory-by-size-ot"),
                count == 1000
            );
            assert_eq!(html.matches("<svg").count(), plots.len());
        }
    }

    #[test]
    fn no_plot_has_more_than_six_lines_and_none_is_lost() {
        let many = (0..20).flat_map(|protocol| (0..5).map(move |size| (protocol, size)));
        let records: Vec<Record> = many
            .map(|(protocol, size)| Record {
                protocol: format!("p{protocol:02}"),
                count: 10u64.pow(size + 1),
                link: "loopback".into(),
                wall_ms: f64::from(protocol * 10 + size + 1),
                bytes_sent: 100,
                peak_rss_bytes: 1 << 20,
                ..result(0)
            })
            .collect();
        let (plots, _) = made(&records);
        let of_time: Vec<&Plot> = plots.iter().filter(|p| p.name.starts_with("time-by-size-ot")).collect();
        let drawn: Vec<usize> = of_time
            .iter()
            .map(|plot| (0..20).filter(|p| plot.svg.contains(&format!("p{p:02} cot"))).count())
            .collect();
        assert_eq!(drawn, [6, 6, 6, 2]);
        for (plot, lines) in of_time.iter().zip(drawn) {
            assert_eq!(lines_in(&plot.svg), 2 * lines, "a line and its entry below, each");
            assert_eq!(plot.numbers.len(), 5 * lines);
        }
    }

    #[test]
    fn each_paper_has_its_table_with_ratios_machine_and_links_and_where_we_are_behind_is_told() {
        let figure = |table: &str, row: &str, paper: f64, ours: f64| {
            let mut record = Record { machine: "m-1".into(), kernels: "avx2".into(), ..result(2) };
            record.link = "50/40".into();
            for (name, value) in [("table", json!(table)), ("row", json!(row)), ("paper", json!(paper))] {
                record.more.insert(name.into(), value);
            }
            record.more.insert("ours".into(), json!(ours));
            record
        };
        let records = [
            figure("kos15-table2", "first", 100.0, 1.0),
            figure("kos15-table2", "<i>slow</i>", 10.0, 40.0),
            // Measured again: the last counts.
            figure("kos15-table2", "first", 100.0, 50.0),
            figure("roted-table2", "one", 8.0, 1.0),
            figure("roted-table4", "two", 6.0, 2.0),
            figure("unknown-table9", "three", 5.0, 5.0),
            figure("unknown-table9", "no ratio", 5.0, 0.0),
        ];
        let (plots, html) = made(&records);
        let first = &html[..html.find("Where we are behind").unwrap()];
        assert_eq!(first.matches("<table class=\"paper\">").count(), 3);
        for text in ["<b>4 of 5</b>", "<th>ROTed</th>", "<th>unknown</th>", "m-1", "50/40", "1 of 2"] {
            assert!(first.contains(text), "{text}");
        }
        let least_median_most = "<td class=\"behind\">0.25</td><td>1.13</td><td>2.00</td>";
        assert!(first.replace("1.12<", "1.13<").contains(least_median_most), "{first}");
        let behind = html.split("Where we are behind").nth(1).unwrap().split("</section>").next().unwrap();
        assert_eq!(behind.matches("<tr><td>").count(), 1);
        assert!(behind.contains("&lt;i&gt;slow&lt;/i&gt;") && !html.contains("<i>"));
        let dots = &plots.iter().find(|plot| plot.name == "ratios").unwrap().svg;
        // One more of each in the names below.
        assert_eq!((dots.matches("<circle").count(), dots.matches("<polygon").count()), (4 + 1, 1 + 1));
        assert!(paper::about("kos15-table2").is_some() && paper::about("unknown-table9").is_none());
    }

    #[test]
    fn plots_carry_the_numbers_of_the_results() {
        let records: Vec<Record> = (0..16).map(result).collect();
        let (plots, html) = made(&records);
        let shown = |x: &str, y: f64| {
            let cells = [x.to_owned(), short(y)];
            plots
                .iter()
                .any(|p| p.name.starts_with("time-by-bandwidth") && p.numbers.iter().any(|n| n[1..] == cells))
        };
        for record in records.iter().filter(|r| r.link != "loopback") {
            let megabits = record.link.split('/').next().unwrap();
            // A group of one link alone gives no line.
            let group = records.iter().filter(|r| {
                r.link != "loopback" && (r.count, &r.protocol) == (record.count, &record.protocol)
            });
            let links: BTreeSet<&str> = group.map(|r| r.link.as_str()).collect();
            assert_eq!(shown(megabits, record.ns_per_item), links.len() > 1, "{record:?}");
        }
        let phases = plots.iter().find(|plot| plot.name == "phases-ot").unwrap();
        assert!(phases.numbers.iter().any(|n| n[1..] == ["2", "0", "10"]), "{:?}", phases.numbers);
        assert!(html.contains("<td>10</td>"));
    }

    #[test]
    fn the_record_of_this_project_gives_the_plots_of_its_pages() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/record");
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = path.to_string_lossy().into_owned();
            if !text.ends_with(".jsonl") {
                continue;
            }
            let (plots, html) = made(&record::read(&path).unwrap());
            assert_well_formed(&html);
            let wanted = match text.ends_with("-papers.jsonl") {
                true => ["ratios"].as_slice(),
                false => &["time-by-bandwidth", "cost-by-size", "and-gate-by-size", "phases-psi"],
            };
            for name in wanted {
                assert!(plots.iter().any(|plot| plot.name == *name), "{name} from {text}");
            }
            for plot in plots.iter().filter(|p| p.name.contains("by-")) {
                let lines: BTreeSet<&str> = plot.numbers.iter().map(|n| n[0].as_str()).collect();
                assert!((1..=draw::LINES).contains(&lines.len()), "{}", plot.name);
            }
        }
    }
}
