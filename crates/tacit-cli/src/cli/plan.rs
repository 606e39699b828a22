//! `--dry-run`: the table of candidates.

use crate::cli::Context;
use serde_json::json;
use tacit::plan::{Candidate, Link};
use tacit::{Result, security_name};

/// Prints the candidates, the fastest first; `named` is the one that the user insists on.
pub(crate) fn show(
    context: &Context,
    name: &str,
    count: u64,
    link: &Link,
    candidates: &[Candidate],
    named: Option<&str>,
    learns: &str,
) -> Result<()> {
    let picked =
        candidates.iter().position(|candidate| named.is_none_or(|named| named == candidate.protocol));
    if !context.json {
        let head = format!(
            "{count} items, {link}\n  {:<12} {:>12} {:>14} {:>7}  {:<12} rests on",
            "protocol", "predicted ms", "bytes", "rounds", "security"
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
            "count": count,
            "predicted_ms": candidate.time.as_secs_f64() * 1e3,
            "bytes": candidate.bytes,
            "rounds": candidate.rounds,
            "security": security_name(candidate.security),
            "assumptions": candidate.assumptions,
            "other_side_learns": learns,
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
        context.result(&json!(null), &format!("the other side learns {learns}"))?;
    }
    Ok(())
}
