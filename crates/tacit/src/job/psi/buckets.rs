//! Intersections of sets that are larger than memory: both are thrown into as many buckets on disk, and each
//! bucket is an intersection of its own.
//!
//! 1. Each side reads its keys once. Of a key goes to disk what BLAKE3 makes of it, and its row, into files by
//!    a key of its own; file by file, equal keys are left out but for their first row, and the pairs of rows are
//!    kept.
//! 2. Both announce how many keys are left, and settle the number of buckets; then they toss coins for the
//!    key that says which bucket a key goes into. No set is chosen for it: it is tossed after both
//!    announcements.
//! 3. Each bucket is padded to the [`capacity`] that the set's size alone determines, with random keys that
//!    cannot match: a byte in front says that a key is real, the first party's padding or the second's.
//! 4. Bucket by bucket runs VOLE-PSI, each with a set-up, a salt and coins of its own.
//!
//! The peer learns the sizes of both sets and the result, as without buckets. A cheating peer that learns the
//! result may end the run after some buckets, and has the result of these. In every bucket it can test what
//! the protocol's bound says of its padded size; [`Bucketed::tested`] adds them up.
//!
//! But for 2^-40 no bucket of either side overflows.

mod capacity;
mod spill;

use super::{Job, Protocol, Reveal, Tested};
use crate::job::{Course, Observer, Phase};
use crate::{Error, Result};
use capacity::capacity;
use spill::{DIGEST, Folder, Record, WRITING, Written, bucket};
use std::path::Path;
use std::time::Duration;
use tacit_crypto::commit::{Commitment, Opening, commit, verify};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Prg};
use tacit_net::{Channel, Limits, Party};
use tacit_ot::BaseOt;
use tacit_psi::{paxos, vole_psi};
use tacit_store::sealed;
use zeroize::Zeroizing;

/// Time that the peer may take to read its table and to spread it.
const PEER_READS: Duration = Duration::from_secs(6 * 3600);
/// The most buckets of a run.
pub const MAX_BUCKETS: u64 = 1 << 12;
const MAGIC: [u8; 16] = *b"tacit buckets-01";
/// The context in which a key becomes what stands for it.
const KEY: &str = "tacit 1 psi buckets: key";
/// A bucket of a side overflows once in 2^41 runs at most.
const OVERFLOW_BITS: u32 = 41;
/// Bytes in front of what stands for a key: the key is real, or padding of this party.
const REAL: u8 = 0;
const PADDING: [u8; 2] = [1, 2];
/// Bytes of memory for each record of a bucket, beside the protocol's: the record, its element and its row.
const RECORD_HELD: u64 = 96;

static PHASES: [Phase; 2] = [("reading", "keys", 1.0), ("intersecting", "buckets", 20.0)];

type Element = [u8; 1 + DIGEST];

/// What a run may take of this machine.
#[derive(Clone, Copy, Debug)]
pub struct Disk<'a> {
    /// The folder inside which a run makes its own: 80 bytes a row, and 40 for each place of a bucket.
    pub folder: &'a Path,
    /// Bytes of memory at most.
    pub memory: u64,
    /// At least so many buckets, a power of two; 1 leaves it to the memory.
    pub buckets: u64,
}

impl Disk<'_> {
    /// Refuses a number of buckets that cannot be.
    pub fn check(&self) -> Result<()> {
        if self.buckets.is_power_of_two() && self.buckets <= MAX_BUCKETS {
            return Ok(());
        }
        let what = format!("a power of two from 1 to {MAX_BUCKETS}");
        Err(Error::Parameter { name: "buckets", what })
    }
}

/// What an intersection in buckets gave.
#[derive(Clone, Debug)]
pub struct Bucketed {
    /// For each of our rows whether the peer has its key too; `None` if only the peer learns that.
    pub matches: Option<BitVec>,
    /// How many of our distinct keys the peer has; as above.
    pub common: Option<u64>,
    /// Our distinct keys.
    pub own: u64,
    /// The peer's distinct keys, as announced.
    pub peer: u64,
    /// How many buckets there were.
    pub buckets: u64,
    /// Places in each bucket, ours and the peer's.
    pub places: [u64; 2],
    /// How many keys a cheating peer can have tested over all buckets, padding included; `None` where it got
    /// no result, and where nothing is promised of a peer that deviates.
    pub tested: Option<Tested>,
}

impl Job {
    /// Intersects the keys that `keys` tells one after the other, one a row or none, duplicates among them, with
    /// the peer's, which may be as many as `most_peer_keys`: rows are revealed, by VOLE-PSI. Both sides call it.
    ///
    /// `keys` is called once, with whom to tell. Errors: a job that reveals something else, less memory than
    /// the sets take in [`MAX_BUCKETS`], a folder that cannot be written, what `keys` returns, and those of
    /// [`vole_psi::run`]. Nothing is returned unless every bucket's checks passed, and no file is left.
    pub fn run_in_buckets(
        &self,
        channels: &mut [Channel],
        base: &(dyn BaseOt + Send + Sync),
        keys: impl FnOnce(&mut dyn FnMut(Option<&[u8]>) -> Result<()>) -> Result<()>,
        most_peer_keys: u64,
        disk: &Disk<'_>,
        observer: &dyn Observer,
    ) -> Result<Bucketed> {
        self.check()?;
        if self.reveal != Reveal::Rows {
            let what = "rows alone are revealed in buckets".to_owned();
            return Err(Error::Parameter { name: "reveal", what });
        }
        if self.protocol == Protocol::Paxos {
            let what = "buckets run by vole, not by paxos".to_owned();
            return Err(Error::Parameter { name: "protocol", what });
        }
        disk.check()?;
        let job = Job { protocol: Protocol::Vole, ..self.clone() };
        let course = Course::begin(&PHASES, channels, 0, observer);
        let channel = super::super::first(channels)?;
        let mut prg = Prg::from_os();
        let mut folder = Folder::new(disk.folder, &mut prg)?;
        let Table { distinct, twins, rows } = distinct(&mut folder, &mut prg, keys, disk.memory, &course)?;
        let own = distinct.count;
        // The peer may be reading still.
        let limits = channel.limits();
        channel.set_limits(Limits {
            read: limits.read.max(PEER_READS),
            idle: limits.idle.max(PEER_READS),
            ..limits
        });
        let peer = announce(channel, own)?;
        if peer > most_peer_keys {
            return Err(Error::Peer(format!(
                "the peer has {peer} keys where at most {most_peer_keys} may be"
            )));
        }
        // Both send before either may refuse, so that the peer does not wait for a side that has ended.
        let wanted = job.buckets(own, peer, disk);
        let buckets = agree(channel, wanted.unwrap_or(MAX_BUCKETS))?.max(disk.buckets);
        let wanted = wanted.ok_or_else(|| too_little(own, disk.memory))?;
        if buckets < wanted || buckets.saturating_mul(WRITING) > disk.memory / 2 {
            return Err(too_little(own, disk.memory));
        }
        let key = toss(channel, &mut prg, [own, peer], buckets)?;
        let files = spread(&mut folder, distinct, &key, buckets)?;
        let places = [own, peer].map(|count| capacity(count, buckets, OVERFLOW_BITS));
        if files.iter().any(|file| file.count > places[0]) {
            return Err(Error::Other(
                "a bucket overflowed, which happens once in 2^40 runs; run again".into(),
            ));
        }
        let mut matches = BitVec::zeros(usize::try_from(rows).unwrap_or(usize::MAX));
        let options =
            paxos::Options { learns: job.learns, security: job.security, max_peer_elements: places[1], base };
        let (mut tested, mut common) = (None, 0);
        for (number, file) in files.into_iter().enumerate() {
            course.at(1, number as u64, buckets);
            let bucket = Bucket::read(&folder, file, places[0], channel.party(), &mut prg)?;
            let outcome = vole_psi::run(channel, &mut prg, &bucket.elements, &options, &mut |_, _, _| {})?;
            if outcome.peer_elements != places[1] {
                return Err(Error::Peer(format!(
                    "the peer's bucket has {} keys instead of {}: it announced {peer} keys and has others",
                    outcome.peer_elements, places[1]
                )));
            }
            if number == 0 {
                channel.set_limits(limits);
            }
            common += outcome.matches.as_ref().map_or(0, Vec::len) as u64;
            for index in outcome.matches.iter().flatten() {
                if let Some(row) = bucket.rows.get(*index as usize) {
                    matches.set(*row as usize, true);
                }
            }
            let bound = job.tested(&outcome, places[0])?;
            tested = match (tested, bound) {
                (Some(all), Some(one)) => Some(added(all, one)),
                (all, one) => all.or(one),
            };
        }
        course.at(1, buckets, buckets);
        folder.take(twins, |twin| {
            let first = u64::from_le_bytes(sealed::array(&twin.digest[..8])) as usize;
            matches.set(twin.row as usize, matches.get(first));
            Ok(())
        })?;
        let ours = job.learns != super::Learns::Peer;
        let (matches, common) = (ours.then_some(matches), ours.then_some(common));
        Ok(Bucketed { matches, common, own, peer, buckets, places, tested })
    }

    /// The fewest buckets with which a run with so many keys keeps to the memory, and no fewer than were asked
    /// for; nothing if [`MAX_BUCKETS`] are too few.
    pub fn buckets(&self, own: u64, peer: u64, disk: &Disk<'_>) -> Option<u64> {
        let fits = |buckets: &u64| {
            let [ours, theirs] = [own, peer].map(|count| capacity(count, *buckets, OVERFLOW_BITS));
            let most = super::MAX_ELEMENTS as u64;
            ours.max(theirs) <= most
                && self.memory(ours, theirs).saturating_add(RECORD_HELD * ours).saturating_add(own / 8)
                    <= disk.memory
        };
        (0..=MAX_BUCKETS.ilog2()).map(|log2| 1 << log2).filter(|b| *b >= disk.buckets).find(fits)
    }
}

fn added(all: Tested, one: Tested) -> Tested {
    Tested { likely: all.likely.saturating_add(one.likely), most: all.most.saturating_add(one.most), ..all }
}

fn too_little(keys: u64, memory: u64) -> Error {
    let what = format!("{memory} bytes do not suffice for {keys} keys and the peer's; give more");
    Error::Parameter { name: "memory", what }
}

/// Our table on disk.
struct Table {
    /// Our distinct keys, each with its first row.
    distinct: Written,
    /// Of each other row of a key, it and the first, which stands where keys have their digest.
    twins: Written,
    rows: u64,
}

/// Step 1: our distinct keys.
fn distinct(
    folder: &mut Folder,
    prg: &mut Prg,
    keys: impl FnOnce(&mut dyn FnMut(Option<&[u8]>) -> Result<()>) -> Result<()>,
    memory: u64,
    course: &Course<'_>,
) -> Result<Table> {
    let mut apart = Zeroizing::new([0; 32]);
    prg.fill_bytes(apart.as_mut_slice());
    let count = 1 << (memory / 4 / WRITING).clamp(1, 256).ilog2();
    let (mut files, mut rows) = (folder.buckets(count)?, 0);
    keys(&mut |key| {
        let row = rows;
        rows += 1;
        if rows % 65_536 == 0 {
            course.at(0, rows, 0);
        }
        let Some(key) = key else { return Ok(()) };
        let record = Record { digest: blake3::derive_key(KEY, key), row };
        files[bucket(&apart, &record.digest, count) as usize].push(&record)
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
    Ok(Table { distinct: out.finish()?, twins: twins.finish()?, rows })
}

/// Step 2: both sides' numbers of keys; returns the peer's.
fn announce(channel: &mut Channel, own: u64) -> Result<u64> {
    channel.send(&MAGIC)?;
    channel.send_u64(own)?;
    channel.flush()?;
    let mut magic = [0; 16];
    channel.recv(&mut magic)?;
    if magic != MAGIC {
        let what = "the peer does not run this version of buckets; use one release on both sides";
        return Err(Error::Peer(what.into()));
    }
    Ok(channel.recv_u64()?)
}

/// The more of both sides' wanted numbers of buckets.
fn agree(channel: &mut Channel, wanted: u64) -> Result<u64> {
    channel.send_u64(wanted)?;
    channel.flush()?;
    let theirs = channel.recv_u64()?;
    if !theirs.is_power_of_two() || theirs > MAX_BUCKETS {
        return Err(Error::Peer(format!("the peer asks for {theirs} buckets, which is no number of them")));
    }
    Ok(wanted.max(theirs))
}

/// A key that neither side chose, bound to the session and to what was announced.
fn toss(channel: &mut Channel, prg: &mut Prg, [own, peer]: [u64; 2], buckets: u64) -> Result<[u8; 32]> {
    let first = channel.party() == Party::First;
    let [one, two] = if first { [own, peer] } else { [peer, own] };
    let mut transcript = Transcript::new("tacit psi buckets v1");
    transcript.append("session", &channel.session_id().0);
    transcript.append_u64("instance", channel.next_instance());
    transcript.append_u64("keys of the first", one);
    transcript.append_u64("keys of the second", two);
    transcript.append_u64("buckets", buckets);
    let mut context = [0; 32];
    transcript.clone().challenge_bytes("coin", &mut context);
    let (mut mine, mut theirs) = ([0; 32], [0; 32]);
    prg.fill_bytes(&mut mine);
    if first {
        let (commitment, opening) = commit(&context, &mine, prg);
        channel.send(&commitment.0)?;
        channel.flush()?;
        channel.recv(&mut theirs)?;
        channel.send(&mine)?;
        channel.send(&opening.0)?;
        channel.flush()?;
    } else {
        let mut commitment = Commitment([0; 32]);
        channel.recv(&mut commitment.0)?;
        channel.send(&mine)?;
        channel.flush()?;
        let mut opening = Opening(Default::default());
        channel.recv(&mut theirs)?;
        channel.recv(&mut opening.0)?;
        if !verify(&context, &theirs, &commitment, &opening) {
            return Err(Error::Peer(
                "the peer's coin is not the one that it committed to; it cheated".into(),
            ));
        }
    }
    let [one, two] = if first { [mine, theirs] } else { [theirs, mine] };
    transcript.append("coin of the first", &one);
    transcript.append("coin of the second", &two);
    let mut key = [0; 32];
    transcript.challenge_bytes("key", &mut key);
    Ok(key)
}

/// Step 3: each key into its bucket.
fn spread(folder: &mut Folder, from: Written, key: &[u8; 32], buckets: u64) -> Result<Vec<Written>> {
    let mut files = folder.buckets(buckets)?;
    folder.take(from, |record| files[bucket(key, &record.digest, buckets) as usize].push(&record))?;
    files.into_iter().map(|file| file.finish()).collect()
}

/// A bucket in memory: its real keys first, whose rows are `rows`.
struct Bucket {
    elements: Zeroizing<Vec<Element>>,
    rows: Vec<u64>,
}

impl Bucket {
    fn read(folder: &Folder, file: Written, places: u64, party: Party, prg: &mut Prg) -> Result<Self> {
        let mut rows = Vec::with_capacity(file.count as usize);
        let mut elements: Zeroizing<Vec<Element>> = Zeroizing::new(Vec::with_capacity(places as usize));
        folder.take(file, |record| {
            let mut element = [REAL; 1 + DIGEST];
            element[1..].copy_from_slice(&record.digest);
            elements.push(element);
            rows.push(record.row);
            Ok(())
        })?;
        while (elements.len() as u64) < places {
            let mut element = [PADDING[usize::from(party == Party::Second)]; 1 + DIGEST];
            prg.fill_bytes(&mut element[1..]);
            elements.push(element);
        }
        Ok(Bucket { elements, rows })
    }
}
