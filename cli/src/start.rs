//! `sa-profile start` and `stop`: switch recording on, for a while or until it is stopped, and off.

use crate::error::Error;
use crate::level::{self, Levels};
use crate::words::amount::{count, duration, grouped};
use crate::{directory, obey};
use sa_format::control::{Control, Steps, SwitchCause};
use std::process::ExitCode;
use std::time::Duration;

/// Switches recording on in every process, until a limit is reached or `stop` is run.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Levels to record [default: SA_PROFILE_LEVEL, else e2e,kernel]
    #[arg(long, value_name = "LEVELS", value_parser = level::parse_levels)]
    level: Option<Levels>,
    /// Stop after this time: 30s, 500ms, 5m
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// Stop each process after about this many events: 100k, 1M
    #[arg(long, value_name = "N", value_parser = count)]
    events: Option<u64>,
    /// Stop all processes when one of them has recorded this many steps
    #[arg(long, value_name = "N", value_parser = count)]
    steps: Option<u64>,
    /// Name of the spans that are steps
    #[arg(
        long,
        value_name = "NAME",
        default_value = "scheduler.schedule",
        requires = "steps"
    )]
    step_name: String,
    /// Category of the spans that are steps [default: any]
    #[arg(long, value_name = "CATEGORY", requires = "steps")]
    step_category: Option<String>,
    #[command(flatten)]
    directory: directory::RunDirectory,
    #[command(flatten)]
    wait: obey::Patience,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let directory = arguments.directory.live()?;
    let until_ns = |from_ns: u64| {
        let time_ns = u64::try_from(arguments.time?.as_nanos()).unwrap_or(u64::MAX);
        Some(from_ns.saturating_add(time_ns))
    };
    let wish = |from_ns| Control {
        cause: SwitchCause::Start,
        levels: arguments.level.as_ref().map(|levels| levels.0.clone()),
        until_realtime_ns: until_ns(from_ns),
        events: arguments.events,
        steps: arguments.steps.map(|count| Steps {
            name: arguments.step_name.clone(),
            category: arguments.step_category.clone(),
            count,
        }),
        ..Control::default()
    };
    obey::apply(&directory, wish, &task(arguments), &arguments.wait)
}

/// Switches recording off in every process; open spans are kept and marked.
#[derive(clap::Args)]
pub(crate) struct StopArguments {
    #[command(flatten)]
    directory: directory::RunDirectory,
    #[command(flatten)]
    wait: obey::Patience,
}

/// Runs `stop`.
pub(crate) fn stop(arguments: &StopArguments) -> Result<ExitCode, Error> {
    let directory = arguments.directory.live()?;
    let wish = |_| Control {
        cause: SwitchCause::Stop,
        levels: Some(Vec::new()),
        ..Control::default()
    };
    obey::apply(&directory, wish, "record nothing", &arguments.wait)
}

/// Returns a text that says what the processes are asked to record, for example `record 5 steps
/// (step)`.
fn task(arguments: &Arguments) -> String {
    let levels = arguments.level.as_ref();
    let mut task = "record".to_owned();
    if let Some(levels) = levels {
        task += &format!(" {}", level::text(&levels.0));
    }
    if let Some(time) = arguments.time {
        task += &format!(" for {time:?}");
    }
    if let Some(events) = arguments.events {
        task += &format!(" {} events each", grouped(events));
    }
    if let Some(steps) = arguments.steps {
        task += &format!(" {} steps ({})", grouped(steps), arguments.step_name);
    }
    task
}
