//! Lists the processes that record in a run directory and counts what they have recorded so far. This is what `sa-profile status` shows, without a
//! merge.
//!
//! [`processes`] reads headers only. [`RunProcess::contents`] reads the rest and counts it with the merge's own first pass, so that both always
//! agree. [`find_runs`] finds the run for a directory.

mod contents;
mod found_runs;

pub use crate::fragment::liveness::has_exclusive_lock;
pub use contents::{Contents, SegmentCache};
pub use found_runs::{FoundRuns, find_live_run, find_runs};

use crate::base::folder::FileLocation;
use crate::error::Error;
use crate::event::scan::line_start;
use crate::fragment::file::{header_at, own_records, ring_place};
use crate::fragment::input::Runs;
use crate::fragment::input::{self, Input, Inputs};
use crate::fragment::liveness::{identity, is_alive_here, is_locked};
use crate::fragment::load::{by_stem, list_segments};
use memchr::memmem;
use sa_format::{End, FragmentHeader, Record};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Upper bound for the length of the record of a clean end.
const END_BYTES: u64 = 512;

/// A process of a run, and its fragments.
#[derive(Clone, Debug)]
pub struct RunProcess {
    /// Header of the process's first fragment.
    pub header: FragmentHeader,
    /// Paths of its fragments, sorted.
    pub fragments: Vec<PathBuf>,
    /// The same fragments, in the folder that was open when they were found.
    files: Vec<Input>,
}

/// Finds the processes of the newest run of a directory, the main process first, the others sorted by pid. Fragments of other programs, which have no
/// header, are left out.
///
/// # Errors
/// Returns [`Error::NothingUsable`] if the directory cannot be read or contains no fragment with a header.
pub fn processes(directory: &Path) -> Result<Vec<RunProcess>, Error> {
    let found = input::find(&[directory.to_owned()], &Runs::Newest);
    let mut processes: BTreeMap<_, RunProcess> = BTreeMap::new();
    for file in &found.files {
        let Some(header) = header_at(&file.place, false) else {
            continue;
        };
        let key = (!header.main, identity(&header));
        let process = processes.entry(key).or_insert_with(|| RunProcess {
            header: header.clone(),
            fragments: Vec::new(),
            files: Vec::new(),
        });
        process.header.complete_with(&header);
        process.fragments.push(file.place.path().to_owned());
        process.files.push(Input::in_directory(file.place.clone()));
    }
    if processes.is_empty() {
        return Err(Error::NothingUsable(why_none(directory, &found)));
    }
    Ok(processes.into_values().collect())
}

fn why_none(directory: &Path, found: &Inputs) -> String {
    if let Some((path, why)) = found.unreadable.first() {
        return format!("{}: {why}", path.display());
    }
    let directory = directory.display();
    match found.files.len() {
        0 => format!(
            "{directory}: expected a run directory (fragments/trace.*.jsonl), found no fragment"
        ),
        files => format!(
            "{directory}: expected fragments of sa-recorder, found {files} without its header"
        ),
    }
}

impl RunProcess {
    /// Returns true if the process is alive. If that is unknown (other host, other pid namespace), returns true if one of its fragments is locked.
    pub fn is_alive(&self) -> bool {
        // The process may have begun another segment since its fragments were listed.
        let is_owned = || {
            let stems = by_stem(&self.files).into_keys();
            let mut now = stems.filter_map(|stem| list_segments(&stem)).flatten();
            now.any(|file| is_locked(&file.place))
        };
        is_alive_here(&self.header).unwrap_or_else(is_owned)
    }

    /// Returns true if the process is alive and has not ended its recording.
    pub fn is_recording(&self) -> bool {
        self.is_alive() && !self.has_ended()
    }

    /// Returns true if the fragment that was written last ends with an end record, whether the process or a reader wrote it.
    pub fn has_ended(&self) -> bool {
        let written = |file: &&Input| {
            let status = file.place.status().ok();
            status.map(|status| (status.st_mtime, status.st_mtime_nsec))
        };
        let last = self.files.iter().max_by_key(written);
        last.is_some_and(|file| ends_with_end(&file.place).unwrap_or(false))
    }

    /// Returns true if one of the latest records of the process's own stream contains this text, flushed or not. Reads only the ring, however much is
    /// recorded. `None` if there is no ring.
    pub fn own_records_contain(&self, text: &[u8]) -> Option<bool> {
        let records: Vec<_> = self.ring_places().iter().filter_map(own_records).collect();
        let finder = memmem::Finder::new(text);
        (!records.is_empty()).then(|| records.iter().any(|bytes| finder.find(bytes).is_some()))
    }

    /// Returns the number of its rings that still exist.
    pub fn rings(&self) -> usize {
        let places = self.ring_places();
        places.iter().filter(|ring| ring.exists()).count()
    }

    /// Returns where the rings of its fragments are, or would be.
    fn ring_places(&self) -> BTreeSet<FileLocation> {
        let rings = self.files.iter().filter_map(|file| ring_place(&file.place));
        rings.collect()
    }

    /// Returns the name that is shown until the process sets one.
    pub fn default_name(&self) -> Cow<'_, str> {
        self.header.default_name()
    }
}

/// Returns true if the last record of a fragment is the record of a clean end.
fn ends_with_end(fragment: &FileLocation) -> io::Result<bool> {
    let file = fragment.open_regular(false)?;
    let len = file.metadata()?.len();
    let tail_bytes = len.min(END_BYTES);
    let mut tail = vec![0; usize::try_from(tail_bytes).unwrap_or(0)];
    file.read_exact_at(&mut tail, len - tail_bytes)?;
    let line = tail.trim_ascii_end();
    let line = &line[line_start(line, line.len(), 0)..];
    Ok(End::parse(line).is_some())
}
