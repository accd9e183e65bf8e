//! Where the vendor's library is not there, or not yet: an error of the vendor's numbering, annotations that work alone, and no wrong memory of it.

use crate::ground::{Ended, Ground, end, preload, preloads};

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

/// The program, recording, with a library that it loads at the end, and these variables.
fn run(ground: &Ground, library: Option<&str>, variables: &[(&str, &str)]) -> Ended {
    let mut command = ground.recorded(ground.path("missing"));
    command.args(library).envs(variables.iter().copied());
    let ended = end(&mut command);
    assert_eq!((ended.code, ended.stderr.as_str()), (42, ""), "{ended:?}");
    ended
}

#[test]
fn without_a_library_calls_fail_as_not_supported_and_annotations_work_alone() {
    let ground = ground();
    let said = |ids: &str| format!("{}{ids}\n", called(NOTHING, ""));
    let preloaded = end(&mut ground.preloaded(ground.path("missing")));
    assert_eq!(preloaded.stdout, said("ids 0, domain 0"), "not recording");
    assert_eq!((preloaded.code, preloaded.stderr.as_str()), (42, ""));
    assert_eq!(run(&ground, None, &[]).stdout, said("ids 1, domain 1"));
    let trace = ground.trace();
    assert_eq!(trace.recorded().count(), 4, "{:?}", trace.counts());
    assert_eq!(trace.only("within")["args"]["domain"], "comm");
    for name in ["outer", "inner", "within"] {
        assert_eq!(trace.only(name)["ph"], "X");
    }
    assert_eq!(trace.only("here")["ph"], "i");
    let (outer, inner) = (trace.only("outer"), trace.only("inner"));
    assert_ne!(outer["tid"], inner["tid"], "lanes of their own");
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
        ("mstxRangeEnd", 1), // that of nobody's id
        ("mstxDomainRangeEnd", 0),
    ] {
        let seen = ended.stdout.matches(&format!("  real {call}:")).count();
        assert_eq!(seen, times, "{call}");
    }
    assert_eq!(ground.trace().recorded().count(), 4);
}

#[test]
fn a_library_that_is_loaded_later_is_found_whatever_it_is_called() {
    let ground = ground();
    let options = ["-DPART=ACL", "-Wl,-Bsymbolic", "-lfake_answer"];
    ground.library("libanother.so", "fake_acl.c", &options);
    let loaded = "loaded: aclrtLaunchKernel 0, rtKernelLaunch 207000\n";
    let there = "there at last: aclrtLaunchKernel aclopExecuteV2 aclrtSynchronizeDevice\n";
    let before = format!("{}ids 1, domain 1\n", called(NOTHING, ""));
    for name in ["libascendcl.so", "libanother.so"] {
        let library = ground.text(name);
        let ended = run(&ground, Some(&library), &[("FAKE_QUIET", "1")]);
        assert_eq!(ended.stdout, format!("{before}{loaded}{there}"), "{name}");
        assert_eq!(ground.trace().count("aclrtLaunchKernel"), 1, "{name}");
        std::fs::remove_dir_all(ground.run()).unwrap();
    }
}

#[test]
fn a_library_that_nobody_has_loaded_is_loaded_by_the_first_call() {
    let ground = ground();
    let folder = ground.text("");
    let variables = [("LD_LIBRARY_PATH", folder.as_str()), ("FAKE_QUIET", "1")];
    let ended = run(&ground, None, &variables);
    assert_eq!(ended.stdout.matches(" 0\n").count(), 12, "{ended:?}");
    let there = " aclrtLaunchKernel rtKernelLaunch HcclBarrier aclopExecuteV2 aclprofStart aclrtSynchronizeDevice";
    let there = format!("there after the calls:{there}\n");
    assert!(ended.stdout.contains(&there), "{ended:?}");
}

#[test]
fn a_library_that_lacks_the_first_function_called_still_has_the_others() {
    let ground = ground();
    std::fs::create_dir(ground.path("old")).unwrap();
    ground.library("old/libascendcl.so", "older_acl.c", &[] as &[&str]);
    let ended = run(&ground, None, &[("LD_LIBRARY_PATH", &ground.text("old"))]);
    let expected = NOTHING.replace("Device 200001", "Device 0");
    let expected = called(&expected, " aclrtSynchronizeDevice");
    assert!(ended.stdout.starts_with(&expected), "{ended:?}");
    assert_eq!(ground.trace().count("aclrtSynchronizeDevice"), 2);
}
