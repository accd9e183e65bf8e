//! Fragments are assigned to the right process despite pid and time namespaces, reused pids, and two recorders in one process.

use crate::{HOST, script};
use e2e::host_support::{Host, HostRecording, Live, Merged, is_root, scratch, works};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

const OTHER_PIDS: &[&str] = &["unshare", "--pid", "--fork", "--mount-proc"];
const OTHER_TIME: &[&str] = &[
    "unshare",
    "--time",
    "--monotonic=100000",
    "--boottime=200000",
    "--fork",
];

fn script_below(wrapper: &[&str], dir: &Path) -> Live {
    let host = Host::below(wrapper, HOST).arguments(&["script"]);
    host.recorded_in(dir).start()
}

#[test]
fn processes_of_several_pid_namespaces_share_a_directory() {
    if !works(&[OTHER_PIDS, &["true"]].concat()) {
        return;
    }
    let dir = scratch();
    let mut first = script_below(OTHER_PIDS, dir.path());
    first.ask("spans first 200");
    let mut second = script_below(OTHER_PIDS, dir.path());
    let mut outside = script(dir.path());
    for round in 0..10 {
        second.ask(&format!("spans second-{round} 200"));
        outside.ask(&format!("spans outside-{round} 200"));
    }
    assert_eq!(first.who()["main"], true);
    for other in [&mut second, &mut outside] {
        assert_eq!(other.who()["run"], first.who()["run"], "one run");
        assert_eq!(other.who()["main"], false);
    }
    first.ask("spans first-later 200");
    for live in [first, second, outside] {
        let _outcome = live.end().quiet();
    }
    let found = HostRecording::in_dir(dir.path());
    assert_eq!((found.recorded(), found.lost), (4400, 0));
    let inner = found.headers.iter().filter(|header| header["pid"] == 1);
    let inner: BTreeSet<_> = inner.map(|header| header["pid_ns"].to_string()).collect();
    assert_eq!(inner.len(), 2);
    let merged = Merged::newest(dir.path());
    assert_eq!((merged.spans(), merged.processes()), (4400, 3));
}

#[test]
fn two_time_namespaces_share_one_time_axis_and_their_processes_count_as_alive() {
    if !works(&[OTHER_TIME, &["true"]].concat()) {
        return;
    }
    let dir = scratch();
    let mut outer = script(dir.path());
    assert_eq!(outer.who()["main"], true); // before the other host can become main
    let mut shifted = script_below(OTHER_TIME, dir.path());
    let start = Instant::now();
    for turn in (0..40).step_by(2) {
        outer.ask(&format!("spans turn-{turn:02} 1"));
        shifted.ask(&format!("spans turn-{:02} 1", turn + 1));
    }
    let took = start.elapsed();
    assert_eq!(outer.who()["run"], shifted.who()["run"]);
    outer.ask("flush");
    shifted.ask("flush");
    let merged = Merged::newest(dir.path());
    assert_eq!((merged.spans(), merged.processes()), (40, 2));
    let mut work: Vec<_> = merged.events_named("work").collect();
    work.sort_by_key(|span| span["args"]["label"].to_string());
    let times: Vec<f64> = work.iter().filter_map(|span| span["ts"].as_f64()).collect();
    assert!(times.is_sorted(), "the spans alternate: {times:?}");
    let axis_us = times[39] - times[0];
    assert!(axis_us <= took.as_secs_f64() * 1e6, "longer than the test");
    outer.kill();
    let mut next = script(dir.path());
    assert_eq!(next.who()["main"], true);
    let fragment = PathBuf::from(shifted.who()["fragment"].as_str().unwrap());
    assert!(fragment.exists(), "a live process's fragment is gone");
}

#[test]
fn without_proc_a_live_main_is_joined_and_its_files_are_not_moved() {
    if !is_root() || !works(&["unshare", "--mount", "true"]) {
        return;
    }
    let hide = r#"mount -t tmpfs none /proc && exec "$0" "$@""#;
    let wrapper = ["unshare", "--mount", "sh", "-c", hide];
    let dir = scratch();
    let start = || script_below(&wrapper, dir.path());
    let mut first = start();
    first.ask("spans first 100");
    let (mut second, mut third) = (start(), start());
    let states = [first.who(), second.who(), third.who()];
    let mains = states.each_ref().map(|states| states["main"] == true);
    assert_eq!(mains, [true, false, false], "{states:?}");
    for (live, label) in [(&mut second, "second"), (&mut third, "third")] {
        live.ask(&format!("spans {label} 100"));
    }
    first.ask("spans later 100");
    for live in [first, second, third] {
        let _outcome = live.end().quiet();
    }
    let labels = ["first", "later", "second", "third"];
    HostRecording::in_dir(dir.path()).assert_exactly(&labels.map(|label| (label, 100)));
}
