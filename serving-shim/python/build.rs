//! Passes link arguments for the library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The recorder's thread runs code of this library, so dlclose must never unload it. With this flag the recorder does not have to prevent that at run time.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
