//! Removes empty lines from a fragment, for readers that expect an object on every line.
//!
//! The recorder puts empty lines between blocks, so that a block has the same layout in the file as in memory. After recording has ended, nobody writes the file
//! any more. A file without empty lines then replaces it atomically, so a reader gets either the old or the new one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sa_format::stem_and_segment;

/// Number of bytes read and written at a time.
const BUFFER_BYTES: usize = 1 << 20;

/// Removes the empty lines from all segments (files) of a fragment whose recorder has ended. Segments that cannot be replaced stay unchanged.
pub(crate) fn remove_empty_lines(fragment: &Path) {
    let name = fragment.file_name().and_then(|name| name.to_str());
    let Some((stem, _)) = name.and_then(stem_and_segment) else {
        return;
    };
    if fragment.with_file_name(format!("{stem}.ring")).exists() {
        return; // the ring still contains events: the merge recovers them and appends them to the fragment
    }
    for segment in segments(fragment, stem) {
        let _ = replace(&segment); // on failure it stays unchanged
    }
}

/// Returns the paths of the existing segments (files) of a fragment. The first ones may have been removed.
fn segments(fragment: &Path, stem: &str) -> Vec<PathBuf> {
    let folder = fragment.parent().unwrap_or(Path::new("."));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let ours = names.filter(|name| stem_and_segment(name).is_some_and(|(other, _)| other == stem));
    ours.map(|name| folder.join(name)).collect()
}

fn replace(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)?;
    let metadata = file.metadata()?;
    let draft = draft_path(path);
    let result = write_lines(file, &draft, metadata.mode()).and_then(|()| fs::rename(&draft, path));
    result.inspect_err(|_| {
        let _ = fs::remove_file(&draft); // it may not exist
    })
}

/// Returns the path for a temporary copy of the file `path`, in the same folder, with a name that readers do not treat as a fragment.
fn draft_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.tmp", std::process::id()))
}

fn write_lines(file: File, draft: &Path, mode: u32) -> io::Result<()> {
    let target = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(draft)?;
    target.set_permissions(fs::Permissions::from_mode(mode & 0o777))?;
    let mut target = BufWriter::with_capacity(BUFFER_BYTES, target);
    let mut source = BufReader::with_capacity(BUFFER_BYTES, file);
    let mut line = Vec::new();
    while source.read_until(b'\n', &mut line)? > 0 {
        if line != b"\n" {
            target.write_all(&line)?;
        }
        line.clear();
    }
    target.flush()
}
