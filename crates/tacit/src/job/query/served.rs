//! What a service needs of a question beside the run: its keys before its rows are looked at, which of them pass its own
//! filter, and what either side learns in words that name both.

use super::{Gathered, Job, Rows, listed};
use crate::job::learned;
use crate::job::psi::Own;
use crate::{Error, Result};
use std::path::Path;
use tacit_crypto::Block;
use tacit_crypto::text::counted;
use tacit_data::give::Purpose as Given;
use tacit_data::table::Source;
use tacit_ot::Security;
use tacit_psi::paxos::Learns;

impl Job {
    /// Reads the keys of `source`, our table at `path`, and nothing that depends on the question's values.
    ///
    /// Errors: a table that cannot be read, and more keys than a run takes.
    pub fn read_keys(&self, source: Source, path: &Path, progress: impl FnMut(u64)) -> Result<Own> {
        Own::read(source, path, &self.intersection(), progress)
    }

    /// What the rows of a table put in whose keys were read. Of several rows with one key that pass the side's own
    /// filter the first counts if `first` says so.
    ///
    /// Errors: cells that are not what the question takes them for, and otherwise several rows with one key.
    pub fn read_rows(&self, own: &Own, first: bool) -> Result<Rows> {
        self.rows_of(own, self.gather(own.keys().elements().len(), first))
    }

    /// As [`read_rows`](Self::read_rows), with which rows of each key count, for [`Rows::passing_keys`]: twelve bytes a key
    /// more. Several rows with one key are no error yet, and all of them count, until [`check_rows`](Self::check_rows).
    pub fn read_rows_and_which(&self, own: &Own, first: bool) -> Result<Rows> {
        let keys = own.keys().elements().len();
        let mut gathered = self.gather(keys, first);
        gathered.rows.which = vec![0; keys];
        gathered.seen = vec![0; keys];
        gathered.several = !first && self.question.epsilon.is_none();
        self.rows_of(own, gathered)
    }

    /// What [`read_rows`](Self::read_rows) would have said of rows that were
    /// [read with which of them count](Self::read_rows_and_which).
    ///
    /// Errors: several rows with one key, unless the first counts or the question has noise.
    pub fn check_rows(&self, own: &Own, rows: &Rows, first: bool) -> Result<()> {
        match !first && self.question.epsilon.is_none() && rows.left_out > 0 {
            true => Err(Error::Input(format!("{}: {}", own.name(), self.refuses_several()))),
            false => Ok(()),
        }
    }

    fn rows_of(&self, own: &Own, mut gathered: Gathered<'_>) -> Result<Rows> {
        let columns = &self.question.tables[self.side as usize].columns;
        own.given(columns, Given::Shown, |element, place, cells| {
            gathered.add(element, cells).map_err(|what| Error::Input(format!("{}: {what}", own.at(place))))
        })?;
        gathered.finish().map_err(|what| Error::Input(format!("{}: {what}", own.name())))
    }

    /// How many of our `own` keys a run can tell the peer of at most, even if it cheats: against a peer that deviates
    /// nothing is promised, so all of them; 0 where it gets no result.
    pub const fn reveals_at_most(&self, own: u64) -> u64 {
        match self.learns {
            Learns::Me => 0,
            Learns::Peer | Learns::Both => own,
        }
    }

    /// The epsilon of the question's noise, in millionths, if the peer gets the result; 0 without noise.
    pub fn epsilon_to_peer(&self) -> u64 {
        match self.learns {
            Learns::Me => 0,
            Learns::Peer | Learns::Both => self.question.epsilon.unwrap_or(0),
        }
    }

    /// Whether a side gets what is made of its own columns, for which both sides have to say so.
    pub fn goes_to_owner(&self) -> bool {
        self.owner_gets().is_some()
    }

    /// What the other side learns of the `keys` of this side, which is called `name`: for what is stored or sent.
    pub fn will_learn_of(&self, name: &str, keys: u64) -> String {
        let has = format!("that {name} has {}", counted(keys, "distinct key"));
        let what = match self.learns {
            Learns::Me => format!("{has}; nothing else"),
            Learns::Peer | Learns::Both => {
                let own = match self.owner_gets() {
                    Some((side, columns)) if side != self.side => format!(
                        ". By the numbers that it chooses for its own {}, within the question's bounds, the result can tell \
                         it which keys {name} has, one for each of its bits",
                        listed(&columns)
                    ),
                    _ => String::new(),
                };
                format!("{has}, and {}; nothing else{own}", self.result_words())
            }
        };
        learned(Security::SemiHonest, &what)
    }
}

/// A key of ours that passes our own filter.
#[derive(Clone, Copy, Debug)]
pub struct Passing<'k> {
    /// The key, as an element of the set.
    pub element: &'k [u8; 32],
    /// Which of the table's rows of this key count, as one number: the same for the same rows of it, by their places
    /// among those of the key.
    pub rows: u64,
}

impl Rows {
    /// The keys of `own`, of which these rows are, that pass the side's own filter, if the rows were
    /// [read with which of them count](Job::read_rows_and_which); otherwise none.
    pub fn passing_keys<'k>(&'k self, own: &'k Own) -> impl Iterator<Item = Passing<'k>> {
        let all = own.keys().elements().iter().zip(self.blocks.iter()).zip(&self.which);
        all.filter(|((_, block), _)| **block != Block::ZERO)
            .map(|((element, _), rows)| Passing { element, rows: *rows })
    }
}
