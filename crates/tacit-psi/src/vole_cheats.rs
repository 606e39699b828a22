//! Cheating parties: scripted deviations, each caught, or shown to change nothing but the cheater's own
//! input.

use super::*;
use crate::okvs::clustered;
use tacit_net::testing::duel;
use tacit_net::{SessionId, memory};
use tacit_ot::base;

type Set = Vec<[u8; 8]>;

fn set(range: std::ops::Range<u64>) -> Set {
    range.map(u64::to_le_bytes).collect()
}

fn honest(channel: &mut Channel, elements: &Set, learns: Learns) -> Result<Outcome> {
    let base = base::default();
    let options = Options {
        learns,
        security: Security::Malicious,
        min_peer_elements: 0,
        max_peer_elements: 1 << 20,
        base: &*base,
    };
    run(channel, &mut Prg::from_os(), elements, &options, &mut |_, _, _| ())
}

/// Runs `script` as a party that has announced `claimed` elements, holds `elements` and has agreed on the
/// seeds.
fn scripted<T>(
    channel: &mut Channel,
    elements: &Set,
    claimed: usize,
    learns: Learns,
    script: impl FnOnce(Run<'_, '_, [u8; 8]>) -> T,
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
    let mine = Hello::new(MAGIC, claimed, &options);
    let theirs = mine.exchange(channel, NAME, &options).unwrap();
    let mut progress = |_, _, _| ();
    script(Run::start_runs(channel, &mut prg, elements, &options, &mut progress, [mine, theirs], 0).unwrap())
}

fn is_cheating<T>(result: &Result<T>) -> bool {
    matches!(result, Err(Error::Cheated { .. } | Error::Ot(tacit_ot::Error::Cheated { .. })))
}

/// What a receiver learns with the store of its choice, made from the digests of `elements` and the
/// announced shape.
fn cheating_receiver(
    elements: &Set,
    claimed: usize,
    theirs: &Set,
    store: impl FnOnce(clustered::Shape, &[Block], &[Block]) -> Vec<Block> + Send,
) -> (Vec<u32>, Result<Outcome>) {
    duel(
        0,
        |channel| {
            scripted(channel, elements, claimed, Learns::Me, |mut party| {
                let party_elements = party.elements.len();
                let mut vole = party.receiver_setup().unwrap();
                let shape = party.parameters.shape;
                let digests = party.seeds.digests(&shape, party.elements, &mut |_, _, _| ()).unwrap();
                let mut slots = Buffer::zeros(shape.slots());
                // One bin, so the digests lie side by side.
                assert_eq!(shape.bins(), 1);
                slots.copy_from_slice(&store(shape, digests.keys(), digests.values()));
                let mut slots = Whole::new(slots);
                let last = party.transfer(&mut vole, &mut slots).unwrap();
                let mut sums = Summing::new(shape, digests, None);
                sums.take(&slots.ends_with(last));
                let (mut rest, tags) = party.tags(sums).unwrap();
                matching::indices(&rest.compare(&tags).unwrap().marks(party_elements))
            })
        },
        |channel| honest(channel, theirs, Learns::Peer),
    )
}

/// A store that holds as many of the digests, first ones first, as elimination over GF(2^128) can make it,
/// and which those are. Values are compared in `bits` bits alone: H into a smaller field.
pub(super) fn overfull(shape: clustered::Shape, keys: &[Block], values: &[Block]) -> Vec<Block> {
    let slots = shape.slots();
    let coefficients: Vec<Vec<Block>> = (0..slots)
        .map(|slot| {
            let mut unit = vec![Block::ZERO; slots];
            unit[slot] = Block::ONE;
            let mut out = vec![Block::ZERO; keys.len()];
            shape.decode(&unit, keys, &mut out).unwrap();
            out
        })
        .collect();
    // (pivot, row with its sum), which is zero at the pivots of those before it. Most factors are zero at first, as a key
    // has few slots, and portable products are slow.
    let mut rows: Vec<(usize, Vec<Block>)> = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let mut row: Vec<Block> = coefficients.iter().map(|column| column[index]).collect();
        row.push(*value);
        for (pivot, other) in &rows {
            let factor = row[*pivot];
            if factor != Block::ZERO {
                gf128::multiply_add(&mut row, other, factor);
            }
        }
        let Some(pivot) = row[..slots].iter().position(|entry| *entry != Block::ZERO) else { continue };
        let inverse = gf128::inverse(row[pivot]);
        gf128::scale(&mut row, inverse);
        rows.push((pivot, row));
        if rows.len() == slots {
            break;
        }
    }
    let mut store = vec![Block::ZERO; slots];
    for (pivot, row) in rows.iter().rev() {
        store[*pivot] = row[slots] ^ gf128::inner_product(&row[..slots], &store);
    }
    store
}

/// A receiver that announced few elements and solves for as many of 1,000 as it can: one a slot, so exactly as
/// many as it announced, where a store with spare slots gave 13 for one and 94 for 40.
///
/// proof: vole-psi 3.3, 5.1
#[test]
fn a_receiver_of_a_small_set_encodes_no_more_than_it_announced() {
    let all = set(0..1000);
    for (claimed, most) in [(1, 2), (10, 18), (40, 70), (100, 173)] {
        let mut capacity = 0;
        let (found, sender) = cheating_receiver(&all, claimed, &all, |shape, keys, values| {
            capacity = shape.slots();
            overfull(shape, keys, values)
        });
        sender.unwrap();
        let parameters = Parameters::new(claimed, 1000, Security::Malicious).unwrap();
        assert_eq!((found.len(), capacity), (claimed, claimed));
        assert_eq!(parameters.encodable(60.0), most, "{claimed}");
    }
}

/// With values of few bits the overfitting beyond one element a slot shows: the count of elements that
/// decode right by chance, against the bound.
///
/// proof: vole-psi 3.3
#[test]
fn overfitting_in_a_small_field_obeys_the_bound() {
    let mut prg = Prg::from_seed(Block::new(8));
    let (keys, bits, queries) = (12usize, 8u32, 4096usize);
    let shape = clustered::Shape::for_keys(keys).unwrap();
    let draw = |prg: &mut Prg| {
        let mut blocks = vec![Block::ZERO; queries];
        prg.fill_blocks(&mut blocks);
        Zeroizing::new(blocks)
    };
    for _ in 0..10 {
        let (keys, values) = (draw(&mut prg), draw(&mut prg));
        let store = overfull(shape, &keys, &values);
        let mut out = vec![Block::ZERO; queries];
        shape.decode(&store, &keys, &mut out).unwrap();
        let equal = |a: &Block, b: &Block| (a.low() ^ b.low()) & ((1 << bits) - 1) == 0;
        let held = out.iter().zip(values.iter()).filter(|(a, b)| equal(a, b)).count();
        let bound = paxos::encodable(shape.slots(), bits as usize, (queries as f64).log2(), 0);
        // One a slot by elimination, and 4,096/256 by chance.
        assert!(
            held >= shape.slots() && held as u64 <= bound,
            "{held} held, bound {bound}, {} slots",
            shape.slots()
        );
    }
}

/// A receiver that holds more than it says, of a store with spare slots: it gets one element a slot, and its
/// other elements find nothing.
#[test]
fn a_claim_of_fewer_elements_gives_no_more_matches_than_slots() {
    let claimed = vole_psi_small() + 1;
    let shape = Parameters::new(claimed, claimed, Security::Malicious).unwrap().shape();
    let mut prg = Prg::from_seed(Block::new(31));
    let [keys, values] = [(); 2].map(|()| {
        let mut blocks = vec![Block::ZERO; 2000];
        prg.fill_blocks(&mut blocks);
        blocks
    });
    let store = overfull(shape, &keys, &values);
    let mut out = vec![Block::ZERO; keys.len()];
    shape.decode(&store, &keys, &mut out).unwrap();
    let held = out.iter().zip(&values).filter(|(a, b)| a == b).count();
    let bound = paxos::encodable(shape.slots(), 128, 60.0, 0) as usize;
    assert!(held > claimed && held <= shape.slots() && held < bound, "{held} of {} slots", shape.slots());
}

fn vole_psi_small() -> usize {
    SMALL_SET as usize
}

/// Slots that differ from P + u change what the receiver itself finds, and nothing else.
#[test]
fn a_wrong_store_matches_nothing_and_harms_nobody() {
    let (mine, theirs) = (set(0..50), set(25..90));
    let (found, sender) =
        cheating_receiver(&mine, 50, &theirs, |shape, _, _| vec![Block::ONES; shape.slots()]);
    assert!(found.is_empty());
    assert_eq!(sender.unwrap().matches, None);
}

/// A sender with another Δ for a slot, or with a wrong tree, is in `tacit_ot::vole::gf128`. Here: an honest
/// receiver against a sender whose tags, or whose message, `tamper` changes. 30 elements, 10 of them common.
fn against_sender(tamper: impl FnOnce(&mut Vec<u128>) + Send) -> Result<Outcome> {
    let (mine, theirs) = (set(0..40), set(30..60));
    let (received, _) = memory::run(
        |channel| honest(channel, &mine, Learns::Me),
        |channel| {
            scripted(channel, &theirs, 30, Learns::Peer, |mut party| {
                let sums = party.send().unwrap();
                let (rest, tags) = party.tags(sums).unwrap();
                let mut sent: Vec<u128> = tags.tags.iter().map(|tag| tag.to_u128()).collect();
                tamper(&mut sent);
                // The honest message's form without its refusals.
                let prefix = |tag: u128| (tag >> 1 >> (127 - rest.parameters.prefix_bits())) as usize;
                let mut bitmap = tacit_crypto::BitVec::zeros(rest.parameters.format().bitmap_bits());
                for (i, tag) in sent.iter().enumerate() {
                    bitmap.set((i + prefix(*tag)).min(bitmap.len() - 1), true);
                }
                rest.channel.send(bitmap.as_bytes()).unwrap();
                for tag in sent {
                    let bytes = (tag >> rest.parameters.format().shift()).to_le_bytes();
                    rest.channel.send(&bytes[..rest.parameters.tag_bytes()]).unwrap();
                }
                rest.channel.flush().unwrap();
            })
        },
    );
    received
}

/// proof: vole-psi 2.8
#[test]
fn a_sender_of_garbage_is_refused_or_matches_nothing() {
    assert_eq!(against_sender(|_| ()).unwrap().matches.unwrap(), (30..40).collect::<Vec<u32>>());
    let mut prg = Prg::from_seed(Block::new(9));
    for _ in 0..10 {
        let noise = against_sender(|tags| {
            tags.iter_mut().for_each(|tag| *tag = prg.block().to_u128());
            tags.sort_unstable();
        });
        assert_eq!(noise.unwrap().matches.unwrap(), []);
    }
    // Half the tags replaced: no more than the other half matches, and nothing false.
    let half = against_sender(|tags| {
        tags.iter_mut().step_by(2).for_each(|tag| *tag = prg.block().to_u128());
        tags.sort_unstable();
    });
    assert!(half.unwrap().matches.unwrap().iter().all(|element| (30..40).contains(element)));
    for (name, result) in [
        ("a repeated tag", against_sender(|tags| tags[7] = tags[6])),
        ("one tag throughout", against_sender(|tags| tags.fill(1 << 100))),
        ("descending within a prefix", {
            against_sender(|tags| {
                tags.iter_mut().enumerate().for_each(|(i, tag)| *tag = 5 << 100 | (50 - i as u128));
            })
        }),
        ("the last bit of the bitmap set", against_sender(|tags| tags[29] = u128::MAX)),
    ] {
        // A tag of the largest prefix is followed by that prefix's end, so the last case is an honest
        // message.
        assert_eq!(is_cheating(&result), name != "the last bit of the bitmap set", "{name}: {result:?}");
    }
    for result in [against_sender(|tags| tags.truncate(29)), against_sender(|tags| tags.clear())] {
        // Fewer tags than announced: the bitmap does not fit.
        assert!(is_cheating(&result), "{result:?}");
    }
}

/// proof: vole-psi 2.6
#[test]
fn a_coin_that_is_not_the_one_committed_to_is_caught() {
    for wrong in [false, true] {
        let (received, _) = memory::run(
            |channel| honest(channel, &set(0..20), Learns::Me),
            |channel| {
                scripted(channel, &set(10..30), 20, Learns::Peer, |mut party| {
                    let sums = party.send().unwrap();
                    if let Coin::Mine(coin, _) = &mut party.seeds.coin {
                        coin[3] ^= wrong as u8;
                    }
                    let (mut rest, tags) = party.tags(sums).unwrap();
                    let _ = rest.send_tags(&tags);
                })
            },
        );
        match wrong {
            false => assert_eq!(received.unwrap().matches.unwrap().len(), 10),
            true => assert!(is_cheating(&received), "{received:?}"),
        }
    }
}

/// A sender that waits for the salt and then tries commitments, to find an H that suits it: one in which an
/// element of the receiver's has a value that begins with zeros. Were H to take the commitment, 64 tries would
/// bring six zeros. Now all tries give the one H that the salt gave, whatever the protocol is for.
///
/// proof: vole-psi 2.2, 4.4
#[test]
fn a_sender_that_saw_the_salt_cannot_choose_h() {
    let base = base::default();
    let options = Options {
        learns: Learns::Me,
        security: Security::Malicious,
        min_peer_elements: 0,
        max_peer_elements: 1 << 20,
        base: &*base,
    };
    for domain in [Purpose::rows(Learns::Me, 0).domain, payload::DOMAIN, circuit::DOMAIN, link::DOMAIN] {
        let purpose = Purpose { domain, ..Purpose::rows(Learns::Me, 0) };
        let hellos = [Hello::new(MAGIC, 20, &options), Hello::new(MAGIC, 20, &options)];
        let h_of = |commitment: u64| {
            let (one, other) = memory::pair_with(SessionId([7; 32]));
            let (h, ()) = memory::join(
                one,
                other,
                |channel| {
                    let parameters = Parameters::new(20, 20, Security::Malicious).unwrap();
                    let prg = &mut Prg::from_seed(Block::new(1));
                    let [receiver, sender] = &hellos;
                    let of = [receiver, sender];
                    let seeds = Seeds::agree(channel, prg, true, of, &parameters, &purpose).unwrap();
                    [seeds.h, seeds.bins]
                },
                |channel| {
                    let mut salt = [0; 32];
                    channel.recv(&mut salt).unwrap();
                    let mut bytes = [0; 32];
                    bytes[..8].copy_from_slice(&commitment.to_le_bytes());
                    channel.send(&bytes).unwrap();
                    channel.flush().unwrap();
                },
            );
            h
        };
        let value = |h: &[u8; 32]| halves(blake3::keyed_hash(h, &7u64.to_le_bytes()).as_bytes()).1.to_u128();
        let values = |commitment| h_of(commitment).map(|key| value(&key));
        let first = values(0);
        for commitment in 1..64 {
            // Those of the bins' hash, on which a circuit's stores depend, too.
            assert!(values(commitment) == first, "{domain}: the sender chose among values of H");
        }
    }
}

/// An honest sender that learns too, against a receiver that sends `tamper(count, positions and proofs)`.
fn against_prover(tamper: impl FnOnce(&mut u64, &mut Vec<(u32, Proof)>) + Send) -> Result<Outcome> {
    // The smaller set's owner receives.
    let (mine, theirs) = (set(0..40), set(20..90));
    let (_, sender) = duel(
        0,
        |channel| {
            scripted(channel, &mine, 40, Learns::Both, |mut party| {
                assert!(party.receives);
                let sums = party.receive().unwrap();
                let (mut rest, tags) = party.tags(sums).unwrap();
                let found = rest.compare(&tags).unwrap();
                let proof = |[position, element]: &[u32; 2]| (*position, tags.proofs[*element as usize]);
                let mut proofs: Vec<(u32, Proof)> = found.pairs().iter().map(proof).collect();
                let mut count = proofs.len() as u64;
                tamper(&mut count, &mut proofs);
                rest.channel.send_u64(count).unwrap();
                for (position, proof) in proofs {
                    rest.channel.send(&position.to_le_bytes()).unwrap();
                    rest.channel.send(&proof).unwrap();
                }
                rest.channel.flush().unwrap();
            })
        },
        |channel| honest(channel, &theirs, Learns::Both),
    );
    sender
}

/// proof: vole-psi 2.10, 3.5
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
    assert_eq!(withheld.unwrap().matches.unwrap().len(), 5);
}

/// A message bit by bit; nothing where the bitmap has too many ones or too few, or none ends the last prefix.
fn read_slowly(format: Format, bitmap: &[u8], rests: &[u8]) -> Option<Vec<u128>> {
    let bits: Vec<bool> = (0..format.bitmap_bits()).map(|at| bitmap[at / 8] >> (at % 8) & 1 == 1).collect();
    if bits.iter().filter(|bit| **bit).count() != format.count || bits[bits.len() - 1] {
        return None;
    }
    let (mut prefix, mut tags) = (0u128, Vec::new());
    for bit in bits {
        match bit {
            false => prefix += 1,
            true => {
                let mut rest = [0; 16];
                rest[..format.rest].copy_from_slice(&rests[tags.len() * format.rest..][..format.rest]);
                let first = prefix.checked_shl(128 - format.prefix_bits).unwrap_or(0);
                tags.push(first | u128::from_le_bytes(rest) << format.shift());
            }
        }
    }
    Some(tags)
}

/// Messages with a fault at the edges of pieces and of threads' parts, or with all tags in one prefix: a receiver on any
/// number of threads refuses them, or finds what a slow reader and a search find.
///
/// proof: vole-psi 2.8
#[test]
fn faults_at_the_edges_of_parts_are_caught() {
    let mut prg = Prg::from_seed(Block::new(4));
    for (own, count) in [(1, 1), (40, 3), (9, 300), (5000, 8193), (3000, 65_537), (70_000, 131_073)] {
        let parameters = Parameters::new(own, count, Security::Malicious).unwrap();
        let format = parameters.format();
        let mut draw = |count: usize| -> Vec<u128> {
            let mut tags: Vec<u128> = (0..count).map(|_| prg.block().to_u128()).collect();
            tags.sort_unstable();
            tags
        };
        let mine = draw(own);
        let mut sent: Vec<u128> = mine.iter().copied().step_by(2).take(count / 2).collect();
        sent.extend(draw(count - sent.len()));
        sent.sort_unstable();
        let blocks: Vec<Block> = sent.iter().map(|tag| Block::new(*tag)).collect();
        let mut rests = vec![0; count * format.rest];
        format.rests(&blocks, &mut rests);
        let bitmap = format.bitmap(&blocks).as_bytes().to_vec();
        let mut messages = vec![(bitmap.clone(), rests.clone())];
        for at in [1, count / 5, count / 2, 4096, 8192, 26_215, 65_535, 65_536, 65_537, count - 1] {
            if (1..count).contains(&at) {
                let (here, before) = (at * format.rest, (at - 1) * format.rest);
                let mut repeated = sent.clone();
                repeated[at] = repeated[at - 1];
                let repeated: Vec<Block> = repeated.into_iter().map(Block::new).collect();
                let mut swapped = rests.clone();
                swapped[before..here + format.rest].rotate_left(format.rest);
                let mut twice = rests.clone();
                format.rests(&repeated, &mut twice);
                messages.push((bitmap.clone(), swapped));
                messages.push((format.bitmap(&repeated).as_bytes().to_vec(), twice));
            }
        }
        // All tags in the first prefix, or in the last, and one bit too far.
        for first in [0, format.bitmap_bits() - 1 - count, format.bitmap_bits() - count] {
            let mut bits = tacit_crypto::BitVec::zeros(format.bitmap_bits());
            (first..first + count).for_each(|at| bits.set(at, true));
            messages.push((bits.as_bytes().to_vec(), rests.clone()));
        }
        messages.extend([0, 0xff].map(|byte| (vec![byte; bitmap.len()], rests.clone())));
        let mut tags = Tags {
            tags: Buffer::zeros(own),
            elements: tacit_crypto::Indices::zeros(own),
            proofs: Zeroizing::default(),
        };
        for (at, tag) in mine.iter().enumerate() {
            (tags.tags[at], tags.elements[at]) = (Block::new(*tag), (own - 1 - at) as u32);
        }
        for (number, (bitmap, rests)) in messages.iter().enumerate() {
            let read = read_slowly(format, bitmap, rests).filter(|tags| tags.is_sorted_by(|a, b| a < b));
            let expected = read.map(|read| -> Vec<[u32; 2]> {
                let element = |tag| Some((own - 1 - mine.binary_search(tag).ok()?) as u32);
                (0..).zip(&read).filter_map(|(place, tag)| Some([place, element(tag)?])).collect()
            });
            for threads in [1, 2, 5] {
                let (found, ()) = memory::run(
                    |channel| {
                        workers::limited(threads, || {
                            Finish { channel, parameters, progress: &mut |_, _, _| () }.compare(&tags)
                        })
                    },
                    |channel| {
                        // Who finds a fault early leaves.
                        let _ = channel
                            .send(bitmap)
                            .and_then(|()| channel.send(rests))
                            .and_then(|()| channel.flush());
                    },
                );
                assert!(expected.is_some() || is_cheating(&found), "{own} of {count}: message {number}");
                assert_eq!(
                    found.ok().map(|found| found.pairs().to_vec()),
                    expected,
                    "{own} of {count}: message {number}"
                );
            }
        }
    }
}
