//! What of an intersection is revealed, and what a side gives for it.

use super::super::About;
use super::each::Total;
use super::elements::Elements;
use super::statistic::{Found, Statistic};
use crate::catalogue::VOLE;
use crate::{Error, Result};
use std::borrow::Cow;
use tacit_crypto::near::one_of;
use tacit_crypto::text::counted;
use tacit_data::keys;
use tacit_data::values::{self, Form};
use tacit_ot::Security;
use tacit_psi::paxos::{Learns, Outcome};
use tacit_psi::vole_psi::circuit::{self, Of};
pub use tacit_psi::vole_psi::circuit::{Aggregate, Column};
use tacit_psi::vole_psi::payload::Collected;
pub use tacit_psi::vole_psi::payload::Gained;
pub(super) use tacit_psi::vole_psi::payload::Received;
use tacit_psi::vole_psi::payload::Side;
pub use tacit_psi::vole_psi::payload::{Duplicates, Match, Table};

/// What of the intersection is revealed to those who get a result.
///
/// A column that is named is the peer's unless [`Job::give`](super::Job::give) names it too.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub enum Reveal {
    /// Which of its own keys the other side has too.
    #[default]
    Rows,
    /// The same, with these columns of the other side's rows; the side that gives names none here.
    Payload(Vec<String>),
    /// How many keys are common.
    Count,
    /// The sum of a column of one side over its rows with a common key.
    Sum(String),
    /// The sum of a column, and how many rows it adds up.
    Mean(String),
    /// A statistic of a column's numbers of common keys, computed on shares of the intersection.
    Of(Statistic, String),
    /// Nothing by itself: shares of the intersection go into a function of the caller's.
    Shares,
}

impl Reveal {
    /// The names of the kinds, as a user writes them.
    pub const NAMES: [&'static str; 8] = ["rows", "payload", "count", "sum", "mean", "max", "min", "over"];

    /// The short name of the kind.
    pub const fn name(&self) -> &'static str {
        match self {
            Reveal::Rows => Self::NAMES[0],
            Reveal::Payload(_) => Self::NAMES[1],
            Reveal::Count => Self::NAMES[2],
            Reveal::Sum(_) => Self::NAMES[3],
            Reveal::Mean(_) => Self::NAMES[4],
            Reveal::Of(Statistic::Max, _) => Self::NAMES[5],
            Reveal::Of(Statistic::Min, _) => Self::NAMES[6],
            Reveal::Of(Statistic::Over(_), _) => Self::NAMES[7],
            Reveal::Shares => "shares",
        }
    }

    /// What both sides must say alike: the kind, and the column that is added up.
    pub fn terms(&self) -> String {
        match self {
            Reveal::Rows | Reveal::Payload(_) | Reveal::Count | Reveal::Shares => self.name().to_owned(),
            Reveal::Of(Statistic::Over(limit), column) => {
                format!("{}:{}:{column}", self.name(), self.form().written(*limit))
            }
            Reveal::Sum(column) | Reveal::Mean(column) | Reveal::Of(_, column) => {
                format!("{}:{column}", self.name())
            }
        }
    }

    /// Whether the result is a number over all common keys, and tells of none which it is.
    pub const fn is_aggregate(&self) -> bool {
        matches!(self, Reveal::Count | Reveal::Sum(_) | Reveal::Mean(_) | Reveal::Of(..) | Reveal::Shares)
    }

    /// The column that numbers are taken from.
    pub fn column(&self) -> Option<&str> {
        match self {
            Reveal::Sum(column) | Reveal::Mean(column) | Reveal::Of(_, column) => Some(column),
            Reveal::Rows | Reveal::Payload(_) | Reveal::Count | Reveal::Shares => None,
        }
    }

    /// How the numbers of the column are written: as decimals if its name ends in `:decimalN`, else as whole numbers.
    pub fn form(&self) -> Form {
        self.column().map_or(Form::Plain, form_of)
    }

    /// What a side that gets this result learns of the other's keys.
    pub(super) fn words(&self, min_matches: u64, elements: Elements, about: About<'_>) -> String {
        let withheld = withheld(min_matches);
        let which = elements.which();
        match self {
            Reveal::Rows => which.to_owned(),
            Reveal::Payload(columns) => {
                let asked = match columns.is_empty() {
                    true => String::new(),
                    false => format!(", which columns of its rows {}", about.does("asked for", "asked for")),
                };
                format!(
                    "{which}{asked}, with the columns {} that it asks for and \
                     that {}{}, and of all {} how wide those columns are and the most rows a key",
                    about.of(),
                    about.does("give", "gives"),
                    elements.each(),
                    about.own("rows"),
                )
            }
            Reveal::Shares => {
                "what the function that both sides agreed on makes of the common keys".to_owned()
            }
            Reveal::Count => format!("how many of its own keys are among them{withheld}"),
            Reveal::Sum(column) => {
                format!("the sum of {} over the rows of common keys{withheld}", tacit_net::shown(column))
            }
            Reveal::Mean(column) => format!(
                "the sum of {} over the rows of common keys, and how many rows that is{withheld}",
                tacit_net::shown(column)
            ),
            Reveal::Of(statistic, column) => {
                let column = tacit_net::shown(column);
                let what = match statistic {
                    Statistic::Max => format!("the largest {column} of a common key"),
                    Statistic::Min => format!("the smallest {column} of a common key"),
                    Statistic::Over(limit) => {
                        let limit = self.form().written(*limit);
                        format!("how many common keys have {column} above {limit}")
                    }
                };
                let with_one = if withheld.is_empty() { "" } else { " with one" };
                format!("{what}, or that no matching key has a number{withheld}{with_one}")
            }
        }
    }

    /// How a result of this kind, withheld of fewer than `min_matches` keys, can be abused, whatever the protocol does;
    /// nothing for those that tell single rows.
    pub const fn warning(&self, min_matches: u64) -> Option<&'static str> {
        match (self.is_aggregate(), min_matches) {
            (true, 0) => Some(
                "a number over all common keys does not protect single keys: a side can run with few keys, or with one \
                 that it wants to know about, and a second run with one key more tells that key's part by the \
                 difference. Withhold numbers over few keys, and limit whom you run with, and how often",
            ),
            (true, _) => Some(
                "a number over all common keys protects against neither of two ways to learn more: a side that pads its \
                 set with keys that it knows the other to have, so that the least number of matches is reached with one \
                 unknown key; and a second run with one key more, whose difference is that key's part. Limit whom you \
                 run with, and how often",
            ),
            (false, _) => None,
        }
    }

    /// An error where the kind does not go with the other parameters.
    pub(super) fn check(
        &self,
        learns: Learns,
        security: Security,
        give: &[String],
        min_matches: u64,
    ) -> Result<()> {
        let refuse = |name, what: String| Err(Error::Parameter { name, what });
        let kind = self.name();
        if matches!(self, Reveal::Of(..) | Reveal::Shares) && security == Security::Malicious {
            return refuse(
                "security",
                format!(
                    "{kind} is secure only against a peer that follows the protocol; set semi-honest security on both sides, or use count, sum or mean"
                ),
            );
        }
        if min_matches > 0 && !self.is_aggregate() {
            let what = format!("does not apply to {kind}, which shows the matches first; leave it out");
            return refuse("min-matches", what);
        }
        match self {
            Reveal::Rows | Reveal::Count if !give.is_empty() => {
                refuse("give", format!("{kind} shows no column; leave it out"))
            }
            Reveal::Sum(column) | Reveal::Mean(column) | Reveal::Of(_, column) => match give {
                _ if column.is_empty() => refuse("reveal", format!("name the column of numbers: {kind}:COL")),
                [] => Ok(()),
                [own] if own == column => Ok(()),
                _ => refuse("give", format!("{kind} is of {column}, so name this one column or none")),
            },
            Reveal::Payload(asked) => match (learns, asked.is_empty(), give.is_empty()) {
                (Learns::Me, false, true) | (Learns::Peer, true, false) | (Learns::Both, false, false) => {
                    Ok(())
                }
                (Learns::Both, true, _) => refuse(
                    "reveal",
                    "both sides get columns, so each lists those that it asks for: payload:COL,COL".into(),
                ),
                (Learns::Both, ..) => {
                    refuse("give", "both sides get columns, so each lists those that the peer may have".into())
                }
                (Learns::Me, true, _) => refuse(
                    "reveal",
                    "list the columns that you ask the peer for: payload:COL,COL".into(),
                ),
                (Learns::Me, ..) => {
                    refuse("give", "the side that gets the result asks for columns and gives none; leave it out".into())
                }
                (Learns::Peer, _, true) => {
                    refuse("give", "list the columns that the peer may have".into())
                }
                (Learns::Peer, ..) => {
                    refuse("reveal", "the side that gives columns writes `payload` without columns here, and lists them in `give`".into())
                }
            },
            _ => Ok(()),
        }
    }
}

/// How the numbers of a column of this name are written.
fn form_of(column: &str) -> Form {
    match values::Column::parse(column).form {
        form @ Form::Decimal(_) => form,
        _ => Form::Plain,
    }
}

/// What is said of a least number of matches.
pub(super) fn withheld(min_matches: u64) -> String {
    match min_matches {
        0 => String::new(),
        least => format!(", or that there are fewer than {least}", least = counted(least, "key")),
    }
}

/// Reads a kind as a user writes it: `rows`, `payload:COL,COL`, `count`, `sum:COL`, `mean:COL`, `max:COL`,
/// `min:COL` or `over:N:COL`, with N as the column's numbers are written: `over:500.50:amount:decimal2`. Who gives a
/// payload names no column here.
impl std::str::FromStr for Reveal {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (kind, columns) = text.split_once(':').unwrap_or((text, ""));
        let one = || keys::plain(columns);
        Ok(match kind {
            "payload" => {
                let names = if columns.is_empty() { Vec::new() } else { keys::listed(columns) };
                if names.iter().any(|name| name.trim().is_empty()) {
                    return Err(
                        "a column is missing beside a comma; write payload:a,b without a blank".to_owned()
                    );
                }
                Reveal::Payload(names.into_iter().map(keys::plain).collect())
            }
            "sum" => Reveal::Sum(one()),
            "mean" => Reveal::Mean(one()),
            "max" => Reveal::Of(Statistic::Max, one()),
            "min" => Reveal::Of(Statistic::Min, one()),
            "over" => {
                let (limit, column) = columns.split_once(':').ok_or("write over:N:COL")?;
                let limit = form_of(column)
                    .number(limit)
                    .map_err(|what| format!("over:N:COL: {}", unfit(limit, &what)))?;
                Reveal::Of(Statistic::Over(limit), column.to_owned())
            }
            "rows" | "count" if !columns.is_empty() => return Err(format!("{kind} takes no column")),
            "rows" => Reveal::Rows,
            "count" => Reveal::Count,
            kind => {
                return Err(format!(
                    "there is no kind `{}`; {}",
                    tacit_net::shown(kind),
                    one_of(kind, Reveal::NAMES)
                ));
            }
        })
    }
}

/// What is wrong with a number beside a column's, with what to do where it has a fraction and the column none.
pub(super) fn unfit(number: &str, what: &str) -> String {
    if number.contains(',') {
        return "write a point, also where the table has a decimal comma".to_owned();
    }
    match values::fraction(number).filter(|_| what.contains("whole number")) {
        Some(remedy) => format!("{what}; {remedy}"),
        None => what.to_owned(),
    }
}

/// What a side puts in beside its keys.
#[derive(Clone, Copy)]
pub enum Gift<'a> {
    /// Nothing.
    None,
    /// The numbers that are added up, of each key.
    Column(&'a Column),
    /// The number that a statistic has of each key, [`Statistic::absent`] where there is none.
    Numbers(&'a [i64]),
    /// Rows of which columns may be given, and what happens where several have one key.
    Table(&'a Table, Duplicates),
}

/// What an intersection gave.
pub enum Revealed {
    /// The matches, and why the protocol that gave them was picked, where it was not named.
    Rows(Outcome, Option<String>),
    /// The matches with the peer's cells, to the side that asked.
    Payload(Gained),
    /// The same, not opened yet: [`opened`](Revealed::opened) does it, once nothing more is said to the peer.
    Kept(Collected),
    /// A number, or that it is withheld; nothing to a side that gets no result.
    Aggregate(circuit::Outcome),
    /// A statistic, to a side that gets the result, and the peer's distinct keys.
    Statistic(Option<Found>, u64),
    /// The total of a function, to a side that gets the result, and the peer's distinct keys.
    Total(Option<Total>, u64),
}

impl Revealed {
    /// The result with what was kept sealed opened. How long that takes depends on how many keys match, so it
    /// comes after the last message to the peer, which would else see it.
    pub fn opened(self) -> Result<Self> {
        Ok(match self {
            Revealed::Kept(collected) => {
                let mut gained = collected.open()?;
                gained.received = gained.received.map(of_text);
                Revealed::Payload(gained)
            }
            other => other,
        })
    }

    /// Which of our `own` keys match, ascending; nothing where single keys are not revealed to us. Found out
    /// in a time that the number of matches does not change, which copying them would.
    pub fn matches(&mut self, own: usize) -> Option<Cow<'_, [u32]>> {
        match self {
            Revealed::Rows(outcome, _) => outcome.matches.as_deref().map(Cow::Borrowed),
            Revealed::Payload(gained) => {
                let received = gained.received.as_ref()?;
                Some(received.matches.iter().map(|found| found.element).collect())
            }
            Revealed::Kept(collected) => collected.matches(own).map(Cow::Owned),
            Revealed::Aggregate(_) | Revealed::Statistic(..) | Revealed::Total(..) => None,
        }
    }

    /// The peer's distinct keys, as announced.
    pub fn peer_keys(&self) -> u64 {
        match self {
            Revealed::Kept(collected) => collected.peer_elements,
            Revealed::Rows(outcome, _) => outcome.peer_elements,
            Revealed::Payload(gained) => gained.peer_elements,
            Revealed::Aggregate(outcome) => outcome.peer_elements,
            Revealed::Statistic(_, keys) | Revealed::Total(_, keys) => *keys,
        }
    }

    /// The result as an outcome: what was matched, and what a bound on a cheating peer goes by.
    pub fn outcome(&self, learns: Learns) -> Outcome {
        let peer_received = learns != Learns::Me;
        match self {
            Revealed::Rows(outcome, _) => outcome.clone(),
            Revealed::Payload(gained) => Outcome {
                matches: gained
                    .received
                    .as_ref()
                    .map(|received| received.matches.iter().map(|found| found.element).collect()),
                peer_elements: gained.peer_elements,
                peer_received,
                protocol: VOLE.name,
            },
            Revealed::Kept(_) | Revealed::Aggregate(_) | Revealed::Statistic(..) | Revealed::Total(..) => {
                let protocol = match self {
                    Revealed::Aggregate(outcome) => outcome.protocol,
                    _ => VOLE.name,
                };
                Outcome { matches: None, peer_elements: self.peer_keys(), peer_received, protocol }
            }
        }
    }
}

/// The matches whose cells are text. One with a cell that is not UTF-8, as no side has that keeps to the protocol,
/// is taken for one that did not open: to end the run for it would tell the peer that this very key matched.
pub(super) fn of_text(mut received: Received) -> Received {
    let all = received.matches.len();
    let is_text = |cell: &Vec<u8>| std::str::from_utf8(cell).is_ok();
    received.matches.retain(|found| found.rows.iter().flatten().flatten().all(is_text));
    received.unopened += (all - received.matches.len()) as u64;
    received
}

/// The circuit's part for `reveal`, with our numbers where the column is ours.
pub(super) fn part<'c>(reveal: &Reveal, gift: Gift<'c>) -> Result<circuit::Reveal<'c>> {
    let of = match gift {
        Gift::Column(column) => Of::Mine(column),
        _ => Of::Peers,
    };
    Ok(match reveal {
        Reveal::Count => circuit::Reveal::Count,
        Reveal::Sum(_) => circuit::Reveal::Sum(of),
        Reveal::Mean(_) => circuit::Reveal::Mean(of),
        Reveal::Rows | Reveal::Payload(_) | Reveal::Of(..) | Reveal::Shares => {
            return Err(Error::Other("this result has a run of its own".into()));
        }
    })
}

/// The payload's part: what we ask for, what we give, or both.
pub(super) fn side<'t>(asked: &'t [&'t str], gift: Gift<'t>) -> Side<'t> {
    match gift {
        Gift::Table(table, duplicates) if asked.is_empty() => Side::Gives(table, duplicates),
        Gift::Table(table, duplicates) => Side::Exchanges(asked, table, duplicates),
        _ => Side::Asks(asked),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_with_a_cell_that_is_no_text_counts_as_one_that_did_not_open() {
        let found = |element, cells: [Option<&[u8]>; 2]| Match {
            element,
            rows: vec![vec![Some(b"a".to_vec())], cells.map(|cell| cell.map(<[u8]>::to_vec)).to_vec()],
        };
        let matches = vec![
            found(0, [Some("Zoë".as_bytes()), None]),
            found(1, [None, Some(b"Zo\xeb")]),
            found(2, [None, None]),
            found(3, [Some(b"\xed\xa0\x80"), Some(b"x")]),
        ];
        let received = of_text(Received { matches, unopened: 1 });
        let left: Vec<u32> = received.matches.iter().map(|found| found.element).collect();
        assert_eq!((left, received.unopened), (vec![0, 2], 3));
    }
}
