//! Links the library so that it behaves like the vendor's in the loader.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Programs need this SONAME. -Bsymbolic hides calls inside the library from preloaded libraries. nodelete: executors may still run after dlclose.
    for argument in ["-soname,libascendcl.so", "-Bsymbolic", "-z,nodelete"] {
        println!("cargo:rustc-cdylib-link-arg=-Wl,{argument}");
    }
}
