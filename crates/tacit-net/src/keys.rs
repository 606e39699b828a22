//! Identity keys: Ed25519, one private file a party, one public line for the peer to pin, as with SSH.
//!
//! `NAME.key` holds `tacit-ed25519-private BASE64` and is readable by its owner alone; `NAME.pub` holds
//! `tacit-ed25519 BASE64 COMMENT` and is meant to be passed on. Whoever pins a public key should have it over
//! a way that cannot be tampered with, or compare [`PublicKey::fingerprint`] by telephone.

use crate::durable::{self, folder_of, sync_names};
use crate::{Error, Result, small};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use curve25519_dalek::edwards::CompressedEdwardsY;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, Metadata};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
pub(crate) use tacit_crypto::base64::{decode, encode};
use tempfile::NamedTempFile;
use zeroize::Zeroizing;

const NO_OVERWRITING: &str = "exists already and is not overwritten; choose another name";
const PUBLIC_LABEL: &str = "tacit-ed25519";
pub(crate) const PRIVATE_LABEL: &str = "tacit-ed25519-private";
/// Longest key file that is read.
pub(crate) const MAX_FILE: u64 = 1 << 14;
/// Pipes whose text is kept.
const MAX_PIPES: usize = 64;
/// Bytes of a public key file in which a comment is looked for.
const MAX_COMMENTED: u64 = 1 << 12;
/// DER around an Ed25519 public key: SubjectPublicKeyInfo, RFC 8410 section 4.
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// DER around an Ed25519 private key: PKCS #8 version 1, RFC 8410 section 7.
const PKCS8_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// Bytes of a signature.
pub const SIGNATURE: usize = 64;

/// What is signed: the use's name, its length in front, and the message. TLS signs what begins with 64
/// spaces; the length's eight bytes are none.
pub(crate) fn signed_bytes(context: &str, message: &[u8]) -> Vec<u8> {
    [&(context.len() as u64).to_le_bytes(), context.as_bytes(), message].concat()
}

/// A party's public key, which its peer pins.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Reads the first key of a public key file; a private one is refused by name. What
    /// [followed](crate::succession) it stands below, and is not looked at here.
    pub fn load(path: &Path) -> Result<Self> {
        let text = read(path, "ask the peer for its .pub file")?;
        PublicKey::parse(&text).map_err(|reason| key_error(path, reason))
    }

    pub(crate) fn parse(text: &str) -> std::result::Result<Self, &'static str> {
        let mut words = without_mark(text).split_whitespace();
        match words.next() {
            Some(PRIVATE_LABEL) => {
                Err("this is a private key; give the .pub file, and never pass the private one on")
            }
            Some(PUBLIC_LABEL) => {
                let key = words
                    .next()
                    .and_then(decode)
                    .ok_or("the public key is damaged; ask for the file again")?;
                match is_anybodys(&key) {
                    false => Ok(PublicKey(*key)),
                    true => Err("with this public key anyone can sign; ask the peer for its .pub file again"),
                }
            }
            _ => Err("not a Tacit public key; it starts with tacit-ed25519 and comes from tacit keygen"),
        }
    }

    /// The line of a public key file.
    pub fn line(&self, comment: &str) -> String {
        let comment: String = comment.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!("{PUBLIC_LABEL} {} {}", encode(&self.0).as_str(), comment.trim()).trim_end().to_owned()
    }

    /// The comment beside this key in the public key file at `path`, which nothing proves; nothing where there is none,
    /// or where the first line of the file has another key.
    pub fn comment_in(&self, path: &Path) -> Option<String> {
        // A pipe would wait for who writes to it, and a device may have no end.
        if !std::fs::metadata(path).ok()?.is_file() {
            return None;
        }
        let mut text = Vec::new();
        File::open(path).ok()?.take(MAX_COMMENTED).read_to_end(&mut text).ok()?;
        let text = String::from_utf8_lossy(&text);
        let line = without_mark(&text).lines().find(|line| !line.trim().is_empty())?;
        let comment = line.split_whitespace().skip(2).collect::<Vec<_>>().join(" ");
        let is_ours = PublicKey::parse(line).is_ok_and(|key| key == *self);
        (is_ours && !comment.is_empty()).then(|| crate::shown(&comment))
    }

    /// Writes a public key file, whole or not at all. Errors: one that exists.
    pub fn save(&self, path: &Path, comment: &str) -> Result<()> {
        write_new(path, 0o644, format!("{}\n", self.line(comment)).as_bytes())
    }

    /// An error where [`save`](Self::save) could write no new file in the folder of `path`.
    pub fn can_be_saved(path: &Path) -> Result<()> {
        unfinished(path, 0o644).map(drop)
    }

    /// A short name to compare by eye or telephone: 128 bits of a hash, as eight groups of four hex digits.
    ///
    /// A second key with a given fingerprint takes some 2^128 tries, and two keys of one's own making with
    /// one fingerprint some 2^64.
    pub fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("tacit 1 key fingerprint");
        hasher.update(&self.0);
        let hash = hasher.finalize();
        let groups = hash.as_bytes()[..16].chunks(2).map(|pair| format!("{:02x}{:02x}", pair[0], pair[1]));
        groups.collect::<Vec<_>>().join("-")
    }

    /// The key's bytes, as [`from_bytes`](Self::from_bytes) takes them.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0
    }

    /// The key of these bytes. Whether they are one shows when it [verifies](Self::verify): what is no point
    /// verifies nothing.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        PublicKey(bytes)
    }

    /// Whether `signature` is this key's on `message`, made by [`Identity::sign`] with the same `context`. A key of
    /// small order verifies nothing: one signature would verify on many messages.
    pub fn verify(&self, context: &str, message: &[u8], signature: &[u8; SIGNATURE]) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, &self.0);
        !is_anybodys(&self.0) && key.verify(&signed_bytes(context, message), signature).is_ok()
    }

    pub(crate) fn spki(&self) -> Vec<u8> {
        [SPKI_PREFIX.as_slice(), &self.0].concat()
    }

    pub(crate) fn from_spki(der: &[u8]) -> Option<Self> {
        let key = der.strip_prefix(&SPKI_PREFIX)?.try_into().ok()?;
        (!is_anybodys(&key)).then_some(PublicKey(key))
    }
}

/// Whether a key is a point of small order, for which signatures can be made up without knowing anything.
pub(crate) fn is_anybodys(key: &[u8; 32]) -> bool {
    CompressedEdwardsY(*key).decompress().is_some_and(|point| point.is_small_order())
}

/// The bytes of a fingerprint as people read it.
pub(crate) fn fingerprint_bytes(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    if digits.len() != 32 || !digits.is_ascii() {
        return None;
    }
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.fingerprint())
    }
}

/// A party's private key.
#[derive(Clone)]
pub struct Identity {
    seed: Zeroizing<[u8; 32]>,
    public: PublicKey,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity([secret], {:?})", self.public)
    }
}

impl Identity {
    /// A fresh identity from the operating system's randomness.
    pub fn generate() -> Result<Self> {
        let mut seed = Zeroizing::new([0u8; 32]);
        tacit_crypto::Prg::from_os().fill_bytes(seed.as_mut());
        Identity::from_seed(seed)
            .ok_or_else(|| Error::Usage("the random generator gave no usable key".to_owned()))
    }

    /// The identity that a secret gives, always the same, for the use that `context` names, which must be
    /// unique to it and constant.
    pub fn of_secret(context: &str, secret: &[u8; 32]) -> Result<Self> {
        let seed = Zeroizing::new(blake3::derive_key(context, secret));
        Identity::from_seed(seed).ok_or_else(|| Error::Usage("the secret gives no usable key".to_owned()))
    }

    fn from_seed(seed: Zeroizing<[u8; 32]>) -> Option<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.as_slice()).ok()?;
        let public = PublicKey(pair.public_key().as_ref().try_into().ok()?);
        Some(Identity { seed, public })
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// Writes the private key to `path` (mode 600) and the public one beside it with the ending `.pub`;
    /// returns the latter's path. Neither file may exist.
    pub fn save(&self, path: &Path, comment: &str) -> Result<PathBuf> {
        self.save_with(path, &format!("{}\n", self.public.line(comment)))
    }

    /// An error where [`save`](Self::save) could write no such pair.
    pub fn can_be_saved(path: &Path) -> Result<()> {
        free_pair(path)?;
        if path.exists() {
            return Err(key_error(path, NO_OVERWRITING));
        }
        unfinished(path, 0o600).map(drop)
    }

    /// As [`save`](Self::save), with this text for the public file.
    pub(crate) fn save_with(&self, path: &Path, text: &str) -> Result<PathBuf> {
        let public = free_pair(path)?;
        let encoded = encode(&*self.seed);
        let line = Zeroizing::new([PRIVATE_LABEL, " ", encoded.as_str(), "\n"].concat());
        write_new(path, 0o600, line.as_bytes())?;
        write_new(&public, 0o644, text.as_bytes()).inspect_err(|_| {
            // Half a pair is of no use, and its name would be taken.
            let _ = std::fs::remove_file(path);
        })?;
        Ok(public)
    }

    /// Reads a private key file; refused when others than its owner may read it.
    pub fn load(path: &Path) -> Result<Self> {
        let (text, metadata) = read_open(path, "make one with tacit keygen")?;
        let mut words = text.split_whitespace();
        let seed = match words.next() {
            Some(PUBLIC_LABEL) => {
                return Err(key_error(path, "this is a public key; give the private .key file"));
            }
            Some(PRIVATE_LABEL) => words.next().and_then(decode),
            _ => return Err(key_error(path, "not a Tacit private key; make one with tacit keygen")),
        };
        only_for_its_owner(path, &metadata, "private key")?;
        let identity = seed.and_then(Identity::from_seed);
        identity.ok_or_else(|| key_error(path, "the private key is damaged; restore it or make a new one"))
    }

    /// A secret for the use that `context` names, which must be unique to it and constant (see BLAKE3's key
    /// derivation).
    pub fn derive(&self, context: &str) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(blake3::derive_key(context, self.seed.as_slice()))
    }

    /// An Ed25519 signature on `message` for the use that `context` names, which must be unique to it and
    /// constant.
    pub fn sign(&self, context: &str, message: &[u8]) -> Result<[u8; SIGNATURE]> {
        let pair = Ed25519KeyPair::from_seed_unchecked(self.seed.as_slice());
        let signature = pair.ok().map(|pair| pair.sign(&signed_bytes(context, message)));
        let bytes = signature.and_then(|signature| signature.as_ref().try_into().ok());
        bytes.ok_or_else(|| Error::Usage("the identity key signs nothing; make a new one".to_owned()))
    }

    pub(crate) fn pkcs8(&self) -> Zeroizing<Vec<u8>> {
        let mut der = Zeroizing::new(Vec::with_capacity(PKCS8_PREFIX.len() + 32));
        der.extend_from_slice(&PKCS8_PREFIX);
        der.extend_from_slice(self.seed.as_slice());
        der
    }
}

/// The text without the byte order mark that some editors put in front.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

pub(crate) fn key_error(path: &Path, reason: impl fmt::Display) -> Error {
    Error::Key { path: path.display().to_string(), reason: reason.to_string() }
}

/// The text of a file without a secret. That of a pipe is there once and is kept, as a run looks at its peer's key more
/// than once.
pub(crate) fn read(path: &Path, remedy: &str) -> Result<Zeroizing<String>> {
    static PIPES: Mutex<BTreeMap<PathBuf, Zeroizing<String>>> = Mutex::new(BTreeMap::new());
    let mut pipes = PIPES.lock().unwrap_or_else(PoisonError::into_inner);
    match read_open(path, remedy) {
        Ok((text, metadata)) => {
            if small::is_pipe(&metadata) && pipes.len() < MAX_PIPES {
                pipes.insert(path.to_owned(), text.clone());
            }
            Ok(text)
        }
        Err(error) => {
            match pipes.get(path).filter(|_| std::fs::metadata(path).is_ok_and(|it| small::is_pipe(&it))) {
                Some(text) => Ok(text.clone()),
                None => Err(error),
            }
        }
    }
}

/// The text of a file with a secret, called `what`, which others than its owner must not be able to read.
///
/// Errors: [`Error::Key`] with the path, and `remedy` where there is no such file.
pub fn read_secret(path: &Path, what: &str, remedy: &str) -> Result<Zeroizing<String>> {
    let (text, metadata) = read_open(path, remedy)?;
    only_for_its_owner(path, &metadata, what)?;
    Ok(text)
}

/// The text of a file, and what is known of that file, whatever has its name by now.
fn read_open(path: &Path, remedy: &str) -> Result<(Zeroizing<String>, Metadata)> {
    let read = small::read(path, MAX_FILE);
    let (bytes, metadata) = read.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => key_error(path, format!("no such file; {remedy}")),
        // Where folders cannot be opened at all, and where they can.
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::IsADirectory if path.is_dir() => {
            key_error(path, "is a directory; name a file in it")
        }
        std::io::ErrorKind::PermissionDenied => {
            key_error(path, "permission denied; check its owner and permissions")
        }
        std::io::ErrorKind::Other | std::io::ErrorKind::TimedOut => key_error(path, error),
        kind => key_error(path, std::io::Error::from(kind)),
    })?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(key_error(path, "too long for a key file"));
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| key_error(path, "not a Tacit key: it is not text"))?;
    Ok((Zeroizing::new(without_mark(text).to_owned()), metadata))
}

/// Writes a new file of keys of this `mode`, whole or not at all, also if the power fails.
///
/// Errors: [`Error::Key`] with the path, of a file that exists too.
pub fn write_new(path: &Path, mode: u32, bytes: &[u8]) -> Result<()> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => key_error(path, NO_OVERWRITING),
        _ => key_error(path, error),
    };
    let file = unfinished(path, mode)?;
    fill(&file, bytes).map_err(failed)?;
    file.persist_noclobber(path).map_err(|error| failed(error.error))?;
    sync_names(folder_of(path)).map_err(|error| {
        // Its name would be taken when the same is tried again.
        let _ = std::fs::remove_file(path);
        key_error(path, error)
    })
}

/// As [`write_new`], in place of the file that is there, which must be no link, and with its mode. Whether the new one
/// stays through a loss of power is for [`sync_names`].
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let permissions = std::fs::metadata(path).map_err(|error| key_error(path, error))?.permissions();
    let file = unfinished(path, 0o600)?;
    let set = file.as_file().set_permissions(permissions);
    set.and_then(|()| fill(&file, bytes)).map_err(|error| key_error(path, error))?;
    durable::replace(file, path).map(drop).map_err(|error| key_error(path, error))
}

/// By the file itself: errors of the other type of file name it, and it is gone by then.
fn fill(file: &NamedTempFile, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = file.as_file();
    file.write_all(bytes)?;
    file.sync_all()
}

/// The public file's path beside a private file at `path`, where neither name keeps the pair from being written.
fn free_pair(path: &Path) -> Result<PathBuf> {
    let public = path.with_extension("pub");
    if public == path {
        return Err(key_error(path, "the private key cannot end in .pub; that is the public key's name"));
    }
    match public.exists() {
        true => Err(key_error(&public, NO_OVERWRITING)),
        false => Ok(public),
    }
}

/// A file beside `path` that is gone unless it takes its place.
fn unfinished(path: &Path, mode: u32) -> Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tacit-key-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    #[cfg(not(unix))]
    let _ = mode;
    builder.tempfile_in(folder_of(path)).map_err(|error| match error.kind() {
        // The library's words name the unfinished file.
        std::io::ErrorKind::NotFound => {
            key_error(path, "there is no such directory; create it or choose another")
        }
        std::io::ErrorKind::PermissionDenied => {
            key_error(path, "its directory is not writable; choose another")
        }
        kind => key_error(path, std::io::Error::from(kind)),
    })
}

/// Refuses a file with a secret, called `what`, that others than its owner may read, by what is known of the open file.
/// Where files have no modes nothing is refused.
///
/// Errors: [`Error::Key`] with the path.
fn only_for_its_owner(path: &Path, metadata: &Metadata, what: &str) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let reason = format!("others may read this {what} (mode {mode:o}); run chmod 600 on it");
            return Err(key_error(path, reason));
        }
    }
    #[cfg(not(unix))]
    let _ = (path, metadata, what);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_read_beside_its_key_in_a_file_alone() {
        let folder = tempfile::tempdir().unwrap();
        let [key, other] = [(); 2].map(|()| Identity::generate().unwrap().public());
        let path = folder.path().join("key.pub");
        let comment = |text: String| {
            std::fs::write(&path, text).unwrap();
            key.comment_in(&path)
        };
        let named = Some("Lab North".to_owned());
        let line = key.line("Lab  North");
        assert_eq!(comment(line.clone()), named);
        assert_eq!(comment(format!("\u{feff}\n  \n{line}\n{}", other.line("x"))), named);
        assert_eq!(comment(key.line("")), None);
        assert_eq!(comment(other.line("Lab North")), None);
        assert_eq!(comment(format!("{}\n{line}", other.line("x"))), None);
        assert_eq!(comment(format!("{}{line}", " ".repeat(1 << 13))), None);
        assert_eq!(comment(line.replace(PUBLIC_LABEL, PRIVATE_LABEL)), None);
        assert_eq!(key.comment_in(folder.path()), None);
        assert_eq!(key.comment_in(&folder.path().join("none")), None);
        #[cfg(unix)]
        {
            let pipe = folder.path().join("pipe.pub");
            assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            assert_eq!(key.comment_in(&pipe), None);
            assert_eq!(key.comment_in(Path::new("/dev/zero")), None);
        }
    }

    #[test]
    fn a_pair_that_cannot_be_saved_is_told_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        Identity::can_be_saved(&path("new.key")).unwrap();
        assert!(!path("new.key").exists() && std::fs::read_dir(folder.path()).unwrap().next().is_none());
        std::fs::write(path("half.pub"), "").unwrap();
        for (name, words) in [
            ("half.key", "exists already"),
            ("half.pub", "cannot end in .pub"),
            ("no/x.key", "no such directory"),
        ] {
            let error = Identity::can_be_saved(&path(name)).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn signatures_are_of_one_key_use_and_message() {
        let (one, two) = (Identity::generate().unwrap(), Identity::generate().unwrap());
        let signature = one.sign("use", b"message").unwrap();
        let key = PublicKey::from_bytes(one.public().to_bytes());
        assert!(key.verify("use", b"message", &signature));
        assert!(!key.verify("us", b"emessage", &signature) && !key.verify("use", b"messag", &signature));
        assert!(!two.public().verify("use", b"message", &signature));
        assert!(!PublicKey::from_bytes([2; 32]).verify("use", b"message", &signature), "no point");
        for at in 0..SIGNATURE {
            let mut changed = signature;
            changed[at] ^= 1;
            assert!(!key.verify("use", b"message", &changed), "byte {at}");
        }
    }

    #[test]
    fn fingerprints_have_128_bits_and_move_with_every_bit_of_the_key() {
        let of = |key: [u8; 32]| PublicKey(key).fingerprint();
        let zero = of([0; 32]);
        let groups: Vec<&str> = zero.split('-').collect();
        assert_eq!(groups.len(), 8, "{zero}");
        let hex = |group: &&str| group.len() == 4 && group.bytes().all(|c| b"0123456789abcdef".contains(&c));
        assert!(groups.iter().all(hex), "{zero}");
        for bit in 0..256 {
            let mut key = [0; 32];
            key[bit / 8] = 1 << (bit % 8);
            let other = of(key);
            let differ = groups.iter().zip(other.split('-')).filter(|(a, b)| **a != *b).count();
            assert!(differ >= 7, "bit {bit} changes {differ} groups: {zero} {other}");
        }
    }

    /// For such a key a made-up signature verifies on every message, or on one in a few.
    #[test]
    fn a_key_that_is_anybodys_is_none() {
        let minus_one = [&[0xec][..], &[0xff; 30], &[0x7f]].concat();
        let prime = [&[0xed][..], &[0xff; 30], &[0x7f]].concat();
        let one = [&[1][..], &[0; 31]].concat();
        let mut signature = [0; SIGNATURE];
        signature[0] = 1;
        for key in [one, vec![0; 32], minus_one, prime] {
            let key: [u8; 32] = key.try_into().unwrap();
            assert_eq!(PublicKey::from_spki(&PublicKey(key).spki()), None);
            assert!(PublicKey::parse(&PublicKey(key).line("x")).unwrap_err().contains("anyone"));
            let passes = |message: &u8| PublicKey(key).verify("use", &[*message], &signature);
            assert!(!(0..=255).any(|message| passes(&message)), "{key:?}");
        }
        // What it would do: the library by itself takes them.
        let one: [u8; 32] = std::array::from_fn(|at| u8::from(at == 0));
        let by_itself = UnparsedPublicKey::new(&ED25519, &one);
        assert!((0..=255).all(|message: u8| by_itself.verify(&[message], &signature).is_ok()));
    }

    #[test]
    fn public_key_of_rfc_8032_test_1() {
        let seed: [u8; 32] = [
            0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4,
            0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60,
        ];
        let public = Identity::from_seed(Zeroizing::new(seed)).unwrap().public();
        assert_eq!(public.0[..8], [0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7]);
        assert_eq!(PublicKey::from_spki(&public.spki()), Some(public));
    }
}
