//! What a device's thread does: asks which launches have ended, reads their times, places them, writes their slices.

use crate::clock::sounding::{Sounder, Sounding};
use crate::clock::{ClockWasSet, DeviceClock};
use crate::description::Kind;
use crate::device::Device;
use crate::group::DeviceGroup;
use crate::kernels::{Bracket, Kernels, OfPair, Shown, Sink};
use crate::pending::{Launched, Pending};
use crate::place::{Placed, Rejection, Times, held, place};
use crate::pool::Pair;
use crate::row::Row;
use crate::runtime::{Code, Context, DeviceRuntime, Event};
use crate::shim::{Shim, tell};
use crate::track::Method;
use sa_recorder::{Args, Level, now_ns};
use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;

/// Between two readings of the clock that cost the device something.
const SOUNDING_NS: u64 = 250_000_000;
/// ... the first few.
const FIRST_SOUNDING_NS: u64 = 10_000_000;
const FIRST_SOUNDINGS: u32 = 8;
/// A launch that long ago whose end was not reached while that of a later one was is taken for lost.
const STUCK_NS: u64 = 1_000_000_000;
/// Between two records of the counts and of the clock.
const TELL_NS: u64 = 1_000_000_000;

/// The state of a device's thread.
#[derive(Debug)]
pub(crate) struct Resolver {
    runtime: &'static dyn DeviceRuntime,
    user: i32,
    group: DeviceGroup,
    clock: DeviceClock,
    sounding: Sounding,
    sounded_ns: u64,
    soundings: u32,
    rows: Vec<Row>,
    kernels: Kernels,
    logical: u32,
    context: Option<Context>,
    told_ns: u64,
}

/// A launch that has ended, with its times if the runtime gave them.
struct Ended {
    row: usize,
    pending: Pending,
    times: Result<Times, Code>,
}

/// Nobody looks for the records of what a launch ran.
fn miss_records(shim: &Shim, launched: &Launched) {
    let records = launched.records();
    let missing = &shim.kernel_counts.missing;
    shim.records.end(records, records, missing);
}

fn is_replay(launched: &Launched) -> bool {
    matches!(launched.description.kind, Kind::Graph(_))
}

fn sink<'a>(group: &'a DeviceGroup, shim: &'a Shim) -> Sink<'a> {
    Sink {
        group,
        launches: &shim.counts,
        under_way: &shim.under_way,
        counts: &shim.kernel_counts,
        records: &shim.records,
    }
}

impl std::fmt::Debug for dyn DeviceRuntime {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("DeviceRuntime")
    }
}

impl Resolver {
    pub(crate) fn new(runtime: &'static dyn DeviceRuntime, user: i32) -> Resolver {
        let physical = runtime.physical_device(user).unwrap_or(user);
        let logical = runtime.logical_device(user).unwrap_or(user);
        Resolver {
            runtime,
            user,
            group: DeviceGroup::new(physical, runtime.is_simulated()),
            clock: DeviceClock::new(),
            sounding: Sounding::Untried,
            sounded_ns: 0,
            soundings: 0,
            rows: Vec::new(),
            kernels: Kernels::default(),
            logical: logical.cast_unsigned(),
            context: None,
            told_ns: 0,
        }
    }

    /// Takes over launches.
    pub(crate) fn take(&mut self, incoming: Vec<Pending>) {
        for pending in incoming {
            let id = pending.launched.stream_id;
            let at = self.rows.iter().position(|row| row.stream_id == id);
            let at = at.unwrap_or_else(|| {
                self.rows.push(Row::new(id));
                self.kernels.launched(id);
                self.rows.len() - 1
            });
            self.rows[at].pending.push_back(pending);
        }
    }

    /// Whether such a launch is under way.
    pub(crate) fn has(&self, is_wanted: impl Fn(&Pending) -> bool) -> bool {
        let mut all = self.rows.iter().flat_map(|row| &row.pending);
        all.any(is_wanted)
    }

    /// Whether nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.rows.iter().all(|row| row.pending.is_empty())
    }

    /// Whether records of kernels are waited for.
    pub(crate) fn waits_for_kernels(&self) -> bool {
        !self.kernels.is_idle()
    }

    /// Looks at MSPTI's records. At the `end` no more will come.
    pub(crate) fn look_for_kernels(&mut self, shim: &Shim, end: bool) {
        let first = |row: &Row| {
            let mut launches = row.pending.iter().map(|one| &one.launched);
            let replay = launches.find(|one| is_replay(one))?;
            Some((row.stream_id, replay.asked_ns))
        };
        self.kernels
            .replays_pending(self.rows.iter().filter_map(first));
        let sink = sink(&self.group, shim);
        self.kernels.pass(&shim.mspti, self.logical, &sink, end);
    }

    /// A launch has no slice, for this reason.
    fn lose(&mut self, shim: &Shim, launched: &Launched, reason: &AtomicU64) {
        shim.under_way.end(1, 1, reason);
        miss_records(shim, launched);
        if is_replay(launched) {
            self.kernels.replay_lost();
        }
    }

    /// The calling thread may have another context than the one this last entered.
    pub(crate) fn forget_context(&mut self) {
        self.context = None;
    }

    /// Looks once; how many launches are done with. A `visit` of another thread reads a clock that is known only where that is quick.
    pub(crate) fn pass(&mut self, shim: &'static Shim, device: &Device, visit: bool) -> usize {
        self.tell_outstanding();
        let ended = self.collect(shim, device);
        // After the times: what lies between two readings that agree was not moved by a clock that was set.
        let is_long = visit && self.clock.is_known() && !self.sounding.is_free();
        let clock = self.sound(shim, !ended.is_empty() && !is_long);
        let ended = self.put_back(ended);
        let number = ended.len();
        let free = ended.into_iter();
        let free = free.filter_map(|ended| self.resolve(shim, device, ended, clock));
        device.pool.give_back(free.collect());
        if number > 0 {
            self.tell_outstanding();
        }
        if now_ns().saturating_sub(self.told_ns) > TELL_NS {
            self.told_ns = now_ns();
            shim.tell_counts();
            self.tell_clock();
        }
        number
    }

    /// The launches that have ended, by row in the order of the stream.
    fn collect(&mut self, shim: &'static Shim, device: &Device) -> Vec<Ended> {
        let mut ended = Vec::new();
        for row in 0..self.rows.len() {
            while !shim.gate.is_closed() {
                let Some((pending, state)) = self.next_ended(row) else {
                    break;
                };
                let times = state.and_then(|()| self.times(&pending));
                if let Err(code) = times {
                    device.noticed(shim, code);
                }
                ended.push(Ended {
                    row,
                    pending,
                    times,
                });
            }
        }
        ended
    }

    /// Launches whose times nobody can place yet wait for the first reading of the clock. The others are returned.
    fn put_back(&mut self, ended: Vec<Ended>) -> Vec<Ended> {
        if self.clock.is_known() || self.soundings >= FIRST_SOUNDINGS {
            return ended;
        }
        let (wait, rest): (Vec<_>, Vec<_>) = ended.into_iter().partition(|one| one.times.is_ok());
        for one in wait.into_iter().rev() {
            self.rows[one.row].pending.push_front(one.pending);
        }
        rest
    }

    /// Takes the oldest launch of a row if it has ended, or failed. One that has not while a later one has never will: its stream was destroyed.
    fn next_ended(&mut self, row: usize) -> Option<(Pending, Result<(), Code>)> {
        const NEVER: Code = -1;
        let front = self.rows[row].pending.front()?;
        let (context, end) = (front.context, front.pair.end);
        let returned_ns = front.launched.returned_ns;
        let state = match self.is_complete(context, end) {
            Ok(true) => Ok(()),
            Ok(false) if now_ns().saturating_sub(returned_ns) < STUCK_NS => return None,
            Ok(false) => {
                let back = self.rows[row].pending.back()?;
                let (context, end) = (back.context, back.pair.end);
                if self.is_complete(context, end) != Ok(true) {
                    return None;
                }
                Err(NEVER)
            }
            Err(code) => Err(code),
        };
        let pending = self.rows[row].pending.pop_front()?;
        Some((pending, state))
    }

    fn is_complete(&mut self, context: Context, event: Event) -> Result<bool, Code> {
        self.enter(context)?;
        self.runtime.is_complete(event)
    }

    fn enter(&mut self, context: Context) -> Result<(), Code> {
        if self.context != Some(context) {
            self.runtime.enter(context)?;
            self.context = Some(context);
        }
        Ok(())
    }

    fn times(&self, pending: &Pending) -> Result<Times, Code> {
        let (seen_ns, pair) = (now_ns(), &pending.pair);
        Ok(Times {
            asked_ns: pending.launched.asked_ns,
            seen_ns,
            start: self.runtime.timestamp(pair.start)?,
            end: self.runtime.timestamp(pair.end)?,
            elapsed_ns: self.runtime.elapsed_ns(pair.start, pair.end)?,
        })
    }

    /// Reads the clock, where that is free or due.
    fn sound(&mut self, shim: &Shim, wanted: bool) -> Result<(), ClockWasSet> {
        let interval = if self.soundings < FIRST_SOUNDINGS {
            FIRST_SOUNDING_NS
        } else {
            SOUNDING_NS
        };
        let is_due = now_ns().saturating_sub(self.sounded_ns) > interval;
        if !wanted || !is_due && !self.sounding.is_free() {
            return Ok(());
        }
        // Whether it succeeds or not: one that fails is not tried at every look.
        self.sounded_ns = now_ns();
        self.soundings = self.soundings.saturating_add(1);
        let reading = self.sounding.read(&Sounder {
            runtime: self.runtime,
            device: self.user,
            is_closed: &|| shim.gate.is_closed(),
        });
        if !self.sounding.is_free() {
            self.forget_context();
        }
        let Some(reading) = reading else {
            return Ok(());
        };
        self.clock.add(reading).inspect_err(|_| {
            tell("device_clock_set", &Args::new().with("device", self.user));
        })
    }

    /// Writes the slice of a launch, or counts why there is none; its pair, if it can be used again.
    fn resolve(
        &mut self,
        shim: &'static Shim,
        device: &Device,
        ended: Ended,
        clock: Result<(), ClockWasSet>,
    ) -> Option<Pair> {
        let Ended {
            row: at,
            mut pending,
            times,
        } = ended;
        let counts = &shim.counts;
        if shim.under_way.is_over() {
            return None; // it is counted
        }
        let Ok(times) = times else {
            self.lose(shim, &pending.launched, &counts.rejected_error);
            device.pool.destroy(&pending.pair, self.runtime);
            return None;
        };
        let row = &self.rows[at];
        let placed = if !pending.pair.took(&times) {
            Err(&counts.rejected_stale)
        } else if clock.is_err() {
            Err(&counts.rejected_clock_set)
        } else {
            place(&self.clock, &times, row.end_ns()).map_err(|why| match why {
                Rejection::Impossible => &counts.rejected_impossible,
                Rejection::Reversed => &counts.rejected_reversed,
                Rejection::NoClock => &counts.rejected_no_clock,
            })
        };
        match placed {
            Ok(placed) => self.show(shim, at, pending.launched, &times, placed),
            Err(reason) => self.lose(shim, &pending.launched, reason),
        }
        Some(pending.pair)
    }

    /// Writes the slice of a launch, or has its kernels looked for.
    fn show(&mut self, shim: &Shim, at: usize, launched: Launched, times: &Times, placed: Placed) {
        let Some(track) = self.rows[at].track(&self.group, &placed) else {
            return self.lose(shim, &launched, &shim.counts.no_row);
        };
        let flow = shim.flow_id(launched.id);
        let sink = sink(&self.group, shim);
        let shown = Shown {
            launched,
            flow,
            track,
        };
        let expected = shown.launched.expected;
        match held(times).zip(expected) {
            Some((between, expected)) => {
                let (pair, clock) = (OfPair { placed, between }, self.clock.clone());
                let ahead_ns = shim.mspti.ahead_ns();
                let bracket = Bracket::new(pair, shown, expected, clock, ahead_ns);
                self.kernels.add(bracket, &sink);
            }
            None => {
                shown.write(&sink, &placed, Method::EventPair);
                miss_records(shim, &shown.launched);
                if is_replay(&shown.launched) {
                    self.kernels.replay_lost();
                }
            }
        }
    }

    /// Forgets what is under way without a call: the device is lost, or the process ends.
    pub(crate) fn give_up(&mut self, shim: &Shim) {
        let rows = self.rows.iter_mut();
        let pending: Vec<Pending> = rows.flat_map(|row| row.pending.drain(..)).collect();
        for pending in pending {
            self.lose(shim, &pending.launched, &shim.counts.unresolved);
        }
        self.tell_outstanding();
    }

    /// Drops what is under way, and everything of ours on the device.
    pub(crate) fn drop_all(&mut self, shim: &'static Shim, device: &Device) {
        self.drop_where(shim, device, |_| true);
        self.sounding.end(self.runtime);
        self.clock = DeviceClock::new();
        (self.sounded_ns, self.soundings) = (0, 0);
    }

    /// Drops what of the launches under way is to be dropped.
    pub(crate) fn drop_where(
        &mut self,
        shim: &'static Shim,
        device: &Device,
        goes: impl Fn(&Pending) -> bool,
    ) {
        let mut all_gone = VecDeque::new();
        for row in &mut self.rows {
            let (gone, rest): (VecDeque<_>, VecDeque<_>) =
                row.pending.drain(..).partition(|pending| goes(pending));
            row.pending = rest;
            all_gone.extend(gone);
        }
        for pending in all_gone {
            self.lose(shim, &pending.launched, &shim.counts.unresolved);
            device.pool.destroy(&pending.pair, self.runtime);
        }
        self.tell_outstanding();
    }

    /// How many launches are under way in each stream, where that changed.
    fn tell_outstanding(&mut self) {
        let now = now_ns();
        for row in &mut self.rows {
            row.tell_outstanding(&self.group, now);
        }
    }

    /// How well the clock is known.
    pub(crate) fn tell_clock(&mut self) {
        let now = now_ns();
        let device_now = i64::try_from(now).ok().and_then(|now| self.clock.now(now));
        let Some((track, bounds)) = self.group.track("clock").zip(device_now) else {
            return;
        };
        let half_us = (bounds.high_ns - bounds.low_ns) as f64 / 2e3;
        let series = Args::new().with("us", half_us);
        track.counter(Level::Kernel, "clock uncertainty", now, &series);
        let (low, high) = self.clock.drift_ppm();
        let args = Args::new()
            .with("read_by", self.sounding.method())
            .with("uncertainty_us", half_us)
            .with("drift_ppm", [low, high]);
        track.instant(Level::Kernel, "device", "clock", now, &args);
    }
}
