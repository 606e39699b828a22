//! What a number tells the owner of its column, who chose what it adds up.

use super::{Job, Reveal, Statistic};
use crate::job::About;
use crate::{Error, Result};
use tacit_psi::Bounds;
use tacit_psi::paxos::Learns;

/// Keys that a number without bounds is charged with, which goes to the side that did not choose what it is of: as
/// many as a number of a key has bits.
pub const MOST_CARRIED: u64 = 64;

/// Reads bounds as a user writes them: `LEAST..MOST`, both included.
pub fn bounds(text: &str) -> std::result::Result<Bounds, String> {
    let form = "write LEAST..MOST, whole numbers of 64 bits, such as 0..500000";
    let (least, most) = text.split_once("..").ok_or(form)?;
    let [least, most] = [least, most].map(|number| number.trim().parse::<i64>());
    let (Ok(least), Ok(most)) = (least, most) else { return Err(form.to_owned()) };
    Bounds::new(least, most).map_err(|_| format!("{least} is above {most}; {form}"))
}

/// As [`bounds`] reads them.
pub fn written(bounds: Bounds) -> String {
    format!("{}..{}", bounds.least(), bounds.most())
}

impl Job {
    /// Whether a side that gives the numbers gets what is made of them, as far as this side can see.
    fn owner_gets(&self) -> bool {
        let gives = !self.give.is_empty();
        let (we_get, peer_gets) = (self.learns != Learns::Peer, self.learns != Learns::Me);
        match &self.reveal {
            // The peer's job says of the peer.
            Reveal::Shares => gives && we_get,
            reveal => reveal.column().is_some() && if gives { we_get } else { peer_gets },
        }
    }

    /// Whether the peer gets a number made of its own column.
    pub(super) fn peer_owns_result(&self) -> bool {
        self.give.is_empty() && self.learns != Learns::Me && self.reveal.column().is_some()
    }

    /// Memberships that the number can tell whoever chose its column, with `keys` keys at most in common.
    pub(super) fn carries(&self, keys: u64) -> u64 {
        let count = u64::from(u64::BITS - keys.leading_zeros());
        let bits = match (&self.reveal, self.bounds) {
            (Reveal::Of(Statistic::Over(_), _), _) => count,
            // One number, or that there is none.
            (Reveal::Of(..), Some(bounds)) => u64::from(bounds.sum_bits(1)) + 1,
            (Reveal::Mean(_), Some(bounds)) => u64::from(bounds.sum_bits(keys)) + count,
            (_, Some(bounds)) => u64::from(bounds.sum_bits(keys)),
            _ => MOST_CARRIED,
        };
        bits.min(keys)
    }

    /// An error where a number goes to the owner of its column without both sides' word, or without bounds.
    pub(super) fn check_owner(&self) -> Result<()> {
        let refuse = |name, what: String| Err(Error::Parameter { name, what });
        let kind = self.reveal.name();
        if self.bounds.is_some() && self.reveal.column().is_none() {
            return refuse("bounds", format!("{kind} takes no numbers of a column; leave it out"));
        }
        if !self.owner_gets() {
            let numbers = self.reveal.column().is_some() || self.reveal == Reveal::Shares;
            return match self.result_to_owner && !numbers {
                true => refuse("result-to-owner", format!("{kind} takes no column; leave it out")),
                false => Ok(()),
            };
        }
        if !self.result_to_owner {
            return refuse(
                "result-to-owner",
                format!(
                    "is needed on both sides: whoever chooses the numbers and gets what is made of them can read {MOST_CARRIED} \
                     memberships and more from one {kind}; or give the result to the other side"
                ),
            );
        }
        let carries_little = matches!(self.reveal, Reveal::Shares | Reveal::Of(Statistic::Over(_), _));
        if self.bounds.is_none() && !carries_little {
            let what = "is needed on both sides where the owner of a column gets what is made of it: LEAST..MOST, \
                        the least and the most that one key adds";
            return refuse("bounds", what.to_owned());
        }
        Ok(())
    }

    /// What is said of the numbers of a column in the words for what a side learns.
    pub(super) fn clipped_words(&self) -> String {
        self.bounds.map_or_else(String::new, |bounds| {
            format!(", each key's number taken as within {}", written(bounds))
        })
    }

    /// What a peer that owns the column can learn by choosing its numbers.
    pub(super) fn owner_words(&self, keys: u64, about: About<'_>) -> String {
        let to_giver = self.reveal == Reveal::Shares && self.result_to_owner && self.learns != Learns::Me;
        match self.peer_owns_result() {
            false if to_giver => format!(
                ". By the columns that it gives it can make the result tell it which of the keys {} are among them",
                about.does("have", "has")
            ),
            true => format!(
                ". The column is its own: by the numbers that it chooses, the result can tell it which of up to {} \
                 keys {}",
                self.carries(keys),
                about.does("have", "has")
            ),
            false => String::new(),
        }
    }
}
