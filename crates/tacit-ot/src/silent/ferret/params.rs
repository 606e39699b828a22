//! Ferret's parameters: LPN sets with regular and with uniform noise, and what follows from them.

use super::cuckoo::{self, HASHES};
use crate::silent::tree::opening::check_cots;
use crate::silent::tree::shape::Shape;
use crate::{Error, Result, Security};
use core::ops::Range;
use tacit_crypto::ggm::LANES;

/// The form's name with regular noise.
pub(super) const REGULAR: &str = "ferret";
/// The form's name with uniform noise.
pub(super) const UNIFORM: &str = "ferret-uni";

/// An LPN parameter set with regular noise: N = t·2^depth samples, a secret of k bits, t noisy positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Params {
    /// The set's name on the command line.
    pub name: &'static str,
    /// Length of the LPN secret.
    pub k: usize,
    /// Number of noisy positions, one in each block of 2^depth.
    pub t: usize,
    /// Depth of a tree.
    pub depth: usize,
    /// Estimated security in bits, four lanes of one iteration sharing a matrix: the least of the attacks
    /// counted in docs/lpn-security.md, that on a 10-local matrix included.
    pub security_bits: u32,
}

/// Sets below this protect nobody: no session takes them and nothing reports them as secure.
pub const LEAST_SECURITY_BITS: u32 = 128;

impl Params {
    /// About 10^7 correlations an iteration, the least traffic.
    // proof: ferret 5.1
    pub const A: Params = Params { name: "a", k: 31 << 15, t: 1360, depth: 13, security_bits: 137 };
    /// About 10^6 an iteration.
    pub const B: Params = Params { name: "b", k: 1 << 17, t: 1200, depth: 10, security_bits: 138 };
    /// Small requests, and the setup of larger sets.
    pub const C: Params = Params { name: "c", k: 1 << 16, t: 1180, depth: 9, security_bits: 136 };
    /// Fast on a LAN: 4 bits a correlation.
    pub const D: Params = Params { name: "d", k: 1 << 15, t: 1080, depth: 8, security_bits: 136 };
    /// Fastest: 7 bits a correlation.
    pub const E: Params = Params { name: "e", k: 9 << 11, t: 2100, depth: 7, security_bits: 136 };
    /// The main iteration of the paper's table 2. For measuring alone: A is 10-local, which the paper does
    /// not count.
    pub const PAPER: Params = Params { name: "paper", k: 589_760, t: 1319, depth: 13, security_bits: 90 };
    /// The setup iteration of the paper's table 2, for measuring alone. k is raised from 36,288, which gives
    /// 127 bits only even against what the paper counts, and N to whole trees, for which k = 37,888 would
    /// give 127 again.
    pub const PAPER_SETUP: Params =
        Params { name: "paper-setup", k: 39_936, t: 1269, depth: 9, security_bits: 88 };

    /// For one iteration of 85,000 correlations: from nothing, the least time and traffic.
    pub const F: Params = Params { name: "f", k: 9 << 10, t: 1640, depth: 6, security_bits: 139 };
    /// For one of 143,000.
    pub const G: Params = Params { name: "g", k: 19 << 9, t: 2640, depth: 6, security_bits: 137 };
    /// Sets for a session that makes one iteration or few and knows how many correlations it takes:
    /// [`Config::choose_exactly`] alone takes them.
    pub const SHORT: [Params; 2] = [Self::F, Self::G];

    /// Every set that a session may use, by name.
    pub const ALL: [Params; 5] = [Self::A, Self::B, Self::C, Self::D, Self::E];
    /// Sets that reproduce the paper's tables and protect nobody: for [measuring](Self::for_measuring) alone.
    pub const PAPERS: [Params; 2] = [Self::PAPER, Self::PAPER_SETUP];

    /// The set called `name` among [`ALL`](Self::ALL).
    pub fn by_name(name: &str) -> Option<Params> {
        Self::ALL.into_iter().find(|p| p.name == name)
    }

    /// The set called `name` among all there are, [the papers'](Self::PAPERS) included.
    pub fn for_measuring(name: &str) -> Option<Params> {
        Self::ALL.into_iter().chain(Self::PAPERS).find(|p| p.name == name)
    }

    /// N, the LPN samples of one iteration.
    pub const fn samples(&self) -> usize {
        self.t << self.depth
    }
}

/// How many iterations run in lockstep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lanes {
    /// One at a time: least latency, for small requests.
    One,
    /// Four, interleaved: most throughput.
    Four,
}

impl Lanes {
    /// The number of lanes.
    pub const fn count(self) -> usize {
        match self {
            Lanes::One => 1,
            Lanes::Four => LANES,
        }
    }
}

/// What both parties must agree on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The LPN parameters.
    pub params: Params,
    /// Iterations in lockstep.
    pub lanes: Lanes,
    /// Whether the consistency check runs.
    pub security: Security,
}

impl Config {
    /// What a run with these parameters protects against; `None` if the set has too few bits for any peer.
    pub fn protects(&self) -> Option<Security> {
        (self.params.security_bits >= LEAST_SECURITY_BITS).then_some(self.security)
    }

    pub(super) fn shape(&self) -> Shape {
        let trees = self.params.t * self.lanes.count();
        Shape { tiles: trees.div_ceil(LANES), depth: self.params.depth }
    }

    /// The shape of the trees of `iterations` iterations together.
    pub(super) fn shape_of(&self, iterations: usize) -> Result<Shape> {
        let shape = self.shape();
        let usable = iterations > 0 && iterations.saturating_mul(shape.cots()) <= 1 << 28;
        if !usable {
            return Err(Error::Usage {
                protocol: REGULAR,
                what: "no such number of iterations can be made ahead",
            });
        }
        Ok(Shape { tiles: shape.tiles * iterations, ..shape })
    }

    pub(super) fn secret(&self) -> usize {
        self.params.k * self.lanes.count()
    }

    /// Bytes on the wire of an iteration, the check apart.
    pub(super) fn tree_bytes(&self) -> usize {
        self.shape().bytes()
    }

    /// Correlations that a setup consumes, and that every iteration keeps for the next.
    pub fn reserve(&self) -> usize {
        (self.secret() + self.shape().cots() + check_cots(self.security)).next_multiple_of(self.lanes.count())
    }

    /// Correlations that an iteration (of all lanes) makes for the caller.
    pub fn net(&self) -> usize {
        self.params.samples() * self.lanes.count() - self.reserve()
    }

    /// Correlations that a setup of `iterations` iterations ahead consumes.
    pub(crate) fn reserve_ahead(&self, iterations: usize) -> usize {
        self.secret() + self.shape().cots() * iterations + check_cots(self.security)
    }

    /// Correlations that `iterations` iterations made ahead give in all.
    pub fn total_ahead(&self, iterations: usize) -> usize {
        iterations * self.params.samples() * self.lanes.count() - iterations.saturating_sub(1) * self.secret()
    }

    pub(super) fn validate(&self) -> Result<()> {
        let p = &self.params;
        let usable = p.t > 0 && (2..=24).contains(&p.depth) && p.k > 0 && p.k <= 1 << 31;
        if !usable || self.params.samples() * self.lanes.count() <= self.reserve() {
            return Err(Error::Usage { protocol: REGULAR, what: "the parameter set makes no correlations" });
        }
        Ok(())
    }
}

/// An LPN parameter set with uniform noise: m·q samples, a secret of k bits, t noisy positions in m buckets,
/// all of them for each lane.
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
    /// Depth of a bucket's tree: 3·⌈q / 2^level⌉ + 1 leaves at least under a node of level `level`.
    pub depth: usize,
    /// The outputs are made in 2^level ranges.
    pub level: usize,
    /// Iterations in lockstep, with one partition in buckets and one code.
    pub lanes: Lanes,
    /// Estimated security in bits, all lanes of one iteration sharing a matrix.
    pub security_bits: u32,
}

impl UniParams {
    /// About 10^7 correlations an iteration, the least traffic.
    pub const MAIN: UniParams = UniParams {
        name: "main",
        k: 15 << 16,
        t: 1324,
        m: 1986,
        q: 5346,
        depth: 14,
        level: 7,
        lanes: Lanes::One,
        security_bits: 137,
    };
    /// Less computing for more bits a correlation: about 10^7 an iteration.
    pub const A: UniParams = UniParams {
        name: "a",
        k: 1 << 18,
        t: 1360,
        m: 2080,
        q: 1344,
        depth: 12,
        level: 6,
        lanes: Lanes::Four,
        security_bits: 137,
    };
    /// The least computing: half of that an iteration.
    pub const B: UniParams = UniParams {
        name: "b",
        k: 33 << 12,
        t: 1360,
        m: 2080,
        q: 672,
        depth: 11,
        level: 5,
        lanes: Lanes::Four,
        security_bits: 139,
    };
    /// The setup of the larger sets.
    pub const SETUP: UniParams = UniParams {
        name: "setup",
        k: 1 << 16,
        t: 1254,
        m: 1881,
        q: 327,
        depth: 10,
        level: 4,
        lanes: Lanes::One,
        security_bits: 142,
    };
    /// The main iteration of the paper's table 2, for measuring alone: A is 10-local, which the paper does
    /// not count.
    pub const PAPER: UniParams = UniParams { name: "paper", k: 588_160, security_bits: 92, ..Self::MAIN };
    /// The setup iteration of the paper's table 2, for measuring alone.
    pub const PAPER_SETUP: UniParams =
        UniParams { name: "paper-setup", k: 37_248, security_bits: 87, ..Self::SETUP };

    /// Every set that a session may use.
    pub const ALL: [UniParams; 4] = [Self::MAIN, Self::A, Self::B, Self::SETUP];
    /// Sets that reproduce the paper's tables and protect nobody: for [measuring](Self::for_measuring) alone.
    pub const PAPERS: [UniParams; 2] = [Self::PAPER, Self::PAPER_SETUP];

    /// The set called `name` among [`ALL`](Self::ALL).
    pub fn by_name(name: &str) -> Option<UniParams> {
        Self::ALL.into_iter().find(|p| p.name == name)
    }

    /// The set called `name` among all there are, [the papers'](Self::PAPERS) included.
    pub fn for_measuring(name: &str) -> Option<UniParams> {
        Self::ALL.into_iter().chain(Self::PAPERS).find(|p| p.name == name)
    }

    /// N, the LPN samples of an iteration of one lane.
    pub const fn samples(&self) -> usize {
        self.m * self.q
    }

    /// Blocks of the LPN secrets of all lanes.
    pub(super) const fn secret(&self) -> usize {
        self.k * self.lanes.count()
    }

    /// Blocks of all samples with the same b.
    pub(super) const fn row(&self) -> usize {
        self.m * self.lanes.count()
    }

    /// Values of b in a range.
    pub(super) const fn width(&self) -> usize {
        cuckoo::width(self.q, self.level)
    }

    /// Ranges that are not empty.
    pub(super) const fn ranges(&self) -> usize {
        self.q.div_ceil(self.width())
    }

    /// Where range `r` stands, in blocks: sample by sample, lane by lane.
    pub(super) fn range(&self, r: usize) -> Range<usize> {
        let end = |r: usize| self.row() * self.q.min(r * self.width());
        end(r)..end(r + 1)
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
    /// What a run with these parameters protects against; `None` if the set has too few bits for any peer.
    pub fn protects(&self) -> Option<Security> {
        (self.params.security_bits >= LEAST_SECURITY_BITS).then_some(self.security)
    }

    pub(super) fn shape(&self) -> Shape {
        Shape { tiles: self.params.row().div_ceil(LANES), depth: self.params.depth }
    }

    /// Bytes on the wire of an iteration, the check apart.
    pub(super) fn tree_bytes(&self) -> usize {
        self.shape().bytes()
    }

    /// Correlations that a setup consumes, and that every iteration keeps for the next.
    pub fn reserve(&self) -> usize {
        self.params.secret() + self.shape().cots() + check_cots(self.security)
    }

    /// Correlations that an iteration makes for the caller.
    pub fn net(&self) -> usize {
        (self.params.row() * self.params.q).saturating_sub(self.reserve())
    }

    /// The first ranges, as many as hold what is kept for the next iteration.
    pub(super) fn kept_ranges(&self) -> usize {
        self.reserve().div_ceil(self.params.range(0).len())
    }

    /// The blocks of these ranges; those after the reserve are for the caller.
    pub(super) fn kept(&self) -> usize {
        self.params.range(self.kept_ranges() - 1).end
    }

    pub(super) fn validate(&self) -> Result<()> {
        let p = &self.params;
        let sane = p.t > 0
            && (2..=24).contains(&p.depth)
            && (1..=1 << 31).contains(&p.k)
            && (LANES..1 << 24).contains(&p.m)
            && (1..=1 << 16).contains(&p.q)
            && (1..=p.depth).contains(&p.level);
        if !sane || p.m < p.t || HASHES * p.width() >= 1 << (p.depth - p.level) || self.net() == 0 {
            return Err(Error::Usage { protocol: UNIFORM, what: "the parameter set makes no correlations" });
        }
        Ok(())
    }
}
