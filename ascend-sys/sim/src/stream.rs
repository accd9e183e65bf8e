//! A stream: a queue of tasks and the thread that executes them in order.
//!
//! A launch costs a lock and a push. The executor takes the whole queue at once, and polls for more tasks for a while before it sleeps, so that a host that
//! launches steadily makes no system calls. A waiting host sets the number of the task for which it waits, so that the executor wakes it only once.

use crate::capture::Capture;
use crate::clock::{SPIN_NS, now_ns};
use crate::config::{Soc, config};
use crate::device::Device;
use crate::graph::{Group, Update};
use crate::handle::Handle;
use crate::mspti::mspti;
use crate::truth::{self, Buffer};
use crate::wait::{lock, pause};
use crate::work::Work;
use crate::{Outcome, fail_if};
use ascend_sys::codes::*;
use ascend_sys::types::*;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

mod executor;

thread_local! {
    /// The initial value is the one that the public runtime returns in a thread that has submitted nothing.
    static LAST_TASK: Cell<(i32, u32)> = const { Cell::new((0xFFFF, 0xFFFF_FFFF)) };
}

/// Returns the stream and the id of the last task that the calling thread submitted.
pub(crate) fn last_task() -> (i32, u32) {
    LAST_TASK.get()
}

/// A task in a stream.
pub(crate) struct Task {
    pub(crate) work: Work,
    /// Number of the task in its stream, counted from 1.
    pub(crate) seq: u64,
    /// Time of the submission.
    pub(crate) launch_ns: u64,
    /// The thread that submitted the task.
    pub(crate) tid: i32,
    /// MSPTI's correlation id of the launch, or 0 if it has no record.
    pub(crate) correlation: u64,
}

/// The parts of a context that its streams share.
pub(crate) struct Home {
    pub(crate) context: Handle,
    pub(crate) device: Arc<Device>,
    /// 0, or the error that every call in the context returns.
    pub(crate) error: Arc<AtomicI32>,
}

pub(crate) struct Stream {
    pub(crate) handle: Handle,
    pub(crate) id: i32,
    pub(crate) home: Home,
    pub(crate) truth: Arc<Buffer>,
    capture: Mutex<Option<Arc<Capture>>>,
    capturing: AtomicBool,
    update: Mutex<Option<Update>>,
    updating: AtomicBool,
    queue: Mutex<Queue>,
    work: Condvar,
    progress: Condvar,
    /// Set while the queue is locked, so that no waiting thread misses the change.
    closed: AtomicBool,
    submitted: AtomicU64,
    done: AtomicU64,
    /// The executor wakes waiters when it has done this many tasks.
    wake_at: AtomicU64,
}

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Task>,
    started: bool,
    sleeping: bool,
}

impl Stream {
    pub(crate) fn new(handle: Handle, id: i32, home: Home) -> Self {
        Self {
            handle,
            id,
            home,
            truth: truth::buffer(),
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
        }
    }

    /// Returns the capture to which the stream belongs.
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

    /// Begins an update: later launches change a group of a graph.
    pub(crate) fn begin_update(&self, group: Arc<Group>) -> Outcome {
        let mut update = lock(&self.update);
        fail_if(update.is_some(), ACL_ERROR_STREAM_TASK_GROUP_STATUS)?;
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

    /// Adds a task to the queue, to the graph that is being captured, or to the group that is being updated. Waits while the queue is full.
    pub(crate) fn submit(self: &Arc<Self>, work: Work) -> Outcome {
        if let Some(capture) = self.capture() {
            let number = capture.add(self.handle, work)?;
            self.submitted_last(number);
            return Ok(());
        }
        if self.updating.load(Ordering::Acquire)
            && let Some(update) = &mut *lock(&self.update)
        {
            let number = update.replace_next(work)?;
            self.submitted_last(number);
            return Ok(());
        }
        let correlation = mspti().correlate(work.record_kind());
        let (launch_ns, tid) = (now_ns(), truth::tid());
        let depth = config().depth;
        let mut queue = lock(&self.queue);
        loop {
            let submitted = self.submitted.load(Ordering::Relaxed);
            fail_if(self.is_closed(), ACL_ERROR_RT_INVALID_HANDLE)?;
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

    /// Stores the last task of the calling thread. Task ids count per stream, or per process on newer chips.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the vendor's id wraps around too"
    )]
    pub(crate) fn submitted_last(&self, seq: u64) {
        static SUBMITTED: AtomicU32 = AtomicU32::new(0);
        let id = match config().soc {
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

    /// Waits for tasks and swaps the queue with the executor's empty batch. Returns false if the stream is closed.
    fn next_batch(&self, batch: &mut VecDeque<Task>) -> bool {
        let end_ns = now_ns() + SPIN_NS;
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

    /// Marks a task as executed.
    fn finish(&self, seq: u64) {
        self.done.store(seq, Ordering::SeqCst);
        if self.wake_at.load(Ordering::SeqCst) <= seq {
            self.wake_at.store(u64::MAX, Ordering::SeqCst);
            let _queue = lock(&self.queue); // a waiter that has set `wake_at` is now waiting on the condition variable
            self.progress.notify_all();
        }
    }

    /// Returns true if all tasks were executed.
    pub(crate) fn is_idle(&self) -> bool {
        self.done.load(Ordering::Acquire) == self.submitted.load(Ordering::Acquire)
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Returns true if the executor continues: the stream is not closed, and its device is not lost.
    fn executes(&self) -> bool {
        !self.is_closed() && self.home.device.check().is_ok()
    }

    /// Waits until `count` tasks are done. Fails if the device is lost, or with `late` on a timeout.
    fn wait(&self, count: u64, timeout_ms: Option<u64>, late: aclError) -> Outcome {
        let began_ns = now_ns();
        let done = || self.done.load(Ordering::SeqCst) >= count;
        while !done() && now_ns() < began_ns + SPIN_NS {
            std::hint::spin_loop();
        }
        let mut queue = lock(&self.queue);
        loop {
            self.wake_at.fetch_min(count, Ordering::SeqCst);
            if done() {
                return Ok(());
            }
            self.home.device.check()?;
            fail_if(self.is_closed(), ACL_ERROR_RT_STREAM_ABORT)?;
            let pause = pause(began_ns, timeout_ms).ok_or(late)?;
            let woken = self.progress.wait_timeout(queue, pause);
            queue = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for all submitted tasks.
    pub(crate) fn synchronize(&self, timeout_ms: Option<u64>) -> Outcome {
        let count = self.submitted.load(Ordering::Acquire);
        self.wait(count, timeout_ms, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)?;
        self.truth.flush();
        Ok(())
    }

    /// Closes the stream. The remaining work is dropped, here and by the executor.
    pub(crate) fn close(&self) {
        let mut queue = lock(&self.queue);
        self.closed.store(true, Ordering::Relaxed);
        let dropped = std::mem::take(&mut queue.tasks);
        self.work.notify_one();
        self.progress.notify_all();
        drop(queue);
        dropped.iter().for_each(|task| task.work.drop_undone());
        self.truth.flush();
        self.home.device.free_stream_id(self.id);
    }
}
