//! What a run was measured on.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The facts that stand above the tables.
#[derive(Debug)]
pub(crate) struct Machine {
    facts: Vec<(&'static str, String)>,
    /// Whether other programs kept the machine busy before the measurement began.
    busy: bool,
}

impl Machine {
    /// Looks at this machine; `directory` lies on the file system that is measured.
    pub(crate) fn look(directory: &Path) -> Machine {
        let facts = vec![
            ("processor", processor()),
            ("kernel", first_line("/proc/sys/kernel/osrelease")),
            ("file system", file_system(directory)),
            (
                "clock source",
                first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            ),
            ("page size", format!("{} bytes", rustix::param::page_size())),
            (
                "compiler",
                format!(
                    "{}, profile {}",
                    env!("OVERHEAD_RUSTC"),
                    env!("OVERHEAD_PROFILE")
                ),
            ),
            ("date", date(days_since_1970())),
            ("load average before", load_average()),
        ];
        Machine {
            facts,
            busy: is_busy(&load_average(), cores()),
        }
    }

    /// Adds the load at the end.
    pub(crate) fn finish(&mut self) {
        self.facts.push(("load average after", load_average()));
    }

    /// The facts in order.
    pub(crate) fn facts(&self) -> &[(&'static str, String)] {
        &self.facts
    }

    /// Whether other programs ran beside the measurement.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy
    }
}

fn first_line(path: &str) -> String {
    match fs::read_to_string(path) {
        Ok(text) => text.lines().next().unwrap_or_default().to_owned(),
        Err(error) => format!("unknown ({path}: {error})"),
    }
}

/// Over 1, 5 and 15 minutes.
fn load_average() -> String {
    let line = first_line("/proc/loadavg");
    let numbers: Vec<&str> = line.split(' ').take(3).collect();
    numbers.join(" ")
}

/// Whether the load average of the last minute is more than half of the cores.
fn is_busy(load_average: &str, cores: usize) -> bool {
    let last_minute = load_average.split(' ').next();
    let load: Option<f64> = last_minute.and_then(|load| load.parse().ok());
    load.is_some_and(|load| load > cores as f64 / 2.0)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(0, std::num::NonZero::get)
}

fn processor() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo_field(&cpuinfo, "model name").unwrap_or(std::env::consts::ARCH);
    let flags = cpuinfo_field(&cpuinfo, "flags").unwrap_or_default();
    let is_virtual = flags.split(' ').any(|flag| flag == "hypervisor");
    let place = if is_virtual { ", virtual machine" } else { "" };
    format!("{model}, {} cores{place}", cores())
}

fn cpuinfo_field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let found = fields.find(|(key, _)| key.trim() == name);
    found.map(|(_, value)| value.trim())
}

fn file_system(directory: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let directory = directory
        .canonicalize()
        .unwrap_or_else(|_| directory.to_owned());
    mount_type(&mounts, &directory).unwrap_or_else(|| "unknown".to_owned())
}

/// The type of the file system whose mount point is the longest one above `directory`; of equal ones the last hides the others.
fn mount_type(mountinfo: &str, directory: &Path) -> Option<String> {
    let mounts = mountinfo.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        Some((before.split(' ').nth(4)?, after.split(' ').next()?))
    });
    let above = mounts.filter(|(point, _)| directory.starts_with(point));
    let nearest = above.max_by_key(|(point, _)| point.len());
    nearest.map(|(_, kind)| kind.to_owned())
}

fn days_since_1970() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs() / 86_400)
}

/// The date in UTC, `YYYY-MM-DD`.
fn date(mut days: u64) -> String {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_know_leap_years() {
        for (days, text) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (19_782, "2024-02-29"),
            (20_453, "2025-12-31"),
            (20_454, "2026-01-01"),
        ] {
            assert_eq!(date(days), text);
        }
    }

    #[test]
    fn the_nearest_mount_counts() {
        let mounts = "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 0:5 / /home rw shared:1 - xfs /dev/b rw\n3 1 0:6 / /home rw - tmpfs t rw\n";
        let of = |path: &str| mount_type(mounts, Path::new(path));
        assert_eq!(of("/homework/x").as_deref(), Some("ext4"));
        assert_eq!(of("/home/x").as_deref(), Some("tmpfs"));
        assert_eq!(mount_type("", Path::new("/")), None);
    }

    #[test]
    fn a_load_of_more_than_half_the_cores_is_busy() {
        assert!(is_busy("1.10 0.00 0.00", 2));
        assert!(!is_busy("0.90 5.00 5.00", 2));
        assert!(!is_busy("unknown", 2));
    }

    #[test]
    fn fields_are_found_by_name() {
        let cpuinfo = "processor\t: 0\nmodel name\t: A 1\nflags\t\t: fpu hypervisor\n";
        assert_eq!(cpuinfo_field(cpuinfo, "model name"), Some("A 1"));
        assert_eq!(cpuinfo_field(cpuinfo, "model"), None);
    }
}
