//! The functions that have a name: what each computes, of what, and what it costs.
//!
//! ```
//! use tacit::catalogue::{FunctionEntry, functions};
//! assert!(functions().any(|entry| entry.name == "millionaires"));
//! let wide = FunctionEntry::find("add64").unwrap().build("add64").unwrap();
//! assert_eq!((wide.circuit.stats().and, wide.outputs[0].width), (63, 64));
//! ```

use super::evaluation::{EvalCandidate, EvalRequest, ways};
use super::{Link, Machine};
use crate::{Result, Security};
use std::fmt::Write;
use tacit_2pc::circuit::named::{self, Function};
use tacit_2pc::circuit::value::Field;
use tacit_2pc::{OutputTo, Prepared};
use tacit_crypto::text::counted;
use tacit_net::LinkModel;

/// What the catalogue says of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FunctionEntry {
    /// The name; one with a size takes another one behind it, as in `add64`.
    pub name: &'static str,
    /// The size where none stands behind the name: bits of a number, or numbers of a list. `None`: it has one
    /// size only.
    pub size: Option<u32>,
    /// The largest size; 0 where it has one size only.
    pub largest: u32,
    /// What it computes, in a line.
    pub about: &'static str,
}

/// Every function that has a name.
pub fn functions() -> impl Iterator<Item = FunctionEntry> {
    named::list().map(|(name, size, largest, about)| FunctionEntry { name, size, largest, about })
}

impl FunctionEntry {
    /// The entry of the function called `name`, with or without a size behind the name; `None` if there is
    /// none, or not in that size.
    pub fn find(name: &str) -> Option<Self> {
        let stem = named::stem(name)?;
        functions().find(|entry| entry.name == stem)
    }

    /// The function that `name` means, with its circuit, its inputs and its outputs; `None` if it is not this
    /// entry's, or not in that size.
    pub fn build(&self, name: &str) -> Option<Function> {
        if named::stem(name)? == self.name { named::find(name) } else { None }
    }

    /// The name with the size that stands for itself: `add32`.
    pub fn full_name(&self) -> String {
        self.size.map_or_else(|| self.name.to_owned(), |size| format!("{}{size}", self.name))
    }

    /// What one evaluation in the size that stands for itself costs over `link`: every protocol of at least
    /// this security, the fastest first; both sides learn the outputs.
    pub fn cost(&self, security: Security, link: &Link, machine: &Machine) -> Result<Vec<EvalCandidate>> {
        // Every name of the list has a function.
        named::find(self.name).map_or(Ok(Vec::new()), |function| cost_of(&function, security, link, machine))
    }
}

/// What fields hold, in words: `number (32 bits)`, `numbers (8 of 32 bits)`.
pub fn fields_in_words(fields: &[Field]) -> String {
    let word = |field: &Field| match (field.count, field.width) {
        (1, 1) => format!("{} (1 bit)", field.name),
        (1, width) => format!("{} ({width})", field.name, width = counted(width, "bit")),
        (count, width) => format!("{} ({count} of {width})", field.name, width = counted(width, "bit")),
    };
    fields.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// The table of all functions in Markdown, each in the size that stands for itself; the bytes are those of
/// both directions, of an evaluation against a semi-honest peer.
pub fn function_table() -> Result<String> {
    let mut out = String::from(
        "| function | largest size | computes | garbler's | evaluator's | outputs | AND | bytes |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let link = LinkModel::LOOPBACK.into();
    for entry in functions() {
        let Some(function) = entry.build(entry.name) else { continue };
        let ways = cost_of(&function, Security::SemiHonest, &link, &Machine::REFERENCE)?;
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | {} | {} | {} |",
            entry.full_name(),
            entry.size.map_or_else(|| "–".to_owned(), |_| entry.largest.to_string()),
            entry.about,
            fields_in_words(&function.garbler),
            fields_in_words(&function.evaluator),
            fields_in_words(&function.outputs),
            function.circuit.stats().and,
            ways.first().map_or(0, |way| way.candidate.bytes),
        );
    }
    Ok(out)
}

fn cost_of(
    function: &Function,
    security: Security,
    link: &Link,
    machine: &Machine,
) -> Result<Vec<EvalCandidate>> {
    let prepared = Prepared::from_function(function)?;
    Ok(ways(&EvalRequest::new(&prepared, OutputTo::Both, security), link, machine))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_their_entries() {
        for (name, stem) in
            [("add", "add"), ("add64", "add"), ("aes128", "aes128"), ("signed-lt8", "signed-lt")]
        {
            assert_eq!(FunctionEntry::find(name).unwrap().name, stem);
        }
        for name in ["", "add0", "aes1288", "sort1", "modexp7", "no such"] {
            assert_eq!(FunctionEntry::find(name), None, "{name}");
        }
        let add = FunctionEntry::find("add").unwrap();
        assert!(add.build("sub32").is_none() && add.build("add8").is_some());
    }

    #[test]
    fn what_an_entry_costs_is_what_its_gates_cost() {
        let link = LinkModel::LOOPBACK.into();
        let bytes = |name: &str, security| {
            let entry = FunctionEntry::find(name).unwrap();
            entry.cost(security, &link, &Machine::REFERENCE).unwrap()[0].candidate.bytes
        };
        let [aes, add] = ["aes128", "add"].map(|name| bytes(name, Security::SemiHonest));
        // 32 bytes an AND gate, and little besides.
        assert!((32 * 6_400..32 * 6_400 + 30_000).contains(&aes) && (32 * 31..30_000).contains(&add));
        assert!(bytes("add", Security::Malicious) > add);
    }

    #[test]
    fn the_documents_hold_the_table_of_functions() {
        let docs = include_str!("../../../../docs/circuits.md");
        let table = function_table().unwrap();
        assert!(docs.contains(&table), "docs/circuits.md should hold this table:\n{table}");
    }
}
