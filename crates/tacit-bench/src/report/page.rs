//! The page: what the report says, as HTML without scripts that loads nothing.

use super::draw::{self, escape};
use super::papers::Machine;
use super::{Plot, who};
use crate::record::Record;
use std::fmt::Write as _;

const PAGE_STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.45 system-ui,sans-serif;background:var(--bg);color:var(--fg);max-width:75rem;margin:0 auto;padding:0 1rem 2rem}\
h1{font-size:1.5rem;margin:.8rem 0 0}h2{font-size:1.2rem;margin:1.2rem 0 .3rem}p{margin:.3rem 0 .6rem}\
.verdict b{font-size:1.15em}.verdict span,small,.about{font-size:.8rem}\
.first,.plots{display:grid;gap:.5rem 1.5rem;grid-template-columns:minmax(0,1fr);align-items:start}\
@media(min-width:55rem){.first{grid-template-columns:minmax(0,1.4fr) minmax(0,1fr)}\
.plots{grid-template-columns:minmax(0,1fr) minmax(0,1fr)}}\
figure{margin:.5rem 0;break-inside:avoid}.wide{overflow-x:auto}\
table{border-collapse:collapse;font-size:.85rem;line-height:1.3;font-variant-numeric:tabular-nums}\
th,td{padding:.2rem .5rem;border-bottom:1px solid var(--grid);text-align:right;white-space:nowrap;vertical-align:top}\
th:first-child,td:first-child{text-align:left;padding-left:0}\
.paper{width:100%;break-inside:avoid;line-height:1.2}.paper th{padding-top:.35rem}.paper td{padding:.12rem .4rem}.paper small{font-size:.75rem}.paper th:first-child,.paper td:first-child{white-space:normal;width:100%}\
@media(max-width:40rem){.first figure{order:-1}.paper tr{display:grid;grid-template-columns:1.4fr 1fr 1fr 1fr}\
.paper th:first-child,.paper td:first-child{grid-column:1/-1;width:auto;border:0;padding-bottom:0}}\
.figures td:nth-last-child(n+6){text-align:left;white-space:normal}\
.figures th:nth-last-child(n+6){text-align:left}\
.behind{font-weight:700}.behind::after{content:\" \\25B2\"}.behind::after,.behind{color:var(--bad)}\
:root{--bad:#a84300}@media screen and (prefers-color-scheme:dark){:root{--bad:#ff8c42}}\
summary{cursor:pointer;padding:.2rem 0}\
@media print{body{max-width:none;font-size:12px}section{break-inside:auto}tr{break-inside:avoid}}";

/// The whole page: the papers first (with the plot of each machine's ratios), then a plot a question, then
/// all results.
pub(super) fn page(records: &[Record], machines: &[(Machine<'_>, Plot)], plots: &[Plot]) -> String {
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>\
         <title>Tacit: measured</title><style>{}{PAGE_STYLE}</style></head><body><h1>Tacit: measured</h1>",
        draw::COLOUR_STYLE
    );
    let list = |field: fn(&Record) -> &str| {
        let mut values: Vec<&str> = records.iter().map(field).filter(|v| !v.is_empty()).collect();
        values.sort_unstable();
        values.dedup();
        if values.is_empty() { "not named".to_owned() } else { escape(&values.join(", ")) }
    };
    let _ = write!(
        html,
        "<p class=\"about\">{} results. Machine: {}. Kernels: {}. Commit: {}.</p>",
        records.len(),
        list(|r| &r.machine),
        list(|r| &r.kernels),
        list(|r| &r.commit)
    );
    machines.iter().for_each(|(machine, plot)| machine.first_screen(&mut html, plot));
    machines.iter().for_each(|(machine, _)| machine.details(&mut html));
    if !plots.is_empty() {
        html += "<section><h2>One question a plot</h2><div class=\"plots\">";
        plots.iter().for_each(|plot| figure(&mut html, plot));
        html += "</div></section>";
    }
    if records.is_empty() {
        html += "<p>No results: give files of <code>tacit bench --json</code>.</p>";
    } else {
        html += "<section><h2>All results</h2><details id=\"all\"><summary>Every result in a table</summary>\
                 <div class=\"wide\"><table><thead><tr>";
        for head in [
            "what", "count", "threads", "link", "ms", "least", "most", "ns each", "setup ms", "CPU ms",
            "bytes", "rounds", "MiB", "× limit",
        ] {
            let _ = write!(html, "<th>{head}</th>");
        }
        html += "</tr></thead><tbody>";
        records.iter().for_each(|record| row(&mut html, record));
        html += "</tbody></table></div></details></section>";
    }
    html + "</body></html>\n"
}

/// A plot with its numbers below, folded away.
fn figure(html: &mut String, plot: &Plot) {
    let _ = write!(html, "<figure id=\"{}\">{}", escape(&plot.name), plot.svg);
    if let Some(head) = &plot.head {
        *html += "<details><summary><small>The numbers</small></summary><div class=\"wide\">\
                  <table class=\"numbers\"><thead><tr>";
        head.iter().for_each(|cell| *html += &format!("<th>{}</th>", escape(cell)));
        *html += "</tr></thead><tbody>";
        for line in &plot.numbers {
            *html += "<tr>";
            line.iter().for_each(|cell| *html += &format!("<td>{}</td>", escape(cell)));
            *html += "</tr>";
        }
        *html += "</tbody></table></div></details>";
    }
    *html += "</figure>";
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
