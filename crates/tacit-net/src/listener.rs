//! Where a side waits for connections: a port, or a relay that it calls.

use crate::address::resolve;
use crate::meeting::{Calls, Route};
use crate::setup::{Options, bound_at};
use crate::{Error, Result};
use rustix::fd::{AsFd, BorrowedFd};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// A port that waits for its peer, or a place at a relay where it comes.
pub struct Listener {
    door: Door,
    address: String,
}

enum Door {
    Port(TcpListener),
    Relay(Calls),
}

impl Listener {
    /// Listens at `address`, such as `127.0.0.1:7000` or `[::]:7000`; port 0 picks a free one.
    pub fn bind(address: &str) -> Result<Self> {
        Self::bind_at(address, &resolve(address, Duration::ZERO, &mut |_| ())?)
    }

    pub(crate) fn bind_at(address: &str, targets: &[SocketAddr]) -> Result<Self> {
        let socket = bound_at(address, targets)?;
        Ok(Listener { door: Door::Port(socket), address: address.to_owned() })
    }

    /// Waits at the relay of the `options` for whoever wants the key that these prove, several at once. The
    /// observer of the `options` hears when the relay is found and lost.
    pub fn at_relay(options: &Options) -> Result<Self> {
        let address = options.via.as_deref().unwrap_or_default();
        let route = Route::new(address, options, &mut |_| ())?;
        Self::of_calls(Calls::at(route, true, options.observer.clone())?)
    }

    pub(crate) fn of_calls(calls: Calls) -> Result<Self> {
        let address = calls.address().to_owned();
        Ok(Listener { door: Door::Relay(calls), address })
    }

    /// Where it really listens; nowhere if it waits at a relay.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        match &self.door {
            Door::Port(socket) => Ok(socket.local_addr()?),
            Door::Relay(_) => {
                Err(Error::Usage("a side that waits at a relay has no listening address".to_owned()))
            }
        }
    }

    /// Where it listens, or by which relay it is reached.
    pub fn place(&self) -> String {
        match self.local_addr() {
            Ok(address) => address.to_string(),
            Err(_) => format!("the relay {}", self.address),
        }
    }

    /// The address as it was given.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// A connection that has come, or `WouldBlock`.
    pub(crate) fn take(&self) -> std::io::Result<(TcpStream, SocketAddr)> {
        match &self.door {
            Door::Port(socket) => socket.accept(),
            Door::Relay(calls) => calls.accept(),
        }
    }

    /// From now on is called for by the keys that these `options` trust, where a relay must know them.
    pub(crate) fn receive_by(&self, options: &Options) -> Result<()> {
        match &self.door {
            Door::Port(_) => Ok(()),
            Door::Relay(calls) => calls.call_by(options),
        }
    }

    /// What shows that a connection has come.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        match &self.door {
            Door::Port(socket) => socket.as_fd(),
            Door::Relay(calls) => calls.woken().0.as_fd(),
        }
    }

    /// Takes note of what the descriptor showed.
    pub(crate) fn noted(&self) -> Result<()> {
        match &self.door {
            Door::Port(_) => Ok(()),
            Door::Relay(calls) => Ok(calls.woken().clear()?),
        }
    }
}
