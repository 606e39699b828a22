//! A function of each common key's inputs, of which a sum or a count over all common keys is opened.

use super::folded::Size;
use super::places::{Place, SharedPlace, enough, fold_places, gated};
use crate::{Error, Result};
use tacit_2pc::Owner;
use tacit_2pc::batch::fold::{Fold, Part};
use tacit_2pc::circuit::named::{Function, full_name};
use tacit_2pc::circuit::value::{Field, Kind};
use tacit_2pc::circuit::{Addend, Aggregate, Bit, Builder, Integer, Uint};
use tacit_crypto::text::counted;
use tacit_crypto::{BitVec, hex};
use tacit_net::Agreement;
use tacit_psi::Bounds;

/// Bits of the inputs that a side gives for a key, at most.
pub const MAX_INPUT_BITS: u32 = 64;

/// A function of both sides' inputs for a key, evaluated for every common key inside the protocol; nobody
/// sees anything but the total. The garbler's inputs are those of the side that listens.
#[derive(Clone, Debug)]
pub struct Each {
    function: Function,
    source: Option<[u8; 32]>,
    total: Aggregate,
    signed: bool,
}

impl Each {
    /// The `total` of `function` over all common keys, compiled from a program of the digest `source` if it
    /// was one. `signed` overrides how the first output is read, where its field does not say.
    ///
    /// Errors: a side's inputs of more than [`MAX_INPUT_BITS`] bits a key, a sum of wider numbers, and what
    /// [`Function::over_rows`] refuses.
    pub fn new(function: Function, source: Option<[u8; 32]>, total: Aggregate, signed: bool) -> Result<Self> {
        let fault = |what: String| Err(Error::Usage(format!("{}: {what}", tacit_net::shown(&function.name))));
        for owner in [Owner::Garbler, Owner::Evaluator] {
            let bits: u32 = function.fields(owner).iter().map(Field::bits).sum();
            if bits > MAX_INPUT_BITS {
                return fault(format!(
                    "inputs of {bits} per side and key, more than the {MAX_INPUT_BITS} allowed",
                    bits = counted(bits, "bit")
                ));
            }
        }
        if total == Aggregate::Sum
            && function.outputs.first().is_some_and(|field| field.bits() > MAX_INPUT_BITS)
        {
            return fault(format!("a sum adds numbers of at most {MAX_INPUT_BITS} bits"));
        }
        // What is refused of one row is refused of all.
        if let Err(error) = function.over_rows(1, total, signed) {
            return fault(error.to_string());
        }
        Ok(Each { function, source, total, signed })
    }

    /// The function.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// The digest of the function's circuit, which both sides compare, in hexadecimal digits.
    pub fn digest(&self) -> String {
        hex(&self.function.circuit.digest())
    }

    /// Whether numbers are added up.
    pub(super) fn sums(&self) -> bool {
        self.total == Aggregate::Sum
    }

    /// Flags that are opened beside the total.
    pub(super) fn flags(&self) -> usize {
        self.function.outputs.len().saturating_sub(1)
    }

    /// The word for the total.
    pub const fn total_name(&self) -> &'static str {
        self.total.name()
    }

    /// What a side that gets the total learns; `withheld` is said of a least number of matches.
    pub(super) fn words(&self, withheld: &str) -> String {
        let function = tacit_net::shown(&self.function.name);
        match self.total {
            Aggregate::Sum => format!("the sum of {function} over all common keys{withheld}"),
            Aggregate::Count => {
                format!("how many common keys have a result of {function} other than zero{withheld}")
            }
        }
    }

    /// A row's inputs as the number that a side gives for its key.
    pub fn packed(inputs: &[BitVec]) -> i64 {
        let bits = inputs.iter().flat_map(BitVec::iter).take(MAX_INPUT_BITS as usize);
        bits.enumerate().fold(0u64, |number, (at, bit)| number | (u64::from(bit) << at)) as i64
    }

    pub(super) fn agree(&self, agreement: Agreement) -> Agreement {
        let agreement = agreement.with("aggregate", self.total_name());
        // Each side may call its file as it likes.
        let agreement = match (&self.source, full_name(&self.function.name)) {
            (Some(digest), _) => agreement.with("eval", "a program").with("program", hex(&digest[..16])),
            (None, Some(name)) => agreement.with("eval", name),
            (None, None) => {
                let garblers = self.function.garbler.len();
                agreement.with("eval", "a circuit file").with("garbler-inputs", garblers)
            }
        };
        agreement.with("wiring", hex(&self.function.circuit.digest()[..16]))
    }

    /// Whether `min_matches` keys are common, the total and the flags, all of it zero unless the first; what a key
    /// adds to a sum is taken as within `bounds`.
    pub(super) fn compute(
        &self,
        b: &mut Builder,
        places: &[Place],
        min_matches: u64,
        bounds: Option<Bounds>,
    ) -> Result<Vec<Uint>> {
        let common: Vec<_> = places.iter().map(|place| place.common).collect();
        let mut rows = Vec::with_capacity(places.len());
        for place in places {
            let [first, second] = &place.numbers;
            rows.push((place.common, self.inputs([first.bits(), second.bits()])));
        }
        let opened = self
            .function
            .total(b, &rows, self.total, self.signed, bounds.map(|bounds| [bounds.least(), bounds.most()]))
            .map_err(|error| Error::Usage(error.to_string()))?;
        let matches = b.count_ones(&common);
        let enough = enough(b, &matches, min_matches);
        let mut outputs = vec![Uint::from_bits(vec![enough])];
        for value in opened {
            outputs.push(gated(b, &value, enough));
        }
        Ok(outputs)
    }

    /// The function's inputs of a place.
    fn inputs(&self, numbers: [&[Bit]; 2]) -> Vec<Uint> {
        let mut inputs = Vec::with_capacity(self.function.garbler.len() + self.function.evaluator.len());
        for (owner, number) in [Owner::Garbler, Owner::Evaluator].into_iter().zip(numbers) {
            let mut bits = number.iter().copied();
            let fields = self.function.fields(owner).iter();
            inputs.extend(fields.map(|f| Uint::from_bits(bits.by_ref().take(f.bits() as usize).collect())));
        }
        inputs
    }

    /// The size of the function of a key.
    pub(super) fn size(&self) -> Size {
        let stats = self.function.circuit.stats();
        let gates = self.function.circuit.gates().len() as u64;
        Size { gates, ands: stats.and, levels: stats.and_depth.into() }
    }

    /// As [`compute`](Self::compute), over rows side by side.
    pub(super) fn fold(
        &self,
        places: usize,
        silent: [bool; 2],
        min_matches: u64,
        bounds: Option<Bounds>,
    ) -> Result<Fold> {
        let bounds = bounds.map(|bounds| [bounds.least(), bounds.most()]);
        let row = |b: &mut Builder, input: &Uint| {
            let place = SharedPlace::of(input, silent);
            let inputs = self.inputs([place.numbers[0].bits(), place.numbers[1].bits()]);
            let (value, flags) = self.function.of_row(b, &inputs, self.total, self.signed, bounds);
            let value = match value {
                Addend::Unsigned(value) => Part::Sum(gated(b, &value, place.common)),
                Addend::Signed(value) => Part::SignedSum(gated(b, &value.as_uint(), place.common)),
            };
            let mut parts = vec![Part::Sum(Uint::from_bits(vec![place.common])), value];
            for flag in flags {
                parts.push(Part::Sum(Uint::from_bits(vec![b.and(flag, place.common)])));
            }
            parts
        };
        let last = |b: &mut Builder, totals: &[Uint]| {
            let [matches, value, flags @ ..] = totals else { return Vec::new() };
            let enough = enough(b, matches, min_matches);
            let mut outputs = vec![Uint::from_bits(vec![enough]), gated(b, value, enough)];
            for flag in flags {
                let any = b.any(flag.bits());
                outputs.push(Uint::from_bits(vec![b.and(any, enough)]));
            }
            outputs
        };
        fold_places(places, &row, &last)
    }

    /// Reads what [`compute`](Self::compute) opened.
    pub(super) fn read(&self, outputs: &[BitVec], bounds: Option<Bounds>) -> Option<Total> {
        let (enough, opened) = outputs.split_first()?;
        let (value, flags) = opened.split_first()?;
        if !enough.get(0) {
            return Some(Total::Withheld);
        }
        let signed = self.total == Aggregate::Sum
            && (self.signed
                || bounds.is_some()
                || self.function.outputs.first().is_some_and(|field| field.kind == Kind::Signed));
        let number = value.iter().enumerate().fold(0i128, |sum, (at, bit)| sum | (i128::from(bit) << at));
        let negative = signed && value.iter().last().unwrap_or(false);
        let value = if negative { number - (1 << value.len()) } else { number };
        let names = self.function.outputs.iter().skip(1).map(|field| field.name);
        let set = flags.iter().map(|flag| flag.iter().any(|bit| bit));
        Some(Total::Of {
            value,
            flags: names.zip(set).filter(|(_, set)| *set).map(|(name, _)| name).collect(),
        })
    }
}

/// What is opened of a function of every common key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Total {
    /// Fewer keys are common than the least number.
    Withheld,
    /// The sum or the count.
    Of {
        /// Its value.
        value: i128,
        /// The function's flags that are set for some common key: the total is then not the true one.
        flags: Vec<&'static str>,
    },
}
