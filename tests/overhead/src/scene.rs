//! Where a run takes place: its effort, its scratch directory, its progress.

use std::path::{Path, PathBuf};

use measure::Scratch;

use crate::effort::Effort;

/// What every section is measured in.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) effort: Effort,
    /// The build folder: scratch directories and the Python environment lie below it.
    target: PathBuf,
}

impl Scene {
    /// Below the folder in which this program was built.
    pub(crate) fn new(effort: Effort) -> Result<Scene, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let target = program.ancestors().nth(2);
        let target = target.ok_or_else(|| format!("{}: no build folder", program.display()))?;
        Ok(Scene {
            effort,
            target: target.to_owned(),
        })
    }

    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// A fresh directory for one child, on the file system that the page names.
    pub(crate) fn scratch(&self, name: &str) -> Result<Scratch, String> {
        Scratch::new(&self.target.join("overhead"), name)
    }

    /// Says on stderr what is being measured.
    pub(crate) fn tell(&self, section: &str, turn: u32, turns: u32) {
        eprintln!("overhead: {section}, {}/{turns}", turn + 1);
    }
}
