//! Reads tables without the arrow crate.

use crate::events::trace;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::ColumnDescPtr;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use trace_merge::{Options, Progress};
use trace_tables::{TablesOptions, Written, write_tables};

/// Tables in a temporary folder.
pub(crate) struct Tables {
    folder: TempDir,
    pub(crate) written: Written,
}

/// Values of a row by column.
pub(crate) type Row = Map<String, Value>;

impl Tables {
    /// Writes the tables of a run or trace.
    pub(crate) fn write(paths: &[PathBuf]) -> Tables {
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

    /// Writes the tables of a Chrome trace with these events.
    pub(crate) fn of_lines(lines: &[Value]) -> Tables {
        let file = trace(lines);
        Tables::write(&[file.path().to_owned()])
    }

    /// Returns the rows of all files of a table.
    pub(crate) fn rows(&self, table: &str) -> Vec<Row> {
        rows(self.folder.path(), table)
    }

    /// Returns the rows of a table by the folder of their host.
    pub(crate) fn rows_by_host(&self, table: &str) -> BTreeMap<String, Vec<Row>> {
        rows_by_host(self.folder.path(), table)
    }

    /// Returns the columns of a table with their types, and the number of rows of each of its row groups. Every file has the same columns.
    pub(crate) fn layout(&self, table: &str) -> (Vec<String>, Vec<i64>) {
        let (mut columns, mut groups) = (None, Vec::new());
        for (_, file) in files(self.folder.path(), table) {
            let file = reader(&file);
            let schema = file.metadata().file_metadata().schema_descr().columns();
            let column = |column: &ColumnDescPtr| {
                let (name, kind) = (column.name(), column.physical_type());
                format!("{name} {kind}")
            };
            let found: Vec<String> = schema.iter().map(column).collect();
            assert_eq!(columns.get_or_insert_with(|| found.clone()), &found);
            let row_groups = file.metadata().row_groups().iter();
            groups.extend(row_groups.map(RowGroupMetaData::num_rows));
        }
        (columns.unwrap(), groups)
    }

    /// Returns the path and bytes of every file.
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

/// Returns the rows of all files of a table. Rows of one file are in their order.
pub(crate) fn rows(folder: &Path, table: &str) -> Vec<Row> {
    let by_host = rows_by_host(folder, table).into_values();
    by_host.flatten().collect()
}

fn rows_by_host(folder: &Path, table: &str) -> BTreeMap<String, Vec<Row>> {
    let mut found: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for (host, file) in files(folder, table) {
        let rows = found.entry(host).or_default();
        for row in reader(&file).get_row_iter(None).unwrap() {
            let row = row.unwrap();
            let column = |(name, field): (&String, &Field)| (name.clone(), value(field));
            rows.push(row.get_column_iter().map(column).collect());
        }
    }
    found
}

/// Returns the files of a table in order, each with the folder of its host.
fn files(folder: &Path, table: &str) -> Vec<(String, PathBuf)> {
    let entries = |path: &Path| {
        let entries = path.read_dir().unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let host_files = |partition: PathBuf| {
        let host = partition.file_name().unwrap().to_str().unwrap().to_owned();
        let files = entries(&partition).into_iter();
        files.map(move |file| (host.clone(), file))
    };
    let partitions = entries(&folder.join(table)).into_iter();
    partitions.flat_map(host_files).collect()
}

fn reader(file: &Path) -> SerializedFileReader<File> {
    SerializedFileReader::new(File::open(file).unwrap()).unwrap()
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
