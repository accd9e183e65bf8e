//! Finds the parts of the project and the software that they work with. A part that is not found is reported as not installed.

use super::finding::{Check, Finding};
use super::{engine_plugins, torch_npu};
use crate::run::preload;
use sa_format::VERSION;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const RUNTIME: &str = "libascendcl.so";
/// Variables with the path of the CANN toolkit.
const TOOLKIT_VARIABLES: [&str; 3] = ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_HOME"];
/// Default folders of the toolkit.
const TOOLKITS: [&str; 4] = [
    "/usr/local/Ascend/ascend-toolkit/latest",
    "/usr/local/Ascend/cann",
    "/usr/local/Ascend/latest",
    "/usr/local/Ascend/nnae/latest",
];
/// Maximum time that Python may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Script that finds the package without importing it, and prints a word.
const PYTHON: &str = "\
import importlib.util, importlib.metadata
print('package' if importlib.util.find_spec('sa_profile') else '-')";

/// Checks each part.
pub(crate) fn examine() -> Vec<Finding> {
    let python = ask_python();
    let library = std::env::current_exe()
        .ok()
        .and_then(|program| preload::installed_with(&program));
    let package = python
        .as_deref()
        .map(|said| said.lines().any(|line| line == "package"));
    let mut findings = vec![
        Check("recorder").ok(format!(
            "version {}, format {VERSION}, part of the programs that use it",
            env!("CARGO_PKG_VERSION")
        )),
        preload_library(library),
        found_or_not(Check("NPU runtime"), runtime(|name| std::env::var_os(name))),
        python_part(Check("Python package"), package),
    ];
    let variable = |name: &str| std::env::var(name).ok();
    findings.extend(engine_plugins::examine(python.as_deref(), variable));
    findings.extend(python.iter().flat_map(|said| torch_npu::examine(said)));
    findings
}

fn preload_library(found: Option<PathBuf>) -> Finding {
    let check = Check("preload library");
    match found.as_deref().map(preload::try_out) {
        Some(Err(problem)) => check.warn(problem,
            "build it with a glibc that is not newer than here, and install the libraries it needs; until then leave --preload out",
        ),
        _ => found_or_not(check, found),
    }
}

fn found_or_not(check: Check, found: Option<PathBuf>) -> Finding {
    match found {
        Some(path) => check.ok(path.display().to_string()),
        None => check.ok("not installed"),
    }
}

fn python_part(check: Check, found: Option<bool>) -> Finding {
    match found {
        Some(true) => check.ok("sa_profile, in the python3 of PATH"),
        Some(false) => check.ok("not installed"),
        None => check.ok("not installed: python3 does not answer"),
    }
}

/// Returns the path of the NPU runtime's library: in the dynamic linker's search path or in the toolkit.
fn runtime(lookup: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let linker: Vec<PathBuf> = lookup("LD_LIBRARY_PATH")
        .iter()
        .flat_map(std::env::split_paths)
        .collect();
    let named = TOOLKIT_VARIABLES
        .iter()
        .filter_map(|name| lookup(name))
        .map(PathBuf::from);
    let toolkits = named
        .chain(TOOLKITS.map(PathBuf::from))
        .map(|toolkit| toolkit.join("lib64"));
    let system = ["/usr/lib64", "/usr/lib", "/usr/local/lib"].map(PathBuf::from);
    let folders = linker.into_iter().chain(toolkits).chain(system);
    let mut libraries = folders.map(|folder| folder.join(RUNTIME));
    libraries.find(|library| is_file(library))
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file())
}

fn ask_python() -> Option<String> {
    let script = format!("{PYTHON}{}{}", torch_npu::PYTHON, engine_plugins::python());
    let mut python = Command::new("python3");
    python
        .args(["-c", &script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    // This Python must not record.
    for name in [
        "SA_PROFILE_DIR",
        "SA_PROFILE_OUTPUT",
        "SA_PROFILE_LEVEL",
        "LD_PRELOAD",
    ] {
        python.env_remove(name);
    }
    let mut child = python.spawn().ok()?;
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => break,
            Ok(None) if start.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(5)),
            _ => {
                let _ = child.kill(); // it may have ended by itself
                let _ = child.wait();
                return None;
            }
        }
    }
    let mut words = String::new();
    child.stdout.take()?.read_to_string(&mut words).ok()?;
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_is_found_where_the_variables_say() {
        let root = tempfile::tempdir().unwrap();
        let lib = root.path().join("toolkit/lib64");
        std::fs::create_dir_all(&lib).unwrap();
        std::fs::write(lib.join(RUNTIME), "").unwrap();
        let by = |variable: &'static str, value: PathBuf| {
            runtime(move |name| (name == variable).then(|| value.clone().into()))
        };
        let expected = Some(lib.join(RUNTIME));
        assert_eq!(
            by("ASCEND_HOME_PATH", root.path().join("toolkit")),
            expected
        );
        let path = std::env::join_paths([Path::new("/none"), &lib]).unwrap();
        assert_eq!(by("LD_LIBRARY_PATH", path.into()), expected);
    }
}
