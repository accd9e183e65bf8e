//! MSPTI (libmspti.so): records of what the devices did, in buffers that its client gives.
#![expect(
    non_camel_case_types,
    non_snake_case,
    reason = "the vendor's names, verbatim"
)]

use crate::types::*;

mod record;

pub use record::*;

for_each_mspti! { functions, /** All functions of MSPTI that are used. */ Mspti }
