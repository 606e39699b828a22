//! The clustered store's shapes and the bounds on their failure:
//! `cargo run -p tacit-psi --example store_shapes`.

use tacit_psi::okvs::{Store, clustered::Shape};

fn main() {
    for log in [4, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28] {
        let shape = Shape::for_keys(1 << log).expect("a size in range");
        println!("| 2^{log} | {} | {:.4} | 2^{:.1} |", shape.bins(), shape.expansion(), shape.failure_log2());
    }
}
