//! Keys that follow each other: a public key file names the key that takes its place, so that peers who have
//! pinned the old one know the new one without a telephone.
//!
//! Below the first key's line of a `.pub` file stands for each successor
//!
//! ```text
//! tacit-successor KEY UNTIL OLD NEW
//! ```
//!
//! the new public key, the last day (UTC) on which the one before is still accepted, and the signatures of
//! both on all of that: the old key says who follows it, the new one that it does. A chain is whole or
//! refused.

use crate::calendar::{date, day_of, today};
use crate::durable::{folder_of, sync_names};
use crate::keys::{self, Identity, PublicKey, SIGNATURE, key_error};
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use tacit_crypto::hex;

const SUCCESSOR: &str = "tacit-successor";
const CONTEXT: &str = "tacit 1 key that follows another";
/// Days for which a key may be accepted beside the one that follows it.
pub const MAX_OVERLAP: u64 = 90;
/// Bytes of a file of successions that were seen, at most.
const MAX_MEMORY: u64 = 1 << 20;

/// A party's public key and those that followed it, oldest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublicKeys {
    first: PublicKey,
    /// Each with the last day of the one before it, counted from 1970.
    followers: Vec<(PublicKey, u64)>,
}

fn message(old: &PublicKey, new: &PublicKey, until: &str) -> Vec<u8> {
    [&old.to_bytes(), &new.to_bytes(), until.as_bytes()].concat()
}

fn signature(text: &str) -> Option<[u8; SIGNATURE]> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != 2 * SIGNATURE || !text.bytes().all(is_digit) {
        return None;
    }
    let mut signature = [0; SIGNATURE];
    for (at, byte) in signature.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(signature)
}

impl PublicKeys {
    /// Reads a public key file with all successors that it names; a private one is refused by name.
    ///
    /// Errors: a signature that does not hold, or anything else in the file.
    pub fn load(path: &Path) -> Result<Self> {
        let text = keys::read(path, "ask the peer for its .pub file")?;
        Self::parse(&text).map_err(|reason| key_error(path, reason))
    }

    /// The keys that a key file stands for: a public file's own, or a private file's public half alone.
    pub fn of_file(path: &Path) -> Result<Self> {
        let text = keys::read(path, "make one with tacit keygen")?;
        match text.split_whitespace().next() {
            Some(keys::PRIVATE_LABEL) => {
                Ok(PublicKeys { first: Identity::load(path)?.public(), followers: Vec::new() })
            }
            _ => Self::parse(&text).map_err(|reason| key_error(path, reason)),
        }
    }

    pub(crate) fn parse(text: &str) -> std::result::Result<Self, &'static str> {
        const DAMAGED: &str = "a line on a key's successor is damaged; ask for the file again";
        let mut lines = keys::without_mark(text).lines().filter(|line| !line.trim().is_empty());
        let first = PublicKey::parse(lines.next().unwrap_or_default())?;
        let mut keys = PublicKeys { first, followers: Vec::new() };
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let [SUCCESSOR, key, until, old, new] = words[..] else { return Err(DAMAGED) };
            let key = keys::decode(key).map(|bytes| PublicKey::from_bytes(*bytes)).ok_or(DAMAGED)?;
            let day = day_of(until).ok_or(DAMAGED)?;
            // Another machine's clock may be a day ahead.
            if day > today().saturating_add(MAX_OVERLAP + 1) {
                return Err(
                    "a key is accepted together with its successor for more than 90 days; ask for a shorter \
                     overlap",
                );
            }
            let (signed, newest) = (message(&keys.newest(), &key, until), keys.newest());
            let holds =
                |by: &PublicKey, text| signature(text).is_some_and(|s| by.verify(CONTEXT, &signed, &s));
            if !holds(&newest, old) || !holds(&key, new) {
                return Err("a signature on a key's successor is not valid; ask for the file again");
            }
            if keys.contains(&key) {
                return Err("a key is its own successor; ask for the file again");
            }
            keys.followers.push((key, day));
        }
        Ok(keys)
    }

    /// The one that the others followed.
    pub fn first(&self) -> PublicKey {
        self.first
    }

    /// The one that nobody followed yet.
    pub fn newest(&self) -> PublicKey {
        self.followers.last().map_or(self.first, |(key, _)| *key)
    }

    /// Whether the party has, or had, this key.
    pub fn contains(&self, key: &PublicKey) -> bool {
        self.first == *key || self.followers.iter().any(|(follower, _)| follower == key)
    }

    /// Each key, with the last day on which it is accepted, counted from 1970; the newest has none.
    pub fn all(&self) -> Vec<(PublicKey, Option<u64>)> {
        let keys = std::iter::once(self.first).chain(self.followers.iter().map(|(key, _)| *key));
        let days = self.followers.iter().map(|(_, day)| Some(*day)).chain([None]);
        keys.zip(days).collect()
    }

    /// Fingerprints of the keys that are accepted today.
    pub fn accepted(&self) -> BTreeSet<String> {
        self.accepted_on(today())
    }

    /// Fingerprints of the keys that are accepted on this day, counted from 1970.
    pub fn accepted_on(&self, day: u64) -> BTreeSet<String> {
        self.keys_on(day).map(|key| key.fingerprint()).collect()
    }

    /// The keys that are accepted today, oldest first.
    pub fn accepted_keys(&self) -> Vec<PublicKey> {
        self.keys_on(today()).collect()
    }

    fn keys_on(&self, day: u64) -> impl Iterator<Item = PublicKey> {
        let is_accepted = move |until: &Option<u64>| until.is_none_or(|until| day <= until);
        self.all().into_iter().filter(move |(_, until)| is_accepted(until)).map(|(key, _)| key)
    }

    /// Compares these keys with the successions that the file `memory` holds, and adds those that it does not:
    /// whoever has stolen a key can name a second follower, and is too late once the first one was seen.
    ///
    /// Errors: a key that was followed by another one, or for another time, and those of the file.
    pub fn remember(&self, memory: &Path) -> Result<()> {
        if self.followers.is_empty() {
            return Ok(());
        }
        let fault =
            |error: std::io::Error| key_error(memory, format!("{error}; it records the successors of keys"));
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(memory).map_err(fault)?;
        file.lock().map_err(fault)?;
        let mut text = String::new();
        Read::by_ref(&mut file).take(MAX_MEMORY + 1).read_to_string(&mut text).map_err(fault)?;
        if text.len() as u64 > MAX_MEMORY {
            return Err(key_error(memory, "too long for a file of successions; check it and move it away"));
        }
        let known = known(&text).ok_or_else(|| {
            key_error(memory, "a line is damaged; the file records the successors of keys: restore or fix it")
        })?;
        let mut more = String::new();
        let all = self.all();
        for pair in all.windows(2) {
            let [(old, Some(until)), (new, _)] = pair else { continue };
            let [old, new] = [old, new].map(|key| hex(&key.to_bytes()));
            let line = format!("{old} {new} {}", date(*until));
            match known.iter().find(|known| known.starts_with(&old)) {
                None => more += &format!("{line}\n"),
                Some(known) if *known == line => {}
                Some(_) => {
                    let reason = format!(
                        "the key {} had a different successor before, or a different last day, and a thief \
                         of the key can name a second one; compare fingerprints by phone, and remove the \
                         line that begins {}",
                        pair[0].0.fingerprint(),
                        &old[..16]
                    );
                    return Err(key_error(memory, reason));
                }
            }
        }
        if more.is_empty() {
            return Ok(());
        }
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        file.write_all(format!("{gap}{more}").as_bytes()).and_then(|()| file.sync_all()).map_err(fault)?;
        sync_names(folder_of(memory)).map_err(fault)
    }

    /// A line a key, oldest first: its fingerprint, and until when it is accepted.
    pub fn lines(&self) -> Vec<String> {
        let line = |(key, until): (PublicKey, Option<u64>)| match until {
            Some(day) => format!("{} accepted up to and including {}", key.fingerprint(), date(day)),
            None => format!("{} the newest", key.fingerprint()),
        };
        self.all().into_iter().map(line).collect()
    }

    /// What a user should know of the keys that were followed; nothing where none was.
    pub fn words(&self) -> Option<String> {
        let (newest, until) = self.followers.last()?;
        Some(format!(
            "the key's successor is {}; the old key is accepted up to and including {}",
            newest.fingerprint(),
            date(*until)
        ))
    }
}

/// The lines of a file of successions, each as it is written; `None` where one says something else. Blanks, a byte order
/// mark and capitals are an editor's, and a line that a crash left half is of no run that went on.
fn known(text: &str) -> Option<Vec<String>> {
    const FORM: [usize; 3] = [64, 64, 10];
    let is_hex = |word: &str| word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut known = Vec::new();
    for line in text.trim_start_matches('\u{feff}').lines().filter(|line| !line.contains('\0')) {
        let line = line.to_ascii_lowercase();
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_whole = words.iter().map(|word| word.len()).eq(FORM);
        let begins = |(at, word): (usize, &&str)| match (FORM.get(at), at + 1 == words.len()) {
            (Some(length), false) => word.len() == *length,
            (Some(length), true) => word.len() <= *length,
            (None, _) => false,
        };
        let is_begun = words.iter().enumerate().all(begins);
        let (keys, day) = words.split_at(words.len().min(2));
        let is_key = keys.iter().all(|key| is_hex(key));
        let is_day = day.iter().all(|day| match is_whole {
            true => day_of(day).is_some(),
            false => day.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'),
        });
        match is_begun && is_key && is_day {
            true if is_whole => known.push(words.join(" ")),
            true => {}
            false => return None,
        }
    }
    Some(known)
}

/// The file that remembers which key follows which for the one whose private key file this is: beside the file itself,
/// whatever link leads to it.
pub fn memory_of(identity: &Path) -> PathBuf {
    let file = std::fs::canonicalize(identity);
    file.unwrap_or_else(|_| identity.to_owned()).with_extension("successions")
}

/// Makes the key that follows the one in `old`: writes the private key to `new` (mode 600), and the public
/// one beside it, ending in `.pub`, with all that it follows; the old key's `.pub` file names it from then
/// on. The old key is accepted for `days` more days. Returns the new public key and its file.
///
/// Errors: a key that has a successor already, whose `.pub` file is not beside it, or files that exist.
pub fn name_successor(old: &Path, new: &Path, comment: &str, days: u64) -> Result<(PublicKey, PathBuf)> {
    if days > MAX_OVERLAP {
        return Err(Error::Usage(format!("keys overlap for at most {MAX_OVERLAP} days; give fewer")));
    }
    let identity = Identity::load(old)?;
    // Of two at once, each would name a successor of the same key.
    let file = File::open(old).map_err(|error| key_error(old, error))?;
    file.lock().map_err(|error| key_error(old, error))?;
    let beside = old.with_extension("pub");
    let text = keys::read(&beside, "it must be next to the private key, and name the successor")?;
    // Peers may get the file that a link leads to.
    let beside = std::fs::canonicalize(&beside).map_err(|error| key_error(&beside, error))?;
    let known = PublicKeys::parse(&text).map_err(|reason| key_error(&beside, reason))?;
    if known.newest() != identity.public() {
        let reason = match known.contains(&identity.public()) {
            true => "names a successor already; give the newest key of the chain",
            false => "is not the public half of the private key",
        };
        return Err(key_error(&beside, reason));
    }
    let follower = Identity::generate()?;
    let until = date(today().saturating_add(days));
    let signed = message(&identity.public(), &follower.public(), &until);
    let (ours, theirs) = (identity.sign(CONTEXT, &signed)?, follower.sign(CONTEXT, &signed)?);
    let key = keys::encode(&follower.public().to_bytes());
    let line = format!("{SUCCESSOR} {} {until} {} {}", key.as_str(), hex(&ours), hex(&theirs));
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).chain([&*line]).collect();
    let chain = lines.join("\n") + "\n";
    if chain.len() as u64 > keys::MAX_FILE {
        return Err(key_error(
            &beside,
            "names the most successors that a file can have; start with a new key",
        ));
    }
    let chain_of_new = match comment.trim().is_empty() {
        true => chain.clone(),
        false => [&[&*known.first().line(comment)], &lines[1..]].concat().join("\n") + "\n",
    };
    let public = follower.save_with(new, &chain_of_new)?;
    // The old file names the new key once the new key is on the disk, and is there all the time.
    keys::replace(&beside, chain.as_bytes()).inspect_err(|_| {
        // A key that nothing names is of no use, and its name would be taken.
        let _ = (std::fs::remove_file(new), std::fs::remove_file(&public));
    })?;
    sync_names(folder_of(&beside)).map_err(|error| key_error(&beside, error))?;
    Ok((follower.public(), public))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_names_its_keys_and_no_byte_of_it_can_be_changed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let first = Identity::generate().unwrap();
        first.save(&at("one.key"), "alice").unwrap();
        let (second, public) = name_successor(&at("one.key"), &at("two.key"), "", 30).unwrap();
        assert_eq!(public, at("two.pub"));
        let old = std::fs::read_to_string(at("one.pub")).unwrap();
        assert_eq!(old, std::fs::read_to_string(at("two.pub")).unwrap());
        // One successor a key, and only the newest has one.
        let error = name_successor(&at("one.key"), &at("three.key"), "", 30).unwrap_err().to_string();
        assert!(error.contains("names a successor already") && !at("three.key").exists(), "{error}");
        let (third, _) = name_successor(&at("two.key"), &at("three.key"), "", 0).unwrap();
        let keys = PublicKeys::load(&at("three.pub")).unwrap();
        assert_eq!((keys.first(), keys.newest()), (first.public(), third));
        assert_eq!(keys.accepted().len(), 3, "the overlap of nought days ends with this day");
        assert!(keys.contains(&second) && keys.words().unwrap().contains(&third.fingerprint()));
        assert_eq!(PublicKey::load(&at("three.pub")).unwrap(), first.public());

        let honest = std::fs::read(at("three.pub")).unwrap();
        let from = honest.iter().position(|byte| *byte == b'\n').unwrap();
        for place in from + 1..honest.len() - 1 {
            for change in [1, 0x20, 0x80] {
                let mut bytes = honest.clone();
                bytes[place] ^= change;
                let Ok(text) = String::from_utf8(bytes) else { continue };
                assert!(PublicKeys::parse(&text).is_err(), "byte {place} by {change:#x}");
            }
        }
        // The old key alone, or the new one alone, names nobody; nor does a line of another chain.
        let text = String::from_utf8(honest).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(PublicKeys::parse(&format!("{}\n{}\n", lines[0], lines[2])).is_err());
        let words: Vec<&str> = lines[1].split(' ').collect();
        for (old, new) in [(words[3], words[3]), (words[4], words[4]), (words[4], words[3])] {
            let forged = format!("{}\n{} {} {} {old} {new}\n", lines[0], words[0], words[1], words[2]);
            assert!(PublicKeys::parse(&forged).is_err());
        }
    }

    /// The chain of an owner (`two.key`) that was seen, that of a thief of its old key (`one.key`), and what `seen` says.
    fn stolen(folder: &Path) -> ([PublicKeys; 2], String) {
        let at = |name: &str| folder.join(name);
        Identity::generate().unwrap().save(&at("one.key"), "").unwrap();
        for file in ["key", "pub"] {
            std::fs::copy(at(&format!("one.{file}")), at(&format!("stolen.{file}"))).unwrap();
        }
        name_successor(&at("one.key"), &at("two.key"), "", 30).unwrap();
        name_successor(&at("stolen.key"), &at("thief.key"), "", 30).unwrap();
        let chains = ["two.pub", "thief.pub"].map(|name| PublicKeys::load(&at(name)).unwrap());
        chains[0].remember(&at("seen")).unwrap();
        (chains, std::fs::read_to_string(at("seen")).unwrap())
    }

    /// Whoever has a copy of the old key names a follower of its own: the owner's was seen first.
    #[test]
    fn a_second_successor_of_a_key_is_refused_once_the_first_was_seen() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let ([owner, thief], seen) = stolen(folder.path());
        let error = thief.remember(&at("seen")).unwrap_err().to_string();
        assert!(error.contains("had a different successor before") && error.contains("seen"), "{error}");
        // The owner's goes on, and so does its next key; a longer overlap is another succession.
        owner.remember(&at("seen")).unwrap();
        assert_eq!(std::fs::read_to_string(at("seen")).unwrap(), seen);
        name_successor(&at("two.key"), &at("three.key"), "", 0).unwrap();
        PublicKeys::load(&at("three.pub")).unwrap().remember(&at("seen")).unwrap();
        assert_eq!(std::fs::read_to_string(at("seen")).unwrap().lines().count(), 2);
        let mut longer = owner.clone();
        longer.followers[0].1 += 1;
        assert!(longer.remember(&at("seen")).is_err());
        // What a crash leaves of a line that was being added says nothing of any key.
        let line = seen.lines().next().unwrap();
        for torn in [&line[..70], &format!("{}{}", &line[..70], "\0".repeat(70))] {
            std::fs::write(at("seen"), torn).unwrap();
            owner.remember(&at("seen")).unwrap();
            assert_eq!(std::fs::read_to_string(at("seen")).unwrap(), format!("{torn}\n{seen}"));
            assert!(thief.remember(&at("seen")).is_err());
        }
    }

    /// An editor may leave a mark, blanks and capitals; what it leaves otherwise is no reason to forget.
    #[test]
    fn a_memory_of_successions_that_was_edited_still_remembers_or_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let ([owner, thief], seen) = stolen(folder.path());
        let line = seen.trim_end();
        for understood in [
            format!("{line} \n"),
            format!("\u{feff}{seen}"),
            seen.to_uppercase(),
            format!("\t{}\r\n\r\n", line.replace(' ', "  ")),
            format!("{line}\n\n{}", &line[..100]),
        ] {
            std::fs::write(at("seen"), &understood).unwrap();
            owner.remember(&at("seen")).unwrap();
            assert_eq!(std::fs::read_to_string(at("seen")).unwrap(), understood);
            let error = thief.remember(&at("seen")).unwrap_err().to_string();
            assert!(error.contains("had a different successor before"), "{understood:?}: {error}");
        }
        for damaged in [
            format!("{line}.\n"),
            format!("# {line}\n"),
            format!("x{}\n", &line[1..]),
            format!("{}x\n", &line[..line.len() - 1]),
            format!("{}\n", &line[1..]),
            format!("{line} {line}\n"),
            line.replace(' ', "\u{200b}"),
        ] {
            std::fs::write(at("seen"), &damaged).unwrap();
            let error = thief.remember(&at("seen")).unwrap_err().to_string();
            assert!(error.contains("seen: a line is damaged"), "{damaged:?}: {error}");
        }
    }

    #[test]
    fn a_memory_is_of_the_file_whatever_link_leads_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        std::fs::create_dir(at("d")).unwrap();
        std::fs::write(at("d/me.key"), "").unwrap();
        std::os::unix::fs::symlink(at("d/me.key"), at("alias.key")).unwrap();
        std::os::unix::fs::symlink(at("d"), at("e")).unwrap();
        for name in ["d/me.key", "alias.key", "e/me.key", "d/../d/./me.key"] {
            assert_eq!(memory_of(&at(name)), at("d/me.successions"), "{name}");
        }
        assert_eq!(memory_of(Path::new("none.key")), Path::new("none.successions"));
    }

    #[test]
    fn of_several_successors_that_are_named_at_once_one_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        Identity::generate().unwrap().save(&at("old.key"), "").unwrap();
        let start = std::sync::Barrier::new(8);
        let made: Vec<_> = std::thread::scope(|scope| {
            let one = |which: usize| {
                let (at, start) = (&at, &start);
                scope.spawn(move || {
                    start.wait();
                    name_successor(&at("old.key"), &at(&format!("{which}.key")), "", 30).is_ok()
                })
            };
            let threads: Vec<_> = (0..8).map(one).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let named: Vec<usize> = (0..8).filter(|which| made[*which]).collect();
        let [named] = named[..] else { panic!("{named:?} are named") };
        for which in 0..8 {
            assert_eq!(at(&format!("{which}.key")).exists(), which == named);
        }
        let keys = PublicKeys::load(&at("old.pub")).unwrap();
        assert_eq!(keys.newest(), Identity::load(&at(&format!("{named}.key"))).unwrap().public());
    }

    /// In the old key's folder no file can be made, as its path leaves no room for a longer name.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_successor_that_cannot_be_named_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let identity = Identity::generate().unwrap();
        identity.save(&at("a.key"), "").unwrap();
        let mut deep = folder.path().canonicalize().unwrap();
        while deep.as_os_str().len() < 4085 {
            let left = 4085 - deep.as_os_str().len() - 1;
            deep.push("d".repeat(if left > 200 { 100 } else { left.clamp(1, 255) }));
        }
        std::fs::create_dir_all(&deep).unwrap();
        for file in ["a.key", "a.pub"] {
            std::fs::rename(at(file), deep.join(file)).unwrap();
        }
        let old = || name_successor(&deep.join("a.key"), &at("c.key"), "", 30);
        let error = old().unwrap_err().to_string();
        assert!(error.contains("a.pub") && !error.contains(".tacit-key"), "{error}");
        assert!(!at("c.key").exists() && !at("c.pub").exists());
        for file in ["a.key", "a.pub"] {
            std::fs::rename(deep.join(file), at(file)).unwrap();
        }
        name_successor(&at("a.key"), &at("c.key"), "", 30).unwrap();
    }

    #[test]
    fn the_file_that_names_a_successor_stays_where_it_is_with_its_mode() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        Identity::generate().unwrap().save(&at("old.key"), "").unwrap();
        std::fs::create_dir(at("shared")).unwrap();
        std::fs::rename(at("old.pub"), at("shared/real.pub")).unwrap();
        std::fs::set_permissions(at("shared/real.pub"), PermissionsExt::from_mode(0o664)).unwrap();
        std::os::unix::fs::symlink("shared/real.pub", at("old.pub")).unwrap();
        let (new, _) = name_successor(&at("old.key"), &at("new.key"), "", 30).unwrap();
        assert!(at("old.pub").is_symlink());
        assert_eq!(PublicKeys::load(&at("shared/real.pub")).unwrap().newest(), new);
        assert_eq!(at("shared/real.pub").metadata().unwrap().permissions().mode() & 0o777, 0o664);
    }

    #[test]
    fn a_mark_and_blank_lines_in_front_of_a_key_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        Identity::generate().unwrap().save(&at("one.key"), "").unwrap();
        name_successor(&at("one.key"), &at("two.key"), "", 30).unwrap();
        let whole = PublicKeys::load(&at("two.pub")).unwrap();
        for file in ["two.pub", "two.key"] {
            let text = std::fs::read_to_string(at(file)).unwrap();
            std::fs::write(at(file), format!("\u{feff}\r\n\n{}", text.replace('\n', "\r\n\r\n"))).unwrap();
        }
        assert_eq!(PublicKeys::load(&at("two.pub")).unwrap(), whole);
        assert_eq!(PublicKey::load(&at("two.pub")).unwrap(), whole.first());
        let (third, _) = name_successor(&at("two.key"), &at("three.key"), "bob", 30).unwrap();
        for file in ["two.pub", "three.pub"] {
            assert_eq!(PublicKeys::load(&at(file)).unwrap().newest(), third, "{file}");
        }
        let text = std::fs::read_to_string(at("three.pub")).unwrap();
        assert!(text.lines().count() == 3 && text.lines().next().unwrap().ends_with(" bob"), "{text}");
    }

    #[test]
    fn an_overlap_has_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (old, new) = (Identity::generate().unwrap(), Identity::generate().unwrap());
        old.save(&at("one.key"), "").unwrap();
        assert!(name_successor(&at("one.key"), &at("two.key"), "", MAX_OVERLAP + 1).is_err());
        assert!(!at("two.key").exists());
        let chain = |days: u64| {
            let until = date(today() + days);
            let signed = message(&old.public(), &new.public(), &until);
            let [one, two] = [&old, &new].map(|by| hex(&by.sign(CONTEXT, &signed).unwrap()));
            let key = keys::encode(&new.public().to_bytes());
            PublicKeys::parse(&format!(
                "{}\n{SUCCESSOR} {} {until} {one} {two}\n",
                old.public().line(""),
                key.as_str()
            ))
        };
        assert!(chain(MAX_OVERLAP).is_ok());
        assert!(chain(MAX_OVERLAP + 2).unwrap_err().contains("90 days"));
    }

    #[test]
    fn a_key_is_accepted_to_the_last_day_of_its_overlap() {
        let (one, two) = (Identity::generate().unwrap().public(), Identity::generate().unwrap().public());
        let of = |until| PublicKeys { first: one, followers: vec![(two, until)] }.accepted();
        assert_eq!(of(today()).len(), 2);
        assert_eq!(of(today() - 1), BTreeSet::from([two.fingerprint()]));
    }
}
