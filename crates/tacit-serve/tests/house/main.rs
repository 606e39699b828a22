//! One seed replays the house: services, those who ask them, two parties with a pool and two gateways, in one process.
//!
//! A seed draws a [schedule](schedule::schedule): requests, restarts, other policies, clocks that jump, lines that break,
//! disks that fail and machines that lose what was not synced. What [`after`] holds is read from the files that are
//! left. `TACIT_HOUSE=17..18` runs that seed, whose schedule a failure prints.
//!
//! The disk is `tools/disk/disk.c`, loaded before everything else, so this test has a process to itself, which starts no
//! other: the test starts itself anew, with that library.

mod after;
mod disk;
mod gateways;
mod pools;
mod schedule;
mod town;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Seeds of `make test`, and of the long tests.
const USUAL: Range<u64> = 0..200;
const LONG: Range<u64> = 0..100_000;
/// They wait more than they compute.
const AT_ONCE: usize = 24;
/// No seed takes longer, on however slow a machine.
const PATIENCE: Duration = Duration::from_secs(300);

fn seeds() -> Range<u64> {
    let asked = std::env::var("TACIT_HOUSE").ok();
    let asked = asked.as_deref().and_then(|text| text.split_once(".."));
    let usual = if std::env::var_os("TACIT_LONG").is_some() { LONG } else { USUAL };
    asked.map_or(usual, |(from, to)| from.parse().unwrap()..to.parse().unwrap())
}

#[test]
fn one_seed_replays_the_house() {
    if !disk::is_here() {
        return disk::start_anew("one_seed_replays_the_house");
    }
    let (seeds, kept) = (seeds(), town::Kept::new());
    let (next, failed, over) = (AtomicU64::new(seeds.start), Mutex::new(Vec::new()), AtomicBool::new(false));
    let running: Mutex<Vec<(u64, Instant)>> = Mutex::default();
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let work = || {
            while let Some(seed) = Some(next.fetch_add(1, Ordering::SeqCst)).filter(|seed| *seed < seeds.end)
            {
                running.lock().unwrap().push((seed, Instant::now()));
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| town::run(seed, &kept))) {
                    let words = panic.downcast_ref::<String>().map(String::as_str);
                    let words = words.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
                    println!("seed {seed}: {words}\n  {:?}", schedule::schedule(seed));
                    failed.lock().unwrap().push(seed);
                }
                running.lock().unwrap().retain(|(other, _)| *other != seed);
            }
        };
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(50));
                if let Some((seed, _)) =
                    running.lock().unwrap().iter().find(|(_, start)| start.elapsed() > PATIENCE)
                {
                    println!("seed {seed} does not end\n  {:?}", schedule::schedule(*seed));
                    std::process::abort();
                }
            }
        });
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        over.store(true, Ordering::SeqCst);
    });
    let failed = failed.into_inner().unwrap();
    println!("{seeds:?}: {} s, {}", begin.elapsed().as_secs(), kept.counts());
    assert!(failed.is_empty(), "seeds {failed:?}");
}

#[test]
fn a_seed_gives_one_schedule() {
    let drawn: Vec<_> = (0..100).map(schedule::schedule).collect();
    assert_eq!(format!("{drawn:?}"), format!("{:?}", (0..100).map(schedule::schedule).collect::<Vec<_>>()));
    assert!(drawn.iter().all(|events| (5..=10).contains(&events.len())));
}
