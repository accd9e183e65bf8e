//! A benchmark of cases that each record in processes of their own, interleaved over several passes.

use std::process::ExitCode;

use crate::process::load_average;
use crate::rounds::{self, Body, Plan};
use crate::{Child, Rounds, exit_code, scratch, warm_page_cache, words};

/// Marks a child's command line: `FLAG CASE ROUNDS DIRECTORY`.
const FLAG: &str = "--case-in-child";

/// A recorder that a benchmark measures.
pub trait Subject: Sync + Sized {
    /// Starts it as the environment says.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    fn start() -> Result<Self, String>;
    /// Returns true if it records.
    fn is_enabled(&self) -> bool;
    /// Waits until everything is written.
    fn settle(&self);
    /// Returns the number of events that it lost.
    fn dropped(&self) -> u64;
}

/// A loop to measure.
#[derive(Debug)]
pub struct Case<S> {
    /// Name in the results.
    pub name: &'static str,
    /// Records as many events as it is given.
    pub record: fn(&S, u64),
    /// True if a directory turns recording on.
    pub is_on: bool,
    /// Threads that do the same at the same time.
    pub threads: usize,
    /// Events per round and thread.
    pub events: u64,
    /// Measured rounds of a process. A single one is not preceded by warm ones.
    pub rounds: u32,
}

impl<S> Case<S> {
    /// Returns a case of 40,000 events in one thread.
    pub const fn new(name: &'static str, record: fn(&S, u64)) -> Self {
        Case {
            name,
            record,
            is_on: true,
            threads: 1,
            events: 40_000,
            rounds: 9,
        }
    }

    /// Returns a case that writes nothing.
    pub const fn silent(name: &'static str, record: fn(&S, u64), is_on: bool) -> Self {
        Case {
            is_on,
            events: 2_000_000,
            ..Case::new(name, record)
        }
    }
}

/// Runs the cases named on the command line, or all, and prints `RESULT <case> <ns_per_event> <ratio_to_two_clock_reads>`, medians over the
/// rounds. `--quick` measures less.
#[expect(clippy::print_stdout, reason = "it is a program's output")]
pub fn run<S: Subject>(cases: &[Case<S>]) -> ExitCode {
    let words = words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    exit_code(match words.as_slice() {
        [FLAG, name, rounds, directory] => in_child(cases, name, rounds, directory),
        words => {
            println!("load average before: {}", load_average());
            measure_all(cases, words).map(|results| println!("{}", results.join("\n")))
        }
    })
}

fn measure_all<S>(cases: &[Case<S>], words: &[&str]) -> Result<Vec<String>, String> {
    let is_quick = words.contains(&"--quick");
    let named: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| *word != "--quick")
        .collect();
    if let Some(word) = named
        .iter()
        .find(|word| cases.iter().all(|case| case.name != **word))
    {
        return Err(format!("there is no case {word}"));
    }
    let chosen = |case: &&Case<S>| named.is_empty() || named.contains(&case.name);
    let cases = cases.iter().filter(chosen);
    let mut measured: Vec<(&Case<S>, Rounds)> =
        cases.map(|case| (case, Rounds::default())).collect();
    for _ in 0..if is_quick { 1 } else { 5 } {
        for (case, rounds) in &mut measured {
            let scratch = scratch()?;
            let count = if is_quick {
                case.rounds.min(3)
            } else {
                case.rounds
            };
            let directory = scratch.path().to_string_lossy();
            let mut child = Child::new([FLAG, case.name, &count.to_string(), &directory])?;
            if case.is_on {
                child = child.recording_in(scratch.path());
            }
            rounds.add(&child.lines()?)?;
        }
    }
    let measured = measured.iter();
    Ok(measured
        .map(|(case, rounds)| rounds.result(case.name))
        .collect())
}

fn in_child<S: Subject>(
    cases: &[Case<S>],
    name: &str,
    rounds: &str,
    directory: &str,
) -> Result<(), String> {
    let case = cases.iter().find(|case| case.name == name);
    let case = case.ok_or_else(|| format!("there is no case {name}"))?;
    let plan = Plan {
        threads: case.threads,
        events: case.events,
        warm_rounds: if case.rounds > 1 { 3 } else { 0 },
        rounds: rounds
            .parse()
            .map_err(|error| format!("{rounds}: {error}"))?,
    };
    warm_page_cache(directory.as_ref())?;
    let subject = S::start()?;
    if subject.is_enabled() != case.is_on {
        return Err(format!("{name}: recording is on: {}", !case.is_on));
    }
    let body = Body {
        record: &|count| (case.record)(&subject, count),
        settle: &|| subject.settle(),
    };
    rounds::run(plan, body);
    match subject.dropped() {
        0 => Ok(()),
        dropped => Err(format!("{name}: {dropped} events were dropped")),
    }
}
