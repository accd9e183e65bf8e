//! Windows, filters and extra lanes together: the result must be the same as a merge of only the
//! shown lines.

use crate::clashing::{Clashing, ORDERS};
use crate::invocation::{Merged, RunDir};
use crate::random::Rng;
use crate::trace::Event;
use format_oracle::writer::line::stream;
use serde_json::Value;
use std::collections::BTreeSet;

/// A span, an instant, or the begin and end of a span.
struct Item {
    lines: Vec<String>,
    start: u64,
    end: u64,
    is_kept: bool,
}

/// Returns items of one thread, so close to each other that many overlap. An item that
/// the filter must keep has a special name, category and request id, and its own process if
/// `by_pid`.
fn items(rng: &mut Rng, tid: u32, count: usize, by_pid: bool) -> Vec<Item> {
    let mut items = Vec::new();
    for serial in 0..count {
        let mut thread = Clashing::new(rng, tid, 4_000);
        let is_kept = !thread.rng.one_in(3);
        thread.category = if is_kept { "keep" } else { "hide" };
        thread.pid = if is_kept || !by_pid { 900 } else { 910 };
        let name = format!("{} {serial}", thread.category);
        let args = format!(r#","args":{{"request_id":"{}"}}"#, thread.category);
        let id = format!(r#","id":{serial}"#);
        let (start, dur) = (thread.time(), 1 + thread.rng.below(200) as u64);
        let mut end = start + dur;
        match thread.rng.below(9) {
            0 => {
                thread.add("B", &name, (start, start), &args);
                thread.add("E", &name, (end, end), "");
            }
            1 => {
                thread.add("i", &name, (start, start), &format!(r#","s":"t"{args}"#));
                end = start;
            }
            2 => {
                thread.add("b", &name, (start, start), &format!("{id}{args}"));
                thread.add("e", &name, (end, end), &id);
            }
            _ => thread.span_with(&name, start, dur, &args),
        }
        let lines = thread.lines(ORDERS[0]);
        items.push(Item {
            lines,
            start,
            end,
            is_kept,
        });
    }
    items
}

fn write<'a>(dir: &RunDir, items: impl Iterator<Item = &'a Item>) {
    let lines: Vec<String> = items.flat_map(|item| item.lines.clone()).collect();
    dir.put("900", &stream(&lines));
}

/// Returns the events as they were before they were cut, sorted and without their ids, and the
/// number of marked ones.
fn unmarked(merged: &Merged) -> (Vec<Event>, u64) {
    let (events, marks) = merged.trace.whole();
    let without_id = |event| Event { id: None, ..event };
    let mut events: Vec<Event> = events.into_iter().map(without_id).collect();
    events.sort();
    (events, marks)
}

/// Asserts that every process and thread of a trace that has a name has an event as well.
fn assert_nothing_empty(merged: &Merged, what: &str) {
    let key = |event: &Value| (event["pid"].to_string(), event["tid"].to_string());
    let threads: BTreeSet<_> = merged.trace.shown().map(key).collect();
    let processes: BTreeSet<_> = threads.iter().map(|(pid, _)| pid).collect();
    for event in merged.trace.phase("M") {
        let (pid, tid) = key(event);
        let is_of_thread = event["name"].as_str().unwrap().starts_with("thread_");
        let has_event = processes.contains(&pid);
        let has_event = has_event && (!is_of_thread || threads.contains(&(pid, tid)));
        assert!(has_event, "{what}: {event}");
    }
    let reported = merged.report.0["processes"].as_array().unwrap().len();
    assert_eq!(reported, processes.len(), "{what}");
}

#[test]
fn selected_events_are_shown_as_if_there_were_no_others() {
    let (mut moved, mut marked, mut unmoved) = (0, 0, 0);
    for seed in 0..120 {
        let mut rng = Rng::new(seed);
        let filters = ["name=keep*", "cat=keep", "request=keep", "pid=900"];
        let filter = [None, Some(filters[rng.below(4)])][rng.below(2)];
        let by_pid = filter == Some(filters[3]);
        let mut all = items(&mut rng, 901, 60, by_pid);
        all.extend(items(&mut rng, 902, 30, by_pid));
        let first = all.iter().map(|item| item.start).min().unwrap();
        let (from, to) = match seed % 3 {
            0 => (0, u64::MAX),
            _ => {
                let from = rng.below(3_000) as u64;
                (first + from, first + from + 1 + rng.below(1_000) as u64)
            }
        };
        let edges = ["from", "to"].into_iter().zip([from, to]);
        let edges = edges.filter(|_| to < u64::MAX);
        let mut asked: Vec<String> = edges
            .map(|(edge, at)| format!("--{edge}={}ns", at - first))
            .collect();
        asked.extend(filter.map(|filter| format!("--{filter}")));
        let mut options = vec!["--no-settle", "--no-link-requests"];
        options.extend(asked.iter().map(String::as_str));
        let is_shown = |item: &&Item| {
            item.start <= to && item.end >= from && (item.is_kept || filter.is_none())
        };
        let (dir, alone) = (RunDir::new(), RunDir::new());
        write(&dir, all.iter());
        write(&alone, all.iter().filter(is_shown));
        if !all.iter().any(|item| is_shown(&item)) {
            continue;
        }
        let found = Merged::new(&options, &[dir.path()]);
        let [whole, expected] = [&dir, &alone].map(|dir| Merged::new(&options[..2], &[dir.path()]));
        let what = format!("seed {seed} {options:?}");
        let (events, marks) = unmarked(&found);
        assert_eq!(events, unmarked(&expected).0, "{what}");
        if filter.is_some() {
            assert_nothing_empty(&found, &what);
        }
        let is_crossing = |item: &&Item| is_shown(item) && (item.start < from || item.end > to);
        let crossing = all.iter().filter(is_crossing).count() as u64;
        let window = &found.report.0["window"];
        assert_eq!(
            window["spans_cut"].as_u64().unwrap_or(0),
            crossing,
            "{what}"
        );
        let edges = ["from_ns", "to_ns"].map(|key| window[key].as_u64());
        let expected_edges = [from, to].map(|at| at.checked_sub(first));
        assert!(
            window.is_null() || edges == expected_edges,
            "{what}: {window}"
        );
        assert_eq!(
            found.trace.document["otherData"]["window"], *window,
            "{what}"
        );
        assert!((crossing..=2 * crossing).contains(&marks), "{what}");
        let number =
            |key: &str| [&whole, &found, &expected].map(|merged| merged.report.number(key));
        let left_out =
            ["filter", "window"].map(|by| found.report.0[by]["events_left_out"].as_u64());
        let left_out: u64 = left_out.into_iter().flatten().sum();
        let events = number("events_total");
        assert_eq!([events[0] - left_out, events[1]], [events[2]; 2], "{what}");
        let spans = number("overlapping_spans");
        assert_eq!(spans[1], spans[2], "{what}");
        let threads = ["--threads=1", "--threads=3"][usize::from(rng.one_in(2))];
        let again = Merged::new(&[&options[..], &[threads]].concat(), &[dir.path()]);
        assert!(again.bytes == found.bytes, "{what}");
        (moved, marked) = (moved + spans[1], marked + marks);
        unmoved += spans[0] - spans[1];
    }
    let is_enough = moved > 300 && marked > 200 && unmoved > 300;
    assert!(is_enough, "{moved} {marked} {unmoved}");
}
