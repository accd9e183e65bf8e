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

/// The record of a kernel or a collective that has run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// The driver's number of the device.
    pub(crate) device: u32,
    /// The stream; in a replay perhaps one of the graph's own.
    pub(crate) stream: u32,
    /// When it began and ended, by MSPTI's idea of the wall clock, in ns.
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    /// Correlation of the launch; in a replay the one of the capture.
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
    /// Our own subscription, while there is one.
    subscriber: Option<AtomicPtr<c_void>>,
    names: Names,
}

/// The texts of records, by their addresses: MSPTI keeps each one while the process lives.
#[derive(Debug, Default)]
struct Names(BTreeMap<usize, Arc<str>>);

impl Vendor {
    /// Opens the library. The error is the reason why that cannot be.
    pub(super) fn load(simulated: bool) -> Result<Vendor, String> {
        let library = match simulated {
            true => Library::open_simulator().and_then(|own| own.simulator_face("libmspti.so")),
            false => Library::open(&Candidates::mspti()),
        };
        let library = library.map_err(|error| error.to_string())?;
        let functions = Mspti::load(&library);
        Ok(Vendor {
            subscribe: there(functions.msptiSubscribe)?,
            unsubscribe: there(functions.msptiUnsubscribe)?,
            register: there(functions.msptiActivityRegisterCallbacks)?,
            enable: there(functions.msptiActivityEnable)?,
            disable: there(functions.msptiActivityDisable)?,
            next: there(functions.msptiActivityGetNextRecord)?,
            flush: there(functions.msptiActivityFlushAll)?,
            has_collectives: false,
            subscriber: None,
            names: Names::default(),
        })
    }

    /// Subscribes, if nobody else has, and starts to record kernels. Returns true if collectives are recorded too, or the reason why that cannot be.
    pub(super) fn subscribe(&mut self) -> Result<bool, String> {
        if !BUFFERS_OF_PROCESS.prepare() {
            return Err("there is no memory for its records".to_owned());
        }
        let mut subscriber = null_mut();
        // Before anything else: our callbacks would replace the ones of another client, and subscribing fails if there is one.
        // SAFETY: `subscriber` is writable for the call; no callback is asked for.
        let code = unsafe { (self.subscribe)(&raw mut subscriber, None, null_mut()) };
        done("msptiSubscribe", code)?;
        self.subscriber = Some(AtomicPtr::new(subscriber));
        // SAFETY: both are functions of this library, which stays loaded.
        let code = unsafe { (self.register)(Some(buffers::requested), Some(buffers::completed)) };
        let enabled = done("msptiActivityRegisterCallbacks", code).and_then(|()| self.enable());
        enabled.inspect_err(|_| self.unsubscribe())
    }

    /// Returns true if we are subscribed.
    pub(super) fn is_subscribed(&self) -> bool {
        self.subscriber.is_some()
    }

    /// Ends our own subscription, if there is one: only that gives the devices' channels back.
    pub(super) fn unsubscribe(&mut self) {
        if let Some(subscriber) = self.subscriber.take() {
            // SAFETY: it is our own, and still there.
            unsafe { (self.unsubscribe)(subscriber.into_inner()) };
        }
    }

    /// Starts to record kernels, and collectives if this MSPTI knows them: then it returns true.
    pub(super) fn enable(&mut self) -> Result<bool, String> {
        // SAFETY: takes an integer.
        let code = unsafe { (self.enable)(MSPTI_ACTIVITY_KIND_KERNEL) };
        done("msptiActivityEnable", code)?;
        // SAFETY: as above.
        let code = unsafe { (self.enable)(MSPTI_ACTIVITY_KIND_COMMUNICATION) };
        self.has_collectives = code == MSPTI_SUCCESS;
        Ok(self.has_collectives)
    }

    /// Ends recording. Records of what has run until now still come.
    pub(super) fn disable(&mut self) {
        // SAFETY: takes an integer; it was enabled by us.
        unsafe { (self.disable)(MSPTI_ACTIVITY_KIND_KERNEL) };
        if std::mem::take(&mut self.has_collectives) {
            // SAFETY: as above.
            unsafe { (self.disable)(MSPTI_ACTIVITY_KIND_COMMUNICATION) };
        }
    }

    /// Makes MSPTI give back all buffers that hold records.
    pub(super) fn flush(&self) {
        // SAFETY: takes an integer.
        unsafe { (self.flush)(0) };
    }

    /// Reads all buffers that were given back. Returns how many records could not be read. Only one thread may call it at a time.
    pub(super) fn read(&mut self, mut take: impl FnMut(Record)) -> u64 {
        let mut unreadable = 0;
        while let Some(filled) = BUFFERS_OF_PROCESS.filled() {
            unreadable += self.read_one(filled, &mut take);
            BUFFERS_OF_PROCESS.release(filled);
        }
        unreadable
    }

    fn read_one(&mut self, filled: Filled, take: &mut impl FnMut(Record)) -> u64 {
        let (mut end, mut unreadable) = (0, 0);
        // If the last buffer was not read to its end, MSPTI would start in the middle of this one.
        self.next_record(Filled { valid: 0, ..filled });
        while let Some(offset) = self.next_record(filled) {
            let rest = filled.valid - offset;
            // SAFETY: MSPTI has written `valid` bytes there, and nobody writes until the buffer is released.
            let bytes =
                unsafe { std::slice::from_raw_parts(filled.start.wrapping_add(offset), rest) };
            end = (offset + length(bytes)).min(filled.valid);
            match self.names.read(bytes) {
                Some(kernel) => take(kernel),
                None => unreadable += 1,
            }
        }
        unreadable + (filled.valid - end).div_ceil(RECORD) as u64
    }

    /// Returns the offset of the next record in the buffer.
    fn next_record(&self, filled: Filled) -> Option<usize> {
        let mut record = null_mut();
        // SAFETY: the buffer was given back with as many valid bytes; `record` is writable for the call.
        let code = unsafe { (self.next)(filled.start, filled.valid, &raw mut record) };
        let offset = record.addr().checked_sub(filled.start.addr())?;
        (code == MSPTI_SUCCESS && offset < filled.valid).then_some(offset)
    }
}

impl Names {
    /// Reads the record at the start of `bytes`, if it has the device's times.
    fn read(&mut self, bytes: &[u8]) -> Option<Record> {
        // Only a record with times is filled, and only then are its texts read.
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

    /// Returns a text of a record, or `without` if it has none.
    fn text(&mut self, name: *const c_char, without: &str) -> Arc<str> {
        if name.is_null() {
            return without.into();
        }
        let known = self.0.entry(name.addr()).or_insert_with(|| {
            // SAFETY: the texts of records with times are strings of C, which MSPTI keeps.
            let text = unsafe { CStr::from_ptr(name) };
            text.to_string_lossy().into()
        });
        Arc::clone(known)
    }
}

/// Returns the length of the record at the start of `bytes`.
fn length(bytes: &[u8]) -> usize {
    match mspti::kind(bytes) {
        Some(MSPTI_ACTIVITY_KIND_COMMUNICATION) => size_of::<msptiActivityCommunication>(),
        _ => RECORD,
    }
}

fn there<F>(function: Result<F, MissingSymbol>) -> Result<F, String> {
    function.map_err(|missing| missing.to_string())
}

/// Turns the code of a call into a result with a text.
fn done(call: &str, code: msptiResult) -> Result<(), String> {
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
