//! A run that is read while it is written ([`trace_merge::follow`]), compared with a read of the
//! finished run ([`trace_merge::events`]).

use crate::full::cases;
use crate::invocation::{RunDir, one_block};
use crate::paced::{self, Course, End};
use crate::random::{self, Rng};
use crate::segments::{PID, segment, segment_name, write_segment};
use format_oracle::writer::fragment::block_header;
use format_oracle::writer::line::stream;
use format_oracle::writer::{Fragment, Process};
use sa_format::Phase;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use trace_merge::follow::{FollowedEnd, Follower, Poll, Skipped};
use trace_merge::{Options, Progress, events};

/// Time and line of an event, and the name of its track.
type EventText = (i64, String, String);

/// Events that a follower has reported so far.
#[derive(Default)]
struct FollowedEvents(Vec<EventText>);

impl FollowedEvents {
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

/// Sorts events, and makes their times relative to the first one.
fn from_first(mut events: Vec<EventText>) -> Vec<EventText> {
    let first_ns = events.iter().map(|event| event.0).min().unwrap_or(0);
    events.iter_mut().for_each(|event| event.0 -= first_ns);
    events.sort();
    events
}

/// Returns the events of the whole run.
fn whole(directory: &Path) -> Vec<EventText> {
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

/// Bytes that remain to be written, in order, with the file for each piece.
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

/// Returns the output of a recorder in two minutes: threads that come and go, and segments.
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

/// Returns a random fragment with padding, a track whose description follows its first event, and
/// an end record. Some short writes in it were never repeated. It is damaged unless `undamaged`.
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

/// Writes the plans in small pieces while a follower reads the files. Returns the events of the
/// follower, and its last poll.
fn read_piece_by_piece(
    rng: &mut Rng,
    dir: &RunDir,
    mut plans: Vec<Plan>,
) -> (FollowedEvents, Poll) {
    let (mut follower, mut followed) = (Follower::new(dir.path()), FollowedEvents::default());
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
            assert!(!followed.poll(&mut follower, most).is_new_run);
        }
    }
    let last = followed.rest(&mut follower);
    assert!(follower.is_over());
    assert_eq!(last.unread, 0);
    (followed, last)
}

/// Most runs are small, because bugs in polls were found with many of them.
#[test]
fn reading_in_pieces_returns_every_event_once() {
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
        let (followed, last) = read_piece_by_piece(&mut rng, &dir, plans);
        assert_eq!(from_first(followed.0), whole(dir.path()), "seed {seed}");
        // A block that was cut short is skipped if a record reports it as lost.
        if memchr::memmem::find(&bytes, b"disk_full").is_none() {
            assert_eq!(last.skipped, Skipped::default(), "seed {seed}");
        }
        assert_eq!(last.skipped.missing_bytes, 0, "seed {seed}");
    }
}

/// Returns the sorted lines of events, without the records that a merge adds for gaps.
fn sorted_lines(events: Vec<EventText>) -> Vec<String> {
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
        let (followed, _) = read_piece_by_piece(&mut rng, &dir, plans.into());
        let (found, expected) = (sorted_lines(followed.0), sorted_lines(whole(dir.path())));
        assert_eq!(found, expected, "seed {seed}");
    }
}

fn write(dir: &RunDir, fragment: &Fragment) -> (Follower, FollowedEvents, Poll) {
    fragment.write_here(&dir.fragments());
    let (mut follower, mut followed) = (Follower::new(dir.path()), FollowedEvents::default());
    let found = followed.rest(&mut follower);
    (follower, followed, found)
}

fn span(number: u64) -> String {
    let on = Process::new(100).main_thread();
    on.span(1_000 * number, 5, "step", "")
}

/// Three block headers have a wrong generation, one block has a wrong byte, and one line is not an
/// event. Two blocks were cut short: one was written again, and a record reports the other one as
/// lost.
#[test]
fn damage_is_counted_and_valid_lines_are_read() {
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
    let (follower, followed, found) = write(&RunDir::new(), &file);
    let Skipped { blocks, lines, .. } = found.skipped;
    // The invalid line, the one with the wrong byte, and the block that was cut short for good.
    assert_eq!((followed.0.len(), blocks, lines), (13, 4, 3));
    let missing = 3 * stream(&[span(4)]).len() as u64;
    assert_eq!(found.skipped.missing_bytes, missing);
    assert_eq!(lost(&follower), "disk_full 2");
}

/// Returns the losses of the process that a follower reports.
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
        // Not a record of removed segments, because it is not among the first lines of a later
        // segment.
        on.loss(4_000, "disk_bound", 50, r#","first":1"#),
        // Counts beyond the largest number stop there.
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

/// Each segment has ten events. Events that were read are not lost, even if the files do not
/// contain them any more.
#[test]
fn only_unread_events_of_removed_segments_are_lost() {
    let dir = RunDir::new();
    let remove = |number: u32| {
        let name = format!("trace.{}.jsonl", segment_name(PID, number));
        std::fs::remove_file(dir.fragments().join(name)).unwrap();
    };
    write_segment(&dir, 0, &segment(0, 0));
    let (mut follower, mut followed) = (Follower::new(dir.path()), FollowedEvents::default());
    followed.rest(&mut follower);
    // The next segment comes and goes unseen.
    remove(0);
    write_segment(&dir, 2, &segment(2, 2));
    let found = followed.rest(&mut follower);
    assert_eq!((followed.0.len(), found.skipped), (20, Skipped::default()));
    assert_eq!(lost(&follower), "disk_bound 10");
    // Another segment is seen, and removed before it is read.
    write_segment(&dir, 3, &segment(3, 2));
    follower.poll(0, |_, _| {});
    assert_no_file_open(&dir);
    remove(3);
    write_segment(&dir, 5, &segment(5, 4));
    let found = followed.rest(&mut follower);
    assert_eq!((followed.0.len(), found.skipped.segments), (30, 1));
    assert_eq!(lost(&follower), "disk_bound 20");
    // The events of the fourth segment are gone, and no record explains it.
    let bytes = found.skipped.missing_bytes;
    assert!(bytes > 500, "{bytes}");
}

#[test]
fn a_segment_that_becomes_shorter_is_read_on() {
    let mut file = Process::new(100).fragment();
    let begin = file.block(1, 0, &stream(&[span(1)]));
    let kept_bytes = file.bytes.len();
    let from = file.block(1, begin, &stream(&[span(2)]));
    let dir = RunDir::new();
    let (mut follower, mut followed, _) = write(&dir, &file);
    file.bytes.truncate(kept_bytes);
    let path = dir.fragments().join("trace.100.jsonl");
    let cut = OpenOptions::new().write(true).open(path).unwrap();
    cut.set_len(kept_bytes as u64).unwrap();
    followed.poll(&mut follower, 1 << 20);
    file.block(1, from, &stream(&[span(3)]));
    append(
        &dir.fragments(),
        "trace.100.jsonl",
        &file.bytes[kept_bytes..],
    );
    let found = followed.rest(&mut follower);
    assert_eq!((followed.0.len(), found.skipped.segments), (3, 1));
}

/// Writes a process's fragment of a run, with one event named after the run.
fn write_run(dir: &RunDir, pid: u32, run: &str) {
    let process = Process {
        run: run.to_owned(),
        ..Process::new(pid)
    };
    let span = process.main_thread().span(1_000, 5, run, "");
    one_block(&process, &[span]).write_here(&dir.fragments());
}

/// The main process comes last: its record about the run decides which of the two it is.
#[test]
fn two_runs_that_looked_like_one_are_separated() {
    let dir = RunDir::new();
    let (mut follower, mut followed) = (Follower::new(dir.path()), FollowedEvents::default());
    let write_run_file = |name: &str, run: &str| {
        let text = format!(
            r#"{{"run":"{run}","main_pid":1,"start_time":1,"host":"h","boot_id":"b","pid_ns":1}}"#
        );
        std::fs::write(dir.path().join(name), text).unwrap();
    };
    write_run_file("run", "run-a");
    write_run(&dir, 7, "run-a");
    followed.rest(&mut follower);
    write_run(&dir, 8, "run-b");
    followed.rest(&mut follower);
    let fragments = dir.fragments();
    std::fs::remove_file(fragments.join("trace.7.jsonl")).unwrap();
    write_run_file("run", "run-b");
    followed.0.clear();
    followed.rest(&mut follower);
    assert_followed(&follower, &followed, "run-b", &[8], 1);
}

/// Asserts the id of the run, its processes, and the number of events.
fn assert_followed(
    follower: &Follower,
    followed: &FollowedEvents,
    run: &str,
    pids: &[u32],
    events: usize,
) {
    let processes = follower.run().processes();
    let found: Vec<u32> = processes.iter().map(|process| process.header.pid).collect();
    assert_eq!((follower.id(), &found[..]), (run, pids));
    assert_eq!(followed.0.len(), events);
}

/// A directory without a run, a run in it, one more process, and then runs in folders that are
/// created again. Containers reuse the same process ids.
#[test]
fn processes_and_runs_are_found_when_they_begin() {
    let dir = RunDir::new();
    let (mut follower, mut followed) = (Follower::new(dir.path()), FollowedEvents::default());
    assert_eq!(followed.poll(&mut follower, 1 << 20), Poll::default());
    write_run(&dir, 100, "run-a");
    followed.poll(&mut follower, 1 << 20);
    assert_followed(&follower, &followed, "run-a", &[100], 1);
    write_run(&dir, 101, "run-a");
    assert!(!followed.poll(&mut follower, 1 << 20).is_new_run);
    assert_followed(&follower, &followed, "run-a", &[100, 101], 2);
    for (run, next, folder) in [
        ("run-a", "run-b", dir.fragments()),
        ("run-b", "run-c", dir.path().to_owned()),
    ] {
        std::fs::remove_dir_all(folder).unwrap();
        followed.poll(&mut follower, 1 << 20);
        assert_eq!(follower.id(), run);
        std::fs::create_dir_all(dir.fragments()).unwrap();
        write_run(&dir, 102, next);
        assert!(followed.poll(&mut follower, 1 << 20).is_new_run);
        let events = 3 + usize::from(next == "run-c");
        assert_followed(&follower, &followed, next, &[102], events);
    }
    assert_eq!(follower.run().processes()[0].end, FollowedEnd::Alive);
}
