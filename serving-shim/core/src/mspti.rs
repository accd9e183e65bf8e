//! MSPTI as a second source of device times: which kernels ran when, also those inside the replay of a graph.
//!
//! It is asked for only if nobody else has subscribed to it. Its buffers are read by the devices' threads.

mod buffers;
mod kernel;
mod vendor;

pub(crate) use kernel::Kernel;

use buffers::BUFFERS_OF_PROCESS;
use sa_recorder::{host, now_ns};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use vendor::{Names, Vendor};

/// Between two readings. What a kill loses is not older.
const READ_NS: u64 = 100_000_000;
/// Most kernels of a device that wait for its thread.
const MAX_WAITING: usize = 1 << 18;

/// The source.
#[derive(Debug, Default)]
pub(crate) struct Mspti {
    tried: AtomicBool,
    vendor: OnceLock<Vendor>,
    ended: AtomicBool,
    /// Held by whoever reads.
    names: Mutex<Names>,
    read_ns: AtomicU64,
    /// What the wall clock is ahead of the monotonic one.
    ahead_ns: AtomicI64,
    waiting: Mutex<BTreeMap<u32, Vec<Kernel>>>,
    dropped: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mspti {
    /// Begins to record, at the first call; `Err` is the reason why that cannot be, at that call alone.
    pub(crate) fn start(&self, simulated: bool) -> Result<bool, String> {
        if self.tried.swap(true, Ordering::AcqRel) {
            return Ok(false);
        }
        let vendor = Vendor::start(simulated)?;
        self.measure();
        Ok(self.vendor.set(vendor).is_ok())
    }

    /// Whether records come.
    pub(crate) fn is_running(&self) -> bool {
        self.vendor.get().is_some() && !self.ended.load(Ordering::Acquire)
    }

    /// Another profiler begins its work.
    pub(crate) fn pause(&self) {
        if let Some(vendor) = self.vendor.get().filter(|_| self.is_running()) {
            vendor.disable();
        }
    }

    /// It has ended it.
    pub(crate) fn resume(&self) {
        if let Some(vendor) = self.vendor.get().filter(|_| self.is_running()) {
            let _ = vendor.enable(); // it could before
        }
    }

    /// Reads what there is, if that is due.
    pub(crate) fn read(&self) {
        let is_due = now_ns().saturating_sub(self.read_ns.load(Ordering::Relaxed)) > READ_NS;
        if !self.is_running() || !is_due {
            return;
        }
        match self.names.try_lock() {
            Ok(mut names) => self.read_now(&mut names),
            Err(TryLockError::Poisoned(names)) => self.read_now(&mut names.into_inner()),
            Err(TryLockError::WouldBlock) => {} // somebody does it
        }
    }

    /// Ends recording, after which all that has run is read. Only the first call does; the others wait for it.
    pub(crate) fn end(&self) {
        if let Some(vendor) = self.vendor.get() {
            let mut names = lock(&self.names);
            if !self.ended.swap(true, Ordering::AcqRel) {
                vendor.disable();
                self.read_now(&mut names);
            }
        }
    }

    fn read_now(&self, names: &mut Names) {
        let Some(vendor) = self.vendor.get() else {
            return;
        };
        vendor.flush();
        let mut read: BTreeMap<u32, Vec<Kernel>> = BTreeMap::new();
        vendor.read(names, |kernel| {
            read.entry(kernel.device).or_default().push(kernel);
        });
        self.measure();
        let mut dropped = BUFFERS_OF_PROCESS.take_refused();
        let mut waiting = lock(&self.waiting);
        for (device, kernels) in read {
            let waiting = waiting.entry(device).or_default();
            let room = MAX_WAITING.saturating_sub(waiting.len());
            dropped += kernels.len().saturating_sub(room) as u64;
            waiting.extend(kernels.into_iter().take(room));
        }
        self.dropped.fetch_add(dropped, Ordering::Relaxed);
        self.read_ns.store(now_ns(), Ordering::Relaxed);
    }

    fn measure(&self) {
        let anchor = host::anchor();
        let ahead = anchor.realtime_ns.cast_signed() - anchor.monotonic_ns.cast_signed();
        self.ahead_ns.store(ahead, Ordering::Relaxed);
    }

    /// What the wall clock is ahead of the monotonic one, in ns.
    pub(crate) fn ahead_ns(&self) -> i64 {
        self.ahead_ns.load(Ordering::Relaxed)
    }

    /// The kernels of a device that were read since the last call.
    pub(crate) fn take(&self, device: u32) -> Vec<Kernel> {
        let mut waiting = lock(&self.waiting);
        waiting
            .get_mut(&device)
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Records that found no room since the last call.
    pub(crate) fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }
}
