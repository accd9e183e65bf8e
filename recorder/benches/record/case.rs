//! The cases: what each does, in how many threads, how often.

/// What a case repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// A span with one integer argument, on a warmed file.
    Span,
    /// The same until the fragment holds [`SUSTAINED_BYTES`].
    Sustained,
    /// The first spans of a process: nothing is warm.
    Cold,
    /// An instant with one integer argument.
    Instant,
    /// A span on a lane of its own, with one integer argument.
    AsyncSpan,
    /// A span within such a one, named at run time.
    AsyncChild,
    /// A span while no variable turns recording on.
    Disabled,
    /// A span of a level that is not selected.
    Filtered,
    /// The crate tracing-chrome.
    TracingChrome,
    /// The crate fastrace with a reporter that writes lines.
    Fastrace,
    /// What one would write by hand: a mutex, a buffered file, `serde_json`.
    MutexSerde,
}

/// Bytes of lines in one round of [`Work::Sustained`].
pub(crate) const SUSTAINED_BYTES: u64 = 1_000_000_000;

/// One case of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) work: Work,
    pub(crate) threads: usize,
    /// Spans per round and thread.
    pub(crate) spans: u64,
    /// Rounds measured in one child.
    pub(crate) rounds: u32,
    /// Children per pass.
    pub(crate) children: u32,
}

impl Case {
    const fn new(name: &'static str, work: Work) -> Self {
        Case {
            name,
            work,
            threads: 1,
            spans: 40_000,
            rounds: 9,
            children: 1,
        }
    }

    /// Tells whether our recorder writes a fragment in this case.
    pub(crate) fn records(&self) -> bool {
        matches!(
            self.work,
            Work::Span
                | Work::Sustained
                | Work::Cold
                | Work::Instant
                | Work::AsyncSpan
                | Work::AsyncChild
                | Work::Filtered
        )
    }

    /// The rounds that precede the measured ones.
    pub(crate) fn warm_rounds(&self) -> u32 {
        match self.work {
            Work::Sustained | Work::Cold => 0,
            _ => 3,
        }
    }
}

/// Every case, in the table's order.
pub(crate) const CASES: [Case; 13] = [
    Case::new("span_1arg_1t", Work::Span),
    Case {
        threads: 2,
        ..Case::new("span_1arg_2t", Work::Span)
    },
    Case {
        threads: 8,
        ..Case::new("span_1arg_8t", Work::Span)
    },
    Case {
        rounds: 1,
        children: 5,
        ..Case::new("span_sustained_1gb", Work::Sustained)
    },
    Case {
        rounds: 1,
        children: 7,
        ..Case::new("span_cold", Work::Cold)
    },
    Case::new("instant", Work::Instant),
    Case::new("async_span", Work::AsyncSpan),
    Case::new("async_child", Work::AsyncChild),
    Case {
        spans: 2_000_000,
        ..Case::new("disabled", Work::Disabled)
    },
    Case {
        spans: 2_000_000,
        ..Case::new("filtered", Work::Filtered)
    },
    Case::new("peer_tracing_chrome", Work::TracingChrome),
    Case::new("peer_fastrace", Work::Fastrace),
    Case::new("peer_mutex_serde", Work::MutexSerde),
];

/// Finds a case by name.
pub(crate) fn find(name: &str) -> Option<&'static Case> {
    CASES.iter().find(|case| case.name == name)
}
