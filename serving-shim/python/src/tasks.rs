//! The spans open in asyncio tasks: each task with open spans has a lane, on which they nest.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use sa_recorder::{AsyncSpan, Track};

use crate::event::Event;
use crate::lane::{Owner, position};
use crate::task;

/// Spans open in tasks, those that are not recorded included.
static OPEN: AtomicUsize = AtomicUsize::new(0);
/// By the address of the task, which lives as long as it has a lane. No code of Python runs while this is held: it could come back here.
static LANES: LazyLock<Mutex<HashMap<usize, Lane>>> = LazyLock::new(Mutex::default);

struct Lane {
    task: Py<PyAny>,
    open: Vec<(Owner, AsyncSpan)>,
}

/// Whether any task has open spans.
pub(crate) fn are_open() -> bool {
    OPEN.load(Ordering::Relaxed) > 0
}

/// Opens a span on the lane of a task, which begins with it if it is the first one.
pub(crate) fn enter(task: &Bound<'_, PyAny>, event: &Event<'_, '_>, owner: Owner) {
    let key = task.as_ptr().addr();
    let is_inner = lanes().get(&key).is_some_and(|lane| parent(lane).is_some());
    let name = (!is_inner).then(|| task::name(task));
    let kept = task.clone().unbind();
    let mut lanes = lanes();
    let lane = lanes.entry(key).or_insert_with(|| Lane {
        task: kept,
        open: Vec::new(),
    });
    let span = event.open_on_lane(parent(lane), name.as_deref());
    lane.open.push((owner, span));
    OPEN.fetch_add(1, Ordering::Relaxed);
}

/// The innermost span of a lane that is recorded.
fn parent(lane: &Lane) -> Option<&AsyncSpan> {
    let mut spans = lane.open.iter().rev().map(|(_, span)| span);
    spans.find(|span| span.is_recording())
}

/// Remembers a span that is not recorded above one that is; whether there was one.
pub(crate) fn enter_unrecorded(task: &Bound<'_, PyAny>, owner: Owner) -> bool {
    let mut lanes = lanes();
    let Some(lane) = lanes.get_mut(&task.as_ptr().addr()) else {
        return false;
    };
    lane.open.push((owner, AsyncSpan::off()));
    OPEN.fetch_add(1, Ordering::Relaxed);
    true
}

/// Forgets all of them: in the child of a fork they are the parent's.
pub(crate) fn forget() {
    let lanes = std::mem::take(&mut *lanes());
    OPEN.store(0, Ordering::Relaxed);
    drop(lanes); // after the lock: dropping an object may run code
}

/// Ends the innermost span of this owner in a task; whether there was one.
pub(crate) fn exit(task: &Bound<'_, PyAny>, owner: Owner, args: &[u8]) -> bool {
    exit_key(task.as_ptr().addr(), owner, args)
}

fn exit_key(key: usize, owner: Owner, args: &[u8]) -> bool {
    let mut lanes = lanes();
    let Some(lane) = lanes.get_mut(&key) else {
        return false;
    };
    let Some(at) = position(&lane.open, owner) else {
        return false;
    };
    let (_, mut span) = lane.open.remove(at);
    OPEN.fetch_sub(1, Ordering::Relaxed);
    let ended = lane.open.is_empty().then(|| lanes.remove(&key)).flatten();
    if !args.is_empty() {
        span.raw(args);
    }
    drop(span);
    drop(lanes);
    drop(ended.map(|lane| lane.task)); // after the lock: dropping an object may run code
    true
}

/// Ends a span of this owner wherever it is: first in a task that has ended, which cannot end it itself.
pub(crate) fn exit_anywhere(py: Python<'_>, owner: Owner, args: &[u8]) {
    let holders: Vec<(usize, Py<PyAny>)> = {
        let lanes = lanes();
        let holders = lanes
            .iter()
            .filter(|(_, lane)| position(&lane.open, owner).is_some());
        holders
            .map(|(key, lane)| (*key, lane.task.clone_ref(py)))
            .collect()
    };
    let ended = holders
        .iter()
        .find(|(_, task)| task::is_done(task.bind(py)));
    if let Some((key, _)) = ended.or(holders.first()) {
        exit_key(*key, owner, args);
    }
}

/// The row of a task's innermost span, for what lasted since `start_ns`.
pub(crate) fn row_since(task: &Bound<'_, PyAny>, start_ns: u64) -> Option<Track> {
    let lanes = lanes();
    let lane = lanes.get(&task.as_ptr().addr())?;
    parent(lane)?.row_since(start_ns)
}

/// Adds args to the innermost open span of this owner in a task; whether there was one.
pub(crate) fn add_args(task: &Bound<'_, PyAny>, owner: Owner, args: &[u8]) -> bool {
    let mut lanes = lanes();
    let lane = lanes.get_mut(&task.as_ptr().addr());
    let found = lane.and_then(|lane| {
        let at = position(&lane.open, owner)?;
        lane.open[at].1.raw(args);
        Some(())
    });
    found.is_some()
}

fn lanes() -> MutexGuard<'static, HashMap<usize, Lane>> {
    LANES.lock().unwrap_or_else(PoisonError::into_inner)
}
