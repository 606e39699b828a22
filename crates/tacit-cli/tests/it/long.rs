//! Functions too large to hold, between two real processes: the right result, in bounded memory.
#![cfg(target_os = "linux")]

use crate::common::{Bench, free_port, peak_kibibytes, wait};
use serde_json::Value;
use std::thread;

/// Kibibytes that a process may have at its peak, however many gates there are.
const MOST: u64 = 300 << 10;

/// Runs `function` by `protocol`; what both sides say, and the larger peak in kibibytes.
fn run(function: &str, inputs: [&str; 2], more: &[&str]) -> (Value, u64) {
    let bench = Bench::with_keys();
    let address = format!("127.0.0.1:{}", free_port());
    let side = |mode, role, key, peer, input| {
        let words = ["--json", "eval", function, mode, &address, "--role", role, "--input", input];
        let words = [&words[..], &["--identity", key, "--peer", peer, "--progress-lines"], more].concat();
        let child = bench.spawn(&words);
        let id = child.id();
        (thread::spawn(move || wait(child)), thread::spawn(move || peak_kibibytes(id)))
    };
    let sides = [
        side("--listen", "garbler", "alice.key", "bob.pub", inputs[0]),
        side("--connect", "evaluator", "bob.key", "alice.pub", inputs[1]),
    ];
    let mut peak = 0;
    let said = sides.map(|(said, largest)| {
        peak = peak.max(largest.join().unwrap());
        said.join().unwrap()
    });
    let objects = said.map(|said| {
        assert!(said.err.contains("progress evaluating"), "no progress: {said:?}");
        serde_json::from_str::<Value>(said.success()).unwrap()
    });
    assert_eq!(objects[0]["decimals"], objects[1]["decimals"]);
    assert_eq!(objects[0]["mode"], "streamed");
    (objects[0].clone(), peak)
}

/// base^exponent modulo 2^128 − c, by plain doubling and adding.
fn power(base: u128, exponent: u128, c: u128) -> u128 {
    let modulus = 0u128.wrapping_sub(c);
    let add = |x: u128, y: u128| {
        let (sum, over) = x.overflowing_add(y);
        if over || sum >= modulus { sum.wrapping_sub(modulus) } else { sum }
    };
    let mul = |x: u128, y: u128| {
        (0..128).rev().fold(0, |sum, i| {
            let twice = add(sum, sum);
            if y >> i & 1 == 1 { add(twice, x) } else { twice }
        })
    };
    (0..128).rev().fold(1, |power, i| {
        let square = mul(power, power);
        if exponent >> i & 1 == 1 { mul(square, base) } else { square }
    })
}

#[test]
fn an_exponentiation_too_large_to_hold_gives_what_plain_arithmetic_gives() {
    let (base, exponent) =
        (0x0123_4567_89ab_cdef_0fed_cba9_8765_4321u128, 0xfeed_beef_dead_0001_8000_0000_0000_0007);
    let inputs = [base.to_string(), exponent.to_string()];
    // Named, as a machine with much else to do makes a slow link of its own loopback.
    let by = ["--protocol", "authenticated"];
    let (said, peak) = run("modexp128", inputs.each_ref().map(String::as_str), &by);
    assert_eq!(said["decimals"][0], power(base, exponent, 159).to_string());
    assert_eq!(said["protocol"], "authenticated");
    let ands = said["and"].as_u64().unwrap();
    assert!(ands > 5_000_000, "{said}");
    // A circuit of so many gates alone would take more.
    assert!(peak < MOST, "{peak} KiB");
}

#[test]
fn the_other_protocols_stream_too() {
    let long: &[(&str, &[&str])] = &[
        ("modexp96", &["--security", "semi-honest"]),
        #[cfg(feature = "long-tests")]
        ("modexp96", &["--protocol", "wmk17"]),
    ];
    for (function, more) in long {
        let (said, peak) = run(function, ["2", "100"], more);
        // 2^96 − 17 is prime, so 2^100 = 16·17 modulo it.
        assert_eq!(said["decimals"][0], "272", "{more:?}");
        assert!(peak < MOST, "{more:?}: {peak} KiB");
    }
}

#[cfg(feature = "long-tests")]
#[test]
fn larger_ones_keep_to_the_same_memory() {
    let (said, peak) = run("modexp256", ["3", "5"], &["--protocol", "authenticated"]);
    assert_eq!(said["decimals"][0], "243");
    assert!(peak < MOST, "{peak} KiB");
    let numbers = |odd: u32| {
        (0..4096u32).map(|i| (2 * (i * 2_654_435 % 4096) + odd).to_string()).collect::<Vec<_>>().join(",")
    };
    let (said, peak) = run("sort8192", [&numbers(0), &numbers(1)], &["--protocol", "authenticated"]);
    let sorted: Vec<u32> =
        said["decimals"][0].as_str().unwrap().split(',').map(|n| n.parse().unwrap()).collect();
    assert!(sorted.windows(2).all(|pair| pair[0] <= pair[1]) && sorted.len() == 8192);
    assert!(peak < MOST, "{peak} KiB");
}

#[test]
fn what_they_cost_is_told_and_what_they_cannot_do_is_refused() {
    let bench = Bench::with_keys();
    let said = bench.run(&["--json", "eval", "modexp1024", "--dry-run", "--link", "lan"]);
    let told: Value = serde_json::from_str(said.success()).unwrap();
    assert!((3_000_000_000..3_100_000_000).contains(&told["and"].as_u64().unwrap()), "{told}");
    assert_eq!((&told["protocol"], &told["streamed"]), (&"authenticated".into(), &true.into()));
    for what in ["estimated_ms", "garbler_bytes", "memory_bytes", "candidates"] {
        assert!(!told[what].is_null(), "{what}: {told}");
    }
    assert!(told["memory_bytes"].as_u64().unwrap() < 1 << 30, "{told}");
    let text = bench.run(&["eval", "modexp2048", "--dry-run"]);
    assert!(text.success().contains("AND gates, made while it runs"), "{text:?}");
    let list = bench.run(&["eval", "--list"]);
    assert!(list.success().contains("modexp1024") && list.out.contains("sort65536"), "{list:?}");
    let one =
        ["--role", "garbler", "--listen", "127.0.0.1:1", "--identity", "alice.key", "--peer", "bob.pub"];
    for (more, word) in [
        (&["--batch", "--input", "x.csv"][..], "--batch"),
        (&["--offline", "x"], "--offline"),
        (&["--copies", "44"], "--copies"),
        (&["--threads", "2"], "--threads"),
        (&["--protocol", "yao"], "--protocol"),
    ] {
        bench.run(&[&["eval", "modexp128"], &one[..], more].concat()).fails_with(2, &[word]);
    }
    bench
        .run(&[&["eval", "modexp128"], &one[..], &["--input", "0x1,2"]].concat())
        .fails_with(3, &["--input"]);
    bench.run(&["eval", "modexp130", "--dry-run"]).fails_with(2, &["modexp130"]);
    bench.run(&["circuit", "stats", "modexp128"]).fails_with(2, &["modexp128", "too large to hold"]);
}
