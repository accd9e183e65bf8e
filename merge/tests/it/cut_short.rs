//! Inputs that are cut short, written anew or replaced while they are merged.

use crate::full::is_full;
use crate::invocation::trace_merge;
use crate::trace::Trace;
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Merges of each kind of input; all of them with `SA_PROFILE_FULL`.
fn rounds() -> usize {
    if is_full() { 60 } else { 6 }
}

const SPANS: u64 = 20_000;

/// Merges until one must have been met by a change.
const PATIENCE: usize = 600;

/// What somebody does to an input.
#[derive(Clone, Copy, Debug)]
enum Attack {
    /// What `copytruncate` does, before the program writes on.
    Cut,
    /// A program that opens its file anew.
    Anew,
    /// Another file takes the name.
    Replace,
    /// The whole file is overwritten.
    Fill,
}

fn attack(path: &Path, whole: &[u8], attack: Attack) {
    match attack {
        Attack::Cut => {
            let file = fs::File::options().write(true).open(path).unwrap();
            file.set_len(0).unwrap();
        }
        Attack::Anew => fs::write(path, &whole[..whole.len() / 2]).unwrap(),
        Attack::Replace => {
            let other = path.with_extension("other");
            fs::write(&other, &whole[whole.len() / 2..]).unwrap();
            fs::rename(&other, path).unwrap();
        }
        Attack::Fill => {
            let file = fs::File::options().write(true).open(path).unwrap();
            file.write_all_at(&vec![b'x'; whole.len()], 0).unwrap();
        }
    }
}

fn args(n: u64) -> String {
    format!(r#""n":{n},"text":"0123456789 0123456789 0123456789 0123456789""#)
}

/// Returns lines of another recorder.
pub(crate) fn plain(spans: u64) -> Vec<u8> {
    let on = Process::new(90).main_thread();
    let span = |n: u64| on.span(1_000_000 + n * 1000, 500, "plain", &args(n)) + "\n";
    (0..spans).map(span).collect::<String>().into_bytes()
}

/// Returns a fragment of ours with blocks of 100 spans.
pub(crate) fn own(spans: u64) -> Vec<u8> {
    let process = Process::new(91);
    let mut fragment = process.fragment();
    fragment.block(0, 0, &stream(&[process.anchor(1_000_000)]));
    let mut from = 0;
    for block in 0..spans / 100 {
        let spans = (100 * block..100 * (block + 1)).map(|n| {
            let thread = process.main_thread();
            thread.span(1_000_000 + n * 1000, 500, "own", &args(n))
        });
        from = fragment.block(1, from, &stream(&spans.collect::<Vec<_>>()));
    }
    fragment.bytes
}

/// Returns a document of another profiler.
pub(crate) fn document(spans: u64) -> Vec<u8> {
    let lines = String::from_utf8(plain(spans)).unwrap();
    let events = lines.trim_end().replace('\n', ",\n");
    format!("{{\"traceEvents\":[\n{events}\n]}}").into_bytes()
}

/// Merges while the input is attacked all the time; its code, what it prints, with a report in this form, and what it says.
fn merged_beside(
    path: &Path,
    whole: &[u8],
    kind: Attack,
    output: &Path,
    form: &str,
) -> (i32, Vec<u8>, String) {
    let _ = fs::remove_file(output);
    fs::write(path, whole).unwrap();
    let is_done = AtomicBool::new(false);
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(3));
                attack(path, whole, kind);
                std::thread::sleep(Duration::from_millis(3));
                fs::write(path, whole).unwrap();
            }
        });
        let mut merge = trace_merge();
        merge.args(["--report", form, "-o"]).arg(output).arg(path);
        let merge = merge.stdout(Stdio::piped()).stderr(Stdio::piped());
        let ended = merge.output().unwrap();
        is_done.store(true, Ordering::Relaxed);
        ended
    });
    let words = String::from_utf8_lossy(&ended.stderr).into_owned();
    let signal = ended.status.signal();
    assert_eq!(signal, None, "{kind:?}: {words}");
    assert!(!words.contains("panicked"), "{kind:?}: {words}");
    (ended.status.code().unwrap(), ended.stdout, words)
}

/// Returns true if the report says that the file changed. This counts as damage of that file.
fn is_told(report: &Value, path: &Path) -> bool {
    let count = report["damage_by_kind"]["changed"].as_u64().unwrap_or(0);
    let damage = report["damage"].as_array().unwrap().iter();
    let changed = damage.filter(|damage| damage["kind"] == "changed");
    let files: Vec<_> = changed.map(|damage| damage["file"].as_str()).collect();
    assert!(count <= 1, "one file changed: {report}");
    assert_eq!(files, vec![path.to_str(); usize::from(count == 1)]);
    assert!(report["damage_total"].as_u64() >= Some(count));
    count == 1
}

fn survives(name: &str, whole: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let (path, output): (PathBuf, _) = (dir.path().join(name), dir.path().join("out.json"));
    let is_told = |kind: Attack| {
        let (code, report, _) = merged_beside(&path, whole, kind, &output, "json");
        // An input in which nothing is any more is nothing usable.
        assert!(code == 0 || code == 2, "{kind:?}: {code}");
        assert_eq!(code == 0, output.exists(), "{kind:?}");
        if code == 0 {
            Trace::parse(&fs::read(&output).unwrap());
        }
        code == 0 && is_told(&serde_json::from_slice(&report).unwrap(), &path)
    };
    let kinds = [Attack::Cut, Attack::Anew, Attack::Replace, Attack::Fill];
    let merges = kinds.iter().cycle();
    let count = kinds.len() * rounds();
    let changes = merges.clone().take(count).map(|&kind| is_told(kind));
    let changes = changes.filter(|&is_told| is_told).count();
    eprintln!("{name}: {changes} changes in {count} merges");
    // Where the machine is busy, all changes may come before or after the merges: then some more.
    let mut more = merges.take(PATIENCE);
    let is_met = changes > 0 || more.any(|&kind| is_told(kind));
    assert!(is_met, "{name}: no merge was met by a change");
}

/// What people read names the file that changed.
#[test]
fn issue_19_the_summary_names_a_file_that_was_cut_short() {
    let dir = tempfile::tempdir().unwrap();
    let [path, output] = ["trace.90.jsonl", "out.json"].map(|name| dir.path().join(name));
    let whole = plain(SPANS);
    for round in 0..PATIENCE {
        let (code, _, words) = merged_beside(&path, &whole, Attack::Cut, &output, "text");
        if code == 0 && words.contains("changed") {
            let says = |line: &str| line.contains("changed") && line.contains("trace.90.jsonl");
            let says_why = words.contains("truncated or rewritten");
            assert!(words.lines().any(says) && says_why, "{words}");
            eprintln!("told in round {round}");
            return;
        }
    }
    panic!("no merge was met by a change");
}

#[test]
fn issue_19_inputs_that_are_cut_short_while_they_are_merged_end_nothing() {
    for (name, whole) in [
        ("trace.90.jsonl", plain(SPANS)),
        ("trace.91.jsonl", own(SPANS)),
        ("kineto.json", document(SPANS)),
    ] {
        survives(name, &whole);
    }
}
