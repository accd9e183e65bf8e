//! Tells the program which compiler built it: the page names it.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(compiler).arg("--version").output();
    let version = output.map_or_else(
        |error| format!("unknown ({error})"),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    );
    println!("cargo::rustc-env=OVERHEAD_RUSTC={version}");
    let profile = std::env::var("PROFILE").unwrap_or_default();
    println!("cargo::rustc-env=OVERHEAD_PROFILE={profile}");
}
