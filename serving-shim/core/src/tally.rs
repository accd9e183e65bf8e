//! Counts the outcomes of launches and of MSPTI's records. The trace shows the counts as counters.

use sa_recorder::{Args, Level, Recorder, host, now_ns};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! fates {
    ($($(#[$doc:meta])* $fate:ident $name:literal,)*) => {
        /// The outcome of a launch or of an MSPTI record.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Fate {
            $($(#[$doc])* $fate,)*
        }

        /// Names of the fates in the trace.
        const NAMES: &[&str] = &[$($name,)*];
    };
}

fates! {
    /// A launch with a slice on the device.
    Timed "timed",
    /// An eager launch that sampling skipped.
    NotSampled "not_sampled",
    /// A launch that was only recorded on the host, because a stream was being captured.
    Captured "captured",
    /// ... because it updates a captured graph and does not run.
    GraphUpdate "graph_update",
    /// ... because the runtime does not know whether a stream is being captured.
    CaptureUnknown "capture_unknown",
    /// ... because another profiler was running.
    Paused "paused",
    /// ... because all event pairs were in use.
    NoPair "no_pair",
    /// ... because there was no device runtime, or the device was lost.
    NoDevice "no_device",
    /// ... because the runtime refused an event.
    Refused "refused",
    /// A launch that failed.
    Failed "failed",
    /// A launch without a slice, because the device's times cannot belong to it.
    RejectedImpossible "rejected_impossible",
    /// ... because an event still had the time of an earlier launch.
    RejectedStale "rejected_stale",
    /// ... because the end was before the start.
    RejectedReversed "rejected_reversed",
    /// ... because a clock was set in the meantime.
    RejectedClockSet "rejected_clock_set",
    /// ... because the runtime did not return the time.
    RejectedError "rejected_error",
    /// ... because the device's clock could not be read several times.
    RejectedNoClock "rejected_no_clock",
    /// ... because there was no track for it, for example after the end of recording.
    NoRow "no_row",
    /// A launch that had not ended or was waiting for the clock when the device was reset, the stream was destroyed or the process ended.
    Unresolved "unresolved",
    /// An MSPTI record with a slice.
    Placed "placed",
    /// A record that was dropped, because a buffer or our memory was full, there was no track, or the process ended first.
    NoRoom "no_room",
    /// A record without times, or anything else that could not be read.
    Unreadable "unreadable",
}

impl Fate {
    /// Returns the name that the trace has for this outcome of a launch or MSPTI record.
    pub(crate) fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

/// The first outcome of records. The ones before it are outcomes of launches.
const FIRST_OF_RECORDS: usize = Fate::Placed as usize;

/// The counts since the process began.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    counts: [AtomicU64; NAMES.len()],
    /// Number of launches whose pair is in a stream and which have no slice yet.
    launches: InFlight,
    /// Sums of the counts that are already in the trace.
    shown_launches: AtomicU64,
    shown_records: AtomicU64,
}

impl Tally {
    /// Counts one launch or MSPTI record with the outcome `fate`.
    pub(crate) fn count(&self, fate: Fate) {
        self.add(fate, 1);
    }

    /// Counts several launches or MSPTI records with the outcome `fate`.
    pub(crate) fn add(&self, fate: Fate, number: u64) {
        self.counts[fate as usize].fetch_add(number, Ordering::Relaxed);
    }

    /// Counts a launch as open: it is in a stream and has no slice yet. At the end of the process, counts it as lost instead and returns false.
    pub(crate) fn begin_launch(&self) -> bool {
        let is_awaited = self.launches.begin();
        if !is_awaited {
            self.count(Fate::Unresolved);
        }
        is_awaited
    }

    /// Ends an open launch with the outcome `fate`. The outcome is counted first, so that an exit misses no launch, although it may count one twice.
    pub(crate) fn end_launch(&self, fate: Fate) {
        self.count(fate);
        if !self.launches.end() && fate != Fate::Timed {
            // `Tally::give_up` has counted it too.
            self.counts[fate as usize].fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Returns true if the process ends and the open launches were counted as lost.
    pub(crate) fn gave_up_launches(&self) -> bool {
        self.launches.0.load(Ordering::Acquire) == InFlight::OVER
    }

    /// Counts all open launches (those without device times) as lost, because the process ends.
    pub(crate) fn give_up(&self) {
        self.add(Fate::Unresolved, self.launches.give_up());
    }

    /// Writes the counts of outcomes into the trace, if they have changed.
    pub(crate) fn show(&self) {
        let (launches, records) = (0..FIRST_OF_RECORDS, FIRST_OF_RECORDS..NAMES.len());
        self.show_series("launches", launches, &self.shown_launches);
        self.show_series("kernel records", records, &self.shown_records);
    }

    fn show_series(&self, name: &str, fates: Range<usize>, shown: &AtomicU64) {
        let recorder = Recorder::get();
        let (series, sum) = self.series(fates);
        if !recorder.includes(Level::Kernel) || shown.swap(sum, Ordering::Relaxed) == sum {
            return;
        }
        if let Some(thread) = recorder.thread_track(host::tid()) {
            thread.counter(Level::Kernel, name, now_ns(), &series);
        }
    }

    /// Returns the counts of these outcomes that are not 0, by name, and their sum.
    fn series(&self, fates: Range<usize>) -> (Args, u64) {
        let (mut series, mut sum) = (Args::new(), 0);
        let counts = self.counts.iter().zip(NAMES);
        for (count, name) in counts.take(fates.end).skip(fates.start) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                series.push(name, &count);
                sum += count;
            }
        }
        (series, sum)
    }
}

/// Number of open launches, until the process ends.
#[derive(Debug, Default)]
struct InFlight(AtomicU64);

impl InFlight {
    /// Value after the launches were given up.
    const OVER: u64 = u64::MAX;

    /// Adds one launch to the open ones. Returns false if the open launches were already given up.
    fn begin(&self) -> bool {
        self.change(|in_flight| in_flight + 1)
    }

    /// Removes one launch from the open ones. Returns false if the open launches were already given up.
    fn end(&self) -> bool {
        self.change(|in_flight| in_flight.saturating_sub(1))
    }

    fn change(&self, change: impl Fn(u64) -> u64) -> bool {
        let changed = |in_flight| (in_flight != Self::OVER).then(|| change(in_flight));
        let (set, fetch) = (Ordering::AcqRel, Ordering::Acquire);
        self.0.fetch_update(set, fetch, changed).is_ok()
    }

    /// Gives up all open launches, so that none can be added or removed any more. Returns how many there were.
    fn give_up(&self) -> u64 {
        match self.0.swap(Self::OVER, Ordering::AcqRel) {
            Self::OVER => 0,
            in_flight => in_flight,
        }
    }
}

/// Writes an instant that reports something about the timing of launches itself.
pub(crate) fn write_instant(name: &str, args: &Args) {
    Recorder::get().instant(Level::Kernel, "sa_profile", name, args);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count_of(tally: &Tally, fate: Fate) -> u64 {
        tally.counts[fate as usize].load(Ordering::Relaxed)
    }

    #[test]
    fn a_launch_that_was_given_up_does_not_end_again() {
        let tally = Tally::default();
        assert!(tally.begin_launch() && tally.begin_launch());
        tally.end_launch(Fate::RejectedStale);
        tally.give_up();
        tally.give_up();
        let counts = || [Fate::RejectedStale, Fate::Unresolved].map(|fate| count_of(&tally, fate));
        assert_eq!(counts(), [1, 1], "the one that had ended, and the one left");
        tally.end_launch(Fate::RejectedStale);
        assert_eq!(counts(), [1, 1]);
        assert!(!tally.begin_launch() && tally.gave_up_launches());
        assert_eq!(counts(), [1, 2]);
    }
}
