//! The machine that a run was measured on.

use std::process::Command;

/// Facts and the commands that print them; the program's own path follows as `$0`. Cargo names its folder after the profile.
const FACTS: [(&str, &str); 7] = [
    (
        "processor",
        "sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1",
    ),
    (
        "cores",
        "nproc; ! grep -q ' hypervisor ' /proc/cpuinfo || echo of a virtual machine",
    ),
    ("kernel", "uname -r"),
    ("file system", "df --output=fstype \"$0\" | tail -n 1"),
    (
        "clock source",
        "cat /sys/devices/system/clocksource/clocksource0/current_clocksource",
    ),
    (
        "compiler",
        "rustc --version; echo , profile $(basename $(dirname \"$0\"))",
    ),
    ("date", "date -u +%F"),
];

/// Returns the rows above the tables.
pub(crate) fn description() -> Vec<Vec<String>> {
    let program = std::env::current_exe().unwrap_or_default();
    let fact = |(name, command): (&str, &str)| {
        let output = Command::new("sh")
            .args(["-c", command])
            .arg(&program)
            .output();
        let output = output.map_or_else(|_| Vec::new(), |output| output.stdout);
        let words = String::from_utf8_lossy(&output);
        let words: Vec<&str> = words.split_whitespace().collect();
        vec![name.to_owned(), words.join(" ").replace(" ,", ",")]
    };
    FACTS.map(fact).into()
}

/// Returns the load averages over 1, 5 and 15 minutes.
pub(crate) fn load_average() -> String {
    let line = measure::process::load_average();
    line.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// Returns true if the load average of the last minute is more than half of the cores: other programs ran.
pub(crate) fn is_busy(load_average: &str) -> bool {
    let cores = std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
    let last_minute = load_average.split(' ').next();
    let load: Option<f64> = last_minute.and_then(|load| load.parse().ok());
    load.is_some_and(|load| load > cores / 2.0)
}
