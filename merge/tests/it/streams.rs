//! A trace that goes through a pipe while it is merged.

use crate::invocation::trace_merge;
use crate::memory::{anonymous_kib, assert_below};
use crate::output::run;
use std::io::Read;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

/// Maximum anonymous memory of a merge with 30 MB of text whose reader is blocked.
const MAX_ANONYMOUS_KIB: u64 = 20_000;

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
        assert_below(MAX_ANONYMOUS_KIB, kib, "a_slow_reader_costs_no_memory");
        let mut rest = Vec::new();
        stdout.read_to_end(&mut rest).unwrap();
        assert!(child.wait().unwrap().success() && rest.len() > 1_000_000);
    }
}
