//! A run as both sides play it, from the agreement to the signatures.

use crate::json::hex;
use crate::records::{self, Begun, COMMON};
use crate::terms::{Offer, Side};
use crate::wire::{self, Close, Message};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tacit::crypto::text::counted;
use tacit::data::records::KeySet;
use tacit::job::psi::{Aggregate, AggregateOutcome, Found, Gift, Job, Revealed};
use tacit::job::query::{self, Answer};
use tacit::job::tags::Answers;
use tacit::job::{Observer, Ran};
use tacit::net::{Agreement, Channel, PublicKey, Session, Stats};
use tacit::{Error, Result, Security};
use zeroize::Zeroizing;

/// What a side brings to its run.
pub(crate) struct Part<'a> {
    /// The terms.
    pub offer: &'a Offer,
    /// The run as this side plays it.
    pub job: &'a Job,
    /// Its keys.
    pub keys: &'a KeySet,
    /// What it gives.
    pub gift: Gift<'a>,
    /// The other side's distinct keys, as announced.
    pub peer_keys: u64,
}

/// What a run gave.
pub(crate) struct Played {
    /// The result.
    pub revealed: Revealed,
    /// From the agreement to the result.
    pub wall: Duration,
    /// What passed, the request included.
    pub stats: Stats,
}

/// Agrees on the run. Until this has returned, nothing of a side's table has left but the number of its keys
/// and a commitment to it.
pub(crate) fn agree(session: &mut Session, agreement: &Agreement) -> Result<()> {
    Ok(session.agree_anew(agreement)?)
}

/// The outcome of a run that ended without the other side's signature.
pub(crate) fn unsigned(side: Side) -> String {
    format!("not signed by the {}", side.other().name())
}

/// Makes the run.
///
/// Errors: as [`Job::run_with`], and if the other side ran with another number of keys than it announced.
pub(crate) fn run(session: &mut Session, part: &Part<'_>, observer: &dyn Observer) -> Result<Played> {
    let start = Instant::now();
    let base = tacit::ot::base_ot(Some(&part.offer.base_ot), part.job.security)?;
    let elements = part.keys.elements();
    let job = Job { peer_keys: Some(part.peer_keys), ..part.job.clone() };
    let revealed = job.run_with(session.channels(), &*base, elements, part.gift, part.peer_keys, observer)?;
    is_as_announced(part.peer_keys, revealed.peer_keys())?;
    Ok(Played { revealed, wall: start.elapsed(), stats: session.stats() })
}

/// What a side brings to the run of a question.
pub(crate) struct Asking<'a> {
    /// The terms.
    pub offer: &'a Offer,
    /// The run as this side plays it.
    pub job: &'a query::Job,
    /// Its keys.
    pub keys: &'a KeySet,
    /// What its rows put in.
    pub rows: &'a query::Rows,
    /// The other side's distinct keys, as announced.
    pub peer_keys: u64,
}

/// Answers a question.
///
/// Errors: as [`query::Job::run`], and if the other side ran with another number of keys than it announced.
pub(crate) fn answer(
    session: &mut Session,
    asking: &Asking<'_>,
    observer: &dyn Observer,
) -> Result<Ran<Answer>> {
    let start = Instant::now();
    let base = tacit::ot::base_ot(Some(&asking.offer.base_ot), Security::SemiHonest)?;
    let (elements, announced) = (asking.keys.elements(), asking.peer_keys);
    let result = asking.job.run(session.channels(), &*base, elements, asking.rows, announced, observer)?;
    is_as_announced(announced, result.peer_keys)?;
    Ok(Ran { result, wall: start.elapsed(), stats: session.stats() })
}

fn is_as_announced(announced: u64, ran: u64) -> Result<()> {
    match ran == announced {
        true => Ok(()),
        false => {
            Err(Error::Peer(format!("the peer announced {} and ran with {ran}", counted(announced, "key"))))
        }
    }
}

/// What a side commits to where its result is the elements at these places of its keys, which ascend.
///
/// The other side waits for the commitment, so all keys are sorted and hashed, those that are not meant by
/// themselves: it takes as long whatever matches.
pub(crate) fn matched(keys: &KeySet, places: &[u32]) -> Value {
    let mut next = 0;
    let mut all: Vec<([u8; 32], u8)> = Vec::with_capacity(keys.elements().len());
    for (at, element) in (0u32..).zip(keys.elements()) {
        let is_found = places.get(next).is_some_and(|place| *place == at);
        next += usize::from(is_found);
        all.push((*element, u8::from(is_found)));
    }
    all.sort_unstable();
    let (mut found, mut others) = (vec![[0; 32]; all.len() + 1], vec![[0; 32]; all.len() + 1]);
    let mut len = 0;
    for (at, (element, is_found)) in all.iter().enumerate() {
        (found[len], others[at - len]) = (*element, *element);
        len += usize::from(*is_found);
    }
    let hash = blake3::hash(found[..len].as_flattened());
    std::hint::black_box(blake3::hash(others[..all.len() - len].as_flattened()));
    json!({ "matches": len, "elements": hex(hash.as_bytes()) })
}

/// What a client commits to as its result of lookups: the tags that it was answered, in the order of its keys.
/// With the file of tags they are its result, but the places in the file where they are looked up depend on them,
/// and the service waits for the commitment.
pub(crate) fn answered(keys: &KeySet, answers: &Answers) -> Value {
    let mut all: Zeroizing<Vec<[u8; 48]>> = Zeroizing::new(Vec::with_capacity(keys.elements().len()));
    for (element, tag) in keys.elements().iter().zip(answers.tags()) {
        let mut both = [0; 48];
        both[..32].copy_from_slice(element);
        both[32..].copy_from_slice(&tag.to_be_bytes());
        all.push(both);
    }
    all.sort_unstable();
    json!({ "keys": all.len(), "tags": hex(blake3::hash(all.as_flattened()).as_bytes()) })
}

/// What a side commits to as its result; nothing where it got none.
pub(crate) fn summary(keys: &KeySet, revealed: &mut Revealed) -> Option<Value> {
    if let Some(places) = revealed.matches(keys.elements().len()) {
        return Some(matched(keys, &places));
    }
    match revealed {
        Revealed::Rows(..) | Revealed::Payload(_) | Revealed::Kept(_) => None,
        Revealed::Aggregate(AggregateOutcome { result, .. }) => result.as_ref().map(|found| match found {
            Aggregate::Withheld => json!({ "withheld": true }),
            Aggregate::Count(count) => json!({ "count": count }),
            Aggregate::Sum(sum) => json!({ "sum": sum.to_string() }),
            Aggregate::Mean { sum, rows } => json!({ "sum": sum.to_string(), "rows": rows }),
        }),
        // A service takes no function of the client's.
        Revealed::Total(..) => None,
        Revealed::Statistic(found, _) => found.as_ref().map(|found| match found {
            Found::Withheld => json!({ "withheld": true }),
            Found::Nothing => json!({ "number": null }),
            Found::Number(number) => json!({ "number": number.to_string() }),
        }),
    }
}

/// Ends the run: both tell their commitments to their results, and sign the common part. The client goes
/// first.
///
/// Returns the other side's signature.
pub(crate) fn close(
    session: &mut Session,
    side: Side,
    begun: &mut Begun,
    result: Option<&Value>,
    peer: &PublicKey,
) -> Result<String> {
    let own = result.map(|result| begun.commit(result)).transpose()?;
    let theirs = exchange(session, side, &Message::Close(Close { result: own.clone() }))?;
    let Message::Close(Close { result: theirs }) = theirs else { return Err(wire::out_of_turn()) };
    if theirs.as_ref().is_some_and(|text| crate::json::from_hex::<32>(text).is_none()) {
        return Err(wire::out_of_turn());
    }
    begun.common[side.name()]["result"] = json!(own);
    begun.common[side.other().name()]["result"] = json!(theirs);
    begun.common["outcome"] = json!("complete");
    let signed = begun.sign()?;
    let check = |theirs: &Message| -> Result<String> {
        let Message::Signature(text) = theirs else { return Err(wire::out_of_turn()) };
        let fault = "the peer's signature on the record is not valid; compare both sides' records";
        match records::is_signed(peer, COMMON, &begun.common, text)? {
            true => Ok(text.clone()),
            false => Err(Error::Peer(fault.into())),
        }
    };
    signatures(session.channel(), side, &Message::Signature(signed), check)
}

/// Both sides' signatures, of which the other's is returned once `check` takes it.
fn signatures(
    channel: &mut Channel,
    side: Side,
    ours: &Message,
    check: impl Fn(&Message) -> Result<String>,
) -> Result<String> {
    match side {
        Side::Client => {
            wire::send(channel, ours)?;
            check(&wire::receive(channel, wire::PROMPT)?.0)
        }
        // Ours goes to who has given its own.
        Side::Service => {
            let theirs = check(&wire::receive(channel, wire::PROMPT)?.0)?;
            // A client that leaves right after signing has signed.
            let _ = wire::send(channel, ours);
            Ok(theirs)
        }
    }
}

/// Time for the close of a side that still writes its result.
const SLOWER: Duration = Duration::from_secs(600);

fn exchange(session: &mut Session, side: Side, ours: &Message) -> Result<Message> {
    let channel = session.channel();
    match side {
        Side::Client => {
            wire::send(channel, ours)?;
            Ok(wire::receive(channel, SLOWER)?.0)
        }
        Side::Service => {
            let theirs = wire::receive(channel, SLOWER)?.0;
            wire::send(channel, ours)?;
            Ok(theirs)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit::net::memory;

    /// The client signs and is gone before the service has answered: it has signed.
    #[test]
    fn a_signature_counts_though_its_owner_does_not_wait_for_the_other() {
        let (mut service, mut client) = memory::pair();
        wire::send(&mut client, &Message::Signature("5".into())).unwrap();
        drop(client);
        let check = |theirs: &Message| match theirs {
            Message::Signature(text) => Ok(text.clone()),
            _ => Err(wire::out_of_turn()),
        };
        let ours = Message::Signature("7".into());
        assert_eq!(signatures(&mut service, Side::Service, &ours, check).unwrap(), "5");
        assert!(wire::send(&mut service, &ours).is_err(), "the client is there yet");
    }
}
