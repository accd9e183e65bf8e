//! Cost of a merge: processor time, and anonymous memory, which includes its heap and stacks but
//! not the files that it maps.

use std::process::{Child, Command};
use std::time::Duration;

/// Set if programs run in an emulator, whose memory counts as theirs.
const EMULATED: &str = "SA_TEST_EMULATED";

/// A program with less memory has only just started.
const MIN_KIB: u64 = 1 << 10;

/// Returns the anonymous memory of a child that has not ended, in KiB.
pub(crate) fn anonymous_kib(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// Returns the processor time that a child has used so far, in ticks of 10 ms. It is still
/// available after the child has ended, until the parent waits for it.
fn ticks(child: &Child) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// Cost of a child process that has ended.
pub(crate) struct Cost {
    pub(crate) ticks: u64,
    /// Maximum anonymous memory, sampled every millisecond.
    pub(crate) peak_kib: u64,
    pub(crate) code: Option<i32>,
}

impl Cost {
    pub(crate) fn measure(command: &mut Command) -> Cost {
        let mut child = command.spawn().unwrap();
        let (mut ticks, mut peak_kib) = (0, 0);
        while child.try_wait().unwrap().is_none() {
            ticks = self::ticks(&child).unwrap_or(ticks);
            peak_kib = anonymous_kib(&child).unwrap_or(0).max(peak_kib);
            std::thread::sleep(Duration::from_millis(1));
        }
        Cost {
            ticks,
            peak_kib,
            code: child.wait().unwrap().code(),
        }
    }
}

/// Runs a merge that must succeed, and returns its maximum anonymous memory in KiB.
pub(crate) fn peak_kib(merge: &mut Command) -> u64 {
    let cost = Cost::measure(merge);
    assert_eq!(cost.code, Some(0));
    cost.peak_kib
}

/// Asserts that the memory of a merge in KiB is below a bound.
pub(crate) fn assert_below(bound_kib: u64, kib: u64, test: &str) {
    eprintln!("{test}: {kib} KiB of anonymous memory");
    assert!(kib >= MIN_KIB, "{test}: {kib} KiB");
    if std::env::var_os(EMULATED).is_some() {
        eprintln!("SKIPPED the bound of memory in {test}: the memory of an emulator counts too");
    } else {
        assert!(kib < bound_kib, "{test}: {kib} KiB");
    }
}
