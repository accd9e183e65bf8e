//! Generates the header with cbindgen.

use std::env;
use std::error::Error;
use std::path::Path;

/// Source files in the order of the header.
const SOURCES: &str = "level arg process run span async_span event launch";

fn main() -> Result<(), Box<dyn Error>> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../serving-shim/capi");
    let settings = package.join("cbindgen.toml");
    println!("cargo:rerun-if-changed={}", settings.display());
    let mut config = cbindgen::Config::from_file(settings)?;
    let part = |at: &str, value: &str| format!("#define SA_PROFILE_VERSION_{at} {value}\n");
    let version = env!("CARGO_PKG_VERSION");
    config.after_includes = Some(format!(
        "#ifdef __cplusplus\n#include <initializer_list>\n#include <type_traits>\n#endif\n\n\
         /* The version of this header; sa_profile_version() returns the version of the library. */\n#define SA_PROFILE_VERSION \"{version}\"\n{}{}{}",
        part("MAJOR", env!("CARGO_PKG_VERSION_MAJOR")),
        part("MINOR", env!("CARGO_PKG_VERSION_MINOR")),
        part("PATCH", env!("CARGO_PKG_VERSION_PATCH")),
    ));
    let mut builder = cbindgen::Builder::new().with_config(config);
    for name in SOURCES.split(' ') {
        let source = package.join("src").join(name).with_extension("rs");
        println!("cargo:rerun-if-changed={}", source.display());
        builder = builder.with_src(source);
    }
    let header = Path::new(&env::var("OUT_DIR")?).join("sa_profile.h");
    builder.generate()?.write_to_file(header);
    Ok(())
}
