//! Checks for other profilers and preloaded libraries in the same process.

use super::finding::{Check, Finding};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

const LD_PRELOAD: Check = Check("LD_PRELOAD");
const OTHER_PROFILERS: Check = Check("other profilers");

/// The preload library of this project.
const OURS: &str = "libsa_profile_preload.so";
/// Parts of the names of libraries that belong to other profilers.
const LIBRARIES: [(&str, &str); 7] = [
    ("libToolsInjection", "nsys"),
    ("libnsys", "nsys"),
    ("libmsprof", "msprof"),
    ("libmspti", "mspti"),
    ("libprofapi", "msprof"),
    ("libasan", "the address sanitizer"),
    ("libprofiler", "gperftools"),
];
/// Prefixes of the names of variables that enable other profilers.
const VARIABLES: [(&str, &str); 9] = [
    ("NSYS_", "nsys"),
    ("CUDA_INJECTION", "nsys"),
    ("NVTX_INJECTION", "nsys"),
    ("PROFILING_MODE", "msprof"),
    ("PROFILER_SAMPLECONFIG", "msprof"),
    ("MSPROF", "msprof"),
    ("ACLPROF", "aclprof"),
    ("VIZTRACER", "VizTracer"),
    ("KINETO_USE_DAEMON", "PyTorch's profiler"),
];

/// Checks `LD_PRELOAD` and the variables of other profilers among all variables that are set.
pub(crate) fn examine(variables: impl Iterator<Item = (OsString, OsString)>) -> Vec<Finding> {
    let text = |text: OsString| text.to_string_lossy().into_owned();
    let set: BTreeMap<String, String> = variables
        .map(|(name, value)| (text(name), text(value)))
        .collect();
    let preloaded = set.get("LD_PRELOAD").map_or("", String::as_str);
    vec![preload(preloaded), others(&set)]
}

fn preload(text: &str) -> Finding {
    let libraries: Vec<&str> = text
        .split([':', ' '])
        .filter(|library| !library.is_empty())
        .collect();
    if libraries.is_empty() {
        return LD_PRELOAD.ok("empty");
    }
    let in_order = libraries.join(", then ");
    let is_missing = |library: &&&str| library.contains('/') && !Path::new(library).exists();
    if let Some(missing) = libraries.iter().find(is_missing) {
        return LD_PRELOAD.warn(
            format!("{in_order}: there is no {missing}"),
            "the dynamic linker complains in every process: take it out",
        );
    }
    let ours = libraries.iter().position(|library| library.ends_with(OURS));
    let foreign = libraries
        .iter()
        .position(|library| profiler(library).is_some());
    match (ours, foreign) {
        (Some(ours), Some(foreign)) if foreign < ours => LD_PRELOAD.warn(
            in_order,
            format!("put {OURS} first, as sa-profile run --preload does"),
        ),
        (None, Some(at)) => {
            let name = profiler(libraries[at]).unwrap_or_default();
            LD_PRELOAD.warn(
                in_order,
                format!("{name} is loaded into every process: its cost will be in the times"),
            )
        }
        _ => LD_PRELOAD.ok(in_order),
    }
}

fn profiler(library: &str) -> Option<&'static str> {
    LIBRARIES
        .iter()
        .find(|(part, _)| library.contains(part))
        .map(|(_, name)| *name)
}

fn others(set: &BTreeMap<String, String>) -> Finding {
    let is_off = |value: &str| matches!(value, "" | "0" | "false");
    let profiler_of = |name: &str| {
        VARIABLES
            .iter()
            .find(|(start, _)| name.starts_with(start))
            .map(|(_, profiler)| *profiler)
    };
    let on = set.iter().filter(|(_, value)| !is_off(value));
    let enabled: Vec<_> = on
        .filter_map(|(name, _)| Some(format!("{name} ({})", profiler_of(name)?)))
        .collect();
    if enabled.is_empty() {
        return OTHER_PROFILERS.ok("none set by a variable");
    }
    OTHER_PROFILERS.warn(
        format!("set: {}", enabled.join(", ")),
        "it records too: its cost will be in the times",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Status;

    #[test]
    fn preloads_table() {
        for (text, status) in [
            ("", Status::Ok),
            (" : ", Status::Ok),
            ("libjemalloc.so.2", Status::Ok),
            ("/no/such/library.so", Status::Warn),
            ("libmspti.so", Status::Warn),
            ("libmspti.so:libsa_profile_preload.so", Status::Warn),
            ("libsa_profile_preload.so libmspti.so", Status::Ok),
        ] {
            assert_eq!(preload(text).status, status, "{text:?}");
        }
        assert_eq!(preload("a.so b.so").found, "a.so, then b.so");
    }

    #[test]
    fn profilers_are_named() {
        let set = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let found = others(&set("CUDA_INJECTION64_PATH", "x"));
        assert_eq!(
            (found.status, found.found.as_str()),
            (Status::Warn, "set: CUDA_INJECTION64_PATH (nsys)")
        );
        assert_eq!(others(&set("PROFILING_MODE", "false")).status, Status::Ok);
        assert_eq!(others(&set("MY_NSYS_THING", "1")).status, Status::Ok);
    }
}
