//! MSPTI with the behaviour of the vendor's library: the devices' log of kernels and collectives is converted to records in a client's buffers.
//!
//! A separate thread reads the log with a delay, newest entries first, and converts times to the host's wall clock with an anchor that is renewed periodically. It
//! requests a buffer from the client if it has none. Another thread returns a buffer that is nearly full; a flush returns the others. Records that do not fit are
//! dropped. MSPTI shuts itself down at the exit of the process, with exit handlers that it registers on first use.

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
const READ_INTERVAL: Duration = Duration::from_millis(5);
/// The kinds that can only be enabled if the library was preloaded.
const PRELOAD_KINDS: [msptiActivityKind; 2] =
    [MSPTI_ACTIVITY_KIND_HCCL, MSPTI_ACTIVITY_KIND_MEMORY];

/// A device's log entry for a finished kernel or collective.
pub(crate) struct LogEntry {
    pub(crate) device: Arc<Device>,
    pub(crate) stream: i32,
    pub(crate) correlation: u64,
    pub(crate) name: String,
    /// The communicator of a collective.
    pub(crate) comm: Option<Arc<str>>,
    /// Start and end on the device's clock.
    pub(crate) ticks: (u64, u64),
}

/// The library, with its one client.
pub(crate) struct Mspti {
    settings: config::Mspti,
    /// A bit for each enabled kind.
    enabled: AtomicU32,
    correlations: AtomicU64,
    log: Mutex<Vec<LogEntry>>,
    /// Held while the log is read.
    reader: Mutex<Reader>,
    subscriber: Mutex<Subscriber>,
    client: Client,
    /// True once records have been returned to the client.
    flushed: AtomicBool,
}

/// True once the exit handler has shut down parts of MSPTI.
static IS_SHUT_DOWN: AtomicBool = AtomicBool::new(false);

extern "C" fn shut_down() {
    IS_SHUT_DOWN.store(true, Ordering::Release);
}

fn shut_down_at_exit() {
    // SAFETY: the handler is a function of this library, which is never unloaded.
    unsafe { libc::atexit(shut_down) };
}

#[derive(Default)]
struct Subscriber {
    /// Number of the current subscriber, or 0 for no subscriber.
    current: usize,
    last: usize,
    /// True once the subscriber has enabled a kind. It then owns the devices' channels until it unsubscribes.
    has_channels: bool,
    /// True once the reader thread was started.
    has_reader: bool,
}

#[derive(Default)]
struct Reader {
    anchors: HashMap<u32, Anchor>,
    names: Names,
}

/// The texts of records. Each text is stored once and never freed.
#[derive(Default)]
struct Names(HashMap<String, &'static CStr>);

impl Names {
    /// Returns a C string with the text up to its first NUL.
    fn pointer(&mut self, name: &str) -> *const c_char {
        let leaked = || {
            let text = name.split('\0').next().unwrap_or_default();
            let text = CString::new(text).unwrap_or_default();
            &*Box::leak(text.into_boxed_c_str())
        };
        let entry = self.0.entry(name.to_owned());
        entry.or_insert_with(leaked).as_ptr()
    }
}

/// Returns the MSPTI of this process.
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

    /// Subscribes and returns the subscriber's number. Fails if there is another subscriber.
    pub(crate) fn subscribe(&'static self) -> Outcome<usize> {
        let mut subscriber = lock(&self.subscriber);
        if subscriber.current != 0 {
            return Err(MSPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
        }
        if !subscriber.has_reader {
            let thread = thread::Builder::new().name("sim-mspti".to_owned());
            let started = thread.spawn(|| self.run());
            started.map_err(|_| MSPTI_ERROR_INNER)?;
            subscriber.has_reader = true;
        }
        if subscriber.last == 0 {
            shut_down_at_exit();
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

    /// Returns `self`, or ends the process if MSPTI has been shut down.
    pub(crate) fn unless_shut_down(&self) -> &Self {
        if IS_SHUT_DOWN.load(Ordering::Acquire) {
            refuse("MSPTI was called after it had shut itself down");
        }
        self
    }

    /// Returns true if a subscriber owns the devices' channels. Then no other profiler can get them.
    pub(crate) fn has_channels(&self) -> bool {
        lock(&self.subscriber).has_channels
    }

    /// Returns all buffers with records to the client.
    pub(crate) fn flush(&self) {
        if self.client.flush() && !self.flushed.swap(true, Ordering::Relaxed) {
            shut_down_at_exit(); // some parts are created with the first records
        }
    }

    pub(crate) fn client(&'static self) -> &'static Client {
        &self.client
    }

    pub(crate) fn enable(&self, kind: msptiActivityKind) -> Outcome {
        let bit = bit(kind)?;
        let preloaded = || std::env::var("LD_PRELOAD").is_ok_and(|all| all.contains("libmspti.so"));
        if PRELOAD_KINDS.contains(&kind) && !preloaded() {
            return Err(MSPTI_ERROR_WITHOUT_LD_PRELOAD);
        }
        self.enabled.fetch_or(bit, Ordering::Relaxed);
        let mut subscriber = lock(&self.subscriber);
        subscriber.has_channels = subscriber.current != 0;
        Ok(())
    }

    /// Disables a kind. Entries that are already in the devices' log still become records.
    pub(crate) fn disable(&'static self, kind: msptiActivityKind) -> Outcome {
        let bit = bit(kind)?;
        self.read();
        self.enabled.fetch_and(!bit, Ordering::Relaxed);
        Ok(())
    }

    fn is_enabled(&self, kind: msptiActivityKind) -> bool {
        self.enabled.load(Ordering::Relaxed) & (1 << kind) != 0
    }

    /// Returns a new correlation id for a launch or a captured task, or 0 if it will have no records.
    pub(crate) fn correlate(&self, kind: Option<msptiActivityKind>) -> u64 {
        match kind.is_some_and(|kind| self.is_enabled(kind)) {
            true => self.correlations.fetch_add(1, Ordering::Relaxed) + 1,
            false => 0,
        }
    }

    /// Logs a finished kernel or collective of a device.
    pub(crate) fn log(&self, entry: LogEntry) {
        let kind = match entry.comm {
            None => MSPTI_ACTIVITY_KIND_KERNEL,
            Some(_) => MSPTI_ACTIVITY_KIND_COMMUNICATION,
        };
        if self.is_enabled(kind) {
            lock(&self.log).push(entry);
        }
    }

    fn run(&'static self) {
        while !IS_SHUT_DOWN.load(Ordering::Acquire) {
            thread::sleep(READ_INTERVAL);
            self.read();
        }
    }

    /// Converts the log to records.
    fn read(&'static self) {
        let mut reader = lock(&self.reader);
        let log = std::mem::take(&mut *lock(&self.log));
        for entry in log.iter().rev() {
            let (start, end) = reader.times(entry, &self.settings);
            match &entry.comm {
                None => self.client.write(&reader.kernel(entry, start, end)),
                Some(comm) => self
                    .client
                    .write(&reader.collective(entry, comm, start, end)),
            }
        }
    }
}

impl Reader {
    /// Returns the start and end of an entry on the host's wall clock.
    fn times(&mut self, entry: &LogEntry, settings: &config::Mspti) -> (u64, u64) {
        let clock = &entry.device.clock;
        let anchor = self.anchors.entry(entry.device.logical).or_default();
        anchor.renew(settings, (now_ns(), realtime_ns()), clock);
        let (start, end) = entry.ticks;
        (
            anchor.realtime_ns(start, clock),
            anchor.realtime_ns(end, clock),
        )
    }

    fn kernel(&mut self, entry: &LogEntry, start: u64, end: u64) -> msptiActivityKernel {
        msptiActivityKernel {
            kind: MSPTI_ACTIVITY_KIND_KERNEL,
            start,
            end,
            device_id: entry.device.logical,
            stream_id: entry.stream.cast_unsigned(),
            correlation_id: entry.correlation,
            type_name: c"KERNEL_AICORE".as_ptr(),
            name: self.names.pointer(&entry.name),
            padding: [0; 4],
        }
    }

    /// Creates the record of a collective. Its data type and count are 0, because a barrier moves no data.
    fn collective(
        &mut self,
        entry: &LogEntry,
        comm: &str,
        start: u64,
        end: u64,
    ) -> msptiActivityCommunication {
        msptiActivityCommunication {
            kind: MSPTI_ACTIVITY_KIND_COMMUNICATION,
            data_type: 0,
            count: 0,
            device_id: entry.device.logical,
            stream_id: entry.stream.cast_unsigned(),
            start,
            end,
            algorithm: self.names.pointer("SIMULATED"),
            name: self.names.pointer(&entry.name),
            comm_name: self.names.pointer(comm),
            correlation_id: entry.correlation,
            padding: [],
        }
    }
}
