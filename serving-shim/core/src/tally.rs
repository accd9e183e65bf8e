//! What became of the launches, and of MSPTI's records, counted. The trace shows it as counters.

use sa_recorder::Args;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counts {
    ($of:ident: $($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts since the process began.
        #[derive(Debug, Default)]
        pub(crate) struct $of {
            $($(#[$doc])* pub(crate) $name: AtomicU64,)*
        }

        impl $of {
            /// The counts that are not 0, and their sum.
            pub(crate) fn series(&self) -> (Args, u64) {
                let mut series = Args::new();
                let mut sum = 0;
                $(
                    let count = self.$name.load(Ordering::Relaxed);
                    if count > 0 {
                        series.push(stringify!($name), &count);
                        sum += count;
                    }
                )*
                (series, sum)
            }
        }
    };
}

counts! { Counts:
    /// Launches with a slice on the device.
    timed,
    /// Eager launches that sampling left out.
    not_sampled,
    /// Recorded on the host alone, since a stream was being captured.
    captured,
    /// ... since they update a captured graph, and run nothing.
    graph_update,
    /// ... since it could not be told whether a stream was being captured.
    capture_unknown,
    /// ... since another profiler was at work.
    paused,
    /// ... since all event pairs were in use.
    no_pair,
    /// ... since there was no device runtime, or the device was lost.
    no_device,
    /// ... since the runtime refused an event.
    refused,
    /// Launches that failed.
    failed,
    /// Slices left out: the device's times cannot be those of this launch.
    rejected_impossible,
    /// ... an event still had the time of an earlier launch.
    rejected_stale,
    /// ... the end came before the start.
    rejected_reversed,
    /// ... a clock was set meanwhile.
    rejected_clock_set,
    /// ... the runtime did not give the time.
    rejected_error,
    /// ... the device's clock could not be read, several times.
    rejected_no_clock,
    /// ... there was no row for it, for instance since nothing is recorded any longer.
    no_row,
    /// Launches still under way, or waiting for the clock, when the device was reset, the stream destroyed or the process ended.
    unresolved,
}

counts! { KernelCounts:
    /// Kernels with a slice by MSPTI's record.
    placed,
    /// Kernels of a replay, or launches, that a record was expected of in vain.
    missing,
    /// Records that contradict the events around their launch.
    impossible,
    /// Records of no launch that is recorded.
    of_no_launch,
    /// Records that found no room in a buffer, in our memory or on a row.
    no_room,
    /// Records without times, and what else could not be read.
    unreadable,
}

/// How many of something are under way, until the process ends.
#[derive(Debug, Default)]
pub(crate) struct InFlight(AtomicU64);

impl InFlight {
    /// Nobody waits any more.
    const OVER: u64 = u64::MAX;

    /// More are under way. Where nobody waits for them any more, they are counted as lost.
    pub(crate) fn begin(&self, number: u64, lost: &AtomicU64) -> bool {
        let is_waited_for = self.change(number, |in_flight| in_flight + number);
        if !is_waited_for {
            add(lost, number);
        }
        is_waited_for
    }

    /// They no longer are, and so many of them were `lost`. That is counted before, so that an exit misses none; it may count some twice.
    pub(crate) fn end(&self, number: u64, lost: u64, counter: &AtomicU64) {
        add(counter, lost);
        if !self.change(number, |in_flight| in_flight.saturating_sub(number)) {
            counter.fetch_sub(lost, Ordering::Relaxed); // all of them were given up
        }
    }

    /// Whether all were given up, and are counted.
    pub(crate) fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire) == Self::OVER
    }

    fn change(&self, number: u64, change: impl Fn(u64) -> u64) -> bool {
        if number == 0 {
            return !self.is_over();
        }
        let changed = |in_flight| (in_flight != Self::OVER).then(|| change(in_flight));
        let order = Ordering::AcqRel;
        self.0
            .fetch_update(order, Ordering::Acquire, changed)
            .is_ok()
    }

    /// Waits for nothing from now on; how many were under way.
    pub(crate) fn give_up(&self) -> u64 {
        match self.0.swap(Self::OVER, Ordering::AcqRel) {
            Self::OVER => 0,
            in_flight => in_flight,
        }
    }
}

/// Adds one.
pub(crate) fn count(counter: &AtomicU64) {
    add(counter, 1);
}

/// Adds several.
pub(crate) fn add(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_up_ends_no_second_time() {
        let (in_flight, lost) = (InFlight::default(), AtomicU64::new(0));
        assert!(in_flight.begin(5, &lost) && in_flight.begin(0, &lost));
        in_flight.end(2, 1, &lost);
        assert_eq!((in_flight.give_up(), in_flight.give_up()), (3, 0));
        in_flight.end(3, 3, &lost);
        assert_eq!(lost.load(Ordering::Relaxed), 1, "three are given up");
        assert!(!in_flight.begin(4, &lost) && !in_flight.begin(0, &lost));
        assert_eq!(lost.load(Ordering::Relaxed), 5);
    }

    #[test]
    fn only_what_happened_is_told() {
        let counts = Counts::default();
        assert_eq!(counts.series().1, 0);
        count(&counts.timed);
        count(&counts.timed);
        count(&counts.failed);
        assert_eq!(counts.series().1, 3);
    }
}
