//! Streams, events, and functions in which the host waits for them.

lists! { $
    /// Passes the functions of streams to a macro; see [`crate::acl::stream`].
    for_each_stream {
        fn aclrtCreateStream(stream: *mut aclrtStream) -> aclError;
        fn aclrtCreateStreamWithConfig(stream: *mut aclrtStream, priority: u32, flag: u32) -> aclError;
        fn aclrtStreamQuery(stream: aclrtStream, status: *mut aclrtStreamStatus) -> aclError;
        /// Returns the id of a stream: the number that all tools show as "Stream N".
        fn aclrtStreamGetId(stream: aclrtStream, id: *mut i32) -> aclError;
        fn aclrtSetStreamAttribute(stream: aclrtStream, attribute: aclrtStreamAttr, value: *mut aclrtStreamAttrValue) -> aclError;
        fn aclrtRegStreamStateCallback(name: *const c_char, callback: aclrtStreamStateCallback, args: *mut c_void) -> aclError;
        fn aclrtStreamWaitEvent(stream: aclrtStream, event: aclrtEvent) -> aclError;
    }

    /// Passes the functions that return the calling thread's last task and last error to a macro; see [`crate::acl::thread`].
    for_each_thread {
        /// Returns the id of the last task that the calling thread submitted.
        fn aclrtGetThreadLastTaskId(id: *mut u32) -> aclError;
        /// Returns the code of the calling thread's last failed call, or 0 if there is none. Does not clear it.
        fn aclrtPeekAtLastError(level: aclrtLastErrLevel) -> aclError;
        /// Returns the code of the calling thread's last failed call, or 0 if there is none, and clears it.
        fn aclrtGetLastError(level: aclrtLastErrLevel) -> aclError;
    }

    /// Passes the functions in which the host waits for the device to a macro; see [`crate::acl::synchronize`].
    for_each_synchronize {
        fn aclrtSynchronizeDevice() -> aclError;
        fn aclrtSynchronizeDeviceWithTimeout(timeout_ms: i32) -> aclError;
        fn aclrtSynchronizeStream(stream: aclrtStream) -> aclError;
        fn aclrtSynchronizeStreamWithTimeout(stream: aclrtStream, timeout_ms: i32) -> aclError;
        fn aclrtSynchronizeEvent(event: aclrtEvent) -> aclError;
    }

    /// Passes the functions of events to a macro; see [`crate::acl::event`].
    for_each_event {
        fn aclrtCreateEventWithFlag(event: *mut aclrtEvent, flag: u32) -> aclError;
        fn aclrtCreateEventExWithFlag(event: *mut aclrtEvent, flag: u32) -> aclError;
        /// Destroys an event. May be called before the event has completed. Does not wait.
        fn aclrtDestroyEvent(event: aclrtEvent) -> aclError;
        fn aclrtRecordEvent(event: aclrtEvent, stream: aclrtStream) -> aclError;
        fn aclrtResetEvent(event: aclrtEvent, stream: aclrtStream) -> aclError;
        /// Writes whether the stream has reached the event. A status of 1 means complete.
        fn aclrtQueryEventStatus(event: aclrtEvent, status: *mut aclrtEventRecordedStatus) -> aclError;
        fn aclrtQueryEventWaitStatus(event: aclrtEvent, status: *mut aclrtEventWaitStatus) -> aclError;
        fn aclrtEventElapsedTime(ms: *mut f32, start: aclrtEvent, end: aclrtEvent) -> aclError;
        /// Returns the time at which the stream reached the event: the time since the device was started, truncated to microseconds.
        fn aclrtEventGetTimestamp(event: aclrtEvent, us: *mut u64) -> aclError;
    }

    /// Passes the function that makes a stream wait for a function on the host to a macro; see [`crate::acl::host_func`].
    for_each_host_func {
        fn aclrtLaunchHostFunc(stream: aclrtStream, callback: aclrtHostFunc, args: *mut c_void) -> aclError;
    }
}
