//! What two parties say before they compute on what they have in common: their sizes, and what is revealed.

use crate::limits::{Bounds, Limits};
use crate::paxos::{Hello, Options};
use crate::{Error, Result};
use tacit_net::{Channel, Party};

const TERMS: usize = 32;

/// Which protocol is announced.
pub(crate) struct Wire {
    pub(crate) name: &'static str,
    /// Name and version.
    pub(crate) magic: [u8; 16],
    /// The most elements a set may have.
    pub(crate) most: usize,
}

/// What is revealed, by its number on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Count = 1,
    Sum = 2,
    Mean = 3,
    Shares = 4,
}

/// What the parties do, beyond the announcements.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) kind: Kind,
    /// Whose column it is.
    pub(crate) owner: Option<Party>,
    /// Whether this side gives numbers to share.
    pub(crate) gives: bool,
    pub(crate) limits: Limits,
}

impl Terms {
    fn encode(&self) -> [u8; TERMS] {
        let mut bytes = [0; TERMS];
        bytes[0] = self.kind as u8;
        bytes[1] = self.owner.map_or(0, |owner| 1 + (owner == Party::Second) as u8);
        bytes[2] = self.gives as u8;
        bytes[3] = self.limits.bounds.is_some() as u8;
        bytes[8..16].copy_from_slice(&self.limits.min_matches.to_le_bytes());
        let [least, most] =
            self.limits.bounds.map_or([0; 2], |bounds: Bounds| [bounds.least(), bounds.most()]);
        bytes[16..24].copy_from_slice(&least.to_le_bytes());
        bytes[24..].copy_from_slice(&most.to_le_bytes());
        bytes
    }

    /// Announces this side and its terms, and takes in the peer's, which must fit. Returns (mine, theirs).
    pub(crate) fn announce(
        &self,
        channel: &mut Channel,
        wire: &Wire,
        elements: usize,
        options: &Options<'_>,
    ) -> Result<([Hello; 2], Terms)> {
        let hello = Hello::new(wire.magic, elements, options);
        let within =
            Options { max_peer_elements: options.max_peer_elements.min(wire.most as u64), ..*options };
        let theirs = hello.exchange(channel, wire.name, &within)?;
        channel.send(&self.encode())?;
        channel.flush()?;
        let mut bytes = [0; TERMS];
        channel.recv(&mut bytes)?;
        let gives = bytes[2] == 1;
        // What remains must be equal.
        let differ = |what| Err(Error::Disagreement { protocol: wire.name, what });
        let own = self.encode();
        if bytes[0] != own[0] {
            return differ("what is revealed: rows, payload, count, sum, mean or shares");
        }
        if bytes[1] != own[1] {
            return differ("whose column is added up");
        }
        if bytes[8..16] != own[8..16] {
            return differ("the least number of matches");
        }
        if bytes[3] != own[3] || bytes[16..] != own[16..] {
            return differ("the bounds of a key's number");
        }
        if bytes[2] > 1 || (gives && self.kind != Kind::Shares) || bytes[4..8] != [0; 4] {
            return differ("the other side runs another protocol or version");
        }
        Ok(([hello, theirs], Terms { gives, ..*self }))
    }
}

/// Both sides' terms, that of the first party first.
pub(crate) fn bound_terms(me: Party, mine: &Terms, theirs: &Terms) -> Vec<u8> {
    let [mine, theirs] = [mine.encode(), theirs.encode()];
    if me == Party::First { [mine, theirs].concat() } else { [theirs, mine].concat() }
}

/// The party that `me` is not.
pub(crate) fn peer_of(me: Party) -> Party {
    match me {
        Party::First => Party::Second,
        Party::Second => Party::First,
    }
}
