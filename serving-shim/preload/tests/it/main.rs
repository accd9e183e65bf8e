//! The preload library in real processes: C programs against a vendor library made for these tests, with the preload and without it.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

mod annotations;
mod counted;
mod exports;
mod fakes;
mod forms;
mod missing;
mod names;
mod neighbours;
mod processes;
mod programs;
mod reach;
mod simulated;
mod traces;
mod unwinding;
