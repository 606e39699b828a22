//! Parsers of this module and of a run's checkpoints that are not public, as functions of bytes that panic where
//! something does not hold of what was read: for `tacit-fuzz`.

use super::super::buckets::checkpoint;
use super::super::buckets::kept::Sealed;
use super::state::{FORM, PLAN, PROGRESS, State, context};
use super::words::{
    EVENT, Event, Head, LENGTH_OF_HEAD, Reader, Reply, Request, Terms, Writer, decode, encode,
};
use super::{Given, Planned, given};
use crate::Result;
use std::path::Path;
use std::sync::Arc;
use tacit_crypto::{Block, Prg};
use tacit_store::sealed::FileKey;

/// That what `read` reads is written as it is read again.
fn stable<T>(
    bytes: &[u8],
    read: impl Fn(&mut Reader<'_>) -> Result<T>,
    write: impl Fn(&T, &mut Writer),
) -> Option<T> {
    let written = |value: &T| {
        let mut out = Writer::default();
        write(value, &mut out);
        out.0
    };
    let first = written(&read(&mut Reader(bytes)).ok()?);
    let again = read(&mut Reader(&first)).expect("what was written is read");
    assert!(written(&again) == first, "a message is read otherwise than it was written");
    Some(again)
}

/// A request to a gateway.
pub fn request(bytes: &[u8]) {
    let Some(request) = stable(bytes, Request::read, Request::write) else { return };
    assert!(!request.label().is_empty());
    if let Request::Open { terms, .. } = request {
        let _ = terms.agreement();
    }
}

/// What a gateway answers.
pub fn reply(bytes: &[u8]) {
    stable(bytes, Reply::read, Reply::write);
}

/// The head of a request, from a caller that has shown nothing yet.
pub fn head(bytes: &[u8]) {
    let mut whole = [0; LENGTH_OF_HEAD];
    let length = bytes.len().min(LENGTH_OF_HEAD);
    whole[..length].copy_from_slice(&bytes[..length]);
    let Ok(head) = Head::read(&whole) else { return };
    // One without a name is read, and never written.
    if let Ok(written) = head.bytes() {
        assert_eq!(Head::read(&written).and_then(|head| head.bytes()).ok(), Some(written));
    }
}

/// What two gateways tell each other.
pub fn events(bytes: &[u8]) {
    for event in bytes.as_chunks::<EVENT>().0 {
        if let Some(event) = decode(event) {
            assert_eq!(decode(&encode(event)), Some(event));
        }
    }
}

/// The plan of a job, as tasks get it.
pub fn planned(bytes: &[u8]) {
    let Ok(planned) = Planned::from_bytes(bytes) else { return };
    let written = planned.to_bytes();
    assert!(Planned::from_bytes(&written).is_ok_and(|again| again.to_bytes() == written));
    let places = planned.places();
    assert!(places.iter().all(|places| *places < u64::MAX));
}

/// The result of a bucket that a gateway has kept; columns were asked for if there is a number of them.
pub fn result(keys: u8, places: u8, columns: Option<usize>, bytes: &[u8]) {
    let digests: Vec<[u8; 32]> = (0..keys).map(|at| [at; 32]).collect();
    let places = u64::from(places);
    let Ok(super::Ran::Matches { digests: found, cells, .. }) =
        given::decode(&digests, places, columns, bytes)
    else {
        return;
    };
    assert!(found.iter().all(|digest| digests.contains(digest)));
    assert!(cells.iter().all(|row| Some(row.len()) == columns));
}

/// How a side's columns are laid out.
pub fn layout(bytes: &[u8]) {
    stable(bytes, Given::read, Given::write);
}

fn key() -> Arc<FileKey> {
    Arc::new(FileKey::from_bytes(&[9; 32]).expect("a key of 32 bytes"))
}

/// The state of a job on a gateway's disk, in an empty `folder`: the plan, and how far it is. Whoever can seal can
/// put anything there; what is not sealed does not open.
pub fn state(folder: &Path, plan: &[u8], progress: &[u8]) {
    let key = key();
    let sealed = Sealed { folder, key: &key, form: &FORM };
    let prg = &mut Prg::from_seed(Block::new(7));
    if sealed.write(PLAN, context(PLAN, &[0; 32]), plan, prg).is_err() {
        return;
    }
    // The name that binds the progress stands in the plan.
    let mut from = Reader(plan);
    if let Some(name) = from.text().ok().and_then(|_| from.array().ok()) {
        let _ = sealed.write(PROGRESS, context(PROGRESS, &name), progress, prg);
        if let Ok(Some(state)) = State::load(folder, key.clone()) {
            assert!(state.plan.as_ref().is_some_and(|plan| plan.buckets == state.buckets.len() as u64));
            let _ = (state.is_complete(), state.is_result(progress));
            state.save().expect("what was read can be written");
        }
    }
    // A file that nobody sealed.
    let _ = std::fs::write(folder.join(PLAN), plan);
    assert!(State::load(folder, key).is_err(), "a plan opens that nobody sealed");
}

/// How far a run is that goes on after its process has ended, in an empty `folder`.
pub fn checkpoint(folder: &Path, files: [&[u8]; 3]) {
    checkpoint::fuzzed(folder, &key(), files);
}

/// Whole messages, by the names of the functions above.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let parameters =
        vec![("reveal".to_owned(), "payload".to_owned()), ("version".to_owned(), "3".to_owned())];
    let names = ["psi", "sender", "receiver"].map(str::to_owned);
    let [protocol, role, peer_role] = names;
    let terms =
        Terms { protocol, role, peer_role, parameters, own: 1000, buckets: 4, patience: 60, most_peer: 9 };
    let (label, run) = ("monday".to_owned(), [1; 32]);
    let requests = [
        Request::Open { label: label.clone(), terms: terms.clone() },
        Request::Status { label: label.clone() },
        Request::Bucket { label: label.clone(), run, number: 3, digest: [2; 32], patience: 60 },
        Request::Result {
            label: label.clone(),
            run,
            number: 3,
            attempt: 1,
            received: true,
            length: 9,
            hash: [3; 32],
        },
        Request::Cheated { label: label.clone(), run },
    ];
    let replies = [
        Reply::Plan { name: [1; 32], key: [2; 32], own: 10, peer: 20, buckets: 4, first: true },
        Reply::Status { begun: vec![1, 0], ended: vec![1, 0], received: false },
        Reply::Go { attempt: 1, session: [3; 32] },
        Reply::Ended { result: vec![5; 7].into() },
        Reply::Deferred,
        Reply::Refused { blame: 2, text: "no".to_owned() },
    ];
    let mut out = Vec::new();
    for request in requests {
        let mut written = Writer::default();
        request.write(&mut written);
        out.push(("request", written.0.to_vec()));
    }
    for reply in replies {
        let mut written = Writer::default();
        reply.write(&mut written);
        out.push(("reply", written.0.to_vec()));
    }
    let head = Head { opens: true, label: label.clone(), length: 100, nonce: [4; 32] };
    out.push(("head", head.bytes().map_or(Vec::new(), Vec::from)));
    let events =
        [Event::Offer(1), Event::Withdraw(2), Event::Begin(3, 1), Event::Held(3, 1), Event::Failed(4, 2)];
    out.push(("events", events.into_iter().chain([Event::Over, Event::Complete]).flat_map(encode).collect()));
    let given = Given { columns: vec![("name".to_owned(), 12), ("amount".to_owned(), 8)], rows: 2 };
    let mut written = Writer::default();
    given.write(&mut written);
    out.push(("layout", written.0.to_vec()));
    let mut plan = Writer::default();
    plan.text(&label);
    plan.bytes(&[1; 32]);
    plan.bytes(&[2; 32]);
    [1000, 2000, 4].into_iter().for_each(|number| plan.number(number));
    terms.write(&mut plan);
    let mut state = (plan.0.len() as u16).to_le_bytes().to_vec();
    state.extend_from_slice(&plan.0);
    state.extend([0, 1, 0]);
    (0..4).for_each(|at| state.extend([&[1, at, 1, 1][..], &[6; 32]].concat()));
    out.push(("state", state));
    let mut planned = Writer::default();
    planned.text(&label);
    planned.text("csw20");
    [1000, 2000, 4, 60, 2, 1, 1].into_iter().for_each(|number| planned.number(number));
    (1..5).for_each(|byte| planned.bytes(&[byte; 32]));
    planned.texts(&["name".to_owned()]);
    [1 << 20, 1 << 24].into_iter().for_each(|number| planned.number(number));
    given.write(&mut planned);
    out.push(("planned", planned.0.to_vec()));
    out
}
