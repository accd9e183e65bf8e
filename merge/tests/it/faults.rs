//! System calls of a merge that fail: full and broken disks, interrupted calls, and short ones.

use crate::invocation::{Ended, RunDir, trace_merge};
use crate::output::names;
use crate::settle::killed;
use crate::trace::Trace;
use crate::usage::merges;
use crate::written_over::{document, plain};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const CALLS: [&str; 7] = [
    "read", "write", "pread64", "pwrite64", "fsync", "fchmod", "mmap",
];
/// Numbers of the first call that fails.
const FIRST: [u32; 5] = [1, 2, 3, 5, 9];

/// Builds the library that makes calls fail. Returns `None`, with a loud message, if there is no C
/// compiler.
fn library(test: &str, folder: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/faults/fault.c");
    let library = folder.join("libfault.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]);
    let built = compiler.args([&library, &source]).status();
    let library = built
        .is_ok_and(|status| status.success())
        .then_some(library);
    if library.is_none() {
        eprintln!("SKIPPED {test}: no C compiler");
    }
    library
}

/// Returns a run with a killed process, whose ring must be settled, and a trace of another profiler
/// that is longer than a page.
fn inputs() -> RunDir {
    let dir = killed(true);
    fs::write(dir.path().join("kineto.json"), document(3_000)).unwrap();
    dir
}

fn merge(dir: &RunDir, output: &Path) -> Command {
    let mut merge = trace_merge();
    merge.args(["-q", "--threads", "2", "--offset", "kineto.json=0s", "-o"]);
    merge.args([output, dir.path(), Path::new("kineto.json")]);
    merge.current_dir(dir.path());
    merge
}

/// Merges with a fault, and then without it, which must return the expected events. Returns true if
/// the first trace is the expected one.
fn merges_with(fault: &str, library: &Path, expected: &[u8]) -> bool {
    let (dir, folder) = (inputs(), tempfile::tempdir().unwrap());
    let output = folder.path().join("out.json");
    let mut command = merge(&dir, &output);
    command.env("LD_PRELOAD", library).env("FAULT", fault);
    let ended = Ended::run(&mut command);
    let written = fs::read(&output).unwrap_or_default();
    match ended.code {
        0 => drop(Trace::parse(&written)),
        2 => assert!(names(folder.path()).is_empty(), "{fault}: {}", ended.stderr),
        code => panic!("{fault}: exit {code}: {}", ended.stderr),
    }
    let again = folder.path().join("again.json");
    merges(&mut merge(&dir, &again));
    let again = Trace::parse(&fs::read(&again).unwrap());
    assert_eq!(again.names(), Trace::parse(expected).names(), "{fault}");
    written == expected
}

#[test]
fn issue_19_calls_that_fail_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let test = "issue_19_calls_that_fail_lose_nothing";
    let Some(library) = library(test, folder.path()) else {
        return;
    };
    let output = folder.path().join("expected.json");
    merges(&mut merge(&inputs(), &output));
    let expected = fs::read(&output).unwrap();
    let is_same = |fault: &str| merges_with(fault, &library, &expected);
    let mut unlike = 0;
    for call in CALLS {
        for harmless in ["short", &libc::EINTR.to_string()] {
            if call != "mmap" && call != "fsync" {
                let fault = format!("{call} 1 {harmless}");
                assert!(is_same(&fault), "{fault}: another trace");
            }
        }
        for error in [libc::ENOSPC, libc::EIO] {
            let faults = FIRST.map(|first| format!("{call} {first} {error}"));
            unlike += faults.iter().filter(|fault| !is_same(fault)).count();
        }
    }
    assert!(unlike > 0, "no fault has hit anything");
}

/// An input that was truncated before it was read is reported as truncated, not as empty or invalid.
#[test]
fn issue_19_an_input_that_is_cut_at_once_is_reported_as_truncated() {
    let folder = tempfile::tempdir().unwrap();
    let test = "issue_19_an_input_that_is_cut_at_once_is_reported_as_truncated";
    let Some(library) = library(test, folder.path()) else {
        return;
    };
    for (name, whole) in [
        ("trace.90.jsonl", plain(3_000)),
        ("kineto.json", document(3_000)),
    ] {
        let input = folder.path().join(name);
        fs::write(&input, whole).unwrap();
        let mut merge = trace_merge();
        merge.env("LD_PRELOAD", &library).env("FAULT", "mmap 1 cut");
        let output = folder.path().join("out.json");
        let ended = Ended::run(merge.arg(&input).arg("-o").arg(&output));
        assert_eq!(fs::read(&input).unwrap(), b"", "nothing was cut");
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        let is_explained = ["truncated during the merge", "changed"]
            .iter()
            .any(|text| ended.stderr.contains(text));
        assert!(is_explained, "{}", ended.stderr);
    }
}
