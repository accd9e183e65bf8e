use std::sync::{Mutex, PoisonError};

use super::*;
use crate::process::open_spans::close_stack;
use crate::thread::event_writer::{Body, Name};
use crate::thread::thread_state;
use crate::{Level, Recorder, SpanId};
use sa_format::loss::Cause;

/// Held by a test that records, because a process has only one recorder.
static ALONE: Mutex<()> = Mutex::new(());

/// Returns the number of open spans that a reader of the ring finds.
fn shown(writer: &SlotWriter) -> usize {
    let slot = writer.slot;
    let is_open = |at: &usize| {
        let entry = slot.open_entry(*at);
        entry.is_some_and(|entry| slot.is_open(*at, entry))
    };
    (0..slot.entries_in_use()).filter(is_open).count()
}

/// Returns the number of open spans that a reader of the ring finds, and the number counted as
/// hidden.
fn shown_and_hidden() -> (usize, u64) {
    thread_state::with_attached(|writer| {
        let hidden = writer.process.lost.unreported(Cause::OpenSpans);
        (shown(writer), hidden.map_or(0, |hidden| hidden.loss.count))
    })
    .unwrap()
}

/// Starts recording. If `is_refused`, this thread gets no entries beyond its stack.
fn record(directory: &std::path::Path, is_refused: bool) -> Recorder {
    let lookup = |name: &str| (name == "SA_PROFILE_DIR").then(|| directory.into());
    let recorder = Recorder::start_with(lookup).unwrap();
    SpanId::begin(Level::E2e, "test", "first").end();
    if is_refused {
        thread_state::with_attached(|writer| writer.slot.deeper.give_up(0)).unwrap();
    }
    recorder
}

/// Returns the names of the spans that the recording in this directory contains as unfinished.
fn unfinished(directory: &std::path::Path) -> Vec<String> {
    let files = std::fs::read_dir(directory.join("fragments"))
        .unwrap()
        .map(|file| std::fs::read(file.unwrap().path()).unwrap());
    let text = String::from_utf8_lossy(&files.collect::<Vec<_>>().concat()).into_owned();
    let lines = text
        .lines()
        .filter(|line| line.contains("\"unfinished\":true"));
    let name = |line: &str| {
        let (_, name) = line.split_once("\"name\":\"")?;
        Some(name.split('"').next()?.to_owned())
    };
    let mut names: Vec<String> = lines.filter_map(name).collect();
    names.sort();
    names
}

/// Opens and ends spans in a random order, so that the depth exceeds the largest one in a state.
fn ends_in_any_order(is_refused: bool) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let recorder = record(directory.path(), is_refused);
    let mut open: Vec<(String, SpanId)> = Vec::new();
    let mut random = 1_u64;
    let mut next = |below: usize| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(random >> 33).unwrap() % below
    };
    for round in 0..40 {
        let target = [35, 262, 252, 258, 29][round % 5];
        let steps = open.len().abs_diff(target) * 2 + 60;
        for step in 0..steps {
            let is_short = open.len() < target;
            if open.is_empty() || is_short == (next(8) > 0) {
                let name = format!("s{round}-{step}");
                let span = SpanId::begin(Level::E2e, "test", &name);
                open.push((name, span));
            } else {
                let is_innermost = next(2) == 0;
                let most = if is_innermost { 1 } else { open.len().min(12) };
                let from_top = next(most);
                open.remove(open.len() - 1 - from_top).1.end();
            }
            let (shown, hidden) = shown_and_hidden();
            let found = shown as u64 + hidden;
            assert_eq!(found, open.len() as u64, "{round} {step}: {shown} shown");
            assert!(is_refused || hidden == 0);
        }
    }
    recorder.finish();
    let shown = unfinished(directory.path());
    let mut names: Vec<String> = open.into_iter().map(|(name, _)| name).collect();
    names.sort();
    if is_refused {
        assert!(shown.iter().all(|name| names.contains(name)));
    } else {
        assert_eq!(shown, names);
    }
}

#[test]
fn spans_that_end_in_any_order_are_shown_until_they_end() {
    ends_in_any_order(false);
}

#[test]
fn spans_without_an_entry_are_counted_until_they_end() {
    ends_in_any_order(true);
}

/// Ends the span at a depth below later ones step by step. Returns the number of open spans that a
/// reader finds before its line is published, after that, and at the end.
fn open_around_end(depth: u32) -> [usize; 3] {
    let ended = thread_state::with_attached(|writer| {
        writer.pop_any(depth, u32::MAX);
        let before = shown(writer);
        let body = Body {
            duration_ns: Some(1),
            middle: b"",
            name: Name::Text(br#""name":"ended","cat":"test""#),
            args: b"",
        };
        writer.events.write(b'X', 1, &body);
        let published = shown(writer);
        writer.clear_entry(depth);
        assert_eq!(writer.slot.ending().load(Ordering::Relaxed), 0);
        [before, published, shown(writer)]
    });
    ended.unwrap()
}

#[test]
fn issue_47_a_span_that_ends_below_others_is_open_until_its_line_is_published() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let recorder = record(directory.path(), false);
    let _open: Vec<_> = (0..300)
        .map(|_| SpanId::begin(Level::E2e, "test", "open"))
        .collect();
    let (first, _) = shown_and_hidden();
    for (ended, depth) in (0..).zip([0, 5, 31, 32, 254, 255, 298]) {
        let left = first - ended;
        assert_eq!(
            open_around_end(depth),
            [left, left - 1, left - 1],
            "{depth}"
        );
    }
    recorder.finish();
}

#[test]
fn issue_47_open_spans_that_have_no_room_at_the_end_are_counted_once_each() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let recorder = record(directory.path(), false);
    let mut open: Vec<_> = (0..300)
        .map(|_| SpanId::begin(Level::E2e, "test", "open"))
        .collect();
    for at in [280, 100, 3] {
        open.remove(at).end();
    }
    let slot = thread_state::with_attached(|writer| writer.slot).unwrap();
    let turn = std::iter::repeat_with(|| slot.try_turn()).find_map(|turn| turn);
    for _ in 0..2 {
        assert!(slot.try_turn().is_none(), "one that fails takes nothing");
    }
    let fill = crate::Args::new().with("text", "x".repeat(1000));
    while recorder.dropped() == 0 {
        recorder.instant(Level::E2e, "test", "fill", &fill);
    }
    let before = recorder.dropped();
    thread_state::with_attached(|writer| close_stack(writer.process, writer.slot)).unwrap();
    assert_eq!(recorder.dropped() - before, open.len() as u64);
    drop(turn);
    recorder.finish();
}
