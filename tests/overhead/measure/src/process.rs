//! Programs: how long they take, and what memory and CPU time.

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Memory and CPU time of a watched program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Most anonymous resident memory that was seen, in bytes.
    pub peak_anonymous_bytes: u64,
    /// User and system time in seconds (in steps of 10 ms).
    pub cpu_s: f64,
}

/// Runs a program to its end and returns its wall time.
///
/// # Errors
///
/// If it cannot be started, or fails.
pub fn timed(mut command: Command) -> Result<Duration, String> {
    let start = Instant::now();
    let status = command.status();
    let wall = start.elapsed();
    match status {
        Ok(status) if status.success() => Ok(wall),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

/// Runs a program, and looks at its memory every 2 ms.
///
/// # Errors
///
/// If it cannot be started, or fails.
pub fn watched(mut command: Command) -> Result<Usage, String> {
    let fail = |command: &Command, why: &dyn std::fmt::Display| format!("{command:?}: {why}");
    let mut child = command.spawn().map_err(|error| fail(&command, &error))?;
    let usage = watch(&child);
    let status = child.wait().map_err(|error| fail(&command, &error))?;
    if !status.success() {
        return Err(fail(&command, &status));
    }
    usage.ok_or_else(|| fail(&command, &"not found in /proc"))
}

/// Watches until the program has ended; its final times stay readable until it is waited for.
fn watch(child: &Child) -> Option<Usage> {
    let mut usage = Usage::default();
    loop {
        let bytes = anonymous_bytes(child.id()).unwrap_or(0);
        usage.peak_anonymous_bytes = usage.peak_anonymous_bytes.max(bytes);
        let stat = stat_fields(child.id())?;
        if stat.first()? == "Z" {
            usage.cpu_s = cpu_s(child.id())?;
            return Some(usage);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the anonymous resident memory of a process in bytes.
pub fn anonymous_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status"));
    Some(1024 * kib(&status.ok()?, "RssAnon")?)
}

/// Returns the number of KiB, or of whatever it counts, after `name:` in a file of `/proc`.
pub fn kib(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.split_whitespace().next()?.parse().ok()
}

/// Returns user and system time of a process in seconds; the kernel counts 1/100 s here.
pub fn cpu_s(pid: u32) -> Option<f64> {
    let stat = stat_fields(pid)?;
    let ticks = |at: usize| stat.get(at)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / 100.0)
}

/// Returns the fields of `/proc/<pid>/stat` from the state on.
fn stat_fields(pid: u32) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    let stat = stat.ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields = after_name.split_ascii_whitespace();
    Some(fields.map(str::to_owned).collect())
}

/// Returns the line of `/proc/loadavg`.
pub fn load_average() -> String {
    std::fs::read_to_string("/proc/loadavg")
        .map_or_else(|error| error.to_string(), |text| text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let status = "VmRSSx:\t1 kB\nVmRSS:\t  2048 kB\nThreads:\t3\n";
        assert_eq!(kib(status, "VmRSS"), Some(2048));
        assert_eq!(kib(status, "Threads"), Some(3));
        assert_eq!(kib(status, "Rss"), None);
    }

    #[test]
    fn a_program_that_fails_has_no_figures() {
        assert!(watched(Command::new("true")).is_ok());
        assert!(watched(Command::new("false")).is_err());
        assert!(timed(Command::new("/nonexistent")).is_err());
    }
}
