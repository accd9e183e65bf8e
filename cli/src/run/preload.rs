//! Finds the library for `--preload`, and checks that the dynamic linker can load it into every process.

use super::package;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Name of the project's own library.
const LIBRARY: &str = "libsa_profile_preload.so";

/// Returns the absolute path of the library at `path`, or of the one that was installed with this program.
///
/// # Errors
/// Returns a description of the problem. Otherwise the dynamic linker would report it in every process and continue without the library.
pub(crate) fn find(path: Option<&Path>) -> Result<PathBuf, String> {
    match path {
        Some(path) => checked(path),
        None => {
            let program = std::env::current_exe().map_err(|error| format!("--preload: {error}"))?;
            let library = installed_with(&program).ok_or_else(|| {
                format!(
                    "--preload: found neither {} nor a Python package next to it that contains the library: name the library, or leave --preload out and record with the API",
                    program.with_file_name(LIBRARY).display()
                )
            })?;
            checked(&library)
        }
    }
}

/// Finds the library that was installed with a program: in the same folder, or in the Python package that contains both.
pub(crate) fn installed_with(program: &Path) -> Option<PathBuf> {
    let next_to_program = program.with_file_name(LIBRARY);
    if next_to_program.exists() {
        return Some(next_to_program);
    }
    package::file(program, &Path::new("lib").join(LIBRARY))
}

/// Starts a program that does nothing with the library preloaded. A library that the linker cannot load, because another library or a glibc version
/// is missing, would end every dynamically linked program of the command at its start.
///
/// # Errors
/// Returns the message of the dynamic linker.
pub(crate) fn try_out(library: &Path) -> Result<(), String> {
    let Some(output) = start_under(library) else {
        return Ok(()); // no program can be started here, so the command itself will show if it works
    };
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or_default();
    if output.status.success() && !said.contains("cannot be preloaded") {
        return Ok(());
    }
    let said = if said.is_empty() {
        "no reason is given"
    } else {
        said
    };
    let path = library.display();
    Err(match output.status.success() {
        true => format!("{path}: programs start without it: {said}"),
        false => format!(
            "{path}: no program starts with it ({}): {said}",
            output.status
        ),
    })
}

fn start_under(library: &Path) -> Option<Output> {
    let nothing = Command::new("/bin/true");
    let mut this = Command::new(std::env::current_exe().ok()?);
    this.arg("--version");
    [nothing, this].into_iter().find_map(|mut program| {
        program
            .env("LD_PRELOAD", library)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        program.output().ok()
    })
}

fn checked(path: &Path) -> Result<PathBuf, String> {
    let wrong = |what: &str| format!("--preload: {}: {what}", path.display());
    let absolute = fs::canonicalize(path).map_err(|error| wrong(&error.to_string()))?;
    let mut magic = [0; 4];
    let read = File::open(&absolute).and_then(|mut file| file.read_exact(&mut magic));
    if read.is_err() || magic != *b"\x7fELF" {
        return Err(wrong("expected a shared library"));
    }
    let separates = |byte: &u8| matches!(byte, b':' | b' ' | b'\t' | b'\n');
    if absolute
        .as_os_str()
        .as_encoded_bytes()
        .iter()
        .any(separates)
    {
        return Err(wrong(
            "LD_PRELOAD cannot name a path with a space or a colon",
        ));
    }
    Ok(absolute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_library_that_ld_preload_can_name_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let program = std::env::current_exe().unwrap();
        let absolute = fs::canonicalize(&program).unwrap();
        assert_eq!(find(Some(&program)).unwrap(), absolute);
        let spaced = root.path().join("a library.so");
        fs::copy(&program, &spaced).unwrap();
        let text = root.path().join("text.so");
        fs::write(&text, "INPUT(libc.so.6)").unwrap();
        for (path, problem) in [
            (&spaced, "a space or a colon"),
            (&text, "expected a shared library"),
            (&root.path().join("none.so"), "No such file"),
        ] {
            let refused = find(Some(path)).unwrap_err();
            assert!(refused.contains(problem), "{refused}");
        }
    }

    #[test]
    fn the_library_that_was_installed_with_the_program_is_found() {
        let root = tempfile::tempdir().unwrap();
        let program = root.path().join("bin/sa-profile");
        assert_eq!(installed_with(&program), None);
        // Each place is preferred to the ones above.
        for folder in [
            "lib/python3.12/site-packages/sa_profile/lib",
            "lib/python3.11/dist-packages/sa_profile/lib",
            "sa_profile/lib",
            "bin",
        ] {
            let folder = root.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(LIBRARY), "").unwrap();
            assert_eq!(installed_with(&program), Some(folder.join(LIBRARY)));
        }
    }
}
