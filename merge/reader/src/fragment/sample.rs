//! Headers for unit tests.

use sa_format::{FragmentHeader, RingKind, VERSION};

/// A header of process `pid`, with its nonce spelled by its pid.
pub(crate) fn header(pid: u32) -> FragmentHeader {
    FragmentHeader {
        version: VERSION,
        nonce: format!("{pid:016x}"),
        segment: 0,
        run: "run".into(),
        main: false,
        host: "node".into(),
        boot_id: "boot".into(),
        pid_ns: 1,
        time_ns: 1,
        monotonic_offset_ns: 0,
        pid,
        start_time: u64::from(pid),
        exe: "python3".into(),
        script: None,
        forked_from: None,
        ring: RingKind::File,
        page_bytes: 4096,
        levels: None,
        open_ns: None,
        late_ns: None,
    }
}
