//! Circuits made ready for two parties.

use crate::circuit::named::{self, Function, full_name};
use crate::circuit::{Aggregate, Circuit, Order, Plan};
use crate::{Error, Owner, Result};
use std::sync::OnceLock;

/// A circuit made ready to be run by two parties, any number of times.
pub struct Prepared {
    name: Option<String>,
    circuit: Circuit,
    owners: Vec<Owner>,
    digest: [u8; 32],
    source: Option<[u8; 32]>,
    aggregate: Option<(Aggregate, usize)>,
    layered: OnceLock<Plan>,
    sequential: OnceLock<Plan>,
    shallow: OnceLock<Option<Box<Prepared>>>,
}

impl Prepared {
    /// Prepares `circuit`, whose input `i` belongs to `owners[i]`.
    ///
    /// Errors unless there is one owner an input.
    pub fn new(circuit: Circuit, owners: Vec<Owner>) -> Result<Self> {
        if owners.len() != circuit.shape().inputs.len() {
            return Err(Error::Usage { protocol: "circuit", what: "one owner an input" });
        }
        let digest = circuit.digest();
        let (layered, sequential) = (OnceLock::new(), OnceLock::new());
        Ok(Prepared {
            name: None,
            circuit,
            owners,
            digest,
            source: None,
            aggregate: None,
            layered,
            sequential,
            shallow: OnceLock::new(),
        })
    }

    /// Prepares a named function.
    pub fn from_function(function: &Function) -> Result<Self> {
        let prepared = Self::new(function.circuit.clone(), function.owners())?;
        Ok(Prepared { name: full_name(&function.name), ..prepared })
    }

    /// The same function, compiled from a program of this digest: what both parties compare besides the
    /// circuit.
    pub fn from_source(self, digest: [u8; 32]) -> Self {
        Prepared { name: None, source: Some(digest), ..self }
    }

    /// The same function, known to have `circuit` as its shallow form; one of other widths is left out.
    pub fn with_shallow(self, circuit: Circuit) -> Result<Self> {
        if circuit.shape() != self.circuit.shape() {
            return Ok(self);
        }
        let other = Prepared { source: self.source, ..Self::new(circuit, self.owners.clone())? };
        Ok(Prepared { shallow: OnceLock::from(Some(Box::new(other))), ..self })
    }

    /// The same function with few levels of AND gates, where that is known: of a built-in one, and where
    /// [`with_shallow`](Self::with_shallow) said it. Made once.
    pub fn shallow(&self) -> Option<&Prepared> {
        let made = self.shallow.get_or_init(|| {
            let name = self.name.as_deref().filter(|_| self.aggregate.is_none())?;
            let circuit = named::shallow(name, &self.digest)?;
            let other = Self::new(circuit, self.owners.clone()).ok()?;
            Some(Box::new(Prepared { name: Some(name.to_owned()), ..other }))
        });
        made.as_deref()
    }

    /// The digest of the program that it was compiled from; `None` for what was none.
    pub fn source(&self) -> Option<[u8; 32]> {
        self.source
    }

    /// The same circuit, known as the aggregate of `function` over so many rows.
    pub fn from_rows_of(self, function: &Function, aggregate: Aggregate, rows: usize) -> Self {
        let shallow = OnceLock::new();
        Prepared { name: full_name(&function.name), aggregate: Some((aggregate, rows)), shallow, ..self }
    }

    /// For an aggregate: its kind and its number of rows.
    pub fn aggregate(&self) -> Option<(Aggregate, usize)> {
        self.aggregate
    }

    /// The full name of a built-in function, or of the one that is aggregated; `None` for a circuit of another source.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The circuit.
    pub fn circuit(&self) -> &Circuit {
        &self.circuit
    }

    /// [`Circuit::digest`], computed once.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Who owns each input.
    pub fn owners(&self) -> &[Owner] {
        &self.owners
    }

    /// The plan for `rows` side by side: layered for one, since only one circuit's gates can fill the
    /// vectors.
    pub fn plan(&self, rows: usize) -> &Plan {
        if rows == 1 {
            self.layered.get_or_init(|| Plan::new(&self.circuit, Order::Layered))
        } else {
            self.sequential.get_or_init(|| Plan::new(&self.circuit, Order::Sequential))
        }
    }
}
