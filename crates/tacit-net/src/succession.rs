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
use std::fs::OpenOptions;
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
                    "a key is accepted for more than 90 days beside its successor; ask for a shorter overlap",
                );
            }
            let (signed, newest) = (message(&keys.newest(), &key, until), keys.newest());
            let holds =
                |by: &PublicKey, text| signature(text).is_some_and(|s| by.verify(CONTEXT, &signed, &s));
            if !holds(&newest, old) || !holds(&key, new) {
                return Err("a signature on a key's successor does not hold; ask for the file again");
            }
            if keys.contains(&key) {
                return Err("a key follows itself; ask for the file again");
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
        let fault = |error: std::io::Error| {
            key_error(memory, format!("{error}; it remembers which key follows which"))
        };
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(memory).map_err(fault)?;
        file.lock().map_err(fault)?;
        let mut text = String::new();
        Read::by_ref(&mut file).take(MAX_MEMORY + 1).read_to_string(&mut text).map_err(fault)?;
        if text.len() as u64 > MAX_MEMORY {
            return Err(key_error(
                memory,
                "too long for a file of successions; move it away after a look at it",
            ));
        }
        // A line that a crash left half is of no run that went on.
        let is_whole = |line: &&str| {
            let words = line.split(' ').map(|word| (word.len(), word.is_ascii()));
            words.eq([(64, true), (64, true), (10, true)]) && !line.contains('\0')
        };
        let known = || text.lines().filter(is_whole);
        let mut more = String::new();
        let all = self.all();
        for pair in all.windows(2) {
            let [(old, Some(until)), (new, _)] = pair else { continue };
            let [old, new] = [old, new].map(|key| hex(&key.to_bytes()));
            let line = format!("{old} {new} {}", date(*until));
            match known().find(|known| known.starts_with(&old)) {
                None => more += &format!("{line}\n"),
                Some(known) if known == line => {}
                Some(_) => {
                    let reason = format!(
                        "the key {} was followed by another key before, or for another time, and whoever has stolen \
                         it can name a second one; compare fingerprints by phone, and remove the line that begins \
                         {}",
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
            Some(day) => format!("{} accepted up to and with {}", key.fingerprint(), date(day)),
            None => format!("{} the newest", key.fingerprint()),
        };
        self.all().into_iter().map(line).collect()
    }

    /// What a user should know of the keys that were followed; nothing where none was.
    pub fn words(&self) -> Option<String> {
        let (newest, until) = self.followers.last()?;
        Some(format!(
            "the key is followed by {}; the one before is accepted up to and with {}",
            newest.fingerprint(),
            date(*until)
        ))
    }
}

/// Makes the key that follows the one in `old`: writes the private key to `new` (mode 600), and the public
/// one beside it, ending in `.pub`, with all that it follows; the old key's `.pub` file names it from then
/// on. The old key is accepted for `days` more days. Returns the new public key and its file.
///
/// Errors: a key that has a successor already, whose `.pub` file is not beside it, or files that exist.
pub fn name_successor(old: &Path, new: &Path, comment: &str, days: u64) -> Result<(PublicKey, PathBuf)> {
    if days > MAX_OVERLAP {
        return Err(Error::Usage(format!("keys overlap for {MAX_OVERLAP} days at most; give fewer")));
    }
    let identity = Identity::load(old)?;
    let beside = old.with_extension("pub");
    let text = keys::read(&beside, "it stands beside the private key, and names the successor")?;
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
    let chain = format!("{}\n{line}\n", text.trim_end());
    if chain.len() as u64 > keys::MAX_FILE {
        return Err(key_error(&beside, "names as many successors as a file can; begin with a new key"));
    }
    let first = chain.lines().next().unwrap_or_default();
    let chain_of_new = match comment.trim().is_empty() {
        true => chain.clone(),
        false => chain.replacen(first, &known.first().line(comment), 1),
    };
    let public = follower.save_with(new, &chain_of_new)?;
    // The old file names the new key once the new key is on the disk, and is there all the time.
    keys::replace(&beside, 0o644, chain.as_bytes())?;
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

    /// Whoever has a copy of the old key names a follower of its own: the owner's was seen first.
    #[test]
    fn a_second_successor_of_a_key_is_refused_once_the_first_was_seen() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        Identity::generate().unwrap().save(&at("one.key"), "").unwrap();
        for file in ["key", "pub"] {
            std::fs::copy(at(&format!("one.{file}")), at(&format!("stolen.{file}"))).unwrap();
        }
        name_successor(&at("one.key"), &at("two.key"), "", 30).unwrap();
        name_successor(&at("stolen.key"), &at("thief.key"), "", 30).unwrap();
        let [owner, thief] = ["two.pub", "thief.pub"].map(|name| PublicKeys::load(&at(name)).unwrap());
        owner.remember(&at("seen")).unwrap();
        let seen = std::fs::read_to_string(at("seen")).unwrap();
        let error = thief.remember(&at("seen")).unwrap_err().to_string();
        assert!(error.contains("followed by another key before") && error.contains("seen"), "{error}");
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
