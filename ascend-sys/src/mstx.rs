//! Annotations (libms_tools_ext.so): ranges and marks that a program sets itself.
#![expect(
    non_camel_case_types,
    non_snake_case,
    reason = "the vendor's names, verbatim"
)]

use crate::types::*;

for_each_mstx! { functions, /** All functions of mstx. */ Mstx }
