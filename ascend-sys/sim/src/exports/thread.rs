//! The last error and the last task of the calling thread.

use super::*;
use crate::stream::last_task;
use ascend_sys::rt;
use std::cell::Cell;

thread_local! {
    static LAST_CODE: Cell<aclError> = const { Cell::new(ACL_SUCCESS) };
}

/// The smallest error code of the rt level. ACL's own errors are not stored.
const FIRST_OF_RT: aclError = ACL_ERROR_RT_PARAM_INVALID;

/// Stores the error of a failed call. It replaces an earlier error, even one that was never queried.
pub(super) fn record_error(code: aclError) {
    if code >= FIRST_OF_RT && code != ACL_ERROR_API_NOT_SUPPORT {
        let _ = LAST_CODE.try_with(|last| last.set(code)); // the thread may be ending
    }
}

exports! { acl::thread, code;
    fn aclrtGetThreadLastTaskId(id: *mut u32) {
        id.put(last_task().1)
    }
}

exports! { rt::thread, code;
    fn rtGetTaskIdAndStreamID(task_id: *mut u32, stream_id: *mut u32) {
        let (stream, task) = last_task();
        task_id.put(task)?;
        stream_id.put(stream.cast_unsigned())
    }
}

/// Returns the thread's last error, which is not an error of this call.
// SAFETY: the simulator replaces the library that exports this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn aclrtPeekAtLastError(level: aclrtLastErrLevel) -> aclError {
    count_call();
    match level {
        ACL_RT_THREAD_LEVEL => LAST_CODE.get(),
        _ => ACL_ERROR_INVALID_PARAM,
    }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn aclrtGetLastError(level: aclrtLastErrLevel) -> aclError {
    count_call();
    match level {
        ACL_RT_THREAD_LEVEL => LAST_CODE.replace(ACL_SUCCESS),
        _ => ACL_ERROR_INVALID_PARAM,
    }
}

const _: acl::thread::aclrtPeekAtLastError = aclrtPeekAtLastError;
const _: acl::thread::aclrtGetLastError = aclrtGetLastError;
