//! Where the vendor's library is not there, or not yet: an error of the vendor's numbering, annotations that work alone, and no wrong memory of it.

use crate::ground::{Ground, end, preload};

const NOTHING: &str = "\
aclrtLaunchKernel 200001
rtKernelLaunch 207000
HcclBarrier 5
aclopExecuteV2 200001
aclprofStart 200001
aclrtSynchronizeDevice 200001
";

/// What the program prints before it annotates: what `dlsym` says is there, what two rounds of calls return, and what is there after them.
fn called(results: &str, there: &str) -> String {
    format!("there at first:\n{results}{results}there after the calls:{there}\n")
}

fn ground() -> Ground {
    let ground = Ground::with_fakes();
    ground.program("missing", &["missing.c"], &[] as &[&str]);
    ground
}

#[test]
fn without_a_library_calls_fail_as_not_supported_and_annotations_work_alone() {
    let ground = ground();
    let ended = end(&mut ground.recorded(ground.path("missing")));
    assert_eq!(
        ended.stdout,
        format!("{}ids 1, domain 1\n", called(NOTHING, ""))
    );
    assert_eq!((ended.code, ended.stderr.as_str()), (42, ""));
    let trace = ground.trace();
    assert_eq!(trace.recorded().count(), 4, "{:?}", trace.counts());
    assert_eq!(trace.only("within")["args"]["domain"], "comm");
    for name in ["outer", "inner", "within"] {
        assert_eq!(trace.only(name)["ph"], "X");
    }
    assert_eq!(trace.only("here")["ph"], "i");
    let (outer, inner) = (trace.only("outer"), trace.only("inner"));
    assert_ne!(
        outer["tid"], inner["tid"],
        "ranges that overlap have lanes of their own"
    );
}

#[test]
fn without_recording_annotations_are_nothing() {
    let ground = ground();
    let ended = end(&mut ground.preloaded(ground.path("missing")));
    assert_eq!(
        ended.stdout,
        format!("{}ids 0, domain 0\n", called(NOTHING, ""))
    );
    assert_eq!((ended.code, ended.stderr.as_str()), (42, ""));
}

#[test]
fn a_library_without_a_tool_that_listens_is_not_shown_ids_of_ours() {
    let ground = ground();
    let mut command = ground.recorded(ground.path("missing"));
    let library = ground.path("libms_tools_ext.so");
    let preloads = format!("{}:{}", preload().display(), library.display());
    command.env("LD_PRELOAD", preloads).env("FAKE_NO_TOOL", "1");
    let ended = end(&mut command);
    assert!(ended.stdout.ends_with("ids 1, domain 1\n"), "{ended:?}");
    let seen = |call: &str| ended.stdout.matches(&format!("  real {call}:")).count();
    assert_eq!((seen("mstxRangeStartA"), seen("mstxMarkA")), (2, 1));
    assert_eq!(
        (seen("mstxDomainCreateA"), seen("mstxDomainRangeStartA")),
        (1, 0)
    );
    assert_eq!(
        (seen("mstxRangeEnd"), seen("mstxDomainRangeEnd")),
        (1, 0),
        "that of nobody's id"
    );
    assert_eq!(ground.trace().recorded().count(), 4);
}

#[test]
fn a_library_that_is_loaded_later_is_found() {
    let ground = ground();
    let library = ground.text("libascendcl.so");
    let ended = end(ground
        .recorded(ground.path("missing"))
        .arg(&library)
        .env("FAKE_QUIET", "1"));
    let loaded = "loaded: aclrtLaunchKernel 0, rtKernelLaunch 207000\n\
        there at last: aclrtLaunchKernel aclopExecuteV2 aclrtSynchronizeDevice\n";
    assert_eq!(
        ended.stdout,
        format!("{}ids 1, domain 1\n{loaded}", called(NOTHING, ""))
    );
    assert_eq!(ground.trace().count("aclrtLaunchKernel"), 1);
}

#[test]
fn a_library_of_another_name_is_found_by_what_it_defines() {
    let ground = ground();
    let options = ["-DPART=ACL", "-Wl,-Bsymbolic", "-lfake_answer"];
    ground.library("libanother.so", "fake_acl.c", &options);
    let library = ground.text("libanother.so");
    let ended = end(ground
        .recorded(ground.path("missing"))
        .arg(&library)
        .env("FAKE_QUIET", "1"));
    assert!(
        ended
            .stdout
            .contains("loaded: aclrtLaunchKernel 0, rtKernelLaunch 207000\n"),
        "{ended:?}"
    );
}

#[test]
fn a_library_that_nobody_has_loaded_is_loaded_by_the_first_call() {
    let ground = ground();
    let mut command = ground.recorded(ground.path("missing"));
    command
        .env("LD_LIBRARY_PATH", ground.path(""))
        .env("FAKE_QUIET", "1");
    let ended = end(&mut command);
    assert_eq!(ended.stdout.matches(" 0\n").count(), 12, "{ended:?}");
    let there = " aclrtLaunchKernel rtKernelLaunch HcclBarrier aclopExecuteV2 aclprofStart aclrtSynchronizeDevice";
    let there = format!("there after the calls:{there}\n");
    assert!(ended.stdout.contains(&there), "{ended:?}");
    assert_eq!(ended.code, 42);
}

#[test]
fn a_library_that_lacks_the_first_function_called_still_has_the_others() {
    let ground = ground();
    std::fs::create_dir(ground.path("old")).unwrap();
    ground.library("old/libascendcl.so", "older_acl.c", &[] as &[&str]);
    let mut command = ground.recorded(ground.path("missing"));
    let ended = end(command.env("LD_LIBRARY_PATH", ground.path("old")));
    let expected = NOTHING.replace("Device 200001", "Device 0");
    assert!(
        ended
            .stdout
            .starts_with(&called(&expected, " aclrtSynchronizeDevice")),
        "{ended:?}"
    );
    assert_eq!(ground.trace().count("aclrtSynchronizeDevice"), 2);
}
