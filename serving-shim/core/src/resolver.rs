//! The work of a device's thread: finds the launches that have ended, reads their times, places them, and writes their slices.

use crate::clock::reader::ClockReader;
use crate::clock::{ClockWasSet, DeviceClock};
use crate::device_stream::DeviceStream;
use crate::pending::{Launched, Pending};
use crate::place::{Placed, Times, place};
use crate::pool::{Pair, Pool};
use crate::records::RecordTracks;
use crate::runtime::{Code, Context};
use crate::tally::{Fate, write_instant};
use crate::timing::Timing;
use crate::track::{DeviceGroup, write_slice};
use sa_recorder::{Args, Level, now_ns};
use std::sync::Arc;

/// Time between two readings of the clock, if a reading costs device time.
const READ_NS: u64 = 250_000_000;
/// ... the same for the first few.
const FIRST_READ_NS: u64 = 10_000_000;
const FIRST_READINGS: u32 = 8;
/// Age from which a launch counts as lost if a later launch has ended before it.
const STUCK_NS: u64 = 1_000_000_000;
/// Time between two records of the counts and of the clock.
const SHOW_NS: u64 = 1_000_000_000;

/// The state of a device's thread.
#[derive(Debug)]
pub(crate) struct Resolver {
    timing: &'static Timing,
    pool: Arc<Pool>,
    clock: DeviceClock,
    reader: ClockReader,
    read_ns: u64,
    readings: u32,
    streams: Vec<DeviceStream>,
    group: DeviceGroup,
    records: RecordTracks,
    /// The driver's number of the device.
    logical: u32,
    /// The calling thread's context, if the resolver has set it.
    context: Option<Context>,
    shown_ns: u64,
}

/// A launch that has ended, with its times if the runtime returned them.
struct Ended {
    stream: usize,
    pending: Pending,
    times: Result<Times, Code>,
}

impl Resolver {
    pub(crate) fn new(timing: &'static Timing, pool: Arc<Pool>) -> Resolver {
        let (runtime, user) = (&timing.runtime, pool.user);
        let physical = runtime.physical_device(user).unwrap_or(user);
        Resolver {
            timing,
            pool,
            clock: DeviceClock::default(),
            reader: ClockReader::default(),
            read_ns: 0,
            readings: 0,
            streams: Vec::new(),
            group: DeviceGroup::new(physical, runtime.is_simulated()),
            records: RecordTracks::default(),
            logical: runtime.logical_device(user).cast_unsigned(),
            context: None,
            shown_ns: 0,
        }
    }

    /// Adds new open launches (those without device times) to the streams to which they belong.
    pub(crate) fn add(&mut self, incoming: Vec<Pending>) {
        for pending in incoming {
            let id = pending.launched.stream_id;
            let at = self
                .streams
                .iter()
                .position(|stream| stream.stream_id == id);
            let at = at.unwrap_or_else(|| {
                self.streams.push(DeviceStream::new(id));
                self.streams.len() - 1
            });
            self.streams[at].pending.push_back(pending);
        }
    }

    /// Returns true if there is an open launch for which `is_wanted` returns true.
    pub(crate) fn has(&self, is_wanted: impl Fn(&Pending) -> bool) -> bool {
        let mut pending = self.streams.iter().flat_map(|stream| &stream.pending);
        pending.any(is_wanted)
    }

    /// Returns true if the device has no open launch, which means that the times of all launches are known.
    pub(crate) fn is_idle(&self) -> bool {
        !self.has(|_| true)
    }

    /// Writes the device's MSPTI records since the last call into the trace. Does nothing once the process ends and they are counted as lost.
    pub(crate) fn write_records(&mut self) {
        let Timing { mspti, tally, .. } = self.timing;
        if tally.gave_up_launches() {
            return;
        }
        let records = mspti.drain(self.logical);
        self.records.write(&self.group, records, tally);
        mspti.count_losses(tally);
    }

    /// Forgets which context the resolver has set, because the calling thread may have another one now.
    pub(crate) fn forget_context(&mut self) {
        self.context = None;
    }

    /// Checks once which open launches have ended, and writes their slices. Returns how many have ended. With `is_host`, on a thread of the host, it reads a
    /// known clock only if that is quick.
    pub(crate) fn poll(&mut self, is_host: bool) -> usize {
        self.write_outstanding();
        let ended = self.collect();
        // Read after the times: if it agrees with the previous reading, the clock was not set between them.
        let is_slow = is_host && self.clock.is_known() && !self.reader.is_free();
        let clock = self.read_clock(!ended.is_empty() && !is_slow);
        let ended = self.put_back(ended);
        let number = ended.len();
        let ended = ended.into_iter();
        let free = ended
            .filter_map(|ended| self.resolve(ended, clock))
            .collect();
        self.pool.release(free);
        if number > 0 {
            self.write_outstanding();
        }
        if now_ns().saturating_sub(self.shown_ns) > SHOW_NS {
            self.shown_ns = now_ns();
            self.timing.tally.show();
            self.write_clock();
        }
        number
    }

    /// Removes the open launches that have ended from their streams and returns them with their times, in the order of each stream.
    fn collect(&mut self) -> Vec<Ended> {
        let mut ended = Vec::new();
        for stream in 0..self.streams.len() {
            while !self.timing.gate.is_closed()
                && let Some(state) = self.state_of_oldest(stream)
                && let Some(pending) = self.streams[stream].pending.pop_front()
            {
                let times = state.and_then(|()| self.times(&pending));
                let times = times.inspect_err(|code| self.pool.notice(*code));
                ended.push(Ended {
                    stream,
                    pending,
                    times,
                });
            }
        }
        ended
    }

    /// Makes launches that cannot be placed open again, because the device's clock has not been read yet. Returns the others.
    fn put_back(&mut self, ended: Vec<Ended>) -> Vec<Ended> {
        if self.clock.is_known() || self.readings >= FIRST_READINGS {
            return ended;
        }
        let (wait, rest): (Vec<_>, Vec<_>) =
            ended.into_iter().partition(|ended| ended.times.is_ok());
        for ended in wait.into_iter().rev() {
            self.streams[ended.stream].pending.push_front(ended.pending);
        }
        rest
    }

    /// Returns whether the oldest open launch of a stream has ended or failed, or `None` if neither. If a later one has ended first, the oldest one will never
    /// end, because its stream was destroyed.
    fn state_of_oldest(&mut self, stream: usize) -> Option<Result<(), Code>> {
        const NEVER: Code = -1;
        let pending = &self.streams[stream].pending;
        let last = pending.len().checked_sub(1)?;
        let age_ns = now_ns().saturating_sub(pending[0].launched.returned_ns);
        match self.has_ended(stream, 0) {
            Ok(true) => Some(Ok(())),
            Ok(false) if age_ns < STUCK_NS => None,
            Ok(false) => (self.has_ended(stream, last) == Ok(true)).then_some(Err(NEVER)),
            Err(code) => Some(Err(code)),
        }
    }

    /// Returns true if the launch at the position `at` among the stream's open ones has ended.
    fn has_ended(&mut self, stream: usize, at: usize) -> Result<bool, Code> {
        let pending = &self.streams[stream].pending[at];
        let (runtime, context) = (&self.timing.runtime, pending.context);
        if self.context != Some(context) {
            runtime.enter(context)?;
            self.context = Some(context);
        }
        runtime.is_complete(pending.pair.end)
    }

    fn times(&self, pending: &Pending) -> Result<Times, Code> {
        let (runtime, pair) = (&self.timing.runtime, &pending.pair);
        Ok(Times {
            asked_ns: pending.launched.asked_ns,
            seen_ns: now_ns(),
            start: runtime.timestamp(pair.start)?,
            end: runtime.timestamp(pair.end)?,
            elapsed_ns: runtime.elapsed_ns(pair.start, pair.end)?,
        })
    }

    /// Reads the device's clock if `wanted`, and if that is cheap or the last reading is old. Fails if the clock was set.
    fn read_clock(&mut self, wanted: bool) -> Result<(), ClockWasSet> {
        let is_new = self.readings < FIRST_READINGS;
        let interval_ns = if is_new { FIRST_READ_NS } else { READ_NS };
        let is_due = now_ns().saturating_sub(self.read_ns) > interval_ns;
        if !wanted || !is_due && !self.reader.is_free() {
            return Ok(());
        }
        // Even if the reading fails, so that it is not repeated at every check.
        self.read_ns = now_ns();
        self.readings = self.readings.saturating_add(1);
        let Timing { runtime, gate, .. } = self.timing;
        let user = self.pool.user;
        let reading = self.reader.read(runtime, user, gate);
        if !self.reader.is_free() {
            self.forget_context();
        }
        let added = reading.map_or(Ok(()), |reading| self.clock.add(reading));
        added.inspect_err(|_| write_instant("device_clock_set", &Args::new().with("device", user)))
    }

    /// Writes the slice of a launch that has ended, or counts the reason why it has no slice. Returns its event pair, if it can be used again.
    fn resolve(&mut self, ended: Ended, clock: Result<(), ClockWasSet>) -> Option<Pair> {
        let Ended {
            stream,
            mut pending,
            times,
        } = ended;
        if self.timing.tally.gave_up_launches() {
            return None; // it is already counted
        }
        let Ok(times) = times else {
            self.timing.tally.end_launch(Fate::RejectedError);
            self.pool.destroy(&pending.pair);
            return None;
        };
        let placed = if !pending.pair.has_new_times(&times) {
            Err(Fate::RejectedStale)
        } else if clock.is_err() {
            Err(Fate::RejectedClockSet)
        } else {
            place(&self.clock, &times, self.streams[stream].end_ns())
        };
        match placed {
            Ok(placed) => self.show(stream, &pending.launched, &placed),
            Err(reason) => self.timing.tally.end_launch(reason),
        }
        Some(pending.pair)
    }

    /// Writes the slice of a launch into the trace, and counts the launch.
    fn show(&mut self, stream: usize, launched: &Launched, placed: &Placed) {
        let track = self.streams[stream].track(&self.group, placed);
        if let Some(track) = track {
            write_slice(track, launched, placed);
        }
        self.timing.tally.end_launch(match track {
            Some(_) => Fate::Timed,
            None => Fate::NoRow,
        });
    }

    /// Drops all open launches without calling the runtime, because the device is lost or the process ends. They are counted as lost.
    pub(crate) fn give_up(&mut self) {
        self.remove(|_| true);
    }

    /// Drops all open launches and destroys our events and our stream on the device.
    pub(crate) fn drop_all(&mut self) {
        self.drop_where(|_| true);
        self.reader.end(&self.timing.runtime);
        self.clock = DeviceClock::default();
        (self.read_ns, self.readings) = (0, 0);
    }

    /// Drops the open launches for which `is_affected` returns true, and destroys their event pairs.
    pub(crate) fn drop_where(&mut self, is_affected: impl Fn(&Pending) -> bool) {
        let removed = self.remove(is_affected);
        removed
            .iter()
            .for_each(|pending| self.pool.destroy(&pending.pair));
    }

    /// Removes the open launches for which `is_affected` returns true and returns them. They are counted as lost and have no slice.
    fn remove(&mut self, is_affected: impl Fn(&Pending) -> bool) -> Vec<Pending> {
        let mut removed = Vec::new();
        for stream in &mut self.streams {
            let (affected, rest): (Vec<_>, Vec<_>) =
                stream.pending.drain(..).partition(&is_affected);
            stream.pending.extend(rest);
            removed.extend(affected);
        }
        for _ in &removed {
            self.timing.tally.end_launch(Fate::Unresolved);
        }
        self.write_outstanding();
        removed
    }

    /// Writes a counter for each stream with the number of its open launches (those without device times), if that has changed.
    fn write_outstanding(&mut self) {
        let now = now_ns();
        for stream in &mut self.streams {
            stream.write_outstanding(&self.group, now);
        }
    }

    /// Writes the uncertainty and the drift of the device's clock into the trace.
    pub(crate) fn write_clock(&mut self) {
        let now = now_ns();
        let device_now = i64::try_from(now).ok().and_then(|now| self.clock.now(now));
        let Some((track, bounds)) = self.group.track("clock").zip(device_now) else {
            return;
        };
        let half_us = (bounds.high_ns - bounds.low_ns) as f64 / 2e3;
        let series = Args::new().with("us", half_us);
        track.counter(Level::Kernel, "clock uncertainty", now, &series);
        let (low, high) = self.clock.drift;
        let args = Args::new()
            .with("read_by", self.reader.method())
            .with("uncertainty_us", half_us)
            .with("drift_ppm", [low * 1e6, high * 1e6]);
        track.instant(Level::Kernel, "device", "clock", now, &args);
    }
}
