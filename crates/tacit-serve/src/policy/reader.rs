//! Reads TOML so that every fault is found, and told with its line.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use tacit::crypto::near::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Something wrong in a policy file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Fault {
    /// The line, from 1; 0 where the file cannot be read.
    pub line: usize,
    /// What is wrong there, and what to write.
    pub what: String,
}

/// Collects the faults of one file.
pub(super) struct Reader<'t> {
    text: &'t str,
    faults: Vec<Fault>,
}

/// A value and the place where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct At<T> {
    pub value: T,
    /// The byte in the file.
    pub at: usize,
}

/// One table of the file: every key that nobody asks for is a fault.
pub(super) struct Section<'t, 'r, 'i> {
    reader: &'r mut Reader<'t>,
    table: &'r DeTable<'i>,
    /// What it is called in errors, such as `[jobs.match]`.
    name: String,
    at: usize,
    known: BTreeSet<&'static str>,
    is_left: bool,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Reader { text, faults: Vec::new() }
    }

    /// The section of `table`, which stands at byte `at`.
    pub(super) fn section<'r, 'i>(
        &'r mut self,
        table: &'r DeTable<'i>,
        name: &str,
        at: usize,
    ) -> Section<'t, 'r, 'i> {
        Section { reader: self, table, name: name.to_owned(), at, known: BTreeSet::new(), is_left: false }
    }

    /// Notes a fault at byte `at`.
    pub(super) fn fault(&mut self, at: usize, what: impl Into<String>) {
        let line = self.text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
        self.faults.push(Fault { line, what: what.into() });
    }

    /// All faults in the order of their lines.
    pub(super) fn faults(mut self) -> Vec<Fault> {
        self.faults.sort();
        self.faults.dedup();
        self.faults
    }
}

impl<'t, 'r, 'i> Section<'t, 'r, 'i> {
    /// Notes a fault at byte `at`.
    pub(super) fn fault(&mut self, at: usize, what: impl Into<String>) {
        self.reader.fault(at, what);
    }

    /// Where the section begins.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn find(&mut self, key: &'static str) -> Option<&'r Spanned<DeValue<'i>>> {
        self.known.insert(key);
        self.table.iter().find(|(name, _)| name.get_ref().as_ref() == key).map(|(_, value)| value)
    }

    /// Whether anything is given, right or wrong.
    pub(super) fn has(&mut self, key: &'static str) -> bool {
        self.find(key).is_some()
    }

    fn missing(&mut self, key: &str) {
        let what = format!("{} needs `{key}`", self.name);
        self.fault(self.at, what);
    }

    fn text_of(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<At<String>> {
        let at = value.span().start;
        match value.get_ref() {
            DeValue::String(text) if !text.is_empty() => Some(At { value: text.to_string(), at }),
            DeValue::Datetime(date) => Some(At { value: date.to_string(), at }),
            _ => {
                self.fault(at, format!("`{key}` must be a text in quotes"));
                None
            }
        }
    }

    /// A text, if it is given.
    pub(super) fn text(&mut self, key: &'static str) -> Option<At<String>> {
        let value = self.find(key)?;
        self.text_of(key, value)
    }

    /// Whether a text is given.
    pub(super) fn is_text(&mut self, key: &'static str) -> bool {
        self.find(key).is_some_and(|value| matches!(value.get_ref(), DeValue::String(_)))
    }

    fn literal_of(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<At<String>> {
        let at = value.span().start;
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string().replace('_', ""),
            DeValue::Float(number) => number.to_string().replace('_', ""),
            DeValue::Datetime(date) => date.to_string(),
            _ => {
                self.fault(at, format!("`{key}` must be a number, a date, or a text in quotes"));
                return None;
            }
        };
        Some(At { value: text, at })
    }

    /// A number, a date or a text, as it is written, if one is given.
    pub(super) fn literal(&mut self, key: &'static str) -> Option<At<String>> {
        let value = self.find(key)?;
        self.literal_of(key, value)
    }

    /// A list of them; one stands for a list of it.
    pub(super) fn literals(&mut self, key: &'static str) -> Vec<At<String>> {
        let Some(value) = self.find(key) else { return Vec::new() };
        match value.get_ref() {
            DeValue::Array(items) => items.iter().filter_map(|item| self.literal_of(key, item)).collect(),
            _ => self.literal_of(key, value).into_iter().collect(),
        }
    }

    /// A text that must be given.
    pub(super) fn wanted_text(&mut self, key: &'static str) -> Option<At<String>> {
        if self.find(key).is_none() {
            self.missing(key);
            return None;
        }
        self.text(key)
    }

    /// A list of texts; one text stands for a list of it.
    pub(super) fn list(&mut self, key: &'static str) -> Vec<At<String>> {
        let Some(value) = self.find(key) else { return Vec::new() };
        match value.get_ref() {
            DeValue::Array(items) => items.iter().filter_map(|item| self.text_of(key, item)).collect(),
            _ => self.text_of(key, value).into_iter().collect(),
        }
    }

    /// A list that must have an item.
    pub(super) fn wanted_list(&mut self, key: &'static str) -> Vec<At<String>> {
        match self.find(key).map(|value| (value.span().start, value.get_ref())) {
            None => self.missing(key),
            Some((at, DeValue::Array(items))) if items.is_empty() => {
                self.fault(at, format!("`{key}` is empty; name at least one"));
            }
            Some(_) => {}
        }
        self.list(key)
    }

    /// A whole number of that range, if it is given.
    pub(super) fn number(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.find(key)?;
        let number = match value.get_ref() {
            DeValue::Integer(number) => number.to_string().replace('_', "").parse().ok(),
            _ => None,
        };
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let what = format!("`{key}` must be a whole number from {} to {}", range.start(), range.end());
            self.fault(value.span().start, what);
        }
        number
    }

    /// An epsilon, in millionths, if it is given.
    pub(super) fn epsilon(&mut self, key: &'static str) -> Option<u64> {
        let said = self.literal(key)?;
        let found = tacit::query::read_epsilon(&said.value).filter(|epsilon| *epsilon > 0);
        if found.is_none() {
            let what = format!("`{key}` must be a number such as 0.5, with up to 6 digits after the point");
            self.fault(said.at, what);
        }
        // What is wrong must not allow more.
        Some(found.unwrap_or(0))
    }

    /// A number that must be given.
    pub(super) fn wanted_number(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        if self.find(key).is_none() {
            self.missing(key);
            return None;
        }
        self.number(key, range)
    }

    /// Yes or no; `usual` where nothing is given.
    pub(super) fn yes(&mut self, key: &'static str, usual: bool) -> bool {
        let Some(value) = self.find(key) else { return usual };
        match value.get_ref() {
            DeValue::Boolean(yes) => *yes,
            _ => {
                self.fault(value.span().start, format!("`{key}` must be true or false"));
                usual
            }
        }
    }

    /// As [`tables`](Self::tables), where the table must be given.
    pub(super) fn wanted_tables(&mut self, key: &'static str) -> Vec<(At<String>, &'r DeTable<'i>)> {
        if self.find(key).is_none() {
            self.missing(key);
        }
        self.tables(key)
    }

    /// The tables inside of table `key`, if it is given: their names, and where they begin.
    pub(super) fn tables(&mut self, key: &'static str) -> Vec<(At<String>, &'r DeTable<'i>)> {
        let Some(value) = self.find(key) else { return Vec::new() };
        let DeValue::Table(table) = value.get_ref() else {
            self.fault(value.span().start, format!("`{key}` must contain tables: write [{key}.NAME]"));
            return Vec::new();
        };
        let mut found = Vec::new();
        for (name, value) in table {
            let name = At { value: name.get_ref().to_string(), at: name.span().start };
            match value.get_ref() {
                DeValue::Table(inner) if is_name(&name.value) => found.push((name, inner)),
                DeValue::Table(_) => {
                    let what = "a name has letters, digits, - and _, and at most 64 of them";
                    self.fault(name.at, format!("[{key}.{}]: {what}", tacit::net::shown(&name.value)));
                }
                _ => {
                    self.fault(name.at, format!("[{key}.{}] must be a table", tacit::net::shown(&name.value)))
                }
            }
        }
        found
    }

    /// Reads an inner section with `read`.
    pub(super) fn inner<T>(
        &mut self,
        table: &'r DeTable<'i>,
        name: &str,
        at: usize,
        read: impl FnOnce(&mut Section<'t, '_, 'i>) -> T,
    ) -> T {
        let mut section = Section {
            reader: &mut *self.reader,
            table,
            name: name.to_owned(),
            at,
            known: BTreeSet::new(),
            is_left: false,
        };
        let result = read(&mut section);
        section.finish();
        result
    }

    /// Leaves the rest unread, where a fault keeps it from being understood.
    pub(super) fn leave(&mut self) {
        self.is_left = true;
    }

    /// Notes the keys that nobody asked for.
    pub(super) fn finish(&mut self) {
        if self.is_left {
            return;
        }
        for (key, _) in self.table {
            let name: &str = key.get_ref().as_ref();
            if !self.known.contains(name) {
                let known: Vec<&str> = self.known.iter().copied().collect();
                let what = format!(
                    "unknown setting `{}` in {}; {}",
                    tacit::net::shown(name),
                    self.name,
                    match nearest(name, known.iter().copied()) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("the settings are {}", known.join(", ")),
                    }
                );
                self.reader.fault(key.span().start, what);
            }
        }
    }
}

/// What may name a job, a peer or a source.
pub(super) fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=64).contains(&text.len()) && text.chars().all(plain)
}
