//! Link arguments of the shared library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in [
        // Raise the number when a program built with an older header would break.
        "-Wl,-soname,libsa_profile.so.0",
        // dlclose must not unmap the code of the recorder's helper thread.
        "-Wl,-z,nodelete",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
