//! Summarizes a run for the user: what was recorded, what was lost, what to do next.

use crate::words::amount::{grouped, size};
use crate::words::{plural, printable, processes};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;
use trace_merge::{Error, ProcessReport, Report};
use trace_report::{RunReport, screen};

/// Maximum number of processes that are listed.
const LISTED: usize = 32;

/// Maximum number of tracks whose losses are listed.
const LOSSES_LISTED: usize = 8;

/// A merged run.
#[derive(Debug)]
pub(crate) struct Recorded<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) merged: Result<Report, Error>,
    /// Report on where the time went, or the reason why there is none.
    pub(crate) times: Option<Result<RunReport, Error>>,
    /// True if the processes should have loaded the preload library.
    pub(crate) preload: bool,
}

impl Recorded<'_> {
    /// Returns the path of the trace, if it contains any events.
    pub(crate) fn trace(&self) -> Option<&Path> {
        let report = self
            .merged
            .as_ref()
            .ok()
            .filter(|report| has_events(report))?;
        report.output.path.as_deref()
    }

    /// Returns the summary without a newline at the end.
    pub(crate) fn text(&self) -> String {
        let text = match &self.merged {
            Ok(report) if has_events(report) => self.recorded(report),
            Ok(_) | Err(Error::NothingUsable(_)) => nothing(self.directory, self.preload),
            Err(error) => format!(
                "the trace could not be written: {error}\nsa-profile: what was recorded is safe in {}: trace-merge {0} merges it",
                quoted(self.directory)
            ),
        };
        format!("sa-profile: {text}")
    }

    fn recorded(&self, report: &Report) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(report, &mut text);
        text.trim_end().to_owned()
    }

    fn write(&self, report: &Report, text: &mut String) -> std::fmt::Result {
        let trace = report.output.path.as_deref().unwrap_or(self.directory);
        if let Some(Ok(times)) = &self.times {
            for line in screen::verdict_lines(times) {
                writeln!(text, "{line}")?;
            }
        }
        writeln!(
            text,
            "recorded {} of {} in {} ({})",
            plural(events(report), "event"),
            processes(report.process_count() as u64),
            quoted(trace),
            size(report.output.bytes)
        )?;
        write_ends(report, text)?;
        for process in report.processes.iter().take(LISTED) {
            writeln!(text, "  {}", line(process))?;
        }
        if report.processes.len() > LISTED {
            writeln!(text, "  and {} more", report.processes.len() - LISTED)?;
        }
        write_losses(report, text)?;
        if self.preload && lacks_launches(report) {
            writeln!(text, "reach: {NO_LAUNCHES}")?;
        }
        write_left_out(report, text)?;
        match &self.times {
            Some(Ok(times)) => screen::short(times)
                .iter()
                .try_for_each(|(what, words)| writeln!(text, "{what}: {words}"))?,
            Some(Err(why)) => writeln!(text, "no figures here: {why}")?,
            None => {}
        }
        writeln!(
            text,
            "next: sa-profile open {}    shows it in Perfetto",
            quoted(trace)
        )?;
        writeln!(
            text,
            "      sa-profile report {}    says where the time went",
            quoted(trace)
        )
    }
}

/// Returns the summary of a run that was not merged.
pub(crate) fn unmerged(directory: &Path) -> String {
    format!("not merged. next: trace-merge {}", quoted(directory))
}

/// Writes a line for each kind of abnormal end.
fn write_ends(report: &Report, text: &mut String) -> std::fmt::Result {
    let deaths = report.deaths();
    if let Some(killed) = deaths.killed_text() {
        let exit = deaths
            .first_killed()
            .and_then(|first| first.death.exit.as_ref());
        let unknown = match exit {
            None => " Its signal is not known: another process waited for it.",
            Some(_) => "",
        };
        writeln!(
            text,
            "{killed}. What they had recorded was recovered.{unknown}"
        )?;
    }
    let others = deaths.exited_text().into_iter().chain(deaths.other_lines());
    others
        .into_iter()
        .try_for_each(|line| writeln!(text, "{line}"))
}

fn line(process: &ProcessReport) -> String {
    let name = printable(process.name.as_deref().unwrap_or("(no name)"));
    let (events, row) = (
        plural(process.events, "event"),
        if process.tracks { "track" } else { "thread" },
    );
    let threads = plural(process.threads as u64, row);
    format!("{name:<28} pid {:<8} {events:>14}, {threads}", process.pid)
}

fn write_losses(report: &Report, text: &mut String) -> std::fmt::Result {
    if report.is_clean() {
        writeln!(text, "lost: nothing")?;
    }
    if report.losses.events > 0 {
        writeln!(
            text,
            "lost: {}; the trace shows when and why (sa_loss)",
            plural(report.losses.events, "event")
        )?;
    }
    for loss in report.losses.list.iter().take(LOSSES_LISTED) {
        writeln!(text, "  {}", loss.text())?;
    }
    if report.losses.list.len() > LOSSES_LISTED {
        let more = report.losses.list.len() - LOSSES_LISTED;
        writeln!(text, "  and {more} more; trace-merge names them")?;
    }
    for (process, words) in report.not_visible() {
        writeln!(text, "reach: {process}: {words}")?;
    }
    if report.damage.total > 0 {
        let kinds = report.damage.by_kind.iter();
        let kinds: Vec<_> = kinds
            .map(|(kind, number)| format!("{kind} {}", grouped(*number)))
            .collect();
        writeln!(
            text,
            "damaged: {} ({}); trace-merge names them",
            plural(report.damage.total, "place"),
            kinds.join(", ")
        )?;
    }
    if report.unfinished_spans > 0 {
        writeln!(
            text,
            "unfinished: {} still open at the end",
            plural(report.unfinished_spans, "span")
        )?;
    }
    Ok(())
}

const NO_LAUNCHES: &str = "the preload library recorded no launch, so the trace has no NPU: if the level kernel was on, sa-profile doctor says what it would see";

/// Returns true if no process reports a launch that the preload library recorded, although the trace contains everything that was recorded.
fn lacks_launches(report: &Report) -> bool {
    let is_whole = report.window.is_none() && report.losses.events == 0;
    is_whole && !(report.processes.iter()).any(|process| process.seen_by_preload)
}

/// Writes a line for each part of the recording that the trace does not show because it was not selected.
fn write_left_out(report: &Report, text: &mut String) -> std::fmt::Result {
    if let Some(window) = &report.window {
        writeln!(
            text,
            "shown: the last {:?}; left out before it: {}, {}",
            Duration::from_nanos(window.last_ns.unwrap_or(0)),
            plural(window.events_left_out, "event"),
            plural(window.segments_left_out, "whole segment")
        )?;
    }
    for left in &report.left_out {
        writeln!(
            text,
            "left out: another run in the same directory, {}",
            printable(&left.run)
        )?;
    }
    Ok(())
}

fn nothing(directory: &Path, preload: bool) -> String {
    let preload_reason = match preload {
        true => format!("\n  - {NO_LAUNCHES}"),
        false => String::new(),
    };
    format!(
        "nothing was recorded. Likely reasons:\n  \
         - no process of the command uses the recorder, or none got as far as an event\n  \
         - its environment was cleared on the way (sudo, env -i, ssh, a container): SA_PROFILE_DIR and SA_PROFILE_RUN must reach each process\n  \
         - a process could not write into {}: it then said so in one line on stderr\n  \
         - the level leaves out what it records: --level verbose leaves out nothing{preload_reason}",
        quoted(directory)
    )
}

/// Returns true if there are any events apart from the recorder's own records.
fn has_events(report: &Report) -> bool {
    report
        .processes
        .iter()
        .any(|process| process.first_ns.is_some())
}

fn events(report: &Report) -> u64 {
    report.processes.iter().map(|process| process.events).sum()
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=@%,:".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.into_owned();
    }
    format!("'{}'", printable(&text).replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_merge::{Exit, LeftOut, LossReport, LossTotals, Progress};

    fn process(name: &str, events: u64) -> ProcessReport {
        ProcessReport {
            name: Some(name.to_owned()),
            pid: 42,
            output_pid: 1,
            host: None,
            end: None,
            exit: None,
            was_running: false,
            open_spans: 0,
            tracks: false,
            aside_for: None,
            main: false,
            threads: 1,
            seen_by_preload: false,
            not_visible: Vec::new(),
            events,
            first_ns: Some(0),
            last_ns: Some(1),
        }
    }

    fn words(preload: bool, report: Report) -> String {
        let recorded = Recorded {
            directory: Path::new("my out"),
            merged: Ok(report),
            times: None,
            preload,
        };
        recorded.text()
    }

    #[test]
    fn a_run_in_which_the_preload_library_recorded_no_launch_says_so() {
        let report = |is_seen: bool, lost: u64| {
            let mut report = Report {
                processes: vec![process("worker", 7)],
                ..Report::default()
            };
            report.processes[0].seen_by_preload = is_seen;
            report.losses.events = lost;
            report
        };
        let line = "\nreach: the preload library recorded no launch, so";
        // The report about launches may be among the lost events.
        for (preload, is_seen, lost, is_said) in [
            (true, false, 0, true),
            (false, false, 0, false),
            (true, true, 0, false),
            (true, false, 1, false),
        ] {
            let text = words(preload, report(is_seen, lost));
            assert_eq!(text.contains(line), is_said, "{text}");
        }
        let nothing = words(true, Report::default());
        let reason = "\n  - the preload library recorded no launch";
        assert!(nothing.contains(reason), "{nothing}");
    }

    #[test]
    fn the_summary_begins_with_the_verdict() {
        use trace_report::{ReportOptions, Verdict, VerdictRule, read};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.json");
        let trace = r#"[{"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "name": "a"}]"#;
        std::fs::write(&path, trace).unwrap();
        let options = trace_merge::Options::new(vec![path]);
        let mut times = read(&options, &ReportOptions::default(), &Progress::default()).unwrap();
        times.verdict = Verdict {
            rule: VerdictRule::KvFull,
            text: "The KV cache was full.".to_owned(),
            advice: "Give it more memory.".to_owned(),
            ..Verdict::default()
        };
        let report = Report {
            processes: vec![process("worker", 7)],
            ..Report::default()
        };
        let recorded = Recorded {
            directory: Path::new("out"),
            merged: Ok(report),
            times: Some(Ok(times)),
            preload: false,
        };
        let text = recorded.text();
        let begin = "sa-profile: The KV cache was full.\nGive it more memory.\nrecorded 7 events";
        assert!(text.starts_with(begin), "{text}");
    }

    /// Losses have their causes (issue 19), and processes that died have their signals or exit codes (issue 47).
    #[test]
    fn a_run_with_losses_and_deaths_in_words() {
        let dead = |name: &str, open_spans, exit| ProcessReport {
            end: Some(if open_spans > 0 { "killed" } else { "silent" }),
            exit,
            open_spans,
            ..process(name, 1)
        };
        let loss = LossReport {
            process: Some("api".into()),
            number: None,
            pid: 42,
            thread: Some("worker-3".into()),
            cause: "disk_full".into(),
            events: 98,
            bytes: 0,
            changed: 0,
            events_left: 2,
            processes: 0,
            error: 0,
            from_ns: Some(12_100_000_000),
            to_ns: Some(60_000_000_000),
        };
        let mut report = Report {
            processes: vec![
                dead("api", 1, Some(Exit::Code(1))),
                dead("core", 1, None),
                dead("idle", 0, None),
            ],
            losses: LossTotals {
                events: 980,
                list: vec![loss; 10],
                refused_processes: 0,
            },
            unfinished_spans: 1,
            left_out: vec![LeftOut {
                run: "older".into(),
                fragments: 1,
            }],
            ..Report::default()
        };
        report.processes.extend(vec![process("a\u{1b}", 1); 37]);
        report.damage.total = 3;
        report.damage.by_kind = [("bad_json", 3)].into();
        let line = |name: &str| format!("  {name:<28} pid 42              1 event, 1 thread\n");
        let lines = ["api", "core", "idle"].map(line).concat() + &line("a<U+001B>").repeat(29);
        let lost = "  98 % of worker-3's events between 12.100 s and 60.000 s are missing (98 of api): the disk was full\n";
        let expected = format!(
            "\
sa-profile: recorded 40 events of 40 processes in 'my out' (0 B)
killed: core (pid 42), in 1 open span. What they had recorded was recovered. Its signal is not known: another process waited for it.
ended by itself with spans open: api (pid 42), with exit code 1, in 1 open span
ended without closing its recording, with no span open (_exit, or a signal between two spans): idle (pid 42)
{lines}  and 8 more
lost: 980 events; the trace shows when and why (sa_loss)
{}  and 2 more; trace-merge names them
damaged: 3 places (bad_json 3); trace-merge names them
unfinished: 1 span still open at the end
left out: another run in the same directory, older
next: sa-profile open 'my out'    shows it in Perfetto
      sa-profile report 'my out'    says where the time went",
            lost.repeat(LOSSES_LISTED)
        );
        assert_eq!(words(false, report), expected);
        let signal = Some(Exit::Signal("SIGKILL".to_owned()));
        let text = words(
            false,
            Report {
                processes: vec![dead("core", 1, signal)],
                ..Report::default()
            },
        );
        let expected = "\nkilled: core (pid 42), by SIGKILL, in 1 open span. What they had recorded was recovered.\n";
        assert!(text.contains(expected), "{text}");
    }
}
