//! The arguments of `sa-profile diff`, and their output.

use crate::condition::{Condition, parse_condition};
use crate::fold::run_diff::compare;
use crate::formats::pretty_json;
use crate::options::ReportOptions;
use crate::read::read;
use crate::screen;
use crate::table::RunReport;
use clap::Args;
use std::path::PathBuf;
use trace_merge::{Error, Mode, Options, Progress, Runs, SelectionArgs};

/// Compares two recorded runs: what became slower, and why.
#[derive(Args, Clone, Debug)]
pub struct DiffArgs {
    /// The run to compare with: run directory, fragments or Chrome trace
    #[arg(value_name = "BEFORE")]
    one: PathBuf,
    /// The run to look at [default: the newest run]
    #[arg(value_name = "AFTER")]
    other: Option<PathBuf>,
    /// Another run of the first side
    #[arg(long, value_name = "PATH")]
    before: Vec<PathBuf>,
    /// Another run of the second side
    #[arg(long, value_name = "PATH")]
    after: Vec<PathBuf>,
    /// Exit with 1 if this holds, such as 'p95(ttft) > +5%'; may be given several times
    #[arg(long, value_name = "CONDITION", value_parser = parse_condition)]
    fail_if: Vec<Condition>,
    /// Print everything as JSON (docs/compare.md#json)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    selection: SelectionArgs,
}

/// The output of a comparison, and the conditions that hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Text for standard output.
    pub text: String,
    /// The conditions that hold, one sentence each.
    pub failures: Vec<String>,
}

impl DiffArgs {
    /// Compares the runs that `find` chooses from the given paths, or from the default directory if a path is missing.
    ///
    /// # Errors
    /// Returns the errors of `find` and of [`read`](crate::read()) for each run, and an error if a run lacks a value
    /// that a condition compares.
    pub fn compare<E: From<Error>>(
        &self,
        find: impl Fn(Vec<PathBuf>, &Runs) -> Result<(Vec<PathBuf>, Runs), E>,
        progress: &Progress,
    ) -> Result<Comparison, E> {
        let read = |first: Option<&PathBuf>, others: &[PathBuf]| -> Result<Vec<RunReport>, E> {
            let named = first.into_iter().chain(others).cloned();
            let (paths, _) = find(named.collect(), &Runs::Newest)?;
            let reports = paths.iter().map(|path| self.read(path, progress));
            Ok(reports.collect::<Result<_, _>>()?)
        };
        let one = read(Some(&self.one), &self.before)?;
        let other = read(self.other.as_ref(), &self.after)?;
        let diff = compare(&one, &other);
        let mut failures = Vec::new();
        for condition in &self.fail_if {
            let held = condition.holds(&diff).map_err(Error::Usage)?;
            failures.extend(held);
        }
        let text = match self.json {
            true => pretty_json(&diff)?,
            false => screen::diff_text(&diff),
        };
        Ok(Comparison { text, failures })
    }

    fn read(&self, path: &std::path::Path, progress: &Progress) -> Result<RunReport, Error> {
        let options = Options {
            mode: Mode::Events(self.selection.events()),
            ..Options::new([path.to_owned()])
        };
        read(&options, &ReportOptions::default(), progress)
    }
}
