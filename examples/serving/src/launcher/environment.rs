//! What a child finds in its environment beside what the launcher has: how its simulated NPU behaves, and the interposer.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::child::Role;
use crate::worker::Place;
use crate::worker::npu::KERNELS;

const PRELOAD: &str = "libsa_profile_preload.so";
/// One eager launch in so many is timed by the interposer; a short run shows little of one in 64.
const SAMPLE: &str = "8";

/// The variables of a child. What the caller has set stays.
///
/// # Errors
///
/// If the interposer is wanted and not there.
pub(super) fn of(role: &Role) -> io::Result<Vec<(&'static str, OsString)>> {
    let Role::Worker(Place { npu, recorded, .. }) = *role else {
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
        let time = |(name, least, most): (&str, u32, u32)| format!("{name}={least}..{most}");
        set("ASCEND_SIM_KERNELS", &KERNELS.map(time).join(","));
    }
    if !recorded {
        set("SA_PROFILE_DEVICE_SAMPLE", SAMPLE);
        let mut list = interposer()?.into_os_string();
        if let Some(others) = env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            list.push(":");
            list.push(others);
        }
        variables.push(("LD_PRELOAD", list));
    }
    Ok(variables)
}

/// The interposer's library, which lies beside this program or where cargo puts what it depends on.
fn interposer() -> io::Result<PathBuf> {
    let program = env::current_exe()?;
    let folder = program.parent().unwrap_or(Path::new("."));
    let places = [folder.join(PRELOAD), folder.join("deps").join(PRELOAD)];
    let found = places.iter().find(|place| place.is_file()).cloned();
    found.ok_or_else(|| {
        let [one, other] = places.map(|place| place.display().to_string());
        io::Error::other(format!("expected {PRELOAD} at {one} or {other}"))
    })
}
