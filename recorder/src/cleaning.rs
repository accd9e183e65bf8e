//! Moves the fragments of other runs that nobody owns any more into `previous/<run>/`, and keeps a few such runs.
//!
//! Only `trace.*.jsonl` and `trace.*.ring` of this host are touched, only plain files of this user; nothing is followed.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsRawFd;
use std::time::{Duration, SystemTime};

use crate::config::Config;
use crate::format::{FRAGMENT_SUFFIX, PREVIOUS_DIR, RING_SUFFIX, is_fragment_name, is_ring_name};
use crate::identity::Identity;
use crate::owner::{is_owned, read_header};
use crate::run::{folder_mode, fragments_folder};
use crate::sys::dir::Dir;
use crate::sys::fd;

/// The run that fragments without a header belong to.
const UNKNOWN_RUN: &str = "unknown";
/// A ring without a fragment may be one whose process is just starting.
const STARTING: Duration = Duration::from_secs(60);

/// Cleans the directory for the new run `run`. What cannot be moved stays: a later cleaning tries again.
pub(crate) fn clean(config: &Config, identity: &Identity, directory: &Dir, run: &str) {
    let Ok(fragments) = fragments_folder(config, directory) else {
        return;
    };
    let Ok(names) = fragments.names() else { return };
    for name in &names {
        let text = name.to_string_lossy();
        if is_fragment_name(&text)
            && let Some(old) = abandoned_run(&fragments, name, identity, run)
        {
            move_aside(config, directory, &fragments, name, &old);
        } else if is_ring_name(&text) {
            remove_orphan(&fragments, name, &names);
        }
    }
    forget_old_runs(config, directory);
}

/// The run of a fragment that may be moved; `None` if it is of this run, of another host, owned, or not ours.
fn abandoned_run(fragments: &Dir, name: &OsStr, identity: &Identity, run: &str) -> Option<String> {
    let (file, _) = fragments.open_file(name, libc::O_RDONLY).ok()?;
    let Some(header) = read_header(&file) else {
        return fd::try_lock(file.as_raw_fd()).then(|| UNKNOWN_RUN.to_owned());
    };
    let movable =
        header.run != run && header.host == identity.host && !is_owned(&file, &header, identity);
    let plain = header
        .run
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    let named = plain && !header.run.is_empty() && !header.run.starts_with('.');
    movable.then(|| {
        if named {
            header.run
        } else {
            UNKNOWN_RUN.to_owned()
        }
    })
}

fn move_aside(config: &Config, directory: &Dir, fragments: &Dir, name: &OsStr, run: &str) {
    let mode = folder_mode(config.mode);
    let target = directory
        .create_folder(PREVIOUS_DIR, mode)
        .and_then(|previous| previous.create_folder(run, mode));
    let Ok(target) = target else { return };
    let text = name.to_string_lossy();
    let stem = text.strip_suffix(FRAGMENT_SUFFIX).unwrap_or(&text);
    let ring = format!("{stem}{RING_SUFFIX}");
    let suffix = if fragments.move_to(name, &target, name).is_ok() {
        None
    } else {
        Some(format!(".{:016x}", crate::sys::random()))
    };
    let renamed = |extension: &str| {
        OsString::from(format!(
            "{stem}{}{extension}",
            suffix.as_deref().unwrap_or_default()
        ))
    };
    if suffix.is_some()
        && fragments
            .move_to(name, &target, &renamed(FRAGMENT_SUFFIX))
            .is_err()
    {
        return;
    }
    if fragments
        .open_file(OsStr::new(&ring), libc::O_RDONLY)
        .is_ok()
    {
        let _ = fragments.move_to(OsStr::new(&ring), &target, &renamed(RING_SUFFIX)); // without it the tail is missing, and told
    }
}

/// Removes a ring whose fragment is gone.
fn remove_orphan(fragments: &Dir, name: &OsStr, names: &[OsString]) {
    let text = name.to_string_lossy();
    let fragment = OsString::from(text.replace(RING_SUFFIX, FRAGMENT_SUFFIX));
    let old = || {
        let (file, _) = fragments.open_file(name, libc::O_RDONLY).ok()?;
        let modified = std::fs::File::from(file).metadata().ok()?.modified().ok()?;
        SystemTime::now()
            .duration_since(modified)
            .ok()
            .map(|age| age > STARTING)
    };
    if !names.contains(&fragment) && old() == Some(true) {
        let _ = fragments.remove(name); // only tidying
    }
}

/// Keeps the newest `SA_PROFILE_OLD_RUNS` previous runs.
fn forget_old_runs(config: &Config, directory: &Dir) {
    let Ok(previous) = directory.open_folder(PREVIOUS_DIR) else {
        return;
    };
    let Ok(names) = previous.names() else { return };
    let folder = |name: OsString| {
        previous
            .open_folder(&name.to_string_lossy())
            .ok()
            .map(|folder| (folder, name))
    };
    let mut runs: Vec<_> = names.into_iter().filter_map(folder).collect();
    runs.sort_by_key(|(folder, _)| std::cmp::Reverse(folder.modified().ok()));
    for (folder, name) in runs.into_iter().skip(config.old_runs) {
        for file in folder.names().unwrap_or_default() {
            let text = file.to_string_lossy();
            let ours = (is_fragment_name(&text) || is_ring_name(&text))
                && folder.open_file(&file, libc::O_RDONLY).is_ok();
            if ours {
                let _ = folder.remove(&file); // only tidying
            }
        }
        let _ = previous.remove_folder(&name); // stays while it holds something else
    }
}
