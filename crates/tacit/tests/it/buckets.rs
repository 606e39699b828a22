//! Intersections in buckets on disk: their rows are those of a plain join, and nothing stays on disk.

use std::collections::HashSet;
use std::path::Path;
use tacit::job::psi::{self, Bucketed, Disk, Learns, Protocol, Reveal};
use tacit::net::{Channel, memory};
use tacit::{Result, Security};
use tacit_ot::base;

const MEMORY: u64 = 1 << 30;

fn keys(range: std::ops::Range<u32>) -> Vec<Vec<u8>> {
    // Of several lengths, and every seventh of them twice.
    let key = |i: u32| format!("key {}", u64::from(i) * 7919).into_bytes();
    range.flat_map(|i| vec![key(i); 1 + usize::from(i % 7 == 0)]).collect()
}

fn side(
    job: psi::Job,
    mine: Vec<Vec<u8>>,
    disk: (&Path, u64, u64),
    most: u64,
) -> impl FnOnce(&mut Channel) -> Result<Bucketed> + Send {
    move |channel| {
        let (folder, memory, buckets) = disk;
        let disk = Disk { folder, memory, buckets, at_once: 1, resume: None };
        // The last row has no key.
        let tell = |each: &mut dyn FnMut(Option<&[u8]>) -> Result<()>| {
            mine.iter().try_for_each(|key| each(Some(key)))?;
            each(None)
        };
        job.run_in_buckets(std::slice::from_mut(channel), &*base::default(), tell, most, &disk, &())
    }
}

/// The rows of `ours` whose keys are in `theirs`, and the last, without one.
fn join(ours: &[Vec<u8>], theirs: &[Vec<u8>]) -> Vec<bool> {
    let theirs: HashSet<_> = theirs.iter().collect();
    ours.iter().map(|key| theirs.contains(key)).chain([false]).collect()
}

fn left(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn rows_are_those_of_a_plain_join_and_no_file_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (keys(0..900), keys(600..1400));
    let cases = [
        (Security::Malicious, Learns::Both, Learns::Both, [4, 1]),
        (Security::SemiHonest, Learns::Me, Learns::Peer, [1, 2]),
    ];
    for (security, mine, converse, wanted) in cases {
        let at = |buckets| (folder.path(), MEMORY, buckets);
        let (a, b) = memory::run(
            side(psi::Job::new(mine, security), ours.clone(), at(wanted[0]), 10_000),
            side(psi::Job::new(converse, security), theirs.clone(), at(wanted[1]), 10_000),
        );
        let (a, b) = (a.unwrap(), b.unwrap());
        assert_eq!((a.own, a.peer, b.own, b.peer), (900, 800, 800, 900));
        let most = wanted[0].max(wanted[1]);
        assert_eq!((a.buckets, b.buckets), (most, most));
        assert_eq!(a.places, [b.places[1], b.places[0]]);
        assert!(a.places[0] * most >= 900 && a.places[0] < 900);
        assert_eq!(a.common, Some(300));
        assert_eq!(a.matches.unwrap().iter().collect::<Vec<_>>(), join(&ours, &theirs));
        let plain = (converse != Learns::Peer).then(|| join(&theirs, &ours));
        assert_eq!(b.matches.map(|matches| matches.iter().collect::<Vec<_>>()), plain);
        // What a cheater can test counts every bucket's padding.
        assert_eq!(a.tested.is_some(), security == Security::Malicious);
        assert!(a.tested.is_none_or(|tested| tested.likely > most * a.places[1]));
        assert_eq!(left(folder.path()), 0);
    }
}

#[test]
fn faults_are_one_line_and_leave_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let job = || psi::Job::new(Learns::Both, Security::SemiHonest);
    let run = |job: psi::Job, at: (&Path, u64, u64), most| {
        let theirs = psi::Job::new(Learns::Both, Security::SemiHonest);
        let other = side(theirs, keys(0..50), (folder.path(), MEMORY, 1), 1000);
        let fault = memory::run(side(job, keys(0..50), at, most), other).0.unwrap_err().to_string();
        assert!(!fault.contains('\n') && left(folder.path()) == 0, "{fault}");
        fault
    };
    let here = (folder.path(), MEMORY, 1);
    let nowhere = folder.path().join("nowhere");
    assert!(run(job(), (&nowhere, MEMORY, 1), 1000).contains("no directory can be created in it"));
    assert!(run(job(), (folder.path(), 1 << 16, 1), 1000).contains("give more"));
    assert!(run(job(), (folder.path(), MEMORY, 3), 1000).contains("a power of two"));
    assert!(run(job(), here, 49).contains("the peer has 50 keys"));
    let paxos = psi::Job { protocol: Protocol::Paxos, ..job() };
    assert!(run(paxos, here, 1000).contains("not by paxos"));
    let count = psi::Job { reveal: Reveal::Count, ..job() };
    assert!(run(count, here, 1000).contains("only rows"));
}

/// A peer whose first message is not what was agreed, and one that opens another coin than its own.
///
/// proof: buckets 2.2
#[test]
fn a_peer_that_deviates_before_the_first_bucket_is_told_from_a_lost_link() {
    let folder = tempfile::tempdir().unwrap();
    let honest = || {
        let job = psi::Job::new(Learns::Both, Security::Malicious);
        side(job, keys(0..50), (folder.path(), MEMORY, 1), 1000)
    };
    let told = |cheat: fn(&mut Channel) -> tacit::net::Result<()>| {
        let (_, fault) = memory::run(cheat, honest());
        assert_eq!(left(folder.path()), 0);
        fault.unwrap_err().to_string()
    };
    let other = told(|channel| {
        channel.send(&[7; 49])?;
        channel.flush()?;
        // Not gone before the other side has sent: that would be a lost link.
        channel.recv(&mut [0; 49])
    });
    assert!(other.contains("this version"), "{other}");
    // The first message of a side on which nothing was settled: what it is, and how far.
    const FRESH: [u8; 16 + 1 + 32] = {
        let mut message = [0; 16 + 1 + 32];
        message.split_at_mut(16).0.copy_from_slice(b"tacit buckets-04");
        message
    };
    let coin = told(|channel| {
        channel.send(&FRESH)?;
        channel.send_u64(50)?;
        channel.send_u64(1)?;
        channel.send(&[1; 32])?;
        channel.flush()?;
        channel.recv(&mut [0; FRESH.len() + 8 + 8 + 32])?;
        channel.send(&[2; 64])?;
        channel.flush()
    });
    assert!(coin.contains("it cheated"), "{coin}");
    let none = told(|channel| {
        channel.send(&FRESH)?;
        channel.send_u64(50)?;
        channel.send_u64(3)?;
        channel.flush()?;
        channel.recv(&mut [0; FRESH.len() + 8 + 8])
    });
    assert!(none.contains("3 buckets"), "{none}");
}

/// What a killed run left is gone with the next one; what a running one has stays.
#[test]
fn what_a_killed_run_left_is_removed_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let held = ["dead", "alive"].map(|name| {
        let path = folder.path().join(format!(".tacit-psi-{name}"));
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("000001"), "sealed").unwrap();
        std::fs::File::create(path.join("running")).unwrap()
    });
    held[1].lock().unwrap();
    let job = || psi::Job::new(Learns::Both, Security::SemiHonest);
    let at = (folder.path(), MEMORY, 2);
    let (a, b) = memory::run(side(job(), keys(0..50), at, 1000), side(job(), keys(20..70), at, 1000));
    assert_eq!((a.unwrap().common, b.unwrap().common), (Some(30), Some(30)));
    assert_eq!(left(folder.path()), 1);
    assert!(folder.path().join(".tacit-psi-alive").exists());
}
