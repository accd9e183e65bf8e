//! The macros that make an exported function of each line of a table of `ascend-sys`.

/// Makes the wrappers of a table; `family` says where the real functions are looked for ([`crate::real::Family`]), `group` which rules of `observed!` are theirs.
macro_rules! hooks {
    ([$family:ident $group:ident] $(
        $(#[$note:meta])*
        fn $name:ident($($arg:ident: $type:ty),* $(,)?) -> $result:ty;
    )*) => {
        $($crate::wrapper::hook! { $name $family $group ($([$arg $arg $type])*) $result })*
    };
}

/// Makes the wrapper of one function, unless it is one of the first rules.
///
/// The ABI is `C-unwind`: an exception, or the unwinding of a cancelled thread, passes through as it would without us.
macro_rules! hook {
    // Not in every supported CANN: an exported name would make programs believe that it is there.
    (aclrtLaunchKernelWithArgsArray $($rest:tt)*) => {};
    (aclmdlRICaptureToModelRIBegin $($rest:tt)*) => {};
    (rtFftsPlusTaskLaunch $($rest:tt)*) => {};
    (rtFftsPlusTaskLaunchWithFlag $($rest:tt)*) => {};
    (aclrtSynchronizeDeviceWithTimeout $($rest:tt)*) => {};
    (aclrtSynchronizeEventWithTimeout $($rest:tt)*) => {};
    // Starting and stopping tell all that matters here.
    (aclprofInit $($rest:tt)*) => {};
    (aclprofFinalize $($rest:tt)*) => {};
    ($name:ident $family:ident $group:ident ($([$key:ident $arg:ident $type:ty])*) $result:ty) => {
        #[doc = concat!("Stands in the place of `", stringify!($name), "`.")]
        ///
        /// # Safety
        /// That of the function whose place it takes: the arguments go there unchanged.
        // SAFETY: the vendor's name and type, on purpose: this library exists to be found first.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($arg: $type),*) -> $result {
            static REAL: $crate::real::Symbol = $crate::real::Symbol::new(
                concat!(stringify!($name), "\0"),
                &$crate::real::$family,
            );
            let real = REAL.get().map(|real| {
                move || {
                    // SAFETY: the symbol has the vendor's type, which the table gives this wrapper too.
                    let real = unsafe {
                        std::mem::transmute::<
                            std::ptr::NonNull<std::ffi::c_void>,
                            unsafe extern "C-unwind" fn($($type),*) -> $result,
                        >(real)
                    };
                    // SAFETY: the caller's own arguments, unchanged, for the function it called.
                    unsafe { real($($arg),*) }
                }
            });
            let call = $crate::call::Call {
                name: stringify!($name),
                real,
                missing: $crate::real::$family.missing,
            };
            observed!($group $name call $([$key $arg])*)
        }
    };
}

/// The argument of a name, in a list of `[name argument]`.
macro_rules! arg {
    (stream [stream $arg:ident] $($rest:tt)*) => { $arg };
    (num_blocks [num_blocks $arg:ident] $($rest:tt)*) => { $arg };
    (count [count $arg:ident] $($rest:tt)*) => { $arg };
    (data_type [data_type $arg:ident] $($rest:tt)*) => { $arg };
    ($name:ident $other:tt $($rest:tt)*) => { $crate::wrapper::arg!($name $($rest)*) };
}

pub(crate) use {arg, hook, hooks};
