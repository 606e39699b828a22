//! PAIR: a publisher's and an advertiser's people, matched by clean rooms that exchange tables.
//!
//! [`People`] are one's own identifiers out of a table; [`List`] is what rooms exchange: a table with a column
//! `identifier` in Base64, a column `keys` that says what was done to them ([`Layers`]), and where the rooms want it
//! `adv_pub_id`, the name of the relationship. See [`tacit_psi::pair`] for the protocol and what it tells whom.
//!
//! ```
//! use std::num::NonZeroUsize;
//! use tacit::job::pair::{Key, List, Matched, People, Role, Salt};
//! # fn main() -> tacit::Result<()> {
//! let (one, prg) = (NonZeroUsize::MIN, &mut tacit::crypto::Prg::from_os());
//! let salt = Salt::generate(20_000, 30, prg).unwrap();
//! let p = Key::generate(Role::Publisher, 20_000, 180, prg).unwrap();
//! let a = Key::generate(Role::Advertiser, 20_000, 180, prg).unwrap();
//! let list = |people: &[&str], key| People::of(people, "text", &salt).list(&[key], None, one, &());
//! let publisher = list(&["ann", "bob"], &p)?.again(&salt, &a, one, &())?;
//! let advertiser = list(&["bob", "cleo"], &a)?.again(&salt, &p, one, &())?;
//! let common = Matched::of(publisher, advertiser)?.common.publishers(&salt, &a, one, &())?;
//! assert_eq!(common, People::of(&["bob"], "text", &salt).encrypted(&[&p], one, &())?);
//! # Ok(())
//! # }
//! ```

use super::{Course, Observer, Phase};
use crate::{Error, Result};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use tacit_crypto::group::Encoding;
use tacit_crypto::text::{counted, shown};
use tacit_crypto::{Prg, base64};
use tacit_data::csv::{Options, Place};
use tacit_data::give::Purpose;
use tacit_data::records::{KeySet, KeySpec, Normalisation};
use tacit_data::table::Source;
use tacit_data::values::{self, Column, Form, Kind, Table, Value};
use tacit_net::keys::{read_secret, write_new};
use tacit_psi::pair::{self, Exponent, Hashed};
use zeroize::Zeroizing;

pub use tacit_psi::pair::keys::{KEY_DAYS, SALT_DAYS};
pub use tacit_psi::pair::{Id, Key, KeyFault, LEAST_LISTED, Layers, Lifetime, Role, Salt, rate};

const ENCRYPTING: &[Phase] = &[("encrypting", "identifiers", 1.0)];

/// The column of a list with its identifiers.
pub const IDENTIFIER_COLUMN: &str = "identifier";
/// The column that says what was done to them.
pub const KEYS_COLUMN: &str = "keys";
/// The column with the name of the relationship, as the text of PAIR calls it.
pub const RELATION_COLUMN: &str = "adv_pub_id";
/// The column of the publisher's identifiers, in what publisher and advertiser get.
pub const PUBLISHER_IDENTIFIER: &str = "publisher_identifier";
/// What goes in front of a column's name that a table has already.
const PAIR_PREFIX: &str = "pair_";
/// Rows of a list whose elements are checked together.
const CHECKED: usize = 1024;
/// Longest name of a relationship, in characters.
const LONGEST_RELATION: usize = 200;

/// A fault of a file of a key or a salt, with its name in front.
fn of_file(path: &Path) -> impl Fn(KeyFault) -> Error {
    move |fault| Error::Input(format!("{}: {fault}", named(path)))
}

fn named(path: &Path) -> String {
    shown(&path.to_string_lossy())
}

/// Reads a key's file, which others than its owner must not be able to read.
pub fn load_key(path: &Path) -> Result<Key> {
    let text = read_secret(path, "key", "make one with tacit pair keygen")?;
    Key::parse(&text).map_err(of_file(path))
}

/// Reads a salt's file, which others than its owner must not be able to read.
pub fn load_salt(path: &Path) -> Result<Salt> {
    let text = read_secret(path, "salt", "the publisher's side makes it with tacit pair keygen")?;
    Salt::parse(&text).map_err(of_file(path))
}

/// Writes a key or a salt to a new file that its owner alone can read.
pub fn save(path: &Path, text: &str) -> Result<()> {
    Ok(write_new(path, 0o600, text.as_bytes())?)
}

/// Errors: the file's key or salt does not serve `today`.
pub fn check_lifetime(path: &Path, lifetime: &Lifetime, today: u64) -> Result<()> {
    lifetime.check(today).map_err(of_file(path))
}

/// What of a key with one column is hashed: the SHA-256 of its type's normal form.
///
/// Errors: several columns or identifiers, types for near matches, and plain text that is not normalised as usual.
pub fn match_keys(spec: KeySpec) -> Result<KeySpec> {
    let fault = |what: &str| Err(Error::Parameter { name: "key", what: what.to_owned() });
    if spec.columns.len() != 1 {
        return fault("PAIR compares one column; make a list for each");
    }
    if spec.normalisation != Normalisation::default() {
        return fault("PAIR has no settings for text; leave no-nfc, no-trim and no-case-fold out");
    }
    super::psi::refuse_variants(&spec, "PAIR compares")?;
    Ok(KeySpec { types: spec.types.iter().map(|kind| kind.hashed()).collect(), ..spec })
}

/// What both sides call the type of a key's column, in one word.
fn kind_of(spec: &KeySpec) -> String {
    let agreed = spec.agreed_types();
    agreed.strip_prefix("sha256 of ").unwrap_or(&agreed).replace(' ', "-")
}

/// One's own people, hashed with the salt.
pub struct People {
    kind: String,
    salt: Id,
    hashed: Zeroizing<Vec<Hashed>>,
}

impl People {
    /// The people of a table, each once, in the order of their elements in `keys`, which were read of `source` with the
    /// key that [`match_keys`] gave.
    pub fn read(source: &Source, keys: &KeySet, spec: &KeySpec, salt: &Salt) -> Result<Self> {
        let count = keys.elements().len();
        let (mut hashed, mut known) = (Zeroizing::new(vec![[0; 32]; count]), vec![false; count]);
        let mut normal = Zeroizing::new(String::new());
        let changed =
            || Error::Input("the table changed while it was read; run the command again".to_owned());
        source.read_given(keys, &spec.columns, Purpose::Shown, |element, _, cells| {
            if std::mem::replace(&mut known[element], true) {
                return Ok(());
            }
            normal.clear();
            let cell = cells.first().copied().flatten().ok_or_else(changed)?;
            spec.types[0].normalise(spec.normalisation, cell, &mut normal).map_err(|_| changed())?;
            hashed[element] = pair::hash(salt, normal.as_bytes());
            Ok::<_, Error>(())
        })?;
        match known.iter().all(|known| *known) {
            true => Ok(People { kind: kind_of(spec), salt: salt.id(), hashed }),
            false => Err(changed()),
        }
    }

    /// The people of these match keys, which are distinct.
    pub fn of<K: AsRef<[u8]>>(match_keys: &[K], kind: &str, salt: &Salt) -> Self {
        let hashed = match_keys.iter().map(|key| pair::hash(salt, key.as_ref())).collect();
        People { kind: kind.to_owned(), salt: salt.id(), hashed: Zeroizing::new(hashed) }
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.hashed.len() as u64
    }

    /// Whether there is nobody.
    pub fn is_empty(&self) -> bool {
        self.hashed.is_empty()
    }

    /// Bytes that encrypting `count` people holds beside their keys; with `rows` also their identifiers as text.
    pub fn memory(count: u64, rows: bool) -> u64 {
        count.saturating_mul(if rows { 240 } else { 65 })
    }

    /// Their encrypted identifiers, in their order; by two keys of different roles at once where one room has both.
    pub fn encrypted(
        &self,
        keys: &[&Key],
        threads: NonZeroUsize,
        observer: &dyn Observer,
    ) -> Result<Vec<Encoding>> {
        let exponent = match keys {
            [key] => Exponent::of(key),
            [one, other] => Exponent::of_both(one, other),
            _ => return Err(Error::Usage("one key encrypts, or two at once".to_owned())),
        };
        let (course, total) = (Course::begin(ENCRYPTING, &mut [], 0, observer), self.len());
        Ok(exponent.encrypt(&self.hashed, threads, &mut |done| course.at(0, done, total)))
    }

    /// The list of them, in a random order.
    pub fn list(
        &self,
        keys: &[&Key],
        relation: Option<String>,
        threads: NonZeroUsize,
        observer: &dyn Observer,
    ) -> Result<List> {
        let layers = Layers::new(&self.kind, self.salt, keys.iter().map(|key| (key.role(), key.id())));
        let layers = layers
            .ok_or_else(|| Error::Usage("two keys must be different, and of different roles".to_owned()))?;
        let identifiers = self.encrypted(keys, threads, observer)?;
        Ok(List { name: "own list".to_owned(), layers, relation, identifiers, duplicates: 0 }.shuffled())
    }
}

/// Errors: fewer identifiers than `least`, in what is called `name`.
pub fn check_length(name: &str, count: u64, least: u64) -> Result<()> {
    if count >= least {
        return Ok(());
    }
    let what = format!(
        "{name} has {}, and at least {least} are expected: the result of a short list tells who is in it",
        counted(count, "distinct identifier")
    );
    Err(Error::Parameter { name: "min-list", what })
}

/// Encrypted identifiers, as rooms exchange them.
#[derive(Clone, Debug)]
pub struct List {
    /// What errors call it.
    name: String,
    /// What was done to the identifiers.
    pub layers: Layers,
    /// The name of the relationship, if it has one.
    pub relation: Option<String>,
    /// Each once.
    pub identifiers: Vec<Encoding>,
    /// How many more were read, which were there already.
    pub duplicates: u64,
}

impl List {
    /// Reads a list out of one table or several.
    ///
    /// Errors, with the line: an identifier that is no element of the group in canonical Base64, and a row with other
    /// keys or another relationship than the first one's.
    pub fn read(paths: &[PathBuf], options: Options) -> Result<Self> {
        let table = Table::open_all(paths, options)?;
        let name = paths.first().map_or_else(String::new, |path| named(path));
        let is_related = table.names().contains(&RELATION_COLUMN);
        let names = [IDENTIFIER_COLUMN, KEYS_COLUMN].into_iter().chain(is_related.then_some(RELATION_COLUMN));
        let columns: Vec<Column> =
            names.map(|name| Column { name: name.to_owned(), form: Form::Plain }).collect();
        let wanted = table.find(&columns)?;
        let mut reading = Reading::default();
        table.read(&wanted, |place, cells| reading.row(&table, place, cells))?;
        reading.check(&table)?;
        let Reading { first, mut identifiers, .. } = reading;
        let Some((_, layers, relation)) = first else {
            return Err(Error::Input(format!(
                "{name}: the list has no rows; nobody is common, or its export was truncated"
            )));
        };
        let duplicates = pair::remove_duplicates(&mut identifiers);
        Ok(List {
            name,
            layers,
            relation: Some(relation).filter(|it| !it.is_empty()),
            identifiers,
            duplicates,
        })
    }

    /// What errors call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many identifiers it has.
    pub fn len(&self) -> u64 {
        self.identifiers.len() as u64
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.identifiers.is_empty()
    }

    fn shuffled(mut self) -> Self {
        pair::shuffle(&mut self.identifiers, &mut Prg::from_os());
        self
    }

    fn fault(&self, what: &str) -> Error {
        Error::Input(format!("{}: {what}", self.name))
    }

    fn check_salt(&self, salt: &Salt) -> Result<()> {
        let (found, ours) = (self.layers.salt(), salt.id());
        match found == ours {
            true => Ok(()),
            false => Err(self
                .fault(&format!("hashed with salt {found}, and yours is {ours}; both sides use one salt"))),
        }
    }

    /// The other side's list, encrypted by this side's key too, in a random order.
    ///
    /// Errors: another salt, a list of this side's, and one that has both keys.
    pub fn again(
        mut self,
        salt: &Salt,
        key: &Key,
        threads: NonZeroUsize,
        observer: &dyn Observer,
    ) -> Result<Self> {
        self.check_salt(salt)?;
        let role = key.role();
        let layers = match self.layers.with(role, key.id()) {
            Some(layers) => layers,
            None if self.layers.is_double() => {
                return Err(self.fault("encrypted by both sides already; compare it with the other list"));
            }
            None => {
                let what = format!("a list of the {role}'s, and so is the key; give the other side's list");
                return Err(self.fault(&what));
            }
        };
        self.identifiers = self.multiplied(&Exponent::of(key), threads, observer)?;
        Ok(List { layers, ..self }.shuffled())
    }

    /// The publisher's identifiers of a list that both sides have encrypted, without the advertiser's `key`, in a
    /// random order.
    ///
    /// Errors: another salt or key, or a list that not both have encrypted.
    pub fn publishers(
        mut self,
        salt: &Salt,
        key: &Key,
        threads: NonZeroUsize,
        observer: &dyn Observer,
    ) -> Result<Vec<Encoding>> {
        self.check_salt(salt)?;
        if key.role() != Role::Advertiser {
            return Err(self.fault("the advertiser's key is taken away; give that key"));
        }
        if !self.layers.is_double() {
            return Err(
                self.fault("not encrypted by both sides; give the common list that tacit pair match wrote")
            );
        }
        if self.layers.owner() != Role::Publisher {
            let what = "a list of the advertiser's people; give the common list that tacit pair match wrote";
            return Err(self.fault(what));
        }
        let (found, ours) = (self.layers.key_of(Role::Advertiser), key.id());
        if found != Some(ours) {
            let found = found.map_or_else(String::new, |id| id.to_string());
            return Err(
                self.fault(&format!("encrypted with key {found}, and yours is {ours}; give that key"))
            );
        }
        self.identifiers = self.multiplied(&Exponent::without(key), threads, observer)?;
        Ok(self.shuffled().identifiers)
    }

    fn multiplied(
        &self,
        exponent: &Exponent,
        threads: NonZeroUsize,
        observer: &dyn Observer,
    ) -> Result<Vec<Encoding>> {
        let (course, total) = (Course::begin(ENCRYPTING, &mut [], 0, observer), self.len());
        let made = exponent.multiply(&self.identifiers, threads, &mut |done| course.at(0, done, total));
        made.map_err(|_| self.fault(NO_IDENTIFIER))
    }

    /// Writes the table to `output`, which is called `target`, in the format that its name says or else as CSV.
    pub fn write(&self, target: &Path, output: &mut (impl Write + Send)) -> Result<()> {
        let (keys, relation) = (self.layers.to_string(), self.relation.as_deref());
        let names = [IDENTIFIER_COLUMN, KEYS_COLUMN].into_iter().chain(relation.map(|_| RELATION_COLUMN));
        let columns: Vec<(String, Kind)> = names.map(|name| (name.to_owned(), Kind::Text)).collect();
        let row = |at: u64| {
            let identifier = text(&self.identifiers[at as usize]);
            let more = std::iter::once(&*keys).chain(relation).map(str::to_owned);
            std::iter::once(identifier).chain(more).map(Value::Text).collect()
        };
        Ok(values::write_alone(&columns, self.len(), row, target, output)?)
    }
}

const NO_IDENTIFIER: &str = "not an encrypted identifier of PAIR: 32 bytes of a ristretto255 element in Base64 are \
                          expected; ask for the list again";

/// The rows of a list, so far.
#[derive(Default)]
struct Reading {
    /// The keys of the first row as they are written, what they say, and its relationship.
    first: Option<(String, Layers, String)>,
    identifiers: Vec<Encoding>,
    /// Where those behind the last check stand.
    places: Vec<Place>,
}

impl Reading {
    fn row(&mut self, table: &Table, place: Place, cells: &[&str]) -> Result<()> {
        let fault = |what: &str| Err(fault_at(table, place, what));
        let [identifier, keys, ..] = *cells else { return fault("a row has too few columns") };
        let relation = cells.get(2).copied().unwrap_or_default();
        match &self.first {
            Some((first, ..)) if first != keys => {
                return fault("made with other keys than the first row; keep lists of different keys apart");
            }
            Some((_, _, first)) if first != relation => {
                return fault("of another adv_pub_id than the first row; keep relationships apart");
            }
            Some(_) => {}
            None => {
                let Some(layers) = Layers::parse(keys) else {
                    return fault("its column keys does not say how it was made; use tacit pair encrypt");
                };
                check_relation(relation).or_else(|what| fault(&what))?;
                self.first = Some((keys.to_owned(), layers, relation.to_owned()));
            }
        }
        let Some(identifier) = base64::decode(identifier) else { return fault(NO_IDENTIFIER) };
        self.identifiers.push(*identifier);
        self.places.push(place);
        if self.places.len() < CHECKED { Ok(()) } else { self.check(table) }
    }

    /// Checks the elements that were not.
    fn check(&mut self, table: &Table) -> Result<()> {
        let behind = &self.identifiers[self.identifiers.len() - self.places.len()..];
        pair::check(behind).map_err(|error| fault_at(table, self.places[error.0], NO_IDENTIFIER))?;
        self.places.clear();
        Ok(())
    }
}

fn fault_at(table: &Table, place: Place, what: &str) -> Error {
    let (path, place) = table.located(place);
    Error::Input(format!("{}, {place}: {what}", named(&path)))
}

/// Errors: a relationship's name that is too long, or not one line.
pub fn check_relation(relation: &str) -> std::result::Result<(), String> {
    let is_one_line = !relation.chars().any(char::is_control);
    match is_one_line && relation.chars().count() <= LONGEST_RELATION {
        true => Ok(()),
        false => {
            Err(format!("the name of a relationship is one line of {LONGEST_RELATION} characters at most"))
        }
    }
}

/// An identifier as lists and bid requests have it.
pub fn text(identifier: &Encoding) -> String {
    base64::encode(identifier).to_string()
}

/// Writes all rows with an identifier of the publisher's table, with it in a column behind the others, to `output`,
/// which is called `target`. `identifiers` are in the order of the elements of `keys`. Returns the number of rows.
pub fn write_publisher(
    source: &Source,
    keys: &KeySet,
    identifiers: &[Encoding],
    target: &Path,
    output: &mut (impl Write + Send),
) -> Result<u64> {
    let rows: Vec<[Vec<Option<String>>; 1]> =
        identifiers.iter().map(|identifier| [vec![Some(text(identifier))]]).collect();
    let of = |element: usize| rows.get(element).map_or(&[][..], |row| &row[..]);
    let names = [PUBLISHER_IDENTIFIER.to_owned()];
    Ok(source.write_joined(keys, &names, PAIR_PREFIX, of, target, output)?.rows)
}

/// Writes the publisher's identifiers of matched people, which is what the advertiser's buying platform gets.
pub fn write_target(identifiers: &[Encoding], target: &Path, output: &mut (impl Write + Send)) -> Result<()> {
    let columns = [(PUBLISHER_IDENTIFIER.to_owned(), Kind::Text)];
    let row = |at: u64| vec![Value::Text(text(&identifiers[at as usize]))];
    Ok(values::write_alone(&columns, identifiers.len() as u64, row, target, output)?)
}

/// What a room finds in the two lists.
#[derive(Clone, Debug)]
pub struct Matched {
    /// The common identifiers, in a random order.
    pub common: List,
    /// How many the publisher's list has.
    pub publisher: u64,
    /// How many the advertiser's list has.
    pub advertiser: u64,
}

impl Matched {
    /// Compares the publisher's and the advertiser's list, both encrypted by both sides.
    ///
    /// Errors: lists of another side, not encrypted by both, or made with different keys, salts, types or for
    /// different relationships.
    pub fn of(mut publisher: List, mut advertiser: List) -> Result<Self> {
        for (list, role) in [(&publisher, Role::Publisher), (&advertiser, Role::Advertiser)] {
            if list.layers.owner() != role {
                return Err(list.fault(&format!(
                    "a list of the {}'s, and the {role}'s is expected",
                    list.layers.owner()
                )));
            }
            if !list.layers.is_double() {
                return Err(list.fault("encrypted by one side; the other side has to encrypt it too"));
            }
        }
        let differ = |what: &str, one: &str, other: &str| {
            let (one_list, other_list) = (publisher.name(), advertiser.name());
            Error::Input(format!(
                "{what} differ: {one_list} has {one}, {other_list} has {other}; make both with the same"
            ))
        };
        if let Some((what, one, other)) = publisher.layers.differs(&advertiser.layers) {
            return Err(differ(what, &one, &other));
        }
        if let (Some(one), Some(other)) = (&publisher.relation, &advertiser.relation)
            && one != other
        {
            return Err(differ("relationships", &shown(one), &shown(other)));
        }
        publisher.duplicates += pair::remove_duplicates(&mut publisher.identifiers);
        advertiser.duplicates += pair::remove_duplicates(&mut advertiser.identifiers);
        let counts = (publisher.len(), advertiser.len());
        let identifiers = pair::common(&publisher.identifiers, &advertiser.identifiers);
        let relation = publisher.relation.or(advertiser.relation);
        let name = "common list".to_owned();
        let common = List { name, layers: publisher.layers, relation, identifiers, duplicates: 0 }.shuffled();
        Ok(Matched { common, publisher: counts.0, advertiser: counts.1 })
    }
}
