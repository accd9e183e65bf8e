//! Link arguments of the library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The recorder's thread runs in this library, so dlclose must not unload it. With this flag the recorder need not ensure that at run time.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
