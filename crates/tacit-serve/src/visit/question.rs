//! A request for an answer to a question: offered by its text, charged before anything is looked up for it, and compared
//! with earlier ones.

use super::{Begin, End, Fate, Visit, within};
use crate::answer;
use crate::filters::{Filters, MOST_FILTERS};
use crate::ledger::{Charge, Ledger};
use crate::log::{Phases, detail};
use crate::play::{self, Asking};
use crate::policy;
use crate::records::{Begun, REFUSED_RUN};
use crate::rules::question::{self, Admitted};
use crate::rules::{self, Found, No};
use crate::slots::Place;
use crate::terms::{self, Accept, Offer, QUESTION, QuestionTerms, Said, Side};
use crate::wire::{self, Ask, Message};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use tacit::catalogue::CIRCUIT;
use tacit::crypto::text::counted;
use tacit::data::table::Source;
use tacit::job::psi::{Learns, Own};
use tacit::job::query::{Answer, Job, Passing, Rows};
use tacit::net::{Session, shown};
use tacit::{Error, Result, Security, security_name};

/// The rule that compares questions.
const MIN_DIFFERENCE: &str = "min_difference";

impl Visit<'_> {
    /// A refusal where another source that has a table of this one's now has other rules for questions: files can come to
    /// share a table after the policy was loaded.
    fn one_rule(&self, name: &str) -> std::result::Result<(), No> {
        let odd = policy::odd_sources(&self.policy.sources, &self.policy.questions);
        match odd.iter().find(|odd| odd.names.contains(&name)) {
            None => Ok(()),
            Some(odd) => {
                let told =
                    "the service cannot answer questions about this table at the moment; ask its operator";
                Err(No::new("source", told).logged(odd.to_string()))
            }
        }
    }

    /// Offers an answer, and gives it.
    pub(super) fn answer(
        &mut self,
        session: &mut Session,
        ask: &Ask,
        admitted: &Admitted<'_>,
        mut said: Said,
    ) -> std::result::Result<(), End> {
        let Admitted { job, source, .. } = admitted;
        self.house.know_sources(&self.policy)?;
        self.one_rule(&job.source)?;
        let nothing = self.charge_question(ask, admitted, 0);
        self.house.ledger(|ledger| {
            question::budget(ledger, job, source, &nothing)?;
            rules::offers(&job.gate, &ledger.spent(&nothing))?;
            ledger.offer(nothing).map_err(|error| End::from(rules::unwritten(rules::UNCHARGED, &error)))
        })?;
        // Of the table only its keys are read, whatever is asked: what depends on the question's values, an error
        // among it, comes after the charge.
        let table = Source::open_all_pinned(&source.inputs, source.key.clone(), source.options);
        let own = table
            .map_err(Error::from)
            .and_then(|table| admitted.run.read_keys(table, &PathBuf::from(source.shown()), |_| ()))
            .map_err(|error| rules::fault(&error))?;
        detail("table read", &self.run, counted(own.count(), "key"));
        let offer = self.offer_answer(ask, admitted, &own)?;
        let accept = self.accepted(session, &offer, &mut said)?;
        let _memory = self.room_for(admitted, &own, &accept)?;
        let run = Job {
            key: source.key.clone(),
            allowed: Some(job.columns.clone()),
            ..offer.answer(Side::Service)?
        };
        let charge = self.charge_question(ask, admitted, run.reveals_at_most(own.count()));
        let judge = |ledger: &Ledger, found: Found<'_>, charge: &Charge| match found {
            Found::Question(now, source) if question::is_as_offered(admitted, ask, now, source) => {
                question::size(now, accept.keys)?;
                question::budget(ledger, now, source, charge).map(|_| ())
            }
            _ => Err(rules::changed()),
        };
        let begin = Begin {
            offer: &offer,
            accept: &accept,
            digest: own.digest().map_err(|error| rules::fault(&error))?,
            own_keys: own.count(),
            charge: charge.clone(),
            judge: &judge,
            agreement: &|said| offer.agreement_on_question(&run, said),
            words: format!(
                "{} of the client, {} of the service, {}",
                counted(accept.keys, "key"),
                own.count(),
                match admitted.template {
                    Some(name) => format!("the question {name}"),
                    None => "a question of its own".to_owned(),
                }
            ),
        };
        let mut begun = self.begin(session, &begin, said)?;
        let rows = match within(|| Ok(self.prepare(admitted, (&run, &own), &charge))) {
            Ok(Ok(rows)) => rows,
            Ok(Err(no)) => return self.refused(begun, no),
            Err(error) => return self.conclude(begun, Err(error)),
        };
        let asking =
            Asking { offer: &offer, job: &run, keys: own.keys(), rows: &rows, peer_keys: accept.keys };
        let played = within(|| self.play_question(session, admitted, &asking, &mut begun));
        self.conclude(begun, played)
    }

    fn charge_question(&self, ask: &Ask, admitted: &Admitted<'_>, rows: u64) -> Charge {
        Charge {
            rows,
            aggregate: admitted.run.learns != Learns::Me,
            epsilon: admitted.run.epsilon_to_peer(),
            ..self.nothing(&ask.job, (&admitted.job.source, admitted.source.place()))
        }
    }

    /// Bytes that runs may take: all together, and one of this job.
    fn memory_of(&self, admitted: &Admitted<'_>) -> (u64, u64) {
        let all = self.policy.memory.or_else(self.house.available).unwrap_or(u64::MAX);
        (all, admitted.job.memory.unwrap_or(all).min(all))
    }

    fn offer_answer(&self, ask: &Ask, admitted: &Admitted<'_>, own: &Own) -> std::result::Result<Offer, End> {
        let Admitted { job, source, run, template } = admitted;
        let (all, one) = self.memory_of(admitted);
        let room = one.min(self.house.slots.memory_left(all));
        // By the number that is told: the exact one would show in how many keys there is room for.
        let service_keys = terms::rounded(own.count());
        let most = run.room(service_keys)?.most_peer_keys(Some(room)).min(job.max_peer_keys);
        if most < job.min_peer_keys.max(1) {
            let what = "the service has no memory for a run at the moment; ask again later";
            return Err(No::new("memory", what).into());
        }
        let charge = self.charge_question(ask, admitted, run.reveals_at_most(own.count()));
        let left = self.house.ledger(|ledger| question::budget(ledger, job, source, &charge))?;
        let base = tacit::ot::base_ot(job.base_ot(), Security::SemiHonest)?;
        let normalisation = source.key.normalisation;
        Ok(Offer {
            version: terms::VERSION,
            run: self.run.clone(),
            service_name: self.policy.name.clone(),
            client_name: self.label.clone(),
            service_key: self.service_key(),
            job: ask.job.clone(),
            reveal: QUESTION.to_owned(),
            result: terms::result_name(run.learns).to_owned(),
            service_gives: Vec::new(),
            service_bytes_a_key: None,
            client_gives: Vec::new(),
            client_bytes_a_key: None,
            protocol: CIRCUIT.name.to_owned(),
            security: security_name(Security::SemiHonest).to_owned(),
            base_ot: base.name().to_owned(),
            key_columns: source.key.columns.len(),
            key_types: source.key.agreed_types(),
            nfc: normalisation.nfc,
            trim: normalisation.trim,
            case_fold: normalisation.case_fold,
            min_matches: 0,
            bounds: None,
            result_to_owner: run.result_to_owner,
            service_keys,
            min_peer_keys: job.min_peer_keys,
            max_peer_keys: most,
            // A question is charged alike whatever the client has.
            fitting_keys: most,
            publication: None,
            question: Some(QuestionTerms {
                text: run.question.text.clone(),
                template: template.map(str::to_owned),
                min_group: job.min_group,
                max_groups: job.max_groups,
                min_difference: (source.min_difference > 0).then_some(source.min_difference),
            }),
            left,
            purpose: job.gate.purpose.clone(),
            agreement: job.gate.agreement.clone(),
            expires: job.gate.expires.as_ref().map(|(date, _)| date.clone()),
            seconds: self.policy.offer_seconds,
        })
    }

    /// Judges the size that was announced, and takes the memory for it.
    fn room_for(
        &self,
        admitted: &Admitted<'_>,
        own: &Own,
        accept: &Accept,
    ) -> std::result::Result<Place, End> {
        question::size(admitted.job, accept.keys)?;
        self.is_whole(accept)?;
        let (all, one) = self.memory_of(admitted);
        let needed = admitted.run.room(own.count())?.memory(accept.keys);
        let place = (needed <= one).then(|| self.house.slots.memory(needed, all)).flatten();
        let keys = counted(accept.keys, "key");
        let what = format!("the service has no memory for a run with {keys} of yours at the moment");
        Ok(place.ok_or_else(|| No::new("memory", what))?)
    }

    /// What the service puts in, and whether its part of WHERE may be asked about beside those of earlier questions. The run
    /// is charged, so that a refusal, which tells of the table too, costs as much as an answer.
    fn prepare(
        &self,
        admitted: &Admitted<'_>,
        (run, own): (&Job, &Own),
        charge: &Charge,
    ) -> std::result::Result<Rows, No> {
        let source = admitted.source;
        let is_compared = source.min_difference > 0 && run.learns != Learns::Me;
        let read = if is_compared { Job::read_rows_and_which } else { Job::read_rows };
        let rows = read(run, own, admitted.job.first).map_err(|error| rules::fault(&error))?;
        detail("rows read", &self.run, format!("{} pass", counted(rows.passing, "key")));
        if is_compared {
            // Before an error that depends on what passes: else it would tell of sets that are never compared.
            self.compare(source, rows.passing_keys(own), charge)?;
            run.check_rows(own, &rows, admitted.job.first).map_err(|error| rules::fault(&error))?;
        }
        Ok(rows)
    }

    /// Refuses keys and rows that differ from those of an earlier question by fewer than the source's least difference, and
    /// not by none; keeps what they are.
    fn compare<'k>(
        &self,
        source: &policy::Source,
        passing: impl Iterator<Item = Passing<'k>>,
        charge: &Charge,
    ) -> std::result::Result<(), No> {
        let least = source.min_difference;
        let fault = |what: String| {
            let told =
                "the service cannot compare the question with earlier ones at the moment; ask its operator";
            No::new(MIN_DIFFERENCE, told).logged(what)
        };
        let broken = |error: Error| fault(error.to_string());
        let folder = self.policy.state.join("filters");
        self.house.ledger(|ledger| {
            let filters = Filters::open(&folder, ledger.has_filters()).map_err(broken)?;
            let sketch = filters.sketch(source, passing);
            let (known, mut is_known) = (ledger.filters(charge), false);
            for name in &known {
                let Some(by) = sketch.difference(&filters.kept(name).map_err(broken)?) else {
                    return Err(fault(format!(
                        "`key` of [sources.{}], or how its table is read and normalised, is not what it was when this peer \
                         was answered, and what passes cannot be compared: set it back, or begin anew with another `state` \
                         directory",
                        shown(&charge.source)
                    )));
                };
                is_known |= by == [0; 2];
                if by.iter().any(|by| (1..least).contains(by)) {
                    let what = format!(
                        "what passes the service's part of WHERE differs from an earlier question of yours by fewer than \
                         {}; the run is charged",
                        counted(least, "key")
                    );
                    return Err(No::new(MIN_DIFFERENCE, what));
                }
            }
            if is_known {
                return Ok(());
            }
            if known.len() >= MOST_FILTERS {
                let what = format!(
                    "{MOST_FILTERS} different sets of keys of this source are the most that one client is answered about; \
                     ask an earlier question again"
                );
                return Err(No::new(MIN_DIFFERENCE, what));
            }
            let name = filters.keep(&sketch).map_err(broken)?;
            ledger.filter(&self.run, &name).map_err(broken)
        })
    }

    /// Ends a run that was charged and that a rule refuses: it stays charged, and is no failure of the client's.
    fn refused(&self, begun: Begun, no: No) -> std::result::Result<(), End> {
        self.broke();
        begun.finish(REFUSED_RUN, &json!({ "refused": no.rule }), None)?;
        self.recorded();
        Err(no.into())
    }

    /// The run itself, our result in its file, and the signatures.
    fn play_question(
        &self,
        session: &mut Session,
        admitted: &Admitted<'_>,
        asking: &Asking<'_>,
        begun: &mut Begun,
    ) -> Result<Fate> {
        wire::send(session.channel(), &Message::Ready)?;
        let played = play::answer(session, asking, &Phases::of(&self.run))?;
        let result = answer::summary(&asking.job.question, &played.result);
        let key = self.key().map_err(|no| Error::Other(no.told))?;
        let theirs = play::close(session, Side::Service, begun, result.as_ref(), &key);
        session.end();
        let kept = within(|| match &admitted.job.output {
            Some(folder) => store(folder, &self.run, asking.job, &played.result),
            None => Ok(()),
        });
        Ok(Fate { wall: played.wall, stats: played.stats, result, theirs, kept })
    }
}

/// Our result as a file of its own, if we got one.
fn store(folder: &Path, run: &str, job: &Job, answer: &Answer) -> Result<()> {
    let Some(shown) = &answer.shown else { return Ok(()) };
    crate::file::private_folder(folder)?;
    let target = folder.join(format!("{run}.json"));
    let fault = |e| Error::file(&target, "cannot be written; is the disk full?", e);
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fault)?;
    let table = answer::table(&job.question, shown);
    let object = json!({
        "run": run, "reveal": QUESTION, "question": job.question.text,
        "columns": table["columns"], "rows": table["rows"],
    });
    writeln!(file, "{object}").map_err(fault)?;
    file.as_file().sync_all().map_err(fault)?;
    file.persist_noclobber(&target).map_err(|e| fault(e.error))?;
    crate::file::sync_folder(&target)
}
