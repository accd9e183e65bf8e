//! Other preloaded libraries: interposers of the same functions before and behind ours, allocators, a second copy of ours.

use crate::ground::{Ended, Ground, end, preload, preloads, skip};
use std::path::{Path, PathBuf};

/// Builds the program that calls everything by name. One of its libraries calls the runtime before main, so cleanup at exit runs after the destructors
/// of other libraries.
fn ground() -> Ground {
    let ground = Ground::with_fakes();
    ground.library("libearly.so", "early.c", &["-l:libascendcl.so"]);
    let libraries = ["-DDIRECT", "-l:libearly.so"].map(str::to_owned);
    let options = [&Ground::links()[..], &libraries].concat();
    ground.program("direct", &["direct.c", "adversary.c"], &options);
    ground
}

/// A program, given its own name, below these preloaded libraries, recording.
fn below(ground: &Ground, program: &str, libraries: &[&Path]) -> Ended {
    let mut command = ground.recorded(ground.path(program));
    command.arg(program).env("LD_PRELOAD", preloads(libraries));
    command.env("FAKETIME", "-1d");
    end(command.env("ASAN_OPTIONS", "verify_asan_link_order=0")) // it need not come first
}

/// Asserts that a library changes nothing, before or after ours: the program's output is the same as below `alone`, and there is a trace.
fn get_along(ground: &Ground, alone: &[&Path], other: &Path) -> Ended {
    let (ours, plain) = (preload(), below(ground, "direct", alone));
    assert_eq!(plain.code, 42, "{plain:?}");
    for order in [[&ours, other], [other, &ours]] {
        assert_eq!(below(ground, "direct", &order), plain, "{order:?}");
        let trace = ground.trace();
        assert_eq!(trace.count("aclrtSynchronizeDevice"), 5, "{order:?}");
        assert_eq!(trace.count("Asked"), 16, "{order:?}");
        std::fs::remove_dir_all(ground.run()).unwrap();
    }
    plain
}

/// An interposer stays in the chain, an allocator is used as without us, of two copies of ours the first one records, and at the exit no replaced function is
/// asked for the status of a file.
#[test]
fn issue_47_libraries_before_or_behind_ours_get_along_with_it() {
    let ground = ground();
    for (name, source) in [
        ("libinterposer.so", "interposer.c"),
        ("liballocator.so", "allocator.c"),
        ("libended.so", "ended.c"),
    ] {
        ground.library(name, source, &["-Wno-builtin-declaration-mismatch"]);
        let other = ground.path(name);
        let plain = get_along(&ground, &[&other], &other);
        let interposed = plain.stdout.matches("interposer").count();
        assert_eq!(interposed, if name == "libinterposer.so" { 13 } else { 0 });
    }
    std::fs::create_dir(ground.path("copy")).unwrap();
    let copy = ground.path("copy/libsa_profile_preload.so");
    std::fs::copy(preload(), &copy).unwrap();
    get_along(&ground, &[], &copy);
}

#[test]
fn a_launch_in_a_handler_that_interrupts_the_allocator_does_not_enter_it() {
    let ground = Ground::new();
    ground.library("libascendcl.so", "quiet_acl.c", &[] as &[&str]);
    let flags = ["-Wno-builtin-declaration-mismatch", "-l:libascendcl.so"];
    ground.program("interrupted", &["interrupted.c", "allocator.c"], &flags);
    let plain = end(&mut ground.command(ground.path("interrupted")));
    assert_eq!((plain.code, plain.stdout.as_str()), (42, "launched 100\n"));
    assert_eq!(end(&mut ground.recorded(ground.path("interrupted"))), plain);
    assert_eq!(ground.trace().count("aclrtLaunchKernel"), 100);
}

/// Libraries that programs preload: the file, and Debian's package.
const PRELOADED: [(&str, &str); 5] = [
    ("libjemalloc.so.2", "libjemalloc2"),
    ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
    ("faketime/libfaketime.so.1", "libfaketime"),
    ("faketime/libfaketimeMT.so.1", "libfaketime"),
    ("libasan.so.8", "libasan8"),
];

/// Where a library is installed; else says that its part of a test is skipped.
fn installed(test: &str, (name, package): (&str, &str)) -> Option<PathBuf> {
    let folders = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
    ];
    let paths = folders.map(|folder| Path::new(folder).join(name));
    let found = paths.into_iter().find(|path| path.exists());
    if found.is_none() {
        skip(
            test,
            &format!("{name} is not installed (Debian's {package})"),
        );
    }
    found
}

/// They fake the time, check memory or allocate it.
#[test]
fn issue_19_real_libraries_get_along_with_ours() {
    let ground = ground();
    let test = "issue_19_real_libraries_get_along_with_ours";
    let libraries = PRELOADED.iter();
    for library in libraries.filter_map(|library| installed(test, *library)) {
        get_along(&ground, &[&library], &library);
    }
}

#[test]
fn an_interposer_before_or_behind_ours_is_no_real_function() {
    let ground = Ground::new();
    ground.library("libinterposer.so", "interposer.c", &[] as &[&str]);
    // Behind ours, without the function, and bringing along an interposer that lies before.
    let client = ["-Wl,--no-as-needed", "-l:libinterposer.so"];
    ground.library("libclient.so", "fake_answer.c", &client);
    let program = ["-Wl,--no-as-needed", "-l:libclient.so"];
    ground.program("missing", &["missing.c"], &program);
    let mut command = ground.recorded(ground.path("missing"));
    let (first, ours) = (ground.path("libinterposer.so"), preload());
    let ended = end(command.env("LD_PRELOAD", preloads(&[&first, &ours])));
    let launch = "interposer before 1\ninterposer after 200001\naclrtLaunchKernel 200001\n";
    let wait = "interposer waits\naclrtSynchronizeDevice 200001\n";
    assert_eq!(ended.code, 42, "{ended:?}");
    for (expected, times) in [(launch, 2), (wait, 2)] {
        assert_eq!(ended.stdout.matches(expected).count(), times, "{ended:?}");
    }
}

#[test]
fn issue_19_an_allocator_that_looks_at_the_loaded_objects_under_its_lock_waits_for_nobody() {
    let ground = Ground::new();
    ground.library("libascendcl.so", "quiet_acl.c", &[] as &[&str]);
    ground.library("libwalking.so", "walking.c", &[] as &[&str]);
    ground.program("allocating", &["allocating.c"], &["-l:libascendcl.so"]);
    let (ours, walking) = (preload(), ground.path("libwalking.so"));
    let ended = below(&ground, "allocating", &[&ours, &walking]);
    assert_eq!((ended.code, ended.stderr.as_str()), (42, ""), "{ended:?}");
    assert_eq!(ended.stdout, "0\n0\n0\n200001\n0\n");
    assert_eq!(ground.trace().count("aclrtLaunchKernel"), 3);
}
