//! The parent: options, and children in turn.

use std::path::Path;
use std::process::{Command, Stdio};

use measure::Scratch;
use measure::neighbour::Neighbour;
use measure::tail::Tail;

use crate::case::{self, CASES, Case};
use crate::child;
use crate::table::{self, Measured, TailMeasured};
use crate::tail;

const TAIL_QUIET: &str = "tail_quiet";
const TAIL_FSYNC: &str = "tail_fsync";

/// Where the children record.
const SCRATCH: &str = env!("CARGO_TARGET_TMPDIR");

/// How much to measure.
struct Effort {
    passes: u32,
    /// One child of at most three rounds per case.
    quick: bool,
    tail_seconds: u64,
}

/// Measures the cases named on the command line, or all.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let (effort, cases, tails) = selection(words)?;
    println!("load average before: {}", load_average());
    let mut measured: Vec<(&Case, Measured)> = cases
        .into_iter()
        .map(|case| (case, Measured::default()))
        .collect();
    let mut tails: Vec<TailMeasured> = tails
        .into_iter()
        .map(|name| TailMeasured {
            name,
            span: Vec::new(),
            control: Vec::new(),
        })
        .collect();
    for pass in 0..effort.passes {
        for (case, measured) in &mut measured {
            run_case(case, &effort, pass, measured)?;
        }
        for tail in &mut tails {
            run_tail(tail, &effort)?;
        }
    }
    println!("load average after:  {}", load_average());
    let lost = table::print_table(&measured);
    table::print_tails(&tails);
    table::print_results(&measured, &tails);
    if lost > 0.0 {
        return Err(format!(
            "{lost} events are not, or more than once, in the fragments"
        ));
    }
    Ok(())
}

type Selection = (Effort, Vec<&'static Case>, Vec<&'static str>);

fn selection(words: &[&str]) -> Result<Selection, String> {
    let quick = words.contains(&"--quick");
    let effort = if quick {
        Effort {
            passes: 1,
            quick,
            tail_seconds: 1,
        }
    } else {
        Effort {
            passes: 3,
            quick,
            tail_seconds: 6,
        }
    };
    let named: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| *word != "--quick")
        .collect();
    let known = |word: &&str| case::find(word).is_some() || [TAIL_QUIET, TAIL_FSYNC].contains(word);
    if let Some(word) = named.iter().find(|word| !known(word)) {
        let names: Vec<&str> = CASES
            .iter()
            .map(|case| case.name)
            .chain([TAIL_QUIET, TAIL_FSYNC])
            .collect();
        return Err(format!(
            "no case {word}; there are: --quick {}",
            names.join(" ")
        ));
    }
    let chosen = |name: &str| named.is_empty() || named.contains(&name);
    let cases = CASES.iter().filter(|case| chosen(case.name)).collect();
    let tails = [TAIL_QUIET, TAIL_FSYNC]
        .into_iter()
        .filter(|name| chosen(name))
        .collect();
    Ok((effort, cases, tails))
}

fn run_case(
    case: &Case,
    effort: &Effort,
    pass: u32,
    measured: &mut Measured,
) -> Result<(), String> {
    let (children, rounds) = if effort.quick {
        (1, case.rounds.min(3))
    } else {
        (case.children, case.rounds)
    };
    for child in 0..children {
        eprintln!(
            "pass {}/{} {} {}/{children}",
            pass + 1,
            effort.passes,
            case.name,
            child + 1
        );
        let scratch = Scratch::new(SCRATCH.as_ref(), case.name)?;
        let mut command = this_program(case.records().then_some(scratch.path()))?;
        command
            .arg(child::FLAG)
            .arg(case.name)
            .arg(rounds.to_string())
            .arg(scratch.path());
        for line in lines_of(command)? {
            measured
                .take(&line)
                .ok_or_else(|| format!("{}: unexpected line {line}", case.name))?;
        }
    }
    Ok(())
}

fn run_tail(tail: &mut TailMeasured, effort: &Effort) -> Result<(), String> {
    let scratch = Scratch::new(SCRATCH.as_ref(), tail.name)?;
    let _neighbour = (tail.name == TAIL_FSYNC)
        .then(|| Neighbour::start(scratch.path()))
        .transpose()?;
    for (kind, tails) in [("control", &mut tail.control), ("span", &mut tail.span)] {
        eprintln!("{} {kind}", tail.name);
        let mut command = this_program((kind == "span").then_some(scratch.path()))?;
        command
            .arg(tail::FLAG)
            .arg(kind)
            .arg(effort.tail_seconds.to_string());
        let lines = lines_of(command)?;
        tails.push(
            lines
                .iter()
                .find_map(|line| Tail::parse(line))
                .ok_or("a tail child printed nothing")?,
        );
    }
    Ok(())
}

/// Prepares a child of this program that records into `directory`, or not at all.
fn this_program(directory: Option<&Path>) -> Result<Command, String> {
    let mut command = Command::new(std::env::current_exe().map_err(|error| error.to_string())?);
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SA_PROFILE_") {
            command.env_remove(name);
        }
    }
    if let Some(directory) = directory {
        command.env("SA_PROFILE_DIR", directory.join("run"));
    }
    Ok(command)
}

fn lines_of(mut command: Command) -> Result<Vec<String>, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("child {command:?}: {}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(str::to_owned)
        .collect())
}

fn load_average() -> String {
    std::fs::read_to_string("/proc/loadavg")
        .map_or_else(|error| error.to_string(), |text| text.trim_end().to_owned())
}
