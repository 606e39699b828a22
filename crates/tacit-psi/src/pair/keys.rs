//! The secrets of PAIR: a side's key, and the salt that both sides have, each with its lifetime and its text form.
//!
//! Both are files of one secret: a line with what it is, then `NAME VALUE` lines in this order: `role` (of a key
//! alone), `id`, `made`, `expires`, and `scalar` or `salt` in Base64. The id is computed from the secret, so that a
//! list can name what it was made with and a damaged secret is found; role and dates are what the file says.

use super::Result;
use sha2::{Digest, Sha256};
use std::fmt;
use tacit_crypto::group::{Points, Scalars};
use tacit_crypto::text::counted;
use tacit_crypto::{Prg, base64, hex};
use tacit_net::calendar::{date, day_of};
use thiserror::Error as Fault;
use zeroize::Zeroizing;

/// Days that a key serves at most, of either side.
pub const KEY_DAYS: u64 = 180;
/// Days that a salt serves at most.
pub const SALT_DAYS: u64 = 30;
/// Bytes of a salt.
pub const SALT_BYTES: usize = 32;

/// What a key's file begins with.
pub const KEY_LABEL: &str = "tacit-pair-key";
/// What a salt's file begins with.
pub const SALT_LABEL: &str = "tacit-pair-salt";
const PAIR_VERSION: &str = "1";

/// Whose identifiers a list has, or whose key it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// Who sends identifiers in bid requests.
    Publisher,
    /// Who looks for its customers among the publisher's.
    Advertiser,
}

impl Role {
    /// In one word, as files and errors have it.
    pub fn name(self) -> &'static str {
        match self {
            Role::Publisher => "publisher",
            Role::Advertiser => "advertiser",
        }
    }

    /// The role of this name.
    pub fn named(name: &str) -> Option<Self> {
        [Role::Publisher, Role::Advertiser].into_iter().find(|role| role.name() == name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What names a secret and tells nothing of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub [u8; 8]);

impl Id {
    fn of(label: &str, public: &[u8]) -> Self {
        let digest = Sha256::new().chain_update(label).chain_update([0]).chain_update(public).finalize();
        let mut id = [0; 8];
        id.copy_from_slice(&digest[..8]);
        Id(id)
    }

    /// Reads 16 hexadecimal digits in lower case.
    pub fn parse(text: &str) -> Option<Self> {
        let mut id = [0; 8];
        if text.len() != 16 {
            return None;
        }
        for (byte, pair) in id.iter_mut().zip(text.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        (hex(&id) == text).then_some(Id(id))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// What can be wrong with a key or a salt. Never shows a secret.
#[derive(Clone, PartialEq, Eq, Debug, Fault)]
#[non_exhaustive]
pub enum KeyFault {
    /// The text is something else.
    #[error("not a {0} of PAIR; make one with tacit pair keygen")]
    Other(&'static str),
    /// The text is the other kind of secret.
    #[error("this is a {found}, and a {expected} is expected; give the other file")]
    Swapped {
        /// What it is.
        found: &'static str,
        /// What was asked for.
        expected: &'static str,
    },
    /// Another release wrote it.
    #[error("this {0} is of another version; use the release that made it, or make a new one")]
    Version(&'static str),
    /// A line is missing, wrong or too much, or the id is not the secret's.
    #[error("this {what} is damaged in its line {line}; restore it or make a new one")]
    Damaged {
        /// A key or a salt.
        what: &'static str,
        /// The line, from 1.
        line: usize,
    },
    /// Its time is over.
    #[error("this {what} expired on {on}; make a new one, and all lists with it")]
    Expired {
        /// A key or a salt.
        what: &'static str,
        /// The day.
        on: String,
    },
    /// Its time has not begun.
    #[error("this {what} was made on {on}, which is yet to come; check this machine's clock")]
    Early {
        /// A key or a salt.
        what: &'static str,
        /// The day.
        on: String,
    },
    /// A lifetime that PAIR does not allow.
    #[error("a {what} of PAIR serves from 1 day to {}", counted(most, "day"))]
    Days {
        /// A key or a salt.
        what: &'static str,
        /// The most days.
        most: u64,
    },
}

const KEY: &str = "key";
const SALT: &str = "salt";

/// When a secret serves: from its first day to the day before it expires, UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lifetime {
    what: &'static str,
    made: u64,
    expires: u64,
}

impl Lifetime {
    fn new(what: &'static str, made: u64, days: u64) -> Result<Self, KeyFault> {
        let most = if what == KEY { KEY_DAYS } else { SALT_DAYS };
        match (1..=most).contains(&days) {
            true => Ok(Lifetime { what, made, expires: made + days }),
            false => Err(KeyFault::Days { what, most }),
        }
    }

    /// The first day, as `2026-11-28`.
    pub fn made(&self) -> String {
        date(self.made)
    }

    /// The first day on which it does not serve any more.
    pub fn expires(&self) -> String {
        date(self.expires)
    }

    /// Whether it ended before `today`, counted from the start of 1970.
    pub fn is_over(&self, today: u64) -> bool {
        today >= self.expires
    }

    /// Errors: `today`, counted from the start of 1970, is not in it.
    pub fn check(&self, today: u64) -> Result<(), KeyFault> {
        if today < self.made {
            return Err(KeyFault::Early { what: self.what, on: self.made() });
        }
        if today >= self.expires {
            return Err(KeyFault::Expired { what: self.what, on: self.expires() });
        }
        Ok(())
    }
}

/// A side's secret scalar.
pub struct Key {
    role: Role,
    id: Id,
    lifetime: Lifetime,
    secret: Scalars,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} {}, [secret])", self.role, self.id)
    }
}

impl Key {
    /// A fresh key that serves so many `days`, [`KEY_DAYS`] at most, from the day `made` on.
    pub fn generate(role: Role, made: u64, days: u64, prg: &mut Prg) -> Result<Self, KeyFault> {
        let lifetime = Lifetime::new(KEY, made, days)?;
        loop {
            // Repeated with probability 2^-252.
            let secret = Scalars::random(1, prg);
            if !secret.any_zero() {
                return Ok(Self::with(role, lifetime, secret));
            }
        }
    }

    fn with(role: Role, lifetime: Lifetime, secret: Scalars) -> Self {
        let public = Points::mul_base(&secret).encode();
        Key { role, id: Id::of(KEY_LABEL, &public[0]), lifetime, secret }
    }

    /// Whose it is.
    pub fn role(&self) -> Role {
        self.role
    }

    /// What lists call it.
    pub fn id(&self) -> Id {
        self.id
    }

    /// When it serves.
    pub fn lifetime(&self) -> &Lifetime {
        &self.lifetime
    }

    pub(super) fn secret(&self) -> &Scalars {
        &self.secret
    }

    /// The file's text.
    pub fn to_text(&self) -> Zeroizing<String> {
        let lines = [("role", self.role.name())];
        text(KEY_LABEL, &lines, (self.id, &self.lifetime), ("scalar", &self.secret.to_bytes()[0]))
    }

    /// Reads a file's text. Errors: it is no key, or a damaged one.
    pub fn parse(text: &str) -> Result<Self, KeyFault> {
        let mut lines = Lines::begin(text, KEY, KEY_LABEL)?;
        let role = Role::named(lines.value("role")?).ok_or(lines.damaged())?;
        let (id, lifetime) = lines.id_and_lifetime()?;
        let secret = base64::decode(lines.value("scalar")?).ok_or(lines.damaged())?;
        let secret = Scalars::from_canonical(&[*secret]).filter(|secret| !secret.any_zero());
        let key = Self::with(role, lifetime, secret.ok_or(lines.damaged())?);
        lines.end(id == key.id).map(|()| key)
    }
}

/// The salt of the hash, which both sides have and nobody else.
pub struct Salt {
    id: Id,
    lifetime: Lifetime,
    bytes: Zeroizing<[u8; SALT_BYTES]>,
}

impl fmt::Debug for Salt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Salt({}, [secret])", self.id)
    }
}

impl Salt {
    /// A fresh salt that serves so many `days`, [`SALT_DAYS`] at most, from the day `made` on.
    pub fn generate(made: u64, days: u64, prg: &mut Prg) -> Result<Self, KeyFault> {
        let lifetime = Lifetime::new(SALT, made, days)?;
        let mut bytes = Zeroizing::new([0; SALT_BYTES]);
        prg.fill_bytes(bytes.as_mut());
        Ok(Self::with(lifetime, bytes))
    }

    fn with(lifetime: Lifetime, bytes: Zeroizing<[u8; SALT_BYTES]>) -> Self {
        Salt { id: Id::of(SALT_LABEL, bytes.as_ref()), lifetime, bytes }
    }

    /// What lists call it.
    pub fn id(&self) -> Id {
        self.id
    }

    /// When it serves.
    pub fn lifetime(&self) -> &Lifetime {
        &self.lifetime
    }

    pub(super) fn bytes(&self) -> &[u8; SALT_BYTES] {
        &self.bytes
    }

    /// The file's text.
    pub fn to_text(&self) -> Zeroizing<String> {
        text(SALT_LABEL, &[], (self.id, &self.lifetime), ("salt", &self.bytes))
    }

    /// Reads a file's text. Errors: it is no salt, or a damaged one.
    pub fn parse(text: &str) -> Result<Self, KeyFault> {
        let mut lines = Lines::begin(text, SALT, SALT_LABEL)?;
        let (id, lifetime) = lines.id_and_lifetime()?;
        let bytes = base64::decode(lines.value("salt")?).ok_or(lines.damaged())?;
        let salt = Self::with(lifetime, bytes);
        lines.end(id == salt.id).map(|()| salt)
    }
}

fn text(
    label: &str,
    lines: &[(&str, &str)],
    (id, lifetime): (Id, &Lifetime),
    (name, secret): (&str, &[u8; 32]),
) -> Zeroizing<String> {
    let (id, made, expires) = (id.to_string(), lifetime.made(), lifetime.expires());
    let encoded = base64::encode(secret);
    // So long that it does not grow, which would leave a part of the secret behind.
    let mut out = Zeroizing::new(String::with_capacity(512));
    let dated = [("id", &*id), ("made", &made), ("expires", &expires), (name, encoded.as_str())];
    for (name, value) in [(label, PAIR_VERSION)].iter().chain(lines).chain(&dated) {
        out.push_str(name);
        out.push(' ');
        out.push_str(value);
        out.push('\n');
    }
    out
}

/// The lines of a file, read one by one.
struct Lines<'a> {
    what: &'static str,
    lines: std::str::Lines<'a>,
    line: usize,
}

impl<'a> Lines<'a> {
    fn begin(text: &'a str, what: &'static str, label: &str) -> Result<Self, KeyFault> {
        let mut lines = Lines { what, lines: text.lines(), line: 0 };
        let head = lines.next().unwrap_or_default();
        let (found, version) = head.split_once(' ').unwrap_or((head, ""));
        let kinds = [(KEY_LABEL, KEY), (SALT_LABEL, SALT)];
        match kinds.into_iter().find(|(label, _)| *label == found) {
            Some((found, _)) if found == label && version == PAIR_VERSION => Ok(lines),
            Some((found, _)) if found == label => Err(KeyFault::Version(what)),
            Some((_, found)) => Err(KeyFault::Swapped { found, expected: what }),
            None => Err(KeyFault::Other(what)),
        }
    }

    fn next(&mut self) -> Option<&'a str> {
        self.line += 1;
        self.lines.next()
    }

    fn damaged(&self) -> KeyFault {
        KeyFault::Damaged { what: self.what, line: self.line }
    }

    fn value(&mut self, name: &str) -> Result<&'a str, KeyFault> {
        let value = self.next().and_then(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.ok_or(self.damaged())
    }

    fn id_and_lifetime(&mut self) -> Result<(Id, Lifetime), KeyFault> {
        let id = Id::parse(self.value("id")?).ok_or(self.damaged())?;
        let made = day_of(self.value("made")?).ok_or(self.damaged())?;
        let expires = day_of(self.value("expires")?).ok_or(self.damaged())?;
        let days = expires.checked_sub(made).ok_or(self.damaged())?;
        Ok((id, Lifetime::new(self.what, made, days)?))
    }

    fn end(mut self, is_its_id: bool) -> Result<(), KeyFault> {
        match self.next() {
            None if is_its_id => Ok(()),
            // The id, where a name was changed or a digit of the secret.
            None => Err(KeyFault::Damaged { what: self.what, line: self.line - 1 }),
            Some(_) => Err(self.damaged()),
        }
    }
}
