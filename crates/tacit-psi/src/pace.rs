//! What a peer can see of a party's work, its messages and when they come, tells nothing of what is common.
//!
//! Time is virtual: each piece of work moves its party's clock on, by its kind and by how much it handles.
//! Solving a store, finding places in a table and sorting take a time that follows from hashed keys, whatever
//! the peer has; they are no part of this, and SECURITY.md says so.

use crate::paxos::{self, Learns, Options};
use crate::vole_psi::circuit::{self, Column, Of, Reveal};
use crate::vole_psi::link;
use crate::vole_psi::payload::{self, Bounds, Duplicates, Side, Table};
use crate::{matching, sorted, vole_psi, work};
use tacit_crypto::{Block, Prg};
use tacit_net::Channel;
use tacit_net::testing::{Note, paced};
use tacit_ot::{Security, base};

type Set = Vec<[u8; 8]>;

/// What can be seen of a party: its pace, and its channel's bytes, messages and rounds.
type Seen = (Vec<Note>, [u64; 5]);

/// Both parties' sets: those of the first party that are `common` are in the second's, all of one size
/// whatever is common.
fn sets(own: u64, other: u64, common: &[u64]) -> [Set; 2] {
    let mine: Set = (0..own).map(u64::to_le_bytes).collect();
    let mut theirs: Set = common.iter().map(|element| element.to_le_bytes()).collect();
    theirs.extend((0..other - common.len() as u64).map(|element| (1_000_000 + element).to_le_bytes()));
    [mine, theirs]
}

/// What is common: nothing, one of the first, some, and all that can be.
fn commons(own: u64, other: u64) -> Vec<Vec<u64>> {
    let most = own.min(other);
    vec![vec![], vec![3], (0..most).step_by(3).collect(), (0..most).collect()]
}

/// Runs both parties on their sets; what is seen of each.
fn view(
    sets: &[Set; 2],
    one: impl Fn(&mut Channel, &mut Prg, &Set) + Sync,
    two: impl Fn(&mut Channel, &mut Prg, &Set) + Sync,
) -> [Seen; 2] {
    let sizes = |channel: &Channel| {
        let of = channel.stats();
        [of.bytes_sent, of.bytes_received, of.messages_sent, of.messages_received, of.rounds]
    };
    let (one, two, [pace, other]) = paced(
        work::clock,
        |channel| {
            one(channel, &mut Prg::from_seed(Block::new(1)), &sets[0]);
            sizes(channel)
        },
        |channel| {
            two(channel, &mut Prg::from_seed(Block::new(2)), &sets[1]);
            sizes(channel)
        },
    );
    [(pace, one), (other, two)]
}

/// All of these views are the same, and see something.
fn alike(name: &str, views: impl Iterator<Item = [Seen; 2]>, least: usize) {
    let mut first = None;
    let mut count = 0;
    for view in views {
        let first = first.get_or_insert_with(|| view.clone());
        assert!(view.iter().all(|(pace, _)| pace.len() >= least), "{name}: work is noted: {view:?}");
        assert!(*first == view, "{name}: view {count} differs");
        count += 1;
    }
    assert!(count > 1, "{name}");
}

fn with<T>(learns: Learns, security: Security, run: impl FnOnce(&Options<'_>) -> T) -> T {
    let base = base::default();
    run(&Options { learns, security, min_peer_elements: 0, max_peer_elements: 1 << 20, base: &*base })
}

/// Rows, by either protocol: the side that learns, with few tags of the peer's and with many, and the other.
#[test]
fn rows_show_nothing_of_what_matches() {
    for (own, other) in [(40, 60), (60, 40), (3, 200), (1, 1)] {
        for security in [Security::Malicious, Security::SemiHonest] {
            let side = |learns| {
                move |channel: &mut Channel, prg: &mut Prg, set: &Set| {
                    with(learns, security, |options| {
                        vole_psi::mark_one_of(channel, prg, set, options, 0, &mut |_, _, _| ()).unwrap();
                    })
                }
            };
            let commons: Vec<_> =
                commons(own, other).into_iter().filter(|c| c.iter().all(|e| *e < own)).collect();
            let views =
                commons.iter().map(|c| view(&sets(own, other, c), side(Learns::Me), side(Learns::Peer)));
            alike("vole", views, 4);
            let side = |learns| {
                move |channel: &mut Channel, prg: &mut Prg, set: &Set| {
                    with(learns, security, |options| {
                        paxos::run(channel, prg, set, options, &mut |_, _, _| ()).unwrap();
                    })
                }
            };
            let views =
                commons.iter().map(|c| view(&sets(own, other, c), side(Learns::Me), side(Learns::Peer)));
            alike("paxos", views, 4);
        }
    }
}

/// Where both learn, the number of matches is no secret; which they are is one until it is said.
#[test]
fn rows_for_both_show_nothing_but_how_many() {
    let side = |channel: &mut Channel, prg: &mut Prg, set: &Set| {
        with(Learns::Both, Security::Malicious, |options| {
            vole_psi::mark_one_of(channel, prg, set, options, 0, &mut |_, _, _| ()).unwrap();
        })
    };
    let commons: [Vec<u64>; 3] = [(0..10).collect(), (30..40).collect(), (0..40).step_by(4).collect()];
    alike("both", commons.iter().map(|c| view(&sets(40, 60, c), side, side)), 4);
}

/// A table whose cells are as wide as `width` for all elements.
fn table(set: &Set, width: usize) -> Table {
    let mut table = Table::new(["name"]).unwrap();
    for (i, element) in (0u32..).zip(set) {
        let cell = element.repeat(width.div_ceil(8));
        table.push(i, [Some(&cell[..(i as usize * 37) % (width + 1)])]).unwrap();
    }
    table.widen("name", width).unwrap();
    table
}

fn asks(channel: &mut Channel, prg: &mut Prg, set: &Set) {
    with(Learns::Me, Security::Malicious, |options| {
        let bounds = Bounds { key: payload::MAX_SEALED as u64, ..Bounds::default() };
        let side = Side::Asks(&["name"]);
        let quiet = &mut |_, _, _| ();
        let mut collected =
            payload::collect_one_of(channel, prg, set, side, &bounds, options, 0, quiet).unwrap();
        // What a service commits to before the last message of its session.
        collected.matches(set.len()).unwrap();
    });
}

/// Columns, wide ones among them: an asker takes its bytes, finds out what opens, and is done, at the same
/// times whatever matches.
#[test]
fn payload_shows_nothing_of_what_matches_however_wide_its_cells_are() {
    for (width, own, other) in [(8, 40, 60), (3_000, 12, 30), (300_000, 3, 6), (64, 2, 80)] {
        let gives = |channel: &mut Channel, prg: &mut Prg, set: &Set| {
            with(Learns::Peer, Security::Malicious, |options| {
                let table = table(set, width);
                let side = Side::Gives(&table, Duplicates::Refuse);
                let bounds = Bounds::default();
                let quiet = &mut |_, _, _| ();
                payload::collect_one_of(channel, prg, set, side, &bounds, options, 0, quiet).unwrap();
            })
        };
        let commons: Vec<_> =
            commons(own, other).into_iter().filter(|c| c.iter().all(|e| *e < own)).collect();
        alike("payload", commons.iter().map(|c| view(&sets(own, other, c), asks, gives)), 5);
    }
}

/// The same where both ask and give: but for how many match.
#[test]
fn an_exchange_of_columns_shows_nothing_but_how_many() {
    let side = |channel: &mut Channel, prg: &mut Prg, set: &Set| {
        with(Learns::Both, Security::Malicious, |options| {
            let table = table(set, 500);
            let side = Side::Exchanges(&["name"], &table, Duplicates::Refuse);
            let quiet = &mut |_, _, _| ();
            let bounds = Bounds::default();
            payload::collect_one_of(channel, prg, set, side, &bounds, options, 0, quiet).unwrap();
        })
    };
    let commons: [Vec<u64>; 3] = [(0..5).collect(), (15..20).collect(), (0..20).step_by(4).collect()];
    alike("exchange", commons.iter().map(|c| view(&sets(20, 30, c), side, side)), 5);
}

/// Identifiers, of which nobody knows which are common.
#[test]
fn links_show_nothing_of_what_is_common() {
    for (own, other) in [(40, 60), (60, 40), (1, 1)] {
        for security in [Security::Malicious, Security::SemiHonest] {
            let side = |channel: &mut Channel, prg: &mut Prg, set: &Set| {
                with(Learns::Both, security, |options| {
                    link::run(channel, prg, set, options, &mut |_, _, _, _| ()).unwrap();
                })
            };
            let commons: Vec<_> =
                commons(own, other).into_iter().filter(|c| c.iter().all(|e| *e < own)).collect();
            alike("link", commons.iter().map(|c| view(&sets(own, other, c), side, side)), 4);
        }
    }
}

/// Numbers over all common keys, between peers that keep to the protocol and between others: nobody's pace
/// tells what is common, nor whether the number is withheld.
#[test]
fn numbers_show_nothing_of_what_is_common() {
    let kinds = [("count", 0), ("sum", 1), ("mean", 2)];
    for (security, sizes) in [(Security::SemiHonest, (40, 60)), (Security::Malicious, (9, 6))] {
        for (name, kind) in kinds {
            let side = |learns, owns: bool| {
                move |channel: &mut Channel, prg: &mut Prg, set: &Set| {
                    with(learns, security, |options| {
                        let mut column = Column::new(set.len());
                        for element in 0..set.len() as u32 {
                            column.add(element, Some(i64::from(element) - 5)).unwrap();
                        }
                        let of = if owns { Of::Mine(&column) } else { Of::Peers };
                        let reveal = [Reveal::Count, Reveal::Sum(of), Reveal::Mean(of)][kind];
                        let quiet = &mut |_, _, _| ();
                        match security {
                            Security::SemiHonest => {
                                circuit::aggregate(channel, prg, set, reveal, 3.into(), options, quiet)
                                    .unwrap();
                            }
                            Security::Malicious => {
                                sorted::aggregate(channel, prg, set, reveal, 3.into(), options, quiet)
                                    .unwrap();
                            }
                        }
                    })
                }
            };
            let views = commons(sizes.0, sizes.1).into_iter().map(|c| {
                view(&sets(sizes.0, sizes.1, &c), side(Learns::Me, true), side(Learns::Peer, false))
            });
            alike(name, views, 2);
        }
    }
}

/// Shares of what is common, from which a function goes on.
#[test]
fn shares_show_nothing_of_what_is_common() {
    let side = |channel: &mut Channel, prg: &mut Prg, set: &Set| {
        with(Learns::Both, Security::SemiHonest, |options| {
            let values = vec![Block::new(7); set.len()];
            circuit::shares(channel, prg, set, Some(&values), options, &mut |_, _, _| ()).unwrap();
        })
    };
    let views = commons(20, 30).into_iter().map(|c| view(&sets(20, 30, &c), side, side));
    alike("shares", views, 2);
}

/// What these tests would see of an asker that opens rows as they come: where its matches are. And what of one
/// that compares tags as they come and stops to note what it finds.
#[test]
fn opening_rows_as_they_come_would_tell_which_match() {
    let rows = 30;
    for matches in [vec![], vec![4], (0..rows).step_by(3).collect::<Vec<usize>>()] {
        let (_, (), [_, pace]) = paced(
            work::clock,
            |channel| {
                (0..=rows).for_each(|_| channel.send(&[7; 500]).unwrap());
                channel.flush().unwrap();
            },
            |channel| {
                for row in 0..=rows {
                    channel.recv(&mut [0; 500]).unwrap();
                    if matches.contains(&row) {
                        work::done(work::Kind::Opened, 500);
                    }
                }
            },
        );
        let taken: Vec<usize> = pace
            .iter()
            .filter(|(taken, ..)| *taken)
            .skip(1)
            .map(|(_, at, _)| *at as usize / 500 - 1)
            .collect();
        assert_eq!(taken, matches);
    }
}

/// Marks and lists are made in as many steps whatever is in them.
#[test]
fn lists_take_as_long_whatever_is_in_them() {
    let steps = |marks: &[u8]| {
        let before = work::clock();
        matching::indices(marks);
        work::clock() - before
    };
    assert_eq!(steps(&[0; 50]), steps(&[1; 50]));
}
