//! Reads traces of other profilers and places their times.

use super::clock::{Offset, ReferenceClock, TimeOrigin};
use super::content_sum::ContentSum;
use super::find::TraceCandidate;
use super::lines::{FirstReading, Lines};
use super::members::{DocumentMembers, MERGED};
use super::names::{distinctions, file_names};
use super::pieces::{PiecePlace, pieces};
use super::place::place;
use super::report::ForeignReport;
use super::strace::StraceLog;
use super::{document, strace};
use crate::error::{Error, try_folders};
use crate::fragment::file::{Content, Fragment};
use crate::fragment::recording::{FRONT_BYTES, ForeignTrace, Recording};
use sa_format::{Anchor, Record};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::mem::take;
use std::path::{Path, PathBuf};

/// Traces of other profilers after they were read.
#[derive(Default)]
pub struct ForeignTraces {
    /// A recording for each trace.
    pub recordings: Vec<Recording>,
    /// The report of each recording.
    pub reports: Vec<ForeignReport>,
    /// Compressed files that could not be unpacked completely.
    pub bad_gzip: Vec<BadGzip>,
    /// Paths of traces that another program changed while they were read.
    pub changed: Vec<PathBuf>,
}

/// A compressed file that could not be unpacked completely.
pub struct BadGzip {
    /// Its path.
    pub path: PathBuf,
    /// Offset of the first byte that could not be unpacked.
    pub offset: u64,
    /// The reason.
    pub why: String,
}

/// Options for traces of other profilers.
pub struct ForeignOptions<'a> {
    /// Time to add to single traces.
    pub offsets: &'a [Offset],
    /// True to keep events whose times are far from all others.
    pub keeps_times: bool,
    /// Folders for temporary files. The first one that accepts a file is used.
    pub folders: &'a [PathBuf],
}

/// Reads traces of other profilers and converts each to a recording, placed by its clock. `recordings` are the fragments of the same merge, whose
/// clocks the traces may share.
///
/// # Errors
/// Returns an error if a trace cannot be placed by its clock or by an offset, if no trace has the path of an offset, or if there is no room for
/// temporary files.
pub fn read(
    candidates: Vec<TraceCandidate>,
    recordings: &[Recording],
    how: &ForeignOptions<'_>,
) -> Result<ForeignTraces, Error> {
    let paths = candidates.iter().map(|one| one.fragment.path.as_path());
    let names = file_names(&paths.collect::<Vec<_>>());
    let (mut traces, mut drafts) = (ForeignTraces::default(), Vec::new());
    for (mut candidate, name) in candidates.into_iter().zip(names) {
        if let Some((offset, why)) = candidate.failure.take() {
            let path = candidate.fragment.path.clone();
            traces.bad_gzip.push(BadGzip { path, offset, why });
        }
        drafts.push(draft(candidate, name, recordings, how)?);
    }
    let changed = drafts.iter().filter(|draft| draft.has_changed);
    traces.changed = changed.map(|draft| draft.fragment.path.clone()).collect();
    let pieces = pieces(&drafts);
    let reference = ReferenceClock::from_fragments(recordings);
    place(&mut drafts, &pieces, reference, how.offsets)?;
    name_pieces(&mut drafts, &pieces);
    for draft in drafts {
        let folder = draft.folder;
        let finished = finish(draft).map_err(|error| Error::from_temporary(folder, error));
        let (recording, report) = finished?;
        traces.recordings.push(recording);
        traces.reports.push(report);
    }
    Ok(traces)
}

/// Reads one trace and writes its events to a temporary file, in the first folder that accepts it. Reads it a second time if the first reading
/// finds wrong times or CPU times that are all 0.
fn draft<'f>(
    mut candidate: TraceCandidate,
    name: String,
    recordings: &[Recording],
    how: &ForeignOptions<'f>,
) -> Result<TraceDraft<'f>, Error> {
    let content = &candidate.fragment.content;
    let is_log = strace::is_log(content.bytes());
    // If the trace is read a second time, it must still be the same as at first.
    let first_sum = Cell::new(None);
    let (folder, lines, read) = try_folders(how.folders, |folder| {
        let read_in = |first| {
            let mut lines = Lines::new(folder, first)?;
            let (read, sum) = read_content(content, is_log, &mut lines)?;
            first_sum.set(first_sum.get().or(Some(sum)));
            Ok((folder, lines, read))
        };
        let done = read_in(FirstReading::default())?;
        match done.1.first_reading(how.keeps_times) {
            first if first == FirstReading::default() => Ok(done),
            first => read_in(first),
        }
    })?;
    let has_changed = first_sum
        .get()
        .is_some_and(|sum| candidate.has_changed(sum));
    let text = content.bytes();
    let front = text[..text.len().min(FRONT_BYTES)].to_vec();
    candidate.fragment.content = Content::Owned(Vec::new()); // frees the disk space of unpacked content
    let TraceContents { form, members, log } = read;
    let (joined, origin) = match &log {
        Some(log) => strace::join(log, recordings),
        None => (
            BTreeMap::new(),
            TimeOrigin::from_document(&members, lines.time),
        ),
    };
    let foreign = ForeignTrace {
        name,
        rank: members.rank,
        joined,
        is_merged: members.tool == Some(MERGED),
        bytes: candidate.bytes,
        front,
        ..ForeignTrace::default()
    };
    let report = ForeignReport {
        path: candidate.fragment.path.clone(),
        form,
        packed: candidate.is_packed,
        tool: members.tool,
        unplaced: log.map_or(0, |log| log.unplaced),
        left_out: members.left_out,
        ..ForeignReport::default()
    };
    Ok(TraceDraft {
        fragment: candidate.fragment,
        lines,
        folder,
        origin,
        anchors: Vec::new(),
        has_changed,
        foreign,
        report,
    })
}

/// Form and members of a trace. Its events are written to the lines.
struct TraceContents {
    form: &'static str,
    members: DocumentMembers,
    log: Option<StraceLog>,
}

/// Reads the content of a trace once and adds its events to `lines`. `is_log` is true for a log of the runtime `simpler` instead of a JSON
/// document. Also returns the hash of the bytes that were read.
fn read_content(
    content: &Content,
    is_log: bool,
    lines: &mut Lines<'_>,
) -> io::Result<(TraceContents, u64)> {
    let (bytes, mut sum) = (content.bytes(), ContentSum::new(content));
    let mut passed = |at| sum.advance(at);
    let (form, members, log) = if is_log {
        let log = strace::read(bytes, lines, &mut passed)?;
        ("log", DocumentMembers::new("simpler"), Some(log))
    } else {
        let (form, members) = document::read(bytes, lines, &mut passed)?;
        (form, members, None)
    };
    let read = TraceContents { form, members, log };
    Ok((read, sum.finish()))
}

/// Gives all pieces of one process's trace the number, the name and the distinguishing text of the first piece.
fn name_pieces(drafts: &mut [TraceDraft<'_>], pieces: &[PiecePlace]) {
    let firsts = (0..drafts.len()).filter(|number| pieces[*number].first == *number);
    let firsts: Vec<usize> = firsts.collect();
    let ranks = firsts.iter().map(|number| {
        let draft = &drafts[*number];
        (draft.fragment.path.as_path(), draft.foreign.rank)
    });
    let distinctions = distinctions(&ranks.collect::<Vec<_>>());
    for (first, distinction) in firsts.into_iter().zip(distinctions) {
        let name = drafts[first].foreign.name.clone();
        let path = drafts[first].fragment.path.clone();
        let all = pieces.iter().enumerate();
        for (number, piece) in all.filter(|(_, piece)| piece.first == first) {
            let TraceDraft {
                foreign, report, ..
            } = &mut drafts[number];
            (foreign.number, foreign.name) = (first, name.clone());
            foreign.distinction.clone_from(&distinction);
            report.continues = (number != first).then(|| path.clone());
            report.doubt.clone_from(&piece.doubt);
        }
    }
}

/// Converts a trace, after it was placed, to a recording and its report. Appends the anchors to the trace's temporary file and opens that file.
fn finish(draft: TraceDraft<'_>) -> io::Result<(Recording, ForeignReport)> {
    let (mut lines, mut foreign, mut report) = (draft.lines, draft.foreign, draft.report);
    for anchor in &draft.anchors {
        lines.write_generated(anchor.line(0).trim_ascii_end())?;
    }
    foreign.track_categories = take(&mut lines.rows);
    let has_kineto = foreign.track_categories.values().any(|row| row.is_kineto());
    foreign.is_kineto = has_kineto && !foreign.is_merged;
    foreign.texts = take(&mut lines.texts);
    foreign.places = take(&mut lines.places);
    foreign.repairs = take(&mut lines.repairs);
    let (file, early_arrows) = lines.finish()?;
    report.early_arrows = early_arrows;
    let Fragment {
        path, id, access, ..
    } = draft.fragment;
    // Even if the lines look like ours, they were not written by our recorder.
    let fragment = Fragment {
        header: None,
        removal: None,
        begin: None,
        ..Fragment::new(path, id, access, Content::open(file)?)
    };
    Ok((Recording::from_foreign(fragment, foreign), report))
}

/// A trace that was read, before its times are placed.
pub(super) struct TraceDraft<'f> {
    /// The file, without its content.
    pub(super) fragment: Fragment,
    pub(super) lines: Lines<'f>,
    /// Folder of the lines' file.
    pub(super) folder: &'f Path,
    pub(super) origin: TimeOrigin,
    /// Anchors that place its times.
    pub(super) anchors: Vec<Anchor>,
    /// True if another program changed the file while it was read.
    pub(super) has_changed: bool,
    /// Details for the recording and its report, filled in step by step.
    pub(super) foreign: ForeignTrace,
    pub(super) report: ForeignReport,
}
