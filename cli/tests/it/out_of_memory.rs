//! Runs commands with little memory: they must either succeed or report that memory ran out.

use crate::program::PROGRAM;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Runs a program with an address space of `kb` kB.
fn limited(kb: u64, words: &[&str]) -> Output {
    let mut shell = Command::new("sh");
    let script = "ulimit -v \"$1\" && ulimit -c 0 && shift && exec \"$@\"";
    shell.args(["-c", script, "sh", &kb.to_string()]);
    shell.arg(PROGRAM).args(words).env("RUST_BACKTRACE", "0");
    shell.output().unwrap()
}

/// Writes a trace of requests with different names.
fn trace(path: &Path) {
    let request = |n: u32| {
        let at = n * 10;
        format!(
            r#"{{"ph":"X","pid":1,"tid":1,"ts":{at},"dur":5,"cat":"c","name":"span {n}","args":{{"request_id":"request-{n}"}}}},
            {{"ph":"i","s":"t","pid":1,"tid":1,"ts":{at},"cat":"request","name":"request.arrived","args":{{"request_id":"request-{n}"}}}}"#
        )
    };
    let requests: Vec<String> = (0..10_000).map(request).collect();
    fs::write(path, format!("[{}]", requests.join(",\n"))).unwrap();
}

#[test]
fn a_command_without_memory_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    trace(&path);
    let path = path.to_str().unwrap();
    let to = folder.path().join("tables");
    let commands: [&[&str]; 2] = [
        &["report", path],
        &["tables", "--to", to.to_str().unwrap(), path],
    ];
    for words in commands {
        let (mut kb, mut was_reported, mut was_enough) = (40_000, false, false);
        while !was_enough && kb < 16_000_000 {
            let _ = fs::remove_dir_all(&to);
            let output = limited(kb, words);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            // With too little memory to start, the error comes from the loader or the runtime.
            let can_begin = limited(kb, &["--version"]).status.success();
            match output.status.code() {
                Some(0) => was_enough = true,
                Some(2) if said.contains("out of memory") => was_reported = true,
                Some(2) if said.contains("annot allocate memory") => {}
                Some(2) if said.contains("temporarily unavailable") => {} // no thread could be created
                code => assert!(!can_begin, "{words:?} with {kb} kB: {code:?}: {said}"),
            }
            kb *= 2;
        }
        assert!(
            was_reported && was_enough,
            "{words:?}: {was_reported} {was_enough}"
        );
    }
}
