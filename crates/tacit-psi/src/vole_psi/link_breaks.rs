//! Attempts to break a link, by a reader who did not write it. What fails here is a break; what passes held.

use super::*;
use crate::okvs::Store;
use std::collections::HashSet;
use std::time::Duration;
use tacit_net::testing::Tap;
use tacit_net::{Limits, LinkModel, SessionId, memory};
use tacit_ot::base;

type Set = Vec<[u8; 8]>;

fn set(range: std::ops::Range<u64>) -> Set {
    range.map(u64::to_le_bytes).collect()
}

fn with<T>(run: impl FnOnce(&Options<'_>) -> T) -> T {
    let base = base::default();
    run(&Options {
        learns: Learns::Both,
        security: Security::Malicious,
        min_peer_elements: 0,
        max_peer_elements: 1 << 24,
        base: &*base,
    })
}

fn party(channel: &mut Channel, prg: &mut Prg, elements: &Set) -> Result<Linked> {
    with(|options| run(channel, prg, elements, options, &mut |_, _, _, _| ()))
}

fn numbers(linked: &Linked) -> HashSet<u128> {
    linked.identifiers.iter().map(|identifier| identifier.to_u128()).collect()
}

/// Runs two parties under one session's number, with seeds or without; the first party's bytes go through `tap`.
fn tapped(
    tap: &Tap,
    of_first: bool,
    seeds: [Option<u128>; 2],
    sets: [&Set; 2],
) -> [(Result<Linked>, [u64; 3]); 2] {
    let (a, b) = memory::links(LinkModel::LOOPBACK);
    let (a, b) = if of_first { (tap.of(a), b) } else { (a, tap.of(b)) };
    let one = |index: usize| {
        move |channel: &mut Channel| {
            let mut prg = seeds[index].map_or_else(Prg::from_os, |seed| Prg::from_seed(Block::new(seed)));
            let result = party(channel, &mut prg, sets[index]);
            let stats = channel.stats();
            (result, [stats.bytes_sent, stats.messages_sent, stats.rounds])
        }
    };
    let id = SessionId([9; 32]);
    let (first, second) =
        memory::join(Channel::new(a, Party::First, id), Channel::new(b, Party::Second, id), one(0), one(1));
    [first, second]
}

/// A party that draws the same salts, coins and VOLE seeds in every run, in a session of the same number and with the
/// same set, as either party: the honest party's randomness alone makes all identifiers, and the run's number, others.
#[test]
fn a_party_without_any_randomness_gets_other_identifiers_in_every_run() {
    let all = set(0..40);
    for fixed in [[Some(1), None], [None, Some(1)]] {
        let runs = [(); 3].map(|()| {
            let [one, two] =
                tapped(&Tap::default(), true, fixed, [&all, &all]).map(|(result, _)| result.unwrap());
            assert_eq!(numbers(&one), numbers(&two));
            one
        });
        let mut seen = HashSet::new();
        for linked in &runs {
            assert_eq!(numbers(linked).len(), 40);
            assert!(
                numbers(linked).into_iter().all(|identifier| seen.insert(identifier)),
                "an identifier twice"
            );
        }
        assert_eq!(runs.iter().map(|linked| linked.run).collect::<HashSet<_>>().len(), 3);
    }
}

/// One changed bit of a cheater's, at many places, against an honest party whose set has nothing, one element, or
/// everything in common with the cheater's, all else the same: its error, and how much it sends before it, do not tell
/// which set it was.
///
/// proof: link 3.6
#[test]
fn how_an_honest_party_ends_does_not_tell_what_is_common() {
    let cheaters = set(0..20);
    let honest = [set(100..120), [set(19..20), set(101..120)].concat(), set(0..20)];
    for first_cheats in [true, false] {
        let order = |mine| if first_cheats { [&cheaters, mine] } else { [mine, &cheaters] };
        let tap = Tap::default();
        let ends = tapped(&tap, first_cheats, [Some(1), Some(2)], order(&honest[0]));
        assert!(ends.iter().all(|(result, _)| result.is_ok()));
        let length = tap.passed();
        let mut ends = HashSet::new();
        for at in (0..length).step_by(length / 90).chain([length - 1]) {
            let seen = [0, 1, 2].map(|which| {
                let tap = Tap::default();
                tap.flip(at, 1 << (at % 8));
                let results = tapped(&tap, first_cheats, [Some(1), Some(2)], order(&honest[which]));
                let (result, stats) = &results[usize::from(first_cheats)];
                let end = result.as_ref().err().map(|error| error.to_string());
                // Whom the other leaves has sent as much as came through by then, by the clock.
                let left = matches!(result, Err(Error::Net(_) | Error::Ot(tacit_ot::Error::Net(_))));
                let stats = if left { [0; 3] } else { *stats };
                (end, stats)
            });
            assert!(seen.iter().all(|end| *end == seen[0]), "byte {at}: {seen:?}");
            ends.insert(seen[0].0.clone());
        }
        // It is not that all ends are one.
        assert!(ends.len() > 2, "{ends:?}");
    }
}

/// The slots of the first direction, sent back in the second one by a party that has no store of its own: what the
/// other encoded is encoded in neither function's keys, and no identifier is common.
///
/// proof: link 3.7
#[test]
fn slots_that_are_sent_back_give_no_identifier() {
    for sizes in [20, 1100] {
        let all = set(0..sizes);
        let cheat = |channel: &mut Channel| {
            with(|options| {
                let mine = Hello::new(MAGIC, all.len(), options);
                let theirs = mine.exchange(channel, NAME, options).unwrap();
                let prg = &mut Prg::from_os();
                let ways = &mut Ways { channel, prg, elements: &all, options, hellos: [mine, theirs] };
                // The sender's part, with the masked slots kept.
                let quiet = &mut |_, _, _| ();
                let mut way = ways.begin(Party::First, &[], quiet).unwrap();
                let mut vole = way.sender_setup().unwrap();
                let shape = way.parameters.shape;
                let mut k = Buffer::zeros(shape.slots());
                tacit_ot::VoleSender::extend(&mut vole, way.channel, &mut k).unwrap();
                let mut masked = Buffer::zeros(k.len());
                way.channel.recv_blocks(&mut masked).unwrap();
                let delta = tacit_ot::VoleSender::delta(&vole);
                tacit_crypto::gf128::multiply_add(&mut k, &masked, delta);
                let digests = way.seeds.digests(&shape, &all, &mut |_, _, _| ()).unwrap();
                let mut sums = super::super::runs::Summing::new(shape, digests, Some(delta));
                sums.take(&k);
                let first = super::cheats::valued(way, sums);
                // The receiver's part: the peer's slots in place of its own, so that its store is theirs + u + u'.
                let before = digest(&first.transcript, "first direction");
                let quiet = &mut |_, _, _| ();
                let mut way = ways.begin(Party::Second, &before, quiet).unwrap();
                let mut vole = way.receiver_setup().unwrap();
                let [mut u, mut w] = [Buffer::zeros(masked.len()), Buffer::zeros(masked.len())];
                tacit_ot::VoleReceiver::extend(&mut vole, way.channel, &mut u, &mut w).unwrap();
                way.channel.send_blocks(&masked).unwrap();
                way.channel.flush().unwrap();
                let digests = way.seeds.digests(&shape, &all, &mut |_, _, _| ()).unwrap();
                let mut sums = super::super::runs::Summing::new(shape, digests, None);
                sums.take(&w);
                let second = super::cheats::valued(way, sums);
                confirm(ways.channel, &second.transcript).unwrap();
                identifiers(&second.transcript, [&first.values, &second.values])
            })
        };
        let (theirs, mine) = memory::run(|channel| party(channel, &mut Prg::from_os(), &all).unwrap(), cheat);
        let theirs = numbers(&theirs);
        assert_eq!(theirs.len(), all.len());
        assert!(mine.iter().all(|identifier| !theirs.contains(&identifier.to_u128())));
    }
}

/// A run errs with 2^-40 at most whatever the sizes are: all small ones, and those around every step of the shape.
///
/// proof: link 6.1
#[test]
fn the_error_is_below_its_bound_for_all_sizes() {
    let mut sizes: Vec<usize> = (1..1200).collect();
    sizes.extend((11..=24).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 1]));
    sizes.extend((1..=256).flat_map(|bins| [bins << 16, (bins << 16) + 1]));
    sizes.retain(|size| *size <= crate::paxos::MAX_ELEMENTS);
    let mut worst = (f64::NEG_INFINITY, 0, 0);
    for own in sizes.iter().copied().chain(1200..70_000) {
        for peer in [own, 1, 1000, 1024, 1025, 1 << 16, (1 << 16) + 1, 1 << 21, (1 << 21) + 1, 1 << 24] {
            for security in [Security::Malicious, Security::SemiHonest] {
                let error = statistical_error_log2(own, peer, security).unwrap();
                if error > worst.0 {
                    worst = (error, own, peer);
                }
            }
        }
    }
    assert!(worst.0 <= -40.0, "{worst:?}");
}

/// The bound on the identifiers that a peer can have is never below the size that it announced, nor below its slots.
#[test]
fn nobody_is_said_to_have_fewer_than_slots() {
    for announced in (1..1200).chain([1 << 14, 1 << 16, 1 << 20, 1 << 24]) {
        for own in [1, 1000, 1 << 21, (1 << 21) + 1, 1 << 24] {
            let slots = parameters(announced, own, Security::Malicious).unwrap().shape().slots() as u64;
            let mut before = announced as u64;
            for calls in [0.0, 20.0, 60.0, 80.0, 127.0] {
                let named = named_at_most(announced as u64, own, calls).unwrap();
                assert!(
                    named >= before && (calls < 20.0 || named >= slots),
                    "{announced} {own} {calls}: {named}, {slots} slots"
                );
                before = named;
            }
        }
    }
}

/// A second party that announces one element more than a small set, whose store has spare slots, and solves it for all
/// of the other's: it has the identifiers of as many as there are slots, and of no more.
///
/// proof: link 3.3
#[test]
fn a_cheater_with_a_sparse_store_has_identifiers_of_as_many_elements_as_slots() {
    let claimed = 1025;
    let slots = parameters(claimed, 1500, Security::Malicious).unwrap().shape().slots();
    let all = set(0..slots as u64 + 30);
    let cheat = |channel: &mut Channel| {
        super::cheats::scripted(channel, &all, claimed, |ways| {
            let first = ways.direction(Party::First, &[], &mut |_, _, _| ()).unwrap();
            let before = digest(&first.transcript, "first direction");
            let quiet = &mut |_, _, _| ();
            let second = super::cheats::overfit(ways.begin(Party::Second, &before, quiet).unwrap());
            confirm(ways.channel, &second.transcript).unwrap();
            identifiers(&second.transcript, [&first.values, &second.values])
        })
    };
    let (theirs, mine) = memory::run(|channel| party(channel, &mut Prg::from_os(), &all).unwrap(), cheat);
    let theirs = numbers(&theirs);
    let found = mine.iter().filter(|identifier| theirs.contains(&identifier.to_u128())).count();
    assert!(found > claimed && found <= slots, "{found} of {slots}");
    assert!(found as u64 <= named_at_most(claimed as u64, all.len(), 60.0).unwrap());
}

/// A peer that sends back whatever it is sent, word for word: caught, also where there is nothing but the last word.
///
/// proof: link 2.5, 3.7
#[test]
fn a_mirror_is_caught() {
    for elements in [0, 20] {
        let limits = Limits { idle: Duration::from_secs(2), ..Limits::default() };
        let (mut one, mut two) = memory::pair_over(LinkModel::LOOPBACK, limits, SessionId([4; 32]));
        let mirror = std::thread::spawn(move || {
            let mut byte = [0];
            while two.recv(&mut byte).is_ok() && two.send(&byte).and_then(|()| two.flush()).is_ok() {}
        });
        let result = party(&mut one, &mut Prg::from_os(), &set(0..elements));
        drop(one);
        mirror.join().unwrap();
        // A mirror has nothing to say where the other side waits for more than it has sent.
        match elements {
            0 => assert!(matches!(result, Err(Error::Cheated { .. })), "{result:?}"),
            _ => assert!(result.is_err()),
        }
    }
}
