//! Rows of several elements: what both sides agree on, and which results there are.
//!
//! A row has an element for each identifier that it has, and of a type for near matches one for each variant. What runs is
//! an intersection of these elements. So the side with the result learns of each of its identifiers or variants whether
//! the other side has it, and not only which rows match; and only results that tell of single elements can be had: a
//! number over common elements would count a person once for each that both have.

use super::Reveal;
use crate::{Error, Result};
use tacit_data::keys::MAX_VARIANTS;
use tacit_data::records::KeySpec;
use tacit_net::{Agreement, Difference};

/// The setting of how many identifiers there are; a side with one key does not have it.
const IDENTIFIERS: &str = "identifiers";
/// How the settings of the second identifier and of further ones begin, with the number behind it.
const IDENTIFIER: &str = "identifier ";
/// The settings of the first one, which is the key of a side with one.
const OF_FIRST: [&str; 3] = ["key columns", "key types", "key labels"];

/// Adds what makes a key: columns, types and labels of each identifier.
pub(super) fn agree(agreement: Agreement, key: &KeySpec) -> Agreement {
    let labels = if key.labels.iter().all(Option::is_none) {
        vec![key.agreed_labels(); key.identifiers()]
    } else {
        key.labels_of_each()
    };
    let mut agreement = match key.has_several() {
        true => agreement.with(IDENTIFIERS, key.identifiers()),
        false => agreement,
    };
    let each = key.types_of_each().into_iter().zip(labels).enumerate();
    for (identifier, (types, labels)) in each {
        let columns = key.parts(identifier).len();
        let name = |of: &str| match identifier {
            0 => format!("key {of}"),
            _ => format!("{IDENTIFIER}{} {of}", identifier + 1),
        };
        agreement =
            agreement.with(name("columns"), columns).with(name("types"), types).with(name("labels"), labels);
    }
    agreement
}

/// Whether a setting is of what makes a key.
pub(super) fn is_of_keys(setting: &str) -> bool {
    setting == IDENTIFIERS || OF_FIRST.contains(&setting) || setting.starts_with(IDENTIFIER)
}

/// Leaves out what only follows from another number of identifiers, or of columns.
pub(super) fn causes(differences: &mut Vec<Difference>) {
    let number = differences.iter().position(|one| one.setting == IDENTIFIERS);
    if let Some(at) = number {
        let one = || Some("1".to_owned());
        let number = &mut differences[at];
        (number.ours, number.theirs) = (number.ours.take().or_else(one), number.theirs.take().or_else(one));
        differences.retain(|one| one.setting == IDENTIFIERS || !is_of_keys(&one.setting));
    }
}

/// An error where no row would have a key, as its types make too many variants of each.
pub fn check_variants(key: &KeySpec) -> Result<()> {
    for identifier in 0..key.identifiers() {
        let least = key.types[key.parts(identifier)].iter().map(|kind| kind.variants_at_least());
        let least = least.fold(1, usize::saturating_mul);
        if least > MAX_VARIANTS {
            let what = format!(
                "{} makes at least {least} variants of each row, more than the {MAX_VARIANTS} allowed; give fewer columns a \
                 near type",
                key.types_of_each()[identifier]
            );
            return Err(Error::Parameter { name: "key", what });
        }
    }
    Ok(())
}

/// An error where a result of this kind cannot be had by several elements a row, and where no row would have a key.
pub(super) fn check(key: Option<&KeySpec>, reveal: &Reveal) -> Result<()> {
    let Some(key) = key.filter(|key| key.is_open()) else { return Ok(()) };
    check_variants(key)?;
    if !reveal.is_aggregate() {
        return Ok(());
    }
    let why = match key.has_variants() {
        true => {
            "a type for near matches a person counts once for each variant that both sides have".to_owned()
        }
        false => format!(
            "{} identifiers a person whom both sides have by two of them would count twice",
            key.identifiers()
        ),
    };
    let what = format!(
        "{} is a number over matching keys, and with {why}; use one key{}, or reveal rows or columns",
        reveal.name(),
        if key.has_variants() { " of exact types" } else { "" }
    );
    Err(Error::Parameter { name: "reveal", what })
}

/// An error where a row would have variants, and `what` takes one key of each row.
pub fn refuse_variants(key: &KeySpec, what: &str) -> Result<()> {
    match key.types.iter().find(|kind| kind.is_near()) {
        None => Ok(()),
        Some(kind) => {
            let exact = kind.exact();
            let what = format!("{kind} makes several keys of a row, and {what} one of each; use {exact}");
            Err(Error::Parameter { name: "key", what })
        }
    }
}
