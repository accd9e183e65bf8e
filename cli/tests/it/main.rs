//! Runs `sa-profile` like its users, with processes that really record.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails where it stands, and says where it does not run"
)]

mod bundle;
mod doctor;
mod hidden;
mod http;
mod live;
mod modes;
mod newest;
mod open;
mod out_of_memory;
mod perfetto;
mod program;
mod report;
mod run;
mod serving;
mod snapshot;
mod sql;
mod status;
mod switch;
mod usage;
