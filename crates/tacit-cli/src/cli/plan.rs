//! `--dry-run`: the table of candidates.

use crate::cli::Context;
use crate::cli::peer::PeerArgs;
use serde_json::json;
use tacit::catalogue;
use tacit::crypto::text::counted;
use tacit::net::LinkModel;
use tacit::ot::BaseOt;
use tacit::plan::{Candidate, EvalCandidate, Link, Machine};
use tacit::{Result, security_name};

/// What depends on the base OT that a run would use.
pub(crate) trait FromBase: Sized {
    /// Its cost from `base`.
    fn from(self, base: &dyn BaseOt, link: &Link, machine: &Machine) -> Self;
    /// The protocol.
    fn protocol(&self) -> &'static str;
}

impl FromBase for Candidate {
    fn from(self, base: &dyn BaseOt, link: &Link, machine: &Machine) -> Self {
        self.with_base(base, link, machine)
    }

    fn protocol(&self) -> &'static str {
        self.protocol
    }
}

impl FromBase for EvalCandidate {
    fn from(self, base: &dyn BaseOt, link: &Link, machine: &Machine) -> Self {
        self.with_base(base, link, machine)
    }

    fn protocol(&self) -> &'static str {
        self.candidate.protocol
    }
}

/// The candidates that `peer`'s options allow, as they cost from `base`. An error where none is left.
pub(crate) fn from_base<C: FromBase>(
    candidates: Vec<C>,
    peer: &PeerArgs,
    base: &dyn BaseOt,
    link: &Link,
    machine: &Machine,
) -> Result<Vec<C>> {
    // What has no entry, as what VOLE is made by, rests on nothing that falls but its base OT.
    let refusal = |one: &C| catalogue::find(one.protocol()).and_then(|entry| peer.allow(entry.name).err());
    let refused = candidates.iter().find_map(refusal);
    let allowed = candidates.into_iter().filter(|one| refusal(one).is_none());
    let left: Vec<C> = allowed.map(|one| one.from(base, link, machine)).collect();
    match refused {
        Some(refused) if left.is_empty() => Err(refused),
        _ => Ok(left),
    }
}

/// Which of the candidates would run.
pub(crate) enum Picked<'a> {
    /// The one that the user insists on.
    Named(&'a str),
    /// The first, which is the fastest.
    Fastest,
    /// The first, for this reason.
    Because(String),
}

impl Picked<'_> {
    /// Why `one` would run of `candidates`; nothing where the user says so.
    fn why(&self, one: &Candidate, candidates: &[Candidate]) -> Option<String> {
        match self {
            Picked::Named(_) => None,
            Picked::Because(why) => Some(why.clone()),
            Picked::Fastest if candidates.iter().all(|other| other.protocol == one.protocol) => {
                Some(format!(
                    "picked because no other protocol does this with the security {}",
                    security_name(one.security)
                ))
            }
            Picked::Fastest => {
                Some("picked because it is predicted to be the fastest over this link".to_owned())
            }
        }
    }
}

impl<'a> From<Option<&'a str>> for Picked<'a> {
    fn from(named: Option<&'a str>) -> Self {
        named.map_or(Picked::Fastest, Picked::Named)
    }
}

/// What a run would tell each side, in words.
pub(crate) struct Learned<'a> {
    other: &'a str,
    /// What this side learns, with a peer's file of the same size; where it is known.
    own: Option<&'a str>,
}

impl<'a> From<&'a str> for Learned<'a> {
    fn from(other: &'a str) -> Self {
        Learned { other, own: None }
    }
}

impl<'a> From<&'a String> for Learned<'a> {
    fn from(other: &'a String) -> Self {
        Learned { other, own: None }
    }
}

impl<'a> From<[&'a str; 2]> for Learned<'a> {
    fn from([other, own]: [&'a str; 2]) -> Self {
        Learned { other, own: Some(own) }
    }
}

/// Prints the candidates, the fastest first, which of them is `chosen`, and why.
pub(crate) fn show<'a>(
    context: &Context,
    name: &str,
    count: u64,
    link: &Link,
    candidates: &[Candidate],
    chosen: Picked<'_>,
    learns: impl Into<Learned<'a>>,
) -> Result<()> {
    let learns = learns.into();
    let is_chosen = |candidate: &Candidate| match chosen {
        Picked::Named(named) => named == candidate.protocol,
        _ => true,
    };
    let picked = candidates.iter().position(is_chosen);
    let why = picked.and_then(|at| chosen.why(&candidates[at], candidates));
    if !context.json {
        let head = format!(
            "{}, {link}{}\n  {:<12} {:>12} {:>14} {:>7}  {:<12} rests on",
            counted(usize::try_from(count).unwrap_or(usize::MAX), "item"),
            if *link == Link::from(LinkModel::LOOPBACK) {
                " (this machine; --link names another)"
            } else {
                ""
            },
            "protocol",
            "predicted ms",
            "bytes",
            "rounds",
            "security"
        );
        context.result(&json!(null), &head)?;
    }
    for (index, candidate) in candidates.iter().enumerate() {
        let is_picked = picked == Some(index);
        let object = json!({
            "name": "plan",
            "job": name,
            "protocol": candidate.protocol,
            "variant": candidate.variant,
            "picked": is_picked,
            "protocol_why": why.as_ref().filter(|_| is_picked),
            "count": count,
            "predicted_ms": candidate.time.as_secs_f64() * 1e3,
            "bytes": candidate.bytes,
            "rounds": candidate.rounds,
            "security": security_name(candidate.security),
            "assumptions": candidate.assumptions,
            "other_side_learns": learns.other,
            "this_side_learns": learns.own,
            "megabits": link.megabits,
            "round_trip_ms": link.round_trip.as_secs_f64() * 1e3,
        });
        let text = format!(
            "{} {:<12} {:>12.2} {:>14} {:>7}  {:<12} {}{}",
            if is_picked { "→" } else { " " },
            candidate.protocol,
            candidate.time.as_secs_f64() * 1e3,
            candidate.bytes,
            candidate.rounds,
            security_name(candidate.security),
            candidate.assumptions.join(", "),
            if candidate.variant.is_empty() { String::new() } else { format!(" ({})", candidate.variant) }
        );
        context.result(&object, &text)?;
    }
    if !context.json {
        if let (Some(at), Some(why)) = (picked, why) {
            context.result(&json!(null), &format!("{}: {why}", candidates[at].protocol))?;
        }
        context.result(&json!(null), &format!("the other side learns {}", learns.other))?;
    }
    Ok(())
}
