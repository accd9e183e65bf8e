//! The header of the C API, generated from the sources by cbindgen.

/// Text of the header.
pub const GENERATED: &str = include_str!(concat!(env!("OUT_DIR"), "/sa_profile.h"));
