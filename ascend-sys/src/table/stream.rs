//! Streams, waits of the host for them, and events.

lists! { $
    /// Hands the functions of streams to a macro; see [`crate::acl::stream`].
    for_each_stream {
        fn aclrtCreateStream(stream: *mut aclrtStream) -> aclError;
        fn aclrtCreateStreamWithConfig(stream: *mut aclrtStream, priority: u32, flag: u32) -> aclError;
        fn aclrtStreamQuery(stream: aclrtStream, status: *mut aclrtStreamStatus) -> aclError;
        /// The id is the number that every tool shows as "Stream N".
        fn aclrtStreamGetId(stream: aclrtStream, id: *mut i32) -> aclError;
        fn aclrtSetStreamAttribute(stream: aclrtStream, attribute: aclrtStreamAttr, value: *mut aclrtStreamAttrValue) -> aclError;
        fn aclrtRegStreamStateCallback(name: *const c_char, callback: aclrtStreamStateCallback, args: *mut c_void) -> aclError;
        fn aclrtStreamWaitEvent(stream: aclrtStream, event: aclrtEvent) -> aclError;
    }

    /// Hands the functions that ask what the calling thread did last to a macro; see [`crate::acl::thread`].
    for_each_thread {
        /// The id of the last task that the calling thread submitted.
        fn aclrtGetThreadLastTaskId(id: *mut u32) -> aclError;
        /// The code of the thread's last call that failed; 0 is none.
        fn aclrtPeekAtLastError(level: aclrtLastErrLevel) -> aclError;
        /// The same, and forgets it.
        fn aclrtGetLastError(level: aclrtLastErrLevel) -> aclError;
    }

    /// Hands the functions in which the host waits for the device to a macro; see [`crate::acl::synchronize`].
    for_each_synchronize {
        fn aclrtSynchronizeDevice() -> aclError;
        fn aclrtSynchronizeDeviceWithTimeout(timeout_ms: i32) -> aclError;
        fn aclrtSynchronizeStream(stream: aclrtStream) -> aclError;
        fn aclrtSynchronizeStreamWithTimeout(stream: aclrtStream, timeout_ms: i32) -> aclError;
        fn aclrtSynchronizeEvent(event: aclrtEvent) -> aclError;
    }

    /// Hands the functions of events to a macro; see [`crate::acl::event`].
    for_each_event {
        fn aclrtCreateEventWithFlag(event: *mut aclrtEvent, flag: u32) -> aclError;
        fn aclrtCreateEventExWithFlag(event: *mut aclrtEvent, flag: u32) -> aclError;
        /// Allowed before the event has completed; does not wait.
        fn aclrtDestroyEvent(event: aclrtEvent) -> aclError;
        fn aclrtRecordEvent(event: aclrtEvent, stream: aclrtStream) -> aclError;
        fn aclrtResetEvent(event: aclrtEvent, stream: aclrtStream) -> aclError;
        /// 1 is complete.
        fn aclrtQueryEventStatus(event: aclrtEvent, status: *mut aclrtEventRecordedStatus) -> aclError;
        fn aclrtQueryEventWaitStatus(event: aclrtEvent, status: *mut aclrtEventWaitStatus) -> aclError;
        fn aclrtEventElapsedTime(ms: *mut f32, start: aclrtEvent, end: aclrtEvent) -> aclError;
        /// Microseconds since the device was started, truncated.
        fn aclrtEventGetTimestamp(event: aclrtEvent, us: *mut u64) -> aclError;
    }

    /// Hands the function that makes a stream wait for one of the host's to a macro; see [`crate::acl::host_func`].
    for_each_host_func {
        fn aclrtLaunchHostFunc(stream: aclrtStream, callback: aclrtHostFunc, args: *mut c_void) -> aclError;
    }
}
