//! A time window, and the position of an event relative to it.

use crate::event::Event;
use sa_format::Phase;

/// First and last ns of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edges {
    /// First ns.
    pub from_ns: i64,
    /// Last ns.
    pub to_ns: i64,
}

/// Position of an event relative to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Inside the window.
    Inside,
    /// A span that crosses an edge of the window.
    Across,
    /// Before or after the window.
    Outside,
}

impl Edges {
    /// A window without edges.
    pub const OPEN: Edges = Edges {
        from_ns: i64::MIN,
        to_ns: i64::MAX,
    };

    /// Returns the position of an event on the same time axis. Metadata and CPU profiles are always inside. Spans without an end last until the end of the window.
    #[inline]
    pub fn relation(self, event: &Event<'_>) -> Relation {
        let (start, end) = (event.ts_ns, event.ts_ns.saturating_add(event.dur_ns));
        if event.is_in_every_part() || start >= self.from_ns && end <= self.to_ns {
            return Relation::Inside;
        }
        if start > self.to_ns {
            return Relation::Outside;
        }
        match end >= self.from_ns {
            true => Relation::Across,
            false if event.is_unfinished() => Relation::Inside,
            false => Relation::Outside,
        }
    }

    /// Returns the part of an event that is inside the window, or `None` if nothing has to be cut off.
    ///
    /// A begin without an end is moved to 1 ns before the first edge. If two spans begin together, viewers consider a complete span to be the outer one.
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

    /// Converts the window to a time axis on which times are less than on this one by `shift_ns`.
    #[inline]
    pub fn unshifted(self, shift_ns: i64) -> Edges {
        self.moved(|ns| ns.saturating_sub(shift_ns))
    }

    /// Converts the window to another time axis. An open edge stays open.
    #[inline]
    pub fn moved(self, time: impl Fn(i64) -> i64) -> Edges {
        let moved = |ns: i64, open: i64| if ns == open { open } else { time(ns) };
        Edges {
            from_ns: moved(self.from_ns, i64::MIN),
            to_ns: moved(self.to_ns, i64::MAX),
        }
    }
}
