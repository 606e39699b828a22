//! Two gateways, and engines of tasks at either: results are those of a plain join or there are none; what
//! was run once is not run again; who deviates, and what breaks, ends in one clear error on both sides.

use crate::gateway_support::{Harm, House, Way, engine, keys, plain};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tacit::job::psi::gateway::{Gateway, Given, Planned, Ran, Setup, Throw, Token};
use tacit::job::psi::{ATTEMPTS, Job, Learns, Reveal};
use tacit::net::Identity;
use tacit::sealed::FileKey;
use tacit::{Blame, Security, Session};
use zeroize::Zeroizing;

const PATIENCE: Duration = Duration::from_secs(60);

/// Where no columns are given.
fn no_cell(_: usize, _: usize) -> Option<&'static [u8]> {
    None
}

#[test]
fn engines_of_any_speed_and_order_get_the_result_of_a_plain_join() {
    let house = House::new();
    let (ours, theirs) = (keys(0..4000), keys(3000..9000));
    // One slot each, and orders that never meet: without giving up slots nothing would ever run.
    for (label, slots, ascending) in [("wide", [4, 2], [true, true]), ("narrow", [1, 1], [true, false])] {
        let [a, b] = house.both(label, [&ours, &theirs], Learns::Both, PATIENCE, |side, planned, keys| {
            engine(&planned, &side.cluster, keys, slots[side.number], ascending[side.number])
        });
        let (a, b) = (a.unwrap(), b.unwrap());
        assert_eq!(a.matches, plain(&ours, &theirs), "{label}");
        assert_eq!(b.matches, a.matches, "{label}");
        assert_eq!((a.ran.own, a.ran.peer, a.ran.buckets, a.ran.repeated), (4000, 6000, 8, 0));
        assert_eq!(label == "narrow", a.deferred + b.deferred > 0);
        // All places of all buckets count, and not the keys announced alone.
        let tested = a.ran.tested.unwrap();
        assert!(tested.likely > 8 * a.ran.places[1] && tested.likely <= tested.most, "{tested:?}");
    }
}

#[test]
fn only_who_is_to_learn_learns_and_an_empty_side_runs_nothing() {
    let house = House::new();
    let (ours, theirs, none) = (keys(0..700), keys(300..1000), keys(0..0));
    let [a, b] = house.both("one", [&ours, &theirs], Learns::Me, PATIENCE, |side, planned, keys| {
        engine(&planned, &side.cluster, keys, 2, true)
    });
    let (a, b) = (a.unwrap(), b.unwrap());
    assert_eq!(a.matches, plain(&ours, &theirs));
    assert!(b.matches.is_empty() && b.ran.common.is_none() && a.ran.common.is_some());
    assert!(
        a.ran.tested.is_none() && b.ran.tested.is_some(),
        "the peer of the one that learns can test nothing"
    );
    let [a, b] = house.both("none", [&ours, &none], Learns::Both, PATIENCE, |side, planned, _| {
        assert!(planned.own == 0 || planned.peer == 0);
        planned.ran(&side.cluster, 0)
    });
    assert_eq!((a.unwrap().peer, b.unwrap().own), (0, 0));
}

#[test]
fn a_bucket_that_ended_is_served_by_the_gateway_alone_and_takes_no_other_keys() {
    let mut house = House::new();
    let (ours, theirs) = (keys(0..1500), keys(500..2500));
    let [a, b] = house.both("again", [&ours, &theirs], Learns::Both, PATIENCE, |side, planned, keys| {
        engine(&planned, &side.cluster, keys, 2, true).map(|ran| (planned, ran))
    });
    let ((planned, first), _) = (a.unwrap(), b.unwrap());
    // The peer's gateway is gone, and ours was started again.
    house.stop(1);
    house.stop(0);
    house.start(0);
    let again = engine(&planned, &house.sides[0].cluster, &ours, 2, true).unwrap();
    assert_eq!(again.matches, first.matches);
    assert_eq!(again.ran.repeated, 0);
    let opened = house.open(0, "again", &ours, Learns::Both, Security::Malicious, PATIENCE).unwrap();
    assert_eq!(opened.peer, 2000);

    let throw = planned.throw();
    let bucket: Vec<[u8; 32]> = ours.iter().copied().filter(|digest| throw.bucket(digest) == 0).collect();
    let fewer = Zeroizing::new(bucket[1..].to_vec());
    let error = planned.run(&house.sides[0].cluster, 0, fewer, &no_cell).unwrap_err();
    assert_eq!(error.blame(), Blame::Input);
    assert!(error.to_string().contains("other keys or rows than when it was first run"), "{error}");
    let error = planned.run(&house.sides[0].cluster, 1, Zeroizing::new(bucket), &no_cell).unwrap_err();
    assert!(error.to_string().contains("belongs to another"), "{error}");
    let more =
        house.open(0, "again", &keys(0..1501), Learns::Both, Security::Malicious, PATIENCE).unwrap_err();
    assert!(more.to_string().contains("another number of keys"), "{more}");
    let other = house.open(0, "again", &ours, Learns::Me, Security::Malicious, PATIENCE).unwrap_err();
    assert!(other.to_string().contains("other options"), "{other}");
}

/// As an engine that speculates starts them; the other side comes late.
#[test]
fn of_several_copies_of_a_task_one_runs_and_all_get_its_result() {
    let house = House::new();
    let (ours, theirs) = (keys(0..1000), keys(400..1400));
    let planned = house.plans("copies", [&ours, &theirs], Learns::Both, PATIENCE);
    let throw = planned[0].throw();
    let first = |keys: &[[u8; 32]]| -> Zeroizing<Vec<[u8; 32]>> {
        Zeroizing::new(keys.iter().copied().filter(|digest| throw.bucket(digest) == 0).collect())
    };
    let run = |side: usize, keys: &[[u8; 32]]| {
        planned[side].run(&house.sides[side].cluster, 0, first(keys), &no_cell).unwrap()
    };
    let (copies, other) = std::thread::scope(|scope| {
        let (run, ours) = (&run, &ours);
        let copies = [0; 3].map(|side| scope.spawn(move || run(side, ours)));
        std::thread::sleep(Duration::from_millis(1500));
        let other = run(1, &theirs);
        (copies.map(|copy| copy.join().unwrap()), other)
    });
    let Ran::Matches { digests: found, .. } = &other else { panic!("{other:?}") };
    assert!(!found.is_empty() && copies.iter().all(|copy| *copy == other));
    for side in [0, 1] {
        let left: Vec<u64> = (1..8).collect();
        assert_eq!(planned[side].left(&house.sides[side].cluster).unwrap(), left);
    }
    let [a, b] = house.both("copies", [&ours, &theirs], Learns::Both, PATIENCE, |side, planned, keys| {
        engine(&planned, &side.cluster, keys, 2, true)
    });
    assert_eq!(a.unwrap().ran.repeated + b.unwrap().ran.repeated, 0);
}

#[test]
fn tasks_that_die_in_the_middle_are_run_again_and_counted() {
    let house = House::new();
    let (ours, theirs) = (keys(0..2000), keys(1000..4000));
    for (seed, after) in [(1_u64, 3_000), (2, 20_000), (3, 40_000)] {
        // Of every bucket the first connection that gets so far is cut, on one side or on the other.
        let cut = (seed % 2) as usize;
        let ways = [0, 1].map(|side| Way::start(&house.sides[side].cluster, after, Harm::Cut));
        ways[cut].left.store(2, Ordering::SeqCst);
        let label = format!("cut {after}");
        let [a, b] = house.both(&label, [&ours, &theirs], Learns::Both, PATIENCE, |side, planned, keys| {
            let address = ways[side.number].address.clone();
            engine(&planned, &address, keys, 2, true)
        });
        let (a, b) = (a.unwrap(), b.unwrap());
        assert_eq!(a.matches, plain(&ours, &theirs), "after {after} bytes, side {cut}");
        assert_eq!(b.matches, a.matches);
        assert_eq!(ways[cut].left.load(Ordering::SeqCst), 0, "nothing was cut after {after} bytes");
        assert!(a.ran.repeated >= 1 && a.ran.repeated == b.ran.repeated, "{:?}", a.ran);
        // Each attempt counts: the peer could have come with another set.
        let once = tacit::job::psi::Bucketed { repeated: 0, ..a.ran.clone() };
        assert!(a.ran.tested.unwrap().likely > once.buckets * once.places[1]);
    }
}

#[test]
fn a_bucket_that_is_lost_too_often_ends_the_job_on_both_sides_for_good() {
    let mut house = House::new();
    let (ours, theirs) = (keys(0..1000), keys(500..1500));
    let way = Way::start(&house.sides[0].cluster, 3_000, Harm::Cut);
    way.left.store(usize::MAX / 2, Ordering::SeqCst);
    let [a, b] = house.both("often", [&ours, &theirs], Learns::Both, PATIENCE, |side, planned, keys| {
        let address = if side.number == 0 { way.address.clone() } else { side.cluster.clone() };
        engine(&planned, &address, keys, 1, true)
    });
    for error in [a.unwrap_err(), b.unwrap_err()] {
        assert_eq!(error.blame(), Blame::Peer);
        assert!(error.to_string().contains("ended for good"), "{error}");
    }
    for side in [0, 1] {
        house.stop(side);
        house.start(side);
    }
    for side in [0, 1] {
        let keys = if side == 0 { &ours } else { &theirs };
        let error = house.open(side, "often", keys, Learns::Both, Security::Malicious, PATIENCE).unwrap_err();
        assert!(error.to_string().contains("ended for good"), "{error}");
    }
    assert!(u64::from(ATTEMPTS) < 4);
}

#[test]
fn a_failed_check_ends_the_job_on_both_sides_for_good() {
    let mut house = House::new();
    let (ours, theirs) = (keys(0..1000), keys(500..1500));
    // What the first side's task sends is changed by somebody with its gateway's token: a peer that deviates.
    let way = Way::start(&house.sides[0].cluster, 6_000, Harm::flip(&house.sides[0]));
    way.left.store(usize::MAX / 2, Ordering::SeqCst);
    let start = Instant::now();
    let [a, b] = house.both("cheat", [&ours, &theirs], Learns::Both, PATIENCE, |side, planned, keys| {
        let address = if side.number == 0 { way.address.clone() } else { side.cluster.clone() };
        engine(&planned, &address, keys, 2, true)
    });
    assert!(a.is_err() && b.is_err() && start.elapsed() < PATIENCE);
    let says = |side: usize| house.said(side).iter().any(|line| line.contains("a check failed"));
    assert!(says(0) || says(1), "{:?} {:?}", house.said(0), house.said(1));
    for side in [0, 1] {
        house.stop(side);
        house.start(side);
    }
    for side in [0, 1] {
        let keys = if side == 0 { &ours } else { &theirs };
        let error = house.open(side, "cheat", keys, Learns::Both, Security::Malicious, PATIENCE).unwrap_err();
        assert!(error.to_string().contains("ended for good"), "{error}");
        assert_eq!(error.blame(), Blame::Peer);
    }
}

#[test]
fn a_gateway_that_is_started_again_goes_on() {
    for number in [0, 1] {
        let mut house = House::new();
        let (ours, theirs) = (keys(0..3000), keys(2000..6000));
        let planned = house.plans("restart", [&ours, &theirs], Learns::Both, PATIENCE);
        let clusters = [0, 1].map(|side| house.sides[side].cluster.clone());
        let (a, b) = std::thread::scope(|scope| {
            let run = |side: usize, keys| {
                let (planned, cluster) = (planned[side].clone(), clusters[side].clone());
                scope.spawn(move || engine(&planned, &cluster, keys, 2, true))
            };
            let (a, b) = (run(0, &ours), run(1, &theirs));
            for _ in 0..2 {
                std::thread::sleep(Duration::from_millis(60));
                house.stop(number);
                std::thread::sleep(Duration::from_millis(60));
                house.start(number);
            }
            (a.join().unwrap().unwrap(), b.join().unwrap().unwrap())
        });
        assert_eq!(a.matches, plain(&ours, &theirs), "gateway {number}");
        assert_eq!(b.matches, a.matches);
        assert!(a.ran.repeated <= 8 * u64::from(ATTEMPTS - 1));
    }
}

/// The rows that the second side gives: of every key `1 + key % 3`, in two columns.
fn city_and_note(key: usize) -> impl Iterator<Item = [Option<Vec<u8>>; 2]> {
    (0..1 + key % 3).map(move |row| {
        let note = (!key.is_multiple_of(4)).then(|| "x".repeat((key * 7 + row) % 30).into_bytes());
        [Some(format!("city {}", (key + row) % 9).into_bytes()), note]
    })
}

#[test]
fn columns_of_matching_rows_come_bucket_by_bucket_and_are_kept_for_who_comes_again() {
    let mut house = House::new();
    let (ours, theirs) = (keys(0..600), keys(400..1000));
    let rows: Vec<_> =
        (400..1000).flat_map(|key| city_and_note(key).map(move |row| (key - 400, row))).collect();
    let given = Given { columns: vec![("city".into(), 6), ("note".into(), 29)], rows: 3 };
    let base = tacit_ot::base::default();
    let open = |house: &House, number: usize, given: Given| {
        let side = &house.sides[number];
        let token = Token::from_file(&side.state.join("token")).unwrap();
        let (learns, asked) =
            [(Learns::Me, vec!["note".into(), "city".into()]), (Learns::Peer, vec![])][number].clone();
        let give = given.columns.iter().map(|(name, _)| name.clone()).collect();
        let job = Job { reveal: Reveal::Payload(asked), give, ..Job::new(learns, Security::Malicious) };
        Planned::open(&side.cluster, &token, "columns", &job, &*base, (600, 8), given, PATIENCE)
    };
    let planned = std::thread::scope(|scope| {
        let other = scope.spawn(|| open(&house, 1, given.clone()).unwrap());
        [open(&house, 0, Given::default()).unwrap(), other.join().unwrap()]
    });
    let run = |house: &House, side: usize, number: u64, rows: &[(usize, [Option<Vec<u8>>; 2])]| {
        let throw = planned[side].throw();
        let is_here = |digest: &[u8; 32]| throw.bucket(digest) == number;
        let cluster = &house.sides[side].cluster;
        if side == 0 {
            let mine = ours.iter().copied().filter(is_here).collect();
            return planned[0].run(cluster, number, Zeroizing::new(mine), &no_cell);
        }
        let here: Vec<_> = rows.iter().filter(|(key, _)| is_here(&theirs[*key])).collect();
        let digests = Zeroizing::new(here.iter().map(|(key, _)| theirs[*key]).collect());
        planned[1].run(cluster, number, digests, &|row, column| here[row].1[column].as_deref())
    };
    // The rows come in another order each time, as an engine brings them.
    let backwards: Vec<_> = rows.iter().rev().cloned().collect();
    let all = |house: &House, rows: &[_]| -> Vec<_> {
        let mut found = Vec::new();
        for number in 0..8 {
            let ran = std::thread::scope(|scope| {
                let other = scope.spawn(|| run(house, 1, number, rows).unwrap());
                let mine = run(house, 0, number, rows).unwrap();
                assert_eq!(
                    other.join().unwrap(),
                    Ran::Matches { digests: vec![], cells: vec![], unopened: 0 }
                );
                mine
            });
            let Ran::Matches { digests, cells, unopened: 0 } = ran else { panic!("{ran:?}") };
            found.extend(digests.into_iter().zip(cells));
        }
        found.sort();
        found
    };
    let found = all(&house, &rows);
    let mut plain: Vec<_> = rows
        .iter()
        .filter(|(key, _)| *key < 200)
        .collect::<Vec<_>>()
        .into_iter()
        .map(|(key, [city, note])| (theirs[*key], vec![note.clone(), city.clone()]))
        .collect();
    plain.sort();
    assert_eq!(found, plain);
    let words = planned[1].has_learned(&planned[1].ran(&house.sides[1].cluster, 0).unwrap());
    assert!(words.contains("how wide those columns are and the most rows a key"), "{words}");
    assert_eq!(all(&house, &backwards), found);
    // The peer is gone: what came is on our disk, sealed.
    house.stop(1);
    for number in 0..8 {
        assert!(matches!(run(&house, 0, number, &rows), Ok(Ran::Matches { .. })));
    }
    let is_plain = |path: &std::path::PathBuf| {
        path.is_file() && std::fs::read(path).unwrap().windows(6).any(|bytes| bytes == b"city 3")
    };
    assert!(!walk(&house.sides[0].state).iter().any(is_plain));
    house.start(1);
    // Other cells of the same keys are other rows, and wider ones have no room in the layout.
    let mut other = rows.clone();
    other.iter_mut().for_each(|(_, row)| row[0] = Some(b"town 1".to_vec()));
    let error = run(&house, 1, 0, &other).unwrap_err();
    assert!(error.to_string().contains("other keys or rows than when it was first run"), "{error}");
    other.iter_mut().for_each(|(_, row)| row[0] = Some(b"city 10".to_vec()));
    let error = run(&house, 1, 0, &other).unwrap_err();
    assert_eq!(error.blame(), Blame::Input);
    assert!(error.to_string().contains("column city has a longer cell"), "{error}");
    assert!(open(&house, 1, Given { columns: vec![], ..given }).is_err());
}

#[test]
fn a_gateway_that_lost_what_it_kept_is_noticed() {
    let mut house = House::new();
    let (ours, theirs) = (keys(0..800), keys(400..1200));
    let planned = house.plans("lost", [&ours, &theirs], Learns::Both, PATIENCE);
    let clusters = [0, 1].map(|side| house.sides[side].cluster.clone());
    std::thread::scope(|scope| {
        let [one, two] = [0, 1].map(|side| (planned[side].clone(), clusters[side].clone()));
        let throw = one.0.throw();
        let of = |keys: &[[u8; 32]]| -> Vec<[u8; 32]> {
            keys.iter().copied().filter(|digest| throw.bucket(digest) == 0).collect()
        };
        let (mine, other) = (of(&ours), of(&theirs));
        let a = scope.spawn(move || one.0.run(&one.1, 0, Zeroizing::new(mine), &no_cell));
        let b = scope.spawn(move || two.0.run(&two.1, 0, Zeroizing::new(other), &no_cell));
        assert!(matches!(
            (a.join().unwrap().unwrap(), b.join().unwrap().unwrap()),
            (Ran::Matches { .. }, Ran::Matches { .. })
        ));
    });
    house.stop(1);
    std::fs::remove_dir_all(house.sides[1].state.join("jobs")).unwrap();
    house.start(1);
    let [a, b] = house.opened("lost", [&ours, &theirs], Learns::Both, Duration::from_secs(8));
    // The first has its plan on disk and says so; what it cannot do is run a bucket of it.
    let error = b.unwrap_err();
    assert_eq!(error.blame(), Blame::Peer);
    assert!(error.to_string().contains("no stored state of this run"), "{error}");
    let error = engine(&a.unwrap(), &clusters[0], &ours, 1, true).unwrap_err();
    assert!(error.to_string().contains("no stored state of this run"), "{error}");
}

#[test]
fn different_terms_are_named_and_a_peer_that_stays_away_is_waited_for_no_longer_than_said() {
    let house = House::new();
    let ours = keys(0..100);
    let levels = [Security::Malicious, Security::SemiHonest];
    let [a, b] = std::thread::scope(|scope| {
        let sides = [0, 1].map(|side| {
            let (house, ours) = (&house, &ours);
            scope.spawn(move || house.open(side, "terms", ours, Learns::Both, levels[side], PATIENCE))
        });
        sides.map(|side| side.join().unwrap())
    });
    for error in [a.unwrap_err(), b.unwrap_err()] {
        assert!(error.to_string().contains("security"), "{error}");
        assert!(!error.to_string().contains('\n'));
    }
    let start = Instant::now();
    for side in [0, 1] {
        let error = house
            .open(side, "alone", &ours, Learns::Both, Security::Malicious, Duration::from_secs(2))
            .unwrap_err();
        assert_eq!(error.blame(), Blame::Peer, "{error}");
        assert!(error.to_string().contains("did not come to this job within 2 s"), "{error}");
    }
    assert!(start.elapsed() < Duration::from_secs(20));
    // The job settles, and then the peer's tasks never come.
    let planned = house.plans("silent", [&ours, &ours], Learns::Both, Duration::from_secs(2));
    let start = Instant::now();
    let error = engine(&planned[0], &house.sides[0].cluster, &ours, 2, true).unwrap_err();
    assert_eq!(error.blame(), Blame::Peer, "{error}");
    assert!(error.to_string().contains("no progress for 2 s"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(30));
}

/// proof: buckets 2.2
#[test]
fn a_peer_with_more_keys_than_a_side_accepts_settles_nothing() {
    let house = House::new();
    let (few, many) = (keys(0..100), keys(0..101));
    let open = |label: &str, most, patience| {
        let ours = Job { most_peer_keys: Some(most), ..Job::new(Learns::Both, Security::Malicious) };
        std::thread::scope(|scope| {
            let (house, few, many) = (&house, &few, &many);
            let there =
                scope.spawn(move || house.open(1, label, many, Learns::Both, Security::Malicious, patience));
            (house.open_job(0, label, few, &ours, PATIENCE), there.join().unwrap())
        })
    };
    let (here, there) = open("too many", 100, Duration::from_secs(4));
    let error = here.unwrap_err();
    assert_eq!(error.blame(), Blame::Peer, "{error}");
    assert!(error.to_string().contains("the peer has 101 keys, more than the 100 allowed"), "{error}");
    there.unwrap_err();
    let (here, there) = open("as many", 101, PATIENCE);
    // A plan that was settled is no way around a lower limit later.
    let less = Job { most_peer_keys: Some(100), ..Job::new(Learns::Both, Security::Malicious) };
    let error = house.open_job(0, "as many", &few, &less, PATIENCE).unwrap_err();
    assert!(error.to_string().contains("more than the 100 allowed"), "{error}");
    assert_eq!((here.unwrap().peer, there.unwrap().peer), (101, 100));
}

#[test]
fn who_has_no_token_is_told_nothing_and_a_jobs_token_is_for_that_job_alone() {
    let house = House::new();
    let ours = keys(0..300);
    let planned = house.plans("mine", [&ours, &ours], Learns::Both, PATIENCE);
    let side = &house.sides[0];
    let stranger = side.dir.path().join("token");
    write_token(&stranger);
    let job = Job::new(Learns::Both, Security::Malicious);
    let base = tacit_ot::base::default();
    let open = |token: &Token, label: &str| {
        Planned::open(
            &side.cluster,
            token,
            label,
            &job,
            &*base,
            (300, 8),
            Given::default(),
            Duration::from_secs(1),
        )
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |mode| std::fs::set_permissions(&stranger, PermissionsExt::from_mode(mode)).unwrap();
        mode(0o640);
        let error = Token::from_file(&stranger).err().unwrap().to_string();
        assert!(error.contains("others may read this token (mode 640)"), "{error}");
        mode(0o600);
    }
    let error = open(&Token::from_file(&stranger).unwrap(), "mine").unwrap_err();
    assert!(error.to_string().contains("does not know the token"), "{error}");
    let start = Instant::now();
    while !house.said(0).iter().any(|line| line.contains("without the token")) {
        assert!(start.elapsed() < PATIENCE, "{:?}", house.said(0));
        std::thread::sleep(Duration::from_millis(20));
    }
    // A plan for another job with this job's token.
    let mut bytes = planned[0].to_bytes().to_vec();
    assert_eq!(&bytes[8..12], b"mine");
    bytes[8..12].copy_from_slice(b"your");
    let other = Planned::from_bytes(&bytes).unwrap();
    assert!(other.ran(&side.cluster, 0).is_err());
    assert!(planned[0].ran(&side.cluster, 0).is_ok());
    // Nothing of it shows.
    let shown = format!("{:?}", planned[0]);
    let lines = house.said(0).join("\n");
    let secret = std::fs::read_to_string(side.state.join("token")).unwrap();
    assert!(shown.contains("[secret]") && !lines.contains(secret.trim()));
    #[cfg(unix)]
    for entry in walk(&side.state) {
        use std::os::unix::fs::PermissionsExt;
        let mode = entry.metadata().unwrap().permissions().mode() & 0o077;
        let is_lock = entry.file_name().is_some_and(|name| name == "lock");
        assert!(mode == 0 || is_lock, "{}", entry.display());
    }
    assert!(std::fs::write(&stranger, "no token").is_ok() && Token::from_file(&stranger).is_err());
}

/// A fault of ours in one caller's work ends that work alone, and is told.
#[test]
fn a_caller_whose_work_panics_ends_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let [ours, theirs] = ["ours.key", "theirs.key"].map(|name| dir.path().join(name));
    for path in [&ours, &theirs] {
        Identity::generate().unwrap().save(path, "").unwrap();
    }
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = said.clone();
    let lines = move |line: &str| {
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        told.push(line.to_owned());
        assert!(told.len() > 1, "the first line is one too many");
    };
    let gateway = Gateway::start(Setup {
        session: Session::listen("127.0.0.1:0").keys(&ours, &theirs.with_extension("pub")).unwrap(),
        cluster: "127.0.0.1:0".to_owned(),
        state: dir.path().join("state"),
        key: FileKey::from_identity(&Identity::load(&ours).unwrap()),
        at_once: 4,
        lines: Box::new(lines),
    });
    let gateway = gateway.unwrap();
    let stranger = dir.path().join("token");
    write_token(&stranger);
    let (token, job) = (Token::from_file(&stranger).unwrap(), Job::new(Learns::Both, Security::Malicious));
    let (cluster, base) = (gateway.cluster_address().to_string(), tacit_ot::base::default());
    let count = |words: &str| {
        said.lock().unwrap_or_else(PoisonError::into_inner).iter().filter(|line| line.contains(words)).count()
    };
    for calls in 1..=2 {
        let short = Duration::from_secs(1);
        let opened = Planned::open(&cluster, &token, "mine", &job, &*base, (300, 8), Given::default(), short);
        assert!(opened.unwrap_err().to_string().contains("does not know the token"));
        let start = Instant::now();
        while count("without the token") < calls {
            assert!(start.elapsed() < PATIENCE, "{:?}", said.lock());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    assert_eq!(count("one caller's work ended: internal fault at "), 1);
}

/// As many callers as there are places, who say nothing: the party's own driver is served meanwhile, and the log has
/// a line for each time that their number has doubled.
#[test]
fn callers_that_say_nothing_keep_nobody_away() {
    let house = House::new();
    let cluster = house.sides[0].cluster.clone();
    let silent: Vec<_> = (0..400).map(|_| std::net::TcpStream::connect(&cluster).unwrap()).collect();
    let ours = keys(0..300);
    let start = Instant::now();
    let planned = house.plans("mine", [&ours, &ours], Learns::Both, PATIENCE);
    // Sooner than the silent ones' time is over.
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    assert!(planned[0].ran(&cluster, 0).is_ok());
    drop(silent);
    let (told, start) =
        (|| house.said(0).into_iter().filter(|line| line.contains("showed no token")), Instant::now());
    while !told().any(|line| line.starts_with("256 callers")) {
        assert!(start.elapsed() < PATIENCE, "{:?}", house.said(0));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(told().count(), 9, "{:?}", told().collect::<Vec<_>>());
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(walk(&path));
        }
        all.push(path);
    }
    all
}

#[test]
fn what_buckets_do_not_reveal_soundly_is_refused_in_one_line() {
    for reveal in [Reveal::Count, Reveal::Sum("amount".into()), Reveal::Mean("amount".into())] {
        let job = Job { reveal, ..Job::new(Learns::Both, Security::SemiHonest) };
        let error = job.check_by_gateways().unwrap_err();
        assert!(error.to_string().starts_with("reveal: ") && !error.to_string().contains('\n'), "{error}");
        assert_eq!(error.blame(), Blame::Usage);
    }
    assert!(Job::new(Learns::Both, Security::Malicious).check_by_gateways().is_ok());
    assert_eq!(Throw::ahead().bucket(&[1; 32]), 0);
}

/// A token of no gateway.
fn write_token(path: &std::path::Path) {
    std::fs::write(path, format!("{}\n", "ab".repeat(32))).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
}
