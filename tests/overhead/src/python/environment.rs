//! The interpreter with the Python recorders: the caller's, or a virtual environment in the build folder.

use std::path::{Path, PathBuf};

use crate::child::Child;
use crate::options::Options;

/// The version that is installed where none is there.
const VIZTRACER: &str = "viztracer==1.1.1";

/// An interpreter, and what it has: the version, or why it is not measured.
#[derive(Debug)]
pub(crate) struct Environment {
    pub(super) program: PathBuf,
    pub(super) python: Result<String, String>,
    pub(super) viztracer: Result<String, String>,
    pub(super) torch: Result<String, String>,
}

impl Environment {
    pub(crate) fn prepare(options: &Options, target: &Path) -> Environment {
        if options.no_python {
            return Environment::without("left out with --no-python");
        }
        if let Some(program) = &options.python {
            return Environment::of(program.clone(), "this interpreter does not have it");
        }
        let folder = target.join("overhead-python");
        match install(&folder, options.torch) {
            Ok(program) => {
                Environment::of(program, "not installed; the option --torch installs it")
            }
            Err(why) => Environment::without(&why),
        }
    }

    /// Looks at what an interpreter has.
    fn of(program: PathBuf, missing: &str) -> Environment {
        let version =
            |module: &str| version(&program, module).map_err(|_import_error| missing.to_owned());
        let viztracer = version("viztracer").map(|version| format!("viztracer {version}"));
        let torch = version("torch").map(|version| format!("torch {version}"));
        let python = run(
            &program,
            &["-c", "import platform; print(platform.python_version())"],
        );
        Environment {
            python: python.map(|version| format!("Python {version}")),
            viztracer,
            torch,
            program,
        }
    }

    fn without(why: &str) -> Environment {
        let missing = || Err(why.to_owned());
        Environment {
            program: PathBuf::new(),
            python: missing(),
            viztracer: missing(),
            torch: missing(),
        }
    }
}

/// Makes the virtual environment unless it is there, and returns its interpreter. A torch that cannot be installed is told and left out.
fn install(folder: &Path, torch: bool) -> Result<PathBuf, String> {
    let program = folder.join("bin").join("python");
    if version(&program, "viztracer").is_err() {
        eprintln!("overhead: installing {VIZTRACER} into {}", folder.display());
        let path = folder.display().to_string();
        run(Path::new("python3"), &["-m", "venv", &path])?;
        pip(&program, VIZTRACER)?;
    }
    if torch && version(&program, "torch").is_err() {
        eprintln!("overhead: installing torch, 2 GB and more");
        if let Err(why) = pip(&program, "torch") {
            eprintln!("overhead: {why}");
        }
    }
    Ok(program)
}

fn pip(program: &Path, package: &str) -> Result<(), String> {
    let done = run(program, &["-m", "pip", "install", "--quiet", package]);
    done.map(|_| ())
        .map_err(|error| format!("{package} cannot be installed: {error}"))
}

fn version(program: &Path, module: &str) -> Result<String, String> {
    let line = format!("import {module}; print({module}.__version__)");
    run(program, &["-W", "ignore", "-c", &line])
}

/// Runs an interpreter and returns what it printed, or the last line of its complaint.
fn run(program: &Path, words: &[&str]) -> Result<String, String> {
    let mut command = Child::of(program.as_os_str()).words(words).into_command();
    let output = command.stderr(std::process::Stdio::piped()).output();
    let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let last = complaint.lines().rev().find(|line| !line.trim().is_empty());
    Err(last.unwrap_or("it said nothing").trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_that_is_not_there_has_nothing() {
        let environment = Environment::of("/nonexistent/python".into(), "not there");
        assert_eq!(environment.torch, Err("not there".to_owned()));
        assert!(environment.python.is_err());
    }
}
