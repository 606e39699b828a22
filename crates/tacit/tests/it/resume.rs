//! Intersections in buckets whose connection is lost, whose processes end, and whose peers cheat: the result
//! is that of a plain join or there is none, and no peer tests more keys than the bound says.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use tacit::job::psi::{ATTEMPTS, Bucketed, Disk, InBuckets, Job, Learns, Resume};
use tacit::net::{Channel, Party};
use tacit::sealed::FileKey;
use tacit::{Blame, Error, Result, Security};
use tacit_net::testing::{Fault, Network};
use tacit_ot::{BaseOt, base};
use tempfile::TempDir;

const BUCKETS: u64 = 4;

/// One party: what it has, and where it keeps how far it is.
struct Side {
    job: Job,
    keys: Vec<Vec<u8>>,
    folder: TempDir,
    key: FileKey,
    peer: &'static str,
}

impl Side {
    fn new(security: Security, range: std::ops::Range<u32>) -> Self {
        // Of several lengths, and every seventh of them twice.
        let key = |i: u32| format!("key {}", u64::from(i) * 7919).into_bytes();
        Side {
            job: Job::new(Learns::Both, security),
            keys: range.flat_map(|i| vec![key(i); 1 + usize::from(i % 7 == 0)]).collect(),
            folder: tempfile::tempdir().unwrap(),
            key: FileKey::from_bytes(&[7; 32]).unwrap(),
            peer: "the other",
        }
    }

    fn kept(&self) -> PathBuf {
        self.folder.path().join("kept")
    }

    /// A process that runs over one connection, and ends with it.
    fn process(&self, channel: &mut Channel) -> Result<Bucketed> {
        let kept = self.kept();
        let resume = Resume { folder: &kept, key: &self.key, peer: self.peer };
        let base = base::default();
        let mut run = self.run(&*base, Some(resume))?;
        let ran = run.prepare().and_then(|()| match run.is_confirmed() {
            true => Ok(()),
            false => run.go_on(std::slice::from_mut(channel)),
        });
        ran.and_then(|()| run.finish())
    }

    fn run<'a>(
        &'a self,
        base: &'a (dyn BaseOt + Send + Sync),
        resume: Option<Resume<'a>>,
    ) -> Result<InBuckets<'a>> {
        let disk = Disk { folder: self.folder.path(), memory: 1 << 26, buckets: BUCKETS, at_once: 1, resume };
        let tell = |each: &mut dyn FnMut(Option<&[u8]>) -> Result<()>| {
            self.keys.iter().try_for_each(|key| each(Some(key)))?;
            each(None)
        };
        InBuckets::new(&self.job, base, Box::new(tell), 10_000, &disk, &())
    }

    /// Takes the result, and lets nothing stand.
    fn forget(&self) {
        let kept = self.kept();
        Resume { folder: &kept, key: &self.key, peer: self.peer }.forget().unwrap();
        assert_eq!(std::fs::read_dir(self.folder.path()).unwrap().count(), 0);
    }

    fn assert_joined(&self, ran: &Bucketed, theirs: &Side) {
        let theirs: HashSet<_> = theirs.keys.iter().collect();
        let plain: Vec<bool> = self.keys.iter().map(|key| theirs.contains(key)).chain([false]).collect();
        assert_eq!(ran.matches.as_ref().unwrap().iter().collect::<Vec<_>>(), plain);
        let keys: HashSet<_> = self.keys.iter().collect();
        assert_eq!(ran.common, Some(keys.intersection(&theirs).count() as u64));
    }
}

fn sides(security: Security) -> [Side; 2] {
    [Side::new(security, 0..300), Side::new(security, 200..450)]
}

/// Bytes that either side sends in a run without faults.
fn sent(sides: &[Side; 2]) -> [u64; 2] {
    let process = |side: &Side, channel: &mut Channel| {
        let ran = side.process(channel).unwrap();
        side.forget();
        (ran, channel.stats().bytes_sent)
    };
    let [a, b] = sides;
    let ((first, one), (second, two)) =
        Network::new(0).run(|channel| process(a, channel), |channel| process(b, channel));
    a.assert_joined(&first, b);
    assert_eq!((first.repeated, first.confirmed, second.confirmed), (0, true, true));
    [one, two]
}

/// What a side gives whose peer is done and does not come again: all its buckets are done too.
fn alone(side: &Side) -> Bucketed {
    let (base, kept) = (base::default(), side.kept());
    let mut run = side.run(&*base, Some(Resume { folder: &kept, key: &side.key, peer: side.peer })).unwrap();
    run.prepare().unwrap();
    assert!(run.is_complete() && !run.is_confirmed());
    let ran = run.finish().unwrap();
    assert!(!ran.confirmed);
    ran
}

/// Wherever the connection is cut, both processes end, and those that come after them go on: the result is
/// the plain join, and nothing is left on the disk.
#[test]
fn processes_that_end_anywhere_are_gone_on_from() {
    let sides = sides(Security::Malicious);
    let [a, b] = &sides;
    let all = sent(&sides);
    let cuts = if cfg!(feature = "long-tests") { 400 } else { 16 };
    let mut repeated = 0;
    for number in 0..cuts {
        // Spread over the run, and the last messages of either side.
        let (from, sent) = [(Party::First, all[0]), (Party::Second, all[1])][number as usize % 2];
        let offset = if number < 4 { sent - 1 - 4 * number / 2 } else { sent * number / cuts };
        let mut network = Network::new(number).with(from, offset, Fault::Cut);
        let (mut first, mut second) = (None, None);
        while first.is_none() || second.is_none() {
            let keep = |ran: Result<Bucketed>| {
                let lost = ran.as_ref().err().is_none_or(Error::is_lost_link);
                assert!(lost, "cut at {offset} of {from:?}: {ran:?}");
                ran.ok()
            };
            match (&first, &second) {
                (Some(_), None) => second = Some(alone(b)),
                (None, Some(_)) => first = Some(alone(a)),
                _ => {
                    let ran = network.run(|channel| a.process(channel), |channel| b.process(channel));
                    (first, second) = (keep(ran.0), keep(ran.1));
                    network = Network::new(1000 + number);
                }
            }
        }
        let (first, second) = (first.unwrap(), second.unwrap());
        a.assert_joined(&first, b);
        b.assert_joined(&second, a);
        repeated += u64::from(first.repeated > 0);
        a.forget();
        b.forget();
    }
    assert!(repeated > cuts / 3, "{repeated} of {cuts} cuts met a bucket");
}

/// The same without a folder: both go on in the processes that they are, and a peer that was begun with again
/// can have tested as many keys more.
#[test]
fn runs_without_a_folder_go_on_over_another_connection() {
    let sides = sides(Security::Malicious);
    let [a, b] = &sides;
    let [_, all] = sent(&sides);
    let base = base::default();
    let (mut one, mut two) = (a.run(&*base, None).unwrap(), b.run(&*base, None).unwrap());
    let mut over = |network: Network| {
        network.run(
            |channel| one.go_on(std::slice::from_mut(channel)),
            |channel| two.go_on(std::slice::from_mut(channel)),
        )
    };
    for (seed, share) in [(1, 3), (2, 4)] {
        let network = Network::new(seed).with(Party::Second, all / share, Fault::Cut);
        let (first, second) = over(network);
        assert!(first.unwrap_err().is_lost_link() && second.unwrap_err().is_lost_link());
    }
    let (first, second) = over(Network::new(3));
    first.unwrap();
    second.unwrap();
    let (one, two) = (one.finish().unwrap(), two.finish().unwrap());
    a.assert_joined(&one, b);
    b.assert_joined(&two, a);
    // A side that did not get the last message of a bucket repeats it, and the other the next one too.
    assert!((2..=4).contains(&one.repeated), "{}", one.repeated);
    assert_eq!(std::fs::read_dir(a.folder.path()).unwrap().count(), 0);
    let network = Network::new(4);
    let (plain, _) = network.run(|channel| a.process(channel), |channel| b.process(channel));
    let [often, once] = [&one, &plain.unwrap()].map(|ran| ran.tested.unwrap().likely);
    assert_eq!(often * BUCKETS, once * (BUCKETS + one.repeated));
    [a, b].into_iter().for_each(Side::forget);
}

fn ended(ran: &Result<Bucketed>) -> bool {
    ran.as_ref().err().is_some_and(|error| {
        error.blame() == Blame::Peer && error.to_string().contains("the run ended for good")
    })
}

/// A peer that breaks off in a bucket again and again, to put another set into it each time, gets no further
/// than the attempts that the bound counts; neither a new process nor its own word changes that.
///
/// proof: buckets 2.6
#[test]
fn a_bucket_is_begun_three_times_and_not_more() {
    let sides = sides(Security::Malicious);
    let [a, b] = &sides;
    let [all, _] = sent(&sides);
    for attempt in 0..u64::from(ATTEMPTS) {
        let network = Network::new(attempt).with(Party::First, all / 20, Fault::Cut);
        let (first, second) = network.run(|channel| a.process(channel), |channel| b.process(channel));
        assert!(first.unwrap_err().is_lost_link() && second.unwrap_err().is_lost_link());
    }
    // The peer has forgotten everything: then this side does not go on with it.
    let kept: Vec<_> = ["plan", "progress"].map(|name| std::fs::read(b.kept().join(name)).unwrap()).into();
    std::fs::remove_dir_all(b.kept()).unwrap();
    let (first, second) = Network::new(10).run(|channel| a.process(channel), |channel| b.process(channel));
    let told = first.unwrap_err();
    assert!(
        told.blame() == Blame::Peer && told.to_string().contains("has no stored state of this run"),
        "{told}"
    );
    assert!(second.is_err());
    for (name, bytes) in ["plan", "progress"].iter().zip(&kept) {
        std::fs::create_dir_all(b.kept()).unwrap();
        std::fs::write(b.kept().join(name), bytes).unwrap();
    }
    for seed in 11..13 {
        let network = Network::new(seed);
        let (first, second) = network.run(|channel| a.process(channel), |channel| b.process(channel));
        assert!(ended(&first), "{first:?}");
        assert!(second.is_err());
    }
}

/// A check that fails ends the run for good on the side that made it, and the other side hears so.
///
/// proof: buckets 2.7
#[test]
fn a_failed_check_ends_the_run_on_the_disk_too() {
    let sides = sides(Security::Malicious);
    let [all, _] = sent(&sides);
    let mut failed = 0;
    for number in 1..12 {
        let [a, b] = &sides;
        let offset = all * number / 12;
        let network = Network::new(number).with(Party::First, offset, Fault::Corrupt(1 << (number % 8)));
        let (first, second) = network.run(|channel| a.process(channel), |channel| b.process(channel));
        // Framing that was hit looks like a link that fails, and some changes are those of another set.
        drop(first);
        let is_final = second.is_err_and(|error| !error.is_lost_link());
        let (first, second) =
            Network::new(100).run(|channel| a.process(channel), |channel| b.process(channel));
        if is_final {
            failed += 1;
            assert!(ended(&second), "byte {offset}: {second:?}");
            assert!(first.is_err());
            let (first, second) =
                Network::new(101).run(|channel| a.process(channel), |channel| b.process(channel));
            assert!(ended(&first) && ended(&second), "byte {offset}: {first:?} {second:?}");
        }
        for side in &sides {
            let kept = side.kept();
            Resume { folder: &kept, key: &side.key, peer: side.peer }.forget().unwrap();
        }
    }
    assert!(failed > 5, "{failed} of 11 were noticed as what they are");
}

fn cut_in_the_middle(sides: &[Side; 2]) {
    let [a, b] = sides;
    let [all, _] = sent(sides);
    let network = Network::new(5).with(Party::First, all * 7 / 8, Fault::Cut);
    let (first, second) = network.run(|channel| a.process(channel), |channel| b.process(channel));
    assert!(first.is_err() && second.is_err());
}

fn prepared(side: &Side, key: &FileKey, peer: &str) -> Result<()> {
    let (base, kept) = (base::default(), side.kept());
    side.run(&*base, Some(Resume { folder: &kept, key, peer }))?.prepare()
}

/// What is kept serves the run that it is of, and no other; a byte that was changed is noticed.
///
/// proof: buckets 2.5
#[test]
fn what_is_kept_is_of_one_run_and_whole() {
    let mut sides = sides(Security::SemiHonest);
    cut_in_the_middle(&sides);
    let a = &mut sides[0];
    let key = FileKey::from_bytes(&[7; 32]).unwrap();
    prepared(a, &key, "the other").unwrap();
    let refuses = |a: &Side, key: &FileKey, peer: &str, word: &str| {
        let error = prepared(a, key, peer).unwrap_err();
        assert!(error.blame() == Blame::Input && error.to_string().contains(word), "{error}");
    };
    refuses(a, &FileKey::from_bytes(&[8; 32]).unwrap(), "the other", "another key");
    refuses(a, &key, "somebody else", "another peer");
    a.job = Job::new(Learns::Me, Security::SemiHonest);
    refuses(a, &key, "the other", "another job");
    a.job = Job::new(Learns::Both, Security::SemiHonest);
    let last = a.keys.pop().unwrap();
    refuses(a, &key, "the other", "other keys");
    a.keys.push(last);
    let lock = std::fs::File::open(a.kept().join("lock")).unwrap();
    lock.lock().unwrap();
    refuses(a, &key, "the other", "another process");
    lock.unlock().unwrap();

    let names: Vec<_> = std::fs::read_dir(a.kept()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let names: Vec<&Path> =
        names.iter().map(PathBuf::as_path).filter(|path| !path.ends_with("lock")).collect();
    for path in &names {
        let whole = std::fs::read(path).unwrap();
        let text = String::from_utf8_lossy(&whole);
        assert!(!text.contains("key "), "{path:?}");
        for at in (0..whole.len()).step_by(1 + whole.len() / 12) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            std::fs::write(path, &bytes).unwrap();
            assert!(prepared(a, &key, "the other").is_err(), "byte {at} of {path:?}");
        }
        std::fs::write(path, &whole[..whole.len() - 1]).unwrap();
        assert!(prepared(a, &key, "the other").is_err(), "{path:?} cut short");
        std::fs::write(path, &whole).unwrap();
    }
    // The result of one bucket does not pass for another's.
    let buckets: Vec<&&Path> =
        names.iter().filter(|path| path.to_string_lossy().contains("bucket-")).collect();
    let whole = std::fs::read(buckets[0]).unwrap();
    std::fs::copy(buckets[1], buckets[0]).unwrap();
    assert!(prepared(a, &key, "the other").is_err());
    std::fs::write(buckets[0], whole).unwrap();
    prepared(a, &key, "the other").unwrap();
}

#[test]
fn a_folder_that_holds_something_else_keeps_it() {
    let sides = sides(Security::SemiHonest);
    cut_in_the_middle(&sides);
    let kept = sides[0].kept();
    std::fs::write(kept.join("letter.txt"), "mine").unwrap();
    Resume { folder: &kept, key: &sides[0].key, peer: "the other" }.forget().unwrap();
    let left: Vec<_> = std::fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["letter.txt"]);
}
