//! The header of the C API as cbindgen writes it from the sources.

/// The text of the header.
pub const GENERATED: &str = include_str!(concat!(env!("OUT_DIR"), "/sa_profile.h"));
