//! The intersection of two parties' sets of keys.

mod buckets;
mod differences;
mod each;
mod elements;
mod estimate;
pub(in crate::job) mod folded;
pub mod gateway;
mod identifiers;
mod own;
pub mod owner;
pub(in crate::job) mod places;
mod reveal;
pub(in crate::job) mod shared;
mod statistic;
mod tested;
#[cfg(test)]
mod tests;

pub use buckets::{ATTEMPTS, Bucketed, Disk, InBuckets, MAX_BUCKETS, OVERFLOW_BITS, Resume, runs_log2};
pub use circuit::Outcome as AggregateOutcome;
pub use each::{Each, MAX_INPUT_BITS, Total};
use elements::Elements;
pub use identifiers::{check_variants, refuse_variants};
pub use own::{Own, Owned, is_free};
pub use places::Place;
pub use reveal::{Aggregate, Column, Duplicates, Gained, Gift, Match, Reveal, Revealed, Table};
pub use shared::{MAX_SHARED, Then};
pub use statistic::{Found, Statistic};
pub use tacit_psi::{Bounds, Limits};
pub use tested::Tested;
pub(in crate::job) use tested::bound;

use super::{About, Course, Observer};
use crate::catalogue::{CIRCUIT, Entry, Link, Machine, PAXOS, SORTED, Sizes, VOLE, too_many};
use crate::{Error, Result};
use shared::Folding;
use std::time::Duration;
use tacit_2pc::circuit::Builder;
use tacit_crypto::text::counted;
use tacit_crypto::{BitVec, Prg};
use tacit_data::records::KeySpec;
use tacit_net::{Agreement, Channel, Party};
use tacit_ot::{BaseOt, Security};
pub use tacit_psi::paxos::{Learns, MAX_ELEMENTS, Outcome};
pub use tacit_psi::vole_psi::payload::{MAX_SEALED, USUAL_KEY, Widths};
use tacit_psi::vole_psi::{circuit, payload};
use tacit_psi::{paxos, sorted, vole_psi};

pub(in crate::job) use differences::QUESTION;
pub(crate) use differences::causes;

/// By which protocol.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Protocol {
    /// The faster one for the sets' sizes and the link: see [`Job::fastest`].
    #[default]
    Auto,
    /// Key-value store and OT extension.
    Paxos,
    /// Key-value store and vector oblivious linear evaluation: the fastest, on newer assumptions.
    Vole,
}

/// The links between which the sets' sizes alone may decide.
const FAST: Link = Link { megabits: 1e6, round_trip: Duration::ZERO };
const SLOW: Link = Link { megabits: 1e-1, round_trip: Duration::ZERO };

impl Protocol {
    /// All, as a user may name them.
    pub const ALL: [Protocol; 3] = [Protocol::Auto, Protocol::Paxos, Protocol::Vole];

    /// The one of this short name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.name() == name)
    }

    /// What the catalogue says of the protocols that may run.
    fn entries(self) -> &'static [&'static Entry] {
        static BOTH: [&Entry; 2] = [&VOLE, &PAXOS];
        match self {
            Protocol::Auto => &BOTH,
            Protocol::Vole => &BOTH[..1],
            Protocol::Paxos => &BOTH[1..],
        }
    }

    /// The names of all that may run.
    pub fn candidates(self) -> Vec<&'static str> {
        self.entries().iter().map(|entry| entry.name).collect()
    }

    /// The short name.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Auto => "auto",
            Protocol::Paxos => PAXOS.name,
            Protocol::Vole => VOLE.name,
        }
    }
}

/// An intersection: by which protocol, who learns what of it, against which peer, and what makes a key.
#[derive(Clone, Debug)]
pub struct Job {
    /// The protocol; both sides must say the same.
    pub protocol: Protocol,
    /// Who gets a result; the peer says the converse.
    pub learns: Learns,
    /// What the result reveals; both sides must say the same.
    pub reveal: Reveal,
    /// Our columns that go into the result: to a peer that asks for them, or into a sum.
    pub give: Vec<String>,
    /// The function that [`Reveal::Shares`] go into, by [`run_with`](Self::run_with); both sides must say the
    /// same.
    pub each: Option<Each>,
    /// A number over all common keys is withheld unless so many count; both sides must say the same.
    pub min_matches: u64,
    /// The least and the most that one key adds to a number, in the smallest unit of its column; both sides must say the
    /// same.
    pub bounds: Option<Bounds>,
    /// Whether the owner of a column gets what is made of it; both sides must say the same.
    pub result_to_owner: bool,
    /// Against which peer; both sides must say the same.
    pub security: Security,
    /// What makes a row's key; without it keys are byte strings. Both sides' must fit.
    pub key: Option<KeySpec>,
    /// The most keys that the peer may have, if the caller says so.
    pub most_peer_keys: Option<u64>,
    /// As many keys as the peer has said already that it has: with others it ends the run before anything is
    /// computed.
    pub peer_keys: Option<u64>,
    /// The most bytes that the peer's columns may take for each of its keys, all columns and rows together, and
    /// that a cell may take which we give.
    pub max_cell: u64,
    /// Whether a cell that we give may hold a line's end; one of an address book may, and one of a file that was
    /// read wrongly does.
    pub line_ends: bool,
    /// Bytes of memory that may hold rows of the peer's, beside what [`memory`](Job::memory) says.
    pub row_memory: u64,
}

impl Job {
    /// An intersection of byte strings whose rows are revealed, by the default protocol.
    pub fn new(learns: Learns, security: Security) -> Self {
        Job {
            protocol: Protocol::default(),
            learns,
            reveal: Reveal::Rows,
            give: Vec::new(),
            each: None,
            min_matches: 0,
            bounds: None,
            result_to_owner: false,
            security,
            key: None,
            most_peer_keys: None,
            peer_keys: None,
            max_cell: USUAL_KEY,
            line_ends: false,
            row_memory: u64::MAX,
        }
    }

    /// Why a cell is not given, if it is not.
    pub fn unfit(&self, cell: &str) -> Option<String> {
        if cell.len() as u64 > self.max_cell {
            return Some(format!(
                "the cell to give takes more than {}; allow longer ones if that is right",
                counted(self.max_cell, "byte")
            ));
        }
        let has_lines = !self.line_ends && cell.contains(['\n', '\r']);
        has_lines.then(|| "the cell to give has more than one line; allow that if it is right".to_owned())
    }

    /// What both parties must agree on before they start.
    pub fn agreement(&self, base: &dyn BaseOt) -> Agreement {
        let said = |learns: Learns, what: &str| format!("result {}{what}", learns.name());
        // Whose column a sum is of, is the converse on the other side, as who gets it is.
        let (gives, takes) = match (&self.reveal, self.give.is_empty()) {
            (reveal, false) if reveal.column().is_some() => (" and gives the column", " and gives no column"),
            (reveal, true) if reveal.column().is_some() => (" and gives no column", " and gives the column"),
            _ => ("", ""),
        };
        let agreement = Agreement::new("psi", said(self.learns, gives), said(self.learns.converse(), takes))
            .with("protocol", self.protocol.name())
            .with("base-ot", base.name())
            .with("reveal", self.reveal.terms())
            .with("min-matches", self.min_matches)
            .with("bounds", self.written_bounds().unwrap_or_else(|| "none".to_owned()))
            .with("result-to-owner", if self.result_to_owner { "yes" } else { "no" });
        let agreement = match &self.each {
            Some(each) => each.agree(agreement),
            None => agreement,
        };
        let folds = self.each.is_some() || matches!(self.reveal, Reveal::Of(..));
        let agreement = if folds { agreement.with(differences::FOLDS, folded::VERSION) } else { agreement };
        match &self.key {
            Some(key) => agree_key(agreement, key),
            None => agreement.with("key", "bytes"),
        }
    }

    /// The bounds in the unit of the column, if there are any.
    pub fn written_bounds(&self) -> Option<String> {
        self.bounds.map(|bounds| owner::written(bounds, self.reveal.form()))
    }

    /// Bytes that a party with `own` distinct keys holds at most if the peer has `peer` of them, as the
    /// catalogue's entries have measured it.
    pub fn memory(&self, own: u64, peer: u64) -> u64 {
        let sizes = Sizes {
            own,
            peer,
            learns: self.learns,
            security: self.security,
            columns: matches!(self.reveal, Reveal::Payload(_)),
            whole_circuit: self.reveal == Reveal::Shares && self.each.is_none(),
        };
        let of = |entry: &Entry| entry.intersection().map_or(u64::MAX, |entry| (entry.memory)(&sizes));
        let folds = self.each.is_some() || matches!(self.reveal, Reveal::Of(..));
        let computed = if folds { folded::memory(own.min(peer), self.function()) } else { 0 };
        let process = (18u64 << 20).saturating_add(computed);
        process.saturating_add(match self.protocol {
            _ if self.reveal.is_aggregate() => of(self.aggregates_by()),
            Protocol::Vole => of(&VOLE),
            Protocol::Paxos => of(&PAXOS),
            // PaXoS is picked for small sets alone, of which it holds little.
            Protocol::Auto if self.settled(own, peer) != Some(Protocol::Vole) => of(&PAXOS).max(of(&VOLE)),
            Protocol::Auto => of(&VOLE),
        })
    }

    /// How a number on shares of the intersection is computed with so many keys of ours and of the peer's: `one garbled
    /// circuit` or `rows folded`. `None` for other results, and where nothing is computed because a set is empty.
    pub fn variant(&self, own: u64, peer: u64) -> Option<&'static str> {
        let on_shares = self.each.is_some() || matches!(self.reveal, Reveal::Of(..));
        let smaller = own.min(peer);
        (on_shares && smaller > 0).then(|| match folded::garbled(smaller, self.function()) {
            true => folded::ONE_CIRCUIT,
            false => folded::ROWS_FOLDED,
        })
    }

    /// The size of the function of each common key.
    fn function(&self) -> folded::Size {
        self.each.as_ref().map_or(folded::Size::default(), Each::size)
    }

    /// The most keys that a side may have.
    pub fn max_keys(&self) -> u64 {
        match &self.reveal {
            Reveal::Rows | Reveal::Payload(_) => MAX_ELEMENTS as u64,
            Reveal::Shares if self.each.is_none() => MAX_SHARED,
            _ if self.security == Security::Malicious => sorted::MAX_ELEMENTS as u64,
            _ => circuit::MAX_ELEMENTS as u64,
        }
    }

    /// An error where the protocol does not take so many keys of ours.
    pub fn check_keys(&self, own: u64) -> Result<()> {
        let strict = self.reveal.is_aggregate() && self.security == Security::Malicious;
        if strict && own > self.max_keys() { Err(too_many()) } else { Ok(()) }
    }

    /// What computes numbers over all common keys.
    fn aggregates_by(&self) -> &'static Entry {
        match self.security {
            Security::Malicious => &SORTED,
            Security::SemiHonest => &CIRCUIT,
        }
    }

    /// The most keys that the peer may have beside our `own`: those asked for, but no more than `available`
    /// bytes of memory, if that is known, have room for.
    pub fn most_peer_keys(&self, own: u64, available: Option<u64>) -> u64 {
        let asked = self.most_peer_keys.unwrap_or(u64::MAX).min(self.max_keys());
        match available {
            Some(available) => most_that_fit(asked, |keys| self.memory(own, keys) <= available),
            None => asked,
        }
    }

    /// The protocol of a run over `link` with so many keys of ours and of the peer's: the one that was asked
    /// for, else the only one that reveals what is asked for, else against a cheating peer the one that lets it
    /// test the fewest keys of a small set, else the one that costs less on the reference machine. Both sides
    /// get the same.
    pub fn fastest(&self, own: u64, peer: u64, link: &Link) -> Protocol {
        if self.protocol != Protocol::Auto || self.reveal != Reveal::Rows {
            return if self.protocol == Protocol::Paxos { Protocol::Paxos } else { Protocol::Vole };
        }
        if own == 0 || peer == 0 {
            // Either ends at once, and this one's set-up is less.
            return Protocol::Paxos;
        }
        if self.is_small(own, peer) {
            return Protocol::Vole;
        }
        let keys = own.saturating_add(peer).div_ceil(2);
        let time = |entry: &Entry| {
            entry.intersection_cost(keys, self.security, link, &Machine::REFERENCE).map(|cost| cost.time)
        };
        match (time(&PAXOS), time(&VOLE)) {
            (Ok(paxos), Ok(vole)) if paxos < vole => Protocol::Paxos,
            _ => Protocol::Vole,
        }
    }

    /// Whether a peer that cheats could make more of a small set's spare room than of all else: then VOLE-PSI
    /// runs, whose store has none.
    fn is_small(&self, own: u64, peer: u64) -> bool {
        let [receiver, sender] = match self.learns {
            Learns::Me => [own, peer],
            Learns::Peer => [peer, own],
            // The smaller set's owner receives.
            Learns::Both => [own.min(peer), own.max(peer)],
        };
        self.security == Security::Malicious && vole_psi::is_small(receiver, sender)
    }

    /// The protocol of a run with so many keys, if it is the same over every link.
    fn settled(&self, own: u64, peer: u64) -> Option<Protocol> {
        let fastest = self.fastest(own, peer, &FAST);
        (fastest == self.fastest(own, peer, &SLOW)).then_some(fastest)
    }

    /// Why `protocol` runs for these `keys`, ours and the peer's; `None` if it was named. `link` is what was measured, if it was.
    pub fn why(&self, protocol: Protocol, keys: [u64; 2], link: Option<&Link>) -> Option<String> {
        let [own, peer] = keys;
        if self.protocol != Protocol::Auto || self.reveal != Reveal::Rows {
            return self.leaves_no_choice();
        }
        let keys = counted(own.saturating_add(peer), "key");
        if protocol == Protocol::Vole && self.is_small(own, peer) {
            return Some(format!(
                "picked for {keys} on both sides, because a peer that cheats can test fewer keys of such a small set than \
                 with paxos"
            ));
        }
        if own == 0 || peer == 0 {
            return Some("picked because one side has no keys, and it takes less to set up".to_owned());
        }
        let over = link.map_or_else(|| "any link".to_owned(), |link| format!("this link ({link})"));
        let other = if protocol == Protocol::Paxos { Protocol::Vole } else { Protocol::Paxos };
        Some(format!(
            "picked for {keys} on both sides, because it is faster than {} over {over}",
            other.name()
        ))
    }

    /// Why VOLE-PSI runs, where it was not named and the kind of result leaves no choice.
    pub fn leaves_no_choice(&self) -> Option<String> {
        (self.protocol == Protocol::Auto && self.reveal != Reveal::Rows).then(|| {
            format!("picked because no other protocol reveals {} with this security", self.reveal.name())
        })
    }

    /// As [`fastest`](Self::fastest), agreed on with the peer; the link is measured where it decides.
    /// Returns why, too.
    fn pick(&self, channel: &mut Channel, own: u64, peer: u64) -> Result<(Protocol, Option<String>)> {
        let keys = [own, peer];
        if let Some(settled) = self.settled(own, peer) {
            return Ok((settled, self.why(settled, keys, None)));
        }
        let measured = crate::plan::measure(channel)?;
        if channel.party() == Party::First {
            let picked = self.fastest(own, peer, &measured);
            channel.send_u64(u64::from(picked == Protocol::Vole))?;
            channel.send_u64((measured.megabits * 1e3) as u64)?;
            channel.send_u64(measured.round_trip.as_nanos() as u64)?;
            channel.flush()?;
            return Ok((picked, self.why(picked, keys, Some(&measured))));
        }
        let picked = match channel.recv_u64()? {
            0 => Protocol::Paxos,
            1 => Protocol::Vole,
            _ => {
                let what = "the peer picked a protocol that is unknown here; name one on both sides";
                return Err(Error::Peer(what.to_owned()));
            }
        };
        let (kilobits, nanoseconds) = (channel.recv_u64()?, channel.recv_u64()?);
        let link = Link { megabits: kilobits as f64 / 1e3, round_trip: Duration::from_nanos(nanoseconds) };
        Ok((picked, self.why(picked, keys, Some(&link))))
    }

    /// How many keys the peer of a run that gave `outcome` can have tested against `own` of ours if it
    /// cheated; `None` where it got no result, and where nothing is promised of a peer that deviates.
    pub fn tested(&self, outcome: &Outcome, own: u64) -> Result<Option<Tested>> {
        if self.security != Security::Malicious || self.learns == Learns::Me {
            return Ok(None);
        }
        let ran = [&VOLE, &PAXOS, &SORTED].into_iter().filter(|entry| entry.name == outcome.protocol);
        bound(ran, outcome, own).map(Some)
    }

    /// The bound on a peer that will announce `announced` keys, of the worst protocol that may then run.
    fn ahead(&self, announced: u64, own: u64) -> Result<Tested> {
        if self.reveal.is_aggregate() {
            let outcome = Outcome {
                matches: None,
                peer_elements: announced,
                peer_received: true,
                protocol: SORTED.name,
            };
            return bound(std::iter::once(&SORTED), &outcome, own);
        }
        let cheats =
            |protocol| Outcome { matches: None, peer_elements: announced, peer_received: true, protocol };
        let named = match self.settled(own, announced) {
            Some(settled) => settled,
            None => self.protocol,
        };
        let of = |outcome: &Outcome| bound(named.entries().iter().copied(), outcome, own);
        let receives = cheats(self.protocol.name());
        let sends = Outcome { peer_received: false, ..receives.clone() };
        // Where both learn the larger set's owner sends; of equal ones who listens decides.
        Ok(match self.learns {
            Learns::Both if announced > own => of(&sends)?,
            Learns::Both if announced == own => {
                let (sent, received) = (of(&sends)?, of(&receives)?);
                if sent.most > received.most { sent } else { received }
            }
            _ => of(&receives)?,
        })
    }

    /// How many of our `own` keys a run can tell the peer of at most, if it announced `announced` keys and
    /// even if it cheats; 0 where it gets no result.
    ///
    /// A number over all common keys counts with the bits that it has, each of which can tell of one key, and with no
    /// more keys than the peer can test; where few keys are common, one bit can tell of many that they are not.
    /// Against a peer that may deviate from a semi-honest protocol nothing is promised: all of them.
    pub fn reveals_at_most(&self, own: u64, announced: u64) -> Result<u64> {
        if self.learns == Learns::Me {
            return Ok(0);
        }
        Ok(match self.security {
            Security::Malicious => self.tells(announced.min(own), self.ahead(announced, own)?.most.min(own)),
            Security::SemiHonest => own,
        })
    }

    /// An error where the parameters do not go together.
    pub fn check(&self) -> Result<()> {
        identifiers::check(self.key.as_ref(), &self.reveal)?;
        self.reveal.check(self.learns, self.security, &self.give, self.min_matches)?;
        self.check_owner()?;
        if self.protocol == Protocol::Paxos && self.reveal != Reveal::Rows {
            let what = format!("paxos reveals only rows; use vole for {}", self.reveal.name());
            return Err(Error::Parameter { name: "protocol", what });
        }
        if self.protocol == Protocol::Vole
            && self.reveal.is_aggregate()
            && self.security == Security::Malicious
        {
            let what = format!(
                "vole computes a {} only with peers that follow the protocol; leave it at auto",
                self.reveal.name()
            );
            return Err(Error::Parameter { name: "protocol", what });
        }
        if self.each.is_some() && self.reveal != Reveal::Shares {
            let what = format!("a function of each match (eval) needs shares, not {}", self.reveal.name());
            return Err(Error::Parameter { name: "reveal", what });
        }
        Ok(())
    }

    /// What the other side will learn of our `keys` if it announces `announced` of its own.
    pub fn will_learn(&self, keys: u64, announced: u64) -> Result<String> {
        self.will_learn_about(About::Local, keys, announced)
    }

    /// As [`will_learn`](Self::will_learn), where the side whose keys these are is called `name`: for what is
    /// stored or sent, and the learning side is the sentence's subject.
    pub fn will_learn_of(&self, name: &str, keys: u64, announced: u64) -> Result<String> {
        self.will_learn_about(About::Party(name), keys, announced)
    }

    fn will_learn_about(&self, about: About<'_>, keys: u64, announced: u64) -> Result<String> {
        let cheating = match self.security {
            Security::Malicious => {
                let words = self.ahead(announced, keys)?.words();
                let announced = counted(announced, "key");
                Some(format!(
                    ". If it announces {announced} and cheats, it can test more keys than that: {words}"
                ))
            }
            Security::SemiHonest => None,
        };
        Ok(self.learns(about, keys, cheating, ""))
    }

    /// What the other side learned of our `keys` in a run that gave `outcome`.
    pub fn has_learned(&self, keys: u64, outcome: &Outcome) -> Result<String> {
        Ok(self.learned(keys, outcome.peer_elements, self.tested(outcome, keys)?))
    }

    /// What it learned in a run in buckets.
    pub fn has_learned_in_buckets(&self, ran: &Bucketed) -> String {
        self.learned(ran.own, ran.peer, ran.tested)
    }

    fn learned(&self, keys: u64, announced: u64, tested: Option<Tested>) -> String {
        let announced_keys = counted(announced, "key");
        let (cheating, more) = match tested {
            None => (None, String::new()),
            Some(Tested { most, .. }) if most == announced => {
                (None, format!(". It announced {announced_keys}, and can have tested no more"))
            }
            Some(tested) => {
                let words = tested.words();
                let cheating = format!(
                    ". It announced {announced_keys}; if it cheated, it can have tested more keys than that: {words}"
                );
                (Some(cheating), String::new())
            }
        };
        self.learns(About::Local, keys, cheating, &more)
    }

    /// What a peer that cheats gains besides, if it can gain anything, and what else is to be said.
    fn learns(&self, about: About<'_>, keys: u64, cheating: Option<String>, more: &str) -> String {
        let elements = Elements::of(self.key.as_ref());
        let count = elements.counted(keys);
        let has = format!("that {} {count}", about.does("have", "has"));
        let what = match self.learns {
            Learns::Me => match &self.reveal {
                Reveal::Payload(_) => format!(
                    "{has}, and which columns of its rows {}; nothing else",
                    about.does("asked for", "asked for")
                ),
                _ => format!("{has}; nothing else"),
            },
            Learns::Peer | Learns::Both => {
                let result = match &self.each {
                    Some(each) => each.words(&reveal::withheld(self.min_matches)),
                    None => self.reveal.words(self.min_matches, elements, about),
                };
                let (clipped, owner) = (self.clipped_words(), self.owner_words(keys, about));
                let honest = if cheating.is_some() { " if it follows the protocol" } else { "" };
                let cheating = cheating.unwrap_or_default();
                format!("{has}, and {result}{clipped}; nothing else{honest}{owner}{cheating}{more}")
            }
        };
        super::learned(self.security, &what)
    }

    /// Intersects our `elements` (byte strings, each once) with the peer's, which may be as many as
    /// `most_peer_keys`: rows are revealed.
    ///
    /// Errors as [`run_with`](Self::run_with), and where the job reveals something else.
    pub fn run<E: AsRef<[u8]> + Sync>(
        &self,
        channels: &mut [Channel],
        base: &(dyn BaseOt + Send + Sync),
        elements: &[E],
        most_peer_keys: u64,
        observer: &dyn Observer,
    ) -> Result<Outcome> {
        match self.run_with(channels, base, elements, Gift::None, most_peer_keys, observer)? {
            Revealed::Rows(outcome, _) => Ok(outcome),
            _ => Err(Error::Parameter { name: "reveal", what: "this call gives rows; use run_with".into() }),
        }
    }

    /// As [`run`](Self::run) for every kind of result: `gift` is what we give, a [`Gift::Column`] where the
    /// column that is added up is ours, a [`Gift::Table`] where the peer asks for our columns.
    ///
    /// Errors as [`check`](Self::check), [`tacit_psi::paxos::run`], [`payload::run`],
    /// [`circuit::aggregate`] and [`sorted::aggregate`]; nothing is returned unless every check passed.
    pub fn run_with<E: AsRef<[u8]> + Sync>(
        &self,
        channels: &mut [Channel],
        base: &(dyn BaseOt + Send + Sync),
        elements: &[E],
        gift: Gift<'_>,
        most_peer_keys: u64,
        observer: &dyn Observer,
    ) -> Result<Revealed> {
        self.check()?;
        // What is given may be more than `give` says.
        self.check_owner_of(!self.give.is_empty() || !matches!(gift, Gift::None))?;
        self.check_keys(elements.len() as u64)?;
        let options = paxos::Options {
            learns: self.learns,
            security: self.security,
            min_peer_elements: self.peer_keys.unwrap_or(0),
            max_peer_elements: self.peer_keys.map_or(most_peer_keys, |keys| keys.min(most_peer_keys)),
            base,
        };
        if self.reveal == Reveal::Rows {
            let (outcome, why) = self.rows(channels, elements, &options, observer)?;
            return Ok(Revealed::Rows(outcome, why));
        }
        let entry = if self.reveal.is_aggregate() { self.aggregates_by() } else { &VOLE };
        let course = Course::begin(entry.intersection()?.phases, channels, 0, observer);
        let channel = super::first(channels)?;
        let mut told = |phase: paxos::Phase, done, total| course.at(phase as usize, done, total);
        let prg = &mut Prg::from_os();
        if let Reveal::Payload(columns) = &self.reveal {
            let asked: Vec<&str> = columns.iter().map(String::as_str).collect();
            let side = reveal::side(&asked, gift);
            let widths = |widths: &Widths| observer.columns(widths);
            let bounds = payload::Bounds { key: self.max_cell, memory: self.row_memory, told: Some(&widths) };
            return Ok(Revealed::Kept(payload::collect_one_of(
                channel, prg, elements, side, &bounds, &options, 0, &mut told,
            )?));
        }
        if let Reveal::Of(statistic, _) = self.reveal {
            let numbers = match gift {
                Gift::Numbers(numbers) => Some(statistic.clipped(numbers, self.bounds)),
                _ => None,
            };
            let numbers = numbers.as_deref().map(Vec::as_slice);
            let ours = numbers.is_some();
            let owner = usize::from(ours != (channel.party() == Party::First));
            let then =
                |b: &mut Builder, places: &[Place]| Ok(statistic.compute(b, places, owner, self.min_matches));
            let fold = |places, silent: [bool; 2]| statistic.fold(places, owner, silent, self.min_matches);
            let folding =
                Folding { fold: &fold, size: folded::Size::default(), absent: Some(statistic.absent()) };
            let then: (&shared::TryThen<'_>, _, bool) = (&then, Some(folding), self.result_to_owner);
            let (outputs, keys) = shared::run(channels, base, elements, numbers, then, &options, observer)?;
            let found = outputs.and_then(|outputs| Statistic::read(&outputs));
            return Ok(Revealed::Statistic(found, keys));
        }
        if let (Reveal::Shares, Some(each)) = (&self.reveal, &self.each) {
            let numbers = match gift {
                Gift::Numbers(numbers) => Some(numbers),
                _ => None,
            };
            let then =
                |b: &mut Builder, places: &[Place]| each.compute(b, places, self.min_matches, self.bounds);
            let fold = |places, silent: [bool; 2]| each.fold(places, silent, self.min_matches, self.bounds);
            let folding = Folding { fold: &fold, size: each.size(), absent: None };
            let then: (&shared::TryThen<'_>, _, bool) = (&then, Some(folding), self.result_to_owner);
            let (outputs, keys) = shared::run(channels, base, elements, numbers, then, &options, observer)?;
            let total = outputs.and_then(|outputs| each.read(&outputs, self.bounds));
            return Ok(Revealed::Total(total, keys));
        }
        let part = reveal::part(&self.reveal, gift)?;
        let aggregate = match self.security {
            Security::Malicious => sorted::aggregate,
            Security::SemiHonest => circuit::aggregate,
        };
        let limits = Limits { min_matches: self.min_matches, bounds: self.bounds };
        let outcome = aggregate(channel, prg, elements, part, limits, &options, &mut told)?;
        Ok(Revealed::Aggregate(outcome))
    }

    /// Shares the intersection, and opens what `then` makes of it, a function of your own, to those who get
    /// the result: for each place whether it holds a common key, and both sides' numbers of that key (ours
    /// are `numbers`, one an element, if we give some). Returns the outputs if that is us, and the peer's
    /// distinct keys.
    ///
    /// The numbers of a side that gets the outputs are zero to `then` unless
    /// [`result_to_owner`](Self::result_to_owner) is set on both sides, and then no more bits come out than
    /// [`owner::MOST_CARRIED`]: by its numbers it can make each of them tell it of one key.
    ///
    /// Semi-honest, up to [`MAX_SHARED`] keys a side; [`agreement`](Self::agreement) does not name the
    /// function, which both sides compare by its circuit. Errors as [`circuit::shares`], where the
    /// functions differ, and where we give numbers and get what they make without that word.
    pub fn run_shared<E: AsRef<[u8]> + Sync>(
        &self,
        channels: &mut [Channel],
        base: &(dyn BaseOt + Send + Sync),
        elements: &[E],
        numbers: Option<&[i64]>,
        then: &Then<'_>,
        observer: &dyn Observer,
    ) -> Result<(Option<Vec<BitVec>>, u64)> {
        let options = paxos::Options {
            learns: self.learns,
            security: self.security,
            min_peer_elements: 0,
            max_peer_elements: MAX_SHARED,
            base,
        };
        self.check()?;
        if self.reveal != Reveal::Shares {
            let what = "a function of your own needs shares".to_owned();
            return Err(Error::Parameter { name: "reveal", what });
        }
        if elements.len() as u64 > MAX_SHARED {
            return Err(Error::Input(format!(
                "a circuit accepts at most {MAX_SHARED} keys per side; give fewer"
            )));
        }
        self.check_owner_of(!self.give.is_empty() || numbers.is_some())?;
        let then = |b: &mut Builder, places: &[Place]| self.opened(then(b, places));
        shared::run(
            channels,
            base,
            elements,
            numbers,
            (&then, None, self.result_to_owner),
            &options,
            observer,
        )
    }

    fn rows<E: AsRef<[u8]> + Sync>(
        &self,
        channels: &mut [Channel],
        elements: &[E],
        options: &paxos::Options<'_>,
        observer: &dyn Observer,
    ) -> Result<(Outcome, Option<String>)> {
        // Only lengths are told here, which every protocol announces anyway.
        let (mut picked, mut announced) = ((self.protocol, None), None);
        if self.protocol == Protocol::Auto {
            let channel = super::first(channels)?;
            let own = elements.len() as u64;
            channel.send_u64(own)?;
            channel.flush()?;
            let peer = channel.recv_u64()?;
            self.as_said(peer)?;
            picked = self.pick(channel, own, peer)?;
            announced = Some(peer);
        }
        let (protocol, why) = picked;
        let entry = if protocol == Protocol::Paxos { &PAXOS } else { &VOLE };
        let course = Course::begin(entry.intersection()?.phases, channels, 0, observer);
        let channel = super::first(channels)?;
        let mut told = |phase: paxos::Phase, done, total| course.at(phase as usize, done, total);
        let run = if protocol == Protocol::Paxos { paxos::run } else { vole_psi::run };
        // Bounds and the choice went by what was announced: another size ends the run before the hash is known.
        let said = announced.unwrap_or(options.min_peer_elements);
        let most = announced.map_or(options.max_peer_elements, |keys| keys.min(options.max_peer_elements));
        let options = paxos::Options { min_peer_elements: said, max_peer_elements: most, ..*options };
        let outcome = run(channel, &mut Prg::from_os(), elements, &options, &mut told)?;
        Ok((outcome, why))
    }

    /// An error where the peer has other keys than it said before.
    fn as_said(&self, keys: u64) -> Result<()> {
        match self.peer_keys.filter(|said| *said != keys) {
            None => Ok(()),
            Some(said) => {
                Err(Error::Peer(format!("the peer first announced {said}, then {}", counted(keys, "key"))))
            }
        }
    }

    /// Who gets a result, in a word.
    pub const fn result_name(&self) -> &'static str {
        self.learns.name()
    }
}

/// The most keys, `asked` at most, that `fits` says yes to: what is needed never falls as the peer's set grows.
pub(super) fn most_that_fit(asked: u64, fits: impl Fn(u64) -> bool) -> u64 {
    let (mut fitting, mut too_many) = (0, asked + 1);
    while too_many - fitting > 1 {
        let middle = fitting.midpoint(too_many);
        if fits(middle) { fitting = middle } else { too_many = middle }
    }
    fitting
}

/// Adds what makes a key to what both parties must agree on.
pub(super) fn agree_key(agreement: Agreement, key: &KeySpec) -> Agreement {
    let normalisation = key.normalisation;
    identifiers::agree(agreement, key)
        .with("case-fold", normalisation.case_fold)
        .with("nfc", normalisation.nfc)
        .with("trim", normalisation.trim)
        .with(differences::KEYS, key.agreement())
}

/// Places in each of so many buckets, for a set of `keys`: its size alone determines them.
pub fn bucket_places(keys: u64, buckets: u64) -> u64 {
    buckets::capacity::capacity(keys, buckets, buckets::OVERFLOW_BITS)
}
