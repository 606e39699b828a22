//! How many keys a bucket has room for.

/// The capacity at which `count` distinct keys, thrown into `buckets` by a random function, overflow one of
/// them with probability below 2^-`security`: it says nothing of the keys but how many there are.
///
/// By Chernoff's bound Pr\[Bin(n, p) >= k\] <= exp(-n·KL(k/n || p)) for k > n·p, with p = 1/`buckets`, and a
/// union over all buckets. One bit is kept back for the rounding of the logarithms.
pub(in crate::job::psi) fn capacity(count: u64, buckets: u64, security: u32) -> u64 {
    if buckets <= 1 || count == 0 {
        return count;
    }
    let allowed = -f64::from(security + 1) - (buckets as f64).log2();
    // The bound falls from the mean on: the least capacity whose successor is rare enough.
    let (mut too_small, mut enough) = (count / buckets, count);
    while enough > too_small + 1 {
        let middle = too_small.midpoint(enough);
        if tail_log2(count, buckets, middle + 1) < allowed { enough = middle } else { too_small = middle }
    }
    enough
}

/// log2 of a bound on the probability that one bucket gets `least` keys or more, where that is more than the
/// mean; `least` is at most `count`.
fn tail_log2(count: u64, buckets: u64, least: u64) -> f64 {
    let (n, k, p) = (count as f64, least as f64, 1.0 / buckets as f64);
    let mean = n * p;
    let above = k - mean;
    let rest = if least == count { 0.0 } else { (n - k) * (-above / (n - mean)).ln_1p() };
    -(k * (above / mean).ln_1p() + rest) / std::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_crypto::{Block, Prg};

    /// log2 of the probability that a bucket gets `least` of `count` keys or more, term by term.
    fn exact_log2(count: u64, buckets: u64, least: u64) -> f64 {
        let p = 1.0 / buckets as f64;
        let mut term = count as f64 * (-p).ln_1p();
        let mut sum = 0.0;
        for k in 0..=count {
            if k >= least {
                sum += term.exp();
            }
            term += ((count - k) as f64 / (k + 1) as f64).ln() + p.ln() - (-p).ln_1p();
        }
        sum.log2()
    }

    /// proof: buckets 3.2
    #[test]
    fn the_bound_is_above_the_exact_tail_and_not_far_above() {
        for (count, buckets) in [(10, 2), (100, 4), (1000, 64), (20_000, 16)] {
            let least = capacity(count, buckets, 40) + 1;
            if least > count {
                continue;
            }
            let (exact, bound) = (exact_log2(count, buckets, least), tail_log2(count, buckets, least));
            assert!(exact <= bound && bound <= exact + 8.0, "{count} in {buckets}: {exact}, {bound}");
            assert!((buckets as f64).log2() + exact < -40.0);
        }
    }

    /// At a reduced security overflows are seen: fewer than the bound says, and many more one step below
    /// what it would take.
    #[test]
    fn buckets_overflow_as_rarely_as_the_bound_says() {
        let (count, buckets, security, runs) = (4000u64, 16usize, 4, 3000);
        let most = capacity(count, buckets as u64, security);
        let mut prg = Prg::from_seed(Block::from_halves(16, 0));
        let (mut over, mut over_smaller) = (0, 0);
        for _ in 0..runs {
            let mut loads = vec![0u64; buckets];
            (0..count).for_each(|_| loads[prg.below(buckets as u64) as usize] += 1);
            let fullest = loads.into_iter().max().unwrap_or(0);
            over += u32::from(fullest > most);
            over_smaller += u32::from(fullest > capacity(count, buckets as u64, 0));
        }
        assert!(over < runs >> security, "{over} of {runs}");
        assert!(over_smaller > over, "{over_smaller}, {over}");
    }

    #[test]
    fn room_grows_with_the_set_and_with_the_security() {
        assert_eq!((capacity(0, 64, 40), capacity(77, 1, 40), capacity(3, 64, 40)), (0, 77, 3));
        let mut last = 0;
        for count in (0..30).map(|log2| 1 << log2) {
            let room = capacity(count, 64, 40);
            assert!(room >= last && room <= count && room >= count / 64);
            assert!(capacity(count, 64, 80) >= room);
            last = room;
        }
        // Of 2^30 keys in 64 buckets less than one in 300 is padding.
        assert!(capacity(1 << 30, 64, 40) * 64 < (1 << 30) / 300 * 301);
    }
}
