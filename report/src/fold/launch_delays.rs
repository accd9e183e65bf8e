//! Slices of devices → how long they were launched before they began.

use crate::gather::device_slice::DeviceSlice;
use crate::gather::value_record::ValueRecord;
use crate::quantiles::Ascending;
use crate::table::device_time::DeviceTime;
use std::collections::BTreeMap;
use std::io;
use trace_store::sorter::Sorter;

/// The launch delays of each device while slices come.
pub(crate) struct LaunchDelays<'a> {
    sorted: Sorter<'a, ValueRecord>,
    n: BTreeMap<u64, u64>,
}

impl<'a> LaunchDelays<'a> {
    pub(crate) fn new(sorted: Sorter<'a, ValueRecord>) -> LaunchDelays<'a> {
        LaunchDelays {
            sorted,
            n: BTreeMap::new(),
        }
    }

    pub(crate) fn take(&mut self, slice: &DeviceSlice) -> io::Result<()> {
        if slice.queue_ns < 0 {
            return Ok(());
        }
        let of = u64::from(slice.device);
        *self.n.entry(of).or_default() += 1;
        self.sorted.push(ValueRecord {
            of,
            ns: slice.queue_ns,
        })
    }

    /// Puts them into the devices.
    pub(crate) fn put(self, devices: &mut [DeviceTime]) -> io::Result<()> {
        let new = |(of, n): (u64, u64)| (of, Ascending::new(n));
        let mut delays: BTreeMap<u64, Ascending> = self.n.into_iter().map(new).collect();
        self.sorted.finish()?.each(|ValueRecord { of, ns }| {
            if let Some(device) = delays.get_mut(&of) {
                device.take(ns);
            }
            Ok(())
        })?;
        for device in devices {
            if let Some(delay) = delays.remove(&(device.process as u64)) {
                device.launch_delay = delay.finish();
            }
        }
        Ok(())
    }
}
