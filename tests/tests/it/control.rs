//! Recording is switched while processes run: by the control file, at one instant, without a loss, and by nothing that is no control.

use crate::host;
use e2e::host_support::stage::{DEADLINE, Stage, plants, snapshot};
use e2e::host_support::switch::{Event, Told, anchor, control, ns, store, switches, wait_for};
use e2e::host_support::{Found, Host, Live, Merged, is_root, scratch};
use format_oracle::reader;
use sa_format::Level;
use sa_format::control::{Control, Steps, SwitchCause};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How far ahead of its store the instant of a switch lies.
const AHEAD: Duration = Duration::from_millis(350);
const BOTH: [Level; 2] = [Level::E2e, Level::Kernel];

/// Prepares one that is idle, with a single thread, and obeys too.
fn listening(dir: &Path, arguments: &[&str]) -> Host {
    host(dir, arguments).variable("SA_PROFILE_THREADS", "1")
}

fn paused(dir: &Path, arguments: &[&str]) -> Live {
    listening(dir, arguments)
        .variable("SA_PROFILE_START", "paused")
        .start()
}

/// Starts one that does what it is asked, and waits until it has begun.
fn script(dir: &Path) -> Live {
    let mut host = listening(dir, &["script"]).start();
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

/// Switches the processes of `dir`, and waits until `count` of them have told so.
fn switch(dir: &Path, control: &Control, count: usize) -> Vec<Told> {
    store(dir, control);
    let mut told = wait_for(dir, control.cause, count);
    told.retain(|told| told.switch.control.as_ref() == Some(&control.id));
    told
}

fn events(dir: &Path, name: &str) -> Vec<Value> {
    let mut events = reader::read_dir(dir).events;
    events.retain(|event| event["name"] == name);
    events
}

/// Three processes at full speed, on for two windows of 30 ms: all switch at the instant, and each thread begins at most one span beyond each
/// window's end.
#[test]
fn processes_at_full_speed_switch_at_one_instant() {
    const PROCESSES: usize = 3;
    let dir = scratch();
    let _main = paused_script(dir.path());
    let hosts: Vec<Live> = (0..PROCESSES)
        .map(|_| paused(dir.path(), &["steady", "2"]))
        .collect();
    wait_for(dir.path(), SwitchCause::Paused, PROCESSES + 1);
    let mut instants = Vec::new();
    for window in 1..=2 {
        let mut bounded = start(dir.path());
        bounded.until_realtime_ns = Some(bounded.from_realtime_ns + 30_000_000);
        store(dir.path(), &bounded);
        instants.push(bounded.from_realtime_ns);
        wait_for(dir.path(), SwitchCause::For, window * (PROCESSES + 1));
    }
    drop(hosts);
    let windows = windows(dir.path());
    let mut outside: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let mut spans = reader::read_dir_as::<Event>(dir.path()).events;
    spans.retain(|span| span.name == "steady");
    assert!(!spans.is_empty());
    for span in &spans {
        let ts = ns(&span.ts);
        let inside = windows[&span.pid]
            .iter()
            .any(|(on, off)| (*on..=*off).contains(&ts));
        *outside.entry((span.pid, span.tid)).or_default() += u64::from(!inside);
    }
    println!("{} spans, outside of the windows: {outside:?}", spans.len());
    assert!(outside.values().all(|spans| *spans <= 2), "{outside:?}");
    assert_eq!(windows.len(), PROCESSES + 1);
    let (monotonic_ns, realtime_ns) = anchor();
    let started = switches(dir.path()).into_iter();
    let started = started.filter(|told| told.switch.cause == SwitchCause::Start);
    for told in started {
        let at_ns = told.at_ns as i64 - monotonic_ns as i64 + realtime_ns as i64;
        let late_ns = instants.iter().map(|instant| at_ns - *instant as i64);
        let late_ns = late_ns.min_by_key(|late_ns| late_ns.abs()).unwrap();
        assert!(late_ns > -1_000_000, "{late_ns} ns too early");
    }
}

/// When each process was on.
fn windows(dir: &Path) -> BTreeMap<u64, Vec<(u64, u64)>> {
    let mut windows: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for told in switches(dir) {
        let of_process = windows.entry(told.pid).or_default();
        match told.switch.cause {
            SwitchCause::Start => of_process.push((told.at_ns, u64::MAX)),
            // A process that a busy machine lets run when all is over never starts.
            SwitchCause::For => {
                if let Some(open) = of_process.last_mut().filter(|window| window.1 == u64::MAX) {
                    open.1 = told.at_ns;
                }
            }
            _ => {}
        }
    }
    windows
}

#[test]
fn a_paused_process_has_a_fragment_and_records_when_started() {
    let dir = scratch();
    let mut host = paused_script(dir.path());
    assert_eq!(host.ask("spans early 10"), "recorded");
    let found = Found::in_dir(dir.path());
    assert_eq!(found.header_values("levels"), ["[]"]);
    assert_eq!(found.recorded(), 0);
    assert_eq!(host.who()["enabled"], false);
    switch(dir.path(), &start(dir.path()), 1);
    assert_eq!(host.who()["enabled"], true);
    host.ask("spans work 10");
    switch(dir.path(), &stop(dir.path()), 1);
    host.ask("spans late 10");
    let _outcome = host.end().quiet();
    Found::in_dir(dir.path()).assert_exactly(&[("work", 10)]);
    let causes: Vec<_> = switches(dir.path())
        .into_iter()
        .map(|told| told.switch.cause)
        .collect();
    use SwitchCause::{Paused, Start, Stop};
    assert_eq!(causes, [Paused, Start, Stop]);
    let merged = Merged::newest(dir.path());
    assert_eq!((merged.named("sa_switch"), merged.damage()), (3, vec![]));
}

/// A process with one thread has none of the recorder's own, and looks at the control with its first event in each second. Switched off it gets one, to
/// be switched on again; where it may have none, a flush looks.
#[test]
fn issue_19_a_process_without_a_helper_obeys_with_its_events() {
    for threads in ["", "0"] {
        let dir = scratch();
        let host = host(dir.path(), &["script"]);
        let mut host = host.variable("SA_PROFILE_THREADS", threads).start();
        host.ask("spans early 10");
        assert_eq!(host.threads(), 1, "no thread of ours");
        store(dir.path(), &stop(dir.path()));
        ask_until(&mut host, "spans before 1", false);
        host.ask("spans late 10");
        store(dir.path(), &start(dir.path()));
        ask_until(
            &mut host,
            if threads == "0" {
                "flush"
            } else {
                "spans late 1"
            },
            true,
        );
        host.ask("spans work 10");
        let _outcome = host.end().quiet();
        let found = Found::in_dir(dir.path());
        assert_eq!((found.damage.len(), found.lost), (0, 0));
        let counts = found.counts();
        assert_eq!(
            (counts.get("early"), counts.get("work")),
            (Some(&10), Some(&10))
        );
        assert!(
            counts.get("late").is_none_or(|late| *late <= 1),
            "{counts:?}"
        );
        let causes = switches(dir.path())
            .into_iter()
            .map(|told| told.switch.cause);
        assert_eq!(
            causes.collect::<Vec<_>>(),
            [SwitchCause::Stop, SwitchCause::Start]
        );
    }
}

/// Has a host do something until recording is on, or off.
fn ask_until(host: &mut Live, line: &str, on: bool) {
    let begun = Instant::now();
    while host.who()["enabled"] != on {
        assert!(begun.elapsed() < DEADLINE, "enabled is never {on}");
        host.ask(line);
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn levels_change_while_a_process_records() {
    let dir = scratch();
    let mut host = script(dir.path());
    assert_eq!(
        Found::in_dir(dir.path()).header_values("levels"),
        [r#"["e2e","kernel"]"#]
    );
    let only = control(dir.path(), SwitchCause::Level, &[Level::E2e], AHEAD);
    switch(dir.path(), &only, 1);
    let who = host.who();
    assert_eq!(
        (&who["enabled"], &who["kernel"]),
        (&true.into(), &false.into())
    );
    let configured = Control {
        levels: None,
        ..start(dir.path())
    };
    let told = switch(dir.path(), &configured, 1);
    assert_eq!(told[0].switch.levels, BOTH);
    assert_eq!(host.who()["kernel"], true);
}

/// What stands at the name, and is no control of this run by this user, changes nothing and holds nobody up.
#[test]
fn whatever_else_stands_there_is_not_obeyed() {
    let stage = Stage::new(crate::HOST);
    let mut host = stage.script();
    host.who();
    let dir = stage.dir();
    let mut spans = 0;
    let mut unharmed = |what: &str| {
        thread::sleep(Duration::from_millis(300)); // a helper that sleeps long looks four times a second
        assert_eq!(host.ask("spans work 10"), "recorded", "{what}");
        assert_eq!(host.ask("flush"), "flushed", "{what}");
        spans += 10;
        assert_eq!(stage.recorded(), spans, "{what}");
    };
    if is_root("whatever_else_stands_there_is_not_obeyed, planted by another user") {
        let outside = snapshot(&stage.outside());
        for plant in plants() {
            stage.plant(plant, "control");
            unharmed(plant.kind);
            stage.clear("control");
        }
        let text = String::from_utf8(stop(&dir).text()).expect("JSON");
        stage.attack(&format!("cat > control <<'TEXT'\n{text}TEXT"));
        unharmed("another user's control");
        stage.clear("control");
        assert_eq!(snapshot(&stage.outside()), outside);
    }
    switch(&dir, &stop(&dir), 1);
    fs::remove_file(dir.join("control")).expect("the file is there");
    thread::sleep(Duration::from_millis(300));
    assert_eq!(host.who()["enabled"], false, "removing it changes nothing");
}

#[test]
fn a_start_for_a_time_ends_by_itself() {
    let dir = scratch();
    let mut host = paused_script(dir.path());
    let mut bounded = start(dir.path());
    bounded.until_realtime_ns = Some(bounded.from_realtime_ns + 200_000_000);
    store(dir.path(), &bounded);
    let told = wait_for(dir.path(), SwitchCause::For, 1);
    let on = wait_for(dir.path(), SwitchCause::Start, 1);
    let width_ms = (told[0].at_ns - on[0].at_ns) / 1_000_000;
    assert!((150..2_000).contains(&width_ms), "{width_ms} ms");
    assert_eq!(host.who()["enabled"], false);
    // A process that comes when all is over is off, and says why.
    let mut late = script(dir.path());
    assert_eq!(late.who()["enabled"], false);
    assert_eq!(wait_for(dir.path(), SwitchCause::For, 2).len(), 2);
    late.ask("spans work 10");
    let _outcome = late.end().quiet();
    let recorded = Found::in_dir(dir.path()).recorded();
    assert_eq!(recorded, 0, "not a single event");
}

#[test]
fn a_start_for_a_number_of_events_ends_in_each_process() {
    let dir = scratch();
    let mut hosts = [paused_script(dir.path()), paused_script(dir.path())];
    let bounded = Control {
        events: Some(1000),
        ..start(dir.path())
    };
    assert_eq!(switch(dir.path(), &bounded, 2).len(), 2);
    hosts[0].ask("spans work 900");
    thread::sleep(Duration::from_millis(600));
    assert_eq!(hosts[0].who()["enabled"], true);
    hosts[0].ask("spans work 100");
    let told = wait_for(dir.path(), SwitchCause::Events, 1);
    assert_eq!(told[0].pid, u64::from(hosts[0].pid()));
    assert_eq!(told[0].switch.control.as_ref(), Some(&bounded.id));
    assert_eq!(hosts[0].who()["enabled"], false);
    assert_eq!(
        hosts[1].who()["enabled"],
        true,
        "each process counts its own"
    );
}

#[test]
fn a_start_for_a_number_of_steps_ends_in_all_processes() {
    let dir = scratch();
    let mut hosts = [paused_script(dir.path()), paused_script(dir.path())];
    let steps = Steps {
        name: "step".to_owned(),
        category: Some("engine".to_owned()),
        count: 50,
    };
    let bounded = Control {
        steps: Some(steps),
        ..start(dir.path())
    };
    switch(dir.path(), &bounded, 2);
    hosts[0].ask("steps 40");
    thread::sleep(Duration::from_millis(600));
    assert_eq!(hosts[1].who()["enabled"], true, "ten steps are missing");
    hosts[0].ask("steps 1000");
    let told = wait_for(dir.path(), SwitchCause::Steps, 2);
    assert_eq!(told[0].switch.control, told[1].switch.control);
    let apart_ms = told[0].at_ns.abs_diff(told[1].at_ns) / 1_000_000;
    assert!(apart_ms < 2_000, "{apart_ms} ms");
    assert!(hosts.iter_mut().all(|host| host.who()["enabled"] == false));
    let recorded = events(dir.path(), "step").len();
    println!("{recorded} steps recorded for a start of 50");
    assert!((50..1040).contains(&recorded), "{recorded} steps");
    // The next start is obeyed after the stop that a process stored.
    switch(dir.path(), &start(dir.path()), 4);
    assert!(hosts.iter_mut().all(|host| host.who()["enabled"] == true));
}

#[test]
fn the_child_of_a_fork_is_switched_too() {
    for is_paused in [true, false] {
        let dir = scratch();
        let mut parent = match is_paused {
            true => paused_script(dir.path()),
            false => script(dir.path()),
        };
        parent.ask("spans early 1");
        if !is_paused {
            switch(dir.path(), &stop(dir.path()), 1);
            fs::remove_file(dir.path().join("control")).expect("the file is there");
        }
        let child: u64 = parent.ask("fork-steady").parse().expect("a pid");
        thread::sleep(Duration::from_millis(100));
        let told = switch(dir.path(), &start(dir.path()), 2);
        assert!(told.iter().any(|told| told.pid == child), "{told:?}");
        let on = told.iter().map(|told| told.at_ns).min();
        thread::sleep(Duration::from_millis(300));
        let _pid = parent.kill();
        thread::sleep(Duration::from_millis(100));
        let found = Found::in_dir(dir.path());
        let forked: Vec<_> = found
            .work
            .iter()
            .filter(|work| work.label == "forked")
            .collect();
        assert!(
            !forked.is_empty(),
            "nothing from the child of a paused parent"
        );
        let first = forked
            .iter()
            .map(|work| work.ts)
            .fold(f64::INFINITY, f64::min);
        assert!(
            first * 1000.0 >= on.expect("told") as f64 - 1000.0,
            "recorded before"
        );
    }
}

/// Spans that are open at a stop are kept whole and marked; each end finds its own beginning.
#[test]
fn open_spans_are_kept_whole_across_a_stop() {
    let dir = scratch();
    let mut host = script(dir.path());
    let ask_all = |host: &mut Live, lines: &str| {
        for line in lines.split(", ") {
            assert_eq!(host.ask(line), "obeyed", "{line}");
        }
    };
    let begun = "guard, lane, begin across, begin inner, end inner, guard, guard-arg";
    ask_all(&mut host, begun);
    let off = switch(dir.path(), &stop(dir.path()), 1);
    // Begun while off: not recorded, and no end may take the place of another.
    let unrecorded = "begin off, guard, lane, lane-end, guard-end, begin off2, end off2, guard-end";
    ask_all(&mut host, unrecorded);
    let on = switch(dir.path(), &start(dir.path()), 1);
    let ends = "begin on, end on, end off, end across, guard-end, lane-end, end nothing";
    ask_all(&mut host, ends);
    ask_all(&mut host, "guard, guard-end");
    let _outcome = host.end().quiet();
    let recording = reader::read_dir(dir.path());
    assert_eq!((recording.damage.len(), recording.unfinished.len()), (0, 0));
    let mut open: Vec<_> = recording
        .events
        .iter()
        .filter(|event| event["cat"] == "open")
        .collect();
    open.sort_by_key(|event| ns(&event["ts"]));
    let seen = open.iter().map(|event| {
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
    assert_eq!(seen.collect::<Vec<_>>(), expected);
    for event in &open[..3] {
        let end = ns(&event["ts"]) + ns(&event["dur"]);
        assert!(end > on[0].at_ns, "cut at the stop: {event}");
    }
    let early = open[4];
    assert!(ns(&early["ts"]) + ns(&early["dur"]) > off[0].at_ns);
}
