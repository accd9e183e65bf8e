//! What recording costs through the C API, against the floor of two clock reads: `cargo bench -p sa-profile-capi --bench capi [-- --quick]`.
//!
//! The calls go through the shared library, loaded as a C program loads it. A recorder is one per process, so every case runs in fresh child
//! processes of this binary. Prints lines `RESULT <case> <ns> <ratio_to_two_clock_reads>`, medians over the rounds.
#![expect(unsafe_code, reason = "calls a C library")]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the figures are this program's output"
)]

mod library;

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use measure::quantile::median;
use measure::rounds::{self, Body, Plan, Round};
use measure::{Scratch, warm_page_cache};

use library::Library;

/// Marks a child's command line: `FLAG CASE DIRECTORY ROUNDS`.
const FLAG: &str = "--case-in-child";
/// Where the children record.
const SCRATCH: &str = env!("CARGO_TARGET_TMPDIR");

/// What is measured: its name, the loop, and whether a directory turns recording on.
type Case = (&'static str, fn(&Library, u64), bool);

const CASES: [Case; 4] = [
    ("capi_span", Library::spans, true),
    ("capi_span_3args", Library::spans_with_args, true),
    ("capi_instant", Library::instants, true),
    ("capi_disabled", Library::spans, false),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [FLAG, name, directory, rounds] => in_child(name, Path::new(directory), rounds),
        words => measure_all(words.contains(&"--quick")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("capi: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure_all(quick: bool) -> Result<(), String> {
    let (passes, rounds) = if quick { (1, "3") } else { (5, "9") };
    for (name, _, records) in CASES {
        let (mut span_ns, mut ratio) = (Vec::new(), Vec::new());
        for _ in 0..passes {
            for (span, floor) in one_child(name, records, rounds)? {
                span_ns.push(span);
                ratio.push(span / floor);
            }
        }
        println!(
            "RESULT {name} {:.2} {:.3}",
            median(&span_ns),
            median(&ratio)
        );
    }
    Ok(())
}

/// Runs a case in a child; ns per event and floor of each round.
fn one_child(name: &str, records: bool, rounds: &str) -> Result<Vec<(f64, f64)>, String> {
    let scratch = Scratch::new(SCRATCH.as_ref(), name)?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args([FLAG, name]).arg(scratch.path()).arg(rounds);
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SA_PROFILE_") {
            command.env_remove(name);
        }
    }
    if records {
        command.env("SA_PROFILE_DIR", scratch.path().join("run"));
    }
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("{name}: child: {}", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let figures = |line: &str| -> Option<(f64, f64)> {
        let (span, floor) = line.split_once(' ')?;
        Some((span.parse().ok()?, floor.parse().ok()?))
    };
    text.lines()
        .map(|line| figures(line).ok_or_else(|| format!("{name}: unexpected line {line}")))
        .collect()
}

fn in_child(name: &str, directory: &Path, rounds: &str) -> Result<(), String> {
    let case = CASES.iter().find(|case| case.0 == name);
    let (_, record, records) = case.ok_or_else(|| format!("no case {name}"))?;
    let library = Library::load()?;
    if library.is_enabled() != *records {
        return Err(format!("{name}: recording is on: {}", library.is_enabled()));
    }
    warm_page_cache(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let plan = Plan {
        threads: 1,
        spans: if *records { 40_000 } else { 2_000_000 },
        warm_rounds: 3,
        rounds: rounds
            .parse()
            .map_err(|error| format!("{rounds}: {error}"))?,
    };
    let body = Body {
        record: &|count| record(&library, count),
        settle: &|| library.flush(),
    };
    for Round {
        span_ns, floor_ns, ..
    } in rounds::run(plan, body)
    {
        println!("{span_ns} {floor_ns}");
    }
    match library.dropped() {
        0 => Ok(()),
        dropped => Err(format!("{name}: {dropped} events were dropped")),
    }
}
