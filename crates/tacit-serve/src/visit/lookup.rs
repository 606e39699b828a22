//! A request for lookups: queries to a publication, counted by the ledger and by the publication itself.

use super::{Begin, End, Fate, Visit};
use crate::file::shown;
use crate::json::hex;
use crate::ledger::{Charge, Ledger};
use crate::log::{Phases, detail};
use crate::play;
use crate::policy::{Answers, Lookup};
use crate::rules::{self, Found, No};
use crate::terms::{self, LOOKUP, Left, Offer, Said, Side};
use crate::wire::Ask;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;
use tacit::catalogue::OPRF;
use tacit::crypto::text::counted;
use tacit::job::psi::Learns;
use tacit::job::tags::{Answering, FileKey, Private, client};
use tacit::net::{Identity, Session};
use tacit::{Error, Result};

/// The private files that running requests answer from. A file is open, and locked against other processes,
/// for as long as one request needs it; all that need it share it.
#[derive(Default)]
pub(crate) struct Publications(Mutex<HashMap<Answers, Weak<Mutex<Private>>>>);

impl Publications {
    fn open(&self, answers: &Answers, identity: &Identity) -> Result<Arc<Mutex<Private>>> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(private) = open.get(answers).and_then(Weak::upgrade) {
            return Ok(private);
        }
        let fault = |path, fault: String| Error::Input(format!("{}: {fault}", shown(path)));
        let seal = match &answers.seal_key {
            Some(file) => FileKey::from_file(file).map_err(|error| fault(file, error.to_string()))?,
            None => FileKey::from_identity(identity),
        };
        let private = Private::open(&answers.private, &seal);
        let private = private.map_err(|error| fault(&answers.private, error.to_string()))?;
        let private = Arc::new(Mutex::new(private));
        open.retain(|_, private| private.strong_count() > 0);
        open.insert(answers.clone(), Arc::downgrade(&private));
        Ok(private)
    }
}

impl Visit<'_> {
    /// Offers lookups, and answers them.
    pub(super) fn look_up(
        &mut self,
        session: &mut Session,
        ask: &Ask,
        lookup: &Lookup,
        mut said: Said,
    ) -> std::result::Result<(), End> {
        if ask.reveal.as_deref().is_some_and(|kind| kind != LOOKUP) {
            return Err(No::new("reveal", "this job answers only lookups").into());
        }
        let to_client = terms::result_name(Learns::Peer);
        if ask.result.as_deref().is_some_and(|result| result != to_client) {
            return Err(No::new("result", "lookups are answered to the client only").into());
        }
        let private = self.house.publications.open(&lookup.answers, &self.house.identity);
        let private = private.map_err(|error| rules::fault(&error))?;
        let answering = Answering { private: &private, client: client(Some(&self.client)), most: 0 };
        let (id, digest, count, keys) = {
            let private = private.lock().unwrap_or_else(PoisonError::into_inner);
            let publication = private.publication();
            (hex(&publication.id), *private.digest(), publication.count, publication.terms.key.clone())
        };

        let nothing = self.charge_queries(ask, &id, 0);
        let left = self.house.ledger(|ledger| {
            // Of the key's lifetime the client hears only whether it is over: the rest tells what others asked.
            rules::lasts(answering.lasts(1), 1)?;
            let left = rules::queries(ledger, lookup, answering.left(), &nothing)?;
            rules::offers(&lookup.gate, &ledger.spent(&nothing))?;
            ledger.offer(nothing).map_err(|error| rules::unwritten(rules::UNCHARGED, &error))?;
            Ok::<Left, End>(left)
        })?;
        let offer = self.offer_lookups(ask, lookup, (&digest, count, keys), left);
        let accept = self.accepted(session, &offer, &mut said)?;
        rules::asked(lookup, accept.keys)?;
        self.is_whole(&accept)?;

        let answering = Answering { most: accept.keys, ..answering };
        let judge = |ledger: &Ledger, found: Found<'_>, charge: &Charge| match found {
            Found::Lookup(now)
                if now.answers == lookup.answers && rules::is_told_alike(&now.gate, &lookup.gate) =>
            {
                rules::asked(now, charge.rows)?;
                rules::lasts(answering.lasts(charge.rows), charge.rows)?;
                rules::queries(ledger, now, answering.left(), charge).map(|_| ())
            }
            _ => Err(rules::changed()),
        };
        let begin = Begin {
            offer: &offer,
            accept: &accept,
            digest,
            own_keys: count,
            charge: self.charge_queries(ask, &id, accept.keys),
            judge: &judge,
            agreement: &|said| Ok(offer.agreement_on_lookups(answering.agreement(), said)),
            words: format!(
                "{} to {count}",
                counted(accept.keys, "query"),
                count = counted(count, "published key")
            ),
        };
        let mut begun = self.begin(session, &begin, said)?;
        let start = Instant::now();
        let peer = self.key()?;
        let answered = super::within(|| {
            let queries = answering.run(session.channels(), &Phases::of(&self.run))?;
            detail("answered", &self.run, counted(queries, "query"));
            let wall = start.elapsed();
            let theirs = play::close(session, Side::Service, &mut begun, None, &peer);
            Ok(Fate { wall, stats: session.stats(), result: None, theirs, kept: Ok(()) })
        });
        self.conclude(begun, answered)
    }

    /// A run's charge, whose rows are queries and whose source is the publication: every publication has
    /// its own, and no name or file changes that.
    fn charge_queries(&self, ask: &Ask, id: &str, queries: u64) -> Charge {
        let publication = format!("publication {id}");
        Charge { rows: queries, ..self.nothing(&ask.job, (&publication, publication.clone())) }
    }

    fn offer_lookups(
        &self,
        ask: &Ask,
        lookup: &Lookup,
        (digest, count, keys): (&[u8; 32], u64, String),
        left: Left,
    ) -> Offer {
        let gate = &lookup.gate;
        Offer {
            version: terms::VERSION,
            run: self.run.clone(),
            service_name: self.policy.name.clone(),
            client_name: self.label.clone(),
            service_key: self.service_key(),
            job: ask.job.clone(),
            reveal: LOOKUP.to_owned(),
            result: terms::result_name(Learns::Peer).to_owned(),
            service_gives: Vec::new(),
            client_gives: Vec::new(),
            service_bytes_a_key: None,
            client_bytes_a_key: None,
            protocol: OPRF.name.to_owned(),
            security: tacit::security_name(OPRF.security).to_owned(),
            base_ot: "none".to_owned(),
            key_columns: 0,
            key_types: keys,
            nfc: false,
            trim: false,
            case_fold: false,
            min_matches: 0,
            bounds: None,
            result_to_owner: false,
            service_keys: terms::rounded(count),
            min_peer_keys: 1,
            max_peer_keys: lookup.max_queries.min(left.rows),
            fitting_keys: lookup.max_queries.min(left.rows),
            publication: Some(hex(digest)),
            question: None,
            left,
            purpose: gate.purpose.clone(),
            agreement: gate.agreement.clone(),
            expires: gate.expires.as_ref().map(|(date, _)| date.clone()),
            seconds: self.policy.offer_seconds,
        }
    }
}
