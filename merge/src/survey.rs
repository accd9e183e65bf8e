//! Who records in a run directory, and how much so far: what a status shows, without merging.
//!
//! [`processes`] reads headers only. [`RunProcess::contents`] reads the rest: blocks are counted by their newlines, so that a run of 1 GB
//! takes about as long as reading it, the first time; what the recorder tells of itself is parsed.

mod contents;

pub use contents::{Contents, Known};

use crate::death::is_alive_here;
use crate::fragment::{open_regular, own_records, read_front, read_header, ring_path};
use crate::input::{self, Input, Inputs};
use crate::open::{by_stem, list};
use crate::scan::line_start;
use crate::{Error, Runs};
use memchr::memmem;
use sa_recorder::format::{END_RECORD, FragmentHeader, Metadata};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The record of a clean end is not longer.
const END_BYTES: u64 = 512;

/// A process of a run and where it records.
#[derive(Clone, Debug)]
pub struct RunProcess {
    /// What its fragments' headers say; that of the first one.
    pub header: FragmentHeader,
    /// Its fragments, sorted.
    pub fragments: Vec<PathBuf>,
}

/// Finds the processes of the newest run of a directory, those of the main process first, then by pid. Fragments without a header, of other
/// programs, are left out.
///
/// # Errors
/// [`Error::NothingUsable`] if the directory cannot be read or holds no fragment with a header.
pub fn processes(directory: &Path) -> Result<Vec<RunProcess>, Error> {
    let found = input::find(&[directory.to_owned()], &Runs::Newest);
    let mut processes: BTreeMap<_, RunProcess> = BTreeMap::new();
    for file in &found.files {
        let front = read_front(&file.path, false).unwrap_or_default();
        let Some(header) = read_header(&front) else {
            continue;
        };
        let identity = (
            !header.main,
            header.host.clone(),
            header.boot_id.clone(),
            header.pid_ns,
            header.pid,
            header.start_time,
        );
        let process = processes.entry(identity).or_insert_with(|| RunProcess {
            header,
            fragments: Vec::new(),
        });
        process.fragments.push(file.path.clone());
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
    /// Whether it is alive. Where that cannot be seen (another host, another pid namespace), whether one of its fragments is locked.
    pub fn is_alive(&self) -> bool {
        let is_locked = |path: &PathBuf| {
            let file = File::open(path).ok();
            file.is_some_and(|file| file.try_lock().is_err())
        };
        // It may have gone on to its next segment since its fragments were listed.
        let is_owned = || {
            let mut now = self
                .stems()
                .into_iter()
                .filter_map(|stem| list(&stem))
                .flatten();
            now.any(|file| is_locked(&file.path))
        };
        is_alive_here(&self.header).unwrap_or_else(is_owned)
    }

    fn stems(&self) -> BTreeSet<PathBuf> {
        let files = self.fragments.iter().cloned().map(Input::in_directory);
        by_stem(&files.collect::<Vec<_>>()).into_keys().collect()
    }

    /// Whether it is alive and has not ended its recording.
    pub fn is_recording(&self) -> bool {
        let written = |path: &&PathBuf| {
            path.symlink_metadata()
                .and_then(|file| file.modified())
                .ok()
        };
        let last = self.fragments.iter().max_by_key(written);
        self.is_alive() && !last.is_some_and(|path| ends_with_end(path).unwrap_or(false))
    }

    /// Whether one of its latest records about itself holds this text, flushed or not: a look at its ring, however much it records. `None`
    /// without a ring.
    pub fn has_told(&self, text: &[u8]) -> Option<bool> {
        let rings = self.fragments.iter().filter_map(|path| ring_path(path));
        let rings: BTreeSet<_> = rings.collect();
        let records: Vec<_> = rings.iter().filter_map(|path| own_records(path)).collect();
        let finder = memmem::Finder::new(text);
        (!records.is_empty()).then(|| records.iter().any(|bytes| finder.find(bytes).is_some()))
    }

    /// What it is called if it does not say: script or program.
    pub fn program(&self) -> &str {
        let script = self.header.script.as_deref();
        script.unwrap_or(&self.header.exe)
    }
}

/// Whether the last record of a fragment is that of a clean end.
fn ends_with_end(fragment: &Path) -> io::Result<bool> {
    let file = open_regular(fragment, false)?;
    let len = file.metadata()?.len();
    let tail_bytes = len.min(END_BYTES);
    let mut tail = vec![0; usize::try_from(tail_bytes).unwrap_or(0)];
    file.read_exact_at(&mut tail, len - tail_bytes)?;
    let line = tail.trim_ascii_end();
    let record: Option<Metadata<serde::de::IgnoredAny>> =
        serde_json::from_slice(&line[line_start(line, line.len(), 0)..]).ok();
    Ok(record.is_some_and(|record| record.name == END_RECORD))
}
