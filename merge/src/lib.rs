//! Stitches the fragments of many processes into one Chrome trace that Perfetto opens.
//!
//! ```no_run
//! let options = trace_merge::Options::new(["profile_out".into()]);
//! let report = trace_merge::merge(&options)?;
//! println!("{} events, {} damaged places", report.events_total, report.damage_total);
//! # Ok::<(), trace_merge::Error>(())
//! ```
//!
//! Paths lead to fragments and their rings; [`merge`] reads both, of live processes too. The blocks and the ring of each recorder are put together so that
//! every position counts once. The first pass indexes chunks, cut at newlines, in parallel. Then clocks and identities are settled, and spans that a viewer
//! would drop get rows beside their thread. The second pass copies every line and replaces only its times and ids. Behind the lines that carry the id of a
//! request it writes flows that link them, where their recorder wrote none.
//!
//! Every line that is an event is in the trace, once, in the same order whatever the number of threads. Every line that is not is counted, by kind and place
//! ([`Report`]). Lines are never held in memory as events (20 MiB of heap for 1 GB of trace, 30 for 4, and 240 to 490 bytes for each request to link). Where the blocks of the recorders lie, and what has to
//! be sorted, goes through temporary files beyond a few MiB. A trace appears under its name only when it is whole. A merge that is killed leaves nothing
//! behind, where the file system has files without a name.

mod app;
mod clock;
pub mod events;
mod identity;
mod lanes;
mod link;
mod pass;
#[cfg(test)]
#[path = "../reader/src/fragment/sample.rs"]
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
pub use app::merge::{merge, merge_with, most_threads};
pub use app::report::{InputReport, ProcessReport, Report};
pub use base::duration::{parse_duration, parse_error};
pub use base::out_of_memory::OrExit;
pub use base::private_mode::use_recorded_mode;
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
pub use link::{LinkReport, LooseFlows};
pub use reader::error::Error;
pub use reader::snapshot::{SnapshotReport, snapshot};
#[doc(inline)]
pub use reader::{follow, survey};
pub use select::filter::{Filter, FilterReport};
pub use select::selection_args::{FilterArgs, SelectionArgs};
pub use select::window::WindowReport;
pub use write::output::Unfinished;
pub use write::split::report::PartReport;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Where the trace goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// `trace.json` in the run directory, `trace.json.gz` if it is to be compressed.
    #[default]
    Default,
    /// A file; compressed if its name ends in `.gz`.
    File(PathBuf),
    /// The standard output.
    Stdout,
}

/// What to merge and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Run directories, fragment directories, fragments, patterns.
    pub paths: Vec<PathBuf>,
    /// Where the trace goes.
    pub output: Output,
    /// Whether it is compressed even if its name does not end in `.gz`.
    pub gzip: bool,
    /// Writes the trace in parts that are cut in time, each of at most so many bytes of text, if its events allow: `trace.1.json` and so on, numbered in
    /// front of the output's suffix. Not to the standard output, and not together with `verbatim`.
    pub split: Option<u64>,
    /// Which runs of the directories.
    pub runs: Runs,
    /// Worker threads, 0 for one per core, but at most 16.
    pub threads: usize,
    /// Only the last part of the run, up to its newest event.
    pub last: Option<Duration>,
    /// Only what reaches beyond this moment. Not together with `last`.
    pub from: Option<Moment>,
    /// Only what begins up to this moment. Not together with `last`.
    pub to: Option<Moment>,
    /// Only so much of both sides of a moment. Not together with `last`, `from` and `to`.
    pub around: Option<(Moment, Duration)>,
    /// Time after a window within which segments are read for spans that overlap the window. By default all segments that may contain
    /// such a span are read.
    pub reach: Option<Duration>,
    /// Only some of the events.
    pub filter: Filter,
    /// What to add to the times of traces of other profilers: on top of what places them, else to get the monotonic clock of the host whose main process is merged.
    pub offsets: Vec<Offset>,
    /// By what the clocks of several hosts are brought together.
    pub clock: ClockBy,
    /// How far the wall clock of a host may be from the truth after it was last set; 10 ms if that is not said. It is part of every uncertainty that
    /// is stated, and bounds how far flows may move a host.
    pub wall_error: Option<Duration>,
    /// Whether an event whose time lies more than 30 days from all others of its recording is shown as well, instead of being damage.
    pub keep_times: bool,
    /// Whether fragments of dead processes are settled afterwards (FORMAT.md §4): their ring's contents appended, the ring removed.
    pub settle: bool,
    /// Exits of the processes that the caller waited for, by pid. Each is reported if the process did not say that it ended, and kept in its fragments.
    pub exits: BTreeMap<i64, Exit>,
    /// Whether lines are copied as they stand, as pypto-serving's own merge does: in the order of the fragments' names, with the times and ids they have, objects
    /// that are no events included, and nothing added. Only the format's own records are left out, and flow ids are made ones that viewers read.
    /// Not together with a window or a filter.
    pub verbatim: bool,
    /// Whether flows link the events of each request, where their recorders wrote none. Not with `verbatim`, which adds nothing.
    pub link_requests: bool,
    /// Writes all events in the order of their times, and sorts them in this many bytes of memory. Recorded metadata comes first and what the merge adds comes
    /// last; events of one time keep the order that they have without this. Without it, each process's events are in the order in which it wrote them. Not
    /// together with `verbatim` or `split`.
    pub sort: Option<u64>,
    /// The memory in bytes that the merge should not exceed, without what `sort` takes; 256 MiB by default. Links of requests take about 3/8 of it at most. If they
    /// need more, some requests are not linked, and the report counts them.
    pub memory: Option<u64>,
    /// Whether inputs without an event give a trace without events, instead of [`Error::NothingUsable`].
    pub allow_empty: bool,
}

/// The default of [`Options::memory`].
const DEFAULT_MEMORY: u64 = 256 << 20;

impl Options {
    /// Merges `paths` into the run directory's `trace.json` and settles what is left of dead processes.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Options {
        Options {
            paths: paths.into_iter().collect(),
            settle: true,
            link_requests: true,
            ..Options::default()
        }
    }

    /// Returns true if the merge writes flows of its own.
    fn links(&self) -> bool {
        self.link_requests && !self.verbatim
    }

    /// Returns the maximum memory of links of requests, in bytes.
    fn link_bytes(&self) -> usize {
        let memory = self.memory.unwrap_or(DEFAULT_MEMORY);
        usize::try_from(memory / 8 * 3).unwrap_or(usize::MAX)
    }
}
