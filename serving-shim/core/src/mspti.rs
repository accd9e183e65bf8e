//! MSPTI, the vendor's log of the devices, which has the times of kernels, including kernels in the replay of a graph.
//!
//! It is only used if there is no other subscriber. The devices' threads read its buffers.

mod buffers;
mod vendor;

pub(crate) use vendor::Record;

use crate::gate::is_profiled;
use crate::lock::{lock, lock_until};
use crate::runtime::ascend::Runtime;
use crate::runtime::thread;
use crate::tally::{Fate, Tally, write_instant};
use buffers::BUFFERS_OF_PROCESS;
use sa_recorder::{Args, Level, Recorder, host, now_ns};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use vendor::Vendor;

/// Time between two readings.
const READ_NS: u64 = 100_000_000;
/// Maximum number of records of a device that may wait for its thread.
const MAX_WAITING: usize = 1 << 18;

/// Maximum time that a thread of the host waits while another thread is in a call of MSPTI.
const PATIENCE_NS: u64 = 1_000_000_000;
/// Time between two checks if MSPTI has been ended.
const NAP: Duration = Duration::from_micros(200);

/// The source of MSPTI's records.
#[derive(Debug, Default)]
pub(crate) struct Mspti {
    /// Handler that ends MSPTI at the exit of the process, or `None` if MSPTI is not used.
    at_exit: Option<extern "C" fn()>,
    /// Locked during calls of MSPTI.
    client: Mutex<Client>,
    is_running: AtomicBool,
    /// True once the process is ending. Then MSPTI is not called any more.
    ended: AtomicBool,
    read_ns: AtomicU64,
    waiting: Mutex<BTreeMap<u32, Vec<Record>>>,
    no_room: AtomicU64,
    unreadable: AtomicU64,
}

/// The connection to MSPTI.
#[derive(Debug, Default)]
struct Client {
    vendor: Option<Vendor>,
    /// True if MSPTI has refused. We do not try again.
    refused: bool,
    has_read: bool,
}

impl Client {
    /// Returns the functions of MSPTI while we are subscribed to it, otherwise `None`.
    fn subscribed(&mut self) -> Option<&mut Vendor> {
        self.vendor.as_mut().filter(|one| one.is_subscribed())
    }
}

impl Mspti {
    /// Creates the source of records from MSPTI, the vendor's log of the devices. It is not yet running. `at_exit` ends it at the exit of the process. Without
    /// it, MSPTI is not used.
    pub(crate) fn new(at_exit: Option<extern "C" fn()>) -> Mspti {
        Mspti {
            at_exit,
            ..Mspti::default()
        }
    }

    /// Returns true if MSPTI should record kernels now.
    fn is_wanted(&self) -> bool {
        let is_recorded = Recorder::get().includes(Level::Kernel);
        self.at_exit.is_some() && is_recorded && !is_profiled()
    }

    /// Makes MSPTI, the vendor's log of the devices, record kernels, if that is wanted and it has no other subscriber.
    pub(crate) fn start(&self, runtime: &Runtime) {
        let Some(at_exit) = self
            .at_exit
            .filter(|_| !self.is_running() && self.is_wanted())
        else {
            return;
        };
        // MSPTI may itself call the runtime.
        match thread::unnoticed(runtime, || self.subscribe(runtime.is_simulated(), at_exit)) {
            Ok(None) => {}
            Ok(Some(collectives)) => {
                write_instant("mspti", &Args::new().with("collectives", collectives));
            }
            Err(why) => {
                write_instant("mspti_unavailable", &Args::new().with("why", &*why));
                host::warn_once(&format!("device times only come from event pairs: {why}"));
            }
        }
    }

    /// Subscribes to MSPTI. Returns true if collectives are recorded too, `None` if recording has not started, and the reason if MSPTI refuses.
    fn subscribe(&self, simulated: bool, at_exit: extern "C" fn()) -> Result<Option<bool>, String> {
        let Some(mut client) = self.client_within(PATIENCE_NS) else {
            return Ok(None);
        };
        // While the client is locked: another profiler that starts now will stop us afterwards.
        let is_wanted = !self.ended.load(Ordering::Acquire) && self.is_wanted();
        if !is_wanted || client.refused || client.subscribed().is_some() {
            return Ok(None);
        }
        let vendor = client.vendor.take();
        let vendor = vendor.map_or_else(|| Vendor::load(simulated), Ok);
        let subscribed = vendor.and_then(|one| client.vendor.insert(one).subscribe());
        let collectives = subscribed.inspect_err(|_| client.refused = true)?;
        // Registered after MSPTI's handlers, so that ours runs before them.
        host::run_at_exit(at_exit);
        self.is_running.store(true, Ordering::Release);
        Ok(Some(collectives))
    }

    /// Returns true while MSPTI, the vendor's log of the devices, records kernels for us.
    pub(crate) fn is_running(&self) -> bool {
        self.is_running.load(Ordering::Acquire)
    }

    /// Reads MSPTI's records until now and ends our subscription, because another profiler starts or nothing is recorded any more. Does nothing if MSPTI is
    /// wanted again.
    pub(crate) fn stop(&self, runtime: &Runtime) {
        if self.at_exit.is_none() {
            return;
        }
        thread::unnoticed(runtime, || {
            if let Some(mut client) = self.client_within(PATIENCE_NS)
                && !self.ended.load(Ordering::Acquire)
                && !self.is_wanted()
            {
                self.release(&mut client);
            }
        });
    }

    fn release(&self, client: &mut Client) {
        self.is_running.store(false, Ordering::Release);
        self.read_all(client);
        if let Some(vendor) = &mut client.vendor {
            vendor.unsubscribe();
        }
    }

    /// Starts or stops MSPTI if necessary, and reads its records if the last reading is old. The devices' threads call this periodically.
    pub(crate) fn tend(&self, runtime: &Runtime) {
        if !self.is_wanted() {
            if self.is_running() {
                self.stop(runtime);
            }
            return;
        }
        self.start(runtime);
        let is_due = now_ns().saturating_sub(self.read_ns.load(Ordering::Relaxed)) > READ_NS;
        if self.is_running()
            && is_due
            && let Some(mut client) = self.client_within(0)
        {
            self.read_now(&mut client); // otherwise another thread is reading
        }
    }

    /// Reads MSPTI's records of all kernels that have run. MSPTI continues to record.
    pub(crate) fn read_last(&self) {
        if let Some(mut client) = self.client_within(PATIENCE_NS)
            && !self.ended.load(Ordering::Acquire)
        {
            self.read_all(&mut client);
            if let Some(vendor) = client.subscribed() {
                let _ = vendor.enable(); // it succeeded before
            }
        }
    }

    /// Ends our subscription before MSPTI shuts itself down, at the exit of the process. Waits for threads that are in a call of MSPTI, until the time
    /// `end_ns` at most.
    pub(crate) fn end(&'static self, end_ns: u64) {
        static DONE: AtomicBool = AtomicBool::new(false);
        if self.at_exit.is_none() {
            return;
        }
        let end = || {
            let mut client = lock(&self.client);
            if !self.ended.swap(true, Ordering::AcqRel) {
                self.release(&mut client);
            }
            DONE.store(true, Ordering::Release);
        };
        // On a separate thread, because a call that hangs in MSPTI must not keep the process alive.
        let is_ending = host::spawn_quiet("sa-mspti", end).is_ok();
        while is_ending && !DONE.load(Ordering::Acquire) && now_ns() < end_ns {
            host::sleep(NAP);
        }
        self.ended.store(true, Ordering::Release);
        self.is_running.store(false, Ordering::Release);
    }

    /// Locks the connection to MSPTI, if it becomes free within this many ns.
    fn client_within(&self, ns: u64) -> Option<MutexGuard<'_, Client>> {
        lock_until(&self.client, now_ns().saturating_add(ns))
    }

    /// Reads all of MSPTI's records, including the ones that it has not yet collected from the devices. It collects them when a kind is disabled.
    fn read_all(&self, client: &mut Client) {
        if let Some(vendor) = client.subscribed() {
            vendor.disable();
        }
        self.read_now(client);
    }

    fn read_now(&self, client: &mut Client) {
        if self.ended.load(Ordering::Acquire) {
            return;
        }
        let Some(vendor) = client.subscribed() else {
            return;
        };
        vendor.flush();
        let mut read: BTreeMap<u32, Vec<Record>> = BTreeMap::new();
        let unreadable = vendor.read(|record| {
            read.entry(record.device).or_default().push(record);
        });
        self.unreadable.fetch_add(unreadable, Ordering::Relaxed);
        let mut no_room = BUFFERS_OF_PROCESS.drain_refused();
        if let Some(at_exit) = self.at_exit
            && !read.is_empty()
            && !std::mem::replace(&mut client.has_read, true)
        {
            host::run_at_exit(at_exit); // parts of MSPTI are created with the first records
        }
        let mut waiting = lock(&self.waiting);
        for (device, records) in read {
            let waiting = waiting.entry(device).or_default();
            let room = MAX_WAITING.saturating_sub(waiting.len());
            no_room += records.len().saturating_sub(room) as u64;
            waiting.extend(records.into_iter().take(room));
        }
        self.no_room.fetch_add(no_room, Ordering::Relaxed);
        self.read_ns.store(now_ns(), Ordering::Relaxed);
    }

    /// Removes the waiting records of a device, by its driver's number, and returns them.
    pub(crate) fn drain(&self, device: u32) -> Vec<Record> {
        lock(&self.waiting).remove(&device).unwrap_or_default()
    }

    /// Adds MSPTI's records that were lost since the last call to the counts in `tally`.
    pub(crate) fn count_losses(&self, tally: &Tally) {
        tally.add(Fate::NoRoom, self.no_room.swap(0, Ordering::Relaxed));
        let unreadable = self.unreadable.swap(0, Ordering::Relaxed);
        tally.add(Fate::Unreadable, unreadable);
    }

    /// Adds the records that no thread will write any more to the counts in `tally`, because the process ends.
    pub(crate) fn count_rest(&self, tally: &Tally) {
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        let records = waiting.values().map(Vec::len).sum::<usize>();
        tally.add(Fate::NoRoom, records as u64);
        self.count_losses(tally);
    }
}
