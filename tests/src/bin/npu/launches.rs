//! Sequences of kernel launches.

use crate::end;
use crate::session::Session;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

const NAMES: [&str; 3] = ["matmul", "add", "paged_attention"];
/// Maximum number of launches in flight if all of them are to be timed.
const BATCH: u64 = 1000;

/// Returns the kernel name for a number.
pub(crate) fn name(number: u64) -> &'static str {
    NAMES[usize::try_from(number % 3).unwrap_or(0)]
}

/// Launches into each stream in turn at full speed.
pub(crate) fn many(count: u64, streams: u64) {
    let session = Session::open(streams);
    let mut failed = 0;
    for index in 0..count {
        let stream = index % streams;
        failed += u64::from(session.launch(name(stream), stream, index, &[]) != 0);
        if index % BATCH == BATCH - 1 {
            session.synchronize();
            // The last slices of a batch must free their event pairs before the next batch.
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

/// Adds one to a number on the device, repeatedly and without waiting. The result shows whether each kernel ran once.
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

/// Prints the codes of every launch and wait.
pub(crate) fn codes(count: u64) {
    let session = Session::open(1);
    for index in 0..count {
        let code = session.launch("matmul", 0, index, &[]);
        println!("launch {index}: {code}, wait: {}", session.synchronize());
    }
    end(session);
}

/// Resets the device and sets it up again.
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

/// Launches and waits, pauses so that slices can be read, launches again without waiting, and kills itself.
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

/// Launches while another profiler is active, then without it, with it, and without it again.
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

/// Times pairs of launches as one launch, while each of the two is timed as well.
pub(crate) fn nested(count: u64) {
    let session = Session::open(1);
    for index in 0..count {
        session.launch_in(index);
        thread::sleep(Duration::from_micros(300));
    }
    end(session);
}

/// Launches into one stream from two threads.
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

/// Launches from two threads, on one device each. The second thread also captures a graph.
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
