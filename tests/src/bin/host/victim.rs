//! A host that records at full speed until something ends it: `host victim PROGRESS ORDER`.
//!
//! After each span it acknowledges the span's number in the progress file. Every acknowledged span must be readable, whatever ended the process.

use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::Duration;

use e2e::ledger::{NESTED, padding};
use e2e::order::{Ending, Order, Pattern};
use e2e::progress::{Control, Mark, Progress};
use sa_recorder::{Recorder, span};

/// Number of spans that a short-lived thread records.
const SPANS_PER_LIFE: u64 = 300;
/// Number of spans after which a thread at full speed stops, so that reading them does not take too long.
const SPRINT: u64 = 12_000;
/// Number of spans in a burst. A burst is followed by `PAUSE`.
const BURST: u64 = 64;
const PAUSE: Duration = Duration::from_millis(5);

/// Starts the threads of the order and ends the process as ordered.
pub(crate) fn run(file: &str, order: &str) {
    let progress: &Progress = Box::leak(Box::new(Progress::open(Path::new(file))));
    let order: Order = serde_json::from_str(order).expect("an order");
    if matches!(order.pattern, Pattern::StepSpan | Pattern::StepFlush) {
        return Writer::new(progress, 0).stepped(order.pattern);
    }
    for number in 0..order.threads {
        thread::spawn(move || write(progress, number, order));
    }
    end(progress, order.ending);
}

/// Records on one thread as ordered.
fn write(progress: &'static Progress, number: usize, order: Order) {
    let writer = || Writer::new(progress, number);
    match order.pattern {
        Pattern::Flat if order.ending == Ending::ThreadsEnd => writer().flat(20_000),
        Pattern::Flat if order.ending == Ending::ExitFromThread => exit_amid(&writer()),
        Pattern::Flat => writer().flat(u64::MAX),
        Pattern::Nested => writer().nested(),
        Pattern::Bursts => writer().bursts(),
        Pattern::Sprint => {
            writer().flat(SPRINT);
            thread::sleep(Duration::from_secs(60));
        }
        Pattern::Churn => churn(progress, number),
        pattern => writer().stepped(pattern),
    }
}

/// Records until the signal to go. Thread 0 then ends the process.
fn exit_amid(writer: &Writer) {
    while writer.progress.control(Control::Go).load(Acquire) == 0 || writer.thread != 0 {
        if !writer.one_flat() {
            return;
        }
    }
    std::process::exit(8);
}

/// Runs short-lived threads one after the other that continue one sequence of numbers.
fn churn(progress: &'static Progress, number: usize) {
    while Recorder::get().is_enabled() && progress.acknowledged(number).load(Acquire) < SPRINT {
        let life = thread::spawn(move || Writer::new(progress, number).flat(SPANS_PER_LIFE));
        if life.join().is_err() {
            return;
        }
    }
}

/// Waits for the signal to go, then ends the process as ordered while the writers keep recording.
fn end(progress: &Progress, ending: Ending) {
    while progress.control(Control::Go).load(Acquire) == 0 || ending == Ending::Never {
        thread::sleep(Duration::from_micros(200));
    }
    match ending {
        Ending::Never | Ending::Return | Ending::ThreadsEnd => {}
        Ending::Abort => std::process::abort(),
        Ending::QuickExit => crate::forks::end_now(),
        // SAFETY: none: the fault is the point, and it ends the process.
        Ending::Segv => unsafe { std::ptr::null_mut::<u8>().write_volatile(1) },
        Ending::Exit => std::process::exit(8),
        Ending::ExitFromThread => thread::sleep(Duration::from_secs(30)),
        Ending::Panic => panic!("the ending that was ordered"),
        Ending::Finish => Recorder::get().finish(),
    }
}

/// A recording thread with its counters.
struct Writer {
    progress: &'static Progress,
    thread: usize,
    acknowledged: &'static AtomicU64,
}

impl Writer {
    fn new(progress: &'static Progress, thread: usize) -> Self {
        // SAFETY: `gettid` has no precondition.
        let tid = unsafe { libc::gettid() };
        let tid = u64::from(tid.unsigned_abs());
        progress.tid(thread).store(tid, Release);
        Writer {
            progress,
            thread,
            acknowledged: progress.acknowledged(thread),
        }
    }

    /// Records spans one after the other until there are `count` of them or recording ends.
    fn flat(&self, count: u64) {
        (0..count).all(|_| self.one_flat());
    }

    /// Records and acknowledges one span. Returns false if recording has ended.
    fn one_flat(&self) -> bool {
        let n = self.acknowledged.load(Relaxed);
        let (t, pad) = (self.thread, padding(n));
        drop(span!("victim", "flat", t = t, n = n, pad = pad));
        self.acknowledge(n)
    }

    /// Acknowledges span `n`, unless recording has ended: then the span may not have been recorded.
    fn acknowledge(&self, n: u64) -> bool {
        if !Recorder::get().is_enabled() {
            return false;
        }
        self.acknowledged.store(n + 1, Release);
        if n == 0 {
            self.progress.control(Control::Ready).fetch_add(1, Release);
        }
        true
    }

    /// Records spans three deep and marks the open ones.
    fn nested(&self) {
        // The spans stay open when recording ends, because it is undefined whether a drop at that moment is still recorded.
        let mut open = ManuallyDrop::new(Vec::new());
        for at in (0..10).cycle() {
            // Opens three nested spans. The innermost level is opened three times.
            if matches!(at, 0 | 1 | 2 | 4 | 6) {
                let level = open.len();
                open.push(self.open(level));
            } else if let Some(innermost) = open.pop()
                && !self.close(open.len(), innermost)
            {
                return;
            }
        }
    }

    fn open(&self, level: usize) -> sa_recorder::SpanGuard {
        let before = sa_recorder::now_ns();
        self.mark(level, Mark::Before, before);
        let guard = match level {
            0 => span!("victim", "outer"),
            1 => span!("victim", "middle"),
            _ => Recorder::get().span(sa_recorder::Level::E2e, "victim", NESTED[2]),
        };
        if guard.is_recording() {
            self.mark(level, Mark::After, sa_recorder::now_ns());
        }
        guard
    }

    fn mark(&self, level: usize, mark: Mark, value: u64) {
        let mark = self.progress.mark(self.thread, level, mark);
        mark.store(value, Release);
    }

    /// Begins a span that only ends with the thread.
    fn leave_open(&self) {
        self.mark(0, Mark::Before, sa_recorder::now_ns());
        sa_recorder::begin(sa_recorder::Level::E2e, "victim", NESTED[0]);
        self.mark(0, Mark::After, sa_recorder::now_ns());
    }

    fn close(&self, level: usize, mut guard: sa_recorder::SpanGuard) -> bool {
        let n = self.acknowledged.load(Relaxed);
        guard.arg("t", self.thread);
        guard.arg("n", n);
        guard.arg("pad", padding(n));
        self.mark(level, Mark::Closing, n + 1);
        drop(guard);
        if !self.acknowledge(n) {
            return false; // the marks stay, because the span may be shown as the one that was being ended
        }
        for mark in [Mark::Before, Mark::After, Mark::Closing] {
            self.mark(level, mark, 0);
        }
        true
    }

    /// Records bursts with pauses, up to the number of spans that is allowed so far. Flushes after every eighth burst.
    fn bursts(&self) {
        for burst in 1_u64.. {
            if !(0..BURST).all(|_| self.one_flat()) {
                return;
            }
            if burst.is_multiple_of(8) {
                Recorder::get().flush();
                let flushes = self.progress.control(Control::Flushes);
                flushes.fetch_add(1, Relaxed);
            }
            thread::sleep(PAUSE);
            self.wait_until_allowed();
        }
    }

    /// Waits until the test allows more spans.
    fn wait_until_allowed(&self) {
        let allowed = self.progress.control(Control::Allowed);
        let is_over = |allowed| allowed > 0 && self.acknowledged.load(Relaxed) >= allowed;
        while is_over(allowed.load(Acquire)) {
            thread::sleep(PAUSE);
        }
    }

    /// Records a few spans, then waits for the signal and executes the region that is stepped. Afterwards it only sleeps, unless the region is the thread's end.
    fn stepped(&self, pattern: Pattern) {
        match pattern {
            Pattern::StepAttach => self.progress.control(Control::Ready).store(1, Release),
            Pattern::StepDetach => {
                self.flat(5);
                self.leave_open();
            }
            _ => self.flat(5),
        }
        while self.progress.control(Control::Go).load(Acquire) == 0 {
            std::hint::spin_loop();
        }
        match pattern {
            // Records here, while the recorder's thread is frozen. Otherwise there would be nothing left to flush.
            Pattern::StepFlush => {
                self.flat(3);
                Recorder::get().flush();
                self.flat(1);
            }
            Pattern::StepDetach => return,
            _ => self.flat(2),
        }
        self.progress.control(Control::Done).store(1, Release);
        loop {
            thread::sleep(Duration::from_millis(10));
        }
    }
}
