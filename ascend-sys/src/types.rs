//! Types and constants, named as in the vendor's headers. Handles are opaque pointers. Enums are integers, so that an unknown value from a newer runtime is not
//! undefined behaviour.

mod constants;
mod layout;

pub use constants::*;
pub use layout::*;
#[doc(no_inline)]
pub use std::ffi::{c_char, c_int, c_void};

/// Declares type aliases for the vendor's handles, enums, opaque structs and callbacks.
macro_rules! aliases {
    ($($(#[$doc:meta])* $name:ident = $type:ty;)*) => {
        $($(#[$doc])* pub type $name = $type;)*
    };
}

aliases! {
    /// An ACL error code; 0 is success. [`crate::codes`] contains the names.
    aclError = c_int;
    /// An error code of the rt level; 0 is success.
    rtError_t = i32;
    /// An error code of the hardware abstraction layer; 0 is success.
    drvError_t = c_int;
    /// An error code of HCCL; 0 is success.
    HcclResult = c_int;

    /// A result of MSPTI: `MSPTI_SUCCESS`, `MSPTI_ERROR_*`.
    msptiResult = c_int;
    /// The kind of a record of MSPTI: `MSPTI_ACTIVITY_KIND_*`.
    msptiActivityKind = c_int;

    /// A context, which a thread needs before it uses a device.
    aclrtContext = *mut c_void;
    /// A stream: a queue whose tasks run in order.
    aclrtStream = *mut c_void;
    /// An event.
    aclrtEvent = *mut c_void;
    /// A loaded binary.
    aclrtBinHandle = *mut c_void;
    /// A kernel in a loaded binary.
    aclrtFuncHandle = *mut c_void;
    /// A list of arguments.
    aclrtArgsHandle = *mut c_void;
    /// A captured graph.
    aclmdlRI = *mut c_void;
    /// A group of tasks of a captured graph.
    aclrtTaskGrp = *mut c_void;
    /// A communicator.
    HcclComm = *mut c_void;
    /// A domain of annotations.
    mstxDomainHandle_t = *mut c_void;
    /// The id of an open range; 0 is no range.
    mstxRangeId = u64;

    /// A subscriber of MSPTI.
    msptiSubscriberHandle = *mut c_void;

    /// A stream of the rt level: the same as [`aclrtStream`].
    rtStream_t = *mut c_void;
    /// A model of the rt level.
    rtModel_t = *mut c_void;
    /// A kernel of the rt level.
    rtFuncHandle = *mut c_void;
    /// A list of arguments of the rt level.
    rtArgsHandle = *mut c_void;
    /// Arguments of a launch of the rt level.
    rtLaunchArgsHandle = *mut c_void;

    /// An opaque struct.
    rtSmDesc_t = c_void;
    /// An opaque struct.
    rtArgsEx_t = c_void;
    /// An opaque struct.
    rtTaskCfgInfo_t = c_void;
    /// An opaque struct.
    rtAicpuArgsEx_t = c_void;
    /// An opaque struct.
    rtKernelLaunchNames_t = c_void;
    /// An opaque struct.
    rtFusionArgsEx_t = c_void;
    /// An opaque struct.
    rtFftsPlusTaskInfo_t = c_void;
    /// An opaque struct.
    rtKernelLaunchCfg_t = c_void;
    /// An opaque struct.
    rtPlaceHolderInfo_t = c_void;
    /// An opaque struct.
    rtCpuKernelArgs_t = c_void;
    /// An opaque struct.
    aclrtMemcpyBatchAttr = c_void;
    /// An opaque struct.
    aclmdlDataset = c_void;
    /// An opaque struct.
    aclmdlExecConfigHandle = c_void;
    /// An opaque struct.
    aclTensorDesc = c_void;
    /// An opaque struct.
    aclDataBuffer = c_void;
    /// An opaque struct.
    aclopAttr = c_void;
    /// An opaque struct.
    aclprofConfig = c_void;

    /// An attribute of a device. Its values are not used here.
    aclrtDevAttr = c_int;
    /// A state change of a device: `ACL_RT_DEVICE_STATE_*`.
    aclrtDeviceState = c_int;
    /// A state change of a stream: `ACL_RT_STREAM_STATE_*`.
    aclrtStreamState = c_int;
    /// The completion status of a stream's tasks: `ACL_STREAM_STATUS_*`.
    aclrtStreamStatus = c_int;
    /// The scope of a last error: `ACL_RT_THREAD_LEVEL`.
    aclrtLastErrLevel = c_int;
    /// An attribute of a stream: `ACL_STREAM_ATTR_*`.
    aclrtStreamAttr = c_int;
    /// The result of `aclrtQueryEventStatus`: `ACL_EVENT_RECORDED_STATUS_*`.
    aclrtEventRecordedStatus = c_int;
    /// The result of `aclrtQueryEventWaitStatus`: `ACL_EVENT_WAIT_STATUS_*`.
    aclrtEventWaitStatus = c_int;
    /// An attribute of a launch: `ACL_RT_LAUNCH_KERNEL_ATTR_*`.
    aclrtLaunchKernelAttrId = c_int;
    /// The direction of a copy: `ACL_MEMCPY_*`.
    aclrtMemcpyKind = c_int;
    /// A cache operation. Its values are not used here.
    aclrtCmoType = c_int;
    /// A reduction in memory. Its values are not used here.
    aclrtReduceKind = c_int;
    /// The type of a tensor's elements. Its values are not used here.
    aclDataType = c_int;
    /// An allocation policy: `ACL_MEM_MALLOC_*`.
    aclrtMemMallocPolicy = c_int;
    /// A kind of memory of a device.
    aclrtMemAttr = c_int;
    /// The threads in which a capture forbids unsafe calls: `ACL_MODEL_RI_CAPTURE_MODE_*`.
    aclmdlRICaptureMode = c_int;
    /// The capture status of a stream: `ACL_MODEL_RI_CAPTURE_STATUS_*`.
    aclmdlRICaptureStatus = c_int;
    /// The kind of component that registers a callback: `ACL_REG_TYPE_*`.
    aclRegisterCallbackType = c_int;
    /// The engine of a single operator. Its values are not used here.
    aclopEngineType = c_int;
    /// A compile mode of a single operator. Its values are not used here.
    aclopCompileType = c_int;
    /// The type of a collective's elements: `HCCL_DATA_TYPE_*`.
    HcclDataType = c_int;
    /// The reduction of a collective: `HCCL_REDUCE_*`.
    HcclReduceOp = c_int;
    /// The direction of a point-to-point item: `HCCL_SEND`, `HCCL_RECV`.
    HcclSendRecvType = c_int;

    /// A callback in stream order, called by a thread that runs `aclrtProcessReport`.
    aclrtCallback = Option<unsafe extern "C" fn(user_data: *mut c_void)>;
    /// A callback in stream order, called by a thread of the runtime.
    aclrtHostFunc = Option<unsafe extern "C" fn(args: *mut c_void)>;
    /// A callback for setting and resetting a device.
    aclrtDeviceStateCallback = Option<unsafe extern "C" fn(device: i32, state: aclrtDeviceState, args: *mut c_void)>;
    /// A callback for creating and destroying a stream.
    aclrtStreamStateCallback = Option<unsafe extern "C" fn(stream: aclrtStream, state: aclrtStreamState, args: *mut c_void)>;
    /// A callback for API calls. `None` if only records are wanted.
    msptiCallbackFunc = Option<unsafe extern "C" fn(user_data: *mut c_void, domain: c_int, callback: u32, data: *const c_void)>;
    /// A callback that provides an empty buffer, or null. It also returns the buffer's size in bytes and its maximum number of records, 0 for as many as fit.
    msptiBuffersCallbackRequestFunc = Option<unsafe extern "C" fn(buffer: *mut *mut u8, size: *mut usize, records: *mut usize)>;
    /// A callback that takes back a buffer. `valid_size` is the number of bytes with records.
    msptiBuffersCallbackCompleteFunc = Option<unsafe extern "C" fn(buffer: *mut u8, size: usize, valid_size: usize)>;
    /// A callback that `aclFinalize` calls.
    aclFinalizeCallbackFunc = Option<unsafe extern "C" fn(user_data: *mut c_void) -> aclError>;
}
