//! Whether a table's first line has the names of its columns, data, or a title above them.
//!
//! Nothing shows it for certain, so doubt goes one way: a line that may be data counts as [`is_doubtful`], and its
//! cells are then not shown as names.

use crate::keys::{KeyType, Normalisation, Signs, is_phone};
use std::collections::HashSet;

/// Rows that the first line is compared with, at most.
pub(crate) const COMPARED_ROWS: usize = 16;

/// How a cell is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// Digits and signs, as in numbers, amounts, dates and telephone numbers.
    Digits,
    Email,
    Iban,
    Url,
    Uuid,
    /// Letters and digits.
    Code,
    /// Words without capitals.
    Lower,
    /// Words in capitals.
    Upper,
    /// Words with capitals.
    Words,
    /// None of these.
    Other,
}

impl Shape {
    /// All of them, in the order of their numbers.
    pub(crate) const ALL: [Shape; 10] = [
        Shape::Digits,
        Shape::Email,
        Shape::Iban,
        Shape::Url,
        Shape::Uuid,
        Shape::Code,
        Shape::Lower,
        Shape::Upper,
        Shape::Words,
        Shape::Other,
    ];

    /// Of a cell; nothing of one that is empty, or has a word for that.
    pub(crate) fn of(cell: &str) -> Option<Self> {
        let cell = cell.trim();
        if cell.is_empty() || Signs::is_word(cell) {
            return None;
        }
        let is = |name: &str| {
            let kind = KeyType::named(name);
            kind.is_some_and(|kind| {
                kind.normalise(Normalisation::default(), cell, &mut String::new()).is_ok()
            })
        };
        let (digits, letters) = (cell.contains(char::is_numeric), cell.contains(char::is_alphabetic));
        Some(if is_phone(cell) || digits && !letters {
            Shape::Digits
        } else if cell.contains('@') {
            if is("email") { Shape::Email } else { Shape::Other }
        } else if is_url(cell) {
            Shape::Url
        } else if digits && is("uuid") {
            Shape::Uuid
        } else if digits && is_iban(cell) {
            Shape::Iban
        } else if digits && is("date") {
            Shape::Digits
        } else if digits {
            Shape::Code
        } else if !letters {
            Shape::Other
        } else if !cell.contains(char::is_uppercase) {
            Shape::Lower
        } else if !cell.contains(char::is_lowercase) {
            Shape::Upper
        } else {
            Shape::Words
        })
    }

    /// Whether names of columns are not written so.
    pub(crate) fn is_data(self) -> bool {
        matches!(self, Shape::Digits | Shape::Email | Shape::Iban | Shape::Url | Shape::Uuid)
    }

    /// Whether both may be cells of one column.
    fn is_like(self, other: Shape) -> bool {
        let has_capitals = |shape| matches!(shape, Shape::Upper | Shape::Words);
        self == other || has_capitals(self) && has_capitals(other)
    }
}

/// How the cells of a column's first [`COMPARED_ROWS`] rows are written, whoever reads them.
#[derive(Clone, Default)]
pub(crate) struct Shapes {
    rows: usize,
    of_shape: [u32; Shape::ALL.len()],
}

impl Shapes {
    pub(crate) fn add(&mut self, cell: &str) {
        if self.rows == COMPARED_ROWS {
            return;
        }
        self.rows += 1;
        if let Some(shape) = Shape::of(cell) {
            self.of_shape[shape as usize] += 1;
        }
    }

    /// The most frequent one.
    pub(crate) fn most(&self) -> Option<Shape> {
        let counted = Shape::ALL.into_iter().filter(|shape| self.of_shape[*shape as usize] > 0);
        counted.max_by_key(|shape| self.of_shape[*shape as usize])
    }
}

fn is_url(cell: &str) -> bool {
    cell.contains("://") || cell.starts_with("www.")
}

/// Two letters, two digits, and 11 to 30 letters and digits, in groups or together.
fn is_iban(cell: &str) -> bool {
    let plain: Vec<u8> = cell.bytes().filter(|byte| *byte != b' ').collect();
    (15..=34).contains(&plain.len())
        && plain[..2].iter().all(u8::is_ascii_uppercase)
        && plain[2..4].iter().all(u8::is_ascii_digit)
        && plain[4..].iter().all(u8::is_ascii_alphanumeric)
        && !cell.contains("  ")
}

/// A year or a day, which heads the columns of some tables.
fn is_time(name: &str) -> bool {
    let is_year = name.len() == 4 && (name.starts_with("19") || name.starts_with("20"));
    let is = |kind: &str| {
        let kind = KeyType::named(kind);
        kind.is_some_and(|kind| kind.normalise(Normalisation::default(), name, &mut String::new()).is_ok())
    };
    is_year || is("date") || is("date:DMY")
}

/// Whether a first line of these cells may be data. `below` has the shape of most cells of each column, nothing
/// where it has none.
pub(crate) fn is_doubtful(cells: &[&str], below: &[Option<Shape>]) -> bool {
    let named: Vec<&str> = cells.iter().map(|cell| cell.trim()).filter(|cell| !cell.is_empty()).collect();
    if named.is_empty() {
        return false;
    }
    let is_known = named.iter().any(|name| is_header_word(name));
    let is_data = |name: &&&str| Shape::of(name).is_some_and(Shape::is_data) && !(is_known && is_time(name));
    if named.iter().any(|name| is_data(&name)) {
        return true;
    }
    if !is_known && named.iter().any(|name| Signs::is_word(name)) {
        return true;
    }
    // As in `town` and `c12`, but not as in `yes`.
    let is_lower = |name: &str| {
        name.starts_with(char::is_lowercase) && !name.contains(char::is_uppercase) && !ANSWERS.contains(&name)
    };
    let is_plain = |name: &str| name.contains('_') || is_lower(name);
    if is_known || named.iter().any(|name| is_plain(name)) {
        return false;
    }
    let mut seen = HashSet::new();
    if !named.iter().all(|name| seen.insert(*name)) {
        return true;
    }
    let pairs = || cells.iter().zip(below).filter_map(|(cell, below)| Some((Shape::of(cell)?, (*below)?)));
    // Databases write names in capitals.
    let in_capitals = |(first, below): (Shape, Shape)| first == Shape::Upper && below != Shape::Upper;
    let is_loud = named.len() > 1 && pairs().next().is_some() && pairs().all(in_capitals);
    !is_loud && pairs().all(|(first, below)| first.is_like(below))
}

/// Whether any of these names of columns looks like data, in a format that has names by itself: there numbers may be.
pub(crate) fn has_data<'n>(mut names: impl Iterator<Item = &'n str>) -> bool {
    let is_data = |name: &str| match Shape::of(name) {
        Some(Shape::Digits) => is_phone(name.trim()),
        Some(shape) => shape.is_data(),
        None => false,
    };
    names.any(is_data)
}

/// Which of the first rows of a text seems to be the header, if those before it seem to be a title: fewer of their
/// fields have a text, and what it has are names.
pub(crate) fn behind_title(rows: &[Vec<String>]) -> Option<usize> {
    let filled = |row: &[String]| row.iter().filter(|cell| !cell.trim().is_empty()).count();
    let mut most = filled(rows.first()?);
    for (at, row) in rows.iter().enumerate().skip(1) {
        let here = filled(row);
        if here > most.max(1) && is_header(row, &rows[at + 1..]) {
            return Some(at);
        }
        most = most.max(here);
    }
    None
}

/// Whether a row that is not the first has names, without doubt.
fn is_header(row: &[String], below: &[Vec<String>]) -> bool {
    let cells: Vec<&str> = row.iter().map(|cell| cell.trim()).filter(|cell| !cell.is_empty()).collect();
    let mut seen = HashSet::new();
    let is_known = cells.iter().any(|cell| is_header_word(cell));
    let is_name =
        |cell: &str| Shape::of(cell).is_some_and(|shape| !shape.is_data()) || is_known && is_time(cell);
    if !cells.iter().all(|cell| is_name(cell) && seen.insert(*cell)) {
        return false;
    }
    let next = below.first().filter(|next| next.len() == row.len());
    let differs = next.is_some_and(|next| {
        let shapes = row.iter().zip(next).filter_map(|(one, next)| Some((Shape::of(one)?, Shape::of(next)?)));
        shapes.into_iter().any(|(one, next)| !one.is_like(next))
    });
    let is_lower = || cells.iter().all(|cell| Shape::of(cell) == Some(Shape::Lower));
    is_known || cells.iter().any(|cell| cell.contains('_')) || differs && is_lower()
}

/// Whether a word of a cell is one that headers have, in English or German, or a few in their neighbours' languages.
pub(crate) fn is_header_word(cell: &str) -> bool {
    let lower = cell.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).collect();
    let is_known = |word: &&&str| {
        WORDS.contains(*word) || COMPOUND_ENDS.iter().any(|end| word.len() > end.len() && word.ends_with(end))
    };
    let known = words.iter().filter(is_known).count();
    // Not as in an address with a house number, or a company's name.
    let is_short = words.len() == 1 || !cell.contains(char::is_numeric);
    known > 0 && 2 * known >= words.len() && is_short
}

/// Values that are written like names of columns.
const ANSWERS: [&str; 14] =
    ["yes", "no", "ja", "nein", "oui", "non", "si", "true", "false", "m", "w", "f", "d", "x"];

/// Ends of compounds, such as Kundennummer and lastname.
const COMPOUND_ENDS: [&str; 14] = [
    "name", "names", "nummer", "number", "datum", "date", "mail", "adresse", "address", "phone", "telefon",
    "betrag", "strasse", "straße",
];

/// Words that headers have.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "id", "ids", "key", "nr", "no", "num", "number", "nummer", "code", "ref", "reference", "uuid", "guid", "hash",
    "mail", "mails", "email", "emails", "name", "names", "first", "last", "given", "family", "surname", "vorname",
    "nachname", "naam", "nom", "prénom", "prenom", "nombre", "nome", "navn", "namn",
    "phone", "phones", "tel", "telephone", "telefon", "mobile", "mobil", "handy", "fax",
    "birth", "birthday", "born", "dob", "geboren", "geburtstag", "gebdat", "date", "datum", "day", "month", "year",
    "tag", "monat", "jahr", "time", "zeit", "timestamp",
    "city", "town", "stadt", "ort", "place", "country", "land", "region", "state", "street", "strasse", "straße",
    "address", "adresse", "anschrift", "zip", "plz", "postcode", "postal", "postleitzahl",
    "amount", "sum", "summe", "betrag", "total", "price", "preis", "value", "wert", "salary", "gehalt", "income",
    "revenue", "umsatz", "cost", "costs", "kosten", "quantity", "qty", "menge", "anzahl", "count",
    "iban", "bic", "account", "konto", "currency", "währung",
    "customer", "client", "kunde", "kunden", "member", "mitglied", "patient", "user", "person", "company", "firma",
    "department", "abteilung", "filiale", "gender", "sex", "geschlecht", "age", "alter", "title", "titel", "type",
    "typ", "kind", "status", "category", "kategorie", "group", "gruppe", "plan", "product", "produkt", "artikel",
    "item", "order", "branche", "standort", "kürzel", "farbe", "verein", "haus", "note", "notes", "remark", "remarks", "bemerkung", "comment", "kommentar", "description",
    "beschreibung", "score", "url", "website",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the first line of a text with commas is doubtful.
    fn doubtful(text: &str) -> bool {
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        let below: Vec<Option<Shape>> =
            (0..rows[0].len()).map(|at| rows.get(1).and_then(|row| Shape::of(row.get(at)?))).collect();
        is_doubtful(&rows[0], &below)
    }

    #[test]
    fn a_first_line_that_may_be_data_is_doubtful() {
        for text in [
            "Ann,0612345678\nBob,0612345679",
            "Ann,M,1980-01-31\nB,F,1981-01-01",
            "SMITH,1980-01-31\nJones,1981-02-03",
            "Ann,12.50\nB,13.50",
            "NL91ABNA0417164300,Ann\nNL91ABNA0417164301,Bob",
            "NL91 ABNA 0417 1643 00\nNL91 ABNA 0417 1643 01",
            "ann@x.org,Ann",
            "12,13.5\n1,2",
            "Ann,+31612345678",
            "Ann,https://x.org/ann",
            "Anna Schmidt\nEmil Maier;Köln",
            "Emil,Müller,4711\nAnna,Schmidt,4712",
            "O'Brien,12 Main St,+31 6 12345678\nx,y,+31611111111",
            "1980-01-31,Ann\n1981-01-01,B",
            "Anna,Anna\nEmil,Maier",
            "Anna,Schmidt",
            "2023,2024\n1,2",
            "f81d4fae-7dec-11d0-a765-00a0c91e6bf6,Ann",
            "AB12\nKK14",
            "Anna Schmidt,12 Main Street,Springfield\nBob Jones,5 High Road,Shelbyville",
            "Anna Schmidt,Muster Firma GmbH,Koeln\nBob Jones,Andere AG,Bonn",
            "Doris Geheim Day,Bonn\nBob Jones,Koeln",
            "Anna Schmidt,n/a,Koeln\nBob Jones,x,Bonn",
            "Anna Schmidt,NULL,Koeln\nBob Jones,x,Bonn",
            "Anna Schmidt,ja\nBob Jones,nein",
            "Meier,Kiel,m\nSchulz,Bonn,w",
        ] {
            assert!(doubtful(text), "{text}");
        }
        for text in [
            "mail,name\na@x.org,Ann",
            "Spieler,Verein\nAnna Schmidt,Kiel",
            "Standort,Kürzel\nBerlin,BER",
            "HAUS,FARBE\nROT,GELB",
            "Branche,2019,2020\nBau,1,2",
            "Artikel,01.01.2024,01.02.2024\nBrot,1,2",
            "Date of birth,Customer ID\n1980-01-31,7",
            "Iban,Naam\nNL91,Ann",
            "region,2023,2024\nnorth,5,1",
            "Region,2023,2024\nA,1,2",
            "Vorname,Nachname,Ort\nEmil,Maier,Köln",
            "E-Mail,Ort\na@x.org,Köln",
            "cust_ref,X1\nA,B",
            "Farbe,Gewicht\nRot,12",
            "FARBE,MODELL\nRot,Golf",
            "k\na",
            "c0,c0,c1\n1,1,1",
            "id,mail,mail\n5,a@x.org,b@x.org",
            ",mail\n0,a@x.org",
            "mail,,\na@x.org,,",
        ] {
            assert!(!doubtful(text), "{text}");
        }
        assert!(!is_doubtful(&[], &[]) && !is_doubtful(&["", " "], &[None, None]));
    }

    #[test]
    fn names_of_a_format_that_has_names_may_be_numbers() {
        assert!(has_data(["ann@secret.org", "b"].into_iter()) && has_data(["b", "+31612345678"].into_iter()));
        assert!(!has_data(["2023", "2024", "1.5", ""].into_iter()));
    }

    #[test]
    fn a_title_is_known_by_the_header_behind_it() {
        let behind = |text: &str, delimiter: char| {
            let rows: Vec<Vec<String>> =
                text.lines().map(|line| line.split(delimiter).map(str::to_owned).collect()).collect();
            behind_title(&rows)
        };
        for (text, lines) in [
            ("Report 2024\nname;mail\nA;a@x.org", Some(1)),
            ("Report 2024\nMade by ann@secret.org\nname;mail\nA;a@x.org", Some(2)),
            ("Report 2024;;\nMore;;\nname;mail;x\nA;a@x.org;1", Some(2)),
            ("Export;Filiale Köln;;;;\nid;name;mail;tel;ort;plz\n1;A;a@x.org;1;K;2", Some(1)),
            ("Customers\nk;n\na;1", Some(1)),
            ("mail;;\na@x.org;;\nb@x.org;;", None),
            (";mail\n0;a@x.org\n1;b@x.org", None),
            ("emails\na@x.org;b@x.org\nc@x.org;d@x.org", None),
            ("remark\nx ; y\nz ; w", None),
            ("ann@secret.org;;\nbob@x.org;5;2", None),
            ("Secret Sentence About Ann\nA;b\nC;d", None),
            ("name;mail\nA;a@x.org", None),
            ("", None),
        ] {
            assert_eq!(behind(text, ';'), lines, "{text}");
        }
    }
}
