//! PAIR's steps on one thread, in memory: `cargo bench -p tacit-psi --bench pair -- [--count N]`.
//!
//! Prints microseconds an identifier, by the clock and of the processor (on a busy machine the latter counts): hashing
//! with the salt, encrypting, encrypting again, taking a key off, shuffling, and comparing two lists.
//! `TACIT_SIMD=portable` measures without vector kernels.

use std::num::NonZeroUsize;
use std::time::Instant;
use tacit_crypto::group::Encoding;
use tacit_crypto::{Block, Prg};
use tacit_psi::pair::{self, Exponent, Hashed, Key, Role, Salt, common};

fn timed<T>(what: &str, count: usize, work: impl FnOnce() -> T) -> T {
    let (start, before) = (Instant::now(), cpu_ms());
    let made = work();
    let (wall, cpu) = (start.elapsed().as_secs_f64() * 1e3, (cpu_ms() - before) as f64);
    println!("{what:16} {:8.3} µs {:8.3} µs", wall * 1e3 / count as f64, cpu * 1e3 / count as f64);
    made
}

/// CPU time of this process, from /proc, in steps of 10 ms; 0 where there is none.
fn cpu_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    // User and system time are fields 14 and 15 of the line, of which two stand in front.
    let field = |at: usize| after_name.split_whitespace().nth(at).and_then(|field| field.parse::<u64>().ok());
    field(11).zip(field(12)).map_or(0, |(user, system)| (user + system) * 10)
}

fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--count").skip(1);
    let count: usize = arguments.next().map_or(1_000_000, |text| text.parse().expect("a number"));
    tacit_crypto::simd::select_from_env().expect("kernels by name");
    let prg = &mut Prg::from_seed(Block::new(1));
    let salt = Salt::generate(20_785, 30, prg).expect("a salt");
    let key = |role, prg: &mut Prg| Key::generate(role, 20_785, 180, prg).expect("a key");
    let (publisher, advertiser) = (key(Role::Publisher, prg), key(Role::Advertiser, prg));
    let match_keys: Vec<String> = (0..count).map(|number| format!("{number:064x}")).collect();
    let one = NonZeroUsize::MIN;
    println!("{count} identifiers, {}", tacit_crypto::simd::Backend::active().name());
    let hashed: Vec<Hashed> =
        timed("hash", count, || match_keys.iter().map(|key| pair::hash(&salt, key.as_bytes())).collect());
    let mut own: Vec<Encoding> =
        timed("encrypt", count, || Exponent::of(&publisher).encrypt(&hashed, one, &mut |_| ()));
    let mut both = timed("encrypt again", count, || {
        Exponent::of(&advertiser).multiply(&own, one, &mut |_| ()).expect("elements")
    });
    let back = timed("take a key off", count, || {
        Exponent::without(&advertiser).multiply(&both, one, &mut |_| ()).expect("elements")
    });
    assert!(back == own, "a key does not come off");
    timed("shuffle", count, || pair::shuffle(&mut own, prg));
    timed("compare", count, || {
        pair::remove_duplicates(&mut own);
        pair::remove_duplicates(&mut both);
        common(&own, &both).len()
    });
}
