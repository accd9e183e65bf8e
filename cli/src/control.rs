//! Stores a control for the live processes of a run.

use crate::error::Error;
use sa_format::control::{CONTROL_FILE, CONTROL_VERSION, Control, LEAD_NS, MAX_CONTROL_BYTES};
use sa_recorder::host;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use trace_merge::survey::RunProcess;

/// Stores a control for the run of `process`, with the owner and mode of that process's files. It takes effect a little later. `wish` gets that time,
/// as wall time in ns, and returns the control.
pub(crate) fn store(
    directory: &Path,
    process: &RunProcess,
    wish: impl FnOnce(u64) -> Control,
) -> Result<Control, Error> {
    let from_realtime_ns = wall_ns() + LEAD_NS;
    let control = Control {
        version: CONTROL_VERSION,
        id: format!("{:016x}", host::random()),
        run: process.header.run.clone(),
        from_realtime_ns,
        ..wish(from_realtime_ns)
    };
    let text = control.to_json_line();
    if text.len() > MAX_CONTROL_BYTES {
        return Err(Error::Unusable(format!(
            "expected a control of at most {MAX_CONTROL_BYTES} bytes, found {}: the name of the steps is too long",
            text.len()
        )));
    }
    let mut files = process.fragments.iter().rev(); // the oldest ones may have been removed
    let like = files
        .find(|path| path.exists())
        .map_or(directory, |path| path.as_path());
    let aside = directory.join(format!("{CONTROL_FILE}.{}.tmp", control.id));
    let stored =
        write(&aside, &text, like).and_then(|()| fs::rename(&aside, directory.join(CONTROL_FILE)));
    if let Err(error) = stored {
        let _ = fs::remove_file(&aside); // only cleans up
        return Err(Error::file(&directory.join(CONTROL_FILE), error));
    }
    Ok(control)
}

/// Creates a file with the owner of `like`. Processes do not obey another user's control.
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

/// Returns the wall time in ns.
pub(crate) fn wall_ns() -> u64 {
    host::anchor().realtime_ns
}
