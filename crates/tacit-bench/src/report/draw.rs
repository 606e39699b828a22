//! Pictures as SVG, by `plotters`: lines and dots on logarithmic axes, and shares.
//!
//! The library writes plain colours; [`COLOUR_STYLE`] turns them into those of a dark page where the reader
//! has one. Text stays text, which needs no font of this machine.

use plotters::coord::CoordTranslate;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, Ranged};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::ops::Range;
use tacit::{Error, Result};

/// So wide that a phone's width shrinks no text below ten pixels.
const WIDTH: u32 = 440;
const PLOT_HEIGHT: u32 = 300;
const ROW: u32 = 20;
/// Pixels of a letter, on average, and of a bold one.
const LETTER: u32 = 7;
const BOLD_LETTER: u32 = 8;
const FONT: f64 = 13.0;

/// The most lines of one plot: as many as there are colours and markers that nobody confuses.
pub(super) const LINES: usize = COLOURS.len();
const COLOURS: [RGBColor; 6] = [
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0xD5, 0x5E, 0x00),
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xCC, 0x79, 0xA7),
    RGBColor(0x8A, 0x6D, 0x00),
    RGBColor(0x4D, 0x4D, 0x4D),
];
const BACKGROUND: RGBColor = RGBColor(0xFF, 0xFF, 0xFF);
const INK: RGBColor = RGBColor(0x1A, 0x1A, 0x1A);
const GRID: RGBColor = RGBColor(0xDD, 0xDD, 0xDD);

/// Colours on light and dark paper, told apart by most colour-blind readers; the page and every single file
/// carry them.
pub(super) const COLOUR_STYLE: &str = "\
svg{width:100%;max-width:640px;height:auto;background:var(--bg)}\
:root,svg{--bg:#fff;--fg:#1a1a1a;--grid:#ddd;--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#cc79a7;--c4:#8a6d00;--c5:#4d4d4d}\
@media screen and (prefers-color-scheme:dark){:root,svg{--bg:#15181c;--fg:#e8e8e8;--grid:#3a3f45;--c0:#56b4e9;--c1:#ff8c42;\
--c2:#3ccf9a;--c3:#e6a5c9;--c4:#f0e442;--c5:#b5b5b5}}\
svg text{font-family:system-ui,sans-serif}\
svg [fill=\"#FFFFFF\"]{fill:var(--bg)}svg [fill=\"#1A1A1A\"]{fill:var(--fg)}\
svg [stroke=\"#1A1A1A\"]{stroke:var(--fg)}svg [stroke=\"#DDDDDD\"]{stroke:var(--grid)}\
svg [fill=\"#0072B2\"]{fill:var(--c0)}svg [stroke=\"#0072B2\"]{stroke:var(--c0)}\
svg [fill=\"#D55E00\"]{fill:var(--c1)}svg [stroke=\"#D55E00\"]{stroke:var(--c1)}\
svg [fill=\"#009E73\"]{fill:var(--c2)}svg [stroke=\"#009E73\"]{stroke:var(--c2)}\
svg [fill=\"#CC79A7\"]{fill:var(--c3)}svg [stroke=\"#CC79A7\"]{stroke:var(--c3)}\
svg [fill=\"#8A6D00\"]{fill:var(--c4)}svg [stroke=\"#8A6D00\"]{stroke:var(--c4)}\
svg [fill=\"#4D4D4D\"]{fill:var(--c5)}svg [stroke=\"#4D4D4D\"]{stroke:var(--c5)}";

/// One line of a plot.
pub(super) struct Series {
    pub name: String,
    /// In the order of x; all above zero.
    pub points: Vec<(f64, f64)>,
}

/// One bar, cut into parts; the parts' names are the plot's.
pub(super) struct Bar {
    pub name: String,
    pub parts: Vec<f64>,
}

/// A number short enough for an axis.
pub(super) fn short(value: f64) -> String {
    let magnitude = value.abs();
    let (scaled, suffix) = match magnitude {
        m if m >= 1e9 => (value / 1e9, "G"),
        m if m >= 1e6 => (value / 1e6, "M"),
        m if m >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = match scaled.abs() {
        m if m >= 100.0 || scaled.fract() == 0.0 => 0,
        m if m >= 1.0 => 2,
        m if m >= 1e-3 || m == 0.0 => 4,
        m => (1.0 - m.log10().floor()) as usize,
    };
    let text = format!("{scaled:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{suffix}")
}

/// Text that is safe between tags and in attributes.
pub(super) fn escape(text: &str) -> String {
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

/// A picture as a file of its own, which carries the colours.
pub(super) fn alone(svg: &str) -> String {
    svg.replacen(">\n", &format!("><style>{COLOUR_STYLE}</style>\n"), 1)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = std::result::Result<(), DrawingAreaErrorKind<std::io::Error>>;

fn font(bold: bool) -> TextStyle<'static> {
    // The library takes a font's height for its size.
    let style = if bold { FontStyle::Bold } else { FontStyle::Normal };
    FontDesc::new(FontFamily::SansSerif, FONT * 1.24, style).color(&INK)
}

fn text(text: &str, at: (i32, i32), horizontal: HPos, bold: bool) -> Text<'static, (i32, i32), String> {
    let style = font(bold).pos(Pos::new(horizontal, VPos::Center));
    Text::new(plain(text), at, style)
}

/// Text without what no picture can show.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// At most so many letters.
fn clip(text: &str, letters: u32) -> String {
    match text.char_indices().nth(letters as usize) {
        None => text.to_owned(),
        Some(_) => text.chars().take(letters as usize - 1).chain(['…']).collect(),
    }
}

/// Words in lines of at most so many letters.
fn wrap(text: &str, letters: u32) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines
            .last_mut()
            .filter(|l| l.is_empty() || l.chars().count() + word.chars().count() < letters as usize);
        match line {
            Some(line) if line.is_empty() => line.push_str(&clip(word, letters)),
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(clip(word, letters)),
        }
    }
    lines
}

/// A picture of a plot so high with its title above and the names of its colours below.
fn picture(
    title: &str,
    height: u32,
    names: &[&str],
    plot: impl FnOnce(&Area<'_>) -> Drawn,
) -> Result<String> {
    let title = wrap(title, (WIDTH - 16) / BOLD_LETTER);
    let head = title.len() as u32 * ROW + 6;
    let below = head + height;
    let size = (WIDTH, below + names.len() as u32 * ROW + if names.is_empty() { 0 } else { 8 });
    let mut svg = String::new();
    let drawn: Drawn = (|| {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&BACKGROUND)?;
        for (row, line) in title.iter().enumerate() {
            root.draw(&text(line, (8, (row as u32 * ROW + 13) as i32), HPos::Left, true))?;
        }
        plot(&root.clone().shrink((0, head), (WIDTH, height)))?;
        for (index, name) in names.iter().enumerate() {
            let y = (below + index as u32 * ROW + 10) as i32;
            root.draw(&PathElement::new([(8, y), (32, y)], COLOURS[index % LINES].stroke_width(2)))?;
            marker(&root, (20, y), index)?;
            root.draw(&text(&clip(name, (WIDTH - 46) / LETTER), (40, y), HPos::Left, false))?;
        }
        root.present()
    })();
    drawn.map_err(|e| Error::Other(format!("a plot cannot be drawn: {e}")))?;
    let label = escape(&title.join(" "));
    Ok(svg.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{label}\" "), 1))
}

/// One of the six markers, in its colour.
fn marker<C: CoordTranslate>(area: &DrawingArea<SVGBackend<'_>, C>, at: C::From, index: usize) -> Drawn
where
    C::From: Clone,
{
    let colour = COLOURS[index % LINES];
    let (here, full) = (EmptyElement::at(at), colour.filled());
    match index % LINES {
        0 => area.draw(&(here + Circle::new((0, 0), 4, full))),
        1 => area.draw(&(here + TriangleMarker::new((0, 0), 6, full))),
        2 => area.draw(&(here + Rectangle::new([(-4, -4), (4, 4)], full))),
        3 => area.draw(&(here + Polygon::new(vec![(0, -6), (6, 0), (0, 6), (-6, 0)], full))),
        4 => area.draw(&(here + Cross::new((0, 0), 4, colour.stroke_width(2)))),
        _ => area.draw(&(here + Circle::new((0, 0), 4, colour.stroke_width(2)))),
    }
}

/// A logarithmic axis over whole powers of ten, with a tick at each, or at every second where there are many.
struct Decades {
    low: i32,
    high: i32,
}

impl Decades {
    fn over(values: impl Iterator<Item = f64>) -> Decades {
        let (least, most) = values.fold((f64::INFINITY, 0.0f64), |(l, m), v| (l.min(v), m.max(v)));
        let (least, most) = if least.is_finite() && least > 0.0 { (least, most) } else { (1.0, 10.0) };
        // A figure of exactly ten to some power may come out a rounding away from it.
        let low = (least.log10() + 1e-9).floor() as i32;
        Decades { low, high: ((most.log10() - 1e-9).ceil() as i32).max(low + 1) }
    }
}

impl Ranged for Decades {
    type FormatOption = plotters::coord::ranged1d::NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let share = (value.log10() - f64::from(self.low)) / f64::from(self.high - self.low);
        (f64::from(from) + share * f64::from(to - from)).round() as i32
    }

    fn key_points<H: KeyPointHint>(&self, _: H) -> Vec<f64> {
        let step = ((self.high - self.low) as usize).div_ceil(8).max(1);
        (self.low..=self.high).step_by(step).map(|power| 10f64.powi(power)).collect()
    }

    fn range(&self) -> Range<f64> {
        10f64.powi(self.low)..10f64.powi(self.high)
    }
}

impl plotters::coord::ranged1d::ValueFormatter<f64> for Decades {
    fn format(value: &f64) -> String {
        short(*value)
    }
}

fn sound((x, y): &(f64, f64)) -> bool {
    *x > 0.0 && *y > 0.0 && x.is_finite() && y.is_finite()
}

/// Lines on logarithmic axes, at most [`LINES`] of them.
pub(super) fn lines(title: &str, x_label: &str, y_label: &str, series: &[Series]) -> Result<String> {
    let names: Vec<&str> = series.iter().map(|s| s.name.as_str()).collect();
    let points = || series.iter().flat_map(|s| s.points.iter().copied()).filter(sound);
    picture(title, PLOT_HEIGHT, &names, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_right(22)
            .margin_top(8)
            .x_label_area_size(46)
            .margin_left(4)
            .y_label_area_size(66)
            .build_cartesian_2d(Decades::over(points().map(|p| p.0)), Decades::over(points().map(|p| p.1)))?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(GRID)
            .label_style(font(false))
            .axis_desc_style(font(false))
            .x_desc(plain(x_label))
            .y_desc(plain(y_label))
            .draw()?;
        for (index, one) in series.iter().enumerate() {
            let line = one.points.iter().copied().filter(sound);
            let path =
                PathElement::new(line.clone().collect::<Vec<_>>(), COLOURS[index % LINES].stroke_width(2));
            chart.plotting_area().draw(&path)?;
            line.into_iter().try_for_each(|point| marker(chart.plotting_area(), point, index))?;
        }
        Ok(())
    })
}

/// Bars as long as the picture is wide, each cut into the named parts by their shares, its name above it.
pub(super) fn shares(title: &str, parts: &[&str], bars: &[Bar]) -> Result<String> {
    const BAR_HEIGHT: u32 = 38;
    picture(title, BAR_HEIGHT * bars.len() as u32 + 6, parts, |area| {
        for (row, bar) in bars.iter().enumerate() {
            let y = (row as u32 * BAR_HEIGHT) as i32;
            area.draw(&text(&clip(&bar.name, (WIDTH - 16) / LETTER), (8, y + 9), HPos::Left, false))?;
            let whole: f64 = bar.parts.iter().sum();
            let mut from = 0.0;
            for (index, part) in bar.parts.iter().enumerate().filter(|_| whole > 0.0) {
                let place = |share: f64| 8 + (share / whole * f64::from(WIDTH - 16)).round() as i32;
                let corners = [(place(from), y + 19), (place(from + part), y + 33)];
                area.draw(&Rectangle::new(corners, COLOURS[index % LINES].filled()))?;
                from += part;
                // The marker tells the parts apart in print as well; it stands in a hole of the bar.
                if corners[1].0 - corners[0].0 >= 24 {
                    let middle = (corners[0].0 + corners[1].0) / 2;
                    area.draw(&Rectangle::new(
                        [(middle - 8, y + 19), (middle + 8, y + 33)],
                        BACKGROUND.filled(),
                    ))?;
                    marker(area, (middle, y + 26), index)?;
                }
            }
        }
        Ok(())
    })
}

/// A row of dots for each name on one logarithmic axis, with 1 marked: what lies right of it has another
/// shape and colour than what lies left of it.
pub(super) fn dots(
    title: &str,
    x_label: &str,
    [ahead, behind]: [&str; 2],
    rows: &[(String, Vec<f64>)],
) -> Result<String> {
    const LEFT: u32 = 136;
    let values = || rows.iter().flat_map(|row| row.1.iter().copied()).filter(|v| *v > 0.0 && v.is_finite());
    picture(title, 22 * rows.len() as u32 + 60, &[ahead, behind], |area| {
        let height = rows.len() as f64;
        let mut chart = ChartBuilder::on(area)
            .margin_right(22)
            .margin_top(8)
            .x_label_area_size(46)
            .y_label_area_size(LEFT)
            .build_cartesian_2d(Decades::over(values().chain([1.0])), height..0.0)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(GRID)
            .label_style(font(false))
            .axis_desc_style(font(false))
            .x_desc(plain(x_label))
            .draw()?;
        let plot = chart.plotting_area();
        plot.draw(&PathElement::new([(1.0, 0.0), (1.0, height)], INK.stroke_width(2)))?;
        for (row, (name, values)) in rows.iter().enumerate() {
            let y = row as f64 + 0.5;
            let (low, at) = (plot.get_x_range().start, plot.map_coordinate(&(plot.get_x_range().start, y)).1);
            plot.draw(&PathElement::new([(low, y), (plot.get_x_range().end, y)], GRID))?;
            let (_, top) = area.get_base_pixel();
            let name = clip(name, LEFT / LETTER);
            area.draw(&text(&name, (LEFT as i32 - 8, at - top), HPos::Right, false))?;
            for value in values.iter().copied().filter(|v| *v > 0.0 && v.is_finite()) {
                marker(plot, (value, y), usize::from(value < 1.0))?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decades_are_equally_long_and_points_stand_where_they_belong() {
        let axis = Decades::over([2.0, 1000.0].into_iter());
        assert_eq!([1.0, 10.0, 1000.0].map(|v| axis.map(&v, (0, 300))), [0, 100, 300]);
        assert_eq!(axis.key_points(plotters::coord::ranged1d::BoldPoints(9)), [1.0, 10.0, 100.0, 1000.0]);
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.1, 1.0, 2.5, 1000.0, 12_500.0, 1e6, 3.21e9, 0.00012].map(short);
        assert_eq!(shown, ["0.1", "1", "2.5", "1000", "12.5k", "1M", "3.21G", "0.00012"]);
    }

    #[test]
    fn shares_fill_the_width_and_names_are_escaped() {
        let bar = Bar { name: "<b>&".into(), parts: vec![1.0, 3.0] };
        let svg = shares("t", &["a", "b"], &[bar]).unwrap();
        assert!(svg.contains("width=\"106\"") && svg.contains("width=\"318\""), "{svg}");
        assert!(svg.contains("&lt;b&gt;&amp;") && !svg.contains("<b>"));
    }

    #[test]
    fn every_line_has_its_own_colour_on_light_and_dark_and_its_own_marker() {
        let mut seen = std::collections::BTreeSet::new();
        for (index, RGBColor(r, g, b)) in COLOURS.into_iter().enumerate() {
            let colour = format!("#{r:02X}{g:02X}{b:02X}");
            assert!(
                COLOUR_STYLE.contains(&format!("[fill=\"{colour}\"]{{fill:var(--c{index})}}")),
                "{colour}"
            );
            assert!(
                COLOUR_STYLE.contains(&format!("[stroke=\"{colour}\"]{{stroke:var(--c{index})}}")),
                "{colour}"
            );
            assert_eq!(COLOUR_STYLE.matches(&format!("--c{index}:#")).count(), 2);
            let mut svg = String::new();
            let area = SVGBackend::with_string(&mut svg, (20, 20)).into_drawing_area();
            marker(&area, (10, 10), index).unwrap();
            area.present().unwrap();
            drop(area);
            assert!(svg.contains(&colour));
            assert!(seen.insert(svg.replace(&colour, "")), "two markers of one shape");
        }
    }
}
