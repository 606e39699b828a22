//! How far a run in buckets is: in memory, and where it shall outlive the process, in a folder of its own.
//!
//! The folder holds results and what was settled, never randomness of a protocol: `plan` (the bucket key, the
//! sizes, whose run it is), `tosses` (how often that was begun to be settled), `progress` (how often each bucket
//! was begun, and how the run ended) and a file for each bucket that is done, with the rows that matched and as
//! much besides that its size tells nothing of them. All are sealed with the caller's key; what
//! changes is written beside its place and renamed.

use super::MAX_BUCKETS;
use super::kept::{Form, LOCK, Sealed, UNFINISHED, damaged, hold, lasting_folder, refused};
use super::spill::private_file;
use crate::{Error, Result};
use std::fs::File;
use std::path::Path;
use tacit_crypto::Prg;
use tacit_store::sealed::{FileKey, Purpose, array};

static FORM: Form = Form {
    magic: *b"tacit resume 02\n",
    purpose: Purpose {
        sealing: "tacit 1 psi resume: sealing",
        mac: "tacit 1 psi resume: mac",
        check: "tacit 1 psi resume: check",
    },
};
/// Names in the folder; those of buckets' files end in their number, those that are not whole yet in `.part`.
const PLAN: &str = "plan";
const PROGRESS: &str = "progress";
const TOSSES: &str = "tosses";
const RESULT: &str = "result";
const OF_BUCKET: &str = "bucket-";

/// Takes the place of a row that does not match.
const NO_ROW: u64 = u64::MAX;

/// What both sides settled before the first bucket.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::job::psi) struct Plan {
    /// Names the run; both sides have the same.
    pub name: [u8; 32],
    /// Says which bucket a key goes into.
    pub key: [u8; 32],
    pub own: u64,
    pub peer: u64,
    pub buckets: u64,
}

/// Where a run keeps what it takes to go on after its process has ended, and whose run it is.
#[derive(Clone, Copy, Debug)]
pub struct Resume<'a> {
    /// A folder of its own, which is made. The files in it are sealed.
    pub folder: &'a Path,
    /// What they are sealed with.
    pub key: &'a FileKey,
    /// Names the peer: another one is refused.
    pub peer: &'a str,
}

impl Resume<'_> {
    /// Whether a run is kept there already.
    pub fn is_begun(&self) -> bool {
        self.folder.join(PLAN).exists()
    }

    /// Refuses a folder in which nothing can be kept; leaves none that was not there.
    pub(super) fn admit(&self) -> Result<()> {
        if self.folder.is_dir() {
            let _held = hold(self.folder, IN_USE)?;
            // Its lock may open where nothing can be made any more.
            let probe = self.folder.join("probe");
            let _ = std::fs::remove_dir(&probe);
            lasting_folder(&probe)?;
            return std::fs::remove_dir(&probe)
                .map_err(|source| Error::file(&probe, "cannot be removed", source));
        }
        lasting_folder(self.folder)?;
        std::fs::remove_dir(self.folder)
            .map_err(|source| Error::file(self.folder, "cannot be removed", source))
    }

    /// Notes that the result is about to be where it belongs: after a crash it may be there already.
    pub fn note_result(&self) -> Result<()> {
        if !Self::may_have_result(self.folder) {
            private_file(&self.folder.join(RESULT))?;
        }
        Ok(())
    }

    /// Whether the result of the run that is kept in `folder` may be where it belongs already.
    pub fn may_have_result(folder: &Path) -> bool {
        folder.join(RESULT).exists()
    }

    /// Removes what is kept, after the result is where it belongs. Errors: a file that cannot be removed.
    pub fn forget(&self) -> Result<()> {
        let failed = |path: &Path, source| Error::file(path, "cannot be removed", source);
        for name in ours(self.folder)? {
            let path = self.folder.join(name);
            std::fs::remove_file(&path).map_err(|source| failed(&path, source))?;
        }
        // One that holds something else was somebody's before, and stays.
        let _ = std::fs::remove_dir(self.folder);
        Ok(())
    }
}

const IN_USE: &str = "another process is continuing the run stored there";

/// The names of our files in `folder`, the note on the result first and the lock last; none if there is no
/// such folder.
fn ours(folder: &Path) -> Result<Vec<String>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(Error::file(folder, "cannot be listed", source)),
    };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let is_ours = |name: &String| {
        let whole = name.strip_suffix(UNFINISHED).unwrap_or(name);
        [PLAN, PROGRESS, TOSSES, LOCK, RESULT].contains(&whole) || number_of(whole).is_some()
    };
    let mut names: Vec<String> = names.filter(is_ours).collect();
    names.sort_by_key(|name| (name != RESULT, name == LOCK));
    Ok(names)
}

/// The bucket whose result a file of this name holds.
fn number_of(name: &str) -> Option<usize> {
    name.strip_prefix(OF_BUCKET)?.parse().ok().filter(|number| (*number as u64) < MAX_BUCKETS)
}

/// Why a run will not go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::job::psi) enum End {
    /// A check of what the peer did failed, or it said something that no honest peer says.
    Cheated,
    /// A bucket was begun as often as one may be.
    Attempts,
    /// The peer said that the run has ended there.
    There,
}

impl End {
    pub(in crate::job::psi) const ALL: [End; 3] = [End::Cheated, End::Attempts, End::There];

    pub(in crate::job::psi) fn words(self) -> &'static str {
        match self {
            End::Cheated => {
                "a check failed: the peer, or someone between the two sides, does not follow the protocol"
            }
            End::Attempts => "the connection was lost too often in one bucket, or while buckets were settled",
            End::There => "the other side ended it; see its output",
        }
    }
}

/// How far a run is.
pub(super) struct Checkpoint<'a> {
    pub plan: Option<Plan>,
    /// How often the coins for a plan were tossed, or begun to be.
    pub tosses: u8,
    /// How often each bucket was begun.
    pub begun: Vec<u8>,
    /// How many keys were common in each bucket that is done.
    done: Vec<Option<u64>>,
    /// Whether the peer gets a result, so far as a bucket has told.
    pub peer_received: bool,
    /// The peer has said that all its buckets are done.
    pub confirmed: bool,
    pub ended: Option<End>,
    kept: Option<Kept<'a>>,
}

/// The folder of a run.
struct Kept<'a> {
    folder: &'a Path,
    key: &'a FileKey,
    /// Stands for job, peer and input.
    of: [[u8; 32]; 3],
    _lock: File,
}

impl<'a> Checkpoint<'a> {
    /// Of a run that ends with this process.
    pub(super) fn in_memory() -> Self {
        Checkpoint {
            plan: None,
            tosses: 0,
            begun: Vec::new(),
            done: Vec::new(),
            peer_received: false,
            confirmed: false,
            ended: None,
            kept: None,
        }
    }

    /// Of a run that is kept as `resume` says: as far as it went, or a new one. `job` and `input` are
    /// digests.
    ///
    /// Errors: a folder that another process uses, or that holds the run of another job, peer or input, or
    /// files that do not open.
    pub(super) fn load(resume: &Resume<'a>, job: [u8; 32], input: [u8; 32]) -> Result<Self> {
        let folder = resume.folder;
        lasting_folder(folder)?;
        let lock = hold(folder, IN_USE)?;
        let peer = *blake3::hash(resume.peer.as_bytes()).as_bytes();
        let kept = Kept { folder, key: resume.key, of: [job, peer, input], _lock: lock };
        let mut checkpoint = Checkpoint { kept: None, ..Self::in_memory() };
        let names = ours(kept.folder)?;
        for name in names.iter().filter(|name| name.ends_with(UNFINISHED)) {
            let _ = std::fs::remove_file(kept.folder.join(name));
        }
        if names.iter().any(|name| name == PLAN) {
            checkpoint.read(&kept, &names)?;
        }
        if names.iter().any(|name| name == TOSSES) {
            let &[tosses] = &kept.read(TOSSES)?[..] else { return Err(damaged(folder)) };
            checkpoint.tosses = tosses;
        }
        checkpoint.kept = Some(kept);
        Ok(checkpoint)
    }

    fn read(&mut self, kept: &Kept<'_>, names: &[String]) -> Result<()> {
        let bytes = kept.read(PLAN)?;
        let Some((fields, rest)) = bytes.as_chunks::<32>().0.split_at_checked(5) else {
            return Err(damaged(kept.folder));
        };
        let &[job, peer, input, name, key] = fields else { return Err(damaged(kept.folder)) };
        for (ours, theirs, what) in [
            (kept.of[0], job, "the run stored there is another job, or has other options"),
            (kept.of[1], peer, "the run stored there is with another peer"),
            (kept.of[2], input, "the input has other keys than when the run stored there started"),
        ] {
            if ours != theirs {
                return Err(refused(kept.folder, what));
            }
        }
        let Some(&[sizes]) = rest.get(..1) else { return Err(damaged(kept.folder)) };
        let size = |at: usize| u64::from_le_bytes(array(&sizes[8 * at..8 * at + 8]));
        let plan = Plan { name, key, own: size(0), peer: size(1), buckets: size(2) };
        if !plan.buckets.is_power_of_two() || plan.buckets > MAX_BUCKETS {
            return Err(damaged(kept.folder));
        }
        let count = plan.buckets as usize;
        self.plan = Some(plan);
        self.begun = vec![0; count];
        self.done = vec![None; count];
        if names.iter().any(|name| name == PROGRESS) {
            let bytes = kept.read(PROGRESS)?;
            let Some((&[received, confirmed, ended], begun)) = bytes.split_first_chunk::<3>() else {
                return Err(damaged(kept.folder));
            };
            if begun.len() != count {
                return Err(damaged(kept.folder));
            }
            (self.peer_received, self.confirmed) = (received == 1, confirmed == 1);
            self.ended = End::ALL.get(usize::from(ended).wrapping_sub(1)).copied();
            self.begun.copy_from_slice(begun);
        }
        for number in names.iter().filter_map(|name| number_of(name)).filter(|number| *number < count) {
            self.done[number] = Some(kept.rows(number)?.len() as u64);
        }
        Ok(())
    }

    /// Coins are about to be tossed: counted on the disk before it begins.
    pub(super) fn toss(&mut self, prg: &mut Prg) -> Result<()> {
        self.tosses += 1;
        match &self.kept {
            Some(kept) => kept.write(TOSSES, &[self.tosses], prg),
            None => Ok(()),
        }
    }

    /// Keeps what both sides settled.
    pub(super) fn settle(&mut self, plan: Plan, prg: &mut Prg) -> Result<()> {
        let count = plan.buckets as usize;
        (self.begun, self.done) = (vec![0; count], vec![None; count]);
        (self.peer_received, self.confirmed) = (false, false);
        if let Some(kept) = &self.kept {
            let mut sizes = [0; 32];
            for (at, size) in [plan.own, plan.peer, plan.buckets].into_iter().enumerate() {
                sizes[8 * at..8 * at + 8].copy_from_slice(&size.to_le_bytes());
            }
            let [job, peer, input] = kept.of;
            // A plan that is there already was of a run in which no bucket began.
            let _ = std::fs::remove_file(kept.folder.join(PROGRESS));
            kept.write(PLAN, &[job, peer, input, plan.name, plan.key, sizes].concat(), prg)?;
        }
        self.plan = Some(plan);
        Ok(())
    }

    /// Forces how often buckets were begun, and the rest, to the disk.
    pub(super) fn save(&self, prg: &mut Prg) -> Result<()> {
        let Some(kept) = &self.kept else { return Ok(()) };
        let ended = self.ended.and_then(|end| End::ALL.iter().position(|known| *known == end));
        let ended = ended.map_or(0, |at| at as u8 + 1);
        let head = [u8::from(self.peer_received), u8::from(self.confirmed), ended];
        kept.write(PROGRESS, &[&head[..], &self.begun].concat(), prg)
    }

    /// The bucket, which has `rows` and more places, gave these marks: of rows that match 1, else 0.
    pub(super) fn done(&mut self, number: usize, rows: &[u64], marks: &[u8], prg: &mut Prg) -> Result<()> {
        if let Some(kept) = &self.kept {
            // An entry for each place, whatever matches.
            let row = |(at, mark): (usize, &u8)| {
                rows.get(at).copied().unwrap_or(NO_ROW) | u64::from(*mark).wrapping_sub(1)
            };
            let bytes: Vec<u8> = marks.iter().enumerate().map(row).flat_map(u64::to_le_bytes).collect();
            kept.write(&format!("{OF_BUCKET}{number:06}"), &bytes, prg)?;
        }
        let common: u64 = marks.iter().take(rows.len()).map(|mark| u64::from(*mark)).sum();
        self.done[number] = Some(common);
        Ok(())
    }

    /// As if the bucket's end had never been seen.
    #[cfg(test)]
    pub(super) fn forget(&mut self, number: usize) {
        (self.done[number], self.confirmed) = (None, false);
    }

    /// For each bucket whether it is done.
    pub(super) fn are_done(&self) -> Vec<bool> {
        self.done.iter().map(Option::is_some).collect()
    }

    /// Whether a plan was settled and all its buckets are done.
    pub(super) fn is_complete(&self) -> bool {
        self.plan.is_some() && self.done.iter().all(Option::is_some)
    }

    /// How many keys are common.
    pub(super) fn common(&self) -> u64 {
        self.done.iter().flatten().sum()
    }

    /// Tells the rows of all buckets that were done when this process began.
    pub(super) fn each_row(&self, mut each: impl FnMut(u64)) -> Result<()> {
        let Some(kept) = &self.kept else { return Ok(()) };
        for number in (0..self.done.len()).filter(|number| self.done[*number].is_some()) {
            kept.rows(number)?.into_iter().for_each(&mut each);
        }
        Ok(())
    }
}

impl Kept<'_> {
    fn rows(&self, number: usize) -> Result<Vec<u64>> {
        let bytes = self.read(&format!("{OF_BUCKET}{number:06}"))?;
        let (rows, rest) = bytes.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(damaged(self.folder));
        }
        Ok(rows.iter().map(|row| u64::from_le_bytes(*row)).filter(|row| *row != NO_ROW).collect())
    }

    /// What binds a file to its name and to the run's job, peer and input.
    fn context(&self, name: &str) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(name.as_bytes());
        if name != PLAN {
            self.of.iter().for_each(|digest| _ = hasher.update(digest));
        }
        *hasher.finalize().as_bytes()
    }

    fn sealed(&self) -> Sealed<'_> {
        Sealed { folder: self.folder, key: self.key, form: &FORM }
    }

    fn write(&self, name: &str, bytes: &[u8], prg: &mut Prg) -> Result<()> {
        self.sealed().write(name, self.context(name), bytes, prg)
    }

    fn read(&self, name: &str) -> Result<Vec<u8>> {
        self.sealed().read(name, self.context(name))
    }
}

/// Reads plan, progress and the result of the first bucket, sealed in an empty `folder` by somebody who can seal,
/// and then a plan that nobody sealed.
#[cfg(feature = "fuzzing")]
pub(in crate::job::psi) fn fuzzed(folder: &Path, key: &FileKey, files: [&[u8]; 3]) {
    let resume = Resume { folder, key, peer: "alice" };
    let (job, input) = ([1; 32], [2; 32]);
    let written = || -> Result<()> {
        let lock = hold(folder, IN_USE)?;
        let of = [job, *blake3::hash(resume.peer.as_bytes()).as_bytes(), input];
        let kept = Kept { folder, key, of, _lock: lock };
        let prg = &mut Prg::from_seed(tacit_crypto::Block::new(7));
        let plan = [of.as_flattened(), files[0]].concat();
        kept.write(PLAN, &plan, prg)?;
        kept.write(PROGRESS, files[1], prg)?;
        kept.write(&format!("{OF_BUCKET}{:06}", 0), files[2], prg)
    };
    if written().is_err() {
        return;
    }
    if let Ok(checkpoint) = Checkpoint::load(&resume, job, input) {
        let buckets = checkpoint.plan.as_ref().map_or(0, |plan| plan.buckets as usize);
        assert_eq!((checkpoint.begun.len(), checkpoint.done.len()), (buckets, buckets));
    }
    let _ = std::fs::write(folder.join(PLAN), files[0]);
    assert!(Checkpoint::load(&resume, job, input).is_err(), "a plan opens that nobody sealed");
}
