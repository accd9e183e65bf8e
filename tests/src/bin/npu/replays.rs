//! Graphs that are captured and replayed under an interposer, next to single launches.

use crate::end;
use crate::launches::name;
use crate::session::{Session, is_mspti_taken};
use ascend_sys::types::aclmdlRI;
use ascend_sys::{Acl, Library, Mspti};
use e2e::host_support::switch::{control, store};
use sa_format::control::SwitchCause;
use sa_recorder::{Level, Recorder};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum time to wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// Number of kernels in a graph, of replays of each of two graphs, and of launches after each replay.
pub(crate) type Size = [u64; 3];

/// Replays two graphs in turn, with launches in between and a pause after every 20 rounds.
pub(crate) fn replayed(size: Size) {
    let session = Session::open(2);
    let graphs = captured(&session, size, |_| ());
    rounds(&session, graphs, size, |_| ());
    end(session);
}

/// Replays them with a collective after every other kernel of a graph and between the replays, while `busy` threads keep the processors busy.
/// With `gone` it exits as soon as all of this has run, while those threads are still busy.
pub(crate) fn with_collectives(busy: u64, size: Size, gone: bool) {
    if gone {
        // SAFETY: the handler is a function of this program.
        assert_eq!(unsafe { libc::atexit(report_mspti) }, 0);
    }
    let session = Session::open(2);
    let comm = session.communicator();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..busy {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let more = |stream| session.barrier(comm, stream);
        let graphs = captured(&session, size, more);
        rounds(&session, graphs, size, more);
        if gone {
            std::process::exit(crate::DONE.into());
        }
        assert!(serving_shim::flush(PATIENCE), "slices");
        over.store(true, Ordering::Relaxed);
    });
    end(session);
}

/// Prints at exit whether MSPTI is taken. It is registered first, so it runs after all other handlers.
extern "C" fn report_mspti() {
    let acl = Acl::load(&Library::open_simulator().expect("the simulator"));
    println!("MSPTI is taken: {}", is_mspti_taken(&acl));
}

/// Captures two graphs, one in each stream. Calls `more` after every other kernel.
fn captured(session: &Session, [kernels, ..]: Size, more: impl Fn(u64)) -> [aclmdlRI; 2] {
    [0, 1].map(|graph| {
        session.capture_timed(graph, || {
            for index in 0..kernels {
                session.launch(name(index), graph, 1_000_000 + index, &[]);
                if index % 2 == 1 {
                    more(graph);
                }
            }
        })
    })
}

/// Replays both graphs in turn, with launches and a call of `more` after each replay, and pauses after every 20 rounds.
fn rounds(session: &Session, graphs: [aclmdlRI; 2], size: Size, more: impl Fn(u64)) {
    let [_, replays, launches] = size;
    for round in 0..replays {
        for (stream, graph) in (0..).zip(graphs) {
            session.replay_timed(graph, stream);
            for index in round * launches..(round + 1) * launches {
                session.launch("matmul", stream, index, &[]);
            }
            more(stream);
        }
        if round % 20 == 19 {
            session.synchronize();
            serving_shim::flush(Duration::from_millis(1));
            std::thread::sleep(Duration::from_millis(3));
        }
    }
    assert_eq!(session.synchronize(), 0);
}

/// Launches and replays in three parts: while the level `kernel` is recorded, while it is not and this program holds MSPTI itself, and while it is recorded again.
pub(crate) fn switched(count: u64) {
    let session = Session::open(1);
    let graph = session.capture_timed(0, || {
        session.launch("add", 0, 1_000_000, &[]);
        session.launch("matmul", 0, 1_000_001, &[]);
    });
    let library = Library::open_simulator().expect("the simulator");
    let library = library.open_simulator_as("libmspti.so").expect("MSPTI");
    let mspti = Mspti::load(&library);
    for part in 0..3 {
        match part {
            1 => {
                assert!(!own_subscription(&mspti), "MSPTI is taken");
                switch(&[Level::E2e]);
                wait_for("MSPTI is given back", || own_subscription(&mspti));
            }
            2 => {
                switch(&[Level::E2e, Level::Kernel]);
                // The device's thread takes MSPTI again when a launch wakes it.
                wait_for("MSPTI is taken again", || {
                    session.launch("add", 0, 2_000_000, &[]);
                    session.synchronize();
                    session.is_mspti_taken()
                });
            }
            _ => {}
        }
        for index in part * count..(part + 1) * count {
            session.launch("matmul", 0, index, &[]);
            session.replay_timed(graph, 0);
            session.synchronize();
        }
        assert!(serving_shim::flush(PATIENCE), "slices");
    }
    end(session);
}

/// Switches to these levels and waits until the recorder has obeyed.
fn switch(levels: &[Level]) {
    let recorder = Recorder::get();
    let dir = recorder.directory().expect("a run");
    store(
        &dir,
        &control(&dir, SwitchCause::Level, levels, Duration::ZERO),
    );
    wait_for("the level is obeyed", || {
        recorder.includes(Level::Kernel) == levels.contains(&Level::Kernel)
    });
}

/// Subscribes to MSPTI and unsubscribes again. Returns false if another client holds it.
fn own_subscription(mspti: &Mspti) -> bool {
    let subscribe = mspti.msptiSubscribe.expect("a subscription");
    let unsubscribe = mspti.msptiUnsubscribe.expect("its end");
    let mut subscriber = null_mut();
    // SAFETY: `subscriber` is writable for the call.
    let is_ours = unsafe { subscribe(&raw mut subscriber, None, null_mut()) } == 0;
    // SAFETY: the subscriber is ours.
    assert!(!is_ours || unsafe { unsubscribe(subscriber) } == 0);
    is_ours
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Launches kernels on a recorded device after replaying graphs of 1,000 kernels on another device, where nothing is recorded.
pub(crate) fn next_to_a_device(replays: u64) {
    const LAUNCHES: u64 = 50;
    let session = Session::on(0, 1);
    session.launch("matmul", 0, 0, &[]); // records are delivered from here on
    let other = Session::on(1, 1).untimed();
    let graph = other.capture(0, || {
        for index in 0..1000 {
            other.launch("add", 0, index, &[]);
        }
    });
    for _ in 0..replays {
        assert_eq!(other.replay(graph, 0), 0, "a replay");
    }
    assert_eq!(other.synchronize(), 0);
    session.enter();
    for index in 1..LAUNCHES {
        session.launch("matmul", 0, index, &[]);
        session.synchronize();
        std::thread::sleep(Duration::from_millis(10));
    }
    println!("launched {LAUNCHES} beside {replays} replays");
    end(session);
}
