//! What commands ask of this machine: free memory, a free address, the end of a process.

use std::path::Path;
use tacit::{Error, Result};

/// Refuses what would hold `needed` bytes where the system has fewer to give; `advice` says what to do about
/// it.
pub fn check_memory(what: &str, needed: u64, advice: &str) -> Result<()> {
    match available_memory() {
        Some(available) if needed > available => Err(Error::Input(format!(
            "{what} needs about {} MiB, and this machine has {} MiB to give; {advice}",
            needed >> 20,
            available >> 20
        ))),
        _ => Ok(()),
    }
}

/// Bytes of memory that the system has to give or that the control groups of this process leave it, whichever
/// is less; `None` where neither is known.
pub fn available_memory() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let system =
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).map(|kib| kib << 10);
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    system.into_iter().chain(left_in_groups(Path::new("/sys/fs/cgroup"), Path::new(own))).min()
}

/// The least that the control group `own` below `root`, or one above it, has left: its limit less what it
/// holds and cannot let go.
fn left_in_groups(root: &Path, own: &Path) -> Option<u64> {
    let left = |group: &Path| {
        let read = |name: &str| std::fs::read_to_string(root.join(group).join(name)).ok();
        let limit: u64 = read("memory.max")?.trim().parse().ok()?;
        let held: u64 = read("memory.current")?.trim().parse().ok()?;
        let stat = read("memory.stat").unwrap_or_default();
        let file = stat.lines().find_map(|line| line.strip_prefix("inactive_file "));
        let cached: u64 = file.and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
        Some(limit.saturating_sub(held.saturating_sub(cached)))
    };
    own.ancestors().filter_map(left).min()
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
        .map_err(|e| Error::Other(format!("process {} cannot be told to end: {e}", child.id())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_control_group_counts() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("a/b")).unwrap();
        let put = |name: &str, text: &str| std::fs::write(root.path().join(name), text).unwrap();
        assert_eq!(left_in_groups(root.path(), Path::new("a/b")), None);
        put("a/memory.max", "1000000\n");
        put("a/memory.current", "600000\n");
        put("a/memory.stat", "anon 500000\ninactive_file 100000\n");
        put("a/b/memory.max", "max\n");
        put("a/b/memory.current", "5\n");
        assert_eq!(left_in_groups(root.path(), Path::new("a/b")), Some(500_000));
        put("a/b/memory.max", "4\n");
        assert_eq!(left_in_groups(root.path(), Path::new("a/b")), Some(0));
        assert_eq!(left_in_groups(root.path(), Path::new("")), None);
    }

    #[test]
    fn more_memory_than_there_is_is_refused_with_the_figure() {
        assert!(check_memory("a run", 0, "").is_ok());
        if std::path::Path::new("/proc/meminfo").exists() {
            let error = check_memory("a run", 1 << 60, "use less").unwrap_err().to_string();
            assert!(error.contains("1099511627776 MiB") && error.ends_with("use less"), "{error}");
        }
    }
}
