//! How to reach the peer, and how much to trust it.

use crate::course::{Desk, Listener};
use crate::fault;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::time::Duration;
use tacit::job::psi::Learns;
use tacit::{Security, Session};
use tacit_net::{Cancel, Identity, Limits, LinkModel, Observer, PublicKey};

/// Everything that says who the peer is; each job opens a connection of its own.
#[pyclass(frozen)]
pub struct Peer {
    session: Session,
    pub security: Security,
    pub post_quantum: bool,
    /// Our private key file.
    pub identity: Option<PathBuf>,
    /// Whether this side listens, where that is settled.
    pub listens: Option<bool>,
}

#[pymethods]
impl Peer {
    #[new]
    #[pyo3(signature = (*, listen=None, connect=None, via=None, identity=None, peer=None, security="malicious", threads=None,
        post_quantum=false, base_ot=None, timeout=None, wait=None, link=None, proxy=None))]
    fn new(
        py: Python<'_>,
        listen: Option<&str>,
        connect: Option<&str>,
        via: Option<&str>,
        identity: Option<PathBuf>,
        peer: Option<PathBuf>,
        security: &str,
        threads: Option<usize>,
        post_quantum: bool,
        base_ot: Option<&str>,
        timeout: Option<f64>,
        wait: Option<f64>,
        link: Option<&str>,
        proxy: Option<&str>,
    ) -> PyResult<Self> {
        let listens = via.is_none().then_some(listen.is_some());
        let session = match (listen, connect, via) {
            (Some(address), None, None) => Session::listen(address),
            (None, Some(address), None) => Session::connect(address),
            (None, None, Some(relay)) => Session::meet(relay),
            _ => return Err(fault::usage(py, "give one of listen=, connect= and via=")),
        };
        let security = match security {
            "malicious" => Security::Malicious,
            "semi-honest" => Security::SemiHonest,
            _ => return Err(fault::usage(py, "security= is \"malicious\" or \"semi-honest\"")),
        };
        let mut limits = Limits::default();
        let seconds = |value: f64| {
            Duration::try_from_secs_f64(value)
                .map_err(|_| fault::usage(py, "timeout= and wait= are numbers of seconds"))
        };
        if let Some(timeout) = timeout {
            limits.idle = seconds(timeout)?;
        }
        if let Some(wait) = wait {
            limits.connect = seconds(wait)?;
            limits.accept = Some(limits.connect);
        }
        let mut session = session.security(security).limits(limits);
        if let Some(threads) = threads {
            session = session.threads(threads);
        }
        if let Some(name) = base_ot {
            session = session.base_ot(name);
        }
        if post_quantum {
            session = session.post_quantum();
        }
        if let Some(link) = link {
            let model = link.parse::<LinkModel>().map_err(|error| fault::usage(py, error.to_string()))?;
            session = session.link(model);
        }
        session = match proxy {
            Some(proxy) => session.proxy(proxy),
            None => session.proxy_from_environment(),
        };
        let session = match (&identity, peer) {
            (Some(identity), Some(peer)) => session.keys(identity, &peer),
            (None, None) => session.plaintext(),
            _ => {
                return Err(fault::usage(
                    py,
                    "give identity=, your private key file, together with peer=, the peer's public one",
                ));
            }
        };
        let session = session.map_err(|error| fault::raise(py, &error))?;
        Ok(Peer { session, security, post_quantum, identity, listens })
    }
}

impl Peer {
    /// The session for one job, and what ends it.
    pub fn session(&self, desk: &Desk) -> (Session, Cancel) {
        let (cancel, theirs) = (Cancel::armed(), desk.clone());
        let observer = Observer::new(move |event| theirs.note(event));
        (self.session.clone().cancel(cancel.clone()).observer(observer), cancel)
    }

    /// Computing threads, each with a connection of its own; 1 if nothing was said.
    pub fn threads(&self) -> usize {
        self.session.asked_threads()
    }

    /// Runs `job` over the session.
    pub fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
        job: impl FnOnce(&Session, &Desk) -> tacit::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let (listener, desk) = (Listener::new(py, progress)?, Desk::default());
        let (session, cancel) = self.session(&desk);
        crate::course::run(py, &listener, &desk, &cancel, move |desk| job(&session, desk))
    }
}

/// Who gets a result, as Python says it.
pub(crate) fn learns(py: Python<'_>, result: &str) -> PyResult<Learns> {
    Learns::named(result).ok_or_else(|| fault::usage(py, "result is \"me\", \"peer\" or \"both\""))
}

/// Makes a key pair; returns the paths of both files, and the fingerprint of the public key.
#[pyfunction]
#[pyo3(signature = (path, comment=String::new()))]
pub(crate) fn keygen(py: Python<'_>, path: PathBuf, comment: String) -> PyResult<(PathBuf, PathBuf, String)> {
    let raised = |error: tacit_net::Error| fault::raise(py, &error.into());
    let identity = Identity::generate().map_err(raised)?;
    let public = identity.save(&path, &comment).map_err(raised)?;
    Ok((path, public, identity.public().fingerprint()))
}

/// The fingerprint of a public key file.
#[pyfunction]
pub(crate) fn fingerprint(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let key = PublicKey::load(&path).map_err(|error| fault::raise(py, &error.into()))?;
    Ok(key.fingerprint())
}
