//! How the viewer shows processes and threads: effective names, labels and sort order, as metadata the merge adds.

use crate::event::mend::json_text;
use crate::identity::process::{Process, Thread, ThreadKey};
use sa_recorder::format::visible;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The names the viewer shall show: the last one given, else the script or executable; `name[pid]` where several share one.
pub(crate) fn shown_names(processes: &[Process]) -> Vec<Option<String>> {
    let plain = |process: &Process| {
        let own = process.name.as_ref().or(process.fallback_name.as_ref());
        match &process.tracks {
            Some(group) => {
                let sampled = process.aside.as_ref().map_or("", |_| " (sampled)");
                let name = format!("{}{sampled}", group.name);
                Some(own.map_or(name.clone(), |own| format!("{name} · {own}")))
            }
            None => own.cloned(),
        }
    };
    let mut uses: BTreeMap<String, usize> = BTreeMap::new();
    for name in processes.iter().filter_map(plain) {
        let name = visible(&name).into_owned();
        *uses.entry(name).or_default() += 1;
    }
    let shown = |process: &Process| {
        let name = plain(process).map(|name| visible(&name).into_owned())?;
        Some(if uses[&name] > 1 {
            format!("{name}[{}]", process.pid)
        } else {
            name
        })
    };
    processes.iter().map(shown).collect()
}

/// The metadata lines the merge adds, without newlines. They come last: viewers take the last name of a process.
pub(crate) fn metadata_lines(processes: &[Process]) -> Vec<String> {
    let hosts: BTreeSet<_> = processes
        .iter()
        .filter_map(|process| process.host.as_ref())
        .collect();
    let mut lines = Vec::new();
    for ((order, process), name) in processes.iter().enumerate().zip(shown_names(processes)) {
        let pid = process.output_pid;
        if let Some(name) = name {
            lines.push(line(pid, pid, "process_name", &json!({ "name": name })));
        }
        let mut label = match &process.host {
            Some(host) if hosts.len() > 1 => format!("pid {} host {host}", process.pid),
            _ => format!("pid {}", process.pid),
        };
        if let Some(origin) = &process.origin {
            label = origin.label(process.pid, process.fallback_name.as_deref());
        }
        if let Some(group) = &process.tracks {
            label = format!("{}, {label}", group.label);
        }
        if let Some(aside) = &process.aside {
            label = format!("{label}, sampled; all kernels in {}", aside.trace);
        }
        if let Some(killed) = process.killed_label() {
            label = format!("{label}, {killed}");
        }
        if process.ring_in_memory {
            label += ", ring in memory";
        }
        lines.push(line(
            pid,
            pid,
            "process_labels",
            &json!({ "labels": visible(&label) }),
        ));
        lines.push(line(
            pid,
            pid,
            "process_sort_index",
            &json!({ "sort_index": order }),
        ));
        thread_lines(process, &mut lines);
    }
    lines
}

fn thread_lines(process: &Process, lines: &mut Vec<String>) {
    let (pid, mut order) = (process.output_pid, 0_usize..);
    for (_, thread) in sorted_threads(process) {
        let tid = thread.output_tid;
        let text = thread.text.as_ref().filter(|_| thread.name.is_none());
        let added = thread.name.as_ref().filter(|_| process.tracks.is_some());
        if let Some(name) = added.or(text) {
            let name = json!({ "name": visible(name) });
            lines.push(line(pid, tid, "thread_name", &name));
        }
        lines.push(sort_line((pid, tid), &mut order));
        let first = thread.name.clone().unwrap_or_else(|| format!("{tid}"));
        for (tid, number) in thread.overflow.iter().zip(1..) {
            let name = json!({ "name": format!("{} (overlapping {number})", visible(&first)) });
            lines.push(line(pid, *tid, "thread_name", &name));
            lines.push(sort_line((pid, *tid), &mut order));
        }
    }
}

fn sort_line((pid, tid): (u32, u32), order: &mut impl Iterator<Item = usize>) -> String {
    let sort_index = json!({ "sort_index": order.next() });
    line(pid, tid, "thread_sort_index", &sort_index)
}

/// Main thread first, then kernel threads, then lanes; those with ids that say nothing by their first event.
fn sorted_threads(process: &Process) -> Vec<(&ThreadKey, &Thread)> {
    let mut threads: Vec<_> = process
        .threads
        .iter()
        .map(|(key, thread)| (key, &**thread))
        .filter(|(_, thread)| thread.is_used())
        .collect();
    threads.sort_by_key(|(key, thread)| {
        let is_main = thread.is_main || thread.name.as_deref() == Some("MainThread");
        let is_lane = matches!(key, ThreadKey::Lane(..));
        let started = if is_lane { 0 } else { thread.activity.first_ns };
        let place = thread.place.unwrap_or(i64::MAX);
        (place, !is_main, is_lane, started, **key)
    });
    threads
}

fn line(pid: u32, tid: u32, name: &str, args: &Value) -> String {
    let args = json_text(args);
    format!(r#"{{"ph":"M","pid":{pid},"tid":{tid},"name":"{name}","args":{args}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragment::sample::header;
    use crate::identity::identities::{Identities, IdentityMember};
    use crate::pass::summary::{Activity, ChunkSummary};

    #[test]
    fn names_that_several_share_carry_the_pid() {
        let summary = |pid: i64, name: Option<&str>| ChunkSummary {
            threads: [((pid, pid), Activity::default())].into(),
            process_names: name
                .map(|name| (pid, name.to_owned()))
                .into_iter()
                .collect(),
            ..ChunkSummary::default()
        };
        let headers = [header(1), header(2), header(3)];
        let summaries = [
            summary(1, Some("worker")),
            summary(2, Some("worker")),
            summary(3, None),
        ];
        let members: Vec<_> = headers
            .iter()
            .zip(&summaries)
            .map(|(header, summary)| IdentityMember {
                end: crate::pass::end::RecordingEnd::default(),
                header: Some(header),
                foreign: None,
                summary,
                shift_ns: 0,
            })
            .collect();
        let identities = Identities::new(&members);
        let names: Vec<_> = shown_names(&identities.processes)
            .into_iter()
            .flatten()
            .collect();
        assert_eq!(names, ["worker[1]", "worker[2]", "python3"]);
        let lines = metadata_lines(&identities.processes);
        assert!(
            lines.contains(
                &r#"{"ph":"M","pid":1,"tid":1,"name":"process_labels","args":{"labels":"pid 1"}}"#
                    .to_owned()
            )
        );
        for line in lines {
            crate::event::line::parse(line.as_bytes()).expect("an event");
        }
    }
}
