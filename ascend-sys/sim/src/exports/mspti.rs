//! MSPTI, which delivers the log of the devices to one client.

use super::exports;
use crate::Outcome;
use crate::config::config;
use crate::faults::Site;
use crate::mspti::{self, Mspti};
use crate::runtime::runtime;
use ascend_sys::types::*;
use std::sync::atomic::Ordering;

fn result(outcome: Outcome) -> msptiResult {
    outcome.err().unwrap_or(MSPTI_SUCCESS)
}

fn mspti() -> &'static Mspti {
    mspti::mspti().unless_shut_down()
}

exports! { ascend_sys::mspti, result;
    fn msptiSubscribe(subscriber: *mut msptiSubscriberHandle, _callback: msptiCallbackFunc, _user_data: *mut c_void) {
        subscriber.not_null().map_err(|_| MSPTI_ERROR_INVALID_PARAMETER)?;
        config().faults.check(Site::MsptiSubscribe)?;
        let number = mspti().subscribe()?;
        subscriber.put(std::ptr::without_provenance_mut(number))
    }

    fn msptiUnsubscribe(subscriber: msptiSubscriberHandle) {
        mspti().unsubscribe(subscriber.address())
    }

    fn msptiActivityRegisterCallbacks(requested: msptiBuffersCallbackRequestFunc, completed: msptiBuffersCallbackCompleteFunc) {
        mspti().client().register(requested, completed)
    }

    fn msptiActivityEnable(kind: msptiActivityKind) {
        config().faults.check(Site::MsptiEnable)?;
        if runtime().profiling.load(Ordering::Relaxed) {
            return Err(MSPTI_ERROR_INNER); // aclprof uses the devices' channels
        }
        mspti().enable(kind)
    }

    fn msptiActivityDisable(kind: msptiActivityKind) {
        mspti().disable(kind)
    }

    fn msptiActivityGetNextRecord(buffer: *mut u8, valid_size: usize, record: *mut *mut msptiActivity) {
        let next = mspti().client().next(buffer.address(), valid_size)?;
        record.put(std::ptr::with_exposed_provenance_mut(next))
    }

    fn msptiActivityFlushAll(_flag: u32) {
        mspti().flush();
        Ok(())
    }
}
