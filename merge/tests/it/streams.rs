//! A trace that goes through a pipe while it is merged.

use crate::invocation::trace_merge;
use crate::memory::{anonymous_kib, assert_below};
use crate::output::run;
use crate::usage::merges;
use std::fs::{self, File};
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Most anonymous memory of a merge whose reader takes nothing, of 30 MB of text.
const MOST_ANONYMOUS_KIB: u64 = 20_000;

/// Other programs' readers of gzip: one that stops at the first member, and one that checks everything.
#[test]
fn other_readers_take_the_packed_trace() {
    let test = "other_readers_take_the_packed_trace";
    let dir = run(60_000);
    let [packed, plain] = ["-qz", "-q"]
        .map(|options| merges(trace_merge().args([options, "-o", "-"]).arg(dir.path())).stdout);
    let path = dir.path().join("packed");
    fs::write(&path, packed).unwrap();
    let python =
        "import gzip, sys; sys.stdout.buffer.write(gzip.decompress(sys.stdin.buffer.read()))";
    let first_member = "import sys, zlib; d = zlib.decompressobj(31); sys.stdout.buffer.write(d.decompress(sys.stdin.buffer.read())); assert d.eof and not d.unused_data";
    for arguments in [
        ["gzip", "-dc"].as_slice(),
        &["python3", "-c", python],
        &["python3", "-c", first_member],
    ] {
        let mut command = Command::new(arguments[0]);
        command.args(&arguments[1..]);
        let Ok(output) = command.stdin(File::open(&path).unwrap()).output() else {
            eprintln!("SKIPPED {test}: no {}", arguments[0]);
            continue;
        };
        assert!(output.status.success(), "{arguments:?}");
        assert!(output.stdout == plain, "{arguments:?}");
    }
}

#[test]
fn a_slow_reader_costs_no_memory() {
    let dir = run(300_000);
    for options in ["-q", "-qz"] {
        let mut command = trace_merge();
        command.args([options, "--threads", "2", "-o", "-"]);
        let command = command.arg(dir.path()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut [0; 10]).unwrap();
        sleep(Duration::from_millis(500));
        let kib = anonymous_kib(&child).unwrap();
        assert_below(MOST_ANONYMOUS_KIB, kib, "a_slow_reader_costs_no_memory");
        let mut rest = Vec::new();
        stdout.read_to_end(&mut rest).unwrap();
        assert!(child.wait().unwrap().success() && rest.len() > 1_000_000);
    }
}
