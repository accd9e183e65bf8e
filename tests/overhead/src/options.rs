//! The command line. Nothing else knows clap, but for the words of the children's tasks.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::effort::Effort;
use crate::{cost, footprint, kill, tails};

/// Measures what recording costs, next to other recorders, and writes docs/overhead.md.
#[derive(Debug, Parser)]
#[command(
    version,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true
)]
pub(crate) struct Options {
    /// Measure less, and print the page instead of writing docs/overhead.md: a check, no numbers to quote
    #[arg(long)]
    quick: bool,
    /// Measure next to nothing: for the tests
    #[arg(long, hide = true)]
    tiny: bool,
    /// Write the page here; `-` prints it
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also install torch (2 GB and more) and measure its record_function
    #[arg(long)]
    pub(crate) torch: bool,
    /// Measure the Python recorders that this interpreter has, and install none
    #[arg(long, value_name = "PROGRAM", conflicts_with = "torch")]
    pub(crate) python: Option<PathBuf>,
    /// Leave the Python recorders out
    #[arg(long, conflicts_with_all = ["torch", "python"])]
    pub(crate) no_python: bool,
    #[command(subcommand)]
    pub(crate) work: Option<Work>,
}

/// What a child process does.
#[derive(Debug, Subcommand)]
pub(crate) enum Work {
    #[command(hide = true)]
    Cost(cost::Task),
    #[command(hide = true)]
    Tail(tails::Task),
    #[command(hide = true)]
    Start,
    #[command(hide = true)]
    Footprint(footprint::Task),
    #[command(hide = true)]
    Victim(kill::Task),
}

impl Options {
    pub(crate) fn effort(&self) -> Effort {
        match (self.tiny, self.quick) {
            (true, _) => Effort::TINY,
            (false, true) => Effort::QUICK,
            (false, false) => Effort::FULL,
        }
    }

    /// The file to write, or `None` to print.
    pub(crate) fn output(&self) -> Option<PathBuf> {
        match &self.output {
            Some(path) if path.as_os_str() == "-" => None,
            Some(path) => Some(path.clone()),
            None if self.quick || self.tiny => None,
            None => Some(
                [
                    env!("CARGO_MANIFEST_DIR"),
                    "..",
                    "..",
                    "docs",
                    "overhead.md",
                ]
                .iter()
                .collect(),
            ),
        }
    }

    /// The command that the page names.
    pub(crate) fn command(&self) -> String {
        let mut words = String::from("cargo run --profile dist -p overhead");
        let flags = [
            (self.quick, "--quick"),
            (self.tiny, "--tiny"),
            (self.torch, "--torch"),
            (self.python.is_some(), "--python PROGRAM"),
            (self.no_python, "--no-python"),
        ];
        let flags: Vec<&str> = flags
            .into_iter()
            .filter_map(|(given, flag)| given.then_some(flag))
            .collect();
        if !flags.is_empty() {
            words.push_str(" -- ");
            words.push_str(&flags.join(" "));
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        <Options as CommandFactory>::command().debug_assert();
    }

    #[test]
    fn only_a_full_run_writes_the_page_by_itself() {
        let output = |words: &[&str]| Options::parse_from(words).output();
        assert!(output(&["overhead"]).is_some_and(|path| path.ends_with("docs/overhead.md")));
        assert_eq!(output(&["overhead", "--quick"]), None);
        assert_eq!(output(&["overhead", "-o", "-"]), None);
        let named = Options::parse_from(["overhead", "--quick", "--torch", "--output", "x.md"]);
        assert_eq!(named.output(), Some("x.md".into()));
        assert_eq!(
            named.command(),
            "cargo run --profile dist -p overhead -- --quick --torch"
        );
    }
}
