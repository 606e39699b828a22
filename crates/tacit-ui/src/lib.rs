//! `tacit ui`: a page for people who do not type commands, served by the command itself on this machine.
//!
//! The page is made of files in the binary. Whatever it does, this executable does once more, started with a list
//! of arguments and no shell, and the page shows that command. Keys, dropped files and results stay in a folder
//! that only its owner can read. The server answers at a loopback address only, and only the browser that was
//! given the random token of the printed address; see `guard` for what it refuses, and why.
#![forbid(unsafe_code)]

mod addresses;
mod folder;
mod form;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod guard;
mod http;
mod preview;
mod routes;
mod shell;
mod task;

#[cfg(test)]
mod tests;

use folder::Folder;
use routes::Routes;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tacit::{Error, Result};

/// Pause between two looks whether the page is to end.
const END_LOOK: Duration = Duration::from_millis(50);

/// A page that is ready to be served.
pub struct Ui {
    listener: TcpListener,
    routes: Arc<Routes>,
    address: SocketAddr,
}

impl Ui {
    /// A page at `address`, whose files are in `folder` and whose commands `command` runs.
    ///
    /// Errors: an address beyond this machine, one that cannot be listened at, and a folder that cannot be used.
    pub fn open(address: &str, folder: &Path, command: PathBuf) -> Result<Self> {
        let refuse = |what: String| Error::Parameter { name: "listen", what };
        let parsed: SocketAddr = address.parse().map_err(|_| {
            refuse("give an address of this machine and a port, such as 127.0.0.1:7790".to_owned())
        })?;
        if !parsed.ip().to_canonical().is_loopback() {
            return Err(refuse(format!(
                "{parsed} is reachable from other machines; give 127.0.0.1 or [::1]"
            )));
        }
        let folder = Folder::open(folder)?;
        let listener = TcpListener::bind(parsed).map_err(|error| {
            refuse(format!("{parsed}: {error}; choose another port, or 0 for a free one"))
        })?;
        let fault = |error: std::io::Error| Error::Other(format!("{parsed}: {error}"));
        listener.set_nonblocking(true).map_err(fault)?;
        let address = listener.local_addr().map_err(fault)?;
        let routes = Arc::new(Routes::new(address, folder, command));
        Ok(Ui { listener, routes, address })
    }

    /// The address to open in a browser, which has the token. Behind the `#`, no browser sends it to anyone.
    pub fn link(&self) -> String {
        format!("http://{}/#{}", self.address, self.routes.token())
    }

    /// The folder that keys, files and results are in.
    pub fn folder(&self) -> &Path {
        self.routes.folder()
    }

    /// Answers until `over`, then ends what the page started. Whoever is in the middle of a download then loses it.
    pub fn serve(self, over: &Arc<AtomicBool>) -> Result<()> {
        let Ui { listener, routes, .. } = self;
        let (asked, until) = (routes.clone(), over.clone());
        let answer = move || http::serve(&listener, &until, &|request| asked.respond(request));
        let started = std::thread::Builder::new().name("tacit-ui".to_owned()).spawn(answer);
        started.map_err(|error| Error::Other(format!("a thread cannot be started: {error}")))?;
        while !over.load(Ordering::SeqCst) {
            std::thread::sleep(END_LOOK);
        }
        routes.end();
        Ok(())
    }
}
