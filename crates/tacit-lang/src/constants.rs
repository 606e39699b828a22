//! The values of `const` lines.

use crate::error::Error;
use garble_lang::ast::{ConstExpr, ConstExprEnum};
use std::collections::HashMap;

/// The value of an unsigned constant out of those `known`, by name; `PARTY::NAME` names what a party gives.
pub(crate) fn unsigned(constant: &ConstExpr, known: &HashMap<String, u64>, most: u64) -> Result<u64, Error> {
    let wide = known.iter().map(|(name, &value)| (name.clone(), i128::from(value))).collect();
    let value = value(constant, &wide)?;
    match u64::try_from(value) {
        Ok(value) if value <= most => Ok(value),
        _ => Err(Error::at(constant.1, format!("{constant} is {value}, which is not within 0 to {most}"))),
    }
}

/// The value of a number, exactly.
pub(crate) fn value(constant: &ConstExpr, known: &HashMap<String, i128>) -> Result<i128, Error> {
    let ConstExpr(kind, meta) = constant;
    let too_large = || Error::at(*meta, format!("{constant} is too large a number"));
    let all = |each: &[ConstExpr]| each.iter().map(|c| value(c, known)).collect::<Result<Vec<_>, _>>();
    let named = |name: &str| {
        known.get(name).copied().ok_or_else(|| Error::at(*meta, format!("{name} is not a known number")))
    };
    match kind {
        ConstExprEnum::NumUnsigned(n, _) => Ok(i128::from(*n)),
        ConstExprEnum::NumSigned(n, _) => Ok(i128::from(*n)),
        ConstExprEnum::ExternalValue { party, identifier } => named(&format!("{party}::{identifier}")),
        ConstExprEnum::ConstExprIdent(name) => named(name),
        ConstExprEnum::Max(each) => all(each)?.into_iter().max().ok_or_else(too_large),
        ConstExprEnum::Min(each) => all(each)?.into_iter().min().ok_or_else(too_large),
        ConstExprEnum::Add(a, b) => value(a, known)?.checked_add(value(b, known)?).ok_or_else(too_large),
        ConstExprEnum::Sub(a, b) => value(a, known)?.checked_sub(value(b, known)?).ok_or_else(too_large),
        ConstExprEnum::True | ConstExprEnum::False => {
            Err(Error::at(*meta, format!("{constant} is not a number")))
        }
    }
}
