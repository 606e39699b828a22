//! VOLE over every field: the correlation, chosen inputs, and what is refused.

use crate::common::{self, prg};
use proptest::prelude::*;
use tacit_crypto::field::{F61, F128, Field};
use tacit_crypto::{Block, Prg};
use tacit_net::{Channel, memory};
use tacit_ot::convert::CotToRot;
use tacit_ot::extension::{KosReceiver, KosSender};
use tacit_ot::silent::bcgikrs19::{Code, Config, SilentReceiver, SilentSender};
use tacit_ot::vole::{SilentVoleReceiver, SilentVoleSender, reverse};
use tacit_ot::{Error, Security, VoleReceiver, VoleSender, base};

fn random<F: Field>(n: usize, prg: &mut Prg) -> Vec<F> {
    (0..n).map(|_| F::from_block(prg.block())).collect()
}

/// Random sizes and seeds, several requests on one setup.
fn correlate<F: Field>(seed: u128, sizes: &[usize], security: Security) {
    let delta: F = random(1, &mut prg(seed))[0];
    let total: usize = sizes.iter().sum();
    let (v, (u, w)) = common::run(
        |ch| {
            let mut s = SilentVoleSender::setup(ch, &*base::default(), &mut prg(seed + 1), delta, security)?;
            assert!(s.delta() == delta);
            let mut v = vec![F::ZERO; total];
            let mut rest = &mut v[..];
            for &n in sizes {
                let (now, later) = rest.split_at_mut(n);
                s.extend(ch, now)?;
                rest = later;
            }
            Ok(v)
        },
        |ch| {
            let mut r = SilentVoleReceiver::setup(ch, &*base::default(), &mut prg(seed + 2), security)?;
            let (mut u, mut w) = (vec![F::ZERO; total], vec![F::ZERO; total]);
            let mut at = 0;
            for &n in sizes {
                r.extend(ch, &mut u[at..at + n], &mut w[at..at + n])?;
                at += n;
            }
            Ok((u, w))
        },
    );
    for i in 0..total {
        assert!(w[i] == v[i] + u[i] * delta, "correlation {i} of {sizes:?} over {}", F::NAME);
    }
    let distinct =
        |x: &[F]| x.iter().map(|x| x.to_block().to_u128()).collect::<std::collections::HashSet<_>>().len();
    assert!(distinct(&u) == total && distinct(&v) == total && distinct(&w) == total, "values repeat");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn any_requests_correlate_over_both_primes(
        seed: u64,
        sizes in proptest::collection::vec(0usize..2000, 1..5),
        malicious: bool,
    ) {
        let security = if malicious { Security::Malicious } else { Security::SemiHonest };
        correlate::<F61>(seed as u128, &sizes, security);
        correlate::<F128>(seed as u128, &sizes, security);
    }
}

#[test]
fn one_ten_requests_and_a_million_over_both_primes() {
    let ten: Vec<usize> = (1..=10).map(|i| 37 * i).collect();
    for security in [Security::SemiHonest, Security::Malicious] {
        correlate::<F61>(75, &[1, 1000], security);
        correlate::<F128>(74, &[1, 1000], security);
        correlate::<F61>(76, &ten, security);
        correlate::<F128>(77, &ten, security);
    }
    correlate::<F61>(78, &[1_000_001], Security::Malicious);
    correlate::<F128>(79, &[1_000_001], Security::SemiHonest);
}

fn chosen<F: Field>(security: Security) {
    let mut seeds = prg(4);
    let (x, y): (F, Vec<F>) = (random(1, &mut seeds)[0], random(300, &mut seeds));
    let y: Vec<F> = y.into_iter().chain([F::ZERO, F::ONE, -F::ONE]).collect();
    let n = y.len();
    let rot_sender =
        |ch: &mut Channel, prg: &mut Prg| KosSender::setup(ch, &*base::default(), prg).map(CotToRot::new);
    let rot_receiver =
        |ch: &mut Channel, prg: &mut Prg| KosReceiver::setup(ch, &*base::default(), prg).map(CotToRot::new);
    let (b, c) = common::run(
        |ch| {
            let mut b = vec![F::ZERO; n];
            let mut rot = rot_sender(ch, &mut prg(1))?;
            reverse::send(ch, &mut rot, x, &mut b)?;
            let mut more = vec![F::ZERO; n];
            SilentVoleSender::setup(ch, &*base::default(), &mut prg(2), x, security)?
                .reverse(ch, &mut more)?;
            Ok([b, more].concat())
        },
        |ch| {
            let mut c = vec![F::ZERO; n];
            let mut rot = rot_receiver(ch, &mut prg(3))?;
            reverse::receive(ch, &mut rot, &y, &mut c)?;
            let mut more = vec![F::ZERO; n];
            SilentVoleReceiver::setup(ch, &*base::default(), &mut prg(4), security)?
                .reverse(ch, &y, &mut more)?;
            Ok([c, more].concat())
        },
    );
    for i in 0..2 * n {
        assert!(b[i] + c[i] == x * y[i % n], "product {i} over {}", F::NAME);
    }
}

#[test]
fn reverse_vole_of_chosen_inputs() {
    for security in [Security::SemiHonest, Security::Malicious] {
        chosen::<F61>(security);
        chosen::<F128>(security);
    }
}

#[test]
fn the_binary_subfield() {
    let config = Config { code: Code::Linear, security: Security::Malicious };
    let ((delta, v), (u, w)) = common::run(
        |ch| {
            let mut s = SilentSender::setup(ch, &*base::default(), &mut prg(1), config)?;
            let mut v = vec![Block::ZERO; 1000];
            VoleSender::extend(&mut s, ch, &mut v)?;
            Ok((VoleSender::delta(&s), v))
        },
        |ch| {
            let mut r = SilentReceiver::setup(ch, &*base::default(), &mut prg(2), config)?;
            let (mut u, mut w) = (vec![false; 1000], vec![Block::ZERO; 1000]);
            VoleReceiver::extend(&mut r, ch, &mut u, &mut w)?;
            Ok((u, w))
        },
    );
    assert!((0..1000).all(|i| w[i] == v[i] ^ (delta & Block::mask(u[i]))));
}

#[test]
fn another_field_or_security_is_a_clear_error() {
    let (sh, mal) = (Security::SemiHonest, Security::Malicious);
    let fields = memory::run(
        |ch| SilentVoleSender::setup(ch, &*base::default(), &mut prg(1), F61::ONE, sh).map(|_| ()),
        |ch| SilentVoleReceiver::<F128>::setup(ch, &*base::default(), &mut prg(2), sh).map(|_| ()),
    );
    let securities = memory::run(
        |ch| SilentVoleSender::setup(ch, &*base::default(), &mut prg(1), F61::ONE, sh).map(|_| ()),
        |ch| SilentVoleReceiver::<F61>::setup(ch, &*base::default(), &mut prg(2), mal).map(|_| ()),
    );
    for error in [fields.0, fields.1, securities.0, securities.1].map(|result| result.unwrap_err()) {
        assert!(matches!(error, Error::Malformed { .. }) && error.to_string().contains("field"), "{error}");
    }
}
