//! Reads traces of other profilers and places their times.

use super::clock::{ReferenceClock, TimeOrigin};
use super::content_sum::ContentSum;
use super::document;
use super::draft::TraceDraft;
use super::find::TraceCandidate;
use super::lines::{FirstReading, Lines};
use super::members::{DocumentMembers, MERGED};
use super::names::{distinctions, file_names};
use super::offset::Offset;
use super::pieces::{PiecePlace, pieces};
use super::place::{self, TracePlace};
use super::report::ForeignReport;
use super::strace::StraceLog;
use super::{join, strace};
use crate::error::Error;
use crate::fragment::file::{Content, Fragment};
use crate::fragment::foreign_trace::{Distinction, FRONT_BYTES, ForeignTrace};
use crate::fragment::recording::Recording;
use crate::fragment::temp_folder::in_first;
use sa_format::Record;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// What was read of traces of other profilers.
#[derive(Default)]
pub struct ForeignTraces {
    /// A recording for each trace.
    pub recordings: Vec<Recording>,
    /// The report of each recording.
    pub reports: Vec<ForeignReport>,
    /// Where compressed ones could not be unpacked any further.
    pub bad_gzip: Vec<BadGzip>,
    /// Paths of traces that another program changed while they were read.
    pub changed: Vec<PathBuf>,
}

/// A compressed file that could not be unpacked whole.
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
    /// Folders for temporary files, the first that takes one.
    pub folders: &'a [PathBuf],
}

/// Reads the traces and places each by its clock. `recordings` are the fragments.
///
/// # Errors
/// If one has no clock and nobody said where it belongs, an offset is of none of them, or there is no room for temporary files.
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
    let pieces = pieces(&drafts);
    let reference = ReferenceClock::of(recordings);
    let placed = place::place(&drafts, &pieces, reference, how.offsets)?;
    let whole = whole_traces(&drafts, &pieces);
    let all = drafts.into_iter().zip(placed).zip(&pieces);
    for (number, ((draft, placed), piece)) in all.enumerate() {
        let folder = draft.folder.clone();
        if draft.has_changed {
            traces.changed.push(draft.file.fragment.path.clone());
        }
        let finished = finish(draft, placed, &whole[piece.first]);
        let (recording, mut report) =
            finished.map_err(|error| Error::of_temporary(&folder, error))?;
        let is_first = piece.first == number;
        report.continues = (!is_first).then(|| whole[piece.first].path.clone());
        report.doubt.clone_from(&piece.doubt);
        traces.recordings.push(recording);
        traces.reports.push(report);
    }
    Ok(traces)
}

/// Reads one trace into a temporary file, in the first folder that takes it.
fn draft<'f>(
    mut candidate: TraceCandidate,
    name: String,
    recordings: &[Recording],
    how: &ForeignOptions<'f>,
) -> Result<TraceDraft<'f>, Error> {
    let content = &candidate.fragment.content;
    let is_log = strace::is_log(content.bytes());
    // If it is read again, it must still be what was read first.
    let first_sum = Cell::new(None);
    let (folder, lines, read) = in_first(how.folders, |folder| {
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
    candidate.fragment.content = Content::Owned(Vec::new()); // what was unpacked takes no more room
    let TraceContents { form, members, log } = read;
    let (joined, origin) = match &log {
        Some(log) => join::join(log, recordings),
        None => (BTreeMap::new(), TimeOrigin::of(&members, lines.time)),
    };
    Ok(TraceDraft {
        file: candidate,
        name,
        front,
        lines,
        form,
        members,
        origin,
        joined,
        unplaced: log.map_or(0, |log| log.unplaced),
        folder: folder.to_owned(),
        has_changed,
    })
}

/// Form and members of a trace. Its events are in the lines.
struct TraceContents {
    form: &'static str,
    members: DocumentMembers,
    log: Option<StraceLog>,
}

/// Reads a trace, and returns the hash of its bytes as well.
fn read_content(
    content: &Content,
    is_log: bool,
    lines: &mut Lines<'_>,
) -> io::Result<(TraceContents, u64)> {
    let (bytes, mut sum) = (content.bytes(), ContentSum::begin(content));
    let mut passed = |at| sum.passed(at);
    let (form, members, log) = if is_log {
        let log = strace::read(bytes, lines, &mut passed)?;
        ("log", DocumentMembers::of("simpler"), Some(log))
    } else {
        let (form, members) = document::read(bytes, lines, &mut passed)?;
        (form, members, None)
    };
    let read = TraceContents { form, members, log };
    Ok((read, sum.finish()))
}

/// Names and number that all pieces of a trace share.
struct WholeTrace {
    number: usize,
    path: PathBuf,
    name: String,
    distinction: Option<Distinction>,
}

/// The trace that each of them begins; the entries of further pieces are not used.
fn whole_traces(drafts: &[TraceDraft<'_>], pieces: &[PiecePlace]) -> Vec<WholeTrace> {
    let firsts = || (0..drafts.len()).filter(|number| pieces[*number].first == *number);
    let ranks = firsts().map(|number| {
        let draft = &drafts[number];
        (draft.file.fragment.path.as_path(), draft.members.rank)
    });
    let mut distinctions = distinctions(&ranks.collect::<Vec<_>>());
    let whole = |number: usize| WholeTrace {
        number,
        path: drafts[number].file.fragment.path.clone(),
        name: drafts[number].name.clone(),
        distinction: firsts()
            .position(|first| first == number)
            .and_then(|nth| distinctions[nth].take()),
    };
    (0..drafts.len()).map(whole).collect()
}

/// Writes what places the times, and opens the file as a recording.
fn finish(
    draft: TraceDraft<'_>,
    placed: TracePlace,
    whole: &WholeTrace,
) -> io::Result<(Recording, ForeignReport)> {
    let mut lines = draft.lines;
    for anchor in &placed.anchors {
        lines.made(anchor.line(0).trim_ascii_end())?;
    }
    let is_merged = draft.members.tool == Some(MERGED);
    let has_kineto = lines.rows.values().any(|row| row.is_kineto());
    let foreign = ForeignTrace {
        name: whole.name.clone(),
        distinction: whole.distinction.clone(),
        rank: draft.members.rank,
        number: whole.number,
        clock: placed.clock,
        joined: draft.joined,
        texts: std::mem::take(&mut lines.texts),
        rows: std::mem::take(&mut lines.rows),
        is_kineto: has_kineto && !is_merged,
        is_merged,
        places: std::mem::take(&mut lines.places),
        repairs: std::mem::take(&mut lines.repairs),
        bytes: draft.file.bytes,
        front: draft.front,
    };
    let (file, early_arrows) = lines.finish()?;
    let report = ForeignReport {
        path: draft.file.fragment.path.clone(),
        form: draft.form,
        packed: draft.file.is_packed,
        tool: draft.members.tool,
        method: placed.method,
        clock: placed.words,
        offset_ns: placed.offset_ns,
        unplaced: draft.unplaced,
        early_arrows,
        left_out: draft.members.left_out,
        continues: None,
        doubt: None,
    };
    let Fragment {
        path, id, access, ..
    } = draft.file.fragment;
    // Whatever the lines are, no recorder of ours wrote them.
    let fragment = Fragment {
        header: None,
        removal: None,
        begin: None,
        ..Fragment::of(path, id, access, Content::open(file)?)
    };
    Ok((Recording::of_foreign(fragment, foreign), report))
}
