//! The work of a device's thread: asks which launches have ended, reads their times, places them, writes their slices.

use crate::clock::reader::ClockReader;
use crate::clock::{ClockWasSet, DeviceClock};
use crate::pending::{Launched, Pending};
use crate::place::{Placed, Times, place};
use crate::pool::{Pair, Pool};
use crate::records::RecordRows;
use crate::row::Row;
use crate::runtime::{Code, Context};
use crate::tally::{Fate, write_instant};
use crate::timing::Timing;
use crate::track::{DeviceGroup, write_slice};
use sa_recorder::{Args, Level, now_ns};
use std::sync::Arc;

/// Time between two readings of the clock, if a reading costs the device something.
const READ_NS: u64 = 250_000_000;
/// ... the same for the first few.
const FIRST_READ_NS: u64 = 10_000_000;
const FIRST_READINGS: u32 = 8;
/// A launch counts as lost if it is this old and its end was not reached, but the end of a later one was.
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
    rows: Vec<Row>,
    group: DeviceGroup,
    records: RecordRows,
    /// The driver's number of the device.
    logical: u32,
    /// The context that the calling thread has, if this has entered it.
    context: Option<Context>,
    shown_ns: u64,
}

/// A launch that has ended, with its times if the runtime gave them.
struct Ended {
    row: usize,
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
            rows: Vec::new(),
            group: DeviceGroup::new(physical, runtime.is_simulated()),
            records: RecordRows::default(),
            logical: runtime.logical_device(user).cast_unsigned(),
            context: None,
            shown_ns: 0,
        }
    }

    /// Takes over launches.
    pub(crate) fn take(&mut self, incoming: Vec<Pending>) {
        for pending in incoming {
            let id = pending.launched.stream_id;
            let at = self.rows.iter().position(|row| row.stream_id == id);
            let at = at.unwrap_or_else(|| {
                self.rows.push(Row::new(id));
                self.rows.len() - 1
            });
            self.rows[at].pending.push_back(pending);
        }
    }

    /// Returns true if such a launch is under way.
    pub(crate) fn has(&self, is_wanted: impl Fn(&Pending) -> bool) -> bool {
        let mut all = self.rows.iter().flat_map(|row| &row.pending);
        all.any(is_wanted)
    }

    /// Returns true if nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        !self.has(|_| true)
    }

    /// Writes MSPTI's records of the device that have come since the last call, unless the process ends and they are counted.
    pub(crate) fn write_records(&mut self) {
        let Timing { mspti, tally, .. } = self.timing;
        if tally.gave_up_launches() {
            return;
        }
        let records = mspti.take(self.logical);
        self.records.write(&self.group, records, tally);
        mspti.count_losses(tally);
    }

    /// Notes that the calling thread may have another context than the one that this entered last.
    pub(crate) fn forget_context(&mut self) {
        self.context = None;
    }

    /// Looks once. Returns how many launches have ended. On a `visit` of another thread it reads a clock that is known only if that is quick.
    pub(crate) fn pass(&mut self, visit: bool) -> usize {
        self.write_outstanding();
        let ended = self.collect();
        // After the times: a clock that was set did not move what is between two readings that agree.
        let is_long = visit && self.clock.is_known() && !self.reader.is_free();
        let clock = self.read_clock(!ended.is_empty() && !is_long);
        let ended = self.put_back(ended);
        let number = ended.len();
        let ended = ended.into_iter();
        let free = ended
            .filter_map(|ended| self.resolve(ended, clock))
            .collect();
        self.pool.give_back(free);
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

    /// Takes the launches that have ended, by row in the order of the stream.
    fn collect(&mut self) -> Vec<Ended> {
        let mut ended = Vec::new();
        for row in 0..self.rows.len() {
            while !self.timing.gate.is_closed()
                && let Some(state) = self.state_of_oldest(row)
                && let Some(pending) = self.rows[row].pending.pop_front()
            {
                let times = state.and_then(|()| self.times(&pending));
                let times = times.inspect_err(|code| self.pool.notice(*code));
                ended.push(Ended {
                    row,
                    pending,
                    times,
                });
            }
        }
        ended
    }

    /// Puts launches back that cannot be placed before the first reading of the clock. Returns the others.
    fn put_back(&mut self, ended: Vec<Ended>) -> Vec<Ended> {
        if self.clock.is_known() || self.readings >= FIRST_READINGS {
            return ended;
        }
        let (wait, rest): (Vec<_>, Vec<_>) = ended.into_iter().partition(|one| one.times.is_ok());
        for one in wait.into_iter().rev() {
            self.rows[one.row].pending.push_front(one.pending);
        }
        rest
    }

    /// Returns the outcome of the oldest launch of a row, if it has ended or failed. If a later one has ended first, it never will: its stream was
    /// destroyed.
    fn state_of_oldest(&mut self, row: usize) -> Option<Result<(), Code>> {
        const NEVER: Code = -1;
        let pending = &self.rows[row].pending;
        let last = pending.len().checked_sub(1)?;
        let age_ns = now_ns().saturating_sub(pending[0].launched.returned_ns);
        match self.has_ended(row, 0) {
            Ok(true) => Some(Ok(())),
            Ok(false) if age_ns < STUCK_NS => None,
            Ok(false) => (self.has_ended(row, last) == Ok(true)).then_some(Err(NEVER)),
            Err(code) => Some(Err(code)),
        }
    }

    /// Asks if a launch of a row has ended.
    fn has_ended(&mut self, row: usize, at: usize) -> Result<bool, Code> {
        let pending = &self.rows[row].pending[at];
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

    /// Reads the clock, if that is free or due.
    fn read_clock(&mut self, wanted: bool) -> Result<(), ClockWasSet> {
        let is_new = self.readings < FIRST_READINGS;
        let interval_ns = if is_new { FIRST_READ_NS } else { READ_NS };
        let is_due = now_ns().saturating_sub(self.read_ns) > interval_ns;
        if !wanted || !is_due && !self.reader.is_free() {
            return Ok(());
        }
        // Even if the reading fails: it is not tried again at every look.
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

    /// Writes the slice of a launch, or counts the reason why it has no slice. Returns its pair, if it can be used again.
    fn resolve(&mut self, ended: Ended, clock: Result<(), ClockWasSet>) -> Option<Pair> {
        let Ended {
            row,
            mut pending,
            times,
        } = ended;
        if self.timing.tally.gave_up_launches() {
            return None; // it is counted
        }
        let Ok(times) = times else {
            self.timing.tally.end_launch(Fate::RejectedError);
            self.pool.destroy(&pending.pair);
            return None;
        };
        let placed = if !pending.pair.took(&times) {
            Err(Fate::RejectedStale)
        } else if clock.is_err() {
            Err(Fate::RejectedClockSet)
        } else {
            place(&self.clock, &times, self.rows[row].end_ns())
        };
        match placed {
            Ok(placed) => self.show(row, &pending.launched, &placed),
            Err(reason) => self.timing.tally.end_launch(reason),
        }
        Some(pending.pair)
    }

    /// Writes the slice of a launch.
    fn show(&mut self, row: usize, launched: &Launched, placed: &Placed) {
        let track = self.rows[row].track(&self.group, placed);
        if let Some(track) = track {
            write_slice(track, launched, placed);
        }
        self.timing.tally.end_launch(match track {
            Some(_) => Fate::Timed,
            None => Fate::NoRow,
        });
    }

    /// Forgets what is under way without a call: the device is lost, or the process ends.
    pub(crate) fn give_up(&mut self) {
        self.remove(|_| true);
    }

    /// Drops everything of ours on the device.
    pub(crate) fn drop_all(&mut self) {
        self.drop_where(|_| true);
        self.reader.end(&self.timing.runtime);
        self.clock = DeviceClock::default();
        (self.read_ns, self.readings) = (0, 0);
    }

    /// Drops such launches, and destroys their pairs.
    pub(crate) fn drop_where(&mut self, goes: impl Fn(&Pending) -> bool) {
        let gone = self.remove(goes);
        gone.iter().for_each(|one| self.pool.destroy(&one.pair));
    }

    /// Removes such launches, which have no slice then.
    fn remove(&mut self, goes: impl Fn(&Pending) -> bool) -> Vec<Pending> {
        let mut gone = Vec::new();
        for row in &mut self.rows {
            let (goes, stays): (Vec<_>, Vec<_>) = row.pending.drain(..).partition(&goes);
            row.pending.extend(stays);
            gone.extend(goes);
        }
        for _ in &gone {
            self.timing.tally.end_launch(Fate::Unresolved);
        }
        self.write_outstanding();
        gone
    }

    /// Writes how many launches are under way in each stream, where that has changed.
    fn write_outstanding(&mut self) {
        let now = now_ns();
        for row in &mut self.rows {
            row.write_outstanding(&self.group, now);
        }
    }

    /// Writes how well the clock is known.
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
