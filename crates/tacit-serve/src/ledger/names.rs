//! Which names belong to one peer, or to one source: all that were ever in force together.

use std::collections::{BTreeMap, BTreeSet};

/// Names in groups. Two names are in one group once anything named both, and stay there.
#[derive(Default)]
pub(super) struct Names {
    of: BTreeMap<String, usize>,
    /// The node that each one follows; a group's first one follows itself.
    before: Vec<usize>,
}

impl Names {
    fn first_of(&self, mut node: usize) -> usize {
        while self.before[node] != node {
            node = self.before[node];
        }
        node
    }

    /// The group of a name that was seen.
    pub(super) fn group(&self, name: &str) -> Option<usize> {
        self.of.get(name).map(|node| self.first_of(*node))
    }

    /// The groups of those of these names that were seen.
    pub(super) fn groups<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> BTreeSet<usize> {
        names.into_iter().filter_map(|name| self.group(name)).collect()
    }

    /// The group as it is now of a node that was one's first at some time.
    pub(super) fn now(&self, node: usize) -> usize {
        self.first_of(node)
    }

    /// Whether these names are in one group already.
    pub(super) fn are_one(&self, names: &[String]) -> bool {
        let groups: BTreeSet<_> = names.iter().map(|name| self.group(name)).collect();
        groups.len() == 1 && !groups.contains(&None)
    }

    /// Puts names into one group; returns it.
    pub(super) fn join<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) -> usize {
        let mut group = None;
        for name in names {
            let node = match self.of.get(name) {
                Some(node) => self.first_of(*node),
                None => {
                    let node = self.before.len();
                    self.before.push(node);
                    self.of.insert(name.to_owned(), node);
                    node
                }
            };
            let first = *group.get_or_insert(node);
            // The older node leads, so that no way grows long.
            let (first, later) = (first.min(node), first.max(node));
            self.before[later] = first;
            group = Some(first);
        }
        group.unwrap_or_default()
    }

    /// All names, by group.
    pub(super) fn all(&self) -> BTreeMap<usize, Vec<&str>> {
        let mut all: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for (name, node) in &self.of {
            all.entry(self.first_of(*node)).or_default().push(name);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_grow_together_over_any_number_of_steps() {
        let mut names = Names::default();
        for number in 0..100 {
            names.join([format!("a{number}").as_str(), format!("b{number}").as_str()]);
        }
        assert_eq!(names.all().len(), 100);
        for number in 0..99 {
            names.join([format!("b{number}").as_str(), format!("a{}", number + 1).as_str()]);
        }
        assert_eq!(names.all().len(), 1);
        assert!(names.are_one(&["a0".into(), "b99".into()]) && !names.are_one(&["a0".into(), "c".into()]));
        assert_eq!(names.groups(["a7", "b50", "c"]).len(), 1);
    }
}
