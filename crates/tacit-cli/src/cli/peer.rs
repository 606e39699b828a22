//! The options that say who the peer is and how to reach it.

use crate::cli::report::Sides;
use crate::cli::{Context, verbose, waiting};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tacit::net::{Limits, LinkModel, Observer, PublicKey, PublicKeys};
use tacit::ot::BaseOt;
use tacit::{Error, Result, Session};
pub(crate) use tacit_console::options::Security;

/// What the other side learns, said for the level of security.
pub(crate) fn learned(security: Security, what: &str) -> String {
    tacit::job::learned(security.into(), what)
}

/// Tells the user where the key in the peer's file was followed by another.
pub(crate) fn followed(peer: &Path, context: &Context) -> Result<()> {
    if let Some(words) = PublicKeys::load(peer)?.words() {
        context.note(&format!("note: {}: {words}", crate::cli::output::name(peer)));
    }
    Ok(())
}

/// How to reach the peer, and who it must be.
#[derive(clap::Args)]
#[command(next_help_heading = "Peer")]
pub(crate) struct PeerArgs {
    /// Waits for the peer at this address, such as 0.0.0.0:7700
    #[arg(long, value_name = "ADDR", conflicts_with = "connect")]
    listen: Option<String>,
    /// Connects to the peer's address; keeps trying until the connect timeout
    #[arg(long, value_name = "ADDR")]
    connect: Option<String>,
    /// Meets the peer at this relay, HOST:PORT, to which both sides connect: for two sides behind firewalls
    #[arg(long, value_name = "RELAY", conflicts_with_all = ["listen", "connect", "insecure_plaintext", "authority"])]
    via: Option<String>,
    /// The HTTP proxy that leads to the peer or the relay: HOST:PORT, or http://USER:PASSWORD@HOST:PORT (default: that
    /// of HTTPS_PROXY, unless NO_PROXY has the host)
    #[arg(long, value_name = "ADDR", conflicts_with = "listen")]
    proxy: Option<String>,
    /// Your private key, from `tacit keygen`
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// The peer's public key
    #[arg(long, value_name = "PUBFILE")]
    peer: Option<PathBuf>,
    /// Trusts the certificate authorities of this PEM file instead of a pinned key; --identity is then a PEM
    /// key
    #[arg(long, value_name = "FILE", requires_all = ["certificate", "peer_name", "identity"], conflicts_with = "peer")]
    authority: Option<PathBuf>,
    /// Your certificate chain, in PEM, with --authority
    #[arg(long, value_name = "FILE", requires = "authority")]
    certificate: Option<PathBuf>,
    /// The name in the peer's certificate, with --authority
    #[arg(long, value_name = "NAME", requires = "authority")]
    peer_name: Option<String>,
    /// Runs without TLS: anyone on the way can read and change everything
    #[arg(long, conflicts_with_all = ["identity", "peer", "authority"])]
    insecure_plaintext: bool,
    /// Allows --insecure-plaintext beyond this machine
    #[arg(long, requires = "insecure_plaintext")]
    i_understand: bool,
    /// Rejects every protocol that a quantum computer breaks, and uses the base OT roted, which rests on module-LWE and on
    /// an assumption of its own (docs/proofs/roted.md, 4.3); must match on both sides
    #[arg(long)]
    post_quantum: bool,
    /// Computing threads. An intersection without --memory uses all cores by default, and the two sides may
    /// set different numbers. Any other operation has a connection for each thread, 1 by default, and the
    /// number must match on both sides
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: Option<u16>,
    /// Emulates a slower link: loopback (none), lan, wan or MBPS/ONE-WAY-MS; must match on both sides
    #[arg(long, value_name = "NAME", default_value = "loopback")]
    link: LinkModel,
    /// Seconds to wait for the peer to appear
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    connect_timeout: u64,
    /// Seconds without a byte from the peer before giving up
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
}

impl PeerArgs {
    /// The file of our private key, if one was named and it is one of `tacit keygen`.
    pub(crate) fn identity(&self) -> Option<&Path> {
        self.identity.as_deref().filter(|_| self.authority.is_none())
    }

    /// What names the peer, whom TLS authenticates: its pinned public key, the first of those that followed
    /// each other, or the name in its certificate; `None` without TLS.
    pub(crate) fn peer_name(&self) -> Result<Option<String>> {
        Ok(match (&self.peer, &self.peer_name) {
            (Some(file), _) => Some(format!("key {}", PublicKey::load(file)?.line(""))),
            (None, Some(name)) => Some(format!("certificate {name}")),
            (None, None) => None,
        })
    }

    /// The two sides, as a report names them.
    pub(crate) fn sides(&self, input: &[PathBuf]) -> Result<Sides> {
        let certificates = (self.certificate.as_deref(), self.peer_name.as_deref());
        Sides::new((self.identity(), self.peer.as_deref()), certificates, input)
    }

    /// Whether a peer was named at all.
    pub(crate) fn is_given(&self) -> bool {
        self.listen.is_some() || self.connect.is_some() || self.via.is_some()
    }

    /// The threads asked for, 1 if none were.
    pub(crate) fn threads(&self) -> usize {
        self.threads.map_or(1, usize::from)
    }

    /// The threads that a side computes on where that is its own affair: those asked for, 0 if none were, which
    /// stands for all cores.
    pub(crate) fn workers(&self) -> usize {
        self.threads.map_or(0, usize::from)
    }

    /// Whether this side listens. Errors: sides that meet at a relay, where that is settled later.
    pub(crate) fn listens(&self) -> Result<bool> {
        if self.via.is_some() {
            let what = "the listening side's columns come first: give --listen and --connect";
            return Err(Error::Parameter { name: "via", what: what.into() });
        }
        Ok(self.listen.is_some())
    }

    /// The link asked for.
    pub(crate) fn link(&self) -> LinkModel {
        self.link
    }

    /// Refuses the protocol called `name` if the session is to be post-quantum and the protocol is not.
    pub(crate) fn allow(&self, name: &str) -> Result<()> {
        if self.post_quantum { tacit::catalogue::require_post_quantum(name) } else { Ok(()) }
    }

    /// The base OT called `name`, or the one that the options ask for.
    pub(crate) fn base(
        &self,
        name: Option<&str>,
        security: Security,
    ) -> Result<Box<dyn BaseOt + Send + Sync>> {
        tacit::ot::base_ot_among(name, self.post_quantum, security.into())
    }

    /// The session that the options describe; warns when it is not protected.
    pub(crate) fn session(&self, security: Security, context: &Context) -> Result<Session> {
        let session = match (&self.listen, &self.connect, &self.via) {
            (Some(address), None, None) => Session::listen(address),
            (None, Some(address), None) => Session::connect(address),
            (None, None, Some(relay)) => Session::meet(relay),
            _ => {
                let what = "give --listen ADDR, --connect ADDR or --via RELAY; see --help";
                return Err(Error::Usage(what.into()));
            }
        };
        let session = match &self.proxy {
            Some(proxy) => session.proxy(proxy),
            None => session.proxy_from_environment(),
        };
        let session = session
            .security(security.into())
            .link(self.link)
            .limits(self.limits())
            .observer(self.observer(context))
            .cancel(tacit_console::fault::interrupt());
        let session = match self.threads {
            Some(threads) => session.threads(threads.into()),
            None => session,
        };
        let session = if self.post_quantum { session.post_quantum() } else { session };
        if let (Some(authorities), Some(chain), Some(key), Some(name)) =
            (&self.authority, &self.certificate, &self.identity, &self.peer_name)
        {
            return session.certificates(authorities, chain, key, name);
        }
        match (&self.identity, &self.peer, self.insecure_plaintext) {
            (Some(identity), Some(peer), false) => {
                followed(peer, context)?;
                session.keys(identity, peer)
            }
            (None, None, true) => {
                if context.progress != crate::cli::progress::Mode::Lines {
                    tacit_console::say(
                        "WARNING: --insecure-plaintext: no TLS. Anyone on the network path can read and \
                         change the data, and anyone can be the peer.",
                    );
                }
                if self.i_understand { Ok(session.plaintext_anywhere()) } else { session.plaintext() }
            }
            _ => {
                Err(Error::Usage("give --identity FILE and --peer PUBFILE; `tacit keygen` makes them".into()))
            }
        }
    }

    /// Who tells the user whom we wait for, and with --verbose what came of it.
    fn observer(&self, context: &Context) -> Observer {
        let waiting = waiting::observer(context.progress, &self.peer_label());
        if !context.verbose {
            return waiting;
        }
        Observer::new(move |event| {
            waiting.tell(event);
            verbose::handshake(event);
        })
    }

    /// What to call the peer: its certificate's name, or the name of its key's file.
    fn peer_label(&self) -> String {
        let file =
            || self.peer.as_deref().and_then(Path::file_stem).map(|stem| stem.to_string_lossy().into_owned());
        self.peer_name.clone().or_else(file).unwrap_or_else(|| "anybody".to_owned())
    }

    fn limits(&self) -> Limits {
        let appear = Duration::from_secs(self.connect_timeout);
        let idle = Duration::from_secs(self.timeout);
        Limits { connect: appear, accept: Some(appear), idle, ..Limits::default() }
    }
}
