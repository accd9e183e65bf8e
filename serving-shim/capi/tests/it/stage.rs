//! Compiles programs with the library that cargo built, and runs them.

use c_programs::{Ground, Trace, success};
use std::path::PathBuf;

/// The package's folder.
pub(crate) const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");
/// The compiler option for the folder of the header.
const INCLUDE: &str = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
/// The compiler options of every C program here.
pub(crate) const C: [&str; 4] = ["-std=c11", "-D_DEFAULT_SOURCE", "-Wextra", "-Wpedantic"];
/// The options that link a program with the library.
pub(crate) const LIBRARY: [&str; 2] = [INCLUDE, "-lsa_profile"];

/// Creates a test folder that has the shared library under the names that the linker and the loader look for.
pub(crate) fn stage() -> Ground {
    let ground = Ground::default();
    for name in ["libsa_profile.so", "libsa_profile.so.0"] {
        ground.link("libsa_profile.so", name);
    }
    ground
}

/// Compiles a C program.
pub(crate) fn program(ground: &Ground, source: &str) -> PathBuf {
    ground.program("program", &[source], &[&C[..], &LIBRARY].concat())
}

/// Returns the trace and the stdout of a C program, which must succeed and write nothing to stderr.
pub(crate) fn recorded(source: &str) -> (Trace, String) {
    let ground = stage();
    let output = success(&mut ground.recorded(program(&ground, source)));
    (Trace::with_losses(&ground.run()), output)
}

/// Returns the trace of a C program that loses nothing.
pub(crate) fn trace_of(source: &str) -> Trace {
    let (trace, _) = recorded(source);
    assert_eq!(trace.lost(), 0);
    trace
}
