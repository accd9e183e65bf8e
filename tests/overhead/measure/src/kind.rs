//! The kinds of events, and the hooks around each event that a recorder repeats.

/// What is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A span without arguments.
    Span,
    /// A span with one integer argument, the step.
    Span1,
    /// A span with three arguments: the step, a short text and a fraction.
    Span3,
    /// An instant with one integer argument.
    Instant,
    /// A counter of one series.
    Counter,
    /// One event of a flow.
    Flow,
    /// A span on a lane of its own, begun and ended.
    Async,
    /// A span while nothing turns recording on.
    Off,
    /// A span of a level that is not selected.
    Filtered,
}

impl Kind {
    /// Every kind, in the order of the tables.
    pub const ALL: [Kind; 9] = [
        Kind::Span,
        Kind::Span1,
        Kind::Span3,
        Kind::Instant,
        Kind::Counter,
        Kind::Flow,
        Kind::Async,
        Kind::Off,
        Kind::Filtered,
    ];

    /// The kinds that every recorder has.
    pub const SPANS: [Kind; 3] = [Kind::Span, Kind::Span1, Kind::Span3];

    /// The word for it on a command line.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Span => "span",
            Kind::Span1 => "span1",
            Kind::Span3 => "span3",
            Kind::Instant => "instant",
            Kind::Counter => "counter",
            Kind::Flow => "flow",
            Kind::Async => "async",
            Kind::Off => "off",
            Kind::Filtered => "filtered",
        }
    }

    /// Finds a kind by its word.
    pub fn find(word: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// Whether a recorder writes something for it.
    pub fn writes(self) -> bool {
        !matches!(self, Kind::Off | Kind::Filtered)
    }
}

/// Hooks into each step of a recorder's loop.
pub trait Beat {
    /// Called directly before the event of `step`.
    #[inline(always)]
    fn before(&mut self, step: u64) {
        let _ = step;
    }

    /// Called directly after the event of `step` is complete.
    #[inline(always)]
    fn after(&mut self, step: u64) {
        let _ = step;
    }
}

/// Nothing: the loop runs as fast as it can.
#[derive(Clone, Copy, Debug)]
pub struct Free;

impl Beat for Free {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_find_their_kinds() {
        for kind in Kind::ALL {
            assert_eq!(Kind::find(kind.word()), Some(kind));
        }
        assert_eq!(Kind::find("span9"), None);
    }
}
