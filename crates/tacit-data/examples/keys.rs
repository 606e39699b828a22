//! What normalising a key costs, type by type: `cargo run --release -p tacit-data --example keys`.

use std::time::Instant;
use tacit_data::keys::KeyType;
use tacit_data::records::Normalisation;

const ROUNDS: usize = 200_000;

fn main() {
    let cases: [(&str, &[&str]); 14] = [
        ("text", &["ann.lee@example.org", " Ann LEE ", "K-0012345"]),
        ("text", &["Jürgen Müller", "Sørensen", "ÉLODIE"]),
        ("text:nfkc", &["Ann Lee", "ANN  LEE", "K-0012345"]),
        ("text:nfkc", &["ＡＮＮ Ｌｅｅ", "Jürgen\u{200b} Müller", "ﬁ"]),
        ("email", &["Ann.Lee@Example.org", "bob@example.com"]),
        ("email", &["info@müller.de", "müller@example.org"]),
        ("phone:NL", &["06-12345678", "+31 (0)6 1234 5678"]),
        ("date:DMY", &["31.01.2024", "2024-01-31"]),
        ("int", &["0012345", "-7"]),
        ("uuid", &["550E8400-E29B-41D4-A716-446655440000"]),
        ("name", &["Anna-Lena O'Neil", "Smith"]),
        ("name", &["Jürgen Müller", "García Márquez"]),
        ("postcode:NL", &["1012 AB", "NL-1012ab"]),
        ("email:sha256", &["Ann.Lee@Example.org", "bob@example.com"]),
    ];
    for (name, values) in cases {
        let Some(kind) = KeyType::named(name) else { continue };
        let mut best = f64::INFINITY;
        let mut out = String::new();
        for _ in 0..5 {
            let start = Instant::now();
            for _ in 0..ROUNDS {
                for value in values {
                    out.clear();
                    let done =
                        kind.normalise(Normalisation::default(), std::hint::black_box(value), &mut out);
                    std::hint::black_box((&out, done.is_ok()));
                }
            }
            best = best.min(start.elapsed().as_secs_f64() * 1e9 / (ROUNDS * values.len()) as f64);
        }
        let script = if values.iter().all(|value| value.is_ascii()) { "ASCII" } else { "other" };
        println!("{name:<14} {script:<6} {best:8.1} ns");
    }
}
