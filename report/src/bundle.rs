//! A run in one file that can be attached to an issue: the report, what recorded it, and a part of its trace, without what may be private.
//!
//! The whole trace is merged and redacted first. Report, page and part are made of the redacted trace, so nothing in them was removed from one and forgotten in
//! another. Only the numbers of `recording.json` come from the run itself.

mod archive;
mod redaction;
mod texts;

pub(crate) use archive::{Member, archive, is_bundle};

use crate::formats::pretty_json;
use crate::options::ReportOptions;
use crate::page::page;
use crate::read::read;
use crate::screen;
use crate::table::{Place, RunReport};
use redaction::Redaction;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter};
use std::path::Path;
use std::time::Duration;
use texts::{is_word, role};
use trace_merge::survey::processes;
use trace_merge::{
    Error, EventOptions, LossReport, Mode, Moment, Options, Output, Progress, Report, Window,
    merge_with,
};

/// Length of the part of the trace, in ns.
const PART_NS: i64 = 5_000_000_000;
/// Bytes that the part should not exceed, compressed. It is made shorter until it fits, at most so many times.
const MOST_BYTES: u64 = 10 << 20;
const TRIES: u32 = 5;
/// Variables of the recorder whose values are numbers and words, never paths or names of a user's.
const VARIABLES: [&str; 13] = [
    "LEVEL",
    "START",
    "CPU",
    "MAX_MB",
    "KEEP",
    "OLD_RUNS",
    "MODE",
    "SAMPLE_MS",
    "TRACK",
    "TASKS",
    "THREADS",
    "DEVICE",
    "DEVICE_SAMPLE",
];

/// The files of a bundle.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub(crate) members: Vec<Member>,
    /// What was removed from the trace, in phrases.
    pub(crate) removed: Vec<String>,
}

/// Makes a bundle of a run. The run stays as it is.
///
/// # Errors
/// As [`read`], and if there is no room for temporary files.
pub(crate) fn bundle(options: &Options, progress: &Progress) -> Result<Bundle, Error> {
    let temporary = std::env::temp_dir();
    let failed = |source| Error::of_temporary(&temporary, source);
    let folder = tempfile::Builder::new()
        .prefix("sa-profile-bundle-")
        .tempdir()
        .map_err(failed)?;
    let [merged, trace, part] =
        ["merged.json", "trace.json", "part.json.gz"].map(|name| folder.path().join(name));
    let recorded = merge_with(
        &Options {
            output: Output::File(merged.clone()),
            mode: mode(Window::WholeRun, false),
            settle: false,
            ..options.clone()
        },
        progress,
    )?;
    let mut redaction = Redaction::default();
    redact(&mut redaction, &merged, &trace).map_err(failed)?;
    let mut report = read(
        &Options::new([trace.clone()]),
        &ReportOptions::default(),
        progress,
    )?;
    // A merged trace has more metadata than its run, and none of its damage.
    report.recorded.events = recorded.events.total;
    report.recorded.damaged = recorded.damage.total;
    report.recorded.refused_processes = recorded.losses.refused_processes;
    let place = write_part(&trace, &report, &part, progress)?;
    let recording = recording(&recorded, options, &mut redaction);
    let seconds = |ns: i64| ns as f64 / 1e9;
    let (from, length) = (seconds(place.from_ns), seconds(place.dur_ns));
    let member = |name, about: &str, bytes| Member {
        name,
        about: about.to_owned(),
        bytes,
    };
    let members = vec![
        member(
            "report.txt",
            "the report as text",
            screen::text(&report).into_bytes(),
        ),
        member(
            "report.html",
            "the report as a page for a browser",
            page(&report, "a redacted bundle", None)?.into_bytes(),
        ),
        member(
            "report.json",
            "every figure of the report, and the engine's settings",
            pretty_json(&report)?.into_bytes(),
        ),
        member(
            "recording.json",
            "versions, system, losses and damage",
            pretty_json(&recording)?.into_bytes(),
        ),
        member(
            "trace.json.gz",
            &format!("{length:.3} s of the trace from {from:.3} s on, for Perfetto"),
            fs::read(&part).map_err(failed)?,
        ),
    ];
    Ok(Bundle {
        members,
        removed: redaction.summary(),
    })
}

/// Returns the mode that shows a window of a run.
fn mode(window: Window, link_requests: bool) -> Mode {
    Mode::Events(EventOptions {
        window,
        link_requests,
        ..EventOptions::default()
    })
}

/// Copies a merged trace without what may be private, and removes it.
fn redact(redaction: &mut Redaction, merged: &Path, trace: &Path) -> io::Result<()> {
    let out = BufWriter::new(File::create_new(trace)?);
    redaction.copy(BufReader::new(File::open(merged)?), out)?;
    fs::remove_file(merged)
}

/// Writes the part of a trace that shows the verdict, or else the last seconds of its serving time. Returns the time that it shows.
fn write_part(
    trace: &Path,
    report: &RunReport,
    out: &Path,
    progress: &Progress,
) -> Result<Place, Error> {
    let mut place = place(report);
    for tries_left in (0..TRIES).rev() {
        let moment = |ns: i64| {
            Some(Moment::FromStart(Duration::from_nanos(
                ns.max(0).cast_unsigned(),
            )))
        };
        let window = Window::Between {
            from: moment(place.from_ns),
            to: moment(place.from_ns + place.dur_ns),
            reach: None,
        };
        let options = Options {
            output: Output::File(out.to_owned()),
            mode: mode(window, true),
            allow_empty: true,
            ..Options::new([trace.to_owned()])
        };
        merge_with(&options, progress)?;
        let bytes = out
            .metadata()
            .map_err(|source| Error::of_temporary(out, source))?
            .len();
        if bytes <= MOST_BYTES || tries_left == 0 {
            break;
        }
        let middle = place.from_ns + place.dur_ns / 2;
        place.dur_ns = share(place.dur_ns, MOST_BYTES as f64 * 0.8 / bytes as f64);
        place.from_ns = middle - place.dur_ns / 2;
    }
    Ok(place)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the share of a time is a time"
)]
fn share(ns: i64, share: f64) -> i64 {
    (ns as f64 * share) as i64
}

/// Returns the part of a trace to show.
fn place(report: &RunReport) -> Place {
    let serving = &report.serving;
    let end_ns = report.recorded.wall_ns.max(serving.to_ns);
    let from_ns = match report.verdict.place {
        // The middle of a long place says as much as its begin.
        Some(place) => place.from_ns + place.dur_ns / 2 - PART_NS / 2,
        None => serving.to_ns - PART_NS,
    };
    let from_ns = from_ns.min(end_ns - PART_NS).max(0);
    Place {
        from_ns,
        dur_ns: PART_NS.min(end_ns - from_ns).max(1),
    }
}

/// Returns what recorded a run and what is missing, in numbers and words of our own.
fn recording(report: &Report, options: &Options, redaction: &mut Redaction) -> Value {
    let exes = options
        .paths
        .iter()
        .filter_map(|path| processes(path).ok())
        .flatten();
    let pythons: BTreeSet<String> = exes
        .map(|process| process.header.exe)
        .filter(|exe| exe.starts_with("python") && is_word(exe))
        .collect();
    let hosts: BTreeSet<&String> = report
        .processes
        .iter()
        .filter_map(|process| process.host.as_ref())
        .collect();
    let clocks = report.clocks.placements.iter().map(|clock| json!({ "host": redaction.host(&clock.host), "uncertainty_ns": clock.uncertainty_ns }));
    let clocks: Vec<Value> = clocks.collect();
    let variables = VARIABLES.into_iter().filter_map(|name| {
        let name = format!("SA_PROFILE_{name}");
        let value = std::env::var(&name).ok().filter(|value| is_word(value))?;
        Some((name, Value::from(value)))
    });
    let damage = report
        .damage
        .list
        .iter()
        .map(|damage| json!({ "kind": damage.kind.name(), "offset": damage.offset }));
    let system =
        |path: &str| fs::read_to_string(path).map_or(String::new(), |text| text.trim().to_owned());
    json!({
        "sa_profile": env!("CARGO_PKG_VERSION"),
        "fragment_format": sa_format::VERSION,
        "python": pythons,
        "bundled_on": {
            "system": os_name(&system("/etc/os-release")),
            "kernel": system("/proc/sys/kernel/osrelease"),
            "architecture": std::env::consts::ARCH,
            "variables": serde_json::Map::from_iter(variables),
        },
        "hosts": hosts.len(),
        "clocks": clocks,
        "fragments": report.inputs.len(),
        "processes": report.process_count(),
        "events": report.events.total,
        "unfinished_spans": report.unfinished_spans,
        "lost_events": report.losses.events,
        "refused_processes": report.losses.refused_processes,
        "losses": report.losses.list.iter().map(loss).collect::<Vec<_>>(),
        "damage_total": report.damage.total,
        "damage_by_kind": report.damage.by_kind,
        "damage": damage.collect::<Vec<_>>(),
        "repaired_by_kind": report.repairs.by_kind,
    })
}

fn loss(loss: &LossReport) -> Value {
    json!({
        "process": loss.process.as_deref().map(role),
        "pid": loss.pid,
        "cause": Some(&loss.cause).filter(|cause| is_word(cause)),
        "events": loss.events,
        "changed": loss.changed,
        "bytes": loss.bytes,
        "error": loss.error,
        "from_ns": loss.from_ns,
        "to_ns": loss.to_ns,
    })
}

/// Returns the name of a system from its `os-release`.
fn os_name(release: &str) -> &str {
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or("Linux").trim_matches('"')
}
