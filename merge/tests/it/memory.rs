//! What a merge takes: anonymous memory, which is its heap and stacks and not the files that it maps, and processor time.

use std::process::Child;
use std::time::Duration;

/// Set where programs run in an emulator, whose own memory is part of theirs.
const EMULATED: &str = "SA_TEST_EMULATED";

/// Less is a program that has only begun.
const MIN_KIB: u64 = 1 << 10;

/// Of a child that has not ended, in KiB.
pub(crate) fn anonymous_kib(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// Processor time that a child has taken so far, in ticks of 10 ms; one that has ended is still told of until it is waited for.
pub(crate) fn ticks(child: &Child) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// The most that a merge has until it ends well, in KiB; looked at every millisecond.
pub(crate) fn peak_kib(mut child: Child) -> u64 {
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        peak = peak.max(anonymous_kib(&child).unwrap_or(0));
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(child.wait().unwrap().success());
    peak
}

/// What a merge has at work, in KiB, is less than the bound.
pub(crate) fn assert_below(bound_kib: u64, kib: u64, test: &str) {
    eprintln!("{test}: {kib} KiB of anonymous memory");
    assert!(kib >= MIN_KIB, "{test}: {kib} KiB");
    if std::env::var_os(EMULATED).is_some() {
        eprintln!("SKIPPED the bound of memory in {test}: the memory of an emulator counts too");
    } else {
        assert!(kib < bound_kib, "{test}: {kib} KiB");
    }
}
