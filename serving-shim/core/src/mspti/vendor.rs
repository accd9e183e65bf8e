//! The functions of MSPTI, and the records in its buffers.
#![expect(unsafe_code, reason = "calls MSPTI, and reads its buffers")]

use super::buffers::{self, BUFFERS_OF_PROCESS, Filled, RECORD};
use ascend_sys::mspti::{
    msptiActivityCommunication, msptiActivityDisable, msptiActivityEnable, msptiActivityFlushAll,
    msptiActivityGetNextRecord, msptiActivityKernel, msptiActivityRegisterCallbacks,
    msptiSubscribe, msptiUnsubscribe,
};
use ascend_sys::types::{
    MSPTI_ACTIVITY_KIND_COMMUNICATION, MSPTI_ACTIVITY_KIND_KERNEL,
    MSPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, MSPTI_SUCCESS, c_char, msptiResult,
};
use ascend_sys::{Candidates, Library, MissingSymbol, Mspti, mspti};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;

/// The record of a finished kernel or collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// The driver's number of the device.
    pub(crate) device: u32,
    /// The stream. In a replay it may be one of the graph's internal streams.
    pub(crate) stream: u32,
    /// Start and end in ns, on MSPTI's estimate of the wall clock.
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    /// Correlation id of the launch, or in a replay of the capture.
    pub(crate) correlation: u64,
    pub(crate) name: Arc<str>,
    /// The communicator of a collective.
    pub(crate) comm: Option<Arc<str>>,
}

/// The library, and our subscription.
#[derive(Debug)]
pub(super) struct Vendor {
    subscribe: msptiSubscribe,
    unsubscribe: msptiUnsubscribe,
    register: msptiActivityRegisterCallbacks,
    enable: msptiActivityEnable,
    disable: msptiActivityDisable,
    next: msptiActivityGetNextRecord,
    flush: msptiActivityFlushAll,
    /// True if collectives are recorded.
    has_collectives: bool,
    /// Our own subscription, if there is one.
    subscriber: Option<AtomicPtr<c_void>>,
    names: Names,
}

/// The texts of records by address. MSPTI keeps each text as long as the process lives.
#[derive(Debug, Default)]
struct Names(BTreeMap<usize, Arc<str>>);

impl Vendor {
    /// Opens the library of MSPTI, the vendor's log of the devices, and looks up its functions. The error is the reason for a failure.
    pub(super) fn load(simulated: bool) -> Result<Vendor, String> {
        let library = match simulated {
            true => Library::open_simulator().and_then(|own| own.open_simulator_as("libmspti.so")),
            false => Library::open(&Candidates::mspti()),
        };
        let library = library.map_err(|error| error.to_string())?;
        let functions = Mspti::load(&library);
        Ok(Vendor {
            subscribe: require(functions.msptiSubscribe)?,
            unsubscribe: require(functions.msptiUnsubscribe)?,
            register: require(functions.msptiActivityRegisterCallbacks)?,
            enable: require(functions.msptiActivityEnable)?,
            disable: require(functions.msptiActivityDisable)?,
            next: require(functions.msptiActivityGetNextRecord)?,
            flush: require(functions.msptiActivityFlushAll)?,
            has_collectives: false,
            subscriber: None,
            names: Names::default(),
        })
    }

    /// Subscribes to MSPTI, if there is no other subscriber, and starts to record kernels. Returns true if collectives are recorded too, or the reason for a
    /// failure.
    pub(super) fn subscribe(&mut self) -> Result<bool, String> {
        if !BUFFERS_OF_PROCESS.prepare() {
            return Err("there is not enough memory for its records".to_owned());
        }
        let mut subscriber = null_mut();
        // First of all, because our callbacks would replace another client's, and subscribing fails if there is one.
        // SAFETY: `subscriber` is writable during the call, and there is no callback.
        let code = unsafe { (self.subscribe)(&raw mut subscriber, None, null_mut()) };
        check("msptiSubscribe", code)?;
        self.subscriber = Some(AtomicPtr::new(subscriber));
        // SAFETY: both are functions of this library, which stays loaded.
        let code = unsafe { (self.register)(Some(buffers::requested), Some(buffers::completed)) };
        let enabled = check("msptiActivityRegisterCallbacks", code).and_then(|()| self.enable());
        enabled.inspect_err(|_| self.unsubscribe())
    }

    /// Returns true if we are subscribed to MSPTI.
    pub(super) fn is_subscribed(&self) -> bool {
        self.subscriber.is_some()
    }

    /// Ends our own subscription to MSPTI, if there is one. Nothing else releases the devices' channels.
    pub(super) fn unsubscribe(&mut self) {
        if let Some(subscriber) = self.subscriber.take() {
            // SAFETY: the subscription is our own and still exists.
            unsafe { (self.unsubscribe)(subscriber.into_inner()) };
        }
    }

    /// Makes MSPTI record kernels, and collectives if this version supports them. Returns true if it does.
    pub(super) fn enable(&mut self) -> Result<bool, String> {
        // SAFETY: the argument is an integer.
        let code = unsafe { (self.enable)(MSPTI_ACTIVITY_KIND_KERNEL) };
        check("msptiActivityEnable", code)?;
        // SAFETY: as above.
        let code = unsafe { (self.enable)(MSPTI_ACTIVITY_KIND_COMMUNICATION) };
        self.has_collectives = code == MSPTI_SUCCESS;
        Ok(self.has_collectives)
    }

    /// Makes MSPTI stop recording. Records of earlier kernels are still delivered.
    pub(super) fn disable(&mut self) {
        // SAFETY: the argument is an integer, and we have enabled this kind.
        unsafe { (self.disable)(MSPTI_ACTIVITY_KIND_KERNEL) };
        if std::mem::take(&mut self.has_collectives) {
            // SAFETY: as above.
            unsafe { (self.disable)(MSPTI_ACTIVITY_KIND_COMMUNICATION) };
        }
    }

    /// Makes MSPTI return all buffers that contain records.
    pub(super) fn flush(&self) {
        // SAFETY: the argument is an integer.
        unsafe { (self.flush)(0) };
    }

    /// Reads all buffers that MSPTI has returned, and calls `add` with each record. Returns the number of records that could not be read. Only one thread may
    /// call this at a time.
    pub(super) fn read(&mut self, mut add: impl FnMut(Record)) -> u64 {
        let mut unreadable = 0;
        while let Some(filled) = BUFFERS_OF_PROCESS.filled() {
            unreadable += self.read_one(filled, &mut add);
            BUFFERS_OF_PROCESS.release(filled);
        }
        unreadable
    }

    fn read_one(&mut self, filled: Filled, add: &mut impl FnMut(Record)) -> u64 {
        let (mut end, mut unreadable) = (0, 0);
        // If the last buffer was not read to its end, MSPTI would start in the middle of this one.
        self.next_record(Filled { valid: 0, ..filled });
        while let Some(offset) = self.next_record(filled) {
            let rest = filled.valid - offset;
            // SAFETY: MSPTI has written `valid` bytes, and no thread writes to the buffer until it is released.
            let bytes =
                unsafe { std::slice::from_raw_parts(filled.start.wrapping_add(offset), rest) };
            end = (offset + record_bytes(bytes)).min(filled.valid);
            match self.names.read(bytes) {
                Some(kernel) => add(kernel),
                None => unreadable += 1,
            }
        }
        unreadable + (filled.valid - end).div_ceil(RECORD) as u64
    }

    /// Returns the offset, in bytes, of MSPTI's next record in the buffer, or `None` after the last one.
    fn next_record(&self, filled: Filled) -> Option<usize> {
        let mut record = null_mut();
        // SAFETY: the buffer was returned with this many valid bytes, and `record` is writable during the call.
        let code = unsafe { (self.next)(filled.start, filled.valid, &raw mut record) };
        let offset = record.addr().checked_sub(filled.start.addr())?;
        (code == MSPTI_SUCCESS && offset < filled.valid).then_some(offset)
    }
}

impl Names {
    /// Converts MSPTI's record at the start of `bytes`, or returns `None` if it lacks the device's times.
    fn read(&mut self, bytes: &[u8]) -> Option<Record> {
        // Only a record with times is completely filled, so only then are its texts read.
        let is_timed = |start: u64, end: u64| {
            let (start_ns, end_ns) = (start.cast_signed(), end.cast_signed());
            start_ns > 0 && end_ns >= start_ns
        };
        if let Some(record) = msptiActivityCommunication::read(bytes) {
            return is_timed(record.start, record.end).then(|| self.collective(&record));
        }
        let record = msptiActivityKernel::read(bytes)?;
        is_timed(record.start, record.end).then(|| self.kernel(&record))
    }

    fn kernel(&mut self, record: &msptiActivityKernel) -> Record {
        Record {
            device: record.device_id,
            stream: record.stream_id,
            start_ns: record.start.cast_signed(),
            end_ns: record.end.cast_signed(),
            correlation: record.correlation_id,
            name: self.text(record.name, "kernel"),
            comm: None,
        }
    }

    fn collective(&mut self, record: &msptiActivityCommunication) -> Record {
        Record {
            device: record.device_id,
            stream: record.stream_id,
            start_ns: record.start.cast_signed(),
            end_ns: record.end.cast_signed(),
            correlation: record.correlation_id,
            name: self.text(record.name, "collective"),
            comm: Some(self.text(record.comm_name, "unknown")),
        }
    }

    /// Returns the text at the address `name`, which an MSPTI record contains, or `without` if it is null.
    fn text(&mut self, name: *const c_char, without: &str) -> Arc<str> {
        if name.is_null() {
            return without.into();
        }
        let text = self.0.entry(name.addr()).or_insert_with(|| {
            // SAFETY: the texts of records with times are C strings, which MSPTI keeps.
            let text = unsafe { CStr::from_ptr(name) };
            text.to_string_lossy().into()
        });
        Arc::clone(text)
    }
}

/// Returns the length in bytes of MSPTI's record at the start of `bytes`, which depends on its kind.
fn record_bytes(bytes: &[u8]) -> usize {
    match mspti::kind(bytes) {
        Some(MSPTI_ACTIVITY_KIND_COMMUNICATION) => size_of::<msptiActivityCommunication>(),
        _ => RECORD,
    }
}

fn require<F>(function: Result<F, MissingSymbol>) -> Result<F, String> {
    function.map_err(|missing| missing.to_string())
}

/// Converts the code that the function `call` of MSPTI returned to a result with an error message.
fn check(call: &str, code: msptiResult) -> Result<(), String> {
    use ascend_sys::types::MSPTI_ERROR_WITHOUT_LD_PRELOAD;
    match code {
        MSPTI_SUCCESS => Ok(()),
        MSPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED => {
            Err(format!("{call}: another profiler has subscribed"))
        }
        MSPTI_ERROR_WITHOUT_LD_PRELOAD => Err(format!("{call}: libmspti.so is not in LD_PRELOAD")),
        code => Err(format!("{call}: error {code}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_without_times_is_unreadable() {
        for kind in [
            MSPTI_ACTIVITY_KIND_KERNEL,
            MSPTI_ACTIVITY_KIND_COMMUNICATION,
        ] {
            let mut bytes = [0; size_of::<msptiActivityCommunication>()];
            bytes[..4].copy_from_slice(&kind.to_ne_bytes());
            assert_eq!(Names::default().read(&bytes), None);
            assert_eq!(Names::default().read(&bytes[..RECORD - 1]), None);
        }
    }
}
