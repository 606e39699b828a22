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
    /// The names, next to `own` columns: no two are the same.
    pub(crate) fn named<'o>(&self, own: impl Iterator<Item = &'o str> + Clone) -> Vec<String> {
        named(own, self.names, self.prefix)
    }
}

/// The `names` of columns that come behind `own`: one that is taken already gets the prefix, and a number if
/// that is taken too. No two are the same.
pub fn named<'o>(own: impl Iterator<Item = &'o str> + Clone, names: &[String], prefix: &str) -> Vec<String> {
    let mut given: Vec<String> = Vec::new();
    for name in names {
        let name = name.trim();
        let prefixed = format!("{prefix}{name}");
        let numbered = (2..).map(|number| format!("{prefixed}_{number}"));
        let mut free = [name.to_owned(), prefixed.clone()].into_iter().chain(numbered);
        let is_taken = |name: &String| {
            own.clone().any(|taken| taken.trim() == name) || given.iter().any(|taken| taken == name)
        };
        let found = free.find(|name| !is_taken(name));
        given.extend(found);
    }
    given
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn no_two_columns_bear_one_name() {
        let of = |own: &[&str], names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            named(own.iter().copied(), &names, "peer_")
        };
        assert_eq!(of(&["k"], &["y"]), ["y"]);
        assert_eq!(of(&["k", "y "], &["y"]), ["peer_y"]);
        assert_eq!(of(&["y", "peer_y"], &["y", "z"]), ["peer_y_2", "z"]);
        assert_eq!(of(&["y"], &["peer_y", "y"]), ["peer_y", "peer_y_2"]);
        assert_eq!(of(&["y", "peer_y", "peer_y_2"], &["y", "y"]), ["peer_y_3", "peer_y_4"]);
    }
}
