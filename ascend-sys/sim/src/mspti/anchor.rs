//! MSPTI's idea of a device's clock on the host's wall clock: right at one time, from which it counts on by the nominal frequency.

use crate::clock::DeviceClock;
use crate::config;

/// The anchor of a device.
#[derive(Default)]
pub(crate) struct Anchor {
    /// How often it was renewed.
    renewed: u64,
    renewed_ns: u64,
    ticks: u64,
    realtime_ns: u64,
}

impl Anchor {
    /// Renews it, if it is due. It is off by what its setting says, in turns early and late.
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

    /// A time of the device on the wall clock.
    pub(crate) fn realtime_ns(&self, ticks: u64, clock: &DeviceClock) -> u64 {
        let passed = i128::from(clock.ns(ticks)) - i128::from(clock.ns(self.ticks));
        u64::try_from(i128::from(self.realtime_ns) + passed).unwrap_or(0)
    }
}
