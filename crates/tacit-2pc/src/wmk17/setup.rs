//! Before all, and step 1: the OTs of the whole run, h and g_1, and for each copy its key or its seed.

use super::circuits::Circuits;
use super::deviation::deviate;
use super::evaluator_input::send_choices;
use super::garbling::peer_labels;
use super::secrets::{Digest, Seeds, Start};
use super::state::{EvaluatorState, GarblerState};
use super::terms::{Announced, Blocks, Terms, cheated, recv_bits, usage, zeros};
use super::trapdoor::{Trapdoor, point};
use crate::Result;
use tacit_crypto::group::POINT_BYTES;
use tacit_crypto::hash::Mitccrh;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::{Channel, Recording};
use tacit_ot::extension::kos::{KosReceiver, KosSender, SEEDS, Setup};
use tacit_ot::{CotReceiver, CotSender};
use zeroize::Zeroizing;

/// An OT extension that is set up, or about to be.
pub(super) struct Ot<C> {
    cot: Option<C>,
    setup: Option<Setup<C>>,
    spent: bool,
}

impl<C> Ot<C> {
    pub(super) fn ready_made(cot: C) -> Self {
        Ot { cot: Some(cot), setup: None, spent: false }
    }

    pub(super) fn begun(setup: Setup<C>) -> Self {
        Ot { cot: None, setup: Some(setup), spent: false }
    }

    /// A run, or what is done of it ahead; after one that failed there is no other.
    pub(super) fn once<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if std::mem::replace(&mut self.spent, true) {
            return usage("an earlier run failed: set up again");
        }
        let result = run(self)?;
        self.spent = false;
        Ok(result)
    }

    fn ready(&mut self, channel: &mut Channel) -> Result<&mut C> {
        if let Some(setup) = self.setup.take() {
            self.cot = Some(setup(channel)?);
        }
        let Some(cot) = &mut self.cot else { return usage("a setup that failed: set up again") };
        Ok(cot)
    }
}

/// What P1 holds when it learns what P2 asks for.
pub(super) struct GarblerStart<'f> {
    pub(super) state: GarblerState,
    /// The choices of step 2.
    pub(super) asked: BitVec,
    /// The zero-labels of P2's encoded input.
    pub(super) labels: Blocks,
    pub(super) circuits: Circuits<'f>,
}

impl<C: CotSender> Ot<C> {
    /// P1: everything before inputs: h and g_1, all OTs, and step 1. Of the choices of step 2 `asked` come
    /// with the rest.
    ///
    /// P1's seeds, and with them its circuits, depend on nothing that P2 says; so they are made while P2's
    /// messages are on their way.
    pub(super) fn prepare_garbler<'f>(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'f>,
        announced: &Announced,
        asked: usize,
        prg: &mut Prg,
    ) -> Result<GarblerStart<'f>> {
        let total = terms.copies.total;
        channel.flush()?;
        let own_salt = prg.block();
        let start = terms.oracle.start(Start::Circuits, own_salt);
        // proof: wmk17 2.1
        let mut pairs = Zeroizing::new(vec![[Block::ZERO; 2]; total]);
        prg.fill_blocks(pairs.as_flattened_mut());
        let keys = Zeroizing::new(pairs.iter().map(|pair| pair[1]).collect());
        let seeds = Seeds::new(pairs.iter().map(|pair| pair[0]).collect());
        let labels = peer_labels(terms, &seeds);
        let mut circuits = Circuits::new(terms, &seeds, start, &labels);
        circuits.make_ahead(channel, terms)?;
        let cot = self.ready(channel)?;
        announced.confirm(channel)?;
        let mut public = [[0u8; POINT_BYTES]; 2];
        channel.recv(public.as_flattened_mut())?;
        let salt = channel.recv_block()?;
        let (Some(h), Some(g1)) = (point(&public[0]), point(&public[1])) else {
            return cheated("h or g_1 is no group element");
        };
        circuits.make_ahead(channel, terms)?;
        let mut cots = zeros(SEEDS + total + terms.matrix.encoded());
        let mut passed = Recording::new(channel);
        channel.record(&mut passed, |channel| cot.extend(channel, &mut cots))?;
        let corrections = recv_bits(channel, total)?;
        let asked = recv_bits(channel, asked)?;
        let mut pads = Zeroizing::new(vec![[Block::ZERO; 2]; cots.len()]);
        let hash = Mitccrh::new(terms.oracle.start(Start::Pads, own_salt));
        hash.cot_to_rot_sender(0, cot.delta(), &cots, &mut pads);
        let encoded = Zeroizing::new(pads.split_off(SEEDS + total));
        channel.send_block(own_salt)?;
        let (reversed, pads) = pads.split_at_mut(SEEDS);
        let made = reversed_seeds(terms, [salt, own_salt], &passed, &corrections);
        let mut reverse = KosReceiver::from_seeds(reversed, &made, prg)?.by_hash(channel);
        let mut rows = zeros(terms.committed() + terms.opening_checks);
        reverse.extend(channel, &mut rows)?;
        // Step 1: key_j for choice 1, an evaluation copy, and seed_j for choice 0.
        deviate(|script| script.keys(&mut pairs));
        for (j, (pad, pair)) in pads.iter_mut().zip(pairs.iter()).enumerate() {
            let swap = (pad[0] ^ pad[1]) & Block::mask(corrections.get(j));
            pad[0] ^= swap ^ pair[0];
            pad[1] ^= swap ^ pair[1];
        }
        channel.send_blocks(pads.as_flattened())?;
        let committing = terms.oracle.start(Start::Labels, salt);
        let state = GarblerState { keys, seeds, h, g1, pads: encoded, rows, labels: committing, start };
        Ok(GarblerStart { state, asked, labels, circuits })
    }
}

impl<C: CotReceiver> Ot<C> {
    /// Everything before P1's input; the counterpart of the garbler's. Where P2's input is known, its choices
    /// go with the rest; its encoding is returned.
    pub(super) fn prepare_evaluator(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        announced: &Announced,
        input: Option<&BitVec>,
        prg: &mut Prg,
    ) -> Result<(EvaluatorState, BitVec)> {
        let (total, m) = (terms.copies.total, terms.matrix.encoded());
        let trapdoor = Trapdoor::new(prg);
        channel.send(trapdoor.public().as_flattened())?;
        let salt = prg.block();
        channel.send_block(salt)?;
        channel.flush()?;
        // While P1 makes its base OTs.
        let mut set = terms.copies.draw(prg);
        deviate(|script| script.evaluated(&mut set));
        let encoded = input.map_or_else(BitVec::default, |input| terms.matrix.encode(input, prg));
        terms.function.slots();
        // What goes out before P1's terms are known depends on choices that P1 does not know.
        let cot = self.ready(channel)?;
        let answered = cot.is_answered();
        if answered {
            announced.confirm(channel)?;
        }
        let mut pads = zeros(SEEDS + total + m);
        let mut passed = Recording::new(channel);
        channel.record(&mut passed, |channel| cot.extend(channel, &mut pads))?;
        let choices = BitVec::from_lsbs(&pads);
        let choices = |from: usize, n: usize| {
            let mut out = BitVec::zeros(n);
            (0..n).for_each(|i| out.set(i, choices.get(from + i)));
            out
        };
        // Step 1: the evaluation set.
        // proof: wmk17 2.2
        let mut corrections = choices(SEEDS, total);
        corrections.xor_assign(&set);
        channel.send(corrections.as_bytes())?;
        let encoded_choices = choices(SEEDS + total, m);
        if input.is_some() {
            send_choices(channel, &encoded_choices, &encoded)?;
        }
        channel.flush()?;
        if !answered {
            announced.confirm(channel)?;
        }
        let own_salt = channel.recv_block()?;
        let cots = pads.clone();
        Mitccrh::new(terms.oracle.start(Start::Pads, own_salt)).cot_to_rot_receiver(0, &cots, &mut pads);
        let made = reversed_seeds(terms, [salt, own_salt], &passed, &corrections);
        let mut reverse =
            KosSender::from_seeds(&choices(0, SEEDS), &pads[..SEEDS], &made, prg)?.by_hash(channel);
        let mut rows = zeros(terms.committed() + terms.opening_checks);
        reverse.extend(channel, &mut rows)?;
        let mut sealed = vec![[Block::ZERO; 2]; total];
        channel.recv_blocks(sealed.as_flattened_mut())?;
        let (evaluated, checked): (Vec<usize>, Vec<usize>) = (0..total).partition(|&j| set.get(j));
        let open = |j: &usize| {
            pads[SEEDS + *j] ^ sealed[*j][0] ^ ((sealed[*j][0] ^ sealed[*j][1]) & Block::mask(set.get(*j)))
        };
        let state = EvaluatorState {
            keys: Zeroizing::new(evaluated.iter().map(open).collect()),
            seeds: Seeds::new(checked.iter().map(open).collect()),
            evaluated,
            checked,
            trapdoor,
            pads: Zeroizing::new(pads.split_off(SEEDS + total)),
            choices: encoded_choices,
            offset: reverse.delta(),
            rows,
            labels: terms.oracle.start(Start::Labels, salt),
            start: terms.oracle.start(Start::Circuits, own_salt),
            failed: false,
        };
        Ok((state, encoded))
    }
}

/// What determines the seeds of the reversed extension, once P1 has fixed its salt: the correlated OTs by
/// what `passed` for them, which holds P2's fresh randomness, and both `salts`; the `corrections` of P2's
/// came after P1's part of those OTs was done.
fn reversed_seeds(terms: &Terms<'_>, salts: [Block; 2], passed: &Recording, corrections: &BitVec) -> Digest {
    let mut transcript = Transcript::new("tacit wmk17 reversed seeds v1");
    transcript.append("terms", terms.oracle.key());
    transcript.append("correlated OTs", &passed.digest());
    transcript.append_blocks("salts of P2 and P1", &salts);
    transcript.append("corrections", corrections.as_bytes());
    let mut out = [0; 32];
    transcript.challenge_bytes("seeds", &mut out);
    out
}
