//! Records long garbage collections as spans.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use sa_recorder::{Args, Level, now_ns};

use super::record_span;
use crate::value;

/// A callback for `gc.callbacks` that records collections of at least `shortest_ns`. Only one collection runs at a time.
#[pyclass(frozen, module = "sa_profile")]
pub(crate) struct CollectionSpans {
    shortest_ns: u64,
    began_ns: AtomicU64,
}

#[pymethods]
impl CollectionSpans {
    #[new]
    #[pyo3(signature = (shortest_ns, /))]
    fn new(shortest_ns: u64) -> CollectionSpans {
        CollectionSpans {
            shortest_ns,
            began_ns: AtomicU64::new(0),
        }
    }

    #[pyo3(signature = (phase, info, /))]
    fn __call__(&self, phase: &str, info: &Bound<'_, PyDict>) {
        if phase == "start" {
            let is_wanted = sa_recorder::__wants(Level::E2e);
            let began_ns = if is_wanted { now_ns() } else { 0 };
            return self.began_ns.store(began_ns, Ordering::Relaxed);
        }
        let began_ns = self.began_ns.swap(0, Ordering::Relaxed);
        let took_ns = now_ns().saturating_sub(began_ns);
        if began_ns != 0 && took_ns >= self.shortest_ns {
            // On the thread's track, because a collection stops the thread and not only the current task.
            let times = (began_ns, took_ns);
            record_span(info.py(), "gc.collect", times, || collection_args(info));
        }
    }
}

fn collection_args(info: &Bound<'_, PyDict>) -> Args {
    let mut text = Vec::new();
    for key in ["generation", "collected"] {
        if let Ok(Some(value)) = info.get_item(key) {
            value::push_named(&mut text, key, &value);
        }
    }
    Args::from_text(text)
}
