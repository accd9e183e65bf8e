//! The device clock (HAL), annotations (mstx), and the vendor's two ways to profile.

lists! { $
    /// Passes the functions of the hardware abstraction layer to a macro; see [`crate::hal`].
    for_each_hal {
        /// Returns a value about a device from the driver. `device` is the logical device id.
        fn halGetDeviceInfo(device: u32, module: i32, info: i32, value: *mut i64) -> drvError_t;
        fn halGetAPIVersion(version: *mut i32) -> drvError_t;
    }

    /// Passes the functions that annotate a program to a macro; see [`crate::mstx`].
    for_each_mstx {
        /// Marks a point in time. Without a stream, the mark is only on the host.
        fn mstxMarkA(message: *const c_char, stream: aclrtStream) -> ();
        fn mstxRangeStartA(message: *const c_char, stream: aclrtStream) -> mstxRangeId;
        fn mstxRangeEnd(range: mstxRangeId) -> ();
        fn mstxDomainCreateA(name: *const c_char) -> mstxDomainHandle_t;
        fn mstxDomainDestroy(domain: mstxDomainHandle_t) -> ();
        fn mstxDomainMarkA(domain: mstxDomainHandle_t, message: *const c_char, stream: aclrtStream) -> ();
        fn mstxDomainRangeStartA(domain: mstxDomainHandle_t, message: *const c_char, stream: aclrtStream) -> mstxRangeId;
        fn mstxDomainRangeEnd(domain: mstxDomainHandle_t, range: mstxRangeId) -> ();
    }

    /// Passes the functions that start and stop the vendor's profiler to a macro; see [`crate::acl::profiler`].
    for_each_profiler {
        fn aclprofInit(path: *const c_char, length: usize) -> aclError;
        fn aclprofFinalize() -> aclError;
        fn aclprofStart(config: *const aclprofConfig) -> aclError;
        fn aclprofStop(config: *const aclprofConfig) -> aclError;
    }
}

/// Passes the functions that deliver records of the devices' activity to a macro; see [`crate::mspti`].
#[macro_export]
macro_rules! for_each_mspti {
    ($callback:ident $(, $($extra:tt)*)?) => {
        $callback! { [$($($extra)*)?]
            /// Subscribes to MSPTI, which allows only one subscriber at a time. A second one gets `MSPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED`.
            fn msptiSubscribe(subscriber: *mut msptiSubscriberHandle, callback: msptiCallbackFunc, user_data: *mut c_void) -> msptiResult;
            fn msptiUnsubscribe(subscriber: msptiSubscriberHandle) -> msptiResult;
            /// Sets the callbacks that provide buffers for records and accept filled ones. Silently replaces any earlier callbacks.
            fn msptiActivityRegisterCallbacks(requested: msptiBuffersCallbackRequestFunc, completed: msptiBuffersCallbackCompleteFunc) -> msptiResult;
            fn msptiActivityEnable(kind: msptiActivityKind) -> msptiResult;
            /// Stops recording activity of this kind. Collects the pending records of the devices first.
            fn msptiActivityDisable(kind: msptiActivityKind) -> msptiResult;
            /// Returns the next record in a buffer. Continues after the calling thread's last record. A valid size of 0 restarts at the beginning.
            fn msptiActivityGetNextRecord(buffer: *mut u8, valid_size: usize, record: *mut *mut msptiActivity) -> msptiResult;
            /// Makes MSPTI return all buffers with records. It calls the callback on the calling thread.
            fn msptiActivityFlushAll(flag: u32) -> msptiResult;
        }
    };
}
