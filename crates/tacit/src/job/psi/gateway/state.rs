//! How far a job is, on a gateway's disk.
//!
//! A folder a job: `plan` (name, bucket key, sizes, and the terms), `progress` (how often each bucket was
//! begun, which attempt's result is here and whether it is on both sides, what was committed to, and how the
//! job ended) and a file for each result: a bit for each place, and the columns that the peer gave. Nothing
//! of a protocol's randomness, and none of a set's keys: of those of a bucket one digest.

use super::super::buckets::checkpoint::{End, Plan};
use super::super::buckets::kept::{self, Form, Sealed, damaged};
use super::super::buckets::{ATTEMPTS, MAX_BUCKETS, places};
use super::words::{Reader, Terms, Writer};
use crate::{Error, Result};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tacit_crypto::Prg;
use tacit_crypto::text::counted;
use tacit_store::sealed::{FileKey, Purpose};
use zeroize::Zeroizing;

pub(super) static FORM: Form = Form {
    magic: *b"tacit gateway 5\n",
    purpose: Purpose {
        sealing: "tacit 1 psi gateway: sealing",
        mac: "tacit 1 psi gateway: mac",
        check: "tacit 1 psi gateway: check",
    },
};
pub(super) const PLAN: &str = "plan";
pub(super) const PROGRESS: &str = "progress";
const TOSSES: &str = "tosses";

/// One bucket.
#[derive(Clone, Default)]
pub(super) struct Bucket {
    /// How often it was begun.
    pub begun: u8,
    /// The attempt whose result is on our disk, if there is one.
    pub held: Option<u8>,
    /// That result is on the peer's disk too: the bucket has ended.
    pub ended: bool,
    /// What its keys were when it was first asked for.
    pub digest: Option<[u8; 32]>,
}

/// A job, as far as it is.
pub(super) struct State {
    pub label: String,
    pub terms: Terms,
    pub plan: Option<Plan>,
    pub buckets: Vec<Bucket>,
    pub over: Option<End>,
    /// Whether the peer gets a result, so far as a bucket has told.
    pub received: bool,
    /// The peer has the plan too. Until then it may be settled anew, and no driver is given it.
    pub agreed: bool,
    /// The peer has said that all its buckets have ended.
    pub confirmed: bool,
    folder: PathBuf,
    key: Arc<FileKey>,
    lock: Option<File>,
    /// The gateway has ended: nothing is written any more.
    closed: bool,
}

/// The folder of the job called `label`.
pub(super) fn folder_of(jobs: &Path, label: &str) -> PathBuf {
    let hash = blake3::Hasher::new_derive_key("tacit 1 gateway: folder").update(label.as_bytes()).finalize();
    jobs.join(&hash.to_hex()[..32])
}

impl State {
    /// A job that nothing was settled of.
    pub(super) fn new(jobs: &Path, label: &str, terms: Terms, key: Arc<FileKey>) -> Self {
        State {
            label: label.to_owned(),
            terms,
            plan: None,
            buckets: Vec::new(),
            over: None,
            received: false,
            agreed: false,
            confirmed: false,
            folder: folder_of(jobs, label),
            key,
            lock: None,
            closed: false,
        }
    }

    /// The job in `folder`, if one was settled there. Errors: files that do not open, or that another process
    /// uses.
    pub(super) fn load(folder: &Path, key: Arc<FileKey>) -> Result<Option<Self>> {
        if !folder.join(PLAN).exists() {
            return Ok(None);
        }
        let lock = hold(folder)?;
        let sealed = Sealed { folder, key: &key, form: &FORM };
        let bytes = sealed.read(PLAN, context(PLAN, &[0; 32]))?;
        let mut from = Reader(&bytes);
        let (label, name, key_of_buckets) = (from.text()?, from.array()?, from.array()?);
        let (own, peer, count) = (from.number()?, from.number()?, from.number()?);
        let terms = Terms::read(&mut from)?;
        if !count.is_power_of_two() || count > MAX_BUCKETS {
            return Err(damaged(folder));
        }
        let mut state = State::new(Path::new(""), &label, terms, key.clone());
        state.folder = folder.to_owned();
        state.lock = Some(lock);
        state.plan = Some(Plan { name, key: key_of_buckets, own, peer, buckets: count });
        state.buckets = vec![Bucket::default(); count as usize];
        if folder.join(PROGRESS).exists() {
            let bytes = sealed.read(PROGRESS, context(PROGRESS, &name))?;
            state.read_progress(&bytes).ok_or_else(|| damaged(folder))?;
        }
        Ok(Some(state))
    }

    fn read_progress(&mut self, bytes: &[u8]) -> Option<()> {
        let (&[over, received, agreed, confirmed], rest) = bytes.split_first_chunk::<4>()?;
        self.over = End::ALL.get(usize::from(over).wrapping_sub(1)).copied();
        (self.received, self.agreed, self.confirmed) = (received == 1, agreed == 1, confirmed == 1);
        let (entries, rest) = rest.as_chunks::<36>();
        if !rest.is_empty() || entries.len() != self.buckets.len() {
            return None;
        }
        for (bucket, entry) in self.buckets.iter_mut().zip(entries) {
            let (&[begun, held, ended, has_digest], digest) = entry.split_first_chunk::<4>()?;
            *bucket = Bucket {
                begun,
                held: (held > 0).then_some(held),
                ended: ended == 1,
                digest: if has_digest == 1 { digest.try_into().ok() } else { None },
            };
        }
        Some(())
    }

    fn sealed(&self) -> Sealed<'_> {
        Sealed { folder: &self.folder, key: &self.key, form: &FORM }
    }

    fn name(&self) -> [u8; 32] {
        self.plan.as_ref().map_or([0; 32], |plan| plan.name)
    }

    /// Lets another gateway go on with the job.
    pub(super) fn close(&mut self) {
        (self.closed, self.lock) = (true, None);
    }

    fn check(&self) -> Result<()> {
        if self.closed { Err(Error::Other("the gateway ends".to_owned())) } else { Ok(()) }
    }

    /// Takes the job's folder, which is made if need be.
    fn take(&mut self) -> Result<()> {
        self.check()?;
        if self.lock.is_none() {
            kept::lasting_folder(&self.folder)?;
            self.lock = Some(hold(&self.folder)?);
        }
        Ok(())
    }

    /// Coins are about to be tossed for a plan: counted on the disk before it begins. Whether they may be once
    /// more: a peer that leaves after a toss, and so gets another bucket key, does so as often as it gets
    /// attempts at a bucket.
    pub(super) fn toss(&mut self) -> Result<bool> {
        self.take()?;
        let context = context(TOSSES, &[0; 32]);
        let before = match self.folder.join(TOSSES).exists() {
            true => *self.sealed().read(TOSSES, context)?.first().ok_or_else(|| damaged(&self.folder))?,
            false => 0,
        };
        if before >= ATTEMPTS {
            return Ok(false);
        }
        self.sealed().write(TOSSES, context, &[before + 1], &mut Prg::from_os())?;
        Ok(true)
    }

    /// Keeps what both sides settled; never in place of a plan under which anything was begun, or of a job
    /// that has ended: what was tested under it would be forgotten.
    pub(super) fn settle(&mut self, plan: Plan) -> Result<()> {
        if self.over.is_some() || self.confirmed || self.buckets.iter().any(|bucket| bucket.begun > 0) {
            return Err(Error::Peer("a new plan for a job that has begun".to_owned()));
        }
        self.take()?;
        let _ = std::fs::remove_file(self.folder.join(PROGRESS));
        let mut out = Writer::default();
        out.text(&self.label);
        out.bytes(&plan.name);
        out.bytes(&plan.key);
        for number in [plan.own, plan.peer, plan.buckets] {
            out.number(number);
        }
        self.terms.write(&mut out);
        self.sealed().write(PLAN, context(PLAN, &[0; 32]), &out.0, &mut Prg::from_os())?;
        self.buckets = vec![Bucket::default(); plan.buckets as usize];
        (self.received, self.agreed) = (false, false);
        self.plan = Some(plan);
        Ok(())
    }

    /// Forces how far the job is to the disk.
    pub(super) fn save(&self) -> Result<()> {
        self.check()?;
        if self.plan.is_none() {
            return Ok(());
        }
        let over = self.over.and_then(|end| End::ALL.iter().position(|known| *known == end));
        let over = over.map_or(0, |at| at as u8 + 1);
        let mut bytes = vec![over, u8::from(self.received), u8::from(self.agreed), u8::from(self.confirmed)];
        for Bucket { begun, held, ended, digest } in &self.buckets {
            bytes.extend([*begun, held.unwrap_or(0), u8::from(*ended), u8::from(digest.is_some())]);
            bytes.extend(digest.unwrap_or_default());
        }
        self.sealed().write(PROGRESS, context(PROGRESS, &self.name()), &bytes, &mut Prg::from_os())
    }

    /// Where the result goes that this attempt at a bucket gave.
    pub(super) fn file_of(&self, number: usize, attempt: u8) -> Result<ResultFile> {
        self.check()?;
        let (folder, key, run) = (self.folder.clone(), self.key.clone(), self.name());
        Ok(ResultFile { folder, key, run, name: format!("bucket-{number:06}.{attempt}") })
    }

    /// The result of a bucket, where it is here.
    pub(super) fn result_of(&self, number: usize) -> Result<Zeroizing<Vec<u8>>> {
        let attempt = self.buckets[number].held.ok_or_else(|| damaged(&self.folder))?;
        self.file_of(number, attempt)?.read()
    }

    /// Whether a result may be one of this job's: a bit for each place, and what is behind them where columns
    /// are revealed.
    pub(super) fn is_result(&self, result: &[u8]) -> bool {
        let bits = self.plan.as_ref().map_or(0, |plan| places(plan)[0].div_ceil(8) as usize);
        let payload = self.terms.parameters.iter().any(|(name, kind)| name == "reveal" && kind == "payload");
        result.len() == bits || (payload && result.len() > bits)
    }

    /// Whether all buckets have ended. Where a side has no keys there is nothing to run.
    pub(super) fn is_complete(&self) -> bool {
        let Some(plan) = &self.plan else { return false };
        plan.own == 0 || plan.peer == 0 || self.buckets.iter().all(|bucket| bucket.ended)
    }

    /// An error where the job that is kept is another one than `terms` describe.
    pub(super) fn compare(&self, terms: &Terms) -> Result<()> {
        let Terms { buckets, patience, most_peer, .. } = self.terms;
        let same = Terms { buckets, patience, most_peer, ..terms.clone() };
        if same == self.terms {
            return Ok(());
        }
        let what = if same.own == self.terms.own {
            "the job of this name has other options"
        } else {
            "the job of this name has another number of keys"
        };
        Err(Error::Input(format!("{what}; use another name, or remove the job at both gateways")))
    }
}

/// A result on the disk: each attempt has a file of its own, so that it can be written while others are at
/// the job.
pub(super) struct ResultFile {
    folder: PathBuf,
    key: Arc<FileKey>,
    run: [u8; 32],
    name: String,
}

impl ResultFile {
    fn sealed(&self) -> Sealed<'_> {
        Sealed { folder: &self.folder, key: &self.key, form: &FORM }
    }

    /// Forces it to the disk.
    pub(super) fn write(&self, result: &[u8]) -> Result<()> {
        self.sealed().write(&self.name, context(&self.name, &self.run), result, &mut Prg::from_os())
    }

    fn read(&self) -> Result<Zeroizing<Vec<u8>>> {
        self.sealed().read(&self.name, context(&self.name, &self.run)).map(Zeroizing::new)
    }
}

pub(super) fn context(name: &str, run: &[u8; 32]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(name.as_bytes()).update(run);
    *hasher.finalize().as_bytes()
}

fn hold(folder: &Path) -> Result<File> {
    kept::hold(folder, "another gateway is continuing the job stored there")
}

/// Every folder of a job in `jobs`.
pub(super) fn folders(jobs: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(jobs).map_err(|source| Error::file(jobs, "cannot be listed", source))?;
    Ok(entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect())
}

/// The file that lets this party's driver open jobs: made once, mode 600.
pub(super) fn token(state: &Path) -> Result<super::Token> {
    use std::io::Write;
    let path = state.join("token");
    if !path.exists() {
        let mut secret = Zeroizing::new([0; 32]);
        Prg::from_os().fill_bytes(secret.as_mut_slice());
        let text = Zeroizing::new(format!("{}\n", blake3::Hash::from_bytes(*secret).to_hex()));
        // Whole under its name, or not there: half a token would keep the gateway from starting.
        let part = state.join("token.part");
        let _ = std::fs::remove_file(&part);
        let mut file = super::super::buckets::spill::private_file(&part)?;
        let failed = |source| Error::file(&path, "cannot be written", source);
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        written.and_then(|()| std::fs::rename(&part, &path)).map_err(failed)?;
        kept::sync_names(state)?;
    }
    super::Token::from_file(&path)
}

impl super::Token {
    /// The token that a gateway wrote into its state folder.
    pub fn from_file(path: &Path) -> Result<Self> {
        let text = tacit_net::keys::read_secret(path, "token", "a gateway writes it to its state directory")?;
        let hash = blake3::Hash::from_hex(text.trim()).map_err(|_| {
            Error::Input(format!(
                "{}: not a gateway's token; remove the file, and the gateway creates a new one",
                tacit_net::shown(&path.to_string_lossy())
            ))
        })?;
        Ok(super::Token(Zeroizing::new(*hash.as_bytes())))
    }
}

/// An error where the peer has more keys than our side accepts.
pub(super) fn accepts(peer: u64, terms: &Terms) -> Result<()> {
    if peer > terms.most_peer {
        let (peer, most) = (counted(peer, "key"), terms.most_peer);
        return Err(Error::Peer(format!("the peer has {peer}, more than the {most} allowed")));
    }
    Ok(())
}

/// What a caller hears of a job that has ended for good.
pub(super) fn over(end: End) -> Error {
    Error::Peer(format!("the job ended for good: {}; use another name for a new one", end.words()))
}
