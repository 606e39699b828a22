//! What a job's kinds of result need of the rest of the policy.

use super::reader::{At, Section};
use super::{Job, Source};
use tacit::Security;
use tacit::job::psi::{Learns, Protocol, Reveal};
use tacit::psi::sorted;

/// The most keys of a side in a number against a malicious client.
const SORTED_KEYS: u64 = sorted::MAX_ELEMENTS as u64;

/// Notes what does not go together with a kind of result.
pub(super) fn together(section: &mut Section<'_, '_, '_>, job: &Job, source: &Source, kind: &At<Reveal>) {
    let (name, at) = (kind.value.name(), kind.at);
    let strict = kind.value.is_aggregate() && job.security == Security::Malicious;
    if strict && job.max_peer_keys > SORTED_KEYS {
        let what = format!(
            "{name} supports at most {SORTED_KEYS} keys per side against a malicious client: lower \
             `max_peer_keys`, or set `security = \"semi-honest\"`, which charges every run with all keys of \
             the source"
        );
        section.fault(at, what);
    }
    if kind.value.is_aggregate() && source.aggregate_runs == 0 {
        let what = format!("{name} needs a budget: `aggregate_runs` in [sources.{}]", job.source);
        section.fault(at, what);
    }
    let reveals = job.result.iter().any(|learns| *learns != Learns::Me);
    if reveals && source.rows_in_total == 0 {
        let what = format!("{name} to the peer needs a budget: `rows_in_total` in [sources.{}]", job.source);
        section.fault(at, what);
    }
    if job.protocol == Protocol::Paxos && kind.value != Reveal::Rows {
        section.fault(at, format!("paxos reveals only rows; {name} needs another `protocol`"));
    }
    if job.result.iter().any(|learns| *learns != Learns::Peer) && job.output.is_none() {
        section.fault(at, "`output` must name the directory for the service's results");
    }
    if let Some(what) = other_column(job, &kind.value) {
        section.fault(at, what);
        return;
    }
    let combinations = job.combinations(source);
    let own: Vec<_> = combinations.iter().filter(|(reveal, ..)| **reveal == kind.value).collect();
    // One side that goes with the kind is enough: the others are refused when they are asked for.
    if let Some((.., Err(error))) = own.first()
        && own.iter().all(|(.., checked)| checked.is_err())
    {
        section.fault(at, error.to_string());
    }
}

/// What must stand in `give` for a number of the service's column, where something else does: such a column counts
/// as the peer's, and what follows from that names another cause.
fn other_column(job: &Job, kind: &Reveal) -> Option<String> {
    let column = kind.column().filter(|column| !job.give.iter().any(|own| own == column))?;
    let bare = |name: &str| tacit::data::values::Column::parse(name.trim()).name.to_lowercase();
    let shows = job.reveal.iter().any(|kind| matches!(kind, Reveal::Payload(_)));
    let near = job.give.iter().find(|own| bare(own) == bare(column));
    let other = near.or_else(|| job.give.first().filter(|_| !shows))?;
    let [column, other] = [column, other].map(tacit::net::shown);
    let kind = kind.name();
    Some(format!(
        "{kind} is of `{column}`, and `give` has `{other}`: write `{column}` in both, or leave it out of `give` if \
         the column is the peer's"
    ))
}
