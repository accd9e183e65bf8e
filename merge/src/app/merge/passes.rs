//! The passes of a merge over its inputs.

use super::spill_error;
use crate::app::losses::report_losses;
use crate::app::report::Report;
use crate::app::report::other_data::other_data;
use crate::app::report::processes::{report_preload, report_processes};
use crate::app::report::sources::{report_foreign, report_sources};
use crate::app::validate::reject_empty;
use crate::base::access::Access;
use crate::base::folder::Folder;
use crate::base::progress::Progress;
use crate::clock::clocks::{ClockEvidence, Clocks};
use crate::clock::time_map::TimeMap;
use crate::event::era::Era;
use crate::foreign::ForeignReport;
use crate::fragment::assembly::Assembly;
use crate::fragment::recording::Recording;
use crate::identity::identities::{set_clocks, set_exits};
use crate::identity::plan::Plan;
use crate::identity::process::output_pids;
use crate::lanes::moves::ExtraLanes;
use crate::link::{Collector, Links};
use crate::pass::chunk::{Chunk, chunks};
use crate::pass::first_pass::{add_gaps, eras, first_pass, summaries_by_recording};
use crate::pass::history::Histories;
use crate::pass::parallel::ChunkView;
use crate::pass::source::{Source, sources};
use crate::reader::error::try_folders;
use crate::select::segments::UnreadSegments;
use crate::select::selection::{SelectionRequest, select};
use crate::summary::chunk_summary::ChunkSummary;
use crate::write::addition::Addition;
use crate::write::copy::TraceCopy;
use crate::write::output::{Destination, OutputTarget};
use crate::write::split::write_parts;
use crate::write::timeline::order::TimeOrder;
use crate::write::writer::Job;
use crate::{ClockBy, Error, EventOptions, Layout, Options};
use rayon::ThreadPool;
use std::path::{Path, PathBuf};

/// State of a merge from the first pass on.
pub(super) struct Merge<'a> {
    pub(super) options: &'a Options,
    pub(super) events: &'a EventOptions,
    pub(super) progress: &'a Progress,
    pub(super) pool: &'a ThreadPool,
    /// Number of times that it reads its inputs.
    pub(super) passes: u64,
    pub(super) recordings: &'a [Recording],
    pub(super) assemblies: &'a [Assembly],
    /// Folders for temporary files.
    pub(super) folders: &'a [PathBuf],
    /// Reports on the recordings that are traces of other profilers.
    pub(super) foreign: &'a [ForeignReport],
}

/// Decisions about each line of the second pass: ids, times, lanes.
pub(super) struct Decided {
    plan: Plan,
    extra_lanes: ExtraLanes,
    /// Requests to link, if linking is enabled.
    links: Option<Links>,
    /// Begin of the trace in ns since 1970, if the reference host has an anchor.
    pub(super) base_unix_ns: Option<i64>,
}

/// Mapping of all times to one axis.
pub(super) struct Aligned {
    clocks: Clocks,
    /// Map of each recording.
    maps: Vec<TimeMap>,
}

/// Results of the first pass.
pub(super) struct FirstPass<'a> {
    pub(super) sources: Vec<Source<'a>>,
    pub(super) chunks: Vec<Chunk>,
    /// Summary of each recording.
    summaries: Vec<ChunkSummary>,
    /// Spans of all threads, until they are assigned to lanes.
    histories: Histories,
}

impl FirstPass<'_> {
    fn view(&self) -> ChunkView<'_> {
        ChunkView {
            sources: &self.sources,
            chunks: &self.chunks,
        }
    }

    /// Returns the end of each recording.
    pub(super) fn last_ns(&self) -> Vec<i64> {
        let ends = self.summaries.iter().map(ChunkSummary::last_ns);
        ends.map(Option::unwrap_or_default).collect()
    }

    /// Maps the times of chunks, sources and summaries to the common axis, for recordings whose map
    /// has a curve. For all others, a shift is enough.
    fn warp(&mut self, maps: &[TimeMap]) {
        let warp = |recording: usize| maps[recording].warp.as_ref();
        for chunk in &mut self.chunks {
            if let Some(warp) = warp(self.sources[chunk.source].recording) {
                chunk.warp(warp);
            }
        }
        for source in &mut self.sources {
            if let Some(warp) = warp(source.recording) {
                source.summary.warp(warp);
            }
        }
        for (recording, summary) in self.summaries.iter_mut().enumerate() {
            if let Some(warp) = warp(recording) {
                summary.warp(warp);
            }
        }
    }
}

impl<'a> Merge<'a> {
    /// Indexes all lines, and adds a loss record for each gap that no record explains. If some
    /// events are far from all others of their recording, everything is indexed again without them.
    /// `collector` creates the collector of requests.
    pub(super) fn index<'l>(
        &self,
        collector: impl Fn() -> Option<Collector<'l>>,
    ) -> Result<(FirstPass<'a>, Option<Collector<'l>>), Error> {
        let mut links = collector();
        let mut found = self.first_pass(&[], links.as_ref())?;
        let eras = self.eras(&found);
        if eras.iter().any(Option::is_some) {
            drop((found, links)); // together they could need too much memory
            self.progress.begin_again();
            links = collector();
            found = self.first_pass(&eras, links.as_ref())?;
        }
        // A gap gets its time from the events next to it, so damaged ones must be removed first.
        let (sources, chunks) = (&mut found.sources, &mut found.chunks);
        let all = self.recordings.iter().zip(self.assemblies);
        add_gaps(all, &eras, &mut found.summaries, sources, chunks);
        Ok((found, links))
    }

    /// Reads all lines. Of recordings with an era, only the events in it count.
    fn first_pass(
        &self,
        eras: &[Option<Era>],
        links: Option<&Collector<'_>>,
    ) -> Result<FirstPass<'a>, Error> {
        let mut sources = sources(self.recordings, self.assemblies);
        let mut chunks = chunks(&sources, self.folders).map_err(spill_error)?;
        for chunk in &mut chunks {
            let recording = sources[chunk.source].recording;
            chunk.era = eras.get(recording).copied().flatten();
        }
        let rest = total_bytes(&chunks).saturating_mul(self.passes - 1);
        self.progress.expect_rest(rest);
        let objects = self.options.is_verbatim();
        // If only a part of the trace is shown, links are collected later, when that part is known.
        let links = links.filter(|_| !self.events.is_part());
        let pass = || first_pass(&mut sources, &mut chunks, objects, links, self.progress);
        let histories = self.pool.install(pass);
        Ok(FirstPass {
            summaries: summaries_by_recording(self.recordings, &mut sources),
            sources,
            chunks,
            histories,
        })
    }

    /// Returns the era of each recording with events far from all others.
    fn eras(&self, found: &FirstPass<'_>) -> Vec<Option<Era>> {
        if self.options.clocks.keep_times || self.options.is_verbatim() {
            return Vec::new();
        }
        let is_foreign = |recording: usize| self.recordings[recording].foreign.is_some();
        let find = || eras(&found.summaries, &found.sources, &found.chunks, is_foreign);
        self.pool.install(find)
    }

    /// Aligns all clocks. Lines that are copied verbatim keep their times.
    pub(super) fn align(&self, found: &mut FirstPass<'_>) -> Aligned {
        let flows = ClockEvidence {
            recordings: self.recordings,
            summaries: &found.summaries,
            view: found.view(),
            folders: self.folders,
        };
        let mut options = self.options.clocks.clone();
        if self.options.is_verbatim() {
            options.by = ClockBy::Anchors; // flows cannot improve times that stay as they are
        }
        let clocks = || Clocks::from_recordings(&flows, &options);
        let clocks = self.pool.install(clocks);
        let maps = clocks.maps(self.recordings);
        if !self.options.is_verbatim() {
            found.warp(&maps);
        }
        Aligned { clocks, maps }
    }

    /// Removes everything that was not selected.
    pub(super) fn select(
        &self,
        unread: &UnreadSegments,
        aligned: &Aligned,
        links: Option<&Collector<'_>>,
        found: &mut FirstPass<'_>,
        report: &mut Report,
    ) -> Result<(), Error> {
        let request = SelectionRequest {
            events: self.events,
            runs: &self.options.runs,
            unread,
            clocks: &aligned.clocks,
            maps: &aligned.maps,
            folders: self.folders,
            links,
            progress: self.progress,
        };
        let (recordings, summaries) = (self.recordings, &found.summaries);
        let (sources, chunks) = (&mut found.sources, &mut found.chunks);
        let selected = || select(&request, recordings, summaries, sources, chunks);
        if let Some(selection) = self.pool.install(selected)? {
            (report.window, report.filter) = (selection.window, selection.filter);
            found.summaries = summaries_by_recording(self.recordings, &mut found.sources);
        }
        Ok(())
    }

    pub(super) fn decide(
        &self,
        found: &mut FirstPass<'_>,
        aligned: &Aligned,
        links: Option<Collector<'_>>,
        report: &mut Report,
    ) -> Result<Decided, Error> {
        let histories = std::mem::take(&mut found.histories);
        let (sources, summaries) = (&found.sources, &found.summaries);
        let mut plan = Plan::new(self.recordings, summaries, &aligned.maps);
        set_exits(&mut plan.processes, &self.options.exits);
        set_clocks(&mut plan.processes, &aligned.clocks.placements());
        let links = links.map(|links| {
            let maps = self.link_maps(&plan, aligned);
            self.pool.install(|| links.finish(&maps))
        });
        report.links = links.as_ref().map(|links| links.report.clone());
        if let Some(links) = report.links.as_mut().filter(|_| self.events.is_part()) {
            links.loose_flows.clear();
        }
        let view = found.view();
        let find = || {
            let (folders, progress) = (self.folders, self.progress);
            ExtraLanes::find(view, summaries, histories, &mut plan, folders, progress)
        };
        let extra_lanes = self.pool.install(find);
        report.rows = extra_lanes.totals.clone();
        report_processes(&plan, &aligned.clocks, report);
        if self.options.is_verbatim() {
            (report.events_added, report.clocks.base_ns) = (0, 0);
        }
        report_sources(self.recordings, self.assemblies, sources, summaries, report);
        report_preload(summaries, &plan, report);
        let add_losses = || report_losses(view, summaries, &plan, report);
        self.pool.install(add_losses);
        report_foreign(self.recordings, self.foreign, report);
        if !self.options.allow_empty {
            reject_empty(self.recordings, report)?;
        }
        let wall = aligned.clocks.wall();
        Ok(Decided {
            base_unix_ns: wall.map(|wall| wall.at(plan.base_ns)),
            plan,
            extra_lanes,
            links,
        })
    }

    /// Returns the maps from the collected times of requests to the times of the trace. If only a
    /// part is shown, they are already warped.
    fn link_maps(&self, plan: &Plan, aligned: &Aligned) -> Vec<TimeMap> {
        let warp = |map: &TimeMap| map.warp.clone().filter(|_| !self.events.is_part());
        let warps = aligned.maps.iter().map(warp);
        let shifts_ns = plan.shifts_ns.iter().copied();
        let maps = warps.zip(shifts_ns);
        maps.map(|(warp, shift_ns)| TimeMap { warp, shift_ns })
            .collect()
    }

    /// Sorts the events by time, if that is requested. An error then means that there is no trace.
    fn order<'j>(&self, job: &Job<'j>) -> Result<Option<TimeOrder<'j>>, Error> {
        let Layout::Sorted { memory } = self.events.layout else {
            return Ok(None);
        };
        let memory = usize::try_from(memory).unwrap_or(usize::MAX);
        let sort = |folder: &Path| self.pool.install(|| TimeOrder::new(job, memory, folder));
        try_folders(self.folders, sort).map(Some)
    }

    /// Returns the access to the trace: it is readable for users who may read all of its inputs.
    fn access(&self, run_directory: Option<&Folder>) -> Access {
        let fragments = self
            .recordings
            .iter()
            .flat_map(|recording| &recording.fragments);
        let all = fragments.map(|fragment| fragment.access);
        let access = all.reduce(Access::and).unwrap_or(Access::OWN);
        run_directory.map_or(access, |folder| access.within(folder.access()))
    }

    /// Returns the input of the second pass.
    pub(super) fn job<'j>(&self, found: &'j FirstPass<'_>, decided: &'j Decided) -> Job<'j>
    where
        'a: 'j,
    {
        Job {
            recordings: self.recordings,
            sources: &found.sources,
            chunks: &found.chunks,
            plan: &decided.plan,
            extra_lanes: &decided.extra_lanes,
            links: decided.links.as_ref(),
            progress: self.progress,
            verbatim: self.options.is_verbatim(),
        }
    }

    pub(super) fn second_pass(
        &self,
        job: Job<'_>,
        addition: &Addition,
        default_directory: Option<&Folder>,
        report: &mut Report,
    ) -> Result<(), Error> {
        let order = self.order(&job)?;
        let copy = TraceCopy {
            job,
            other_data: &other_data(report),
            addition,
            order: order.as_ref(),
            portion: None,
        };
        let target = OutputTarget {
            options: self.options,
            default_directory,
            access: self.access(default_directory),
        };
        if let Layout::Parts { bytes: limit } = self.events.layout {
            let (output, linked) = write_parts(&copy, limit, target, self.pool)?;
            report.add_links(linked);
            report.output = output;
            return Ok(());
        }
        report.events_added += addition.lines(&output_pids(&job.plan.processes)).len() as u64;
        let (destination, sink) = Destination::open(target)?;
        self.progress.expect_rest(total_bytes(job.chunks));
        let (length, linked) = copy.write(&destination, sink, self.pool)?;
        report.add_links(linked);
        report.output.bytes = length.bytes;
        report.output.path = destination.finish()?;
        Ok(())
    }
}

fn total_bytes(chunks: &[Chunk]) -> u64 {
    chunks.iter().map(Chunk::len).sum()
}
