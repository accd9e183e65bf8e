//! Stores a control, waits until every live process has recorded that it obeys, and names those that have not.

use crate::control::store;
use crate::error::Error;
use crate::print;
use crate::words::{processes as plural, say};
use memchr::memmem;
use sa_format::control::Control;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};
use trace_merge::survey::{RunProcess, processes};

/// Maximum time to wait for all processes.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// Name of the recorder's thread.
const RECORDER_THREAD: &str = "sa-profile";
/// Interval at which the processes are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Options for waiting.
#[derive(clap::Args)]
pub(crate) struct Patience {
    /// Do not wait until all processes have obeyed
    #[arg(long)]
    no_wait: bool,
    /// Wait until all processes have obeyed, 2 s at most: the default
    #[arg(long, conflicts_with = "no_wait")]
    wait: bool,
}

/// Stores a control, as in [`store`], and waits for the live processes of the run. `task` describes what the processes then do.
pub(crate) fn apply(
    directory: &Path,
    wish: impl FnOnce(u64) -> Control,
    task: &str,
    patience: &Patience,
) -> Result<ExitCode, Error> {
    let mut waiting: Vec<Waiting> = processes(directory)?
        .into_iter()
        .filter(RunProcess::is_recording)
        .map(Waiting::new)
        .collect();
    let Some(first) = waiting.first() else {
        return Err(Error::Unusable(format!(
            "{}: expected live processes that record, found none",
            directory.display()
        )));
    };
    let control = store(directory, &first.process, wish)?;
    let end = Instant::now() + MAX_WAIT;
    let count = waiting.len();
    let all = plural(count as u64);
    let heading = format!("{}: run {}:", directory.display(), control.run);
    if patience.no_wait {
        print(&format!("{heading} {all} asked to {task}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    while !waiting.is_empty() && Instant::now() < end {
        thread::sleep(CHECK_INTERVAL);
        waiting.retain_mut(|waiting| Instant::now() > end || !waiting.has_obeyed(&control));
    }
    waiting.retain(|waiting| waiting.process.is_recording()); // a process that has ended need not obey
    let obeyed = count - waiting.len();
    print(&format!("{heading} {obeyed} of {all} {task}\n"))?;
    for waiting in &waiting {
        let (name, pid) = (waiting.process.default_name(), waiting.process.header.pid);
        let why = match has_recorder_thread(pid) {
            Some(false) => {
                ": it has no recorder thread (docs/threads.md) and will obey with its next event"
            }
            _ => "",
        };
        say(&format!("{name} [{pid}] did not obey within 2 s{why}"));
    }
    Ok(ExitCode::from(u8::from(!waiting.is_empty())))
}

/// Returns true if a process has the recorder's thread; `None` if `/proc` does not show its threads.
fn has_recorder_thread(pid: u32) -> Option<bool> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let mut names = threads
        .flatten()
        .map(|thread| std::fs::read_to_string(thread.path().join("comm")));
    Some(names.any(|name| name.is_ok_and(|name| name.trim_end() == RECORDER_THREAD)))
}

/// A process that has not obeyed yet, and the offsets up to which its fragments were searched.
struct Waiting {
    process: RunProcess,
    searched: Vec<(PathBuf, u64)>,
}

impl Waiting {
    fn new(process: RunProcess) -> Waiting {
        let searched = process.fragments.iter().map(|path| {
            let bytes = path.symlink_metadata().map_or(0, |metadata| metadata.len());
            (path.clone(), bytes)
        });
        Waiting {
            searched: searched.collect(),
            process,
        }
    }

    /// Returns true if the process has recorded the control. The ring shows that at once. Without a ring file, the fragments are searched.
    fn has_obeyed(&mut self, control: &Control) -> bool {
        let mark = format!(r#""control":"{}""#, control.id);
        if let Some(is_recorded) = self.process.own_records_contain(mark.as_bytes()) {
            return is_recorded;
        }
        let mut fragments = self.searched.iter_mut();
        fragments.any(|(path, from)| find_mark(path, from, mark.as_bytes()).unwrap_or(false))
    }
}

/// Returns true if the file contains the mark after offset `from`. Otherwise moves `from` to the first offset at which the mark may still begin.
fn find_mark(path: &Path, from: &mut u64, mark: &[u8]) -> io::Result<bool> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(*from))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let searched = (bytes.len() + 1).saturating_sub(mark.len());
    *from += searched as u64;
    Ok(memmem::find(&bytes, mark).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_mark_that_is_written_in_two_pieces_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let mut file = File::create(&path).unwrap();
        file.write_all(b"before ma").unwrap();
        let mut from = 7;
        assert!(!find_mark(&path, &mut from, b"mark").unwrap());
        file.write_all(b"rk after").unwrap();
        assert!(find_mark(&path, &mut from, b"mark").unwrap());
    }
}
