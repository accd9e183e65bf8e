//! Running a program while watching its memory and CPU time, which Linux shows under `/proc`.

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// What a watched program used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Most anonymous resident memory seen, in bytes.
    pub(crate) peak_anonymous_bytes: u64,
    /// User and system time in seconds (in steps of 10 ms).
    pub(crate) cpu_s: f64,
}

/// Runs a program to its end and returns its wall time.
pub(crate) fn timed(mut command: Command) -> Result<Duration, String> {
    let start = Instant::now();
    let status = command
        .status()
        .map_err(|error| format!("{command:?}: {error}"))?;
    let wall = start.elapsed();
    if status.success() {
        Ok(wall)
    } else {
        Err(format!("{command:?}: {status}"))
    }
}

/// Runs a program, looking at it every 2 ms.
pub(crate) fn watched(mut command: Command) -> Result<Usage, String> {
    let mut child = command
        .spawn()
        .map_err(|error| format!("{command:?}: {error}"))?;
    let usage = watch(&child);
    let status = child
        .wait()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() {
        usage.ok_or_else(|| format!("{command:?}: not seen in /proc"))
    } else {
        Err(format!("{command:?}: {status}"))
    }
}

/// Watches until the program has ended; its final times stay readable until it is waited for.
fn watch(child: &Child) -> Option<Usage> {
    let proc = Path::new("/proc").join(child.id().to_string());
    let mut usage = Usage::default();
    loop {
        let status = std::fs::read_to_string(proc.join("status")).ok()?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        if let Some(kilobytes) = field("RssAnon:") {
            let bytes = kilobytes
                .trim()
                .trim_end_matches(" kB")
                .parse::<u64>()
                .ok()?
                * 1024;
            usage.peak_anonymous_bytes = usage.peak_anonymous_bytes.max(bytes);
        }
        if field("State:")?.trim_start().starts_with('Z') {
            usage.cpu_s = cpu_s(&std::fs::read_to_string(proc.join("stat")).ok()?)?;
            return Some(usage);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Reads user and system time from a line of `/proc/<pid>/stat`; the kernel counts there in 1/100 s.
fn cpu_s(stat: &str) -> Option<f64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / 100.0)
}
