//! A large set published once as a file of tags, and small sets intersected with it.
//!
//! [`Publishing`] makes the file of tags, to pass on, and the private file, which answers queries on it; with
//! the terms of [`terms_after`] it publishes anew, under a new key. [`Answering`] and [`Querying`] are the
//! two sides of an intersection; see [`Session::answer_tags`](crate::Session::answer_tags) and
//! [`Session::query_tags`](crate::Session::query_tags).
//!
//! ```
//! use std::{io::Cursor, num::NonZeroUsize};
//! use tacit::job::tags::{Publishing, TagFile, Terms, FileKey};
//! let terms = Terms { lifetime: 100, per_client: 10, key: "email".into() };
//! let (mut out, mut private) = (Cursor::new(Vec::new()), Cursor::new(Vec::new()));
//! let job = Publishing { terms, threads: NonZeroUsize::MIN };
//! let made = job.run(&["ann", "bob"], &mut out, &mut private, &FileKey::from_bytes(&[7; 32])?, &())?;
//! assert_eq!((made.publication.count, TagFile::open(out)?.digest()), (2, &made.digest));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::{About, Course, Observer, Phase, agreed, first};
use crate::catalogue::{Candidate, Link, Machine, OPRF, VOLE};
use crate::{Error, Result, Security};
use std::io::{Read, Seek, Write};
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tacit_crypto::text::counted;
use tacit_crypto::{Prg, hex};
use tacit_data::records::KeySpec;
use tacit_net::{Agreement, Channel, Difference, LinkModel};
use tacit_psi::oprf::private::{self, Client};
use tacit_psi::oprf::{self, tags};
use thiserror::Error as Fault;
use zeroize::Zeroizing;

pub use tacit_psi::oprf::private::{Private, client};
pub use tacit_psi::oprf::tags::{Publication, TagFile, Terms};
pub use tacit_store::sealed::FileKey;

const PUBLISHING: &[Phase] = &[("publishing", "keys", 1.0)];
const ANSWERING: &[Phase] = &[("answering", "queries", 1.0)];
const QUERYING: &[Phase] = &[("querying", "keys", 1.0)];

/// Bytes that publishing holds of each key.
const BYTES_KEY: u64 = 16;

/// A publication to be made.
#[derive(Clone, Debug)]
pub struct Publishing {
    /// How many queries its key answers, and what makes a key.
    pub terms: Terms,
    /// Computing threads.
    pub threads: NonZeroUsize,
}

/// What publishing made.
#[derive(Clone, Debug)]
pub struct Made {
    /// What the file says about itself.
    pub publication: Publication,
    /// What clients and server agree on; clients of one publication should compare it.
    pub digest: [u8; 32],
}

/// The terms of a publication that takes the place of `old`: `lifetime` and `per_client` as before where they
/// are not given, the queries of a client never more than all.
pub fn terms_after(old: &Private, lifetime: Option<u64>, per_client: Option<u64>, key: String) -> Terms {
    let terms = &old.publication().terms;
    let lifetime = lifetime.unwrap_or(terms.lifetime);
    Terms { lifetime, per_client: per_client.unwrap_or(terms.per_client.min(lifetime)), key }
}

impl Publishing {
    /// Bytes held for `keys` keys, beside the keys themselves.
    pub fn memory(&self, keys: u64) -> u64 {
        BYTES_KEY.saturating_mul(keys)
    }

    /// Draws a key, and writes the file of tags of `elements`, which are distinct, to `out` and the private
    /// file, sealed with `seal`, to `private`: both empty. The caller forces both to the disk before either
    /// takes its place.
    ///
    /// Errors: too many elements, terms out of range, a file that cannot be written.
    pub fn run<E: AsRef<[u8]> + Sync>(
        &self,
        elements: &[E],
        out: &mut (impl Write + Seek),
        private: &mut (impl Write + Seek),
        seal: &FileKey,
        observer: &dyn Observer,
    ) -> Result<Made> {
        let (total, mut prg) = (elements.len() as u64, Prg::from_os());
        let course = Course::begin(PUBLISHING, &mut [], 0, observer);
        course.at(0, 0, total);
        let told = &mut |done| course.at(0, done, total);
        let published = tags::publish(out, elements, self.terms.clone(), self.threads, &mut prg, told)?;
        private::create(private, &published, seal, &mut prg)?;
        Ok(Made { publication: published.publication, digest: published.digest })
    }
}

/// The setting that names the publication.
pub(crate) const PUBLICATION: &str = "publication";

/// What both sides must agree on: the publication, and with it everything that stands in its file.
fn agreement(role: &str, peer: &str, digest: &[u8; 32]) -> Agreement {
    Agreement::new("tags", role, peer).with("protocol", oprf::NAME).with(PUBLICATION, hex(digest))
}

/// What a client learns of a publication of `count` keys, in words.
pub fn learned(count: u64) -> String {
    published(About::Local, count)
}

/// As [`learned`], where the publisher is called `name`: for what is stored or sent.
pub fn learned_about(name: &str, count: u64) -> String {
    published(About::Party(name), count)
}

fn published(about: About<'_>, count: u64) -> String {
    let have = about.does("have", "has");
    format!(
        "that {have} {count}, and which of its own keys are among them; nothing else",
        count = counted(count, "distinct key")
    )
}

/// What a publisher learns of a client that asks for `asked` keys, in words.
pub fn learned_of(asked: u64) -> String {
    queried(About::Local, asked)
}

/// As [`learned_of`], where the client is called `name`: for what is stored or sent.
pub fn learned_of_client(name: &str, asked: u64) -> String {
    queried(About::Party(name), asked)
}

fn queried(about: About<'_>, asked: u64) -> String {
    format!("that {} {asked}; nothing else", about.does("made", "made"), asked = counted(asked, "query"))
}

/// Our side answers the queries of one client.
pub struct Answering<'a> {
    /// The open private file, which several runs may answer from at once.
    pub private: &'a Mutex<Private>,
    /// Who asks, as [`client`] has it of the peer's authenticated name.
    pub client: Client,
    /// The most queries of this run, whatever the publication leaves the client.
    pub most: u64,
}

impl Answering<'_> {
    /// What both parties must agree on before they start.
    pub fn agreement(&self) -> Agreement {
        agreement("serve", "query", self.private().digest())
    }

    /// What the client learns, in words.
    pub fn learns(&self) -> String {
        learned(self.private().publication().count)
    }

    /// How many more queries the client has of its own, whatever the key's lifetime has left for all.
    pub fn left(&self) -> u64 {
        self.private().left(&self.client)
    }

    /// Whether the key's lifetime has so many queries left.
    pub fn lasts(&self, queries: u64) -> bool {
        self.private().lasts(queries)
    }

    fn private(&self) -> MutexGuard<'_, Private> {
        // What a thread that panicked left is whole: counts change on the disk first.
        self.private.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers over `channels`, of which it takes the first; returns how many queries there were. They are
    /// counted on the disk before any is answered.
    pub fn run(&self, channels: &mut [Channel], observer: &dyn Observer) -> Result<u64> {
        let course = Course::begin(ANSWERING, channels, 0, observer);
        let left = self.left().min(self.most);
        let told = &mut |done| course.at(0, done, left);
        let channel = first(channels)?;
        Ok(oprf::serve(channel, &mut Prg::from_os(), self.private, &self.client, self.most, told)?)
    }
}

/// Our side asks which of its keys are published.
#[derive(Clone, Copy, Debug)]
pub struct Querying<'a> {
    /// What the file of tags says about itself.
    pub publication: &'a Publication,
    /// Its digest.
    pub digest: &'a [u8; 32],
}

/// Why a publication cannot be asked for a table's keys.
#[derive(Clone, PartialEq, Eq, Debug, Fault)]
pub enum Refusal {
    /// Keys are made in another way.
    #[error("keys differ: {}; {}", listed(differences), remedy(with_types.as_deref()))]
    Keys {
        /// In which settings.
        differences: Vec<Difference>,
        /// Our columns with the publication's types, where types are all that differs.
        with_types: Option<String>,
    },
    /// More keys than a client has queries.
    #[error(
        "{}, and a client of this publication has {}; use fewer rows",
        counted(asked, "distinct key"),
        counted(left, "query")
    )]
    TooMany {
        /// Our keys.
        asked: u64,
        /// The queries of a client.
        left: u64,
    },
}

fn listed(differences: &[Difference]) -> String {
    differences.iter().map(|one| one.against("the file's")).collect::<Vec<_>>().join(", ")
}

fn remedy(with_types: Option<&str>) -> String {
    match with_types {
        Some(key) => format!("write {key}"),
        None => "use the same as the tag file".to_owned(),
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Keys { .. } => Error::Parameter { name: "key", what: format!("{refusal}") },
            Refusal::TooMany { .. } => Error::Input(refusal.to_string()),
        }
    }
}

impl Querying<'_> {
    /// Whether `asked` keys, made as `key` says, can be asked for.
    pub fn check(&self, key: &KeySpec, asked: u64) -> std::result::Result<(), Refusal> {
        let terms = &self.publication.terms;
        let ours = key.agreement();
        if ours != terms.key {
            let differences = agreed::differences(&ours, &terms.key);
            let types = match &differences[..] {
                [one] if one.setting == agreed::KEY_TYPES => one.theirs.as_deref(),
                _ => None,
            };
            let with_types = types.and_then(|types| agreed::with_types(key, types));
            return Err(Refusal::Keys { differences, with_types });
        }
        if asked > terms.per_client {
            return Err(Refusal::TooMany { asked, left: terms.per_client });
        }
        Ok(())
    }

    /// What both parties must agree on before they start.
    pub fn agreement(&self) -> Agreement {
        agreement("query", "serve", self.digest)
    }

    /// What `asked` queries would cost over `link`, and behind it an intersection of both whole sets that
    /// needs no publication, as large as the larger; a publication may hold more than such a run takes.
    pub fn estimate(&self, asked: u64, link: &Link, machine: &Machine) -> Result<Vec<Candidate>> {
        let mut candidates = vec![OPRF.intersection_cost(asked, OPRF.security, link, machine)?];
        let all = asked.max(self.publication.count);
        candidates.extend(VOLE.intersection_cost(all, Security::Malicious, link, machine));
        Ok(candidates)
    }

    /// What the publisher learns of `asked` queries, in words.
    pub fn learns(&self, asked: u64) -> String {
        learned_of(asked)
    }

    /// Asks for the `elements`, which are distinct, over `channels`, of which it takes the first. All of the
    /// `file` of tags of this publication is read first, unless it was before ([`TagFile::checked`]).
    ///
    /// Nothing is returned before every proof has passed, and nothing is looked up: see [`Answers::opened`].
    pub fn run<E: AsRef<[u8]>>(
        &self,
        channels: &mut [Channel],
        file: &mut TagFile<impl Read + Seek>,
        elements: &[E],
        observer: &dyn Observer,
    ) -> Result<Answers> {
        file.checked()?;
        let asked = elements.len() as u64;
        let bytes = self.estimate(asked, &LinkModel::LOOPBACK.into(), &Machine::REFERENCE)?[0].bytes;
        let course = Course::begin(QUERYING, channels, bytes, observer);
        let told = &mut |done| course.at(0, done, asked);
        let (channel, mut prg) = (first(channels)?, Prg::from_os());
        Ok(Answers(oprf::query(channel, &mut prg, self.publication, self.digest, elements, told)?))
    }
}

/// What the publisher answered: the tags of our elements, not looked up yet.
pub struct Answers(Zeroizing<Vec<u128>>);

impl Answers {
    /// The places of those elements that are in the `file` of tags.
    ///
    /// How long this takes depends on what was asked and on what the publisher put into the file, so the session
    /// must have ended: the publisher would see when it does.
    pub fn opened(&self, file: &mut TagFile<impl Read + Seek>) -> Result<Vec<u32>> {
        // proof: tags 2.7
        Ok(oprf::matches(&file.contains(&self.0)?))
    }

    /// The tags, in the order of the elements.
    pub fn tags(&self) -> &[u128] {
        &self.0
    }
}

impl std::fmt::Debug for Answers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Answers({} tags, [secret])", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Step;
    use std::io::Cursor;
    use tacit_data::keys::Named;
    use tacit_data::records::Normalisation;

    #[derive(Default)]
    struct Witness(Mutex<Vec<Step>>);

    impl Observer for Witness {
        fn step(&self, step: &Step) {
            self.0.lock().unwrap().push(*step);
        }
    }

    fn seal() -> FileKey {
        FileKey::from_bytes(&[3; 32]).unwrap()
    }

    fn published(keys: &[&str], terms: Terms, path: &std::path::Path) -> (Made, Vec<u8>) {
        let mut out = Cursor::new(Vec::new());
        let mut private = std::fs::File::create(path).unwrap();
        let witness = Witness::default();
        let job = Publishing { terms, threads: NonZeroUsize::MIN };
        let made = job.run(keys, &mut out, &mut private, &seal(), &witness).unwrap();
        let last = *witness.0.lock().unwrap().last().unwrap();
        assert_eq!((last.phase, last.done, last.total), ("publishing", keys.len() as u64, keys.len() as u64));
        (made, out.into_inner())
    }

    /// A file that counts how often it is read.
    struct Counted<'a>(Cursor<&'a [u8]>, &'a std::cell::Cell<u64>);

    impl Read for Counted<'_> {
        fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
            self.1.set(self.1.get() + 1);
            self.0.read(bytes)
        }
    }

    impl Seek for Counted<'_> {
        fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
            self.0.seek(to)
        }
    }

    /// All of the file is read before the first byte is sent, once for an open file, and nothing of it between
    /// that and the session's end.
    #[test]
    fn a_run_reads_the_file_before_it_asks_and_looks_up_after_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("set.oprf");
        let terms = Terms { lifetime: 9, per_client: 9, key: "email".into() };
        let (made, bytes) = published(&["ann", "bob"], terms, &path);
        let asking = Querying { publication: &made.publication, digest: &made.digest };
        let private = Mutex::new(Private::open(&path, &seal()).unwrap());
        let answering = Answering { private: &private, client: client(None), most: u64::MAX };
        let reads = std::cell::Cell::new(0);
        let mut file = TagFile::open(Counted(Cursor::new(&bytes), &reads)).unwrap();
        let opened = reads.get();
        for round in 0..2 {
            let (mut a, mut b) = tacit_net::memory::pair();
            let before = reads.get();
            let answers = std::thread::scope(|scope| {
                scope.spawn(|| answering.run(std::slice::from_mut(&mut a), &()).unwrap());
                asking.run(std::slice::from_mut(&mut b), &mut file, &["bob"], &()).unwrap()
            });
            assert_eq!((before > opened, reads.get() > before), (round > 0, round == 0));
            let asked = reads.get();
            assert_eq!(answers.opened(&mut file).unwrap(), [0]);
            assert!(reads.get() > asked);
            assert_eq!(format!("{answers:?}"), "Answers(1 tags, [secret])");
        }
    }

    #[test]
    fn a_set_is_published_asked_and_published_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("set.oprf");
        let spec = |column: &str| {
            let named = Named::parse(column).unwrap();
            KeySpec::named([named], Normalisation::default())
        };
        let (email, name) = (spec("email"), spec("name:email"));
        let terms = Terms { lifetime: 5, per_client: 4, key: email.agreement() };
        let (made, bytes) = published(&["ann", "bob", "cleo"], terms, &path);
        let asking = Querying { publication: &made.publication, digest: &made.digest };
        let mine = ["dora", "bob", "ann"];

        // What does not fit is refused with its reason, before anything is asked.
        assert_eq!(asking.check(&email, 3), Ok(()));
        assert_eq!(asking.check(&email, 5), Err(Refusal::TooMany { asked: 5, left: 4 }));
        let other = asking.check(&name, 3).unwrap_err().to_string();
        assert_eq!(other, "keys differ: key types (yours email, the file's text); write name");
        let two =
            KeySpec::named(["a", "b"].map(|name| Named::parse(name).unwrap()), Normalisation::default());
        let other = asking.check(&two, 3).unwrap_err().to_string();
        assert_eq!(other, "keys differ: key columns (yours 2, the file's 1); use the same as the tag file");

        let private = Mutex::new(Private::open(&path, &seal()).unwrap());
        let answering = Answering { private: &private, client: client(Some("bob")), most: u64::MAX };
        let (mut a, mut b) = tacit_net::memory::pair();
        let (queries, matches) = std::thread::scope(|scope| {
            let serving = scope.spawn(|| answering.run(std::slice::from_mut(&mut a), &()));
            let mut file = TagFile::open(Cursor::new(&bytes)).unwrap();
            let witness = Witness::default();
            let answers = asking.run(std::slice::from_mut(&mut b), &mut file, &mine, &witness).unwrap();
            let matches = answers.opened(&mut file).unwrap();
            assert_eq!(witness.0.lock().unwrap().last().map(|step| (step.done, step.total)), Some((3, 3)));
            (serving.join().unwrap().unwrap(), matches)
        });
        assert_eq!((queries, matches), (3, vec![1, 2]));
        assert_eq!(answering.left(), 1);
        assert!(answering.learns().contains("3 distinct keys") && asking.learns(3).contains("3 queries"));

        // The terms stay, and a client's queries are never more than all of them.
        let anew = |lifetime, per_client| {
            let Terms { lifetime, per_client, .. } =
                terms_after(&private.lock().unwrap(), lifetime, per_client, "email".into());
            (lifetime, per_client)
        };
        assert_eq!((anew(None, None), anew(Some(3), None), anew(Some(9), Some(2))), ((5, 4), (3, 3), (9, 2)));
        let (again, _) = published(
            &["ann"],
            terms_after(&private.lock().unwrap(), None, None, "email".into()),
            &folder.path().join("2"),
        );
        assert_ne!(again.publication.public, made.publication.public);
    }
}
