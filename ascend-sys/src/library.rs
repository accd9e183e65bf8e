//! Opens the vendor's shared libraries. An error lists all attempts to open one.

use crate::Candidates;
use crate::candidates::variable;
use libloading::os::unix;
use std::env;
use std::ffi::{OsStr, OsString, c_char};
use std::fmt;
use std::path::Path;

/// The symbol that marks a simulated runtime. Its value is not read.
pub const SIMULATOR_MARKER: &str = "ascend_sim_marker";

/// The environment variable with the path of the simulated runtime.
const SIMULATOR_PATH: &str = "SA_PROFILE_SIM_LIBRARY";

/// The file name of the simulated runtime next to an executable.
const SIMULATOR_NAME: &str = "libascendcl.so";

/// A loaded library. It is never unloaded, so copies of this value and all function pointers from it stay valid.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    /// `None` for a library without functions.
    handle: Option<&'static unix::Library>,
    name: &'static str,
}

/// The error that a library does not have a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{library} has no {symbol}")]
#[non_exhaustive]
pub struct MissingSymbol {
    /// The function's name.
    pub symbol: &'static str,
    /// The name or path under which the library was found.
    pub library: &'static str,
}

/// A name or path that could not be opened, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The name or path.
    pub tried: String,
    /// The reason for the failure.
    pub cause: String,
}

impl fmt::Display for Attempt {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} ({})", self.tried, self.cause)
    }
}

/// The error that no candidate could be opened.
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
    /// Opens the first of these candidates for a library that exists: one that is already loaded, otherwise one that the loader finds by name, otherwise one
    /// in the folders. Never opens a simulated runtime.
    ///
    /// # Errors
    ///
    /// [`LoadError`] with every name and path and the reason why each failed.
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

    /// Opens the simulated runtime at the path in `SA_PROFILE_SIM_LIBRARY`. If the variable is not set, opens one that the process has already loaded, otherwise one
    /// next to the running executable or in the folder `deps` there.
    ///
    /// # Errors
    ///
    /// [`LoadError`] if no library is found, or if it is not a simulated runtime.
    pub fn open_simulator() -> Result<Self, LoadError> {
        Self::first(simulator_candidates(), true)
    }

    /// Opens the simulated runtime under another of its file names, in the folder where this library was found.
    ///
    /// # Errors
    ///
    /// [`LoadError`] if there is no simulated runtime with that name.
    pub fn open_simulator_as(&self, name: &str) -> Result<Self, LoadError> {
        Self::first(
            [(Path::new(self.name).with_file_name(name).into(), 0)],
            true,
        )
    }

    /// Returns a library that has no functions: every lookup returns [`MissingSymbol`].
    pub const fn none() -> Self {
        Self {
            handle: None,
            name: "no library",
        }
    }

    /// Returns all global symbols of this process as a library. A preloaded library comes before the runtime, as it does for a program that is linked with the
    /// runtime.
    pub fn process() -> Self {
        Self {
            handle: Some(Box::leak(Box::new(unix::Library::this()))),
            name: "the process",
        }
    }

    /// Opens the first candidate that exists. Each is a name or path and a flag for `dlopen`. The library must be a simulated runtime if `simulated` is true,
    /// and any other library otherwise.
    fn first(
        candidates: impl IntoIterator<Item = (OsString, i32)>,
        simulated: bool,
    ) -> Result<Self, LoadError> {
        let mut attempts = Vec::new();
        for (name, flag) in candidates {
            let cause = match Self::open_one(&name, flag) {
                Ok(library) if library.is_simulator() == simulated => return Ok(library),
                Ok(_) if simulated => "it is not a simulated runtime".to_owned(),
                Ok(_) => "it is a simulated runtime".to_owned(),
                Err(cause) => cause,
            };
            attempts.push(attempt(&name, flag, cause));
        }
        Err(LoadError { attempts })
    }

    fn open_one(name: &OsStr, flag: i32) -> Result<Self, String> {
        let flags = unix::RTLD_LAZY | unix::RTLD_LOCAL | flag;
        // SAFETY: any thread may load the vendor's and the simulated libraries. The names come from the installation, not from untrusted input.
        let opened = unsafe { unix::Library::open(Some(name), flags) };
        let handle = opened.map_err(|error| cause(&error))?;
        Ok(Self {
            handle: Some(Box::leak(Box::new(handle))),
            name: Box::leak(name.to_string_lossy().into_owned().into_boxed_str()),
        })
    }

    /// Returns the name or path under which this library was found.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns true if this library is a simulated runtime.
    pub fn is_simulator(&self) -> bool {
        let Some(handle) = self.handle else {
            return false;
        };
        // SAFETY: only the symbol's existence is checked. It is neither read nor called.
        let marker = unsafe { handle.get::<*const c_char>(SIMULATOR_MARKER.as_bytes()) };
        marker.is_ok()
    }

    /// Returns the number of calls that the calling thread has made to the simulated runtime, or `None` if this is another library.
    pub fn simulated_calls(&self) -> Option<u64> {
        // SAFETY: the function has this type in the simulator, and no other library has a function with this name.
        let calls = unsafe { self.symbol::<extern "C" fn() -> u64>("ascend_sim_calls\0") };
        calls.ok().map(|calls| calls())
    }

    /// Looks up the function with this name, which must end with a NUL byte, and returns its address as the type `T`.
    ///
    /// # Safety
    ///
    /// `T` must be a function pointer type. If the library has the symbol, it must be a function of this type.
    pub(crate) unsafe fn symbol<T: Copy>(&self, name: &'static str) -> Result<T, MissingSymbol> {
        // SAFETY: the caller guarantees the type.
        let lookup = |handle: &unix::Library| unsafe { handle.get::<T>(name.as_bytes()).ok() };
        let found = self.handle.and_then(lookup);
        found.map(|symbol| *symbol).ok_or(MissingSymbol {
            symbol: name.trim_end_matches('\0'),
            library: self.name,
        })
    }
}

/// Returns the reason why loading a library failed: the loader's message without the parts that the list of attempts already contains.
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
        _ => format!("{name} if loaded"),
    };
    Attempt { tried, cause }
}

/// Returns the names and paths at which the simulated runtime may be, each with the flag for `dlopen` that opens it.
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
            .map(|attempt| attempt.tried.as_str())
            .collect();
        let expected = [
            "libno_such.so if loaded",
            "libnor_this.so if loaded",
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
            error
                .attempts
                .iter()
                .all(|attempt| !attempt.cause.is_empty()),
            "{text}"
        );
    }

    #[test]
    fn a_loaded_library_is_preferred() {
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
