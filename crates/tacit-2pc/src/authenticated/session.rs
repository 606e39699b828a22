//! A session: two parties, one Δ each, and correlated OT both ways.

use super::bits::Cots;
use super::buckets::{self, Level};
use super::demand::Demand;
use super::dependent::Terms;
use super::independent::{self, Independent, Room};
use super::oracle::Oracle;
use super::spent::Spent;
use super::stream::{InStream, Stream};
use super::stretch::{OfCircuit, OfProgram, Source};
use super::{DOMAIN, OTHER_INPUT, mismatch, usage};
use crate::circuit::Program;
use crate::{OutputTo, Owner, Prepared, Result};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::{Channel, LinkModel, Party};
use tacit_ot::{CotReceiver, CotSender};

/// One party's side of a session, over correlated OT in both directions.
///
/// `S` and `R` must be secure against malicious parties. This value is of no use after an error: a peer that
/// cheated may have learnt a bit of what the correlated OT keeps.
pub struct Session<S, R> {
    role: Owner,
    sender: S,
    receiver: R,
    extend: Extend<S, R>,
    prg: Prg,
    spent: Spent,
    room: Room,
    level: Level,
    fresh: bool,
}

/// Fills keys by what this party sends, and MACs by what it receives.
pub(super) type Extend<S, R> =
    fn(&mut Channel, Owner, (&mut S, Vec<&mut [Block]>), (&mut R, Vec<&mut [Block]>)) -> tacit_ot::Result<()>;

/// One direction after the other, the garbler receiving first.
fn in_turn<S: CotSender, R: CotReceiver>(
    channel: &mut Channel,
    role: Owner,
    (sender, mut keys): (&mut S, Vec<&mut [Block]>),
    (receiver, mut macs): (&mut R, Vec<&mut [Block]>),
) -> tacit_ot::Result<()> {
    let garbler = role == Owner::Garbler;
    for receives in [garbler, !garbler] {
        let parts = if receives { &mut macs } else { &mut keys };
        for part in parts.iter_mut().filter(|part| !part.is_empty()) {
            match receives {
                true => receiver.extend(channel, part)?,
                false => sender.extend(channel, part)?,
            }
        }
    }
    Ok(())
}

impl<S: CotSender, R: CotReceiver> Session<S, R> {
    /// A session of the party `role` over correlated OT that it sends and receives. The peer takes the other
    /// role and the other ends.
    pub fn new(role: Owner, sender: S, receiver: R, prg: &mut Prg) -> Self {
        Self::extended_by(role, sender, receiver, in_turn, prg)
    }

    /// [`new`](Self::new), where both directions are extended together by `extend`.
    pub(super) fn extended_by(
        role: Owner,
        sender: S,
        receiver: R,
        extend: Extend<S, R>,
        prg: &mut Prg,
    ) -> Self {
        let (prg, spent, room) = (prg.fork(), Spent::default(), Room::default());
        Session { role, sender, receiver, extend, prg, spent, room, level: Level::ALONE, fresh: true }
    }

    /// Makes what one run of the size `demand` needs, whatever the function.
    ///
    /// Errors: `Mismatch` when the peer has another role, version or demand; `Cheated` when a check failed;
    /// those of the correlated OT and the link.
    pub fn independent(&mut self, channel: &mut Channel, demand: Demand) -> Result<Independent> {
        self.prepare(channel, demand, None)
    }

    /// [`independent`](Self::independent), or a part of it that serves a stretch of a run.
    fn prepare(
        &mut self,
        channel: &mut Channel,
        demand: Demand,
        place: Option<&InStream>,
    ) -> Result<Independent> {
        self.spent.check()?;
        let made = self.make(channel, demand, place);
        self.spent.record(made)
    }

    fn make(
        &mut self,
        channel: &mut Channel,
        demand: Demand,
        place: Option<&InStream>,
    ) -> Result<Independent> {
        let oracle = self.agree(channel, demand, place)?;
        self.fresh = false;
        let Session { role, sender, receiver, extend, prg, room, level, spent, .. } = self;
        let delta = sender.delta();
        let mut extend = |channel: &mut Channel, keys: Vec<&mut [Block]>, macs: Vec<&mut [Block]>| {
            Ok(extend(channel, *role, (sender, keys), (receiver, macs))?)
        };
        let mut cots = Cots { delta, extend: &mut extend };
        let mut alone = room.alone();
        let room = if place.is_some() { room } else { &mut alone };
        independent::make(channel, *role, &mut cots, prg, (demand, *level), oracle, room, spent)
    }

    /// One run with everything in it: `input` are this party's input bits, input after input. Returns the
    /// outputs, one after the other, if this party learns them.
    ///
    /// Errors as those of the three phases.
    pub fn run(
        &mut self,
        channel: &mut Channel,
        function: &Prepared,
        output_to: OutputTo,
        input: &BitVec,
    ) -> Result<Option<BitVec>> {
        let outputs = self.run_rows(channel, function, output_to, std::slice::from_ref(input), || ())?;
        Ok(outputs.and_then(|mut outputs| outputs.pop()))
    }

    /// The same session over `link`, which both parties must say alike. Where it is long, enough of openings is on
    /// the way from the beginning, and large windows hold a row of triples more, 48 MB, for a check less.
    pub fn over(mut self, link: &LinkModel) -> Self {
        self.room.expect(link.delay());
        self
    }

    /// The same session as one of several of a job, which both parties must say alike: so much surer that all
    /// together are as sure as one alone.
    pub fn at(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Runs `function` on each of `rows`, this party's input bits of a run; both parties give as many.
    /// Returns the outputs of each row if this party learns them.
    ///
    /// As many rows as [fill a window of triples](Demand::rows_together) go through all phases side by side:
    /// many small runs take fewer bytes than alone, and the line's delay once. A function of more gates than a
    /// window's runs stretch by stretch, in bounded memory. `each` hears of every row that is done.
    ///
    /// Errors as those of the three phases.
    pub fn run_rows(
        &mut self,
        channel: &mut Channel,
        function: &Prepared,
        output_to: OutputTo,
        rows: &[BitVec],
        mut each: impl FnMut(),
    ) -> Result<Option<Vec<BitVec>>> {
        let one = Demand::of(function);
        if rows.iter().any(|input| input.len() != one.inputs(self.role)) {
            return usage(OTHER_INPUT);
        }
        if one.ands > buckets::WINDOW {
            let terms = Terms::of(function, output_to);
            let mut outputs = Vec::with_capacity(rows.len());
            for input in rows {
                outputs.extend(self.run_stream(
                    channel,
                    OfCircuit::new(function, self.level),
                    &terms,
                    input,
                    |_| (),
                )?);
                each();
            }
            return Ok(output_to.learned_by(self.role).then_some(outputs));
        }
        let mut outputs = Vec::with_capacity(rows.len());
        for rows in rows.chunks(one.rows_together()) {
            let independent = self.independent(channel, one.times(rows.len()))?;
            outputs.extend(independent.run_rows(channel, function, output_to, rows)?);
            rows.iter().for_each(|_| each());
        }
        Ok(output_to.learned_by(self.role).then_some(outputs))
    }

    pub(super) fn role(&self) -> Owner {
        self.role
    }

    /// Whether it has made nothing yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Runs a program as it is made, whatever its length: memory holds one stretch of it, at most 500,000 AND
    /// gates as a rule. `input` are this party's input bits, input after input; `progress` hears of the AND
    /// gates that are done. Returns the outputs, one after the other, if this party learns them.
    ///
    /// Every stretch has its own triples, tables and checks, of both parties, before the next one begins.
    ///
    /// Errors as those of the three phases.
    pub fn run_program<P: Program>(
        &mut self,
        channel: &mut Channel,
        program: P,
        owners: &[Owner],
        output_to: OutputTo,
        input: &BitVec,
        progress: impl FnMut(u64),
    ) -> Result<Option<BitVec>> {
        let source = OfProgram::new(program);
        if owners.len() != source.shape().inputs.len() {
            return usage("one owner an input");
        }
        let ours = owners.iter().zip(&source.shape().inputs).filter(|(owner, _)| **owner == self.role);
        if ours.map(|(_, &width)| width as usize).sum::<usize>() != input.len() {
            return usage(OTHER_INPUT);
        }
        let mut transcript = Transcript::new(DOMAIN);
        transcript.append("program", source.identity().as_bytes());
        for (label, widths) in [("inputs", &source.shape().inputs), ("outputs", &source.shape().outputs)] {
            transcript.append_u64(label, widths.len() as u64);
            widths.iter().for_each(|&width| transcript.append_u64("width", width.into()));
        }
        let mut digest = [0u8; 32];
        transcript.challenge_bytes("program", &mut digest);
        self.run_stream(
            channel,
            source,
            &Terms { kind: "program", digest, owners, output_to, rows: 1 },
            input,
            progress,
        )
    }

    /// Runs stretch by stretch.
    fn run_stream(
        &mut self,
        channel: &mut Channel,
        mut source: impl Source,
        terms: &Terms<'_>,
        input: &BitVec,
        mut progress: impl FnMut(u64),
    ) -> Result<Option<BitVec>> {
        let (mut stream, mut done) = (Stream::new(self.role, source.shape().clone(), terms), 0);
        while source.advance() {
            let stretch = source.stretch();
            let place = stream.place(source.is_last());
            let mut independent = self.prepare(channel, stream.demand(stretch.ands()), Some(&place))?;
            self.spent.record(stream.stretch(channel, &stretch, &mut independent, input))?;
            self.room.put(&mut independent);
            done += stretch.ands() as u64;
            progress(done);
        }
        self.spent.record(stream.end(channel, source.outputs()))
    }

    /// Compares role, version and demand, and draws what hashes are bound to from both parties' random bytes.
    fn agree(&mut self, channel: &mut Channel, demand: Demand, place: Option<&InStream>) -> Result<Oracle> {
        let garbler = self.role == Owner::Garbler;
        let mut transcript = Transcript::new(DOMAIN);
        transcript.append("session", &channel.session_id().0);
        transcript.append_u64("instance", channel.next_instance());
        let first = (channel.party() == Party::First) == garbler;
        transcript.append_u64("first party garbles", first as u64);
        transcript.append_u64("ands", demand.ands as u64);
        transcript.append_u64("garbler's inputs", demand.garbler_inputs as u64);
        transcript.append_u64("evaluator's inputs", demand.evaluator_inputs as u64);
        transcript.append_u64("far", self.room.is_far() as u64);
        transcript.append_u64("bits of security", self.level.bits().into());
        if let Some(place) = place {
            place.append(&mut transcript);
        }
        // Role, digest, random bytes.
        let mut mine = [0u8; 65];
        mine[0] = garbler as u8;
        transcript.challenge_bytes("terms", &mut mine[1..33]);
        self.prg.fill_bytes(&mut mine[33..]);
        channel.send(&mine)?;
        let mut theirs = [0u8; 65];
        channel.recv(&mut theirs)?;
        if theirs[0] == mine[0] {
            return mismatch("who garbles and who evaluates");
        }
        if theirs[1..33] != mine[1..33] {
            return mismatch(
                "the protocol's version, the numbers of gates, inputs and sessions, the link, or the session",
            );
        }
        let (of_garbler, of_evaluator) = if garbler { (&mine, &theirs) } else { (&theirs, &mine) };
        transcript.append("garbler's random bytes", &of_garbler[33..]);
        transcript.append("evaluator's random bytes", &of_evaluator[33..]);
        let mut oracle = Oracle([0; 32]);
        transcript.challenge_bytes("oracle", &mut oracle.0);
        Ok(oracle)
    }
}
