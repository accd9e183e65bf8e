//! Files that commands write can be read by everyone who can read the fragments, whatever the umask.

use crate::program::{Ground, Started};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Lists the modes of a folder and of everything below it.
fn modes(path: &Path, found: &mut Vec<(PathBuf, u32)>) {
    let metadata = path.metadata().unwrap();
    found.push((path.to_owned(), metadata.permissions().mode() & 0o777));
    if metadata.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            modes(&entry.unwrap().path(), found);
        }
    }
}

#[test]
fn tables_have_the_mode_of_the_fragments() {
    let ground = Ground::new();
    Started::spawn(&mut ground.worker(&["worker", "spans=3"])).end();
    for (mode, files, folders) in [("", 0o600, 0o700), ("0640", 0o640, 0o750)] {
        let to = format!("tables{mode}");
        let mut tables = ground.command(&["tables", "--to", &to, "out"]);
        let ended = Started::spawn(tables.env("SA_PROFILE_MODE", mode)).end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let mut found = Vec::new();
        modes(&ground.path(&to), &mut found);
        assert!(found.len() > 20, "{found:?}");
        for (path, found) in found {
            let expected = if path.is_dir() { folders } else { files };
            assert_eq!(found, expected, "{}: {found:o}", path.display());
        }
    }
}

/// The tables for the engine are written to the folder of temporary files, which every user can enter.
#[test]
fn the_tables_of_a_statement_are_nobody_elses() {
    let ground = Ground::new();
    Started::spawn(&mut ground.worker(&["worker", "spans=3"])).end();
    let path = ground.path_with_python(
        "for tables; do :; done\nfind \"${tables%/*}\" -printf '%m %y\\n' | sort -u",
    );
    let mut sql = ground.command(&["sql", "out", "SELECT 1"]);
    let ended = Started::spawn(sql.env("PATH", path)).end();
    assert_eq!(ended.stdout, "600 f\n700 d\n", "{ended:?}");
}
