//! From SQL's grammar to a question's expressions: what is refused, and what to write instead.

mod end;
mod summed;
mod values;

pub(crate) use end::End;
pub use end::{epsilon_text, read_epsilon};

use crate::fault::{Fault, Result, fail, quoted, shortened};
use crate::side::Side;
use crate::tree::{Column, Expr, Function, Names, Operator, Type, identifier};
use crate::value::{Decimal, MOST_DIGITS};
use sqlparser::ast;
use sqlparser::dialect::AnsiDialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Tokenizer;

/// Bytes of a text, at most.
pub const MOST_TEXT_BYTES: usize = 64 * 1024;
/// How deeply expressions may lie in each other: few enough that every walk fits on a small stack.
const MOST_DEPTH: usize = 40;
/// Expressions in a text, at most, copies of named ones included.
const MOST_EXPRESSIONS: usize = 20_000;
/// The stack that a text is parsed on: a chain of operators as long as a text can hold fits.
const STACK: usize = 256 << 20;

/// A text, read.
#[derive(Default)]
pub(crate) struct Read {
    pub(crate) names: Names,
    /// The columns of each side's key, with their types.
    pub(crate) keys: [Vec<String>; 2],
    /// What is selected, with the name that the text gives it.
    pub(crate) outputs: Vec<(Expr, Option<String>)>,
    pub(crate) filter: Option<Expr>,
    pub(crate) groups: Vec<Expr>,
    pub(crate) having: Option<Expr>,
    pub(crate) end: End,
}

/// Reads a text, on a stack of its own: the parser's trees are as deep as chains of operators are long.
pub(crate) fn read(text: &str) -> Result<Read> {
    if text.len() > MOST_TEXT_BYTES {
        return fail(format!("the question is longer than {MOST_TEXT_BYTES} bytes; shorten it"));
    }
    // Of what is no question nothing is quoted: it may be another file, such as a key.
    if !begins_with_select(text) {
        return fail(
            "a question begins with SELECT; write SELECT ... FROM ours a JOIN theirs b ON a.key = b.key",
        );
    }
    std::thread::scope(|scope| {
        let reader = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || statement(text));
        match reader.map(|reader| reader.join()) {
            Ok(Ok(read)) => read,
            Ok(Err(_)) => fail("the question cannot be read; write it more simply"),
            Err(error) => fail(format!("the question cannot be read ({error}); free some memory")),
        }
    })
}

/// Whether the first word behind blanks and comments is the one that a question begins with, or there is none.
fn begins_with_select(text: &str) -> bool {
    let blank = |c: char| c.is_whitespace() || c == ';';
    let mut rest = text.trim_start_matches(blank);
    loop {
        let comment = match (rest.strip_prefix("--"), rest.strip_prefix("/*")) {
            (Some(line), _) => line.split_once('\n'),
            (_, Some(block)) => block.split_once("*/"),
            _ => break,
        };
        rest = comment.map_or("", |(_, behind)| behind.trim_start_matches(blank));
    }
    let word: String = rest.chars().take_while(|c| c.is_ascii_alphabetic()).collect();
    rest.is_empty() || word.eq_ignore_ascii_case("select")
}

fn statement(text: &str) -> Result<Read> {
    let dialect = AnsiDialect {};
    let not_sql = |what: &str| {
        let what = shortened(what);
        Fault::new(format!("the question is not SQL that can be read ({what}); correct it there"))
    };
    let tokens = Tokenizer::new(&dialect, text).tokenize_with_location();
    let mut tokens = tokens.map_err(|error| not_sql(&error.to_string()))?;
    let end = end::taken(&mut tokens)?;
    let parser = Parser::new(&dialect).with_recursion_limit(MOST_DEPTH);
    let statements = parser.with_tokens_with_locations(tokens).parse_statements();
    let mut statements = statements.map_err(|error| match error {
        ParserError::TokenizerError(what) | ParserError::ParserError(what) => not_sql(&what),
        ParserError::RecursionLimitExceeded => too_deep(),
    })?;
    match (statements.pop(), statements.len()) {
        (Some(ast::Statement::Query(query)), 0) => {
            let mut reader = Reader { left: MOST_EXPRESSIONS, ..Reader::default() };
            reader.query(&query)?;
            reader.read.end = end;
            Ok(reader.read)
        }
        (None, _) => {
            fail("the question is empty; write SELECT ... FROM ours a JOIN theirs b ON a.key = b.key")
        }
        _ => fail("a question is one SELECT; leave other statements out"),
    }
}

fn too_deep() -> Fault {
    Fault::new("the question's expressions lie too deeply in each other; write it more simply")
}

/// A refusal of a clause.
fn no_clause<T>(clause: &str, remedy: &str) -> Result<T> {
    fail(format!("{clause} is not part of a question; {remedy}"))
}

#[derive(Default)]
struct Reader {
    read: Read,
    /// Expressions that may still be made.
    left: usize,
    /// Whether names of what is selected may be used.
    has_outputs: bool,
    /// In a subquery: the side whose table is its one.
    alone: Option<Side>,
}

impl Reader {
    /// Counts expressions that are made: copies of one are many without being long.
    fn count(&mut self, made: usize) -> Result<()> {
        match self.left.checked_sub(made) {
            Some(left) => self.left = left,
            None => return fail("the question has too many expressions; write it more simply"),
        }
        Ok(())
    }

    fn query(&mut self, query: &ast::Query) -> Result<()> {
        let select = plain(query)?;
        self.from(&select.from)?;
        self.select(select)
    }

    fn select(&mut self, select: &ast::Select) -> Result<()> {
        let ast::Select { projection, selection, group_by, having, .. } = select;
        for item in projection {
            let (expr, name) = match item {
                ast::SelectItem::UnnamedExpr(expr) => (expr, None),
                ast::SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.value.clone())),
                _ => {
                    return fail(
                        "SELECT * shows rows, and nobody sees one; select aggregates and groups by name",
                    );
                }
            };
            let expr = self.expr(expr, 0)?;
            self.read.outputs.push((expr, name));
        }
        self.read.filter = selection.as_ref().map(|expr| self.expr(expr, 0)).transpose()?;
        self.has_outputs = true;
        self.groups(group_by)?;
        self.read.having = having.as_ref().map(|expr| self.expr(expr, 0)).transpose()?;
        Ok(())
    }

    fn groups(&mut self, groups: &ast::GroupByExpr) -> Result<()> {
        let ast::GroupByExpr::Expressions(groups, modifiers) = groups else {
            return no_clause("GROUP BY ALL", "name what rows are grouped by");
        };
        if !modifiers.is_empty() {
            return no_clause("ROLLUP, CUBE or TOTALS", "ask a question for each grouping");
        }
        for group in groups {
            let expr = match group {
                ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Number(number, _), .. }) => {
                    let at = number.parse::<usize>().ok().and_then(|at| at.checked_sub(1));
                    match at.and_then(|at| self.read.outputs.get(at)) {
                        Some((expr, _)) => expr.clone(),
                        None => {
                            return fail(format!(
                                "GROUP BY {number} names nothing that is selected; write a position from 1 to {}",
                                self.read.outputs.len()
                            ));
                        }
                    }
                }
                group => self.expr(group, 0)?,
            };
            self.read.groups.push(expr);
        }
        Ok(())
    }

    fn from(&mut self, from: &[ast::TableWithJoins]) -> Result<()> {
        const FORM: &str = "write FROM ours a JOIN theirs b ON a.key = b.key";
        let [ast::TableWithJoins { relation, joins }] = from else {
            return fail(format!("a question is about two joined tables; {FORM}"));
        };
        let [ast::Join { relation: other, global: false, join_operator }] = &joins[..] else {
            return fail(format!("a question is about two joined tables; {FORM}"));
        };
        let (first, second) = (self.table_or_sums(relation)?, self.table_or_sums(other)?);
        if first == second {
            return fail(format!("a question is about ours and theirs, each once; {FORM}"));
        }
        let [ours, theirs] = &self.read.names.alias;
        if ours.eq_ignore_ascii_case(theirs) {
            return fail(format!("both tables are called {}; give each a name of its own", quoted(ours)));
        }
        let constraint = match join_operator {
            ast::JoinOperator::Join(constraint) | ast::JoinOperator::Inner(constraint) => constraint,
            _ => return fail("only an inner join can be asked about; write JOIN ... ON a.key = b.key"),
        };
        let ast::JoinConstraint::On(on) = constraint else {
            return fail("the join names no condition; write ON a.key = b.key");
        };
        let mut conditions = vec![];
        chain(on, &ast::BinaryOperator::And, &mut conditions);
        for condition in conditions {
            self.key(condition)?;
        }
        self.check_sums()
    }

    /// Reads the name of a table, and what the text calls it.
    fn table(&mut self, table: &ast::TableFactor) -> Result<Side> {
        let ast::TableFactor::Table {
            name,
            alias,
            args: None,
            with_hints,
            version: None,
            with_ordinality: false,
            partitions,
            json_path: None,
            sample: None,
            index_directives,
            inheritance: None,
        } = table
        else {
            return fail(format!("{} is not ours or theirs; name the two tables", quoted(table)));
        };
        let name = name.to_string();
        let side = Side::BOTH.into_iter().find(|side| name.eq_ignore_ascii_case(side.name()));
        let is_plain = with_hints.is_empty() && partitions.is_empty() && index_directives.is_empty();
        let (Some(side), true) = (side, is_plain) else {
            return fail(format!(
                "{} is not a table of a question; the listening side's is called ours, the other's theirs",
                quoted(table)
            ));
        };
        self.read.names.alias[side as usize] = match alias {
            None => side.name().to_owned(),
            Some(ast::TableAlias { explicit: _, name, columns, at: None }) if columns.is_empty() => {
                name.value.clone()
            }
            Some(alias) => {
                return fail(format!("column names in {} cannot change; name the table only", quoted(alias)));
            }
        };
        Ok(side)
    }

    /// Reads a condition of `ON`.
    fn key(&mut self, condition: &ast::Expr) -> Result<()> {
        let ast::Expr::BinaryOp { left, op: ast::BinaryOperator::Eq, right } = bare(condition) else {
            return fail(format!(
                "ON has {}, and joins by equal keys alone; write such conditions in WHERE",
                quoted(condition)
            ));
        };
        let column = |expr: &ast::Expr| match bare(expr) {
            ast::Expr::CompoundIdentifier(parts) => self.qualified(parts),
            _ => fail(format!(
                "ON joins by columns; write ON a.key = b.key in place of {} (a name with other signs stands in double \
                     quotes: b.\"e-mail\")",
                quoted(condition)
            )),
        };
        let (left, right) = (column(left)?, column(right)?);
        if left.0 == right.0 {
            return fail(format!("{} names one table twice; write a column of each", quoted(condition)));
        }
        for (side, name) in [left, right] {
            if self.read.keys[side as usize].contains(&name) {
                return fail(format!("ON has {} twice; name each column once", quoted(&name)));
            }
            self.read.keys[side as usize].push(name);
        }
        Ok(())
    }

    /// The side and the name, with its type, of `a.x`.
    fn qualified(&self, parts: &[ast::Ident]) -> Result<(Side, String)> {
        let [table, column] = parts else {
            let written: Vec<String> = parts.iter().map(ToString::to_string).collect();
            return fail(format!("{} is not a column; write table.column", quoted(written.join("."))));
        };
        let alias = &self.read.names.alias;
        if let Some(side) = self.alone {
            let own = &alias[side as usize];
            return match own.eq_ignore_ascii_case(&table.value) {
                true => Ok((side, column.value.clone())),
                false => fail(format!(
                    "{} is not of the subquery's table; write {}",
                    quoted(format!("{table}.{column}")),
                    identifier(own)
                )),
            };
        }
        let Some(side) =
            Side::BOTH.into_iter().find(|side| alias[*side as usize].eq_ignore_ascii_case(&table.value))
        else {
            return fail(format!(
                "{} names no table of the question; write {} or {} before the point",
                quoted(format!("{table}.{column}")),
                identifier(&alias[0]),
                identifier(&alias[1])
            ));
        };
        Ok((side, column.value.clone()))
    }

    /// Reads a column that rows are computed of.
    fn column(&mut self, parts: &[ast::Ident], cast: Option<Type>) -> Result<Expr> {
        let (side, written) = self.qualified(parts)?;
        if self.read.names.sums[side as usize].is_some() {
            if let Some(to) = cast {
                return fail(format!(
                    "{} is made by a subquery, which says its type; leave the cast to {to} out",
                    quoted(&written)
                ));
            }
            return self.sum_column(side, &written);
        }
        self.own_column(side, written, cast)
    }

    /// Reads a column of a side's own table.
    fn own_column(&mut self, side: Side, written: String, cast: Option<Type>) -> Result<Expr> {
        let (name, suffix) = match written.rsplit_once(':') {
            Some((name, suffix)) if !name.is_empty() => match Type::named(suffix) {
                Some(declared) => (name.to_owned(), Some(declared)),
                None => (written, None),
            },
            _ => (written, None),
        };
        let columns = &mut self.read.names.columns[side as usize];
        let at = match columns.iter().position(|column| column.name == name) {
            Some(at) => at,
            None => {
                columns.push(Column { name, declared: None, base: None, is_made: false });
                columns.len() - 1
            }
        };
        for declared in [suffix, cast].into_iter().flatten() {
            let column = &mut columns[at];
            match column.declared {
                Some(other) if other != declared => {
                    return fail(format!(
                        "the column {} is {other} in one place and {declared} in another; give it one type",
                        quoted(&column.name)
                    ));
                }
                _ => (column.declared, column.base) = (Some(declared), Some(declared.base())),
            }
        }
        Ok(Expr::Column(side, at))
    }

    fn boxed(&mut self, expr: &ast::Expr, depth: usize) -> Result<Box<Expr>> {
        self.expr(expr, depth).map(Box::new)
    }

    /// An operand of a comparison. Which of two comparisons in a row comes first differs from one database to another,
    /// so that they need parentheses.
    fn operand(&mut self, expr: &ast::Expr, depth: usize) -> Result<Box<Expr>> {
        match is_comparison(expr) {
            true => fail(format!("{} is compared again; put it in parentheses", quoted(expr))),
            false => self.boxed(expr, depth),
        }
    }

    fn expr(&mut self, expr: &ast::Expr, depth: usize) -> Result<Expr> {
        if depth > MOST_DEPTH {
            return Err(too_deep());
        }
        self.count(1)?;
        let deeper = depth + 1;
        Ok(match expr {
            ast::Expr::Nested(inner) => self.expr(inner, deeper)?,
            ast::Expr::Identifier(name) => self.unqualified(name)?,
            ast::Expr::CompoundIdentifier(parts) => self.column(parts, None)?,
            ast::Expr::Value(literal) => values::value(&literal.value)?,
            ast::Expr::TypedString(literal) => values::typed(literal)?,
            ast::Expr::UnaryOp { op: ast::UnaryOperator::Plus, expr } => self.expr(expr, deeper)?,
            ast::Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => match self.expr(expr, deeper)? {
                Expr::Number(Decimal { units, scale }) => Expr::Number(Decimal { units: -units, scale }),
                other => Expr::Negative(Box::new(other)),
            },
            ast::Expr::UnaryOp { op: ast::UnaryOperator::Not, expr } => Expr::Not(self.boxed(expr, deeper)?),
            ast::Expr::BinaryOp { left, op, right } => self.binary(expr, left, op, right, deeper)?,
            ast::Expr::IsNull(x) => Expr::IsNull(self.operand(x, deeper)?),
            ast::Expr::IsNotNull(x) => negated(true, Expr::IsNull(self.operand(x, deeper)?)),
            ast::Expr::IsTrue(x) => Expr::Is(self.operand(x, deeper)?, true),
            ast::Expr::IsFalse(x) => Expr::Is(self.operand(x, deeper)?, false),
            ast::Expr::IsNotTrue(x) => negated(true, Expr::Is(self.operand(x, deeper)?, true)),
            ast::Expr::IsNotFalse(x) => negated(true, Expr::Is(self.operand(x, deeper)?, false)),
            ast::Expr::IsUnknown(x) => Expr::IsNull(self.operand(x, deeper)?),
            ast::Expr::IsNotUnknown(x) => negated(true, Expr::IsNull(self.operand(x, deeper)?)),
            ast::Expr::Between { expr, negated: not, low, high } => {
                let [x, low, high] = [expr, low, high].map(|part| self.operand(part, deeper));
                negated(*not, Expr::Between(x?, low?, high?))
            }
            ast::Expr::In { expr, target: ast::InTarget::List(list), negated: not, global: false } => {
                let x = self.operand(expr, deeper)?;
                let list = list.iter().map(|item| self.expr(item, deeper)).collect::<Result<Vec<_>>>()?;
                negated(*not, Expr::In(x, list))
            }
            ast::Expr::Like { negated: not, any: false, expr, pattern, escape_char } => {
                negated(*not, self.like(expr, pattern, escape_char.as_deref(), deeper)?)
            }
            ast::Expr::Case { case_token: _, end_token: _, operand, conditions, else_result } => {
                let operand = operand.as_ref().map(|operand| self.boxed(operand, deeper)).transpose()?;
                let mut cases = vec![];
                for ast::CaseWhen { condition, result } in conditions {
                    let condition = self.expr(condition, deeper)?;
                    let condition = match &operand {
                        None => condition,
                        Some(x) => {
                            self.count(x.size())?;
                            Expr::Compare(Operator::Equal, x.clone(), Box::new(condition))
                        }
                    };
                    cases.push((condition, self.expr(result, deeper)?));
                }
                let last = else_result.as_ref().map(|last| self.expr(last, deeper)).transpose()?;
                Expr::Case(cases, Box::new(last.unwrap_or(Expr::Null)))
            }
            ast::Expr::Cast {
                kind: ast::CastKind::Cast | ast::CastKind::DoubleColon,
                expr: x,
                data_type,
                format: None,
            } => self.cast(expr, x, data_type)?,
            ast::Expr::Extract { field, syntax: _, expr: x } => {
                let function = match field {
                    ast::DateTimeField::Year => Function::Year,
                    ast::DateTimeField::Month => Function::Month,
                    ast::DateTimeField::Day => Function::Day,
                    _ => return fail(format!("{} is not known; write YEAR, MONTH or DAY", quoted(expr))),
                };
                Expr::Call(function, self.boxed(x, deeper)?)
            }
            ast::Expr::Trim { trim_where: None, trim_what: None, expr, trim_characters: None } => {
                Expr::Call(Function::Trim, self.boxed(expr, deeper)?)
            }
            ast::Expr::Function(function) => self.function(function, deeper)?,
            ast::Expr::Subquery(_) | ast::Expr::Exists { .. } | ast::Expr::In { .. } => {
                return fail(format!("{} is a subquery; write one in place of a table alone", quoted(expr)));
            }
            ast::Expr::Interval(_) => {
                return fail(format!("{} is an interval; add a number of days to a date", quoted(expr)));
            }
            _ => return fail(format!("{} cannot be asked; see the grammar of questions", quoted(expr))),
        })
    }

    /// A name without a table: that of something selected, or a column whose table is missing.
    fn unqualified(&mut self, name: &ast::Ident) -> Result<Expr> {
        let named = |(_, output): &&(Expr, Option<String>)| output.as_ref() == Some(&name.value);
        if let Some((expr, _)) = self.read.outputs.iter().find(named).filter(|_| self.has_outputs) {
            let expr = expr.clone();
            self.count(expr.size())?;
            return Ok(expr);
        }
        if let Some(side) = self.alone {
            return self.own_column(side, name.value.clone(), None);
        }
        let [ours, theirs] = self.read.names.alias.each_ref().map(|alias| identifier(alias));
        let hint = match name.quote_style {
            Some('"') => format!(", or '{}' if it is text", name.value.replace('\'', "''")),
            _ => String::new(),
        };
        fail(format!(
            "{} does not say whose column it is; write {ours}.{name} or {theirs}.{name}{hint}",
            quoted(name)
        ))
    }

    fn binary(
        &mut self,
        whole: &ast::Expr,
        left: &ast::Expr,
        op: &ast::BinaryOperator,
        right: &ast::Expr,
        depth: usize,
    ) -> Result<Expr> {
        use ast::BinaryOperator as Op;
        let operator = match op {
            Op::Plus | Op::Minus => return self.sum(whole, depth),
            Op::Multiply | Op::And | Op::Or => {
                let mut parts = vec![];
                chain(whole, op, &mut parts);
                let parts = parts.iter().map(|part| self.expr(part, depth)).collect::<Result<Vec<_>>>()?;
                return Ok(match op {
                    Op::And => Expr::All(parts),
                    Op::Or => Expr::Any(parts),
                    _ => Expr::Product(parts),
                });
            }
            Op::Eq => Operator::Equal,
            Op::NotEq => Operator::Unequal,
            Op::Lt => Operator::Less,
            Op::LtEq => Operator::AtMost,
            Op::Gt => Operator::Greater,
            Op::GtEq => Operator::AtLeast,
            Op::Divide | Op::Modulo => {
                return fail(format!(
                    "{} divides, and only AVG does; multiply the other side, or divide the result",
                    quoted(whole)
                ));
            }
            _ => return fail(format!("the operator {op} of {} is not known; leave it out", quoted(whole))),
        };
        Ok(Expr::Compare(operator, self.operand(left, depth)?, self.operand(right, depth)?))
    }

    /// Reads a chain of `+` and `-`, whose trees are as deep as it is long.
    fn sum(&mut self, whole: &ast::Expr, depth: usize) -> Result<Expr> {
        let (mut terms, mut rest) = (vec![], whole);
        while let ast::Expr::BinaryOp { left, op, right } = rest {
            match op {
                ast::BinaryOperator::Plus => terms.push((false, &**right)),
                ast::BinaryOperator::Minus => terms.push((true, &**right)),
                _ => break,
            }
            rest = bare(left);
        }
        terms.push((false, rest));
        terms.reverse();
        let read = terms.into_iter().map(|(minus, term)| Ok((minus, self.expr(term, depth)?)));
        Ok(Expr::Sum(read.collect::<Result<_>>()?))
    }

    fn like(
        &mut self,
        x: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::Expr>,
        depth: usize,
    ) -> Result<Expr> {
        let x = self.boxed(x, depth)?;
        let Expr::Text(pattern) = self.expr(pattern, depth)? else {
            return fail(format!(
                "LIKE takes a pattern as a string; write one in place of {}",
                quoted(pattern)
            ));
        };
        let escape = match escape.map(|escape| self.expr(escape, depth)).transpose()? {
            None => None,
            Some(Expr::Text(text)) if text.chars().count() == 1 => text.chars().next(),
            Some(_) => return fail("ESCAPE takes one character; write ESCAPE '\\'"),
        };
        let mut rest = pattern.chars();
        while let Some(c) = rest.next() {
            if Some(c) == escape && !rest.next().is_some_and(|c| Some(c) == escape || c == '%' || c == '_') {
                return fail(format!(
                    "the pattern {} has its escape character before none of %, _ and itself; write it twice",
                    quoted(&pattern)
                ));
            }
        }
        Ok(Expr::Like(x, pattern, escape))
    }

    /// `CAST` of a column, which says its type.
    fn cast(&mut self, whole: &ast::Expr, x: &ast::Expr, to: &ast::DataType) -> Result<Expr> {
        use ast::{DataType as D, ExactNumberInfo as Digits};
        let declared = match to {
            D::BigInt(None) | D::Integer(None) | D::Int(None) | D::SmallInt(None) => Type::Decimal(0),
            D::Decimal(Digits::PrecisionAndScale(_, scale))
            | D::Numeric(Digits::PrecisionAndScale(_, scale)) => {
                match u8::try_from(*scale).ok().filter(|scale| *scale <= MOST_DIGITS) {
                    Some(scale) => Type::Decimal(scale),
                    None => {
                        return fail(format!(
                            "{} has more digits after the point than {MOST_DIGITS}; write fewer",
                            quoted(whole)
                        ));
                    }
                }
            }
            D::Decimal(Digits::Precision(_)) | D::Numeric(Digits::Precision(_)) => Type::Decimal(0),
            D::Date => Type::Date,
            D::Text | D::Varchar(None) => Type::Text,
            D::Boolean | D::Bool => Type::Truth,
            _ => {
                return fail(format!(
                    "{} is to no type of a column; write BIGINT, DECIMAL(18, 2), DATE, TEXT or BOOLEAN",
                    quoted(whole)
                ));
            }
        };
        match bare(x) {
            ast::Expr::CompoundIdentifier(parts) => self.column(parts, Some(declared)),
            _ => fail(format!("{} is not of a column; CAST says the type of one column", quoted(whole))),
        }
    }

    fn function(&mut self, function: &ast::Function, depth: usize) -> Result<Expr> {
        let ast::Function {
            name,
            uses_odbc_syntax: false,
            parameters: ast::FunctionArguments::None,
            args: ast::FunctionArguments::List(list),
            within_group,
            filter,
            null_treatment: None,
            over,
        } = function
        else {
            return fail(format!("{} is not a function of a question; leave it out", quoted(function)));
        };
        if over.is_some() {
            return fail(format!("{} is over a window; write GROUP BY", quoted(function)));
        }
        if filter.is_some() {
            return fail(format!("{} has a FILTER; write CASE WHEN ... THEN ... END", quoted(function)));
        }
        let called = name.to_string().to_ascii_uppercase();
        let ast::FunctionArgumentList { duplicate_treatment, args, clauses } = list;
        if !clauses.is_empty() || !within_group.is_empty() {
            return fail(format!("{} has an order; leave it out", quoted(function)));
        }
        if *duplicate_treatment == Some(ast::DuplicateTreatment::Distinct) {
            return self.keys(function, &called, args);
        }
        if called == "COUNT"
            && matches!(&args[..], [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard)])
        {
            return Ok(Expr::Rows);
        }
        let mut read = vec![];
        for arg in args {
            match arg {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(arg)) => {
                    read.push(self.expr(arg, depth)?)
                }
                _ => {
                    return fail(format!(
                        "the arguments of {} are not values; write expressions",
                        quoted(function)
                    ));
                }
            }
        }
        values::call(function, &called, read)
    }

    /// `COUNT(DISTINCT key)`.
    fn keys(&mut self, function: &ast::Function, called: &str, args: &[ast::FunctionArg]) -> Result<Expr> {
        let column = |arg: &ast::FunctionArg| match arg {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => match bare(expr) {
                ast::Expr::CompoundIdentifier(parts) => self.qualified(parts).ok(),
                _ => None,
            },
            _ => None,
        };
        let columns: Option<Vec<(Side, String)>> = args.iter().map(column).collect();
        let is_key = |side: Side, columns: &[(Side, String)]| {
            let key = &self.read.keys[side as usize];
            let has = |wanted: &String| {
                columns.iter().any(|(of, name)| *of == side && (name == wanted || name == bare_name(wanted)))
            };
            columns.len() == key.len() && key.iter().all(has)
        };
        match columns {
            Some(columns) if called == "COUNT" => {
                match Side::BOTH.into_iter().find(|side| is_key(*side, &columns)) {
                    Some(side) => {
                        let key = &self.read.keys[side as usize];
                        let key = key.iter().map(|name| bare_name(name).to_owned()).collect();
                        Ok(Expr::Keys(side, key))
                    }
                    None => fail(format!(
                        "{} counts other values than the key's; only COUNT(DISTINCT key) can be asked",
                        quoted(function)
                    )),
                }
            }
            _ => fail(format!(
                "{} is not COUNT(DISTINCT key), the one use of DISTINCT; leave DISTINCT out",
                quoted(function)
            )),
        }
    }
}

/// The one SELECT that a query is, with no clause that is not read.
fn plain(query: &ast::Query) -> Result<&ast::Select> {
    let ast::Query {
        with,
        body,
        order_by,
        limit_clause,
        fetch,
        locks,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = query;
    if with.is_some() {
        return no_clause("WITH", "write one SELECT of ours and theirs");
    }
    if order_by.is_some() {
        return no_clause("ORDER BY", "leave it out and sort the result");
    }
    if limit_clause.is_some() || fetch.is_some() {
        return no_clause("LIMIT", "leave it out and take what you want of the result");
    }
    let is_plain = locks.is_empty()
        && for_clause.is_none()
        && settings.is_none()
        && format_clause.is_none()
        && pipe_operators.is_empty();
    if !is_plain {
        return fail("only ROUND TO and WITH NOISE EPSILON may follow HAVING; leave the last clause out");
    }
    let select = match &**body {
        ast::SetExpr::Select(select) => select,
        ast::SetExpr::SetOperation { .. } => {
            return no_clause("UNION, EXCEPT or INTERSECT", "ask two questions");
        }
        _ => {
            return fail(
                "a question is one SELECT; write SELECT ... FROM ours a JOIN theirs b ON a.key = b.key",
            );
        }
    };
    let ast::Select {
        select_token: _,
        optimizer_hints,
        distinct,
        select_modifiers,
        top,
        top_before_distinct: _,
        projection: _,
        exclude,
        into,
        from: _,
        lateral_views,
        prewhere,
        selection: _,
        connect_by,
        group_by: _,
        cluster_by,
        distribute_by,
        sort_by,
        having: _,
        named_window,
        qualify,
        window_before_qualify: _,
        value_table_mode,
        flavor,
    } = &**select;
    if distinct.is_some() {
        return no_clause("SELECT DISTINCT", "name what rows are grouped by in GROUP BY");
    }
    if !named_window.is_empty() || qualify.is_some() {
        return no_clause("a window", "write GROUP BY");
    }
    let is_plain = optimizer_hints.is_empty()
        && select_modifiers.is_none()
        && top.is_none()
        && exclude.is_none()
        && into.is_none()
        && lateral_views.is_empty()
        && prewhere.is_none()
        && connect_by.is_empty()
        && cluster_by.is_empty()
        && distribute_by.is_empty()
        && sort_by.is_empty()
        && value_table_mode.is_none()
        && *flavor == ast::SelectFlavor::Standard;
    if !is_plain {
        return fail("a question has SELECT, FROM, JOIN, ON, WHERE, GROUP BY and HAVING; leave the rest out");
    }
    Ok(select)
}

/// The name of a column of the key, without its type.
pub(crate) fn bare_name(key: &str) -> &str {
    match key.split_once(':') {
        Some((name, _)) if !name.is_empty() => name,
        _ => key,
    }
}

/// An expression without parentheses around it.
fn bare(mut expr: &ast::Expr) -> &ast::Expr {
    while let ast::Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

/// Whether an expression compares, and is not in parentheses.
fn is_comparison(expr: &ast::Expr) -> bool {
    use ast::BinaryOperator as Op;
    matches!(
        expr,
        ast::Expr::BinaryOp { op: Op::Eq | Op::NotEq | Op::Lt | Op::LtEq | Op::Gt | Op::GtEq, .. }
            | ast::Expr::Between { .. }
            | ast::Expr::In { .. }
            | ast::Expr::Like { .. }
            | ast::Expr::IsNull(_)
            | ast::Expr::IsNotNull(_)
            | ast::Expr::IsTrue(_)
            | ast::Expr::IsFalse(_)
            | ast::Expr::IsNotTrue(_)
            | ast::Expr::IsNotFalse(_)
            | ast::Expr::IsUnknown(_)
            | ast::Expr::IsNotUnknown(_)
    )
}

/// The operands of a chain of one operator. Those with parentheses are chained too: they mean the same.
fn chain<'a>(expr: &'a ast::Expr, op: &ast::BinaryOperator, to: &mut Vec<&'a ast::Expr>) {
    let (mut rest, mut found) = (vec![expr], vec![]);
    while let Some(expr) = rest.pop() {
        match bare(expr) {
            ast::Expr::BinaryOp { left, op: other, right } if other == op => {
                rest.push(left);
                rest.push(right);
            }
            other => found.push(other),
        }
    }
    found.reverse();
    to.append(&mut found);
}

fn negated(not: bool, expr: Expr) -> Expr {
    if not { Expr::Not(Box::new(expr)) } else { expr }
}
