//! Whether a process still owns a fragment or a run file: what its lock and its header say, held against what can be seen from here.

use std::os::fd::{AsRawFd, OwnedFd};

use crate::run::identity::{self, Identity};
use crate::sys::{fd, read};
use sa_format::{FragmentHeader, Record, RunFile};

/// The process that a header or a run file names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'a> {
    host: &'a str,
    boot_id: &'a str,
    pid_ns: u64,
    pid: u32,
    start_time: u64,
}

impl<'a> From<&'a FragmentHeader> for Owner<'a> {
    fn from(header: &'a FragmentHeader) -> Owner<'a> {
        Owner {
            host: &header.host,
            boot_id: &header.boot_id,
            pid_ns: header.pid_ns,
            pid: header.pid,
            start_time: header.start_time,
        }
    }
}

impl<'a> From<&'a RunFile> for Owner<'a> {
    fn from(run: &'a RunFile) -> Owner<'a> {
        Owner {
            host: &run.host,
            boot_id: &run.boot_id,
            pid_ns: run.pid_ns,
            pid: run.main_pid,
            start_time: run.start_time,
        }
    }
}

impl Owner<'_> {
    /// Whether the process may be alive, its lock being held. Where the process cannot be seen, the lock is all there is to go by. Where it can
    /// be seen, a lock is not enough: a forked child may hold that of a parent that is dead.
    pub(crate) fn may_live(&self, identity: &Identity) -> bool {
        !self.is_visible(identity) || identity::start_time(self.pid) == Some(self.start_time)
    }

    /// Whether `/proc` here would show the process. An identity read without `/proc` is all zeros, which are equal and mean nothing.
    fn is_visible(&self, identity: &Identity) -> bool {
        self.host == identity.host
            && self.boot_id == identity.boot_id
            && self.pid_ns == identity.pid_ns
            && self.pid_ns != 0
            && self.start_time != 0
            && identity::sees_processes(identity.pid)
    }
}

/// Whether a live process owns the fragment. Takes its lock for a moment if nobody has it.
pub(crate) fn is_owned(file: &OwnedFd, header: &FragmentHeader, identity: &Identity) -> bool {
    !fd::try_lock(file.as_raw_fd()) && Owner::from(header).may_live(identity)
}

/// The header of an open fragment, if its first line is one.
pub(crate) fn read_header(file: &OwnedFd) -> Option<FragmentHeader> {
    let start = read::rest(file, 16 << 10).ok()?;
    let line = start.split(|byte| *byte == b'\n').next()?;
    FragmentHeader::parse(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_counts_unless_its_process_is_seen_to_be_gone() {
        let here = Identity::read();
        let nowhere = Identity {
            host: String::new(),
            boot_id: String::new(),
            pid_ns: 0,
            start_time: 0,
            ..here.clone()
        };
        let of = |identity: &Identity, start_time| RunFile {
            run: "r".to_owned(),
            main_pid: identity.pid,
            start_time,
            host: identity.host.clone(),
            boot_id: identity.boot_id.clone(),
            pid_ns: identity.pid_ns,
        };
        let gone = here.start_time + 1;
        let other_boot = RunFile {
            boot_id: "other".to_owned(),
            ..of(&here, gone)
        };
        let other_namespace = RunFile {
            pid_ns: 1,
            ..of(&here, gone)
        };
        for (run, reader, expected) in [
            (of(&here, here.start_time), &here, true),
            (of(&here, gone), &here, false),
            (other_boot, &here, true),
            (other_namespace, &here, true),
            (of(&nowhere, 0), &here, true),
            (of(&nowhere, 0), &nowhere, true),
            (of(&here, gone), &nowhere, true),
        ] {
            assert_eq!(Owner::from(&run).may_live(reader), expected, "{run:?}");
        }
    }
}
