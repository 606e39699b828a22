//! Numbers over all common keys in a result, for people and for programs.

use serde_json::{Value, json};
use tacit::crypto::text::counted;
use tacit::data::values::{Column, Form, decimal};
use tacit::job::psi::{Aggregate, Each, Found, Job, Reveal, Statistic, Total};

/// A number, and what there is to know about it.
pub(super) struct Number {
    fields: Vec<(&'static str, Value)>,
    pub(super) text: String,
}

impl Number {
    /// That too few keys count: for a column those alone that have a number.
    fn withheld(job: &Job) -> Self {
        let least = counted(job.min_matches, "matching key");
        let with = job.reveal.column().map_or("", |_| " with a number");
        Number {
            fields: vec![("withheld", json!(true))],
            text: format!("withheld: fewer than {least}{with}\n"),
        }
    }

    pub(super) fn of(found: &Aggregate, job: &Job) -> Self {
        let digits = digits(&job.reveal);
        let (fields, text) = match found {
            Aggregate::Withheld => return Number::withheld(job),
            Aggregate::Count(count) => {
                (vec![("count", json!(count))], format!("{count} in common\n", count = counted(count, "key")))
            }
            Aggregate::Sum(sum) => (vec![("sum", big(*sum))], format!("sum {}\n", decimal(*sum, digits))),
            Aggregate::Mean { sum, rows } => {
                let mean = (*rows > 0).then(|| *sum as f64 / *rows as f64);
                let fields = vec![("sum", big(*sum)), ("rows", json!(rows)), ("mean", json!(mean))];
                let mean = match rows {
                    0 => "no mean".to_owned(),
                    rows => format!("mean {}", crate::cli::mean(*sum, *rows, digits)),
                };
                let sum = decimal(*sum, digits);
                (fields, format!("{mean}: sum {sum} of {rows}\n", rows = counted(rows, "row")))
            }
        };
        Number { fields, text }
    }

    pub(super) fn of_statistic(found: Found, job: &Job) -> Self {
        let name = job.reveal.name();
        let number = match found {
            Found::Withheld => return Number::withheld(job),
            Found::Nothing => {
                let text = "no matching key has a number\n".to_owned();
                return Number { fields: vec![(name, json!(null))], text };
            }
            Found::Number(number) => number,
        };
        let mut fields = vec![(name, json!(number))];
        let within = job.written_bounds().map(|bounds| format!("within {bounds}"));
        let is_at_bound = job.bounds.map(|bounds| [bounds.least(), bounds.most()].contains(&number));
        let (said, more) = if let Reveal::Of(Statistic::Over(limit), column) = &job.reveal {
            let (keys, have) = (counted(number, "matching key"), if number == 1 { "has" } else { "have" });
            let (column, limit) = (named(column, &job.reveal), job.reveal.form().written(*limit));
            (format!("{keys} {have} {column} above {limit}"), within)
        } else {
            let is_at_bound = is_at_bound.unwrap_or(false);
            if within.is_some() {
                fields.push(("at_bound", json!(is_at_bound)));
            }
            let more = within.map(|within| {
                let at = if is_at_bound { ", at the bound: the number itself may be beyond it" } else { "" };
                within + at
            });
            (format!("{name} {}", job.reveal.form().written(number)), more)
        };
        let more = more.map_or_else(String::new, |more| format!(" ({more})"));
        Number { fields, text: format!("{said}{more}\n") }
    }

    pub(super) fn of_total(found: &Total, job: &Job) -> Self {
        match found {
            Total::Withheld => Number::of(&Aggregate::Withheld, job),
            Total::Of { value, flags } => {
                let name = job.each.as_ref().map_or("sum", Each::total_name);
                let wrong = (!flags.is_empty())
                    .then(|| format!("{} for a matching key: the result is wrong", flags.join(", ")));
                let noted = wrong.as_ref().map_or_else(String::new, |wrong| format!("note: {wrong}\n"));
                let is_wrong = json!(wrong.is_some());
                let fields = vec![(name, big(*value)), ("flags", json!(flags)), ("is_wrong", is_wrong)];
                Number { fields, text: format!("{name} {value}\n{noted}") }
            }
        }
    }

    pub(super) fn put_into(&self, object: &mut Value) {
        object["withheld"] = json!(false);
        for (name, value) in &self.fields {
            object[*name] = value.clone();
        }
    }
}

/// What both sides agreed on about a number, in the smallest unit of its column.
pub(super) fn agreed(job: &Job, object: &mut Value) {
    object["min_matches"] = json!(job.min_matches);
    if let Some(bounds) = job.bounds {
        object["bounds"] = json!([bounds.least(), bounds.most()]);
    }
    if let Reveal::Of(Statistic::Over(limit), _) = &job.reveal {
        object["threshold"] = json!(limit);
    }
    if let Some(each) = &job.each {
        object["function"] = json!(each.function().name);
        object["circuit_digest"] = json!(each.digest());
        object["aggregate"] = json!(each.total_name());
    }
}

/// The digits behind the point that the numbers of a column typed `decimalN` stand for; 0 of other columns.
pub(super) fn digits(reveal: &Reveal) -> u32 {
    match reveal.form() {
        Form::Decimal(digits) => digits.into(),
        _ => 0,
    }
}

/// The name of a column of numbers without its decimal places.
fn named(column: &str, reveal: &Reveal) -> String {
    let plain = match reveal.form() {
        Form::Decimal(_) => Column::parse(column).name,
        _ => column.to_owned(),
    };
    tacit::net::shown(&plain)
}

/// A number of up to 96 bits: text where JSON's numbers end.
fn big(number: i128) -> Value {
    i64::try_from(number).map_or_else(|_| json!(number.to_string()), |number| json!(number))
}
