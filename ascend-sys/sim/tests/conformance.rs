//! The simulated runtime against its rules: the programs in conformance/, built with the C compiler against our own declarations, one process for each case.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the path of the simulated runtime. Cargo builds it next to the tests, because they depend on its package.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    test.with_file_name("libascendcl.so")
}

fn compile(built: &Path) {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let files = std::fs::read_dir(home).expect("sources");
    let files = files.map(|file| file.expect("a source").path());
    let libraries = library();
    let libraries = libraries.parent().expect("a folder").display().to_string();
    let output = Command::new("cc")
        .args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror"])
        .args(["-pthread", "-o"])
        .arg(built)
        .args(files.filter(|file| file.extension().is_some_and(|ending| ending == "c")))
        .arg(format!("-L{libraries}"))
        // Before LD_LIBRARY_PATH: a test runner may put a folder there with a library that an older build has left.
        .arg(format!("-Wl,--disable-new-dtags,-rpath,{libraries}"))
        .arg("-l:libascendcl.so")
        .output();
    let output = output.expect("cc, the C compiler");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn the_rules_hold() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("conformance");
    compile(&program);
    let (faults, kernels) = ("ASCEND_SIM_FAULTS", "ASCEND_SIM_KERNELS");
    let lost = [(faults, "device_lost:3=507010"), (kernels, "k=20000")];
    for (case, settings) in [
        ("devices", &[("ASCEND_RT_VISIBLE_DEVICES", "5,2")][..]),
        ("events", &[(kernels, "slow=150000")]),
        ("capture", &[]),
        ("capture_broken", &[]),
        ("capture_streams", &[]),
        ("last_error", &[]),
        ("last_task", &[("ASCEND_SIM_SOC", "910b")]),
        ("last_task", &[("ASCEND_SIM_SOC", "950")]),
        ("fault_of_a_kernel", &[(faults, "kernel:2=507015")]),
        ("fault_of_a_device", &lost),
    ] {
        let mut command = Command::new(&program);
        let output = command.arg(case).envs(settings.iter().copied()).output();
        let output = output.expect("a run");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{case}: {}\n{said}", output.status);
        assert_eq!(said, "", "{case}");
    }
}

#[test]
fn the_library_is_linked_as_the_vendors_are() {
    let mut readelf = Command::new("readelf");
    let output = readelf.arg("-d").arg(library()).output();
    let said = String::from_utf8(output.expect("a tool of binutils").stdout).expect("text");
    for expected in ["Library soname: [libascendcl.so]", "SYMBOLIC", "NODELETE"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}
