//! `sa-profile level`: changes the levels that are recorded.

use crate::error::Error;
use crate::{directory, obey};
use sa_format::Level;
use sa_format::control::{Control, SwitchCause};
use std::process::ExitCode;

/// Changes the levels that every process records from now on.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Comma list of e2e, kernel, verbose (all of them)
    #[arg(value_name = "LEVELS", value_parser = list)]
    levels: Levels,
    #[command(flatten)]
    directory: directory::RunDirectory,
    #[command(flatten)]
    wait: obey::Patience,
}

/// Levels from the command line.
#[derive(Clone)]
pub(crate) struct Levels(pub(crate) Vec<Level>);

/// Parses a comma-separated list of levels.
pub(crate) fn list(text: &str) -> Result<Levels, String> {
    let words = text
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty());
    let levels: Vec<Level> = words.map(one).collect::<Result<_, _>>()?;
    if levels.is_empty() {
        return Err(
            "expected e2e, kernel or verbose; `sa-profile stop` records nothing".to_owned(),
        );
    }
    Ok(Levels(levels))
}

/// The names of the levels.
const WORDS: [(&str, Level); 3] = [
    ("e2e", Level::E2e),
    ("kernel", Level::Kernel),
    ("verbose", Level::Verbose),
];

fn one(word: &str) -> Result<Level, String> {
    let mut words = WORDS.into_iter();
    let found = words.find(|(known, _)| known.eq_ignore_ascii_case(word));
    let found = found.map(|(_, level)| level);
    found.ok_or_else(|| format!("expected e2e, kernel or verbose, found {word:?}"))
}

/// Formats levels as on the command line; `off` for none.
pub(crate) fn text(levels: &[Level]) -> String {
    if levels.is_empty() {
        return "off".to_owned();
    }
    let word = |level: &Level| WORDS.iter().find(|(_, known)| known == level);
    let words = levels.iter().filter_map(word).map(|(word, _)| *word);
    words.collect::<Vec<_>>().join(",")
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let directory = arguments.directory.live()?;
    let levels = arguments.levels.0.clone();
    let deed = format!("record {}", text(&levels));
    let wish = |_| Control {
        cause: SwitchCause::Level,
        levels: Some(levels),
        ..Control::default()
    };
    obey::carry_out(&directory, wish, &deed, &arguments.wait)
}
