//! Rejects inputs that cannot be merged, and explains why.

use crate::app::report::Report;
use crate::fragment::input::Inputs;
use crate::fragment::recording::{FRONT_BYTES, Recording};
use crate::{Error, Options, Runs};
use std::path::{Path, PathBuf};

/// Maximum number of characters to quote from the first line.
const MAX_QUOTED: usize = 40;

/// Maximum number of inputs to name.
const MAX_NAMED: usize = 8;

/// Explains why there is nothing to merge.
pub(crate) fn describe(options: &Options, inputs: &Inputs) -> String {
    let unreadable = inputs.unreadable.iter();
    let unreadable = unreadable.map(|(path, why)| format!("{}: {why}", path.display()));
    let files = inputs.files.iter().map(|file| file.place.path().display());
    let unread = files.map(|path| format!("{path}: cannot be read"));
    let mut causes: Vec<String> = unreadable.chain(unread).collect();
    if causes.is_empty() {
        let run = match &options.runs {
            Runs::Named(run) => format!(" of run {run}"),
            Runs::Previous => " of a previous run".to_owned(),
            Runs::Newest | Runs::All | Runs::InPlace => String::new(),
        };
        let paths = joined(options.paths.iter().map(PathBuf::as_path));
        causes.push(format!("no fragments{run} found in {paths}"));
    }
    if !inputs.left_out.is_empty() {
        let runs = inputs.left_out.iter().map(|left| left.run.as_str());
        let runs = runs.collect::<Vec<_>>().join(", ");
        causes.push(format!(
            "there are other runs ({runs}); see --run, --previous, --all-runs"
        ));
    }
    causes.join("; ")
}

/// Returns an error if no input contains an event, a header or a name.
pub(crate) fn reject_empty(recordings: &[Recording], report: &Report) -> Result<(), Error> {
    let mut headers = recordings.iter().filter_map(Recording::header);
    if headers.next().is_some() || report.events.total > 0 {
        return Ok(());
    }
    let is_empty = |recording: &Recording| match &recording.foreign {
        Some(foreign) => foreign.is_empty(),
        None => recording.fragments.iter().all(|of| of.bytes() == 0),
    };
    if report.damage.total == 0 {
        if !recordings.iter().all(is_empty) {
            return Ok(());
        }
        let paths = joined(recordings.iter().filter_map(Recording::path));
        return Err(Error::NothingUsable(format!("no events in {paths}")));
    }
    let kinds: Vec<&str> = report.damage.by_kind.keys().copied().collect();
    let mut descriptions = recordings.iter().filter_map(describe_recording);
    let mut causes: Vec<_> = descriptions.by_ref().take(MAX_NAMED).collect();
    let more = descriptions.count();
    if more > 0 {
        causes.push(format!("and {more} more"));
    }
    Err(Error::NothingUsable(format!(
        "{} ({})",
        causes.join("; "),
        kinds.join(", ")
    )))
}

/// Describes the contents of a recording without an event, and what was expected.
fn describe_recording(recording: &Recording) -> Option<String> {
    let fragment = recording.fragments.first()?;
    let front = match &recording.foreign {
        Some(foreign) => Some(foreign.front.as_slice()),
        None => (!fragment.content.is_cut()).then(|| fragment.content.bytes()),
    };
    let path = fragment.path.display();
    Some(match front.map(describe_content) {
        Some(found) => format!("{path}: expected a fragment or a Chrome trace, found {found}"),
        None => format!("{path}: truncated during the merge"),
    })
}

/// Describes bytes that are not a trace.
fn describe_content(bytes: &[u8]) -> String {
    let front = &bytes[..bytes.len().min(FRONT_BYTES)];
    let front = match std::str::from_utf8(front) {
        Ok(text) => text,
        // The front may end within a character.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&front[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return "binary data".to_owned(),
    };
    let text = front.trim_start();
    match text.chars().next() {
        None => "nothing".to_owned(),
        _ if text.contains('\0') => "binary data".to_owned(),
        Some('{' | '[') => "JSON without an event".to_owned(),
        Some(_) => {
            let line = text.lines().next().unwrap_or_default();
            let start: String = line.chars().take(MAX_QUOTED).collect();
            format!("text that begins with {start:?}")
        }
    }
}

/// Joins paths with commas.
fn joined<'a>(paths: impl Iterator<Item = &'a Path>) -> String {
    let paths: Vec<_> = paths.map(|path| path.display().to_string()).collect();
    paths.join(", ")
}
