//! Names, labels and sort order of processes and threads, as metadata that the merge adds.

use crate::event::mend::json_text;
use crate::fragment::recording::Distinction;
use crate::identity::process::{Process, Thread, ThreadKey, with_text};
use sa_format::visible;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the names to show: the last recorded name, otherwise the script or executable. Names
/// that several processes share are extended by the trace or the host, then by the labels, which
/// viewers do not show, then by the pid.
pub(crate) fn shown_names(processes: &[Process]) -> Vec<Option<String>> {
    let mut names: Vec<Option<String>> = processes.iter().map(plain_name).collect();
    distinguish(&mut names, processes, |name, process| {
        let trace = distinction(process).filter(|distinction| !distinction.is_rank);
        let place = trace.map(|trace| &trace.text).or(process.host.as_ref())?;
        Some(format!("{name} · {}", visible(place)))
    });
    distinguish(&mut names, processes, |name, process| {
        // A single trace has short names, and their pids distinguish them.
        distinction(process)?;
        let labels = process.origin.as_ref()?.labels.as_ref()?;
        let is_device = labels != "CPU";
        is_device.then(|| format!("{} · {name}", visible(labels)))
    });
    distinguish(&mut names, processes, |name, process| {
        Some(format!("{name}[{}]", process.pid))
    });
    names
}

fn plain_name(process: &Process) -> Option<String> {
    let own = process.name.as_ref().or(process.fallback_name.as_ref());
    let name = match &process.tracks {
        Some(group) => {
            let sampled = process.duplicate_of.as_ref().map_or("", |_| " (sampled)");
            let name = format!("{}{sampled}", group.name);
            own.map_or(name.clone(), |own| format!("{name} · {own}"))
        }
        None => {
            let text = process
                .origin
                .as_ref()
                .and_then(|origin| origin.pid_text.as_ref());
            let name = with_text(own.map(String::as_str), text.map(String::as_str));
            // Without a name, its rank would not be visible.
            let rank = || distinction(process).filter(|distinction| distinction.is_rank);
            name.or_else(|| rank().map(|_| format!("process {}", process.pid)))?
        }
    };
    let rank = distinction(process).filter(|distinction| distinction.is_rank);
    let name = rank.map_or(name.clone(), |rank| format!("{name} · {}", rank.text));
    Some(visible(&name).into_owned())
}

fn distinction(process: &Process) -> Option<&Distinction> {
    process.origin.as_ref()?.distinction.as_ref()
}

/// Replaces names that several processes share by the results of `longer`, unless these are all
/// equal.
fn distinguish(
    names: &mut [Option<String>],
    processes: &[Process],
    longer: impl Fn(&str, &Process) -> Option<String>,
) {
    let mut sharing: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (number, name) in names.iter().enumerate() {
        if let Some(name) = name {
            sharing.entry(name.clone()).or_default().push(number);
        }
    }
    for (name, numbers) in sharing.into_iter().filter(|(_, numbers)| numbers.len() > 1) {
        let longer_names = numbers
            .iter()
            .map(|number| longer(&name, &processes[*number]));
        let longer_names: Vec<Option<String>> = longer_names.collect();
        if longer_names.iter().all(|one| one == &longer_names[0]) {
            continue;
        }
        for (number, name) in numbers.into_iter().zip(longer_names) {
            names[number] = name.or(names[number].take());
        }
    }
}

/// Returns the metadata lines that the merge adds, without newlines. They are written last, because
/// viewers use the last name of a process.
pub(crate) fn metadata_lines(processes: &[Process]) -> Vec<String> {
    let hosts = processes.iter().filter_map(|process| process.host.as_ref());
    let hosts: BTreeSet<_> = hosts.collect();
    let clocks = processes.iter().filter_map(|process| process.clock);
    let clocks: BTreeSet<usize> = clocks.map(|clock| clock.number).collect();
    let mut lines = Vec::new();
    for ((order, process), name) in processes.iter().enumerate().zip(shown_names(processes)) {
        let pid = process.output_pid;
        let mut add = |name: &str, args: Value| lines.push(line(pid, pid, name, &args));
        if let Some(name) = name {
            add("process_name", json!({ "name": name }));
        }
        let label = process_label(process, hosts.len() > 1, clocks.len() > 1);
        add("process_labels", json!({ "labels": visible(&label) }));
        add("process_sort_index", json!({ "sort_index": order }));
        thread_lines(process, &mut lines);
    }
    lines
}

fn process_label(process: &Process, has_hosts: bool, has_clocks: bool) -> String {
    let mut label = match (&process.origin, &process.host) {
        (Some(origin), _) => origin.label(process.pid),
        (None, Some(host)) if has_hosts => format!("pid {} host {host}", process.pid),
        _ => format!("pid {}", process.pid),
    };
    if let Some(group) = &process.tracks {
        label = format!("{}, {label}", group.label);
    }
    if let Some(duplicate_of) = &process.duplicate_of {
        label += &format!(", sampled; all kernels in {}", duplicate_of.trace);
    }
    if let Some(clock) = process.clock.filter(|_| has_clocks) {
        label += &format!(", {}", clock.label());
    }
    if let Some(killed) = process.killed_label() {
        label += &format!(", {killed}");
    }
    if process.ring_in_memory {
        label += ", ring in memory";
    }
    label
}

fn thread_lines(process: &Process, lines: &mut Vec<String>) {
    let mut order = 0_usize..;
    let mut add = |tid: u32, name: Option<String>| {
        let mut add = |name: &str, args: Value| {
            lines.push(line(process.output_pid, tid, name, &args));
        };
        if let Some(name) = name {
            add("thread_name", json!({ "name": name }));
        }
        add("thread_sort_index", json!({ "sort_index": order.next() }));
    };
    for (_, thread) in sorted_threads(process) {
        let tid = thread.output_tid;
        let is_added = process.tracks.is_some() || thread.id_text.is_some();
        let name = thread
            .display_name()
            .map(|name| visible(&name).into_owned());
        add(tid, name.clone().filter(|_| is_added));
        let first = name.unwrap_or_else(|| format!("{tid}"));
        for (tid, number) in thread.lane_tids.iter().zip(1..) {
            add(*tid, Some(format!("{first} (overlapping {number})")));
        }
    }
}

/// Returns the threads in the order of display: sort index, main thread, kernel threads by their
/// first event, lanes by id.
fn sorted_threads(process: &Process) -> Vec<(&ThreadKey, &Thread)> {
    let threads = process.threads.iter().map(|(key, thread)| (key, &**thread));
    let mut threads: Vec<_> = threads.filter(|(_, thread)| thread.is_used()).collect();
    threads.sort_by_key(|(key, thread)| {
        let is_main = thread.is_main || thread.name.as_deref() == Some("MainThread");
        let is_lane = matches!(key, ThreadKey::Lane(..));
        let started = if is_lane { 0 } else { thread.activity.first_ns };
        let index = thread.sort_index.unwrap_or(i64::MAX);
        (index, !is_main, is_lane, started, **key)
    });
    threads
}

fn line(pid: u32, tid: u32, name: &str, args: &Value) -> String {
    let args = json_text(args);
    format!(r#"{{"ph":"M","pid":{pid},"tid":{tid},"name":"{name}","args":{args}}}"#)
}
