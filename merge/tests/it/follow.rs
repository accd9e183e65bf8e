//! A run that is read while it is written ([`trace_merge::follow`]) against what is read of the whole ([`trace_merge::events`]).

use crate::full::cases;
use crate::invocation::{RunDir, one_block};
use crate::paced::{self, Course, End};
use crate::random::{self, Rng};
use crate::segments::{PID, put, segment, segment_name};
use format_oracle::writer::fragment::block_header;
use format_oracle::writer::line::stream;
use format_oracle::writer::{Fragment, Process};
use sa_format::Phase;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use trace_merge::follow::{FollowedEnd, Follower, Poll, Skipped};
use trace_merge::{Options, Progress, events};

/// Time and line of an event, and what its row is called.
type Told = (i64, String, String);

/// What a follower has told so far.
#[derive(Default)]
struct Heard(Vec<Told>);

impl Heard {
    fn poll(&mut self, follower: &mut Follower, most: u64) -> Poll {
        follower.poll(most, |run, event| {
            let thread = &run.threads()[event.thread];
            let process = &run.processes()[thread.process];
            let row = format!("{} {}", process.is_tracks, process.header.pid);
            let line = String::from_utf8(event.line().to_vec()).unwrap();
            self.0.push((event.ts_ns, line, row));
        })
    }

    /// Polls until nothing is left to read.
    fn rest(&mut self, follower: &mut Follower) -> Poll {
        loop {
            let found = self.poll(follower, 1 << 20);
            if found.bytes == 0 {
                return found;
            }
        }
    }
}

/// Sorted, with times from the first event on.
fn from_first(mut events: Vec<Told>) -> Vec<Told> {
    let first_ns = events.iter().map(|event| event.0).min().unwrap_or(0);
    events.iter_mut().for_each(|event| event.0 -= first_ns);
    events.sort();
    events
}

/// What the whole run has.
fn whole(directory: &Path) -> Vec<Told> {
    let options = Options {
        settle: false,
        ..Options::new([directory.to_owned()])
    };
    let read = events::read(&options, &Progress::default(), |events| {
        let mut all = Vec::new();
        events.fold(
            Vec::new,
            |some, event| {
                if event.phase != Phase::Metadata {
                    let process = &events.processes()[events.threads()[event.thread].process];
                    let row = format!("{} {}", process.report.tracks, process.report.pid);
                    let line = String::from_utf8(event.line().to_vec()).unwrap();
                    some.push((event.ts_ns, line, row));
                }
            },
            |some| {
                all.extend(some);
                Ok(())
            },
        )?;
        Ok(all)
    });
    from_first(read.unwrap().0)
}

/// Bytes that some writer still has to write, in order: which file gets them.
type Plan = Vec<(String, Vec<u8>)>;

/// Returns the segments of a process in a folder.
fn plan(written: &RunDir, pid: u32) -> Plan {
    let segment = |number| {
        let name = format!("trace.{}.jsonl", segment_name(pid, number));
        let bytes = std::fs::read(written.fragments().join(&name)).ok()?;
        Some((name, bytes))
    };
    (0..).map_while(segment).collect()
}

/// Returns what a recorder writes in two minutes: threads that come and go, and segments.
fn paced_plan(rng: &mut Rng, pid: u32) -> Plan {
    let written = RunDir::new();
    let course = Course {
        end: End::Clean,
        longest_ms: 5_000,
        pause_ms: None,
    };
    paced::write(rng, &written, pid, course);
    plan(&written, pid)
}

/// Returns a random fragment with padding, a track whose description follows its first event, and an end record. Some short writes in it were never
/// repeated. It is damaged unless `undamaged`.
fn random_plan(rng: &mut Rng, pid: u32, undamaged: bool) -> Plan {
    let written = RunDir::new();
    random::write_own(rng, &written.fragments(), pid, undamaged);
    let mut plan = plan(&written, pid);
    let process = Process::new(pid);
    let track = process.thread((1 << 28) + 1);
    let record = r#""process":"NPU 3","label":"NPU 3","sort_index":3,"thread":"Stream 7""#;
    let described = [
        track.metadata("sa_track", record),
        process.end(9_000_000_000),
    ];
    let mut last = Fragment::foreign(pid);
    last.raw(b"\n\n\n");
    last.block(
        9,
        0,
        &stream(&[track.span(5_000_000_000, 10, "kernel", "")]),
    );
    last.block(10, 0, &stream(&described));
    plan[0].1.extend(last.bytes);
    plan
}

fn append(folder: &Path, name: &str, bytes: &[u8]) {
    let mut options = OpenOptions::new();
    let file = options.create(true).append(true).open(folder.join(name));
    file.unwrap().write_all(bytes).unwrap();
}

/// Writes the plans bit by bit while a follower reads the files. Returns the events of the follower, and its last poll.
fn read_piece_by_piece(rng: &mut Rng, dir: &RunDir, mut plans: Vec<Plan>) -> (Heard, Poll) {
    let (mut follower, mut heard) = (Follower::new(dir.path()), Heard::default());
    while !plans.is_empty() {
        let who = rng.below(plans.len());
        let (name, bytes) = &mut plans[who][0];
        let most = 1 << rng.below(13);
        let some = (1 + rng.below(most)).min(bytes.len());
        append(&dir.fragments(), name, &bytes[..some]);
        bytes.drain(..some);
        if bytes.is_empty() {
            plans[who].remove(0);
            plans.retain(|plan| !plan.is_empty());
        }
        if rng.one_in(3) {
            let most = 1 + rng.below(20_000) as u64;
            assert!(!heard.poll(&mut follower, most).is_new_run);
        }
    }
    let last = heard.rest(&mut follower);
    assert!(follower.is_over());
    assert_eq!(last.unread, 0);
    (heard, last)
}

/// Most runs are small: what was wrong with polls was found with many of them.
#[test]
fn what_is_read_piece_by_piece_is_the_whole_once() {
    for seed in 0..cases(150) {
        let mut rng = Rng::new(seed);
        let dir = RunDir::new();
        let pids = (100..).step_by(200);
        let plans: Vec<Plan> = match seed % 5 {
            0 => pids.take(2).map(|pid| paced_plan(&mut rng, pid)).collect(),
            _ => {
                let pids = pids.take(1 + rng.below(5));
                pids.map(|pid| random_plan(&mut rng, pid, true)).collect()
            }
        };
        let bytes = plans.iter().flatten().flat_map(|(_, bytes)| bytes);
        let bytes: Vec<u8> = bytes.copied().collect();
        let (heard, last) = read_piece_by_piece(&mut rng, &dir, plans);
        assert_eq!(from_first(heard.0), whole(dir.path()), "seed {seed}");
        // A block that was cut short is skipped where a record says that it is lost.
        if memchr::memmem::find(&bytes, b"disk_full").is_none() {
            assert_eq!(last.skipped, Skipped::default(), "seed {seed}");
        }
        assert_eq!(last.skipped.missing_bytes, 0, "seed {seed}");
    }
}

/// Returns the sorted lines of events, without the records that a merge adds for gaps.
fn lines_of(events: Vec<Told>) -> Vec<String> {
    let lines = events.into_iter().map(|(_, line, _)| line);
    let mut lines: Vec<String> = lines
        .filter(|line| !line.contains(r#""cause":"gap""#))
        .collect();
    lines.sort();
    lines
}

#[test]
fn damaged_fragments_have_the_events_that_a_merge_finds() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let dir = RunDir::new();
        let plans = [100, 120].map(|pid| random_plan(&mut rng, pid, false));
        let (heard, _) = read_piece_by_piece(&mut rng, &dir, plans.into());
        let (found, expected) = (lines_of(heard.0), lines_of(whole(dir.path())));
        assert_eq!(found, expected, "seed {seed}");
    }
}

fn write(dir: &RunDir, fragment: &Fragment) -> (Follower, Heard, Poll) {
    fragment.write_here(&dir.fragments());
    let (mut follower, mut heard) = (Follower::new(dir.path()), Heard::default());
    let found = heard.rest(&mut follower);
    (follower, heard, found)
}

fn span(number: u64) -> String {
    let on = Process::new(100).main_thread();
    on.span(1_000 * number, 5, "step", "")
}

/// One digit of a header says another generation, a byte of another block is wrong, and a line is no event. Two blocks were cut short: one was written again,
/// and of the other one a record says that it is lost.
#[test]
fn what_is_damaged_is_counted_and_its_good_lines_are_read() {
    let process = Process::new(100);
    let mut file = process.fragment();
    let mut from = 0;
    for number in 1..=12 {
        let lines = stream(&[span(number)]);
        let to = from + lines.len() as u64;
        let mut header = block_header(100, 1, 0, from, &lines);
        if number % 4 == 0 && number < 12 {
            header = header.replace("\"gen\":0", "\"gen\":1");
        }
        let whole = [header.as_bytes(), &lines].concat();
        if number > 10 {
            file.raw(&whole[..header.len() + 20]);
            file.raw(b"\n");
        }
        if number == 12 {
            let place = format!(r#","slot":1,"gen":0,"from":{from},"to":{to}"#);
            file.line(&process.main_thread().loss(2_000, "disk_full", 1, &place));
        } else {
            file.raw(&whole);
        }
        if number == 9 {
            let last = file.bytes.len() - 4;
            file.bytes[last] ^= 1;
        }
        from = to;
    }
    file.line("no event");
    // The next thread in the slot loses its first lines.
    let place = r#","slot":1,"gen":2,"from":0,"to":50"#;
    file.line(&process.main_thread().loss(2_000, "disk_full", 1, place));
    file.block_of(1, 2, 50, &stream(&[span(13)]));
    file.block(0, 0, &stream(&[process.end(20_000)]));
    let (follower, heard, found) = write(&RunDir::new(), &file);
    let Skipped { blocks, lines, .. } = found.skipped;
    // The line that is no event, that with the wrong byte, and what was cut short for good.
    assert_eq!((heard.0.len(), blocks, lines), (13, 4, 3));
    let missing = 3 * stream(&[span(4)]).len() as u64;
    assert_eq!(found.skipped.missing_bytes, missing);
    assert_eq!(lost(&follower), "disk_full 2");
}

/// What a follower says that a process lost.
fn lost(follower: &Follower) -> String {
    let lost = follower.run().processes()[0].lost.iter();
    let words = lost.map(|(cause, events)| format!("{cause} {events}"));
    words.collect::<Vec<_>>().join(", ")
}

#[test]
fn losses_are_counted_by_their_cause() {
    let process = Process::new(100);
    let on = process.main_thread();
    let lines = [
        on.loss(1_000, "busy", 4, ""),
        on.loss(2_000, "busy", 3, ""),
        on.loss(3_000, "children_refused", 0, r#","processes":2"#),
        // Not among the first lines of a segment behind the first one: no record of removed segments.
        on.loss(4_000, "disk_bound", 50, r#","first":1"#),
        // More than any number stops at the largest.
        on.loss(5_000, "disk_full", u64::MAX, ""),
        on.loss(6_000, "disk_full", u64::MAX, r#","processes":7"#),
    ];
    let (follower, ..) = write(&RunDir::new(), &one_block(&process, &lines));
    let expected = format!(
        "busy 7, children_refused 2, disk_bound 0, disk_full {}",
        u64::MAX
    );
    assert_eq!(lost(&follower), expected);
}

/// Asserts that no fragment is open: a slow follower must not keep removed files on the disk.
fn assert_no_file_open(dir: &RunDir) {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let mut open = open.filter_map(|fd| std::fs::read_link(fd.unwrap().path()).ok());
    let held = open.find(|path| path.parent() == Some(&dir.fragments()));
    assert_eq!(held, None);
}

/// Ten events are in each segment. What was read is not lost, though the report does not have it any more.
#[test]
fn what_goes_with_segments_is_lost_only_if_it_was_not_read() {
    let dir = RunDir::new();
    let remove = |number: u32| {
        let name = format!("trace.{}.jsonl", segment_name(PID, number));
        std::fs::remove_file(dir.fragments().join(name)).unwrap();
    };
    put(&dir, 0, &segment(0, 0));
    let (mut follower, mut heard) = (Follower::new(dir.path()), Heard::default());
    heard.rest(&mut follower);
    // The next one comes and goes unseen.
    remove(0);
    put(&dir, 2, &segment(2, 2));
    let found = heard.rest(&mut follower);
    assert_eq!((heard.0.len(), found.skipped), (20, Skipped::default()));
    assert_eq!(lost(&follower), "disk_bound 10");
    // Another one is seen, and goes before it is read.
    put(&dir, 3, &segment(3, 2));
    follower.poll(0, |_, _| {});
    assert_no_file_open(&dir);
    remove(3);
    put(&dir, 5, &segment(5, 4));
    let found = heard.rest(&mut follower);
    assert_eq!((heard.0.len(), found.skipped.segments), (30, 1));
    assert_eq!(lost(&follower), "disk_bound 20");
    // What was in the fourth is nowhere, and nothing says why.
    let bytes = found.skipped.missing_bytes;
    assert!(bytes > 500, "{bytes}");
}

#[test]
fn a_segment_that_becomes_shorter_is_read_on() {
    let mut file = Process::new(100).fragment();
    let begin = file.block(1, 0, &stream(&[span(1)]));
    let kept = file.bytes.len();
    let from = file.block(1, begin, &stream(&[span(2)]));
    let dir = RunDir::new();
    let (mut follower, mut heard, _) = write(&dir, &file);
    file.bytes.truncate(kept);
    let path = dir.fragments().join("trace.100.jsonl");
    let cut = OpenOptions::new().write(true).open(path).unwrap();
    cut.set_len(kept as u64).unwrap();
    heard.poll(&mut follower, 1 << 20);
    file.block(1, from, &stream(&[span(3)]));
    append(&dir.fragments(), "trace.100.jsonl", &file.bytes[kept..]);
    let found = heard.rest(&mut follower);
    assert_eq!((heard.0.len(), found.skipped.segments), (3, 1));
}

/// Writes a process's fragment of a run, with one event that is called like it.
fn write_run(dir: &RunDir, pid: u32, run: &str) {
    let process = Process {
        run: run.to_owned(),
        ..Process::new(pid)
    };
    let span = process.main_thread().span(1_000, 5, run, "");
    one_block(&process, &[span]).write_here(&dir.fragments());
}

/// The main process comes last: what it says of the run decides which of two it is.
#[test]
fn two_runs_that_were_taken_for_one_come_apart() {
    let dir = RunDir::new();
    let (mut follower, mut heard) = (Follower::new(dir.path()), Heard::default());
    let say = |name: &str, run: &str| {
        let text = format!(
            r#"{{"run":"{run}","main_pid":1,"start_time":1,"host":"h","boot_id":"b","pid_ns":1}}"#
        );
        std::fs::write(dir.path().join(name), text).unwrap();
    };
    say("run", "run-a");
    write_run(&dir, 7, "run-a");
    heard.rest(&mut follower);
    write_run(&dir, 8, "run-b");
    heard.rest(&mut follower);
    let fragments = dir.fragments();
    std::fs::remove_file(fragments.join("trace.7.jsonl")).unwrap();
    say("run", "run-b");
    heard.0.clear();
    heard.rest(&mut follower);
    assert_heard(&follower, &heard, "run-b", &[8], 1);
}

/// The id of the run, its processes, and how much was heard.
fn assert_heard(follower: &Follower, heard: &Heard, run: &str, pids: &[u32], events: usize) {
    let processes = follower.run().processes();
    let found: Vec<u32> = processes.iter().map(|process| process.header.pid).collect();
    assert_eq!((follower.id(), &found[..]), (run, pids));
    assert_eq!(heard.0.len(), events);
}

/// A directory without a run, a run in it, one more process, and the next runs in folders that are made again. Containers give the same
/// process ids again and again.
#[test]
fn processes_and_runs_are_found_when_they_begin() {
    let dir = RunDir::new();
    let (mut follower, mut heard) = (Follower::new(dir.path()), Heard::default());
    assert_eq!(heard.poll(&mut follower, 1 << 20), Poll::default());
    write_run(&dir, 100, "run-a");
    heard.poll(&mut follower, 1 << 20);
    assert_heard(&follower, &heard, "run-a", &[100], 1);
    write_run(&dir, 101, "run-a");
    assert!(!heard.poll(&mut follower, 1 << 20).is_new_run);
    assert_heard(&follower, &heard, "run-a", &[100, 101], 2);
    for (run, next, folder) in [
        ("run-a", "run-b", dir.fragments()),
        ("run-b", "run-c", dir.path().to_owned()),
    ] {
        std::fs::remove_dir_all(folder).unwrap();
        heard.poll(&mut follower, 1 << 20);
        assert_eq!(follower.id(), run);
        std::fs::create_dir_all(dir.fragments()).unwrap();
        write_run(&dir, 102, next);
        assert!(heard.poll(&mut follower, 1 << 20).is_new_run);
        let events = 3 + usize::from(next == "run-c");
        assert_heard(&follower, &heard, next, &[102], events);
    }
    assert_eq!(follower.run().processes()[0].end, FollowedEnd::Alive);
}
