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
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;
use vendor::{Names, Vendor};

/// Between two readings.
const READ_NS: u64 = 100_000_000;
/// Most kernels of a device that wait for its thread.
const MAX_WAITING: usize = 1 << 18;

/// How long a thread of the host waits for whoever is in a call of MSPTI.
const PATIENCE_NS: u64 = 1_000_000_000;
/// Between two looks.
const NAP: Duration = Duration::from_micros(200);

/// The source.
#[derive(Debug, Default)]
pub(crate) struct Mspti {
    /// Held by whoever calls MSPTI.
    client: Mutex<Client>,
    is_running: AtomicBool,
    /// The process ends: nothing is asked of it any more.
    ended: AtomicBool,
    read_ns: AtomicU64,
    /// What the wall clock is ahead of the monotonic one.
    ahead_ns: AtomicI64,
    waiting: Mutex<BTreeMap<u32, Vec<Kernel>>>,
    dropped: AtomicU64,
    unreadable: AtomicU64,
}

/// What there is to call.
#[derive(Debug, Default)]
struct Client {
    vendor: Option<Vendor>,
    /// It has refused, and is not asked again.
    refused: bool,
    names: Names,
    has_read: bool,
    /// Ends it, where the process does.
    at_exit: Option<extern "C" fn()>,
}

impl Client {
    /// MSPTI while we have subscribed to it.
    fn subscribed(&self) -> Option<&Vendor> {
        self.vendor.as_ref().filter(|one| one.is_subscribed())
    }

    fn subscribe(&mut self, simulated: bool) -> Result<Recorded, String> {
        let vendor = match self.vendor.take() {
            Some(vendor) => vendor,
            None => Vendor::load(simulated)?,
        };
        self.vendor.insert(vendor).subscribe()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What MSPTI records for us beside kernels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recorded {
    pub(crate) collectives: bool,
}

impl Mspti {
    /// Has kernels recorded from now on, where that is `wanted`; what is recorded, if that has begun. `Err` is the reason why that cannot be, at one
    /// call alone.
    /// `at_exit` is to end it: it is registered behind whatever MSPTI registers for the exit, so that it runs before that.
    pub(crate) fn start(
        &self,
        simulated: bool,
        at_exit: extern "C" fn(),
        wanted: impl Fn() -> bool,
    ) -> Result<Option<Recorded>, String> {
        if self.is_running() {
            return Ok(None);
        }
        let Some(mut client) = self.client_within(PATIENCE_NS) else {
            return Ok(None);
        };
        // With the client in hand: who begins to be in its way stops us after this.
        let is_wanted = !self.ended.load(Ordering::Acquire) && wanted();
        if !is_wanted || client.refused || client.subscribed().is_some() {
            return Ok(None);
        }
        self.measure();
        let subscribed = client.subscribe(simulated);
        let recorded = subscribed.inspect_err(|_| client.refused = true)?;
        client.at_exit = Some(at_exit);
        host::run_at_exit(at_exit);
        self.is_running.store(true, Ordering::Release);
        Ok(Some(recorded))
    }

    /// Whether records come.
    pub(crate) fn is_running(&self) -> bool {
        self.is_running.load(Ordering::Acquire)
    }

    /// Gives MSPTI back, unless it is `wanted` again: another profiler begins its work, or nothing is recorded any longer. What has run until now is read.
    pub(crate) fn stop(&self, wanted: impl Fn() -> bool) {
        if let Some(mut client) = self.client_within(PATIENCE_NS)
            && !self.ended.load(Ordering::Acquire)
            && !wanted()
        {
            self.give_back(&mut client);
        }
    }

    fn give_back(&self, client: &mut Client) {
        self.is_running.store(false, Ordering::Release);
        self.read_all(client);
        if let Some(vendor) = &mut client.vendor {
            vendor.unsubscribe();
        }
    }

    /// Reads what there is, if that is due.
    pub(crate) fn read(&self) {
        let is_due = now_ns().saturating_sub(self.read_ns.load(Ordering::Relaxed)) > READ_NS;
        if self.is_running()
            && is_due
            && let Some(mut client) = self.client_within(0)
        {
            self.read_now(&mut client); // else somebody does it
        }
    }

    /// Reads all that has run. Records of what runs later still come.
    pub(crate) fn read_last(&self) {
        if let Some(mut client) = self.client_within(PATIENCE_NS)
            && !self.ended.load(Ordering::Acquire)
        {
            self.read_all(&mut client);
            if let Some(vendor) = client.subscribed() {
                let _ = vendor.enable(); // it could before
            }
        }
    }

    /// MSPTI takes itself down next: gives it back, and waits until nobody is in a call of it; until `end_ns` at most.
    pub(crate) fn end(&'static self, end_ns: u64) {
        static DONE: AtomicBool = AtomicBool::new(false);
        let end = || {
            let mut client = lock(&self.client);
            if !self.ended.swap(true, Ordering::AcqRel) {
                self.give_back(&mut client);
            }
            DONE.store(true, Ordering::Release);
        };
        // On a thread of its own: who hangs in MSPTI must not keep the process.
        let is_ending = host::spawn_quiet("sa-mspti", end).is_ok();
        while is_ending && !DONE.load(Ordering::Acquire) && now_ns() < end_ns {
            host::sleep(NAP);
        }
        self.ended.store(true, Ordering::Release);
        self.is_running.store(false, Ordering::Release);
    }

    /// Who calls MSPTI, if that gets free in this time.
    fn client_within(&self, ns: u64) -> Option<MutexGuard<'_, Client>> {
        let end_ns = now_ns().saturating_add(ns);
        loop {
            match self.client.try_lock() {
                Ok(client) => return Some(client),
                Err(TryLockError::Poisoned(client)) => return Some(client.into_inner()),
                Err(TryLockError::WouldBlock) if now_ns() >= end_ns => return None,
                Err(TryLockError::WouldBlock) => host::sleep(NAP),
            }
        }
    }

    /// Reads also what MSPTI has yet to take from the devices, which it does where a kind is disabled.
    fn read_all(&self, client: &mut Client) {
        if let Some(vendor) = client.subscribed() {
            vendor.disable();
        }
        self.read_now(client);
    }

    fn read_now(&self, client: &mut Client) {
        let Client { vendor, names, .. } = client;
        let vendor = vendor.as_ref().filter(|one| one.is_subscribed());
        let Some(vendor) = vendor.filter(|_| !self.ended.load(Ordering::Acquire)) else {
            return;
        };
        vendor.flush();
        let mut read: BTreeMap<u32, Vec<Kernel>> = BTreeMap::new();
        let unreadable = vendor.read(names, |kernel| {
            read.entry(kernel.device).or_default().push(kernel);
        });
        self.measure();
        self.unreadable.fetch_add(unreadable, Ordering::Relaxed);
        let mut dropped = BUFFERS_OF_PROCESS.take_refused();
        if let Some(at_exit) = client.at_exit
            && !read.is_empty()
            && !std::mem::replace(&mut client.has_read, true)
        {
            host::run_at_exit(at_exit); // parts of MSPTI are made with the first records
        }
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

    /// Those that could not be read.
    pub(crate) fn take_unreadable(&self) -> u64 {
        self.unreadable.swap(0, Ordering::Relaxed)
    }
}
