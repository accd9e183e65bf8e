//! Hosts of very many threads.

use crate::work::{open, record};
use sa_recorder::{Args, AsyncSpan, Level};
use std::sync::{Arc, Barrier};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Small stacks, so that the threads' own memory is not what is tested.
const STACK_BYTES: usize = 128 << 10;
/// Threads alive at a time when they come one after the other.
const AT_A_TIME: usize = 4;

/// How long a thread of a paced host sleeps between two bursts.
const TICK: Duration = Duration::from_millis(100);

fn start(work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(work)
        .expect("a thread starts")
}

/// `threads` threads that are all alive while each records `count` spans.
pub(crate) fn at_once(threads: u64, count: u64) {
    alive_together(threads, count, || {});
    println!("threads {threads} {count}");
}

/// The same, but the process is killed while all of them are alive and have recorded.
pub(crate) fn killed(threads: u64, count: u64) {
    alive_together(threads, count, crate::work::die);
}

/// Runs `threads` threads and calls `at_the_end` when each has recorded `count` spans and none has ended.
fn alive_together(threads: u64, count: u64, at_the_end: fn()) {
    let together = Arc::new(Barrier::new(
        usize::try_from(threads).expect("a small count"),
    ));
    let running: Vec<_> = (0..threads)
        .map(|number| {
            let together = Arc::clone(&together);
            start(move || {
                together.wait();
                record(&format!("thread-{number}"), count);
                if together.wait().is_leader() {
                    at_the_end();
                }
                together.wait();
            })
        })
        .collect();
    for thread in running {
        thread.join().expect("no panic");
    }
}

/// `threads` threads that record one span each, a few at a time.
pub(crate) fn one_by_one(threads: u64) {
    let mut running: Vec<JoinHandle<()>> = Vec::new();
    for number in 0..threads {
        if running.len() == AT_A_TIME {
            running.remove(0).join().expect("no panic");
        }
        running.push(start(move || drop(open("short", number))));
    }
    for thread in running {
        thread.join().expect("no panic");
    }
    println!("short threads {threads}");
}

/// `threads` threads that record `burst` spans each, `ticks` times, and sleep in between: a server with little to do.
pub(crate) fn paced(threads: u64, burst: u64, ticks: u64) {
    let began = Instant::now();
    let paced = move |number| {
        for tick in 0..ticks {
            (0..burst).for_each(|at| drop(open(&format!("thread-{number}"), tick * burst + at)));
            let next = TICK * u32::try_from(tick + 1).expect("a small count");
            std::thread::sleep(next.saturating_sub(began.elapsed()));
        }
    };
    let running: Vec<_> = (0..threads)
        .map(|number| start(move || paced(number)))
        .collect();
    for thread in running {
        thread.join().expect("no panic");
    }
    println!("paced {threads} {burst} {ticks}");
}

/// A paced thread, and spans from one tick to another: on a thread, on a lane, and told only when they are over.
pub(crate) fn long(burst: u64, ticks: u64, begin: u64, end: u64) {
    let (from, len) = (tick_time(begin), tick_time(end - begin));
    let on_thread = start(move || {
        std::thread::sleep(from);
        let span = sa_recorder::span!("host", "long", label = "thread", index = 0);
        std::thread::sleep(len);
        drop(span);
    });
    let elsewhere = start(move || {
        std::thread::sleep(from);
        let start_ns = sa_recorder::now_ns();
        let args = |label: &str| Args::new().with("label", label).with("index", 0);
        let lane = args("lane");
        let on_lane = AsyncSpan::open_at(Level::E2e, "host", "long", None, None, &lane);
        std::thread::sleep(len);
        drop(on_lane);
        let dur_ns = i64::try_from(len.as_nanos()).expect("a short time");
        sa_recorder::duration(
            Level::E2e,
            "host",
            "long",
            dur_ns,
            Some(start_ns),
            &args("told"),
        );
    });
    paced(1, burst, ticks);
    on_thread.join().expect("no panic");
    elsewhere.join().expect("no panic");
}

fn tick_time(ticks: u64) -> Duration {
    TICK * u32::try_from(ticks).expect("a small count")
}
