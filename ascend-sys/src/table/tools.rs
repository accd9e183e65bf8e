//! The device clock (HAL), annotations (mstx) and the vendor's profiler.

/// Hands the functions of the hardware abstraction layer to a macro; see [`crate::hal`].
#[macro_export]
macro_rules! for_each_hal {
    ($callback:ident $(, $($extra:tt)*)?) => {
        $callback! { [$($($extra)*)?]
            /// `device` is the logical device id.
            fn halGetDeviceInfo(device: u32, module: i32, info: i32, value: *mut i64) -> drvError_t;
            fn halGetAPIVersion(version: *mut i32) -> drvError_t;
        }
    };
}

/// Hands the functions that annotate a program to a macro; see [`crate::mstx`].
#[macro_export]
macro_rules! for_each_mstx {
    ($callback:ident $(, $($extra:tt)*)?) => {
        $callback! { [$($($extra)*)?]
            /// Without a stream the mark is the host's alone.
            fn mstxMarkA(message: *const c_char, stream: aclrtStream) -> ();
            fn mstxRangeStartA(message: *const c_char, stream: aclrtStream) -> mstxRangeId;
            fn mstxRangeEnd(range: mstxRangeId) -> ();
            fn mstxDomainCreateA(name: *const c_char) -> mstxDomainHandle_t;
            fn mstxDomainDestroy(domain: mstxDomainHandle_t) -> ();
            fn mstxDomainMarkA(domain: mstxDomainHandle_t, message: *const c_char, stream: aclrtStream) -> ();
            fn mstxDomainRangeStartA(domain: mstxDomainHandle_t, message: *const c_char, stream: aclrtStream) -> mstxRangeId;
            fn mstxDomainRangeEnd(domain: mstxDomainHandle_t, range: mstxRangeId) -> ();
        }
    };
}

/// Hands the functions that start and stop the vendor's profiler to a macro; see [`crate::acl::profiler`].
#[macro_export]
macro_rules! for_each_profiler {
    ($callback:ident $(, $($extra:tt)*)?) => {
        $callback! { [$($($extra)*)?]
            fn aclprofInit(path: *const c_char, length: usize) -> aclError;
            fn aclprofFinalize() -> aclError;
            fn aclprofStart(config: *const aclprofConfig) -> aclError;
            fn aclprofStop(config: *const aclprofConfig) -> aclError;
        }
    };
}
