//! A stream: a queue of tasks and the thread that executes them in order.
//!
//! A launch costs a lock and a push. The executor takes everything that is queued at once, and looks for more for a while before it sleeps. So a host that
//! launches steadily makes no system call. A waiting host names the task that it waits for, so the executor wakes it once.

use crate::capture::Capture;
use crate::clock::{SPIN_NS, now_ns};
use crate::config::{Soc, config};
use crate::device::Device;
use crate::graph::{Group, Update};
use crate::handle::Handle;
use crate::mspti::mspti;
use crate::truth::{self, Buffer};
use crate::wait::{lock, nap};
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
    /// The initial value is the public runtime's in a thread that has submitted nothing.
    static LAST_TASK: Cell<(i32, u32)> = const { Cell::new((0xFFFF, 0xFFFF_FFFF)) };
}

/// Returns the stream and the id of the last task that the calling thread submitted.
pub(crate) fn last_task() -> (i32, u32) {
    LAST_TASK.get()
}

/// A task in a stream.
pub(crate) struct Task {
    pub(crate) work: Work,
    /// Counts from 1 in its stream.
    pub(crate) seq: u64,
    /// Time of its submission, and the thread that submitted it.
    pub(crate) launch_ns: u64,
    pub(crate) tid: i32,
    /// MSPTI's number of its launch; 0 if it has none.
    pub(crate) correlation: u64,
}

/// The parts of a context that its streams share.
pub(crate) struct Home {
    pub(crate) context: Handle,
    pub(crate) device: Arc<Device>,
    /// 0, or the error of every call in the context.
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
    /// Set with the queue locked, so that no thread that looks there misses it.
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

    /// Returns the capture that it is part of.
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

    /// Begins an update: launches from now on change a group of a graph.
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

    /// Puts a task into the queue, into the graph that is being captured, or into the one that is being updated. Waits while the queue is full.
    pub(crate) fn submit(self: &Arc<Self>, work: Work) -> Outcome {
        if let Some(capture) = self.capture() {
            let number = capture.add(self.handle, work)?;
            self.submitted_last(number);
            return Ok(());
        }
        if self.updating.load(Ordering::Acquire)
            && let Some(update) = &mut *lock(&self.update)
        {
            let number = update.take(work)?;
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

    /// Notes the last task of the calling thread. Its id counts in the stream, on newer chips in the process.
    #[expect(clippy::cast_possible_truncation, reason = "the vendor's wraps too")]
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

    /// Swaps the queue for the executor's empty batch; waits until there is something. Returns false when the stream is closed.
    fn take(&self, batch: &mut VecDeque<Task>) -> bool {
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

    /// Notes that a task was executed.
    fn finish(&self, seq: u64) {
        self.done.store(seq, Ordering::SeqCst);
        if self.wake_at.load(Ordering::SeqCst) <= seq {
            self.wake_at.store(u64::MAX, Ordering::SeqCst);
            let _queue = lock(&self.queue); // a waiter that has set wake_at is waiting now
            self.progress.notify_all();
        }
    }

    /// Returns true if everything was executed.
    pub(crate) fn is_idle(&self) -> bool {
        self.done.load(Ordering::Acquire) == self.submitted.load(Ordering::Acquire)
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Returns true if the executor goes on: the stream was not taken away, and its device is not lost.
    fn executes(&self) -> bool {
        !self.is_closed() && self.home.device.check().is_ok()
    }

    /// Waits until this many tasks are done. Fails if the device is lost, or with `late` when the time is over.
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
            let nap = nap(began_ns, timeout_ms).ok_or(late)?;
            let woken = self.progress.wait_timeout(queue, nap);
            queue = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for everything that was submitted.
    pub(crate) fn synchronize(&self, timeout_ms: Option<u64>) -> Outcome {
        let count = self.submitted.load(Ordering::Acquire);
        self.wait(count, timeout_ms, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)?;
        self.truth.flush();
        Ok(())
    }

    /// Ends it. Work that is left is dropped, here and by the executor.
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
