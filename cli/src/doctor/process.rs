//! Checks what the recorded processes inherit from this one: page size, namespaces, and a tracer.

use super::finding::{Check, Finding};
use nix::unistd::{SysconfVar, sysconf};
use sa_recorder::host::sees_processes;
use std::fs;
use std::os::unix::fs::MetadataExt;

const PAGE_SIZE: Check = Check("page size");
const PID_NAMESPACE: Check = Check("pid namespace");
const TIME_NAMESPACE: Check = Check("time namespace");
const PTRACE: Check = Check("ptrace");

/// Inode number of the initial pid namespace.
const FIRST_PID_NAMESPACE: u64 = 0xefff_fffc;

/// Checks this process.
pub(crate) fn examine() -> Vec<Finding> {
    vec![page_size(), pid_namespace(), time_namespace(), tracer()]
}

fn page_size() -> Finding {
    match sysconf(SysconfVar::PAGE_SIZE) {
        Ok(Some(bytes)) => PAGE_SIZE.ok(format!("{bytes} bytes")),
        _ => PAGE_SIZE.warn("cannot be read", "see getconf PAGE_SIZE"),
    }
}

fn pid_namespace() -> Finding {
    if !sees_processes(std::process::id()) {
        return PID_NAMESPACE.warn(
            "/proc is missing, or belongs to another namespace",
            "it is unknown which processes are alive: mount /proc in the container",
        );
    }
    match fs::metadata("/proc/self/ns/pid") {
        Ok(namespace) if namespace.ino() == FIRST_PID_NAMESPACE => {
            PID_NAMESPACE.ok("the machine's own")
        }
        _ => PID_NAMESPACE.ok("a container's: pids in the trace are those inside"),
    }
}

fn time_namespace() -> Finding {
    let offsets = fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    match is_shifted(&offsets) {
        true => TIME_NAMESPACE.ok("a shifted one: the merge corrects the shift"),
        false => TIME_NAMESPACE.ok("the machine's own clock"),
    }
}

fn is_shifted(offsets: &str) -> bool {
    offsets
        .split_whitespace()
        .any(|word| word.parse::<i64>().is_ok_and(|number| number != 0))
}

fn tracer() -> Finding {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let tracer = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    match tracer.map(str::trim) {
        None | Some("0") => PTRACE.ok("no process traces this one"),
        Some(pid) => PTRACE.warn(
            format!("process {pid} traces this one"),
            "strace and gdb make every system call slow: times will be too long",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_is_any_number_but_0() {
        assert!(!is_shifted("monotonic 0 0\nboottime 0 0\n") && !is_shifted(""));
        assert!(is_shifted("monotonic 0 0\nboottime -5 0\n"));
    }
}
