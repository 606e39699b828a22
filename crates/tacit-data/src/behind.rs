//! What the other side gave, on its way behind our rows.

/// A cell that the other side gave; nothing where it is null.
pub(crate) type Cell = Option<String>;

/// What goes behind our rows.
pub(crate) struct Behind<'a, 'm> {
    /// The columns' names, and what goes in front of one that we have already.
    pub names: &'a [String],
    pub prefix: &'a str,
    /// The rows of an element.
    pub rows: &'a dyn Fn(usize) -> &'m [Vec<Cell>],
}

impl Behind<'_, '_> {
    /// The names, next to `own` columns.
    pub(crate) fn named<'o>(&self, own: impl Iterator<Item = &'o str> + Clone) -> Vec<String> {
        let is_taken = |name: &String| own.clone().any(|taken| taken.trim() == name);
        let named = |name: &String| match is_taken(name) {
            true => format!("{}{name}", self.prefix),
            false => name.clone(),
        };
        self.names.iter().map(named).collect()
    }
}
