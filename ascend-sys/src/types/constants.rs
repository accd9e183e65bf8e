//! Values of the vendor's enums and flags.

use super::*;

/// Declares constants that share a type.
macro_rules! constants {
    ($($what:literal: $type:ty { $($name:ident = $value:expr;)* })*) => {
        $($(
            #[doc = $what]
            pub const $name: $type = $value;
        )*)*
    };
}

constants! {
    "A value of `aclrtDeviceState`.": aclrtDeviceState {
        ACL_RT_DEVICE_STATE_SET_PRE = 0;
        ACL_RT_DEVICE_STATE_SET_POST = 1;
        ACL_RT_DEVICE_STATE_RESET_PRE = 2;
        ACL_RT_DEVICE_STATE_RESET_POST = 3;
    }
    "A value of `aclrtStreamState`.": aclrtStreamState {
        ACL_RT_STREAM_STATE_CREATE_POST = 1;
        ACL_RT_STREAM_STATE_DESTROY_PRE = 2;
    }
    "A value of `aclrtStreamStatus`.": aclrtStreamStatus {
        ACL_STREAM_STATUS_COMPLETE = 0;
        ACL_STREAM_STATUS_NOT_READY = 1;
    }
    "The value of `aclrtLastErrLevel`.": aclrtLastErrLevel {
        ACL_RT_THREAD_LEVEL = 0;
    }
    "A flag of `aclrtCreateEventWithFlag` and `aclrtCreateEventExWithFlag`.": u32 {
        ACL_EVENT_SYNC = 0x1;
        ACL_EVENT_CAPTURE_STREAM_PROGRESS = 0x2;
        ACL_EVENT_TIME_LINE = 0x8;
        ACL_EVENT_DEVICE_USE_ONLY = 0x10;
        ACL_EVENT_EXTERNAL = 0x20;
        ACL_EVENT_IPC = 0x40;
    }
    "A value of `aclrtEventRecordedStatus`.": aclrtEventRecordedStatus {
        ACL_EVENT_RECORDED_STATUS_NOT_READY = 0;
        ACL_EVENT_RECORDED_STATUS_COMPLETE = 1;
    }
    "A value of `aclrtEventWaitStatus`.": aclrtEventWaitStatus {
        ACL_EVENT_WAIT_STATUS_COMPLETE = 0;
        ACL_EVENT_WAIT_STATUS_NOT_READY = 1;
    }
    "A value of `aclmdlRICaptureMode`.": aclmdlRICaptureMode {
        ACL_MODEL_RI_CAPTURE_MODE_GLOBAL = 0;
        ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL = 1;
        ACL_MODEL_RI_CAPTURE_MODE_RELAXED = 2;
    }
    "A value of `aclmdlRICaptureStatus`.": aclmdlRICaptureStatus {
        ACL_MODEL_RI_CAPTURE_STATUS_NONE = 0;
        ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE = 1;
        ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED = 2;
    }
    "A value of `aclRegisterCallbackType`.": aclRegisterCallbackType {
        ACL_REG_TYPE_OTHER = 0xFFFF;
    }
    "A value of `HcclDataType`.": HcclDataType {
        HCCL_DATA_TYPE_INT8 = 0;
        HCCL_DATA_TYPE_INT16 = 1;
        HCCL_DATA_TYPE_INT32 = 2;
        HCCL_DATA_TYPE_FP16 = 3;
        HCCL_DATA_TYPE_FP32 = 4;
        HCCL_DATA_TYPE_INT64 = 5;
        HCCL_DATA_TYPE_UINT64 = 6;
        HCCL_DATA_TYPE_UINT8 = 7;
        HCCL_DATA_TYPE_UINT16 = 8;
        HCCL_DATA_TYPE_UINT32 = 9;
        HCCL_DATA_TYPE_FP64 = 10;
        HCCL_DATA_TYPE_BFP16 = 11;
        HCCL_DATA_TYPE_INT128 = 12;
        HCCL_DATA_TYPE_HIF8 = 14;
        HCCL_DATA_TYPE_FP8E4M3 = 15;
        HCCL_DATA_TYPE_FP8E5M2 = 16;
        HCCL_DATA_TYPE_FP8E8M0 = 17;
    }
    "A value of `HcclSendRecvType`.": HcclSendRecvType {
        HCCL_SEND = 0;
    }
    "A value of `msptiResult`.": msptiResult {
        MSPTI_SUCCESS = 0;
        MSPTI_ERROR_INVALID_PARAMETER = 1;
        MSPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 2;
        MSPTI_ERROR_MAX_LIMIT_REACHED = 3;
        MSPTI_ERROR_WITHOUT_LD_PRELOAD = 6;
        MSPTI_ERROR_INVALID_KIND = 8;
        MSPTI_ERROR_INNER = 999;
    }
    "A value of `msptiActivityKind`.": msptiActivityKind {
        MSPTI_ACTIVITY_KIND_MARKER = 1;
        MSPTI_ACTIVITY_KIND_KERNEL = 2;
        MSPTI_ACTIVITY_KIND_HCCL = 4;
        MSPTI_ACTIVITY_KIND_MEMORY = 5;
        MSPTI_ACTIVITY_KIND_COMMUNICATION = 9;
    }
    "A module of `halGetDeviceInfo`, or one of its infos. Frequencies are in kHz.": i32 {
        MODULE_TYPE_SYSTEM = 0;
        INFO_TYPE_VERSION = 1;
        INFO_TYPE_SYS_COUNT = 13;
        INFO_TYPE_MONOTONIC_RAW = 14;
        INFO_TYPE_HOST_OSC_FREQUE = 24;
        INFO_TYPE_DEV_OSC_FREQUE = 25;
    }
}

/// Maximum length of a communicator's name, including its NUL byte.
pub const HCCL_COMM_NAME_BYTES: usize = 128;

/// The lowest result of `halGetAPIVersion` for which `INFO_TYPE_HOST_OSC_FREQUE` is reliable.
pub const HAL_API_WITH_HOST_OSC: i32 = 0x0007_1905;

/// Returns the size in bytes of one element of a collective's data type, if the type is known.
pub const fn hccl_element_bytes(data_type: HcclDataType) -> Option<usize> {
    Some(match data_type {
        HCCL_DATA_TYPE_INT8
        | HCCL_DATA_TYPE_UINT8
        | HCCL_DATA_TYPE_HIF8..=HCCL_DATA_TYPE_FP8E8M0 => 1,
        HCCL_DATA_TYPE_INT16
        | HCCL_DATA_TYPE_UINT16
        | HCCL_DATA_TYPE_FP16
        | HCCL_DATA_TYPE_BFP16 => 2,
        HCCL_DATA_TYPE_INT32 | HCCL_DATA_TYPE_UINT32 | HCCL_DATA_TYPE_FP32 => 4,
        HCCL_DATA_TYPE_INT64 | HCCL_DATA_TYPE_UINT64 | HCCL_DATA_TYPE_FP64 => 8,
        HCCL_DATA_TYPE_INT128 => 16,
        _ => return None,
    })
}
