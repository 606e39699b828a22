//! What is offered: the run that both sides would make, in the service's words, and both sides' view of it.

mod question;

pub use question::QuestionTerms;

use crate::json;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tacit::catalogue::OPRF;
use tacit::crypto::text::counted;
use tacit::data::keys::{KeyType, Named};
use tacit::data::records::{KeySpec, MAX_IDENTIFIERS, Normalisation, OR};
use tacit::job::psi::{Job, Learns, Protocol, Reveal, owner};
use tacit::job::tags;
use tacit::net::{Agreement, PublicKey, shown};
use tacit::query::epsilon_text;
use tacit::{Error, Result, Security, security_name};

/// The version of the messages of a request, of what is signed, and of how a run follows from an offer.
pub const VERSION: u64 = 2;

const TERMS_HASH: &str = "tacit 2 terms of an offer";
/// What differs from run to run under the same terms.
const VARYING: [&str; 5] = ["run", "left", "service_keys", "fitting_keys", "max_peer_keys"];

/// The longest name of a party in an offer, in characters.
pub(crate) const LONGEST_NAME: usize = 100;

/// What an offer of lookups calls its kind of result.
pub const LOOKUP: &str = "lookup";

/// What an offer of an answer to a question calls its kind of result.
pub const QUESTION: &str = "question";

/// One of the two sides of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The one with the policy.
    Service,
    /// The one that asks for a run.
    Client,
}

impl Side {
    /// What the side is called in messages and records.
    pub const fn name(self) -> &'static str {
        match self {
            Side::Service => "service",
            Side::Client => "client",
        }
    }

    /// What records of this version of requests call it.
    pub fn name_in(self, version: &Value) -> &'static str {
        match self {
            Side::Client if *version == 1 => "asker",
            side => side.name(),
        }
    }

    /// The other one.
    pub const fn other(self) -> Side {
        match self {
            Side::Service => Side::Client,
            Side::Client => Side::Service,
        }
    }
}

/// What is left of the budgets, before the run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Left {
    /// Runs of this job today.
    pub runs_today: u64,
    /// Rows of the source that runs may still reveal to the client; of a publication, the queries that it
    /// still answers to it.
    pub rows: u64,
    /// Numbers over all common keys that the client may still get of the source.
    pub aggregates: u64,
    /// What the epsilons of the client's further questions about the source may add up to, in millionths; nothing where
    /// they are not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<u64>,
}

/// A number of keys as it is told before a run is charged: rounded up to two digits, so that offers do not
/// count the service's table.
pub fn rounded(keys: u64) -> u64 {
    let unit = 10u64.pow(keys.max(1).ilog10().saturating_sub(1));
    keys.div_ceil(unit).saturating_mul(unit)
}

/// The terms of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// The version of requests.
    pub version: u64,
    /// The run's name.
    pub run: String,
    /// What the service is called in the terms and in records.
    pub service_name: String,
    /// What the client is called there: its label in the service's policy.
    pub client_name: String,
    /// The public key of the service's records, in hexadecimal digits, where TLS shows a certificate instead.
    pub service_key: Option<String>,
    /// The job's name.
    pub job: String,
    /// The kind of result, with the column that numbers are taken from.
    pub reveal: String,
    /// Who gets it: `service`, `client` or `both`.
    pub result: String,
    /// Columns of the service's rows that go into the result.
    pub service_gives: Vec<String>,
    /// The most bytes that these take for each of the service's keys, all columns and rows together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_bytes_a_key: Option<u64>,
    /// Columns of the client's rows that go into it.
    pub client_gives: Vec<String>,
    /// The most bytes that those may take for each of the client's keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_bytes_a_key: Option<u64>,
    /// By which protocol.
    pub protocol: String,
    /// Against which peer either side is protected.
    pub security: String,
    /// The base OT.
    pub base_ot: String,
    /// Columns that make a key.
    pub key_columns: usize,
    /// Their types, which the client's must match, in the same order.
    pub key_types: String,
    /// Whether keys are normalised to Unicode's NFC.
    pub nfc: bool,
    /// Whether white space at a key's ends is left out.
    pub trim: bool,
    /// Whether upper and lower case are the same in keys.
    pub case_fold: bool,
    /// Least matches of a number over all common keys.
    pub min_matches: u64,
    /// The least and the most that one key adds to a number: `LEAST..MOST`, in the unit of its column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<String>,
    /// Whether the owner of a column gets what is made of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub result_to_owner: bool,
    /// The service's distinct keys, [`rounded`]; how many they are is told when the run is charged.
    pub service_keys: u64,
    /// The least and the most distinct keys that the client may have.
    pub min_peer_keys: u64,
    /// See [`min_peer_keys`](Self::min_peer_keys).
    pub max_peer_keys: u64,
    /// The most distinct keys with which the run fits into what is left of the budgets.
    pub fitting_keys: u64,
    /// The digest of the publication that is looked up in, where the job answers lookups.
    pub publication: Option<String>,
    /// The question that is answered, where the job answers them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionTerms>,
    /// What is left of the budgets.
    pub left: Left,
    /// What the run is for.
    pub purpose: Option<String>,
    /// The contract it rests on.
    pub agreement: Option<String>,
    /// The last day on which it may start.
    pub expires: Option<String>,
    /// Seconds that the offer stands.
    pub seconds: u64,
}

/// The client's yes to an offer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accept {
    /// Its distinct keys.
    pub keys: u64,
    /// Its commitment to its input.
    pub commitment: String,
    /// The head of its records' chain.
    pub head: String,
    /// What the client's certificate says of its records, where TLS shows certificates.
    pub proof: Option<Proof>,
}

/// The signature of a certificate's key on the key of a side's records, and on the run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// The name that the *other* side's certificate was accepted for.
    pub peer_name: String,
    /// How the signature was made, as TLS 1.3 numbers it.
    pub scheme: u16,
    /// The signature, in hexadecimal digits.
    pub signature: String,
}

/// The service's word that the run begins.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Go {
    /// Its distinct keys.
    pub keys: u64,
    /// Its commitment to its input.
    pub commitment: String,
    /// The head of its records' chain.
    pub head: String,
    /// When it charged the run, by its clock, in seconds since 1970.
    pub started: u64,
    /// What the service's certificate says of its records, where TLS shows certificates.
    pub proof: Option<Proof>,
    /// Its signature on the common part of the record as the run begins.
    pub signature: String,
}

/// Who gets a result, by name.
pub fn result_name(learns: Learns) -> &'static str {
    match learns {
        Learns::Me => "service",
        Learns::Peer => "client",
        Learns::Both => "both",
    }
}

/// The side of this name, as the service sees it.
pub fn learns(name: &str) -> Option<Learns> {
    [Learns::Me, Learns::Peer, Learns::Both].into_iter().find(|learns| result_name(*learns) == name)
}

impl Offer {
    /// Who gets the result, as `side` sees it; nothing where the terms make no sense.
    fn learns(&self, side: Side) -> Option<Learns> {
        Some(match (side, learns(&self.result)?) {
            (Side::Service, learns) => learns,
            (Side::Client, Learns::Me) => Learns::Peer,
            (Side::Client, Learns::Peer) => Learns::Me,
            (Side::Client, Learns::Both) => Learns::Both,
        })
    }

    /// The run as `side` plays it, with its own key columns; how they are normalised stands in the terms.
    ///
    /// Errors: terms of lookups, or that make no sense or do not go together; another number of key columns.
    pub fn job(&self, side: Side, key: &KeySpec) -> Result<Job> {
        let odd = |what: &str| {
            Error::Peer(format!("the offer is not valid: {what}; use the same release on both sides"))
        };
        if self.version != VERSION {
            return Err(odd("its version differs"));
        }
        if self.publication.is_some() {
            let what = "this job answers lookups in a publication; name its tag file".into();
            return Err(Error::Parameter { name: "tags", what });
        }
        if self.question.is_some() {
            let what = "this job answers a question in SQL; give its text".into();
            return Err(Error::Parameter { name: "sql", what });
        }
        let learns = self.learns(side).ok_or_else(|| odd("who gets the result"))?;
        let (gives, asks) = match side {
            Side::Service => (&self.service_gives, &self.client_gives),
            Side::Client => (&self.client_gives, &self.service_gives),
        };
        let reveal: Reveal = self.reveal.parse().map_err(|_| odd("the kind of result"))?;
        let reveal =
            if matches!(reveal, Reveal::Payload(_)) { Reveal::Payload(asks.clone()) } else { reveal };
        let bounds = self.bounds.as_deref().map(|text| owner::bounds(text, reveal.form()));
        let protocol = Protocol::named(&self.protocol);
        let levels = [Security::Malicious, Security::SemiHonest];
        let security = levels.into_iter().find(|level| security_name(*level) == self.security);
        if key.columns.len() != self.key_columns {
            let columns = counted(self.key_columns, "column");
            let what = format!("the service's keys have {columns}; name the same number, in the same order");
            return Err(Error::Parameter { name: "key", what });
        }
        let normalisation = Normalisation { nfc: self.nfc, trim: self.trim, case_fold: self.case_fold };
        let job = Job {
            each: None,
            protocol: protocol.ok_or_else(|| odd("the protocol"))?,
            learns,
            reveal,
            give: gives.clone(),
            min_matches: self.min_matches,
            bounds: bounds.transpose().map_err(|_| odd("the bounds of a number"))?,
            result_to_owner: self.result_to_owner,
            security: security.ok_or_else(|| odd("the security"))?,
            key: Some(KeySpec { normalisation, ..key.clone() }),
            most_peer_keys: Some(match side {
                Side::Service => self.max_peer_keys,
                Side::Client => self.service_keys,
            }),
            peer_keys: None,
            max_cell: tacit::job::psi::USUAL_KEY,
            line_ends: false,
            row_memory: u64::MAX,
        };
        job.check()?;
        Ok(job)
    }

    /// Both sides' runs, for what either learns; the names of columns play no part in that.
    fn both(&self) -> Result<(Job, Job)> {
        let column = |name: &str| Named {
            column: String::new(),
            key_type: KeyType::named(name).unwrap_or(KeyType::TEXT),
            label: None,
        };
        let mut identifiers = self.key_types.split(OR).take(MAX_IDENTIFIERS);
        let mut columns = || identifiers.next().map(|types| types.split(", ").map(column));
        let mut key = KeySpec::named(columns().into_iter().flatten(), Normalisation::default());
        while let Some(further) = columns() {
            key = key.or(further);
        }
        Ok((self.job(Side::Service, &key)?, self.job(Side::Client, &key)?))
    }

    /// The digest of the publication that is looked up in.
    ///
    /// Errors: terms that make no sense, or that are not of lookups.
    pub fn looked_up(&self) -> Result<[u8; 32]> {
        let odd = || Error::Peer("the offer is not valid; use the same release on both sides".into());
        let Some(publication) = &self.publication else {
            let what = "this job is an intersection and uses no tag file; leave it out".into();
            return Err(Error::Parameter { name: "tags", what });
        };
        let terms =
            [self.reveal.as_str(), self.result.as_str(), self.protocol.as_str(), self.security.as_str()];
        let expected = [LOOKUP, result_name(Learns::Peer), OPRF.name, security_name(OPRF.security)];
        if self.version != VERSION || terms != expected {
            return Err(odd());
        }
        json::from_hex(publication).ok_or_else(odd)
    }

    /// A side by its name and role, such as `bob (client)`.
    pub fn party(&self, side: Side) -> String {
        let name = match side {
            Side::Service => &self.service_name,
            Side::Client => &self.client_name,
        };
        format!("{} ({})", shown(name), side.name())
    }

    /// The hash of the terms without what differs from run to run: the run's name, what is left of the budgets,
    /// and the sizes. Who has reviewed terms once can accept the same ones by it.
    pub fn hash(&self) -> Result<[u8; 32]> {
        let mut terms = serde_json::to_value(self).map_err(|e| Error::Other(format!("an offer: {e}")))?;
        if let Some(terms) = terms.as_object_mut() {
            VARYING.iter().for_each(|name| _ = terms.remove(*name));
        }
        let mut hasher = blake3::Hasher::new_derive_key(TERMS_HASH);
        hasher.update(json::canonical(&terms)?.as_bytes());
        Ok(*hasher.finalize().as_bytes())
    }

    /// Whether both parties have a name that fits a line.
    pub fn names_parties(&self) -> bool {
        let fits = |name: &String| !name.trim().is_empty() && name.chars().count() <= LONGEST_NAME;
        fits(&self.service_name) && fits(&self.client_name)
    }

    /// What the service and what the client learn of the other side, a sentence each and in this order, if the
    /// service has `service_keys` keys and the client `keys`.
    pub fn learned(&self, service_keys: u64, keys: u64) -> Result<(String, String)> {
        let [service, client] = [Side::Service, Side::Client].map(|side| self.party(side));
        let (to_service, to_client) = if self.publication.is_some() {
            self.looked_up()?;
            (tags::learned_of_client(&client, keys), tags::learned_about(&service, service_keys))
        } else if self.question.is_some() {
            let [of_service, of_client] = [Side::Service, Side::Client].map(|side| self.answer(side));
            (of_client?.will_learn_of(&client, keys), of_service?.will_learn_of(&service, service_keys))
        } else {
            let (of_service, of_client) = self.both()?;
            let to_client = of_service.will_learn_of(&service, service_keys, keys)?;
            (of_client.will_learn_of(&client, keys, service_keys)?, to_client)
        };
        Ok((format!("{service} learns {to_service}"), format!("{client} learns {to_client}")))
    }

    /// The terms for people, a line each; `keys` are the client's.
    pub fn words(&self, keys: u64) -> Result<Vec<String>> {
        let (to_service, to_client) = self.learned(self.service_keys, keys)?;
        let [service, client] = [Side::Service, Side::Client].map(|side| self.party(side));
        let mut lines = vec![
            format!("job {}: {} to {}", shown(&self.job), shown(&self.reveal), self.result_words()),
            format!(
                "{service} has {} (rounded up to two digits), {client} has {keys}; the job accepts {} to {} of them",
                counted(self.service_keys, "distinct key"),
                self.min_peer_keys,
                self.max_peer_keys
            ),
            match self.publication {
                Some(_) => format!("protocol {}, security {}", shown(&self.protocol), shown(&self.security)),
                None => format!(
                    "protocol {}, security {}, base OT {}",
                    shown(&self.protocol),
                    shown(&self.security),
                    shown(&self.base_ot)
                ),
            },
            to_service,
            to_client,
        ];
        lines.push(match &self.publication {
            Some(digest) => format!(
                "lookups are made in the tag file with the digest {}, with keys as that file says",
                shown(digest)
            ),
            None => format!("key: {} ({})", counted(self.key_columns, "column"), shown(&self.key_types)),
        });
        let gives = |who: &str, columns: &[String], bytes: Option<u64>| {
            let names: Vec<String> = columns.iter().map(|name| shown(name)).collect();
            let width = bytes.map_or_else(String::new, |bytes| {
                format!(", up to {bytes} for each key", bytes = counted(bytes, "byte"))
            });
            (!names.is_empty())
                .then(|| format!("columns of {who} in the result: {}{width}", names.join(", ")))
        };
        lines.extend(gives(&service, &self.service_gives, self.service_bytes_a_key));
        lines.extend(gives(&client, &self.client_gives, self.client_bytes_a_key));
        lines.extend(self.question_words()?);
        if self.min_matches > 0 {
            lines.push(format!("the number is withheld below {}", counted(self.min_matches, "matching key")));
        }
        if let Some(bounds) = &self.bounds {
            lines.push(format!(
                "each key adds a number within {}; numbers outside count as the nearer bound, and against a peer that cheats not at all",
                shown(bounds)
            ));
        }
        if self.result_to_owner && self.question.is_none() {
            lines.push(
                "the owner of the column gets the number too, and can read matching keys from it".to_owned(),
            );
        }
        let Left { runs_today, rows, aggregates, epsilon } = self.left;
        let runs = counted(runs_today, "run");
        lines.push(match self.publication {
            Some(_) => format!(
                "left for {client}, including this run: {runs} of this job today; {rows} until the tags are \
                 published again",
                rows = counted(rows, "query")
            ),
            None => format!(
                "left for {client}, including this run: {runs} of this job today; {rows} and {aggregates} \
                 over all common keys in total{}",
                epsilon.map_or(String::new(), |left| format!(
                    "; and an epsilon of {} for all questions together",
                    epsilon_text(left)
                )),
                rows = counted(rows, "row"),
                aggregates = counted(aggregates, "number")
            ),
        });
        lines.push(self.fits_words(keys));
        let more = [("purpose", &self.purpose), ("agreement", &self.agreement), ("last day", &self.expires)];
        let said =
            more.into_iter().filter_map(|(name, text)| Some(format!("{name}: {}", shown(text.as_ref()?))));
        lines.extend(said);
        lines.push(format!(
            "hash of these terms, without run, budgets and sizes: {}",
            json::hex(&self.hash()?)
        ));
        lines.push(format!("this offer expires in {} s", self.seconds));
        Ok(lines)
    }

    /// Whether the run of a client with `keys` keys fits into what is left of the budgets.
    pub fn fits(&self, keys: u64) -> bool {
        keys <= self.fitting_keys
    }

    /// Why the service refuses a client with `keys` keys, if it does by the sizes that the job takes.
    pub fn size_refused(&self, keys: u64) -> Option<String> {
        let (rule, bound) = match keys {
            _ if keys > self.max_peer_keys => ("max_peer_keys", format!("at most {}", self.max_peer_keys)),
            _ if keys < self.min_peer_keys => ("min_peer_keys", format!("at least {}", self.min_peer_keys)),
            _ => return None,
        };
        let keys = counted(keys, "distinct key");
        Some(format!("you have {keys}, and this job accepts {bound} (rule `{rule}`)"))
    }

    fn fits_words(&self, keys: u64) -> String {
        let most = self.fitting_keys;
        if let Some(why) = self.size_refused(keys) {
            return format!("this run will be refused: {why}");
        }
        match self.fits(keys) {
            true => format!(
                "with {keys} this run fits into what is left, as with up to {most}",
                keys = counted(keys, "key")
            ),
            false => {
                format!(
                    "with {keys} this run does NOT fit into what is left; with up to {most} it does",
                    keys = counted(keys, "key")
                )
            }
        }
    }

    fn result_words(&self) -> String {
        match learns(&self.result) {
            Some(Learns::Me) => self.party(Side::Service),
            Some(Learns::Peer) => self.party(Side::Client),
            _ => "both".to_owned(),
        }
    }

    /// What the handshake of a run of lookups compares: the agreement of the side that asks or of the one
    /// that answers, and everything that was said on the way to it.
    pub fn agreement_on_lookups(&self, agreement: Agreement, said: &Said) -> Agreement {
        agreement.with("security", &self.security).with("terms", json::hex(&said.digest()))
    }

    /// What a run's handshake compares: the job, and everything that was said on the way to it.
    pub fn agreement(&self, job: &Job, said: &Said) -> Result<Agreement> {
        let base = tacit::ot::base_ot(Some(&self.base_ot), job.security)?;
        Ok(job
            .agreement(&*base)
            .with("security", security_name(job.security))
            .with("terms", json::hex(&said.digest())))
    }
}

/// A hash of a request's messages, as both sides have them.
#[derive(Default)]
pub struct Said(blake3::Hasher);

impl Said {
    /// Adds a message.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn digest(&self) -> [u8; 32] {
        *self.0.finalize().as_bytes()
    }
}

/// The part of a record that both sides have, before the run; `keys` are the public keys of service and
/// client.
pub fn common_part(offer: &Offer, accept: &Accept, go: &Go, keys: [&PublicKey; 2]) -> Result<Value> {
    let (to_service, to_client) = offer.learned(go.keys, accept.keys)?;
    let [service, client] = keys.map(|key| json::hex(&key.to_bytes()));
    let terms = serde_json::to_value(offer).map_err(|e| Error::Other(format!("an offer: {e}")))?;
    Ok(json!({
        "version": VERSION,
        "run": offer.run,
        "started": go.started,
        "session": null,
        "terms": terms,
        "service": {
            "key": service, "keys": go.keys, "input": go.commitment, "head": go.head, "result": null,
            "certificate": null,
        },
        "client": {
            "key": client, "keys": accept.keys, "input": accept.commitment, "head": accept.head, "result": null,
            "certificate": null,
        },
        "revealed": { "to_service": to_service, "to_client": to_client },
        "outcome": "begun",
    }))
}
