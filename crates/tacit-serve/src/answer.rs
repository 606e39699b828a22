//! What a question's result is in records and in files.

use crate::json::{canonical, hex};
use serde_json::{Value, json};
use tacit::job::query::{Answer, Cell, Question, Shown};

/// Whole numbers from here on are text.
const FIRST_AS_TEXT: u64 = 1 << 53;

/// The groups that a result shows: `columns`, their names, and `rows`, each a list of cells. A number of 2^53
/// and more in size is text, so that no reader rounds it.
pub fn table(question: &Question, shown: &[Shown]) -> Value {
    let names: Vec<&String> = question.outputs.iter().map(|(name, _)| name).collect();
    let cell = |cell: Cell| match cell {
        Cell::Null => Value::Null,
        Cell::Truth(is) => json!(is),
        Cell::Integer(number) => {
            let whole = i64::try_from(number).ok().filter(|number| number.unsigned_abs() < FIRST_AS_TEXT);
            whole.map_or_else(|| json!(number.to_string()), |number| json!(number))
        }
        Cell::Text(text) => json!(text),
    };
    let row = |one: &Shown| question.render(one.group, &one.values).into_iter().map(cell).collect::<Value>();
    json!({ "columns": names, "rows": shown.iter().map(row).collect::<Value>() })
}

/// What a side commits to as its result: how many groups it was shown, of how many, and the hash of their [`table`]; nothing
/// where it got none.
pub(crate) fn summary(question: &Question, answer: &Answer) -> Option<Value> {
    let shown = answer.shown.as_ref()?;
    let text = canonical(&table(question, shown)).unwrap_or_default();
    let hash = hex(blake3::hash(text.as_bytes()).as_bytes());
    Some(json!({ "groups_shown": shown.len(), "groups": question.group_count(), "table": hash }))
}
