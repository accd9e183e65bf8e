//! Formats the status of a run as a table for people.

use super::run::{Process, Run, State};
use crate::level;
use crate::words::amount::{age, aligned, grouped, size};
use crate::words::printable;
use std::fmt::Write;
use trace_merge::Deaths;

const HEADINGS: [&str; 9] = [
    "PROCESS",
    "PID",
    "STATE",
    "LEVEL",
    "FILES",
    "EVENTS",
    "SIZE",
    "LAST EVENT",
    "LOST",
];
/// Columns with numbers, which are right-aligned.
const NUMBERS: [usize; 4] = [1, 4, 5, 6];

/// Returns the status as text.
pub(super) fn text(run: &Run) -> String {
    let mut text = String::new();
    let alive = run
        .processes
        .iter()
        .filter(|process| matches!(process.state, State::Alive | State::Running));
    let age = run.age_ns.map_or("-".to_owned(), age);
    let _ = writeln!(
        text,
        "run       {} in {}",
        printable(&run.run),
        printable(&run.directory)
    ); // writing to a string cannot fail
    let _ = writeln!(text, "began     {age} ago");
    let _ = writeln!(
        text,
        "recorded  {} events, {} lost, {}",
        grouped(run.events),
        grouped(run.lost),
        size(run.bytes)
    );
    let _ = writeln!(
        text,
        "alive     {} of {}\n",
        alive.count(),
        run.processes.len()
    );
    let rows = std::iter::once(HEADINGS.map(str::to_owned)).chain(run.processes.iter().map(row));
    let rows: Vec<_> = rows.collect();
    text += &aligned(&rows, "", |column| NUMBERS.contains(&column));
    text += &end_lines(run);
    text += &not_visible(run);
    text
}

/// Lists the calls that the preload library does not see, by process.
fn not_visible(run: &Run) -> String {
    let mut text = String::new();
    for process in &run.processes {
        for words in &process.not_visible {
            let (name, words) = (printable(&process.name), printable(words));
            text += &format!("\n{name} [{}]: {words}\n", process.pid);
        }
    }
    text
}

fn row(process: &Process) -> [String; 9] {
    let Process {
        name,
        pid,
        state,
        levels,
        fragments,
        events,
        bytes,
        last_event_age_ns,
        lost,
        ..
    } = process;
    let dash = || "-".to_owned();
    let lost: Vec<_> = lost
        .iter()
        .map(|(cause, events)| format!("{} {}", grouped(*events), printable(cause)))
        .collect();
    [
        printable(name),
        pid.to_string(),
        state.word().to_owned(),
        levels
            .as_ref()
            .map_or_else(dash, |levels| level::text(levels)),
        fragments.to_string(),
        grouped(*events),
        size(*bytes),
        last_event_age_ns.map_or_else(dash, |ns| format!("{} ago", age(ns))),
        if lost.is_empty() {
            dash()
        } else {
            lost.join(", ")
        },
    ]
}

/// Returns the lines about processes that were running at a snapshot or did not close their recordings.
fn end_lines(run: &Run) -> String {
    let mut lines = Vec::new();
    let running = run
        .processes
        .iter()
        .filter(|process| process.state == State::Running);
    let names: Vec<_> = running
        .map(|process| format!("{} (pid {})", printable(&process.name), process.pid))
        .collect();
    if !names.is_empty() {
        let names = names.join(", ");
        lines.push(format!(
            "still running when this snapshot was taken: {names}"
        ));
    }
    let deaths: Deaths = run.processes.iter().filter_map(Process::dead).collect();
    if let Some(killed) = deaths.killed_text() {
        let directory = printable(&run.directory);
        lines.push(format!(
            "{killed}. `trace-merge {directory}` shows the spans they died in"
        ));
    }
    lines.extend(deaths.exited_text());
    lines.extend(deaths.other_lines());
    lines.iter().map(|line| format!("\n{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sa_format::Level;
    use std::collections::BTreeMap;
    use trace_merge::Death;

    fn process(name: &str, pid: u32, state: State) -> Process {
        Process {
            name: name.to_owned(),
            pid,
            host: "node-3".to_owned(),
            main: pid == 1,
            state,
            death: (state == State::Killed).then(|| Death {
                open_spans: Some(2),
                ..Death::default()
            }),
            levels: Some(vec![Level::E2e, Level::Kernel]),
            fragments: 1,
            start_realtime_ns: None,
            events: 1_234_567,
            bytes: 146_000_000,
            last_event_age_ns: Some(250_000_000),
            lost: BTreeMap::new(),
            not_visible: Vec::new(),
        }
    }

    #[test]
    fn a_table_of_every_state() {
        let lost = BTreeMap::from([("busy".to_owned(), 1200), ("disk_full".to_owned(), 7)]);
        let run = Run {
            directory: "profile_out".to_owned(),
            run: "20261121-081502-5feceb66".to_owned(),
            start_realtime_ns: Some(0),
            age_ns: Some(185_000_000_000),
            bytes: 292_000_400,
            events: 1_234_569,
            lost: 1207,
            processes: vec![
                process("engine-core", 1, State::Alive),
                Process {
                    lost,
                    not_visible: vec!["copies are not visible".to_owned()],
                    ..process("worker-0", 4711, State::Killed)
                },
                Process {
                    levels: Some(vec![]),
                    events: 0,
                    bytes: 400,
                    last_event_age_ns: None,
                    ..process("api", 99, State::Ended)
                },
            ],
        };
        assert_eq!(
            text(&run),
            "\
run       20261121-081502-5feceb66 in profile_out
began     3 min ago
recorded  1,234,569 events, 1,207 lost, 292.0 MB
alive     1 of 3

PROCESS       PID  STATE   LEVEL       FILES     EVENTS      SIZE  LAST EVENT  LOST
engine-core     1  alive   e2e,kernel      1  1,234,567  146.0 MB  0.2 s ago   -
worker-0     4711  killed  e2e,kernel      1  1,234,567  146.0 MB  0.2 s ago   1,200 busy, 7 disk_full
api            99  ended   off             1          0     400 B  -           -

killed: worker-0 (pid 4711), in 2 open spans. `trace-merge profile_out` shows the spans they died in

worker-0 [4711]: copies are not visible
"
        );
    }
}
