//! What this machine has to give.

use std::path::Path;

/// Bytes of memory that the system has to give or that the control groups of this process leave it, whichever
/// is less; `None` where neither is known, as on every system but Linux.
pub fn available_memory() -> Option<u64> {
    // Elsewhere a file of this name would be anybody's.
    if !cfg!(target_os = "linux") {
        return None;
    }
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
}
