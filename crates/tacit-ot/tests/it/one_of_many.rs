//! Random 1-out-of-p OT from subfield VOLE, and that VOLE by itself.

use crate::common::{self, prg};
use std::collections::HashSet;
use tacit_crypto::{Block, gf128};
use tacit_net::memory;
use tacit_ot::one_of_many::{OneOfManyReceiver, OneOfManySender};
use tacit_ot::vole::subfield::{Subfield, SubfieldReceiver, SubfieldSender};
use tacit_ot::{Error, Security, VoleReceiver, VoleSender, base};

/// Several requests on one setup.
fn correlate(degree: usize, security: Security, sizes: &[usize]) {
    let field = Subfield::new(degree).unwrap();
    let ((delta, v), (u, w)) = common::run(
        |ch| {
            let mut s = SubfieldSender::setup(ch, &*base::default(), &mut prg(1), field, security)?;
            let mut all = Vec::new();
            for &n in sizes {
                let mut v = vec![Block::ONES; n];
                s.extend(ch, &mut v)?;
                all.extend(v);
            }
            Ok((s.delta(), all))
        },
        |ch| {
            let mut r = SubfieldReceiver::setup(ch, &*base::default(), &mut prg(2), field, security)?;
            let mut all = (Vec::new(), Vec::new());
            for &n in sizes {
                let (mut u, mut w) = (vec![255; n], vec![Block::ONES; n]);
                r.extend(ch, &mut u, &mut w)?;
                all.0.extend(u);
                all.1.extend(w);
            }
            Ok(all)
        },
    );
    for i in 0..v.len() {
        assert!((u[i] as usize) < field.size());
        assert!(w[i] == v[i] ^ gf128::mul(field.embed(u[i]), delta), "{i} over GF(2^{degree})");
    }
    assert_eq!(v.iter().map(|v| v.to_u128()).collect::<HashSet<_>>().len(), v.len(), "values repeat");
    // Every element, zero too, about equally often.
    let mean = u.len() / field.size();
    let mut counts = vec![0usize; field.size()];
    u.iter().for_each(|u| counts[*u as usize] += 1);
    assert!(counts.iter().all(|n| n.abs_diff(mean) < 7 * mean.isqrt()), "{counts:?}");
}

#[test]
fn subfield_correlations() {
    for degree in [1, 2, 4, 8] {
        for security in [Security::SemiHonest, Security::Malicious] {
            correlate(degree, security, &[1, 0, 1000, 20_001]);
        }
        let ten: Vec<usize> = (1..=10).map(|i| 371 * i).collect();
        correlate(degree, Security::Malicious, &ten);
    }
}

#[test]
fn a_million_subfield_correlations() {
    for (degree, security) in [(2, Security::SemiHonest), (4, Security::Malicious), (8, Security::Malicious)]
    {
        correlate(degree, security, &[1_000_001]);
    }
}

/// `count` OTs in requests of `request`, the last one of what is left; the sender is told what the receiver
/// has.
fn one_of(p: usize, security: Security, count: usize, request: usize) {
    let requests = || (0..count).step_by(request).map(|from| request.min(count - from));
    let (tell, told) = std::sync::mpsc::sync_channel::<(Vec<u8>, Vec<Block>)>(1);
    let (made, received) = common::run(
        move |ch| {
            let mut ot = OneOfManySender::setup(ch, &*base::default(), &mut prg(5), p, security)?;
            let mut sent = vec![Block::ZERO; request * p];
            let mut made = 0;
            for n in requests() {
                let sent = &mut sent[..n * p];
                ot.send(ch, sent)?;
                let (choices, messages) = told.recv().unwrap();
                assert!(choices.len() == n && messages.len() == n);
                for (i, (choice, message)) in choices.iter().zip(&messages).enumerate() {
                    let others = &sent[i * p..][..p];
                    assert!(others[*choice as usize] == *message, "OT {} of p = {p}", made + i);
                    assert_eq!(others.iter().filter(|m| *m == message).count(), 1, "OT {}", made + i);
                }
                made += n;
            }
            Ok(made)
        },
        move |ch| {
            let mut ot = OneOfManyReceiver::setup(ch, &*base::default(), &mut prg(6), p, security)?;
            let mut received = 0;
            for n in requests() {
                let mut out = vec![Block::ZERO; n];
                let choices = ot.receive(ch, &mut out)?.to_vec();
                received += n;
                tell.send((choices, out)).unwrap();
            }
            Ok(received)
        },
    );
    assert_eq!((made, received), (count, count));
}

#[test]
fn a_million_ots() {
    one_of(2, Security::SemiHonest, 1_000_001, 1_000_001);
    one_of(4, Security::Malicious, 1_000_001, 1_000_001);
    one_of(16, Security::Malicious, 1_000_001, 250_000);
    let count = if cfg!(feature = "long-tests") { 1_000_001 } else { 62_501 };
    one_of(256, Security::Malicious, count, 31_250);
}

#[test]
fn the_receiver_has_one_of_p_messages() {
    for (p, security) in [
        (2, Security::Malicious),
        (4, Security::SemiHonest),
        (16, Security::Malicious),
        (256, Security::Malicious),
    ] {
        let sizes = [1, 0, 700];
        let (sent, received) = common::run(
            |ch| {
                let mut ot = OneOfManySender::setup(ch, &*base::default(), &mut prg(1), p, security)?;
                assert!(matches!(ot.send(ch, &mut vec![Block::ZERO; p + 1]), Err(Error::Usage { .. })));
                let mut all = Vec::new();
                for n in sizes {
                    let mut out = vec![Block::ZERO; n * p];
                    ot.send(ch, &mut out)?;
                    all.extend(out);
                }
                Ok(all)
            },
            |ch| {
                let mut ot = OneOfManyReceiver::setup(ch, &*base::default(), &mut prg(3), p, security)?;
                assert_eq!(ot.messages(), p);
                let mut all = Vec::new();
                for n in sizes {
                    let mut out = vec![Block::ZERO; n];
                    let choices = ot.receive(ch, &mut out)?;
                    all.extend(choices.iter().copied().zip(out));
                }
                Ok(all)
            },
        );
        assert_eq!(sent.len(), received.len() * p);
        let distinct: HashSet<_> = sent.iter().map(|b| b.to_u128()).collect();
        assert_eq!(distinct.len(), sent.len(), "messages repeat at p = {p}");
        for (i, (choice, message)) in received.iter().enumerate() {
            assert!(*message == sent[i * p + *choice as usize], "OT {i} of p = {p}");
        }
        let kinds: HashSet<_> = received.iter().map(|r| r.0).collect();
        assert!(kinds.len() > p.min(200) / 2, "few choices at p = {p}");
    }
}

#[test]
fn other_parameters_are_clear_errors() {
    for p in [0, 1, 3, 8, 512] {
        let (a, b) = memory::run(
            |ch| {
                OneOfManySender::setup(ch, &*base::default(), &mut prg(1), p, Security::Malicious).map(|_| ())
            },
            |ch| {
                OneOfManyReceiver::setup(ch, &*base::default(), &mut prg(1), p, Security::Malicious)
                    .map(|_| ())
            },
        );
        for error in [a.unwrap_err(), b.unwrap_err()] {
            assert!(matches!(error, Error::Usage { .. }), "{error}");
        }
    }
    let (a, b) = memory::run(
        |ch| OneOfManySender::setup(ch, &*base::default(), &mut prg(1), 4, Security::Malicious).map(|_| ()),
        |ch| {
            OneOfManyReceiver::setup(ch, &*base::default(), &mut prg(1), 16, Security::Malicious).map(|_| ())
        },
    );
    for error in [a.unwrap_err(), b.unwrap_err()] {
        assert!(matches!(error, Error::Malformed { .. }) && error.to_string().contains("field"), "{error}");
    }
}
