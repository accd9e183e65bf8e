//! Memory, and copies of it.

lists! { $
    /// Passes the functions that copy or set memory, or wait for a value in it, to a macro; see [`crate::acl::copy`].
    for_each_copy {
        fn aclrtMemcpy(dst: *mut c_void, dst_bytes: usize, src: *const c_void, count: usize, kind: aclrtMemcpyKind) -> aclError;
        fn aclrtMemcpyAsync(dst: *mut c_void, dst_bytes: usize, src: *const c_void, count: usize, kind: aclrtMemcpyKind, stream: aclrtStream) -> aclError;
        fn aclrtMemset(memory: *mut c_void, memory_bytes: usize, value: i32, count: usize) -> aclError;
        fn aclrtMemsetAsync(memory: *mut c_void, memory_bytes: usize, value: i32, count: usize, stream: aclrtStream) -> aclError;
        fn aclrtMemcpyAsyncWithCondition(dst: *mut c_void, dst_bytes: usize, src: *const c_void, count: usize, kind: aclrtMemcpyKind, stream: aclrtStream) -> aclError;
        /// Makes `size_count` copies, whose lengths in bytes are in `sizes`.
        fn aclrtMemcpyBatchAsync(dst: *mut *mut c_void, dst_bytes: *mut usize, src: *mut *mut c_void, sizes: *mut usize, size_count: usize, attributes: *mut aclrtMemcpyBatchAttr, attribute_indexes: *mut usize, attribute_count: usize, failed: *mut usize, stream: aclrtStream) -> aclError;
        /// Makes copies like `aclrtMemcpyBatchAsync`, but completes them before it returns.
        fn aclrtMemcpyBatch(dst: *mut *mut c_void, dst_bytes: *mut usize, src: *mut *mut c_void, sizes: *mut usize, size_count: usize, attributes: *mut aclrtMemcpyBatchAttr, attribute_indexes: *mut usize, attribute_count: usize, failed: *mut usize) -> aclError;
        /// Moves `count` bytes of memory into or out of the device's cache.
        fn aclrtCmoAsync(src: *mut c_void, count: usize, kind: aclrtCmoType, stream: aclrtStream) -> aclError;
        /// Reduces `count` bytes into the destination: adds the values, or keeps the larger or smaller ones.
        fn aclrtReduceAsync(dst: *mut c_void, src: *const c_void, count: u64, kind: aclrtReduceKind, data_type: aclDataType, stream: aclrtStream, reserve: *mut c_void) -> aclError;
        fn aclrtValueWrite(memory: *mut c_void, value: u64, flag: u32, stream: aclrtStream) -> aclError;
        /// Makes the stream wait until the number at `memory` compares with `value` as `flag` says.
        fn aclrtValueWait(memory: *mut c_void, value: u64, flag: u32, stream: aclrtStream) -> aclError;
    }

    /// Passes the functions of memory to a macro; see [`crate::acl::memory`].
    for_each_memory {
        fn aclrtMalloc(memory: *mut *mut c_void, bytes: usize, policy: aclrtMemMallocPolicy) -> aclError;
        fn aclrtFree(memory: *mut c_void) -> aclError;
        fn aclrtMallocHost(memory: *mut *mut c_void, bytes: usize) -> aclError;
        fn aclrtFreeHost(memory: *mut c_void) -> aclError;
        /// Returns the free and the total memory of the device.
        fn aclrtGetMemInfo(kind: aclrtMemAttr, free: *mut usize, total: *mut usize) -> aclError;
    }
}
