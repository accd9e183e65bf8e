//! Shows how much was recorded and what is missing. This comes before the figures that it affects.

use super::amount::{counted, duration, grouped};
use super::names::{PROCESS, shown};
use super::width::{LABEL, WIDTH, labelled, shortened, wrapped};
use crate::table::{Recorded, RecordedProcess, RunPhaseKind, RunReport, StartUpSpan};
use sa_format::visible;
use trace_merge::DeathKind;

/// Maximum number of losses that are listed. The others are counted.
const LOSSES: usize = 5;
/// Maximum number of start-up spans that are shown next to the length of the start-up.
const START_UP_SPANS: usize = 3;

pub(super) fn write(report: &RunReport, out: &mut String) {
    let recorded = &report.recorded;
    out.push_str(&format!("recorded   {}\n", summary(recorded)));
    for line in serving(report) {
        out.push_str(&line);
        out.push('\n');
    }
    let missing = missing(recorded);
    match missing.is_empty() {
        true => out.push_str("missing    no known losses\n"),
        false => out.push_str(&format!("missing    {}\n", missing.join(", "))),
    }
    for (label, note) in notes(recorded) {
        out.push_str(&format!("{label:<LABEL$}{note}\n"));
    }
}

/// Returns a phrase on how much was recorded.
pub(super) fn summary(recorded: &Recorded) -> String {
    let numbered = recorded.processes.iter().enumerate();
    // Several processes may contain tracks of one device.
    let is_first = |(number, one): &(usize, &RecordedProcess)| one.device == Some(*number);
    let tracks = numbered.filter(is_first).count() as u64;
    let processes = recorded.processes.iter().filter(|one| !one.is_tracks);
    let mut parts = vec![
        counted(processes.count() as u64, "process", "processes"),
        duration(recorded.wall_ns as f64),
        counted(recorded.events, "event", "events"),
    ];
    if tracks > 0 {
        let many = "devices or other groups of tracks";
        parts.push(counted(tracks, "device or other group of tracks", many));
    }
    parts.join(", ")
}

/// Returns lines on the part of the run that the figures cover, and on the parts that are left out. Returns nothing if
/// the figures cover the whole run.
pub(super) fn serving(report: &RunReport) -> Vec<String> {
    let serving = &report.serving;
    if serving.is_whole {
        return Vec::new();
    }
    let mut left_out: Vec<String> = Vec::new();
    let phase_ns = |kind| {
        let phases = report.run_phases.iter().filter(|phase| phase.kind == kind);
        phases.map(|phase| phase.to_ns - phase.from_ns).sum::<i64>()
    };
    let is_long = |ns: i64| ns > report.recorded.wall_ns / 100;
    let start_up_ns = report.start_up.wall_ns;
    if is_long(start_up_ns) {
        let spans = report.start_up.spans.iter().take(START_UP_SPANS);
        let span =
            |span: &StartUpSpan| format!("{} {}", shown(&span.name), duration(span.tsub_ns as f64));
        let spans: Vec<String> = spans.map(span).collect();
        let spans = match spans.is_empty() {
            true => String::new(),
            false => format!(" ({})", spans.join(", ")),
        };
        left_out.push(format!("start-up {}{spans}", duration(start_up_ns as f64)));
    }
    let pause_ns: i64 = serving
        .pauses
        .iter()
        .map(|pause| pause.to_ns - pause.from_ns)
        .sum();
    let pause = duration(pause_ns as f64);
    match serving.pauses.len() {
        0 => {}
        1 => left_out.push(format!("1 pause of {pause}")),
        n => left_out.push(format!("{n} pauses of {pause} in all")),
    }
    let idle_ns = phase_ns(RunPhaseKind::Idle) - pause_ns;
    if is_long(idle_ns) {
        let idle = duration(idle_ns as f64);
        left_out.push(format!("{idle} before or after all requests"));
    }
    let shutdown_ns = phase_ns(RunPhaseKind::Shutdown);
    if is_long(shutdown_ns) {
        left_out.push(format!("shutdown {}", duration(shutdown_ns as f64)));
    }
    if left_out.is_empty() {
        return Vec::new();
    }
    let text = format!(
        "all figures cover {}; left out: {}",
        duration(serving.wall_ns as f64),
        left_out.join(", ")
    );
    labelled("serving", &wrapped(&text, WIDTH - LABEL, 2))
}

/// Returns notes on what limits the figures besides the counts of [`missing`], each with its label. Notes without a
/// label belong to `missing`.
pub(super) fn notes(recorded: &Recorded) -> Vec<(&'static str, String)> {
    let losses = recorded.losses.iter().take(LOSSES);
    let mut notes: Vec<_> = losses.map(|loss| ("", loss.text())).collect();
    if recorded.losses.len() > LOSSES {
        let more = grouped((recorded.losses.len() - LOSSES) as u64);
        notes.push(("", format!("and {more} more")));
    }
    notes.extend(ends(recorded).map(|end| ("", end)));
    let running = recorded.processes.iter().filter(|one| one.was_running);
    let running = running.count() as u64;
    if running > 0 {
        let processes = counted(running, "process was", "processes were");
        let note = format!("{processes} still running when the snapshot was taken");
        notes.push(("snapshot", note));
    }
    let all = 0..recorded.processes.len();
    let uncertain = match recorded.greatest_uncertainty_ns(all) {
        Some(0) => None,
        Some(ns) => Some(format!("be {} off", duration(ns as f64))),
        None => Some("be off by any amount".to_owned()),
    };
    let note = |how| ("clocks", format!("times of different hosts may {how}"));
    notes.extend(uncertain.map(note));
    let cautions = recorded.cautions.iter();
    notes.extend(cautions.map(|caution| ("caution", visible(caution).into_owned())));
    notes
}

/// Returns a line for each process that did not close its recording, with how it ended.
fn ends(recorded: &Recorded) -> impl Iterator<Item = String> {
    let numbered = recorded.processes.iter().enumerate();
    let deaths = numbered.filter_map(|(number, process)| Some((number, process, process.death()?)));
    deaths.map(|(number, process, death)| {
        let name = shortened(&recorded.process_name(number), PROCESS);
        let exit = process.exit.as_ref();
        let exit = exit.map_or_else(String::new, |exit| format!(" {}", visible(&exit.text())));
        let spans = match process.open_spans {
            0 => String::new(),
            open => format!(", in {}", counted(open, "open span", "open spans")),
        };
        let how = match death.kind() {
            DeathKind::Killed => format!("was killed{exit}{spans}"),
            DeathKind::Exited => format!("ended by itself{exit}{spans}"),
            DeathKind::Idle => {
                format!("ended{exit} without closing its recording, with no span open")
            }
            DeathKind::Unknown => format!(
                "ended{exit} without closing its recording; it is not known whether spans were open"
            ),
        };
        format!("{name} (pid {}) {how}", process.pid)
    })
}

/// Returns a phrase for each kind of missing data, such as `3 events lost`.
pub(super) fn missing(recorded: &Recorded) -> Vec<String> {
    let counts = [
        (recorded.lost_events, ["event", "events"], " lost"),
        (
            recorded.refused_processes,
            ["process", "processes"],
            " recorded nothing",
        ),
        (recorded.damaged, ["damaged place", "damaged places"], ""),
        (
            recorded.unfinished,
            ["span", "spans"],
            " without an end, not included in any time",
        ),
    ];
    let missing = counts.into_iter().filter(|(n, ..)| *n > 0);
    let words = |(n, [one, many], what): (u64, [&str; 2], &str)| counted(n, one, many) + what;
    missing.map(words).collect()
}

/// Formats by how much a clock may be off, in ns. `None` means that this is unknown.
pub(super) fn uncertainty(ns: Option<u64>) -> String {
    match ns {
        Some(ns) => format!("±{}", duration(ns as f64)),
        None => "± unknown".to_owned(),
    }
}

/// Returns a note for a figure that compares the times of several processes. It is empty if they share a clock.
pub(super) fn clock_note(
    recorded: &Recorded,
    processes: impl IntoIterator<Item = usize>,
) -> String {
    match recorded.greatest_uncertainty_ns(processes) {
        Some(0) => String::new(),
        ns => format!(" (clocks {})", uncertainty(ns)),
    }
}
