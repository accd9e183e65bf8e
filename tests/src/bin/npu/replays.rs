//! Graphs that are captured and replayed before the eyes of an interposer, beside launches.

use crate::end;
use crate::session::Session;
use ascend_sys::types::{
    MSPTI_ACTIVITY_KIND_KERNEL, aclmdlRI, msptiActivity, msptiBuffersCallbackCompleteFunc,
};
use ascend_sys::{Library, Mspti};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

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

/// The same, and dies: first it waits for what was read, then it launches once more.
pub(crate) fn killed(size: Size) {
    let session = Session::open(2);
    let graphs = work(&session, size);
    std::thread::sleep(Duration::from_millis(1500));
    session.replay_timed(graphs[0], 0);
    session.synchronize();
    // SAFETY: raise has no preconditions.
    unsafe { libc::raise(libc::SIGKILL) };
}

/// The same for who has subscribed to MSPTI itself; prints how many kernels it was told of.
pub(crate) fn subscribed(size: Size) {
    let library = Library::open_simulator().expect("the simulator");
    let library = library.simulator_face("libmspti.so").expect("MSPTI");
    let mspti = Mspti::load(&library);
    let session = Session::open(2);
    subscribe(&mspti);
    work(&session, size);
    finish(&mspti);
    println!("told of {} kernels", TOLD.load(Ordering::Relaxed));
    end(session);
}

/// Captures two graphs, replays them; what the program holds of them.
fn work(session: &Session, size: Size) -> [aclmdlRI; 2] {
    let graphs = [0, 1].map(|graph| {
        session.capture_seen(graph, || {
            for index in 0..size.kernels {
                let name = NAMES[usize::try_from(index).unwrap_or(0) % 3];
                session.launch(name, graph, 1_000_000 + index, &[]);
            }
        })
    });
    for round in 0..size.replays {
        for (stream, graph) in graphs.into_iter().enumerate() {
            session.replay_timed(graph, stream);
            for index in 0..size.launches {
                let index = round * size.launches + index;
                session.launch("matmul", stream, index, &[]);
            }
        }
        if round % 20 == 19 {
            session.synchronize();
            serving_shim::flush(Duration::from_millis(1));
            std::thread::sleep(Duration::from_millis(3));
        }
    }
    println!("synchronize {}", session.synchronize());
    graphs
}

static TOLD: AtomicU64 = AtomicU64::new(0);
/// `msptiActivityGetNextRecord`, for a callback that is told nothing.
static NEXT: AtomicUsize = AtomicUsize::new(0);
const BYTES: usize = 2 << 20;

unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, records: *mut usize) {
    let bytes = Box::leak(vec![0; BYTES].into_boxed_slice());
    // SAFETY: the place is writable for the call, as the others are.
    unsafe { buffer.write(bytes.as_mut_ptr()) };
    // SAFETY: as above.
    unsafe { size.write(BYTES) };
    // SAFETY: as above.
    unsafe { records.write(0) };
}

unsafe extern "C" fn completed(buffer: *mut u8, _: usize, valid: usize) {
    type Next = ascend_sys::mspti::msptiActivityGetNextRecord;
    // SAFETY: the number is that function's address.
    let next = unsafe { std::mem::transmute::<usize, Next>(NEXT.load(Ordering::Relaxed)) };
    let mut record: *mut msptiActivity = null_mut();
    // SAFETY: the buffer was given back with these records, `record` is writable for the call.
    while unsafe { next(buffer, valid, &raw mut record) } == 0 {
        TOLD.fetch_add(1, Ordering::Relaxed);
    }
}

fn subscribe(mspti: &Mspti) {
    let next = mspti.msptiActivityGetNextRecord.expect("a next record");
    NEXT.store(next as usize, Ordering::Relaxed);
    let mut subscriber = null_mut();
    let subscribe = mspti.msptiSubscribe.expect("a subscription");
    // SAFETY: `subscriber` is writable for the call.
    let code = unsafe { subscribe(&raw mut subscriber, None, null_mut()) };
    assert_eq!(code, 0);
    let register = mspti.msptiActivityRegisterCallbacks.expect("callbacks");
    let completed: msptiBuffersCallbackCompleteFunc = Some(completed);
    // SAFETY: both functions stay.
    assert_eq!(unsafe { register(Some(requested), completed) }, 0);
    let enable = mspti.msptiActivityEnable.expect("enabling");
    // SAFETY: takes an integer.
    assert_eq!(unsafe { enable(MSPTI_ACTIVITY_KIND_KERNEL) }, 0);
}

fn finish(mspti: &Mspti) {
    let disable = mspti.msptiActivityDisable.expect("disabling");
    // SAFETY: takes an integer.
    assert_eq!(unsafe { disable(MSPTI_ACTIVITY_KIND_KERNEL) }, 0);
    let flush = mspti.msptiActivityFlushAll.expect("a flush");
    // SAFETY: takes an integer.
    assert_eq!(unsafe { flush(0) }, 0);
}
