//! A launch on the host: its event pair, and its span.

use crate::description::{Description, Kind};
use crate::device::Device;
use crate::pending::{Launched, Pending};
use crate::pool::Pair;
use crate::process;
use crate::runtime::stream_cache::{self, StreamPlace};
use crate::runtime::{Code, Stream, thread};
use crate::shim::{Shim, is_forked};
use crate::tally::Fate;
use sa_recorder::{Args, Level, Recorder, SpanGuard, Value, now_ns};
use std::cell::Cell;
use std::ffi::c_void;

/// A launch that has begun on the calling thread. If it is dropped without [`Launch::end`], it counts as failed.
#[derive(Debug)]
#[must_use = "a launch ends when its outcome is reported"]
pub struct Launch(Option<Open>);

#[derive(Debug)]
struct Open {
    shim: &'static Shim,
    span: SpanGuard,
    armed: Result<Armed, Fate>,
    /// The launch so far. The later times are filled in as they become known.
    launched: Launched,
}

/// A pair whose start is in the stream.
#[derive(Debug)]
struct Armed {
    device: &'static Device,
    place: StreamPlace,
    pair: Pair,
    asked_ns: u64,
    /// The thread's last error before the pair.
    error: Code,
}

/// The outcome of a closure that launches.
pub trait Outcome {
    /// Returns the code of the launching call, which is 0 if the launch is in the stream.
    fn code(&self) -> i32;
}

impl Outcome for i32 {
    fn code(&self) -> i32 {
        *self
    }
}

impl Outcome for () {
    fn code(&self) -> i32 {
        0
    }
}

impl<T, E> Outcome for Result<T, E> {
    fn code(&self) -> i32 {
        if self.is_ok() { 0 } else { -1 }
    }
}

/// Calls the closure `launch` and times the launch that it makes into a stream of the calling thread's context. A null stream means the default stream.
/// Returns the closure's result.
pub fn launch_timed<R: Outcome>(stream: *mut c_void, name: &str, launch: impl FnOnce() -> R) -> R {
    let timed = Launch::begin(stream, name, 0);
    let result = launch();
    timed.end(result.code());
    result
}

impl Launch {
    /// Returns a launch object that records nothing.
    pub(crate) const fn off() -> Launch {
        Launch(None)
    }

    /// Begins the launch of a kernel into a stream of the calling thread's context. A null stream means the default stream.
    ///
    /// Does nothing unless the level `kernel` is recorded. `grid` is the number of blocks, or 0 if it is unknown.
    pub fn begin(stream: *mut c_void, name: &str, grid: u32) -> Launch {
        if !Recorder::get().includes(Level::Kernel) {
            return Launch::off();
        }
        let description = Description {
            kind: Kind::Kernel,
            name: name.to_owned().into(),
            stream: Stream(stream as usize),
            grid,
            bytes: 0,
        };
        Launch::open(process::shim(), description, 1)
    }

    pub(crate) fn open(shim: &'static Shim, description: Description, stands_for: u32) -> Launch {
        let kind = description.kind;
        // Opened before the event is recorded: an idle stream reaches the event at once, and the arrow must not point back in time.
        let name = &description.name.shown;
        let mut span = Recorder::get().span(Level::Kernel, kind.category(), name);
        let (id, flow) = shim.next_ids();
        span.arg("launch", id);
        description.args(|key, value| span.arg(key, value));
        let armed = try_arm(shim, &description);
        let id_and_time = |armed: &Armed| (armed.place.stream_id, armed.asked_ns);
        let (stream_id, asked_ns) = armed.as_ref().map_or((0, 0), id_and_time);
        match &armed {
            Ok(_) => span.arg("stream", stream_id),
            Err(refusal) => span.arg("not_timed", refusal.name()),
        }
        let kernels = match kind {
            // In the child of a fork, the lock may be locked forever, because the parent held it.
            Kind::Graph(graph) if !is_forked() => shim.graphs.kernels(graph),
            _ => None,
        };
        let launched = Launched {
            description,
            args: Args::new(),
            id,
            flow,
            stream_id,
            tid: 0,
            asked_ns,
            began_ns: now_ns(),
            returned_ns: 0,
            stands_for,
            kernels,
        };
        Launch(Some(Open {
            shim,
            span,
            armed,
            launched,
        }))
    }

    /// Adds an arg to the launch's span on the host and to its slice on the device.
    pub fn arg(&mut self, key: &str, value: impl Value) {
        if let Some(open) = &mut self.0 {
            open.span.arg(key, &value);
            open.launched.args.push(key, &value);
        }
    }

    /// Returns true if the launch is recorded. Check this before computing expensive arguments.
    pub fn is_recording(&self) -> bool {
        self.0.is_some()
    }

    /// Ends the launch. `code` is what the launching call returned: 0 if the launch is in the stream now. With any other code, the launch is only shown on the
    /// host.
    pub fn end(mut self, code: i32) {
        match self.0.take() {
            Some(open) => open.end(code),
            None if code == 0 => thread::submitted(),
            None => {}
        }
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        if let Some(open) = self.0.take() {
            open.fail();
        }
    }
}

impl Open {
    fn end(mut self, code: i32) {
        if code != 0 {
            self.span.arg("error", code);
            return self.fail();
        }
        let mut launched = self.launched;
        launched.returned_ns = now_ns();
        drop(self.span);
        let (shim, runtime) = (self.shim, &self.shim.timing.runtime);
        let armed = match self.armed {
            Ok(armed) => armed,
            Err(refusal) => {
                thread::submitted();
                return shim.timing.tally.count(refusal);
            }
        };
        if is_forked() {
            return; // the pair belongs to the parent
        }
        let Description { kind, stream, .. } = launched.description;
        // A single successful call leaves no error, but a program without an interposer may have made several calls.
        let error = match kind {
            Kind::Kernel | Kind::Memcpy | Kind::Graph(_) if thread::is_interposed() => armed.error,
            _ => runtime.last_error(),
        };
        let ended = thread::unnoticed_after(runtime, error, || {
            let ended = armed.end_pair(shim, stream);
            ended.inspect_err(|_| armed.device.pool.destroy(&armed.pair))
        });
        if let Err(fate) = ended {
            return shim.timing.tally.count(fate);
        }
        launched.tid = own_tid();
        armed.device.push(Pending {
            launched,
            context: armed.place.context,
            pair: armed.pair,
        });
    }

    fn fail(self) {
        let timing = &self.shim.timing;
        timing.tally.count(Fate::Failed);
        if let Ok(armed) = self.armed
            && !is_forked()
        {
            // The stream has yet to reach the start, so the event cannot be used again before that.
            let destroy = || armed.device.pool.destroy(&armed.pair);
            thread::unnoticed(&timing.runtime, destroy);
        }
    }
}

/// Returns the calling thread's id in the Linux kernel. The system call is made once per thread. The child of a fork never calls this.
fn own_tid() -> u32 {
    thread_local! {
        static TID: Cell<u32> = const { Cell::new(0) };
    }
    if TID.get() == 0 {
        TID.set(sa_recorder::host::tid());
    }
    TID.get()
}

/// Puts the start event of a launch's event pair into the stream, if that is safe now. Otherwise returns the reason. The program does not notice it.
fn try_arm(shim: &'static Shim, description: &Description) -> Result<Armed, Fate> {
    let runtime = shim.timing_runtime()?;
    if shim.timing.gate.is_updating(description.stream) {
        return Err(Fate::GraphUpdate);
    }
    let error = runtime.last_error();
    thread::unnoticed_after(runtime, error, || arm(shim, description, error))
}

fn arm(shim: &'static Shim, description: &Description, error: Code) -> Result<Armed, Fate> {
    let (runtime, stream) = (&shim.timing.runtime, description.stream);
    shim.check_for_capture(description)?;
    let age = stream_cache::age();
    let cached = stream_cache::get(stream, age);
    let user = cached.map_or_else(|| runtime.device().ok(), |place| Some(place.device));
    let user = user.ok_or(Fate::NoDevice)?;
    let device = shim.device(user).filter(|one| !one.pool.is_closed());
    let device = device.ok_or(Fate::NoDevice)?;
    let refused = |code| {
        device.pool.notice(code);
        Fate::Refused
    };
    let place = match cached {
        Some(place) => place,
        None => StreamPlace {
            device: user,
            context: runtime.context().map_err(refused)?,
            stream_id: runtime.stream_id(stream).map_err(refused)?,
        },
    };
    let pair = device.pool.acquire()?;
    let asked_ns = now_ns();
    if let Err(code) = thread::record(runtime, pair.start, stream) {
        device.pool.destroy(&pair);
        return Err(refused(code));
    }
    if cached.is_none() {
        // Only now, because the runtime has accepted the event, so the stream belongs to the thread's context.
        stream_cache::set(stream, age, place);
    }
    Ok(Armed {
        device,
        place,
        pair,
        asked_ns,
        error,
    })
}

impl Armed {
    /// Puts the end event of a launch's event pair into the stream, if that is safe now. A capture that began without a hook ignores the event. Then the pair
    /// is later found to be stale.
    fn end_pair(&self, shim: &Shim, stream: Stream) -> Result<(), Fate> {
        let runtime = &shim.timing.runtime;
        if shim.timing.gate.is_closed() {
            thread::check_for_submitted(runtime);
            return Err(Fate::Captured);
        }
        thread::record(runtime, self.pair.end, stream).map_err(|code| {
            self.device.pool.notice(code);
            Fate::Refused
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closures_result_is_returned() {
        assert_eq!(launch_timed(std::ptr::null_mut(), "a", || 107_000), 107_000);
        let failed: Result<(), &str> = Err("no");
        assert_eq!(launch_timed(std::ptr::null_mut(), "a", || failed), failed);
        launch_timed(std::ptr::null_mut(), "a", || {});
    }
}
