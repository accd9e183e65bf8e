//! Checks the clock: which source the kernel uses, and how long a reading takes. Every span needs two readings.

use super::finding::{Check, Finding};
use std::fs;
use std::hint::black_box;

const CLOCK: Check = Check("clock");

const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// Clock sources that can be read without a system call.
const FAST: [&str; 6] = [
    "tsc",
    "arch_sys_counter",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "riscv_clocksource",
    "stick",
];
/// Time above which a pair of readings is considered slow, because it probably goes through the kernel.
const SLOW_NS: u64 = 300;
const ROUNDS: u64 = 200;
const READINGS: u64 = 100;

/// Checks the clock.
pub(crate) fn examine() -> Vec<Finding> {
    let source = fs::read_to_string(SOURCE).map(|source| source.trim().to_owned());
    vec![judge(
        source.unwrap_or_default().as_str(),
        two_readings_ns(),
    )]
}

fn judge(source: &str, two_ns: u64) -> Finding {
    let name = if source.is_empty() {
        "of an unknown source"
    } else {
        source
    };
    let found = format!("{name}, two readings take {two_ns} ns");
    if two_ns > SLOW_NS {
        return CLOCK.warn(
            found,
            "every span costs that much; a machine with a stable tsc is faster",
        );
    }
    if source.is_empty() || FAST.contains(&source) {
        return CLOCK.ok(found);
    }
    CLOCK.warn(
        found,
        "this source may need a system call; see dmesg for why the kernel chose it",
    )
}

/// Returns the time in ns of two readings, the minimum of many rounds.
fn two_readings_ns() -> u64 {
    let round = || {
        let start = sa_recorder::now_ns();
        for _ in 0..2 * READINGS {
            black_box(sa_recorder::now_ns());
        }
        (sa_recorder::now_ns() - start) / READINGS
    };
    (0..ROUNDS).map(|_| round()).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Status;

    #[test]
    fn slow_clocks_are_reported() {
        for (source, ns, status) in [
            ("tsc", 41, Status::Ok),
            ("", 41, Status::Ok),
            ("tsc", 900, Status::Warn),
            ("hpet", 41, Status::Warn),
        ] {
            assert_eq!(judge(source, ns).status, status, "{source} {ns}");
        }
    }
}
