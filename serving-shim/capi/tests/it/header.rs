//! Compares the header with the source, and uses it in C and C++.

use crate::stage::{C, LIBRARY, PACKAGE, stage};
use c_programs::success;
use capi_header::GENERATED;
use serde_json::json;
use std::fs;
use std::path::Path;

#[test]
fn the_header_is_generated_from_the_source() {
    let path = Path::new(PACKAGE).join("include/sa_profile.h");
    let generated = GENERATED.trim_start();
    if std::env::var_os("UPDATE_HEADER").is_some_and(|value| value == "1") {
        return fs::write(&path, generated).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap();
    for (at, (old, new)) in committed.lines().zip(generated.lines()).enumerate() {
        assert_eq!(old, new, "line {}; UPDATE_HEADER=1 updates it", at + 1);
    }
    assert_eq!(committed, generated);
}

#[test]
fn a_cpp_file_and_a_c_file_of_a_program_include_the_header() {
    let ground = stage();
    ground.library("libsecond.so", "second.c", &[&C[..], &LIBRARY].concat());
    let flags = ["-std=c++11", "-Wextra", "-Wpedantic", "-lsecond"];
    let flags = [&flags[..], &LIBRARY].concat();
    let program = ground.compile("c++", "program", &["spans.cpp"], &flags);
    success(&mut ground.recorded(program));
    ground.trace().assert_fields(&json!({
        "cpp": {"args": {"i": -3, "u": 3, "b": true, "d": 0.5, "s": "text", "std": "a\0b", "last": 1}},
        "begun with args": {"args": {"layer": 7, "std": "a\0b", "later": true}},
        "begun with none": {"args": null},
        "instant": {"args": {"evaluated": 1, "more": "x"}},
        "second": {"args": {"s": "x", "i": 1}},
    }));
}
