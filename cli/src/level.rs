//! `sa-profile level`: changes the levels that are recorded.

use crate::error::Error;
use crate::{directory, obey};
use sa_format::Level;
use sa_format::control::{Control, SwitchCause};
use std::process::ExitCode;

/// Changes the levels that every process records from now on.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Comma-separated list of e2e, kernel, verbose (everything)
    #[arg(value_name = "LEVELS", value_parser = parse_levels)]
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
pub(crate) fn parse_levels(text: &str) -> Result<Levels, String> {
    let words = text
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty());
    let levels: Vec<Level> = words.map(parse_level).collect::<Result<_, _>>()?;
    if levels.is_empty() {
        return Err(
            "expected e2e, kernel or verbose; `sa-profile stop` records nothing".to_owned(),
        );
    }
    Ok(Levels(levels))
}

/// The names of the levels.
const NAMES: [(&str, Level); 3] = [
    ("e2e", Level::E2e),
    ("kernel", Level::Kernel),
    ("verbose", Level::Verbose),
];

fn parse_level(word: &str) -> Result<Level, String> {
    let mut names = NAMES.into_iter();
    let found = names.find(|(name, _)| name.eq_ignore_ascii_case(word));
    found
        .map(|(_, level)| level)
        .ok_or_else(|| format!("expected e2e, kernel or verbose, found {word:?}"))
}

/// Formats levels as on the command line; `off` for none.
pub(crate) fn text(levels: &[Level]) -> String {
    if levels.is_empty() {
        return "off".to_owned();
    }
    let name = |level: &Level| NAMES.iter().find(|(_, known)| known == level);
    let names = levels.iter().filter_map(name).map(|(name, _)| *name);
    names.collect::<Vec<_>>().join(",")
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let directory = arguments.directory.live()?;
    let levels = arguments.levels.0.clone();
    let task = format!("record {}", text(&levels));
    let wish = |_| Control {
        cause: SwitchCause::Level,
        levels: Some(levels),
        ..Control::default()
    };
    obey::apply(&directory, wish, &task, &arguments.wait)
}
