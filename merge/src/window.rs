//! The last part of a run: which lines are in it, after the first pass has seen all of them.

use crate::index::{Index, index_kept};
use crate::line::Event;
use crate::link::Collector;
use crate::progress::Progress;
use crate::scan::{Found, scan_part};
use crate::source::{Chunk, Source};
use rayon::prelude::*;
use serde::Serialize;
use std::time::Duration;

/// What a window shows and what it leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WindowReport {
    /// Its length in ns, up to the newest event of all processes.
    pub last_ns: u64,
    /// Segments that cannot reach into it; their events are not counted.
    pub segments_left_out: u64,
    /// Events that ended before it.
    pub events_left_out: u64,
    /// Spans that began before it and are shown whole, with `"sa_cut":true` in their args.
    pub spans_cut: u64,
}

/// Where an event lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lies {
    Inside,
    /// A span that began before the window and ended in it.
    Across,
    Before,
}

/// Tells where an event lies if the window begins at `edge_ns`, in its recording's own time. What has no time, or no end, is shown in any case.
pub(crate) fn lies(event: &Event<'_>, edge_ns: i64) -> Lies {
    if event.is_metadata() || event.ts_ns >= edge_ns || event.is_unfinished() {
        return Lies::Inside;
    }
    match event.ts_ns.saturating_add(event.dur_ns) >= edge_ns {
        true => Lies::Across,
        false => Lies::Before,
    }
}

/// The begin of the window in each recording's own time: `last` before the newest event of all. `shifts_ns` bring them to one time axis.
fn edges(indexes: &[Index], shifts_ns: &[i64], last_ns: i64) -> Option<Vec<i64>> {
    let ends = indexes.iter().zip(shifts_ns).flat_map(|(index, shift_ns)| {
        let timed = index
            .threads
            .values()
            .filter(|activity| activity.first_ns != i64::MAX);
        timed.map(|activity| activity.last_ns.saturating_add(*shift_ns))
    });
    let edge_ns = ends.max()?.saturating_sub(last_ns);
    Some(
        shifts_ns
            .iter()
            .map(|shift_ns| edge_ns.saturating_sub(*shift_ns))
            .collect(),
    )
}

/// Narrows sources and chunks to the window; chunks without anything in it are not read again. `links` takes the requests of what is shown.
pub(crate) fn narrow(
    last: Duration,
    (indexes, shifts_ns): (&[Index], &[i64]),
    sources: &mut [Source<'_>],
    chunks: &mut [Chunk],
    links: Option<&Collector<'_>>,
    progress: &Progress,
) -> WindowReport {
    let last_ns = i64::try_from(last.as_nanos()).unwrap_or(i64::MAX);
    let mut report = WindowReport {
        last_ns: last_ns.unsigned_abs(),
        ..WindowReport::default()
    };
    let Some(edges) = edges(indexes, shifts_ns, last_ns) else {
        return report;
    };
    let all: u64 = indexes.iter().map(Index::events).sum();
    let kept: Vec<(Index, u64)> = {
        let sources = &*sources;
        let chunk = |chunk: &mut Chunk| {
            let source = &sources[chunk.source];
            progress.add(chunk.len(), 0);
            chunk.narrow(edges[source.recording]);
            kept(source, chunk, links)
        };
        chunks.par_iter_mut().map(chunk).collect()
    };
    sources
        .iter_mut()
        .for_each(|source| source.index.forget_events());
    for (chunk, (index, cut)) in chunks.iter_mut().zip(kept) {
        chunk.events = index.events();
        report.spans_cut += cut;
        sources[chunk.source].index.add_events(index);
    }
    let shown: u64 = sources.iter().map(|source| source.index.events()).sum();
    report.events_left_out = all - shown;
    report
}

/// What a chunk shows, and how many of its spans are cut.
fn kept(source: &Source<'_>, chunk: &Chunk, links: Option<&Collector<'_>>) -> (Index, u64) {
    let Some(edge_ns) = chunk.edge_ns else {
        return (Index::default(), 0);
    };
    let mut cut = 0;
    for part in &chunk.parts {
        scan_part(source.bytes, *part, |_, found| {
            if let Found::Event(event) = found {
                cut += u64::from(lies(&event, edge_ns) == Lies::Across);
            }
        });
    }
    let gather = links.map(|links| links.gather(chunk, source));
    let index = index_kept(source.bytes, &chunk.parts, gather, |event| {
        lies(event, edge_ns) != Lies::Before
    });
    (index, cut)
}

/// Marks the line of a cut span, which begins at `start` of `out`, in its args.
pub(crate) fn mark_cut(out: &mut Vec<u8>, start: usize) {
    const MARK: &[u8] = br#""sa_cut":true"#;
    let line = &out[start..];
    let Some(fields) = crate::json::scan_object(line) else {
        return;
    };
    let (at, text) = match fields.args.of(line) {
        b"" => match memchr::memrchr(b'}', line) {
            Some(end) => (end, [br#","args":{"#, MARK, b"}"].concat()),
            None => return,
        },
        [b'{', inside @ .., b'}'] if inside.trim_ascii().is_empty() => {
            (fields.args.end - 1, MARK.to_vec())
        }
        [b'{', ..] => (fields.args.end - 1, [b",", MARK].concat()),
        _ => return, // args that are no object have no room for it
    };
    out.splice(start + at..start + at, text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::parse;

    #[test]
    fn events_lie_before_across_or_inside() {
        let event = |text: &str, edge_ns| lies(&parse(text.as_bytes()).unwrap(), edge_ns);
        let span = r#"{"ph":"X","pid":1,"tid":1,"ts":5.000,"dur":2.000,"name":"a"}"#;
        let at = [4_999, 5_000, 5_001, 7_000, 7_001].map(|edge_ns| event(span, edge_ns));
        assert_eq!(
            at,
            [
                Lies::Inside,
                Lies::Inside,
                Lies::Across,
                Lies::Across,
                Lies::Before
            ]
        );
        let instant = r#"{"ph":"i","pid":1,"tid":1,"ts":5.000,"s":"t","name":"a"}"#;
        assert_eq!(
            [5_000, 5_001].map(|edge_ns| event(instant, edge_ns)),
            [Lies::Inside, Lies::Before]
        );
        let open = r#"{"ph":"B","pid":1,"tid":1,"ts":5.000,"name":"a","args":{"unfinished":true}}"#;
        let name = r#"{"ph":"M","pid":1,"tid":1,"name":"process_name","args":{"name":"a"}}"#;
        assert_eq!(
            [open, name].map(|line| event(line, i64::MAX)),
            [Lies::Inside; 2]
        );
    }

    #[test]
    fn a_cut_span_says_so_in_its_args() {
        for (line, expected) in [
            (
                r#"{"ph":"X","args":{"n":1}}"#,
                r#"{"ph":"X","args":{"n":1,"sa_cut":true}}"#,
            ),
            (
                r#"{"ph":"X","args":{ }, "ts":1}"#,
                r#"{"ph":"X","args":{ "sa_cut":true}, "ts":1}"#,
            ),
            (
                r#"{"ph":"X","cat":"}}"}"#,
                r#"{"ph":"X","cat":"}}","args":{"sa_cut":true}}"#,
            ),
            (r#"{"ph":"X","args":5}"#, r#"{"ph":"X","args":5}"#),
        ] {
            let mut out = b"before,".to_vec();
            out.extend_from_slice(line.as_bytes());
            mark_cut(&mut out, 7);
            assert_eq!(
                String::from_utf8(out).unwrap(),
                format!("before,{expected}")
            );
        }
    }
}
