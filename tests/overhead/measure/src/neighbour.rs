//! A neighbour that calls fsync all the time on the same file system.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Marks the neighbour's command line: `FLAG DIRECTORY`.
pub const FLAG: &str = "--fsync-neighbour";

const WRITE_BYTES: usize = 64 << 10;
const FILE_BYTES: u64 = 64 << 20;

/// A running neighbour; dropping it ends it.
#[derive(Debug)]
pub struct Neighbour(Child);

impl Neighbour {
    /// Starts one that writes in `directory`: this program, which must hand [`FLAG`] over to [`child`].
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn start(directory: &Path) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let child = Command::new(program)
            .arg(FLAG)
            .arg(directory)
            .stdin(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        Ok(Neighbour(child))
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _gone_already = self.0.kill();
        let _status = self.0.wait();
    }
}

/// Writes and syncs until its parent is gone or kills it.
///
/// # Errors
///
/// If its file cannot be written.
pub fn child(directory: &str) -> Result<(), String> {
    let parent = std::os::unix::process::parent_id();
    let fail = |error: std::io::Error| format!("{directory}: {error}");
    let mut file = File::create(Path::new(directory).join("neighbour")).map_err(fail)?;
    let chunk = vec![2_u8; WRITE_BYTES];
    while std::os::unix::process::parent_id() == parent {
        file.write_all(&chunk).map_err(fail)?;
        file.sync_all().map_err(fail)?;
        if file.stream_position().map_err(fail)? >= FILE_BYTES {
            file.rewind().map_err(fail)?;
        }
    }
    Ok(())
}
