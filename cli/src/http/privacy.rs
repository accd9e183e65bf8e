//! Finds out if every user of this machine may read a file. If not, serving it on 127.0.0.1 needs a token, because every user can connect to that
//! address.

use sa_format::{FRAGMENTS_DIR, stem_and_segment};
use std::fs::{self, DirEntry, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Permission bits for others: searching a folder, reading a file.
const SEARCH: u32 = 0o001;
const READ: u32 = 0o004;

/// Returns true unless every user may read this open file or folder, by its mode and the modes of the folders above it. The kernel provides its
/// current path, because the path by which it was opened may lead to another file now.
pub(crate) fn is_private(file: &File) -> bool {
    !is_public(file).unwrap_or(false)
}

/// Returns false only if every user may read all fragments of a run. `None` if the run has none.
pub(crate) fn has_private_fragments(run: &Path) -> Option<bool> {
    let folders = [run.to_owned(), run.join(FRAGMENTS_DIR)];
    folders
        .iter()
        .filter_map(|folder| holds_private(folder))
        .reduce(|one, other| one || other)
}

/// Returns false only if every user may read this folder and all fragments in it. `None` if it has none.
fn holds_private(folder: &Path) -> Option<bool> {
    let is_fragment = |entry: &DirEntry| {
        let name = entry.file_name();
        name.to_str().and_then(stem_and_segment).is_some()
    };
    let entries = folder.read_dir().ok()?.flatten();
    let is_private_fragment = |entry: DirEntry| match entry.metadata() {
        Ok(metadata) => Some(metadata.mode() & READ == 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None, // it was just removed
        Err(_) => Some(true),
    };
    let fragments = entries.filter(is_fragment).filter_map(is_private_fragment);
    let is_any_private = fragments.reduce(|one, other| one || other)?;
    let is_public_folder = File::open(folder).is_ok_and(|folder| !is_private(&folder));
    Some(is_any_private || !is_public_folder)
}

fn is_public(file: &File) -> io::Result<bool> {
    let metadata = file.metadata()?;
    let wanted = if metadata.is_dir() {
        READ | SEARCH
    } else {
        READ
    };
    if metadata.mode() & wanted != wanted {
        return Ok(false);
    }
    let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let found = path.metadata()?;
    if (found.dev(), found.ino()) != (metadata.dev(), metadata.ino()) {
        return Ok(false); // it was removed, or is in another mount namespace
    }
    for above in path.ancestors().skip(1) {
        if above.metadata()?.mode() & SEARCH == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_file_is_public_if_all_may_read_it_and_come_to_it() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let file = folder.join("file");
        fs::write(&file, "").unwrap();
        let (open_file, open_folder) = (File::open(&file).unwrap(), File::open(&folder).unwrap());
        for (of_root, of_folder, of_file, is_private_file) in [
            (0o755, 0o755, 0o644, false),
            (0o711, 0o711, 0o604, false),
            (0o755, 0o755, 0o640, true),
            (0o755, 0o750, 0o644, true),
            (0o700, 0o755, 0o644, true),
        ] {
            for (path, mode) in [(&file, of_file), (&folder, of_folder)] {
                set_mode(path, mode);
            }
            set_mode(root.path(), of_root);
            let modes = format!("{of_root:o} {of_folder:o} {of_file:o}");
            assert_eq!(is_private(&open_file), is_private_file, "{modes}");
            let is_private_folder = (of_root, of_folder) != (0o755, 0o755);
            assert_eq!(is_private(&open_folder), is_private_folder, "{modes}");
        }
    }

    #[test]
    fn issue_47_the_open_file_is_judged_whatever_has_its_path_by_now() {
        let root = tempfile::tempdir().unwrap();
        set_mode(root.path(), 0o755);
        let [hidden, shown] = ["hidden", "shown"].map(|name| root.path().join(name));
        for (folder, mode) in [(&hidden, 0o700), (&shown, 0o755)] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("t.json"), "[]").unwrap();
            set_mode(&folder.join("t.json"), 0o644);
            set_mode(folder, mode);
        }
        // The path led through a link to the private folder when it was opened.
        let link = root.path().join("link");
        std::os::unix::fs::symlink(&hidden, &link).unwrap();
        let file = File::open(link.join("t.json")).unwrap();
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(&shown, &link).unwrap();
        assert!(is_private(&file));
        assert!(!is_private(&File::open(link.join("t.json")).unwrap()));
        // Nobody else may open a file that has been removed.
        let file = File::open(shown.join("t.json")).unwrap();
        fs::remove_file(shown.join("t.json")).unwrap();
        assert!(is_private(&file));
    }

    #[test]
    fn issue_47_one_private_fragment_makes_a_run_private() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join(FRAGMENTS_DIR);
        fs::create_dir(&folder).unwrap();
        for path in [root.path(), &folder] {
            set_mode(path, 0o755);
        }
        fs::write(folder.join("note"), "").unwrap();
        set_mode(&folder.join("note"), 0o600);
        assert_eq!(has_private_fragments(root.path()), None);
        for (name, mode, expected) in [
            ("trace.7.jsonl", 0o644, false),
            ("trace.8.s1.jsonl", 0o640, true),
        ] {
            fs::write(folder.join(name), "").unwrap();
            set_mode(&folder.join(name), mode);
            assert_eq!(has_private_fragments(root.path()), Some(expected));
        }
        set_mode(&folder.join("trace.8.s1.jsonl"), 0o604);
        assert_eq!(has_private_fragments(root.path()), Some(false));
        set_mode(root.path(), 0o700);
        assert_eq!(has_private_fragments(root.path()), Some(true));
        // A snapshot has its fragments in the folder itself.
        fs::rename(&folder, root.path().join("moved")).unwrap();
        fs::write(root.path().join("trace.7.jsonl"), "").unwrap();
        assert_eq!(has_private_fragments(root.path()), Some(true));
    }
}
