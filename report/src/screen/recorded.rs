//! What was recorded and what is missing: before the figures that it touches.

use super::amount::{counted, duration, grouped};
use crate::table::{Recorded, RecordedProcess};
use sa_format::visible;
use trace_merge::DeathKind;

/// Losses that are named; the others are counted.
const LOSSES: usize = 5;

pub(super) fn put(recorded: &Recorded, out: &mut String) {
    let numbered = recorded.processes.iter().enumerate();
    // Several processes may have rows of one device.
    let is_first = |(number, one): &(usize, &RecordedProcess)| one.device == Some(*number);
    let tracks = numbered.filter(is_first).count() as u64;
    let processes = recorded.processes.iter().filter(|one| !one.is_tracks);
    let mut parts = vec![
        counted(processes.count() as u64, "process", "processes"),
        duration(recorded.wall_ns as f64),
        counted(recorded.events, "event", "events"),
    ];
    if tracks > 0 {
        let many = "devices or groups of tracks";
        parts.push(counted(tracks, "device or group of tracks", many));
    }
    out.push_str(&format!("recorded   {}\n", parts.join(", ")));
    let missing = missing(recorded);
    match missing.is_empty() {
        true => out.push_str("missing    no known losses\n"),
        false => out.push_str(&format!("missing    {}\n", missing.join(", "))),
    }
    let losses = recorded.losses.iter().take(LOSSES);
    losses.for_each(|loss| out.push_str(&format!("           {}\n", loss.words())));
    if recorded.losses.len() > LOSSES {
        out.push_str(&format!(
            "           and {} more\n",
            grouped((recorded.losses.len() - LOSSES) as u64)
        ));
    }
    put_ends(recorded, out);
    let running = recorded.processes.iter().filter(|one| one.was_running);
    match running.count() as u64 {
        0 => {}
        running => out.push_str(&format!(
            "snapshot   {} still running when it was taken\n",
            counted(running, "process was", "processes were")
        )),
    }
    let all = 0..recorded.processes.len();
    match recorded.greatest_uncertainty_ns(all) {
        Some(0) => {}
        Some(ns) => out.push_str(&format!(
            "clocks     times of different hosts may be {} off\n",
            duration(ns as f64)
        )),
        None => out.push_str("clocks     times of different hosts may be off by any time\n"),
    }
    for caution in &recorded.cautions {
        out.push_str(&format!("caution    {}\n", visible(caution)));
    }
}

/// Writes a line for each process that did not close its recording: how it ended.
fn put_ends(recorded: &Recorded, out: &mut String) {
    for (number, process) in recorded.processes.iter().enumerate() {
        if let Some(death) = process.death() {
            let name = visible(&recorded.process_name(number)).into_owned();
            let exit = process.exit.as_ref();
            let exit = exit.map_or_else(String::new, |exit| format!(" {}", visible(&exit.words())));
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
            out.push_str(&format!("           {name} (pid {}) {how}\n", process.pid));
        }
    }
}

/// Describes the missing data, in a few words for each kind.
fn missing(recorded: &Recorded) -> Vec<String> {
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
            " without an end, whose time counts nowhere",
        ),
    ];
    let missing = counts.into_iter().filter(|(n, ..)| *n > 0);
    let words = |(n, [one, many], what): (u64, [&str; 2], &str)| counted(n, one, many) + what;
    missing.map(words).collect()
}

/// Returns an uncertainty in words.
pub(super) fn uncertainty(ns: Option<u64>) -> String {
    match ns {
        Some(ns) => format!("±{}", duration(ns as f64)),
        None => "± any time".to_owned(),
    }
}

/// Returns the note after a figure that compares the times of some processes; empty if they share a clock.
pub(super) fn clock_note(
    recorded: &Recorded,
    processes: impl IntoIterator<Item = usize>,
) -> String {
    match recorded.greatest_uncertainty_ns(processes) {
        Some(0) => String::new(),
        ns => format!(" (clocks {})", uncertainty(ns)),
    }
}
