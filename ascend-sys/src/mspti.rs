//! MSPTI (libmspti.so): records of the devices' activity, in buffers that the client provides.
#![expect(
    non_camel_case_types,
    non_snake_case,
    reason = "the vendor's names, verbatim"
)]

use crate::types::*;

mod record;

pub use record::*;

for_each_mspti! { functions, /** The functions of MSPTI that we use. */ Mspti }
