//! A stretch of time, and where an event lies in it.

use crate::event::Event;
use sa_format::Phase;

/// The first and the last ns of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edges {
    /// The first ns.
    pub from_ns: i64,
    /// The last ns.
    pub to_ns: i64,
}

/// Where an event lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lies {
    /// Between the edges.
    Inside,
    /// A span that crosses an edge.
    Across,
    /// Before or behind the window.
    Outside,
}

impl Edges {
    /// All of time.
    pub const OPEN: Edges = Edges {
        from_ns: i64::MIN,
        to_ns: i64::MAX,
    };

    /// Tells where an event of the same time axis lies. Metadata and CPU profiles are shown in any case, what has no end from its begin on.
    #[inline]
    pub fn lies(self, event: &Event<'_>) -> Lies {
        let (start, end) = (event.ts_ns, event.ts_ns.saturating_add(event.dur_ns));
        if event.is_in_every_part() || start >= self.from_ns && end <= self.to_ns {
            return Lies::Inside;
        }
        if start > self.to_ns {
            return Lies::Outside;
        }
        match end >= self.from_ns {
            true => Lies::Across,
            false if event.is_unfinished() => Lies::Inside,
            false => Lies::Outside,
        }
    }

    /// Returns what is shown of an event that crosses an edge: the part between the edges. Returns `None` for any other event.
    ///
    /// A begin without an end goes 1 ns before the first edge: of two events with one time, viewers take the complete span for the outer one.
    pub fn cut<'a>(self, event: &Event<'a>) -> Option<Event<'a>> {
        if event.is_in_every_part() {
            return None;
        }
        let first_ns = match event.phase {
            Phase::Begin => self.from_ns.saturating_sub(1),
            _ => self.from_ns,
        };
        let end_ns = event.ts_ns.saturating_add(event.dur_ns).min(self.to_ns);
        let ts_ns = event.ts_ns.max(first_ns).min(self.to_ns);
        let cut = Event {
            ts_ns,
            dur_ns: end_ns.saturating_sub(ts_ns).max(0),
            rounds_dur: event.rounds_dur
                || event.phase == Phase::Complete && event.fields.dur.is_some(),
            ..*event
        };
        let is_cut = (cut.ts_ns, cut.dur_ns) != (event.ts_ns, event.dur_ns);
        is_cut.then_some(cut)
    }

    /// The same in a time that needs `shift_ns` to get to this one.
    #[inline]
    pub fn unshifted(self, shift_ns: i64) -> Edges {
        self.moved(|ns| ns.saturating_sub(shift_ns))
    }

    /// The same in another time; where there is no edge there is none.
    #[inline]
    pub fn moved(self, time: impl Fn(i64) -> i64) -> Edges {
        let moved = |ns: i64, open: i64| if ns == open { open } else { time(ns) };
        Edges {
            from_ns: moved(self.from_ns, i64::MIN),
            to_ns: moved(self.to_ns, i64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::parse;

    const SAMPLES: &str = r#"{"ph":"P","pid":1,"tid":1,"ts":5.000,"name":"ProfileChunk","args":{"data":{"cpuProfile":{}}}}"#;

    fn lies(text: &str, from_ns: i64, to_ns: i64) -> Lies {
        Edges { from_ns, to_ns }.lies(&parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn events_lie_outside_across_or_inside() {
        let span = r#"{"ph":"X","pid":1,"tid":1,"ts":5.000,"dur":2.000,"name":"a"}"#;
        for (from_ns, to_ns, expected) in [
            (4_999, 9_000, Lies::Inside),
            (5_000, 7_000, Lies::Inside),
            (5_001, 9_000, Lies::Across),
            (7_000, 9_000, Lies::Across),
            (7_001, 9_000, Lies::Outside),
            (0, 6_999, Lies::Across),
            (0, 5_000, Lies::Across),
            (0, 4_999, Lies::Outside),
            (5_500, 5_600, Lies::Across),
        ] {
            assert_eq!(lies(span, from_ns, to_ns), expected, "{from_ns} {to_ns}");
        }
        let instant = r#"{"ph":"i","pid":1,"tid":1,"ts":5.000,"s":"t","name":"a"}"#;
        let at = [(5_000, 5_000), (5_001, 9_000), (0, 4_999)];
        let expected = [Lies::Inside, Lies::Outside, Lies::Outside];
        assert_eq!(at.map(|(from, to)| lies(instant, from, to)), expected);
    }

    #[test]
    fn a_span_is_cut_at_both_edges() {
        let cut = |text: &str, from_ns, to_ns| {
            let event = parse(text.as_bytes()).unwrap();
            let cut = Edges { from_ns, to_ns }.cut(&event);
            cut.map(|cut| (cut.ts_ns, cut.dur_ns))
        };
        let span = r#"{"ph":"X","pid":1,"tid":1,"ts":5.000,"dur":2.000,"name":"a"}"#;
        let open = r#"{"ph":"B","pid":1,"tid":1,"ts":5.000,"name":"a"}"#;
        let name = r#"{"ph":"M","pid":1,"tid":1,"name":"process_name","args":{"name":"a"}}"#;
        for (text, from_ns, to_ns, expected) in [
            (span, 5_000, 7_000, None),
            (span, i64::MIN, i64::MAX, None),
            (span, 6_000, 9_000, Some((6_000, 1_000))),
            (span, 0, 6_500, Some((5_000, 1_500))),
            (span, 5_500, 5_600, Some((5_500, 100))),
            (span, 7_000, 9_000, Some((7_000, 0))),
            (open, 6_000, 9_000, Some((5_999, 0))),
            (open, 5_001, 9_000, None),
            (name, 6_000, 9_000, None),
            (SAMPLES, 6_000, 9_000, None),
        ] {
            assert_eq!(
                cut(text, from_ns, to_ns),
                expected,
                "{text} {from_ns} {to_ns}"
            );
        }
    }

    #[test]
    fn what_has_no_end_or_no_time_or_is_a_profile_stays() {
        let open = r#"{"ph":"B","pid":1,"tid":1,"ts":5.000,"name":"a","args":{"unfinished":true}}"#;
        let name = r#"{"ph":"M","pid":1,"tid":1,"name":"process_name","args":{"name":"a"}}"#;
        for line in [open, name, SAMPLES] {
            assert_eq!(lies(line, i64::MAX, i64::MAX), Lies::Inside);
        }
        assert_eq!(lies(SAMPLES, 0, 4_999), Lies::Inside);
        assert_eq!(lies(open, 0, 4_999), Lies::Outside);
        assert_eq!(lies(name, 0, 4_999), Lies::Inside);
    }
}
