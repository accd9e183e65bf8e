//! A report with little memory is printed, or the command says that memory ran out.

use std::fmt::Write;
use std::process::{Command, Output};

/// Runs the report with `kb` kB of addresses.
fn limited(kb: u64, words: &[&str]) -> Output {
    let mut shell = Command::new("sh");
    let script = "ulimit -v \"$1\" && ulimit -c 0 && shift && exec \"$@\"";
    shell.args(["-c", script, "sh", &kb.to_string()]);
    shell.arg(env!("CARGO_BIN_EXE_trace-report")).args(words);
    shell.env("RUST_BACKTRACE", "0").output().unwrap()
}

/// A trace of requests, each with a name of its own.
fn trace() -> String {
    let mut text = String::from("[\n");
    for n in 0..10_000 {
        let at = n * 10;
        let _ = writeln!(
            text,
            r#"{{"ph":"X","pid":1,"tid":1,"ts":{at},"dur":5,"cat":"c","name":"span {n}","args":{{"request_id":"request-{n}"}}}},"#
        );
    }
    text.push_str(
        "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"a\"}}]\n",
    );
    text
}

#[test]
fn a_report_without_memory_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    std::fs::write(&path, trace()).unwrap();
    let words = [path.to_str().unwrap()];
    let (mut kb, mut was_told, mut was_enough) = (20_000, false, false);
    while !was_enough && kb < 16_000_000 {
        let output = limited(kb, &words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // With too little to begin, the loader or the runtime says so.
        let can_begin = limited(kb, &["--version"]).status.success();
        match output.status.code() {
            Some(0) => was_enough = true,
            Some(2) if said.contains("trace-report: out of memory") => was_told = true,
            Some(2) if said.contains("annot allocate memory") => {}
            Some(2) if said.contains("temporarily unavailable") => {} // no thread could be started
            code => assert!(!can_begin, "{kb} kB: {code:?}: {said}"),
        }
        kb += kb / 4;
    }
    assert!(was_told && was_enough, "{was_told} {was_enough}");
}
