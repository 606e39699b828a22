//! Cheating parties of a link: each is caught before the honest one has identifiers, or has those of its own store
//! alone.

use super::super::Whole;
use super::super::cheats::overfull;
use super::super::runs::Summing;
use super::*;
use std::collections::{HashMap, HashSet};
use tacit_net::testing::{Tap, duel};
use tacit_net::{LinkModel, SessionId, memory};
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
        max_peer_elements: 1 << 20,
        base: &*base,
    })
}

fn honest(channel: &mut Channel, elements: &Set) -> Result<Linked> {
    with(|options| run(channel, &mut Prg::from_os(), elements, options, &mut |_, _, _, _| ()))
}

/// Runs `script` as a party that has announced `claimed` elements and holds `elements`.
pub(super) fn scripted<T>(
    channel: &mut Channel,
    elements: &Set,
    claimed: usize,
    script: impl FnOnce(&mut Ways<'_, [u8; 8]>) -> T,
) -> T {
    with(|options| {
        let mine = Hello::new(MAGIC, claimed, options);
        let theirs = mine.exchange(channel, NAME, options).unwrap();
        let prg = &mut Prg::from_os();
        script(&mut Ways { channel, prg, elements, options, hellos: [mine, theirs] })
    })
}

/// Both parties' roles: who the cheater is. It comes first, and so does what `cheater` gives.
fn against<T: Send>(
    is_first: bool,
    cheater: impl FnOnce(&mut Channel) -> T + Send,
    honest: impl FnOnce(&mut Channel) -> Result<Linked> + Send,
) -> (T, Result<Linked>) {
    match is_first {
        true => duel(0, cheater, honest),
        false => {
            let (honest, cheater) = memory::run(honest, cheater);
            (cheater, honest)
        }
    }
}

fn is_cheating(result: &Result<Linked>) -> bool {
    matches!(result, Err(Error::Cheated { .. } | Error::Ot(tacit_ot::Error::Cheated { .. })))
}

const ORDER: [Party; 2] = [Party::First, Party::Second];

/// In each direction its sender opens another coin than it has committed to. In the first direction it is the second
/// party, which has no identifiers yet; in the second one the first party, which could compute all of its own.
///
/// proof: link 2.4
#[test]
fn a_coin_that_is_not_the_one_committed_to_is_caught_in_either_direction() {
    for wrong in 0..3 {
        let cheat = |channel: &mut Channel| {
            let is_sender = |way: usize| channel.party() != ORDER[way];
            let cheats = [wrong == 0 && is_sender(0), wrong == 1 && is_sender(1)];
            scripted(channel, &set(10..30), 20, |ways| {
                let mut before = Vec::new();
                let mut last = None;
                for (receiver, cheats) in ORDER.into_iter().zip(cheats) {
                    let quiet = &mut |_, _, _| ();
                    let Ok(mut way) = ways.begin(receiver, &before, quiet) else { return };
                    if let super::super::Coin::Mine(coin, _) = &mut way.seeds.coin {
                        coin[3] ^= cheats as u8;
                    }
                    let Ok(direction) = way.values() else { return };
                    before = digest(&direction.transcript, "first direction").to_vec();
                    last = Some(direction);
                }
                let _ = confirm(ways.channel, &last.unwrap().transcript);
            });
        };
        let is_first = wrong == 1;
        let ((), result) = against(is_first, cheat, |channel| honest(channel, &set(0..20)));
        match wrong {
            2 => assert_eq!(result.unwrap().identifiers.len(), 20),
            _ => assert!(is_cheating(&result), "direction {wrong}: {result:?}"),
        }
    }
}

/// A peer that stops: after the announcement, after a direction, or with all done but the last word, when it has its
/// own identifiers. And one whose last word is another.
///
/// proof: link 2.5
#[test]
fn who_stops_or_does_not_confirm_leaves_the_other_side_without_identifiers() {
    for is_first in [true, false] {
        for (stage, word) in [(0, false), (1, false), (2, false), (2, true)] {
            let cheat = |channel: &mut Channel| {
                scripted(channel, &set(10..30), 20, |ways| {
                    let mut before = Vec::new();
                    for receiver in ORDER.into_iter().take(stage) {
                        let direction = ways.direction(receiver, &before, &mut |_, _, _| ()).unwrap();
                        before = digest(&direction.transcript, "first direction").to_vec();
                    }
                    if word {
                        ways.channel.send(&[7; 32]).unwrap();
                        ways.channel.flush().unwrap();
                        ways.channel.recv(&mut [0; 32]).unwrap();
                    }
                });
            };
            let ((), result) = against(is_first, cheat, |channel| honest(channel, &set(0..20)));
            match word {
                true => assert!(is_cheating(&result), "{result:?}"),
                false => assert!(matches!(result, Err(Error::Net(_) | Error::Ot(_))), "{stage}: {result:?}"),
            }
        }
    }
}

/// A second direction that is not bound to the first one, as one that a peer took from another run would be.
///
/// proof: link 2.5
#[test]
fn directions_of_two_runs_do_not_go_together() {
    for is_first in [true, false] {
        let cheat = |channel: &mut Channel| {
            scripted(channel, &set(10..30), 20, |ways| {
                ways.direction(Party::First, &[], &mut |_, _, _| ()).unwrap();
                if let Ok(second) = ways.direction(Party::Second, &[1; 32], &mut |_, _, _| ()) {
                    let _ = confirm(ways.channel, &second.transcript);
                }
            });
        };
        let ((), result) = against(is_first, cheat, |channel| honest(channel, &set(0..20)));
        // Who receives in the second direction checks the coin; here that is the honest side where the other is first.
        assert!(if is_first { is_cheating(&result) } else { result.is_err() }, "{result:?}");
    }
}

/// Two sessions of one honest party, joined by somebody in between, are two sessions.
#[test]
fn sessions_cannot_be_joined() {
    let (one, other) = memory::links(LinkModel::LOOPBACK);
    let (first, second) = memory::join(
        Channel::new(one, Party::First, SessionId([1; 32])),
        Channel::new(other, Party::Second, SessionId([2; 32])),
        |channel| honest(channel, &set(0..20)),
        |channel| honest(channel, &set(0..20)),
    );
    assert!(first.is_err() && second.is_err(), "{first:?} {second:?}");
}

/// The announced number, and the peer's bound on it.
///
/// proof: link 2.1
#[test]
fn more_elements_than_allowed_end_the_run_before_anything_is_computed() {
    let ((), result) = duel(
        0,
        |channel| {
            with(|options| {
                let _ = Hello::new(MAGIC, 21, options).exchange(channel, NAME, options);
            });
        },
        |channel| {
            with(|options| {
                let options = Options { max_peer_elements: 20, ..*options };
                run(channel, &mut Prg::from_os(), &set(0..20), &options, &mut |_, _, _, _| ())
            })
        },
    );
    assert!(matches!(result, Err(Error::PeerSetTooLarge { announced: 21, allowed: 20 })), "{result:?}");
}

/// The receiver's part of one direction, with a store of its choice. What it gets are the values of all `elements`,
/// right where the store fits.
pub(super) fn overfit(way: Run<'_, '_, [u8; 8]>) -> Direction {
    let mut way = way;
    let mut vole = way.receiver_setup().unwrap();
    let shape = way.parameters.shape;
    let digests = way.seeds.digests(&shape, way.elements, &mut |_, _, _| ()).unwrap();
    let mut slots = Buffer::zeros(crate::okvs::Store::slots(&shape));
    slots.copy_from_slice(&overfull(shape, digests.keys(), digests.values()));
    let mut slots = Whole::new(slots);
    let last = way.transfer(&mut vole, &mut slots).unwrap();
    let mut sums = Summing::new(shape, digests, None);
    sums.take(&slots.ends_with(last));
    valued(way, sums)
}

/// The end of a direction: coins, and the function's values of sums.
pub(super) fn valued(way: Run<'_, '_, [u8; 8]>, sums: Summing) -> Direction {
    let count = way.elements.len();
    let transcript = way.seeds.exchange_coins(way.channel, way.prg).unwrap();
    let hash = TagHash::of(&transcript);
    let mut digests = sums.finish();
    digests.bins_mut().for_each(|bin| hash.values(&mut [bin]));
    let mut values = Buffer::zeros(count);
    for (of_bin, elements) in digests.bins() {
        of_bin.iter().zip(elements).for_each(|(value, element)| values[*element as usize] = *value);
    }
    Direction { values, transcript }
}

/// A party announces few elements but tries all 1,000 of the other side's, as first and as second party. Even when it is
/// then shown all of the other side's identifiers, it recognises no more of them than its store has slots.
///
/// proof: link 3.3
#[test]
fn a_cheater_has_identifiers_of_no_more_elements_than_its_store_has_slots() {
    let all = set(0..1000);
    for is_first in [true, false] {
        for claimed in [1, 10, 40] {
            let cheat = |channel: &mut Channel| {
                let me = channel.party();
                scripted(channel, &all, claimed, |ways| {
                    let mut before = Vec::new();
                    let directions = ORDER.map(|receiver| {
                        let quiet = &mut |_, _, _| ();
                        let way = ways.begin(receiver, &before, quiet).unwrap();
                        let direction = if receiver == me { overfit(way) } else { way.values().unwrap() };
                        before = digest(&direction.transcript, "first direction").to_vec();
                        direction
                    });
                    let [first, second] = &directions;
                    confirm(ways.channel, &second.transcript).unwrap();
                    identifiers(&second.transcript, [&first.values, &second.values])
                })
            };
            let (mine, theirs) = against(is_first, cheat, |channel| honest(channel, &all));
            let theirs = theirs.unwrap();
            let known: HashSet<u128> = mine.iter().map(|id| id.to_u128()).collect();
            let found = theirs.identifiers.iter().filter(|id| known.contains(&id.to_u128())).count();
            assert_eq!(found, claimed);
            assert!(found as u64 <= named_at_most(claimed as u64, 1000, 60.0).unwrap());
        }
    }
}

/// What came of a run whose first or second party sent a changed bit: who was told something else than the plain join.
fn flipped(from_first: bool, at: usize, mask: u8) -> [Result<Linked>; 2] {
    let (mine, theirs) = (set(0..20), set(10..30));
    let (tap, (a, b)) = (Tap::default(), memory::links(LinkModel::LOOPBACK));
    tap.flip(at, mask);
    let id = SessionId([9; 32]);
    let (a, b) = if from_first { (tap.of(a), b) } else { (a, tap.of(b)) };
    let (one, two) = memory::join(
        Channel::new(a, Party::First, id),
        Channel::new(b, Party::Second, id),
        |channel| honest(channel, &mine),
        |channel| honest(channel, &theirs),
    );
    [one, two]
}

/// Where the slots of a party's store are among the bytes that it sends, and how many those are in all.
fn layout(of_first: bool) -> (std::ops::Range<usize>, usize) {
    let (tap, (a, b)) = (Tap::default(), memory::links(LinkModel::LOOPBACK));
    let id = SessionId([9; 32]);
    let (a, b) = if of_first { (tap.of(a), b) } else { (a, tap.of(b)) };
    let end = std::sync::Mutex::new(0);
    let party = |channel: &mut Channel, elements: Set| {
        let own = usize::from(channel.party() != Party::First);
        let watches = (own == 0) == of_first;
        with(|options| {
            let progress = &mut |way, phase, done, of| {
                if watches && way == own && phase == Phase::Transfer && done == of {
                    *end.lock().unwrap() = tap.passed();
                }
            };
            run(channel, &mut Prg::from_os(), &elements, options, progress).unwrap()
        })
    };
    memory::join(
        Channel::new(a, Party::First, id),
        Channel::new(b, Party::Second, id),
        |channel| party(channel, set(0..20)),
        |channel| party(channel, set(10..30)),
    );
    let end = *end.lock().unwrap();
    (end - 20 * size_of::<Block>()..end, tap.passed())
}

/// One bit of what either party sends is another, at places over all of it: corrections and answers of VOLE in either
/// direction, commitments, coins, confirmations. Whoever gets identifiers has all different ones, and the same as the
/// other side exactly for what is common; but for a slot of a store, by which its owner has other elements.
#[test]
fn a_changed_bit_is_caught_or_does_no_harm_or_changes_the_cheaters_own_set() {
    for from_first in [true, false] {
        let (slots, length) = layout(from_first);
        let mut places: Vec<usize> = (0..length).step_by(length / 60).collect();
        places.extend([slots.start, slots.start + 100, slots.end - 1, slots.end, slots.end + 31, length - 1]);
        let (mut caught, mut other) = (0, 0);
        for at in places {
            let [one, two] = flipped(from_first, at, 1 << (at % 8));
            let victim = if from_first { &two } else { &one };
            let Ok(of_victim) = victim else {
                caught += 1;
                continue;
            };
            let distinct: HashSet<u128> = of_victim.identifiers.iter().map(|id| id.to_u128()).collect();
            assert_eq!(distinct.len(), 20, "byte {at}");
            // Who sent it may have noticed by then; an honest one never does, as its own bits are right.
            let (Ok(one), Ok(two)) = (&one, &two) else {
                panic!("byte {at}: one side has identifiers, and the other an error")
            };
            let at_second: HashMap<u128, usize> =
                two.identifiers.iter().enumerate().map(|(i, id)| (id.to_u128(), i + 10)).collect();
            let common: Vec<_> =
                (0..20).filter_map(|i| Some((i, *at_second.get(&one.identifiers[i].to_u128())?))).collect();
            assert!(common.iter().all(|(i, j)| i == j), "byte {at}: {common:?}");
            if common.len() < 10 {
                other += 1;
                assert!(slots.contains(&at), "byte {at} is of no slot: {common:?}");
            }
        }
        assert!(caught > 50 && other >= 3, "{caught} caught, {other} with another set");
    }
}
