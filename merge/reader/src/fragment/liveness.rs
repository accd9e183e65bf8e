//! The boot in which a recording was made, and whether its process is still alive, as far as this host can tell.

use crate::align::Reading;
use crate::base::folder::FileLocation;
use nix::time::{ClockId, clock_gettime};
use sa_format::{Anchor, FragmentHeader};
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Host name and boot id.
pub type Boot = (String, String);

/// Returns the boot in which a fragment was recorded.
pub fn boot(header: &FragmentHeader) -> Boot {
    (header.host.clone(), header.boot_id.clone())
}

/// Identity of a process: its boot, pid namespace, pid and start time.
pub(crate) type ProcessIdentity = (Boot, u64, u32, u64);

/// Returns the identity of the process that recorded a fragment.
pub(crate) fn identity(header: &FragmentHeader) -> ProcessIdentity {
    (boot(header), header.pid_ns, header.pid, header.start_time)
}

/// Returns the wall time at the zero of the host's monotonic clock.
pub fn wall_clock(header: &FragmentHeader, anchor: &Anchor) -> i64 {
    Reading::from_anchor(anchor, header.monotonic_offset_ns).ahead_ns
}

/// Returns true if the process ran in this boot and pid namespace and has ended.
pub(crate) fn is_dead_here(header: &FragmentHeader) -> bool {
    is_alive_here(header) == Some(false)
}

/// Returns true if the process is alive; `None` if that is unknown because it ran in another boot or pid namespace.
pub fn is_alive_here(header: &FragmentHeader) -> Option<bool> {
    let namespace = fs::metadata("/proc/self/ns/pid").map(|metadata| metadata.ino());
    // In the `/proc` of another pid namespace every process would seem to be dead.
    let proc_is_ours = fs::read_link("/proc/self")
        .is_ok_and(|own| own == Path::new(&std::process::id().to_string()));
    let is_here =
        boot_id_here() == header.boot_id && namespace.is_ok_and(|inode| inode == header.pid_ns);
    (is_here && proc_is_ours).then(|| is_alive(header.pid, header.start_time))
}

/// Returns true if a recorder holds the lock on a fragment's file, which it does as long as it lives.
pub fn is_locked(place: &FileLocation) -> bool {
    let file = place.open_regular(false).ok();
    file.and_then(|file| has_exclusive_lock(&file)) == Some(true)
}

/// Returns true if another open file holds the exclusive lock, which a recorder holds as long as it lives. Tries to get a shared lock, which does not
/// disturb other readers. `None` if the file system does not support locks.
pub fn has_exclusive_lock(file: &File) -> Option<bool> {
    match file.try_lock_shared() {
        Ok(()) => Some(false),
        Err(TryLockError::WouldBlock) => Some(true),
        Err(TryLockError::Error(_)) => None,
    }
}

/// Returns the id of this boot; empty if the kernel does not provide it.
pub(crate) fn boot_id_here() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// Returns the current time of this host's monotonic clock, as seen in the initial time namespace.
pub(crate) fn monotonic_here() -> Option<i64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).ok()?;
    let now_ns = now.tv_sec().saturating_mul(1_000_000_000) + now.tv_nsec();
    Some(now_ns.saturating_sub(clock_offset_ns("monotonic")))
}

/// Returns true if a process with this pid and start time is still running. A zombie is not, unless it has other threads that are.
fn is_alive(pid: u32, start_time: u64) -> bool {
    let stat = match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat,
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
    };
    // The name is in parentheses and may contain any character.
    let Some((_, fields)) = stat.rsplit_once(')') else {
        return true;
    };
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let (Some(state), Some(started)) = (fields.first(), fields.get(19)) else {
        return true;
    };
    let threads = fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    started_at(started) == Some(start_time) && (!matches!(*state, "Z" | "X") || threads > 1)
}

/// Converts a start time from `/proc`, in clock ticks, to the one in the initial time namespace.
fn started_at(ticks: &str) -> Option<u64> {
    let offset = clock_offset_ns("boottime").div_euclid(10_000_000);
    u64::try_from(ticks.parse::<i64>().ok()? - offset).ok()
}

/// Returns what this process's time namespace adds to a clock, in ns.
fn clock_offset_ns(clock: &str) -> i64 {
    let offsets = fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    let line = offsets.lines().find(|line| line.starts_with(clock));
    let mut fields = line
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .filter_map(|field| field.parse::<i64>().ok());
    let (seconds, ns) = (fields.next().unwrap_or(0), fields.next().unwrap_or(0));
    seconds.saturating_mul(1_000_000_000).saturating_add(ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::OpenOptionsExt;

    #[test]
    fn only_an_exclusive_lock_is_that_of_a_recorder() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let [held, asked] = [(); 2].map(|()| File::open(named.path()).unwrap());
        assert_eq!(has_exclusive_lock(&asked), Some(false));
        asked.unlock().unwrap();
        // Another reader may ask at the same time.
        held.lock_shared().unwrap();
        assert_eq!(has_exclusive_lock(&asked), Some(false));
        asked.unlock().unwrap();
        held.unlock().unwrap();
        held.lock().unwrap();
        assert_eq!(has_exclusive_lock(&asked), Some(true));
        // A descriptor opened with `O_PATH` does not support locks, like files of some network file systems.
        let path_only = File::options()
            .read(true)
            .custom_flags(libc::O_PATH)
            .open(named.path())
            .unwrap();
        assert_eq!(has_exclusive_lock(&path_only), None);
    }
}
