//! Identifiers of two sets against the plain join.

use crate::common::{Dealer, prg};
use crate::wire;
use std::collections::{HashMap, HashSet};
use tacit_crypto::workers::limited;
use tacit_crypto::{Block, Prg};
use tacit_net::{Channel, memory};
use tacit_ot::{Security, base};
use tacit_psi::link::{self, Linked};
use tacit_psi::paxos::{Learns, MAX_ELEMENTS, Options};
use tacit_psi::{Error, Result};

fn party<E: AsRef<[u8]> + Sync>(channel: &mut Channel, set: &[E], security: Security) -> Result<Linked> {
    let base = base::default();
    let options = Options {
        learns: Learns::Both,
        security,
        min_peer_elements: 0,
        max_peer_elements: 1 << 20,
        base: &*base,
    };
    link::run(channel, &mut Prg::from_os(), set, &options, &mut |_, _, _, _| ())
}

/// Elements of `range` in an order drawn from `seed`.
fn shuffled(range: std::ops::Range<u64>, seed: u128) -> Vec<Vec<u8>> {
    let mut set: Vec<_> =
        range.map(|element| element.to_le_bytes().repeat(1 + element as usize % 3)).collect();
    let mut prg = Prg::from_seed(Block::new(seed));
    for i in (1..set.len()).rev() {
        set.swap(i, prg.below(i as u64 + 1) as usize);
    }
    set
}

/// Runs both; holds the identifiers against the plain join, and gives all of both sides, as they are.
fn check(a: &[Vec<u8>], b: &[Vec<u8>], security: Security) -> [Vec<u128>; 2] {
    let (one, two) = memory::run(
        |channel| party(channel, a, security).unwrap(),
        |channel| party(channel, b, security).unwrap(),
    );
    assert_eq!((one.peer_elements, two.peer_elements), (b.len() as u64, a.len() as u64));
    assert_eq!(one.run, two.run);
    let [one, two] = [one, two].map(|of| of.identifiers.iter().map(|id| id.to_u128()).collect::<Vec<_>>());
    assert_eq!((one.len(), two.len()), (a.len(), b.len()));
    let at: HashMap<&[u8], u128> = b.iter().map(Vec::as_slice).zip(two.iter().copied()).collect();
    let all_of_b: HashSet<u128> = two.iter().copied().collect();
    for (element, id) in a.iter().zip(&one) {
        match at.get(element.as_slice()) {
            Some(theirs) => assert_eq!(id, theirs),
            None => assert!(!all_of_b.contains(id)),
        }
    }
    let all_of_a: HashSet<u128> = one.iter().copied().collect();
    assert_eq!((all_of_a.len(), all_of_b.len()), (a.len(), b.len()), "identifiers are different");
    [one, two]
}

const SECURITIES: [Security; 2] = [Security::Malicious, Security::SemiHonest];

#[test]
fn sets_of_all_shapes() {
    let cases = [
        (0..0, 0..0),
        (0..0, 0..5),
        (0..5, 0..0),
        (0..1, 0..1),
        (0..1, 1..2),
        (0..3, 0..3),
        (0..2, 1..4),
        (0..1, 0..1000),
        (0..1000, 999..1000),
        (0..700, 700..1400),
        (0..6789, 3000..10_890),
    ];
    for (i, (a, b)) in cases.into_iter().enumerate() {
        for security in SECURITIES {
            check(&shuffled(a.clone(), i as u128), &shuffled(b.clone(), 100 + i as u128), security);
        }
    }
}

/// Several bins and runs of VOLE, by any number of threads.
#[test]
fn large_sets() {
    let (a, b) = (shuffled(0..180_000, 1), shuffled(150_000..220_000, 2));
    limited(1, || check(&a, &b, Security::Malicious));
    limited(3, || check(&b, &a, Security::SemiHonest));
}

/// Two runs give identifiers that have nothing in common.
#[test]
fn identifiers_are_fresh_in_every_run() {
    let (a, b) = (shuffled(0..200, 1), shuffled(100..300, 2));
    let [first, again] = [(); 2].map(|()| check(&a, &b, Security::Malicious).concat());
    let first: HashSet<u128> = first.into_iter().collect();
    assert!(again.iter().all(|id| !first.contains(id)));
}

/// Every bit of an identifier is one in about half of them.
#[test]
fn identifiers_look_random() {
    let [one, _] = check(&shuffled(0..4000, 1), &shuffled(0..4000, 2), Security::SemiHonest);
    for bit in 0..128 {
        let ones = one.iter().filter(|id| **id >> bit & 1 == 1).count();
        // Seven standard deviations.
        assert!((1779..2221).contains(&ones), "bit {bit}: {ones}");
    }
}

#[test]
fn errors_of_the_caller_and_of_two_that_do_not_agree() {
    let twice = [[1u8; 4], [2; 4], [1; 4]].map(|e| e.to_vec());
    let (a, b) = memory::run(
        |channel| party(channel, &twice, Security::Malicious).map(|_| ()),
        |channel| party(channel, &shuffled(0..9, 1), Security::Malicious).map(|_| ()),
    );
    assert!(matches!(a, Err(Error::DuplicateElement)) && b.is_err(), "{a:?} {b:?}");
    let (a, b) = memory::run(
        |channel| party(channel, &shuffled(0..9, 1), Security::SemiHonest).map(|_| ()),
        |channel| party(channel, &shuffled(0..9, 1), Security::Malicious).map(|_| ()),
    );
    for result in [a, b] {
        assert!(matches!(result, Err(Error::Disagreement { .. } | Error::Net(_))), "{result:?}");
    }
    let (result, ()) = memory::run(
        |channel| {
            let (base, set) = (base::default(), shuffled(0..9, 1));
            let options = Options {
                learns: Learns::Me,
                security: Security::Malicious,
                min_peer_elements: 0,
                max_peer_elements: 9,
                base: &*base,
            };
            link::run(channel, &mut Prg::from_os(), &set, &options, &mut |_, _, _, _| ()).map(|_| ())
        },
        |_| (),
    );
    assert!(matches!(result, Err(Error::Usage(_))), "{result:?}");
}

#[test]
fn errors_of_chance_and_bounds_are_as_promised() {
    for (own, peer) in
        [(1, 1), (10, 1000), (1024, 1024), (5000, 3), (1 << 16, 1 << 20), (MAX_ELEMENTS, MAX_ELEMENTS)]
    {
        for security in SECURITIES {
            let error = link::statistical_error_log2(own, peer, security).unwrap();
            assert!(error <= -40.0, "{own} × {peer}: {error}");
            let [mine, theirs] =
                [(own, peer), (peer, own)].map(|(a, b)| link::memory(a, b, security).unwrap());
            assert!(mine > 48 * own as u64 && theirs > 48 * peer as u64);
        }
        let [some, more] = [60.0, 80.0].map(|calls| link::named_at_most(own as u64, peer, calls).unwrap());
        assert!(own as u64 <= some && some <= more && more < 26 * own as u64 + 64, "{own}: {some}, {more}");
    }
    assert_eq!(link::named_at_most(0, 5, 60.0).unwrap(), 0);
}

/// What both send and get, with fixed seeds, in one line.
fn digest(security: Security, sizes: [u64; 2], threads: usize) -> String {
    let side = |channel: &mut Channel, party: usize| {
        let common = sizes[0].min(sizes[1]) / 2;
        let first = if party == 0 { 0 } else { sizes[0] - common };
        let set: Vec<_> = (first..first + sizes[party]).map(u64::to_le_bytes).collect();
        let options = Options {
            learns: Learns::Both,
            security,
            min_peer_elements: 0,
            max_peer_elements: 1 << 20,
            base: &Dealer(1),
        };
        let prg = &mut prg(2 + party as u128);
        let linked = limited(threads, || link::run(channel, prg, &set, &options, &mut |_, _, _, _| ()))
            .expect("both are honest");
        Ok([Block::as_bytes(&linked.identifiers), &linked.run].concat())
    };
    let name = format!("link {security:?} {}x{}", sizes[0], sizes[1]);
    wire::line(&name, |channel| side(channel, 0), |channel| side(channel, 1))
}

#[test]
fn wire_and_identifiers_are_as_recorded() {
    let mut lines = String::new();
    for security in [Security::SemiHonest, Security::Malicious] {
        for sizes in [[300, 200], [0, 7], [140_000, 9_001]] {
            lines += &digest(security, sizes, 1);
        }
    }
    let recorded = include_str!("../link.digests");
    assert!(lines == recorded, "the wire or the identifiers changed; all lines now:\n{lines}");
}

/// How many threads a party uses shows neither on the wire nor in what comes out.
#[test]
fn any_number_of_threads_gives_the_same_identifiers() {
    let [one, others @ ..] =
        [1, 2, 5].map(|threads| digest(Security::Malicious, [150_000, 130_001], threads));
    assert!(others.iter().all(|line| *line == one), "{one}{}", others.concat());
}
