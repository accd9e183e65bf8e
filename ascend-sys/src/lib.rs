//! Raw types and functions of the Ascend runtime (CANN), which are looked up at run time. Building does not need CANN, and neither does running without an NPU.
//!
//! All names are the vendor's. Each function has a type, such as `aclrtSetDevice`, and a field in the table of its group. The table contains the functions that the
//! installed libraries have. Each field is a `Result`, because every CANN version lacks some functions.
//!
//! ```no_run
//! use ascend_sys::{Acl, Candidates, Library, codes};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let library = Library::open(&Candidates::acl())?; // or an error that lists all attempts
//! let acl = Acl::load(&library);
//! let mut count = 0;
//! // SAFETY: `count` is writable for the call.
//! let code = unsafe { (acl.device.aclrtGetDeviceCount?)(&raw mut count) };
//! println!("{count} devices, {}", codes::name_of(code).unwrap_or("unknown code"));
//! # Ok(())
//! # }
//! ```
//!
//! **Data flow.** `table/` lists every function once, with its arguments. A macro for each group, such as [`for_each_launch!`], passes the list to any other
//! macro. This crate generates the types and the tables from the lists ([`acl`], [`rt`], [`hccl`], [`hal`], [`mspti`], [`mstx`]), and the preload library generates its
//! wrappers.
//!
//! **Guarantees.** This crate never calls the runtime and never panics: a missing library or symbol is an error with its name. A loaded library stays loaded, so
//! function pointers stay valid. The simulated runtime is never mistaken for a real one: only [`Library::open_simulator`] opens it.
#![expect(
    unsafe_code,
    reason = "opens shared libraries and gives their symbols types"
)]
#![expect(
    non_camel_case_types,
    non_snake_case,
    reason = "the vendor's names, verbatim"
)]

#[macro_use]
mod table;

pub mod acl;
mod candidates;
pub mod codes;
mod library;
pub mod mspti;
pub mod types;

pub use acl::Acl;
pub use candidates::Candidates;
pub use hal::Hal;
pub use hccl::Hccl;
pub use library::{Attempt, Library, LoadError, MissingSymbol, SIMULATOR_MARKER};
pub use mspti::Mspti;
pub use mstx::Mstx;
pub use rt::Rt;

/// The hardware abstraction layer (libascend_hal.so, part of the driver): the device clock.
pub mod hal {
    use crate::types::*;

    for_each_hal! { functions, /** All functions of the hardware abstraction layer. */ Hal }
}

/// Annotations (libms_tools_ext.so): ranges and marks that a program sets explicitly.
pub mod mstx {
    use crate::types::*;

    for_each_mstx! { functions, /** All functions of mstx. */ Mstx }
}

/// Collectives (libhccl.so), by group.
pub mod hccl {
    groups! {
        /// All functions of HCCL, by group.
        Hccl {
            /// Collectives, submitted to a stream.
            collective Collective for_each_collective;
            /// Communicators.
            comm Comm for_each_comm;
        }
    }
}

/// The rt level (libruntime.so), by group.
pub mod rt {
    groups! {
        /// All functions of the rt level, by group.
        Rt {
            /// Launches.
            launch Launch for_each_rt_launch;
            /// Models.
            model Model for_each_rt_model;
            /// Functions that name stubs and register binaries.
            naming Naming for_each_rt_naming;
            /// The last task of the calling thread.
            thread Thread for_each_rt_thread;
        }
    }
}
