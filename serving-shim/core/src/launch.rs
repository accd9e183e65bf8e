//! A launch on the host: the event pair around it, its host span.

use crate::counts::count;
use crate::description::{Description, Kind};
use crate::device::Device;
use crate::graphs::{Kernels, RecordCount};
use crate::pending::{Launched, Pending};
use crate::pool::{NoPair, Pair};
use crate::runtime::stream_cache::{self, StreamFacts};
use crate::runtime::{Code, DeviceRuntime, Stream, thread};
use crate::shim::{Refusal, Shim};
use sa_recorder::{Args, Level, Recorder, SpanGuard, Value, now_ns};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A launch under way on the calling thread. Without [`Launch::end`] it counts as failed.
#[derive(Debug)]
#[must_use = "a launch ends when its outcome is told"]
pub struct Launch(Option<Open>);

#[derive(Debug)]
struct Open {
    shim: &'static Shim,
    span: SpanGuard,
    armed: Result<Armed, Refusal>,
    description: Description,
    args: Args,
    id: u64,
    began_ns: u64,
    /// Launches that this one stands for.
    stands_for: u32,
    /// Those of the graph that is replayed: it may be gone when the replay has ended.
    kernels: Option<Arc<Kernels>>,
    /// How many records there will be of what it runs, if MSPTI records.
    expected: Option<RecordCount>,
}

/// A pair whose start is in the stream.
#[derive(Debug)]
struct Armed {
    device: &'static Device,
    facts: StreamFacts,
    pair: Pair,
    asked_ns: u64,
    /// The thread's last error before it.
    error: Code,
}

impl Launch {
    /// A launch that is not recorded.
    pub(crate) const fn off() -> Launch {
        Launch(None)
    }

    /// Begins a launch of a kernel into a stream, which must be one of the calling thread's context; a null stream is its default one.
    ///
    /// Nothing happens unless the level `kernel` is recorded. `grid` is the number of blocks, 0 for unknown.
    pub fn begin(stream: *mut std::ffi::c_void, name: &str, grid: u32) -> Launch {
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
        Launch::open(Shim::get(), description, 1)
    }

    pub(crate) fn open(shim: &'static Shim, description: Description, stands_for: u32) -> Launch {
        let category = description.kind.category();
        // Before the event: an idle stream reaches it at once, and no arrow may lead back in time.
        let mut span = Recorder::get().span(Level::Kernel, category, &description.name.shown);
        let id = shim.next_id();
        describe(&mut span, &description, id);
        let armed = match try_arm(shim, &description) {
            Ok(armed) => {
                span.arg("stream", armed.facts.stream_id);
                Ok(armed)
            }
            Err(refusal) => {
                span.arg("not_timed", refusal.word());
                Err(refusal)
            }
        };
        let kernels = match description.kind {
            // In the child of a fork the lock may be one that its parent held.
            Kind::Graph(graph) if !Shim::is_forked() => shim.graphs.kernels(graph),
            _ => None,
        };
        let looks = shim.looks_for_kernels(description.kind);
        let expected = looks.then(|| match description.kind {
            Kind::Graph(_) => kernels
                .as_ref()
                .map_or_else(RecordCount::default, |one| one.records()),
            _ => RecordCount {
                kernels: 1,
                collectives: 0,
            },
        });
        Launch(Some(Open {
            shim,
            span,
            armed,
            description,
            args: Args::new(),
            id,
            began_ns: now_ns(),
            stands_for,
            kernels,
            expected,
        }))
    }

    /// Adds an argument to the span on the host and the slice on the device.
    pub fn arg(&mut self, key: &str, value: impl Value) {
        if let Some(open) = &mut self.0 {
            open.span.arg(key, &value);
            open.args.push(key, &value);
        }
    }

    /// Whether it is recorded: worth computing costly arguments for.
    pub fn is_recording(&self) -> bool {
        self.0.is_some()
    }

    /// Tells what the launch returned: 0 if it is in the stream now, else the runtime's code. That launch is shown on the host alone.
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
        let returned_ns = now_ns();
        drop(self.span);
        let (shim, runtime) = (self.shim, self.shim.runtime());
        let armed = match self.armed {
            Ok(armed) => armed,
            Err(refusal) => {
                thread::submitted();
                return count(refusal.counter(&shim.counts));
            }
        };
        if Shim::is_forked() {
            return; // the pair is the parent's
        }
        let stream = self.description.stream;
        // A single call that succeeds leaves no error. Who has no interposer may have made several.
        let error = match self.description.kind {
            Kind::Kernel | Kind::Memcpy | Kind::Graph(_) if thread::is_interposed() => armed.error,
            _ => runtime.last_error(),
        };
        let ended = thread::unnoticed_after(runtime, error, || {
            let ended = end_pair(shim, &armed, stream);
            if let Err(counter) = ended {
                count(counter);
                armed.device.pool.destroy(&armed.pair, runtime);
            }
            ended.is_ok()
        });
        if !ended {
            return;
        }
        armed.device.push(
            shim,
            Pending {
                launched: Launched {
                    description: self.description,
                    args: self.args,
                    id: self.id,
                    stream_id: armed.facts.stream_id,
                    tid: own_tid(),
                    asked_ns: armed.asked_ns,
                    began_ns: self.began_ns,
                    returned_ns,
                    stands_for: self.stands_for,
                    kernels: self.kernels,
                    expected: self.expected,
                },
                context: armed.facts.context,
                pair: armed.pair,
            },
        );
    }

    fn fail(self) {
        count(&self.shim.counts.failed);
        if let Ok(armed) = self.armed
            && !Shim::is_forked()
        {
            let runtime = self.shim.runtime();
            // The stream still reaches the start: the event cannot be used again before, so it goes.
            thread::unnoticed(runtime, || armed.device.pool.destroy(&armed.pair, runtime));
        }
    }
}

/// The calling thread's id, asked for once: in the child of a fork nothing of this is told.
fn own_tid() -> u32 {
    thread_local! {
        static TID: Cell<u32> = const { Cell::new(0) };
    }
    if TID.get() == 0 {
        TID.set(sa_recorder::host::tid());
    }
    TID.get()
}

fn describe(span: &mut SpanGuard, description: &Description, id: u64) {
    span.arg("launch", id);
    if let Some(raw) = &description.name.raw {
        span.arg("kernel", raw);
    }
    if description.grid > 0 {
        span.arg("grid", description.grid);
    }
    if description.bytes > 0 {
        span.arg("bytes", description.bytes);
    }
}

/// Puts the start of a pair into the stream, if that is safe now. The thread notices nothing of it.
fn try_arm(shim: &'static Shim, description: &Description) -> Result<Armed, Refusal> {
    let runtime = shim.timing_runtime()?;
    if shim.updates.has(description.stream) {
        return Err(Refusal::GraphUpdate);
    }
    let error = runtime.last_error();
    thread::unnoticed_after(runtime, error, || arm(shim, description, error))
}

fn arm(shim: &'static Shim, description: &Description, error: Code) -> Result<Armed, Refusal> {
    let (runtime, stream) = (shim.runtime(), description.stream);
    shim.look_for_capture(stream, description)?;
    let age = stream_cache::age();
    let cached = stream_cache::get(stream, age);
    let user = cached.map_or_else(|| runtime.device(), |facts| Ok(facts.device));
    let user = user.map_err(|_| Refusal::NoDevice)?;
    let device = shim.device(user).filter(|device| !device.is_closed());
    let device = device.ok_or(Refusal::NoDevice)?;
    let refused = |code| {
        device.noticed(shim, code);
        Refusal::Refused
    };
    let facts = cached.map_or_else(|| ask(runtime, user, stream), Ok);
    let facts = facts.map_err(refused)?;
    let pair = device.pool.take(runtime).map_err(|why| match why {
        NoPair::AllInUse => Refusal::NoPair,
        NoPair::Refused(code) => refused(code),
    })?;
    let asked_ns = now_ns();
    if let Err(code) = thread::record(runtime, pair.start, stream) {
        device.pool.destroy(&pair, runtime);
        return Err(refused(code));
    }
    if cached.is_none() {
        // Only now: the runtime has taken the event, so the stream is one of the thread's context.
        stream_cache::set(stream, age, facts);
    }
    Ok(Armed {
        device,
        facts,
        pair,
        asked_ns,
        error,
    })
}

/// Asks where a stream is.
fn ask(runtime: &dyn DeviceRuntime, device: i32, stream: Stream) -> Result<StreamFacts, Code> {
    Ok(StreamFacts {
        device,
        context: runtime.context()?,
        stream_id: runtime.stream_id(stream)?,
    })
}

/// Puts the end of a pair into the stream, if that is safe now; else what is to be counted. A capture that has begun behind the hooks' back ignores the end, and the pair is found to be stale.
fn end_pair(shim: &'static Shim, armed: &Armed, stream: Stream) -> Result<(), &'static AtomicU64> {
    if shim.gate.is_closed() {
        thread::look_for_submitted(shim.runtime());
        return Err(&shim.counts.captured);
    }
    thread::record(shim.runtime(), armed.pair.end, stream).map_err(|code| {
        armed.device.noticed(shim, code);
        &shim.counts.refused
    })
}

impl Refusal {
    fn word(self) -> &'static str {
        match self {
            Refusal::Captured => "captured",
            Refusal::CaptureUnknown => "capture_unknown",
            Refusal::GraphUpdate => "graph_update",
            Refusal::Paused => "paused",
            Refusal::NoPair => "no_pair",
            Refusal::NoDevice => "no_device",
            Refusal::Refused => "refused",
        }
    }

    fn counter(self, counts: &crate::counts::Counts) -> &AtomicU64 {
        match self {
            Refusal::Captured => &counts.captured,
            Refusal::CaptureUnknown => &counts.capture_unknown,
            Refusal::GraphUpdate => &counts.graph_update,
            Refusal::Paused => &counts.paused,
            Refusal::NoPair => &counts.no_pair,
            Refusal::NoDevice => &counts.no_device,
            Refusal::Refused => &counts.refused,
        }
    }
}
