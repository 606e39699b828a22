//! One page of text as a PDF: a title, headings, and rows of a name and a text.

use std::fmt::Write;

/// A title, and sections of rows.
pub(super) struct Page {
    pub(super) title: String,
    pub(super) sections: Vec<Section>,
    pub(super) foot: String,
}

/// A heading, and rows of a name and a text.
pub(super) struct Section {
    pub(super) heading: &'static str,
    pub(super) rows: Vec<(&'static str, String)>,
}

/// A4, in points.
const PAPER: (u32, u32) = (595, 842);
const MARGIN: u32 = 56;
/// Where texts begin beside their names, and how wide they are.
const TEXT_AT: u32 = 190;
const TEXT_WIDTH: u32 = PAPER.0 - MARGIN - TEXT_AT;
const SIZE: u32 = 9;
const LINE: u32 = 13;

/// Widths of Helvetica's characters from the blank on, in thousandths of the size.
const WIDTHS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556,
    556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278,
    500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469,
    556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500,
    278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];

/// The page as the bytes of a PDF file. Characters that its fonts do not have become `?`.
pub(super) fn of(page: &Page) -> Vec<u8> {
    let mut sheets = vec![String::new()];
    let mut y = PAPER.1 - MARGIN;
    let put =
        |sheets: &mut Vec<String>, y: &mut u32, down: u32, at: u32, font: &str, size: u32, text: &str| {
            if *y < MARGIN + down {
                sheets.push(String::new());
                *y = PAPER.1 - MARGIN;
            }
            *y -= down;
            if let Some(sheet) = sheets.last_mut() {
                let _ = writeln!(sheet, "BT /{font} {size} Tf {at} {y} Td ({}) Tj ET", escaped(text));
            }
        };
    put(&mut sheets, &mut y, 18, MARGIN, "B", 17, &page.title);
    for section in &page.sections {
        put(&mut sheets, &mut y, 30, MARGIN, "B", 11, section.heading);
        for (name, text) in &section.rows {
            // In the order in which one reads, since programs that take the text out of a file keep it.
            let (names, texts) =
                (wrapped(name, TEXT_AT - MARGIN - SIZE, SIZE), wrapped(text, TEXT_WIDTH, SIZE));
            for at in 0..names.len().max(texts.len()) {
                let mut down = LINE + if at == 0 { 3 } else { 0 };
                for (column, lines) in [(MARGIN, &names), (TEXT_AT, &texts)] {
                    if let Some(line) = lines.get(at) {
                        put(&mut sheets, &mut y, down, column, "R", SIZE, line);
                        down = 0;
                    }
                }
            }
        }
    }
    for (at, line) in wrapped(&page.foot, PAPER.0 - 2 * MARGIN, 8).iter().enumerate() {
        put(&mut sheets, &mut y, if at == 0 { 34 } else { 11 }, MARGIN, "R", 8, line);
    }
    file(&page.title, &sheets)
}

/// The objects of a file with these pages, and where each begins.
fn file(title: &str, sheets: &[String]) -> Vec<u8> {
    let first = 6;
    let kids: Vec<String> = (0..sheets.len()).map(|at| format!("{} 0 R", first + 2 * at)).collect();
    let font = |name: &str| {
        format!("<< /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding >>").into_bytes()
    };
    let mut objects = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), sheets.len()).into_bytes(),
        font("Helvetica"),
        font("Helvetica-Bold"),
        [b"<< /Producer (tacit) /Title (".to_vec(), latin(&escaped(title)), b") >>".to_vec()].concat(),
    ];
    for (at, sheet) in sheets.iter().enumerate() {
        objects.push(
            format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {} {}] /Contents {} 0 R /Resources << /Font << /R 3 0 R /B 4 0 R \
                 >> >> >>",
                PAPER.0,
                PAPER.1,
                first + 2 * at + 1
            )
            .into_bytes(),
        );
        let stream = latin(sheet);
        let head = format!("<< /Length {} >>\nstream\n", stream.len()).into_bytes();
        objects.push([head, stream, b"endstream".to_vec()].concat());
    }
    let mut out = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n".to_vec();
    let mut places = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        places.push(out.len());
        out.extend(format!("{} 0 obj\n", at + 1).into_bytes());
        out.extend(object);
        out.extend(b"\nendobj\n");
    }
    let start = out.len();
    out.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).into_bytes());
    places.iter().for_each(|place| out.extend(format!("{place:010} 00000 n \n").into_bytes()));
    let end = format!(
        "trailer\n<< /Size {} /Root 1 0 R /Info 5 0 R >>\nstartxref\n{start}\n%%EOF\n",
        objects.len() + 1
    );
    out.extend(end.into_bytes());
    out
}

/// A text as it stands between parentheses.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if "()\\".contains(c) {
            out.push('\\');
        }
        out.push(if c.is_control() { ' ' } else { c });
    }
    out
}

/// The bytes of the font's encoding.
fn latin(text: &str) -> Vec<u8> {
    let byte = |c: char| match c {
        '\u{2013}' => 0x96,
        '\u{2014}' => 0x97,
        '\u{2019}' => 0x92,
        '\u{2026}' => 0x85,
        '\u{2212}' => b'-',
        '\u{20ac}' => 0x80,
        '\u{80}'..='\u{9f}' => b'?',
        c => u8::try_from(u32::from(c)).unwrap_or(b'?'),
    };
    text.chars().map(byte).collect()
}

/// The width of a character in thousandths of the size; of those that are not in the table, that of most.
fn width(c: char) -> u32 {
    let at = u32::from(c).checked_sub(32).and_then(|at| WIDTHS.get(at as usize));
    u32::from(at.copied().unwrap_or(600))
}

/// The lines of a text that are at most `points` wide; a word that is wider is cut.
fn wrapped(text: &str, points: u32, size: u32) -> Vec<String> {
    let most = points * 1000 / size;
    let (mut lines, mut line, mut used) = (Vec::new(), String::new(), 0);
    for word in text.split_whitespace() {
        let wide: u32 = word.chars().map(width).sum();
        if !line.is_empty() && used + width(' ') + wide > most {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        if !line.is_empty() {
            line.push(' ');
            used += width(' ');
        }
        for c in word.chars() {
            if used + width(c) > most {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            line.push(c);
            used += width(c);
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_and_lose_nothing() {
        let text = "a word and another, and averyverylongwordthatfitsnolineatallandiscutwhereitmustbe end";
        let lines = wrapped(text, 100, 9);
        assert!(lines.iter().all(|line| line.chars().map(width).sum::<u32>() * 9 <= 100_000), "{lines:?}");
        let all = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
        assert_eq!(all(&lines.concat()), all(text));
        assert_eq!(wrapped("", 100, 9), [""]);
        assert_eq!(latin(&escaped("(é\u{20ac}中\n)")), b"\\(\xe9\x80? \\)");
    }
}
