//! Rows side by side on XOR shares, by the messages of [`tacit_2pc::batch`].

use super::cost::{Candidate, Link, Machine, SETUP_BYTES, SETUP_POINTS};
use super::evaluation::{Cost, EvalRequest, Evaluation};
use super::{Assumption, Choice, Entry, Kind, Pick, Runs, extensions, protocol};
use crate::limits::Limit;
use crate::{Error, Result};
use std::time::Duration;
use tacit_2pc::batch::Layout;
use tacit_2pc::batch::fold::Fold;
use tacit_2pc::{OutputTo, Owner};
use tacit_ot::Security;

/// GMW on XOR shares, with triples out of OT both ways.
pub static BATCH: Entry = Entry {
    name: "batch",
    security: Security::SemiHonest,
    assumptions: &[Assumption::IdealCipher],
    needs_base_ot: true,
    instead: "",
    note: "",
    // Of a triple three hashes, under keys that many share.
    floor: |_| vec![(Limit::AesFixed, 3.0)],
    runs: Runs::Computation(&Evaluation {
        // Only where it is asked for by name: nothing else settles on it.
        ways: |request| match request.protocol {
            Some("batch") => cost(request).into_iter().collect(),
            _ => Vec::new(),
        },
    }),
};

/// On the reference machine, in nanoseconds: a run, an AND gate beside its triple, a bit of an input or output, and a
/// message.
const SHARED_RUN_NS: f64 = 0.3e6;
const SHARED_GATE_NS: f64 = 1.5;
const SHARED_BIT_NS: f64 = 1.5;
const OPENING_NS: f64 = 4_000.0;

/// The link for which correlated OT is picked, wherever the run is: both sides come to the same without measuring, and
/// a gate takes less than 1.2 bytes.
const LINK: Link = Link { megabits: 250.0, round_trip: Duration::from_millis(1) };

/// The correlated OT of one direction for so many triples on each of the threads, by the OT extension called `ot` where
/// one is asked for.
pub(crate) fn transfers(triples: u64, ot: Option<&str>) -> Result<Pick> {
    let (count, security) = (triples.max(1), Security::SemiHonest);
    protocol(ot.unwrap_or("auto"), security)?;
    let named = extensions().filter(|entry| ot.is_none_or(|name| name == entry.name));
    let all = named.flat_map(|entry| entry.ways(count, security, &Choice::default()));
    let time = |pick: &Pick| pick.predict((count, Kind::Rot, security, 1), &LINK, &Machine::REFERENCE).time;
    let none = || Error::Other("no OT extension makes triples".into());
    all.min_by_key(time).ok_or_else(none)
}

/// `None` where `request` names an OT extension that there is not.
fn cost(request: &EvalRequest) -> Option<Cost> {
    let EvalRequest { ands, inputs, outputs, rows, output_to, .. } = *request;
    let threads = request.threads.max(1) as u64;
    let each = rows.div_ceil(threads);
    let layout = Layout::estimated([ands, request.levels, request.width], inputs[0] + inputs[1], each);
    let triples = ands.saturating_mul(each).div_ceil(64).saturating_mul(64);
    let pick = transfers(triples, request.ot).ok()?;
    // One direction, without its base OTs.
    let near = Link { megabits: f64::INFINITY, round_trip: Duration::ZERO };
    let reference = &Machine::REFERENCE;
    let direction = match triples {
        0 => None,
        _ => Some(pick.predict((triples, Kind::Rot, Security::SemiHonest, 1), &near, reference)),
    };
    let ns =
        direction.as_ref().map_or(0.0, |one| one.time.as_secs_f64() * 1e9 - SETUP_POINTS * reference.point);
    let of_ots = direction.as_ref().map_or(0.0, |one| one.bytes as f64 - SETUP_BYTES);
    let trips = direction.as_ref().map_or(0, |one| one.rounds);
    let side = |role| {
        let opened = layout.opened(role, output_to, outputs) as f64;
        // A frame's head for each message.
        threads as f64 * (49.0 + FRAME + of_ots + opened + FRAME * layout.messages() as f64)
    };
    let bits = (inputs[0] + inputs[1] + outputs) as f64;
    Some(Cost {
        copies: None,
        ns: SHARED_RUN_NS
            + 2.0 * ns
            + layout.messages() as f64 * OPENING_NS
            + each as f64 * (ands as f64 * SHARED_GATE_NS + bits * SHARED_BIT_NS),
        bytes: [side(Owner::Garbler), side(Owner::Evaluator)],
        // Both sides send a level's openings at the same time, so it takes one way, and not there and back.
        trips: 2.0 * trips as f64 + 0.5 * layout.rounds() as f64 + 2.0,
        early: [0.0; 2],
        both_ways: true,
    })
}

/// What `fold` costs on shares that there are.
pub(crate) fn of_fold(fold: &Fold, link: &Link, machine: &Machine) -> Result<Candidate> {
    let triples = fold.triples();
    let near = Link { megabits: f64::INFINITY, round_trip: Duration::ZERO };
    let direction =
        transfers(triples, None)?.predict((triples, Kind::Rot, Security::SemiHonest, 1), &near, machine);
    let opened = [Owner::Garbler, Owner::Evaluator].map(|role| fold.opened(role, OutputTo::Both));
    let heads = 2.0 * FRAME * fold.messages() as f64;
    let bytes = 2.0 * direction.bytes as f64 + opened.iter().sum::<u64>() as f64 + heads;
    // Both sides send a level's openings at the same time.
    let trips = 2.0 * direction.rounds as f64 + 0.5 * fold.rounds() as f64;
    let nanoseconds = SHARED_RUN_NS
        + 2e9 * direction.time.as_secs_f64()
        + fold.messages() as f64 * OPENING_NS
        + triples as f64 * SHARED_GATE_NS
        + link.pass(bytes)
        + link.wait(trips);
    // A party waits for the other's openings in each round.
    let rounds = 2 * direction.rounds + fold.rounds();
    let candidate = BATCH.candidate(Security::SemiHonest, nanoseconds, bytes as u64, rounds);
    Ok(Candidate { base_batches: 2, ..candidate })
}

/// Bytes of a frame's head.
const FRAME: f64 = 4.0;
