//! The summary of a run: the results of the load, the trace, and the next commands.

mod next_step;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use trace_merge::{Output, Progress, Report};
use trace_report::{ReportOptions, RunReport, screen};

use super::{Served, kill};
use crate::load::{self, Outcome};
use crate::options::Options;

/// Maximum number of listed failures.
const LISTED: usize = 4;
/// The command that profiles an unmodified server on a real NPU.
const REAL_NPU_COMMAND: &str = "sa-profile run --preload -- your server";
/// Sums the time of each kind of span, a first query for any trace.
const FIRST_QUERY: &str = "SELECT category, name, count(*) AS n, sum(dur) / 1e6 AS ms FROM slice GROUP BY 1, 2 ORDER BY ms DESC";
/// Lists the steps that served a request, along its flow. Uses both ends of each arrow, because Perfetto reverses an arrow whose spans began in the opposite order.
const FLOW_QUERY: &str = "\
SELECT DISTINCT s.id, s.ts, s.name FROM flow f JOIN slice s ON s.id IN (f.slice_out, f.slice_in) WHERE f.trace_id = 0 ORDER BY s.ts";

/// Result of the merge.
pub(super) type Merged =
    Result<(Result<RunReport, trace_merge::Error>, Report), trace_merge::Error>;

/// Merges the newest run in `directory` into `output`.
pub(super) fn merge(directory: &Path, output: Option<PathBuf>) -> Merged {
    let mut merge = trace_merge::Options::new([directory.to_owned()]);
    // The merge chooses the default file itself, because it does not trust the contents of the directory.
    if let Some(file) = output.filter(|file| *file != directory.join("trace.json")) {
        merge.output = Output::File(file);
    }
    trace_report::merge_and_read(&merge, &ReportOptions::default(), &Progress::default())
}

/// The text that is printed at the end.
#[derive(Debug)]
pub(super) struct Summary<'a> {
    pub(super) options: &'a Options,
    pub(super) served: &'a Served,
    /// The run directory, or `None` if nothing was recorded.
    pub(super) directory: Option<&'a Path>,
    pub(super) merged: Option<&'a Merged>,
}

impl Summary<'_> {
    /// Returns 0 if the run succeeded, 1 if it did not, and 128 + signal if a signal ended it.
    pub(super) fn exit_code(&self) -> ExitCode {
        if let Some(signal) = self.served.interrupted {
            return ExitCode::from(u8::try_from(128 + signal as i32).unwrap_or(1));
        }
        let failed = self.failures().next().is_some();
        let excused = self.served.killed.is_some();
        let unmerged = matches!(self.merged, Some(Err(_)));
        if (failed && !excused) || unmerged || !self.served.troubles.is_empty() {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }

    fn failures(&self) -> impl Iterator<Item = (&Outcome, &String)> {
        let outcomes = self.served.outcomes.iter();
        outcomes.filter_map(|outcome| Some((outcome, outcome.result.as_ref().err()?)))
    }

    fn write_load(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcomes = &self.served.outcomes;
        let replies = outcomes
            .iter()
            .filter_map(|outcome| outcome.result.as_ref().ok());
        let replies: Vec<_> = replies.collect();
        let failed = outcomes.len() - replies.len();
        let unfinished = self.options.requests.get() - outcomes.len();
        let tokens: usize = replies.iter().map(|reply| reply.tokens).sum();
        let seconds = self.served.seconds;
        let rate = tokens as f64 / seconds.max(1e-9);
        write!(out, "requests   {} ok, {failed} failed", replies.len())?;
        match unfinished {
            0 => writeln!(out)?,
            unfinished => writeln!(out, ", {unfinished} not finished")?,
        }
        writeln!(
            out,
            "tokens     {tokens} in {seconds:.2} s: {rate:.1} tokens/s"
        )?;
        if replies.len() < self.options.requests.get() {
            return Ok(());
        }
        writeln!(
            out,
            "digest     {:016x} of all texts: the same for the same options",
            load::digest(outcomes)
        )
    }

    fn write_incidents(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(signal) = self.served.interrupted {
            let how = match self.served.all_started {
                true => "all processes were stopped in order",
                false => "the processes were still starting, and were killed",
            };
            writeln!(out, "ended      by {signal}; {how}")?;
        }
        if let Some(killed) = &self.served.killed {
            let kill::Killed { worker, pid, step } = killed;
            writeln!(
                out,
                "killed     {worker} (pid {pid}) with SIGKILL in the middle of step {step}"
            )?;
        }
        for (outcome, error) in self.failures().take(LISTED) {
            writeln!(out, "failed     request {}: {error}", outcome.index + 1)?;
        }
        let more = self.failures().count().saturating_sub(LISTED);
        if more > 0 {
            writeln!(out, "           and {more} more")?;
        }
        let mut troubles = self.served.troubles.iter();
        troubles.try_for_each(|trouble| writeln!(out, "trouble    {trouble}"))
    }

    fn write_next(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(directory) = self.directory else {
            return Ok(());
        };
        writeln!(
            out,
            "timeline   open https://ui.perfetto.dev and drag the trace in; there, \"Query (SQL)\" answers:"
        )?;
        writeln!(out, "           {FIRST_QUERY}")?;
        writeln!(out, "           {FLOW_QUERY}")?;
        // Last, because readers see the last line first.
        let command = next_step::report_command(directory);
        writeln!(out, "next       {command}    says where the time went")
    }

    fn write_trace(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.merged, self.directory) {
            (Some(Ok((times, report))), _) => {
                write_report(out, report)?;
                write_times(out, times)?;
                self.write_next(out)
            }
            (Some(Err(error)), _) => writeln!(out, "trace      none: {error}"),
            (None, Some(directory)) => {
                let directory = directory.display();
                writeln!(
                    out,
                    "fragments  {directory}; merge them with: trace-merge {directory}"
                )?;
                self.write_next(out)
            }
            (None, None) => writeln!(out, "trace      none: recording was off"),
        }
    }
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_load(out)?;
        self.write_incidents(out)?;
        self.write_trace(out)
    }
}

fn write_report(out: &mut fmt::Formatter<'_>, report: &Report) -> fmt::Result {
    let path = report.output.path.clone().unwrap_or_default();
    let path = path.canonicalize().unwrap_or(path);
    let (path, megabytes) = (path.display(), report.output.bytes as f64 / 1e6);
    writeln!(out, "trace      {path} ({megabytes:.1} MB)")?;
    writeln!(
        out,
        "           {} processes, {} events, {} unfinished spans, {} lost events, {} damaged places",
        report.process_count(),
        report.events.total,
        report.unfinished_spans,
        report.losses.events,
        report.damage.total
    )?;
    let devices = report.processes.iter().filter(|process| process.tracks);
    if devices.count() > 0 {
        writeln!(
            out,
            "npu        the NPU tracks are SIMULATED, no NPU was used; on a machine with one: {REAL_NPU_COMMAND}"
        )?;
    }
    Ok(())
}

/// Writes where the time went, or the reason why the figures are missing.
fn write_times(
    out: &mut fmt::Formatter<'_>,
    times: &Result<RunReport, trace_merge::Error>,
) -> fmt::Result {
    match times {
        Ok(times) => screen::short(times)
            .iter()
            .try_for_each(|(label, text)| writeln!(out, "{label:<10} {text}")),
        Err(error) => writeln!(out, "figures    none: {error}"),
    }
}
