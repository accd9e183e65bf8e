//! Other preloaded libraries: interposers of the same functions before and after ours, allocators, a second copy of ours.

use crate::fakes::{fakes, links};
use c_programs::{Ended, Ground, NONE, end, preload, preloads, skip};
use std::path::{Path, PathBuf};

/// Builds the program that calls everything by name. One of its libraries calls the runtime before main, so cleanup at exit runs after the destructors
/// of other libraries.
fn ground() -> Ground {
    let ground = fakes();
    ground.library("libearly.so", "early.c", &["-l:libascendcl.so"]);
    let libraries = ["-DDIRECT", "-l:libearly.so"].map(str::to_owned);
    let options = [&links()[..], &libraries].concat();
    ground.program("direct", &["adversary.c", "calls.c"], &options);
    ground
}

/// Runs a program, with its own name as argument, under these preloaded libraries while recording.
fn below(ground: &Ground, program: &str, libraries: &[&Path]) -> Ended {
    let mut command = ground.watched(ground.path(program));
    command.arg(program).env("LD_PRELOAD", preloads(libraries));
    command.env("FAKETIME", "-1d");
    end(command.env("ASAN_OPTIONS", "verify_asan_link_order=0")) // ASan need not be the first library
}

/// Asserts that a library before or after ours changes nothing: the program's output is the same as with `alone`, and there is a trace.
fn get_along(ground: &Ground, alone: &[&Path], other: &Path) -> Ended {
    let (ours, plain) = (preload(), below(ground, "direct", alone));
    assert_eq!(plain.code, 42, "{plain:?}");
    for order in [[&ours, other], [other, &ours]] {
        assert_eq!(below(ground, "direct", &order), plain, "{order:?}");
        let trace = ground.merge_and_clear();
        assert_eq!(trace.count("aclrtSynchronizeDevice"), 5, "{order:?}");
        assert_eq!(trace.count("Asked"), 16, "{order:?}");
    }
    plain
}

/// An interposer stays in the chain, an allocator is used as without us, only the first of two copies of ours records, and at exit no replaced function is
/// called for the status of a file.
#[test]
fn issue_47_libraries_before_or_behind_ours_get_along_with_it() {
    let ground = ground();
    for (name, source, calls) in [
        ("libinterposer.so", "interposer.c", 13),
        ("liballocator.so", "allocator.c", 0),
        ("libended.so", "ended.c", 0),
    ] {
        ground.library(name, source, &["-Wno-builtin-declaration-mismatch"]);
        let other = ground.path(name);
        let plain = get_along(&ground, &[&other], &other);
        assert_eq!(plain.stdout.matches("interposer").count(), calls, "{name}");
    }
    std::fs::create_dir(ground.path("copy")).unwrap();
    let copy = ground.path("copy/libsa_profile_preload.so");
    std::fs::copy(preload(), &copy).unwrap();
    get_along(&ground, &[], &copy);
}

#[test]
fn a_launch_in_a_handler_that_interrupts_the_allocator_does_not_enter_it() {
    let ground = Ground::default();
    ground.library("libascendcl.so", "quiet_acl.c", &NONE);
    let flags = ["-Wno-builtin-declaration-mismatch", "-l:libascendcl.so"];
    let program = ground.program("interrupted", &["interrupted.c", "allocator.c"], &flags);
    assert_eq!(ground.unchanged(&program, &NONE), "launched 100\n");
    assert_eq!(ground.trace().count("aclrtLaunchKernel"), 100);
}

/// Common preloaded libraries, which fake the time, check memory or allocate it: file and Debian package.
const PRELOADED: [(&str, &str); 5] = [
    ("libjemalloc.so.2", "libjemalloc2"),
    ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
    ("faketime/libfaketime.so.1", "libfaketime"),
    ("faketime/libfaketimeMT.so.1", "libfaketime"),
    ("libasan.so.8", "libasan8"),
];

#[test]
fn issue_19_real_libraries_get_along_with_ours() {
    let ground = ground();
    let test = "issue_19_real_libraries_get_along_with_ours";
    let folders = ["x86_64-linux-gnu", "aarch64-linux-gnu", "../lib64"];
    for (name, package) in PRELOADED {
        let folders = folders
            .iter()
            .map(|folder| Path::new("/usr/lib").join(folder));
        let mut paths = folders.map(|folder| folder.join(name));
        let found: Option<PathBuf> = paths.find(|path| path.exists());
        match found {
            Some(library) => _ = get_along(&ground, &[&library], &library),
            None => skip(test, &format!("{name} is not installed ({package})")),
        }
    }
}

#[test]
fn an_interposer_before_or_behind_ours_is_no_real_function() {
    let ground = Ground::default();
    ground.library("libinterposer.so", "interposer.c", &NONE);
    // After ours, without the function, and with a dependency on an interposer that comes before ours.
    let client = ["-Wl,--no-as-needed", "-l:libinterposer.so"];
    ground.library("libclient.so", "killing_acl.c", &client);
    let program = ["-Wl,--no-as-needed", "-l:libclient.so"];
    let program = ground.program("missing", &["missing.c"], &program);
    let libraries = preloads(&[&ground.path("libinterposer.so"), &preload()]);
    let ended = end(ground.watched(program).env("LD_PRELOAD", libraries));
    let launch = "interposer before 1\ninterposer after 200001\naclrtLaunchKernel 200001\n";
    let wait = "interposer waits\naclrtSynchronizeDevice 200001\n";
    assert_eq!(ended.code, 42, "{ended:?}");
    for expected in [launch, wait] {
        assert_eq!(ended.stdout.matches(expected).count(), 2, "{ended:?}");
    }
}

#[test]
fn issue_19_an_allocator_that_looks_at_the_loaded_objects_under_its_lock_waits_for_nobody() {
    let ground = Ground::default();
    ground.library("libascendcl.so", "quiet_acl.c", &NONE);
    ground.library("libwalking.so", "walking.c", &NONE);
    ground.program("allocating", &["allocating.c"], &["-l:libascendcl.so"]);
    let (ours, walking) = (preload(), ground.path("libwalking.so"));
    let ended = below(&ground, "allocating", &[&ours, &walking]);
    assert_eq!((ended.code, ended.stderr.as_str()), (42, ""), "{ended:?}");
    assert_eq!(ended.stdout, "0\n0\n0\n200001\n0\n");
    assert_eq!(ground.trace().count("aclrtLaunchKernel"), 3);
}
