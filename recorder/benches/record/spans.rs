//! The loops over our own recorder.

use std::hint::black_box;

use sa_recorder::{Args, AsyncSpan, Level, async_span, instant, span};

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

/// Records `count` spans on a lane of their own, with one integer argument.
pub(crate) fn async_span_1arg(count: u64) {
    for step in 0..count {
        let span = async_span!("bench", "decode", step = step);
        black_box(&span);
    }
}

/// Records `count` spans within one on a lane, each named at run time and with one integer argument.
pub(crate) fn async_child_1arg(count: u64) {
    let task = async_span!("task", "task");
    let (category, name) = (black_box("bench"), black_box("decode"));
    for step in 0..count {
        let args = Args::new().with("step", step);
        let span = AsyncSpan::open_at(Level::E2e, category, name, Some(&task), None, &args);
        black_box(&span);
    }
}
