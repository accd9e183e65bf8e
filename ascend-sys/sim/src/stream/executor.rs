//! The thread of a stream, which executes its tasks in order, spends their durations, and records when they really ran.

use super::{Stream, Task};
use crate::clock::{now_ns, sleep_exactly, wait_until};
use crate::config::config;
use crate::faults::Site;
use crate::mspti::{LogEntry, mspti};
use crate::truth::{Entry, truth};
use crate::work::{Replay, Work};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Duration of a collective.
const COLLECTIVE_NS: u64 = 30_000;

/// Executes tasks until the stream is closed.
pub(super) fn run(stream: &Arc<Stream>) {
    sleep_exactly();
    let mut batch = VecDeque::new();
    while stream.next_batch(&mut batch) {
        for task in batch.drain(..) {
            if !(stream.executes() && execute(stream, &task)) {
                task.work.drop_undone();
            }
            // A task that a lost device does not execute is not marked as executed, so threads that wait for the stream get the error.
            if stream.home.device.check().is_ok() {
                stream.finish(task.seq);
            }
        }
    }
}

/// Executes a task. Returns false if the device is lost with this task.
fn execute(stream: &Stream, task: &Task) -> bool {
    if let Some(code) = config().faults.value(Site::DeviceLost) {
        stream.home.device.lose(code);
        return false;
    }
    execute_work(stream, task, &task.work, task.correlation, None);
    true
}

/// Finished work.
struct Done<'a> {
    work: &'a Work,
    /// MSPTI's correlation id, or 0 if the work has no record.
    correlation: u64,
    /// The id of the graph to which the work belongs, and its stream in the graph.
    graph: Option<(u32, i32)>,
    start_ns: u64,
    end_ns: u64,
}

/// Executes the work of a task or of a task in a graph, and records when it ran.
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

/// Does the work, spends its duration, and returns its end time.
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

/// Publishes the outcome of the work. Other threads may see it only after the truth is recorded.
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

/// Runs the graph's tasks one after another, and returns the end time of the last one.
fn run_graph(stream: &Stream, replay: &Replay, task: &Task) -> u64 {
    for captured in replay.tasks.iter() {
        let own = replay.streams.get(captured.part);
        let graph = (replay.model, own.copied().unwrap_or(stream.id));
        let (work, correlation) = (&captured.work, captured.correlation);
        execute_work(stream, task, work, correlation, Some(graph));
    }
    now_ns()
}

/// Logs a kernel or a collective for MSPTI.
fn log(stream: &Stream, done: &Done<'_>) {
    let (name, comm) = match done.work {
        Work::Kernel { function, .. } => (function.name.as_str(), None),
        Work::Collective { name, comm, .. } => (*name, Some(Arc::clone(comm))),
        _ => return,
    };
    if done.correlation != 0 {
        let device = &stream.home.device;
        mspti().log(LogEntry {
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

/// Adds a line to the truth.
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
