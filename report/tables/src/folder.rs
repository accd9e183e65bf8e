//! The folder of the tables. The tables of a host appear there when all of them are complete, or not at all.

mod partition;

pub(crate) use partition::Partition;

use crate::ids::HostId;
use crate::options::TablesOptions;
use crate::unfinished::{
    FolderChanges, Leftover, NEW, NewFolder, OLD, REPLACED, Unfinished, mark_replaced,
    remove_abandoned,
};
use crate::write::read_back::{first_long, is_ours};
use std::path::{Path, PathBuf};
use std::{fs, io};
use trace_merge::Error;

/// Names of the tables. The last one shows that all others are complete.
pub(crate) const TABLES: [&str; 16] = [
    "slice", "args", "counter", "flow", "track", "request", "step", "device", "idle", "name",
    "thread", "process", "clock", "loss", "damage", "metadata",
];

/// New tables that are being written next to the existing ones.
pub(crate) struct NewTables {
    to: PathBuf,
    new: PathBuf,
    unfinished: Unfinished,
    hosts: Vec<(Partition, HostId)>,
    is_forced: bool,
}

impl NewTables {
    /// Creates folders for the tables of these hosts. `options.to` is created if it does not exist.
    pub(crate) fn begin(
        options: &TablesOptions,
        hosts: Vec<(Partition, HostId)>,
    ) -> Result<NewTables, Error> {
        let to = &options.to;
        let failed = |source| write_error(to, source);
        let created = match fs::read_dir(to) {
            Ok(entries) => {
                check_entries(to, entries)?;
                check_hosts(to, &hosts, options.force)?;
                FolderChanges::default()
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                FolderChanges::create_all(to).map_err(failed)?
            }
            Err(error) => return Err(failed(error)),
        };
        remove_abandoned(to, |name| {
            name == OLD || name == REPLACED || TABLES.contains(&name)
        });
        let new = NewFolder::create(to).map_err(failed)?;
        let tables = NewTables {
            to: to.clone(),
            new: new.path.clone(),
            unfinished: options.unfinished.clone(),
            hosts,
            is_forced: options.force,
        };
        *tables.unfinished.lock() = Some(Leftover { _new: new, created });
        for table in TABLES {
            for (partition, _) in &tables.hosts {
                fs::create_dir_all(tables.new.join(table).join(&partition.0)).map_err(failed)?;
            }
        }
        Ok(tables)
    }

    /// Returns the path of a new Parquet file: `name` without its extension, in a partition (a
    /// subfolder) of a table.
    pub(crate) fn file(&self, table: &str, partition: &Partition, name: &str) -> PathBuf {
        let folder = self.new.join(table).join(&partition.0);
        folder.join(format!("{name}.parquet"))
    }

    /// Returns the size of all files.
    pub(crate) fn bytes(&self) -> u64 {
        let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
        let tables = TABLES.iter().map(|table| self.new.join(table));
        let partitions = tables
            .flat_map(|table| entries(&table))
            .map(|entry| entry.path());
        let files = partitions.flat_map(|partition| entries(&partition));
        files
            .filter_map(|file| Some(file.metadata().ok()?.len()))
            .sum()
    }

    /// Moves the tables to their final place.
    pub(crate) fn publish(self) -> Result<(), Error> {
        let mut unfinished = self.unfinished.lock();
        let Some(leftover) = &mut *unfinished else {
            return Err(write_error(&self.to, io::ErrorKind::Interrupted.into()));
        };
        // Another process may have written tables meanwhile.
        check_hosts(&self.to, &self.hosts, self.is_forced)?;
        self.exchange()
            .map_err(|source| write_error(&self.to, source))?;
        leftover.created.keep();
        mark_replaced(&self.new).map_err(|source| write_error(&self.new, source))?;
        Ok(())
    }

    /// Moves the old tables into the folder of the new ones, which is removed later, and the new tables to their final place.
    fn exchange(&self) -> io::Result<()> {
        let mut changes = FolderChanges::default();
        for (Partition(partition), _) in &self.hosts {
            // The table that shows that all are complete is removed first and added last.
            for table in TABLES.iter().rev() {
                let current = self.to.join(table).join(partition);
                if current.exists() {
                    let old = self.new.join(OLD).join(table);
                    fs::create_dir_all(&old)?;
                    changes.rename(current, old.join(partition))?;
                }
            }
            for table in TABLES {
                changes.create(self.to.join(table))?;
                let current = self.to.join(table).join(partition);
                changes.rename(self.new.join(table).join(partition), current)?;
            }
        }
        changes.keep();
        Ok(())
    }
}

impl Drop for NewTables {
    fn drop(&mut self) {
        self.unfinished.remove();
    }
}

fn write_error(path: &Path, source: io::Error) -> Error {
    Error::Write {
        path: path.to_owned(),
        source,
    }
}

/// Returns an error if the folder contains anything other than tables.
fn check_entries(to: &Path, entries: fs::ReadDir) -> Result<(), Error> {
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !TABLES.contains(&&*name) && !name.starts_with(NEW) {
            return Err(Error::Usage(format!(
                "{}: expected a new or empty folder, or one with tables, found {name} in it",
                to.display()
            )));
        }
    }
    Ok(())
}

/// Returns an error if one of the hosts has files there, except for tables to be replaced, or if another host has the same id.
fn check_hosts(to: &Path, hosts: &[(Partition, HostId)], is_forced: bool) -> Result<(), Error> {
    for table in TABLES {
        if !is_folder(&to.join(table))? {
            continue;
        }
        for (partition, _) in hosts {
            let path = to.join(table).join(&partition.0);
            if !is_folder(&path)? {
                continue;
            }
            if !is_forced {
                return Err(Error::Usage(format!(
                    "{}: has tables of this host already; --force replaces them",
                    path.display()
                )));
            }
            check_files(&path)?;
        }
    }
    let others = fs::read_dir(to.join("clock"));
    for entry in others.into_iter().flatten().flatten() {
        let name = entry.file_name();
        if hosts.iter().any(|(partition, _)| *partition.0 == *name) {
            continue;
        }
        let Some(id) = first_long(&entry.path().join("all.parquet")) else {
            continue;
        };
        if hosts.iter().any(|(_, host)| i64::from(host.0) == id) {
            return Err(Error::Usage(format!(
                "{}: its ids begin with the same number; give another one with --host-id",
                entry.path().display()
            )));
        }
    }
    Ok(())
}

/// Returns true if the path is a folder, and false if it does not exist. Anything else is an error, even a link to a folder.
fn is_folder(path: &Path) -> Result<bool, Error> {
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => Ok(true),
        Ok(_) => Err(Error::Usage(format!(
            "{}: expected a folder of tables",
            path.display()
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(write_error(path, error)),
    }
}

/// Returns an error if a partition contains anything other than our tables.
fn check_files(partition: &Path) -> Result<(), Error> {
    let failed = |error| write_error(partition, error);
    for entry in fs::read_dir(partition).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_name = name.strip_suffix(".parquet").is_some_and(|stem| {
            let is_number = !stem.is_empty() && stem.bytes().all(|byte| byte.is_ascii_digit());
            is_number || matches!(stem, "all" | "none")
        });
        if !is_name || !is_ours(&path) {
            return Err(Error::Usage(format!(
                "{}: is not a table of this program, so --force does not replace it",
                path.display()
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::cells::{Cell, Coding, Column};
    use crate::write::table::write;

    fn options(to: &Path, force: bool) -> TablesOptions {
        TablesOptions {
            to: to.to_owned(),
            force,
            ..TablesOptions::default()
        }
    }

    fn host(name: &str, id: u32) -> Vec<(Partition, HostId)> {
        vec![(Partition::new(name), HostId(id))]
    }

    /// Publishes tables of a host. Each has one file.
    fn publish(to: &Path, name: &str, id: u32, force: bool) -> Result<(), Error> {
        static COLUMNS: [Column; 1] = [Column::long("host_id", Coding::Delta)];
        let new = NewTables::begin(&options(to, force), host(name, id))?;
        for table in TABLES {
            let path = new.file(table, &Partition::new(name), "all");
            write(&path, &COLUMNS, [[Cell::Long(id.into())]]).unwrap();
        }
        new.publish()
    }

    fn id_of(to: &Path, table: &str, name: &str) -> Option<i64> {
        let partition = to.join(table).join(format!("host={name}"));
        first_long(&partition.join("all.parquet"))
    }

    fn refusal(outcome: Result<(), Error>) -> String {
        outcome.unwrap_err().to_string()
    }

    #[test]
    fn tables_appear_complete_and_are_replaced_only_with_force() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("deep/tables");
        drop(NewTables::begin(&options(&to, false), host("h", 1)).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let new = NewTables::begin(&options(&to, false), host("h", 1)).unwrap();
        assert!(!to.join("slice").exists());
        drop(new);
        publish(&to, "h", 1, false).unwrap();
        assert_eq!(fs::read_dir(&to).unwrap().count(), TABLES.len());
        let refused = refusal(publish(&to, "h", 2, false));
        assert!(refused.contains("--force"), "{refused}");
        publish(&to, "other", 3, false).unwrap();
        publish(&to, "h", 2, true).unwrap();
        assert_eq!(fs::read_dir(&to).unwrap().count(), TABLES.len());
        for table in TABLES {
            assert_eq!(id_of(&to, table, "h"), Some(2));
            assert_eq!(id_of(&to, table, "other"), Some(3));
        }
        fs::write(to.join("notes"), "mine").unwrap();
        let refused = refusal(publish(&to, "h", 2, true));
        assert!(refused.contains("notes"), "{refused}");
    }

    #[test]
    fn files_of_other_programs_stay() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path();
        let mine = to.join("slice/host=h/mine.parquet");
        fs::create_dir_all(mine.parent().unwrap()).unwrap();
        fs::write(&mine, "mine").unwrap();
        for (force, why) in [(false, "--force replaces"), (true, "mine.parquet")] {
            let refused = refusal(publish(to, "h", 1, force));
            assert!(refused.contains(why), "{refused}");
        }
        let named_as_ours = mine.with_file_name("00001.parquet");
        fs::rename(&mine, &named_as_ours).unwrap();
        refusal(publish(to, "h", 1, true));
        assert_eq!(fs::read(&named_as_ours).unwrap(), b"mine");
        publish(to, "other", 1, false).unwrap();
    }

    #[test]
    fn a_link_instead_of_a_table_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path();
        fs::create_dir(to.join("track")).unwrap();
        std::os::unix::fs::symlink("nowhere", to.join("track/host=h")).unwrap();
        for force in [false, true] {
            refusal(publish(to, "h", 1, force));
            assert_eq!(fs::read_dir(to).unwrap().count(), 1);
        }
    }

    #[test]
    fn a_failed_publication_is_undone() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path();
        publish(to, "h", 1, false).unwrap();
        let new = NewTables::begin(&options(to, true), host("h", 2)).unwrap();
        fs::remove_dir_all(new.new.join("damage")).unwrap();
        new.publish().unwrap_err();
        for table in TABLES {
            assert_eq!(id_of(to, table, "h"), Some(1), "{table}");
        }
        let other = tempfile::tempdir().unwrap();
        let to = &other.path().join("tables");
        let new = NewTables::begin(&options(to, false), host("h", 2)).unwrap();
        fs::remove_dir_all(new.new.join("damage")).unwrap();
        new.publish().unwrap_err();
        assert!(!to.exists());
    }

    #[test]
    fn equal_ids_of_hosts_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        publish(folder.path(), "one", 7, false).unwrap();
        let refused = refusal(publish(folder.path(), "two", 7, false));
        assert!(refused.contains("--host-id"), "{refused}");
        publish(folder.path(), "two", 8, false).unwrap();
    }

    #[test]
    fn folders_of_killed_writers_are_removed_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path();
        let dead = to.join(".new-dead");
        fs::create_dir_all(dead.join("slice/host=h")).unwrap();
        fs::create_dir_all(to.join(".new-mine/notes")).unwrap();
        let alive = NewTables::begin(&options(to, false), host("a", 1)).unwrap();
        assert!(!dead.exists());
        publish(to, "b", 2, false).unwrap();
        assert!(alive.new.exists());
        assert!(to.join(".new-mine/notes").exists());
    }
}
