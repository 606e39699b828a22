//! Cheating parties: scripted deviations, each caught, or shown to change nothing but the cheater's own
//! input.

use super::*;
use std::sync::Arc;
use tacit_net::memory::{self, Record};
use tacit_net::testing::{Tap, duel};
use tacit_net::{LinkModel, SessionId};
use tacit_ot::base;

type Set = Vec<[u8; 8]>;

fn set(range: std::ops::Range<u64>) -> Set {
    range.map(u64::to_le_bytes).collect()
}

fn quiet() -> impl FnMut(Phase, u64, u64) {
    |_, _, _| ()
}

fn honest(channel: &mut Channel, prg: &mut Prg, elements: &Set, learns: Learns) -> Result<Outcome> {
    let base = base::default();
    let options = Options {
        learns,
        security: Security::Malicious,
        min_peer_elements: 0,
        max_peer_elements: 1 << 20,
        base: &*base,
    };
    run(channel, prg, elements, &options, &mut quiet())
}

/// Runs `script` as a party that has announced `elements` and agreed on the seeds.
fn scripted<T>(
    channel: &mut Channel,
    elements: &Set,
    learns: Learns,
    script: impl FnOnce(&mut Run<'_, '_, [u8; 8]>) -> T,
) -> T {
    let base = base::default();
    let options = Options {
        learns,
        security: Security::Malicious,
        min_peer_elements: 0,
        max_peer_elements: 1 << 20,
        base: &*base,
    };
    let mut prg = Prg::from_os();
    let mine = Hello::new(MAGIC, elements.len(), &options);
    let theirs = mine.exchange(channel, NAME, &options).unwrap();
    let mut progress = quiet();
    script(&mut Run::start(channel, &mut prg, elements, &options, &mut progress, [mine, theirs]).unwrap())
}

fn code() -> Arc<dyn LinearCode> {
    Arc::new(MatrixCode::concatenated(64))
}

fn is_cheating<T>(result: &Result<T>) -> bool {
    matches!(result, Err(Error::Cheated { .. } | Error::Ot(tacit_ot::Error::Cheated { .. })))
}

/// One run in which the receiver's U differs from the protocol's in one row, in `columns` of its columns.
fn run_with_wrong_columns(columns: usize, seed: u64) -> (Result<Vec<u32>>, Result<Outcome>) {
    let (mine, theirs) = (set(0..60), set(40..100));
    let (tap, (first, second)) = (Tap::default(), memory::links(LinkModel::LOOPBACK));
    let id = SessionId([seed as u8; 32]);
    memory::join(
        Channel::new(tap.of(first), Party::First, id),
        Channel::new(second, Party::Second, id),
        |channel| {
            scripted(channel, &mine, Learns::Me, |party| {
                let oos = OosReceiver::<2, 6>::setup(party.channel, party.options.base, code(), party.prg)?;
                party.channel.flush()?;
                // A tile's columns follow each other: 210 slots are two blocks of 128 rows, and one is
                // sacrificed.
                let (start, tile_len) = (tap.passed(), 3 * 16);
                for i in 0..columns {
                    tap.flip(start + (i * 768 / columns) * tile_len + seed as usize % 16, 1);
                }
                let digests = party.digests();
                let store = party.store::<2>(&digests)?;
                let rows = party.transfer(oos, store)?;
                let tags = party.tags(&digests, &rows, |_, _| ())?;
                Ok(matching::indices(&party.compare(&tags)?.marks(party.elements.len())))
            })
        },
        |channel| honest(channel, &mut Prg::from_os(), &theirs, Learns::Peer),
    )
}

/// A receiver whose U is wrong in c columns passes when Δ is zero in all of them, which has probability 2^-c.
///
/// proof: paxos 2.6
#[test]
fn a_receiver_with_inconsistent_columns_is_caught() {
    for (columns, runs, caught_at_least, caught_at_most) in
        [(1, 64, 12, 52), (2, 48, 22, 47), (16, 24, 24, 24)]
    {
        let mut caught = 0;
        for seed in 0..runs {
            let (receiver, sender) = run_with_wrong_columns(columns, seed);
            match sender {
                Ok(_) => assert_eq!(receiver.unwrap(), (40..60).collect::<Vec<u32>>()),
                refused => {
                    assert!(is_cheating(&refused), "{refused:?}");
                    // The sender's tags never left.
                    assert!(matches!(receiver, Err(Error::Net(_) | Error::Ot(_))), "{receiver:?}");
                    caught += 1;
                }
            }
        }
        println!("{columns} wrong columns: caught {caught} of {runs}");
        assert!(
            (caught_at_least..=caught_at_most).contains(&caught),
            "{columns} columns: {caught} of {runs}"
        );
    }
}

/// A receiver that encodes as many elements as its store has independent equations: it learns these and no
/// more.
///
/// proof: paxos 3.4
#[test]
fn a_receiver_that_encodes_more_than_it_announced_gains_no_more_than_the_bound() {
    let (announced, wanted) = (set(0..50), set(0..800));
    let (found, sent) = duel(
        0,
        |channel| {
            scripted(channel, &announced, Learns::Me, |party| {
                let oos =
                    OosReceiver::<2, 6>::setup(party.channel, party.options.base, code(), party.prg).unwrap();
                let digests: Vec<Digest> = wanted.iter().map(|element| party.seeds.digest(element)).collect();
                let (store, encoded) = overfull_store(party.parameters.shape, &digests);
                let rows = party.transfer(oos, Zeroizing::new(store)).unwrap();
                let tags = party.tags(&digests, &rows, |_, _| ()).unwrap();
                let found = matching::indices(&party.compare(&tags).unwrap().marks(wanted.len()));
                assert_eq!(found, encoded);
                (found.len(), party.parameters)
            })
        },
        |channel| honest(channel, &mut Prg::from_os(), &wanted, Learns::Peer),
    );
    sent.unwrap();
    let (count, parameters) = found;
    assert!(count > 2 * announced.len(), "the cheater did not even try: {count}");
    assert!(count <= parameters.shape().slots() && count as u64 <= parameters.encodable(80.0));
    println!("announced {}, encoded {count} in {} slots", announced.len(), parameters.shape().slots());
}

/// Solves for as many digests as the slots allow, by plain elimination over incidence vectors of 256 bits.
fn overfull_store(shape: Shape, digests: &[Digest]) -> (Vec<[Block; 2]>, Vec<u32>) {
    let unit = |i: usize| core::array::from_fn(|w| Block::new(if i / 128 == w { 1 << (i % 128) } else { 0 }));
    let units: Vec<[Block; 2]> = (0..shape.slots()).map(unit).collect();
    let incidence = Decoder::new(shape, &units).unwrap();
    let bit = |row: &[Block; 2], i: usize| row[i / 128].bit(i % 128);
    let add = |a: &mut [Block; 2], b: &[Block; 2]| a.iter_mut().zip(b).for_each(|(a, b)| *a ^= *b);
    let (mut rows, mut encoded) = (Vec::<(usize, [Block; 2], [Block; 2])>::new(), Vec::new());
    for (index, digest) in digests.iter().enumerate() {
        let (mut row, mut value) = (incidence.get(digest.key), digest.word::<2>(231));
        for (pivot, other, sum) in &rows {
            if bit(&row, *pivot) {
                add(&mut row, other);
                add(&mut value, sum);
            }
        }
        if let Some(pivot) = (0..shape.slots()).find(|i| bit(&row, *i)) {
            rows.push((pivot, row, value));
            encoded.push(index as u32);
        }
    }
    let mut store = vec![[Block::ZERO; 2]; shape.slots()];
    for (pivot, row, value) in rows.iter().rev() {
        let mut slot = *value;
        (0..shape.slots()).filter(|i| i != pivot && bit(row, *i)).for_each(|i| add(&mut slot, &store[i]));
        store[*pivot] = slot;
    }
    (store, encoded)
}

/// An honest receiver against a sender that sends `tamper(tags)` for its 30 elements, 10 of them common.
fn against_sender(tamper: impl FnOnce(&mut Vec<[u8; 32]>) + Send) -> Result<Outcome> {
    let (mine, theirs) = (set(0..40), set(30..60));
    let (received, _) = duel(
        0,
        |channel| honest(channel, &mut Prg::from_os(), &mine, Learns::Me),
        |channel| {
            scripted(channel, &theirs, Learns::Peer, |party| {
                let tags = party.sender_tags::<2, 6>(code()).unwrap();
                let mut message: Vec<[u8; 32]> = tags.sorted.iter().map(|(tag, _)| tag.to_bytes()).collect();
                tamper(&mut message);
                message.iter().for_each(|tag| party.channel.send(tag).unwrap());
                party.channel.flush().unwrap();
            })
        },
    );
    received
}

/// proof: paxos 2.8
#[test]
fn a_sender_of_garbage_is_refused_or_matches_nothing() {
    assert_eq!(against_sender(|_| ()).unwrap().matches.unwrap(), (30..40).collect::<Vec<u32>>());
    let mut prg = Prg::from_seed(Block::new(9));
    for _ in 0..10 {
        let noise = against_sender(|tags| {
            tags.iter_mut().for_each(|tag| prg.fill_bytes(tag));
            tags.sort_unstable();
        });
        assert_eq!(noise.unwrap().matches.unwrap(), []);
    }
    // Half the tags replaced: no more than the other half matches, and nothing false.
    let half = against_sender(|tags| {
        tags.iter_mut().step_by(2).for_each(|tag| prg.fill_bytes(tag));
        tags.sort_unstable();
    });
    assert!(half.unwrap().matches.unwrap().iter().all(|element| (30..40).contains(element)));
    for result in [
        against_sender(|tags| tags[7] = tags[6]),
        against_sender(|tags| tags.swap(3, 20)),
        against_sender(|tags| tags.reverse()),
        against_sender(|tags| tags.fill([0; 32])),
        against_sender(|tags| tags[29] = [0; 32]),
    ] {
        assert!(is_cheating(&result), "{result:?}");
    }
    for result in [against_sender(|tags| tags.truncate(29)), against_sender(|tags| tags.clear())] {
        assert!(matches!(result, Err(Error::Net(_))), "{result:?}");
    }
}

/// An honest sender that learns too, against a receiver that sends `tamper(count, positions and proofs)`.
fn against_prover(tamper: impl FnOnce(&mut u64, &mut Vec<(u32, Proof)>) + Send) -> Result<Outcome> {
    // The smaller set's owner receives.
    let (mine, theirs) = (set(0..40), set(20..90));
    let (_, sender) = duel(
        0,
        |channel| {
            scripted(channel, &mine, Learns::Both, |party| {
                assert!(party.receives);
                let tags = party.receiver_tags::<2, 6>(code()).unwrap();
                let found = party.compare(&tags).unwrap();
                let mut proofs: Vec<(u32, Proof)> = found
                    .pairs()
                    .iter()
                    .map(|[position, element]| (*position, tags.proofs[*element as usize]))
                    .collect();
                let mut count = proofs.len() as u64;
                tamper(&mut count, &mut proofs);
                party.channel.send_u64(count).unwrap();
                for (position, proof) in proofs {
                    party.channel.send(&position.to_le_bytes()).unwrap();
                    party.channel.send(&proof).unwrap();
                }
                party.channel.flush().unwrap();
            })
        },
        |channel| honest(channel, &mut Prg::from_os(), &theirs, Learns::Both),
    );
    sender
}

/// proof: paxos 2.9
#[test]
fn a_receiver_cannot_make_the_sender_accept_a_false_match() {
    assert_eq!(against_prover(|_, _| ()).unwrap().matches.unwrap(), (0..20).collect::<Vec<u32>>());
    let position_of_none =
        |proofs: &[(u32, Proof)]| (0..70).find(|i| proofs.iter().all(|(p, _)| p != i)).unwrap();
    for result in [
        against_prover(|_, proofs| proofs[3].1[15] ^= 0x80),
        against_prover(|_, proofs| proofs[0].1 = [0; 16]),
        against_prover(|_, proofs| (proofs[4].1, proofs[5].1) = (proofs[5].1, proofs[4].1)),
        against_prover(|_, proofs| {
            let moved = (position_of_none(proofs), proofs[0].1);
            proofs[0] = moved;
            proofs.sort_unstable_by_key(|(position, _)| *position);
        }),
        against_prover(|_, proofs| proofs[1] = proofs[0]),
        against_prover(|_, proofs| proofs.reverse()),
        against_prover(|_, proofs| proofs[19].0 = 70),
        against_prover(|_, proofs| proofs[19].0 = u32::MAX),
        against_prover(|count, _| *count = 71),
        against_prover(|count, _| *count = u64::MAX),
    ] {
        assert!(is_cheating(&result), "{result:?}");
    }
    let cut = against_prover(|_, proofs| proofs.truncate(3));
    assert!(matches!(cut, Err(Error::Net(_))), "{cut:?}");
    // What the docs say it can do: keep matches to itself.
    let withheld = against_prover(|count, proofs| {
        *count = 5;
        proofs.truncate(5);
    });
    let matches = withheld.unwrap().matches.unwrap();
    assert!(matches.len() == 5 && matches.iter().all(|element| *element < 20));
}

/// With all randomness fixed, a sender that holds its elements in another order sends the very same bytes.
#[test]
fn what_the_sender_sends_does_not_depend_on_its_order() {
    let (mut mine, theirs) = (set(0..500), set(400..700));
    let mut messages = Vec::new();
    for _ in 0..2 {
        let (record, (first, second)) = (Record::default(), memory::links(LinkModel::LOOPBACK));
        let id = SessionId([7; 32]);
        let (sent, received) = memory::join(
            Channel::new(record.of(first), Party::First, id),
            Channel::new(second, Party::Second, id),
            |channel| honest(channel, &mut Prg::from_seed(Block::new(1)), &mine, Learns::Peer),
            |channel| honest(channel, &mut Prg::from_seed(Block::new(2)), &theirs, Learns::Me),
        );
        assert_eq!(sent.unwrap().matches, None);
        assert_eq!(received.unwrap().matches.unwrap(), (0..100).collect::<Vec<u32>>());
        messages.push(record.frames().into_iter().flat_map(|(_, said)| said).collect::<Vec<u8>>());
        mine.reverse();
    }
    assert!(messages[0] == messages[1]);
    // And its end is the tags, in ascending order.
    let tags: Vec<&[u8]> = messages[0][messages[0].len() - 500 * 32..].chunks(32).collect();
    assert!(tags.is_sorted() && tags[0][0] < 4 && tags[499][0] > 251);
}
