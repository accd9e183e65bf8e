//! The way from paths to a trace.

use crate::assembly::Assembly;
use crate::blocks::split;
use crate::clock::Clocks;
use crate::copy::Job;
use crate::fragment::FileId;
use crate::input::{self, Inputs};
use crate::open::open;
use crate::output::{Destination, folder};
use crate::overflow::Overflow;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::recording::Recording;
use crate::report::Report;
use crate::settle::settle;
use crate::sink::Sink;
use crate::skip::skip;
use crate::source::{by_recording, chunks, index, sources};
use crate::tally::tell_sources;
use crate::window::{self, WindowReport};
use crate::{Error, Options, Runs};
use rayon::prelude::*;
use std::path::{Path, PathBuf};

/// Merges fragments into one trace.
///
/// # Errors
/// If nothing could be read, the output is one of the inputs, or the trace could not be written. Damage is no error.
pub fn merge(options: &Options) -> Result<Report, Error> {
    merge_with(options, &Progress::default())
}

/// Merges fragments into one trace, and counts in `progress` how far it is.
///
/// # Errors
/// As [`merge`].
pub fn merge_with(options: &Options, progress: &Progress) -> Result<Report, Error> {
    let inputs = input::find(&options.paths, &options.runs);
    let mut report = Report {
        version: env!("CARGO_PKG_VERSION"),
        ..Report::default()
    };
    let mut recordings = open(&inputs, &mut report);
    if recordings.is_empty() && !options.allow_empty {
        return Err(Error::NothingUsable(describe(options, &inputs)));
    }
    if options.verbatim {
        refuse_window(options)?;
        recordings.sort_by(|one, other| one.path().cmp(&other.path()));
    }
    report.left_out.clone_from(&inputs.left_out);
    let skipped = options.last.map(|last| skip(&mut recordings, last));
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads)
        .build();
    let pool = pool.map_err(|error| Error::Usage(format!("threads: {error}")))?;
    progress.expect(recordings.iter().map(len).sum());
    let assembled = |recording| assemble(recording, progress);
    let assemblies: Vec<Assembly> = pool.install(|| recordings.par_iter().map(assembled).collect());
    let mut sources = sources(&recordings, &assemblies);
    let mut chunks = chunks(&sources);
    let histories = pool.install(|| index(&mut sources, &mut chunks, options.verbatim, progress));
    let mut indexes = by_recording(&recordings, &sources);
    let last_ns: Vec<i64> = indexes
        .iter()
        .map(|index| index.last_ns().unwrap_or(0))
        .collect();
    if let Some(last) = options.last {
        let shifts_ns = Clocks::shifts_ns(&recordings, &indexes);
        let of_all = (indexes.as_slice(), shifts_ns.as_slice());
        let window = pool.install(|| window::narrow(last, of_all, &mut sources, &mut chunks));
        report.window = Some(WindowReport {
            segments_left_out: skipped.unwrap_or(0),
            ..window
        });
        indexes = by_recording(&recordings, &sources);
    }
    let mut plan = Plan::new(&recordings, &indexes);
    let view = (sources.as_slice(), chunks.as_slice());
    let (spans, folders) = ((indexes.as_slice(), histories), folders(options, &inputs));
    let overflow = pool.install(|| Overflow::find(view, spans, &mut plan, &folders));
    overflow.tell(&mut report);
    plan.tell(&mut report);
    if options.verbatim {
        (report.events_added, report.base_ns) = (0, 0);
    }
    tell_sources(&recordings, &assemblies, &sources, &indexes, &mut report);
    if !options.allow_empty {
        refuse_nonsense(&recordings, &report)?;
    }
    let (destination, target) =
        Destination::open(&options.output, inputs.run_directory.as_deref())?;
    refuse_inputs(&destination, &recordings)?;
    let sink = Sink::new(target, destination.is_gzip());
    let job = Job {
        recordings: &recordings,
        sources: &sources,
        chunks: &chunks,
        plan: &plan,
        overflow: &overflow,
        sink: &sink,
        progress,
        verbatim: options.verbatim,
    };
    let path = destination.path().map(Path::to_owned).unwrap_or_default();
    let failed = |source| Error::of_write(&path, source);
    job.run(pool.current_num_threads(), &report);
    report.output_bytes = sink.finish().map_err(failed)?;
    report.output = destination.finish()?;
    if options.settle {
        settle_all(&recordings, &assemblies, &last_ns, &mut report);
    }
    Ok(report)
}

/// Where temporary files may be: where the system has them, else beside the trace, for which there is room.
fn folders(options: &Options, inputs: &Inputs) -> Vec<PathBuf> {
    let beside = folder(&options.output, inputs.run_directory.as_deref());
    [std::env::temp_dir()].into_iter().chain(beside).collect()
}

/// A window is one of times, which lines as they stand need not have.
fn refuse_window(options: &Options) -> Result<(), Error> {
    match options.last {
        Some(_) => Err(Error::Usage(
            "lines as they stand cannot be narrowed to the last part of a run".to_owned(),
        )),
        None => Ok(()),
    }
}

fn describe(options: &Options, inputs: &Inputs) -> String {
    let mut words: Vec<String> = inputs
        .unreadable
        .iter()
        .map(|(path, why)| format!("{}: {why}", path.display()))
        .collect();
    words.extend(
        inputs
            .files
            .iter()
            .map(|file| format!("{}: cannot be read", file.path.display())),
    );
    if words.is_empty() {
        let paths: Vec<_> = options
            .paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let run = match &options.runs {
            Runs::Named(run) => format!(" of run {run}"),
            Runs::Previous => " of a previous run".to_owned(),
            Runs::Newest | Runs::All | Runs::InPlace => String::new(),
        };
        words.push(format!("no fragments{run} found in {}", paths.join(", ")));
    }
    if !inputs.left_out.is_empty() {
        let runs: Vec<_> = inputs
            .left_out
            .iter()
            .map(|left| left.run.as_str())
            .collect();
        words.push(format!(
            "there are other runs ({}); see --run, --previous, --all-runs",
            runs.join(", ")
        ));
    }
    words.join("; ")
}

/// Bytes of its fragments.
fn len(recording: &Recording) -> u64 {
    let lens = recording
        .fragments
        .iter()
        .map(|fragment| fragment.content.bytes().len());
    lens.sum::<usize>() as u64
}

fn assemble(recording: &Recording, progress: &Progress) -> Assembly {
    let pieces: Vec<_> = recording
        .fragments
        .par_iter()
        .map(|fragment| {
            let bytes = fragment.content.bytes();
            let pieces = split(bytes);
            progress.add(bytes.len() as u64, 0);
            pieces
        })
        .collect();
    recording.assemble(&pieces)
}

/// Inputs without one event, header or name are no trace at all.
fn refuse_nonsense(recordings: &[Recording], report: &Report) -> Result<(), Error> {
    let known = recordings
        .iter()
        .any(|recording| recording.header().is_some());
    if known || report.events_total > 0 || report.damage_total == 0 {
        return Ok(());
    }
    let inputs = report.inputs.iter().filter(|input| input.damage > 0);
    let paths: Vec<_> = inputs
        .map(|input| input.path.display().to_string())
        .collect();
    let kinds: Vec<_> = report
        .damage_by_kind
        .keys()
        .map(ToString::to_string)
        .collect();
    Err(Error::NothingUsable(format!(
        "no event in {} ({})",
        paths.join(", "),
        kinds.join(", ")
    )))
}

fn refuse_inputs(destination: &Destination, recordings: &[Recording]) -> Result<(), Error> {
    let Some(path) = destination.path() else {
        return Ok(());
    };
    let Ok(metadata) = std::fs::metadata(path) else {
        return Ok(());
    };
    let id = FileId::of(&metadata);
    let of_recording = |recording: &Recording| {
        let ring = recording.ring.iter().any(|(_, ring)| *ring == id);
        ring || recording.fragments.iter().any(|fragment| fragment.id == id)
    };
    if recordings.iter().any(of_recording) {
        return Err(Error::Usage(format!(
            "{}: the output is one of the inputs",
            path.display()
        )));
    }
    Ok(())
}

fn settle_all(
    recordings: &[Recording],
    assemblies: &[Assembly],
    last_ns: &[i64],
    report: &mut Report,
) {
    for ((recording, assembly), last_ns) in recordings.iter().zip(assemblies).zip(last_ns) {
        if settle(recording, assembly, *last_ns)
            && let Some(last) = recording.fragments.last()
            && let Some(input) = report
                .inputs
                .iter_mut()
                .find(|input| input.path == last.path)
        {
            input.settled = true;
        }
    }
}
