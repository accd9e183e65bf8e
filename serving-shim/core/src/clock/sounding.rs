//! Reading the device's clock between two looks at the host's: through the driver where that works, else through a stream of our own.

use crate::clock::Reading;
use crate::runtime::{Code, Context, DeviceRuntime, DeviceTime, Event, Stream};
use sa_recorder::now_ns;

/// Reads of which the shortest counts.
const READS: usize = 3;
/// How long the round trips of a reading may take together.
const ROUND_TRIPS_NS: u64 = 10_000_000;
/// Looks for the end of a round trip before other threads are let in between two.
const QUICK_LOOKS: u32 = 50;

/// How the clock of a device is read.
#[derive(Debug)]
pub(crate) enum Sounding {
    /// Not tried yet, or not successfully.
    Untried,
    /// Its counter, through the driver.
    Counter,
    /// An event in a stream that nobody else uses, of a context that a launch was made in.
    RoundTrip(Context, Stream, Event),
}

/// Whom a reading is made for.
pub(crate) struct Sounder<'a> {
    pub(crate) runtime: &'a dyn DeviceRuntime,
    pub(crate) device: i32,
    /// Whether a capture has begun: nothing may be asked any more.
    pub(crate) is_closed: &'a dyn Fn() -> bool,
}

impl Sounding {
    /// The word for the trace.
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Sounding::Counter => "counter",
            Sounding::RoundTrip(..) => "round_trip",
            Sounding::Untried => "none",
        }
    }

    /// Whether a reading is cheap and disturbs nobody.
    pub(crate) fn is_free(&self) -> bool {
        matches!(self, Sounding::Counter)
    }

    /// Reads the clock; finds out first how. The calling thread may have another context after it.
    pub(crate) fn read(&mut self, sounder: &Sounder<'_>) -> Option<Reading> {
        if let Sounding::Untried = self {
            *self = Sounding::find(sounder);
        }
        let runtime = sounder.runtime;
        match *self {
            Sounding::Counter => shortest(|| runtime.clock(sounder.device)),
            Sounding::RoundTrip(context, stream, event) => {
                runtime.enter(context).ok()?;
                let end = now_ns() + ROUND_TRIPS_NS;
                shortest(|| round_trip(sounder, stream, event, end))
            }
            Sounding::Untried => None,
        }
    }

    fn find(sounder: &Sounder<'_>) -> Sounding {
        let runtime = sounder.runtime;
        if runtime.clock(sounder.device).is_ok() {
            return Sounding::Counter;
        }
        let Ok(context) = runtime.context() else {
            return Sounding::Untried;
        };
        let Ok(stream) = runtime.create_stream() else {
            return Sounding::Untried;
        };
        match runtime.create_event() {
            Ok(event) => Sounding::RoundTrip(context, stream, event),
            Err(_) => {
                runtime.destroy_stream(stream);
                Sounding::Untried
            }
        }
    }

    /// Gives back what it uses of the device.
    pub(crate) fn end(&mut self, runtime: &dyn DeviceRuntime) {
        if let Sounding::RoundTrip(context, stream, event) = *self
            && runtime.enter(context).is_ok()
        {
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
    sounder: &Sounder<'_>,
    stream: Stream,
    event: Event,
    end_ns: u64,
) -> Result<DeviceTime, Code> {
    const GIVEN_UP: Code = -1;
    let runtime = sounder.runtime;
    if (sounder.is_closed)() {
        return Err(GIVEN_UP);
    }
    runtime.record(event, stream)?;
    let mut looks = 0;
    loop {
        if (sounder.is_closed)() || now_ns() > end_ns {
            return Err(GIVEN_UP);
        }
        if runtime.is_complete(event)? {
            return runtime.timestamp(event);
        }
        if looks < QUICK_LOOKS {
            looks += 1;
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}
