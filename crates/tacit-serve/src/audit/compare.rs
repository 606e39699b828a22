//! What one side's chain shows of the other's: every run that both took part in, with the same common part,
//! and heads that move on.

use super::{Chain, Line, Record};
use crate::records::NO_HEAD;
use crate::terms::Side;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use tacit::net::{PublicKeys, shown};
use tacit::{Error, Result};

/// Runs that may end side by side without one's record being in the head that the next names.
const ENDING_AT_ONCE: usize = 16;

/// One party's chain, and the keys that are known to be its own.
#[derive(Clone, Copy, Debug)]
pub struct Party<'a> {
    /// Its records.
    pub chain: &'a Chain,
    /// Its keys, each with those that followed it. With none, every record of the other side is taken to be
    /// about this party.
    pub keys: &'a [PublicKeys],
    /// Names in its certificates: with those it may sign its records by another key in each run. Names that a record
    /// of one of its keys holds count too, and those that its own chain says are its own.
    pub certificates: &'a [String],
    /// How messages call it, such as `the records` and `the other side's records`.
    pub name: &'a str,
}

/// What a comparison of two chains found.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Compared {
    /// Runs that are in both.
    pub runs: usize,
    /// Those that a record says were interrupted: the side's process ended.
    pub interrupted: usize,
    /// Those with both final signatures in one chain and not in the other, which has them as interrupted, or, where
    /// it is the client's, as not signed by the service, which signs last.
    pub excused: usize,
}

/// Compares two parties' chains: what either shows of the other must be there, with the same common part, up
/// to the latest head that it saw.
///
/// Errors: a run that one shows to have been signed by the other and that the other lacks; common parts that
/// differ, signed or not; a run that was signed by both in one chain and is no longer so in the other; heads
/// that a chain does not have, or that do not move on. No run in common is an error too.
pub fn compare(one: Party<'_>, other: Party<'_>) -> Result<Compared> {
    if one.chain.lines().is_empty() || other.chain.lines().is_empty() {
        let empty = if one.chain.lines().is_empty() { one.name } else { other.name };
        return Err(Error::Input(format!("{empty} are empty; nothing was compared")));
    }
    let found = check(one, other)?;
    check(other, one)?;
    match found.runs {
        0 => Err(Error::Input(format!(
            "no run is in {} and in {}; nothing was compared: is it the chain of that party?",
            one.name, other.name
        ))),
        _ => Ok(found),
    }
}

impl Party<'_> {
    /// The names in certificates that are this party's, by what is given, its own chain and that of `witness`.
    fn names(&self, witness: &Chain) -> BTreeSet<String> {
        let own = self.chain.records().filter_map(|record| record.certificate_of(record.side));
        let shown = witness.records().filter(|record| self.has_key(record));
        let shown = shown.filter_map(|record| record.certificate_of(record.side.other()));
        self.certificates.iter().map(String::as_str).chain(own).chain(shown).map(str::to_owned).collect()
    }

    fn has_key(&self, record: &Record) -> bool {
        self.keys.iter().any(|keys| keys.contains(&record.peer))
    }
}

/// Checks the party's chain by what `witness` shows of it.
fn check(party: Party<'_>, witness: Party<'_>) -> Result<Compared> {
    let names = party.names(witness.chain);
    let is_named = |record: &Record| {
        let name = record.certificate_of(record.side.other());
        name.is_some_and(|name| names.contains(name))
    };
    let is_anyone = party.keys.is_empty() && party.certificates.is_empty();
    let places: HashMap<&str, (usize, &Record)> =
        party.chain.placed().map(|(at, record)| (record.run(), (at, record))).collect();
    let fault = |record: &Record, what: String| {
        let who = record.peer.fingerprint();
        Error::Input(format!("run {} with the key {who}: {what}", shown(record.run())))
    };
    let (mut seen, mut found) = (Vec::new(), Compared::default());
    for (at, record) in witness.chain.placed() {
        if !(is_anyone || party.has_key(record) || is_named(record)) {
            continue;
        }
        match places.get(record.run()) {
            Some((place, own)) => {
                let is_excused = agree(own, record).map_err(|what| fault(record, what))?;
                found.runs += 1;
                found.excused += usize::from(is_excused);
                found.interrupted += usize::from(is_interrupted(own) || is_interrupted(record));
                seen.push((at, *place, record));
            }
            None if record.both_signed || record.both_began => {
                let what = format!(
                    "it is missing in {}: records were removed, or the chain was truncated; if that key is \
                     another party's, name the keys of both parties",
                    party.name
                );
                return Err(fault(record, what));
            }
            // What one side alone says shows nothing of the other's chain.
            None => {}
        }
    }
    heads(party, witness, &seen).map_err(|(record, what)| fault(record, what))?;
    Ok(found)
}

fn is_interrupted(record: &Record) -> bool {
    record.outcome() == "interrupted"
}

/// Whether two records of a run are of the same run: the common parts are the same, whoever signed them. True if one
/// of them may lack the signatures of the end that the other has.
fn agree(own: &Record, shown: &Record) -> std::result::Result<bool, String> {
    if own.side != shown.side.other() {
        return Err("both records are of the same side".into());
    }
    let (mut left, mut right) = (own.value["common"].clone(), shown.value["common"].clone());
    if !(own.both_signed && shown.both_signed) {
        // A side that did not get to the end knows less of it, and says so.
        (left["outcome"], right["outcome"]) = (Value::Null, Value::Null);
        for side in [Side::Service, Side::Client] {
            let name = side.name_in(&left["version"]);
            if left[name]["result"].is_null() || right[name]["result"].is_null() {
                (left[name]["result"], right[name]["result"]) = (json!(null), json!(null));
            }
        }
    }
    if left != right {
        return Err("its common parts differ: one side changed its record".into());
    }
    // The service signs the end last: what it has both signatures of, the client may have lost, and never the converse.
    let may_lack = |one: &Record| {
        let is_unsigned = one.side == Side::Client && one.outcome().starts_with("not signed by");
        is_interrupted(one) || is_unsigned
    };
    match [(own, shown), (shown, own)].into_iter().find(|(one, other)| other.both_signed && !one.both_signed)
    {
        Some((one, _)) if may_lack(one) => Ok(true),
        Some(_) => Err("both sides signed it, but one record says that it was not completed".into()),
        None => Ok(false),
    }
}

/// Checks the heads of the party's chain that the witness's records name: the chain has them, before the
/// record itself, and they move on as records are added. `seen` are the common runs: their place in the
/// witness's chain, in the party's, and the witness's record, in the order of the witness's chain.
fn heads<'r>(
    party: Party<'_>,
    witness: Party<'_>,
    seen: &[(usize, usize, &'r Record)],
) -> std::result::Result<(), (&'r Record, String)> {
    // How many records a chain had when its head was this one.
    let lengths = |chain: &Chain| -> HashMap<[u8; 32], usize> {
        let heads = chain.lines().iter().map(Line::head).enumerate();
        heads.map(|(at, head)| (head, at + 1)).chain([(NO_HEAD, 0)]).collect()
    };
    let (own, others) = (lengths(party.chain), lengths(witness.chain));
    let ends = behind(seen);
    for (_, place, record) in seen {
        let side = record.side.other();
        let Some(length) = record.head_named(side).and_then(|head| own.get(&head)) else {
            let what = "lack the head that it names: records were removed, or the chain was truncated";
            return Err((record, format!("{} {what}", party.name)));
        };
        // Records that the witness had when this run began: by then the party had them too, but for those
        // that ended just then.
        let before = record.head_named(record.side).and_then(|head| others.get(&head)).copied().unwrap_or(0);
        let at = ends.partition_point(|(end, _)| *end < before);
        let late = at.checked_sub(1).and_then(|at| ends[at].1);
        if length > place || late.is_some_and(|late| late >= *length) {
            let what =
                "name a head that is older or newer than the run: their chain was restarted or changed";
            return Err((record, format!("{} {what}", party.name)));
        }
    }
    Ok(())
}

/// For each run that both signed, its place in the witness's chain, and the place in the party's that all but
/// [`ENDING_AT_ONCE`] of those so far are at or before.
fn behind(seen: &[(usize, usize, &Record)]) -> Vec<(usize, Option<usize>)> {
    let mut last = BinaryHeap::new();
    let signed = seen.iter().filter(|(.., record)| record.both_signed);
    signed
        .map(|(at, place, _)| {
            last.push(Reverse(*place));
            if last.len() > ENDING_AT_ONCE + 1 {
                last.pop();
            }
            let least = last.peek().filter(|_| last.len() > ENDING_AT_ONCE).map(|Reverse(place)| *place);
            (*at, least)
        })
        .collect()
}
