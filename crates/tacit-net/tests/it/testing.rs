//! The tests' own tools: the network's faults and time, and rates against bounds.

use std::time::{Duration, Instant};
use tacit_net::testing::{Fault, Network, Outcome, Tally, duel};
use tacit_net::{Channel, Error, Party, Result};

/// Sends 1,000 numbers, and receives as many.
fn exchange(channel: &mut Channel) -> Result<Vec<u64>> {
    for i in 0..1000 {
        channel.send_u64(i)?;
    }
    channel.flush()?;
    (0..1000).map(|_| channel.recv_u64()).collect()
}

fn run(network: &Network) -> [Result<Vec<u64>>; 2] {
    let (a, b) = network.run(exchange, exchange);
    [a, b]
}

#[test]
fn without_faults_everything_arrives() {
    for result in run(&Network::new(1)) {
        assert_eq!(result.unwrap(), (0..1000).collect::<Vec<u64>>());
    }
}

#[test]
fn every_fault_does_what_it_says() {
    let start = Instant::now();
    let struck = |fault| run(&Network::new(1).with(Party::First, 5000, fault));
    let [first, second] = struck(Fault::Delay(Duration::from_secs(100)));
    assert_eq!((first.unwrap().len(), second.unwrap().len()), (1000, 1000), "within the 120 s of idleness");
    let [first, second] = struck(Fault::Delay(Duration::from_secs(130)));
    assert!(first.is_ok() && matches!(second, Err(Error::Timeout { .. })), "{second:?}");
    let [_, second] = struck(Fault::Stall);
    assert!(matches!(second, Err(Error::Timeout { .. })), "{second:?}");
    let [_, second] = struck(Fault::Cut);
    assert!(matches!(second, Err(Error::Lost { .. })), "{second:?}");
    let [first, second] = struck(Fault::Corrupt(4));
    assert!(first.is_ok());
    let wrong = second.unwrap().iter().zip(0..).filter(|(got, i)| *got != i).count();
    assert_eq!(wrong, 1);
    let [_, second] = struck(Fault::Drop(3));
    // What follows stands three bytes too early, the goodbye too.
    let sent: Vec<u64> = (0..1000).collect();
    assert!(second.is_err() || second.as_ref().is_ok_and(|got| *got != sent), "{second:?}");
    assert!(start.elapsed() < Duration::from_secs(20), "minutes of silence took {:?}", start.elapsed());
}

#[test]
fn a_seed_gives_the_same_faults_and_the_same_ends() {
    let start = Instant::now();
    let ends = |seed| run(&Network::faulty(seed, 2, 8000)).map(|end| format!("{end:?}"));
    let mut failed = 0;
    for seed in 0..40 {
        let (one, again) = (Network::faulty(seed, 2, 8000), Network::faulty(seed, 2, 8000));
        assert_eq!(one.strikes(), again.strikes());
        assert_ne!(one.strikes(), Network::faulty(seed + 1, 2, 8000).strikes());
        // After a cut it depends on the threads how far the parties had come.
        if one.strikes().iter().all(|strike| strike.fault != Fault::Cut) {
            let found = ends(seed);
            assert_eq!(found, ends(seed), "{:?}", one.strikes());
            failed += found.iter().any(|end| end.contains("Err")) as u32;
        } else {
            ends(seed);
        }
    }
    assert!(failed > 5, "only {failed} runs failed");
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_silent_cheater_costs_the_honest_party_no_time() {
    let start = Instant::now();
    let (_, honest) = duel(1, |channel| channel.recv_u64(), |channel| channel.recv_u64());
    assert!(matches!(honest, Err(Error::Timeout { .. } | Error::Closed { .. })), "{honest:?}");
    let (_, honest) = duel(2, |_| (), |channel| channel.recv_u64());
    assert!(honest.is_err());
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn rates_are_held_against_bounds() {
    let tally = |won: u64| Tally { caught: 1000 - won, idle: 0, won };
    tally(500).assert_won_at_most(0.5, 0.999);
    tally(500).assert_won_at_least(0.5, 0.999);
    tally(540).assert_won_at_most(0.5, 0.999);
    tally(0).assert_won_at_most(0.0, 0.999);
    tally(1000).assert_won_at_least(1.0, 0.999);
    for (won, bound, most) in [(560, 0.5, true), (1, 0.0, true), (440, 0.5, false), (999, 1.0, false)] {
        let check = move || match most {
            true => tally(won).assert_won_at_most(bound, 0.999),
            false => tally(won).assert_won_at_least(bound, 0.999),
        };
        assert!(std::panic::catch_unwind(check).is_err(), "{won} of 1000 against {bound}");
    }
    let counted = Tally::of(30, |seed| [Outcome::Won, Outcome::Idle, Outcome::Caught][seed as usize % 3]);
    assert_eq!((counted, counted.duels()), (Tally { caught: 10, idle: 10, won: 10 }, 30));
}
