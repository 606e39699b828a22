//! Who signs the messages that are written, and whose are taken.

use crate::{Error, Result};
use std::path::Path;
use tacit_crypto::text::shown;
use tacit_net::succession::memory_of;
use tacit_net::{Identity, PublicKey, PublicKeys};
use tacit_ot::silent::signed::{self, Whose};

/// The author's private key, if messages are to be signed.
pub struct Signer(Option<Identity>);

impl Signer {
    /// The private key in `file`, if one is named.
    pub fn load(file: Option<&Path>) -> Result<Self> {
        Ok(Signer(file.map(Identity::load).transpose()?))
    }

    /// The key that the message's readers see.
    pub fn name(&self) -> Option<PublicKey> {
        self.0.as_ref().map(Identity::public)
    }

    /// The message as it goes out.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        match &self.0 {
            None => Ok(message.to_vec()),
            Some(identity) => Ok(signed::sign(message, identity)?),
        }
    }
}

/// The peer's keys that are accepted today, if its messages alone are taken.
pub struct Known(Option<Vec<PublicKey>>);

impl Known {
    /// The keys in the file `peer`, if one is named. The first successor that was seen is remembered beside the own
    /// file `own`, as of a connection beside the private key, and another one refused.
    ///
    /// Errors: also for the key of the `signer` of what is written.
    pub fn load(peer: Option<&Path>, own: &Path, signer: Option<PublicKey>) -> Result<Self> {
        let Some(path) = peer else { return Ok(Known(None)) };
        let keys = PublicKeys::load(path)?;
        if signer.is_some_and(|signer| keys.accepted_keys().contains(&signer)) {
            let path = shown(&path.to_string_lossy());
            return Err(Error::Input(format!(
                "{path}: this is your own public key; give the file that the peer has sent you"
            )));
        }
        keys.remember(&memory_of(own))?;
        Ok(Known(Some(keys.accepted_keys())))
    }

    /// Whether no peer is named.
    pub fn is_anybody(&self) -> bool {
        self.0.is_none()
    }

    /// Whose messages are taken.
    pub fn whose(&self) -> Whose<'_> {
        self.0.as_deref().map_or(Whose::Anybody, Whose::Peer)
    }
}
