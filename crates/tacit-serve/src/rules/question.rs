//! What the rules say to a question: which text, which columns, which groups, who gets the result.

use super::{No, is_told_alike, runs_left};
use crate::ledger::{Charge, Ledger, Spent};
use crate::policy::{Askable, Denied, QuestionJob, Source, judge};
use crate::terms::{self, Left, QUESTION};
use crate::wire::{Ask, MOST_QUESTION};
use tacit::crypto::text::counted;
use tacit::job::query::{Job, Question, Side};
use tacit::net::{escaped, shown};
use tacit::query::{Template, epsilon_text};

/// A question that the rules allow so far.
pub(crate) struct Admitted<'p> {
    pub job: &'p QuestionJob,
    pub source: &'p Source,
    /// The run as the service plays it.
    pub run: Job,
    /// The template that the question is of.
    pub template: Option<&'p str>,
}

/// Judges what is asked by everything that does not need the table.
pub(crate) fn admit<'p>(
    job: &'p QuestionJob,
    source: &'p Source,
    ask: &Ask,
) -> std::result::Result<Admitted<'p>, No> {
    if ask.reveal.as_deref().is_some_and(|kind| kind != QUESTION) {
        return Err(No::new("reveal", "this job answers only questions in SQL"));
    }
    let Some(text) = &ask.question else {
        return Err(No::new(
            "questions",
            "this job answers questions in SQL, and the request has none; give one",
        ));
    };
    if text.len() > MOST_QUESTION {
        let most = counted(MOST_QUESTION as u64, "byte");
        return Err(No::new("questions", format!("a question of a request has at most {most}; shorten it")));
    }
    let question = tacit::query::parse(text)
        .map_err(|fault| No::new("questions", format!("the question: {}", escaped(&fault.to_string()))))?;
    let template = template(job, &question)?;
    let is_alike = template.is_some_and(|(_, template)| template.asks_alike(&question, Side::Ours));
    if source.min_difference > 0 && !is_alike {
        let what = "with these values the question changes more about the service's rows than which of them pass its own \
                    conditions, and cannot be compared with earlier ones";
        return Err(No::new("min_difference", what));
    }
    let run = side(job, source, &question, ask.result.as_deref())?;
    Ok(Admitted { job, source, run, template: template.map(|(name, _)| name) })
}

/// The template that a question is of, and its name; none where any may be asked.
fn template<'p>(
    job: &'p QuestionJob,
    question: &Question,
) -> std::result::Result<Option<(&'p str, &'p Template)>, No> {
    if job.askable == Askable::Any {
        return Ok(None);
    }
    let mut why = None;
    for (name, template) in job.templates() {
        match template.matches(question) {
            Some(Ok(())) => return Ok(Some((name, template))),
            Some(Err(fault)) => {
                why = why.or_else(|| {
                    Some(format!("the question {}: {}", shown(name), escaped(&fault.to_string())))
                });
            }
            None => {}
        }
    }
    let names: Vec<String> = job.templates().map(|(name, _)| shown(name)).collect();
    let no = || {
        let names = names.join(", ");
        format!(
            "the text is none of this job's questions ({names}) with values filled in; the list of jobs has them"
        )
    };
    Err(No::new("questions", why.unwrap_or_else(no)))
}

/// The run with the result to who is asked for, or to the first that the rules allow.
fn side(
    job: &QuestionJob,
    source: &Source,
    question: &Question,
    result: Option<&str>,
) -> std::result::Result<Job, No> {
    let names: Vec<&str> = job.result.iter().map(|learns| terms::result_name(*learns)).collect();
    let no = || No::new("result", format!("the result of this job may go only to {}", names.join(" or to ")));
    let judge =
        |learns| judge(job, source, question, learns).map_err(|Denied { rule, what }| No::new(rule, what));
    let Some(name) = result else {
        let mut judged = job.result.iter().map(|learns| judge(*learns));
        let first = judged.next().unwrap_or_else(|| Err(no()));
        return first.or_else(|no| judged.find_map(std::result::Result::ok).ok_or(no));
    };
    let learns = terms::learns(name).filter(|learns| job.result.contains(learns)).ok_or_else(no)?;
    judge(learns)
}

/// Whether the rules as they are now still allow what was offered for `ask`, in the same terms.
pub(crate) fn is_as_offered(admitted: &Admitted<'_>, ask: &Ask, job: &QuestionJob, source: &Source) -> bool {
    let Admitted { job: old, source: old_source, run, template } = admitted;
    let Ok(now) = admit(job, source, ask) else { return false };
    let terms = |job: &QuestionJob| (job.min_group, job.max_groups, job.post_quantum, job.first);
    terms(old) == terms(job)
        && is_told_alike(&old.gate, &job.gate)
        && (&source.inputs, &source.key, source.min_difference, source.epsilon_in_total)
            == (&old_source.inputs, &old_source.key, old_source.min_difference, old_source.epsilon_in_total)
        && (now.run.learns, now.run.result_to_owner, now.template)
            == (run.learns, run.result_to_owner, *template)
}

/// What is left for questions of a job on this source.
pub(crate) fn left(job: &QuestionJob, source: &Source, spent: &Spent) -> Left {
    let epsilon = source.epsilon_in_total.map(|total| total.saturating_sub(spent.epsilon));
    Left { epsilon, ..super::left(&job.gate, [source.rows_in_total, source.aggregate_runs], spent) }
}

/// Judges the charge of a question by what has been spent; returns what is left, this run not yet taken off.
pub(crate) fn budget(
    ledger: &Ledger,
    job: &QuestionJob,
    source: &Source,
    charge: &Charge,
) -> std::result::Result<Left, No> {
    let spent = ledger.spent(charge);
    runs_left(&job.gate, &spent)?;
    let left = left(job, source, &spent);
    if let Some(left) = left.epsilon.filter(|left| charge.epsilon > *left) {
        let total = epsilon_text(source.epsilon_in_total.unwrap_or(0));
        let what = match left {
            0 => format!("the epsilon of all your questions, {total} in total, is used up"),
            left => format!(
                "the question asks for epsilon {}, and of {total} in total {} is left to you: a question with a smaller \
                 epsilon may still be answered",
                epsilon_text(charge.epsilon),
                epsilon_text(left)
            ),
        };
        return Err(No::new("epsilon_in_total", what));
    }
    super::total(source, charge, left)
}

/// Judges the size that the client announces.
pub(crate) fn size(job: &QuestionJob, announced: u64) -> std::result::Result<(), No> {
    super::sized([job.min_peer_keys, job.max_peer_keys], announced)
}
