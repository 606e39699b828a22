//! What two sides' keys have in common, read from the line that [`KeySpec::agreement`] makes of it.
//!
//! Files and handshakes hold that line as a whole. People are shown what is in it, and of two lines where they
//! differ:
//!
//! ```
//! use tacit::data::records::{KeySpec, Normalisation};
//! use tacit::job::agreed;
//! let spec = KeySpec::text(vec!["mail".into()], Normalisation::default());
//! assert_eq!(agreed::words(&spec.agreement()), "1 column, text");
//! ```

use tacit_crypto::text::{counted, shown};
use tacit_data::keys::quoted;
use tacit_data::records::{KeySpec, OR};
use tacit_net::Difference;

/// Names of the tables of Unicode, as the line has them and as people are told.
const TABLES: [(&str, &str); 3] = [
    ("Unicode of normalisation", "Unicode of normalisation"),
    ("of case folding", "Unicode of case folding"),
    ("of white space", "Unicode of white space"),
];
/// How the line calls each step of text, how the handshake does, and what text is called without it.
const STEPS_OF_TEXT: [(&str, &str, &str); 3] = [
    ("nfc", "nfc", "without NFC"),
    ("trim", "trim", "not trimmed"),
    ("case fold", "case-fold", "case-sensitive"),
];
/// The setting of the columns' types.
pub(crate) const KEY_TYPES: &str = "key types";
const NO_LABELS: &str = "(none)";

/// The parts of the line.
struct Parts<'a> {
    columns: u64,
    /// Whether each of [`STEPS_OF_TEXT`] is taken.
    steps: [bool; 3],
    /// Versions of [`TABLES`].
    tables: [&'a str; 3],
    /// The version of the rules, unless all columns are text.
    rules: &'a str,
    types: String,
    labels: &'a str,
}

impl<'a> Parts<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let (text, typed) = match line.split_once("; rules of version ") {
            Some((text, typed)) => (text, Some(typed)),
            None => (line, None),
        };
        let mut parts = text.strip_prefix("key v2: ")?.split(", ");
        let columns: u64 = parts.next()?.strip_suffix(" columns")?.parse().ok()?;
        let mut next = |name: &str| parts.next()?.strip_prefix(name)?.strip_prefix(' ');
        let mut steps = [true; 3];
        for (taken, (name, ..)) in steps.iter_mut().zip(STEPS_OF_TEXT) {
            *taken = next(name)?.parse().ok()?;
        }
        let mut tables = [""; 3];
        for (version, (name, _)) in tables.iter_mut().zip(TABLES) {
            *version = next(name)?;
        }
        let (rules, types, labels) = match typed {
            None => ("", vec!["text"; usize::try_from(columns.min(256)).ok()?].join(", "), NO_LABELS),
            Some(typed) => {
                let (rules, named) = typed.split_once(" for ")?;
                let (types, labels) = named.split_once("; called ")?;
                (rules, types.to_owned(), labels)
            }
        };
        Some(Parts { columns, steps, tables, rules, types, labels })
    }
}

/// What makes a key, in a few words: columns and types, and what is not as usual. A line of another form is
/// shown as it is.
pub fn words(line: &str) -> String {
    let Some(parts) = Parts::of(line) else { return shown(line) };
    let mut words = vec![counted(parts.columns, "column"), parts.types];
    if parts.labels != NO_LABELS {
        words.push(format!("called {}", parts.labels));
    }
    let steps = parts.steps.iter().zip(STEPS_OF_TEXT);
    words.extend(steps.filter(|(taken, _)| !**taken).map(|(_, (.., without))| without.to_owned()));
    shown(&words.join(", "))
}

/// Where two lines differ: at least in one setting, unless they are equal.
pub fn differences(ours: &str, theirs: &str) -> Vec<Difference> {
    let told = |setting: &str, ours: &str, theirs: &str| {
        let value = |text: &str| (!text.is_empty()).then(|| shown(text));
        (ours != theirs).then(|| Difference {
            setting: setting.to_owned(),
            ours: value(ours),
            theirs: value(theirs),
        })
    };
    let (Some(one), Some(other)) = (Parts::of(ours), Parts::of(theirs)) else {
        return told("keys", ours, theirs).into_iter().collect();
    };
    let [columns, more] = [&one, &other].map(|parts| parts.columns.to_string());
    let mut found: Vec<_> = told("key columns", &columns, &more).into_iter().collect();
    if found.is_empty() {
        found.extend(told(KEY_TYPES, &one.types, &other.types));
    }
    found.extend(told("key labels", one.labels, other.labels));
    for ((ours, theirs), (_, name, _)) in one.steps.iter().zip(other.steps).zip(STEPS_OF_TEXT) {
        found.extend(told(name, &ours.to_string(), &theirs.to_string()));
    }
    for ((ours, theirs), (_, name)) in one.tables.iter().zip(other.tables).zip(TABLES) {
        found.extend(told(name, ours, theirs));
    }
    // Text alone has no rules of its own: a difference of types says it.
    if !one.rules.is_empty() && !other.rules.is_empty() {
        found.extend(told("rules of keys", one.rules, other.rules));
    }
    if found.is_empty() && ours != theirs {
        found.extend(told("keys", ours, theirs));
    }
    found
}

/// The key's columns as [`Named::parse`](tacit_data::keys::Named::parse) takes them, with `types` in the place of their own: what to write to have the
/// same types as a peer, of several identifiers parted by [`OR`]. Nothing if there are not as many, of as many columns.
pub fn with_types(key: &KeySpec, types: &str) -> Option<String> {
    let each: Vec<&str> = types.split(OR).collect();
    let is_like = |(at, types): (usize, &&str)| types.split(", ").count() == key.parts(at).len();
    if each.len() != key.identifiers() || !each.iter().enumerate().all(is_like) {
        return None;
    }
    let types: Vec<&str> = each.iter().flat_map(|types| types.split(", ")).collect();
    let labels = key.labels.iter().map(Option::as_deref).chain(std::iter::repeat(None));
    let column = |((name, label), kind): ((&String, Option<&str>), &&str)| {
        let label = label.map_or(String::new(), |label| format!("{label}="));
        let kind = match kind.strip_prefix("sha256 of ") {
            Some(hashed) => format!(":{hashed}:sha256"),
            None if *kind == "text" => String::new(),
            None => format!(":{kind}"),
        };
        format!("{label}{}{kind}", quoted(name))
    };
    let columns: Vec<String> = key.columns.iter().zip(labels).zip(&types).map(column).collect();
    let written = (0..key.identifiers()).map(|at| columns[key.parts(at)].join(","));
    Some(shown(&written.collect::<Vec<_>>().join(OR)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_data::keys::Named;
    use tacit_data::records::Normalisation;

    fn spec(columns: &[&str], normalisation: Normalisation) -> KeySpec {
        KeySpec::named(columns.iter().map(|column| Named::parse(column).unwrap()), normalisation)
    }

    /// As users read it.
    fn told(ours: &str, theirs: &str) -> String {
        differences(ours, theirs).iter().map(Difference::to_string).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn what_keys_are_made_of_is_shown_in_words() {
        let all = Normalisation::default();
        let told = |columns: &[&str]| words(&spec(columns, all).agreement());
        assert_eq!(told(&["a"]), "1 column, text");
        assert_eq!(told(&["a", "b:email"]), "2 columns, text, email");
        assert_eq!(told(&["one=a:email:sha256"]), "1 column, sha256 of email, called one");
        let line = spec(&["a"], Normalisation { trim: false, ..all }).agreement();
        assert_eq!(words(&line), "1 column, text, not trimmed");
        for other in ["email", "key v2: 1 columns", "key v2: x columns, nfc true", "key v3: \x1b[2J"] {
            assert_eq!(words(other), shown(other));
        }
    }

    #[test]
    fn only_what_differs_is_named() {
        let all = Normalisation::default();
        let line = |columns: &[&str]| spec(columns, all).agreement();
        let (text, mail, two) = (line(&["a"]), line(&["a:email"]), line(&["a:email", "b"]));
        assert_eq!(told(&text, &text), "");
        assert_eq!(told(&mail, &text), "key types (yours email, peer's text)");
        assert_eq!(told(&text, &two), "key columns (yours 1, peer's 2)");
        assert_eq!(
            told(&two, &line(&["b", "a:email"])),
            "key types (yours \"email, text\", peer's \"text, email\")"
        );
        assert_eq!(told(&text, &line(&["x=a"])), "key labels (yours (none), peer's x)");
        let trimmed = spec(&["a"], Normalisation { trim: false, ..all }).agreement();
        assert_eq!(told(&trimmed, &text), "trim (yours false, peer's true)");
        let older = text.replace("of case folding ", "of case folding 1");
        assert!(
            told(&text, &older).starts_with("Unicode of case folding (yours "),
            "{}",
            told(&text, &older)
        );
        let rules = mail.replace("rules of version ", "rules of version 9");
        assert!(told(&mail, &rules).starts_with("rules of keys (yours "));
        let any = spec(&["a:email"], all).or([Named::parse("b").unwrap()]).agreement();
        assert_eq!(words(&any), "2 columns, email or text");
        assert_eq!(told(&any, &two), "key types (yours email or text, peer's \"email, text\")");
        assert_eq!(told("a, b", "c"), "keys (yours \"a, b\", peer's c)");
    }

    #[test]
    fn a_key_is_written_with_the_peers_types() {
        let key = spec(&["serial:email", "one=\"a,b\""], Normalisation::default());
        assert_eq!(with_types(&key, "text, email").as_deref(), Some("serial,one=\"a,b\":email"));
        assert_eq!(
            with_types(&key, "sha256 of email, sha256-hex").as_deref(),
            Some("serial:email:sha256,one=\"a,b\":sha256-hex")
        );
        assert_eq!(with_types(&key, "text"), None);
        let any = key.or([Named::parse("fon").unwrap()]);
        let said = with_types(&any, "text, email or phone");
        assert_eq!(said.as_deref(), Some("serial,one=\"a,b\":email or fon:phone"));
        for other in ["text, email", "text or email, phone", "text, email, phone"] {
            assert_eq!(with_types(&any, other), None);
        }
    }
}
