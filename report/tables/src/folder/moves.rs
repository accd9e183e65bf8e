//! Folders that are moved: all, or none.

use std::fs;
use std::io;
use std::path::PathBuf;

/// What was moved so far. Dropped, it moves all back.
#[derive(Debug, Default)]
pub(super) struct Moves(Vec<[PathBuf; 2]>);

impl Moves {
    pub(super) fn rename(&mut self, from: PathBuf, to: PathBuf) -> io::Result<()> {
        fs::rename(&from, &to)?;
        self.0.push([from, to]);
        Ok(())
    }

    pub(super) fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Moves {
    fn drop(&mut self) {
        for [from, to] in self.0.iter().rev() {
            let _ = fs::rename(to, from); // the failure that led here is told
        }
    }
}
