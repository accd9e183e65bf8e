//! Link arguments of the shared library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in [
        // Raised when a program built against an older header would break.
        "-Wl,-soname,libsa_profile.so.0",
        // dlclose must not take the code away from the recorder's helper thread.
        "-Wl,-z,nodelete",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
