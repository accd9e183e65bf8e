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
    fn only_what_happened_is_told() {
        let counts = Counts::default();
        assert_eq!(counts.series().1, 0);
        count(&counts.timed);
        count(&counts.timed);
        count(&counts.failed);
        assert_eq!(counts.series().1, 3);
    }
}
