//! What else answers three questions on a trace, beside the report in the same run: the time of each name, the median E2E of the requests, and how long
//! devices were busy. A peer that is not there is skipped by name.
//!
//! Each holds the whole trace in memory. None looks for losses, nests spans, or says why a device was idle.

use crate::process::{self, Usage};
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use trace_merge::{Options, Progress};
use trace_report::{ReportOptions, read};

const ROUNDS: u32 = 3;
const PACKAGES: [&str; 2] = ["duckdb==2.0.1", "pandas==3.1.1"];
const PROCESSOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/perfetto/tpq");
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/report/peers.py");
const DEVICES: &str = include_str!("../../sql/devices.sql");
const NAMES: &str = "SELECT COUNT(*) AS names, SUM(ns) AS ns FROM (SELECT SUM(dur) AS ns FROM slice WHERE dur > 0 GROUP BY name)";
const REQUESTS: &str = "WITH r AS (SELECT dur, ROW_NUMBER() OVER (ORDER BY dur) - 1 AS nth, COUNT(*) OVER () AS n FROM slice WHERE name GLOB 'http.*' AND dur > 0) SELECT AVG(dur) AS ns FROM r WHERE nth IN ((n - 1) / 2, n / 2)";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    Report,
    Duckdb,
    Pandas,
    TraceProcessor,
}

const PEERS: [Peer; 4] = [
    Peer::Report,
    Peer::Duckdb,
    Peer::Pandas,
    Peer::TraceProcessor,
];

/// The answers: how many names there are and their time, the median E2E, the busy time, in µs.
#[derive(Clone, Copy, Debug)]
struct Answers {
    names: u64,
    total_us: f64,
    e2e_us: f64,
    busy_us: f64,
}

impl Peer {
    fn name(self) -> &'static str {
        match self {
            Peer::Report => "trace_report",
            Peer::Duckdb => "duckdb",
            Peer::Pandas => "pandas",
            Peer::TraceProcessor => "trace_processor",
        }
    }

    /// What answers on standard output; `None` if it is not there. `report` makes a report.
    fn command(self, trace: &Path, python: Option<&Path>, report: &Path) -> Option<Command> {
        let of_python = |engine: &str| {
            let mut command = Command::new(python?);
            command.args([PROGRAM, engine]).arg(trace);
            Some(command)
        };
        match self {
            Peer::Report => {
                let mut command = Command::new(report);
                command.arg(crate::REPORT).arg(trace);
                Some(command)
            }
            Peer::Duckdb => of_python("duckdb"),
            Peer::Pandas => of_python("pandas"),
            Peer::TraceProcessor => {
                let mut command = Command::new(PROCESSOR);
                let is_there = runs(Command::new(PROCESSOR).arg("--setup"));
                command.arg("--objects").arg(trace);
                command.args([NAMES, REQUESTS, DEVICES]);
                is_there.then_some(command)
            }
        }
    }

    /// Reads what it printed.
    fn answers(self, printed: &str) -> Option<Answers> {
        let lines: Vec<Value> = printed
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        match (self, lines.as_slice()) {
            (Peer::TraceProcessor, [names, requests, devices]) => {
                let devices = devices.as_array()?.iter();
                let busy_ns: f64 = devices.filter_map(|of| of["busy_ns"].as_f64()).sum();
                Some(Answers {
                    names: names[0]["names"].as_u64()?,
                    total_us: names[0]["ns"].as_f64()? / 1e3,
                    e2e_us: requests[0]["ns"].as_f64()? / 1e3,
                    busy_us: busy_ns / 1e3,
                })
            }
            (_, [of]) => Some(Answers {
                names: of["names"].as_u64()?,
                total_us: of["total_us"].as_f64()?,
                e2e_us: of["e2e_us"].as_f64()?,
                busy_us: of["busy_us"].as_f64()?,
            }),
            _ => None,
        }
    }
}

impl Answers {
    fn is_near(&self, other: &Answers) -> bool {
        let near = |one: f64, other: f64| (one - other).abs() <= 1e-6 * one.abs();
        self.names == other.names
            && near(self.total_us, other.total_us)
            && near(self.e2e_us, other.e2e_us)
            && near(self.busy_us, other.busy_us)
    }
}

/// Measures the peers on a trace, and prints a line for each.
pub(crate) fn run(trace: &Path) -> Result<(), String> {
    let of_file = |error: std::io::Error| error.to_string();
    let (ours, python) = (ours(trace)?, environment());
    let itself = std::env::current_exe().map_err(of_file)?;
    let gigabytes = trace.metadata().map_err(of_file)?.len() as f64 / 1e9;
    let output = trace.with_extension("answers");
    let mut first_cpu_s = None;
    for peer in PEERS {
        let mut least: Option<Usage> = None;
        for _ in 0..ROUNDS {
            let Some(mut command) = peer.command(trace, python.as_deref(), &itself) else {
                println!("SKIP: {}: not there", peer.name());
                break;
            };
            command.stdout(File::create(&output).map_err(of_file)?);
            let used = process::watched(command)?;
            if least.is_none_or(|least| used.cpu_s < least.cpu_s) {
                least = Some(used);
            }
        }
        let Some(used) = least else { continue };
        let printed = std::fs::read_to_string(&output).map_err(of_file)?;
        let is_same = peer == Peer::Report
            || peer
                .answers(&printed)
                .is_some_and(|theirs| ours.is_near(&theirs));
        if !is_same {
            return Err(format!(
                "{}: expected {ours:?}, found {printed}",
                peer.name()
            ));
        }
        println!(
            "RESULT report_by_{} {:.2} {:.2} {:.0}",
            peer.name(),
            used.cpu_s / gigabytes,
            used.cpu_s / *first_cpu_s.get_or_insert(used.cpu_s),
            used.peak_anonymous_bytes as f64 / 1e6
        );
    }
    Ok(())
}

/// The answers of the report. Kernels count with the launches of their name, as the others have it.
fn ours(trace: &Path) -> Result<Answers, String> {
    let options = Options::new([trace.to_owned()]);
    let report = read(&options, &ReportOptions::default(), &Progress::default());
    let report = report.map_err(|error| error.to_string())?;
    let mut names: Vec<&str> = report.names.iter().map(|of| of.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let us = |ns: i64| ns as f64 / 1e3;
    Ok(Answers {
        names: names.len() as u64,
        total_us: report.names.iter().map(|of| us(of.ttot_ns)).sum(),
        e2e_us: report.requests.e2e.p50_ns / 1e3,
        busy_us: report.device.iter().map(|of| us(of.busy_ns)).sum(),
    })
}

/// Python with the packages, made once; `None`, and a word why, if that fails.
fn environment() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report-bench-peers");
    let (python, done) = (folder.join("bin/python"), folder.join("installed"));
    let versions = PACKAGES.join(" ");
    if std::fs::read_to_string(&done).ok().as_ref() == Some(&versions) {
        return Some(python);
    }
    let mut venv = Command::new("python3");
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet"]);
    pip.arg("--disable-pip-version-check").args(PACKAGES);
    let is_made = runs(venv.args(["-m", "venv", "--clear"]).arg(&folder))
        && runs(&mut pip)
        && std::fs::write(&done, versions).is_ok();
    if !is_made {
        println!("no environment for {PACKAGES:?} could be made");
    }
    is_made.then_some(python)
}

/// Whether a command can be run and ends well.
fn runs(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
