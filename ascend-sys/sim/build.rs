//! Makes the library look as the vendor's does to the loader.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Programs ask for this name; calls inside the library are out of a preload's reach; and executors may still run when a program closes the library.
    for argument in ["-soname,libascendcl.so", "-Bsymbolic", "-z,nodelete"] {
        println!("cargo:rustc-cdylib-link-arg=-Wl,{argument}");
    }
}
