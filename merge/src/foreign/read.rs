//! Reads traces of other profilers and places their times.

use super::clock::{ReferenceClock, TimeOrigin};
use super::content_sum::ContentSum;
use super::document::{self, DocumentRead};
use super::draft::TraceDraft;
use super::find::TraceCandidate;
use super::lines::{FirstReading, Lines};
use super::members::{DocumentMembers, MERGED};
use super::place::{self, TracePlace};
use super::report::ForeignReport;
use super::strace::StraceLog;
use super::{join, strace};
use crate::fragment::file::{Content, Fragment};
use crate::fragment::file_watch::FileWatch;
use crate::fragment::foreign_trace::{FRONT_BYTES, ForeignTrace};
use crate::fragment::recording::Recording;
use crate::fragment::temp_folder::in_first;
use crate::{Error, Options};
use sa_recorder::format::{ANCHOR_RECORD, Metadata};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// What was read of traces of other profilers.
#[derive(Default)]
pub(crate) struct ForeignTraces {
    pub(crate) recordings: Vec<Recording>,
    /// Of each of them.
    pub(crate) reports: Vec<ForeignReport>,
    /// Where compressed ones could not be unpacked any further.
    pub(crate) bad_gzip: Vec<BadGzip>,
    /// Paths of traces that another program changed while they were read.
    pub(crate) changed: Vec<PathBuf>,
}

/// A compressed file that could not be unpacked whole.
pub(crate) struct BadGzip {
    pub(crate) path: PathBuf,
    pub(crate) offset: u64,
    pub(crate) why: String,
}

/// Reads the traces and places each by its clock. `recordings` are the fragments.
///
/// # Errors
/// If one has no clock and nobody said where it belongs, an offset is of none of them, or there is no room for temporary files.
pub(crate) fn read(
    candidates: Vec<TraceCandidate>,
    recordings: &[Recording],
    options: &Options,
    folders: &[PathBuf],
) -> Result<ForeignTraces, Error> {
    let names = names(&candidates);
    let (mut traces, mut drafts) = (ForeignTraces::default(), Vec::new());
    for (candidate, name) in candidates.into_iter().zip(names) {
        traces.bad_gzip.extend(bad_gzip(&candidate));
        drafts.push(draft(
            candidate,
            name,
            recordings,
            folders,
            options.keep_times,
        )?);
    }
    let placed = place::place(&drafts, &ReferenceClock::of(recordings), &options.offsets)?;
    for (number, (draft, placed)) in drafts.into_iter().zip(placed).enumerate() {
        let folder = draft.folder.clone();
        if draft.has_changed {
            traces.changed.push(draft.path.clone());
        }
        let finished = finish(number, draft, placed);
        let (recording, report) = finished.map_err(|error| Error::of_temporary(&folder, error))?;
        traces.recordings.push(recording);
        traces.reports.push(report);
    }
    Ok(traces)
}

fn bad_gzip(candidate: &TraceCandidate) -> Option<BadGzip> {
    let (offset, why) = candidate.failure.clone()?;
    let path = candidate.path.clone();
    Some(BadGzip { path, offset, why })
}

/// The names of their files; of those that share one the whole path.
fn names(candidates: &[TraceCandidate]) -> Vec<String> {
    let short = |candidate: &TraceCandidate| {
        let name = candidate.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    let all: Vec<String> = candidates.iter().map(short).collect();
    let is_shared = |name: &String| all.iter().filter(|other| *other == name).count() > 1;
    let named = candidates.iter().zip(&all);
    named
        .map(|(candidate, name)| match is_shared(name) {
            true => candidate.path.display().to_string(),
            false => name.clone(),
        })
        .collect()
}

/// Reads one trace into a temporary file, in the first folder that takes it.
fn draft<'f>(
    candidate: TraceCandidate,
    name: String,
    recordings: &[Recording],
    folders: &'f [PathBuf],
    keeps_times: bool,
) -> Result<TraceDraft<'f>, Error> {
    let is_log = strace::is_log(candidate.content.bytes());
    // If it is read again, it must still be what was read first.
    let first_sum = Cell::new(None);
    let (folder, (lines, read)) = in_first(folders, |folder| {
        let read_in = |first| {
            let mut lines = Lines::new(folder, first)?;
            let (read, sum) = read_content(&candidate.content, is_log, &mut lines)?;
            first_sum.set(first_sum.get().or(Some(sum)));
            Ok((lines, read))
        };
        let (mut lines, read) = read_in(FirstReading::default())?;
        match lines.first_reading(keeps_times) {
            first if first == FirstReading::default() => Ok((lines, read)),
            first => read_in(first),
        }
    })?;
    let has_changed = first_sum
        .get()
        .is_some_and(|sum| candidate.has_changed(sum));
    let text = candidate.content.bytes();
    let front = text[..text.len().min(FRONT_BYTES)].to_vec();
    let (form, members, log) = match read {
        TraceContents::Document(read) => (read.form.name(), read.members, None),
        TraceContents::Log(log) => ("log", DocumentMembers::of("simpler"), Some(log)),
    };
    let (joined, origin) = match &log {
        Some(log) => join::join(log, recordings),
        None => (BTreeMap::new(), TimeOrigin::of(&members, lines.time)),
    };
    Ok(TraceDraft {
        path: candidate.path,
        access: candidate.access,
        id: candidate.id,
        name,
        bytes: candidate.bytes,
        front,
        is_packed: candidate.is_packed,
        lines,
        form,
        members,
        origin,
        joined,
        unplaced: log.map_or(0, |log| log.unplaced),
        folder,
        has_changed,
    })
}

/// What a trace turned out to be.
enum TraceContents {
    Document(DocumentRead),
    Log(StraceLog),
}

/// Reads a trace, and returns the hash of its bytes as well.
fn read_content(
    content: &Content,
    is_log: bool,
    lines: &mut Lines<'_>,
) -> io::Result<(TraceContents, u64)> {
    let (bytes, sum) = (content.bytes(), ContentSum::begin(content));
    let passed = |at| sum.passed(at);
    let read = match is_log {
        true => TraceContents::Log(strace::read(bytes, lines, &passed)?),
        false => TraceContents::Document(document::read(bytes, lines, &passed)?),
    };
    Ok((read, sum.finish()))
}

/// Writes what places the times, and opens the file as a recording.
fn finish(
    number: usize,
    draft: TraceDraft<'_>,
    placed: TracePlace,
) -> io::Result<(Recording, ForeignReport)> {
    let mut lines = draft.lines;
    for anchor in &placed.anchors {
        let record = Metadata::new(0, ANCHOR_RECORD, *anchor);
        lines.made(&serde_json::to_vec(&record)?)?;
    }
    let is_merged = draft.members.tool == Some(MERGED);
    let has_kineto = lines.rows.values().any(|row| row.is_kineto());
    let foreign = ForeignTrace {
        name: draft.name,
        number,
        clock: placed.clock,
        joined: draft.joined,
        texts: std::mem::take(&mut lines.texts),
        rows: std::mem::take(&mut lines.rows),
        is_kineto: has_kineto && !is_merged,
        is_merged,
        places: std::mem::take(&mut lines.places),
        repairs: std::mem::take(&mut lines.repairs),
        bytes: draft.bytes,
        front: draft.front,
    };
    let (file, early_arrows) = lines.finish()?;
    let report = ForeignReport {
        path: draft.path.clone(),
        form: draft.form,
        packed: draft.is_packed,
        tool: draft.members.tool,
        method: placed.method,
        clock: placed.words,
        offset_ns: placed.offset_ns,
        unplaced: draft.unplaced,
        early_arrows,
        left_out: draft.members.left_out,
    };
    let fragment = Fragment {
        path: draft.path,
        folder: None,
        access: draft.access,
        id: draft.id,
        content: Content::open(file)?,
        header: None,
        removal: None,
        extents: None,
        watch: FileWatch::default(),
    };
    Ok((Recording::of_foreign(fragment, foreign), report))
}
