//! Plots as SVG that stand by themselves: lines on logarithmic axes, and bars.

use std::fmt::Write;

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 68.0;
const RIGHT: f64 = 26.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 48.0;
const LEGEND_ROW: f64 = 22.0;
/// Characters of a name that fit half of the width.
const LEGEND_HALF: usize = 34;
const COLOURS: usize = 8;

/// Colours for light and dark, told apart by most colour-blind readers; the page and every single file carry them.
pub const STYLE: &str = "\
svg{font:14px system-ui,sans-serif;width:100%;min-width:480px;max-width:780px;height:auto;background:var(--bg);color:var(--fg)}\
:root,svg{--bg:#fff;--fg:#1a1a1a;--grid:#ddd;--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#cc79a7;--c4:#8a6d00;--c5:#56b4e9;--c6:#7a3ea8;--c7:#555}\
@media(prefers-color-scheme:dark){:root,svg{--bg:#15181c;--fg:#e8e8e8;--grid:#3a3f45;--c0:#56b4e9;--c1:#ff8c42;--c2:#3ccf9a;--c3:#e6a5c9;--c4:#f0e442;--c5:#9bd3f5;--c6:#b98ae0;--c7:#aaa}}\
svg text{fill:var(--fg)}svg .grid{stroke:var(--grid)}svg .line{fill:none;stroke-width:2}";

/// One line of a plot.
pub struct Series {
    pub name: String,
    /// In the order of x; all above zero.
    pub points: Vec<(f64, f64)>,
}

/// One bar, cut into parts; the parts' names are the plot's.
pub struct Bar {
    pub name: String,
    pub parts: Vec<f64>,
}

/// Text that is safe between tags and in attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A number short enough for an axis.
pub fn short(value: f64) -> String {
    let magnitude = value.abs();
    let (scaled, suffix) = match magnitude {
        m if m >= 1e9 => (value / 1e9, "G"),
        m if m >= 1e6 => (value / 1e6, "M"),
        m if m >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = if scaled.abs() >= 100.0 || scaled.fract() == 0.0 {
        0
    } else if scaled.abs() >= 1.0 {
        2
    } else {
        4
    };
    let text = format!("{scaled:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{suffix}")
}

fn open(title: &str, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{0}\">\
         <style>{STYLE}</style><rect width=\"100%\" height=\"100%\" style=\"fill:var(--bg)\"/>\
         <text x=\"{LEFT}\" y=\"20\" font-weight=\"600\">{0}</text>",
        escape(title)
    )
}

/// A logarithmic axis from a power of ten to a power of ten, on `from..to` in the picture.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn new(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
        let (least, most) = values.fold((f64::INFINITY, 0.0f64), |(l, m), v| (l.min(v), m.max(v)));
        let (least, most) = if least.is_finite() && least > 0.0 { (least, most) } else { (1.0, 10.0) };
        let low = least.log10().floor();
        let high = most.log10().ceil().max(low + 1.0);
        Axis { low, high, from, to }
    }

    fn place(&self, value: f64) -> f64 {
        self.from + (value.log10() - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> + '_ {
        let step = ((self.high - self.low) / 8.0).ceil().max(1.0);
        let count = ((self.high - self.low) / step).floor() as i32;
        (0..=count).map(move |i| 10f64.powf(self.low + step * f64::from(i)))
    }
}

/// Lines on logarithmic axes.
pub fn lines(title: &str, x_label: &str, y_label: &str, series: &[Series]) -> String {
    let sound = |(x, y): &(f64, f64)| *x > 0.0 && *y > 0.0 && x.is_finite() && y.is_finite();
    let points = || series.iter().flat_map(|s| s.points.iter().copied()).filter(|p| sound(p));
    let x = Axis::new(points().map(|p| p.0), LEFT, WIDTH - RIGHT);
    let y = Axis::new(points().map(|p| p.1), HEIGHT - BOTTOM, TOP);
    let columns = legend_columns(series.iter().map(|s| s.name.as_str()));
    let rows = series.len().div_ceil(columns) as f64;
    let mut svg = open(title, HEIGHT + rows * LEGEND_ROW);
    for tick in x.ticks() {
        let at = x.place(tick);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{:.1}\"/>\
             <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - BOTTOM,
            HEIGHT - BOTTOM + 18.0,
            short(tick)
        );
    }
    for tick in y.ticks() {
        let at = y.place(tick);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0,
            short(tick)
        );
    }
    let _ = write!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
         <text transform=\"translate(16 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 10.0,
        escape(x_label),
        (TOP + HEIGHT - BOTTOM) / 2.0,
        escape(y_label)
    );
    for (index, one) in series.iter().enumerate() {
        let colour = index % COLOURS;
        let mut path = String::new();
        let mut dots = String::new();
        for point in one.points.iter().filter(|p| sound(p)) {
            let (px, py) = (x.place(point.0), y.place(point.1));
            let _ = write!(path, "{px:.1},{py:.1} ");
            let _ = write!(
                dots,
                "<circle cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"3.5\" style=\"fill:var(--c{colour})\" data-x=\"{}\" data-y=\"{}\">\
                 <title>{}: {}, {}</title></circle>",
                point.0,
                point.1,
                escape(&one.name),
                short(point.0),
                short(point.1)
            );
        }
        let _ = write!(
            svg,
            "<polyline class=\"line\" style=\"stroke:var(--c{colour});{}\" points=\"{}\"/>{dots}",
            dashes(index),
            path.trim_end()
        );
        legend(&mut svg, (index, columns), &one.name, HEIGHT);
    }
    svg + "</svg>"
}

/// Lines beyond the number of colours are told apart by their strokes.
fn dashes(index: usize) -> &'static str {
    ["", "stroke-dasharray:7 4", "stroke-dasharray:2 3", "stroke-dasharray:9 3 2 3"][index / COLOURS % 4]
}

/// Two columns where every name fits half of the width.
fn legend_columns<'a>(mut names: impl Iterator<Item = &'a str>) -> usize {
    if names.all(|name| name.chars().count() <= LEGEND_HALF) { 2 } else { 1 }
}

fn legend(svg: &mut String, (index, columns): (usize, usize), name: &str, top: f64) {
    let x = 8.0 + (index % columns) as f64 * (WIDTH - 16.0) / columns as f64;
    let y = top + (index / columns) as f64 * LEGEND_ROW;
    let _ = write!(
        svg,
        "<line x1=\"{x:.1}\" x2=\"{0:.1}\" y1=\"{1:.1}\" y2=\"{1:.1}\" style=\"stroke:var(--c{2});stroke-width:4;{3}\"/>\
         <text x=\"{4:.1}\" y=\"{5:.1}\">{6}</text>",
        x + 20.0,
        y + 6.0,
        index % COLOURS,
        dashes(index),
        x + 26.0,
        y + 11.0,
        escape(name)
    );
}

/// Bars from the left, each cut into the named parts. With `share` every bar is as long as its whole; otherwise bars are
/// long as their sums on one linear axis.
pub fn bars(title: &str, parts: &[&str], bars: &[Bar], share: bool, unit: &str) -> String {
    const ROW: f64 = 40.0;
    let columns = legend_columns(parts.iter().copied());
    let head = TOP + LEGEND_ROW * parts.len().div_ceil(columns) as f64;
    let height = head + ROW * bars.len().max(1) as f64 + 10.0;
    let mut svg = open(title, height);
    for (index, name) in parts.iter().enumerate() {
        legend(&mut svg, (index, columns), name, TOP - 4.0);
    }
    let sum = |bar: &Bar| bar.parts.iter().sum::<f64>();
    let most = bars.iter().map(sum).fold(0.0, f64::max);
    for (row, bar) in bars.iter().enumerate() {
        let y = head + row as f64 * ROW;
        let whole = if share { sum(bar) } else { most };
        let _ = write!(svg, "<text x=\"8\" y=\"{:.1}\">{}</text>", y + 13.0, escape(&bar.name));
        let mut x = 8.0;
        for (index, value) in bar.parts.iter().enumerate() {
            let width = if whole > 0.0 { value / whole * (WIDTH - 16.0) } else { 0.0 };
            let _ = write!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.2}\" height=\"14\" style=\"fill:var(--c{})\" data-value=\"{value}\">\
                 <title>{}, {}: {} {}</title></rect>",
                y + 17.0,
                index % COLOURS,
                escape(&bar.name),
                escape(parts.get(index).copied().unwrap_or_default()),
                short(*value),
                escape(unit)
            );
            x += width;
        }
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decades_are_equally_long_and_points_stand_where_they_belong() {
        let axis = Axis::new([1.0, 1000.0].into_iter(), 0.0, 300.0);
        assert_eq!([1.0, 10.0, 1000.0].map(|v| axis.place(v).round()), [0.0, 100.0, 300.0]);
        assert_eq!(axis.ticks().map(|t| t.round()).collect::<Vec<_>>(), [1.0, 10.0, 100.0, 1000.0]);
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.1, 1.0, 2.5, 1000.0, 12_500.0, 1e6, 3.21e9].map(short);
        assert_eq!(shown, ["0.1", "1", "2.5", "1000", "12.5k", "1M", "3.21G"]);
    }

    #[test]
    fn shares_fill_the_width_and_names_are_escaped() {
        let bar = Bar { name: "<b>&".into(), parts: vec![1.0, 3.0] };
        let svg = bars("t", &["a", "b"], &[bar], true, "ms");
        assert!(svg.contains("width=\"146.00\"") && svg.contains("width=\"438.00\""), "{svg}");
        assert!(svg.contains("&lt;b&gt;&amp;") && !svg.contains("<b>"));
    }
}
