//! MSPTI's mapping from a device's clock to the host's wall clock. It is exact at one time, and extrapolates from there with the nominal frequency.

use crate::clock::DeviceClock;
use crate::config;

/// The anchor of a device.
#[derive(Default)]
pub(crate) struct Anchor {
    /// Number of renewals.
    renewed: u64,
    renewed_ns: u64,
    ticks: u64,
    realtime_ns: u64,
}

impl Anchor {
    /// Renews the anchor if it is due, with the configured error, alternately early and late.
    pub(crate) fn renew(
        &mut self,
        settings: &config::Mspti,
        (now_ns, realtime_ns): (u64, u64),
        clock: &DeviceClock,
    ) {
        if self.renewed > 0 && now_ns - self.renewed_ns < settings.anchor_ns {
            return;
        }
        self.renewed_ns = now_ns;
        self.ticks = clock.ticks(now_ns);
        self.realtime_ns = match self.renewed.is_multiple_of(2) {
            true => realtime_ns - settings.anchor_off_ns,
            false => realtime_ns + settings.anchor_off_ns,
        };
        self.renewed += 1;
    }

    /// Converts a time of the device to the wall clock.
    pub(crate) fn realtime_ns(&self, ticks: u64, clock: &DeviceClock) -> u64 {
        let passed = i128::from(clock.ns(ticks)) - i128::from(clock.ns(self.ticks));
        u64::try_from(i128::from(self.realtime_ns) + passed).unwrap_or(0)
    }
}
