//! What is served, made anew with each look at the run.

use std::sync::{Arc, Mutex, PoisonError};
use trace_report::live::{LiveStats, live_page, prometheus};

/// The bodies of answers.
#[derive(Debug)]
pub(super) struct Pages {
    page: Arc<[u8]>,
    bodies: Mutex<Bodies>,
}

#[derive(Clone, Debug, Default)]
struct Bodies {
    stats: Arc<[u8]>,
    metrics: Arc<[u8]>,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    /// For browsers.
    Html,
    /// The figures as JSON.
    Stats,
    /// The figures for Prometheus.
    Metrics,
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

    /// Returns what is served now; `None` before the first look at the run.
    pub(super) fn body(&self, page: Page) -> Option<Arc<[u8]>> {
        let bodies = || self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        let body = match page {
            Page::Html => Arc::clone(&self.page),
            Page::Stats => Arc::clone(&bodies().stats),
            Page::Metrics => Arc::clone(&bodies().metrics),
        };
        (!body.is_empty()).then_some(body)
    }
}
