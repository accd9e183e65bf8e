//! `sa-profile tables` in a build that does not support it.

use crate::error::Error;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use trace_merge::Options;

/// Writes the tables of a run as Parquet; this build cannot.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _words: Vec<OsString>,
}

/// Returns the error that this build cannot write tables.
pub(crate) fn run(_: &Arguments) -> Result<ExitCode, Error> {
    Err(refusal())
}

/// Returns the error that this build cannot write tables.
pub(crate) fn write_new(_: &Options, _: &Path) -> Result<(), Error> {
    Err(refusal())
}

fn refusal() -> Error {
    Error::Unusable(
        "tables: this build cannot write Parquet: install a wheel of serving-shim/python/build-wheels.sh, or the sources with SA_CARGO_PROFILE=dist"
            .to_owned(),
    )
}
