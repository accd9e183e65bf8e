//! Measures the cost of a report: `cargo bench --profile dist -p trace-report --bench report [-- MB]`.
//!
//! Generates a trace of that size once (1,500 MB by default, kept under `target/tmp`): an engine, eight workers with
//! one device each, and 16 requests at a time. Creates a report of it, and for comparison merges it to /dev/null, five
//! times in turn, each in its own process. Prints `RESULT report_<MB> <CPU s per GB> <CPU as a multiple of the merge's>
//! <peak anonymous MB>`.
//!
//! With `page`, it opens a page of 100,000 requests in a headless Chromium five times, and prints `RESULT
//! page_100000_requests <least ms until it is drawn> <MB of the page>`.
#![expect(clippy::print_stdout, reason = "the figures are this program's output")]

mod generate;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use measure::Child;
use measure::process::watched;
use trace_merge::{EventOptions, Mode, Options, Output, Progress};
use trace_report::{ReportOptions, Request, RunReport, page, screen};

const ROUNDS: u32 = 5;
const MEGABYTES: u64 = 1_500;
/// Size of the trace from which the page is created, and number of requests on the page.
const PAGE_MEGABYTES: u64 = 20;
const REQUESTS: usize = 100_000;
const BROWSER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/page/page");
/// Options with which this program runs one report, or one merge, so that only this is measured.
const REPORT: &str = "--report";
const MERGE: &str = "--merge";

fn main() -> ExitCode {
    let words = measure::words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    measure::exit_code(match words.as_slice() {
        [REPORT, path] => report(Path::new(path)),
        [MERGE, path] => merge(path),
        ["page"] => measure_page(),
        [] => measure(MEGABYTES),
        [word] => match word.parse() {
            Ok(megabytes) => measure(megabytes),
            Err(_) => Err(format!("expected a number of MB or page, found {word}")),
        },
        _ => Err(format!(
            "expected one number of MB, or page, found {words:?}"
        )),
    })
}

fn measure(megabytes: u64) -> Result<(), String> {
    let path = generate::trace(megabytes)?;
    let bytes = path.metadata().map_err(|error| error.to_string())?.len();
    let words = path.to_string_lossy();
    let used = |what: &str| watched(Child::new([what, &words])?.into_command());
    let (mut cpu_s, mut merge_cpu_s, mut peak) = (f64::MAX, f64::MAX, 0);
    for _ in 0..ROUNDS {
        let usage = used(REPORT)?;
        cpu_s = cpu_s.min(usage.cpu_s);
        peak = peak.max(usage.peak_anonymous_bytes);
        merge_cpu_s = merge_cpu_s.min(used(MERGE)?.cpu_s);
    }
    println!(
        "RESULT report_{megabytes} {:.2} {:.2} {:.0}",
        cpu_s / (bytes as f64 / 1e9),
        cpu_s / merge_cpu_s,
        peak as f64 / 1e6
    );
    Ok(())
}

/// Opens a page with many copies of the requests of a small trace.
fn measure_page() -> Result<(), String> {
    let file_error = |error: std::io::Error| error.to_string();
    let mut report = read(&generate::trace(PAGE_MEGABYTES)?)?;
    let few = std::mem::take(&mut report.request);
    let many = few.iter().cycle().take(REQUESTS).zip(0..);
    report.request = many
        .map(|(request, nth)| {
            let id = format!("{}-{nth}", request.request_id);
            Request {
                request_id: id.into(),
                ..request.clone()
            }
        })
        .collect();
    let page = page(&report, "bench", None).map_err(|error| error.to_string())?;
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page.html");
    std::fs::write(&file, &page).map_err(file_error)?;
    let mut least_ms = f64::MAX;
    for _ in 0..ROUNDS {
        let output = Command::new(BROWSER)
            .arg(&file)
            .output()
            .map_err(file_error)?;
        let shown: serde_json::Value = serde_json::from_slice(&output.stdout)
            .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())?;
        least_ms = least_ms.min(shown["open_ms"].as_f64().unwrap_or(f64::MAX));
    }
    let megabytes = page.len() as f64 / 1e6;
    println!("RESULT page_{REQUESTS}_requests {least_ms:.0} {megabytes:.1}");
    Ok(())
}

fn read(path: &Path) -> Result<RunReport, String> {
    let options = Options::new([path.to_owned()]);
    trace_report::read(&options, &ReportOptions::default(), &Progress::default())
        .map_err(|error| error.to_string())
}

/// Creates a report, and checks that it found what was generated.
fn report(path: &Path) -> Result<(), String> {
    let report = read(path)?;
    let (devices, requests) = (report.idle.len(), report.requests.ok);
    if devices != generate::WORKERS || requests == 0 {
        return Err(format!("{devices} devices, {requests} requests"));
    }
    drop(screen::text(&report));
    Ok(())
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
    let merged = trace_merge::merge(&options);
    merged.map(|_| ()).map_err(|error| error.to_string())
}
