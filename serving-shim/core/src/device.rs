//! A device as the launching threads see it: pairs, what is under way, whether it can still be used. Its work is done by one thread of its own.

use crate::counts::count;
use crate::pending::Pending;
use crate::pool::Pool;
use crate::resolver::Resolver;
use crate::runtime::{Code, Context, DeviceRuntime, Stream, thread};
use crate::shim::{Shim, tell};
use sa_recorder::host::{self, Thread};
use sa_recorder::{Args, now_ns};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Duration;

const OPEN: u8 = 0;
/// It was reset; it may be set again.
const RESET: u8 = 1;
/// A call failed after which none can succeed.
const LOST: u8 = 2;

thread_local! {
    /// Whether this thread is at our work: what we do ourselves needs no telling.
    static AT_WORK: Cell<bool> = const { Cell::new(false) };
}

/// How long a reset, an exit or the end of a stream waits for launches that are about to end.
const LAST_WAIT_NS: u64 = 50_000_000;
/// How long the host waits for whoever looks at the events. That may be in a call of the runtime, which hangs, or waits for what the host's own call holds.
const PATIENCE_NS: u64 = 1_000_000_000;
/// Between two looks at what is under way: at first, and while nothing ends.
const SHORT_SLEEP: Duration = Duration::from_micros(200);
/// Looks at a lock that others have, before it is slept between two.
const QUICK_LOOKS: u32 = 50;
const LONG_SLEEP: Duration = Duration::from_millis(2);
const IDLE_SLEEP: Duration = Duration::from_secs(1);
/// The same while records of kernels are waited for.
const KERNEL_SLEEP: Duration = Duration::from_millis(20);

/// A device of this process.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) pool: Pool,
    user: i32,
    state: AtomicU8,
    incoming: Mutex<Vec<Pending>>,
    /// Held by whoever looks at the events.
    resolver: Mutex<Resolver>,
    thread: OnceLock<Option<Thread>>,
    sleeps: AtomicBool,
    ending: AtomicBool,
    ended: AtomicBool,
}

impl Device {
    pub(crate) fn new(runtime: &'static dyn DeviceRuntime, user: i32) -> Device {
        Device {
            pool: Pool::default(),
            user,
            state: AtomicU8::new(OPEN),
            incoming: Mutex::default(),
            resolver: Mutex::new(Resolver::new(runtime, user)),
            thread: OnceLock::new(),
            sleeps: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        }
    }

    /// Whether the program counts it as `user`.
    pub(crate) fn is(&self, user: i32) -> bool {
        self.user == user
    }

    /// Whether nothing can be timed on it. A device that was reset opens again with the next launch, which had to set it first.
    pub(crate) fn is_closed(&self) -> bool {
        match self.state.load(Ordering::Acquire) {
            OPEN => false,
            RESET => {
                self.state.store(OPEN, Ordering::Release);
                false
            }
            _ => true,
        }
    }

    /// Takes over a launch whose end is in the stream.
    pub(crate) fn push(&'static self, shim: &'static Shim, pending: Pending) {
        let start = || host::spawn_quiet("sa-device", move || self.run(shim)).ok();
        if self.thread.get_or_init(start).is_none() {
            count(&shim.counts.refused); // nobody would ever look at it
            let runtime = shim.runtime();
            return thread::unnoticed(runtime, || self.pool.destroy(&pending.pair, runtime));
        }
        let records = pending.launched.records();
        shim.records.begin(records, &shim.kernel_counts.missing);
        if shim.under_way.begin(1, &shim.counts.unresolved) {
            lock(&self.incoming).push(pending);
            self.wake();
        }
    }

    /// Ends the thread's sleep, if it has nothing to do.
    pub(crate) fn wake(&self) {
        if self.sleeps.swap(false, Ordering::AcqRel)
            && let Some(Some(thread)) = self.thread.get()
        {
            thread.unpark();
        }
    }

    /// A call of the runtime failed.
    pub(crate) fn noticed(&self, shim: &Shim, code: Code) {
        if shim.runtime().is_lost(code) && self.state.swap(LOST, Ordering::AcqRel) != LOST {
            let name = shim.runtime().code_name(code).unwrap_or("unknown");
            let args = Args::new().with("device", self.user).with("code", code);
            tell("device_lost", &args.with("error", name));
        }
    }

    fn run(&'static self, shim: &'static Shim) {
        AT_WORK.set(true);
        let mut nap = SHORT_SLEEP;
        while !self.ending.load(Ordering::Acquire) {
            shim.tend_mspti();
            let mut resolver = lock(&self.resolver);
            let done = self.pass(shim, &mut resolver, false);
            resolver.look_for_kernels(shim, false);
            let (is_idle, waits) = (resolver.is_idle(), resolver.waits_for_kernels());
            drop(resolver);
            nap = match done {
                0 => (nap * 2).min(LONG_SLEEP),
                _ => SHORT_SLEEP,
            };
            // Not where something has just ended: more may come at once, and each would have to wake it.
            if is_idle && done == 0 && !shim.gate.is_closed() {
                self.sleep(if waits { KERNEL_SLEEP } else { IDLE_SLEEP });
            } else {
                host::park_timeout(nap);
            }
        }
        let mut resolver = lock(&self.resolver);
        self.finish(shim, &mut resolver, false);
        resolver.give_up(shim);
        shim.mspti.read_last();
        resolver.look_for_kernels(shim, true);
        drop(resolver);
        self.ended.store(true, Ordering::Release);
    }

    /// Sleeps until there is a launch, this long at most.
    fn sleep(&self, most: Duration) {
        self.sleeps.store(true, Ordering::Release);
        if lock(&self.incoming).is_empty() {
            host::park_timeout(most);
        }
        self.sleeps.store(false, Ordering::Release);
    }

    /// Looks once at what is under way; how many launches had ended. A `visit` is that of another thread than the device's own.
    fn pass(&self, shim: &'static Shim, resolver: &mut Resolver, visit: bool) -> usize {
        resolver.take(std::mem::take(&mut *lock(&self.incoming)));
        if shim.gate.is_closed() {
            shim.gate.ask_again(shim.runtime(), None);
            resolver.forget_context();
        }
        if self.state.load(Ordering::Acquire) == LOST {
            resolver.give_up(shim);
            self.pool.forget();
            return 0;
        }
        if shim.gate.is_closed() {
            return 0;
        }
        resolver.pass(shim, self, visit)
    }

    /// Looks until nothing is under way, or until it takes too long.
    fn finish(&self, shim: &'static Shim, resolver: &mut Resolver, visit: bool) {
        let end = now_ns() + LAST_WAIT_NS;
        loop {
            self.pass(shim, resolver, visit);
            if resolver.is_idle() || now_ns() > end {
                return resolver.tell_clock();
            }
            host::sleep(SHORT_SLEEP);
        }
    }

    /// The process ends: the thread shall look a last time, for nothing may be asked once the runtime has taken itself down.
    pub(crate) fn end(&self) {
        self.ending.store(true, Ordering::Release);
        if let Some(Some(thread)) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Waits until the thread has ended.
    pub(crate) fn await_end(&self, end_ns: u64) {
        let has_thread = matches!(self.thread.get(), Some(Some(_)));
        while has_thread && !self.ended.load(Ordering::Acquire) && now_ns() < end_ns {
            host::sleep(SHORT_SLEEP);
        }
    }

    /// The device is about to be reset, by the calling thread or with the runtime as a whole: everything of ours on it goes.
    pub(crate) fn close(&self, shim: &'static Shim) {
        let closed = self.visit(shim, |resolver| {
            self.finish(shim, resolver, true);
            resolver.drop_all(shim, self);
            self.pool.clear(shim.runtime());
            self.state.store(RESET, Ordering::Release);
        });
        if !closed {
            self.state.store(LOST, Ordering::Release); // the events go with it, so nothing is asked of them any more
        }
    }

    /// A stream is about to be destroyed. Where somebody hangs, what is under way in it is found to be lost later.
    pub(crate) fn drop_stream(&self, shim: &'static Shim, stream: Stream) {
        self.drop_where(shim, |pending| {
            pending.launched.description.stream == stream
        });
    }

    /// A context is about to be destroyed, with its streams.
    pub(crate) fn drop_context(&self, shim: &'static Shim, context: Context) {
        self.drop_where(shim, |pending| pending.context == context);
    }

    fn drop_where(&self, shim: &'static Shim, goes: impl Fn(&Pending) -> bool) {
        self.visit(shim, |resolver| {
            if resolver.has(&goes) || lock(&self.incoming).iter().any(&goes) {
                self.pass(shim, resolver, true);
                resolver.drop_where(shim, self, &goes);
            }
        });
    }

    /// Does the thread's work on the calling one, which has its own context after it. What we cause ourselves is no visit. False if somebody hangs in that work.
    fn visit(&self, shim: &'static Shim, work: impl FnOnce(&mut Resolver)) -> bool {
        if AT_WORK.replace(true) {
            return true;
        }
        let resolver = lock_until(&self.resolver, now_ns() + PATIENCE_NS);
        let visited = resolver.is_some();
        if let Some(mut resolver) = resolver {
            let runtime = shim.runtime();
            thread::unnoticed(runtime, || {
                let context = runtime.context();
                resolver.forget_context();
                work(&mut resolver);
                resolver.forget_context();
                drop(resolver);
                if let Ok(context) = context {
                    let _ = runtime.enter(context); // it was the thread's own
                }
            });
        }
        AT_WORK.set(false);
        visited
    }

    /// Waits until what was launched before has its slices, `patience` at most; whether it has.
    pub(crate) fn flush(&self, patience: Duration) -> bool {
        let end = now_ns().saturating_add(u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX));
        loop {
            let resolver = lock_until(&self.resolver, end);
            let is_idle = lock(&self.incoming).is_empty()
                && resolver.is_some_and(|one| one.is_idle() && !one.waits_for_kernels());
            if is_idle || self.thread.get().is_none() {
                return true;
            }
            if now_ns() > end {
                return false;
            }
            host::sleep(SHORT_SLEEP);
        }
    }

    /// Waits until the thread asks nothing of the device: a capture begins.
    pub(crate) fn quiesce(&self) {
        let _ = lock_until(&self.resolver, now_ns() + LAST_WAIT_NS);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a lock if it gets free until `end_ns`.
fn lock_until<T>(mutex: &Mutex<T>, end_ns: u64) -> Option<MutexGuard<'_, T>> {
    let mut looks = 0;
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if now_ns() > end_ns => return None,
            Err(TryLockError::WouldBlock) if looks < QUICK_LOOKS => std::thread::yield_now(),
            Err(TryLockError::WouldBlock) => host::sleep(SHORT_SLEEP),
        }
        looks += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::absent::Absent;
    use std::sync::mpsc::channel;

    /// Whether a call returns although somebody hangs in the runtime, with the device's events in hand.
    fn returns_beside_one_that_hangs(call: impl FnOnce(&Device, &'static Shim) + Send + 'static) {
        let shim: &'static Shim = Box::leak(Box::new(Shim::with(&Absent, false, 1)));
        let device: &'static Device = Box::leak(Box::new(Device::new(&Absent, 0)));
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
            call(device, shim);
            returns.send(()).unwrap();
        });
        let patience = Duration::from_secs(30);
        assert!(returned.recv_timeout(patience).is_ok(), "it waits for ever");
    }

    #[test]
    fn issue_19_the_end_of_a_stream_waits_for_nobody_who_hangs() {
        returns_beside_one_that_hangs(|device, shim| device.drop_stream(shim, Stream(1)));
    }

    #[test]
    fn issue_19_a_reset_waits_for_nobody_who_hangs() {
        returns_beside_one_that_hangs(|device, shim| {
            device.close(shim);
            assert!(device.is_closed(), "its events may be gone");
        });
    }

    #[test]
    fn issue_19_a_flush_waits_for_nobody_who_hangs() {
        returns_beside_one_that_hangs(|device, _| {
            let _ = device.thread.set(None);
            assert!(!device.flush(Duration::from_millis(20)));
        });
    }
}
