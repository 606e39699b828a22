//! A million correlated OTs between two threads, checked: `cargo run --example correlations`.

use tacit::crypto::Block;
use tacit::ot::{Choice, Job, Kind, Sent, base_ot, protocol};
use tacit::{Result, Security};

fn main() -> Result<()> {
    let count = 1_000_000;
    let security = Security::Malicious;
    let pick = protocol("kos", security)?.pick(count, security, &Choice::default())?;
    let job = Job { pick, kind: Kind::Cot, count };
    let base = base_ot(None, security)?;
    let (mut delta, mut v, mut w) = (Block::ZERO, Vec::new(), Vec::new());
    let (sent, received) = tacit::net::memory::run(
        |channel| {
            job.send(std::slice::from_mut(channel), &*base, &mut |part| {
                if let Sent::Cot(d, piece) = part {
                    delta = d;
                    v.extend_from_slice(piece);
                }
                Ok(())
            })
        },
        |channel| {
            job.receive(std::slice::from_mut(channel), &*base, &mut |_, piece| {
                w.extend_from_slice(piece);
                Ok(())
            })
        },
    );
    sent?;
    received?;
    assert!(v.iter().zip(&w).all(|(v, w)| *w == *v ^ (delta & Block::mask(w.lsb()))));
    println!("{} correlations hold", v.len());
    Ok(())
}
