//! More fragments than a process may have mappings or open files.

use crate::invocation::{Ended, RunDir, trace_merge};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::fs;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A few lines of a process.
fn fill(dir: &RunDir, fragments: usize) {
    for pid in 1..=fragments {
        let line = format!(r#"{{"ph":"i","pid":{pid},"tid":{pid},"ts":{pid},"s":"t","name":"n"}}"#);
        dir.put(
            &pid.to_string(),
            (line.clone() + "\n" + &line + "\n").as_bytes(),
        );
    }
}

#[test]
fn issue_19_small_fragments_are_neither_mapped_nor_held_open() {
    const FRAGMENTS: usize = 1_500;
    let dir = RunDir::new();
    fill(&dir, FRAGMENTS);
    // What nobody reads makes the merge wait in the middle.
    let pipe = dir.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let flags = libc::O_NONBLOCK;
    let reader = fs::File::options()
        .read(true)
        .custom_flags(flags)
        .open(&pipe);
    let mut reader = reader.unwrap();
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
    let words = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{}: {words}", ended.status);
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(text.matches(r#""ph":"i""#).count(), 2 * FRAGMENTS);
    assert!(most < FRAGMENTS / 2, "{most} mappings");
}

#[test]
fn issue_19_two_hundred_thousand_fragments_merge() {
    if std::env::var_os("SA_PROFILE_FULL").is_none() {
        eprintln!(
            "SKIPPED issue_19_two_hundred_thousand_fragments_merge: only with SA_PROFILE_FULL"
        );
        return;
    }
    let dir = RunDir::new();
    fill(&dir, 200_000);
    let began = Instant::now();
    let mut merge = trace_merge();
    merge.args(["-q", "--report", "json"]).arg(dir.path());
    let ended = Ended::of(&mut merge);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(ended.report().number("events_total"), 400_000);
    eprintln!("200,000 fragments in {:?}", began.elapsed());
}
