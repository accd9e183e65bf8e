//! The destination of the trace: file, stdout, gzip, temporary file.

use crate::invocation::{Ended, RunDir, trace_merge};
use crate::trace::Trace;
use crate::usage::merges;
use format_oracle::writer::line::On;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

/// Returns a run with `spans` spans.
pub(crate) fn run(spans: u64) -> RunDir {
    let on = On { pid: 90, tid: 90 };
    let lines: Vec<String> = (0..spans)
        .map(|nth| {
            on.span(
                1_000_000 + nth * 1000,
                500,
                "a",
                &format!(r#""number":{nth}"#),
            )
        })
        .collect();
    RunDir::with_lines("90", &lines)
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_packed_trace_is_one_member_whatever_the_threads_and_its_name() {
    let dir = run(60_000);
    let merge = |options: &[&str], name: &str| {
        let path = dir.path().join(name);
        let mut command = trace_merge();
        command.arg("-q").args(options).arg(dir.path());
        if name != "trace.json.gz" {
            command.arg("-o").arg(&path);
        }
        merges(&mut command);
        fs::read(&path).unwrap()
    };
    let plain = merge(&[], "plain.json");
    let packed = merge(&["--threads", "1"], "a.json.gz");
    assert!(merge(&["--threads", "8"], "b.json.gz") == packed);
    assert!(merge(&["-z"], "named") == packed);
    assert!(merge(&["--gzip"], "trace.json.gz") == packed);
    let stdout = merges(trace_merge().args(["-qz", "-o", "-"]).arg(dir.path())).stdout;
    assert!(stdout == packed);
    let mut unpacked = Vec::new();
    let mut member = flate2::bufread::GzDecoder::new(&packed[..]);
    member.read_to_end(&mut unpacked).unwrap();
    assert!(member.into_inner().is_empty(), "more than one member");
    assert!(unpacked == plain);
    assert!(packed.len() * 4 < plain.len());
}

#[test]
fn a_full_disk_is_an_error() {
    let Ok(full) = File::options().write(true).open("/dev/full") else {
        eprintln!("SKIPPED a_full_disk_is_an_error: no /dev/full");
        return;
    };
    let dir = run(20_000);
    for options in [&["-o", "-"][..], &["--report", "json"]] {
        let mut command = trace_merge();
        command.arg(dir.path()).args(options);
        command.stdout(full.try_clone().unwrap());
        let ended = Ended::run_with_streams(command.stderr(Stdio::piped()));
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        assert!(ended.stderr.contains("No space left"), "{}", ended.stderr);
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let dir = run(200_000);
    for (options, read) in [
        (&["-o", "-"][..], 10),
        (&["-z", "-o", "-"], 10),
        (&["--report", "json"], 0),
    ] {
        let mut command = trace_merge();
        command.arg(dir.path()).args(options);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut [0; 10][..read]).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{options:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
        assert!(read == 0 || stderr.is_empty(), "{stderr}");
    }
}

#[test]
fn a_link_to_a_descriptor_is_written_directly() {
    let dir = run(10);
    let link = dir.path().join("stdout");
    symlink("/proc/self/fd/1", &link).unwrap();
    let file = dir.path().join("taken");
    fs::write(&file, "before\n").unwrap();
    let mut command = trace_merge();
    command.args(["-q", "-o"]).args([&link, dir.path()]);
    command.stdout(File::options().append(true).open(&file).unwrap());
    let ended = Ended::run_with_streams(command.stderr(Stdio::piped()));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(link.is_symlink());
    let bytes = fs::read(&file).unwrap();
    let trace = bytes.strip_prefix(b"before\n").unwrap();
    assert_eq!(Trace::parse(trace).shown().count(), 10);
}

#[test]
fn a_path_that_is_not_utf8_is_reported() {
    let dir = run(1);
    let odd = dir.path().join(OsStr::from_bytes(b"odd\xff"));
    fs::rename(dir.fragments(), &odd).unwrap();
    let ended = merges(trace_merge().args(["--report", "json"]).arg(&odd));
    let path = ended.report().0["inputs"][0]["path"].to_string();
    assert!(path.contains("odd\u{fffd}"), "{path}");
}
