//! Filters, which select processes and events.

use crate::Error;
use crate::base::pattern::Pattern;
use crate::event::json::scan_object;
use crate::event::line::Event;
use crate::identity::process::Process;
use crate::identity::viewer_metadata::shown_names;
use crate::link::{IdOwner, SelectedIds, ids_in};
use clap::Args;
use memchr::memmem;
use serde::Serialize;
use std::collections::HashSet;

/// Maximum number of request ids that are searched for in a line before it is parsed.
const MAX_SEARCHED: usize = 8;

/// A filter of events, whatever their time: an event is shown if it matches one value of each kind
/// that is given. Its fields are also command-line arguments.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[group(id = "filter", multiple = true)]
#[command(next_help_heading = "Filters (an event must match one value of each option given)")]
pub struct Filter {
    /// Only this process, by its recorded id or its id in the trace
    #[arg(id = "pid", long, value_name = "N")]
    pub pids: Vec<i64>,
    /// Only processes with this in their names; 'Worker*' is a pattern
    #[arg(id = "process", long, value_name = "NAME")]
    pub processes: Vec<String>,
    /// Only events with this name or matching a pattern such as 'execute_*'
    #[arg(id = "name", long, value_name = "GLOB")]
    pub names: Vec<String>,
    /// Only events with this category
    #[arg(id = "cat", long, value_name = "NAME")]
    pub categories: Vec<String>,
    /// Only events with the id of this request, or a longer form of it
    #[arg(id = "request", long, value_name = "ID")]
    pub requests: Vec<String>,
}

/// Report on the events that a filter leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FilterReport {
    /// The filter.
    #[serde(flatten)]
    pub filter: Filter,
    /// Other ids of the selected requests: the engine's ids for a client's id.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub request_aliases: Vec<String>,
    /// Number of events that it left out. With a window, only events in the window count.
    pub events_left_out: u64,
}

impl Filter {
    /// Returns true if the filter shows everything.
    pub fn is_empty(&self) -> bool {
        !self.selects_processes() && !self.selects_events()
    }

    pub(crate) fn selects_processes(&self) -> bool {
        !self.pids.is_empty() || !self.processes.is_empty()
    }

    pub(crate) fn selects_events(&self) -> bool {
        let given = [&self.names, &self.categories, &self.requests];
        given.into_iter().any(|values| !values.is_empty())
    }
}

impl FilterReport {
    /// Formats the options that the filter came from.
    pub(crate) fn options_text(&self) -> String {
        let filter = &self.filter;
        let pids: Vec<String> = filter.pids.iter().map(ToString::to_string).collect();
        let options = [
            ("--pid", &pids),
            ("--process", &filter.processes),
            ("--name", &filter.names),
            ("--cat", &filter.categories),
            ("--request", &filter.requests),
        ];
        let texts = |(option, values): (&str, &Vec<String>)| {
            let texts = values.iter().map(|value| format!("{option} {value}"));
            texts.collect::<Vec<_>>()
        };
        let texts: Vec<String> = options.into_iter().flat_map(texts).collect();
        texts.join(" ")
    }
}

/// Conditions on each event.
pub(crate) struct EventFilter<'a> {
    names: Vec<Pattern>,
    categories: &'a [String],
    requests: SelectedIds,
    /// Searches for each of the ids. Empty if there are so many ids that parsing every line is
    /// faster.
    finders: Vec<memmem::Finder<'a>>,
}

impl EventFilter<'_> {
    pub(crate) fn new(filter: &Filter) -> EventFilter<'_> {
        let requests = SelectedIds::new(&filter.requests);
        let ids = requests.ids();
        let searched = ids.iter().filter(|_| ids.len() <= MAX_SEARCHED);
        let finders = searched.map(|id| memmem::Finder::new(id.as_bytes()).into_owned());
        EventFilter {
            finders: finders.collect(),
            names: filter.names.iter().map(|name| Pattern::new(name)).collect(),
            categories: &filter.categories,
            requests,
        }
    }

    /// Returns true if the event itself matches.
    pub(crate) fn matches(&self, event: &Event<'_>) -> bool {
        if self.names.is_empty() && self.categories.is_empty() && self.requests.ids().is_empty() {
            return true;
        }
        if !self.may_contain_id(event.line) {
            return false;
        }
        // The event's fast parsers do not read everything that is needed here.
        let Some(fields) = scan_object(event.line) else {
            return false;
        };
        self.name_matches(fields.name.slice(event.line))
            && self.category_matches(fields.cat.slice(event.line))
            && self.request_matches(fields.args.slice(event.line))
    }

    /// Returns the engine's ids in an event's args that were not selected, if another one of them
    /// was. If only the client's id was selected, it is unknown which of the engine's ids belong to
    /// it.
    pub(crate) fn other_requests(&self, event: &Event<'_>) -> Vec<String> {
        if self.requests.ids().is_empty() {
            return Vec::new();
        }
        let fields = scan_object(event.line).unwrap_or_default();
        let ids = ids_in(fields.args.slice(event.line)).into_iter();
        let engine_ids = ids.filter(|(owner, _)| *owner == IdOwner::Engine);
        let is_selected = |id: &String| self.requests.matches(id);
        let (selected, others): (Vec<String>, _) =
            engine_ids.map(|(_, id)| id).partition(is_selected);
        if selected.is_empty() {
            selected
        } else {
            others
        }
    }

    /// Returns false if a line cannot contain an id: it has neither the id's bytes nor an escape.
    fn may_contain_id(&self, line: &[u8]) -> bool {
        self.finders.is_empty()
            || self.finders.iter().any(|id| id.find(line).is_some())
            || memchr::memchr(b'\\', line).is_some()
    }

    fn name_matches(&self, name: &[u8]) -> bool {
        self.names.is_empty() || {
            let name = text(name);
            self.names.iter().any(|pattern| pattern.is(&name))
        }
    }

    fn category_matches(&self, categories: &[u8]) -> bool {
        self.categories.is_empty() || {
            let categories = text(categories);
            let mut each = categories.split(',').map(str::trim);
            each.any(|category| self.categories.iter().any(|wanted| wanted == category))
        }
    }

    fn request_matches(&self, args: &[u8]) -> bool {
        let is_wanted = |(_, id): &(IdOwner, String)| self.requests.matches_longer(id);
        self.requests.ids().is_empty() || ids_in(args).iter().any(is_wanted)
    }
}

/// Decodes a JSON string. Returns an empty text for anything else.
fn text(json: &[u8]) -> String {
    serde_json::from_slice(json).unwrap_or_default()
}

/// Maximum number of processes that a message lists.
const MAX_LISTED: usize = 10;

/// Returns the output pids of the selected processes, as text.
///
/// # Errors
/// Returns [`Error::Usage`] if there is no such process.
pub(crate) fn selected_pids(
    filter: &Filter,
    processes: &[Process],
) -> Result<HashSet<Box<[u8]>>, Error> {
    let names = shown_names(processes);
    let patterns = filter.processes.iter().map(|name| Pattern::new(name));
    let patterns: Vec<Pattern> = patterns.collect();
    let is_selected = |(process, name): &(&Process, &Option<String>)| {
        let pids = [process.pid, process.output_pid.into()];
        let own = [&process.name, &process.fallback_name, *name];
        let name_matches =
            |pattern: &Pattern| own.into_iter().flatten().any(|name| pattern.is_in(name));
        (filter.pids.is_empty() || pids.iter().any(|pid| filter.pids.contains(pid)))
            && (patterns.is_empty() || patterns.iter().any(name_matches))
    };
    let found = processes.iter().zip(&names).filter(is_selected);
    let text = |process: &Process| process.output_pid.to_string().into_bytes();
    let pids: HashSet<Box<[u8]>> = found.map(|(process, _)| text(process).into()).collect();
    if pids.is_empty() && !processes.is_empty() && filter.selects_processes() {
        return Err(Error::Usage(no_process(processes, &names)));
    }
    Ok(pids)
}

fn no_process(processes: &[Process], names: &[Option<String>]) -> String {
    let text = |(process, name): (&Process, &Option<String>)| {
        let name = name.as_deref().unwrap_or("(no name)");
        format!("{name} (pid {})", process.pid)
    };
    let texts: Vec<String> = processes
        .iter()
        .zip(names)
        .map(text)
        .take(MAX_LISTED)
        .collect();
    let more = match processes.len().saturating_sub(MAX_LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "expected --pid and --process to match a process of the run, which has {}{more}; found no match",
        texts.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::line::parse;

    fn has(filter: &Filter, rest: &str) -> bool {
        let line = format!(r#"{{"ph":"i","pid":1,"tid":1,"ts":5.000,"s":"t",{rest}}}"#);
        EventFilter::new(filter).matches(&parse(line.as_bytes()).expect("an event"))
    }

    fn values(values: &[&str]) -> Vec<String> {
        values.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn requests_are_named_in_args() {
        let few = Filter {
            requests: values(&["cmpl-1", "7"]),
            ..Filter::default()
        };
        let mut many = few.clone();
        let others = (100..120).map(|number| format!("cmpl-{number}"));
        many.requests.extend(others);
        for case in include_str!("../../tests/fixtures/selected-requests.txt").lines() {
            let (is_selected, args) = case.split_once(' ').unwrap();
            for filter in [&few, &many] {
                let rest = format!(r#""args":{args}"#);
                assert_eq!(has(filter, &rest), is_selected == "yes", "{args}");
            }
        }
        assert!(!has(&few, r#""name":"cmpl-1""#) && !has(&many, r#""name":"cmpl-1""#));
    }
}
