//! What the devices did, for one client.

use super::exports;
use crate::Outcome;
use crate::faults::Site;
use crate::runtime::runtime;
use ascend_sys::types::*;

fn result(outcome: Outcome) -> msptiResult {
    outcome.err().unwrap_or(MSPTI_SUCCESS)
}

exports! { ascend_sys::mspti, result;
    fn msptiSubscribe(subscriber: *mut msptiSubscriberHandle, _callback: msptiCallbackFunc, _user_data: *mut c_void) {
        subscriber.not_null().map_err(|_| MSPTI_ERROR_INVALID_PARAMETER)?;
        runtime().config.faults.check(Site::MsptiSubscribe)?;
        let number = runtime().mspti.subscribe()?;
        subscriber.put(std::ptr::without_provenance_mut(number))
    }

    fn msptiUnsubscribe(subscriber: msptiSubscriberHandle) {
        runtime().mspti.unsubscribe(subscriber.address())
    }

    fn msptiActivityRegisterCallbacks(requested: msptiBuffersCallbackRequestFunc, completed: msptiBuffersCallbackCompleteFunc) {
        runtime().mspti.client().register(requested, completed)
    }

    fn msptiActivityEnable(kind: msptiActivityKind) {
        runtime().config.faults.check(Site::MsptiEnable)?;
        runtime().mspti.enable(kind)
    }

    fn msptiActivityDisable(kind: msptiActivityKind) {
        runtime().mspti.disable(kind)
    }

    fn msptiActivityGetNextRecord(buffer: *mut u8, valid_size: usize, record: *mut *mut msptiActivity) {
        let next = runtime().mspti.client().next(buffer.address(), valid_size)?;
        record.put(std::ptr::with_exposed_provenance_mut(next))
    }

    fn msptiActivityFlushAll(_flag: u32) {
        runtime().mspti.client().flush();
        Ok(())
    }

    fn msptiActivityFlushPeriod(_period_ms: u32) {
        Ok(()) // only full buffers would go, which go by themselves
    }
}
