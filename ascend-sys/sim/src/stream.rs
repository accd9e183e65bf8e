//! A stream: a queue of tasks and the thread that executes them in order.
//!
//! A launch costs a lock and a push. The executor takes all that is queued at once, and looks for more for a while before it sleeps. So a host that
//! launches steadily makes no system call. A host that waits says for which task, so the executor wakes it once.

use crate::Outcome;
use crate::capture::Capture;
use crate::clock::now_ns;
use crate::config::Soc;
use crate::context::Context;
use crate::device::{Device, LOOK, lock};
use crate::executor;
use crate::graph::{Group, Update};
use crate::handle::Handle;
use crate::report::Queue as ReportQueue;
use crate::runtime::runtime;
use crate::truth::{self, Buffer};
use crate::work::Work;
use ascend_sys::codes::*;
use ascend_sys::types::*;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

thread_local! {
    /// As the public runtime has it in a thread that has submitted nothing.
    static LAST_TASK: Cell<(i32, u32)> = const { Cell::new((0xFFFF, 0xFFFF_FFFF)) };
}

/// The stream and the id of the last task that the calling thread submitted.
pub(crate) fn last_task() -> (i32, u32) {
    LAST_TASK.get()
}

/// A task in a stream.
pub(crate) struct Task {
    pub(crate) work: Work,
    /// Counts from 1 in its stream.
    pub(crate) seq: u64,
    /// When the host submitted it, and which thread.
    pub(crate) launch_ns: u64,
    pub(crate) tid: i32,
    /// What MSPTI knows its launch by; 0 if it does not.
    pub(crate) correlation: u64,
}

pub(crate) struct Stream {
    pub(crate) handle: Handle,
    pub(crate) id: i32,
    pub(crate) context: Handle,
    pub(crate) device: Arc<Device>,
    /// Belongs to a graph, and only stands for its tasks.
    pub(crate) of_model: bool,
    pub(crate) truth: Arc<Buffer>,
    /// Who takes its callbacks.
    pub(crate) reports: Mutex<Option<Arc<ReportQueue>>>,
    capture: Mutex<Option<Arc<Capture>>>,
    capturing: AtomicBool,
    update: Mutex<Option<Update>>,
    updating: AtomicBool,
    queue: Mutex<Queue>,
    work: Condvar,
    progress: Condvar,
    /// Set with the queue locked, so that nobody who looks there misses it.
    closed: AtomicBool,
    submitted: AtomicU64,
    done: AtomicU64,
    /// The executor wakes waiters when it has done this many.
    wake_at: AtomicU64,
}

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Task>,
    started: bool,
    sleeping: bool,
}

impl Stream {
    pub(crate) fn new(context: &Context, of_model: bool) -> Outcome<Arc<Self>> {
        let id = context.device.take_stream_id()?;
        Ok(runtime().streams.add(|handle| {
            Arc::new(Self {
                handle,
                id,
                context: context.handle,
                device: Arc::clone(&context.device),
                of_model,
                truth: truth::buffer(),
                reports: Mutex::default(),
                capture: Mutex::default(),
                capturing: AtomicBool::new(false),
                update: Mutex::default(),
                updating: AtomicBool::new(false),
                queue: Mutex::default(),
                work: Condvar::new(),
                progress: Condvar::new(),
                closed: AtomicBool::new(false),
                submitted: AtomicU64::new(0),
                done: AtomicU64::new(0),
                wake_at: AtomicU64::new(u64::MAX),
            })
        }))
    }

    /// Tells who wants to know that it was made. Who is told may call the runtime again, so no lock may be held.
    pub(crate) fn announce(&self) {
        let state = ACL_RT_STREAM_STATE_CREATE_POST;
        runtime().listeners.stream(self.handle, state);
    }

    /// Tells who wants to know that it will be taken away, while it still answers; as with `announce`, no lock may be held.
    pub(crate) fn announce_end(&self) {
        let state = ACL_RT_STREAM_STATE_DESTROY_PRE;
        runtime().listeners.stream(self.handle, state);
    }

    /// The capture it is part of.
    pub(crate) fn capture(&self) -> Option<Arc<Capture>> {
        if !self.capturing.load(Ordering::Acquire) {
            return None;
        }
        lock(&self.capture).clone()
    }

    pub(crate) fn set_capture(&self, capture: Option<Arc<Capture>>) {
        let mut own = lock(&self.capture);
        self.capturing.store(capture.is_some(), Ordering::Release);
        *own = capture;
    }

    /// What is submitted from now on changes a group of a graph.
    pub(crate) fn begin_update(&self, group: Arc<Group>) -> Outcome {
        let mut update = lock(&self.update);
        if update.is_some() {
            return Err(ACL_ERROR_STREAM_TASK_GROUP_STATUS);
        }
        *update = Some(Update::begin(group)?);
        self.updating.store(true, Ordering::Release);
        Ok(())
    }

    pub(crate) fn end_update(&self) -> Outcome {
        let mut update = lock(&self.update);
        self.updating.store(false, Ordering::Release);
        let ended = update.take();
        ended.ok_or(ACL_ERROR_STREAM_TASK_GROUP_STATUS)?.end()
    }

    /// Puts a task into the queue, into the graph that is being captured, or into the one that is being updated. Waits while the queue is full.
    pub(crate) fn submit(self: &Arc<Self>, work: Work) -> Outcome {
        if let Some(capture) = self.capture() {
            return capture.add(self, work);
        }
        if self.of_model {
            return Err(ACL_ERROR_RT_STREAM_MODEL);
        }
        if self.updating.load(Ordering::Acquire)
            && let Some(update) = &mut *lock(&self.update)
        {
            let number = update.take(work)?;
            self.submitted_last(number);
            return Ok(());
        }
        let correlation = runtime().mspti.correlate(work.record_kind());
        let (launch_ns, tid) = (now_ns(), truth::tid());
        let depth = runtime().config.depth;
        let mut queue = lock(&self.queue);
        loop {
            let submitted = self.submitted.load(Ordering::Relaxed);
            if self.is_closed() {
                return Err(ACL_ERROR_RT_INVALID_HANDLE);
            }
            if submitted - self.done.load(Ordering::Relaxed) < depth {
                let seq = submitted + 1;
                self.push(
                    &mut queue,
                    Task {
                        work,
                        seq,
                        launch_ns,
                        tid,
                        correlation,
                    },
                )?;
                self.submitted_last(seq);
                return Ok(());
            }
            drop(queue);
            self.wait(
                submitted - depth * 3 / 4,
                None,
                ACL_ERROR_RT_STREAM_TASK_FULL,
            )?;
            queue = lock(&self.queue);
        }
    }

    /// The calling thread has submitted this task of the stream: its id counts in the stream, on newer chips in the process.
    #[expect(clippy::cast_possible_truncation, reason = "the vendor's wraps too")]
    pub(crate) fn submitted_last(&self, seq: u64) {
        static SUBMITTED: AtomicU32 = AtomicU32::new(0);
        let id = match runtime().config.soc {
            Soc::A2 => seq as u32,
            Soc::A5 => SUBMITTED.fetch_add(1, Ordering::Relaxed) + 1,
        };
        LAST_TASK.set((self.id, id));
    }

    fn push(self: &Arc<Self>, queue: &mut Queue, task: Task) -> Outcome {
        if !queue.started {
            let stream = Arc::clone(self);
            let thread = thread::Builder::new().name(format!("sim-stream-{}", self.id));
            let started = thread.spawn(move || executor::run(&stream));
            started.map_err(|_| ACL_ERROR_RT_RESOURCE_ALLOC_FAIL)?;
            queue.started = true;
        }
        self.submitted.store(task.seq, Ordering::Release);
        queue.tasks.push_back(task);
        if queue.sleeping {
            queue.sleeping = false;
            self.work.notify_one();
        }
        Ok(())
    }

    /// Swaps all that is queued for the executor's empty batch; waits for something to be there. False when the stream is closed.
    pub(crate) fn take(&self, batch: &mut VecDeque<Task>) -> bool {
        let spin_ns = runtime().config.spin_ns;
        let end_ns = now_ns() + spin_ns;
        let idle = || self.submitted.load(Ordering::Acquire) == self.done.load(Ordering::Relaxed);
        while idle() && now_ns() < end_ns {
            std::hint::spin_loop();
        }
        if idle() {
            self.truth.flush();
        }
        let mut queue = lock(&self.queue);
        while queue.tasks.is_empty() {
            if self.is_closed() {
                return false;
            }
            queue.sleeping = true;
            let woken = self.work.wait(queue);
            queue = woken.unwrap_or_else(PoisonError::into_inner);
        }
        queue.sleeping = false;
        std::mem::swap(&mut queue.tasks, batch);
        true
    }

    /// Says that a task was executed.
    pub(crate) fn finish(&self, seq: u64) {
        self.done.store(seq, Ordering::SeqCst);
        if self.wake_at.load(Ordering::SeqCst) <= seq {
            self.wake_at.store(u64::MAX, Ordering::SeqCst);
            let _queue = lock(&self.queue); // a waiter that has set wake_at is waiting now
            self.progress.notify_all();
        }
    }

    /// Whether all was executed.
    pub(crate) fn is_idle(&self) -> bool {
        self.done.load(Ordering::Acquire) == self.submitted.load(Ordering::Acquire)
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Whether the executor goes on: neither was the stream taken away, nor is its device lost.
    pub(crate) fn executes(&self) -> bool {
        !self.is_closed() && self.device.check().is_ok()
    }

    /// Waits until this many tasks are done, the device is lost, or the time is over, which is error `late`.
    fn wait(&self, count: u64, timeout_ms: Option<u64>, late: aclError) -> Outcome {
        let began_ns = now_ns();
        let spin_ns = runtime().config.spin_ns;
        let done = || self.done.load(Ordering::SeqCst) >= count;
        while !done() && now_ns() < began_ns + spin_ns {
            std::hint::spin_loop();
        }
        let mut queue = lock(&self.queue);
        loop {
            self.wake_at.fetch_min(count, Ordering::SeqCst);
            if done() {
                return Ok(());
            }
            self.device.check()?;
            if self.is_closed() {
                return Err(ACL_ERROR_RT_STREAM_ABORT);
            }
            let nap = nap(began_ns, timeout_ms).ok_or(late)?;
            let woken = self.progress.wait_timeout(queue, nap);
            queue = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for all that was submitted.
    pub(crate) fn synchronize(&self, timeout_ms: Option<u64>) -> Outcome {
        let count = self.submitted.load(Ordering::Acquire);
        self.wait(count, timeout_ms, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)?;
        self.truth.flush();
        Ok(())
    }

    /// Takes it away; work that is left is dropped, here and by the executor.
    pub(crate) fn destroy(&self) {
        if runtime().streams.remove(self.handle).is_none() {
            return;
        }
        let mut queue = lock(&self.queue);
        self.closed.store(true, Ordering::Relaxed);
        let dropped = std::mem::take(&mut queue.tasks);
        self.work.notify_one();
        self.progress.notify_all();
        drop(queue);
        dropped.iter().for_each(|task| task.work.drop_undone());
        if let Some(capture) = self.capture() {
            capture.leave(self);
        }
        self.truth.flush();
        self.device.free_stream_id(self.id);
    }
}

/// How long to wait before looking again, if the time is not over.
pub(crate) fn nap(began_ns: u64, timeout_ms: Option<u64>) -> Option<Duration> {
    let Some(timeout_ms) = timeout_ms else {
        return Some(LOOK);
    };
    let end_ns = began_ns.saturating_add(timeout_ms.saturating_mul(1_000_000));
    let left = end_ns.checked_sub(now_ns()).filter(|left| *left > 0)?;
    Some(LOOK.min(Duration::from_nanos(left)))
}
