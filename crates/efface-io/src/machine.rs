//! How much memory this process may take: what the machine has, and what limits of control groups
//! (containers) and of the address space (`ulimit -v`) leave of it.

use std::path::Path;

/// Assumed where the system does not say how much memory it has.
const UNKNOWN: u64 = 16 << 30;

/// Address space that a command takes beside its rows: for its code and its fixed buffers, and for
/// the stack and the arena of each of its threads. A fit in batches of 4 MB ended for want of memory
/// below 0.9 GB with two threads.
const FIXED_ADDRESSES: u64 = 512 << 20;
const THREAD_ADDRESSES: u64 = 256 << 20;
/// Threads beyond these share the arenas of others where there is no room for one.
const MOST_ARENAS: u64 = 8;

/// The bytes of memory that this process may take.
#[must_use]
pub fn machine_memory() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let installed = kilobytes(&read("/proc/meminfo"), "MemTotal:").unwrap_or(UNKNOWN);
    let group = group_limit(Path::new("/sys/fs/cgroup"), &read("/proc/self/cgroup"));
    let addresses = free_addresses().map(|free| free.saturating_sub(fixed_addresses()));
    [group, addresses]
        .into_iter()
        .flatten()
        .fold(installed, u64::min)
}

/// The bytes of address space that are left to this process and those that it needs at least,
/// where fewer are left than it needs.
#[must_use]
pub fn missing_addresses() -> Option<(u64, u64)> {
    free_addresses()
        .map(|free| (free, fixed_addresses()))
        .filter(|(free, needed)| free < needed)
}

fn fixed_addresses() -> u64 {
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    FIXED_ADDRESSES + threads.min(MOST_ARENAS) * THREAD_ADDRESSES
}

/// The bytes of address space that are left; None where they are not limited.
fn free_addresses() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let limit = address_limit(&limits)?;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    Some(limit.saturating_sub(kilobytes(&status, "VmSize:").unwrap_or(0)))
}

/// The soft limit of the address space as `/proc/self/limits` has it.
fn address_limit(limits: &str) -> Option<u64> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A line such as `MemTotal:  16384 kB`, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    number.checked_mul(1024)
}

/// The smallest limit of the control groups that `/proc/self/cgroup` names and of those that they
/// lie in. Inside a container the names may be those of the host: what is not there has no limit,
/// and the root of the tree is then the container.
fn group_limit(root: &Path, groups: &str) -> Option<u64> {
    let limits = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else {
            return Vec::new();
        };
        let (folder, file) = if controllers.is_empty() {
            (root.to_owned(), "memory.max")
        } else if controllers.split(',').any(|name| name == "memory") {
            (root.join("memory"), "memory.limit_in_bytes")
        } else {
            return Vec::new();
        };
        let own = folder.join(group.trim_start_matches('/'));
        own.ancestors()
            .take_while(|above| above.starts_with(&folder))
            .filter_map(|group| std::fs::read_to_string(group.join(file)).ok())
            // A group without a limit says `max`, or in the older form a number near 2⁶³.
            .filter_map(|limit| limit.trim().parse::<u64>().ok())
            .collect()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_limit_of_all_groups_above_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let limit = |groups: &str| group_limit(root.path(), groups);
        assert_eq!(limit("0::/pod/one\n"), None);
        write("pod/one/memory.max", "max\n");
        assert_eq!(limit("0::/pod/one\n"), None);
        write("pod/memory.max", "1073741824\n");
        assert_eq!(limit("0::/pod/one\n"), Some(1 << 30));
        write("pod/one/memory.max", "536870912\n");
        assert_eq!(limit("0::/pod/one\n"), Some(1 << 29));
        // A container that does not see the name of its group has its limit at the root.
        write("memory.max", "268435456\n");
        assert_eq!(limit("0::/elsewhere/x\n"), Some(1 << 28));
        // The form of version 1 beside it.
        let groups = "5:cpu,cpuacct:/a\n4:memory:/docker/a\n0::/none\n";
        write(
            "memory/docker/a/memory.limit_in_bytes",
            "9223372036854771712\n",
        );
        assert_eq!(limit(groups), Some(1 << 28));
        write("memory/memory.limit_in_bytes", "1048576\n");
        assert_eq!(limit(groups), Some(1 << 20));
        assert_eq!(limit("nonsense\n\n"), None);
    }

    #[test]
    fn limits_are_read_as_the_kernel_writes_them() {
        let limits = |value: &str| {
            format!(
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                 Max address space         {value}            unlimited            bytes     \n"
            )
        };
        assert_eq!(address_limit(&limits("1048576000")), Some(1_048_576_000));
        assert_eq!(address_limit(&limits("unlimited")), None);
        assert_eq!(
            kilobytes("A: 1 kB\nMemTotal:   2048 kB\n", "MemTotal:"),
            Some(2 << 20)
        );
        assert!(machine_memory() > 0);
    }
}
