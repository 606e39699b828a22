//! Runs stretch by stretch: what is left of one stretch for the next are masks, labels and masked values of
//! the wires between them.
//!
//! A stretch goes through all phases before the next one begins. What a party sees of later stretches'
//! preparations it sees after inputs were used, which changes nothing: triples and masks are made of fresh
//! randomness, and a check that fails there fails or not whatever the inputs are.

use super::bits::Share;
use super::demand::Demand;
use super::dependent::{Party, Terms, Wires, agree, multiply};
use super::independent::Independent;
use super::masked::{Begin, End};
use super::online::Online;
use super::oracle::Oracle;
use super::stretch::Stretch;
use super::{OTHER_INPUT, usage};
use crate::circuit::Shape;
use crate::{Owner, Result};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Block};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

/// Which stretch of which run a preparation is for.
pub(super) struct InStream {
    number: u64,
    last: bool,
    /// What the run's hashes are bound to, from the second stretch on.
    run: Option<Oracle>,
}

impl InStream {
    /// Adds it to what the parties compare.
    pub(super) fn append(&self, transcript: &mut Transcript) {
        transcript.append_u64("stretch", self.number);
        transcript.append_u64("the last", self.last as u64);
        if let Some(run) = &self.run {
            transcript.append("run", &run.0);
        }
    }
}

/// One party's side of a run, between stretches.
pub(super) struct Stream<'a> {
    role: Owner,
    shape: Shape,
    terms: &'a Terms<'a>,
    /// Stretches so far.
    number: u64,
    state: Option<State>,
}

struct State {
    delta: Block,
    /// What hashes are bound to that are those of the whole run.
    oracle: Oracle,
    wires: Wires,
    online: Online,
}

impl Drop for State {
    fn drop(&mut self) {
        self.delta.zeroize();
    }
}

impl<'a> Stream<'a> {
    pub(super) fn new(role: Owner, shape: Shape, terms: &'a Terms<'a>) -> Self {
        Stream { role, shape, terms, number: 0, state: None }
    }

    /// The next stretch's place.
    pub(super) fn place(&self, last: bool) -> InStream {
        InStream { number: self.number, last, run: self.state.as_ref().map(|state| state.oracle.clone()) }
    }

    /// What a stretch of `ands` gates takes, the first one with the inputs.
    pub(super) fn demand(&self, ands: usize) -> Demand {
        let bits = |owner: Owner| -> usize {
            let inputs = self.shape.inputs.iter().zip(self.terms.owners);
            inputs.filter(|(_, o)| **o == owner).map(|(&width, _)| width as usize).sum()
        };
        match self.state {
            Some(_) => Demand { ands, garbler_inputs: 0, evaluator_inputs: 0 },
            None => {
                let [garbler_inputs, evaluator_inputs] = [Owner::Garbler, Owner::Evaluator].map(bits);
                Demand { ands, garbler_inputs, evaluator_inputs }
            }
        }
    }

    /// The second and the last phase of a stretch.
    pub(super) fn stretch(
        &mut self,
        channel: &mut Channel,
        stretch: &Stretch<'_>,
        prepared: &mut Independent,
        input: &BitVec,
    ) -> Result<()> {
        let (role, delta) = (self.role, prepared.delta);
        let party = Party { garbler: role == Owner::Garbler, delta, ahead: prepared.ahead };
        let function = (&self.shape, self.terms.owners);
        let ands = stretch.ands();
        // The first stretch's preparation is bound to the function, the others are to the first.
        let mut first = None;
        let (oracle, wires) = match &mut self.state {
            Some(state) => (prepared.oracle.clone(), &mut state.wires),
            None => {
                let oracle = agree(channel, &prepared.oracle, self.terms)?;
                let wires = first.insert(Wires::new(function, role));
                wires.begin(0, ands, &prepared.masks);
                (oracle, wires)
            }
        };
        let (gates, masks) = (prepared.gates.gates_mut(), &prepared.masks);
        prepared.ahead = multiply(channel, &oracle, party, stretch, gates, masks, wires)?;
        if let Some(wires) = first {
            let macs = &prepared.masks.macs[ands..];
            let Some(begin) = Begin::new(delta, &oracle, function, role, (1, prepared.ahead), macs, input)
            else {
                return usage(OTHER_INPUT);
            };
            let mut online = Online::begin(role, begin, channel, &mut prepared.prg)?;
            online.begin_row(0);
            self.state = Some(State { delta, oracle: oracle.clone(), wires, online });
        }
        let gates = prepared.gates.gates().part(0..ands);
        if let Some(state) = &mut self.state {
            state.online.stretch(channel, stretch, gates, &oracle)?;
        }
        self.number += 1;
        Ok(())
    }

    /// The outputs, which are in `slots`, if this party learns them.
    pub(super) fn end(mut self, channel: &mut Channel, slots: &[u32]) -> Result<Option<BitVec>> {
        let Some(state) = &mut self.state else { return usage("a run has a stretch at least") };
        let masks: Zeroizing<Vec<Share>> = state.wires.of(slots);
        let end = End {
            delta: state.delta,
            oracle: &state.oracle.clone(),
            output_to: self.terms.output_to,
            masks: &masks,
        };
        state.online.end_row(slots);
        state.online.end(end, channel)
    }
}
