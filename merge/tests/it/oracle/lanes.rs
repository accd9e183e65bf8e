//! Moves spans that overlap others of their thread, and everything that belongs to them, to extra
//! lanes. Naive: every span is compared with every other one.

use super::line::ValidLine;
use crate::trace::{Event, ns};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A span on a lane.
#[derive(Clone, Copy)]
struct Span {
    start: i64,
    end: i64,
    /// Index of its event, and of the event that ends it.
    event: usize,
    end_event: Option<usize>,
    lane: usize,
}

impl Span {
    fn new(start: i64, end: i64, event: usize, end_event: Option<usize>) -> Span {
        Span {
            start,
            end,
            event,
            end_event,
            lane: 0,
        }
    }

    /// Returns true if it has a begin and an end at the same time.
    fn has_no_length(&self) -> bool {
        self.end_event.is_some() && self.start == self.end
    }
}

/// Result of the assignment for all threads.
#[derive(Debug, Default)]
pub(crate) struct LaneAssignment {
    /// Number of spans that are not on their thread's own lane.
    pub(crate) moved: u64,
    /// Begins that become complete spans of length 0, with their ends.
    pub(super) complete: Vec<(usize, usize)>,
}

/// Assigns lanes to all events, and adds the lane to the thread of each moved event.
pub(super) fn assign_lanes(shown: &[&ValidLine], events: &mut [Event]) -> LaneAssignment {
    let mut threads: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (number, event) in events.iter().enumerate() {
        let thread = threads.entry(event.thread.clone());
        thread.or_default().push(number);
    }
    let mut found = LaneAssignment::default();
    for numbers in threads.into_values() {
        let spans = place_spans(spans(shown, &numbers));
        let points = points(shown, &numbers, &spans);
        let end = |span: &Span| Some((span.end_event?, span.lane));
        let ends = spans.iter().filter_map(end);
        let own = spans.iter().map(|span| (span.event, span.lane));
        for (event, lane) in own.chain(ends).chain(points) {
            if lane > 0 {
                events[event].thread += &format!(", lane {lane}");
            }
        }
        let complete = spans.iter().filter(|span| span.has_no_length());
        let complete = complete.filter_map(|span| Some((span.event, span.end_event?)));
        found.complete.extend(complete);
        found.moved += spans.iter().filter(|span| span.lane > 0).count() as u64;
    }
    found
}

/// Returns all spans of a thread in the order in which viewers process them.
fn spans(shown: &[&ValidLine], numbers: &[usize]) -> Vec<Span> {
    let phase = |event: usize| shown[event].value["ph"].as_str().unwrap();
    let mut spans = Vec::new();
    let mut begins_and_ends: Vec<usize> = Vec::new();
    for event in numbers.iter().copied() {
        let start = shown[event].ts_ns();
        match phase(event) {
            "X" => {
                let end = start + ns(&shown[event].value["dur"]);
                spans.push(Span::new(start, end, event, None));
            }
            "B" | "E" => begins_and_ends.push(event),
            _ => {}
        }
    }
    begins_and_ends.sort_by_key(|event| (shown[*event].ts_ns(), *event));
    while let Some(at) = begins_and_ends
        .iter()
        .position(|event| phase(*event) == "E")
    {
        let end = begins_and_ends.remove(at);
        // All events before it are begins without an end.
        let last = |is_now: bool| {
            let is_its = |begin: &usize| {
                (shown[*begin].ts_ns() == shown[end].ts_ns()) == is_now
                    && ends(&shown[end].value, &shown[*begin].value)
            };
            begins_and_ends[..at].iter().rposition(is_its)
        };
        // The span has no length, unless the end's name matches an earlier begin, or that begin was
        // recorded in between.
        let name = shown[end].value["name"].as_str();
        let has_name = name.is_some_and(|name| !name.is_empty());
        let begun = match (last(false), last(true)) {
            (Some(earlier), Some(now))
                if has_name || begins_and_ends[earlier] > begins_and_ends[now] =>
            {
                earlier
            }
            (Some(begun), None) | (_, Some(begun)) => begun,
            (None, None) => continue,
        };
        let begin = begins_and_ends.remove(begun);
        let [start_ns, end_ns] = [begin, end].map(|event| shown[event].ts_ns());
        spans.push(Span::new(start_ns, end_ns, begin, Some(end)));
    }
    let unended = |event: usize| Span::new(shown[event].ts_ns(), i64::MAX, event, None);
    spans.extend(begins_and_ends.into_iter().map(unended));
    spans.sort_by_key(|span| {
        let is_whole = phase(span.event) == "X" || span.has_no_length();
        let end = if is_whole { span.end } else { 0 };
        (span.start, !is_whole, Reverse(end), span.event)
    });
    spans
}

/// Returns true if an end has the name and the category of the begin, or none.
fn ends(end: &Value, begin: &Value) -> bool {
    let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    ["name", "cat"]
        .iter()
        .all(|key| text(end, key).is_empty() || text(end, key) == text(begin, key))
}

/// Returns the spans that move. Of two overlapping spans, this is the one with fewer children. If
/// the numbers are equal, it is the one that overlaps a later span, or otherwise the shorter one.
/// Children move with their parent.
fn moved_spans(spans: &[Span]) -> BTreeSet<usize> {
    let (mut own, mut found) = (BTreeSet::<usize>::new(), BTreeSet::new());
    for (next, span) in spans.iter().enumerate() {
        let parent = (0..next).rfind(|other| {
            let end = spans[*other].end;
            end > span.start && end >= span.end && end < i64::MAX
        });
        let is_open = |other: &usize| spans[*other].end > span.start;
        let mut open = own.iter().copied().filter(is_open);
        let clash = open.find(|other| spans[*other].end < span.end);
        let stays = match clash {
            _ if parent.is_some_and(|parent| found.contains(&parent)) => false,
            None => true,
            Some(other) => {
                let in_other = own.range(other + 1..).count();
                let later = spans[next + 1..].iter();
                let (children, others): (Vec<&Span>, Vec<&Span>) = later
                    .filter(|later| later.start < span.end)
                    .partition(|later| later.end <= span.end);
                let clashes = others.iter().any(|later| later.end < i64::MAX);
                let is_longer = span.end - span.start > spans[other].end - spans[other].start;
                let wins_tie = !clashes && is_longer;
                span.end < i64::MAX
                    && (children.len() > in_other || children.len() == in_other && wins_tie)
            }
        };
        if let Some(other) = clash.filter(|_| stays) {
            found.append(&mut own.split_off(&other));
        }
        match stays {
            true => own.insert(next),
            false => found.insert(next),
        };
    }
    found
}

/// Assigns lanes. Spans that do not move are on lane 0. One that moves goes to the lane of its
/// parent if that moved, too, otherwise to an empty lane. A span that never ends is not a parent.
fn place_spans(mut spans: Vec<Span>) -> Vec<Span> {
    let moved = moved_spans(&spans);
    let mut lanes: Vec<Vec<usize>> = vec![Vec::new()];
    for next in 0..spans.len() {
        let span = spans[next];
        let is_open = |other: &usize| spans[*other].end > span.start;
        lanes.iter_mut().for_each(|lane| lane.retain(is_open));
        let will_end = |other: &usize| spans[*other].end < i64::MAX;
        let parent_on = |lane: &Vec<usize>| {
            let contains = |other: &&usize| will_end(other) && spans[**other].end >= span.end;
            lane.iter().rfind(contains).copied()
        };
        let fits = |lane: &Vec<usize>| lane.iter().all(|other| spans[*other].end >= span.end);
        let others = lanes.iter().enumerate().skip(1);
        let fitting = others.filter(|(_, lane)| fits(lane));
        let best = fitting.clone().max_by_key(|(_, lane)| parent_on(lane));
        let empty = fitting
            .clone()
            .find(|(_, lane)| !lane.last().is_some_and(will_end));
        let lane = match best {
            _ if !moved.contains(&next) => 0,
            Some((number, lane)) if parent_on(lane) > parent_on(&lanes[0]) => number,
            _ => empty.map_or(lanes.len(), |(number, _)| number),
        };
        lanes.resize(lanes.len().max(lane + 1), Vec::new());
        lanes[lane].push(next);
        spans[next].lane = lane;
    }
    spans
}

/// Returns the lanes of flow events and instants.
fn points(shown: &[&ValidLine], numbers: &[usize], spans: &[Span]) -> Vec<(usize, usize)> {
    let mut points = Vec::new();
    for event in numbers.iter().copied() {
        let (value, time) = (&shown[event].value, shown[event].ts_ns());
        let begun = spans.partition_point(|span| span.start <= time);
        let is_open = |span: &Span| span.end >= time && span.end < i64::MAX;
        let open = spans[..begun].iter().rposition(is_open);
        let never_ends = |span: &Span| span.end == i64::MAX;
        let open = open.or_else(|| spans[..begun].iter().rposition(never_ends));
        let around = open.or(begun.checked_sub(1)).map(|at| &spans[at]);
        let span = match value["ph"].as_str().unwrap() {
            "f" if value["bp"] != "e" => spans.get(begun),
            "s" | "t" | "f" => around,
            "i" | "I" if value["s"] != "p" && value["s"] != "g" => around,
            _ => continue,
        };
        points.push((event, span.map_or(0, |span| span.lane)));
    }
    points
}
