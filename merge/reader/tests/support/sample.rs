//! Headers and anchors for unit tests.

use sa_format::{Anchor, FragmentHeader, VERSION};

/// Creates the header of process `pid`, with the pid as its nonce.
pub(crate) fn header(pid: u32) -> FragmentHeader {
    FragmentHeader {
        version: VERSION,
        nonce: format!("{pid:016x}"),
        run: "run".into(),
        host: "node".into(),
        boot_id: "boot".into(),
        pid_ns: 1,
        time_ns: 1,
        pid,
        start_time: u64::from(pid),
        exe: "python3".into(),
        page_bytes: 4096,
        ..FragmentHeader::default()
    }
}

/// Creates an anchor whose two readings are 40 ns apart.
pub(crate) fn anchor(monotonic_ns: u64, realtime_ns: u64) -> Anchor {
    Anchor {
        monotonic_ns,
        realtime_ns,
        uncertainty_ns: 40,
    }
}
