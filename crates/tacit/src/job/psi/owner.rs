//! What a number tells the owner of its column, who chose what it adds up.

use super::{Each, Job, Reveal, Statistic, reveal};
use crate::job::About;
use crate::{Error, Result};
use tacit_2pc::circuit::Uint;
use tacit_crypto::text::counted;
use tacit_data::values::Form;
use tacit_psi::Bounds;
use tacit_psi::paxos::Learns;
use tacit_psi::sorted;

/// Bits that a caller's function may open where a side's own numbers go in, and those of one key's number.
pub const MOST_CARRIED: u64 = 64;
/// Bits by which a sum can be longer than a key's number: a table has at most so many rows.
const ROWS: u64 = sorted::ROWS_LOG2 as u64;

/// Reads bounds as a user writes them: `LEAST..MOST`, both included, in the unit of the column whose numbers are
/// written in this `form` ([`Reveal::form`]).
pub fn bounds(text: &str, form: Form) -> std::result::Result<Bounds, String> {
    let parts = parts(text)?;
    let [least, most] = parts.map(|text| {
        form.number(text)
            .map_err(|what| format!("`{}`: {}", tacit_net::shown(text), reveal::unfit(text, &what)))
    });
    let (least, most) = (least?, most?);
    Bounds::new(least, most).map_err(|_| format!("{} is above {}; {WRITE}", parts[0], parts[1]))
}

const WRITE: &str = "write LEAST..MOST, such as 0..500000";

/// The two numbers of bounds, whatever column they are for.
fn parts(text: &str) -> std::result::Result<[&str; 2], String> {
    let parts = text.split_once("..").map(|(least, most)| [least.trim(), most.trim()]);
    parts.filter(|parts| parts.iter().all(|part| !part.is_empty())).ok_or_else(|| WRITE.to_owned())
}

/// Refuses text that is of no bounds, whatever column they are for.
pub fn is_bounds(text: &str) -> std::result::Result<String, String> {
    parts(text).map(|_| text.to_owned())
}

/// As [`bounds`] reads them.
pub fn written(bounds: Bounds, form: Form) -> String {
    format!("{}..{}", form.written(bounds.least()), form.written(bounds.most()))
}

impl Job {
    /// Whether a side that gives the numbers gets what is made of them, as far as this side can see, which `gives`
    /// some or not.
    fn owner_gets(&self, gives: bool) -> bool {
        let (we_get, peer_gets) = (self.learns != Learns::Peer, self.learns != Learns::Me);
        match &self.reveal {
            // The peer's job says of the peer, and without both sides' word the circuit takes its numbers for zero.
            Reveal::Shares => gives && we_get,
            reveal => reveal.column().is_some() && if gives { we_get } else { peer_gets },
        }
    }

    /// Whether the peer gets a number made of its own column.
    pub(super) fn peer_owns_result(&self) -> bool {
        self.give.is_empty() && self.learns != Learns::Me && self.reveal.column().is_some()
    }

    /// Bits that the number can tell about which keys are common, with at most `keys` of them: so many memberships
    /// for whoever chose its column, or knows it. Where few keys are common, a bit can tell of many that are not.
    fn carries(&self, keys: u64) -> u64 {
        self.bits(keys).min(keys)
    }

    /// Of how many of the `tested` keys the result can tell, with at most `keys` common keys.
    pub(super) fn tells(&self, keys: u64, tested: u64) -> u64 {
        // proof: sorted 3.5
        if self.reveal.is_aggregate() { self.bits(keys).min(tested) } else { tested }
    }

    /// Bits that the number has, with at most `keys` common keys; a count's are taken for 64.
    fn bits(&self, keys: u64) -> u64 {
        let count = u64::from(u64::BITS - keys.leading_zeros());
        if let Some(each) = &self.each {
            let total = match self.bounds {
                Some(bounds) => u64::from(bounds.sum_bits(keys)),
                None if each.sums() => MOST_CARRIED + count,
                None => count,
            };
            return total + each.flags() as u64;
        }
        match (&self.reveal, self.bounds) {
            // A number, or that no key has one.
            (Reveal::Of(Statistic::Over(_), _), _) => count + 1,
            // One number, or that there is none.
            (Reveal::Of(..), Some(bounds)) => u64::from(bounds.sum_bits(1)) + 1,
            (Reveal::Mean(_), Some(bounds)) => u64::from(bounds.sum_bits(keys)) + count,
            (_, Some(bounds)) => u64::from(bounds.sum_bits(keys)),
            (Reveal::Of(..), None) => MOST_CARRIED + 1,
            (Reveal::Mean(_), None) => MOST_CARRIED + ROWS + ROWS + 1,
            (Reveal::Sum(_), None) => MOST_CARRIED + ROWS,
            _ => MOST_CARRIED,
        }
    }

    /// An error where a number goes to the owner of its column without both sides' word, or without bounds.
    pub(super) fn check_owner(&self) -> Result<()> {
        self.check_owner_of(!self.give.is_empty())
    }

    /// An error where the peer of this side, which `listens` or not, gives a function's numbers and gets the result, and
    /// this side does not allow it: the listening side garbles.
    pub(crate) fn check_peer(&self, listens: bool) -> Result<()> {
        let Some(each) = &self.each else { return Ok(()) };
        let role = if listens { tacit_2pc::Owner::Evaluator } else { tacit_2pc::Owner::Garbler };
        let learns = match self.learns {
            Learns::Me => Learns::Peer,
            Learns::Peer => Learns::Me,
            Learns::Both => Learns::Both,
        };
        Job { learns, ..self.clone() }.check_owner_of(!each.function().fields(role).is_empty())
    }

    /// As [`check_owner`](Self::check_owner), where this side `gives` numbers or not.
    pub(super) fn check_owner_of(&self, gives: bool) -> Result<()> {
        let refuse = |name, what: String| Err(Error::Parameter { name, what });
        let kind = self.reveal.name();
        let sums = self.each.as_ref().is_some_and(Each::sums);
        if self.bounds.is_some() && self.reveal.column().is_none() && !sums {
            return refuse("bounds", format!("{kind} takes no numbers of a column; leave it out"));
        }
        if let (Reveal::Of(Statistic::Over(limit), _), Some(bounds)) = (&self.reveal, self.bounds)
            && !(bounds.least()..bounds.most()).contains(limit)
        {
            let form = self.reveal.form();
            let how = if *limit < bounds.least() { "every number is" } else { "no number is" };
            let what = format!(
                "{how} above {}, as each counts as within the bounds {}; choose a limit inside them",
                form.written(*limit),
                written(bounds, form)
            );
            return refuse("reveal", what);
        }
        let (to_owner, numbers) = (self.owner_gets(gives), self.reveal.column().is_some());
        if self.result_to_owner && !numbers && self.reveal != Reveal::Shares {
            return refuse("result-to-owner", format!("{kind} takes no column; leave it out"));
        }
        if to_owner && !self.result_to_owner {
            return refuse(
                "result-to-owner",
                format!(
                    "is needed on both sides: a side that chooses the numbers and gets the result can read {MOST_CARRIED} memberships and more from one run; or give the result to the other side"
                ),
            );
        }
        let needs_bounds = match &self.reveal {
            // Whose numbers go in, the peer says.
            Reveal::Shares => self.result_to_owner && sums,
            Reveal::Of(Statistic::Over(_), _) => false,
            _ => to_owner,
        };
        if self.bounds.is_none() && needs_bounds {
            let what = "is needed on both sides if the owner of a column gets the result: LEAST..MOST, \
                        the least and the most that one key adds";
            return refuse("bounds", what.to_owned());
        }
        Ok(())
    }

    /// What a caller's function opens. An error where a side's own numbers go in and more bits come out than a
    /// number has.
    pub(super) fn opened(&self, outputs: Vec<Uint>) -> Result<Vec<Uint>> {
        let bits: usize = outputs.iter().map(|output| output.bits().len()).sum();
        if self.result_to_owner && bits as u64 > MOST_CARRIED {
            let what = format!(
                "reveals {bits}, more than the {MOST_CARRIED} allowed if a side's own numbers are used",
                bits = counted(bits, "bit")
            );
            return Err(Error::Parameter { name: "result-to-owner", what });
        }
        Ok(outputs)
    }

    /// What is said of the numbers of a column in the words for what a side learns.
    pub(super) fn clipped_words(&self) -> String {
        self.bounds.map_or_else(String::new, |bounds| {
            format!(", each key's number taken as within {}", written(bounds, self.reveal.form()))
        })
    }

    /// What a peer that owns the column can learn by choosing its numbers.
    pub(super) fn owner_words(&self, keys: u64, about: About<'_>) -> String {
        if self.carries(keys) == 0 {
            return String::new();
        }
        let to_giver = self.reveal == Reveal::Shares && self.result_to_owner && self.learns != Learns::Me;
        match self.peer_owns_result() {
            false if to_giver => format!(
                ". By the columns that it gives it can make the result tell it up to {} about which keys {}",
                counted(self.carries(keys), "bit"),
                about.does("have", "has")
            ),
            true => format!(
                ". The column is its own: by the numbers that it chooses, the result can tell it up to {} about \
                 which keys {}",
                counted(self.carries(keys), "bit"),
                about.does("have", "has")
            ),
            false => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Security;
    use tacit_2pc::circuit::{Aggregate, named};

    fn each(name: &str, total: Aggregate) -> Each {
        Each::new(named::find(name).unwrap(), None, total, false).unwrap()
    }

    fn job(reveal: Reveal, bounds: Option<Bounds>) -> Job {
        Job { reveal, bounds, ..Job::new(Learns::Both, Security::SemiHonest) }
    }

    /// What a number can carry: one membership a bit, never more than there are keys; bounds that leave out 0 as
    /// well, since a key that is left out adds 0.
    #[test]
    fn a_number_carries_its_bits_whatever_its_bounds() {
        let bounds = |least, most| Some(Bounds::new(least, most).unwrap());
        let sum = || Reveal::Sum("amount".into());
        let mean = || Reveal::Mean("amount".into());
        for (least, most, one, hundred) in [
            (0, 1, 1, 7),
            (1, 1, 1, 7),
            (5, 6, 3, 10),
            (-6, -5, 3, 10),
            (-5, 6, 4, 11),
            (7, 7, 3, 10),
            (0, 0, 0, 0),
        ] {
            let job = job(sum(), bounds(least, most));
            // With one key: it is there, or it is not.
            assert_eq!(job.carries(1), one.min(1), "{least}..{most}");
            assert_eq!(job.carries(100), hundred, "{least}..{most}");
            assert_eq!(u64::from(job.bounds.unwrap().sum_bits(1)), one, "{least}..{most}");
        }
        assert_eq!(job(sum(), None).carries(1000), 64 + 20);
        assert_eq!(job(mean(), None).carries(1000), 64 + 20 + 21);
        assert_eq!(job(sum(), None).carries(10), 10);
        assert_eq!(job(sum(), bounds(i64::MIN, i64::MAX)).carries(1000), 64 + 10);
        assert_eq!(job(mean(), bounds(5, 6)).carries(100), 10 + 7);
        assert_eq!(job(Reveal::Of(Statistic::Over(3), "amount".into()), None).carries(100), 8);
        assert_eq!(job(Reveal::Of(Statistic::Max, "amount".into()), bounds(5, 6)).carries(100), 4);
        let of = |name, total, bounds| Job { each: Some(each(name, total)), ..job(Reveal::Shares, bounds) };
        assert_eq!(of("lt32", Aggregate::Count, None).carries(100), 7);
        assert_eq!(of("checked-add8", Aggregate::Count, None).carries(100), 7 + 1);
        assert_eq!(of("add8", Aggregate::Sum, None).carries(100), 64 + 7);
        assert_eq!(of("checked-add8", Aggregate::Sum, bounds(5, 6)).carries(100), 10 + 1);
    }

    /// A number of 84 bits out of ten announced keys tells of as many as entries with equal hashes can test: thirty.
    #[test]
    fn a_number_is_charged_with_the_keys_that_can_be_tested() {
        let job = |reveal: &str, security| Job {
            reveal: reveal.parse().unwrap(),
            give: vec!["amount".into()],
            ..Job::new(Learns::Peer, security)
        };
        for (reveal, charged) in [
            ("sum:amount", [(3, 9), (10, 30), (27, 81), (40, 84), (1_000, 84)]),
            ("mean:amount", [(3, 9), (10, 30), (27, 81), (40, 105), (1_000, 105)]),
            ("count", [(3, 9), (10, 30), (27, 64), (40, 64), (1_000, 64)]),
        ] {
            for (announced, most) in charged {
                let of = |own| job(reveal, Security::Malicious).reveals_at_most(own, announced).unwrap();
                assert_eq!((of(100_000), of(most / 2)), (most, most / 2), "{reveal}, {announced}");
                let tested = sorted::tested_at_most(announced, 80);
                assert!(of(100_000) <= tested, "{reveal}, {announced}");
            }
            assert_eq!(job(reveal, Security::SemiHonest).reveals_at_most(500, 10).unwrap(), 500);
        }
    }

    /// The owner rule of functions: both sides' word where own numbers come back, and bounds where they are added
    /// up; `give` that says nothing changes nothing.
    #[test]
    fn a_functions_numbers_come_back_to_their_owner_by_both_sides_word_alone() {
        let named = |result: Result<()>| match result {
            Err(Error::Parameter { name, .. }) => Some(name),
            _ => None,
        };
        let bounds = Some(Bounds::new(0, 9).unwrap());
        let base = |total, bounds, result_to_owner| Job {
            each: Some(each("add8", total)),
            result_to_owner,
            ..job(Reveal::Shares, bounds)
        };
        let sum = |bounds, word| base(Aggregate::Sum, bounds, word);
        assert_eq!(named(sum(None, false).check_owner_of(true)), Some("result-to-owner"));
        assert_eq!(named(sum(None, true).check_owner_of(true)), Some("bounds"));
        // The peer may be the owner: its job says so, and ours asks for bounds all the same.
        assert_eq!(named(sum(None, true).check_owner()), Some("bounds"));
        assert_eq!(named(sum(bounds, true).check_owner_of(true)), None);
        assert_eq!(named(sum(None, false).check_owner()), None);
        let count = |bounds, word| base(Aggregate::Count, bounds, word);
        assert_eq!(named(count(bounds, true).check_owner_of(true)), Some("bounds"));
        assert_eq!(named(count(None, true).check_owner_of(true)), None);
        let peer_gets = Job { learns: Learns::Peer, ..sum(None, false) };
        assert_eq!(named(peer_gets.check_owner_of(true)), None);
    }
}
