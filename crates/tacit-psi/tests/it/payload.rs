//! Matches with the peer's columns against a plain join.

use std::collections::HashMap;
use tacit_crypto::{Block, Prg};
use tacit_net::{Channel, memory};
use tacit_ot::{Security, base};
use tacit_psi::paxos::{Learns, Options};
use tacit_psi::payload::{self, Bounds, Duplicates, MAX_COLUMNS, MAX_SEALED, Match, Received, Side, Table};
use tacit_psi::{Error, Result};

type Set = Vec<[u8; 8]>;
type Cells = Vec<Option<Vec<u8>>>;

fn party(
    channel: &mut Channel,
    set: &[[u8; 8]],
    side: Side<'_>,
    security: Security,
) -> Result<(Option<Received>, u64)> {
    let base = base::default();
    let learns = match side {
        Side::Asks(_) => Learns::Me,
        Side::Gives(..) => Learns::Peer,
        Side::Exchanges(..) => Learns::Both,
    };
    let options =
        Options { learns, security, min_peer_elements: 0, max_peer_elements: 1 << 20, base: &*base };
    let bounds = Bounds { key: MAX_SEALED as u64, ..Bounds::default() };
    let prg = &mut Prg::from_os();
    let gained = payload::collect_one_of(channel, prg, set, side, &bounds, &options, 0, &mut |_, _, _| ())?;
    // What goes to a file gives back the same.
    let mut gained = gained;
    let most = set.len().min(gained.peer_elements as usize);
    let kept = gained.to_bytes(most);
    assert!(kept.as_ref().is_none_or(|kept| places_without_a_row_are_zeros(kept)));
    let gained = gained.open()?;
    assert_eq!(kept.map(|kept| payload::received_from(&kept).unwrap()), gained.received);
    assert!(gained.tested_at_most(set.len(), 60.0)? >= gained.peer_elements);
    Ok((gained.received, gained.peer_elements))
}

/// What goes to a file holds nothing of elements that do not match, not even in which order their tags are.
fn places_without_a_row_are_zeros(kept: &[u8]) -> bool {
    let (numbers, _) = kept.as_chunks::<8>();
    let Some([rows, columns]) =
        numbers.first_chunk::<2>().map(|head| head.map(|number| u64::from_le_bytes(number) as usize))
    else {
        return true;
    };
    let widths = numbers[2..][..columns].iter().map(|width| 4 + u64::from_le_bytes(*width) as usize);
    let place = 5 + rows * (1 + widths.sum::<usize>());
    kept[8 * (2 + columns)..]
        .chunks_exact(place)
        .all(|place| place[0] == 1 || place[1..].iter().all(|byte| *byte == 0))
}

/// Elements of `range` in an order drawn from `seed`.
fn shuffled(range: std::ops::Range<u64>, seed: u128) -> Set {
    let (mut set, mut prg): (Vec<_>, _) =
        (range.map(u64::to_le_bytes).collect(), Prg::from_seed(Block::new(seed)));
    for i in (1..set.len()).rev() {
        set.swap(i, prg.below(i as u64 + 1) as usize);
    }
    set
}

const COLUMNS: [&str; 3] = ["name", "note", "größe"];

/// Rows of elements in three columns: nulls, empty cells, and lengths up to `longest`; `many` rows of some.
fn rows(set: &Set, longest: u64, many: bool) -> Vec<(u32, Cells)> {
    let mut prg = Prg::from_seed(Block::new(longest.into()));
    let mut rows = Vec::new();
    for element in 0..set.len() as u32 {
        for _ in 0..if many { prg.below(4) } else { 1 } {
            let cells = (0..COLUMNS.len()).map(|_| {
                let mut cell = vec![0; prg.below(longest + 1) as usize];
                prg.fill_bytes(&mut cell);
                (prg.below(5) > 0).then_some(cell)
            });
            rows.push((element, cells.collect()));
        }
    }
    rows
}

fn table(rows: &[(u32, Cells)]) -> Table {
    let mut table = Table::new(COLUMNS).unwrap();
    for (element, cells) in rows {
        table.push(*element, cells.iter().map(Option::as_deref)).unwrap();
    }
    table
}

/// What the asker must get: the rows of common elements in the columns asked for.
fn plain(
    mine: &Set,
    theirs: &Set,
    rows: &[(u32, Cells)],
    asked: &[&str],
    duplicates: Duplicates,
) -> Vec<Match> {
    let mut by_element: HashMap<[u8; 8], Vec<Cells>> =
        theirs.iter().map(|element| (*element, Vec::new())).collect();
    for (element, cells) in rows {
        let rows = by_element.get_mut(&theirs[*element as usize]).unwrap();
        if duplicates == Duplicates::All || rows.is_empty() {
            let column = |name: &&str| COLUMNS.iter().position(|own| own == name).unwrap();
            rows.push(asked.iter().map(|name| cells[column(name)].clone()).collect());
        }
    }
    let of = |(element, key): (u32, &[u8; 8])| Some(Match { element, rows: by_element.get(key)?.clone() });
    (0..).zip(mine).filter_map(of).collect()
}

#[track_caller]
fn check(mine: &Set, theirs: &Set, rows: &[(u32, Cells)], asked: &[&str], how: (Duplicates, Security, bool)) {
    let (duplicates, security, asks_first) = how;
    let table = table(rows);
    let asker = |channel: &mut Channel| party(channel, mine, Side::Asks(asked), security).unwrap();
    let giver =
        |channel: &mut Channel| party(channel, theirs, Side::Gives(&table, duplicates), security).unwrap();
    let (asker, giver) = if asks_first {
        memory::run(asker, giver)
    } else {
        let (giver, asker) = memory::run(giver, asker);
        (asker, giver)
    };
    let received = asker.0.unwrap();
    assert!(
        received.matches == plain(mine, theirs, rows, asked, duplicates),
        "{} × {}",
        mine.len(),
        theirs.len()
    );
    assert_eq!(received.unopened, 0);
    assert!(giver.0.is_none());
    assert_eq!((asker.1, giver.1), (theirs.len() as u64, mine.len() as u64));
}

#[test]
fn sets_of_all_shapes() {
    let cases = [
        (0..0, 0..0),
        (0..0, 0..5),
        (0..5, 0..0),
        (0..1, 0..1),
        (0..1, 1..2),
        (0..3, 0..3),
        (0..2, 0..3),
        (0..1, 0..1000),
        (0..1000, 999..1000),
        (0..6789, 3000..10_890),
    ];
    for (i, (a, b)) in cases.into_iter().enumerate() {
        let (a, b) = (shuffled(a, i as u128), shuffled(b, 100 + i as u128));
        let rows = rows(&b, 20, false);
        for security in [Security::Malicious, Security::SemiHonest] {
            let how = (Duplicates::Refuse, security, i % 2 == 0);
            check(&a, &b, &rows, &["größe", "name"], how);
        }
    }
}

#[test]
fn sizes_around_powers_of_two() {
    for (i, (n, m)) in [(63, 65), (64, 64), (1025, 1023), (65_535, 65_537)].into_iter().enumerate() {
        let (a, b) = (shuffled(0..n, 1), shuffled(n / 2..n / 2 + m, 2));
        check(&a, &b, &rows(&b, 9, false), &["note"], (Duplicates::First, Security::Malicious, i % 2 == 0));
    }
}

/// Both ask and give, with columns, widths and treatment of duplicates of their own.
#[test]
fn both_sides_get_what_they_ask_for() {
    let cases = [
        (0..0, 0..5),
        (0..5, 0..0),
        (0..1, 0..1),
        (0..1, 1..2),
        (0..2, 0..3),
        (0..3, 0..2),
        (0..1000, 999..1003),
    ];
    let larger =
        [(0..1023, 500..1525), (0..1025, 500..1523), (0..6789, 3000..10_890), (3000..10_890, 0..6789)];
    for (i, (a, b)) in cases.into_iter().chain(larger).enumerate() {
        let sets = [shuffled(a, i as u128), shuffled(b, 100 + i as u128)];
        let given = [rows(&sets[0], 20, true), rows(&sets[1], 9, i % 2 == 0)];
        let tables = given.each_ref().map(|given| table(given));
        let asked = [&["note", "name"][..], &["größe"]];
        let many = [Duplicates::All, Duplicates::First];
        for security in [Security::Malicious, Security::SemiHonest] {
            let side = |channel: &mut Channel, me: usize| {
                let side = Side::Exchanges(asked[me], &tables[me], many[me]);
                party(channel, &sets[me], side, security).unwrap()
            };
            let (first, second) = memory::run(|channel| side(channel, 0), |channel| side(channel, 1));
            for (me, (received, peer)) in [first, second].into_iter().enumerate() {
                let other = 1 - me;
                let received = received.unwrap();
                let expected = plain(&sets[me], &sets[other], &given[other], asked[me], many[other]);
                assert!(received.matches == expected, "case {i}, side {me}");
                assert_eq!((received.unopened, peer), (0, sets[other].len() as u64));
            }
        }
    }
}

#[test]
fn an_exchange_ends_early_where_one_side_asks_for_what_is_not_given() {
    let (a, b) = (shuffled(0..60, 1), shuffled(20..90, 2));
    let tables = [table(&rows(&a, 40, false)), table(&rows(&b, 40, false))];
    for asked in [[&["iban"][..], &["name"]], [&["name"], &["iban"]], [&["iban"], &["iban"]]] {
        let run = |channel: &mut Channel, me: usize, set: &Set| {
            let side = Side::Exchanges(asked[me], &tables[me], Duplicates::Refuse);
            (party(channel, set, side, Security::Malicious).map(|_| ()), channel.stats().bytes_sent)
        };
        let (one, other) = memory::run(|channel| run(channel, 0, &a), |channel| run(channel, 1, &b));
        for (result, sent) in [one, other] {
            let is_told = matches!(result, Err(Error::NotGiven { .. } | Error::AskedForMore { .. }));
            assert!(is_told, "{result:?}");
            assert!(sent < 150, "{sent} bytes were sent");
        }
    }
    // One asks and gives, the other only gives: they do not agree on who learns.
    let (exchanges, gives) = memory::run(
        |channel| {
            let side = Side::Exchanges(&["name"], &tables[0], Duplicates::Refuse);
            party(channel, &a, side, Security::Malicious).map(|_| ())
        },
        |channel| {
            party(channel, &b, Side::Gives(&tables[1], Duplicates::Refuse), Security::Malicious).map(|_| ())
        },
    );
    for result in [exchanges, gives] {
        assert!(matches!(result, Err(Error::Disagreement { .. })), "{result:?}");
    }
}

/// What goes back is as long as matches are many, which both sides learn.
#[test]
fn views_of_an_exchange_depend_on_sizes_widths_and_matches_alone() {
    let views = |from: u64, cell: u8| {
        let sets = [shuffled(from..from + 500, 1), shuffled(from + 400..from + 1200, 2)];
        let tables = sets.each_ref().map(|set| {
            let mut table = Table::new(["x"]).unwrap();
            for element in 0..set.len() as u32 {
                let length = 1 + (element as usize * cell as usize) % 8;
                table.push(element, [(element % 3 > 0 || cell > 3).then_some(&[cell; 8][..length])]).unwrap();
            }
            table
        });
        let run = |channel: &mut Channel, me: usize| {
            let side = Side::Exchanges(&["x"], &tables[me], Duplicates::Refuse);
            party(channel, &sets[me], side, Security::Malicious).unwrap();
            let stats = channel.stats();
            [stats.bytes_sent, stats.messages_sent, stats.rounds]
        };
        memory::run(|channel| run(channel, 0), |channel| run(channel, 1))
    };
    assert_eq!(views(0, 1), views(7000, 5));
}

#[test]
fn duplicates_are_refused_or_given_as_asked() {
    let (a, b) = (shuffled(0..60, 1), shuffled(20..90, 2));
    let rows = rows(&b, 40, true);
    for duplicates in [Duplicates::First, Duplicates::All] {
        check(&a, &b, &rows, &COLUMNS, (duplicates, Security::Malicious, true));
    }
    let (mut channel, _peer) = memory::pair();
    let table = table(&rows);
    let side = Side::Gives(&table, Duplicates::Refuse);
    let refused = party(&mut channel, &b, side, Security::Malicious);
    assert!(matches!(refused, Err(Error::DuplicateRow)), "{refused:?}");
}

/// A request for a column that is not given ends both sides, before anything but its name has passed.
#[test]
fn columns_that_are_not_given_end_the_run_early() {
    let (a, b) = (shuffled(0..60, 1), shuffled(20..90, 2));
    let table = table(&rows(&b, 40, false));
    for asked in [&["iban"][..], &["name", "iban"], &["Name"], &[""]] {
        let (asker, giver) = memory::run(
            |channel| {
                (party(channel, &a, Side::Asks(asked), Security::Malicious).map(|_| ()), channel.stats())
            },
            |channel| {
                let side = Side::Gives(&table, Duplicates::Refuse);
                (party(channel, &b, side, Security::Malicious).map(|_| ()), channel.stats())
            },
        );
        let all: Vec<String> = asked.iter().map(|name| (*name).to_owned()).collect();
        assert!(matches!(&asker.0, Err(Error::NotGiven { asked }) if *asked == all), "{:?}", asker.0);
        let missing = |name: &str| !COLUMNS.contains(&name) && all.contains(&name.to_owned());
        assert!(
            matches!(&giver.0, Err(Error::AskedForMore { asked, .. }) if missing(asked)),
            "{:?}",
            giver.0
        );
        for (_, stats) in [asker, giver] {
            assert!(stats.bytes_sent < 120, "{} bytes were sent", stats.bytes_sent);
        }
    }
}

/// For one pair of sizes and widths both views have the same numbers of bytes, messages and rounds,
/// whatever the sets and the cells are.
#[test]
fn views_depend_on_sizes_and_widths_alone() {
    let views = |common: u64, cell: u8| {
        let (a, b) = (shuffled(0..900, 1), shuffled(900 - common..1700 - common, 2));
        let mut table = Table::new(["x"]).unwrap();
        for element in 0..b.len() as u32 {
            // Of eight bytes at most, of which at least one.
            let length = 1 + (element as usize * cell as usize) % 8;
            table.push(element, [(element % 3 > 0 || cell > 3).then_some(&[cell; 8][..length])]).unwrap();
        }
        let stats = |channel: &Channel| {
            let stats = channel.stats();
            [stats.bytes_sent, stats.messages_sent, stats.rounds]
        };
        memory::run(
            |channel| {
                party(channel, &a, Side::Asks(&["x"]), Security::Malicious).unwrap();
                stats(channel)
            },
            |channel| {
                party(channel, &b, Side::Gives(&table, Duplicates::Refuse), Security::Malicious).unwrap();
                stats(channel)
            },
        )
    };
    assert_eq!(views(0, 1), views(700, 5));
}

#[test]
fn widths_hide_the_longest_cell_where_they_are_asked_to() {
    let bytes = |longest: usize, width: usize| {
        let (a, b) = (shuffled(0..50, 1), shuffled(0..50, 2));
        let mut table = Table::new(["x"]).unwrap();
        (0..50).for_each(|element| table.push(element, [Some(&vec![7; longest][..])]).unwrap());
        table.widen("x", width).unwrap();
        assert!(matches!(table.widen("y", 9), Err(Error::Usage(_))));
        let (_, sent) = memory::run(
            |channel| party(channel, &a, Side::Asks(&["x"]), Security::SemiHonest).unwrap().1,
            |channel| {
                party(channel, &b, Side::Gives(&table, Duplicates::Refuse), Security::SemiHonest).unwrap();
                channel.stats().bytes_sent
            },
        );
        sent
    };
    assert_eq!(bytes(1, 0), bytes(8, 0));
    assert_eq!(bytes(9, 0) - bytes(8, 0), 8 * 50);
    assert_eq!(bytes(1, 100), bytes(100, 0));
}

/// One of many runs: each gives the layout of all, whatever its own rows are.
#[test]
fn runs_of_one_layout_look_alike_whatever_each_gives() {
    let views = |rows: u32, longest: usize, runs: u32| {
        let (a, b) = (shuffled(0..60, 1), shuffled(30..90, 2));
        let mut table = Table::new(["x"]).unwrap();
        for element in 0..60 {
            (0..=element % rows).for_each(|_| table.push(element, [Some(&vec![7; longest][..])]).unwrap());
        }
        table.widen("x", 100).unwrap();
        table.make_room(5);
        let base = base::default();
        let run = |channel: &mut Channel, set: &Set, side: Side<'_>, learns| {
            let options = Options {
                learns,
                security: Security::Malicious,
                min_peer_elements: 0,
                max_peer_elements: 60,
                base: &*base,
            };
            let (prg, quiet) = (&mut Prg::from_os(), &mut |_, _, _| ());
            let gained =
                payload::collect_one_of(channel, prg, set, side, &Bounds::default(), &options, runs, quiet)
                    .and_then(payload::Collected::open)
                    .unwrap();
            (gained.received, channel.stats().bytes_sent)
        };
        let ((received, asked), (_, given)) = memory::run(
            |channel| run(channel, &a, Side::Asks(&["x"]), Learns::Me),
            |channel| run(channel, &b, Side::Gives(&table, Duplicates::All), Learns::Peer),
        );
        let received = received.unwrap();
        assert_eq!((received.matches.len(), received.unopened), (30, 0));
        for found in &received.matches {
            let element = b.iter().position(|key| *key == a[found.element as usize]).unwrap() as u32;
            assert_eq!(found.rows, vec![vec![Some(vec![7; longest])]; (element % rows) as usize + 1]);
        }
        [asked, given]
    };
    assert_eq!(views(1, 1, 6), views(5, 100, 6));
    // More of them take longer tags and more places, for the same errors in all.
    assert!(views(1, 1, 6)[1] >= views(1, 1, 0)[1]);
}

#[test]
fn usage_errors_come_before_the_first_message() {
    let set = shuffled(0..4, 1);
    let fails = |side: Side<'_>, learns| {
        let (mut channel, _peer) = memory::pair();
        let base = base::default();
        let options = Options {
            learns,
            security: Security::Malicious,
            min_peer_elements: 0,
            max_peer_elements: 9,
            base: &*base,
        };
        let run = payload::run(&mut channel, &mut Prg::from_os(), &set, side, &options, &mut |_, _, _| ());
        assert_eq!(channel.stats().bytes_sent, 0);
        matches!(run, Err(Error::Usage(_)))
    };
    let mut table = Table::new(COLUMNS).unwrap();
    assert!(matches!(table.push(0, [None, None]), Err(Error::Usage(_))));
    assert!(matches!(table.push(0, [None, Some(&vec![0; MAX_SEALED][..]), None]), Err(Error::Usage(_))));
    assert!(fails(Side::Gives(&table, Duplicates::Refuse), Learns::Me));
    assert!(fails(Side::Gives(&table, Duplicates::Refuse), Learns::Both));
    assert!(fails(Side::Exchanges(&["a"], &table, Duplicates::Refuse), Learns::Me));
    assert!(fails(Side::Exchanges(&[], &table, Duplicates::Refuse), Learns::Both));
    table.push(4, [None, None, None]).unwrap();
    assert!(fails(Side::Gives(&table, Duplicates::Refuse), Learns::Peer), "a row of no element");
    assert!(Table::new(["a", "b", "a"]).is_err());
    assert!(fails(Side::Asks(&["a"]), Learns::Peer));
    assert!(fails(Side::Asks(&[]), Learns::Me));
    assert!(fails(Side::Asks(&["a", "a"]), Learns::Me));
    let names: Vec<String> = (0..=MAX_COLUMNS).map(|i| i.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert!(fails(Side::Asks(&names), Learns::Me));
    assert!(fails(Side::Asks(&[&"x".repeat(1 << 17)]), Learns::Me));
}

#[test]
fn too_much_to_give_is_named_on_both_sides() {
    let set = shuffled(0..4, 1);
    let mut table = Table::new(["x"]).unwrap();
    table.push(0, [Some(&vec![0; MAX_SEALED - 9][..])]).unwrap();
    let (asker, giver) = memory::run(
        |channel| party(channel, &set, Side::Asks(&["x"]), Security::Malicious),
        |channel| party(channel, &set, Side::Gives(&table, Duplicates::First), Security::Malicious),
    );
    assert!(matches!(asker, Err(Error::Disagreement { what, .. }) if what.contains("1 MiB per key")));
    assert!(matches!(giver, Err(Error::Usage(what)) if what.contains("1 MiB per key")));
}

/// What the giver announced is heard before it is taken or refused, so that a person sees it in either case.
#[test]
fn an_asker_hears_the_width_before_it_answers() {
    let set = shuffled(0..4, 1);
    let mut table = Table::new(["x"]).unwrap();
    table.push(0, [Some(&[7; 3000][..])]).unwrap();
    for (most, taken) in [(1000, false), (4000, true)] {
        let heard = std::sync::Mutex::new(Vec::new());
        let asker = |channel: &mut Channel| {
            let told = |widths: &payload::Widths| heard.lock().unwrap().push(widths.key);
            let bounds = Bounds { key: most, told: Some(&told), ..Bounds::default() };
            let base = base::default();
            let (learns, security) = (Learns::Me, Security::Malicious);
            let options =
                Options { learns, security, min_peer_elements: 0, max_peer_elements: 1 << 20, base: &*base };
            let (prg, quiet) = (&mut Prg::from_seed(Block::new(1)), &mut |_, _, _| ());
            let side = Side::Asks(&["x"]);
            payload::collect_one_of(channel, prg, &set, side, &bounds, &options, 0, quiet).map(|_| ())
        };
        let giver = |channel: &mut Channel| {
            party(channel, &set, Side::Gives(&table, Duplicates::First), Security::Malicious)
        };
        let (asker, giver) = memory::run(asker, giver);
        assert_eq!((asker.is_ok(), giver.is_ok()), (taken, taken));
        let heard = heard.into_inner().unwrap();
        assert!(heard.len() == 1 && (3000..3100).contains(&heard[0]), "{heard:?}");
    }
}
