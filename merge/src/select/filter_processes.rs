//! The processes that a filter asks for.

use crate::Error;
use crate::base::pattern::Pattern;
use crate::identity::process::Process;
use crate::identity::row_order::shown_names;
use crate::select::filter::Filter;
use std::collections::HashSet;

/// Processes that a message names.
const NAMED: usize = 10;

/// The output pids of the processes that are asked for, as text.
///
/// # Errors
/// If there is none.
pub(crate) fn chosen(filter: &Filter, processes: &[Process]) -> Result<HashSet<Box<[u8]>>, Error> {
    let names = shown_names(processes);
    let patterns = filter.processes.iter().map(|name| Pattern::new(name));
    let patterns: Vec<Pattern> = patterns.collect();
    let is_asked_for = |(process, name): &(&Process, &Option<String>)| {
        let pids = [process.pid, process.output_pid.into()];
        let own = [&process.name, &process.fallback_name, *name];
        let has_name =
            |pattern: &Pattern| own.into_iter().flatten().any(|name| pattern.is_in(name));
        (filter.pids.is_empty() || pids.iter().any(|pid| filter.pids.contains(pid)))
            && (patterns.is_empty() || patterns.iter().any(has_name))
    };
    let found = processes.iter().zip(&names).filter(is_asked_for);
    let text = |process: &Process| process.output_pid.to_string().into_bytes();
    let pids: HashSet<Box<[u8]>> = found.map(|(process, _)| text(process).into()).collect();
    if pids.is_empty() && !processes.is_empty() && filter.is_of_processes() {
        return Err(Error::Usage(no_process(processes, &names)));
    }
    Ok(pids)
}

fn no_process(processes: &[Process], names: &[Option<String>]) -> String {
    let word = |(process, name): (&Process, &Option<String>)| {
        let name = name.as_deref().unwrap_or("(no name)");
        format!("{name} (pid {})", process.pid)
    };
    let words: Vec<String> = processes.iter().zip(names).map(word).take(NAMED).collect();
    let more = match processes.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "expected --pid and --process to name a process of the run, which has {}{more}; found none that they name",
        words.join(", ")
    )
}
