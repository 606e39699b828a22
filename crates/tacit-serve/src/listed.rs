//! What a service offers a peer, job by job, before anything is asked for.

use crate::terms::{LOOKUP, Left};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tacit::crypto::text::counted;
use tacit::net::shown;

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

impl Listed {
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
        let Left { runs_today, rows, aggregates } = self.left;
        let budget = match self.is_lookup() {
            true => counted(rows, "query"),
            false => format!(
                "{rows} and {aggregates} in total",
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
