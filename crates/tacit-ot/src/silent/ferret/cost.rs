//! The choice of Ferret's parameters, and what an iteration and a setup cost.

use super::params::{Config, Lanes, Params, UniConfig, UniParams};
use crate::Security;
use crate::extension::kos;
use tacit_net::LinkModel;

/// The cache that [`Config::choose`] is given where the two parties have not agreed on another: both must
/// choose alike.
pub const CACHE: usize = 1 << 20;

/// Reserves up to this come straight from KOS: a smaller Ferret would cost as much.
const DIRECT: usize = 160_000;
/// Reserves above this, that of set A by one lane, are worth four lanes of the small set.
const WIDE: usize = 1_100_000;

/// ns a correlation by the LPN table's size over the cache, measured: one lane and four. The sets of today
/// were measured beside those before them, on one machine in turn; what the older ones took on the reference
/// machine is scaled by that.
const ONE_LANE: [(f64, f64); 6] =
    [(0.28, 13.0), (0.5, 13.4), (1.0, 13.7), (2.0, 13.9), (8.0, 15.5), (15.5, 23.6)];
const FOUR_LANES: [(f64, f64); 6] =
    [(1.1, 8.4), (2.0, 8.0), (4.0, 7.4), (8.0, 7.4), (32.0, 15.5), (62.0, 20.5)];
/// ns a correlation of the short KOS that sets a Ferret up (a long one takes less), and a leaf of a tree that
/// is only expanded.
const SETUP_COT_NS: f64 = 13.0;
const LEAF_NS: f64 = 3.0;
const SETUP_COT_BYTES: f64 = 15.94;
/// Round trips in which the parties exchange the seeds of a Ferret.
const SEEDS_TRIPS: f64 = 1.0;
/// ns a sample of uniform noise by the size of an iteration's samples over the cache: placing the noise,
/// which weighs less in larger iterations and more with four lanes, and two runs over the trees.
const UNI_NOISE: [(f64, f64); 4] = [(9.4, 14.3), (85.0, 12.5), (162.0, 8.5), (170.6, 10.5)];
/// The part of it that no message overlaps with: placing comes before the first one, the second run after the
/// last tree.
const UNI_ALONE: f64 = 0.8;

impl Config {
    /// The set and the lanes that make `count` correlations soonest on `link`, setup included, where each
    /// party has `cache` bytes of second-level cache to itself.
    ///
    /// The estimate takes the longer of computing (from measured figures) and the iterations' bytes over the
    /// link's rate, and adds the setup's bytes and the rounds' delays. It is public arithmetic, so that both
    /// parties reach the same from the same arguments.
    pub fn choose(count: u64, security: Security, link: &LinkModel, cache: usize) -> Config {
        let sets = [Params::E, Params::D, Params::C, Params::B, Params::A];
        let configs = sets.into_iter().flat_map(|params| Config::both_lanes(params, security));
        Self::soonest(configs, count, link, cache)
    }

    /// As [`choose`](Self::choose), for a session that takes `count` correlations and no more: the sets for
    /// [short](Params::SHORT) ones are among those compared.
    pub fn choose_exactly(count: u64, security: Security, link: &LinkModel, cache: usize) -> Config {
        let short = Params::SHORT.into_iter().map(|params| Config { params, lanes: Lanes::One, security });
        let any = Self::choose(count, security, link, cache);
        Self::soonest(std::iter::once(any).chain(short), count, link, cache)
    }

    /// The lanes that make `count` correlations soonest with the set `params`.
    pub fn with_set(
        params: Params,
        count: u64,
        security: Security,
        link: &LinkModel,
        cache: usize,
    ) -> Config {
        Self::soonest(Self::both_lanes(params, security).into_iter(), count, link, cache)
    }

    fn both_lanes(params: Params, security: Security) -> [Config; 2] {
        [Lanes::One, Lanes::Four].map(|lanes| Config { params, lanes, security })
    }

    fn soonest(configs: impl Iterator<Item = Config>, count: u64, link: &LinkModel, cache: usize) -> Config {
        least(configs, |config| config.cost(count, 1, cache).seconds(link)).unwrap_or(Config::DEFAULT)
    }

    const DEFAULT: Config = Config { params: Params::D, lanes: Lanes::Four, security: Security::Malicious };

    /// The fewest iterations that give `count` correlations when made ahead.
    pub fn iterations_ahead(&self, count: u64) -> usize {
        let net = self.total_ahead(2) - self.total_ahead(1);
        1 + (count as usize).saturating_sub(self.total_ahead(1)).div_ceil(net)
    }

    /// What one of `streams` streams costs for `count` correlations of its own, with its share of their
    /// common setup.
    ///
    /// The base OTs are not in it. Each stream's setup follows the other's, so it holds the time of all of
    /// them.
    pub fn cost(&self, count: u64, streams: usize, cache: usize) -> Cost {
        let setups = streams.max(1) as f64 * self.reserve() as f64;
        let mut cost = match self.small(streams) {
            None => Cost::of_source(setups, self.security),
            Some(small) => {
                let iterations = (setups / small.net() as f64).ceil();
                let mut cost = Cost::of_source(small.reserve() as f64, self.security);
                cost.trips += SEEDS_TRIPS;
                cost.add(setups * small.ns(cache), iterations, small.tree_bytes(), small.security);
                cost
            }
        };
        cost.share_setup(streams);
        let iterations = count.div_ceil(self.net() as u64) as f64;
        let unused = iterations * self.net() as f64 - count as f64;
        let ns = count as f64 * self.ns(cache) + unused * LEAF_NS;
        cost.add(ns, iterations, self.tree_bytes(), self.security);
        cost
    }

    fn ns(&self, cache: usize) -> f64 {
        ns_by_table(self.params.k, self.lanes, cache)
    }

    /// The smaller Ferret from which `streams` setups take their correlations, if they do not take them from
    /// KOS.
    pub fn small(&self, streams: usize) -> Option<Config> {
        self.small_for(self.reserve().saturating_mul(streams))
    }

    /// [`small`](Self::small) of setups that make `iterations` ahead.
    pub(super) fn small_ahead(&self, streams: usize, iterations: usize) -> Option<Config> {
        self.small_for(self.reserve_ahead(iterations).saturating_mul(streams))
    }

    /// [`small`](Self::small) for `need` correlations.
    fn small_for(&self, need: usize) -> Option<Config> {
        let lanes = match need {
            need if need <= DIRECT => return None,
            need if need <= WIDE => Lanes::One,
            _ => Lanes::Four,
        };
        Some(Config { params: Params::C, lanes, security: self.security })
    }
}

/// An estimate: computing on the machine that the curves above were measured on, both directions' bytes, and
/// how often one party waits for the other, in round trips.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    /// Nanoseconds of computing, one side's.
    pub ns: f64,
    /// Those of them in which no bytes pass.
    pub alone: f64,
    /// Bytes that the parties wait for, in both directions together.
    pub awaited: f64,
    /// Bytes that pass while both compute.
    pub streamed: f64,
    /// Round trips.
    pub trips: f64,
}

impl Cost {
    /// `n` correlations by KOS, or by IKNP where the peer is semi-honest.
    pub(crate) fn of_extension(n: f64, security: Security) -> Cost {
        let trips = match security {
            Security::SemiHonest => 0.5,
            Security::Malicious => 1.5,
        };
        Cost { ns: n * SETUP_COT_NS, alone: 0.0, awaited: n * SETUP_COT_BYTES, streamed: 0.0, trips }
    }

    /// `n` correlations for a setup or for silent OT: KOS takes one message there.
    pub fn of_source(n: f64, security: Security) -> Cost {
        let cost = Cost::of_extension(n, security);
        match security {
            Security::SemiHonest => cost,
            Security::Malicious => {
                Cost { awaited: kos::bytes_by_hash(n as usize) as f64, trips: 0.5, ..cost }
            }
        }
    }

    /// Estimated time on `link`.
    fn seconds(&self, link: &LinkModel) -> f64 {
        let pass = |bytes: f64| bytes * 8e-6 / link.megabits();
        ((self.ns - self.alone) * 1e-9).max(pass(self.streamed))
            + self.alone * 1e-9
            + pass(self.awaited)
            + self.trips * 2.0 * link.delay().as_secs_f64()
    }

    /// What is there so far is the setup of `streams` streams, of which each bears its share of bytes.
    fn share_setup(&mut self, streams: usize) {
        let streams = streams.max(1) as f64;
        self.awaited = (self.awaited + std::mem::take(&mut self.streamed)) / streams;
        self.trips += SEEDS_TRIPS * streams;
    }

    /// `iterations` with trees of `tree_bytes`.
    fn add(&mut self, ns: f64, iterations: f64, tree_bytes: usize, security: Security) {
        self.ns += ns;
        self.streamed += iterations * tree_bytes as f64;
        self.trips += iterations
            * match security {
                Security::SemiHonest => 1.0,
                Security::Malicious => 2.0,
            };
    }
}

/// That of `configs` which takes the least time.
fn least<C: Copy>(configs: impl Iterator<Item = C>, seconds: impl Fn(&C) -> f64) -> Option<C> {
    let timed = configs.map(|config| (seconds(&config), config));
    timed.reduce(|best, next| if next.0 < best.0 { next } else { best }).map(|(_, config)| config)
}

/// ns a correlation of Ferret whose secrets have `k` bits.
fn ns_by_table(k: usize, lanes: Lanes, cache: usize) -> f64 {
    let table = (k * lanes.count() * size_of::<tacit_crypto::Block>()) as f64;
    let curve = match lanes {
        Lanes::One => ONE_LANE,
        Lanes::Four => FOUR_LANES,
    };
    interpolate(&curve, table / cache.max(1) as f64)
}

fn interpolate(curve: &[(f64, f64)], x: f64) -> f64 {
    let (first, last) = (curve[0], curve[curve.len() - 1]);
    if x <= first.0 {
        return first.1;
    }
    let between = curve.windows(2).find(|pair| x <= pair[1].0);
    between.map_or(last.1 * (x / last.0).min(2.0), |pair| {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    })
}

impl UniConfig {
    /// The set that makes `count` correlations soonest on `link`, as [`Config::choose`].
    pub fn choose(count: u64, security: Security, link: &LinkModel, cache: usize) -> UniConfig {
        let configs = UniParams::ALL.into_iter().map(|params| UniConfig { params, security });
        least(configs, |config| config.cost(count, 1, cache).seconds(link))
            .unwrap_or(UniConfig { params: UniParams::B, security })
    }

    /// The smaller Ferret-Uni from which the main set's setup takes its correlations.
    pub fn small(&self, _streams: usize) -> Option<UniConfig> {
        (self.reserve() > DIRECT).then_some(UniConfig { params: UniParams::SETUP, security: self.security })
    }

    /// As [`Config::cost`].
    pub fn cost(&self, count: u64, streams: usize, cache: usize) -> Cost {
        let setups = streams.max(1) as f64 * self.reserve() as f64;
        let mut cost = match self.small(streams) {
            None => Cost::of_source(setups, self.security),
            Some(small) => {
                let mut cost = Cost::of_source(small.reserve() as f64, self.security);
                cost.trips += SEEDS_TRIPS;
                small.add_to(&mut cost, setups, cache);
                cost
            }
        };
        cost.share_setup(streams);
        self.add_to(&mut cost, count as f64, cache);
        cost
    }

    /// An iteration's first run over the trees is for all of its samples; the second one and the code are for
    /// what is wanted, and for what is kept.
    fn add_to(&self, cost: &mut Cost, count: f64, cache: usize) {
        let iterations = (count / self.net() as f64).ceil();
        let params = &self.params;
        let encoded = count + iterations * self.reserve() as f64;
        let samples = (params.samples() * params.lanes.count()) as f64;
        let size = samples * size_of::<tacit_crypto::Block>() as f64 / cache.max(1) as f64;
        let noise = (iterations * samples + encoded) / 2.0 * interpolate(&UNI_NOISE, size);
        let code = encoded * (ns_by_table(params.k, params.lanes, cache) - LEAF_NS);
        cost.alone += UNI_ALONE * noise;
        cost.add(noise + code, iterations, self.tree_bytes(), self.security);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn iterations_ahead_are_the_fewest_that_serve() {
        for config in Config::both_lanes(Params::E, Security::Malicious) {
            for count in [0, 1, 200_000, 255_999, 256_000, 256_001, 1_000_000, 10_000_000] {
                let iterations = config.iterations_ahead(count);
                assert!(config.total_ahead(iterations) as u64 >= count);
                assert!(iterations == 1 || (config.total_ahead(iterations - 1) as u64) < count);
            }
        }
    }

    #[test]
    fn sets_for_sessions_have_136_bits_and_the_papers_protect_nobody() {
        for security in [Security::SemiHonest, Security::Malicious] {
            let regular = |params| Config { params, lanes: Lanes::Four, security }.protects();
            let uniform = |params| UniConfig { params, security }.protects();
            let all = Params::ALL.map(|p| (p.security_bits, regular(p), Params::by_name(p.name).is_some()));
            let uni =
                UniParams::ALL.map(|p| (p.security_bits, uniform(p), UniParams::by_name(p.name).is_some()));
            for (bits, protects, named) in all.into_iter().chain(uni) {
                assert!(bits >= 136 && protects == Some(security) && named);
            }
            for p in Params::SHORT {
                assert!(p.security_bits >= 136 && regular(p) == Some(security));
            }
            for p in Params::PAPERS {
                assert!(regular(p).is_none() && Params::by_name(p.name).is_none());
                assert_eq!(Params::for_measuring(p.name), Some(p));
            }
            for p in UniParams::PAPERS {
                assert!(uniform(p).is_none() && UniParams::by_name(p.name).is_none());
                assert_eq!(UniParams::for_measuring(p.name), Some(p));
            }
            // What setups stand on is never a weaker set.
            for p in Params::ALL {
                for config in Config::both_lanes(p, security) {
                    let small = [config.small(1), config.small(8), config.small_ahead(2, 20)];
                    assert!(small.into_iter().flatten().all(|small| small.protects() == Some(security)));
                }
            }
            for params in UniParams::ALL {
                let small = UniConfig { params, security }.small(1);
                assert!(small.is_none_or(|small| small.protects() == Some(security)));
            }
        }
    }

    #[test]
    fn a_short_session_takes_a_set_of_its_size() {
        let choose = |count| {
            let link = &LinkModel::LOOPBACK;
            let config = Config::choose_exactly(count, Security::Malicious, link, CACHE);
            let any = Config::choose(count, Security::Malicious, link, CACHE);
            let bytes = |config: Config| {
                let cost = config.cost(count, 1, CACHE);
                cost.awaited + cost.streamed
            };
            assert!(config == any || bytes(config) < bytes(any), "{config:?}");
            config.params.name
        };
        assert_eq!([83_328, 284_698].map(choose), ["f", "g"]);
        assert!(Params::by_name(choose(5_000_000)).is_some());
    }

    #[test]
    fn the_choice_follows_count_link_and_cache() {
        let choose = |count, link: &LinkModel, cache| Config::choose(count, Security::Malicious, link, cache);
        let fast = choose(10_000_000, &LinkModel::LOOPBACK, CACHE);
        assert!(fast.params.k < Params::A.k && fast.lanes == Lanes::Four, "{fast:?}");
        let small_cache = choose(10_000_000, &LinkModel::LOOPBACK, CACHE / 16);
        assert!(small_cache.params.k < fast.params.k, "{small_cache:?}");
        let small = choose(1000, &LinkModel::LOOPBACK, CACHE);
        assert_eq!((small.params.name, small.lanes), ("e", Lanes::One));
        let slow = LinkModel::new(10.0, Duration::from_millis(5)).unwrap();
        let thrifty = choose(1_000_000_000, &slow, CACHE);
        assert_eq!(thrifty.params.name, "a", "{thrifty:?}");
        // A cache that holds every table makes the larger sets as fast as the small ones.
        let bits = |config: Config| config.tree_bytes() as f64 / config.net() as f64;
        let roomy = choose(1_000_000_000, &LinkModel::LAN, 64 << 20);
        assert!(bits(roomy) <= bits(choose(1_000_000_000, &LinkModel::LAN, CACHE)), "{roomy:?}");
        let forced = Config::with_set(Params::B, 10, Security::SemiHonest, &LinkModel::LOOPBACK, CACHE);
        assert_eq!(
            (forced.params, forced.lanes, forced.security),
            (Params::B, Lanes::One, Security::SemiHonest)
        );
    }
}
