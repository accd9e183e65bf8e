//! The hardware abstraction layer (libascend_hal.so, of the driver): the device clock.
#![expect(
    non_camel_case_types,
    non_snake_case,
    reason = "the vendor's names, verbatim"
)]

use crate::types::*;

for_each_hal! { functions, /** All functions of the hardware abstraction layer. */ Hal }
