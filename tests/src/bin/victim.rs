//! A program that records at full speed and waits to be ended: `victim PROGRESS ORDER`.
//!
//! After each span it acknowledges the span's number in the progress file. Whatever was acknowledged must be readable, whatever ended the process.
#![expect(
    unsafe_code,
    reason = "ends itself by _exit and by a write to address 0"
)]

use std::error::Error;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use e2e::ledger::{NESTED, padding};
use e2e::order::{Ending, Order, Pattern};
use e2e::progress::{Control, Mark, Progress};
use sa_recorder::{Recorder, span};

/// Spans a short-lived thread records.
const SPANS_PER_LIFE: u64 = 300;
/// Spans of a thread that stops at full speed before reading what it wrote takes too long.
const SPRINT: u64 = 12_000;
/// Spans in a burst, and the pause after it.
const BURST: u64 = 64;
const PAUSE: Duration = Duration::from_millis(5);

fn main() -> Result<(), Box<dyn Error>> {
    Recorder::init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, order] = arguments.as_slice() else {
        return Err("usage: victim PROGRESS ORDER".into());
    };
    let progress = Arc::new(Progress::open(Path::new(file))?);
    let order: Order = serde_json::from_str(order)?;
    if matches!(order.pattern, Pattern::StepSpan | Pattern::StepFlush) {
        Writer::new(&progress, 0).stepped(order.pattern);
        return Ok(());
    }
    let writers: Vec<JoinHandle<()>> = (0..order.threads)
        .map(|thread| start_writer(&progress, thread, order))
        .collect();
    end(&progress, order, writers);
    Ok(())
}

/// Starts one recording thread.
fn start_writer(progress: &Arc<Progress>, thread: usize, order: Order) -> JoinHandle<()> {
    let progress = Arc::clone(progress);
    thread::spawn(move || match order.pattern {
        Pattern::Flat if order.ending == Ending::ThreadsEnd => {
            Writer::new(&progress, thread).flat(20_000);
        }
        Pattern::Flat if order.ending == Ending::ExitFromThread => exit_amid(&progress, thread),
        Pattern::Flat => Writer::new(&progress, thread).flat(u64::MAX),
        Pattern::Nested => Writer::new(&progress, thread).nested(),
        Pattern::Bursts => Writer::new(&progress, thread).bursts(),
        Pattern::Sprint => {
            Writer::new(&progress, thread).flat(SPRINT);
            thread::sleep(Duration::from_secs(60));
        }
        Pattern::Churn => churn(&progress, thread),
        Pattern::StepAttach | Pattern::StepDetach => {
            Writer::new(&progress, thread).stepped(order.pattern);
        }
        Pattern::StepSpan | Pattern::StepFlush => {}
    })
}

/// Records until told to go; then ends the process from this thread, as thread 0.
fn exit_amid(progress: &Arc<Progress>, thread: usize) {
    let writer = Writer::new(progress, thread);
    while writer.progress.control(Control::Go).load(Acquire) == 0 || thread != 0 {
        if !writer.one_flat() {
            return;
        }
    }
    std::process::exit(8);
}

/// A chain of short-lived threads that go on with one sequence of numbers.
fn churn(progress: &Arc<Progress>, thread: usize) {
    while Recorder::get().is_enabled() && progress.acknowledged(thread).load(Acquire) < SPRINT {
        let next = Arc::clone(progress);
        let life = thread::spawn(move || Writer::new(&next, thread).flat(SPANS_PER_LIFE));
        if life.join().is_err() {
            return;
        }
    }
}

/// Waits for the word to go, then ends the process as ordered while the writers record on.
fn end(progress: &Progress, order: Order, writers: Vec<JoinHandle<()>>) {
    while progress.control(Control::Go).load(Acquire) == 0 || order.ending == Ending::Never {
        thread::sleep(Duration::from_micros(200));
    }
    match order.ending {
        Ending::Never | Ending::Return | Ending::ThreadsEnd => drop(writers),
        Ending::Abort => std::process::abort(),
        // SAFETY: `_exit` has no precondition.
        Ending::QuickExit => unsafe { libc::_exit(7) },
        // SAFETY: none: the fault is the point, and it ends the process.
        Ending::Segv => unsafe { std::ptr::null_mut::<u8>().write_volatile(1) },
        Ending::Exit => std::process::exit(8),
        Ending::ExitFromThread => thread::sleep(Duration::from_secs(30)),
        Ending::Panic => panic!("the ending that was ordered"),
        Ending::Finish => Recorder::get().finish(),
    }
}

/// One recording thread: its number, and where its counters are.
struct Writer<'a> {
    progress: &'a Progress,
    thread: usize,
    acknowledged: &'a AtomicU64,
}

impl<'a> Writer<'a> {
    fn new(progress: &'a Progress, thread: usize) -> Self {
        // SAFETY: `gettid` has no precondition.
        let tid = unsafe { libc::gettid() };
        progress
            .tid(thread)
            .store(u64::from(tid.unsigned_abs()), Release);
        Writer {
            progress,
            thread,
            acknowledged: progress.acknowledged(thread),
        }
    }

    /// Records spans one after the other, `count` of them or until recording ends.
    fn flat(&self, count: u64) {
        for _ in 0..count {
            if !self.one_flat() {
                return;
            }
        }
    }

    /// Records one span and acknowledges it; false when recording has ended.
    fn one_flat(&self) -> bool {
        let n = self.acknowledged.load(Relaxed);
        drop(span!(
            "victim",
            "flat",
            t = self.thread,
            n = n,
            pad = padding(n)
        ));
        self.acknowledge(n)
    }

    /// Counts span `n` as recorded, unless recording had ended before: then nobody promised anything.
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

    /// Records spans three deep, marking what is open.
    fn nested(&self) {
        loop {
            let outer = self.open(0);
            let middle = self.open(1);
            for _ in 0..3 {
                let inner = self.open(2);
                if !self.close(2, inner) {
                    // Left open: whether a drop is still recorded at this instant, nobody could say.
                    let _left = (ManuallyDrop::new(middle), ManuallyDrop::new(outer));
                    return;
                }
            }
            if !self.close(1, middle) {
                let _left = ManuallyDrop::new(outer);
                return;
            }
            if !self.close(0, outer) {
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

    /// Begins a span that nothing ends but the end of the thread.
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
            return false; // the marks stay: the span may be shown as the one that was being ended
        }
        for mark in [Mark::Before, Mark::After, Mark::Closing] {
            self.mark(level, mark, 0);
        }
        true
    }

    /// Records bursts with pauses, as many spans as it is allowed by then; every eighth burst it flushes for itself.
    fn bursts(&self) {
        for burst in 1_u64.. {
            for _ in 0..BURST {
                if !self.one_flat() {
                    return;
                }
            }
            if burst.is_multiple_of(8) {
                Recorder::get().flush();
                self.progress
                    .control(Control::Flushes)
                    .fetch_add(1, Relaxed);
            }
            thread::sleep(PAUSE);
            self.wait_until_allowed();
        }
    }

    /// Waits while the test allows no more spans.
    fn wait_until_allowed(&self) {
        let allowed = self.progress.control(Control::Allowed);
        let is_over = |allowed| allowed > 0 && self.acknowledged.load(Relaxed) >= allowed;
        while is_over(allowed.load(Acquire)) {
            thread::sleep(PAUSE);
        }
    }

    /// Records a few spans, then waits to be stepped through the next act; never returns by itself from the wait after it.
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
            // Recorded here, while the helper stands still: otherwise there would be nothing left to flush.
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
