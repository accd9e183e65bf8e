//! Stitches the fragments of many processes into one Chrome trace that Perfetto opens.
//!
//! ```no_run
//! let options = trace_merge::Options::new(["profile_out".into()]);
//! let report = trace_merge::merge(&options)?;
//! println!("{} events, {} damaged places", report.events.total, report.damage.total);
//! # Ok::<(), trace_merge::Error>(())
//! ```
//!
//! `paths` name run directories, fragments and rings. [`merge`] reads the blocks and the ring of
//! each recorder, of live processes too, and counts every position once. The first pass indexes
//! chunks in parallel; a chunk ends at a newline. Then clocks and identities are settled, and spans
//! that a viewer would drop move to lanes next to their thread. The second pass copies every line
//! and replaces only its times and ids. After lines that carry a request's id, it writes the flows
//! that link them, unless their recorder wrote some.
//!
//! Every line that is an event is in the trace exactly once, and the order does not depend on the
//! number of threads. Every other line is counted by kind and position ([`Report`]). Lines are
//! never held in memory as events: heap usage is 20 MiB for 1 GB of trace, 30 MiB for 4 GB, plus
//! 240 to 490 bytes for each linked request. The positions of blocks, and everything that must be
//! sorted, go to temporary files beyond a few MiB. A trace appears under its name only when it is
//! complete. A merge that is killed leaves nothing behind if the file system supports unnamed
//! files.

mod app;
mod clock;
pub mod events;
mod identity;
mod lanes;
mod link;
mod pass;
#[cfg(test)]
#[path = "../reader/tests/support/sample.rs"]
mod sample;
mod select;
mod span;
mod write;

use trace_align as align;
use trace_base as base;
#[doc(inline)]
pub use trace_check as check;
use trace_event as event;
use trace_reader as reader;
use trace_reader::{device, foreign, fragment, summary};
use trace_store as store;

pub use app::bar::Bar;
pub use app::losses::report::LossReport;
pub use app::merge::{max_threads, merge, merge_with};
pub use app::report::{
    ClocksReport, DamageReport, EventTotals, InputReport, LossTotals, ProcessReport, RepairTotals,
    Report,
};
pub use base::access::use_recorded_mode;
pub use base::duration::{parse_duration, parse_error};
pub use base::out_of_memory::OrExit;
pub use base::plural::plural;
pub use base::progress::Progress;
pub use base::size::parse_size;
pub use clock::clocks::ClockBy;
pub use clock::moment::{Moment, parse_around, parse_moment};
pub use clock::placement::Placement;
pub use event::damage::{Damage, Kind};
pub use event::mend::Repair;
pub use event::{collective, json, line, scan};
pub use foreign::{ForeignReport, Offset, parse_offset};
pub use fragment::exit::{DeadProcess, Death, DeathKind, Deaths, Exit, first_killed};
pub use fragment::input::{LeftOut, Runs};
pub use fragment::{blocks, ring};
pub use lanes::assign::RowTotals;
pub use link::{LinkReport, LooseFlows};
pub use reader::error::Error;
pub use reader::snapshot::{SnapshotReport, snapshot};
#[doc(inline)]
pub use reader::{follow, survey};
pub use select::filter::{Filter, FilterReport};
pub use select::selection_args::SelectionArgs;
pub use select::window::WindowReport;
pub use write::addition::{AddedSpan, Addition};
pub use write::output::Unfinished;
pub use write::split::{OutputReport, PartReport};

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Destination of the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// `trace.json` in the run directory, or `trace.json.gz` if `gzip` is set.
    #[default]
    Default,
    /// A file; compressed if its name ends in `.gz`.
    File(PathBuf),
    /// The standard output.
    Stdout,
}

/// Inputs and options of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Run directories, fragment directories, fragments, patterns.
    pub paths: Vec<PathBuf>,
    /// Runs of the directories to merge.
    pub runs: Runs,
    /// Destination of the trace.
    pub output: Output,
    /// True to compress the trace even if its name does not end in `.gz`.
    pub gzip: bool,
    /// Way in which the trace is built from the recorded lines.
    pub mode: Mode,
    /// Options for the times of the trace.
    pub clocks: ClockOptions,
    /// True to settle the fragments of dead processes afterwards (FORMAT.md §4): the contents of
    /// their ring are appended and the ring is removed.
    pub settle: bool,
    /// Exits of the processes that the caller waited for, by pid. An exit is reported and stored in
    /// the process's fragments unless the process recorded its own end.
    pub exits: BTreeMap<i64, Exit>,
    /// Worker threads, 0 for one per core, but at most 16.
    pub threads: usize,
    /// Memory in bytes that the merge should not exceed, without the memory of [`Layout::Sorted`];
    /// 256 MiB by default. Links of requests use at most about 3/8 of it. If they need more, some
    /// requests are not linked, and the report counts them.
    pub memory: Option<u64>,
    /// True to write a trace without events if the inputs have none, instead of returning
    /// [`Error::NothingUsable`].
    pub allow_empty: bool,
}

/// Ways to build a trace from the lines of its inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Lines are copied as they were recorded, like pypto-serving's own merge does: in the order of
    /// the fragments' names, with their own times and ids. Objects that are not events are
    /// included, and nothing is added. Only the format's own records are left out, and flow ids are
    /// replaced by ones that viewers can read.
    Verbatim,
    /// Events are moved to a common time axis, and their processes and threads get new ids.
    Events(EventOptions),
}

/// Options for the events of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventOptions {
    /// Part of the run to show.
    pub window: Window,
    /// Filter that shown events must match.
    pub filter: Filter,
    /// Order of the events, and the number of files.
    pub layout: Layout,
    /// True to link the events of each request by flows, unless their recorders did so.
    pub link_requests: bool,
}

impl Default for EventOptions {
    /// Returns the options for all events of the run, with their requests linked.
    fn default() -> EventOptions {
        EventOptions {
            window: Window::default(),
            filter: Filter::default(),
            layout: Layout::default(),
            link_requests: true,
        }
    }
}

impl EventOptions {
    /// Returns true if some events are left out.
    fn is_part(&self) -> bool {
        !self.window.is_whole_run() || !self.filter.is_empty()
    }
}

/// A part of a run. All segments that may contain a span that overlaps it are read, unless they
/// begin more than `reach` after its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Window {
    /// The whole run.
    #[default]
    WholeRun,
    /// The last part of the run, up to its newest event.
    Last(Duration),
    /// Events that end after `from` and begin before `to`; the whole run if both are absent.
    Between {
        /// Begin of the window, by default the begin of the run.
        from: Option<Moment>,
        /// End of the window, by default the end of the run.
        to: Option<Moment>,
        /// Maximum time between the end of the window and the begin of a segment that is read.
        reach: Option<Duration>,
    },
    /// Both sides of a moment.
    Around {
        /// Middle of the window.
        moment: Moment,
        /// Length of each side.
        side: Duration,
        /// Maximum time between the end of the window and the begin of a segment that is read.
        reach: Option<Duration>,
    },
}

impl Window {
    fn is_whole_run(&self) -> bool {
        match self {
            Window::WholeRun => true,
            Window::Between { from, to, .. } => from.is_none() && to.is_none(),
            Window::Last(_) | Window::Around { .. } => false,
        }
    }

    fn reach(&self) -> Option<Duration> {
        match *self {
            Window::Between { reach, .. } | Window::Around { reach, .. } => reach,
            Window::WholeRun | Window::Last(_) => None,
        }
    }
}

/// Order of the events in a trace, and the number of its files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// The events of each process are in the order in which it wrote them.
    #[default]
    Recorded,
    /// All events are sorted by time. Recorded metadata comes first and what the merge adds comes last. Events with the same time keep the order that they
    /// have in a trace that is not sorted.
    Sorted {
        /// Memory in bytes for sorting.
        memory: u64,
    },
    /// The trace is cut in time into several files: `trace.1.json` and so on, numbered before the suffix of the output, which must not be the standard output.
    Parts {
        /// Maximum bytes of text in each file, if its events allow that.
        bytes: u64,
    },
}

/// Options for the times of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockOptions {
    /// Evidence by which the clocks of several hosts are brought together.
    pub by: ClockBy,
    /// Maximum error of the wall clock of a host after it was last set, by default 10 ms. It is part of every uncertainty in the report, and bounds how far
    /// flows may move a host.
    pub wall_error: Option<Duration>,
    /// Durations to add to the times of traces of other profilers, in addition to whatever aligns
    /// them. If nothing aligns them, their times are taken as the monotonic clock of the host whose
    /// main process is merged.
    pub offsets: Vec<Offset>,
    /// True to show an event that is more than 30 days away from all others of its recording.
    /// Otherwise it counts as damage.
    pub keep_times: bool,
}

/// The default of [`Options::memory`].
const DEFAULT_MEMORY: u64 = 256 << 20;

impl Options {
    /// Creates options to merge `paths` into the run directory's `trace.json` and to settle what
    /// dead processes left.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Options {
        Options {
            paths: paths.into_iter().collect(),
            runs: Runs::default(),
            output: Output::default(),
            gzip: false,
            mode: Mode::Events(EventOptions::default()),
            clocks: ClockOptions::default(),
            settle: true,
            exits: BTreeMap::new(),
            threads: 0,
            memory: None,
            allow_empty: false,
        }
    }

    fn is_verbatim(&self) -> bool {
        self.mode == Mode::Verbatim
    }

    /// Returns the options for the events. In verbatim mode all lines are shown, and none are
    /// linked.
    fn events(&self) -> Cow<'_, EventOptions> {
        match &self.mode {
            Mode::Events(events) => Cow::Borrowed(events),
            Mode::Verbatim => Cow::Owned(EventOptions {
                link_requests: false,
                ..EventOptions::default()
            }),
        }
    }

    /// Returns the maximum memory of links of requests, in bytes.
    fn link_bytes(&self) -> usize {
        let memory = self.memory.unwrap_or(DEFAULT_MEMORY);
        usize::try_from(memory / 8 * 3).unwrap_or(usize::MAX)
    }
}
