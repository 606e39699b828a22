//! The handshake: both parties learn that they run the same version of the same protocol with the same parameters in
//! matching roles, and agree on a session id that neither chose alone.
//!
//! 1. Each party sends its hello: wire version, 32 random bytes, protocol, roles, parameters by name.
//! 2. Each compares the peer's hello with its own; both see the same difference, and both name it.
//! 3. The session id is a hash of both hellos and, over TLS, of its exporter, which ties the session to this very
//!    connection. Each sends a tag of it, so that a hello changed on the way is noticed here.
//!
//! Further connections of a session greet with a tag of the session's id, their number and their end.
//! Two round trips; a few hundred bytes.

use crate::error::printable;
use crate::{Channel, Error, Party, Result, SessionId};
use std::collections::BTreeMap;
use std::fmt::Display;

/// Version of the wire format. Peers of different versions part with an error.
pub const WIRE_VERSION: u32 = 1;

const MAGIC: &[u8; 6] = b"TACIT\0";
const MAX_HELLO: usize = 1 << 16;
const TAG: usize = 32;
const OPENING: u8 = 0;
const JOINING: u8 = 1;

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

    /// Adds a parameter that must be equal on both sides; its name and values appear in the error when it is not.
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

    fn encode(&self, nonce: &[u8; 32]) -> Result<Vec<u8>> {
        let mut out = preamble(OPENING);
        out.extend_from_slice(nonce);
        for text in [&self.protocol, &self.role, &self.peer_role] {
            put(&mut out, text)?;
        }
        for (name, value) in &self.parameters {
            put(&mut out, name)?;
            put(&mut out, value)?;
        }
        if out.len() > MAX_HELLO {
            return Err(Error::Usage("the parameters are too long for a handshake".to_owned()));
        }
        Ok(out)
    }

    fn decode(mut rest: &[u8]) -> Result<Self> {
        let _nonce = cut(&mut rest, 32)?;
        let mut agreement = Agreement::new(text(&mut rest)?, text(&mut rest)?, text(&mut rest)?);
        while !rest.is_empty() {
            let name = text(&mut rest)?;
            let value = text(&mut rest)?;
            agreement.parameters.insert(name, value);
        }
        Ok(agreement)
    }

    /// The first difference between this party's terms and the peer's, in the order protocol, roles, parameters.
    fn check(&self, theirs: &Agreement) -> Result<()> {
        differ("the protocol", Some(&self.protocol), Some(&theirs.protocol))?;
        if theirs.role != self.peer_role || theirs.peer_role != self.role {
            return Err(Error::Role {
                ours: self.role.clone(),
                wanted: self.peer_role.clone(),
                theirs: shown(Some(&theirs.role)),
            });
        }
        for name in self.parameters.keys().chain(theirs.parameters.keys()) {
            differ(name, self.parameters.get(name), theirs.parameters.get(name))?;
        }
        Ok(())
    }
}

fn differ(field: &str, ours: Option<&String>, theirs: Option<&String>) -> Result<()> {
    if ours == theirs {
        return Ok(());
    }
    let field = printable(field.as_bytes()).trim_matches('"').to_owned();
    Err(Error::Mismatch { field, ours: shown(ours), theirs: shown(theirs) })
}

fn shown(value: Option<&String>) -> String {
    value.map_or("unset".to_owned(), |value| printable(value.as_bytes()))
}

fn preamble(kind: u8) -> Vec<u8> {
    [MAGIC.as_slice(), &WIRE_VERSION.to_le_bytes(), &[kind]].concat()
}

fn put(out: &mut Vec<u8>, text: &str) -> Result<()> {
    let length = u16::try_from(text.len());
    let length =
        length.map_err(|_| Error::Usage(format!("a handshake field of {} bytes is too long", text.len())))?;
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

/// Receives a hello of the wanted kind and returns it whole.
fn receive(channel: &mut Channel, kind: u8) -> Result<Vec<u8>> {
    let hello = channel.recv_hello(MAX_HELLO)?;
    let mut rest = hello.as_slice();
    if cut(&mut rest, MAGIC.len())? != MAGIC {
        return Err(channel.stranger(&hello));
    }
    let version = cut(&mut rest, 4)?;
    let theirs = version.iter().rev().fold(0u32, |value, &byte| value << 8 | u32::from(byte));
    if theirs != WIRE_VERSION {
        return Err(Error::Version { ours: WIRE_VERSION, theirs });
    }
    match (cut(&mut rest, 1)?[0], kind) {
        (OPENING, JOINING) => {
            Err(Error::Malformed("a new session where a further channel of this one was due"))
        }
        (JOINING, OPENING) => {
            Err(Error::Malformed("a further channel of another session where a new one was due"))
        }
        (found, wanted) if found != wanted => Err(Error::Malformed("a greeting of unknown kind")),
        _ => Ok(hello),
    }
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

/// Opens a session over a fresh channel. `binding` is the TLS exporter, or empty without TLS.
pub(crate) fn open(channel: &mut Channel, agreement: &Agreement, binding: &[u8]) -> Result<SessionId> {
    let mut nonce = [0u8; 32];
    tacit_crypto::Prg::from_os().fill_bytes(&mut nonce);
    let ours = agreement.encode(&nonce)?;
    channel.send_hello(&ours)?;
    let theirs = receive(channel, OPENING)?;
    agreement.check(&Agreement::decode(&theirs[preamble(OPENING).len()..])?)?;

    let (first, second) = match channel.party() {
        Party::First => (&ours, &theirs),
        Party::Second => (&theirs, &ours),
    };
    let id = SessionId(hash("tacit 1 session id", &[first, second, binding]));
    confirm(channel, "tacit 1 session confirmation", &[&id.0])?;
    channel.set_session(id);
    Ok(id)
}

/// Joins a fresh channel to a session as its channel `index`; its own id is derived from the session's.
pub(crate) fn join(channel: &mut Channel, session: SessionId, index: u16, binding: &[u8]) -> Result<()> {
    let index = index.to_le_bytes();
    let mut hello = preamble(JOINING);
    hello.extend_from_slice(&hash("tacit 1 channel join", &[&session.0, &index, &side(channel.party())]));
    channel.send_hello(&hello)?;
    let theirs = receive(channel, JOINING)?;
    let wanted = hash("tacit 1 channel join", &[&session.0, &index, &side(other(channel.party()))]);
    if !same(&theirs[preamble(JOINING).len()..], &wanted) {
        return Err(Error::Malformed("the channel belongs to another session"));
    }
    let id = hash("tacit 1 channel id", &[&session.0, &index, binding]);
    confirm(channel, "tacit 1 channel confirmation", &[&id])?;
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
