//! Arguments of the command line.

use crate::options::TablesOptions;
use crate::unfinished::Unfinished;
use crate::write_tables::write_tables;
use clap::Args;
use std::path::PathBuf;
use trace_merge::{Error, EventOptions, Filter, Mode, Options, Progress, Runs, plural};
use trace_report::command::RunArgs;

/// Writes the tables of a run as Parquet.
#[derive(Args, Clone, Debug)]
pub struct TablesArgs {
    /// Run directory, fragment, pattern or Chrome trace [default: the newest run]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Folder for the tables; created if it does not exist
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Replace existing tables of the same hosts
    #[arg(long)]
    force: bool,
    /// Number at the beginning of this host's ids, below 16777216 [default: a hash]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..i64::from(crate::ids::HOSTS)))]
    host_id: Option<u32>,
    #[command(flatten)]
    runs: RunArgs,
    /// Worker threads [default: one per core, at most 16]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    threads: usize,
    #[command(flatten)]
    filter: Filter,
}

impl TablesArgs {
    /// Lets `find` choose the runs of the given paths, or of the default directory if no path is given.
    ///
    /// # Errors
    /// Returns the error of `find`.
    pub fn find_runs<E>(
        mut self,
        find: impl FnOnce(Vec<PathBuf>, &Runs) -> Result<(Vec<PathBuf>, Runs), E>,
    ) -> Result<TablesArgs, E> {
        self.runs.find(&mut self.paths, find)?;
        Ok(self)
    }

    /// Writes the tables and returns a summary. `unfinished` can remove them if the process has to end early.
    ///
    /// # Errors
    /// In the same cases as [`write_tables`].
    pub fn write(&self, progress: &Progress, unfinished: &Unfinished) -> Result<String, Error> {
        let tables = TablesOptions {
            to: self.to.clone(),
            force: self.force,
            host_id: self.host_id,
            unfinished: unfinished.clone(),
        };
        let (written, report) = write_tables(&self.options(), &tables, progress)?;
        let mut summary = format!(
            "{}: {}, {}, {}, {} kB",
            self.to.display(),
            plural(written.slices, "slice"),
            plural(written.samples, "counter value"),
            plural(written.flows, "flow"),
            written.bytes.div_ceil(1_000),
        );
        for (count, thing) in [
            (report.losses.events, "lost event"),
            (report.damage.total, "damaged place"),
        ] {
            if count > 0 {
                summary.push_str(&format!("; {}", plural(count, thing)));
            }
        }
        Ok(summary)
    }

    fn options(&self) -> Options {
        Options {
            mode: Mode::Events(EventOptions {
                filter: self.filter.clone(),
                ..EventOptions::default()
            }),
            threads: self.threads,
            ..self.runs.options(&self.paths)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        tables: TablesArgs,
    }

    #[test]
    fn arguments_are_parsed() {
        let parse = |args: &[&str]| Line::try_parse_from([&["tables"], args].concat());
        let line = parse(&["out", "--to", "t", "--process", "Worker*", "--host-id", "3"]);
        let tables = line.unwrap().tables;
        assert_eq!((&tables.to, tables.host_id), (&PathBuf::from("t"), Some(3)));
        assert_eq!(tables.filter.processes, ["Worker*"]);
        let without_path = parse(&["--to", "t"]).unwrap().tables;
        let found = without_path.find_runs(|paths, runs| {
            assert_eq!((paths.len(), runs), (0, &Runs::Newest));
            Ok::<_, Error>((vec![PathBuf::from("here")], Runs::All))
        });
        let found = found.unwrap().options();
        assert_eq!(
            (found.paths, found.runs),
            (vec![PathBuf::from("here")], Runs::All)
        );
    }
}
