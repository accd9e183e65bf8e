//! The loops over our own recorder.

use std::hint::black_box;

use sa_recorder::{instant, span};

/// Records `count` spans with one integer argument.
pub(crate) fn span_1arg(count: u64) {
    for step in 0..count {
        let span = span!("bench", "decode", step = step);
        black_box(&span);
    }
}

/// Passes `count` spans of the level `verbose`.
pub(crate) fn span_verbose(count: u64) {
    for step in 0..count {
        let span = span!(verbose, "bench", "decode", step = step);
        black_box(&span);
    }
}

/// Records `count` instants with one integer argument.
pub(crate) fn instant_1arg(count: u64) {
    for step in 0..count {
        instant!("bench", "token", step = black_box(step));
    }
}
