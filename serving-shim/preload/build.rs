//! Link arguments of the library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The recorder's thread runs in it, so no dlclose may unload it. With the flag the recorder need not see to that at run time.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
