//! The macros that make an exported function of each line of a table of `ascend-sys`.

use std::ffi::c_void;

use crate::real::Symbol;

/// Makes the wrappers of a table; `family` says where the real functions are looked for ([`crate::real::Family`]), `group` which rules of `observed!` are theirs.
macro_rules! hooks {
    ([$family:ident $group:ident] $(
        $(#[$note:meta])*
        fn $name:ident($($arg:ident: $type:ty),* $(,)?) -> $result:ty;
    )*) => {
        $($crate::wrapper::hook! { $name $family $group ($([$arg $arg $type])*) $result })*
    };
}

/// Lists the wrappers of a table, for those who look for one by its name.
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
            $crate::wrapper::by_reach! { $name
                { $crate::wrapper::listed!(@hook $name) }
                { $crate::wrapper::listed!(@hook $name) }
                { None }
            }
        ),*]
    };
}

/// A wrapper and what is behind it.
pub(crate) struct Hook {
    /// The real function.
    pub(crate) symbol: &'static Symbol,
    /// The address of the wrapper.
    pub(crate) wrapper: fn() -> *mut c_void,
}

/// One of three: a function of a table is exported, it is found by `dlsym` alone, or it has no wrapper.
macro_rules! by_reach {
    // Not in every supported CANN: programs with a weak reference would take an exported name for a function that is there.
    (aclmdlRIUpdate $exported:tt { $($asked:tt)* } $none:tt) => { $($asked)* };
    (aclrtSynchronizeDeviceWithTimeout $exported:tt $asked:tt { $($none:tt)* }) => { $($none)* };
    // Starting and stopping tell all that matters here.
    (aclprofInit $exported:tt $asked:tt { $($none:tt)* }) => { $($none)* };
    (aclprofFinalize $exported:tt $asked:tt { $($none:tt)* }) => { $($none)* };
    // A capture is under way, in which nothing is timed.
    (aclmdlRICaptureTaskGrpBegin $exported:tt $asked:tt { $($none:tt)* }) => { $($none)* };
    (aclmdlRICaptureTaskGrpEnd $exported:tt $asked:tt { $($none:tt)* }) => { $($none)* };
    ($name:ident { $($exported:tt)* } $asked:tt $none:tt) => { $($exported)* };
}

/// Makes the wrapper of one function, if it has one.
///
/// The ABI is `C-unwind`: an exception, or the unwinding of a cancelled thread, passes through as it would without us.
macro_rules! hook {
    ($name:ident $($rest:tt)*) => {
        $crate::wrapper::by_reach! { $name
            {
                $crate::wrapper::wrapper! {
                    // SAFETY: the vendor's name and type, on purpose: this library exists to be found first.
                    #[unsafe(no_mangle)]
                    pub, $name $($rest)*
                }
            }
            { $crate::wrapper::wrapper! { , $name $($rest)* } }
            {}
        }
    };
}

/// The same of one that has.
macro_rules! wrapper {
    ($(#[$export:meta])* $visible:vis, $name:ident $family:ident $group:ident ($([$key:ident $arg:ident $type:ty])*) $result:ty) => {
        #[allow(non_snake_case, reason = "the vendor's name")]
        mod $name {
            pub(super) static REAL: $crate::real::Symbol = $crate::real::Symbol::new(
                concat!(stringify!($name), "\0"),
                &$crate::real::$family,
            );
        }

        #[doc = concat!("Stands in the place of `", stringify!($name), "`.")]
        ///
        /// # Safety
        /// That of the function whose place it takes: the arguments go there unchanged.
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

/// The argument of a name, in a list of `[name argument]`. A launch may have no number of blocks.
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

pub(crate) use {arg, by_reach, hook, hooks, listed, wrapper};
