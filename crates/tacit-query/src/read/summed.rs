//! A subquery in place of a table: `(SELECT k, SUM(x) AS x FROM ours GROUP BY k) a`, the rows of each key added up.

use super::{Reader, bare, bare_name, plain, too_deep};
use crate::fault::{Result, fail, quoted};
use crate::side::Side;
use crate::tree::{Aggregate, Base, Column, Expr, Sums, Type, identifier};
use crate::types::{self, check, scale};
use sqlparser::ast;

/// Columns that a subquery makes, at most.
const MOST_MADE: usize = 64;
const SUMS_FORM: &str = "write (SELECT key, SUM(x) AS x FROM ours WHERE ... GROUP BY key) a";

impl Reader {
    /// Reads a table, or the subquery in its place.
    pub(super) fn table_or_sums(&mut self, table: &ast::TableFactor) -> Result<Side> {
        match table {
            ast::TableFactor::Derived { lateral: false, subquery, alias, sample: None } => {
                self.sums(subquery, alias.as_ref())
            }
            table => self.table(table),
        }
    }

    fn sums(&mut self, query: &ast::Query, alias: Option<&ast::TableAlias>) -> Result<Side> {
        let Some(ast::TableAlias { explicit: _, name: alias, columns, at: None }) = alias else {
            return fail(format!("the subquery has no name; {SUMS_FORM}"));
        };
        if !columns.is_empty() {
            return fail(format!("column names in {} cannot change; name the table only", quoted(alias)));
        }
        let mut inner = Reader { left: self.left, ..Reader::default() };
        let (side, sums) = inner.summed(query)?;
        self.left = inner.left;
        let names = &mut self.read.names;
        names.alias[side as usize].clone_from(&alias.value);
        names.sums[side as usize] = Some(Box::new(sums));
        Ok(side)
    }

    /// Reads what stands between the parentheses.
    fn summed(&mut self, query: &ast::Query) -> Result<(Side, Sums)> {
        let select = plain(query)?;
        let [ast::TableWithJoins { relation, joins }] = &select.from[..] else {
            return fail(format!("a subquery is of one side's table; {SUMS_FORM}"));
        };
        if !joins.is_empty() || matches!(relation, ast::TableFactor::Derived { .. }) {
            return fail(format!("a subquery is of one side's table; {SUMS_FORM}"));
        }
        let side = self.table(relation)?;
        self.alone = Some(side);
        if select.having.is_some() {
            return fail("HAVING is not part of a subquery; write the condition in WHERE behind the join");
        }
        let filter = select.selection.as_ref().map(|expr| self.expr(expr, 0)).transpose()?;
        let key = self.sums_key(&select.group_by)?;
        let mut made: Vec<(String, Expr)> = vec![];
        for item in &select.projection {
            self.made(item, side, &key, &mut made)?;
        }
        let names = &mut self.read.names;
        let conditions = filter.iter().map(|expr| (expr, Some(Base::Truth)));
        types::infer(names, made.iter().map(|(_, expr)| (expr, None)).chain(conditions));
        if let Some(filter) = &filter {
            match check(names, filter)? {
                None | Some(Base::Truth) => {}
                Some(base) => {
                    return fail(format!(
                        "WHERE has {}, not a condition; compare it with something",
                        base.name()
                    ));
                }
            }
            if filter.has_aggregate() {
                return fail("WHERE has an aggregate; write it in WHERE behind the join");
            }
        }
        let typed = made.into_iter().map(|(name, expr)| {
            let base = check(names, &expr)?;
            let of = match &expr {
                Expr::Aggregate(Aggregate::Min | Aggregate::Max, _) if base == Some(Base::Date) => Type::Date,
                Expr::Aggregate(Aggregate::Avg, x) => {
                    return fail(format!(
                        "AVG({}) divides; make SUM and COUNT of it, and the mean of the result",
                        x.text(names)
                    ));
                }
                expr => Type::Decimal(scale(names, expr)),
            };
            Ok((name, expr, of))
        });
        let made = typed.collect::<Result<Vec<_>>>()?;
        let filters = filter.map_or(vec![], |filter| match filter {
            Expr::All(all) => all,
            other => vec![other],
        });
        Ok((side, Sums { names: std::mem::take(names), key, filters, made }))
    }

    /// The columns of `GROUP BY`.
    fn sums_key(&self, groups: &ast::GroupByExpr) -> Result<Vec<String>> {
        let ast::GroupByExpr::Expressions(groups, modifiers) = groups else {
            return fail(format!("a subquery is grouped by the columns of the key; {SUMS_FORM}"));
        };
        let columns = groups.iter().map(|group| self.plain_column(group)).collect::<Option<Vec<_>>>();
        match columns.filter(|columns| !columns.is_empty() && modifiers.is_empty()) {
            Some(columns) => Ok(columns),
            None => fail(format!("a subquery is grouped by the columns of the key; {SUMS_FORM}")),
        }
    }

    /// The name of a column, without a type, if that is all that an expression is.
    fn plain_column(&self, expr: &ast::Expr) -> Option<String> {
        match bare(expr) {
            ast::Expr::Identifier(name) => Some(bare_name(&name.value).to_owned()),
            ast::Expr::CompoundIdentifier(parts) => {
                self.qualified(parts).ok().map(|(_, name)| bare_name(&name).to_owned())
            }
            _ => None,
        }
    }

    /// Reads a column that a subquery makes: of the key, or an aggregate with a name.
    fn made(
        &mut self,
        item: &ast::SelectItem,
        side: Side,
        key: &[String],
        to: &mut Vec<(String, Expr)>,
    ) -> Result<()> {
        let (expr, name) = match item {
            ast::SelectItem::UnnamedExpr(expr) => (expr, None),
            ast::SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.value.clone())),
            _ => return fail(format!("a subquery names what it makes of each key; {SUMS_FORM}")),
        };
        if let Some(column) = self.plain_column(expr) {
            return match (key.contains(&column), name) {
                (true, None) => Ok(()),
                (true, Some(name)) if name == column => Ok(()),
                (true, Some(_)) => {
                    fail(format!("the column {} of the key keeps its name; leave AS out", quoted(column)))
                }
                (false, _) => fail(format!(
                    "{} is neither of the key nor an aggregate; write SUM, COUNT, MIN or MAX of it",
                    quoted(column)
                )),
            };
        }
        let read = self.expr(expr, 0)?;
        let is_one = match &read {
            Expr::Rows => true,
            Expr::Aggregate(_, x) => !x.has_aggregate(),
            _ => false,
        };
        let Some(name) = name.filter(|_| is_one) else {
            return fail(format!(
                "{} is not an aggregate with a name; write SUM(...) AS name, and compute with it behind the join",
                quoted(expr)
            ));
        };
        if read.sides()[1 - side as usize] {
            return fail(format!("{} is of the other side's table; a subquery is of one", quoted(expr)));
        }
        if to.iter().any(|(other, _)| *other == name) || key.contains(&name) {
            return fail(format!(
                "the subquery has two columns called {}; give each its own name",
                quoted(name)
            ));
        }
        if to.len() == MOST_MADE {
            return fail(format!("a subquery makes {MOST_MADE} columns at most; leave some out"));
        }
        to.push((name, read));
        Ok(())
    }

    /// A column that the subquery of a side makes.
    pub(super) fn sum_column(&mut self, side: Side, name: &str) -> Result<Expr> {
        let names = &mut self.read.names;
        let Some(sums) = &names.sums[side as usize] else { return Err(too_deep()) };
        let Some((_, _, of)) = sums.made.iter().find(|(made, ..)| made == name) else {
            let has: Vec<String> = sums.made.iter().map(|(made, ..)| identifier(made)).collect();
            let what = match sums.key.iter().any(|key| key == bare_name(name)) {
                true => "is of the key, by which rows are only joined",
                false => "is not a column of the subquery",
            };
            return fail(format!(
                "{} {what}; it makes {}",
                quoted(name),
                if has.is_empty() { "none".to_owned() } else { has.join(", ") }
            ));
        };
        let of = *of;
        let columns = &mut names.columns[side as usize];
        let at = match columns.iter().position(|column| column.name == name) {
            Some(at) => at,
            None => {
                columns.push(Column {
                    name: name.to_owned(),
                    declared: Some(of),
                    base: Some(of.base()),
                    is_made: true,
                });
                columns.len() - 1
            }
        };
        Ok(Expr::Column(side, at))
    }

    /// An error where a subquery is not grouped by what the tables are joined by.
    pub(super) fn check_sums(&self) -> Result<()> {
        for side in Side::BOTH {
            let Some(sums) = &self.read.names.sums[side as usize] else { continue };
            let on: Vec<&str> = self.read.keys[side as usize].iter().map(|key| bare_name(key)).collect();
            let is_same = on.len() == sums.key.len()
                && on.iter().all(|key| sums.key.iter().any(|k| k == key))
                && sums.key.iter().all(|key| on.contains(&key.as_str()));
            if !is_same {
                return fail(format!(
                    "the subquery is grouped by {}, and ON joins by {}; group by the same columns",
                    quoted(sums.key.join(", ")),
                    quoted(on.join(", "))
                ));
            }
        }
        Ok(())
    }
}
