//! The content that is served, updated after each poll of the run.

use std::sync::{Arc, Mutex, PoisonError};
use trace_report::live::{LiveStats, live_page, prometheus};

/// Bodies of the answers.
#[derive(Debug)]
pub(super) struct Pages {
    page: Arc<[u8]>,
    bodies: Mutex<Bodies>,
}

#[derive(Debug, Default)]
struct Bodies {
    stats: Arc<[u8]>,
    metrics: Arc<[u8]>,
}

impl Default for Pages {
    fn default() -> Pages {
        Pages {
            page: live_page().into_bytes().into(),
            bodies: Mutex::default(),
        }
    }
}

impl Pages {
    /// Sets the figures that are served from now on. Prometheus gets `counters`, which never decrease.
    pub(super) fn show(&self, stats: &LiveStats, counters: &LiveStats) {
        let json = stats.json().unwrap_or_default(); // writing to memory does not fail
        let bodies = Bodies {
            stats: json.into_bytes().into(),
            metrics: prometheus(counters).into_bytes().into(),
        };
        *self.bodies.lock().unwrap_or_else(PoisonError::into_inner) = bodies;
    }

    /// Returns the content type and body for a path; `None` if the path does not exist. The figures are empty before the first poll of the run.
    pub(super) fn at(&self, path: &str) -> Option<(&'static str, Arc<[u8]>)> {
        let bodies = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        let (kind, body) = match path {
            "/" => ("text/html; charset=utf-8", &self.page),
            "/stats" => ("application/json", &bodies.stats),
            "/metrics" => ("text/plain; version=0.0.4; charset=utf-8", &bodies.metrics),
            _ => return None,
        };
        Some((kind, Arc::clone(body)))
    }
}
