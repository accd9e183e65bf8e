//! The file of the page.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

/// A file that gets its name when it is whole.
#[derive(Debug)]
pub(super) struct Output {
    file: File,
    unfinished: PathBuf,
    path: PathBuf,
}

impl Output {
    /// Makes the file before anything is measured: a run of many minutes shall not end with a path that cannot be written.
    pub(super) fn create(path: PathBuf) -> Result<Output, String> {
        let mut unfinished = path.clone().into_os_string();
        unfinished.push(".tmp");
        let unfinished = PathBuf::from(unfinished);
        match File::create(&unfinished) {
            Ok(file) => Ok(Output {
                file,
                unfinished,
                path,
            }),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    /// Writes the page and names the file.
    pub(super) fn put(mut self, text: &str) -> Result<(), String> {
        let done: io::Result<()> = self
            .file
            .write_all(text.as_bytes())
            .and_then(|()| fs::rename(&self.unfinished, &self.path));
        done.map_err(|error| format!("{}: {error}", self.path.display()))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let _renamed_already = fs::remove_file(&self.unfinished);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_page_has_the_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page.md");
        drop(Output::create(path.clone()).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        Output::create(path.clone()).unwrap().put("x").unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "x");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        let complaint = Output::create("/nonexistent/page.md".into()).unwrap_err();
        assert!(complaint.contains("/nonexistent/page.md"), "{complaint}");
    }
}
