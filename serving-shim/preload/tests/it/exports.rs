//! The names that the library exports: the vendor's functions of the table and nothing else.

use crate::fakes::functions;
use c_programs::{dynamic_section, exported, preload};
use std::collections::BTreeSet;

#[test]
fn the_library_exports_the_functions_of_the_table_and_dlsym_and_nothing_else() {
    let table = functions().filter(|function| function.part != "ASKED");
    let mut expected: BTreeSet<String> = table.map(|function| function.name.to_owned()).collect();
    assert_eq!(expected.len(), 97);
    expected.insert("dlsym".to_owned()); // returns the others
    assert_eq!(exported(&preload()), expected);
}

#[test]
fn loading_the_library_runs_no_code_of_ours() {
    let text = dynamic_section(&preload());
    let mut sizes = text.lines().filter(|line| line.contains("(INIT_ARRAYSZ)"));
    let size = sizes.next().and_then(|line| line.split_whitespace().nth(2));
    // The compiler's frame_dummy, and std remembering argc and argv.
    assert_eq!(size, Some("16"), "{text}");
}
