//! Spans that were open at the end of a recording.

use crate::event::line::parse_canonical;
use crate::fragment::ring::OpenSpan;
use sa_format::{LANE_BASE, Phase, TRACK_BASE};
use std::collections::HashSet;

/// Spans that ended after the ring was read, by [`key`].
#[derive(Default)]
pub(super) struct EndedSpans(HashSet<(i64, i64)>);

impl EndedSpans {
    /// Adds the spans whose lines are in `lines`, which were flushed after the ring was copied. The copy may still list these spans as open.
    pub(super) fn add_lines(&mut self, lines: &[u8]) {
        let spans = lines
            .split(|byte| *byte == b'\n')
            .filter_map(parse_canonical)
            .filter(|event| matches!(event.phase, Phase::Complete | Phase::Begin));
        self.0
            .extend(spans.map(|event| key(event.tid, event.ts_ns)));
    }

    pub(super) fn contains(&self, span: &OpenSpan) -> bool {
        let start_ns = i64::try_from(span.start_ns).unwrap_or(i64::MAX);
        self.0.contains(&key(span.tid.into(), start_ns))
    }
}

/// Returns the key of a span within its process. Spans on lanes are identified by their start time only, because a span may be shown on another lane
/// until it ends.
fn key(tid: i64, start_ns: i64) -> (i64, i64) {
    let is_lane = (i64::from(LANE_BASE)..i64::from(TRACK_BASE)).contains(&tid);
    (if is_lane { LANE_BASE.into() } else { tid }, start_ns)
}

/// Formats open spans as canonical lines of unfinished spans.
pub(super) fn open_lines<'a>(pid: u32, open: impl Iterator<Item = &'a OpenSpan>) -> Vec<u8> {
    let mut lines = Vec::new();
    for span in open {
        let (us, ns) = (span.start_ns / 1000, span.start_ns % 1000);
        let (tid, label, args) = (span.tid, &span.label, &span.args);
        let comma = if args.is_empty() { "" } else { "," };
        let line = format!(
            "{{\"ph\":\"B\",\"pid\":{pid},\"tid\":{tid},\"ts\":{us}.{ns:03},{label},\"args\":{{{args}{comma}\"unfinished\":true}}}}\n"
        );
        lines.extend_from_slice(line.as_bytes());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_that_ended_beyond_the_snapshot_is_not_open() {
        let ended = [2, LANE_BASE + 1].map(|tid| {
            format!(
                r#"{{"ph":"X","pid":1,"tid":{tid},"ts":1.500,"dur":1.000,"name":"n","cat":"c"}}"#
            )
        });
        let mut ended_spans = EndedSpans::default();
        ended_spans.add_lines((ended.join("\n") + "\n").as_bytes());
        for (tid, start_ns, has_ended) in [
            (2, 1500, true),
            (3, 1500, false),
            (2, 1501, false),
            // It may be shown on another lane.
            (LANE_BASE + 7, 1500, true),
            (LANE_BASE + 7, 1501, false),
        ] {
            let span = OpenSpan {
                tid,
                start_ns,
                ..OpenSpan::default()
            };
            assert_eq!(ended_spans.contains(&span), has_ended, "{span:?}");
        }
    }
}
