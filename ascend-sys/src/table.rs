//! Lists of all functions by group, and the macros that generate this crate's types from a list.
//!
//! `for_each_launch! { callback, anything }` expands to `callback! { [anything] fn aclrtLaunchKernel(func: aclrtFuncHandle, …) -> aclError; … }`. The types
//! are named as in [`crate::types`], which the caller of such a macro must import. Doc comments in a list are part of the list that the callback gets.

/// Defines a macro for each list. It passes the list to the macro that its caller names.
macro_rules! lists {
    ($d:tt $($(#[$doc:meta])* $list:ident { $($functions:tt)* })*) => {$(
        $(#[$doc])*
        #[macro_export]
        macro_rules! $list {
            ($d callback:ident $d(, $d($d extra:tt)*)?) => {
                $d callback! { [$d($d($d extra)*)?] $($functions)* }
            };
        }
    )*};
}

#[macro_use]
mod device;
#[macro_use]
mod graph;
#[macro_use]
mod hccl;
#[macro_use]
mod kernel;
#[macro_use]
mod memory;
#[macro_use]
mod rt;
#[macro_use]
mod stream;
#[macro_use]
mod tools;

/// Generates a type for each function of a list, and a struct with the functions that a library has.
macro_rules! functions {
    ([$(#[$doc:meta])* $group:ident] $($(#[$note:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) -> $result:ty;)*) => {
        $(
            #[doc = concat!("The type of `", stringify!($name), "`.")]
            $(#[$note])*
            pub type $name = unsafe extern "C" fn($($arg: $type),*) -> $result;
        )*

        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $group {
            $(
                #[doc = concat!("`", stringify!($name), "`, if the library has it.")]
                pub $name: Result<$name, crate::MissingSymbol>,
            )*
        }

        impl $group {
            /// Looks up all functions of this group in a library. A function that is missing becomes an error in its field.
            pub fn load(library: &crate::Library) -> Self {
                Self {
                    // SAFETY: each name has the same signature in the list as in the vendor's header.
                    $($name: unsafe { library.symbol::<$name>(concat!(stringify!($name), "\0")) },)*
                }
            }
        }
    };
}

/// Defines a module for each group with the functions of its list, and a struct of all groups.
macro_rules! groups {
    ($(#[$of:meta])* $all:ident { $($(#[$doc:meta])* $module:ident $group:ident $list:ident;)* }) => {
        $(
            $(#[$doc])*
            pub mod $module {
                #[allow(unused_imports, reason = "not every group has functions of every type")]
                use crate::types::*;

                $list! { functions, $(#[$doc])* $group }
            }
        )*

        $(#[$of])*
        #[derive(Clone, Copy, Debug)]
        pub struct $all {
            $($(#[$doc])* pub $module: $module::$group,)*
        }

        impl $all {
            /// Looks up the functions of all groups in a library. A function that is missing becomes an error in its field.
            pub fn load(library: &crate::Library) -> Self {
                Self { $($module: $module::$group::load(library),)* }
            }
        }
    };
}
