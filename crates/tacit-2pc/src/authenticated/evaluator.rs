//! The evaluator's part of the last phase.

use super::bits::{shares, zeros};
use super::dependent::{Dependent, largest_piece};
use super::deviation::{deviate, passes};
use super::masked::{EVALUATORS_MASKS, GARBLERS_MASKS, check_share};
use super::opening::{MacHash, receive_bits, see, send_bits, show};
use super::{PIECE, cheated};
use crate::circuit::ONE;
use crate::garble::{Evaluate, HalfGatesEvaluator};
use crate::{Owner, Result};
use subtle::ConstantTimeEq;
use tacit_crypto::{BitVec, Block};
use tacit_net::Channel;

pub(super) fn run(run: Dependent<'_>, channel: &mut Channel, input: &BitVec) -> Result<Option<BitVec>> {
    let plan = run.function.plan(1);
    let (own, peer) = (run.slots(Owner::Evaluator), run.slots(Owner::Garbler));
    // Step 1
    let mine = run.masked(input);
    send_bits(channel, &mine)?;
    channel.flush()?;
    // Step 2
    let mut evaluator = HalfGatesEvaluator::new(&[run.start()]);
    evaluator.reserve(plan.slots());
    evaluator.set_labels(ONE, &[Block::ONE]);
    let mut labels = zeros(peer.len() + own.len());
    channel.recv_blocks(&mut labels)?;
    let (of_peer, of_own) = labels.split_at_mut(peer.len());
    for (&slot, &label) in peer.iter().zip(of_peer.iter()) {
        evaluator.set_labels(slot, &[label]);
    }
    for ((&slot, label), bit) in own.iter().zip(of_own).zip(mine.iter()) {
        // Whatever came, the masked value is that which was sent.
        *label = label.with_lsb(bit);
        evaluator.set_labels(slot, &[*label]);
    }
    let gates = run.gates();
    let mut results = BitVec::zeros(gates.len());
    let mut hash = MacHash::new(&run.oracle, "labels", false);
    let mut macs = MacHash::new(&run.oracle, "gates", true);
    let wide = largest_piece(run.function);
    let (mut tables, mut held, mut opened) = (zeros(2 * wide), zeros(wide), zeros(wide));
    let mut first = 0;
    for piece in plan.pieces(PIECE) {
        let n = piece.ands;
        let tables = &mut tables[..2 * n];
        channel.recv_blocks(tables)?;
        let colours = receive_bits(channel, n)?;
        let mut at = 0;
        for step in piece.one_by_one() {
            let ops = &step.ops[step.ops.len() - step.ands..];
            let rows = &mut tables[2 * at..2 * (at + step.ands)];
            for (i, rows) in rows.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                let masks = shares(&gates[first + at + i]);
                rows[0] ^= masks[1].mac;
                rows[1] ^= masks[0].mac;
            }
            evaluator.evaluate(step, rows);
            for op in ops {
                let masks = shares(&gates[first + at]);
                let label = evaluator.labels(op.out)[0] ^ masks[2].mac;
                let result = label.lsb() ^ colours.get(at);
                held[at] = label.with_lsb(result);
                evaluator.set_labels(op.out, &held[at..=at]);
                let [a, b] = [op.a, op.b].map(|slot| Block::mask(evaluator.labels(slot)[0].lsb()));
                let share = check_share(&masks, a, b);
                // The garbler's share of what must be zero is this party's.
                let share_bit = share.mac ^ (a & b) ^ Block::mask(result);
                opened[at] = share.key ^ (run.delta & Block::mask(share_bit.lsb()));
                results.set(first + at, result);
                at += 1;
            }
        }
        hash.update(&held[..n]);
        macs.update(&opened[..n]);
        first += n;
    }
    // Step 3
    let mut digest = hash.digest();
    deviate(|script| script.results(&mut results, &mut digest));
    send_bits(channel, &results)?;
    channel.send(&digest)?;
    // Step 4
    channel.recv(&mut digest)?;
    if !passes(macs.digest().ct_eq(&digest)) {
        return cheated("a garbled gate is wrong");
    }
    // Step 5
    let shares = match run.output_to.evaluator() {
        true => Some(see(channel, &run.oracle, GARBLERS_MASKS, true, &run.output_keys(), run.delta)?),
        false => None,
    };
    if run.output_to.garbler() {
        show(channel, &run.oracle, EVALUATORS_MASKS, false, &run.output_macs())?;
        channel.flush()?;
    }
    let masked: Vec<bool> = plan.outputs().iter().map(|&slot| evaluator.labels(slot)[0].lsb()).collect();
    Ok(shares.map(|shares| run.unmask(BitVec::from_bools(&masked), &shares)))
}
