//! Checks the rules of the simulated runtime with the C program in conformance/, which is compiled with our own declarations. Each case runs in a new process.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the path of the simulated runtime, which cargo builds next to the tests.
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
        // RPATH instead of RUNPATH, to be searched before LD_LIBRARY_PATH, in which a test runner may put a folder with a library from an older build.
        .arg(format!("-Wl,--disable-new-dtags,-rpath,{libraries}"))
        .arg("-l:libascendcl.so")
        .output();
    let output = output.expect("cc, the C compiler");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
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
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{case}: {}\n{printed}",
            output.status
        );
        assert_eq!(printed, "", "{case}");
    }
}

#[test]
fn the_library_is_linked_as_the_vendors_are() {
    let mut readelf = Command::new("readelf");
    let output = readelf.arg("-d").arg(library()).output();
    let printed = String::from_utf8(output.expect("a tool of binutils").stdout).expect("text");
    for expected in ["Library soname: [libascendcl.so]", "SYMBOLIC", "NODELETE"] {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
}
