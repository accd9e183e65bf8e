//! Fragments in several segments, some of which were removed (FORMAT.md §2.5).

use crate::fuzzed;
use crate::invocation::RunDir;
use format_oracle::writer::line::stream;
use format_oracle::writer::{Fragment, Process, Ring, Slot};
use trace_merge::survey::{self, SegmentCache};

pub(crate) const PID: u32 = 90;

fn span(number: u64) -> String {
    let on = Process::new(PID).main_thread();
    on.span(1_000_000 + number * 1_000, 500, &format!("s{number}"), "")
}

/// Returns the position at which span `number` begins.
fn position(number: u64) -> u64 {
    (0..number)
        .map(|number| span(number).len() as u64 + 1)
        .sum()
}

/// Returns the lines about removed segments: the segments below `first` contained the spans below
/// `lost`.
fn removal(first: u32, lost: u64) -> String {
    let on = Process::new(PID).main_thread();
    let streams = format!(
        r#""first":{first},"events":{lost},"streams":[[1,0,{}]]"#,
        position(lost)
    );
    let place = format!(r#","span_us":3,"first":{first}"#);
    let loss = on.loss(1_000_000, "disk_bound", lost, &place);
    format!("{}\n{loss}", on.metadata("sa_removed", &streams))
}

/// Returns segment `number`, which has the spans `10 * number` to `10 * number + 9` and records
/// about removed segments.
pub(crate) fn segment(number: u32, first: u32) -> Fragment {
    process_segment(&Process::new(PID), number, first)
}

fn process_segment(process: &Process, number: u32, first: u32) -> Fragment {
    let mut segment = Fragment::foreign(PID);
    segment.line(&process.header(number));
    segment.line(&process.anchor(1_000_000));
    let name = r#""name":"engine""#;
    segment.line(&process.main_thread().metadata("process_name", name));
    if first > 0 {
        segment.line(&removal(first, 10 * u64::from(first)));
    }
    let from = 10 * u64::from(number);
    let lines: Vec<String> = (from..from + 10).map(span).collect();
    segment.block(1, position(from), &stream(&lines));
    segment
}

/// Returns the name of a segment's file between `trace.` and `.jsonl`.
pub(crate) fn segment_name(pid: u32, segment: u32) -> String {
    match segment {
        0 => pid.to_string(),
        _ => format!("{pid}.s{segment}"),
    }
}

pub(crate) fn write_segment(dir: &RunDir, number: u32, segment: &Fragment) {
    segment.write(&dir.fragments(), &segment_name(PID, number));
}

/// Returns a run with these segments. Each one has a record that the segments more than two before
/// it were removed.
pub(crate) fn run(numbers: impl IntoIterator<Item = u32>) -> RunDir {
    let dir = RunDir::new();
    for number in numbers {
        write_segment(&dir, number, &segment(number, number.saturating_sub(2)));
    }
    dir
}

#[test]
fn a_kill_within_the_first_lines_of_a_segment_removes_nothing() {
    let process = Process::with_ring(PID);
    let header = process.header(6);
    let whole = [&*header, &process.anchor(1_000_000), &removal(4, 40)].join("\n");
    let cuts = (header.len() + 1..=whole.len()).step_by(7);
    for end in cuts.chain([0, 50, whole.len()]) {
        let make = || {
            let dir = run([3, 4, 5]);
            dir.put(&format!("{PID}.s6"), &whole.as_bytes()[..end]);
            if end > header.len() {
                let ring = Ring::with_thread(&Process::new(PID), Slot::flushed(0, position(60)));
                ring.write_here(&dir.fragments());
            }
            dir
        };
        fuzzed::check(&make, &format!("cut at {end}"));
    }
}

/// Returns a run whose newest segment has an inconsistent record of removed segments.
fn disagreeing() -> RunDir {
    let dir = run([3, 4, 5]);
    let text = String::from_utf8(segment(5, 3).bytes).unwrap();
    let text = text.replacen(r#""first":3"#, r#""first":5"#, 1);
    dir.put(&segment_name(PID, 5), text.as_bytes());
    dir
}

/// Returns a run of a process that stopped recording, so that missing data after that is not
/// damage.
fn stopped() -> RunDir {
    let dir = RunDir::new();
    let mut last = segment(0, 0);
    let on = Process::new(PID).main_thread();
    last.line(&on.loss(1_020_000, "disk_bound", 0, r#","stopped":true"#));
    last.block(1, position(25), &stream(&[span(25)]));
    write_segment(&dir, 0, &last);
    dir
}

#[test]
fn odd_records_of_removed_segments_are_read_as_specified() {
    fuzzed::check(&disagreeing, "a record that does not agree with itself");
    fuzzed::check(&stopped, "a process that stopped recording");
}

#[test]
fn a_repeated_status_reads_full_segments_once() {
    let dir = run([0, 1, 2]);
    let processes = survey::processes(dir.path()).unwrap();
    let mut known = SegmentCache::default();
    let first = processes[0].contents(&mut known).unwrap();
    assert_eq!(first.events, dir.merge().report.number("events_total"));
    let path = dir.fragments().join(format!("trace.{PID}.s1.jsonl"));
    let mut bytes = std::fs::read(&path).unwrap();
    let header = memchr::memchr(b'\n', &bytes).unwrap();
    bytes[header..].fill(b'\n');
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(processes[0].contents(&mut known).unwrap(), first);
    let anew = processes[0].contents(&mut SegmentCache::default()).unwrap();
    // Ten spans and a name are gone, and a record reports it.
    assert_eq!(anew.events, first.events - 10);
    assert_eq!(anew.events, dir.merge().report.number("events_total"));
    assert_eq!(anew.lost["gap"], 1);
}

#[test]
fn a_file_of_another_recorder_removes_no_segment() {
    let dir = run([0, 1, 2]);
    let other = Process {
        nonce: 0xbad,
        ..Process::new(PID)
    };
    let number = 4_000;
    write_segment(&dir, number, &process_segment(&other, number, number));
    let merged = dir.merge();
    let names = merged.trace.names();
    for span in 0..30 {
        assert!(names.contains(&&*format!("s{span}")), "{span} of {names:?}");
    }
}
