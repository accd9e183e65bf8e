//! Programs from Debian below the preload: what they say and how they end is the same with it and without it, nothing of ours stays behind, and what they record is whole.
//!
//! They ask nothing of an NPU, so with the preload alone they record nothing. `inside.c` makes them record: each of their processes launches at its start, at its forks and whenever it waits.

mod go;
mod nginx;
mod node;
mod postgres;
mod python;
mod redis;
mod rights;
mod sandbox;
mod shell;
mod subject;
mod tracers;
