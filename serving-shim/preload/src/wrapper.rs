//! Macros that define an exported function for each line of a table of `ascend-sys`.

use std::ffi::c_void;

use crate::real::Symbol;

/// Defines the wrappers of a table. `family` selects the libraries of the real functions ([`crate::real::Family`]), `group` the rules of `observed!`.
macro_rules! hooks {
    ([$family:ident $group:ident] $(
        $(#[$note:meta])*
        fn $name:ident($($arg:ident: $type:ty),* $(,)?) -> $result:ty;
    )*) => {
        $($crate::wrapper::hook! { $name $family $group ($([$arg $arg $type])*) $result })*
    };
}

/// Lists the wrappers of a table, so that they can be found by name.
macro_rules! listed {
    (@hook $name:ident) => {
        Some($crate::wrapper::Hook {
            symbol: &$name::REAL,
            wrapper: || $name as *const () as *mut std::ffi::c_void,
        })
    };
    ([] $(
        $(#[$note:meta])*
        fn $name:ident($($arg:ident: $type:ty),* $(,)?) -> $result:ty;
    )*) => {
        &[$(
            $crate::wrapper::by_visibility! { $name
                { $crate::wrapper::listed!(@hook $name) }
                { $crate::wrapper::listed!(@hook $name) }
                { None }
            }
        ),*]
    };
}

/// A wrapper and its real function.
pub(crate) struct Hook {
    /// The real function.
    pub(crate) symbol: &'static Symbol,
    /// Function that returns the address of the wrapper.
    pub(crate) wrapper: fn() -> *mut c_void,
}

/// Selects one of three expansions: for a function that is exported, for one that only our `dlsym` returns, or for one without a wrapper.
macro_rules! by_visibility {
    // Missing in some supported versions of CANN: programs with a weak reference would take an exported name for an available function.
    (aclmdlRIUpdate $exported:tt { $($asked:tt)* } $none:tt) => { $($asked)* };
    (aclrtSynchronizeDeviceWithTimeout $exported:tt $asked:tt { $($none:tt)* }) => { $($none)* };
    // Observing start and stop is enough.
    (aclprofInit $exported:tt $asked:tt { $($none:tt)* }) => { $($none)* };
    (aclprofFinalize $exported:tt $asked:tt { $($none:tt)* }) => { $($none)* };
    // Only called during a capture, when nothing is timed.
    (aclmdlRICaptureTaskGrpBegin $exported:tt $asked:tt { $($none:tt)* }) => { $($none)* };
    (aclmdlRICaptureTaskGrpEnd $exported:tt $asked:tt { $($none:tt)* }) => { $($none)* };
    ($name:ident { $($exported:tt)* } $asked:tt $none:tt) => { $($exported)* };
}

/// Defines the wrapper of one function, unless it has none.
///
/// The ABI is `C-unwind`, so that exceptions and the unwinding of a cancelled thread pass through as they would without us.
macro_rules! hook {
    ($name:ident $($rest:tt)*) => {
        $crate::wrapper::by_visibility! { $name
            {
                $crate::wrapper::wrapper! {
                    // SAFETY: the name and type are deliberately those of the vendor: this library exists to be found first.
                    #[unsafe(no_mangle)]
                    pub, $name $($rest)*
                }
            }
            { $crate::wrapper::wrapper! { , $name $($rest)* } }
            {}
        }
    };
}

/// Defines the wrapper of one function.
macro_rules! wrapper {
    ($(#[$export:meta])* $visible:vis, $name:ident $family:ident $group:ident ($([$key:ident $arg:ident $type:ty])*) $result:ty) => {
        #[allow(non_snake_case, reason = "the vendor's name")]
        mod $name {
            pub(super) static REAL: $crate::real::Symbol = $crate::real::Symbol::new(
                concat!(stringify!($name), "\0"),
                &$crate::real::$family,
            );
        }

        #[doc = concat!("Replaces `", stringify!($name), "`.")]
        ///
        /// # Safety
        /// The requirements of the replaced function, which gets the arguments unchanged.
        $(#[$export])*
        $visible unsafe extern "C-unwind" fn $name($($arg: $type),*) -> $result {
            let real = $name::REAL.get().map(|real| {
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

/// Expands to the argument with a name from a list of `[name argument]`. A launch without a number of blocks has 0.
macro_rules! arg {
    (num_blocks) => { 0 };
    (stream [stream $arg:ident] $($rest:tt)*) => { $arg };
    (num_blocks [num_blocks $arg:ident] $($rest:tt)*) => { $arg };
    (sizes [sizes $arg:ident] $($rest:tt)*) => { $arg };
    (size_count [size_count $arg:ident] $($rest:tt)*) => { $arg };
    (count [count $arg:ident] $($rest:tt)*) => { $arg };
    (data_type [data_type $arg:ident] $($rest:tt)*) => { $arg };
    ($name:ident $other:tt $($rest:tt)*) => { $crate::wrapper::arg!($name $($rest)*) };
}

pub(crate) use {arg, by_visibility, hook, hooks, listed, wrapper};
