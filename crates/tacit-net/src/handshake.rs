//! The handshake: both parties learn that they run the same version of the same protocol with the same
//! parameters in matching roles, and agree on a session id that neither chose alone.
//!
//! 1. The party that connected sends its hello: wire version, release, 32 random bytes, protocol, roles,
//!    parameters by name, in their order, each once. The one that listened answers with its own; it says
//!    nothing to who did not greet.
//! 2. Each compares the peer's hello with its own, wire version and release before anything else; both see
//!    the same differences, and both name them, with what either side said.
//! 3. The session id is a hash of both hellos and, over TLS, of its exporter, which ties the session to this
//!    very connection. Each sends a tag of it, so that a hello changed on the way is noticed here.
//!
//! Further connections of a session greet with a tag of the session's id, their number and their end.
//! A round trip and a half, the listener's hello and tag travelling together; a few hundred bytes.

use crate::error::{Difference, printable, quoted};
use crate::{Channel, Error, Party, Result, SessionId};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use tacit_crypto::text::counted;

/// Version of the wire format. Peers of different versions part with an error. Version 2 took parameters in
/// any order, and twice.
pub const WIRE_VERSION: u32 = 4;

/// The release of this side. Peers of different releases part with an error that names both.
pub const RELEASE: &str = env!("CARGO_PKG_VERSION");

const MAGIC: &[u8; 6] = b"TACIT\0";
const MAX_HELLO: usize = 1 << 16;
/// Longest name of a release, and of a parameter.
const MAX_RELEASE: usize = 64;
const MAX_NAME: usize = 64;
/// Most parameters, the sum of all that a job has.
const MAX_PARAMETERS: usize = 64;
const TAG: usize = 32;
pub(crate) const OPENING: u8 = 0;
const JOINING: u8 = 1;

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// A new session.
    Opening,
    /// A further channel of a session.
    Joining,
}

/// The peer's hello, as far as it is the same for every purpose: this release's own.
pub(crate) struct Hello {
    whole: Vec<u8>,
    pub(crate) purpose: Purpose,
    /// Where the part begins that depends on the purpose.
    body: usize,
}

impl Hello {
    fn body(&self) -> &[u8] {
        &self.whole[self.body..]
    }
}

/// What two parties must agree on before anything secret is used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Agreement {
    protocol: String,
    role: String,
    peer_role: String,
    parameters: BTreeMap<String, String>,
}

impl Agreement {
    /// A run of `protocol` in which this party plays `role` and the peer `peer_role`.
    pub fn new(protocol: impl Into<String>, role: impl Into<String>, peer_role: impl Into<String>) -> Self {
        Agreement {
            protocol: protocol.into(),
            role: role.into(),
            peer_role: peer_role.into(),
            parameters: BTreeMap::new(),
        }
    }

    /// Adds a parameter that must be equal on both sides; its name and values appear in the error when it is
    /// not.
    pub fn with(mut self, name: impl Into<String>, value: impl Display) -> Self {
        self.parameters.insert(name.into(), value.to_string());
        self
    }

    /// The protocol's name.
    pub fn protocol(&self) -> &str {
        &self.protocol
    }

    /// The role of this party.
    pub fn role(&self) -> &str {
        &self.role
    }

    /// The parameters by name.
    pub fn parameters(&self) -> &BTreeMap<String, String> {
        &self.parameters
    }

    /// Refuses terms that no hello can hold.
    pub(crate) fn fits(&self) -> Result<()> {
        self.encode(RELEASE, &[0; 32]).map(|_| ())
    }

    pub(crate) fn encode(&self, release: &str, nonce: &[u8; 32]) -> Result<Vec<u8>> {
        let mut out = preamble(release, OPENING);
        out.extend_from_slice(nonce);
        for text in [&self.protocol, &self.role, &self.peer_role] {
            put(&mut out, text)?;
        }
        if self.parameters.len() > MAX_PARAMETERS {
            return Err(Error::Usage("too many parameters for a handshake".to_owned()));
        }
        for (name, value) in &self.parameters {
            if name.len() > MAX_NAME {
                return Err(Error::Usage(format!(
                    "a parameter's name of {} is too long",
                    counted(name.len(), "byte")
                )));
            }
            put(&mut out, name)?;
            put(&mut out, value)?;
        }
        if out.len() > MAX_HELLO {
            return Err(Error::Usage("the parameters are too long for a handshake".to_owned()));
        }
        Ok(out)
    }

    pub(crate) fn decode(mut rest: &[u8]) -> Result<Self> {
        let _nonce = cut(&mut rest, 32)?;
        let mut agreement = Agreement::new(text(&mut rest)?, text(&mut rest)?, text(&mut rest)?);
        while !rest.is_empty() {
            let name = text(&mut rest)?;
            let value = text(&mut rest)?;
            if name.len() > MAX_NAME || agreement.parameters.len() >= MAX_PARAMETERS {
                return Err(Error::Malformed("the greeting has too many parameters, or too long a name"));
            }
            if agreement.parameters.last_key_value().is_some_and(|(last, _)| *last >= name) {
                return Err(Error::Malformed("the greeting's parameters are out of order"));
            }
            agreement.parameters.insert(name, value);
        }
        Ok(agreement)
    }

    /// The differences between this party's terms and the peer's: the jobs, else the parameters, else the
    /// roles.
    pub(crate) fn check(&self, theirs: &Agreement) -> Result<()> {
        if self.protocol != theirs.protocol {
            let job = Difference::new(Difference::JOB, Some(&self.protocol), Some(&theirs.protocol));
            let role = Difference::new(Difference::ROLE, Some(&self.role), Some(&theirs.role));
            return Err(Error::Mismatch { differences: vec![job, role] });
        }
        let names: BTreeSet<&String> = self.parameters.keys().chain(theirs.parameters.keys()).collect();
        let differences: Vec<Difference> = names
            .into_iter()
            .map(|name| (name, self.parameters.get(name), theirs.parameters.get(name)))
            .filter(|(_, ours, theirs)| ours != theirs)
            .map(|(name, ours, theirs)| Difference::new(name, ours, theirs))
            .collect();
        if !differences.is_empty() {
            return Err(Error::Mismatch { differences });
        }
        // Last: what a role is can follow from a parameter, so a difference of that one is the cause.
        if theirs.role != self.peer_role || theirs.peer_role != self.role {
            return Err(Error::Role {
                ours: self.role.clone(),
                wanted: self.peer_role.clone(),
                theirs: quoted(&theirs.role),
            });
        }
        Ok(())
    }
}

/// What every hello begins with. Magic and wire version stand first in all releases, the name of the release
/// next from wire version 2 on, so that any two of them can say what they are.
pub(crate) fn preamble(release: &str, kind: u8) -> Vec<u8> {
    let name = release.as_bytes();
    [MAGIC.as_slice(), &WIRE_VERSION.to_le_bytes(), &[name.len() as u8], name, &[kind]].concat()
}

fn put(out: &mut Vec<u8>, text: &str) -> Result<()> {
    let length = u16::try_from(text.len());
    let length = length.map_err(|_| {
        Error::Usage(format!("a handshake field of {} is too long", counted(text.len(), "byte")))
    })?;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

fn cut<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8]> {
    let (head, tail) =
        rest.split_at_checked(length).ok_or(Error::Malformed("the greeting ends too early"))?;
    *rest = tail;
    Ok(head)
}

fn text(rest: &mut &[u8]) -> Result<String> {
    let length = cut(rest, 2)?;
    let length = usize::from(length[0]) | usize::from(length[1]) << 8;
    let bytes = cut(rest, length)?;
    String::from_utf8(bytes.to_vec())
        .map_err(|_| Error::Malformed("the greeting is not text where it should be"))
}

/// Receives the peer's hello and checks that it is one of `release`, this side's.
fn receive(channel: &mut Channel, release: &str) -> Result<Hello> {
    let whole = channel.recv_hello(MAX_HELLO)?;
    let mut rest = whole.as_slice();
    if cut(&mut rest, MAGIC.len())? != MAGIC {
        return Err(channel.stranger(&whole));
    }
    let version = cut(&mut rest, 4)?;
    let version = version.iter().rev().fold(0u32, |value, &byte| value << 8 | u32::from(byte));
    let theirs = match version {
        // Wire version 1 did not name the release; 0.1.0 was its only one.
        0 | 1 => None,
        _ => Some(release_name(&mut rest)?),
    };
    if version != WIRE_VERSION || theirs.as_deref() != Some(release) {
        let theirs = match theirs {
            Some(theirs) => format!("{theirs} (wire format {version})"),
            None => format!("wire format {version}, before releases were named"),
        };
        return Err(Error::Release { ours: format!("{release} (wire format {WIRE_VERSION})"), theirs });
    }
    let purpose = match cut(&mut rest, 1)?[0] {
        OPENING => Purpose::Opening,
        JOINING => Purpose::Joining,
        _ => return Err(Error::Malformed("a greeting of unknown kind")),
    };
    let body = whole.len() - rest.len();
    Ok(Hello { whole, purpose, body })
}

/// The peer's name for its release, made safe to print.
fn release_name(rest: &mut &[u8]) -> Result<String> {
    let length = usize::from(cut(rest, 1)?[0]);
    if length > MAX_RELEASE {
        return Err(Error::Malformed("the greeting's name of a release is too long"));
    }
    let name = cut(rest, length)?;
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b".-+".contains(byte);
    Ok(match std::str::from_utf8(name) {
        Ok(text) if !name.is_empty() && name.iter().all(plain) => text.to_owned(),
        _ => printable(name),
    })
}

fn hash(context: &str, parts: &[&[u8]]) -> [u8; TAG] {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}

fn side(party: Party) -> [u8; 1] {
    [match party {
        Party::First => 1,
        Party::Second => 2,
    }]
}

fn other(party: Party) -> Party {
    match party {
        Party::First => Party::Second,
        Party::Second => Party::First,
    }
}

fn nonce() -> [u8; 32] {
    let mut nonce = [0u8; 32];
    tacit_crypto::Prg::from_os().fill_bytes(&mut nonce);
    nonce
}

/// Opens a session over a fresh channel that this side asked for. `binding` is the TLS exporter, or empty
/// without TLS.
pub(crate) fn open(channel: &mut Channel, agreement: &Agreement, binding: &[u8]) -> Result<SessionId> {
    open_as(RELEASE, channel, agreement, binding)
}

fn open_as(release: &str, channel: &mut Channel, agreement: &Agreement, binding: &[u8]) -> Result<SessionId> {
    let ours = agreement.encode(release, &nonce())?;
    channel.send_hello(&ours)?;
    let theirs = receive(channel, release)?;
    if theirs.purpose != Purpose::Opening {
        return Err(Error::Malformed("a further channel of another session where a new one was due"));
    }
    settle(channel, agreement, &ours, &theirs, binding)
}

/// Receives the hello of whoever connected. One that speaks Tacit as another release does, or TLS where there
/// is none, gets our hello in answer, so that both sides can say what is wrong.
pub(crate) fn hear(channel: &mut Channel, agreement: &Agreement) -> Result<Hello> {
    hear_as(RELEASE, channel, agreement)
}

fn hear_as(release: &str, channel: &mut Channel, agreement: &Agreement) -> Result<Hello> {
    let heard = receive(channel, release);
    if let Err(Error::Release { .. } | Error::NotTacit { .. }) = &heard {
        channel.part_with_hello(&agreement.encode(release, &nonce())?);
    }
    heard
}

/// Opens the session that the other side's hello, of purpose [`Purpose::Opening`], asks for.
pub(crate) fn answer(
    channel: &mut Channel,
    agreement: &Agreement,
    hello: &Hello,
    binding: &[u8],
) -> Result<SessionId> {
    let ours = agreement.encode(RELEASE, &nonce())?;
    channel.send_hello(&ours)?;
    settle(channel, agreement, &ours, hello, binding)
}

/// As [`answer`] on a channel that has greeted before, where a hello may have any purpose.
pub(crate) fn answer_anew(
    channel: &mut Channel,
    agreement: &Agreement,
    hello: &Hello,
    binding: &[u8],
) -> Result<SessionId> {
    match hello.purpose {
        Purpose::Opening => answer(channel, agreement, hello, binding),
        Purpose::Joining => Err(Error::Malformed("a further channel where a new agreement was due")),
    }
}

/// Both hellos are there: compares the terms, and confirms the session's id.
fn settle(
    channel: &mut Channel,
    agreement: &Agreement,
    ours: &[u8],
    theirs: &Hello,
    binding: &[u8],
) -> Result<SessionId> {
    agreement.check(&Agreement::decode(theirs.body())?)?;
    let (first, second) = match channel.party() {
        Party::First => (ours, theirs.whole.as_slice()),
        Party::Second => (theirs.whole.as_slice(), ours),
    };
    let id = SessionId(hash("tacit 3 session id", &[first, second, binding]));
    confirm(channel, "tacit 3 session confirmation", &[&id.0])?;
    channel.set_session(id);
    Ok(id)
}

fn join_tag(session: SessionId, index: u16, end: Party) -> [u8; TAG] {
    hash("tacit 3 channel join", &[&session.0, &index.to_le_bytes(), &side(end)])
}

fn send_join(channel: &mut Channel, session: SessionId, index: u16) -> Result<()> {
    let mut hello = preamble(RELEASE, JOINING);
    hello.extend_from_slice(&join_tag(session, index, channel.party()));
    channel.send_hello(&hello)
}

/// Joins a fresh channel that this side asked for to a session as its channel `index`; its own id is derived
/// from the session's.
pub(crate) fn join(channel: &mut Channel, session: SessionId, index: u16, binding: &[u8]) -> Result<()> {
    send_join(channel, session, index)?;
    let theirs = receive(channel, RELEASE)?;
    if theirs.purpose != Purpose::Joining {
        return Err(Error::Malformed("a new session where a further channel of this one was due"));
    }
    if !belongs(&theirs, session, index, other(channel.party())) {
        return Err(Error::Malformed("the channel belongs to another session"));
    }
    seal_join(channel, session, index, binding)
}

/// Whether the hello of the connecting side proves that the channel is number `index` of the session.
pub(crate) fn is_channel_of(hello: &Hello, session: SessionId, index: u16) -> bool {
    hello.purpose == Purpose::Joining && belongs(hello, session, index, Party::Second)
}

fn belongs(hello: &Hello, session: SessionId, index: u16, end: Party) -> bool {
    same(hello.body(), &join_tag(session, index, end))
}

/// Joins a channel whose hello [`is_channel_of`] the session.
pub(crate) fn admit(channel: &mut Channel, session: SessionId, index: u16, binding: &[u8]) -> Result<()> {
    send_join(channel, session, index)?;
    seal_join(channel, session, index, binding)
}

fn seal_join(channel: &mut Channel, session: SessionId, index: u16, binding: &[u8]) -> Result<()> {
    let id = hash("tacit 3 channel id", &[&session.0, &index.to_le_bytes(), binding]);
    confirm(channel, "tacit 3 channel confirmation", &[&id])?;
    channel.set_session(SessionId(id));
    Ok(())
}

fn confirm(channel: &mut Channel, context: &str, parts: &[&[u8]]) -> Result<()> {
    let party = channel.party();
    let tag = |end| hash(context, &[&parts.concat(), &side(end)]);
    channel.send_hello(&tag(party))?;
    let theirs = channel.recv_hello(TAG)?;
    if !same(&theirs, &tag(other(party))) {
        return Err(Error::Malformed("the handshake was changed on its way"));
    }
    Ok(())
}

/// Compares tags without telling by time where they differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (x, y)| difference | (x ^ y)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory;

    fn terms(role: &str, peer_role: &str) -> Agreement {
        Agreement::new("test", role, peer_role)
    }

    /// Both sides' ends of a handshake between a listener of release `first` and a connector of release
    /// `second`.
    fn meet(first: &str, second: &str) -> (Result<()>, Result<()>) {
        let (first, second) = (first.to_owned(), second.to_owned());
        memory::run(
            move |channel| {
                let hello = hear_as(&first, channel, &terms("a", "b"))?;
                answer(channel, &terms("a", "b"), &hello, b"").map(|_| ())
            },
            move |channel| open_as(&second, channel, &terms("b", "a"), b"").map(|_| ()),
        )
    }

    /// Whatever a peer sends in place of its terms: an error of one line that steers nothing, or the very
    /// terms that these bytes stand for.
    #[test]
    fn mutated_greetings_are_refused_or_compared_and_never_more() {
        let ours = terms("a", "b").with("count", 1000).with("kind", "cot").with("set", "any");
        let theirs = terms("b", "a").with("count", 1001).with("kind", "rot").with("threads", "4");
        let whole = theirs.encode(RELEASE, &[7; 32]).unwrap();
        let body = whole.len() - (32 + 3 * 2 + 4 + 1 + 1 + 2 * 6 + 5 + 4 + 4 + 3 + 7 + 1);
        let honest = &whole[body..];
        assert_eq!(Agreement::decode(honest).unwrap(), theirs);
        let mut prg = tacit_crypto::Prg::from_seed(tacit_crypto::Block::new(5));
        let (mut compared, mut refused) = (0, 0);
        for _ in 0..100_000 {
            let mut bytes = honest.to_vec();
            for _ in 0..=prg.below(3) {
                let at = prg.below(bytes.len() as u64) as usize;
                match prg.below(5) {
                    0 => bytes[at] ^= 1 << prg.below(8),
                    1 => bytes[at] = prg.below(256) as u8,
                    2 => bytes.truncate(at.max(1)),
                    3 => bytes.insert(at, prg.below(256) as u8),
                    // A piece once more: parameters that come twice, or out of order.
                    _ => bytes.extend_from_within(at..),
                }
            }
            match Agreement::decode(&bytes) {
                Err(error) => {
                    refused += 1;
                    assert!(matches!(error, Error::Malformed(_)), "{error}");
                }
                Ok(decoded) => {
                    let mut nonce = [0; 32];
                    nonce.copy_from_slice(&bytes[..32]);
                    assert!(decoded.encode(RELEASE, &nonce).unwrap().ends_with(&bytes), "{decoded:?}");
                    let Err(error) = ours.check(&decoded) else { continue };
                    compared += 1;
                    let text = error.to_string();
                    assert!(matches!(error, Error::Mismatch { .. } | Error::Role { .. }), "{text}");
                    assert!(text.chars().all(|c| !c.is_control()) && text.len() < 4000, "{text}");
                }
            }
        }
        assert!(compared > 10_000 && refused > 10_000, "{compared} compared, {refused} refused");
    }

    #[test]
    fn every_difference_is_told_with_both_values_and_none_can_fake_another() {
        let ours = terms("a", "b").with("function", "sub32").with("rows", 4).with("set", "any");
        let theirs = terms("b", "a").with("function", "add32").with("rows", 4).with("code", "linear");
        let text = ours.check(&theirs).unwrap_err().to_string();
        let said = "settings differ: code (yours not given, peer's linear), function (yours sub32, peer's add32), \
                    set (yours any, peer's not given);";
        assert!(text.contains(said), "{text}");
        let hostile = terms("b", "a").with("function", "add32), rows (yours 5");
        let text = terms("a", "b").with("function", "x").check(&hostile).unwrap_err().to_string();
        assert!(text.contains("function (yours x, peer's \"add32), rows (yours 5\");"), "{text}");
        // Many differences make one line that somebody can read.
        let many =
            |value| (0..40).fold(terms("a", "b"), |terms, i| terms.with(format!("name {i:02}"), value));
        let mut theirs = many(2);
        (theirs.role, theirs.peer_role) = ("b".into(), "a".into());
        let text = many(1).check(&theirs).unwrap_err().to_string();
        assert!(text.contains("name 00 (yours 1, peer's 2)") && text.contains("and 32 more"), "{text}");
        let too_many = (0..65).fold(terms("a", "b"), |terms, i| terms.with(format!("{i:02}"), i));
        assert!(matches!(too_many.fits(), Err(Error::Usage(_))));
        assert!(matches!(terms("a", "b").with("x".repeat(65), 1).fits(), Err(Error::Usage(_))));
    }

    #[test]
    fn unequal_releases_refuse_each_other_and_both_name_both() {
        let (a, b) = meet(RELEASE, RELEASE);
        assert!(a.is_ok() && b.is_ok(), "{a:?} {b:?}");
        for (first, second) in [("0.1.0", "0.2.0"), ("0.2.0", "0.1.9"), ("1.0.0", "1.0.0-rc.1")] {
            let (a, b) = meet(first, second);
            let said = |outcome: Result<()>, ours: &str, theirs: &str| {
                let error = outcome.unwrap_err();
                assert!(matches!(error, Error::Release { .. }) && error.is_peer_fault(), "{error}");
                let text = error.to_string();
                assert!(text.contains(&format!("yours tacit {ours} ")), "{text}");
                assert!(text.contains(&format!("peer's {theirs} ")), "{text}");
            };
            said(a, first, second);
            said(b, second, first);
        }
    }

    #[test]
    fn the_name_of_a_release_cannot_steer_a_terminal_or_go_on_for_ever() {
        let (a, _) = meet("0.1.0", "\x1b[2J\n");
        let text = a.unwrap_err().to_string();
        assert!(text.contains(r#""\x1b[2J\n""#), "{text}");
        let (a, _) = meet("0.1.0", &"9".repeat(MAX_RELEASE + 1));
        assert!(matches!(a, Err(Error::Malformed(_))), "{a:?}");
    }
}
