//! What is no merge: inputs without anything to show, or a trace over one of them.

use crate::app::report::Report;
use crate::fragment::input::Inputs;
use crate::fragment::recording::Recording;
use crate::{Error, Options, Runs};

/// Why there is nothing to merge.
pub(crate) fn describe(options: &Options, inputs: &Inputs) -> String {
    let mut words: Vec<String> = inputs
        .unreadable
        .iter()
        .map(|(path, why)| format!("{}: {why}", path.display()))
        .collect();
    words.extend(
        inputs
            .files
            .iter()
            .map(|file| format!("{}: cannot be read", file.place.path().display())),
    );
    if words.is_empty() {
        let paths: Vec<_> = options
            .paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let run = match &options.runs {
            Runs::Named(run) => format!(" of run {run}"),
            Runs::Previous => " of a previous run".to_owned(),
            Runs::Newest | Runs::All | Runs::InPlace => String::new(),
        };
        words.push(format!("no fragments{run} found in {}", paths.join(", ")));
    }
    if !inputs.left_out.is_empty() {
        let runs: Vec<_> = inputs
            .left_out
            .iter()
            .map(|left| left.run.as_str())
            .collect();
        words.push(format!(
            "there are other runs ({}); see --run, --previous, --all-runs",
            runs.join(", ")
        ));
    }
    words.join("; ")
}

/// Inputs without one event, header or name are no trace at all.
pub(crate) fn refuse_nonsense(recordings: &[Recording], report: &Report) -> Result<(), Error> {
    let known = recordings
        .iter()
        .any(|recording| recording.header().is_some());
    if known || report.events_total > 0 {
        return Ok(());
    }
    let is_empty = |recording: &Recording| match &recording.foreign {
        Some(foreign) => foreign.is_empty(),
        None => recording.fragments.iter().all(|of| of.bytes() == 0),
    };
    if report.damage_total == 0 {
        return match recordings.iter().all(is_empty) {
            true => Err(Error::NothingUsable(empty(recordings))),
            false => Ok(()),
        };
    }
    let inputs = report.inputs.iter().filter(|input| input.damage > 0);
    let paths: Vec<_> = inputs
        .map(|input| input.path.display().to_string())
        .collect();
    let kinds: Vec<_> = report
        .damage_by_kind
        .keys()
        .map(ToString::to_string)
        .collect();
    Err(Error::NothingUsable(format!(
        "no event in {} ({})",
        paths.join(", "),
        kinds.join(", ")
    )))
}

/// Words for inputs in which nothing is.
fn empty(recordings: &[Recording]) -> String {
    let paths = recordings.iter().filter_map(Recording::path);
    let paths: Vec<_> = paths.map(|path| path.display().to_string()).collect();
    format!("nothing in {}", paths.join(", "))
}
