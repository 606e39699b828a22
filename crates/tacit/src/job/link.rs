//! A random identifier for each row of both sides' tables, the same where keys match; and neither side learns which
//! of its rows those are.
//!
//! Identifiers are new in every run, and rows with one key have one. They can be keys of later jobs: an intersection or
//! a question on two outputs of one run gives what it would give on the keys. Not to be confused with
//! [`crate::link`], which measures a connection.
//!
//! ```
//! use tacit::{Security, Session, job::link};
//! # fn plain(session: Session) -> tacit::Result<Session> { session.plaintext() }
//! let job = link::Job::new(Security::SemiHonest);
//! let side = |session: Session, keys: &[&str]| -> tacit::Result<_> {
//!     let session = session.security(Security::SemiHonest);
//!     Ok(session.run_link(&job, keys, link::MAX_ELEMENTS as u64, &())?.result.identifiers)
//! };
//! # let other = job.clone();
//! # let peer = std::thread::spawn(move || {
//! #     let session = plain(Session::listen("127.0.0.1:7712"))?.security(Security::SemiHonest);
//! #     Ok::<_, tacit::Error>(session.run_link(&other, &["ann", "bob"], 10, &())?.result.identifiers)
//! # });
//! # let session = plain(Session::connect("127.0.0.1:7712"))?;
//! let mine = side(session, &["bob", "cleo"])?; // the peer has ann and bob
//! # let theirs = peer.join().unwrap()?;
//! assert!(mine[0] == theirs[1] && mine[1] != theirs[0]);
//! # Ok::<(), tacit::Error>(())
//! ```

pub use tacit_psi::link::Linked;
pub use tacit_psi::paxos::MAX_ELEMENTS;

use super::psi::{self, Tested};
use super::{Course, Observer};
use crate::catalogue::{Candidate, Entry, LINK, Link, Machine, Sizes};
use crate::{Error, Result, Security};
use std::io::Write;
use std::path::Path;
use tacit_crypto::text::counted;
use tacit_crypto::{Block, Prg, hex};
use tacit_data::records::{KeySet, KeySpec};
use tacit_data::table::Source;
use tacit_net::{Agreement, Channel};
use tacit_ot::BaseOt;
use tacit_psi::link as protocol;
use tacit_psi::paxos::{Learns, Options, Outcome};
use zeroize::Zeroizing;

/// The usual name of the column of identifiers.
pub const ID_COLUMN: &str = "link_id";

/// The steps of a direction, of which each is a phase.
const STEPS: usize = 4;

/// A link: against which peer, and what makes a key.
#[derive(Clone, Debug)]
pub struct Job {
    /// Against which peer; both sides must say the same.
    pub security: Security,
    /// What makes a row's key; without it keys are byte strings. Both sides' must fit.
    pub key: Option<KeySpec>,
    /// The most keys that the peer may have, if the caller says so.
    pub most_peer_keys: Option<u64>,
}

impl Job {
    /// A link of byte strings.
    pub fn new(security: Security) -> Self {
        Job { security, key: None, most_peer_keys: None }
    }

    /// An error where a row would have several keys, and so several identifiers.
    pub fn check(&self) -> Result<()> {
        let Some(key) = &self.key else { return Ok(()) };
        if key.has_several() {
            let what = "a row gets one identifier, so it has one key here; link by one, or find matches by several \
                        with an intersection";
            return Err(Error::Parameter { name: "or-key", what: what.to_owned() });
        }
        psi::refuse_variants(key, "a link takes")
    }

    /// What both parties must agree on before they start.
    pub fn agreement(&self, base: &dyn BaseOt) -> Agreement {
        let agreement = Agreement::new("link", "party", "party").with("base-ot", base.name());
        match &self.key {
            Some(key) => psi::agree_key(agreement, key),
            None => agreement.with("key", "bytes"),
        }
    }

    /// Bytes that a party with `own` distinct keys holds at most if the peer has `peer` of them.
    pub fn memory(&self, own: u64, peer: u64) -> u64 {
        let sizes = Sizes {
            own,
            peer,
            learns: Learns::Both,
            security: self.security,
            columns: false,
            whole_circuit: false,
        };
        let held = LINK.intersection().map_or(u64::MAX, |entry| (entry.memory)(&sizes));
        (18u64 << 20).saturating_add(held)
    }

    /// The most keys that the peer may have beside our `own`: those asked for, but no more than `available`
    /// bytes of memory, if that is known, have room for.
    pub fn most_peer_keys(&self, own: u64, available: Option<u64>) -> u64 {
        let asked = self.most_peer_keys.unwrap_or(u64::MAX).min(MAX_ELEMENTS as u64);
        match available {
            Some(available) => psi::most_that_fit(asked, |keys| self.memory(own, keys) <= available),
            None => asked,
        }
    }

    /// What a run with `keys` on each side would cost.
    ///
    /// An error if the sets are larger than the protocol takes.
    pub fn estimate(&self, keys: u64, link: &Link, machine: &Machine) -> Result<Candidate> {
        LINK.intersection_cost(keys, self.security, link, machine)
    }

    /// Of how many keys a peer that announced `announced` can have identifiers if it cheats, beside `own` of ours;
    /// `None` where nothing is promised of it.
    pub fn tested(&self, announced: u64, own: u64) -> Result<Option<Tested>> {
        if self.security != Security::Malicious {
            return Ok(None);
        }
        let outcome = Outcome {
            matches: None,
            peer_elements: announced,
            peer_received: true,
            protocol: protocol::NAME,
        };
        psi::bound(std::iter::once::<&'static Entry>(&LINK), &outcome, own).map(Some)
    }

    /// What the other side will learn of our `keys` if it announces `announced` of its own.
    pub fn will_learn(&self, keys: u64, announced: u64) -> Result<String> {
        let says = format!("If it announces {} and cheats, it can get", counted(announced, "key"));
        self.learns(keys, announced, &says)
    }

    /// What it learned, where it announced `announced`.
    pub fn has_learned(&self, keys: u64, announced: u64) -> Result<String> {
        let says = format!("It announced {}; if it cheated, it can have", counted(announced, "key"));
        self.learns(keys, announced, &says)
    }

    fn learns(&self, keys: u64, announced: u64, says: &str) -> Result<String> {
        let more = match self.tested(announced, keys)? {
            Some(tested) if tested.most > announced => {
                format!(". {says} identifiers of more keys than that: {}", tested.words())
            }
            _ => String::new(),
        };
        let has = format!("that you have {}", counted(keys, "distinct key"));
        Ok(super::learned(self.security, &format!("{has}; nothing else, so not which rows match{more}")))
    }

    /// Gives each of our `elements` (byte strings, each once) its identifier; the peer may have as many as
    /// `most_peer_keys`.
    ///
    /// Errors as [`check`](Self::check) and [`tacit_psi::link::run`]; nothing is returned unless every check passed.
    pub fn run<E: AsRef<[u8]> + Sync>(
        &self,
        channels: &mut [Channel],
        base: &(dyn BaseOt + Send + Sync),
        elements: &[E],
        most_peer_keys: u64,
        observer: &dyn Observer,
    ) -> Result<Linked> {
        self.check()?;
        let options = Options {
            learns: Learns::Both,
            security: self.security,
            min_peer_elements: 0,
            max_peer_elements: most_peer_keys,
            base,
        };
        let course = Course::begin(LINK.intersection()?.phases, channels, 0, observer);
        let channel = super::first(channels)?;
        let told = &mut |direction, phase, done, total| {
            course.at(direction * STEPS + phase as usize, done, total);
        };
        Ok(protocol::run(channel, &mut Prg::from_os(), elements, &options, told)?)
    }
}

/// An error where a table cannot get a column of identifiers of this name in a file called `target`.
pub fn check_column(source: &Source, column: &str, target: Option<&Path>) -> Result<()> {
    let refuse = |what: String| Err(Error::Parameter { name: "id-column", what });
    if column.trim().is_empty() {
        return refuse("the column needs a name".to_owned());
    }
    if source.column_names().iter().any(|name| name.trim() == column.trim()) {
        let column = tacit_net::shown(column.trim());
        return refuse(format!("your table has a column `{column}` already; choose another name"));
    }
    match target {
        Some(target) => Ok(source.holds_ahead(target, column.trim(), &text(&Block::ZERO))?),
        None => Ok(()),
    }
}

/// An identifier as it is written: 32 lower-case digits of base 16.
pub fn text(identifier: &Block) -> String {
    hex(&identifier.to_bytes())
}

/// Writes all rows of `source` to `output`, which is called `target`, behind their identifiers in a column of this
/// name. `identifiers` are in the order of the elements of `keys`; a row without a key gets one that no other row has
/// on either side. Returns the number of rows.
pub fn write(
    source: &Source,
    keys: &KeySet,
    identifiers: &[Block],
    column: &str,
    target: &Path,
    output: &mut (impl Write + Send),
) -> Result<u64> {
    Ok(source.write_ahead(keys, column.trim(), cells(identifiers), target, output)?)
}

/// The texts of rows' identifiers, in the order of rows: of the one with this element, or without one.
pub fn cells(identifiers: &[Block]) -> impl FnMut(Option<usize>) -> String {
    let mut prg = Prg::from_os();
    let mut drawn = Zeroizing::new([Block::ZERO]);
    move |element| match element.and_then(|element| identifiers.get(element)) {
        Some(identifier) => text(identifier),
        None => {
            prg.fill_blocks(&mut drawn[..]);
            text(&drawn[0])
        }
    }
}
