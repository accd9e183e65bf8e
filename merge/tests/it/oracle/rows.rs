//! Spans that clash with others of their thread go to rows beside it, and what belongs to them goes along. Naive: every span is compared
//! with every other one.

use super::line::Kept;
use crate::trace::{Event, ns};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

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

impl Span {
    fn new(start: i64, end: i64, event: usize, end_event: Option<usize>) -> Span {
        Span {
            start,
            end,
            event,
            end_event,
            row: 0,
        }
    }

    /// Returns true if it has a begin and an end at the same time.
    fn has_no_length(&self) -> bool {
        self.end_event.is_some() && self.start == self.end
    }
}

/// Where the spans of all threads are shown.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// Spans that are not on their thread's own row.
    pub(crate) moved: u64,
    /// Begins that become complete spans of length 0, with their ends.
    pub(super) wholes: Vec<(usize, usize)>,
}

/// Gives the rows names of their own.
pub(super) fn spread(shown: &[&Kept], events: &mut [Event]) -> Shown {
    let mut threads: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (number, event) in events.iter().enumerate() {
        let thread = threads.entry(event.thread.clone());
        thread.or_default().push(number);
    }
    let mut found = Shown::default();
    for numbers in threads.into_values() {
        let spans = place(spans(shown, &numbers));
        let points = points(shown, &numbers, &spans);
        let end = |span: &Span| Some((span.end_event?, span.row));
        let ends = spans.iter().filter_map(end);
        let own = spans.iter().map(|span| (span.event, span.row));
        for (event, row) in own.chain(ends).chain(points) {
            if row > 0 {
                events[event].thread += &format!(", row {row}");
            }
        }
        let wholes = spans.iter().filter(|span| span.has_no_length());
        let wholes = wholes.filter_map(|span| Some((span.event, span.end_event?)));
        found.wholes.extend(wholes);
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
            "X" => {
                let end = start + ns(&shown[event].value["dur"]);
                spans.push(Span::new(start, end, event, None));
            }
            "B" | "E" => halves.push(event),
            _ => {}
        }
    }
    halves.sort_by_key(|event| (shown[*event].ts_ns(), *event));
    while let Some(at) = halves.iter().position(|event| phase(*event) == "E") {
        let end = halves.remove(at);
        // All before it are begins without an end.
        let last = |is_now: bool| {
            let is_its = |begin: &usize| {
                (shown[*begin].ts_ns() == shown[end].ts_ns()) == is_now
                    && ends(&shown[end].value, &shown[*begin].value)
            };
            halves[..at].iter().rposition(is_its)
        };
        // A span of no length, if the end does not say by its name that it ends an earlier one, and none was recorded in between.
        let name = shown[end].value["name"].as_str();
        let has_name = name.is_some_and(|name| !name.is_empty());
        let begun = match (last(false), last(true)) {
            (Some(earlier), Some(now)) if has_name || halves[earlier] > halves[now] => earlier,
            (Some(begun), None) | (_, Some(begun)) => begun,
            (None, None) => continue,
        };
        let begin = halves.remove(begun);
        let [start_ns, end_ns] = [begin, end].map(|event| shown[event].ts_ns());
        spans.push(Span::new(start_ns, end_ns, begin, Some(end)));
    }
    let unended = |event: usize| Span::new(shown[event].ts_ns(), i64::MAX, event, None);
    spans.extend(halves.into_iter().map(unended));
    spans.sort_by_key(|span| {
        let is_whole = phase(span.event) == "X" || span.has_no_length();
        let end = if is_whole { span.end } else { 0 };
        (span.start, !is_whole, Reverse(end), span.event)
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

/// Returns the spans that move. Of two that clash, this is the one with fewer children. If the numbers are equal, it is the one that clashes with a later span,
/// or else the shorter one. Children move with their parent.
fn outcasts(spans: &[Span]) -> BTreeSet<usize> {
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

/// Spans that do not move are on row 0. One that moves goes to the row of its parent if that moved, too, otherwise to an empty row. A span that never ends is
/// nobody's parent.
fn place(mut spans: Vec<Span>) -> Vec<Span> {
    let outcasts = outcasts(&spans);
    let mut rows: Vec<Vec<usize>> = vec![Vec::new()];
    for next in 0..spans.len() {
        let span = spans[next];
        let is_open = |other: &usize| spans[*other].end > span.start;
        rows.iter_mut().for_each(|row| row.retain(is_open));
        let will_end = |other: &usize| spans[*other].end < i64::MAX;
        let parent_on = |row: &Vec<usize>| {
            let contains = |other: &&usize| will_end(other) && spans[**other].end >= span.end;
            row.iter().rfind(contains).copied()
        };
        let fits = |row: &Vec<usize>| row.iter().all(|other| spans[*other].end >= span.end);
        let others = rows.iter().enumerate().skip(1);
        let fitting = others.filter(|(_, row)| fits(row));
        let best = fitting.clone().max_by_key(|(_, row)| parent_on(row));
        let empty = fitting
            .clone()
            .find(|(_, row)| !row.last().is_some_and(will_end));
        let row = match best {
            _ if !outcasts.contains(&next) => 0,
            Some((number, row)) if parent_on(row) > parent_on(&rows[0]) => number,
            _ => empty.map_or(rows.len(), |(number, _)| number),
        };
        rows.resize(rows.len().max(row + 1), Vec::new());
        rows[row].push(next);
        spans[next].row = row;
    }
    spans
}

/// The rows of flow events and instants.
fn points(shown: &[&Kept], numbers: &[usize], spans: &[Span]) -> Vec<(usize, usize)> {
    let mut points = Vec::new();
    for event in numbers.iter().copied() {
        let (value, time) = (&shown[event].value, shown[event].ts_ns());
        let begun = spans.partition_point(|span| span.start <= time);
        let is_open = |span: &Span| span.end >= time && span.end < i64::MAX;
        let open = spans[..begun].iter().rposition(is_open);
        let never_ends = |span: &Span| span.end == i64::MAX;
        let open = open.or_else(|| spans[..begun].iter().rposition(never_ends));
        let around = open.or(begun.checked_sub(1)).map(|at| &spans[at]);
        let of = match value["ph"].as_str().unwrap() {
            "f" if value["bp"] != "e" => spans.get(begun),
            "s" | "t" | "f" => around,
            "i" | "I" if value["s"] != "p" && value["s"] != "g" => around,
            _ => continue,
        };
        points.push((event, of.map_or(0, |span| span.row)));
    }
    points
}
