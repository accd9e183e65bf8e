//! The functions of MSPTI, and the records in its buffers.
#![expect(unsafe_code, reason = "calls MSPTI, and reads its buffers")]

use super::Recorded;
use super::buffers::{self, BUFFERS_OF_PROCESS, Filled, RECORD};
use super::kernel::Kernel;
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
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;

/// MSPTI.
#[derive(Debug)]
pub(super) struct Vendor {
    subscribe: msptiSubscribe,
    unsubscribe: msptiUnsubscribe,
    register: msptiActivityRegisterCallbacks,
    enable: msptiActivityEnable,
    disable: msptiActivityDisable,
    next: msptiActivityGetNextRecord,
    flush: msptiActivityFlushAll,
    /// Whether collectives are recorded.
    has_collectives: Cell<bool>,
    /// Our own subscription, while there is one.
    subscriber: Option<AtomicPtr<c_void>>,
}

/// The texts of records: each stays where it is while the process lives.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<usize, Arc<str>>);

impl Vendor {
    /// Opens the library; or the reason why that cannot be.
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
            has_collectives: Cell::new(false),
            subscriber: None,
        })
    }

    /// Subscribes, if nobody else has, and has kernels recorded from now on; what else is, or the reason why that cannot be.
    pub(super) fn subscribe(&mut self) -> Result<Recorded, String> {
        if !BUFFERS_OF_PROCESS.prepare() {
            return Err("there is no memory for its records".to_owned());
        }
        let mut subscriber = null_mut();
        // Before all else: callbacks take the place of those of another client, who must be there first if there is one.
        // SAFETY: `subscriber` is writable for the call; no callback is asked for.
        let code = unsafe { (self.subscribe)(&raw mut subscriber, None, null_mut()) };
        done("msptiSubscribe", code)?;
        self.subscriber = Some(AtomicPtr::new(subscriber));
        // SAFETY: both are functions of this library, which stays loaded.
        let code = unsafe { (self.register)(Some(buffers::requested), Some(buffers::completed)) };
        let enabled = done("msptiActivityRegisterCallbacks", code).and_then(|()| self.enable());
        enabled.inspect_err(|_| self.unsubscribe())
    }

    /// Whether we have.
    pub(super) fn is_subscribed(&self) -> bool {
        self.subscriber.is_some()
    }

    /// Takes our own subscription back, if there is one: only that gives the devices' channels back.
    pub(super) fn unsubscribe(&mut self) {
        if let Some(subscriber) = self.subscriber.take() {
            // SAFETY: it is our own, and there still.
            unsafe { (self.unsubscribe)(subscriber.into_inner()) };
        }
    }

    /// Has kernels recorded, and collectives where this MSPTI knows them.
    pub(super) fn enable(&self) -> Result<Recorded, String> {
        // SAFETY: takes an integer.
        let code = unsafe { (self.enable)(MSPTI_ACTIVITY_KIND_KERNEL) };
        done("msptiActivityEnable", code)?;
        // SAFETY: as above.
        let code = unsafe { (self.enable)(MSPTI_ACTIVITY_KIND_COMMUNICATION) };
        let collectives = code == MSPTI_SUCCESS;
        self.has_collectives.set(collectives);
        Ok(Recorded { collectives })
    }

    /// Ends that; records of what has run until now still come.
    pub(super) fn disable(&self) {
        // SAFETY: takes an integer; it was enabled by us.
        unsafe { (self.disable)(MSPTI_ACTIVITY_KIND_KERNEL) };
        if self.has_collectives.take() {
            // SAFETY: as above.
            unsafe { (self.disable)(MSPTI_ACTIVITY_KIND_COMMUNICATION) };
        }
    }

    /// Has all buffers given back that hold records.
    pub(super) fn flush(&self) {
        // SAFETY: takes an integer.
        unsafe { (self.flush)(0) };
    }

    /// Reads all buffers that were given back; how many records could not be read. One thread at a time.
    pub(super) fn read(&self, names: &mut Names, mut take: impl FnMut(Kernel)) -> u64 {
        let mut unreadable = 0;
        while let Some(filled) = BUFFERS_OF_PROCESS.filled() {
            unreadable += self.read_one(filled, names, &mut take);
            BUFFERS_OF_PROCESS.release(filled);
        }
        unreadable
    }

    fn read_one(&self, filled: Filled, names: &mut Names, take: &mut impl FnMut(Kernel)) -> u64 {
        let (mut end, mut unreadable) = (0, 0);
        // Where the last buffer was not read to its end, this one would be begun in the middle.
        self.next_record(Filled { valid: 0, ..filled });
        while let Some(offset) = self.next_record(filled) {
            let rest = filled.valid - offset;
            // SAFETY: MSPTI has written `valid` bytes there, and nobody writes until the buffer is released.
            let bytes =
                unsafe { std::slice::from_raw_parts(filled.start.wrapping_add(offset), rest) };
            end = (offset + length(bytes)).min(filled.valid);
            match names.read(bytes) {
                Some(kernel) => take(kernel),
                None => unreadable += 1,
            }
        }
        unreadable + (filled.valid - end).div_ceil(RECORD) as u64
    }

    /// Where in the buffer its next record lies.
    fn next_record(&self, filled: Filled) -> Option<usize> {
        let mut record = null_mut();
        // SAFETY: the buffer was given back with as many valid bytes; `record` is writable for the call.
        let code = unsafe { (self.next)(filled.start, filled.valid, &raw mut record) };
        let offset = record.addr().checked_sub(filled.start.addr())?;
        (code == MSPTI_SUCCESS && offset < filled.valid).then_some(offset)
    }
}

impl Names {
    /// What the record at the start of `bytes` tells of, if the device's times are known.
    fn read(&mut self, bytes: &[u8]) -> Option<Kernel> {
        match msptiActivityCommunication::read(bytes) {
            Some(record) => self.collective(&record),
            None => self.kernel(&msptiActivityKernel::read(bytes)?),
        }
    }

    fn kernel(&mut self, record: &msptiActivityKernel) -> Option<Kernel> {
        let (start_ns, end_ns) = times(record.start, record.end)?;
        Some(Kernel {
            device: record.device_id,
            stream: record.stream_id,
            start_ns,
            end_ns,
            correlation: record.correlation_id,
            name: self.of(record.name, "kernel"),
            comm: None,
        })
    }

    fn collective(&mut self, record: &msptiActivityCommunication) -> Option<Kernel> {
        let (start_ns, end_ns) = times(record.start, record.end)?;
        Some(Kernel {
            device: record.device_id,
            stream: record.stream_id,
            start_ns,
            end_ns,
            correlation: record.correlation_id,
            name: self.of(record.name, "collective"),
            comm: Some(self.of(record.comm_name, "unknown")),
        })
    }

    /// A text of a record, or this word where it has none.
    fn of(&mut self, name: *const c_char, without: &str) -> Arc<str> {
        if name.is_null() {
            return without.into();
        }
        let known = self.0.entry(name.addr()).or_insert_with(|| {
            // SAFETY: the texts of records are strings of C, which MSPTI keeps.
            let text = unsafe { CStr::from_ptr(name) };
            text.to_string_lossy().into()
        });
        Arc::clone(known)
    }
}

/// How long the record at the start of `bytes` is.
fn length(bytes: &[u8]) -> usize {
    match mspti::kind(bytes) {
        Some(MSPTI_ACTIVITY_KIND_COMMUNICATION) => size_of::<msptiActivityCommunication>(),
        _ => RECORD,
    }
}

/// The times of a record, if they are known.
fn times(start: u64, end: u64) -> Option<(i64, i64)> {
    let is_known = start != 0 && end >= start;
    let times = || Some((i64::try_from(start).ok()?, i64::try_from(end).ok()?));
    is_known.then(times).flatten()
}

fn there<F>(function: Result<F, MissingSymbol>) -> Result<F, String> {
    function.map_err(|missing| missing.to_string())
}

/// The outcome of a call, in words.
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
    use std::ptr::null;

    #[test]
    fn a_record_without_texts_has_a_word_for_each() {
        let record = msptiActivityCommunication {
            kind: MSPTI_ACTIVITY_KIND_COMMUNICATION,
            data_type: 0,
            count: 4,
            device_id: 0,
            stream_id: 1,
            start: 5,
            end: 9,
            algorithm: null(),
            name: null(),
            comm_name: null(),
            correlation_id: 3,
            padding: [],
        };
        let kernel = Names::default().collective(&record).unwrap();
        assert_eq!(
            (&*kernel.name, kernel.comm.as_deref()),
            ("collective", Some("unknown"))
        );
        let name = c"allreduce".as_ptr();
        let named = Names::default().of(name, "kernel");
        assert_eq!(&*named, "allreduce");
    }
}
