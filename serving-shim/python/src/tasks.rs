//! The spans that are open in asyncio tasks. Each task with open spans has a lane, on which they nest.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use sa_recorder::{AsyncSpan, Track};

use crate::event::Event;
use crate::lane::{End, Owner, position};
use crate::task;

/// Number of spans open in tasks, including unrecorded ones.
static OPEN: AtomicUsize = AtomicUsize::new(0);
/// No Python code may run while this is locked, because it could call back into this module.
static LANES: LazyLock<Mutex<Lanes>> = LazyLock::new(Mutex::default);
/// Function that Python calls when a task with open spans is freed.
static ON_FREED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

#[derive(Default)]
struct Lanes {
    /// Lanes by the address of their task, which exists as long as its lane is in this map.
    by_task: HashMap<usize, Lane>,
    /// Lanes of tasks that were freed with open spans. Python closes their coroutines afterwards, which ends the spans, unless something else keeps a coroutine alive.
    freed: Vec<Lane>,
}

struct Lane {
    task: Holder,
    open: Vec<(Owner, AsyncSpan)>,
}

/// A task with open spans. The reference is weak, so that open spans do not keep a task alive that its program has dropped.
enum Holder {
    Weak(Py<PyWeakrefReference>),
    /// For a kind of task that does not support weak references.
    Strong(Py<PyAny>),
}

impl Holder {
    fn new(task: &Bound<'_, PyAny>) -> Holder {
        let py = task.py();
        let on_freed_function = ON_FREED.get_or_try_init(py, || {
            wrap_pyfunction!(on_freed, py).map(|function| function.into_any().unbind())
        });
        let weak = on_freed_function.and_then(|on_freed_function| {
            PyWeakrefReference::new_with(task, on_freed_function.bind(py))
        });
        match weak {
            Ok(weak) => Holder::Weak(weak.unbind()),
            Err(_) => Holder::Strong(task.clone().unbind()),
        }
    }

    fn clone_ref(&self, py: Python<'_>) -> Holder {
        match self {
            Holder::Weak(weak) => Holder::Weak(weak.clone_ref(py)),
            Holder::Strong(task) => Holder::Strong(task.clone_ref(py)),
        }
    }

    fn has_ended(&self, py: Python<'_>) -> bool {
        match self {
            Holder::Weak(weak) => weak
                .bind(py)
                .upgrade()
                .is_none_or(|task| task::is_done(&task)),
            Holder::Strong(task) => task::is_done(task.bind(py)),
        }
    }
}

/// Moves the lane of an asyncio task with open spans to the freed ones. Python calls this when the task is freed, and closes its coroutine afterwards.
#[pyfunction]
fn on_freed(reference: &Bound<'_, PyAny>) {
    let is_its_lane = |lane: &Lane| match &lane.task {
        Holder::Weak(weak) => weak.as_ptr() == reference.as_ptr(),
        Holder::Strong(_) => false,
    };
    let mut lanes = lanes();
    let key = lanes.by_task.iter().find(|(_, lane)| is_its_lane(lane));
    if let Some(key) = key.map(|(key, _)| *key)
        && let Some(lane) = lanes.by_task.remove(&key)
    {
        lanes.freed.push(lane);
        FREED.store(lanes.freed.len(), Ordering::Relaxed);
    }
}

/// Number of freed tasks that have open spans.
static FREED: AtomicUsize = AtomicUsize::new(0);

/// Returns true if any asyncio task was freed while it had open spans, and these are still open.
pub(crate) fn any_freed() -> bool {
    FREED.load(Ordering::Relaxed) > 0
}

/// Returns true if any asyncio task has open spans.
pub(crate) fn any_open() -> bool {
    OPEN.load(Ordering::Relaxed) > 0
}

/// Opens a span, as `event` describes it, in an asyncio task. Creates the task's lane (the list of its open spans) if this is the first one.
pub(crate) fn enter(task: &Bound<'_, PyAny>, event: &Event<'_, '_>, owner: Owner) {
    let key = task.as_ptr().addr();
    let has_parent = |lane: &Lane| parent(lane).is_some();
    let is_inner = lanes().by_task.get(&key).map(has_parent);
    let name = (is_inner != Some(true)).then(|| task::track_name(task));
    let texts = event.uninterned_texts();
    let mut new_lane = is_inner.is_none().then(|| Lane::new(task));
    // Python code that ran meanwhile may have opened spans in this task, or ended all of them.
    while !push(key, &mut new_lane, owner, |parent| {
        event.open_on_lane(parent, name.as_deref(), texts.as_ref())
    }) {
        new_lane = Some(Lane::new(task));
    }
    drop(new_lane); // after unlocking, because it may run code
}

/// Adds the span that `open` returns to the lane of the task with the address `key`. If the task has no lane, it gets the one in `new_lane`. Returns false if
/// there is no lane.
fn push(
    key: usize,
    new_lane: &mut Option<Lane>,
    owner: Owner,
    open: impl Fn(Option<&AsyncSpan>) -> AsyncSpan,
) -> bool {
    let mut lanes = lanes();
    let lane = match lanes.by_task.entry(key) {
        Entry::Occupied(lane) => lane.into_mut(),
        Entry::Vacant(entry) => match new_lane.take() {
            Some(lane) => entry.insert(lane),
            None => return false,
        },
    };
    let span = open(parent(lane));
    lane.open.push((owner, span));
    OPEN.fetch_add(1, Ordering::Relaxed);
    true
}

/// Returns true if `owner`, the object that opens spans, has one open in the asyncio task.
pub(crate) fn has_span(task: &Bound<'_, PyAny>, owner: Owner) -> bool {
    let lanes = lanes();
    let lane = lanes.by_task.get(&task.as_ptr().addr());
    lane.is_some_and(|lane| position(&lane.open, owner).is_some())
}

/// Returns the innermost recorded span of a task's lane, which contains the next span of the task.
fn parent(lane: &Lane) -> Option<&AsyncSpan> {
    let mut spans = lane.open.iter().rev().map(|(_, span)| span);
    spans.find(|span| span.is_recording())
}

/// Opens an unrecorded span inside the other spans of an asyncio task. Returns false if no span is open in the task.
pub(crate) fn enter_unrecorded(task: &Bound<'_, PyAny>, owner: Owner) -> bool {
    let mut lanes = lanes();
    let Some(lane) = lanes.by_task.get_mut(&task.as_ptr().addr()) else {
        return false;
    };
    lane.open.push((owner, AsyncSpan::off()));
    OPEN.fetch_add(1, Ordering::Relaxed);
    true
}

/// True if the parent had spans open in tasks when it forked this process.
static FORGOTTEN: AtomicBool = AtomicBool::new(false);

/// Returns true if this process was forked while its parent had spans open in asyncio tasks, which this process has dropped.
pub(crate) fn has_forgotten() -> bool {
    FORGOTTEN.load(Ordering::Relaxed)
}

/// Drops all spans that are open in tasks. Called in the child of a fork, because they belong to the parent.
pub(crate) fn forget() {
    let lanes = std::mem::take(&mut *lanes());
    FORGOTTEN.fetch_or(any_open(), Ordering::Relaxed);
    OPEN.store(0, Ordering::Relaxed);
    FREED.store(0, Ordering::Relaxed);
    drop(lanes); // after unlocking, because dropping an object may run code
}

/// Ends the innermost span of `owner` (the object that opened it) in an asyncio task. Returns false if no such span is open.
pub(crate) fn exit(task: &Bound<'_, PyAny>, owner: Owner, end: End<'_>) -> bool {
    exit_key(task.as_ptr().addr(), owner, end)
}

fn exit_key(key: usize, owner: Owner, end: End<'_>) -> bool {
    let mut lanes = lanes();
    let Some(lane) = lanes.by_task.get_mut(&key) else {
        return false;
    };
    if !lane.end(owner, end) {
        return false;
    }
    let is_empty = lane.open.is_empty();
    let ended = is_empty.then(|| lanes.by_task.remove(&key)).flatten();
    drop(lanes);
    drop(ended); // after unlocking, because it may run code
    true
}

impl Lane {
    fn new(task: &Bound<'_, PyAny>) -> Lane {
        Lane {
            task: Holder::new(task),
            open: Vec::new(),
        }
    }

    /// Adds encoded args to the innermost span of `owner` on this lane. Returns false if no such span is open.
    fn add_args(&mut self, owner: Owner, args: &[u8]) -> bool {
        let at = position(&self.open, owner);
        if let Some(at) = at {
            self.open[at].1.raw(args);
        }
        at.is_some()
    }

    /// Ends the innermost span of `owner` on this lane. Returns false if no such span is open.
    fn end(&mut self, owner: Owner, end: End<'_>) -> bool {
        let Some(at) = position(&self.open, owner) else {
            return false;
        };
        let (_, mut span) = self.open.remove(at);
        OPEN.fetch_sub(1, Ordering::Relaxed);
        if !end.args.is_empty() {
            span.raw(end.args);
        }
        if let Some(end_ns) = end.ns {
            span.end_at(end_ns);
        }
        true
    }
}

/// Ends a span of `owner` (the object that opened it) in any asyncio task. It prefers a task that has ended or was freed, because that cannot end the span
/// itself.
pub(crate) fn exit_anywhere(py: Python<'_>, owner: Owner, end: End<'_>) {
    let holders: Vec<(usize, Holder)> = {
        let lanes = lanes();
        let holders = lanes
            .by_task
            .iter()
            .filter(|(_, lane)| position(&lane.open, owner).is_some());
        holders
            .map(|(key, lane)| (*key, lane.task.clone_ref(py)))
            .collect()
    };
    let ended = holders.iter().find(|(_, task)| task.has_ended(py));
    if ended.is_none() && exit_freed(owner, end) {
        return;
    }
    if let Some((key, _)) = ended.or(holders.first()) {
        exit_key(*key, owner, end);
    }
}

/// Ends a span of `owner` (the object that opened it) in the most recently freed asyncio task that has one. Returns false if no such span is open.
pub(crate) fn exit_freed(owner: Owner, end: End<'_>) -> bool {
    let mut lanes = lanes();
    let freed = lanes.freed.iter_mut().rev();
    if !freed.into_iter().any(|lane| lane.end(owner, end)) {
        return false;
    }
    let (ended, left) = std::mem::take(&mut lanes.freed)
        .into_iter()
        .partition(|lane: &Lane| lane.open.is_empty());
    lanes.freed = left;
    FREED.store(lanes.freed.len(), Ordering::Relaxed);
    drop(lanes);
    drop::<Vec<Lane>>(ended); // after unlocking, because dropping an object may run code
    true
}

/// Returns the track that shows the innermost span of an asyncio task, for writing an event that began at `start_ns`. Returns `None` if the task has no span,
/// or if the event would overlap an earlier span on that track.
pub(crate) fn track_since(task: &Bound<'_, PyAny>, start_ns: u64) -> Option<Track> {
    let lanes = lanes();
    let lane = lanes.by_task.get(&task.as_ptr().addr())?;
    parent(lane)?.track_since(start_ns)
}

/// Adds encoded args to the innermost open span of `owner` in the most recently freed asyncio task that has one. Returns false if no such span is open.
pub(crate) fn add_args_freed(owner: Owner, args: &[u8]) -> bool {
    let mut lanes = lanes();
    let mut freed = lanes.freed.iter_mut().rev();
    freed.any(|lane| lane.add_args(owner, args))
}

/// Adds encoded args to the innermost open span of `owner` in an asyncio task. Returns false if no such span is open.
pub(crate) fn add_args(task: &Bound<'_, PyAny>, owner: Owner, args: &[u8]) -> bool {
    let mut lanes = lanes();
    let lane = lanes.by_task.get_mut(&task.as_ptr().addr());
    lane.is_some_and(|lane| lane.add_args(owner, args))
}

fn lanes() -> MutexGuard<'static, Lanes> {
    LANES.lock().unwrap_or_else(PoisonError::into_inner)
}
