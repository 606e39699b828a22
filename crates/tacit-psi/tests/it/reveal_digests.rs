//! What payload and circuit PSI write on the wire and return, with fixed seeds, against a recorded
//! baseline. After a change that is meant, the new lines stand in the failure's message.

use crate::common::{Dealer, prg};
use crate::wire;
use tacit_crypto::Block;
use tacit_net::{Channel, Party};
use tacit_ot::Security;
use tacit_psi::circuit::{self, Aggregate, Column, Of, Reveal};
use tacit_psi::paxos::{Learns, Options};
use tacit_psi::payload::{self, Duplicates, Side, Table};
use tacit_psi::sorted;

type Set = Vec<[u8; 8]>;

fn options<'a>(learns: Learns, security: Security, base: &'a Dealer) -> Options<'a> {
    Options { learns, security, min_peer_elements: 0, max_peer_elements: 1 << 20, base }
}

/// A party's set and its generator: half of the smaller set is common.
fn party(channel: &Channel, sizes: [u64; 2]) -> (Set, tacit_crypto::Prg) {
    let common = sizes[0].min(sizes[1]) / 2;
    let first = channel.party() == Party::First;
    let range = if first { 0..sizes[0] } else { sizes[0] - common..sizes[0] - common + sizes[1] };
    (range.map(u64::to_le_bytes).collect(), prg(2 + !first as u128))
}

fn given(security: Security, duplicates: Duplicates, sizes: [u64; 2]) -> String {
    let asks = |channel: &mut Channel| {
        let (set, mut prg) = party(channel, sizes);
        let options = options(Learns::Me, security, &Dealer(1));
        let side = Side::Asks(&["b"]);
        let gained = payload::run(channel, &mut prg, &set, side, &options, &mut |_, _, _| ());
        let received = gained.expect("both are honest").received.expect("this side asked");
        let rows = |found: &payload::Match| {
            let cells = found.rows.iter().flatten().flat_map(|cell| cell.clone().unwrap_or_default());
            found.element.to_le_bytes().into_iter().chain(cells).collect::<Vec<u8>>()
        };
        Ok(received.matches.iter().flat_map(rows).collect())
    };
    let gives = |channel: &mut Channel| {
        let (set, mut prg) = party(channel, sizes);
        let mut table = Table::new(["a", "b"]).expect("two names");
        for element in 0..set.len() as u32 {
            for row in 0..1 + element % 2 * (duplicates == Duplicates::All) as u32 {
                let cell = [element as u8, row as u8, 7];
                table.push(element, [None, Some(&cell[..])]).expect("two cells");
            }
        }
        let options = options(Learns::Peer, security, &Dealer(1));
        let side = Side::Gives(&table, duplicates);
        let gained = payload::run(channel, &mut prg, &set, side, &options, &mut |_, _, _| ());
        Ok(gained.expect("both are honest").peer_elements.to_le_bytes().to_vec())
    };
    let name = format!("payload {security:?} {duplicates:?} {}x{}", sizes[0], sizes[1]);
    wire::line(&name, asks, gives)
}

fn exchanged(security: Security, sizes: [u64; 2]) -> String {
    let side = |channel: &mut Channel| {
        let (set, mut prg) = party(channel, sizes);
        let mut table = Table::new(["a", "b"]).expect("two names");
        for element in 0..set.len() as u32 {
            table.push(element, [None, Some(&[element as u8, 7][..])]).expect("two cells");
        }
        let options = options(Learns::Both, security, &Dealer(1));
        let side = Side::Exchanges(&["b"], &table, Duplicates::Refuse);
        let gained = payload::run(channel, &mut prg, &set, side, &options, &mut |_, _, _| ());
        let received = gained.expect("both are honest").received.expect("both ask");
        let rows = |found: &payload::Match| {
            let cells = found.rows.iter().flatten().flat_map(|cell| cell.clone().unwrap_or_default());
            found.element.to_le_bytes().into_iter().chain(cells).collect::<Vec<u8>>()
        };
        Ok(received.matches.iter().flat_map(rows).collect())
    };
    wire::line(&format!("payload {security:?} both ways {}x{}", sizes[0], sizes[1]), side, side)
}

fn aggregated(name: &str, learns: [Learns; 2], min_matches: u64, sizes: [u64; 2]) -> String {
    aggregated_against(Security::SemiHonest, name, learns, min_matches, sizes)
}

fn aggregated_against(
    security: Security,
    name: &str,
    learns: [Learns; 2],
    min_matches: u64,
    sizes: [u64; 2],
) -> String {
    let aggregate = match security {
        Security::SemiHonest => circuit::aggregate,
        Security::Malicious => sorted::aggregate,
    };
    let side = |channel: &mut Channel| {
        let (set, mut prg) = party(channel, sizes);
        let mut column = Column::new(set.len());
        for element in 0..set.len() as u32 {
            column.add(element, Some(i64::from(element) - 100)).expect("an element of the set");
        }
        let me = (channel.party() == Party::Second) as usize;
        let of = if me == 0 { Of::Mine(&column) } else { Of::Peers };
        let reveal = match name {
            "count" => Reveal::Count,
            "sum" => Reveal::Sum(of),
            _ => Reveal::Mean(of),
        };
        let options = options(learns[me], security, &Dealer(1));
        let progress = &mut |_, _, _| ();
        let run = aggregate(channel, &mut prg, &set, reveal, min_matches.into(), &options, progress);
        Ok(match run.expect("both are honest").result {
            None => vec![0],
            Some(Aggregate::Withheld) => vec![1],
            Some(Aggregate::Count(count)) => count.to_le_bytes().to_vec(),
            Some(Aggregate::Sum(sum)) => sum.to_le_bytes().to_vec(),
            Some(Aggregate::Mean { sum, rows }) => [&sum.to_le_bytes()[..], &rows.to_le_bytes()].concat(),
        })
    };
    let kind = if security == Security::Malicious { format!("sorted {name}") } else { name.to_owned() };
    wire::line(&format!("{kind} {:?} least {min_matches} {}x{}", learns[0], sizes[0], sizes[1]), side, side)
}

fn shared(gives: bool, sizes: [u64; 2]) -> String {
    let side = |channel: &mut Channel| {
        let (set, mut prg) = party(channel, sizes);
        let values: Vec<Block> = (0..set.len()).map(|i| Block::new(i as u128)).collect();
        let options = options(Learns::Both, Security::SemiHonest, &Dealer(1));
        let (values, progress) = (gives.then_some(&values[..]), &mut |_, _, _| ());
        let shares = circuit::shares(channel, &mut prg, &set, values, &options, progress);
        let shares = shares.expect("both are honest");
        let parts = [
            shares.members.as_bytes(),
            Block::as_bytes(&shares.table_values),
            Block::as_bytes(&shares.other_values),
        ];
        Ok(parts.concat())
    };
    wire::line(
        &format!("shares {} {}x{}", if gives { "with numbers" } else { "alone" }, sizes[0], sizes[1]),
        side,
        side,
    )
}

#[test]
fn wire_and_outputs_are_as_recorded() {
    let mut lines = String::new();
    for security in [Security::SemiHonest, Security::Malicious] {
        for duplicates in [Duplicates::Refuse, Duplicates::All] {
            lines += &given(security, duplicates, [300, 200]);
        }
        lines += &exchanged(security, [300, 200]);
    }
    let both = [Learns::Both; 2];
    for name in ["count", "sum", "mean"] {
        lines += &aggregated(name, both, 0, [300, 200]);
        lines += &aggregated(name, [Learns::Me, Learns::Peer], 101, [300, 200]);
        lines += &aggregated(name, [Learns::Peer, Learns::Me], 100, [200, 300]);
    }
    // By Ferret's correlations.
    lines += &aggregated("sum", both, 10, [4_000, 5_000]);
    for gives in [false, true] {
        lines += &shared(gives, [300, 200]);
    }
    let strict = Security::Malicious;
    lines += &aggregated_against(strict, "count", [Learns::Me, Learns::Peer], 3, [20, 9]);
    lines += &aggregated_against(strict, "sum", both, 5, [9, 20]);
    lines += &aggregated_against(strict, "mean", [Learns::Peer, Learns::Me], 0, [17, 16]);
    let recorded = include_str!("../reveal.digests");
    assert!(lines == recorded, "the wire or the outputs changed; all lines now:\n{lines}");
}
