//! Every silent protocol by several threads: the shares fit, whatever the count, the threads and the
//! security.

use tacit::crypto::{Block, Prg};
use tacit::net::{Channel, memory};
use tacit::ot::{self, Choice, Job, Kind, Sent};
use tacit::{Result, Security};

/// `threads` joined pairs of channels of one session, each side's together.
fn channels(threads: usize, session: u128) -> [Vec<Channel>; 2] {
    let mut id = [0; 32];
    Prg::from_seed(Block::new(session)).fill_bytes(&mut id);
    let (first, second) = (0..threads).map(|_| memory::pair_with(tacit::net::SessionId(id))).unzip();
    [first, second]
}

fn correlate(job: &Job, threads: usize) {
    let [mut ours, mut theirs] = channels(threads, job.count as u128);
    let base = ot::base_ot(None, Security::Malicious).unwrap();
    let (mut delta, mut v, mut w) = (Block::ZERO, Vec::new(), Vec::new());
    let (sent, received): (Result<()>, Result<()>) = std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            job.send(&mut ours, &*base, &mut |part| {
                if let Sent::Cot(d, more) = part {
                    delta = d;
                    v.extend_from_slice(more);
                }
                Ok(())
            })
        });
        let received = job.receive(&mut theirs, &*base, &mut |choices, more| {
            assert!(choices.iter().zip(more).all(|(bit, w)| bit == w.lsb()));
            w.extend_from_slice(more);
            Ok(())
        });
        (sender.join().unwrap(), received)
    });
    sent.unwrap();
    received.unwrap();
    let what = format!("{} of {:?}, {threads} threads", job.count, job.pick);
    assert_eq!((v.len() as u64, w.len() as u64), (job.count, job.count), "{what}");
    assert!(
        delta.lsb() && v.iter().zip(&w).all(|(v, w)| *w == *v ^ (delta & Block::mask(w.lsb()))),
        "{what}"
    );
    let distinct: std::collections::HashSet<_> = v.iter().map(|v| v.to_u128()).collect();
    assert_eq!(distinct.len(), v.len(), "{what}: streams repeat");
    let ones = w.iter().filter(|w| w.lsb()).count();
    assert!(w.len() < 1000 || ones.abs_diff(w.len() / 2) < 3 * w.len().isqrt(), "{what}: {ones} ones");
}

/// A stream of silent OT costs as much as many OTs, so a small request has one, whatever the threads; other
/// protocols use them all.
#[test]
fn a_small_request_of_silent_ot_has_one_stream() {
    let base = ot::base_ot(None, Security::Malicious).unwrap();
    for (name, count, streams) in
        [("silent", 100_000, 1), ("silent", 300_000, 2), ("kos", 100_000, 4), ("softspoken", 100_000, 4)]
    {
        let protocol = ot::protocol(name, Security::Malicious).unwrap();
        let pick = protocol.pick(1 << 20, Security::Malicious, &Choice::default()).unwrap();
        let job = Job { pick, kind: Kind::Rot, count };
        let [mut ours, mut theirs] = channels(4, count as u128);
        std::thread::scope(|scope| {
            scope.spawn(|| job.send(&mut ours, &*base, &mut |_| Ok(())).unwrap());
            job.receive(&mut theirs, &*base, &mut |_, _| Ok(())).unwrap();
        });
        let used = ours.iter().filter(|channel| channel.stats().bytes_sent > 0).count();
        assert_eq!(used, streams, "{count} by {name}");
    }
}

#[test]
fn every_count_and_number_of_threads() {
    for (protocol, code) in [
        ("ferret", None),
        ("ferret-uni", None),
        ("silent", Some("linear")),
        ("silent", Some("quasi-cyclic")),
        ("softspoken", Some("groups-2")),
        ("softspoken", Some("groups-8")),
    ] {
        for security in [Security::SemiHonest, Security::Malicious] {
            let protocol = ot::protocol(protocol, security).unwrap();
            for (count, threads) in [(1, 2), (1000, 2), (1000, 4), (1_000_001, 3)] {
                let share = count / threads as u64;
                let pick = protocol.pick(share, security, &Choice { code, ..Choice::default() }).unwrap();
                let job = Job { pick, kind: Kind::Cot, count };
                correlate(&job, threads);
                if protocol.name == "ferret" && count > 1 {
                    correlate(&job.up_front(threads).unwrap(), threads);
                }
            }
        }
    }
}
