//! Whether a recording process is alive or dead, as far as that can be seen from here.

use sa_recorder::format::FragmentHeader;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whether the process ran under this boot and pid namespace and does not any more.
pub(crate) fn is_dead_here(header: &FragmentHeader) -> bool {
    is_alive_here(header) == Some(false)
}

/// Whether the process is alive, if it ran under this boot and pid namespace; else that cannot be seen.
pub(crate) fn is_alive_here(header: &FragmentHeader) -> Option<bool> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::metadata("/proc/self/ns/pid").map(|metadata| metadata.ino());
    // Another /proc than our own namespace's would call everybody dead.
    let proc_is_ours = fs::read_link("/proc/self")
        .is_ok_and(|own| own == Path::new(&std::process::id().to_string()));
    let is_here =
        boot.trim() == header.boot_id && namespace.is_ok_and(|inode| inode == header.pid_ns);
    (is_here && proc_is_ours).then(|| is_alive(header.pid, header.start_time))
}

/// Whether a process of this pid and start time still runs; a zombie does not, unless other threads of it do.
fn is_alive(pid: u32, start_time: u64) -> bool {
    let stat = match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat,
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
    };
    // The name stands in parentheses and may hold anything.
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

/// A start time from `/proc` in clock ticks, as the initial time namespace would show it.
fn started_at(ticks: &str) -> Option<u64> {
    let offsets = fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    let mut fields = offsets
        .lines()
        .find(|line| line.starts_with("boottime"))
        .into_iter()
        .flat_map(|line| line.split_whitespace().skip(1))
        .filter_map(|field| field.parse::<i64>().ok());
    let (seconds, ns) = (fields.next().unwrap_or(0), fields.next().unwrap_or(0));
    let offset = seconds * 100 + ns / 10_000_000;
    u64::try_from(ticks.parse::<i64>().ok()? - offset).ok()
}
