//! `--split`: names, files, and what cannot be.

use crate::invocation::{RunDir, trace_merge};
use crate::output::{names, run};
use crate::trace::Trace;
use crate::usage::{merges, refuses};
use std::io::Read;

#[test]
fn parts_that_cannot_be_are_refused() {
    let dir = run(2_000);
    for (arguments, says) in [
        ("--split=900", &["900MB", "\"900\""][..]),
        ("--split=900MB -o -", &["standard output"]),
        ("--split=900MB --verbatim", &["cannot be used with"]),
        ("--split=900MB -o /dev/null", &["a file", "/dev/null"]),
        (
            "--split=0.2kB",
            &["at most 500", "such as of 1 MB", "200 bytes"],
        ),
    ] {
        let mut merge = trace_merge();
        refuses(merge.args(arguments.split(' ')).arg(dir.path()), says);
        assert_eq!(names(dir.path()), ["fragments"], "{arguments}");
    }
    // An input is no part.
    let fragment = dir.put("1", b"");
    let output = dir.fragments().join("trace.jsonl");
    let mut merge = trace_merge();
    merge
        .args(["--split=900MB", "-o"])
        .args([&output, &fragment]);
    merge.arg(dir.fragments().join("trace.90.jsonl"));
    refuses(&mut merge, &["one of the inputs"]);
    let inputs = ["trace.1.jsonl", "trace.90.jsonl"];
    assert_eq!(names(&dir.fragments()), inputs);
}

#[test]
fn parts_are_numbered_beside_the_default_output() {
    let dir = run(2_000);
    let said = |size: &str| merges(trace_merge().args(["--split", size]).arg(dir.path())).stderr;
    let stderr = said("80kB");
    let parts = ["fragments", "trace.1.json", "trace.2.json", "trace.3.json"];
    assert_eq!(names(dir.path()), parts);
    for words in [
        "/trace.1.json to trace.3.json: 2000 events",
        "  trace.1.json: 0.000000s to 0.",
    ] {
        assert!(stderr.contains(words), "{stderr}");
    }
    assert!(!stderr.contains("not parts"), "{stderr}");
    let stderr = said("900MB");
    for words in [
        "/trace.1.json: 2000 events",
        "not parts of this trace: trace.2.json, trace.3.json",
    ] {
        assert!(stderr.contains(words), "{stderr}");
    }
    let first = std::fs::read(dir.path().join("trace.1.json")).unwrap();
    assert_eq!(Trace::parse(&first).shown().count(), 2_000);
    said("20kB");
    // More than nine sort.
    assert!(dir.path().join("trace.01.json").exists());
}

#[test]
fn packed_parts_hold_as_much_text_as_others() {
    let dir = run(20_000);
    let folder = tempfile::tempdir().unwrap();
    let merge = |name: &str| {
        let mut command = trace_merge();
        command.args(["-q", "--split=500kB", "-o"]);
        merges(command.arg(folder.path().join(name)).arg(dir.path()));
    };
    merge("a.json");
    merge("b.json.gz");
    let found = names(folder.path());
    let (plain, packed) = found.split_at(found.len() / 2);
    assert!(plain.len() > 3 && plain.len() == packed.len(), "{found:?}");
    for (plain, packed) in plain.iter().zip(packed) {
        let name = plain.replace('a', "b") + ".gz";
        assert_eq!(*packed, name);
        let packed = std::fs::read(folder.path().join(packed)).unwrap();
        let mut text = Vec::new();
        let mut member = flate2::bufread::GzDecoder::new(&packed[..]);
        member.read_to_end(&mut text).unwrap();
        assert_eq!(text, std::fs::read(folder.path().join(plain)).unwrap());
    }
}

#[test]
fn there_are_all_parts_or_none() {
    let dir = run(2_000);
    std::fs::create_dir(dir.path().join("trace.3.json")).unwrap();
    std::fs::write(dir.path().join("trace.1.json"), "old").unwrap();
    let mut merge = trace_merge();
    let merge = merge.args(["--split", "80kB"]).arg(dir.path());
    refuses(merge, &["trace.3.json"]);
    let there = ["fragments", "trace.1.json", "trace.3.json"];
    assert_eq!(names(dir.path()), there);
    let old = std::fs::read(dir.path().join("trace.1.json")).unwrap();
    assert_eq!(old, b"old");
}

#[test]
fn what_cannot_be_cut_is_a_part_and_told() {
    let text = "x".repeat(20_000);
    let lines = [0, 1, 2].map(|ts| {
        format!(r#"{{"ph":"i","pid":9,"tid":9,"ts":{ts},"s":"t","name":"a","args":{{"text":"{text}"}}}}"#)
    });
    let dir = RunDir::of_lines("9", &lines);
    let ended = merges(trace_merge().args(["--split=5kB"]).arg(dir.path()));
    let told = ended.stderr.matches("more than asked for").count();
    assert_eq!(told, 3, "{}", ended.stderr);
    assert_eq!(names(dir.path()).len(), 4);
}
