//! Traces of other profilers, as inputs beside fragments.
//!
//! A document may hold many events on one line, or one on many, and be compressed: each is read once, front to back, and its events go to a temporary
//! file without a name, a line each. That file is then a recording like any other, with processes and flow ids of its own. What is wrong in the document is told
//! by its own offsets.

pub(crate) mod row_metadata;

mod clock;
mod document;
mod event;
mod find;
mod gzip;
mod join;
mod lines;
mod members;
mod objects;
mod offset;
mod place;
mod resync;
mod strace;
mod told;

pub(crate) use find::{Found, find};
pub use offset::{Offset, parse_offset};
pub use told::ForeignReport;

use crate::app::report::Report;
use crate::base::access::Access;
use crate::base::file_id::FileId;
use crate::event::damage::{Kind, Places};
use crate::event::mend::Repairs;
use crate::fragment::file::{Content, Fragment};
use crate::fragment::recording::Recording;
use crate::{Error, Options};
use clock::{Axis, Origin};
use document::Read;
use find::Candidate;
use lines::Lines;
use members::Members;
use sa_recorder::format::{ANCHOR_RECORD, FragmentHeader, Metadata};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use strace::Log;

/// Bytes of a document after which those behind are let go of.
const RELEASED_BYTES: usize = 32 << 20;

/// What a recording that was another profiler's trace is, beside its lines.
pub(crate) struct Foreign {
    /// What it is called in labels and reports.
    pub(crate) name: String,
    /// Which of these traces it is.
    pub(crate) number: usize,
    /// Whose clock its times are of; `None` if it needs none.
    pub(crate) clock: Option<FragmentHeader>,
    /// Its pids that are those of recorded processes.
    pub(crate) joined: BTreeMap<i64, FragmentHeader>,
    /// Its ids that are texts, by the numbers that stand for them.
    pub(crate) texts: BTreeMap<i64, String>,
    /// What was wrong in it.
    pub(crate) places: Places,
    /// What was mended in it.
    pub(crate) repairs: Repairs,
    /// Its length in bytes.
    pub(crate) bytes: u64,
    pub(crate) told: ForeignReport,
}

impl Foreign {
    /// Whether its file was empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

/// A trace that was read, before it is known where its times belong.
struct Draft {
    path: PathBuf,
    access: Access,
    id: FileId,
    name: String,
    bytes: u64,
    is_packed: bool,
    lines: Lines,
    form: &'static str,
    members: Members,
    origin: Origin,
    joined: BTreeMap<i64, FragmentHeader>,
    unplaced: u64,
    folder: PathBuf,
}

/// Reads the traces and places each by its clock. `recordings` are the fragments.
///
/// # Errors
/// If one has no clock and nobody said where it belongs, an offset is of none of them, or there is no room for temporary files.
pub(crate) fn read(
    (candidates, recordings): (Vec<Candidate>, &[Recording]),
    options: &Options,
    folders: &[PathBuf],
    report: &mut Report,
) -> Result<Vec<Recording>, Error> {
    let names = names(&candidates);
    let how = (folders, options.keep_times);
    let mut drafts = Vec::new();
    for (candidate, name) in candidates.into_iter().zip(names) {
        if let Some((offset, why)) = &candidate.failure {
            report.add_damage(&candidate.path, *offset, Kind::BadGzip, Some(why.clone()));
        }
        drafts.push(draft(candidate, name, recordings, how)?);
    }
    let placed = place::place(&drafts, &Axis::of(recordings), &options.offsets)?;
    let finished = drafts.into_iter().zip(placed).enumerate();
    finished
        .map(|(number, (draft, placed))| {
            let folder = draft.folder.clone();
            finish(number, draft, placed).map_err(|error| Error::of_temporary(&folder, error))
        })
        .collect()
}

/// The names of their files; of those that share one the whole path.
fn names(candidates: &[Candidate]) -> Vec<String> {
    let short = |candidate: &Candidate| {
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
fn draft(
    candidate: Candidate,
    name: String,
    recordings: &[Recording],
    (folders, keeps_times): (&[PathBuf], bool),
) -> Result<Draft, Error> {
    let is_log = strace::is_log(candidate.content.bytes());
    let (folder, (lines, read)) = in_first(folders, |folder| {
        let read_in = |era| {
            let mut lines = Lines::new(folder, era)?;
            let read = read_content(&candidate.content, is_log, &mut lines)?;
            Ok((lines, read))
        };
        let (mut lines, read) = read_in(None)?;
        match lines.doubted().filter(|_| !keeps_times) {
            Some(era) => read_in(Some(era)),
            None => Ok((lines, read)),
        }
    })?;
    if candidate.content.has_changed() {
        let path = candidate.path;
        return Err(Error::Changed { path, offset: 0 });
    }
    let (form, members, log) = match read {
        Contents::Document(read) => (read.form.name(), read.members, None),
        Contents::Log(log) => ("log", Members::of("simpler"), Some(log)),
    };
    let (joined, origin) = match &log {
        Some(log) => join::join(log, recordings),
        None => (BTreeMap::new(), Origin::of(&members, lines.time)),
    };
    Ok(Draft {
        path: candidate.path,
        access: candidate.access,
        id: candidate.id,
        name,
        bytes: candidate.bytes,
        is_packed: candidate.is_packed,
        lines,
        form,
        members,
        origin,
        joined,
        unplaced: log.map_or(0, |log| log.unplaced),
        folder,
    })
}

/// Does something in the first of the folders in which it can be done.
fn in_first<T>(
    folders: &[PathBuf],
    mut work: impl FnMut(&Path) -> io::Result<T>,
) -> Result<(PathBuf, T), Error> {
    let mut failure = None;
    for folder in folders {
        match work(folder) {
            Ok(done) => return Ok((folder.clone(), done)),
            Err(error) => failure = Some(Error::of_temporary(folder, error)),
        }
    }
    Err(failure.unwrap_or_else(|| Error::Usage("no folder for temporary files".to_owned())))
}

/// What a trace turned out to be.
enum Contents {
    Document(Read),
    Log(Log),
}

fn read_content(content: &Content, is_log: bool, lines: &mut Lines) -> io::Result<Contents> {
    let (bytes, released) = (content.bytes(), Cell::new(0));
    let passed = |at| {
        if at - released.get() > RELEASED_BYTES {
            content.release(released.get(), at);
            released.set(at);
        }
    };
    let read = match is_log {
        true => Contents::Log(strace::read(bytes, lines, &passed)?),
        false => Contents::Document(document::read(bytes, lines, &passed)?),
    };
    content.release(released.get(), bytes.len());
    Ok(read)
}

/// Writes what places the times, and opens the file as a recording.
fn finish(number: usize, draft: Draft, placed: place::Placed) -> io::Result<Recording> {
    let mut lines = draft.lines;
    for anchor in &placed.anchors {
        let record = Metadata::new(0, ANCHOR_RECORD, *anchor);
        lines.made(&serde_json::to_vec(&record)?)?;
    }
    let told = ForeignReport {
        path: draft.path.clone(),
        form: draft.form,
        packed: draft.is_packed,
        tool: draft.members.tool,
        method: placed.method,
        clock: placed.words,
        offset_ns: placed.offset_ns,
        unplaced: draft.unplaced,
        left_out: draft.members.left_out,
    };
    let foreign = Foreign {
        name: draft.name,
        number,
        clock: placed.clock,
        joined: draft.joined,
        texts: std::mem::take(&mut lines.texts),
        places: std::mem::take(&mut lines.places),
        repairs: std::mem::take(&mut lines.repairs),
        bytes: draft.bytes,
        told,
    };
    let fragment = Fragment {
        path: draft.path,
        folder: None,
        access: draft.access,
        id: draft.id,
        content: Content::open(lines.finish()?)?,
        header: None,
        removal: None,
        extents: None,
    };
    Ok(Recording::of_foreign(fragment, foreign))
}
