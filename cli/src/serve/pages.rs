//! What is served, made anew with each look at the run.

use std::sync::{Arc, Mutex, PoisonError};
use trace_report::live::{LiveStats, live_page, prometheus};

/// The bodies of answers.
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
    /// Shows these figures from now on, and to Prometheus those that never become smaller.
    pub(super) fn show(&self, stats: &LiveStats, counters: &LiveStats) {
        let json = stats.json().unwrap_or_default(); // writing to memory does not fail
        let bodies = Bodies {
            stats: json.into_bytes().into(),
            metrics: prometheus(counters).into_bytes().into(),
        };
        *self.bodies.lock().unwrap_or_else(PoisonError::into_inner) = bodies;
    }

    /// Returns the content type and the body at a path; `None` if there is nothing. The figures are empty before the first look at the run.
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
