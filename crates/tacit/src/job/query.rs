//! A question in SQL about the joined rows of both sides' tables: counts, sums and extremes by group, and nobody sees a
//! row.
//!
//! Each side computes by itself what its own columns say alone, and puts one [block](Question::row) of at most 128 bits
//! in for each of its keys. Circuit PSI shares which keys are common together with both blocks; what mixes both sides,
//! the groups, the sums and which groups may be shown are computed on these shares, [rows side by side]
//! (tacit_2pc::batch::fold), and only the result is opened.
//!
//! Secure against a peer that follows the protocol ([`Security::SemiHonest`]). Each side learns how many distinct keys
//! the other has; who gets the result learns that, and which groups are not shown.

mod circuit;
mod served;
#[cfg(test)]
mod tests;

pub use circuit::Shown;
pub use served::Passing;
use tacit_query::Total;
pub use tacit_query::{Cell, Purpose, Question, Side};

use super::psi::{self, Own, folded, shared};
use super::{Course, Observer};
use crate::catalogue::{Candidate, Link, Machine, of_fold, sharing};
use crate::{Error, Result};
use circuit::Circuits;
use std::collections::HashMap;
use tacit_crypto::text::counted;
use tacit_crypto::{Block, Prg};
use tacit_data::keys::Named;
use tacit_data::records::{KeySet, KeySpec, Normalisation};
use tacit_net::{Agreement, Channel, Party};
use tacit_ot::{BaseOt, Security};
use tacit_psi::cuckoo;
use tacit_psi::paxos::{self, Learns};
use tacit_psi::vole_psi::circuit as vole_circuit;
use zeroize::Zeroizing;

/// Of what passes: a change that a peer must know of.
const VERSION: u64 = 2;

/// The least rows of a group that a side lets a result show unless it says otherwise.
pub const USUAL_LEAST: u64 = 10;

/// The most keys that a side may have.
pub const MOST_KEYS: u64 = vole_circuit::MAX_ELEMENTS as u64;

/// Bytes of the OT extensions both ways while they make a stock of triples, beside that stock, as measured with 16 groups.
const TRANSFERS_HELD: u64 = 32 << 20;

/// Bytes of a gate of a row's circuit while it is built, and of both its forms.
const GATE_BYTES: u64 = 2 * 160;

/// A question that both sides ask alike, and who gets its result.
#[derive(Clone, Debug)]
pub struct Job {
    /// The question; both sides must ask the same.
    pub question: Question,
    /// Which of its tables is ours.
    pub side: Side,
    /// Who gets the result; the peer says the converse.
    pub learns: Learns,
    /// Whether a side gets sums, counts and extremes of its own columns; both sides must say the same.
    pub result_to_owner: bool,
    /// The least rows of a group that a result may show, as far as we are asked: a question that shows smaller ones is
    /// refused.
    pub least: u64,
    /// What each of our columns may be used for, if that is said: a question that uses one otherwise is refused.
    pub allowed: Option<Vec<(String, Purpose)>>,
    /// How keys are normalised, and which cells are nothing.
    pub key: KeySpec,
    /// The most keys that the peer may have, if the caller says so.
    pub most_peer_keys: Option<u64>,
}

/// What the result is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The groups that are shown, ascending; nothing to a side that gets no result.
    pub shown: Option<Vec<Shown>>,
    /// The peer's distinct keys.
    pub peer_keys: u64,
}

/// What a side puts in.
pub struct Rows {
    blocks: Zeroizing<Vec<Block>>,
    /// Keys with a row that passes the side's own filter.
    pub passing: u64,
    /// Rows that pass it but do not count, as an earlier one has the same key.
    pub left_out: u64,
    /// Rows, or keys, that do not count because what the question computes of them does not fit: with noise, where an
    /// error would tell of them without noise.
    pub unfit: u64,
    /// Of each key which of its rows count, as one number, where that was asked for.
    which: Vec<u64>,
}

impl Rows {
    fn of(blocks: Vec<Block>) -> Self {
        Rows { blocks: Zeroizing::new(blocks), passing: 0, left_out: 0, unfit: 0, which: vec![] }
    }

    /// Notes that of a key the row of this number counts too, if that is wanted.
    fn note(&mut self, element: usize, row: Option<u32>) {
        /// An odd number without small multiples near a power of two: other sets of rows give other numbers but for a
        /// chance of 2^-64.
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        if let (Some(row), Some(which)) = (row, self.which.get_mut(element)) {
            *which = which.wrapping_mul(STEP).wrapping_add(u64::from(row) + 1);
        }
    }
}

/// What a side's rows put in, as they come.
pub struct Gathered<'j> {
    job: &'j Job,
    rows: Rows,
    first: bool,
    /// Of each key, where the question adds up rows.
    totals: Vec<Total>,
    /// The rows of each key so far, where it is wanted which of them count.
    seen: Vec<u32>,
    /// Whether a second row that counts with the same key is noted, and no error.
    several: bool,
}

impl Gathered<'_> {
    /// Takes a row of the key that is the set's `element`: the cells of the columns that the question has of our table.
    ///
    /// Errors: a cell that is not what the question takes it for, and a second row that counts with the same key, unless
    /// the first was to be taken or the question has noise. They show no cell.
    pub fn add(&mut self, element: usize, cells: &[Option<&str>]) -> std::result::Result<(), String> {
        let Job { question, side, .. } = self.job;
        let row = self.seen.get_mut(element).map(|seen| std::mem::replace(seen, seen.saturating_add(1)));
        if question.adds_up(*side) {
            let Some(total) = self.totals.get_mut(element) else { return Err("a row has no key".to_owned()) };
            let before = total.rows();
            fitting(question, question.add(*side, total, cells), &mut self.rows.unfit)?;
            if total.rows() > before {
                self.rows.note(element, row);
            }
            return Ok(());
        }
        let block = fitting(question, question.row(*side, cells), &mut self.rows.unfit)?;
        let Some(block) = block.flatten() else { return Ok(()) };
        let Some(of) = self.rows.blocks.get_mut(element) else { return Err("a row has no key".to_owned()) };
        if *of == Block::ZERO {
            self.rows.passing += 1;
            *of = Block::new(block);
            self.rows.note(element, row);
        } else if !self.first && question.epsilon.is_none() && !self.several {
            return Err(self.job.refuses_several());
        } else {
            if self.several {
                self.rows.note(element, row);
            }
            self.rows.left_out += 1;
        }
        Ok(())
    }

    /// What all rows put in.
    ///
    /// Errors: numbers of a key that do not fit when they are added up.
    pub fn finish(mut self) -> std::result::Result<Rows, String> {
        let Job { question, side, .. } = self.job;
        for (of, total) in self.rows.blocks.iter_mut().zip(&self.totals) {
            let block = fitting(question, question.total(*side, total), &mut self.rows.unfit)?;
            if let Some(block) = block.flatten() {
                self.rows.passing += 1;
                *of = Block::new(block);
            }
        }
        Ok(self.rows)
    }
}

/// What was computed of a row. With noise a row is left out whose numbers do not fit: whoever wrote the text could have
/// chosen for which key that is so, and an error would tell of it.
fn fitting<T>(
    question: &Question,
    made: std::result::Result<T, tacit_query::Fault>,
    unfit: &mut u64,
) -> std::result::Result<Option<T>, String> {
    match made {
        Ok(made) => Ok(Some(made)),
        Err(fault) if question.epsilon.is_some() && fault.is_of_value() => {
            *unfit += 1;
            Ok(None)
        }
        Err(fault) => Err(fault.to_string()),
    }
}

impl Job {
    /// The question as `side` asks it, with keys of plain text normalised so, where nothing else is said of them.
    ///
    /// Errors: columns of the key of types that there are not, or that differ, and more numbers of more groups than a
    /// circuit holds.
    pub fn new(question: Question, side: Side, learns: Learns, normalisation: Normalisation) -> Result<Self> {
        let key = |side: Side| {
            let columns = question.tables[side as usize].key.iter().map(|column| Named::parse(column));
            let columns = columns.collect::<std::result::Result<Vec<_>, _>>();
            let columns = columns.map_err(|error| Error::Usage(format!("the question: ON: {error}")))?;
            Ok::<_, Error>(KeySpec::named(columns, normalisation))
        };
        let [ours, theirs] = [key(Side::Ours)?, key(Side::Theirs)?];
        if ours.agreed_types() != theirs.agreed_types() {
            return Err(Error::Usage(format!(
                "the question: ON compares {} with {}; give both columns the same type, in double quotes: a.\"mail:email\"",
                ours.agreed_types(),
                theirs.agreed_types()
            )));
        }
        crate::job::psi::refuse_variants(&ours, "a question joins by")?;
        Circuits::new(&question).check()?;
        Ok(Job {
            key: if side == Side::Ours { ours } else { theirs },
            question,
            side,
            learns,
            result_to_owner: false,
            least: USUAL_LEAST,
            allowed: None,
            most_peer_keys: None,
        })
    }

    /// The intersection below it.
    fn intersection(&self) -> psi::Job {
        psi::Job {
            reveal: psi::Reveal::Count,
            key: Some(self.key.clone()),
            most_peer_keys: self.most_peer_keys,
            ..psi::Job::new(self.learns, Security::SemiHonest)
        }
    }

    /// An error where a side gets what is made of its own columns without both sides' word, where a group may be too
    /// small, or where a column of ours is used in a way that was not allowed.
    pub fn check(&self) -> Result<()> {
        let refuse = |name, what: String| Err(Error::Parameter { name, what });
        let question = &self.question;
        if question.least < self.least {
            let least = counted(self.least, "row");
            let now = match question.least {
                0 => "of any size".to_owned(),
                least => format!("of {}", counted(least, "row")),
            };
            return refuse(
                "min-group",
                format!(
                    "the question shows groups {now}, and this side allows {least} and more: write HAVING COUNT(*) >= {} in \
                     it, on both sides, or allow {}",
                    self.least, question.least
                ),
            );
        }
        if let Some(allowed) = &self.allowed {
            let uses = &question.tables[self.side as usize].uses;
            let is_allowed = |one: &&tacit_query::Use| {
                allowed.iter().any(|(column, purpose)| *column == one.column && *purpose == one.purpose)
            };
            if let Some(one) = uses.iter().find(|one| !is_allowed(one)) {
                let (column, purpose) = (tacit_net::shown(&one.column), one.purpose.name());
                return refuse(
                    "allow",
                    format!(
                        "the question uses your column `{column}` to {purpose}; add {column}:{purpose} if that is right"
                    ),
                );
            }
        }
        match (self.owner_gets(), self.result_to_owner) {
            (Some((side, columns)), false) => {
                let whose = if side == self.side { "yours" } else { "the peer's" };
                refuse(
                    "result-to-owner",
                    format!(
                        "is needed on both sides: {} of {whose} {} into a number of the result, and a side that chooses such \
                         values and gets the result can read memberships from it; or give the result to the other side",
                        listed(&columns),
                        if columns.len() == 1 { "goes" } else { "go" },
                    ),
                )
            }
            (None, true) => {
                refuse("result-to-owner", "no side gets what is made of its own columns; leave it out".into())
            }
            _ => Ok(()),
        }
    }

    /// A side that gets what is made of its own columns, and these columns.
    fn owner_gets(&self) -> Option<(Side, Vec<String>)> {
        let gets = |side: Side| match self.learns {
            Learns::Both => true,
            Learns::Me => side == self.side,
            Learns::Peer => side != self.side,
        };
        let of = |side: Side| (side, self.question.carries(side));
        Side::BOTH.into_iter().filter(|side| gets(*side)).map(of).find(|(_, columns)| !columns.is_empty())
    }

    /// What both parties must agree on before they start.
    pub fn agreement(&self, base: &dyn BaseOt) -> Agreement {
        let [table, other] = match self.side {
            Side::Ours => Side::BOTH,
            Side::Theirs => [Side::Theirs, Side::Ours],
        };
        let said = |learns: Learns, table: Side| format!("result {}, side {}", learns.name(), table.name());
        let (mine, peers) = (said(self.learns, table), said(self.learns.converse(), other));
        let mut agreement = Agreement::new("query", mine, peers);
        for (at, part) in (1..).zip(parts(&self.question.text)) {
            agreement = agreement.with(format!("{} part {at:02}", psi::QUESTION), part);
        }
        let agreement = agreement
            .with("result-to-owner", if self.result_to_owner { "yes" } else { "no" })
            .with("base-ot", base.name())
            .with("version of questions", VERSION)
            .with("version of folds", folded::VERSION);
        psi::agree_key(agreement, &self.key)
    }

    /// Reads the keys of `source`, our table at `path`, and what its rows put in. `progress` is told now and then how
    /// many of the file's bytes have been read. Of several rows with one key that pass the side's own filter the first
    /// counts if `first` says so.
    ///
    /// Errors: a table that cannot be read, that has no such column, or has cells that are not what the question takes
    /// them for, and otherwise several rows with one key.
    pub fn read(
        &self,
        source: tacit_data::table::Source,
        path: &std::path::Path,
        first: bool,
        progress: impl FnMut(u64),
    ) -> Result<(Own, Rows)> {
        let own = self.read_keys(source, path, progress)?;
        let rows = self.read_rows(&own, first)?;
        Ok((own, rows))
    }

    /// What the rows of a set of so many keys put in, row by row; see [`read`](Self::read).
    pub fn gather(&self, keys: usize, first: bool) -> Gathered<'_> {
        let rows = Rows::of(vec![Block::ZERO; keys]);
        let totals = if self.question.adds_up(self.side) { vec![Total::default(); keys] } else { vec![] };
        Gathered { job: self, rows, first, totals, seen: vec![], several: false }
    }

    /// What is said to several rows with one key.
    fn refuses_several(&self) -> String {
        format!(
            "an earlier row has the same key, and a question takes one row of each; write (SELECT key, SUM(x) AS x FROM {} \
             GROUP BY key) a in place of the table, narrow WHERE, or take the first row of each key",
            self.side.name()
        )
    }

    /// What a run holds with `own` distinct keys of ours.
    ///
    /// Errors where the question's circuits cannot be built.
    pub fn room(&self, own: u64) -> Result<Room> {
        // The smaller set's places are no more than those of our own keys.
        let held = match self.fold(own)? {
            None => 0,
            Some(fold) => {
                let built = fold.gates().saturating_mul(GATE_BYTES);
                fold.bytes()
                    .saturating_add(folded::STOCK + TRANSFERS_HELD)
                    .saturating_add(built)
                    .saturating_add(32 * own)
            }
        };
        let totals = match self.question.adds_up(self.side) {
            true => own.saturating_mul(Total::bytes(self.question.sum_columns(self.side)) as u64),
            false => 0,
        };
        let held = held.saturating_add(totals);
        Ok(Room { intersection: self.intersection(), own, held })
    }

    fn fold(&self, keys: u64) -> Result<Option<tacit_2pc::batch::fold::Fold>> {
        let places = cuckoo::bins(usize::try_from(keys).unwrap_or(usize::MAX));
        (keys > 0).then(|| Circuits::new(&self.question).fold(places)).transpose()
    }

    /// What a run with `keys` on each side would cost.
    pub fn estimate(&self, keys: u64, link: &Link, machine: &Machine) -> Result<Candidate> {
        let shares = sharing(keys, link, machine)?;
        let Some(fold) = self.fold(keys)? else { return Ok(shares) };
        let fold = of_fold(&fold, link, machine)?;
        Ok(Candidate {
            variant: folded::ROWS_FOLDED.into(),
            time: shares.time + fold.time,
            bytes: shares.bytes + fold.bytes,
            rounds: shares.rounds + fold.rounds,
            base_batches: shares.base_batches + fold.base_batches,
            ..shares
        })
    }

    /// What can be said of the work beforehand, for `keys` on each side.
    ///
    /// Errors where the question's circuits cannot be built.
    pub fn work(&self, keys: u64) -> Result<Work> {
        let circuits = Circuits::new(&self.question);
        let places = cuckoo::bins(usize::try_from(keys.max(1)).unwrap_or(usize::MAX));
        let fold = circuits.fold(places)?;
        Ok(Work {
            row_bits: Side::BOTH.map(|side| self.question.bits(side)),
            row_ands: fold.row_ands(),
            triples: fold.triples(),
            rounds: fold.rounds(),
            opened_bits: circuits.opened_bits(places),
        })
    }

    /// What the other side learns of our `keys`, in words.
    pub fn will_learn(&self, keys: u64) -> String {
        let has = format!("that you have {}", counted(keys, "distinct key"));
        let what = match self.learns {
            Learns::Me => format!("{has}; nothing else"),
            Learns::Peer | Learns::Both => {
                format!("{has}, and {}; nothing else{}", self.result_words(), self.owner_words())
            }
        };
        super::learned(Security::SemiHonest, &what)
    }

    /// The result in words.
    fn result_words(&self) -> String {
        let question = &self.question;
        let is_group = |output: &tacit_query::Output| matches!(output, tacit_query::Output::Group(_));
        let made: Vec<String> = question
            .outputs
            .iter()
            .filter(|(_, output)| !is_group(output))
            .map(|(name, _)| name.clone())
            .collect();
        let made = if made.is_empty() { "which groups there are".to_owned() } else { listed(&made) };
        let by: Vec<String> = question.groups.iter().map(|group| group.name.clone()).collect();
        let by = if by.is_empty() {
            String::new()
        } else {
            format!(" by {}, of {} at most", listed(&by), counted(question.group_count() as u64, "group"))
        };
        let having = if question.having.is_some() { " and pass HAVING" } else { "" };
        let hidden = match (question.shown_from(), question.groups.is_empty()) {
            (None, _) if having.is_empty() => String::new(),
            (None, true) => ", or that they do not pass HAVING".to_owned(),
            (None, false) => ", and which groups do not pass HAVING".to_owned(),
            (Some(least), true) => {
                format!(
                    ", or that there are fewer than {}{}",
                    counted(least, "joined row"),
                    if having.is_empty() { "" } else { " or they do not pass HAVING" }
                )
            }
            (Some(least), false) => {
                format!(", and which groups do not have {}{having}", counted(least, "joined row"))
            }
        };
        let noise = match question.epsilon_text() {
            Some(epsilon) => format!(", with noise of epsilon {epsilon} for each key"),
            None => String::new(),
        };
        format!("{made} of the joined rows{by}{noise}{hidden}")
    }

    /// What a peer that gets what its own columns make can read from that.
    fn owner_words(&self) -> String {
        match self.owner_gets() {
            Some((side, columns)) if side != self.side => format!(
                ". {} {} its own: by the numbers that it chooses, within the question's bounds, the result can tell it which \
                 keys you have, one for each of its bits",
                listed(&columns),
                if columns.len() == 1 { "is" } else { "are" }
            ),
            _ => String::new(),
        }
    }

    /// How the result can be abused, whatever the protocol does.
    pub const fn warning(&self) -> &'static str {
        if self.question.epsilon.is_some() {
            return "the noise bounds what the result of this run tells of each key; results of several runs add up, epsilon \
                    for epsilon, and how many distinct keys you have is told without noise. Limit whom you run with, and \
                    how often";
        }
        "the least size of a group protects no single row from somebody who chooses the question, or its own table, for it: \
         a CASE, MIN or MAX can ask about one row of a large group; a group of one's own column is large enough with keys \
         that are known to match, and then tells of one more key, up to 1,024 of them in a run; and a second run that \
         differs by one key tells of that key. Read what the text asks, and limit whom you run with, which questions, and \
         how often"
    }

    /// Asks the question of our `elements` (byte strings, each once) and their `rows`, and the peer's.
    ///
    /// Errors as [`check`](Self::check) and [`vole_circuit::shares`], and where the sides' circuits differ.
    pub fn run<E: AsRef<[u8]> + Sync>(
        &self,
        channels: &mut [Channel],
        base: &(dyn BaseOt + Send + Sync),
        elements: &[E],
        rows: &Rows,
        most_peer_keys: u64,
        observer: &dyn Observer,
    ) -> Result<Answer> {
        self.check()?;
        let course = Course::begin(shared::PHASES, channels, 0, observer);
        let channel = super::first(channels)?;
        let me = channel.party();
        let options = paxos::Options {
            learns: Learns::Both,
            security: Security::SemiHonest,
            min_peer_elements: 0,
            max_peer_elements: most_peer_keys.min(MOST_KEYS),
            base,
        };
        let mut told = |phase: paxos::Phase, done, total| course.at(phase as usize, done, total);
        let shares = vole_circuit::shares(
            channel,
            &mut Prg::from_os(),
            elements,
            Some(&rows.blocks),
            &options,
            &mut told,
        )?;
        let peer_keys = shares.peer_elements;
        let learns_here = self.learns != Learns::Peer;
        let (role, output_to) = shared::roles(me, self.learns);
        if shares.bins() == 0 {
            // One of the sets is empty, which both sides know: so is the join.
            // What both sides know needs no noise.
            let shown = learns_here.then(|| answered(&self.question, &[], &mut { NO_NOISE }));
            return Ok(Answer { shown, peer_keys });
        }
        let circuits = Circuits::new(&self.question);
        let fold = circuits.fold(shares.bins())?;
        shared::compare(channel, fold.digest())?;
        let [first, second] = folded::of_parties(&shares, me);
        let ours_is_first = (self.side == Side::Ours) == (me == Party::First);
        let (ours, theirs) = if ours_is_first { (first, second) } else { (second, first) };
        let bits = Side::BOTH.map(|side| self.question.bits(side));
        let share = |place: usize, word: usize| {
            let row = [
                (folded::value(ours, place), bits[0]),
                (folded::value(theirs, place), bits[1]),
                (shares.members.get(place).into(), 1),
            ];
            packed(&row, word)
        };
        let mut told = |done, total| course.at(shared::PHASES.len() - 1, done, total);
        let outputs = folded::run(channel, base, &fold, &share, (role, output_to), &mut told)?;
        Ok(Answer { shown: outputs.map(|outputs| circuits.read(&outputs)), peer_keys })
    }
}

/// The memory of a run.
pub struct Room {
    intersection: psi::Job,
    own: u64,
    /// Bytes beside those of the intersection.
    held: u64,
}

impl Room {
    /// Bytes that a party holds at most if the peer has so many distinct keys.
    pub fn memory(&self, peer: u64) -> u64 {
        self.intersection.memory(self.own, peer).saturating_add(self.held)
    }

    /// The most keys that the peer may have: those asked for, but no more than `available` bytes of memory, if that is
    /// known, have room for.
    pub fn most_peer_keys(&self, available: Option<u64>) -> u64 {
        self.intersection.most_peer_keys(self.own, available.map(|bytes| bytes.saturating_sub(self.held)))
    }
}

/// Words that are below no threshold.
const NO_NOISE: fn() -> u64 = || u64::MAX;

/// What a question gives on these joined rows in the clear, with noise out of `coins`.
fn answered(question: &Question, joined: &[[u128; 2]], coins: &mut dyn FnMut() -> u64) -> Vec<Shown> {
    question.answer(joined, coins).into_iter().map(|(group, values)| Shown { group, values }).collect()
}

/// What a question gives on two tables in the clear.
pub struct Rehearsed {
    /// The groups that are shown.
    pub shown: Vec<Shown>,
    /// With noise, what they would be without it.
    pub exact: Option<Vec<Shown>>,
    /// Keys that both tables have.
    pub common: usize,
    /// Those of them with a row on each side that passes its filter.
    pub joined: usize,
}

/// Answers a question on two tables of this machine, without a protocol; with noise of its own if the question has some.
pub fn rehearsed(question: &Question, ours: (&KeySet, &Rows), theirs: (&KeySet, &Rows)) -> Rehearsed {
    let other = theirs.0.elements();
    let places: HashMap<_, usize> = other.iter().enumerate().map(|(at, element)| (element, at)).collect();
    let mut joined = Vec::new();
    let mut common = 0;
    for (element, block) in ours.0.elements().iter().zip(ours.1.blocks.iter()) {
        let Some(&at) = places.get(element) else { continue };
        common += 1;
        let blocks = [block.to_u128(), theirs.1.blocks[at].to_u128()];
        if blocks.iter().all(|block| block & 1 == 1) {
            joined.push(blocks);
        }
    }
    let mut coins = Prg::from_os();
    let shown = answered(question, &joined, &mut || coins.block().low());
    let exact = question.epsilon.map(|_| answered(question, &joined, &mut { NO_NOISE }));
    Rehearsed { shown, exact, common, joined: joined.len() }
}

/// A text in parts that end where a word does, so that sides whose texts differ are told where: each of what an error
/// shows of a setting, and the last one of all that is left.
fn parts(text: &str) -> Vec<&str> {
    /// Bytes of a part, about, and parts.
    const TEXT_PART: usize = 36;
    const MOST_TEXT_PARTS: usize = 40;
    let (mut parts, mut rest) = (Vec::new(), text);
    while parts.len() + 1 < MOST_TEXT_PARTS {
        let ends = rest.char_indices().filter(|(at, c)| *at >= TEXT_PART && c.is_whitespace());
        let Some((end, _)) = ends.into_iter().next() else { break };
        parts.push(&rest[..end]);
        rest = &rest[end..];
    }
    parts.push(rest);
    parts
}

/// Bits from 64·`word` on of parts, each with so many bits, one behind the other.
fn packed(parts: &[(u128, u32)], word: usize) -> u64 {
    let (mut found, mut from) = (0, 0);
    let start = 64 * word as u32;
    for &(part, bits) in parts {
        let part = if bits < u128::BITS { part & ((1 << bits) - 1) } else { part };
        if from + bits > start && from < start + 64 {
            found |=
                if from >= start { (part << (from - start)) as u64 } else { (part >> (start - from)) as u64 };
        }
        from += bits;
    }
    found
}

/// Names in backquotes, as a sentence lists them.
fn listed(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{}`", tacit_net::shown(name))).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// What a question costs beside its bytes and time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// Bits that a row of either side puts in.
    pub row_bits: [u32; 2],
    /// AND gates of a row's circuit.
    pub row_ands: u64,
    /// AND gates in all.
    pub triples: u64,
    /// Rounds of what is computed on shares.
    pub rounds: u64,
    /// Bits that are opened.
    pub opened_bits: u64,
}
