//! Reading the device's clock between two looks at the host's: through the driver where that works, else through a stream of our own.

use crate::clock::Reading;
use crate::runtime::{Code, DeviceRuntime, DeviceTime, Event, Stream};
use sa_recorder::now_ns;

/// Reads of which the shortest counts.
const READS: usize = 5;
/// How long a round trip through the stream may take.
const ROUND_TRIP_NS: u64 = 20_000_000;

/// How the clock of a device is read.
#[derive(Debug)]
pub(crate) enum Sounding {
    /// Not tried yet.
    Untried,
    /// Its counter, through the driver.
    Counter,
    /// An event in a stream that nobody else uses.
    RoundTrip(Stream, Event),
    /// It cannot be read.
    Impossible,
}

impl Sounding {
    /// The word for the trace.
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Sounding::Counter => "counter",
            Sounding::RoundTrip(..) => "round_trip",
            Sounding::Untried | Sounding::Impossible => "none",
        }
    }

    /// Whether a reading is cheap and disturbs nobody.
    pub(crate) fn is_free(&self) -> bool {
        matches!(self, Sounding::Counter)
    }

    /// Reads the clock; finds out first how.
    pub(crate) fn read(&mut self, runtime: &dyn DeviceRuntime, device: i32) -> Option<Reading> {
        if let Sounding::Untried = self {
            *self = Sounding::find(runtime, device);
        }
        match self {
            Sounding::Counter => shortest(|| runtime.clock(device)),
            Sounding::RoundTrip(stream, event) => shortest(|| round_trip(runtime, *stream, *event)),
            Sounding::Untried | Sounding::Impossible => None,
        }
    }

    fn find(runtime: &dyn DeviceRuntime, device: i32) -> Sounding {
        if runtime.clock(device).is_ok() {
            return Sounding::Counter;
        }
        let Ok(stream) = runtime.create_stream() else {
            return Sounding::Impossible;
        };
        match runtime.create_event() {
            Ok(event) => Sounding::RoundTrip(stream, event),
            Err(_) => {
                runtime.destroy_stream(stream);
                Sounding::Impossible
            }
        }
    }

    /// Gives back what it uses of the device.
    pub(crate) fn end(&mut self, runtime: &dyn DeviceRuntime) {
        if let Sounding::RoundTrip(stream, event) = *self {
            runtime.destroy_event(event);
            runtime.destroy_stream(stream);
        }
        *self = Sounding::Untried;
    }
}

/// The reading whose two looks at the host's clock are the closest.
fn shortest(read: impl Fn() -> Result<DeviceTime, Code>) -> Option<Reading> {
    let readings = (0..READS).filter_map(|_| {
        let before = now_ns();
        let time = read().ok()?;
        reading(before, time, now_ns())
    });
    readings.min_by_key(|reading| reading.high_ns - reading.low_ns)
}

/// The counter stood at `time.ns`, or up to a grain later, somewhere between the two looks.
fn reading(before: u64, time: DeviceTime, after: u64) -> Option<Reading> {
    Some(Reading {
        device_ns: i64::try_from(time.ns).ok()?,
        low_ns: i64::try_from(before).ok()? - i64::try_from(time.grain_ns).ok()?,
        high_ns: i64::try_from(after).ok()?,
    })
}

fn round_trip(
    runtime: &dyn DeviceRuntime,
    stream: Stream,
    event: Event,
) -> Result<DeviceTime, Code> {
    let end = now_ns() + ROUND_TRIP_NS;
    runtime.record(event, stream)?;
    while !runtime.is_complete(event)? {
        if now_ns() > end {
            return Err(-1);
        }
        std::hint::spin_loop();
    }
    runtime.timestamp(event)
}
