//! Callbacks of the host in a stream: run by the stream's own thread, or by a thread of the program that asks for them.

use crate::clock::now_ns;
use crate::wait::{LOOK, lock, nap};
use crate::{Outcome, fail_if};
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
    /// The thread that runs it; `None` for the stream's own.
    pub(crate) queue: Option<Arc<Queue>>,
    /// True if the stream waits until it has returned.
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

/// The thread that takes the callbacks of a stream, if one has subscribed to it.
#[derive(Default)]
pub(crate) struct Subscription(Mutex<Option<Arc<Queue>>>);

impl Subscription {
    /// Makes a callback for the thread that has subscribed.
    pub(crate) fn callback(
        &self,
        function: Function,
        data: usize,
        blocks: bool,
    ) -> Outcome<Callback> {
        let queue = lock(&self.0).clone();
        let queue = queue.ok_or(ACL_ERROR_RT_STREAM_NO_CB_REG)?;
        Ok(Callback {
            function,
            data,
            queue: Some(queue),
            blocks,
        })
    }
}

/// The queues of all threads that have subscribed, by the program's number of the thread.
#[derive(Default)]
pub(crate) struct Reports(Mutex<HashMap<u64, Arc<Queue>>>);

impl Callback {
    /// Makes the call, or hands it to the subscribed thread and waits for that while the stream `executes`.
    pub(crate) fn call(&self, executes: impl Fn() -> bool) {
        let Some(queue) = &self.queue else {
            call(self.function, self.data);
            return;
        };
        let mut waiting = lock(&queue.waiting);
        waiting.calls.push_back((self.function, self.data));
        waiting.queued += 1;
        let number = waiting.queued;
        queue.changed.notify_all();
        while self.blocks && waiting.returned < number && executes() {
            let woken = queue.changed.wait_timeout(waiting, LOOK);
            waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn call(function: Function, data: usize) {
    // SAFETY: the one who submitted the callback vouches for it and its data until it was called.
    unsafe { function(std::ptr::with_exposed_provenance_mut(data)) };
}

impl Reports {
    /// Lets a thread take the callbacks of a stream.
    pub(crate) fn subscribe(&self, thread: u64, stream: &Subscription) -> Outcome {
        let mut subscribed = lock(&stream.0);
        fail_if(subscribed.is_some(), ACL_ERROR_RT_STREAM_SUBSCRIBE)?;
        let mut queues = lock(&self.0);
        *subscribed = Some(Arc::clone(queues.entry(thread).or_default()));
        Ok(())
    }

    pub(crate) fn unsubscribe(&self, thread: u64, stream: &Subscription) -> Outcome {
        let mut queues = lock(&self.0);
        let queue = queues.get(&thread).ok_or(ACL_ERROR_RT_THREAD_SUBSCRIBE)?;
        let mut subscribed = lock(&stream.0);
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
