//! Environment variables that a child gets in addition to the launcher's: for its simulated NPU, and for the preload library.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::child::Role;
use crate::worker::WorkerOptions;
use crate::worker::npu::KERNELS;

const PRELOAD: &str = "libsa_profile_preload.so";
/// The preload library times one in this many eager launches. With the default of 64, a short run would show too few of them.
const SAMPLE: &str = "8";

/// Returns the variables for a child. Variables that the caller has set are not changed.
///
/// # Errors
///
/// If the preload library is needed and does not exist.
pub(super) fn variables(role: &Role) -> io::Result<Vec<(&'static str, OsString)>> {
    let Role::Worker(WorkerOptions { npu, recorded, .. }) = *role else {
        return Ok(Vec::new());
    };
    let mut variables = Vec::new();
    let mut set = |name, value: &str| {
        if env::var_os(name).is_none() {
            variables.push((name, OsString::from(value)));
        }
    };
    set("SA_PROFILE_DEVICE", if npu { "sim" } else { "off" });
    if npu {
        let duration =
            |(name, min_us, max_us): (&str, u32, u32)| format!("{name}={min_us}..{max_us}");
        set("ASCEND_SIM_KERNELS", &KERNELS.map(duration).join(","));
    }
    if !recorded {
        set("SA_PROFILE_DEVICE_SAMPLE", SAMPLE);
        let mut list = preload_library()?.into_os_string();
        if let Some(others) = env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            list.push(":");
            list.push(others);
        }
        variables.push(("LD_PRELOAD", list));
    }
    Ok(variables)
}

/// Returns the path of the preload library, which is next to this program or in cargo's folder for dependencies.
fn preload_library() -> io::Result<PathBuf> {
    let program = env::current_exe()?;
    let folder = program.parent().unwrap_or(Path::new("."));
    let paths = [folder.join(PRELOAD), folder.join("deps").join(PRELOAD)];
    let found = paths.iter().find(|path| path.is_file()).cloned();
    found.ok_or_else(|| {
        let [first, second] = paths.map(|path| path.display().to_string());
        io::Error::other(format!("expected {PRELOAD} at {first} or {second}"))
    })
}
