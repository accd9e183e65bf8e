//! What a report costs: `cargo bench --profile dist -p trace-report --bench report [-- MB]`.
//!
//! Generates once a trace of so many MB (1,500 by default, kept under `target/tmp`): an engine, eight workers with a device each, 16 requests at a
//! time. Then it makes a report of it, and merges it to /dev/null for comparison, five times in turn, each in a process of its own. Prints
//! `RESULT report_<MB> <CPU s per GB> <CPU as a multiple of the merge's> <peak anonymous MB>`.
//!
//! `peers` instead of the MB has DuckDB, pandas and Perfetto's trace processor answer three of its questions on a trace of 150 MB:
//! `RESULT report_by_<peer> <CPU s per GB> <CPU as a multiple of the report's> <peak anonymous MB>`.
//!
//! With `page`, a page of 100,000 requests is opened in a headless Chromium five times:
//! `RESULT page_100000_requests <least ms until it is drawn> <MB of the page>`.
#![expect(clippy::print_stdout, reason = "the figures are this program's output")]

mod generate;
mod peers;
#[path = "../../../merge/benches/merge/process.rs"]
#[expect(dead_code, reason = "the merge's benchmark uses all of it")]
mod process;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use trace_merge::{EventOptions, Mode, Options, Output, Progress};
use trace_report::{ReportOptions, page, read, screen};

const ROUNDS: u32 = 5;
const MEGABYTES: u64 = 1_500;
/// Of the trace that the peers hold in memory.
const PEERS_MEGABYTES: u64 = 150;
/// Of the trace behind the page.
const PAGE_MEGABYTES: u64 = 20;
const REQUESTS: usize = 100_000;
const BROWSER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/page/page");
/// Have this program make one report, or one merge, so that only this is measured.
const REPORT: &str = "--report";
const MERGE: &str = "--merge";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [REPORT, path] => report(path),
        [MERGE, path] => merge(path),
        ["page"] => measure_page(),
        ["peers"] => generate::trace(PEERS_MEGABYTES)
            .map_err(|error| format!("generating: {error}"))
            .and_then(|trace| peers::run(&trace)),
        [] => measure(MEGABYTES),
        [megabytes] => megabytes
            .parse()
            .map_err(|_| format!("expected a number of MB, found {megabytes}"))
            .and_then(measure),
        _ => Err(format!(
            "expected one number of MB, page or peers, found {words:?}"
        )),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("report: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(megabytes: u64) -> Result<(), String> {
    let path = generate::trace(megabytes).map_err(|error| format!("generating: {error}"))?;
    let bytes = path.metadata().map_err(|error| error.to_string())?.len();
    let (mut cpu_s, mut merge_cpu_s, mut peak) = (f64::MAX, f64::MAX, 0);
    for _ in 0..ROUNDS {
        let used = process::watched(itself(REPORT, &path)?)?;
        cpu_s = cpu_s.min(used.cpu_s);
        peak = peak.max(used.peak_anonymous_bytes);
        merge_cpu_s = merge_cpu_s.min(process::watched(itself(MERGE, &path)?)?.cpu_s);
    }
    println!(
        "RESULT report_{megabytes} {:.2} {:.2} {:.0}",
        cpu_s / (bytes as f64 / 1e9),
        cpu_s / merge_cpu_s,
        peak as f64 / 1e6
    );
    Ok(())
}

/// A page with the requests of a small trace, again and again.
fn measure_page() -> Result<(), String> {
    let of_file = |error: std::io::Error| error.to_string();
    let path = generate::trace(PAGE_MEGABYTES).map_err(of_file)?;
    let options = Options::new([path]);
    let report = read(&options, &ReportOptions::default(), &Progress::default());
    let mut report = report.map_err(|error| error.to_string())?;
    let few = std::mem::take(&mut report.request);
    let many = few.iter().cycle().take(REQUESTS).zip(0..);
    report.request = many
        .map(|(request, nth)| {
            let id = format!("{}-{nth}", request.request_id());
            request.clone().with_id(&id)
        })
        .collect();
    let page = page(&report, "bench", None).map_err(|error| error.to_string())?;
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page.html");
    std::fs::write(&file, &page).map_err(of_file)?;
    let mut least_ms = f64::MAX;
    for _ in 0..ROUNDS {
        let output = Command::new(BROWSER).arg(&file).output().map_err(of_file)?;
        let seen: serde_json::Value = serde_json::from_slice(&output.stdout)
            .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())?;
        least_ms = least_ms.min(seen["open_ms"].as_f64().unwrap_or(f64::MAX));
    }
    let megabytes = page.len() as f64 / 1e6;
    println!("RESULT page_{REQUESTS}_requests {least_ms:.0} {megabytes:.1}");
    Ok(())
}

fn itself(what: &str, path: &Path) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.arg(what).arg(path);
    Ok(command)
}

/// A report, which must have found what was generated.
fn report(path: &str) -> Result<(), String> {
    let options = Options::new([PathBuf::from(path)]);
    let report = read(&options, &ReportOptions::default(), &Progress::default());
    let report = report.map_err(|error| error.to_string())?;
    match report.idle.len() == generate::WORKERS && report.requests.ok > 0 {
        true => {
            drop(screen::text(&report));
            Ok(())
        }
        false => Err(format!(
            "{} devices, {} requests",
            report.idle.len(),
            report.requests.ok
        )),
    }
}

fn merge(path: &str) -> Result<(), String> {
    let options = Options {
        output: Output::File("/dev/null".into()),
        mode: Mode::Events(EventOptions {
            link_requests: false,
            ..EventOptions::default()
        }),
        ..Options::new([PathBuf::from(path)])
    };
    let merged = trace_merge::merge(&options).map_err(|error| error.to_string())?;
    match merged.events.total > 0 {
        true => Ok(()),
        false => Err("no event".to_owned()),
    }
}
