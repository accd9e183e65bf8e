//! Tells the program which compiler built it: the page names it.

use std::path::{Path, PathBuf};
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
    // `PROFILE` is "release" for each profile that inherits it; the folder of what is built has the profile's own name.
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let profile = folder.ancestors().nth(3).and_then(Path::file_name);
    let profile = profile.unwrap_or_default().to_string_lossy().into_owned();
    println!("cargo::rustc-env=OVERHEAD_PROFILE={profile}");
}
