//! Who may ask: the browser that was given the token, on a page of this server, on this machine.
//!
//! Another page in the same browser, and a page whose host name leads here (DNS rebinding), can send requests to
//! any port of this machine. They know no token; they name another host, or come from another origin. Each of
//! the three checks refuses them by itself. The token is in a header of its own, which a page of another origin
//! cannot set without asking first, and not in a cookie, which the browser would also send to every other
//! port of this machine.

use crate::http::{Head, Response};
use std::net::SocketAddr;
use subtle::ConstantTimeEq;
use tacit::crypto::{Prg, hex};
use zeroize::Zeroizing;

/// Random bytes of a token.
const TOKEN_BYTES: usize = 16;
/// The header that has the token.
const TOKEN_HEADER: &str = "x-tacit-token";

/// A new random secret, in hexadecimal digits.
pub(crate) fn secret() -> Zeroizing<String> {
    let mut bytes = Zeroizing::new([0; TOKEN_BYTES]);
    Prg::from_os().fill_bytes(&mut *bytes);
    Zeroizing::new(hex(&*bytes))
}

/// Whether a secret is the given one, in a time that does not depend on how much of it is right.
pub(crate) fn same(given: &str, secret: &str) -> bool {
    given.as_bytes().ct_eq(secret.as_bytes()).into()
}

/// What is checked of each request.
pub(crate) struct Guard {
    token: Zeroizing<String>,
    hosts: [String; 4],
}

impl Guard {
    /// With a new token, for a server at this `address`.
    pub(crate) fn new(address: SocketAddr) -> Self {
        let port = address.port();
        let [a, b, c] = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
        Guard { token: secret(), hosts: [a, b, c, address.to_string()] }
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Refuses a request that names another host than this machine, with this port.
    pub(crate) fn host(&self, request: &Head) -> Result<(), Response> {
        let host = request.header("host").unwrap_or_default();
        match self.hosts.iter().any(|ours| host.eq_ignore_ascii_case(ours)) {
            true => Ok(()),
            false => Err(Response::text(
                421,
                "this page is only for this machine; open the address that tacit printed",
            )),
        }
    }

    /// Refuses a request without the token.
    pub(crate) fn token_of(&self, request: &Head) -> Result<(), Response> {
        match same(request.header(TOKEN_HEADER).unwrap_or_default(), &self.token) {
            true => Ok(()),
            false => {
                Err(Response::text(403, "the token is missing or wrong; open the address that tacit printed"))
            }
        }
    }

    /// Refuses a request that another page sent. Every browser names the origin of a request that may change
    /// something, so one without it is refused as well.
    pub(crate) fn origin(&self, request: &Head, changes: bool) -> Result<(), Response> {
        let host = request.header("host").unwrap_or_default();
        let is_ours = |origin: &str| {
            origin.strip_prefix("http://").is_some_and(|origin| origin.eq_ignore_ascii_case(host))
        };
        let origin = match request.header("origin") {
            Some(origin) => is_ours(origin),
            None => !changes && !request.has("origin"),
        };
        let site = match request.header("sec-fetch-site") {
            Some(site) => site == "same-origin",
            None => !request.has("sec-fetch-site"),
        };
        match origin && site {
            true => Ok(()),
            false => Err(Response::text(403, "the request comes from another page, or names no origin")),
        }
    }
}
