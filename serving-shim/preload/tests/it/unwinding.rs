//! What leaves the vendor's library otherwise than by returning passes through ours.

use crate::ground::{Ground, end};
use crate::trace::Trace;

/// A program linked with such a runtime says this in every way: plain, preloaded and recorded. Returns what was recorded.
fn unchanged(runtime: &str, program: &str, expected: &str) -> Trace {
    let ground = Ground::new();
    let library = ["-shared", "-fPIC", "-Wl,-soname,libascendcl.so"];
    ground.compile("c++", "libascendcl.so", &[runtime], &library);
    ground.compile("c++", "program", &[program], &["-l:libascendcl.so"]);
    let program = ground.path("program");
    let plain = end(&mut ground.command(&program));
    assert_eq!((plain.code, plain.stdout.as_str()), (42, expected));
    assert_eq!(end(&mut ground.preloaded(&program)), plain);
    assert_eq!(end(&mut ground.recorded(&program)), plain);
    ground.trace()
}

#[test]
fn exceptions_and_cancellation_pass_through_and_recording_goes_on() {
    let caught = "caught: thrown by the vendor\n";
    let expected = format!("launched 0\n{caught}{caught}launched 0\ncleaned up\ncancelled 1\n");
    let trace = unchanged("throwing.cc", "catching.cc", &expected);
    assert_eq!(trace.count("aclrtLaunchKernel"), 4, "also those that threw");
    assert_eq!(trace.count("aclrtSynchronizeStream"), 1);
}

#[test]
fn a_thread_that_is_to_be_cancelled_is_so_in_none_of_our_work() {
    let expected = "launched 3, caught 3, cancelled 1\nlaunched 6, caught 6, cancelled 1\n";
    let trace = unchanged("throwing.cc", "pending.cc", expected);
    assert_eq!(trace.count("aclrtLaunchKernel"), 12);
    assert_eq!(trace.count("marked"), 2);
}

#[test]
fn after_a_jump_out_of_a_call_later_calls_are_recorded() {
    let expected = "gave up\ngave up\ngave up\nwaited 0\nwaited 0\n";
    let trace = unchanged("jumping_acl.cc", "jumping.cc", expected);
    assert_eq!(trace.unfinished("aclrtSynchronizeDevice").len(), 3);
    assert_eq!(trace.count("aclrtSynchronizeStream"), 2);
}

#[test]
fn issue_19_a_killed_process_keeps_the_args_of_what_it_was_in() {
    let ground = Ground::with_fakes();
    ground.library("libascendcl.so", "killing_acl.c", &[] as &[&str]);
    ground.program("killed", &["killed.c"], &Ground::links());
    let ended = end(&mut ground.recorded(ground.path("killed")));
    assert_eq!(ended.code, -9, "{ended:?}");
    let trace = ground.trace();
    for (name, handle) in [("aclrtSynchronizeStream", "0x52"), ("request", "0x51")] {
        let args = trace.unfinished(name)[0];
        assert_eq!(args["handle"], handle, "{name}: {args}");
    }
}
