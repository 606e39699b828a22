//! Types with every size known, and how their values lie in bits.
//!
//! Numbers stand lowest bit first; the elements of arrays, tuples and structs follow one another, the first
//! in the lowest bits; an enum is its variant's number and then that variant's fields, filled up with zeros
//! to the largest variant.

use crate::error::Error;
use garble_lang::TypedProgram;
use garble_lang::ast;
use garble_lang::ast::Variant;
use garble_lang::token::{MetaInfo, SignedNumType, UnsignedNumType};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// Bits of a value, at most.
pub(crate) const VALUE_BITS: usize = 1 << 22;
/// How deep types may be nested.
const MAX_DEPTH: usize = 64;
/// Parts of a type, at most.
const MAX_PARTS: usize = 1 << 14;

/// A type with every size known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Type {
    /// `true` or `false`: one bit.
    Bool,
    /// An integer.
    Number {
        /// Its bits.
        width: usize,
        /// Whether in two's complement.
        signed: bool,
        /// What the language calls it.
        name: &'static str,
    },
    /// So many values of one type.
    Array(Box<Type>, usize),
    /// Values without names.
    Tuple(Vec<Type>),
    /// A struct's name, and its fields.
    Struct(String, Vec<(String, Type)>),
    /// An enum's name, and its variants with their fields' types.
    Enum(String, Vec<(String, Vec<Type>)>),
}

impl Type {
    /// Bits of a value.
    pub fn bits(&self) -> usize {
        match self {
            Type::Bool => 1,
            Type::Number { width, .. } => *width,
            Type::Array(each, count) => each.bits() * count,
            Type::Tuple(types) => types.iter().map(Type::bits).sum(),
            Type::Struct(_, fields) => fields.iter().map(|(_, ty)| ty.bits()).sum(),
            Type::Enum(_, variants) => tag_bits(variants.len()) + payload_bits(variants),
        }
    }
}

impl core::fmt::Display for Type {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Type::Bool => f.write_str("bool"),
            Type::Number { name, .. } => f.write_str(name),
            Type::Array(each, count) => write!(f, "[{each}; {count}]"),
            Type::Tuple(types) => {
                write!(f, "({})", types.iter().map(Type::to_string).collect::<Vec<_>>().join(", "))
            }
            Type::Struct(name, _) | Type::Enum(name, _) => f.write_str(name),
        }
    }
}

/// Bits of the number of one of so many variants.
pub(crate) fn tag_bits(variants: usize) -> usize {
    variants.next_power_of_two().trailing_zeros() as usize
}

fn payload_bits(variants: &[(String, Vec<Type>)]) -> usize {
    variants.iter().map(|(_, types)| types.iter().map(Type::bits).sum()).max().unwrap_or(0)
}

/// A program's types, with the sizes that its constants give.
pub(crate) struct Types<'a> {
    program: &'a TypedProgram,
    /// Constants of type `usize`.
    pub sizes: HashMap<String, u64>,
    known: RefCell<HashMap<ast::Type, Rc<Type>>>,
    /// Parts of the type that is being resolved.
    parts: Cell<usize>,
}

impl<'a> Types<'a> {
    /// The types of `program`, before any constant is known.
    pub(crate) fn new(program: &'a TypedProgram) -> Self {
        Types { program, sizes: HashMap::new(), known: RefCell::default(), parts: Cell::new(0) }
    }

    /// The type with its sizes; `meta` is where it is used, for the errors.
    pub(crate) fn resolve(&self, ty: &ast::Type, meta: MetaInfo) -> Result<Rc<Type>, Error> {
        if let Some(known) = self.known.borrow().get(ty) {
            return Ok(known.clone());
        }
        self.parts.set(0);
        let found = Rc::new(self.within(ty, meta, 0)?);
        match checked_bits(&found) {
            Some(bits) if bits <= VALUE_BITS => {
                self.known.borrow_mut().insert(ty.clone(), found.clone());
                Ok(found)
            }
            _ => Err(Error::at(meta, format!("a value of type {ty} has more than {VALUE_BITS} bits"))),
        }
    }

    fn within(&self, ty: &ast::Type, meta: MetaInfo, depth: usize) -> Result<Type, Error> {
        self.parts.set(self.parts.get() + 1);
        if depth > MAX_DEPTH || self.parts.get() > MAX_PARTS {
            let what = format!("a type of more than {MAX_PARTS} parts, or nested deeper than {MAX_DEPTH}");
            return Err(Error::at(meta, what));
        }
        let inner = |ty: &ast::Type| self.within(ty, meta, depth + 1);
        Ok(match ty {
            ast::Type::Bool => Type::Bool,
            ast::Type::Unsigned(kind) => unsigned(*kind),
            ast::Type::Signed(kind) => signed(*kind),
            ast::Type::Array(each, size) => Type::Array(Box::new(inner(each)?), *size),
            ast::Type::ArrayConst(each, name) => {
                Type::Array(Box::new(inner(each)?), self.size_called(name, meta)?)
            }
            ast::Type::ArrayConstExpr(each, size) => {
                let size = crate::constants::unsigned(size, &self.sizes, u64::from(u32::MAX))?;
                Type::Array(Box::new(inner(each)?), size as usize)
            }
            ast::Type::Tuple(types) => Type::Tuple(types.iter().map(inner).collect::<Result<_, _>>()?),
            ast::Type::Struct(name) => {
                let Some(found) = self.program.struct_defs.get(name) else {
                    return Err(Error::at(meta, format!("there is no struct {name}")));
                };
                let fields = found.fields.iter().map(|(field, ty)| Ok((field.clone(), inner(ty)?)));
                Type::Struct(name.clone(), fields.collect::<Result<_, Error>>()?)
            }
            ast::Type::Enum(name) => {
                let Some(found) = self.program.enum_defs.get(name) else {
                    return Err(Error::at(meta, format!("there is no enum {name}")));
                };
                let variants = found.variants.iter().map(|variant| {
                    Ok(match variant {
                        Variant::Unit(name) => (name.clone(), Vec::new()),
                        Variant::Tuple(name, types) => {
                            (name.clone(), types.iter().map(inner).collect::<Result<_, Error>>()?)
                        }
                    })
                });
                Type::Enum(name.clone(), variants.collect::<Result<_, Error>>()?)
            }
            ast::Type::Fn(..) | ast::Type::UntypedTopLevelDefinition(..) => {
                return Err(Error::at(meta, format!("{ty} is not a type of a value")));
            }
        })
    }

    /// The value of the constant `name`, which gives an array its size.
    pub(crate) fn size_called(&self, name: &str, meta: MetaInfo) -> Result<usize, Error> {
        match self.sizes.get(name) {
            Some(&size) if size <= VALUE_BITS as u64 => Ok(size as usize),
            Some(_) => Err(Error::at(meta, format!("{name} is more than {VALUE_BITS}"))),
            None => Err(Error::at(meta, format!("{name} is not a constant of type usize"))),
        }
    }
}

/// As [`Type::bits`]; `None` where the bits overflow or an array is longer than any value.
fn checked_bits(ty: &Type) -> Option<usize> {
    let sum = |types: &mut dyn Iterator<Item = &Type>| {
        let mut sum = 0usize;
        for ty in types {
            sum = sum.checked_add(checked_bits(ty)?)?;
        }
        Some(sum)
    };
    match ty {
        Type::Bool => Some(1),
        Type::Number { width, .. } => Some(*width),
        Type::Array(each, count) => checked_bits(each)?.checked_mul(*count).filter(|_| *count <= VALUE_BITS),
        Type::Tuple(types) => sum(&mut types.iter()),
        Type::Struct(_, fields) => sum(&mut fields.iter().map(|(_, ty)| ty)),
        Type::Enum(_, variants) => {
            let mut most = 0usize;
            for (_, types) in variants {
                most = most.max(sum(&mut types.iter())?);
            }
            most.checked_add(tag_bits(variants.len()))
        }
    }
}

pub(crate) fn unsigned(kind: UnsignedNumType) -> Type {
    let (width, name) = match kind {
        UnsignedNumType::U8 => (8, "u8"),
        UnsignedNumType::U16 => (16, "u16"),
        UnsignedNumType::U32 | UnsignedNumType::Unspecified => (32, "u32"),
        UnsignedNumType::U64 => (64, "u64"),
        UnsignedNumType::Usize => (32, "usize"),
    };
    Type::Number { width, signed: false, name }
}

pub(crate) fn signed(kind: SignedNumType) -> Type {
    let (width, name) = match kind {
        SignedNumType::I8 => (8, "i8"),
        SignedNumType::I16 => (16, "i16"),
        SignedNumType::I32 | SignedNumType::Unspecified => (32, "i32"),
        SignedNumType::I64 => (64, "i64"),
    };
    Type::Number { width, signed: true, name }
}
