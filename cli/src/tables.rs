//! `sa-profile tables`: writes the tables of a recorded run as Parquet, in builds that support it.

#[cfg(not(feature = "tables"))]
mod left_out;
#[cfg(feature = "tables")]
mod write;

#[cfg(not(feature = "tables"))]
pub(crate) use left_out::{Arguments, run, write_new};
#[cfg(feature = "tables")]
pub(crate) use write::{Arguments, run, write_new};
