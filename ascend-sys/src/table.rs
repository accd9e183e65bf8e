//! Every function once, in lists by group, and what this crate makes of a list.
//!
//! `for_each_launch! { callback, anything }` expands to `callback! { [anything] fn aclrtLaunchKernel(func: aclrtFuncHandle, …) -> aclError; … }`. The types
//! are named as in [`crate::types`], which whoever calls such a macro imports. What stands in a list's comments is in every list the caller sees.

/// Defines a macro for each list, which hands the list to the macro that its caller names.
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

/// Makes of a list a type for each function, and a struct with what a library has of them.
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
            /// Looks all functions of the group up in a library.
            pub fn load(library: &crate::Library) -> Self {
                Self {
                    // SAFETY: the table gives each name the signature that the vendor's header does.
                    $($name: unsafe { library.symbol::<$name>(concat!(stringify!($name), "\0")) },)*
                }
            }
        }
    };
}

/// Defines a module for each group, with what its list names, and a struct of all groups.
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
            /// Looks all functions up in a library.
            pub fn load(library: &crate::Library) -> Self {
                Self { $($module: $module::$group::load(library),)* }
            }
        }
    };
}
