//! A merge with little memory writes the trace, or reports that memory ran out.

use crate::full::is_full;
use crate::invocation::RunDir;
use format_oracle::writer::Process;
use std::process::{Command, Output};

/// Runs the merge with an address space of `kb` kB.
fn limited(kb: u64, arguments: &[&str]) -> Output {
    let mut shell = Command::new("sh");
    let script = "ulimit -v \"$1\" && ulimit -c 0 && shift && exec \"$@\"";
    shell.args(["-c", script, "sh", &kb.to_string()]);
    shell.arg(env!("CARGO_BIN_EXE_trace-merge")).args(arguments);
    shell.env("RUST_BACKTRACE", "0").output().unwrap()
}

/// Returns a run of one process with two spans for each request.
fn run_of_requests() -> RunDir {
    let process = Process::new(90);
    let on = process.main_thread();
    let mut fragment = process.fragment();
    for n in 0..20_000 {
        let args = format!(r#""request_id":"request-{}""#, n / 2);
        fragment.line(&on.span(1_000_000 + n * 1_000, 500, &format!("span {n}"), &args));
    }
    let dir = RunDir::new();
    dir.put("90", &fragment.bytes);
    dir
}

#[test]
fn a_merge_without_memory_says_so() {
    let dir = run_of_requests();
    let input = dir.path().to_str().unwrap().to_owned();
    for arguments in [&["-q", "-o", "-"][..], &["-q", "-o", "-", "--sort"]] {
        let arguments = [arguments, &[&input]].concat();
        let (mut kb, mut was_reported, mut was_enough) = (20_000, false, false);
        while !was_enough && kb < 16_000_000 {
            let output = limited(kb, &arguments);
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            // With too little memory to start, the loader or the runtime reports it.
            let can_begin = limited(kb, &["--version"]).status.success();
            match output.status.code() {
                Some(0) => was_enough = true,
                Some(2) if stderr.contains("trace-merge: out of memory") => was_reported = true,
                Some(2) if stderr.contains("annot allocate memory") => {}
                Some(2) if stderr.contains("temporarily unavailable") => {} // no thread could be started
                code => assert!(!can_begin, "{arguments:?} with {kb} kB: {code:?}: {stderr}"),
            }
            kb += if is_full() { kb / 16 } else { kb / 4 };
        }
        assert!(
            was_reported && was_enough,
            "{arguments:?}: {was_reported} {was_enough}"
        );
    }
}
