//! Starts the command with the original signal mask. `Command` in std would pass on the mask with which this process collects signals.

use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawnp};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::io;

/// Starts a command, found in `PATH`, with changes to the environment (`None` removes a variable), and with `mask` blocked.
///
/// # Errors
/// Returns the error of `exec` if the command cannot be started.
pub(crate) fn launch(
    words: &[OsString],
    changes: Vec<(&'static str, Option<OsString>)>,
    mask: &SigSet,
) -> io::Result<Pid> {
    let mut environment: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    for (name, value) in changes {
        match value {
            Some(value) => environment.insert(name.into(), value),
            None => environment.remove(&OsString::from(name)),
        };
    }
    let environment = environment.into_iter().map(|(mut name, value)| {
        name.push("=");
        name.push(value);
        c_string(name)
    });
    let environment = environment.collect::<io::Result<Vec<_>>>()?;
    let words = words
        .iter()
        .cloned()
        .map(c_string)
        .collect::<io::Result<Vec<_>>>()?;
    let program = words.first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_flags(
        PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF,
    )?;
    attributes.set_sigmask(mask)?;
    // Every Rust program ignores SIGPIPE, and the command would inherit that.
    attributes.set_sigdefault(&SigSet::from_iter([Signal::SIGPIPE]))?;
    let streams = PosixSpawnFileActions::init()?;
    Ok(posix_spawnp(
        program,
        &streams,
        &attributes,
        &words,
        &environment,
    )?)
}

fn c_string(text: OsString) -> io::Result<CString> {
    Ok(CString::new(text.into_encoded_bytes())?)
}
