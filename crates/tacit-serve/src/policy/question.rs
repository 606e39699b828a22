//! Jobs that answer questions in SQL about a table and the client's.

use super::names::names_of;
use super::reader::{At, Section};
use super::words::{results, source_name, word};
use super::{Gate, Known, MANY, Source};
use crate::ledger;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use tacit::Security;
use tacit::crypto::text::counted;
use tacit::job::psi::Learns;
use tacit::job::query::{Job, MOST_KEYS, Purpose, Question, Side, USUAL_LEAST};
use tacit::net::{escaped, shown};
use tacit::query::{MOST_GROUPS, Parameter, Template, epsilon_text};

/// Which questions a job answers.
#[derive(Clone, PartialEq, Debug)]
pub enum Askable {
    /// Any that the job's other rules allow.
    Any,
    /// Those of these templates, by name.
    Templates(BTreeMap<String, Template>),
}

/// A job of the kind `question`: the service's table is the question's `ours`, the client's is `theirs`.
#[derive(Clone, PartialEq, Debug)]
pub struct QuestionJob {
    /// On which source.
    pub source: String,
    /// Who may ask, how often and when.
    pub gate: Gate,
    /// Which questions.
    pub askable: Askable,
    /// What each column of the source may be used for.
    pub columns: Vec<(String, Purpose)>,
    /// Who may get the result; the first unless the peer names another.
    pub result: Vec<Learns>,
    /// Whether a side gets what is made of its own columns.
    pub result_to_owner: bool,
    /// The least joined rows of a group that a result may show.
    pub min_group: u64,
    /// The most groups of a question.
    pub max_groups: u64,
    /// Whether of several rows with one key that pass the service's part of WHERE the first counts; else they end the
    /// run.
    pub first: bool,
    /// The least distinct keys that the peer must have, as it announces.
    pub min_peer_keys: u64,
    /// The most distinct keys that the peer may have.
    pub max_peer_keys: u64,
    /// Whether everything has to hold against a quantum computer.
    pub post_quantum: bool,
    /// Bytes that one run may take.
    pub memory: Option<u64>,
    /// The folder for our results, where we get some.
    pub output: Option<PathBuf>,
}

impl QuestionJob {
    /// The base OT's name, where it is not the default one.
    pub fn base_ot(&self) -> Option<&'static str> {
        self.post_quantum.then_some("roted")
    }

    /// The templates, by name; none where any question may be asked.
    pub fn templates(&self) -> impl Iterator<Item = (&str, &Template)> {
        let templates = match &self.askable {
            Askable::Any => None,
            Askable::Templates(templates) => Some(templates),
        };
        templates.into_iter().flatten().map(|(name, template)| (name.as_str(), template))
    }

    pub(super) fn read(section: &mut Section<'_, '_, '_>, known: &Known<'_>) -> Option<Self> {
        let start = section.at();
        let source_name = source_name(section, known);
        let gate = Gate::read(section, known);
        let columns = columns(section);
        let (askable, places) = askable(section);
        let result = results(section);
        let result_to_owner = section.yes("result_to_owner", false);
        let min_group = section.number("min_group", 0..=MANY).unwrap_or(USUAL_LEAST);
        let max_groups = section.number("max_groups", 1..=MOST_GROUPS as u64).unwrap_or(MOST_GROUPS as u64);
        let several = [("refuse", false), ("first", true)];
        let first = section.text("duplicates").and_then(|said| word(section, "duplicates", &said, &several));
        let min_peer_keys = section.number("min_peer_keys", 0..=MANY).unwrap_or(0);
        let max_peer_keys = section.wanted_number("max_peer_keys", 1..=MOST_KEYS);
        security(section);
        let post_quantum = section.yes("post_quantum", false);
        let memory = section.number("memory_mib", 64..=1 << 24).map(|mib| mib << 20);
        let output = section.text("output").map(|folder| known.folder.join(folder.value));
        let source_name = source_name?;
        let job = QuestionJob {
            source: source_name.value,
            gate: gate?,
            askable: askable?,
            columns,
            result,
            result_to_owner,
            min_group,
            max_groups,
            first: first.unwrap_or(false),
            min_peer_keys,
            max_peer_keys: max_peer_keys?,
            post_quantum,
            memory,
            output,
        };
        if job.min_peer_keys > job.max_peer_keys {
            section.fault(start, "`min_peer_keys` is more than `max_peer_keys`, which excludes every peer");
        }
        let source = known.sources.get(&job.source)?;
        job.together(section, source, (start, source_name.at), &places);
        Some(job)
    }

    /// Notes what does not go together; `places` are those of the templates.
    fn together(
        &self,
        section: &mut Section<'_, '_, '_>,
        source: &Source,
        (start, at): (usize, usize),
        places: &BTreeMap<String, usize>,
    ) {
        let name = &self.source;
        if source.key.is_open() {
            let what = "`source`: a question joins by one key; name a source without `or_keys` and types for near matches";
            section.fault(at, what);
            return;
        }
        let reveals = self.result.iter().any(|learns| *learns != Learns::Me);
        for (budget, left) in
            [("rows_in_total", source.rows_in_total), ("aggregate_runs", source.aggregate_runs)]
        {
            if reveals && left == 0 {
                section.fault(
                    at,
                    format!("an answer to the peer needs a budget: `{budget}` in [sources.{name}]"),
                );
            }
        }
        if self.result.iter().any(|learns| *learns != Learns::Peer) && self.output.is_none() {
            section.fault(start, "`output` must name the directory for the service's results");
        }
        if source.min_difference > 0 && self.askable == Askable::Any {
            let what = format!(
                "`questions`: [sources.{name}] has `min_difference`, which sees no condition that a question hides in CASE \
                 or in a group; list templates in place of \"any\""
            );
            section.fault(start, what);
        }
        for (template_name, template) in self.templates() {
            let at = places.get(template_name).copied().unwrap_or(start);
            if source.min_difference > 0
                && let Some(parameter) = template.changes_rows(Side::Ours)
            {
                let what = format!(
                    "`:{}` changes what is counted, compared or shown of a row of ours, which `min_difference` of \
                     [sources.{name}] does not see; use it in conditions of WHERE, outside a subquery, that name columns of one side only",
                    parameter.name()
                );
                section.fault(at, what);
            }
            for sample in template.samples() {
                // Who gets it is asked for; one that may is enough.
                let judged: Vec<_> = self
                    .result
                    .iter()
                    .map(|learns| judge(self, source, &sample, *learns).map(|_| ()))
                    .collect();
                if let Some(Err(no)) = judged.first()
                    && judged.iter().all(Result::is_err)
                {
                    section.fault(at, format!("`sql`: {} (rule `{}`)", no.what, no.rule));
                    break;
                }
            }
        }
    }
}

/// Two sources that questions are answered about, which have a table in common and not the same rules for it: what a
/// peer is answered of one is known of the other.
pub(crate) struct Odd<'s> {
    pub(crate) names: [&'s str; 2],
    what: &'static str,
}

impl fmt::Display for Odd<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, other] = self.names;
        write!(
            f,
            "[sources.{one}] reads a table of [sources.{other}], and questions are answered about both: give them {}",
            self.what
        )
    }
}

/// All such pairs, as files are now.
pub(crate) fn odd_sources<'s>(
    sources: &'s BTreeMap<String, Source>,
    jobs: &BTreeMap<String, QuestionJob>,
) -> Vec<Odd<'s>> {
    let is_asked = |name: &String| jobs.values().any(|job| job.source == *name);
    let is_ruled = |one: &Source| one.min_difference > 0 || one.epsilon_in_total.is_some();
    let asked: Vec<_> = sources.iter().filter(|(name, _)| is_asked(name)).collect();
    if !asked.iter().any(|(_, source)| is_ruled(source)) {
        return Vec::new();
    }
    let accounts = accounts(&names_of(sources, &[]));
    let account = |name: &str| accounts.get(&ledger::source_name(name));
    let mut odd = Vec::new();
    for (at, (name, source)) in asked.iter().enumerate() {
        for (other_name, other) in &asked[..at] {
            if account(name) != account(other_name) || !(is_ruled(source) || is_ruled(other)) {
                continue;
            }
            let rules = |one: &Source| (one.min_difference, one.epsilon_in_total, one.place());
            let what = if rules(source) != rules(other) {
                "the same `input`, `min_difference` and `epsilon_in_total`"
            } else if source.min_difference > 0
                && (&source.key, source.options) != (&other.key, other.options)
            {
                "the same `key` and the same settings of the table, or `min_difference` cannot compare what passes"
            } else {
                continue;
            };
            odd.push(Odd { names: [name, other_name], what });
        }
    }
    odd
}

/// Which account each name is of, where names of one group are of one.
fn accounts(groups: &[Vec<String>]) -> BTreeMap<String, usize> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for (number, group) in groups.iter().enumerate() {
        let known: BTreeSet<usize> = group.iter().filter_map(|name| found.get(name).copied()).collect();
        found.values_mut().filter(|account| known.contains(account)).for_each(|account| *account = number);
        found.extend(group.iter().map(|name| (name.clone(), number)));
    }
    found
}

/// Questions hold against peers that follow the protocol, and the policy says that it knows.
fn security(section: &mut Section<'_, '_, '_>) {
    let levels = [("malicious", Security::Malicious), ("semi-honest", Security::SemiHonest)];
    let said = section.text("security");
    let level = said.as_ref().map(|said| word(section, "security", said, &levels));
    if matches!(level, None | Some(Some(Security::Malicious))) {
        let at = said.map_or(section.at(), |said| said.at);
        let what = "a question is secure only against a client that follows the protocol: set `security = \
                    \"semi-honest\"` if that is enough";
        section.fault(at, what);
    }
}

/// What each column may be used for.
fn columns(section: &mut Section<'_, '_, '_>) -> Vec<(String, Purpose)> {
    let mut found = Vec::new();
    for At { value, at } in section.wanted_list("columns") {
        let purpose = value.rsplit_once(':').and_then(|(column, name)| {
            let purpose = Purpose::named(name.trim())?;
            Some((column.trim().to_owned(), purpose))
        });
        match purpose {
            Some(one) => found.push(one),
            None => {
                let value = shown(&value);
                let what = format!(
                    "`columns`: `{value}`: write COL:USE, where USE is join, filter, group or aggregate"
                );
                section.fault(at, what);
            }
        }
    }
    found
}

/// Which questions may be asked, and where each template stands.
fn askable(section: &mut Section<'_, '_, '_>) -> (Option<Askable>, BTreeMap<String, usize>) {
    let mut places = BTreeMap::new();
    if section.is_text("questions") {
        let said = section.text("questions");
        let any = said.and_then(|said| word(section, "questions", &said, &[("any", ())]));
        return (any.map(|()| Askable::Any), places);
    }
    let mut templates = BTreeMap::new();
    let tables = section.wanted_tables("questions");
    let count = tables.len();
    for (name, table) in tables {
        let title = format!("the question {}", name.value);
        let template = section.inner(table, &title, name.at, |inner| {
            let at = inner.wanted_text("sql").map(|sql| (sql.at, sql.value));
            let parameters = parameters(inner);
            let (at, sql) = at?;
            match Template::new(&sql, parameters?) {
                Ok(template) => Some((at, template)),
                Err(fault) => {
                    inner.fault(at, format!("`sql`: {}", escaped(&fault.to_string())));
                    None
                }
            }
        });
        if let Some((at, template)) = template {
            places.insert(name.value.clone(), at);
            templates.insert(name.value, template);
        }
    }
    let is_whole = count > 0 && templates.len() == count;
    (is_whole.then_some(Askable::Templates(templates)), places)
}

/// The parameters of a template; nothing where one is wrong.
fn parameters(section: &mut Section<'_, '_, '_>) -> Option<Vec<Parameter>> {
    let tables = section.tables("parameters");
    let count = tables.len();
    let mut found = Vec::new();
    for (name, table) in tables {
        let title = format!("the parameter {}", name.value);
        found.extend(section.inner(table, &title, name.at, |inner| {
            let kind = inner.wanted_text("type");
            let values: Vec<String> = inner.literals("values").into_iter().map(|said| said.value).collect();
            let bounds = [inner.literal("least"), inner.literal("most")];
            let kind = kind?;
            let bounds = bounds.each_ref().map(|said| said.as_ref().map(|said| said.value.as_str()));
            match Parameter::new(&name.value, &kind.value, &values, bounds) {
                Ok(parameter) => Some(parameter),
                Err(fault) => {
                    inner.fault(kind.at, escaped(&fault.to_string()));
                    None
                }
            }
        }));
    }
    (found.len() == count).then_some(found)
}

/// The rule that does not allow a question, and why, in words for whoever asks.
#[derive(Debug)]
pub(crate) struct Denied {
    pub rule: &'static str,
    pub what: String,
}

impl Denied {
    fn new(rule: &'static str, what: impl Into<String>) -> Self {
        Denied { rule, what: what.into() }
    }
}

/// The run of a question whose result goes there, if the rules of the job allow it.
pub(crate) fn judge(
    job: &QuestionJob,
    source: &Source,
    question: &Question,
    learns: Learns,
) -> std::result::Result<Job, Denied> {
    let run = Job::new(question.clone(), Side::Ours, learns, source.key.normalisation)
        .map_err(|error| Denied::new("questions", escaped(&error.to_string())))?;
    if (&run.key.columns, run.key.agreed_types()) != (&source.key.columns, source.key.agreed_types()) {
        let columns = source.key.columns.iter().map(|name| shown(name)).collect::<Vec<_>>().join(", ");
        let what = format!(
            "the table of the service is joined by {columns} ({}): name that of `ours` in ON, in this order",
            shown(&source.key.agreed_types())
        );
        return Err(Denied::new("key", what));
    }
    let uses = &question.tables[Side::Ours as usize].uses;
    let is_allowed = |one: &&tacit::query::Use| {
        job.columns.iter().any(|(column, purpose)| *column == one.column && *purpose == one.purpose)
    };
    if let Some(one) = uses.iter().find(|one| !is_allowed(one)) {
        let (column, purpose) = (shown(&one.column), one.purpose.name());
        let what =
            format!("this job does not let a question use the column `{column}` of `ours` to {purpose}");
        return Err(Denied::new("columns", what));
    }
    if question.least < job.min_group {
        let (least, asked) = (counted(job.min_group, "joined row"), question.least);
        let what = format!(
            "a group of this job's results has at least {least}, and the question shows groups of {asked}: write HAVING \
             COUNT(*) >= {} in it",
            job.min_group
        );
        return Err(Denied::new("min_group", what));
    }
    let groups = question.group_count() as u64;
    if groups > job.max_groups {
        let what = format!(
            "the question has {}, and this job answers questions of at most {}",
            counted(groups, "group"),
            job.max_groups
        );
        return Err(Denied::new("max_groups", what));
    }
    if let Some(total) = source.epsilon_in_total.filter(|_| learns != Learns::Me) {
        let total_text = epsilon_text(total);
        let what = match question.epsilon {
            None => format!(
                "this service answers about the table only with noise: end the question with WITH NOISE EPSILON e, where \
                 the epsilons of all your questions add up to at most {total_text}"
            ),
            Some(epsilon) if epsilon > total => format!(
                "the question's epsilon of {} is more than the {total_text} of all your questions together; write a smaller \
                 one",
                epsilon_text(epsilon)
            ),
            Some(_) => String::new(),
        };
        if !what.is_empty() {
            return Err(Denied::new("epsilon_in_total", what));
        }
    }
    let owner = run.goes_to_owner();
    if owner && !job.result_to_owner {
        let what = "a side would get what is made of its own columns, and can read from it which keys match; ask for the \
                    result to the other side, or for what is made of the other side's columns";
        return Err(Denied::new("result_to_owner", what));
    }
    Ok(Job {
        key: source.key.clone(),
        least: job.min_group,
        allowed: Some(job.columns.clone()),
        result_to_owner: owner,
        most_peer_keys: Some(job.max_peer_keys),
        ..run
    })
}
