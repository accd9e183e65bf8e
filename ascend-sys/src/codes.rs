//! Error codes of ACL and the rt level that the shim or the simulator distinguishes.

use crate::types::aclError;

/// Declares codes and the function that returns their names.
macro_rules! codes {
    ($($name:ident = $value:literal, $meaning:literal;)*) => {
        $(
            #[doc = concat!($meaning, ".")]
            pub const $name: aclError = $value;
        )*

        /// Returns the vendor's name of an error code of the runtime, if it is one of these constants.
        pub const fn name_of(code: aclError) -> Option<&'static str> {
            match code {
                $($value => Some(stringify!($name)),)*
                _ => None,
            }
        }
    };
}

codes! {
    ACL_SUCCESS = 0, "Success";
    ACL_ERROR_INVALID_PARAM = 100000, "An argument is invalid";
    ACL_ERROR_UNINITIALIZE = 100001, "`aclInit` was not called";
    ACL_ERROR_REPEAT_INITIALIZE = 100002, "`aclInit` was called before. This can be treated as success";
    ACL_ERROR_API_NOT_SUPPORT = 200001, "The function is not supported";
    ACL_ERROR_INTERNAL_ERROR = 500000, "An error inside ACL";
    ACL_ERROR_FAILURE = 500001, "An error inside a part of ACL";

    ACL_ERROR_RT_PARAM_INVALID = 107000, "An argument is invalid";
    ACL_ERROR_RT_INVALID_DEVICEID = 107001, "No such device";
    ACL_ERROR_RT_CONTEXT_NULL = 107002, "The thread has no current context";
    ACL_ERROR_RT_STREAM_CONTEXT = 107003, "The stream does not belong to the current context";
    ACL_ERROR_RT_MODEL_CONTEXT = 107004, "The model does not belong to the current context";
    ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID = 107006, "The event has not completed, or it was not created with `ACL_EVENT_TIME_LINE`";
    ACL_ERROR_RT_INVALID_HANDLE = 107017, "The handle is invalid";
    ACL_ERROR_RT_STREAM_ABORT = 107023, "The stream is being aborted";
    ACL_ERROR_RT_CAPTURE_DEPENDENCY = 107024, "A captured stream depends on work outside the capture";
    ACL_ERROR_RT_STREAM_UNJOINED = 107025, "A captured stream was not joined to the first one";
    ACL_ERROR_RT_MODEL_CAPTURED = 107026, "The model is being captured";
    ACL_ERROR_RT_STREAM_CAPTURED = 107027, "The stream is being captured";
    ACL_ERROR_RT_EVENT_CAPTURED = 107028, "The event is being captured";
    ACL_ERROR_RT_STREAM_NOT_CAPTURED = 107029, "The stream is not being captured";
    ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT = 107030, "The capture mode does not allow this call";
    ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT = 107031, "The default stream depends on a capture";
    ACL_ERROR_STREAM_CAPTURE_CONFLICT = 107032, "The stream depends on one that is being captured";
    ACL_ERROR_STREAM_TASK_GROUP_STATUS = 107033, "The task group is in the wrong state";
    ACL_ERROR_STREAM_TASK_GROUP_INTR = 107034, "The task group was interrupted";
    ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED = 107036, "The capture was not begun on this stream";
    ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD = 107038, "The capture was begun by another thread";

    ACL_ERROR_RT_FEATURE_NOT_SUPPORT = 207000, "The feature is not supported";
    ACL_ERROR_RT_MEMORY_ALLOCATION = 207001, "Out of memory";
    ACL_ERROR_RT_RESOURCE_ALLOC_FAIL = 207005, "A resource could not be allocated";
    ACL_ERROR_RT_NO_STREAM_RESOURCE = 207008, "No more streams are available";

    ACL_ERROR_RT_INTERNAL_ERROR = 507000, "An error inside the runtime, or the event was never recorded";
    ACL_ERROR_RT_STREAM_TASK_FULL = 507002, "The stream is full";
    ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT = 507009, "The task cannot be part of an update";
    ACL_ERROR_RT_LOST_HEARTBEAT = 507010, "The task scheduler does not respond: the device is lost";
    ACL_ERROR_RT_AICORE_TIMEOUT = 507014, "A kernel took too long";
    ACL_ERROR_RT_AICORE_EXCEPTION = 507015, "A kernel failed";
    ACL_ERROR_RT_STREAM_SYNC_TIMEOUT = 507046, "Waiting for a stream took too long";
    ACL_ERROR_RT_FFTS_PLUS_TIMEOUT = 507048, "A fused task took too long";
    ACL_ERROR_RT_FFTS_PLUS_EXCEPTION = 507049, "A fused task failed";
    ACL_ERROR_RT_DEVICE_MEM_ERROR = 507053, "A memory error on the device";
    ACL_ERROR_RT_HBM_MULTI_BIT_ECC_ERROR = 507054, "An uncorrectable memory error on the device";
    ACL_ERROR_RT_LINK_ERROR = 507056, "A link failed";
    ACL_ERROR_RT_DRV_INTERNAL_ERROR = 507899, "An error inside the driver";
    ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED = 507903, "The capture was invalidated";
}
