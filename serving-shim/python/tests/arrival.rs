//! The parts of the extension that need no interpreter: estimating when a request arrived. The library itself cannot be loaded by a Rust test.
#![expect(unsafe_code, reason = "asks the kernel, as the library does")]
#![allow(dead_code, reason = "the library calls what no test does")]

#[path = "../src/engine/http/arrival.rs"]
mod arrival;
#[path = "../src/engine/http/awake.rs"]
mod awake;
#[path = "../src/engine/http/clock.rs"]
mod clock;
#[path = "../src/engine/http/silence.rs"]
mod silence;
#[path = "../src/engine/http/ticks.rs"]
mod ticks;
