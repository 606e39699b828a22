//! A peer that pauses in the middle of a bucket, puts another set into it, and comes again: what it can have
//! tested is counted, and it cannot come as often as it likes.

use super::super::Learns;
use super::table::{Digests, bucket, thrower};
use super::*;
use crate::{Blame, Security};
use std::collections::HashSet;
use std::slice::from_mut;
use tacit_net::Party;
use tacit_net::testing::{Fault, Network};
use tacit_ot::base;

const BUCKETS: u64 = 4;
const SIZE: u32 = 200;

/// Set `number` of the cheater's, or with more than one all of them: they have nothing in common.
fn set(numbers: std::ops::Range<u32>) -> Vec<Vec<u8>> {
    (SIZE * numbers.start..SIZE * numbers.end).map(|i| format!("key {i}").into_bytes()).collect()
}

fn told(keys: &[Vec<u8>]) -> Box<Keys<'_>> {
    Box::new(|each| keys.iter().try_for_each(|key| each(Some(key))))
}

/// An honest side that has all of the cheater's sets, and a cheater with one of them; both learn.
struct Pair<'a> {
    honest: InBuckets<'a>,
    cheat: InBuckets<'a>,
    folder: &'a Path,
    /// Keys that the cheater had in a bucket when the honest side began it.
    entered: HashSet<Vec<u8>>,
}

impl<'a> Pair<'a> {
    fn new(base: &'a (dyn BaseOt + Send + Sync), folder: &'a Path, all: &'a [Vec<u8>]) -> Self {
        let job = Job::new(Learns::Both, Security::Malicious);
        let disk = Disk { folder, memory: 1 << 26, buckets: BUCKETS, at_once: 1, resume: None };
        let run = |keys| InBuckets::new(&job, base, told(keys), 10_000, &disk, &()).unwrap();
        Pair { honest: run(all), cheat: run(&all[..SIZE as usize]), folder, entered: HashSet::new() }
    }

    fn begun(&self) -> Vec<u8> {
        self.honest.local.as_ref().map_or_else(Vec::new, |local| local.checkpoint.begun.clone())
    }

    /// One connection, with this set of the cheater's: what came of it on the honest side.
    fn connect(&mut self, keys: &[Vec<u8>], network: &Network) -> Result<()> {
        self.cheat.prepare().unwrap();
        if let (Some(local), Some(course)) = (&mut self.cheat.local, &self.cheat.course) {
            let folder = Folder::new(self.folder, &mut Prg::from_os()).unwrap();
            local.table = Table::read(folder, told(keys), 1 << 26, course).unwrap();
        }
        let before = self.begun();
        let (honest, cheat) = (&mut self.honest, &mut self.cheat);
        let (ran, _) =
            network.run(|channel| honest.go_on(from_mut(channel)), |channel| cheat.go_on(from_mut(channel)));
        let plan = self.honest.local.as_ref().and_then(|local| local.checkpoint.plan.clone()).unwrap();
        let (digests, thrown) = (Digests::new(), thrower(&plan.key));
        for (number, begun) in self.begun().iter().enumerate() {
            if *begun > before.get(number).copied().unwrap_or(0) {
                let is_there =
                    |key: &&Vec<u8>| bucket(&thrown, &digests.of(key), plan.buckets) == number as u64;
                self.entered.extend(keys.iter().filter(is_there).cloned());
            }
        }
        ran
    }
}

/// Bytes that the cheater's side sends in a run without faults, and the bound on what it has tested then.
fn calm(base: &(dyn BaseOt + Send + Sync), folder: &Path, all: &[Vec<u8>]) -> (u64, Tested) {
    let mut pair = Pair::new(base, folder, all);
    let (honest, cheat) = (&mut pair.honest, &mut pair.cheat);
    let (ran, sent) = Network::new(0).run(
        |channel| honest.go_on(from_mut(channel)),
        |channel| cheat.go_on(from_mut(channel)).map(|()| channel.stats().bytes_sent).unwrap(),
    );
    ran.unwrap();
    (sent, pair.honest.finish().unwrap().tested.unwrap())
}

fn pausing(seed: u64) -> Network {
    let limits = Limits { read: Duration::from_secs(5), idle: Duration::from_secs(5), ..Limits::default() };
    Network::new(seed).with_limits(limits)
}

/// proof: buckets 3.5
#[test]
fn a_peer_that_pauses_and_comes_with_another_set_tests_no_more_than_is_told() {
    let (base, folder, all) = (base::default(), tempfile::tempdir().unwrap(), set(0..3));
    let (sent, once) = calm(&*base, folder.path(), &all);
    let mut pair = Pair::new(&*base, folder.path(), &all);
    for (number, fault) in [Fault::Stall, Fault::Cut].into_iter().enumerate() {
        let number = number as u32;
        let network = pausing(1 + u64::from(number)).with(Party::Second, sent / 8, fault);
        let error = pair.connect(&set(number..number + 1), &network).unwrap_err();
        assert!(error.is_lost_link(), "{fault:?}: {error}");
        assert_eq!(pair.begun().iter().map(|begun| u32::from(*begun)).sum::<u32>(), 1 + number);
    }
    pair.connect(&set(2..3), &pausing(3)).unwrap();
    let entered = pair.entered.len() as u64;
    // A part of the first two sets, and all of the last.
    assert!((210..500).contains(&entered), "{entered}");
    let ran = pair.honest.finish().unwrap();
    assert_eq!((ran.common, ran.repeated), (Some(u64::from(SIZE)), 2));
    let tested = ran.tested.unwrap();
    assert!(entered <= tested.likely && tested.likely <= tested.most, "{entered} {tested:?}");
    assert_eq!(tested.likely * BUCKETS, once.likely * (BUCKETS + 2));
}

/// proof: buckets 2.6, 2.7
#[test]
fn a_peer_that_cheats_or_comes_too_often_gets_no_further_bucket() {
    let (base, folder, all) = (base::default(), tempfile::tempdir().unwrap(), set(0..5));
    let (sent, once) = calm(&*base, folder.path(), &all);
    let refused = |pair: &mut Pair<'_>, why: &str| {
        let (begun, entered) = (pair.begun(), pair.entered.len());
        for number in [3, 4] {
            let error = pair.connect(&set(number..number + 1), &pausing(90)).unwrap_err();
            assert!(error.blame() == Blame::Peer && error.to_string().contains(why), "{error}");
        }
        assert_eq!((pair.begun(), pair.entered.len()), (begun, entered));
    };
    // Too often.
    let mut pair = Pair::new(&*base, folder.path(), &all);
    for number in 0..u32::from(ATTEMPTS) {
        let fault = if number % 2 == 0 { Fault::Stall } else { Fault::Cut };
        let network = pausing(10 + u64::from(number)).with(Party::Second, sent / 8, fault);
        assert!(pair.connect(&set(number..number + 1), &network).unwrap_err().is_lost_link());
    }
    refused(&mut pair, "ended for good");
    let most = once.likely / BUCKETS * (BUCKETS - 1 + u64::from(ATTEMPTS));
    assert!(pair.entered.len() as u64 <= most, "{} {most}", pair.entered.len());
    // And with a check that fails: what is hit may look like a link that fails, so several bytes are.
    let mut caught = 0;
    for number in 1..12 {
        let mut pair = Pair::new(&*base, folder.path(), &all);
        let paused = pausing(30 + number).with(Party::Second, sent / 8, Fault::Stall);
        assert!(pair.connect(&set(0..1), &paused).unwrap_err().is_lost_link());
        let network = pausing(50 + number).with(Party::Second, sent * number / 12, Fault::Corrupt(1));
        if pair.connect(&set(1..2), &network).is_err_and(|error| !error.is_lost_link()) {
            caught += 1;
            refused(&mut pair, "ended for good");
        }
    }
    assert!(caught > 3, "{caught} of 11");
}

/// A channel that is closed first does not hide a check that fails on another one.
///
/// proof: buckets 2.7
#[test]
fn a_failed_check_is_told_and_kept_whatever_other_channels_lose() {
    let (base, folder, all) = (base::default(), tempfile::tempdir().unwrap(), set(0..1));
    let (sent, _) = calm(&*base, folder.path(), &all);
    let mut caught = 0;
    for number in 1..12 {
        let mut pair = Pair::new(&*base, folder.path(), &all);
        let spoilt =
            pausing(70 + number).with(Party::Second, sent / BUCKETS * number / 12, Fault::Corrupt(1));
        let cut = pausing(90 + number).with(Party::Second, 64, Fault::Cut);
        let (ours, theirs): (Vec<_>, Vec<_>) = [&spoilt, &cut].map(Network::pair).into_iter().unzip();
        let (honest, cheat) = (&mut pair.honest, &mut pair.cheat);
        let error = std::thread::scope(|scope| {
            // What its side of the run makes of it, and the end of its channels with it.
            let mut theirs = theirs;
            let cheating = scope.spawn(move || cheat.go_on(&mut theirs).is_err());
            let mut ours = ours;
            let error = honest.go_on(&mut ours).unwrap_err();
            drop(ours);
            cheating.join().unwrap();
            error
        });
        let ended = pair.honest.local.as_ref().and_then(|local| local.checkpoint.ended);
        assert_eq!(ended.is_some(), !error.is_lost_link(), "{error}");
        caught += u32::from(!error.is_lost_link());
    }
    assert!(caught > 3, "{caught} of 11");
}

/// A bucket that is run again gives what the last run gave: a peer that comes to it with another set does not have
/// the matches of both in the result.
#[test]
fn a_bucket_that_is_run_again_replaces_what_it_gave() {
    let (base, folder, all) = (base::default(), tempfile::tempdir().unwrap(), set(0..2));
    let mut pair = Pair::new(&*base, folder.path(), &all);
    pair.connect(&set(0..1), &Network::new(0)).unwrap();
    let size = SIZE as usize;
    let found = |pair: &Pair<'_>| {
        let local = pair.honest.local.as_ref().unwrap();
        let rows: Vec<bool> = local.matches.iter().collect();
        let count = |rows: &[bool]| rows.iter().filter(|row| **row).count();
        (count(&rows[..size]), count(&rows[size..]), local.checkpoint.common())
    };
    assert_eq!(found(&pair), (size, 0, size as u64));
    // The peer says that it has not seen the end of the last one.
    let last = BUCKETS as usize - 1;
    pair.cheat.local.as_mut().unwrap().checkpoint.forget(last);
    pair.connect(&set(1..2), &Network::new(1)).unwrap();
    let (first, second, common) = found(&pair);
    assert!(first < size && second > 0, "{first} {second}");
    assert_eq!((first + second) as u64, common);
    assert_eq!(pair.begun()[last], 2);
}

/// A peer that leaves in the middle of the toss, and so might wait for a bucket key that suits it: the honest
/// side tosses three times, with whoever comes, and counts before it begins.
///
/// proof: buckets 2.3, 3.2
#[test]
fn a_peer_that_leaves_in_the_toss_gets_three_of_them() {
    let (base, folder, all) = (base::default(), tempfile::tempdir().unwrap(), set(0..1));
    let mut honest = Pair::new(&*base, folder.path(), &all).honest;
    let mut lost = 0;
    for attempt in 0..6 {
        // Every time as if it had never been there.
        let mut cheat = Pair::new(&*base, folder.path(), &all).cheat;
        let network = pausing(70 + attempt).with(Party::Second, 100, Fault::Cut);
        let (ran, _) =
            network.run(|channel| honest.go_on(from_mut(channel)), |channel| cheat.go_on(from_mut(channel)));
        let error = ran.unwrap_err();
        if error.is_lost_link() {
            lost += 1;
            assert_eq!(honest.local.as_ref().unwrap().checkpoint.tosses, lost);
        } else {
            assert!(error.blame() == Blame::Peer && error.to_string().contains("ended for good"), "{error}");
        }
    }
    assert_eq!(lost, ATTEMPTS);
}

/// The count outlives the process, and a new run in the folder of an old one does not begin it anew.
///
/// proof: buckets 2.3
#[test]
fn tosses_are_counted_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let key = tacit_store::sealed::FileKey::from_bytes(&[9; 32]).unwrap();
    let (path, prg) = (folder.path().join("run"), &mut Prg::from_os());
    let resume = Resume { folder: &path, key: &key, peer: "bob" };
    for tosses in 0..ATTEMPTS {
        let mut checkpoint = Checkpoint::load(&resume, [1; 32], [2; 32]).unwrap();
        assert_eq!(checkpoint.tosses, tosses);
        checkpoint.toss(prg).unwrap();
    }
    assert_eq!(Checkpoint::load(&resume, [1; 32], [2; 32]).unwrap().tosses, ATTEMPTS);
}

/// What is kept of a bucket is as long whatever matched, and gives back the rows that did.
///
/// proof: buckets 3.7
#[test]
fn a_kept_result_is_as_long_whatever_matched() {
    let key = tacit_store::sealed::FileKey::from_bytes(&[9; 32]).unwrap();
    let rows = [5, 7, 900];
    let lengths = [[0, 0, 0, 0, 0], [0, 1, 0, 0, 0], [1, 1, 1, 0, 0]].map(|marks| {
        let folder = tempfile::tempdir().unwrap();
        let (path, prg) = (folder.path().join("run"), &mut Prg::from_os());
        let resume = Resume { folder: &path, key: &key, peer: "bob" };
        let plan = Plan { name: [1; 32], key: [2; 32], own: 3, peer: 3, buckets: 1 };
        let mut checkpoint = Checkpoint::load(&resume, [1; 32], [2; 32]).unwrap();
        checkpoint.settle(plan, prg).unwrap();
        checkpoint.done(0, &rows, &marks, prg).unwrap();
        let matched = marks.iter().filter(|mark| **mark == 1).count() as u64;
        assert_eq!(checkpoint.common(), matched);
        drop(checkpoint);
        let checkpoint = Checkpoint::load(&resume, [1; 32], [2; 32]).unwrap();
        assert_eq!(checkpoint.common(), matched);
        let mut kept = Vec::new();
        checkpoint.each_row(|row| kept.push(row)).unwrap();
        let expected: Vec<u64> =
            rows.iter().zip(marks).filter(|(_, mark)| *mark == 1).map(|(row, _)| *row).collect();
        assert_eq!(kept, expected);
        std::fs::metadata(path.join("bucket-000000")).unwrap().len()
    });
    assert!(lengths[0] == lengths[1] && lengths[1] == lengths[2]);
}
