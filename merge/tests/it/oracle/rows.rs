//! Spans that clash with others of their thread go to rows beside it, and what belongs to them goes along. Naive: every span is compared
//! with every other one.

use super::line::Kept;
use crate::trace::{Event, ns};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A span on a row.
#[derive(Clone, Copy)]
struct Span {
    start: i64,
    end: i64,
    /// Its event, and the one that ends it.
    event: usize,
    end_event: Option<usize>,
    row: usize,
}

/// Where the spans of all threads are shown.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// Spans that are not on their thread's own row.
    pub(crate) moved: u64,
    /// For each span its name, and that of the span around it.
    pub(crate) parents: Vec<(String, Option<String>)>,
    /// For each flow event its phase and name, and the name of the span it is in, or before which it is: the end of a flow without `bp`.
    pub(crate) flows: Vec<(String, Option<String>)>,
}

/// Gives the rows names of their own.
pub(super) fn spread(shown: &[&Kept], events: &mut [Event]) -> Shown {
    let mut threads: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (number, event) in events.iter().enumerate() {
        threads
            .entry(event.thread.clone())
            .or_default()
            .push(number);
    }
    let mut found = Shown::default();
    for numbers in threads.into_values() {
        let spans = place(spans(shown, &numbers), shown, &mut found);
        let points = points(shown, &numbers, &spans, &mut found);
        let ends = spans
            .iter()
            .filter_map(|span| Some((span.end_event?, span.row)));
        let own = spans.iter().map(|span| (span.event, span.row));
        for (event, row) in own.chain(ends).chain(points) {
            if row > 0 {
                events[event].thread += &format!(", row {row}");
            }
        }
        found.moved += spans.iter().filter(|span| span.row > 0).count() as u64;
    }
    found
}

/// All spans of a thread in the order in which viewers take them.
fn spans(shown: &[&Kept], numbers: &[usize]) -> Vec<Span> {
    let phase = |event: usize| shown[event].value["ph"].as_str().unwrap();
    let mut spans = Vec::new();
    let mut halves: Vec<usize> = Vec::new();
    for event in numbers.iter().copied() {
        let start = shown[event].ts_ns();
        match phase(event) {
            "X" => spans.push(Span {
                start,
                end: start + ns(&shown[event].value["dur"]),
                event,
                end_event: None,
                row: 0,
            }),
            "B" | "E" => halves.push(event),
            _ => {}
        }
    }
    halves.sort_by_key(|event| (shown[*event].ts_ns(), phase(*event) == "B"));
    while let Some(at) = halves.iter().position(|event| phase(*event) == "E") {
        let end = halves.remove(at);
        let is_ended = |begin: &usize| ends(&shown[end].value, &shown[*begin].value);
        // A begin at the same time comes later for viewers; what stands before its end is a span of no length here.
        let at_once = |begin: &usize| {
            let same_time = shown[*begin].ts_ns() == shown[end].ts_ns();
            phase(*begin) == "B" && same_time && *begin < end && is_ended(begin)
        };
        let earlier = halves[..at].iter().rposition(is_ended);
        let begun = earlier.or_else(|| halves.iter().rposition(at_once));
        let Some(begin) = begun.map(|begun| halves.remove(begun)) else {
            continue;
        };
        spans.push(Span {
            start: shown[begin].ts_ns(),
            end: shown[end].ts_ns(),
            event: begin,
            end_event: Some(end),
            row: 0,
        });
    }
    spans.extend(halves.into_iter().map(|event| Span {
        start: shown[event].ts_ns(),
        end: i64::MAX,
        event,
        end_event: None,
        row: 0,
    }));
    spans.sort_by_key(|span| match phase(span.event) {
        "X" => (span.start, 0, Reverse(span.end), span.event),
        _ => (span.start, 1, Reverse(0), span.event),
    });
    spans
}

/// Whether the names and categories that an end has are those of the begin.
fn ends(end: &Value, begin: &Value) -> bool {
    let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    ["name", "cat"]
        .iter()
        .all(|key| text(end, key).is_empty() || text(end, key) == text(begin, key))
}

/// Each span goes to a row on which it clashes with none: of several the one whose innermost open span began last, where one that
/// never ends counts as none.
fn place(mut spans: Vec<Span>, shown: &[&Kept], found: &mut Shown) -> Vec<Span> {
    let name = |span: &Span| {
        shown[span.event].value["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let mut rows: Vec<Vec<usize>> = Vec::new();
    for next in 0..spans.len() {
        let span = spans[next];
        rows.iter_mut()
            .for_each(|row| row.retain(|other| spans[*other].end > span.start));
        let fits = |row: &Vec<usize>| row.iter().all(|other| spans[*other].end >= span.end);
        let fitting = rows.iter().enumerate().filter(|(_, row)| fits(row));
        let will_end = |other: &usize| spans[*other].end < i64::MAX;
        let best = fitting
            .map(|(number, row)| (row.last().copied().filter(will_end), Reverse(number)))
            .max();
        let row = best.map_or(rows.len(), |(_, Reverse(row))| row);
        rows.resize(rows.len().max(row + 1), Vec::new());
        let parent = rows[row].last().map(|parent| name(&spans[*parent]));
        rows[row].push(next);
        spans[next].row = row;
        found.parents.push((name(&span), parent));
    }
    spans
}

/// The rows of flow events and instants.
fn points(
    shown: &[&Kept],
    numbers: &[usize],
    spans: &[Span],
    found: &mut Shown,
) -> Vec<(usize, usize)> {
    let mut points = Vec::new();
    for event in numbers.iter().copied() {
        let (value, time) = (&shown[event].value, shown[event].ts_ns());
        let begun = spans.partition_point(|span| span.start <= time);
        let is_open = |span: &Span| span.end >= time && span.end < i64::MAX;
        let open = spans[..begun].iter().rposition(is_open);
        let never_ends = |span: &Span| span.end == i64::MAX;
        let open = open.or_else(|| spans[..begun].iter().rposition(never_ends));
        let of = match value["ph"].as_str().unwrap() {
            "f" if value["bp"] != "e" => spans.get(begun),
            "s" | "t" | "f" => open.or(begun.checked_sub(1)).map(|at| &spans[at]),
            "i" | "I" if value["s"] != "p" && value["s"] != "g" => {
                open.or(begun.checked_sub(1)).map(|at| &spans[at])
            }
            _ => continue,
        };
        points.push((event, of.map_or(0, |span| span.row)));
        let phase = value["ph"].as_str().unwrap();
        if "stf".contains(phase) {
            let text = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
            let span = of.map(|span| text(&shown[span.event].value));
            found.flows.push((format!("{phase} {}", text(value)), span));
        }
    }
    points
}
