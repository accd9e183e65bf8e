//! Inputs whose pages others overwrite during the merge: whatever the input does, the trace is JSON, and the report says so.

use crate::cut_short::{own, plain};
use crate::invocation::trace_merge;
use crate::usage::mkfifo;
use serde_json::Value;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

const SPANS: u64 = 60_000;
/// The length of a page, and how far from the begin of a file pages are written over: what comes before may already be in the trace.
const PAGE: usize = 4096;
const BEGUN: usize = 3 << 20;
/// Longer than the time in which two changes may give a file the same times.
const TICK: Duration = Duration::from_millis(60);

/// How a merge ended, how many changed files its report has, and its trace.
struct Merged {
    code: Option<i32>,
    changes: u64,
    trace: Vec<u8>,
}

/// Merges a file that somebody changes after it was read once, and before most of it is read again: the trace goes to a pipe, which is
/// not read before.
fn merge_in_two(path: &Path, whole: &[u8], words: &[&str], change: impl FnOnce(&File)) -> Merged {
    fs::write(path, whole).unwrap();
    std::thread::sleep(TICK);
    let output = path.with_file_name("out.json");
    let _ = fs::remove_file(&output);
    mkfifo(&output);
    let mut merge = trace_merge();
    merge.args(["--threads", "1", "--report", "json", "-o"]);
    merge.arg(&output).args(words).arg(path);
    let merge = merge.stdout(Stdio::piped()).spawn().unwrap();
    let mut pipe = File::open(&output).unwrap();
    let mut trace = vec![0; 100];
    pipe.read_exact(&mut trace).unwrap();
    change(&File::options().read(true).write(true).open(path).unwrap());
    pipe.read_to_end(&mut trace).unwrap();
    let ended = merge.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&ended.stdout).unwrap_or_default();
    let changes = &report["damage_by_kind"]["changed"];
    Merged {
        code: ended.status.code(),
        changes: changes.as_u64().unwrap_or(0),
        trace,
    }
}

/// Writes over every eighth page with something.
fn write_over(file: &File, page: impl Fn(u64) -> Vec<u8>) {
    let bytes = file.metadata().unwrap().len();
    for at in (BEGUN as u64..bytes - PAGE as u64).step_by(8 * PAGE) {
        file.write_all_at(&page(at), at).unwrap();
    }
}

/// Texts that somebody may write: nonsense, bytes from elsewhere in the file, and quotes.
fn pages(whole: &[u8]) -> [Box<dyn Fn(u64) -> Vec<u8> + '_>; 3] {
    let elsewhere = |at: u64| {
        let from = usize::try_from(at).unwrap() / 2 + 77;
        whole[from..from + PAGE].to_vec()
    };
    [
        Box::new(|at: u64| vec![u8::try_from(at / 4096 % 256).unwrap(); PAGE]),
        Box::new(elsewhere),
        Box::new(|_| b"\"}\n{\"ph\":\"X\",".repeat(PAGE / 13)),
    ]
}

/// A valid trace.
#[derive(serde::Deserialize)]
struct ValidTrace {
    #[serde(rename = "traceEvents")]
    events: Vec<serde::de::IgnoredAny>,
}

fn is_valid(name: &str, whole: &[u8], words: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    for page in pages(whole) {
        let merged = merge_in_two(&path, whole, words, |file| write_over(file, &page));
        assert_eq!((merged.code, merged.changes), (Some(0), 1));
        // A page may be one number of 4,096 digits, which JSON allows and a double does not hold.
        let trace: ValidTrace = serde_json::from_slice(&merged.trace).unwrap();
        assert!(trace.events.len() > 1_000, "{}", trace.events.len());
        let strict = [words, &["--strict"]].concat();
        let merged = merge_in_two(&path, whole, &strict, |file| write_over(file, &page));
        assert_eq!(merged.code, Some(1));
    }
}

#[test]
fn what_is_written_over_while_it_is_merged_leaves_the_trace_valid() {
    is_valid("trace.90.jsonl", &plain(SPANS), &[]);
    is_valid("trace.91.jsonl", &own(SPANS), &["--sort"]);
}

/// Recorders append to their files, and somebody may touch one, or write what is there already.
#[test]
fn what_grows_or_stays_the_same_is_no_change() {
    let dir = tempfile::tempdir().unwrap();
    for (name, whole) in [
        ("trace.90.jsonl", plain(SPANS)),
        ("trace.91.jsonl", own(SPANS)),
    ] {
        let path = dir.path().join(name);
        let untouched = merge_in_two(&path, &whole, &[], |_| {});
        let more = plain(SPANS);
        let append = |file: &File| file.write_all_at(&more, whole.len() as u64).unwrap();
        let rewrite = |file: &File| {
            let same = |at: u64| whole[usize::try_from(at).unwrap()..][..PAGE].to_vec();
            write_over(file, same);
        };
        for change in [&append as &dyn Fn(&File), &rewrite] {
            let merged = merge_in_two(&path, &whole, &["--strict"], change);
            assert_eq!((merged.code, merged.changes), (untouched.code, 0));
            assert!(merged.trace == untouched.trace);
        }
    }
}
