//! A proxy between two real processes that flips, drops, truncates, reorders or stalls bytes: every run ends
//! within its deadline, in an error on one line or in the right answer, and leaves no half-written file.

use crate::common::{Bench, Harm, free_port, proxy, wait};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const ROWS: u32 = 200;
const AT_ONCE: usize = 4;

fn table(from: u32) -> String {
    let rows = (from..from + ROWS).map(|i| format!("user{i}@example.com,{i}\n"));
    "email,n\n".to_owned() + &rows.collect::<String>()
}

/// One run through a proxy; returns how many bytes passed in the harmed direction, and whether both sides
/// ended well.
fn run(bench: &Bench, tls: bool, harm: Harm, upstream: bool) -> (u64, bool) {
    for name in ["a-out.csv", "b-out.csv"] {
        let _ = std::fs::remove_file(bench.path(name));
    }
    let port = free_port();
    let (through, passed) = proxy(port, harm, upstream);
    let (at, to) = (format!("127.0.0.1:{port}"), format!("127.0.0.1:{through}"));
    let common = ["--key", "email", "--result", "both", "--timeout", "3", "--connect-timeout", "3"];
    let (mut alice, mut bob) = (vec!["psi", "--listen", &at], vec!["psi", "--connect", &to]);
    if tls {
        alice.extend(["--identity", "alice.key", "--peer", "bob.pub"]);
        bob.extend(["--identity", "bob.key", "--peer", "alice.pub"]);
    } else {
        alice.push("--insecure-plaintext");
        bob.push("--insecure-plaintext");
    }
    alice.extend(["--input", "alice.csv", "--output", "a-out.csv"]);
    bob.extend(["--input", "bob.csv", "--output", "b-out.csv"]);
    alice.extend(common);
    bob.extend(common);
    let (first, second) = (bench.spawn(&alice), bench.spawn(&bob));
    let (second, first) = (wait(second), wait(first));

    let context = format!("{harm:?}, upstream {upstream}, TLS {tls}: {first:?} {second:?}");
    for (said, output, own) in [(&first, "a-out.csv", 0), (&second, "b-out.csv", ROWS / 2)] {
        match said.code {
            0 => {
                let matches = table(ROWS / 2);
                let expected: String = matches
                    .lines()
                    .take(1 + (ROWS / 2) as usize)
                    .map(|line| line.to_owned() + "\n")
                    .collect();
                assert_eq!(bench.read(output), expected, "a wrong answer with own {own}: {context}");
            }
            4 => {
                said.error_line();
                assert!(!bench.exists(output), "an output beside an error: {context}");
            }
            _ => panic!("exit code: {context}"),
        }
    }
    assert!(bench.leftovers().is_empty(), "{context}");
    (passed.load(Ordering::Relaxed), first.code == 0 && second.code == 0)
}

/// A folder with both tables and the keys.
fn tables() -> Bench {
    let bench = Bench::with_keys();
    bench.write("alice.csv", table(0));
    bench.write("bob.csv", table(ROWS / 2));
    bench
}

/// Every harm, several at a time: most runs wait for a timeout.
fn harms(tls: bool) {
    let mut rules = Vec::new();
    for upstream in [true, false] {
        let (total, fine) = run(&tables(), tls, Harm::None, upstream);
        assert!(fine, "without harm the run succeeds");
        // The handshake, the base OTs, the extension, the tags, the end.
        let places = [3, 60, total / 10, total / 3, total * 2 / 3, total - 40];
        for (i, at) in places.into_iter().enumerate() {
            let harm = match i % 3 {
                0 => [Harm::Flip(at), Harm::Truncate(at)],
                1 => [Harm::Drop(at), Harm::Flip(at)],
                _ => [Harm::Reorder(at), Harm::Flip(at)],
            };
            rules.extend(harm.map(|harm| (harm, at, total, upstream)));
        }
        // The timeout ends this one.
        rules.push((Harm::Stall(total / 2), total / 2, total, upstream));
    }
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let bench = tables();
                while let Some(&(harm, at, total, upstream)) = rules.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let (_, fine) = run(&bench, tls, harm, upstream);
                    // Swapping can leave short or even stretches as they were.
                    let changes = !matches!(harm, Harm::Reorder(_));
                    assert!(
                        !(fine && changes && at < total - 200),
                        "{harm:?} at {at} of {total} passed unnoticed"
                    );
                }
            });
        }
    });
}

#[test]
fn over_tls() {
    harms(true);
}

#[test]
fn over_plaintext() {
    harms(false);
}
