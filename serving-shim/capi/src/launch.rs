//! Launches of kernels, by handle: timed on the host and on the device.

use std::cell::RefCell;
use std::ffi::{c_char, c_void};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use serving_shim::{Launch as Timed, Walls};

use crate::arg::{self, Arg};
use crate::call::guarded;
use crate::event::SA_PROFILE_ENDS_NOW;
use crate::level::{self, SA_PROFILE_LEVEL_KERNEL};
use crate::text;

/// As `device` of `sa_profile_launch_walls`: no device is named, and there is no slice on one.
pub const SA_PROFILE_NO_DEVICE: u32 = u32::MAX;

/// Launches of one thread that may be under way at a time; more count as failed.
const MAX_OPEN: usize = 256;

/// A launch under way on the thread that began it. Only a number: to end it twice, on another thread, or in the child of a fork does nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// 0 if it is not recorded; else of use to this library only.
    pub id: u64,
}

/// A launch under way.
struct Open {
    id: u64,
    /// How many forks this process is away from the first one: what a fork copied is the parent's, and its events too.
    forks: u32,
    /// Left as it is when its thread ends without it: then nothing may be asked of the device's runtime any more.
    timed: ManuallyDrop<Timed>,
}

thread_local! {
    static OPEN: RefCell<Vec<Open>> = const { RefCell::new(Vec::new()) };
}

static FORKS: AtomicU32 = AtomicU32::new(0);
static HOOKED: AtomicBool = AtomicBool::new(false);

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Does something with this thread's launches; `None` when the thread has ended, or from what is being done with them.
fn with_open<R>(act: impl FnOnce(&mut Vec<Open>) -> Option<R>) -> Option<R> {
    OPEN.try_with(|open| act(&mut *open.try_borrow_mut().ok()?))
        .ok()?
}

/// Keeps a launch under a new number. Where there is no room it is dropped, which counts it as failed.
fn keep(timed: Timed) -> Option<u64> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    if !HOOKED.swap(true, Ordering::Relaxed) {
        sa_recorder::host::run_after_fork(count_fork);
    }
    let has_room = with_open(|open| (open.len() < MAX_OPEN).then_some(()));
    has_room?; // before the launch is moved: to drop it calls the device's runtime
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let forks = FORKS.load(Ordering::Relaxed);
    let timed = ManuallyDrop::new(timed);
    with_open(|open| {
        open.push(Open { id, forks, timed });
        Some(id)
    })
}

/// Where a launch of this thread and process is.
fn position(open: &[Open], id: u64) -> Option<usize> {
    let forks = FORKS.load(Ordering::Relaxed);
    open.iter()
        .rposition(|one| one.id == id && one.forks == forks)
}

/// Begins a launch of a kernel into a stream of the calling thread's context: call it directly before the call that launches, and `sa_profile_launch_end`
/// directly after it. A null stream is the context's default one. `grid` is the number of blocks, 0 for unknown. Its level is `SA_PROFILE_LEVEL_KERNEL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_launch_begin(
    stream: *mut c_void,
    name: *const c_char,
    grid: u32,
) -> Launch {
    let none = Launch { id: 0 };
    if level::wanted(SA_PROFILE_LEVEL_KERNEL).is_none() {
        return none;
    }
    guarded(none, || {
        // SAFETY: the caller's.
        let timed = Timed::begin(stream, &unsafe { text::name(name) }, grid);
        if !timed.is_recording() {
            return none;
        }
        keep(timed).map_or(none, |id| Launch { id })
    })
}

/// Adds `count` args, to the span on the host and the slice on the device; until the launch ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_launch_args(launch: Launch, args: *const Arg, count: usize) {
    if launch.id == 0 {
        return;
    }
    guarded((), || {
        with_open(|open| {
            let at = position(open, launch.id)?;
            let timed = &mut open[at].timed;
            // SAFETY: the caller's.
            unsafe { arg::each(args, count, |key, value| timed.arg(key, value)) };
            Some(())
        });
    });
}

/// Ends a launch with what the launching call returned: 0 if the kernel is in the stream. Any other code is shown on the host's span, and there is no slice
/// on the device. Does nothing if the launch has ended already, or never began.
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_launch_end(launch: Launch, code: i32) {
    if launch.id != 0 {
        guarded((), || {
            let ended = with_open(|open| Some(open.remove(position(open, launch.id)?).timed));
            if let Some(timed) = ended {
                ManuallyDrop::into_inner(timed).end(code);
            }
        });
    }
}

/// Records a run whose runtime told both wall times when it had ended: a span on the host's thread, from `host_start_ns` (as `sa_profile_now_ns` counts) or,
/// with `SA_PROFILE_ENDS_NOW`, so that it ends now; and a slice of `device_wall_ns` on the device of that number, in the middle of it, since where within it the device worked is not
/// known. Without a device's number (`SA_PROFILE_NO_DEVICE`) the span alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_launch_walls(
    name: *const c_char,
    host_start_ns: u64,
    host_wall_ns: u64,
    device_wall_ns: u64,
    device: u32,
    args: *const Arg,
    count: usize,
) {
    if level::wanted(SA_PROFILE_LEVEL_KERNEL).is_none() {
        return;
    }
    guarded((), || {
        // SAFETY: the caller's.
        let name = unsafe { text::name(name) };
        // SAFETY: the caller's.
        let args = unsafe { arg::args(args, count) };
        let walls = Walls {
            name: &name,
            host_start_ns: (host_start_ns != SA_PROFILE_ENDS_NOW).then_some(host_start_ns),
            host_wall_ns,
            device_wall_ns,
            device: (device != SA_PROFILE_NO_DEVICE).then_some(device),
        };
        serving_shim::launch_walls(&walls, &args);
    });
}

/// Waits until the launches made so far have their slices, `patience_ns` at most; whether they have. It waits for no stream: call it where these have been waited for, before the device's runtime is shut down.
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_launch_flush(patience_ns: u64) -> bool {
    guarded(false, || {
        serving_shim::flush(Duration::from_nanos(patience_ns))
    })
}
