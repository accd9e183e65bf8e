//! Copies a run that is still recording: everything its processes have recorded until now. Each copied fragment records if its process was running.
//!
//! Full segments never change again, so they are linked. The newest segment is copied up to its last complete block, and the content of the ring is
//! appended to the copy in the same way as for settling (FORMAT.md §4). The recording is not changed, and its processes do not notice.

use crate::base::access::Access;
use crate::base::file_status::FileId;
use crate::base::folder::{FileLocation, Folder};
use crate::error::Error;
use crate::event::scan::{Part, line_start};
use crate::fragment::blocks::{Piece, split};
use crate::fragment::file::{Fragment, RingFile};
use crate::fragment::input::Input;
use crate::fragment::liveness::{is_alive_here, is_locked};
use crate::fragment::load::{Opened, by_stem, list_segments, list_stems, recorder_key};
use crate::fragment::recording::Recording;
use crate::fragment::settle::{ProcessEnd, blocks, end_line};
use crate::summary::summarize::summarize;
use sa_format::{FRAGMENTS_DIR, NEXT_RUN_FILE, RUN_FILE};
use serde::Serialize;
use std::fs::DirBuilder;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// How often a fragment is read again because its process wrote records of its own meanwhile.
const TRIES: u32 = 8;

/// Contents of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SnapshotReport {
    /// Number of fragments, each with one or more segments.
    pub fragments: usize,
    /// Number of segments that share their disk space with the run.
    pub linked: usize,
    /// Number of segments that were copied.
    pub copied: usize,
    /// Size of all segments in bytes.
    pub bytes: u64,
    /// Descriptions of what could not be read.
    pub unreadable: Vec<String>,
}

/// Copies the run in `directory`, which may be recording, to the new directory `out`.
///
/// # Errors
/// Returns an error if there is nothing to copy, or if `out` already contains a run or cannot be written.
pub fn snapshot(directory: &Path, out: &Path) -> Result<SnapshotReport, Error> {
    let unusable =
        |error: io::Error| Error::NothingUsable(format!("{}: {error}", directory.display()));
    let run = Folder::open(directory).map_err(unusable)?;
    let fragments = match run.folder(FRAGMENTS_DIR) {
        Err(error) if error.kind() == ErrorKind::NotFound => run.clone(),
        opened => opened.map_err(unusable)?,
    };
    let files = list_stems(&fragments).map_err(unusable)?;
    if files.is_empty() {
        return Err(Error::NothingUsable(format!(
            "no fragments in {}",
            fragments.path().display()
        )));
    }
    let failed = |source| Error::from_write(&out.join(FRAGMENTS_DIR), source);
    let out = create_folder(out, &run).map_err(failed)?;
    let target = out.create_folder(FRAGMENTS_DIR, &fragments);
    let mut copy = Copy {
        target: target.map_err(failed)?,
        report: SnapshotReport::default(),
    };
    for (stem, files) in by_stem(&files) {
        copy.fragment(&stem, &files).map_err(failed)?;
    }
    for name in [RUN_FILE, NEXT_RUN_FILE] {
        copy_front(&run.place(name), &out.place(name)).map_err(failed)?;
    }
    Ok(copy.report)
}

/// Opens a folder, or creates it for the same users as `other`.
fn create_folder(path: &Path, other: &Folder) -> io::Result<Folder> {
    let is_new = !path.exists();
    DirBuilder::new().mode(0o700).recursive(true).create(path)?;
    let folder = Folder::open(path)?;
    if is_new {
        folder.copy_permissions_from(other)?;
    }
    Ok(folder)
}

/// Copies a small file if it exists.
fn copy_front(from: &FileLocation, to: &FileLocation) -> io::Result<()> {
    let Ok(file) = from.open_regular(false) else {
        return Ok(());
    };
    let access = Access::from_file(&file.metadata()?, from.folder().access());
    write_new(to, access, &[&from.read_front(false)?])
}

fn write_new(place: &FileLocation, access: Access, parts: &[&[u8]]) -> io::Result<()> {
    let mut file = place.create(access)?;
    parts.iter().try_for_each(|part| file.write_all(part))
}

struct Copy {
    target: Folder,
    report: SnapshotReport,
}

impl Copy {
    /// Copies one fragment. Its ring is copied before its segments are listed, so that data that is flushed meanwhile is in them.
    fn fragment(&mut self, stem: &FileLocation, files: &[Input]) -> io::Result<()> {
        let mut state = FragmentState::read(stem, files);
        for _ in 0..TRIES {
            if !state.has_advanced {
                break;
            }
            let Some(files) = list_segments(stem) else {
                break;
            };
            state = FragmentState::read(stem, &files);
        }
        self.report.unreadable.append(&mut state.unreadable);
        for fragment in &state.full {
            self.full_segment(fragment)?;
        }
        if let Some((newest, tail)) = &state.newest {
            self.report.fragments += 1;
            self.segment(newest, whole_end(newest.content.bytes()), tail)?;
        }
        Ok(())
    }

    /// Reports a fragment that another program changed before its first `len` bytes were copied to `copy`. The missing part is zeros in the copy. A
    /// recorder that releases unused blocks of a full segment changes only the times of the file, so the copy is compared with the current content.
    fn report_change(&mut self, fragment: &Fragment, copy: &FileLocation, len: usize) {
        let was_rewritten = || {
            let place = fragment.place();
            place.is_some_and(|place| fragment.watch.was_rewritten(&place))
                && !starts_with(copy, &fragment.content.bytes()[..len])
        };
        let content = &fragment.content;
        if content.is_cut() || content.is_watched() && was_rewritten() {
            let path = fragment.path.display();
            let words = format!("{path}: truncated or rewritten while it was copied");
            self.report.unreadable.push(words);
        }
    }

    /// Links a segment. Copies it if it cannot be linked, or if its name is gone or belongs to another file by now.
    fn full_segment(&mut self, fragment: &Fragment) -> io::Result<()> {
        let (place, len) = (self.target_place(fragment), fragment.content.bytes().len());
        let from = fragment.place();
        if from.is_some_and(|from| from.link(&place).is_ok()) {
            let made = place.status()?;
            if FileId::from_stat(&made) == fragment.id {
                self.report.linked += 1;
                self.report.bytes += len as u64;
                return Ok(());
            }
            place.remove()?;
        }
        self.segment(fragment, len, b"")?;
        fragment.content.release(0, len);
        Ok(())
    }

    /// Copies the first `len` bytes of a segment and appends `tail`, the blocks from the ring.
    fn segment(&mut self, fragment: &Fragment, len: usize, tail: &[u8]) -> io::Result<()> {
        let place = self.target_place(fragment);
        let parts = [&fragment.content.bytes()[..len], tail];
        write_new(&place, fragment.access, &parts)?;
        self.report_change(fragment, &place, len);
        self.report.copied += 1;
        self.report.bytes += (len + tail.len()) as u64;
        Ok(())
    }

    fn target_place(&self, fragment: &Fragment) -> FileLocation {
        let name = fragment.path.file_name();
        self.target.place(name.unwrap_or_default())
    }
}

/// Returns true if a file starts with these bytes.
fn starts_with(place: &FileLocation, bytes: &[u8]) -> bool {
    let read = || {
        let mut file = place.open_regular(false).ok()?;
        let mut copied = vec![0; bytes.len()];
        file.read_exact(&mut copied).ok()?;
        Some(copied == bytes)
    };
    read() == Some(true)
}

/// Files of a fragment, read at one moment.
struct FragmentState {
    /// Segments that never change again, and segments of other recorders.
    full: Vec<Fragment>,
    /// The newest segment, and the data that settling would append to it.
    newest: Option<(Fragment, Vec<u8>)>,
    /// True if the process wrote records of its own after its ring was copied. Then it is unknown which spans were open.
    has_advanced: bool,
    unreadable: Vec<String>,
}

impl FragmentState {
    fn read(stem: &FileLocation, files: &[Input]) -> FragmentState {
        let opened = Opened::open(stem, files);
        let failed = opened.failed.iter();
        let unreadable =
            failed.map(|(place, error)| format!("{}: {error}", place.path().display()));
        let mut state = FragmentState {
            full: Vec::new(),
            newest: None,
            has_advanced: false,
            unreadable: unreadable.collect(),
        };
        // A segment that was full before the ring was copied contains no data of the ring and nothing later.
        let is_recent = |fragment: &Fragment| fragment.segment() >= opened.live;
        let is_of_ring = |fragment: &Fragment| match (&opened.ring, &fragment.header) {
            (Some(RingFile::Read(ring, _)), Some(header)) => ring.belongs_to(header),
            (Some(RingFile::Read(..)), None) => false,
            _ => true,
        };
        let last = opened.fragments.iter().rposition(is_of_ring);
        let mut recent = Vec::new();
        for (at, fragment) in opened.fragments.into_iter().enumerate() {
            if Some(at) == last || is_recent(&fragment) && is_of_ring(&fragment) {
                recent.push(fragment);
            } else {
                state.full.push(fragment);
            }
        }
        let newest = recent.last().and_then(|newest| newest.header.as_ref());
        let was_dead = newest.is_some_and(|header| opened.dead == Some(recorder_key(header)));
        let mut recording = Recording::new(recent, opened.ring_place, opened.ring, was_dead);
        let tail;
        (tail, state.has_advanced) = settled_tail(&recording);
        state.newest = recording.fragments.pop().map(|newest| (newest, tail));
        state.full.append(&mut recording.fragments);
        state
    }
}

/// Returns true if the process of a recording was running when its ring was copied. A process of another host or pid namespace counts as running if
/// its fragment is locked.
fn is_running(recording: &Recording) -> bool {
    let place = recording.fragments.last().and_then(Fragment::place);
    let is_locked = || place.is_some_and(|place| is_locked(&place));
    let header = recording.header().filter(|_| !recording.was_dead);
    header.is_some_and(|header| is_alive_here(header).unwrap_or_else(is_locked))
}

/// Returns what settling would append to the newest segment, and true if the segment already continues after the end of the ring's copy.
fn settled_tail(recording: &Recording) -> (Vec<u8>, bool) {
    let fragments = recording.fragments.iter();
    let pieces: Vec<_> = fragments
        .map(|fragment| split(fragment.content.bytes()))
        .collect();
    let (Some(header), Some(last)) = (recording.header(), recording.fragments.last()) else {
        return (Vec::new(), false);
    };
    let assembly = recording.assemble(&pieces);
    let parts: Vec<Part> = assembly.parts(recording.fragments.len() - 1).collect();
    let summary = summarize(last.content.bytes(), &parts);
    let known = ProcessEnd {
        last_ns: summary.last_ns().unwrap_or(0),
        exit: None,
        is_running: is_running(recording),
    };
    let tail = match &recording.ring {
        Some((ring, _)) => blocks(header, ring, &assembly, known).map(|all| all.concat()),
        None if known.is_running && !summary.ended => Some(end_line(header.pid, known, None)),
        None => None,
    };
    (tail.unwrap_or_default(), assembly.beyond_ring)
}

/// Returns the end of the last whole line or block. Everything after it is being written.
fn whole_end(bytes: &[u8]) -> usize {
    let lines_end = line_start(bytes, bytes.len(), 0);
    match split(&bytes[..lines_end]).last() {
        Some((body, Piece::Broken(_))) => line_start(bytes, body.start - 1, 0),
        _ => lines_end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragment::settle::block;
    use std::fs;

    #[test]
    fn a_copy_ends_with_its_last_whole_block() {
        let block = block(7, (1, 0), 0, b"{\"a\":1}\n{\"b\":2}\n");
        let before = [b"first\n", &block[..]].concat();
        for cut in 0..=block.len() {
            let bytes = [&before[..], &block[..cut]].concat();
            let whole = if cut == block.len() { &bytes } else { &before };
            assert_eq!(whole_end(&bytes), whole.len(), "cut at {cut}");
        }
    }

    #[test]
    fn issue_19_a_fragment_that_is_cut_while_it_is_copied_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace.5.jsonl");
        fs::write(&path, "{\"ph\":\"i\",\"pid\":5,\"ts\":1}\n".repeat(5_000)).unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let input = Input::in_directory(folder.place("trace.5.jsonl"));
        for is_cut in [false, true] {
            let fragment = Fragment::open(&input).unwrap();
            if is_cut {
                fs::write(&path, "").unwrap();
            }
            let mut copy = Copy {
                target: folder.create_folder(&is_cut.to_string(), &folder).unwrap(),
                report: SnapshotReport::default(),
            };
            copy.segment(&fragment, whole_end(fragment.content.bytes()), &[])
                .unwrap();
            let unreadable = copy.report.unreadable;
            assert_eq!(unreadable.len(), usize::from(is_cut), "{unreadable:?}");
        }
    }
}
