//! Stores a control for the live processes of a run.

use crate::error::Error;
use sa_format::Level;
use sa_format::control::{
    CONTROL_FILE, CONTROL_VERSION, Control, LEAD_NS, MAX_CONTROL_BYTES, Steps, SwitchCause,
};
use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use trace_merge::survey::RunProcess;

/// What a command asks the processes for.
pub(crate) struct Wish {
    pub(crate) cause: SwitchCause,
    /// None: those that each process was configured with.
    pub(crate) levels: Option<Vec<Level>>,
    pub(crate) time: Option<Duration>,
    pub(crate) events: Option<u64>,
    pub(crate) steps: Option<Steps>,
}

impl Wish {
    /// Switches to these levels, without an end.
    pub(crate) fn new(cause: SwitchCause, levels: Option<Vec<Level>>) -> Wish {
        Wish {
            cause,
            levels,
            time: None,
            events: None,
            steps: None,
        }
    }

    /// The control for a run, from a little ahead of now on.
    fn control(self, run: &str) -> Control {
        let from = wall_ns() + LEAD_NS;
        let until = |time: Duration| from.saturating_add(ns(time));
        Control {
            version: CONTROL_VERSION,
            id: format!("{:016x}", random()),
            run: run.to_owned(),
            cause: self.cause,
            levels: self.levels,
            from_realtime_ns: from,
            until_realtime_ns: self.time.map(until),
            events: self.events,
            steps: self.steps,
        }
    }
}

/// Stores what is wished for the run of `process`, with owner and mode of that process's files.
pub(crate) fn store(directory: &Path, process: &RunProcess, wish: Wish) -> Result<Control, Error> {
    let control = wish.control(&process.header.run);
    let text = control.text();
    if text.len() > MAX_CONTROL_BYTES {
        return Err(Error::Unusable(format!(
            "expected a control of at most {MAX_CONTROL_BYTES} bytes, found {}: the name of the steps is too long",
            text.len()
        )));
    }
    let mut files = process.fragments.iter().rev(); // the oldest ones may be gone
    let like = files
        .find(|path| path.exists())
        .map_or(directory, |path| path.as_path());
    let aside = directory.join(format!("{CONTROL_FILE}.{}.tmp", control.id));
    let stored =
        write(&aside, &text, like).and_then(|()| fs::rename(&aside, directory.join(CONTROL_FILE)));
    if let Err(error) = stored {
        let _ = fs::remove_file(&aside); // only tidying
        return Err(Error::of_file(&directory.join(CONTROL_FILE), error));
    }
    Ok(control)
}

/// Makes a file that belongs to whom `like` does, for no process obeys another user.
fn write(path: &Path, text: &[u8], like: &Path) -> io::Result<()> {
    let like = fs::symlink_metadata(like)?;
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    let mut file: File = options.custom_flags(libc::O_NOFOLLOW).open(path)?;
    if file.metadata()?.uid() != like.uid() {
        std::os::unix::fs::fchown(&file, Some(like.uid()), Some(like.gid())).map_err(|error| {
            let why = format!("the run belongs to user {}: {error}", like.uid());
            io::Error::new(error.kind(), why)
        })?;
    }
    file.set_permissions(fs::Permissions::from_mode(like.mode() & 0o666 | 0o600))?;
    file.write_all(text)
}

/// Wall time in ns.
pub(crate) fn wall_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    ns(now.unwrap_or_default())
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A number that no other command has: the standard library's hash keys are random.
fn random() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(wall_ns());
    hasher.finish()
}
