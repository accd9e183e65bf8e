//! The arguments of a report on the command line, and the output for them.

mod bundle_args;
mod detail_args;
mod diff_args;
mod export_arg;
mod page_file;
mod run_args;
mod whole_file;

use crate::detail::read_detail;
use crate::export::{export_nat, stacks};
use crate::formats::pretty_json;
use crate::options::{NamesBy, ReportOptions, Slo, parse_slo};
use crate::read::read;
use crate::screen::{self, NameOrder, ScreenOptions, Table};
use crate::table::RunReport;
use anstream::{AutoStream, ColorChoice};
pub use bundle_args::BundleArgs;
use clap::Args;
use detail_args::DetailArgs;
pub use diff_args::{Comparison, DiffArgs};
use export_arg::{Export, parse_export};
pub use run_args::RunArgs;
use std::io::stdout;
use std::path::PathBuf;
use trace_merge::{Error, Mode, Options, Progress, Runs, SelectionArgs};
use whole_file::Replaced;

/// Default number of names or stacks to show.
const TOP: usize = 40;

/// Says where the time of a recorded run went.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("request", |arg| arg.help("This request on one screen, by its id or a part of it; for tables, pages and exports a filter")))]
pub struct ReportArgs {
    /// Run directory, fragment, pattern or Chrome trace [default: the newest run]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Time by name: calls, time with and without inner spans
    #[arg(long, group = "list", conflicts_with_all = ["json", "csv"])]
    names: bool,
    /// The names with the highest mean duration times concurrency, and the stacks with the most self time
    #[arg(long, group = "list", conflicts_with_all = ["json", "csv"])]
    bottlenecks: bool,
    /// Report each name separately for each of these
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = NamesBy::Run)]
    by: NamesBy,
    /// Count the requests that meet these limits: ttft=500ms,tpot=50ms,e2e=2s
    #[arg(long, value_name = "LIST", value_parser = parse_slo)]
    slo: Option<Slo>,
    /// Report on the whole run, with start-up, pauses and shutdown [default: the time in which it had requests]
    #[arg(long)]
    whole: bool,
    /// Sort the names by this
    #[arg(long, value_enum, value_name = "BY", default_value_t = NameOrder::Tsub, requires = "names")]
    sort: NameOrder,
    /// Show this many names or stacks
    #[arg(long, value_name = "N", default_value_t = TOP, requires = "list")]
    top: usize,
    /// Print every table, instead of one screen
    #[arg(long, conflicts_with_all = ["json", "csv", "names", "bottlenecks", "export", "html"])]
    all: bool,
    /// Print everything as JSON (docs/time.md#json-and-csv)
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print one table as CSV
    #[arg(long, value_enum, value_name = "TABLE")]
    csv: Option<Table>,
    /// Export stacks (collapsed, speedscope, callgrind), or NeMo Agent Toolkit's files (nat=FOLDER)
    #[arg(long, value_name = "FORMAT[=FOLDER]", value_parser = parse_export, conflicts_with_all = ["json", "csv", "names", "bottlenecks"])]
    export: Option<Export>,
    /// Write the whole report as a page that needs no network, for a browser [default FILE: report.html]
    #[arg(long = "page", alias = "html", value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "report.html", conflicts_with_all = ["json", "csv", "names", "bottlenecks", "export"])]
    html: Option<PathBuf>,
    #[command(flatten)]
    detail: DetailArgs,
    #[command(flatten)]
    runs: RunArgs,
    #[command(flatten)]
    selection: SelectionArgs,
}

/// Result of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The requested text, for standard output.
    Text(String),
    /// A message with the path of the page or files that were written.
    Written(String),
}

impl ReportArgs {
    /// Calls `find` to choose the runs of the given paths, or of the default directory if no path is given.
    ///
    /// # Errors
    /// The errors of `find`.
    pub fn find_runs<E>(
        mut self,
        find: impl FnOnce(Vec<PathBuf>, &Runs) -> Result<(Vec<PathBuf>, Runs), E>,
    ) -> Result<ReportArgs, E> {
        self.runs.find(&mut self.paths, find)?;
        Ok(self)
    }

    /// Creates the requested report. A page or files are written to their path.
    ///
    /// # Errors
    /// Returns the errors of [`read`](crate::read()), and an error if the page or a file cannot be written.
    pub fn answer(&self, progress: &Progress) -> Result<Answer, Error> {
        if let Some(Export::Nat(folder)) = &self.export {
            let files = || export_nat(&self.options(), progress);
            return export_arg::write(folder, files).map(Answer::Written);
        }
        if let Some(path) = &self.html {
            Replaced::Page.check(path, &[])?; // fails before the run is read
        }
        let report_options = ReportOptions {
            names_by: self.by,
            concurrency: self.bottlenecks,
            most_events: None,
            slo: self.slo,
            whole: self.whole,
        };
        let (mut events, is_list) = (self.selection.events(), self.is_about_all());
        if let Some(target) = self.detail.detail(&mut events, is_list) {
            let options = Options {
                mode: Mode::Events(events),
                ..self.options()
            };
            let detail = read_detail(&options, &report_options, progress, &target)?;
            let run = page_file::open_argument(&self.paths, self.runs.runs == Runs::Newest);
            let text = match self.json {
                true => pretty_json(&detail)?,
                false => screen::detail_text(&detail, run.as_deref().unwrap_or("RUN")),
            };
            return Ok(Answer::Text(text));
        }
        let report = read(&self.options(), &report_options, progress)?;
        match &self.html {
            Some(path) => {
                let is_newest = self.runs.runs == Runs::Newest;
                page_file::write(path, &report, &self.paths, is_newest).map(Answer::Written)
            }
            None => self.shown(&report).map(Answer::Text),
        }
    }

    /// Returns true if a table, a page or files are requested. They cover all requests.
    fn is_about_all(&self) -> bool {
        let is_file = self.html.is_some() || self.export.is_some() || self.csv.is_some();
        is_file || self.names || self.bottlenecks
    }

    fn options(&self) -> Options {
        Options {
            mode: Mode::Events(self.selection.events()),
            ..self.runs.options(&self.paths)
        }
    }

    fn shown(&self, report: &RunReport) -> Result<String, Error> {
        if let Some(Export::Stacks(format)) = self.export {
            return stacks(report, format);
        }
        if self.json {
            return pretty_json(report);
        }
        match self.csv {
            Some(table) => screen::table_csv(report, table),
            None if self.bottlenecks => Ok(screen::bottlenecks_text(report, self.top)),
            None if self.names => Ok(screen::names_text(report, self.sort, self.top)),
            None => {
                let run = page_file::open_argument(&self.paths, self.runs.runs == Runs::Newest);
                let options = ScreenOptions {
                    is_styled: AutoStream::choice(&stdout()) != ColorChoice::Never,
                    run: run.as_deref(),
                };
                Ok(match self.all {
                    true => screen::all(report, options),
                    false => screen::brief(report, options),
                })
            }
        }
    }
}
