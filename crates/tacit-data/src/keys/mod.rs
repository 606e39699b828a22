//! Keys by their types: what makes two spellings the same key, step by step as `docs/keys.md` publishes it.
//!
//! A [`KeyType`] turns a cell into its normal form or refuses it with a [`Reason`]; what is refused is no
//! key, is counted, and matches nothing. A normal form is its own normal form, but of types that hash, and no
//! value is ever read as a floating-point number.

mod contact;
mod decimal;
mod hashed;
mod listed;
mod name;
mod near;
mod phone;
mod place;
mod prelude;
mod signs;
mod tally;
mod text;
mod value;

pub use listed::{listed, plain, quoted};
pub use near::MAX_VARIANTS;
pub use signs::Signs;
pub(crate) use signs::{LOOKED_AT, is_phone};
pub use tally::{Longest, Refusal, Sample, Tally};
pub use text::Normalisation;

use near::Near;
use place::Country;
use std::fmt;
use tacit_crypto::near::nearest;
use zeroize::Zeroizing;

/// The version of the published rules, which both sides must have alike.
pub const SPECIFICATION: u32 = 1;

/// Why a value is no key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// Nothing is left of it.
    Empty,
    /// It holds a character that values of its type do not have.
    Character,
    /// It is not written as values of its type are.
    Form,
    /// It has too many or too few characters or digits.
    Length,
    /// It can be read in more than one way.
    Ambiguous,
    /// It names what does not exist: the 31st of February, an unknown calling code.
    Range,
    /// It is hashed already, where clear values are hashed.
    Hashed,
    /// It is clear, where hashes are wanted.
    Clear,
    /// Its key would have more variants than a key may have.
    Variants,
}

impl Reason {
    /// The word for it, as the published vectors have it.
    pub const fn word(self) -> &'static str {
        match self {
            Reason::Empty => "empty",
            Reason::Character => "character",
            Reason::Form => "form",
            Reason::Length => "length",
            Reason::Ambiguous => "ambiguous",
            Reason::Range => "range",
            Reason::Hashed => "hashed",
            Reason::Clear => "clear",
            Reason::Variants => "variants",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Empty => "empty",
            Reason::Character => "a character that values of this type do not have",
            Reason::Form => "not a valid value of this type",
            Reason::Length => "too long or too short",
            Reason::Ambiguous => "ambiguous",
            Reason::Range => "does not exist",
            Reason::Hashed => "hashed already",
            Reason::Clear => "not a SHA-256 hash in hex",
            Reason::Variants => "its key has more than 4,096 variants; give fewer columns a near type",
        })
    }
}

/// What a value is, hashes aside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Text,
    Compatible,
    Email,
    Gmail,
    Phone(Option<&'static phone::Region>),
    Date(value::Order),
    Int,
    /// With a comma before the fraction, or a point.
    Decimal(bool),
    Uuid,
    Name,
    Postcode(Option<&'static Country>),
}

/// Whether a column holds values or their hashes, and what is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hashing {
    /// Clear values, compared as they are.
    None,
    /// Clear values, which we hash.
    Ours,
    /// Hashes.
    Theirs,
}

/// The type of a key's part: which spellings are the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyType {
    /// `None` where nobody says of what the hashes are.
    kind: Option<Kind>,
    hashing: Hashing,
    near: Near,
}

impl KeyType {
    /// Text, as [`Normalisation`] says: the type of a column without one.
    pub const TEXT: KeyType = KeyType { kind: Some(Kind::Text), hashing: Hashing::None, near: Near::No };

    /// The names of all types, as help and errors list them.
    pub const NAMES: &str = "text, text:nfkc, email, email:gmail, phone[:REGION], date[:DMY|MDY|YMD], int, decimal[:comma], uuid, \
                             name, postcode[:COUNTRY], name~1, date~1, int~N, sha256-hex[:TYPE], and TYPE:sha256";

    /// Reads a type's name, such as `phone:NL` or `email:sha256`; `None` where there is no such type.
    pub fn named(name: &str) -> Option<Self> {
        if name == "sha256-hex" {
            return Some(KeyType { kind: None, hashing: Hashing::Theirs, near: Near::No });
        }
        let (kind, hashing) = match (name.strip_prefix("sha256-hex:"), name.strip_suffix(":sha256")) {
            (Some(of), _) => (of, Hashing::Theirs),
            (None, Some(of)) => (of, Hashing::Ours),
            (None, None) => (name, Hashing::None),
        };
        // Of hashes nobody can make variants.
        let (kind, near) = match hashing {
            Hashing::None => Near::parse(kind)?,
            _ => (kind, Near::No),
        };
        Some(KeyType { kind: Some(Kind::named(kind)?), hashing, near })
    }

    /// The type whose normal form is the SHA-256 of this one's; itself where it has hashes already.
    #[must_use]
    pub fn hashed(self) -> Self {
        match self.hashing {
            Hashing::None => KeyType { hashing: Hashing::Ours, ..self },
            _ => self,
        }
    }

    /// What both sides must have alike: without a telephone's region, a date's format and a decimal's comma,
    /// which either side chooses for its own column.
    pub fn agreed(&self) -> String {
        match (self.kind, self.hashing) {
            (None, _) => "sha256-hex".to_owned(),
            (Some(kind), Hashing::None) => kind.agreed() + &self.near.suffix(),
            (Some(kind), _) => format!("sha256 of {}", kind.agreed()),
        }
    }

    /// Why a value of this type was refused, in words, with what helps where a type or an option does.
    pub fn refusal(&self, reason: Reason) -> String {
        let Some(kind) = self.kind.filter(|_| self.hashing != Hashing::Theirs) else {
            return reason.to_string();
        };
        let invalid = match kind {
            Kind::Text | Kind::Compatible | Kind::Name => return reason.to_string(),
            Kind::Email | Kind::Gmail => "not a valid e-mail address",
            Kind::Phone(_) => "not a valid phone number",
            Kind::Date(_) => "not a valid date",
            Kind::Int => "not a whole number",
            Kind::Decimal(_) => "not a valid decimal",
            Kind::Uuid => "not a valid UUID",
            Kind::Postcode(_) => "not a valid postcode",
        };
        match (reason, kind) {
            (Reason::Ambiguous, Kind::Phone(None)) => {
                "ambiguous: give the country, such as phone:NL".to_owned()
            }
            (Reason::Ambiguous, Kind::Date(value::Order::Iso)) => {
                "ambiguous: give date:DMY or date:MDY".to_owned()
            }
            (Reason::Ambiguous, Kind::Decimal(false)) => {
                "ambiguous: remove separators of thousands, or give decimal:comma".to_owned()
            }
            (Reason::Ambiguous, Kind::Decimal(true)) => {
                "ambiguous: remove separators of thousands".to_owned()
            }
            (Reason::Ambiguous, Kind::Int) => {
                "ambiguous: remove separators of thousands, or give decimal or decimal:comma for fractions"
                    .to_owned()
            }
            (Reason::Variants, _) => reason.to_string(),
            (Reason::Form | Reason::Character | Reason::Length, _) => invalid.to_owned(),
            (Reason::Range, Kind::Date(_)) => "this day does not exist".to_owned(),
            (Reason::Range, _) => invalid.to_owned(),
            (reason, _) => reason.to_string(),
        }
    }

    /// Whether it is plain text, whose steps can be switched off.
    pub fn is_text(&self) -> bool {
        self.kind == Some(Kind::Text)
    }

    /// Whether it is a date, itself or hashed by us.
    pub fn is_date(&self) -> bool {
        matches!(self.kind, Some(Kind::Date(_))) && self.hashing != Hashing::Theirs
    }

    /// Whether its values have variants, of which two need only one in common to match.
    pub fn is_near(&self) -> bool {
        self.near != Near::No
    }

    /// The same type, whose values must be equal to match.
    #[must_use]
    pub fn exact(self) -> Self {
        KeyType { near: Near::No, ..self }
    }

    /// The variants of a normal form, no two of them the same; the normal form itself if the type has none.
    pub fn variants(&self, normal: &str) -> Vec<String> {
        match self.kind {
            Some(kind) => self.near.variants(kind, normal),
            None => vec![normal.to_owned()],
        }
    }

    /// The fewest variants of a value.
    pub fn variants_at_least(&self) -> usize {
        self.kind.map_or(1, |kind| self.near.at_least(kind))
    }

    /// Appends the normal form of `text` to `out`, or says why there is none and leaves in `out` what it may.
    ///
    /// `steps` are those of plain text alone.
    pub fn normalise(&self, steps: Normalisation, text: &str, out: &mut String) -> Result<(), Reason> {
        match (self.hashing, self.kind) {
            (Hashing::Theirs, _) => hashed::listed(text, out),
            (_, None) => Err(Reason::Clear),
            (Hashing::None, Some(kind)) => {
                let start = out.len();
                kind.normalise(steps, text, out)?;
                self.near.check(kind, &out[start..])
            }
            (Hashing::Ours, Some(kind)) => {
                if hashed::is_hash(&prelude::prelude(text)) {
                    return Err(Reason::Hashed);
                }
                let mut clear = Zeroizing::new(String::new());
                kind.normalise(steps, text, &mut clear)?;
                hashed::of(&clear, out);
                Ok(())
            }
        }
    }
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(kind) = self.kind else { return f.write_str("sha256-hex") };
        let name = match kind {
            Kind::Phone(Some(region)) => format!("phone:{}", region.name),
            Kind::Date(order) if !order.suffix().is_empty() => format!("date:{}", order.suffix()),
            Kind::Decimal(true) => "decimal:comma".to_owned(),
            other => other.agreed(),
        } + &self.near.suffix();
        match self.hashing {
            Hashing::None => f.write_str(&name),
            Hashing::Ours => write!(f, "{name}:sha256"),
            Hashing::Theirs => write!(f, "sha256-hex:{name}"),
        }
    }
}

impl Kind {
    fn named(name: &str) -> Option<Self> {
        Some(match name.split_once(':').unwrap_or((name, "")) {
            ("phone", region) if !region.is_empty() => Kind::Phone(Some(phone::region(region)?)),
            ("postcode", country) if !country.is_empty() => Kind::Postcode(Some(place::country(country)?)),
            ("date", order) if !order.is_empty() => Kind::Date(value::Order::named(order)?),
            _ => match name {
                "text" => Kind::Text,
                "text:nfkc" => Kind::Compatible,
                "email" => Kind::Email,
                "email:gmail" => Kind::Gmail,
                "phone" => Kind::Phone(None),
                "date" => Kind::Date(value::Order::Iso),
                "int" => Kind::Int,
                "decimal" => Kind::Decimal(false),
                "decimal:comma" => Kind::Decimal(true),
                "uuid" => Kind::Uuid,
                "name" => Kind::Name,
                "postcode" => Kind::Postcode(None),
                _ => return None,
            },
        })
    }

    fn agreed(self) -> String {
        let name = match self {
            Kind::Text => "text",
            Kind::Compatible => "text:nfkc",
            Kind::Email => "email",
            Kind::Gmail => "email:gmail",
            Kind::Phone(_) => "phone",
            Kind::Date(_) => "date",
            Kind::Int => "int",
            Kind::Decimal(_) => "decimal",
            Kind::Uuid => "uuid",
            Kind::Name => "name",
            Kind::Postcode(None) => "postcode",
            Kind::Postcode(Some(country)) => return format!("postcode:{}", country.name),
        };
        name.to_owned()
    }

    fn normalise(self, steps: Normalisation, text: &str, out: &mut String) -> Result<(), Reason> {
        let start = out.len();
        match self {
            Kind::Text => steps.apply(text, out),
            Kind::Compatible => text::compatible(text, out),
            Kind::Email => contact::email(text, false, out)?,
            Kind::Gmail => contact::email(text, true, out)?,
            Kind::Phone(region) => phone::phone(text, region, out)?,
            Kind::Date(order) => value::date(text, order, out)?,
            Kind::Int => value::int(text, out)?,
            Kind::Decimal(comma) => decimal::decimal(text, comma, out)?,
            Kind::Uuid => value::uuid(text, out)?,
            Kind::Name => name::name(text, out)?,
            Kind::Postcode(country) => place::postcode(text, country, out)?,
        }
        if out.len() == start { Err(Reason::Empty) } else { Ok(()) }
    }
}

/// A column of a key as the user names it: `COL`, `COL:TYPE` or `LABEL=COL:TYPE`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// The column's name in our table.
    pub column: String,
    /// Its type; text unless said.
    pub key_type: KeyType,
    /// What both sides call it, if they do.
    pub label: Option<String>,
}

/// A column's type that is none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is not a key type; {meant}", meant = self.meant())]
pub struct NoType(String);

impl NoType {
    /// That no type has this name.
    pub fn new(name: &str) -> Self {
        NoType(name.to_owned())
    }

    fn meant(&self) -> String {
        let known = [
            "text",
            "text:nfkc",
            "email",
            "email:gmail",
            "phone",
            "phone:NL",
            "date",
            "date:DMY",
            "date:MDY",
            "date:YMD",
            "int",
            "decimal",
            "decimal:comma",
            "uuid",
            "name",
            "name~1",
            "date~1",
            "int~2",
            "postcode",
            "postcode:NL",
            "sha256-hex",
        ];
        if self.0.contains('~') {
            return "give name~1, date~1, date:DMY~1 or int~N with N from 1 to 99".to_owned();
        }
        // A type with an end that it does not have.
        let form = match self.0.split_once(':').map(|(start, _)| start) {
            Some("phone") => Some("phone:REGION with a region of two letters, such as phone:NL"),
            Some("postcode") => Some("postcode:COUNTRY with a country of two letters, such as postcode:NL"),
            Some("date") => Some("date:DMY, date:MDY or date:YMD"),
            _ => None,
        };
        match (form, nearest(&self.0, known)) {
            (Some(form), _) => format!("give {form}"),
            (None, Some(near)) => format!("did you mean `{near}`?"),
            (None, None) => {
                format!("give one of {} (write a column whose name has a colon as NAME:text)", KeyType::NAMES)
            }
        }
    }
}

impl Named {
    /// Reads `[LABEL=]COL[:TYPE]`. A label is made of letters, digits, `-` and `_`; an equals sign in front
    /// of a column's name says that what follows is no label. The longest end that is a type's name is the
    /// type. A name in double quotes may hold colons, and commas where columns are listed.
    pub fn parse(text: &str) -> Result<Self, NoType> {
        let is_label = |label: &str| label.chars().all(|c| c.is_alphanumeric() || "-_".contains(c));
        let (label, rest) = match text.split_once('=') {
            Some((label, rest)) if is_label(label) => (Some(label).filter(|label| !label.is_empty()), rest),
            _ => (None, text),
        };
        let label = label.map(str::to_owned);
        if let Some(end) = rest.starts_with('"').then(|| listed::closed(rest)).flatten() {
            let (column, end) = (plain(&rest[..end]), &rest[end..]);
            let kind = match end.strip_prefix(':') {
                None if end.is_empty() => Some(KeyType::TEXT),
                name => name.and_then(KeyType::named),
            };
            let no_type = || NoType(end.trim_start_matches(':').to_owned());
            return Ok(Named { column, key_type: kind.ok_or_else(no_type)?, label });
        }
        let named =
            |(column, key_type): (&str, KeyType)| Named { column: column.to_owned(), key_type, label };
        let mut ends = rest.match_indices(':').map(|(at, _)| (&rest[..at], &rest[at + 1..]));
        let typed = ends.find_map(|(column, end)| Some((column, KeyType::named(end)?)));
        match (typed, rest.split_once(':')) {
            (Some(typed), _) => Ok(named(typed)),
            (None, None) => Ok(named((rest, KeyType::TEXT))),
            (None, Some((_, end))) => Err(NoType(end.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_named_with_type_and_label() {
        let read = |text| {
            let Named { column, key_type, label } = Named::parse(text).unwrap();
            (column, key_type.to_string(), label.unwrap_or_default())
        };
        let told = |column: &str, name: &str, label: &str| (column.into(), name.into(), label.into());
        assert_eq!(read("email"), told("email", "text", ""));
        assert_eq!(read("E-Mail:email"), told("E-Mail", "email", ""));
        assert_eq!(read("tel:phone:NL"), told("tel", "phone:NL", ""));
        assert_eq!(read("a:b:date:DMY"), told("a:b", "date:DMY", ""));
        assert_eq!(read("given=Vorname:name"), told("Vorname", "name", "given"));
        assert_eq!(read("=a=b"), told("a=b", "text", ""));
        assert_eq!(read("\"a:int\""), told("a:int", "text", ""));
        assert_eq!(read("n=\"a, \"\"b\"\"\":name"), told("a, \"b\"", "name", "n"));
        assert_eq!(read("m:email:sha256"), told("m", "email:sha256", ""));
        assert_eq!(read("m:sha256-hex:email:gmail"), told("m", "sha256-hex:email:gmail", ""));
        for wrong in
            ["tel:telephone", "tel:phone:XX", "d:date:DYM", "x:sha256", "x:sha256-hex:", "\"a\"b", "\"a\":"]
        {
            assert!(Named::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_type_is_answered_with_the_one_that_was_meant() {
        let said = |text: &str| Named::parse(text).unwrap_err().to_string();
        assert_eq!(said("m:Email"), "`Email` is not a key type; did you mean `email`?");
        assert!(said("m:mails").contains("give one of text, text:nfkc, email"), "{}", said("m:mails"));
        assert!(said("m:phone:XX").ends_with("such as phone:NL") && said("d:date:DYM").contains("date:MDY"));
        assert_eq!(Named::parse("d:date:dmy").unwrap().key_type.to_string(), "date:DMY");
        let of = |name: &str, reason| KeyType::named(name).unwrap().refusal(reason);
        assert_eq!(of("email", Reason::Form), "not a valid e-mail address");
        assert_eq!(of("phone", Reason::Ambiguous), "ambiguous: give the country, such as phone:NL");
        assert_eq!(of("date", Reason::Ambiguous), "ambiguous: give date:DMY or date:MDY");
        assert_eq!(of("sha256-hex:email", Reason::Form), Reason::Form.to_string());
    }

    #[test]
    fn a_list_of_hashes_agrees_with_the_side_that_hashes_and_with_no_other() {
        let agreed = |name| KeyType::named(name).unwrap().agreed();
        assert_eq!(agreed("email:sha256"), agreed("sha256-hex:email"));
        assert_eq!(agreed("phone:NL"), agreed("phone:US"));
        assert_eq!(agreed("date:DMY"), agreed("date"));
        assert_eq!(agreed("decimal:comma"), agreed("decimal"));
        let different = [
            "email",
            "int",
            "decimal",
            "email:gmail",
            "email:sha256",
            "phone:sha256",
            "sha256-hex",
            "postcode:NL",
            "postcode",
        ];
        for (at, one) in different.iter().enumerate() {
            assert!(different[..at].iter().all(|other| agreed(other) != agreed(one)), "{one}");
        }
    }
}
