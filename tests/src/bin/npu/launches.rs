//! Launches, one after the other.

use crate::end;
use crate::session::Session;
use std::time::Duration;

const NAMES: [&str; 3] = ["matmul", "add", "paged_attention"];
/// So many launches are under way at most where all of them shall be timed.
const BATCH: u64 = 1000;

/// Launches into each stream in turn, as fast as it goes.
pub(crate) fn many(count: u64, streams: u64) {
    let streams = usize::try_from(streams).unwrap_or(1);
    let session = Session::open(streams);
    let mut failed = 0;
    for index in 0..count {
        let stream = usize::try_from(index).unwrap_or(0) % streams;
        failed += u64::from(session.launch(NAMES[stream % 3], stream, index, &[]) != 0);
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
        session.launch("matmul", usize::from(index % 2 == 1), index, &[]);
        std::thread::sleep(Duration::from_micros(pause_us));
    }
    println!("launched {count}");
    end(session);
}

/// Adds one to a number on the device, again and again without waiting; it tells whether each kernel ran once.
pub(crate) fn added(count: u64) {
    let session = Session::open(1);
    let number = session.number();
    let mut failed = 0;
    for index in 0..count {
        let code = session.launch("sim_add_one", 0, index, &[number as u64, 1]);
        failed += i32::from(code != 0);
    }
    println!("synchronize {}", session.synchronize());
    println!("added {} of {count}, {failed} failed", session.read(number));
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
    println!("rounds {rounds}");
}

/// Launches and waits, gives the slices a moment, launches again without waiting, and dies.
pub(crate) fn killed(count: u64) {
    let session = Session::open(1);
    for index in 0..count {
        session.launch("matmul", 0, index, &[]);
    }
    session.synchronize();
    std::thread::sleep(Duration::from_millis(100));
    for index in count..count + 5 {
        session.launch("matmul", 0, index, &[]);
    }
    // SAFETY: raise has no preconditions.
    unsafe { libc::raise(libc::SIGKILL) };
}

/// Launches beside a profiler that is at work from the start, then without it, with it and without it again.
pub(crate) fn behind_a_profiler() {
    let session = Session::open(1);
    session.start_profiler();
    for index in 0..40 {
        match index {
            10 | 30 => session.stop_profiler(),
            20 => session.start_profiler(),
            _ => {}
        }
        session.launch("matmul", 0, index, &[]);
        session.synchronize();
    }
    println!("launched 40");
    end(session);
}

/// Times two launches as one, each of which is timed too.
pub(crate) fn nested(count: u64) {
    let session = Session::open(1);
    for index in 0..count {
        session.launch_in(index);
        std::thread::sleep(Duration::from_micros(300));
    }
    println!("nested {count}");
    end(session);
}

/// Two threads launch into one stream.
pub(crate) fn shared(count: u64) {
    let session = Session::open(1);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let session = &session;
            scope.spawn(move || {
                session.enter();
                for index in 0..count {
                    session.launch("matmul", 0, thread * count + index, &[]);
                    if index % 100 == 99 {
                        session.synchronize();
                    }
                }
            });
        }
    });
    println!("shared {count}");
    end(session);
}

/// Two threads launch on a device each; the second one's captures a graph meanwhile.
pub(crate) fn two_devices(count: u64) {
    let ready = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| on_device(0, count, &ready));
        scope.spawn(|| on_device(1, count, &ready));
    });
    println!("launched {count} on each");
}

fn on_device(device: i32, count: u64, ready: &std::sync::Barrier) {
    let session = Session::on(device, 1);
    ready.wait();
    for index in 0..count {
        if device == 1 && index == count / 2 {
            let graph = session.capture(0, || {
                session.launch("add", 0, index, &[]);
                std::thread::sleep(Duration::from_millis(20));
            });
            session.replay(graph, 0);
        }
        session.launch("matmul", 0, index, &[]);
        std::thread::sleep(Duration::from_micros(200));
    }
    session.synchronize();
    serving_shim::flush(Duration::from_secs(5));
    ready.wait();
}

/// Launches before, in and after captures of the same stream, in quick succession: events are used again at once.
pub(crate) fn captures_in_between(count: u64) {
    let session = Session::open(1);
    let number = session.number();
    let args = [number as u64, 1];
    for round in 0..count {
        session.launch("matmul", 0, round, &[]);
        session.launch("add", 0, round, &[]);
        let graph = session.capture(0, || {
            session.launch("sim_add_one", 0, round, &args);
            session.launch("sim_add_one", 0, round, &args);
        });
        println!("replay {}", session.replay(graph, 0));
        session.launch("add", 0, round, &[]);
    }
    println!("synchronize {}", session.synchronize());
    println!("added {}", session.read(number));
    end(session);
}
