//! Jobs run by both parties over channels: what they give, what they refuse, and what an observer hears.

use std::sync::Mutex;
use std::time::Duration;
use tacit::crypto::{BitVec, Block};
use tacit::job::ot::{Job, Role, Sink, Source};
use tacit::job::psi::{self, Gift, Learns, Protocol};
use tacit::job::{Observer, Step, pool};
use tacit::net::{Channel, LinkModel, Traffic, memory};
use tacit::ot::{self, Kind, Own, Sent};
use tacit::plan::Link;
use tacit::pool::{Pool, PoolKey};
use tacit::{Result, Security};
use tacit_ot::base;

/// Hears of everything.
#[derive(Default)]
struct Witness {
    steps: Mutex<Vec<Step>>,
    traffic: Mutex<Option<Traffic>>,
}

impl Observer for Witness {
    fn opened(&self, traffic: &Traffic, _: u64) {
        *self.traffic.lock().unwrap() = Some(traffic.clone());
    }

    fn step(&self, step: &Step) {
        self.steps.lock().unwrap().push(*step);
    }
}

impl Witness {
    /// The phases in their order; fractions and bytes must never fall, and no step may be the end.
    fn phases(&self) -> Vec<&'static str> {
        let steps = self.steps.lock().unwrap();
        for pair in steps.windows(2) {
            assert!(pair[0].fraction <= pair[1].fraction && pair[0].bytes <= pair[1].bytes, "{pair:?}");
        }
        assert!(
            steps.iter().all(|step| step.fraction <= Step::LAST && step.done <= step.total.max(step.done))
        );
        let mut phases: Vec<_> = steps.iter().map(|step| step.phase).collect();
        phases.dedup();
        phases
    }
}

#[test]
fn an_intersection_by_either_protocol_and_its_phases() {
    let set = |range: std::ops::Range<u32>| range.map(u32::to_le_bytes).collect::<Vec<_>>();
    for protocol in [Protocol::Paxos, Protocol::Vole] {
        let side = |mine: Vec<[u8; 4]>, learns, most| {
            move |channel: &mut Channel| {
                let job = psi::Job { protocol, ..psi::Job::new(learns, Security::Malicious) };
                let (base, witness) = (base::default(), Witness::default());
                let ran = job.run(std::slice::from_mut(channel), &*base, &mine, most, &witness);
                let passed = witness.traffic.lock().unwrap().as_ref().map_or(0, Traffic::bytes);
                let (phases, stats) = (witness.phases(), channel.stats());
                (ran.map(|outcome| outcome.matches), phases, passed, stats)
            }
        };
        let (a, b) =
            memory::run(side(set(0..3000), Learns::Me, 2000), side(set(2000..4000), Learns::Peer, 3000));
        assert_eq!(a.0.unwrap(), Some((2000..3000).collect()));
        assert_eq!(b.0.unwrap(), None);
        for (phases, passed, stats) in [(a.1, a.2, a.3), (b.1, b.2, b.3)] {
            assert_eq!(phases, ["setting up", "encoding", "transferring", "tagging", "comparing"]);
            assert_eq!(passed, stats.bytes_sent + stats.bytes_received);
        }
        // A peer with more keys than it may have.
        let (a, _) = memory::run(side(set(0..10), Learns::Me, 9), side(set(5..15), Learns::Peer, 1000));
        assert!(a.0.unwrap_err().to_string().contains("10 elements where at most 9"));
    }
}

/// `auto` is settled by what both sides announce, and a side that announces one number and has another is
/// found out.
#[test]
fn auto_runs_what_the_sizes_of_both_sets_want() {
    let set = |range: std::ops::Range<u64>| range.map(u64::to_le_bytes).collect::<Vec<_>>();
    let run = |channel: &mut Channel, mine: &[[u8; 8]], protocol, learns| {
        let job = psi::Job { protocol, ..psi::Job::new(learns, Security::SemiHonest) };
        job.run(std::slice::from_mut(channel), &*base::default(), mine, 1 << 20, &())
    };
    for (keys, picked) in [(0, Protocol::Paxos), (20_000, Protocol::Vole)] {
        let bytes = |protocol| {
            let ((outcome, stats), _) = memory::run(
                |channel| {
                    let outcome = run(channel, &set(0..4000), protocol, Learns::Me).unwrap();
                    (outcome, channel.stats())
                },
                |channel| run(channel, &set(3000..3000 + keys), protocol, Learns::Peer).unwrap(),
            );
            assert_eq!(outcome.matches.unwrap().len() as u64, keys.min(1000));
            stats.bytes_sent
        };
        let job = psi::Job::new(Learns::Me, Security::SemiHonest);
        assert_eq!(job.fastest(4000, keys, &LinkModel::LOOPBACK.into()), picked);
        assert_eq!(job.fastest(4000, keys, &LinkModel::WAN.into()), picked);
        // Beside the sizes it sends what the protocol does when it is named, of which the length may vary by
        // a handful of bytes.
        let (auto, named) = (bytes(Protocol::Auto), bytes(picked));
        assert!(auto.abs_diff(named) < 64, "{auto} and {named} bytes with {keys} keys there");
    }
    // A peer that announces another size than it said for the choice of a protocol gets nothing: by a smaller one
    // it would have PaXoS, and test some 60 keys where one was charged.
    for (said, keys) in [(10, 20), (10, 5), (0, 1), (5000, 1)] {
        let (honest, cheater) = memory::run(
            |channel| run(channel, &set(0..400), Protocol::Auto, Learns::Peer),
            |channel| {
                channel.send_u64(said)?;
                channel.flush()?;
                channel.recv_u64()?;
                run(channel, &set(0..keys), Protocol::Paxos, Learns::Me)
            },
        );
        assert!(honest.is_err() && cheater.is_err(), "{said} said, {keys} announced");
    }
}

/// Between the sizes that settle it the link does: both sides run what the listening one measured, and say
/// so.
#[test]
fn auto_measures_the_link_where_the_sizes_leave_it_open() {
    let job = |learns| psi::Job::new(learns, Security::SemiHonest);
    let links: [Link; 2] = [LinkModel::LOOPBACK.into(), Link { megabits: 20.0, round_trip: Duration::ZERO }];
    let picks = |keys: u64| links.map(|link| job(Learns::Me).fastest(keys, keys, &link));
    let open = (0..100_000).step_by(100).find(|&keys| picks(keys)[0] != picks(keys)[1]).unwrap();
    let set = |from: u64| (from..from + open).map(u64::to_le_bytes).collect::<Vec<_>>();
    let run = |channel: &mut Channel, mine: &[[u8; 8]], learns| {
        let channels = std::slice::from_mut(channel);
        match job(learns).run_with(channels, &*base::default(), mine, Gift::None, 1 << 20, &()).unwrap() {
            psi::Revealed::Rows(outcome, why) => (outcome, why.unwrap()),
            _ => panic!("rows were asked for"),
        }
    };
    let (ours, theirs) = memory::run(
        |channel| run(channel, &set(0), Learns::Me),
        |channel| run(channel, &set(open / 2), Learns::Peer),
    );
    assert_eq!(ours.0.matches.unwrap().len() as u64, open - open / 2);
    assert_eq!(ours.0.protocol, theirs.0.protocol);
    for why in [ours.1, theirs.1] {
        assert!(why.contains("over this link (") && why.contains("Mbit/s"), "{why}");
    }
}

/// What the two sides' terms are equal in, and what not.
#[test]
fn jobs_that_differ_differ_in_their_terms() {
    let base = base::default();
    let terms = |change: &dyn Fn(&mut psi::Job)| {
        let mut job = psi::Job::new(Learns::Me, Security::Malicious);
        change(&mut job);
        job.agreement(&*base)
    };
    let plain = terms(&|_| ());
    assert_eq!(plain.parameters()["protocol"], "auto");
    assert_eq!(plain.parameters()["reveal"], "rows");
    assert_ne!(terms(&|job| job.protocol = Protocol::Vole), plain);
    assert_ne!(terms(&|job| job.learns = Learns::Both), plain);
    // What a side allows its peer, and what it does with memory, is its own.
    assert_eq!(terms(&|job| job.most_peer_keys = Some(7)), plain);
}

/// What a run handed out.
#[derive(Default)]
struct Kept {
    pairs: Vec<[Block; 2]>,
    got: Vec<(bool, Block)>,
}

impl Sink for Kept {
    fn sent(&mut self, part: Sent<'_>) -> Result<()> {
        if let Sent::Pairs(pairs) = part {
            self.pairs.extend_from_slice(pairs);
        }
        Ok(())
    }

    fn received(&mut self, choices: &BitVec, messages: &[Block]) -> Result<()> {
        self.got.extend(choices.iter().zip(messages.iter().copied()));
        Ok(())
    }
}

#[test]
fn a_pool_is_made_and_transfers_come_out_of_it() {
    const COUNT: u64 = 5000;
    let folder = tempfile::tempdir().unwrap();
    let side = |role: Role| {
        let path = folder.path().join(role.name());
        move |channel: &mut Channel| {
            let key = PoolKey::from_bytes(&[role as u8 + 1; 32]).unwrap();
            let (base, witness) = (base::default(), Witness::default());
            let protocol = ot::protocol("kos", Security::Malicious).unwrap();
            let choice = ot::Choice::default();
            let pick = protocol.pick(1 << 20, Security::Malicious, &choice).unwrap();
            let job = pool::Job { role, pick, choice, count: COUNT };
            let mut out = std::fs::File::create(&path).unwrap();
            let channels = std::slice::from_mut(channel);
            let header = job.run(channels, &*base, &key, &mut out, &witness).unwrap();
            assert_eq!((header.count, witness.phases()), (COUNT, vec!["setting up", "pool"]));
            assert_eq!(out.metadata().unwrap().len(), job.file_length());
            assert!(job.learns().contains("nothing of your half"));

            let source = Source::Pool(Box::new(Pool::open(&path, &key).unwrap()));
            let job = Job::from_source(role, Kind::Rot, 700, &source, Security::Malicious).unwrap();
            assert_eq!(job.agreement(&*base).parameters()["protocol"], "pool");
            let (mut kept, witness) = (Kept::default(), Witness::default());
            job.run(channels, &*base, source, &Own::Drawn, &mut kept, &witness).unwrap();
            assert_eq!(witness.phases(), ["setting up", "OT"]);
            assert_eq!(Pool::open(&path, &key).unwrap().left(), COUNT - 700);
            kept
        }
    };
    let (sent, received) = memory::run(side(Role::Sender), side(Role::Receiver));
    assert_eq!((sent.pairs.len(), received.got.len()), (700, 700));
    for (pair, (choice, message)) in sent.pairs.iter().zip(&received.got) {
        assert_eq!(pair[usize::from(*choice)], *message);
        assert_ne!(pair[usize::from(!*choice)], *message);
    }
    let none = Job::from_source(Role::Sender, Kind::Rot, 1, &Source::Protocol, Security::Malicious);
    assert!(none.is_none());
}

/// What a service charges: against a malicious peer what a number can carry, and where the protocol promises nothing
/// against one that deviates, every key.
#[test]
fn a_semi_honest_run_is_charged_with_all_that_a_deviating_peer_can_get() {
    for (reveal, malicious) in [("rows", 235), ("count", 64)] {
        let job =
            |security| psi::Job { reveal: reveal.parse().unwrap(), ..psi::Job::new(Learns::Peer, security) };
        assert_eq!(job(Security::Malicious).reveals_at_most(100_000, 100).unwrap(), malicious, "{reveal}");
        assert_eq!(job(Security::SemiHonest).reveals_at_most(100_000, 100).unwrap(), 100_000, "{reveal}");
    }
}
