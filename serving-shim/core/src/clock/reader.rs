//! Reads the device's clock between two reads of the host's clock: through the driver if that works, otherwise through a stream of our own.

use super::Reading;
use crate::gate::Gate;
use crate::runtime::ascend::Runtime;
use crate::runtime::{Bounds, Code, Context, Event, Stream};
use sa_recorder::now_ns;

/// Number of attempts for a reading. The shortest one counts.
const READS: usize = 3;
/// Time limit of all round trips of a reading.
const ROUND_TRIPS_NS: u64 = 10_000_000;
/// Number of checks for the end of a round trip before the thread yields between two checks.
const QUICK_CHECKS: u32 = 50;

/// The reader of a device's clock, by the method that works.
#[derive(Debug, Default)]
pub(crate) enum ClockReader {
    /// No method has worked yet.
    #[default]
    Untried,
    /// The device's counter, through the driver.
    Counter,
    /// An event in a stream that nobody else uses, in the context of a launch.
    RoundTrip(Context, Stream, Event),
}

impl ClockReader {
    /// Returns the name that the trace has for the method of reading the device's clock.
    pub(crate) fn method(&self) -> &'static str {
        match self {
            ClockReader::Counter => "counter",
            ClockReader::RoundTrip(..) => "round_trip",
            ClockReader::Untried => "none",
        }
    }

    /// Returns true if reading the device's clock is cheap and disturbs nobody.
    pub(crate) fn is_free(&self) -> bool {
        matches!(self, ClockReader::Counter)
    }

    /// Reads the clock of the device to which the program gives the number `user`. The first call chooses the method. Returns `None` while a stream is being
    /// captured, or if the reading fails. The calling thread may have another context afterwards.
    pub(crate) fn read(&mut self, runtime: &Runtime, user: i32, gate: &Gate) -> Option<Reading> {
        if gate.is_closed() {
            return None;
        }
        if let ClockReader::Untried = self {
            *self = ClockReader::find(runtime, user)?;
        }
        match *self {
            ClockReader::Counter => shortest(|| runtime.clock(user)),
            ClockReader::RoundTrip(context, stream, event) => {
                runtime.enter(context).ok()?;
                let end_ns = now_ns() + ROUND_TRIPS_NS;
                shortest(|| {
                    let is_over = || gate.is_closed() || now_ns() > end_ns;
                    round_trip(runtime, stream, event, is_over)
                })
            }
            ClockReader::Untried => None,
        }
    }

    fn find(runtime: &Runtime, user: i32) -> Option<ClockReader> {
        if runtime.clock(user).is_ok() {
            return Some(ClockReader::Counter);
        }
        let context = runtime.context().ok()?;
        let stream = runtime.create_stream().ok()?;
        let event = runtime.create_event();
        let event = event.inspect_err(|_| runtime.destroy_stream(stream));
        Some(ClockReader::RoundTrip(context, stream, event.ok()?))
    }

    /// Destroys the stream and the event with which the device's clock is read.
    pub(crate) fn end(&mut self, runtime: &Runtime) {
        if let ClockReader::RoundTrip(context, stream, event) = *self
            && runtime.enter(context).is_ok()
        {
            runtime.destroy_event(event);
            runtime.destroy_stream(stream);
        }
        *self = ClockReader::Untried;
    }
}

/// Calls `read`, which reads the device's clock, several times between two reads of the host's clock. Returns the reading for which those two are closest to
/// each other.
fn shortest(read: impl Fn() -> Result<Bounds, Code>) -> Option<Reading> {
    let readings = (0..READS).filter_map(|_| {
        let before = i64::try_from(now_ns()).ok()?;
        let Bounds { low_ns, high_ns } = read().ok()?;
        Some(Reading {
            device_ns: low_ns,
            // The counter may have had this value for up to a tick already.
            low_ns: before - (high_ns - low_ns),
            high_ns: i64::try_from(now_ns()).ok()?,
        })
    });
    readings.min_by_key(|reading| reading.high_ns - reading.low_ns)
}

/// Sends an event through a stream of the device, and returns the time on the device's clock at which the stream reached it. Gives up when `is_over` returns
/// true.
fn round_trip(
    runtime: &Runtime,
    stream: Stream,
    event: Event,
    is_over: impl Fn() -> bool,
) -> Result<Bounds, Code> {
    const GIVEN_UP: Code = -1;
    if is_over() {
        return Err(GIVEN_UP);
    }
    runtime.record(event, stream)?;
    let mut checks = 0;
    while !is_over() {
        if runtime.is_complete(event)? {
            return runtime.timestamp(event);
        }
        checks += 1;
        match checks < QUICK_CHECKS {
            true => std::hint::spin_loop(),
            false => std::thread::yield_now(),
        }
    }
    Err(GIVEN_UP)
}
