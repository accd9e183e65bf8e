//! Callbacks of the host in a stream: run by the stream's own thread, or by a thread of the program that asks for them.

use crate::Outcome;
use crate::clock::now_ns;
use crate::device::{LOOK, lock};
use crate::runtime::runtime;
use crate::stream::{Stream, nap};
use ascend_sys::codes::*;
use std::collections::{HashMap, VecDeque};
use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

type Function = unsafe extern "C" fn(*mut c_void);

/// A call that a stream makes when it comes to it.
#[derive(Clone)]
pub(crate) struct Callback {
    pub(crate) function: Function,
    /// An address of the program's.
    pub(crate) data: usize,
    /// The thread that runs it; none: the stream's own.
    pub(crate) queue: Option<Arc<Queue>>,
    /// The stream goes on when it has returned.
    pub(crate) blocks: bool,
}

/// The callbacks that wait for one thread of the program.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    calls: VecDeque<(Function, usize)>,
    queued: u64,
    returned: u64,
}

/// The queues of all threads that subscribed, by the number the program calls them.
#[derive(Default)]
pub(crate) struct Reports(Mutex<HashMap<u64, Arc<Queue>>>);

impl Callback {
    /// Makes the call, or has it made.
    pub(crate) fn call(&self, stream: &Stream) {
        let Some(queue) = &self.queue else {
            call(self.function, self.data);
            return;
        };
        let mut waiting = lock(&queue.waiting);
        waiting.calls.push_back((self.function, self.data));
        waiting.queued += 1;
        let number = waiting.queued;
        queue.changed.notify_all();
        while self.blocks && waiting.returned < number && stream.executes() {
            let woken = queue.changed.wait_timeout(waiting, LOOK);
            waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn call(function: Function, data: usize) {
    // SAFETY: who submitted the callback vouches for it and its data until it was called.
    unsafe { function(std::ptr::with_exposed_provenance_mut(data)) };
}

impl Reports {
    /// A thread takes the callbacks of a stream.
    pub(crate) fn subscribe(&self, thread: u64, stream: &Stream) -> Outcome {
        let mut subscribed = lock(&stream.reports);
        if subscribed.is_some() {
            return Err(ACL_ERROR_RT_STREAM_SUBSCRIBE);
        }
        let mut queues = lock(&self.0);
        *subscribed = Some(Arc::clone(queues.entry(thread).or_default()));
        Ok(())
    }

    pub(crate) fn unsubscribe(&self, thread: u64, stream: &Stream) -> Outcome {
        let mut queues = lock(&self.0);
        let queue = queues.get(&thread).ok_or(ACL_ERROR_RT_THREAD_SUBSCRIBE)?;
        let mut subscribed = lock(&stream.reports);
        let own = subscribed.take_if(|own| Arc::ptr_eq(own, queue));
        own.ok_or(ACL_ERROR_RT_STREAM_SUBSCRIBE)?;
        if Arc::strong_count(queue) == 1 {
            queues.remove(&thread);
        }
        Ok(())
    }

    /// Runs the calling thread's next callback; waits for one.
    pub(crate) fn process(&self, timeout_ms: Option<u64>) -> Outcome {
        // SAFETY: takes nothing and cannot fail.
        let thread = unsafe { libc::pthread_self() };
        let queue = lock(&self.0).get(&thread).cloned();
        let queue = queue.ok_or(ACL_ERROR_RT_THREAD_SUBSCRIBE)?;
        let began_ns = now_ns();
        let mut waiting = lock(&queue.waiting);
        let (function, data) = loop {
            if let Some(next) = waiting.calls.pop_front() {
                break next;
            }
            let nap = nap(began_ns, timeout_ms).ok_or(ACL_ERROR_RT_REPORT_TIMEOUT)?;
            let woken = queue.changed.wait_timeout(waiting, nap);
            waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
        };
        drop(waiting);
        call(function, data);
        lock(&queue.waiting).returned += 1;
        queue.changed.notify_all();
        Ok(())
    }
}

/// The callback of `aclrtLaunchCallback` for a stream that a thread has subscribed to.
pub(crate) fn subscribed(
    stream: &Stream,
    function: Function,
    data: usize,
    blocks: bool,
) -> Outcome<Callback> {
    let queue = lock(&stream.reports).clone();
    let queue = queue.ok_or(ACL_ERROR_RT_STREAM_NO_CB_REG)?;
    Ok(Callback {
        function,
        data,
        queue: Some(queue),
        blocks,
    })
}

/// The queues of the process.
pub(crate) fn reports() -> &'static Reports {
    &runtime().reports
}
