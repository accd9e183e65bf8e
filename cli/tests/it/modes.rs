//! Files that commands write can be read by the readers of the fragments, whatever the umask.

use crate::host::Host;
use crate::{command, said};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The modes of everything below a folder, and of the folder.
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
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("out");
    Host::start(&run, "worker", false).end();
    for (mode, files, folders) in [("", 0o600, 0o700), ("0640", 0o640, 0o750)] {
        let to = folder.path().join(format!("tables{mode}"));
        let mut tables = command(&["tables", "--to"]);
        tables.args([&to, &run]).env("SA_PROFILE_MODE", mode);
        let said = said(tables.output().unwrap(), folder.path());
        assert_eq!(said.code, Some(0), "{said:?}");
        let mut found = Vec::new();
        modes(&to, &mut found);
        assert!(found.len() > 20, "{found:?}");
        for (path, found) in found {
            let expected = if path.is_dir() { folders } else { files };
            assert_eq!(found, expected, "{}: {found:o}", path.display());
        }
    }
}

/// The engine is started on tables in the folder of temporary files, which every user can enter.
#[test]
fn the_tables_of_a_statement_are_nobody_elses() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("out");
    Host::start(&run, "worker", false).end();
    let bin = folder.path().join("venv/bin");
    fs::create_dir_all(&bin).unwrap();
    let python = bin.join("python3");
    let script =
        "#!/bin/sh\nfor tables; do :; done\nfind \"${tables%/*}\" -printf '%m %y\\n' | sort -u\n";
    fs::write(&python, script).unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let mut sql = command(&["sql"]);
    sql.arg(&run).arg("SELECT 1");
    sql.env("VIRTUAL_ENV", folder.path().join("venv"));
    sql.env("PATH", std::env::var_os("PATH").unwrap());
    let said = said(sql.output().unwrap(), folder.path());
    assert_eq!(said.stdout, "600 f\n700 d\n", "{said:?}");
}
