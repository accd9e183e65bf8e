//! Other preloaded libraries: interposers of the same functions before and behind ours, allocators, a second copy of ours.

use crate::ground::{Ended, Ground, end, preload, skip};
use std::path::{Path, PathBuf};

fn ground() -> Ground {
    let ground = Ground::with_fakes();
    let direct = [vec!["-DDIRECT".to_owned()], Ground::links()].concat();
    ground.program("direct", &["direct.c", "adversary.c"], &direct);
    ground
}

/// The program below these preloaded libraries, recording.
fn below(ground: &Ground, libraries: &[&Path]) -> Ended {
    below_in(ground, "direct", libraries)
}

/// A program, given its own name, below these preloaded libraries, recording.
fn below_in(ground: &Ground, program: &str, libraries: &[&Path]) -> Ended {
    let list: Vec<String> = libraries
        .iter()
        .map(|library| library.display().to_string())
        .collect();
    let mut command = ground.recorded(ground.path(program));
    end(command.arg(program).env("LD_PRELOAD", list.join(":")))
}

#[test]
fn another_interposer_before_or_behind_ours_stays_in_the_chain() {
    let ground = ground();
    ground.library("libinterposer.so", "interposer.c", &[] as &[&str]);
    let (ours, other) = (preload(), ground.path("libinterposer.so"));
    let alone = below(&ground, &[&other]);
    assert_eq!(alone.stdout.matches("interposer").count(), 12);
    for order in [[&ours, &other], [&other, &ours]] {
        let both = below(&ground, &order.map(AsRef::as_ref));
        assert_eq!(both, alone);
        let trace = ground.trace();
        assert_eq!(trace.count("aclrtSynchronizeDevice"), 4);
        assert_eq!(trace.count("Asked"), 16);
        std::fs::remove_dir_all(ground.run()).unwrap();
    }
}

#[test]
fn an_allocator_before_or_behind_ours_is_used_as_without_us() {
    let ground = ground();
    ground.library(
        "liballocator.so",
        "allocator.c",
        &["-Wno-builtin-declaration-mismatch"],
    );
    let allocator = ground.path("liballocator.so");
    let (ours, plain) = (preload(), below(&ground, &[&allocator]));
    assert_eq!(plain.code, 42, "{plain:?}");
    for order in [[&ours, &allocator], [&allocator, &ours]] {
        assert_eq!(below(&ground, &order.map(AsRef::as_ref)), plain);
    }
    assert_eq!(
        ground.trace().count("aclrtSynchronizeDevice"),
        4,
        "the newer run"
    );
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

/// Runs the program below libraries that fake the time, check memory or allocate it, and asserts that ours beside them changes nothing but that there is a
/// trace. One library of the program calls the runtime before main: what ends at the exit then ends behind the destructors of other libraries.
fn get_along(test: &str, early: bool) {
    let ground = Ground::with_fakes();
    let mut options = [vec!["-DDIRECT".to_owned()], Ground::links()].concat();
    if early {
        ground.library("libearly.so", "early.c", &["-l:libascendcl.so"]);
        options.push("-l:libearly.so".to_owned());
    }
    ground.program("direct", &["direct.c", "adversary.c"], &options);
    let ours = preload();
    let run = |libraries: &[&Path]| {
        let list: Vec<String> = libraries
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let mut command = ground.recorded(ground.path("direct"));
        command.arg("direct").env("LD_PRELOAD", list.join(":"));
        command.env("FAKETIME", "-1d");
        end(command.env("ASAN_OPTIONS", "verify_asan_link_order=0")) // it need not come first
    };
    let libraries = PRELOADED.iter();
    for library in libraries.filter_map(|library| installed(test, *library)) {
        let plain = run(&[&library]);
        assert_eq!(plain.code, 42, "{plain:?}");
        for order in [[&ours, &library], [&library, &ours]] {
            let both = run(&order.map(AsRef::as_ref));
            assert_eq!(both, plain, "{order:?}");
            let calls = if early { 5 } else { 4 };
            let trace = ground.trace();
            assert_eq!(trace.count("aclrtSynchronizeDevice"), calls, "{order:?}");
            std::fs::remove_dir_all(ground.run()).unwrap();
        }
    }
}

#[test]
fn issue_19_real_libraries_get_along_with_ours() {
    get_along("issue_19_real_libraries_get_along_with_ours", false);
}

#[test]
fn issue_19_real_libraries_get_along_with_ours_that_begins_before_main() {
    let test = "issue_19_real_libraries_get_along_with_ours_that_begins_before_main";
    get_along(test, true);
}

#[test]
fn issue_47_at_exit_no_replaced_function_is_asked_for_the_status_of_a_file() {
    let ground = Ground::with_fakes();
    ground.library("libearly.so", "early.c", &["-l:libascendcl.so"]);
    ground.library("libended.so", "ended.c", &[] as &[&str]);
    let direct = [vec!["-DDIRECT".to_owned()], Ground::links()].concat();
    let options = [direct, vec!["-l:libearly.so".to_owned()]].concat();
    ground.program("direct", &["direct.c", "adversary.c"], &options);
    let (ours, ended) = (preload(), ground.path("libended.so"));
    let plain = below(&ground, &[&ended]);
    assert_eq!(plain.code, 42, "{plain:?}");
    for order in [[&ours, &ended], [&ended, &ours]] {
        assert_eq!(below(&ground, &order.map(AsRef::as_ref)), plain);
        let trace = ground.trace();
        assert_eq!(trace.count("aclrtSynchronizeDevice"), 5, "{order:?}");
        std::fs::remove_dir_all(ground.run()).unwrap();
    }
}

#[test]
fn of_two_copies_of_ours_the_first_one_records() {
    let ground = ground();
    std::fs::create_dir(ground.path("copy")).unwrap();
    let copy = ground.path("copy").join("libsa_profile_preload.so");
    std::fs::copy(preload(), &copy).unwrap();
    let (ours, plain) = (preload(), below(&ground, &[]));
    for order in [[&ours, &copy], [&copy, &ours]] {
        assert_eq!(below(&ground, &order.map(AsRef::as_ref)), plain);
        assert_eq!(ground.trace().count("aclrtSynchronizeDevice"), 4);
        assert_eq!(ground.trace().count("Asked"), 16);
        std::fs::remove_dir_all(ground.run()).unwrap();
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
    let preloads = [ground.path("libinterposer.so"), preload()];
    let preloads = preloads.map(|library| library.display().to_string());
    let ended = end(command.env("LD_PRELOAD", preloads.join(":")));
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
    let ended = below_in(&ground, "allocating", &[&ours, &walking]);
    assert_eq!((ended.code, ended.stderr.as_str()), (42, ""), "{ended:?}");
    assert_eq!(ended.stdout, "0\n0\n0\n200001\n0\n");
    assert_eq!(ground.trace().count("aclrtLaunchKernel"), 3);
}
