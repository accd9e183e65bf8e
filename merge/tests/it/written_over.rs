//! Inputs that others change during the merge: in any case the trace is valid JSON, and the report
//! shows the change.

use crate::invocation::trace_merge;
use crate::usage::mkfifo;
use format_oracle::writer::Process;
use format_oracle::writer::line::stream;
use serde_json::Value;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

const SPANS: u64 = 60_000;
/// Length of a page, and offset from which pages are overwritten: data before it may already be in
/// the trace.
const PAGE: usize = 4096;
const BEGUN: usize = 3 << 20;
/// Longer than the period in which two changes of a file may get the same timestamp.
const TICK: Duration = Duration::from_millis(60);

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
fn own(spans: u64) -> Vec<u8> {
    let process = Process::new(91);
    let on = process.main_thread();
    let mut fragment = process.fragment();
    fragment.block(0, 0, &stream(&[process.anchor(1_000_000)]));
    let mut from = 0;
    for block in 0..spans / 100 {
        let span = |n: u64| on.span(1_000_000 + n * 1000, 500, "own", &args(n));
        let spans: Vec<String> = (100 * block..100 * (block + 1)).map(span).collect();
        from = fragment.block(1, from, &stream(&spans));
    }
    fragment.bytes
}

/// Returns a document of another profiler.
pub(crate) fn document(spans: u64) -> Vec<u8> {
    let lines = String::from_utf8(plain(spans)).unwrap();
    let events = lines.trim_end().replace('\n', ",\n");
    format!("{{\"traceEvents\":[\n{events}\n]}}").into_bytes()
}

/// Exit code of a merge, its messages, and its trace.
struct Merged {
    code: Option<i32>,
    output: String,
    trace: Vec<u8>,
}

impl Merged {
    /// Returns the number of changed files in the report.
    fn changes(&self) -> u64 {
        let report: Value = serde_json::from_str(&self.output).unwrap();
        let changes = report["damage_by_kind"]["changed"].as_u64();
        changes.unwrap_or(0)
    }
}

const STRICT: [&str; 3] = ["--strict", "--report", "json"];

/// Merges a file that is changed after it was read once, and before most of it is read again. The
/// trace goes to a pipe that is not read before the change.
fn merge_in_two(path: &Path, whole: &[u8], options: &[&str], change: impl FnOnce(&Path)) -> Merged {
    let _ = fs::remove_file(path);
    fs::write(path, whole).unwrap();
    std::thread::sleep(TICK);
    let output = path.with_file_name("out.json");
    let _ = fs::remove_file(&output);
    mkfifo(&output);
    let mut merge = trace_merge();
    merge.args(["--threads", "1", "-o"]);
    merge.arg(&output).args(options).arg(path);
    let merge = merge.stdout(Stdio::piped()).stderr(Stdio::piped());
    let merge = merge.spawn().unwrap();
    let mut pipe = File::open(&output).unwrap();
    let mut trace = vec![0; 100];
    pipe.read_exact(&mut trace).unwrap();
    change(path);
    pipe.read_to_end(&mut trace).unwrap();
    let ended = merge.wait_with_output().unwrap();
    Merged {
        code: ended.status.code(),
        output: String::from_utf8([ended.stdout, ended.stderr].concat()).unwrap(),
        trace,
    }
}

/// Overwrites every eighth page.
fn write_over(path: &Path, page: impl Fn(usize) -> Vec<u8>) {
    let file = File::options().write(true).open(path).unwrap();
    let bytes = usize::try_from(file.metadata().unwrap().len()).unwrap();
    for at in (BEGUN..bytes - PAGE).step_by(8 * PAGE) {
        file.write_all_at(&page(at), at as u64).unwrap();
    }
}

/// A change to an input.
type Change<'a> = Box<dyn Fn(&Path) + 'a>;

/// Returns the changes to an input. It is truncated as `copytruncate` does, rewritten by its
/// program, or overwritten. Some of its pages become garbage, bytes from elsewhere in the file, or
/// quotes.
fn changes(whole: &[u8]) -> [(&str, Change<'_>); 6] {
    let pages = |page: fn(&[u8], usize) -> Vec<u8>| -> Change<'_> {
        Box::new(move |path| write_over(path, |at| page(whole, at)))
    };
    let cut = |path: &Path| {
        let file = File::options().write(true).open(path).unwrap();
        file.set_len(0).unwrap();
    };
    let fill = |path: &Path| {
        let file = File::options().write(true).open(path).unwrap();
        file.write_all_at(&vec![b'x'; whole.len()], 0).unwrap();
    };
    [
        ("cut", Box::new(cut)),
        (
            "anew",
            Box::new(|path| fs::write(path, &whole[..whole.len() / 2]).unwrap()),
        ),
        ("fill", Box::new(fill)),
        (
            "nonsense",
            pages(|_, at| vec![u8::try_from(at / PAGE % 256).unwrap(); PAGE]),
        ),
        (
            "elsewhere",
            pages(|whole, at| whole[at / 2 + 77..][..PAGE].to_vec()),
        ),
        (
            "quotes",
            pages(|_, _| b"\"}\n{\"ph\":\"X\",".repeat(PAGE / 13)),
        ),
    ]
}

/// A valid trace.
#[derive(serde::Deserialize)]
struct ValidTrace {
    #[serde(rename = "traceEvents")]
    events: Vec<serde::de::IgnoredAny>,
}

fn assert_valid(name: &str, whole: &[u8], options: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    for (what, change) in changes(whole) {
        let options = [&STRICT[..], options].concat();
        let merged = merge_in_two(&path, whole, &options, change);
        let found = (merged.code, merged.changes());
        assert_eq!(found, (Some(1), 1), "{name}: {what}");
        // A page may be one number of 4,096 digits, which JSON allows and a double cannot
        // represent.
        let trace: ValidTrace = serde_json::from_slice(&merged.trace).unwrap();
        let is_of_pages = !matches!(what, "cut" | "anew" | "fill");
        let events = trace.events.len();
        assert!(!is_of_pages || events > 1_000, "{what}: {events}");
    }
}

#[test]
fn issue_19_changes_during_the_merge_leave_the_trace_valid() {
    assert_valid("trace.90.jsonl", &plain(SPANS), &[]);
    assert_valid("trace.91.jsonl", &own(SPANS), &["--sort"]);
}

/// The summary names the file that changed.
#[test]
fn issue_19_the_summary_names_a_file_that_was_cut_short() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.90.jsonl");
    let cut = |path: &Path| fs::write(path, "").unwrap();
    let merged = merge_in_two(&path, &plain(SPANS), &[], cut);
    let path = path.display();
    let says = format!("  {path}:0: changed (truncated or rewritten during the merge");
    let mut lines = merged.output.lines();
    assert!(
        lines.any(|line| line.starts_with(&says)),
        "{}",
        merged.output
    );
    assert_eq!(merged.code, Some(0));
}

/// Recorders append to their files. Others may touch a file, write the same contents again, or give
/// its name to another file.
#[test]
fn growing_or_equal_files_are_not_changes() {
    let dir = tempfile::tempdir().unwrap();
    for (name, whole) in [
        ("trace.90.jsonl", plain(SPANS)),
        ("trace.91.jsonl", own(SPANS)),
    ] {
        let path = dir.path().join(name);
        let untouched = merge_in_two(&path, &whole, &STRICT, |_| {});
        let append = |path: &Path| {
            let mut file = File::options().append(true).open(path).unwrap();
            std::io::Write::write_all(&mut file, &plain(SPANS)).unwrap();
        };
        let rewrite = |path: &Path| write_over(path, |at| whole[at..][..PAGE].to_vec());
        let replace = |path: &Path| {
            let other = path.with_extension("other");
            fs::write(&other, "another file").unwrap();
            fs::rename(other, path).unwrap();
        };
        for change in [&append as &dyn Fn(&Path), &rewrite, &replace] {
            let merged = merge_in_two(&path, &whole, &STRICT, change);
            assert_eq!((merged.code, merged.changes()), (untouched.code, 0));
            assert!(merged.trace == untouched.trace);
        }
    }
}
