//! The header: as the source says it, in C and in C++.

use crate::stage::{C, LIBRARY, PACKAGE, stage};
use c_programs::success;
use capi_header::GENERATED;
use serde_json::json;
use std::fs;
use std::path::Path;

#[test]
fn the_header_is_what_the_source_says() {
    let path = Path::new(PACKAGE).join("include/sa_profile.h");
    let generated = GENERATED.trim_start();
    if std::env::var_os("UPDATE_HEADER").is_some_and(|value| value == "1") {
        return fs::write(&path, generated).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap();
    for (at, (kept, new)) in kept.lines().zip(generated.lines()).enumerate() {
        assert_eq!(kept, new, "line {}; UPDATE_HEADER=1 writes it anew", at + 1);
    }
    assert_eq!(kept, generated);
}

#[test]
fn a_cpp_file_includes_the_header_beside_a_c_file() {
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
