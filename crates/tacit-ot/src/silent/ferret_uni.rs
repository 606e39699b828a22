//! Ferret-Uni: Ferret under LPN with uniform noise (Yang–Weng–Lan–Zhang–Wang 2020/924, figures 7 and 9).
//!
//! - **Realises** random correlated OT with a fixed Δ, against semi-honest or malicious parties, in the random-oracle and
//!   ideal-permutation models, under LPN with uniform noise, a weaker assumption than the regular noise of `ferret`;
//!   for malicious security with static leakage, here through the cuckoo mapping.
//! - **MPCOT**: the t noisy positions are placed by cuckoo hashing in m = 1.5·t buckets of a public partition with three
//!   functions; each bucket is a single-point correlated OT with one slot more, for buckets that stay empty.
//! - **Rounds and bytes**: an iteration takes two messages, four with the check; 16·m·(depth − 1) bytes from the sender.
//! - **Memory**: the whole noise vector, 16 bytes a sample: 170 MB with the main set, 22 MB with set B.
//!
//! Deviations from the paper: those of `spcot`; functions that make buckets of one size (see `cuckoo`), and the number
//! of samples cut to a multiple of m; positions that find no place are drawn anew (probability at most 2^-40).

use super::cuckoo::{Buckets, HASHES};
use super::ferret::{Spent, checked_delta};
use super::half_tree::HalfTrees;
use super::spcot::{self, Check, Shape, Trees};
use crate::{CotReceiver, CotSender, Error, Result, Security};
use tacit_crypto::ggm::LANES;
use tacit_crypto::lpn::LocalCode;
use tacit_crypto::simd::{Backend, scatter};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, Buffer, KAPPA, Prg};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

const NAME: &str = "ferret-uni";
/// Rows that are finished at a time, while they are in cache.
const ROWS: usize = 2048;

/// An LPN parameter set with uniform noise: m·q samples, a secret of k bits, t noisy positions in m buckets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UniParams {
    /// The set's name on the command line.
    pub name: &'static str,
    /// Length of the LPN secret.
    pub k: usize,
    /// Number of noisy positions.
    pub t: usize,
    /// Number of buckets.
    pub m: usize,
    /// Positions of a bucket by each function.
    pub q: usize,
    /// Depth of a bucket's tree: 3·q + 1 leaves at least.
    pub depth: usize,
    /// Estimated security in bits.
    pub security_bits: u32,
}

impl UniParams {
    /// The main iteration of the paper's table 2.
    pub const MAIN: UniParams =
        UniParams { name: "main", k: 588_160, t: 1324, m: 1986, q: 5345, depth: 14, security_bits: 154 };
    /// Less computing for more bits a correlation: a secret and noise that fit into smaller caches.
    pub const B: UniParams =
        UniParams { name: "b", k: 1 << 17, t: 660, m: 1000, q: 1365, depth: 12, security_bits: 133 };
    /// The setup iteration of the paper's table 2.
    pub const SETUP: UniParams =
        UniParams { name: "setup", k: 37_248, t: 1254, m: 1881, q: 327, depth: 10, security_bits: 143 };

    /// Every set.
    pub const ALL: [UniParams; 3] = [Self::MAIN, Self::B, Self::SETUP];

    /// N, the LPN samples of an iteration.
    pub const fn samples(&self) -> usize {
        self.m * self.q
    }
}

/// What both parties must agree on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UniConfig {
    /// The LPN parameters.
    pub params: UniParams,
    /// Whether the consistency check runs.
    pub security: Security,
}

impl UniConfig {
    fn shape(&self) -> Shape {
        Shape { tiles: self.params.m.div_ceil(LANES), depth: self.params.depth }
    }

    fn check_cots(&self) -> usize {
        match self.security {
            Security::SemiHonest => 0,
            Security::Malicious => KAPPA,
        }
    }

    /// Bytes on the wire of an iteration, the check apart.
    pub(super) fn tree_bytes(&self) -> usize {
        self.shape().bytes()
    }

    /// Correlations that a setup consumes, and that every iteration keeps for the next.
    pub fn reserve(&self) -> usize {
        self.params.k + self.shape().cots() + self.check_cots()
    }

    /// Correlations that an iteration makes for the caller.
    pub fn net(&self) -> usize {
        self.params.samples().saturating_sub(self.reserve())
    }

    fn validate(&self) -> Result<()> {
        let p = &self.params;
        let sane = p.t > 0
            && (2..=24).contains(&p.depth)
            && (1..=1 << 31).contains(&p.k)
            && (LANES..1 << 24).contains(&p.m)
            && (1..1 << 24).contains(&p.q);
        if !sane || p.m < p.t || HASHES * p.q >= 1 << p.depth || self.net() == 0 {
            return Err(Error::Usage { protocol: NAME, what: "the parameter set makes no correlations" });
        }
        Ok(())
    }
}

/// What both parties do alike.
struct Core {
    config: UniConfig,
    context: Transcript,
    expander: HalfTrees,
    code: LocalCode,
    buckets: Buckets,
    /// f_i(b) of every i and b.
    offsets: [Vec<u32>; HASHES],
    /// What the last iteration kept, and what this one does.
    current: Buffer,
    kept: Buffer,
    /// The sum of the trees, b by b, with A·u in the first `encoded` rows; from `row` on still to be served, and zero
    /// before.
    noise: Buffer,
    encoded: usize,
    row: usize,
    round: u64,
    spent: Spent,
}

impl Core {
    fn new(config: UniConfig, channel: &Channel, seeds: [Block; 2], reserve: Buffer) -> Self {
        let p = config.params;
        let mut context = Transcript::new("tacit ferret-uni v2");
        context.append("session", &channel.session_id().0);
        context.append_blocks("seeds", &seeds);
        for (label, value) in [("k", p.k), ("t", p.t), ("m", p.m), ("q", p.q), ("depth", p.depth)] {
            context.append_u64(label, value as u64);
        }
        context.append_u64("malicious", (config.security == Security::Malicious) as u64);
        let matrix = context.challenge_block("matrix");
        let tree = context.challenge_block("tree");
        let buckets = Buckets::new(context.challenge_block("buckets"), p.m, p.q);
        Core {
            config,
            context,
            expander: HalfTrees::new(p.depth, tree),
            code: LocalCode::new(matrix, p.k),
            offsets: core::array::from_fn(|i| {
                (0..p.q as u64).map(|b| buckets.offsets(b)[i] as u32).collect()
            }),
            buckets,
            current: Buffer::zeros(reserve.len()),
            kept: reserve,
            noise: Buffer::zeros(p.samples()),
            encoded: 0,
            row: p.samples(),
            round: 0,
            spent: Spent::default(),
        }
    }

    fn begin(&mut self) -> (Zeroizing<Vec<Block>>, Zeroizing<Vec<Block>>) {
        std::mem::swap(&mut self.current, &mut self.kept);
        self.round += 1;
        self.encoded = 0;
        let (trees, check) = self.current[self.config.params.k..].split_at(self.config.shape().cots());
        (Zeroizing::new(trees.to_vec()), Zeroizing::new(check.to_vec()))
    }

    /// Figure 7, the last step: v[x] = Σ_i s_i[x's place], bucket by bucket, for one group of trees, weighed for the check.
    fn add_group(&mut self, trees: &dyn Trees, group: usize, mut check: Option<&mut Check>) {
        let Core { expander, noise, offsets, config, .. } = self;
        trees.expand(expander, group, &mut |tile, leaves| {
            if let Some(check) = &mut check {
                check.add(tile, leaves);
            }
            spread(&config.params, offsets, tile, leaves, noise);
        });
    }

    /// The check of the iteration at work, for malicious security.
    fn check(&self) -> Option<Check> {
        let malicious = self.config.security == Security::Malicious;
        malicious.then(|| Check::new(&self.context, self.round, self.config.shape()))
    }

    /// Figure 9, step 5, begins with A·u until `bytes` bytes of the peer's are there: it needs no tree.
    fn encode_while_waiting(&mut self, channel: &mut Channel, bytes: usize) -> Result<()> {
        let secret = &self.current[..self.config.params.k];
        while self.encoded < self.noise.len() && !channel.has_come(bytes)? {
            let end = self.noise.len().min(self.encoded + ROWS);
            self.code.add_rows(self.encoded as u64, secret, 1, &mut self.noise[self.encoded..end]);
            self.encoded = end;
        }
        Ok(())
    }

    /// After the check: what the next iteration needs is put aside first.
    fn passed(&mut self) {
        self.row = 0;
        let mut kept = std::mem::replace(&mut self.kept, Buffer::zeros(0));
        self.serve(&mut kept);
        self.kept = kept;
    }

    /// Figure 9, step 5: noise and A·u, as far as `out` and the iteration reach; returns how many.
    fn serve(&mut self, out: &mut [Block]) -> usize {
        let n = out.len().min(self.noise.len() - self.row);
        for rows in out[..n].chunks_mut(ROWS) {
            let noise = &mut self.noise[self.row..self.row + rows.len()];
            rows.copy_from_slice(noise);
            noise.zeroize();
            let secret = &self.current[..self.config.params.k];
            let done = self.encoded.saturating_sub(self.row).min(rows.len());
            self.code.add_rows((self.row + done) as u64, secret, 1, &mut rows[done..]);
            self.row += rows.len();
        }
        n
    }

    /// Fails for good, with all streams of the setup: nothing provisional stays anywhere.
    fn fail(&mut self, out: &mut [Block]) {
        self.spent.set();
        self.row = self.noise.len();
        self.noise.zeroize();
        self.kept.zeroize();
        self.current.zeroize();
        out.zeroize();
    }
}

/// Adds the leaves of four buckets to the positions that they stand for: neighbours, but for the turn at m.
fn spread(
    params: &UniParams,
    offsets: &[Vec<u32>; HASHES],
    tile: usize,
    leaves: &mut [Block],
    noise: &mut [Block],
) {
    let UniParams { m, q, .. } = *params;
    let first = tile * LANES;
    let lines = leaves.as_chunks_mut::<LANES>().0;
    // Trees that only fill up the last tile stand for nothing.
    for line in lines.iter_mut().filter(|_| m - first < LANES) {
        line[m - first..].fill(Block::ZERO);
    }
    for (i, offsets) in offsets.iter().enumerate() {
        scatter::add_lines(Backend::active(), noise, m, first, offsets, &lines[i * q..][..q]);
    }
}

/// The sender, who holds Δ.
pub struct FerretUniSender {
    core: Core,
    delta: Block,
    prg: Prg,
}

/// The receiver, whose choice bits are random.
pub struct FerretUniReceiver {
    core: Core,
    prg: Prg,
}

impl FerretUniSender {
    /// Sets up from `config.reserve()` correlations of `source`, whose Δ stays.
    ///
    /// Errors: those of the link and of `source`; `Usage` when Δ has bit 0 clear.
    pub fn setup(
        channel: &mut Channel,
        mut prg: Prg,
        config: UniConfig,
        source: &mut dyn CotSender,
    ) -> Result<Self> {
        config.validate()?;
        let delta = checked_delta(source)?;
        let mut reserve = Buffer::zeros(config.reserve());
        source.extend(channel, &mut reserve)?;
        let mine = prg.block();
        channel.send_block(mine)?;
        let theirs = channel.recv_block()?;
        Ok(FerretUniSender { core: Core::new(config, channel, [mine, theirs], reserve), delta, prg })
    }

    /// Ties this stream to `other`: when one fails, both are spent.
    pub(super) fn tie(&mut self, other: &Self) {
        self.core.spent = other.core.spent.clone();
    }

    /// One iteration. The trees that are expanded for their corrections give the noise and the check's sum.
    fn iterate(&mut self, channel: &mut Channel) -> Result<()> {
        let shape = self.core.config.shape();
        let (cots, check_cots) = self.core.begin();
        self.core.encode_while_waiting(channel, shape.cots().div_ceil(8))?;
        let mut check = self.core.check();
        let Core { expander, noise, offsets, config, .. } = &mut self.core;
        let mut each = |tile: usize, leaves: &mut [Block]| {
            spread(&config.params, offsets, tile, leaves, noise);
        };
        let prg = &mut self.prg;
        spcot::send_each(channel, prg, expander, self.delta, shape, &cots, check.as_mut(), &mut each)?;
        if let Some(check) = check {
            self.core.encode_while_waiting(channel, Check::OPENING)?;
            check.answer(channel, self.delta, &check_cots)?;
        }
        self.core.passed();
        Ok(())
    }
}

impl FerretUniReceiver {
    /// Sets up from `config.reserve()` correlations of `source`.
    pub fn setup(
        channel: &mut Channel,
        mut prg: Prg,
        config: UniConfig,
        source: &mut dyn CotReceiver,
    ) -> Result<Self> {
        config.validate()?;
        let mut reserve = Buffer::zeros(config.reserve());
        source.extend(channel, &mut reserve)?;
        let mine = prg.block();
        channel.send_block(mine)?;
        let theirs = channel.recv_block()?;
        Ok(FerretUniReceiver { core: Core::new(config, channel, [theirs, mine], reserve), prg })
    }

    /// Ties this stream to `other`: when one fails, both are spent.
    pub(super) fn tie(&mut self, other: &Self) {
        self.core.spent = other.core.spent.clone();
    }

    /// Figure 7, steps 1 to 3: t uniform positions, placed; the punctured leaf of every bucket's tree.
    fn points(&mut self) -> Vec<u32> {
        let (t, trees) = (self.core.config.params.t, self.core.config.shape().tiles * LANES);
        loop {
            let positions = self.core.buckets.draw(&mut self.prg, t);
            if let Some(mut leaves) = self.core.buckets.insert(&mut self.prg, &positions) {
                // Trees that only fill up the last tile.
                leaves.resize(trees, 0);
                return leaves;
            }
        }
    }

    /// One iteration. Trees are expanded as their corrections come, for the noise and the check together.
    fn iterate(&mut self, channel: &mut Channel) -> Result<()> {
        let shape = self.core.config.shape();
        let (cots, check_cots) = self.core.begin();
        let points = self.points();
        let mut trees = spcot::choose_points(channel, points, shape, &cots)?;
        let mut check = self.core.check();
        self.core.encode_while_waiting(channel, size_of::<Block>())?;
        trees.receive_seed(channel, &cots, check.as_mut())?;
        for group in 0..shape.groups() {
            let bytes = size_of::<Block>() * shape.corrections_in(group);
            self.core.encode_while_waiting(channel, bytes)?;
            trees.receive_group(channel, group, check.as_mut())?;
            self.core.add_group(&trees, group, check.as_mut());
        }
        if let Some(check) = check {
            check.open(channel, &check_cots)?;
            self.core.encode_while_waiting(channel, spcot::DIGEST)?;
            check.verify(channel, NAME, &check_cots)?;
        }
        self.core.passed();
        Ok(())
    }
}

macro_rules! extend {
    () => {
        /// Serves what is left of the last iteration first.
        fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
            self.core.spent.check(NAME)?;
            let mut filled = self.core.serve(out);
            while filled < out.len() {
                if let Err(error) = self.iterate(channel) {
                    self.core.fail(out);
                    return Err(error);
                }
                filled += self.core.serve(&mut out[filled..]);
            }
            Ok(())
        }
    };
}

impl CotSender for FerretUniSender {
    fn delta(&self) -> Block {
        self.delta
    }

    extend!();
}

impl CotReceiver for FerretUniReceiver {
    extend!();
}

#[cfg(test)]
mod tests {
    use super::super::ferret::dealer::Dealer;
    use super::super::spcot::cheat::Caught;
    use super::*;
    use tacit_net::{LinkModel, memory};

    const TINY: UniParams =
        UniParams { name: "tiny", k: 256, t: 26, m: 39, q: 40, depth: 7, security_bits: 0 };

    fn correlate(config: UniConfig, sizes: &[usize]) {
        correlate_over(LinkModel::LOOPBACK, config, sizes);
    }

    fn correlate_over(link: LinkModel, config: UniConfig, sizes: &[usize]) {
        let (mut ds, mut dr) = Dealer::pair(11);
        let delta = ds.delta();
        macro_rules! party {
            ($type:ident, $seed:expr, $dealer:ident) => {
                |ch| {
                    let prg = Prg::from_seed(Block::new($seed));
                    let mut p = $type::setup(ch, prg, config, &mut $dealer).unwrap();
                    let mut all = Vec::new();
                    for &n in sizes {
                        let mut out = vec![Block::ONES; n];
                        p.extend(ch, &mut out).unwrap();
                        all.extend(out);
                    }
                    all
                }
            };
        }
        let (v, w) = memory::run_over(link, party!(FerretUniSender, 1, ds), party!(FerretUniReceiver, 2, dr));
        assert_eq!(v.len(), sizes.iter().sum::<usize>());
        for (i, (v, w)) in v.iter().zip(&w).enumerate() {
            assert!(!v.lsb(), "bit 0 of v[{i}]");
            assert!(*w == *v ^ (delta & Block::mask(w.lsb())), "correlation {i}");
        }
        let ones = w.iter().filter(|w| w.lsb()).count() as f64;
        let deviation = (ones - v.len() as f64 / 2.0).abs() / (v.len() as f64 / 4.0).sqrt();
        assert!(v.len() < 10_000 || deviation < 6.0, "choice bits are off balance by {deviation}");
    }

    #[test]
    fn tiny_iterations() {
        for security in [Security::SemiHonest, Security::Malicious] {
            let config = UniConfig { params: TINY, security };
            correlate(config, &[0, 1, 2, 100, config.net(), 3, 10 * config.net() + 17, 5000]);
        }
    }

    #[test]
    fn what_is_encoded_while_waiting_is_right() {
        for (delay, megabits) in [(3000, 1e6), (0, 20.0), (200, 100.0)] {
            let link = LinkModel::new(megabits, std::time::Duration::from_micros(delay)).unwrap();
            for security in [Security::SemiHonest, Security::Malicious] {
                let config = UniConfig { params: TINY, security };
                correlate_over(link, config, &[1, config.net(), 100, 3 * config.net() + 17]);
            }
        }
    }

    #[test]
    fn shipped_sets() {
        let sizes: &[(UniParams, &[usize])] = &[
            (UniParams::SETUP, &[1, 1000, 1_000_001]),
            (UniParams::B, &[1, 1_000_001, 1_500_000]),
            (UniParams::MAIN, &[1, 1_000_001]),
        ];
        for (params, sizes) in sizes {
            correlate(UniConfig { params: *params, security: Security::Malicious }, sizes);
        }
    }

    /// The noise has weight t, and stands where the receiver put it: nowhere else do the two sums differ.
    #[test]
    fn noise_is_of_weight_t_at_every_round() {
        let config = UniConfig { params: TINY, security: Security::Malicious };
        let (mut ds, mut dr) = Dealer::pair(12);
        let delta = ds.delta();
        let (v, w) = memory::run(
            |ch| {
                let prg = Prg::from_seed(Block::new(1));
                let mut s = FerretUniSender::setup(ch, prg, config, &mut ds).unwrap();
                let shape = config.shape();
                let (cots, _) = s.core.begin();
                let trees = spcot::send(ch, &mut s.prg, &mut s.core.expander, s.delta, shape, &cots).unwrap();
                accumulate(&mut s.core, &trees);
                s.core.noise.to_vec()
            },
            |ch| {
                let prg = Prg::from_seed(Block::new(2));
                let mut r = FerretUniReceiver::setup(ch, prg, config, &mut dr).unwrap();
                let (cots, _) = r.core.begin();
                let points = r.points();
                let mut trees = spcot::choose_points(ch, points, config.shape(), &cots).unwrap();
                trees.receive(ch, &cots).unwrap();
                accumulate(&mut r.core, &trees);
                r.core.noise.to_vec()
            },
        );
        let noisy: Vec<_> = v.iter().zip(&w).filter(|(v, w)| v != w).collect();
        assert_eq!(noisy.len(), TINY.t);
        assert!(noisy.iter().all(|(v, w)| **w == **v ^ delta));
    }

    fn accumulate(core: &mut Core, trees: &dyn Trees) {
        (0..trees.shape().groups()).for_each(|group| core.add_group(trees, group, None));
    }

    /// A sender that gives a bucket the tree of another one: every run is caught, and nothing is put out.
    #[test]
    fn a_wrong_cuckoo_bucket_is_caught() {
        let config = UniConfig { params: TINY, security: Security::Malicious };
        for seed in 0..40 {
            let (mut ds, mut dr) = Dealer::pair(100 + seed);
            let (_, (result, out)) = memory::run(
                |ch| -> Result<()> {
                    let prg = Prg::from_seed(Block::new(seed));
                    let mut s = FerretUniSender::setup(ch, prg, config, &mut ds)?;
                    let shape = config.shape();
                    let (cots, check_cots) = s.core.begin();
                    let mut check = s.core.check().expect("malicious");
                    let expander = &mut s.core.expander;
                    let message = Caught::honest(ch, &mut s.prg, expander, s.delta, shape, &cots)?;
                    let mut corrections = message.corrections.clone();
                    // What unmasks one bucket's corrections is put on another's: buckets `seed % 39` and the next.
                    let place = |tree: usize, level| {
                        (tree / LANES * (shape.depth - 1) + level - 1) * LANES + tree % LANES
                    };
                    let one = seed as usize % TINY.m;
                    let other = (one + 1) % TINY.m;
                    for level in 1..shape.depth {
                        let (x, y) = (place(one, level), place(other, level));
                        let masks = cots[shape.cot(one, level)] ^ cots[shape.cot(other, level)];
                        corrections.swap(x, y);
                        corrections[x] ^= masks;
                        corrections[y] ^= masks;
                    }
                    message.send(ch, &corrections)?;
                    message.weigh(expander, &corrections, &mut check, &|_, _| {});
                    check.answer(ch, s.delta, &check_cots)
                },
                |ch| {
                    let prg = Prg::from_seed(Block::new(!seed));
                    let mut r = FerretUniReceiver::setup(ch, prg, config, &mut dr).unwrap();
                    let mut out = vec![Block::ONES; 10];
                    let result = r.extend(ch, &mut out);
                    assert!(matches!(r.extend(ch, &mut [Block::ONES]), Err(Error::Spent(_))));
                    (result, out)
                },
            );
            assert!(matches!(result, Err(Error::Cheated { .. })), "{result:?}");
            assert!(out.iter().all(|b| *b == Block::ZERO), "provisional outputs were left behind");
        }
    }
}
