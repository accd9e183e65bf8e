//! The names that the library exports: the vendor's functions of the table and nothing else.

use crate::ground::preload;
use std::collections::BTreeSet;
use std::process::Command;

/// The names in tests/c/interface.h, which the adversary calls.
fn called() -> BTreeSet<String> {
    let text = include_str!("../c/interface.h");
    let functions = text.lines().filter(|line| line.starts_with("  F("));
    functions
        .map(|line| line.split(", ").nth(1).unwrap().to_owned())
        .collect()
}

/// The output of a tool about the library.
fn told_by(tool: &str, arguments: &[&str]) -> String {
    let output = Command::new(tool).args(arguments).arg(preload()).output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

#[test]
fn the_library_exports_what_the_adversary_calls_and_nothing_else() {
    let symbols = told_by("nm", &["-D", "--defined-only"]);
    let mut exported: BTreeSet<String> = symbols
        .lines()
        .map(|line| line.rsplit(' ').next().unwrap().to_owned())
        .collect();
    assert!(exported.remove("dlsym"), "it leads to the others");
    assert_eq!(exported, called());
    assert_eq!(exported.len(), 97);
}

#[test]
fn loading_the_library_runs_no_code_of_ours() {
    let text = told_by("readelf", &["--dynamic", "--wide"]);
    let size = text
        .lines()
        .find(|line| line.contains("(INIT_ARRAYSZ)"))
        .and_then(|line| line.split_whitespace().nth(2))
        .and_then(|size| size.parse::<usize>().ok());
    // The compiler's frame_dummy, and std remembering argc and argv.
    assert_eq!(size, Some(16), "{text}");
}
