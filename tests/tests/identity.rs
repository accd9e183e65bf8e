//! Which fragments belong to one process: pid and time namespaces, reused pids, two recorders in one process.

use e2e::host_support::{Found, Host, Live, Merged, is_root, namespaces, scratch};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

const HOST: &str = env!("CARGO_BIN_EXE_host");

fn script(dir: &Path) -> Live {
    Host::new(HOST)
        .arguments(&["script"])
        .recorded_in(dir)
        .start()
}

#[test]
fn two_pid_namespaces_share_a_directory_as_two_processes() {
    let test = "two_pid_namespaces_share_a_directory_as_two_processes";
    let wrapper = ["unshare", "--pid", "--fork", "--mount-proc"];
    if !namespaces(test, &wrapper[1..]) {
        return;
    }
    let dir = scratch();
    let mut first = Host::below(&wrapper, HOST)
        .arguments(&["script"])
        .recorded_in(dir.path())
        .start();
    let mut second = Host::below(&wrapper, HOST)
        .arguments(&["script"])
        .recorded_in(dir.path())
        .start();
    for round in 0..10 {
        first.ask(&format!("spans first-{round} 200"));
        second.ask(&format!("spans second-{round} 200"));
    }
    assert_eq!(first.who()["run"], second.who()["run"], "one run");
    let (_first, _second) = (first.end().quiet(), second.end().quiet());
    let found = Found::in_dir(dir.path());
    assert_eq!((found.recorded(), found.lost), (4000, 0));
    assert_eq!(found.header_values("pid"), ["1", "1"]);
    let namespaces: BTreeSet<String> = found.header_values("pid_ns").into_iter().collect();
    assert_eq!(namespaces.len(), 2);
    let merged = Merged::newest(dir.path());
    assert_eq!((merged.spans(), merged.processes()), (4000, 2));
}

#[test]
fn a_main_in_another_pid_namespace_is_joined_and_its_fragment_left_alone() {
    let test = "a_main_in_another_pid_namespace_is_joined_and_its_fragment_left_alone";
    let wrapper = ["unshare", "--pid", "--fork", "--mount-proc"];
    if !namespaces(test, &wrapper[1..]) {
        return;
    }
    let dir = scratch();
    let mut inside = Host::below(&wrapper, HOST)
        .arguments(&["script"])
        .recorded_in(dir.path())
        .start();
    inside.ask("spans inside 100");
    let mut outside = script(dir.path());
    assert_eq!(outside.who()["main"], false);
    assert_eq!(outside.who()["run"], inside.who()["run"]);
    outside.ask("spans outside 100");
    inside.ask("spans inside-later 100");
    let (_inside, _outside) = (inside.end().quiet(), outside.end().quiet());
    Found::in_dir(dir.path()).assert_exactly(&[
        ("inside", 100),
        ("inside-later", 100),
        ("outside", 100),
    ]);
}

#[test]
fn two_time_namespaces_share_one_time_axis() {
    let test = "two_time_namespaces_share_one_time_axis";
    let wrapper = [
        "unshare",
        "--time",
        "--monotonic=100000",
        "--boottime=200000",
        "--fork",
    ];
    if !namespaces(test, &wrapper[1..]) {
        return;
    }
    let dir = scratch();
    let mut outer = script(dir.path());
    let mut shifted = Host::below(&wrapper, HOST)
        .arguments(&["script"])
        .recorded_in(dir.path())
        .start();
    let start = Instant::now();
    for round in 0..20 {
        outer.ask(&format!("spans outer-{round} 1"));
        shifted.ask(&format!("spans shifted-{round} 1"));
    }
    let took = start.elapsed();
    assert_eq!(outer.who()["run"], shifted.who()["run"]);
    let (_outer, _shifted) = (outer.end().quiet(), shifted.end().quiet());
    let merged = Merged::newest(dir.path());
    assert_eq!((merged.spans(), merged.processes()), (40, 2));
    let times: Vec<f64> = (0..20)
        .flat_map(|round| [format!("outer-{round}"), format!("shifted-{round}")])
        .map(|label| merged.start_us(&label))
        .collect();
    assert!(
        times.is_sorted(),
        "events that took turns are in order: {times:?}"
    );
    assert!(
        times[39] - times[0] <= took.as_secs_f64() * 1e6,
        "the axis is longer than the test took"
    );
}

/// Makes what a process in a time namespace recorded that of another host, of which nothing is known but what its clocks showed.
fn move_to_another_host(dir: &Path) {
    const AHEAD: &str = r#""monotonic_offset_ns":100000000000000"#;
    let mut moved = 0;
    for fragment in std::fs::read_dir(dir.join("fragments")).expect("a folder") {
        let path = fragment.expect("an entry").path();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let Some((header, rest)) = text.split_once('\n') else {
            continue;
        };
        if header.contains(AHEAD) {
            let header = header.replace(AHEAD, r#""monotonic_offset_ns":0"#);
            let header = header.replace(r#""host":""#, r#""host":"another-"#);
            std::fs::write(&path, format!("{header}\n{rest}")).expect("room on the disk");
            moved += 1;
        }
    }
    assert_eq!(moved, 1);
}

#[test]
fn a_host_with_another_monotonic_clock_is_placed_by_its_anchors() {
    let test = "a_host_with_another_monotonic_clock_is_placed_by_its_anchors";
    let wrapper = [
        "unshare",
        "--time",
        "--monotonic=100000",
        "--boottime=200000",
        "--fork",
    ];
    if !namespaces(test, &wrapper[1..]) {
        return;
    }
    let dir = scratch();
    let mut outer = script(dir.path());
    let mut shifted = Host::below(&wrapper, HOST)
        .arguments(&["script"])
        .recorded_in(dir.path())
        .start();
    for round in 0..20 {
        outer.ask(&format!("spans outer-{round} 1"));
        shifted.ask(&format!("spans shifted-{round} 1"));
    }
    let (_outer, _shifted) = (outer.end().quiet(), shifted.end().quiet());
    move_to_another_host(dir.path());
    let merged = Merged::newest(dir.path());
    assert_eq!((merged.spans(), merged.processes()), (40, 2));
    let times = (0..20).flat_map(|round| [format!("outer-{round}"), format!("shifted-{round}")]);
    let times: Vec<f64> = times.map(|label| merged.start_us(&label)).collect();
    // They took turns; both read the same wall clock, each to some µs.
    let is_next = |two: &[f64]| two[1] > two[0] - 1_000.0;
    assert!(times.windows(2).all(is_next), "{times:?}");
}

#[test]
fn a_live_worker_in_a_shifted_time_namespace_is_not_taken_for_dead() {
    let test = "a_live_worker_in_a_shifted_time_namespace_is_not_taken_for_dead";
    let wrapper = [
        "unshare",
        "--time",
        "--monotonic=100000",
        "--boottime=200000",
        "--fork",
    ];
    if !namespaces(test, &wrapper[1..]) {
        return;
    }
    let dir = scratch();
    let mut main = script(dir.path());
    assert_eq!(main.who()["main"], true); // before the worker could be
    let mut worker = Host::below(&wrapper, HOST)
        .arguments(&["script"])
        .recorded_in(dir.path())
        .start();
    worker.ask("spans worker 10");
    main.kill();
    let mut next = script(dir.path());
    assert_eq!(next.who()["main"], true);
    let fragment = PathBuf::from(worker.who()["fragment"].as_str().expect("a path"));
    assert!(
        fragment.exists(),
        "a live process's fragment was taken away"
    );
}

#[test]
fn a_reused_pid_is_two_processes() {
    let test = "a_reused_pid_is_two_processes";
    let wrapper = ["unshare", "--pid", "--fork", "--mount-proc"];
    if !is_root(test) || !namespaces(test, &wrapper[1..]) {
        return;
    }
    let dir = scratch();
    let outcome = Host::below(&wrapper, HOST)
        .arguments(&["pid-reuse", "500", "300"])
        .recorded_in(dir.path())
        .run()
        .quiet();
    assert_eq!(outcome.stdout, "pids [500, 500]\n");
    let found = Found::in_dir(dir.path());
    assert_eq!(
        found.counts(),
        [("first".to_owned(), 300), ("second".to_owned(), 300)].into()
    );
    found.assert_own_pids();
    let merged = Merged::newest(dir.path());
    assert_eq!(merged.spans(), 600);
    assert_eq!(merged.processes(), 2, "processes with spans");
}

/// The library with the second recorder: cargo builds it beside the tests because they depend on its package.
fn second_recorder() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    test.with_file_name("libsecond_recorder.so")
}

#[test]
fn two_recorders_in_one_process_are_one_process_in_the_trace() {
    let dir = scratch();
    let library = second_recorder().display().to_string();
    let outcome = Host::new(HOST)
        .arguments(&["library", &library, "700"])
        .recorded_in(dir.path())
        .run()
        .quiet();
    let found = Found::in_dir(dir.path());
    found.assert_exactly(&[("library", 1400), ("program-0", 700), ("program-1", 700)]);
    assert_eq!(found.headers.len(), 2, "two fragments");
    assert_eq!(found.pids("library"), BTreeSet::from([outcome.pid]));
    let merged = Merged::newest(dir.path());
    assert_eq!(
        (merged.spans(), merged.processes(), merged.threads()),
        (2800, 1, 1)
    );
}

#[test]
fn without_proc_a_live_main_is_joined_and_nothing_of_it_moved() {
    let test = "without_proc_a_live_main_is_joined_and_nothing_of_it_moved";
    if !is_root(test) || !namespaces(test, &["--mount"]) {
        return;
    }
    let hide = r#"mount -t tmpfs none /proc && exec "$0" "$@""#;
    let wrapper = ["unshare", "--mount", "sh", "-c", hide];
    let dir = scratch();
    let start = || {
        Host::below(&wrapper, HOST)
            .arguments(&["script"])
            .recorded_in(dir.path())
            .start()
    };
    let mut first = start();
    first.ask("spans first 100");
    let (mut second, mut third) = (start(), start());
    let says = [first.who(), second.who(), third.who()];
    let mains: Vec<bool> = says.iter().map(|says| says["main"] == true).collect();
    assert_eq!(mains, [true, false, false], "{says:?}");
    for (live, label) in [(&mut second, "second"), (&mut third, "third")] {
        live.ask(&format!("spans {label} 100"));
    }
    first.ask("spans later 100");
    for live in [first, second, third] {
        let _outcome = live.end().quiet();
    }
    Found::in_dir(dir.path()).assert_exactly(&[
        ("first", 100),
        ("later", 100),
        ("second", 100),
        ("third", 100),
    ]);
}
