//! Lowers the typed tree of a program to gates.

use crate::error::Error;
use crate::types::{Type, Types, tag_bits};
use garble_lang::ast;
use garble_lang::ast::{Accessor, ExprEnum, Op, Stmt, StmtEnum, UnaryOp, VariantExprEnum};
use garble_lang::token::MetaInfo;
use garble_lang::{TypedExpr, TypedPattern, TypedProgram};
use std::collections::BTreeMap;
use std::rc::Rc;
use tacit_2pc::circuit::library::checked;
use tacit_2pc::circuit::{Bit, Builder, Int, Integer, Uint};

/// The bits of a value.
pub(crate) type Value = Rc<Vec<Bit>>;

/// What can go wrong in a run, in the order of the flags.
pub(crate) const FAULTS: [&str; 3] = ["overflow", "division by zero", "index out of bounds"];
const AT_OVERFLOW: usize = 0;
const AT_BY_ZERO: usize = 1;
const AT_BOUNDS: usize = 2;

/// Gates of a circuit, at most.
const PROGRAM_GATES: u64 = 1 << 25;
/// Steps of the lowering, at most: an expression is one, and so are 16 bits that are moved.
const MAX_STEPS: u64 = 1 << 26;
/// How deep functions may call each other.
const MAX_CALLS: usize = 64;

/// The names in force: outermost scope first.
type Scopes = Vec<BTreeMap<String, Value>>;

/// A program on its way into a builder.
pub(crate) struct Lower<'a> {
    program: &'a TypedProgram,
    pub types: Types<'a>,
    pub builder: Builder,
    scopes: Scopes,
    /// Whether something went wrong on the path that leads here, counted from the innermost branch.
    faults: [Bit; 3],
    calls: usize,
    steps: u64,
}

/// A step from a variable towards the part of it that is assigned.
enum Access {
    Element { each: usize, count: usize, index: Value },
    Part { at: usize, bits: usize },
}

/// What a branch leaves.
struct Branch {
    value: Value,
    scopes: Scopes,
    faults: [Bit; 3],
}

impl<'a> Lower<'a> {
    pub(crate) fn new(
        program: &'a TypedProgram,
        types: Types<'a>,
        builder: Builder,
        constants: BTreeMap<String, Value>,
    ) -> Self {
        let scopes = vec![constants, BTreeMap::new()];
        Lower { program, types, builder, scopes, faults: [Bit::ZERO; 3], calls: 0, steps: 0 }
    }

    /// The builder, and what of [`FAULTS`] happened.
    pub(crate) fn end(self) -> (Builder, [Bit; 3]) {
        (self.builder, self.faults)
    }

    /// Binds a name in the innermost scope.
    pub(crate) fn bind(&mut self, name: &str, value: Value) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), value);
        }
    }

    /// Counts a step that moves so many bits; refuses what is too large.
    pub(crate) fn step(&mut self, meta: MetaInfo, bits: usize) -> Result<(), Error> {
        self.steps += 1 + bits as u64 / 16;
        if self.builder.gates_made() > PROGRAM_GATES {
            return Err(Error::at(meta, format!("the program has more than {PROGRAM_GATES} gates here")));
        }
        if self.steps > MAX_STEPS {
            return Err(Error::at(
                meta,
                "the program takes too many steps to compile; its loops are too long",
            ));
        }
        Ok(())
    }

    pub(crate) fn is_signed(&self, ty: &ast::Type, meta: MetaInfo) -> Result<bool, Error> {
        Ok(matches!(&*self.types.resolve(ty, meta)?, Type::Number { signed: true, .. }))
    }

    fn bits_of(&self, ty: &ast::Type, meta: MetaInfo) -> Result<usize, Error> {
        Ok(self.types.resolve(ty, meta)?.bits())
    }

    fn variable(&self, name: &str, meta: MetaInfo) -> Result<Value, Error> {
        let found = self.scopes.iter().rev().find_map(|scope| scope.get(name));
        found.cloned().ok_or_else(|| Error::at(meta, format!("{name} has no value here")))
    }

    fn fault(&mut self, kind: usize, happened: Bit) {
        self.faults[kind] = self.builder.or(self.faults[kind], happened);
    }

    /// The statements in a scope of their own; the last one's value is the block's.
    pub(crate) fn block(&mut self, body: &[Stmt<ast::Type>]) -> Result<Value, Error> {
        self.scopes.push(BTreeMap::new());
        let mut value = Value::default();
        for statement in body {
            value = self.statement(statement)?;
        }
        self.scopes.pop();
        Ok(value)
    }

    fn statement(&mut self, statement: &Stmt<ast::Type>) -> Result<Value, Error> {
        match &statement.inner {
            StmtEnum::Let(pattern, _, value) => {
                let value = self.expression(value)?;
                self.pattern(pattern, &value)?;
            }
            StmtEnum::LetMut(name, _, value) => {
                let value = self.expression(value)?;
                self.bind(name, value);
            }
            StmtEnum::Expr(value) => return self.expression(value),
            StmtEnum::VarAssign(name, accessors, value) => {
                self.assign(name, accessors, value, statement.meta)?;
            }
            StmtEnum::ForEachLoop(pattern, array, body) => self.each(pattern, array, body)?,
            StmtEnum::JoinLoop(..) => return Err(no_join(statement.meta)),
        }
        Ok(Value::default())
    }

    fn each(
        &mut self,
        pattern: &TypedPattern,
        array: &TypedExpr,
        body: &[Stmt<ast::Type>],
    ) -> Result<(), Error> {
        let (each, count) = self.array(&array.ty, array.meta)?;
        let values = self.expression(array)?;
        self.scopes.push(BTreeMap::new());
        for i in 0..count {
            let value = Rc::new(values[i * each..(i + 1) * each].to_vec());
            self.pattern(pattern, &value)?;
            for statement in body {
                self.statement(statement)?;
            }
        }
        self.scopes.pop();
        Ok(())
    }

    /// Bits of an element of an array of type `ty`, and their number.
    fn array(&self, ty: &ast::Type, meta: MetaInfo) -> Result<(usize, usize), Error> {
        match &*self.types.resolve(ty, meta)? {
            Type::Array(each, count) => Ok((each.bits(), *count)),
            other => Err(Error::at(meta, format!("{other} is not an array"))),
        }
    }

    /// Where a field of a value of type `ty` begins, and its bits: a struct's by its name (`Ok`), a tuple's
    /// by its place (`Err`).
    fn part(
        &self,
        ty: &ast::Type,
        which: Result<&str, usize>,
        meta: MetaInfo,
    ) -> Result<(usize, usize), Error> {
        let resolved = self.types.resolve(ty, meta)?;
        let types: Vec<&Type> = match &*resolved {
            Type::Tuple(types) => types.iter().collect(),
            Type::Struct(_, fields) => fields.iter().map(|(_, ty)| ty).collect(),
            _ => Vec::new(),
        };
        let index = match (which, &*resolved) {
            (Ok(name), Type::Struct(_, fields)) => fields.iter().position(|(field, _)| field == name),
            (Ok(_), _) => None,
            (Err(index), _) => Some(index),
        };
        match index.filter(|&index| index < types.len()) {
            Some(index) => Ok((types[..index].iter().map(|ty| ty.bits()).sum(), types[index].bits())),
            None => Err(Error::at(meta, format!("{resolved} has no such field"))),
        }
    }

    fn assign(
        &mut self,
        name: &str,
        accessors: &[(Accessor<ast::Type>, MetaInfo)],
        value: &TypedExpr,
        meta: MetaInfo,
    ) -> Result<(), Error> {
        let before = self.variable(name, meta)?;
        let mut path = Vec::with_capacity(accessors.len());
        for (accessor, meta) in accessors {
            path.push(match accessor {
                Accessor::ArrayAccess { array_ty, index } => {
                    let (each, count) = self.array(array_ty, *meta)?;
                    let index = self.expression(index)?;
                    self.check_bounds(&index, count);
                    Access::Element { each, count, index }
                }
                Accessor::TupleAccess { tuple_ty, index } => {
                    let (at, bits) = self.part(tuple_ty, Err(*index), *meta)?;
                    Access::Part { at, bits }
                }
                Accessor::StructAccess { struct_ty, field } => {
                    let (at, bits) = self.part(struct_ty, Ok(field), *meta)?;
                    Access::Part { at, bits }
                }
            });
        }
        let value = self.expression(value)?;
        let after = Rc::new(self.with(&before, &path, &value, meta)?);
        let scope = self.scopes.iter_mut().rev().find(|scope| scope.contains_key(name));
        if let Some(scope) = scope {
            scope.insert(name.to_owned(), after);
        }
        Ok(())
    }

    /// `before` with the part at the end of `path` replaced.
    fn with(
        &mut self,
        before: &[Bit],
        path: &[Access],
        new: &[Bit],
        meta: MetaInfo,
    ) -> Result<Vec<Bit>, Error> {
        self.step(meta, before.len())?;
        let Some((access, deeper)) = path.split_first() else { return Ok(new.to_vec()) };
        let mut after = before.to_vec();
        match access {
            Access::Part { at, bits } => {
                let inner = self.with(&before[*at..at + bits], deeper, new, meta)?;
                after[*at..at + bits].copy_from_slice(&inner);
            }
            Access::Element { each, count, index } => {
                if let Some(index) = number(index) {
                    if index < *count {
                        let range = index * each..(index + 1) * each;
                        let inner = self.with(&before[range.clone()], deeper, new, meta)?;
                        after[range].copy_from_slice(&inner);
                    }
                    return Ok(after);
                }
                // The element once, changed, and put into each place that may be meant.
                let old = self.element(before, *each, *count, index);
                let inner = self.with(&old, deeper, new, meta)?;
                let here = self.decode(&index[..places(*count)], *count);
                for (i, &here) in here.iter().enumerate() {
                    for (bit, &new) in after[i * each..(i + 1) * each].iter_mut().zip(&inner) {
                        *bit = self.builder.mux_bit(here, new, *bit);
                    }
                }
            }
        }
        Ok(after)
    }

    /// For each place below `count` whether `index` names it.
    fn decode(&mut self, index: &[Bit], count: usize) -> Vec<Bit> {
        let mut here = vec![Bit::ONE];
        for (level, &bit) in index.iter().enumerate() {
            let upper: Vec<Bit> = here.iter().map(|&h| self.builder.and(h, bit)).collect();
            for (h, &u) in here.iter_mut().zip(&upper) {
                *h = self.builder.xor(*h, u);
            }
            here.extend(upper);
            debug_assert_eq!(here.len(), 2 << level);
        }
        here.truncate(count);
        here
    }

    /// The element of `array` at `index`, which is within bounds or of no meaning.
    fn element(&mut self, array: &[Bit], each: usize, count: usize, index: &[Bit]) -> Vec<Bit> {
        let mut layer: Vec<Vec<Bit>> = (0..count).map(|i| array[i * each..(i + 1) * each].to_vec()).collect();
        for &bit in &index[..places(count)] {
            let next = layer.chunks(2).map(|pair| match pair {
                [low, high] => {
                    low.iter().zip(high).map(|(&low, &high)| self.builder.mux_bit(bit, high, low)).collect()
                }
                _ => pair[0].clone(),
            });
            layer = next.collect();
        }
        if layer.is_empty() { vec![Bit::ZERO; each] } else { layer.swap_remove(0) }
    }

    fn check_bounds(&mut self, index: &[Bit], count: usize) {
        let inside = self.less(index, count as i128, false);
        self.fault(AT_BOUNDS, !inside);
    }

    /// Runs `body` as a branch: what it assigns and what goes wrong in it is given back apart.
    fn branch(&mut self, body: impl FnOnce(&mut Self) -> Result<Value, Error>) -> Result<Branch, Error> {
        let (scopes, faults) = (self.scopes.clone(), self.faults);
        self.faults = [Bit::ZERO; 3];
        let value = body(self)?;
        let scopes = std::mem::replace(&mut self.scopes, scopes);
        let faults = std::mem::replace(&mut self.faults, faults);
        Ok(Branch { value, scopes, faults })
    }

    /// `then` where `choice` is set, else `otherwise`.
    fn choose(&mut self, choice: Bit, then: Branch, otherwise: Branch) -> Branch {
        let value = self.select(choice, &then.value, &otherwise.value);
        let mut scopes = otherwise.scopes;
        for (scope, chosen) in scopes.iter_mut().zip(&then.scopes) {
            for (name, value) in scope {
                if let Some(then) = chosen.get(name) {
                    *value = self.select(choice, then, value);
                }
            }
        }
        let mut faults = otherwise.faults;
        for (fault, then) in faults.iter_mut().zip(then.faults) {
            *fault = self.builder.mux_bit(choice, then, *fault);
        }
        Branch { value, scopes, faults }
    }

    fn select(&mut self, choice: Bit, then: &Value, otherwise: &Value) -> Value {
        if Rc::ptr_eq(then, otherwise) {
            return then.clone();
        }
        let bits = then.iter().zip(otherwise.iter());
        Rc::new(bits.map(|(&t, &o)| self.builder.mux_bit(choice, t, o)).collect())
    }

    /// Goes on behind a branch.
    fn enter(&mut self, branch: Branch) -> Value {
        self.scopes = branch.scopes;
        for (kind, fault) in branch.faults.into_iter().enumerate() {
            self.fault(kind, fault);
        }
        branch.value
    }

    /// The value of an expression.
    pub(crate) fn expression(&mut self, e: &TypedExpr) -> Result<Value, Error> {
        self.step(e.meta, 0)?;
        let bits = self.value(e)?;
        self.step(e.meta, bits.len())?;
        Ok(bits)
    }

    fn list(&mut self, each: &[TypedExpr]) -> Result<Value, Error> {
        let mut bits = Vec::new();
        for e in each {
            bits.extend_from_slice(&self.expression(e)?);
        }
        Ok(Rc::new(bits))
    }

    fn constant(&self, n: i128, e: &TypedExpr) -> Result<Value, Error> {
        let width = self.bits_of(&e.ty, e.meta)?;
        Ok(Rc::new((0..width).map(|i| Bit::constant(n >> i.min(127) & 1 == 1)).collect()))
    }

    fn repeated(&mut self, each: &TypedExpr, count: usize) -> Result<Value, Error> {
        let value = self.expression(each)?;
        self.step(each.meta, value.len().saturating_mul(count))?;
        Ok(Rc::new(value.repeat(count)))
    }

    fn value(&mut self, e: &TypedExpr) -> Result<Value, Error> {
        let meta = e.meta;
        match &e.inner {
            ExprEnum::True => Ok(Rc::new(vec![Bit::ONE])),
            ExprEnum::False => Ok(Rc::new(vec![Bit::ZERO])),
            ExprEnum::NumUnsigned(n, _) => self.constant(i128::from(*n), e),
            ExprEnum::NumSigned(n, _) => self.constant(i128::from(*n), e),
            ExprEnum::Identifier(name) => self.variable(name, meta),
            ExprEnum::ArrayLiteral(each) | ExprEnum::TupleLiteral(each) => self.list(each),
            ExprEnum::ArrayRepeatLiteral(each, count) => {
                self.types.resolve(&e.ty, meta)?;
                self.repeated(each, *count)
            }
            ExprEnum::ArrayRepeatLiteralConst(each, name) => {
                self.types.resolve(&e.ty, meta)?;
                let count = self.types.size_called(name, meta)?;
                self.repeated(each, count)
            }
            ExprEnum::ArrayAccess(array, index) => self.access(array, index),
            ExprEnum::TupleAccess(tuple, index) => {
                let (at, bits) = self.part(&tuple.ty, Err(*index), meta)?;
                Ok(Rc::new(self.expression(tuple)?[at..at + bits].to_vec()))
            }
            ExprEnum::StructAccess(value, field) => {
                let (at, bits) = self.part(&value.ty, Ok(field), meta)?;
                Ok(Rc::new(self.expression(value)?[at..at + bits].to_vec()))
            }
            ExprEnum::StructLiteral(_, fields) => self.structure(e, fields),
            ExprEnum::EnumLiteral(_, variant, fields) => self.variant(e, variant, fields),
            ExprEnum::Match(value, clauses) => self.select_clause(value, clauses),
            ExprEnum::UnaryOp(UnaryOp::Not, x) => {
                Ok(Rc::new(self.expression(x)?.iter().map(|&bit| !bit).collect()))
            }
            ExprEnum::UnaryOp(UnaryOp::Neg, x) => {
                let x = Int::from_bits(self.expression(x)?.to_vec());
                let zero = Int::constant(0, x.width());
                let (negated, overflow) = checked::sub(&mut self.builder, &zero, &x);
                self.fault(AT_OVERFLOW, overflow);
                Ok(Rc::new(negated.bits().to_vec()))
            }
            ExprEnum::Op(op, x, y) => self.operation(*op, x, y, meta),
            ExprEnum::Block(body) => self.block(body),
            ExprEnum::FnCall(name, arguments) => self.call(name, arguments, meta),
            ExprEnum::BuiltInFnCall(_) => Err(no_join(meta)),
            ExprEnum::If(condition, then, otherwise) => {
                let condition = self.expression(condition)?[0];
                match condition.known() {
                    Some(true) => self.expression(then),
                    Some(false) => self.expression(otherwise),
                    None => {
                        let then = self.branch(|this| this.expression(then))?;
                        let otherwise = self.branch(|this| this.expression(otherwise))?;
                        let chosen = self.choose(condition, then, otherwise);
                        Ok(self.enter(chosen))
                    }
                }
            }
            ExprEnum::Cast(ty, x) => {
                let signed = self.is_signed(&x.ty, x.meta)?;
                let width = self.bits_of(ty, meta)?;
                let x = self.expression(x)?;
                Ok(Rc::new(resized(&x, width, signed)))
            }
            ExprEnum::Range(from, to, kind) => {
                let width = crate::types::unsigned(*kind).bits();
                self.types.resolve(&e.ty, meta)?;
                let numbers =
                    (*from..*to).flat_map(|n| (0..width).map(move |i| Bit::constant(n >> i & 1 == 1)));
                Ok(Rc::new(numbers.collect()))
            }
        }
    }

    fn access(&mut self, array: &TypedExpr, index: &TypedExpr) -> Result<Value, Error> {
        let (each, count) = self.array(&array.ty, array.meta)?;
        let array_bits = self.expression(array)?;
        let at = self.expression(index)?;
        self.check_bounds(&at, count);
        if let Some(at) = number(&at) {
            let inside = at < count;
            return Ok(Rc::new(match inside {
                true => array_bits[at * each..(at + 1) * each].to_vec(),
                false => vec![Bit::ZERO; each],
            }));
        }
        self.step(array.meta, array_bits.len())?;
        Ok(Rc::new(self.element(&array_bits, each, count, &at)))
    }

    fn structure(&mut self, e: &TypedExpr, fields: &[(String, TypedExpr)]) -> Result<Value, Error> {
        let mut bits = vec![Bit::ZERO; self.bits_of(&e.ty, e.meta)?];
        for (name, value) in fields {
            let (at, width) = self.part(&e.ty, Ok(name), e.meta)?;
            let value = self.expression(value)?;
            bits[at..at + width].copy_from_slice(&value);
        }
        Ok(Rc::new(bits))
    }

    fn variant(
        &mut self,
        e: &TypedExpr,
        name: &str,
        fields: &VariantExprEnum<ast::Type>,
    ) -> Result<Value, Error> {
        let resolved = self.types.resolve(&e.ty, e.meta)?;
        let Type::Enum(_, variants) = &*resolved else {
            return Err(Error::at(e.meta, format!("{resolved} is not an enum")));
        };
        let Some(number) = variants.iter().position(|(variant, _)| variant == name) else {
            return Err(Error::at(e.meta, format!("{resolved} has no variant {name}")));
        };
        let mut bits: Vec<Bit> =
            (0..tag_bits(variants.len())).map(|i| Bit::constant(number >> i & 1 == 1)).collect();
        if let VariantExprEnum::Tuple(fields) = fields {
            bits.extend_from_slice(&self.list(fields)?);
        }
        bits.resize(resolved.bits(), Bit::ZERO);
        Ok(Rc::new(bits))
    }

    /// A match. Some clause matches every value of the type, so the last one is taken where no other matches,
    /// and which clause is the first is settled by choosing from the last one on.
    fn select_clause(
        &mut self,
        value: &TypedExpr,
        clauses: &[(TypedPattern, TypedExpr)],
    ) -> Result<Value, Error> {
        let meta = value.meta;
        let value = self.expression(value)?;
        let mut branches: Vec<(Bit, Branch)> = Vec::with_capacity(clauses.len());
        for (pattern, result) in clauses {
            let mut matches = Bit::ONE;
            let branch = self.branch(|this| {
                this.scopes.push(BTreeMap::new());
                matches = this.pattern(pattern, &value)?;
                let result = match matches.known() {
                    Some(false) => Value::default(),
                    _ => this.expression(result)?,
                };
                this.scopes.pop();
                Ok(result)
            })?;
            if matches.known() != Some(false) {
                branches.push((matches, branch));
            }
            if matches.known() == Some(true) {
                break;
            }
        }
        let Some((_, mut chosen)) = branches.pop() else {
            return Err(Error::at(meta, "no clause matches"));
        };
        while let Some((matches, branch)) = branches.pop() {
            chosen = self.choose(matches, branch, chosen);
        }
        Ok(self.enter(chosen))
    }

    fn call(&mut self, name: &str, arguments: &[TypedExpr], meta: MetaInfo) -> Result<Value, Error> {
        let Some(function) = self.program.fn_defs.get(name) else {
            return Err(Error::at(meta, format!("there is no function {name}")));
        };
        if self.calls == MAX_CALLS {
            return Err(Error::at(meta, format!("functions call each other deeper than {MAX_CALLS}")));
        }
        let mut scope = BTreeMap::new();
        for (param, argument) in function.params.iter().zip(arguments) {
            scope.insert(param.name.clone(), self.expression(argument)?);
        }
        let constants = self.scopes[0].clone();
        let outer = std::mem::replace(&mut self.scopes, vec![constants, scope]);
        self.calls += 1;
        let result = self.block(&function.body);
        self.calls -= 1;
        self.scopes = outer;
        result
    }

    /// `&&` and `||`: what goes wrong on the right counts only where the right is looked at.
    fn short(&mut self, and: bool, x: &TypedExpr, y: &TypedExpr) -> Result<Value, Error> {
        let x = self.expression(x)?[0];
        match x.known() {
            Some(known) if known == and => return self.expression(y),
            Some(known) => return Ok(Rc::new(vec![Bit::constant(known)])),
            None => {}
        }
        let looked_at = if and { x } else { !x };
        let right = self.branch(|this| this.expression(y))?;
        let skipped = Branch {
            value: Rc::new(vec![Bit::constant(!and)]),
            scopes: self.scopes.clone(),
            faults: [Bit::ZERO; 3],
        };
        let chosen = self.choose(looked_at, right, skipped);
        Ok(self.enter(chosen))
    }

    fn operation(&mut self, op: Op, x: &TypedExpr, y: &TypedExpr, meta: MetaInfo) -> Result<Value, Error> {
        if matches!(op, Op::ShortCircuitAnd | Op::ShortCircuitOr) {
            return self.short(op == Op::ShortCircuitAnd, x, y);
        }
        let signs = (self.is_signed(&x.ty, x.meta)?, self.is_signed(&y.ty, y.meta)?);
        let (x, y) = (self.expression(x)?, self.expression(y)?);
        if matches!(op, Op::ShiftLeft | Op::ShiftRight) {
            return Ok(Rc::new(self.shift(op, &x, &y, signs.0)));
        }
        let width = x.len().max(y.len());
        let (x, y) = (resized(&x, width, signs.0), resized(&y, width, signs.1));
        self.step(meta, width)?;
        Ok(Rc::new(match signs.0 || signs.1 {
            true => self.arithmetic(op, &Int::from_bits(x), &Int::from_bits(y)),
            false => self.arithmetic(op, &Uint::from_bits(x), &Uint::from_bits(y)),
        }))
    }

    /// Operators of two numbers of one width n. Bits that only repeat the sign, or are zero, cost nothing:
    /// what is cast to a wider type before it is multiplied is multiplied in the width that it had.
    fn arithmetic<I: Integer>(&mut self, op: Op, x: &I, y: &I) -> Vec<Bit> {
        let n = x.width();
        let k = x.significant().max(y.significant());
        let (short_x, short_y) = (x.resize(k), y.resize(k));
        let b = &mut self.builder;
        let (result, overflow) = match op {
            Op::BitAnd => (b.and_bits(x, y), Bit::ZERO),
            Op::BitXor => (b.xor_bits(x, y), Bit::ZERO),
            Op::BitOr => (b.or_bits(x, y), Bit::ZERO),
            Op::LessThan => return vec![b.lt(&short_x, &short_y)],
            Op::GreaterThan => return vec![b.lt(&short_y, &short_x)],
            Op::Eq => return vec![b.eq(&short_x, &short_y)],
            Op::NotEq => return vec![!b.eq(&short_x, &short_y)],
            Op::Add => {
                let sum = b.add_wide(&short_x, &short_y);
                checked::narrowed(b, &sum, n)
            }
            Op::Sub if I::SIGNED => {
                let difference = b.sub(&x.resize(k + 1), &y.resize(k + 1));
                checked::narrowed(b, &difference, n)
            }
            Op::Sub => {
                let (difference, borrow) = checked::sub(b, &short_x, &short_y);
                let mut bits = difference.bits().to_vec();
                bits.resize(n, borrow);
                (I::from_bits(bits), borrow)
            }
            Op::Mul => checked::mul(b, x, y),
            Op::Div | Op::Mod => {
                // One bit more, so that the lowest number by -1 overflows only in the full width.
                let k = if I::SIGNED { n.min(k + 1) } else { k };
                let (x, y) = (x.resize(k), y.resize(k));
                let (quotient, remainder, by_zero) = checked::div_rem(b, &x, &y);
                let overflow = match I::SIGNED && k == n {
                    true => {
                        let int = |v: &I| Int::from_bits(v.bits().to_vec());
                        checked::quotient_overflow(b, &int(&x), &int(&y), &int(&quotient))
                    }
                    false => Bit::ZERO,
                };
                // Of a division by zero there is no quotient that could overflow.
                let overflow = b.and(overflow, !by_zero);
                self.fault(AT_BY_ZERO, by_zero);
                (if op == Op::Div { quotient } else { remainder }.resize(n), overflow)
            }
            // `operation` has lowered these.
            Op::ShiftLeft | Op::ShiftRight | Op::ShortCircuitAnd | Op::ShortCircuitOr => {
                return x.bits().to_vec();
            }
        };
        self.fault(AT_OVERFLOW, overflow);
        result.bits().to_vec()
    }

    /// A shift; one by the width or more is an overflow.
    fn shift(&mut self, op: Op, x: &[Bit], by: &[Bit], signed: bool) -> Vec<Bit> {
        let places = x.len().trailing_zeros() as usize;
        let beyond = self.builder.any(&by[places.min(by.len())..]);
        self.fault(AT_OVERFLOW, beyond);
        let by = Uint::from_bits(by[..places.min(by.len())].to_vec());
        let b = &mut self.builder;
        match (op, signed) {
            (Op::ShiftLeft, _) => b.shl_by(&Uint::from_bits(x.to_vec()), &by).bits().to_vec(),
            (_, true) => b.shr_by(&Int::from_bits(x.to_vec()), &by).bits().to_vec(),
            (_, false) => b.shr_by(&Uint::from_bits(x.to_vec()), &by).bits().to_vec(),
        }
    }
}

fn no_join(meta: MetaInfo) -> Error {
    Error::at(meta, "joins are not compiled; write two nested loops and compare the keys")
}

/// Bits that name one of `count` places.
fn places(count: usize) -> usize {
    count.next_power_of_two().trailing_zeros() as usize
}

/// The number that known bits make; `None` if one is unknown.
fn number(bits: &[Bit]) -> Option<usize> {
    bits.iter().enumerate().try_fold(0, |n, (i, bit)| Some(n | usize::from(bit.known()?) << i))
}

fn resized(x: &[Bit], width: usize, signed: bool) -> Vec<Bit> {
    let fill = if signed { x.last().copied().unwrap_or(Bit::ZERO) } else { Bit::ZERO };
    (0..width).map(|i| x.get(i).copied().unwrap_or(fill)).collect()
}
