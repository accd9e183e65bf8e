//! Launches, one after the other.

use crate::end;
use crate::session::Session;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

const NAMES: [&str; 3] = ["matmul", "add", "paged_attention"];
/// So many launches are under way at most where all of them shall be timed.
const BATCH: u64 = 1000;

/// The kernel of a number.
pub(crate) fn name(number: u64) -> &'static str {
    NAMES[usize::try_from(number % 3).unwrap_or(0)]
}

/// Launches into each stream in turn, as fast as it goes.
pub(crate) fn many(count: u64, streams: u64) {
    let session = Session::open(streams);
    let mut failed = 0;
    for index in 0..count {
        let stream = index % streams;
        failed += u64::from(session.launch(name(stream), stream, index, &[]) != 0);
        if index % BATCH == BATCH - 1 {
            session.synchronize();
            // The last slices of a batch free their event pairs before the next one.
            serving_shim::flush(Duration::from_secs(5));
        }
    }
    println!("launched {count}, {failed} failed");
    end(session);
}

/// Launches with pauses.
pub(crate) fn paced(count: u64, pause_us: u64) {
    let session = Session::open(2);
    for index in 0..count {
        session.launch("matmul", index % 2, index, &[]);
        thread::sleep(Duration::from_micros(pause_us));
    }
    end(session);
}

/// Adds one to a number on the device, again and again without waiting; it tells whether each kernel ran once.
pub(crate) fn added(count: u64) {
    let session = Session::open(1);
    let number = session.number();
    let add = |index| session.launch("sim_add_one", 0, index, &[number as u64, 1]);
    let failed = (0..count).filter(|index| add(*index) != 0).count();
    println!("synchronize {}", session.synchronize());
    let value = session.read(number);
    println!("added {value} of {count}, {failed} failed");
    end(session);
}

/// Prints what every launch and wait returns.
pub(crate) fn codes(count: u64) {
    let session = Session::open(1);
    for index in 0..count {
        let code = session.launch("matmul", 0, index, &[]);
        println!("launch {index}: {code}, wait: {}", session.synchronize());
    }
    end(session);
}

/// Resets the device and sets it again.
pub(crate) fn resets(rounds: u64) {
    let mut session = Session::open(1);
    for round in 0..rounds {
        if round > 0 {
            session.set(1);
        }
        for index in 0..10 {
            session.launch("matmul", 0, round * 10 + index, &[]);
        }
        println!("synchronize {}", session.synchronize());
        session.reset();
    }
}

/// Launches and waits, gives the slices a moment, launches again without waiting, and dies.
pub(crate) fn killed(count: u64) {
    let session = Session::open(1);
    for index in 0..count + 5 {
        if index == count {
            session.synchronize();
            thread::sleep(Duration::from_millis(100));
        }
        session.launch("matmul", 0, index, &[]);
    }
    // SAFETY: raise has no preconditions.
    unsafe { libc::raise(libc::SIGKILL) };
}

/// Launches beside a profiler that is at work from the start, then without it, with it and without it again.
pub(crate) fn behind_a_profiler() {
    let session = Session::open(1);
    for index in 0..40 {
        match index {
            0 | 20 => session.start_profiler(),
            10 | 30 => session.stop_profiler(),
            _ => {}
        }
        session.launch("matmul", 0, index, &[]);
        session.synchronize();
    }
    end(session);
}

/// Times two launches as one, each of which is timed too.
pub(crate) fn nested(count: u64) {
    let session = Session::open(1);
    for index in 0..count {
        session.launch_in(index);
        thread::sleep(Duration::from_micros(300));
    }
    end(session);
}

/// Two threads launch into one stream.
pub(crate) fn shared(count: u64) {
    let session = Session::open(1);
    let launch = |thread| {
        session.enter();
        for index in 0..count {
            session.launch("matmul", 0, thread * count + index, &[]);
            if index % 100 == 99 {
                session.synchronize();
            }
        }
    };
    thread::scope(|scope| {
        for number in 0..2 {
            scope.spawn(move || launch(number));
        }
    });
    end(session);
}

/// Two threads launch on a device each; the second one's captures a graph meanwhile.
pub(crate) fn two_devices(count: u64) {
    let ready = &Barrier::new(2);
    thread::scope(|scope| {
        for device in 0..2 {
            scope.spawn(move || on_device(device, count, ready));
        }
    });
}

fn on_device(device: i32, count: u64, ready: &Barrier) {
    let session = Session::on(device, 1);
    ready.wait();
    for index in 0..count {
        if device == 1 && index == count / 2 {
            let graph = session.capture(0, || {
                session.launch("add", 0, index, &[]);
                thread::sleep(Duration::from_millis(20));
            });
            session.replay(graph, 0);
        }
        session.launch("matmul", 0, index, &[]);
        thread::sleep(Duration::from_micros(200));
    }
    session.synchronize();
    serving_shim::flush(Duration::from_secs(5));
    ready.wait();
}
