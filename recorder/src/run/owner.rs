//! Checks if a process still owns a fragment or a run file, by its lock, its header, and what this
//! process can see.

use std::os::fd::{AsRawFd, OwnedFd};

use crate::run::identity;
use crate::sys::{fd, read};
use sa_format::{FragmentHeader, Record, RunFile};

/// Returns true if the main process that a locked run file names may be alive. `identity` belongs
/// to the calling process. If it cannot see the other process, the lock decides. If it can, the
/// lock is not enough, because a forked child may hold the lock of a dead parent.
pub(crate) fn may_live(owner: &RunFile, identity: &FragmentHeader) -> bool {
    !is_visible(owner, identity) || identity::start_time(owner.main_pid) == Some(owner.start_time)
}

/// Returns true if `/proc` of the calling process, whose identity is `identity`, would show the
/// process that a run file names. An identity that was read without `/proc` is all zeros, which
/// would match by accident.
fn is_visible(owner: &RunFile, identity: &FragmentHeader) -> bool {
    owner.host == identity.host
        && owner.boot_id == identity.boot_id
        && owner.pid_ns == identity.pid_ns
        && owner.pid_ns != 0
        && owner.start_time != 0
        && identity::sees_processes(identity.pid)
}

/// Returns true if a live process is still writing an open fragment, whose header is `header`.
/// `identity` belongs to the calling process. Takes the fragment's lock if it is free.
pub(crate) fn is_owned(file: &OwnedFd, header: &FragmentHeader, identity: &FragmentHeader) -> bool {
    !fd::try_lock(file.as_raw_fd()) && may_live(&run_file(header), identity)
}

/// Returns the contents of the run file for a run whose main process has this fragment header.
pub(crate) fn run_file(header: &FragmentHeader) -> RunFile {
    RunFile {
        run: header.run.clone(),
        main_pid: header.pid,
        start_time: header.start_time,
        host: header.host.clone(),
        boot_id: header.boot_id.clone(),
        pid_ns: header.pid_ns,
    }
}

/// Reads the header of an open fragment. Returns `None` if the first line is not a header.
pub(crate) fn read_header(file: &OwnedFd) -> Option<FragmentHeader> {
    let start = read::rest(file, 16 << 10).ok()?;
    let line = start.split(|byte| *byte == b'\n').next()?;
    FragmentHeader::parse(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_counts_unless_its_process_is_known_to_be_gone() {
        let here = identity::read();
        let nowhere = FragmentHeader {
            host: String::new(),
            boot_id: String::new(),
            pid_ns: 0,
            start_time: 0,
            ..here.clone()
        };
        let run_with = |identity: &FragmentHeader, start_time| RunFile {
            start_time,
            ..run_file(identity)
        };
        let gone = here.start_time + 1;
        let other_boot = RunFile {
            boot_id: "other".to_owned(),
            ..run_with(&here, gone)
        };
        let other_namespace = RunFile {
            pid_ns: 1,
            ..run_with(&here, gone)
        };
        for (run, reader, expected) in [
            (run_with(&here, here.start_time), &here, true),
            (run_with(&here, gone), &here, false),
            (other_boot, &here, true),
            (other_namespace, &here, true),
            (run_with(&nowhere, 0), &here, true),
            (run_with(&nowhere, 0), &nowhere, true),
            (run_with(&here, gone), &nowhere, true),
        ] {
            assert_eq!(may_live(&run, reader), expected, "{run:?}");
        }
    }
}
