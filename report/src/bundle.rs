//! A run in one file to attach to an issue: the report, versions, losses, and a part of the trace, without private
//! texts.
//!
//! The whole trace is merged and redacted first. The report, its page and the part of the trace are made from the
//! redacted trace, so nothing can be removed from one and forgotten in another. Only the numbers in `recording.json`
//! come from the run itself.

mod archive;
mod redaction;
mod texts;

pub(crate) use archive::{Member, archive, is_bundle};

use crate::formats::pretty_json;
use crate::options::ReportOptions;
use crate::page::page;
use crate::read::read;
use crate::screen;
use crate::table::TraceRange;
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
/// Maximum compressed size of the part, in bytes. The part is shortened until it fits, at most [`TRIES`] times.
const MOST_BYTES: u64 = 10 << 20;
const TRIES: u32 = 5;
/// Variables of the recorder whose values are numbers and words, never paths or names.
const VARIABLES: [&str; 12] = [
    "LEVEL",
    "START",
    "CPU",
    "MAX_MB",
    "KEEP",
    "OLD_RUNS",
    "MODE",
    "SAMPLE_MS",
    "TASKS",
    "THREADS",
    "DEVICE",
    "DEVICE_SAMPLE",
];

/// The files of a bundle.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub(crate) members: Vec<Member>,
    /// The removed parts of the trace, one phrase each.
    pub(crate) removed: Vec<String>,
}

/// Creates a bundle from a run, which is not changed.
///
/// # Errors
/// Returns the errors of [`read`], and an error if a temporary file cannot be written.
pub(crate) fn bundle(options: &Options, progress: &Progress) -> Result<Bundle, Error> {
    let temporary = std::env::temp_dir();
    let failed = |source| Error::from_temporary(&temporary, source);
    let folder = tempfile::Builder::new()
        .prefix("sa-profile-bundle-")
        .tempdir()
        .map_err(failed)?;
    let [merged, trace, shown] =
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
    // A merged trace has more metadata than its run, but does not list its damage.
    report.recorded.events = recorded.events.total;
    report.recorded.damaged = recorded.damage.total;
    report.recorded.refused_processes = recorded.losses.refused_processes;
    let (serving_end_ns, end_ns) = (report.serving.to_ns, report.recorded.wall_ns);
    let place = part(report.verdict.place, serving_end_ns, end_ns);
    let place = write_part(&trace, place, MOST_BYTES, &shown)?;
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
            fs::read(&shown).map_err(failed)?,
        ),
    ];
    Ok(Bundle {
        members,
        removed: redaction.summary(),
    })
}

/// Returns the merge mode that keeps only the events in a window of the run.
fn mode(window: Window, link_requests: bool) -> Mode {
    Mode::Events(EventOptions {
        window,
        link_requests,
        ..EventOptions::default()
    })
}

/// Copies a merged trace without its private parts, and removes the original.
fn redact(redaction: &mut Redaction, merged: &Path, trace: &Path) -> io::Result<()> {
    let out = BufWriter::new(File::create_new(trace)?);
    let private = File::open(merged)?;
    fs::remove_file(merged)?; // no unredacted copy remains if this program is killed
    redaction.copy(BufReader::new(private), out)
}

/// Writes the part `place` of a trace to `out`, shortened until the file has at most `max_bytes`. After [`TRIES`]
/// attempts, the file is kept even if it is larger. Returns the time range that it covers.
fn write_part(
    trace: &Path,
    mut place: TraceRange,
    max_bytes: u64,
    out: &Path,
) -> Result<TraceRange, Error> {
    for tries_left in (0..TRIES).rev() {
        let moment = |ns: i64| Moment::FromStart(Duration::from_nanos(ns.max(0).cast_unsigned()));
        let window = Window::Between {
            from: Some(moment(place.from_ns)),
            to: Some(moment(place.from_ns + place.dur_ns)),
            reach: None,
        };
        let options = Options {
            output: Output::File(out.to_owned()),
            mode: mode(window, true),
            allow_empty: true,
            ..Options::new([trace.to_owned()])
        };
        merge_with(&options, &Progress::default())?;
        let metadata = out.metadata();
        let bytes = metadata.map_err(|source| Error::from_temporary(out, source))?;
        if bytes.len() <= max_bytes || tries_left == 0 {
            break;
        }
        let middle_ns = place.from_ns + place.dur_ns / 2;
        let share = max_bytes as f64 / bytes.len() as f64;
        place.dur_ns = shorter(place.dur_ns, share * 0.8);
        place.from_ns = middle_ns - place.dur_ns / 2;
    }
    Ok(place)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the share of a time is a time"
)]
fn shorter(ns: i64, share: f64) -> i64 {
    (ns as f64 * share) as i64
}

/// Chooses the time range of a trace that a bundle contains: at most [`PART_NS`] around the middle of `verdict_place`,
/// or else at the end of the serving time. `end_ns` is the end of the trace.
fn part(verdict_place: Option<TraceRange>, serving_end_ns: i64, end_ns: i64) -> TraceRange {
    let from_ns = match verdict_place {
        Some(place) => place.from_ns + place.dur_ns / 2 - PART_NS / 2,
        None => serving_end_ns - PART_NS,
    };
    let from_ns = from_ns.min(end_ns - PART_NS).max(0);
    TraceRange {
        from_ns,
        dur_ns: PART_NS.min(end_ns - from_ns).max(1),
    }
}

/// Returns a JSON object about how the run was recorded: versions, system, losses and damage, without any text from the
/// program.
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

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

    #[test]
    fn the_part_shows_the_verdicts_place() {
        let place = |from: i64, dur: i64| TraceRange {
            from_ns: from * SECOND_NS,
            dur_ns: dur * SECOND_NS,
        };
        for (verdict_place, expected) in [
            (None, (85, 5)),
            (Some(place(10, 1)), (8, 5)),
            (Some(place(1, 1)), (0, 5)),
            (Some(place(20, 40)), (37, 5)),
            (Some(place(99, 1)), (95, 5)),
        ] {
            let found = part(verdict_place, 90 * SECOND_NS, 100 * SECOND_NS);
            assert_eq!(
                (found.from_ns / SECOND_NS, found.dur_ns / SECOND_NS),
                expected
            );
        }
        assert_eq!(part(None, 2 * SECOND_NS, 3 * SECOND_NS), place(0, 3));
    }

    #[test]
    fn a_part_that_is_too_large_becomes_shorter() {
        let folder = tempfile::tempdir().unwrap();
        let [trace, out] = ["trace.json", "part.json"].map(|name| folder.path().join(name));
        let event = |ms: u32| {
            format!(r#"{{"ph":"i","pid":1,"tid":1,"ts":{ms}000,"s":"t","name":"event"}}"#)
        };
        let events: Vec<String> = (0..5_000).map(event).collect();
        fs::write(&trace, format!("[{}]", events.join(",\n"))).unwrap();
        let whole = part(None, 5 * SECOND_NS, 5 * SECOND_NS);
        let found = write_part(&trace, whole, 100_000, &out).unwrap();
        let text = fs::read_to_string(&out).unwrap();
        assert!((50_000..=100_000).contains(&text.len()), "{}", text.len());
        let middle_ns = found.from_ns + found.dur_ns / 2;
        assert!((middle_ns - 5 * SECOND_NS / 2).abs() <= 1, "{found:?}");
        let events = i64::try_from(text.matches("\"ts\":").count()).unwrap();
        assert!(
            (events - found.dur_ns / 1_000_000).abs() <= 1,
            "{events} {found:?}"
        );
    }
}
