//! Step 5: the garbled circuits: made and committed to, then sent; with the check of step 9 (b).

use super::deviation::deviate;
use super::function::Walk;
use super::garbler_input::OPENING;
use super::garbling::{Evaluation, Garbling, peer_labels, starts};
use super::secrets::{Digest, Seeds};
use super::state::{EvaluatorState, GarblerState};
use super::terms::{Blocks, PIECE, Terms, cheated};
use super::transfer::{Decoder, Encoder, Hashes, split, tables_of};
use crate::Result;
use crate::circuit::Piece;
use std::collections::VecDeque;
use tacit_crypto::Block;
use tacit_net::Channel;

/// Blocks of tables that P1 holds from when it has committed to them until it sends them: 1 MiB, which stays
/// in cache. If there are more it garbles anew: pages of fresh memory cost more.
const HELD: usize = 1 << 16;
/// AND gates after which P1, garbling what it is going to commit to, lets P2 know that it is there.
const BEAT: u64 = 1 << 22;
/// Blocks of garbled tables that P1 sends before step 4 and P2 keeps: 8 MiB.
const EARLY: usize = 1 << 19;
/// What P1 says while P2's opening is on its way: a piece of tables follows, or step 4.
const TABLES: u8 = 1;
pub(super) const COMMITMENTS: u8 = 0;

/// The garbled circuits on their way to P2: made and hashed first, then sent.
pub(super) struct Circuits<'f> {
    garbling: Garbling,
    walk: Box<dyn Walk + 'f>,
    encoder: Option<Encoder>,
    hashes: Hashes,
    /// Of a copy, gates made, and those after which P2 was told.
    gates: u64,
    told: u64,
    /// Pieces that are made and not sent, and the blocks they take; nothing once they are too many to be
    /// held.
    made: Option<VecDeque<Vec<Block>>>,
    held: usize,
    /// Room for a piece whose combinations are sent, and for a message.
    room: Vec<Block>,
    spare: Vec<Block>,
}

/// Whether circuits are garbled for the first time, or once more to be sent.
#[derive(Clone, Copy)]
enum Pass {
    Committing,
    Again,
}

impl<'f> Circuits<'f> {
    /// Of all copies, from their seeds and start point and the zero-labels of P2's encoded input.
    pub(super) fn new(terms: &Terms<'f>, seeds: &Seeds, start: Block, peer: &[Block]) -> Self {
        let copies = terms.copies;
        Circuits {
            garbling: Self::garbling(terms, seeds, start, peer),
            walk: terms.function.walk(),
            encoder: copies.coded().then(|| Encoder::new(copies.total, copies.evaluated)),
            hashes: Hashes::of_circuits(&terms.oracle, 0..copies.total),
            gates: 0,
            told: 0,
            made: Some(VecDeque::new()),
            held: 0,
            room: Vec::new(),
            spare: Vec::new(),
        }
    }

    fn garbling(terms: &Terms<'_>, seeds: &Seeds, start: Block, peer: &[Block]) -> Garbling {
        let starts = starts(start, &(0..seeds.len()).collect::<Vec<_>>());
        Garbling::new(terms, seeds, &starts, peer)
    }

    /// Garbles the next piece into `message`: its tables, or their combinations, and hashes what is to be
    /// committed to. `false` after the last.
    fn make(&mut self, terms: &Terms<'_>, message: &mut Vec<Block>, pass: Pass) -> bool {
        let Some(piece) = self.walk.next_piece(PIECE) else { return false };
        let lanes = terms.copies.total;
        self.gates += piece.ands as u64;
        let garbled = if self.encoder.is_some() { &mut self.room } else { &mut *message };
        self.garbling.garble(piece, garbled);
        deviate(|script| script.tables(lanes, garbled));
        let columns = match pass {
            Pass::Committing => self.hashes.rows(garbled),
            Pass::Again if self.encoder.is_none() => return true,
            Pass::Again => self.hashes.arrange(garbled),
        };
        // What is going to be made again is combined then.
        let dropped = matches!(pass, Pass::Committing) && self.made.is_none();
        if let Some(encoder) = self.encoder.as_mut().filter(|_| !dropped) {
            let combinations = encoder.piece(columns);
            let length = combinations.len() / terms.copies.evaluated;
            message.clear();
            combinations.chunks_exact(length).for_each(|c| message.extend_from_slice(tables_of(c)));
            deviate(|script| script.combination(message));
        }
        true
    }

    /// Makes the next piece of those to commit to, and keeps it if there is room. `false` after the last.
    fn make_held(&mut self, terms: &Terms<'_>) -> bool {
        let mut message = std::mem::take(&mut self.spare);
        if !self.make(terms, &mut message, Pass::Committing) {
            return false;
        }
        match &mut self.made {
            Some(made) if self.held + message.len() <= HELD => {
                self.held += message.len();
                made.push_back(message);
            }
            _ => (self.made, self.spare) = (None, message),
        }
        true
    }

    /// Makes pieces until something comes from P2.
    pub(super) fn make_ahead(&mut self, channel: &mut Channel, terms: &Terms<'_>) -> Result<()> {
        while !channel.has_come(1)? && self.make_held(terms) {}
        Ok(())
    }

    /// Makes what is left, and goes back to the first piece. Returns the hashes of the copies' tables, and
    /// the zero-labels of the outputs.
    pub(super) fn finish(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'f>,
        state: &GarblerState,
    ) -> Result<(Vec<Digest>, Blocks)> {
        loop {
            while self.told + BEAT <= self.gates {
                self.told += BEAT;
                channel.send(&[TABLES])?;
                channel.flush()?;
            }
            if !self.make_held(terms) {
                break;
            }
        }
        let z = self.garbling.outputs(terms, self.walk.outputs());
        if self.made.is_none() {
            let peer = peer_labels(terms, &state.seeds);
            self.garbling = Self::garbling(terms, &state.seeds, state.start, &peer);
            self.walk = terms.function.walk();
        }
        Ok((self.hashes.finish(), z))
    }

    /// The next piece's message, held or made anew; `None` after the last.
    fn next(&mut self, terms: &Terms<'_>) -> Option<Vec<Block>> {
        let mut message = match &mut self.made {
            Some(made) => made.pop_front()?,
            None => {
                let mut message = std::mem::take(&mut self.spare);
                self.make(terms, &mut message, Pass::Again).then_some(message)?
            }
        };
        deviate(|script| script.sent(&mut message));
        Some(message)
    }

    /// Step 5: sends tables until P2's opening is here, which they do not depend on.
    pub(super) fn send_early(&mut self, channel: &mut Channel, terms: &Terms<'_>) -> Result<()> {
        let mut sent = 0;
        loop {
            let mut more = sent < EARLY && !channel.has_come(OPENING)?;
            deviate(|script| script.early(&mut more));
            if !more {
                return Ok(());
            }
            let Some(message) = self.next(terms) else { return Ok(()) };
            sent += message.len();
            channel.send(&[TABLES])?;
            channel.send_blocks(&message)?;
            self.spare = message;
        }
    }

    /// Step 5: sends what is left of the tables.
    pub(super) fn send(mut self, channel: &mut Channel, terms: &Terms<'_>) -> Result<()> {
        while let Some(message) = self.next(terms) {
            channel.send_blocks(&message)?;
            self.spare = message;
        }
        Ok(())
    }
}

/// What P1 commits to before it sends tables, of all copies.
pub(super) struct Commitments {
    /// Hashes of the garbled tables.
    circuits: Vec<Digest>,
    /// Hashes of the output tables, by kind.
    pub(super) tables: Vec<Vec<Digest>>,
}

/// The garbled circuits as they come.
pub(super) struct Incoming<'f> {
    copies: Arriving,
    walk: Box<dyn Walk + 'f>,
    tables: Vec<Block>,
    garbled: Vec<Block>,
}

/// What becomes of the tables that come.
enum Arriving {
    /// The evaluation copies' are hashed. The check copies' hashes and zero-labels of the outputs are known.
    Whole { evaluated: Hashes, checked: Vec<Digest>, z: Blocks },
    /// The check copies are garbled, to solve for the others.
    Coded(Garbling, Box<Decoder>),
}

impl EvaluatorState {
    /// What P2 does while P1 makes its circuits, which it then commits to: garbles the check copies, of which
    /// `peer` are the zero-labels of P2's encoded input, and hashes them. With the coded transfer they are
    /// garbled when the combinations come, which take them.
    pub(super) fn circuits<'f>(
        &self,
        channel: &mut Channel,
        terms: &Terms<'f>,
        peer: &[Block],
    ) -> Result<(Incoming<'f>, Commitments)> {
        let oracle = &terms.oracle;
        let mut garbling = Garbling::new(terms, &self.seeds, &starts(self.start, &self.checked), peer);
        let mut checked = Hashes::of_circuits(oracle, self.checked.iter().copied());
        let (mut walk, mut garbled) = (terms.function.walk(), Vec::new());
        let (mut gates, mut told) = (0, 0);
        while let Some(piece) = walk.next_piece(PIECE) {
            gates += piece.ands as u64;
            if !terms.copies.coded() {
                garbling.garble(piece, &mut garbled);
                checked.rows(&garbled);
            }
            if told + BEAT <= gates {
                told += BEAT;
                channel.next_message();
                channel.recv(&mut [0])?;
            }
        }
        let mut known = Commitments { circuits: vec![[0; 32]; terms.copies.total], tables: Vec::new() };
        channel.recv(known.circuits.as_flattened_mut())?;
        for _ in terms.kinds() {
            let mut kind = vec![[0; 32]; terms.copies.total];
            channel.recv(kind.as_flattened_mut())?;
            known.tables.push(kind);
        }
        let copies = if terms.copies.coded() {
            Arriving::Coded(garbling, Box::new(Decoder::new(oracle, &self.evaluated, &self.checked)))
        } else {
            let z = garbling.outputs(terms, walk.outputs());
            let evaluated = Hashes::of_circuits(oracle, self.evaluated.iter().copied());
            Arriving::Whole { evaluated, checked: checked.finish(), z }
        };
        let incoming = Incoming { copies, walk: terms.function.walk(), tables: Vec::new(), garbled };
        Ok((incoming, known))
    }
}

impl Incoming<'_> {
    /// Steps 5 and 6 with the check of step 9 (b): the next piece, of which `kept` becomes the evaluation
    /// copies' tables; `None` after the last.
    pub(super) fn receive(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        state: &EvaluatorState,
        kept: &mut Vec<Block>,
    ) -> Result<Option<Piece<'_>>> {
        let Some(piece) = self.walk.next_piece(PIECE) else { return Ok(None) };
        let tables = &mut self.tables;
        tables.resize(piece.ands * terms.copies.tables() * 2, Block::ZERO);
        channel.recv_blocks(tables)?;
        kept.resize(piece.ands * state.evaluated.len() * 2, Block::ZERO);
        match &mut self.copies {
            Arriving::Whole { evaluated, .. } => {
                split(tables, &state.evaluated, &state.checked, kept);
                evaluated.rows(kept);
            }
            Arriving::Coded(garbling, decoder) => {
                garbling.garble(piece, &mut self.garbled);
                decoder.piece(tables, &self.garbled, kept);
            }
        }
        Ok(Some(piece))
    }

    /// The pieces that P1 sent before it had P2's opening, the evaluation copies' tables of each. They wait
    /// for labels.
    pub(super) fn receive_early(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        state: &EvaluatorState,
    ) -> Result<Vec<Vec<Block>>> {
        let (mut early, mut held) = (Vec::new(), 0);
        loop {
            let mut next = [0];
            channel.recv(&mut next)?;
            if next == [COMMITMENTS] {
                return Ok(early);
            }
            let mut kept = Vec::new();
            if next != [TABLES] || held >= EARLY || self.receive(channel, terms, state, &mut kept)?.is_none()
            {
                return cheated("more tables before P1's input than there are or may be");
            }
            held += self.tables.len();
            early.push(kept);
        }
    }

    /// Step 6: evaluates the pieces that came before P1's labels, and then the others as they come.
    pub(super) fn evaluate(
        &mut self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        state: &EvaluatorState,
        early: Vec<Vec<Block>>,
        evaluation: &mut Evaluation,
    ) -> Result<()> {
        let mut walk = terms.function.walk();
        for tables in &early {
            walk.next_piece(PIECE).into_iter().for_each(|piece| evaluation.piece(piece, tables));
        }
        drop((walk, early));
        let mut tables = Vec::new();
        while let Some(piece) = self.receive(channel, terms, state, &mut tables)? {
            evaluation.piece(piece, &tables);
        }
        Ok(())
    }

    /// The end of step 5 for the circuits: compares them with what was committed to. Returns the outputs'
    /// slots, and their zero-labels in the check copies.
    pub(super) fn finish(
        self,
        terms: &Terms<'_>,
        state: &mut EvaluatorState,
        known: &Commitments,
    ) -> (Vec<u32>, Blocks) {
        let slots = self.walk.outputs().to_vec();
        let (evaluated, checked, z) = match self.copies {
            Arriving::Whole { evaluated, checked, z } => (evaluated.finish(), checked, z),
            Arriving::Coded(garbling, decoder) => {
                let (evaluated, checked) = decoder.finish();
                (evaluated, checked, garbling.outputs(terms, &slots))
            }
        };
        let copies: Vec<usize> = state.evaluated.iter().chain(&state.checked).copied().collect();
        let found = evaluated.iter().chain(&checked);
        state.check_digests(found.zip(copies.iter().map(|&j| &known.circuits[j])));
        (slots, z)
    }
}
