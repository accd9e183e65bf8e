//! Graphs that are captured and replayed before the eyes of an interposer, beside launches.

use crate::end;
use crate::session::{Session, await_records, is_mspti_taken};
use ascend_sys::types::aclmdlRI;
use ascend_sys::{Acl, Library, Mspti};
use e2e::host_support::switch::{control, store};
use sa_format::control::SwitchCause;
use sa_recorder::{Level, Recorder};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

const NAMES: [&str; 3] = ["matmul", "add", "paged_attention"];

/// How much of everything: kernels of a graph, replays of each of two, and launches behind each.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) kernels: u64,
    pub(crate) replays: u64,
    pub(crate) launches: u64,
}

/// Replays two graphs in turn, with launches in between, and rests after every 20 rounds.
pub(crate) fn replayed(size: Size) {
    let session = Session::open(2);
    let graphs = work(&session, size);
    println!("replayed {} graphs", graphs.len());
    end(session);
}

/// The same with a collective behind every other kernel of a graph and between the replays, while other threads keep the processors busy.
/// With `gone` it exits as soon as all has run, with the threads still at it.
pub(crate) fn with_collectives(size: Size, busy: usize, gone: bool) {
    if gone {
        // SAFETY: the handler is a function of this program.
        assert_eq!(unsafe { libc::atexit(report_mspti) }, 0);
    }
    let session = Session::open(2);
    let comm = session.communicator();
    let over = AtomicBool::new(false);
    let graphs = std::thread::scope(|scope| {
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
        graphs
    });
    println!("replayed {} graphs", graphs.len());
    end(session);
}

/// Prints at the exit whether MSPTI is taken. It is registered first, so it runs after all other handlers.
extern "C" fn report_mspti() {
    let acl = Acl::load(&Library::open_simulator().expect("the simulator"));
    println!("MSPTI is taken: {}", is_mspti_taken(&acl));
}

/// The same, and dies: first it waits for the slices and the records, then it replays once more.
pub(crate) fn killed(size: Size) {
    let session = Session::open(2);
    let graphs = work(&session, size);
    assert!(serving_shim::flush(PATIENCE), "slices");
    await_records();
    session.replay_timed(graphs[0], 0);
    session.synchronize();
    // SAFETY: raise has no preconditions.
    unsafe { libc::raise(libc::SIGKILL) };
}

/// Captures two graphs, replays them; what the program holds of them.
fn work(session: &Session, size: Size) -> [aclmdlRI; 2] {
    let graphs = captured(session, size, |_| ());
    rounds(session, graphs, size, |_| ());
    graphs
}

/// Captures two graphs, one in each stream, with something `more` in it behind every other kernel.
fn captured(session: &Session, size: Size, more: impl Fn(usize)) -> [aclmdlRI; 2] {
    [0, 1].map(|graph| {
        session.capture_seen(graph, || {
            for index in 0..size.kernels {
                let name = NAMES[usize::try_from(index).unwrap_or(0) % 3];
                session.launch(name, graph, 1_000_000 + index, &[]);
                if index % 2 == 1 {
                    more(graph);
                }
            }
        })
    })
}

/// Replays both in turn, with launches and something `more` behind each, and rests after every 20 rounds.
fn rounds(session: &Session, graphs: [aclmdlRI; 2], size: Size, more: impl Fn(usize)) {
    for round in 0..size.replays {
        for (stream, graph) in graphs.into_iter().enumerate() {
            session.replay_timed(graph, stream);
            for index in 0..size.launches {
                let index = round * size.launches + index;
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
    println!("synchronize {}", session.synchronize());
}

/// Launches and replays while the level `kernel` is recorded, while it is not, when this program subscribes to MSPTI itself, and once more while it is.
pub(crate) fn switched(count: u64) {
    let session = Session::open(1);
    let graph = session.capture_seen(0, || {
        session.launch("add", 0, 1_000_000, &[]);
        session.launch("matmul", 0, 1_000_001, &[]);
    });
    let library = Library::open_simulator().expect("the simulator");
    let library = library.simulator_face("libmspti.so").expect("MSPTI");
    let mspti = Mspti::load(&library);
    for part in 0..3 {
        if part == 1 {
            assert!(!own_subscription(&mspti), "MSPTI is taken");
        }
        if part > 0 {
            switch(part == 2);
        }
        if part == 1 {
            wait_for("MSPTI is given back", || own_subscription(&mspti));
        }
        if part == 2 {
            // It is taken again by the device's thread, which launches wake.
            wait_for("MSPTI is taken again", || {
                session.launch("add", 0, 2_000_000, &[]);
                session.synchronize();
                session.is_mspti_taken()
            });
        }
        for index in part * count..(part + 1) * count {
            session.launch("matmul", 0, index, &[]);
            session.replay_timed(graph, 0);
            session.synchronize();
        }
        assert!(serving_shim::flush(PATIENCE), "slices");
    }
    println!("switched twice");
    end(session);
}

/// Has the level `kernel` recorded or not, and waits until that is so.
fn switch(on: bool) {
    let levels: &[Level] = if on {
        &[Level::E2e, Level::Kernel]
    } else {
        &[Level::E2e]
    };
    let recorder = Recorder::get();
    let dir = recorder.directory().expect("a run");
    let control = control(&dir, SwitchCause::Level, levels, Duration::ZERO);
    store(&dir, &control);
    wait_for("the level is obeyed", || {
        recorder.includes(Level::Kernel) == on
    });
}

/// Subscribes to MSPTI, and gives it back; false if somebody else has it.
fn own_subscription(mspti: &Mspti) -> bool {
    let subscribe = mspti.msptiSubscribe.expect("a subscription");
    let unsubscribe = mspti.msptiUnsubscribe.expect("its end");
    let mut subscriber = null_mut();
    // SAFETY: `subscriber` is writable for the call.
    let is_ours = unsafe { subscribe(&raw mut subscriber, None, null_mut()) } == 0;
    // SAFETY: it is ours.
    assert!(!is_ours || unsafe { unsubscribe(subscriber) } == 0);
    is_ours
}

fn wait_for(what: &str, is_so: impl FnMut() -> bool) {
    let mut is_so = is_so;
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Launches on one device that are recorded, and on another one, of which nothing is recorded, replays of 1,000 kernels.
pub(crate) fn beside_a_device(replays: u64) {
    const LAUNCHES: u64 = 50;
    let session = Session::on(0, 1);
    session.launch("matmul", 0, 0, &[]); // records come from here on
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
