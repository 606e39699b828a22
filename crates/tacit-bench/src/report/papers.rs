//! Our figures beside the papers': what the report begins with.

use super::Plot;
use super::draw::{self, escape, short};
use crate::paper;
use crate::record::Record;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use tacit::Result;

/// A figure of a paper and ours, in the paper's unit.
struct Figure<'a> {
    record: &'a Record,
    row: &'a str,
    unit: &'a str,
    paper: f64,
    ours: f64,
}

impl Figure<'_> {
    /// How many times better ours is: above 1 we are ahead.
    fn ratio(&self) -> f64 {
        self.paper / self.ours
    }

    fn ahead(&self) -> bool {
        self.ratio() >= 1.0
    }
}

struct Table<'a> {
    name: &'a str,
    figures: Vec<Figure<'a>>,
}

impl Table<'_> {
    /// The paper, and what the table is of.
    fn title(&self) -> (String, String) {
        match paper::about(self.name) {
            Some((title, _)) => {
                let (paper, table) = title.split_once(", table ").unwrap_or((title, ""));
                let (_, what) = table.split_once(": ").unwrap_or(("", table));
                (paper.to_owned(), what.to_owned())
            }
            None => (self.name.split("-table").next().unwrap_or_default().to_owned(), String::new()),
        }
    }
}

/// What was measured on one machine of the papers' tables.
pub(super) struct Machine<'a> {
    name: &'a str,
    kernels: BTreeSet<&'a str>,
    /// By paper.
    papers: Vec<(String, Vec<Table<'a>>)>,
}

/// The machines that measured figures of papers, in the order of the results; of a figure measured twice the
/// last counts.
pub(super) fn machines(records: &[Record]) -> Vec<Machine<'_>> {
    let number = |r: &Record, field: &str| r.more.get(field).and_then(|v| v.as_f64());
    let mut machines: Vec<(&str, Vec<Table<'_>>)> = Vec::new();
    for record in records {
        let (Some(paper), Some(ours)) = (number(record, "paper"), number(record, "ours")) else { continue };
        // A difference of two times may come out as nothing; there is no ratio to it.
        if !(paper > 0.0 && ours > 0.0 && (paper / ours).is_finite()) {
            continue;
        }
        let text = |field: &str| record.more.get(field).and_then(|v| v.as_str()).unwrap_or_default();
        let Some(table) = record.more.get("table").and_then(|v| v.as_str()) else { continue };
        let figure = Figure { record, row: text("row"), unit: text("unit"), paper, ours };
        let name = match record.machine.as_str() {
            "" => "a machine without a name",
            name => name,
        };
        let tables = entry(&mut machines, |m| m.0 == name, || (name, Vec::new()));
        let table = entry(&mut tables.1, |t| t.name == table, || Table { name: table, figures: Vec::new() });
        match table.figures.iter_mut().find(|f| (f.row, f.unit) == (figure.row, figure.unit)) {
            Some(known) => *known = figure,
            None => table.figures.push(figure),
        }
    }
    machines.into_iter().map(|(name, tables)| by_paper(name, tables)).collect()
}

fn by_paper<'a>(name: &'a str, tables: Vec<Table<'a>>) -> Machine<'a> {
    let kernels = tables.iter().flat_map(|t| &t.figures).map(|f| f.record.kernels.as_str()).collect();
    let mut papers: Vec<(String, Vec<Table<'_>>)> = Vec::new();
    for table in tables {
        let paper = table.title().0;
        entry(&mut papers, |p| p.0 == paper, || (paper.clone(), Vec::new())).1.push(table);
    }
    Machine { name, kernels, papers }
}

/// The entry that is wanted, made at the end if there is none.
fn entry<T>(list: &mut Vec<T>, wanted: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> &mut T {
    let at = list.iter().position(wanted).unwrap_or_else(|| {
        list.push(make());
        list.len() - 1
    });
    &mut list[at]
}

impl<'a> Machine<'a> {
    fn tables(&self) -> impl Iterator<Item = &Table<'a>> {
        self.papers.iter().flat_map(|paper| &paper.1)
    }

    fn figures(&self) -> impl Iterator<Item = (&Table<'a>, &Figure<'a>)> {
        self.tables().flat_map(|table| table.figures.iter().map(move |figure| (table, figure)))
    }

    /// All ratios, a row of dots for each table.
    pub(super) fn plot(&self, name: String) -> Result<Plot> {
        let rows: Vec<(String, Vec<f64>)> = self
            .tables()
            .map(|t| (t.name.to_owned(), t.figures.iter().map(Figure::ratio).collect()))
            .collect();
        let title = format!("All ratios, {}", self.name);
        let label = "times better than the paper";
        let svg = draw::dots(&title, label, ["ours is better, or equal", "the paper's is better"], &rows)?;
        // The numbers stand in the papers' own tables.
        Ok(Plot { name, svg, head: None, numbers: Vec::new() })
    }

    /// The answer in a sentence, a table a paper, and all dots beside them.
    pub(super) fn first_screen(&self, html: &mut String, plot: &Plot) {
        let ahead = self.figures().filter(|(_, figure)| figure.ahead()).count();
        let all = self.figures().count();
        let kernels = self.kernels.iter().copied().collect::<Vec<_>>().join(", ");
        let _ = write!(
            html,
            "<section><h2>Are we ahead of the papers?</h2><p class=\"verdict\">In <b>{ahead} of {all}</b> figures ours is better, \
             in <b>{}</b> the paper's. <span>A ratio is the paper's figure over ours: above 1 we are ahead. Ours is of {} \
             (kernels {}) over the links named (Mbit/s / ms one way), the paper's of its own machine.</span></p>\
             <div class=\"first\"><div>",
            all - ahead,
            escape(self.name),
            escape(&kernels)
        );
        for (paper, tables) in &self.papers {
            let _ = write!(
                html,
                "<table class=\"paper\"><thead><tr><th>{}</th><th>ahead</th><th>least</th>\
                 <th>median</th><th>most</th></tr></thead><tbody>",
                escape(paper)
            );
            tables.iter().for_each(|table| summary(html, table));
            *html += "</tbody></table>";
        }
        let _ =
            write!(html, "</div><figure id=\"{}\">{}</figure></div></section>", escape(&plot.name), plot.svg);
    }

    /// Where we are behind, worst first, and every figure, folded away.
    pub(super) fn details(&self, html: &mut String) {
        let mut behind: Vec<_> = self.figures().filter(|(_, figure)| !figure.ahead()).collect();
        behind.sort_by(|a, b| a.1.ratio().total_cmp(&b.1.ratio()));
        if !behind.is_empty() {
            let _ = write!(html, "<section><h2>Where we are behind, {}</h2>", escape(self.name));
            open_table(html, true);
            behind.iter().for_each(|(table, figure)| line(html, Some(table.name), figure));
            *html += "</tbody></table></div></section>";
        }
        let _ = write!(html, "<section><h2>Every figure of the papers, {}</h2>", escape(self.name));
        for table in self.tables() {
            let (paper, what) = table.title();
            let _ = write!(
                html,
                "<details><summary><b>{}</b> {}: {}</summary>",
                escape(table.name),
                escape(&paper),
                escape(&what)
            );
            if let Some((_, note)) = paper::about(table.name) {
                let _ = write!(html, "<p>{}.</p>", escape(note));
            }
            open_table(html, false);
            table.figures.iter().for_each(|figure| line(html, None, figure));
            *html += "</tbody></table></div></details>";
        }
        *html += "</section>";
    }
}

/// Least, median and most of a table's ratios.
fn summary(html: &mut String, table: &Table<'_>) {
    let mut ratios: Vec<f64> = table.figures.iter().map(Figure::ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let links: BTreeSet<&str> = table.figures.iter().map(|f| f.record.link.as_str()).collect();
    let mut over = links.iter().take(3).copied().collect::<Vec<_>>().join(", ");
    if links.len() > 3 {
        over += &format!(" and {} more", links.len() - 3);
    }
    let (_, what) = table.title();
    let (ahead, all) = (table.figures.iter().filter(|f| f.ahead()).count(), ratios.len());
    let what = if what.is_empty() { over } else { format!("{what}; {over}") };
    let _ = write!(
        html,
        "<tr><td><b>{}</b> <small>{}</small></td><td{}>{ahead} of {all}</td>",
        escape(table.name),
        escape(&what),
        class(ahead == all)
    );
    for ratio in [ratios[0], crate::measure::median(&ratios), ratios[all - 1]] {
        let _ = write!(html, "<td{}>{}</td>", class(ratio >= 1.0), times(ratio));
    }
    *html += "</tr>";
}

fn class(ahead: bool) -> &'static str {
    if ahead { "" } else { " class=\"behind\"" }
}

fn times(ratio: f64) -> String {
    if ratio >= 99.5 { format!("{ratio:.0}") } else { format!("{ratio:.2}") }
}

fn open_table(html: &mut String, named: bool) {
    let table = if named { "<th>table</th>" } else { "" };
    let _ = write!(
        html,
        "<div class=\"wide\"><table class=\"figures\"><thead><tr>{table}<th>figure</th><th>link</th><th>paper</th><th>ours</th>\
         <th>unit</th><th>ratio</th></tr></thead><tbody>"
    );
}

fn line(html: &mut String, table: Option<&str>, figure: &Figure<'_>) {
    let table = table.map_or_else(String::new, |name| format!("<td>{}</td>", escape(name)));
    let _ = write!(
        html,
        "<tr>{table}<td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td{}>{}</td></tr>",
        escape(figure.row),
        escape(&figure.record.link),
        short(figure.paper),
        short(figure.ours),
        escape(figure.unit),
        class(figure.ahead()),
        times(figure.ratio())
    );
}
