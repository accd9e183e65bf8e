//! The thread of a stream: executes its tasks in order, takes their time, and records when they really ran.

use super::{Stream, Task};
use crate::clock::{now_ns, sleep_exactly, wait_until};
use crate::config::config;
use crate::faults::Site;
use crate::mspti::{Ran, mspti};
use crate::truth::{Entry, truth};
use crate::work::{Replay, Work};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Time that a collective takes.
const COLLECTIVE_NS: u64 = 30_000;

/// Executes tasks until the stream is closed.
pub(super) fn run(stream: &Arc<Stream>) {
    sleep_exactly();
    let mut batch = VecDeque::new();
    while stream.take(&mut batch) {
        for task in batch.drain(..) {
            if !(stream.executes() && execute(stream, &task)) {
                task.work.drop_undone();
            }
            // A task that a lost device does not execute stays undone for threads that wait for the stream.
            if stream.home.device.check().is_ok() {
                stream.finish(task.seq);
            }
        }
    }
}

/// Executes a task. Returns false if the device is lost at this task.
fn execute(stream: &Stream, task: &Task) -> bool {
    if let Some(code) = config().faults.value(Site::DeviceLost) {
        stream.home.device.lose(code);
        return false;
    }
    execute_work(stream, task, &task.work, task.correlation, None);
    true
}

/// Work that is done.
struct Done<'a> {
    work: &'a Work,
    /// MSPTI's number of it; 0 if it has no record.
    correlation: u64,
    /// The graph that it is a part of, and its stream there.
    graph: Option<(u32, i32)>,
    start_ns: u64,
    end_ns: u64,
}

/// Executes work of a task, which may be in a graph's own stream, and records when it ran.
fn execute_work(
    stream: &Stream,
    task: &Task,
    work: &Work,
    correlation: u64,
    graph: Option<(u32, i32)>,
) {
    let start_ns = now_ns();
    let end_ns = perform(stream, work, start_ns, task);
    let done = Done {
        work,
        correlation,
        graph,
        start_ns,
        end_ns,
    };
    record(stream, task, &done);
    log(stream, &done);
    complete(stream, work, end_ns);
}

/// Takes the time of the work, and returns when it was over.
fn perform(stream: &Stream, work: &Work, start_ns: u64, task: &Task) -> u64 {
    let after = |duration_ns: u64| match duration_ns {
        0 => now_ns(),
        _ => wait_until(start_ns + duration_ns),
    };
    match work {
        Work::Kernel { function, effect } => {
            effect.iter().for_each(|effect| effect.apply());
            match function.draw_ns() {
                0 if effect.is_none() => start_ns,
                duration_ns => after(duration_ns),
            }
        }
        Work::Copy { effect, .. } => {
            effect.apply();
            after(effect.copy_ns())
        }
        Work::Collective { effect, .. } => {
            effect.iter().for_each(|effect| effect.apply());
            after(COLLECTIVE_NS)
        }
        Work::Wait { event, record } => {
            event.wait_on_device(*record, || stream.executes());
            now_ns()
        }
        Work::Callback(callback) => {
            callback.call();
            now_ns()
        }
        Work::Replay(replay) => run_graph(stream, replay, task),
        Work::Record { .. } | Work::Reset { .. } | Work::Ordered { .. } | Work::Mark { .. } => {
            start_ns
        }
    }
}

/// Publishes the outcome of the work. Others may see it only once the truth is written.
fn complete(stream: &Stream, work: &Work, end_ns: u64) {
    match work {
        Work::Kernel { .. } => {
            if let Some(code) = config().faults.value(Site::Kernel) {
                stream.home.error.store(code, Ordering::Relaxed);
            }
        }
        Work::Record { event, record } => {
            event.complete(*record, stream.home.device.clock.ticks(end_ns));
        }
        Work::Reset { event, covers } => event.reset(*covers),
        _ => {}
    }
}

/// Runs the graph's tasks one after another. Returns when the last one was over.
fn run_graph(stream: &Stream, replay: &Replay, task: &Task) -> u64 {
    for captured in replay.tasks.iter() {
        let own = replay.streams.get(captured.part);
        let graph = (replay.model, own.copied().unwrap_or(stream.id));
        let (work, correlation) = (&captured.work, captured.correlation);
        execute_work(stream, task, work, correlation, Some(graph));
    }
    now_ns()
}

/// Logs a kernel or a collective of the device, for MSPTI.
fn log(stream: &Stream, done: &Done<'_>) {
    let (name, comm) = match done.work {
        Work::Kernel { function, .. } => (function.name.as_str(), None),
        Work::Collective { name, comm, .. } => (*name, Some(Arc::clone(comm))),
        _ => return,
    };
    if done.correlation != 0 {
        let device = &stream.home.device;
        mspti().ran(Ran {
            device: Arc::clone(device),
            stream: done.graph.map_or(stream.id, |(_, own)| own),
            correlation: done.correlation,
            name: name.to_owned(),
            comm,
            ticks: (
                device.clock.ticks(done.start_ns),
                device.clock.ticks(done.end_ns),
            ),
        });
    }
}

/// Writes a line of the truth.
fn record(stream: &Stream, task: &Task, done: &Done<'_>) {
    if truth().is_none() {
        return;
    }
    let (kind, name) = done.work.names();
    let device = &stream.home.device;
    let clock = &device.clock;
    stream.truth.push(&Entry {
        device: device.user,
        stream: stream.id,
        kind,
        name,
        seq: task.seq,
        tid: task.tid,
        launch_ns: task.launch_ns,
        start_ns: done.start_ns,
        end_ns: done.end_ns,
        start_ticks: clock.ticks(done.start_ns),
        end_ticks: clock.ticks(done.end_ns),
        correlation: done.correlation,
        graph: done.graph.map(|(graph, _)| graph),
        graph_stream: done.graph.map(|(_, stream)| stream),
    });
}
