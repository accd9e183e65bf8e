//! A trace that goes through a pipe while it is merged.

use crate::invocation::{Ended, trace_merge};
use crate::memory::{anonymous_kib, assert_below};
use crate::output::run;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Most anonymous memory of a merge whose reader takes nothing, of 30 MB of text.
const MOST_ANONYMOUS_KIB: u64 = 20_000;

#[test]
fn a_packed_stream_is_what_the_file_is() {
    let dir = run(60_000);
    let file = dir.path().join("out.json.gz");
    let to_file = Ended::of(trace_merge().arg("-q").arg(dir.path()).arg("-o").arg(&file));
    assert_eq!(to_file.code, 0, "{}", to_file.stderr);
    let to_pipe = Ended::of(trace_merge().args(["-qz", "-o", "-"]).arg(dir.path()));
    assert_eq!(to_pipe.code, 0, "{}", to_pipe.stderr);
    assert!(to_pipe.stdout == std::fs::read(&file).unwrap());
}

#[test]
fn a_name_need_not_say_that_the_trace_is_packed() {
    let dir = run(10);
    let ended = Ended::of(trace_merge().arg("--gzip").arg(dir.path()));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let default = std::fs::read(dir.path().join("trace.json.gz")).unwrap();
    let named = dir.path().join("named");
    let ended = Ended::of(
        trace_merge()
            .arg("-zq")
            .arg(dir.path())
            .arg("-o")
            .arg(&named),
    );
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(std::fs::read(named).unwrap(), default);
    assert_eq!(default[..2], [0x1f, 0x8b]);
}

/// Other programs' readers of gzip: one that stops at the first member, and one that checks everything.
#[test]
fn other_readers_take_the_packed_trace() {
    let test = "other_readers_take_the_packed_trace";
    let dir = run(60_000);
    let packed = Ended::of(trace_merge().args(["-qz", "-o", "-"]).arg(dir.path())).stdout;
    let plain = Ended::of(trace_merge().args(["-q", "-o", "-"]).arg(dir.path())).stdout;
    let python =
        "import gzip, sys; sys.stdout.buffer.write(gzip.decompress(sys.stdin.buffer.read()))";
    let first_member = "import sys, zlib; d = zlib.decompressobj(31); sys.stdout.buffer.write(d.decompress(sys.stdin.buffer.read())); assert d.eof and not d.unused_data";
    for arguments in [
        ["gzip", "-dc"].as_slice(),
        &["python3", "-c", python],
        &["python3", "-c", first_member],
    ] {
        match piped(arguments, &packed) {
            Some(text) => assert!(text == plain, "{arguments:?}"),
            None => eprintln!("SKIPPED {test}: no {}", arguments[0]),
        }
    }
}

/// What a program makes of its input; nothing if it is not there.
fn piped(arguments: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let mut command = Command::new(arguments[0]);
    command.args(&arguments[1..]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input).unwrap());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        Some(output.stdout)
    })
}

fn start(dir: &Path, options: &[&str]) -> Child {
    let mut command = trace_merge();
    command
        .args(options)
        .args(["--threads", "2", "-o", "-"])
        .arg(dir);
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_closed_pipe_is_no_error_when_packed_either() {
    let dir = run(200_000);
    let mut child = start(dir.path(), &["-z"]);
    let mut start = [0; 10];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut start)
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.is_empty(), "{stderr}");
}

#[test]
fn a_slow_reader_costs_no_memory() {
    let dir = run(300_000);
    for options in [&["-q"][..], &["-q", "-z"]] {
        let mut child = start(dir.path(), options);
        let mut begin = [0; 10];
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut begin)
            .unwrap();
        sleep(Duration::from_millis(500));
        let kib = anonymous_kib(&child).unwrap();
        assert_below(MOST_ANONYMOUS_KIB, kib, "a_slow_reader_costs_no_memory");
        let mut rest = Vec::new();
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_to_end(&mut rest)
            .unwrap();
        assert!(child.wait().unwrap().success() && rest.len() > 1_000_000);
    }
}
