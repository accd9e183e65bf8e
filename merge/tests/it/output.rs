//! Where the trace goes: file, stdout, gzip, through a temporary file.

use crate::invocation::{Ended, RunDir, trace_merge};
use crate::trace::Trace;
use format_oracle::writer::{Fragment, Process};
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

/// A run with `spans` spans.
pub(crate) fn run(spans: u64) -> RunDir {
    let dir = RunDir::new();
    let mut fragment = Fragment::foreign(90);
    for number in 0..spans {
        fragment.line(&Process::new(90).main_thread().span(
            1_000_000 + number * 1000,
            500,
            "a",
            &format!(r#""number":{number}"#),
        ));
    }
    fragment.write_here(&dir.fragments());
    dir
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn merge(dir: &RunDir, output: &Path) -> Ended {
    let ended = Ended::of(
        trace_merge()
            .arg("-q")
            .arg(dir.path())
            .arg("-o")
            .arg(output),
    );
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    ended
}

#[test]
fn the_default_is_trace_json_in_the_run_directory() {
    let dir = run(10);
    assert_eq!(Ended::of(trace_merge().arg(dir.path())).code, 0);
    assert_eq!(
        names(dir.path()),
        ["fragments", "trace.json"],
        "no temporary file is left"
    );
    assert_eq!(
        Trace::parse(&std::fs::read(dir.path().join("trace.json")).unwrap())
            .shown()
            .count(),
        10
    );
}

#[test]
fn a_fragments_directory_means_the_run_directory_around_it() {
    let dir = run(10);
    assert_eq!(Ended::of(trace_merge().arg(dir.fragments())).code, 0);
    assert!(
        dir.path().join("trace.json").exists(),
        "{:?} {:?}",
        names(dir.path()),
        names(&dir.fragments())
    );
}

#[test]
fn a_dash_is_stdout() {
    let dir = run(10);
    let ended = Ended::of(trace_merge().arg(dir.path()).args(["-o", "-"]));
    assert_eq!(ended.code, 0);
    assert_eq!(Trace::parse(&ended.stdout).shown().count(), 10);
    assert_eq!(names(dir.path()), ["fragments"]);
}

#[test]
fn trace_and_report_cannot_both_have_stdout() {
    let dir = run(1);
    let ended = Ended::of(
        trace_merge()
            .arg(dir.path())
            .args(["-o", "-", "--report", "json"]),
    );
    assert!(ended.code == 2 && !ended.stderr.is_empty(), "{ended:?}");
}

#[test]
fn gz_is_one_member_and_the_same_trace() {
    let dir = run(60_000);
    let folder = tempfile::tempdir().unwrap();
    let (plain, packed) = (
        folder.path().join("a.json"),
        folder.path().join("a.json.gz"),
    );
    merge(&dir, &plain);
    merge(&dir, &packed);
    let bytes = std::fs::read(&packed).unwrap();
    let mut unpacked = Vec::new();
    let mut member = flate2::bufread::GzDecoder::new(&bytes[..]);
    member.read_to_end(&mut unpacked).unwrap();
    assert!(
        member.into_inner().is_empty(),
        "bytes after the first member"
    );
    assert_eq!(unpacked, std::fs::read(&plain).unwrap());
    assert!(bytes.len() * 4 < unpacked.len());
}

#[test]
fn gz_does_not_depend_on_threads() {
    let dir = run(60_000);
    let packed = ["1", "2", "3", "8"].map(|threads| {
        let path = dir.path().join(format!("{threads}.json.gz"));
        assert_eq!(
            Ended::of(
                trace_merge()
                    .args(["-q", "--threads", threads, "-o"])
                    .args([&path, dir.path()])
            )
            .code,
            0
        );
        std::fs::read(&path).unwrap()
    });
    assert!(packed.iter().all(|bytes| *bytes == packed[0]));
}

#[test]
fn an_existing_trace_is_replaced_and_is_no_input() {
    let dir = run(10);
    for _ in 0..3 {
        assert_eq!(Ended::of(trace_merge().arg(dir.path())).code, 0);
    }
    assert_eq!(
        Trace::parse(&std::fs::read(dir.path().join("trace.json")).unwrap())
            .shown()
            .count(),
        10
    );
}

#[test]
fn an_output_that_cannot_be_written_leaves_nothing() {
    let dir = run(10);
    let ended = Ended::of(
        trace_merge()
            .arg(dir.path())
            .args(["-o", "/nonexistent-folder/out.json"]),
    );
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("/nonexistent-folder/out.json"),
        "{}",
        ended.stderr
    );
    let taken = dir.path().join("taken.json");
    std::fs::create_dir(&taken).unwrap();
    let ended = Ended::of(trace_merge().arg(dir.path()).arg("-o").arg(&taken));
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert_eq!(names(dir.path()), ["fragments", "taken.json"]);
}

#[test]
fn a_full_disk_is_an_error_and_keeps_the_old_trace() {
    if !Path::new("/dev/full").exists() {
        eprintln!("SKIPPED a_full_disk_is_an_error_and_keeps_the_old_trace: no /dev/full");
        return;
    }
    let dir = run(20_000);
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let ended = Ended::of_streams(
        trace_merge()
            .arg(dir.path())
            .args(["-o", "-"])
            .stdout(full)
            .stderr(Stdio::piped()),
    );
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(!ended.stderr.is_empty());
}

#[test]
fn a_closed_pipe_is_no_error() {
    let dir = run(60_000);
    let mut command = trace_merge();
    command
        .arg(dir.path())
        .args(["-o", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut start = [0; 10];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut start)
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
}

#[test]
fn the_report_into_a_closed_pipe_is_no_error() {
    let dir = run(10);
    let mut child = trace_merge()
        .arg(dir.path())
        .args(["--report", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_named_link_stays_and_its_file_is_replaced() {
    let dir = run(10);
    let folder = tempfile::tempdir().unwrap();
    let (link, file) = (folder.path().join("link.json"), folder.path().join("sub"));
    std::fs::create_dir(&file).unwrap();
    let file = file.join("real.json");
    symlink("sub/real.json", &link).unwrap();
    for round in ["dangling", "there"] {
        merge(&dir, &link);
        assert!(link.is_symlink(), "{round}");
        assert!(!file.is_symlink() && file.exists(), "{round}");
        let trace = Trace::parse(&std::fs::read(&link).unwrap());
        assert_eq!(trace.shown().count(), 10, "{round}");
    }
    assert_eq!(names(folder.path()), ["link.json", "sub"]);
}

#[test]
fn the_default_output_follows_no_link() {
    let dir = run(10);
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other");
    std::fs::write(&other, "kept").unwrap();
    symlink(&other, dir.path().join("trace.json")).unwrap();
    assert_eq!(Ended::of(trace_merge().arg(dir.path())).code, 0);
    assert_eq!(std::fs::read(&other).unwrap(), b"kept");
    assert!(!dir.path().join("trace.json").is_symlink());
}

#[test]
fn a_link_to_a_descriptor_is_written_as_it_is() {
    let dir = run(10);
    let link = dir.path().join("stdout");
    symlink("/proc/self/fd/1", &link).unwrap();
    let file = dir.path().join("taken");
    std::fs::write(&file, "before\n").unwrap();
    let stdout = std::fs::File::options().append(true).open(&file).unwrap();
    let ended = Ended::of_streams(
        trace_merge()
            .args(["-q", "-o"])
            .args([&link, dir.path()])
            .stdout(stdout)
            .stderr(Stdio::piped()),
    );
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(link.is_symlink());
    let bytes = std::fs::read(&file).unwrap();
    let trace = bytes.strip_prefix(b"before\n").unwrap();
    assert_eq!(Trace::parse(trace).shown().count(), 10);
}
