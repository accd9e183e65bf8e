//! The events that the options select by a window and filters, after the first pass.

use crate::base::progress::Progress;
use crate::clock::axis::Axis;
use crate::clock::clocks::Clocks;
use crate::clock::time_map::TimeMap;
use crate::event::edges::{Edges, Relation};
use crate::event::line::is_left_out;
use crate::fragment::recording::Recording;
use crate::identity::plan::Plan;
use crate::link::aliases::aliases;
use crate::link::{Collector, SelectedIds};
use crate::pass::chunk::Chunk;
use crate::pass::first_pass::Visitor;
use crate::pass::parallel::map_and_merge;
use crate::pass::source::Source;
use crate::reader::error::try_folders;
use crate::select::filter::FilterReport;
use crate::select::marker::Marker;
use crate::select::segments::UnreadSegments;
use crate::select::window::{WindowReport, edges_per_recording};
use crate::summary::chunk_summary::ChunkSummary;
use crate::summary::summary_builder::SummaryBuilder;
use crate::{Error, EventOptions, Runs};
use sa_format::Phase;
use std::convert::Infallible;
use std::path::{Path, PathBuf};

/// The requested selection, and the data to apply it.
pub(crate) struct SelectionRequest<'a, 'l> {
    pub(crate) events: &'a EventOptions,
    pub(crate) runs: &'a Runs,
    pub(crate) unread: &'a UnreadSegments,
    pub(crate) clocks: &'a Clocks,
    /// Maps from the times of each recording to the axis.
    pub(crate) maps: &'a [TimeMap],
    /// Folders for temporary files.
    pub(crate) folders: &'a [PathBuf],
    /// Collects the requests of the shown events.
    pub(crate) links: Option<&'a Collector<'l>>,
    pub(crate) progress: &'a Progress,
}

/// Reports on the events that are shown, if not all are.
#[derive(Default)]
pub(crate) struct Selection {
    pub(crate) window: Option<WindowReport>,
    pub(crate) filter: Option<FilterReport>,
}

/// Restricts sources and chunks to the selected events. Returns `None` if everything is selected.
pub(crate) fn select(
    request: &SelectionRequest<'_, '_>,
    recordings: &[Recording],
    summaries: &[ChunkSummary],
    sources: &mut [Source<'_>],
    chunks: &mut [Chunk],
) -> Result<Option<Selection>, Error> {
    if !request.events.is_part() {
        return Ok(None);
    }
    let filter = &request.events.filter;
    // The event that connects two ids may be before the window.
    let request_aliases = match request.runs {
        Runs::All => Vec::new(),
        _ => aliases(&filter.requests, sources, chunks, request.progress),
    };
    let (mut edges, lens) = (Edges::OPEN, chunks.iter().map(Chunk::len).collect());
    let mut selection = Selection::default();
    if !request.events.window.is_whole_run() {
        let (window, on_axis, in_recordings) = locate_window(request, summaries)?;
        for chunk in &mut *chunks {
            chunk.narrow(in_recordings[sources[chunk.source].recording]);
        }
        (selection.window, edges) = (Some(window), on_axis);
    }
    let mut cut = 0;
    if !filter.is_empty() || chunks.iter().any(|chunk| chunk.has_begins_or_ends) {
        let plan = Plan::new(recordings, summaries, request.maps);
        let mut filter = filter.clone();
        filter.requests.extend_from_slice(&request_aliases);
        let marker = Marker::new(&filter, edges, &plan)?;
        let mark = |folder: &Path| marker.mark(sources, chunks, request.progress, folder);
        let marked = try_folders(request.folders, mark)?;
        cut = marked.cut;
        if let Some(links) = request.links.filter(|_| marked.has_others) {
            links.select_requests(SelectedIds::new(&filter.requests));
        }
    }
    let count = recount(sources, chunks, lens, request);
    let all: u64 = summaries.iter().map(ChunkSummary::events).sum();
    let shown: u64 = sources.iter().map(|source| source.summary.events()).sum();
    if let Some(window) = &mut selection.window {
        window.spans_cut = count.cut + cut;
        window.events_left_out = all - shown - count.filtered;
    }
    selection.filter = (!filter.is_empty()).then(|| FilterReport {
        filter: filter.clone(),
        request_aliases,
        events_left_out: count.filtered,
    });
    Ok(Some(selection))
}

/// Locates the window. Returns its report, its edges on the axis of the run, and its edges in each
/// recording's times, after any warp.
fn locate_window(
    request: &SelectionRequest<'_, '_>,
    summaries: &[ChunkSummary],
) -> Result<(WindowReport, Edges, Vec<Edges>), Error> {
    let (window, unread, maps) = (&request.events.window, request.unread, request.maps);
    let Some(axis) = Axis::new(summaries, maps, request.clocks) else {
        let open = vec![Edges::OPEN; maps.len()];
        return Ok((WindowReport::empty(window), Edges::OPEN, open));
    };
    let axis = axis.beginning_at(&unread.firsts_ns, maps);
    let edges = axis.edges(window)?;
    let placed = axis.unchecked_edges(window)?;
    let own = maps.iter().map(|map| placed.moved(|ns| map.back(ns)));
    let missing_ns = unread.missing_ns(own);
    let report = WindowReport {
        reach_ns: unread.reach_ns,
        missing_ns: (missing_ns > 0).then_some(missing_ns),
        segments_left_out: unread.segments,
        bytes_left_out: unread.bytes,
        ..WindowReport::new(window, axis.first_ns, edges)
    };
    let shifts_ns: Vec<i64> = maps.iter().map(|map| map.shift_ns).collect();
    Ok((report, edges, edges_per_recording(edges, &shifts_ns)))
}

/// Counts of shown and hidden events.
#[derive(Default)]
struct ShownCount {
    summary: ChunkSummary,
    cut: u64,
    filtered: u64,
}

/// Counts the shown events again, in batches of chunks. `lens` are the lengths of the chunks before
/// the window was applied.
fn recount(
    sources: &mut [Source<'_>],
    chunks: &mut [Chunk],
    lens: Vec<u64>,
    request: &SelectionRequest<'_, '_>,
) -> ShownCount {
    let mut all = ShownCount::default();
    let mut lens = lens.into_iter();
    for source in sources.iter_mut() {
        source.summary.forget_events();
    }
    let scan = |_, chunk: &Chunk, source: &Source<'_>| count(source, chunk, request.links);
    let Ok(()) = map_and_merge(sources, chunks, scan, |chunk, source, count| {
        request.progress.add(lens.next().unwrap_or(0), 0);
        chunk.events = count.summary.events();
        all.cut += count.cut;
        all.filtered += count.filtered;
        source.summary.add_events(count.summary);
        Ok::<(), Infallible>(())
    });
    all
}

/// Counts the events of a chunk. Spans with an end event are counted where they are matched.
fn count(source: &Source<'_>, chunk: &Chunk, links: Option<&Collector<'_>>) -> ShownCount {
    let gather = links.map(|links| links.chunk(chunk, source));
    let (mut count, mut builder) = (ShownCount::default(), SummaryBuilder::new(gather));
    let edges = chunk.shown.edges;
    chunk.for_each_event(source.bytes, |_, relation, event| {
        count.cut += u64::from(relation == Relation::Across && event.phase == Phase::Complete);
        if relation == Relation::Outside {
            let in_window = edges.is_none_or(|edges| edges.relation(event) != Relation::Outside);
            count.filtered += u64::from(in_window && !is_left_out(event));
        } else {
            builder.event(event);
        }
    });
    count.summary = builder.finish();
    count
}
