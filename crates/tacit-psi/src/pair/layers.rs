//! What was done to the identifiers of a list, which every row of it says.

use super::keys::{Id, Role};
use std::fmt;

/// Longest name of what was hashed.
const LONGEST_KIND: usize = 64;

/// Of what type of value the identifiers are, with which salt they were hashed, and with whose keys they were
/// encrypted, in this order: the first is whose list it is.
///
/// As text: `email salt:0123456789abcdef publisher:0123456789abcdef`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layers {
    kind: String,
    salt: Id,
    keys: Vec<(Role, Id)>,
}

impl Layers {
    /// Identifiers of values of a `kind`, as both sides call it, encrypted by these keys; `None` unless there are one
    /// or two, of different roles and secrets, and the kind is one word.
    pub fn new(kind: &str, salt: Id, keys: impl IntoIterator<Item = (Role, Id)>) -> Option<Self> {
        let layers = Layers { kind: kind.to_owned(), salt, keys: keys.into_iter().collect() };
        layers.is_sound().then_some(layers)
    }

    fn is_sound(&self) -> bool {
        let is_word = |c: char| c.is_ascii_alphanumeric() || ":-".contains(c);
        let differ = match &self.keys[..] {
            [_] => true,
            [(one, first), (other, second)] => one != other && first != second,
            _ => false,
        };
        differ && (1..=LONGEST_KIND).contains(&self.kind.len()) && self.kind.chars().all(is_word)
    }

    /// Reads what `Display` wrote, and nothing else.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let kind = words.next()?;
        let salt = Id::parse(words.next()?.strip_prefix("salt:")?)?;
        let mut keys = Vec::with_capacity(2);
        for word in words.take(3) {
            let (role, id) = word.split_once(':')?;
            keys.push((Role::named(role)?, Id::parse(id)?));
        }
        Self::new(kind, salt, keys)
    }

    /// The type of the values.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The salt.
    pub fn salt(&self) -> Id {
        self.salt
    }

    /// Whose list it is.
    pub fn owner(&self) -> Role {
        self.keys[0].0
    }

    /// Whether both sides' keys are on it.
    pub fn is_double(&self) -> bool {
        self.keys.len() == 2
    }

    /// The key of a role, if it is on it.
    pub fn key_of(&self, role: Role) -> Option<Id> {
        self.keys.iter().find(|(of, _)| *of == role).map(|(_, id)| *id)
    }

    /// With one more key; `None` if that role's is on it.
    pub fn with(&self, role: Role, id: Id) -> Option<Self> {
        Self::new(&self.kind, self.salt, self.keys.iter().copied().chain([(role, id)]))
    }

    /// Without the key of a role; `None` if it is not on it, or is the only one.
    pub fn without(&self, role: Role) -> Option<Self> {
        self.key_of(role)?;
        Self::new(&self.kind, self.salt, self.keys.iter().copied().filter(|(of, _)| *of != role))
    }

    /// In what the two differ, the order of keys aside: a word, and what each has.
    pub fn differs(&self, other: &Self) -> Option<(&'static str, String, String)> {
        let key = |layers: &Self, role| layers.key_of(role).map_or("none".to_owned(), |id| id.to_string());
        let facts = [
            ("types", self.kind.clone(), other.kind.clone()),
            ("salts", self.salt.to_string(), other.salt.to_string()),
            ("publisher's keys", key(self, Role::Publisher), key(other, Role::Publisher)),
            ("advertiser's keys", key(self, Role::Advertiser), key(other, Role::Advertiser)),
        ];
        facts.into_iter().find(|(_, one, other)| one != other)
    }
}

impl fmt::Display for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} salt:{}", self.kind, self.salt)?;
        self.keys.iter().try_for_each(|(role, id)| write!(f, " {role}:{id}"))
    }
}
