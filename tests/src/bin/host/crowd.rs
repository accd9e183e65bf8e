//! Hosts with many threads.

use crate::work::{open, record};
use sa_recorder::{Args, AsyncSpan, Level};
use std::sync::Barrier;
use std::thread::{self, Builder, Scope};
use std::time::{Duration, Instant};

/// Size of the threads' stacks. It is small because the threads' own memory is not under test.
const STACK_BYTES: usize = 128 << 10;
/// Number of threads that are alive at a time in `one_by_one`.
const AT_A_TIME: usize = 4;

/// Interval between two bursts of a paced host.
const TICK: Duration = Duration::from_millis(100);

fn start<'scope>(scope: &'scope Scope<'scope, '_>, work: impl FnOnce() + Send + 'scope) {
    let builder = Builder::new().stack_size(STACK_BYTES);
    builder.spawn_scoped(scope, work).expect("a thread starts");
}

/// Runs `threads` threads, and calls `at_the_end` once each has recorded `count` spans but none has ended.
pub(crate) fn at_once(threads: u64, count: u64, at_the_end: fn()) {
    let together = Barrier::new(usize::try_from(threads).expect("a small count"));
    let work = |number| {
        together.wait();
        record(&format!("thread-{number}"), count);
        if together.wait().is_leader() {
            at_the_end();
        }
        together.wait();
    };
    thread::scope(|scope| (0..threads).for_each(|number| start(scope, move || work(number))));
}

/// Runs `threads` threads that record one span each, a few threads at a time.
pub(crate) fn one_by_one(threads: u64) {
    let numbers: Vec<u64> = (0..threads).collect();
    for some in numbers.chunks(AT_A_TIME) {
        thread::scope(|scope| {
            let work = |number: &u64| drop(open("short", *number));
            some.iter()
                .for_each(|number| start(scope, move || work(number)));
        });
    }
}

/// Runs `threads` threads that record bursts of `burst` spans, `ticks` times, and sleep in between, like a server under light load.
pub(crate) fn paced(threads: u64, burst: u64, ticks: u64) {
    let began = Instant::now();
    let work = |number| {
        for tick in 0..ticks {
            (0..burst).for_each(|at| drop(open(&format!("thread-{number}"), tick * burst + at)));
            thread::sleep(tick_time(tick + 1).saturating_sub(began.elapsed()));
        }
    };
    thread::scope(|scope| (0..threads).for_each(|number| start(scope, move || work(number))));
}

/// Runs a paced thread. Meanwhile records three spans from tick `begin` to tick `end`: on a thread, on a lane, and as a duration reported afterwards.
pub(crate) fn long(burst: u64, ticks: u64, begin: u64, end: u64) {
    let (from, len) = (tick_time(begin), tick_time(end - begin));
    let args = |label: &str| Args::new().with("label", label).with("index", 0);
    thread::scope(|scope| {
        start(scope, || {
            thread::sleep(from);
            let (lane, reported) = (args("lane"), args("reported"));
            let on_thread = sa_recorder::span!("host", "long", label = "thread", index = 0);
            let on_lane = AsyncSpan::open_at(Level::E2e, "host", "long", None, None, &lane);
            let start_ns = Some(sa_recorder::now_ns());
            thread::sleep(len);
            drop((on_thread, on_lane));
            let dur_ns = i64::try_from(len.as_nanos()).expect("a short time");
            sa_recorder::duration(Level::E2e, "host", "long", dur_ns, start_ns, &reported);
        });
        paced(1, burst, ticks);
    });
}

fn tick_time(ticks: u64) -> Duration {
    TICK * u32::try_from(ticks).expect("a small count")
}
