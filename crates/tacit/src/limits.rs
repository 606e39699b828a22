//! What this machine can do at best: the rates that bound every protocol, measured in one thread.
//!
//! A figure of a protocol means something on another machine only beside the limit that binds it there.

use std::hint::black_box;
use std::time::{Duration, Instant};
use tacit_crypto::aes::{self, Aes128};
use tacit_crypto::group::{Points, Scalars};
use tacit_crypto::{Block, Buffer, Prg, gf128};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Sizes of the tables that 16-byte entries are gathered from, in bytes.
pub const GATHER_TABLES: [usize; 5] = [256 * KIB, MIB, 2 * MIB, 8 * MIB, 64 * MIB];
/// Sizes of the copies, in bytes.
pub const COPIES: [usize; 3] = [512 * KIB, 8 * MIB, 512 * MIB];

/// Bytes of the second-level cache of the first core, as Linux tells; `None` where it does not.
pub fn second_level_cache() -> Option<usize> {
    let of = |name: &str| {
        std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index2/{name}")).ok()
    };
    if of("level")?.trim() != "2" {
        return None;
    }
    kibibytes(of("size")?.trim())
}

/// Sizes such as `1024K`, from 64 KiB to 1 GiB.
fn kibibytes(size: &str) -> Option<usize> {
    let kib: usize = size.strip_suffix('K')?.parse().ok()?;
    (64..=1 << 20).contains(&kib).then(|| kib * KIB)
}

/// One operation whose rate bounds protocols.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// AES-128 of a block, the key scheduled once.
    AesFixed,
    /// AES-128 of a block, each with a key schedule of its own.
    AesRekeyed,
    /// A product in GF(2^128) added to a sum, reduced at the end.
    MultiplyAdd,
    /// A 16-byte entry read at random from a table of this many bytes, on huge pages where the system grants
    /// them.
    Gather(usize),
    /// A byte of a copy of this many bytes.
    Copy(usize),
    /// A Ristretto point times a scalar, each point another one.
    PointMultiply,
}

impl Limit {
    /// Every limit, in the order in which they are shown.
    pub fn all() -> Vec<Limit> {
        let mut all = vec![Limit::AesFixed, Limit::AesRekeyed, Limit::MultiplyAdd];
        all.extend(GATHER_TABLES.map(Limit::Gather));
        all.extend(COPIES.map(Limit::Copy));
        all.push(Limit::PointMultiply);
        all
    }

    /// The short name, such as `aes-fixed` or `gather-256KiB`.
    pub fn name(self) -> String {
        match self {
            Limit::AesFixed => "aes-fixed".into(),
            Limit::AesRekeyed => "aes-rekeyed".into(),
            Limit::MultiplyAdd => "gf128-multiply-add".into(),
            Limit::Gather(bytes) => format!("gather-{}", size(bytes)),
            Limit::Copy(bytes) => format!("copy-{}", size(bytes)),
            Limit::PointMultiply => "point-multiply".into(),
        }
    }

    /// What one item is.
    pub const fn unit(self) -> &'static str {
        match self {
            Limit::AesFixed | Limit::AesRekeyed => "block",
            Limit::MultiplyAdd => "product",
            Limit::Gather(_) => "entry",
            Limit::Copy(_) => "byte",
            Limit::PointMultiply => "point",
        }
    }

    /// Bytes that the measurement holds.
    pub const fn memory(self) -> usize {
        match self {
            Limit::Gather(bytes) => bytes + MIB,
            Limit::Copy(bytes) => 2 * bytes,
            _ => MIB,
        }
    }

    /// Times of one item in nanoseconds, of `repeat` samples of at least `each` in time after a warm-up that
    /// is left out; and the number of items in a sample.
    pub fn measure(self, repeat: usize, each: Duration) -> (Vec<f64>, u64) {
        let mut prg = Prg::from_seed(Block::new(1));
        match self {
            Limit::AesFixed => {
                let (cipher, mut blocks) = (Aes128::new(Block::new(7)), blocks(1024, &mut prg));
                sample(repeat, each, 1024, || cipher.encrypt_blocks(black_box(&mut blocks)))
            }
            Limit::AesRekeyed => {
                let (keys, mut blocks) = (blocks(1024, &mut prg), blocks(1024, &mut prg));
                sample(repeat, each, 1024, || aes::encrypt_rekeyed(black_box(&keys), &mut blocks))
            }
            Limit::MultiplyAdd => {
                let (a, b) = (blocks(1024, &mut prg), blocks(1024, &mut prg));
                let mut sum = gf128::Accumulator::new();
                let times = sample(repeat, each, 1024, || sum.add(black_box(&a), black_box(&b)));
                black_box(sum.finish());
                times
            }
            Limit::Gather(bytes) => {
                let entries = bytes / size_of::<Block>();
                let mut table = Buffer::zeros(entries);
                prg.fill_blocks(&mut table);
                let indices: Vec<u32> = (0..1 << 16).map(|_| prg.below(entries as u64) as u32).collect();
                let mut shift = 0;
                sample(repeat, each, indices.len() as u64, || {
                    // Another set of entries every time, or a small part of the table would stay in cache.
                    shift = (shift + 0x9e37_79b9) & (entries - 1);
                    black_box(gather(&table, black_box(&indices), shift as u32));
                })
            }
            Limit::Copy(bytes) => {
                let (source, mut target) = (Buffer::zeros(bytes / 16), Buffer::zeros(bytes / 16));
                sample(repeat, each, bytes as u64, || {
                    black_box(&mut target).copy_from_slice(black_box(&source))
                })
            }
            Limit::PointMultiply => {
                let scalars = Scalars::random(64, &mut prg);
                let mut points = Points::mul_base(&scalars);
                sample(repeat, each, 64, || points = points.mul(black_box(&scalars)))
            }
        }
    }

    /// The median of a short measurement, in nanoseconds an item.
    pub fn quick(self) -> f64 {
        self.median(5, Duration::from_millis(2))
    }

    /// As [`quick`](Self::quick), rougher: some two milliseconds in all.
    pub fn rough(self) -> f64 {
        self.median(3, Duration::from_micros(300))
    }

    fn median(self, repeat: usize, each: Duration) -> f64 {
        let (mut times, _) = self.measure(repeat, each);
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }
}

fn size(bytes: usize) -> String {
    if bytes < MIB { format!("{}KiB", bytes / KIB) } else { format!("{}MiB", bytes / MIB) }
}

fn blocks(n: usize, prg: &mut Prg) -> Vec<Block> {
    let mut blocks = vec![Block::ZERO; n];
    prg.fill_blocks(&mut blocks);
    blocks
}

/// The sum of the entries that `indices` name, each moved on by `shift`; the table's length is a power of
/// two.
fn gather(table: &[Block], indices: &[u32], shift: u32) -> Block {
    let mask = table.len() - 1;
    let mut sums = [Block::ZERO; 8];
    for eight in indices.chunks_exact(8) {
        for (sum, index) in sums.iter_mut().zip(eight) {
            *sum ^= table[(index ^ shift) as usize & mask];
        }
    }
    sums.into_iter().fold(Block::ZERO, |a, b| a ^ b)
}

fn sample(repeat: usize, each: Duration, items: u64, mut work: impl FnMut()) -> (Vec<f64>, u64) {
    work();
    let mut passes = 1u64;
    loop {
        let start = Instant::now();
        (0..passes).for_each(|_| work());
        if start.elapsed() >= each || passes >= 1 << 30 {
            break;
        }
        passes *= 2;
    }
    let count = passes * items;
    let times = (0..repeat.max(1)).map(|_| {
        let start = Instant::now();
        (0..passes).for_each(|_| work());
        start.elapsed().as_secs_f64() * 1e9 / count as f64
    });
    (times.collect(), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_measured_and_named_once() {
        let mut names: Vec<String> = Limit::all().into_iter().map(Limit::name).collect();
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        for limit in [Limit::AesFixed, Limit::AesRekeyed, Limit::MultiplyAdd, Limit::Gather(256 * KIB)] {
            let (times, items) = limit.measure(3, Duration::from_micros(200));
            assert_eq!(times.len(), 3);
            assert!(items >= 1024 && times.iter().all(|t| *t > 0.0 && t.is_finite()), "{limit:?}: {times:?}");
        }
    }

    #[test]
    fn sizes_of_caches() {
        for (said, bytes) in [("1024K", Some(MIB)), ("64K", Some(64 * KIB)), ("2048K", Some(2 * MIB))] {
            assert_eq!(kibibytes(said), bytes);
        }
        for nonsense in ["", "K", "0K", "-1K", "1M", "1024", "18446744073709551615K"] {
            assert_eq!(kibibytes(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn gathers_add_the_entries_they_name() {
        let table: Vec<Block> = (0..16u128).map(|i| Block::new(1 << i)).collect();
        let indices = [0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7];
        assert_eq!(gather(&table, &indices, 0), Block::new(0x7f ^ 0x80));
        assert_eq!(gather(&table, &indices, 8), Block::new(0xff00));
    }
}
