//! Reads the control file: checks it by path, reads it only after a change, never waits for it, and
//! never trusts it.
//!
//! It is not watched with inotify. A user has only 128 inotify instances, and each needs a
//! descriptor whose number the host might close and reuse.

use std::io;
use std::path::{Path, PathBuf};

use crate::run::folder::store;
use crate::sys::dir::{Dir, effective_user};
use crate::sys::fd::{self, Status};
use sa_format::control::{CONTROL_FILE, Control, MAX_CONTROL_BYTES};

/// The control file of one run.
#[derive(Debug)]
pub(crate) struct Watch {
    path: PathBuf,
    runs: Vec<String>,
    /// Status of the file when it was last read. It changes when the file is replaced or written.
    last_status: Option<Status>,
    /// Id of the newest control file that was read.
    id: String,
}

impl Watch {
    /// Returns a watch on the control file in a run directory. Only control files for one of `runs`
    /// (run ids) count.
    pub(crate) fn new(directory: &Path, runs: Vec<String>) -> Watch {
        Watch {
            path: directory.join(CONTROL_FILE),
            runs,
            last_status: None,
            id: String::new(),
        }
    }

    /// Checks the control file, and returns its contents if it is a new one for this run. Returns
    /// `None` otherwise. Costs one system call if nothing changed.
    pub(crate) fn poll(&mut self) -> Option<Control> {
        let status =
            usable_status(&self.path).filter(|status| self.last_status != Some(*status))?;
        let text = read(&self.path, status)?;
        self.last_status = Some(status);
        let control = Control::parse(&text)?;
        let is_new = self.runs.contains(&control.run) && control.id != self.id;
        is_new.then(|| {
            self.id.clone_from(&control.id);
            control
        })
    }

    /// Replaces the control file with `control`, which every process of the run then follows. This
    /// process does not receive it again from [`Watch::poll`].
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created in the directory.
    pub(crate) fn replace(&mut self, control: &Control, mode: u32) -> io::Result<()> {
        let directory = Dir::open_path(self.path.parent().unwrap_or(Path::new("/")))?;
        store(&directory, CONTROL_FILE, mode, control)?;
        self.id.clone_from(&control.id);
        Ok(())
    }
}

/// Returns the status of the control file at `path`, or `None` if the file must not be read: it
/// must be a plain, short file of this user with a single link.
fn usable_status(path: &Path) -> Option<Status> {
    let status = fd::path_status(path).ok()?;
    let is_usable = status.is_regular()
        && status.owner == effective_user()
        && status.links == 1
        && status.size <= MAX_CONTROL_BYTES as u64;
    is_usable.then_some(status)
}

fn read(path: &Path, status: Status) -> Option<Vec<u8>> {
    fd::read_start(path, status.id, MAX_CONTROL_BYTES + 1).ok()
}

/// Removes the control file from a directory if it belongs to a run other than `run`, so that no
/// process follows it.
pub(crate) fn forget_others(run: &str, directory: &Dir) {
    let path = directory.path().join(CONTROL_FILE);
    let text = usable_status(&path).and_then(|status| read(&path, status));
    let control = text.and_then(|text| Control::parse(&text));
    if control.is_some_and(|control| control.run != run) {
        let _ = directory.remove(CONTROL_FILE); // no process follows it
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sa_format::control::CONTROL_VERSION;
    use std::fs;

    fn control(id: u64, run: &str) -> Control {
        Control {
            version: CONTROL_VERSION,
            id: format!("{id:016x}"),
            run: run.to_owned(),
            levels: Some(Vec::new()),
            from_realtime_ns: 1,
            ..Control::default()
        }
    }

    #[test]
    fn each_control_of_the_run_is_returned_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut watch = Watch::new(dir.path(), vec!["r".to_owned()]);
        assert_eq!(watch.poll(), None);
        let mut other = Watch::new(dir.path(), vec!["r".to_owned()]);
        for id in [1, 2] {
            other.replace(&control(id, "r"), 0o600).unwrap();
            assert_eq!(watch.poll(), Some(control(id, "r")));
            assert_eq!(watch.poll(), None);
        }
        other.replace(&control(2, "r"), 0o600).unwrap();
        assert_eq!(watch.poll(), None, "the same one, stored again");
        assert_eq!(other.poll(), None, "its own");
        other.replace(&control(3, "other"), 0o600).unwrap();
        assert_eq!(watch.poll(), None);
        fs::remove_file(dir.path().join(CONTROL_FILE)).unwrap();
        assert_eq!(watch.poll(), None);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn links_and_long_files_are_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(CONTROL_FILE);
        let aside = dir.path().join("aside");
        let mut watch = Watch::new(dir.path(), vec!["r".to_owned()]);
        fs::write(&aside, control(1, "r").to_json_line()).unwrap();
        std::os::unix::fs::symlink(&aside, &path).unwrap();
        assert_eq!(watch.poll(), None);
        fs::remove_file(&path).unwrap();
        fs::hard_link(&aside, &path).unwrap();
        assert_eq!(watch.poll(), None);
        fs::remove_file(&path).unwrap();
        fs::write(
            &path,
            [control(1, "r").to_json_line(), vec![b' '; 5000]].concat(),
        )
        .unwrap();
        assert_eq!(watch.poll(), None);
    }

    #[test]
    fn only_the_control_of_another_run_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(CONTROL_FILE);
        for (run, stays) in [("new", true), ("old", false)] {
            fs::write(&path, control(1, run).to_json_line()).unwrap();
            forget_others("new", &Dir::open_path(dir.path()).unwrap());
            assert_eq!(path.exists(), stays, "{run}");
        }
        fs::write(&path, "the user's own\n").unwrap();
        forget_others("new", &Dir::open_path(dir.path()).unwrap());
        assert!(path.exists());
    }
}
