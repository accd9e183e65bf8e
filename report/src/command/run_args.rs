//! The arguments that choose runs.

use clap::Args;
use std::path::PathBuf;
use trace_merge::{Options, Runs};

/// Options that choose among the runs of the given paths.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// The run with this id
    #[arg(long, value_name = "ID", conflicts_with_all = ["previous", "all_runs"])]
    run: Option<String>,
    /// The run before the newest
    #[arg(long, conflicts_with = "all_runs")]
    previous: bool,
    /// All runs together
    #[arg(long)]
    all_runs: bool,
    /// The chosen runs of the paths.
    #[arg(skip)]
    pub(super) runs: Runs,
}

impl RunArgs {
    /// Calls `find` to choose the runs of the given paths, or of the default directory if no path is given.
    ///
    /// # Errors
    /// The errors of `find`.
    pub fn find<E>(
        &mut self,
        paths: &mut Vec<PathBuf>,
        find: impl FnOnce(Vec<PathBuf>, &Runs) -> Result<(Vec<PathBuf>, Runs), E>,
    ) -> Result<(), E> {
        let runs = Runs::from_options(self.run.take(), self.previous, self.all_runs);
        (*paths, self.runs) = find(std::mem::take(paths), &runs)?;
        Ok(())
    }

    /// Returns options that read the chosen runs.
    pub fn options(&self, paths: &[PathBuf]) -> Options {
        Options {
            runs: self.runs.clone(),
            ..Options::new(paths.to_vec())
        }
    }
}
