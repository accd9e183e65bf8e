//! Metadata of a trace about the display of its tracks. Our own fragments do not contain any, because the merge decides it.

use crate::event::line::Event;
use crate::event::mend::from_slice;
use serde_json::Value;
use std::collections::HashMap;

/// The last hint of each kind for a process or thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DisplayHints {
    /// Sort index of each process.
    pub process_order: HashMap<i64, i64>,
    /// Sort index of each thread in its process.
    pub thread_order: HashMap<(i64, i64), i64>,
    /// Labels that are shown after the name of each process.
    pub labels: HashMap<i64, String>,
}

impl DisplayHints {
    /// Adds the hint in a metadata record: a sort index or the labels of a process or thread. Ignores all other records.
    pub fn add(&mut self, event: &Event<'_>) {
        let arg = |name: &str| {
            from_slice::<Value>(event.line)?
                .get("args")?
                .get(name)
                .cloned()
        };
        let order = || arg("sort_index")?.as_i64();
        let (pid, thread) = (event.pid, (event.pid, event.tid));
        match event.name() {
            b"process_sort_index" => self.process_order.extend(order().map(|at| (pid, at))),
            b"thread_sort_index" => self.thread_order.extend(order().map(|at| (thread, at))),
            b"process_labels" => {
                let labels = arg("labels").and_then(|labels| labels.as_str().map(str::to_owned));
                self.labels.extend(labels.map(|labels| (pid, labels)));
            }
            _ => {}
        }
    }

    /// Adds the hints of later lines, which replace earlier hints about the same process or thread.
    pub fn append(&mut self, later: DisplayHints) {
        self.process_order.extend(later.process_order);
        self.thread_order.extend(later.thread_order);
        self.labels.extend(later.labels);
    }
}
