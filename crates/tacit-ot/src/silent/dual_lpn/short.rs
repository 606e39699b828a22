//! The short form of a run of BCGIKRS19: figures 13 and 16 by Fiat–Shamir, in one message of the sender's and
//! its proof.
//!
//! The trees are those of `tpprf` over random OTs that are hashes of base correlations, with an anchor that
//! holds them to these correlations' Δ. For small runs against a malicious peer; it spares two messages in
//! turn.

use super::code::LinearCode;
use super::run::{NAME, Run};
use super::tpprf::{self, Anchor, Challenge, Received, SenderTrees, Setup};
use crate::convert::swap_pairs;
use crate::silent::engine::Engine;
use crate::silent::engine::source::SourceSender;
use crate::{CotSender, Result};
use tacit_crypto::hash::Mitccrh;
use tacit_crypto::{BitVec, Block, Buffer, KAPPA, Prg};
use tacit_net::Channel;
use zeroize::Zeroizing;

/// What the sender says in the short form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// Level sums, corrections, γ and the anchor's d.
    Trees,
    /// The answer to the challenge.
    X,
    V,
}

/// Before the joint seed is in the context: the trees, which the sender makes first. A hash key of a party's
/// choosing would give it nothing in the ideal-cipher model.
pub(super) fn setup(run: &Run) -> Setup {
    Setup { protocol: NAME, noise: run.noise, malicious: true, context: run.context.clone() }
}

/// What makes random OTs of the base correlations, numbered from 0 on.
fn hash(run: &Run) -> Mitccrh {
    Mitccrh::new(run.context.clone().challenge_block("mitccrh start"))
}

/// The challenge that follows the receiver's bits and the sender's trees and anchor.
pub(super) fn challenge(run: &Run, setup: &Setup, bits: &BitVec, message: &[u8]) -> Challenge {
    let mut transcript = run.context.clone();
    transcript.append("choices", bits.as_bytes());
    transcript.append("message", message);
    setup.challenge(transcript)
}

/// The sender's side, with `delta` in the trees: the code, and the noise. `change` sees each part of what it
/// says before it goes.
pub(super) fn send(
    channel: &mut Channel,
    engine: &mut Engine,
    source: &mut SourceSender,
    prg: &mut Prg,
    run: &mut Run,
    delta: Block,
    change: impl Fn(Part, &mut [u8]),
) -> Result<(Box<dyn LinearCode>, Buffer)> {
    let (setup, shape) = (setup(run), run.noise.shape);
    // The trees are ready when the receiver's message is there, and the code is made while the receiver is at
    // them.
    let trees = SenderTrees::new(delta, prg, shape);
    let mut message = trees.bare_message(&setup);
    engine.join(channel, &mut run.context)?;
    let mut cots = Zeroizing::new(vec![Block::ZERO; shape.cots() + KAPPA]);
    // proof: silent-ot 3.2
    source.extend(channel, &mut cots)?;
    let mut bits = vec![0; shape.cots().div_ceil(8)];
    channel.recv(&mut bits)?;
    let bits = BitVec::from_bytes(&bits, shape.cots());
    let mut pads = Zeroizing::new(vec![[Block::ZERO; 2]; cots.len()]);
    hash(run).cot_to_rot_sender(0, source.delta(), &cots, &mut pads);
    let (level, last) = pads.split_at_mut(shape.cots());
    swap_pairs(level, &bits);
    tpprf::mask(&mut message, level);
    let anchor = Anchor::of_sender(&cots[shape.cots()..], last);
    message.extend(trees.anchoring(last));
    // proof: silent-ot 3.3
    change(Part::Trees, &mut message);
    channel.send(&message)?;
    // proof: silent-ot 3.4
    let challenge = challenge(run, &setup, &bits, &message);
    let mut x = trees.x(&challenge);
    change(Part::X, Block::as_bytes_mut(core::slice::from_mut(&mut x)));
    channel.send_block(x)?;
    channel.flush()?;
    let code = run.code();
    let (mut v, mut noise) = trees.prove_and_expand(&setup, &challenge.check(x, shape), &anchor);
    change(Part::V, Block::as_bytes_mut(core::slice::from_mut(&mut v)));
    channel.send_block(v)?;
    channel.flush()?;
    code.absorb(&mut Block::ZERO.clone(), &mut noise);
    Ok((code, noise))
}

/// The receiver's side, from its base correlations and points: the code, made while the peer is at work, and
/// the noise.
pub(super) fn receive(
    channel: &mut Channel,
    engine: &mut Engine,
    run: &mut Run,
    cots: &[Block],
    points: &[u32],
) -> Result<(Box<dyn LinearCode>, Buffer)> {
    // proof: silent-ot 3.1
    let (setup, shape) = (setup(run), run.noise.shape);
    let mut bits = tpprf::choices(points, shape);
    bits.xor_assign(&BitVec::from_lsbs(&cots[..shape.cots()]));
    channel.send(bits.as_bytes())?;
    channel.flush()?;
    engine.join(channel, &mut run.context)?;
    let code = run.code();
    let mut pads = Zeroizing::new(vec![Block::ZERO; cots.len()]);
    hash(run).cot_to_rot_receiver(0, cots, &mut pads);
    let (level, last) = pads.split_at(shape.cots());
    let mut message = vec![0; tpprf::message_len(shape, true) + Anchor::BYTES];
    channel.recv(&mut message)?;
    let check = challenge(run, &setup, &bits, &message).check(channel.recv_block()?, shape);
    let (trees, d) = message.split_at(message.len() - Anchor::BYTES);
    let anchor = Anchor::of_receiver(&cots[shape.cots()..], last, d);
    let received = Received::new(&setup, points, level, trees);
    let (mut noise, claim) = received.expand(&setup, &check, Some(&anchor));
    let v = channel.recv_block()?;
    // proof: silent-ot 3.5
    engine.settle(|| claim.check(v))?;
    code.absorb(&mut Block::ZERO.clone(), &mut noise);
    Ok((code, noise))
}
