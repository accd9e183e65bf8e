//! Types and constants, named as in the vendor's headers. Handles are pointers to what only the runtime knows; enums are integers, so that a value of a
//! newer runtime is no undefined behaviour.

mod constants;
mod layout;

pub use constants::*;
pub use layout::*;
#[doc(no_inline)]
pub use std::ffi::{c_char, c_int, c_void};

/// Declares types of which only the name and the meaning are known here.
macro_rules! aliases {
    ($($(#[$doc:meta])* $name:ident = $type:ty;)*) => {
        $($(#[$doc])* pub type $name = $type;)*
    };
}

aliases! {
    /// An ACL error code; 0 is success. [`crate::codes`] has the names.
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

    /// A context: what a thread must have before it uses a device.
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
    /// A range between its start and its end; 0 is none.
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

    /// Not looked into.
    rtSmDesc_t = c_void;
    /// Not looked into.
    rtArgsEx_t = c_void;
    /// Not looked into.
    rtTaskCfgInfo_t = c_void;
    /// Not looked into.
    rtAicpuArgsEx_t = c_void;
    /// Not looked into.
    rtKernelLaunchNames_t = c_void;
    /// Not looked into.
    rtFusionArgsEx_t = c_void;
    /// Not looked into.
    rtFftsPlusTaskInfo_t = c_void;
    /// Not looked into.
    rtKernelLaunchCfg_t = c_void;
    /// Not looked into.
    rtPlaceHolderInfo_t = c_void;
    /// Not looked into.
    rtCpuKernelArgs_t = c_void;
    /// Not looked into.
    aclrtMemcpyBatchAttr = c_void;
    /// Not looked into.
    aclmdlDataset = c_void;
    /// Not looked into.
    aclmdlExecConfigHandle = c_void;
    /// Not looked into.
    aclTensorDesc = c_void;
    /// Not looked into.
    aclDataBuffer = c_void;
    /// Not looked into.
    aclopAttr = c_void;
    /// Not looked into.
    aclprofConfig = c_void;

    /// How a device is asked for; not looked into.
    aclrtDevAttr = c_int;
    /// What a device does: `ACL_RT_DEVICE_STATE_*`.
    aclrtDeviceState = c_int;
    /// What a stream does: `ACL_RT_STREAM_STATE_*`.
    aclrtStreamState = c_int;
    /// Whether a stream has run all its tasks: `ACL_STREAM_STATUS_*`.
    aclrtStreamStatus = c_int;
    /// Whose last error is asked for: `ACL_RT_THREAD_LEVEL`.
    aclrtLastErrLevel = c_int;
    /// An attribute of a stream: `ACL_STREAM_ATTR_*`.
    aclrtStreamAttr = c_int;
    /// What `aclrtQueryEventStatus` says: `ACL_EVENT_RECORDED_STATUS_*`.
    aclrtEventRecordedStatus = c_int;
    /// What `aclrtQueryEventWaitStatus` says: `ACL_EVENT_WAIT_STATUS_*`.
    aclrtEventWaitStatus = c_int;
    /// An attribute of a launch: `ACL_RT_LAUNCH_KERNEL_ATTR_*`.
    aclrtLaunchKernelAttrId = c_int;
    /// A direction of a copy: `ACL_MEMCPY_*`.
    aclrtMemcpyKind = c_int;
    /// What is done with the cache; not looked into.
    aclrtCmoType = c_int;
    /// How memory is combined with what is there; not looked into.
    aclrtReduceKind = c_int;
    /// The type of a tensor's elements; not looked into.
    aclDataType = c_int;
    /// How memory is allocated: `ACL_MEM_MALLOC_*`.
    aclrtMemMallocPolicy = c_int;
    /// Which memory of a device is meant.
    aclrtMemAttr = c_int;
    /// Whom a capture keeps from what: `ACL_MODEL_RI_CAPTURE_MODE_*`.
    aclmdlRICaptureMode = c_int;
    /// Whether a stream is captured: `ACL_MODEL_RI_CAPTURE_STATUS_*`.
    aclmdlRICaptureStatus = c_int;
    /// Who registers a callback: `ACL_REG_TYPE_*`.
    aclRegisterCallbackType = c_int;
    /// The engine of a single operator; not looked into.
    aclopEngineType = c_int;
    /// How a single operator is compiled; not looked into.
    aclopCompileType = c_int;
    /// The type of a collective's elements: `HCCL_DATA_TYPE_*`.
    HcclDataType = c_int;
    /// How a collective reduces: `HCCL_REDUCE_*`.
    HcclReduceOp = c_int;
    /// Whether a point-to-point item sends or receives: `HCCL_SEND`, `HCCL_RECV`.
    HcclSendRecvType = c_int;

    /// Is called in a stream's order, by a thread that runs `aclrtProcessReport`.
    aclrtCallback = Option<unsafe extern "C" fn(user_data: *mut c_void)>;
    /// Is called in a stream's order, by a thread of the runtime.
    aclrtHostFunc = Option<unsafe extern "C" fn(args: *mut c_void)>;
    /// Is told of a device that is set or reset.
    aclrtDeviceStateCallback = Option<unsafe extern "C" fn(device: i32, state: aclrtDeviceState, args: *mut c_void)>;
    /// Is told of a stream that is created or destroyed.
    aclrtStreamStateCallback = Option<unsafe extern "C" fn(stream: aclrtStream, state: aclrtStreamState, args: *mut c_void)>;
    /// Is told of calls; none for who wants records alone.
    msptiCallbackFunc = Option<unsafe extern "C" fn(user_data: *mut c_void, domain: c_int, callback: u32, data: *const c_void)>;
    /// Gives an empty buffer, or null; the bytes it has, and how many records it may get, 0 for all that fit.
    msptiBuffersCallbackRequestFunc = Option<unsafe extern "C" fn(buffer: *mut *mut u8, size: *mut usize, records: *mut usize)>;
    /// Takes a buffer back, with the bytes of it that are records.
    msptiBuffersCallbackCompleteFunc = Option<unsafe extern "C" fn(buffer: *mut u8, size: usize, valid_size: usize)>;
    /// Is called by `aclFinalize`.
    aclFinalizeCallbackFunc = Option<unsafe extern "C" fn(user_data: *mut c_void) -> aclError>;
}
