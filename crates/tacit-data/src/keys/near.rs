//! Near matches: a value becomes several variants, and two values match if they have a variant in common.
//!
//! Which pairs these are, by type:
//!
//! - `name~1`: equal names; and names of which the longer has at least [`SHORTEST_VARIED_NAME`] characters and whose longest common
//!   subsequence lacks at most one character of each: one inserted, lost, replaced, or moved to another place.
//! - `date~1`: equal dates, dates that differ in one digit, and two dates of one year with day and month exchanged.
//! - `int~N`: numbers that differ by at most N.

use super::{Kind, Reason};

/// The most variants of an identifier of one row.
pub const MAX_VARIANTS: usize = 4096;
/// Characters of the longest name that has variants.
const LONGEST_VARIED_NAME: usize = 64;
/// Characters of the shortest name of which one may be lost: else two names of a letter would match.
const SHORTEST_VARIED_NAME: usize = 3;
/// The most that two numbers may differ by.
const FARTHEST: u8 = 99;
/// Stands for one digit of a date, whichever it is.
const ANY_DIGIT: u8 = b'_';

/// How far two values may be apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Near {
    /// They must be equal.
    No,
    /// By one character of a name, or one digit of a date.
    One,
    /// By so much.
    Within(u8),
}

impl Near {
    /// The type in front of a `~`, and how far its values may be apart; `None` where that cannot be.
    pub(super) fn parse(name: &str) -> Option<(&str, Near)> {
        let Some((name, by)) = name.rsplit_once('~') else { return Some((name, Near::No)) };
        let base = name.split(':').next().unwrap_or_default();
        match (base, by) {
            ("name" | "date", "1") => Some((name, Near::One)),
            ("int", by) if !by.starts_with(['0', '+']) => {
                let by = by.parse().ok().filter(|by| (1..=FARTHEST).contains(by))?;
                Some((name, Near::Within(by)))
            }
            _ => None,
        }
    }

    /// What goes behind the type's name.
    pub(super) fn suffix(self) -> String {
        match self {
            Near::No => String::new(),
            Near::One => "~1".to_owned(),
            Near::Within(by) => format!("~{by}"),
        }
    }

    /// Refuses a normal form of too many variants.
    pub(super) fn check(self, kind: Kind, normal: &str) -> Result<(), Reason> {
        match (self, kind) {
            (Near::One, Kind::Name) if normal.chars().nth(LONGEST_VARIED_NAME).is_some() => {
                Err(Reason::Length)
            }
            _ => Ok(()),
        }
    }

    /// The fewest variants that a value has.
    pub(super) fn at_least(self, kind: Kind) -> usize {
        match (self, kind) {
            (Near::One, Kind::Date(_)) => 8,
            (Near::Within(by), _) => usize::from(by) + 1,
            _ => 1,
        }
    }

    /// The variants of a normal form, no two the same.
    pub(super) fn variants(self, kind: Kind, normal: &str) -> Vec<String> {
        match (self, kind) {
            (Near::No, _) => vec![normal.to_owned()],
            (Near::Within(by), _) => (0..=by).map(|more| plus(normal, more)).collect(),
            (Near::One, Kind::Date(_)) => of_date(normal),
            (Near::One, _) => of_name(normal),
        }
    }
}

/// A name, and what is left of it without each of its characters.
fn of_name(name: &str) -> Vec<String> {
    let mut variants = vec![name.to_owned()];
    if name.chars().count() < SHORTEST_VARIED_NAME {
        return variants;
    }
    let mut before = None;
    for (at, c) in name.char_indices() {
        // Without the one or the other of two equal neighbours it is the same.
        if before != Some(c) {
            variants.push([&name[..at], &name[at + c.len_utf8()..]].concat());
        }
        before = Some(c);
    }
    variants
}

/// A date with each of its digits left open, and with day and month in ascending order where they may be exchanged.
fn of_date(date: &str) -> Vec<String> {
    let digits = (0..date.len()).filter(|at| date.as_bytes()[*at].is_ascii_digit());
    let open = |at: usize| {
        let bytes = date.bytes().enumerate();
        bytes.map(|(here, byte)| char::from(if here == at { ANY_DIGIT } else { byte })).collect()
    };
    let mut variants: Vec<String> = digits.map(open).collect();
    let parts: Vec<&str> = date.split('-').collect();
    if let [year, month, day] = parts[..]
        && day <= "12"
        && day != month
    {
        variants.push(format!("{year}/{}/{}", month.min(day), month.max(day)));
    }
    variants
}

/// A whole number in its normal form, and so much more.
fn plus(number: &str, more: u8) -> String {
    let Some(size) = number.strip_prefix('-') else { return larger(number, more) };
    // It stays below zero unless it is small.
    match size.parse::<u64>() {
        Ok(size) if size <= u64::from(more) => (u64::from(more) - size).to_string(),
        _ => format!("-{}", smaller(size, more)),
    }
}

/// Digits plus `more`.
fn larger(digits: &str, more: u8) -> String {
    let mut sum = digits.as_bytes().to_vec();
    let mut carry = more;
    for digit in sum.iter_mut().rev() {
        let value = *digit - b'0' + carry % 10;
        (*digit, carry) = (b'0' + value % 10, carry / 10 + value / 10);
    }
    let mut front = String::new();
    if carry > 0 {
        front = carry.to_string();
    }
    front.extend(sum.into_iter().map(char::from));
    front
}

/// Digits, of a number larger than `less`, minus `less`.
fn smaller(digits: &str, less: u8) -> String {
    let mut rest = digits.as_bytes().to_vec();
    let mut borrow = less;
    for digit in rest.iter_mut().rev() {
        let (value, taken) = (*digit - b'0', borrow % 10);
        borrow /= 10;
        if value < taken {
            borrow += 1;
        }
        *digit = b'0' + (value + 10 - taken) % 10;
    }
    let rest: String = rest.into_iter().map(char::from).collect();
    rest.trim_start_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::{KeyType, Normalisation};
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet, HashSet};

    /// Which pairs of these values share a variant; no value has one twice.
    fn pairs(name: &str, values: &[String]) -> HashSet<(usize, usize)> {
        let kind = KeyType::named(name).unwrap();
        let mut with: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, value) in values.iter().enumerate() {
            let variants = kind.variants(value);
            assert_eq!(variants.iter().collect::<BTreeSet<_>>().len(), variants.len(), "{value}");
            assert!(variants.len() >= kind.variants_at_least());
            variants.into_iter().for_each(|variant| with.entry(variant).or_default().push(at));
        }
        let pairs =
            with.values().flat_map(|of| of.iter().flat_map(move |a| of.iter().map(move |b| (*a, *b))));
        pairs.collect()
    }

    fn common_subsequence(one: &[char], other: &[char]) -> usize {
        let mut row = vec![0; other.len() + 1];
        for a in one {
            let mut corner = 0;
            for (at, b) in other.iter().enumerate() {
                let above = row[at + 1];
                row[at + 1] = if a == b { corner + 1 } else { above.max(row[at]) };
                corner = above;
            }
        }
        row[other.len()]
    }

    /// What the page says of names, without variants.
    fn are_near(one: &str, other: &str) -> bool {
        let [one, other]: [Vec<char>; 2] = [one, other].map(|name| name.chars().collect());
        let longer = one.len().max(other.len());
        one == other || longer >= SHORTEST_VARIED_NAME && common_subsequence(&one, &other) + 1 >= longer
    }

    /// Names by characters in place of subsequences: one edit, an exchange of neighbours, or a character that moves and
    /// may change on its way.
    fn by_edits(one: &str, other: &str) -> bool {
        let [one, other]: [Vec<char>; 2] = [one, other].map(|name| name.chars().collect());
        if one == other {
            return true;
        }
        let without = |name: &[char], at: usize| [&name[..at], &name[at + 1..]].concat();
        let (longer, shorter) = if one.len() < other.len() { (&other, &one) } else { (&one, &other) };
        if longer.len() < SHORTEST_VARIED_NAME {
            return false;
        }
        (0..longer.len()).any(|at| {
            let rest = without(longer, at);
            rest == *shorter
                || longer.len() == shorter.len() && (0..shorter.len()).any(|to| without(shorter, to) == rest)
        })
    }

    /// All names of up to six letters out of three: exactly the pairs of the definition.
    #[test]
    fn names_match_as_defined_over_a_small_alphabet() {
        let mut names = vec![String::new()];
        let mut first = 0;
        for _ in 0..6 {
            let end = names.len();
            for at in first..end {
                ['a', 'b', 'é'].into_iter().for_each(|c| names.push(format!("{}{c}", names[at])));
            }
            first = end;
        }
        names.remove(0);
        assert_eq!(names.len(), 3 + 9 + 27 + 81 + 243 + 729);
        let found = pairs("name~1", &names);
        let mut near = 0;
        for (at, one) in names.iter().enumerate() {
            for (to, other) in names.iter().enumerate() {
                let expected = are_near(one, other);
                assert_eq!(found.contains(&(at, to)), expected, "{one} {other}");
                near += usize::from(expected);
                if one.len() + other.len() < 12 {
                    assert_eq!(by_edits(one, other), expected, "{one} {other}");
                }
            }
        }
        assert!(near > names.len() && near < names.len() * names.len() / 4, "{near}");
    }

    /// The pairs that the page has as examples.
    #[test]
    fn names_match_by_an_edit_or_an_exchange_and_by_a_character_that_moves() {
        let alike = |one: &str, other: &str| {
            let found = pairs("name~1", &[one.to_owned(), other.to_owned()]).contains(&(0, 1));
            assert_eq!(found, are_near(one, other), "{one} {other}");
            found
        };
        for (one, other) in [
            ("meier", "meyer"),
            ("meier", "meer"),
            ("meier", "meire"),
            ("anna maria", "annamaria"),
            ("abcd", "bcda"),
            ("abcd", "bcdx"),
            ("ann", "an"),
            ("ann", "ian"),
        ] {
            assert!(alike(one, other), "{one} {other}");
        }
        for (one, other) in [("li", "le"), ("a", "b"), ("li", "l"), ("meier", "mayer"), ("meier", "maier s")]
        {
            assert!(!alike(one, other), "{one} {other}");
        }
        // Near is not passed on: the first and the last of three need not match.
        assert!(alike("meier", "meyer") && alike("meyer", "mayer") && !alike("meier", "mayer"));
    }

    fn days() -> Vec<String> {
        let of = |year: u32| {
            let days = [31, if year == 1980 { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            let month = move |(at, days): (usize, u32)| {
                (1..=days).map(move |day| format!("{year:04}-{:02}-{day:02}", at + 1))
            };
            days.into_iter().enumerate().flat_map(month)
        };
        [1979, 1980, 1989, 2080, 1].into_iter().flat_map(of).collect()
    }

    /// All days of five years, some of which differ in one digit, with each other.
    #[test]
    fn dates_match_as_defined() {
        let days = days();
        let found = pairs("date~1", &days);
        let (mut digits, mut exchanged) = (0, 0);
        for (at, one) in days.iter().enumerate() {
            for (to, other) in days.iter().enumerate() {
                let different = one.bytes().zip(other.bytes()).filter(|(a, b)| a != b).count();
                let is_exchanged =
                    one[..4] == other[..4] && one[5..7] == other[8..] && one[8..] == other[5..7];
                let expected = different <= 1 || is_exchanged;
                assert_eq!(found.contains(&(at, to)), expected, "{one} {other}");
                digits += usize::from(different == 1);
                exchanged += usize::from(is_exchanged && different > 1);
            }
        }
        assert!(digits > 1000 && exchanged == 5 * 132, "{digits} {exchanged}");
    }

    #[test]
    fn numbers_match_as_defined() {
        let values: Vec<i64> = (-230..230).collect();
        let texts: Vec<String> = values.iter().map(i64::to_string).collect();
        for by in [1, 2, 9, 10, 99] {
            let found = pairs(&format!("int~{by}"), &texts);
            for (at, one) in values.iter().enumerate() {
                for (to, other) in values.iter().enumerate() {
                    assert_eq!(found.contains(&(at, to)), one.abs_diff(*other) <= by, "{one} {other} {by}");
                }
            }
        }
    }

    #[test]
    fn names_of_types_are_read_or_refused() {
        for name in ["name~1", "date~1", "date:DMY~1", "int~1", "int~99"] {
            let kind = KeyType::named(name).unwrap();
            assert_eq!(kind.to_string(), name);
            assert!(kind.is_near());
            assert_eq!(KeyType::named(&kind.agreed()), KeyType::named(&name.replace(":DMY", "")));
        }
        for name in [
            "name~2",
            "name~",
            "date~0",
            "int~0",
            "int~100",
            "int~+1",
            "int~01",
            "int~",
            "text~1",
            "uuid~1",
            "name~1:sha256",
            "sha256-hex:name~1",
            "~1",
            "int~1~1",
            "email~1",
            "date~1:DMY",
        ] {
            assert_eq!(KeyType::named(name), None, "{name}");
        }
        let read = |name: &str, text: &str| {
            let mut out = String::new();
            let kind = KeyType::named(name).unwrap();
            kind.normalise(Normalisation::default(), text, &mut out).map(|()| out)
        };
        assert_eq!(read("name~1", &"x".repeat(64)).unwrap().len(), 64);
        assert_eq!(read("name~1", &"x".repeat(65)), Err(Reason::Length));
        assert_eq!(read("name", &"x".repeat(65)).unwrap().len(), 65);
        assert_eq!(read("name~1", " - "), Err(Reason::Empty));
        assert_eq!(read("date:DMY~1", "3.12.1975").unwrap(), "1975-12-03");
    }

    proptest! {
        /// Numbers beyond every machine integer too.
        #[test]
        fn sums_are_those_of_integers(number in prop_oneof![any::<i128>(), -300i128..300, Just(i128::from(u64::MAX)), Just(-i128::from(u64::MAX))], more in 0u8..100) {
            let number = number.clamp(i128::MIN + 100, i128::MAX - 100);
            prop_assert_eq!(plus(&number.to_string(), more), (number + i128::from(more)).to_string());
        }

        #[test]
        fn longer_names_match_as_defined(one in "[abc ]{1,12}", at in 0usize..12, what in 0usize..5, c in "[abcä]") {
            let mut other: Vec<char> = one.chars().collect();
            let at = at % other.len();
            let c = c.chars().next().unwrap();
            match what {
                0 => { other.remove(at); }
                1 => other.insert(at, c),
                2 => other[at] = c,
                3 => { let next = (at + 1) % other.len(); other.swap(at, next); }
                _ => { let moved = other.remove(at); other.push(moved); other[0] = c; }
            }
            let other: String = other.into_iter().collect();
            let found = pairs("name~1", &[one.clone(), other.clone()]);
            prop_assert_eq!(found.contains(&(0, 1)), are_near(&one, &other));
        }
    }
}
