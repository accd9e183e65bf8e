//! Memory, and copies of it.

/// Hands the functions that copy or set memory to a macro; see [`crate::acl::copy`].
#[macro_export]
macro_rules! for_each_copy {
    ($callback:ident $(, $($extra:tt)*)?) => {
        $callback! { [$($($extra)*)?]
            fn aclrtMemcpy(dst: *mut c_void, dst_bytes: usize, src: *const c_void, count: usize, kind: aclrtMemcpyKind) -> aclError;
            fn aclrtMemcpyAsync(dst: *mut c_void, dst_bytes: usize, src: *const c_void, count: usize, kind: aclrtMemcpyKind, stream: aclrtStream) -> aclError;
            fn aclrtMemset(memory: *mut c_void, memory_bytes: usize, value: i32, count: usize) -> aclError;
            fn aclrtMemsetAsync(memory: *mut c_void, memory_bytes: usize, value: i32, count: usize, stream: aclrtStream) -> aclError;
        }
    };
}

/// Hands the functions of memory to a macro; see [`crate::acl::memory`].
#[macro_export]
macro_rules! for_each_memory {
    ($callback:ident $(, $($extra:tt)*)?) => {
        $callback! { [$($($extra)*)?]
            fn aclrtMalloc(memory: *mut *mut c_void, bytes: usize, policy: aclrtMemMallocPolicy) -> aclError;
            fn aclrtFree(memory: *mut c_void) -> aclError;
            fn aclrtMallocHost(memory: *mut *mut c_void, bytes: usize) -> aclError;
            fn aclrtFreeHost(memory: *mut c_void) -> aclError;
        }
    };
}
