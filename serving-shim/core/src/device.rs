//! A device: its event pairs, and the launches that have not ended. A separate thread does its work.

use crate::lock::{lock, lock_until};
use crate::pending::Pending;
use crate::pool::Pool;
use crate::resolver::Resolver;
use crate::runtime::thread;
use crate::tally::Fate;
use crate::timing::Timing;
use sa_recorder::host::{self, Thread};
use sa_recorder::now_ns;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

thread_local! {
    /// True while this thread does our work. Hooks that our own calls cause are ignored.
    static AT_WORK: Cell<bool> = const { Cell::new(false) };
}

/// Time that a reset, an exit or the end of a stream waits for launches that are about to end.
const LAST_WAIT_NS: u64 = 50_000_000;
/// Maximum time that the host waits while another thread queries the events. The other thread may hang in a call of the runtime, or wait for a lock that the host's own
/// call holds.
const PATIENCE_NS: u64 = 1_000_000_000;
/// Time between two checks of the open launches: at first, and while none ends.
const SHORT_SLEEP: Duration = Duration::from_micros(200);
const LONG_SLEEP: Duration = Duration::from_millis(2);
/// Sleep of the thread while no launch is open.
const IDLE_SLEEP: Duration = Duration::from_secs(1);
/// ... the same while MSPTI records, whose buffers must be read.
const RECORDS_SLEEP: Duration = Duration::from_millis(100);

/// A device of this process.
#[derive(Debug)]
pub(crate) struct Device {
    timing: &'static Timing,
    pub(crate) pool: Arc<Pool>,
    incoming: Mutex<Vec<Pending>>,
    /// Locked while a thread queries the events.
    resolver: Mutex<Resolver>,
    thread: OnceLock<Option<Thread>>,
    sleeps: AtomicBool,
    ending: AtomicBool,
    ended: AtomicBool,
}

impl Device {
    /// Creates the state of the device to which the program gives the number `user`.
    pub(crate) fn new(timing: &'static Timing, user: i32) -> Device {
        let pool = Arc::new(Pool::new(&timing.runtime, user));
        Device {
            timing,
            incoming: Mutex::default(),
            resolver: Mutex::new(Resolver::new(timing, Arc::clone(&pool))),
            pool,
            thread: OnceLock::new(),
            sleeps: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        }
    }

    /// Adds a launch that has begun, and whose end event is in the stream. The device's thread will find out when it has ended.
    pub(crate) fn push(&'static self, pending: Pending) {
        let start = || host::spawn_quiet("sa-device", move || self.run()).ok();
        if self.thread.get_or_init(start).is_none() {
            self.timing.tally.count(Fate::Refused); // no thread would ever resolve it
            let destroy = || self.pool.destroy(&pending.pair);
            return thread::unnoticed(&self.timing.runtime, destroy);
        }
        if self.timing.tally.begin_launch() {
            lock(&self.incoming).push(pending);
            self.wake();
        }
    }

    /// Ends the sleep of the device's thread, if it has nothing to do.
    pub(crate) fn wake(&self) {
        if self.sleeps.swap(false, Ordering::AcqRel)
            && let Some(Some(thread)) = self.thread.get()
        {
            thread.unpark();
        }
    }

    fn run(&self) {
        AT_WORK.set(true);
        let mut nap = SHORT_SLEEP;
        while !self.ending.load(Ordering::Acquire) {
            self.timing.mspti.tend(&self.timing.runtime);
            let mut resolver = lock(&self.resolver);
            let done = self.poll(&mut resolver, false);
            resolver.write_records();
            let is_idle = resolver.is_idle();
            drop(resolver);
            let longer = (nap * 2).min(LONG_SLEEP);
            nap = if done == 0 { longer } else { SHORT_SLEEP };
            // Not if a launch has just ended: more may come at once, and each would have to wake the thread.
            if is_idle && done == 0 && !self.timing.gate.is_closed() {
                self.sleep(match self.timing.mspti.is_running() {
                    true => RECORDS_SLEEP,
                    false => IDLE_SLEEP,
                });
            } else {
                host::park_timeout(nap);
            }
        }
        let mut resolver = lock(&self.resolver);
        self.finish(&mut resolver, false);
        resolver.give_up();
        self.timing.mspti.read_last();
        resolver.write_records();
        drop(resolver);
        self.ended.store(true, Ordering::Release);
    }

    /// Makes the device's thread sleep until there is a launch, for at most the time `most`.
    fn sleep(&self, most: Duration) {
        self.sleeps.store(true, Ordering::Release);
        if lock(&self.incoming).is_empty() {
            host::park_timeout(most);
        }
        self.sleeps.store(false, Ordering::Release);
    }

    /// Checks once which open launches (those without device times) have ended, and writes their slices. Returns how many have ended. `is_host` is true on
    /// threads other than the device's own.
    fn poll(&self, resolver: &mut Resolver, is_host: bool) -> usize {
        let Timing { runtime, gate, .. } = self.timing;
        resolver.add(std::mem::take(&mut *lock(&self.incoming)));
        if gate.is_closed() {
            gate.query_again(runtime, None);
            resolver.forget_context();
        }
        if self.pool.is_lost() {
            resolver.give_up();
            self.pool.forget();
            return 0;
        }
        if gate.is_closed() {
            return 0;
        }
        resolver.poll(is_host)
    }

    /// Checks the open launches (those without device times) until all have ended, for at most 50 ms.
    fn finish(&self, resolver: &mut Resolver, is_host: bool) {
        let end = now_ns() + LAST_WAIT_NS;
        loop {
            self.poll(resolver, is_host);
            if resolver.is_idle() || now_ns() > end {
                return resolver.write_clock();
            }
            host::sleep(SHORT_SLEEP);
        }
    }

    /// Makes the device's thread check the open launches a last time and end. The process ends, and the runtime must not be called after it has shut down.
    pub(crate) fn end(&self) {
        self.ending.store(true, Ordering::Release);
        if let Some(Some(thread)) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Waits until the device's thread has ended, at most until the time `end_ns`.
    pub(crate) fn await_end(&self, end_ns: u64) {
        let has_thread = matches!(self.thread.get(), Some(Some(_)));
        while has_thread && !self.ended.load(Ordering::Acquire) && now_ns() < end_ns {
            host::sleep(SHORT_SLEEP);
        }
    }

    /// Removes our events and streams from the device, before the device is reset by the calling thread or with the runtime as a whole.
    pub(crate) fn close(&self) {
        let closed = self.work_here(|resolver| {
            self.finish(resolver, true);
            resolver.drop_all();
            self.pool.reset();
        });
        if !closed {
            self.pool.lose(); // the events are destroyed with the device, so they must not be queried any more
        }
    }

    /// Drops the open launches for which `is_affected` returns true, because their stream or context is about to be destroyed. If another thread hangs, they
    /// are counted as lost later.
    pub(crate) fn drop_where(&self, is_affected: impl Fn(&Pending) -> bool) {
        self.work_here(|resolver| {
            if resolver.has(&is_affected) || lock(&self.incoming).iter().any(&is_affected) {
                self.poll(resolver, true);
                resolver.drop_where(&is_affected);
            }
        });
    }

    /// Runs `work` on the calling thread instead of the device's thread, and restores the calling thread's context. Does nothing in a hook that one of our own calls
    /// causes. Returns false if another thread hangs in the device's work.
    fn work_here(&self, work: impl FnOnce(&mut Resolver)) -> bool {
        if AT_WORK.replace(true) {
            return true;
        }
        let resolver = lock_until(&self.resolver, now_ns() + PATIENCE_NS);
        let is_free = resolver.is_some();
        if let Some(mut resolver) = resolver {
            let runtime = &self.timing.runtime;
            thread::unnoticed(runtime, || {
                let context = runtime.context();
                resolver.forget_context();
                work(&mut resolver);
                resolver.forget_context();
                drop(resolver);
                if let Ok(context) = context {
                    let _ = runtime.enter(context); // the thread's own context
                }
            });
        }
        AT_WORK.set(false);
        is_free
    }

    /// Waits until all earlier launches on this device have their slices, for at most `patience`. Returns true if they have.
    pub(crate) fn flush(&self, patience: Duration) -> bool {
        let end = now_ns().saturating_add(u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX));
        loop {
            let resolver = lock_until(&self.resolver, end);
            let is_idle = lock(&self.incoming).is_empty()
                && resolver.is_some_and(|resolver| resolver.is_idle());
            if is_idle || self.thread.get().is_none() {
                return true;
            }
            if now_ns() > end {
                return false;
            }
            host::sleep(SHORT_SLEEP);
        }
    }

    /// Waits until the device's thread makes no calls of the runtime, because a capture begins.
    pub(crate) fn quiesce(&self) {
        let _ = lock_until(&self.resolver, now_ns() + LAST_WAIT_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// Checks that a call returns although another thread hangs in the runtime and holds the device's events.
    fn returns_while_another_thread_hangs(call: impl FnOnce(&Device) + Send + 'static) {
        let timing = Box::leak(Box::new(Timing::default()));
        let device: &'static Device = Box::leak(Box::new(Device::new(timing, 0)));
        let (hangs, is_hanging) = channel();
        std::thread::spawn(move || {
            let _held = lock(&device.resolver);
            hangs.send(()).unwrap();
            loop {
                std::thread::park();
            }
        });
        is_hanging.recv().unwrap();
        let (returns, returned) = channel();
        std::thread::spawn(move || {
            call(device);
            returns.send(()).unwrap();
        });
        let patience = Duration::from_secs(30);
        assert!(returned.recv_timeout(patience).is_ok(), "it waits for ever");
    }

    #[test]
    fn issue_19_nothing_waits_for_a_thread_that_hangs() {
        returns_while_another_thread_hangs(|device| device.drop_where(|_| true));
        returns_while_another_thread_hangs(|device| {
            device.close();
            assert!(device.pool.is_closed(), "its events may be gone");
        });
        returns_while_another_thread_hangs(|device| {
            let _ = device.thread.set(None);
            assert!(!device.flush(Duration::from_millis(20)));
        });
    }
}
