//! How often a bin of the clustered store cannot be solved:
//! `cargo run --release -p tacit-psi --example store_failures -- KEYS TRIALS RATIO...`, the ratio of sparse
//! slots to keys.
//!
//! Prints for each ratio the share of trials with a large core (stuck peeling), and of those with more gaps
//! than 0, 1, 2, ….

use tacit_crypto::{Block, Prg};
use tacit_psi::okvs::clustered::Shape;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().and_then(|argument| argument.parse::<f64>().ok());
    let (Some(keys), Some(trials)) = (next(), next()) else {
        eprintln!("usage: store_failures KEYS TRIALS RATIO...");
        std::process::exit(2);
    };
    let mut prg = Prg::from_os();
    let mut set = vec![Block::ZERO; keys as usize];
    while let Some(ratio) = next() {
        let third = (keys * ratio / 3.0).ceil() as u32;
        let shape = Shape::custom(set.len(), 1, third, 16).expect("a shape");
        let mut gaps = vec![0u64; 100];
        for _ in 0..trials as u64 {
            prg.fill_blocks(&mut set);
            gaps[shape.gaps(&set).map_or(99, |gaps| gaps.min(98))] += 1;
        }
        let more = |than: usize| gaps[than + 1..].iter().sum::<u64>() as f64 / trials;
        let bits: Vec<String> = (0..12).map(|than| format!("{:.2}", -more(than).log2())).collect();
        println!(
            "{keys} keys, ratio {:.4}: -log2 of more gaps than 0, 1, …: {}",
            3.0 * third as f64 / keys,
            bits.join(" ")
        );
    }
}
