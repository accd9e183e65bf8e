//! The vendor's library is missing, or not loaded yet: calls return the vendor's error codes, annotations work without it, and a later load is noticed.

use crate::fakes::{fake, fakes};
use c_programs::{Ended, Ground, NONE, end, preload, preloads};

/// The functions that the program calls.
const FUNCTIONS: [&str; 6] = [
    "aclrtLaunchKernel",
    "rtKernelLaunch",
    "HcclBarrier",
    "aclopExecuteV2",
    "aclprofStart",
    "aclrtSynchronizeDevice",
];
/// Results of the functions without a library.
const NOTHING: [i32; 6] = [200_001, 207_000, 5, 200_001, 200_001, 200_001];

/// Returns the program's output for `rounds` rounds of calls with these results, followed by the functions that `dlsym` then finds.
fn called(codes: [i32; 6], rounds: usize, when: &str) -> String {
    let results = FUNCTIONS.iter().zip(codes);
    let lines = results
        .clone()
        .map(|(name, code)| format!("{name} {code}\n"));
    let there = results.filter(|(_, code)| *code == 0);
    let there: String = there.map(|(name, _)| format!(" {name}")).collect();
    let lines = lines.collect::<String>().repeat(rounds);
    format!("{lines}there {when}:{there}\n")
}

fn ground() -> Ground {
    let ground = fakes();
    ground.program("missing", &["missing.c"], &NONE);
    ground
}

/// Runs the program, recording, with a library that it loads at the end, and these variables.
fn run(ground: &Ground, library: Option<&str>, variables: &[(&str, &str)]) -> Ended {
    let mut command = ground.watched(ground.path("missing"));
    command.args(library).envs(variables.iter().copied());
    let ended = end(&mut command);
    assert_eq!((ended.code, ended.stderr.as_str()), (42, ""), "{ended:?}");
    ended
}

#[test]
fn without_a_library_calls_fail_as_not_supported_and_annotations_work_alone() {
    let ground = ground();
    let before = format!("there at first:\n{}", called(NOTHING, 2, "after the calls"));
    let preloaded = end(&mut ground.preloaded(ground.path("missing")));
    let expected = format!("{before}ids 0, domain 0\n"); // nothing is recorded
    assert_eq!((preloaded.code, preloaded.stdout), (42, expected));
    let expected = format!("{before}ids 1, domain 1\n");
    assert_eq!(run(&ground, None, &[]).stdout, expected);
    let trace = ground.merge_and_clear();
    assert_eq!(trace.recorded().count(), 4, "{:?}", trace.counts());
    assert!(trace.named("sa_reach").is_empty());
    assert_eq!(trace.only("within")["args"]["domain"], "comm");
    for (name, phase) in [
        ("outer", "X"),
        ("inner", "X"),
        ("within", "X"),
        ("here", "i"),
    ] {
        assert_eq!(trace.only(name)["ph"], phase, "{name}");
    }
    let (outer, inner) = (trace.only("outer"), trace.only("inner"));
    assert_ne!(outer["tid"], inner["tid"], "lanes of their own");
    // A library that is loaded later is found under any name.
    fake(&ground, "libanother.so", &["-DPART=ACL"]);
    let loaded = called([0, 207_000, 5, 0, 200_001, 0], 1, "at last");
    for name in ["libascendcl.so", "libanother.so"] {
        let library = ground.text(name);
        let ended = run(&ground, Some(&library), &[("FAKE_QUIET", "1")]);
        assert_eq!(ended.stdout, format!("{expected}{loaded}"), "{name}");
        assert_eq!(
            ground.merge_and_clear().count("aclrtLaunchKernel"),
            1,
            "{name}"
        );
    }
}

/// Also holds if the library lacks the function that is called first.
#[test]
fn a_library_that_nobody_has_loaded_is_loaded_by_the_first_call() {
    let ground = ground();
    std::fs::create_dir(ground.path("old")).unwrap();
    ground.library("old/libascendcl.so", "older_acl.c", &NONE);
    let mut old = NOTHING;
    old[5] = 0;
    for (folder, codes) in [("", [0; 6]), ("old", old)] {
        let folder = ground.text(folder);
        let variables = [("LD_LIBRARY_PATH", folder.as_str()), ("FAKE_QUIET", "1")];
        let ended = run(&ground, None, &variables);
        let expected = called(codes, 2, "after the calls");
        assert!(ended.stdout.contains(&expected), "{ended:?}");
        assert_eq!(ground.merge_and_clear().count("aclrtSynchronizeDevice"), 2);
    }
}

#[test]
fn a_library_without_a_tool_that_listens_is_not_shown_ids_of_ours() {
    let ground = ground();
    let library = ground.path("libms_tools_ext.so");
    let list = preloads(&[&preload(), &library]).into_string().unwrap();
    let variables = [("LD_PRELOAD", list.as_str()), ("FAKE_NO_TOOL", "1")];
    let ended = run(&ground, None, &variables);
    assert!(ended.stdout.ends_with("ids 1, domain 1\n"), "{ended:?}");
    for (call, times) in [
        ("mstxRangeStartA", 2),
        ("mstxMarkA", 1),
        ("mstxDomainCreateA", 1),
        ("mstxDomainRangeStartA", 0),
        ("mstxRangeEnd", 1), // with an unknown id
        ("mstxDomainRangeEnd", 0),
    ] {
        let seen = ended.stdout.matches(&format!("  real {call}:")).count();
        assert_eq!(seen, times, "{call}");
    }
    assert_eq!(ground.trace().recorded().count(), 4);
}
