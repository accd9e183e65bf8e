//! More fragments than a process may have mappings or open files.

use crate::full::is_full;
use crate::invocation::{RunDir, trace_merge};
use crate::memory::{Cost, assert_below};
use crate::usage::mkfifo;
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::fs;
use std::io::{Read, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Writes fragments of processes: name, three spans, a clean end.
fn fill(dir: &RunDir, fragments: u32) {
    for pid in 1..=fragments {
        let (process, at) = (Process::new(pid), 5_000_000_000 + u64::from(pid) * 1_000);
        let thread = process.main_thread();
        let mut fragment = process.fragment();
        let name = thread.metadata("process_name", r#""name":"worker""#);
        fragment.block(0, 0, &stream(&[process.anchor(at), name]));
        let spans: Vec<String> = (0..3)
            .map(|nth| thread.span(at + 10_000 * nth, 2_000, "step", ""))
            .collect();
        fragment.block(1, 0, &stream(&spans));
        fragment.line(&process.end(at + 50_000));
        fragment.write_here(&dir.fragments());
    }
}

#[test]
fn issue_19_small_fragments_are_neither_mapped_nor_held_open() {
    const FRAGMENTS: u32 = 1_500;
    let dir = RunDir::new();
    fill(&dir, FRAGMENTS);
    // The merge waits in the middle until somebody reads from the pipe.
    let pipe = dir.path().join("pipe");
    mkfifo(&pipe);
    let mut reader = fs::File::options();
    let reader = reader.read(true).custom_flags(libc::O_NONBLOCK);
    let mut reader = reader.open(&pipe).unwrap();
    let mut merge = trace_merge();
    merge.arg("-q").arg(dir.path()).arg("-o").arg(&pipe);
    let mut child = merge.stderr(Stdio::piped()).spawn().unwrap();
    let files = Rlimit {
        current: Some(64),
        maximum: Some(64),
    };
    prlimit(Some(Pid::from_child(&child)), Resource::Nofile, files).unwrap();
    let (mut bytes, mut most, began) = (Vec::new(), 0, Instant::now());
    while child.try_wait().unwrap().is_none() {
        let maps = fs::read_to_string(format!("/proc/{}/maps", child.id()));
        most = most.max(maps.unwrap_or_default().lines().count());
        let _ = reader.read_to_end(&mut bytes); // as much as there is
        assert!(began.elapsed() < Duration::from_secs(300), "it goes on");
        std::thread::sleep(Duration::from_millis(1));
    }
    let _ = reader.read_to_end(&mut bytes);
    let ended = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{}: {stderr}", ended.status);
    let text = String::from_utf8(bytes).unwrap();
    let spans = text.matches(r#""ph":"X""#).count();
    assert_eq!(spans, 3 * FRAGMENTS as usize);
    assert!(most < FRAGMENTS as usize / 2, "{most} mappings");
}

/// Returns the cost of merging this number of fragments: ticks, and maximum anonymous memory in
/// KiB.
fn cost(fragments: u32) -> (u64, u64) {
    let dir = RunDir::new();
    fill(&dir, fragments);
    let (mut merge, began) = (trace_merge(), Instant::now());
    merge.args(["-q", "--report", "json"]).arg(dir.path());
    let report = tempfile::tempfile().unwrap();
    let merge = merge.stdout(report.try_clone().unwrap());
    let cost = Cost::measure(merge);
    assert_eq!(cost.code, Some(0));
    (&report).rewind().unwrap();
    let report: serde_json::Value = serde_json::from_reader(report).unwrap();
    let shown = ["events_total", "damage_total"].map(|key| report[key].as_u64().unwrap());
    assert_eq!(shown, [4 * u64::from(fragments), 0]);
    let took = began.elapsed();
    eprintln!(
        "{fragments} fragments: {took:?}, {} ticks, {} KiB",
        cost.ticks, cost.peak_kib
    );
    (cost.ticks, cost.peak_kib)
}

/// Time and memory are proportional to the number of fragments.
#[test]
fn issue_19_the_cost_of_small_fragments_is_linear() {
    // KiB of heap for each fragment: names, ids and times of a process and its thread, and the
    // positions of its lines.
    const KIB: u64 = 9;
    let test = "issue_19_the_cost_of_small_fragments_is_linear";
    let (few, many) = [(2_000, 8_000), (50_000, 100_000)][usize::from(is_full())];
    let (of_few, of_many) = (cost(few), cost(many));
    let more = of_many.1.saturating_sub(of_few.1);
    assert_below(KIB * u64::from(many - few), more, test);
    // Twice as many fragments take twice as long. Quadratic growth only shows with many fragments.
    if is_full() {
        assert!(of_many.0 < 3 * of_few.0, "{of_few:?}, {of_many:?}");
    }
}
