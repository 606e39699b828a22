//! `--or-key`: matching by any of several identifiers, and what came of each.

use super::keys::{Columns, all, key_list};
use super::results::ResultArgs;
use serde_json::{Value, json};
use tacit::crypto::text::counted;
use tacit::data::By;
use tacit::data::keys::Named;
use tacit::data::records::{Counts, KeySet, KeySpec, Likeness, MAX_IDENTIFIERS};
use tacit::{Error, Result};

/// Identifiers beside the one of `--key`.
#[derive(clap::Args)]
pub(crate) struct OrKeyArgs {
    /// Another identifier by which a row may match: columns with their types, as in --key; repeat it for more, in order.
    /// The side with the result learns for each of its identifiers whether the peer has it; each counts as a key. Must
    /// match on both sides
    #[arg(long, value_name = "[LABEL=]COL[:TYPE],..", num_args = 1, value_parser = key_list)]
    or_key: Vec<Columns<Named>>,
}

/// The column of the output that says by what a row matches.
#[derive(clap::Args)]
pub(crate) struct MatchedByArgs {
    /// With --or-key: adds a column of this name to --output and --output-all, with the first identifier by which
    /// the row matches
    #[arg(long, value_name = "COLUMN", requires = "or_key")]
    pub(crate) matched_by: Option<String>,
}

impl OrKeyArgs {
    /// Whether there is one.
    pub(crate) fn is_given(&self) -> bool {
        !self.or_key.is_empty()
    }

    /// The same key, or else these identifiers.
    pub(crate) fn add(&self, spec: KeySpec) -> Result<KeySpec> {
        with_more("or-key", spec, &self.or_key)
    }

    /// Refuses more than one identifier.
    pub(crate) fn refuse(&self, what: &str) -> Result<()> {
        match self.is_given() {
            true => Err(Error::Parameter { name: "or-key", what: what.to_owned() }),
            false => Ok(()),
        }
    }
}

/// The same key, or else these identifiers, which the option `name` has.
pub(crate) fn with_more(name: &'static str, spec: KeySpec, more: &[Columns<Named>]) -> Result<KeySpec> {
    if more.len() >= MAX_IDENTIFIERS {
        let what = format!("a row has at most {MAX_IDENTIFIERS} identifiers; give fewer");
        return Err(Error::Parameter { name, what });
    }
    Ok(more.iter().fold(spec, |spec, columns| spec.or(all(std::slice::from_ref(columns)))))
}

impl MatchedByArgs {
    /// Refuses a column that no output would have.
    pub(crate) fn check(&self, results: &ResultArgs) -> Result<()> {
        match &self.matched_by {
            Some(_) if !results.has_matches() => {
                let what = "adds a column to --output or --output-all; give one of them".into();
                Err(Error::Parameter { name: "matched-by", what })
            }
            _ => Ok(()),
        }
    }

    /// The column with the identifiers' `names`.
    pub(crate) fn by<'a>(&'a self, names: &'a [String]) -> Option<By<'a>> {
        self.matched_by.as_deref().map(|column| By { column, names })
    }
}

/// What a table has of each identifier, for programs: rows that have it and, where that is known, distinct values or
/// variants.
pub(crate) fn object(spec: &KeySpec, rows: &[u64], distinct: Option<&[u64]>) -> Value {
    let types = spec.types_of_each();
    let each = spec.identifier_names().into_iter().zip(types).enumerate().map(|(at, (name, types))| {
        json!({ "identifier": name, "type": types, "rows": rows.get(at), "distinct": distinct.and_then(|of| of.get(at)) })
    });
    each.collect()
}

/// Adds what matches of each identifier, for programs, and says it for people, in lines: rows by the first identifier
/// that both have, and distinct values in common.
pub(crate) fn matched(spec: &KeySpec, matched: &[Counts], has_distinct: bool, object: &mut Value) -> String {
    let each = spec.identifier_names().into_iter().zip(matched);
    let (mut by, mut common) = (Vec::new(), Vec::new());
    for (at, (name, of)) in each.enumerate() {
        object["identifiers"][at]["rows_matched_by"] = json!(of.rows);
        by.push(format!("{} by {name}", of.rows));
        if has_distinct {
            object["identifiers"][at]["matches"] = json!(of.distinct);
            common.push(format!("{} of {name}", of.distinct));
        }
    }
    let rows: u64 = matched.iter().map(|of| of.rows).sum();
    object["matching_rows"] = json!(rows);
    let rows = counted(rows, "row");
    let mut text = format!("{rows} of yours with a match: {}\n", by.join(", "));
    if has_distinct {
        let values: u64 = matched.iter().map(|of| of.distinct).sum();
        let values = counted(values, if spec.has_variants() { "variant" } else { "identifier" });
        text += &format!("{values} in common: {}\n", common.join(", "));
    }
    text
}

/// Adds how many variants rows have and how many rows of one's own look like another, for programs, and says it for people,
/// a line for each identifier that has variants.
pub(crate) fn likeness(spec: &KeySpec, keys: &KeySet, object: &mut Value) -> String {
    let mut text = String::new();
    for (identifier, name) in spec.identifier_names().into_iter().enumerate() {
        if !spec.types[spec.parts(identifier)].iter().any(|kind| kind.is_near()) {
            continue;
        }
        let Likeness { variants, most_variants, distinct, shared } = keys.likeness(identifier);
        let rows = keys.counts()[identifier].rows;
        let per_row = if rows == 0 { 0.0 } else { variants as f64 / rows as f64 };
        object["identifiers"][identifier]["variants"] = json!({
            "per_row": per_row, "most": most_variants, "different_rows": distinct, "sharing_rows": shared,
        });
        text += &format!("{name}: {per_row:.1} variants per row, {most_variants} at most; ");
        text += &format!(
            "{shared} of {} of your own have a variant in common with another\n",
            counted(distinct, "different row")
        );
    }
    if !text.is_empty() {
        text += "note: this is how similar your own rows are; a stranger's row can match one of the peer's in the same way\n";
    }
    text
}

/// What a table's keys are called where they are counted.
pub(crate) fn noun(spec: Option<&KeySpec>) -> &'static str {
    match spec {
        Some(spec) if spec.has_variants() => "distinct variant",
        Some(spec) if spec.has_several() => "distinct identifier",
        _ => "distinct key",
    }
}
