//! Which of some names was meant by one that is none of them.

use alloc::{format, string::String, vec, vec::Vec};

/// The most characters of names that are compared.
const LONGEST: usize = 64;

/// The name that differs from `wanted` least: in upper and lower case, or by one change in three characters at most.
pub fn nearest<'n>(wanted: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let lower = |name: &str| name.trim().to_lowercase();
    let wanted = lower(wanted);
    let most = (wanted.chars().count() / 3).min(3);
    let near = |name: &'n str| Some((changes(&wanted, &lower(name), most)?, name));
    names.into_iter().filter_map(near).min_by_key(|(changes, _)| *changes).map(|(_, name)| name)
}

/// What to write in place of `wanted`, which is none of the `names`: the one that is near, if there is one, and what there is.
///
/// ```
/// use tacit_crypto::near::one_of;
/// assert_eq!(one_of("paxso", ["vole", "paxos"]), "did you mean `paxos`? There are vole, paxos");
/// assert_eq!(one_of("fast", ["vole", "paxos"]), "choose one of vole, paxos");
/// ```
pub fn one_of<'n>(wanted: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match nearest(wanted, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? There are {}", names.join(", ")),
        None => format!("choose one of {}", names.join(", ")),
    }
}

/// How many characters must be put in, taken out, replaced, or exchanged with their neighbour, if not more than `most`.
fn changes(one: &str, other: &str, most: usize) -> Option<usize> {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    if one.len().abs_diff(other.len()) > most || one.len().max(other.len()) > LONGEST {
        return None;
    }
    // Rows of the table of distances: of the prefix of `one` that ends two characters ago, one ago, and here.
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let mut least = (last[j] + usize::from(a != b)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = core::mem::replace(&mut last, row);
    }
    last.pop().filter(|changes| *changes <= most)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_forgiven_and_another_word_is_not() {
        let names = ["name", "email", "phone", "id"];
        let of = |wanted: &str| nearest(wanted, names);
        assert_eq!((of("emial"), of("Email"), of("e-mail")), (Some("email"), Some("email"), Some("email")));
        assert_eq!((of("phones"), of("ID"), of("mobile")), (Some("phone"), Some("id"), None));
        assert_eq!((of("ix"), of(""), of(&"e".repeat(100))), (None, None, None));
    }
}
