//! The header: as the source says it, in C and in C++.

use crate::stage::{C, PACKAGE, Stage, Trace};
use capi_header::GENERATED;
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn the_header_is_what_the_source_says() {
    let path = Path::new(PACKAGE).join("include/sa_profile.h");
    let generated = GENERATED.trim_start();
    if std::env::var_os("UPDATE_HEADER").is_some_and(|value| value == "1") {
        return fs::write(&path, generated).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap();
    let differs = kept
        .lines()
        .zip(generated.lines())
        .position(|(kept, new)| kept != new);
    assert!(
        kept == generated,
        "{} differs from the source, first in line {:?}; UPDATE_HEADER=1 writes it anew",
        path.display(),
        differs.map(|line| line + 1)
    );
}

#[test]
fn a_cpp_file_includes_the_header_beside_a_c_file() {
    let flags = ["-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];
    let stage = Stage::new();
    let mut objects = stage.objects("c++", &flags, &["spans.cpp"]);
    objects.extend(stage.objects("cc", &C, &["second.c"]));
    let program = stage.link("c++", &objects);
    let output = stage.record(&program);
    let trace = Trace::of(&stage.run_directory(), output);
    let args = &trace.one("cpp")["args"];
    let expected = serde_json::json!({"i": -3, "u": 3, "b": true, "d": 0.5, "s": "text", "std": "a\0b", "last": 1});
    assert_eq!(args, &expected);
    let expected = serde_json::json!({"layer": 7, "std": "a\0b", "later": true});
    assert_eq!(trace.one("begun with args")["args"], expected);
    assert!(trace.one("begun with none").get("args").is_none());
    assert_eq!(
        trace.one("instant")["args"],
        serde_json::json!({"evaluated": 1, "more": "x"})
    );
}

#[test]
fn in_cpp_a_pointer_that_is_no_string_is_no_arg() {
    let stage = Stage::new();
    let compiles = |value: &str| {
        let source = stage.path().join("arg.cpp");
        let text = format!(
            "#include <sa_profile.h>\n\
             sa_profile_arg_t arg(char *text, int *ints, const volatile void *any) {{\n\
               (void)text, (void)ints, (void)any;\n\
               return SA_PROFILE_ARG(\"k\", {value});\n}}\n"
        );
        fs::write(&source, text).unwrap();
        let mut command = Command::new("c++");
        command
            .args(["-std=c++11", "-fsyntax-only", "-I"])
            .arg(Path::new(PACKAGE).join("include"));
        command.arg(source).output().unwrap().status.success()
    };
    for (value, is_arg) in [
        ("text", true),
        ("\"literal\"", true),
        ("static_cast<const char *>(text)", true),
        ("text != nullptr", true),
        ("nullptr", true),
        ("ints", false),
        ("sa_profile_flush", false),
        ("any", false),
        ("&text", false),
        ("reinterpret_cast<unsigned char *>(text)", false),
    ] {
        assert_eq!(compiles(value), is_arg, "{value}");
    }
}
