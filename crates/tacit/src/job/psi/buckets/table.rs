//! Our keys on disk: told apart, thrown into buckets, and a bucket at a time in memory again.

use super::spill::{DIGEST, Folder, Record, WRITING, Written};
use super::too_little;
use crate::job::Course;
use crate::{Error, Result};
use tacit_crypto::aes::Aes128;
use tacit_crypto::{Block, Prg};
use tacit_data::table::Order;
use tacit_net::Party;
use tacit_store::sealed::array;
use zeroize::Zeroizing;

/// The context in which a key becomes what stands for it.
const KEY: &str = "tacit 1 psi buckets: key";
/// Bytes in front of what stands for a key: the key is real, or padding of this party.
const REAL: u8 = 0;
const PADDING: [u8; 2] = [1, 2];

pub(in crate::job::psi) type Element = [u8; 1 + DIGEST];

/// Hands each row's key to its argument, or that it has none.
pub(super) type Keys<'k> = dyn FnOnce(&mut dyn FnMut(Option<&[u8]>) -> Result<()>) -> Result<()> + Send + 'k;

/// What stands for a key.
pub(in crate::job::psi) struct Digests([u8; 32]);

impl Digests {
    pub(in crate::job::psi) fn new() -> Self {
        Digests(blake3::derive_key(KEY, &[]))
    }

    pub(in crate::job::psi) fn of(&self, key: &[u8]) -> [u8; DIGEST] {
        *blake3::keyed_hash(&self.0, key).as_bytes()
    }
}

/// The permutation by which keys go into buckets, under the key that both sides tossed.
pub(in crate::job::psi) fn thrower(key: &[u8; 32]) -> Aes128 {
    Aes128::new(Block::from(array(&key[..16])))
}

/// What stands for a real key in a bucket.
pub(in crate::job::psi) fn real(digest: &[u8; DIGEST]) -> Element {
    let mut element = [REAL; 1 + DIGEST];
    element[1..].copy_from_slice(digest);
    element
}

/// Fills the `places` that are left with random elements, which match no key and nothing of the other
/// party's.
pub(in crate::job::psi) fn pad(elements: &mut Vec<Element>, places: u64, party: Party, prg: &mut Prg) {
    while (elements.len() as u64) < places {
        let mut element = [PADDING[usize::from(party == Party::Second)]; 1 + DIGEST];
        prg.fill_bytes(&mut element[1..]);
        elements.push(element);
    }
}

/// Into which of so many buckets, a power of two, a key goes: one random permutation for both sides, under a
/// key that was tossed when the keys stood.
pub(in crate::job::psi) fn bucket(permutation: &Aes128, digest: &[u8; DIGEST], buckets: u64) -> u64 {
    permutation.encrypt(Block::from(array(&digest[..16]))).low() & (buckets - 1)
}

/// Our table on disk.
pub(super) struct Table {
    folder: Folder,
    /// Our distinct keys, each with its first row, until they are in buckets.
    distinct: Option<Written>,
    /// Each further row of a key, with the first one in place of the digest.
    twins: Option<Written>,
    /// The buckets, each until it is done.
    buckets: Vec<Option<Written>>,
    pub rows: u64,
    /// Our distinct keys.
    pub own: u64,
    /// Stands for the rows' keys, in their order.
    pub digest: [u8; 32],
}

impl Table {
    /// Reads `keys` into files of `folder`, and leaves out equal ones but for their first row.
    pub(super) fn read(
        mut folder: Folder,
        keys: Box<Keys<'_>>,
        memory: u64,
        course: &Course<'_>,
    ) -> Result<Self> {
        let digests = Digests::new();
        let count = 1 << (memory / 4 / WRITING).clamp(1, 256).ilog2();
        let (mut files, mut rows) = (folder.buckets(count)?, 0);
        let mut order = Order::default();
        keys(&mut |key| {
            let row = rows;
            rows += 1;
            if rows % 65_536 == 0 {
                course.at(0, rows, 0);
            }
            let Some(key) = key else {
                order.add(None);
                return Ok(());
            };
            let record = Record { digest: digests.of(key), row };
            order.add(Some(&record.digest));
            files[usize::from(record.digest[0]) % count as usize].push(&record)
        })?;
        let files = files.into_iter().map(|file| file.finish()).collect::<Result<Vec<_>>>()?;
        let (mut out, mut twins) = (folder.file()?, folder.file()?);
        for file in files {
            if file.count.saturating_mul(size_of::<Record>() as u64) > memory {
                return Err(too_little(rows, memory));
            }
            let mut records = Vec::with_capacity(file.count as usize);
            folder.take(file, |record| {
                records.push(record);
                Ok(())
            })?;
            records.sort_unstable();
            let mut first: Option<Record> = None;
            for record in records {
                match &first {
                    Some(first) if first.digest == record.digest => {
                        let mut of = [0; DIGEST];
                        of[..8].copy_from_slice(&first.row.to_le_bytes());
                        twins.push(&Record { digest: of, row: record.row })?;
                    }
                    _ => {
                        out.push(&record)?;
                        first = Some(record);
                    }
                }
            }
        }
        let (distinct, twins) = (out.finish()?, twins.finish()?);
        let (own, digest) = (distinct.count, order.digest());
        Ok(Table {
            folder,
            distinct: Some(distinct),
            twins: Some(twins),
            buckets: Vec::new(),
            rows,
            own,
            digest,
        })
    }

    /// Throws each key into its bucket. Errors: a bucket with more keys than `places`.
    pub(super) fn spread(&mut self, key: &[u8; 32], buckets: u64, places: u64) -> Result<()> {
        let Some(distinct) = self.distinct.take() else { return Ok(()) };
        let mut files = self.folder.buckets(buckets)?;
        let aes = thrower(key);
        self.folder
            .take(distinct, |record| files[bucket(&aes, &record.digest, buckets) as usize].push(&record))?;
        self.buckets = files.into_iter().map(|file| file.finish().map(Some)).collect::<Result<Vec<_>>>()?;
        if self.buckets.iter().flatten().any(|file| file.count > places) {
            let what = "a bucket overflowed, which happens once in 2^40 runs; run again";
            return Err(Error::Other(what.into()));
        }
        Ok(())
    }

    /// One bucket, with random keys in the places that are left.
    pub(super) fn bucket(&self, number: usize, places: u64, party: Party, prg: &mut Prg) -> Result<Bucket> {
        let file = self.buckets.get(number).and_then(Option::as_ref);
        let file = file.ok_or_else(|| Error::Other(format!("bucket {number} is done already")))?;
        let mut rows = Vec::with_capacity(file.count as usize);
        let mut elements: Zeroizing<Vec<Element>> = Zeroizing::new(Vec::with_capacity(places as usize));
        self.folder.read(file, |record| {
            elements.push(real(&record.digest));
            rows.push(record.row);
            Ok(())
        })?;
        // proof: buckets 2.4, 3.3
        pad(&mut elements, places, party, prg);
        Ok(Bucket { elements, rows })
    }

    /// Whether the bucket is still there.
    pub(super) fn holds(&self, number: usize) -> bool {
        self.buckets.get(number).is_some_and(Option::is_some)
    }

    /// A bucket that is not needed any more.
    pub(super) fn done(&mut self, number: usize) -> Result<()> {
        match self.buckets.get_mut(number).and_then(Option::take) {
            Some(file) => self.folder.remove(file),
            None => Ok(()),
        }
    }

    /// Tells every row whose key an earlier row has, and that row.
    pub(super) fn each_twin(&mut self, mut each: impl FnMut(u64, u64)) -> Result<()> {
        let Some(twins) = self.twins.take() else { return Ok(()) };
        self.folder.take(twins, |twin| {
            each(twin.row, u64::from_le_bytes(array(&twin.digest[..8])));
            Ok(())
        })
    }
}

/// A bucket in memory: its real keys first, whose rows are `rows`.
pub(super) struct Bucket {
    pub elements: Zeroizing<Vec<Element>>,
    pub rows: Vec<u64>,
}
