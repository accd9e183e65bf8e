//! A run, read into a report.

use crate::fold::device_times::device_times;
use crate::fold::name_times::name_times;
use crate::fold::requests::{RequestFacts, summary};
use crate::gather::chunk_facts::ChunkFacts;
use crate::gather::name_keys::NameKeys;
use crate::gather::slice_record::SliceRecord;
use crate::gather::value_record::ValueRecord;
use crate::options::ReportOptions;
use crate::table::recorded::{Recorded, RecordedProcess};
use crate::table::run_report::RunReport;
use std::io;
use trace_merge::events::{self, PlacedEvent, TraceEvents, TraceProcess};
use trace_merge::{Error, Options, Progress, Report};
use trace_store::sorter::Sorter;

/// The version of what `--json` prints.
const SCHEMA: u32 = 1;
/// Memory for slices, and for the durations of all of them; what is more goes to temporary files.
const SLICE_BYTES: usize = 64 << 20;
const VALUE_BYTES: usize = 32 << 20;

/// Reads a run, fragments or any Chrome trace, and says where the time went. The fragments of dead processes stay as they are, whatever the options say.
///
/// # Errors
/// As [`trace_merge::merge`], and if there is no room for temporary files.
pub fn read(
    options: &Options,
    report_options: &ReportOptions,
    progress: &Progress,
) -> Result<RunReport, Error> {
    // Ids of requests are gathered only where a filter asks for them.
    let options = Options {
        settle: false,
        link_requests: !options.filter.requests.is_empty(),
        ..options.clone()
    };
    let (found, _) = events::read(&options, progress, |events| fold(events, report_options))?;
    Ok(found)
}

/// Merges as [`trace_merge::merge_with`] does, and says where the time went in the same run. A report that fails, for want of room for its temporary files, keeps no
/// trace from being written.
///
/// # Errors
/// As [`trace_merge::merge`].
pub fn merge_and_read(
    options: &Options,
    report_options: &ReportOptions,
    progress: &Progress,
) -> Result<(Result<RunReport, Error>, Report), Error> {
    events::merge_and_read(options, progress, |events| Ok(fold(events, report_options)))
}

fn fold(events: &mut TraceEvents<'_>, options: &ReportOptions) -> Result<RunReport, Error> {
    let found = events.report().events_total;
    if let Some(most) = options.most_events.filter(|most| found > *most) {
        let why = format!("expected {most} events at most, found {found}");
        return Err(Error::Usage(why));
    }
    events.match_spans()?;
    let (events, by, folders) = (&*events, options.names_by, &[std::env::temp_dir()]);
    let of_temporary = |source: io::Error| Error::Temporary {
        folder: folders[0].clone(),
        source,
    };
    let (mut keys, mut unfinished) = (NameKeys::default(), Vec::new());
    let mut slices: Sorter<'_, SliceRecord> = Sorter::in_any(folders, SLICE_BYTES);
    let mut on_tracks: Sorter<'_, SliceRecord> = Sorter::in_any(folders, VALUE_BYTES);
    let mut tokens: Sorter<'_, ValueRecord> = Sorter::in_any(folders, VALUE_BYTES);
    let mut requests = RequestFacts::default();
    let take = |facts: &mut ChunkFacts, event: &PlacedEvent<'_>| facts.take(events, event, by);
    events.fold(ChunkFacts::default, take, |facts| {
        let numbers = keys.take(facts.keys);
        unfinished.resize(keys.len(), 0);
        facts
            .unfinished
            .iter()
            .for_each(|key| unfinished[numbers[*key as usize] as usize] += 1);
        let mut slices_found = facts.slices.into_iter();
        let slices_taken = slices_found.try_for_each(|slice| {
            let key = numbers[slice.key as usize];
            slices.push(SliceRecord { key, ..slice })
        });
        facts
            .requests
            .into_iter()
            .for_each(|(request, id)| requests.name(request, id));
        let mut found = facts.on_tracks.into_iter();
        let tracks_taken = found.try_for_each(|slice| on_tracks.push(slice));
        let mut moments = facts.moments.into_iter();
        let moments_taken = moments.try_for_each(|moment| requests.take(moment, &mut tokens));
        let taken = slices_taken.and(tracks_taken).and(moments_taken);
        taken.map_err(of_temporary)
    })?;
    let recorded = recorded(events, unfinished.iter().sum());
    let slices = slices.finish().map_err(of_temporary)?;
    let names = name_times(
        keys.into_keys(),
        &unfinished,
        &slices,
        Sorter::in_any(folders, VALUE_BYTES),
    );
    let (requests, tokens) = (requests.requests(), tokens.finish().map_err(of_temporary)?);
    let on_tracks = on_tracks.finish().map_err(of_temporary)?;
    let gaps = Sorter::in_any(folders, VALUE_BYTES);
    Ok(RunReport {
        schema: SCHEMA,
        recorded,
        requests: summary(&requests, options.slo, &tokens, gaps).map_err(of_temporary)?,
        request: requests,
        device: device_times(&on_tracks).map_err(of_temporary)?,
        names: names.map_err(of_temporary)?,
    })
}

/// What the report stands on.
fn recorded(events: &TraceEvents<'_>, unfinished: u64) -> Recorded {
    let report = events.report();
    let of = |process: &TraceProcess<'_>| RecordedProcess {
        name: process.report.name.clone(),
        pid: process.report.pid,
        host: process.report.host.clone(),
        is_tracks: process.report.tracks,
        end: process.report.end,
        events: process.report.events,
        clock_uncertainty_ns: process.clock_uncertainty_ns,
    };
    let processes = events.processes();
    let first_ns = processes
        .iter()
        .filter_map(|process| process.report.first_ns)
        .min();
    let last_ns = processes
        .iter()
        .filter_map(|process| process.report.last_ns)
        .max();
    Recorded {
        wall_ns: first_ns
            .zip(last_ns)
            .map_or(0, |(first_ns, last_ns)| last_ns - first_ns),
        events: report.events_total,
        unfinished,
        lost_events: report.lost_events,
        losses: report.losses.clone(),
        damaged: report.damage_total,
        cautions: cautions(report),
        processes: processes.iter().map(of).collect(),
    }
}

/// Other reasons to read the figures with care.
fn cautions(report: &Report) -> Vec<String> {
    let mut words = Vec::new();
    if report.overlapping_spans_left > 0 {
        let spans = report.overlapping_spans_left;
        words.push(format!(
            "{spans} spans overlap others of their row, so self times there are bounds"
        ));
    }
    if let Some(why) = &report.rows_failed {
        words.push(format!(
            "overlapping spans have no rows of their own: {why}"
        ));
    }
    for process in &report.processes {
        if let Some(trace) = &process.aside_for {
            let name = process.name.as_deref().unwrap_or("a device");
            words.push(format!(
                "{name} is sampled, and {trace} has all of its kernels: sums over both count some twice"
            ));
        }
    }
    words
}
