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
