//! What wakes a thread that waits for connections: a pipe, and where `poll` takes sockets alone a pair of
//! them.

#[cfg(not(unix))]
use std::net::UdpSocket;

/// The end that is waited for.
pub(crate) struct Woken(#[cfg(unix)] pub(crate) std::io::PipeReader, #[cfg(not(unix))] pub(crate) UdpSocket);

/// The end that wakes.
pub(crate) struct Wake(#[cfg(unix)] std::io::PipeWriter, #[cfg(not(unix))] UdpSocket);

/// Both ends.
#[cfg(unix)]
pub(crate) fn pair() -> std::io::Result<(Woken, Wake)> {
    std::io::pipe().map(|(woken, wake)| (Woken(woken), Wake(wake)))
}

/// Both ends: two sockets on the loopback address that hear each other alone.
#[cfg(not(unix))]
pub(crate) fn pair() -> std::io::Result<(Woken, Wake)> {
    let [woken, wake] = [UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?];
    woken.connect(wake.local_addr()?)?;
    wake.connect(woken.local_addr()?)?;
    Ok((Woken(woken), Wake(wake)))
}

impl Woken {
    /// Takes what woke us; called when there is something.
    pub(crate) fn clear(&self) -> std::io::Result<()> {
        let mut bytes = [0; 256];
        #[cfg(unix)]
        std::io::Read::read(&mut &self.0, &mut bytes)?;
        #[cfg(not(unix))]
        self.0.recv(&mut bytes)?;
        Ok(())
    }
}

impl Wake {
    /// Wakes the other end. Nobody may be there any more.
    pub(crate) fn wake(&self) {
        #[cfg(unix)]
        let _ = std::io::Write::write(&mut &self.0, &[0]);
        #[cfg(not(unix))]
        let _ = self.0.send(&[0]);
    }

    /// A second end that wakes.
    pub(crate) fn try_clone(&self) -> std::io::Result<Self> {
        self.0.try_clone().map(Wake)
    }
}
