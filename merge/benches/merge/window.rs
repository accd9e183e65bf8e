//! How fast a window of a long run is merged: `cargo bench -p trace-merge --bench merge -- window [MB [processes]]`.
//!
//! Generates a run of so many MB (2,000 by default, kept under `target/tmp`) of 8 or so many processes that lasts 1,000 s, and takes ten seconds of it: from
//! its middle, at its begin, and at its end. Each is merged to a file, first with nothing of the run in memory, then five times with what it needs there.
//! What is found is compared with what was generated. Prints lines `RESULT window_<part> <best seconds> <seconds from the disk> <MB not read>`.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::long::{self, Count, START_NS};
use crate::process;

/// Changes whenever the generator does.
const GENERATION: u32 = 4;
const PROCESSES: u32 = 8;
const ROUNDS: u32 = 5;
const SECOND_NS: u64 = 1_000_000_000;

/// The parts: name, option, and begin and end in seconds from the start.
const PARTS: [(&str, &str, u64, u64); 3] = [
    ("middle", "--around=500s±5s", 495, 505),
    ("begin", "--to=10s", 0, 10),
    ("end", "--last=10s", 990, 1_000),
];

/// Measures the windows of a run of the size that the words give.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let number = |at: usize, default: u32| match words.get(at) {
        None => Ok(default),
        Some(word) => word.parse().map_err(|_| {
            format!("window: expected a number of MB and one of processes, found {word}")
        }),
    };
    let (megabytes, processes) = (number(0, 2_000)?, number(1, PROCESSES)?);
    let opened = open(megabytes.into(), processes);
    let (directory, counts) = opened.map_err(|error| format!("generating: {error}"))?;
    let fragments = directory.join("fragments");
    let output = directory.with_extension("window.json");
    let mut results = Vec::new();
    for ((part, option, ..), spans) in PARTS.iter().zip(&counts) {
        forget(&fragments)?;
        let cold = process::timed(command(&directory, option, &output, "none"))?;
        let not_read = check(&directory, option, &output, spans)?;
        let mut best = f64::INFINITY;
        for round in 0..ROUNDS {
            eprintln!("{part} {}/{ROUNDS}", round + 1);
            let took = process::timed(command(&directory, option, &output, "none"))?;
            best = best.min(took.as_secs_f64());
        }
        let cold = cold.as_secs_f64();
        results.push(format!(
            "RESULT window_{part} {best:.3} {cold:.3} {not_read}"
        ));
    }
    std::fs::remove_file(&output).map_err(|error| format!("{}: {error}", output.display()))?;
    println!("10 s of a run of 1,000 s and {megabytes} MB in {processes} processes");
    results.iter().for_each(|result| println!("{result}"));
    Ok(())
}

/// Returns the run directory and the number of spans in each part. Generates the run if it is not there.
fn open(megabytes: u64, processes: u32) -> io::Result<(PathBuf, Vec<u64>)> {
    let name = format!("window-bench-{GENERATION}/{megabytes}-{processes}");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let counts_path = directory.join("counts.json");
    if !counts_path.exists() {
        let counts = generate(&directory, megabytes * 1_000_000, processes)?;
        // Last, so that an interrupted generation starts anew.
        std::fs::write(&counts_path, serde_json::to_vec(&counts)?)?;
    }
    let counts = serde_json::from_slice(&std::fs::read(&counts_path)?)?;
    Ok((directory, counts))
}

fn generate(directory: &Path, bytes: u64, processes: u32) -> io::Result<Vec<u64>> {
    eprintln!(
        "generating {} MB in {}",
        bytes / 1_000_000,
        directory.display()
    );
    let fragments = directory.join("fragments");
    std::fs::create_dir_all(&fragments)?;
    let part = |(_, _, from_s, to_s): &(_, _, u64, u64)| Count {
        from_ns: START_NS + from_s * SECOND_NS,
        to_ns: START_NS + to_s * SECOND_NS,
        spans: 0,
    };
    let mut counts: Vec<Count> = PARTS.iter().map(part).collect();
    for index in 0..processes {
        long::write(&fragments, index, bytes / u64::from(processes), &mut counts)?;
    }
    for file in std::fs::read_dir(&fragments)? {
        File::open(file?.path())?.sync_all()?;
    }
    Ok(counts.iter().map(|count| count.spans).collect())
}

/// Drops a run from the page cache.
fn forget(fragments: &Path) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", fragments.display());
    for file in std::fs::read_dir(fragments).map_err(failed)? {
        let mut input = std::ffi::OsString::from("if=");
        input.push(file.map_err(failed)?.path());
        let mut dd = Command::new("dd");
        dd.arg(input)
            .args(["iflag=nocache", "count=0", "status=none"]);
        process::timed(dd)?;
    }
    Ok(())
}

/// Merges once and compares what is found with what was generated. Returns the MB that were not read.
fn check(directory: &Path, option: &str, output: &Path, spans: &u64) -> Result<u64, String> {
    let mut command = command(directory, option, output, "json");
    let done = command.output();
    let done = done.map_err(|error| format!("{command:?}: {error}"))?;
    let report: serde_json::Value = serde_json::from_slice(&done.stdout)
        .map_err(|error| format!("{option}: report: {error}"))?;
    let found = report["events_by_phase"]["X"].as_u64().unwrap_or(0);
    if report["damage_total"] != 0 || found != *spans {
        return Err(format!(
            "{option}: {spans} spans generated, {found} found; damage: {}",
            report["damage_by_kind"]
        ));
    }
    let nameless = |process: &serde_json::Value| !process["name"].is_string();
    if report["processes"]
        .as_array()
        .is_none_or(|all| all.iter().any(nameless))
    {
        return Err(format!("{option}: a process without a name"));
    }
    Ok(report["window"]["bytes_left_out"].as_u64().unwrap_or(0) / 1_000_000)
}

fn command(directory: &Path, option: &str, output: &Path, report: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trace-merge"));
    command.args([option, "--report", report, "--output"]);
    command.arg(output).arg(directory).stdin(Stdio::null());
    command
}
