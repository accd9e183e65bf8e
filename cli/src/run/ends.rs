//! Who was killed and who went without a word, in words: what the recordings tell, and what this program saw of the processes it waited for.

use super::tree::Exit;
use crate::words::{plural, printable, processes};
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::fmt::Write;
use trace_merge::{ProcessReport, Report};

/// Most processes that are named.
const NAMED: usize = 8;
/// Signals that programs are ended with in good order, when they are idle.
const ORDERLY: [Signal; 5] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGPIPE,
];

/// Writes a line for each kind of end that is not as it should be.
pub(super) fn write(
    report: &Report,
    exits: &BTreeMap<i64, Exit>,
    text: &mut String,
) -> std::fmt::Result {
    let ended = report.processes.iter().filter(|one| one.end.is_some());
    let (killed, silent): (Vec<_>, Vec<_>) = ended
        .map(|process| (process, exits.get(&process.pid).copied()))
        .partition(|(process, exit)| is_killed(process, *exit));
    if !killed.is_empty() {
        let named = killed.iter().take(NAMED);
        let mut named: Vec<String> = named.map(|(process, exit)| words(process, *exit)).collect();
        if killed.len() > NAMED {
            named.push(format!("and {} more", killed.len() - NAMED));
        }
        let named = named.join("; ");
        writeln!(
            text,
            "killed: {named}. What they had recorded was recovered"
        )?;
    }
    let (unknown, silent): (Vec<_>, Vec<_>) = silent
        .into_iter()
        .partition(|(process, _)| process.end == Some("unknown"));
    if !silent.is_empty() {
        let count = processes(silent.len() as u64);
        writeln!(
            text,
            "ended without a goodbye, but not in the middle of anything: {count} (_exit, or a signal while idle); nothing of them is lost"
        )?;
    }
    if !unknown.is_empty() {
        let count = processes(unknown.len() as u64);
        writeln!(
            text,
            "ended without a goodbye: {count}; the rings are gone or cannot be read, so nothing tells whether spans were open"
        )?;
    }
    Ok(())
}

/// A process that ended by itself was not killed, whatever it left open; one whose end nobody here saw was, if it left anything open.
fn is_killed(process: &ProcessReport, exit: Option<Exit>) -> bool {
    let left_open = process.end == Some("killed");
    match exit {
        Some(Exit::Code) => false,
        Some(Exit::Signal(signal)) => left_open || !ORDERLY.contains(&signal),
        None => left_open,
    }
}

fn words(process: &ProcessReport, exit: Option<Exit>) -> String {
    let name = printable(process.name.as_deref().unwrap_or("(no name)"));
    let mut words = format!("{name} (pid {})", process.pid);
    if let Some(Exit::Signal(signal)) = exit {
        words += &format!(", by {signal}");
    }
    if process.open_spans > 0 {
        words += &format!(", in {}", plural(process.open_spans, "open span"));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i64, end: &'static str, open_spans: u64) -> ProcessReport {
        ProcessReport {
            name: Some(format!("worker-{pid}")),
            pid,
            output_pid: 1,
            host: None,
            end: Some(end),
            open_spans,
            tracks: false,
            aside_for: None,
            main: false,
            threads: 1,
            seen_by_preload: false,
            not_visible: Vec::new(),
            events: 1,
            first_ns: Some(0),
            last_ns: Some(1),
        }
    }

    #[test]
    fn issue_19_a_kill_is_told_from_an_end_without_a_goodbye() {
        let mut report = Report {
            processes: vec![
                process(1, "silent", 0),
                process(2, "silent", 0),
                process(3, "killed", 2),
                process(4, "killed", 1),
                process(5, "silent", 0),
                process(6, "killed", 1),
                process(7, "unknown", 0),
                process(8, "unknown", 0),
            ],
            ..Report::default()
        };
        let exits = [
            (1, Exit::Signal(Signal::SIGKILL)),
            (2, Exit::Signal(Signal::SIGTERM)),
            (3, Exit::Signal(Signal::SIGSEGV)),
            (4, Exit::Code),
            (8, Exit::Signal(Signal::SIGKILL)),
        ];
        let mut text = String::new();
        write(&report, &exits.into(), &mut text).unwrap();
        assert_eq!(
            text,
            "killed: worker-1 (pid 1), by SIGKILL; worker-3 (pid 3), by SIGSEGV, in 2 open spans; worker-6 (pid 6), in 1 open span; worker-8 (pid 8), by SIGKILL. What they had recorded was recovered\n\
             ended without a goodbye, but not in the middle of anything: 3 processes (_exit, or a signal while idle); nothing of them is lost\n\
             ended without a goodbye: 1 process; the rings are gone or cannot be read, so nothing tells whether spans were open\n"
        );
        report.processes.clear();
        text.clear();
        write(&report, &BTreeMap::new(), &mut text).unwrap();
        assert_eq!(text, "");
    }
}
