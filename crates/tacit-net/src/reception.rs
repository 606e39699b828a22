//! A port that serves many peers, one session each.

use crate::listener::Listener;
use crate::lobby::Lobby;
use crate::setup::{Options, Prepared};
use crate::{Error, Result, Session};
use std::time::Duration;

/// Receives the peers of a service: whoever proves a trusted key and greets by the agreement gets a session,
/// everybody else is turned away beside them, bounded as [`Listener::accept`] bounds strangers: in their
/// number, their time and their bytes.
pub struct Reception<'a> {
    lobby: Lobby<'a>,
    options: Options,
}

impl<'a> Reception<'a> {
    /// Receives at `listener` by `options`, whose sessions have one channel each.
    pub fn new(listener: &'a Listener, options: Options) -> Result<Self> {
        if options.channels != 1 {
            return Err(Error::Usage("a service has one channel a session".to_owned()));
        }
        let lobby = Lobby::new(listener, &options, options.terms()?)?;
        Ok(Reception { lobby, options })
    }

    /// From now on receives by these `options`: other keys may be trusted. Sessions that are open stay.
    pub fn receive_by(&mut self, options: Options) -> Result<()> {
        if options.channels != 1 {
            return Err(Error::Usage("a service has one channel a session".to_owned()));
        }
        self.lobby.receive_by(&options, options.terms()?)?;
        self.options = options;
        Ok(())
    }

    /// The next session, or `None` when nobody came within `patience`.
    pub fn next(&mut self, patience: Duration) -> Result<Option<Session>> {
        let Some((Prepared { channel, tls, .. }, id)) = self.lobby.next_opened(patience)? else {
            return Ok(None);
        };
        Ok(Some(Session::opened(vec![channel], id, tls, &self.options)))
    }
}
