//! Switching recording of running processes with the control file: all processes switch at one instant, nothing is lost, and invalid controls have no effect.

use crate::{HOST, host, listening_script};
use e2e::host_support::stage::{DEADLINE, Stage, plants, snapshot};
use e2e::host_support::switch::{
    Event, RecordedSwitch, anchor, control, ns, store, switch, switches, wait_for,
};
use e2e::host_support::{HostRecording, Live, Merged, is_root, scratch};
use format_oracle::reader;
use sa_format::Level;
use sa_format::control::{Control, Steps, SwitchCause};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Time between storing a control and the instant at which it takes effect.
const AHEAD: Duration = Duration::from_millis(350);
const BOTH: [Level; 2] = [Level::E2e, Level::Kernel];

/// Starts a paused host with a single thread that obeys controls while it is idle.
fn paused(dir: &Path, arguments: &[&str]) -> Live {
    let host = host(dir, arguments).variable("SA_PROFILE_THREADS", "1");
    host.variable("SA_PROFILE_START", "paused").start()
}

/// Starts a host for commands and waits until it is running.
fn script(dir: &Path) -> Live {
    let mut host = listening_script(dir);
    host.who();
    host
}

fn paused_script(dir: &Path) -> Live {
    let mut host = paused(dir, &["script"]);
    host.who();
    host
}

fn start(dir: &Path) -> Control {
    control(dir, SwitchCause::Start, &BOTH, AHEAD)
}

fn stop(dir: &Path) -> Control {
    control(dir, SwitchCause::Stop, &[], AHEAD)
}

fn causes(dir: &Path) -> Vec<SwitchCause> {
    let switches = switches(dir).into_iter();
    switches.map(|switch| switch.switch.cause).collect()
}

/// Runs three processes at full speed, with recording on for two windows of 30 ms. All of them switch at the instant, and each thread begins at most
/// one span after the end of each window. A process that starts after the windows is off and records why.
#[test]
fn processes_at_full_speed_switch_at_one_instant() {
    const PROCESSES: usize = 3;
    let dir = scratch();
    let dir = dir.path();
    let _main = paused_script(dir);
    let hosts: Vec<Live> = (0..PROCESSES)
        .map(|_| paused(dir, &["steady", "2"]))
        .collect();
    wait_for(dir, SwitchCause::Paused, PROCESSES + 1);
    let mut instants = Vec::new();
    for window in 1..=2 {
        let mut bounded = start(dir);
        bounded.until_realtime_ns = Some(bounded.from_realtime_ns + 30_000_000);
        store(dir, &bounded);
        instants.push(bounded.from_realtime_ns);
        wait_for(dir, SwitchCause::For, window * (PROCESSES + 1));
    }
    drop(hosts);
    let mut late = script(dir);
    assert_eq!(late.who()["enabled"], false);
    wait_for(dir, SwitchCause::For, 2 * (PROCESSES + 1) + 1);
    late.ask("spans late 10");
    let _outcome = late.end().quiet();
    let windows = windows(dir);
    let mut outside: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let mut spans = reader::read_dir_as::<Event>(dir).events;
    assert!(
        !spans.iter().any(|span| span.name == "work"),
        "no late span"
    );
    spans.retain(|span| span.name == "steady");
    assert!(!spans.is_empty());
    for span in &spans {
        let ts = ns(&span.ts);
        let mut windows = windows[&span.pid].iter();
        let inside = windows.any(|(on, off)| (*on..=*off).contains(&ts));
        *outside.entry((span.pid, span.tid)).or_default() += u64::from(!inside);
    }
    println!("{} spans, outside of the windows: {outside:?}", spans.len());
    assert!(outside.values().all(|spans| *spans <= 2), "{outside:?}");
    let (monotonic_ns, realtime_ns) = anchor();
    let mut started = switches(dir);
    started.retain(|switch| switch.switch.cause == SwitchCause::Start);
    for switch in started {
        let at_ns = switch.at_ns as i64 - monotonic_ns as i64 + realtime_ns as i64;
        let late_ns = instants.iter().map(|instant| at_ns - *instant as i64);
        let late_ns = late_ns.min_by_key(|late_ns| late_ns.abs()).unwrap();
        assert!(late_ns > -1_000_000, "{late_ns} ns too early");
    }
}

/// Returns the windows in which each process was recording.
fn windows(dir: &Path) -> BTreeMap<u64, Vec<(u64, u64)>> {
    let mut windows: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for switch in switches(dir) {
        let process_windows = windows.entry(switch.pid).or_default();
        match switch.switch.cause {
            SwitchCause::Start => process_windows.push((switch.at_ns, u64::MAX)),
            // On a busy machine, a process that only gets to run after the window never starts.
            SwitchCause::For => {
                if let Some(open) = process_windows
                    .last_mut()
                    .filter(|window| window.1 == u64::MAX)
                {
                    open.1 = switch.at_ns;
                }
            }
            _ => {}
        }
    }
    windows
}

#[test]
fn a_paused_process_records_when_started_and_only_at_the_selected_levels() {
    let dir = scratch();
    let dir = dir.path();
    let mut host = paused_script(dir);
    host.ask("spans early 10");
    let found = HostRecording::in_dir(dir);
    assert_eq!(found.header_values("levels"), ["[]"]);
    assert_eq!(
        (found.recorded(), &host.who()["enabled"]),
        (0, &false.into())
    );
    let configured = Control {
        levels: None,
        ..start(dir)
    };
    assert_eq!(switch(dir, &configured, 1)[0].switch.levels, BOTH);
    assert_eq!(host.who()["kernel"], true);
    let only = control(dir, SwitchCause::Level, &[Level::E2e], AHEAD);
    switch(dir, &only, 1);
    let who = host.who();
    assert_eq!([&who["enabled"], &who["kernel"]], [true, false]);
    host.ask("spans work 10");
    switch(dir, &stop(dir), 1);
    host.ask("spans late 10");
    let _outcome = host.end().quiet();
    HostRecording::in_dir(dir).assert_exactly(&[("work", 10)]);
    use SwitchCause::{Level as Levels, Paused, Start, Stop};
    assert_eq!(causes(dir), [Paused, Start, Levels, Stop]);
    let merged = Merged::newest(dir);
    assert_eq!(
        (merged.count_named("sa_switch"), merged.damage()),
        (4, vec![])
    );
}

/// The recorder has no thread of its own in a single-threaded process, so the first event in each second checks the control file. When such a process is
/// switched off, it gets a thread so that it can be switched on again. If threads are not allowed, a flush checks the file.
#[test]
fn issue_19_a_process_without_a_recorder_thread_obeys_at_its_events() {
    for (threads, check) in [("", "spans late 1"), ("0", "flush")] {
        let dir = scratch();
        let host = host(dir.path(), &["script"]);
        let mut host = host.variable("SA_PROFILE_THREADS", threads).start();
        host.ask("spans early 10");
        assert_eq!(host.threads(), 1, "no thread of ours");
        store(dir.path(), &stop(dir.path()));
        ask_until(&mut host, "spans before 1", false);
        host.ask("spans late 10");
        store(dir.path(), &start(dir.path()));
        ask_until(&mut host, check, true);
        host.ask("spans work 10");
        let _outcome = host.end().quiet();
        let found = HostRecording::in_dir(dir.path());
        assert_eq!((found.damage.len(), found.lost), (0, 0));
        assert_eq!(found.header_values("levels"), [r#"["e2e","kernel"]"#]);
        let counts = found.counts();
        assert_eq!((counts["early"], counts["work"]), (10, 10));
        let late = counts.get("late").copied();
        assert!(late.is_none_or(|late| late <= 1), "{counts:?}");
        assert_eq!(causes(dir.path()), [SwitchCause::Stop, SwitchCause::Start]);
    }
}

/// Repeats a command until recording is on or off.
fn ask_until(host: &mut Live, line: &str, on: bool) {
    let begun = Instant::now();
    while host.who()["enabled"] != on {
        assert!(begun.elapsed() < DEADLINE, "enabled is never {on}");
        host.ask(line);
        thread::sleep(Duration::from_millis(10));
    }
}

/// Anything under the control's name that is not a control of this run by this user changes nothing and blocks nobody.
#[test]
fn invalid_controls_are_not_obeyed() {
    let stage = Stage::new(HOST);
    let mut host = stage.script();
    host.who();
    let dir = stage.dir();
    let mut spans = 0;
    let mut unharmed = |what: &str| {
        thread::sleep(Duration::from_millis(300)); // an idle recorder thread checks four times a second
        host.ask("spans work 10, flush");
        spans += 10;
        assert_eq!(stage.recorded(), spans, "{what}");
    };
    if is_root() {
        let outside = snapshot(&stage.outside());
        for plant in plants() {
            stage.plant(plant, "control");
            unharmed(plant.kind);
            stage.clear("control");
        }
        let text = String::from_utf8(stop(&dir).to_json_line()).expect("JSON");
        stage.attack(&format!("cat > control <<'TEXT'\n{text}TEXT"));
        unharmed("another user's control");
        stage.clear("control");
        assert_eq!(snapshot(&stage.outside()), outside);
    }
    switch(&dir, &stop(&dir), 1);
    stage.clear("control");
    thread::sleep(Duration::from_millis(300));
    assert_eq!(host.who()["enabled"], false, "removing it changes nothing");
}

#[test]
fn a_limited_start_ends_after_events_in_each_process_or_after_steps_in_all() {
    let dir = scratch();
    let dir = dir.path();
    let mut hosts = [paused_script(dir), paused_script(dir)];
    let bounded = Control {
        events: Some(1000),
        ..start(dir)
    };
    switch(dir, &bounded, 2);
    hosts[0].ask("spans work 900");
    thread::sleep(Duration::from_millis(600));
    assert_eq!(hosts[0].who()["enabled"], true);
    hosts[0].ask("spans work 100");
    let ended = wait_for(dir, SwitchCause::Events, 1);
    assert_eq!(ended[0].pid, u64::from(hosts[0].pid()));
    assert_eq!(ended[0].switch.control.as_ref(), Some(&bounded.id));
    let enabled = hosts.each_mut().map(|host| host.who()["enabled"] == true);
    assert_eq!(enabled, [false, true], "each process counts its own");

    let steps = Steps {
        name: "step".to_owned(),
        category: Some("engine".to_owned()),
        count: 50,
    };
    let bounded = Control {
        steps: Some(steps),
        ..start(dir)
    };
    switch(dir, &bounded, 2);
    hosts[0].ask("steps 40");
    thread::sleep(Duration::from_millis(600));
    assert_eq!(hosts[1].who()["enabled"], true, "ten steps are missing");
    hosts[0].ask("steps 1000");
    let ended = wait_for(dir, SwitchCause::Steps, 2);
    assert_eq!(ended[0].switch.control, ended[1].switch.control);
    let apart_ms = ended[0].at_ns.abs_diff(ended[1].at_ns) / 1_000_000;
    assert!(apart_ms < 2_000, "{apart_ms} ms");
    let enabled = hosts.each_mut().map(|host| host.who()["enabled"] == true);
    assert_eq!(enabled, [false, false]);
    let events = reader::read_dir(dir).events.into_iter();
    let recorded = events.filter(|event| event["name"] == "step").count();
    println!("{recorded} steps recorded for a start of 50");
    assert!((50..1040).contains(&recorded), "{recorded} steps");
    // The next start is obeyed even though a process stored a stop in the meantime.
    switch(dir, &start(dir), 2);
    let enabled = hosts.each_mut().map(|host| host.who()["enabled"] == true);
    assert_eq!(enabled, [true, true]);
}

/// The parent was paused from the start, or was stopped by a control that has been removed.
#[test]
fn the_child_of_a_fork_is_switched_too() {
    for is_paused in [true, false] {
        let dir = scratch();
        let dir = dir.path();
        let mut parent = if is_paused {
            paused_script(dir)
        } else {
            script(dir)
        };
        parent.ask("spans early 1");
        if !is_paused {
            switch(dir, &stop(dir), 1);
            fs::remove_file(dir.join("control")).expect("the file is there");
        }
        let child = parent.ask("fork beside, beside-parent forked");
        thread::sleep(Duration::from_millis(100));
        let started = switch(dir, &start(dir), 2);
        let is_childs = |switch: &RecordedSwitch| switch.pid.to_string() == child;
        assert!(started.iter().any(is_childs), "{started:?}");
        thread::sleep(Duration::from_millis(300));
        let _pid = parent.kill();
        thread::sleep(Duration::from_millis(100));
        let mut forked = HostRecording::in_dir(dir).work;
        forked.retain(|work| work.args.label == "forked");
        assert!(!forked.is_empty(), "no span of the stopped parent's child");
        let is_early = |ts: f64| ts * 1000.0 < started[0].at_ns as f64 - 1000.0;
        let early = forked.iter().find(|work| is_early(work.ts));
        assert_eq!(early, None, "recorded before");
    }
}

/// Spans that are open at a stop are recorded whole and marked. Each end matches its own beginning.
#[test]
fn open_spans_are_kept_whole_across_a_stop() {
    let dir = scratch();
    let mut host = script(dir.path());
    host.ask("guard, lane, begin across, begin inner, end inner, guard, guard-arg");
    let off = switch(dir.path(), &stop(dir.path()), 1);
    // These begin while recording is off, so they are not recorded and their ends must not match other spans.
    host.ask("begin off, guard, lane, lane-end, guard-end, begin off2, end off2, guard-end");
    let on = switch(dir.path(), &start(dir.path()), 1);
    host.ask("begin on, end on, end off, end across, guard-end, lane-end, end nothing");
    host.ask("guard, guard-end");
    let _outcome = host.end().quiet();
    let recording = reader::read_dir(dir.path());
    assert_eq!((recording.damage.len(), recording.unfinished.len()), (0, 0));
    let mut open = recording.events;
    open.retain(|event| event["cat"] == "open");
    open.sort_by_key(|event| ns(&event["ts"]));
    let shown = open.iter().map(|event| {
        let name = event["name"].as_str().expect("a name");
        format!("{name} {}", event["args"])
    });
    let expected = [
        r#"guard {"number":1,"sa_across_stop":true}"#,
        r#"lane {"number":1,"sa_across_stop":true}"#,
        r#"across {"ended_as":"across","sa_across_stop":true}"#,
        r#"inner {"ended_as":"inner"}"#,
        r#"guard {"late":2,"number":1,"sa_across_stop":true}"#,
        r#"on {"ended_as":"on"}"#,
        r#"guard {"number":1}"#,
    ];
    assert_eq!(shown.collect::<Vec<_>>(), expected);
    for event in &open[..3] {
        let end = ns(&event["ts"]) + ns(&event["dur"]);
        assert!(end > on[0].at_ns, "cut at the stop: {event}");
    }
    assert!(ns(&open[4]["ts"]) + ns(&open[4]["dur"]) > off[0].at_ns);
}
