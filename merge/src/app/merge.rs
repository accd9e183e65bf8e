//! A merge from its paths to the trace.

mod passes;

use crate::app::report::Report;
use crate::app::report::sources::{CHANGED, add_changes};
use crate::app::validate::describe;
use crate::base::progress::Progress;
use crate::event::damage::Kind;
use crate::foreign::{self, ForeignOptions, ForeignReport};
use crate::fragment::assemble::assemble_all;
use crate::fragment::file::Fragment;
use crate::fragment::input::{self, Inputs};
use crate::fragment::load::open;
use crate::fragment::recording::Recording;
use crate::fragment::settle::{ProcessEnd, settle};
use crate::link::Collector;
use crate::select::segments::choose_segments;
use crate::write::addition::Addition;
use crate::write::output::folder;
use crate::write::split::reject_split;
use crate::write::writer::Job;
use crate::{Error, EventOptions, Options, Runs};
use passes::Merge;
use rayon::ThreadPool;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};

/// Merges fragments into one trace.
///
/// # Errors
/// Returns an error if nothing could be read, if the output is one of the inputs, or if the trace
/// could not be written. Damage is not an error.
pub fn merge(options: &Options) -> Result<Report, Error> {
    merge_with(options, &Progress::default())
}

/// Merges fragments into one trace, and counts its progress in `progress`.
///
/// # Errors
/// Returns the same errors as [`merge`].
pub fn merge_with(options: &Options, progress: &Progress) -> Result<Report, Error> {
    let read = |_: &ReadyTrace<'_>| Ok(((), Addition::default()));
    let ((), report) = run(Outcome::Trace, options, progress, read)?;
    Ok(report)
}

/// Purpose of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The trace, and its events for the caller.
    Trace,
    /// Only the events.
    Events,
}

/// A trace that is ready to be written: everything about it is decided.
#[derive(Clone, Copy)]
pub(crate) struct ReadyTrace<'a> {
    pub(crate) job: Job<'a>,
    pub(crate) report: &'a Report,
    /// Time at which it begins, in ns since 1970, if there is an anchor of the reference host.
    pub(crate) base_unix_ns: Option<i64>,
    pub(crate) pool: &'a ThreadPool,
    /// Folders for temporary files.
    pub(crate) folders: &'a [PathBuf],
}

/// Merges fragments. Calls `read` with the trace before it is written, and adds what it returns.
/// The steps are: find and open the inputs, choose the segments, index them, decide about the
/// trace, and write it.
///
/// # Errors
/// Returns the same errors as [`merge`], and those of `read`.
pub(crate) fn run<T>(
    outcome: Outcome,
    options: &Options,
    progress: &Progress,
    mut read: impl FnMut(&ReadyTrace<'_>) -> Result<(T, Addition), Error>,
) -> Result<(T, Report), Error> {
    if outcome == Outcome::Trace {
        reject_split(options)?;
    }
    let pool = &thread_pool(options)?;
    let events = &*options.events();
    let mut inputs = input::find(&options.paths, &options.runs);
    let folders = folders(options, &inputs);
    let mut report = Report {
        version: env!("CARGO_PKG_VERSION"),
        ..Report::default()
    };
    let (mut recordings, foreign) = open_all(options, &mut inputs, &folders, &mut report)?;
    let unread =
        pool.install(|| choose_segments(&mut recordings, &events.window, &options.clocks))?;
    let passes = passes(events, outcome);
    progress.expect(recordings.iter().map(read_bytes).sum(), passes);
    let assemblies = pool.install(|| assemble_all(&recordings, &folders, progress));
    let assemblies = assemblies.map_err(spill_error)?;
    let merge = Merge {
        options,
        events,
        progress,
        pool,
        passes,
        recordings: &recordings,
        assemblies: &assemblies,
        folders: &folders,
        foreign: &foreign,
    };
    let by_run = options.runs == Runs::All;
    let collector = || {
        let links = events.link_requests && outcome == Outcome::Trace;
        links.then(|| Collector::new(&recordings, by_run, options.link_bytes(), &folders))
    };
    let (mut found, links) = merge.index(collector)?;
    let last_ns = found.last_ns();
    let aligned = merge.align(&mut found);
    merge.select(&unread, &aligned, links.as_ref(), &mut found, &mut report)?;
    let decided = merge.decide(&mut found, &aligned, links, &mut report)?;
    let job = merge.job(&found, &decided);
    let (value, addition) = read(&ReadyTrace {
        job,
        report: &report,
        base_unix_ns: decided.base_unix_ns,
        pool,
        folders: &folders,
    })?;
    if outcome == Outcome::Trace {
        merge.second_pass(job, &addition, inputs.run_directory.as_ref(), &mut report)?;
    }
    pool.install(|| add_changes(&recordings, &found.sources, &found.chunks, &mut report));
    if options.settle {
        settle_all(&merge, &last_ns, &mut report);
    }
    Ok((value, report))
}

fn thread_pool(options: &Options) -> Result<ThreadPool, Error> {
    let threads = workers(options.threads);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| Error::Usage(format!("threads: {error}")))
}

/// Default maximum number of workers: each has memory of its own, and all of them together should
/// use little.
const MAX_DEFAULT_WORKERS: usize = 16;

/// Maximum number of workers per core that a user may ask for: more would only use memory.
const MAX_WORKERS_PER_CORE: usize = 4;

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Returns the maximum number of workers that a merge uses, whatever [`Options::threads`] asks for:
/// four for each core.
pub fn max_threads() -> usize {
    cores().saturating_mul(MAX_WORKERS_PER_CORE)
}

/// Returns the number of workers if this many are asked for; 0 asks for one for each core.
fn workers(asked: usize) -> usize {
    match asked {
        0 => cores().min(MAX_DEFAULT_WORKERS),
        asked => asked.min(max_threads()),
    }
}

/// Opens the inputs, and reads traces of other profilers, unless lines are copied verbatim. Also
/// returns a report on each of these traces.
fn open_all(
    options: &Options,
    inputs: &mut Inputs,
    folders: &[PathBuf],
    report: &mut Report,
) -> Result<(Vec<Recording>, Vec<ForeignReport>), Error> {
    let found = match options.is_verbatim() {
        true => foreign::OtherInputs::default(),
        false => foreign::find(inputs, folders)?,
    };
    let loaded = open(inputs, found.fragments, folders).map_err(spill_error)?;
    let damage = &mut report.damage;
    for (path, why) in loaded.unreadable {
        damage.add(&path, 0, Kind::Unreadable, Some(why));
    }
    let mut recordings = loaded.recordings;
    let how = ForeignOptions {
        offsets: &options.clocks.offsets,
        keeps_times: options.clocks.keep_times,
        folders,
    };
    let traces = foreign::read(found.candidates, &recordings, &how)?;
    for path in traces.changed {
        damage.add(&path, 0, Kind::Changed, Some(CHANGED.to_owned()));
    }
    for bad in traces.bad_gzip {
        damage.add(&bad.path, bad.offset, Kind::BadGzip, Some(bad.why));
    }
    recordings.extend(traces.recordings);
    if recordings.is_empty() && !options.allow_empty {
        return Err(Error::NothingUsable(describe(options, inputs)));
    }
    if options.is_verbatim() {
        recordings.sort_by(|one, other| one.path().cmp(&other.path()));
    }
    report.left_out.clone_from(&inputs.left_out);
    report.removed_runs = (!inputs.removed.runs.is_empty()).then(|| inputs.removed.clone());
    Ok((recordings, traces.reports))
}

/// Returns how often a merge reads its inputs, for the progress display: to verify blocks and to
/// index lines, to find the selected part if there is one, and to copy lines if it writes a trace.
fn passes(events: &EventOptions, outcome: Outcome) -> u64 {
    2 + u64::from(events.is_part()) + u64::from(outcome == Outcome::Trace)
}

/// Returns folders for temporary files: the system's, then the one of the trace, which has room for
/// the trace.
fn folders(options: &Options, inputs: &Inputs) -> Vec<PathBuf> {
    let output_folder = folder(&options.output, inputs.run_directory.as_ref());
    [std::env::temp_dir()]
        .into_iter()
        .chain(output_folder)
        .collect()
}

/// Converts an error of a temporary file for positions of blocks. The error itself contains the
/// path.
fn spill_error(error: io::Error) -> Error {
    Error::from_temporary(Path::new(""), error)
}

/// Returns the length in bytes of its fragments that are read.
fn read_bytes(recording: &Recording) -> u64 {
    let fragments = recording.fragments.iter();
    fragments.map(Fragment::bytes).sum()
}

fn settle_all(merge: &Merge<'_>, last_ns: &[i64], report: &mut Report) {
    let recordings = merge.recordings.iter().zip(merge.assemblies);
    let mut inputs = report.inputs.iter_mut(); // one for each fragment, in the same order
    for ((recording, assembly), last_ns) in recordings.zip(last_ns) {
        let last = inputs.by_ref().take(recording.fragments.len()).last();
        let pid = recording.header().map(|header| i64::from(header.pid));
        let known = ProcessEnd {
            last_ns: *last_ns,
            exit: pid.and_then(|pid| merge.options.exits.get(&pid)),
            is_running: false,
        };
        if settle(recording, assembly, known)
            && let Some(input) = last
        {
            input.settled = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Mode, Output, Window};
    use std::time::Duration;

    /// Merges `lines`. Returns the number of bytes that it reads, as a multiple of their length,
    /// and the number of events. Checks that all work is done at the end.
    fn bytes_read(lines: &str, events: EventOptions) -> (f64, u64) {
        let folder = tempfile::tempdir().unwrap();
        let fragment = folder.path().join("trace.7.jsonl");
        std::fs::write(&fragment, lines).unwrap();
        let progress = Progress::default();
        let options = Options {
            output: Output::File(folder.path().join("out.json")),
            mode: Mode::Events(events),
            ..Options::new([fragment])
        };
        let report = merge_with(&options, &progress).unwrap();
        let len = lines.len() as u64;
        assert_eq!(progress.bytes(), (len, len));
        let (done, planned) = progress.passed();
        assert_eq!(done, planned, "{options:?}");
        #[expect(clippy::cast_precision_loss, reason = "some megabytes")]
        let passes = done as f64 / len as f64;
        (passes, report.events.total)
    }

    #[test]
    fn all_passes_are_counted() {
        // Every second span contains the next one.
        let line = |ts: f64| {
            let dur = 1.0 + ts % 2.0;
            let times = format!(r#""ts":{ts},"dur":{dur}"#);
            format!(r#"{{"ph":"X","pid":7,"tid":7,{times},"name":"n","cat":"c"}}"#) + "\n"
        };
        let plain: String = (0..60_000).map(|ts| line(ts.into())).collect();
        // Reads all lines to find blocks, to index them, and to copy them.
        assert_eq!(bytes_read(&plain, EventOptions::default()), (3.0, 60_000));
        let last = |last| EventOptions {
            window: Window::Last(last),
            ..EventOptions::default()
        };
        assert_eq!(
            bytes_read(&plain, last(Duration::from_secs(1))),
            (4.0, 60_000)
        );
        // Reads all lines once more to sort them.
        let sorted = EventOptions {
            layout: Layout::Sorted { memory: 1 << 20 },
            ..EventOptions::default()
        };
        assert_eq!(bytes_read(&plain, sorted), (4.0, 60_000));
        // Only copies chunks that overlap the window.
        let (passes, events) = bytes_read(&plain, last(Duration::from_millis(1)));
        assert!(3.0 < passes && passes < 3.9, "{passes}");
        assert!(events < 2_000, "{events}");
        // Reads threads with overlapping spans once more.
        let clashing = bytes_read(&(plain + &line(9.5)), EventOptions::default());
        assert_eq!(clashing, (4.0, 60_001));
    }
}
