//! Tables as they are read back, without arrow.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use trace_merge::{Options, Progress};
use trace_tables::{TablesOptions, Written, write_tables};

/// Tables in a folder that goes with them.
pub(crate) struct Tables {
    folder: TempDir,
    pub(crate) written: Written,
}

/// A row by column.
pub(crate) type Row = Map<String, Value>;

impl Tables {
    /// Those of a run or trace.
    pub(crate) fn of(paths: &[PathBuf]) -> Tables {
        Tables::with(Options::new(paths.to_vec()))
    }

    pub(crate) fn with(options: Options) -> Tables {
        let folder = tempfile::tempdir().unwrap();
        let tables = TablesOptions {
            to: folder.path().to_owned(),
            ..TablesOptions::default()
        };
        let (written, _) = write_tables(&options, &tables, &Progress::default()).unwrap();
        Tables { folder, written }
    }

    /// Those of a Chrome trace with these events.
    pub(crate) fn of_lines(lines: &[Value]) -> Tables {
        let file = trace(lines);
        Tables::of(&[file.path().to_owned()])
    }

    /// The rows of all files of a table.
    pub(crate) fn rows(&self, table: &str) -> Vec<Row> {
        rows(self.folder.path(), table)
    }

    /// The bytes of every file by path.
    pub(crate) fn bytes(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut todo = vec![self.folder.path().to_owned()];
        while let Some(path) = todo.pop() {
            if path.is_dir() {
                todo.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
            } else {
                let name = path.strip_prefix(self.folder.path()).unwrap().to_owned();
                found.push((name, std::fs::read(&path).unwrap()));
            }
        }
        found.sort();
        found
    }
}

/// A Chrome trace with these events.
pub(crate) fn trace(lines: &[Value]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    std::fs::write(file.path(), json!({ "traceEvents": lines }).to_string()).unwrap();
    file
}

/// The rows of all files of a table, those of one file in their order.
pub(crate) fn rows(folder: &Path, table: &str) -> Vec<Row> {
    let entries = |path: &Path| {
        let entries = path.read_dir().unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let partitions = entries(&folder.join(table));
    let files = partitions.iter().flat_map(|partition| entries(partition));
    let mut found = Vec::new();
    for file in files {
        let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
        for row in reader.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            let column = |(name, field): (&String, &Field)| (name.clone(), value(field));
            found.push(row.get_column_iter().map(column).collect());
        }
    }
    found
}

fn value(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Int(value) => json!(value),
        Field::Long(value) => json!(value),
        Field::Double(value) => json!(value),
        Field::Str(value) => json!(value),
        other => panic!("{other:?}"),
    }
}
