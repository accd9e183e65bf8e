//! Windows that are not where the first and the newest anchors place them are found nevertheless.

use crate::clocks::fragment_on;
use crate::invocation::{Merged, RunDir};
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;

const S: u64 = 1_000_000_000;
const START_S: u64 = 100;
/// Wall time at the zero of the clock, before it is set: 2026-11-21T00:00:00Z.
const WALL_S: u64 = 1_795_219_200;

/// Returns an anchor of a clock that was set forward by some seconds.
fn anchor(process: &Process, at_s: u64, wall_s: u64, uncertainty_ns: u64) -> String {
    let (monotonic_ns, realtime_ns) = (at_s * S, (WALL_S + wall_s) * S);
    let args = format!(
        r#""monotonic_ns":{monotonic_ns},"realtime_ns":{realtime_ns},"uncertainty_ns":{uncertainty_ns}"#
    );
    process.main_thread().metadata("sa_anchor", &args)
}

/// Returns a run of 600 s with an instant in each of the first `busy_s` seconds, and anchors in
/// blocks every five seconds. `set` returns how far the clock was set forward, and the uncertainty
/// of the anchor.
fn run(busy_s: u64, set: impl Fn(u64) -> (u64, u64)) -> RunDir {
    let (dir, process) = (RunDir::new(), Process::new(7));
    let (on, mut fragment) = (process.main_thread(), process.fragment());
    fragment.line(&anchor(&process, START_S, START_S, 50));
    let (mut own, mut other) = (0, 0);
    for second in 0..600 {
        let at_s = START_S + second;
        if second < busy_s {
            let line = on.instant(at_s * S, &format!("at {second}"), "");
            other = fragment.block(1, other, &stream(&[line]));
        }
        if second % 5 == 4 {
            let (set_s, uncertainty_ns) = set(second);
            let line = anchor(&process, at_s, at_s + set_s, uncertainty_ns);
            own = fragment.block(0, own, &stream(&[line]));
        }
    }
    fragment.write_here(&dir.fragments());
    dir
}

/// Returns the seconds of the instants that are shown.
fn seconds(options: &[&str], dir: &RunDir) -> Vec<u64> {
    let merged = Merged::new(&[options, &["--no-settle"]].concat(), &[dir.path()]);
    let second = |name: &str| name.strip_prefix("at ").unwrap().parse().unwrap();
    let instants = merged.trace.phase("i").into_iter();
    let names = instants.filter_map(|event| event["name"].as_str());
    let mut seconds: Vec<u64> = names.map(second).collect();
    seconds.sort_unstable();
    seconds
}

#[test]
fn a_window_of_wall_times_is_found_although_clocks_were_set() {
    // The clock was set forward in the middle. Its last setting applies from the first second on,
    // even if older anchors have a smaller uncertainty.
    let dir = run(600, |second| match second {
        ..299 => (0, 1),
        _ => (100, 50),
    });
    let window = ["--from=2026-11-21T00:06:35Z", "--to=2026-11-21T00:06:45Z"];
    let expected: Vec<u64> = (195..=205).collect();
    assert_eq!(seconds(&window, &dir), expected, "read whole");
    let in_segments = [&window[..], &["--reach=1s"]].concat();
    assert_eq!(seconds(&in_segments, &dir), expected, "in segments");
}

/// Time in s by which the monotonic clock of the other host is ahead.
const AHEAD_S: u64 = 50_000;

/// Returns a run of two hosts that send each other a message in each of 600 seconds. The wall clock
/// of the other host is ahead by `wrong_s`, or has no anchors.
fn two_hosts(wrong_s: Option<u64>) -> RunDir {
    let dir = RunDir::new();
    for (pid, ahead_s, name, set_s) in [(7, 0, "node-3", Some(0)), (8, AHEAD_S, "other", wrong_s)] {
        let process = Process {
            main: pid == 7,
            ..Process::new(pid)
        };
        let (on, mut fragment) = (process.main_thread(), fragment_on(name, &process));
        let anchor = |second: u64| {
            let wall_s = START_S + second;
            set_s.map(|set_s| anchor(&process, wall_s + ahead_s, wall_s + set_s, 50))
        };
        anchor(0).map(|line| fragment.line(&line));
        let (mut own, mut other) = (0, 0);
        let (phases, late_ns) = match pid {
            7 => (["s", "f"], 0),
            _ => (["f", "s"], 1_000_000),
        };
        for second in 0..600 {
            let at_ns = (START_S + ahead_s + second) * S;
            let (there_ns, back_ns) = (at_ns + late_ns, at_ns + 3_000_000 - late_ns);
            let lines = [
                on.instant(at_ns, &format!("at {second}"), ""),
                on.flow(phases[0], there_ns, "global", 2 * second),
                on.flow(phases[1], back_ns, "global", 2 * second + 1),
            ];
            other = fragment.block(1, other, &stream(&lines));
            if let Some(line) = anchor(second).filter(|_| second % 5 == 4) {
                own = fragment.block(0, own, &stream(&[line]));
            }
        }
        fragment.write_here(&dir.fragments());
    }
    dir
}

#[test]
fn a_window_is_found_on_a_host_placed_by_flows_alone() {
    for wrong_s in [None, Some(0), Some(3_600)] {
        let dir = two_hosts(wrong_s);
        let window = ["--from=200s", "--to=210.5s", "--no-link-requests"];
        let whole = seconds(&window, &dir);
        let both: Vec<u64> = (200..=210).flat_map(|second| [second, second]).collect();
        assert_eq!(whole, both, "read whole, {wrong_s:?}");
        let in_segments = [&window[..], &["--reach=1s"]].concat();
        let found = seconds(&in_segments, &dir);
        assert_eq!(found, both, "in segments, {wrong_s:?}");
    }
}

#[test]
fn the_last_part_is_found_although_nothing_happened_since() {
    for busy_s in [3, 100, 300, 590, 600] {
        let dir = run(busy_s, |_| (0, 50));
        let expected: Vec<u64> = (busy_s.saturating_sub(11)..busy_s).collect();
        assert_eq!(seconds(&["--last=10s"], &dir), expected, "{busy_s}");
    }
}
