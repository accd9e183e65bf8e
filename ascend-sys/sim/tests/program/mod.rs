//! The C programs of the tests, built where cargo keeps what tests leave behind.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The simulated runtime: cargo builds it beside the tests, because they depend on its package.
pub(crate) fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    test.with_file_name("libascendcl.so")
}

/// The program of these sources. Tests run in processes of their own: the first one builds it, the others find it as long as no source has changed.
pub(crate) fn program(name: &str, sources: &[&str], linked: bool) -> PathBuf {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let mut hasher = DefaultHasher::new();
    for file in sources.iter().chain(&["acl_abi.h", "check.h"]) {
        std::fs::read(home.join(file))
            .expect("a source")
            .hash(&mut hasher);
    }
    library().hash(&mut hasher);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let built = folder.join(format!("{name}-{:016x}", hasher.finish()));
    if !built.exists() {
        let unfinished = folder.join(format!("{name}-{}", std::process::id()));
        let sources: Vec<PathBuf> = sources.iter().map(|source| home.join(source)).collect();
        compile(&sources, &unfinished, linked);
        std::fs::rename(&unfinished, &built).expect("a rename");
    }
    built
}

fn compile(sources: &[PathBuf], built: &Path, linked: bool) {
    let mut compiler = Command::new("cc");
    compiler
        .args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror"])
        .args(["-rdynamic", "-pthread", "-o"])
        .arg(built)
        .args(sources);
    if linked {
        let libraries = library();
        let libraries = libraries.parent().expect("a folder").display().to_string();
        compiler
            .arg(format!("-L{libraries}"))
            // Before LD_LIBRARY_PATH: a test runner may put a folder there with a library that an older build has left.
            .arg(format!("-Wl,--disable-new-dtags,-rpath,{libraries}"))
            .args(["-l:libascendcl.so", "-lm"]);
    }
    let output = compiler.arg("-ldl").output();
    let output = output.expect("cc, the C compiler");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

const SOURCES: [&str; 11] = [
    "main.c",
    "context.c",
    "stream.c",
    "thread.c",
    "event.c",
    "kernel.c",
    "capture.c",
    "fault.c",
    "rt.c",
    "work.c",
    "mspti.c",
];

/// A run of one case of the conformance program.
pub(crate) fn conformance(case: &str) -> Command {
    static BUILT: LazyLock<PathBuf> = LazyLock::new(|| program("conformance", &SOURCES, true));
    let mut command = Command::new(&*BUILT);
    command.arg(case);
    command
}
