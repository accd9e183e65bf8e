//! The folder that the tables go to. Those of a host appear there when all are whole, or not at all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use trace_merge::Error;

/// The tables, the one that says that the others are whole last.
pub(crate) const TABLES: [&str; 11] = [
    "slice", "args", "counter", "flow", "track", "thread", "process", "clock", "loss", "damage",
    "metadata",
];

/// A host's part of each table.
#[derive(Clone, Debug)]
pub(crate) struct Partition(String);

impl Partition {
    /// That of a host.
    pub(crate) fn of(host: &str) -> Partition {
        let mut name = String::from("host=");
        for byte in host.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => {
                    name.push(char::from(byte));
                }
                byte => name.push_str(&format!("%{byte:02X}")),
            }
        }
        Partition(name)
    }
}

/// Tables that are being written beside those that are there.
pub(crate) struct NewTables {
    to: PathBuf,
    /// Inside `to`, so on the same disk.
    new: TempDir,
    is_new_folder: bool,
    is_done: bool,
    partitions: Vec<Partition>,
}

impl NewTables {
    /// Makes room for the tables of some hosts in a folder, which is made if it is not there.
    pub(crate) fn begin(
        to: &Path,
        partitions: Vec<Partition>,
        is_forced: bool,
    ) -> Result<NewTables, Error> {
        let failed = |source| Error::Write {
            path: to.to_owned(),
            source,
        };
        let is_new_folder = match fs::read_dir(to) {
            Ok(entries) => {
                refuse_others(to, entries)?;
                false
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(to).map_err(failed)?;
                true
            }
            Err(error) => return Err(failed(error)),
        };
        for partition in partitions.iter().filter(|_| !is_forced) {
            let whole = to.join("metadata").join(&partition.0);
            if whole.exists() {
                let why = format!(
                    "{}: has tables of this host already; --force replaces them",
                    whole.display()
                );
                return Err(Error::Usage(why));
            }
        }
        let new = tempfile::Builder::new().prefix(".new-").tempdir_in(to);
        let new = NewTables {
            to: to.to_owned(),
            new: new.map_err(failed)?,
            is_new_folder,
            is_done: false,
            partitions,
        };
        for table in TABLES {
            for partition in &new.partitions {
                fs::create_dir_all(new.new.path().join(table).join(&partition.0))
                    .map_err(failed)?;
            }
        }
        Ok(new)
    }

    /// The file of a table with this name.
    pub(crate) fn file(&self, table: &str, partition: &Partition, name: &str) -> PathBuf {
        let folder = self.new.path().join(table).join(&partition.0);
        folder.join(format!("{name}.parquet"))
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        let of = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
        let tables = TABLES.iter().map(|table| self.new.path().join(table));
        let partitions = tables
            .flat_map(|table| of(&table))
            .map(|entry| entry.path());
        let files = partitions.flat_map(|partition| of(&partition));
        files
            .filter_map(|file| Some(file.metadata().ok()?.len()))
            .sum()
    }

    /// Gives the tables their place.
    pub(crate) fn publish(mut self) -> Result<(), Error> {
        let to = self.to.clone();
        self.rename()
            .map_err(|source| Error::Write { path: to, source })
    }

    fn rename(&mut self) -> io::Result<()> {
        for partition in &self.partitions {
            // What says that old tables are whole goes first.
            for table in TABLES.iter().rev() {
                let old = self.to.join(table).join(&partition.0);
                if old.exists() {
                    fs::remove_dir_all(old)?;
                }
            }
            for table in TABLES {
                fs::create_dir_all(self.to.join(table))?;
                let new = self.new.path().join(table).join(&partition.0);
                fs::rename(new, self.to.join(table).join(&partition.0))?;
            }
        }
        self.is_done = true;
        Ok(())
    }
}

impl Drop for NewTables {
    fn drop(&mut self) {
        if self.is_new_folder && !self.is_done {
            // Whoever put something there meanwhile keeps it: only what is ours, or empty, goes.
            let _ = fs::remove_dir_all(self.new.path());
            let _ = fs::remove_dir(&self.to);
        }
    }
}

/// Refuses a folder in which something else than tables lies.
fn refuse_others(to: &Path, entries: fs::ReadDir) -> Result<(), Error> {
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !TABLES.contains(&&*name) && !name.starts_with(".new-") {
            let why = format!(
                "{}: expected a new or empty folder, or one with tables, found {name} in it",
                to.display()
            );
            return Err(Error::Usage(why));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hosts_name_is_one_of_a_folder() {
        assert_eq!(Partition::of("node-1.rack").0, "host=node-1.rack");
        assert_eq!(Partition::of("a/b=é").0, "host=a%2Fb%3D%C3%A9");
    }

    #[test]
    fn tables_appear_whole_and_are_not_replaced_unasked() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("deep/tables");
        let host = || vec![Partition::of("h")];
        drop(NewTables::begin(&to, host(), false).unwrap());
        assert!(!to.exists());
        let new = NewTables::begin(&to, host(), false).unwrap();
        let file = new.file("slice", &Partition::of("h"), "all");
        fs::write(file, "one").unwrap();
        assert!(!to.join("slice").exists());
        new.publish().unwrap();
        assert_eq!(
            fs::read(to.join("slice/host=h/all.parquet")).unwrap(),
            b"one"
        );
        assert_eq!(fs::read_dir(&to).unwrap().count(), TABLES.len());
        let refused = NewTables::begin(&to, host(), false).err().unwrap();
        assert!(refused.to_string().contains("--force"), "{refused}");
        let other = vec![Partition::of("other")];
        NewTables::begin(&to, other, false)
            .unwrap()
            .publish()
            .unwrap();
        NewTables::begin(&to, host(), true)
            .unwrap()
            .publish()
            .unwrap();
        assert!(!to.join("slice/host=h/all.parquet").exists());
        fs::write(to.join("notes"), "mine").unwrap();
        let refused = NewTables::begin(&to, host(), true).err().unwrap();
        assert!(refused.to_string().contains("notes"), "{refused}");
    }
}
