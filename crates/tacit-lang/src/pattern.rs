//! Patterns: what they bind, and when they match.

use crate::error::Error;
use crate::lower::{Lower, Value};
use crate::types::{Type, tag_bits};
use garble_lang::TypedPattern;
use garble_lang::ast::{Pattern, PatternEnum};
use std::rc::Rc;
use tacit_2pc::circuit::{Bit, Int, Integer, Uint};

impl Lower<'_> {
    /// Binds the pattern's names to the parts of `value`; returns whether it matches.
    pub(crate) fn pattern(&mut self, pattern: &TypedPattern, value: &Value) -> Result<Bit, Error> {
        let Pattern(kind, meta, ty) = pattern;
        self.step(*meta, value.len())?;
        Ok(match kind {
            PatternEnum::Identifier(name) => {
                self.bind(name, value.clone());
                Bit::ONE
            }
            PatternEnum::True => value[0],
            PatternEnum::False => !value[0],
            PatternEnum::NumUnsigned(n, _) => self.equals(value, i128::from(*n)),
            PatternEnum::NumSigned(n, _) => self.equals(value, i128::from(*n)),
            PatternEnum::UnsignedInclusiveRange(low, high, _) => {
                let signed = self.is_signed(ty, *meta)?;
                self.within(value, i128::from(*low), i128::from(*high), signed)
            }
            PatternEnum::SignedInclusiveRange(low, high, _) => {
                let signed = self.is_signed(ty, *meta)?;
                self.within(value, i128::from(*low), i128::from(*high), signed)
            }
            PatternEnum::Tuple(fields) => self.all_fields(fields.iter(), value, 0)?,
            PatternEnum::Struct(_, fields) | PatternEnum::StructIgnoreRemaining(_, fields) => {
                let Type::Struct(_, known) = &*self.types.resolve(ty, *meta)? else {
                    return Err(Error::at(*meta, format!("{ty} is not a struct")));
                };
                let (mut at, mut matches) = (0, Vec::new());
                for (name, ty) in known {
                    if let Some((_, field)) = fields.iter().find(|(field, _)| field == name) {
                        let part = Rc::new(value[at..at + ty.bits()].to_vec());
                        matches.push(self.pattern(field, &part)?);
                    }
                    at += ty.bits();
                }
                self.builder.all(&matches)
            }
            PatternEnum::EnumUnit(_, variant) | PatternEnum::EnumTuple(_, variant, _) => {
                let Type::Enum(_, variants) = &*self.types.resolve(ty, *meta)? else {
                    return Err(Error::at(*meta, format!("{ty} is not an enum")));
                };
                let Some(number) = variants.iter().position(|(name, _)| name == variant) else {
                    return Err(Error::at(*meta, format!("{ty} has no variant {variant}")));
                };
                let tag = tag_bits(variants.len());
                let this = self.equals(&value[..tag], number as i128);
                let fields = match kind {
                    PatternEnum::EnumTuple(_, _, fields) => self.all_fields(fields.iter(), value, tag)?,
                    _ => Bit::ONE,
                };
                self.builder.and(this, fields)
            }
        })
    }

    /// Whether every field matches its pattern; they follow one another from bit `at` on.
    fn all_fields<'p>(
        &mut self,
        fields: impl Iterator<Item = &'p TypedPattern>,
        value: &Value,
        mut at: usize,
    ) -> Result<Bit, Error> {
        let mut matches = Vec::new();
        for field in fields {
            let bits = self.types.resolve(&field.2, field.1)?.bits();
            let part = Rc::new(value[at..at + bits].to_vec());
            matches.push(self.pattern(field, &part)?);
            at += bits;
        }
        Ok(self.builder.all(&matches))
    }

    /// Whether `value` is the public number `n`.
    pub(crate) fn equals(&mut self, value: &[Bit], n: i128) -> Bit {
        let same: Vec<Bit> =
            value.iter().enumerate().map(|(i, &bit)| if n >> i & 1 == 1 { bit } else { !bit }).collect();
        self.builder.all(&same)
    }

    fn within(&mut self, value: &[Bit], low: i128, high: i128, signed: bool) -> Bit {
        // Every value of the type: no gate.
        let width = value.len();
        let (least, most) = match signed {
            true => (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1),
            false => (0, (1i128 << width) - 1),
        };
        let above = if low <= least { Bit::ONE } else { !self.less(value, low, signed) };
        let below = if high >= most { Bit::ONE } else { self.less(value, high + 1, signed) };
        self.builder.and(above, below)
    }

    /// Whether `value` is less than the public number `n`.
    pub(crate) fn less(&mut self, value: &[Bit], n: i128, signed: bool) -> Bit {
        match signed {
            true => {
                let n = Int::constant(n, value.len());
                self.builder.lt(&Int::from_bits(value.to_vec()), &n)
            }
            false => {
                let n = Uint::constant(n, value.len());
                self.builder.lt(&Uint::from_bits(value.to_vec()), &n)
            }
        }
    }
}
