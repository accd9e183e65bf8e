//! Where the tables go: whole or absent, and never over those of another run unasked.

use crate::tables::{rows, trace};
use serde_json::json;
use std::path::Path;
use trace_merge::{Error, Options, Progress};
use trace_tables::{TablesOptions, write_tables};

fn write(to: &Path, names: &[&str], force: bool) -> Result<(), Error> {
    let line =
        |name: &&str| json!({"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "name": name});
    let file = trace(&names.iter().map(line).collect::<Vec<_>>());
    let options = Options::new([file.path().to_owned()]);
    let tables = TablesOptions {
        to: to.to_owned(),
        force,
        host_id: Some(7),
        ..TablesOptions::default()
    };
    write_tables(&options, &tables, &Progress::default()).map(drop)
}

#[test]
fn tables_that_are_there_are_replaced_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("tables");
    write(&to, &["one"], false).unwrap();
    let refused = write(&to, &["two"], false).unwrap_err().to_string();
    assert!(refused.contains("--force"), "{refused}");
    assert_eq!(rows(&to, "slice")[0]["name"], "one");
    write(&to, &["two"], true).unwrap();
    let slices = rows(&to, "slice");
    assert_eq!((slices.len(), &slices[0]["name"]), (1, &json!("two")));
    assert_eq!(slices[0]["id"].as_i64().unwrap() >> 39, 7);
}

#[test]
fn a_run_that_cannot_be_read_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("tables");
    let tables = TablesOptions {
        to: to.clone(),
        ..TablesOptions::default()
    };
    let options = Options::new([folder.path().join("nothing")]);
    assert!(write_tables(&options, &tables, &Progress::default()).is_err());
    assert!(!to.exists());
}

#[test]
fn a_folder_of_something_else_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine"), "text").unwrap();
    let refused = write(folder.path(), &["one"], true)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("mine"), "{refused}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 1);
}
