//! The folder that the tables go to. Those of a host appear there when all are whole, or not at all.

mod partition;

pub(crate) use partition::Partition;

use crate::ids::HostId;
use crate::options::TablesOptions;
use crate::unfinished::{
    FolderChanges, Leftover, NEW, NewFolder, OLD, REPLACED, Unfinished, clear_away, let_old_go,
};
use crate::write::read_back::{first_long, is_ours};
use std::path::{Path, PathBuf};
use std::{fs, io};
use trace_merge::Error;

/// The tables, the one that says that the others are whole last.
pub(crate) const TABLES: [&str; 16] = [
    "slice", "args", "counter", "flow", "track", "request", "step", "device", "idle", "name",
    "thread", "process", "clock", "loss", "damage", "metadata",
];

/// Tables that are being written beside those that are there.
pub(crate) struct NewTables {
    to: PathBuf,
    new: PathBuf,
    unfinished: Unfinished,
    hosts: Vec<(Partition, HostId)>,
    is_forced: bool,
}

impl NewTables {
    /// Makes room for the tables of some hosts in a folder, which is made if it is not there.
    pub(crate) fn begin(
        options: &TablesOptions,
        hosts: Vec<(Partition, HostId)>,
    ) -> Result<NewTables, Error> {
        let to = &options.to;
        let failed = |source| write_error(to, source);
        let made = match fs::read_dir(to) {
            Ok(entries) => {
                refuse_others(to, entries)?;
                refuse_hosts(to, &hosts, options.force)?;
                FolderChanges::default()
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                FolderChanges::make_all(to).map_err(failed)?
            }
            Err(error) => return Err(failed(error)),
        };
        clear_away(to, |name| {
            name == OLD || name == REPLACED || TABLES.contains(&name)
        });
        let new = NewFolder::make(to).map_err(failed)?;
        let tables = NewTables {
            to: to.clone(),
            new: new.path.clone(),
            unfinished: options.unfinished.clone(),
            hosts,
            is_forced: options.force,
        };
        *tables.unfinished.lock() = Some(Leftover { _new: new, made });
        for table in TABLES {
            for (partition, _) in &tables.hosts {
                fs::create_dir_all(tables.new.join(table).join(&partition.0)).map_err(failed)?;
            }
        }
        Ok(tables)
    }

    /// The file of a table with this name.
    pub(crate) fn file(&self, table: &str, partition: &Partition, name: &str) -> PathBuf {
        let folder = self.new.join(table).join(&partition.0);
        folder.join(format!("{name}.parquet"))
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        let of = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
        let tables = TABLES.iter().map(|table| self.new.join(table));
        let partitions = tables
            .flat_map(|table| of(&table))
            .map(|entry| entry.path());
        let files = partitions.flat_map(|partition| of(&partition));
        files
            .filter_map(|file| Some(file.metadata().ok()?.len()))
            .sum()
    }

    /// Gives the tables their place.
    pub(crate) fn publish(self) -> Result<(), Error> {
        let mut unfinished = self.unfinished.lock();
        let Some(leftover) = &mut *unfinished else {
            return Err(write_error(&self.to, io::ErrorKind::Interrupted.into()));
        };
        // Others may have written meanwhile.
        refuse_hosts(&self.to, &self.hosts, self.is_forced)?;
        self.exchange()
            .map_err(|source| write_error(&self.to, source))?;
        leftover.made.keep();
        let_old_go(&self.new).map_err(|source| write_error(&self.new, source))?;
        Ok(())
    }

    /// Moves the old tables aside, where they go with the folder, and the new ones to their place.
    fn exchange(&self) -> io::Result<()> {
        let mut changes = FolderChanges::default();
        for (Partition(partition), _) in &self.hosts {
            // What says that tables are whole goes first, and comes last.
            for table in TABLES.iter().rev() {
                let place = self.to.join(table).join(partition);
                if place.exists() {
                    let aside = self.new.join(OLD).join(table);
                    fs::create_dir_all(&aside)?;
                    changes.rename(place, aside.join(partition))?;
                }
            }
            for table in TABLES {
                changes.make(self.to.join(table))?;
                let place = self.to.join(table).join(partition);
                changes.rename(self.new.join(table).join(partition), place)?;
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

/// Refuses a folder in which something else than tables lies.
fn refuse_others(to: &Path, entries: fs::ReadDir) -> Result<(), Error> {
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

/// Refuses hosts that have something there, but for tables that are to be replaced, and those with the id of another host.
fn refuse_hosts(to: &Path, hosts: &[(Partition, HostId)], is_forced: bool) -> Result<(), Error> {
    for table in TABLES {
        if !is_folder(&to.join(table))? {
            continue;
        }
        for (partition, _) in hosts {
            let place = to.join(table).join(&partition.0);
            if !is_folder(&place)? {
                continue;
            }
            if !is_forced {
                return Err(Error::Usage(format!(
                    "{}: has tables of this host already; --force replaces them",
                    place.display()
                )));
            }
            refuse_foreign(&place)?;
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

/// Whether there is a folder; refuses anything else, also a link to one.
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

/// Refuses a partition in which something lies that is no table of ours.
fn refuse_foreign(place: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(place).map_err(|error| write_error(place, error))?;
    for entry in entries {
        let path = entry.map_err(|error| write_error(place, error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_name = name.strip_suffix(".parquet").is_some_and(|stem| {
            let is_number = !stem.is_empty() && stem.bytes().all(|byte| byte.is_ascii_digit());
            is_number || matches!(stem, "all" | "none")
        });
        if !is_name || !is_ours(&path) {
            return Err(Error::Usage(format!(
                "{}: no table of this program; --force does not replace it",
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
        vec![(Partition::of(name), HostId(id))]
    }

    /// Publishes tables of a host, each with a file.
    fn publish(to: &Path, name: &str, id: u32, force: bool) -> Result<(), Error> {
        static COLUMNS: [Column; 1] = [Column::long("host_id", Coding::Delta)];
        let new = NewTables::begin(&options(to, force), host(name, id))?;
        for table in TABLES {
            let path = new.file(table, &Partition::of(name), "all");
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
    fn tables_appear_whole_and_are_not_replaced_unasked() {
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
    fn what_is_not_ours_stays() {
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
    fn a_link_in_the_place_of_a_table_is_refused() {
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
    fn what_fails_on_the_way_is_undone() {
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
    fn what_a_killed_writer_left_goes_and_what_another_writes_stays() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path();
        let dead = to.join(".new-dead");
        fs::create_dir_all(dead.join("slice/host=h")).unwrap();
        fs::create_dir_all(to.join(".new-mine/notes")).unwrap();
        let living = NewTables::begin(&options(to, false), host("a", 1)).unwrap();
        assert!(!dead.exists());
        publish(to, "b", 2, false).unwrap();
        assert!(living.new.exists());
        assert!(to.join(".new-mine/notes").exists());
    }
}
