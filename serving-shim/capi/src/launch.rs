//! Kernel launches, by handle. They are timed on the host and on the device.

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

/// Value of `device` of `sa_profile_launch_walls` for an unknown device. Then there is no slice on a device.
pub const SA_PROFILE_NO_DEVICE: u32 = u32::MAX;

/// Maximum number of open launches of a thread. More are counted as failed.
const MAX_OPEN: usize = 256;

/// A launch that has begun on the calling thread. Only a number: ending it twice, on another thread, or in the child of a fork does nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// 0 if the launch is not recorded. Other values have a meaning only to this library.
    pub id: u64,
}

/// A launch that has begun and not ended.
struct Open {
    id: u64,
    /// Number of forks between the first process and this one. A launch that was copied by a fork belongs to the parent, and so do its events.
    forks: u32,
    /// Not dropped if its thread ends before the launch does: the device's runtime must not be called at that point.
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

/// Calls `act` with the open launches of the calling thread and returns its result. Returns `None` if the thread is ending, or if the call comes from within
/// `act`.
fn with_open<R>(act: impl FnOnce(&mut Vec<Open>) -> Option<R>) -> Option<R> {
    OPEN.try_with(|open| act(&mut *open.try_borrow_mut().ok()?))
        .ok()?
}

/// Stores an open launch for the calling thread and returns its new number. If there is no room, the launch is dropped and so counted as failed.
fn store(timed: Timed) -> Option<u64> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    if !HOOKED.swap(true, Ordering::Relaxed) {
        sa_recorder::host::run_after_fork(count_fork);
    }
    let has_room = with_open(|open| (open.len() < MAX_OPEN).then_some(()));
    has_room?; // before the launch is moved into `ManuallyDrop`: dropping it calls the device's runtime
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let forks = FORKS.load(Ordering::Relaxed);
    let timed = ManuallyDrop::new(timed);
    with_open(|open| {
        open.push(Open { id, forks, timed });
        Some(id)
    })
}

/// Returns the index of the open launch with this number, if it belongs to this thread and process.
fn position(open: &[Open], id: u64) -> Option<usize> {
    let forks = FORKS.load(Ordering::Relaxed);
    open.iter()
        .rposition(|launch| launch.id == id && launch.forks == forks)
}

/// Begins the launch of a kernel into a stream of the calling thread's context. Call this directly before the call that launches the kernel, and
/// `sa_profile_launch_end` directly after it. A null stream means the context's default stream. `grid` is the number of blocks, or 0 if it is unknown. The level is
/// `SA_PROFILE_LEVEL_KERNEL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_launch_begin(
    stream: *mut c_void,
    name: *const c_char,
    grid: u32,
) -> Launch {
    let none = Launch { id: 0 };
    if level::enabled(SA_PROFILE_LEVEL_KERNEL).is_none() {
        return none;
    }
    guarded(none, || {
        // SAFETY: guaranteed by the caller.
        let timed = Timed::begin(stream, &unsafe { text::name(name) }, grid);
        if !timed.is_recording() {
            return none;
        }
        store(timed).map_or(none, |id| Launch { id })
    })
}

/// Adds `count` args to the span on the host and the slice on the device. Args may be added until the launch ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sa_profile_launch_args(launch: Launch, args: *const Arg, count: usize) {
    if launch.id == 0 {
        return;
    }
    guarded((), || {
        with_open(|open| {
            let at = position(open, launch.id)?;
            let timed = &mut open[at].timed;
            // SAFETY: guaranteed by the caller.
            unsafe { arg::each(args, count, |key, value| timed.arg(key, value)) };
            Some(())
        });
    });
}

/// Ends a launch. `code` is the result of the call that launches the kernel: 0 if the kernel is in the stream. Any other code is shown on the host's span, and there
/// is no slice on the device. Does nothing if the launch has already ended or never began.
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

/// Records a finished run whose wall times on the host and the device are known from its runtime. The host's span is on the calling thread and begins at
/// `host_start_ns`, on the clock of `sa_profile_now_ns`. With `SA_PROFILE_ENDS_NOW` as `host_start_ns` it ends now. The slice on the device lasts `device_wall_ns` and
/// is centred within the span, because the time at which the device ran is not known. With `SA_PROFILE_NO_DEVICE` as `device` only the span is recorded.
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
    if level::enabled(SA_PROFILE_LEVEL_KERNEL).is_none() {
        return;
    }
    guarded((), || {
        // SAFETY: guaranteed by the caller.
        let name = unsafe { text::name(name) };
        // SAFETY: guaranteed by the caller.
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

/// Waits until all launches so far have their slices, for at most `patience_ns`. Returns true if they have. It does not wait for streams: synchronize them first, and
/// call this before the device's runtime is shut down.
#[unsafe(no_mangle)]
pub extern "C" fn sa_profile_launch_flush(patience_ns: u64) -> bool {
    guarded(false, || {
        serving_shim::flush(Duration::from_nanos(patience_ns))
    })
}
