//! A shared library of the vendor's, opened and kept; or the list of all attempts to open it.

use crate::Candidates;
use crate::candidates::variable;
use libloading::os::unix;
use std::env;
use std::ffi::{OsStr, OsString, c_char};
use std::fmt;
use std::path::Path;

/// The symbol that marks a simulated runtime. Its value is not read.
pub const SIMULATOR_MARKER: &str = "ascend_sim_marker";

/// The variable with the path of the simulated runtime.
const SIMULATOR_PATH: &str = "SA_PROFILE_SIM_LIBRARY";

/// The name of the simulated runtime next to an executable.
const SIMULATOR_NAME: &str = "libascendcl.so";

/// A loaded library. It stays loaded, so a copy of this and every function pointer from it stay valid.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    /// None for a library that has no functions.
    handle: Option<&'static unix::Library>,
    name: &'static str,
}

/// A function that a library does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{library} has no {symbol}")]
#[non_exhaustive]
pub struct MissingSymbol {
    /// The function's name.
    pub symbol: &'static str,
    /// The name or path under which the library was found.
    pub library: &'static str,
}

/// A name or path that was tried, and why it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The name or path.
    pub tried: String,
    /// The reason.
    pub cause: String,
}

impl fmt::Display for Attempt {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} ({})", self.tried, self.cause)
    }
}

/// No candidate could be opened.
#[derive(Clone, Debug, thiserror::Error)]
#[error("expected one of these libraries: {}", list(.attempts))]
#[non_exhaustive]
pub struct LoadError {
    /// The attempts, in order.
    pub attempts: Vec<Attempt>,
}

fn list(attempts: &[Attempt]) -> String {
    let attempts: Vec<String> = attempts.iter().map(ToString::to_string).collect();
    attempts.join("; ")
}

impl Library {
    /// Opens the first candidate that is there: one loaded already, else one that the loader finds by name, else one in the folders. Never a simulated runtime.
    ///
    /// # Errors
    ///
    /// [`LoadError`] with every name and path, and why each failed.
    pub fn open(candidates: &Candidates) -> Result<Self, LoadError> {
        let names = || candidates.names.iter().map(OsString::from);
        let paths = candidates.folders.iter().flat_map(|folder| {
            let in_folder = |name| folder.join(name).into_os_string();
            candidates.names.iter().map(in_folder)
        });
        let loaded = names().map(|name| (name, libc::RTLD_NOLOAD));
        let others = names().chain(paths).map(|name| (name, 0));
        Self::first(loaded.chain(others), false)
    }

    /// Opens the simulated runtime: at the path in `SA_PROFILE_SIM_LIBRARY`; without it one that the process has loaded, else one next to the running executable
    /// or in `deps` there.
    ///
    /// # Errors
    ///
    /// [`LoadError`] if it is not there, or if what is there is not one.
    pub fn open_simulator() -> Result<Self, LoadError> {
        Self::first(simulator_candidates(), true)
    }

    /// Opens the simulated runtime by another of the names that it is linked to, in the folder where it was found itself.
    ///
    /// # Errors
    ///
    /// [`LoadError`] if it is not there by that name.
    pub fn simulator_face(&self, name: &str) -> Result<Self, LoadError> {
        Self::first(
            [(Path::new(self.name).with_file_name(name).into(), 0)],
            true,
        )
    }

    /// Makes a library without any function: every look-up is a [`MissingSymbol`].
    pub const fn none() -> Self {
        Self {
            handle: None,
            name: "no library",
        }
    }

    /// Returns the global symbols of this process: the functions of a preloaded library come before the runtime's own, as they do for a program that is linked to it.
    pub fn process() -> Self {
        Self {
            handle: Some(Box::leak(Box::new(unix::Library::this()))),
            name: "the process",
        }
    }

    /// Opens the first of these that is there, each with its flag: a simulated runtime or, without `simulated`, any other library.
    fn first(
        candidates: impl IntoIterator<Item = (OsString, i32)>,
        simulated: bool,
    ) -> Result<Self, LoadError> {
        let mut attempts = Vec::new();
        for (name, flag) in candidates {
            let cause = match Self::open_one(&name, flag) {
                Ok(library) if library.is_simulator() == simulated => return Ok(library),
                Ok(_) if simulated => "it is no simulated runtime".to_owned(),
                Ok(_) => "it is a simulated runtime".to_owned(),
                Err(cause) => cause,
            };
            attempts.push(attempt(&name, flag, cause));
        }
        Err(LoadError { attempts })
    }

    fn open_one(name: &OsStr, flag: i32) -> Result<Self, String> {
        let flags = unix::RTLD_LAZY | unix::RTLD_LOCAL | flag;
        // SAFETY: the vendor's libraries, and the simulated one, may be loaded by any thread; the names come from the installation, not from input.
        let opened = unsafe { unix::Library::open(Some(name), flags) };
        let handle = opened.map_err(|error| cause(&error))?;
        Ok(Self {
            handle: Some(Box::leak(Box::new(handle))),
            name: Box::leak(name.to_string_lossy().into_owned().into_boxed_str()),
        })
    }

    /// The name or path under which it was found.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns true if it is a simulated runtime.
    pub fn is_simulator(&self) -> bool {
        let Some(handle) = self.handle else {
            return false;
        };
        // SAFETY: the symbol is only asked for, neither read nor called.
        let marker = unsafe { handle.get::<*const c_char>(SIMULATOR_MARKER.as_bytes()) };
        marker.is_ok()
    }

    /// Returns how many calls of the simulated runtime the calling thread has made; `None` if this is another library.
    pub fn simulated_calls(&self) -> Option<u64> {
        // SAFETY: the simulator gives this name this type, and nobody else has it.
        let calls = unsafe { self.symbol::<extern "C" fn() -> u64>("ascend_sim_calls\0") };
        calls.ok().map(|calls| calls())
    }

    /// A symbol by its name, which ends with a NUL.
    ///
    /// # Safety
    ///
    /// The symbol, where the library has it, must be of type `T`, a function pointer.
    pub(crate) unsafe fn symbol<T: Copy>(&self, name: &'static str) -> Result<T, MissingSymbol> {
        // SAFETY: the caller vouches for the type.
        let look_up = |handle: &unix::Library| unsafe { handle.get::<T>(name.as_bytes()).ok() };
        let found = self.handle.and_then(look_up);
        found.map(|symbol| *symbol).ok_or(MissingSymbol {
            symbol: name.trim_end_matches('\0'),
            library: self.name,
        })
    }
}

/// Returns the loader's message, without the parts that the attempt has anyway.
fn cause(error: &libloading::Error) -> String {
    match error {
        libloading::Error::DlOpenUnknown => "not loaded".to_owned(),
        other => {
            std::error::Error::source(other).map_or_else(|| other.to_string(), ToString::to_string)
        }
    }
}

fn attempt(name: &OsStr, flag: i32, cause: String) -> Attempt {
    let name = name.to_string_lossy();
    let tried = match flag {
        0 => name.into_owned(),
        _ => format!("{name}, loaded already"),
    };
    Attempt { tried, cause }
}

/// Returns the places of the simulated runtime, with the flag to open each.
fn simulator_candidates() -> Vec<(OsString, i32)> {
    if let Some(path) = variable(SIMULATOR_PATH).filter(|path| !path.is_empty()) {
        return vec![(path, 0)];
    }
    let executable = env::current_exe().unwrap_or_default();
    let folder = executable.parent().unwrap_or(Path::new("/"));
    vec![
        (SIMULATOR_NAME.into(), libc::RTLD_NOLOAD),
        (folder.join(SIMULATOR_NAME).into(), 0),
        (folder.join("deps").join(SIMULATOR_NAME).into(), 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBC: &str = "libc.so.6";

    #[test]
    fn the_error_names_everything_that_was_tried() {
        let nowhere = Path::new("/nowhere/lib64");
        let candidates = Candidates::new(&["libno_such.so", "libnor_this.so"], &[nowhere]);
        let error = Library::open(&candidates).unwrap_err();
        let tried: Vec<&str> = error
            .attempts
            .iter()
            .map(|one| one.tried.as_str())
            .collect();
        let expected = [
            "libno_such.so, loaded already",
            "libnor_this.so, loaded already",
            "libno_such.so",
            "libnor_this.so",
            "/nowhere/lib64/libno_such.so",
            "/nowhere/lib64/libnor_this.so",
        ];
        assert_eq!(tried, expected);
        let text = error.to_string();
        for name in expected {
            assert!(text.contains(name), "{text}");
        }
        assert!(
            error.attempts.iter().all(|one| !one.cause.is_empty()),
            "{text}"
        );
    }

    #[test]
    fn a_library_that_is_loaded_is_taken_before_one_that_is_not() {
        let candidates = Candidates::new(&["libno_such.so", LIBC], &[]);
        assert_eq!(Library::open(&candidates).unwrap().name(), LIBC);
    }

    #[test]
    fn a_missing_function_is_an_error_with_its_name() {
        let library = Library::open(&Candidates::new(&[LIBC], &[])).unwrap();
        let acl = crate::Acl::load(&library);
        let error = acl.lifecycle.aclrtSetDevice.unwrap_err();
        assert_eq!(error.to_string(), "libc.so.6 has no aclrtSetDevice");
        let none = crate::Acl::load(&Library::none());
        assert!(none.lifecycle.aclrtSetDevice.is_err());
    }
}
