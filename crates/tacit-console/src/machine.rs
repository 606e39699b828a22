//! What commands ask of this machine: free memory, a free address, the end of a process.

pub use tacit::data::machine::available_memory;
use tacit::{Error, Result};

/// Refuses what would hold `needed` bytes where the system has fewer to give; `advice` says what to do about
/// it.
pub fn check_memory(what: &str, needed: u64, advice: &str) -> Result<()> {
    match available_memory() {
        Some(available) if needed > available => Err(Error::Input(format!(
            "{what} needs about {} MiB, and this machine has {} MiB available; {advice}",
            needed >> 20,
            available >> 20
        ))),
        _ => Ok(()),
    }
}

/// An address of this machine at which nobody listened just now.
pub fn free_address() -> Result<String> {
    let fault = |e: std::io::Error| Error::Other(format!("no free port on the loopback address: {e}"));
    let socket = std::net::TcpListener::bind("127.0.0.1:0").map_err(fault)?;
    Ok(socket.local_addr().map_err(fault)?.to_string())
}

/// Asks another process, which we started, to end: in order (SIGTERM) where the system has a way to.
pub fn terminate(child: &std::process::Child) -> Result<()> {
    crate::os::terminate(child)
        .map_err(|e| Error::Other(format!("process {} cannot be stopped: {e}", child.id())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_memory_than_there_is_is_refused_with_the_figure() {
        assert!(check_memory("a run", 0, "").is_ok());
        if std::path::Path::new("/proc/meminfo").exists() {
            let error = check_memory("a run", 1 << 60, "use less").unwrap_err().to_string();
            assert!(error.contains("1099511627776 MiB") && error.ends_with("use less"), "{error}");
        }
    }
}
