//! MSPTI, as the vendor's library behaves: what the devices log of kernels and collectives becomes records in buffers of a client's.
//!
//! A thread of its own reads the log late, newest first, and puts times on the host's wall clock by an anchor that is renewed from time to time. It
//! asks the client for a buffer when it has none. Another thread gives back a buffer that is nearly full; the others are given back by a flush.
//! Records without room are dropped. At the exit of the process it takes itself down, with handlers that it registers when it is first needed.

use crate::Outcome;
use crate::clock::{now_ns, realtime_ns};
use crate::config::{self, config};
use crate::device::Device;
use crate::refuse;
use crate::wait::lock;
use anchor::Anchor;
use ascend_sys::mspti::{msptiActivityCommunication, msptiActivityKernel};
use ascend_sys::types::*;
use client::Client;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

mod anchor;
mod client;

/// Time between two reads of the devices' logs.
const READ: Duration = Duration::from_millis(5);
/// The kinds for which the library must have been preloaded.
const PRELOADED: [msptiActivityKind; 2] = [MSPTI_ACTIVITY_KIND_HCCL, MSPTI_ACTIVITY_KIND_MEMORY];

/// A kernel or a collective that has run, as a device logs it.
pub(crate) struct Ran {
    pub(crate) device: Arc<Device>,
    pub(crate) stream: i32,
    pub(crate) correlation: u64,
    pub(crate) name: String,
    /// The communicator of a collective.
    pub(crate) comm: Option<Arc<str>>,
    /// Start and end, by the device's clock.
    pub(crate) ticks: (u64, u64),
}

/// The library, with its one client.
pub(crate) struct Mspti {
    settings: config::Mspti,
    /// A bit for each kind that is enabled.
    enabled: AtomicU32,
    correlations: AtomicU64,
    log: Mutex<Vec<Ran>>,
    /// Held while the log is read.
    reader: Mutex<Reader>,
    subscriber: Mutex<Subscriber>,
    client: Client,
    /// True once it has given records back.
    flushed: AtomicBool,
}

/// True from the end of the process on: parts of MSPTI are gone.
static OVER: AtomicBool = AtomicBool::new(false);

extern "C" fn take_down() {
    OVER.store(true, Ordering::Release);
}

fn take_down_at_exit() {
    // SAFETY: the handler is a function of this library, which is never unloaded.
    unsafe { libc::atexit(take_down) };
}

#[derive(Default)]
struct Subscriber {
    /// Number of the current one; 0 for none.
    current: usize,
    last: usize,
    /// True once it has enabled a kind: the devices' channels are its own until it unsubscribes.
    has_channels: bool,
    reads: bool,
}

#[derive(Default)]
struct Reader {
    anchors: HashMap<u32, Anchor>,
    names: Names,
}

/// The texts of records. Each of them exists once, and stays where it is.
#[derive(Default)]
struct Names(HashMap<String, &'static CStr>);

impl Names {
    /// Returns a text for C, up to its first NUL.
    fn pointer(&mut self, name: &str) -> *const c_char {
        let leaked = || {
            let text = name.split('\0').next().unwrap_or_default();
            let text = CString::new(text).unwrap_or_default();
            &*Box::leak(text.into_boxed_c_str())
        };
        let known = self.0.entry(name.to_owned());
        known.or_insert_with(leaked).as_ptr()
    }
}

/// Returns the library of this process.
pub(crate) fn mspti() -> &'static Mspti {
    static MSPTI: OnceLock<Mspti> = OnceLock::new();
    MSPTI.get_or_init(|| Mspti::new(config().mspti))
}

fn bit(kind: msptiActivityKind) -> Outcome<u32> {
    match kind {
        MSPTI_ACTIVITY_KIND_MARKER..=MSPTI_ACTIVITY_KIND_MEMORY
        | MSPTI_ACTIVITY_KIND_COMMUNICATION => Ok(1 << kind),
        _ => Err(MSPTI_ERROR_INVALID_PARAMETER),
    }
}

impl Mspti {
    fn new(settings: config::Mspti) -> Self {
        Self {
            settings,
            enabled: AtomicU32::new(0),
            correlations: AtomicU64::new(0),
            log: Mutex::default(),
            reader: Mutex::default(),
            subscriber: Mutex::default(),
            client: Client::default(),
            flushed: AtomicBool::new(false),
        }
    }

    /// Subscribes, if nobody else has. Returns the subscriber's number.
    pub(crate) fn subscribe(&'static self) -> Outcome<usize> {
        let mut subscriber = lock(&self.subscriber);
        if subscriber.current != 0 {
            return Err(MSPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
        }
        if !subscriber.reads {
            let reads = thread::Builder::new().name("sim-mspti".to_owned());
            let reads = reads.spawn(|| self.run());
            reads.map_err(|_| MSPTI_ERROR_INNER)?;
            subscriber.reads = true;
        }
        if subscriber.last == 0 {
            take_down_at_exit();
        }
        subscriber.last += 1;
        subscriber.current = subscriber.last;
        Ok(subscriber.current)
    }

    pub(crate) fn unsubscribe(&self, number: usize) -> Outcome {
        let mut subscriber = lock(&self.subscriber);
        match subscriber.current {
            0 => Ok(()),
            current if current == number => {
                (subscriber.current, subscriber.has_channels) = (0, false);
                Ok(())
            }
            _ => Err(MSPTI_ERROR_INVALID_PARAMETER),
        }
    }

    /// Returns itself, while it can be called. Later calls end the process.
    pub(crate) fn unless_over(&self) -> &Self {
        if OVER.load(Ordering::Acquire) {
            refuse("MSPTI was called after it has taken itself down");
        }
        self
    }

    /// Returns true if a subscriber has the devices' channels: no other profiler gets them then.
    pub(crate) fn has_channels(&self) -> bool {
        lock(&self.subscriber).has_channels
    }

    /// Gives back all buffers with records.
    pub(crate) fn flush(&self) {
        if self.client.flush() && !self.flushed.swap(true, Ordering::Relaxed) {
            take_down_at_exit(); // some parts are made with the first records
        }
    }

    pub(crate) fn client(&'static self) -> &'static Client {
        &self.client
    }

    pub(crate) fn enable(&self, kind: msptiActivityKind) -> Outcome {
        let bit = bit(kind)?;
        let preloaded = || std::env::var("LD_PRELOAD").is_ok_and(|all| all.contains("libmspti.so"));
        if PRELOADED.contains(&kind) && !preloaded() {
            return Err(MSPTI_ERROR_WITHOUT_LD_PRELOAD);
        }
        self.enabled.fetch_or(bit, Ordering::Relaxed);
        let mut subscriber = lock(&self.subscriber);
        subscriber.has_channels = subscriber.current != 0;
        Ok(())
    }

    /// Disables a kind. The devices' log until now still becomes records.
    pub(crate) fn disable(&'static self, kind: msptiActivityKind) -> Outcome {
        let bit = bit(kind)?;
        self.read();
        self.enabled.fetch_and(!bit, Ordering::Relaxed);
        Ok(())
    }

    fn records(&self, kind: msptiActivityKind) -> bool {
        self.enabled.load(Ordering::Relaxed) & (1 << kind) != 0
    }

    /// Numbers a launch, or a task that is captured, that has records of this kind. Returns 0 if it will have none.
    pub(crate) fn correlate(&self, kind: Option<msptiActivityKind>) -> u64 {
        match kind.is_some_and(|kind| self.records(kind)) {
            true => self.correlations.fetch_add(1, Ordering::Relaxed) + 1,
            false => 0,
        }
    }

    /// Logs a kernel or a collective that a device has run.
    pub(crate) fn ran(&self, ran: Ran) {
        let kind = match ran.comm {
            None => MSPTI_ACTIVITY_KIND_KERNEL,
            Some(_) => MSPTI_ACTIVITY_KIND_COMMUNICATION,
        };
        if self.records(kind) {
            lock(&self.log).push(ran);
        }
    }

    fn run(&'static self) {
        while !OVER.load(Ordering::Acquire) {
            thread::sleep(READ);
            self.read();
        }
    }

    /// Turns the log into records.
    fn read(&'static self) {
        let mut reader = lock(&self.reader);
        let ran = std::mem::take(&mut *lock(&self.log));
        for ran in ran.iter().rev() {
            let (start, end) = reader.times(ran, &self.settings);
            match &ran.comm {
                None => self.client.take(&reader.kernel(ran, start, end)),
                Some(comm) => self.client.take(&reader.collective(ran, comm, start, end)),
            }
        }
    }
}

impl Reader {
    /// Returns when it began and ended, on the host's wall clock.
    fn times(&mut self, ran: &Ran, settings: &config::Mspti) -> (u64, u64) {
        let clock = &ran.device.clock;
        let anchor = self.anchors.entry(ran.device.logical).or_default();
        anchor.renew(settings, (now_ns(), realtime_ns()), clock);
        let (start, end) = ran.ticks;
        (
            anchor.realtime_ns(start, clock),
            anchor.realtime_ns(end, clock),
        )
    }

    fn kernel(&mut self, ran: &Ran, start: u64, end: u64) -> msptiActivityKernel {
        msptiActivityKernel {
            kind: MSPTI_ACTIVITY_KIND_KERNEL,
            start,
            end,
            device_id: ran.device.logical,
            stream_id: ran.stream.cast_unsigned(),
            correlation_id: ran.correlation,
            type_name: c"KERNEL_AICORE".as_ptr(),
            name: self.names.pointer(&ran.name),
            padding: [0; 4],
        }
    }

    /// Makes the record of a collective. It does not contain what was moved, because a barrier moves nothing.
    fn collective(
        &mut self,
        ran: &Ran,
        comm: &str,
        start: u64,
        end: u64,
    ) -> msptiActivityCommunication {
        msptiActivityCommunication {
            kind: MSPTI_ACTIVITY_KIND_COMMUNICATION,
            data_type: 0,
            count: 0,
            device_id: ran.device.logical,
            stream_id: ran.stream.cast_unsigned(),
            start,
            end,
            algorithm: self.names.pointer("SIMULATED"),
            name: self.names.pointer(&ran.name),
            comm_name: self.names.pointer(comm),
            correlation_id: ran.correlation,
            padding: [],
        }
    }
}
