//! Measures merges of ten seconds of a run of 1,000 s: in its middle, at its begin, and at its end.

use std::path::Path;
use std::process::{Command, Stdio};

use measure::process::timed;
use measure::scratch;

use crate::input::{files_of, generated};
use crate::lines::Counts;
use crate::measure::check;
use crate::own::{self, Window};

const ROUNDS: u32 = 5;

/// Name, option, and begin and end in seconds of each window.
const WINDOWS: [(&str, &str, u64, u64); 3] = [
    ("middle", "--around=500s±5s", 495, 505),
    ("begin", "--to=10s", 0, 10),
    ("end", "--last=10s", 990, 1_000),
];

/// Merges each window, first with nothing of the run in the page cache, then with the needed parts in it. Prints
/// `RESULT window_<name> <best seconds> <seconds from the disk> <MB not read>`. Every generated span in the window must be found.
pub(crate) fn run(megabytes: u64, processes: u32) -> Result<(), String> {
    let name = format!("window-{megabytes}-{processes}");
    let (directory, counts): (_, [u64; WINDOWS.len()]) = generated(&name, |fragments| {
        let mut windows = WINDOWS.map(|(_, _, from_s, to_s)| Window::new(from_s, to_s));
        for index in 0..processes {
            let bytes = megabytes * 1_000_000 / u64::from(processes);
            own::write(fragments, index, bytes, &mut windows)?;
        }
        Ok(windows.map(|window| window.spans))
    })?;
    let scratch = scratch()?;
    let output = scratch.path().join("window.json");
    println!("10 s of a run of 1,000 s and {megabytes} MB in {processes} processes");
    for ((name, option, ..), spans) in WINDOWS.into_iter().zip(counts) {
        let command = |report: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_trace-merge"));
            command.args([option, "--report", report, "--output"]);
            command.arg(&output).arg(&directory).stdin(Stdio::null());
            command
        };
        drop_from_cache(&directory)?;
        let cold_s = timed(command("none"))?.as_secs_f64();
        let report = check(command("json"), &Counts::from([('X', spans)]))?;
        let mut processes = report["processes"].as_array().into_iter().flatten();
        if processes.any(|process| !process["name"].is_string()) {
            return Err(format!("{option}: a process has no name"));
        }
        let mut best_s = f64::INFINITY;
        for _ in 0..ROUNDS {
            best_s = timed(command("none"))?.as_secs_f64().min(best_s);
        }
        let not_read = report["window"]["bytes_left_out"].as_u64().unwrap_or(0) / 1_000_000;
        println!("RESULT window_{name} {best_s:.3} {cold_s:.3} {not_read}");
    }
    Ok(())
}

/// Drops a run from the page cache.
fn drop_from_cache(directory: &Path) -> Result<(), String> {
    for file in files_of(directory).map_err(|error| error.to_string())? {
        let mut dd = Command::new("dd");
        dd.arg(format!("if={}", file.display()));
        dd.args(["iflag=nocache", "count=0", "status=none"]);
        timed(dd)?;
    }
    Ok(())
}
