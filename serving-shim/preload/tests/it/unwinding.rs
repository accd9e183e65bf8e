//! Exceptions, cancellations and jumps out of the vendor's library pass through ours.

use crate::fakes::{fakes, links};
use c_programs::{Ground, NONE, end};

#[test]
fn exceptions_cancellation_and_jumps_pass_through_and_recording_goes_on() {
    let ground = Ground::default();
    let library = ["-shared", "-fPIC", "-Wl,-soname,libascendcl.so"];
    ground.compile("c++", "libascendcl.so", &["leaving_acl.cc"], &library);
    let program = ground.compile("c++", "leaving", &["leaving.cc"], &["-l:libascendcl.so"]);
    let launched = "launched 0\n";
    let caught = "caught: thrown by the vendor\n".repeat(2);
    let cancelled = "cancelled 1\n".repeat(3);
    let gave_up = "gave up\n".repeat(3);
    let expected =
        format!("{launched}{caught}{launched}cleaned up\n{cancelled}{gave_up}waited 0\nwaited 0\n");
    assert_eq!(ground.unchanged(&program, &NONE), expected);
    let trace = ground.trace();
    assert_eq!(trace.unfinished("aclrtSynchronizeDevice").len(), 3);
    let launches = 4 + 2 * 3; // including the ones that threw
    assert_eq!(trace.count("aclrtLaunchKernel"), launches);
    assert_eq!(trace.count("aclrtSynchronizeStream"), 1);
    assert_eq!(trace.count("aclrtSynchronizeEvent"), 2);
    assert_eq!(trace.count("marked"), 2);
}

#[test]
fn issue_19_a_killed_process_keeps_the_args_of_what_it_was_in() {
    let ground = fakes();
    ground.library("libascendcl.so", "killing_acl.c", &NONE);
    let program = ground.program("killed", &["killed.c"], &links());
    let ended = end(&mut ground.watched(program));
    assert_eq!(ended.code, -9, "{ended:?}");
    let trace = ground.trace();
    for (name, handle) in [("aclrtSynchronizeStream", "0x52"), ("request", "0x51")] {
        let args = trace.unfinished(name)[0];
        assert_eq!(args["handle"], handle, "{name}: {args}");
    }
}
