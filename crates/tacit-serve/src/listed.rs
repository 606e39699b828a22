//! What a service offers a peer, job by job, before anything is asked for.

use crate::terms::{LOOKUP, Left};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tacit::crypto::text::counted;
use tacit::net::{escaped, shown};
use tacit::query::{Parameter, Template, epsilon_text};
use tacit::{Error, Result};

/// A job that a peer may ask for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// The job's name.
    pub job: String,
    /// Kinds of results, the usual one first; [`LOOKUP`] where the job answers lookups.
    pub reveal: Vec<String>,
    /// Who may get the result, the usual one first: `service`, `client` or `both`.
    pub result: Vec<String>,
    /// Columns of the service's rows that may go into a result.
    pub gives: Vec<String>,
    /// Of a job that answers questions what any of them must keep to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question_rules: Option<String>,
    /// Its own questions, if it answers no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<ListedQuestion>,
    /// How many more there are, for which the list has no room.
    #[serde(default, skip_serializing_if = "crate::ledger::is_zero")]
    pub questions_left_out: u64,
    /// Columns that make a key.
    pub key_columns: usize,
    /// Their types; nothing where the job answers lookups, whose file of tags says them.
    pub key_types: Option<String>,
    /// The least and the most distinct keys of a request.
    pub min_peer_keys: u64,
    /// See [`min_peer_keys`](Self::min_peer_keys).
    pub max_peer_keys: u64,
    /// Runs that the peer may start a day.
    pub runs_a_day: u64,
    /// What is left of the budgets.
    pub left: Left,
    /// When runs may start (UTC); always if empty.
    pub hours: Vec<String>,
    /// What a run is for.
    pub purpose: Option<String>,
    /// The contract it rests on.
    pub agreement: Option<String>,
    /// The last day on which runs may start.
    pub expires: Option<String>,
    /// The rule by which the service would refuse a request now, if one does, and why.
    pub refused: Option<(String, String)>,
}

/// A question of a job, with parameters.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedQuestion {
    /// Its name.
    pub name: String,
    /// Its text, in which `:name` is the value of a parameter.
    pub sql: String,
    /// The parameters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<ListedParameter>,
}

/// A parameter of a question.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedParameter {
    /// Its name, without the colon.
    pub name: String,
    /// The type of its values: `integer`, `decimal2` and the like, `date` or `text`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it may be, in words.
    pub words: String,
}

impl ListedQuestion {
    /// Its text with these values, each the name of a parameter and what is written for it without quotes.
    ///
    /// Errors: a parameter that there is not, has no value or two, and a value that is not of its type.
    pub fn filled(&self, values: &[(String, String)]) -> Result<String> {
        let fault = |what: String| Error::Parameter { name: "set", what };
        let known = || {
            let names: Vec<String> = self.parameters.iter().map(|one| shown(&one.name)).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        let is_known = |name: &String| self.parameters.iter().any(|parameter| parameter.name == *name);
        if let Some((name, _)) = values.iter().find(|(name, _)| !is_known(name)) {
            let (name, question) = (shown(name), shown(&self.name));
            let what = format!("the question {question} has no parameter {name}; it has {}", known());
            return Err(fault(what));
        }
        let mut parameters = Vec::new();
        for ListedParameter { name, kind, words } in &self.parameters {
            let given: Vec<String> =
                values.iter().filter(|(other, _)| other == name).map(|(_, value)| value.clone()).collect();
            let [_] = &given[..] else {
                let times = if given.is_empty() { "no value" } else { "two values" };
                let (name, words) = (shown(name), shown(words));
                return Err(fault(format!("{name} has {times}; give it one: {words}")));
            };
            let parameter = Parameter::new(name, kind, &given, [None; 2]);
            parameters.push(parameter.map_err(|error| fault(escaped(&error.to_string())))?);
        }
        let odd = |fault: String| {
            let question = shown(&self.name);
            Error::Peer(format!("the service's question {question} cannot be asked: {}", escaped(&fault)))
        };
        let template = Template::new(&self.sql, parameters).map_err(|fault| odd(fault.to_string()))?;
        let sample = template.samples().into_iter().next();
        sample.map(|question| question.text).ok_or_else(|| odd("it has no text".to_owned()))
    }
}

impl Listed {
    /// The question of this name.
    ///
    /// Errors: there is none in the list.
    pub fn question(&self, name: &str) -> Result<&ListedQuestion> {
        let found = self.questions.iter().find(|question| question.name == name);
        found.ok_or_else(|| {
            let names: Vec<String> = self.questions.iter().map(|question| shown(&question.name)).collect();
            let (job, name) = (shown(&self.job), shown(name));
            let what = match (&names[..], self.questions_left_out) {
                ([], 0) => format!("the job {job} has no questions of its own; give the text of one"),
                (_, 0) => format!("the job {job} has no question {name}; it has {}", names.join(", ")),
                _ => format!(
                    "the list of the job {job} has no question {name}, and no room for all; give its text"
                ),
            };
            Error::Parameter { name: "question", what }
        })
    }

    /// The job for programs. What is left of a job that answers lookups are queries, which the message has as rows.
    pub fn object(&self) -> serde_json::Result<Value> {
        let mut object = serde_json::to_value(self)?;
        if self.is_lookup() {
            object["left"] = json!({ "runs_today": self.left.runs_today, "queries": self.left.rows });
        }
        Ok(object)
    }

    fn is_lookup(&self) -> bool {
        self.reveal.iter().any(|kind| kind == LOOKUP)
    }

    /// What a user should know of the job, a line each.
    pub fn words(&self) -> Vec<String> {
        let list = |texts: &[String]| texts.iter().map(|text| shown(text)).collect::<Vec<_>>().join(", ");
        let Left { runs_today, rows, aggregates, epsilon } = self.left;
        let budget = match self.is_lookup() {
            true => counted(rows, "query"),
            false => format!(
                "{rows} and {aggregates} in total{}",
                epsilon.map_or(String::new(), |left| format!(", and an epsilon of {}", epsilon_text(left))),
                rows = counted(rows, "row"),
                aggregates = counted(aggregates, "aggregate")
            ),
        };
        let mut lines = vec![
            format!("{}: {} to {}", shown(&self.job), list(&self.reveal), list(&self.result)),
            format!(
                "  {} to {}, from {}: {}",
                self.min_peer_keys,
                counted(self.max_peer_keys, "distinct key"),
                counted(self.key_columns, "column"),
                self.key_types.as_deref().map_or("type as in the tag file".to_owned(), shown)
            ),
            format!("  left: {runs_today} of {} today; {budget}", counted(self.runs_a_day, "run")),
        ];
        if !self.gives.is_empty() {
            lines.push(format!("  columns that the service may send: {}", list(&self.gives)));
        }
        lines.extend(self.question_rules.iter().map(|rules| format!("  {}", escaped(rules))));
        for ListedQuestion { name, sql, parameters } in &self.questions {
            let open: String = parameters.iter().map(|one| format!("; {}", escaped(&one.words))).collect();
            lines.push(format!("  question {}: {}{open}", shown(name), escaped(sql)));
        }
        if self.questions_left_out > 0 {
            let more = counted(self.questions_left_out, "further question");
            lines.push(format!("  and {more}, for which there is no room here"));
        }
        if !self.hours.is_empty() {
            lines.push(format!("  starts {} (UTC)", list(&self.hours)));
        }
        let more = [("purpose", &self.purpose), ("agreement", &self.agreement), ("last day", &self.expires)];
        let said =
            more.into_iter().filter_map(|(name, text)| Some(format!("  {name}: {}", shown(text.as_ref()?))));
        lines.extend(said);
        if let Some((rule, what)) = &self.refused {
            lines.push(format!("  currently refused, by the rule `{}`: {}", shown(rule), shown(what)));
        }
        lines
    }
}
