//! What a client accepts: an offer is compared with what was asked, and with what the user takes at least.

use crate::json::hex;
use crate::terms::{self, Offer};
use crate::wire::Ask;
use tacit::crypto::text::counted;
use tacit::job::psi::{Job, Learns, Reveal, Statistic, owner};
use tacit::net::shown;
use tacit::{Error, Result, Security};

/// Whether the owner of a column may get the number that is made of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ToOwner<'a> {
    /// It may not.
    Never,
    /// It may, where each key's number is within these bounds, as a user writes them for the column.
    Within(&'a str),
    /// As the terms have it, which somebody looks at.
    AsOffered,
}

/// What a user takes at least.
#[derive(Clone, Copy, Debug)]
pub struct Floor<'a> {
    /// The least security.
    pub security: Security,
    /// The local columns that may go into the result.
    pub gives: &'a [String],
    /// Whether the owner of a column may get the number that is made of it.
    pub result_to_owner: ToOwner<'a>,
    /// Whether everything has to hold against a quantum computer.
    pub post_quantum: bool,
    /// The most distinct keys that the service may have.
    pub most_service_keys: Option<u64>,
    /// The hash of terms that were reviewed ([`Offer::hash`]).
    pub terms: Option<[u8; 32]>,
    /// Whether nobody looks at the terms before they are accepted, and nobody named who gets the result.
    pub unattended: bool,
}

/// Where an offer is not of the run that was asked for.
///
/// Errors: another kind of result, another side that gets it, or other columns.
pub(super) fn as_asked(ask: &Ask, offer: &Offer) -> Result<()> {
    let differs = |what: &str, asked: &str, offered: &str| {
        Err(Error::Peer(format!(
            "the offer does not match the request: {what} (requested `{}`, offered `{}`); ask the service's \
             operator",
            shown(asked),
            shown(offered)
        )))
    };
    if let Some(result) = &ask.result
        && *result != offer.result
    {
        return differs("who gets the result", result, &offer.result);
    }
    let Some(asked) = &ask.reveal else { return Ok(()) };
    let kind = match asked.parse() {
        Ok(Reveal::Payload(columns)) => {
            if !columns.is_empty() && columns != offer.service_gives {
                return differs("the service's columns", &columns.join(","), &offer.service_gives.join(","));
            }
            Reveal::Payload(Vec::new()).terms()
        }
        Ok(kind) => kind.terms(),
        Err(_) => asked.clone(),
    };
    let offered = match offer.reveal.parse() {
        Ok(Reveal::Payload(_)) => Reveal::Payload(Vec::new()).terms(),
        _ => offer.reveal.clone(),
    };
    if kind == offered { Ok(()) } else { differs("the kind of result", asked, &offer.reveal) }
}

impl Floor<'_> {
    /// Refuses terms below the floor of an intersection.
    pub(super) fn admit(&self, offer: &Offer, job: &Job) -> Result<()> {
        let refuse = |name, what: String| Err(Error::Parameter { name, what });
        // A lower floor is for numbers, which have no stronger form at every size; all else has one.
        if job.security == Security::SemiHonest && !job.reveal.is_aggregate() {
            let what = format!(
                "the offer protects {} only if the service follows the protocol, and services run them against \
                 malicious peers; ask the service's operator",
                job.reveal.name()
            );
            return refuse("security", what);
        }
        if self.security == Security::Malicious && job.security == Security::SemiHonest {
            let what = "the terms protect only against a semi-honest service; set semi-honest to accept this";
            return refuse("security", what.into());
        }
        if offer.result_to_owner {
            self.admit_owner(job)?;
        }
        if let Some(column) = offer.client_gives.iter().find(|column| !self.gives.contains(column)) {
            let column = shown(column);
            return refuse("give", format!("the job takes your column {column}; name it if you send it"));
        }
        if let Some(bytes) = offer.service_bytes_a_key.filter(|bytes| *bytes > job.max_cell) {
            let most = job.max_cell;
            let what = format!(
                "the service's columns may have {bytes} for each of its keys (accepted: up to {most}); raise \
                 it if that is expected",
                bytes = counted(bytes, "byte")
            );
            return refuse("max-cell", what);
        }
        if self.post_quantum {
            for protocol in job.protocol.candidates() {
                tacit::catalogue::require_post_quantum(protocol)?;
            }
            tacit::catalogue::require_post_quantum(&offer.base_ot)?;
        }
        let rows = matches!(job.reveal, Reveal::Rows | Reveal::Payload(_));
        let what = match terms::learns(&offer.result) {
            Some(Learns::Me) => "the service would get the result, and you nothing",
            Some(Learns::Both) if rows => "the service would learn which rows match",
            _ => return self.pinned(offer),
        };
        if self.unattended {
            return refuse("result", format!("{what}; name who gets the result if you accept that unseen"));
        }
        self.pinned(offer)
    }

    /// Refuses a number that goes to its column's owner beyond what the user takes.
    fn admit_owner(&self, job: &Job) -> Result<()> {
        let refuse = |name, what: String| Err(Error::Parameter { name, what });
        let counts = matches!(job.reveal, Reveal::Of(Statistic::Over(_), _));
        match (self.result_to_owner, job.bounds) {
            (ToOwner::AsOffered, _) => Ok(()),
            (ToOwner::Within(_), None) if counts => Ok(()),
            (ToOwner::Within(text), offered) => {
                let taken = owner::bounds(text, job.reveal.form());
                let taken = taken.map_err(|what| Error::Parameter { name: "bounds", what })?;
                if offered.is_some_and(|o| taken.least() <= o.least() && o.most() <= taken.most()) {
                    return Ok(());
                }
                let offered = job.written_bounds().unwrap_or_else(|| "none".to_owned());
                let taken = owner::written(taken, job.reveal.form());
                refuse("bounds", format!("the offer's are {offered}, accepted are {taken}"))
            }
            (ToOwner::Never, _) => {
                let what = "the owner of the column gets its aggregate, and can read from it which of the \
                            peer's keys match; set it, with bounds, if you accept that";
                refuse("result-to-owner", what.into())
            }
        }
    }

    /// Refuses other terms than those that were reviewed, and a service with more keys than are taken.
    pub(super) fn pinned(&self, offer: &Offer) -> Result<()> {
        pinned(self.terms, offer)?;
        self.sized(offer.service_keys)
    }

    /// Refuses a service with more keys than are taken.
    pub(super) fn sized(&self, keys: u64) -> Result<()> {
        bounded(self.most_service_keys, keys)
    }
}

/// Refuses other terms than those that were reviewed, whose hash is `terms`.
pub(super) fn pinned(terms: Option<[u8; 32]>, offer: &Offer) -> Result<()> {
    let found = offer.hash()?;
    match terms {
        Some(expected) if found != expected => Err(Error::Peer(format!(
            "the service's terms changed (their hash is {}, expected {}); review them, and set the new \
             hash",
            hex(&found),
            hex(&expected)
        ))),
        _ => Ok(()),
    }
}

/// Refuses a service with more distinct keys than `most`.
pub(super) fn bounded(most: Option<u64>, keys: u64) -> Result<()> {
    match most {
        Some(most) if keys > most => Err(Error::Peer(format!(
            "the service has {keys} (accepted: up to {most}); raise the bound if that is expected",
            keys = counted(keys, "distinct key")
        ))),
        _ => Ok(()),
    }
}
