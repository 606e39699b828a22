//! The publisher's private file: the key of a publication, sealed, and how many queries it has answered for
//! whom.
//!
//! A charge is on the disk before its queries are answered. It is an entry of a journal, whose authentication
//! goes on from the entry before, so that none can be changed, moved or left out; and the number of entries
//! stands in two slots, written in turn, so that none can be cut off. A crash between the two leaves one
//! entry more than the slots know: it counts, and whoever opens the file next writes the slot. What no file can notice is an older copy of itself that is
//! put back, by a backup for instance.
//!
//! Layout, little-endian: `tacitprf`, version (4), zeros (4), the publication's header (368), its digest
//! (32), salt (32), check of the key (32), the secret sealed (32 + 16), BLAKE3 of all that (32); at 4096 and
//! 8192 a slot: number of entries (8) and its authentication (32); from 12,288 on the journal: client (32),
//! queries (8), chain (32).

use super::PRIVATE_MAGIC;
use super::rfc9497::ServerKey;
use super::tags::{HEADER, Publication, Published};
use crate::{Error, Result};
use std::collections::HashMap;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use subtle::ConstantTimeEq;
use tacit_crypto::Prg;
use tacit_store::sealed::{FileError, FileKey, Keys, Locked, Purpose, TAG, array, io_fault};

const VERSION: u32 = 1;
const DIGEST_AT: usize = 16 + HEADER;
const SALT: usize = DIGEST_AT + 32;
const CHECK: usize = SALT + 32;
const SECRET: usize = CHECK + 32;
const BODY: usize = SECRET + 32 + TAG;
const SLOTS: [u64; 2] = [4096, 8192];
const SLOT: usize = 8 + 32;
const JOURNAL: u64 = 12_288;
const ENTRY: usize = 32 + 8 + 32;
const PURPOSE: Purpose = Purpose {
    sealing: "tacit 1 oprf: sealing",
    mac: "tacit 1 oprf: counts",
    check: "tacit 1 oprf: check of the key",
};

/// What names a client to the counts; see [`client`].
pub type Client = [u8; 32];

/// The client of this name; all that have none are one.
pub fn client(name: Option<&str>) -> Client {
    let mut hasher = blake3::Hasher::new_derive_key("tacit 2026 client of an oblivious function v1");
    hasher.update(&[u8::from(name.is_some())]).update(name.unwrap_or_default().as_bytes());
    *hasher.finalize().as_bytes()
}

/// An open private file. No other process can open it meanwhile.
pub struct Private {
    file: Locked,
    keys: Keys,
    key: ServerKey,
    publication: Publication,
    digest: [u8; 32],
    entries: u64,
    chain: [u8; 32],
    answered: u64,
    clients: HashMap<Client, u64>,
}

impl std::fmt::Debug for Private {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Private({} entries, [secret])", self.entries)
    }
}

/// Writes the private file of a fresh publication to `out`, which starts empty, sealed with `seal`.
pub fn create<W: Write + Seek>(
    out: &mut W,
    published: &Published,
    seal: &FileKey,
    prg: &mut Prg,
) -> Result<()> {
    let mut salt = [0; 32];
    prg.fill_bytes(&mut salt);
    let keys = Keys::new(seal, &salt, &PURPOSE)?;
    let mut header = PRIVATE_MAGIC.to_vec();
    header.extend_from_slice(&VERSION.to_le_bytes());
    header.extend_from_slice(&[0; 4]);
    header.extend_from_slice(&published.publication.to_bytes());
    header.extend_from_slice(&published.digest);
    header.extend_from_slice(&salt);
    header.extend_from_slice(&keys.check);
    let mut sealed = published.key.to_bytes();
    let tag = keys.seal(0, 0, &header, sealed.as_mut_slice())?;
    header.extend_from_slice(sealed.as_slice());
    header.extend_from_slice(&tag);
    let hash = blake3::hash(&header);
    header.extend_from_slice(hash.as_bytes());
    let id = &published.publication.id;
    let chain = start_of_chain(&keys, id);
    let mut write = |at: u64, bytes: &[u8]| {
        out.seek(SeekFrom::Start(at)).and_then(|_| out.write_all(bytes)).map_err(io_fault("written"))
    };
    write(0, &header)?;
    for (copy, at) in SLOTS.into_iter().enumerate() {
        write(at, &slot(&keys, id, copy, 0, &chain))?;
    }
    write(JOURNAL - 1, &[0])?;
    Ok(())
}

fn start_of_chain(keys: &Keys, id: &[u8; 32]) -> [u8; 32] {
    *blake3::Hasher::new_keyed(&keys.mac).update(b"start").update(id).finalize().as_bytes()
}

/// What follows `chain` with the entry `number` of these queries.
fn next(keys: &Keys, chain: &[u8; 32], number: u64, client: &Client, queries: u64) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_keyed(&keys.mac);
    hasher.update(b"entry").update(chain).update(&number.to_le_bytes());
    *hasher.update(client).update(&queries.to_le_bytes()).finalize().as_bytes()
}

fn slot(keys: &Keys, id: &[u8; 32], copy: usize, entries: u64, chain: &[u8; 32]) -> [u8; SLOT] {
    let mut hasher = blake3::Hasher::new_keyed(&keys.mac);
    hasher.update(b"slot").update(id).update(&[copy as u8]).update(&entries.to_le_bytes()).update(chain);
    let mut out = [0; SLOT];
    out[..8].copy_from_slice(&entries.to_le_bytes());
    out[8..].copy_from_slice(hasher.finalize().as_bytes());
    out
}

const fn damaged(what: &'static str) -> FileError {
    FileError::Damaged { what }
}

impl Private {
    /// Opens the file at `path` with the key that it was sealed with, and checks all of it.
    ///
    /// Errors: [`FileError`], which names what is wrong with file or key, or that another process has it.
    pub fn open(path: &Path, seal: &FileKey) -> Result<Self> {
        let file = Locked::open(path)?;
        let mut start = [0; BODY + 32];
        let other = || FileError::Other {
            wanted: "private file of a publication of tags",
            command: "tacit tags publish",
        };
        file.read_at(0, &mut start).map_err(|e| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => other(),
            _ => io_fault("read")(e),
        })?;
        if start[..8] != PRIVATE_MAGIC {
            return Err(other().into());
        }
        let found = u32::from_le_bytes(array(&start[8..12]));
        if found != VERSION {
            return Err(FileError::Version { found, known: VERSION }.into());
        }
        if blake3::hash(&start[..BODY]).as_bytes()[..] != start[BODY..] {
            return Err(damaged("header").into());
        }
        let publication = Publication::parse(&array(&start[16..DIGEST_AT])).map_err(|_| damaged("header"))?;
        let keys = Keys::new(seal, &array(&start[SALT..CHECK]), &PURPOSE)?;
        if !bool::from(keys.check.as_slice().ct_eq(&start[CHECK..SECRET])) {
            return Err(FileError::WrongKey.into());
        }
        let (context, sealed) = start[..BODY].split_at_mut(SECRET);
        let secret = zeroize::Zeroizing::new(array(keys.open(0, 0, context, sealed, "header")?));
        zeroize::Zeroize::zeroize(sealed);
        let key = ServerKey::from_bytes(&secret).filter(|key| *key.public() == publication.public);
        let key = key.ok_or(damaged("header"))?;
        let chain = start_of_chain(&keys, &publication.id);
        let digest = array(&start[DIGEST_AT..SALT]);
        let (entries, answered, clients) = (0, 0, HashMap::new());
        let mut private = Private { file, keys, key, publication, digest, entries, chain, answered, clients };
        private.replay()?;
        Ok(private)
    }

    /// Goes through the journal, as far as the slots know and one entry further.
    fn replay(&mut self) -> Result<()> {
        let mut slots = [[0; SLOT]; 2];
        for (slot, at) in slots.iter_mut().zip(SLOTS) {
            self.file.read_at(at, slot).map_err(io_fault("read"))?;
        }
        let mut file = &*self.file;
        file.seek(SeekFrom::Start(JOURNAL)).map_err(io_fault("read"))?;
        let mut journal = BufReader::new(file);
        // The greatest number of entries that a whole slot vouches for.
        let mut vouched = self.vouched(&slots);
        let mut entry = [0; ENTRY];
        let mut charges = Vec::new();
        while journal.read_exact(&mut entry).is_ok() {
            let (client, queries) = (array(&entry[..32]), u64::from_le_bytes(array(&entry[32..40])));
            let chain = next(&self.keys, &self.chain, self.entries, &client, queries);
            if !bool::from(chain.ct_eq(&array::<32>(&entry[40..]))) {
                break;
            }
            (self.chain, self.entries) = (chain, self.entries + 1);
            charges.push((client, queries));
            vouched = vouched.max(self.vouched(&slots));
        }
        // More than one entry ahead is no crash, but an older slot put back; fewer, a journal cut short.
        if vouched.is_none_or(|vouched| self.entries > vouched + 1) || self.claims_more(&slots) {
            return Err(damaged("counts of queries").into());
        }
        for (client, queries) in charges {
            self.count(client, queries);
        }
        // A second crash at the same point would else leave two entries ahead, and look like an older slot.
        if vouched != Some(self.entries) {
            self.vouch(self.entries, &self.chain.clone())?;
        }
        Ok(())
    }

    /// The number of entries read so far, if a slot says so.
    fn vouched(&self, slots: &[[u8; SLOT]; 2]) -> Option<u64> {
        let mut copies = slots.iter().enumerate();
        let whole = copies.any(|(copy, found)| {
            let expected = slot(&self.keys, &self.publication.id, copy, self.entries, &self.chain);
            found.ct_eq(&expected).into()
        });
        whole.then_some(self.entries)
    }

    /// Whether a slot names more entries than the journal has. One that a crash tore names none that can be
    /// trusted, but the write that was torn is of the number after the other slot's, and its entry is in the
    /// journal.
    fn claims_more(&self, slots: &[[u8; SLOT]; 2]) -> bool {
        slots.iter().any(|slot| u64::from_le_bytes(array(&slot[..8])) > self.entries)
    }

    fn count(&mut self, client: Client, queries: u64) {
        self.answered += queries;
        *self.clients.entry(client).or_default() += queries;
    }

    /// The facts on the publication.
    pub fn publication(&self) -> &Publication {
        &self.publication
    }

    /// The digest of the publication's file of tags.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// Queries answered so far, of all clients.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    /// Clients that have asked.
    pub fn clients(&self) -> usize {
        self.clients.len()
    }

    /// How many more queries the terms leave `client` of its own. Nothing of what others asked is in it: it is
    /// what the client is told.
    pub fn left(&self, client: &Client) -> u64 {
        let asked = self.clients.get(client).copied().unwrap_or(0);
        self.publication.terms.per_client.saturating_sub(asked)
    }

    /// Whether the key's lifetime has so many queries left, for all clients together.
    pub fn lasts(&self, queries: u64) -> bool {
        queries <= self.publication.terms.lifetime.saturating_sub(self.answered)
    }

    pub(super) fn key(&self) -> &ServerKey {
        &self.key
    }

    /// Counts `queries` for `client`, on the disk; only when this has returned may they be answered.
    ///
    /// Errors: [`Error::TooManyQueries`] if they are more than the client has left, [`Error::Outlived`] if they
    /// are more than the key has, and then nothing is counted; or the file's.
    pub fn charge(&mut self, client: &Client, queries: u64) -> Result<()> {
        let left = self.left(client);
        if queries > left {
            return Err(Error::TooManyQueries { asked: queries, left });
        }
        if !self.lasts(queries) {
            return Err(Error::Outlived { asked: queries });
        }
        if queries == 0 {
            return Ok(());
        }
        let chain = next(&self.keys, &self.chain, self.entries, client, queries);
        let mut entry = [0; ENTRY];
        entry[..32].copy_from_slice(client);
        entry[32..40].copy_from_slice(&queries.to_le_bytes());
        entry[40..].copy_from_slice(&chain);
        let at = JOURNAL + self.entries * ENTRY as u64;
        self.file.write_at(at, &entry).map_err(io_fault("counted on"))?;
        let entries = self.entries + 1;
        self.vouch(entries, &chain)?;
        (self.chain, self.entries) = (chain, entries);
        self.count(*client, queries);
        Ok(())
    }

    /// Writes the slot for so many entries, the last of which ends in `chain`.
    fn vouch(&mut self, entries: u64, chain: &[u8; 32]) -> Result<()> {
        let copy = (entries % 2) as usize;
        let slot = slot(&self.keys, &self.publication.id, copy, entries, chain);
        Ok(self.file.write_at(SLOTS[copy], &slot).map_err(io_fault("counted on"))?)
    }
}

#[cfg(test)]
#[path = "private_tests.rs"]
mod tests;
